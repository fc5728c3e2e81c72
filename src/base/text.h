/* text.h - builds a string piece by piece; the first failure latches and later appends do nothing. */
#ifndef TWI_TEXT_H
#define TWI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <tower/status.h>

typedef struct twi_text {
    char *data;     /* NULL while empty; always ends in 0 otherwise */
    size_t size;    /* without the final 0 */
    size_t capacity;
    bool failed;    /* memory ran out */
} twi_text;         /* all zeros is an empty text */

void twi_text_printf(twi_text *text, const char *format, ...) TW_PRINTF(2, 3);
void twi_text_append(twi_text *text, const void *bytes, size_t size);
const char *twi_text_string(const twi_text *text); /* never NULL; borrowed */
void twi_text_free(twi_text *text);

#endif

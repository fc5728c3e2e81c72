/* letters.h - upper and lower case of Unicode's letters, whatever the language, and scripts of its
 * characters. */
#ifndef TWI_LETTERS_H
#define TWI_LETTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What character i of a text of so many becomes in the other case, up to three characters; returns how many. A capital
 * sigma is another letter at the end of a word, so the whole text is asked for. */
int twi_to_case(const uint32_t *text, size_t count, size_t i, bool upper, uint32_t to[3]);

/* The script that a character is of, as ICU numbers them; -1: it is no character. */
int32_t twi_script_of(int32_t c);

#endif

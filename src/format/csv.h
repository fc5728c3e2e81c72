/* csv.h - lines of fields as TensorFlow reads them: quoted or not, numbers and texts. */
#ifndef TWI_CSV_H
#define TWI_CSV_H

#include <tower/tensor.h>

typedef struct twi_csv {
    char delimiter;
    bool quotes;         /* a field may stand in double quotes, in which two of them are one */
    const char *missing; /* what stands for no value, beside nothing */
} twi_csv;

/* Where the record that begins at `bytes` ends, a line's end outside of quotes; NULL: not among these. */
const char *twi_csv_record_end(const twi_csv *csv, const char *bytes, size_t size);
/* The next field of a record, unquoted into `text`, as long as the record at most; *at moves behind it, to the
 * delimiter or the end. False: its quotes do not fit. */
bool twi_csv_field(const twi_csv *csv, const char **at, const char *end, char *text, size_t *size);
bool twi_csv_is_missing(const twi_csv *csv, const char *text, size_t size);
/* The whole of the text is one number of the type: int32, int64, float, double. */
bool twi_csv_number(tw_dtype dtype, const char *text, size_t size, void *to);

#endif

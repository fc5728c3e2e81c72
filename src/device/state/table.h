/* table.h - lookup tables: values by key, a resource of the session's that outlives steps.
 *
 * Keys are strings, int32 or int64, values tensors of one shape and any type. A table that is initialized once
 * (HashTable) is read by nobody before; one that changes (MutableHashTable) begins empty. Any thread may ask. */
#ifndef TWI_TABLE_H
#define TWI_TABLE_H

#include "device/kernel.h"

typedef struct twi_table twi_table;

/* Makes the resource that table, or checks that it is one already. */
tw_status twi_table_make(twi_resource *resource, const char *name, tw_dtype key, tw_dtype value, tw_shape shape,
                         bool changes, tw_error *error);
twi_table *twi_table_of(const twi_resource *resource); /* NULL if something else is behind the handle */
tw_dtype twi_table_key(const twi_table *table);
tw_dtype twi_table_value(const twi_table *table);
tw_shape twi_table_shape(const twi_table *table); /* of a value */
bool twi_table_changes(const twi_table *table);

/* Values lie side by side, as tensors have them. */
/* Puts pairs in; those of one that is initialized once must agree with what it has, and it may be read once nothing
 * more comes. */
tw_status twi_table_put(twi_table *table, const void *keys, const void *values, int64_t count, bool more, tw_error *error);
tw_status twi_table_find(twi_table *table, const void *keys, int64_t count, const void *otherwise, void *values,
                         tw_error *error);
void twi_table_remove(twi_table *table, const void *keys, int64_t count);
/* Keys by which tables of TensorFlow's mark free places when they are saved whole. False: memory has run out. */
bool twi_table_mark(twi_table *table, const void *empty, const void *deleted);
void twi_table_remove_marks(twi_table *table);
void twi_table_clear(twi_table *table); /* as it was made */
bool twi_table_is_marked(const twi_table *table);
int64_t twi_table_size(twi_table *table);
/* How many rows it is listed in: its pairs, or, of one with marks, the places that TensorFlow would have them in. */
int64_t twi_table_rows(twi_table *table);
/* The first pairs in so many rows: in the order in which keys came, or in their places. False: memory has run out. */
bool twi_table_list(twi_table *table, int64_t rows, void *keys, void *values);

#endif

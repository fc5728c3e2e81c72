/* kinds.h - what the kinds of data sets share. A family of kinds is an array in the file it is named after, ended by a
 * row without an op; kinds.c lists them. */
#ifndef TWI_KINDS_H
#define TWI_KINDS_H

#include "base/memory.h"
#include "device/dataset/dataset.h"
#include "tensor/tensor.h"

extern const twi_recipe_kind twi_source_kinds[], twi_order_kinds[], twi_shuffle_kinds[], twi_batch_kinds[],
    twi_function_kinds[];

/* The state of most kinds begins with the iteration over the recipe's argument 0. */
tw_status twi_begin_input(twi_iteration *it, tw_error *error);
void twi_end_input(twi_iteration *it);
static inline twi_iteration *twi_input(const twi_iteration *it)
{
    return *(twi_iteration **)it->state;
}

/* The data set that is argument 0; how many elements that has, and its element `index`. */
const twi_recipe *twi_input_recipe(const twi_recipe *recipe);
int64_t twi_count_same(const twi_recipe *recipe);
tw_status twi_at_same(const twi_recipe *recipe, int64_t index, tw_tensor **element, tw_error *error);
/* How many batches of that size so many elements make. */
static inline int64_t twi_count_batches(int64_t count, int64_t size, bool whole_only)
{
    return count < 0 || size < 1 ? count : count / size + (!whole_only && count % size);
}

/* Rows of elements, oldest first. */
typedef struct twi_rows {
    tw_tensor **items; /* [capacity][width] */
    int64_t first, count, capacity;
    int width;
} twi_rows;

bool twi_rows_push(twi_rows *rows, tw_tensor *const *element); /* takes its tensors; false when out of memory */
tw_tensor **twi_rows_at(const twi_rows *rows, int64_t i);
void twi_rows_drop(twi_rows *rows, int64_t count); /* the oldest */
void twi_rows_free(twi_rows *rows);

/* Copies all of `from` to elements `at` and on of `to`; strings, too. */
tw_status twi_put_elements(tw_tensor *to, int64_t at, const tw_tensor *from, tw_error *error);
/* Elements `at` and on, as many as the shape has. */
tw_status twi_take_elements(const tw_tensor *from, int64_t at, tw_shape shape, tw_tensor **to, tw_error *error);

/* Stacks the first `count` rows, one component after the other. */
tw_status twi_batch_rows(const twi_rows *rows, int64_t count, tw_tensor **element, tw_error *error);

/* A data set of these components of rows whose types are as of `like`; NULL when out of memory. */
tw_tensor *twi_recipe_of_rows(const twi_recipe *maker, const twi_recipe *like, tw_tensor **const *rows, int64_t count,
                              int first, int components);

/* Calls the recipe's function `which` with `given[count]` and what it captures. results[num_results of it]. */
tw_status twi_recipe_call(const twi_recipe *recipe, int which, tw_tensor *const *given, int count, tw_tensor **results,
                          tw_error *error);

#endif

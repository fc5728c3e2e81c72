/* variant.h - values that are no tensors: lists of tensors, as TensorFlow 2's loops keep them (TW_VARIANT).
 *
 * An element of that type is the address of a twi_tensor_list; NULL is the empty list. A list that two hold is not
 * changed any more: who wants to change it makes a copy. So a list is a value like others. Its items are the leaves of
 * a tree, whose parts copies share: what a change costs grows with the logarithm of a list's length, whoever else holds
 * it.
 *
 * Every tensor of that type is a scalar; the shape that plans know of such a value is that of its elements. What
 * TensorFlow has as an array of variants is a list of them, so that a list of lists and the array of its items are the
 * same. A ragged tensor is a list of its splits, the outermost first, and its values. */
#ifndef TWI_VARIANT_H
#define TWI_VARIANT_H

#include "tensor/tensor.h"

/* The shape of the elements of a list into which nobody has put any so far: any shape is still possible. That there are
 * several, or that nothing is known, is TW_UNKNOWN_SHAPE. */
#define TWI_NO_ELEMENTS TW_VALUE(tw_shape, -2, {0})

/* A part of a list's items. One that two have is not changed. */
typedef struct twi_tensor_items {
    atomic_int holders;
    void *below[16]; /* tensors, or on upper levels further parts; NULL: nobody has set what lies there */
} twi_tensor_items;

typedef struct twi_tensor_list {
    atomic_int holders;
    tw_shape wanted; /* by whoever made it: known in part */
    int64_t most;    /* elements that it may have; -1: any number */
    int64_t count;
    int splits; /* of a ragged tensor: its first so many items, of which there are no sums and zeros */
    int levels; /* of parts; 0: there is room for none */
    twi_tensor_items *items;
} twi_tensor_list;

twi_tensor_list *twi_tensor_list_create(int64_t count);       /* of items that are not set; NULL: memory has run out */
twi_tensor_list *twi_tensor_list_hold(twi_tensor_list *list); /* NULL is fine */
void twi_tensor_list_release(twi_tensor_list *list);          /* NULL is fine */
/* Item i, borrowed; NULL: nobody has set it. */
tw_tensor *twi_tensor_list_item(const twi_tensor_list *list, int64_t i);
/* The first item from i on that is set; as many as there are: none. */
int64_t twi_tensor_list_next(const twi_tensor_list *list, int64_t i);
/* Makes *list one that the caller alone holds; false: memory has run out. */
bool twi_tensor_list_own(twi_tensor_list **list);
/* The next two change a list that the caller alone holds; false: memory has run out. */
bool twi_tensor_list_resize(twi_tensor_list *list, int64_t count); /* new items are not set */
/* Puts a tensor, whose reference becomes the list's, or is let go, in the place of item i. */
bool twi_tensor_list_put(twi_tensor_list *list, int64_t i, tw_tensor *tensor);
/* The shape that all items which are set have together. */
tw_shape twi_tensor_list_shape(const twi_tensor_list *list);
/* What is known of a list that has elements of both. */
tw_shape twi_join_elements(tw_shape a, tw_shape b);

/* ---- values that own memory -------------------------------------------------------------------------------------- */

/* Strings and variants: each copy has its own, which is let go before it is overwritten. */
static inline bool twi_owns_memory(tw_dtype dtype)
{
    return dtype == TW_STRING || dtype == TW_VARIANT;
}

/* Of elements of such a type; false: memory has run out. */
bool twi_copy_owned(tw_dtype dtype, const void *from, void *to, size_t count);
void twi_free_owned(tw_dtype dtype, void *values, size_t count); /* leaves zeros */

#endif

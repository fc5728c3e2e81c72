/* variant.h - values that are no tensors: lists of tensors, as TensorFlow 2's loops keep them (TW_VARIANT).
 *
 * An element of that type is the address of a twi_tensor_list; NULL is the empty list. A list that two hold is not
 * changed any more: who wants to change it makes a copy, which shares the tensors in it. So a list is a value like
 * others. Lists that differ in length only share their items, too: so to push and to pop costs what the tensor costs,
 * whoever else holds the list.
 *
 * Every tensor of that type is a scalar; the shape that plans know of such a value is that of its elements. */
#ifndef TWI_VARIANT_H
#define TWI_VARIANT_H

#include "tensor/tensor.h"

/* The shape of the elements of a list into which nobody has put any so far: any shape is still possible. That there are
 * several, or that nothing is known, is TW_UNKNOWN_SHAPE. */
#define TWI_NO_ELEMENTS TW_VALUE(tw_shape, -2, {0})

/* The items of lists that are each other's beginnings. None that a list has is changed while there are two. */
typedef struct twi_tensor_items {
    atomic_int holders;
    atomic_llong used; /* by the longest of them; whoever raises this may set the next item */
    int64_t room;
    tw_tensor *items[]; /* [used] NULL: nobody has set it */
} twi_tensor_items;

typedef struct twi_tensor_list {
    atomic_int holders;
    tw_shape wanted; /* by whoever made it: known in part */
    int64_t most;    /* elements that it may have; -1: any number */
    int64_t count;
    twi_tensor_items *shared; /* NULL: there has been none */
    tw_tensor **items;        /* [count] the first of these */
} twi_tensor_list;

twi_tensor_list *twi_tensor_list_create(int64_t count);       /* of items that are not set; NULL: memory has run out */
twi_tensor_list *twi_tensor_list_hold(twi_tensor_list *list); /* NULL is fine */
void twi_tensor_list_release(twi_tensor_list *list);          /* NULL is fine */
/* Makes *list one that the caller alone holds; false: memory has run out. */
bool twi_tensor_list_own(twi_tensor_list **list);
/* Makes it so long; new items are not set. Of one that the caller alone holds. */
bool twi_tensor_list_resize(twi_tensor_list *list, int64_t count);
/* Puts a tensor, whose reference becomes the list's, in the place of item i. */
void twi_tensor_list_put(twi_tensor_list *list, int64_t i, tw_tensor *tensor);
/* Puts a tensor, whose reference becomes the list's if there was memory, behind the last item of *list; takes that
 * away, of a list that has one. *list becomes another one if somebody else holds it. False: memory has run out. */
bool twi_tensor_list_push(twi_tensor_list **list, tw_tensor *tensor);
bool twi_tensor_list_pop(twi_tensor_list **list);
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

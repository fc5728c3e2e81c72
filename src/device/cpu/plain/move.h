/* move.h - copies between arrays that are laid out differently: the one loop behind cutting, joining, padding,
 * transposing and repeating.
 * Lives here:  moves of elements of any type, clearing, numbers that say axes and sizes.
 * Never here:  arithmetic on elements. */
#ifndef TWI_CPU_MOVE_H
#define TWI_CPU_MOVE_H

#include "device/kernel.h"
#include "tensor/tensor.h" /* twi_integer_at() */

#include <string.h>

/* What is moved of elements of 16 bytes that own no memory. */
typedef struct twi_wide {
    uint64_t half[2];
} twi_wide;

enum { TWI_MOVE_RANK = 2 * TW_MAX_RANK };

/* What the kernels here move. Strings are copied, each into the output's own memory. */
#define TWI_MOVED_TYPES (TWI_STORED_TYPES | TWI_TYPE(TW_STRING))

/* Which element goes where: to[sum of k_i * to_i] = from[sum of k_i * from_i] for 0 <= k_i < size_i. Strides count
 * elements and may be 0 in `from` and negative in either. Start it with {0}: one element. */
typedef struct twi_move {
    int rank;
    struct twi_move_axis {
        int64_t size, from, to;
    } axes[TWI_MOVE_RANK];
} twi_move;

/* The next axis, outermost first. */
static inline void twi_move_axis(twi_move *move, int64_t size, int64_t from, int64_t to)
{
    move->axes[move->rank++] = (struct twi_move_axis){size, from, to};
}

/* Moves elements of a type, by the run's team where there are many. `from` and `to` point at element k = 0. Fails only
 * for strings, when memory runs out. */
tw_status twi_move_elements(const twi_run *r, const twi_move *move, tw_dtype dtype, const void *from, void *to);

/* The same element everywhere. */
tw_status twi_fill_elements(const twi_run *r, int64_t count, tw_dtype dtype, const void *value, void *to);

/* Zeros; empty strings. */
tw_status twi_clear_elements(const twi_run *r, int64_t count, tw_dtype dtype, void *to);

/* `count` elements that lie side by side in both places. False when memory for strings runs out. */
bool twi_copy_elements(int64_t count, tw_dtype dtype, const void *from, void *to);

/* Address of element i. */
static inline const void *twi_element(const void *data, tw_dtype dtype, int64_t i)
{
    return (const char *)data + i * (int64_t)tw_dtype_size(dtype);
}

static inline void *twi_element_of_output(void *data, tw_dtype dtype, int64_t i)
{
    return (char *)data + i * (int64_t)tw_dtype_size(dtype);
}

/* Slices of equal size: what takes them one by one need not ask for each how long its elements are. */
typedef struct twi_slices {
    tw_dtype dtype;
    int64_t elements;   /* of one, */
    size_t size, bytes; /* the bytes of an element and of all of these */
    const char *from;
    char *to;
} twi_slices;

static inline twi_slices twi_slices_of(tw_dtype dtype, int64_t elements, const void *from, void *to)
{
    size_t size = tw_dtype_size(dtype);
    return (twi_slices){dtype, elements, size, (size_t)elements * size, from, to};
}

/* What begins at one element becomes what begins at another. False: memory for a string has run out. */
static inline bool twi_copy_slice(const twi_slices *s, int64_t from, int64_t to)
{
    const char *source = s->from + (size_t)from * s->size;
    char *target = s->to + (size_t)to * s->size;
    if (s->dtype == TW_STRING)
        return twi_copy_elements(s->elements, s->dtype, source, target);
    if (s->bytes == 4) /* a number takes no call */
        memcpy(target, source, 4);
    else if (s->bytes == 8)
        memcpy(target, source, 8);
    else
        memcpy(target, source, s->bytes);
    return true;
}

/* strides[i]: how many elements apart neighbours along axis i of a row-major array lie. */
void twi_row_major(tw_shape shape, int64_t strides[TW_MAX_RANK]);

/* Number k of an integer input. */
static inline int64_t twi_input_int(const twi_run *r, int input, int64_t k)
{
    return twi_integer_at(r->input_operands[input].dtype, r->inputs[input], k);
}

/* Number k of an int32 or int64 output. */
static inline void twi_output_int(const twi_run *r, int output, int64_t k, int64_t value)
{
    if (r->output_operands[output].dtype == TW_INT64)
        ((int64_t *)r->outputs[output])[k] = value;
    else
        ((int32_t *)r->outputs[output])[k] = (int32_t)value;
}

/* Input `input` as an axis of something with `rank` axes, counted from the front. */
tw_status twi_input_axis(const twi_run *r, int input, int64_t k, int rank, int *axis);

/* Where element i of a row-major array lies, as text: "[2,0]". */
char *twi_position_text(tw_shape shape, int64_t i, char *text, size_t size);

/* Product of the dimensions from `first` to before `end`. */
static inline int64_t twi_elements_between(tw_shape shape, int first, int end)
{
    int64_t elements = 1;
    for (int i = first; i < end; i++)
        elements *= shape.dims[i];
    return elements;
}

#endif

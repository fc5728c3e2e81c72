/* shape.c - shapes, known or partly known. */
#include "base/status.h"

#include <stdio.h>
#include <string.h>
#include <tower/tensor.h>

/* A caller's mistake, which has to stay one: more dimensions than there is room for. */
static bool is_too_deep(tw_shape shape)
{
    return shape.rank > TW_MAX_RANK;
}

bool tw_shape_is_known(tw_shape shape)
{
    if (is_too_deep(shape))
        return false;
    for (int i = 0; i < shape.rank; i++)
        if (shape.dims[i] < 0)
            return false;
    return shape.rank >= 0;
}

bool tw_shape_equal(tw_shape a, tw_shape b)
{
    if (a.rank != b.rank || is_too_deep(a))
        return false;
    for (int i = 0; i < a.rank; i++)
        if (a.dims[i] != b.dims[i])
            return false;
    return true;
}

bool tw_shape_compatible(tw_shape a, tw_shape b)
{
    if (a.rank < 0 || b.rank < 0)
        return true;
    if (a.rank != b.rank || is_too_deep(a))
        return false;
    for (int i = 0; i < a.rank; i++)
        if (a.dims[i] >= 0 && b.dims[i] >= 0 && a.dims[i] != b.dims[i])
            return false;
    return true;
}

/* Whose bytes can still be counted: an element has 16 at most. */
#define MOST_ELEMENTS (INT64_MAX / 16)

int64_t tw_shape_elements(tw_shape shape)
{
    if (!tw_shape_is_known(shape))
        return -1;
    int64_t elements = 1;
    bool empty = false;
    for (int i = 0; i < shape.rank; i++) {
        empty = empty || shape.dims[i] == 0;
        if (shape.dims[i] && (__builtin_mul_overflow(elements, shape.dims[i], &elements) || elements > MOST_ELEMENTS))
            return -1; /* also where an axis is empty: so the steps of axes can be counted without fear */
    }
    return empty ? 0 : elements;
}

char *tw_shape_text(tw_shape shape, char *text, size_t size)
{
    TWI_NEED_OR(text, NULL);
    if (shape.rank < 0) {
        snprintf(text, size, "<unknown>");
        return text;
    }
    if (is_too_deep(shape)) {
        snprintf(text, size, "<%d dimensions>", shape.rank);
        return text;
    }
    char buffer[TW_MAX_RANK * 22 + 3] = "[";
    int used = 1;
    for (int i = 0; i < shape.rank; i++)
        used += shape.dims[i] < 0 ? sprintf(buffer + used, "%s?", i ? "," : "")
                                  : sprintf(buffer + used, "%s%lld", i ? "," : "", (long long)shape.dims[i]);
    snprintf(text, size, "%s]", buffer);
    return text;
}

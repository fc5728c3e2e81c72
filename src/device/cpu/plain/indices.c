/* indices.c - see indices.h. */
#include "device/cpu/plain/indices.h"

#include "device/cpu/plain/move.h"

#include <stdio.h>

tw_status twi_indices_check(const twi_run *r, int input, int64_t limit)
{
    char text[128];
    for (int64_t i = 0; i < r->input_operands[input].elements; i++) {
        int64_t index = twi_input_int(r, input, i);
        if (index < 0 || index >= limit)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': indices%s = %lld is not in [0, %lld)", r->node,
                            twi_position_text(r->input_operands[input].shape, i, text, sizeof text), (long long)index,
                            (long long)limit);
    }
    return TW_OK;
}

static tw_status fail_place(const twi_run *r, int input, tw_shape array, const twi_places *places, int64_t row)
{
    tw_shape rows = r->input_operands[input].shape;
    char place[256] = "", text[2][128];
    size_t length = 0;
    rows.rank--;
    for (int k = 0; k < places->depth; k++)
        length += (size_t)snprintf(place + length, sizeof place - length, "%s%lld", k ? "," : "",
                                   (long long)twi_input_int(r, input, row * places->depth + k));
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': indices%s = [%s] does not index into shape %s", r->node,
                    twi_position_text(rows, row, text[0], sizeof text[0]), place,
                    tw_shape_text(array, text[1], sizeof text[1]));
}

tw_status twi_places_check(const twi_run *r, int input, tw_shape array, twi_places *places)
{
    tw_shape indices = r->input_operands[input].shape;
    int last = indices.rank - 1;
    if (last < 0 || indices.dims[last] > array.rank)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': the last axis of the indices is longer than %d, the axes of "
                        "the array",
                        r->node, array.rank);
    places->depth = (int)indices.dims[last];
    places->count = twi_elements_between(indices, 0, last);
    places->slice = twi_elements_between(array, places->depth, array.rank);
    twi_row_major(array, places->strides);
    for (int64_t row = 0; row < places->count && places->depth; row++)
        for (int k = 0; k < places->depth; k++) {
            int64_t index = twi_input_int(r, input, row * places->depth + k);
            if (index < 0 || index >= array.dims[k])
                return fail_place(r, input, array, places, row);
        }
    return TW_OK;
}

int64_t twi_places_offset(const twi_run *r, int input, const twi_places *places, int64_t row)
{
    int64_t offset = 0;
    for (int k = 0; k < places->depth; k++)
        offset += twi_input_int(r, input, row * places->depth + k) * places->strides[k];
    return offset;
}

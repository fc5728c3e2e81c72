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

static tw_status lay_places(const twi_run *r, int input, tw_shape array, twi_places *places)
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
    places->ignores = false;
    twi_row_major(array, places->strides);
    return TW_OK;
}

tw_status twi_places_check(const twi_run *r, int input, tw_shape array, twi_places *places)
{
    tw_status status = lay_places(r, input, array, places);
    if (status != TW_OK)
        return status;
    for (int64_t row = 0; row < places->count && places->depth; row++)
        for (int k = 0; k < places->depth; k++) {
            int64_t index = twi_input_int(r, input, row * places->depth + k);
            if (index < 0 || index >= array.dims[k])
                return fail_place(r, input, array, places, row);
        }
    return TW_OK;
}

tw_status twi_places_prepare(twi_prepare *p)
{
    const char *policy = twi_attr_string(p->attrs, "bad_indices_policy", "");
    bool ignores = strcmp(policy, "IGNORE") == 0;
    if (!ignores && *policy && strcmp(policy, "DEFAULT") != 0 && strcmp(policy, "ERROR") != 0)
        return twi_fail(p->error, TW_INVALID_ARGUMENT,
                        "%s '%s': bad_indices_policy is '%s', expected DEFAULT, ERROR or IGNORE", p->op, p->node,
                        policy);
    p->state = (void *)(intptr_t)ignores;
    return TW_OK;
}

tw_status twi_places_check_by_policy(const twi_run *r, int input, tw_shape array, twi_places *places)
{
    if (!r->state)
        return twi_places_check(r, input, array, places);
    tw_status status = lay_places(r, input, array, places);
    places->ignores = true;
    places->array = array;
    return status;
}

int64_t twi_places_offset(const twi_run *r, int input, const twi_places *places, int64_t row)
{
    int64_t offset = 0;
    for (int k = 0; k < places->depth; k++) {
        int64_t index = twi_input_int(r, input, row * places->depth + k);
        if (places->ignores && (index < 0 || index >= places->array.dims[k]))
            return -1;
        offset += index * places->strides[k];
    }
    return offset;
}

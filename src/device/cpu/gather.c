/* gather.c - reading and writing by index: Gather, ScatterNd, segments, DynamicStitch, OneHot, TopK. */
#include "device/cpu/move.h"
#include "device/cpu/typed.h"

#include <string.h>

static tw_status bad_index(const twi_run *r, int64_t i, int64_t index, int64_t limit)
{
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "indices[%lld] = %lld is not in [0, %lld)", (long long)i,
                    (long long)index, (long long)limit);
}

/* `width` elements, from element `from_at` on to element `to_at` on. */
static tw_status copy_row(const twi_run *r, tw_dtype dtype, const void *from, int64_t from_at, void *to, int64_t to_at,
                          int64_t width)
{
    twi_move move = {0};
    twi_move_axis(&move, width, 1, 1);
    return twi_move_elements(r, &move, dtype, twi_element(from, dtype, from_at),
                             twi_element_of_output(to, dtype, to_at));
}

static tw_status prepare_gather(twi_prepare *p)
{
    int64_t batch = twi_attr_int(p->attrs, "batch_dims", 0);
    p->state = (void *)(intptr_t)(batch < 0 ? batch + p->inputs[1].shape.rank : batch);
    return TW_OK;
}

/* params [batch, outer, size, inner], indices [batch, n], output [batch, outer, n, inner] */
static tw_status run_gather(const twi_run *r)
{
    const twi_operand *params = &r->input_operands[0], *indices = &r->input_operands[1];
    int axis = 0, batch_axes = (int)(intptr_t)r->state;
    if (r->num_inputs > 2) {
        tw_status status = twi_input_axis(r, 2, 0, params->shape.rank, &axis);
        if (status != TW_OK)
            return status;
    }
    int64_t batch = twi_elements_between(params->shape, 0, batch_axes);
    int64_t outer = twi_elements_between(params->shape, batch_axes, axis), size = params->shape.dims[axis];
    int64_t inner = twi_elements_between(params->shape, axis + 1, params->shape.rank);
    int64_t n = batch ? indices->elements / batch : 0, at = 0;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t o = 0; o < outer; o++)
            for (int64_t i = 0; i < n; i++, at++) {
                int64_t index = twi_input_int(r, 1, b * n + i);
                if (index < 0 || index >= size)
                    return bad_index(r, b * n + i, index, size);
                tw_status status = copy_row(r, params->dtype, r->inputs[0], ((b * outer + o) * size + index) * inner,
                                            r->outputs[0], at * inner, inner);
                if (status != TW_OK)
                    return status;
            }
    return TW_OK;
}

/* Rows of `table` named by the last axis of input `k`, `depth` numbers each. */
typedef struct places {
    int64_t count, depth, width; /* width: elements of a row */
    tw_shape table;
} places;

static places lay_places(tw_shape indices, tw_shape table)
{
    places p = {.count = 1, .depth = indices.dims[indices.rank - 1], .width = 1, .table = table};
    for (int i = 0; i < indices.rank - 1; i++)
        p.count *= indices.dims[i];
    for (int i = (int)p.depth; i < table.rank; i++)
        p.width *= table.dims[i];
    return p;
}

/* Where row number i lies, in rows; -1 and an error if outside. */
static int64_t find_place(const twi_run *r, int k, const places *p, int64_t i)
{
    int64_t row = 0;
    for (int d = 0; d < p->depth; d++) {
        int64_t index = twi_input_int(r, k, i * p->depth + d);
        if (index < 0 || index >= p->table.dims[d]) {
            char text[128];
            twi_fail(r->error, TW_INVALID_ARGUMENT, "indices[%lld] = [..%lld..] does not index into shape %s",
                     (long long)i, (long long)index, tw_shape_text(p->table, text, sizeof text));
            return -1;
        }
        row = row * p->table.dims[d] + index;
    }
    return row;
}

static tw_status run_gather_nd(const twi_run *r)
{
    const twi_operand *params = &r->input_operands[0];
    places p = lay_places(r->input_operands[1].shape, params->shape);
    for (int64_t i = 0; i < p.count; i++) {
        int64_t row = find_place(r, 1, &p, i);
        if (row < 0)
            return TW_INVALID_ARGUMENT;
        tw_status status = copy_row(r, params->dtype, r->inputs[0], row * p.width, r->outputs[0], i * p.width, p.width);
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

/* Rows go where their indices say; of equal indices the last wins, what no index names is zero. */
static tw_status run_dynamic_stitch(const twi_run *r)
{
    const twi_operand *y = &r->output_operands[0];
    int n = r->num_inputs / 2;
    int64_t rows = y->shape.dims[0], width = rows ? y->elements / rows : 0;
    tw_status status = twi_clear_elements(r, y->elements, y->dtype, r->outputs[0]);
    for (int i = 0; i < n; i++)
        for (int64_t k = 0; k < r->input_operands[i].elements && status == TW_OK; k++) {
            int64_t to = twi_input_int(r, i, k);
            if (to < 0 || to >= rows)
                return twi_fail(r->error, TW_INVALID_ARGUMENT, "indices[%lld] = %lld is out of range [0, %lld)",
                                (long long)k, (long long)to, (long long)rows);
            status = copy_row(r, y->dtype, r->inputs[n + i], k * width, r->outputs[0], to * width, width);
        }
    return status;
}

static tw_status prepare_one_hot(twi_prepare *p)
{
    int64_t axis = twi_attr_int(p->attrs, "axis", -1);
    p->state = (void *)(intptr_t)(axis < 0 ? axis + p->outputs[0].shape.rank : axis);
    return TW_OK;
}

/* Indices outside of [0, depth) make a row that is off everywhere. */
static tw_status run_one_hot(const twi_run *r)
{
    const twi_operand *y = &r->output_operands[0];
    int axis = (int)(intptr_t)r->state;
    int64_t depth = y->shape.dims[axis], inner = twi_elements_between(y->shape, axis + 1, y->shape.rank);
    tw_status status = twi_fill_elements(r, y->elements, y->dtype, r->inputs[3], r->outputs[0]);
    for (int64_t i = 0; i < r->input_operands[0].elements && status == TW_OK; i++) {
        int64_t at = twi_input_int(r, 0, i);
        if (at >= 0 && at < depth)
            status =
                copy_row(r, y->dtype, r->inputs[2], 0, r->outputs[0], (i / inner * depth + at) * inner + i % inner, 1);
    }
    return status;
}

#define BODY "device/cpu/gather.inl"
#include "device/cpu/for_floats.h"
#include "device/cpu/for_integers.h"
#undef BODY

TWI_WIDENED(scatter_nd)
TWI_WIDENED(unsorted_segment_sum)
TWI_WIDENED(top_k)

const twi_kernel twi_cpu_gather_kernels[] = {
    {"Gather", "plain", TWI_MOVED_TYPES, prepare_gather, run_gather, NULL},
    {"GatherV2", "plain", TWI_MOVED_TYPES, prepare_gather, run_gather, NULL},
    {"GatherNd", "plain", TWI_MOVED_TYPES, NULL, run_gather_nd, NULL},
    {"DynamicStitch", "plain", TWI_MOVED_TYPES, NULL, run_dynamic_stitch, NULL},
    {"OneHot", "plain", TWI_MOVED_TYPES, prepare_one_hot, run_one_hot, NULL},
    TWI_FLOAT_ROWS("ScatterNd", twi_prepare_typed, scatter_nd, NULL),
    TWI_INTEGER_ROWS("ScatterNd", twi_prepare_typed, scatter_nd, NULL),
    TWI_FLOAT_ROWS("UnsortedSegmentSum", twi_prepare_typed, unsorted_segment_sum, NULL),
    TWI_INTEGER_ROWS("UnsortedSegmentSum", twi_prepare_typed, unsorted_segment_sum, NULL),
    TWI_FLOAT_ROWS("TopKV2", twi_prepare_typed, top_k, NULL),
    TWI_INTEGER_ROWS("TopKV2", twi_prepare_typed, top_k, NULL),
    {0},
};

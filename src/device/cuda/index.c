/* index.c - rows of what numbers name: gathering, one-hot vectors, sums of rows where they point; and of the bands of
 * matrices. */
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"

#define FLOATS (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16))
#define ADDED (FLOATS | TWI_TYPE(TW_INT32) | TWI_TYPE(TW_INT64))

/* Each number is looked at by a warp for each other. */
enum { MOST_ADDED = 1 << 17 };

static bool is_wide(const twi_operand *numbers)
{
    return numbers->dtype == TW_INT64;
}

static int64_t product(tw_shape shape, int begin, int end)
{
    int64_t n = 1;
    for (int i = begin; i < end; i++)
        n *= shape.dims[i];
    return n;
}

/* Numbers of 32 or 64 bits name what has so many elements at most, of a type that cards move. */
static tw_status accepts_numbers(const twi_prepare *p, int numbers, const twi_operand *moved)
{
    tw_dtype type = p->inputs[numbers].dtype;
    if (type != TW_INT32 && type != TW_INT64)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s on a GPU takes indices of int32 or int64, got %s", p->op,
                        tw_dtype_name(type));
    if (!(TWI_CUDA_MOVED_TYPES & TWI_TYPE(moved->dtype)))
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s of %s is not for a GPU", p->op, tw_dtype_name(moved->dtype));
    if (moved->elements > INT32_MAX)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s on a GPU makes 2^31 elements at most, got %lld", p->op,
                        (long long)moved->elements);
    return TW_OK;
}

/* ---- gathering --------------------------------------------------------------------------------------------------- */

static tw_status accepts_gather(const twi_prepare *p)
{
    if (p->num_inputs > 2 && !p->inputs[2].value)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s on a GPU needs a constant axis", p->op);
    return accepts_numbers(p, 1, &p->outputs[0]);
}

static tw_status prepare_gather(twi_prepare *p)
{
    tw_shape from = p->inputs[0].shape, numbers = p->inputs[1].shape;
    int64_t axis = p->num_inputs > 2 ? (int64_t)tw_tensor_value(p->inputs[2].value, 0) : 0;
    int batch = (int)twi_attr_int(p->attrs, "batch_dims", 0);
    batch += batch < 0 ? numbers.rank : 0;
    axis += axis < 0 ? from.rank : 0;
    axis = p->num_inputs > 2 ? axis : batch;
    twi_cuda_picking g = {.batch = product(from, 0, batch),
                          .outer = product(from, batch, (int)axis),
                          .rows = from.dims[axis],
                          .picked = product(numbers, batch, numbers.rank)};
    g.row_bytes = product(from, (int)axis + 1, from.rank) * (int64_t)tw_dtype_size(p->outputs[0].dtype);
    return twi_keep(p, &g, sizeof g);
}

static tw_status run_gather(const twi_run *r)
{
    if (r->output_operands[0].elements == 0)
        return TW_OK;
    return TWI_LAUNCH(r, twi_cuda_gather(r->stream, r->state, r->inputs[0], is_wide(&r->input_operands[1]),
                                         r->inputs[1], r->outputs[0]));
}

/* ---- one-hot vectors --------------------------------------------------------------------------------------------- */

static tw_status accepts_one_hot(const twi_prepare *p)
{
    return accepts_numbers(p, 0, &p->outputs[0]);
}

static tw_status run_one_hot(const twi_run *r)
{
    tw_shape numbers = r->input_operands[0].shape, out = r->output_operands[0].shape;
    int axis = *(const int *)r->state;
    return TWI_LAUNCH(r, twi_cuda_one_hot(r->stream, (int)tw_dtype_size(r->output_operands[0].dtype),
                                          product(numbers, 0, axis), out.dims[axis],
                                          product(numbers, axis, numbers.rank), is_wide(&r->input_operands[0]),
                                          r->inputs[0], r->inputs[2], r->inputs[3], r->outputs[0]));
}

static tw_status prepare_one_hot(twi_prepare *p)
{
    int axis = (int)twi_attr_int(p->attrs, "axis", -1);
    axis = axis < 0 ? p->inputs[0].shape.rank : axis;
    return twi_keep(p, &axis, sizeof axis);
}

/* ---- bands ------------------------------------------------------------------------------------------------------- */

static tw_status accepts_band(const twi_prepare *p)
{
    return accepts_numbers(p, 1, &p->outputs[0]);
}

static tw_status prepare_band(twi_prepare *p)
{
    p->can_overwrite[0] = true;
    return TW_OK;
}

static tw_status run_band(const twi_run *r)
{
    const twi_operand *x = &r->input_operands[0];
    int64_t rows = x->shape.dims[x->shape.rank - 2], columns = x->shape.dims[x->shape.rank - 1];
    if (x->elements == 0)
        return TW_OK;
    return TWI_LAUNCH(r, twi_cuda_band(r->stream, (int)tw_dtype_size(x->dtype), x->elements / (rows * columns), rows,
                                       columns, is_wide(&r->input_operands[1]), r->inputs[1], r->inputs[2],
                                       r->inputs[0], r->outputs[0]));
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static tw_status accepts_sums(const twi_prepare *p, const twi_operand *to)
{
    if (!(ADDED & TWI_TYPE(to->dtype)))
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s of %s is not for a GPU", p->op, tw_dtype_name(to->dtype));
    if (p->inputs[1].elements > MOST_ADDED)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s on a GPU adds up %d rows at most, got %lld", p->op, MOST_ADDED,
                        (long long)p->inputs[1].elements);
    return accepts_numbers(p, 1, to);
}

static tw_status accepts_segments(const twi_prepare *p)
{
    return accepts_sums(p, &p->outputs[0]);
}

static tw_status run_segments(const twi_run *r)
{
    const twi_operand *sums = &r->output_operands[0], *numbers = &r->input_operands[1];
    int64_t rows = sums->shape.dims[0];
    if (sums->elements == 0)
        return TW_OK;
    tw_status status = TWI_LAUNCH(r, cudaMemsetAsync(r->outputs[0], 0, sums->bytes, r->stream));
    if (status != TW_OK)
        return status;
    return TWI_LAUNCH(r,
                      twi_cuda_add_rows(r->stream, sums->dtype, false, numbers->elements, rows, sums->elements / rows,
                                        is_wide(numbers), r->inputs[1], r->inputs[0], r->outputs[0]));
}

/* Into a variable. */
static tw_status accepts_scatter(const twi_prepare *p)
{
    if (p->inputs[2].shape.rank == 0) /* it would stand for all */
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s on a GPU takes an update for each row", p->op);
    if (p->inputs[0].resource && p->inputs[0].resource->dtype != p->inputs[2].dtype)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': variable '%s' is %s, what is added is %s", p->op,
                        p->node, p->inputs[0].resource->name, tw_dtype_name(p->inputs[0].resource->dtype),
                        tw_dtype_name(p->inputs[2].dtype));
    return accepts_sums(p, &p->inputs[2]);
}

static tw_status run_scatter(const twi_run *r, bool subtracts)
{
    const twi_operand *numbers = &r->input_operands[1], *updates = &r->input_operands[2];
    if (updates->elements == 0)
        return TW_OK;
    return TWI_LAUNCH(r, twi_cuda_add_rows(r->stream, updates->dtype, subtracts, numbers->elements,
                                           r->input_operands[0].shape.dims[0], updates->elements / numbers->elements,
                                           is_wide(numbers), r->inputs[1], r->inputs[2], (void *)r->inputs[0]));
}

static tw_status run_scatter_add(const twi_run *r)
{
    return run_scatter(r, false);
}

static tw_status run_scatter_subtract(const twi_run *r)
{
    return run_scatter(r, true);
}

/* Of several types of a node the first in its attributes may be that of the numbers: accepts() asks for the right one.
 */
const twi_kernel twi_cuda_index_kernels[] = {
    {"GatherV2", "cuda", 0, prepare_gather, run_gather, twi_free, .accepts = accepts_gather},
    {"Gather", "cuda", 0, prepare_gather, run_gather, twi_free, .accepts = accepts_gather},
    {"ResourceGather", "cuda", 0, prepare_gather, run_gather, twi_free, .accepts = accepts_gather},
    {"OneHot", "cuda", 0, prepare_one_hot, run_one_hot, twi_free, .accepts = accepts_one_hot},
    {"MatrixBandPart", "cuda", 0, prepare_band, run_band, .accepts = accepts_band},
    {"UnsortedSegmentSum", "cuda", 0, NULL, run_segments, .accepts = accepts_segments},
    {"ResourceScatterAdd", "cuda", 0, NULL, run_scatter_add, .accepts = accepts_scatter},
    {"ResourceScatterSub", "cuda", 0, NULL, run_scatter_subtract, .accepts = accepts_scatter},
    {0},
};

/* array.c - rows of values that are passed on, made of nothing, cut, joined, turned and repeated.
 *
 * What says sizes and axes must be known when the plan is made: when it runs it lies on the card. */
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"
#include "tensor/tensor.h"

/* What a GPU moves: anything but strings, which lie on the host alone. */
#define MOVED (TWI_NUMBER_TYPES | TWI_TYPE(TW_BOOL))

static tw_status run_nothing(const twi_run *r)
{
    (void)r;
    return TW_OK;
}

static int size_of(const twi_operand *operand)
{
    return (int)tw_dtype_size(operand->dtype);
}

/* strides[i]: how many elements apart neighbours along axis i of a row-major array lie. */
static void row_major(tw_shape shape, int64_t strides[TW_MAX_RANK])
{
    int64_t step = 1;
    for (int i = shape.rank - 1; i >= 0; i--) {
        strides[i] = step;
        step *= shape.dims[i];
    }
}

static void axis_of(twi_cuda_move *move, int64_t size, int64_t from, int64_t to)
{
    move->size[move->rank] = size;
    move->from[move->rank] = from;
    move->to[move->rank++] = to;
}

/* ---- one move from input 0 to output 0 ------------------------------------------------------------------------------ */

typedef struct moved {
    twi_cuda_move move;
    int64_t from;      /* the element that the move begins at */
} moved;

static tw_status keep(twi_prepare *p, moved m)
{
    moved *state = twi_alloc(sizeof *state);
    if (!state)
        return twi_fail_memory(p->error, p->node);
    *state = m;
    p->state = state;
    return TW_OK;
}

static tw_status run_move(const twi_run *r)
{
    const moved *m = r->state;
    int size = size_of(&r->output_operands[0]);
    if (r->output_operands[0].elements == 0)
        return TW_OK;
    return TWI_LAUNCH(r, twi_cuda_move_run(r->stream, size, &m->move, (const char *)r->inputs[0] + m->from * size,
                                           r->outputs[0]));
}

static tw_status needs_constant(const twi_prepare *p, int input)
{
    return p->inputs[input].value ? TW_OK
                                  : twi_fail(p->error, TW_UNIMPLEMENTED, "%s on a GPU needs a constant input %d", p->op,
                                             input);
}

static tw_status prepare_transpose(twi_prepare *p)
{
    tw_shape in = p->inputs[0].shape, out = p->outputs[0].shape;
    int64_t from[TW_MAX_RANK], to[TW_MAX_RANK];
    moved m = {0};
    tw_status status = needs_constant(p, 1);
    row_major(in, from);
    row_major(out, to);
    for (int i = 0; i < out.rank && status == TW_OK; i++) {
        int64_t axis = twi_tensor_int(p->inputs[1].value, i);
        axis += axis < 0 ? in.rank : 0;
        if (axis < 0 || axis >= in.rank)
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "'%s': %lld is no axis", p->node, (long long)axis);
        axis_of(&m.move, out.dims[i], from[axis], to[i]);
    }
    return status == TW_OK ? keep(p, m) : status;
}

/* The output's axes are the input's, each as often as it fits in. */
static tw_status prepare_tile(twi_prepare *p)
{
    tw_shape in = p->inputs[0].shape, out = p->outputs[0].shape;
    int64_t from[TW_MAX_RANK], to[TW_MAX_RANK];
    moved m = {0};
    row_major(in, from);
    row_major(out, to);
    for (int i = 0; i < in.rank && p->outputs[0].elements; i++) {
        axis_of(&m.move, out.dims[i] / in.dims[i], 0, in.dims[i] * to[i]);
        axis_of(&m.move, in.dims[i], from[i], to[i]);
    }
    return keep(p, m);
}

static tw_status prepare_broadcast_to(twi_prepare *p)
{
    tw_shape in = p->inputs[0].shape, out = p->outputs[0].shape;
    int64_t from[TW_MAX_RANK], to[TW_MAX_RANK];
    int added = out.rank - in.rank;
    moved m = {0};
    row_major(in, from);
    row_major(out, to);
    for (int i = 0; i < out.rank; i++)
        axis_of(&m.move, out.dims[i], i < added || in.dims[i - added] == 1 ? 0 : from[i - added], to[i]);
    return keep(p, m);
}

static tw_status prepare_slice(twi_prepare *p)
{
    tw_shape in = p->inputs[0].shape, out = p->outputs[0].shape;
    int64_t from[TW_MAX_RANK], to[TW_MAX_RANK];
    moved m = {0};
    tw_status status = needs_constant(p, 1);
    row_major(in, from);
    row_major(out, to);
    for (int i = 0; i < out.rank && status == TW_OK; i++) {
        int64_t begin = twi_tensor_int(p->inputs[1].value, i);
        if (begin < 0 || begin + out.dims[i] > in.dims[i])
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "'%s': axis %d of size %lld has no part from %lld on", p->node,
                            i, (long long)in.dims[i], (long long)begin);
        axis_of(&m.move, out.dims[i], from[i], to[i]);
        m.from += begin * from[i];
    }
    return status == TW_OK ? keep(p, m) : status;
}

/* One element everywhere: Fill's is input 1. */
static tw_status run_fill(const twi_run *r)
{
    const twi_operand *out = &r->output_operands[0];
    twi_cuda_move move = {.rank = 1, .size = {out->elements}, .from = {0}, .to = {1}};
    return TWI_LAUNCH(r, twi_cuda_move_run(r->stream, size_of(out), &move, r->inputs[1], r->outputs[0]));
}

static tw_status run_zeros_like(const twi_run *r)
{
    return TWI_LAUNCH(r, cudaMemsetAsync(r->outputs[0], 0, r->output_operands[0].bytes, r->stream));
}

/* ---- joining: inputs side by side along an axis -------------------------------------------------------------------- */

typedef struct joined {
    int count;              /* of inputs to join */
    int64_t before, inner;  /* the output is [before, inner], each row the inputs' rows one after another */
} joined;

static tw_status keep_join(twi_prepare *p, int count, int64_t axis)
{
    tw_shape out = p->outputs[0].shape;
    joined *j = twi_alloc(sizeof *j);
    if (!j)
        return twi_fail_memory(p->error, p->node);
    *j = (joined){count, 1, 1};
    axis += axis < 0 ? out.rank : 0;
    for (int i = 0; i < out.rank; i++)
        *(i < axis ? &j->before : &j->inner) *= out.dims[i];
    p->state = j;
    return TW_OK;
}

static tw_status prepare_concat(twi_prepare *p)
{
    int count = p->num_inputs - 1;
    tw_status status = needs_constant(p, count);
    return status == TW_OK ? keep_join(p, count, twi_tensor_int(p->inputs[count].value, 0)) : status;
}

static tw_status prepare_pack(twi_prepare *p)
{
    return keep_join(p, p->num_inputs, twi_attr_int(p->attrs, "axis", 0));
}

static tw_status run_join(const twi_run *r)
{
    const joined *j = r->state;
    tw_status status = TW_OK;
    int64_t size = size_of(&r->output_operands[0]), at = 0;
    for (int i = 0; i < j->count && j->before && status == TW_OK; i++) {
        int64_t run = r->input_operands[i].elements / j->before;
        twi_cuda_move move = {.rank = 2, .size = {j->before, run}, .from = {run, 1}, .to = {j->inner, 1}};
        status = TWI_LAUNCH(r, twi_cuda_move_run(r->stream, (int)size, &move, r->inputs[i],
                                                 (char *)r->outputs[0] + at * size));
        at += run;
    }
    return status;
}

const twi_kernel twi_cuda_array_kernels[] = {
    /* never run: the plan writes constants and feeds, and passes buffers on */
    {"Const", "cuda", MOVED},
    {"Placeholder", "cuda", MOVED},
    {"PlaceholderV2", "cuda", MOVED},
    {"PlaceholderWithDefault", "cuda", MOVED},
    {"Identity", "cuda", MOVED},
    {"StopGradient", "cuda", MOVED},
    {"PreventGradient", "cuda", MOVED},
    {"Reshape", "cuda", MOVED},
    {"ExpandDims", "cuda", MOVED},
    {"Squeeze", "cuda", MOVED},

    {"NoOp", "cuda", 0, NULL, run_nothing},
    {"Transpose", "cuda", MOVED, prepare_transpose, run_move, twi_free},
    {"Tile", "cuda", MOVED, prepare_tile, run_move, twi_free},
    {"BroadcastTo", "cuda", MOVED, prepare_broadcast_to, run_move, twi_free},
    {"Slice", "cuda", MOVED, prepare_slice, run_move, twi_free},
    {"Fill", "cuda", MOVED, NULL, run_fill},
    {"ZerosLike", "cuda", MOVED, NULL, run_zeros_like},
    {"ConcatV2", "cuda", MOVED, prepare_concat, run_join, twi_free},
    {"Pack", "cuda", MOVED, prepare_pack, run_join, twi_free},
    {0},
};

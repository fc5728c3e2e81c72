/* array.c - rows of values that are passed on, made of nothing, cut, joined, padded, transposed and repeated.
 *
 * What says sizes and axes must be known when the plan is made: when it runs it lies on the card. */
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"
#include "tensor/strided.h"
#include "tensor/tensor.h"

/* What a GPU moves: anything but strings, which lie on the host alone. */
#define MOVED TWI_CUDA_MOVED_TYPES

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

/* ---- one move from input 0 to output 0 --------------------------------------------------------------------------- */

typedef struct moved {
    twi_cuda_move move;
    int64_t from, to;  /* the elements that the move begins at */
} moved;

static tw_status keep(twi_prepare *p, moved m)
{
    return twi_keep(p, &m, sizeof m);
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

/* Input 1 says axes or sizes; or input 0, input 2, inputs 1 to 3, the last. */
static tw_status accepts_second(const twi_prepare *p)
{
    return needs_constant(p, 1);
}

static tw_status accepts_first(const twi_prepare *p)
{
    return needs_constant(p, 0);
}

static tw_status accepts_third(const twi_prepare *p)
{
    return needs_constant(p, 2);
}

static tw_status accepts_last(const twi_prepare *p)
{
    return needs_constant(p, p->num_inputs - 1);
}

static tw_status accepts_strided(const twi_prepare *p)
{
    tw_status status = TW_OK;
    for (int input = 1; input <= 3 && status == TW_OK; input++)
        status = needs_constant(p, input);
    return status;
}

static tw_status prepare_transpose(twi_prepare *p)
{
    tw_shape in = p->inputs[0].shape, out = p->outputs[0].shape;
    int64_t from[TW_MAX_RANK], to[TW_MAX_RANK];
    moved m = {0};
    row_major(in, from);
    row_major(out, to);
    for (int i = 0; i < out.rank; i++) {
        int64_t axis = twi_tensor_int(p->inputs[1].value, i);
        axis += axis < 0 ? in.rank : 0;
        if (axis < 0 || axis >= in.rank)
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "'%s': %lld is no axis", p->node, (long long)axis);
        axis_of(&m.move, out.dims[i], from[axis], to[i]);
    }
    return keep(p, m);
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
    row_major(in, from);
    row_major(out, to);
    for (int i = 0; i < out.rank; i++) {
        int64_t begin = twi_tensor_int(p->inputs[1].value, i);
        if (begin < 0 || begin + out.dims[i] > in.dims[i])
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "'%s': axis %d of size %lld has no part from %lld on", p->node,
                            i, (long long)in.dims[i], (long long)begin);
        axis_of(&m.move, out.dims[i], from[i], to[i]);
        m.from += begin * from[i];
    }
    return keep(p, m);
}

static tw_status fill(const twi_run *r, const void *element)
{
    const twi_operand *out = &r->output_operands[0];
    twi_cuda_move move = {.rank = 1, .size = {out->elements}, .from = {0}, .to = {1}};
    return TWI_LAUNCH(r, twi_cuda_move_run(r->stream, size_of(out), &move, element, r->outputs[0]));
}

static tw_status run_fill(const twi_run *r)
{
    return fill(r, r->inputs[1]);
}

static tw_status run_zeros_like(const twi_run *r)
{
    return TWI_LAUNCH(r, cudaMemsetAsync(r->outputs[0], 0, r->output_operands[0].bytes, r->stream));
}

/* ---- parts with strides ------------------------------------------------------------------------------------------ */

/* Inputs `first` (begins), first + 1 (ends) and first + 2 (strides), which are constants, resolved against a shape. */
static tw_status resolve(const twi_prepare *p, int first, tw_shape shape, tw_shape planned, twi_strided *part)
{
    int64_t numbers[3][32], count = p->inputs[first].elements;
    twi_strided_spec spec = twi_strided_masks(p->attrs);
    for (int k = 0; k < 3; k++) {
        if (count > 32 || p->inputs[first + k].elements != count)
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "'%s': begins, ends and strides differ in number", p->node);
        for (int64_t i = 0; i < count; i++)
            numbers[k][i] = twi_tensor_int(p->inputs[first + k].value, i);
    }
    spec.count = (int)count;
    spec.begin = numbers[0];
    spec.end = numbers[1];
    spec.stride = numbers[2];
    tw_status status = twi_strided_resolve(&spec, shape, part, p->error);
    if (status == TW_OK && !tw_shape_equal(part->output, planned))
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "'%s': the slice is not of the shape that was planned", p->node);
    return status;
}

/* Between the part of `whole` and an array of its own: into that, or with `back` out of it. */
static moved move_part(const twi_strided *part, tw_shape whole, bool back)
{
    int64_t strides[TW_MAX_RANK], own[TW_MAX_RANK], offset = 0;
    tw_shape sizes = {.rank = part->rank};
    moved m = {0};
    memcpy(sizes.dims, part->size, sizeof part->size);
    row_major(whole, strides);
    row_major(sizes, own);
    for (int i = 0; i < part->rank; i++) {
        int64_t step = part->stride[i] * strides[i];
        offset += part->begin[i] * strides[i];
        axis_of(&m.move, part->size[i], back ? own[i] : step, back ? step : own[i]);
    }
    *(back ? &m.to : &m.from) = offset;
    return m;
}

static tw_status prepare_strided_slice(twi_prepare *p)
{
    twi_strided part;
    tw_status status = resolve(p, 1, p->inputs[0].shape, p->outputs[0].shape, &part);
    return status == TW_OK ? keep(p, move_part(&part, p->inputs[0].shape, false)) : status;
}

/* shape, begins, ends, strides, dy: dy where the slice was, zeros elsewhere */
static tw_status prepare_strided_slice_grad(twi_prepare *p)
{
    twi_strided part;
    tw_status status = resolve(p, 1, p->outputs[0].shape, p->inputs[4].shape, &part);
    return status == TW_OK ? keep(p, move_part(&part, p->outputs[0].shape, true)) : status;
}

static tw_status move_into(const twi_run *r, int input)
{
    const moved *m = r->state;
    int size = size_of(&r->output_operands[0]);
    if (r->input_operands[input].elements == 0)
        return TW_OK;
    return TWI_LAUNCH(r, twi_cuda_move_run(r->stream, size, &m->move, r->inputs[input],
                                           (char *)r->outputs[0] + m->to * size));
}

static tw_status run_strided_slice_grad(const twi_run *r)
{
    tw_status status = run_zeros_like(r);
    return status == TW_OK ? move_into(r, 4) : status;
}

/* ---- padding: an array in the middle of another ------------------------------------------------------------------ */

static tw_status prepare_pad(twi_prepare *p)
{
    tw_shape in = p->inputs[0].shape, out = p->outputs[0].shape;
    int64_t from[TW_MAX_RANK], to[TW_MAX_RANK];
    moved m = {0};
    row_major(in, from);
    row_major(out, to);
    for (int i = 0; i < in.rank; i++) {
        int64_t before = twi_tensor_int(p->inputs[1].value, 2 * i);
        if (before < 0 || before + in.dims[i] > out.dims[i])
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "'%s': axis %d of size %lld does not hold %lld behind %lld",
                            p->node, i, (long long)out.dims[i], (long long)in.dims[i], (long long)before);
        axis_of(&m.move, in.dims[i], from[i], to[i]);
        m.to += before * to[i];
    }
    return keep(p, m);
}

/* PadV2's input 2 is what is around. */
static tw_status run_pad(const twi_run *r)
{
    tw_status status = r->num_inputs > 2 ? fill(r, r->inputs[2]) : run_zeros_like(r);
    return status == TW_OK ? move_into(r, 0) : status;
}

/* ---- joining: inputs side by side along an axis ------------------------------------------------------------------ */

typedef struct joined {
    int first, count;       /* the parts among the inputs, or of what is cut the whole */
    int64_t before, inner;  /* the whole is [before, inner], each row the parts' rows one after another */
} joined;

static tw_status keep_join(twi_prepare *p, int first, int count, tw_shape whole, int64_t axis)
{
    if (axis < -whole.rank || axis >= whole.rank)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "'%s': %lld is no axis", p->node, (long long)axis);
    joined *j = twi_alloc(sizeof *j);
    if (!j)
        return twi_fail_memory(p->error, p->node);
    *j = (joined){first, count, 1, 1};
    axis += axis < 0 ? whole.rank : 0;
    for (int i = 0; i < whole.rank; i++)
        *(i < axis ? &j->before : &j->inner) *= whole.dims[i];
    p->state = j;
    return TW_OK;
}

/* The axis is constant input number `input`. */
static tw_status keep_join_along(twi_prepare *p, int first, int count, tw_shape whole, int input)
{
    return keep_join(p, first, count, whole, twi_tensor_int(p->inputs[input].value, 0));
}

static tw_status prepare_concat_v2(twi_prepare *p)
{
    return keep_join_along(p, 0, p->num_inputs - 1, p->outputs[0].shape, p->num_inputs - 1);
}

static tw_status prepare_concat(twi_prepare *p)
{
    return keep_join_along(p, 1, p->num_inputs - 1, p->outputs[0].shape, 0);
}

static tw_status prepare_pack(twi_prepare *p)
{
    return keep_join(p, 0, p->num_inputs, p->outputs[0].shape, twi_attr_int(p->attrs, "axis", 0));
}

/* All parts into the whole; with `cuts` out of it. */
static tw_status move_parts(const twi_run *r, bool cuts, const twi_operand *parts, void *const *places, char *whole)
{
    const joined *j = r->state;
    const int size = size_of(parts);
    tw_status status = TW_OK;
    for (int i = 0; i < j->count && j->before && status == TW_OK;) {
        twi_cuda_pieces some = {.rows = j->before};
        for (int k; i < j->count && (k = some.count) < TWI_CUDA_PIECES; i++, some.count++) {
            int64_t run = parts[i].elements / j->before;
            some.width[k] = run;
            some.from[k] = cuts ? whole : places[i];
            some.from_step[k] = cuts ? j->inner : run;
            some.to[k] = cuts ? places[i] : whole;
            some.to_step[k] = cuts ? run : j->inner;
            whole += run * size;
        }
        status = TWI_LAUNCH(r, twi_cuda_move_pieces(r->stream, size, &some));
    }
    return status;
}

static tw_status run_join(const twi_run *r)
{
    const joined *j = r->state;
    return move_parts(r, false, r->input_operands + j->first, (void *const *)(r->inputs + j->first), r->outputs[0]);
}

/* ---- cutting: outputs side by side along an axis ----------------------------------------------------------------- */

static tw_status prepare_split(twi_prepare *p)
{
    return keep_join_along(p, 1, p->num_outputs, p->inputs[1].shape, 0);
}

static tw_status prepare_split_v(twi_prepare *p)
{
    return keep_join_along(p, 0, p->num_outputs, p->inputs[0].shape, 2);
}

static tw_status prepare_unpack(twi_prepare *p)
{
    return keep_join(p, 0, p->num_outputs, p->inputs[0].shape, twi_attr_int(p->attrs, "axis", 0));
}

static tw_status run_cut(const twi_run *r)
{
    const joined *j = r->state;
    return move_parts(r, true, r->output_operands, r->outputs, (char *)r->inputs[j->first]);
}

const twi_kernel twi_cuda_array_kernels[] = {
    /* never run: the plan writes constants and feeds, and passes buffers on */
    {"Const", "cuda", MOVED},
    {"Placeholder", "cuda", MOVED},
    {"PlaceholderV2", "cuda", MOVED},
    {"PlaceholderWithDefault", "cuda", MOVED},
    {"Identity", "cuda", MOVED | TWI_TYPE(TW_INVALID_DTYPE)}, /* of a LoopCond, which says no type */
    {"StopGradient", "cuda", MOVED},
    {"PreventGradient", "cuda", MOVED},
    {"EnsureShape", "cuda", MOVED},
    {"Bitcast", "cuda", MOVED},
    {"Reshape", "cuda", MOVED},
    {"ExpandDims", "cuda", MOVED},
    {"Squeeze", "cuda", MOVED},

    {"NoOp", "cuda", 0, NULL, run_nothing},
    {"Transpose", "cuda", MOVED, prepare_transpose, run_move, twi_free, .accepts = accepts_second},
    {"Tile", "cuda", MOVED, prepare_tile, run_move, twi_free},
    {"BroadcastTo", "cuda", MOVED, prepare_broadcast_to, run_move, twi_free},
    {"Slice", "cuda", MOVED, prepare_slice, run_move, twi_free, .accepts = accepts_second},
    {"Fill", "cuda", MOVED, NULL, run_fill},
    {"ZerosLike", "cuda", MOVED, NULL, run_zeros_like},
    {"StridedSlice", "cuda", MOVED, prepare_strided_slice, run_move, twi_free, .accepts = accepts_strided},
    {"StridedSliceGrad", "cuda", MOVED, prepare_strided_slice_grad, run_strided_slice_grad, twi_free,
     .accepts = accepts_strided},
    {"Pad", "cuda", MOVED, prepare_pad, run_pad, twi_free, .accepts = accepts_second},
    {"PadV2", "cuda", MOVED, prepare_pad, run_pad, twi_free, .accepts = accepts_second},
    {"ConcatV2", "cuda", MOVED, prepare_concat_v2, run_join, twi_free, .accepts = accepts_last},
    {"Concat", "cuda", MOVED, prepare_concat, run_join, twi_free, .accepts = accepts_first},
    {"Split", "cuda", MOVED, prepare_split, run_cut, twi_free, .accepts = accepts_first},
    {"SplitV", "cuda", MOVED, prepare_split_v, run_cut, twi_free, .accepts = accepts_third},
    {"Unpack", "cuda", MOVED, prepare_unpack, run_cut, twi_free},
    {"Pack", "cuda", MOVED, prepare_pack, run_join, twi_free},
    {0},
};

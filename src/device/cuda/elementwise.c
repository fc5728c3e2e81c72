/* elementwise.c - rows of arithmetic, comparisons, logic and conversion, element by element, and of adding a bias. */
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"

#include <string.h>

#define FLOATS (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16))
#define NUMBERS (FLOATS | TWI_TYPE(TW_INT32) | TWI_TYPE(TW_INT64))
#define BYTES (TWI_TYPE(TW_BOOL) | TWI_TYPE(TW_UINT8))
#define MOVED TWI_CUDA_MOVED_TYPES

static int64_t elements(const twi_run *r)
{
    return r->output_operands[0].elements;
}

static tw_dtype type_of(const twi_run *r)
{
    return r->input_operands[0].dtype;
}

static tw_status prepare_unary(twi_prepare *p)
{
    p->can_overwrite[0] = true;
    return TW_OK;
}

#define X(number, op, types, expression)                                                                               \
    static tw_status run_##number(const twi_run *r)                                                                    \
    {                                                                                                                  \
        return TWI_LAUNCH(r, twi_cuda_unary_run(r->stream, type_of(r), TWI_CUDA_##number, elements(r), r->inputs[0],   \
                                                r->outputs[0]));                                                       \
    }
TWI_CUDA_UNARY_LIST(X)
#undef X

/* The axes of each shape are the last of `out`, of size 1 where it stands still. Neighbouring axes along which all
 * inputs go on alike are one axis. Equal shapes need no walk at all. */
static twi_cuda_walk walk_of(int inputs, const tw_shape *shapes, tw_shape out)
{
    twi_cuda_walk walk = {0}, back = {0}; /* from the last axis to the first */
    int64_t next[TWI_CUDA_MOST_WALKERS] = {1, 1, 1};
    bool alike = true;
    for (int k = 0; k < inputs; k++)
        alike = alike && tw_shape_equal(shapes[k], out);
    for (int i = out.rank - 1; i >= 0 && !alike; i--) {
        int last = back.rank - 1;
        bool joins = back.rank > 0;
        int64_t step[TWI_CUDA_MOST_WALKERS];
        for (int k = 0; k < inputs; k++) {
            int axis = i - (out.rank - shapes[k].rank);
            int64_t size = axis < 0 ? 1 : shapes[k].dims[axis];
            step[k] = size == 1 ? 0 : next[k];
            next[k] *= size;
            joins = joins && step[k] == back.step[k][last] * back.size[last];
        }
        if (out.dims[i] == 1)
            continue;
        if (joins) {
            back.size[last] *= out.dims[i];
            continue;
        }
        back.size[back.rank] = out.dims[i];
        for (int k = 0; k < inputs; k++)
            back.step[k][back.rank] = step[k];
        back.rank++;
    }
    for (int i = back.rank - 1; i >= 0; i--, walk.rank++) {
        walk.size[walk.rank] = back.size[i];
        for (int k = 0; k < inputs; k++)
            walk.step[k][walk.rank] = back.step[k][i];
    }
    return walk;
}

static tw_status accepts_walk(const twi_prepare *p, int inputs, const tw_shape *shapes)
{
    if (p->outputs[0].elements > INT32_MAX && walk_of(inputs, shapes, p->outputs[0].shape).rank > 1)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s on a GPU spreads operands over 2^31 elements at most, got %lld",
                        p->op, (long long)p->outputs[0].elements);
    return TW_OK;
}

static tw_status accepts_binary(const twi_prepare *p)
{
    return accepts_walk(p, 2, (tw_shape[]){p->inputs[0].shape, p->inputs[1].shape});
}

static tw_status keep_walk(twi_prepare *p, int inputs, const tw_shape *shapes)
{
    twi_cuda_walk walk = walk_of(inputs, shapes, p->outputs[0].shape);
    return twi_keep(p, &walk, sizeof walk);
}

/* A bool is of another size than most of what is compared: it never lies over it. */
static tw_status prepare_compare(twi_prepare *p)
{
    return keep_walk(p, 2, (tw_shape[]){p->inputs[0].shape, p->inputs[1].shape});
}

static tw_status prepare_binary(twi_prepare *p)
{
    p->can_overwrite[0] = p->can_overwrite[1] = true;
    return prepare_compare(p);
}

#define X(number, op, types, expression)                                                                               \
    static tw_status run_##number(const twi_run *r)                                                                    \
    {                                                                                                                  \
        return TWI_LAUNCH(r, twi_cuda_binary_run(r->stream, type_of(r), TWI_CUDA_##number, r->state, elements(r),      \
                                                 r->inputs[0], r->inputs[1], r->outputs[0]));                          \
    }
TWI_CUDA_BINARY_LIST(X)
#undef X

#define X(number, op, types, expression)                                                                               \
    static tw_status run_##number(const twi_run *r)                                                                    \
    {                                                                                                                  \
        return TWI_LAUNCH(r, twi_cuda_compare_run(r->stream, type_of(r), TWI_CUDA_##number, r->state, elements(r),     \
                                                  r->inputs[0], r->inputs[1], r->outputs[0]));                         \
    }
TWI_CUDA_COMPARE_LIST(X)
#undef X

#define X(number, op, types, expression)                                                                               \
    static tw_status run_##number(const twi_run *r)                                                                    \
    {                                                                                                                  \
        return TWI_LAUNCH(r, twi_cuda_test_run(r->stream, type_of(r), TWI_CUDA_##number, elements(r), r->inputs[0],    \
                                               r->outputs[0]));                                                        \
    }
TWI_CUDA_TEST_LIST(X)
#undef X

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

/* A vector of conditions of Select goes along the first axis. */
static void shapes_of_select(const twi_prepare *p, tw_shape shapes[3])
{
    int rank = p->outputs[0].shape.rank;
    for (int i = 0; i < 3; i++)
        shapes[i] = p->inputs[i].shape;
    if (strcmp(p->op, "Select") == 0 && shapes[0].rank == 1)
        for (; shapes[0].rank < rank; shapes[0].rank++)
            shapes[0].dims[shapes[0].rank] = 1;
}

static tw_status accepts_select(const twi_prepare *p)
{
    tw_shape shapes[3];
    shapes_of_select(p, shapes);
    return accepts_walk(p, 3, shapes);
}

static tw_status prepare_select(twi_prepare *p)
{
    tw_shape shapes[3];
    shapes_of_select(p, shapes);
    p->can_overwrite[1] = p->can_overwrite[2] = true;
    return keep_walk(p, 3, shapes);
}

static tw_status run_select(const twi_run *r)
{
    return TWI_LAUNCH(r, twi_cuda_select(r->stream, (int)tw_dtype_size(r->output_operands[0].dtype), r->state,
                                         elements(r), r->inputs[0], r->inputs[1], r->inputs[2], r->outputs[0]));
}

static tw_status run_clip(const twi_run *r)
{
    return TWI_LAUNCH(r, twi_cuda_clip(r->stream, type_of(r), elements(r), r->inputs[0], r->inputs[1],
                                       r->input_operands[1].elements > 1, r->inputs[2],
                                       r->input_operands[2].elements > 1, r->outputs[0]));
}

static tw_status prepare_leaky(twi_prepare *p)
{
    float alpha = twi_attr_float(p->attrs, "alpha", 0.2f);
    p->can_overwrite[0] = true;
    return twi_keep(p, &alpha, sizeof alpha);
}

/* Of the gradient the gate comes second. */
static tw_status run_leaky(const twi_run *r)
{
    return TWI_LAUNCH(r, twi_cuda_leaky(r->stream, type_of(r), *(const float *)r->state, elements(r),
                                        r->inputs[r->num_inputs - 1], r->inputs[0], r->outputs[0]));
}

/* ---- sums and conversion ----------------------------------------------------------------------------------------- */

static tw_status prepare_add_n(twi_prepare *p)
{
    for (int i = 0; i < p->num_inputs && i < 4; i++) /* all of the first launch */
        p->can_overwrite[i] = true;
    return TW_OK;
}

/* A launch after the first goes on from what is there. */
static tw_status run_add_n(const twi_run *r)
{
    tw_status status = TW_OK;
    for (int begin = 0, count; begin < r->num_inputs && status == TW_OK; begin += count) {
        const void *terms[TWI_CUDA_MOST_TERMS] = {r->outputs[0]};
        int kept = begin > 0, most = TWI_CUDA_MOST_TERMS - kept;
        count = r->num_inputs - begin < most ? r->num_inputs - begin : most;
        memcpy(terms + kept, r->inputs + begin, sizeof *terms * (size_t)count);
        status = TWI_LAUNCH(r, twi_cuda_add_n(r->stream, type_of(r), kept + count, terms, elements(r), r->outputs[0]));
    }
    return status;
}

static tw_status accepts_cast(const twi_prepare *p)
{
    const uint64_t known = TWI_CUDA_MOVED_TYPES;
    if (known & TWI_TYPE(p->inputs[0].dtype) && known & TWI_TYPE(p->outputs[0].dtype))
        return TW_OK;
    return twi_fail(p->error, TW_UNIMPLEMENTED, "%s and %s are not both types of a card", tw_dtype_name(p->inputs[0].dtype),
                    tw_dtype_name(p->outputs[0].dtype));
}

static tw_status run_cast(const twi_run *r)
{
    return TWI_LAUNCH(r, twi_cuda_cast(r->stream, type_of(r), r->output_operands[0].dtype, elements(r), r->inputs[0],
                                       r->outputs[0]));
}

/* ---- bias -------------------------------------------------------------------------------------------------------- */

typedef struct bias {
    int64_t channels, inner;
} bias;

static tw_status prepare_bias(twi_prepare *p)
{
    tw_shape shape = p->inputs[0].shape, vector = p->inputs[1].shape;
    int axis = strcmp(twi_attr_string(p->attrs, "data_format", "NHWC"), "NCHW") == 0 ? 1 : shape.rank - 1;
    if (shape.rank < 2 || vector.rank != 1 || vector.dims[0] != shape.dims[axis])
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "the bias must be a vector as long as the value has channels");
    bias b = {shape.dims[axis], 1};
    for (int i = axis + 1; i < shape.rank; i++)
        b.inner *= shape.dims[i];
    p->can_overwrite[0] = true;
    return twi_keep(p, &b, sizeof b);
}

static tw_status run_bias(const twi_run *r)
{
    const bias *b = r->state;
    return TWI_LAUNCH(r, twi_cuda_bias_add(r->stream, type_of(r), elements(r), b->channels, b->inner, false, r->inputs[0],
                                           r->inputs[1], r->outputs[0]));
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

#define UNARY_ROW(number, op, types, expression) {op, "cuda", types, prepare_unary, run_##number},
#define BINARY_ROW(number, op, types, expression) \
    {op, "cuda", types, prepare_binary, run_##number, twi_free, .accepts = accepts_binary},
#define COMPARE_ROW(number, op, types, expression) \
    {op, "cuda", types, prepare_compare, run_##number, twi_free, .accepts = accepts_binary},
#define TEST_ROW(number, op, types, expression) {op, "cuda", types, NULL, run_##number},

const twi_kernel twi_cuda_elementwise_kernels[] = {
    TWI_CUDA_UNARY_LIST(UNARY_ROW) TWI_CUDA_BINARY_LIST(BINARY_ROW) TWI_CUDA_COMPARE_LIST(COMPARE_ROW)
        TWI_CUDA_TEST_LIST(TEST_ROW){"Select", "cuda", MOVED, prepare_select, run_select, twi_free,
                                     .accepts = accepts_select},
    {"SelectV2", "cuda", MOVED, prepare_select, run_select, twi_free, .accepts = accepts_select},
    {"ClipByValue", "cuda", NUMBERS, prepare_unary, run_clip},
    {"LeakyRelu", "cuda", FLOATS, prepare_leaky, run_leaky, twi_free},
    {"LeakyReluGrad", "cuda", FLOATS, prepare_leaky, run_leaky, twi_free},
    {"AddN", "cuda", FLOATS, prepare_add_n, run_add_n},
    {"AccumulateNV2", "cuda", FLOATS, prepare_add_n, run_add_n},
    {"Cast", "cuda", 0, NULL, run_cast, .accepts = accepts_cast},
    {"BiasAdd", "cuda", FLOATS, prepare_bias, run_bias, twi_free},
    {"BiasAddV1", "cuda", FLOATS, prepare_bias, run_bias, twi_free},
    {0},
};

/* elementwise.c - rows of arithmetic and conversion, element by element, and of adding a bias. */
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"

#include <string.h>

#define FLOATS (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16))

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

#define X(number, op, expression)                                                                                      \
    static tw_status run_##number(const twi_run *r)                                                                    \
    {                                                                                                                  \
        return TWI_LAUNCH(r, twi_cuda_unary_run(r->stream, type_of(r), TWI_CUDA_##number, elements(r), r->inputs[0],   \
                                                r->outputs[0]));                                                       \
    }
TWI_CUDA_UNARY_LIST(X)
#undef X

/* Neighbouring axes along which both inputs go on alike are one axis. Equal shapes need no walk at all. */
static twi_cuda_walk walk_of(tw_shape x, tw_shape y, tw_shape out)
{
    twi_cuda_walk walk = {0};
    int64_t size[TW_MAX_RANK], x_step[TW_MAX_RANK], y_step[TW_MAX_RANK], x_next = 1, y_next = 1;
    int count = 0; /* axes from the last to the first */
    if (tw_shape_equal(x, y))
        return walk;
    for (int i = out.rank - 1; i >= 0; i--) {
        int xi = i - (out.rank - x.rank), yi = i - (out.rank - y.rank);
        int64_t dx = xi < 0 ? 1 : x.dims[xi], dy = yi < 0 ? 1 : y.dims[yi];
        int64_t sx = dx == 1 ? 0 : x_next, sy = dy == 1 ? 0 : y_next;
        x_next *= dx;
        y_next *= dy;
        if (out.dims[i] == 1)
            continue;
        int last = count - 1;
        if (count && sx == x_step[last] * size[last] && sy == y_step[last] * size[last]) {
            size[last] *= out.dims[i];
            continue;
        }
        size[count] = out.dims[i];
        x_step[count] = sx;
        y_step[count++] = sy;
    }
    for (int i = count - 1; i >= 0; i--, walk.rank++) {
        walk.size[walk.rank] = size[i];
        walk.x_step[walk.rank] = x_step[i];
        walk.y_step[walk.rank] = y_step[i];
    }
    return walk;
}

static tw_status prepare_binary(twi_prepare *p)
{
    twi_cuda_walk *walk = twi_alloc(sizeof *walk);
    if (!walk)
        return twi_fail_memory(p->error, p->node);
    *walk = walk_of(p->inputs[0].shape, p->inputs[1].shape, p->outputs[0].shape);
    p->state = walk;
    p->can_overwrite[0] = p->can_overwrite[1] = true;
    return TW_OK;
}

#define X(number, op, broadcasts, expression)                                                                          \
    static tw_status run_##number(const twi_run *r)                                                                    \
    {                                                                                                                  \
        return TWI_LAUNCH(r, twi_cuda_binary_run(r->stream, type_of(r), TWI_CUDA_##number, r->state, elements(r),      \
                                                 r->inputs[0], r->inputs[1], r->outputs[0]));                          \
    }
TWI_CUDA_BINARY_LIST(X)
#undef X

static tw_status prepare_add_n(twi_prepare *p)
{
    if (p->num_inputs > TWI_CUDA_MOST_TERMS)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "sums of more than %d terms", TWI_CUDA_MOST_TERMS);
    for (int i = 0; i < p->num_inputs && i < 4; i++)
        p->can_overwrite[i] = true;
    return TW_OK;
}

static tw_status run_add_n(const twi_run *r)
{
    return TWI_LAUNCH(r, twi_cuda_add_n(r->stream, type_of(r), r->num_inputs, r->inputs, elements(r), r->outputs[0]));
}

static tw_status prepare_cast(twi_prepare *p)
{
    if (p->inputs[0].dtype == TW_STRING || p->outputs[0].dtype == TW_STRING)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "strings lie on the host alone");
    return TW_OK;
}

static tw_status run_cast(const twi_run *r)
{
    return TWI_LAUNCH(r, twi_cuda_cast(r->stream, type_of(r), r->output_operands[0].dtype, elements(r), r->inputs[0],
                                       r->outputs[0]));
}

/* ---- bias ---------------------------------------------------------------------------------------------------------- */

typedef struct bias {
    int64_t channels, inner;
} bias;

static tw_status prepare_bias(twi_prepare *p)
{
    tw_shape shape = p->inputs[0].shape, vector = p->inputs[1].shape;
    int axis = strcmp(twi_attr_string(p->attrs, "data_format", "NHWC"), "NCHW") == 0 ? 1 : shape.rank - 1;
    if (shape.rank < 2 || vector.rank != 1 || vector.dims[0] != shape.dims[axis])
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "the bias must be a vector as long as the value has channels");
    bias *state = twi_alloc(sizeof *state);
    if (!state)
        return twi_fail_memory(p->error, p->node);
    *state = (bias){shape.dims[axis], 1};
    for (int i = axis + 1; i < shape.rank; i++)
        state->inner *= shape.dims[i];
    p->state = state;
    p->can_overwrite[0] = true;
    return TW_OK;
}

static tw_status run_bias(const twi_run *r)
{
    const bias *b = r->state;
    return TWI_LAUNCH(r, twi_cuda_bias_add(r->stream, type_of(r), elements(r), b->channels, b->inner, false, r->inputs[0],
                                           r->inputs[1], r->outputs[0]));
}

/* ---- rows ---------------------------------------------------------------------------------------------------------- */

#define UNARY_ROW(number, op, expression) {op, "cuda", FLOATS, prepare_unary, run_##number},
#define BINARY_ROW(number, op, broadcasts, expression) {op, "cuda", FLOATS, prepare_binary, run_##number, twi_free},

const twi_kernel twi_cuda_elementwise_kernels[] = {
    TWI_CUDA_UNARY_LIST(UNARY_ROW)
    TWI_CUDA_BINARY_LIST(BINARY_ROW)
    {"AddN", "cuda", FLOATS, prepare_add_n, run_add_n},
    {"AccumulateNV2", "cuda", FLOATS, prepare_add_n, run_add_n},
    {"Cast", "cuda", 0, prepare_cast, run_cast},
    {"BiasAdd", "cuda", FLOATS, prepare_bias, run_bias, twi_free},
    {"BiasAddV1", "cuda", FLOATS, prepare_bias, run_bias, twi_free},
    {0},
};

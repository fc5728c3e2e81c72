/* reduce.c - rows of sums, means, extremes, their places and products along axes, of L2Loss and of the gradient of a
 * bias, alone, behind a ReLU's and of many. */
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"
#include "tensor/tensor.h"

#include <string.h>

#define FLOATS (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16))

typedef struct reduction {
    twi_cuda_reduction plan;
    unsigned *counters; /* last_block.cuh */
} reduction;

static tw_status accepts(const twi_prepare *p, const twi_cuda_reduction *plan)
{
    if ((plan->num_kept > 1 && plan->outputs > INT32_MAX) || (plan->num_reduced > 1 && plan->inputs > INT32_MAX))
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s on a GPU counts to 2^31 along axes that lie apart, got %lld sums "
                        "of %lld elements", p->op, (long long)plan->outputs, (long long)plan->inputs);
    return TW_OK;
}

static tw_status keep(twi_prepare *p, twi_cuda_reduction plan)
{
    reduction kept = {plan, NULL};
    p->workspace = twi_cuda_reduction_plan(&kept.plan, p->inputs[0].dtype);
    tw_status status = p->workspace ? twi_cuda_take_counters(p, &kept.counters) : TW_OK;
    return status != TW_OK ? status : twi_keep(p, &kept, sizeof kept);
}

/* Of the axes that `reduced` says. */
static twi_cuda_reduction lay(twi_cuda_fold fold, tw_shape shape, const bool *reduced)
{
    twi_cuda_reduction d = {.fold = fold, .outputs = 1, .inputs = 1};
    int64_t step = 1;
    for (int i = shape.rank - 1; i >= 0; i--) {
        int64_t size = shape.dims[i];
        int *count = reduced[i] ? &d.num_reduced : &d.num_kept;
        int64_t *sizes = reduced[i] ? d.reduced_size : d.kept_size, *steps = reduced[i] ? d.reduced_step : d.kept_step;
        if (i < shape.rank - 1 && reduced[i] == reduced[i + 1]) {
            sizes[*count - 1] *= size;
        } else {
            sizes[*count] = size;
            steps[(*count)++] = step;
        }
        *(reduced[i] ? &d.inputs : &d.outputs) *= size;
        step *= size;
    }
    return d;
}

/* The axes must be known when the plan is made: they lie on the card when it runs. */
static tw_status lay_axes(const twi_prepare *p, twi_cuda_fold fold, twi_cuda_reduction *plan)
{
    bool reduced[TW_MAX_RANK] = {false};
    tw_shape shape = p->inputs[0].shape;
    const tw_tensor *axes = p->inputs[1].value;
    if (!axes)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s on a GPU needs constant axes", p->op);
    for (int64_t i = 0; i < axes->elements; i++) {
        int64_t axis = twi_tensor_int(axes, i);
        if (axis < -shape.rank || axis >= shape.rank)
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "axis %lld, expected -%d to %d", (long long)axis, shape.rank,
                            shape.rank - 1);
        reduced[axis < 0 ? axis + shape.rank : axis] = true;
    }
    *plan = lay(fold, shape, reduced);
    return TW_OK;
}

static tw_status accepts_axes(const twi_prepare *p)
{
    twi_cuda_reduction plan;
    tw_status status = lay_axes(p, TWI_CUDA_SUM, &plan);
    return status == TW_OK ? accepts(p, &plan) : status;
}

static tw_status prepare_axes(twi_prepare *p, twi_cuda_fold fold)
{
    twi_cuda_reduction plan;
    tw_status status = lay_axes(p, fold, &plan);
    return status == TW_OK ? keep(p, plan) : status;
}

static tw_status prepare_sum(twi_prepare *p)
{
    return prepare_axes(p, TWI_CUDA_SUM);
}

static tw_status prepare_mean(twi_prepare *p)
{
    return prepare_axes(p, TWI_CUDA_MEAN);
}

static tw_status prepare_largest(twi_prepare *p)
{
    return prepare_axes(p, TWI_CUDA_LARGEST);
}

static tw_status prepare_smallest(twi_prepare *p)
{
    return prepare_axes(p, TWI_CUDA_SMALLEST);
}

static tw_status prepare_product(twi_prepare *p)
{
    return prepare_axes(p, TWI_CUDA_PRODUCT);
}

static tw_status prepare_l2_loss(twi_prepare *p)
{
    bool all[TW_MAX_RANK];
    memset(all, true, sizeof all);
    return keep(p, lay(TWI_CUDA_HALF_SQUARES, p->inputs[0].shape, all));
}

static tw_status lay_channels(const twi_prepare *p, twi_cuda_fold fold, twi_cuda_reduction *plan)
{
    bool reduced[TW_MAX_RANK];
    tw_shape shape = p->inputs[0].shape;
    int axis = strcmp(twi_attr_string(p->attrs, "data_format", "NHWC"), "NCHW") == 0 ? 1 : shape.rank - 1;
    if (shape.rank < 2)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "the gradient must have channels");
    for (int i = 0; i < shape.rank; i++)
        reduced[i] = i != axis;
    *plan = lay(fold, shape, reduced);
    return TW_OK;
}

static tw_status accepts_channels(const twi_prepare *p)
{
    twi_cuda_reduction plan;
    tw_status status = lay_channels(p, TWI_CUDA_SUM, &plan);
    return status == TW_OK ? accepts(p, &plan) : status;
}

static tw_status prepare_channels(twi_prepare *p, twi_cuda_fold fold)
{
    twi_cuda_reduction plan;
    tw_status status = lay_channels(p, fold, &plan);
    return status == TW_OK ? keep(p, plan) : status;
}

static tw_status prepare_bias_grad(twi_prepare *p)
{
    return prepare_channels(p, TWI_CUDA_SUM);
}

/* _ReluGradBias (gradients, features) */
static tw_status prepare_relu_grad_bias(twi_prepare *p)
{
    p->can_overwrite[0] = p->can_overwrite[1] = true;
    return prepare_channels(p, TWI_CUDA_PASSED);
}

static tw_status run_relu_grad_bias(const twi_run *r)
{
    const reduction *kept = r->state;
    return TWI_LAUNCH(r, twi_cuda_relu_grad_bias(r->stream, r->input_operands[0].dtype, &kept->plan, r->inputs[0],
                                                 r->inputs[1], r->outputs[0], r->outputs[1], r->workspace,
                                                 kept->counters));
}

static tw_status run(const twi_run *r)
{
    const reduction *kept = r->state;
    return TWI_LAUNCH(r, twi_cuda_reduce(r->stream, r->input_operands[0].dtype, &kept->plan, r->inputs[0],
                                         r->outputs[0], r->workspace, kept->counters));
}

/* ---- many biases ---------------------------------------------------------------------------------------------- */

typedef struct biases {
    unsigned *counters; /* last_block.cuh */
    twi_cuda_reduction plans[];
} biases;

/* Columns, all of whose blocks together have counters enough. */
static tw_status lay_biases(const twi_prepare *p, twi_cuda_reduction plans[TWI_CUDA_SUMMED], size_t *parts)
{
    int64_t blocks = 0;
    *parts = 0;
    for (int i = 0; i < p->num_inputs && i < TWI_CUDA_SUMMED; i++) {
        bool reduced[TW_MAX_RANK] = {false};
        tw_shape shape = p->inputs[i].shape;
        for (int k = 0; k < shape.rank - 1; k++)
            reduced[k] = true;
        plans[i] = lay(TWI_CUDA_SUM, shape, reduced);
        twi_cuda_reduction_plan(&plans[i], p->inputs[i].dtype);
        *parts += (size_t)twi_cuda_columns_parts(&plans[i]);
        blocks += twi_cuda_columns_blocks(&plans[i]);
        if (!plans[i].columns)
            return twi_fail(p->error, TW_UNIMPLEMENTED, "%s: input %d has no columns", p->op, i);
    }
    if (p->num_inputs > TWI_CUDA_SUMMED || blocks > TWI_CUDA_COUNTERS)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s: %d gradients in %lld blocks, expected %d and %d at most",
                        p->op, p->num_inputs, (long long)blocks, TWI_CUDA_SUMMED, TWI_CUDA_COUNTERS);
    return TW_OK;
}

static tw_status accepts_biases(const twi_prepare *p)
{
    twi_cuda_reduction plans[TWI_CUDA_SUMMED];
    size_t parts;
    return lay_biases(p, plans, &parts);
}

static tw_status prepare_biases(twi_prepare *p)
{
    size_t parts = 0, size = (size_t)p->num_inputs * sizeof(twi_cuda_reduction);
    tw_status status;
    biases *kept = twi_alloc(sizeof *kept + size);
    p->state = kept;
    if (!kept)
        return twi_fail_memory(p->error, p->node);
    TWI_TRY(lay_biases(p, kept->plans, &parts));
    TWI_TRY(twi_cuda_take_counters(p, &kept->counters));
    p->workspace = parts * sizeof(float);
done:
    return status;
}

static tw_status run_biases(const twi_run *r)
{
    const biases *kept = r->state;
    const twi_cuda_reduction *plans[TWI_CUDA_SUMMED];
    for (int i = 0; i < r->num_inputs; i++)
        plans[i] = &kept->plans[i];
    return TWI_LAUNCH(r, twi_cuda_sum_columns(r->stream, r->input_operands[0].dtype, r->num_inputs, plans, r->inputs,
                                              r->outputs, r->workspace, kept->counters));
}

/* ---- places --------------------------------------------------------------------------------------------------- */

/* The axis to search must have something on it. */
static tw_status prepare_place(twi_prepare *p, twi_cuda_fold fold)
{
    tw_status status = prepare_axes(p, fold);
    const reduction *kept = p->state;
    p->workspace = 0;
    if (status == TW_OK && kept->plan.inputs == 0 && kept->plan.outputs > 0)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "the axis to search is empty");
    return status;
}

static tw_status prepare_place_of_largest(twi_prepare *p)
{
    return prepare_place(p, TWI_CUDA_LARGEST);
}

static tw_status prepare_place_of_smallest(twi_prepare *p)
{
    return prepare_place(p, TWI_CUDA_SMALLEST);
}

static tw_status run_place(const twi_run *r)
{
    const reduction *kept = r->state;
    return TWI_LAUNCH(r, twi_cuda_find_extreme(r->stream, r->input_operands[0].dtype, &kept->plan, r->inputs[0],
                                               r->output_operands[0].dtype, r->outputs[0]));
}

const twi_kernel twi_cuda_reduce_kernels[] = {
    {"Sum", "cuda", FLOATS, prepare_sum, run, twi_free, .accepts = accepts_axes},
    {"Mean", "cuda", FLOATS, prepare_mean, run, twi_free, .accepts = accepts_axes},
    {"Max", "cuda", FLOATS, prepare_largest, run, twi_free, .accepts = accepts_axes},
    {"Min", "cuda", FLOATS, prepare_smallest, run, twi_free, .accepts = accepts_axes},
    {"Prod", "cuda", FLOATS, prepare_product, run, twi_free, .accepts = accepts_axes},
    {"All", "cuda", 0, prepare_smallest, run, twi_free, .accepts = accepts_axes},
    {"Any", "cuda", 0, prepare_largest, run, twi_free, .accepts = accepts_axes},
    {"ArgMax", "cuda", FLOATS, prepare_place_of_largest, run_place, twi_free, .accepts = accepts_axes},
    {"ArgMin", "cuda", FLOATS, prepare_place_of_smallest, run_place, twi_free, .accepts = accepts_axes},
    {"L2Loss", "cuda", FLOATS, prepare_l2_loss, run, twi_free},
    {"BiasAddGrad", "cuda", FLOATS, prepare_bias_grad, run, twi_free, .accepts = accepts_channels},
    {"_BiasAddGradMany", "cuda", FLOATS, prepare_biases, run_biases, twi_free, .accepts = accepts_biases},
    {"_ReluGradBias", "cuda", FLOATS, prepare_relu_grad_bias, run_relu_grad_bias, twi_free,
     .accepts = accepts_channels},
    {0},
};

/* state.c - rows of variables: reads, assignments, updates. A variable's input is the variable's own memory. */
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"
#include "tensor/window.h"

#define FLOATS (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16))
#define MOVED TWI_CUDA_MOVED_TYPES

/* The variable has that type and, unless it is a scalar, the shape of what goes into it, transposed or not. */
static tw_status check(const twi_prepare *p, int variable, tw_dtype type, int value, bool transposed)
{
    char text[2][96];
    const twi_operand *var = &p->inputs[variable], *v = &p->inputs[value];
    tw_shape shape = transposed ? twi_transpose_filter(var->shape) : var->shape;
    if (var->resource && var->resource->dtype != type)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': variable '%s' is %s, what goes into it is %s", p->op,
                        p->node, var->resource->name, tw_dtype_name(var->resource->dtype), tw_dtype_name(type));
    if (v->shape.rank > 0 && !tw_shape_equal(v->shape, shape))
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': the variable has shape %s, what goes into it %s", p->op,
                        p->node, tw_shape_text(shape, text[0], sizeof text[0]),
                        tw_shape_text(v->shape, text[1], sizeof text[1]));
    return TW_OK;
}

static tw_status prepare_assign(twi_prepare *p)
{
    return check(p, 0, p->inputs[1].dtype, 1, false);
}

static tw_status copy(const twi_run *r, const void *from, void *to, size_t bytes)
{
    if (from == to || bytes == 0)
        return TW_OK;
    return TWI_LAUNCH(r, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, r->stream));
}

static tw_status run_read(const twi_run *r)
{
    return copy(r, r->inputs[0], r->outputs[0], r->output_operands[0].bytes);
}

static tw_status run_assign(const twi_run *r)
{
    return copy(r, r->inputs[1], (void *)r->inputs[0], r->input_operands[1].bytes);
}

static tw_status run_assign_add(const twi_run *r)
{
    return TWI_LAUNCH(r, twi_cuda_assign_add(r->stream, r->input_operands[1].dtype, 1, r->input_operands[1].elements,
                                             (void *)r->inputs[0], r->inputs[1]));
}

static tw_status run_assign_subtract(const twi_run *r)
{
    return TWI_LAUNCH(r, twi_cuda_assign_add(r->stream, r->input_operands[1].dtype, -1, r->input_operands[1].elements,
                                             (void *)r->inputs[0], r->inputs[1]));
}

static tw_status prepare_is_initialized(twi_prepare *p)
{
    p->varies = true;
    return TW_OK;
}

static tw_status run_is_initialized(const twi_run *r)
{
    const twi_resource *variable = r->input_operands[0].resource;
    return TWI_LAUNCH(r, cudaMemsetAsync(r->outputs[0], variable && variable->initialized, 1, r->stream));
}

/* ---- updates: of one variable, or of many in one launch ---------------------------------------------------------- */

/* Where among the inputs what lies: the first slot (the others follow), the numbers, the first gradient, decay and
 * loss. Variables come first. */
typedef struct updating {
    twi_cuda_rule rule;
    tw_dtype type; /* of variables, slots and numbers */
    bool nesterov;
    int count, towers, num_slots, num_numbers;
    float scale;
    int slots, numbers[TWI_CUDA_NUMBERS], gradients;
    int decays, losses, averages; /* 0: there are none */
    int64_t *offsets;   /* [towers][count]: where a gradient begins in a vector that it is a part of; -1: it is whole */
    bool *transposed;       /* [count]: the gradients' first axis is the variable's last. Both behind the struct */
} updating;

static twi_cuda_rule rule_of(const char *op)
{
    static const struct {
        const char *op;
        twi_cuda_rule rule;
    } rows[] = {{"_MovingAverageMany", TWI_CUDA_FOLLOWING},  {"ResourceApplyMomentum", TWI_CUDA_MOMENTUM},
                {"ResourceApplyAdagrad", TWI_CUDA_ADAGRAD},  {"ResourceApplyAdagradV2", TWI_CUDA_ADAGRAD},
                {"ResourceApplyAdam", TWI_CUDA_ADAM},        {"ResourceApplyRMSProp", TWI_CUDA_RMS_PROP}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(op, rows[i].op) == 0)
            return rows[i].rule;
    return TWI_CUDA_DESCENT;
}

static updating *new_updating(const char *op, const twi_attrs *attrs, int count)
{
    int num_transposed = 0, num_offsets = 0;
    const int64_t *transposed = twi_attr_ints(attrs, "transposed", &num_transposed);
    const int64_t *offsets = twi_attr_ints(attrs, "offsets", &num_offsets);
    updating *u = twi_alloc(sizeof *u + (size_t)count * (2 * sizeof *u->offsets + sizeof *u->transposed));
    if (!u)
        return NULL;
    u->offsets = (int64_t *)(u + 1);
    u->transposed = (bool *)(u->offsets + 2 * count);
    for (int i = 0; i < num_transposed && i < count; i++)
        u->transposed[i] = transposed[i];
    for (int i = 0; i < 2 * count; i++)
        u->offsets[i] = i < num_offsets ? offsets[i] : -1;
    u->rule = rule_of(op);
    u->type = TW_FLOAT32;
    u->nesterov = twi_attr_bool(attrs, "use_nesterov", false);
    u->scale = twi_attr_float(attrs, "scale", 1);
    u->count = count;
    u->towers = 1;
    return u;
}

/* A decay or a loss that is known to be 0 is none. */
static const void *share(const twi_run *r, int input)
{
    const tw_tensor *value = r->input_operands[input].value;
    return value && tw_tensor_value(value, 0) == 0 ? NULL : r->inputs[input];
}

static tw_status keep_updating(twi_prepare *p, updating *u)
{
    tw_status status = TW_OK;
    p->state = u;
    for (int i = 0; i < u->count * u->num_slots && status == TW_OK; i++)
        status = check(p, u->slots + i, u->type, i % u->count, false);
    for (int i = 0; i < u->count * u->towers && status == TW_OK; i++)
        status = u->offsets[i] >= 0 ? check(p, i % u->count, u->type, i % u->count, false)
                                    : check(p, i % u->count, u->type, u->gradients + i, u->transposed[i % u->count]);
    return status;
}

static tw_status prepare_update(twi_prepare *p)
{
    updating *u = new_updating(p->op, p->attrs, 1);
    if (!u)
        return twi_fail_memory(p->error, p->node);
    u->slots = 1;
    for (int i = 0; i < p->num_inputs; i++) {
        if (p->roles[i] == 's')
            u->num_slots++;
        if (p->roles[i] == 'n')
            u->numbers[u->num_numbers++] = i;
        if (p->roles[i] == 'g')
            u->gradients = i;
    }
    u->type = p->inputs[u->gradients].dtype;
    return keep_updating(p, u);
}

/* N variables, S slots, K numbers, M gradients (N of each of one or two towers), M decays or none, L losses, and what
 * follows if averages do. Descent and averages have no slots, one number and no losses, and so no such attributes. */
static tw_status prepare_update_many(twi_prepare *p)
{
    int count = (int)twi_attr_int(p->attrs, "N", 0), slots = (int)twi_attr_int(p->attrs, "S", 0);
    int gradients = (int)twi_attr_int(p->attrs, "M", count), losses = (int)twi_attr_int(p->attrs, "L", 0);
    updating *u = new_updating(twi_attr_string(p->attrs, "update", p->op), p->attrs, count);
    if (!u)
        return twi_fail_memory(p->error, p->node);
    int inputs = p->num_inputs, averages = strcmp(p->op, "_ApplyAveragedMany") == 0 ? count + 1 : 0;
    inputs -= averages;
    u->averages = averages ? inputs : 0;
    u->slots = count;
    u->num_slots = slots / count;
    u->num_numbers = (int)twi_attr_int(p->attrs, "K", 1);
    for (int i = 0; i < u->num_numbers; i++)
        u->numbers[i] = count + slots + i;
    u->gradients = count + slots + u->num_numbers;
    u->towers = gradients / count;
    u->losses = losses ? inputs - losses : 0;
    u->decays = inputs - losses > u->gradients + gradients ? u->gradients + gradients : 0;
    return keep_updating(p, u);
}

static tw_status accepts_adagrad(const twi_prepare *p)
{
    return twi_attr_bool(p->attrs, "update_slots", true)
               ? TW_OK
               : twi_fail(p->error, TW_UNIMPLEMENTED, "%s on a GPU updates its slots", p->op);
}

static tw_status run_update(const twi_run *r)
{
    const updating *u = r->state;
    tw_status status = TW_OK;
    for (int begin = 0; begin < u->count && status == TW_OK; begin += TWI_CUDA_MANY) {
        twi_cuda_update some = {.rule = u->rule, .nesterov = u->nesterov, .towers = u->towers, .scale = u->scale};
        some.count = u->count - begin < TWI_CUDA_MANY ? u->count - begin : TWI_CUDA_MANY;
        for (int i = 0; i < u->num_numbers; i++)
            some.numbers[i] = r->inputs[u->numbers[i]];
        some.weight = u->averages ? r->inputs[u->averages + u->count] : NULL;
        for (int i = 0; i < some.count; i++) {
            some.var[i] = (void *)r->inputs[begin + i];
            for (int k = 0; k < u->num_slots; k++)
                some.slots[k][i] = (void *)r->inputs[u->slots + k * u->count + begin + i];
            for (int tower = 0; tower < u->towers; tower++) {
                int value = tower * u->count + begin + i;
                const twi_operand *gradient = &r->input_operands[u->gradients + value];
                int64_t offset = u->offsets[value] > 0 ? u->offsets[value] : 0;
                some.gradient[tower][i] =
                    (const char *)r->inputs[u->gradients + value] + offset * (int64_t)tw_dtype_size(gradient->dtype);
                some.type[tower][i] = (uint8_t)gradient->dtype;
                some.decay[tower][i] = u->decays ? share(r, u->decays + value) : NULL;
            }
            some.average[i] = u->averages ? (void *)r->inputs[u->averages + begin + i] : NULL;
            some.loss[i] = u->losses ? share(r, u->losses + begin + i) : NULL;
            tw_shape shape = r->input_operands[begin + i].shape;
            some.elements[i] = tw_shape_elements(shape);
            some.columns[i] = u->transposed[begin + i] ? (int)shape.dims[shape.rank - 1] : 0;
        }
        status = TWI_LAUNCH(r, twi_cuda_update_many(r->stream, u->type, &some));
    }
    return status;
}

#define ADDED (FLOATS | TWI_TYPE(TW_INT64) | TWI_TYPE(TW_INT32))

const twi_kernel twi_cuda_state_kernels[] = {
    {"VarHandleOp", "cuda", MOVED},
    {"ReadVariableOp", "cuda", MOVED, NULL, run_read},
    {"VarIsInitializedOp", "cuda", 0, prepare_is_initialized, run_is_initialized},
    {"AssignVariableOp", "cuda", MOVED, prepare_assign, run_assign},
    {"AssignAddVariableOp", "cuda", ADDED, prepare_assign, run_assign_add},
    {"AssignSubVariableOp", "cuda", ADDED, prepare_assign, run_assign_subtract},
    {"ResourceApplyGradientDescent", "cuda", FLOATS, prepare_update, run_update, twi_free},
    {"ResourceApplyMomentum", "cuda", FLOATS, prepare_update, run_update, twi_free},
    {"ResourceApplyAdagrad", "cuda", FLOATS, prepare_update, run_update, twi_free, .accepts = accepts_adagrad},
    {"ResourceApplyAdagradV2", "cuda", FLOATS, prepare_update, run_update, twi_free, .accepts = accepts_adagrad},
    {"ResourceApplyAdam", "cuda", FLOATS, prepare_update, run_update, twi_free},
    {"ResourceApplyRMSProp", "cuda", FLOATS, prepare_update, run_update, twi_free},
    {"_ApplyMany", "cuda", FLOATS, prepare_update_many, run_update, twi_free},
    {"_ApplyAveragedMany", "cuda", FLOATS, prepare_update_many, run_update, twi_free},
    {"_ApplyGradientDescentMany", "cuda", FLOATS, prepare_update_many, run_update, twi_free},
    {"_MovingAverageMany", "cuda", TWI_TYPE(TW_FLOAT32), prepare_update_many, run_update, twi_free},
    {0},
};

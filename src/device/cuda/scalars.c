/* scalars.c - the row of joint arithmetic on scalars: a node's attributes become what the kernel works off. */
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"
#include "tensor/tensor.h"

#define UNARY(number, op, types, expression) {op, TWI_CUDA_SCALAR_UNARY, TWI_CUDA_##number},
#define BINARY(number, op, types, expression) {op, TWI_CUDA_SCALAR_BINARY, TWI_CUDA_##number},
#define COMPARE(number, op, types, expression) {op, TWI_CUDA_SCALAR_COMPARE, TWI_CUDA_##number},
#define TEST(number, op, types, expression) {op, TWI_CUDA_SCALAR_TEST, TWI_CUDA_##number},

static const struct {
    const char *op;
    uint8_t kind, number;
} known[] = {
    TWI_CUDA_UNARY_LIST(UNARY)
    TWI_CUDA_BINARY_LIST(BINARY)
    TWI_CUDA_COMPARE_LIST(COMPARE)
    TWI_CUDA_TEST_LIST(TEST)
    {"Cast", TWI_CUDA_SCALAR_CAST, 0},
    {"Select", TWI_CUDA_SCALAR_SELECT, 0},
    {"SelectV2", TWI_CUDA_SCALAR_SELECT, 0},
    {"AddN", TWI_CUDA_SCALAR_ADD_N, 0},
};

/* The op, by its place in device/fused/scalars.h. */
static bool find_op(int64_t place, twi_cuda_scalar_step *step)
{
    for (size_t i = 0; i < sizeof known / sizeof *known && place >= 0 && place < TWI_SCALAR_OPS; i++)
        if (strcmp(known[i].op, twi_scalar_ops[place].op) == 0) {
            step->kind = known[i].kind;
            step->op = known[i].number;
            return true;
        }
    return false;
}

static uint8_t slot_of(const twi_cuda_scalars *s, int64_t number)
{
    return (uint8_t)(number >= 0 ? number : s->num_inputs + ~number);
}

/* A variable has the type of what will be written. */
static tw_dtype type_of(const twi_prepare *p, const twi_cuda_scalars *s, uint8_t slot)
{
    if (slot >= s->num_inputs)
        return (tw_dtype)s->steps[slot - s->num_inputs].to;
    const twi_operand *input = &p->inputs[slot];
    return input->dtype == TW_RESOURCE && input->resource ? input->resource->dtype : input->dtype;
}

/* Operands are given before the steps that want them, and so are their levels known. */
static void lay_step(const twi_prepare *p, twi_cuda_scalars *s, twi_cuda_scalar_step *step)
{
    for (int i = 0; i < step->count; i++) {
        uint8_t slot = s->operands[step->first + i];
        int level = slot < s->num_inputs ? 0 : s->steps[slot - s->num_inputs].level + 1;
        step->level = level > step->level ? (uint8_t)level : step->level;
    }
    step->type = (uint8_t)type_of(p, s, s->operands[step->first + step->count - 1]);
    if (step->level >= s->num_levels)
        s->num_levels = step->level + 1;
}

static void lay_results(const twi_prepare *p, twi_cuda_scalars *s, const char *attr)
{
    int count;
    const int64_t *numbers = twi_attr_ints(p->attrs, attr, &count);
    for (int i = 0; i < count; i++) {
        uint8_t slot = slot_of(s, numbers[i]);
        s->result_slots[s->num_results] = slot;
        s->result_bytes[s->num_results++] = (uint8_t)tw_dtype_size(type_of(p, s, slot));
    }
}

static tw_status prepare(twi_prepare *p)
{
    int steps, num_operands, variables = (int)twi_attr_int(p->attrs, "N", 0);
    const int64_t *ops = twi_attr_ints(p->attrs, "ops", &steps), *counts = twi_attr_ints(p->attrs, "counts", &steps);
    const int64_t *operands = twi_attr_ints(p->attrs, "operands", &num_operands);
    const tw_dtype *types = twi_attr_find(p->attrs, "types")->types;
    twi_cuda_scalars s = {.num_inputs = p->num_inputs};
    if (p->num_inputs > TWI_SCALARS_INPUTS || steps > TWI_SCALARS_STEPS || num_operands > TWI_SCALARS_OPERANDS ||
        p->num_outputs + variables > TWI_SCALARS_RESULTS)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%d inputs, %d steps, %d operands and %d results are too many",
                        p->num_inputs, steps, num_operands, p->num_outputs + variables);
    for (int i = 0; i < num_operands; i++)
        s.operands[i] = slot_of(&s, operands[i]);
    for (int i = 0, first = 0; i < steps; first += (int)counts[i++]) {
        twi_cuda_scalar_step *step = &s.steps[s.num_steps++];
        *step = (twi_cuda_scalar_step){.to = (uint8_t)types[i], .first = (uint8_t)first, .count = (uint8_t)counts[i]};
        if (!find_op(ops[i], step))
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "step %d has op number %lld, expected 0 to %d", i,
                            (long long)ops[i], TWI_SCALAR_OPS - 1);
        lay_step(p, &s, step);
    }
    for (int i = 0; i < p->num_inputs; i++)
        s.input_bytes[i] = (uint8_t)tw_dtype_size(type_of(p, &s, (uint8_t)i));
    lay_results(p, &s, "results");
    lay_results(p, &s, "writes");
    return twi_keep(p, &s, sizeof s);
}

static tw_status run(const twi_run *r)
{
    twi_cuda_scalars s = *(const twi_cuda_scalars *)r->state;
    int writes = s.num_results - r->num_outputs;
    memcpy(s.inputs, r->inputs, sizeof *s.inputs * (size_t)r->num_inputs);
    memcpy(s.results, r->outputs, sizeof *s.results * (size_t)r->num_outputs);
    for (int i = 0; i < writes; i++)
        s.results[r->num_outputs + i] = (void *)r->inputs[r->num_inputs - writes + i];
    return TWI_LAUNCH(r, twi_cuda_scalars_run(r->stream, &s));
}

const twi_kernel twi_cuda_scalar_kernels[] = {
    {"_Scalars", "cuda", 0, prepare, run, twi_free},
    {0},
};

/* select.c - choosing between two arrays, element by element: Select and SelectV2. */
#include "device/cpu/move.h"

#include <string.h>

/* Three inputs that meet in one shape. Steps are in elements, 0 where an input is repeated. */
typedef struct meeting {
    tw_shape shape;
    int64_t steps[3][TW_MAX_RANK];
} meeting;

/* Axis i of the input's shape is axis i + shift of the output's. */
static void lay_steps(const tw_shape *input, int shift, tw_shape out, int64_t steps[TW_MAX_RANK])
{
    int64_t strides[TW_MAX_RANK];
    twi_row_major(*input, strides);
    for (int i = 0; i < out.rank; i++) {
        int own = i - shift;
        steps[i] = own < 0 || own >= input->rank || input->dims[own] == 1 ? 0 : strides[own];
    }
}

static meeting meet(const twi_run *r, bool by_first_axis)
{
    meeting m = {.shape = r->output_operands[0].shape};
    for (int i = 0; i < 3; i++) {
        const tw_shape *shape = &r->input_operands[i].shape;
        lay_steps(shape, i == 0 && by_first_axis ? 0 : m.shape.rank - shape->rank, m.shape, m.steps[i]);
    }
    return m;
}

static tw_status choose(const twi_run *r, const meeting *m)
{
    const twi_operand *y = &r->output_operands[0];
    const uint8_t *condition = r->inputs[0];
    const char *const inputs[3] = {NULL, r->inputs[1], r->inputs[2]};
    size_t size = tw_dtype_size(y->dtype);
    int64_t index[TW_MAX_RANK] = {0}, at[3] = {0};
    char *to = r->outputs[0];
    for (int64_t n = 0; n < y->elements; n++, to += size) {
        int chosen = condition[at[0]] ? 1 : 2;
        const char *from = inputs[chosen] + (size_t)at[chosen] * size;
        if (y->dtype == TW_STRING) {
            tw_status status = twi_fill_elements(r, 1, TW_STRING, from, to);
            if (status != TW_OK)
                return status;
        } else {
            memcpy(to, from, size);
        }
        for (int i = m->shape.rank - 1; i >= 0; i--) {
            bool wraps = ++index[i] == m->shape.dims[i];
            for (int k = 0; k < 3; k++)
                at[k] += wraps ? m->steps[k][i] * (1 - index[i]) : m->steps[k][i];
            if (!wraps)
                break;
            index[i] = 0;
        }
    }
    return TW_OK;
}

/* A condition of one axis chooses whole rows of more. */
static tw_status run_select(const twi_run *r)
{
    int own = r->input_operands[0].shape.rank;
    meeting m = meet(r, own == 1 && r->output_operands[0].shape.rank > 1);
    return choose(r, &m);
}

static tw_status run_select_v2(const twi_run *r)
{
    meeting m = meet(r, false);
    return choose(r, &m);
}

static tw_status prepare(twi_prepare *p)
{
    for (int i = 1; i <= 2; i++)
        p->can_overwrite[i] =
            p->outputs[0].dtype != TW_STRING && tw_shape_equal(p->inputs[i].shape, p->outputs[0].shape);
    return TW_OK;
}

const twi_kernel twi_cpu_select_kernels[] = {
    {"Select", "plain", TWI_MOVED_TYPES, prepare, run_select, NULL},
    {"SelectV2", "plain", TWI_MOVED_TYPES, prepare, run_select_v2, NULL},
    {0},
};

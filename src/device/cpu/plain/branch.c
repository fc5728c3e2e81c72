/* branch.c - which branches of a plan run. */
#include "base/memory.h"
#include "device/device.h"

static tw_status prepare_guard(twi_prepare *p)
{
    int count;
    const int64_t *values = twi_attr_ints(p->attrs, "values", &count);
    return count == p->num_inputs ? twi_keep(p, values, sizeof *values * (size_t)count)
                                  : twi_fail(p->error, TW_INTERNAL, "'%s' has %d values", p->node, count);
}

/* A predicate of a branch that was not taken has none; then another, which is its own guard's, does not hold. */
static tw_status run_guard(const twi_run *r)
{
    const int64_t *values = r->state;
    bool holds = true;
    for (int i = 0; i < r->num_inputs && holds; i++)
        holds = (*(const unsigned char *)r->inputs[i] != 0) == (values[i] != 0);
    *(bool *)r->outputs[0] = holds;
    return TW_OK;
}

static tw_status prepare_which(twi_prepare *p)
{
    int count;
    const int64_t *numbers = twi_attr_ints(p->attrs, "numbers", &count);
    return count == p->num_inputs + 1 ? twi_keep(p, numbers, sizeof *numbers * (size_t)count)
                                      : twi_fail(p->error, TW_INTERNAL, "'%s' has %d numbers", p->node, count);
}

static tw_status run_which(const twi_run *r)
{
    const int64_t *numbers = r->state;
    int i = r->num_inputs;
    while (i > 0 && !*(const uint8_t *)r->inputs[i - 1])
        i--;
    *(int32_t *)r->outputs[0] = (int32_t)numbers[i];
    return TW_OK;
}

const twi_kernel twi_cpu_branch_kernels[] = {
    {"_Guard", "plain", 0, prepare_guard, run_guard, twi_free},
    {"_Which", "plain", 0, prepare_which, run_which, twi_free},
    {0},
};

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

static tw_status run_which(const twi_run *r)
{
    int32_t i = 0;
    while (i < r->num_inputs - 1 && !*(const uint8_t *)r->inputs[i])
        i++;
    *(int32_t *)r->outputs[0] = i;
    return TW_OK;
}

const twi_kernel twi_cpu_branch_kernels[] = {
    {"_Guard", "plain", 0, prepare_guard, run_guard, twi_free},
    {"_Which", "plain", 0, NULL, run_which},
    {0},
};

/* vector_update.c - the update of many variables in one pass of the team (row "fused"), and plainly.
 * Lives here:  _ApplyGradientDescentMany (vars, alpha, deltas) on float.
 * Never here:  updates of one variable (state.c). */
#include "base/memory.h"
#include "device/cpu/loops.h"
#include "device/kernel.h"

typedef struct update {
    int count;
    int64_t chunks;
    int64_t numbers[]; /* elements [count], first chunks [count + 1] */
} update;

/* Gradients have the shapes of their variables, which are float. */
static tw_status check(twi_prepare *p)
{
    char text[2][128];
    int count = (p->num_inputs - 1) / 2;
    for (int i = 0; i < count; i++) {
        const twi_operand *var = &p->inputs[i], *delta = &p->inputs[count + 1 + i];
        if ((var->resource && var->resource->dtype != TW_FLOAT32) || !tw_shape_equal(var->shape, delta->shape))
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': variable %d has shape %s, its gradient %s%s", p->op,
                            p->node, i, tw_shape_text(var->shape, text[0], sizeof text[0]),
                            tw_shape_text(delta->shape, text[1], sizeof text[1]),
                            var->resource && var->resource->dtype != TW_FLOAT32 ? "; it is not float" : "");
    }
    return TW_OK;
}

static tw_status plain_run(const twi_run *r)
{
    int count = (r->num_inputs - 1) / 2;
    float alpha = *(const float *)r->inputs[count];
    for (int v = 0; v < count; v++) {
        float *var = (float *)r->inputs[v];
        const float *delta = r->inputs[count + 1 + v];
        for (int64_t i = 0; i < r->input_operands[v].elements; i++)
            var[i] -= alpha * delta[i];
    }
    return TW_OK;
}

static tw_status fused_prepare(twi_prepare *p)
{
    int count = (p->num_inputs - 1) / 2;
    tw_status status = check(p);
    if (status != TW_OK)
        return status;
    update *u = twi_alloc(sizeof *u + (size_t)(2 * count + 1) * sizeof u->numbers[0]);
    if (!u)
        return twi_fail_memory(p->error, p->node);
    u->count = count;
    for (int v = 0; v < count; v++) {
        int64_t elements = p->inputs[count + 1 + v].elements;
        u->numbers[v] = elements;
        u->numbers[count + v] = u->chunks;
        u->chunks += (elements + TWI_CHUNK - 1) / TWI_CHUNK;
    }
    u->numbers[2 * count] = u->chunks;
    p->state = u;
    return TW_OK;
}

static tw_status fused_run(const twi_run *r)
{
    const update *u = r->state;
    twi_descent_job job = {
        .rate = *(const float *)r->inputs[u->count],
        .count = u->count,
        .elements = u->numbers,
        .first_chunk = u->numbers + u->count,
        .vars = r->inputs,
        .deltas = r->inputs + u->count + 1,
    };
    twi_team_run(r->threads, twi_loops_best()->descend, &job, u->chunks);
    return TW_OK;
}

const twi_kernel twi_vector_update_kernels[] = {
    {"_ApplyGradientDescentMany", "fused", TWI_TYPE(TW_FLOAT32), fused_prepare, fused_run, twi_free},
    {"_ApplyGradientDescentMany", "plain", TWI_TYPE(TW_FLOAT32), check, plain_run, NULL},
    {0},
};

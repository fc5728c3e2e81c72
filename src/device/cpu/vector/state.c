/* state.c - what is done to many variables alike, in one pass of the team (rows "fused"), and plainly.
 * Lives here:  _ApplyGradientDescentMany (vars, alpha, deltas, decays), _MovingAverageMany (averages, weight, values).
 * Never here:  updates of one variable (plain/state.c).
 *
 * Rounding is that of the ops these stand for, so the bits are theirs. */
#include "base/memory.h"
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

#include <string.h>

typedef struct update {
    int count, towers;               /* values: of each tower one for each variable */
    float scale;                     /* of the sum of two towers */
    bool has_decays;
    int64_t chunks;
    int64_t *elements, *first_chunk; /* [count], [count + 1]; behind the struct */
    const float **decays;            /* [towers][count], filled in by run() where decays_var[] says */
    bool *decays_var;                /* [towers][count] */
} update;

/* Values have the shapes of their variables, which are float. */
static tw_status check(const twi_prepare *p, int count, int towers)
{
    char text[2][128];
    for (int i = 0; i < towers * count; i++) {
        const twi_operand *var = &p->inputs[i % count], *value = &p->inputs[count + 1 + i];
        if (var->resource && var->resource->dtype != TW_FLOAT32)
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': variable '%s' is %s, not float", p->op, p->node,
                            var->resource->name, tw_dtype_name(var->resource->dtype));
        if (!tw_shape_equal(var->shape, value->shape))
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': variable %d has shape %s, what goes into it %s",
                            p->op, p->node, i % count, tw_shape_text(var->shape, text[0], sizeof text[0]),
                            tw_shape_text(value->shape, text[1], sizeof text[1]));
    }
    return TW_OK;
}

static bool is_known_zero(const twi_operand *operand)
{
    return operand->value && tw_tensor_dtype(operand->value) == TW_FLOAT32 && tw_tensor_value(operand->value, 0) == 0;
}

static tw_status prepare(twi_prepare *p)
{
    size_t count = (size_t)twi_attr_int(p->attrs, "N", 0), values = (size_t)twi_attr_int(p->attrs, "M", (int64_t)count);
    tw_status status = check(p, (int)count, (int)(values / count));
    if (status != TW_OK)
        return status;
    update *u = twi_alloc(sizeof *u + (2 * count + 1) * sizeof(int64_t) + values * (sizeof(float *) + sizeof(bool)));
    if (!u)
        return twi_fail_memory(p->error, p->node);
    *u = (update){
        .count = (int)count,
        .towers = (int)(values / count),
        .scale = twi_attr_float(p->attrs, "scale", 1),
        .has_decays = p->num_inputs > (int)(count + 1 + values),
    };
    u->elements = (int64_t *)(u + 1);
    u->first_chunk = u->elements + count;
    u->decays = (const float **)(u->first_chunk + count + 1);
    u->decays_var = (bool *)(u->decays + values);
    for (size_t v = 0; v < count; v++) {
        u->elements[v] = p->inputs[count + 1 + v].elements;
        u->first_chunk[v] = u->chunks;
        u->chunks += (u->elements[v] + TWI_CHUNK - 1) / TWI_CHUNK;
    }
    u->first_chunk[count] = u->chunks;
    for (size_t i = 0; i < values; i++)
        u->decays_var[i] = u->has_decays && !is_known_zero(&p->inputs[count + 1 + values + i]);
    p->state = u;
    return TW_OK;
}

static void find_decays(const twi_run *r, update *u)
{
    int values = u->towers * u->count;
    for (int i = 0; i < values; i++)
        u->decays[i] = u->decays_var[i] ? r->inputs[u->count + 1 + values + i] : NULL;
}

static tw_status run_fused(const twi_run *r)
{
    update *u = r->state;
    find_decays(r, u);
    twi_update_job job = {
        .rate = *(const float *)r->inputs[u->count],
        .scale = u->scale,
        .count = u->count,
        .towers = u->towers,
        .elements = u->elements,
        .first_chunk = u->first_chunk,
        .vars = r->inputs,
        .values = r->inputs + u->count + 1,
        .decays = u->decays,
    };
    const twi_loops *loops = twi_loops_best();
    twi_team_run(r->threads, u->has_decays ? loops->descend : loops->follow, &job, u->chunks);
    return TW_OK;
}

/* Element i of a variable's gradient in one tower, or of what an average follows. */
static float value_of(const twi_run *r, const update *u, int tower, int v, int64_t i)
{
    int k = tower * u->count + v;
    const float *var = r->inputs[v], *value = r->inputs[u->count + 1 + k];
    return u->decays[k] ? value[i] + *u->decays[k] * var[i] : value[i];
}

static tw_status run_plain(const twi_run *r)
{
    update *u = r->state;
    find_decays(r, u);
    float rate = *(const float *)r->inputs[u->count];
    for (int v = 0; v < u->count; v++) {
        float *var = (float *)r->inputs[v];
        for (int64_t i = 0; i < u->elements[v]; i++) {
            float value = value_of(r, u, 0, v, i);
            if (u->towers == 2)
                value = (value + value_of(r, u, 1, v, i)) * u->scale;
            var[i] -= u->has_decays ? rate * value : (var[i] - value) * rate;
        }
    }
    return TW_OK;
}

const twi_kernel twi_vector_state_kernels[] = {
    {"_ApplyGradientDescentMany", "fused", TWI_TYPE(TW_FLOAT32), prepare, run_fused, twi_free},
    {"_MovingAverageMany", "fused", TWI_TYPE(TW_FLOAT32), prepare, run_fused, twi_free},
    {"_ApplyGradientDescentMany", "plain", TWI_TYPE(TW_FLOAT32), prepare, run_plain, twi_free},
    {"_MovingAverageMany", "plain", TWI_TYPE(TW_FLOAT32), prepare, run_plain, twi_free},
    {0},
};

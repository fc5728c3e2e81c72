/* random.c - see random.h. */
#include "device/state/random.h"

#include <sys/random.h>

static void store_philox(twi_resource *stream, const twi_philox *philox)
{
    stream->counters[0] = (int64_t)(philox->key[0] | (uint64_t)philox->key[1] << 32);
    stream->counters[1] = (int64_t)(philox->counter[0] | (uint64_t)philox->counter[1] << 32);
    stream->counters[2] = (int64_t)(philox->counter[2] | (uint64_t)philox->counter[3] << 32);
}

/* The generator whose counter and key these words are. */
static twi_philox philox_of(uint64_t low, uint64_t high, uint64_t key)
{
    return (twi_philox){.counter = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)},
                        .key = {(uint32_t)key, (uint32_t)(key >> 32)}};
}

static twi_philox load_philox(const twi_resource *stream)
{
    return philox_of((uint64_t)stream->counters[1], (uint64_t)stream->counters[2], (uint64_t)stream->counters[0]);
}

void twi_random_restart(twi_resource *stream, uint64_t seed, uint64_t seed2)
{
    twi_philox philox = twi_philox_seed(seed, seed2);
    while (atomic_exchange_explicit(&stream->counting, true, memory_order_acquire))
        ;
    if (stream->num_counters)
        store_philox(stream, &philox);
    atomic_store_explicit(&stream->counting, false, memory_order_release);
}

twi_philox twi_random_take(twi_resource *stream, uint64_t blocks)
{
    while (atomic_exchange_explicit(&stream->counting, true, memory_order_acquire))
        ; /* for the few instructions that follow */
    twi_philox here = load_philox(stream), next = here;
    twi_philox_skip(&next, blocks);
    store_philox(stream, &next);
    atomic_store_explicit(&stream->counting, false, memory_order_release);
    return here;
}

tw_status twi_random_find(twi_prepare *p, twi_resource **found)
{
    if (!p->resources)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s '%s' is random and cannot be computed in advance", p->op,
                        p->node);
    twi_resource *stream = p->resources->get(p->resources, p->node);
    if (!stream)
        return twi_fail_memory(p->error, p->node);
    *found = stream;
    p->varies = true;
    if (stream->num_counters)
        return TW_OK;
    uint64_t seeds[2] = {(uint64_t)twi_attr_int(p->attrs, "seed", 0), (uint64_t)twi_attr_int(p->attrs, "seed2", 0)};
    if (!seeds[0] && !seeds[1] && getrandom(seeds, sizeof seeds, 0) != sizeof seeds)
        return twi_fail(p->error, TW_UNAVAILABLE, "%s '%s': the system gave no random seed", p->op, p->node);
    twi_philox philox = twi_philox_seed(seeds[0], seeds[1]);
    store_philox(stream, &philox);
    stream->num_counters = 3;
    return TW_OK;
}

tw_status twi_random_prepare(twi_prepare *p)
{
    twi_resource *stream = NULL;
    tw_status status = twi_random_find(p, &stream);
    p->state = stream;
    return status;
}

twi_philox twi_random_seeded(const twi_run *r, int input)
{
    tw_dtype dtype = r->input_operands[input].dtype;
    const void *given = r->inputs[input];
    uint64_t seeds[2];
    uint32_t mixed[4];
    for (int i = 0; i < 2; i++)
        seeds[i] = tw_dtype_size(dtype) == 8 ? ((const uint64_t *)given)[i]
                   : dtype == TW_UINT32    ? ((const uint32_t *)given)[i]
                                           : (uint64_t)(int64_t)((const int32_t *)given)[i];
    twi_philox philox = {.counter = {(uint32_t)seeds[0], (uint32_t)(seeds[0] >> 32), (uint32_t)seeds[1],
                                     (uint32_t)(seeds[1] >> 32)},
                         .key = {0x3ec8f720, 0x02461e29}};
    twi_philox_next(&philox, mixed);
    return (twi_philox){.counter = {0, 0, mixed[2], mixed[3]}, .key = {mixed[0], mixed[1]}};
}

tw_status twi_random_keyed(const twi_run *r, twi_philox *start)
{
    const uint64_t *key = r->inputs[1], *counter = r->inputs[2];
    int32_t algorithm = *(const int32_t *)r->inputs[3];
    *start = philox_of(counter[0], counter[1], key[0]);
    if (algorithm == TWI_PHILOX || algorithm == TWI_ANY_ALGORITHM)
        return TW_OK;
    return twi_fail(r->error, algorithm == TWI_THREEFRY ? TW_UNIMPLEMENTED : TW_INVALID_ARGUMENT,
                    "alg is %d, expected %d (Philox) or %d (any) (%s)", (int)algorithm, TWI_PHILOX, TWI_ANY_ALGORITHM,
                    r->node);
}

tw_status twi_random_prepare_kept(twi_prepare *p)
{
    const twi_resource *state = p->inputs[0].resource;
    if (!state || state->dtype != TW_INT64 || tw_shape_elements(state->shape) < 3)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': the state must have 3 int64 or more", p->op, p->node);
    return TW_OK;
}

tw_status twi_random_kept(const twi_run *r, uint64_t blocks, twi_philox *start)
{
    uint64_t *state = (uint64_t *)(uintptr_t)r->inputs[0];
    int64_t algorithm =
        r->input_operands[1].dtype == TW_INT64 ? *(const int64_t *)r->inputs[1] : *(const int32_t *)r->inputs[1];
    if (algorithm != TWI_PHILOX && algorithm != TWI_ANY_ALGORITHM)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': algorithm %lld is not Philox (1)", r->node,
                        (long long)algorithm);
    *start = philox_of(state[0], state[1], state[2]);
    state[0] += blocks;
    state[1] += state[0] < blocks;
    return TW_OK;
}

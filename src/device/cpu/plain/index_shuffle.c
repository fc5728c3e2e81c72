/* index_shuffle.c - RandomIndexShuffle: where an index comes to lie when all up to the largest are shuffled, found for
 * it alone. The cipher Simon (https://eprint.iacr.org/2013/404) is a permutation of all words of some bits; who leaves
 * the range is sent on until it is back. */
#include "base/memory.h"
#include "device/cpu/plain/move.h"

#include <math.h>

/* One shuffle: words of 2 * bits, so many rounds (an even number), each with its key. */
typedef struct cipher {
    int bits;
    uint32_t mask; /* of half a word */
    int64_t rounds;
    uint32_t *keys;
} cipher;

static inline uint32_t turned(const cipher *c, uint32_t x, int left)
{
    return ((uint32_t)((uint64_t)x << left) | x >> (c->bits - left)) & c->mask;
}

static inline uint32_t mixed(const cipher *c, uint32_t x)
{
    return (turned(c, x, 1) & turned(c, x, 8)) ^ turned(c, x, 2);
}

/* The rounds' keys: the first three are given, the others made of the three before. */
static void make_keys(cipher *c, const uint32_t given[3])
{
    uint64_t constants = UINT64_C(0x7369f885192c0ef5) & c->mask;
    for (int64_t i = 0; i < c->rounds; i++) {
        if (i < 3) {
            c->keys[i] = given[i] & c->mask;
            continue;
        }
        uint32_t last = c->keys[i - 1];
        c->keys[i] = (0xfffffffc & c->mask) ^ (uint32_t)(constants & 1) ^ c->keys[i - 3] ^
                     turned(c, last, c->bits - 3) ^ turned(c, last, c->bits - 4);
        constants >>= 1;
    }
}

static uint64_t encipher(const cipher *c, uint64_t word)
{
    uint32_t left = (uint32_t)(word >> c->bits) & c->mask, right = (uint32_t)word & c->mask;
    for (int64_t i = 0; i < c->rounds; i += 2) {
        left ^= mixed(c, right) ^ c->keys[i];
        right ^= mixed(c, left) ^ c->keys[i + 1];
    }
    return (uint64_t)left << c->bits | right;
}

/* Bits as TensorFlow counts them: an even number, 16 or more, of which 2^k itself needs k. */
static uint64_t shuffled(cipher *c, const uint32_t given[3], uint64_t index, uint64_t most)
{
    enum { LEAST = 16 };
    int bits = most ? (int)ceil(log2((double)most)) : 0;
    bits += bits % 2;
    c->bits = (bits < LEAST ? LEAST : bits) / 2;
    c->mask = UINT32_MAX >> (32 - c->bits);
    make_keys(c, given);
    do
        index = encipher(c, index);
    while (index > most);
    return index;
}

static bool is_negative(const twi_run *r, int input, int64_t i)
{
    tw_dtype dtype = r->input_operands[input].dtype;
    return (dtype == TW_INT32 || dtype == TW_INT64) && twi_input_int(r, input, i) < 0;
}

static tw_status run(const twi_run *r)
{
    const twi_operand *in = r->input_operands, *out = &r->output_operands[0];
    cipher c = {.rounds = *(const int64_t *)r->state, .keys = r->workspace};
    uint32_t given[3];
    for (int64_t i = 0; i < out->elements; i++) {
        int64_t at = in[0].shape.rank ? i : 0, last = in[2].shape.rank ? i : 0;
        uint64_t index = (uint64_t)twi_input_int(r, 0, at), most = (uint64_t)twi_input_int(r, 2, last);
        if (is_negative(r, 0, at))
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': index must be >= 0 but was %lld", r->node,
                            (long long)index);
        if (is_negative(r, 2, last) || most < index)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': max_index must be >= index, but %lld < %lld", r->node,
                            (long long)most, (long long)index);
        for (int k = 0; k < 3; k++)
            given[k] = (uint32_t)twi_input_int(r, 1, (in[1].shape.rank == 2 ? 3 * i : 0) + k);
        index = shuffled(&c, given, index, most);
        if (tw_dtype_size(out->dtype) == 8)
            ((uint64_t *)r->outputs[0])[i] = index;
        else
            ((uint32_t *)r->outputs[0])[i] = (uint32_t)index;
    }
    return TW_OK;
}

static tw_status prepare(twi_prepare *p)
{
    int64_t rounds = twi_attr_int(p->attrs, "rounds", 4);
    p->workspace = (size_t)rounds * sizeof(uint32_t);
    return twi_keep(p, &rounds, sizeof rounds);
}

const twi_kernel twi_cpu_index_shuffle_kernels[] = {
    {"RandomIndexShuffle", "plain", 0, prepare, run, twi_free},
    {0},
};

/* index_shuffle.c - RandomIndexShuffle: where an index comes to lie when all up to the largest are shuffled, found for
 * it alone. The cipher Simon (https://eprint.iacr.org/2013/404) is a permutation of all words of some bits; who leaves
 * the range is sent on until it is back. */
#include "base/memory.h"
#include "device/cpu/plain/move.h"

#include <math.h>

/* One shuffle: words of 2 * bits, so many rounds. */
typedef struct cipher {
    int bits;
    int64_t rounds;
    uint32_t key[3];
} cipher;

static uint32_t part(const cipher *c, uint64_t x)
{
    return (uint32_t)(c->bits == 32 ? x : x & ((UINT64_C(1) << c->bits) - 1));
}

static uint32_t turned(const cipher *c, uint32_t x, int left)
{
    return part(c, (uint64_t)x << left | x >> (c->bits - left));
}

static uint32_t mixed(const cipher *c, uint32_t x)
{
    return (turned(c, x, 1) & turned(c, x, 8)) ^ turned(c, x, 2);
}

static uint64_t encipher(const cipher *c, uint64_t word)
{
    uint32_t left = part(c, word >> c->bits), right = part(c, word), keys[4];
    uint64_t constants = UINT64_C(0x7369f885192c0ef5) & (c->bits == 32 ? UINT32_MAX : (UINT64_C(1) << c->bits) - 1);
    for (int i = 0; i < 3; i++)
        keys[i] = part(c, c->key[i]);
    for (int64_t i = 0; i < c->rounds; i++) {
        if (i >= 3) { /* this round's key, of the three before */
            uint32_t last = keys[(i - 1) % 4];
            keys[i % 4] = part(c, 0xfffffffc) ^ (uint32_t)(constants & 1) ^ keys[(i - 3) % 4] ^
                          turned(c, last, c->bits - 3) ^ turned(c, last, c->bits - 4);
            constants >>= 1;
        }
        uint32_t *to = i % 2 ? &right : &left;
        *to ^= mixed(c, i % 2 ? left : right) ^ keys[i % 4];
    }
    return (uint64_t)left << c->bits | right;
}

/* Bits as TensorFlow counts them: an even number, 16 or more, of which 2^k itself needs k. */
static uint64_t shuffled(cipher *c, uint64_t index, uint64_t most)
{
    enum { LEAST = 16 };
    int bits = most ? (int)ceil(log2((double)most)) : 0;
    bits += bits % 2;
    c->bits = (bits < LEAST ? LEAST : bits) / 2;
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
    cipher c = {.rounds = *(const int64_t *)r->state};
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
            c.key[k] = (uint32_t)twi_input_int(r, 1, (in[1].shape.rank == 2 ? 3 * i : 0) + k);
        index = shuffled(&c, index, most);
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
    return twi_keep(p, &rounds, sizeof rounds);
}

const twi_kernel twi_cpu_index_shuffle_kernels[] = {
    {"RandomIndexShuffle", "plain", 0, prepare, run, twi_free},
    {0},
};

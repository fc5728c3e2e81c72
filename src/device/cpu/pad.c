/* pad.c - borders around arrays: constants, and mirrors of what lies inside. */
#include "device/cpu/move.h"
#include "device/cpu/typed.h"

#include <string.h>

/* How much lies before each axis of the smaller array within the larger one. */
static tw_status read_paddings(const twi_run *r, tw_shape small, tw_shape large, int64_t before[TW_MAX_RANK])
{
    for (int i = 0; i < small.rank; i++) {
        int64_t after = twi_input_int(r, 1, 2 * i + 1);
        before[i] = twi_input_int(r, 1, 2 * i);
        if (before[i] < 0 || after < 0 || before[i] > large.dims[i] - small.dims[i] ||
            after != large.dims[i] - small.dims[i] - before[i])
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "paddings %lld and %lld of axis %d, expected %lld in all",
                            (long long)before[i], (long long)after, i, (long long)(large.dims[i] - small.dims[i]));
    }
    return TW_OK;
}

static tw_status run_pad(const twi_run *r)
{
    const twi_operand *x = &r->input_operands[0], *y = &r->output_operands[0];
    int64_t before[TW_MAX_RANK], from[TW_MAX_RANK], to[TW_MAX_RANK];
    int64_t start = 0;
    twi_move move = {0};
    tw_status status;
    TWI_TRY(read_paddings(r, x->shape, y->shape, before));
    if (r->num_inputs > 2)
        TWI_TRY(twi_fill_elements(r, y->elements, y->dtype, r->inputs[2], r->outputs[0]));
    else
        TWI_TRY(twi_clear_elements(r, y->elements, y->dtype, r->outputs[0]));
    twi_row_major(x->shape, from);
    twi_row_major(y->shape, to);
    for (int i = 0; i < x->shape.rank; i++) {
        start += before[i] * to[i];
        twi_move_axis(&move, x->shape.dims[i], from[i], to[i]);
    }
    status = twi_move_elements(r, &move, x->dtype, r->inputs[0], twi_element_of_output(r->outputs[0], x->dtype, start));
done:
    return status;
}

/* A large array whose border mirrors a small one within it. skip 1: the edge itself is not repeated (REFLECT). */
typedef struct mirror {
    int rank;
    int64_t small[TW_MAX_RANK], large[TW_MAX_RANK], before[TW_MAX_RANK], strides[TW_MAX_RANK];
    int64_t skip;
} mirror;

/* Which element of the small array element i of the large one shows. */
static int64_t mirrored(const mirror *m, int64_t i)
{
    int64_t at = 0;
    for (int k = m->rank - 1; k >= 0; k--) {
        int64_t place = i % m->large[k] - m->before[k], size = m->small[k];
        i /= m->large[k];
        if (place < 0)
            place = -place - 1 + m->skip;
        else if (place >= size)
            place = 2 * size - 1 - place - m->skip;
        at += place * m->strides[k];
    }
    return at;
}

static tw_status lay_mirror(const twi_run *r, tw_shape small, tw_shape large, mirror *m)
{
    *m = (mirror){.rank = small.rank, .skip = (intptr_t)r->state};
    twi_row_major(small, m->strides);
    tw_status status = read_paddings(r, small, large, m->before);
    for (int i = 0; i < small.rank && status == TW_OK; i++) {
        m->small[i] = small.dims[i];
        m->large[i] = large.dims[i];
        int64_t after = large.dims[i] - small.dims[i] - m->before[i], most = small.dims[i] - m->skip;
        if (m->before[i] > most || after > most)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "paddings %lld and %lld of axis %d, expected at most %lld",
                            (long long)m->before[i], (long long)after, i, (long long)most);
    }
    return status;
}

static tw_status prepare_mirror(twi_prepare *p)
{
    p->state = (void *)(intptr_t)(strcmp(twi_attr_string(p->attrs, "mode", ""), "REFLECT") == 0);
    p->workspace = strcmp(p->op, "MirrorPadGrad") == 0 ? twi_widened_bytes(p) : 0;
    return TW_OK;
}

static tw_status run_mirror_pad(const twi_run *r)
{
    const twi_operand *x = &r->input_operands[0], *y = &r->output_operands[0];
    mirror m;
    tw_status status = lay_mirror(r, x->shape, y->shape, &m);
    for (int64_t i = 0; i < y->elements && status == TW_OK; i++)
        status = twi_fill_elements(r, 1, x->dtype, twi_element(r->inputs[0], x->dtype, mirrored(&m, i)),
                                   twi_element_of_output(r->outputs[0], x->dtype, i));
    return status;
}

#define BODY "device/cpu/mirror.inl"
#include "device/cpu/for_floats.h"
#include "device/cpu/for_integers.h"
#undef BODY

TWI_WIDENED(mirror_pad_grad)

const twi_kernel twi_cpu_pad_kernels[] = {
    {"Pad", "plain", TWI_MOVED_TYPES, NULL, run_pad, NULL},
    {"PadV2", "plain", TWI_MOVED_TYPES, NULL, run_pad, NULL},
    {"MirrorPad", "plain", TWI_MOVED_TYPES, prepare_mirror, run_mirror_pad, NULL},
    TWI_FLOAT_ROWS("MirrorPadGrad", prepare_mirror, mirror_pad_grad, NULL),
    TWI_INTEGER_ROWS("MirrorPadGrad", prepare_mirror, mirror_pad_grad, NULL),
    {0},
};

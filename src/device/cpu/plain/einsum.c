/* einsum.c - Einsum: a walk over the output's elements, for each over what both inputs have and the output has not, and
 * for each of these over what one input has alone: as in TensorFlow that is summed before anything is multiplied. Of an
 * output whose letters repeat those are on a diagonal, and all others are 0. */
#include "base/memory.h"
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/typed.h"
#include "device/fused/einsum.h"

/* State: labels in an order, the output's first, then those that both inputs have, the first's and the second's own,
 * with their sizes, and how far apart neighbours lie in each input and in the output. */
typedef struct walk {
    int num_output, num_common, num_first, num_labels; /* each with those before */
    bool is_diagonal;                                  /* a letter of the output repeats */
    int64_t size[TWI_EINSUM_LABELS], steps[3][TWI_EINSUM_LABELS]; /* steps[2]: of the output */
} walk;

static void add_label(walk *w, const twi_prepare *p, const twi_einsum *e, int label, bool seen[TWI_EINSUM_LABELS])
{
    int at = w->num_labels++;
    seen[label] = true;
    w->size[at] = 1;
    for (int i = 0; i < p->num_inputs; i++) {
        int64_t strides[TW_MAX_RANK];
        twi_row_major(p->inputs[i].shape, strides);
        for (int k = 0; k < e->inputs[i].rank; k++)
            if (e->inputs[i].labels[k] == label && p->inputs[i].shape.dims[k] != 1) {
                w->size[at] = p->inputs[i].shape.dims[k];
                w->steps[i][at] += strides[k]; /* a letter that repeats walks along the diagonal */
            }
    }
}

static void add_output(walk *w, const twi_prepare *p, const twi_einsum *e, bool seen[TWI_EINSUM_LABELS])
{
    int64_t strides[TW_MAX_RANK];
    int places[TWI_EINSUM_LABELS];
    twi_row_major(p->outputs[0].shape, strides);
    for (int k = 0; k < e->output.rank; k++) {
        int label = e->output.labels[k];
        w->is_diagonal |= seen[label];
        if (!seen[label]) {
            places[label] = w->num_labels;
            add_label(w, p, e, label, seen);
        }
        w->steps[2][places[label]] += strides[k];
    }
}

/* Those of an input that the other has, too, or has not. */
static void add_labels(walk *w, const twi_prepare *p, const twi_einsum *e, int input, bool common,
                       bool seen[TWI_EINSUM_LABELS])
{
    const twi_einsum_term *term = &e->inputs[input];
    for (int k = 0; k < term->rank; k++)
        if (!seen[term->labels[k]] && twi_einsum_has(&e->inputs[1 - input], term->labels[k]) == common)
            add_label(w, p, e, term->labels[k], seen);
}

static tw_status prepare(twi_prepare *p)
{
    twi_einsum e;
    walk w = {0};
    bool seen[TWI_EINSUM_LABELS] = {false};
    int ranks[2] = {p->inputs[0].shape.rank, p->num_inputs > 1 ? p->inputs[1].shape.rank : 0};
    const char *why = twi_einsum_read(&e, twi_attr_string(p->attrs, "equation", ""), p->num_inputs, ranks);
    if (why)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "Einsum '%s': %s", p->node, why);
    add_output(&w, p, &e, seen);
    w.num_output = w.num_labels;
    add_labels(&w, p, &e, 0, true, seen);
    w.num_common = w.num_labels;
    add_labels(&w, p, &e, 0, false, seen);
    w.num_first = w.num_labels;
    add_labels(&w, p, &e, 1, false, seen);
    p->workspace = twi_widened_bytes(p);
    return twi_keep(p, &w, sizeof w);
}

/* Whether one of the labels from `first` to before `end` has no elements. */
static bool is_empty(const walk *w, int first, int end)
{
    bool empty = false;
    for (int k = first; k < end; k++)
        empty = empty || w->size[k] == 0;
    return empty;
}

/* Adds to the places the next step of the labels from `first` to before `end`; false: that was the last. */
static bool advance(const walk *w, int first, int end, int64_t *at, int64_t places[3])
{
    for (int k = end; k-- > first;) {
        places[0] += w->steps[0][k];
        places[1] += w->steps[1][k];
        places[2] += w->steps[2][k];
        if (++at[k] < w->size[k])
            return true;
        at[k] = 0;
        places[0] -= w->size[k] * w->steps[0][k];
        places[1] -= w->size[k] * w->steps[1][k];
        places[2] -= w->size[k] * w->steps[2][k];
    }
    return false;
}

#define BODY "device/cpu/plain/einsum.inl"
#include "device/cpu/plain/for_floats.h"
#include "device/cpu/plain/for_integers.h"
#include "device/cpu/plain/for_complex.h"
#undef BODY

TWI_WIDENED(einsum)

const twi_kernel twi_cpu_einsum_kernels[] = {
    TWI_FLOAT_ROWS("Einsum", prepare, einsum, twi_free),
    {"Einsum", "plain", TWI_TYPE(TW_INT32), prepare, einsum_int32, twi_free},
    {"Einsum", "plain", TWI_TYPE(TW_INT64), prepare, einsum_int64, twi_free},
    TWI_COMPLEX_ROWS("Einsum", prepare, einsum, twi_free),
    {0},
};

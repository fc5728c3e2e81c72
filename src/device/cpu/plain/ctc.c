/* ctc.c - CTCLoss by the forward and backward variables of Graves, as logarithms in double. The labels of a sequence
 * stand between blanks, the last class: places 0, 2, 4... are blanks. */
#include "base/memory.h"
#include "device/kernel.h"

#include <math.h>
#include <string.h>

typedef struct ctc {
    bool collapses, merges, ignores;
} ctc;

/* One sequence. */
typedef struct sequence {
    const ctc *s;
    const int32_t *labels;
    int64_t num, steps, classes;
    double *log_y, *forward, *backward, *sums; /* [steps,classes], [steps,places] twice, [classes] */
} sequence;

static double log_add(double a, double b)
{
    double most = a > b ? a : b;
    return isinf(most) ? most : most + log1p(exp((a > b ? b : a) - most));
}

static int64_t class_at(const sequence *q, int64_t place)
{
    return place % 2 ? q->labels[place / 2] : q->classes - 1;
}

/* Whether a place may follow the one two before: between different labels the blank may be left out. */
static bool skips_to(const sequence *q, int64_t place)
{
    if (place < 2 || place % 2 == 0)
        return false;
    return !q->s->merges || class_at(q, place) != class_at(q, place - 2);
}

/* Whether a place may last longer than a step. */
static bool lasts(const sequence *q, int64_t place)
{
    return q->s->merges || place % 2 == 0;
}

static void go_forward(const sequence *q, int64_t places)
{
    for (int64_t t = 0; t < q->steps; t++)
        for (int64_t u = 0; u < places; u++) {
            const double *before = q->forward + (t - 1) * places;
            double sum = t == 0 ? (u < 2 ? 0 : -INFINITY) : -INFINITY;
            if (t && lasts(q, u))
                sum = before[u];
            if (t && u > 0)
                sum = log_add(sum, before[u - 1]);
            if (t && skips_to(q, u))
                sum = log_add(sum, before[u - 2]);
            q->forward[t * places + u] = sum + q->log_y[t * q->classes + class_at(q, u)];
        }
}

static void go_backward(const sequence *q, int64_t places)
{
    for (int64_t t = q->steps; t-- > 0;)
        for (int64_t u = 0; u < places; u++) {
            const double *after = q->backward + (t + 1) * places, *y = q->log_y + (t + 1) * q->classes;
            bool last = t == q->steps - 1;
            double sum = last && u >= places - 2 ? 0 : -INFINITY;
            if (!last && lasts(q, u))
                sum = after[u] + y[class_at(q, u)];
            if (!last && u + 1 < places)
                sum = log_add(sum, after[u + 1] + y[class_at(q, u + 1)]);
            if (!last && u + 2 < places && skips_to(q, u + 2))
                sum = log_add(sum, after[u + 2] + y[class_at(q, u + 2)]);
            q->backward[t * places + u] = sum;
        }
}

/* Returns the loss; *gradient of step t, class c is given out by `give`. */
static double solve(const sequence *q, void (*give)(const twi_run *r, int64_t at, double value), const twi_run *r,
                    int64_t batch, int64_t of)
{
    int64_t places = 2 * q->num + 1;
    double total = -INFINITY;
    go_forward(q, places);
    go_backward(q, places);
    for (int64_t u = 0; u < places; u++)
        total = log_add(total, q->forward[u] + q->backward[u]);
    for (int64_t t = 0; t < q->steps; t++) {
        for (int64_t c = 0; c < q->classes; c++)
            q->sums[c] = -INFINITY;
        for (int64_t u = 0; u < places; u++) {
            int64_t c = class_at(q, u);
            q->sums[c] = log_add(q->sums[c], q->forward[t * places + u] + q->backward[t * places + u]);
        }
        for (int64_t c = 0; c < q->classes; c++) {
            double y = exp(q->log_y[t * q->classes + c]);
            give(r, (t * of + batch) * q->classes + c, isinf(total) ? y : y - exp(q->sums[c] - total));
        }
    }
    return -total;
}

/* ---- the op ------------------------------------------------------------------------------------------------------ */

static double input_at(const twi_run *r, int64_t i)
{
    return r->input_operands[0].dtype == TW_FLOAT64 ? ((const double *)r->inputs[0])[i]
                                                    : (double)((const float *)r->inputs[0])[i];
}

static void put(const twi_run *r, int output, int64_t i, double value)
{
    if (r->output_operands[output].dtype == TW_FLOAT64)
        ((double *)r->outputs[output])[i] = value;
    else
        ((float *)r->outputs[output])[i] = (float)value;
}

static void put_gradient(const twi_run *r, int64_t i, double value)
{
    put(r, 1, i, value);
}

static void read_steps(const twi_run *r, const sequence *q, int64_t batch, int64_t of)
{
    for (int64_t t = 0; t < q->steps; t++) {
        double sum = -INFINITY;
        for (int64_t c = 0; c < q->classes; c++)
            sum = log_add(sum, input_at(r, (t * of + batch) * q->classes + c));
        for (int64_t c = 0; c < q->classes; c++)
            q->log_y[t * q->classes + c] = input_at(r, (t * of + batch) * q->classes + c) - sum;
    }
}

/* The labels of one of the batch, from `from` on in the list; *next is where those of the next begin. */
static tw_status read_labels(const twi_run *r, const ctc *s, int64_t batch, int64_t classes, int64_t from,
                             int32_t *labels, int64_t *num, int64_t *next)
{
    const int64_t *places = r->inputs[1];
    const int32_t *values = r->inputs[2];
    int64_t all = r->input_operands[2].elements, at = from;
    *num = 0;
    for (; at < all && places[2 * at] == batch; at++) {
        if (values[at] < 0 || values[at] >= classes - 1)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': label %d of sequence %lld is not below %lld, the blank", r->node, values[at],
                            (long long)batch, (long long)classes - 1);
        if (!s->collapses || !*num || labels[*num - 1] != values[at])
            labels[(*num)++] = values[at];
    }
    *next = at;
    return TW_OK;
}

static tw_status prepare(twi_prepare *p)
{
    ctc s = {twi_attr_bool(p->attrs, "preprocess_collapse_repeated", false),
             twi_attr_bool(p->attrs, "ctc_merge_repeated", true),
             twi_attr_bool(p->attrs, "ignore_longer_outputs_than_inputs", false)};
    const int64_t *dims = p->inputs[0].shape.dims;
    double steps = (double)dims[0], classes = (double)dims[2], labels = (double)p->inputs[2].elements;
    double bytes = sizeof(double) * (steps * classes + 2 * steps * (2 * labels + 1) + classes) + 4 * labels + 256;
    if (bytes > 1e11)
        return twi_fail(p->error, TW_RESOURCE_EXHAUSTED, "CTCLoss '%s' would take %.0f bytes", p->node, bytes);
    p->workspace = (size_t)bytes;
    return twi_keep(p, &s, sizeof s);
}

static tw_status run(const twi_run *r)
{
    const ctc *s = r->state;
    const int64_t *dims = r->input_operands[0].shape.dims, all = r->input_operands[2].elements;
    const int32_t *lengths = r->inputs[3];
    int64_t next = 0;
    if (r->output_operands[1].bytes)
        memset(r->outputs[1], 0, r->output_operands[1].bytes);
    for (int64_t batch = 0; batch < dims[1]; batch++) {
        sequence q = {.s = s, .classes = dims[2], .steps = lengths[batch], .log_y = r->workspace};
        if (q.steps < 0 || q.steps > dims[0])
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': sequence_length(%lld) is %lld, of %lld steps",
                            r->node, (long long)batch, (long long)q.steps, (long long)dims[0]);
        q.forward = q.log_y + q.steps * q.classes;
        q.backward = q.forward + q.steps * (2 * all + 1);
        q.sums = q.backward + q.steps * (2 * all + 1);
        int32_t *labels = (int32_t *)(q.sums + q.classes);
        int64_t first = next;
        tw_status status = read_labels(r, s, batch, q.classes, first, labels, &q.num, &next);
        if (status != TW_OK)
            return status;
        q.labels = labels;
        if (q.num == 0)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Labels length is zero in batch %lld", r->node,
                            (long long)batch);
        bool too_long = next - first > q.steps; /* before labels that repeat collapse, as in TensorFlow */
        if (too_long && !s->ignores)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': Not enough time for target transition sequence (required: %lld, available: %lld)",
                            r->node, (long long)(next - first), (long long)q.steps);
        put(r, 0, batch, 0);
        if (q.steps == 0 || too_long)
            continue;
        read_steps(r, &q, batch, dims[1]);
        put(r, 0, batch, solve(&q, put_gradient, r, batch, dims[1]));
    }
    if (next < all)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': labels are not in the order of the batch", r->node);
    return TW_OK;
}

const twi_kernel twi_cpu_ctc_kernels[] = {
    {"CTCLoss", "plain", TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_FLOAT64), prepare, run, twi_free},
    {0},
};

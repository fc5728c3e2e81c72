/* boxes.c - NonMaxSuppression and its versions: of boxes that overlap the best are kept. */
#include "base/memory.h"
#include "device/cpu/plain/move.h"

#include <math.h>
#include <string.h>

/* ---- operands ------------------------------------------------------------------------------------------------------
 */

typedef struct candidate {
    float score;
    int box, looked_at; /* how many of those selected it was compared with */
} candidate;

typedef struct rule {
    float overlap, score, scale; /* scale 0: who overlaps more goes; else its score falls */
    int64_t most;
    bool pads;
} rule;

/* In order of the op's inputs behind max_output_size. */
static float number_at(const twi_run *r, int input, float otherwise)
{
    if (input >= r->num_inputs)
        return otherwise;
    return r->input_operands[input].dtype == TW_FLOAT16 ? tw_half_to_float(*(const uint16_t *)r->inputs[input])
                                                        : *(const float *)r->inputs[input];
}

static float element(const twi_run *r, int input, int64_t i)
{
    return r->input_operands[input].dtype == TW_FLOAT16 ? tw_half_to_float(((const uint16_t *)r->inputs[input])[i])
                                                        : ((const float *)r->inputs[input])[i];
}

/* Attributes, kept for run(). */
typedef struct settings {
    float overlap;
    bool pads;
} settings;

static tw_status prepare(twi_prepare *p)
{
    settings s = {(float)twi_attr_float(p->attrs, "iou_threshold", 0.5),
                  twi_attr_bool(p->attrs, "pad_to_max_output_size", false)};
    size_t boxes = (size_t)p->inputs[0].shape.dims[0];
    p->workspace = (boxes + 1) * (sizeof(candidate) + sizeof(int) + sizeof(float)) + 64;
    return twi_keep(p, &s, sizeof s);
}

static tw_status read_rule(const twi_run *r, rule *rule)
{
    const settings *s = r->state;
    float sigma = number_at(r, 5, 0);
    rule->most = *(const int32_t *)r->inputs[2];
    rule->overlap = number_at(r, 3, s->overlap);
    rule->score = number_at(r, 4, -INFINITY);
    rule->scale = sigma > 0 ? -0.5f / sigma : 0;
    rule->pads = s->pads;
    if (r->input_operands[1].elements != r->input_operands[0].shape.dims[0])
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %lld scores for %lld boxes", r->node,
                        (long long)r->input_operands[1].elements, (long long)r->input_operands[0].shape.dims[0]);
    if (rule->most < 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': max_output_size is %lld, expected 0 or more", r->node,
                        (long long)rule->most);
    if (!(rule->overlap >= 0 && rule->overlap <= 1))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': iou_threshold must be in [0, 1]", r->node);
    if (sigma < 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': soft_nms_sigma is %g, expected 0 or more", r->node,
                        (double)sigma);
    return TW_OK;
}

/* ---- boxes
 * ----------------------------------------------------------------------------------------------------------- */

typedef struct box {
    float y0, x0, y1, x1;
} box;

static box box_at(const twi_run *r, int i)
{
    float a = element(r, 0, 4 * i), b = element(r, 0, 4 * i + 1), c = element(r, 0, 4 * i + 2);
    float d = element(r, 0, 4 * i + 3);
    return (box){fminf(a, c), fminf(b, d), fmaxf(a, c), fmaxf(b, d)};
}

/* The part of both that both cover. */
static float overlap(box a, box b)
{
    float area_a = (a.y1 - a.y0) * (a.x1 - a.x0), area_b = (b.y1 - b.y0) * (b.x1 - b.x0);
    if (area_a <= 0 || area_b <= 0)
        return 0;
    float height = fmaxf(fminf(a.y1, b.y1) - fmaxf(a.y0, b.y0), 0);
    float width = fmaxf(fminf(a.x1, b.x1) - fmaxf(a.x0, b.x0), 0);
    float both = height * width;
    return both / (area_a + area_b - both);
}

/* ---- a heap of candidates, the best first ---------------------------------------------------------------------------
 */

static bool is_better(const candidate *a, const candidate *b)
{
    return a->score > b->score || (a->score == b->score && a->box < b->box);
}

static void sift_up(candidate *heap, int at)
{
    for (int parent; at > 0 && is_better(&heap[at], &heap[parent = (at - 1) / 2]); at = parent) {
        candidate other = heap[at];
        heap[at] = heap[parent];
        heap[parent] = other;
    }
}

static candidate take_best(candidate *heap, int *count)
{
    candidate best = heap[0], last = heap[--*count];
    int at = 0;
    for (int child; (child = 2 * at + 1) < *count; at = child) {
        child += child + 1 < *count && is_better(&heap[child + 1], &heap[child]);
        if (!is_better(&heap[child], &last))
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return best;
}

/* ---- the whole
 * ------------------------------------------------------------------------------------------------------- */

/* Compares with what was selected since the last time, newest first. False: it overlaps one too much, and goes. */
static bool weigh(const twi_run *r, const rule *rule, candidate *c, const int *selected, int count)
{
    box mine = box_at(r, c->box);
    for (int i = count - 1; i >= c->looked_at; i--) {
        float common = overlap(mine, box_at(r, selected[i]));
        if (rule->scale == 0 && common > rule->overlap)
            return false;
        c->score *= expf(rule->scale * common * common); /* however much they overlap: TensorFlow 1.15 took 0 above */
        if (c->score <= rule->score)
            break;
    }
    c->looked_at = count;
    return true;
}

static int select_boxes(const twi_run *r, const rule *rule, candidate *heap, int *selected, float *scores)
{
    int count = 0, waiting = 0, boxes = (int)r->input_operands[0].shape.dims[0];
    for (int i = 0; i < boxes; i++) {
        float score = element(r, 1, i);
        if (!(score > rule->score))
            continue;
        heap[waiting] = (candidate){score, i, 0};
        sift_up(heap, waiting++);
    }
    while (count < rule->most && waiting) {
        candidate next = take_best(heap, &waiting);
        float before = next.score;
        if (!weigh(r, rule, &next, selected, count))
            continue;
        if (next.score == before) {
            selected[count] = next.box;
            scores[count++] = next.score;
        } else if (next.score > rule->score) {
            heap[waiting] = next;
            sift_up(heap, waiting++);
        }
    }
    return count;
}

static tw_status write_scores(const twi_run *r, const float *scores, int count, int64_t size)
{
    void *to;
    tw_status status = twi_make_output(r, 1, TW_SHAPE(size), &to);
    for (int64_t i = 0; i < size && status == TW_OK; i++) {
        float score = i < count ? scores[i] : 0;
        if (r->output_operands[1].dtype == TW_FLOAT16)
            ((uint16_t *)to)[i] = tw_float_to_half(score);
        else
            ((float *)to)[i] = score;
    }
    return status;
}

static tw_status run(const twi_run *r)
{
    rule rule;
    int32_t *indices;
    tw_status status = read_rule(r, &rule);
    if (status != TW_OK)
        return status;
    size_t boxes = (size_t)r->input_operands[0].shape.dims[0];
    candidate *heap = r->workspace;
    int *selected = (int *)(heap + boxes + 1);
    float *scores = (float *)(selected + boxes + 1);
    int count = select_boxes(r, &rule, heap, selected, scores);
    int64_t size = rule.pads ? rule.most : count;
    status = twi_make_output(r, 0, TW_SHAPE(size), (void **)&indices);
    for (int64_t i = 0; i < size && status == TW_OK; i++)
        indices[i] = i < count ? selected[i] : 0;
    if (status == TW_OK && r->num_outputs > 2)
        status = write_scores(r, scores, count, size);
    if (status == TW_OK && r->num_outputs > 1)
        *(int32_t *)r->outputs[r->num_outputs - 1] = count;
    return status;
}

const twi_kernel twi_cpu_boxes_kernels[] = {
    {"NonMaxSuppression", "plain", 0, prepare, run, twi_free},
    {"NonMaxSuppressionV2", "plain", 0, prepare, run, twi_free},
    {"NonMaxSuppressionV3", "plain", 0, prepare, run, twi_free},
    {"NonMaxSuppressionV4", "plain", 0, prepare, run, twi_free},
    {"NonMaxSuppressionV5", "plain", 0, prepare, run, twi_free},
    {0},
};

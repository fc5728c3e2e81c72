/* boxes.c - NonMaxSuppression and its versions, of one class and of all: of boxes that overlap the best are kept. */
#include "base/memory.h"
#include "device/cpu/plain/move.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- operands ---------------------------------------------------------------------------------------------------- */

typedef struct candidate {
    float score;
    int box, looked_at; /* how many of those selected it was compared with */
} candidate;

typedef struct rule {
    float overlap, score, scale; /* scale 0: who overlaps more goes; else its score falls */
    int64_t most;
    bool pads, ignores_nan; /* an overlap that is NaN, of infinite boxes, counts for none */
} rule;

/* In order of the op's inputs behind max_output_size. */
static float number_at(const twi_run *r, int input, float otherwise)
{
    if (input >= r->num_inputs)
        return otherwise;
    return r->input_operands[input].dtype == TW_FLOAT16 ? tw_half_to_float(*(const uint16_t *)r->inputs[input])
                                                        : *(const float *)r->inputs[input];
}

/* Attributes, kept for run(). */
typedef struct settings {
    float overlap;
    bool pads, has_overlaps;
} settings;

static tw_status prepare(twi_prepare *p)
{
    settings s = {(float)twi_attr_float(p->attrs, "iou_threshold", 0.5),
                  twi_attr_bool(p->attrs, "pad_to_max_output_size", false),
                  strcmp(p->op, "NonMaxSuppressionWithOverlaps") == 0};
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
    if (!s->has_overlaps && !(rule->overlap >= 0 && rule->overlap <= 1))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': iou_threshold must be in [0, 1]", r->node);
    if (sigma < 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': soft_nms_sigma is %g, expected 0 or more", r->node,
                        (double)sigma);
    return TW_OK;
}

/* ---- boxes ------------------------------------------------------------------------------------------------------- */

/* Boxes and their scores, so many numbers apart: of those of a class others lie between. */
typedef struct rated {
    const void *boxes, *scores;
    int64_t box_step, score_step; /* box_step 0: no boxes, but how much each overlaps each, [count,count] */
    int count;
    bool are_halves;
} rated;

static float number(const rated *b, const void *from, int64_t i)
{
    return b->are_halves ? tw_half_to_float(((const uint16_t *)from)[i]) : ((const float *)from)[i];
}

typedef struct box {
    float y0, x0, y1, x1;
} box;

static box box_at(const rated *of, int i)
{
    float c[4];
    for (int k = 0; k < 4; k++)
        c[k] = number(of, of->boxes, i * of->box_step + k);
    bool down = c[2] < c[0], left = c[3] < c[1]; /* a first corner that is NaN stays, which fminf() would drop */
    return (box){down ? c[2] : c[0], left ? c[3] : c[1], c[0] < c[2] ? c[2] : c[0], c[1] < c[3] ? c[3] : c[1]};
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

static float overlap_of(const rated *of, int a, int b)
{
    return of->box_step ? overlap(box_at(of, a), box_at(of, b)) : number(of, of->boxes, (int64_t)a * of->count + b);
}

/* ---- a heap of candidates, the best first ------------------------------------------------------------------------ */

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

/* ---- selecting --------------------------------------------------------------------------------------------------- */

/* Compares with what was selected since the last time, newest first. False: it overlaps one too much, and goes. */
static bool weigh(const rated *of, const rule *rule, candidate *c, const int *selected, int count)
{
    for (int i = count - 1; i >= c->looked_at; i--) {
        float common = overlap_of(of, c->box, selected[i]);
        if (rule->scale == 0 && common > rule->overlap)
            return false;
        if (rule->scale != 0) /* however much they overlap: TensorFlow 1.15 took 0 above */
            c->score *= expf(rule->scale * common * common);
        else if (isnan(common) && !rule->ignores_nan)
            c->score *= 0;
        if (c->score <= rule->score)
            break;
    }
    c->looked_at = count;
    return true;
}

/* The best first; how many there are. */
static int select_boxes(const rated *of, const rule *rule, candidate *heap, int *selected, float *scores)
{
    int count = 0, waiting = 0;
    for (int i = 0; i < of->count; i++) {
        float score = number(of, of->scores, i * of->score_step);
        if (!(score > rule->score))
            continue;
        heap[waiting] = (candidate){score, i, 0};
        sift_up(heap, waiting++);
    }
    while (count < rule->most && waiting) {
        candidate next = take_best(heap, &waiting);
        float before = next.score;
        if (!weigh(of, rule, &next, selected, count))
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
    rule rule = {.ignores_nan = false};
    int32_t *indices;
    tw_status status = read_rule(r, &rule);
    if (status != TW_OK)
        return status;
    size_t boxes = (size_t)r->input_operands[0].shape.dims[0];
    candidate *heap = r->workspace;
    int *selected = (int *)(heap + boxes + 1);
    float *scores = (float *)(selected + boxes + 1);
    bool has_overlaps = ((const settings *)r->state)->has_overlaps;
    rated of = {r->inputs[0], r->inputs[1], has_overlaps ? 0 : 4, 1, (int)boxes,
                r->input_operands[0].dtype == TW_FLOAT16};
    int count = select_boxes(&of, &rule, heap, selected, scores);
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

/* ---- of all classes ---------------------------------------------------------------------------------------------- */

typedef struct found {
    float score;
    int box, class;
} found;

typedef struct combining {
    int64_t batch, boxes, kinds, classes, most; /* kinds: 1, or a box for each class */
    rule of_class;
    bool clips;
} combining;

static tw_status prepare_combined(twi_prepare *p)
{
    static const bool clips = true;
    tw_shape boxes = p->inputs[0].shape, scores = p->inputs[1].shape;
    size_t n = (size_t)boxes.dims[1];
    p->workspace = (n + 1) * (sizeof(candidate) + sizeof(int) + sizeof(float)) + 64 +
                   (n * (size_t)scores.dims[2] + 1) * sizeof(found);
    p->state = twi_attr_bool(p->attrs, "clip_boxes", true) ? (void *)(uintptr_t)&clips : NULL;
    return TW_OK;
}

/* Appends the best boxes of a class to what was found; how many that makes. */
static int64_t find_of_class(const twi_run *r, const combining *c, int64_t batch, int64_t class, candidate *heap,
                             int *selected, float *scores, found *all, int64_t count)
{
    int64_t kind = c->kinds > 1 ? class : 0;
    rated of = {(const float *)r->inputs[0] + (batch * c->boxes * c->kinds + kind) * 4,
                (const float *)r->inputs[1] + batch * c->boxes * c->classes + class,
                c->kinds * 4, c->classes, (int)c->boxes, false};
    int taken = select_boxes(&of, &c->of_class, heap, selected, scores);
    for (int i = 0; i < taken; i++)
        all[count++] = (found){scores[i], selected[i], (int)class};
    return count;
}

static int by_score(const void *a, const void *b)
{
    const found *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->class != y->class ? x->class - y->class : x->box - y->box;
}

static float clipped(const combining *c, float x)
{
    return c->clips ? fmaxf(fminf(x, 1), 0) : x;
}

static void write_found(const twi_run *r, const combining *c, int64_t batch, const found *all, int64_t count)
{
    float *boxes = (float *)r->outputs[0] + batch * c->most * 4, *scores = (float *)r->outputs[1] + batch * c->most;
    float *classes = (float *)r->outputs[2] + batch * c->most;
    for (int64_t i = 0; i < c->most; i++) {
        bool is_there = i < count;
        int64_t kind = is_there && c->kinds > 1 ? all[i].class : 0;
        const float *from = (const float *)r->inputs[0];
        if (is_there)
            from += ((batch * c->boxes + all[i].box) * c->kinds + kind) * 4;
        for (int k = 0; k < 4; k++)
            boxes[4 * i + k] = is_there ? clipped(c, from[k]) : 0;
        scores[i] = is_there ? all[i].score : 0;
        classes[i] = is_there ? (float)all[i].class : 0;
    }
    ((int32_t *)r->outputs[3])[batch] = (int32_t)(count < c->most ? count : c->most);
}

static tw_status run_combined(const twi_run *r)
{
    const int64_t *sizes = r->input_operands[0].shape.dims;
    combining c = {.batch = sizes[0], .boxes = sizes[1], .kinds = sizes[2],
                   .classes = r->input_operands[1].shape.dims[2], .most = r->output_operands[1].shape.dims[1],
                   .clips = r->state != NULL,
                   .of_class = {.most = *(const int32_t *)r->inputs[2], .overlap = *(const float *)r->inputs[4],
                                .score = *(const float *)r->inputs[5], .ignores_nan = true}};
    candidate *heap = r->workspace;
    found *all = (found *)(heap + c.boxes + 1);
    int *selected = (int *)(all + c.boxes * c.classes + 1);
    float *scores = (float *)(selected + c.boxes + 1);
    if (!(c.of_class.overlap >= 0 && c.of_class.overlap <= 1))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': iou_threshold must be in [0, 1]", r->node);
    for (int64_t batch = 0; batch < c.batch; batch++) {
        int64_t count = 0;
        for (int64_t class = 0; class < c.classes && c.boxes; class++)
            count = find_of_class(r, &c, batch, class, heap, selected, scores, all, count);
        if (count)
            qsort(all, (size_t)count, sizeof *all, by_score);
        write_found(r, &c, batch, all, count);
    }
    return TW_OK;
}

const twi_kernel twi_cpu_boxes_kernels[] = {
    {"CombinedNonMaxSuppression", "plain", 0, prepare_combined, run_combined},
    {"NonMaxSuppression", "plain", 0, prepare, run, twi_free},
    {"NonMaxSuppressionV2", "plain", 0, prepare, run, twi_free},
    {"NonMaxSuppressionV3", "plain", 0, prepare, run, twi_free},
    {"NonMaxSuppressionV4", "plain", 0, prepare, run, twi_free},
    {"NonMaxSuppressionV5", "plain", 0, prepare, run, twi_free},
    {"NonMaxSuppressionWithOverlaps", "plain", 0, prepare, run, twi_free},
    {0},
};

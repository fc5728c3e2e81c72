/* reduce_algorithms.c - a flat tensor of each tower becomes their mean.
 *
 * An algorithm is a row of `algorithms`, and does two things. It adds the towers' tensors up to pieces, each complete
 * on one owner; and it says from whom a tower takes a piece that is not its own, which spreads the means along the same
 * roads. Towers are counted from `first`, where the shard begins, round to the one before it; so shards and gradients
 * spread over the towers. How to add one: docs/guide/adding-a-reduction.md.
 *
 * What crosses from one tower to another is narrowed on the one and widened on the other if the options name a type
 * for that, also when both are on one device: bits depend on towers alone. */
#include "base/memory.h"
#include "train/reduce.h"

#include <stdio.h>
#include <string.h>
#include <tower/ops.h>

/* A part of the sum, complete. */
typedef struct piece {
    tw_output value;
    int owner; /* a place */
} piece;

/* One shard on its way. */
typedef struct shard {
    twi_reducer *r;
    const twi_algorithm *algorithm;
    int first;               /* the tower that counts as number 0 */
    int64_t elements;
    tw_output *values;       /* [towers] in order of counting, this algorithm's to change */
    piece *pieces;           /* [towers] of which there are: */
    int num_pieces;
} shard;

struct twi_algorithm {
    const char *name;
    void (*reduce)(shard *s);                            /* adds up to pieces */
    int (*parent)(const shard *s, int tower, int owner); /* from whom a tower takes a piece; NULL: from its owner */
    void (*library)(const twi_reducer *r, const tw_output *inputs, tw_output *means); /* instead of both: each tower
                                                               hands its tensor over and has the mean */
    bool sliced;         /* each tower has a slice: tensors of fewer elements than towers go by the tree */
    bool in_order;       /* values come in order of towers, not counted from `first` */
    bool in_turn;        /* `first` is another tower for each gradient */
    const char *refusal; /* it is understood and cannot be done */
};

static int tower_at(const shard *s, int number)
{
    return (number + s->first) % s->r->towers;
}

/* ---- pieces of nodes --------------------------------------------------------------------------------------- */

void twi_reduce_enter(const twi_reducer *r, int place)
{
    tw_graph *g = r->graph;
    if (place == TWI_AT_ROOT)
        return;
    tw_enter_no_device(g);
    if (place == TWI_AT_CPU)
        tw_enter_device(g, "/cpu:0");
    else if (r->options->devices)
        tw_enter_device(g, "%s", r->options->devices[place]);
    else
        tw_enter_colocation(g, r->anchors[place]);
}

void twi_reduce_leave(const twi_reducer *r, int place)
{
    tw_graph *g = r->graph;
    if (place == TWI_AT_ROOT)
        return;
    if (place == TWI_AT_CPU || r->options->devices)
        tw_leave_device(g);
    else
        tw_leave_colocation(g);
    tw_leave_device(g);
}

static bool is_narrowed(const twi_reducer *r, tw_output x)
{
    return r->options->wire && tw_output_dtype(x) == TW_FLOAT32;
}

static tw_output cast_at(const twi_reducer *r, int place, tw_output x, tw_dtype dtype)
{
    twi_reduce_enter(r, place);
    x = tw_cast(tw_name(r->graph, "wire"), x, dtype);
    twi_reduce_leave(r, place);
    return x;
}

/* x, which is at `from`, as `to` sees it. */
static tw_output cross(const twi_reducer *r, tw_output x, int from, int to)
{
    if (from == to || !is_narrowed(r, x))
        return x;
    return cast_at(r, to, cast_at(r, from, x, r->options->wire), TW_FLOAT32);
}

/* x at tower number `number` plus y, which is at number `from`. */
static tw_output add_at(const shard *s, int number, tw_output x, tw_output y, int from)
{
    int here = tower_at(s, number);
    y = cross(s->r, y, tower_at(s, from), here);
    twi_reduce_enter(s->r, here);
    tw_output sum = tw_add(tw_name(s->r->graph, "sum"), x, y);
    twi_reduce_leave(s->r, here);
    return sum;
}

static void cut_at(const twi_reducer *r, int place, tw_output x, const int64_t *sizes, tw_output *parts, int count)
{
    twi_reduce_enter(r, place);
    if (count > 1)
        tw_split_sizes(tw_name(r->graph, "slices"), x, 0, sizes, parts, count);
    else
        parts[0] = x;
    twi_reduce_leave(r, place);
}

static tw_output join_at(const twi_reducer *r, int place, const tw_output *parts, int count)
{
    if (count == 1)
        return parts[0];
    twi_reduce_enter(r, place);
    tw_output whole = tw_concat(tw_name(r->graph, "whole"), parts, count, 0);
    twi_reduce_leave(r, place);
    return whole;
}

/* `count` nearly equal sizes that make `elements`. */
static void share_out(int64_t elements, int64_t *sizes, int count)
{
    for (int i = 0; i < count; i++)
        sizes[i] = elements / count + (i < elements % count);
}

/* The mean that a sum over towers makes. */
static tw_output mean_of(const twi_reducer *r, tw_output sum)
{
    double share = tw_output_dtype(sum) == TW_FLOAT64 ? 1.0 / r->towers : 1.0f / (float)r->towers;
    tw_output scale = sum.node ? tw_scalar_of(r->graph, tw_output_dtype(sum), share) : (tw_output){0};
    return tw_mul(tw_name(r->graph, "mean"), sum, scale);
}

static void complete(shard *s, tw_output sum, int owner)
{
    twi_reduce_enter(s->r, owner);
    s->pieces[s->num_pieces++] = (piece){mean_of(s->r, sum), owner};
    twi_reduce_leave(s->r, owner);
}

/* ---- algorithms -------------------------------------------------------------------------------------------- */

static void reduce_by_tree(shard *s)
{
    int n = s->r->towers;
    for (int stride = 1; stride < n; stride *= 2)
        for (int i = 0; i + stride < n; i += 2 * stride)
            s->values[i] = add_at(s, i, s->values[i], s->values[i + stride], i + stride);
    complete(s, s->values[0], tower_at(s, 0));
}

static int number_of(const shard *s, int tower)
{
    return (tower - s->first + s->r->towers) % s->r->towers;
}

static int parent_in_tree(const shard *s, int tower, int owner)
{
    (void)owner;
    int number = number_of(s, tower);
    return tower_at(s, number & (number - 1));
}

/* Slice c is owned by number c, where its sum arrives after beginning at c + 1 and going once round. */
static void reduce_by_ring(shard *s)
{
    int n = s->r->towers;
    int64_t *sizes = twi_alloc_array((size_t)n, sizeof *sizes);
    tw_output *slices = twi_alloc_array((size_t)(n * n), sizeof *slices); /* [number][slice] */
    if (sizes && slices) {
        share_out(s->elements, sizes, n);
        for (int i = 0; i < n; i++)
            cut_at(s->r, tower_at(s, i), s->values[i], sizes, slices + i * n, n);
        for (int c = 0; c < n; c++) {
            tw_output sum = slices[(c + 1) % n * n + c];
            for (int k = 2; k <= n; k++)
                sum = add_at(s, (c + k) % n, slices[(c + k) % n * n + c], sum, (c + k - 1) % n);
            complete(s, sum, tower_at(s, c));
        }
    } else {
        tw_graph_fail(s->r->graph, TW_RESOURCE_EXHAUSTED, "out of memory while building a reduction");
    }
    twi_free(sizes);
    twi_free(slices);
}

static int parent_in_ring(const shard *s, int tower, int owner)
{
    (void)owner;
    return tower_at(s, number_of(s, tower) + s->r->towers - 1);
}

/* Halving needs a power of two: the largest one in n take part, and the numbers beyond pair with one of them:
 * numbers 2k and 2k + 1 for the first k. */
static int halving_members(int n)
{
    int members = 1;
    while (members * 2 <= n)
        members *= 2;
    return members;
}

static int number_of_member(int member, int extra)
{
    return member < extra ? 2 * member : member + extra;
}

static int member_of_number(int number, int extra)
{
    return number < 2 * extra ? number / 2 : number - extra;
}

/* Members at distance m/2, m/4, ... exchange halves of what they still hold: the lower one keeps the lower half. In the
 * end member i holds slice i. */
static void reduce_by_halving(shard *s)
{
    int n = s->r->towers, members = halving_members(n), extra = n - members;
    int64_t *held = twi_alloc_array((size_t)members, sizeof *held);
    tw_output *halves = twi_alloc_array(2 * (size_t)members, sizeof *halves);
    if (!held || !halves) {
        tw_graph_fail(s->r->graph, TW_RESOURCE_EXHAUSTED, "out of memory while building a reduction");
        members = 0;
    }
    for (int i = 0; i < extra; i++)
        s->values[2 * i] = add_at(s, 2 * i, s->values[2 * i], s->values[2 * i + 1], 2 * i + 1);
    for (int i = 0; i < members; i++)
        held[i] = s->elements;
    for (int distance = members / 2; distance; distance /= 2) {
        for (int i = 0; i < members; i++) {
            int number = number_of_member(i, extra);
            int64_t sizes[] = {held[i] - held[i] / 2, held[i] / 2};
            cut_at(s->r, tower_at(s, number), s->values[number], sizes, halves + 2 * i, 2);
            held[i] = sizes[(i & distance) != 0];
        }
        for (int i = 0; i < members; i++) {
            int half = (i & distance) != 0, number = number_of_member(i, extra);
            s->values[number] = add_at(s, number, halves[2 * i + half], halves[2 * (i ^ distance) + half],
                                       number_of_member(i ^ distance, extra));
        }
    }
    for (int i = 0; i < members; i++)
        complete(s, s->values[number_of_member(i, extra)], tower_at(s, number_of_member(i, extra)));
    twi_free(held);
    twi_free(halves);
}

/* Doubling goes the same distances upwards: a piece comes from the member that differs in the highest bit. */
static int find_parent_in_halving(int number, int owner, int n)
{
    int extra = n - halving_members(n), member = member_of_number(number, extra);
    int way = member ^ member_of_number(owner, extra);
    if (!way) /* the pair of its owner */
        return owner;
    if (number_of_member(member, extra) != number)
        return number_of_member(member, extra);
    while (way & (way - 1))
        way &= way - 1;
    return number_of_member(member ^ way, extra);
}

static int parent_in_halving(const shard *s, int tower, int owner)
{
    return tower_at(s, find_parent_in_halving(number_of(s, tower), number_of(s, owner), s->r->towers));
}

/* All to one place, where they are added in order of towers, whichever it is. */
static void reduce_at(shard *s, int place)
{
    int n = s->r->towers;
    for (int i = 0; i < n; i++)
        s->values[i] = cross(s->r, s->values[i], i, place);
    twi_reduce_enter(s->r, place);
    tw_output sum = tw_add_n(tw_name(s->r->graph, "sum"), s->values, n);
    twi_reduce_leave(s->r, place);
    complete(s, sum, place);
}

static void reduce_on_cpu(shard *s)
{
    reduce_at(s, TWI_AT_CPU);
}

static void reduce_on_tower(shard *s)
{
    reduce_at(s, s->first);
}

/* Towers are two halves, and the first tower of the shard is the head of its own. */
static int low_half(const twi_reducer *r)
{
    return r->towers / 2;
}

static bool is_low(const twi_reducer *r, int tower)
{
    return tower < low_half(r);
}

/* The head of the half where tower `head` is not. */
static int other_head(const twi_reducer *r, int head)
{
    int low = low_half(r);
    return is_low(r, head) ? low + head : (head - low) % low;
}

/* The sum of a half, in order of its towers, at its head. */
static tw_output reduce_half(shard *s, int head)
{
    int begin = is_low(s->r, head) ? 0 : low_half(s->r), end = is_low(s->r, head) ? low_half(s->r) : s->r->towers;
    for (int i = begin; i < end; i++)
        s->values[i] = cross(s->r, s->values[i], i, head);
    twi_reduce_enter(s->r, head);
    tw_output sum = tw_add_n(tw_name(s->r->graph, "half"), s->values + begin, end - begin);
    twi_reduce_leave(s->r, head);
    return sum;
}

static void reduce_by_halves(shard *s)
{
    int head = s->first, other = other_head(s->r, head);
    tw_output mine = reduce_half(s, head), theirs = cross(s->r, reduce_half(s, other), other, head);
    twi_reduce_enter(s->r, head);
    tw_output sum = tw_add(tw_name(s->r->graph, "sum"), mine, theirs);
    twi_reduce_leave(s->r, head);
    complete(s, sum, head);
}

static int parent_by_halves(const shard *s, int tower, int owner)
{
    bool crosses = is_low(s->r, tower) != is_low(s->r, owner);
    return crosses && tower != other_head(s->r, owner) ? other_head(s->r, owner) : owner;
}

/* Every tower hands its tensor to the library and has the sum. */
static void reduce_by_nccl(const twi_reducer *r, const tw_output *inputs, tw_output *means)
{
    tw_graph *g = r->graph;
    char name[40];
    snprintf(name, sizeof name, "all_reduce_%d", tw_graph_num_nodes(g)); /* which no other has */
    for (int t = 0; t < r->towers; t++) {
        twi_reduce_enter(r, t);
        tw_output sum = tw_nccl_all_reduce(tw_name(g, "all_reduce"), inputs[t], r->towers, name);
        means[t] = mean_of(r, sum);
        twi_reduce_leave(r, t);
    }
}

static const twi_algorithm algorithms[] = {
    {"tree", reduce_by_tree, parent_in_tree},
    {"ring", reduce_by_ring, parent_in_ring, .sliced = true},
    {"xring", reduce_by_ring, parent_in_ring, .sliced = true},
    {"rechd", reduce_by_halving, parent_in_halving, .sliced = true},
    {"pscpu", reduce_on_cpu, .in_order = true},
    {"psgpu", reduce_on_tower, .in_order = true, .in_turn = true},
    {"hierarchical", reduce_by_halves, parent_by_halves, .in_order = true, .in_turn = true},
    {"nccl", .library = reduce_by_nccl},
    {"collective", .refusal = "there is no collective executor here; 'nccl' and 'ring' move the same bytes"},
};

enum { NUM_ALGORITHMS = sizeof algorithms / sizeof *algorithms };

const char *twi_algorithm_name(int i)
{
    return i < NUM_ALGORITHMS ? algorithms[i].name : NULL;
}

const twi_algorithm *twi_algorithm_find(const char *name, size_t length)
{
    for (int i = 0; i < NUM_ALGORITHMS; i++)
        if (strlen(algorithms[i].name) == length && strncmp(algorithms[i].name, name, length) == 0)
            return &algorithms[i];
    return NULL;
}

const char *twi_algorithm_refusal(const twi_algorithm *algorithm)
{
    return algorithm->refusal;
}

bool twi_reduce_uses_nccl(const twi_reduce_spec *spec)
{
    for (int i = 0; i < spec->count; i++)
        if (spec->rules[i].algorithm->library)
            return true;
    return false;
}

/* ---- delivery ---------------------------------------------------------------------------------------------- */

static int parent_of(const shard *s, int tower, int owner)
{
    return s->algorithm->parent ? s->algorithm->parent(s, tower, owner) : owner;
}

/* Tower `tower` gets the piece, and before it everyone on the way. seen[tower] is what it got, seen[towers] what the
 * owner gives. */
static tw_output fetch(const shard *s, const piece *p, int tower, tw_output *seen)
{
    if (tower == p->owner)
        return seen[s->r->towers];
    if (seen[tower].node)
        return seen[tower];
    tw_output from = fetch(s, p, parent_of(s, tower, p->owner), seen);
    twi_reduce_enter(s->r, tower);
    seen[tower] = tw_identity(tw_name(s->r->graph, "take"), from);
    twi_reduce_leave(s->r, tower);
    return seen[tower];
}

/* The pieces become whole tensors: means[towers], or means[0] at the root. Where values are narrowed on their way
 * everyone takes the narrowed one, the owner too, so that all have the same bits. */
static void deliver(shard *s, tw_output *means)
{
    twi_reducer *r = s->r;
    int n = r->towers;
    tw_output *parts = twi_alloc_array((size_t)s->num_pieces * (size_t)(n + 1), sizeof *parts); /* [tower][piece] */
    tw_output *seen = twi_alloc_array((size_t)n + 1, sizeof *seen);
    if (!parts || !seen)
        tw_graph_fail(r->graph, TW_RESOURCE_EXHAUSTED, "out of memory while building a reduction");
    for (int i = 0; i < s->num_pieces && parts && seen; i++) {
        const piece *p = &s->pieces[i];
        if (!r->everywhere) {
            parts[i] = cross(r, p->value, p->owner, TWI_AT_ROOT);
            continue;
        }
        bool narrowed = is_narrowed(r, p->value);
        for (int t = 0; t < n; t++)
            seen[t] = (tw_output){0};
        seen[n] = narrowed ? cast_at(r, p->owner, p->value, r->options->wire) : p->value;
        for (int t = 0; t < n; t++) {
            tw_output mine = fetch(s, p, t, seen);
            parts[t * s->num_pieces + i] = narrowed ? cast_at(r, t, mine, TW_FLOAT32) : mine;
        }
    }
    for (int t = 0; t < (r->everywhere ? n : 1) && parts && seen; t++)
        means[t] = join_at(r, r->everywhere ? t : TWI_AT_ROOT, parts + t * s->num_pieces, s->num_pieces);
    twi_free(parts);
    twi_free(seen);
}

/* ---- one tensor -------------------------------------------------------------------------------------------- */

static const twi_reduce_rule *rule_for(const twi_reducer *r, int64_t elements)
{
    const twi_reduce_rule *rule = r->spec.rules;
    while (elements > rule->limit)
        rule++;
    return rule;
}

static void reduce_shard(twi_reducer *r, const twi_reduce_rule *rule, int number, const tw_output *inputs,
                         int64_t elements, tw_output *means)
{
    const twi_algorithm *algorithm = rule->algorithm;
    shard s = {.r = r, .elements = elements};
    if (algorithm->library) {
        algorithm->library(r, inputs, means);
        return;
    }
    s.algorithm = algorithm->sliced && elements < r->towers ? twi_algorithm_find("tree", 4) : algorithm;
    s.first = (number + (s.algorithm->in_turn ? r->parts : 0)) % r->towers;
    s.values = twi_alloc_array((size_t)r->towers, sizeof *s.values);
    s.pieces = twi_alloc_array((size_t)r->towers, sizeof *s.pieces);
    if (s.values && s.pieces) {
        for (int i = 0; i < r->towers; i++)
            s.values[i] = inputs[s.algorithm->in_order ? i : tower_at(&s, i)];
        s.algorithm->reduce(&s);
        deliver(&s, means);
    } else {
        tw_graph_fail(r->graph, TW_RESOURCE_EXHAUSTED, "out of memory while building a reduction");
    }
    twi_free(s.values);
    twi_free(s.pieces);
}

bool twi_reduce_flat(twi_reducer *r, const tw_output *inputs, int64_t elements, tw_output *means)
{
    const twi_reduce_rule *rule = rule_for(r, elements);
    int n = r->towers, results = r->everywhere ? n : 1;
    int shards = rule->shards < elements ? rule->shards : elements > 1 ? (int)elements : 1;
    int64_t sizes[TWI_MOST_SHARDS];
    tw_output *parts = twi_alloc_array((size_t)(n * shards), sizeof *parts); /* [tower][shard], then [shard][result] */
    tw_output *column = twi_alloc_array((size_t)(n + shards), sizeof *column);
    tw_output *reduced = twi_alloc_array((size_t)(n * shards), sizeof *reduced);
    bool enough = parts && column && reduced;
    if (!enough)
        tw_graph_fail(r->graph, TW_RESOURCE_EXHAUSTED, "out of memory while building a reduction");
    share_out(elements, sizes, shards);
    for (int t = 0; t < n && enough; t++)
        cut_at(r, t, inputs[t], sizes, parts + t * shards, shards);
    for (int k = 0; k < shards && enough && tw_graph_status(r->graph) == TW_OK; k++) {
        for (int t = 0; t < n; t++)
            column[t] = parts[t * shards + k];
        reduce_shard(r, rule, k, column, sizes[k], reduced + k * results);
    }
    for (int t = 0; t < results && enough; t++) {
        for (int k = 0; k < shards; k++)
            column[k] = reduced[k * results + t];
        means[t] = join_at(r, r->everywhere ? t : TWI_AT_ROOT, column, shards);
    }
    r->parts++;
    twi_free(parts);
    twi_free(column);
    twi_free(reduced);
    return enough && tw_graph_status(r->graph) == TW_OK;
}

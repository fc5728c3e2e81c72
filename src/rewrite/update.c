/* update.c - what is done to every variable alike at the end of a step is done to all at once: the updates of gradient
 * descent, with the mean of two towers and the weight decay that are part of their gradients; those of the other
 * optimizers, with decoupled weight decay too, where a device has a kernel for many; and moving averages. Gradients of
 * a narrow type are read as they are where the device's kernel can, not cast before; those of filters are left with
 * their last axis first where the device's convolutions make them so.
 * Never here: other chains (fuse.c), what a tower's gradient is made of (gradient.c).
 *
 * Joined are nodes of one device with the same rate and other numbers, where none waits for another. Weight decay may
 * come from another device of the host: it costs nothing where the variable is read anyway. */
#include "rewrite/gradient.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SLOTS = 2, MOST_NUMBERS = 6, MOST_TOGETHER = 4096 };

/* One variable's part of a joint node. */
typedef struct part {
    twi_node *node;                /* the update that goes away, */
    twi_node *loss;                /* and decoupled decay before it, the share `lost` of the variable; NULL: none */
    twi_value lost;
    twi_value handle, slots[MOST_SLOTS], numbers[MOST_NUMBERS]; /* the first is the rate, if that is all there is */
    int num_slots, num_numbers;
    bool nesterov;
    int towers;                    /* 1, or 2: the mean of two */
    twi_raw_gradient gradients[2]; /* of each tower */
    float scale;                   /* of the sum of two */
    int place;                     /* among all parts */
    int group, round;              /* place of the first it goes with; how often the variable was there before */
} part;

typedef TWI_ARRAY(part) parts;

/* A kind of joint node: what is found, and what becomes of it. */
typedef struct kind {
    const char *op;
    bool (*find)(const twi_rewriting *r, twi_node *node, part *p);
    bool of_gradients;  /* which may be means, transposed, cut out of a bucket */
    bool always_decays; /* has a decay for each gradient, be it 0 */
    bool of_any_update; /* which is an attribute */
} kind;

/* The only one (or two) to change the variable: then it does not matter when, within the order of the graph, it is
 * read. */
static bool is_only_writer(twi_value handle, const twi_node *writer, const twi_node *other)
{
    bool only = true;
    for (const twi_edge *e = twi_uses_of(handle)->first; e && only; e = e->next)
        only = e->user == writer || e->user == other || twi_has_trait(e->user, TWI_READ);
    return only;
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* Takes the last sum of an average out of the gradient: Mul(AddV2(g, g'), constant). Returns who uses g and g'. */
static const twi_node *split_mean(part *p)
{
    const twi_node *mean = twi_find_link(p->gradients[0].value, TWI_OP_Mul, p->node);
    const tw_tensor *scale = mean ? twi_constant(twi_in(mean, 1)) : NULL;
    bool scales = scale && twi_shape(twi_in(mean, 1)).rank == 0;
    const twi_node *sum = scales ? twi_find_link(twi_in(mean, 0), TWI_OP_AddV2, mean) : NULL;
    tw_shape shape = twi_shape(p->gradients[0].value);
    if (!sum || !tw_shape_equal(twi_shape(twi_in(sum, 0)), shape) ||
        !tw_shape_equal(twi_shape(twi_in(sum, 1)), shape) || twi_same(twi_in(sum, 0), twi_in(sum, 1)))
        return p->node;
    p->towers = 2;
    p->scale = (float)tw_tensor_value(scale, 0);
    p->gradients[0].value = twi_in(sum, 0);
    p->gradients[1].value = twi_in(sum, 1);
    return sum;
}

static void split_gradient(const twi_rewriting *r, part *p)
{
    const twi_node *user = split_mean(p);
    bool only_writer = is_only_writer(p->handle, p->node, p->loss);
    for (int i = 0; i < p->towers; i++) {
        p->gradients[i].user = user;
        if (only_writer)
            twi_split_decay(r, &p->gradients[i], p->node, p->handle);
    }
}

/* ---- updates ----------------------------------------------------------------------------------------------------- */

/* Reads the inputs by their roles. False: it is no update by a gradient, or has more of something than fits. */
static bool read_update(twi_node *node, part *p)
{
    const char *roles = node->op->roles;
    if (!roles || !strchr(roles, 'g') || twi_has_trait(node, TWI_REWRITTEN) ||
        twi_attr_type(&node->attrs, "T") != TW_FLOAT32)
        return false;
    *p = (part){.node = node, .towers = 1, .scale = 1, .nesterov = twi_attr_bool(&node->attrs, "use_nesterov", false)};
    bool fits = true;
    for (int i = 0; i < node->num_inputs && fits; i++) {
        char role = twi_op_role(node->op, &node->attrs, i);
        twi_value *to = role == 'u'                                    ? &p->handle
                        : role == 's' && p->num_slots < MOST_SLOTS     ? &p->slots[p->num_slots++]
                        : role == 'n' && p->num_numbers < MOST_NUMBERS ? &p->numbers[p->num_numbers++]
                        : role == 'g'                                  ? &p->gradients[0].value
                                                                       : NULL;
        fits = to && !to->node;
        if (fits)
            *to = twi_in(node, i);
    }
    return fits && p->handle.node && p->gradients[0].value.node;
}

static bool find_descent(const twi_rewriting *r, twi_node *node, part *p)
{
    if (!twi_is(node, TWI_OP_ResourceApplyGradientDescent) || !read_update(node, p))
        return false;
    split_gradient(r, p);
    return true;
}

/* Takes decoupled weight decay, AssignSub(variable, s * variable), which the update alone waits for, into the part. */
static void take_loss(part *p)
{
    for (int i = 0; i < p->node->num_controls; i++) {
        twi_node *loss = p->node->controls[i]->node;
        if (!twi_is(loss, TWI_OP_AssignSubVariableOp) || !twi_same(twi_in(loss, 0), p->handle) ||
            loss->device != p->node->device || twi_only_user(twi_out(loss, -1)) != p->node ||
            !is_only_writer(p->handle, p->node, loss))
            continue;
        p->lost = twi_decay_of(twi_in(loss, 1), p->handle, &(twi_value){0});
        p->loss = p->lost.node ? loss : NULL;
        return;
    }
}

static bool find_update(const twi_rewriting *r, twi_node *node, part *p)
{
    if (!read_update(node, p) || !p->num_slots)
        return false;
    take_loss(p);
    split_gradient(r, p);
    return true;
}

/* AssignSub(average, (read(average) - value) * weight) */
static bool find_average(const twi_rewriting *r, twi_node *node, part *p)
{
    (void)r;
    if (!twi_is(node, TWI_OP_AssignSubVariableOp) || twi_dtype(twi_in(node, 1)) != TW_FLOAT32)
        return false;
    twi_value handle = twi_in(node, 0), move = twi_in(node, 1);
    if (!twi_is(move.node, TWI_OP_Mul) || twi_only_user(move) != node || move.node->device != node->device)
        return false;
    for (int i = 0; i < 2; i++) {
        twi_value apart = twi_in(move.node, i), weight = twi_in(move.node, 1 - i);
        if (!twi_is(apart.node, TWI_OP_Sub) || twi_shape(weight).rank != 0 || apart.node->device != node->device ||
            !twi_is_read_of(twi_in(apart.node, 0), handle) || twi_only_user(apart) != move.node ||
            !is_only_writer(handle, node, NULL) ||
            !tw_shape_equal(twi_shape(twi_in(apart.node, 1)), twi_shape(handle)))
            continue;
        *p = (part){.node = node, .handle = handle, .numbers = {weight}, .num_numbers = 1, .towers = 1,
                    .gradients = {{.value = twi_in(apart.node, 1)}}};
        return true;
    }
    return false;
}

/* ---- gathering --------------------------------------------------------------------------------------------------- */

/* Takes cuts and casts out of the gradients, and notes who could leave them transposed. */
static void take_links(const twi_rewriting *r, const char *op, twi_cut *last, part *p)
{
    for (int i = 0; i < p->towers; i++) {
        twi_take_cut(r, last, &p->gradients[i], p->node);
        twi_take_cast(r, &p->gradients[i], p->node, op);
        twi_find_conv(r, &p->gradients[i], p->node);
    }
}

static bool gather(const twi_rewriting *r, const kind *k, parts *all)
{
    twi_cut last = {0};
    bool fits = true;
    for (int id = 0; id < r->region->nodes.count && fits; id++) {
        twi_node *node = r->region->nodes.items[id];
        part p;
        if (node->gone || !k->find(r, node, &p) || !twi_rewrite_has_kernel(r, node, k->op, TW_FLOAT32))
            continue;
        if (k->of_gradients)
            take_links(r, k->op, &last, &p);
        p.place = all->count;
        fits = twi_push(all, p);
    }
    return fits;
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_values(twi_value a, twi_value b)
{
    int order = compare(a.node->id, b.node->id);
    return order ? order : compare(a.index, b.index);
}

/* 0: the two have in common what all of a joint node have: the device, the kind of update, its numbers, the mean. */
static int compare_kinds(const part *a, const part *b)
{
    int order = compare(a->node->device, b->node->device);
    if (!order)
        order = compare((intptr_t)a->node->op, (intptr_t)b->node->op);
    if (!order)
        order = compare(a->nesterov, b->nesterov);
    if (!order)
        order = compare(a->towers, b->towers);
    if (!order)
        order = a->scale < b->scale ? -1 : a->scale > b->scale;
    for (int i = 0; i < a->num_numbers && !order; i++)
        order = compare_values(a->numbers[i], b->numbers[i]);
    return order;
}

static int by_kind_and_variable(const void *a, const void *b)
{
    const part *x = a, *y = b;
    int order = compare_kinds(x, y);
    if (!order)
        order = compare_values(x->handle, y->handle);
    return order ? order : compare(x->place, y->place);
}

static int by_group_and_round(const void *a, const void *b)
{
    const part *x = a, *y = b;
    int order = compare(x->group, y->group);
    if (!order)
        order = compare(x->round, y->round);
    return order ? order : compare(x->place, y->place);
}

/* Puts those together that may be of one joint node, each variable once; else in the order of the graph. */
static void sort_parts(parts *all)
{
    part *p = all->items;
    qsort(p, (size_t)all->count, sizeof *p, by_kind_and_variable);
    for (int i = 0, end; i < all->count; i = end) {
        int first = p[i].place;
        for (end = i; end < all->count && !compare_kinds(&p[end], &p[i]); end++) {
            bool again = end > i && twi_same(p[end].handle, p[end - 1].handle);
            p[end].round = again ? p[end - 1].round + 1 : 0;
            first = p[end].place < first ? p[end].place : first;
        }
        for (int k = i; k < end; k++)
            p[k].group = first;
    }
    qsort(p, (size_t)all->count, sizeof *p, by_group_and_round);
}

/* How many there are, from the first on, for one joint node. */
static int count_alike(const part *first, int left)
{
    int count = 1;
    while (count < left && count < MOST_TOGETHER && first[count].group == first->group &&
           first[count].round == first->round)
        count++;
    return count;
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

/* The type of the part's gradients; of two, the narrow one. */
static tw_dtype type_of(const part *p)
{
    tw_dtype first = twi_dtype(p->gradients[0].value);
    return first == TW_FLOAT32 && p->towers == 2 ? twi_dtype(p->gradients[1].value) : first;
}

/* The type of the group's gradients, or of the narrow ones among them. */
static tw_dtype type_of_all(const part *group, int count)
{
    for (int i = 0; i < count; i++)
        if (type_of(&group[i]) != TW_FLOAT32)
            return type_of(&group[i]);
    return TW_FLOAT32;
}

/* Whether a joint node does more than the node of a single part. */
static bool does_more(const part *p)
{
    return p->gradients[0].decay.node || p->towers > 1 || type_of(p) != TW_FLOAT32 || p->gradients[0].transposed ||
           p->gradients[0].cut;
}

/* The joint node that is being made of a group. */
typedef struct joining {
    const kind *kind;
    part *group;
    int count, values; /* values: a gradient of each tower */
    bool decays, losses;
    twi_node **nodes;  /* that go away */
    int num_nodes;
    twi_value *inputs;
    int num_inputs;
    int64_t *transposed, *offsets;
    tw_attr attrs[12];
    int num_attrs;
} joining;

static bool reserve(joining *j)
{
    size_t count = (size_t)j->count, values = (size_t)j->values;
    j->nodes = twi_alloc_array(2 * count, sizeof *j->nodes);
    j->inputs = twi_alloc_array(count * (2 + MOST_SLOTS) + MOST_NUMBERS + 2 * values, sizeof *j->inputs);
    j->transposed = twi_alloc_array(count, sizeof *j->transposed);
    j->offsets = twi_alloc_array(values, sizeof *j->offsets);
    return j->nodes && j->inputs && j->transposed && j->offsets;
}

static void release(joining *j)
{
    twi_free(j->nodes);
    twi_free(j->inputs);
    twi_free(j->transposed);
    twi_free(j->offsets);
}

/* What goes before goes first, so that the controls between the two vanish. */
static void list_nodes(joining *j)
{
    for (int i = 0; i < j->count; i++) {
        if (j->group[i].loss)
            j->nodes[j->num_nodes++] = j->group[i].loss;
        j->nodes[j->num_nodes++] = j->group[i].node;
    }
}

/* Gradient i of values: of two towers, all of the first, then all of the second. */
static const twi_raw_gradient *gradient_of(const joining *j, int i)
{
    return &j->group[i % j->count].gradients[i / j->count];
}

static void look_at_parts(joining *j)
{
    j->decays = j->kind->always_decays;
    for (int i = 0; i < j->count; i++) {
        j->losses = j->losses || j->group[i].loss;
        j->transposed[i] = j->group[i].gradients[0].transposed;
    }
    for (int i = 0; i < j->values; i++) {
        const twi_raw_gradient *gradient = gradient_of(j, i);
        j->decays = j->decays || gradient->decay.node;
        j->offsets[i] = gradient->cut ? gradient->offset : -1;
    }
}

/* A scalar 0 in the place of decays that are not there. */
static twi_value make_zero(twi_rewriting *r, const twi_node *like)
{
    tw_tensor *value = tw_tensor_float(0);
    twi_node *zero = twi_node_constant(r->region, like, "/no_decay", value);
    tw_tensor_release(value);
    return twi_out(zero, 0);
}

static void put(joining *j, twi_value value, twi_value otherwise)
{
    j->inputs[j->num_inputs++] = value.node ? value : otherwise;
}

/* handles, slots of each kind, numbers, values; then, where there are any, decays and losses. */
static void list_inputs(joining *j, twi_value none)
{
    const part *group = j->group;
    for (int i = 0; i < j->count; i++)
        put(j, group[i].handle, none);
    for (int i = 0; i < group[0].num_slots * j->count; i++)
        put(j, group[i % j->count].slots[i / j->count], none);
    for (int i = 0; i < group[0].num_numbers; i++)
        put(j, group[0].numbers[i], none);
    for (int i = 0; i < j->values; i++)
        put(j, gradient_of(j, i)->value, none);
    for (int i = 0; i < j->values && j->decays; i++)
        put(j, gradient_of(j, i)->decay, none);
    for (int i = 0; i < j->count && j->losses; i++)
        put(j, group[i].lost, none);
}

static void say(joining *j, tw_attr attr)
{
    j->attrs[j->num_attrs++] = attr;
}

static void list_attrs(joining *j)
{
    const part *first = &j->group[0];
    say(j, tw_attr_int("N", j->count));
    say(j, tw_attr_type("T", type_of_all(j->group, j->count)));
    if (j->kind->of_gradients) {
        say(j, tw_attr_int("M", j->values));
        say(j, tw_attr_float("scale", first->scale));
        say(j, tw_attr_ints("transposed", j->transposed, j->count));
        say(j, tw_attr_ints("offsets", j->offsets, j->values));
    }
    if (j->kind->of_any_update) {
        say(j, tw_attr_string("update", first->node->op->name));
        say(j, tw_attr_int("S", first->num_slots * j->count));
        say(j, tw_attr_int("K", first->num_numbers));
        say(j, tw_attr_int("D", j->decays ? j->values : 0));
        say(j, tw_attr_int("L", j->losses ? j->count : 0));
        say(j, tw_attr_bool("use_nesterov", first->nesterov));
    }
}

/* The node, once all else is known; NULL: the device refuses it. */
static twi_node *make(twi_rewriting *r, joining *j)
{
    const twi_node *last = j->group[j->count - 1].node;
    bool pads = j->decays || j->losses;
    twi_value none = pads ? make_zero(r, j->group[0].node) : (twi_value){0};
    if (pads && !none.node)
        return NULL;
    list_inputs(j, none);
    list_attrs(j);
    return twi_rewrite_make(r, last, "/joint", j->kind->op, j->inputs, j->num_inputs, j->attrs, j->num_attrs);
}

static void take_over(joining *j, twi_node *joint)
{
    for (int i = 0; i < j->values; i++)
        twi_settle_transposed(gradient_of(j, i));
    for (int i = 0; i < j->num_nodes; i++)
        twi_move_controls(j->nodes[i], joint);
}

/* Puts one node in the place of the group's, unless one of them waits for another or the device refuses it. */
static tw_status join(twi_rewriting *r, const kind *k, part *group, int count, tw_error *error)
{
    joining j = {.kind = k, .group = group, .count = count, .values = group[0].towers * count};
    int before = r->region->nodes.count;
    bool fits = reserve(&j);
    twi_node *joint = NULL;
    if (fits) {
        list_nodes(&j);
        if (twi_may_join(j.nodes, j.num_nodes)) {
            for (int i = 0; i < count; i++)
                twi_make_transposed(r, group[i].gradients, group[i].towers);
            look_at_parts(&j);
            joint = count > 1 || does_more(&group[0]) ? make(r, &j) : NULL;
        }
        if (joint)
            take_over(&j, joint);
        else
            twi_rewrite_undo(r, before);
    }
    release(&j);
    return fits ? TW_OK : twi_fail_memory(error, "joining updates");
}

/* All of a kind; what has vanished by that is of no interest to the next. */
static tw_status join_all(twi_rewriting *r, const kind *k, tw_error *error)
{
    tw_status status = TW_OK;
    parts all = {0};
    if (!gather(r, k, &all))
        TWI_LEAVE(twi_fail_memory(error, "joining updates"));
    if (all.count)
        sort_parts(&all);
    for (int i = 0, count; i < all.count; i += count) {
        count = count_alike(&all.items[i], all.count - i);
        TWI_TRY(join(r, k, &all.items[i], count, error));
    }
    twi_region_sweep(r->region);
done:
    twi_array_free(&all);
    return status;
}

tw_status twi_rewrite_update(twi_rewriting *r, tw_error *error)
{
    static const kind kinds[] = {
        {.op = "_ApplyGradientDescentMany", .find = find_descent, .of_gradients = true, .always_decays = true},
        {.op = "_ApplyMany", .find = find_update, .of_gradients = true, .of_any_update = true},
        {.op = "_MovingAverageMany", .find = find_average},
    };
    tw_status status = TW_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && status == TW_OK; i++)
        status = join_all(r, &kinds[i], error);
    return status; /* an error may be on the region, too */
}

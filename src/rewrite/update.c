/* update.c - what is done to every variable alike at the end of a step is done to all at once: the updates of gradient
 * descent, with the mean of two towers and the weight decay that are part of their gradients; those of the other
 * optimizers, with decoupled weight decay too, where a device has a kernel for many; and moving averages. Gradients of a
 * narrow type are read as they are where the device's kernel can, not cast before; those of filters are left with their
 * last axis first where the device's convolutions make them so.
 * Never here: other chains (fuse.c), what a tower's gradient is made of (gradient.c).
 *
 * Joined are nodes of one device with the same rate and other numbers, where none waits for another. Weight decay may
 * come from another device of the host: it costs nothing where the variable is read anyway. */
#include "rewrite/gradient.h"

#include "base/array.h"
#include "device/fused/update.h"

#include <string.h>

enum { MOST_SLOTS = 2, MOST_NUMBERS = 6 };

/* One variable's part of a joint node. */
typedef struct part {
    tw_node *node;                /* the update that goes away, */
    tw_node *loss;                /* and decoupled weight decay before it, the share `lost` of the variable; NULL: none */
    tw_output lost;
    tw_output handle, slots[MOST_SLOTS], numbers[MOST_NUMBERS]; /* the first is the rate, if that is all there is */
    int num_slots, num_numbers;
    bool nesterov;
    int towers;                   /* 1, or 2: the mean of two */
    twi_raw_gradient gradients[2]; /* of each tower */
    float scale;                  /* of the sum of two */
} part;

typedef TWI_ARRAY(part) parts;

static bool is(const tw_node *node, const char *op)
{
    return strcmp(node->op->name, op) == 0;
}

static bool same(tw_output a, tw_output b)
{
    return a.node == b.node && a.index == b.index;
}

/* The only one (or two) to change the variable: then it does not matter when, within the order of the graph, it is
 * read. */
static bool is_only_writer(const twi_rewriting *r, tw_output handle, const tw_node *writer, const tw_node *other)
{
    tw_node *user;
    for (int i = 0; (user = twi_rewrite_user(r, handle, i)); i++)
        if (user != writer && user != other && !is(user, "ReadVariableOp"))
            return false;
    return true;
}

/* ---- gradient descent ----------------------------------------------------------------------------------------- */

/* Takes the last sum of an average out of the gradient: Mul(AddV2(g, g'), constant). Returns who uses g and g'. */
static const tw_node *split_mean(const twi_rewriting *r, part *p)
{
    const tw_node *mean = twi_find_link(r, p->gradients[0].value, "Mul", p->node);
    const tw_tensor *scale = mean ? twi_constant_value(mean->inputs[1]) : NULL;
    const tw_node *sum = scale && tw_tensor_elements(scale) == 1 && tw_output_shape(mean->inputs[1]).rank == 0
                             ? twi_find_link(r, mean->inputs[0], "AddV2", mean)
                             : NULL;
    tw_shape shape = tw_output_shape(p->gradients[0].value);
    if (!sum || !tw_shape_equal(tw_output_shape(sum->inputs[0]), shape) ||
        !tw_shape_equal(tw_output_shape(sum->inputs[1]), shape) || same(sum->inputs[0], sum->inputs[1]))
        return p->node;
    p->towers = 2;
    p->scale = (float)tw_tensor_value(scale, 0);
    p->gradients[0].value = sum->inputs[0];
    p->gradients[1].value = sum->inputs[1];
    return sum;
}

static void split_gradient(const twi_rewriting *r, part *p)
{
    const tw_node *user = split_mean(r, p);
    for (int i = 0; i < p->towers; i++) {
        p->gradients[i].user = user;
        if (is_only_writer(r, p->handle, p->node, p->loss))
            twi_split_decay(r, &p->gradients[i], p->node, p->handle);
    }
}

static bool find_descent(const twi_rewriting *r, tw_node *node, part *p)
{
    if (!is(node, "ResourceApplyGradientDescent") || twi_attr_type(&node->attrs, "T") != TW_FLOAT32)
        return false;
    *p = (part){.node = node, .handle = node->inputs[0], .numbers = {node->inputs[1]}, .num_numbers = 1, .towers = 1,
                .gradients = {{.value = node->inputs[2]}}, .scale = 1};
    split_gradient(r, p);
    return true;
}

/* ---- other optimizers ----------------------------------------------------------------------------------------- */

/* True if exactly one node waits for this one, and that is `user`. */
static bool only_waited_for_by(const twi_rewriting *r, const tw_node *node, const tw_node *user)
{
    int uses = 0;
    for (int n = 0; n < r->graph->nodes.count; n++) {
        const tw_node *other = r->graph->nodes.items[n];
        for (int i = 0; i < other->num_control_inputs; i++)
            uses += other->control_inputs[i] == node ? (other == user ? 1 : 2) : 0;
    }
    for (int i = 0; i < r->num_fetches; i++)
        uses += r->fetches[i].node == node ? 2 : 0;
    return uses == 1;
}

/* Takes decoupled weight decay, AssignSub(variable, s * variable), which the update waits for, into the part. */
static void take_loss(const twi_rewriting *r, part *p)
{
    for (int i = 0; i < p->node->num_control_inputs; i++) {
        tw_node *loss = p->node->control_inputs[i];
        if (!is(loss, "AssignSubVariableOp") || !same(loss->inputs[0], p->handle) ||
            loss->assigned != p->node->assigned || !only_waited_for_by(r, loss, p->node) ||
            !is_only_writer(r, p->handle, p->node, loss))
            continue;
        p->lost = twi_decay_of(r, loss->inputs[1], p->handle, &(tw_output){0});
        p->loss = p->lost.node ? loss : NULL;
        return;
    }
}

static bool find_update(const twi_rewriting *r, tw_node *node, part *p)
{
    if (!twi_update_inputs(node->op->name) || twi_attr_type(&node->attrs, "T") != TW_FLOAT32)
        return false;
    const char *inputs = twi_update_inputs(node->op->name);
    *p = (part){.node = node, .towers = 1, .scale = 1,
                .nesterov = twi_attr_bool(&node->attrs, "use_nesterov", false)};
    for (int i = 0; inputs[i]; i++)
        *(inputs[i] == 'v'   ? &p->handle
          : inputs[i] == 's' ? &p->slots[p->num_slots++]
          : inputs[i] == 'n' ? &p->numbers[p->num_numbers++]
                             : &p->gradients[0].value) = node->inputs[i];
    take_loss(r, p);
    split_gradient(r, p);
    return true;
}

/* ---- moving averages ------------------------------------------------------------------------------------------ */

/* AssignSub(average, (read(average) - value) * weight) */
static bool find_average(const twi_rewriting *r, tw_node *node, part *p)
{
    if (!is(node, "AssignSubVariableOp") || tw_output_dtype(node->inputs[1]) != TW_FLOAT32)
        return false;
    tw_output handle = node->inputs[0], move = node->inputs[1];
    if (!is(move.node, "Mul") || twi_rewrite_only_user(r, move) != node || move.node->assigned != node->assigned)
        return false;
    for (int i = 0; i < 2; i++) {
        tw_output apart = move.node->inputs[i], weight = move.node->inputs[1 - i];
        if (!is(apart.node, "Sub") || tw_output_shape(weight).rank != 0 || apart.node->assigned != node->assigned ||
            !twi_is_read_of(apart.node->inputs[0], handle) || twi_rewrite_only_user(r, apart) != move.node ||
            !is_only_writer(r, handle, node, NULL) ||
            !tw_shape_equal(tw_output_shape(apart.node->inputs[1]), tw_output_shape(handle)))
            continue;
        *p = (part){.node = node, .handle = handle, .numbers = {weight}, .num_numbers = 1, .towers = 1,
                    .gradients = {{.value = apart.node->inputs[1]}}};
        return true;
    }
    return false;
}

/* ---- joining -------------------------------------------------------------------------------------------------- */

/* Takes cuts and casts out of the gradients, and lets convolutions leave them turned: both or none. */
static void take_links(twi_rewriting *r, const char *op, part *p)
{
    tw_node *convs[2];
    bool turns = p->gradients[0].user != NULL;
    for (int i = 0; i < p->towers && p->gradients[i].user; i++) {
        twi_take_cut(r, &p->gradients[i], p->node);
        twi_take_cast(r, &p->gradients[i], p->node, op);
        convs[i] = twi_find_turnable(r, &p->gradients[i], p->node);
        turns = turns && convs[i];
    }
    for (int i = 0; i < p->towers && turns; i++)
        twi_take_turned(r, &p->gradients[i], convs[i]);
}

/* The type of the part's gradients; of two, the narrow one. */
static tw_dtype type_of(const part *p)
{
    tw_dtype first = tw_output_dtype(p->gradients[0].value);
    return first == TW_FLOAT32 && p->towers == 2 ? tw_output_dtype(p->gradients[1].value) : first;
}

/* The type of the group's gradients, or of the narrow ones among them. */
static tw_dtype type_of_all(const part *group, int count)
{
    for (int i = 0; i < count; i++)
        if (type_of(&group[i]) != TW_FLOAT32)
            return type_of(&group[i]);
    return TW_FLOAT32;
}

/* What all parts of a joint node have in common: the device, the kind of update, its numbers, the mean. */
static bool goes_with(const part *a, const part *b)
{
    bool fits = a->node->assigned == b->node->assigned && a->node->op == b->node->op && a->nesterov == b->nesterov &&
                a->towers == b->towers && a->scale == b->scale;
    for (int i = 0; i < a->num_numbers && fits; i++)
        fits = same(a->numbers[i], b->numbers[i]);
    return fits;
}

/* Parts that go with the first one; each variable once. */
static int gather(const parts *all, part *group, bool *taken)
{
    int count = 0;
    for (int i = 0; i < all->count; i++) {
        const part *p = &all->items[i];
        bool fits = !taken[i] && (count == 0 || goes_with(p, &group[0]));
        for (int k = 0; k < count && fits; k++)
            fits = !same(p->handle, group[k].handle);
        if (fits) {
            group[count++] = *p;
            taken[i] = true;
        }
    }
    return count;
}

/* A scalar 0 in the place of decays that are not there. */
static tw_output zero(twi_rewriting *r, const tw_node *like, tw_error *error)
{
    tw_tensor *value = tw_tensor_float(0);
    if (!value) {
        twi_fail_memory(error, "joining updates");
        return (tw_output){0};
    }
    tw_attr attrs[] = {tw_attr_type("dtype", TW_FLOAT32), tw_attr_tensor("value", value)};
    tw_node *node = twi_rewrite_node(r, like, "/no_decay", "Const", NULL, 0, attrs, 2);
    tw_tensor_release(value);
    return (tw_output){node, 0};
}

/* handles, slots of each kind, numbers, values; then, where there are any, decays and losses. Of two towers, all of the
 * first, then all of the second. */
static int list_inputs(const part *group, int count, bool decays, bool losses, tw_output none, tw_output *inputs)
{
    int n = 0, values = group[0].towers * count;
    for (int i = 0; i < count; i++)
        inputs[n++] = group[i].handle;
    for (int i = 0; i < group[0].num_slots * count; i++)
        inputs[n++] = group[i % count].slots[i / count];
    for (int i = 0; i < group[0].num_numbers; i++)
        inputs[n++] = group[0].numbers[i];
    for (int i = 0; i < values; i++)
        inputs[n++] = group[i % count].gradients[i / count].value;
    for (int i = 0; i < values && decays; i++) {
        tw_output decay = group[i % count].gradients[i / count].decay;
        inputs[n++] = decay.node ? decay : none;
    }
    for (int i = 0; i < count && losses; i++)
        inputs[n++] = group[i].lost.node ? group[i].lost : none;
    return n;
}

static tw_status join(twi_rewriting *r, const char *op, const part *group, int count, tw_error *error)
{
    tw_status status = TW_OK;
    tw_node **nodes = twi_alloc_array(2 * (size_t)count, sizeof *nodes);
    int values = group[0].towers * count, gone = 0, num_attrs = 0;
    bool descends = strcmp(op, "_ApplyGradientDescentMany") == 0, decays = descends, losses = false;
    size_t most = (size_t)(count * (2 + MOST_SLOTS) + MOST_NUMBERS + 2 * values);
    tw_output none = {0}, *inputs = twi_alloc_array(most, sizeof *inputs);
    int64_t *turned = twi_alloc_array((size_t)(count + values), sizeof *turned), *offsets = turned + count;
    if (!nodes || !inputs || !turned)
        TWI_TRY(twi_fail_memory(error, "joining updates"));
    for (int i = 0; i < count; i++) { /* what goes before goes first, so that the controls between the two vanish */
        decays = decays || group[i].gradients[0].decay.node || group[i].gradients[1].decay.node;
        losses = losses || group[i].loss;
        if (group[i].loss)
            nodes[gone++] = group[i].loss;
        nodes[gone++] = group[i].node;
        turned[i] = group[i].gradients[0].turned;
    }
    for (int i = 0; i < values; i++) {
        const twi_raw_gradient *gradient = &group[i % count].gradients[i / count];
        offsets[i] = gradient->cut ? gradient->offset : -1;
    }
    if (!twi_rewrite_may_join(r, nodes, gone))
        goto done;
    if (decays || losses)
        none = zero(r, group[0].node, error);
    if ((decays || losses) && !none.node) {
        status = r->graph->error.status != TW_OK ? TW_OK : TW_RESOURCE_EXHAUSTED; /* the driver reports the graph's */
        goto done;
    }
    int num_inputs = list_inputs(group, count, decays, losses, none, inputs);
    tw_attr attrs[12];
    attrs[num_attrs++] = tw_attr_int("N", count);
    attrs[num_attrs++] = tw_attr_type("T", type_of_all(group, count));
    if (strcmp(op, "_MovingAverageMany") != 0) {
        attrs[num_attrs++] = tw_attr_int("M", values);
        attrs[num_attrs++] = tw_attr_float("scale", group[0].scale);
        attrs[num_attrs++] = tw_attr_ints("turned", turned, count);
        attrs[num_attrs++] = tw_attr_ints("offsets", offsets, values);
    }
    if (strcmp(op, "_ApplyMany") == 0) {
        attrs[num_attrs++] = tw_attr_string("update", group[0].node->op->name);
        attrs[num_attrs++] = tw_attr_int("S", group[0].num_slots * count);
        attrs[num_attrs++] = tw_attr_int("K", group[0].num_numbers);
        attrs[num_attrs++] = tw_attr_int("D", decays ? values : 0);
        attrs[num_attrs++] = tw_attr_int("L", losses ? count : 0);
        attrs[num_attrs++] = tw_attr_bool("use_nesterov", group[0].nesterov);
    }
    tw_node *joint = twi_rewrite_node(r, group[count - 1].node, "/joint", op, inputs, num_inputs, attrs, num_attrs);
    for (int i = 0; i < gone && joint; i++)
        twi_rewrite_move_controls(r, nodes[i], joint);
done:
    twi_free(nodes);
    twi_free(inputs);
    twi_free(turned);
    return status;
}

static tw_status join_all(twi_rewriting *r, const char *op, bool (*find)(const twi_rewriting *, tw_node *, part *),
                          tw_error *error)
{
    tw_status status = TW_OK;
    parts all = {0};
    part *group = NULL;
    bool *taken = NULL;
    for (int id = 0; id < r->graph->nodes.count; id++) {
        part p;
        if (!find(r, r->graph->nodes.items[id], &p) || !twi_rewrite_has_kernel(r, p.node, op, TW_FLOAT32))
            continue;
        take_links(r, op, &p);
        if (!twi_push(&all, p))
            TWI_TRY(twi_fail_memory(error, "joining updates"));
    }
    group = twi_alloc_array((size_t)all.count + 1, sizeof *group);
    taken = twi_alloc_array((size_t)all.count + 1, sizeof *taken);
    if (!group || !taken)
        TWI_TRY(twi_fail_memory(error, "joining updates"));
    for (int count; (count = gather(&all, group, taken)) > 0;)
        if (count > 1 || group[0].gradients[0].decay.node || group[0].towers > 1 || type_of(&group[0]) != TW_FLOAT32 ||
            group[0].gradients[0].turned || group[0].gradients[0].cut)
            TWI_TRY(join(r, op, group, count, error));
    if (r->graph->error.status == TW_OK)
        status = twi_rewrite_clean(r, error);
done:
    twi_array_free(&all);
    twi_free(group);
    twi_free(taken);
    return status;
}

tw_status twi_rewrite_update(twi_rewriting *r, tw_error *error)
{
    tw_status status = join_all(r, "_ApplyGradientDescentMany", find_descent, error);
    if (status == TW_OK && r->graph->error.status == TW_OK)
        status = join_all(r, "_ApplyMany", find_update, error);
    if (status == TW_OK && r->graph->error.status == TW_OK)
        status = join_all(r, "_MovingAverageMany", find_average, error);
    return status;
}

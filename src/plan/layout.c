/* layout.c - images in NCHW, on devices whose kernels want NHWC: whole parts of the region change their layout, with
 * transposes at their borders alone. So a graph that was made for cuDNN runs on CPUs, at the speed of NHWC.
 *
 * From first to last, a node on images (op->layout) that its device refuses for its layout gets a twin on NHWC. What
 * comes behind follows if one of its inputs has such a form already: nodes on images, elementwise ones, concatenations,
 * pads, reductions; what else is needed is brought into that form, by a Transpose. In the end, who stayed behind gets
 * back what he knows. A user's own Transpose into NCHW says that there is such a form.
 *
 * Results are those of NHWC: sums over height and width are taken in another order than NCHW's kernels would. */
#include "plan/stages.h"

#include "tensor/tensor.h"

#include <string.h>

#define FORMAT "data_format"

enum { RANK = 4 };

/* Dimension i of the one layout is dimension order[i] of the other. */
static const int to_last[RANK] = {0, 2, 3, 1}, to_first[RANK] = {0, 3, 1, 2};

typedef struct laying {
    twi_planning *p;
    twi_region *region;
    int count;        /* nodes before any was made */
    twi_value *forms; /* [count] the first output in NHWC; {NULL, 0}: there is none */
    bool *replaced;   /* [count] a twin does the node's work */
} laying;

/* ---- looking ----------------------------------------------------------------------------------------------------- */

static bool is_first(const twi_node *node)
{
    return node->op->layout && strcmp(twi_attr_string(&node->attrs, FORMAT, ""), "NCHW") == 0;
}

static bool is_image(twi_value value)
{
    return value.index == 0 && twi_shape(value).rank == RANK;
}

static bool has_form(const laying *l, twi_value value)
{
    return is_image(value) && value.node->id < l->count && l->forms[value.node->id].node;
}

/* Whether a node's constant is a permutation of four. */
static bool permutes(const twi_node *node, const int order[RANK])
{
    const tw_tensor *given = twi_is(node, TWI_OP_Transpose) ? twi_constant(twi_in(node, 1)) : NULL;
    bool same = given && tw_tensor_elements(given) == RANK;
    for (int i = 0; i < RANK && same; i++)
        same = twi_tensor_int(given, i) == order[i];
    return same;
}

/* Whether some image among the inputs has a form, and all that must be images are. */
static bool may_follow(const laying *l, const twi_node *node)
{
    bool any = false;
    for (int i = 0; i < node->num_inputs; i++) {
        twi_value value = twi_in(node, i);
        bool wants = !node->op->layout || twi_op_layout(node->op, &node->attrs, i) == 'i';
        if (node->op->layout && wants && !is_image(value))
            return false;
        any |= wants && has_form(l, value);
    }
    return any;
}

/* Among inputs of its shape or less, the order of dimensions does not matter. */
static bool goes_along(const twi_node *node)
{
    bool passes = twi_has_trait(node, TWI_PASSES) && node->num_inputs == 1 && node->num_results == 1;
    return (twi_has_trait(node, TWI_ELEMENTWISE) || passes) && node->num_results == 1 && is_image(twi_out(node, 0));
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* Numbers, int32 or int64, as a Const beside `like`. */
static twi_value make_numbers(laying *l, const twi_node *like, const char *suffix, tw_dtype dtype, tw_shape shape,
                              const int64_t *numbers)
{
    tw_tensor *tensor = tw_tensor_create(dtype, shape);
    for (int64_t i = 0; tensor && i < tw_tensor_elements(tensor); i++)
        if (dtype == TW_INT64)
            ((int64_t *)tw_tensor_data(tensor))[i] = numbers[i];
        else
            ((int32_t *)tw_tensor_data(tensor))[i] = (int32_t)numbers[i];
    twi_node *node = twi_node_constant(l->region, like, suffix, tensor);
    tw_tensor_release(tensor);
    return twi_out(node, 0);
}

static twi_value make_transpose(laying *l, const twi_node *like, const char *suffix, twi_value value,
                                const int order[RANK])
{
    int64_t numbers[RANK];
    for (int i = 0; i < RANK; i++)
        numbers[i] = order[i];
    twi_value inputs[] = {value, make_numbers(l, like, suffix, TW_INT32, TW_SHAPE(RANK), numbers)};
    if (!inputs[1].node)
        return inputs[1];
    return twi_out(twi_node_like(l->region, like, suffix, l->region->known[TWI_OP_Transpose], inputs, 2, NULL, 0), 0);
}

/* The value in NHWC. It is made where the value is, for all who may ask; what is fed is nowhere yet. */
static twi_value form_of(laying *l, const twi_node *user, twi_value value)
{
    if (has_form(l, value))
        return l->forms[value.node->id];
    bool is_fed = twi_has_trait(value.node, TWI_FEED);
    twi_value made = make_transpose(l, is_fed ? user : value.node, "/to_nhwc", value, to_last);
    if (made.node && is_fed)
        twi_set_guard(made.node, NULL);
    if (value.index == 0 && value.node->id < l->count)
        l->forms[value.node->id] = made;
    return made;
}

/* An operand of fewer dimensions gets leading ones, and then the layout; of a scalar every layout is the same. */
static twi_value operand_of(laying *l, const twi_node *user, twi_value value)
{
    tw_shape shape = twi_shape(value);
    int64_t dims[RANK] = {1, 1, 1, 1}, last[RANK];
    if (shape.rank == 0)
        return value;
    if (is_image(value))
        return form_of(l, user, value);
    for (int i = 0; i < shape.rank; i++)
        dims[RANK - shape.rank + i] = shape.dims[i];
    bool keeps_order = dims[1] == 1 || (dims[2] == 1 && dims[3] == 1);
    for (int i = 0; i < RANK; i++)
        last[i] = dims[to_last[i]];
    twi_value inputs[] = {value,
                          make_numbers(l, user, "/to_nhwc/shape", TW_INT32, TW_SHAPE(RANK), keeps_order ? last : dims)};
    if (!inputs[1].node)
        return inputs[1];
    twi_value whole =
        twi_out(twi_node_like(l->region, user, "/to_nhwc", l->region->known[TWI_OP_Reshape], inputs, 2, NULL, 0), 0);
    return keeps_order || !whole.node ? whole : make_transpose(l, user, "/to_nhwc", whole, to_last);
}

/* Where dimension `axis` of NCHW, which may count from the end, is in NHWC. */
static int64_t place_of(int64_t axis)
{
    return to_first[axis < 0 ? axis + RANK : axis];
}

/* Numbers that say something of dimensions, for the other order: its dimensions themselves, pairs for each, or their
 * numbers. {NULL, 0}: they are not known. */
static twi_value reordered(laying *l, const twi_node *user, twi_value value, char letter)
{
    const tw_tensor *given = twi_constant(value);
    int64_t numbers[2 * RANK], count = given ? tw_tensor_elements(given) : -1;
    bool fits = letter == 'a' ? count >= 0 && count <= RANK : count == (letter == 's' ? RANK : 2 * RANK);
    for (int i = 0; i < count && fits; i++) {
        int64_t number = twi_tensor_int(given, i);
        fits = letter != 'a' || (number >= -RANK && number < RANK);
        numbers[i] = letter == 's'   ? twi_tensor_int(given, to_last[i])
                     : letter == 'p' ? twi_tensor_int(given, 2 * to_last[i / 2] + i % 2)
                     : fits          ? place_of(number)
                                     : 0;
    }
    return fits ? make_numbers(l, user, "/nhwc/numbers", tw_tensor_dtype(given), tw_tensor_shape(given), numbers)
                : (twi_value){0};
}

/* Lists of four, or of four pairs, in the order of dimensions; and the format. */
static twi_attr *reordered_attrs(laying *l, const twi_attrs *attrs)
{
    static const char *const lists[] = {"strides", "ksize", "dilations", "explicit_paddings"};
    twi_arena *arena = &l->region->arena;
    twi_attr *made = twi_arena_copy(arena, attrs->items, sizeof *made * (size_t)attrs->count);
    for (int i = 0; i < attrs->count && made; i++) {
        twi_attr *attr = &made[i];
        bool is_list = false;
        for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
            is_list |= strcmp(attr->name, lists[k]) == 0;
        if (strcmp(attr->name, FORMAT) == 0)
            *attr = tw_attr_string(FORMAT, "NHWC");
        int each = attr->count / RANK; /* numbers for a dimension */
        if (!is_list || each * RANK != attr->count || each == 0)
            continue;
        int64_t *ints = twi_arena_alloc(arena, sizeof *ints * (size_t)attr->count);
        for (int k = 0; k < attr->count && ints; k++)
            ints[k] = attr->ints[each * to_last[k / each] + k % each];
        if (!ints)
            return NULL;
        attr->ints = ints;
    }
    return made;
}

/* ---- twins ------------------------------------------------------------------------------------------------------- */

static bool is_accepted(const laying *l, const twi_node *node)
{
    return twi_node_accepted(node, l->p->request->devices->items[node->device], l->p->request->plain_kernels, NULL,
                             NULL) == TW_OK;
}

/* The input of the twin; {NULL, 0}: there can be none. */
static twi_value twin_input(laying *l, const twi_node *node, int i)
{
    twi_value value = twi_in(node, i);
    if (goes_along(node) && !node->op->layout)
        return operand_of(l, node, value);
    char letter = node->op->layout ? twi_op_layout(node->op, &node->attrs, i) : i == 0 ? 'i' : 'a';
    return letter == '.' ? value : letter == 'i' ? form_of(l, node, value) : reordered(l, node, value, letter);
}

/* The node on NHWC; NULL: there is none, or its device refuses it. */
static twi_node *make_twin(laying *l, const twi_node *node)
{
    twi_value *inputs = twi_arena_alloc(&l->region->arena, sizeof *inputs * (size_t)(node->num_inputs + 1));
    const twi_attr *attrs = is_first(node) ? reordered_attrs(l, &node->attrs) : node->attrs.items;
    if (!inputs || !attrs) {
        twi_region_fail_memory(l->region);
        return NULL;
    }
    for (int i = 0; i < node->num_inputs; i++) {
        inputs[i] = twin_input(l, node, i);
        if (!inputs[i].node)
            return NULL;
    }
    twi_node *twin =
        twi_node_like(l->region, node, "/nhwc", node->op, inputs, node->num_inputs, attrs, node->attrs.count);
    if (twin && is_accepted(l, twin))
        return twin;
    if (twin)
        twi_node_drop(twin);
    return NULL;
}

/* The twin does the node's work: who wants an image is served at the end. */
static void put_twin(laying *l, twi_node *node, twi_node *twin, bool gives_image)
{
    if (gives_image)
        l->forms[node->id] = twi_out(twin, 0);
    for (int k = gives_image; k < node->num_results; k++)
        twi_replace(twi_out(node, k), twi_out(twin, k));
    twi_move_controls(node, twin);
    node->became = twin;
    l->replaced[node->id] = true;
}

/* ---- which nodes ------------------------------------------------------------------------------------------------- */

/* Whether dimensions that are left after a reduction have the same order in both layouts. */
static bool keeps_order(const twi_node *node)
{
    const tw_tensor *axes = twi_constant(twi_in(node, 1));
    bool reduced[RANK] = {false};
    for (int64_t i = 0; axes && i < tw_tensor_elements(axes); i++) {
        int64_t axis = twi_tensor_int(axes, i);
        if (axis < -RANK || axis >= RANK)
            return false;
        reduced[axis < 0 ? axis + RANK : axis] = true;
    }
    return axes && (reduced[1] || (reduced[2] && reduced[3]));
}

static void lay_reduction(laying *l, twi_node *node)
{
    bool keeps = is_image(twi_out(node, 0));
    if (node->num_inputs != 2 || !has_form(l, twi_in(node, 0)) || !twi_constant(twi_in(node, 1)) ||
        (!keeps && !keeps_order(node)))
        return;
    twi_node *twin = make_twin(l, node);
    if (twin)
        put_twin(l, node, twin, keeps);
}

/* A user's own change of layout: there is a form, or what it makes is there already. */
static void lay_transpose(laying *l, twi_node *node)
{
    twi_value from = twi_in(node, 0);
    if (permutes(node, to_first)) {
        l->forms[node->id] = from;
    } else if (permutes(node, to_last) && has_form(l, from) && l->forms[from.node->id].node->device == node->device) {
        twi_replace(twi_out(node, 0), l->forms[from.node->id]);
        l->replaced[node->id] = true;
    }
}

static void lay_node(laying *l, twi_node *node)
{
    if (twi_is(node, TWI_OP_Transpose)) {
        lay_transpose(l, node);
        return;
    }
    if (twi_has_trait(node, TWI_REDUCES)) {
        lay_reduction(l, node);
        return;
    }
    bool asks = twi_attr_find(&node->attrs, FORMAT) != NULL, along = goes_along(node);
    if (node->op->layout && asks ? !is_first(node) || (!may_follow(l, node) && is_accepted(l, node))
                                 : !(node->op->layout || along) || !may_follow(l, node))
        return;
    twi_node *twin = make_twin(l, node);
    if (twin)
        put_twin(l, node, twin, !node->op->layout || strchr(node->op->layout, ':')[1] == 'i');
}

/* Whether somebody who stayed behind takes the image in its old layout. */
static bool is_wanted(const laying *l, const twi_node *node)
{
    for (const twi_edge *e = node->results[0].uses.first; e; e = e->next)
        if (e->user == l->region->end || e->user->id >= l->count || !l->replaced[e->user->id])
            return true;
    return false;
}

static void give_back(laying *l)
{
    for (int id = 0; id < l->count; id++) {
        twi_node *node = l->region->nodes.items[id], *twin = node->became;
        if (!l->replaced[id] || !l->forms[id].node || !is_wanted(l, node))
            continue;
        twi_value back = make_transpose(l, node, "/to_nchw", l->forms[id], to_first);
        if (back.node)
            twi_replace(twi_out(node, 0), back);
        node->became = twin;
    }
}

tw_status twi_lay_images(twi_planning *p)
{
    laying l = {.p = p, .region = p->rewriting.region, .count = p->rewriting.region->nodes.count};
    bool any = false;
    for (const twi_node *node = l.region->first; node && !any; node = node->next)
        any = is_first(node);
    if (!any || twi_rewrite_is_disabled(p->request->disable, "layout"))
        return TW_OK;
    l.forms = twi_arena_alloc(&p->plan->arena, sizeof *l.forms * (size_t)l.count);
    l.replaced = twi_arena_alloc(&p->plan->arena, sizeof *l.replaced * (size_t)l.count);
    if (!l.forms || !l.replaced)
        return twi_fail_memory(p->error, "changing the layout of images");
    for (twi_node *node = l.region->first, *next; node; node = next) {
        next = node->next;
        if (node->id < l.count && node->device >= 0 && node->origin && twi_region_check(l.region, NULL) == TW_OK)
            lay_node(&l, node);
    }
    if (twi_region_check(l.region, NULL) == TW_OK)
        give_back(&l);
    twi_region_sweep(l.region);
    return twi_region_check(l.region, p->error);
}

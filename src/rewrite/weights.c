/* weights.c - what a step makes of its variables before it computes with them is made at once, by one node at its
 * beginning: casts to the type that is computed in, and filters with their last axis first, where the device's
 * convolutions want them so. Forward and backward passes share the latter.
 * Never here: gradients of filters, which the update reads as they come (update.c).
 *
 * Only reads that wait for nothing, before anybody writes their variable: those are the same wherever they stand. */
#include "rewrite/rewrite.h"

#include "base/array.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TOGETHER = 4096, MOST_INPUTS = 5 /* of a convolution, whatever follows it */ };

/* A value that is wanted: of a variable, or of a Cast of one. */
typedef struct weight {
    twi_value read, value;
    bool transposed;
} weight;

typedef TWI_ARRAY(weight) weights;

/* ---- reads and filters ------------------------------------------------------------------------------------------- */

/* The op that does the same with a transposed filter; NULL: the node has no filter, or its device no kernel. */
static const char *transposed_op(const twi_rewriting *r, const twi_node *node)
{
    bool forward = twi_is(node, TWI_OP_Conv2D) || twi_is(node, TWI_OP__FusedConv2D);
    const char *op = forward                                     ? "_TransposedFilterConv2D"
                     : twi_is(node, TWI_OP__Conv2DBatchNormRelu) ? "_TransposedFilterConv2DBatchNormRelu"
                     : twi_is(node, TWI_OP__Conv2DMaxPoolLRN)    ? "_TransposedFilterConv2DMaxPoolLRN"
                     : twi_is(node, TWI_OP_Conv2DBackpropInput)  ? "_TransposedFilterConv2DBackpropInput"
                                                                 : NULL;
    bool fits = op && strcmp(twi_attr_string(&node->attrs, "data_format", "NHWC"), "NHWC") == 0 &&
                twi_rewrite_has_kernel(r, node, op, twi_attr_type(&node->attrs, "T"));
    return fits ? op : NULL;
}

static bool takes_as_filter(const twi_rewriting *r, const twi_edge *use, twi_value value)
{
    const twi_node *user = use->user;
    return use == &user->inputs[1] && user->device == value.node->device && transposed_op(r, user) &&
           !twi_same(twi_in(user, 0), value);
}

/* The lowest rank of those that may write the variable of the handle, which is asked for once. */
static int first_write(twi_value handle, int *known)
{
    int *rank = &known[handle.node->id];
    if (*rank)
        return *rank;
    *rank = INT_MAX;
    for (const twi_edge *e = twi_uses_of(handle)->first; e; e = e->next)
        if (!twi_has_trait(e->user, TWI_READ) && e->user != e->user->region->end && e->user->rank < *rank)
            *rank = e->user->rank;
    return *rank;
}

/* A read of a float variable that every writer comes after. */
static bool is_early_read(const twi_node *read, int *known)
{
    return twi_has_trait(read, TWI_READ) && !read->num_controls && read->results[0].dtype == TW_FLOAT32 &&
           !read->inputs[0].node->num_inputs && first_write(twi_in(read, 0), known) > read->rank;
}

/* ---- what is made ------------------------------------------------------------------------------------------------ */

/* The node that makes all of a group; reads[] and transposed[] are scratch. */
static twi_node *make_many(twi_rewriting *r, const weight *group, int count, twi_value *reads, int64_t *transposed)
{
    for (int i = 0; i < count; i++) {
        reads[i] = group[i].read;
        transposed[i] = group[i].transposed;
    }
    tw_attr attrs[] = {tw_attr_type("T", twi_dtype(group[0].value)), tw_attr_int("N", count),
                       tw_attr_ints("transposed", transposed, count)};
    return twi_rewrite_make(r, group[0].value.node, "/many", "_CastMany", reads, count, attrs, 3);
}

/* The convolution with the transposed filter. */
static twi_node *make_conv(twi_rewriting *r, const twi_node *conv, twi_value transposed)
{
    twi_value inputs[MOST_INPUTS] = {{0}};
    for (int i = 0; i < conv->num_inputs; i++)
        inputs[i] = i == 1 ? transposed : twi_in(conv, i);
    return twi_rewrite_make(r, conv, "/transposed", transposed_op(r, conv), inputs, conv->num_inputs, conv->attrs.items,
                            conv->attrs.count);
}

/* How many there are that use the value as a filter and may have it transposed: what the device says is known once they
 * are made. */
static int count_filters(twi_rewriting *r, twi_value read, twi_value value)
{
    int before = r->region->nodes.count, filters = 0;
    const weight one = {.read = read, .value = value, .transposed = true};
    twi_node *trial = NULL;
    for (const twi_edge *e = twi_uses_of(value)->first; e; e = e->next) {
        if (!takes_as_filter(r, e, value))
            continue;
        if (!trial)
            trial = make_many(r, &one, 1, &(twi_value){0}, &(int64_t){0});
        filters += trial && make_conv(r, e->user, twi_out(trial, 0));
    }
    twi_rewrite_undo(r, before);
    return filters;
}

/* ---- what is wanted ---------------------------------------------------------------------------------------------- */

/* Notes in which forms the value, of a read or a cast of one, is wanted. */
static bool note(twi_rewriting *r, twi_value read, twi_value value, weights *all)
{
    int filters = count_filters(r, read, value);
    bool rest = value.node != read.node && twi_uses_of(value)->count > filters;
    return (!filters || twi_push(all, ((weight){.read = read, .value = value, .transposed = true}))) &&
           (!rest || twi_push(all, ((weight){.read = read, .value = value})));
}

static bool gather(twi_rewriting *r, weights *all)
{
    int count = r->region->nodes.count;
    int *known = twi_alloc_array((size_t)count + 1, sizeof *known); /* first_write() by id; 0: not asked yet */
    bool fits = known != NULL;
    for (int id = 0; id < count && fits; id++) {
        twi_node *node = r->region->nodes.items[id];
        bool casts = twi_is(node, TWI_OP_Cast) && !node->num_controls && node->inputs[0].node->device == node->device;
        twi_value value = twi_out(node, 0), read = casts ? twi_in(node, 0) : value;
        if (!node->gone && is_early_read(read.node, known) &&
            twi_rewrite_has_kernel(r, node, "_CastMany", node->results[0].dtype))
            fits = note(r, read, value, all);
    }
    twi_free(known);
    return fits;
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* 0: the two are made where and of the type that the other is. */
static int compare_kinds(const weight *a, const weight *b)
{
    int order = compare(a->value.node->device, b->value.node->device);
    return order ? order : compare(twi_dtype(a->value), twi_dtype(b->value));
}

/* Of one value the transposed form comes first: who wants the other is found afterwards. */
static int by_kind(const void *a, const void *b)
{
    const weight *x = a, *y = b;
    int order = compare_kinds(x, y);
    if (!order)
        order = compare(x->value.node->id, y->value.node->id);
    return order ? order : compare(y->transposed, x->transposed);
}

static int count_alike(const weight *first, int left)
{
    int count = 1;
    while (count < left && count < MOST_TOGETHER && !compare_kinds(first, &first[count]))
        count++;
    return count;
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

/* Leads who wants the value as a filter to the transposed one. */
static void use_transposed(twi_rewriting *r, twi_value value, twi_value transposed)
{
    for (const twi_edge *e = twi_uses_of(value)->first; e; e = e->next) {
        twi_node *conv = takes_as_filter(r, e, value) ? make_conv(r, e->user, transposed) : NULL;
        if (!conv)
            continue;
        for (int i = 0; i < conv->num_results; i++)
            twi_replace(twi_out(e->user, i), twi_out(conv, i));
        twi_move_controls(e->user, conv);
    }
}

/* Makes all of a group by one node. */
static tw_status join(twi_rewriting *r, const weight *group, int count, tw_error *error)
{
    twi_value *reads = twi_alloc_array((size_t)count, sizeof *reads);
    int64_t *transposed = twi_alloc_array((size_t)count, sizeof *transposed);
    bool fits = reads && transposed;
    twi_node *made = fits ? make_many(r, group, count, reads, transposed) : NULL;
    for (int i = 0; i < count && made; i++) {
        twi_value value = group[i].value;
        if (group[i].transposed)
            use_transposed(r, value, twi_out(made, i));
        else
            twi_replace(value, twi_out(made, i));
        if (value.node != group[i].read.node)
            twi_move_controls(value.node, made);
    }
    twi_free(reads);
    twi_free(transposed);
    return fits ? TW_OK : twi_fail_memory(error, "joining casts of variables");
}

tw_status twi_rewrite_weights(twi_rewriting *r, tw_error *error)
{
    tw_status status = TW_OK;
    weights all = {0};
    if (!gather(r, &all))
        TWI_LEAVE(twi_fail_memory(error, "joining casts of variables"));
    if (all.count)
        qsort(all.items, (size_t)all.count, sizeof *all.items, by_kind);
    for (int i = 0, count; i < all.count; i += count) {
        count = count_alike(&all.items[i], all.count - i);
        if (count > 1 || all.items[i].transposed)
            TWI_TRY(join(r, &all.items[i], count, error));
    }
done:
    twi_array_free(&all);
    return status; /* an error may be on the region, too */
}

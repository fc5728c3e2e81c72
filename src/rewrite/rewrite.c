/* rewrite.c - the table of passes and the tools they share. */
#include "rewrite/rewrite.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    twi_rewrite_pass *pass;
} passes[] = { /* ORDER REWRITES */
    {"merge", twi_rewrite_merge},
    {"collective", twi_rewrite_collective},
    {"fuse", twi_rewrite_fuse},
    {"losses", twi_rewrite_losses},
    {"buckets", twi_rewrite_buckets},
    {"update", twi_rewrite_update},
    {"scalars", twi_rewrite_scalars},
    {"weights", twi_rewrite_weights},
};

bool twi_rewrite_is_disabled(const char *disable, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = disable ? disable : ""; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t word = strcspn(at, ",");
        if ((word == length && strncmp(at, name, length) == 0) || (word == 3 && strncmp(at, "all", 3) == 0))
            return true;
    }
    return false;
}

/* Other stages ask twi_rewrite_is_disabled() for these: constants are folded while a graph is copied (plan/specialize.c),
 * memory is reused by plan/memory.c. */
static const char *const other_names[] = {"all", "fold", "reuse"};
enum { PASSES = sizeof passes / sizeof *passes, OTHERS = sizeof other_names / sizeof *other_names };

static const char *known_name(int i)
{
    return i < OTHERS ? other_names[i] : passes[i - OTHERS].name;
}

tw_status twi_rewrite_check_names(const char *disable, tw_error *error)
{
    tw_status status = TW_OK;
    for (const char *at = disable ? disable : ""; *at && status == TW_OK; at += strcspn(at, ","), at += *at == ',') {
        size_t word = strcspn(at, ","), size = 0;
        bool known = word == 0;
        char list[256] = "";
        for (int i = 0; i < OTHERS + PASSES; i++) {
            known = known || (strlen(known_name(i)) == word && strncmp(known_name(i), at, word) == 0);
            size += (size_t)snprintf(list + size, sizeof list - size, "%s%s", i ? ", " : "", known_name(i));
        }
        if (!known)
            status = twi_fail(error, TW_INVALID_ARGUMENT, "disable: there is no rewrite '%.*s'; known are %s",
                              word > 64 ? 64 : (int)word, at, list);
    }
    return status;
}

tw_status twi_rewrite(twi_rewriting *r, const char *disable, tw_error *error)
{
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        if (twi_rewrite_is_disabled(disable, passes[i].name))
            continue;
        tw_status status = passes[i].pass(r, error);
        if (status == TW_OK && r->graph->error.status != TW_OK) {
            if (error)
                *error = r->graph->error;
            status = r->graph->error.status;
        }
        if (status == TW_OK)
            status = twi_rewrite_clean(r, error);
        if (status != TW_OK) {
            twi_prefix(error, "rewrite '%s'", passes[i].name);
            return status;
        }
    }
    return TW_OK;
}

bool twi_rewrite_has_kernel(const twi_rewriting *r, const tw_node *node, const char *op, tw_dtype type)
{
    tw_attr attr = tw_attr_type("T", type);
    for (int i = 0; r->refused && i < r->refused->count; i++)
        if (r->refused->items[i].device == node->assigned && strcmp(r->refused->items[i].op, op) == 0)
            return false;
    return twi_device_has_kernel(r->devices->items[node->assigned], op, &(twi_attrs){&attr, 1});
}

tw_node *twi_rewrite_node(twi_rewriting *r, const tw_node *like, const char *suffix, const char *op,
                          const tw_output *inputs, int num_inputs, const tw_attr *attrs, int num_attrs)
{
    char name[600];
    snprintf(name, sizeof name, "%s%s", like->name, suffix);
    tw_node *node = twi_add_plain_node(r->graph, op, name, like->device, like->assigned, inputs, num_inputs, attrs,
                                       num_attrs);
    if (node)
        node->order = like->order;
    return node;
}

void twi_rewrite_replace(twi_rewriting *r, tw_output from, tw_output to)
{
    if (from.node != to.node)
        from.node->became = to.node;
    for (int n = 0; n < r->graph->nodes.count; n++) {
        tw_node *node = r->graph->nodes.items[n];
        for (int i = 0; i < node->num_inputs && node != to.node; i++)
            if (node->inputs[i].node == from.node && node->inputs[i].index == from.index)
                node->inputs[i] = to;
    }
    for (int i = 0; i < r->num_fetches; i++)
        if (r->fetches[i].node == from.node && r->fetches[i].index == from.index)
            r->fetches[i] = to;
}

void twi_rewrite_add_control(twi_rewriting *r, tw_node *node, tw_node *before)
{
    for (int i = 0; i < node->num_control_inputs; i++)
        if (node->control_inputs[i] == before)
            return;
    tw_node **grown = twi_arena_alloc(&r->graph->arena, sizeof *grown * (size_t)(node->num_control_inputs + 1));
    if (!grown) {
        twi_graph_fail(r->graph, TW_RESOURCE_EXHAUSTED, "out of memory while rewriting");
        return;
    }
    if (node->num_control_inputs)
        memcpy(grown, node->control_inputs, sizeof *grown * (size_t)node->num_control_inputs);
    grown[node->num_control_inputs++] = before;
    node->control_inputs = grown;
}

void twi_rewrite_move_controls(twi_rewriting *r, tw_node *from, tw_node *to)
{
    from->became = to;
    for (int i = 0; i < from->num_control_inputs; i++)
        if (from->control_inputs[i] != to)
            twi_rewrite_add_control(r, to, from->control_inputs[i]);
    for (int n = 0; n < r->graph->nodes.count; n++) {
        tw_node *node = r->graph->nodes.items[n];
        for (int i = 0; i < node->num_control_inputs; i++)
            if (node->control_inputs[i] == from && node != to)
                node->control_inputs[i] = to;
    }
    for (int i = 0; i < r->num_fetches; i++)
        if (r->fetches[i].node == from && r->fetches[i].index < 0)
            r->fetches[i].node = to;
}

int twi_rewrite_count_uses(const twi_rewriting *r, tw_output output)
{
    int uses = 0;
    for (int n = 0; n < r->graph->nodes.count; n++) {
        const tw_node *node = r->graph->nodes.items[n];
        for (int i = 0; i < node->num_inputs; i++)
            uses += node->inputs[i].node == output.node && node->inputs[i].index == output.index;
    }
    for (int i = 0; i < r->num_fetches; i++)
        uses += r->fetches[i].node == output.node && r->fetches[i].index == output.index;
    return uses;
}

tw_node *twi_rewrite_user(const twi_rewriting *r, tw_output output, int which)
{
    for (int n = 0; n < r->graph->nodes.count; n++) {
        tw_node *node = r->graph->nodes.items[n];
        for (int i = 0; i < node->num_inputs; i++)
            if (node->inputs[i].node == output.node && node->inputs[i].index == output.index && which-- == 0)
                return node;
    }
    return NULL;
}

tw_node *twi_rewrite_only_user(const twi_rewriting *r, tw_output output)
{
    return twi_rewrite_count_uses(r, output) == 1 ? twi_rewrite_user(r, output, 0) : NULL;
}

/* ---- cleaning -------------------------------------------------------------------------------------------------- */

/* Data inputs first, then control inputs. */
static tw_node *dependency(const tw_node *node, int i)
{
    return i < node->num_inputs ? node->inputs[i].node : node->control_inputs[i - node->num_inputs];
}

static void mark(bool *needed, tw_node **stack, tw_node *node)
{
    int depth = 0;
    if (!needed[node->id])
        stack[depth++] = node;
    needed[node->id] = true;
    while (depth) {
        tw_node *top = stack[--depth];
        for (int i = 0; i < top->num_inputs + top->num_control_inputs; i++) {
            tw_node *before = dependency(top, i);
            if (!needed[before->id]) {
                needed[before->id] = true;
                stack[depth++] = before;
            }
        }
    }
}

bool twi_rewrite_may_join(const twi_rewriting *r, tw_node *const *nodes, int count)
{
    int n = r->graph->nodes.count;
    bool *seen = twi_alloc_array((size_t)n + 1, sizeof *seen), *joined = twi_alloc_array((size_t)n + 1, sizeof *joined);
    tw_node **stack = twi_alloc_array((size_t)n + 1, sizeof *stack);
    bool may = seen && joined && stack;
    for (int i = 0; i < count && may; i++)
        joined[nodes[i]->id] = true;
    for (int i = 0; i < count && may; i++) /* whatever lies before them and is none of them */
        for (int k = 0; k < nodes[i]->num_inputs + nodes[i]->num_control_inputs; k++)
            if (!joined[dependency(nodes[i], k)->id])
                mark(seen, stack, dependency(nodes[i], k));
    for (int i = 0; i < count && may; i++)
        may = !seen[nodes[i]->id];
    twi_free(seen);
    twi_free(joined);
    twi_free(stack);
    return may;
}

/* A binary heap of nodes, smallest (order, id) on top. */
static bool comes_first(const tw_node *a, const tw_node *b)
{
    return a->order != b->order ? a->order < b->order : a->id < b->id;
}

static void heap_push(tw_node **heap, int *count, tw_node *node)
{
    int i = (*count)++;
    for (; i > 0 && comes_first(node, heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = node;
}

static tw_node *heap_pop(tw_node **heap, int *count)
{
    tw_node *top = heap[0], *last = heap[--*count];
    int i = 0;
    for (int child; (child = 2 * i + 1) < *count; i = child) {
        child += child + 1 < *count && comes_first(heap[child + 1], heap[child]);
        if (comes_first(last, heap[child]))
            break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return top;
}

/* What only nodes looked at that are part of another now is part of that too: the middle of a chain. */
static void note_what_became(const tw_graph *graph, const bool *needed)
{
    for (int i = graph->nodes.count - 1; i >= 0; i--) {
        const tw_node *gone = graph->nodes.items[i];
        for (int k = 0; k < gone->num_inputs && !needed[i] && gone->became; k++) {
            tw_node *before = gone->inputs[k].node;
            if (!needed[before->id] && !before->became && before != gone->became)
                before->became = gone->became;
        }
    }
}

tw_status twi_rewrite_clean(twi_rewriting *r, tw_error *error)
{
    tw_graph *graph = r->graph;
    int n = graph->nodes.count, kept = 0, ready = 0, edges = 0;
    tw_status status = TW_OK;
    for (int i = 0; i < n; i++)
        edges += graph->nodes.items[i]->num_inputs + graph->nodes.items[i]->num_control_inputs;
    bool *needed = twi_alloc_array((size_t)n + 1, sizeof *needed);
    tw_node **work = twi_alloc_array((size_t)n + 1, sizeof *work);
    tw_node **sorted = twi_alloc_array((size_t)n + 1, sizeof *sorted);
    int *missing = twi_alloc_array((size_t)n + 1, sizeof *missing);   /* inputs not yet placed */
    int *first = twi_alloc_array((size_t)n + 2, sizeof *first); /* users of i: users[first[i + 1] .. first[i + 2]) */
    tw_node **users = twi_alloc_array((size_t)edges + 1, sizeof *users);
    if (!needed || !work || !sorted || !missing || !first || !users) {
        status = twi_fail_memory(error, "sorting a plan");
        goto done;
    }
    for (int i = 0; i < r->num_fetches; i++)
        mark(needed, work, r->fetches[i].node);
    note_what_became(graph, needed);
    for (int i = 0; i < n; i++) {
        tw_node *node = graph->nodes.items[i];
        missing[i] = needed[i] ? node->num_inputs + node->num_control_inputs : 0;
        for (int k = 0; k < missing[i]; k++)
            first[dependency(node, k)->id + 1]++;
    }
    for (int i = 0; i < n; i++)
        first[i + 1] += first[i];
    first[n + 1] = first[n];
    for (int i = n - 1; i >= 0; i--) /* backwards: first[] moves down from the end of each node's share to its start */
        for (int k = 0; k < missing[i]; k++)
            users[--first[dependency(graph->nodes.items[i], k)->id + 1]] = graph->nodes.items[i];
    for (int i = 0; i < n; i++)
        if (needed[i] && missing[i] == 0)
            heap_push(work, &ready, graph->nodes.items[i]);
    while (ready) {
        tw_node *node = heap_pop(work, &ready);
        sorted[kept++] = node;
        for (int k = first[node->id + 1]; k < first[node->id + 2]; k++)
            if (--missing[users[k]->id] == 0)
                heap_push(work, &ready, users[k]);
    }
    for (int i = 0; i < n; i++)
        if (needed[i] && missing[i] > 0) {
            status = twi_fail(error, TW_INTERNAL, "'%s' depends on itself", graph->nodes.items[i]->name);
            goto done;
        }
    for (int i = 0; i < n; i++)
        for (int k = 0; !needed[i] && k < graph->nodes.items[i]->attrs.count; k++)
            twi_attr_release(&graph->nodes.items[i]->attrs.items[k]);
    for (int i = 0; i < kept; i++) {
        graph->nodes.items[i] = sorted[i];
        sorted[i]->id = i;
    }
    graph->nodes.count = kept;
done:
    twi_free(needed);
    twi_free(work);
    twi_free(sorted);
    twi_free(missing);
    twi_free(first);
    twi_free(users);
    return status;
}

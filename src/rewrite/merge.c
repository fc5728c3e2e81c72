/* merge.c - nodes that compute the same thing from the same inputs on the same device become one.
 * Stateful nodes stay apart, but reads of one variable with the same control inputs are the same value. */
#include "rewrite/rewrite.h"

#include <string.h>

static bool may_merge(const tw_node *node)
{
    return node->num_outputs > 0 && (!(node->op->flags & TWI_STATEFUL) || !strcmp(node->op->name, "ReadVariableOp"));
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash ^= value + 0x9E3779B97F4A7C15u + (hash << 6) + (hash >> 2);
    return hash * 0xBF58476D1CE4E5B9u;
}

static uint64_t hash_node(const tw_node *node)
{
    uint64_t hash = mix((uintptr_t)node->op, (uint64_t)node->assigned);
    for (int i = 0; i < node->num_inputs; i++)
        hash = mix(mix(hash, (uintptr_t)node->inputs[i].node), (uint64_t)node->inputs[i].index);
    return mix(hash, (uint64_t)node->num_control_inputs);
}

static bool same_attrs(const tw_node *a, const tw_node *b)
{
    for (int i = 0, k = 0;; i++, k++) {
        while (i < a->attrs.count && a->attrs.items[i].name[0] == '_')
            i++;
        while (k < b->attrs.count && b->attrs.items[k].name[0] == '_')
            k++;
        if (i >= a->attrs.count || k >= b->attrs.count)
            return i >= a->attrs.count && k >= b->attrs.count;
        if (!twi_attr_equal(&a->attrs.items[i], &b->attrs.items[k]))
            return false;
    }
}

static bool has_control(const tw_node *node, const tw_node *before)
{
    for (int i = 0; i < node->num_control_inputs; i++)
        if (node->control_inputs[i] == before)
            return true;
    return false;
}

static bool same_node(const tw_node *a, const tw_node *b)
{
    if (a->op != b->op || a->assigned != b->assigned || a->num_inputs != b->num_inputs ||
        a->num_control_inputs != b->num_control_inputs)
        return false;
    for (int i = 0; i < a->num_inputs; i++)
        if (a->inputs[i].node != b->inputs[i].node || a->inputs[i].index != b->inputs[i].index)
            return false;
    for (int i = 0; i < a->num_control_inputs; i++)
        if (!has_control(b, a->control_inputs[i]))
            return false;
    return same_attrs(a, b);
}

/* One sweep in topological order, with the inputs of each node led to the survivors as it is met. */
tw_status twi_rewrite_merge(twi_rewriting *r, tw_error *error)
{
    int n = r->graph->nodes.count, capacity = 16;
    while (capacity < 2 * n)
        capacity *= 2;
    tw_node **table = twi_alloc_array((size_t)capacity, sizeof *table);
    tw_node **survivor = twi_alloc_array((size_t)n + 1, sizeof *survivor);
    if (!table || !survivor) {
        twi_free(table);
        twi_free(survivor);
        return twi_fail_memory(error, "merging common nodes");
    }
    for (int id = 0; id < n; id++) {
        tw_node *node = r->graph->nodes.items[id];
        for (int i = 0; i < node->num_inputs; i++)
            node->inputs[i].node = survivor[node->inputs[i].node->id];
        for (int i = 0; i < node->num_control_inputs; i++)
            node->control_inputs[i] = survivor[node->control_inputs[i]->id];
        survivor[id] = node;
        if (!may_merge(node))
            continue;
        int at = (int)(hash_node(node) & (uint64_t)(capacity - 1));
        while (table[at] && !same_node(table[at], node))
            at = (at + 1) & (capacity - 1);
        if (table[at])
            survivor[id] = node->became = table[at];
        else
            table[at] = node;
    }
    for (int i = 0; i < r->num_fetches; i++)
        r->fetches[i].node = survivor[r->fetches[i].node->id];
    twi_free(table);
    twi_free(survivor);
    return TW_OK;
}

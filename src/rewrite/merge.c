/* merge.c - nodes that compute the same thing from the same inputs on the same device become one.
 * Stateful nodes stay apart, but reads of one variable with the same control inputs are the same value. */
#include "rewrite/rewrite.h"

#include "base/hash.h"

/* The nodes that are kept, by what they compute: open addressing, at most half full. */
typedef struct table {
    twi_node **slots;
    size_t capacity; /* a power of two */
    int *marks;      /* by id: the last question in which a node was one that is waited for */
    int questions;
} table;

static bool may_merge(const twi_node *node)
{
    return node->num_results > 0 && (!twi_has_trait(node, TWI_STATEFUL) || twi_has_trait(node, TWI_READ));
}

static uint64_t hash_node(const twi_node *node)
{
    uint64_t hash = twi_hash_mix((uintptr_t)node->op, (uint64_t)node->device);
    for (int i = 0; i < node->num_inputs; i++)
        hash = twi_hash_mix(twi_hash_mix(hash, (uintptr_t)node->inputs[i].node), (uint64_t)node->inputs[i].index);
    for (int i = 0; i < node->attrs.count && !node->num_inputs; i++)
        if (node->attrs.items[i].name[0] != '_')
            hash = twi_attr_hash(hash, &node->attrs.items[i]);
    uint64_t controls = 0; /* in any order */
    for (int i = 0; i < node->num_controls; i++)
        controls += twi_hash_mix(0, (uintptr_t)node->controls[i]->node);
    return twi_hash_mix(hash, controls);
}

/* Whether `b` waits for all that `a` waits for. That there are as many does not say that it is so the other way round:
 * one that two became may be there twice. */
static bool waits_for_all(table *t, const twi_node *b, const twi_node *a)
{
    bool all = true;
    int question = ++t->questions;
    for (int i = 0; i < b->num_controls; i++)
        t->marks[b->controls[i]->node->id] = question;
    for (int i = 0; i < a->num_controls && all; i++)
        all = t->marks[a->controls[i]->node->id] == question;
    return all;
}

static bool same_node(table *t, const twi_node *a, const twi_node *b)
{
    if (a->op != b->op || a->device != b->device || a->num_inputs != b->num_inputs ||
        a->num_controls != b->num_controls)
        return false;
    for (int i = 0; i < a->num_inputs; i++)
        if (!twi_same(twi_in(a, i), twi_in(b, i)))
            return false;
    return twi_attrs_equal(&a->attrs, &b->attrs) && waits_for_all(t, a, b) && waits_for_all(t, b, a);
}

/* Where the node that computes the same lies, or shall lie. */
static twi_node **find(table *t, const twi_node *node)
{
    size_t at = hash_node(node) & (t->capacity - 1);
    while (t->slots[at] && !same_node(t, t->slots[at], node))
        at = (at + 1) & (t->capacity - 1);
    return &t->slots[at];
}

/* One sweep in topological order: what comes before a node has been merged when the node is met. */
static void merge(twi_region *region, table *t)
{
    for (int id = 0; id < region->nodes.count; id++) {
        twi_node *node = region->nodes.items[id];
        if (!may_merge(node))
            continue;
        twi_node **kept = find(t, node);
        for (int i = -1; i < node->num_results && *kept; i++)
            twi_replace(twi_out(node, i), twi_out(*kept, i));
        if (!*kept)
            *kept = node;
    }
}

tw_status twi_rewrite_merge(twi_rewriting *r, tw_error *error)
{
    size_t n = (size_t)r->region->nodes.count;
    table t = {.capacity = 16};
    while (t.capacity < 2 * n)
        t.capacity *= 2;
    t.slots = twi_alloc_array(t.capacity, sizeof *t.slots);
    t.marks = twi_alloc_array(n + 1, sizeof *t.marks);
    bool fits = t.slots && t.marks;
    if (fits)
        merge(r->region, &t);
    twi_free(t.slots);
    twi_free(t.marks);
    return fits ? TW_OK : twi_fail_memory(error, "merging common nodes");
}

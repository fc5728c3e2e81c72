/* partition.c - edges that cross devices become copies.
 * A copy belongs to the receiving device. One tensor crosses to one device once, whatever the number of readers there.
 * Between devices of the host nothing is moved (prepare.c): the copy then only marks who waits for whom.
 * Constants are not copied: the receiving device gets a constant of its own. */
#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

/* What has crossed already: by producing node a short list. */
typedef struct crossing {
    struct crossing *next;
    int index, device;
    tw_output output; /* on the receiving device */
} crossing;

static tw_node *make_crossing(twi_planning *p, tw_output from, const tw_node *reader)
{
    tw_graph *graph = p->rewriting.graph;
    bool constant = strcmp(from.node->op->name, "Const") == 0;
    char name[640];
    snprintf(name, sizeof name, "%s/%s_%d", from.node->name, constant ? "on" : "copy_to", reader->assigned);
    tw_attr type = tw_attr_type("T", tw_output_dtype(from));
    tw_node *made = twi_add_plain_node(graph, constant ? "Const" : "_Copy", name, reader->device, reader->assigned,
                                       &from, !constant, constant ? from.node->attrs.items : &type,
                                       constant ? from.node->attrs.count : 1);
    if (made)
        made->order = reader->order;
    return made;
}

tw_status twi_partition(twi_planning *p)
{
    tw_graph *graph = p->rewriting.graph;
    int n = graph->nodes.count;
    crossing **crossings = twi_alloc_array((size_t)n + 1, sizeof *crossings);
    if (!crossings)
        return twi_fail_memory(p->error, "partitioning a graph");
    tw_status status = TW_OK;
    for (int id = 0; id < n; id++) {
        tw_node *node = graph->nodes.items[id];
        for (int i = 0; i < node->num_inputs; i++) {
            tw_output from = node->inputs[i];
            if (from.node->assigned == node->assigned)
                continue;
            if (tw_output_dtype(from) == TW_RESOURCE) {
                status = twi_fail(p->error, TW_INVALID_ARGUMENT,
                                  "'%s' on %s uses the resource '%s' on %s: a resource and its users must be colocated",
                                  node->name, node->device, from.node->name, from.node->device);
                goto done;
            }
            crossing *c = crossings[from.node->id];
            while (c && (c->index != from.index || c->device != node->assigned))
                c = c->next;
            if (!c) {
                tw_node *made = make_crossing(p, from, node);
                c = twi_arena_alloc(&p->plan->arena, sizeof *c);
                if (!made || !c) {
                    status = twi_fail_memory(p->error, "partitioning a graph");
                    goto done;
                }
                *c = (crossing){crossings[from.node->id], from.index, node->assigned, tw_node_output(made, 0)};
                crossings[from.node->id] = c;
            }
            node->inputs[i] = c->output;
        }
    }
    status = twi_rewrite_clean(&p->rewriting, p->error);
done:
    twi_free(crossings);
    return status;
}

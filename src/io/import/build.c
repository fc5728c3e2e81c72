/* build.c - adds a file's nodes to a graph. What cannot be built becomes an _Unknown node. */
#include "io/import/import.h"

#include "base/memory.h"
#include "graph/sweep.h"

#include <tower/ops.h>

#define SPARE_OUTPUTS 65536 /* beside one for each node: a file of few bytes can ask for many */

/* What the file says of the node, with the names it has here. */
static bool keep_def(twi_importer *m, const twi_import_item *item, tw_string *kept)
{
    Twi__NodeDef def = *item->def;
    def.name = item->name;
    def.input = twi_arena_alloc(&m->arena, sizeof *def.input * (def.n_input + 1));
    if (!def.input)
        return false;
    for (size_t i = 0; i < def.n_input; i++) {
        twi_import_source from = {0};
        if (twi_import_find_source(m, item->def->input[i], &from) != TW_OK)
            return false;
        const char *name = m->items[from.node].name;
        def.input[i] = from.index < 0    ? twi_arena_printf(&m->arena, "^%s", name)
                       : from.index == 0 ? (char *)name
                                         : twi_arena_printf(&m->arena, "%s:%d", name, from.index);
        if (!def.input[i])
            return false;
    }
    kept->size = twi__node_def__get_packed_size(&def);
    kept->data = twi_arena_alloc(&m->arena, kept->size + 1);
    if (!kept->data)
        return false;
    twi__node_def__pack(&def, (uint8_t *)kept->data);
    return true;
}

/* Makes it an _Unknown node, which takes nothing. */
static tw_status make_unknown(twi_importer *m, twi_import_item *item)
{
    tw_string def;
    item->op = twi_op_find("_Unknown");
    item->attrs = twi_arena_alloc(&m->arena, 3 * sizeof *item->attrs);
    if (!item->attrs || !keep_def(m, item, &def))
        return twi_import_fail_memory(m);
    item->attrs[0] = tw_attr_string("op", item->def->op);
    item->attrs[1] = (twi_attr){.name = "node", .kind = TW_ATTR_STRING, .s = def};
    item->attrs[2] = tw_attr_string("why", item->why);
    item->num_attrs = 3;
    return TW_OK;
}

/* Who takes something from a node that cannot be built cannot be built either. */
static tw_status inherit(twi_importer *m, twi_import_item *item)
{
    for (size_t i = 0; i < item->num_inputs && !item->why; i++) {
        const twi_import_item *from = &m->items[item->inputs[i].node];
        if (!from->why || item->inputs[i].index < 0 || twi_import_goes_back(m, item, i))
            continue;
        bool whole = strncmp(from->why, "it needs '", strlen("it needs '")) == 0;
        item->why = whole ? from->why : twi_arena_printf(&m->arena, "it needs '%s': %s", from->name, from->why);
        if (!item->why)
            return twi_import_fail_memory(m);
    }
    return TW_OK;
}

/* Of the gradient of a function: inputs[i], an argument, becomes the gradient by it, zeros where none flows. */
static void differentiate(twi_importer *m, const twi_import_item *item, const twi_function_gradient *g,
                          tw_output *inputs)
{
    enum { MOST_NODES = 1 << 20 }; /* gradients of gradients grow fast */
    tw_graph *graph = m->graph;
    tw_output *ends = twi_arena_alloc(&m->arena, sizeof *ends * (size_t)(2 * g->count + g->arguments + 1));
    tw_output *dys = ends + g->count, *gradients = dys + g->count;
    int count = 0; /* of results that have gradients */
    for (int i = 0; i < g->count && ends; i++) {
        twi_import_source y = {0}, dy = {0};
        if (twi_import_find_source(m, g->ys[i], &y) != TW_OK || y.index < 0 ||
            twi_import_find_source(m, g->dys[i], &dy) != TW_OK || dy.index < 0) {
            graph->error = *m->error;
            return;
        }
        ends[count] = (tw_output){m->items[y.node].made, y.index};
        dys[count] = (tw_output){m->items[dy.node].made, dy.index};
        count += twi_has_gradient(tw_output_dtype(ends[count]));
    }
    if (!ends)
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while adding '%s'", item->name);
    else if (graph->loops)
        twi_graph_fail(graph, TW_UNIMPLEMENTED, "the gradient of a function in a graph that has loops");
    else if (graph->nodes.count > MOST_NODES)
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "gradients of functions become more than %d nodes", MOST_NODES);
    if (graph->error.status != TW_OK)
        return;
    tw_enter_name_scope(graph, "%s", item->name);
    tw_gradients(graph, ends, count, dys, inputs, g->arguments, gradients);
    for (int i = 0; i < g->arguments; i++)
        inputs[i] = gradients[i].node ? gradients[i] : tw_zeros_like(graph, inputs[i]);
    tw_leave_name_scope(graph);
}

static tw_node *add_node(twi_importer *m, twi_import_item *item, tw_output *inputs)
{
    tw_graph *graph = m->graph;
    int num_inputs = item->why ? 0 : (int)item->num_inputs;
    for (int i = 0; i < num_inputs; i++)
        inputs[i] = twi_import_goes_back(m, item, (size_t)i) && !item->why
                        ? inputs[0]
                        : (tw_output){m->items[item->inputs[i].node].made, item->inputs[i].index};
    const twi_function_gradient *gradient = item->why ? NULL : twi_functions_gradient(m->functions, item->def->name);
    if (gradient && graph->error.status == TW_OK) {
        differentiate(m, item, gradient, inputs);
        num_inputs = gradient->arguments + gradient->controls;
    }
    for (int i = 0; i < item->num_attrs && !item->why; i++)
        if (twi_import_tell_variants(m, item, inputs, &item->attrs[i]) != TW_OK) {
            graph->error = *m->error;
            return NULL;
        }
    for (size_t i = 0; i < item->num_inputs; i++)
        item->of_function = item->of_function || m->items[item->inputs[i].node].of_function;
    graph->may_misfit = item->of_function;
    tw_node *made = twi_add_named_node(graph, item->op, item->name, item->device, inputs, num_inputs, item->attrs,
                                       item->num_attrs);
    bool misfits = item->of_function && !graph->may_misfit;
    graph->may_misfit = false;
    if (made && misfits && twi_mark_node(made, TWI_MISFITS) != TW_OK) /* for whoever reads what is written of it */
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while adding '%s'", item->name);
    return made;
}

/* Adds a node: here it shows whether it can be built. */
static tw_status try_node(twi_importer *m, twi_import_item *item, tw_output *inputs)
{
    tw_graph *graph = m->graph;
    tw_status status = inherit(m, item);
    if (status == TW_OK && item->why)
        status = make_unknown(m, item);
    if (status != TW_OK)
        return status;
    item->made = add_node(m, item, inputs);
    if (item->made || graph->error.status != TW_UNIMPLEMENTED)
        return TW_OK;
    status = twi_import_give_up(m, item, TW_UNIMPLEMENTED, graph->error.message);
    graph->error = (tw_error){0};
    if (status == TW_OK)
        status = make_unknown(m, item);
    item->made = status == TW_OK ? add_node(m, item, inputs) : NULL;
    return status;
}

/* Leads the loops' ways back to where they come from, once all nodes are there. */
static tw_status close_loops(twi_importer *m)
{
    for (int k = 0; k < m->count; k++) {
        const twi_import_item *item = &m->items[k];
        for (size_t i = 0; i < item->num_inputs; i++) {
            tw_output from = {m->items[item->inputs[i].node].made, item->inputs[i].index};
            if (!twi_import_goes_back(m, item, i))
                continue;
            if (m->items[item->inputs[i].node].why) {
                item->made->backward.index = from.node->id + 1;
                continue;
            }
            if (tw_output_dtype(from) != tw_output_dtype(item->made->inputs[0]))
                return twi_fail(m->error, TW_INVALID_ARGUMENT, "node '%s' (Merge): input %d is %s, expected %s",
                                item->name, (int)i, tw_dtype_name(tw_output_dtype(from)),
                                tw_dtype_name(tw_output_dtype(item->made->inputs[0])));
            item->made->backward = from;
        }
    }
    return TW_OK;
}

/* Adds all nodes to the graph; its own message names the node. */
static tw_status build_nodes(twi_importer *m, tw_output *inputs)
{
    size_t outputs = 0, most_outputs = SPARE_OUTPUTS + (size_t)m->count;
    for (int k = 0; k < m->count; k++) {
        twi_import_item *item = &m->items[m->order[k]];
        if (item->given)
            continue;
        tw_status status = try_node(m, item, inputs);
        if (status != TW_OK)
            return status;
        if (!item->made)
            return twi_fail(m->error, m->graph->error.status, "%s", m->graph->error.message);
        outputs += (size_t)item->made->num_outputs;
        if (outputs > most_outputs)
            return twi_fail(m->error, TW_RESOURCE_EXHAUSTED, "the nodes up to '%s' have %zu outputs", item->name,
                            outputs);
    }
    return close_loops(m);
}

static tw_status build(twi_importer *m)
{
    size_t most_inputs = 1;
    for (int i = 0; i < m->count; i++)
        if (m->items[i].num_inputs > most_inputs)
            most_inputs = m->items[i].num_inputs;
    tw_output *inputs = twi_alloc_array(most_inputs, sizeof *inputs);
    tw_status status = inputs ? build_nodes(m, inputs) : twi_import_fail_memory(m);
    twi_free(inputs);
    return status;
}

/* What has become of the nodes that the caller asks for. */
static void tell_nodes(const twi_importer *m)
{
    for (int i = 0; i < m->options->num_names; i++) {
        const twi_import_item *found = m->options->names[i] ? twi_map_get(&m->places, m->options->names[i]) : NULL;
        m->options->nodes[i] = found ? found->made : NULL;
    }
}

/* All or nothing. Messages of the graph's own say no line of the program's text: what is wrong stands in the file. */
tw_status twi_import_build(twi_importer *m)
{
    tw_graph *graph = m->graph;
    const char *file = graph->file;
    int first = graph->nodes.count;
    graph->file = NULL;
    tw_status status = build(m);
    if (status == TW_OK && twi_adopt_variables(graph, first) != TW_OK)
        status = twi_import_fail_memory(m);
    graph->file = file;
    if (status != TW_OK) {
        twi_graph_cut(graph, first);
        graph->error = (tw_error){0};
        return status;
    }
    for (int i = first; i < graph->nodes.count; i++) {
        graph->nodes.items[i]->file = file;
        graph->nodes.items[i]->line = graph->line;
    }
    tell_nodes(m);
    return TW_OK;
}

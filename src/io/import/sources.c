/* sources.c - the names in a file, and what its nodes take. */
#include "io/import/import.h"

#include "io/graph_def.h"

#include <limits.h>
#include <stdlib.h>

tw_status twi_import_fail_memory(twi_importer *m)
{
    return twi_fail_memory(m->error, "importing a graph");
}

tw_status twi_import_check_versions(twi_importer *m)
{
    const Twi__VersionDef *versions = m->def->versions;
    if (!versions)
        return TW_OK;
    if (versions->min_consumer > TWI_GRAPH_VERSION)
        return twi_fail(m->error, TW_INVALID_ARGUMENT,
                        "GraphDef min consumer version %d above current version %d: it was made by a newer writer",
                        (int)versions->min_consumer, TWI_GRAPH_VERSION);
    for (size_t i = 0; i < versions->n_bad_consumers; i++)
        if (versions->bad_consumers[i] == TWI_GRAPH_VERSION)
            return twi_fail(m->error, TW_INVALID_ARGUMENT, "GraphDef disallows consumer version %d", TWI_GRAPH_VERSION);
    return TW_OK;
}

tw_status twi_import_collect_nodes(twi_importer *m)
{
    size_t count = m->def->n_node;
    m->nodes = m->functions ? twi_functions_nodes(m->functions, &count) : m->def->node;
    m->num_read = (int)count;
    m->count = m->num_read + m->options->num_inputs + m->options->num_after;
    m->items = twi_arena_alloc(&m->arena, sizeof *m->items * ((size_t)m->count + 1));
    m->order = twi_arena_alloc(&m->arena, sizeof *m->order * ((size_t)m->count + 1));
    if (!m->items || !m->order)
        return twi_import_fail_memory(m);
    for (int i = 0; i < m->num_read; i++) {
        const Twi__NodeDef *def = m->nodes[i];
        if (twi_map_get(&m->places, def->name))
            return twi_fail(m->error, TW_INVALID_ARGUMENT, "two nodes are called '%s'", def->name);
        m->items[i].def = def;
        if (!twi_map_put(&m->places, def->name, &m->items[i]))
            return twi_import_fail_memory(m);
        m->items[i].of_function = m->functions != NULL;
    }
    for (size_t i = 0; i < m->def->n_node && m->functions; i++) {
        twi_import_item *item = twi_map_get(&m->places, m->def->node[i]->name);
        if (item)
            item->of_function = false;
    }
    for (int i = 0; i < m->num_read; i++)
        for (size_t k = 0; k < m->nodes[i]->n_attr; k++)
            m->items[i].of_function |= strcmp(m->nodes[i]->attr[k]->key, TWI_MISFITS) == 0;
    return TW_OK;
}

/* What leads from the file to the graph. */
tw_status twi_import_collect_given(twi_importer *m)
{
    const tw_import_options *o = m->options;
    for (int i = 0; i < o->num_inputs + o->num_after; i++) {
        twi_import_item *item = &m->items[m->num_read + i];
        item->given = true;
        item->input = i < o->num_inputs ? &o->inputs[i] : NULL;
        item->made = item->input ? item->input->output.node : o->after[i - o->num_inputs];
        if (!item->made || item->made->graph != m->graph || (item->input && !item->input->name))
            return twi_fail(m->error, TW_INVALID_ARGUMENT, "%s %d leads to no node of the graph",
                            item->input ? "input" : "what is waited for, number",
                            i - (item->input ? 0 : o->num_inputs));
        item->name = (char *)item->made->name;
        if (!item->input)
            continue;
        const tw_import_input *input = item->input;
        item->input->used = false;
        if (input->index >= 0 && (input->output.index < 0 || input->output.index >= item->made->num_outputs))
            return twi_fail(m->error, TW_INVALID_ARGUMENT, "input '%s:%d' leads to output %d of '%s', which has %d",
                            input->name, input->index, input->output.index, item->name, item->made->num_outputs);
        char *key = input->index < 0 ? twi_arena_printf(&m->arena, "^%s", input->name)
                                     : twi_arena_printf(&m->arena, "%s:%d", input->name, input->index);
        if (!key || !twi_map_put(&m->inputs, key, item) || !twi_map_put(&m->outside, input->name, item))
            return twi_import_fail_memory(m);
    }
    return TW_OK;
}

/* Whether `text` names what is given instead. */
static tw_status find_given(twi_importer *m, const char *text, twi_import_source *source, bool *found)
{
    bool whole = text[0] == '^' || strchr(text, ':');
    char *key = whole ? (char *)text : twi_arena_printf(&m->arena, "%s:0", text);
    if (!key)
        return twi_import_fail_memory(m);
    const twi_import_item *item = twi_map_get(&m->inputs, key);
    if ((*found = item)) {
        item->input->used = true;
        source->node = (int)(item - m->items);
        source->index = text[0] == '^' ? -1 : item->input->output.index;
    }
    return TW_OK;
}

/* "node", "node:1" or "^node". The colon is the last one; names have none. */
tw_status twi_import_find_source(twi_importer *m, const char *text, twi_import_source *source)
{
    bool given = false;
    if (m->inputs.count) {
        tw_status status = find_given(m, text, source, &given);
        if (status != TW_OK || given)
            return status;
    }
    bool control = text[0] == '^';
    const char *name = text + control, *colon = control ? NULL : strrchr(name, ':');
    char *end = NULL;
    long index = colon ? strtol(colon + 1, &end, 10) : 0;
    if (colon && (colon[1] < '0' || colon[1] > '9' || *end || index > INT_MAX - 1))
        return twi_fail(m->error, TW_INVALID_ARGUMENT, "input '%s' is not of the form node, node:1 or ^node", text);
    char *key = colon ? twi_arena_printf(&m->arena, "%.*s", (int)(colon - name), name) : (char *)name;
    if (!key)
        return twi_import_fail_memory(m);
    const twi_import_item *found = twi_map_get(&m->places, key);
    if (!found)
        return twi_fail(m->error, TW_INVALID_ARGUMENT, "input '%s' is not in the graph", text);
    source->node = (int)(found - m->items);
    source->index = control ? -1 : (int)index;
    return TW_OK;
}

tw_status twi_import_resolve(twi_importer *m, twi_import_item *item)
{
    bool control = false, alone = true;
    size_t after = (size_t)m->options->num_after;
    item->inputs = twi_arena_alloc(&m->arena, sizeof *item->inputs * (item->def->n_input + after));
    if (!item->inputs)
        return twi_import_fail_memory(m);
    item->num_inputs = item->def->n_input;
    for (size_t i = 0; i < item->def->n_input; i++) {
        const char *text = item->def->input[i];
        tw_status status = twi_import_find_source(m, text, &item->inputs[i]);
        if (status == TW_OK && control && item->inputs[i].index >= 0)
            status = twi_fail(m->error, TW_INVALID_ARGUMENT, "data input '%s' comes after a control input", text);
        if (status != TW_OK)
            return status;
        control = item->inputs[i].index < 0;
        alone = alone && item->inputs[i].node >= m->num_read;
    }
    for (size_t i = 0; i < after && alone; i++)
        item->inputs[item->num_inputs++] = (twi_import_source){m->count - (int)after + (int)i, -1};
    return TW_OK;
}

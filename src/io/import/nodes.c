/* nodes.c - the names and ops of a file's nodes. */
#include "io/import/import.h"

#include <stdio.h>

static tw_status fail_node(twi_importer *m, const Twi__NodeDef *def, tw_status status)
{
    twi_prefix(m->error, "node '%s' (%s)", def->name, def->op);
    return status;
}

/* Queues, readers and tables had handles of another type (a reference to two strings) in old graphs; nothing else
 * differs. */
static const twi_op *find_op(const char *name)
{
    char now[64];
    const twi_op *op = twi_op_find(name), *renewed = NULL;
    if (!op && snprintf(now, sizeof now, "%sV2", name) < (int)sizeof now)
        renewed = twi_op_find(now);
    if (renewed && ((renewed->makes != TWI_MAKES_NOTHING && renewed->makes != TWI_MAKES_VARIABLE) ||
                    (renewed->roles && strchr(renewed->roles, 'q'))))
        op = renewed;
    return op;
}

tw_status twi_import_give_up(twi_importer *m, twi_import_item *item, tw_status status, const char *why)
{
    char text[TW_MESSAGE_SIZE];
    if (m->options->known_only) {
        snprintf(text, sizeof text, "%s", why);
        return twi_fail(m->error, status, "%s", text);
    }
    item->op = NULL;
    item->why = twi_arena_strdup(&m->arena, why); /* which may be the message itself, and is the node's from now on */
    twi_clear_error(m->error);
    return item->why ? TW_OK : twi_import_fail_memory(m);
}

static tw_status read_node(twi_importer *m, twi_import_item *item)
{
    const Twi__NodeDef *def = item->def;
    char text[256];
    item->op = find_op(def->op);
    item->goes_on = item->op && twi_op_is(item->op, TWI_NEXT);
    if (!item->op || item->op->flags & TWI_REWRITTEN) {
        const char *missing = twi_functions_missing(&m->arena, m->functions, def);
        snprintf(text, sizeof text,
                 missing ? "it calls '%.100s', and the graph has no such function"
                         : "Op type not registered '%.100s' in this library",
                 missing ? missing : def->op);
        tw_status status = twi_import_give_up(m, item, missing ? TW_FAILED_PRECONDITION : TW_NOT_FOUND, text);
        if (status != TW_OK)
            return status;
    }
    item->device = *def->device ? def->device : m->device; /* which placing it reads */
    if (item->why)
        return TW_OK;
    tw_status status = twi_import_attrs(m, item);
    return status == TW_UNIMPLEMENTED ? twi_import_give_up(m, item, status, m->error->message) : status;
}

static bool is_taken(const twi_importer *m, const char *name)
{
    return tw_graph_find(m->graph, name) || twi_map_get(&m->new_names, name);
}

/* A name that neither the graph nor the file has. */
static tw_status rename_item(twi_importer *m, twi_import_item *item)
{
    size_t prefix = strlen(m->prefix);
    char *base = item->name;
    for (int k = 1; is_taken(m, item->name) || (item->name != base && twi_map_get(&m->places, item->name + prefix));
         k++)
        if (!(item->name = twi_arena_printf(&m->arena, "%s_%d", base, k)))
            return twi_import_fail_memory(m);
    return item->name == base || twi_map_put(&m->new_names, item->name, item) ? TW_OK : twi_import_fail_memory(m);
}

/* What nodes are called in the graph. */
tw_status twi_import_name_items(twi_importer *m)
{
    for (int i = 0; i < m->num_read; i++) {
        twi_import_item *item = &m->items[i];
        item->name = twi_arena_printf(&m->arena, "%s%s", m->prefix, item->def->name);
        if (!item->name)
            return twi_import_fail_memory(m);
        tw_status status = TW_OK;
        if (!m->options->any_names && !twi_is_node_name(item->name))
            status = twi_fail(m->error, TW_INVALID_ARGUMENT, "'%.200s' is not a valid node name", item->name);
        else if (!item->def->op || !*item->def->op)
            status = twi_fail(m->error, TW_INVALID_ARGUMENT, "Node '%s' does not specify an operation", item->name);
        else if (m->options->rename)
            status = rename_item(m, item);
        else if (is_taken(m, item->name))
            status = twi_fail(m->error, TW_ALREADY_EXISTS, "Node name '%s' already exists in the Graph", item->name);
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

tw_status twi_import_read_nodes(twi_importer *m)
{
    for (int i = 0; i < m->num_read; i++) {
        tw_status status = read_node(m, &m->items[i]);
        if (status == TW_OK)
            status = twi_import_resolve(m, &m->items[i]);
        if (status != TW_OK)
            return fail_node(m, m->items[i].def, status);
    }
    return TW_OK;
}

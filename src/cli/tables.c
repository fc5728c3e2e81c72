/* tables.c - what tables hold, between a session and its checkpoints. */
#include "tables.h"

#include "command.h"

#include <stdlib.h>
#include <string.h>
#include <tower/tower.h>

/* By which key the graph restores it, or "t-keys" of the table "in/t"; NULL: memory has run out. */
static char *saved_name(const tw_node *node, const char *key, const char *what)
{
    const char *name = tw_node_name(node), *slash = strrchr(name, '/');
    if (key)
        return strdup(key);
    name = slash ? slash + 1 : name;
    size_t size = strlen(name) + strlen(what) + 2;
    char *text = malloc(size);
    if (text)
        snprintf(text, size, "%s-%s", name, what);
    return text;
}

static void add_nodes(tw_graph *graph, table *t)
{
    tw_output handle = {t->node, 0};
    tw_dtype key = tw_node_attr(t->node, "key_dtype")->type, value = tw_node_attr(t->node, "value_dtype")->type;
    tw_attr types[] = {tw_attr_type("Tkeys", key), tw_attr_type("Tvalues", value)};
    tw_node *given = tw_add_node(graph, "LookupTableExportV2", NULL, &handle, 1, types, 2);
    t->taken[0] = tw_placeholder(graph, key, TW_UNKNOWN_SHAPE);
    t->taken[1] = tw_placeholder(graph, value, TW_UNKNOWN_SHAPE);
    tw_output pairs[] = {handle, t->taken[0], t->taken[1]};
    t->import = tw_node_output(tw_add_node(graph, "LookupTableImportV2", NULL, pairs, 3, NULL, 0), -1);
    for (int i = 0; i < 2; i++)
        t->given[i] = tw_node_output(given, i);
}

static int by_saved_name(const void *a, const void *b)
{
    const table *left = a, *right = b;
    int order = strcmp(left->keys, right->keys);
    return order ? order : tw_node_number(left->node) - tw_node_number(right->node);
}

/* Which of two that are called alike a Saver has is not known. */
static void choose(const char *command, tables *found)
{
    qsort(found->items, (size_t)found->count, sizeof *found->items, by_saved_name);
    for (int i = 0; i < found->count; i++) {
        table *t = &found->items[i];
        t->is_kept = (i == 0 || strcmp(t->keys, t[-1].keys) != 0) &&
                     (i == found->count - 1 || strcmp(t->keys, t[1].keys) != 0);
        if (!t->is_kept)
            complain(command, "what table '%s' holds is neither restored nor saved: another one's name ends alike",
                     tw_node_name(t->node));
    }
}

/* MutableHashTableV2 and its kin, each version of them. */
static bool changes(const tw_node *node)
{
    const char *op = tw_node_op(node), *kind = "Mutable";
    return strncmp(op, kind, strlen(kind)) == 0 && tw_node_attr(node, "key_dtype") && !tw_node_is_unknown(node);
}

static bool add_tables(tw_graph *graph, int num_nodes, const keys *keys, tables *found)
{
    bool fits = true;
    tw_enter_name_scope(graph, "tower_run_tables");
    for (int i = 0; i < num_nodes && fits; i++) {
        tw_node *node = tw_graph_node(graph, i);
        if (!changes(node))
            continue;
        table *t = &found->items[found->count++];
        *t = (table){.node = node,
                     .keys = saved_name(node, keys_of(keys, node, 0), "keys"),
                     .values = saved_name(node, keys_of(keys, node, 1), "values")};
        fits = t->keys && t->values;
        add_nodes(graph, t);
    }
    tw_leave_name_scope(graph);
    return fits;
}

bool tables_find(const char *command, tw_graph *graph, const keys *keys, tables *found)
{
    int num_nodes = tw_graph_num_nodes(graph), most = 0;
    for (int i = 0; i < num_nodes; i++)
        most += changes(tw_graph_node(graph, i));
    if (most == 0)
        return true;
    found->items = calloc((size_t)most, sizeof *found->items);
    found->held = calloc(2 * (size_t)most, sizeof *found->held);
    if (!found->items || !found->held || !add_tables(graph, num_nodes, keys, found))
        return complain(command, "out of memory");
    choose(command, found);
    return true;
}

static void release_held(tables *tables)
{
    while (tables->num_held > 0)
        tw_tensor_release((tw_tensor *)tables->held[--tables->num_held].tensor);
}

void tables_free(tables *tables)
{
    release_held(tables);
    for (int i = 0; i < tables->count; i++) {
        free(tables->items[i].keys);
        free(tables->items[i].values);
    }
    free(tables->items);
    free(tables->held);
}

tw_status tables_fetch(tables *tables, tw_session *session, tw_error *error)
{
    tw_status status = TW_OK;
    release_held(tables);
    for (int i = 0; i < tables->count && status == TW_OK; i++) {
        const table *t = &tables->items[i];
        tw_tensor *pairs[2] = {0};
        if (!t->is_kept)
            continue;
        status = tw_session_run(session, NULL, 0, t->given, 2, pairs, error);
        tables->held[tables->num_held++] = (tw_named_tensor){t->keys, pairs[0], NULL};
        tables->held[tables->num_held++] = (tw_named_tensor){t->values, pairs[1], NULL};
    }
    return status;
}

static tw_status restore(const table *t, tw_session *session, tw_checkpoint *checkpoint, tw_error *error)
{
    tw_tensor *keys = NULL, *values = NULL;
    tw_status status = tw_checkpoint_read(checkpoint, t->keys, &keys, error);
    if (status == TW_OK)
        status = tw_checkpoint_read(checkpoint, t->values, &values, error);
    tw_feed feeds[] = {{t->taken[0], keys}, {t->taken[1], values}};
    if (status == TW_OK)
        status = tw_session_run(session, feeds, 2, &t->import, 1, NULL, error);
    tw_tensor_release(keys);
    tw_tensor_release(values);
    return status;
}

tw_status tables_restore(const tables *tables, tw_session *session, tw_checkpoint *checkpoint, tw_error *error)
{
    tw_status status = TW_OK;
    for (int i = 0; i < tables->count && status == TW_OK; i++)
        if (tables->items[i].is_kept && tw_checkpoint_find(checkpoint, tables->items[i].keys) >= 0)
            status = restore(&tables->items[i], session, checkpoint, error);
    return status;
}

/* moves.c - what soft placement moved: nodes of one op, moved from one device to one other for one reason, in one
 * group; and the table of them that people read. */
#include "place/colocation.h"

#include <string.h>

/* ---- grouping -------------------------------------------------------------------------------------------------- */

static bool belongs(const tw_move_group *group, const tw_node *node, const tw_explanation *e)
{
    const tw_node *because = e->num_obstacles ? e->obstacles[0] : NULL;
    if (group->obstacle != e->obstacle || strcmp(group->asked, node->device) != 0 ||
        strcmp(group->device, e->device) != 0)
        return false;
    if (e->obstacle == TW_OBSTACLE_NO_DEVICE)
        return true;
    if (!group->refusal != !e->refusal || (e->refusal && strcmp(group->refusal, e->refusal) != 0))
        return false;
    return group->op == node->op->name && group->dtype == node->kernel_type &&
           !group->because == !because &&
           (!because || (group->because->op == because->op &&
                         group->because->kernel_type == because->kernel_type));
}

/* The number of the group that a moved node belongs to, a new one if need be. */
static int find_group(tw_moves *moves, const tw_node *node, const tw_explanation *e)
{
    for (int i = 0; i < moves->num_groups; i++)
        if (belongs(&moves->groups[i], node, e))
            return i;
    bool any = e->obstacle == TW_OBSTACLE_NO_DEVICE;
    moves->groups[moves->num_groups] = (tw_move_group){
        .op = any ? NULL : node->op->name,
        .dtype = any ? TW_INVALID_DTYPE : node->kernel_type,
        .asked = node->device,
        .device = e->device,
        .obstacle = e->obstacle,
        .because = e->num_obstacles ? e->obstacles[0] : NULL,
        .refusal = e->refusal,
    };
    return moves->num_groups++;
}

static tw_status sort_into_groups(twi_placement *p, twi_arena *arena, tw_moves *moves, int *group_of, tw_error *error)
{
    const tw_graph *graph = p->groups->graph;
    for (int id = 0; id < p->count; id++) {
        tw_explanation e;
        group_of[id] = -1;
        if (!twi_is_moved(p, graph->nodes.items[id]))
            continue;
        tw_status status = twi_explain(p, graph->nodes.items[id], arena, &e, error);
        if (status != TW_OK)
            return status;
        group_of[id] = find_group(moves, graph->nodes.items[id], &e);
        moves->groups[group_of[id]].num_nodes++;
    }
    return TW_OK;
}

tw_status twi_list_moves(twi_placement *p, twi_arena *arena, tw_moves *moves, tw_error *error)
{
    tw_status status = TW_OK;
    *moves = (tw_moves){0};
    for (int id = 0; id < p->count; id++)
        moves->num_nodes += twi_is_moved(p, p->groups->graph->nodes.items[id]);
    int *group_of = twi_alloc_array((size_t)p->count + 1, sizeof *group_of);
    const tw_node **nodes = twi_arena_alloc(arena, sizeof *nodes * (size_t)moves->num_nodes);
    moves->groups = twi_arena_alloc(arena, sizeof *moves->groups * (size_t)moves->num_nodes);
    if (!group_of || !nodes || !moves->groups)
        TWI_LEAVE(twi_fail_memory(error, "listing what soft placement moved"));
    if (moves->num_nodes)
        TWI_TRY(sort_into_groups(p, arena, moves, group_of, error));
    for (int i = 0; i < moves->num_groups; i++) {
        moves->groups[i].nodes = nodes;
        for (int id = 0; id < p->count; id++)
            if (group_of[id] == i)
                *nodes++ = p->groups->graph->nodes.items[id];
    }
done:
    twi_free(group_of);
    return status;
}

/* ---- the table ------------------------------------------------------------------------------------------------- */

enum { COLUMNS = 6 };

typedef struct row {
    twi_text cells[COLUMNS];
} row;

static const char *local(const char *device)
{
    const char *name = strstr(device, "/device:");
    return name ? name : device;
}

static void tell_why(twi_text *text, const tw_move_group *group)
{
    if (group->obstacle == TW_OBSTACLE_NO_DEVICE) {
        twi_text_printf(text, "there is no such device");
    } else if (group->obstacle == TW_OBSTACLE_NO_KERNEL) {
        tw_dtype type = group->because->kernel_type;
        twi_text_printf(text, "%s %s%s%s", group->refusal ? "the kernel there refuses" : "no kernel there for",
                        group->because->op->name, type ? " of " : "", type ? tw_dtype_name(type) : "");
        if (group->op && group->because->op->name != group->op)
            twi_text_printf(text, ", which it must run with");
        if (group->refusal)
            twi_text_printf(text, ": %s", group->refusal);
    } else {
        twi_text_printf(text, "others it must run with asked for something else");
    }
}

static void put_row(row *row, const tw_move_group *group, const tw_node *node)
{
    const char *op = node ? node->op->name : group->op ? group->op : "all that asked";
    tw_dtype type = node ? node->kernel_type : group->dtype;
    twi_text_printf(&row->cells[0], "%s%s%s", op, type ? " of " : "", type ? tw_dtype_name(type) : "");
    if (node)
        twi_text_printf(&row->cells[1], "%s", node->name);
    else
        twi_text_printf(&row->cells[1], "%d", group->num_nodes);
    twi_text_printf(&row->cells[2], "%s", local(group->asked));
    twi_text_printf(&row->cells[3], "%s", local(group->device));
    if (!node || node == group->nodes[0])
        twi_text_printf(&row->cells[4], "%lld", (long long)group->bytes);
    tell_why(&row->cells[5], group);
}

static void put_table(twi_text *text, const row *rows, int count)
{
    size_t widths[COLUMNS] = {0};
    for (int i = 0; i < count; i++)
        for (int k = 0; k < COLUMNS; k++)
            if (rows[i].cells[k].size > widths[k])
                widths[k] = rows[i].cells[k].size;
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < COLUMNS - 1; k++) {
            bool number =
                k == 4 || (k == 1 && i > 0 && strspn(rows[i].cells[k].data, "0123456789") == rows[i].cells[k].size);
            twi_text_printf(text, number ? "%*s  " : "%-*s  ", (int)widths[k], twi_text_string(&rows[i].cells[k]));
        }
        twi_text_printf(text, "%s\n", twi_text_string(&rows[i].cells[COLUMNS - 1]));
    }
}

char *tw_moves_table(const tw_moves *moves, bool every_node)
{
    TWI_NEED_OR(moves, NULL);
    static const char *const heads[] = {"moved", "nodes", "asked for", "runs on", "bytes a step", "why"};
    int count = 1 + (every_node ? moves->num_nodes : moves->num_groups), filled = 0;
    row *rows = twi_alloc_array((size_t)count, sizeof *rows);
    twi_text text = {0};
    bool failed = !rows;
    for (int k = 0; k < COLUMNS && rows; k++)
        twi_text_printf(&rows[0].cells[k], "%s", k == 1 && every_node ? "node" : heads[k]);
    filled += rows != NULL;
    for (int i = 0; i < moves->num_groups && rows; i++) {
        const tw_move_group *group = &moves->groups[i];
        for (int k = 0; k < (every_node ? group->num_nodes : 1); k++)
            put_row(&rows[filled++], group, every_node ? group->nodes[k] : NULL);
    }
    for (int i = 0; i < filled; i++)
        for (int k = 0; k < COLUMNS; k++)
            failed |= rows[i].cells[k].failed;
    if (!failed && moves->num_nodes)
        put_table(&text, rows, filled);
    for (int i = 0; i < filled; i++)
        for (int k = 0; k < COLUMNS; k++)
            twi_text_free(&rows[i].cells[k]);
    twi_free(rows);
    failed |= text.failed;
    char *table = failed ? NULL : twi_strdup(twi_text_string(&text));
    twi_text_free(&text);
    return table;
}

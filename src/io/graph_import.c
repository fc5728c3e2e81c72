/* graph_import.c - a GraphDef message as nodes of a graph.
 *
 * A node whose op is not registered, that asks of it what it cannot do here (a type, a rank, an attribute), or that
 * takes something from such a node, becomes an _Unknown node: it has its name, remembers what the file says of it, and
 * fails when a run needs it. So what nobody needs may be anything.
 *
 * What the file's nodes take of the graph that they are added to, instead of something of the file, are items too,
 * which stand behind those of the file and are there already (`given`).
 *
 * The message may be hostile. It is sorted (files may have any order) and built into the user's graph; after an error
 * what was built is taken back, and the graph is as it was. */
#include "base/map.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/status.h"
#include "graph/frames.h"
#include "graph/graph.h"
#include "io/functions/functions.h"
#include "io/graph_def.h"
#include "format/proto/graph.pb-c.h"
#include "format/protobuf.h"
#include "format/tensor_proto.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tower/io.h>
#include <tower/ops.h>

/* A file of few bytes can ask for much memory: a constant whose single value is repeated, a node with many outputs.
 * This much is granted beyond what is proportional to its size. */
#define SPARE_CONSTANT_BYTES ((size_t)64 << 20)
#define SPARE_OUTPUTS 65536

/* One input as the file names it. */
typedef struct source {
    int node;  /* place in the file */
    int index; /* of its output; -1: a control input */
} source;

typedef struct item {
    const Twi__NodeDef *def;
    source *inputs; /* [num_inputs] */
    size_t num_inputs; /* def's, less what it does not wait for (begin_at_once) */
    char *name;     /* with the prefix */
    const char *device; /* of the file or the options */
    const twi_op *op;
    bool goes_on;     /* into a loop's next round, by the op that the file names, even if it cannot be built */
    const char *why;  /* it cannot be built; NULL: it can */
    twi_attr *attrs;
    int num_attrs;
    tw_node *made; /* in the graph */
    bool given;    /* it was there before; `def` is NULL */
    tw_import_input *input; /* which leads to it; NULL: it is only waited for */
    int frame;     /* loop that it is in; 0: none */
    int next;      /* the next one there; -1: it is the last */
    bool idle;     /* nobody takes it (leave_idle) */
} item;

typedef struct importer {
    twi_arena arena;
    const Twi__GraphDef *def;
    const tw_import_options *options;
    const char *prefix; /* "imported/" or "" */
    const char *device; /* of nodes that ask for none */
    tw_graph *graph;
    int count;                      /* with what is given */
    int num_read;                   /* of the file */
    item *items;                    /* in the order of the file */
    int *order;                     /* inputs first */
    twi_map places;                 /* name in the file -> item */
    twi_map inputs;                 /* "node:1", "^node" -> item that is given instead */
    twi_map outside;                /* "node" -> the same, for who is to be beside it */
    twi_map new_names;              /* of nodes that had to be renamed */
    size_t spare_bytes;             /* for constants */
    TWI_ARRAY(tw_tensor *) tensors; /* the importer's references */
    twi_functions *functions;       /* NULL: it has none */
    Twi__NodeDef **nodes;           /* [count] of the file, without calls of functions */
    twi_frames frames;
    TWI_ARRAY(int) members;         /* [frames] the first item of a loop; -1: none */
    int *users;                     /* [count] inputs that name an item, where there are loops */
    tw_error *error;
} importer;

static tw_status fail_memory(importer *m)
{
    return twi_fail_memory(m->error, "importing a graph");
}

static tw_status fail_node(importer *m, const Twi__NodeDef *def, tw_status status)
{
    twi_prefix(m->error, "node '%s' (%s)", def->name, def->op);
    return status;
}

/* ---- names and inputs ------------------------------------------------------------------------------------------ */

static tw_status check_versions(importer *m)
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

static tw_status collect_nodes(importer *m)
{
    size_t count = m->def->n_node;
    m->nodes = m->functions ? twi_functions_nodes(m->functions, &count) : m->def->node;
    m->num_read = (int)count;
    m->count = m->num_read + m->options->num_inputs + m->options->num_after;
    m->items = twi_arena_alloc(&m->arena, sizeof *m->items * ((size_t)m->count + 1));
    m->order = twi_arena_alloc(&m->arena, sizeof *m->order * ((size_t)m->count + 1));
    if (!m->items || !m->order)
        return fail_memory(m);
    for (int i = 0; i < m->num_read; i++) {
        const Twi__NodeDef *def = m->nodes[i];
        if (twi_map_get(&m->places, def->name))
            return twi_fail(m->error, TW_INVALID_ARGUMENT, "two nodes are called '%s'", def->name);
        m->items[i].def = def;
        if (!twi_map_put(&m->places, def->name, &m->items[i]))
            return fail_memory(m);
    }
    return TW_OK;
}

/* What leads from the file to the graph. */
static tw_status collect_given(importer *m)
{
    const tw_import_options *o = m->options;
    for (int i = 0; i < o->num_inputs + o->num_after; i++) {
        item *item = &m->items[m->num_read + i];
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
            return fail_memory(m);
    }
    return TW_OK;
}

/* Whether `text` names what is given instead. */
static tw_status find_given(importer *m, const char *text, source *source, bool *found)
{
    bool whole = text[0] == '^' || strchr(text, ':');
    char *key = whole ? (char *)text : twi_arena_printf(&m->arena, "%s:0", text);
    if (!key)
        return fail_memory(m);
    const item *item = twi_map_get(&m->inputs, key);
    if ((*found = item)) {
        item->input->used = true;
        source->node = (int)(item - m->items);
        source->index = text[0] == '^' ? -1 : item->input->output.index;
    }
    return TW_OK;
}

/* "node", "node:1" or "^node". The colon is the last one; names have none. */
static tw_status find_source(importer *m, const char *text, source *source)
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
        return fail_memory(m);
    const item *found = twi_map_get(&m->places, key);
    if (!found)
        return twi_fail(m->error, TW_INVALID_ARGUMENT, "input '%s' is not in the graph", text);
    source->node = (int)(found - m->items);
    source->index = control ? -1 : (int)index;
    return TW_OK;
}

static tw_status resolve_inputs(importer *m, item *item)
{
    bool control = false, alone = true;
    size_t after = (size_t)m->options->num_after;
    item->inputs = twi_arena_alloc(&m->arena, sizeof *item->inputs * (item->def->n_input + after));
    if (!item->inputs)
        return fail_memory(m);
    item->num_inputs = item->def->n_input;
    for (size_t i = 0; i < item->def->n_input; i++) {
        const char *text = item->def->input[i];
        tw_status status = find_source(m, text, &item->inputs[i]);
        if (status == TW_OK && control && item->inputs[i].index >= 0)
            status = twi_fail(m->error, TW_INVALID_ARGUMENT, "data input '%s' comes after a control input", text);
        if (status != TW_OK)
            return status;
        control = item->inputs[i].index < 0;
        alone = alone && item->inputs[i].node >= m->num_read;
    }
    for (size_t i = 0; i < after && alone; i++)
        item->inputs[item->num_inputs++] = (source){m->count - (int)after + (int)i, -1};
    return TW_OK;
}

/* ---- order ----------------------------------------------------------------------------------------------------- */

static tw_status fail_cycle(importer *m, const item *item)
{
    return twi_fail(m->error, TW_INVALID_ARGUMENT,
                    "node '%s' (%s) depends on itself: the graph has a cycle that is not a loop's, which goes through "
                    "NextIteration to Merge",
                    item->def->name, item->def->op);
}

static bool is(const item *item, unsigned trait)
{
    return item->op && !item->why && twi_op_is(item->op, trait);
}

/* A loop's way back; it may come from a node that turns out not to be known. */
static bool goes_back(const importer *m, const item *item, size_t input)
{
    const struct item *from = &m->items[item->inputs[input].node];
    return is(item, TWI_MERGE) && input == 1 && item->inputs[input].index >= 0 && from->goes_on;
}

/* The k-th of those that come before: -1: none; -2: there are no more. Numbers from m->count on are loops as wholes: an
 * Exit comes behind all nodes of its loop. What nodes of no known op take is left out: they are built without, and any
 * cycle may go through them. */
static int before(const importer *m, int at, int k, int *member)
{
    if (at >= m->count) {
        int found = *member = k == 0 ? m->members.items[at - m->count] : *member < 0 ? -1 : m->items[*member].next;
        return found < 0 ? -2 : m->items[found].idle ? -1 : found;
    }
    const item *item = &m->items[at];
    int inputs = item->why ? 0 : (int)item->num_inputs;
    if (k < inputs)
        return goes_back(m, item, (size_t)k) ? -1 : item->inputs[k].node;
    if (k == inputs && inputs && is(item, TWI_EXIT) && m->items[item->inputs[0].node].frame)
        return m->count + m->items[item->inputs[0].node].frame;
    return -2;
}

enum { MOST_LET_GO = 4096 };

/* A constant that a loop takes or has may wait for what comes of that loop: where an update is to come before the
 * gradients, TensorFlow has the count of rounds, from which they begin, wait for it, and so for the loop that counts.
 * There the other values of the loop go round without that count. Here a round has all of its values, so the constant
 * does not wait; what comes behind the loop still comes behind the update, for it takes other constants of that place.
 * STACK holds a cycle through a loop as a whole, each behind the next and the last behind the first. Gives the
 * constant's place there, or -1. */
static int begin_at_once(importer *m, const int *stack, int depth)
{
    int found = -1;
    bool through_loop = false;
    for (int k = 0; k < depth; k++) {
        int user = stack[k ? k - 1 : depth - 1];
        through_loop = through_loop || stack[k] >= m->count;
        if (found < 0 && user < m->count && stack[k] < m->count && is(&m->items[stack[k]], TWI_CONSTANT) &&
            (is(&m->items[user], TWI_ENTER) || m->items[stack[k]].frame))
            found = k;
    }
    return through_loop ? found : -1;
}

/* What nobody takes is in no loop: no way out of it leads there. */
static tw_status leave_idle(importer *m, int first)
{
    TWI_ARRAY(int) idle = {0};
    bool fits = twi_push(&idle, first);
    while (fits && idle.count) {
        item *item = &m->items[idle.items[--idle.count]];
        item->idle = true;
        for (size_t k = 0; k < item->num_inputs && fits; k++)
            if (--m->users[item->inputs[k].node] == 0)
                fits = twi_push(&idle, item->inputs[k].node);
    }
    twi_array_free(&idle);
    return fits ? TW_OK : fail_memory(m);
}

static tw_status let_go_of(importer *m, item *item, size_t input)
{
    int from = item->inputs[input].node;
    item->num_inputs--;
    memmove(item->inputs + input, item->inputs + input + 1, sizeof *item->inputs * (item->num_inputs - input));
    return --m->users[from] ? TW_OK : leave_idle(m, from);
}

/* So a file may have it that was written of a graph of which something was let go. */
static tw_status find_idle(importer *m)
{
    tw_status status = TW_OK;
    m->users = twi_arena_alloc(&m->arena, sizeof *m->users * ((size_t)m->count + 1));
    if (!m->users)
        return fail_memory(m);
    for (int i = 0; i < m->count; i++)
        for (size_t k = 0; k < m->items[i].num_inputs; k++)
            m->users[m->items[i].inputs[k].node]++;
    for (int i = 0; i < m->count && status == TW_OK; i++)
        if (m->items[i].frame && !m->users[i] && !m->items[i].idle)
            status = leave_idle(m, i);
    return status;
}

/* Depth first, so that a file that is in order keeps its order. */
static tw_status sort(importer *m)
{
    enum { UNSEEN, OPEN, DONE };
    size_t all = (size_t)m->count + (size_t)m->frames.items.count;
    char *states = twi_arena_alloc(&m->arena, all);
    int *next = twi_arena_alloc(&m->arena, sizeof *next * all); /* which to look at */
    int *members = twi_arena_alloc(&m->arena, sizeof *members * all);
    int *stack = twi_arena_alloc(&m->arena, sizeof *stack * all), sorted = 0, let_go = 0;
    if (!states || !next || !stack || !members)
        return fail_memory(m);
    for (int start = 0; start < m->count; start++) {
        int depth = 0;
        if (states[start] == UNSEEN)
            stack[depth++] = start;
        while (depth) {
            int at = stack[depth - 1], found = before(m, at, next[at], &members[at]);
            states[at] = OPEN;
            next[at]++;
            if (found == -2) {
                states[at] = DONE;
                if (at < m->count)
                    m->order[sorted++] = at;
                depth--;
            } else if (found >= 0 && states[found] == OPEN) {
                int first = depth - 1;
                while (stack[first] != found)
                    first--;
                int opened = let_go++ < MOST_LET_GO ? begin_at_once(m, stack + first, depth - first) : -1;
                if (opened < 0)
                    return fail_cycle(m, &m->items[at < m->count ? at : found < m->count ? found : start]);
                while (depth > first + opened + 1) { /* looked at for the constant's sake only */
                    states[stack[--depth]] = UNSEEN;
                    next[stack[depth]] = 0;
                }
                tw_status status = let_go_of(m, &m->items[stack[depth - 1]], (size_t)--next[stack[depth - 1]]);
                if (status != TW_OK)
                    return status;
            } else if (found >= 0 && states[found] == UNSEEN) {
                stack[depth++] = found;
            }
        }
    }
    return TW_OK;
}

/* The loop that an item is in, from those that it takes something of, which have been seen. */
static int frame_of(importer *m, const item *item)
{
    int frame = 0;
    for (size_t i = 0; i < item->num_inputs; i++)
        if (!goes_back(m, item, i) && m->items[item->inputs[i].node].frame > frame)
            frame = m->items[item->inputs[i].node].frame;
    if (is(item, TWI_EXIT) && frame)
        frame = m->frames.items.items[frame].parent;
    for (int i = 0; i < item->num_attrs && is(item, TWI_ENTER); i++)
        if (strcmp(item->attrs[i].name, "frame_name") == 0 && item->attrs[i].kind == TW_ATTR_STRING)
            return twi_frame_number(&m->frames, frame, item->attrs[i].s.data);
    return frame;
}

/* Sorts, and once more if there are loops. */
static tw_status sort_loops(importer *m)
{
    bool any = false, fits = twi_push(&m->frames.items, ((twi_frame){.name = "", .parent = -1}));
    tw_status status = fits ? sort(m) : fail_memory(m);
    for (int k = 0; k < m->count && status == TW_OK; k++) {
        item *item = &m->items[m->order[k]];
        any = any || is(item, TWI_ENTER);
        item->frame = any ? frame_of(m, item) : 0;
        while (item->frame >= 0 && m->members.count < m->frames.items.count && fits)
            fits = twi_push(&m->members, -1);
        if (item->frame < 0 || !fits)
            return fail_memory(m);
        item->next = m->members.items[item->frame];
        m->members.items[item->frame] = (int)(item - m->items);
    }
    if (status == TW_OK && any)
        status = find_idle(m);
    return status == TW_OK && any ? sort(m) : status;
}

/* ---- attributes ------------------------------------------------------------------------------------------------ */

/* A string with a 0 behind it, as code expects that knows it to be text. */
static tw_status copy_string(importer *m, ProtobufCBinaryData from, tw_string *to)
{
    char *data = twi_arena_alloc(&m->arena, from.len + 1);
    if (!data)
        return fail_memory(m);
    if (from.len)
        memcpy(data, from.data, from.len);
    *to = (tw_string){data, from.len};
    return TW_OK;
}

static tw_status read_strings(importer *m, const Twi__AttrValue__ListValue *list, twi_attr *attr)
{
    tw_string *strings = twi_arena_alloc(&m->arena, sizeof *strings * list->n_s);
    if (!strings)
        return fail_memory(m);
    *attr = tw_attr_strings(attr->name, strings, (int)list->n_s);
    for (size_t i = 0; i < list->n_s; i++) {
        tw_status status = copy_string(m, list->s[i], &strings[i]);
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

static tw_status read_types(importer *m, const Twi__AttrValue__ListValue *list, twi_attr *attr)
{
    tw_dtype *types = twi_arena_alloc(&m->arena, sizeof *types * list->n_type);
    if (!types)
        return fail_memory(m);
    *attr = tw_attr_types(attr->name, types, (int)list->n_type);
    for (size_t i = 0; i < list->n_type; i++) {
        tw_status status = twi_dtype_from_proto(list->type[i], &types[i], m->error);
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

static tw_status read_shapes(importer *m, const Twi__AttrValue__ListValue *list, twi_attr *attr)
{
    tw_shape *shapes = twi_arena_alloc(&m->arena, sizeof *shapes * list->n_shape);
    if (!shapes)
        return fail_memory(m);
    *attr = tw_attr_shapes(attr->name, shapes, (int)list->n_shape);
    for (size_t i = 0; i < list->n_shape; i++) {
        tw_status status = twi_shape_from_proto(list->shape[i], &shapes[i], m->error);
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

static bool is_list(tw_attr_kind kind)
{
    return kind >= TW_ATTR_INTS;
}

/* A list says what is in it unless it is empty: then it is of the kind that the op wants. */
static tw_status read_list(importer *m, const Twi__AttrValue__ListValue *list, tw_attr_kind wanted, twi_attr *attr)
{
    size_t in_all =
        list->n_i + list->n_f + list->n_b + list->n_type + list->n_s + list->n_shape + list->n_tensor + list->n_func;
    if (in_all > INT_MAX)
        return twi_fail(m->error, TW_INVALID_ARGUMENT, "a list has %zu values", in_all);
    if (in_all == 0) {
        *attr = (twi_attr){.name = attr->name, .kind = is_list(wanted) ? wanted : TW_ATTR_STRINGS};
        return TW_OK;
    }
    if (list->n_i == in_all) {
        *attr = tw_attr_ints(attr->name, list->i, (int)in_all);
        return TW_OK;
    }
    if (list->n_f == in_all) {
        *attr = tw_attr_floats(attr->name, list->f, (int)in_all);
        return TW_OK;
    }
    if (list->n_type == in_all)
        return read_types(m, list, attr);
    if (list->n_s == in_all)
        return read_strings(m, list, attr);
    if (list->n_shape == in_all)
        return read_shapes(m, list, attr);
    return twi_fail(m->error, TW_UNIMPLEMENTED,
                    "a list of values of several kinds, or of bools, tensors or functions, is not supported");
}

static tw_status read_tensor(importer *m, const Twi__TensorProto *proto, twi_attr *attr)
{
    tw_tensor *tensor;
    tw_status status = twi_tensor_from_proto(proto, &m->spare_bytes, &tensor, m->error);
    if (status != TW_OK)
        return status;
    if (!twi_push(&m->tensors, tensor)) {
        tw_tensor_release(tensor);
        return fail_memory(m);
    }
    *attr = tw_attr_tensor(attr->name, tensor);
    return TW_OK;
}

static tw_status read_place(importer *m, const char *name, twi_attr *attr)
{
    char *place = twi_arena_printf(&m->arena, "%s%s", m->prefix, name);
    if (!place)
        return fail_memory(m);
    *attr = tw_attr_string(attr->name, place);
    return TW_OK;
}

static tw_status read_attr(importer *m, const Twi__AttrValue *value, tw_attr_kind wanted, twi_attr *attr)
{
    switch (value ? value->value_case : TWI__ATTR_VALUE__VALUE__NOT_SET) {
    case TWI__ATTR_VALUE__VALUE_LIST:
        return read_list(m, value->list, wanted, attr);
    case TWI__ATTR_VALUE__VALUE_S:
        attr->kind = TW_ATTR_STRING;
        return copy_string(m, value->s, &attr->s);
    case TWI__ATTR_VALUE__VALUE_I:
        *attr = tw_attr_int(attr->name, value->i);
        return TW_OK;
    case TWI__ATTR_VALUE__VALUE_F:
        *attr = tw_attr_float(attr->name, value->f);
        return TW_OK;
    case TWI__ATTR_VALUE__VALUE_B:
        *attr = tw_attr_bool(attr->name, value->b != 0);
        return TW_OK;
    case TWI__ATTR_VALUE__VALUE_TYPE:
        attr->kind = TW_ATTR_TYPE;
        return twi_dtype_from_proto(value->type, &attr->type, m->error);
    case TWI__ATTR_VALUE__VALUE_SHAPE:
        attr->kind = TW_ATTR_SHAPE;
        return twi_shape_from_proto(value->shape, &attr->shape, m->error);
    case TWI__ATTR_VALUE__VALUE_TENSOR:
        return read_tensor(m, value->tensor, attr);
    case TWI__ATTR_VALUE__VALUE_PLACEHOLDER: /* where a function is kept (functions.h) */
        if (m->functions && wanted == TW_ATTR_STRING)
            return read_place(m, value->placeholder, attr);
        /* fallthrough */
    case TWI__ATTR_VALUE__VALUE_FUNC:
        return twi_fail(m->error, TW_UNIMPLEMENTED, "functions are not supported");
    default:
        return twi_fail(m->error, TW_INVALID_ARGUMENT, "it has no value");
    }
}

/* Newer writers know more attributes than we do. One that says what holds without it says nothing: it is off, as most
 * are by default, or has one of these values, or is a hint that changes no result. */
static bool says_nothing(const twi_attr *attr)
{
    /* Of MatMul: an input is a gradient. Of Equal and NotEqual: what shapes that do not fit give, which is refused. */
    static const char *const hints[] = {"grad_a", "grad_b", "grad_x", "grad_y", "incompatible_shape_error"};
    static const twi_attr usual[] = {
        {.name = "exponential_avg_factor", .kind = TW_ATTR_FLOAT, .f = 1},     /* FusedBatchNorm */
        {.name = "shape_type", .kind = TW_ATTR_TYPE, .type = TW_INT32},        /* ConcatOffset */
        {.name = "Tk", .kind = TW_ATTR_TYPE, .type = TW_INT32},                /* TopKV2 */
        {.name = "index_type", .kind = TW_ATTR_TYPE, .type = TW_INT32},        /* TopKV2 */
    };
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (strcmp(attr->name, hints[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (strcmp(attr->name, usual[i].name) == 0)
            return attr->kind == usual[i].kind && twi_attr_equal(attr, &usual[i]);
    switch (attr->kind) {
    case TW_ATTR_INT:
        return attr->i == 0;
    case TW_ATTR_FLOAT:
        return attr->f == 0;
    case TW_ATTR_BOOL:
        return !attr->b;
    case TW_ATTR_STRING:
        return attr->s.size == 0;
    default:
        return is_list(attr->kind) && attr->count == 0;
    }
}

/* "loc:@x" for a node of this file: it must be there, and may get a prefix. */
static tw_status read_class(importer *m, twi_attr *attr)
{
    if (attr->kind != TW_ATTR_STRINGS)
        return twi_fail(m->error, TW_INVALID_ARGUMENT, "it is not a list of strings");
    for (int i = 0; i < attr->count; i++) {
        tw_string *string = (tw_string *)&attr->strings[i];
        if (strncmp(string->data, "loc:@", 5) != 0)
            continue;
        const item *beside = twi_map_get(&m->outside, string->data + 5);
        if (!beside && !(beside = twi_map_get(&m->places, string->data + 5)))
            return twi_fail(m->error, TW_INVALID_ARGUMENT, "node '%s' is not in the graph", string->data + 5);
        char *text = twi_arena_printf(&m->arena, "loc:@%s", beside->name);
        if (!text)
            return fail_memory(m);
        *string = (tw_string){text, strlen(text)};
    }
    return TW_OK;
}

static const twi_attr_spec *find_spec(const twi_signature *signature, const char *name)
{
    for (int i = 0; i < signature->num_attrs; i++)
        if (strcmp(signature->attrs[i].name, name) == 0)
            return &signature->attrs[i];
    return NULL;
}

/* Of placeholders made before version 22, [] means that nothing is known, where the shape may be left out. */
static void reread_old_shape(const importer *m, const item *item, const twi_attr_spec *spec, twi_attr *attr)
{
    int version = m->def->versions ? m->def->versions->producer : m->def->version;
    if (version < 22 && twi_op_is(item->op, TWI_PLACEHOLDER) && spec && spec->has_default &&
        attr->kind == TW_ATTR_SHAPE && attr->shape.rank == 0)
        attr->shape = TW_UNKNOWN_SHAPE;
}

static tw_status read_attrs(importer *m, item *item)
{
    const twi_signature *signature = twi_graph_signature(m->graph, item->op);
    item->attrs = twi_arena_alloc(&m->arena, sizeof *item->attrs * item->def->n_attr);
    if (!signature || !item->attrs)
        return fail_memory(m);
    for (size_t i = 0; i < item->def->n_attr; i++) {
        const Twi__NodeDef__AttrEntry *entry = item->def->attr[i];
        const twi_attr_spec *spec = find_spec(signature, entry->key);
        twi_attr attr = {.name = entry->key};
        if (entry->key[0] == '_' && strcmp(entry->key, "_class") != 0)
            continue; /* marks of other runtimes, and "_output_shapes", which are inferred anew */
        tw_status status = read_attr(m, entry->value, spec ? spec->kind : 0, &attr);
        if (status == TW_OK && strcmp(entry->key, "_class") == 0)
            status = read_class(m, &attr);
        if (status != TW_OK) {
            twi_prefix(m->error, "attribute '%s'", entry->key);
            return status;
        }
        reread_old_shape(m, item, spec, &attr);
        if (!spec && entry->key[0] != '_' && !says_nothing(&attr))
            return twi_fail(m->error, TW_UNIMPLEMENTED, "attribute '%s' is not known, and is not off", entry->key);
        if (spec || entry->key[0] == '_')
            item->attrs[item->num_attrs++] = attr;
    }
    return TW_OK;
}

/* ---- nodes ----------------------------------------------------------------------------------------------------- */

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

/* From now on the node is one that cannot be built, which not everybody wants. */
static tw_status give_up(importer *m, item *item, tw_status status, const char *why)
{
    char text[TW_MESSAGE_SIZE];
    if (m->options->known_only) {
        snprintf(text, sizeof text, "%s", why); /* it may be the message itself */
        return twi_fail(m->error, status, "%s", text);
    }
    item->op = NULL;
    item->why = twi_arena_strdup(&m->arena, why);
    return item->why ? TW_OK : fail_memory(m);
}

static tw_status read_node(importer *m, item *item)
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
        tw_status status = give_up(m, item, TW_NOT_FOUND, text);
        if (status != TW_OK)
            return status;
    }
    item->device = *def->device ? def->device : m->device; /* which placing it reads */
    if (item->why)
        return TW_OK;
    tw_status status = read_attrs(m, item);
    return status == TW_UNIMPLEMENTED ? give_up(m, item, status, m->error->message) : status;
}

static bool is_taken(const importer *m, const char *name)
{
    return tw_graph_find(m->graph, name) || twi_map_get(&m->new_names, name);
}

/* A name that neither the graph nor the file has. */
static tw_status rename_item(importer *m, item *item)
{
    size_t prefix = strlen(m->prefix);
    char *base = item->name;
    for (int k = 1; is_taken(m, item->name) || (item->name != base && twi_map_get(&m->places, item->name + prefix));
         k++)
        if (!(item->name = twi_arena_printf(&m->arena, "%s_%d", base, k)))
            return fail_memory(m);
    return item->name == base || twi_map_put(&m->new_names, item->name, item) ? TW_OK : fail_memory(m);
}

/* What nodes are called in the graph. */
static tw_status name_items(importer *m)
{
    for (int i = 0; i < m->num_read; i++) {
        item *item = &m->items[i];
        item->name = twi_arena_printf(&m->arena, "%s%s", m->prefix, item->def->name);
        if (!item->name)
            return fail_memory(m);
        tw_status status = TW_OK;
        if (!m->options->any_names && !twi_is_node_name(item->name))
            status = twi_fail(m->error, TW_INVALID_ARGUMENT, "'%.200s' is not a valid node name", item->name);
        else if (m->options->rename)
            status = rename_item(m, item);
        else if (is_taken(m, item->name))
            status = twi_fail(m->error, TW_ALREADY_EXISTS, "Node name '%s' already exists in the Graph", item->name);
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

static tw_status read_nodes(importer *m)
{
    for (int i = 0; i < m->num_read; i++) {
        tw_status status = read_node(m, &m->items[i]);
        if (status == TW_OK)
            status = resolve_inputs(m, &m->items[i]);
        if (status != TW_OK)
            return fail_node(m, m->items[i].def, status);
    }
    return TW_OK;
}

/* ---- ragged tensors in data sets -------------------------------------------------------------------------------- */

/* The attribute of an op's output that is a value, but may be text; NULL: it has none. */
static const char *text_attr(importer *m, const item *item)
{
    const twi_signature *signature = item->op ? twi_graph_signature(m->graph, item->op) : NULL;
    const char *name = signature && signature->num_outputs ? signature->outputs[0].type_attr : NULL;
    for (int i = 0; i < item->num_attrs && name; i++)
        if (strcmp(item->attrs[i].name, name) == 0)
            return NULL;
    return name && twi_signature_wants_text(signature, name) ? name : NULL;
}

/* Who makes what comes from there, through nodes that pass it on, makes text of it. */
static tw_status make_text(importer *m, source from)
{
    while (from.index >= 0 && m->items[from.node].op && twi_op_is(m->items[from.node].op, TWI_PASSES) &&
           (size_t)from.index < m->items[from.node].num_inputs)
        from = m->items[from.node].inputs[from.index];
    item *maker = &m->items[from.node];
    const char *name = from.index == 0 && !maker->given ? text_attr(m, maker) : NULL;
    if (!name)
        return TW_OK;
    twi_attr *attrs = twi_arena_alloc(&m->arena, sizeof *attrs * (size_t)(maker->num_attrs + 1));
    if (!attrs)
        return fail_memory(m);
    for (int i = 0; i < maker->num_attrs; i++)
        attrs[i] = maker->attrs[i];
    attrs[maker->num_attrs++] = tw_attr_type(name, TW_STRING);
    maker->attrs = attrs;
    return TW_OK;
}

static tw_status make_texts(importer *m, const item *user)
{
    tw_status status = TW_OK;
    for (size_t i = 0; i < user->num_inputs && status == TW_OK; i++)
        status = make_text(m, user->inputs[i]);
    return status;
}

/* Of a data set that another process has made the generator of seeds is a constant, a handle that only that process
 * has: here as in TensorFlow there is none behind it, so the data set's own seeds count. */
static void make_seed_generator(importer *m, const item *user)
{
    const twi_signature *signature = twi_graph_signature(m->graph, user->op);
    const twi_argument *last =
        signature && signature->num_inputs ? &signature->inputs[signature->num_inputs - 1] : NULL;
    size_t count = user->num_inputs;
    while (count && user->inputs[count - 1].index < 0)
        count--;
    item *from = last && count ? &m->items[user->inputs[count - 1].node] : NULL;
    const twi_op *wanted = from && from->why ? twi_op_find(from->def->op) : NULL;
    if (!wanted || !twi_op_is(wanted, TWI_CONSTANT) || strcmp(last->name, "seed_generator") != 0)
        return;
    from->op = twi_op_find("DummySeedGenerator");
    from->why = NULL;
    from->attrs = NULL;
    from->num_attrs = 0;
}

/* What the function gives that an attribute names: as TensorFlow wrote it, or Tower; NULL: it names none. */
static const item *called(importer *m, const Twi__AttrValue *value)
{
    const char *name = value->value_case == TWI__ATTR_VALUE__VALUE_PLACEHOLDER ? value->placeholder : NULL;
    if (value->value_case == TWI__ATTR_VALUE__VALUE_S)
        name = twi_arena_printf(&m->arena, "%.*s", (int)value->s.len, (const char *)value->s.data);
    return name ? twi_map_get(&m->places, name) : NULL;
}

/* What data sets are made of, and what their functions give. */
static tw_status tell_data_sets(importer *m)
{
    tw_status status = TW_OK;
    for (int i = 0; i < m->num_read && status == TW_OK; i++) {
        const item *user = &m->items[i];
        if (!user->op || user->op->makes != TWI_MAKES_RECIPE)
            continue;
        make_seed_generator(m, user);
        status = make_texts(m, user);
        for (size_t k = 0; k < user->def->n_attr && status == TW_OK; k++) {
            const Twi__AttrValue *value = user->def->attr[k]->value;
            const item *given = value ? called(m, value) : NULL;
            if (given)
                status = make_texts(m, given);
        }
    }
    return status;
}

/* ---- what is not known ----------------------------------------------------------------------------------------- */

/* What the file says of the node, with the names it has here. */
static bool keep_def(importer *m, const item *item, tw_string *kept)
{
    Twi__NodeDef def = *item->def;
    def.name = item->name;
    def.input = twi_arena_alloc(&m->arena, sizeof *def.input * (def.n_input + 1));
    if (!def.input)
        return false;
    for (size_t i = 0; i < def.n_input; i++) {
        source from = {0};
        if (find_source(m, item->def->input[i], &from) != TW_OK)
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
static tw_status make_unknown(importer *m, item *item)
{
    tw_string def;
    item->op = twi_op_find("_Unknown");
    item->attrs = twi_arena_alloc(&m->arena, 3 * sizeof *item->attrs);
    if (!item->attrs || !keep_def(m, item, &def))
        return fail_memory(m);
    item->attrs[0] = tw_attr_string("op", item->def->op);
    item->attrs[1] = (twi_attr){.name = "node", .kind = TW_ATTR_STRING, .s = def};
    item->attrs[2] = tw_attr_string("why", item->why);
    item->num_attrs = 3;
    return TW_OK;
}

/* Who takes something from a node that cannot be built cannot be built either. */
static tw_status inherit(importer *m, item *item)
{
    for (size_t i = 0; i < item->num_inputs && !item->why; i++) {
        const struct item *from = &m->items[item->inputs[i].node];
        if (!from->why || item->inputs[i].index < 0 || goes_back(m, item, i))
            continue;
        bool whole = strncmp(from->why, "it needs '", strlen("it needs '")) == 0;
        item->why = whole ? from->why : twi_arena_printf(&m->arena, "it needs '%s': %s", from->name, from->why);
        if (!item->why)
            return fail_memory(m);
    }
    return TW_OK;
}

static int length_of(const item *item, const twi_argument *argument)
{
    const char *name = argument->number_attr ? argument->number_attr : argument->list_attr;
    for (int i = 0; i < item->num_attrs && name; i++)
        if (strcmp(item->attrs[i].name, name) == 0)
            return argument->number_attr ? (int)item->attrs[i].i : item->attrs[i].count;
    return 1;
}

/* Of what gives several components, with a shape each: those that are no scalars are no data sets, but serialized
 * sparse tensors (ops/serialize.c), whose shape data sets do not tell. */
static void tell_texts(const item *item, twi_attr *types)
{
    const twi_attr *shapes = NULL;
    for (int i = 0; i < item->num_attrs; i++)
        if (strcmp(item->attrs[i].name, "output_shapes") == 0)
            shapes = &item->attrs[i];
    for (int i = 0; shapes && types->kind == TW_ATTR_TYPES && shapes->count == types->count && i < types->count; i++)
        if (types->types[i] == TW_VARIANT && shapes->shapes[i].rank != 0)
            ((tw_dtype *)types->types)[i] = TW_STRING;
}

/* What TensorFlow calls a variant is a data set, whose handle is a resource here (ops/dataset.c), a serialized sparse
 * tensor, which is text, or a value (tensor/variant.h). Who takes one has what it is given; who only gives one, as an
 * iterator does, gives a data set, or text if its op's row says so. */
static tw_status tell_variants(importer *m, const item *item, const tw_output *inputs, twi_attr *attr)
{
    twi_signature signature;
    tw_dtype *types = attr->kind == TW_ATTR_TYPE ? &attr->type : (tw_dtype *)attr->types;
    int count = attr->kind == TW_ATTR_TYPE ? 1 : attr->kind == TW_ATTR_TYPES ? attr->count : 0, input = 0;
    bool any = false, taken = false, lists = false, given = false;
    tell_texts(item, attr);
    for (int i = 0; i < count; i++)
        any = any || types[i] == TW_VARIANT;
    if (!any)
        return TW_OK;
    if (!twi_signature_parse(&m->arena, item->op, &signature))
        return fail_memory(m);
    for (int i = 0; i < signature.num_inputs && input < (int)item->num_inputs; i++) {
        const twi_argument *argument = &signature.inputs[i];
        const char *name = argument->type_attr ? argument->type_attr : argument->list_attr;
        bool is_it = name && strcmp(name, attr->name) == 0;
        lists = lists || argument->dtype == TW_VARIANT;
        taken = taken || is_it;
        for (int k = 0; k < count && is_it && input + k < (int)item->num_inputs; k++)
            if (types[k] == TW_VARIANT && inputs[input + k].node && inputs[input + k].index >= 0)
                types[k] = tw_output_dtype(inputs[input + k]);
        input += length_of(item, argument);
    }
    for (int i = 0; i < signature.num_outputs; i++) {
        const char *name =
            signature.outputs[i].type_attr ? signature.outputs[i].type_attr : signature.outputs[i].list_attr;
        given = given || (name && strcmp(name, attr->name) == 0);
    }
    tw_dtype otherwise = twi_signature_wants_text(&signature, attr->name) ? TW_STRING : TW_RESOURCE;
    for (int i = 0; i < count && given && !taken && !lists; i++)
        types[i] = types[i] == TW_VARIANT ? otherwise : types[i];
    return TW_OK;
}

/* Of the gradient of a function: inputs[i], an argument, becomes the gradient by it, zeros where none flows. */
static void differentiate(importer *m, const item *item, const twi_function_gradient *g, tw_output *inputs)
{
    enum { MOST_NODES = 1 << 20 }; /* gradients of gradients grow fast */
    tw_graph *graph = m->graph;
    tw_output *ends = twi_arena_alloc(&m->arena, sizeof *ends * (size_t)(2 * g->count + g->arguments + 1));
    tw_output *dys = ends + g->count, *gradients = dys + g->count;
    for (int i = 0; i < 2 * g->count && ends; i++) {
        source from = {0};
        if (find_source(m, i < g->count ? g->ys[i] : g->dys[i - g->count], &from) != TW_OK || from.index < 0) {
            graph->error = *m->error;
            return;
        }
        ends[i] = (tw_output){m->items[from.node].made, from.index};
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
    tw_gradients(graph, ends, g->count, dys, inputs, g->arguments, gradients);
    for (int i = 0; i < g->arguments; i++)
        inputs[i] = gradients[i].node ? gradients[i] : tw_zeros_like(graph, inputs[i]);
    tw_leave_name_scope(graph);
}

static tw_node *add_node(importer *m, item *item, tw_output *inputs)
{
    tw_graph *graph = m->graph;
    int num_inputs = item->why ? 0 : (int)item->num_inputs;
    for (int i = 0; i < num_inputs; i++)
        inputs[i] = goes_back(m, item, (size_t)i) && !item->why
                        ? inputs[0]
                        : (tw_output){m->items[item->inputs[i].node].made, item->inputs[i].index};
    const twi_function_gradient *gradient = item->why ? NULL : twi_functions_gradient(m->functions, item->def->name);
    if (gradient && graph->error.status == TW_OK) {
        differentiate(m, item, gradient, inputs);
        num_inputs = gradient->arguments + gradient->controls;
    }
    for (int i = 0; i < item->num_attrs && !item->why; i++)
        if (tell_variants(m, item, inputs, &item->attrs[i]) != TW_OK) {
            graph->error = *m->error;
            return NULL;
        }
    return twi_add_named_node(graph, item->op, item->name, item->device, inputs, num_inputs, item->attrs,
                              item->num_attrs);
}

/* Adds a node: here it shows whether it can be built. */
static tw_status try_node(importer *m, item *item, tw_output *inputs)
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
    status = give_up(m, item, TW_UNIMPLEMENTED, graph->error.message);
    graph->error = (tw_error){0};
    if (status == TW_OK)
        status = make_unknown(m, item);
    item->made = status == TW_OK ? add_node(m, item, inputs) : NULL;
    return status;
}

/* Leads the loops' ways back to where they come from, once all nodes are there. */
static tw_status close_loops(importer *m)
{
    for (int k = 0; k < m->count; k++) {
        const item *item = &m->items[k];
        for (size_t i = 0; i < item->num_inputs; i++) {
            tw_output from = {m->items[item->inputs[i].node].made, item->inputs[i].index};
            if (!goes_back(m, item, i) || m->items[item->inputs[i].node].why)
                continue;
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
static tw_status build_nodes(importer *m, tw_output *inputs)
{
    size_t outputs = 0, most_outputs = SPARE_OUTPUTS + (size_t)m->count;
    for (int k = 0; k < m->count; k++) {
        item *item = &m->items[m->order[k]];
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

static tw_status build(importer *m)
{
    size_t most_inputs = 1;
    for (int i = 0; i < m->count; i++)
        if (m->items[i].num_inputs > most_inputs)
            most_inputs = m->items[i].num_inputs;
    tw_output *inputs = twi_alloc_array(most_inputs, sizeof *inputs);
    tw_status status = inputs ? build_nodes(m, inputs) : fail_memory(m);
    twi_free(inputs);
    return status;
}

/* What has become of the nodes that the caller asks for. */
static void tell_nodes(const importer *m)
{
    for (int i = 0; i < m->options->num_names; i++) {
        const item *found = m->options->names[i] ? twi_map_get(&m->places, m->options->names[i]) : NULL;
        m->options->nodes[i] = found ? found->made : NULL;
    }
}

/* All or nothing. Messages of the graph's own say no line of the program's text: what is wrong stands in the file. */
static tw_status build_all(importer *m)
{
    tw_graph *graph = m->graph;
    const char *file = graph->file;
    int first = graph->nodes.count;
    graph->file = NULL;
    tw_status status = build(m);
    if (status == TW_OK && twi_adopt_variables(graph, first) != TW_OK)
        status = fail_memory(m);
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

static tw_status import(importer *m)
{
    tw_status status;
    TWI_TRY(check_versions(m));
    TWI_TRY(twi_functions_inline(&m->arena, m->def, &m->functions, m->error));
    TWI_TRY(collect_nodes(m));
    TWI_TRY(collect_given(m));
    TWI_TRY(name_items(m));
    TWI_TRY(read_nodes(m));
    TWI_TRY(tell_data_sets(m));
    TWI_TRY(sort_loops(m));
    TWI_TRY(build_all(m));
done:
    return status;
}

static tw_status check_options(const tw_import_options *o, tw_error *error)
{
    const char *missing = o->num_inputs > 0 && !o->inputs                 ? "inputs"
                          : o->num_after > 0 && !o->after                 ? "after"
                          : o->num_names > 0 && (!o->names || !o->nodes) ? "names"
                                                                          : NULL;
    if (missing)
        return twi_fail(error, TW_INVALID_ARGUMENT, "tw_graph_import_with: %s is NULL", missing);
    if (o->num_inputs < 0 || o->num_after < 0 || o->num_inputs > INT_MAX / 4 || o->num_after > INT_MAX / 4)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "tw_graph_import_with: there cannot be %d inputs and %d to wait for", o->num_inputs,
                        o->num_after);
    return TW_OK;
}

tw_status tw_graph_import_with(tw_graph *graph, const void *bytes, size_t size, const tw_import_options *options,
                               tw_error *error)
{
    TWI_NEED(graph, "graph", error);
    TWI_NEED(bytes, "bytes", error);
    tw_status status;
    twi_proto proto;
    tw_error unasked;
    tw_import_options known;
    Twi__GraphDef *def = NULL;
    importer m = {.spare_bytes = SPARE_CONSTANT_BYTES, .options = &known, .graph = graph, .prefix = "",
                  .error = error ? error : &unasked};
    TWI_TRY(twi_sized(&known, options, TWI_SIZE(tw_import_options, num_names), error));
    TWI_TRY(check_options(&known, error));
    m.device = known.device ? known.device : "";
    if (graph->error.status != TW_OK)
        return twi_fail(error, graph->error.status, "%s", graph->error.message);
    if (size > INT_MAX)
        return twi_fail(error, TW_INVALID_ARGUMENT, "a GraphDef holds at most %d bytes, but this has %zu", INT_MAX,
                        size);
    twi_proto_start(&proto, size);
    def = twi__graph_def__unpack(&proto.allocator, size, bytes);
    m.def = def;
    if (!def)
        TWI_TRY(proto.out_of_memory
                    ? fail_memory(&m)
                    : twi_fail(error, TW_INVALID_ARGUMENT, "Invalid GraphDef: %zu bytes that should be one are not",
                               size));
    if (known.prefix && *known.prefix) {
        m.prefix = twi_arena_printf(&m.arena, "%s/", known.prefix);
        if (!m.prefix)
            TWI_LEAVE(fail_memory(&m));
    }
    TWI_TRY(import(&m));
done:
    for (int i = 0; i < m.tensors.count; i++)
        tw_tensor_release(m.tensors.items[i]);
    twi_array_free(&m.tensors);
    twi_map_free(&m.places);
    twi_map_free(&m.inputs);
    twi_map_free(&m.outside);
    twi_map_free(&m.new_names);
    twi_frames_free(&m.frames);
    twi_functions_free(m.functions);
    twi_array_free(&m.members);
    twi_arena_free(&m.arena);
    if (def)
        twi__graph_def__free_unpacked(def, &proto.allocator);
    return status;
}

tw_status tw_graph_import(tw_graph *graph, const void *bytes, size_t size, const char *prefix, tw_error *error)
{
    TWI_NEED(graph, "graph", error);
    TWI_NEED(bytes, "bytes", error);
    return tw_graph_import_with(graph, bytes, size, &(tw_import_options){.prefix = prefix}, error);
}

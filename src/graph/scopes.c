/* scopes.c - the stacks of open scopes, and what they give to a new node: name, device, control inputs, colocation.
 *
 * Device scopes nest as in TensorFlow: the innermost wins component by component and outer ones fill what is unset; a
 * device function is asked like a string; "no device" forgets everything outside.
 *
 * Each kind has a stack of its own, and one more, `open`, has the order in which all were entered: scopes nest, so
 * whoever is left must be on top. What lies above it was left open by mistake, which latches an error, and is left
 * too. */
#include "graph/blocks.h"
#include "graph/graph.h"

#include "device/name.h" /* twi_device_name: the one parser of device strings */

#include <stdio.h>
#include <string.h>
#include <tower/device.h>

typedef struct device_scope {
    bool forgets;
    twi_device_name name;
    tw_device_function *function;
    void *user;
} device_scope;

typedef struct variable_scope {
    const char *prefix; /* "conv1/" */
    bool reuses;
} variable_scope;

typedef struct getter_scope {
    tw_variable_getter *getter;
    void *user;
} getter_scope;

/* ORDER SCOPES */
typedef enum scope_kind { DEVICE, NAME, VARIABLES, GETTER, CONTROL, COLOCATION, BRANCH, LOOP } scope_kind;

typedef struct block_scope {
    twi_block *block;
    int first_control; /* of those that were opened inside */
    bool is_closed;    /* to those that were opened outside */
    bool raw;
} block_scope;

typedef struct open_scope {
    scope_kind kind;
    const char *file; /* where a block begins; NULL: entered by a function */
    int line;
} open_scope;

struct twi_scopes {
    TWI_ARRAY(open_scope) open; /* the innermost last */
    tw_scope_ *blocks;          /* on the stacks of those who build; the innermost */
    TWI_ARRAY(device_scope) devices;
    TWI_ARRAY(const char *) names; /* each whole: "tower_0/conv1/" */
    TWI_ARRAY(variable_scope) variables;
    TWI_ARRAY(getter_scope) getters;
    bool reuses_outside;
    int uncounted, first_uncounted; /* how many such scopes are open; the number of nodes before the outermost */
    TWI_ARRAY(tw_node *) controls; /* NULL: everything before is forgotten */
    TWI_ARRAY(tw_node *) colocations;
    TWI_ARRAY(block_scope) blocks_open;
};

twi_scopes *twi_scopes_create(void)
{
    return twi_alloc(sizeof(twi_scopes));
}

void twi_scopes_destroy(twi_scopes *s)
{
    if (!s)
        return;
    for (; s->blocks; s->blocks = s->blocks->outer)
        s->blocks->graph = NULL;
    twi_array_free(&s->open);
    twi_array_free(&s->devices);
    twi_array_free(&s->names);
    twi_array_free(&s->variables);
    twi_array_free(&s->getters);
    twi_array_free(&s->controls);
    twi_array_free(&s->colocations);
    twi_array_free(&s->blocks_open);
    twi_free(s);
}

static void check(tw_graph *graph, bool pushed)
{
    if (!pushed)
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while opening a scope");
}

/* Notes that a scope was entered, whose stack says how it is. */
static void enter(tw_graph *graph, scope_kind kind, bool pushed)
{
    check(graph, pushed && twi_push(&graph->scopes->open, ((open_scope){.kind = kind})));
}

/* ---- leaving ------------------------------------------------------------------------------------------------- */

#define POP(array) ((array).count -= (array).count > 0)
#define TOP(array) ((array).count ? &(array).items[(array).count - 1] : NULL)

static const struct {
    const char *block, *enter, *leave;
} words[] = { /* ORDER SCOPES */
    {"TW_DEVICE", "tw_enter_device", "tw_leave_device"},
    {"TW_NAME_SCOPE", "tw_enter_name_scope", "tw_leave_name_scope"},
    {"TW_VARIABLE_SCOPE", "tw_enter_variable_scope", "tw_leave_variable_scope"},
    {"tw_enter_variable_getter", "tw_enter_variable_getter", "tw_leave_variable_getter"},
    {"TW_CONTROL", "tw_enter_control", "tw_leave_control"},
    {"TW_COLOCATE", "tw_enter_colocation", "tw_leave_colocation"},
    {"TW_WHEN", "tw_enter_branch", "tw_leave_branch"},
    {"TW_LOOP", "tw_enter_loop", "tw_leave_loop"},
};

/* What the innermost scope of that kind says: "/device:GPU:0", "tower_0/". */
static const char *argument_of(const twi_scopes *s, scope_kind kind, char *text, size_t size)
{
    const device_scope *device = TOP(s->devices);
    tw_node *const *node = kind == CONTROL ? TOP(s->controls) : TOP(s->colocations);
    const variable_scope *variables = TOP(s->variables);
    const char *const *name = TOP(s->names);
    if (kind == DEVICE && device && !device->function && !device->forgets)
        return twi_device_name_print(&device->name, text, size);
    if (kind == NAME && name)
        return *name;
    if (kind == VARIABLES && variables)
        return variables->prefix;
    const block_scope *block = TOP(s->blocks_open);
    if (kind == BRANCH && block && block->block)
        return tw_node_name(block->block->predicate.node);
    if (kind == LOOP && block && block->block)
        return block->block->frame ? block->block->frame : block->block->outer->frame;
    if ((kind == CONTROL || kind == COLOCATION) && node && *node)
        return (*node)->name;
    return "...";
}

/* The innermost scope in words: TW_DEVICE(g, "/device:GPU:0") of model.c:12. */
static const char *describe(const twi_scopes *s, char *text, size_t size)
{
    char argument[256];
    const open_scope *scope = TOP(s->open);
    const char *said = argument_of(s, scope->kind, argument, sizeof argument);
    if (scope->file)
        snprintf(text, size, "%s(\"%s\") at %s:%d", words[scope->kind].block, said, scope->file, scope->line);
    else
        snprintf(text, size, "%s(\"%s\")", words[scope->kind].enter, said);
    return text;
}

static void pop(twi_scopes *s)
{
    switch (TOP(s->open)->kind) {
    case DEVICE: POP(s->devices); break;
    case NAME: POP(s->names); break;
    case VARIABLES: POP(s->variables); POP(s->names); break;
    case GETTER: POP(s->getters); break;
    case CONTROL: POP(s->controls); break;
    case COLOCATION: POP(s->colocations); break;
    case BRANCH:
    case LOOP: POP(s->blocks_open); break;
    }
    POP(s->open);
}

static void fail_open(tw_graph *graph, const char *what)
{
    char scope[512];
    twi_graph_fail(graph, TW_FAILED_PRECONDITION,
                   "%s %s: leave a scope's block only by its end, not by break, return or goto, and what was entered by a "
                   "function by tw_leave_...()",
                   describe(graph->scopes, scope, sizeof scope), what);
}

static void leave(tw_graph *graph, scope_kind kind)
{
    if (!graph)
        return;
    twi_scopes *s = graph->scopes;
    int at = s->open.count - 1;
    while (at >= 0 && s->open.items[at].kind != kind)
        at--;
    if (at < 0) {
        twi_graph_fail(graph, TW_FAILED_PRECONDITION, "%s(): no such scope is open; each %s() is left once",
                       words[kind].leave, words[kind].enter);
        return;
    }
    while (s->open.count - 1 > at) {
        fail_open(graph, "was still open when a scope around it was left");
        pop(s);
    }
    pop(s);
}

tw_scope_ tw_scope_begin_(tw_graph *graph, const char *file, int line)
{
    open_scope *scope = graph ? TOP(graph->scopes->open) : NULL;
    if (scope) {
        scope->file = file;
        scope->line = line;
    }
    return (tw_scope_){.graph = graph, .depth = scope ? graph->scopes->open.count : 0, .is_open = true};
}

/* Asked before the block and, once it has been left by its end, again. */
bool tw_scope_is_open_(tw_scope_ *block)
{
    if (block && block->graph && block->is_open && !block->is_known) {
        block->outer = block->graph->scopes->blocks;
        block->graph->scopes->blocks = block;
        block->is_known = true;
    }
    return block && block->is_open;
}

/* The block is gone, whichever way. Its graph may be gone before: then it is not the block's any more. */
void tw_scope_end_(tw_scope_ *block)
{
    if (!block || !block->graph)
        return;
    twi_scopes *s = block->graph->scopes;
    if (block->is_known)
        s->blocks = block->outer;
    if (block->is_open && block->depth > 0 && s->open.count >= block->depth)
        fail_open(block->graph, "was left in the middle of its block");
    while (block->is_open && block->depth > 0 && s->open.count >= block->depth)
        pop(s);
}

tw_status twi_scopes_check(tw_graph *graph, const char *when)
{
    char what[128];
    snprintf(what, sizeof what, "is still open while %s", when);
    const twi_scopes *s = graph->scopes;
    bool is_within_a_block = s->blocks && s->blocks->depth == s->open.count; /* which will see to it itself */
    if (s->open.count && !is_within_a_block)
        fail_open(graph, what);
    return graph->error.status;
}

/* ---- devices ------------------------------------------------------------------------------------------------- */

void tw_enter_device(tw_graph *graph, const char *format, ...)
{
    TWI_NEED_OR(graph && format, );
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    device_scope scope = {.name = TWI_NO_DEVICE};
    tw_error error = {0};
    if (twi_device_name_parse(text, &scope.name, &error) != TW_OK)
        twi_graph_latch(graph, &error);
    enter(graph, DEVICE, twi_push(&graph->scopes->devices, scope));
}

void tw_enter_device_function(tw_graph *graph, tw_device_function *function, void *user)
{
    TWI_NEED_OR(graph, );
    device_scope scope = {.name = TWI_NO_DEVICE, .function = function, .user = user};
    enter(graph, DEVICE, twi_push(&graph->scopes->devices, scope));
}

void tw_enter_no_device(tw_graph *graph)
{
    TWI_NEED_OR(graph, );
    device_scope scope = {.forgets = true, .name = TWI_NO_DEVICE};
    enter(graph, DEVICE, twi_push(&graph->scopes->devices, scope));
}

void tw_leave_device(tw_graph *graph)
{
    leave(graph, DEVICE);
}

void twi_enter_host(tw_graph *graph, tw_output beside)
{
    const char *device = beside.node ? beside.node->device : "";
    tw_enter_colocation(graph, (tw_output){0});
    tw_enter_no_device(graph);
    tw_enter_device(graph, "%s", tw_device_is(device, "CPU") ? device : "");
}

void twi_leave_host(tw_graph *graph)
{
    tw_leave_device(graph);
    tw_leave_device(graph);
    tw_leave_colocation(graph);
}

const char *twi_scope_device(tw_graph *graph, tw_node *node)
{
    twi_device_name name = TWI_NO_DEVICE;
    char text[256];
    for (int i = graph->scopes->devices.count - 1; i >= 0; i--) {
        device_scope *scope = &graph->scopes->devices.items[i];
        twi_device_name outer = scope->name;
        if (scope->forgets)
            break;
        if (scope->function) {
            tw_error error = {0};
            node->device = twi_device_name_print(&name, text, sizeof text); /* what is decided so far */
            const char *said = scope->function(scope->user, node);
            node->device = "";
            if (twi_device_name_parse(said ? said : "", &outer, &error) != TW_OK)
                twi_graph_latch(graph, &error);
        }
        name = twi_device_name_override(&outer, &name);
    }
    const char *before = graph->nodes.count ? graph->nodes.items[graph->nodes.count - 1]->device : "";
    twi_device_name_print(&name, text, sizeof text);
    const char *kept = strcmp(before, text) == 0 ? before : twi_arena_strdup(&graph->arena, text);
    check(graph, kept != NULL);
    return kept ? kept : "";
}

/* ---- names --------------------------------------------------------------------------------------------------- */

const char *tw_name_scope(const tw_graph *graph)
{
    int count = graph ? graph->scopes->names.count : 0;
    return count ? graph->scopes->names.items[count - 1] : "";
}

/* Pushes something in any case, so that enter and leave stay paired after an error. */
static bool push_name(tw_graph *graph, const char *name)
{
    return twi_push(&graph->scopes->names, name ? name : "");
}

static bool open_name_scope(tw_graph *graph, const char *name)
{
    const char *unique = NULL;
    const char *whole = twi_arena_printf(&graph->arena, "%s%s", tw_name_scope(graph), name);
    if (whole && (unique = twi_graph_unique_name(graph, whole)))
        unique = twi_arena_printf(&graph->arena, "%s/", unique);
    check(graph, unique != NULL);
    return push_name(graph, unique);
}

void tw_enter_name_scope(tw_graph *graph, const char *format, ...)
{
    TWI_NEED_OR(graph && format, );
    char name[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    enter(graph, NAME, open_name_scope(graph, name));
}

void twi_enter_absolute_scope(tw_graph *graph, const char *name)
{
    const char *kept = name ? twi_arena_strdup(&graph->arena, name) : NULL;
    check(graph, kept != NULL);
    enter(graph, NAME, push_name(graph, kept));
}

void tw_leave_name_scope(tw_graph *graph)
{
    leave(graph, NAME);
}

/* ---- variables ------------------------------------------------------------------------------------------------ */

const char *twi_scope_variables(const tw_graph *graph)
{
    int count = graph->scopes->variables.count;
    return count ? graph->scopes->variables.items[count - 1].prefix : "";
}

bool twi_scope_reuses(const tw_graph *graph)
{
    int count = graph->scopes->variables.count;
    return count ? graph->scopes->variables.items[count - 1].reuses : graph->scopes->reuses_outside;
}

void tw_enter_variable_scope(tw_graph *graph, const char *format, ...)
{
    TWI_NEED_OR(graph && format, );
    char name[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    variable_scope scope = {twi_arena_printf(&graph->arena, "%s%s/", twi_scope_variables(graph), name),
                            twi_scope_reuses(graph)};
    bool pushed = scope.prefix && twi_push(&graph->scopes->variables, scope);
    enter(graph, VARIABLES, open_name_scope(graph, name) && pushed);
}

void tw_leave_variable_scope(tw_graph *graph)
{
    leave(graph, VARIABLES);
}

void tw_reuse_variables(tw_graph *graph)
{
    TWI_NEED_OR(graph, );
    int count = graph->scopes->variables.count;
    if (count)
        graph->scopes->variables.items[count - 1].reuses = true;
    else
        graph->scopes->reuses_outside = true;
}

void tw_enter_variable_getter(tw_graph *graph, tw_variable_getter *getter, void *user)
{
    TWI_NEED_OR(graph && getter, );
    enter(graph, GETTER, twi_push(&graph->scopes->getters, ((getter_scope){getter, user})));
}

void tw_leave_variable_getter(tw_graph *graph)
{
    leave(graph, GETTER);
}

tw_variable *twi_scope_getters(tw_graph *graph, tw_variable *variable)
{
    tw_enter_uncounted(graph);
    for (int i = graph->scopes->getters.count - 1; i >= 0 && variable; i--) {
        getter_scope scope = graph->scopes->getters.items[i]; /* getters may open scopes of their own */
        variable = scope.getter(scope.user, graph, variable);
    }
    tw_leave_uncounted(graph);
    return variable;
}

/* ---- seeds ------------------------------------------------------------------------------------------------------ */

void tw_enter_uncounted(tw_graph *graph)
{
    TWI_NEED_OR(graph, );
    if (graph->scopes->uncounted++ == 0)
        graph->scopes->first_uncounted = graph->nodes.count;
}

void tw_leave_uncounted(tw_graph *graph)
{
    TWI_NEED_OR(graph, );
    if (graph->scopes->uncounted > 0 && --graph->scopes->uncounted == 0)
        graph->uncounted += graph->nodes.count - graph->scopes->first_uncounted;
}

/* ---- control inputs and colocation ------------------------------------------------------------------------------ */

void tw_enter_control(tw_graph *graph, tw_output output)
{
    TWI_NEED_OR(graph, );
    if (!output.node && graph->error.status == TW_OK)
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "a control scope was opened with a dead output");
    enter(graph, CONTROL, twi_push(&graph->scopes->controls, output.node));
}

void twi_enter_no_control(tw_graph *graph)
{
    enter(graph, CONTROL, twi_push(&graph->scopes->controls, NULL));
}

void tw_leave_control(tw_graph *graph)
{
    leave(graph, CONTROL);
}

int twi_scope_controls(const tw_graph *graph, tw_node *const **controls)
{
    const twi_scopes *s = graph->scopes;
    int count = s->controls.count, first = count, outside = 0;
    for (int i = 0; i < s->blocks_open.count; i++)
        if (s->blocks_open.items[i].is_closed)
            outside = s->blocks_open.items[i].first_control;
    while (first > outside && s->controls.items[first - 1])
        first--;
    *controls = count ? graph->scopes->controls.items + first : NULL;
    return count - first;
}

void tw_enter_colocation(tw_graph *graph, tw_output output)
{
    TWI_NEED_OR(graph, );
    enter(graph, COLOCATION, twi_push(&graph->scopes->colocations, output.node));
}

void tw_leave_colocation(tw_graph *graph)
{
    leave(graph, COLOCATION);
}

tw_node *twi_scope_colocation(const tw_graph *graph)
{
    int count = graph->scopes->colocations.count;
    return count ? graph->scopes->colocations.items[count - 1] : NULL;
}

/* ---- branches and loops ---------------------------------------------------------------------------------------- */

void tw_enter_branch(tw_graph *graph, tw_output predicate, bool value)
{
    TWI_NEED_OR(graph, );
    twi_block *branch = twi_branch_find(graph, twi_scope_block(graph), predicate, value);
    block_scope scope = {.block = branch, .first_control = graph->scopes->controls.count};
    enter(graph, BRANCH, twi_push(&graph->scopes->blocks_open, scope));
}

void twi_enter_block(tw_graph *graph, twi_block *block, bool raw)
{
    block_scope scope = {block, graph->scopes->controls.count, true, raw};
    enter(graph, BRANCH, twi_push(&graph->scopes->blocks_open, scope));
}

void tw_leave_branch(tw_graph *graph)
{
    leave(graph, BRANCH);
}

void twi_enter_loop_block(tw_graph *graph, twi_block *loop)
{
    block_scope scope = {.block = loop, .first_control = graph->scopes->controls.count, .is_closed = true};
    enter(graph, LOOP, twi_push(&graph->scopes->blocks_open, scope));
}

void twi_leave_loop_block(tw_graph *graph)
{
    leave(graph, LOOP);
}

twi_block *twi_scope_loop(const tw_graph *graph)
{
    const open_scope *top = TOP(graph->scopes->open);
    const block_scope *block = TOP(graph->scopes->blocks_open);
    if (!top || top->kind != LOOP || !block->block)
        return NULL;
    return block->block->frame ? block->block : block->block->outer;
}

void twi_scope_go_on(tw_graph *graph, twi_block *body)
{
    TOP(graph->scopes->blocks_open)->block = body;
}

/* Who forgets what is open outside forgets the block, too. */
static const block_scope *top_block(const tw_graph *graph)
{
    const twi_scopes *s = graph->scopes;
    const block_scope *top = TOP(s->blocks_open);
    for (int i = top ? top->first_control : 0; top && i < s->controls.count; i++)
        if (!s->controls.items[i])
            return NULL;
    return top;
}

twi_block *twi_scope_block(const tw_graph *graph)
{
    const block_scope *top = top_block(graph);
    return top ? top->block : NULL;
}

bool twi_scope_is_raw(const tw_graph *graph)
{
    const block_scope *top = top_block(graph);
    return top && top->raw;
}

/* scopes.c - the stacks of open scopes, and what they give to a new node: name, device, control inputs, colocation.
 *
 * Device scopes nest as in TensorFlow: the innermost wins component by component and outer ones fill what is unset; a
 * device function is asked like a string; "no device" forgets everything outside. */
#include "graph/graph.h"

#include "device/name.h" /* twi_device_name: the one parser of device strings */

#include <stdio.h>
#include <string.h>

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

struct twi_scopes {
    TWI_ARRAY(device_scope) devices;
    TWI_ARRAY(const char *) names; /* each whole: "tower_0/conv1/" */
    TWI_ARRAY(variable_scope) variables;
    TWI_ARRAY(getter_scope) getters;
    bool reuses_outside;
    TWI_ARRAY(tw_node *) controls; /* NULL: everything before is forgotten */
    TWI_ARRAY(tw_node *) colocations;
};

twi_scopes *twi_scopes_create(void)
{
    return twi_alloc(sizeof(twi_scopes));
}

void twi_scopes_destroy(twi_scopes *s)
{
    if (!s)
        return;
    twi_array_free(&s->devices);
    twi_array_free(&s->names);
    twi_array_free(&s->variables);
    twi_array_free(&s->getters);
    twi_array_free(&s->controls);
    twi_array_free(&s->colocations);
    twi_free(s);
}

static void check(tw_graph *graph, bool pushed)
{
    if (!pushed)
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while opening a scope");
}

#define POP(array) ((array).count -= (array).count > 0)

/* ---- devices ------------------------------------------------------------------------------------------------- */

void tw_enter_device(tw_graph *graph, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    device_scope scope = {.name = TWI_NO_DEVICE};
    tw_error error = {0};
    if (twi_device_name_parse(text, &scope.name, &error) != TW_OK)
        twi_graph_latch(graph, &error);
    check(graph, twi_push(&graph->scopes->devices, scope));
}

void tw_enter_device_function(tw_graph *graph, tw_device_function *function, void *user)
{
    device_scope scope = {.name = TWI_NO_DEVICE, .function = function, .user = user};
    check(graph, twi_push(&graph->scopes->devices, scope));
}

void tw_enter_no_device(tw_graph *graph)
{
    device_scope scope = {.forgets = true, .name = TWI_NO_DEVICE};
    check(graph, twi_push(&graph->scopes->devices, scope));
}

void tw_leave_device(tw_graph *graph)
{
    POP(graph->scopes->devices);
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
    const char *kept = twi_arena_strdup(&graph->arena, twi_device_name_print(&name, text, sizeof text));
    check(graph, kept != NULL);
    return kept ? kept : "";
}

/* ---- names --------------------------------------------------------------------------------------------------- */

const char *tw_name_scope(const tw_graph *graph)
{
    int count = graph->scopes->names.count;
    return count ? graph->scopes->names.items[count - 1] : "";
}

/* Pushes something in any case, so that enter and leave stay paired after an error. */
static void push_name(tw_graph *graph, const char *name)
{
    check(graph, twi_push(&graph->scopes->names, name ? name : ""));
}

static void enter_name_scope(tw_graph *graph, const char *name)
{
    const char *unique = NULL;
    const char *whole = twi_arena_printf(&graph->arena, "%s%s", tw_name_scope(graph), name);
    if (whole && (unique = twi_graph_unique_name(graph, whole)))
        unique = twi_arena_printf(&graph->arena, "%s/", unique);
    check(graph, unique != NULL);
    push_name(graph, unique);
}

void tw_enter_name_scope(tw_graph *graph, const char *format, ...)
{
    char name[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    enter_name_scope(graph, name);
}

void twi_enter_absolute_scope(tw_graph *graph, const char *name)
{
    const char *kept = name ? twi_arena_strdup(&graph->arena, name) : NULL;
    check(graph, kept != NULL);
    push_name(graph, kept);
}

void tw_leave_name_scope(tw_graph *graph)
{
    POP(graph->scopes->names);
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
    char name[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    variable_scope scope = {twi_arena_printf(&graph->arena, "%s%s/", twi_scope_variables(graph), name),
                            twi_scope_reuses(graph)};
    check(graph, scope.prefix && twi_push(&graph->scopes->variables, scope));
    enter_name_scope(graph, name);
}

void tw_leave_variable_scope(tw_graph *graph)
{
    POP(graph->scopes->variables);
    tw_leave_name_scope(graph);
}

void tw_reuse_variables(tw_graph *graph)
{
    int count = graph->scopes->variables.count;
    if (count)
        graph->scopes->variables.items[count - 1].reuses = true;
    else
        graph->scopes->reuses_outside = true;
}

void tw_enter_variable_getter(tw_graph *graph, tw_variable_getter *getter, void *user)
{
    check(graph, twi_push(&graph->scopes->getters, ((getter_scope){getter, user})));
}

void tw_leave_variable_getter(tw_graph *graph)
{
    POP(graph->scopes->getters);
}

tw_variable *twi_scope_getters(tw_graph *graph, tw_variable *variable)
{
    int before = graph->nodes.count;
    for (int i = graph->scopes->getters.count - 1; i >= 0 && variable; i--) {
        getter_scope scope = graph->scopes->getters.items[i]; /* getters may open scopes of their own */
        variable = scope.getter(scope.user, graph, variable);
    }
    graph->uncounted += graph->nodes.count - before;
    return variable;
}

/* ---- control inputs and colocation ------------------------------------------------------------------------------ */

void tw_enter_control(tw_graph *graph, tw_output output)
{
    if (!output.node && graph->error.status == TW_OK)
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "a control scope was opened with a dead output");
    check(graph, twi_push(&graph->scopes->controls, output.node));
}

void twi_enter_no_control(tw_graph *graph)
{
    check(graph, twi_push(&graph->scopes->controls, NULL));
}

void tw_leave_control(tw_graph *graph)
{
    POP(graph->scopes->controls);
}

int twi_scope_controls(const tw_graph *graph, tw_node *const **controls)
{
    int count = graph->scopes->controls.count, first = count;
    while (first > 0 && graph->scopes->controls.items[first - 1])
        first--;
    *controls = count ? graph->scopes->controls.items + first : NULL;
    return count - first;
}

void tw_enter_colocation(tw_graph *graph, tw_output output)
{
    check(graph, twi_push(&graph->scopes->colocations, output.node));
}

void tw_leave_colocation(tw_graph *graph)
{
    POP(graph->scopes->colocations);
}

tw_node *twi_scope_colocation(const tw_graph *graph)
{
    int count = graph->scopes->colocations.count;
    return count ? graph->scopes->colocations.items[count - 1] : NULL;
}

/* outline.c - see outline.h. */
#include "outline.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- finding out ------------------------------------------------------------------------------------------------- */

/* Marks what somebody takes, waits for, or knows as part of a variable. */
static void mark_used(const tw_graph *graph, bool *used)
{
    for (int i = 0; i < tw_graph_num_nodes(graph); i++) {
        tw_node *node = tw_graph_node(graph, i);
        for (int k = 0; k < tw_node_num_inputs(node); k++)
            used[tw_node_number(tw_node_input(node, k).node)] = true;
        for (int k = 0; k < tw_node_num_control_inputs(node); k++)
            used[tw_node_number(tw_node_control_input(node, k))] = true;
        used[i] |= tw_node_is_constant(node) || tw_node_is_variable(node) || tw_node_is_unknown(node);
    }
    for (int i = 0; i < tw_graph_num_variables(graph); i++)
        used[tw_node_number(tw_graph_variable(graph, i)->value.node)] = true;
}

/* A function that a data set calls is nobody's input or output: NODE/f, and its arguments NODE/f/arg/0, 1, ... */
static bool is_of_function(const tw_graph *graph, const tw_node *node)
{
    char name[600];
    snprintf(name, sizeof name, "%.500s", tw_node_name(node));
    char *argument = strstr(name, "/arg/"); /* the last one: functions lie in each other */
    for (char *next; argument && (next = strstr(argument + 1, "/arg/"));)
        argument = next;
    if (argument && tw_node_is_placeholder(node))
        *argument = 0;
    else
        snprintf(name, sizeof name, "%.500s/arg/0", tw_node_name(node));
    return tw_graph_find(graph, name) != NULL;
}

/* How deep a node's name lies: what a program gave a name of its own stands near the top. */
static int depth_of(tw_output output)
{
    int depth = 0;
    for (const char *name = tw_node_name(output.node); (name = strchr(name, '/')); name++)
        depth++;
    return depth;
}

static int compare_depths(const void *a, const void *b)
{
    const tw_output *left = a, *right = b;
    int order = depth_of(*left) - depth_of(*right);
    return order ? order : tw_node_number(left->node) - tw_node_number(right->node);
}

/* Whether the path begins with a part that is called so: "gradients", or as the n-th of that name "gradients_n". */
static bool begins_with(const char *path, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(path, word, length) != 0)
        return false;
    const char *rest = path + length;
    if (*rest == '_')
        rest += 1 + strspn(rest + 1, "0123456789");
    return !*rest || *rest == '/';
}

/* Whether a scope or the node itself is called so. */
static bool is_within(const char *name, const char *word)
{
    bool within = begins_with(name, word);
    for (const char *slash = strchr(name, '/'); slash && !within; slash = strchr(slash + 1, '/'))
        within = begins_with(slash + 1, word);
    return within;
}

/* What is left over where TensorFlow builds gradients, loops and conditions, or lies in the scope of something to be
 * run, as an optimizer's numbers do. */
static bool is_left_over(const outline *o, tw_output output)
{
    static const char *const words[] = {"gradients", "NextIteration", "switch_t",       "switch_f",
                                        "pred_id",   "IsInitialized", "AssignMovingAvg"};
    const char *name = tw_node_name(output.node);
    bool left = false;
    for (size_t i = 0; i < sizeof words / sizeof *words && !left; i++)
        left = is_within(name, words[i]);
    for (int i = 0; i < o->num_targets && !left; i++) {
        size_t length = strlen(tw_node_name(o->targets[i].node));
        left = strncmp(name, tw_node_name(o->targets[i].node), length) == 0 && name[length] == '/';
    }
    return left;
}

/* What the program wants to give before what is left over, of each the upper ones first. */
static bool sort_outputs(outline *o)
{
    tw_output *sorted = calloc((size_t)o->num_outputs + 1, sizeof *sorted);
    int given = 0, left = o->num_outputs;
    if (!sorted)
        return false;
    for (int i = 0; i < o->num_outputs; i++)
        sorted[is_left_over(o, o->outputs[i]) ? --left : given++] = o->outputs[i];
    qsort(sorted, (size_t)given, sizeof *sorted, compare_depths);
    qsort(sorted + given, (size_t)(o->num_outputs - given), sizeof *sorted, compare_depths);
    free(o->outputs);
    o->outputs = sorted;
    o->num_given = given;
    return true;
}

bool outline_make(const tw_graph *graph, outline *o)
{
    size_t count = (size_t)tw_graph_num_nodes(graph);
    bool *used = calloc(count + 1, sizeof *used);
    *o = (outline){.inputs = calloc(count + 1, sizeof *o->inputs),
                   .outputs = calloc(count + 1, sizeof *o->outputs),
                   .targets = calloc(count + 1, sizeof *o->targets)};
    bool fits = used && o->inputs && o->outputs && o->targets;
    if (fits)
        mark_used(graph, used);
    for (int i = 0; fits && i < (int)count; i++) {
        tw_node *node = tw_graph_node(graph, i);
        tw_output output = tw_node_output(node, 0);
        if (is_of_function(graph, node))
            continue;
        if (tw_node_is_placeholder(node) || (tw_node_may_be_fed(node) && tw_output_dtype(output) != TW_STRING))
            o->inputs[o->num_inputs++] = output;
        else if (!used[i] && output.index < 0)
            o->targets[o->num_targets++] = output;
        else if (!used[i] && tw_output_dtype(output) != TW_RESOURCE)
            o->outputs[o->num_outputs++] = output;
    }
    free(used);
    fits = fits && sort_outputs(o);
    if (fits) {
        qsort(o->targets, (size_t)o->num_targets, sizeof *o->targets, compare_depths);
    } else {
        outline_free(o);
    }
    return fits;
}

void outline_free(outline *o)
{
    free(o->inputs);
    free(o->outputs);
    free(o->targets);
    *o = (outline){0};
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

const char *output_text(tw_output output, char *text, size_t size)
{
    snprintf(text, size, output.index > 0 ? "%s:%d" : "%s", tw_node_name(output.node), output.index);
    return text;
}

const char *type_text(tw_output output, char *text, size_t size)
{
    char shape[128];
    if (output.index < 0)
        snprintf(text, size, "of an op that is not known");
    else
        snprintf(text, size, "%s %s", tw_dtype_name(tw_output_dtype(output)),
                 tw_shape_text(tw_output_shape(output), shape, sizeof shape));
    return text;
}

static void print_value(FILE *file, const char *indent, const char *name, tw_output output)
{
    char type[160];
    fprintf(file, "%s%-30s %s%s\n", indent, name, type_text(output, type, sizeof type),
            output.index >= 0 && tw_node_may_be_fed(output.node) ? ", has a value" : "");
}

/* The first ones, up to `shown`. */
static void print_list(FILE *file, const char *heading, const tw_output *list, int count, int shown)
{
    char name[512];
    if (count)
        fprintf(file, "%s\n", heading);
    for (int i = 0; i < count && i < shown; i++)
        if (list[i].index < 0)
            fprintf(file, "  %s\n", tw_node_name(list[i].node));
        else
            print_value(file, "  ", output_text(list[i], name, sizeof name), list[i]);
    if (count > shown)
        fprintf(file, "  and %d more\n", count - shown);
}

static void print_values(FILE *file, const char *heading, const tw_signature_value *values, int count)
{
    char text[512], name[600];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s (%s)", values[i].name, output_text(values[i].output, text, sizeof text));
        print_value(file, heading, name, values[i].output);
    }
}

void outline_print(FILE *file, const outline *o, const tw_graph_about *about, int most)
{
    for (int i = 0; i < about->num_signatures; i++) {
        const tw_signature *s = &about->signatures[i];
        fprintf(file, "signature %s%s%s\n", s->name, *s->method ? ", " : "", s->method);
        print_values(file, "  takes ", s->inputs, s->num_inputs);
        print_values(file, "  gives ", s->outputs, s->num_outputs);
    }
    print_list(file, "inputs", o->inputs, o->num_inputs, most);
    int shown = most == INT_MAX || o->num_given > most ? most : o->num_given;
    print_list(file, "outputs that nobody takes", o->outputs, o->num_outputs, shown);
    print_list(file, "what can be run and gives nothing", o->targets, o->num_targets, most);
}

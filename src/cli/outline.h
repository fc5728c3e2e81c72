/* outline.h - what a graph offers to who does not know it: what it wants to be fed, what it gives, what can be run. */
#ifndef CLI_OUTLINE_H
#define CLI_OUTLINE_H

#include <stdio.h>
#include <tower/io.h>

/* Inputs are in the graph's order, outputs and targets by how deep in scopes their names are, outputs that are left
 * over from gradients, loops and optimizers behind the others. */
typedef struct outline {
    tw_output *inputs;  /* placeholders, and those that have a value if they are not fed, but for texts: a Saver's path */
    tw_output *outputs; /* what nobody takes, other than constants and what variables are made of */
    tw_output *targets; /* what gives nothing and nobody waits for: initializers, training */
    int num_inputs, num_outputs, num_targets;
    int num_given; /* outputs that are not left over */
} outline;

/* False when memory runs out. */
bool outline_make(const tw_graph *graph, outline *outline);
void outline_free(outline *outline);

/* "loss", or "split:1". */
const char *output_text(tw_output output, char *text, size_t size);
/* "float [?,28,28,1]" */
const char *type_text(tw_output output, char *text, size_t size);

/* Lines for signatures, inputs, outputs and what can be run, at most so many of each (INT_MAX: all; else without
 * outputs that are left over). */
void outline_print(FILE *file, const outline *outline, const tw_graph_about *about, int most);

#endif

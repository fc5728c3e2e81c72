/* scores.h - what an evaluation found, for people, for programs and for TensorBoard. */
#ifndef CLI_SCORES_H
#define CLI_SCORES_H

#include "json.h"

#include <tower/data.h>
#include <tower/io.h>
#include <tower/models.h>

double scores_top_1(const tw_scores *scores);
double scores_top_5(const tw_scores *scores);
/* Of the examples of a class, the part that was taken for it; a NaN where there is none. */
double scores_of_class(const tw_scores *scores, int class);

/* "cat", which is the data set's, or "class 3" in `text`, where names are not known. */
const char *scores_class_name(const tw_dataset *dataset, int class, char *text, size_t size);

/* A line for each class that the data set has; all classes by all, if there are few enough. */
void scores_print_classes(const tw_scores *scores, const tw_dataset *dataset);
void scores_print_confusion(const tw_scores *scores, const tw_dataset *dataset);

/* Members of an object: step, accuracy, top_5, loss, examples, correct, classes; with `confusion` the matrix. */
void scores_json(json *out, const tw_scores *scores, const tw_dataset *dataset, bool confusion);

/* The curves "eval/accuracy", "eval/top_5", "eval/loss" and one for each class. */
tw_status scores_write(tw_event_writer *events, const tw_scores *scores, const tw_dataset *dataset, tw_error *error);

#endif

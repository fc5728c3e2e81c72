/* scores.c - see scores.h. */
#include "scores.h"

#include "cell.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_WIDTH = 16, MOST_COLUMNS = 16, MOST_CURVES = 32 };

static int64_t count_of(const tw_scores *s, int class)
{
    int64_t count = 0;
    for (int k = 0; k < s->classes; k++)
        count += s->confusion[(int64_t) class * s->classes + k];
    return count;
}

static int64_t hits_of(const tw_scores *s, int class)
{
    return s->confusion[(int64_t) class * s->classes + class];
}

double scores_top_1(const tw_scores *s)
{
    return s->examples ? (double)s->correct / (double)s->examples : 0;
}

double scores_top_5(const tw_scores *s)
{
    return s->examples ? (double)s->correct_5 / (double)s->examples : 0;
}

double scores_of_class(const tw_scores *s, int class)
{
    int64_t count = count_of(s, class);
    return count ? (double)hits_of(s, class) / (double)count : NAN;
}

const char *scores_class_name(const tw_dataset *dataset, int class, char *text, size_t size)
{
    const char *name = dataset && class < tw_dataset_classes(dataset) ? tw_dataset_class_name(dataset, class) : "";
    if (*name)
        return name;
    snprintf(text, size, "class %d", class);
    return text;
}

/* The class that examples of `class` are taken for most often when they are not taken for it; -1: none are. */
static int rival_of(const tw_scores *s, int class)
{
    int best = -1;
    const int64_t *row = s->confusion + (int64_t) class * s->classes;
    for (int k = 0; k < s->classes; k++)
        if (k != class && row[k] > 0 && (best < 0 || row[k] > row[best]))
            best = k;
    return best;
}

void scores_print_classes(const tw_scores *s, const tw_dataset *dataset)
{
    char name[64];
    printf("  %-*s %8s %8s  %s\n", NAME_WIDTH, "class", "examples", "right", "taken most often for");
    for (int c = 0; c < s->classes; c++) {
        int64_t count = count_of(s, c);
        int rival = rival_of(s, c);
        if (!count)
            continue;
        printf("  ");
        print_cell(scores_class_name(dataset, c, name, sizeof name), NAME_WIDTH, INT_MAX, false);
        printf(" %8" PRId64 " %7.1f%%", count, 100 * scores_of_class(s, c));
        if (rival >= 0) {
            printf("  ");
            print_cell(scores_class_name(dataset, rival, name, sizeof name), 0, INT_MAX, false);
            printf(" (%" PRId64 ")", s->confusion[(int64_t)c * s->classes + rival]);
        }
        printf("\n");
    }
}

void scores_print_confusion(const tw_scores *s, const tw_dataset *dataset)
{
    char name[64];
    if (s->classes > MOST_COLUMNS) {
        printf("  the confusion matrix of %d classes is too wide to be printed; --format json has it\n", s->classes);
        return;
    }
    printf("  %-*s", NAME_WIDTH, "label \\ taken for");
    for (int k = 0; k < s->classes; k++) {
        printf(" ");
        print_cell(scores_class_name(dataset, k, name, sizeof name), 6, 6, true);
    }
    printf("\n");
    for (int c = 0; c < s->classes; c++) {
        printf("  ");
        print_cell(scores_class_name(dataset, c, name, sizeof name), NAME_WIDTH, NAME_WIDTH, false);
        for (int k = 0; k < s->classes; k++)
            printf(" %6" PRId64, s->confusion[(int64_t)c * s->classes + k]);
        printf("\n");
    }
}

void scores_json(json *out, const tw_scores *s, const tw_dataset *dataset, bool confusion)
{
    char name[64];
    json_integer(out, "step", s->step);
    json_number(out, "precision_at_1", scores_top_1(s));
    json_number(out, "top_5", scores_top_5(s));
    json_number(out, "loss", s->loss);
    json_integer(out, "examples", s->examples);
    json_integer(out, "correct", s->correct);
    json_flag(out, "moving_averages", s->used_averages);
    json_integer(out, "views", s->views);
    json_begin(out, "classes", '[');
    for (int c = 0; c < s->classes; c++) {
        json_begin(out, NULL, '{');
        json_text(out, "name", scores_class_name(dataset, c, name, sizeof name));
        json_integer(out, "examples", count_of(s, c));
        json_integer(out, "correct", hits_of(s, c));
        json_end(out);
    }
    json_end(out);
    if (!confusion)
        return;
    json_begin(out, "confusion", '[');
    for (int c = 0; c < s->classes; c++) {
        json_begin(out, NULL, '[');
        for (int k = 0; k < s->classes; k++)
            json_integer(out, NULL, s->confusion[(int64_t)c * s->classes + k]);
        json_end(out);
    }
    json_end(out);
}

tw_status scores_write(tw_event_writer *events, const tw_scores *s, const tw_dataset *dataset, tw_error *error)
{
    char name[64], tag[512];
    tw_status status = tw_event_writer_add_scalar(events, "eval/accuracy", s->step, (float)scores_top_1(s), error);
    if (status == TW_OK && s->classes > 5)
        status = tw_event_writer_add_scalar(events, "eval/top_5", s->step, (float)scores_top_5(s), error);
    if (status == TW_OK)
        status = tw_event_writer_add_scalar(events, "eval/loss", s->step, (float)s->loss, error);
    for (int c = 0; c < s->classes && s->classes <= MOST_CURVES && status == TW_OK; c++) {
        if (!count_of(s, c))
            continue;
        snprintf(tag, sizeof tag, "eval/classes/%s", scores_class_name(dataset, c, name, sizeof name));
        status = tw_event_writer_add_scalar(events, tag, s->step, (float)scores_of_class(s, c), error);
    }
    return status == TW_OK ? tw_event_writer_flush(events, error) : status;
}

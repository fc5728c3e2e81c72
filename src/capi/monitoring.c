/* monitoring.c - counters, gauges and samplers that programs keep of themselves: a metric has a cell for each set of
 * labels, and a cell one value. Nobody here collects them: who made them reads them.
 * Never here:  what the library measures of itself (tower/status.h, tower/session.h). */
#include <tensorflow/c/eager/c_api_experimental.h>

#include "capi.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LABELS = 4 };

typedef struct cell {
    char *labels[MOST_LABELS];
    int64_t number; /* of counters and gauges of numbers */
    char *text;     /* NULL: none has been set */
    double least, greatest, count, sum, squares;
    const double *limits; /* [num_limits] of the sampler's buckets, */
    double *buckets;      /* and how many values lie below each, and not below the one before it */
    int num_limits;
    struct cell *next;
} cell;

struct TFE_MonitoringBuckets {
    int num_limits;
    double limits[]; /* ascending; the last is above all */
};

typedef struct metric {
    int num_labels;
    TFE_MonitoringBuckets *buckets; /* of samplers: a copy */
    cell *cells;
} metric;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all of them: they are seldom touched */

/* ---- metrics ---------------------------------------------------------------------------------------------------- */

static TFE_MonitoringBuckets *new_buckets(int num_limits)
{
    TFE_MonitoringBuckets *buckets = calloc(1, sizeof *buckets + sizeof(double) * (size_t)num_limits);
    if (buckets)
        buckets->num_limits = num_limits;
    return buckets;
}

/* bucket_count limits that grow, and one above all. */
TFE_MonitoringBuckets *TFE_MonitoringNewExponentialBuckets(double scale, double growth_factor, int bucket_count)
{
    TFE_MonitoringBuckets *buckets = new_buckets((bucket_count > 0 ? bucket_count : 0) + 1);
    for (int i = 0; buckets && i < bucket_count; i++, scale *= growth_factor)
        buckets->limits[i] = scale;
    if (buckets)
        buckets->limits[buckets->num_limits - 1] = DBL_MAX;
    return buckets;
}

void TFE_MonitoringDeleteBuckets(TFE_MonitoringBuckets *buckets)
{
    free(buckets);
}

static void free_cell(cell *c)
{
    for (int i = 0; i < MOST_LABELS; i++)
        free(c->labels[i]);
    free(c->text);
    free(c->buckets);
    free(c);
}

static void delete_metric(metric *m)
{
    for (cell *c = m ? m->cells : NULL, *next; c; c = next) {
        next = c->next;
        free_cell(c);
    }
    if (m)
        free(m->buckets);
    free(m);
}

static metric *new_metric(int num_labels, const TFE_MonitoringBuckets *buckets, TF_Status *status)
{
    metric *made = calloc(1, sizeof *made);
    TFE_MonitoringBuckets *copy = made && buckets ? new_buckets(buckets->num_limits) : NULL;
    TF_SetStatus(status, TF_OK, "");
    if (!made || (buckets && !copy)) {
        set_no_memory(status);
        free(made);
        return NULL;
    }
    if (copy)
        memcpy(copy->limits, buckets->limits, sizeof(double) * (size_t)buckets->num_limits);
    *made = (metric){.num_labels = num_labels, .buckets = copy};
    return made;
}

static cell *new_cell(metric *m, const char *const *labels)
{
    cell *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    *made = (cell){.least = DBL_MAX, .greatest = -DBL_MAX};
    if (m->buckets) {
        made->limits = m->buckets->limits;
        made->num_limits = m->buckets->num_limits;
        made->buckets = calloc((size_t)made->num_limits, sizeof(double));
    }
    bool failed = m->buckets && !made->buckets;
    for (int i = 0; i < m->num_labels; i++)
        failed |= !(made->labels[i] = strdup(labels[i]));
    if (!failed)
        return made;
    free_cell(made);
    return NULL;
}

/* The cell of these labels, the same each time. NULL: memory ran out. */
static cell *get_cell(metric *m, const char *const *labels)
{
    pthread_mutex_lock(&lock);
    cell *c = m->cells;
    for (bool same = false; c && !same; c = same ? c : c->next) {
        same = true;
        for (int i = 0; i < m->num_labels; i++)
            same &= strcmp(c->labels[i], labels[i]) == 0;
    }
    if (!c && (c = new_cell(m, labels))) {
        c->next = m->cells;
        m->cells = c;
    }
    pthread_mutex_unlock(&lock);
    return c;
}

/* ---- cells ------------------------------------------------------------------------------------------------------ */

static void put(cell *c, int64_t value, bool is_more)
{
    pthread_mutex_lock(&lock);
    c->number = (int64_t)((is_more ? (uint64_t)c->number : 0) + (uint64_t)value);
    pthread_mutex_unlock(&lock);
}

static int64_t get(cell *c)
{
    pthread_mutex_lock(&lock);
    int64_t number = c->number;
    pthread_mutex_unlock(&lock);
    return number;
}

void TFE_MonitoringCounterCellIncrementBy(TFE_MonitoringCounterCell *of, int64_t value)
{
    put((cell *)of, value, true);
}

int64_t TFE_MonitoringCounterCellValue(TFE_MonitoringCounterCell *of)
{
    return get((cell *)of);
}

void TFE_MonitoringIntGaugeCellSet(TFE_MonitoringIntGaugeCell *of, int64_t value)
{
    put((cell *)of, value, false);
}

int64_t TFE_MonitoringIntGaugeCellValue(TFE_MonitoringIntGaugeCell *of)
{
    return get((cell *)of);
}

void TFE_MonitoringBoolGaugeCellSet(TFE_MonitoringBoolGaugeCell *of, bool value)
{
    put((cell *)of, value, false);
}

bool TFE_MonitoringBoolGaugeCellValue(TFE_MonitoringBoolGaugeCell *of)
{
    return get((cell *)of) != 0;
}

/* A buffer that cannot be filled stays empty: nobody has a status. */
static void fill(TF_Buffer *buffer, wire *bytes)
{
    TF_Status status = {0};
    fill_buffer(buffer, bytes, &status);
    free(status.message);
}

void TFE_MonitoringStringGaugeCellSet(TFE_MonitoringStringGaugeCell *of, const char *value)
{
    char *copy = strdup(value), *before = NULL;
    pthread_mutex_lock(&lock);
    if (copy) {
        before = ((cell *)of)->text;
        ((cell *)of)->text = copy;
    }
    pthread_mutex_unlock(&lock);
    free(before);
}

void TFE_MonitoringStringGaugeCellValue(TFE_MonitoringStringGaugeCell *of, TF_Buffer *buf)
{
    wire bytes = {0};
    pthread_mutex_lock(&lock);
    const char *text = ((cell *)of)->text;
    wire_append(&bytes, text ? text : "", text ? strlen(text) : 0);
    pthread_mutex_unlock(&lock);
    fill(buf, &bytes);
}

void TFE_MonitoringSamplerCellAdd(TFE_MonitoringSamplerCell *of, double value)
{
    cell *c = (cell *)of;
    int i = 0;
    pthread_mutex_lock(&lock);
    const double *limits = c->limits;
    while (i < c->num_limits - 1 && !(value < limits[i]))
        i++;
    c->buckets[i]++;
    c->least = fmin(c->least, value);
    c->greatest = fmax(c->greatest, value);
    c->count++;
    c->sum += value;
    c->squares += value * value;
    pthread_mutex_unlock(&lock);
}

/* A HistogramProto. */
void TFE_MonitoringSamplerCellValue(TFE_MonitoringSamplerCell *of, TF_Buffer *buf)
{
    enum { MIN = 1, MAX = 2, NUM = 3, SUM = 4, SUM_SQUARES = 5, BUCKET_LIMIT = 6, BUCKET = 7 };
    cell *c = (cell *)of;
    wire bytes = {0};
    pthread_mutex_lock(&lock);
    wire_double(&bytes, MIN, c->least);
    wire_double(&bytes, MAX, c->greatest);
    wire_double(&bytes, NUM, c->count);
    wire_double(&bytes, SUM, c->sum);
    wire_double(&bytes, SUM_SQUARES, c->squares);
    wire_bytes(&bytes, BUCKET_LIMIT, c->limits, sizeof(double) * (size_t)c->num_limits);
    wire_bytes(&bytes, BUCKET, c->buckets, sizeof(double) * (size_t)c->num_limits);
    pthread_mutex_unlock(&lock);
    fill(buf, &bytes);
}

/* ---- the functions of each kind and number of labels ------------------------------------------------------------ */

#define NAMES_0 ""
#define NAMES_1 label1
#define NAMES_2 NAMES_1, label2
#define NAMES_3 NAMES_2, label3
#define NAMES_4 NAMES_3, label4

#define LABELS(n) TFE_METRIC_LABELS_##n
#define CELLS(kind, n)                                                                                        \
    void TFE_MonitoringDelete##kind##n(TFE_Monitoring##kind##n *of)                                           \
    {                                                                                                         \
        delete_metric((metric *)of);                                                                          \
    }                                                                                                         \
    TFE_Monitoring##kind##Cell *TFE_MonitoringGetCell##kind##n(TFE_Monitoring##kind##n *of LABELS(n))         \
    {                                                                                                         \
        return (TFE_Monitoring##kind##Cell *)get_cell((metric *)of, (const char *const[]){NAMES_##n});        \
    }
/* Metrics' names and what labels are called tell people what they see, where somebody shows them. */
#define METRIC(kind, n)                                                                                       \
    TFE_Monitoring##kind##n *TFE_MonitoringNew##kind##n(const char *name, TF_Status *status,                  \
                                                        const char *description LABELS(n))                    \
    {                                                                                                         \
        (void)(const char *[]){name, description, NAMES_##n};                                                 \
        return (TFE_Monitoring##kind##n *)new_metric(n, NULL, status);                                        \
    }                                                                                                         \
    CELLS(kind, n)
#define SAMPLER(n)                                                                                            \
    TFE_MonitoringSampler##n *TFE_MonitoringNewSampler##n(const char *name, TFE_MonitoringBuckets *buckets,   \
                                                          TF_Status *status,                                  \
                                                          const char *description LABELS(n))                  \
    {                                                                                                         \
        (void)(const char *[]){name, description, NAMES_##n};                                                 \
        return (TFE_MonitoringSampler##n *)new_metric(n, buckets, status);                                    \
    }                                                                                                         \
    CELLS(Sampler, n)

METRIC(Counter, 0)
METRIC(Counter, 1)
METRIC(Counter, 2)
METRIC(IntGauge, 0)
METRIC(IntGauge, 1)
METRIC(IntGauge, 2)
METRIC(BoolGauge, 0)
METRIC(BoolGauge, 1)
METRIC(BoolGauge, 2)
METRIC(StringGauge, 0)
METRIC(StringGauge, 1)
METRIC(StringGauge, 2)
METRIC(StringGauge, 3)
METRIC(StringGauge, 4)
SAMPLER(0)
SAMPLER(1)
SAMPLER(2)

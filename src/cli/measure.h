/* measure.h - times steps: warm-up, then so many that count; and where their time went. */
#ifndef CLI_MEASURE_H
#define CLI_MEASURE_H

#include "pace.h"
#include "workload.h"

/* A delay to be put into every step, so that one can see where it shows up. */
typedef struct injection {
    tw_time_kind kind; /* TW_TIME_KINDS: none */
    int tower;         /* -1: of compute, all towers */
    double seconds;
} injection;

typedef struct measurement {
    int64_t examples;   /* of a step */
    int steps;          /* that count so far */
    double *times;      /* [steps] seconds of each; of those in a row, their mean */
    double wall;        /* from the end of warm-up to the end of the last step */
    workload_result last; /* step */
    bool taken_apart;   /* parts are known: the session was traced */
    tw_waterfall parts; /* added up over the steps that count; launch has what the program itself took */
    double most_imbalance; /* of a step: parts.slowest is its */
} measurement;

typedef struct measure_options {
    int warm_up, steps;
    injection injection;
    const char *trace;  /* the step before the last of warm-up is written there, as in tf_cnn_benchmarks; NULL: none */
    bool take_apart;    /* the session is traced */
    int display_every;  /* no row of steps goes beyond a multiple of it; 0: wherever it ends */
    pace pace;
    /* Told about the beginning of warm-up, its end, and each row of steps that count, of which the first is a row by
     * itself; NULL: nobody. */
    void (*warming_up)(void *user);
    void (*warm)(void *user);
    void (*stepped)(void *user, const measurement *so_far);
    void *user;
} measure_options;

/* result->times is to be freed, whatever is returned. */
tw_status measure(workload *w, const measure_options *options, measurement *result, tw_error *error);

/* Examples a second by the steps so far: their mean (or exponentially weighted by `alpha` if that is above 0), its
 * standard error, and 1.4826 times the median distance from the median. */
typedef struct speed {
    double mean, uncertainty, jitter;
} speed;

speed measured_speed(const measurement *m, double alpha);

#endif

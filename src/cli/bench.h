/* bench.h - what the files of `tower bench` share:
 *
 *     bench.c           the options, and what follows from them
 *     bench_rule.c      how gradients become updates
 *     bench_flags.c     flags of tf_cnn_benchmarks that there is no use for here, and why
 *     bench_protocol.c  what one measurement prints: the text that tf_cnn_benchmarks' readers know
 *     bench_table.c     --all: modes by numbers of devices
 *     measure.c, workload.c   taking the time, and of what */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "command.h"
#include "measure.h"

enum { BENCH_MOST_DEVICES = 256 };

/* How variables are updated, as one names it: "replicated". */
typedef struct bench_mode {
    const char *name;
    tw_variable_options variables;
    const char *all_reduce; /* NULL: what the options say */
    int groups;             /* of local, ... */
    int64_t meet_every;     /* ... and steps until they meet; 0: as usual */
} bench_mode;

/* What is measured, all of it settled. */
typedef struct bench {
    tw_model model;
    const char *data_name; /* "imagenet" */
    bool synthetic;        /* made up, one batch for all steps */
    int64_t data_examples; /* of an epoch */
    const char *optimizer;
    const char *names[BENCH_MOST_DEVICES]; /* "/gpu:0": where towers may go */
    char texts[BENCH_MOST_DEVICES][64];
    int num_devices;       /* of all tasks together */
    int tasks;
    bool on_gpus;
    bench_mode mode;       /* as asked */
    workload_options workload;
    measure_options measure;
    int64_t display_every;
    double ewma;           /* 0: plain means */
    bool strong_scaling;   /* of the table: the whole batch stays the same, not that of a tower */
    const char *log_dir, *test_id, *graph_file, *train_dir; /* NULL: none */
    int keep;              /* checkpoints in train_dir */
    bool as_json;
    bool waterfall;        /* say where the time went */
} bench;

extern const refusal bench_refusals[];

/* One measurement in the words of tf_cnn_benchmarks, or as JSON. Returns the exit code. */
int bench_one(const bench *b);
/* A table of modes by numbers of devices. */
int bench_all(const bench *b);

/* `b` with so many devices and that mode, opened; complains and returns NULL on failure. *options is borrowed by it. */
workload *bench_open(const bench *b, const bench_mode *mode, int devices, workload_options *options);

/* "78.1" of the whole, for the parts of a measurement. */
double bench_percent(const measurement *m, tw_time_kind kind);

#endif

/* bench_protocol.c - what one measurement prints. The text is that of tf_cnn_benchmarks, to the letter, so that
 * programs that read its output read this one's; what there is to say beyond it comes after it, and only when asked
 * for. */
#include "bench.h"

#include "job.h"
#include "json.h"
#include "whole_file.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tower/io.h>

static const char line[] = "----------------------------------------------------------------"; /* 64 */

/* ---- before ------------------------------------------------------------------------------------------------ */

static void print_info(const bench *b, const workload *w)
{
    int64_t examples = workload_examples(w);
    printf("Model:       %s\n", b->model.name);
    printf("Dataset:     %s%s\n", b->data_name, b->synthetic ? " (synthetic)" : "");
    printf("Mode:        %s\n", b->workload.forward_only ? "forward only" : "training");
    printf("SingleSess:  False\n");
    printf("Batch size:  %" PRId64 " global\n", examples);
    printf("             %" PRId64 " per device\n", examples / workload_towers(w));
    printf("Num batches: %d\n", b->measure.steps);
    printf("Num epochs:  %.2f\n", (double)b->measure.steps * (double)examples / (double)b->data_examples);
    printf("Devices:     [");
    for (int i = 0; i < b->num_devices; i++)
        printf("%s'%s'", i ? ", " : "", b->names[i]);
    printf("]\n");
    job_print_cards(b->workload.trainer.devices, "             ");
    printf("NUMA bind:   False\n");
    printf("Data format: NHWC\n");
    printf("Optimizer:   %s\n", b->optimizer);
    printf("Variables:   %s\n", b->mode.name);
    if (b->mode.variables.update == TW_UPDATE_REPLICATED)
        printf("AllReduce:   %s\n",
               b->workload.trainer.average.all_reduce ? b->workload.trainer.average.all_reduce : "None");
    if (b->mode.variables.staged)
        printf("Staged vars: True\n");
    printf("==========\n");
}

/* ---- files of --benchmark_log_dir -------------------------------------------------------------------------- */

/* One measurement, and whether a log of it was lost, which fails it: who asked for a log reads it. */
typedef struct protocol {
    const bench *b;
    bool lost;
} protocol;

static void text_of_time(char text[40])
{
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(text, 40, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* What is to be a line of a log; NULL: nobody wants one. */
static FILE *begin_line(protocol *p, char **line, size_t *size)
{
    *line = NULL;
    FILE *file = p->b->log_dir ? open_memstream(line, size) : NULL;
    if (p->b->log_dir && !file)
        p->lost = !complain("bench", "--benchmark_log_dir: %s", strerror(errno));
    return file;
}

/* Closes it. */
static void write_line(protocol *p, FILE *file, const char *name, bool append, char **line, size_t *size)
{
    char path[PATH_MAX];
    bool good = fclose(file) == 0;
    if (snprintf(path, sizeof path, "%s/%s", p->b->log_dir, name) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        good = false;
    }
    good = good && (append ? whole_line_append(path, *line, *size) : whole_file_write(path, *line, *size));
    if (!good)
        p->lost = !complain("bench", "--benchmark_log_dir: cannot write '%s': %s", path, strerror(errno));
    free(*line);
}

/* A line of metric.log, as TensorFlow's benchmark logger writes them. */
static void log_metric(protocol *p, const char *name, double value, int step)
{
    char now[40], *line;
    size_t size;
    FILE *file = begin_line(p, &line, &size);
    if (!file)
        return;
    text_of_time(now);
    json out = {.file = file};
    json_begin(&out, NULL, '{');
    json_text(&out, "name", name);
    json_number(&out, "value", value);
    json_text(&out, "unit", NULL);
    json_integer(&out, "global_step", step);
    json_text(&out, "timestamp", now);
    json_begin(&out, "extras", '[');
    json_end(&out);
    json_end(&out);
    write_line(p, file, "metric.log", true, &line, &size);
}

static void log_run(protocol *p, const workload *w)
{
    const bench *b = p->b;
    char now[40], *line;
    size_t size;
    FILE *file = begin_line(p, &line, &size);
    if (!file)
        return;
    text_of_time(now);
    json out = {.file = file};
    json_begin(&out, NULL, '{');
    json_text(&out, "model_name", b->model.name);
    json_begin(&out, "dataset", '{');
    json_text(&out, "name", b->data_name);
    json_end(&out);
    json_text(&out, "test_id", b->test_id);
    json_text(&out, "run_date", now);
    json_text(&out, "tower_version", tw_version());
    json_integer(&out, "batch_size", workload_examples(w));
    json_integer(&out, "num_gpus", b->num_devices);
    json_text(&out, "variable_update", b->mode.name);
    json_end(&out);
    write_line(p, file, "benchmark_run.log", false, &line, &size);
}

/* ---- during ------------------------------------------------------------------------------------------------ */

static void warming_up(void *user)
{
    (void)user;
    puts("Running warm up");
}

static void warm(void *user)
{
    const bench *b = ((const protocol *)user)->b;
    puts("Done warm up");
    printf("Step\tImg/sec\ttotal_loss%s\n", b->workload.trainer.accuracy ? "\ttop_1_accuracy\ttop_5_accuracy" : "");
}

static void print_step(const bench *b, const measurement *m, speed s)
{
    printf("%i\timages/sec: %.1f +/- %.1f (jitter = %.1f)\t%.3f", m->steps, s.mean, s.uncertainty, s.jitter,
           (double)m->last.loss);
    if (b->workload.trainer.accuracy)
        printf("\t%.3f\t%.3f", (double)m->last.top_1, (double)m->last.top_5);
    putchar('\n');
}

static void stepped(void *user, const measurement *m)
{
    protocol *p = user;
    const bench *b = p->b;
    if (m->steps != 1 && m->steps % b->display_every != 0)
        return;
    speed s = measured_speed(m, b->ewma);
    if (!b->as_json)
        print_step(b, m, s);
    log_metric(p, "current_examples_per_sec", s.mean, m->steps);
    log_metric(p, "total_loss", (double)m->last.loss, m->steps);
}

/* ---- after ------------------------------------------------------------------------------------------------- */

double bench_percent(const measurement *m, tw_time_kind kind)
{
    return m->parts.total > 0 ? 100 * m->parts.seconds[kind] / m->parts.total : 0;
}

/* Which device is slow, and what of a part costs nothing. */
static void print_detail(const bench *b, const measurement *m, int kind)
{
    double hidden = 1e3 * m->parts.hidden / m->steps;
    if (kind == TW_TIME_IMBALANCE && m->parts.slowest >= 0)
        printf(": %s", b->names[m->parts.slowest]);
    if (kind == TW_TIME_REDUCTION && hidden >= 0.005) /* as it is printed */
        printf("; %.2f ms of all devices are hidden", hidden);
}

static void print_waterfall(const bench *b, const measurement *m)
{
    static const char *const meanings[TW_TIME_KINDS] = { /* ORDER TIME */
        "kernels of the least loaded device, and the update",
        "what the slowest device computes longer",
        "gradients coming together, where nothing hides it",
        "other copies between devices",
        "waiting for a batch, and taking it",
        "all else: waking threads, handing work over"};
    printf("where a step's time goes:\n");
    for (int k = 0; k < TW_TIME_KINDS; k++) {
        printf("  %-10s %8.2f ms  %5.1f %%  %s", tw_time_kind_name((tw_time_kind)k),
               1e3 * m->parts.seconds[k] / m->steps, bench_percent(m, (tw_time_kind)k), meanings[k]);
        print_detail(b, m, k);
        printf("\n");
    }
    printf("  %-10s %8.2f ms  %5.1f %%\n", "step", 1e3 * m->parts.total / m->steps, 100.0);
}

static void print_json(const bench *b, const workload *w, const measurement *m)
{
    speed s = measured_speed(m, b->ewma);
    json out = {.file = stdout};
    json_begin(&out, NULL, '{');
    json_text(&out, "model", b->model.name);
    json_text(&out, "data_set", b->data_name);
    json_flag(&out, "synthetic", b->synthetic);
    json_flag(&out, "forward_only", b->workload.forward_only);
    json_begin(&out, "devices", '[');
    for (int i = 0; i < workload_towers(w); i++)
        json_text(&out, NULL, workload_device(w, i));
    json_end(&out);
    json_text(&out, "variable_update", b->mode.name);
    json_text(&out, "all_reduce_spec", b->workload.trainer.average.all_reduce);
    json_integer(&out, "batch_size", m->examples);
    json_integer(&out, "num_workers", b->tasks);
    json_integer(&out, "num_steps", m->steps);
    json_number(&out, "average_wall_time", m->wall / m->steps);
    json_number(&out, "images_per_sec", (double)m->examples * m->steps / m->wall);
    json_number(&out, "uncertainty", s.uncertainty);
    json_number(&out, "jitter", s.jitter);
    json_real(&out, "last_average_loss", (double)m->last.loss, 9);
    if (b->workload.trainer.accuracy) {
        json_number(&out, "top_1_accuracy", (double)m->last.top_1);
        json_number(&out, "top_5_accuracy", (double)m->last.top_5);
    }
    if (m->taken_apart) {
        json_begin(&out, "step_seconds", '{');
        for (int k = 0; k < TW_TIME_KINDS; k++)
            json_number(&out, tw_time_kind_name((tw_time_kind)k), m->parts.seconds[k] / m->steps);
        json_end(&out);
        json_number(&out, "hidden_reduction_seconds", m->parts.hidden / m->steps);
        json_text(&out, "slowest_device", m->parts.slowest < 0 ? NULL : workload_device(w, m->parts.slowest));
    }
    json_end(&out);
}

/* The graph as TensorFlow's GraphDef, in bytes. */
static bool write_graph(const bench *b, workload *w)
{
    void *bytes = NULL;
    size_t size = 0;
    tw_error error = {0};
    if (!b->graph_file)
        return true;
    if (tw_graph_export(tw_session_graph(workload_session(w)), &bytes, &size, &error) != TW_OK) {
        failed("bench", &error);
        return false;
    }
    bool good = whole_file_write(b->graph_file, bytes, size) ||
                complain("bench", "--graph_file: cannot write '%s': %s", b->graph_file, strerror(errno));
    tw_free(bytes);
    return good;
}

int bench_one(const bench *b)
{
    workload_options options;
    workload *w = bench_open(b, &b->mode, b->num_devices, &options);
    if (!w)
        return EXIT_FAILED;
    if (!write_graph(b, w)) {
        workload_close(w);
        return EXIT_FAILED;
    }
    tw_error error = {0};
    measurement m;
    measure_options how = b->measure;
    protocol p = {.b = b};
    how.user = &p;
    how.stepped = stepped;
    if (!b->as_json) {
        how.warming_up = warming_up;
        how.warm = warm;
        print_info(b, w);
    }
    log_run(&p, w);
    tw_status status = measure(w, &how, &m, &error);
    if (status == TW_OK) {
        double rate = (double)m.examples * m.steps / m.wall;
        log_metric(&p, "average_examples_per_sec", rate, m.steps);
        if (b->as_json)
            print_json(b, w, &m);
        else
            printf("%s\ntotal images/sec: %.2f\n%s\n", line, rate, line);
        if (b->waterfall && !b->as_json)
            print_waterfall(b, &m);
        if (b->train_dir && workload_trainer(w))
            status = tw_trainer_save(workload_trainer(w), b->train_dir, b->keep, &error);
    }
    free(m.times);
    workload_close(w);
    return status != TW_OK ? failed("bench", &error) : p.lost ? EXIT_FAILED : EXIT_DONE;
}

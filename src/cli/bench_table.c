/* bench_table.c - `tower bench --all`: modes by numbers of devices, how far they scale, and where the rest went. */
#include "bench.h"

#include "job.h"
#include "json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The modes of the table. What needs GPUs to differ from its neighbour is left out without them. */
static const struct {
    bench_mode mode;
    bool needs_gpus;
} modes[] = {
    {{"parameter_server, cpu", {.update = TW_UPDATE_PARAMETER_SERVER, .parameter_device = TW_PARAMETERS_ON_CPU}, NULL}, false},
    {{"parameter_server, gpu", {.update = TW_UPDATE_PARAMETER_SERVER, .parameter_device = TW_PARAMETERS_ON_GPU}, NULL}, true},
    {{"parameter_server, staged", {.update = TW_UPDATE_PARAMETER_SERVER, .staged = true}, NULL}, false},
    {{"replicated, tree", {.update = TW_UPDATE_REPLICATED}, "tree"}, false},
    {{"replicated, ring", {.update = TW_UPDATE_REPLICATED}, "ring"}, false},
    {{"replicated, rechd", {.update = TW_UPDATE_REPLICATED}, "rechd"}, false},
    {{"replicated, pscpu", {.update = TW_UPDATE_REPLICATED}, "pscpu"}, false},
    {{"replicated, psgpu", {.update = TW_UPDATE_REPLICATED}, "psgpu"}, true},
    {{"replicated, relaxed", {.update = TW_UPDATE_REPLICATED, .consistency = TW_CONSISTENCY_RELAXED}, NULL}, false},
    {{"independent", {.update = TW_UPDATE_INDEPENDENT}, NULL}, false},
};

/* ---- text -------------------------------------------------------------------------------------------------- */

static void print_head(const bench *b)
{
    printf("%s on %s%s, %s; %s; %d steps after %d of warm-up\n", b->model.name, b->data_name,
           b->synthetic ? " (synthetic)" : "", b->on_gpus ? "GPUs" : "CPU devices",
           b->strong_scaling ? "strong scaling: the batch of a step stays the same, towers share it"
                             : "weak scaling: each device gets a batch of its own, so a step has more examples",
           b->measure.steps, b->measure.warm_up);
    job_print_cards(b->workload.trainer.devices, "");
    printf("\n%59s   where the time of a step goes, %%\n", "");
    printf("%-24s %7s %9s %8s %7s ", "variables", "devices", "images/s", "speed-up", "effic.");
    for (int k = 0; k < TW_TIME_KINDS; k++)
        printf(" %9s", tw_time_kind_name((tw_time_kind)k));
    putchar('\n');
}

/* What takes the largest share of the time besides computing. */
static tw_time_kind largest_loss(const measurement *m)
{
    tw_time_kind worst = TW_TIME_IMBALANCE;
    for (int k = TW_TIME_IMBALANCE; k < TW_TIME_KINDS; k++)
        if (m->parts.seconds[k] > m->parts.seconds[worst])
            worst = (tw_time_kind)k;
    return worst;
}

static void print_row(const char *mode, int devices, double rate, double base, const measurement *m)
{
    printf("%-24s %7d %9.1f %8.2f %5.0f %% ", mode, devices, rate, rate / base, 100 * rate / base / devices);
    for (int k = 0; k < TW_TIME_KINDS; k++)
        printf(" %9.1f", bench_percent(m, (tw_time_kind)k));
    putchar('\n');
    fflush(stdout);
}

/* ---- JSON -------------------------------------------------------------------------------------------------- */

static void begin_json(const bench *b, json *out)
{
    *out = (json){.file = stdout};
    json_begin(out, NULL, '{');
    json_text(out, "model", b->model.name);
    json_text(out, "data_set", b->data_name);
    json_flag(out, "synthetic", b->synthetic);
    json_text(out, "scaling", b->strong_scaling ? "strong" : "weak");
    json_integer(out, "num_steps", b->measure.steps);
    json_begin(out, "rows", '[');
}

static void row_json(json *out, const char *mode, int devices, double rate, double base, const measurement *m)
{
    json_begin(out, NULL, '{');
    json_text(out, "variables", mode);
    json_integer(out, "devices", devices);
    json_integer(out, "batch_size", m->examples);
    json_number(out, "images_per_sec", rate);
    json_number(out, "speed_up", rate / base);
    json_number(out, "efficiency", rate / base / devices);
    json_number(out, "step_seconds", m->wall / m->steps);
    json_begin(out, "percent", '{');
    for (int k = 0; k < TW_TIME_KINDS; k++)
        json_number(out, tw_time_kind_name((tw_time_kind)k), bench_percent(m, (tw_time_kind)k));
    json_end(out);
    json_text(out, "largest_loss", tw_time_kind_name(largest_loss(m)));
    json_end(out);
}

/* ---- the table --------------------------------------------------------------------------------------------- */

/* One cell; false on failure, which is said. */
static bool measure_cell(const bench *b, const bench_mode *mode, int devices, measurement *m)
{
    tw_error error = {0};
    workload_options options;
    *m = (measurement){0};
    workload *w = bench_open(b, mode, devices, &options);
    if (!w)
        return false;
    tw_status status = measure(w, &b->measure, m, &error);
    workload_close(w);
    free(m->times);
    if (status != TW_OK)
        failed("bench", &error);
    return status == TW_OK;
}

/* 1, 2, 4, ... and in the end all of them. */
static int next_count(const bench *b, int devices)
{
    return devices < b->num_devices && 2 * devices > b->num_devices ? b->num_devices : 2 * devices;
}

int bench_all(const bench *b)
{
    json out;
    double base = 0; /* of one device, in the first mode */
    bool good = true;
    if (b->as_json)
        begin_json(b, &out);
    else
        print_head(b);
    for (size_t i = 0; i < sizeof modes / sizeof *modes && good; i++) {
        const char *name = modes[i].mode.name;
        for (int devices = 1; devices <= b->num_devices && good; devices = next_count(b, devices)) {
            measurement m;
            if ((modes[i].needs_gpus && !b->on_gpus) || (devices == 1 && modes[i].mode.all_reduce))
                continue; /* algorithms do not differ where there is one tower */
            good = measure_cell(b, &modes[i].mode, devices, &m);
            if (!good)
                break;
            double rate = (double)m.examples * m.steps / m.wall;
            base = base > 0 ? base : rate;
            if (b->as_json)
                row_json(&out, name, devices, rate, base, &m);
            else
                print_row(name, devices, rate, base, &m);
        }
    }
    if (b->as_json) {
        json_end(&out);
        json_end(&out);
    } else if (good) {
        printf("\nspeed-up and efficiency are against the first row; 'independent' never meets and is what there is to "
               "be had\n");
    }
    return good ? EXIT_DONE : EXIT_FAILED;
}

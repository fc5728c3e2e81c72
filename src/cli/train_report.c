/* train_report.c - see train_report.h. */
#include "train_report.h"

#include "asynchronous.h"
#include "clock.h"
#include "job.h" /* job_card_text */
#include "json.h"
#include "progress.h" /* bytes_text */
#include "update.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { KEPT_CHECKPOINTS = 5 };

/* Begins an object with the name of the event and the time. */
static json begin_event(const char *event)
{
    char time[64];
    json out = {.file = stdout};
    json_begin(&out, NULL, '{');
    json_text(&out, "event", event);
    json_text(&out, "time", time_of_day(time, sizeof time));
    return out;
}

static bool is_asynchronous(const train_report *r)
{
    return tw_trainer_updates(r->trainer) == TW_UPDATES_ASYNCHRONOUS;
}

/* Towers whose batches are a step. */
static int makers_of_a_step(const train_report *r)
{
    return is_asynchronous(r) ? 1 : tw_trainer_towers(r->trainer);
}

/* ---- the header -------------------------------------------------------------------------------------------- */

/* "towers 0, 2    /job:.../device:GPU:0", a line for each device. */
static void print_towers(const tw_trainer *trainer, const tw_devices *devices)
{
    char card[160];
    int towers = tw_trainer_towers(trainer);
    for (int first = 0; first < towers; first++) {
        const char *device = tw_trainer_tower_device(trainer, first);
        bool listed = false;
        for (int i = 0; i < first; i++)
            listed |= strcmp(tw_trainer_tower_device(trainer, i), device) == 0;
        if (listed)
            continue;
        char list[64];
        int used = snprintf(list, sizeof list, "%d", first), count = 1;
        for (int i = first + 1; i < towers; i++)
            if (strcmp(tw_trainer_tower_device(trainer, i), device) == 0) {
                count++;
                if (used < 32)
                    used += snprintf(list + used, sizeof list - (size_t)used, used < 28 ? ", %d" : ", ...", i);
            }
        job_card_text(devices, device, card, sizeof card);
        printf("  tower%s %-*s %s%s%s\n", count > 1 ? "s" : "", count > 1 ? 7 : 8, list, device, *card ? "  " : "", card);
    }
}

/* How the rate goes on, and what an update is. */
static void print_rule(const train_report *r)
{
    char text[1024];
    printf("  %-14s %s\n", "rate", tw_trainer_rate_text(r->trainer, text, sizeof text));
    printf("  %-14s %s\n", "rule", tw_trainer_rule_text(r->trainer, text, sizeof text));
}

/* "4 for each of 3 towers: 12 examples a step", or "3, 2, 2 for 3 towers: ...". */
static void print_batch(const train_report *r)
{
    int towers = tw_trainer_towers(r->trainer);
    printf("  %-14s ", "batch");
    if (is_asynchronous(r) || r->examples == (int64_t)tw_trainer_batch(r->trainer) * towers)
        printf("%d for each of", tw_trainer_batch(r->trainer));
    else
        for (int i = 0; i < towers; i++)
            printf("%d%s", tw_trainer_share(r->trainer, i), i + 1 < towers ? ", " : " for");
    printf(" %d tower%s: %" PRId64 " examples a step\n", towers, towers > 1 ? "s" : "", r->examples);
}

static bool devices_make_input(const train_report *r)
{
    return tw_trainer_input_place(r->trainer) == TW_INPUT_ON_DEVICE;
}

static void print_input(const train_report *r)
{
    tw_pipeline_statistics s;
    tw_trainer_input_statistics(r->trainer, &s);
    printf("  %-14s ", "input");
    if (devices_make_input(r))
        printf("made by each tower's device, where the data set lies\n");
    else
        printf("made on the host by %d thread%s\n", s.threads, s.threads == 1 ? "" : "s");
}

/* Behind the reduction's name. */
static const char *why_it_is_that(const char *reduction)
{
    return strcmp(reduction, "tree") == 0 ? ", which gives the same bits on any number of devices"
           : strstr(reduction, "nccl")    ? ", as asked, whose last bits follow from the number of cards"
                                          : "";
}

static void start_text(const train_report *r)
{
    int towers = tw_trainer_towers(r->trainer);
    printf("tower %s: %s, %s\n", tw_version(), r->model->name, r->model->description);
    print_towers(r->trainer, r->devices);
    printf("  %-14s %s%s%s, %" PRId64 " examples\n", "data set", tw_dataset_name(r->dataset),
           r->data_dir[0] ? " in " : "", r->data_dir, tw_dataset_count(r->dataset));
    print_input(r);
    print_batch(r);
    print_update(r->trainer);
    if (is_asynchronous(r))
        printf("  %-14s %s; each is a step\n", "updates", r->updates);
    else if (towers == 1 || tw_trainer_variables(r->trainer).update == TW_UPDATE_INDEPENDENT)
        printf("  %-14s none: %s\n", "reduction", towers == 1 ? "there is one tower" : "towers are independent");
    else
        printf("  %-14s mean of the towers' gradients: %s%s\n", "reduction", r->reduction, why_it_is_that(r->reduction));
    print_rule(r);
    printf("  %-14s %" PRId64 "\n", "seed", tw_trainer_seed(r->trainer));
    printf("  %-14s %" PRId64 " to %" PRId64 "; checkpoints in %s every %" PRId64 ", the last %d kept\n", "steps",
           tw_trainer_steps_done(r->trainer), r->max_steps, r->train_dir, r->save_every, KEPT_CHECKPOINTS);
}

static void start_json(const train_report *r)
{
    char text[1024];
    json out = begin_event("start");
    json_text(&out, "version", tw_version());
    json_text(&out, "model", r->model->name);
    json_integer(&out, "parameters", tw_trainer_parameters(r->trainer));
    json_begin(&out, "tower_devices", '[');
    for (int i = 0; i < tw_trainer_towers(r->trainer); i++)
        json_text(&out, NULL, tw_trainer_tower_device(r->trainer, i));
    json_end(&out);
    json_text(&out, "data_set", tw_dataset_name(r->dataset));
    json_text(&out, "data_dir", r->data_dir[0] ? r->data_dir : NULL);
    json_integer(&out, "examples", tw_dataset_count(r->dataset));
    json_text(&out, "input", devices_make_input(r) ? "device" : "host");
    json_begin(&out, "tower_shares", '[');
    for (int i = 0; i < tw_trainer_towers(r->trainer); i++)
        json_integer(&out, NULL, tw_trainer_share(r->trainer, i));
    json_end(&out);
    json_integer(&out, "batch_size", tw_trainer_batch(r->trainer));
    json_integer(&out, "global_batch_size", r->examples);
    report_update(r->trainer, &out);
    bool meet = !is_asynchronous(r) && tw_trainer_towers(r->trainer) > 1 && tw_trainer_variables(r->trainer).update != TW_UPDATE_INDEPENDENT;
    json_text(&out, "reduction", meet ? r->reduction : "none");
    json_text(&out, "updates", r->updates);
    json_text(&out, "rate", tw_trainer_rate_text(r->trainer, text, sizeof text));
    json_text(&out, "rule", tw_trainer_rule_text(r->trainer, text, sizeof text));
    json_integer(&out, "seed", tw_trainer_seed(r->trainer));
    json_integer(&out, "first_step", tw_trainer_steps_done(r->trainer));
    json_integer(&out, "max_steps", r->max_steps);
    json_text(&out, "train_dir", r->train_dir);
    json_end(&out);
}

void report_start(train_report *r)
{
    r->examples = tw_trainer_examples(r->trainer);
    if (r->as_json)
        start_json(r);
    else
        start_text(r);
    r->started = r->last = seconds_now();
    r->last_steps = tw_trainer_steps_done(r->trainer);
}

void report_plan(train_report *r)
{
    tw_plan_info info;
    if (tw_trainer_plan_info(r->trainer, &info, NULL) != TW_OK)
        return; /* the header is poorer for it, training is not */
    if (r->as_json) {
        json out = begin_event("plan");
        json_integer(&out, "kernels", info.kernels);
        json_integer(&out, "copies", info.copies);
        json_integer(&out, "copied_bytes", info.copied_bytes);
        json_integer(&out, "arena_bytes", info.arena_bytes);
        json_integer(&out, "variable_bytes", info.variable_bytes);
        json_integer(&out, "constant_bytes", info.constant_bytes);
        json_end(&out);
        return;
    }
    char arena[32], variables[32], copied[32];
    printf("  %-14s %s for a step, %s of variables; %d kernels; %d copies between devices, %s a step\n", "memory",
           bytes_text((double)info.arena_bytes, arena, sizeof arena),
           bytes_text((double)info.variable_bytes, variables, sizeof variables), info.kernels, info.copies,
           bytes_text((double)info.copied_bytes, copied, sizeof copied));
}

/* ---- steps ------------------------------------------------------------------------------------------------- */

void report_count(train_report *r, const tw_trainer_step_result *result)
{
    r->stale_sum += (double)result->staleness;
    r->stale_count++;
    if (result->staleness > r->stale_most)
        r->stale_most = result->staleness;
}

void report_step(train_report *r, const tw_trainer_step_result *result)
{
    double now = seconds_now(), seconds = now - r->last;
    int64_t steps = result->step + 1 - r->last_steps;
    double step_seconds = steps > 0 ? seconds / (double)steps : 0;
    double rate = step_seconds > 0 ? (double)r->examples / step_seconds : 0;
    int towers = makers_of_a_step(r);
    double batch_seconds = step_seconds / towers;
    float loss = r->as_tutorial ? result->tower_losses[towers - 1] : result->loss;
    double stale = r->stale_count ? r->stale_sum / (double)r->stale_count : 0;
    int64_t stale_most = r->stale_most;
    r->last = now;
    r->last_steps = result->step + 1;
    r->stale_sum = 0;
    r->stale_count = r->stale_most = 0;
    if (r->as_json) {
        json out = begin_event("step");
        json_integer(&out, "step", result->step);
        json_number(&out, "epoch", (double)result->step * (double)r->examples / (double)tw_dataset_count(r->dataset));
        json_real(&out, "loss", loss, 9);
        json_number(&out, "examples_per_sec", rate);
        json_number(&out, "sec_per_batch", batch_seconds);
        json_number(&out, "step_ms", 1000 * step_seconds);
        if (is_asynchronous(r)) {
            json_integer(&out, "tower", result->tower);
            json_number(&out, "staleness_mean", stale);
            json_integer(&out, "staleness_max", stale_most);
        }
        json_end(&out);
        return;
    }
    char time[64];
    printf("%s: step %" PRId64 ", loss = %.2f (%.1f examples/sec; ", time_of_day(time, sizeof time), result->step, loss,
           rate);
    if (r->as_tutorial || towers == 1)
        printf("%.3f sec/batch)", batch_seconds);
    else
        printf("%.3f sec/step, %.3f sec/tower-batch)", step_seconds, batch_seconds);
    if (is_asynchronous(r))
        printf("; staleness %.1f, at most %" PRId64, stale, stale_most);
    printf("\n");
}

void report_input(train_report *r)
{
    tw_pipeline_statistics s;
    double elapsed = seconds_now() - r->started;
    int towers = tw_trainer_towers(r->trainer);
    if (r->said_input || elapsed < 5)
        return;
    tw_trainer_input_statistics(r->trainer, &s);
    double share = s.wait_seconds / (elapsed * towers); /* towers wait side by side */
    if (share < 0.1)
        return;
    r->said_input = true;
    if (r->as_json) {
        json out = begin_event("input_holds_back");
        json_number(&out, "share", share);
        json_integer(&out, "threads", s.threads);
        json_end(&out);
    } else {
        printf("  %-14s training waits for its data %.0f %% of the time; --input-threads is %d, try more\n", "input",
               100 * share, s.threads);
    }
}

void report_failure(const tw_error *error)
{
    json out = begin_event("error");
    json_text(&out, "status", tw_status_text(error->status));
    json_text(&out, "message", error->message);
    json_end(&out);
}

void report_saved(train_report *r, const char *path)
{
    if (!r->as_json)
        return; /* the directory and the interval stand in the header */
    json out = begin_event("checkpoint");
    json_text(&out, "path", path);
    json_end(&out);
}

void report_end(train_report *r, int64_t steps, int signal)
{
    double seconds = seconds_now() - r->started;
    double rate = seconds > 0 ? (double)(steps * r->examples) / seconds : 0;
    int64_t skipped;
    const char *where;
    float scale = tw_trainer_loss_scale(r->trainer, &skipped, &where);
    if (r->as_json) {
        json out = begin_event("end");
        json_integer(&out, "steps", steps);
        json_number(&out, "seconds", seconds);
        json_number(&out, "examples_per_sec", rate);
        json_integer(&out, "signal", signal);
        json_integer(&out, "examples", steps * r->examples);
        if (is_asynchronous(r))
            staleness_json(&out, r->trainer);
        json_number(&out, "loss_scale", scale);
        json_integer(&out, "overflows", skipped);
        json_text(&out, "overflow", skipped ? where : NULL);
        json_end(&out);
        return;
    }
    if (signal)
        printf("stopped by signal %d after step %" PRId64 "; --resume goes on from there\n", signal,
               tw_trainer_steps_done(r->trainer) - 1);
    printf("%" PRId64 " steps in %.1f s, %.1f examples/sec\n", steps, seconds, rate);
    if (is_asynchronous(r) && steps)
        staleness_print(r->trainer);
    if (skipped)
        printf("%" PRId64 " of them left out because gradients overflowed, the last time %s; the loss scale is %g now\n",
               skipped, where, scale);
}

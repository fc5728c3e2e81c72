/* train_report.c - see train_report.h. */
#include "train_report.h"

#include "asynchronous.h"
#include "clock.h"
#include "command.h" /* complain */
#include "help.h"    /* print_entry */
#include "job.h" /* job_card_text */
#include "json.h"
#include "painter.h"
#include "progress.h" /* bytes_text */
#include "scores.h"
#include "signals.h"
#include "step_file.h"
#include "terminal.h"
#include "update.h"
#include "word.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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

static double epoch_of(const train_report *r, int64_t step)
{
    return (double)step * (double)r->examples / (double)tw_dataset_count(r->dataset);
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
        printf("  tower%s %-*s %s%s%s\n", count > 1 ? "s" : "", count > 1 ? 7 : 8, list, device, *card ? "  " : "",
               card);
    }
}

/* How the rate goes on, and what an update is. */
static void print_rule(const train_report *r)
{
    char text[1024];
    print_entry("rate", "%s", tw_trainer_rate_text(r->trainer, text, sizeof text));
    print_entry("rule", "%s", tw_trainer_rule_text(r->trainer, text, sizeof text));
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
    if (r->reads_files) {
        print_entry("input", "read by the graph from the data set's files, with queues that %d threads fill: no two runs take "
                             "the same batches, and one that is resumed does not go on to the bit", s.threads);
        return;
    }
    printf("  %-14s ", "input");
    if (devices_make_input(r))
        printf("made by each tower's device, where the data set lies\n");
    else
        printf("made on the host by %d thread%s\n", s.threads, s.threads == 1 ? "" : "s");
}

/* Behind the reduction's name. */
static const char *why_it_is_that(const char *reduction, bool reads_files)
{
    if (reads_files)
        return "";
    return strcmp(reduction, "tree") == 0 ? ", which gives the same bits on any number of devices"
           : strstr(reduction, "nccl")    ? ", as asked, whose last bits follow from the number of cards"
                                          : "";
}

static void start_text(const train_report *r)
{
    int towers = tw_trainer_towers(r->trainer);
    int column = printf("tower %s: %s,", tw_version(), r->model->name);
    print_wrapped(stdout, r->model->description, strlen(r->model->description), column, 17, 80);
    print_towers(r->trainer, r->devices);
    print_entry("data set", "%s%s%s, %" PRId64 " examples", tw_dataset_name(r->dataset), r->data_dir[0] ? " in " : "",
               r->data_dir, tw_dataset_count(r->dataset));
    print_input(r);
    print_batch(r);
    print_update(r->trainer, r->mode, !r->reads_files);
    if (is_asynchronous(r))
        print_entry("updates", "%s; each is a step", r->updates);
    else if (towers == 1 || tw_trainer_variables(r->trainer).update == TW_UPDATE_INDEPENDENT)
        print_entry("reduction", "none: %s", towers == 1 ? "there is one tower" : "towers are independent");
    else
        print_entry("reduction", "mean of the towers' gradients: %s%s", r->reduction,
                    why_it_is_that(r->reduction, r->reads_files));
    print_rule(r);
    print_entry("seed", "%" PRId64, tw_trainer_seed(r->trainer));
    char kept[64] = "all kept";
    if (r->keep)
        snprintf(kept, sizeof kept, "the last %" PRId64 " kept", r->keep);
    print_entry("steps", "%" PRId64 " to %" PRId64 " (epoch %.4g); checkpoints in %s every %" PRId64 ", %s",
                tw_trainer_steps_done(r->trainer), r->max_steps, epoch_of(r, r->max_steps), r->train_dir, r->save_every,
                kept);
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
    json_text(&out, "input", r->reads_files ? "files" : devices_make_input(r) ? "device" : "host");
    json_begin(&out, "tower_shares", '[');
    for (int i = 0; i < tw_trainer_towers(r->trainer); i++)
        json_integer(&out, NULL, tw_trainer_share(r->trainer, i));
    json_end(&out);
    json_integer(&out, "batch_size", tw_trainer_batch(r->trainer));
    json_integer(&out, "global_batch_size", r->examples);
    report_update(r->trainer, &out);
    bool meet = !is_asynchronous(r) && tw_trainer_towers(r->trainer) > 1 &&
                tw_trainer_variables(r->trainer).update != TW_UPDATE_INDEPENDENT;
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

/* Where speeds are counted from. */
static void begin_clock(train_report *r)
{
    r->first_step = r->last_steps = tw_trainer_steps_done(r->trainer);
    r->started = r->last = seconds_now();
}

void report_start(train_report *r)
{
    r->examples = tw_trainer_examples(r->trainer);
    if (r->as_json)
        start_json(r);
    else
        start_text(r);
    r->saved_step = -1;
    r->accuracy = -1;
    begin_clock(r);
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
    painter_pause();
    print_entry("memory", "%s for a step, %s of variables; %d kernels; %d copies between devices, %s a step",
               bytes_text((double)info.arena_bytes, arena, sizeof arena),
               bytes_text((double)info.variable_bytes, variables, sizeof variables), info.kernels, info.copies,
               bytes_text((double)info.copied_bytes, copied, sizeof copied));
    painter_resume();
}

/* ---- how it goes ------------------------------------------------------------------------------------------- */

void report_progress(train_report *r, int kind)
{
    enum { LEAST_COLUMNS = 60, LEAST_ROWS = 10 };
    terminal t = terminal_of(stdout);
    bool fits = t.moving && t.columns >= LEAST_COLUMNS && t.rows >= LEAST_ROWS;
    r->no_lines = kind == PROGRESS_NONE;
    if (r->as_json || r->as_tutorial || !fits || (kind != PROGRESS_AUTO && kind != PROGRESS_PANEL))
        return;
    r->panel = panel_open(&(panel_job){.model = r->model->name,
                                       .data_set = tw_dataset_name(r->dataset),
                                       .trainer = r->trainer,
                                       .first = r->first_step,
                                       .max_steps = r->max_steps,
                                       .examples = r->examples,
                                       .data_examples = tw_dataset_count(r->dataset)});
}

/* The step that step.json shows: one of the first, but not the very first, in which libraries load what they need. */
static int64_t step_to_write(const train_report *r)
{
    enum { WARM = 5 };
    int64_t last = r->max_steps - 1;
    return r->first_step + WARM < last ? r->first_step + WARM : last;
}

int64_t report_steps_to_look(const train_report *r, int64_t done)
{
    int64_t to = step_to_write(r) - done;
    return r->step_is_written || to < 0 ? INT64_MAX : to > 0 ? to : 1;
}

bool report_wants_look(const train_report *r, int64_t done)
{
    bool due = !r->step_is_written && done >= step_to_write(r);
    return done < r->max_steps && (due || (done != r->first_step && panel_wants_timeline(r->panel)));
}

void report_begin_look(const train_report *r)
{
    if (!is_asynchronous(r))
        tw_session_set_trace(tw_trainer_session(r->trainer), true, NULL);
}

static void write_step(train_report *r, const tw_timeline *timeline)
{
    tw_error error = TW_NO_ERROR;
    r->step_is_written = true;
    if (step_file_write(r->train_dir, r->trainer, r->latest, timeline, &error) != TW_OK)
        complain("train", "%s; 'tower report' will show less, training goes on", error.message);
}

void report_end_look(train_report *r)
{
    tw_timeline *timeline = NULL;
    if (!is_asynchronous(r) && tw_session_gather_times(tw_trainer_session(r->trainer), NULL) == TW_OK)
        tw_session_timeline(tw_trainer_session(r->trainer), &timeline, NULL);
    if (!r->traced)
        tw_session_set_trace(tw_trainer_session(r->trainer), false, NULL);
    if (timeline)
        panel_timeline(r->panel, timeline);
    if (!r->step_is_written && r->latest >= step_to_write(r))
        write_step(r, timeline);
    tw_timeline_destroy(timeline);
}

/* "22:30:01", with which a line fits into 80 columns. */
static char *short_time(char *text, size_t size)
{
    time_of_day(text, size);
    memmove(text, text + strlen("2026-11-20 "), strlen("22:30:01"));
    text[strlen("22:30:01")] = 0;
    return text;
}

/* ---- steps ------------------------------------------------------------------------------------------------- */

void report_count(train_report *r, const tw_trainer_step_result *result)
{
    r->latest = result->step;
    r->loss = result->loss;
    panel_step(r->panel, result->step + 1, result->loss, tw_trainer_latest_rate(r->trainer));
    if (signals_stop())
        panel_stopping(r->panel);
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
        json_number(&out, "epoch", epoch_of(r, result->step));
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
    if (r->panel || r->no_lines)
        return;
    printf("%s: step %" PRId64 ", loss = %.2f (%.1f examples/sec",
           r->as_tutorial ? time_of_day(time, sizeof time) : short_time(time, sizeof time), result->step, loss, rate);
    if (is_asynchronous(r))
        printf("); staleness %.1f, at most %" PRId64 "\n", stale, stale_most);
    else if (r->as_tutorial || towers == 1)
        printf("; %.3f sec/batch)\n", batch_seconds);
    else
        printf("; %.3f sec/step)\n", step_seconds);
}

/* "1 d 11 h", "3 h 20 min", "5 min 10 s" */
static char *duration_text(double seconds, char *text, size_t size)
{
    static const struct {
        double seconds;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    int i = 0;
    while (i < 2 && seconds < units[i].seconds)
        i++;
    double whole = floor(seconds / units[i].seconds);
    snprintf(text, size, "%.0f %s %.0f %s", whole, units[i].name,
             floor((seconds - whole * units[i].seconds) / units[i + 1].seconds), units[i + 1].name);
    return text;
}

void report_time(train_report *r, int64_t done)
{
    enum { LONG_ENOUGH = 5, LONG = 60 };
    char text[64];
    double elapsed = seconds_now() - r->started;
    int64_t steps = done - r->first_step;
    if (r->said_time || elapsed < LONG_ENOUGH || steps < 2)
        return;
    double left = elapsed / (double)steps * (double)(r->max_steps - done);
    r->said_time = true;
    if (left >= LONG && !r->as_json && !r->panel)
        print_entry("time", "about %s more for the %" PRId64 " steps that are left; --max-steps says how many in all",
                    duration_text(left, text, sizeof text), r->max_steps - done);
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

void report_evaluation(train_report *r, const tw_scores *scores, const tw_dataset *data, double best, int64_t best_step,
                       double seconds)
{
    char time[64];
    r->started += seconds;
    r->last += seconds;
    r->accuracy = scores_top_1(scores);
    panel_accuracy(r->panel, scores->step, r->accuracy, seconds);
    if (r->panel || (r->no_lines && !r->as_json))
        return;
    if (r->as_json) {
        json out = begin_event("evaluation");
        scores_json(&out, scores, data, false);
        json_number(&out, "best_precision_at_1", best);
        json_integer(&out, "best_step", best_step);
        json_number(&out, "seconds", seconds);
        json_end(&out);
        return;
    }
    printf("%s: step %" PRId64 ", precision @ 1 = %.3f, loss = %.2f (%.1f s)", short_time(time, sizeof time),
           scores->step, scores_top_1(scores), scores->loss, seconds);
    if (best_step == scores->step)
        printf("; the best so far\n");
    else
        printf("; the best was %.3f at step %" PRId64 "\n", best, best_step);
}

void report_rollback(train_report *r, const char *message, int64_t count, int64_t most)
{
    char rate[256];
    int64_t step = tw_trainer_steps_done(r->trainer);
    begin_clock(r);
    r->saved_step = step > 0 ? tw_trainer_checkpoint_step(r->trainer) : -1;
    tw_trainer_rate_text(r->trainer, rate, sizeof rate);
    complain("train", "%s; going back to step %" PRId64 ", time %" PRId64 " of %" PRId64 ", with the rate %s", message,
             step, count, most, rate);
    if (!r->as_json)
        return;
    json out = begin_event("rollback");
    json_text(&out, "message", message);
    json_integer(&out, "step", step);
    json_integer(&out, "count", count);
    json_integer(&out, "most", most);
    json_text(&out, "rate", rate);
    json_end(&out);
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
    r->saved_step = tw_trainer_checkpoint_step(r->trainer);
    panel_saved(r->panel, r->saved_step);
    if (!r->as_json)
        return; /* the directory and the interval stand in the header */
    json out = begin_event("checkpoint");
    json_text(&out, "path", path);
    json_end(&out);
}

/* What was written, and what one would do now. */
static void print_next(const train_report *r, int64_t done)
{
    if (r->saved_step >= 0)
        printf("saved as %s/model.ckpt-%" PRId64 "\n", r->train_dir, r->saved_step);
    if (r->saved_step >= 0)
        print_entry("beside it", "run.json%s, and the event log for TensorBoard",
                    r->step_is_written ? ", step.json" : "");
    if (r->trace)
        print_entry("trace", "%s, for Perfetto", r->trace);
    if (r->has_best)
        printf("the best is in %s/best\n", r->train_dir);
    printf("next:");
    if (done > 0) {
        printf("\n  tower eval ");
        print_word(r->train_dir, r->has_best ? "best" : NULL);
    }
    printf("\n  tower report ");
    print_word(r->train_dir, NULL);
    printf("\n  tower train --resume --train-dir ");
    print_word(r->train_dir, NULL);
    if (done >= r->max_steps)
        printf(" --max-steps %" PRId64, 2 * done);
    printf("\n");
}

void report_end(train_report *r, int64_t steps, int signal)
{
    r->stopped_by = signal;
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
        json_flag(&out, "stopped_early", r->stopped_early);
        json_integer(&out, "examples", steps * r->examples);
        if (is_asynchronous(r))
            staleness_json(&out, r->trainer);
        json_number(&out, "loss_scale", scale);
        json_integer(&out, "overflows", skipped);
        json_text(&out, "overflow", skipped ? where : NULL);
        json_end(&out);
        return;
    }
    panel_close(r->panel);
    r->panel = NULL;
    int64_t done = tw_trainer_steps_done(r->trainer);
    if (r->stopped_early)
        printf("stopped early with %" PRId64 " of %" PRId64 " steps done: it got no better\n", done, r->max_steps);
    if (signal)
        printf("stopped by signal %d with %" PRId64 " of %" PRId64 " steps done\n", signal, done, r->max_steps);
    if (steps)
        printf("%" PRId64 " steps in %.1f s, %.1f examples/sec; the last loss is %.4g", steps, seconds, rate, r->loss);
    if (steps && r->accuracy >= 0)
        printf(", precision @ 1 %.3f", r->accuracy);
    if (steps)
        printf("\n");
    else if (!signal)
        printf("nothing to do: %" PRId64 " of %" PRId64 " steps were done before\n", done, r->max_steps);
    if (is_asynchronous(r) && steps)
        staleness_print(r->trainer);
    if (skipped)
        printf("%" PRId64
               " of them left out because gradients overflowed, the last time %s; the loss scale is %g now\n",
               skipped, where, scale);
    print_next(r, done);
}

/* divergence.c - see divergence.h. */
#include "divergence.h"

#include "command.h"
#include "painter.h"
#include "signals.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LOWER_RATE 0.5f

bool divergence_read(const char *command, const char *text, divergence *d)
{
    static const char back[] = "rollback:";
    char *end = NULL;
    *d = (divergence){0};
    if (strcmp(text, "stop") == 0)
        return true;
    if (strncmp(text, back, sizeof back - 1) == 0)
        d->most = strtol(text + sizeof back - 1, &end, 10);
    if (end && !*end && d->most >= 1 && d->most <= 1000)
        return true;
    return complain(command, "--on-divergence: expected stop, or rollback:K with K from 1 to 1000, found '%s'", text);
}

bool divergence_goes_back(divergence *d, const training *t, tw_trainer **trainer, tw_event_writer *events,
                          validation *validation, train_report *report, tw_error *error)
{
    const char *directory = t->settings.job.train_dir;
    if (error->status != TW_OUT_OF_RANGE || d->count == d->most || signals_stop())
        return false;
    tw_error before = *error;
    tw_status status = tw_trainer_roll_back(trainer, &t->options, directory, LOWER_RATE, error);
    report->trainer = *trainer;
    if (status == TW_OK && events)
        status = tw_event_writer_add_restart(events, tw_trainer_steps_done(*trainer), error);
    if (status != TW_OK)
        return false;
    d->count++;
    validation_follow(validation, *trainer);
    report_rollback(report, before.message, d->count, d->most);
    return true;
}

/* Training that went back has another rate than its options say, and is not done again. */
void divergence_explain(const divergence *d, const training *t)
{
    const char *directory = t->settings.job.train_dir;
    char path[PATH_MAX], doing[100];
    int64_t step = 0;
    tw_error found = {0}, error = {0};
    bool saved = tw_checkpoint_latest(directory, path, sizeof path, &step, NULL) == TW_OK;
    tw_trainer_options options = t->options;
    options.resume_from = directory;
    options.with_summaries = false;
    if (options.updates != TW_UPDATES_ASYNCHRONOUS && tw_devices_tasks(t->devices) == 1 && d->count == 0 &&
        !input_reads_files(options.input)) {
        signals_forget(); /* there is nothing to finish */
        snprintf(doing, sizeof doing, "training again from step %" PRId64 " to find the node that began it",
                 saved ? step : 0);
        busy_begin(doing);
        tw_status status = tw_trainer_find_divergence(&options, d->good, d->last, &found, &error);
        busy_end();
        if (status != TW_OK)
            complain("train", "the node that began it is not to be found: %s", error.message);
        else if (found.status == TW_OK)
            complain("train",
                     "the same steps again have finite numbers only: the machine does not compute the same twice");
        else
            complain("train", "%s", found.message);
    }
    complain("train", "a lower --learning-rate, --clip-norm 1 or a --warm-up usually help%s",
             d->most ? "" : "; --on-divergence rollback:3 goes back and lowers the rate by itself");
    if (saved)
        complain("train", "the newest checkpoint is %s; --resume goes on from there", path);
}

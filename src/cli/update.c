/* update.c - see update.h. */
#include "update.h"

#include "clock.h"
#include "help.h" /* print_entry */
#include "progress.h" /* bytes_text */

#include <inttypes.h>
#include <string.h>

enum { TRIAL_STEPS = 5 };
#define WORTH_IT 1.03                   /* times as fast: less may be noise */

/* ORDER VARIABLE_UPDATE */
static const update_mode modes[UPDATE_AUTO] = {
    {"parameter_server", TW_UPDATE_PARAMETER_SERVER},
    {"replicated", TW_UPDATE_REPLICATED},
    {"independent", TW_UPDATE_INDEPENDENT},
    {"distributed_replicated", TW_UPDATE_DISTRIBUTED_REPLICATED},
    {"distributed_all_reduce", TW_UPDATE_REPLICATED, .other_name = true},
    {"collective_all_reduce", TW_UPDATE_REPLICATED, .other_name = true},
    {"horovod", TW_UPDATE_REPLICATED, .other_name = true, .device_each = true},
    {"local", TW_UPDATE_LOCAL},
};

const update_mode *update_mode_at(int choice)
{
    return choice >= 0 && choice < UPDATE_AUTO ? &modes[choice] : NULL;
}

bool update_suits(const char *command, const update *u, int devices, int tasks)
{
    const update_mode *mode = update_mode_at(u->variable_update);
    if (!mode || !mode->device_each || devices <= tasks)
        return true;
    return complain(command,
                    "--variable-update %s is one task for each device, and there are %d devices for %d task%s: 'tower "
                    "launch --tasks %d' or 'mpirun -n %d' starts as many, each with one device; replicated is the same "
                    "without that demand",
                    mode->name, devices, tasks, tasks == 1 ? "" : "s", devices, devices);
}

/* Choices are in the order of their numbers, of which 0 is for what was not given. */
bool update_read(const char *command, const update *u, tw_variable_options *options)
{
    bool measured = u->variable_update == UPDATE_AUTO;
    const update_mode *mode = update_mode_at(u->variable_update);
    *options = (tw_variable_options){
        .update = mode ? mode->update : TW_UPDATE_DEFAULT,
        .placement = (tw_variable_placement)(u->placement + 1),
        .parameter_device = (tw_parameter_device)(u->parameter_device + 1),
        .consistency = (tw_variable_consistency)(u->consistency + 1),
        .staged = u->staged,
    };
    const char *given = options->placement          ? "--variable-placement"
                        : options->parameter_device ? "--local-parameter-device"
                        : options->consistency      ? "--variable-consistency"
                        : options->staged           ? "--staged-vars"
                                                    : NULL;
    if (measured && strcmp(command, "train") != 0)
        return complain(command, "--variable-update auto is for tower train, which measures; name a mode here");
    if (measured && given)
        return complain(command, "--variable-update auto chooses among modes with the same numbers, and where their "
                                 "variables lie; %s leaves it no choice, so give one of the two", given);
    return true;
}

static const char *placement_name(tw_variable_placement placement)
{
    static const char *const names[] = {"", "single", "rotate", "least-loaded", "least-bytes"};
    return names[placement];
}

/* ---- --variable-update auto ----------------------------------------------------------------------------------- */

static const char *mode_name(const tw_variable_options *v)
{
    switch (v->update) {
    case TW_UPDATE_REPLICATED:
        return "replicated";
    case TW_UPDATE_INDEPENDENT:
        return "independent, the bound";
    default:
        return v->parameter_device == TW_PARAMETERS_ON_GPU ? "parameter_server on the GPUs"
                                                           : "parameter_server on the CPU";
    }
}

/* Why it was that one, in a sentence. */
static void say_why(const tw_update_trial *trials, int count, int chosen, char *text, size_t size)
{
    const char *name = mode_name(&trials[chosen].variables);
    int fastest = tw_choose_update(trials, count, 1), used;
    const tw_update_trial *last = &trials[count - 1];
    double speed = trials[chosen].examples_per_second;
    if (count == 1)
        used = snprintf(text, size, "%s, because one tower on the CPU leaves no choice", name);
    else if (fastest != chosen)
        used = snprintf(text, size, "%s, because %s is only %.1f %% faster, which may be noise, and this is simpler",
                        name, mode_name(&trials[fastest].variables),
                        100 * (trials[fastest].examples_per_second / speed - 1));
    else
        used = snprintf(text, size, "%s, because it is the fastest of those with the same numbers", name);
    if (last->variables.update == TW_UPDATE_INDEPENDENT && last->step_seconds > 0 && used > 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, "; towers that never meet would do %.2f times as many",
                 last->examples_per_second / speed);
}

static void print_trials(const tw_update_trial *trials, int count, const char *why)
{
    printf("  %-14s %-30s %10s %10s\n", "measured", "mode", "images/s", "ms/step");
    for (int i = 0; i < count; i++)
        if (trials[i].step_seconds > 0)
            printf("  %-14s %-30s %10.1f %10.1f\n", "", mode_name(&trials[i].variables), trials[i].examples_per_second,
                   1000 * trials[i].step_seconds);
        else
            printf("  %-14s %-30s a device has no room for it\n", "", mode_name(&trials[i].variables));
    printf("  %-14s %s\n", "chosen", why);
}

static void report_trials(const tw_update_trial *trials, int count, int chosen, const char *why)
{
    char time[64];
    json out = {.file = stdout};
    json_begin(&out, NULL, '{');
    json_text(&out, "event", "variable_update");
    json_text(&out, "time", time_of_day(time, sizeof time));
    json_begin(&out, "trials", '[');
    for (int i = 0; i < count; i++) {
        json_begin(&out, NULL, '{');
        json_text(&out, "mode", mode_name(&trials[i].variables));
        json_text(&out, "variable_update", tw_variable_update_name(trials[i].variables.update));
        json_number(&out, "examples_per_sec", trials[i].examples_per_second);
        json_number(&out, "step_ms", 1000 * trials[i].step_seconds);
        json_flag(&out, "fits", trials[i].step_seconds > 0);
        json_end(&out);
    }
    json_end(&out);
    json_text(&out, "chosen", mode_name(&trials[chosen].variables));
    json_text(&out, "why", why);
    json_end(&out);
}

tw_status update_choose(const update *u, tw_trainer_options *options, bool as_json, tw_error *error)
{
    tw_update_trial trials[TW_MOST_UPDATE_TRIALS];
    char why[400];
    int count, chosen;
    if (u->variable_update != UPDATE_AUTO)
        return TW_OK;
    tw_status status = tw_compare_updates(options, TRIAL_STEPS, trials, &count, error);
    if (status == TW_OK) /* what took task 0 so long is what all go by */
        status = tw_devices_share(options->devices, trials, sizeof trials, error);
    if (status != TW_OK)
        return status;
    chosen = tw_choose_update(trials, count, WORTH_IT);
    if (chosen < 0) { /* the trainer will say what does not fit */
        options->variables = (tw_variable_options){.update = TW_UPDATE_PARAMETER_SERVER};
        return TW_OK;
    }
    options->variables = trials[chosen].variables;
    say_why(trials, count, chosen, why, sizeof why);
    if (as_json)
        report_trials(trials, count, chosen, why);
    else
        print_trials(trials, count, why);
    return TW_OK;
}

/* ---- what a run does ---------------------------------------------------------------------------------------- */

static int64_t bytes_of(const tw_variable *variable)
{
    return tw_shape_elements(variable->shape) * (int64_t)tw_dtype_size(variable->dtype);
}

/* The device of variable i, where that is the first on its device; *bytes is what all there add up to. Else NULL. */
static const char *device_of_first(tw_trainer *trainer, int i, int64_t *bytes)
{
    tw_graph *graph = tw_trainer_graph(trainer);
    tw_session *session = tw_trainer_session(trainer);
    const char *device = tw_session_device(session, tw_graph_variable(graph, i)->handle.node);
    *bytes = 0;
    for (int k = 0; device && k < tw_graph_num_variables(graph); k++) {
        const char *other = tw_session_device(session, tw_graph_variable(graph, k)->handle.node);
        if (!other || strcmp(other, device) != 0)
            continue;
        if (k < i)
            return NULL;
        *bytes += bytes_of(tw_graph_variable(graph, k));
    }
    return device;
}

/* "GPU:0" of "/job:localhost/replica:0/task:0/device:GPU:0"; of several tasks the whole. */
static const char *short_name(const char *device)
{
    const char *slash = tw_device_in_job(device, "localhost") ? strrchr(device, '/') : NULL;
    const char *name = slash ? slash + 1 : device;
    return strncmp(name, "device:", 7) == 0 ? name + 7 : name;
}

static bool has_servers(const tw_variable_options *v)
{
    return v->update == TW_UPDATE_PARAMETER_SERVER || v->update == TW_UPDATE_DISTRIBUTED_REPLICATED;
}

void print_update(tw_trainer *trainer, const char *asked, bool same_batches)
{
    tw_variable_options v = tw_trainer_variables(trainer);
    char text[32], where[1024];
    const char *numbers, *words = tw_trainer_update_text(trainer, &numbers);
    const char *name = tw_variable_update_name(v.update);
    bool other_name = asked && strcmp(asked, name) != 0;
    int64_t every;
    int groups = tw_trainer_groups(trainer, &every);
    print_entry("update", "%s%s%s%s: %s", other_name ? asked : "", other_name ? ", as " : "", name,
                v.staged                                  ? ", staged"
                : v.consistency == TW_CONSISTENCY_RELAXED ? ", relaxed"
                                                          : "",
                words);
    if (groups)
        print_entry("groups", "%d, which meet every %" PRId64 " step%s", groups, every, every == 1 ? "" : "s");
    size_t used = (size_t)snprintf(where, sizeof where, "%s",
                                   has_servers(&v) ? placement_name(v.placement)
                                   : groups        ? "on the first tower of every group"
                                                   : "on every tower");
    for (int i = 0, shown = 0; i < tw_graph_num_variables(tw_trainer_graph(trainer)) && used < sizeof where; i++) {
        int64_t bytes;
        const char *device = device_of_first(trainer, i, &bytes);
        if (device)
            used += (size_t)snprintf(where + used, sizeof where - used, "%s %s %s", shown++ ? "," : ":",
                                     short_name(device), bytes_text((double)bytes, text, sizeof text));
    }
    if (v.update == TW_UPDATE_DISTRIBUTED_REPLICATED && used < sizeof where)
        snprintf(where + used, sizeof where - used, "; every tower has a copy");
    print_entry("variables", "%s", where);
    if (same_batches)
        print_entry("numbers", "%s", numbers);
}

void report_update(tw_trainer *trainer, json *out)
{
    tw_variable_options v = tw_trainer_variables(trainer);
    json_text(out, "variable_update", tw_variable_update_name(v.update));
    json_text(out, "variable_placement", has_servers(&v) ? placement_name(v.placement) : NULL);
    json_text(out, "variable_consistency", v.consistency == TW_CONSISTENCY_RELAXED ? "relaxed" : "strong");
    json_flag(out, "staged_vars", v.staged);
    int64_t every;
    int groups = tw_trainer_groups(trainer, &every);
    if (groups) {
        json_integer(out, "groups", groups);
        json_integer(out, "meet_every", every);
    }
    json_begin(out, "variables", '[');
    for (int i = 0; i < tw_graph_num_variables(tw_trainer_graph(trainer)); i++) {
        int64_t bytes;
        const char *device = device_of_first(trainer, i, &bytes);
        if (!device)
            continue;
        json_begin(out, NULL, '{');
        json_text(out, "device", device);
        json_integer(out, "bytes", bytes);
        json_end(out);
    }
    json_end(out);
}

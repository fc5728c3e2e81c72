/* training.c - see training.h: what follows from the options of `tower train`.
 * Never here:  training itself, what is printed. */
#include "training.h"

#include "command.h"
#include "painter.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RATE = 1000000 };

static const tw_dtype dtypes[] = {TW_INVALID_DTYPE, TW_FLOAT32, TW_BFLOAT16, TW_FLOAT16}; /* as in --dtype's choices */

static bool add_device(const char *command, tower_devices *list, size_t *used, const char *format, ...) TW_PRINTF(4, 5);
static bool add_device(const char *command, tower_devices *list, size_t *used, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t room = sizeof list->text - *used;
    int length = vsnprintf(list->text + *used, room, format, arguments);
    va_end(arguments);
    if (list->count == MOST_DEVICES || length < 0 || (size_t)length >= room)
        return complain(command, "--devices: expected at most %d devices in %zu letters", MOST_DEVICES,
                        sizeof list->text);
    list->names[list->count++] = list->text + *used;
    *used += (size_t)length + 1;
    return true;
}

/* Among several tasks numbers begin anew in each: devices go by their full names, in the set's order. */
static bool add_of_tasks(const char *command, tower_devices *list, const tw_devices *devices, int gpus, int cpus)
{
    size_t used = 0;
    for (int i = 0; i < tw_devices_count(devices, NULL); i++) {
        tw_device_info info = tw_devices_info(devices, i);
        int *left = strcmp(info.type, "CPU") == 0 ? &cpus : &gpus;
        if (tw_device_in_job(info.name, "ps"))
            continue;
        if (*left > 0 && !add_device(command, list, &used, "%s", info.name))
            return false;
        *left -= *left > 0;
    }
    return gpus == 0 || complain(command, "--num-gpus: all tasks together have %d fewer GPUs than that", gpus);
}

/* Devices of a type that may have towers. */
static int count_devices(const tw_devices *devices, const char *type)
{
    int count = 0;
    for (int i = 0; i < tw_devices_count(devices, NULL); i++) {
        tw_device_info info = tw_devices_info(devices, i);
        count += strcmp(info.type, type) == 0 && !tw_device_in_job(info.name, "ps");
    }
    return count;
}

/* --devices gpu:0,gpu:1 or --num-gpus 2; --num-gpus 0 means the CPU devices. */
static bool choose_tower_devices(const char *command, const train_settings *s, const tw_devices *devices,
                                 tower_devices *list)
{
    size_t used = 0;
    list->count = 0;
    if (s->devices && s->num_gpus != NOT_GIVEN)
        return complain(command, "--devices and --num-gpus both say where towers go; give one of them");
    for (const char *name = s->devices; name && *name;) {
        int length = (int)strcspn(name, ",");
        if (length == 0)
            return complain(command, "--devices: expected names such as gpu:0,gpu:1, found '%s'", s->devices);
        if (!add_device(command, list, &used, "%s%.*s", *name == '/' ? "" : "/", length, name))
            return false;
        name += length + (name[length] == ',');
    }
    int gpus = s->num_gpus == NOT_GIVEN ? 0 : (int)s->num_gpus;
    int cpus = s->num_gpus == 0 ? count_devices(devices, "CPU") : 0;
    if (tw_devices_tasks(devices) > 1)
        return add_of_tasks(command, list, devices, gpus, cpus);
    for (int i = 0; i < gpus; i++)
        if (!add_device(command, list, &used, "/gpu:%d", i))
            return false;
    for (int i = 0; i < cpus; i++)
        if (!add_device(command, list, &used, "/cpu:%d", i))
            return false;
    return true;
}

/* --tower-shares 3:1 as parts[]; *count 0 if it was not given. */
static bool choose_shares(const char *command, const train_settings *s, int *parts, int *count)
{
    *count = 0;
    for (const char *at = s->tower_shares; at && *at;) {
        char *end;
        long part = strtol(at, &end, 10);
        if (end == at || part < 1 || part > 1 << 20 || *count == MOST_TOWERS || (*end && (*end != ':' || !end[1])))
            return complain(command, "--tower-shares: expected a part for each tower, such as 3:1, found '%s'",
                            s->tower_shares);
        parts[(*count)++] = (int)part;
        at = end + (*end == ':');
    }
    return true;
}

/* 0 if it was not given: the model's. */
static bool choose_learning_rate(const char *command, const train_settings *s, float *rate)
{
    char *end = NULL;
    *rate = s->learning_rate ? strtof(s->learning_rate, &end) : 0;
    if (!s->learning_rate || (end != s->learning_rate && !*end && *rate > 0 && *rate <= MOST_RATE))
        return true;
    return complain(command, "--learning-rate: expected a number above 0 and at most %d, such as 0.1, found '%s'",
                    MOST_RATE, s->learning_rate);
}

/* Asked before anything is opened, as a session would. */
static bool disable_is_known(const char *command, const char *list)
{
    while (list && *list) {
        char name[32];
        size_t length = strcspn(list, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, list);
        nearest near = {.word = name};
        bool found = false;
        for (int i = 0; tw_rewrite_name(i); i++) {
            found |= length < sizeof name && strcmp(name, tw_rewrite_name(i)) == 0;
            nearest_consider(&near, tw_rewrite_name(i));
        }
        if (!found)
            return complain(command, "--disable: there is no rewrite '%s'%s%s%s", name,
                            near.best ? "; did you mean '" : "", near.best ? near.best : "", near.best ? "'?" : "");
        list += length + (list[length] == ',');
    }
    return true;
}

bool leaves_out(const char *list, const char *rewrite)
{
    while (list && *list) {
        size_t length = strcspn(list, ",");
        if ((length == strlen(rewrite) && strncmp(list, rewrite, length) == 0) ||
            (length == strlen("all") && strncmp(list, "all", length) == 0))
            return true;
        list += length + (list[length] == ',');
    }
    return false;
}

static void print_placement(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "%s\n", line);
}

/* ---- the job ----------------------------------------------------------------------------------------------- */

tw_session_options training_session_options(const train_settings *s)
{
    static const tw_soft_choice choices[] = {TW_SOFT_LOWEST, TW_SOFT_LOWEST, TW_SOFT_WRAP, TW_SOFT_CPU};
    return (tw_session_options){
        .allow_soft_placement = s->soft_placement != 0, /* as in the choices of --soft-placement */
        .soft_choice = choices[s->soft_placement],
        .soft_budget = s->soft_budget == NOT_GIVEN ? 0 : s->soft_budget == 0 ? -1 : s->soft_budget,
        .log_device_placement = s->log_device_placement,
        .placement_log = print_placement,
        .disable = s->disable,
        .trace = s->trace != NULL,
    };
}

/* 0 for what was not given. */
static int given(int64_t value)
{
    return value == NOT_GIVEN ? 0 : (int)value;
}

/* How many devices towers are spread over. */
static int count_tower_devices(const training *t)
{
    int gpus = count_devices(t->devices, "GPU");
    return t->where.count > 0 ? t->where.count : gpus > 0 ? gpus : count_devices(t->devices, "CPU");
}

/* Batches of an update that a device works off one after the other are towers of their own on it; 0: as the trainer
 * sees fit. */
static bool choose_towers(const char *command, const training *t, int *towers)
{
    const train_settings *s = &t->settings;
    int64_t each = s->towers != NOT_GIVEN ? s->towers : count_tower_devices(t);
    *towers = s->rule.accumulate == 1 ? given(s->towers) : (int)(each * s->rule.accumulate);
    if (*towers <= MOST_TOWERS)
        return true;
    return complain(command, "--accumulate %" PRId64 " makes %d towers in all, expected at most %d", s->rule.accumulate,
                    *towers, MOST_TOWERS);
}

/* The options of the trainer, from settings, devices and data. */
static bool fill_options(const char *command, training *t)
{
    const train_settings *s = &t->settings;
    int num_shares;
    float rate;
    tw_variable_options variables;
    tw_updates updates;
    tw_asynchronous order;
    if (!recipe_follow(command, &s->recipe, tw_model_at(s->job.model), &t->model) ||
        !reduction_read(command, &s->reduction, &t->average) || !update_read(command, &s->update, &variables) ||
        !asynchronous_read(command, &s->asynchronous, &updates, &order) ||
        !disable_is_known(command, s->disable) ||
        !choose_learning_rate(command, s, &rate) || !choose_tower_devices(command, s, t->devices, &t->where) ||
        !choose_shares(command, s, t->shares, &num_shares) ||
        !update_suits(command, &s->update, count_tower_devices(t), tw_devices_tasks(t->devices)))
        return false;
    if (updates == TW_UPDATES_ASYNCHRONOUS && s->rule.accumulate > 1)
        return complain(command, "--sync off goes without --accumulate: each tower updates after each batch");
    int towers;
    tw_rule rule;
    tw_model_optimizer optimizer;
    if (!choose_towers(command, t, &towers) ||
        !rule_read(command, &s->rule, !isnan(s->recipe.weight_decay), &t->model, &rule, &optimizer, &rate))
        return false;
    if (!isnan(s->recipe.momentum) && (optimizer ? optimizer : t->model.optimizer) != TW_OPTIMIZER_MOMENTUM)
        return complain(command, "--momentum belongs to --optimizer momentum, which is not what %s trains with here",
                        t->model.name);
    t->options = (tw_trainer_options){
        .size = sizeof t->options,
        .model = &t->model,
        .dataset = t->data,
        .devices = t->devices,
        .tower_devices = t->where.count ? t->where.names : NULL,
        .num_tower_devices = t->where.count,
        .variables = variables,
        .towers = towers,
        .batch = given(s->batch_size),
        .global_batch = given(s->global_batch_size),
        .tower_shares = num_shares ? t->shares : NULL,
        .num_tower_shares = num_shares,
        .seed = s->seed == NOT_GIVEN ? 0 : s->seed,
        .dtype = dtypes[s->dtype],
        .optimizer = optimizer,
        .learning_rate = rate,
        .rule = rule,
        .average = t->average,
        .updates = updates,
        .asynchronous = order,
        .input = recipe_input(&s->recipe, t->data),
        .input_place = (tw_input_place)s->input,
        .input_threads = (int)s->input_threads,
        .with_summaries = s->summary_every > 0,
        .resume_from = s->resume ? s->job.train_dir : NULL,
        .accept_other_bits = s->accept_other_bits,
        .check_replicas = s->check_replicas,
        .groups = given(s->update.groups),
        .meet_every = given(s->update.meet_every),
        .as_tutorial = recipe_is_tutorial(&s->recipe),
        .session = training_session_options(s),
    };
    return true;
}

/* Who wants the digest waits for this thread; where there is none he computes it. */
static void *hash_data(void *data)
{
    tw_dataset_digest(data);
    return NULL;
}

int training_open(const char *command, const train_settings *wanted, int with_data, training *t)
{
    int code;
    memset(t, 0, sizeof *t);
    train_settings *s = &t->settings;
    *s = *wanted;
    s->job.train_dir = job_train_dir(&s->job, t->own_train_dir, sizeof t->own_train_dir);
    if (s->recipe.compat == COMPAT_ESTIMATOR && s->job.hold_back == 0)
        s->job.hold_back = 10000; /* it reads data_batch_1 to 4 */
    s->job.tasks = with_data == TRAINING_WITH_DATA; /* who only looks at the job does so alone */
    job_plan_for_started(&s->job);
    bool several = s->job.tasks || s->job.plan_tasks > 0;
    s->job.ps_tasks = several ? cluster_servers(&s->cluster) : 0;
    if (!(t->devices = job_open_tasks(command, &s->job, &code)))
        return code;
    if (several && !cluster_check(command, &s->cluster, t->devices)) {
        job_close_tasks(t->devices);
        return EXIT_USAGE;
    }
    code = EXIT_FAILED;
    if (s->job.format == FORMAT_JSON)
        busy_silence();
    busy_begin("reading the data set");
    if (with_data == TRAINING_WITH_DATA)
        t->data = job_load_data(command, &s->job, TW_SPLIT_TRAIN, t->data_dir);
    else
        t->data = job_data_sizes(command, &s->job);
    busy_end();
    if (t->data)
        job_count_classes(t->data, &s->recipe.num_classes);
    if (t->data)
        code = fill_options(command, t) ? EXIT_DONE : EXIT_USAGE;
    t->hashes = code == EXIT_DONE && with_data == TRAINING_WITH_DATA &&
                pthread_create(&t->hashing, NULL, hash_data, t->data) == 0;
    if (code != EXIT_DONE)
        training_close(t);
    return code;
}

void training_close(training *t)
{
    if (t->hashes)
        pthread_join(t->hashing, NULL);
    tw_dataset_destroy(t->data);
    job_close_tasks(t->devices);
}

/* test_memory_plan.c - what a trainer plans is what its devices hold after some steps, to the byte, for several
 * networks over several towers, on CPUs and GPUs; and a job that does not fit is refused before anything runs. */
#define _GNU_SOURCE
#include "memory_testing.h"

#include <dirent.h>
#include <unistd.h>

#include <tower/tower.h>

typedef struct job {
    tw_dataset *dataset;
    tw_devices *devices;
    tw_trainer *trainer;
    tw_error error;
} job;

typedef struct wanted {
    const char *model;
    int side, channels, batch, towers, cpus, gpus;
    bool summaries, plan_only;
    size_t limit;
    bool growth;
    tw_variable_options variables;
    tw_updates updates;
} wanted;

static tw_status open_job(job *j, const wanted *w)
{
    *j = (job){0};
    tw_device_options devices = {.cpu_devices = w->cpus, .cpu_threads = 1, .virtual_gpus = w->gpus,
                                 .gpu_memory_limit = w->limit, .allow_growth = w->growth};
    if (tw_dataset_synthetic(32, w->side, w->side, w->channels, 10, 5, &j->dataset, &j->error) != TW_OK ||
        tw_devices_create(&devices, &j->devices, &j->error) != TW_OK)
        fail_msg("%s", j->error.message);
    tw_trainer_options options = {
        .model = tw_model_find(w->model),
        .dataset = j->dataset,
        .devices = j->devices,
        .towers = w->towers,
        .batch = w->batch,
        .with_summaries = w->summaries,
        .plan_only = w->plan_only,
        .variables = w->variables,
        .updates = w->updates,
        .asynchronous = {.order = w->updates == TW_UPDATES_ASYNCHRONOUS ? TW_ORDER_EQUAL : TW_ORDER_ARRIVAL},
        .session = {.allow_soft_placement = true},
    };
    return tw_trainer_create(&options, &j->trainer, &j->error);
}

static void close_job(job *j)
{
    tw_trainer_destroy(j->trainer);
    for (int d = 0; d < tw_devices_count(j->devices, NULL); d++)
        assert_int_equal(tw_devices_info(j->devices, d).memory_used, 0);
    tw_devices_destroy(j->devices);
    tw_dataset_destroy(j->dataset);
}

/* totals[d] of each device, from a plan alone; nothing is held. */
static void plan(wanted w, int64_t *totals)
{
    job j;
    tw_memory *memory;
    w.plan_only = true;
    if (open_job(&j, &w) != TW_OK || tw_session_memory(tw_trainer_session(j.trainer), &memory, &j.error) != TW_OK)
        fail_msg("%s", j.error.message);
    for (int d = 0; d < memory->num_devices; d++) {
        const tw_device_memory *m = &memory->devices[d];
        assert_items_add_up(m);
        assert_int_equal(tw_devices_info(j.devices, d).memory_peak, 0);
        totals[d] = m->total;
    }
    tw_memory_destroy(memory);
    close_job(&j);
}

static void remove_folder(const char *folder)
{
    DIR *d = opendir(folder);
    char path[512];
    for (struct dirent *entry; (entry = readdir(d));)
        if (entry->d_name[0] != '.' && snprintf(path, sizeof path, "%s/%.200s", folder, entry->d_name) > 0)
            unlink(path);
    closedir(d);
    rmdir(folder);
}

static void run_steps(job *j, bool summaries)
{
    tw_trainer_step_result result;
    tw_event_writer *events = NULL;
    char folder[] = "/tmp/tower-test-XXXXXX";
    tw_status status = TW_OK;
    assert_non_null(mkdtemp(folder));
    if (summaries)
        status = tw_event_writer_create(folder, &events, &j->error);
    if (summaries && status == TW_OK)
        status = tw_trainer_step_with_summaries(j->trainer, events, &result, &j->error);
    for (int i = 0; i < 2 && status == TW_OK; i++)
        status = tw_trainer_step(j->trainer, &result, &j->error);
    tw_event_writer_close(events, NULL);
    remove_folder(folder);
    if (status != TW_OK)
        fail_msg("%s", j->error.message);
}

static void devices_hold_what_was_planned_to_the_byte(void **state)
{
    (void)state;
    static const wanted cases[] = {
        {"mnist", 28, 1, 8, 1, 1, 0, false},   {"mnist", 28, 1, 8, 2, 1, 2, true},
        {"mnist", 28, 1, 8, 3, 2, 0, true},    {"mnist", 28, 1, 5, 3, 1, 2, false, .growth = true},
        {"cifar10", 32, 3, 2, 1, 1, 1, true},  {"cifar10", 32, 3, 2, 2, 2, 0, false},
        {"cifar10", 32, 3, 2, 3, 1, 3, true},  {"resnet20", 32, 3, 2, 1, 1, 0, true},
        {"resnet20", 32, 3, 2, 2, 1, 2, true}, {"resnet20", 32, 3, 2, 3, 1, 2, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t planned[8];
        job j;
        plan(cases[i], planned);
        if (open_job(&j, &cases[i]) != TW_OK)
            fail_msg("%s", j.error.message);
        run_steps(&j, cases[i].summaries);
        for (int d = 0; d < tw_devices_count(j.devices, NULL); d++) {
            tw_device_info device = tw_devices_info(j.devices, d);
            if ((int64_t)device.memory_used != planned[d] || (int64_t)device.memory_peak > planned[d])
                fail_msg("case %zu (%s, %d towers), %s: planned %lld bytes, holds %zu, held %zu", i, cases[i].model,
                         cases[i].towers, device.name, (long long)planned[d], device.memory_used, device.memory_peak);
        }
        close_job(&j);
    }
}

static void a_job_that_does_not_fit_is_refused_before_anything_runs(void **state)
{
    (void)state;
    job j;
    int64_t planned[2];
    wanted w = {"mnist", 28, 1, 64, 1, 1, 1, .summaries = true};
    plan(w, planned);
    w.limit = (size_t)planned[1];
    assert_int_equal(open_job(&j, &w), TW_OK); /* it fits exactly */
    run_steps(&j, true);
    close_job(&j);
    w.limit--;
    assert_int_equal(open_job(&j, &w), TW_RESOURCE_EXHAUSTED);
    char expected[128];
    snprintf(expected, sizeof expected, "/device:GPU:0 would need %lld bytes, its limit is %zu: variables take ",
             (long long)planned[1], w.limit);
    assert_message(j.error.message, expected);
    assert_int_equal(tw_devices_info(j.devices, 1).memory_peak, 0);
    assert_int_equal(tw_devices_info(j.devices, 0).memory_peak, 0);
    close_job(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_hold_what_was_planned_to_the_byte),
        cmocka_unit_test(a_job_that_does_not_fit_is_refused_before_anything_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

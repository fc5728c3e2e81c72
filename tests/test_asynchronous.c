/* test_asynchronous.c - towers that update each by itself: staleness and its bound, orders that are drawn and replayed,
 * resuming, and how it ends when a tower fails. label: threads */
#include "testing.h"
#include "faulty_files.h"
#include "small_model.h"

#include <time.h>
#include <tower/models.h>

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

enum { BATCH = 2 };

typedef struct run {
    tw_dataset *dataset;
    tw_devices *devices;
    tw_trainer *trainer;
    int64_t staleness[64]; /* of each update */
    int towers[64];        /* who made it */
} run;

static tw_status try_start(run *r, int towers, int gpus, tw_asynchronous wanted, const char *resume_from,
                           tw_error *error)
{
    *r = (run){0};
    assert_int_equal(tw_dataset_synthetic(64, 32, 32, 3, 10, 5, &r->dataset, error), TW_OK);
    assert_int_equal(tw_devices_create(&(tw_device_options){.virtual_gpus = gpus}, &r->devices, error), TW_OK);
    tw_trainer_options options = {
        .model = small_model("cifar10"),
        .dataset = r->dataset,
        .devices = r->devices,
        .towers = towers,
        .batch = wanted.replay ? 0 : BATCH,
        .seed = wanted.replay ? 0 : 7,
        .updates = resume_from || wanted.replay ? TW_UPDATES_DEFAULT : TW_UPDATES_ASYNCHRONOUS,
        .asynchronous = wanted,
        .resume_from = resume_from,
    };
    return tw_trainer_create(&options, &r->trainer, error);
}

static run start(int towers, int gpus, tw_asynchronous wanted, const char *resume_from)
{
    run r;
    tw_error error = {0};
    assert_ok(try_start(&r, towers, gpus, wanted, resume_from, &error));
    return r;
}

static run start_synchronous(int towers, int batch)
{
    run r = {0};
    tw_error error = {0};
    assert_ok(tw_dataset_synthetic(64, 32, 32, 3, 10, 5, &r.dataset, &error));
    assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = 1}, &r.devices, &error));
    tw_trainer_options options = {.model = small_model("cifar10"), .dataset = r.dataset, .devices = r.devices,
                                  .towers = towers, .batch = batch, .seed = 7};
    assert_ok(tw_trainer_create(&options, &r.trainer, &error));
    return r;
}

static void step(run *r, int steps)
{
    tw_error error = {0};
    tw_trainer_step_result result = {0};
    for (int i = 0; i < steps; i++) {
        assert_ok(tw_trainer_step(r->trainer, &result, &error));
        assert_true(result.step < 64);
        r->staleness[result.step] = result.staleness;
        r->towers[result.step] = result.tower;
    }
}

static void finish(run *r)
{
    tw_trainer_destroy(r->trainer);
    tw_devices_destroy(r->devices);
    tw_dataset_destroy(r->dataset);
}

static void assert_equal_variables(run *a, run *b)
{
    tw_graph *first = tw_trainer_graph(a->trainer), *second = tw_trainer_graph(b->trainer);
    tw_error error = {0};
    int count = tw_graph_num_variables(first);
    assert_true(count > 0);
    assert_int_equal(tw_graph_num_variables(second), count);
    for (int i = 0; i < count; i++) {
        tw_tensor *x = NULL, *y = NULL;
        assert_ok(tw_session_get_variable(tw_trainer_session(a->trainer), tw_graph_variable(first, i), &x, &error));
        assert_ok(tw_session_get_variable(tw_trainer_session(b->trainer), tw_graph_variable(second, i), &y, &error));
        assert_int_equal(tw_tensor_bytes(x), tw_tensor_bytes(y));
        assert_memory_equal(tw_tensor_data(x), tw_tensor_data(y), tw_tensor_bytes(x));
        tw_tensor_release(x);
        tw_tensor_release(y);
    }
}

/* Up to 8 ms, another each time, from a seed. */
static void delay(void *seed, int tower)
{
    unsigned *state = (unsigned *)seed + tower;
    *state = *state * 1664525u + 1013904223u;
    nanosleep(&(struct timespec){0, (long)(*state >> 8) % 8000000}, NULL);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static void one_tower_alone_makes_the_bits_of_synchronous_training(void **state)
{
    (void)state;
    run one = start_synchronous(1, BATCH), alone = start(1, 1, (tw_asynchronous){0}, NULL);
    step(&one, 4);
    step(&alone, 4);
    assert_int_equal(tw_trainer_updates(alone.trainer), TW_UPDATES_ASYNCHRONOUS);
    assert_equal_variables(&one, &alone);
    finish(&one);
    finish(&alone);
}

static void with_a_bound_of_0_any_number_of_towers_makes_the_bits_of_one(void **state)
{
    (void)state;
    run one = start_synchronous(1, BATCH);
    run many = start(4, 3, (tw_asynchronous){.bounded = true, .max_staleness = 0}, NULL);
    step(&one, 6);
    step(&many, 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(many.staleness[i], 0);
        assert_int_equal(many.towers[i], i % 4);
    }
    assert_equal_variables(&one, &many);
    finish(&one);
    finish(&many);
}

static void drawn_orders_give_the_same_bits_on_any_devices_at_any_speed(void **state)
{
    (void)state;
    unsigned seeds[5] = {1, 2, 3, 4, 5};
    for (int order = TW_ORDER_EQUAL; order <= TW_ORDER_STRAGGLER; order++) {
        tw_asynchronous wanted = {.order = (tw_order)order, .order_seed = 11}, slow = wanted;
        slow.delay = delay;
        slow.delay_user = seeds;
        run one = start(3, 1, wanted, NULL), many = start(3, 3, slow, NULL);
        step(&one, 9);
        step(&many, 9);
        assert_memory_equal(one.staleness, many.staleness, sizeof one.staleness);
        assert_memory_equal(one.towers, many.towers, sizeof one.towers);
        assert_equal_variables(&one, &many);
        finish(&one);
        finish(&many);
    }
}

static void towers_of_one_speed_take_turns_and_are_as_stale_as_there_are_others(void **state)
{
    (void)state;
    run r = start(3, 1, (tw_asynchronous){.order = TW_ORDER_EQUAL}, NULL);
    tw_staleness all, second;
    step(&r, 8);
    for (int i = 0; i < 8; i++)
        assert_true(r.towers[i] == i % 3 && r.staleness[i] == (i < 2 ? i : 2));
    tw_trainer_staleness(r.trainer, -1, &all);
    tw_trainer_staleness(r.trainer, 1, &second);
    assert_true(all.updates == 8 && all.most == 2 && fabs(all.mean - 13.0 / 8) < 1e-9);
    assert_true(all.histogram[0] == 1 && all.histogram[1] == 1 && all.histogram[2] == 6 && all.histogram[3] == 0);
    assert_true(second.updates == 3 && fabs(second.mean - 5.0 / 3) < 1e-9);
    finish(&r);
}

static void staleness_measured_by_arrival_keeps_its_bound(void **state)
{
    (void)state;
    unsigned seeds[4] = {9, 8, 7, 6};
    for (int bound = 0; bound <= 2; bound++) {
        run r = start(4, 2, (tw_asynchronous){.bounded = true, .max_staleness = bound, .delay = delay,
                                              .delay_user = seeds}, NULL);
        step(&r, 20);
        for (int i = 0; i < 20; i++)
            assert_in_range(r.staleness[i], 0, bound);
        finish(&r);
    }
}

static void from_the_second_round_on_nothing_is_allocated(void **state)
{
    (void)state;
    run r = start(3, 2, (tw_asynchronous){.order = TW_ORDER_EQUAL}, NULL);
    step(&r, 6);
    int64_t before = tw_allocation_count();
    step(&r, 6);
    assert_int_equal(tw_allocation_count(), before);
    finish(&r);
}

/* ---- replaying --------------------------------------------------------------------------------------------------- */

static const char *path_in(const char *folder, const char *name)
{
    static char paths[4][400];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void a_replay_makes_the_same_bits_on_other_devices_at_another_speed(void **state)
{
    (void)state;
    const char *folder = scratch_folder(), *log = path_in(folder, "order.log");
    unsigned seeds[8] = {1, 20, 300, 4000, 50000, 6, 7, 8};
    run first = start(4, 4, (tw_asynchronous){.log = log, .delay = delay, .delay_user = seeds}, NULL);
    step(&first, 24);
    for (int gpus = 1; gpus <= 3; gpus++) {
        const char *again = path_in(folder, "again.log");
        run second = start(0, gpus, (tw_asynchronous){.replay = log, .log = again, .delay = delay,
                                                      .delay_user = seeds + 4}, NULL);
        assert_int_equal(tw_trainer_towers(second.trainer), 4);
        assert_int_equal(tw_trainer_batch(second.trainer), BATCH);
        assert_int_equal(tw_trainer_last_step(second.trainer), 24);
        step(&second, 24);
        assert_memory_equal(first.staleness, second.staleness, sizeof first.staleness);
        assert_equal_variables(&first, &second);
        tw_trainer_step_result result;
        tw_error error = {0};
        assert_fails(tw_trainer_step(second.trainer, &result, &error), TW_OUT_OF_RANGE,
                     "the order that is replayed ends after 24 updates");
        finish(&second);
        char *a = read_whole(log, NULL), *b = read_whole(again, NULL);
        assert_string_equal(a, b);
        free(a);
        free(b);
    }
    finish(&first);
    remove_scratch(folder);
}

static int warnings;
static char latest_warning[600];

static void note_warning(void *user, int level, const char *text)
{
    (void)user, (void)level;
    if (!strstr(text, "this replay"))
        return;
    warnings++;
    snprintf(latest_warning, sizeof latest_warning, "%s", text);
}

static void a_replay_of_other_bits_says_so_once(void **state)
{
    (void)state;
    const char *folder = scratch_folder(), *log = path_in(folder, "order.log");
    run first = start(2, 2, (tw_asynchronous){.log = log}, NULL);
    step(&first, 5);
    finish(&first);
    for (int changes = 0; changes <= 2; changes++) { /* losses from update 2 on */
        char *text = read_whole(log, NULL), line[32];
        for (int update = 2; update < 2 + changes; update++) {
            snprintf(line, sizeof line, "\n%d tower ", update);
            char *loss = strstr(strstr(text, line), " loss ") + 6;
            assert_int_equal(strncmp(loss, "0x1.", 4), 0);
            loss[4] = loss[4] == '0' ? '1' : '0';
        }
        const char *other = path_in(folder, "other.log");
        FILE *file = fopen(other, "w");
        fputs(text, file);
        fclose(file);
        free(text);
        warnings = 0;
        tw_set_log(note_warning, NULL, 1);
        run again = start(0, 1, (tw_asynchronous){.replay = other}, NULL);
        step(&again, 5);
        finish(&again);
        tw_set_log(NULL, NULL, 0);
        assert_int_equal(warnings, changes > 0);
    }
    assert_non_null(strstr(latest_warning, "at update 2 tower_"));
    remove_scratch(folder);
}

static void a_run_that_was_interrupted_is_replayed_as_one(void **state)
{
    (void)state;
    const char *folder = scratch_folder(), *log = path_in(folder, "order.log");
    unsigned seeds[4] = {1, 2, 3, 4};
    tw_error error = {0};
    tw_asynchronous wanted = {.log = log, .delay = delay, .delay_user = seeds};
    run first = start(3, 2, wanted, NULL);
    step(&first, 7);
    assert_ok(tw_trainer_save(first.trainer, folder, 5, &error));
    step(&first, 3); /* and is killed: these are lost */
    finish(&first);
    run second = start(0, 3, wanted, folder);
    assert_int_equal(tw_trainer_steps_done(second.trainer), 7);
    assert_int_equal(tw_trainer_updates(second.trainer), TW_UPDATES_ASYNCHRONOUS);
    step(&second, 8);
    run third = start(0, 1, (tw_asynchronous){.replay = log}, NULL);
    step(&third, 15);
    assert_equal_variables(&second, &third);
    finish(&third);
    run fourth; /* from the checkpoint: nothing was under way there */
    assert_ok(try_start(&fourth, 0, 2, (tw_asynchronous){.replay = log}, folder, &error));
    step(&fourth, 8);
    assert_equal_variables(&second, &fourth);
    finish(&fourth);
    finish(&second);
    remove_scratch(folder);
}

static void a_resumed_run_leaves_no_example_out(void **state)
{
    (void)state;
    const char *folder = scratch_folder(), *log = path_in(folder, "order.log");
    tw_error error = {0};
    tw_asynchronous wanted = {.log = log, .order = TW_ORDER_STRAGGLER};
    run first = start(3, 2, wanted, NULL);
    step(&first, 5); /* tower 0 still computes its first batch */
    assert_ok(tw_trainer_save(first.trainer, folder, 5, &error));
    finish(&first);
    run second = start(0, 2, wanted, folder);
    step(&second, 12);
    finish(&second);
    int times[32] = {0}, records = 0, batch;
    char *text = read_whole(log, NULL);
    for (const char *line = text; line; line = (line = strchr(line, '\n')) ? line + 1 : NULL)
        if (sscanf(line, "%*d tower %*d pulled %*d batch %d loss", &batch) == 1) {
            assert_in_range(batch, 0, 31);
            times[batch]++;
            records++;
        }
    assert_int_equal(records, 17);
    for (int i = 0; i < 14; i++)
        assert_int_equal(times[i], 1);
    free(text);
    remove_scratch(folder);
}

static void what_does_not_fit_together_is_refused_by_name(void **state)
{
    (void)state;
    const char *folder = scratch_folder(), *log = path_in(folder, "order.log");
    tw_error error = {0};
    run r, other;
    r = start(3, 2, (tw_asynchronous){.log = log, .order = TW_ORDER_EQUAL}, NULL);
    step(&r, 5);
    assert_ok(tw_trainer_save(r.trainer, folder, 5, &error));
    step(&r, 5);
    finish(&r);
    assert_int_equal(try_start(&other, 2, 1, (tw_asynchronous){.replay = log}, NULL, &error), TW_INVALID_ARGUMENT);
    assert_message(error.message, "is the order of a run with number of towers 3, but 2 was asked for");
    finish(&other);
    assert_int_equal(try_start(&other, 0, 1, (tw_asynchronous){.replay = log}, folder, &error), TW_INVALID_ARGUMENT);
    assert_message(error.message, "update 5 of the order to be replayed was computed from the variables of update 3");
    finish(&other);
    assert_int_equal(try_start(&other, 0, 1, (tw_asynchronous){.replay = log, .log = log}, NULL, &error),
                     TW_INVALID_ARGUMENT);
    assert_message(error.message, "train into another directory");
    finish(&other);
    tw_devices *devices;
    tw_dataset *dataset;
    tw_trainer *trainer;
    assert_ok(tw_dataset_synthetic(64, 32, 32, 3, 10, 5, &dataset, &error));
    assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = 1}, &devices, &error));
    assert_fails(tw_trainer_create(&(tw_trainer_options){.model = small_model("cifar10"), .dataset = dataset,
                                                         .devices = devices, .updates = TW_UPDATES_SYNCHRONOUS,
                                                         .resume_from = folder}, &trainer, &error),
                 TW_INVALID_ARGUMENT, "was made with updates asynchronous, but synchronous was asked for");
    tw_devices_destroy(devices);
    tw_dataset_destroy(dataset);
    remove_scratch(folder);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void a_tower_that_diverges_ends_all_and_is_named(void **state)
{
    (void)state;
    run r = start(3, 2, (tw_asynchronous){.order = TW_ORDER_EQUAL}, NULL);
    tw_error error = {0};
    tw_trainer_step_result result;
    step(&r, 2);
    tw_variable *biases = tw_graph_find_variable(tw_trainer_graph(r.trainer), "logits/bias");
    tw_tensor *poison = tw_tensor_create(TW_FLOAT32, biases->shape);
    for (int i = 0; i < 10; i++)
        ((float *)tw_tensor_data(poison))[i] = NAN;
    assert_ok(tw_session_set_variable(tw_trainer_session(r.trainer), biases, poison, &error));
    tw_tensor_release(poison);
    step(&r, 2); /* towers 2 and 0 pulled before */
    for (int i = 0; i < 2; i++) /* and it stays so */
        assert_fails(tw_trainer_step(r.trainer, &result, &error), TW_OUT_OF_RANGE,
                     "Model diverged with loss = NaN at step 4 in tower_1");
    finish(&r);
}

static void a_log_that_cannot_be_written_ends_training(void **state)
{
    (void)state;
    const char *folder = scratch_folder(), *log = path_in(folder, "order.log");
    run r = start(2, 1, (tw_asynchronous){.log = log}, NULL);
    tw_error error = {0};
    tw_trainer_step_result result;
    step(&r, 2);
    fail_file_call(0, ENOSPC);
    assert_fails(tw_trainer_step(r.trainer, &result, &error), TW_RESOURCE_EXHAUSTED, "order.log");
    stop_failing();
    finish(&r);
    remove_scratch(folder);
}

static void a_run_is_left_at_any_moment(void **state)
{
    (void)state;
    for (int steps = 0; steps < 4; steps++) {
        run r = start(4, 2, (tw_asynchronous){0}, NULL);
        step(&r, steps);
        finish(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_tower_alone_makes_the_bits_of_synchronous_training),
        cmocka_unit_test(with_a_bound_of_0_any_number_of_towers_makes_the_bits_of_one),
        cmocka_unit_test(drawn_orders_give_the_same_bits_on_any_devices_at_any_speed),
        cmocka_unit_test(towers_of_one_speed_take_turns_and_are_as_stale_as_there_are_others),
        cmocka_unit_test(staleness_measured_by_arrival_keeps_its_bound),
        cmocka_unit_test(from_the_second_round_on_nothing_is_allocated),
        cmocka_unit_test(a_replay_makes_the_same_bits_on_other_devices_at_another_speed),
        cmocka_unit_test(a_replay_of_other_bits_says_so_once),
        cmocka_unit_test(a_run_that_was_interrupted_is_replayed_as_one),
        cmocka_unit_test(a_resumed_run_leaves_no_example_out),
        cmocka_unit_test(what_does_not_fit_together_is_refused_by_name),
        cmocka_unit_test(a_tower_that_diverges_ends_all_and_is_named),
        cmocka_unit_test(a_log_that_cannot_be_written_ends_training),
        cmocka_unit_test(a_run_is_left_at_any_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_asynchronous.c - towers that update each by itself: staleness and its bound, orders that are drawn and replayed,
 * resuming, and how it ends when a tower fails. label: threads */
#include "testing.h"
#include "faulty_files.h"

#include "base/memory.h"
#include "base/sha256.h"
#include "train/update_order.h"

#include <time.h>
#include <tower/models.h>

/* ---- helpers ------------------------------------------------------------------------------------------------------- */

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
        .model = tw_model_find("cifar10"),
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
    tw_trainer_options options = {.model = tw_model_find("cifar10"), .dataset = r.dataset, .devices = r.devices,
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

/* SHA-256 of all variables, in order of their creation. */
static void hash_variables(run *r, char hex[TWI_SHA256_TEXT])
{
    tw_graph *graph = tw_trainer_graph(r->trainer);
    twi_sha256 sha;
    tw_error error = {0};
    twi_sha256_init(&sha);
    for (int i = 0; i < tw_graph_num_variables(graph); i++) {
        tw_tensor *value = NULL;
        assert_ok(tw_session_get_variable(tw_trainer_session(r->trainer), tw_graph_variable(graph, i), &value, &error));
        twi_sha256_add(&sha, tw_tensor_data(value), tw_tensor_bytes(value));
        tw_tensor_release(value);
    }
    twi_sha256_text(&sha, hex);
}

static void assert_equal_variables(run *a, run *b)
{
    char hash_a[TWI_SHA256_TEXT], hash_b[TWI_SHA256_TEXT];
    hash_variables(a, hash_a);
    hash_variables(b, hash_b);
    assert_string_equal(hash_a, hash_b);
}

/* Up to 8 ms, another each time, from a seed. */
static void delay(void *seed, int tower)
{
    unsigned *state = (unsigned *)seed + tower;
    *state = *state * 1664525u + 1013904223u;
    nanosleep(&(struct timespec){0, (long)(*state >> 8) % 8000000}, NULL);
}

/* ---- what an order promises, without training ---------------------------------------------------------------------- */

/* Plays `updates` updates; by arrival, whoever the seed says is there first. Checks staleness against the bound and
 * returns its mean over the second half. */
static double play(int towers, tw_asynchronous options, int updates, unsigned seed)
{
    twi_update_order order;
    tw_error error = {0};
    double sum = 0;
    int64_t *seen = calloc((size_t)updates + (size_t)towers, sizeof *seen);
    assert_ok(twi_update_order_begin(&order, towers, &options, 0, NULL, 0, NULL, &error));
    for (int u = 0; u < updates; u++) {
        for (int tower; (tower = twi_update_order_next_pull(&order)) >= 0;)
            seen[twi_update_order_pull(&order, tower)->batch]++;
        int next = twi_update_order_next_push(&order), may = 0;
        for (int i = 0; i < towers; i++)
            may += twi_update_order_may_push(&order, i);
        assert_true(may > 0);
        if (next < 0) {
            seed = seed * 1664525u + 1013904223u;
            int skip = (int)((seed >> 8) % (unsigned)may);
            for (next = 0; !twi_update_order_may_push(&order, next) || skip-- > 0; next++)
                ;
        }
        assert_true(twi_update_order_may_push(&order, next));
        int64_t staleness = twi_update_order_push(&order, next);
        assert_true(!options.bounded || staleness <= options.max_staleness);
        sum += u >= updates / 2 ? (double)staleness : 0;
    }
    for (int u = 0; u < updates; u++)
        assert_true(seen[u] <= 1);
    free(seen);
    twi_update_order_free(&order);
    return sum / (updates - updates / 2);
}

static void no_order_ever_exceeds_the_bound(void **state)
{
    (void)state;
    for (int towers = 1; towers <= 6; towers++)
        for (int bound = 0; bound <= 8; bound++)
            for (unsigned seed = 1; seed <= 20; seed++)
                for (int order = TW_ORDER_ARRIVAL; order <= TW_ORDER_STRAGGLER; order++)
                    play(towers, (tw_asynchronous){.bounded = true, .max_staleness = bound, .order = (tw_order)order,
                                                   .order_seed = seed}, 100, seed);
}

static void mean_staleness_is_the_number_of_other_towers_under_way(void **state)
{
    (void)state;
    for (int towers = 1; towers <= 9; towers++) {
        assert_true(play(towers, (tw_asynchronous){.order = TW_ORDER_EQUAL}, 1000, 1) == towers - 1);
        for (int order = TW_ORDER_ARRIVAL; order <= TW_ORDER_STRAGGLER; order++)
            assert_true(fabs(play(towers, (tw_asynchronous){.order = (tw_order)order}, 20000, 1) - (towers - 1)) < 0.1);
    }
}

/* ---- training ------------------------------------------------------------------------------------------------------ */

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

/* ---- replaying ----------------------------------------------------------------------------------------------------- */

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
        char *a, *b;
        size_t size_a, size_b;
        assert_ok(twi_file_read(log, 1 << 20, &a, &size_a, &error));
        assert_ok(twi_file_read(again, 1 << 20, &b, &size_b, &error));
        assert_string_equal(a, b);
        twi_free(a);
        twi_free(b);
    }
    finish(&first);
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
    twi_order_log seen;
    int times[32] = {0};
    assert_ok(twi_order_log_read(log, &seen, &error));
    assert_int_equal(seen.count, 17);
    for (int i = 0; i < 17; i++) {
        assert_in_range(seen.records[i].batch, 0, 31);
        times[seen.records[i].batch]++;
    }
    for (int i = 0; i < 14; i++)
        assert_int_equal(times[i], 1);
    twi_order_log_free(&seen);
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
    assert_fails(tw_trainer_create(&(tw_trainer_options){.model = tw_model_find("cifar10"), .dataset = dataset,
                                                         .devices = devices, .updates = TW_UPDATES_SYNCHRONOUS,
                                                         .resume_from = folder}, &trainer, &error),
                 TW_INVALID_ARGUMENT, "was made with updates asynchronous, but synchronous was asked for");
    tw_devices_destroy(devices);
    tw_dataset_destroy(dataset);
    remove_scratch(folder);
}

static void a_damaged_order_is_refused_by_line_and_a_torn_end_is_not(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        int count;
    } cases[] = {
        {"hello\n", "is not an order of updates", 0},
        {"tower order 1\nmodel cifar10 towers 2 batch 2 seed 7\n", "line 2: expected 'model", 0},
        {"tower order 1\nmodel cifar10 towers 2 batch 2 seed 7 first 0\n", NULL, 0},
        {"tower order 1\nmodel cifar10 towers 2 batch 2 seed 7 first 0\n"
         "0 tower 1 pulled 0 batch 1 loss 0x1p+1\n1 tower 0 pulled 0 batch 0 loss 0x1p+1\n2 tower 1 pul", NULL, 2},
        {"tower order 1\nmodel cifar10 towers 2 batch 2 seed 7 first 0\n"
         "1 tower 1 pulled 0 batch 1 loss 0x1p+1\n", "line 3: updates are not numbered", 0},
        {"tower order 1\nmodel cifar10 towers 2 batch 2 seed 7 first 0\n"
         "0 tower 2 pulled 0 batch 1 loss 0x1p+1\n", "line 3: there is no such tower", 0},
        {"tower order 1\nmodel cifar10 towers 2 batch 2 seed 7 first 0\n"
         "0 tower 1 pulled 1 batch 1 loss 0x1p+1\n", "line 3: variables cannot be pulled after", 0},
        {"tower order 1\nmodel cifar10 towers 2 batch 2 seed 7 first 0\n0 tower 1 pulled 0 batch 1 loss 0x1p+1\n"
         "1 tower 1 pulled 0 batch 2 loss 0x1p+1\n", "line 4: the tower pulled before its update before", 0},
        {"tower order 1\nmodel cifar10 towers 2 batch 2 seed 7 first 0\n"
         "0 tower 1 pulled 0 batch 1 loss much\n", "line 3: expected a number after 'loss'", 0},
        {"tower order 1\nmodel cifar10 towers 2 batch 2 seed 7 first 0\n"
         "0 tower 1 pulled 99999999999999999999 batch 1 loss 1\n", "line 3: expected 'UPDATE tower N", 0},
    };
    const char *folder = scratch_folder(), *path = path_in(folder, "order.log");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tw_error error = {0};
        twi_order_log log;
        assert_ok(twi_file_replace(path, cases[i].text, strlen(cases[i].text), &error));
        if (cases[i].message) {
            assert_fails(twi_order_log_read(path, &log, &error), TW_DATA_LOSS, cases[i].message);
        } else {
            assert_ok(twi_order_log_read(path, &log, &error));
            assert_int_equal(log.count, cases[i].count);
        }
        twi_order_log_free(&log);
    }
    remove_scratch(folder);
}

static void an_order_with_a_byte_of_zero_is_refused_by_line(void **state)
{
    (void)state;
    static const char text[] = "tower order 1\nmodel cifar10 towers 2 batch 2 seed 7 first 0\n"
                               "0 tower 1 pulled 0 batch 1 loss 0x1p+1\n\0001 tower 0 pulled 0 batch 0 loss 0x1p+1\n";
    const char *folder = scratch_folder(), *path = path_in(folder, "order.log");
    tw_error error = {0};
    twi_order_log log;
    assert_ok(twi_file_replace(path, text, sizeof text - 1, &error));
    assert_fails(twi_order_log_read(path, &log, &error), TW_DATA_LOSS, "line 4: a byte of zero");
    twi_order_log_free(&log);
    remove_scratch(folder);
}

/* ---- failures ------------------------------------------------------------------------------------------------------ */

static void a_tower_that_diverges_ends_all_and_is_named(void **state)
{
    (void)state;
    run r = start(3, 2, (tw_asynchronous){.order = TW_ORDER_EQUAL}, NULL);
    tw_error error = {0};
    tw_trainer_step_result result;
    step(&r, 2);
    tw_variable *biases = tw_graph_find_variable(tw_trainer_graph(r.trainer), "softmax_linear/biases");
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
        cmocka_unit_test(no_order_ever_exceeds_the_bound),
        cmocka_unit_test(mean_staleness_is_the_number_of_other_towers_under_way),
        cmocka_unit_test(one_tower_alone_makes_the_bits_of_synchronous_training),
        cmocka_unit_test(with_a_bound_of_0_any_number_of_towers_makes_the_bits_of_one),
        cmocka_unit_test(drawn_orders_give_the_same_bits_on_any_devices_at_any_speed),
        cmocka_unit_test(towers_of_one_speed_take_turns_and_are_as_stale_as_there_are_others),
        cmocka_unit_test(staleness_measured_by_arrival_keeps_its_bound),
        cmocka_unit_test(from_the_second_round_on_nothing_is_allocated),
        cmocka_unit_test(a_replay_makes_the_same_bits_on_other_devices_at_another_speed),
        cmocka_unit_test(a_run_that_was_interrupted_is_replayed_as_one),
        cmocka_unit_test(a_resumed_run_leaves_no_example_out),
        cmocka_unit_test(what_does_not_fit_together_is_refused_by_name),
        cmocka_unit_test(a_damaged_order_is_refused_by_line_and_a_torn_end_is_not),
        cmocka_unit_test(an_order_with_a_byte_of_zero_is_refused_by_line),
        cmocka_unit_test(a_tower_that_diverges_ends_all_and_is_named),
        cmocka_unit_test(a_log_that_cannot_be_written_ends_training),
        cmocka_unit_test(a_run_is_left_at_any_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

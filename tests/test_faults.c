/* test_faults.c - memory that runs out, on the host and on devices. label: threads */
#include "failing_session.h"
#include "failing_trainer.h"

/* test_every_fault.c tries them all. Wherever memory fails, the same threads are woken. */
enum { TRIES = UNDER_THREAD_SANITIZER ? 6 : 50 };

static void a_job_survives_the_failure_of_an_allocation_at_each_place(void **state)
{
    (void)state;
    fail_allocations_of(&session_job_kind, fail_at_next_place, TRIES);
}

static void a_job_survives_running_out_of_memory(void **state)
{
    (void)state;
    fail_allocations_of(&session_job_kind, fail_allocations_from, TRIES);
}

static void a_trainer_survives_the_failure_of_an_allocation(void **state)
{
    (void)state;
    fail_allocations_of(&trainer_job_kind, fail_allocation, TRIES);
}

static void a_trainer_survives_running_out_of_memory(void **state)
{
    (void)state;
    fail_allocations_of(&trainer_job_kind, fail_allocations_from, TRIES);
}

/* ---- devices with a limit ---------------------------------------------------------------------------------------- */

enum { WIDTH = 64, LIMIT = 64 * 1024 };

/* x [?,WIDTH] times a variable, added up, on a GPU with LIMIT bytes. */
typedef struct limited {
    tw_graph *g;
    tw_devices *devices;
    tw_session *s;
    tw_variable *v;
    tw_output x, sum;
} limited;

static limited open_limited(int rows)
{
    tw_error error = {0};
    limited l = {.g = tw_graph_create()};
    l.x = tw_placeholder(l.g, TW_FLOAT32, TW_SHAPE(-1, rows));
    TW_DEVICE(l.g, "/gpu:0") {
        l.v = tw_get_variable(l.g, "v", TW_FLOAT32, TW_SHAPE(rows, WIDTH), (tw_initializer){.a = 1});
        l.sum = tw_reduce_sum(l.g, tw_matmul(l.g, l.x, tw_variable_read(l.g, l.v)), NULL, 0, false);
    }
    tw_device_options options = {.virtual_gpus = 1, .gpu_memory_limit = LIMIT};
    assert_ok(tw_devices_create(&options, &l.devices, &error));
    assert_ok(tw_session_create(l.g, &(tw_session_options){.devices = l.devices}, &l.s, &error));
    return l;
}

static size_t used(const limited *l)
{
    return tw_devices_info(l->devices, 1).memory_used;
}

static void close_limited(limited *l)
{
    tw_session_destroy(l->s);
    assert_int_equal(used(l), 0);
    tw_devices_destroy(l->devices);
    tw_graph_destroy(l->g);
}

static tw_status sum_of_ones(limited *l, int rows, tw_error *error)
{
    tw_tensor *x = tw_tensor_create(TW_FLOAT32, TW_SHAPE(rows, WIDTH)), *result = NULL;
    for (int i = 0; i < rows * WIDTH; i++)
        ((float *)tw_tensor_data(x))[i] = 1;
    tw_status status = tw_session_run(l->s, &(tw_feed){l->x, x}, 1, &l->sum, 1, &result, error);
    if (status == TW_OK)
        assert_true(tw_tensor_value(result, 0) == (double)rows * WIDTH * WIDTH);
    tw_tensor_release(x);
    tw_tensor_release(result);
    return status;
}

static void a_batch_too_large_for_a_device_is_refused_and_smaller_ones_still_run(void **state)
{
    (void)state;
    tw_error error = {0};
    limited l = open_limited(WIDTH);
    tw_tensor *ones = tw_tensor_create(TW_FLOAT32, TW_SHAPE(WIDTH, WIDTH));
    for (int i = 0; i < WIDTH * WIDTH; i++)
        ((float *)tw_tensor_data(ones))[i] = 1;
    assert_ok(tw_session_set_variable(l.s, l.v, ones, &error));
    tw_tensor_release(ones);
    size_t left = 0;
    for (int round = 0; round < 2; round++) {
        assert_ok(sum_of_ones(&l, 4, &error));
        assert_ok(sum_of_ones(&l, 8, &error)); /* in a larger arena */
        assert_fails(sum_of_ones(&l, 4096, &error), TW_RESOURCE_EXHAUSTED,
                     "/job:localhost/replica:0/task:0/device:GPU:0 has no room for the buffers of a step: limit 65536 "
                     "bytes, used 16");
        assert_message(error.message, ", needed 2");
        assert_message(error.message, "most is needed while '");
        assert_true(used(&l) < WIDTH * WIDTH * 4 + 1024); /* the variable and constants of plans */
        assert_true(round == 0 || used(&l) == left);      /* what failed holds nothing */
        left = used(&l);
    }
    assert_ok(sum_of_ones(&l, 2, &error)); /* a plan made after the failure */
    assert_ok(sum_of_ones(&l, 8, &error)); /* and one made before */
    assert_true(used(&l) <= LIMIT && tw_devices_info(l.devices, 1).memory_peak <= LIMIT);
    close_limited(&l);
}

static void a_variable_too_large_for_its_device_is_named(void **state)
{
    (void)state;
    tw_error error = {0};
    limited l = open_limited(1000);
    tw_output initialize = tw_initialize_variables(l.g);
    for (int round = 0; round < 2; round++) /* the second time it is known, and still has no memory */
        assert_fails(tw_session_run(l.s, NULL, 0, &initialize, 1, NULL, &error), TW_RESOURCE_EXHAUSTED,
                     "device:GPU:0 has no room for v: limit 65536 bytes, used 0, needed 256000 more");
    assert_int_equal(used(&l), 0);
    close_limited(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_survives_the_failure_of_an_allocation_at_each_place),
        cmocka_unit_test(a_job_survives_running_out_of_memory),
        cmocka_unit_test(a_trainer_survives_the_failure_of_an_allocation),
        cmocka_unit_test(a_trainer_survives_running_out_of_memory),
        cmocka_unit_test(a_batch_too_large_for_a_device_is_refused_and_smaller_ones_still_run),
        cmocka_unit_test(a_variable_too_large_for_its_device_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Programs that were compiled with the headers of yesterday, and with those of tomorrow: what they know of a struct
 * lies at the end of a page behind which nothing can be read or written. */
#define _GNU_SOURCE
#include "testing.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <tower/nn.h>
#include <tower/session.h>
#include <unistd.h>

/* So much memory, whose last byte is the last that may be touched. */
static void *at_the_edge(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(two != MAP_FAILED);
    assert_int_equal(mprotect(two + page, page, PROT_NONE), 0);
    return two + page - bytes;
}

/* As an older header has them: fewer members. */
typedef struct old_session_options {
    size_t size;
    tw_devices *devices;
} old_session_options;

typedef struct old_device_options {
    size_t size;
    int cpu_devices, cpu_threads;
} old_device_options;

typedef struct old_device_info {
    size_t size;
    const char *name, *type;
} old_device_info;

typedef struct old_conv2d_options {
    size_t size;
    int stride[2];
} old_conv2d_options;

static void a_program_of_an_older_header_works(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    tw_session *session;
    tw_tensor *result = NULL;
    old_device_options *two = at_the_edge(sizeof *two);
    *two = (old_device_options){sizeof *two, 2, 1};
    assert_ok(tw_devices_create((const tw_device_options *)two, &devices, &error));
    assert_int_equal(tw_devices_count(devices, "CPU"), 2);

    old_device_info *info = at_the_edge(sizeof *info);
    *info = (old_device_info){.size = sizeof *info};
    assert_ok(tw_devices_describe(devices, 1, (tw_device_info *)info, &error));
    assert_string_equal(info->name, "/job:localhost/replica:0/task:0/device:CPU:1");
    assert_int_equal(info->size, sizeof *info);

    tw_graph *g = tw_graph_create();
    old_conv2d_options *window = at_the_edge(sizeof *window);
    *window = (old_conv2d_options){sizeof *window, {2}};
    tw_output y = tw_conv2d(g, tw_ones(g, TW_FLOAT32, TW_SHAPE(1, 4, 4, 1)),
                            tw_ones(g, TW_FLOAT32, TW_SHAPE(1, 1, 1, 1)), (const tw_conv2d_options *)window);
    assert_true(tw_shape_equal(tw_output_shape(y), TW_SHAPE(1, 2, 2, 1)));

    old_session_options *options = at_the_edge(sizeof *options);
    *options = (old_session_options){sizeof *options, devices};
    assert_ok(tw_session_create(g, (const tw_session_options *)options, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &y, 1, &result, &error));
    assert_true(tw_tensor_value(result, 3) == 1);
    tw_tensor_release(result);
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
}

static void a_size_of_0_is_the_first_version(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    tw_session *session;
    tw_graph *g = tw_graph_create();
    tw_output unknown = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(1));
    tw_device_options two = {.cpu_devices = 2, .cpu_threads = 1, .no_gpus = true};
    assert_ok(tw_devices_create(&two, &devices, &error));
    assert_int_equal(tw_devices_count(devices, NULL), 2);
    tw_session_options options = {0};
    options.devices = devices;
    options.disable = "all"; /* far behind: it counts */
    assert_ok(tw_session_create(g, &options, &session, &error));
    tw_session_destroy(session);
    options.disable = "everything";
    assert_fails(tw_session_create(g, &options, &session, &error), TW_INVALID_ARGUMENT, "everything");
    assert_non_null(unknown.node);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
}

static void a_size_that_cannot_be_is_refused_by_name(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    tw_session *session;
    char expected[100];
    tw_graph *g = tw_graph_create();
    tw_session_options options = TW_SIZED(tw_session_options);
    options.size += 8;
    snprintf(expected, sizeof expected, "tw_session_options.size is %zu, expected %zu", options.size,
             sizeof options);
    assert_fails(tw_session_create(g, &options, &session, &error), TW_INVALID_ARGUMENT, expected);
    assert_message(error.message, "newer");
    options.size = 3; /* forgotten, and not zero */
    assert_fails(tw_session_create(g, &options, &session, &error), TW_INVALID_ARGUMENT, "tw_session_options.size is 3");
    assert_fails(tw_devices_create(&(tw_device_options){.size = 1 << 20}, &devices, &error), TW_INVALID_ARGUMENT,
                 "tw_device_options.size is 1048576");

    assert_int_equal(tw_graph_status(g), TW_OK);
    tw_output x = tw_ones(g, TW_FLOAT32, TW_SHAPE(1, 4, 4, 1));
    tw_max_pool(g, x, &(tw_pool_options){.size = 5, .window = {2}}); /* builders latch */
    assert_message(tw_graph_message(g), "tw_pool_options.size is 5");
    tw_graph_destroy(g);
}

static void what_is_known_of_a_device_is_filled_in_as_far_as_there_is_room(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    assert_ok(tw_devices_create(TW_OPTIONS(tw_device_options, .cpu_threads = 1, .no_gpus = true), &devices, &error));
    tw_device_info info = TW_SIZED(tw_device_info);
    assert_fails(tw_devices_describe(devices, 1, &info, &error), TW_OUT_OF_RANGE, "there are 1");
    info.size++;
    assert_fails(tw_devices_describe(devices, 0, &info, &error), TW_INVALID_ARGUMENT, "tw_device_info.size");
    assert_string_equal(tw_devices_info(devices, 0).type, "CPU");
    assert_string_equal(tw_devices_info(devices, 7).name, "");
    tw_devices_destroy(devices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_of_an_older_header_works),
        cmocka_unit_test(a_size_of_0_is_the_first_version),
        cmocka_unit_test(a_size_that_cannot_be_is_refused_by_name),
        cmocka_unit_test(what_is_known_of_a_device_is_filled_in_as_far_as_there_is_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

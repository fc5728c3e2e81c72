/* Backends that the library does not know: found by the names of their files, listed, placed on and computed with;
 * refused where they do not fit. The environment says which plug-ins there are. */
#include "testing.h"

#include "program.h"

#include <tower/tower.h>

static tw_devices *open_devices(const char *count, tw_device_options options)
{
    tw_error error = {0};
    tw_devices *devices;
    setenv("TOWER_EXAMPLE_GPUS", count, 1);
    assert_ok(tw_devices_create(&options, &devices, &error));
    return devices;
}

static int gpus(const char *count, tw_device_options options)
{
    tw_devices *devices = open_devices(count, options);
    int found = tw_devices_count(devices, "GPU");
    tw_devices_destroy(devices);
    return found;
}

static void a_backend_is_found_by_the_name_of_its_file(void **state)
{
    (void)state;
    tw_devices *devices = open_devices("2", (tw_device_options){.gpu_memory_fraction = 0.5});
    assert_int_equal(tw_devices_count(devices, "GPU"), 2);
    tw_device_info info = tw_devices_info(devices, 2);
    assert_string_equal(info.kind, "example");
    assert_string_equal(info.name, "/job:localhost/replica:0/task:0/device:GPU:1");
    assert_string_equal(info.model, "Example 1");
    assert_string_equal(info.pci, "");
    assert_int_equal(info.memory_limit, 32 << 20);
    tw_devices_destroy(devices);
}

static void nobody_asks_it_where_gpus_are_not_wanted_or_played(void **state)
{
    (void)state;
    assert_int_equal(gpus("2", (tw_device_options){.no_gpus = true}), 0);
    assert_int_equal(gpus("2", (tw_device_options){.virtual_gpus = 3}), 3);
    assert_int_equal(gpus("0", (tw_device_options){0}), 0);
}

static void its_options_are_checked_as_all_others(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    setenv("TOWER_EXAMPLE_GPUS", "9", 1);
    assert_fails(tw_devices_create(NULL, &devices, &error), TW_INVALID_ARGUMENT,
                 "TOWER_EXAMPLE_GPUS: expected a number from 0 to 8, found '9'");
}

static void nodes_are_placed_on_it_and_computed(void **state)
{
    (void)state;
    const float numbers[] = {-1, 2, -3, 4}, biases[] = {2, -3};
    tw_error error = {0};
    tw_devices *devices = open_devices("2", (tw_device_options){0});
    tw_graph *g = tw_graph_create();
    tw_tensor *x = tw_tensor_from(TW_FLOAT32, TW_SHAPE(2, 2), numbers),
              *b = tw_tensor_from(TW_FLOAT32, TW_SHAPE(2), biases);
    tw_output fed = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(2, 2)), y = {0};
    TW_DEVICE(g, "/gpu:1")
    y = tw_relu(g, tw_bias_add(g, fed, tw_constant(g, b)));
    tw_output z = tw_tanh(g, y); /* for which it has no kernel */
    tw_session *s;
    tw_tensor *values[2] = {NULL};
    tw_output fetches[] = {y, z};
    tw_session_options options = {.devices = devices, .allow_soft_placement = true};
    assert_ok(tw_session_create(g, &options, &s, &error));
    assert_ok(tw_session_run(s, &(tw_feed){fed, x}, 1, fetches, 2, values, &error));
    assert_floats_near(tw_tensor_data(values[0]), ((float[]){1, 0, 0, 1}), 4, 0);
    assert_non_null(strstr(tw_session_device(s, y.node), "GPU:1"));
    assert_non_null(strstr(tw_session_device(s, z.node), "CPU:0"));
    for (int i = 0; i < 2; i++)
        tw_tensor_release(values[i]);
    tw_tensor_release(x);
    tw_tensor_release(b);
    tw_session_destroy(s);
    tw_graph_destroy(g);
    tw_devices_destroy(devices);
}

static void it_reduces_by_no_library(void **state)
{
    (void)state;
    const char *name = "/gpu:0", *why;
    tw_error error = {0};
    tw_devices *devices = open_devices("1", (tw_device_options){0});
    assert_fails(tw_devices_check_nccl(devices, &name, 1, &error), TW_INVALID_ARGUMENT, "is of kind 'example'");
    assert_null(tw_devices_nccl(&why));
    assert_string_equal(why, "no plug-in has devices that NCCL knows");
    tw_devices_destroy(devices);
}

static void the_program_lists_it(void **state)
{
    (void)state;
    assert_runs(0, "TOWER_EXAMPLE_GPUS=2 $T devices");
    assert_prints("device:GPU:1  example ");
    assert_prints("example number 1");
    assert_runs(0, "TOWER_EXAMPLE_GPUS=0 $T devices --format json");
    assert_prints("TOWER_EXAMPLE_GPUS asks for no example GPUs");
}

/* The loader would map what is not there, and die of it. */
static void one_that_was_cut_is_refused_by_name(void **state)
{
    (void)state;
    char path[600];
    size_t size;
    snprintf(path, sizeof path, "%s/libtower_example.so", getenv("TOWER_PLUGIN_PATH"));
    free(read_whole(path, &size));
    for (size_t kept = 0; kept < size; kept += kept < 512 ? 64 : size / 12) {
        assert_runs(0, "mkdir -p cut && head -c %zu '%s' > cut/libtower_example.so && "
                       "TOWER_EXAMPLE_GPUS=2 TOWER_PLUGIN_PATH=$PWD/cut $T devices", kept, path);
        assert_prints("a plug-in cannot be used: ");
        assert_prints("/cut/libtower_example.so");
        assert_prints_not("device:GPU:1");
    }
    assert_prints(" is cut: its headers tell of more than its ");
    assert_runs(0, "head -c %zu '%s' > cut/libtower_example.so && "
                   "TOWER_EXAMPLE_GPUS=2 TOWER_PLUGIN_PATH=$PWD/cut $T devices", size, path);
    assert_prints("device:GPU:1");
}

/* ---- those that do not fit --------------------------------------------------------------------------------------- */

static void a_plugin_of_other_headers_is_refused_with_both_sides_named(void **state)
{
    (void)state;
    const char *why = tw_devices_why_no_gpu();
    assert_message(why, "libtower_example.so was built with Tower " EXPECTED_VERSION " (contract ");
    assert_message(why, ", twi_prepare, ");
    assert_message(why, "this library is Tower " EXPECTED_VERSION " (contract ");
    assert_message(why, "build both from the same sources");
    const char *theirs = strstr(why, "twi_prepare, ") + strlen("twi_prepare, "),
               *ours = strstr(theirs, "twi_prepare, ");
    assert_non_null(ours);
    assert_int_equal(atoi(theirs), atoi(ours + strlen("twi_prepare, ")) + (int)sizeof(void *));
    assert_int_equal(gpus("2", (tw_device_options){0}), 0);
}

/* What mpirun or srun starts needs a plug-in, and is told which there was instead. */
static void tasks_without_a_plugin_are_told_what_was_refused(void **state)
{
    (void)state;
    assert_runs(1, "cd / && SLURM_STEP_NUM_TASKS=2 $T bench --model trivial --num_batches 1");
    assert_prints("srun has started 2 processes, which would not know of each other: they need --mpi=pmix or ");
    assert_true(strstr(output, "; found is one for ") || strstr(output, "build both from the same sources"));
}

/* An empty folder in a run path or in LD_LIBRARY_PATH is where the process happens to be. */
static void nothing_is_opened_because_the_process_is_where_it_lies(void **state)
{
    (void)state;
    assert_runs(0, "cd $TOWER_PLUGIN_PATH && TOWER_PLUGIN_PATH= LD_LIBRARY_PATH=: $T devices");
    assert_prints_not("libtower_foreign.so");
}

static void a_file_that_is_no_plugin_is_refused_by_name(void **state)
{
    (void)state;
    assert_message(tw_devices_why_no_gpu(), "libtower_foreign.so has no function twi_plugin_entry");
    assert_message(tw_devices_why_no_gpu(), "Tower " EXPECTED_VERSION);
    assert_int_equal(gpus("2", (tw_device_options){0}), 0);
}

int main(int count, char **words)
{
    const char *which = count > 1 ? words[1] : "";
    const struct CMUnitTest fitting[] = {
        cmocka_unit_test(a_backend_is_found_by_the_name_of_its_file),
        cmocka_unit_test(nobody_asks_it_where_gpus_are_not_wanted_or_played),
        cmocka_unit_test(its_options_are_checked_as_all_others),
        cmocka_unit_test(nodes_are_placed_on_it_and_computed),
        cmocka_unit_test(it_reduces_by_no_library),
        cmocka_unit_test(the_program_lists_it),
        cmocka_unit_test(one_that_was_cut_is_refused_by_name),
    };
    const struct CMUnitTest stale[] = {
        cmocka_unit_test(a_plugin_of_other_headers_is_refused_with_both_sides_named),
        cmocka_unit_test(tasks_without_a_plugin_are_told_what_was_refused),
    };
    const struct CMUnitTest foreign[] = {
        cmocka_unit_test(a_file_that_is_no_plugin_is_refused_by_name),
        cmocka_unit_test(nothing_is_opened_because_the_process_is_where_it_lies),
    };
    if (strcmp(which, "stale") == 0)
        return cmocka_run_group_tests(stale, NULL, NULL);
    if (strcmp(which, "foreign") == 0)
        return cmocka_run_group_tests(foreign, NULL, NULL);
    return cmocka_run_group_tests(fitting, make_directory, remove_directory);
}

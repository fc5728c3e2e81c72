/* `tower doctor`: that it looks where it says it looks, and that its exit code tells whether training works. */
#include "program.h"

static void training_works_here_and_the_exit_code_says_so(void **state)
{
    (void)state;
    assert_runs(0, "$T doctor");
    assert_prints("2 steps of mnist on ");
    assert_prints("\ntraining works");
    assert_prints("oneDNN");
    assert_prints("/libdnnl.so");
    assert_prints("CPU devices divide ");
    assert_prints("CPU:0");
}

static void each_library_is_named_with_the_file_it_was_loaded_from(void **state)
{
    (void)state;
    static const char *const files[] = {"/libgomp.so", "/libz.so", "/libprotobuf-c.so", "/libre2.so",
                                        "/libpng",     "/libjpeg.so", "/libnettle.so", "/libarchive.so"};
    assert_runs(0, "$T doctor --format json 2>/dev/null");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_prints(files[i]);
    assert_prints("\"training_works\":true");
}

static void devices_that_cannot_be_opened_make_it_fail(void **state)
{
    (void)state;
    assert_runs(1, "TOWER_VIRTUAL_GPUS=many $T doctor");
    assert_prints("FAILS opening them");
    assert_prints("training does NOT work here");
    assert_runs(1, "TOWER_VIRTUAL_GPUS=many $T doctor --format json 2>/dev/null");
    assert_prints("\"training_works\":false");
}

static void a_plug_in_that_is_refused_is_named_with_the_reason(void **state)
{
    (void)state;
    assert_runs(0, "mkdir plugs; echo no library > plugs/libtower_wrong.so; TOWER_PLUGIN_PATH=$PWD/plugs $T doctor");
    assert_prints("!     libtower_wrong.so");
    assert_prints("file too short");
    assert_prints("rebuild and install it together with this library");
}

static void limits_that_get_in_the_way_are_told(void **state)
{
    (void)state;
    assert_runs(0, "ulimit -n 60 && $T doctor");
    assert_prints("!     open files    limited to 60");
    assert_prints("ulimit -n unlimited");
}

static void cores_that_a_mask_takes_away_are_counted(void **state)
{
    (void)state;
    assert_runs(0, "taskset -c 0 $T doctor");
    assert_prints("CPU devices divide 1");
}

static void data_sets_are_found_where_training_looks_for_them(void **state)
{
    (void)state;
    write_cifar("cache/cifar10", 3);
    assert_runs(0, "TOWER_DATA_DIR=$PWD/cache $T doctor --format json 2>/dev/null");
    assert_prints("cache/cifar10\"");
    assert_prints("\"name\":\"cifar10\",\"verdict\":\"ok\"");
    assert_prints("\"name\":\"mnist\",\"verdict\":\"none\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_works_here_and_the_exit_code_says_so),
        cmocka_unit_test(each_library_is_named_with_the_file_it_was_loaded_from),
        cmocka_unit_test(devices_that_cannot_be_opened_make_it_fail),
        cmocka_unit_test(a_plug_in_that_is_refused_is_named_with_the_reason),
        cmocka_unit_test(limits_that_get_in_the_way_are_told),
        cmocka_unit_test(cores_that_a_mask_takes_away_are_counted),
        cmocka_unit_test(data_sets_are_found_where_training_looks_for_them),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}

/* Device names: spellings, refusals, merging and matching as TensorFlow's. */
#include "testing.h"

#include "device/name.h"

static const char *canonical(const char *text)
{
    static char out[192];
    tw_error error = {0};
    twi_device_name name;
    if (twi_device_name_parse(text, &name, &error) != TW_OK)
        fail_msg("%s", error.message);
    return twi_device_name_print(&name, out, sizeof out);
}

static void every_spelling_has_one_canonical_form(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"", ""},
        {"/", ""},
        {"/job:localhost/replica:0/task:0/device:GPU:0", "/job:localhost/replica:0/task:0/device:GPU:0"},
        {"/device:GPU:0/task:1/replica:2/job:ps", "/job:ps/replica:2/task:1/device:GPU:0"},
        {"/gpu:0", "/device:GPU:0"},
        {"/GPU:12", "/device:GPU:12"},
        {"/Cpu:3", "/device:CPU:3"},
        {"gpu:0", "/device:GPU:0"},
        {"job:worker/gpu:1", "/job:worker/device:GPU:1"},
        {"/device:gpu:0", "/device:GPU:0"},
        {"/device:cpu:*", "/device:CPU:*"},
        {"/gpu", "/device:GPU:*"},
        {"/gpu:*", "/device:GPU:*"},
        {"/device:GPU", "/device:GPU:*"},
        {"/device:*", ""},
        {"/device:*:*", ""},
        {"/device:Tpu_v2:1", "/device:Tpu_v2:1"},
        {"/device:tpu:1", "/device:tpu:1"},
        {"/job:*/replica:*/task:*/device:*", ""},
        {"/job:a_1B/task:7", "/job:a_1B/task:7"},
        {"/gpu:0/cpu:1", "/device:CPU:1"},
        {"/job:a/job:b", "/job:b"},
        {"/task:3/task:*", ""},
        {"/gpu:007", "/device:GPU:7"},
        {"/gpu:2147483647", "/device:GPU:2147483647"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_string_equal(canonical(table[i][0]), table[i][1]);
        assert_string_equal(canonical(table[i][1]), table[i][1]);
    }
}

static void malformed_names_are_refused_with_the_reason(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"/gpu:", "id is a number"},
        {"/gpu:-1", "id is a number"},
        {"/gpu:+1", "id is a number"},
        {"/gpu: 1", "id is a number"},
        {"/gpu:1x", "id is a number"},
        {"/gpu:2147483648", "id is a number"},
        {"/gpu:99999999999999999999999999", "id is a number"},
        {"/gpu:0:1", "id is a number"},
        {"/device:GPU:0:1", "id is a number"},
        {"/device:", "device type"},
        {"/device", "device type"},
        {"/device:1GPU", "device type"},
        {"/device:G-PU:0", "device type"},
        {"/device:*:3", "needs a type"},
        {"/device:abcdefghijklmnopqrstuvwxyzabcdef:0", "device type"},
        {"/job", "a job is"},
        {"/job:", "a job is"},
        {"/job:1", "a job is"},
        {"/job:_a", "a job is"},
        {"/job:a b", "a job is"},
        {"/job:a:b", "a job is"},
        {"/Job:a", "parts are"},
        {"/replica:x", "a replica is"},
        {"/replica", "a replica is"},
        {"/task:1.5", "a task is"},
        {"/xpu:0", "parts are"},
        {"nonsense", "parts are"},
        {"/gpux:0", "parts are"},
        {"//", "between two slashes"},
        {"//gpu:0", "between two slashes"},
        {"/job:a//gpu:0", "between two slashes"},
        {"/job:a/", "between two slashes"},
        {" ", "parts are"},
        {"/gpu:0\n", "id is a number"},
        {"\xff\xfe", "parts are"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        tw_error error = {0};
        twi_device_name name;
        char start[128];
        snprintf(start, sizeof start, "Malformed device specification '%s'", table[i][0]);
        assert_fails(twi_device_name_parse(table[i][0], &name, &error), TW_INVALID_ARGUMENT, table[i][1]);
        assert_message(error.message, start);
    }
}

static void hostile_names_are_refused_without_harm(void **state)
{
    (void)state;
    enum { LONG = 100000 };
    char *text = malloc(LONG + 1);
    static const char *const starts[] = {"/job:", "/device:", "/gpu:", "/task:", "/", ""};
    static const char fillers[] = {'a', '0', '/', ':', '*', '%', (char)0xff};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        for (size_t j = 0; j < sizeof fillers; j++) {
            memset(text, fillers[j], LONG);
            text[LONG] = 0;
            memcpy(text, starts[i], strlen(starts[i]));
            tw_error error = {0};
            twi_device_name name = TWI_NO_DEVICE;
            tw_status status = twi_device_name_parse(text, &name, &error);
            bool many_zeros = fillers[j] == '0' && (i == 2 || i == 3); /* a long way to write 0 */
            assert_int_equal(status, many_zeros ? TW_OK : TW_INVALID_ARGUMENT);
        }
    free(text);
}

static twi_device_name parsed(const char *text)
{
    twi_device_name name = TWI_NO_DEVICE;
    assert_int_equal(twi_device_name_parse(text, &name, NULL), TW_OK);
    return name;
}

static void inner_scopes_override_outer_ones_part_by_part(void **state)
{
    (void)state;
    static const char *const table[][3] = {
        {"/job:ps/task:0", "/device:GPU:0", "/job:ps/task:0/device:GPU:0"},
        {"/cpu:0", "/gpu:1", "/device:GPU:1"},
        {"/gpu:2", "/job:worker", "/job:worker/device:GPU:2"},
        {"/job:worker/task:1/cpu:0", "/task:3", "/job:worker/task:3/device:CPU:0"},
        {"/device:CPU:1", "/device:GPU", "/device:GPU:1"},
        {"", "/gpu:1", "/device:GPU:1"},
        {"/gpu:1", "", "/device:GPU:1"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        twi_device_name outer = parsed(table[i][0]), inner = parsed(table[i][1]);
        twi_device_name merged = twi_device_name_override(&outer, &inner);
        char text[192];
        assert_string_equal(twi_device_name_print(&merged, text, sizeof text), table[i][2]);
    }
}

static void merging_keeps_what_agrees_and_names_what_does_not(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        const char *strict, *soft; /* result, or the error's word */
    } table[] = {
        {"/gpu:0", "/gpu:0", "/device:GPU:0", "/device:GPU:0"},
        {"/gpu:*", "/gpu:1", "/device:GPU:1", "/device:GPU:1"},
        {"/job:a", "/task:1/cpu:0", "/job:a/task:1/device:CPU:0", "/job:a/task:1/device:CPU:0"},
        {"/gpu:0", "/cpu:0", "types", ""},
        {"/job:a/gpu:0", "/cpu:1", "types", "/job:a"},
        {"/gpu:0", "/gpu:1", "ids", "/device:GPU:*"},
        {"/job:a", "/job:b", "jobs", "jobs"},
        {"/replica:0", "/replica:1", "replicas", "replicas"},
        {"/task:0/gpu:0", "/task:1/gpu:0", "tasks", "tasks"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        twi_device_name a = parsed(table[i].a), b = parsed(table[i].b), out = TWI_NO_DEVICE;
        for (int soft = 0; soft < 2; soft++) {
            const char *expected = soft ? table[i].soft : table[i].strict;
            tw_error error = {0};
            char text[192], message[512];
            tw_status status = twi_device_name_merge(&a, &b, soft, &out, &error);
            if (expected[0] == '/' || !expected[0]) {
                assert_int_equal(status, TW_OK);
                assert_string_equal(twi_device_name_print(&out, text, sizeof text), expected);
            } else {
                assert_int_equal(status, TW_INVALID_ARGUMENT);
                snprintf(message, sizeof message, "Cannot merge devices with incompatible %s: '", expected);
                assert_message(error.message, message);
            }
        }
    }
}

static void a_name_matches_devices_that_have_every_part_it_gives(void **state)
{
    (void)state;
    twi_device_name gpu1 = parsed("/job:localhost/replica:0/task:0/device:GPU:1");
    static const struct {
        const char *spec;
        bool matches;
    } table[] = {
        {"", true}, {"/gpu:1", true}, {"/gpu:*", true}, {"/job:localhost", true}, {"/task:0/device:GPU:1", true},
        {"/gpu:0", false}, {"/cpu:1", false}, {"/job:ps", false}, {"/task:1", false}, {"/replica:1/gpu:1", false},
        {"/gpu:10", false},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        twi_device_name spec = parsed(table[i].spec);
        assert_int_equal(twi_device_name_matches(&spec, &gpu1), table[i].matches);
    }
}

static void a_gpu_may_be_given_by_its_uuid_or_the_beginning_of_it(void **state)
{
    (void)state;
    char text[192];
    tw_error error;
    twi_device_name gpu = parsed("/job:localhost/replica:0/task:0/device:GPU:1"), out;
    strcpy(gpu.uuid, "GPU-8a7e0d1c-0000-1111-2222-333344445555");
    static const struct {
        const char *spec, *canonical;
        bool matches;
    } table[] = {
        {"/gpu:GPU-8a7e0d1c-0000-1111-2222-333344445555", "/device:GPU:GPU-8a7e0d1c-0000-1111-2222-333344445555", true},
        {"gpu:GPU-8A7E", "/device:GPU:GPU-8A7E", true},
        {"/device:GPU:GPU-8a7f", "/device:GPU:GPU-8a7f", false},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        twi_device_name spec = parsed(table[i].spec);
        assert_string_equal(twi_device_name_print(&spec, text, sizeof text), table[i].canonical);
        assert_int_equal(twi_device_name_matches(&spec, &gpu), table[i].matches);
    }
    assert_string_equal(twi_device_name_print(&gpu, text, sizeof text), "/job:localhost/replica:0/task:0/device:GPU:1");
    assert_fails(twi_device_name_parse("/gpu:GPU-xyz", &out, &error), TW_INVALID_ARGUMENT, "number or '*'");
    assert_fails(twi_device_name_parse("/cpu:GPU-8a7e", &out, &error), TW_INVALID_ARGUMENT, "number or '*'");

    /* an inner scope's number or UUID replaces both of an outer one; merged, both must be the device's */
    twi_device_name number = parsed("/gpu:1"), uuid = parsed("/gpu:GPU-8a7e"), other = parsed("/gpu:GPU-9");
    out = twi_device_name_override(&uuid, &number);
    assert_string_equal(twi_device_name_print(&out, text, sizeof text), "/device:GPU:1");
    out = twi_device_name_override(&number, &uuid);
    assert_string_equal(twi_device_name_print(&out, text, sizeof text), "/device:GPU:GPU-8a7e");
    assert_ok(twi_device_name_merge(&number, &uuid, false, &out, &error));
    assert_true(twi_device_name_matches(&out, &gpu));
    assert_fails(twi_device_name_merge(&uuid, &other, false, &out, &error), TW_INVALID_ARGUMENT, "incompatible ids");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_has_one_canonical_form),
        cmocka_unit_test(malformed_names_are_refused_with_the_reason),
        cmocka_unit_test(hostile_names_are_refused_without_harm),
        cmocka_unit_test(inner_scopes_override_outer_ones_part_by_part),
        cmocka_unit_test(merging_keeps_what_agrees_and_names_what_does_not),
        cmocka_unit_test(a_gpu_may_be_given_by_its_uuid_or_the_beginning_of_it),
        cmocka_unit_test(a_name_matches_devices_that_have_every_part_it_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

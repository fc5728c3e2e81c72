/* The CUDA plug-in: without a card that it opens and says in one line why there is none; with one, that every kernel
 * computes what the CPU's does. Skipped where there is neither. */
#include "op_testing.h"

#include "device/plugin.h"

static const twi_plugin *plugin;
static const char *why;

static void one_plain_line_says_why_there_is_no_gpu(void **state)
{
    (void)state;
    const char *line = tw_devices_why_no_gpu();
    if (plugin && plugin->count(&why) > 0)
        assert_string_equal(line, "");
    else
        assert_true(strlen(line) > 20 && !strchr(line, '\n'));
}

static void the_plugin_that_was_built_opens(void **state)
{
    (void)state;
#ifdef TOWER_WITH_CUDA
    if (!plugin)
        fail_msg("%s", why);
    assert_int_equal(plugin->version, TWI_PLUGIN_VERSION);
    assert_true(plugin->count(&why) >= 0);
#else
    skip();
#endif
}

static void a_card_that_is_not_there_cannot_be_described_or_opened(void **state)
{
    (void)state;
    tw_error error = {0};
    twi_card card;
    if (!plugin)
        skip();
    assert_fails(plugin->describe(plugin->count(&why), &card, &error), TW_NOT_FOUND, "there is no card number");
    assert_fails(plugin->describe(-1, &card, &error), TW_NOT_FOUND, "there is no card number -1");
    assert_null(plugin->create(-1, 0, &error));
}

static void gpus_are_left_alone_when_asked(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    assert_ok(tw_devices_create(&(tw_device_options){.no_gpus = true}, &devices, &error));
    assert_int_equal(tw_devices_count(devices, "GPU"), 0);
    tw_devices_destroy(devices);
    assert_ok(tw_devices_create(NULL, &devices, &error));
    assert_int_equal(tw_devices_count(devices, "GPU"), plugin ? plugin->count(&why) : 0);
    tw_devices_destroy(devices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_plain_line_says_why_there_is_no_gpu),
        cmocka_unit_test(the_plugin_that_was_built_opens),
        cmocka_unit_test(a_card_that_is_not_there_cannot_be_described_or_opened),
        cmocka_unit_test(gpus_are_left_alone_when_asked),
    };
    plugin = twi_plugin_open(&why);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

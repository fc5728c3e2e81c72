/* First values of variables, as a session gives them, against TensorFlow's for equal seeds: the same bits, but for the
 * last one of what passed through log, sin and cos, which may differ between C libraries. */
#include "testing.h"

#include <tower/models.h>
#include <tower/ops.h>
#include <tower/session.h>

#include "golden/initial_values.h"

static uint64_t fnv(const void *data, size_t bytes)
{
    uint64_t value = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < bytes; i++)
        value = (value ^ ((const unsigned char *)data)[i]) * UINT64_C(1099511628211);
    return value;
}

/* The value of the graph's only variable after its initializer has run. */
static tw_tensor *initialize(tw_graph *g, const tw_session_options *options)
{
    tw_error error = {0};
    tw_session *session;
    tw_tensor *value = NULL;
    tw_output init = tw_initialize_variables(g);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, options, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &init, 1, NULL, &error));
    assert_ok(tw_session_get_variable(session, tw_graph_variable(g, 0), &value, &error));
    tw_session_destroy(session);
    return value;
}

static bool through_functions(tw_initializer_kind kind)
{
    return kind == TW_INIT_NORMAL || kind == TW_INIT_TRUNCATED_NORMAL;
}

static void variables_start_with_tensorflows_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof golden_initial_values / sizeof *golden_initial_values; i++) {
        const struct initial *golden = &golden_initial_values[i];
        tw_graph *g = tw_graph_create();
        if (golden->has_seed)
            tw_graph_set_seed(g, golden->graph_seed);
        tw_get_variable(g, "v", TW_FLOAT32, golden->shape, golden->initializer);
        tw_tensor *value = initialize(g, NULL);
        const float *values = tw_tensor_data(value);
        bool rounded = through_functions(golden->initializer.kind);
        for (int k = 0; k < 8; k++) {
            float got = values[k * (tw_tensor_elements(value) - 1) / 7], expected = golden->samples[k];
            double size = fmax(fabs(expected - golden->initializer.a), golden->initializer.b);
            if (!(fabs((double)got - expected) <= (rounded ? 1.3e-7 * size : 0)))
                fail_msg("case %zu, sample %d: %.9g, expected %.9g", i, k, got, expected);
        }
        if (!rounded && fnv(values, tw_tensor_bytes(value)) != golden->hash)
            fail_msg("case %zu: values between the samples differ from TensorFlow's", i);
        tw_tensor_release(value);
        tw_graph_destroy(g);
    }
}

static void first_values_depend_neither_on_rewrites_nor_on_the_device(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = 1}, &devices, &error));
    uint64_t first = 0;
    for (int i = 0; i < 4; i++) {
        tw_graph *g = tw_graph_create();
        tw_graph_set_seed(g, 5);
        TW_DEVICE(g, i % 2 ? "/gpu:0" : "/cpu:0")
        tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(384, 192),
                        (tw_initializer){TW_INIT_TRUNCATED_NORMAL, 0, 0.04f, 0});
        tw_session_options options = {.devices = devices, .disable = i / 2 ? "all" : NULL};
        tw_tensor *value = initialize(g, &options);
        uint64_t hash = fnv(tw_tensor_data(value), tw_tensor_bytes(value));
        first = i ? first : hash;
        assert_true(hash == first);
        tw_tensor_release(value);
        tw_graph_destroy(g);
    }
    tw_devices_destroy(devices);
}

/* Filters that pass a channel on have one 1, in the middle; the others are uniform in +-sqrt(1 / fan_in). */
static void dirac_filters_pass_their_channel_on(void **state)
{
    (void)state;
    static const int64_t channels[] = {2, 3, 5}, filters[] = {5, 3, 2};
    for (int i = 0; i < 3; i++) {
        tw_graph *g = tw_graph_create();
        int64_t C = channels[i], K = filters[i];
        tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(3, 3, C, K), (tw_initializer){.kind = TW_INIT_DIRAC, .seed = 1});
        tw_tensor *value = initialize(g, NULL);
        double limit = sqrt(1.0 / (double)(9 * C)), most = 0;
        for (int64_t at = 0; at < 9 * C * K; at++) {
            int64_t filter = at % K, channel = at / K % C, place = at / K / C;
            double found = tw_tensor_value(value, at);
            if (filter < C)
                assert_true(found == (place == 4 && channel == filter));
            else
                most = fmax(most, fabs(found));
        }
        assert_true(K > C ? most > limit / 2 && most <= limit : most == 0);
        tw_tensor_release(value);
        tw_graph_destroy(g);
    }
    tw_graph *g = tw_graph_create();
    tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(3, 3), (tw_initializer){.kind = TW_INIT_DIRAC});
    assert_non_null(strstr(tw_graph_message(g), "[kh,kw,C,K]"));
    tw_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_start_with_tensorflows_values),
        cmocka_unit_test(dirac_filters_pass_their_channel_on),
        cmocka_unit_test(first_values_depend_neither_on_rewrites_nor_on_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

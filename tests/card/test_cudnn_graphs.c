/* Every graph that the CUDA plug-in asks cuDNN to compute, given to the real library without a card: it finalizes, and
 * for an H200 that is only described (h200.deviceprop.json) there is an engine that obeys our rules. Skipped where
 * there is no cuDNN. */
#include "testing.h"

#include "base/file.h"
#include "base/memory.h"
#include "device/cuda/cudnn_graph.h"

static const twi_cudnn *library;
static char *properties; /* of an H200 */
static size_t properties_bytes;

/* Nothing here needs a card. */
tw_status twi_cuda_use(twi_device *d, tw_error *error)
{
    (void)d;
    return twi_fail(error, TW_UNAVAILABLE, "there is no card");
}

tw_status twi_cuda_part_enter(twi_cuda_device *c, tw_error *error)
{
    return twi_cuda_use(&c->base, error);
}

void twi_cuda_part_leave(twi_cuda_device *c)
{
    (void)c;
}

/* Batch, sides, channels in and out, filter, stride, padding at both ends. */
static const struct {
    int64_t batch, side, in, out, size, stride, pad;
} convolutions[] = {
    {128, 24, 3, 64, 5, 1, 2},  {128, 12, 64, 64, 5, 1, 2}, /* the tutorial's */
    {128, 32, 3, 16, 3, 1, 1},  {128, 32, 16, 16, 3, 1, 1}, {128, 34, 16, 32, 3, 2, 0}, /* residual networks */
    {128, 16, 32, 32, 3, 1, 1}, {128, 8, 64, 64, 3, 1, 1},  {128, 32, 16, 32, 1, 2, 0},
    {32, 28, 1, 32, 5, 1, 2},   {2, 7, 8, 16, 3, 1, 1},     /* the MNIST sample's; the kernels' tests' */
};
enum { CONVOLUTIONS = sizeof convolutions / sizeof *convolutions };
static const tw_dtype types[] = {TW_FLOAT32, TW_BFLOAT16, TW_FLOAT16};

static twi_conv_graph graph_of(int i, twi_conv_direction direction, tw_dtype type)
{
    int64_t side = (convolutions[i].side + 2 * convolutions[i].pad - convolutions[i].size) / convolutions[i].stride + 1;
    twi_conv_graph g = {.direction = direction, .type = type, .batch = convolutions[i].batch,
                        .in_channels = convolutions[i].in, .out_channels = convolutions[i].out};
    for (int k = 0; k < 2; k++) {
        g.image[k] = convolutions[i].side;
        g.output[k] = side;
        g.size[k] = convolutions[i].size;
        g.stride[k] = convolutions[i].stride;
        g.dilation[k] = 1;
        g.before[k] = g.after[k] = convolutions[i].pad;
    }
    return g;
}

/* An H200 that nobody has. */
static cudnnBackendDescriptor_t described_card(twi_descriptors *d)
{
    cudnnBackendDescriptor_t card = twi_descriptor(d, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    twi_describe(d, card, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)properties_bytes,
                 properties);
    twi_described(d, card);
    return card;
}

static void check(const twi_conv_graph *what, bool engine_needs_no_driver)
{
    tw_error error = {0};
    twi_descriptors d = {.cudnn = library, .error = &error};
    twi_engine_rules rules = {.tensor_cores = what->type != TW_FLOAT32, .workspace = (size_t)256 << 20};
    twi_engine engine = {.number = -1};
    cudnnBackendDescriptor_t graph = twi_conv_graph_make(&d, what, NULL);
    if (!graph)
        fail_msg("direction %d, %s: %s", what->direction, tw_dtype_name(what->type), error.message);
    if (engine_needs_no_driver) {
        cudnnBackendDescriptor_t card = described_card(&d);
        if (!twi_engine_next(&d, graph, NULL, card, &rules, &(twi_search){0}, &engine))
            fail_msg("direction %d, %s, %lld channels to %lld: no engine %s", what->direction,
                     tw_dtype_name(what->type), (long long)what->in_channels, (long long)what->out_channels,
                     error.message);
        assert_true(engine.number >= 0 && engine.workspace <= rules.workspace);
    }
    twi_descriptors_free(&d);
}

static void every_convolution_finalizes_and_has_an_engine_on_an_h200(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int direction = TWI_CONV_FORWARD; direction <= TWI_CONV_BACKWARD_FILTER; direction++)
            for (int i = 0; i < CONVOLUTIONS; i++) {
                twi_conv_graph g = graph_of(i, (twi_conv_direction)direction, types[t]);
                check(&g, true);
            }
}

/* Most of a list are settings of one or two engines. */
static void each_engine_is_found_once_before_other_settings_of_it(void **state)
{
    (void)state;
    tw_error error = {0};
    twi_descriptors d = {.cudnn = library, .error = &error};
    twi_engine_rules rules = {.tensor_cores = true, .workspace = (size_t)256 << 20};
    twi_candidate had[TWI_CANDIDATES];
    twi_engine engine;
    twi_conv_graph g = graph_of(0, TWI_CONV_BACKWARD_FILTER, TW_BFLOAT16);
    cudnnBackendDescriptor_t graph = twi_conv_graph_make(&d, &g, NULL), card = described_card(&d);
    assert_non_null(graph);
    int engines = 0, count;
    for (int pass = 0; pass < 2; pass++) {
        twi_search search = {.had = had, .new_number = pass == 0};
        for (count = engines; count < TWI_CANDIDATES; had[count++] = (twi_candidate){engine.position, engine.number,
                                                                                     engine.settings, 0, NULL}) {
            search.num_had = count;
            if (!twi_engine_next(&d, graph, NULL, card, &rules, &search, &engine))
                break;
            for (int i = 0; i < count; i++) {
                assert_int_not_equal(had[i].position, engine.position);
                assert_true(pass == 1 || had[i].number != engine.number);
            }
        }
        engines = pass == 0 ? count : engines;
    }
    assert_true(engines >= 2);
    assert_true(count > engines);
    for (int i = engines; i < count; i++) /* what is alike but for its settings is told apart */
        for (int k = 0; k < i; k++)
            assert_true(had[k].number != had[i].number || had[k].settings != had[i].settings);
    twi_descriptors_free(&d);
}

/* In narrow types these have engines that the driver compiles, so without one only floats can be tried to the end. */
static void convolutions_with_bias_and_relu_finalize(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int relu = 0; relu < 2; relu++)
            for (int i = 0; i < CONVOLUTIONS; i++) {
                twi_conv_graph g = graph_of(i, TWI_CONV_FORWARD, types[t]);
                g.bias = true;
                g.relu = relu;
                check(&g, relu && types[t] == TW_FLOAT32);
            }
}

static void a_graph_that_cannot_be_says_what_failed(void **state)
{
    (void)state;
    tw_error error = {0};
    twi_descriptors d = {.cudnn = library, .error = &error};
    twi_conv_graph g = graph_of(0, TWI_CONV_FORWARD, TW_FLOAT32);
    g.output[0] = 7; /* is 24 */
    assert_null(twi_conv_graph_make(&d, &g, NULL));
    assert_int_equal(d.status, TW_INTERNAL);
    assert_message(error.message, "cudnnBackendFinalize: ");
    assert_message(error.message, "(cudnn_graph.c:");
    twi_descriptors_free(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_convolution_finalizes_and_has_an_engine_on_an_h200),
        cmocka_unit_test(each_engine_is_found_once_before_other_settings_of_it),
        cmocka_unit_test(convolutions_with_bias_and_relu_finalize),
        cmocka_unit_test(a_graph_that_cannot_be_says_what_failed),
    };
    tw_error error = {0};
    if (twi_cudnn_library(&library, &error) != TW_OK) {
        printf("skipped: %s\n", error.message);
        return 77;
    }
    if (twi_file_read(CARD_DIR "/h200.deviceprop.json", 1 << 16, &properties, &properties_bytes, &error) != TW_OK) {
        printf("%s\n", error.message);
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    twi_free(properties);
    return failed;
}

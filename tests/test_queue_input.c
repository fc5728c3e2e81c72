/* test_queue_input.c - input through queues as the CIFAR-10 tutorial builds it: its distortions against TensorFlow's,
 * and what comes out at the end. label: threads */
#include "testing.h"

#include "golden/distort_ops.h"

#include <tower/ops.h>
#include <tower/queue.h>
#include <unistd.h>

/* ---- distortions ------------------------------------------------------------------------------------------- */

enum { H = 6, W = 5, C = 2, RUNS = 4 };

typedef tw_output distortion(tw_graph *g, tw_output image);

static tw_output cropped(tw_graph *g, tw_output image)
{
    return tw_random_crop(g, image, TW_SHAPE(4, 3, C), 7);
}

static tw_output flipped(tw_graph *g, tw_output image)
{
    return tw_random_flip_left_right(g, image, 8);
}

static tw_output brightened(tw_graph *g, tw_output image)
{
    return tw_random_brightness(g, image, 63, 9);
}

static tw_output contrasted(tw_graph *g, tw_output image)
{
    return tw_random_contrast(g, image, 0.2f, 1.8f, 10);
}

static void each_distortion_draws_and_computes_what_tensorflow_does(void **state)
{
    (void)state;
    static const struct {
        distortion *distort;
        const float *golden;
        size_t count;
        double tolerance; /* means are sums in another order; pixels go to 255 */
    } cases[] = {
        {cropped, golden_cropped, sizeof golden_cropped / sizeof(float), 0},
        {flipped, golden_flipped, sizeof golden_flipped / sizeof(float), 0},
        {brightened, golden_brightened, sizeof golden_brightened / sizeof(float), 0},
        {contrasted, golden_contrasted, sizeof golden_contrasted / sizeof(float), 2e-5},
        {tw_image_standardization, golden_standardized, sizeof golden_standardized / sizeof(float), 1e-6},
    };
    float pixels[H * W * C];
    for (int i = 0; i < H * W * C; i++)
        pixels[i] = (float)(i * 37 % 256);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tw_error error = {0};
        tw_graph *g = tw_graph_create();
        tw_session *s;
        tw_tensor *result = NULL;
        tw_graph_set_seed(g, 1);
        tw_output image = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(H, W, C)), y = cases[i].distort(g, image);
        tw_tensor *value = tw_tensor_from(TW_FLOAT32, TW_SHAPE(H, W, C), pixels);
        assert_string_equal(tw_graph_message(g), "");
        assert_ok(tw_session_create(g, NULL, &s, &error));
        size_t each = cases[i].count / RUNS;
        for (int run = 0; run < RUNS; run++) {
            assert_ok(tw_session_run(s, &(tw_feed){image, value}, 1, &y, 1, &result, &error));
            assert_int_equal(tw_tensor_elements(result), each);
            assert_floats_near(tw_tensor_data(result), cases[i].golden + (size_t)run * each, each,
                               cases[i].tolerance);
        }
        tw_tensor_release(value);
        tw_tensor_release(result);
        tw_session_destroy(s);
        tw_graph_destroy(g);
    }
}

/* ---- the whole road ---------------------------------------------------------------------------------------- */

enum { RECORDS = 40, SIDE = 4, PIXELS = 3 * SIDE * SIDE, BATCH = 5 };

/* Record i has label i, and pixels that say where they are: channel * 16 + row * 4 + column + i. */
static void write_records(char *path, size_t size)
{
    snprintf(path, size, "/tmp/tower-input-%d", (int)getpid());
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (int i = 0; i < RECORDS; i++) {
        unsigned char record[1 + PIXELS] = {(unsigned char)i};
        for (int k = 0; k < PIXELS; k++)
            record[1 + k] = (unsigned char)(k + i);
        fwrite(record, 1, sizeof record, file);
    }
    fclose(file);
}

/* One epoch through names, reader, decoding, a shuffled batch and a prefetch queue: every record once, its pixels in
 * their places, in an order that is not the file's. */
static void a_file_of_records_becomes_shuffled_batches_of_images(void **state)
{
    (void)state;
    char path[100];
    write_records(path, sizeof path);
    tw_graph *g = tw_graph_create();
    const char *names[] = {path};
    tw_output files = tw_string_input_producer(g, names, 1, &(tw_input_producer_options){.epochs = 1});
    tw_output record = tw_reader_read(g, tw_fixed_length_record_reader(g, 0, 1 + PIXELS, 0), files, NULL);
    tw_output bytes = tw_decode_raw(g, record, TW_UINT8, true);
    tw_output planes = tw_reshape(g, tw_slice(g, bytes, TW_SHAPE(1), TW_SHAPE(PIXELS)), TW_SHAPE(3, SIDE, SIDE));
    tw_output example[] = {tw_cast(g, tw_transpose(g, planes, TW_SHAPE(1, 2, 0)), TW_FLOAT32),
                           tw_cast(g, tw_slice(g, bytes, TW_SHAPE(0), TW_SHAPE(1)), TW_INT32)};
    tw_output batch[2], taken[2];
    tw_batch_options options = {.batch = BATCH, .threads = 3, .min_after_dequeue = 10};
    tw_shuffle_batch(g, example, 2, &options, batch);
    assert_true(tw_shape_equal(tw_output_shape(batch[0]), TW_SHAPE(BATCH, SIDE, SIDE, 3)));
    tw_output queue = tw_prefetch_queue(g, batch, 2, 4), initialize;
    tw_dequeue(g, queue, taken);
    initialize = tw_initialize_variables(g);
    assert_string_equal(tw_graph_message(g), "");

    tw_error error = {0};
    tw_session *s;
    tw_coordinator *c;
    tw_tensor *results[2] = {0};
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_ok(tw_session_run(s, NULL, 0, &initialize, 1, NULL, &error));
    assert_ok(tw_coordinator_create(&c, &error));
    assert_ok(tw_start_queue_runners(s, c, &error));
    bool seen[RECORDS] = {false};
    int out_of_order = 0, previous = -1;
    for (int step = 0; step < RECORDS / BATCH; step++) {
        assert_ok(tw_session_run(s, NULL, 0, taken, 2, results, &error));
        for (int i = 0; i < BATCH; i++) {
            int label = (int)tw_tensor_value(results[1], i);
            assert_false(seen[label]);
            seen[label] = true;
            out_of_order += label < previous;
            previous = label;
            for (int row = 0; row < SIDE; row++)
                for (int column = 0; column < SIDE; column++)
                    for (int channel = 0; channel < 3; channel++)
                        assert_int_equal((int)tw_tensor_value(results[0], ((i * SIDE + row) * SIDE + column) * 3 + channel),
                                         (channel * SIDE + row) * SIDE + column + label);
        }
    }
    assert_true(out_of_order > 3);
    assert_fails(tw_session_run(s, NULL, 0, taken, 2, results, &error), TW_OUT_OF_RANGE, "insufficient elements");
    tw_coordinator_request_stop(c, &error);
    assert_ok(tw_coordinator_join(c, PATIENCE, &error));
    tw_coordinator_destroy(c);
    tw_tensor_release(results[0]);
    tw_tensor_release(results[1]);
    tw_session_destroy(s);
    tw_graph_destroy(g);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_distortion_draws_and_computes_what_tensorflow_does),
        cmocka_unit_test(a_file_of_records_becomes_shuffled_batches_of_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

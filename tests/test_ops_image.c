/* test_ops_image.c - images and raw bytes: TensorFlow's numbers, refusals. */
#include "op_testing.h"

#include <tower/session.h>

static void image_ops_give_the_numbers_of_tensorflow(void **state)
{
    (void)state;
    twt_run_golden("ops_image.txt");
}

static void contrast_in_half_is_that_of_floats_rounded(void **state)
{
    (void)state;
    tw_error error = {0};
    static const float values[] = {1, 4, -2.5f, 8, 0.125f, 3};
    uint16_t halves[6];
    for (int i = 0; i < 6; i++)
        halves[i] = tw_float_to_half(values[i]);
    twt_op op = {.op = "AdjustContrastv2", .num_inputs = 2};
    op.inputs[0] = tw_tensor_from(TW_FLOAT16, TW_SHAPE(3, 1, 2), halves);
    op.inputs[1] = tw_tensor_float(0.5f);
    assert_ok(twt_op_run(&op, &error));
    for (int i = 0; i < 6; i++) {
        float mean = (values[i % 2] + values[i % 2 + 2] + values[i % 2 + 4]) / 3;
        float expected = tw_half_to_float(tw_float_to_half((values[i] - mean) * 0.5f + mean));
        assert_true(fabs(tw_tensor_value(op.outputs[0], i) - expected) < 0.004);
    }
    twt_op_release(&op);
}

/* ---- pictures ---------------------------------------------------------------------------------------------- */

static tw_tensor *slope(int channels)
{
    tw_tensor *image = tw_tensor_create(TW_UINT8, TW_SHAPE(9, 12, channels));
    for (int64_t i = 0; i < tw_tensor_elements(image); i++)
        ((uint8_t *)tw_tensor_data(image))[i] = (uint8_t)(40 + i / channels + i % channels * 30);
    return image;
}

/* What is left of an image that `encode` made a file of, when it is decoded again. */
static tw_tensor *encode_and_decode(const char *encode, tw_tensor *image)
{
    tw_error error = {0};
    tw_session *session;
    tw_tensor *result = NULL;
    tw_graph *g = tw_graph_create();
    tw_output x = tw_constant(g, image);
    tw_output file = tw_node_output(tw_add_node(g, encode, NULL, &x, 1, NULL, 0), 0);
    tw_output decoded = tw_node_output(tw_add_node(g, "DecodeImage", NULL, &file, 1, NULL, 0), 0);
    assert_ok(tw_session_create(g, NULL, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &decoded, 1, &result, &error));
    tw_session_destroy(session);
    tw_graph_destroy(g);
    return result;
}

static void check_picture(const char *encode, int channels, int off_by)
{
    tw_tensor *image = slope(channels), *result = encode_and_decode(encode, image);
    assert_true(tw_shape_equal(tw_tensor_shape(result), tw_tensor_shape(image)));
    for (int64_t i = 0; i < tw_tensor_elements(image); i++)
        if (!(fabs(tw_tensor_value(result, i) - tw_tensor_value(image, i)) <= off_by))
            fail_msg("%s of %d channels: element %lld is %g, was %g", encode, channels, (long long)i,
                     tw_tensor_value(result, i), tw_tensor_value(image, i));
    tw_tensor_release(image);
    tw_tensor_release(result);
}

static void pictures_are_what_they_were_before_they_were_encoded(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 4; channels++)
        check_picture("EncodePng", channels, 0);
    check_picture("EncodeJpeg", 1, 8); /* of 255: what is lost at quality 95 */
    check_picture("EncodeJpeg", 3, 8);
}

static void bytes_that_are_no_picture_are_refused(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_session *session;
    tw_tensor *result = NULL, *bytes = tw_tensor_string("GIF89a...", 9),
              *cut = tw_tensor_string("\x89PNG\r\n\x1a\n", 8);
    tw_graph *g = tw_graph_create();
    tw_output gif = tw_constant(g, bytes), png = tw_constant(g, cut);
    tw_output a = tw_node_output(tw_add_node(g, "DecodePng", "a", &gif, 1, NULL, 0), 0);
    tw_output b = tw_node_output(tw_add_node(g, "DecodeJpeg", "b", &png, 1, NULL, 0), 0);
    assert_ok(tw_session_create(g, NULL, &session, &error));
    assert_fails(tw_session_run(session, NULL, 0, &a, 1, &result, &error), TW_UNIMPLEMENTED, "a GIF");
    assert_fails(tw_session_run(session, NULL, 0, &b, 1, &result, &error), TW_INVALID_ARGUMENT, "damaged PNG");
    tw_session_destroy(session);
    tw_graph_destroy(g);
    tw_tensor_release(bytes);
    tw_tensor_release(cut);
}

/* An image as summaries have it: its tag, its size, and a PNG. */
static void an_image_summary_holds_a_png(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_session *session;
    tw_tensor *result = NULL, *tag = tw_tensor_string("eye", 3),
              *image = tw_tensor_create(TW_FLOAT32, TW_SHAPE(1, 2, 3, 1));
    static const uint8_t red[] = {255, 0, 0, 255};
    tw_tensor *bad = tw_tensor_from(TW_UINT8, TW_SHAPE(4), red);
    tw_graph *g = tw_graph_create();
    tw_output inputs[] = {tw_constant(g, tag), tw_constant(g, image)};
    tw_attr attrs[] = {tw_attr_int("max_images", 1), tw_attr_tensor("bad_color", bad)};
    tw_output summary = tw_node_output(tw_add_node(g, "ImageSummary", NULL, inputs, 2, attrs, 2), 0);
    static const char start[] = "\x0a\x09"
                                "eye/image"
                                "\x22",
                      size[] = "\x08\x02\x10\x03\x18\x01\x22", png[] = "\x89PNG";
    assert_ok(tw_session_create(g, NULL, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &summary, 1, &result, &error));
    const tw_string *text = tw_tensor_data(result);
    assert_memory_equal(text->data + 2, start, sizeof start - 1); /* behind the key and length of the value, */
    assert_memory_equal(text->data + 2 + sizeof start, size, sizeof size - 1);             /* of the image, */
    assert_memory_equal(text->data + 2 + sizeof start + sizeof size, png, sizeof png - 1); /* and of the PNG */
    tw_session_destroy(session);
    tw_graph_destroy(g);
    tw_tensor_release(result);
    tw_tensor_release(tag);
    tw_tensor_release(image);
    tw_tensor_release(bad);
}

/* Small whole numbers, which every type has. */
static tw_tensor *images_of(tw_dtype dtype)
{
    tw_error error = {0};
    twt_op cast = {.op = "Cast", .num_inputs = 1, .inputs = {tw_tensor_create(TW_FLOAT32, TW_SHAPE(1, 4, 3, 2))},
                   .attrs = {tw_attr_type("DstT", dtype)}, .num_attrs = 1};
    for (int i = 0; i < 24; i++)
        ((float *)tw_tensor_data(cast.inputs[0]))[i] = (float)(i * 5 % 16);
    assert_ok(twt_op_run(&cast, &error));
    tw_tensor *made = tw_tensor_retain(cast.outputs[0]);
    twt_op_release(&cast);
    return made;
}

static twt_op resized(const char *name, tw_dtype dtype)
{
    static const int32_t size[] = {8, 6};
    static const float box[] = {0.25f, 0, 1, 0.75f};
    static const int32_t first[] = {0};
    twt_op op = {.op = name, .num_inputs = 2,
                 .inputs = {images_of(dtype), tw_tensor_from(TW_INT32, TW_SHAPE(2), size)}};
    if (strcmp(name, "CropAndResize") == 0) {
        op.inputs[3] = op.inputs[1];
        op.inputs[1] = tw_tensor_from(TW_FLOAT32, TW_SHAPE(1, 4), box);
        op.inputs[2] = tw_tensor_from(TW_INT32, TW_SHAPE(1), first);
        op.num_inputs = 4;
    }
    return op;
}

static void images_of_every_type_are_resized_as_floats_are(void **state)
{
    static const struct {
        const char *op;
        tw_dtype types[10]; /* besides float, which ends them */
    } cases[] = {
        {"ResizeNearestNeighbor", {TW_INT8, TW_UINT8, TW_INT16, TW_UINT16, TW_INT32, TW_INT64, TW_FLOAT16, TW_BFLOAT16,
                                   TW_FLOAT64, TW_FLOAT32}},
        {"ResizeBilinear", {TW_INT8, TW_UINT8, TW_INT16, TW_UINT16, TW_INT32, TW_INT64, TW_FLOAT16, TW_BFLOAT16,
                            TW_FLOAT64, TW_FLOAT32}},
        {"ResizeBicubic", {TW_INT8, TW_UINT8, TW_INT16, TW_UINT16, TW_INT32, TW_INT64, TW_FLOAT16, TW_BFLOAT16,
                           TW_FLOAT64, TW_FLOAT32}},
        {"ResizeArea", {TW_INT8, TW_UINT8, TW_INT16, TW_UINT16, TW_INT32, TW_INT64, TW_FLOAT16, TW_BFLOAT16,
                        TW_FLOAT64, TW_FLOAT32}},
        {"ResizeNearestNeighborGrad", {TW_INT8, TW_UINT8, TW_INT32, TW_FLOAT16, TW_BFLOAT16, TW_FLOAT64, TW_FLOAT32}},
        {"CropAndResize", {TW_INT8, TW_UINT8, TW_INT16, TW_UINT16, TW_INT32, TW_INT64, TW_FLOAT16, TW_FLOAT64,
                           TW_FLOAT32}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tw_error error = {0};
        twt_op floats = resized(cases[i].op, TW_FLOAT32);
        assert_ok(twt_op_run(&floats, &error));
        for (const tw_dtype *dtype = cases[i].types; *dtype != TW_FLOAT32; dtype++) {
            twt_op op = resized(cases[i].op, *dtype);
            assert_ok(twt_op_run(&op, &error));
            for (int64_t k = 0; k < tw_tensor_elements(op.outputs[0]); k++)
                if (fabs(tw_tensor_value(op.outputs[0], k) - tw_tensor_value(floats.outputs[0], k)) > 1e-6)
                    fail_msg("%s of %s: element %d is %g, not %g", cases[i].op, tw_dtype_name(*dtype), (int)k,
                             tw_tensor_value(op.outputs[0], k), tw_tensor_value(floats.outputs[0], k));
            twt_op_release(&op);
        }
        twt_op_release(&floats);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(image_ops_give_the_numbers_of_tensorflow),
        cmocka_unit_test(contrast_in_half_is_that_of_floats_rounded),
        cmocka_unit_test(pictures_are_what_they_were_before_they_were_encoded),
        cmocka_unit_test(bytes_that_are_no_picture_are_refused),
        cmocka_unit_test(an_image_summary_holds_a_png),
        cmocka_unit_test(images_of_every_type_are_resized_as_floats_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

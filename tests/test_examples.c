/* Batches that are made where they are used: the same to the bit as those of an input pipeline. */
#include "op_testing.h"

#include <tower/data.h>
#include <tower/explain.h>
#include <tower/session.h>

enum { COUNT = 37, SIDE = 9, STEPS = 12, OF_STEP = 10, CROP = 6 };

static tw_error error;

typedef struct kind {
    tw_augmentation augmentation;
    int channels, out; /* side of the images that come out */
    bool shuffle;
} kind;

static const kind kinds[] = {
    {TW_AUGMENT_NONE, 1, SIDE, true},           {TW_AUGMENT_NONE, 3, SIDE, false},
    {TW_AUGMENT_TUTORIAL_TRAIN, 3, CROP, true}, {TW_AUGMENT_TUTORIAL_TRAIN, 1, CROP, true},
    {TW_AUGMENT_TUTORIAL_EVAL, 3, CROP, true},  {TW_AUGMENT_PAD_CROP_FLIP, 3, SIDE, true},
    {TW_AUGMENT_REFLECT_CROP_ALTERNATE, 3, SIDE, true}, {TW_AUGMENT_REFLECT_CROP_ALTERNATE, 1, SIDE, false},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static tw_tensor *wrap(tw_dtype type, tw_shape shape, const void *values)
{
    tw_tensor *t = tw_tensor_from(type, shape, values);
    assert_non_null(t);
    return t;
}

/* The op for a batch of a step; `first` of OF_STEP examples. */
static twt_op batch_of(const tw_dataset *d, const kind *kind, int64_t step, int first, int batch)
{
    return (twt_op){
        .op = "TowerBatch",
        .num_inputs = 3,
        .inputs = {wrap(TW_UINT8, TW_SHAPE(COUNT, SIDE, SIDE, kind->channels), tw_dataset_images(d)),
                   wrap(TW_INT32, TW_SHAPE(COUNT), tw_dataset_labels(d)), tw_tensor_int64(step)},
        .num_attrs = 9,
        .attrs = {tw_attr_int("batch", batch), tw_attr_int("examples", OF_STEP), tw_attr_int("first", first),
                  tw_attr_int("seed", 5), tw_attr_bool("shuffle", kind->shuffle),
                  tw_attr_int("augmentation", kind->augmentation), tw_attr_int("crop", CROP),
                  tw_attr_float("scale", 0.25f), tw_attr_float("offset", -1)},
    };
}

/* Two towers with shares of 7 and 3 of each step, through several epochs. */
static void batches_are_those_of_the_pipeline_to_the_bit(void **state)
{
    (void)state;
    static const int shares[] = {7, 3};
    for (int i = 0; i < KINDS; i++) {
        const kind *kind = &kinds[i];
        float images[OF_STEP * SIDE * SIDE * 3];
        int32_t labels[OF_STEP];
        size_t values = (size_t)(kind->out * kind->out * kind->channels);
        tw_dataset *d;
        tw_pipeline *p;
        assert_ok(tw_dataset_synthetic(COUNT, SIDE, SIDE, kind->channels, 10, 3, &d, &error));
        assert_ok(tw_pipeline_create(d, &(tw_pipeline_options){.towers = 2, .shares = shares, .seed = 5, .threads = 1,
                                                               .shuffle = kind->shuffle, .crop = CROP, .scale = 0.25f,
                                                               .offset = -1, .augmentation = kind->augmentation},
                                     &p, &error));
        for (int step = 0; step < STEPS; step++)
            for (int tower = 0; tower < 2; tower++) {
                twt_op op = batch_of(d, kind, step, tower ? shares[0] : 0, shares[tower]);
                op.threads = 1 + step % 3;
                assert_ok(tw_pipeline_next(p, tower, images, labels, &error));
                assert_ok(twt_op_run(&op, &error));
                assert_int_equal(tw_tensor_elements(op.outputs[0]), values * (size_t)shares[tower]);
                assert_memory_equal(op.outputs[0]->data, images, tw_tensor_bytes(op.outputs[0]));
                assert_memory_equal(op.outputs[1]->data, labels, sizeof *labels * (size_t)shares[tower]);
                twt_op_release(&op);
            }
        tw_pipeline_destroy(p);
        tw_dataset_destroy(d);
    }
}

/* Numbers that no training run comes to read nothing beside the data set. */
static void any_step_has_a_batch(void **state)
{
    (void)state;
    static const int64_t steps[] = {-1, INT64_MIN, INT64_MAX, INT64_MAX / OF_STEP};
    tw_dataset *d;
    assert_ok(tw_dataset_synthetic(COUNT, SIDE, SIDE, 3, 10, 3, &d, &error));
    for (int i = 0; i < 4; i++) {
        twt_op op = batch_of(d, &kinds[2], steps[i], 0, OF_STEP);
        assert_ok(twt_op_run(&op, &error));
        for (int k = 0; k < OF_STEP; k++)
            assert_in_range(((int32_t *)op.outputs[1]->data)[k], 0, 9);
        twt_op_release(&op);
    }
    tw_dataset_destroy(d);
}

static void assert_refused(const tw_dataset *d, tw_attr attr, const char *words)
{
    twt_op op = batch_of(d, &kinds[2], 0, 0, 4);
    for (int i = 0; i < op.num_attrs; i++)
        if (strcmp(op.attrs[i].name, attr.name) == 0)
            op.attrs[i] = attr;
    assert_fails(twt_op_run(&op, &error), TW_INVALID_ARGUMENT, words);
    twt_op_release(&op);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    tw_dataset *d;
    assert_ok(tw_dataset_synthetic(COUNT, SIDE, SIDE, 3, 10, 3, &d, &error));
    assert_refused(d, tw_attr_int("batch", 0), "a batch of 0 examples");
    assert_refused(d, tw_attr_int("batch", OF_STEP + 1), "of a step of 10 examples");
    assert_refused(d, tw_attr_int("first", 7), "a batch of 4 examples from number 7 on");
    assert_refused(d, tw_attr_int("first", -1), "from number -1 on");
    assert_refused(d, tw_attr_int("examples", INT64_MAX), "of a step of");
    assert_refused(d, tw_attr_int("crop", SIDE + 1), "cannot crop 10x10 pixels of images of 9x9");
    assert_refused(d, tw_attr_int("augmentation", 5), "unknown augmentation 5");
    twt_op op = batch_of(d, &kinds[2], 0, 0, 4);
    tw_tensor_release(op.inputs[1]);
    op.inputs[1] = tw_tensor_create(TW_INT32, TW_SHAPE(COUNT - 1));
    assert_fails(twt_op_run(&op, &error), TW_INVALID_ARGUMENT, "37 images have 36 labels");
    twt_op_release(&op);
    tw_dataset_destroy(d);
}

/* A data set on virtual GPUs, which have no variables of bytes; its memory is accounted for as input. */
static void a_data_set_lies_on_a_gpu_once_it_is_given(void **state)
{
    (void)state;
    tw_dataset *d;
    tw_devices *devices;
    tw_session *s;
    tw_memory *memory;
    tw_tensor *values[2] = {NULL};
    tw_graph *g = tw_graph_create();
    tw_variable data[] = {{.name = "images", .dtype = TW_UINT8, .shape = TW_SHAPE(COUNT, SIDE, SIDE, 3)},
                          {.name = "labels", .dtype = TW_INT32, .shape = TW_SHAPE(COUNT)}};
    tw_output inputs[3], outputs[2];
    assert_ok(tw_dataset_synthetic(COUNT, SIDE, SIDE, 3, 10, 3, &d, &error));
    twt_op op = batch_of(d, &kinds[2], 2, 0, 4);
    TW_DEVICE(g, "/gpu:0") {
        for (int i = 0; i < 2; i++) {
            tw_attr attrs[] = {tw_attr_type("dtype", data[i].dtype), tw_attr_shape("shape", data[i].shape)};
            data[i].handle = tw_node_output(tw_add_node(g, "TowerData", data[i].name, NULL, 0, attrs, 2), 0);
            inputs[i] = tw_read_variable(g, data[i].handle);
        }
        inputs[2] = tw_constant(g, op.inputs[2]);
        tw_node *node = tw_add_node(g, "TowerBatch", NULL, inputs, 3, op.attrs, op.num_attrs);
        outputs[0] = tw_node_output(node, 0);
        outputs[1] = tw_node_output(node, 1);
    }
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = 1, .no_gpus = true}, &devices, &error));
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &s, &error));
    assert_fails(tw_session_run(s, NULL, 0, outputs, 2, values, &error), TW_FAILED_PRECONDITION, "images");
    for (int i = 0; i < 2; i++)
        assert_ok(tw_session_set_variable(s, &data[i], op.inputs[i], &error));
    assert_ok(tw_session_run(s, NULL, 0, outputs, 2, values, &error));
    assert_ok(twt_op_run(&op, &error));
    for (int i = 0; i < 2; i++)
        assert_memory_equal(values[i]->data, op.outputs[i]->data, tw_tensor_bytes(values[i]));
    assert_ok(tw_session_memory(s, &memory, &error));
    int64_t input = 0;
    for (int i = 0; i < memory->devices[1].num_items; i++)
        if (memory->devices[1].items[i].use == TW_MEMORY_INPUT &&
            strcmp(memory->devices[1].items[i].op, "TowerData") == 0)
            input += memory->devices[1].items[i].bytes;
    assert_int_equal(input, COUNT * (SIDE * SIDE * 3 + 4));
    assert_int_equal(memory->devices[1].total, tw_devices_info(devices, 1).memory_used);
    tw_memory_destroy(memory);
    for (int i = 0; i < 2; i++)
        tw_tensor_release(values[i]);
    tw_session_destroy(s);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
    twt_op_release(&op);
    tw_dataset_destroy(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_those_of_the_pipeline_to_the_bit),
        cmocka_unit_test(any_step_has_a_batch),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(a_data_set_lies_on_a_gpu_once_it_is_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

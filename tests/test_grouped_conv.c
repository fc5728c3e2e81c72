/* Convolutions in groups: each kernel that takes one, and graphs of them on every kind of device, against a convolution
 * for each group by itself. */
#include "conv_testing.h"
#include "grouped_training.h"

/* What the fast kernels like, but for the groups. */
static const conv_case cases[] = {
    {2, 8, 8, 32, 64, 3, 3, 1, "SAME", 2},    {2, 9, 9, 64, 64, 3, 3, 2, "SAME", 8},
    {3, 9, 8, 64, 64, 1, 1, 1, "SAME", 4},    {2, 10, 10, 128, 64, 5, 5, 2, "SAME", 2},
    {1, 7, 6, 6, 4, 3, 2, 1, "VALID", 2},     {2, 5, 5, 32, 32, 1, 1, 2, "VALID", 2},
    {2, 6, 6, 12, 12, 3, 3, 1, "SAME", 12},   {1, 6, 6, 4, 8, 3, 3, 2, "SAME", 4},
    {2, 9, 8, 2, 16, 3, 8, 1, "VALID", 2},    {2, 14, 14, 6, 64, 5, 5, 2, "SAME", 2},
};
enum { CASES = sizeof cases / sizeof *cases };

/* ---- kernels ----------------------------------------------------------------------------------------------- */

/* Group `i` of what has channels or filters along its last axis. */
static value part_of(const value *whole, int64_t groups, int64_t i)
{
    tw_shape shape = whole->operand.shape;
    int64_t all = shape.dims[3], each = shape.dims[3] = all / groups;
    value part = make(TW_FLOAT32, shape);
    for (int64_t k = 0; k < part.operand.elements; k++)
        put(&part, k, get(whole, k / each * all + i * each + k % each));
    return part;
}

static void run_plain(const char *op, const lab *l, value *inputs, int num_inputs, value *output)
{
    tw_error error = {0};
    const kernel_call k = {op, "plain", 2, l->attrs, 4, inputs, num_inputs, output, 1};
    assert_ok(call(&k, &error));
}

/* The op with all groups at once; `grouped` says which inputs have groups. */
static void check_plain(const char *op, const lab *l, const value *inputs, int num_inputs, unsigned grouped,
                        const value *like, int64_t groups)
{
    value all[3], whole = make(TW_FLOAT32, like->operand.shape);
    memcpy(all, inputs, sizeof *all * (size_t)num_inputs);
    run_plain(op, l, all, num_inputs, &whole);
    for (int64_t i = 0; i < groups; i++) {
        value parts[3], expected = part_of(like, groups, i), found = part_of(&whole, groups, i);
        for (int k = 0; k < num_inputs; k++)
            parts[k] = grouped >> k & 1 ? part_of(&inputs[k], groups, i) : inputs[k];
        run_plain(op, l, parts, num_inputs, &expected);
        assert_near(&found, &expected);
        for (int k = 0; k < num_inputs; k++)
            if (grouped >> k & 1)
                drop(&parts[k]);
        drop(&expected), drop(&found);
    }
    drop(&whole);
}

static void plain_ones_are_a_convolution_for_each_group(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        int64_t strides[4];
        lab l = open_lab(&cases[i], strides);
        check_plain("Conv2D", &l, (value[]){l.x, l.filter}, 2, 3, &l.dy, cases[i].groups);
        check_plain("Conv2DBackpropInput", &l, (value[]){l.sizes, l.filter, l.dy}, 3, 6, &l.x, cases[i].groups);
        check_plain("Conv2DBackpropFilter", &l, (value[]){l.x, l.sizes, l.dy}, 3, 5, &l.filter, cases[i].groups);
        close_lab(&l);
    }
}

/* Whether the row takes the case; if so, it gives what the plain one does, and ours the same bits on one thread. */
static bool takes(const twi_kernel *row, const lab *l)
{
    const int threads = strcmp(row->name, "onednn") == 0 ? 1 : 3;
    value forward[] = {l->x, l->filter, l->bias}, to_input[] = {l->sizes, l->filter, l->dy},
          to_filter[] = {l->x, l->sizes, l->dy};
    if (strcmp(row->op, "Conv2D") == 0)
        return agrees(row->name, row->op, l, forward, 2, &l->dy, false, threads);
    if (strcmp(row->op, "_FusedConv2D") == 0)
        return agrees(row->name, row->op, l, forward, 3, &l->dy, false, threads);
    if (strcmp(row->op, "Conv2DBackpropInput") == 0)
        return agrees(row->name, row->op, l, to_input, 3, &l->x, false, threads);
    bool biased = strcmp(row->op, "_Conv2DBackpropFilterBias") == 0;
    return (biased || strcmp(row->op, "Conv2DBackpropFilter") == 0) &&
           agrees(row->name, row->op, l, to_filter, 3, &l->filter, biased, threads);
}

static void whatever_row_takes_one_gives_what_the_plain_one_gives(void **state)
{
    (void)state;
    int taken = 0;
    for (int i = 0; i < 2 * CASES; i++) {
        int64_t strides[4];
        lab l = open_lab(&cases[i / 2], strides);
        if (i % 2)
            make_filter_constant(&l);
        for (const twi_kernel *const *family = twi_cpu_kernels; *family; family++)
            for (const twi_kernel *row = *family; row->op; row++)
                if (row->types & TWI_TYPE(TW_FLOAT32) && strcmp(row->name, "plain") != 0)
                    taken += takes(row, &l);
        close_lab(&l);
    }
    assert_true(taken > 0); /* oneDNN's */
}

/* ---- graphs ------------------------------------------------------------------------------------------------ */

static void networks_of_them_train_on_every_device_and_layout_as_with_a_convolution_for_each_group(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *all;
    assert_ok(tw_devices_create(TW_OPTIONS(tw_device_options, .virtual_gpus = 1, .cpu_threads = 2), &all, &error));
    float expected[GROUPED_STEPS], losses[GROUPED_STEPS];
    grouped_train(all, &(grouped_run){"/cpu:0", .apart = true, .disable = "all"}, expected);
    assert_true(expected[GROUPED_STEPS - 1] < expected[0]);
    for (int i = 0; i < 8; i++) {
        const grouped_run run = {i & 1 ? "/gpu:0" : "/cpu:0", .channels_first = i & 2,
                                 .disable = !(i & 4) ? NULL : i & 2 ? "fuse" : "all"};
        grouped_train(all, &run, losses);
        assert_floats_near(losses, expected, GROUPED_STEPS, 1e-6);
    }
    tw_devices_destroy(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_ones_are_a_convolution_for_each_group),
        cmocka_unit_test(whatever_row_takes_one_gives_what_the_plain_one_gives),
        cmocka_unit_test(networks_of_them_train_on_every_device_and_layout_as_with_a_convolution_for_each_group),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}

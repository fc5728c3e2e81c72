/* What rewrites make one launch of on a card: scalars, losses, buckets, batches. Order, and how many launches are left;
 * that the kernels compute what the CPU's do is test_cuda's business. On a card that is not there (card.h). */
#include "testing.h"

#include "card.h"
#include "planned_nodes.h"
#include "random_networks.h"

#include <tower/tower.h>

static tw_devices *devices;

static tw_session *open_session(tw_graph *g, const char *disable)
{
    tw_error error = {0};
    tw_session *session;
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices, .disable = disable}, &session, &error));
    return session;
}

static double run_one(tw_session *session, tw_output fetch)
{
    tw_error error = {0};
    tw_tensor *value = NULL;
    assert_ok(tw_session_run(session, NULL, 0, &fetch, 1, fetch.index < 0 ? NULL : &value, &error));
    double number = value ? tw_tensor_value(value, 0) : 0;
    tw_tensor_release(value);
    return number;
}

static tw_variable *make_step(tw_graph *g)
{
    return tw_get_variable(g, "step", TW_INT64, TW_SCALAR, (tw_initializer){0});
}

static tw_output one_more(tw_graph *g, const tw_variable *step)
{
    return tw_assign_add(g, step->handle, tw_scalar_of(g, TW_INT64, 1));
}

/* ---- schedules --------------------------------------------------------------------------------------------------- */

enum { SCHEDULES = 6, STEPS = 5 };

static tw_output rate_of(tw_graph *g, int schedule, const tw_variable *step)
{
    switch (schedule) {
    case 0:
        return tw_exponential_decay(g, 0.1f, step, 3, 0.5f, true);
    case 1:
        return tw_exponential_decay(g, 0.1f, step, 3, 0.5f, false);
    case 2:
        return tw_piecewise_constant(g, step, (const int64_t[]){0, 2}, 2, (const float[]){0.5f, 0.25f, 0.125f});
    case 3:
        return tw_polynomial_decay(g, 0.1f, step, 4, 0.01f, 2);
    case 4:
        return tw_cosine_decay(g, 0.1f, step, 4, 0.01f);
    default:
        return tw_warm_up(g, tw_scalar(g, 0.1f), step, 3);
    }
}

/* The rates of some steps; *joint: how many programs make them, and nothing else. */
static void follow(const char *device, int schedule, double *rates, int *joint)
{
    tw_graph *g = tw_graph_create();
    tw_variable *step = NULL;
    tw_output rate = {0}, count = {0};
    TW_DEVICE(g, "%s", device) {
        step = make_step(g);
        rate = rate_of(g, schedule, step);
        count = one_more(g, step);
    }
    tw_session *session = open_session(g, NULL);
    run_one(session, step->initializer);
    for (int i = 0; i < STEPS; i++) {
        rates[i] = run_one(session, rate);
        run_one(session, count);
    }
    static const char *const apart[] = {"Cast", "Mul", "RealDiv", "Pow", "Minimum", "Select", "SelectV2",
                                        "Greater", "Cos"};
    *joint = planned_nodes(session, "_Scalars");
    for (size_t i = 0; *joint && i < sizeof apart / sizeof *apart; i++)
        assert_int_equal(planned_nodes(session, apart[i]), 0);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

static void every_schedule_is_one_launch(void **state)
{
    (void)state;
    for (int i = 0; i < SCHEDULES; i++) {
        double expected[STEPS], found[STEPS];
        int joint[2];
        follow("/cpu:0", i, expected, &joint[0]);
        follow("/gpu:0", i, found, &joint[1]);
        assert_int_equal(joint[0], 0);
        assert_int_equal(joint[1], 1);
        assert_true(expected[0] != expected[STEPS - 1]);
        for (int k = 0; k < STEPS; k++)
            if (fabs(found[k] - expected[k]) > 1e-6 * fabs(expected[k]))
                fail_msg("schedule %d at step %d is %.9g, expected %.9g", i, k, found[k], expected[k]);
    }
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* What is computed of a count before it grows, by way of a matrix and after: two programs; the second one writes, reads
 * what it wrote, and has constants that wait for it. */
static void what_comes_before_and_after_a_count_grows_is_two_programs(void **state)
{
    (void)state;
    for (int joined = 0; joined < 2; joined++) {
        tw_graph *g = tw_graph_create();
        tw_variable *step = NULL;
        tw_output before = {0}, after = {0}, sum = {0};
        TW_DEVICE(g, "/gpu:0") {
            step = make_step(g);
            before = tw_mul(g, tw_cast(g, step->value, TW_FLOAT32), tw_scalar(g, 10));
            tw_output row = tw_fill(g, tw_constant_int32s(g, TW_SHAPE(1), (int32_t[]){3}), before);
            sum = tw_reduce_sum(g, row, NULL, 0, false);
            TW_CONTROL(g, sum) {
                tw_output grown = one_more(g, step);
                TW_CONTROL(g, grown) {
                    after = tw_cast(g, tw_variable_read(g, step), TW_FLOAT32);
                    after = tw_add(g, tw_mul(g, after, tw_scalar(g, 100)), tw_identity(g, sum));
                }
            }
        }
        tw_session *session = open_session(g, joined ? NULL : "scalars");
        run_one(session, step->initializer);
        for (int i = 0; i < 4; i++) {
            assert_true(run_one(session, after) == 100 * (i + 1) + 30 * i);
            assert_true(run_one(session, step->value) == i + 1);
        }
        assert_int_equal(planned_nodes(session, "_Scalars"), joined ? 2 : 0);
        assert_int_equal(planned_nodes(session, "AssignAddVariableOp"), joined ? 0 : 1);
        tw_session_destroy(session);
        tw_graph_destroy(g);
    }
}

/* A read that no order puts before or after the write keeps the write out of every program. */
static void a_read_at_any_time_leaves_the_write_alone(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_variable *step = NULL;
    tw_output fetches[2] = {{0}};
    TW_DEVICE(g, "/gpu:0") {
        step = make_step(g);
        tw_output more = tw_cast(g, tw_cast(g, tw_placeholder(g, TW_FLOAT32, TW_SCALAR), TW_INT32), TW_INT64);
        fetches[0] = tw_mul(g, tw_variable_read(g, step), tw_variable_read(g, step));
        fetches[1] = tw_assign_add(g, step->handle, more);
        tw_session *session = open_session(g, NULL);
        tw_tensor *five = tw_tensor_float(5), *values[2] = {NULL};
        run_one(session, step->initializer);
        tw_feed feed = {tw_node_input(tw_node_input(more.node, 0).node, 0), five};
        for (int i = 0; i < 3; i++) {
            assert_ok(tw_session_run(session, &feed, 1, fetches, 2, values, &error));
            double old = tw_tensor_value(values[0], 0);
            assert_true(old == 25 * i * i || old == 25 * (i + 1) * (i + 1));
        }
        assert_int_equal(planned_nodes(session, "AssignAddVariableOp"), 1);
        assert_int_equal(planned_nodes(session, "_Scalars"), 1);
        tw_tensor_release(five);
        tw_tensor_release(values[0]);
        tw_session_destroy(session);
    }
    tw_graph_destroy(g);
}

/* Two that count one variable, one after the other, stay two. */
static void two_writes_of_a_variable_stay_apart(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_variable *step = NULL;
    tw_output twice = {0};
    TW_DEVICE(g, "/gpu:0") {
        step = make_step(g);
        tw_output once = one_more(g, step);
        TW_CONTROL(g, once)
            twice = one_more(g, step);
    }
    tw_session *session = open_session(g, NULL);
    run_one(session, step->initializer);
    run_one(session, twice);
    assert_true(run_one(session, step->value) == 2);
    assert_int_equal(planned_nodes(session, "AssignAddVariableOp"), 2);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

/* More steps, and sums of more terms, than one program holds: 1 + 2 + 3 + ... */
static void long_programs_are_several(void **state)
{
    (void)state;
    enum { LONG = 150, WIDE = 40 };
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output start = {0}, end = {0}, terms[WIDE];
    TW_DEVICE(g, "/gpu:0") {
        start = end = tw_placeholder(g, TW_FLOAT32, TW_SCALAR);
        for (int i = 0; i < LONG; i++)
            end = tw_add(g, end, tw_scalar(g, (float)i));
        for (int i = 0; i < WIDE; i++)
            terms[i] = tw_mul(g, end, tw_scalar(g, (float)i));
        end = tw_add_n(g, terms, WIDE);
    }
    tw_session *session = open_session(g, NULL);
    tw_tensor *zero = tw_tensor_float(0), *value = NULL;
    assert_ok(tw_session_run(session, &(tw_feed){start, zero}, 1, &end, 1, &value, &error));
    assert_true(tw_tensor_value(value, 0) == LONG * (LONG - 1) / 2 * WIDE * (WIDE - 1) / 2.0);
    assert_in_range(planned_nodes(session, "_Scalars"), 3, 5);
    assert_int_equal(planned_nodes(session, "AddV2") + planned_nodes(session, "Mul") + planned_nodes(session, "AddN"),
                     0);
    tw_tensor_release(zero);
    tw_tensor_release(value);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* Who else wants the losses of examples, or the gradient of the softmax as it is, keeps the nodes apart. */
static void losses_that_others_want_stay_apart(void **state)
{
    (void)state;
    for (int others = 0; others < 3; others++) {
        tw_error error = {0};
        tw_graph *g = tw_graph_create();
        tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(2, 3)), fetches[3] = {{0}};
        TW_DEVICE(g, "/gpu:0") {
            tw_output labels = tw_constant_int32s(g, TW_SHAPE(2), (int32_t[]){0, 2});
            tw_output losses = tw_sparse_softmax_cross_entropy(g, x, labels);
            fetches[0] = tw_reduce_mean(g, losses, NULL, 0, false);
            tw_gradients(g, fetches, 1, NULL, &x, 1, &fetches[1]);
            fetches[2] = others == 1 ? losses : (tw_output){losses.node, 1};
        }
        tw_session *session = open_session(g, NULL);
        tw_tensor *logits = tw_tensor_create(TW_FLOAT32, TW_SHAPE(2, 3)), *values[3] = {NULL};
        memset(tw_tensor_data(logits), 0, tw_tensor_bytes(logits));
        assert_ok(tw_session_run(session, &(tw_feed){x, logits}, 1, fetches, others ? 3 : 2, values, &error));
        assert_int_equal(planned_nodes(session, "_SoftmaxLoss"), others == 0);
        assert_true(fabs(tw_tensor_value(values[0], 0) - log(3)) < 1e-6);
        assert_true(fabs(tw_tensor_value(values[1], 0) + 1 / 3.0) < 1e-6);
        if (others)
            assert_true(fabs(tw_tensor_value(values[2], 0) - (others == 1 ? log(3) : -2 / 3.0)) < 1e-6);
        for (int i = 0; i < 3; i++)
            tw_tensor_release(values[i]);
        tw_tensor_release(logits);
        tw_session_destroy(session);
        tw_graph_destroy(g);
    }
}

/* ---- counting beside updates ------------------------------------------------------------------------------------- */

enum { FOLLOWED = 4 };

/* A step whose rate is of the old count and whose averages have a weight of the new one; if it is looked at, `last` is
 * what is there after both the update and the count. Values are those after some steps. Returns how many launches of
 * a step come one after the other. */
static long count_and_update(const char *device, const char *disable, bool look, double values[FOLLOWED])
{
    long depth;
    tw_graph *g = tw_graph_create();
    tw_output step = {0}, start = {0}, seen[FOLLOWED] = {{0}};
    TW_DEVICE(g, "%s", device) {
        tw_variable *v[] = {tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(3), (tw_initializer){.a = 8}),
                            tw_get_variable(g, "w", TW_FLOAT32, TW_SHAPE(2), (tw_initializer){.a = 4})};
        tw_variable *last = tw_make_variable(g, "last", &(tw_new_variable){.dtype = TW_FLOAT32, .shape = TW_SHAPE(3)});
        tw_variable *count = tw_global_step(g);
        tw_output old = tw_cast(g, count->value, TW_FLOAT32);
        tw_optimizer *sgd = tw_gradient_descent(g, tw_div(g, tw_scalar(g, 1), tw_add(g, old, tw_scalar(g, 4))));
        tw_output loss = tw_add(g, tw_l2_loss(g, v[0]->value), tw_l2_loss(g, v[1]->value));
        tw_output apply = tw_apply_gradients(sgd, tw_compute_gradients_of(sgd, loss, v, 2), count);
        tw_averages *averages = tw_moving_averages(g, 0.9f, count, apply);
        TW_CONTROL(g, apply) {
            tw_output new = tw_cast(g, tw_variable_read(g, count), TW_FLOAT32);
            step = tw_assign(g, last->handle, tw_add(g, tw_variable_read(g, v[0]), new));
        }
        step = tw_group(g, (tw_output[]){averages->update, step}, look ? 2 : 1);
        seen[0] = tw_reduce_sum(g, v[0]->value, NULL, 0, false);
        seen[1] = tw_reduce_sum(g, last->value, NULL, 0, false);
        seen[2] = tw_reduce_sum(g, averages->averages[0]->value, NULL, 0, false);
        seen[3] = tw_identity(g, count->value);
    }
    start = tw_initialize_variables(g);
    tw_session *session = open_session(g, disable);
    run_one(session, start);
    run_one(session, step);
    depth = card_count("depth");
    run_one(session, step); /* which is recorded */
    depth = card_count("depth") - depth;
    run_one(session, step);
    for (int i = 0; i < FOLLOWED; i++)
        values[i] = run_one(session, seen[i]);
    tw_session_destroy(session);
    tw_graph_destroy(g);
    return depth;
}

static void counting_does_not_wait_for_updates_and_nobody_can_tell(void **state)
{
    (void)state;
    double cpu[FOLLOWED], apart[FOLLOWED], together[FOLLOWED];
    count_and_update("/cpu:0", NULL, true, cpu);
    count_and_update("/gpu:0", "scalars", true, apart);
    count_and_update("/gpu:0", NULL, true, together);
    assert_true(cpu[3] == 3 && cpu[1] == cpu[0] + 9 && cpu[2] > cpu[0]);
    for (int i = 0; i < FOLLOWED; i++) {
        assert_true(apart[i] == cpu[i]);
        assert_true(together[i] == cpu[i]);
    }
    assert_int_equal(count_and_update("/gpu:0", "averages", false, together),
                     3); /* the count, the update, the averages */
    assert_int_equal(count_and_update("/gpu:0", NULL, false, together), 2);
}

/* Where somebody looks at the count itself, it is counted when the update is done. */
static void a_count_that_is_asked_for_comes_after_the_update(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output apply = {0};
    tw_variable *v = NULL;
    TW_DEVICE(g, "/gpu:0") {
        v = tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(3), (tw_initializer){.a = 8});
        tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.5f));
        tw_grads *grads = tw_compute_gradients_of(sgd, tw_l2_loss(g, v->value), &v, 1);
        apply = tw_apply_gradients(sgd, grads, tw_global_step(g));
    }
    tw_output start = tw_initialize_variables(g), sum = tw_reduce_sum(g, v->value, NULL, 0, false);
    tw_session *session = open_session(g, NULL);
    run_one(session, start);
    run_one(session, apply);
    assert_true(run_one(session, sum) == 12 && run_one(session, tw_global_step(g)->value) == 1);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

/* ---- buckets ----------------------------------------------------------------------------------------------------- */

/* What somebody else wants of a gradient stays a node, and the bucket reads that. */
static void gradients_that_others_want_are_laid_end_to_end_as_they_are(void **state)
{
    (void)state;
    for (int others = 0; others < 3; others++) {
        tw_error error = {0};
        tw_graph *g = tw_graph_create();
        tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(2)), fetches[2] = {{0}}, start = {0};
        TW_DEVICE(g, "/gpu:0") {
            tw_variable *v = tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(2), (tw_initializer){.a = 8});
            tw_output half = tw_scalar(g, 0.5f), wide, sum;
            wide = tw_cast(g, tw_cast(g, x, TW_BFLOAT16), TW_FLOAT32);
            sum = tw_add_n(g, (tw_output[]){wide, tw_mul(g, half, v->value)}, 2);
            fetches[0] = tw_concat(g, (tw_output[]){sum, x}, 2, 0);
            fetches[1] = others == 1 ? wide : sum;
            start = tw_initialize_variables(g);
        }
        tw_session *session = open_session(g, NULL);
        tw_tensor *three = tw_tensor_create(TW_FLOAT32, TW_SHAPE(2)), *values[2] = {NULL};
        ((float *)tw_tensor_data(three))[0] = ((float *)tw_tensor_data(three))[1] = 3;
        run_one(session, start);
        assert_ok(tw_session_run(session, &(tw_feed){x, three}, 1, fetches, others ? 2 : 1, values, &error));
        assert_int_equal(planned_nodes(session, "_JoinGradients"), 1);
        assert_int_equal(planned_nodes(session, "Cast"), others ? 2 : 1);
        assert_int_equal(planned_nodes(session, "AddN"), others == 2);
        assert_true(tw_tensor_value(values[0], 1) == 7 && tw_tensor_value(values[0], 2) == 3);
        for (int i = 0; i < 2; i++)
            tw_tensor_release(values[i]);
        tw_tensor_release(three);
        tw_session_destroy(session);
        tw_graph_destroy(g);
    }
}

static void a_gradient_that_travels_alone_gets_its_decay_by_the_same_launch(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(2, 1)), fetch = {0}, start = {0};
    TW_DEVICE(g, "/gpu:0") {
        tw_variable *v = tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(2, 1), (tw_initializer){.a = 8});
        tw_output wide = tw_cast(g, tw_cast(g, x, TW_BFLOAT16), TW_FLOAT32);
        tw_output sum = tw_add_n(g, (tw_output[]){wide, tw_mul(g, tw_scalar(g, 0.5f), v->value)}, 2);
        int first = tw_graph_num_nodes(g);
        fetch = tw_mul(g, tw_reshape(g, sum, TW_SHAPE(-1)), tw_scalar(g, 10));
        tw_mark_reduction(g, first);
        start = tw_initialize_variables(g);
    }
    tw_session *session = open_session(g, NULL);
    tw_tensor *three = tw_tensor_create(TW_FLOAT32, TW_SHAPE(2, 1)), *value = NULL;
    ((float *)tw_tensor_data(three))[0] = ((float *)tw_tensor_data(three))[1] = 3;
    run_one(session, start);
    assert_ok(tw_session_run(session, &(tw_feed){x, three}, 1, &fetch, 1, &value, &error));
    assert_int_equal(planned_nodes(session, "_JoinGradients"), 1);
    assert_int_equal(planned_nodes(session, "Cast"), 1);
    assert_int_equal(planned_nodes(session, "AddN"), 0);
    assert_true(tw_tensor_value(value, 0) == 70 && tw_tensor_value(value, 1) == 70);
    tw_tensor_release(value);
    tw_tensor_release(three);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

/* A batch, its images in bfloat16 and back, and perhaps as floats: what each fetch gives. */
static void make_batches(const char *disable, bool floats_too, tw_tensor *values[3], int *fused)
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output inputs[3], fetches[3];
    tw_tensor *images = tw_tensor_create(TW_UINT8, TW_SHAPE(5, 6, 6, 3)), *step = tw_tensor_create(TW_INT64, TW_SCALAR);
    for (int i = 0; i < 5 * 6 * 6 * 3; i++)
        ((uint8_t *)tw_tensor_data(images))[i] = (uint8_t)(i * i * 7 >> 3);
    *(int64_t *)tw_tensor_data(step) = 2;
    tw_attr attrs[] = {tw_attr_int("batch", 4), tw_attr_int("examples", 4),
                       tw_attr_int("augmentation", TW_AUGMENT_TUTORIAL_TRAIN), tw_attr_int("crop", 4)};
    TW_DEVICE(g, "/gpu:0") {
        inputs[0] = tw_constant(g, images);
        inputs[1] = tw_constant_int32s(g, TW_SHAPE(5), (int32_t[]){4, 2, 0, 1, 3});
        inputs[2] = tw_placeholder(g, TW_INT64, TW_SCALAR);
        tw_node *batch = tw_add_node(g, "TowerBatch", "batch", inputs, 3, attrs, 4);
        fetches[0] = tw_cast(g, tw_cast(g, tw_node_output(batch, 0), TW_BFLOAT16), TW_FLOAT32);
        fetches[1] = tw_node_output(batch, 1);
        fetches[2] = tw_node_output(batch, 0);
    }
    tw_session *session = open_session(g, disable);
    assert_ok(tw_session_run(session, &(tw_feed){inputs[2], step}, 1, fetches, floats_too ? 3 : 2, values, &error));
    *fused = planned_nodes(session, "_TowerBatch");
    assert_int_equal(planned_nodes(session, "TowerBatch"), !*fused);
    tw_tensor_release(images);
    tw_tensor_release(step);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

static void images_that_only_a_cast_reads_are_made_in_its_type(void **state)
{
    (void)state;
    for (int floats_too = 0; floats_too < 2; floats_too++) {
        tw_tensor *apart[3] = {NULL}, *joined[3] = {NULL};
        int fused;
        make_batches("fuse", floats_too, apart, &fused);
        assert_int_equal(fused, 0);
        make_batches(NULL, floats_too, joined, &fused);
        assert_int_equal(fused, !floats_too);
        for (int i = 0; i < 2 + floats_too; i++)
            assert_memory_equal(tw_tensor_data(joined[i]), tw_tensor_data(apart[i]), tw_tensor_bytes(apart[i]));
        for (int i = 0; i < 3; i++) {
            tw_tensor_release(apart[i]);
            tw_tensor_release(joined[i]);
        }
    }
}

/* ---- normalizations behind convolutions ------------------------------------------------------------------------- */

/* Multiples of an eighth from -1 to 1, another from place to place. */
static tw_output made_up(tw_graph *g, tw_shape shape, int step)
{
    tw_tensor *t = tw_tensor_create(TW_FLOAT32, shape);
    assert_non_null(t);
    for (int64_t i = 0; i < tw_tensor_elements(t); i++)
        ((float *)tw_tensor_data(t))[i] = (float)(i * step % 17 - 8) / 8;
    tw_output made = tw_cast(g, tw_constant(g, t), TW_BFLOAT16);
    tw_tensor_release(t);
    return made;
}

/* What a ReLU gives of a normalized convolution; with `apart` the scale waits for the convolution, so that the two are
 * not joined. Returns how often an engine of cuDNN's ran. */
static long normalize(int batch, bool apart, tw_tensor **value)
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output y = {0}, none = {0};
    TW_DEVICE(g, "/gpu:0") {
        tw_output image = made_up(g, TW_SHAPE(batch, 3, 2, 16), 5);
        tw_output x = tw_conv2d(g, image, made_up(g, TW_SHAPE(3, 3, 16, 16), 7), NULL);
        tw_output zero = tw_mul(g, tw_reduce_sum(g, tw_cast(g, x, TW_FLOAT32), NULL, 0, false), tw_scalar(g, 0));
        tw_output one = tw_cast(g, made_up(g, TW_SHAPE(16), 3), TW_FLOAT32), scale = apart ? tw_add(g, one, zero) : one;
        y = tw_cast(g, tw_relu(g, tw_fused_batch_norm(g, x, scale, one, none, none, 0.001f, true).y), TW_FLOAT32);
    }
    tw_session *session = open_session(g, "fold");
    long ran = -card_count("cudnnBackendExecute");
    assert_ok(tw_session_run(session, NULL, 0, &y, 1, value, &error));
    assert_int_equal(planned_nodes(session, "_Conv2DBatchNormRelu"), !apart);
    ran += card_count("cudnnBackendExecute");
    tw_session_destroy(session);
    tw_graph_destroy(g);
    return ran;
}

/* By a kernel of ours, or by an engine behind which the moments come of a launch of their own. */
static void convolutions_of_either_maker_are_normalized_alike(void **state)
{
    (void)state;
    for (int cudnn = 0; cudnn < 2; cudnn++) {
        tw_tensor *one = NULL, *other = NULL;
        setenv("TOWER_CONVOLUTIONS", cudnn ? "cudnn" : "tower:0", 1);
        assert_int_equal(normalize(1 + cudnn, false, &one) > 0, cudnn);
        normalize(1 + cudnn, true, &other);
        for (int64_t i = 0; i < tw_tensor_elements(one); i++)
            assert_true(fabs(tw_tensor_value(one, i) - tw_tensor_value(other, i)) <=
                        0.01 * fmax(1, fabs(tw_tensor_value(other, i))));
        tw_tensor_release(one);
        tw_tensor_release(other);
    }
    unsetenv("TOWER_CONVOLUTIONS");
}

/* ---- what is drawn at random ------------------------------------------------------------------------------------- */

enum { ENDS = 120, NETWORKS = 24 };

/* What is fetched of an end of a step, or a network, after three steps. */
static int run_drawn(bool network, unsigned seed, const char *disable, tw_tensor **results)
{
    static const char *const card[] = {"/gpu:0", "/gpu:0", "/gpu:0"};
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output x = {0}, fetches[TWT_END_FETCHES], initialize;
    int count = 0;
    TW_DEVICE(g, "/gpu:0") {
        x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(TWT_SIDE, TWT_SIDE));
        count = network ? twt_random_network(g, x, seed, fetches) : twt_random_end(g, x, seed, card, fetches);
    }
    initialize = tw_initialize_variables(g);
    tw_session *session = open_session(g, disable);
    run_one(session, initialize);
    for (int step = 0; step < 3; step++) {
        float values[TWT_CELLS];
        for (int i = 0; i < TWT_CELLS; i++)
            values[i] = (float)((i * 7 + step * 5) % 11) / 4 - 1;
        tw_tensor *value = tw_tensor_from(TW_FLOAT32, tw_output_shape(x), values);
        assert_ok(tw_session_run(session, &(tw_feed){x, value}, 1, fetches, count, results, &error));
        tw_tensor_release(value);
    }
    tw_session_destroy(session);
    tw_graph_destroy(g);
    return count;
}

/* Without rewrites, and with them. */
static void compare_drawn(bool network, unsigned seed, double tolerance)
{
    tw_tensor *apart[TWT_END_FETCHES] = {NULL}, *joined[TWT_END_FETCHES] = {NULL};
    int count = run_drawn(network, seed, "all", apart);
    assert_int_equal(run_drawn(network, seed, NULL, joined), count);
    for (int i = 0; i < count; i++) {
        for (int64_t k = 0; k < tw_tensor_elements(apart[i]); k++) {
            double a = tw_tensor_value(joined[i], k), b = tw_tensor_value(apart[i], k);
            if (a != b && !(isnan(a) && isnan(b)) && !(fabs(a - b) <= tolerance * fmax(1, fabs(b))))
                fail_msg("seed %u: fetch %d is %.9g, expected %.9g", seed, i, a, b);
        }
        tw_tensor_release(apart[i]);
        tw_tensor_release(joined[i]);
    }
}

static void random_ends_of_steps_give_what_they_give_launch_by_launch(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < ENDS; seed++)
        compare_drawn(false, seed, 1e-5);
}

static void random_networks_give_what_they_give_launch_by_launch(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < NETWORKS; seed++)
        compare_drawn(true, seed, twt_has_narrow_layers(seed) ? 0.02 : 1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_schedule_is_one_launch),
        cmocka_unit_test(what_comes_before_and_after_a_count_grows_is_two_programs),
        cmocka_unit_test(a_read_at_any_time_leaves_the_write_alone),
        cmocka_unit_test(two_writes_of_a_variable_stay_apart),
        cmocka_unit_test(long_programs_are_several),
        cmocka_unit_test(losses_that_others_want_stay_apart),
        cmocka_unit_test(counting_does_not_wait_for_updates_and_nobody_can_tell),
        cmocka_unit_test(a_count_that_is_asked_for_comes_after_the_update),
        cmocka_unit_test(images_that_only_a_cast_reads_are_made_in_its_type),
        cmocka_unit_test(convolutions_of_either_maker_are_normalized_alike),
        cmocka_unit_test(gradients_that_others_want_are_laid_end_to_end_as_they_are),
        cmocka_unit_test(a_gradient_that_travels_alone_gets_its_decay_by_the_same_launch),
        cmocka_unit_test(random_ends_of_steps_give_what_they_give_launch_by_launch),
        cmocka_unit_test(random_networks_give_what_they_give_launch_by_launch),
    };
    tw_error error;
    assert_ok(tw_devices_create(NULL, &devices, &error));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tw_devices_destroy(devices);
    return failed;
}

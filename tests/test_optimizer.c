/* test_optimizer.c - the nodes that training is made of: names, order and colocation as in TensorFlow, and the errors.
 * What they compute is in test_train.c. */
#include "testing.h"

#include <tower/ops.h>
#include <tower/train.h>

static tw_variable *weights(tw_graph *g, const char *name)
{
    return tw_get_variable(g, name, TW_FLOAT32, TW_SHAPE(2, 3), (tw_initializer){.kind = TW_INIT_CONSTANT, .a = 1});
}

/* Half the sum of squares: a loss of one variable. */
static tw_output loss_of(tw_graph *g, const tw_variable *v)
{
    return tw_l2_loss(g, tw_variable_read(g, v));
}

static void assert_built(tw_graph *g)
{
    if (tw_graph_status(g) != TW_OK)
        fail_msg("%s", tw_graph_message(g));
}

static tw_node *find(tw_graph *g, const char *name, const char *op)
{
    tw_node *node = tw_graph_find(g, name);
    if (!node)
        fail_msg("there is no node '%s'", name);
    assert_string_equal(tw_node_op(node), op);
    return node;
}

static bool runs_after(const tw_node *node, const tw_node *before)
{
    for (int i = 0; i < tw_node_num_control_inputs(node); i++)
        if (tw_node_control_input(node, i) == before)
            return true;
    return false;
}

static const char *class_of(const tw_node *node)
{
    const tw_attr *class = tw_node_attr(node, "_class");
    return class ? class->strings[0].data : "";
}

/* By gradient descent; what TensorFlow's other optimizers do about the slots of rows that nobody looked up differs. */
static void only_the_rows_that_a_gradient_touches_are_updated(void **state)
{
    (void)state;
    for (int dense = 0; dense < 2; dense++) {
        tw_graph *g = tw_graph_create();
        tw_variable *w = weights(g, "w");
        tw_output ids = tw_constant_int32s(g, TW_SHAPE(3), (int32_t[]){1, 0, 1});
        tw_output loss = tw_l2_loss(g, tw_gather(g, tw_variable_read(g, w), ids, 0));
        if (dense)
            loss = tw_add(g, loss, loss_of(g, w));
        tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.1f));
        tw_apply_gradients(sgd, tw_compute_gradients(sgd, loss), NULL);
        assert_built(g);
        if (dense) {
            find(g, "GradientDescent/update_w/ResourceApplyGradientDescent", "ResourceApplyGradientDescent");
        } else {
            tw_node *update = find(g, "GradientDescent/update_w/ResourceScatterSub", "ResourceScatterSub");
            assert_true(tw_shape_equal(tw_output_shape(tw_node_input(update, 1)), TW_SHAPE(3)));
            assert_true(tw_shape_equal(tw_output_shape(tw_node_input(update, 2)), TW_SHAPE(3, 3)));
        }
        tw_graph_destroy(g);
    }
}

static void every_read_of_a_variable_adds_to_its_gradient(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_variable *w = weights(g, "w");
    tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.1f));
    tw_grads *grads = tw_compute_gradients(sgd, tw_add(g, loss_of(g, w), loss_of(g, w)));
    assert_built(g);
    assert_int_equal(grads->count, 1);
    assert_string_equal(tw_node_op(grads->gradients[0].node), "AddN");
    assert_true(tw_shape_equal(tw_output_shape(grads->gradients[0]), w->shape));
    tw_graph_destroy(g);
}

static void gradient_descent_makes_the_nodes_of_tensorflow(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_variable *w = weights(g, "conv1/weights");
    tw_variable *step = tw_global_step(g);
    tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.1f));
    tw_output train = tw_apply_gradients(sgd, tw_compute_gradients(sgd, loss_of(g, w)), step);
    assert_built(g);
    assert_int_equal(train.index, -1);
    assert_ptr_equal(train.node, find(g, "GradientDescent", "AssignAddVariableOp"));
    assert_string_equal(class_of(train.node), "loc:@global_step");
    tw_node *update = find(g, "GradientDescent/update_conv1/weights/ResourceApplyGradientDescent",
                           "ResourceApplyGradientDescent");
    assert_string_equal(class_of(update), "loc:@conv1/weights");
    tw_node *all = find(g, "GradientDescent/update", "NoOp");
    assert_true(runs_after(all, update));
    assert_true(runs_after(train.node, all));
    assert_int_equal(tw_get_collection(g, "train_op", NULL, NULL, 0), 1);
    tw_graph_destroy(g);
}

static void without_a_counter_the_step_is_a_node_of_the_optimizers_name(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_variable *w = weights(g, "w");
    tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.1f));
    tw_output train = tw_apply_gradients(sgd, tw_compute_gradients(sgd, loss_of(g, w)), NULL);
    assert_built(g);
    assert_ptr_equal(train.node, find(g, "GradientDescent", "NoOp"));
    tw_graph_destroy(g);
}

static void slots_are_named_and_placed_after_their_variable_even_where_variables_are_reused(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_variable *w = weights(g, "w");
    tw_reuse_variables(g);
    tw_optimizer *o[] = {tw_momentum(g, tw_scalar(g, 0.1f), 0.9f, false),
                         tw_adam(g, tw_scalar(g, 0.1f), 0.9f, 0.999f, 1e-8f),
                         tw_rms_prop(g, tw_scalar(g, 0.1f), 0.9f, 0, 1e-10f)};
    tw_grads *grads = tw_compute_gradients(o[0], loss_of(g, w));
    for (int i = 0; i < 3; i++)
        tw_apply_gradients(o[i], grads, NULL);
    assert_built(g);
    static const char *const slots[] = {"w/Momentum", "w/Adam",      "w/Adam_1",   "w/RMSProp",
                                        "w/RMSProp_1", "beta1_power", "beta2_power"};
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        tw_variable *slot = tw_graph_find_variable(g, slots[i]);
        if (!slot)
            fail_msg("there is no variable '%s'", slots[i]);
        assert_false(slot->trainable);
        assert_string_equal(class_of(slot->handle.node), "loc:@w");
    }
    tw_node *advance = find(g, "Adam/Assign", "AssignVariableOp");
    assert_true(runs_after(advance, find(g, "Adam/update_w/ResourceApplyAdam", "ResourceApplyAdam")));
    tw_graph_destroy(g);
}

static void a_second_optimizer_of_a_kind_has_slots_of_its_own(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_variable *w = weights(g, "w");
    tw_optimizer *first = tw_momentum(g, tw_scalar(g, 0.1f), 0.9f, false);
    tw_optimizer *second = tw_momentum(g, tw_scalar(g, 0.1f), 0.9f, false);
    tw_grads *grads = tw_compute_gradients(first, loss_of(g, w));
    tw_apply_gradients(first, grads, NULL);
    int before = tw_graph_num_variables(g);
    tw_apply_gradients(first, grads, NULL);
    assert_int_equal(tw_graph_num_variables(g), before);
    tw_apply_gradients(second, grads, NULL);
    assert_built(g);
    assert_non_null(tw_graph_find_variable(g, "w/Momentum_1"));
    tw_graph_destroy(g);
}

static void variables_may_have_an_optimizer_apart(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_variable *w = weights(g, "a/kernel"), *head = weights(g, "head/kernel"), *bias = weights(g, "hidden/bias");
    tw_variable *step = tw_global_step(g);
    tw_optimizer *muon = tw_muon(g, tw_scalar(g, 0.1f), NULL);
    tw_optimize_apart(muon, "head/kernel", tw_gradient_descent(g, tw_scalar(g, 0.2f)));
    tw_optimize_apart(muon, "/kernel", tw_adam(g, tw_scalar(g, 0.3f), 0.9f, 0.999f, 1e-8f));
    tw_output loss = tw_add(g, tw_add(g, loss_of(g, w), loss_of(g, head)), loss_of(g, bias));
    tw_apply_gradients(muon, tw_compute_gradients(muon, loss), step);
    assert_built(g);
    find(g, "Muon/update_head/kernel/ResourceApplyGradientDescent", "ResourceApplyGradientDescent");
    find(g, "Muon/update_a/kernel/ResourceApplyAdam", "ResourceApplyAdam");
    assert_non_null(tw_graph_find_variable(g, "a/kernel/Adam_1"));
    assert_non_null(tw_graph_find_variable(g, "beta1_power"));
    assert_non_null(tw_graph_find_variable(g, "hidden/bias/Momentum"));
    assert_null(tw_graph_find_variable(g, "head/kernel/Momentum"));
    tw_graph_destroy(g);
}

/* Something that nobody can ask of the optimizers of g. */
static void ask_in_vain(int what, tw_graph *g, tw_graph *other_graph)
{
    tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.1f)), *divided = tw_gradient_descent(g, tw_scalar(g, 1));
    tw_grads *grads = tw_compute_gradients(sgd, loss_of(g, weights(g, "w")));
    switch (what) {
    case 0:
        tw_optimize_apart(sgd, "x", sgd);
        break;
    case 1:
        tw_optimize_apart(sgd, "x", tw_gradient_descent(other_graph, tw_scalar(other_graph, 1)));
        break;
    case 2:
        tw_optimize_apart(divided, "x", tw_gradient_descent(g, tw_scalar(g, 1)));
        tw_optimize_apart(sgd, "y", divided);
        break;
    case 3:
        for (int i = 0; i < 9; i++)
            tw_optimize_apart(sgd, "x", divided);
        break;
    case 4:
        assert_null(tw_clip_gradients(g, grads, 0));
        break;
    case 5:
        assert_null(tw_clip_gradients_by_norm(g, grads, 0, NULL));
        break;
    case 6:
        tw_decouple_weight_decay(sgd, -0.1f, 0);
        break;
    case 7:
        tw_guard_optimizer(sgd, tw_fixed_loss_scale(g, 2));
        break;
    case 8:
        tw_muon(g, tw_scalar(g, 1), TW_OPTIONS(tw_muon_options, .momentum = 1.5f));
        break;
    case 9:
        tw_muon(g, tw_scalar(g, 1), TW_OPTIONS(tw_muon_options, .iterations = -1));
        break;
    case 10:
        assert_null(tw_fixed_loss_scale(g, 0.5f));
        break;
    case 11:
        assert_null(tw_automatic_loss_scale(g, 1 << 25, 1));
        break;
    case 12:
        assert_null(tw_automatic_loss_scale(g, 2, 0));
        break;
    default:
        for (int i = 0; i < 65; i++)
            tw_add_loss(g, tw_scalar(g, 1));
        assert_null(tw_average_losses(g, 0.9f, tw_scalar(g, 65)).node);
        break;
    }
}

static void what_no_optimizer_does_is_refused(void **state)
{
    (void)state;
    static const char *const messages[] = {
        "variables '...x' are to be updated apart, by an optimizer that is the same",
        "variables '...x' are to be updated apart, by an optimizer that is another graph's",
        "variables '...y' are to be updated apart, by an optimizer that is itself divided",
        "more than 8 optimizers apart in one",
        "gradients clipped to 0, expected more than 0",
        "gradients clipped to a norm of 0, expected more than 0",
        "a weight decay of -0.1, expected 0 or more",
        "an optimizer is guarded by an automatic loss scale",
        "Muon with a momentum of 1.5 and 0 iterations",
        "Muon with a momentum of 0 and -1 iterations",
        "a loss scale of 0.5, expected 1 to 2^24",
        "a loss scale of 3.35544e+07, expected 1 to 2^24",
        "a loss scale that doubles every 0 steps, expected 1 or more",
        "averages of 65 losses in '', expected at most 64",
    };
    for (int i = 0; i < (int)(sizeof messages / sizeof *messages); i++) {
        tw_graph *g = tw_graph_create(), *other = tw_graph_create();
        ask_in_vain(i, g, other);
        assert_message(tw_graph_message(g), messages[i]);
        tw_graph_destroy(g);
        tw_graph_destroy(other);
    }
}

/* A matrix with orthogonal rows of length 1 and 2 comes out with both of about the same length; a vector moves by
 * momentum: rate * (gradient + 0.95 * gradient). */
static void muon_moves_all_directions_of_a_matrix_alike(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_session *session;
    tw_tensor *after = NULL;
    for (int tall = 0; tall < 2; tall++) {
        tw_graph *g = tw_graph_create();
        tw_shape shape = tall ? TW_SHAPE(3, 2) : TW_SHAPE(2, 3);
        tw_variable *w = tw_get_variable(g, "w", TW_FLOAT32, shape, (tw_initializer){0});
        tw_variable *b = tw_get_variable(g, "b", TW_FLOAT32, TW_SHAPE(1), (tw_initializer){0});
        tw_output slopes =
            tw_constant_floats(g, shape, tall ? (float[]){1, 0, 0, 2, 0, 0} : (float[]){1, 0, 0, 0, 2, 0});
        tw_output loss = tw_add(g, tw_reduce_sum(g, tw_mul(g, tw_variable_read(g, w), slopes), TW_AXES(0, 1), false),
                                tw_reduce_sum(g, tw_variable_read(g, b), TW_AXES(0), false));
        tw_optimizer *muon = tw_muon(g, tw_scalar(g, 0.5f), NULL);
        tw_output train = tw_apply_gradients(muon, tw_compute_gradients(muon, loss), NULL),
                  init = tw_initialize_variables(g);
        assert_built(g);
        assert_ok(tw_session_create(g, NULL, &session, &error));
        assert_ok(tw_session_run(session, NULL, 0, &init, 1, NULL, &error));
        assert_ok(tw_session_run(session, NULL, 0, &train, 1, NULL, &error));
        assert_ok(tw_session_get_variable(session, w, &after, &error));
        for (int i = 0; i < 6; i++) {
            double moved = tw_tensor_value(after, i) / -0.5;
            bool straight = i == 0 || i == (tall ? 3 : 4);
            assert_true(straight ? moved > 0.65 && moved < 1.25 : moved == 0);
        }
        tw_tensor_release(after);
        assert_ok(tw_session_get_variable(session, b, &after, &error));
        assert_true(fabs(tw_tensor_value(after, 0) + 0.5 * 1.95) < 1e-6);
        tw_tensor_release(after);
        tw_session_destroy(session);
        tw_graph_destroy(g);
    }
}

/* Two towers: w has a gradient in both, u in the first only, v in none. */
static void build_towers(tw_graph *g, tw_grads *grads[2])
{
    tw_variable *w = weights(g, "w"), *u = weights(g, "u");
    weights(g, "v");
    tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.1f));
    for (int i = 0; i < 2; i++)
        TW_NAME_SCOPE(g, "tower_%d", i) {
            tw_output loss = loss_of(g, w);
            grads[i] = tw_compute_gradients(sgd, i == 0 ? tw_add(g, loss, loss_of(g, u)) : loss);
        }
}

static void averages_are_the_nodes_of_the_tutorial(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_grads *grads[2];
    build_towers(g, grads);
    tw_grads *average = tw_average_gradients(g, grads, 2, &(tw_average_options){.missing_as_zero = true});
    assert_built(g);
    tw_node *mean = find(g, "Mean", "Mean"), *concat = find(g, "concat", "ConcatV2");
    assert_ptr_equal(average->gradients[0].node, mean);
    assert_ptr_equal(tw_node_input(mean, 0).node, concat);
    assert_ptr_equal(tw_node_input(concat, 0).node, find(g, "ExpandDims", "ExpandDims"));
    assert_ptr_equal(tw_node_input(concat, 1).node, find(g, "ExpandDims_1", "ExpandDims"));
    assert_true(tw_shape_equal(tw_output_shape(average->gradients[0]), TW_SHAPE(2, 3)));
    assert_ptr_equal(average->gradients[1].node, find(g, "Mean_1", "Mean"));
    assert_string_equal(average->variables[1]->name, "u");
    assert_null(average->gradients[2].node);
    tw_graph_destroy(g);
}

static void one_tower_is_its_own_average(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_grads *grads[2];
    build_towers(g, grads);
    int nodes = tw_graph_num_nodes(g);
    assert_ptr_equal(tw_average_gradients(g, grads, 1, NULL), grads[0]);
    assert_int_equal(tw_graph_num_nodes(g), nodes);
    tw_graph_destroy(g);
}

static void a_gradient_that_one_tower_lacks_is_an_error_naming_variable_and_tower(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_grads *grads[2];
    build_towers(g, grads);
    assert_null(tw_average_gradients(g, grads, 2, NULL));
    assert_int_equal(tw_graph_status(g), TW_INVALID_ARGUMENT);
    assert_message(tw_graph_message(g), "'u' has a gradient in tower 0, but none in tower 1");
    tw_graph_destroy(g);
}

static char told[512];

static void keep_text(void *user, int level, const char *text)
{
    (void)user;
    (void)level;
    snprintf(told, sizeof told, "%s", text);
}

static void a_variable_without_gradient_is_left_alone_and_named_in_the_log(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_grads *grads[2];
    build_towers(g, grads);
    tw_set_log(keep_text, NULL, 1);
    tw_apply_gradients(tw_gradient_descent(g, tw_scalar(g, 0.1f)), grads[0], NULL);
    tw_set_log(NULL, NULL, 0);
    assert_built(g);
    assert_string_equal(told, "variable 'v' has no gradient and is not trained");
    assert_null(tw_graph_find(g, "GradientDescent/update_v/ResourceApplyGradientDescent"));
    tw_graph_destroy(g);
}

static void a_loss_without_variables_cannot_be_trained(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    weights(g, "w");
    tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.1f));
    tw_output train = tw_apply_gradients(sgd, tw_compute_gradients(sgd, tw_scalar(g, 3)), NULL);
    assert_null(train.node);
    assert_message(tw_graph_message(g), "No gradients provided for any of 1 variables, the first of them w");
    tw_graph_destroy(g);
}

static void a_total_loss_adds_the_losses_of_its_tower_only(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output totals[11];
    for (int i = 0; i < 11; i++)
        TW_NAME_SCOPE(g, "tower_%d", i) {
            tw_add_loss(g, tw_scalar(g, 1));
            tw_add_loss(g, tw_scalar(g, 2));
            totals[i] = tw_total_loss(g, NULL);
        }
    assert_built(g);
    assert_string_equal(tw_node_name(totals[1].node), "tower_1/total_loss");
    assert_int_equal(tw_node_num_inputs(totals[1].node), 2);
    assert_int_equal(tw_node_num_inputs(totals[10].node), 2);
    tw_total_loss(g, "tower_11");
    assert_message(tw_graph_message(g), "no loss lies inside the scope 'tower_11'");
    tw_graph_destroy(g);
}

static void tower_names_are_stripped_wherever_they_stand(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"tower_0/conv1", "conv1"},  {"tower_12/tower_3/x", "x"}, {"a/tower_1/b", "a/b"}, {"tower_/x", "x"},
        {"tower_1x/y", "tower_1x/y"}, {"tower_1", "tower_1"},      {"", ""},               {"watchtower_1/x", "watchx"},
    };
    char text[64];
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        assert_string_equal(tw_strip_tower_name(pairs[i][0], text, sizeof text), pairs[i][1]);
    assert_string_equal(tw_strip_tower_name("conv1", text, 4), "con");
}

static void averages_lie_beside_their_variables_and_follow_the_step(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_variable *w = weights(g, "w");
    tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.1f));
    tw_output train = tw_apply_gradients(sgd, tw_compute_gradients(sgd, loss_of(g, w)), tw_global_step(g));
    tw_averages *a = tw_moving_averages(g, 0.99f, tw_global_step(g), train);
    assert_built(g);
    assert_int_equal(a->count, 1);
    assert_string_equal(a->averages[0]->name, "w/ExponentialMovingAverage");
    assert_string_equal(class_of(a->averages[0]->handle.node), "loc:@w");
    assert_ptr_equal(tw_node_input(a->averages[0]->initializer.node, 1).node,
                     tw_node_input(w->initializer.node, 1).node);
    assert_ptr_equal(a->update.node, find(g, "ExponentialMovingAverage", "NoOp"));
    tw_node *update = find(g, "ExponentialMovingAverage/AssignMovingAvg", "AssignSubVariableOp");
    tw_node *difference = find(g, "ExponentialMovingAverage/AssignMovingAvg/sub", "Sub");
    assert_true(runs_after(a->update.node, update));
    for (int i = 0; i < 2; i++)
        assert_true(runs_after(tw_node_input(difference, i).node, train.node));
    assert_null(tw_moving_averages(g, 0.99f, NULL, train));
    assert_message(tw_graph_message(g), "'w' has a moving average already");
    tw_graph_destroy(g);
}

static void schedules_refuse_what_makes_no_sense(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    assert_null(tw_exponential_decay(g, 0.1f, tw_global_step(g), 0, 0.5f, true).node);
    assert_message(tw_graph_message(g), "exponential decay over 0 steps");
    tw_graph_destroy(g);
    g = tw_graph_create();
    assert_null(tw_piecewise_constant(g, tw_global_step(g), (int64_t[]){5, 5}, 2, (float[]){1, 2, 3}).node);
    assert_message(tw_graph_message(g), "5 follows 5");
    tw_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_rows_that_a_gradient_touches_are_updated),
        cmocka_unit_test(every_read_of_a_variable_adds_to_its_gradient),
        cmocka_unit_test(gradient_descent_makes_the_nodes_of_tensorflow),
        cmocka_unit_test(without_a_counter_the_step_is_a_node_of_the_optimizers_name),
        cmocka_unit_test(slots_are_named_and_placed_after_their_variable_even_where_variables_are_reused),
        cmocka_unit_test(a_second_optimizer_of_a_kind_has_slots_of_its_own),
        cmocka_unit_test(variables_may_have_an_optimizer_apart),
        cmocka_unit_test(what_no_optimizer_does_is_refused),
        cmocka_unit_test(muon_moves_all_directions_of_a_matrix_alike),
        cmocka_unit_test(averages_are_the_nodes_of_the_tutorial),
        cmocka_unit_test(one_tower_is_its_own_average),
        cmocka_unit_test(a_gradient_that_one_tower_lacks_is_an_error_naming_variable_and_tower),
        cmocka_unit_test(a_variable_without_gradient_is_left_alone_and_named_in_the_log),
        cmocka_unit_test(a_loss_without_variables_cannot_be_trained),
        cmocka_unit_test(a_total_loss_adds_the_losses_of_its_tower_only),
        cmocka_unit_test(tower_names_are_stripped_wherever_they_stand),
        cmocka_unit_test(averages_lie_beside_their_variables_and_follow_the_step),
        cmocka_unit_test(schedules_refuse_what_makes_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

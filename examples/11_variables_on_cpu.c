/* 11_variables_on_cpu.c - the tutorial's _variable_on_cpu: variables live on the CPU, towers compute on GPUs.
 *
 * Each GPU gets a copy of each variable once a step, and its gradient goes back; that is all that crosses. The last
 * lines say how many bytes that is. Whether it pays depends on the hardware: measure it.
 *
 * prints: weights on .*CPU:0.*tower_0 on .*GPU:0.*tower_1 on .*GPU:1.*loss fell: yes.*4 copies, 4800 bytes
 */
#include "example.h"

enum { TOWERS = 2, BATCH = 8, INPUTS = 300 };

static tw_variable *variable_on_cpu(tw_graph *g, const char *name, tw_shape shape, float stddev)
{
    tw_variable *variable = NULL;
    TW_DEVICE(g, "/cpu:0")
    variable = tw_get_variable(g, name, TW_FLOAT32, shape, (tw_initializer){TW_INIT_TRUNCATED_NORMAL, 0, stddev, 0});
    return variable;
}

/* Guesses the first input of each example; the inputs are the same at every step. */
static tw_output tower_loss(tw_graph *g, int tower)
{
    float x[BATCH * INPUTS], y[BATCH];
    for (int i = 0; i < BATCH * INPUTS; i++)
        x[i] = (float)((i * 37 + tower * 11) % 101) / 101;
    for (int i = 0; i < BATCH; i++)
        y[i] = x[i * INPUTS];
    tw_variable *weights = variable_on_cpu(g, "weights", TW_SHAPE(INPUTS, 1), 0.01f);
    if (!weights)
        return (tw_output){0};
    tw_output guess = tw_matmul(g, tw_constant_floats(g, TW_SHAPE(BATCH, INPUTS), x), weights->value);
    tw_output wrong = tw_sub(g, guess, tw_constant_floats(g, TW_SHAPE(BATCH, 1), y));
    return tw_reduce_mean(g, tw_square(g, wrong), NULL, 0, false);
}

int main(void)
{
    tw_error error = TW_NO_ERROR;
    tw_graph *g = tw_graph_create();
    tw_graph_set_seed(g, 1);
    tw_output fetches[TOWERS + 1] = {{0}};
    tw_grads *grads[TOWERS];
    tw_enter_device(g, "/cpu:0");
    tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.01f));
    for (int i = 0; i < TOWERS; i++)
        TW_DEVICE(g, "/gpu:%d", i)
        TW_NAME_SCOPE(g, "tower_%d", i) {
            fetches[i] = tower_loss(g, i);
            grads[i] = tw_compute_gradients(sgd, fetches[i]);
            tw_reuse_variables(g);
        }
    fetches[TOWERS] = tw_apply_gradients(sgd, tw_average_gradients(g, grads, TOWERS, NULL), NULL);
    tw_leave_device(g);
    tw_output init = tw_initialize_variables(g);

    tw_devices *devices = open_gpus(TOWERS);
    tw_session *session;
    tw_tensor *results[TOWERS + 1] = {0};
    check(tw_session_create(g, TW_OPTIONS(tw_session_options, .devices = devices), &session, &error), &error);
    check(tw_session_run(session, NULL, 0, &init, 1, NULL, &error), &error);
    double first = 0;
    for (int step = 0; step < 50; step++) {
        check(tw_session_run(session, NULL, 0, fetches, TOWERS + 1, results, &error), &error);
        first = step ? first : tw_tensor_value(results[0], 0);
    }
    tw_plan_info plan;
    check(tw_session_plan_info(session, &plan, &error), &error);
    printf("weights on %s\n", tw_session_device(session, tw_graph_find_variable(g, "weights")->handle.node));
    for (int i = 0; i < TOWERS; i++)
        printf("tower_%d on %s, loss %.4f\n", i, tw_session_device(session, fetches[i].node),
               tw_tensor_value(results[i], 0));
    printf("loss fell: %s\n", tw_tensor_value(results[0], 0) < first / 10 ? "yes" : "no");
    printf("%d copies, %lld bytes a step\n", plan.copies, (long long)plan.copied_bytes);

    for (int i = 0; i < TOWERS; i++)
        tw_tensor_release(results[i]);
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
    return 0;
}

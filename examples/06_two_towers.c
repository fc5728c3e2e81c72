/* 06_two_towers.c - training on two devices: gradients of two towers, their mean, one update. The README shows it.
 *
 * The towers share the variable w and see different examples of y = 3 x. The GPUs are virtual, so this runs anywhere.
 *
 * prints: w = 3\.000
 */
#include <stdio.h>
#include <tower/tower.h>

int main(void)
{
    const float x[2][3] = {{1, 2, 3}, {4, 5, 6}}, y[2][3] = {{3, 6, 9}, {12, 15, 18}};
    tw_graph *g = tw_graph_create();
    tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.02f));
    tw_variable *w = tw_get_variable(g, "w", TW_FLOAT32, TW_SCALAR, (tw_initializer){0});
    tw_grads *grads[2];
    for (int i = 0; i < 2; i++)
        TW_DEVICE(g, "/gpu:%d", i)
        TW_NAME_SCOPE(g, "tower_%d", i) {
            tw_output guess = tw_mul(g, w->value, tw_constant_floats(g, TW_SHAPE(3), x[i]));
            tw_output wrong = tw_sub(g, guess, tw_constant_floats(g, TW_SHAPE(3), y[i]));
            grads[i] = tw_compute_gradients(sgd, tw_reduce_mean(g, tw_square(g, wrong), NULL, 0, false));
        }
    tw_output train = tw_apply_gradients(sgd, tw_average_gradients(g, grads, 2, NULL), NULL);
    tw_output init = tw_initialize_variables(g);

    tw_error error = TW_NO_ERROR;
    tw_devices *devices = NULL;
    tw_session *session = NULL;
    tw_tensor *value = NULL;
    tw_status status = tw_devices_create(TW_OPTIONS(tw_device_options, .virtual_gpus = 2), &devices, &error);
    if (status == TW_OK)
        status = tw_session_create(g, TW_OPTIONS(tw_session_options, .devices = devices), &session, &error);
    if (status == TW_OK)
        status = tw_session_run(session, NULL, 0, &init, 1, NULL, &error);
    for (int step = 0; step < 50 && status == TW_OK; step++)
        status = tw_session_run(session, NULL, 0, &train, 1, NULL, &error);
    if (status == TW_OK)
        status = tw_session_get_variable(session, w, &value, &error);
    printf("%s%.3f\n", status == TW_OK ? "w = " : error.message, value ? tw_tensor_value(value, 0) : 0);
    tw_tensor_release(value);
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
    return status != TW_OK;
}

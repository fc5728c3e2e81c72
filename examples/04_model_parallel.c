/* 04_model_parallel.c - different parts of one computation on different devices.
 *
 * GPU 0 multiplies, GPU 1 adds, the CPU adds up what they made. The result has the same bits as on one device.
 *
 * prints: two GPUs: \[\[9 11\] \[16 21\]\].*one CPU: \[\[9 11\] \[16 21\]\]
 */
#include "example.h"

static void compute(const char *title, const char *first, const char *second, tw_devices *devices)
{
    tw_error error = TW_NO_ERROR;
    tw_graph *g = tw_graph_create();
    tw_output parts[2], sum = {0};

    TW_DEVICE(g, "%s", first) {
        tw_output a = tw_constant_floats(g, TW_SHAPE(2, 2), TW_ARRAY(float, 1, 1, 2, 3));
        tw_output b = tw_constant_floats(g, TW_SHAPE(2, 2), TW_ARRAY(float, 2, 3, 3, 4));
        parts[0] = tw_matmul(g, a, b);
    }
    TW_DEVICE(g, "%s", second) {
        tw_output c = tw_constant_floats(g, TW_SHAPE(2, 2), TW_ARRAY(float, 1, 2, 1, 1));
        tw_output d = tw_constant_floats(g, TW_SHAPE(2, 2), TW_ARRAY(float, 3, 2, 2, 2));
        parts[1] = tw_add(g, c, d);
    }
    TW_DEVICE(g, "/cpu:0")
        sum = tw_add_n(g, parts, 2);

    tw_session *session;
    tw_tensor *result = NULL;
    check(tw_session_create(g, TW_OPTIONS(tw_session_options, .devices = devices), &session, &error), &error);
    check(tw_session_run(session, NULL, 0, &sum, 1, &result, &error), &error);
    print_matrix(title, result);
    tw_tensor_release(result);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

int main(void)
{
    tw_error error = TW_NO_ERROR;
    tw_devices *devices;
    check(tw_devices_create(TW_OPTIONS(tw_device_options, .virtual_gpus = 2), &devices, &error), &error);
    compute("two GPUs: ", "/gpu:0", "/gpu:1", devices);
    compute("one CPU: ", "/cpu:0", "/cpu:0", devices);
    tw_devices_destroy(devices);
    return 0;
}

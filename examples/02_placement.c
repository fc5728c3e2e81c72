/* 02_placement.c - saying where nodes run, and hearing where they did.
 *
 * The integers are put on a GPU, which has no kernel for an integer matrix product: soft placement moves that one node
 * to the CPU, and the placement log and tw_session_why() say so. Without soft placement the same graph is refused.
 * The GPU is a virtual one, so this runs anywhere.
 *
 * prints: MatMul: \(MatMul\): /job:localhost/replica:0/task:0/device:CPU:0.*\[\[26\]\]
 */
#include "example.h"

static void print_line(void *user, const char *line)
{
    (void)user;
    printf("%s\n", line);
}

int main(void)
{
    tw_error error = TW_NO_ERROR;
    tw_graph *g = tw_graph_create();
    tw_output a = {0}, b = {0}, product = {0};

    TW_DEVICE(g, "/gpu:0") {
        a = tw_constant_int32s(g, TW_SHAPE(1, 2), TW_ARRAY(int32_t, 3, 5));
        b = tw_constant_int32s(g, TW_SHAPE(2, 1), TW_ARRAY(int32_t, 2, 4));
        product = tw_matmul(g, a, b);
    }

    tw_devices *devices;
    tw_session *session;
    tw_tensor *result = NULL;
    check(tw_devices_create(TW_OPTIONS(tw_device_options, .virtual_gpus = 1), &devices, &error), &error);

    check(tw_session_create(g, TW_OPTIONS(tw_session_options, .devices = devices), &session, &error), &error);
    if (tw_session_run(session, NULL, 0, &product, 1, &result, &error) != TW_OK)
        printf("hard placement: %s\n\n", error.message);
    tw_session_destroy(session);

    tw_session_options options = {
        .devices = devices,
        .allow_soft_placement = true,
        .log_device_placement = true,
        .placement_log = print_line,
    };
    check(tw_session_create(g, &options, &session, &error), &error);
    check(tw_session_run(session, NULL, 0, &product, 1, &result, &error), &error);
    printf("\nwhy: %s\n", tw_session_why(session, product.node));
    print_matrix("", result);

    tw_tensor_release(result);
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
    return 0;
}

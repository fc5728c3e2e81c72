/* 05_data_parallel.c - the same computation on every device, each with its own slice of the data.
 *
 * This is a tower in its smallest form: one loop over devices, one place where the results meet.
 *
 * prints: 4 towers on 4 GPUs: \[\[120\]\].*4 towers on 2 GPUs: \[\[120\]\]
 */
#include "example.h"

enum { TOWERS = 4 };

static void compute(int gpus)
{
    static const float data[TOWERS][2] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
    tw_error error = TW_NO_ERROR;
    tw_graph *g = tw_graph_create();
    tw_output products[TOWERS], sum = {0};

    tw_output weights = tw_constant_floats(g, TW_SHAPE(2, 1), TW_ARRAY(float, 2, 4.4f));
    for (int i = 0; i < TOWERS; i++)
        TW_DEVICE(g, "/gpu:%d", i % gpus)
        TW_NAME_SCOPE(g, "tower_%d", i)
            products[i] = tw_matmul(g, tw_constant_floats(g, TW_SHAPE(1, 2), data[i]), weights);
    TW_DEVICE(g, "/cpu:0")
        sum = tw_add_n(g, products, TOWERS);

    tw_devices *devices;
    tw_session *session;
    tw_tensor *result = NULL;
    check(tw_devices_create(TW_OPTIONS(tw_device_options, .virtual_gpus = gpus), &devices, &error), &error);
    check(tw_session_create(g, TW_OPTIONS(tw_session_options, .devices = devices), &session, &error), &error);
    check(tw_session_run(session, NULL, 0, &sum, 1, &result, &error), &error);
    printf("%d towers on %d GPUs: ", TOWERS, gpus);
    print_matrix("", result);

    tw_tensor_release(result);
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
}

int main(void)
{
    compute(4);
    compute(2);
    return 0;
}

/* 05_data_parallel.c - the same computation on every device, each with its own slice of the data.
 *
 * Tower i multiplies a[i] by b[i] on GPU i modulo the number of GPUs: a tower in its smallest form, one loop over
 * devices, one place where the results meet. How many GPUs there are decides the speed, not the numbers.
 *
 * prints: 4 towers on 4 GPUs: .*4 towers on 2 GPUs: .*same bits: yes
 */
#include "example.h"

#include <string.h>

enum { TOWERS = 4 };

/* x[i] */
static tw_output part(tw_graph *g, tw_output x, int i)
{
    return tw_strided_slice(
        g, x, (tw_strided_slice_options){.begin = TW_SHAPE(i), .end = TW_SHAPE(i + 1), .shrink_axis_mask = 1});
}

/* The sum over towers; yours: tw_tensor_release(). */
static tw_tensor *compute(int gpus)
{
    tw_error error = TW_NO_ERROR;
    tw_graph *g = tw_graph_create();
    tw_graph_set_seed(g, 1);
    tw_initializer uniform = {TW_INIT_UNIFORM, -1, 1, 0};
    tw_output products[TOWERS], sum = {0};

    tw_variable *a = tw_get_variable(g, "a", TW_FLOAT32, TW_SHAPE(TOWERS, 2, 3), uniform);
    tw_variable *b = tw_get_variable(g, "b", TW_FLOAT32, TW_SHAPE(TOWERS, 3, 2), uniform);
    for (int i = 0; i < TOWERS; i++)
        TW_DEVICE(g, "/gpu:%d", i % gpus)
        TW_NAME_SCOPE(g, "tower_%d", i)
            products[i] = tw_matmul(g, part(g, a->value, i), part(g, b->value, i));
    TW_DEVICE(g, "/cpu:0")
        sum = tw_add_n(g, products, TOWERS);
    tw_output init = tw_initialize_variables(g);

    tw_devices *devices = open_gpus(gpus);
    tw_session *session;
    tw_tensor *result = NULL;
    check(tw_session_create(g, TW_OPTIONS(tw_session_options, .devices = devices), &session, &error), &error);
    check(tw_session_run(session, NULL, 0, &init, 1, NULL, &error), &error);
    check(tw_session_run(session, NULL, 0, &sum, 1, &result, &error), &error);
    printf("%d towers on %d GPUs: ", TOWERS, gpus);
    print_matrix("", result);

    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
    return result;
}

int main(void)
{
    tw_tensor *four = compute(4), *two = compute(2);
    bool same = memcmp(tw_tensor_data(four), tw_tensor_data(two), tw_tensor_bytes(two)) == 0;
    printf("same bits: %s\n", same ? "yes" : "no");
    tw_tensor_release(four);
    tw_tensor_release(two);
    return !same;
}

/* 04_model_parallel.c - different parts of one computation on different devices.
 *
 * GPU 0 multiplies two variables, GPU 1 adds two others, the CPU adds up what they made. Seeds belong to the graph, so
 * on one device the variables begin with the same values, and the result has the same bits.
 *
 * prints: matmul on .*device:GPU:0, add on .*device:GPU:1, add_n on .*device:CPU:0.*same bits on one CPU: yes
 */
#include "example.h"

#include <string.h>

static tw_variable *uniform(tw_graph *g, const char *name)
{
    return tw_get_variable(g, name, TW_FLOAT32, TW_SHAPE(2, 2), (tw_initializer){TW_INIT_UNIFORM, -1, 1, 0});
}

/* The sum; yours: tw_tensor_release(). */
static tw_tensor *compute(const char *first, const char *second, tw_devices *devices)
{
    tw_error error = TW_NO_ERROR;
    tw_graph *g = tw_graph_create();
    tw_graph_set_seed(g, 1);
    tw_output parts[2], sum = {0};

    TW_DEVICE(g, "%s", first) {
        tw_variable *a = uniform(g, "a"), *b = uniform(g, "b");
        parts[0] = tw_matmul(g, a->value, b->value);
    }
    TW_DEVICE(g, "%s", second) {
        tw_variable *c = uniform(g, "c"), *d = uniform(g, "d");
        parts[1] = tw_add(g, c->value, d->value);
    }
    TW_DEVICE(g, "/cpu:0")
        sum = tw_add_n(g, parts, 2);
    tw_output init = tw_initialize_variables(g);

    tw_session *session;
    tw_tensor *result = NULL;
    check(tw_session_create(g, TW_OPTIONS(tw_session_options, .devices = devices), &session, &error), &error);
    check(tw_session_run(session, NULL, 0, &init, 1, NULL, &error), &error);
    check(tw_session_run(session, NULL, 0, &sum, 1, &result, &error), &error);
    printf("matmul on %s, ", tw_session_device(session, parts[0].node));
    printf("add on %s, ", tw_session_device(session, parts[1].node));
    printf("add_n on %s: ", tw_session_device(session, sum.node));
    print_matrix("", result);
    tw_session_destroy(session);
    tw_graph_destroy(g);
    return result;
}

int main(void)
{
    tw_devices *devices = open_gpus(2);
    tw_tensor *two = compute("/gpu:0", "/gpu:1", devices), *one = compute("/cpu:0", "/cpu:0", devices);
    bool same = memcmp(tw_tensor_data(two), tw_tensor_data(one), tw_tensor_bytes(one)) == 0;
    printf("same bits on one CPU: %s\n", same ? "yes" : "no"); /* cards may round a product's sums otherwise */
    tw_tensor_release(two);
    tw_tensor_release(one);
    tw_devices_destroy(devices);
    return 0;
}

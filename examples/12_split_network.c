/* 12_split_network.c - a network cut in two: convolutions on one GPU, dense layers on another, trained.
 *
 * What is computed says nothing about where: two device scopes are the whole difference. Gradients run beside the nodes
 * they differentiate, so the backward pass is cut at the same place. After training all variables have the same bits
 * as when both halves share one GPU.
 *
 * prints: convolutions on .*GPU:0, dense layers on .*GPU:1.*loss fell: yes.*same bits as on one GPU: yes
 */
#include "example.h"

#include <string.h>

enum { BATCH = 16, SIDE = 12, CLASSES = 4, STEPS = 30 };

typedef struct run {
    tw_graph *g;
    tw_session *session;
    double first_loss, last_loss;
} run;

/* Images with a bright stripe; which one is the class. */
static void fill_batch(float *images, int32_t *labels)
{
    for (int n = 0; n < BATCH; n++) {
        labels[n] = n % CLASSES;
        for (int i = 0; i < SIDE * SIDE; i++)
            images[n * SIDE * SIDE + i] = (float)((i * 31 + n * 17) % 23) / 23 + (i / SIDE / 3 == labels[n] ? 1 : 0);
    }
}

static run train(const char *first, const char *second, tw_devices *devices)
{
    tw_error error = TW_NO_ERROR;
    run r = {.g = tw_graph_create()};
    tw_graph *g = r.g;
    tw_graph_set_seed(g, 1);
    tw_layer_options relu = {.activation = tw_relu};
    tw_output images = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(BATCH, SIDE, SIDE, 1));
    tw_output labels = tw_placeholder(g, TW_INT32, TW_SHAPE(BATCH)), x = images, loss = {0};

    TW_DEVICE(g, "%s", first) {
        x = tw_conv2d_layer(g, "conv1", x, 8, 3, NULL, &relu);
        x = tw_max_pool(g, x, TW_OPTIONS(tw_pool_options, .window[0] = 2));
        x = tw_conv2d_layer(g, "conv2", x, 16, 3, NULL, &relu);
        x = tw_flatten(g, x);
    }
    TW_DEVICE(g, "%s", second) { /* x is copied here, its gradient back */
        x = tw_dense_layer(g, "dense1", x, 32, &relu);
        x = tw_dense_layer(g, "dense2", x, CLASSES, NULL);
        loss = tw_reduce_mean(g, tw_sparse_softmax_cross_entropy(g, x, labels), NULL, 0, false);
    }
    tw_optimizer *momentum = tw_momentum(g, tw_scalar(g, 0.02f), 0.9f, false);
    tw_output fetches[] = {loss, tw_apply_gradients(momentum, tw_compute_gradients(momentum, loss), NULL)};
    tw_output init = tw_initialize_variables(g);

    tw_tensor *results[2] = {NULL};
    tw_feed feeds[] = {{images, tw_tensor_create(TW_FLOAT32, TW_SHAPE(BATCH, SIDE, SIDE, 1))},
                       {labels, tw_tensor_create(TW_INT32, TW_SHAPE(BATCH))}};
    fill_batch(tw_tensor_data(feeds[0].tensor), tw_tensor_data(feeds[1].tensor));
    check(tw_session_create(g, TW_OPTIONS(tw_session_options, .devices = devices), &r.session, &error), &error);
    check(tw_session_run(r.session, NULL, 0, &init, 1, NULL, &error), &error);
    for (int step = 0; step < STEPS; step++) {
        check(tw_session_run(r.session, feeds, 2, fetches, 2, results, &error), &error);
        r.last_loss = tw_tensor_value(results[0], 0);
        r.first_loss = step ? r.first_loss : r.last_loss;
    }
    tw_tensor_release(results[0]);
    tw_tensor_release(feeds[0].tensor);
    tw_tensor_release(feeds[1].tensor);
    return r;
}

static bool same_variables(const run *a, const run *b)
{
    tw_error error = TW_NO_ERROR;
    bool same = true;
    for (int i = 0; i < tw_graph_num_variables(a->g); i++) {
        tw_tensor *x = NULL, *y = NULL;
        check(tw_session_get_variable(a->session, tw_graph_variable(a->g, i), &x, &error), &error);
        check(tw_session_get_variable(b->session, tw_graph_variable(b->g, i), &y, &error), &error);
        same &= memcmp(tw_tensor_data(x), tw_tensor_data(y), tw_tensor_bytes(x)) == 0;
        tw_tensor_release(x);
        tw_tensor_release(y);
    }
    return same;
}

int main(void)
{
    tw_devices *devices = open_gpus(2);
    run cut = train("/gpu:0", "/gpu:1", devices), whole = train("/gpu:0", "/gpu:0", devices);
    printf("convolutions on %s, dense layers on %s\n",
           tw_session_device(cut.session, tw_graph_find_variable(cut.g, "conv1/kernel")->handle.node),
           tw_session_device(cut.session, tw_graph_find_variable(cut.g, "dense1/kernel")->handle.node));
    printf("loss %.4f, after %d steps %.4f\n", cut.first_loss, STEPS, cut.last_loss);
    printf("loss fell: %s\n", cut.last_loss < cut.first_loss / 2 ? "yes" : "no");
    printf("same bits as on one GPU: %s\n", same_variables(&cut, &whole) ? "yes" : "no");
    tw_session_destroy(cut.session);
    tw_session_destroy(whole.session);
    tw_graph_destroy(cut.g);
    tw_graph_destroy(whole.g);
    tw_devices_destroy(devices);
    return 0;
}

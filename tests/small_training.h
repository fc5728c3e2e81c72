/* small_training.h - two towers on virtual GPUs whose steps are traced: something to take apart. */
#ifndef SMALL_TRAINING_H
#define SMALL_TRAINING_H

#include "testing.h"

#include <tower/nn.h>
#include <tower/ops.h>
#include <tower/train.h>

enum { TOWERS = 2, WIDTH = 64 };

typedef struct training {
    tw_graph *g;
    tw_devices *devices;
    tw_session *s;
    tw_output step;
    const char *names[TOWERS];
} training;

static inline tw_status fill(void *user, int tower, void *const *outputs, tw_error *error)
{
    (void)user;
    (void)tower;
    (void)error;
    for (int i = 0; i < WIDTH * WIDTH; i++)
        ((float *)outputs[0])[i] = (float)(i % 7);
    return TW_OK;
}

static inline training start(void)
{
    tw_error error = {0};
    training t = {.g = tw_graph_create()};
    tw_graph *g = t.g;
    tw_grads *grads[TOWERS];
    tw_enter_device(g, "/cpu:0");
    tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 1e-6f));
    tw_variable *w = tw_get_variable(g, "w", TW_FLOAT32, TW_SHAPE(WIDTH, WIDTH), (tw_initializer){.a = 0.01f});
    for (int i = 0; i < TOWERS; i++) {
        tw_output x;
        tw_input(g, "batch", i, (tw_dtype[]){TW_FLOAT32}, (tw_shape[]){TW_SHAPE(WIDTH, WIDTH)}, 1, &x);
        TW_DEVICE(g, "/gpu:%d", i)
            grads[i] = tw_compute_gradients_of(
                sgd, tw_reduce_mean(g, tw_square(g, tw_matmul(g, x, tw_variable_read(g, w))), NULL, 0, false), &w, 1);
    }
    t.step = tw_apply_gradients(sgd, tw_average_gradients(g, grads, TOWERS, NULL), NULL);
    tw_leave_device(g);
    tw_output init = tw_initialize_variables(g);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .virtual_gpus = TOWERS}, &t.devices, &error));
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = t.devices, .trace = true}, &t.s, &error));
    assert_ok(tw_session_set_source(t.s, "batch", fill, NULL, &error));
    assert_ok(tw_session_run(t.s, NULL, 0, &init, 1, NULL, &error));
    assert_ok(tw_session_run(t.s, NULL, 0, &t.step, 1, NULL, &error));
    for (int i = 0; i < TOWERS; i++)
        t.names[i] = tw_devices_info(t.devices, 1 + i).name;
    return t;
}

static inline void stop(training *t)
{
    tw_session_destroy(t->s);
    tw_devices_destroy(t->devices);
    tw_graph_destroy(t->g);
}

#endif

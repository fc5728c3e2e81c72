/* gradient_testing.h - gradient rules against finite differences.
 *
 * A function of inputs x_i builds some y; with random weights w on y's elements, what tw_gradients() says of the sum of
 * w y is compared with central differences, element by element, on the plain kernels. Values are spread so that no two
 * of a tensor are closer than a step: a maximum or a kink stays on its side. */
#ifndef GRADIENT_TESTING_H
#define GRADIENT_TESTING_H

#include "testing.h"

#include <tower/graph.h>
#include <tower/ops.h>
#include <tower/session.h>

enum { TWT_MOST_XS = 4 };

typedef tw_output twt_function(tw_graph *graph, const tw_output *xs);

typedef struct twt_gradient_case {
    const char *name; /* for messages */
    twt_function *function;
    tw_shape shapes[TWT_MOST_XS]; /* of the inputs */
    int num_xs;
    tw_dtype dtype;   /* 0: double. float for ops that have no double: bigger steps, less exact */
    double low, high; /* of the values of x; 0, 0: -1 to 1 */
    bool twice;       /* also differentiate the gradient for x_0 (and so the gradient ops) */
    bool open;        /* the graph is not told the sizes of x, only how many axes there are */
} twt_gradient_case;

/* Values in equal steps between low and high, in random order. */
static inline tw_tensor *twt_spread(tw_dtype dtype, tw_shape shape, double low, double high, unsigned *seed)
{
    tw_tensor *tensor = tw_tensor_create(dtype, shape);
    assert_non_null(tensor);
    int64_t n = tw_tensor_elements(tensor);
    int64_t *order = calloc((size_t)n + 1, sizeof *order);
    for (int64_t i = 0; i < n; i++) {
        *seed = *seed * 1664525 + 1013904223;
        int64_t k = (int64_t)(*seed >> 8) % (i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (int64_t i = 0; i < n; i++) {
        double value = low + (high - low) * ((double)order[i] + 0.4) / (double)n;
        if (dtype == TW_FLOAT64)
            ((double *)tw_tensor_data(tensor))[i] = value;
        else
            ((float *)tw_tensor_data(tensor))[i] = (float)value;
    }
    free(order);
    return tensor;
}

static inline void twt_nudge(tw_tensor *tensor, int64_t i, double by)
{
    if (tw_tensor_dtype(tensor) == TW_FLOAT64)
        ((double *)tw_tensor_data(tensor))[i] += by;
    else
        ((float *)tw_tensor_data(tensor))[i] += (float)by;
}

/* A function and its gradient, ready to run. */
typedef struct twt_bench {
    const twt_gradient_case *c;
    const char *order; /* "" or "the gradient of " */
    tw_session *session;
    tw_output y, grads[TWT_MOST_XS];
    tw_feed feeds[TWT_MOST_XS];
    tw_tensor *weights;
} twt_bench;

static inline double twt_weighted_sum(twt_bench *b)
{
    tw_error error = {0};
    tw_tensor *y = NULL;
    double sum = 0;
    if (tw_session_run(b->session, b->feeds, b->c->num_xs, &b->y, 1, &y, &error) != TW_OK)
        fail_msg("%s%s: %s", b->order, b->c->name, error.message);
    for (int64_t i = 0; i < tw_tensor_elements(y); i++)
        sum += tw_tensor_value(y, i) * tw_tensor_value(b->weights, i);
    tw_tensor_release(y);
    return sum;
}

static inline void twt_compare_with_differences(twt_bench *b, int x)
{
    tw_error error = {0};
    tw_tensor *gradient = NULL, *value = b->feeds[x].tensor;
    bool exact = tw_tensor_dtype(value) == TW_FLOAT64;
    double step = exact ? 1e-5 : 1e-2, tolerance = exact ? 1e-6 : 2e-2;
    if (tw_session_run(b->session, b->feeds, b->c->num_xs, &b->grads[x], 1, &gradient, &error) != TW_OK)
        fail_msg("%s%s: %s", b->order, b->c->name, error.message);
    for (int64_t i = 0; i < tw_tensor_elements(value); i++) {
        twt_nudge(value, i, step);
        double above = twt_weighted_sum(b);
        twt_nudge(value, i, -2 * step);
        double below = twt_weighted_sum(b);
        twt_nudge(value, i, step);
        double wanted = (above - below) / (2 * step), found = tw_tensor_value(gradient, i);
        if (!(fabs(found - wanted) <= tolerance * fmax(1, fabs(wanted))))
            fail_msg("%s%s: the gradient of input %d, element %lld, is %.9g, differences say %.9g", b->order,
                     b->c->name, x, (long long)i, found, wanted);
    }
    tw_tensor_release(gradient);
}

static inline tw_shape twt_shape_when_run(twt_bench *b, tw_graph *graph, const tw_session_options *options)
{
    tw_error error = {0};
    tw_session *session = NULL;
    tw_tensor *y = NULL;
    if (tw_shape_is_known(tw_output_shape(b->y)))
        return tw_output_shape(b->y);
    if (tw_session_create(graph, options, &session, &error) != TW_OK ||
        tw_session_run(session, b->feeds, b->c->num_xs, &b->y, 1, &y, &error) != TW_OK)
        fail_msg("%s%s: %s", b->order, b->c->name, error.message);
    tw_shape shape = tw_tensor_shape(y);
    tw_tensor_release(y);
    tw_session_destroy(session);
    return shape;
}

/* Differentiates y for every x and compares. */
static inline void twt_check_derivatives(twt_bench *b, tw_graph *graph, tw_devices *devices, const tw_output *xs,
                                         unsigned *seed)
{
    tw_error error = {0};
    tw_session_options options = {.devices = devices, .plain_kernels = true};
    b->weights = twt_spread(tw_output_dtype(b->y), twt_shape_when_run(b, graph, &options), -1, 1, seed);
    tw_output weights = tw_constant(graph, b->weights);
    tw_gradients(graph, &b->y, 1, &weights, xs, b->c->num_xs, b->grads);
    if (tw_graph_status(graph) != TW_OK)
        fail_msg("%s%s: %s", b->order, b->c->name, tw_graph_message(graph));
    if (tw_session_create(graph, &options, &b->session, &error) != TW_OK)
        fail_msg("%s%s: %s", b->order, b->c->name, error.message);
    for (int i = 0; i < b->c->num_xs; i++)
        if (b->grads[i].node)
            twt_compare_with_differences(b, i);
    tw_session_destroy(b->session);
    tw_tensor_release(b->weights);
}

static inline void twt_check_gradients(const twt_gradient_case *c)
{
    tw_error error = {0};
    tw_graph *graph = tw_graph_create();
    tw_devices *devices;
    tw_output xs[TWT_MOST_XS], first;
    unsigned seed = 1;
    bool spread = c->low != 0 || c->high != 0;
    twt_bench b = {.c = c, .order = ""};
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .no_gpus = true}, &devices, &error));
    for (int i = 0; i < c->num_xs; i++) {
        tw_dtype dtype = c->dtype ? c->dtype : TW_FLOAT64;
        tw_shape told = c->shapes[i];
        for (int k = 0; c->open && k < told.rank; k++)
            told.dims[k] = -1;
        xs[i] = tw_placeholder(graph, dtype, told);
        b.feeds[i] =
            (tw_feed){xs[i], twt_spread(dtype, c->shapes[i], spread ? c->low : -1, spread ? c->high : 1, &seed)};
    }
    b.y = c->function(graph, xs);
    if (tw_graph_status(graph) != TW_OK)
        fail_msg("%s: %s", c->name, tw_graph_message(graph));
    twt_check_derivatives(&b, graph, devices, xs, &seed);
    if (!b.grads[0].node)
        fail_msg("%s: no gradient for input 0", c->name);
    if (c->twice) {
        /* The gradient as a function of all x: for fixed weights on y it is linear in most, so its own gradients show
         * those of the gradient ops. */
        first = b.grads[0];
        b.y = first;
        b.order = "the gradient of ";
        twt_check_derivatives(&b, graph, devices, xs, &seed);
    }
    for (int i = 0; i < c->num_xs; i++)
        tw_tensor_release(b.feeds[i].tensor);
    tw_devices_destroy(devices);
    tw_graph_destroy(graph);
}

#endif

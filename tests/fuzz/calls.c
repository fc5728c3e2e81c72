/* calls.c - programs of public calls: in any order, any pointer NULL, several threads on one session. What they are
 * given is what earlier calls gave, or nothing. */
#include "fuzz.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tower/io.h>
#include <tower/nn.h>
#include <tower/ops.h>
#include <tower/session.h>
#include <tower/train.h>

enum { KEPT = 8, MOST_CALLS = 48, THREADS = 3 };

typedef struct program {
    numbers n;
    tw_graph *graph;
    tw_session *session;
    tw_devices *devices;
    tw_output outputs[KEPT];
    tw_tensor *tensors[KEPT];
    tw_variable *variables[KEPT];
    int made;
} program;

static bool missing(program *p)
{
    return next_below(&p->n, 16) == 15;
}

static tw_graph *graph(program *p)
{
    return missing(p) ? NULL : p->graph;
}

static tw_session *session(program *p)
{
    return missing(p) ? NULL : p->session;
}

static tw_output output(program *p)
{
    tw_output o = p->outputs[next_below(&p->n, KEPT)];
    if (missing(p))
        o.index = (int)next_below(&p->n, 5) - 2;
    return o;
}

static tw_tensor *tensor(program *p)
{
    return p->tensors[next_below(&p->n, KEPT)];
}

static tw_variable *variable(program *p)
{
    return p->variables[next_below(&p->n, KEPT)];
}

static tw_shape shape(program *p)
{
    tw_shape s = {(int)next_below(&p->n, 11) - 1, {0}};
    for (int i = 0; i < s.rank && i < TW_MAX_RANK; i++)
        s.dims[i] = (int64_t)next_below(&p->n, 5) - 1;
    return s;
}

static void keep(program *p, tw_output made)
{
    if (made.node)
        p->outputs[p->made++ % KEPT] = made;
}

static void keep_tensor(program *p, tw_tensor *made)
{
    tw_tensor **place = &p->tensors[p->made++ % KEPT];
    tw_tensor_release(*place);
    *place = made;
}

static void new_session(program *p)
{
    static const char *const disable[] = {NULL, "all", "fuse,merge", "nonsense"};
    tw_session_destroy(p->session);
    p->session = NULL;
    tw_session_create(graph(p),
                      TW_OPTIONS(tw_session_options, .devices = missing(p) ? NULL : p->devices,
                                 .allow_soft_placement = next_byte(&p->n) & 1, .disable = disable[next_below(&p->n, 4)],
                                 .trace = next_byte(&p->n) & 1, .kept_plans = (int)next_below(&p->n, 3)),
                      &p->session, NULL);
}

static void new_graph(program *p)
{
    tw_session_destroy(p->session);
    tw_graph_destroy(p->graph);
    p->session = NULL;
    p->graph = tw_graph_create();
    memset(p->outputs, 0, sizeof p->outputs);
    memset(p->variables, 0, sizeof p->variables);
}

static void run(program *p)
{
    tw_error error = {0};
    tw_tensor *results[2] = {NULL, NULL};
    tw_feed feeds[2] = {{output(p), tensor(p)}, {output(p), tensor(p)}};
    tw_output fetches[2] = {output(p), output(p)};
    int num_feeds = (int)next_below(&p->n, 4) - 1, num_fetches = (int)next_below(&p->n, 4) - 1;
    tw_session_run_in(session(p), (int)next_below(&p->n, 4) - 1, num_feeds > 0 && missing(p) ? NULL : feeds,
                      num_feeds > 2 ? 2 : num_feeds, fetches, num_fetches > 2 ? 2 : num_fetches, results, &error);
    keep_tensor(p, results[0]);
    keep_tensor(p, results[1]);
}

static void *run_in_thread(void *arg)
{
    program *p = arg;
    for (int i = 0; i < 3; i++)
        run(p);
    return NULL;
}

/* Threads with numbers and tensors of their own on one session; one may cancel it. */
static void run_in_threads(program *p)
{
    pthread_t threads[THREADS];
    program copies[THREADS];
    for (int i = 0; i < THREADS; i++) {
        copies[i] = *p;
        copies[i].n.at += i < p->n.end - p->n.at ? i : 0;
        memset(copies[i].tensors, 0, sizeof copies[i].tensors);
        if (pthread_create(&threads[i], NULL, run_in_thread, &copies[i]) != 0)
            abort();
    }
    if (missing(p))
        tw_session_cancel(p->session);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        for (int k = 0; k < KEPT; k++)
            tw_tensor_release(copies[i].tensors[k]);
    }
}

static void build(program *p)
{
    static const float floats[] = {1, 2, 3, 4};
    tw_output two[2] = {output(p), output(p)}, grads[2] = {{0}, {0}};
    switch (next_below(&p->n, 18)) {
    case 0: keep(p, tw_constant(graph(p), tensor(p))); break;
    case 1: keep(p, tw_constant_floats(graph(p), TW_SHAPE(2, 2), missing(p) ? NULL : floats)); break;
    case 2: keep(p, tw_placeholder(graph(p), TW_FLOAT32, shape(p))); break;
    case 3: keep(p, tw_add(graph(p), two[0], two[1])); break;
    case 4: keep(p, tw_matmul(graph(p), two[0], two[1])); break;
    case 5: keep(p, tw_relu(graph(p), two[0])); break;
    case 6: keep(p, tw_concat(graph(p), two, 2, (int)next_below(&p->n, 4) - 1)); break;
    case 7: keep(p, tw_reduce_sum(graph(p), two[0], NULL, 0, false)); break;
    case 8: keep(p, tw_reshape(graph(p), two[0], shape(p))); break;
    case 9:
        tw_gradients(graph(p), two, 1, NULL, two + 1, 1, grads);
        keep(p, grads[0]);
        break;
    case 10: keep(p, tw_initialize_variables(graph(p))); break;
    case 11: {
        tw_variable *made =
            tw_get_variable(graph(p), missing(p) ? NULL : "v", TW_FLOAT32, shape(p), (tw_initializer){0});
        p->variables[p->made++ % KEPT] = made;
        keep(p, tw_variable_read(graph(p), made));
        break;
    }
    case 12: tw_reuse_variables(graph(p)); break;
    case 13: tw_enter_device(graph(p), "%s", missing(p) ? "/gpu:7" : "/gpu:1"); break;
    case 14: tw_leave_device(graph(p)); break;
    case 15: tw_enter_control(graph(p), two[0]); break;
    case 16: tw_leave_control(graph(p)); break;
    default: tw_enter_name_scope(graph(p), "%s", missing(p) ? "a b" : "scope"); tw_leave_name_scope(graph(p));
    }
}

static void look(program *p)
{
    tw_output o = output(p);
    char text[64];
    tw_plan_info info;
    tw_tensor *value = NULL;
    void *bytes = NULL;
    size_t size;
    switch (next_below(&p->n, 10)) {
    case 0: tw_output_dtype(o); tw_shape_text(tw_output_shape(o), text, next_below(&p->n, sizeof text)); break;
    case 1: tw_node_input(o.node, (int)next_below(&p->n, 5) - 2); break;
    case 2: tw_node_attr(o.node, missing(p) ? NULL : "T"); break;
    case 3: tw_session_device(session(p), o.node); tw_session_why(session(p), o.node); break;
    case 4: tw_session_plan_info(session(p), &info, NULL); break;
    case 5:
        tw_session_get_variable(session(p), variable(p), &value, NULL);
        tw_tensor_release(value);
        break;
    case 6: tw_session_set_variable(session(p), variable(p), tensor(p), NULL); break;
    case 7:
        if (tw_graph_export(graph(p), &bytes, &size, NULL) == TW_OK)
            tw_graph_import(graph(p), bytes, size, "again", NULL);
        tw_free(bytes);
        break;
    case 8: tw_graph_message(graph(p)); tw_graph_find(graph(p), missing(p) ? NULL : "Add"); break;
    default: tw_session_set_trace(session(p), next_byte(&p->n) & 1, NULL);
    }
}

static void call(program *p)
{
    switch (next_below(&p->n, 16)) {
    case 0: new_session(p); break;
    case 1: run_in_threads(p); break;
    case 2: case 3: case 4: run(p); break;
    case 5: case 6: look(p); break;
    case 7: keep_tensor(p, tw_tensor_create((tw_dtype)next_below(&p->n, 24), shape(p))); break;
    case 8: keep_tensor(p, tw_tensor_float(1)); break;
    case 9:
        if (missing(p))
            new_graph(p);
        else if (missing(p))
            tw_session_cancel(p->session);
        break;
    default: build(p);
    }
}

void fuzz_calls(const uint8_t *bytes, size_t size)
{
    static tw_devices *devices;
    if (!devices)
        tw_devices_create(TW_OPTIONS(tw_device_options, .cpu_threads = 1, .virtual_gpus = 2, .no_gpus = true), &devices,
                          NULL);
    program p = {.n = {bytes, bytes + size}, .devices = devices, .graph = tw_graph_create()};
    for (int i = 0; i < MOST_CALLS && p.n.at < p.n.end; i++)
        call(&p);
    tw_session_destroy(p.session);
    tw_graph_destroy(p.graph);
    for (int i = 0; i < KEPT; i++)
        tw_tensor_release(p.tensors[i]);
}

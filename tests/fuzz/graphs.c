/* graphs.c - targets that read graphs, and those that run them. */
#include "fuzz.h"

#include "graph/op.h"
#include "io/meta_graph.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tower/io.h>
#include <tower/ops.h>
#include <tower/session.h>

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* What was read can be written, and that can be read. */
static void export_and_import(const tw_graph *graph)
{
    void *bytes;
    size_t size;
    tw_error error = {0};
    if (tw_graph_export(graph, &bytes, &size, &error) != TW_OK)
        return;
    tw_graph *again = tw_graph_create();
    tw_graph_import(again, bytes, size, NULL, &error);
    if (tw_graph_num_nodes(again) < tw_graph_num_nodes(graph))
        abort();
    tw_graph_destroy(again);
    tw_free(bytes);
}

void fuzz_graph(const uint8_t *bytes, size_t size)
{
    tw_error error = {0};
    tw_graph *graph = tw_graph_create();
    if (tw_graph_import(graph, bytes, size, NULL, &error) == TW_OK)
        export_and_import(graph);
    tw_graph_destroy(graph);
}

void fuzz_meta_graph(const uint8_t *bytes, size_t size)
{
    void *written;
    size_t written_size;
    tw_error error = {0};
    tw_graph *graph = tw_graph_create();
    if (tw_meta_graph_import(graph, bytes, size, NULL, &error) == TW_OK &&
        tw_meta_graph_export(graph, NULL, &written, &written_size, &error) == TW_OK)
        tw_free(written);
    tw_graph_destroy(graph);
}

void fuzz_graph_file(const uint8_t *bytes, size_t size)
{
    static const char *const names[] = {"graph.pb", "graph.pbtxt", "x.meta", "saved_model.pb", "saved_model.pbtxt",
                                        "events.out.tfevents.1"};
    numbers n = {bytes, bytes + size};
    const char *name = names[next_below(&n, sizeof names / sizeof *names)];
    tw_error error = {0};
    tw_graph_about *about = NULL;
    tw_graph *graph = tw_graph_create();
    const char *path = fuzz_file(name, n.at, (size_t)(n.end - n.at));
    if (tw_graph_load(graph, path, NULL, &about, &error) == TW_OK)
        tw_graph_about_destroy(about);
    tw_graph_destroy(graph);
}

/* ---- running --------------------------------------------------------------------------------------------------- */

enum { GPUS = 2, MOST_MILLISECONDS = 300 };

static tw_devices *devices(void)
{
    static tw_devices *set;
    if (!set &&
        tw_devices_create(TW_OPTIONS(tw_device_options, .cpu_threads = 1, .virtual_gpus = GPUS, .no_gpus = true), &set,
                          NULL) != TW_OK)
        abort();
    return set;
}

/* A graph may wait for ever in a queue, or go round for ever in a loop: whoever runs it can end that. */
typedef struct watch {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool has_ended;
    tw_session *session;
} watch;

static void *cancel_late(void *arg)
{
    watch *w = arg;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += MOST_MILLISECONDS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&w->lock);
    while (!w->has_ended && pthread_cond_timedwait(&w->ended, &w->lock, &until) == 0)
        ;
    if (!w->has_ended)
        tw_session_cancel(w->session);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static tw_status run_watched(tw_session *session, const tw_output *fetches, int count, tw_tensor **results,
                             tw_error *error)
{
    watch w = {.session = session, .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};
    if (pthread_create(&w.thread, NULL, cancel_late, &w) != 0)
        abort();
    tw_status status = tw_session_run(session, NULL, 0, fetches, count, results, error);
    pthread_mutex_lock(&w.lock);
    w.has_ended = true;
    pthread_cond_signal(&w.ended);
    pthread_mutex_unlock(&w.lock);
    pthread_join(w.thread, NULL);
    return status;
}

static bool is_small(tw_output output)
{
    int64_t elements = tw_shape_elements(tw_output_shape(output));
    return elements <= 1 << 14;
}

void fuzz_run(const uint8_t *bytes, size_t size)
{
    tw_error error = {0};
    tw_session *session = NULL;
    tw_graph *graph = tw_graph_create();
    bool small = true;
    devices();
    if (!graph || tw_graph_import(graph, bytes, size, NULL, &error) != TW_OK ||
        tw_session_create(graph, TW_OPTIONS(tw_session_options, .devices = devices(), .allow_soft_placement = true),
                          &session, &error) != TW_OK) {
        tw_graph_destroy(graph);
        return;
    }
    for (int i = 0; i < tw_graph_num_nodes(graph); i++)
        for (int k = 0; k < tw_node_num_outputs(tw_graph_node(graph, i)); k++)
            small &= is_small(tw_node_output(tw_graph_node(graph, i), k));
    for (int i = tw_graph_num_nodes(graph) - 1; small && i >= 0 && i >= tw_graph_num_nodes(graph) - 8; i--) {
        tw_tensor *result = NULL;
        tw_node *node = tw_graph_node(graph, i);
        tw_output fetch = {node, tw_node_num_outputs(node) ? 0 : -1};
        if (run_watched(session, &fetch, 1, &result, &error) == TW_CANCELLED)
            break;
        tw_tensor_release(result);
    }
    tw_session_destroy(session);
    tw_graph_destroy(graph);
}

/* ---- drawing a graph of any ops -------------------------------------------------------------------------------- */

enum { MOST_OUTPUTS = 96, MOST_NODES = 12, MOST_OPS = 1024, MOST_INPUTS = 16, MOST_ATTRS = 24, MOST_FETCHES = 8 };

typedef struct drawing {
    numbers n;
    tw_graph *graph;
    tw_output outputs[MOST_OUTPUTS];
    int count;
    tw_attr attrs[MOST_ATTRS];
    int num_attrs;
    tw_output inputs[MOST_INPUTS];
    int num_inputs;
} drawing;

static const tw_dtype types[] = {
#define X(name, number, bytes, text) TW_##name,
    TW_DTYPE_LIST(X)
#undef X
};
enum { NUM_TYPES = sizeof types / sizeof *types };

static const tw_shape shapes[] = {
    {0, {0}}, {1, {1}}, {1, {3}}, {1, {0}}, {2, {2, 3}}, {2, {3, 2}}, {2, {0, 3}}, {3, {2, 1, 3}}, {4, {1, 4, 4, 2}},
    {4, {3, 3, 2, 2}}, {5, {1, 2, 1, 2, 1}}, {6, {1, 2, 1, 2, 1, 2}}, {7, {1, 1, 2, 1, 1, 1, 2}},
    {8, {1, 2, 1, 1, 2, 1, 1, 1}}, {2, {INT64_C(1) << 40, 0}}, {4, {1 << 30, 4, 4, 0}},
    {8, {2, 13, 64, 64, 64, 64, 0, 1}}, {1, {257}},
};
enum { NUM_SHAPES = sizeof shapes / sizeof *shapes };

static tw_output draw_constant(drawing *d, tw_dtype type)
{
    tw_shape shape = shapes[next_below(&d->n, NUM_SHAPES)];
    tw_tensor *tensor = tw_tensor_create(type, shape);
    unsigned char *bytes = tensor ? tw_tensor_data(tensor) : NULL;
    for (int64_t i = 0; tensor && i < tw_tensor_elements(tensor); i++) {
        int value = (int)next_below(&d->n, 7) - 2;
        switch (type) {
        case TW_FLOAT32: ((float *)(void *)bytes)[i] = (float)value / 2; break;
        case TW_FLOAT64: ((double *)(void *)bytes)[i] = (double)value / 2; break;
        case TW_FLOAT16: ((uint16_t *)(void *)bytes)[i] = tw_float_to_half((float)value / 2); break;
        case TW_BFLOAT16: ((uint16_t *)(void *)bytes)[i] = tw_float_to_bfloat16((float)value / 2); break;
        case TW_INT32: ((int32_t *)(void *)bytes)[i] = value; break;
        case TW_INT64: ((int64_t *)(void *)bytes)[i] = value; break;
        case TW_INT16: ((int16_t *)(void *)bytes)[i] = (int16_t)value; break;
        case TW_STRING: tw_tensor_set_string(tensor, i, "a/b.c", (size_t)(value + 2) % 6); break;
        case TW_BOOL: bytes[i] = value > 0; break;
        case TW_RESOURCE: break;
        default: bytes[i] = (unsigned char)value;
        }
    }
    tw_output output = tw_constant(d->graph, tensor);
    tw_tensor_release(tensor);
    return output;
}

static tw_dtype draw_type(drawing *d, uint64_t allowed)
{
    tw_dtype type = TW_FLOAT32;
    for (int tries = 0; tries < 4; tries++) {
        type = types[next_below(&d->n, NUM_TYPES)];
        if (!allowed || allowed >> type & 1)
            return type;
    }
    for (int i = 0; i < NUM_TYPES; i++)
        if (allowed >> types[i] & 1)
            return types[i];
    return type;
}

static void draw_attr(drawing *d, const twi_attr_spec *spec)
{
    static const int64_t lists[][4] = {{1, 1, 1, 1}, {1, 2, 2, 1}, {0, 1, 2, 3}, {1, 3, 3, 1}, {-1, 0, 1 << 30, 2}};
    bool by_default = spec->has_default && next_byte(&d->n) % 4 != 0;
    if (by_default || d->num_attrs == MOST_ATTRS)
        return;
    tw_attr attr = {.name = spec->name, .kind = spec->kind};
    switch (spec->kind) {
    case TW_ATTR_INT: attr.i = (int)next_below(&d->n, 6) - 1; break;
    case TW_ATTR_FLOAT: attr.f = (float)((int)next_below(&d->n, 6) - 1) / 2; break;
    case TW_ATTR_BOOL: attr.b = next_byte(&d->n) & 1; break;
    case TW_ATTR_TYPE: attr.type = draw_type(d, spec->allowed_types); break;
    case TW_ATTR_STRING:
        if (spec->num_allowed_strings)
            attr = tw_attr_string(spec->name,
                                  spec->allowed_strings[next_below(&d->n, (unsigned)spec->num_allowed_strings)]);
        else
            attr = tw_attr_string(spec->name, next_byte(&d->n) & 1 ? "a" : "");
        break;
    case TW_ATTR_SHAPE: attr.shape = shapes[next_below(&d->n, NUM_SHAPES)]; break;
    case TW_ATTR_INTS: attr = tw_attr_ints(spec->name, lists[next_below(&d->n, 5)], (int)next_below(&d->n, 5)); break;
    case TW_ATTR_TYPES: attr = tw_attr_types(spec->name, &types[next_below(&d->n, NUM_TYPES - 2)], (int)next_below(&d->n, 3)); break;
    case TW_ATTR_SHAPES: attr = tw_attr_shapes(spec->name, &shapes[next_below(&d->n, NUM_SHAPES - 2)], (int)next_below(&d->n, 3)); break;
    default: return; /* tensors and the rest follow from elsewhere, or are left out */
    }
    d->attrs[d->num_attrs++] = attr;
}

static const tw_attr *attr_of(const drawing *d, const char *name)
{
    for (int i = 0; name && i < d->num_attrs; i++)
        if (strcmp(d->attrs[i].name, name) == 0)
            return &d->attrs[i];
    return NULL;
}

/* An output of that type which is there already, mostly; or a new constant. */
static void draw_input(drawing *d, tw_dtype type)
{
    if (d->num_inputs == MOST_INPUTS)
        return;
    int start = next_byte(&d->n);
    for (int i = 0; i < d->count && start % 4 != 0; i++) {
        tw_output candidate = d->outputs[(start + i) % d->count];
        if (tw_output_dtype(candidate) == type) {
            d->inputs[d->num_inputs++] = candidate;
            return;
        }
    }
    d->inputs[d->num_inputs++] = draw_constant(d, type);
}

static void draw_argument(drawing *d, const twi_signature *s, const twi_argument *argument)
{
    const tw_attr *number = attr_of(d, argument->number_attr), *list = attr_of(d, argument->list_attr);
    const tw_attr *type = attr_of(d, argument->type_attr);
    int count = argument->number_attr ? (number ? (int)(number->i & 3) : 2) : 1;
    if (list)
        for (int i = 0; i < list->count; i++)
            draw_input(d, list->types[i]);
    tw_dtype fixed = argument->dtype;
    for (int i = 0; i < s->num_attrs && !fixed && !type; i++)
        if (argument->type_attr && strcmp(s->attrs[i].name, argument->type_attr) == 0)
            fixed = s->attrs[i].has_default ? s->attrs[i].value.type : TW_FLOAT32;
    for (int i = 0; i < count && !argument->list_attr; i++)
        draw_input(d, type ? type->type : fixed);
}

static int all_ops(const twi_op **ops)
{
    int count = 0;
    for (const twi_op *const *family = twi_op_families; *family; family++)
        for (const twi_op *op = *family; op->name && count < MOST_OPS; op++)
            if (!twi_op_is(op, TWI_REWRITTEN))
                ops[count++] = op;
    return count;
}

static void draw_node(drawing *d)
{
    static const twi_op *ops[MOST_OPS];
    static int count;
    if (!count)
        count = all_ops(ops);
    unsigned number = next_byte(&d->n);
    number = (number << 8 | next_byte(&d->n)) % (unsigned)count;
    const twi_signature *s = twi_op_signature(ops[number]);
    d->num_attrs = d->num_inputs = 0;
    for (int i = 0; i < s->num_attrs; i++)
        draw_attr(d, &s->attrs[i]);
    for (int i = 0; i < s->num_inputs; i++)
        draw_argument(d, s, &s->inputs[i]);
    tw_node *node = NULL;
    unsigned device = next_below(&d->n, 4);
    TW_DEVICE(d->graph, "%s", device == 1 ? "/gpu:0" : device == 2 ? "/gpu:1" : "")
        node = tw_add_node(d->graph, ops[number]->name, NULL, d->inputs, d->num_inputs, d->attrs, d->num_attrs);
    for (int i = 0; node && tw_graph_status(d->graph) == TW_OK && i < tw_node_num_outputs(node) && d->count < MOST_OUTPUTS; i++)
        if (is_small(tw_node_output(node, i)))
            d->outputs[d->count++] = tw_node_output(node, i);
}

/* The same numbers again until a node is refused: what is built of them is drawn before it. */
static tw_graph *draw_graph(const uint8_t *bytes, size_t size, int nodes, drawing *d)
{
    *d = (drawing){.n = {bytes, bytes + size}, .graph = tw_graph_create()};
    if (!d->graph)
        return NULL;
    tw_graph_set_seed(d->graph, 1);
    for (int i = 0; i < nodes && d->n.at < d->n.end && tw_graph_status(d->graph) == TW_OK; i++)
        draw_node(d);
    return d->graph;
}

static void differentiate(drawing *d)
{
    tw_output y = {0}, x = {0}, dx = {0};
    for (int i = 0; i < d->count; i++)
        if (tw_output_dtype(d->outputs[i]) == TW_FLOAT32)
            y = d->outputs[i];
    if (y.node && tw_node_num_inputs(y.node) > 0)
        x = tw_node_input(y.node, 0);
    if (!x.node || tw_output_dtype(x) != TW_FLOAT32)
        return;
    tw_gradients(d->graph, &y, 1, NULL, &x, 1, &dx);
    if (tw_graph_status(d->graph) == TW_OK && dx.node && d->count < MOST_OUTPUTS)
        d->outputs[d->count++] = dx;
}

static bool is_whole(tw_dtype type)
{
    return type == TW_INT32 || type == TW_INT64 || type == TW_INT16 || type == TW_INT8 || type == TW_UINT8 ||
           type == TW_BOOL;
}

/* Types and shapes are the same, whole numbers too; others as near as kernels that add in another order come. */
static void compare(const tw_tensor *fast, const tw_tensor *plain)
{
    tw_dtype type = tw_tensor_dtype(fast);
    double scale = 1, tolerance = type == TW_FLOAT16 || type == TW_BFLOAT16 ? 0.05 : 1e-2;
    if (type != tw_tensor_dtype(plain) || !tw_shape_equal(tw_tensor_shape(fast), tw_tensor_shape(plain)))
        abort();
    if (type == TW_STRING || type == TW_RESOURCE)
        return;
    for (int64_t i = 0; i < tw_tensor_elements(plain); i++)
        if (isfinite(tw_tensor_value(plain, i)))
            scale = fmax(scale, fabs(tw_tensor_value(plain, i)));
    for (int64_t i = 0; i < tw_tensor_elements(plain); i++) {
        double a = tw_tensor_value(fast, i), b = tw_tensor_value(plain, i);
        if (is_whole(type) ? a != b : isfinite(a) && isfinite(b) && fabs(a - b) > tolerance * scale)
            abort();
    }
}

static tw_status run_all(drawing *d, bool plain, const tw_output *fetches, int count, tw_tensor **results)
{
    tw_error error = {0};
    tw_session *session;
    tw_status status = tw_session_create(d->graph,
                                         TW_OPTIONS(tw_session_options, .devices = devices(), .allow_soft_placement = true,
                                                    .plain_kernels = plain, .disable = plain ? "all" : NULL),
                                         &session, &error);
    if (status != TW_OK)
        return status;
    status = run_watched(session, fetches, count, results, &error);
    tw_session_destroy(session);
    return status;
}

/* Whether two sessions give the same: nothing in it knows of state, or draws. */
static bool is_pure(const tw_graph *graph)
{
    for (int i = 0; i < tw_graph_num_nodes(graph); i++)
        if (twi_op_is(twi_op_find(tw_node_op(tw_graph_node(graph, i))), TWI_STATEFUL))
            return false;
    return true;
}

void fuzz_ops(const uint8_t *bytes, size_t size)
{
    drawing d;
    tw_tensor *fast[MOST_FETCHES] = {NULL}, *plain[MOST_FETCHES] = {NULL};
    devices();
    int nodes = MOST_NODES;
    tw_graph *graph = draw_graph(bytes, size, nodes, &d);
    for (; graph && tw_graph_status(graph) != TW_OK && nodes > 0; nodes--) {
        tw_graph_destroy(graph);
        graph = draw_graph(bytes, size, nodes - 1, &d);
    }
    if (!graph)
        return;
    differentiate(&d);
    if (tw_graph_status(graph) != TW_OK) { /* what has no gradient is drawn once more without */
        tw_graph_destroy(graph);
        graph = draw_graph(bytes, size, nodes, &d);
    }
    int count = d.count < MOST_FETCHES ? d.count : MOST_FETCHES;
    const tw_output *fetches = d.outputs + d.count - count;
    if (graph && tw_graph_status(graph) == TW_OK && count > 0) {
        tw_status one = run_all(&d, false, fetches, count, fast);
        tw_status two = run_all(&d, true, fetches, count, plain);
        for (int i = 0; i < count && one == TW_OK && two == TW_OK && is_pure(graph); i++)
            compare(fast[i], plain[i]);
    }
    for (int i = 0; i < MOST_FETCHES; i++) {
        tw_tensor_release(fast[i]);
        tw_tensor_release(plain[i]);
    }
    tw_graph_destroy(graph);
}

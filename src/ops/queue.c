/* queue.c - queues as nodes of a graph: making, filling and emptying them. */
#include "base/sized.h"
#include "ops/build.h"

#include <string.h>
#include <tower/queue.h>

/* ---- shape rules ------------------------------------------------------------------------------------------- */

static tw_status fail(twi_inference *c, const char *attr, int64_t value, const char *expected)
{
    return twi_fail(c->error, TW_INVALID_ARGUMENT, "attribute '%s' is %lld, expected %s", attr, (long long)value,
                    expected);
}

/* A handle is a scalar. What the attributes say of the elements is checked here, once. */
static tw_status queue_shape(twi_inference *c)
{
    const twi_attr *types = twi_attr_find(c->attrs, "component_types"), *shapes = twi_attr_find(c->attrs, "shapes");
    int64_t capacity = twi_attr_int(c->attrs, "capacity", -1), kept = twi_attr_int(c->attrs, "min_after_dequeue", 0);
    if (shapes->count && shapes->count != types->count)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "%d shapes for %d components", shapes->count, types->count);
    for (int i = 0; i < types->count; i++)
        if (types->types[i] == TW_RESOURCE)
            return twi_fail(c->error, TW_INVALID_ARGUMENT, "component %d is a resource, which cannot be queued", i);
    if (capacity == 0)
        return fail(c, "capacity", capacity, "1 or more, or -1 for no limit");
    if (kept < 0)
        return fail(c, "min_after_dequeue", kept, "0 or more");
    if (capacity > 0 && kept >= capacity)
        return fail(c, "min_after_dequeue", kept, "less than the capacity");
    c->outputs[0] = TW_SCALAR;
    return TW_OK;
}

static tw_status no_outputs(twi_inference *c)
{
    (void)c;
    return TW_OK;
}

/* Shapes of the elements behind a handle; NULL where they are not known. */
static const twi_attr *element_shapes(const twi_inference *c)
{
    tw_output queue = c->sources[0];
    while (twi_op_is(queue.node->op, TWI_PASSES))
        queue = queue.node->inputs[queue.index];
    const twi_attr *shapes = twi_attr_find(&queue.node->attrs, "shapes");
    return shapes && shapes->count ? shapes : NULL;
}

/* Outputs as the queue's elements, after a dimension of `rows` (-2: none). The priority of a PriorityQueue comes before
 * the components that have a shape in its attributes. */
static tw_status elements_shape(twi_inference *c, int64_t rows)
{
    const twi_attr *shapes = element_shapes(c), *stated = twi_attr_find(c->attrs, "_padded_shapes");
    int before = shapes ? c->num_outputs - shapes->count : 0;
    if (shapes && (before < 0 || before > 1))
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "%d components are asked of a queue whose elements have %d",
                        c->num_outputs, shapes->count);
    for (int i = 0; i < c->num_outputs; i++) {
        tw_shape shape = !shapes ? TW_UNKNOWN_SHAPE : i < before ? TW_SCALAR : shapes->shapes[i - before];
        if (rows != -2 && shape.rank == TW_MAX_RANK)
            return twi_fail(c->error, TW_UNIMPLEMENTED, "elements have the highest rank there is, %d", TW_MAX_RANK);
        if (rows != -2 && shape.rank >= 0) {
            memmove(shape.dims + 1, shape.dims, sizeof *shape.dims * (size_t)shape.rank++);
            shape.dims[0] = rows;
        }
        if (stated && stated->kind == TW_ATTR_SHAPES && stated->count == c->num_outputs) {
            tw_status status = twi_merge_shapes(shape, stated->shapes[i], &shape, c->error);
            if (status != TW_OK)
                return status;
        }
        c->outputs[i] = shape;
    }
    return TW_OK;
}

static tw_status dequeue_shape(twi_inference *c)
{
    return elements_shape(c, -2);
}

static tw_status dequeue_many_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 1, 0);
    const tw_tensor *n = twi_ask_value(c, 1);
    int64_t rows = n && tw_tensor_elements(n) == 1 ? *(const int32_t *)tw_tensor_data(n) : -1;
    if (status == TW_OK && n && rows < 0)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "%lld elements are asked for, expected 0 or more",
                        (long long)rows);
    return status == TW_OK ? elements_shape(c, rows) : status;
}

/* Fewer where the queue is closed and has no more. */
static tw_status dequeue_up_to_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 1, 0);
    return status == TW_OK ? elements_shape(c, -1) : status;
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define ELEMENTS "component_types:types>=1; shapes:shapes=[]; capacity:int=-1; "
#define NAMES "container:string=; shared_name:string="
#define STATE TWI_STATEFUL | TWI_HOST_ONLY
#define TAKES STATE | TWI_INPUT | TWI_MAKES_SHAPE

const twi_op twi_queue_ops[] = {
    {"FIFOQueueV2", "", "handle:resource", ELEMENTS NAMES, queue_shape, NULL, STATE, .makes = TWI_MAKES_QUEUE},
    {"RandomShuffleQueueV2", "", "handle:resource", ELEMENTS "min_after_dequeue:int=0; seed:int=0; seed2:int=0; " NAMES,
     queue_shape, NULL, STATE, .makes = TWI_MAKES_QUEUE},
    {"PaddingFIFOQueueV2", "", "handle:resource", ELEMENTS NAMES, queue_shape, NULL, STATE, .makes = TWI_MAKES_QUEUE},
    {"PriorityQueueV2", "", "handle:resource", "component_types:types=[]; shapes:shapes; capacity:int=-1; " NAMES,
     queue_shape, NULL, STATE, .makes = TWI_MAKES_QUEUE},
    {"QueueEnqueueV2", "handle:resource, components:Tcomponents", "", "Tcomponents:types>=1; timeout_ms:int=-1",
     no_outputs, NULL, STATE, "q."},
    {"QueueEnqueueManyV2", "handle:resource, components:Tcomponents", "", "Tcomponents:types>=1; timeout_ms:int=-1",
     no_outputs, NULL, STATE, "q."},
    {"QueueDequeueV2", "handle:resource", "components:component_types", "component_types:types>=1; timeout_ms:int=-1",
     dequeue_shape, twi_not_differentiable, TAKES, "q"},
    {"QueueDequeueManyV2", "handle:resource, n:int32", "components:component_types",
     "component_types:types>=1; timeout_ms:int=-1", dequeue_many_shape, twi_not_differentiable, TAKES, "q."},
    {"QueueDequeueUpToV2", "handle:resource, n:int32", "components:component_types",
     "component_types:types>=1; timeout_ms:int=-1", dequeue_up_to_shape, twi_not_differentiable, TAKES, "q."},
    {"QueueCloseV2", "handle:resource", "", "cancel_pending_enqueues:bool=false", no_outputs, NULL, STATE, "q"},
    {"QueueIsClosedV2", "handle:resource", "is_closed:bool", "", twi_shape_scalar, twi_not_differentiable, STATE, "q"},
    {"QueueSizeV2", "handle:resource", "size:int32", "", twi_shape_scalar, twi_not_differentiable, STATE, "q"},
    {0},
};

/* ---- builders ---------------------------------------------------------------------------------------------- */

tw_output tw_queue(tw_graph *graph, tw_queue_kind kind, const tw_dtype *types, const tw_shape *shapes, int count,
                   const tw_queue_options *options)
{
    static const char *const ops[] = { /* ORDER QUEUES */
        "FIFOQueueV2", "RandomShuffleQueueV2", "PaddingFIFOQueueV2", "PriorityQueueV2"};
    tw_queue_options whole, *o = &whole;
    int64_t seeds[2];
    TWI_TAKE_IN(graph, o, options, TWI_SIZE(tw_queue_options, shared_name), (tw_output){0});
    twi_op_seeds(graph, o->seed, seeds);
    tw_attr attrs[] = {
        tw_attr_types("component_types", types, count),
        tw_attr_shapes("shapes", shapes, shapes ? count : 0),
        tw_attr_int("capacity", o->capacity ? o->capacity : -1),
        tw_attr_string("shared_name", o->shared_name ? o->shared_name : ""),
        tw_attr_int("min_after_dequeue", o->min_after_dequeue), /* these three of RandomShuffleQueue alone */
        tw_attr_int("seed", seeds[0]),
        tw_attr_int("seed2", seeds[1]),
    };
    return twi_build(graph, ops[kind], NULL, 0, attrs, kind == TW_QUEUE_SHUFFLE ? 7 : 4);
}

/* The next node is named after its queue, as TensorFlow's Python does, unless tw_name() says otherwise. */
static tw_graph *name_after(tw_graph *graph, tw_output queue, const char *what)
{
    if (!graph || graph->next_name || !queue.node)
        return graph;
    const char *name = tw_node_name(queue.node), *last = strrchr(name, '/');
    return tw_name(graph, "%s_%s", last ? last + 1 : name, what);
}

static tw_output enqueue(tw_graph *graph, const char *op, tw_output queue, const tw_output *components, int count)
{
    tw_output *inputs = twi_alloc_array((size_t)count + 1, sizeof *inputs);
    if (!inputs) {
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while adding %s", op);
        return (tw_output){0};
    }
    inputs[0] = queue;
    for (int i = 0; i < count; i++)
        inputs[1 + i] = components[i];
    tw_output node = twi_build(graph, op, inputs, count + 1, TWI_NO_ATTRS);
    twi_free(inputs);
    return node;
}

tw_output tw_enqueue(tw_graph *graph, tw_output queue, const tw_output *components, int count)
{
    TWI_NEED_IN(graph, components || count <= 0, "components", (tw_output){0});
    return enqueue(name_after(graph, queue, "enqueue"), "QueueEnqueueV2", queue, components, count);
}

tw_output tw_enqueue_many(tw_graph *graph, tw_output queue, const tw_output *components, int count)
{
    TWI_NEED_IN(graph, components || count <= 0, "components", (tw_output){0});
    return enqueue(name_after(graph, queue, "EnqueueMany"), "QueueEnqueueManyV2", queue, components, count);
}

/* The types of the elements behind a handle, priority included. */
static int element_types(const tw_node *queue, tw_dtype *types, int limit)
{
    const twi_attr *listed = twi_attr_find(&queue->attrs, "component_types");
    int more = strcmp(queue->op->name, "PriorityQueueV2") == 0, count = more;
    types[0] = TW_INT64;
    for (int i = 0; listed && i < listed->count && count < limit; i++)
        types[count++] = listed->types[i];
    return count;
}

/* n < 0: a single element. */
static void dequeue(tw_graph *graph, tw_output queue, int64_t n, const tw_shape *padded, tw_output *components)
{
    enum { MOST = 64 };
    tw_dtype types[MOST];
    tw_shape shapes[MOST];
    if (!queue.node)
        return;
    int count = element_types(queue.node, types, MOST);
    tw_output inputs[2] = {queue};
    const char *name = graph->next_name; /* is the batch's, not the constant's */
    graph->next_name = NULL;
    if (n >= 0)
        inputs[1] = twi_constant_int(tw_name(graph, "n"), n);
    graph->next_name = name;
    name_after(graph, queue, n >= 0 ? "DequeueMany" : "Dequeue");
    for (int i = 0; padded && i < count; i++) {
        shapes[i] = padded[i];
        if (shapes[i].rank >= 0 && shapes[i].rank < TW_MAX_RANK) {
            memmove(shapes[i].dims + 1, shapes[i].dims, sizeof *shapes[i].dims * (size_t)shapes[i].rank++);
            shapes[i].dims[0] = n;
        }
    }
    tw_attr attrs[] = {tw_attr_types("component_types", types, count), tw_attr_shapes("_padded_shapes", shapes, count)};
    tw_node *node = tw_add_node(graph, n >= 0 ? "QueueDequeueManyV2" : "QueueDequeueV2", NULL, inputs, n >= 0 ? 2 : 1,
                                attrs, padded ? 2 : 1);
    for (int i = 0; i < count; i++)
        components[i] = tw_node_output(node, i);
}

void tw_dequeue(tw_graph *graph, tw_output queue, tw_output *components)
{
    TWI_NEED_OR(graph, );
    dequeue(graph, queue, -1, NULL, components);
}

void tw_dequeue_many(tw_graph *graph, tw_output queue, int64_t n, tw_output *components)
{
    TWI_NEED_OR(graph, );
    dequeue(graph, queue, n, NULL, components);
}

void tw_dequeue_padded(tw_graph *graph, tw_output queue, int64_t n, const tw_shape *shapes, tw_output *components)
{
    TWI_NEED_OR(graph, );
    dequeue(graph, queue, n, shapes, components);
}

tw_output tw_queue_close(tw_graph *graph, tw_output queue, bool cancel_pending_enqueues)
{
    return twi_build(name_after(graph, queue, "Close"), "QueueCloseV2", TWI_INPUTS(queue),
                     TWI_ATTRS(tw_attr_bool("cancel_pending_enqueues", cancel_pending_enqueues)));
}

tw_output tw_queue_size(tw_graph *graph, tw_output queue)
{
    return twi_build(name_after(graph, queue, "Size"), "QueueSizeV2", TWI_INPUTS(queue), TWI_NO_ATTRS);
}

tw_output tw_queue_is_closed(tw_graph *graph, tw_output queue)
{
    return twi_build(name_after(graph, queue, "is_closed"), "QueueIsClosedV2", TWI_INPUTS(queue), TWI_NO_ATTRS);
}

void tw_add_queue_runner(tw_graph *graph, const tw_queue_runner *r)
{
    TWI_NEED_OR(graph, );
    TWI_NEED_IN(graph, r, "runner", );
    tw_output close = r->close, cancel = r->cancel;
    if (!close.node)
        close = tw_queue_close(graph, r->queue, false);
    if (!cancel.node)
        cancel = tw_queue_close(graph, r->queue, true);
    tw_add_to_collection(graph, "queue_runners", r->queue);
    tw_add_to_collection(graph, "queue_runners", close);
    tw_add_to_collection(graph, "queue_runners", cancel);
    for (int i = 0; i < r->num_enqueues; i++)
        tw_add_to_collection(graph, "queue_runners", r->enqueues[i]);
}

/* queue.c - the ops of queues; device/state/queue.h does the work. */
#include "device/state/queue.h"

#include <string.h>

/* ---- making ----------------------------------------------------------------------------------------------------- */

typedef struct kind {
    const char *op, *name;
    twi_queue_order order;
    bool pads;
} kind;

static const kind *find_kind(const char *op)
{
    static const kind kinds[] = {
        {"FIFOQueueV2", "FIFOQueue", TWI_QUEUE_FIFO, false},
        {"PaddingFIFOQueueV2", "PaddingFIFOQueue", TWI_QUEUE_FIFO, true},
        {"RandomShuffleQueueV2", "RandomShuffleQueue", TWI_QUEUE_RANDOM, false},
        {"PriorityQueueV2", "PriorityQueue", TWI_QUEUE_PRIORITY, false},
    };
    const kind *found = kinds;
    while (strcmp(found->op, op) != 0)
        found++;
    return found;
}

/* The shape rule has checked the attributes. A PriorityQueue has one component more than they list: the priority. */
static tw_status prepare_queue(twi_prepare *p)
{
    const kind *k = find_kind(p->op);
    const twi_attr *types = twi_attr_find(p->attrs, "component_types"), *shapes = twi_attr_find(p->attrs, "shapes");
    int more = k->order == TWI_QUEUE_PRIORITY, count = types->count + more;
    tw_dtype own_types[TWI_QUEUE_COMPONENTS] = {TW_INT64};
    tw_shape own_shapes[TWI_QUEUE_COMPONENTS] = {TW_SCALAR};
    if (count > TWI_QUEUE_COMPONENTS)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s' has %d components, the most are %d", k->name, p->node,
                        count, TWI_QUEUE_COMPONENTS);
    for (int i = more; i < count; i++) {
        own_types[i] = types->types[i - more];
        own_shapes[i] = shapes->count ? shapes->shapes[i - more] : TW_UNKNOWN_SHAPE;
    }
    return twi_queue_make(p->outputs[0].resource,
                          &(twi_queue_options){
                              .kind = k->name,
                              .name = p->node,
                              .order = k->order,
                              .pads = k->pads,
                              .capacity = twi_attr_int(p->attrs, "capacity", -1),
                              .min_after_dequeue = twi_attr_int(p->attrs, "min_after_dequeue", 0),
                              .seed = (uint64_t)twi_attr_int(p->attrs, "seed", 0),
                              .seed2 = (uint64_t)twi_attr_int(p->attrs, "seed2", 0),
                              .num_components = count,
                              .types = own_types,
                              .shapes = shapes->count || more ? own_shapes : NULL,
                          },
                          p->error);
}

/* ---- using ------------------------------------------------------------------------------------------------------ */

/* state: the queue. */
static tw_status prepare_use(twi_prepare *p)
{
    p->state = twi_queue_of(p->inputs[0].resource);
    if (!p->state)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': its input 0 is not the handle of a queue", p->op,
                        p->node);
    return TW_OK;
}

/* The rows of a batch; -1 for a single element. */
static int64_t rows_of(const twi_operand *component, bool batch)
{
    return batch && component->shape.rank > 0 ? component->shape.dims[0] : batch ? 0 : -1;
}

static tw_status prepare_components(twi_prepare *p, const twi_operand *components, int count, bool batch)
{
    tw_status status = prepare_use(p);
    if (status != TW_OK)
        return status;
    status = twi_queue_check(p->state, components, count, count ? rows_of(components, batch) : -1, p->error);
    if (status != TW_OK)
        twi_prefix(p->error, "%s '%s'", p->op, p->node);
    return status;
}

static tw_status prepare_enqueue(twi_prepare *p)
{
    return prepare_components(p, p->inputs + 1, p->num_inputs - 1, false);
}

static tw_status prepare_enqueue_many(twi_prepare *p)
{
    return prepare_components(p, p->inputs + 1, p->num_inputs - 1, true);
}

static tw_status prepare_dequeue(twi_prepare *p)
{
    return prepare_components(p, p->outputs, p->num_outputs, false);
}

static tw_status prepare_dequeue_many(twi_prepare *p)
{
    return prepare_components(p, p->outputs, p->num_outputs, true);
}

/* As many as there will be: the rows are compared as if there were none. */
static tw_status prepare_dequeue_up_to(twi_prepare *p)
{
    twi_operand outputs[TWI_QUEUE_COMPONENTS];
    for (int i = 0; i < p->num_outputs && i < TWI_QUEUE_COMPONENTS; i++) {
        outputs[i] = p->outputs[i];
        outputs[i].shape.dims[0] = outputs[i].shape.rank > 0 ? 0 : outputs[i].shape.dims[0];
    }
    return prepare_components(p, outputs, p->num_outputs, true);
}

static tw_status run_enqueue(const twi_run *r)
{
    return twi_queue_put(r->state, r, r->input_operands + 1, r->inputs + 1, -1);
}

static tw_status run_enqueue_many(const twi_run *r)
{
    return twi_queue_put(r->state, r, r->input_operands + 1, r->inputs + 1, rows_of(&r->input_operands[1], true));
}

static tw_status run_dequeue(const twi_run *r)
{
    return twi_queue_take(r->state, r, -1, false);
}

static tw_status run_dequeue_many(const twi_run *r)
{
    return twi_queue_take(r->state, r, *(const int32_t *)r->inputs[1], false);
}

static tw_status run_dequeue_up_to(const twi_run *r)
{
    return twi_queue_take(r->state, r, *(const int32_t *)r->inputs[1], true);
}

static const bool cancels = true;

/* state: NULL, or something if those who wait to put something in are to fail. */
static tw_status prepare_close(twi_prepare *p)
{
    tw_status status = prepare_use(p);
    p->state = twi_attr_bool(p->attrs, "cancel_pending_enqueues", false) ? (void *)&cancels : NULL;
    return status;
}

static tw_status run_close(const twi_run *r)
{
    return twi_queue_close(twi_queue_of(r->input_operands[0].resource), r, r->state != NULL);
}

static tw_status run_is_closed(const twi_run *r)
{
    *(bool *)r->outputs[0] = twi_queue_is_closed(r->state);
    return TW_OK;
}

static tw_status run_size(const twi_run *r)
{
    *(int32_t *)r->outputs[0] = (int32_t)twi_queue_size(r->state);
    return TW_OK;
}

const twi_kernel twi_cpu_queue_kernels[] = {
    {"FIFOQueueV2", "plain", 0, prepare_queue},
    {"RandomShuffleQueueV2", "plain", 0, prepare_queue},
    {"PaddingFIFOQueueV2", "plain", 0, prepare_queue},
    {"PriorityQueueV2", "plain", 0, prepare_queue},
    {"QueueEnqueueV2", "plain", 0, prepare_enqueue, run_enqueue},
    {"QueueEnqueueManyV2", "plain", 0, prepare_enqueue_many, run_enqueue_many},
    {"QueueDequeueV2", "plain", 0, prepare_dequeue, run_dequeue},
    {"QueueDequeueManyV2", "plain", 0, prepare_dequeue_many, run_dequeue_many},
    {"QueueDequeueUpToV2", "plain", 0, prepare_dequeue_up_to, run_dequeue_up_to},
    {"QueueCloseV2", "plain", 0, prepare_close, run_close},
    {"QueueIsClosedV2", "plain", 0, prepare_use, run_is_closed},
    {"QueueSizeV2", "plain", 0, prepare_use, run_size},
    {0},
};

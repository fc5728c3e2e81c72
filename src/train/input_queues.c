/* input_queues.c - input made of queues and runners: names of files, batches, a step in advance. Scopes and names are
 * those of TensorFlow's functions. */
#include "base/sized.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>
#include <tower/ops.h>
#include <tower/queue.h>

enum { MOST_COMPONENTS = 64 };

/* A runner of one node in so many threads. */
static void add_runner(tw_graph *graph, tw_output queue, tw_output enqueue, int threads)
{
    tw_output *nodes = twi_alloc_array((size_t)threads, sizeof *nodes);
    if (!nodes) {
        tw_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while adding a queue runner");
        return;
    }
    for (int i = 0; i < threads; i++)
        nodes[i] = enqueue;
    tw_add_queue_runner(graph, &(tw_queue_runner){.queue = queue, .enqueues = nodes, .num_enqueues = threads});
    twi_free(nodes);
}

/* A curve of how full the queue is, of what it may hold beyond `kept`. */
static void add_summary(tw_graph *graph, tw_output queue, int64_t kept, int64_t capacity)
{
    char name[96];
    if (kept)
        snprintf(name, sizeof name, "fraction_over_%lld_of_%lld_full", (long long)kept, (long long)(capacity - kept));
    else
        snprintf(name, sizeof name, "fraction_of_%lld_full", (long long)capacity);
    tw_output size = tw_queue_size(graph, queue);
    if (kept) {
        tw_output least = tw_scalar_of(tw_name(graph, "sub/y"), TW_INT32, (double)kept);
        tw_output above = tw_sub(tw_name(graph, "sub"), size, least);
        tw_output none = tw_scalar_of(tw_name(graph, "Maximum/x"), TW_INT32, 0);
        size = tw_maximum(graph, none, above);
    }
    tw_output held = tw_cast(graph, size, TW_FLOAT32);
    tw_output part = tw_scalar(tw_name(graph, "mul/y"), 1.f / (float)(capacity - kept));
    tw_output fraction = tw_mul(tw_name(graph, "mul"), held, part);
    tw_summary_scalar(graph, name, fraction);
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

static tw_output list_of_names(tw_graph *graph, const char *const *names, int count)
{
    tw_tensor *list = tw_tensor_create(TW_STRING, TW_SHAPE(count));
    bool filled = list != NULL;
    for (int i = 0; i < count && filled; i++)
        filled = tw_tensor_set_string(list, i, names[i], strlen(names[i])) == TW_OK;
    if (!filled)
        tw_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while listing names");
    tw_output constant = filled ? tw_constant(graph, list) : (tw_output){0};
    tw_tensor_release(list);
    return constant;
}

/* `names`, as often as there are epochs. */
static tw_output limit_epochs(tw_graph *graph, tw_output names, int64_t epochs)
{
    char name[600];
    tw_output limited = {0};
    TW_NAME_SCOPE(graph, "limit_epochs")
    {
        snprintf(name, sizeof name, "%sepochs", tw_name_scope(graph));
        tw_new_variable counter = {.dtype = TW_INT64, .shape = TW_SCALAR};
        tw_variable *variable = tw_make_variable(graph, name, &counter);
        if (variable) {
            tw_output count = tw_count_up_to(graph, variable->handle, epochs);
            TW_CONTROL(graph, count)
                limited = tw_identity(graph, names);
        }
    }
    return limited;
}

tw_output tw_string_input_producer(tw_graph *graph, const char *const *names, int count,
                                   const tw_input_producer_options *options)
{
    TWI_NEED_IN(graph, names || count <= 0, "names", (tw_output){0});
    tw_input_producer_options whole, *o = &whole;
    static const tw_dtype type[] = {TW_STRING};
    static const tw_shape shape[] = {{0, {0}}};
    tw_output queue = {0};
    TWI_TAKE_IN(graph, o, options, TWI_SIZE(tw_input_producer_options, capacity), queue);
    if (count < 1) {
        tw_graph_fail(graph, TW_INVALID_ARGUMENT, "string_input_producer requires a non-null input tensor: 0 names");
        return queue;
    }
    TW_NAME_SCOPE(graph, "input_producer")
    {
        int64_t capacity = o->capacity ? o->capacity : 32;
        const char *scope = tw_name_scope(graph);
        tw_output list = list_of_names(graph, names, count);
        if (!o->in_order)
            list = tw_random_shuffle(graph, list, o->seed);
        if (o->epochs)
            list = limit_epochs(graph, list, o->epochs);
        queue = tw_queue(tw_name(graph, "%s", scope), TW_QUEUE_FIFO, type, shape, 1,
                         &(tw_queue_options){.capacity = capacity});
        add_runner(graph, queue, tw_enqueue_many(graph, queue, &list, 1), 1);
        add_summary(graph, queue, 0, capacity);
    }
    return queue;
}

/* ---- batches ---------------------------------------------------------------------------------------------------- */

/* A queue for such components, what fills it, and its runner. */
static tw_output fill_queue(tw_graph *graph, tw_queue_kind kind, const char *name, const tw_output *components,
                            int count, const tw_batch_options *o, int64_t capacity)
{
    tw_dtype types[MOST_COMPONENTS];
    tw_shape shapes[MOST_COMPONENTS];
    if (count < 1 || count > MOST_COMPONENTS) {
        tw_graph_fail(graph, TW_INVALID_ARGUMENT, "a queue of %d components: expected 1 to %d", count, MOST_COMPONENTS);
        return (tw_output){0};
    }
    for (int i = 0; i < count; i++) {
        types[i] = tw_output_dtype(components[i]);
        shapes[i] = tw_output_shape(components[i]);
        if (o->enqueue_many && shapes[i].rank > 0)
            memmove(shapes[i].dims, shapes[i].dims + 1, sizeof *shapes[i].dims * (size_t)--shapes[i].rank);
    }
    tw_queue_options options = {.capacity = capacity, .min_after_dequeue = o->min_after_dequeue, .seed = o->seed};
    tw_output queue = tw_queue(tw_name(graph, "%s", name), kind, types, shapes, count, &options);
    tw_output enqueue = o->enqueue_many ? tw_enqueue_many(graph, queue, components, count)
                                        : tw_enqueue(graph, queue, components, count);
    add_runner(graph, queue, enqueue, o->threads > 0 ? o->threads : 1);
    add_summary(graph, queue, o->min_after_dequeue, capacity);
    return queue;
}

void tw_batch(tw_graph *graph, const tw_output *components, int count, const tw_batch_options *options,
              tw_output *batches)
{
    TWI_NEED_IN(graph, components || count <= 0, "components", );
    TWI_NEED_IN(graph, batches, "batches", );
    tw_batch_options whole, *o = &whole;
    TWI_NEED_IN(graph, options, "options", );
    TWI_TAKE_IN(graph, o, options, TWI_SIZE(tw_batch_options, enqueue_many), );
    o->min_after_dequeue = 0;
    TW_NAME_SCOPE(graph, "batch")
    {
        const char *scope = tw_name_scope(graph);
        tw_output queue = fill_queue(graph, TW_QUEUE_FIFO, "fifo_queue", components, count, o,
                                     o->capacity ? o->capacity : 32);
        tw_dequeue_many(tw_name(graph, "%s", scope), queue, o->batch, batches);
    }
}

void tw_shuffle_batch(tw_graph *graph, const tw_output *components, int count, const tw_batch_options *options,
                      tw_output *batches)
{
    TWI_NEED_IN(graph, components || count <= 0, "components", );
    TWI_NEED_IN(graph, batches, "batches", );
    tw_batch_options whole, *o = &whole;
    TWI_NEED_IN(graph, options, "options", );
    TWI_TAKE_IN(graph, o, options, TWI_SIZE(tw_batch_options, enqueue_many), );
    TW_NAME_SCOPE(graph, "shuffle_batch")
    {
        const char *scope = tw_name_scope(graph);
        tw_output queue = fill_queue(graph, TW_QUEUE_SHUFFLE, "random_shuffle_queue", components, count, o,
                                     o->capacity ? o->capacity : o->min_after_dequeue + 3 * o->batch);
        tw_dequeue_many(tw_name(graph, "%s", scope), queue, o->batch, batches);
    }
}

tw_output tw_prefetch_queue(tw_graph *graph, const tw_output *components, int count, int64_t capacity)
{
    TWI_NEED_IN(graph, components || count <= 0, "components", (tw_output){0});
    tw_output queue = {0};
    TW_NAME_SCOPE(graph, "prefetch_queue")
        queue = fill_queue(graph, TW_QUEUE_FIFO, "fifo_queue", components, count, &(tw_batch_options){0},
                           capacity ? capacity : 8);
    return queue;
}

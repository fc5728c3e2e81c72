/* queue.c - see queue.h.
 *
 * An element's bytes are copied outside of the lock: who puts something in fills an element first and waits for room
 * then; who takes something has it to himself before he looks at it. */
#include "device/state/queue.h"

#include "base/memory.h"
#include "base/philox.h"
#include "device/state/monitor.h"
#include "tensor/tensor.h"
#include "tensor/variant.h"

#include <string.h>
#include <sys/random.h>

typedef struct component {
    tw_shape shape;
    size_t bytes, capacity;
    void *data;              /* tw_string: owned one by one */
} component;

typedef struct element {
    struct element *next;    /* in a chain: those that one attempt puts in or has taken, or those that are free */
    component components[];  /* as many as the queue has */
} element;

/* Somebody who waits, in a line of his kind. */
typedef struct waiter {
    struct waiter *next;
} waiter;

struct twi_queue {
    twi_monitor monitor; /* first; guards all that changes */
    twi_queue_options options; /* with texts and lists of its own */
    waiter *putters, *takers;  /* who came first stands first */
    int waiting;               /* threads that sleep at `changed` */
    bool closed;
    element **ring;            /* [room]: `count` elements from `first` on, around the end */
    int64_t room, first, count;
    element *free;
    twi_philox philox;         /* of the random order */
    uint32_t words[4];
    int words_left;
};

/* ---- making ---------------------------------------------------------------------------------------------------- */

static void free_chain(const twi_queue *q, element *e)
{
    while (e) {
        element *next = e->next;
        for (int i = 0; i < q->options.num_components; i++) {
            component *c = &e->components[i];
            tw_string *strings = c->data;
            for (size_t k = 0; q->options.types[i] == TW_STRING && k < c->capacity / sizeof *strings; k++)
                twi_free(strings[k].data);
            twi_free(c->data);
        }
        twi_free(e);
        e = next;
    }
}

static element **at(const twi_queue *q, int64_t i)
{
    return &q->ring[(q->first + i) % q->room];
}

static void destroy(void *object)
{
    twi_queue *q = object;
    if (!q)
        return;
    for (int64_t i = 0; i < q->count; i++)
        free_chain(q, *at(q, i));
    free_chain(q, q->free);
    twi_free(q->ring);
    twi_free((char *)q->options.name);
    twi_free((tw_dtype *)q->options.types);
    twi_free((tw_shape *)q->options.shapes);
    twi_monitor_destroy(&q->monitor);
    twi_free(q);
}

twi_queue *twi_queue_of(const twi_resource *resource)
{
    return resource && resource->destroy == destroy ? resource->object : NULL;
}

static void *copy_of(const void *from, size_t bytes)
{
    void *to = twi_alloc(bytes + 1);
    if (to && bytes)
        memcpy(to, from, bytes);
    return to;
}

static twi_queue *create(const twi_queue_options *options)
{
    twi_queue *q = twi_alloc(sizeof *q);
    if (!q)
        return NULL;
    size_t n = (size_t)options->num_components;
    uint64_t seeds[2] = {options->seed, options->seed2};
    twi_monitor_init(&q->monitor);
    q->options = *options;
    q->options.name = twi_strdup(options->name);
    q->options.types = copy_of(options->types, n * sizeof *options->types);
    q->options.shapes = options->shapes ? copy_of(options->shapes, n * sizeof *options->shapes) : NULL;
    if (!q->options.name || !q->options.types || (options->shapes && !q->options.shapes)) {
        destroy(q);
        return NULL;
    }
    if (seeds[0] == 0 && seeds[1] == 0 && getrandom(seeds, sizeof seeds, 0) != sizeof seeds)
        seeds[0] = (uint64_t)(uintptr_t)q; /* no such source on this machine */
    q->philox = twi_philox_seed(seeds[0], seeds[1]);
    return q;
}

static bool same_options(const twi_queue_options *a, const twi_queue_options *b)
{
    size_t n = (size_t)a->num_components;
    if (strcmp(a->kind, b->kind) != 0 || a->capacity != b->capacity || a->min_after_dequeue != b->min_after_dequeue ||
        a->seed != b->seed || a->seed2 != b->seed2 || a->num_components != b->num_components ||
        !a->shapes != !b->shapes || memcmp(a->types, b->types, n * sizeof *a->types) != 0)
        return false;
    for (size_t i = 0; a->shapes && i < n; i++)
        if (!tw_shape_equal(a->shapes[i], b->shapes[i]))
            return false;
    return true;
}

tw_status twi_queue_make(twi_resource *resource, const twi_queue_options *options, tw_error *error)
{
    const twi_queue *found = twi_queue_of(resource);
    if (found && same_options(&found->options, options))
        return TW_OK;
    if (found || resource->object || resource->memory)
        return twi_fail(error, TW_INVALID_ARGUMENT, "%s '%s': that name is taken by %s%s", options->kind, options->name,
                        found ? "another " : "something that is no queue",
                        found ? found->options.kind : "");
    resource->object = create(options);
    if (!resource->object)
        return twi_fail_memory(error, "making a queue");
    resource->destroy = destroy;
    resource->wake = twi_monitor_wake;
    return TW_OK;
}

/* ---- what fits -------------------------------------------------------------------------------------------------- */

/* The shape of one of the rows; of an element that is not a row, its own. */
static tw_shape row_of(tw_shape shape, int64_t rows)
{
    if (rows < 0 || shape.rank < 1)
        return shape;
    memmove(shape.dims, shape.dims + 1, sizeof *shape.dims * (size_t)--shape.rank);
    return shape;
}

tw_status twi_queue_check(const twi_queue *q, const twi_operand *components, int count, int64_t rows, tw_error *error)
{
    const twi_queue_options *o = &q->options;
    char has[96], wants[96];
    if (count != o->num_components)
        return twi_fail(error, TW_INVALID_ARGUMENT, "%s '%s' has elements of %d components, not %d", o->kind, o->name,
                        o->num_components, count);
    for (int i = 0; i < count; i++) {
        tw_shape shape = components[i].shape;
        if (components[i].dtype != o->types[i])
            return twi_fail(error, TW_INVALID_ARGUMENT, "component %d of %s '%s' is %s, not %s", i, o->kind, o->name,
                            tw_dtype_name(o->types[i]), tw_dtype_name(components[i].dtype));
        if (rows >= 0 && (shape.rank < 1 || shape.dims[0] != rows))
            return twi_fail(error, TW_INVALID_ARGUMENT,
                            "component %d for %s '%s' has shape %s: the first dimension counts elements, here %lld", i,
                            o->kind, o->name, tw_shape_text(shape, has, sizeof has), (long long)rows);
        shape = row_of(shape, rows);
        if (o->shapes && !tw_shape_compatible(o->shapes[i], shape))
            return twi_fail(error, TW_INVALID_ARGUMENT, "component %d of %s '%s' has shape %s, not %s", i, o->kind,
                            o->name, tw_shape_text(o->shapes[i], wants, sizeof wants),
                            tw_shape_text(shape, has, sizeof has));
    }
    return TW_OK;
}

/* ---- elements --------------------------------------------------------------------------------------------------- */

static element *new_element(twi_queue *q)
{
    twi_monitor_enter(&q->monitor);
    element *e = q->free;
    if (e)
        q->free = e->next;
    twi_monitor_leave(&q->monitor);
    if (!e)
        e = twi_alloc(sizeof *e + sizeof *e->components * (size_t)q->options.num_components);
    if (e)
        e->next = NULL;
    return e;
}

/* With the lock held. */
static void give_back(twi_queue *q, element *chain)
{
    while (chain) {
        element *next = chain->next;
        chain->next = q->free;
        q->free = chain;
        chain = next;
    }
}

static bool make_room(component *c, tw_dtype type, size_t bytes)
{
    if (bytes > c->capacity) {
        void *larger = twi_resize(c->data, bytes);
        if (!larger)
            return false;
        if (type == TW_STRING)
            memset((char *)larger + c->capacity, 0, bytes - c->capacity);
        c->data = larger;
        c->capacity = bytes;
    }
    c->bytes = bytes;
    return true;
}

static bool copy_in(component *c, tw_dtype type, tw_shape shape, const void *from)
{
    size_t bytes = (size_t)tw_shape_elements(shape) * tw_dtype_size(type);
    c->shape = shape;
    if (!make_room(c, type, bytes))
        return false;
    if (type != TW_STRING) {
        if (bytes)
            memcpy(c->data, from, bytes);
        return true;
    }
    for (size_t i = 0; i < bytes / sizeof(tw_string); i++) {
        const tw_string *string = (const tw_string *)from + i;
        if (!twi_string_set((tw_string *)c->data + i, string->data, string->size))
            return false;
    }
    return true;
}

/* A chain of filled elements, the first one first. */
static tw_status fill_chain(twi_queue *q, const twi_run *r, const twi_operand *operands, const void *const *components,
                            int64_t rows, element **chain)
{
    element **end = chain;
    for (int64_t row = 0; row < (rows < 0 ? 1 : rows); row++) {
        element *e = *end = new_element(q);
        if (!e)
            return twi_fail_memory(r->error, "putting something into a queue");
        end = &e->next;
        for (int i = 0; i < q->options.num_components; i++) {
            size_t bytes = rows > 0 ? operands[i].bytes / (size_t)rows : operands[i].bytes;
            if (!copy_in(&e->components[i], q->options.types[i], row_of(operands[i].shape, rows),
                         (const char *)components[i] + (size_t)row * bytes))
                return twi_fail_memory(r->error, "putting something into a queue");
        }
    }
    return TW_OK;
}

/* Strings change hands: what the output held comes back with the element and is used again. */
static void swap_strings(tw_string *a, tw_string *b, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof *a; i++) {
        tw_string kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

/* A smaller element into the corner of a larger place, dimension by dimension. */
static void pad_into(char *to, tw_shape place, const char *from, tw_shape shape, size_t size, int axis)
{
    if (axis == shape.rank) {
        memcpy(to, from, size);
        return;
    }
    size_t to_row = size, from_row = size;
    for (int i = axis + 1; i < shape.rank; i++) {
        to_row *= (size_t)place.dims[i];
        from_row *= (size_t)shape.dims[i];
    }
    for (int64_t i = 0; i < shape.dims[axis]; i++)
        pad_into(to + (size_t)i * to_row, place, from + (size_t)i * from_row, shape, size, axis + 1);
}

static tw_status copy_out(const twi_queue *q, const twi_run *r, element *e, const twi_operand *operands,
                          void *const *components, int64_t row, int64_t rows)
{
    for (int i = 0; i < q->options.num_components; i++) {
        component *c = &e->components[i];
        tw_shape place = row_of(operands[i].shape, rows);
        size_t bytes = rows > 0 ? operands[i].bytes / (size_t)rows : operands[i].bytes;
        char *to = (char *)components[i] + (size_t)row * bytes;
        char has[96], wants[96];
        bool fits = c->shape.rank == place.rank;
        for (int k = 0; k < place.rank && fits; k++)
            fits = q->options.pads ? c->shape.dims[k] <= place.dims[k] : c->shape.dims[k] == place.dims[k];
        if (!fits)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "%s '%s': the element taken has shape %s in component %d, the step was planned for %s",
                            q->options.kind, q->options.name, tw_shape_text(c->shape, has, sizeof has), i,
                            tw_shape_text(place, wants, sizeof wants));
        if (q->options.types[i] == TW_STRING) {
            swap_strings((tw_string *)to, c->data, c->bytes);
        } else if (c->bytes == bytes) {
            if (bytes)
                memcpy(to, c->data, bytes);
        } else {
            memset(to, 0, bytes);
            pad_into(to, place, c->data, c->shape, tw_dtype_size(q->options.types[i]), 0);
        }
    }
    return TW_OK;
}

/* ---- the ring, with the lock held ------------------------------------------------------------------------------- */

static bool push(twi_queue *q, element *e, bool in_front)
{
    if (q->count == q->room) {
        int64_t room = q->room ? 2 * q->room : 16;
        element **ring = twi_alloc_array((size_t)room, sizeof *ring);
        if (!ring)
            return false;
        for (int64_t i = 0; i < q->count; i++)
            ring[i] = *at(q, i);
        twi_free(q->ring);
        q->ring = ring;
        q->room = room;
        q->first = 0;
    }
    e->next = NULL;
    q->count++;
    if (in_front)
        q->first = (q->first + q->room - 1) % q->room;
    *at(q, in_front ? 0 : q->count - 1) = e;
    return true;
}

static int64_t choose_random(twi_queue *q)
{
    if (q->words_left == 0) {
        twi_philox_next(&q->philox, q->words);
        q->words_left = 4;
    }
    return (int64_t)(q->words[4 - q->words_left--] % (uint64_t)q->count);
}

static int64_t choose_smallest(const twi_queue *q)
{
    int64_t best = 0;
    for (int64_t i = 1; i < q->count; i++)
        if (*(int64_t *)(*at(q, i))->components[0].data < *(int64_t *)(*at(q, best))->components[0].data)
            best = i;
    return best;
}

static element *pull(twi_queue *q)
{
    int64_t i = q->options.order == TWI_QUEUE_RANDOM     ? choose_random(q)
                : q->options.order == TWI_QUEUE_PRIORITY ? choose_smallest(q)
                                                         : 0;
    element *e = *at(q, i);
    if (q->options.order == TWI_QUEUE_RANDOM) { /* the last takes its place */
        *at(q, i) = *at(q, q->count - 1);
    } else {
        for (; i > 0; i--) /* those before it move up */
            *at(q, i) = *at(q, i - 1);
        q->first = (q->first + 1) % q->room;
    }
    q->count--;
    return e;
}

/* How many may be taken now. */
static int64_t available(const twi_queue *q)
{
    return q->closed ? q->count : q->count - q->options.min_after_dequeue;
}

static bool has_room(const twi_queue *q)
{
    return q->options.capacity < 0 || q->count < q->options.capacity;
}

/* ---- waiting, with the lock held -------------------------------------------------------------------------------- */

static void stand_in_line(waiter **line, waiter *me)
{
    while (*line)
        line = &(*line)->next;
    *line = me;
}

static void notify(twi_queue *q)
{
    if (q->waiting)
        twi_monitor_notify(&q->monitor);
}

static void leave_line(twi_queue *q, waiter **line, waiter *me)
{
    while (*line != me)
        line = &(*line)->next;
    *line = me->next;
    notify(q);
}

static void wait_for_change(twi_queue *q)
{
    q->waiting++;
    twi_monitor_wait(&q->monitor);
    q->waiting--;
}

static tw_status fail_given_up(const twi_queue *q, const twi_run *r, const char *what)
{
    return twi_fail(r->error, TW_CANCELLED, "%s of %s '%s' was cancelled", what, q->options.kind, q->options.name);
}

/* ---- what can be done -------------------------------------------------------------------------------------------- */

tw_status twi_queue_put(twi_queue *q, const twi_run *r, const twi_operand *operands, const void *const *components,
                        int64_t rows)
{
    element *chain = NULL;
    waiter me = {0};
    bool waited = false;
    tw_status status = fill_chain(q, r, operands, components, rows, &chain);
    twi_monitor_enter(&q->monitor);
    stand_in_line(&q->putters, &me);
    while (status == TW_OK && chain) {
        element *next = chain->next;
        if (q->closed && waited)
            status = fail_given_up(q, r, "enqueue");
        else if (q->closed)
            status = twi_fail(r->error, TW_CANCELLED, "%s '%s' is closed", q->options.kind, q->options.name);
        else if (twi_run_is_ending(r))
            status = fail_given_up(q, r, "enqueue");
        else if (q->putters != &me || !has_room(q))
            waited = true, wait_for_change(q);
        else if (push(q, chain, false))
            chain = next, notify(q);
        else
            status = twi_fail_memory(r->error, "putting something into a queue");
    }
    leave_line(q, &q->putters, &me);
    give_back(q, chain);
    twi_monitor_leave(&q->monitor);
    return status;
}

/* What an attempt has taken goes back to where it was. */
static void put_back(twi_queue *q, element *taken)
{
    element *reversed = NULL;
    while (taken) {
        element *next = taken->next;
        taken->next = reversed;
        reversed = taken;
        taken = next;
    }
    while (reversed) {
        element *next = reversed->next;
        reversed->next = NULL;
        if (!push(q, reversed, true))
            give_back(q, reversed); /* others have filled its place, and there is no memory for a larger ring */
        reversed = next;
    }
}

/* *wanted becomes what a closed queue has, with up_to. */
static tw_status take_elements(twi_queue *q, const twi_run *r, int64_t *most, bool up_to, element **taken)
{
    int64_t wanted = *most;
    tw_status status = TW_OK;
    int64_t count = 0;
    bool told = true; /* those who wait for room */
    waiter me = {0};
    element **end = taken;
    twi_monitor_enter(&q->monitor);
    stand_in_line(&q->takers, &me);
    while (status == TW_OK && count < wanted) {
        bool is_first = q->takers == &me;
        if (is_first && q->closed && up_to && available(q) < wanted - count && available(q) + count > 0)
            wanted = available(q) + count;
        if (count == wanted)
            break;
        if (is_first && q->closed && available(q) < wanted - count) {
            put_back(q, *taken);
            *taken = NULL;
            status = twi_fail(r->error, TW_OUT_OF_RANGE,
                              "%s '%s' is closed and has insufficient elements (requested %lld, current size %lld)",
                              q->options.kind, q->options.name, (long long)wanted, (long long)q->count);
        } else if (twi_run_is_ending(r)) {
            put_back(q, *taken);
            *taken = NULL;
            status = fail_given_up(q, r, "dequeue");
        } else if (is_first && available(q) > 0) {
            *end = pull(q);
            end = &(*end)->next;
            *end = NULL;
            told = false;
            count++;
        } else {
            if (!told)
                notify(q);
            told = true;
            wait_for_change(q);
        }
    }
    leave_line(q, &q->takers, &me);
    twi_monitor_leave(&q->monitor);
    *most = wanted;
    return status;
}

/* What the component of all that was taken needs: of a batch of different sizes the largest. */
static tw_shape shape_of_taken(const twi_queue *q, const element *taken, int i, int64_t rows)
{
    tw_shape shape = taken ? taken->components[i].shape : q->options.shapes ? q->options.shapes[i] : TW_SCALAR;
    for (const element *e = taken; e; e = e->next)
        for (int k = 0; k < shape.rank && q->options.pads && e->components[i].shape.rank == shape.rank; k++)
            if (e->components[i].shape.dims[k] > shape.dims[k])
                shape.dims[k] = e->components[i].shape.dims[k];
    for (int k = 0; k < shape.rank && !taken; k++)
        shape.dims[k] = shape.dims[k] < 0 ? 0 : shape.dims[k];
    if (rows < 0 || shape.rank < 0)
        return shape;
    memmove(shape.dims + 1, shape.dims, sizeof *shape.dims * (size_t)shape.rank++);
    shape.dims[0] = rows;
    return shape;
}

static void give_taken(twi_queue *q, element *taken)
{
    twi_monitor_enter(&q->monitor);
    give_back(q, taken);
    twi_monitor_leave(&q->monitor);
}

tw_status twi_queue_take_one(twi_queue *q, const twi_run *r, const twi_operand *operands, void *const *components)
{
    element *taken = NULL;
    int64_t count = 1;
    tw_status status = take_elements(q, r, &count, false, &taken);
    if (status == TW_OK)
        status = copy_out(q, r, taken, operands, components, 0, -1);
    give_taken(q, taken);
    return status;
}

tw_status twi_queue_take(twi_queue *q, const twi_run *r, int64_t rows, bool up_to)
{
    element *taken = NULL;
    int64_t row = 0, count = rows < 0 ? 1 : rows;
    twi_operand operands[TWI_QUEUE_COMPONENTS];
    void *places[TWI_QUEUE_COMPONENTS];
    tw_status status = take_elements(q, r, &count, up_to, &taken);
    rows = rows < 0 ? rows : count;
    for (int i = 0; i < q->options.num_components && status == TW_OK; i++) {
        operands[i] = r->output_operands[i];
        if (operands[i].elements < 0) {
            operands[i].shape = shape_of_taken(q, taken, i, rows);
            operands[i].elements = tw_shape_elements(operands[i].shape);
            operands[i].bytes = (size_t)operands[i].elements * tw_dtype_size(operands[i].dtype);
        }
        status = twi_make_output(r, i, operands[i].shape, &places[i]);
    }
    for (element *e = taken; e && status == TW_OK; e = e->next)
        status = copy_out(q, r, e, operands, places, row++, rows);
    give_taken(q, taken);
    return status;
}

/* Component i of an element, which keeps it. */
static tw_status copy_component(const twi_queue *q, const twi_run *r, const component *c, int i)
{
    void *to;
    bool fits = true;
    tw_status status = twi_make_output(r, i, c->shape, &to);
    bool texts = q->options.types[i] == TW_STRING;
    if (texts && status == TW_OK)
        fits = twi_copy_owned(TW_STRING, c->data, to, c->bytes / sizeof(tw_string));
    else if (c->bytes && status == TW_OK)
        memcpy(to, c->data, c->bytes);
    return fits ? status : twi_fail_memory(r->error, r->node);
}

tw_status twi_queue_peek(twi_queue *q, const twi_run *r, int64_t index)
{
    tw_status status = TW_OK;
    if (index < 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': the index is %lld, expected 0 or more", r->node,
                        (long long)index);
    twi_monitor_enter(&q->monitor);
    while (q->count <= index && !twi_run_is_ending(r))
        wait_for_change(q);
    if (q->count <= index)
        status = fail_given_up(q, r, "peek");
    for (int i = 0; i < q->options.num_components && status == TW_OK; i++)
        status = copy_component(q, r, &(*at(q, index))->components[i], i);
    twi_monitor_leave(&q->monitor);
    return status;
}

tw_status twi_queue_close(twi_queue *q, const twi_run *r, bool cancel)
{
    tw_status status = TW_OK;
    waiter me = {0};
    twi_monitor_enter(&q->monitor);
    stand_in_line(&q->putters, &me);
    while (!cancel && !q->closed && q->putters != &me && !twi_run_is_ending(r))
        wait_for_change(q);
    if (q->closed)
        status = twi_fail(r->error, TW_CANCELLED, "%s '%s' is already closed", q->options.kind, q->options.name);
    else if (!cancel && q->putters != &me)
        status = fail_given_up(q, r, "close");
    else
        q->closed = true;
    leave_line(q, &q->putters, &me);
    twi_monitor_leave(&q->monitor);
    return status;
}

void twi_queue_clear(twi_queue *q)
{
    twi_monitor_enter(&q->monitor);
    while (q->count) {
        element *e = pull(q);
        e->next = NULL;
        give_back(q, e);
    }
    notify(q);
    twi_monitor_leave(&q->monitor);
}

int twi_queue_waiting(twi_queue *q)
{
    twi_monitor_enter(&q->monitor);
    int size = q->waiting;
    twi_monitor_leave(&q->monitor);
    return size;
}

int64_t twi_queue_size(twi_queue *q)
{
    twi_monitor_enter(&q->monitor);
    int64_t size = q->count;
    twi_monitor_leave(&q->monitor);
    return size;
}

bool twi_queue_is_closed(twi_queue *q)
{
    twi_monitor_enter(&q->monitor);
    bool closed = q->closed;
    twi_monitor_leave(&q->monitor);
    return closed;
}

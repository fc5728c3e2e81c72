/* dataset.c - see dataset.h. */
#include "device/dataset/dataset.h"

#include "base/memory.h"
#include "tensor/tensor.h"

#include <stdio.h>
#include <string.h>

/* ---- slots ------------------------------------------------------------------------------------------------------- */

typedef struct slot {
    pthread_mutex_t lock;
    tw_tensor *value;
} slot;

static void destroy_slot(void *object)
{
    slot *s = object;
    tw_tensor_release(s->value);
    pthread_mutex_destroy(&s->lock);
    twi_free(s);
}

bool twi_is_slot(const twi_resource *r)
{
    return r && r->object && r->destroy == destroy_slot;
}

tw_status twi_slot_make(twi_resource *r, const char *node, tw_error *error)
{
    if (twi_is_slot(r))
        return TW_OK;
    if (r->object || r->memory)
        return twi_fail(error, TW_INVALID_ARGUMENT, "the name of '%s' is taken by something else", node);
    slot *s = twi_alloc(sizeof *s);
    if (!s)
        return twi_fail_memory(error, node);
    pthread_mutex_init(&s->lock, NULL);
    r->object = s;
    r->destroy = destroy_slot;
    return TW_OK;
}

void twi_slot_put(twi_resource *r, tw_tensor *value)
{
    slot *s = r->object;
    pthread_mutex_lock(&s->lock);
    tw_tensor *old = s->value;
    s->value = value;
    pthread_mutex_unlock(&s->lock);
    tw_tensor_release(old);
}

tw_tensor *twi_slot_get(twi_resource *r)
{
    slot *s = r->object;
    pthread_mutex_lock(&s->lock);
    tw_tensor *value = s->value ? tw_tensor_retain(s->value) : NULL;
    pthread_mutex_unlock(&s->lock);
    return value;
}

/* ---- variants ---------------------------------------------------------------------------------------------------- */

typedef struct holder {
    void *object; /* first: what the tensor's data points to */
    void (*release)(void *object);
} holder;

static void release_holder(void *user)
{
    holder *h = user;
    h->release(h->object);
    twi_free(h);
}

tw_tensor *twi_variant(void *object, void (*release)(void *object))
{
    holder *h = object ? twi_alloc(sizeof *h) : NULL;
    if (h)
        *h = (holder){object, release};
    tw_tensor *tensor = h ? tw_tensor_wrap(TW_RESOURCE, TW_SCALAR, h, release_holder, h) : NULL;
    if (!tensor) {
        if (object)
            release(object);
        twi_free(h);
    }
    return tensor;
}

/* ---- recipes ----------------------------------------------------------------------------------------------------- */

void twi_recipe_free(void *object)
{
    twi_recipe *r = object;
    if (!r)
        return;
    if (r->kind->forget && r->facts)
        r->kind->forget(r);
    for (int i = 0; r->arguments && i < r->num_arguments; i++)
        tw_tensor_release(r->arguments[i]);
    twi_free(r->arguments);
    twi_free(r->types);
    twi_free(r->node);
    twi_free(r);
}

twi_recipe *twi_recipe_make(const twi_recipe_kind *kind, const char *node, int num_arguments, int num_components)
{
    twi_recipe *r = twi_alloc(sizeof *r);
    if (!r)
        return NULL;
    r->kind = kind;
    r->node = twi_strdup(node);
    r->arguments = twi_alloc_array((size_t)num_arguments + 1, sizeof *r->arguments);
    r->types = twi_alloc_array((size_t)num_components + 1, sizeof *r->types);
    r->num_arguments = num_arguments;
    r->num_components = num_components;
    r->depth = r->parts = 1;
    if (r->node && r->arguments && r->types)
        return r;
    twi_recipe_free(r);
    return NULL;
}

void *twi_variant_of(const tw_tensor *tensor, void (*release)(void *object))
{
    const holder *h = tensor && tensor->dtype == TW_RESOURCE && tensor->release == release_holder ? tensor->user : NULL;
    return h && h->release == release ? h->object : NULL;
}

twi_recipe *twi_recipe_of(const tw_tensor *tensor)
{
    return twi_variant_of(tensor, twi_recipe_free);
}

int64_t twi_recipe_int(const twi_recipe *r, int argument)
{
    const tw_tensor *value = r->arguments[argument];
    if (!value || value->elements < 1)
        return 0;
    return value->dtype == TW_BOOL ? *(const uint8_t *)value->data != 0 : twi_tensor_int(value, 0);
}

int64_t twi_recipe_count(const twi_recipe *r)
{
    return r && r->kind->count ? r->kind->count(r) : TWI_UNCOUNTED;
}

tw_status twi_recipe_at(const twi_recipe *r, int64_t index, tw_tensor **element, tw_error *error)
{
    int64_t count = twi_recipe_count(r);
    if (!r)
        return twi_fail(error, TW_INVALID_ARGUMENT, "it is not a data set");
    if (!r->kind->at)
        return twi_fail(error, TW_UNIMPLEMENTED, "'%s': random access is not implemented for a %s", r->node,
                        r->kind->op);
    if (count < 0)
        return twi_fail(error, TW_FAILED_PRECONDITION, "'%s': a %s of %s cardinality does not support random access",
                        r->node, r->kind->op, count == TWI_ENDLESS ? "infinite" : "unknown");
    if (index < 0 || index >= count)
        return twi_fail(error, TW_OUT_OF_RANGE, "Index out of range [0, %lld):%lld", (long long)count,
                        (long long)index);
    tw_status status = r->kind->at(r, index, element, error);
    if (status != TW_OK)
        twi_element_drop(element, r->num_components);
    return status;
}

/* ---- iterations -------------------------------------------------------------------------------------------------- */

tw_status twi_iteration_begin(tw_tensor *holds, twi_monitor *monitor, twi_iteration **result, tw_error *error)
{
    const twi_recipe *r = twi_recipe_of(holds);
    *result = NULL;
    if (!r)
        return twi_fail(error, TW_INVALID_ARGUMENT, "it is not a data set");
    twi_iteration *it = twi_alloc(sizeof *it);
    void *state = twi_alloc(r->kind->state + 1);
    if (!it || !state) {
        twi_free(it);
        twi_free(state);
        return twi_fail_memory(error, r->node);
    }
    *it = (twi_iteration){r, tw_tensor_retain(holds), monitor, state};
    tw_status status = r->kind->begin ? r->kind->begin(it, error) : TW_OK;
    if (status == TW_OK)
        *result = it;
    else
        twi_iteration_end(it);
    return status;
}

tw_status twi_iteration_next(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    int count = it->recipe->num_components;
    memset(element, 0, sizeof(tw_tensor *) * (size_t)count);
    pull->end = false;
    if (atomic_load_explicit(pull->ending, memory_order_relaxed))
        return twi_fail(pull->error, TW_CANCELLED, "the run has ended");
    tw_status status = it->recipe->kind->next(it, pull, element);
    if (status != TW_OK || pull->end)
        twi_element_drop(element, count);
    return status;
}

void twi_iteration_end(twi_iteration *it)
{
    if (!it)
        return;
    if (it->recipe->kind->end)
        it->recipe->kind->end(it);
    tw_tensor_release(it->holds);
    twi_free(it->state);
    twi_free(it);
}

void twi_element_drop(tw_tensor **element, int count)
{
    for (int i = 0; i < count; i++) {
        tw_tensor_release(element[i]);
        element[i] = NULL;
    }
}

/* ---- iterators --------------------------------------------------------------------------------------------------- */

struct twi_iterator {
    twi_monitor monitor;      /* first */
    pthread_mutex_t turn;     /* held while an element is made; guards all below */
    twi_iteration *iteration; /* NULL: it has no data set */
    twi_function *factory;
    twi_resource *other; /* that it stands for */
    int num_components;  /* -1: any */
    tw_dtype types[TWI_ELEMENT];
    tw_shape shapes[TWI_ELEMENT];
};

static void destroy_iterator(void *object)
{
    twi_iterator *i = object;
    twi_iteration_end(i->iteration);
    twi_monitor_destroy(&i->monitor);
    pthread_mutex_destroy(&i->turn);
    twi_free(i);
}

bool twi_is_iterator(const twi_resource *r)
{
    return r && r->object && r->destroy == destroy_iterator;
}

tw_status twi_iterator_make(twi_resource *r, const twi_attr *types, const twi_attr *shapes, twi_function *factory,
                            tw_error *error)
{
    if (twi_is_iterator(r))
        return TW_OK;
    if (r->object || r->memory)
        return twi_fail(error, TW_INVALID_ARGUMENT, "its name is taken by something else");
    if (types && types->count > TWI_ELEMENT)
        return twi_fail(error, TW_UNIMPLEMENTED, "elements have %d components, expected at most %d", types->count,
                        TWI_ELEMENT);
    twi_iterator *i = twi_alloc(sizeof *i);
    if (!i)
        return twi_fail_memory(error, "making an iterator");
    twi_monitor_init(&i->monitor);
    pthread_mutex_init(&i->turn, NULL);
    i->factory = factory;
    i->num_components = types && types->count ? types->count : -1;
    for (int k = 0; k < i->num_components; k++) {
        i->types[k] = types->types[k];
        i->shapes[k] = shapes && k < shapes->count ? shapes->shapes[k] : TW_UNKNOWN_SHAPE;
    }
    r->object = i;
    r->destroy = destroy_iterator;
    r->wake = twi_monitor_wake;
    return TW_OK;
}

/* The iterator itself, whatever stands for it. */
static twi_iterator *find_iterator(twi_resource *r)
{
    twi_iterator *i = r->object;
    pthread_mutex_lock(&i->turn);
    twi_resource *other = i->other;
    pthread_mutex_unlock(&i->turn);
    return other ? other->object : i;
}

void twi_iterator_stand_for(twi_resource *r, twi_resource *other)
{
    twi_iterator *i = r->object, *target = other ? other->object : NULL;
    if (target) {
        pthread_mutex_lock(&target->turn);
        other = target->other ? target->other : other;
        pthread_mutex_unlock(&target->turn);
    }
    pthread_mutex_lock(&i->turn);
    i->other = other == r ? NULL : other;
    pthread_mutex_unlock(&i->turn);
}

const char *twi_iterator_name(const twi_resource *r)
{
    twi_iterator *i = r->object;
    pthread_mutex_lock(&i->turn);
    const char *name = i->other ? i->other->name : r->name;
    pthread_mutex_unlock(&i->turn);
    return name;
}

static tw_status check_types(const twi_iterator *i, const twi_recipe *r, tw_error *error)
{
    if (i->num_components >= 0 && i->num_components != r->num_components)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "Number of components does not match: expected %d types but got %d.", i->num_components,
                        r->num_components);
    for (int k = 0; k < i->num_components; k++)
        if (i->types[k] != r->types[k])
            return twi_fail(error, TW_INVALID_ARGUMENT, "Data type mismatch at component %d: expected %s but got %s.",
                            k, tw_dtype_name(i->types[k]), tw_dtype_name(r->types[k]));
    return TW_OK;
}

/* A new iteration draws the same numbers, as TensorFlow's do, which has functions of its own. */
static void restart_functions(const twi_recipe *r)
{
    for (int i = 0; i < TWI_RECIPE_FUNCTIONS && r->functions[i]; i++)
        r->functions[i]->restart(r->functions[i]);
    for (int i = 0; i < r->num_arguments; i++)
        if (twi_recipe_of(r->arguments[i]))
            restart_functions(twi_recipe_of(r->arguments[i]));
}

/* With the turn taken. */
static tw_status start(twi_iterator *i, tw_tensor *recipe, tw_error *error)
{
    const twi_recipe *r = twi_recipe_of(recipe);
    twi_iteration *made;
    if (!r)
        return twi_fail(error, TW_FAILED_PRECONDITION, "it is not given a data set");
    tw_status status = check_types(i, r, error);
    if (status == TW_OK)
        status = twi_iteration_begin(recipe, &i->monitor, &made, error);
    if (status != TW_OK)
        return status;
    twi_iteration_end(i->iteration);
    i->iteration = made;
    restart_functions(r);
    return TW_OK;
}

tw_status twi_iterator_start(twi_resource *r, tw_tensor *recipe, tw_error *error)
{
    twi_iterator *i = find_iterator(r);
    pthread_mutex_lock(&i->turn);
    tw_status status = start(i, recipe, error);
    pthread_mutex_unlock(&i->turn);
    return status;
}

static tw_status call_factory(twi_iterator *i, tw_error *error)
{
    tw_tensor *recipe = NULL;
    tw_status status = i->factory->call(i->factory, NULL, 0, &recipe, error);
    if (status == TW_OK)
        status = start(i, recipe, error);
    tw_tensor_release(recipe);
    return status;
}

tw_status twi_iterator_next(twi_resource *r, twi_pull *pull, tw_tensor **element, int num_components)
{
    twi_iterator *i = find_iterator(r);
    tw_status status = TW_OK;
    pthread_mutex_lock(&i->turn);
    if (!i->iteration && i->factory)
        status = call_factory(i, pull->error);
    if (status == TW_OK && !i->iteration)
        status =
            twi_fail(pull->error, TW_FAILED_PRECONDITION,
                     "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
                     "initializer operation for this iterator before getting the next element.");
    else if (status == TW_OK && i->iteration->recipe->num_components != num_components)
        status = twi_fail(pull->error, TW_INVALID_ARGUMENT, "elements have %d components, %d are asked for",
                          i->iteration->recipe->num_components, num_components);
    else if (status == TW_OK)
        status = twi_iteration_next(i->iteration, pull, element);
    pthread_mutex_unlock(&i->turn);
    return status;
}

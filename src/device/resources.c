/* resources.c - see resources.h. */
#include "device/resources.h"

#include "base/memory.h"
#include "tensor/variant.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static twi_resource *make(twi_resource_table *table, const char *name)
{
    twi_resource *resource = twi_alloc(sizeof *resource);
    char *kept = twi_strdup(name);
    if (!resource || !kept || !twi_map_put(&table->by_name, kept, resource)) {
        twi_free(resource);
        twi_free(kept);
        return NULL;
    }
    resource->name = kept;
    resource->shape = TW_UNKNOWN_SHAPE;
    resource->next = table->first;
    table->first = resource;
    return resource;
}

static twi_resource *get(twi_resources *self, const char *name)
{
    twi_resource_table *table = (twi_resource_table *)self;
    twi_resource *found = twi_resources_find(table, name);
    return found ? found : make(table, name);
}

twi_resource *twi_resources_object(twi_resource_table *table, const char *container, const char *name)
{
    char key[700];
    snprintf(key, sizeof key, "object/%.64s/%.600s", container, name);
    return get(&table->interface, key);
}

void twi_resources_init(twi_resource_table *table)
{
    *table = (twi_resource_table){.interface.get = get};
}

tw_status twi_resource_check(const twi_resource *variable, tw_error *error)
{
    if (variable->initialized)
        return TW_OK;
    return twi_fail(error, TW_FAILED_PRECONDITION,
                    "Error while reading resource variable %s from Container: localhost. This could mean that the "
                    "variable was uninitialized.",
                    variable->name);
}

tw_status twi_resource_check_type(const twi_resource *variable, tw_dtype type, const char *op, const char *node,
                                  tw_error *error)
{
    if (!variable || variable->dtype == type)
        return TW_OK;
    return twi_fail(error, TW_INVALID_ARGUMENT, "%s '%s': variable '%s' is %s, the op works on %s", op, node,
                    variable->name, tw_dtype_name(variable->dtype), tw_dtype_name(type));
}

size_t twi_resource_bytes(const twi_resource *r)
{
    return r->device && (r->memory || !r->left) ? (size_t)tw_shape_elements(r->shape) * tw_dtype_size(r->dtype) : 0;
}

/* Another task's device has no memory here. */
static bool has_texts_here(const twi_resource *r)
{
    return r->memory && twi_owns_memory(r->dtype) && !r->device->absent;
}

static void free_memory(twi_resource *r)
{
    if (has_texts_here(r))
        twi_free_owned(r->dtype, r->memory, (size_t)tw_shape_elements(r->shape));
    if (r->memory)
        twi_device_free(r->device, r->memory, twi_resource_bytes(r));
    r->memory = NULL;
}

void twi_resources_free(twi_resource_table *table)
{
    while (table->first) {
        twi_resource *r = table->first;
        table->first = r->next;
        if (r->destroy)
            r->destroy(r->object);
        free_memory(r);
        twi_free((char *)r->name);
        twi_free(r);
    }
    twi_map_free(&table->by_name);
}

twi_resource *twi_resources_find(const twi_resource_table *table, const char *name)
{
    return twi_map_get(&table->by_name, name);
}

tw_status twi_resources_variable(twi_resource_table *table, const char *name, tw_dtype dtype, tw_shape shape,
                                 twi_device *device, twi_resource **variable, tw_error *error)
{
    char has[128], wants[128];
    twi_resource *r = get(&table->interface, name);
    if (!r)
        return twi_fail_memory(error, "making a variable");
    *variable = r;
    if (r->device) {
        if (r->dtype == dtype && tw_shape_equal(r->shape, shape) && r->device == device)
            return TW_OK;
        return twi_fail(error, TW_INVALID_ARGUMENT, "variable '%s' is %s %s on %s; %s %s on %s was asked for", name,
                        tw_dtype_name(r->dtype), tw_shape_text(r->shape, has, sizeof has), r->device->text,
                        tw_dtype_name(dtype), tw_shape_text(shape, wants, sizeof wants), device->text);
    }
    bool can_lie_there = !twi_owns_memory(dtype) || (dtype == TW_STRING && device->is_host);
    if (!tw_shape_is_known(shape))
        return twi_fail(error, TW_FAILED_PRECONDITION,
                        "Attempting to use uninitialized value %s: it was made without a shape, and has no value yet",
                        name);
    if (!can_lie_there)
        return twi_fail(error, TW_UNIMPLEMENTED, "variable '%s': %s variables of shape %s are not supported", name,
                        tw_dtype_name(dtype), tw_shape_text(shape, wants, sizeof wants));
    r->dtype = dtype;
    r->shape = shape;
    r->device = device;
    return TW_OK;
}

tw_status twi_resource_hold(twi_resource *r, tw_error *error)
{
    if (r->memory || !r->device) /* of what has no shape yet there is nothing to hold */
        return TW_OK;
    tw_status status = twi_device_alloc(r->device, twi_resource_bytes(r), r->name, &r->memory, error);
    if (status == TW_OK && has_texts_here(r))
        memset(r->memory, 0, twi_resource_bytes(r));
    return status;
}

tw_status twi_resource_write(twi_resource *r, const tw_tensor *value, tw_error *error)
{
    if (!twi_owns_memory(r->dtype))
        return r->device->ops->write(r->device, r->memory, value->data, tw_tensor_bytes(value), error);
    bool fits = r->device->absent || twi_copy_owned(r->dtype, value->data, r->memory, (size_t)value->elements);
    return fits ? TW_OK : twi_fail_memory(error, "writing a variable");
}

tw_status twi_resources_reshape(twi_resource_table *table, const char *name, const tw_tensor *value, int64_t oldest,
                                tw_error *error)
{
    twi_resource *was = twi_resources_find(table, name);
    assert(was && was->device && was->dtype == value->dtype);
    twi_resource *r = make(table, name);
    if (!r)
        return twi_fail_memory(error, "giving a variable another shape");
    for (twi_resource *b = was->before; b && b->memory; b = b->before)
        if (b->left_at < oldest)
            free_memory(b);
    was->left_at = ++table->clock;
    was->left = true;
    r->before = was;
    r->dtype = was->dtype;
    r->device = was->device;
    r->shape = value->shape;
    tw_status status = twi_resource_hold(r, error);
    if (status == TW_OK)
        status = twi_resource_write(r, value, error);
    r->initialized = status == TW_OK;
    return status;
}

int64_t twi_resources_variable_bytes(const twi_resource_table *table)
{
    int64_t bytes = 0;
    for (const twi_resource *r = table->first; r; r = r->next)
        bytes += (int64_t)twi_resource_bytes(r);
    return bytes;
}

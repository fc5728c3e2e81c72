/* choose.c - which row of a device's kernels computes a node. See device.h. */
#include "device/device.h"
#include "device/kernel_index.h"

#include <string.h>

const twi_attr *twi_kernel_attr(const twi_attrs *attrs)
{
    const twi_attr *attr = twi_attr_find(attrs, "dtype"); /* of random numbers T is the shape's type */
    if (!attr || attr->kind != TW_ATTR_TYPE)
        attr = twi_attr_find(attrs, "T");
    for (int i = 0; i < attrs->count && (!attr || attr->kind != TW_ATTR_TYPE); i++)
        attr = &attrs->items[i];
    return attr && attr->kind == TW_ATTR_TYPE ? attr : NULL;
}

tw_dtype twi_kernel_type(const twi_attrs *attrs)
{
    const twi_attr *attr = twi_kernel_attr(attrs);
    return attr ? attr->type : TW_INVALID_DTYPE;
}

static bool takes(const twi_kernel *row, tw_dtype type, bool plain_only)
{
    return (row->types == 0 || (row->types & TWI_TYPE(type))) && (!plain_only || strcmp(row->name, "plain") == 0);
}

bool twi_device_lacks(const twi_device *d, const char *op, tw_dtype type)
{
    if (!d->ops->lacks)
        return false;
    const twi_kernel_rows *known = twi_kernel_index_find(d->kernels, op);
    return (known ? known->lacked : d->ops->lacks(op)) & TWI_TYPE(type);
}

bool twi_device_has_kernel(const twi_device *d, const char *op, tw_dtype type)
{
    const twi_kernel_rows *known = twi_kernel_index_find(d->kernels, op);
    return known && (known->types & ~known->lacked & TWI_TYPE(type));
}

bool twi_device_has_fast_kernel(const twi_device *d, const char *op, tw_dtype type)
{
    const twi_kernel_rows *known = twi_device_has_kernel(d, op, type) ? twi_kernel_index_find(d->kernels, op) : NULL;
    for (int i = 0; known && i < known->count; i++)
        if (takes(known->rows[i], type, false) && !takes(known->rows[i], type, true))
            return true;
    return false;
}

bool twi_device_takes_all(const twi_device *d, const char *op, tw_dtype type, bool plain_only)
{
    const twi_kernel_rows *known = twi_kernel_index_find(d->kernels, op);
    for (int i = known && !(known->lacked & TWI_TYPE(type)) ? known->count - 1 : -1; i >= 0; i--)
        if (takes(known->rows[i], type, plain_only))
            return !known->rows[i]->accepts; /* the last row takes whatever any of them does */
    return false;
}

/* What prepare() fills in. */
static void reset(twi_prepare *p)
{
    p->state = NULL;
    p->workspace = 0;
    memset(p->can_overwrite, 0, sizeof p->can_overwrite);
    p->touches = NULL;
    p->varies = false;
}

static tw_status ask_and_prepare(const twi_kernel *row, twi_prepare *p)
{
    tw_status status = row->accepts ? row->accepts(p) : TW_OK;
    reset(p);
    if (status != TW_OK || !row->prepare)
        return status;
    status = row->prepare(p);
    if (status != TW_OK && p->state && row->release)
        row->release(p->state);
    if (status != TW_OK)
        reset(p);
    return status;
}

/* All rows have refused; `refusal` is what the last one said: the plain one, whose reason is the op's. */
static tw_status refuse(const twi_prepare *p, bool plain_only, const tw_error *refusal)
{
    if (p->refusal)
        *p->refusal = *refusal;
    return twi_fail(p->error, TW_UNIMPLEMENTED, "%s has no %skernel for %s of type %s (node '%s')%s%s", p->device->text,
                    plain_only ? "plain " : "", p->op, tw_dtype_name(twi_kernel_type(p->attrs)), p->node,
                    refusal->message[0] ? ": " : "", refusal->message);
}

/* The last row for op and type, which takes whatever any of them does; NULL: there is none. */
static const twi_kernel *last_row(const twi_prepare *p, bool plain_only)
{
    const twi_kernel_rows *known = twi_kernel_index_find(p->device->kernels, p->op);
    tw_dtype type = twi_kernel_type(p->attrs);
    for (int i = known && !(known->lacked & TWI_TYPE(type)) ? known->count - 1 : -1; i >= 0; i--)
        if (takes(known->rows[i], type, plain_only))
            return known->rows[i];
    return NULL;
}

tw_status twi_device_accepts(const twi_prepare *p, bool plain_only)
{
    const twi_kernel *row = last_row(p, plain_only);
    tw_error said;
    twi_prepare asked = *p;
    twi_clear_error(&said);
    asked.error = &said;
    tw_status status = !row ? TW_UNIMPLEMENTED : row->accepts ? row->accepts(&asked) : TW_OK;
    if (status == TW_UNIMPLEMENTED)
        return refuse(p, plain_only, &said);
    if (status != TW_OK && p->error)
        *p->error = said;
    return status;
}

tw_status twi_device_prepare(twi_device *d, twi_prepare *p, bool plain_only, const twi_kernel **kernel)
{
    const twi_kernel_rows *known = twi_kernel_index_find(d->kernels, p->op);
    tw_dtype type = twi_kernel_type(p->attrs);
    tw_error refusal, *error = p->error;
    twi_clear_error(&refusal);
    tw_status status = TW_UNIMPLEMENTED;
    *kernel = NULL;
    p->error = &refusal;
    for (int i = 0; known && !(known->lacked & TWI_TYPE(type)) && i < known->count; i++) {
        if (!takes(known->rows[i], type, plain_only))
            continue;
        status = ask_and_prepare(known->rows[i], p);
        if (status == TW_OK)
            *kernel = known->rows[i];
        if (status != TW_UNIMPLEMENTED)
            break;
    }
    p->error = error;
    if (status == TW_UNIMPLEMENTED)
        return refuse(p, plain_only, &refusal);
    if (status != TW_OK && error)
        *error = refusal;
    return status;
}

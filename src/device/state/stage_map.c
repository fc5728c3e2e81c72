/* stage_map.c - see stage_map.h. */
#include "device/state/stage_map.h"

#include "base/array.h"
#include "device/state/monitor.h"
#include "tensor/tensor.h"
#include "tensor/variant.h"

#include <string.h>

/* A tuple. */
typedef struct entry {
    int64_t key;
    tw_tensor **values; /* [components] NULL: not there yet, or taken already */
} entry;

typedef TWI_ARRAY(entry) entries;

struct twi_stage_map {
    twi_monitor monitor; /* first; guards all that changes */
    char *name;
    bool ordered;
    int64_t capacity;
    int components; /* 0: nobody has told */
    tw_dtype types[TWI_STAGE_COMPONENTS];
    entries begun, whole; /* in the order in which they came */
};

/* ---- making ------------------------------------------------------------------------------------------------------ */

static void free_entry(const twi_stage_map *m, entry *e)
{
    for (int i = 0; i < m->components && e->values; i++)
        tw_tensor_release(e->values[i]);
    twi_free(e->values);
}

static void clear(const twi_stage_map *m, entries *all)
{
    for (int i = 0; i < all->count; i++)
        free_entry(m, &all->items[i]);
    all->count = 0;
}

static void destroy(void *object)
{
    twi_stage_map *m = object;
    clear(m, &m->begun);
    clear(m, &m->whole);
    twi_array_free(&m->begun);
    twi_array_free(&m->whole);
    twi_free(m->name);
    twi_monitor_destroy(&m->monitor);
    twi_free(m);
}

twi_stage_map *twi_stage_map_of(const twi_resource *resource)
{
    return resource && resource->destroy == destroy ? resource->object : NULL;
}

tw_status twi_stage_map_make(twi_resource *resource, const char *name, bool ordered, int64_t capacity, tw_error *error)
{
    twi_stage_map *m = twi_stage_map_of(resource);
    if (m && m->ordered == ordered && m->capacity == capacity)
        return TW_OK;
    if (m || resource->object || resource->memory)
        return twi_fail(error, TW_INVALID_ARGUMENT, "staging area '%s': that name is taken by %s", name,
                        m ? "one of another order or capacity" : "something else");
    m = twi_alloc(sizeof *m);
    char *own = m ? twi_strdup(name) : NULL;
    if (!own) {
        twi_free(m);
        return twi_fail_memory(error, "making a staging area");
    }
    m->name = own;
    m->ordered = ordered;
    m->capacity = capacity;
    twi_monitor_init(&m->monitor);
    resource->object = m;
    resource->destroy = destroy;
    resource->wake = twi_monitor_wake;
    return TW_OK;
}

tw_status twi_stage_map_types(twi_stage_map *m, const tw_dtype *types, int count, tw_error *error)
{
    twi_monitor_enter(&m->monitor);
    bool same =
        !m->components || (m->components == count && memcmp(m->types, types, sizeof *types * (size_t)count) == 0);
    if (!m->components) {
        m->components = count;
        memcpy(m->types, types, sizeof *types * (size_t)count);
    }
    twi_monitor_leave(&m->monitor);
    return same ? TW_OK : twi_fail(error, TW_INVALID_ARGUMENT, "staging area '%s' has tuples of other types", m->name);
}

/* ---- with the lock held ------------------------------------------------------------------------------------------ */

static int find(const entries *all, int64_t key)
{
    int i = 0;
    while (i < all->count && all->items[i].key != key)
        i++;
    return i;
}

static void drop(entries *all, int i)
{
    memmove(all->items + i, all->items + i + 1, sizeof *all->items * (size_t)(--all->count - i));
}

/* One whose key is there already is let go, as TensorFlow does. */
static tw_status add_whole(twi_stage_map *m, const twi_run *r, entry *e)
{
    if (find(&m->whole, e->key) < m->whole.count)
        free_entry(m, e);
    else if (!twi_push(&m->whole, *e))
        return twi_fail_memory(r->error, r->node);
    *e = (entry){0};
    twi_monitor_notify(&m->monitor);
    return TW_OK;
}

static tw_status fail_cancelled(const twi_stage_map *m, const twi_run *r)
{
    return twi_fail(r->error, TW_CANCELLED, "'%s': waiting at staging area '%s' was cancelled", r->node, m->name);
}

/* The values, in the places of their components. */
static tw_status fill(const twi_stage_map *m, const twi_run *r, const int32_t *indices, int64_t count, int first,
                      entry *e)
{
    for (int64_t i = 0; i < count; i++) {
        const twi_operand *in = &r->input_operands[first + i];
        if (e->values[indices[i]])
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "The tensor for index '%d' for key '%lld' was already initialized '%d'.", indices[i],
                            (long long)e->key, m->components);
        e->values[indices[i]] = twi_tensor_from(in->dtype, in->shape, r->inputs[first + i]);
        if (!e->values[indices[i]])
            return twi_fail_memory(r->error, r->node);
    }
    return TW_OK;
}

static bool has_all(const twi_stage_map *m, const entry *e)
{
    int i = 0;
    while (i < m->components && e->values[i])
        i++;
    return i == m->components;
}

static bool has_none(const twi_stage_map *m, const entry *e)
{
    int i = 0;
    while (i < m->components && !e->values[i])
        i++;
    return i == m->components;
}

static tw_status begin(const twi_stage_map *m, const twi_run *r, int64_t key, entry *e)
{
    *e = (entry){key, twi_alloc_array((size_t)m->components, sizeof(tw_tensor *))};
    return e->values ? TW_OK : twi_fail_memory(r->error, r->node);
}

static tw_status put_part(twi_stage_map *m, const twi_run *r, int64_t key, const int32_t *indices, int64_t count,
                          int first)
{
    int at = find(&m->begun, key);
    bool is_new = at == m->begun.count;
    entry e = {0};
    tw_status status = is_new ? begin(m, r, key, &e) : TW_OK;
    if (status == TW_OK && is_new && !twi_push(&m->begun, e)) {
        free_entry(m, &e);
        status = twi_fail_memory(r->error, r->node);
    }
    if (status == TW_OK)
        status = fill(m, r, indices, count, first, &m->begun.items[at]);
    if (status == TW_OK && has_all(m, &m->begun.items[at])) {
        status = add_whole(m, r, &m->begun.items[at]);
        if (status == TW_OK)
            drop(&m->begun, at);
    }
    return status;
}

static tw_status put_whole(twi_stage_map *m, const twi_run *r, int64_t key, const int32_t *indices, int64_t count,
                           int first)
{
    entry e = {0};
    while (m->capacity > 0 && m->whole.count >= m->capacity && !twi_run_is_ending(r))
        twi_monitor_wait(&m->monitor);
    if (m->capacity > 0 && m->whole.count >= m->capacity)
        return fail_cancelled(m, r);
    tw_status status = begin(m, r, key, &e);
    if (status == TW_OK)
        status = fill(m, r, indices, count, first, &e);
    if (status == TW_OK)
        status = add_whole(m, r, &e);
    free_entry(m, &e);
    return status;
}

/* How many indices there are, and that they ascend. */
static tw_status check_indices(const twi_run *r, const int32_t *indices, int64_t count, int values)
{
    if (count != values)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %lld indices for %d components", r->node,
                        (long long)count, values);
    for (int64_t i = 1; i < count; i++)
        if (indices[i - 1] >= indices[i])
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Indices are not strictly ordered", r->node);
    return TW_OK;
}

/* ---- putting ----------------------------------------------------------------------------------------------------- */

static tw_status check_index(const twi_stage_map *m, const twi_run *r, int64_t key, int32_t index)
{
    if (index >= 0 && index < m->components)
        return TW_OK;
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Index '%d' for key '%lld' was out of bounds '%d'.", r->node,
                    index, (long long)key, m->components);
}

tw_status twi_stage_map_put(twi_stage_map *m, const twi_run *r, int64_t key, const int32_t *indices, int64_t count,
                            int first)
{
    tw_status status = check_indices(r, indices, count, r->num_inputs - first);
    for (int64_t i = 0; i < count && status == TW_OK; i++) {
        status = check_index(m, r, key, indices[i]);
        if (status == TW_OK && r->input_operands[first + i].dtype != m->types[indices[i]])
            status = twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': a value of %s, component %d has %s", r->node,
                              tw_dtype_name(r->input_operands[first + i].dtype), indices[i],
                              tw_dtype_name(m->types[indices[i]]));
    }
    if (status != TW_OK)
        return status;
    twi_monitor_enter(&m->monitor);
    status = (count == m->components ? put_whole : put_part)(m, r, key, indices, count, first);
    twi_monitor_leave(&m->monitor);
    return status;
}

/* ---- taking ------------------------------------------------------------------------------------------------------ */

/* Which of those that are whole is next; as many as there are: none. */
static int find_next(const twi_stage_map *m, twi_stage_taking how, int64_t key)
{
    if (how != TWI_STAGE_NEXT)
        return find(&m->whole, key);
    int next = m->ordered || !m->whole.count ? 0 : m->whole.count - 1;
    for (int i = 1; i < m->whole.count && m->ordered; i++)
        next = m->whole.items[i].key < m->whole.items[next].key ? i : next;
    return next;
}

static tw_status give(const twi_run *r, int output, const tw_tensor *value)
{
    void *to;
    const twi_operand *out = &r->output_operands[output];
    if (out->dtype != value->dtype)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': output %d is %s, what was put there %s", r->node, output,
                        tw_dtype_name(out->dtype), tw_dtype_name(value->dtype));
    tw_status status = twi_make_output(r, output, value->shape, &to);
    bool owned = twi_owns_memory(value->dtype), fits = true;
    if (status == TW_OK && owned)
        fits = twi_copy_owned(value->dtype, value->data, to, (size_t)value->elements);
    else if (status == TW_OK && value->elements)
        memcpy(to, value->data, tw_tensor_bytes(value));
    return fits ? status : twi_fail_memory(r->error, r->node);
}

/* All of the components, or none of them. */
static tw_status give_components(const twi_stage_map *m, const twi_run *r, const entry *e, const int32_t *indices,
                                 int64_t count, int first)
{
    tw_status status = TW_OK;
    for (int64_t i = 0; i < count && status == TW_OK; i++) {
        status = check_index(m, r, e->key, indices[i]);
        if (status == TW_OK && !e->values[indices[i]])
            status = twi_fail(r->error, TW_INVALID_ARGUMENT,
                              "'%s': Tensor at index '%d' for key '%lld' has already been removed.", r->node,
                              indices[i], (long long)e->key);
        else if (status == TW_OK)
            status = give(r, first + (int)i, e->values[indices[i]]);
    }
    return status;
}

tw_status twi_stage_map_take(twi_stage_map *m, const twi_run *r, twi_stage_taking how, int64_t *key,
                             const int32_t *indices, int64_t count, int first)
{
    int at;
    tw_status status = check_indices(r, indices, count, r->num_outputs - first);
    if (status != TW_OK)
        return status;
    twi_monitor_enter(&m->monitor);
    while ((at = find_next(m, how, *key)) == m->whole.count && !twi_run_is_ending(r))
        twi_monitor_wait(&m->monitor);
    entry *e = at < m->whole.count ? &m->whole.items[at] : NULL;
    status = e ? give_components(m, r, e, indices, count, first) : fail_cancelled(m, r);
    if (status == TW_OK)
        *key = e->key;
    for (int64_t i = 0; i < count && status == TW_OK && how != TWI_STAGE_PEEK; i++) {
        tw_tensor_release(e->values[indices[i]]);
        e->values[indices[i]] = NULL;
    }
    if (status == TW_OK && has_none(m, e)) {
        free_entry(m, e);
        drop(&m->whole, at);
        twi_monitor_notify(&m->monitor);
    }
    twi_monitor_leave(&m->monitor);
    return status;
}

void twi_stage_map_clear(twi_stage_map *m)
{
    twi_monitor_enter(&m->monitor);
    clear(m, &m->begun);
    clear(m, &m->whole);
    twi_monitor_notify(&m->monitor);
    twi_monitor_leave(&m->monitor);
}

int64_t twi_stage_map_count(twi_stage_map *m, bool whole)
{
    twi_monitor_enter(&m->monitor);
    int64_t count = whole ? m->whole.count : m->begun.count;
    twi_monitor_leave(&m->monitor);
    return count;
}

/* own.c - see own.h. */
#include "device/own.h"

#include "base/array.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/device.h"
#include "tensor/tensor.h"

#include <pthread.h>
#include <string.h>

/* ---- which there are -------------------------------------------------------------------------------------------- */

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static twi_map by_name;
static TWI_ARRAY(twi_own_op *) in_order;
static atomic_int count; /* most programs have none, and need no lock to see that */

const twi_own_op *twi_own_find(const char *name)
{
    if (atomic_load_explicit(&count, memory_order_acquire) == 0)
        return NULL;
    pthread_rwlock_rdlock(&lock);
    const twi_own_op *own = twi_map_get(&by_name, name);
    pthread_rwlock_unlock(&lock);
    return own;
}

const twi_own_op *twi_own_at(int i)
{
    pthread_rwlock_rdlock(&lock);
    const twi_own_op *own = i >= 0 && i < in_order.count ? in_order.items[i] : NULL;
    pthread_rwlock_unlock(&lock);
    return own;
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

/* What a session keeps of a node. */
typedef struct instance {
    const twi_own_op *own;
    void *kernel;
} instance;

struct tw_op_run {
    const twi_run *r;
    bool *made; /* [num_outputs] */
};

static void destroy_instance(void *object)
{
    instance *made = object;
    if (made->own->functions.create && made->own->functions.destroy)
        made->own->functions.destroy(made->kernel);
    twi_free(made);
}

static tw_status create_kernel(const twi_prepare *p, instance *made)
{
    int n = p->num_inputs, m = p->num_outputs;
    tw_dtype *types = twi_alloc_array((size_t)n + (size_t)m, sizeof *types);
    tw_shape *shapes = twi_alloc_array((size_t)n, sizeof *shapes);
    tw_status status = TW_OK;
    made->kernel = made->own->functions.user;
    for (int i = 0; i < n + m && types && shapes; i++) {
        types[i] = i < n ? p->inputs[i].dtype : p->outputs[i - n].dtype;
        if (i < n)
            shapes[i] = p->inputs[i].shape;
    }
    tw_op_node node = {p->op, p->node, p->device->text, p->attrs->items, types, shapes, types + n, p->attrs->count,
                       n,     m};
    if (!types || !shapes)
        status = twi_fail_memory(p->error, "preparing a kernel");
    else if (made->own->functions.create)
        status = made->own->functions.create(made->own->functions.user, &node, &made->kernel, p->error);
    twi_free(types);
    twi_free(shapes);
    return status;
}

/* Kernels are the session's, under their nodes' names, so that plans for other shapes have the same. Constants are not
 * folded by them. */
static tw_status prepare(twi_prepare *p)
{
    const twi_own_op *own = twi_own_find(p->op);
    twi_text key = {0};
    if (!p->resources || !own->functions.compute)
        return twi_fail(p->error, TW_UNIMPLEMENTED,
                        p->resources ? "it was registered without one" : "not before a run");
    twi_text_printf(&key, "kernel of %s", p->node);
    twi_resource *resource = p->resources->get(p->resources, twi_text_string(&key));
    twi_text_free(&key);
    if (!resource)
        return twi_fail_memory(p->error, "preparing a kernel");
    instance *made = resource->object;
    if (!made) {
        if (!(made = twi_alloc(sizeof *made)))
            return twi_fail_memory(p->error, "preparing a kernel");
        made->own = own;
        tw_status status = create_kernel(p, made);
        if (status != TW_OK) {
            twi_free(made);
            return status;
        }
        resource->object = made;
        resource->destroy = destroy_instance;
    }
    p->state = made;
    p->touches = made;
    p->varies = true;
    p->workspace = (size_t)p->num_outputs;
    return TW_OK;
}

static tw_status run_own(const twi_run *r)
{
    const instance *made = r->state;
    tw_op_run run = {r, r->workspace};
    if (r->num_outputs)
        memset(run.made, 0, (size_t)r->num_outputs);
    tw_status status = made->own->functions.compute(made->kernel, &run, r->error);
    for (int i = 0; i < r->num_outputs && status == TW_OK; i++)
        if (!run.made[i])
            status = twi_fail(r->error, TW_INTERNAL, "Missing %d-th output from '%s'", i, r->node);
    return status;
}

tw_status twi_own_add(twi_own_op *own, tw_error *error)
{
    tw_status status = TW_OK;
    own->kernel = (twi_kernel){.op = own->name, .name = "plain", .prepare = prepare, .run = run_own};
    own->only = &own->kernel;
    own->rows = (twi_kernel_rows){.rows = &own->only, .count = 1, .types = UINT64_MAX};
    pthread_rwlock_wrlock(&lock);
    if (twi_map_get(&by_name, own->name))
        status = twi_fail(error, TW_ALREADY_EXISTS, "there is an op '%s' already", own->name);
    else if (!twi_push(&in_order, own) || !twi_map_put(&by_name, own->name, own))
        status = twi_fail_memory(error, "registering an op");
    else
        atomic_fetch_add_explicit(&count, 1, memory_order_release);
    if (status != TW_OK && in_order.count && in_order.items[in_order.count - 1] == own)
        in_order.count--;
    pthread_rwlock_unlock(&lock);
    return status;
}

/* ---- for compute() ---------------------------------------------------------------------------------------------- */

const char *tw_op_run_node(const tw_op_run *run)
{
    TWI_NEED_OR(run, "");
    return run->r->node;
}

int tw_op_run_num_inputs(const tw_op_run *run)
{
    TWI_NEED_OR(run, 0);
    return run->r->num_inputs;
}

int tw_op_run_num_outputs(const tw_op_run *run)
{
    TWI_NEED_OR(run, 0);
    return run->r->num_outputs;
}

tw_op_value tw_op_run_input(const tw_op_run *run, int i)
{
    TWI_NEED_OR(run, ((tw_op_value){0}));
    if (i < 0 || i >= run->r->num_inputs)
        return (tw_op_value){0};
    const twi_operand *operand = &run->r->input_operands[i];
    return (tw_op_value){operand->dtype, operand->shape, run->r->inputs[i]};
}

tw_dtype tw_op_run_output_dtype(const tw_op_run *run, int i)
{
    TWI_NEED_OR(run, TW_INVALID_DTYPE);
    return i < 0 || i >= run->r->num_outputs ? TW_INVALID_DTYPE : run->r->output_operands[i].dtype;
}

bool tw_op_run_is_ending(const tw_op_run *run)
{
    TWI_NEED_OR(run, false);
    return twi_run_is_ending(run->r);
}

tw_status tw_op_run_output(tw_op_run *run, int i, tw_shape shape, void **data, tw_error *error)
{
    TWI_NEED(run, "run", error);
    TWI_NEED(data, "data", error);
    if (i < 0 || i >= run->r->num_outputs)
        return twi_fail(error, TW_OUT_OF_RANGE, "'%s' has %d outputs, no output %d", run->r->node, run->r->num_outputs,
                        i);
    if (!tw_shape_is_known(shape))
        return twi_fail(error, TW_INVALID_ARGUMENT, "the shape of output %d of '%s' is not known", i, run->r->node);
    tw_tensor **tensor = run->r->output_operands[i].elements < 0 ? run->r->outputs[i] : NULL;
    if (run->made[i] && tensor && tw_shape_equal(tw_tensor_shape(*tensor), shape)) {
        *data = tw_tensor_data(*tensor);
        return TW_OK;
    }
    twi_run told = *run->r;
    told.error = error;
    tw_status status = twi_make_output(&told, i, shape, data);
    if (status != TW_OK)
        return status;
    if (!tensor && !run->made[i] && run->r->output_operands[i].dtype == TW_STRING)
        for (int64_t k = 0; k < run->r->output_operands[i].elements; k++)
            twi_string_set((tw_string *)*data + k, "", 0);
    run->made[i] = true;
    return TW_OK;
}

tw_status tw_op_run_set_string(tw_op_run *run, int i, int64_t element, const void *data, size_t bytes)
{
    TWI_NEED_OR(run && (data || !bytes) && tw_op_run_output_dtype(run, i) == TW_STRING, TW_INVALID_ARGUMENT);
    TWI_NEED_OR(run->made[i] && element >= 0, TW_INVALID_ARGUMENT);
    int64_t elements = run->r->output_operands[i].elements;
    tw_tensor **tensor = elements < 0 ? run->r->outputs[i] : NULL;
    tw_string *strings = tensor ? tw_tensor_data(*tensor) : run->r->outputs[i];
    TWI_NEED_OR(element < (tensor ? tw_tensor_elements(*tensor) : elements), TW_INVALID_ARGUMENT);
    return twi_string_set(&strings[element], data, bytes) ? TW_OK : TW_RESOURCE_EXHAUSTED;
}

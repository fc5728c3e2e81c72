/* kernel_testing.h - runs one kernel of one op on made-up values, to compare fast kernels with plain ones. */
#ifndef KERNEL_TESTING_H
#define KERNEL_TESTING_H

#include "op_testing.h"

static tw_devices *devices;

static inline int open_devices(void **state)
{
    (void)state;
    tw_error error;
    return tw_devices_create(&(tw_device_options){.cpu_threads = 3, .no_gpus = true}, &devices, &error);
}

static inline int close_devices(void **state)
{
    (void)state;
    tw_devices_destroy(devices);
    return 0;
}

typedef struct value {
    twi_operand operand;
    void *data;
} value;

static inline value make(tw_dtype dtype, tw_shape shape)
{
    value v = {.operand = {.dtype = dtype, .shape = shape, .elements = tw_shape_elements(shape)}};
    v.operand.bytes = (size_t)v.operand.elements * tw_dtype_size(dtype);
    v.data = twi_alloc_aligned(v.operand.bytes + 1, 64);
    assert_non_null(v.data);
    return v;
}

static inline void put(value *v, int64_t i, float x)
{
    if (v->operand.dtype == TW_BFLOAT16)
        ((uint16_t *)v->data)[i] = tw_float_to_bfloat16(x);
    else if (v->operand.dtype == TW_FLOAT16)
        ((uint16_t *)v->data)[i] = tw_float_to_half(x);
    else if (v->operand.dtype == TW_FLOAT64)
        ((double *)v->data)[i] = x;
    else if (v->operand.dtype == TW_UINT8)
        ((uint8_t *)v->data)[i] = (uint8_t)x;
    else
        ((float *)v->data)[i] = x;
}

static inline double get(const value *v, int64_t i)
{
    if (v->operand.dtype == TW_BFLOAT16)
        return tw_bfloat16_to_float(((uint16_t *)v->data)[i]);
    if (v->operand.dtype == TW_FLOAT16)
        return tw_half_to_float(((uint16_t *)v->data)[i]);
    if (v->operand.dtype == TW_FLOAT64)
        return ((double *)v->data)[i];
    return v->operand.dtype == TW_UINT8 ? ((uint8_t *)v->data)[i] : ((float *)v->data)[i];
}

/* Small multiples of 1/8 in [-1, 1): exact in every type, and often equal to a neighbour. */
static inline value filled(tw_dtype dtype, tw_shape shape, unsigned seed)
{
    value v = make(dtype, shape);
    for (int64_t i = 0; i < v.operand.elements; i++) {
        seed = seed * 1664525 + 1013904223;
        put(&v, i, (float)((int)(seed >> 28) - 8) / 8);
    }
    return v;
}

static inline void drop(value *v)
{
    twi_free_aligned(v->data);
    *v = (value){0};
}

enum { MOST_VALUES = 8 };

typedef struct kernel_call {
    const char *op;
    const char *kernel; /* the name of the row that shall run */
    int threads;        /* 0: the device's */
    const tw_attr *attrs;
    int num_attrs;
    value *inputs;
    int num_inputs;
    value *outputs;
    int num_outputs;
} kernel_call;

/* The CPU's row of that name for the op and type. */
static inline const twi_kernel *find_kernel(const char *op, const char *name, tw_dtype type)
{
    for (const twi_kernel *const *family = twi_cpu_kernels; *family; family++)
        for (const twi_kernel *row = *family; row->op; row++)
            if (!strcmp(row->op, op) && !strcmp(row->name, name) && (!row->types || row->types >> type & 1))
                return row;
    fail_msg("no kernel '%s' for %s of type %s", name, op, tw_dtype_name(type));
    return NULL;
}

/* Prepares, runs and releases. Outputs and workspace start full of rubbish. */
static inline tw_status call(const kernel_call *k, tw_error *error)
{
    twi_operand in[MOST_VALUES], out[MOST_VALUES];
    const void *from[MOST_VALUES];
    void *to[MOST_VALUES];
    twi_attrs list = {(twi_attr *)k->attrs, k->num_attrs};
    const twi_kernel *kernel = find_kernel(k->op, k->kernel, twi_kernel_type(&list));
    twi_device *device = devices->items[0];
    for (int i = 0; i < k->num_inputs; i++)
        in[i] = k->inputs[i].operand, from[i] = k->inputs[i].data;
    for (int i = 0; i < k->num_outputs; i++) {
        out[i] = k->outputs[i].operand, to[i] = k->outputs[i].data;
        memset(to[i], 0x5a, out[i].bytes);
    }
    twi_prepare p = {.op = k->op, .node = "n", .attrs = &list, .num_inputs = k->num_inputs,
                     .num_outputs = k->num_outputs, .inputs = in, .outputs = out, .device = device,
                     .threads = k->threads ? k->threads : device->threads, .error = error};
    tw_status status = kernel->prepare ? kernel->prepare(&p) : TW_OK;
    if (status != TW_OK)
        return status;
    void *workspace = twi_alloc_aligned(p.workspace + 1, 64);
    memset(workspace, 0x5a, p.workspace);
    status = kernel->run(&(twi_run){.state = p.state, .inputs = from, .outputs = to, .workspace = workspace,
                                    .input_operands = in, .output_operands = out, .num_inputs = k->num_inputs,
                                    .num_outputs = k->num_outputs, .threads = p.threads, .node = "n",
                                    .error = error});
    if (kernel->release)
        kernel->release(p.state);
    twi_free_aligned(workspace);
    return status;
}

static inline void assert_near(const value *found, const value *expected)
{
    tw_dtype dtype = found->operand.dtype;
    double tolerance = dtype == TW_BFLOAT16 ? 0.01 : dtype == TW_FLOAT16 ? 0.001 : 1e-5;
    for (int64_t i = 0; i < found->operand.elements; i++)
        if (get(found, i) != get(expected, i) && /* as infinities are */
            !(isnan(get(found, i)) && isnan(get(expected, i))) &&
            !(fabs(get(found, i) - get(expected, i)) <= tolerance * fmax(1, fabs(get(expected, i)))))
            fail_msg("element %lld: %g, expected %g", (long long)i, get(found, i), get(expected, i));
}

#endif

/* typed_testing.h - numbers of any type, and ops that are run on them: for tests that hold what one type gives against
 * what another does. */
#ifndef TYPED_TESTING_H
#define TYPED_TESTING_H

#include "op_testing.h"

static const tw_dtype twt_dtypes[] = {TW_FLOAT32, TW_FLOAT64, TW_FLOAT16, TW_BFLOAT16, TW_INT64,  TW_INT32, TW_INT16,
                                      TW_INT8,    TW_UINT8,   TW_UINT16,  TW_UINT32,   TW_UINT64, TW_BOOL,  TW_STRING};
enum { TWT_NUM_DTYPES = sizeof twt_dtypes / sizeof *twt_dtypes };

/* ---- values ---------------------------------------------------------------------------------------------------- */

static inline bool twt_is_float(tw_dtype dtype)
{
    return dtype == TW_FLOAT32 || dtype == TW_FLOAT64 || dtype == TW_FLOAT16 || dtype == TW_BFLOAT16;
}

static inline bool twt_is_integer(tw_dtype dtype)
{
    return TWI_INT_TYPES & TWI_TYPE(dtype);
}

static inline double twt_largest(tw_dtype dtype)
{
    return dtype == TW_INT8                          ? INT8_MAX
           : dtype == TW_UINT8                       ? UINT8_MAX
           : dtype == TW_INT16                       ? INT16_MAX
           : dtype == TW_UINT16                      ? UINT16_MAX
           : dtype == TW_UINT32                      ? UINT32_MAX
           : dtype == TW_INT32                       ? INT32_MAX
           : dtype == TW_INT64 || dtype == TW_UINT64 ? (double)(INT64_C(1) << 53)
           : dtype == TW_BOOL                        ? 1
           : dtype == TW_FLOAT16                     ? 65504
                                                     : 3e38;
}

static inline double twt_smallest(tw_dtype dtype)
{
    if (dtype == TW_BOOL || TWI_UNSIGNED_TYPES & TWI_TYPE(dtype))
        return 0;
    return twt_is_integer(dtype) ? -twt_largest(dtype) - 1 : -twt_largest(dtype);
}

static inline void twt_put(tw_tensor *tensor, int64_t i, double value)
{
    char text[32];
    int64_t whole = isnan(value) ? 0 : (int64_t)fmin(fmax(value, -1e18), 1e18);
    if (tensor->dtype == TW_FLOAT64)
        ((double *)tensor->data)[i] = value;
    else if (tensor->dtype == TW_FLOAT32)
        ((float *)tensor->data)[i] = (float)value;
    else if (tensor->dtype == TW_FLOAT16)
        ((uint16_t *)tensor->data)[i] = tw_float_to_half((float)value);
    else if (tensor->dtype == TW_BFLOAT16)
        ((uint16_t *)tensor->data)[i] = tw_float_to_bfloat16((float)value);
    else if (tensor->dtype == TW_BOOL)
        ((bool *)tensor->data)[i] = value != 0;
    else if (tensor->dtype == TW_STRING && value != 0) /* nothing is what texts begin as, as numbers begin as zero */
        assert_int_equal(
            tw_tensor_set_string(tensor, i, text, (size_t)snprintf(text, sizeof text, "%.17g", value)), TW_OK);
    else if (tensor->dtype != TW_STRING)
        memcpy((char *)tensor->data + (size_t)i * tw_dtype_size(tensor->dtype), &whole, tw_dtype_size(tensor->dtype));
}

static inline double twt_get(const tw_tensor *tensor, int64_t i)
{
    char text[32] = "";
    if (tensor->dtype != TW_STRING)
        return tw_tensor_value(tensor, i);
    const tw_string *string = (const tw_string *)tensor->data + i;
    memcpy(text, string->size ? string->data : "", string->size < sizeof text ? string->size : sizeof text - 1);
    return strtod(text, NULL);
}

static inline bool twt_same_bits(const tw_tensor *a, const tw_tensor *b)
{
    bool same = a->elements == b->elements;
    for (int64_t i = 0; same && a->dtype == TW_STRING && i < a->elements; i++)
        same = twt_same_string((tw_string *)a->data + i, (tw_string *)b->data + i);
    return same && (a->dtype == TW_STRING || !a->elements || memcmp(a->data, b->data, tw_tensor_bytes(a)) == 0);
}

/* ---- what is equal ---------------------------------------------------------------------------------------------- */

static inline double twt_tolerance_of(tw_dtype dtype)
{
    return dtype == TW_BFLOAT16 ? 1e-2 : dtype == TW_FLOAT16 ? 2e-3 : dtype == TW_FLOAT32 ? 1e-5 : 1e-12;
}

/* Of numbers that are not whole, or beyond what a type holds, integers say something else. */
static inline bool twt_says_the_same(double value, tw_dtype dtype)
{
    if (twt_is_integer(dtype) || dtype == TW_BOOL)
        return value == rint(value) && value >= twt_smallest(dtype) && value <= twt_largest(dtype);
    return dtype == TW_STRING || !isfinite(value) || fabs(value) <= twt_largest(dtype);
}

/* Integers refuse what floats have a number for. */
static inline bool twt_integers_refuse(const char *message)
{
    return strstr(message, "division by zero") || strstr(message, "negative");
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

static tw_devices *twt_one_thread, *twt_three_threads;

static inline int twt_open_devices(void **state)
{
    (void)state;
    tw_error error = {0};
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .no_gpus = true}, &twt_one_thread, &error));
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 3, .no_gpus = true}, &twt_three_threads, &error));
    return 0;
}

static inline int twt_close_devices(void **state)
{
    (void)state;
    tw_devices_destroy(twt_one_thread);
    tw_devices_destroy(twt_three_threads);
    return 0;
}

/* Builds and runs it; outputs are the op's. */
static inline tw_status twt_run_on(twt_op *op, bool plain, int threads, tw_error *error)
{
    tw_graph *graph = tw_graph_create();
    tw_output inputs[TWT_MOST];
    tw_status status = TW_OK;
    twt_op_release_outputs(op);
    op->plain = plain;
    op->threads = threads;
    for (int i = 0; i < op->num_inputs; i++)
        inputs[i] = tw_constant(graph, op->inputs[i]);
    tw_node *node = tw_add_node(graph, op->op, "n", inputs, op->num_inputs, op->attrs, op->num_attrs);
    if (node) {
        status = twt_run_node(op, node, (threads == 1 ? twt_one_thread : twt_three_threads)->items[0], error);
    } else {
        *error = graph->error;
        status = graph->error.status;
    }
    tw_graph_destroy(graph);
    return status;
}

#endif

/* typed_testing.h - numbers of any type, and ops that are run on them: for tests that hold what one type gives against
 * what another does. */
#ifndef TYPED_TESTING_H
#define TYPED_TESTING_H

#include "op_testing.h"

static const tw_dtype twt_dtypes[] = {TW_FLOAT32, TW_FLOAT64, TW_FLOAT16, TW_BFLOAT16, TW_INT64,  TW_INT32, TW_INT16,
                                      TW_INT8,    TW_UINT8,   TW_UINT16,  TW_UINT32,   TW_UINT64, TW_BOOL,  TW_STRING};
enum {
    TWT_NUM_DTYPES = sizeof twt_dtypes / sizeof *twt_dtypes,
    TWT_BOUND = 1000, /* of integers that there may be more of */
};

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

/* ---- numbers of both types ------------------------------------------------------------------------------------- */

/* A number near `value` that both types hold exactly. Integers are made of eighths, which most golden numbers are. */
static inline double twt_common(double value, tw_dtype from, tw_dtype to)
{
    if (twt_is_float(from) && twt_is_integer(to))
        value = isnan(value) ? 0 : rint(fmin(fmax(value * 8, -TWT_BOUND), TWT_BOUND));
    if (twt_is_integer(from) && fabs(value) > TWT_BOUND) /* what overflows does so differently */
        value = fmod(value, TWT_BOUND);
    if (twt_is_integer(to) || twt_is_integer(from) || to == TW_BOOL)
        value = isnan(value) ? 0
                             : fmin(fmax(TWI_UNSIGNED_TYPES & TWI_TYPE(to) ? fabs(value) : value, twt_smallest(to)),
                                    twt_largest(to));
    if (to == TW_BOOL)
        value = value != 0;
    if (to == TW_BFLOAT16 || from == TW_BFLOAT16)
        value = tw_bfloat16_to_float(tw_float_to_bfloat16((float)value));
    if (to == TW_FLOAT16 || from == TW_FLOAT16)
        value = tw_half_to_float(tw_float_to_half((float)value));
    return value;
}

/* ---- a case in another type -------------------------------------------------------------------------------------- */

/* An op's run, of which those inputs that have the attribute's type are made anew. */
typedef struct twt_typed {
    const twt_case *c;
    const twi_signature *signature;
    const char *attr;
    bool has_type[TWT_MOST]; /* of input i */
    tw_dtype from, to;
} twt_typed;

/* Whether an attribute is that one, or must be the same type as that. */
static inline bool twt_changes_with(const char *attr, const char *other)
{
    return strcmp(attr, other) == 0 ||
           (strcmp(other, "T") == 0 && (strcmp(attr, "Treal") == 0 || strcmp(attr, "TInput") == 0));
}

/* Which argument each input belongs to. False: the op has more lists than one can tell apart. */
static inline bool twt_find_inputs(twt_typed *t)
{
    const twi_signature *s = t->signature;
    int lists = 0, at = 0;
    for (int i = 0; i < s->num_inputs; i++)
        lists += s->inputs[i].number_attr || s->inputs[i].list_attr;
    int rest = t->c->op.num_inputs - (s->num_inputs - lists);
    if (lists && (rest < 0 || rest % lists))
        return false;
    for (int i = 0; i < s->num_inputs; i++) {
        bool list = s->inputs[i].number_attr || s->inputs[i].list_attr;
        for (int k = 0; k < (list ? rest / lists : 1); k++)
            t->has_type[at++] = s->inputs[i].type_attr && twt_changes_with(s->inputs[i].type_attr, t->attr);
    }
    return at == t->c->op.num_inputs;
}

static inline tw_dtype twt_type_of_attr(const twt_typed *t, const twi_attr_spec *spec)
{
    for (int i = 0; i < t->c->op.num_attrs; i++)
        if (strcmp(t->c->op.attrs[i].name, t->attr) == 0)
            return t->c->op.attrs[i].type;
    for (int i = 0; i < t->c->op.num_inputs; i++)
        if (t->has_type[i])
            return t->c->op.inputs[i]->dtype;
    return spec->has_default ? spec->value.type : TW_INVALID_DTYPE;
}

/* The last axis, `times` as long. */
static inline tw_shape twt_longer(tw_shape shape, int64_t times)
{
    shape.dims[shape.rank - 1] *= times;
    return shape;
}

/* The case's op with inputs in type `to`, of the numbers that both types hold; along the last axis again and again. */
static inline twt_op twt_made(const twt_typed *t, tw_dtype to, int64_t last, int64_t times)
{
    twt_op op = t->c->op;
    op.num_outputs = 0;
    for (int i = 0; i < op.num_inputs; i++) {
        const tw_tensor *from = t->c->op.inputs[i];
        bool wide = from->shape.rank > 0 && from->shape.dims[from->shape.rank - 1] == last;
        tw_shape shape = wide ? twt_longer(from->shape, times) : from->shape;
        int64_t row = wide ? last : 1, repeated = wide ? times : 1;
        size_t size = tw_dtype_size(from->dtype);
        op.inputs[i] = tw_tensor_create(t->has_type[i] ? to : from->dtype, shape);
        assert_non_null(op.inputs[i]);
        for (int64_t k = 0; k < op.inputs[i]->elements; k++) {
            int64_t source = k / (row * repeated) * row + k % row;
            double value = twt_get(from, source);
            if (from->dtype == TW_STRING && !t->has_type[i])
                assert_true(twi_string_set((tw_string *)op.inputs[i]->data + k, ((tw_string *)from->data)[source].data,
                                           ((tw_string *)from->data)[source].size));
            else if (!t->has_type[i])
                memcpy((char *)op.inputs[i]->data + (size_t)k * size, (const char *)from->data + (size_t)source * size,
                       size);
            else
                twt_put(op.inputs[i], k, twt_common(value, t->from, t->to));
        }
    }
    for (int i = 0; i < op.num_attrs; i++)
        if (twt_changes_with(op.attrs[i].name, t->attr))
            op.attrs[i] = tw_attr_type(op.attrs[i].name, to);
    if (op.num_attrs < TWT_MOST && !op.num_inputs)
        op.attrs[op.num_attrs++] = tw_attr_type(t->attr, to);
    return op;
}

/* ---- which types ------------------------------------------------------------------------------------------------- */

/* What a type means to the op itself: its values are other ones. */
static inline bool twt_differs_by_type(const twt_typed *t)
{
    const char *op = t->c->op.op;
    if (strcmp(op, "Cast") == 0) /* what is too large for an integer is cut if it was one, else the largest there is */
        return twt_is_integer(t->to) && (twt_is_integer(t->from) || strcmp(t->attr, "SrcT") == 0);
    if (strcmp(op, "Range") == 0) /* adds the step again and again, and rounds each sum */
        return t->to == TW_BFLOAT16;
    return strcmp(op, "DecodeRaw") == 0; /* takes bytes for numbers of the type */
}

/* Texts and truths are no numbers: who takes any type does with them what it does with numbers. Whole numbers are
 * divided otherwise than those with a fraction. */
static inline bool twt_may_be(const twi_attr_spec *spec, tw_dtype from, tw_dtype to)
{
    if (to == from || (from != TW_FLOAT32 && from != TW_INT32 && from != TW_INT64) ||
        (spec->allowed_types && !(spec->allowed_types >> to & 1)))
        return false;
    if (to == TW_BOOL || to == TW_STRING || (twt_is_integer(from) && twt_is_float(to)))
        return !spec->allowed_types;
    return true;
}

/* The case in each other type that a type attribute of its op may have. */
static inline void twt_in_each_type(twt_case *c, void (*look)(const twt_typed *t))
{
    const twi_op *row = twi_op_find(c->op.op);
    if (twi_op_is(row, TWI_STATEFUL))
        return;
    const twi_signature *signature = twi_op_signature(row);
    assert_non_null(signature);
    for (int i = 0; i < signature->num_attrs; i++) {
        twt_typed t = {.c = c, .signature = signature, .attr = signature->attrs[i].name};
        if (signature->attrs[i].kind != TW_ATTR_TYPE || !twt_find_inputs(&t) || strcmp(t.attr, "Treal") == 0 ||
            strcmp(t.attr, "TInput") == 0)
            continue;
        t.from = twt_type_of_attr(&t, &signature->attrs[i]);
        for (int k = 0; k < TWT_NUM_DTYPES && t.from; k++) {
            t.to = twt_dtypes[k];
            if (twt_may_be(&signature->attrs[i], t.from, t.to) && !twt_differs_by_type(&t))
                look(&t);
        }
    }
}

#endif

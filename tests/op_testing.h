/* op_testing.h - runs single ops on the CPU, without a session, and compares them with golden values. What tests of ops
 * and kernels know of the inside they know by this header: kernel_testing.h, for single kernels, stands on it.
 *
 * One op:
 *
 *     twt_op op = {.op = "Pad", .num_inputs = 2, .inputs = {x, paddings}};
 *     assert_ok(twt_op_run(&op, &error));             the fastest kernel; op.plain = true asks for the plain one
 *     ... op.outputs[0], op.kernel ("plain") ...
 *     twt_op_release(&op);                            inputs and outputs
 *
 * Types, defaults and output shapes come from the op's row and shape rule, as in a graph. Outputs and workspace are
 * filled with rubbish before the kernel runs and are exactly as long as asked for, so that a sanitizer sees overruns.
 *
 * Many ops: twt_run_golden("ops_math.txt") runs every case of tests/golden/ops_math.txt by the plain and by the fastest
 * kernel, by one thread and by three (which must agree to the bit), and with output 0 laid over each input that the
 * kernel says it may overwrite. A failure names the line of the case. The files are written by scripts that call
 * tests/golden/op_cases.py; to add a case, add it to the script. The format, one thing a line:
 *
 *     # a comment
 *     case Pad                        begins a case; what follows belongs to it
 *     in float 2,3 1 2 3 4 5 6        an input: type, dimensions ("scalar" for none), values. Strings are written in
 *                                     hexadecimal after an x: x746f776572; complex numbers are two, one part each
 *     attr mode string REFLECT        an attribute: name, kind, value; "int 3", "float 0.5", "bool 1", "type float",
 *                                     "shape 2,3", "ints 4 1 2 2 1" (lists: their length first)
 *     out float 4,3 ...               an output, compared; floats within the tolerance of their type, others exactly
 *     skip                            an output that is not compared
 *     tolerance 1e-4                  of this case, instead: |got - expected| <= tolerance * max(1, |expected|)
 *     fails some words                instead of outputs: building or running fails, and the message has these words */
#ifndef OP_TESTING_H
#define OP_TESTING_H

#include "testing.h"

#include "base/array.h"
#include "base/file.h"
#include "device/device.h"
#include "graph/graph.h"
#include "tensor/tensor.h"
#include "tensor/window.h"

#include <tower/ops.h>

enum { TWT_MOST = 20 };

typedef struct twt_op {
    const char *op;
    tw_tensor *inputs[TWT_MOST];
    int num_inputs;
    tw_attr attrs[TWT_MOST]; /* those that do not follow from the inputs and are not at their default */
    int num_attrs;
    bool plain;              /* only rows named "plain" */
    bool fed;                /* the inputs' values are not known before it runs */
    int threads;             /* 0: one */
    int overwrite;           /* lay output 0 over input overwrite - 1, if the kernel allows it; 0: over none */
    /* filled in */
    tw_tensor *outputs[TWT_MOST];
    int num_outputs;
    const char *kernel;
    bool can_overwrite[4];
} twt_op;

static inline void twt_op_release_outputs(twt_op *op)
{
    for (int i = 0; i < op->num_outputs; i++)
        tw_tensor_release(op->outputs[i]);
    op->num_outputs = 0;
}

static inline void twt_op_release(twt_op *op)
{
    twt_op_release_outputs(op);
    for (int i = 0; i < op->num_inputs; i++)
        tw_tensor_release(op->inputs[i]);
    op->num_inputs = 0;
}

/* Prepares, and holds what a device promises: what it accepts it does not refuse afterwards, nor the other way
 * round. */
static inline tw_status twt_prepare(twi_device *device, twi_prepare *p, bool plain, const twi_kernel **kernel)
{
    tw_error asked = {0}, *error = p->error;
    p->error = &asked;
    bool accepted = twi_device_accepts(p, plain) != TW_UNIMPLEMENTED;
    p->error = error;
    tw_status status = twi_device_prepare(device, p, plain, kernel);
    if (accepted == (status == TW_UNIMPLEMENTED))
        fail_msg("%s: accepts() says %s, prepare() %s", p->op, accepted ? "yes" : asked.message,
                 status == TW_UNIMPLEMENTED && error ? error->message : "otherwise");
    return status;
}

static inline twi_operand twt_operand(const tw_tensor *tensor, bool with_value)
{
    return (twi_operand){tensor->dtype, tensor->shape, tensor->elements, tw_tensor_bytes(tensor),
                         with_value ? tensor : NULL, NULL};
}

/* Makes the outputs, prepares and runs; the node has its attributes, types and shapes. */
static inline tw_status twt_run_node(twt_op *op, const tw_node *node, twi_device *device, tw_error *error)
{
    twi_operand operands[2 * TWT_MOST] = {0}, *out = operands + TWT_MOST;
    const void *from[TWT_MOST] = {0};
    void *to[TWT_MOST] = {0}, *workspace = NULL;
    const twi_kernel *kernel = NULL;
    tw_status status = TW_OK;
    int threads = op->threads ? op->threads : 1;
    for (int i = 0; i < op->num_inputs; i++) {
        operands[i] = twt_operand(op->inputs[i], !op->fed);
        from[i] = op->inputs[i]->data;
    }
    for (int i = 0; i < node->num_outputs; i++) {
        if (twi_op_is(node->op, TWI_MAKES_SHAPE) && tw_shape_elements(node->output_shapes[i]) < 0) {
            op->outputs[op->num_outputs++] = NULL; /* the kernel makes it */
            out[i] = (twi_operand){.dtype = node->output_types[i], .shape = node->output_shapes[i], .elements = -1};
            to[i] = &op->outputs[i];
            continue;
        }
        tw_tensor *output = tw_tensor_create(node->output_types[i], node->output_shapes[i]);
        if (!output)
            return tw_shape_elements(node->output_shapes[i]) < 0
                       ? twi_fail(error, TW_INTERNAL, "output %d has no known shape", i)
                       : twi_fail_memory(error, "an output");
        op->outputs[op->num_outputs++] = output;
        out[i] = twt_operand(output, false);
        to[i] = output->data;
        if (output->dtype != TW_STRING && output->elements)
            memset(to[i], 0xa5, out[i].bytes);
    }
    twi_prepare p = {.op = op->op, .node = node->name, .attrs = &node->attrs, .roles = node->op->roles,
                     .num_inputs = op->num_inputs, .num_outputs = op->num_outputs, .inputs = operands, .outputs = out, .device = device,
                     .threads = threads, .error = error};
    TWI_TRY(twt_prepare(device, &p, op->plain, &kernel));
    op->kernel = kernel->name;
    memcpy(op->can_overwrite, p.can_overwrite, sizeof p.can_overwrite);
    int over = op->overwrite - 1;
    if (over >= 0 && over < 4 && op->can_overwrite[over] && operands[over].bytes == out[0].bytes && from[over]) {
        memcpy(to[0], from[over], out[0].bytes);
        for (int i = 0; i < op->num_inputs; i++)
            from[i] = from[i] == op->inputs[over]->data ? to[0] : from[i];
    }
    if (!kernel->run) {
        if (operands[0].bytes != out[0].bytes || operands[0].dtype != out[0].dtype)
            TWI_TRY(twi_fail(error, TW_INTERNAL, "a kernel that shares a buffer between unlike operands"));
        for (int64_t i = 0; out[0].dtype == TW_STRING && i < out[0].elements; i++)
            if (!twi_string_set((tw_string *)to[0] + i, ((const tw_string *)from[0])[i].data,
                                ((const tw_string *)from[0])[i].size))
                TWI_TRY(twi_fail_memory(error, "a text"));
        if (out[0].dtype != TW_STRING && out[0].bytes)
            memcpy(to[0], from[0], out[0].bytes);
        goto done;
    }
    if (p.workspace) {
        workspace = twi_alloc_aligned(p.workspace, 64);
        if (!workspace)
            TWI_TRY(twi_fail_memory(error, "a workspace"));
        memset(workspace, 0xa5, p.workspace);
    }
    twi_run run = {.state = p.state, .inputs = from, .outputs = to, .workspace = workspace,
                   .input_operands = operands, .output_operands = out, .num_inputs = op->num_inputs,
                   .num_outputs = op->num_outputs, .threads = threads, .node = node->name, .error = error};
    status = kernel->run(&run);
done:
    if (kernel && kernel->release)
        kernel->release(p.state);
    twi_free_aligned(workspace);
    return status;
}

/* Fails as building the node, preparing or running its kernel fails. */
static inline tw_status twt_op_run(twt_op *op, tw_error *error)
{
    tw_devices *devices = NULL;
    tw_graph *graph = tw_graph_create();
    tw_output inputs[TWT_MOST];
    tw_status status;
    twt_op_release_outputs(op);
    assert_non_null(graph);
    TWI_TRY(tw_devices_create(&(tw_device_options){.cpu_threads = op->threads ? op->threads : 1, .no_gpus = true},
                              &devices, error));
    for (int i = 0; i < op->num_inputs; i++)
        inputs[i] = tw_constant(graph, op->inputs[i]);
    tw_node *node = tw_add_node(graph, op->op, "n", inputs, op->num_inputs, op->attrs, op->num_attrs);
    if (!node) {
        *error = graph->error;
        TWI_TRY(graph->error.status);
    }
    TWI_TRY(twt_run_node(op, node, devices->items[0], error));
done:
    tw_devices_destroy(devices);
    tw_graph_destroy(graph);
    return status;
}

/* ---- golden files ------------------------------------------------------------------------------------------ */

/* A case as read; arrays that attributes point to lie in `arena`. */
typedef struct twt_case {
    const char *file;
    int line;
    twt_op op;
    tw_tensor *expected[TWT_MOST]; /* NULL: skipped */
    int num_expected;
    double tolerance;              /* 0: by type */
    const char *failure;           /* NULL: succeeds */
    twi_arena arena;
} twt_case;

/* The next word of a line, or NULL; cuts the line up. */
static inline char *twt_word(char **line)
{
    char *start = *line + strspn(*line, " ");
    if (!*start)
        return NULL;
    *line = start + strcspn(start, " ");
    if (**line)
        *(*line)++ = 0;
    return start;
}

static inline tw_shape twt_read_shape(const char *text)
{
    tw_shape shape = TW_SCALAR;
    if (strcmp(text, "unknown") == 0)
        return TW_UNKNOWN_SHAPE;
    while (strcmp(text, "scalar") != 0 && *text) {
        shape.dims[shape.rank++] = strtoll(text, (char **)&text, 10);
        text += *text == ',';
    }
    return shape;
}

static inline void twt_read_value(tw_tensor *tensor, int64_t i, const char *text)
{
    void *data = tensor->data;
    switch (tensor->dtype) {
    case TW_COMPLEX64: /* i counts parts */
    case TW_FLOAT32:
        ((float *)data)[i] = strtof(text, NULL);
        break;
    case TW_COMPLEX128:
    case TW_FLOAT64:
        ((double *)data)[i] = strtod(text, NULL);
        break;
    case TW_FLOAT16:
        ((uint16_t *)data)[i] = tw_float_to_half(strtof(text, NULL));
        break;
    case TW_BFLOAT16:
        ((uint16_t *)data)[i] = tw_float_to_bfloat16(strtof(text, NULL));
        break;
    case TW_INT64:
        ((int64_t *)data)[i] = strtoll(text, NULL, 10);
        break;
    case TW_INT32:
        ((int32_t *)data)[i] = (int32_t)strtol(text, NULL, 10);
        break;
    case TW_UINT64:
        ((uint64_t *)data)[i] = strtoull(text, NULL, 10);
        break;
    case TW_UINT32:
        ((uint32_t *)data)[i] = (uint32_t)strtoul(text, NULL, 10);
        break;
    case TW_UINT16:
    case TW_INT16:
        ((int16_t *)data)[i] = (int16_t)strtol(text, NULL, 10);
        break;
    case TW_STRING: {
        char bytes[256];
        size_t size = strlen(text + 1) / 2;
        assert_true(text[0] == 'x' && size <= sizeof bytes);
        for (size_t k = 0; k < size; k++)
            sscanf(text + 1 + 2 * k, "%2hhx", (unsigned char *)&bytes[k]);
        assert_int_equal(tw_tensor_set_string(tensor, i, bytes, size), TW_OK);
        break;
    }
    default: /* one byte: int8, uint8, bool */
        ((uint8_t *)data)[i] = (uint8_t)strtol(text, NULL, 10);
    }
}

static inline tw_tensor *twt_read_tensor(const twt_case *c, char *line)
{
    tw_dtype dtype = tw_dtype_from_name(twt_word(&line));
    tw_tensor *tensor = tw_tensor_create(dtype, twt_read_shape(twt_word(&line)));
    if (!tensor)
        fail_msg("%s:%d: a tensor that cannot be", c->file, c->line);
    int64_t values = tensor->elements * (tw_dtype_is_complex(dtype) ? 2 : 1);
    for (int64_t i = 0; i < values; i++) {
        const char *word = twt_word(&line);
        if (!word)
            fail_msg("%s:%d: a tensor has %lld values, expected %lld", c->file, c->line, (long long)i,
                     (long long)values);
        twt_read_value(tensor, i, word);
    }
    return tensor;
}

static inline tw_attr twt_read_attr(twt_case *c, char *line)
{
    const char *name = twi_arena_strdup(&c->arena, twt_word(&line)), *kind = twt_word(&line);
    if (strcmp(kind, "string") == 0)
        return tw_attr_string(name, twi_arena_strdup(&c->arena, line));
    const char *word = twt_word(&line);
    if (strcmp(kind, "int") == 0)
        return tw_attr_int(name, strtoll(word, NULL, 10));
    if (strcmp(kind, "float") == 0)
        return tw_attr_float(name, strtof(word, NULL));
    if (strcmp(kind, "bool") == 0)
        return tw_attr_bool(name, word[0] == '1');
    if (strcmp(kind, "type") == 0)
        return tw_attr_type(name, tw_dtype_from_name(word));
    if (strcmp(kind, "shape") == 0)
        return tw_attr_shape(name, twt_read_shape(word));
    if (strcmp(kind, "ints") != 0)
        fail_msg("%s:%d: attribute of kind '%s'", c->file, c->line, kind);
    int count = atoi(word);
    int64_t *values = twi_arena_alloc(&c->arena, sizeof *values * (size_t)(count + 1));
    for (int i = 0; i < count; i++)
        values[i] = strtoll(twt_word(&line), NULL, 10);
    return tw_attr_ints(name, values, count);
}

static inline void twt_read_line(twt_case *c, char *line)
{
    const char *what = twt_word(&line);
    assert_true(c->op.num_inputs < TWT_MOST && c->op.num_attrs < TWT_MOST && c->num_expected < TWT_MOST);
    if (strcmp(what, "in") == 0)
        c->op.inputs[c->op.num_inputs++] = twt_read_tensor(c, line);
    else if (strcmp(what, "attr") == 0)
        c->op.attrs[c->op.num_attrs++] = twt_read_attr(c, line);
    else if (strcmp(what, "out") == 0)
        c->expected[c->num_expected++] = twt_read_tensor(c, line);
    else if (strcmp(what, "skip") == 0)
        c->expected[c->num_expected++] = NULL;
    else if (strcmp(what, "tolerance") == 0)
        c->tolerance = strtod(line, NULL);
    else if (strcmp(what, "fails") == 0)
        c->failure = twi_arena_strdup(&c->arena, line);
    else
        fail_msg("%s:%d: a line that begins with '%s'", c->file, c->line, what);
}

static inline bool twt_same_string(const tw_string *a, const tw_string *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

static inline bool twt_near(double a, double b, double tolerance)
{
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= tolerance * fmax(1, fabs(b));
}

static inline void twt_compare(const twt_case *c, int output, const tw_tensor *got, const char *how)
{
    const tw_tensor *want = c->expected[output];
    char a[128], b[128];
    if (got->dtype != want->dtype || !tw_shape_equal(got->shape, want->shape))
        fail_msg("%s:%d: %s (%s) output %d is %s %s, expected %s %s", c->file, c->line, c->op.op, how, output,
                 tw_dtype_name(got->dtype), tw_shape_text(got->shape, a, sizeof a), tw_dtype_name(want->dtype),
                 tw_shape_text(want->shape, b, sizeof b));
    double tolerance = c->tolerance;
    bool is_float = true;
    switch (want->dtype) {
    case TW_COMPLEX64:
    case TW_FLOAT32:
        tolerance = tolerance > 0 ? tolerance : 1e-5;
        break;
    case TW_COMPLEX128:
    case TW_FLOAT64:
        tolerance = tolerance > 0 ? tolerance : 1e-12;
        break;
    case TW_FLOAT16:
        tolerance = tolerance > 0 ? tolerance : 2e-3;
        break;
    case TW_BFLOAT16:
        tolerance = tolerance > 0 ? tolerance : 1e-2;
        break;
    default:
        is_float = false;
    }
    size_t size = tw_dtype_size(want->dtype);
    for (int64_t i = 0; i < want->elements; i++) {
        bool same;
        const char *x = (const char *)got->data + (size_t)i * size, *y = (const char *)want->data + (size_t)i * size;
        double v = tw_tensor_value(got, i), w = tw_tensor_value(want, i);
        if (want->dtype == TW_STRING)
            same = twt_same_string((const tw_string *)x, (const tw_string *)y);
        else if (is_float)
            same = twt_near(v, w, tolerance) &&
                   twt_near(tw_tensor_imaginary(got, i), tw_tensor_imaginary(want, i), tolerance);
        else
            same = memcmp(x, y, size) == 0;
        if (!same)
            fail_msg("%s:%d: %s (%s) output %d element %lld is %.17g%+.17gj, expected %.17g%+.17gj", c->file, c->line, c->op.op,
                     how, output, (long long)i, v, tw_tensor_imaginary(got, i), w, tw_tensor_imaginary(want, i));
    }
}

static inline void twt_expect_same_bits(const twt_case *c, const tw_tensor *a, const tw_tensor *b, const char *how)
{
    bool same = tw_tensor_bytes(a) == tw_tensor_bytes(b) && a->dtype == b->dtype;
    if (same && a->dtype == TW_STRING)
        for (int64_t i = 0; i < a->elements; i++)
            same = same && twt_same_string((tw_string *)a->data + i, (tw_string *)b->data + i);
    else if (same && a->elements)
        same = memcmp(a->data, b->data, tw_tensor_bytes(a)) == 0;
    if (!same)
        fail_msg("%s:%d: %s gives other bits %s", c->file, c->line, c->op.op, how);
}

/* Runs the case once more in another way; the bits must be those of `first`. */
static inline void twt_run_again(const twt_case *c, const twt_op *first, int threads, int overwrite, const char *how)
{
    tw_error error = {0};
    twt_op again = *first;
    again.threads = threads;
    again.overwrite = overwrite;
    again.num_outputs = 0;
    if (twt_op_run(&again, &error) != TW_OK)
        fail_msg("%s:%d: %s fails %s: %s", c->file, c->line, c->op.op, how, error.message);
    for (int i = 0; i < again.num_outputs; i++)
        if (c->expected[i])
            twt_expect_same_bits(c, again.outputs[i], first->outputs[i], how);
    twt_op_release_outputs(&again);
}

static inline void twt_run_case(twt_case *c, bool plain)
{
    tw_error error = {0};
    const char *how = plain ? "plain" : "fastest";
    c->op.plain = plain;
    tw_status status = twt_op_run(&c->op, &error);
    if (c->failure) {
        if (status == TW_OK || !strstr(error.message, c->failure))
            fail_msg("%s:%d: %s (%s): \"%s\", expected a failure with \"%s\"", c->file, c->line, c->op.op, how,
                     error.message, c->failure);
        twt_op_release_outputs(&c->op);
        return;
    }
    if (status != TW_OK)
        fail_msg("%s:%d: %s (%s): %s", c->file, c->line, c->op.op, how, error.message);
    if (c->op.num_outputs != c->num_expected)
        fail_msg("%s:%d: %s has %d outputs, expected %d", c->file, c->line, c->op.op, c->op.num_outputs,
                 c->num_expected);
    for (int i = 0; i < c->num_expected; i++)
        if (c->expected[i])
            twt_compare(c, i, c->op.outputs[i], c->op.kernel);
    twt_run_again(c, &c->op, 3, 0, "with three threads");
    for (int i = 0; i < 4 && i < c->op.num_inputs; i++)
        if (c->op.can_overwrite[i])
            twt_run_again(c, &c->op, 1, i + 1, "over its input");
    twt_op_release_outputs(&c->op);
}

/* By the plain and by the fastest kernel. */
static inline void twt_run_both(twt_case *c)
{
    twt_run_case(c, true);
    twt_run_case(c, false);
}

static inline void twt_finish_case(twt_case *c, void (*look)(twt_case *c))
{
    if (c->op.op)
        look(c);
    twt_op_release(&c->op);
    for (int i = 0; i < c->num_expected; i++)
        tw_tensor_release(c->expected[i]);
    twi_arena_free(&c->arena);
    *c = (twt_case){.file = c->file, .line = c->line};
}

/* Reads tests/golden/FILE and hands its cases on, one after another. */
static inline void twt_each_case(const char *file, void (*look)(twt_case *c))
{
    char path[512], *text = NULL;
    size_t size;
    tw_error error = {0};
    twt_case c = {.file = file};
    int line = 0, cases = 0;
    snprintf(path, sizeof path, "%s/%s", GOLDEN_DIR, file);
    assert_ok(twi_file_read(path, (size_t)64 << 20, &text, &size, &error));
    for (char *at = text, *end; *at; at = end) {
        end = at + strcspn(at, "\n");
        if (*end)
            *end++ = 0;
        line++;
        if (*at == '#' || !*at)
            continue;
        if (strncmp(at, "case ", 5) == 0) {
            twt_finish_case(&c, look);
            c.op.op = twi_arena_strdup(&c.arena, at + 5);
            c.line = line;
            cases++;
        } else {
            twt_read_line(&c, at);
        }
    }
    twt_finish_case(&c, look);
    twi_free(text);
    assert_true(cases > 0);
}

/* Runs every case of tests/golden/FILE. */
static inline void twt_run_golden(const char *file)
{
    twt_each_case(file, twt_run_both);
}

#endif

/* op_testing.h - single ops on the CPU against what TensorFlow made of the same inputs.
 *
 * A golden file is text, one block a case, written by tests/golden/op_cases.py:
 *
 *     case OP
 *     in TYPE DIMS values...      one line an input, in order; DIMS is "2,3" or "scalar"
 *     attr NAME KIND value        KIND: int, float, bool, string, type; ints and floats are preceded by their count
 *     out TYPE DIMS values...     one line an output, in order; "skip" for one that is not compared
 *
 * A case is run as it stands, and if its T is float also in double, half and bfloat16 as far as the op takes them, each
 * with one thread and with three, which must give the same bits. */
#ifndef OP_TESTING_H
#define OP_TESTING_H

#include "testing.h"

#include "base/file.h"
#include "base/memory.h"
#include "device/device.h"
#include "graph/graph.h"

#include <tower/ops.h>

enum { OP_CASE_MOST = 16 }; /* inputs, outputs, attributes */

typedef struct op_case {
    const char *file;
    int line; /* of "case" */
    char op[64];
    tw_tensor *inputs[OP_CASE_MOST];
    tw_tensor *outputs[OP_CASE_MOST]; /* expected; NULL: not compared */
    tw_attr attrs[OP_CASE_MOST];
    int num_inputs, num_outputs, num_attrs;
    twi_arena arena; /* of names and values */
} op_case;

/* ---- tensors by element ------------------------------------------------------------------------------------ */

static inline void set_value(tw_tensor *tensor, int64_t i, double value)
{
    void *data = tw_tensor_data(tensor);
    switch (tw_tensor_dtype(tensor)) {
    case TW_FLOAT32:
        ((float *)data)[i] = (float)value;
        break;
    case TW_FLOAT64:
        ((double *)data)[i] = value;
        break;
    case TW_FLOAT16:
        ((uint16_t *)data)[i] = tw_float_to_half((float)value);
        break;
    case TW_BFLOAT16:
        ((uint16_t *)data)[i] = tw_float_to_bfloat16((float)value);
        break;
    case TW_INT64:
        ((int64_t *)data)[i] = (int64_t)value;
        break;
    case TW_INT32:
        ((int32_t *)data)[i] = (int32_t)value;
        break;
    case TW_INT16:
        ((int16_t *)data)[i] = (int16_t)value;
        break;
    case TW_INT8:
        ((int8_t *)data)[i] = (int8_t)value;
        break;
    case TW_UINT8:
        ((uint8_t *)data)[i] = (uint8_t)value;
        break;
    case TW_BOOL:
        ((bool *)data)[i] = value != 0;
        break;
    default:
        fail_msg("no numbers in %s", tw_dtype_name(tw_tensor_dtype(tensor)));
    }
}

static inline tw_tensor *converted(tw_tensor *from, tw_dtype dtype)
{
    tw_tensor *to = tw_tensor_create(dtype, tw_tensor_shape(from));
    assert_non_null(to);
    for (int64_t i = 0; i < tw_tensor_elements(from); i++)
        set_value(to, i, tw_tensor_value(from, i));
    return to;
}

/* ---- reading golden files ---------------------------------------------------------------------------------- */

static inline tw_tensor *read_tensor(const op_case *c, char **rest)
{
    const char *type = strtok_r(NULL, " \n", rest), *dims = strtok_r(NULL, " \n", rest);
    if (!type || !dims || tw_dtype_from_name(type) == TW_INVALID_DTYPE)
        fail_msg("%s: malformed tensor in the case of line %d", c->file, c->line);
    tw_shape shape = TW_SCALAR;
    for (char *at = (char *)dims; *dims != 's'; at++) {
        shape.dims[shape.rank++] = strtoll(at, &at, 10);
        if (*at != ',')
            break;
    }
    tw_tensor *tensor = tw_tensor_create(tw_dtype_from_name(type), shape);
    assert_non_null(tensor);
    for (int64_t i = 0; i < tw_tensor_elements(tensor); i++) {
        const char *word = strtok_r(NULL, " \n", rest);
        if (!word)
            fail_msg("%s: too few values in the case of line %d", c->file, c->line);
        set_value(tensor, i, strtod(word, NULL));
    }
    return tensor;
}

static inline void read_attr(op_case *c, char **rest)
{
    const char *name = twi_arena_strdup(&c->arena, strtok_r(NULL, " \n", rest));
    const char *kind = strtok_r(NULL, " \n", rest), *value = strtok_r(NULL, " \n", rest);
    tw_attr attr;
    if (!strcmp(kind, "int")) {
        attr = tw_attr_int(name, atoll(value));
    } else if (!strcmp(kind, "bool")) {
        attr = tw_attr_bool(name, atoi(value) != 0);
    } else if (!strcmp(kind, "float")) {
        attr = tw_attr_float(name, strtof(value, NULL));
    } else if (!strcmp(kind, "type")) {
        attr = tw_attr_type(name, tw_dtype_from_name(value));
    } else if (!strcmp(kind, "string")) {
        attr = tw_attr_string(name, twi_arena_strdup(&c->arena, value ? value : ""));
    } else {
        int count = atoi(value);
        int64_t *ints = twi_arena_alloc(&c->arena, sizeof *ints * (size_t)(count + 1));
        float *floats = twi_arena_alloc(&c->arena, sizeof *floats * (size_t)(count + 1));
        for (int i = 0; i < count; i++) {
            const char *word = strtok_r(NULL, " \n", rest);
            ints[i] = atoll(word);
            floats[i] = strtof(word, NULL);
        }
        attr = !strcmp(kind, "ints") ? tw_attr_ints(name, ints, count) : tw_attr_floats(name, floats, count);
    }
    c->attrs[c->num_attrs++] = attr;
}

static inline void forget_case(op_case *c)
{
    for (int i = 0; i < c->num_inputs; i++)
        tw_tensor_release(c->inputs[i]);
    for (int i = 0; i < c->num_outputs; i++)
        tw_tensor_release(c->outputs[i]);
    twi_arena_free(&c->arena);
    *c = (op_case){0};
}

/* ---- running one op ---------------------------------------------------------------------------------------- */

typedef struct op_lab {
    tw_devices *devices;
    tw_graph *graph;
} op_lab;

static inline op_lab open_lab(void)
{
    tw_error error = {0};
    op_lab lab = {.graph = tw_graph_create()};
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .no_gpus = true}, &lab.devices, &error));
    return lab;
}

static inline void close_lab(op_lab *lab)
{
    tw_graph_destroy(lab->graph);
    tw_devices_destroy(lab->devices);
}

static inline twi_operand operand_of(tw_tensor *tensor, bool known)
{
    return (twi_operand){tw_tensor_dtype(tensor), tw_tensor_shape(tensor), tw_tensor_elements(tensor),
                         tw_tensor_bytes(tensor), known ? tensor : NULL, NULL};
}

/* Runs a node whose inputs are constants on the plain kernel, with so many threads. results[] are yours. */
static inline tw_status run_node(op_lab *lab, const tw_node *node, int threads, tw_tensor **results, tw_error *error)
{
    twi_operand in[OP_CASE_MOST], out[OP_CASE_MOST];
    const void *from[OP_CASE_MOST];
    void *to[OP_CASE_MOST];
    const twi_kernel *kernel = NULL;
    twi_device *cpu = lab->devices->items[0];
    for (int i = 0; i < node->num_inputs; i++) {
        tw_tensor *value = twi_constant_value(node->inputs[i]);
        assert_non_null(value);
        in[i] = operand_of(value, true);
        from[i] = tw_tensor_data(value);
    }
    for (int i = 0; i < node->num_outputs; i++) {
        results[i] = tw_tensor_create(node->output_types[i], node->output_shapes[i]);
        if (!results[i])
            fail_msg("%s: the shape of output %d is not known", node->op->name, i);
        memset(tw_tensor_data(results[i]), 0x5a, tw_tensor_bytes(results[i])); /* kernels must not rely on zeros */
        out[i] = operand_of(results[i], false);
        to[i] = tw_tensor_data(results[i]);
    }
    twi_prepare p = {.op = node->op->name, .node = node->name, .attrs = &node->attrs, .num_inputs = node->num_inputs,
                     .num_outputs = node->num_outputs, .inputs = in, .outputs = out, .device = cpu,
                     .threads = threads, .error = error};
    tw_status status = twi_device_prepare(cpu, &p, true, &kernel);
    if (status == TW_OK && !kernel->run)
        memcpy(to[0], from[0], out[0].bytes);
    if (status == TW_OK && kernel->run) {
        void *workspace = twi_alloc_aligned(p.workspace + 1, 64);
        memset(workspace, 0x5a, p.workspace);
        status = kernel->run(&(twi_run){.state = p.state, .inputs = from, .outputs = to, .workspace = workspace,
                                        .input_operands = in, .output_operands = out, .num_inputs = node->num_inputs,
                                        .num_outputs = node->num_outputs, .threads = threads, .node = node->name,
                                        .error = error});
        twi_free_aligned(workspace);
    }
    if (kernel && kernel->release)
        kernel->release(p.state);
    if (status != TW_OK)
        for (int i = 0; i < node->num_outputs; i++) {
            tw_tensor_release(results[i]);
            results[i] = NULL;
        }
    return status;
}

/* Adds the op to the lab's graph, with constants for its inputs. NULL if the graph refuses it. */
static inline tw_node *build_case(op_lab *lab, const op_case *c, tw_tensor *const *inputs)
{
    tw_output constants[OP_CASE_MOST];
    for (int i = 0; i < c->num_inputs; i++)
        constants[i] = tw_constant(lab->graph, inputs[i]);
    return tw_add_node(lab->graph, c->op, NULL, constants, c->num_inputs, c->attrs, c->num_attrs);
}

/* ---- comparing --------------------------------------------------------------------------------------------- */

static inline double tolerance_of(tw_dtype dtype)
{
    return dtype == TW_FLOAT16 ? 0.005 : dtype == TW_BFLOAT16 ? 0.04 : 2e-5;
}

static inline void compare(const op_case *c, int k, const tw_tensor *found, double tolerance)
{
    char texts[2][128];
    const tw_tensor *wanted = c->outputs[k];
    if (!tw_shape_equal(tw_tensor_shape(found), tw_tensor_shape(wanted)))
        fail_msg("%s, line %d, %s: output %d has shape %s, expected %s", c->file, c->line, c->op, k,
                 tw_shape_text(tw_tensor_shape(found), texts[0], sizeof texts[0]),
                 tw_shape_text(tw_tensor_shape(wanted), texts[1], sizeof texts[1]));
    for (int64_t i = 0; i < tw_tensor_elements(wanted); i++) {
        double a = tw_tensor_value(found, i), b = tw_tensor_value(wanted, i);
        if (!(a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * fmax(1, fabs(b))))
            fail_msg("%s, line %d, %s in %s: output %d, element %lld is %.9g, expected %.9g", c->file, c->line, c->op,
                     tw_dtype_name(tw_tensor_dtype(found)), k, (long long)i, a, b);
    }
}

/* Runs a case with the given inputs on one and on three threads. */
static inline void check_run(op_lab *lab, const op_case *c, tw_tensor *const *inputs, double tolerance)
{
    tw_error error = {0};
    tw_tensor *once[OP_CASE_MOST] = {0}, *again[OP_CASE_MOST] = {0};
    tw_node *node = build_case(lab, c, inputs);
    if (!node)
        fail_msg("%s, line %d: %s", c->file, c->line, tw_graph_message(lab->graph));
    assert_int_equal(node->num_outputs, c->num_outputs);
    if (run_node(lab, node, 1, once, &error) != TW_OK || run_node(lab, node, 3, again, &error) != TW_OK)
        fail_msg("%s, line %d: %s", c->file, c->line, error.message);
    for (int i = 0; i < c->num_outputs; i++) {
        if (c->outputs[i])
            compare(c, i, once[i], tolerance);
        if (memcmp(tw_tensor_data(once[i]), tw_tensor_data(again[i]), tw_tensor_bytes(once[i])) != 0)
            fail_msg("%s, line %d, %s: three threads give other bits than one", c->file, c->line, c->op);
        tw_tensor_release(once[i]);
        tw_tensor_release(again[i]);
    }
}

/* Whether attribute T of the op may be dtype. */
static inline bool takes(const twi_signature *signature, tw_dtype dtype)
{
    for (int i = 0; i < signature->num_attrs; i++)
        if (!strcmp(signature->attrs[i].name, "T"))
            return !signature->attrs[i].allowed_types || signature->attrs[i].allowed_types >> dtype & 1;
    return false;
}

/* The case again with all inputs of type T, floats as they stand, in dtype. */
static inline void check_in_type(op_lab *lab, op_case *c, const twi_signature *signature, tw_dtype dtype)
{
    tw_tensor *inputs[OP_CASE_MOST];
    bool any = false;
    for (int i = 0; i < c->num_inputs; i++) {
        const twi_argument *argument = &signature->inputs[i < signature->num_inputs ? i : signature->num_inputs - 1];
        bool convert = argument->type_attr && !strcmp(argument->type_attr, "T") &&
                       tw_tensor_dtype(c->inputs[i]) == TW_FLOAT32;
        inputs[i] = convert ? converted(c->inputs[i], dtype) : tw_tensor_retain(c->inputs[i]);
        any = any || convert;
    }
    for (int i = 0; any && i < c->num_attrs; i++)
        any = strcmp(c->attrs[i].name, "T") != 0;
    if (any)
        check_run(lab, c, inputs, tolerance_of(dtype));
    for (int i = 0; i < c->num_inputs; i++)
        tw_tensor_release(inputs[i]);
}

static inline void check_case(op_lab *lab, op_case *c)
{
    static const tw_dtype others[] = {TW_FLOAT64, TW_FLOAT16, TW_BFLOAT16};
    twi_arena arena = {0};
    twi_signature signature;
    const twi_op *op = twi_op_find(c->op);
    if (!op)
        fail_msg("%s, line %d: there is no op %s", c->file, c->line, c->op);
    check_run(lab, c, c->inputs, tolerance_of(TW_FLOAT32));
    assert_true(twi_signature_parse(&arena, op, &signature));
    for (int i = 0; i < 3; i++)
        if (takes(&signature, others[i]))
            check_in_type(lab, c, &signature, others[i]);
    twi_arena_free(&arena);
}

/* The whole file as text, to be freed. */
static inline char *read_golden(const char *file)
{
    char path[512], *text;
    size_t size;
    tw_error error = {0};
    snprintf(path, sizeof path, "%s/%s", GOLDEN_DIR, file);
    assert_ok(twi_file_read(path, (size_t)1 << 24, &text, &size, &error));
    return text;
}

/* One line of a golden file, cut to pieces by the reading. A "case" ends the case before. */
static inline void take_line(op_lab *lab, op_case *c, const char *word, char *line, int number, int *found)
{
    char *rest = NULL;
    const char *head = strtok_r(line, " ", &rest);
    if (!head || *head == '#')
        return;
    if (!strcmp(head, "case")) {
        const char *op = strtok_r(NULL, " ", &rest), *file = c->file;
        if (c->op[0])
            check_case(lab, c);
        forget_case(c);
        c->file = file;
        c->line = number;
        if (strncmp(op, word, strlen(word)) == 0) {
            snprintf(c->op, sizeof c->op, "%s", op);
            ++*found;
        }
    } else if (!c->op[0]) {
        return;
    } else if (!strcmp(head, "in")) {
        c->inputs[c->num_inputs++] = read_tensor(c, &rest);
    } else if (!strcmp(head, "out")) {
        c->outputs[c->num_outputs++] = read_tensor(c, &rest);
    } else if (!strcmp(head, "skip")) {
        c->outputs[c->num_outputs++] = NULL;
    } else if (!strcmp(head, "attr")) {
        read_attr(c, &rest);
    } else {
        fail_msg("%s, line %d: '%s' is no word of golden files", c->file, number, head);
    }
}

/* Checks all cases of a golden file whose op's name begins with one of these words ("Conv2D,MaxPool"); fails if a word
 * has none. */
static inline void check_golden(const char *file, const char *words)
{
    char list[256], *words_left = NULL;
    op_lab lab = open_lab();
    snprintf(list, sizeof list, "%s", words);
    for (char *word = strtok_r(list, ",", &words_left); word; word = strtok_r(NULL, ",", &words_left)) {
        op_case c = {.file = file};
        int found = 0, number = 0;
        char *text = read_golden(file);
        for (char *line = text, *next; *line; line = next) {
            size_t length = strcspn(line, "\n");
            next = line + length + (line[length] != 0);
            line[length] = 0;
            take_line(&lab, &c, word, line, ++number, &found);
        }
        if (c.op[0])
            check_case(&lab, &c);
        forget_case(&c);
        twi_free(text);
        if (!found)
            fail_msg("%s has no case of %s", file, word);
    }
    close_lab(&lab);
}

#endif

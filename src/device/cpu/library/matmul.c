/* matmul.c - matrix products on oneDNN: MatMul and BatchMatMul with every transposition, _FusedMatMul with bias and
 * ReLU. Transposed operands are only strides; nothing is copied here.
 *
 * A large product is divided: each thread of the team computes a part of its rows, columns or matrices as a product of
 * its own, on one thread. So nobody waits for oneDNN's team (device/cpu/team.c), and a small product wakes nobody. */
#include "base/memory.h"
#include "device/cpu/library/onednn.h"
#include "device/kernel.h"

#include <string.h>

/* The product of the axes before the last two. */
static int64_t count_batches(tw_shape shape)
{
    int64_t batches = 1;
    for (int i = 0; i < shape.rank - 2; i++)
        batches *= shape.dims[i];
    return batches;
}

/* Matrices one behind the other; a single one is the same for all of the output's. */
static twi_dnnl_tensor matrices(const twi_operand *operand, bool transposed, bool batched)
{
    const int64_t *dims = operand->shape.dims + operand->shape.rank - 2;
    int64_t rows = dims[0], columns = dims[1];
    twi_dnnl_tensor tensor = {operand->dtype, 3, {count_batches(operand->shape), rows, columns},
                              {rows * columns, columns, 1}, false};
    if (transposed)
        tensor = (twi_dnnl_tensor){operand->dtype, 3, {tensor.dims[0], columns, rows}, {rows * columns, 1, columns}, false};
    if (!batched) {
        memmove(tensor.dims, tensor.dims + 1, 2 * sizeof *tensor.dims);
        memmove(tensor.strides, tensor.strides + 1, 2 * sizeof *tensor.strides);
        tensor.rank = 2;
    }
    return tensor;
}

/* Whether an operand has a matrix for each of the output's, or one for all. */
static bool has_batches(const twi_operand *operand, const twi_operand *output)
{
    int64_t batches = count_batches(operand->shape);
    return batches == 1 || batches == count_batches(output->shape);
}

typedef struct part {
    twi_dnnl *primitive;
    size_t src, weights, bias, dst; /* where it begins, in bytes */
    size_t workspace;
} part;

typedef struct product {
    int count;
    part parts[];
} product;

enum {
    WORTH_A_PART = 1 << 20, /* multiplications that a thread needs at least */
    MANY_COLUMNS = 2048,    /* of which a part is faster than all: there oneDNN 2 takes a better kernel */
    GRAIN = 16,             /* rows or columns, of which a part has a multiple */
};

static void matmul_release(void *state)
{
    product *d = state;
    for (int i = 0; i < d->count; i++)
        twi_dnnl_destroy(d->parts[i].primitive);
    twi_free(d);
}

/* The axis of dst that is divided, and into how many parts. */
static int divide(const twi_dnnl_spec *s, int threads, int64_t *parts)
{
    int last = s->dst.rank - 1;
    int64_t rows = s->dst.dims[last - 1], columns = s->dst.dims[last], batches = last > 1 ? s->dst.dims[0] : 1;
    int64_t most = batches * rows * columns * s->src.dims[last] / WORTH_A_PART;
    *parts = most < threads ? most : threads;
    if (batches >= *parts && batches > 1)
        return 0;
    if (*parts < 2 && columns >= MANY_COLUMNS && most > 1 && s->weights.strides[last] == 1)
        *parts = 2;
    int64_t grains = ((columns >= rows ? columns : rows) + GRAIN - 1) / GRAIN;
    *parts = grains < *parts ? grains : *parts;
    return columns >= rows ? last : last - 1;
}

/* Lets a tensor's axis be a part of what it was, if it has it; returns by how many bytes it begins later. */
static size_t narrow(twi_dnnl_tensor *tensor, int axis, int64_t first, int64_t count)
{
    if (!tensor->rank || tensor->dims[axis] == 1)
        return 0;
    tensor->dims[axis] = count;
    return (size_t)(first * tensor->strides[axis]) * tw_dtype_size(tensor->dtype);
}

/* Part i: from one multiple of the grain to another. Of src the rows are divided, of weights and bias the columns. */
static tw_status prepare_part(twi_prepare *p, twi_dnnl_spec s, int axis, int64_t parts, int64_t i, part *made)
{
    int last = s.dst.rank - 1;
    int64_t size = s.dst.dims[axis], grain = axis == 0 && last > 1 ? 1 : GRAIN, grains = (size + grain - 1) / grain;
    int64_t first = grains * i / parts * grain, end = grains * (i + 1) / parts * grain;
    if (parts > 1) {
        int64_t count = (end < size ? end : size) - first;
        made->src = axis < last ? narrow(&s.src, axis, first, count) : 0;
        made->weights = axis != last - 1 ? narrow(&s.weights, axis, first, count) : 0;
        made->bias = axis == last ? narrow(&s.bias, 1, first, count) : 0;
        made->dst = narrow(&s.dst, axis, first, count);
    }
    tw_status status = twi_dnnl_create(&s, &made->primitive, p->error);
    if (status == TW_OK)
        made->workspace = twi_make_room(&p->workspace, twi_dnnl_workspace(made->primitive));
    return status;
}

static tw_status matmul_prepare(twi_prepare *p)
{
    twi_operand a = p->inputs[0], b = p->inputs[1], y = p->outputs[0];
    bool turn_a = twi_attr_bool(p->attrs, "transpose_a", false) || twi_attr_bool(p->attrs, "adj_x", false);
    bool turn_b = twi_attr_bool(p->attrs, "transpose_b", false) || twi_attr_bool(p->attrs, "adj_y", false);
    if (!twi_dnnl_has_type(a.dtype) || a.elements == 0 || b.elements == 0 || !has_batches(&a, &y) || !has_batches(&b, &y))
        return TW_UNIMPLEMENTED;
    if (count_batches(b.shape) == 1 && !turn_a) { /* rows of many matrices are those of one */
        a.shape = TW_SHAPE(a.elements / a.shape.dims[a.shape.rank - 1], a.shape.dims[a.shape.rank - 1]);
        y.shape = TW_SHAPE(y.elements / y.shape.dims[y.shape.rank - 1], y.shape.dims[y.shape.rank - 1]);
    }
    bool batched = count_batches(y.shape) > 1;
    twi_dnnl_spec spec = {
        .kind = TWI_DNNL_MATMUL,
        .src = matrices(&a, turn_a, batched),
        .weights = matrices(&b, turn_b, batched),
        .dst = matrices(&y, false, batched),
        .relu = twi_attr_bool(p->attrs, "relu", false),
        .threads = 1,
    };
    if (p->num_inputs > 2)
        spec.bias = (twi_dnnl_tensor){p->inputs[2].dtype, 2, {1, p->inputs[2].elements}, {p->inputs[2].elements, 1}};
    int64_t parts;
    int axis = divide(&spec, p->threads, &parts);
    parts = parts > 1 ? parts : 1;
    product *d = p->state = twi_alloc(sizeof *d + (size_t)parts * sizeof *d->parts);
    if (!d)
        return twi_fail_memory(p->error, "preparing a matrix product");
    tw_status status = TW_OK;
    for (int64_t i = 0; i < parts && status == TW_OK; i++) {
        status = prepare_part(p, spec, axis, parts, i, &d->parts[i]);
        d->count += status == TW_OK;
    }
    return status;
}

static tw_status run_part(const twi_run *r, const part *part, tw_error *error)
{
    const char *bias = r->num_inputs > 2 ? r->inputs[2] : NULL;
    return twi_dnnl_run(part->primitive, (const char *)r->inputs[0] + part->src, (const char *)r->inputs[1] + part->weights,
                        bias ? bias + part->bias : NULL, (char *)r->outputs[0] + part->dst,
                        (char *)r->workspace + part->workspace, error);
}

static tw_status matmul_run(const twi_run *r)
{
    const product *d = r->state;
    if (d->count == 1)
        return run_part(r, &d->parts[0], r->error);
    tw_status status = TW_OK;
#pragma omp parallel for num_threads(r->threads) schedule(static, 1)
    for (int i = 0; i < d->count; i++) {
        tw_error error = {0};
        tw_status one = run_part(r, &d->parts[i], &error);
        if (one == TW_OK)
            continue;
#pragma omp critical(twi_matmul_failed)
        if (status == TW_OK) {
            status = one;
            *r->error = error;
        }
    }
    return status;
}

#define TYPES (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16))

const twi_kernel twi_onednn_matmul_kernels[] = {
    {"MatMul", "onednn", TYPES, matmul_prepare, matmul_run, matmul_release, .shares = true},
    {"BatchMatMul", "onednn", TYPES, matmul_prepare, matmul_run, matmul_release, .shares = true},
    {"BatchMatMulV2", "onednn", TYPES, matmul_prepare, matmul_run, matmul_release, .shares = true},
    {"_FusedMatMul", "onednn", TYPES, matmul_prepare, matmul_run, matmul_release, .shares = true},
    {0},
};

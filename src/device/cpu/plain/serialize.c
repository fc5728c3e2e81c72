/* serialize.c - tensors as texts and back; sparse tensors as three texts, or as numbers in a map, and many of them as
 * one. */
#include "device/cpu/plain/serialize.h"

#include "base/memory.h"
#include "device/cpu/plain/move.h"
#include "device/state/sparse_map.h"
#include "format/protobuf.h"
#include "format/tensor_proto.h"
#include "tensor/tensor.h"

#include <string.h>

enum { SPARE_BYTES = 1 << 20 }; /* by which a text's values may be more than it has */

static const int64_t *longs(const tw_tensor *tensor)
{
    return tensor->data;
}

/* ---- tensors as texts -------------------------------------------------------------------------------------------- */

tw_status twi_write_text(const twi_run *r, const tw_tensor *tensor, tw_string *text)
{
    return twi_tensor_to_text(tensor, text) ? TW_OK : twi_fail_memory(r->error, r->node);
}

tw_status twi_read_text(const twi_run *r, const tw_string *text, tw_dtype dtype, tw_tensor **tensor)
{
    size_t spare = SPARE_BYTES;
    twi_proto proto;
    twi_proto_start(&proto, text->size);
    Twi__TensorProto *message =
        twi__tensor_proto__unpack(&proto.allocator, text->size, (const uint8_t *)(text->size ? text->data : ""));
    tw_status status = TW_OK;
    *tensor = NULL;
    if (!message)
        return proto.out_of_memory
                   ? twi_fail_memory(r->error, r->node)
                   : twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Could not parse a serialized tensor", r->node);
    status = twi_tensor_from_proto(message, &spare, tensor, r->error);
    twi__tensor_proto__free_unpacked(message, &proto.allocator);
    if (status != TW_OK || (*tensor)->dtype == dtype)
        return status;
    status =
        twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Type mismatch between the serialized tensor (%s) and dtype (%s)",
                 r->node, tw_dtype_name((*tensor)->dtype), tw_dtype_name(dtype));
    tw_tensor_release(*tensor);
    *tensor = NULL;
    return status;
}

/* Of an input: a copy, since its memory is the plan's. */
static tw_status tensor_of(const twi_run *r, int input, tw_tensor **tensor)
{
    const twi_operand *operand = &r->input_operands[input];
    *tensor = tw_tensor_create(operand->dtype, operand->shape);
    if (*tensor && twi_copy_elements(operand->elements, operand->dtype, r->inputs[input], (*tensor)->data))
        return TW_OK;
    tw_tensor_release(*tensor);
    *tensor = NULL;
    return twi_fail_memory(r->error, r->node);
}

static tw_status run_serialize(const twi_run *r)
{
    tw_tensor *tensor;
    tw_status status = tensor_of(r, 0, &tensor);
    if (status == TW_OK)
        status = twi_write_text(r, tensor, r->outputs[0]);
    tw_tensor_release(tensor);
    return status;
}

static tw_status run_parse(const twi_run *r)
{
    tw_tensor *tensor;
    void *to;
    tw_status status = twi_read_text(r, r->inputs[0], r->output_operands[0].dtype, &tensor);
    if (status == TW_OK)
        status = twi_make_output(r, 0, tensor->shape, &to);
    if (status == TW_OK && !twi_copy_elements(tensor->elements, tensor->dtype, tensor->data, to))
        status = twi_fail_memory(r->error, r->node);
    tw_tensor_release(tensor);
    return status;
}

/* ---- sparse tensors that are given ------------------------------------------------------------------------------- */

/* Inputs 0 to 2. */
static tw_status expect_sparse(const twi_run *r)
{
    const int64_t *dims = r->input_operands[0].shape.dims;
    if (dims[0] == r->input_operands[1].elements && dims[1] == r->input_operands[2].elements)
        return TW_OK;
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': indices [%lld,%lld] for %lld values and a shape of %lld",
                    r->node, (long long)dims[0], (long long)dims[1], (long long)r->input_operands[1].elements,
                    (long long)r->input_operands[2].elements);
}

static tw_status whole_sparse(const twi_run *r, twi_sparse_tensor *sparse)
{
    *sparse = (twi_sparse_tensor){{NULL}};
    tw_status status = expect_sparse(r);
    for (int i = 0; i < 3 && status == TW_OK; i++)
        status = tensor_of(r, i, &sparse->parts[i]);
    if (status != TW_OK)
        twi_sparse_release(sparse);
    return status;
}

/* Entries from `first` to before `end`, which are one row: without the row's number. */
static tw_status row_of_sparse(const twi_run *r, int64_t first, int64_t end, twi_sparse_tensor *sparse)
{
    int64_t rank = r->input_operands[2].elements, *to;
    const int64_t *from = r->inputs[0], *shape = r->inputs[2];
    tw_dtype dtype = r->input_operands[1].dtype;
    *sparse = (twi_sparse_tensor){{tw_tensor_create(TW_INT64, TW_SHAPE(end - first, rank - 1)),
                                   tw_tensor_create(dtype, TW_SHAPE(end - first)),
                                   tw_tensor_from(TW_INT64, TW_SHAPE(rank - 1), shape + 1)}};
    bool done = sparse->parts[0] && sparse->parts[1] && sparse->parts[2] &&
                twi_copy_elements(end - first, dtype, twi_element(r->inputs[1], dtype, first), sparse->parts[1]->data);
    to = done ? sparse->parts[0]->data : NULL;
    for (int64_t i = first; i < end && done; i++)
        memcpy(to + (i - first) * (rank - 1), from + i * rank + 1, sizeof *to * (size_t)(rank - 1));
    if (done)
        return TW_OK;
    twi_sparse_release(sparse);
    return twi_fail_memory(r->error, r->node);
}

/* How many rows there are; entries must be sorted by them. */
static tw_status count_rows(const twi_run *r, int64_t *rows)
{
    int64_t rank = r->input_operands[2].elements, last = 0;
    const int64_t *indices = r->inputs[0];
    tw_status status = expect_sparse(r);
    if (status == TW_OK && rank < 2)
        status =
            twi_fail(r->error, TW_INVALID_ARGUMENT,
                     "'%s': Rank of input SparseTensor should be > 1, but saw rank: %lld", r->node, (long long)rank);
    if (status != TW_OK)
        return status;
    *rows = *(const int64_t *)r->inputs[2];
    for (int64_t i = 0; i < r->input_operands[1].elements; last = indices[i++ * rank])
        if (indices[i * rank] < last || indices[i * rank] >= *rows)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': entry %lld is of row %lld of %lld, behind one of row %lld", r->node, (long long)i,
                            (long long)indices[i * rank], (long long)*rows, (long long)last);
    return TW_OK;
}

/* What becomes of one row. */
typedef tw_status put_row(const twi_run *r, void *to, int64_t row, twi_sparse_tensor *sparse);

static tw_status each_row(const twi_run *r, int64_t rows, void *to, put_row *put)
{
    int64_t rank = r->input_operands[2].elements, n = r->input_operands[1].elements, end = 0;
    const int64_t *indices = r->inputs[0];
    tw_status status = TW_OK;
    for (int64_t row = 0; row < rows && status == TW_OK; row++) {
        int64_t first = end;
        twi_sparse_tensor sparse;
        while (end < n && indices[end * rank] == row)
            end++;
        status = row_of_sparse(r, first, end, &sparse);
        if (status == TW_OK)
            status = put(r, to, row, &sparse);
        twi_sparse_release(&sparse);
    }
    return status;
}

/* ---- sparse tensors that are made of several --------------------------------------------------------------------- */

static tw_status check_parts(const twi_run *r, const twi_sparse_tensor *sparse, const twi_sparse_tensor *first)
{
    const tw_tensor *indices = sparse->parts[0], *values = sparse->parts[1], *shape = sparse->parts[2];
    if (indices->shape.rank != 2 || values->shape.rank != 1 || shape->shape.rank != 1 ||
        indices->shape.dims[0] != values->elements || indices->shape.dims[1] != shape->elements)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': what was serialized is no sparse tensor", r->node);
    if (shape->elements != first->parts[2]->elements)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': Inconsistent rank across SparseTensors: one has %lld axes, the first has %lld", r->node,
                        (long long)shape->elements, (long long)first->parts[2]->elements);
    return TW_OK;
}

/* Writes the number of each entry's tensor, as a place among `prefix`, before its index. */
static void put_indices(const twi_sparse_tensor *sparse, int64_t number, tw_shape prefix, int64_t *to)
{
    const tw_tensor *indices = sparse->parts[0];
    int64_t rank = indices->shape.dims[1];
    for (int64_t i = 0; i < indices->shape.dims[0]; i++, to += prefix.rank + rank) {
        int64_t rest = number;
        for (int k = prefix.rank - 1; k >= 0; rest /= prefix.dims[k--])
            to[k] = rest % prefix.dims[k];
        if (rank)
            memcpy(to + prefix.rank, longs(indices) + i * rank, sizeof *to * (size_t)rank);
    }
}

/* As large as the largest along each axis. */
static void put_shape(const twi_sparse_tensor *sparse, int64_t count, tw_shape prefix, int64_t *to)
{
    int64_t rank = sparse->parts[2]->elements;
    for (int k = 0; k < prefix.rank; k++)
        to[k] = prefix.dims[k];
    for (int64_t k = 0; k < rank; k++) {
        to[prefix.rank + k] = 0;
        for (int64_t i = 0; i < count; i++)
            if (longs(sparse[i].parts[2])[k] > to[prefix.rank + k])
                to[prefix.rank + k] = longs(sparse[i].parts[2])[k];
    }
}

/* Outputs 0 to 2: all of them along new first axes, `prefix`, whose elements they are. */
static tw_status give_sparse(const twi_run *r, const twi_sparse_tensor *sparse, int64_t count, tw_shape prefix)
{
    int64_t entries = 0, rank, *indices = NULL, *shape = NULL;
    tw_dtype dtype = r->output_operands[1].dtype;
    void *values = NULL;
    tw_status status = TW_OK;
    if (count == 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Must have at least one SparseTensor", r->node);
    for (int64_t i = 0; i < count && status == TW_OK; i++) {
        status = check_parts(r, &sparse[i], &sparse[0]);
        entries += status == TW_OK ? sparse[i].parts[1]->elements : 0;
    }
    rank = status == TW_OK ? sparse[0].parts[2]->elements + prefix.rank : 0;
    if (status == TW_OK)
        status = twi_make_output(r, 0, TW_SHAPE(entries, rank), (void **)&indices);
    if (status == TW_OK)
        status = twi_make_output(r, 1, TW_SHAPE(entries), &values);
    if (status == TW_OK)
        status = twi_make_output(r, 2, TW_SHAPE(rank), (void **)&shape);
    if (status != TW_OK)
        return status;
    put_shape(sparse, count, prefix, shape);
    for (int64_t i = 0, at = 0; i < count && status == TW_OK; at += sparse[i++].parts[1]->elements) {
        const tw_tensor *from = sparse[i].parts[1];
        put_indices(&sparse[i], i, prefix, indices + at * rank);
        if (!twi_copy_elements(from->elements, dtype, from->data, twi_element_of_output(values, dtype, at)))
            status = twi_fail_memory(r->error, r->node);
    }
    return status;
}

/* Gets sparse tensor i. */
typedef tw_status get_sparse(const twi_run *r, int64_t i, twi_sparse_tensor *sparse);

static tw_status give_all(const twi_run *r, int64_t count, tw_shape prefix, get_sparse *get)
{
    twi_sparse_tensor *sparse = twi_alloc_array((size_t)count + 1, sizeof *sparse);
    tw_status status = sparse ? TW_OK : twi_fail_memory(r->error, r->node);
    for (int64_t i = 0; i < count && status == TW_OK; i++)
        status = get(r, i, &sparse[i]);
    if (status == TW_OK)
        status = give_sparse(r, sparse, count, prefix);
    for (int64_t i = 0; i < count && sparse; i++)
        twi_sparse_release(&sparse[i]);
    twi_free(sparse);
    return status;
}

/* The whole tensor as row 0. */
static tw_status put_whole(const twi_run *r, put_row *put)
{
    twi_sparse_tensor sparse;
    tw_status status = whole_sparse(r, &sparse);
    if (status == TW_OK)
        status = put(r, r->outputs[0], 0, &sparse);
    twi_sparse_release(&sparse);
    return status;
}

/* Each of its rows, of which one is a place of a vector (rank 1) or three of a matrix (rank 2). */
static tw_status put_rows(const twi_run *r, int rank, put_row *put)
{
    int64_t rows;
    void *to;
    tw_status status = count_rows(r, &rows);
    if (status == TW_OK)
        status = twi_make_output(r, 0, rank == 1 ? TW_SHAPE(rows) : TW_SHAPE(rows, 3), &to);
    return status == TW_OK ? each_row(r, rows, to, put) : status;
}

/* ---- as three texts ---------------------------------------------------------------------------------------------- */

static tw_status put_texts(const twi_run *r, void *to, int64_t row, twi_sparse_tensor *sparse)
{
    tw_string *texts = (tw_string *)to + 3 * row;
    tw_status status = TW_OK;
    for (int i = 0; i < 3 && status == TW_OK; i++)
        status = twi_write_text(r, sparse->parts[i], &texts[i]);
    return status;
}

static tw_status run_serialize_sparse(const twi_run *r)
{
    return put_whole(r, put_texts);
}

static tw_status run_serialize_rows(const twi_run *r)
{
    return put_rows(r, 2, put_texts);
}

static tw_status get_texts(const twi_run *r, int64_t number, twi_sparse_tensor *sparse)
{
    const tw_string *texts = (const tw_string *)r->inputs[0] + 3 * number;
    tw_status status = TW_OK;
    for (int i = 0; i < 3 && status == TW_OK; i++)
        status = twi_read_text(r, &texts[i], i == 1 ? r->output_operands[1].dtype : TW_INT64, &sparse->parts[i]);
    return status;
}

/* Texts [...,3]: the axes before the last are the result's first. */
static tw_status run_deserialize(const twi_run *r)
{
    tw_shape prefix = r->input_operands[0].shape;
    if (prefix.rank < 1 || prefix.dims[prefix.rank - 1] != 3)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Serialized sparse should have 3 as the last dimension",
                        r->node);
    prefix.rank--;
    return give_all(r, r->input_operands[0].elements / 3, prefix, get_texts);
}

/* ---- as numbers -------------------------------------------------------------------------------------------------- */

/* state: the map. */
static tw_status prepare_map(twi_prepare *p)
{
    const char *shared = twi_attr_string(p->attrs, "shared_name", ""), *name = *shared ? shared : p->node;
    twi_resource *resource = p->resources->get(p->resources, name);
    if (!resource)
        return twi_fail_memory(p->error, p->node);
    return twi_sparse_map_make(resource, p->node, (twi_sparse_map **)&p->state, p->error);
}

static tw_status put_number(const twi_run *r, void *to, int64_t row, twi_sparse_tensor *sparse)
{
    return twi_sparse_map_put(r->state, sparse, (int64_t *)to + row) ? TW_OK : twi_fail_memory(r->error, r->node);
}

static tw_status run_add(const twi_run *r)
{
    return put_whole(r, put_number);
}

static tw_status run_add_rows(const twi_run *r)
{
    return put_rows(r, 1, put_number);
}

static tw_status take_number(const twi_run *r, int64_t i, twi_sparse_tensor *sparse)
{
    int64_t number = twi_input_int(r, 0, i);
    if (!twi_sparse_map_take(r->state, number, sparse))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Unable to find SparseTensor: %lld in map", r->node,
                        (long long)number);
    if (sparse->parts[1]->dtype == r->output_operands[1].dtype)
        return TW_OK;
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': a sparse tensor of %s, expected %s", r->node,
                    tw_dtype_name(sparse->parts[1]->dtype), tw_dtype_name(r->output_operands[1].dtype));
}

static tw_status run_take(const twi_run *r)
{
    return give_all(r, r->input_operands[0].elements, r->input_operands[0].shape, take_number);
}

const twi_kernel twi_cpu_serialize_kernels[] = {
    {"SerializeTensor", "plain", 0, NULL, run_serialize},
    {"ParseTensor", "plain", 0, NULL, run_parse},
    {"SerializeSparse", "plain", 0, NULL, run_serialize_sparse},
    {"SerializeManySparse", "plain", 0, NULL, run_serialize_rows},
    {"DeserializeSparse", "plain", 0, NULL, run_deserialize},
    {"DeserializeManySparse", "plain", 0, NULL, run_deserialize},
    {"AddSparseToTensorsMap", "plain", 0, prepare_map, run_add},
    {"AddManySparseToTensorsMap", "plain", 0, prepare_map, run_add_rows},
    {"TakeManySparseFromTensorsMap", "plain", 0, prepare_map, run_take},
    {0},
};

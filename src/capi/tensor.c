/* tensor.c - tensors of the API, and how they become Tower's and come from them: numbers by sharing their memory, texts
 * by copying, for they lie in another form.
 * Never here:  what handles of eager operations know (eager.c). */
#include "own_op.h"

#include <stdlib.h>
#include <string.h>
#include <tower/io.h>

enum { ALIGNMENT = 64 };

size_t TF_DataTypeSize(TF_DataType dt)
{
    if (dt == TF_STRING || dt == TF_RESOURCE || dt == TF_VARIANT)
        return 0;
    if (dt >= TF_FLOAT8_E5M2 && dt <= TF_FLOAT4_E2M1FN)
        return 1;
    return tw_dtype_size((tw_dtype)dt);
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static tensor_memory *retain(tensor_memory *memory)
{
    __atomic_add_fetch(&memory->references, 1, __ATOMIC_RELAXED);
    return memory;
}

static void release(tensor_memory *memory)
{
    if (!memory || __atomic_sub_fetch(&memory->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (memory->deallocator)
        memory->deallocator(memory->data, memory->bytes, memory->arg);
    free(memory);
}

static void free_numbers(void *data, size_t bytes, void *arg)
{
    (void)bytes;
    (void)arg;
    free(data);
}

static void free_texts(void *data, size_t bytes, void *arg)
{
    TF_TString *texts = data;
    for (size_t i = 0; i < bytes / sizeof *texts; i++)
        TF_TString_Dealloc(&texts[i]);
    free_numbers(data, bytes, arg);
}

/* Of our own: empty texts, or numbers that are about to be written. */
static tensor_memory *allocate(TF_DataType type, size_t bytes)
{
    tensor_memory *memory = calloc(1, sizeof *memory);
    size_t room = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *data = memory && room >= bytes ? aligned_alloc(ALIGNMENT, room ? room : ALIGNMENT) : NULL;
    if (!data) {
        free(memory);
        return NULL;
    }
    if (type == TF_STRING)
        memset(data, 0, room);
    *memory = (tensor_memory){.references = 1,
                              .data = data,
                              .bytes = bytes,
                              .ours = true,
                              .deallocator = type == TF_STRING ? free_texts : free_numbers};
    return memory;
}

/* ---- making ----------------------------------------------------------------------------------------------------- */

/* -1: more than there can be. */
static int64_t count_elements(const int64_t *dims, int num_dims)
{
    int64_t count = 1;
    for (int i = 0; i < num_dims; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(count, dims[i], &count))
            return -1;
    return count;
}

/* Whether so many bytes are enough for the elements. */
static bool is_enough(TF_DataType type, const int64_t *dims, int num_dims, size_t bytes)
{
    int64_t count = count_elements(dims, num_dims), needed;
    size_t size = type == TF_STRING ? sizeof(TF_TString) : TF_DataTypeSize(type);
    return count >= 0 && !__builtin_mul_overflow(count, (int64_t)size, &needed) && (uint64_t)needed <= bytes;
}

static bool set_dims(TF_Tensor *tensor, const int64_t *dims, int num_dims)
{
    int64_t *copy = malloc(sizeof *copy * (size_t)(num_dims + 1));
    if (!copy)
        return false;
    if (num_dims > 0)
        memcpy(copy, dims, sizeof *copy * (size_t)num_dims);
    free(tensor->dims);
    tensor->dims = copy;
    tensor->num_dims = num_dims;
    return true;
}

TF_Tensor *make_tensor(TF_DataType type, const int64_t *dims, int num_dims, tensor_memory *memory)
{
    TF_Tensor *tensor = memory ? calloc(1, sizeof *tensor) : NULL;
    if (tensor && !set_dims(tensor, dims, num_dims)) {
        free(tensor);
        return NULL;
    }
    if (tensor) {
        tensor->type = type;
        tensor->memory = retain(memory);
    }
    return tensor;
}

TF_Tensor *share_tensor(const TF_Tensor *tensor)
{
    return make_tensor(tensor->type, tensor->dims, tensor->num_dims, tensor->memory);
}

TF_Tensor *TF_AllocateTensor(TF_DataType type, const int64_t *dims, int num_dims, size_t len)
{
    if (!is_enough(type, dims, num_dims, len))
        return NULL;
    tensor_memory *memory = allocate(type, len);
    TF_Tensor *tensor = make_tensor(type, dims, num_dims, memory);
    release(memory);
    return tensor;
}

TF_Tensor *TF_NewTensor(TF_DataType type, const int64_t *dims, int num_dims, void *data, size_t len,
                        void (*deallocator)(void *data, size_t len, void *arg), void *deallocator_arg)
{
    bool fits = is_enough(type, dims, num_dims, len);
    bool copied = fits && TF_DataTypeSize(type) > 0 && (uintptr_t)data % ALIGNMENT != 0;
    tensor_memory *memory = !fits ? NULL : copied ? allocate(type, len) : calloc(1, sizeof *memory);
    TF_Tensor *tensor = NULL;
    if (memory && copied)
        memcpy(memory->data, data, len);
    else if (memory)
        *memory = (tensor_memory){1, data, len, false, deallocator, deallocator_arg};
    if (memory)
        tensor = make_tensor(type, dims, num_dims, memory);
    if (deallocator && (copied || !memory)) /* otherwise it goes with the memory */
        deallocator(data, len, deallocator_arg);
    release(memory);
    return tensor;
}

TF_Tensor *TF_TensorMaybeMove(TF_Tensor *tensor)
{
    bool alone = tensor->memory->ours && __atomic_load_n(&tensor->memory->references, __ATOMIC_ACQUIRE) == 1;
    return alone ? share_tensor(tensor) : NULL;
}

void TF_DeleteTensor(TF_Tensor *tensor)
{
    if (!tensor)
        return;
    release(tensor->memory);
    free(tensor->dims);
    free(tensor);
}

/* ---- lending ---------------------------------------------------------------------------------------------------- */

TF_Tensor *lend_tensor(TF_DataType type, const int64_t *dims, int num_dims, void *data, size_t bytes)
{
    tensor_memory *memory = calloc(1, sizeof *memory);
    if (memory)
        *memory = (tensor_memory){.references = 1, .data = data, .bytes = bytes};
    TF_Tensor *tensor = make_tensor(type, dims, num_dims, memory);
    release(memory);
    return tensor;
}

void take_back_tensor(TF_Tensor *tensor)
{
    tensor_memory *memory = tensor ? tensor->memory : NULL;
    bool lent = memory && tensor->type != TF_STRING && !memory->deallocator; /* texts have been copied */
    if (lent && __atomic_load_n(&memory->references, __ATOMIC_ACQUIRE) > 1) {
        tensor_memory *copy = allocate(tensor->type, memory->bytes);
        if (copy)
            memcpy(copy->data, memory->data, memory->bytes);
        memory->data = copy ? copy->data : NULL;
        memory->bytes = copy ? memory->bytes : 0;
        memory->deallocator = copy ? copy->deallocator : NULL;
        free(copy);
    }
    TF_DeleteTensor(tensor);
}

/* ---- looking ---------------------------------------------------------------------------------------------------- */

TF_DataType TF_TensorType(const TF_Tensor *tensor)
{
    return tensor->type;
}

int TF_NumDims(const TF_Tensor *tensor)
{
    return tensor->num_dims;
}

int64_t TF_Dim(const TF_Tensor *tensor, int dim_index)
{
    return tensor->dims[dim_index];
}

size_t TF_TensorByteSize(const TF_Tensor *tensor)
{
    return tensor->memory->bytes;
}

void *TF_TensorData(const TF_Tensor *tensor)
{
    return tensor->memory->data;
}

int64_t TF_TensorElementCount(const TF_Tensor *tensor)
{
    return count_elements(tensor->dims, tensor->num_dims);
}

bool TF_TensorIsAligned(const TF_Tensor *tensor)
{
    return (uintptr_t)tensor->memory->data % ALIGNMENT == 0;
}

size_t TF_TensorDefaultAlignment(void)
{
    return ALIGNMENT;
}

void TF_SetShape(TF_Tensor *tensor, const int64_t *dims, int num_dims)
{
    if (is_enough(tensor->type, dims, num_dims, tensor->memory->bytes))
        set_dims(tensor, dims, num_dims);
}

/* Makes `to` what `made` is, which goes. */
static void become(TF_Tensor *to, TF_Tensor *made)
{
    TF_Tensor old = *to;
    *to = *made;
    *made = old;
    TF_DeleteTensor(made);
}

void TF_TensorBitcastFrom(const TF_Tensor *from, TF_DataType type, TF_Tensor *to, const int64_t *new_dims,
                          int num_new_dims, TF_Status *status)
{
    size_t old_size = TF_DataTypeSize(from->type), new_size = TF_DataTypeSize(type);
    int64_t count = count_elements(new_dims, num_new_dims);
    TF_SetStatus(status, TF_OK, "");
    if (old_size == 0 || new_size == 0)
        set_status(status, TF_INVALID_ARGUMENT, "bitcast of type %d as %d: %s tensor has zero-sized data type",
                   from->type, type, old_size == 0 ? "other" : "this");
    else if (count < 0 || (uint64_t)TF_TensorElementCount(from) * old_size != (uint64_t)count * new_size)
        set_status(status, TF_INVALID_ARGUMENT,
                   "input tensor and output tensor must have the same number of bytes, but these have %zu and %zu",
                   (size_t)TF_TensorElementCount(from) * old_size, (size_t)count * new_size);
    if (!is_ok(status))
        return;
    TF_Tensor *made = make_tensor(type, new_dims, num_new_dims, from->memory);
    if (made)
        become(to, made);
    else
        set_no_memory(status);
}

/* ---- Tower's tensors -------------------------------------------------------------------------------------------- */

static void let_go_of_tower(void *data, size_t bytes, void *arg)
{
    (void)data;
    (void)bytes;
    tw_tensor_release(arg);
}

static void let_go_of_memory(void *user)
{
    release(user);
}

static tensor_memory *memory_of_texts(const tw_tensor *tensor)
{
    size_t count = (size_t)tw_tensor_elements(tensor);
    const tw_string *from = tw_tensor_data(tensor);
    tensor_memory *memory = allocate(TF_STRING, count * sizeof(TF_TString));
    TF_TString *texts = memory ? memory->data : NULL;
    for (size_t i = 0; i < count && texts; i++)
        TF_TString_Copy(&texts[i], from[i].data, from[i].size);
    return memory;
}

TF_Tensor *tensor_from_tower(tw_tensor *tensor)
{
    tw_shape shape = tw_tensor_shape(tensor);
    TF_DataType type = (TF_DataType)tw_tensor_dtype(tensor);
    bool texts = type == TF_STRING;
    tensor_memory *memory = texts ? memory_of_texts(tensor) : calloc(1, sizeof *memory);
    if (memory && !texts)
        *memory = (tensor_memory){1, tw_tensor_data(tensor), tw_tensor_bytes(tensor), false, let_go_of_tower, tensor};
    TF_Tensor *made = memory ? make_tensor(type, shape.dims, shape.rank, memory) : NULL;
    if (texts || !memory)
        tw_tensor_release(tensor);
    release(memory);
    return made;
}

/* What points at the texts of a tensor, in Tower's form. */
typedef struct text_view {
    tensor_memory *memory;
    tw_string texts[];
} text_view;

static void let_go_of_texts(void *user)
{
    text_view *view = user;
    release(view->memory);
    free(view);
}

static tw_tensor *texts_to_tower(const TF_Tensor *tensor, tw_shape shape)
{
    const TF_TString *texts = tensor->memory->data;
    size_t count = (size_t)TF_TensorElementCount(tensor);
    text_view *view = malloc(sizeof *view + sizeof *view->texts * count);
    if (!view)
        return NULL;
    view->memory = retain(tensor->memory);
    for (size_t i = 0; i < count; i++)
        view->texts[i] = (tw_string){(char *)TF_TString_GetDataPointer(&texts[i]), TF_TString_GetSize(&texts[i])};
    tw_tensor *made = tw_tensor_wrap(TW_STRING, shape, view->texts, let_go_of_texts, view);
    if (!made)
        let_go_of_texts(view);
    return made;
}

tw_tensor *tensor_to_tower(TF_Tensor *tensor, tw_error *error)
{
    tw_dtype type = (tw_dtype)tensor->type;
    tw_tensor *made = NULL;
    *error = (tw_error){TW_RESOURCE_EXHAUSTED, "out of memory"};
    if (tensor->num_dims > TW_MAX_RANK)
        *error = (tw_error){TW_UNIMPLEMENTED, "a tensor has more dimensions than Tower's can have"};
    else if (tw_dtype_size(type) == 0)
        *error = (tw_error){TW_UNIMPLEMENTED, "a tensor is of a type that Tower lacks"};
    else if (type == TW_RESOURCE || type == TW_VARIANT)
        *error = (tw_error){TW_UNIMPLEMENTED, "handles and variants cannot be fed"};
    else if (type == TW_STRING)
        made = texts_to_tower(tensor, shape_of(tensor->dims, tensor->num_dims));
    else if ((made = tw_tensor_wrap(type, shape_of(tensor->dims, tensor->num_dims), tensor->memory->data,
                                    let_go_of_memory, tensor->memory)))
        retain(tensor->memory);
    return made;
}

/* ---- messages --------------------------------------------------------------------------------------------------- */

bool write_tensor(wire *w, const TF_Tensor *tensor)
{
    enum { DTYPE = 1, SHAPE = 2, CONTENT = 4, STRINGS = 8, DIM = 2, SIZE = 1 };
    wire shape = {0};
    if (TF_DataTypeSize(tensor->type) == 0 && tensor->type != TF_STRING)
        return false;
    for (int i = 0; i < tensor->num_dims; i++) {
        wire dim = {0};
        wire_int(&dim, SIZE, (uint64_t)tensor->dims[i]);
        wire_message(&shape, DIM, &dim);
    }
    wire_int(w, DTYPE, (uint64_t)tensor->type);
    wire_message(w, SHAPE, &shape);
    size_t count = (size_t)TF_TensorElementCount(tensor);
    const TF_TString *texts = tensor->memory->data;
    if (tensor->type != TF_STRING)
        wire_bytes(w, CONTENT, tensor->memory->data, count * TF_DataTypeSize(tensor->type));
    for (size_t i = 0; i < count && tensor->type == TF_STRING; i++)
        wire_bytes(w, STRINGS, TF_TString_GetDataPointer(&texts[i]), TF_TString_GetSize(&texts[i]));
    return true;
}

void write_tower_tensor(wire *w, tw_tensor *tensor)
{
    TF_Tensor *same = tensor_from_tower(tw_tensor_retain(tensor));
    w->failed = w->failed || !same;
    if (same)
        write_tensor(w, same);
    TF_DeleteTensor(same);
}

/* The value of a constant node that has it: graphs are what Tower reads tensors' messages in. */
tw_tensor *tensor_of_message(const TF_Buffer *from, tw_error *error)
{
    enum { NODE = 1, NAME = 1, OP = 2, ATTR = 5, KEY = 1, VALUE = 2, TENSOR = 8, TYPE = 6, DTYPE = 1 };
    wire def = {0}, node = {0}, entry = {0}, value = {0};
    wire_field field;
    uint64_t dtype = 0;
    wire_reader r = wire_read(from->data, from->length);
    while (wire_next(&r, &field))
        if (field.number == DTYPE)
            dtype = field.value;
    wire_text(&node, NAME, "value");
    wire_text(&node, OP, "Const");
    wire_bytes(&value, TENSOR, from->data, from->length);
    wire_text(&entry, KEY, "value");
    wire_message(&entry, VALUE, &value);
    wire_message(&node, ATTR, &entry);
    wire_int(&value, TYPE, dtype);
    wire_text(&entry, KEY, "dtype");
    wire_message(&entry, VALUE, &value);
    wire_message(&node, ATTR, &entry);
    wire_message(&def, NODE, &node);
    tw_graph *graph = tw_graph_create();
    tw_tensor *tensor = NULL;
    if (def.failed || !graph)
        *error = (tw_error){TW_RESOURCE_EXHAUSTED, "out of memory"};
    else if (tw_graph_import_with(graph, def.data, def.size, &(tw_import_options){.known_only = true}, error) == TW_OK)
        tensor = tw_tensor_retain(tw_node_attr(tw_graph_find(graph, "value"), "value")->tensor);
    tw_graph_destroy(graph);
    wire_free(&def);
    return tensor;
}

void TF_TensorFromProto(const TF_Buffer *from, TF_Tensor *to, TF_Status *status)
{
    tw_error error = TW_NO_ERROR;
    if (!wire_is_message(from->data, from->length)) {
        set_status(status, TF_INVALID_ARGUMENT, "Unparseable TensorProto");
        return;
    }
    tw_tensor *tensor = tensor_of_message(from, &error);
    if (!tensor) {
        set_status(status, error.status == TW_RESOURCE_EXHAUSTED ? TF_RESOURCE_EXHAUSTED : TF_INVALID_ARGUMENT,
                   "Unparseable tensor proto: %s", error.message);
        return;
    }
    TF_Tensor *made = tensor_from_tower(tensor);
    TF_SetStatus(status, TF_OK, "");
    if (made)
        become(to, made);
    else
        set_no_memory(status);
}

/* ---- texts ------------------------------------------------------------------------------------------------------ */

void TF_StringInit(TF_TString *t)
{
    TF_TString_Init(t);
}

void TF_StringCopy(TF_TString *dst, const char *src, size_t size)
{
    TF_TString_Copy(dst, src, size);
}

void TF_StringAssignView(TF_TString *dst, const char *src, size_t size)
{
    TF_TString_AssignView(dst, src, size);
}

const char *TF_StringGetDataPointer(const TF_TString *tstr)
{
    return TF_TString_GetDataPointer(tstr);
}

TF_TString_Type TF_StringGetType(const TF_TString *str)
{
    return TF_TString_GetType(str);
}

size_t TF_StringGetSize(const TF_TString *tstr)
{
    return TF_TString_GetSize(tstr);
}

size_t TF_StringGetCapacity(const TF_TString *str)
{
    return TF_TString_GetCapacity(str);
}

void TF_StringDealloc(TF_TString *tstr)
{
    TF_TString_Dealloc(tstr);
}

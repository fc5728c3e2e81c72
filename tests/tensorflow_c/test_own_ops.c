/* test_own_ops.c - ops and kernels that a program registers: what they are told, what they give, how they fail, and
 * that what they are given is freed once. */
#include "fixture.h"

#include <pthread.h>
#include <tensorflow/c/eager/c_api.h>
#include <tensorflow/c/kernels.h>
#include <tensorflow/c/ops.h>

/* ---- an op with attributes ----------------------------------------------------------------------------------------
 */

static int created, deleted;
static char said[512]; /* what a function found that it cannot check itself */

static void same_shape(TF_ShapeInferenceContext *ctx, TF_Status *status)
{
    TF_ShapeHandle *shape = TF_NewShapeHandle();
    TF_ShapeInferenceContextGetInput(ctx, 0, shape, status);
    if (TF_GetCode(status) == TF_OK)
        TF_ShapeInferenceContextSetOutput(ctx, 0, shape, status);
    TF_DeleteShapeHandle(shape);
}

typedef struct affine {
    float scale;
    int64_t bias;
} affine;

static void *create_affine(TF_OpKernelConstruction *ctx)
{
    affine *made = calloc(1, sizeof *made);
    TF_Status *status = TF_NewStatus();
    TF_OpKernelConstruction_GetAttrFloat(ctx, "scale", &made->scale, status);
    if (TF_GetCode(status) == TF_OK)
        TF_OpKernelConstruction_GetAttrInt64(ctx, "bias", &made->bias, status);
    if (TF_GetCode(status) == TF_OK && made->bias < 0)
        TF_SetStatus(status, TF_INVALID_ARGUMENT, "a bias below nothing");
    if (TF_GetCode(status) != TF_OK)
        TF_OpKernelConstruction_Failure(ctx, status);
    TF_DeleteStatus(status);
    __atomic_add_fetch(&created, 1, __ATOMIC_RELAXED);
    return made;
}

static void delete_affine(void *kernel)
{
    __atomic_add_fetch(&deleted, 1, __ATOMIC_RELAXED);
    free(kernel);
}

/* Memory for output i of the shape of a tensor. */
static TF_Tensor *output_like(TF_OpKernelContext *ctx, int i, const TF_Tensor *x, TF_Status *status)
{
    int64_t dims[8];
    for (int k = 0; k < TF_NumDims(x); k++)
        dims[k] = TF_Dim(x, k);
    return TF_AllocateOutput(ctx, i, TF_ExpectedOutputDataType(ctx, i), dims, TF_NumDims(x), TF_TensorByteSize(x),
                             status);
}

static void finish(TF_OpKernelContext *ctx, TF_Status *status)
{
    if (TF_GetCode(status) != TF_OK)
        TF_OpKernelContext_Failure(ctx, status);
    TF_DeleteStatus(status);
}

static void compute_affine(void *kernel, TF_OpKernelContext *ctx)
{
    const affine *a = kernel;
    TF_Status *status = TF_NewStatus();
    TF_Tensor *x = NULL, *y = NULL;
    TF_GetInput(ctx, 0, &x, status);
    y = x ? output_like(ctx, 0, x, status) : NULL;
    for (int64_t i = 0; y && i < TF_TensorElementCount(x); i++)
        if (TF_TensorType(x) == TF_FLOAT)
            ((float *)TF_TensorData(y))[i] = ((float *)TF_TensorData(x))[i] * a->scale + (float)a->bias;
        else
            ((double *)TF_TensorData(y))[i] = ((double *)TF_TensorData(x))[i] * a->scale + (double)a->bias;
    TF_DeleteTensor(x);
    TF_DeleteTensor(y);
    finish(ctx, status);
}

static void register_kernel_for(const char *op, TF_DataType type, void *(*create)(TF_OpKernelConstruction *),
                                void (*compute)(void *, TF_OpKernelContext *), void (*delete)(void *))
{
    TF_KernelBuilder *b = TF_NewKernelBuilder(op, "CPU", create, compute, delete);
    if (type)
        TF_KernelBuilder_TypeConstraint(b, "T", type, s);
    TF_RegisterKernelBuilder(op, b, s);
    assert_fine(s);
}

typedef struct texts {
    const char *items[8]; /* to NULL */
} texts;

static void register_op(const char *name, texts attrs, texts inputs, texts outputs,
                        void (*shape)(TF_ShapeInferenceContext *, TF_Status *))
{
    TF_OpDefinitionBuilder *b = TF_NewOpDefinitionBuilder(name);
    for (int i = 0; attrs.items[i]; i++)
        TF_OpDefinitionBuilderAddAttr(b, attrs.items[i]);
    for (int i = 0; inputs.items[i]; i++)
        TF_OpDefinitionBuilderAddInput(b, inputs.items[i]);
    for (int i = 0; outputs.items[i]; i++)
        TF_OpDefinitionBuilderAddOutput(b, outputs.items[i]);
    if (shape)
        TF_OpDefinitionBuilderSetShapeInferenceFunction(b, shape);
    TF_RegisterOpDefinition(b, s);
}

static int register_all(void **state);

static TF_Operation *affine_of(const char *name, TF_Output x, int64_t bias)
{
    TF_OperationDescription *d = TF_NewOperation(graph, "TestAffine", name);
    TF_AddInput(d, x);
    TF_SetAttrInt(d, "bias", bias);
    TF_Operation *made = TF_FinishOperation(d, s);
    assert_fine(s);
    return made;
}

static void kernels_are_made_once_for_a_session(void **state)
{
    (void)state;
    TF_Operation *x = placeholder(graph, "x", TF_FLOAT, s), *y = affine_of("y", out(x), 1),
                 *z = affine_of("z", out(y), 2);
    TF_Operation *sum = binary(graph, "AddV2", "sum", out(y), out(z), s);
    float values[] = {1, 2, 3, 4, 5, 6};
    created = deleted = 0;
    TF_Session *session = session_of(graph, s);
    for (int rank = 0; rank < 3; rank++) {
        TF_Tensor *fed = float_tensor((int64_t[]){2, 3}, rank, values);
        TF_Tensor *result = run(session, out(x), fed, out(sum), s);
        assert_fine(s);
        assert_int_equal(TF_NumDims(result), rank);
        for (int i = 0; i < TF_TensorElementCount(result); i++) {
            float first = 2 * values[i] + 1;
            assert_float_equal(((float *)TF_TensorData(result))[i], first + 2 * first + 2, 0);
        }
        TF_DeleteTensor(fed);
        TF_DeleteTensor(result);
    }
    close_session(session, s);
    assert_int_equal(created, 2);
    assert_int_equal(deleted, 2);
}

static void kernels_are_chosen_by_type(void **state)
{
    (void)state;
    TF_Operation *x = placeholder(graph, "x", TF_DOUBLE, s), *y = affine_of("y", out(x), 7);
    double value = 3;
    TF_Tensor *fed = TF_AllocateTensor(TF_DOUBLE, NULL, 0, sizeof value);
    memcpy(TF_TensorData(fed), &value, sizeof value);
    TF_Session *session = session_of(graph, s);
    TF_Tensor *result = run(session, out(x), fed, out(y), s);
    assert_fine(s);
    assert_float_equal(*(double *)TF_TensorData(result), 13, 0);
    TF_DeleteTensor(result);
    TF_DeleteTensor(fed);
    TF_Operation *h = placeholder(graph, "h", TF_HALF, s), *none = affine_of("none", out(h), 7);
    fed = TF_AllocateTensor(TF_HALF, NULL, 0, 2);
    memset(TF_TensorData(fed), 0, 2);
    assert_null(run(session, out(h), fed, out(none), s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "No OpKernel was registered to support Op 'TestAffine'");
    TF_DeleteTensor(fed);
    close_session(session, s);
}

static void a_kernel_that_cannot_be_made_fails_the_run(void **state)
{
    (void)state;
    TF_Operation *x = placeholder(graph, "x", TF_FLOAT, s), *y = affine_of("bad", out(x), -1);
    TF_Session *session = session_of(graph, s);
    TF_Tensor *fed = float_tensor(NULL, 0, &(float){1});
    created = deleted = 0;
    assert_null(run(session, out(x), fed, out(y), s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "a bias below nothing");
    TF_DeleteTensor(fed);
    close_session(session, s);
    assert_int_equal(created, deleted);
}

/* ---- shapes --------------------------------------------------------------------------------------------------------
 */

static void pair_shape(TF_ShapeInferenceContext *ctx, TF_Status *status)
{
    TF_ShapeHandle *x = TF_NewShapeHandle(), *y = TF_NewShapeHandle(), *scalar = TF_ShapeInferenceContextScalar(ctx);
    TF_ShapeHandle *pair = TF_ShapeInferenceContextVectorFromSize(ctx, 2);
    TF_DimensionHandle *dim = TF_NewDimensionHandle();
    TF_DataType type = 0;
    TF_ShapeInferenceContextGetInput(ctx, 0, x, status);
    TF_ShapeInferenceContextWithRankAtLeast(ctx, x, 2, x, status);
    if (TF_GetCode(status) == TF_OK) {
        TF_ShapeInferenceContextSubshape(ctx, x, 0, -1, y, status);
        TF_ShapeInferenceContextConcatenateShapes(ctx, pair, y, y, status);
        TF_ShapeInferenceContextSetOutput(ctx, 0, y, status);
        TF_ShapeInferenceContextSetOutput(ctx, 1, scalar, status);
        TF_ShapeInferenceContextDim(ctx, x, -1, dim);
        TF_Status *other = TF_NewStatus();
        TF_ShapeInferenceContext_GetAttrType(ctx, "T", &type, other);
        snprintf(said, sizeof said, "%d inputs, rank %d %d, last %d %d, type %d",
                 (int)TF_ShapeInferenceContextNumInputs(ctx), TF_ShapeInferenceContextRankKnown(ctx, x),
                 (int)TF_ShapeInferenceContextRank(ctx, x), TF_DimensionHandleValueKnown(dim),
                 TF_DimensionHandleValueKnown(dim) ? (int)TF_DimensionHandleValue(dim) : 0, type);
        TF_ShapeInferenceContextSetOutput(ctx, 2, scalar, other);
        if (TF_GetCode(other) != TF_INVALID_ARGUMENT)
            strcat(said, ", and there is an output 2");
        TF_DeleteStatus(other);
    }
    TF_DeleteShapeHandle(x);
    TF_DeleteShapeHandle(y);
    TF_DeleteShapeHandle(scalar);
    TF_DeleteShapeHandle(pair);
    TF_DeleteDimensionHandle(dim);
}

static void shape_functions_say_what_is_known(void **state)
{
    (void)state;
    int64_t dims[4], known[] = {5, -1, 3};
    TF_Operation *x = placeholder(graph, "x", TF_INT32, s);
    TF_GraphSetTensorShape(graph, out(x), known, 3, s);
    TF_Operation *pair = unary(graph, "TestPair", "pair", out(x), s);
    assert_string_equal(said, "1 inputs, rank 1 3, last 1 3, type 3");
    assert_int_equal(TF_GraphGetTensorNumDims(graph, out(pair), s), 3);
    TF_GraphGetTensorShape(graph, out(pair), dims, 3, s);
    assert_memory_equal(dims, ((int64_t[]){2, 5, -1}), sizeof *dims * 3);
    assert_int_equal(TF_GraphGetTensorNumDims(graph, (TF_Output){pair, 1}, s), 0);

    TF_Operation *any = placeholder(graph, "any", TF_FLOAT, s), *open = unary(graph, "TestPair", "open", out(any), s);
    assert_string_equal(said, "1 inputs, rank 0 -1, last 0 0, type 1");
    assert_int_equal(TF_GraphGetTensorNumDims(graph, out(open), s), -1);

    TF_Operation *few = placeholder(graph, "few", TF_FLOAT, s);
    TF_GraphSetTensorShape(graph, out(few), known, 1, s);
    TF_OperationDescription *d = TF_NewOperation(graph, "TestPair", "wrong");
    TF_AddInput(d, out(few));
    assert_null(TF_FinishOperation(d, s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "Shape must be at least rank 2 but is rank 1");
}

/* ---- outputs whose shapes nobody knows before -----------------------------------------------------------------------
 */

static void unknown_shape(TF_ShapeInferenceContext *ctx, TF_Status *status)
{
    TF_ShapeInferenceContextSetUnknownShape(ctx, status);
}

/* Gives x[0] times x, or nothing and an error, or nothing at all. */
static void compute_repeat(void *kernel, TF_OpKernelContext *ctx)
{
    TF_Status *status = TF_NewStatus();
    TF_Tensor *x = NULL, *y = NULL;
    (void)kernel;
    TF_GetInput(ctx, 0, &x, status);
    const float *from = TF_TensorData(x);
    int64_t n = TF_TensorElementCount(x), times = (int64_t)from[0];
    if (times == 0)
        TF_SetStatus(status, TF_FAILED_PRECONDITION, "nothing to repeat");
    if (times > 0)
        y = TF_AllocateOutput(ctx, 0, TF_FLOAT, (int64_t[]){times, n}, 2, (size_t)(times * n) * sizeof *from, status);
    for (int64_t i = 0; i < times * n && y; i++)
        ((float *)TF_TensorData(y))[i] = from[i % n];
    TF_DeleteTensor(x);
    TF_DeleteTensor(y);
    finish(ctx, status);
}

static void outputs_may_have_any_shape(void **state)
{
    (void)state;
    TF_Operation *x = placeholder(graph, "x", TF_FLOAT, s), *y = unary(graph, "TestRepeat", "y", out(x), s);
    TF_Operation *z = binary(graph, "AddV2", "z", out(y), out(x), s);
    TF_Session *session = session_of(graph, s);
    for (int times = 3; times > 0; times--) {
        TF_Tensor *fed = float_tensor((int64_t[]){2}, 1, (float[]){(float)times, 7});
        TF_Tensor *result = run(session, out(x), fed, out(z), s);
        assert_fine(s);
        assert_int_equal(TF_NumDims(result), 2);
        assert_int_equal(TF_Dim(result, 0), times);
        assert_float_equal(((float *)TF_TensorData(result))[2 * times - 1], 14, 0);
        TF_DeleteTensor(fed);
        TF_DeleteTensor(result);
    }
    TF_Tensor *fed = float_tensor((int64_t[]){1}, 1, &(float){0});
    assert_null(run(session, out(x), fed, out(z), s));
    assert_wrong(s, TF_FAILED_PRECONDITION, "nothing to repeat");
    TF_DeleteTensor(fed);
    fed = float_tensor((int64_t[]){1}, 1, &(float){-1});
    assert_null(run(session, out(x), fed, out(z), s));
    assert_wrong(s, TF_INTERNAL, "Missing 0-th output from");
    TF_DeleteTensor(fed);
    close_session(session, s);
}

/* ---- lists, texts, and what a kernel is told
 * ------------------------------------------------------------------------- */

static int64_t last_step;

static void compute_join(void *kernel, TF_OpKernelContext *ctx)
{
    TF_Status *status = TF_NewStatus();
    TF_InputRange_Args range = {.struct_size = TF_InputRange_Args_STRUCT_SIZE, .status = status};
    char joined[256] = "";
    (void)kernel;
    TF_InputRange(ctx, "words", &range);
    for (int i = range.start; i < range.stop && TF_GetCode(status) == TF_OK; i++) {
        TF_Tensor *word = NULL;
        TF_GetInput(ctx, i, &word, status);
        const TF_TString *text = TF_TensorData(word);
        strncat(joined, TF_StringGetDataPointer(text), TF_StringGetSize(text));
        TF_DeleteTensor(word);
    }
    TF_StringView name = TF_GetOpKernelName(ctx), device = TF_GetDeviceName(ctx);
    TF_Tensor *none = NULL;
    TF_GetInput(ctx, 99, &none, status);
    snprintf(said, sizeof said, "%d %d %d..%d type %d %.*s %.*s %d %d", TF_NumInputs(ctx), TF_NumOutputs(ctx),
             range.start, range.stop, TF_InputDatatype(ctx, 0), (int)name.len, name.data,
             (int)(device.len - strlen("/job:localhost/replica:0/task:0")),
             device.data + strlen("/job:localhost/replica:0/task:0"), TF_GetDeviceId(ctx), TF_GetCode(status));
    last_step = TF_StepId(ctx);
    TF_SetStatus(status, TF_OK, "");
    TF_Tensor *y = TF_AllocateOutput(ctx, 0, TF_STRING, (int64_t[]){2}, 1, 2 * sizeof(TF_TString), status);
    TF_StringCopy(TF_TensorData(y), joined, strlen(joined));
    TF_StringCopy((TF_TString *)TF_TensorData(y) + 1, "end", 3);
    TF_DeleteTensor(y);
    TF_Tensor *count = TF_AllocateTensor(TF_INT64, NULL, 0, sizeof(int64_t));
    *(int64_t *)TF_TensorData(count) = (int64_t)strlen(joined);
    TF_SetOutput(ctx, 1, count, status);
    TF_DeleteTensor(count);
    TF_Tensor *again = TF_GetMutableOutput(ctx, 1, status);
    if (*(int64_t *)TF_TensorData(again) != (int64_t)strlen(joined))
        TF_SetStatus(status, TF_DATA_LOSS, "the output is not what it was set to");
    TF_DeleteTensor(again);
    finish(ctx, status);
}

static TF_Output word(const char *name, const char *text)
{
    TF_Tensor *value = TF_AllocateTensor(TF_STRING, NULL, 0, sizeof(TF_TString));
    TF_StringInit(TF_TensorData(value));
    TF_StringCopy(TF_TensorData(value), text, strlen(text));
    return out(constant(graph, name, value, s));
}

static void texts_and_lists_are_taken_and_given(void **state)
{
    (void)state;
    TF_OperationDescription *d = TF_NewOperation(graph, "TestJoin", "join");
    TF_Output first = out(placeholder(graph, "first", TF_FLOAT, s));
    TF_AddInput(d, first);
    TF_AddInputList(d, (TF_Output[]){word("a", "a long text that is kept elsewhere, "), word("b", "b")}, 2);
    TF_Operation *join = TF_FinishOperation(d, s);
    assert_fine(s);
    TF_Session *session = session_of(graph, s);
    for (int i = 0; i < 2; i++) {
        int64_t before = last_step;
        TF_Tensor *fed = float_tensor(NULL, 0, &(float){1}), *results[2];
        TF_SessionRun(session, NULL, &first, &fed, 1, (TF_Output[]){{join, 0}, {join, 1}}, results, 2, NULL, 0, NULL,
                      s);
        assert_fine(s);
        const TF_TString *texts = TF_TensorData(results[0]);
        assert_int_equal(TF_Dim(results[0], 0), 2);
        assert_int_equal(TF_StringGetSize(texts), 37);
        assert_memory_equal(TF_StringGetDataPointer(texts), "a long text that is kept elsewhere, b", 37);
        assert_memory_equal(TF_StringGetDataPointer(texts + 1), "end", 3);
        assert_int_equal(*(int64_t *)TF_TensorData(results[1]), 37);
        TF_DeleteTensor(results[0]);
        TF_DeleteTensor(results[1]);
        TF_DeleteTensor(fed);
        assert_string_equal(said, "3 2 1..3 type 1 join /device:CPU:0 0 11");
        assert_int_not_equal(last_step, before);
    }
    close_session(session, s);
}

/* ---- tensors that are kept -----------------------------------------------------------------------------------------
 */

static TF_Tensor *kept_input, *kept_output;

static void compute_keep(void *kernel, TF_OpKernelContext *ctx)
{
    TF_Status *status = TF_NewStatus();
    (void)kernel;
    TF_DeleteTensor(kept_input);
    TF_DeleteTensor(kept_output);
    TF_GetInput(ctx, 0, &kept_input, status);
    kept_output = output_like(ctx, 0, kept_input, status);
    memcpy(TF_TensorData(kept_output), TF_TensorData(kept_input), TF_TensorByteSize(kept_input));
    TF_Tensor *temp = TF_AllocateTemp(ctx, TF_DOUBLE, (int64_t[]){2, 2}, 2, NULL, status);
    memset(TF_TensorData(temp), 0, TF_TensorByteSize(temp));
    TF_DeleteTensor(temp);
#ifndef ON_TENSORFLOW /* which it ends */
    int64_t too_many[] = {INT64_C(1) << 40, INT64_C(1) << 40};
    assert_null(TF_AllocateTemp(ctx, TF_DOUBLE, too_many, 2, NULL, status));
    assert_int_equal(TF_GetCode(status), TF_INVALID_ARGUMENT);
    assert_null(TF_AllocateOutput(ctx, 0, TF_FLOAT, too_many, 2, 0, status));
    assert_int_equal(TF_GetCode(status), TF_INVALID_ARGUMENT);
    TF_SetStatus(status, TF_OK, "");
#endif
    finish(ctx, status);
}

static void tensors_may_outlive_the_run(void **state)
{
    (void)state;
    TF_Operation *x = placeholder(graph, "x", TF_FLOAT, s), *doubled = binary(graph, "AddV2", "d", out(x), out(x), s);
    TF_Operation *y = unary(graph, "TestKeep", "y", out(doubled), s), *z = unary(graph, "Neg", "z", out(y), s);
    TF_Session *session = session_of(graph, s);
    TF_Tensor *fed = float_tensor((int64_t[]){2}, 1, (float[]){1, 2});
    TF_DeleteTensor(run(session, out(x), fed, out(z), s));
    assert_fine(s);
    close_session(session, s);
    TF_DeleteTensor(fed);
    assert_memory_equal(TF_TensorData(kept_input), ((float[]){2, 4}), 2 * sizeof(float));
    assert_memory_equal(TF_TensorData(kept_output), ((float[]){2, 4}), 2 * sizeof(float));
    TF_DeleteTensor(kept_input);
    TF_DeleteTensor(kept_output);
    kept_input = kept_output = NULL;
}

/* ---- attributes -----------------------------------------------------------------------------------------------------
 */

static void *create_attrs(TF_OpKernelConstruction *ctx)
{
    TF_Status *status = TF_NewStatus();
    int32_t i32 = 0, sizes[2], shape_sizes[2], ints[4] = {0}, many[2];
    int64_t i64 = 0;
    float f = 0, floats[2] = {0};
    TF_Bool flag = false;
    TF_DataType type = 0, types[2] = {0};
    char text[16] = "", storage[16], *words[2] = {0};
    size_t lengths[2] = {0};
    TF_Tensor *tensor = NULL;
    int codes[6];
    TF_OpKernelConstruction_GetAttrInt32(ctx, "i", &i32, status);
    TF_OpKernelConstruction_GetAttrInt64(ctx, "i", &i64, status);
    TF_OpKernelConstruction_GetAttrFloat(ctx, "f", &f, status);
    TF_OpKernelConstruction_GetAttrBool(ctx, "b", &flag, status);
    TF_OpKernelConstruction_GetAttrType(ctx, "t", &type, status);
    TF_OpKernelConstruction_GetAttrSize(ctx, "s", &sizes[0], &sizes[1], status);
    TF_OpKernelConstruction_GetAttrString(ctx, "s", text, sizeof text, status);
    TF_OpKernelConstruction_GetAttrSize(ctx, "shape", &shape_sizes[0], &shape_sizes[1], status);
    TF_OpKernelConstruction_GetAttrInt32List(ctx, "ints", ints, 4, status);
    TF_OpKernelConstruction_GetAttrTypeList(ctx, "types", types, 2, status);
    TF_OpKernelConstruction_GetAttrSize(ctx, "words", &many[0], &many[1], status);
    TF_OpKernelConstruction_GetAttrStringList(ctx, "words", words, lengths, 2, storage, sizeof storage, status);
    TF_OpKernelConstruction_GetAttrFloatList(ctx, "floats", floats, 2, status);
    TF_OpKernelConstruction_GetAttrTensor(ctx, "tensor", &tensor, status);
    codes[0] = TF_GetCode(status);
    TF_OpKernelConstruction_GetAttrInt32(ctx, "none", &i32, status);
    codes[1] = TF_GetCode(status);
    TF_OpKernelConstruction_GetAttrFloat(ctx, "i", &f, status);
    codes[2] = TF_GetCode(status);
    TF_OpKernelConstruction_GetAttrSize(ctx, "none", &many[0], &many[0], status);
    codes[3] = TF_GetCode(status);
    codes[4] = TF_OpKernelConstruction_HasAttr(ctx, "shape", status);
    codes[5] = TF_OpKernelConstruction_HasAttr(ctx, "none", status);
    snprintf(said, sizeof said, "%d %d %g %d %d %d,%d %.*s %d,%d %d,%d %d,%d %d %.*s.%.*s %g,%g %d %d %d %d %d %d %d",
             (int)i32, (int)i64, f, flag, type, (int)sizes[0], (int)sizes[1], (int)sizes[1], text, (int)shape_sizes[0],
             (int)shape_sizes[1], (int)ints[0], (int)ints[1], types[0], types[1], (int)many[1], (int)lengths[0],
             words[0], (int)lengths[1], words[1], floats[0], floats[1], *(int32_t *)TF_TensorData(tensor), codes[0],
             codes[1], codes[2], codes[3], codes[4], codes[5]);
    TF_DeleteTensor(tensor);
    TF_DeleteStatus(status);
    return NULL;
}

static void compute_nothing(void *kernel, TF_OpKernelContext *ctx)
{
    TF_Status *status = TF_NewStatus();
    TF_Tensor *y = TF_AllocateOutput(ctx, 0, TF_FLOAT, NULL, 0, sizeof(float), status);
    *(float *)TF_TensorData(y) = kernel ? 1 : 0;
    TF_DeleteTensor(y);
    finish(ctx, status);
}

static void attributes_are_what_they_are_told_or_by_default(void **state)
{
    (void)state;
    TF_OperationDescription *d = TF_NewOperation(graph, "TestAttrs", "attrs");
    TF_Operation *made = TF_FinishOperation(d, s);
    assert_fine(s);
    TF_Session *session = session_of(graph, s);
    TF_DeleteTensor(run(session, (TF_Output){0}, NULL, out(made), s));
    assert_fine(s);
    assert_string_equal(said, "3 3 1.5 1 9 -1,3 a;b -1,2 4,5 3,7 5 one.to 0.5,2 42 0 5 3 3 1 0");
    close_session(session, s);

    d = TF_NewOperation(graph, "TestAttrs", "low");
    TF_SetAttrInt(d, "i", 1);
    assert_null(TF_FinishOperation(d, s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "at least minimum 2");
    d = TF_NewOperation(graph, "TestAttrs", "type");
    TF_SetAttrType(d, "t", TF_FLOAT);
    assert_null(TF_FinishOperation(d, s));
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
}

/* ---- at once, in files and functions
 * --------------------------------------------------------------------------------- */

static void eager_operations_of_it_are_executed(void **state)
{
    (void)state;
    created = deleted = 0;
    TFE_ContextOptions *options = TFE_NewContextOptions();
    TFE_Context *context = TFE_NewContext(options, s);
    TFE_DeleteContextOptions(options);
    for (int i = 0; i < 3; i++) {
        TF_Tensor *value = float_tensor((int64_t[]){1}, 1, &(float){(float)i});
        TFE_TensorHandle *x = TFE_NewTensorHandle(value, s), *y = NULL;
        TFE_Op *op = TFE_NewOp(context, "TestAffine", s);
        assert_fine(s);
        int count = 1;
        TFE_OpAddInput(op, x, s);
        TFE_OpSetAttrInt(op, "bias", 5);
        TFE_Execute(op, &y, &count, s);
        assert_fine(s);
        TF_Tensor *result = TFE_TensorHandleResolve(y, s);
        assert_float_equal(*(float *)TF_TensorData(result), 2 * i + 5, 0);
        TF_DeleteTensor(result);
        TF_DeleteTensor(value);
        TFE_DeleteOp(op);
        TFE_DeleteTensorHandle(x);
        TFE_DeleteTensorHandle(y);
    }
    TFE_DeleteContext(context);
    assert_int_equal(created, 1);
    assert_int_equal(deleted, 1);
}

static void graphs_that_have_it_are_imported(void **state)
{
    (void)state;
    TF_Operation *x = placeholder(graph, "x", TF_FLOAT, s);
    affine_of("y", out(x), 3);
    TF_Buffer *def = TF_NewBuffer();
    TF_GraphToGraphDef(graph, def, s);
    assert_fine(s);
    TF_Graph *other = TF_NewGraph();
    TF_ImportGraphDefOptions *options = TF_NewImportGraphDefOptions();
    TF_GraphImportGraphDef(other, def, options, s);
    assert_fine(s);
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(def);
    TF_Session *session = session_of(other, s);
    TF_Tensor *fed = float_tensor(NULL, 0, &(float){4});
    TF_Tensor *result =
        run(session, out(TF_GraphOperationByName(other, "x")), fed, out(TF_GraphOperationByName(other, "y")), s);
    assert_fine(s);
    assert_float_equal(*(float *)TF_TensorData(result), 11, 0);
    TF_DeleteTensor(fed);
    TF_DeleteTensor(result);
    close_session(session, s);
    TF_DeleteGraph(other);
}

/* ---- kernels that compute in threads of their own
 * -------------------------------------------------------------------- */

typedef struct later {
    TF_OpKernelContext *ctx;
    TF_AsyncOpKernelDoneCallback *done;
} later;

static void *compute_later(void *arg)
{
    later *l = arg;
    compute_keep(NULL, l->ctx);
    TF_RunAsyncOpKernelDoneCallback(l->done);
    free(l);
    return NULL;
}

static void begin_later(void *kernel, TF_OpKernelContext *ctx, TF_AsyncOpKernelDoneCallback *done)
{
    pthread_t thread;
    later *l = malloc(sizeof *l);
    (void)kernel;
    *l = (later){ctx, done};
    pthread_create(&thread, NULL, compute_later, l);
    pthread_detach(thread);
}

#ifndef ON_TENSORFLOW /* where the callback is gone when the function returns */
static void asynchronous_kernels_are_waited_for(void **state)
{
    (void)state;
    TF_Operation *x = placeholder(graph, "x", TF_FLOAT, s), *y = unary(graph, "TestLater", "y", out(x), s);
    TF_Session *session = session_of(graph, s);
    TF_Tensor *fed = float_tensor((int64_t[]){2}, 1, (float[]){1, 2}), *result = run(session, out(x), fed, out(y), s);
    assert_fine(s);
    assert_memory_equal(TF_TensorData(result), ((float[]){1, 2}), 2 * sizeof(float));
    TF_DeleteTensor(fed);
    TF_DeleteTensor(result);
    close_session(session, s);
    TF_DeleteTensor(kept_input);
    TF_DeleteTensor(kept_output);
    kept_input = kept_output = NULL;
}

#endif

/* ---- threads
 * ---------------------------------------------------------------------------------------------------------- */

typedef struct runner {
    TF_Session *session;
    TF_Output x, y;
    bool wrong;
} runner;

static void *run_often(void *arg)
{
    runner *r = arg;
    TF_Status *status = TF_NewStatus();
    for (int i = 0; i < 20; i++) {
        TF_Tensor *fed = float_tensor((int64_t[]){3}, 1, (float[]){(float)i, 1, 2});
        TF_Tensor *result = run(r->session, r->x, fed, r->y, status);
        r->wrong = r->wrong || !result || *(float *)TF_TensorData(result) != 2 * (float)i + 1;
        TF_DeleteTensor(fed);
        TF_DeleteTensor(result);
    }
    TF_DeleteStatus(status);
    return NULL;
}

static void runs_of_several_threads_have_one_kernel(void **state)
{
    (void)state;
    TF_Operation *x = placeholder(graph, "x", TF_FLOAT, s), *y = affine_of("y", out(x), 1);
    runner runners[4];
    pthread_t threads[4];
    created = deleted = 0;
    TF_Session *session = session_of(graph, s);
    for (int i = 0; i < 4; i++) {
        runners[i] = (runner){session, out(x), out(y), false};
        pthread_create(&threads[i], NULL, run_often, &runners[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_false(runners[i].wrong);
    }
    close_session(session, s);
#ifndef ON_TENSORFLOW /* where threads that begin together have one each */
    assert_int_equal(created, 1);
#endif
    assert_int_equal(deleted, created);
}

/* ---- what is registered
 * ------------------------------------------------------------------------------------------------ */

/* Whether bytes hold a text somewhere. */
static bool holds(const TF_Buffer *buffer, const char *text)
{
    return memmem(buffer->data, buffer->length, text, strlen(text));
}

static void what_is_registered_is_listed(void **state)
{
    (void)state;
    TF_Buffer *def = TF_NewBuffer();
    TF_GraphGetOpDef(graph, "TestAffine", def, s);
    assert_fine(s);
    assert_true(holds(def, "scale"));
    TF_DeleteBuffer(def);
    TF_Buffer *kernels = TF_GetRegisteredKernelsForOp("TestAffine", s);
    assert_true(holds(kernels, "TestAffine") && holds(kernels, "CPU"));
    TF_DeleteBuffer(kernels);
    kernels = TF_GetAllRegisteredKernels(s);
    assert_true(holds(kernels, "TestAffine"));
    TF_DeleteBuffer(kernels);
    TF_Buffer *ops = TF_GetAllOpList();
    assert_true(holds(ops, "TestAffine") && holds(ops, "MatMul"));
    TF_DeleteBuffer(ops);
}

#ifndef ON_TENSORFLOW /* whose script builds no libraries */
static void libraries_register_ops_when_they_are_loaded(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        TF_Library *library = TF_LoadLibrary(PLUGIN, s);
        assert_fine(s);
        TF_Buffer list = TF_GetOpList(library);
        assert_true(holds(&list, "PluginAnswer") && !holds(&list, "TestAffine"));
        TF_DeleteLibraryHandle(library);
    }
    TF_OperationDescription *d = TF_NewOperation(graph, "PluginSecond", "early");
    assert_null(TF_FinishOperation(d, s));
    assert_int_not_equal(TF_GetCode(s), TF_OK);
    TF_Library *library = TF_LoadPluggableDeviceLibrary(PLUGIN, s);
    assert_fine(s);
    TF_DeletePluggableDeviceLibraryHandle(library);
    TF_Operation *a = TF_FinishOperation(TF_NewOperation(graph, "PluginAnswer", "a"), s);
    TF_Operation *b = TF_FinishOperation(TF_NewOperation(graph, "PluginSecond", "b"), s);
    assert_fine(s);
    TF_Operation *sum = binary(graph, "AddV2", "sum", out(a), out(b), s);
    TF_Session *session = session_of(graph, s);
    TF_Tensor *result = run(session, (TF_Output){0}, NULL, out(sum), s);
    assert_fine(s);
    assert_float_equal(*(float *)TF_TensorData(result), 84, 0);
    TF_DeleteTensor(result);
    close_session(session, s);
    assert_null(TF_LoadPluggableDeviceLibrary("libm.so.6", s));
    assert_wrong(s, TF_UNIMPLEMENTED, "it has no function TF_InitKernel");
}
#endif

#ifndef ON_TENSORFLOW /* which ends the program */
static void wrong_definitions_are_refused(void **state)
{
    static const struct {
        texts attrs, inputs;
        TF_Code code;
        const char *message;
    } cases[] = {
        {{{"T"}}, {{NULL}}, TF_INVALID_ARGUMENT, "op 'Wrong': expected ':' behind the name"},
        {{{"T: nothing"}}, {{NULL}}, TF_INVALID_ARGUMENT, "expected the kind of an attribute before"},
        {{{"T: {float, 'a'}"}}, {{NULL}}, TF_INVALID_ARGUMENT, "types alone or texts alone"},
        {{{"T: {float"}}, {{NULL}}, TF_INVALID_ARGUMENT, "expected '}'"},
        {{{"n: int >= x"}}, {{NULL}}, TF_INVALID_ARGUMENT, "a number behind '>='"},
        {{{"n: int = 'x'"}}, {{NULL}}, TF_INVALID_ARGUMENT, "expected a default of that kind"},
        {{{"n: int ="}}, {{NULL}}, TF_INVALID_ARGUMENT, "expected a default"},
        {{{"n: list(int) = 3"}}, {{NULL}}, TF_INVALID_ARGUMENT, "expected '[' of a list"},
        {{{"n: int 3"}}, {{NULL}}, TF_INVALID_ARGUMENT, "expected the end"},
        {{{"n: int", "n: int"}}, {{NULL}}, TF_INVALID_ARGUMENT, "or that of two"},
        {{{"f: func"}}, {{NULL}}, TF_UNIMPLEMENTED, "attributes that are functions"},
        {{{"f: list(bool)"}}, {{NULL}}, TF_UNIMPLEMENTED, "lists of bools"},
        {{{NULL}}, {{"x: T"}}, TF_INVALID_ARGUMENT, "expected a type, or an attribute that is one"},
        {{{NULL}}, {{"x: N*float"}}, TF_INVALID_ARGUMENT, "'N' of 'x' is no attribute that is a number"},
        {{{"T: int"}}, {{"x: T"}}, TF_INVALID_ARGUMENT, "'T' of 'x' is no attribute that is a type"},
        {{{NULL}}, {{"x: Ref(float)"}}, TF_UNIMPLEMENTED, "'x' is a reference"},
        {{{NULL}}, {{"x: resource"}}, TF_UNIMPLEMENTED, "'x' is a resource"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        register_op("Wrong", cases[i].attrs, cases[i].inputs, (texts){{NULL}}, NULL);
        assert_wrong(s, cases[i].code, cases[i].message);
    }
    register_op("no name", (texts){{NULL}}, (texts){{NULL}}, (texts){{NULL}}, NULL);
    assert_wrong(s, TF_INVALID_ARGUMENT, "'no name' is no name of an op");
    register_op("TestAffine", (texts){{NULL}}, (texts){{NULL}}, (texts){{NULL}}, NULL);
    assert_wrong(s, TF_ALREADY_EXISTS, "TestAffine");
    register_op("MatMul", (texts){{NULL}}, (texts){{NULL}}, (texts){{NULL}}, NULL);
    assert_wrong(s, TF_ALREADY_EXISTS, "MatMul");
    TF_RegisterKernelBuilder("mine", TF_NewKernelBuilder("MatMul", "CPU", NULL, compute_nothing, NULL), s);
    assert_wrong(s, TF_UNIMPLEMENTED, "'MatMul' is an op of Tower's");
}
#endif

static void builders_that_are_not_registered_are_deleted(void **state)
{
    (void)state;
    TF_OpDefinitionBuilder *op = TF_NewOpDefinitionBuilder("Never");
    TF_OpDefinitionBuilderAddInput(op, "x: float");
    TF_OpDefinitionBuilderSetIsStateful(op, true);
    TF_DeleteOpDefinitionBuilder(op);
    TF_KernelBuilder *kernel = TF_NewKernelBuilder("Never", "CPU", NULL, compute_nothing, NULL);
    TF_KernelBuilder_HostMemory(kernel, "x");
    TF_KernelBuilder_Priority(kernel, 3);
    TF_KernelBuilder_Label(kernel, "other");
    TF_KernelBuilder_TypeConstraint(kernel, "T", TF_FLOAT, s);
    TF_DeleteKernelBuilder(kernel);
}

static int register_all(void **state)
{
    begin(state);
    register_op("TestAffine", (texts){{"T: {half, float, double}", "scale: float = 2", "bias: int"}}, (texts){{"x: T"}},
                (texts){{"y: T"}}, same_shape);
    assert_fine(s);
    register_kernel_for("TestAffine", TF_FLOAT, create_affine, compute_affine, delete_affine);
    register_kernel_for("TestAffine", TF_DOUBLE, create_affine, compute_affine, delete_affine);
    register_op("TestPair", (texts){{"T: numbertype"}}, (texts){{"x: T"}}, (texts){{"pair: T", "count: int32"}},
                pair_shape);
    assert_fine(s);
    register_op("TestRepeat", (texts){{NULL}}, (texts){{"x: float"}}, (texts){{"y: float"}}, unknown_shape);
    assert_fine(s);
    register_kernel_for("TestRepeat", 0, NULL, compute_repeat, NULL);
    register_op("TestJoin", (texts){{"N: int >= 1", "T: type"}}, (texts){{"first: T", "words: N * string"}},
                (texts){{"joined: string", "size: int64"}}, unknown_shape);
    assert_fine(s);
    register_kernel_for("TestJoin", 0, NULL, compute_join, NULL);
    register_op("TestKeep", (texts){{NULL}}, (texts){{"x: float"}}, (texts){{"y: float"}}, same_shape);
    register_kernel_for("TestKeep", 0, NULL, compute_keep, NULL);
    register_op("TestLater", (texts){{NULL}}, (texts){{"x: float"}}, (texts){{"y: float"}}, same_shape);
    TF_RegisterKernelBuilder("TestLater", TF_NewAsyncKernelBuilder("TestLater", "CPU", NULL, begin_later, NULL), s);
    assert_fine(s);
    TF_OpDefinitionBuilder *b = TF_NewOpDefinitionBuilder("TestAttrs");
    static const char *const attrs[] = {
        "i: int >= 2 = 3",
        "f: float = 1.5",
        "b: bool = true",
        "t: {int32, int64} = DT_INT64",
        "s: string = 'a;b'",
        "shape: shape = { dim { size: 2 } dim { size: -1 } }",
        "ints: list(int) = [4, 5]",
        "types: list({int32, string}) = [DT_INT32, DT_STRING]",
        "words: list(string) = ['one', \"to\"]",
        "floats: list(float) = [0.5, 2]",
        "none_of_it: list(int) = []",
        "mode: {'SAME', 'VALID'} = 'SAME'",
        "tensor: tensor = { dtype: DT_INT32 tensor_shape { } int_val: 42 }",
    };
    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++)
        TF_OpDefinitionBuilderAddAttr(b, attrs[i]);
    TF_OpDefinitionBuilderAddOutput(b, "y: float");
    TF_OpDefinitionBuilderSetShapeInferenceFunction(b, unknown_shape);
    TF_OpDefinitionBuilderSetIsStateful(b, true);
    TF_RegisterOpDefinition(b, s);
    assert_fine(s);
    register_kernel_for("TestAttrs", 0, create_attrs, compute_nothing, NULL);
    return end(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kernels_are_made_once_for_a_session, begin, end),
        cmocka_unit_test_setup_teardown(kernels_are_chosen_by_type, begin, end),
        cmocka_unit_test_setup_teardown(a_kernel_that_cannot_be_made_fails_the_run, begin, end),
        cmocka_unit_test_setup_teardown(shape_functions_say_what_is_known, begin, end),
        cmocka_unit_test_setup_teardown(outputs_may_have_any_shape, begin, end),
        cmocka_unit_test_setup_teardown(texts_and_lists_are_taken_and_given, begin, end),
        cmocka_unit_test_setup_teardown(tensors_may_outlive_the_run, begin, end),
        cmocka_unit_test_setup_teardown(attributes_are_what_they_are_told_or_by_default, begin, end),
        cmocka_unit_test_setup_teardown(eager_operations_of_it_are_executed, begin, end),
        cmocka_unit_test_setup_teardown(graphs_that_have_it_are_imported, begin, end),
        cmocka_unit_test_setup_teardown(runs_of_several_threads_have_one_kernel, begin, end),
        cmocka_unit_test_setup_teardown(what_is_registered_is_listed, begin, end),
#ifndef ON_TENSORFLOW
        cmocka_unit_test_setup_teardown(asynchronous_kernels_are_waited_for, begin, end),
        cmocka_unit_test_setup_teardown(libraries_register_ops_when_they_are_loaded, begin, end),
        cmocka_unit_test_setup_teardown(wrong_definitions_are_refused, begin, end),
#endif
        cmocka_unit_test_setup_teardown(builders_that_are_not_registered_are_deleted, begin, end),
    };
    return cmocka_run_group_tests(tests, register_all, NULL);
}

/* Operations that are executed at once: handles, attributes, lists, functions, variables, errors. */
#include "client.h"

#include <pthread.h>
#include <tensorflow/c/c_api_experimental.h>
#include <tensorflow/c/eager/c_api.h>
#include <tensorflow/c/eager/c_api_experimental.h>

static TF_Status *s;
static TFE_Context *context;

static int begin(void **state)
{
    (void)state;
    s = TF_NewStatus();
    TFE_ContextOptions *options = TFE_NewContextOptions();
    context = TFE_NewContext(options, s);
    assert_fine(s);
    TFE_DeleteContextOptions(options);
    return 0;
}

static int end(void **state)
{
    (void)state;
    TFE_DeleteContext(context);
    TF_DeleteStatus(s);
    return 0;
}

/* ---- handles ---------------------------------------------------------------------------------------------------- */

static TFE_TensorHandle *handle_of(TF_Tensor *tensor)
{
    TFE_TensorHandle *handle = TFE_NewTensorHandle(tensor, s);
    assert_fine(s);
    TF_DeleteTensor(tensor);
    return handle;
}

static TFE_TensorHandle *matrix(int64_t rows, int64_t columns, const float *values)
{
    return handle_of(float_tensor((int64_t[]){rows, columns}, 2, values));
}

static TFE_TensorHandle *vector(int64_t count, const float *values)
{
    return handle_of(float_tensor(&count, 1, values));
}

static TFE_TensorHandle *ints(int64_t count, const int32_t *values)
{
    TF_Tensor *tensor = TF_AllocateTensor(TF_INT32, &count, 1, (size_t)count * sizeof *values);
    memcpy(TF_TensorData(tensor), values, (size_t)count * sizeof *values);
    return handle_of(tensor);
}

static void keep(void *data, size_t size, void *user)
{
    (void)data;
    (void)size;
    (void)user;
}

/* Deletes the handle. */
static void assert_values(TFE_TensorHandle *handle, int count, const float *expected)
{
    if (!handle)
        fail_msg("%d: %s", TF_GetCode(s), TF_Message(s));
    TF_Tensor *tensor = TFE_TensorHandleResolve(handle, s);
    assert_fine(s);
    assert_int_equal(TF_TensorType(tensor), TF_FLOAT);
    assert_int_equal(TF_TensorElementCount(tensor), count);
    for (int i = 0; i < count; i++)
        assert_float_equal(((float *)TF_TensorData(tensor))[i], expected[i], 1e-6);
    TF_DeleteTensor(tensor);
    TFE_DeleteTensorHandle(handle);
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

static TFE_Op *new_op(const char *name)
{
    TFE_Op *op = TFE_NewOp(context, name, s);
    assert_fine(s);
    return op;
}

/* Takes the handle over. */
static void give(TFE_Op *op, TFE_TensorHandle *input)
{
    TFE_OpAddInput(op, input, s);
    assert_fine(s);
    TFE_DeleteTensorHandle(input);
}

/* Deletes the operation; one without outputs gives NULL. */
static TFE_TensorHandle *execute(TFE_Op *op)
{
    TFE_TensorHandle *result = NULL;
    int count = 1;
    TFE_Execute(op, &result, &count, s);
    TFE_DeleteOp(op);
    return result;
}

static TFE_TensorHandle *product(TFE_TensorHandle *a, TFE_TensorHandle *b)
{
    TFE_Op *op = new_op("MatMul");
    give(op, a);
    give(op, b);
    return execute(op);
}

static void handle_of_a_tensor_shares_it_and_is_copied_to_devices(void **state)
{
    (void)state;
    TF_DeviceList *devices = TFE_ContextListDevices(context, s);
    assert_fine(s);
    assert_true(TF_DeviceListCount(devices) >= 1);
    const char *cpu = TF_DeviceListName(devices, 0, s);
    TF_Tensor *tensor = float_tensor((int64_t[]){3}, 1, (float[]){1, 2, 3});
    TFE_TensorHandle *handle = TFE_NewTensorHandle(tensor, s);
    assert_fine(s);
    assert_int_equal(TFE_TensorHandleDataType(handle), TF_FLOAT);
    assert_int_equal(TFE_TensorHandleNumDims(handle, s), 1);
    assert_int_equal(TFE_TensorHandleDim(handle, 0, s), 3);
    assert_int_equal(TFE_TensorHandleNumElements(handle, s), 3);
    assert_string_equal(TFE_TensorHandleDeviceName(handle, s), cpu);
    assert_string_equal(TFE_TensorHandleBackingDeviceName(handle, s), cpu);
    TFE_TensorDebugInfo *info = TFE_TensorHandleTensorDebugInfo(handle, s);
    assert_fine(s);
    assert_int_equal(TFE_TensorDebugInfoOnDeviceNumDims(info), 1);
    assert_int_equal(TFE_TensorDebugInfoOnDeviceDim(info, 0), 3);
    TFE_DeleteTensorDebugInfo(info);
    TFE_TensorHandle *copy = TFE_TensorHandleCopyToDevice(handle, context, cpu, s);
    assert_fine(s);
    TFE_DeleteTensorHandle(handle);
    TF_DeleteTensor(tensor);
    assert_null(TFE_TensorHandleCopyToDevice(copy, context, "/device:TPU:7", s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "unknown device");
    assert_values(copy, 3, (float[]){1, 2, 3});
    TF_DeleteDeviceList(devices);
}

static void operations_are_executed_on_tensors_of_any_shape(void **state)
{
    (void)state;
    static const float two[] = {1, 2, 3, 4}, three[] = {1, 0, 0, 0, 1, 0, 0, 0, 2};
    for (int round = 0; round < 2; round++) {
        assert_values(product(matrix(2, 2, two), matrix(2, 2, two)), 4, (float[]){7, 10, 15, 22});
        assert_values(product(matrix(3, 3, three), matrix(3, 3, three)), 9, (float[]){1, 0, 0, 0, 1, 0, 0, 0, 4});
    }
    product(matrix(2, 2, two), matrix(3, 3, three));
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
    assert_values(product(matrix(1, 2, two), matrix(2, 1, two)), 1, (float[]){5});
}

static void operation_holds_its_inputs_and_is_executed_again(void **state)
{
    (void)state;
    TFE_Op *op = new_op("MatMul");
    TFE_TensorHandle *a = matrix(2, 2, (float[]){1, 2, 3, 4}), *results[2] = {NULL, NULL};
    assert_string_equal(TFE_OpGetName(op, s), "MatMul");
    assert_ptr_equal(TFE_OpGetContext(op, s), context);
    assert_string_equal(TFE_OpGetDevice(op, s), "");
    TFE_OpSetAttrBool(op, "transpose_b", 1);
    TFE_OpAddInput(op, a, s);
    TFE_OpAddInput(op, a, s);
    assert_int_equal(TFE_OpGetFlatInputCount(op, s), 2);
    assert_ptr_equal(TFE_OpGetFlatInput(op, 1, s), a);
    TFE_DeleteTensorHandle(a);
    for (int i = 0; i < 2; i++) {
        int count = 2;
        TFE_Execute(op, &results[i], &count, s);
        assert_fine(s);
        assert_int_equal(count, 1);
        assert_values(results[i], 4, (float[]){5, 11, 11, 25});
    }
    int none = 0;
    TFE_Execute(op, results, &none, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Expecting 1 outputs, but *num_retvals is 0");
    TFE_OpReset(op, "Neg", "", s);
    assert_fine(s);
    give(op, vector(2, (float[]){1, -2}));
    assert_values(execute(op), 2, (float[]){-1, 2});
}

static void what_is_passed_on_is_not_copied(void **state)
{
    (void)state;
    TF_Tensor *tensor = float_tensor((int64_t[]){2}, 1, (float[]){3, 4});
    const void *values = TF_TensorData(tensor);
    TFE_Op *op = new_op("Identity");
    give(op, handle_of(tensor));
    TFE_TensorHandle *passed = execute(op);
    assert_fine(s);
    assert_ptr_equal(TFE_TensorHandleDevicePointer(passed, s), values);
    assert_values(passed, 2, (float[]){3, 4});
}

static void shapes_and_axes_may_be_values(void **state)
{
    (void)state;
    TFE_Op *op = new_op("Reshape");
    give(op, vector(6, (float[]){1, 2, 3, 4, 5, 6}));
    give(op, ints(2, (int32_t[]){3, 2}));
    TFE_TensorHandle *shaped = execute(op);
    assert_fine(s);
    assert_int_equal(TFE_TensorHandleNumDims(shaped, s), 2);
    assert_int_equal(TFE_TensorHandleDim(shaped, 0, s), 3);
    op = new_op("Sum");
    give(op, shaped);
    give(op, ints(1, (int32_t[]){0}));
    assert_values(execute(op), 2, (float[]){9, 12});
    op = new_op("Sum"); /* over no axes, of which there is no memory either */
    give(op, vector(2, (float[]){1, 2}));
    give(op, handle_of(TF_NewTensor(TF_INT32, (int64_t[]){0}, 1, NULL, 0, keep, NULL)));
    assert_values(execute(op), 2, (float[]){1, 2});
    op = new_op("Fill");
    give(op, ints(1, (int32_t[]){4}));
    give(op, handle_of(float_tensor(NULL, 0, (float[]){7})));
    assert_values(execute(op), 4, (float[]){7, 7, 7, 7});
}

static void lists_say_how_long_they_are(void **state)
{
    (void)state;
    TFE_TensorHandle *parts[] = {vector(2, (float[]){1, 2}), vector(2, (float[]){3, 4}), vector(2, (float[]){5, 6})};
    TFE_Op *op = new_op("AddN");
    assert_int_equal(TFE_OpGetInputLength(op, "inputs", s), -1);
    assert_int_equal(TF_GetCode(s), TF_NOT_FOUND);
    TFE_OpAddInputList(op, parts, 3, s);
    assert_fine(s);
    assert_int_equal(TFE_OpGetInputLength(op, "inputs", s), 3);
    assert_fine(s);
    assert_int_equal(TFE_OpGetOutputLength(op, "sum", s), 1);
    assert_fine(s);
    assert_int_equal(TFE_OpGetInputLength(op, "nothing", s), -1);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Input 'nothing' not found");
    assert_values(execute(op), 2, (float[]){9, 12});
    op = new_op("ConcatV2");
    TFE_OpAddInputList(op, parts, 2, s);
    give(op, handle_of(int_tensor(0)));
    assert_values(execute(op), 4, (float[]){1, 2, 3, 4});
    op = new_op("IdentityN");
    TFE_OpAddInputList(op, parts, 3, s);
    assert_int_equal(TFE_OpGetInputLength(op, "input", s), 3);
    assert_int_equal(TFE_OpGetOutputLength(op, "output", s), 3);
    TFE_TensorHandle *results[4] = {NULL};
    int count = 4;
    TFE_Execute(op, results, &count, s);
    assert_fine(s);
    assert_int_equal(count, 3);
    TFE_DeleteOp(op);
    for (int i = 0; i < 3; i++) {
        assert_values(results[i], 2, (float[]){(float)(2 * i + 1), (float)(2 * i + 2)});
        TFE_DeleteTensorHandle(parts[i]);
    }
    op = new_op("Split");
    give(op, handle_of(int_tensor(0)));
    give(op, vector(4, (float[]){1, 2, 3, 4}));
    TFE_OpSetAttrInt(op, "num_split", 2);
    assert_int_equal(TFE_OpGetOutputLength(op, "output", s), 2);
    count = 1;
    TFE_Execute(op, results, &count, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Expecting 2 outputs, but *num_retvals is 1");
    count = 2;
    TFE_Execute(op, results, &count, s);
    assert_fine(s);
    TFE_DeleteOp(op);
    assert_values(results[0], 2, (float[]){1, 2});
    assert_values(results[1], 2, (float[]){3, 4});
}

static void attributes_have_their_types(void **state)
{
    (void)state;
    unsigned char is_list = 1;
    TFE_Op *op = new_op("Conv2D");
    assert_int_equal(TFE_OpGetAttrType(op, "T", &is_list, s), TF_ATTR_TYPE);
    assert_fine(s);
    assert_int_equal(is_list, 0);
    assert_int_equal(TFE_OpGetAttrType(op, "strides", &is_list, s), TF_ATTR_INT);
    assert_int_equal(is_list, 1);
    assert_int_equal(TFE_OpNameGetAttrType(context, "Conv2D", "padding", &is_list, s), TF_ATTR_STRING);
    assert_int_equal(is_list, 0);
    TFE_OpGetAttrType(op, "nothing", &is_list, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Attribute 'nothing' does not exist for this operation");
    TFE_OpSetAttrIntList(op, "strides", (int64_t[]){1, 1, 1, 1}, 4);
    TFE_OpSetAttrString(op, "padding", "VALID", 5);
    TFE_OpSetAttrInt(op, "of_another_version", 3); /* nobody looks at it */
    give(op, handle_of(float_tensor((int64_t[]){1, 2, 2, 1}, 4, (float[]){1, 2, 3, 4})));
    give(op, handle_of(float_tensor((int64_t[]){2, 2, 1, 1}, 4, (float[]){1, 10, 100, 1000})));
    assert_values(execute(op), 1, (float[]){4321});
    op = new_op("Cast");
    TFE_OpSetAttrType(op, "DstT", TF_FLOAT);
    give(op, ints(2, (int32_t[]){3, -4}));
    assert_values(execute(op), 2, (float[]){3, -4});
    op = new_op("LeakyRelu");
    TFE_OpSetAttrFloat(op, "alpha", 0.5f);
    give(op, vector(2, (float[]){3, -4}));
    assert_values(execute(op), 2, (float[]){3, -2});
}

static void inputs_say_types_before_attributes_do(void **state)
{
    (void)state;
    TF_Tensor *three = TF_AllocateTensor(TF_INT64, (int64_t[]){1}, 1, sizeof(int64_t));
    *(int64_t *)TF_TensorData(three) = 3;
    TFE_Op *op = new_op("Fill");
    give(op, handle_of(three));
    give(op, handle_of(float_tensor(NULL, 0, (float[]){7})));
    TFE_OpSetAttrType(op, "index_type", TF_INT32);
    assert_values(execute(op), 3, (float[]){7, 7, 7});
    op = new_op("Fill");
    TFE_OpSetAttrType(op, "index_type", TF_INT64);
    give(op, ints(1, (int32_t[]){3}));
    give(op, handle_of(float_tensor(NULL, 0, (float[]){7})));
    execute(op);
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
    op = new_op("AddN");
    for (int i = 0; i < 3; i++)
        give(op, vector(1, (float[]){1}));
    TFE_OpSetAttrInt(op, "N", 3);
    TFE_OpSetAttrType(op, "T", TF_FLOAT);
    assert_values(execute(op), 1, (float[]){3});
}

static void constants_are_their_values(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        TF_Tensor *tensor = float_tensor((int64_t[]){2}, 1, (float[]){(float)i, 1});
        TFE_Op *op = new_op("Const");
        TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
        TFE_OpSetAttrTensor(op, "value", tensor, s);
        assert_fine(s);
        TF_DeleteTensor(tensor);
        assert_values(execute(op), 2, (float[]){(float)i, 1});
        assert_fine(s);
    }
    TFE_Op *op = new_op("Const");
    TF_Tensor *tensor = int_tensor(1);
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
    TFE_OpSetAttrTensor(op, "value", tensor, s);
    TF_DeleteTensor(tensor);
    assert_null(execute(op));
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
}

static TFE_TensorHandle *variable(const char *name)
{
    TFE_Op *op = new_op("VarHandleOp");
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
    TFE_OpSetAttrShape(op, "shape", (int64_t[]){2}, 1, s);
    assert_fine(s);
    TFE_OpSetAttrString(op, "shared_name", name, strlen(name));
    TFE_TensorHandle *handle = execute(op);
    assert_fine(s);
    assert_int_equal(TFE_TensorHandleDataType(handle), TF_RESOURCE);
    assert_int_equal(TFE_TensorHandleNumDims(handle, s), 0);
    return handle;
}

static void change(const char *name, TFE_TensorHandle *handle, float a, float b)
{
    TFE_Op *op = new_op(name);
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
    TFE_OpAddInput(op, handle, s);
    give(op, vector(2, (float[]){a, b}));
    assert_null(execute(op));
    assert_fine(s);
}

static TFE_TensorHandle *read(TFE_TensorHandle *handle)
{
    TFE_Op *op = new_op("ReadVariableOp");
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
    TFE_OpAddInput(op, handle, s);
    return execute(op);
}

static void variables_keep_values(void **state)
{
    (void)state;
    TFE_TensorHandle *a = variable("a"), *b = variable("b"), *again = variable("a");
    assert_null(read(a));
    assert_int_equal(TF_GetCode(s), TF_FAILED_PRECONDITION);
    change("AssignVariableOp", a, 1, 2);
    change("AssignVariableOp", b, 10, 20);
    TFE_TensorHandle *before = read(a);
    change("AssignAddVariableOp", a, 5, 5);
    assert_values(before, 2, (float[]){1, 2});
    assert_values(read(again), 2, (float[]){6, 7});
    assert_values(read(b), 2, (float[]){10, 20});
    TFE_DeleteTensorHandle(a);
    TFE_DeleteTensorHandle(b);
    change("AssignSubVariableOp", again, 1, 1);
    assert_values(read(again), 2, (float[]){5, 6});
    TFE_DeleteTensorHandle(again);
}

/* As bindings carry them that have nothing but tensors: the bytes mean what they did. */
static void resources_are_named_by_tensors(void **state)
{
    (void)state;
    TFE_TensorHandle *v = variable("v");
    change("AssignVariableOp", v, 1, 2);
    TF_Tensor *named = TFE_TensorHandleResolve(v, s);
    assert_fine(s);
    assert_int_equal(TF_TensorType(named), TF_RESOURCE);
    assert_int_equal(TF_NumDims(named), 0);
    TF_Tensor *copy = TF_AllocateTensor(TF_RESOURCE, NULL, 0, TF_TensorByteSize(named));
    memcpy(TF_TensorData(copy), TF_TensorData(named), TF_TensorByteSize(named));
    TFE_TensorHandle *same = handle_of(copy);
    assert_int_equal(TFE_TensorHandleDataType(same), TF_RESOURCE);
    assert_values(read(same), 2, (float[]){1, 2});
    change("AssignVariableOp", same, 3, 4);
    assert_values(read(v), 2, (float[]){3, 4});
    TFE_DeleteTensorHandle(same);
    TF_DeleteTensor(named);
    TFE_DeleteTensorHandle(v);
}

/* TensorFlow's name for what has none, which bindings of eager variables give. */
static void variables_without_a_name_are_each_their_own(void **state)
{
    (void)state;
    const char *anonymous = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";
    TFE_TensorHandle *a = variable(anonymous), *b = variable(anonymous);
    change("AssignVariableOp", a, 1, 2);
    change("AssignVariableOp", b, 3, 4);
    assert_values(read(a), 2, (float[]){1, 2});
    assert_values(read(b), 2, (float[]){3, 4});
    TFE_DeleteTensorHandle(a);
    TFE_DeleteTensorHandle(b);
}

/* twice(x) = x + x */
static TF_Function *twice_function(const char *op)
{
    TF_Graph *body = TF_NewGraph();
    TF_Output x = out(placeholder(body, "x", TF_FLOAT, s)), sum = out(binary(body, op, "sum", x, x, s));
    TF_Function *function = TF_GraphToFunction(body, "twice", 0, -1, NULL, 1, &x, 1, &sum, NULL, NULL, NULL, s);
    assert_fine(s);
    TF_DeleteGraph(body);
    return function;
}

static void functions_are_executed_until_they_are_removed(void **state)
{
    (void)state;
    TF_Function *function = twice_function("AddV2");
    assert_int_equal(TFE_ContextHasFunction(context, "twice"), 0);
    TFE_ContextAddFunction(context, function, s);
    assert_fine(s);
    TF_DeleteFunction(function);
    assert_int_equal(TFE_ContextHasFunction(context, "twice"), 1);
    TF_Function *found = TFE_ContextGetFunction(context, "twice", s);
    assert_fine(s);
    assert_string_equal(TF_FunctionName(found), "twice");
    TF_DeleteFunction(found);
    TF_Buffer *known = TF_NewBuffer();
    TFE_ContextGetFunctionDef(context, "twice", known, s);
    assert_fine(s);
    assert_true(known->length > 0);
    TF_DeleteBuffer(known);
    for (int i = 0; i < 2; i++) {
        TFE_Op *op = new_op("twice");
        give(op, vector(2, (float[]){3, 4}));
        assert_values(execute(op), 2, (float[]){6, 8});
    }
    TFE_Op *call = new_op("PartitionedCall"), *twice = new_op("twice");
    TFE_TensorHandle *x = vector(2, (float[]){1, 2});
    TFE_OpAddInputList(call, &x, 1, s);
    TFE_DeleteTensorHandle(x);
    TFE_OpSetAttrTypeList(call, "Tin", (TF_DataType[]){TF_FLOAT}, 1);
    TFE_OpSetAttrTypeList(call, "Tout", (TF_DataType[]){TF_FLOAT}, 1);
    TFE_OpSetAttrFunction(call, "f", twice);
    TFE_DeleteOp(twice);
    assert_values(execute(call), 2, (float[]){2, 4});
    TFE_ContextRemoveFunction(context, "twice", s);
    assert_fine(s);
    assert_int_equal(TFE_ContextHasFunction(context, "twice"), 0);
    assert_null(TFE_ContextGetFunction(context, "twice", s));
    assert_wrong(s, TF_NOT_FOUND, "twice");
    assert_null(TFE_NewOp(context, "twice", s));
    assert_wrong(s, TF_NOT_FOUND, "'twice' is neither a type of a primitive operation nor a name of a function");
    TF_Buffer *def = TF_NewBuffer();
    function = twice_function("Mul");
    TF_FunctionToFunctionDef(function, def, s);
    TF_DeleteFunction(function);
    TFE_ContextAddFunctionDef(context, def->data, def->length, s);
    assert_fine(s);
    TF_DeleteBuffer(def);
    TFE_Op *op = new_op("twice");
    give(op, vector(2, (float[]){3, 4}));
    assert_values(execute(op), 2, (float[]){9, 16});
}

static void texts_are_taken_and_given(void **state)
{
    (void)state;
    TF_Tensor *text = TF_AllocateTensor(TF_STRING, NULL, 0, sizeof(TF_TString));
    TF_StringInit(TF_TensorData(text));
    TF_StringCopy(TF_TensorData(text), "a,b", 3);
    TFE_Op *op = new_op("StringLength");
    give(op, handle_of(text));
    TFE_TensorHandle *length = execute(op);
    assert_fine(s);
    TF_Tensor *value = TFE_TensorHandleResolve(length, s);
    assert_int_equal(*(int32_t *)TF_TensorData(value), 3);
    TF_DeleteTensor(value);
    op = new_op("AsString");
    give(op, length);
    TFE_TensorHandle *written = execute(op);
    assert_fine(s);
    value = TFE_TensorHandleResolve(written, s);
    assert_int_equal(TF_TensorType(value), TF_STRING);
    assert_string_equal(TF_StringGetDataPointer(TF_TensorData(value)), "3");
    TF_DeleteTensor(value);
    TFE_DeleteTensorHandle(written);
}

static void no_handle_is_told(void **state)
{
    (void)state;
    assert_int_equal(TFE_TensorHandleNumDims(NULL, s), -1);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Invalid handle");
    TF_SetStatus(s, TF_OK, "");
    assert_int_equal(TFE_TensorHandleNumElements(NULL, s), -1);
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
    assert_int_equal(TFE_TensorHandleDim(NULL, 0, s), -1);
    assert_null(TFE_TensorHandleDeviceName(NULL, s));
    assert_null(TFE_TensorHandleBackingDeviceName(NULL, s));
    assert_null(TFE_TensorHandleCopySharingTensor(NULL, s));
    TF_SetStatus(s, TF_OK, "");
    assert_null(TFE_TensorHandleResolve(NULL, s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "Invalid handle");
    TFE_Op *op = new_op("Neg");
    give(op, matrix(1, 1, (float[]){1}));
    TFE_TensorHandle *result[1];
    int count = 0;
    TFE_Execute(op, result, &count, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Expecting 1 outputs, but *num_retvals is 0");
    assert_int_equal(count, 0);
    TFE_DeleteOp(op);
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    assert_null(TFE_NewOp(context, "NoSuchOp", s));
    assert_wrong(s, TF_NOT_FOUND, "'NoSuchOp' is neither a type of a primitive operation nor a name of a function");
    TFE_Op *op = new_op("PartitionedCall");
    TFE_OpSetAttrFunctionName(op, "f", "gone", 4);
    TFE_OpSetAttrTypeList(op, "Tin", NULL, 0);
    TFE_OpSetAttrTypeList(op, "Tout", (TF_DataType[]){TF_FLOAT}, 1);
    execute(op);
    assert_wrong(s, TF_NOT_FOUND, "function");
    op = new_op("MatMul");
    give(op, matrix(1, 1, (float[]){1}));
    execute(op);
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
    op = new_op("AddV2");
    give(op, matrix(1, 1, (float[]){1}));
    give(op, ints(1, (int32_t[]){1}));
    execute(op);
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
    op = new_op("Neg");
    give(op, matrix(1, 1, (float[]){1}));
    TFE_OpSetDevice(op, "/device:TPU:7", s);
    assert_fine(s);
    execute(op);
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
    op = new_op("Neg");
    TFE_OpSetDevice(op, "foo", s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Malformed device specification 'foo' in eager op: Name: Neg");
    assert_string_equal(TFE_OpGetDevice(op, s), "");
    give(op, matrix(1, 1, (float[]){1}));
    assert_values(execute(op), 1, (float[]){-1});
    op = new_op("Neg");
    TFE_OpSetDevice(op, "/job:localhost/replica:0/task:0/device:CPU:0", s);
    assert_string_equal(TFE_OpGetDevice(op, s), "/job:localhost/replica:0/task:0/device:CPU:0");
    give(op, matrix(1, 1, (float[]){1}));
    assert_values(execute(op), 1, (float[]){-1});
}

static void context_keeps_what_is_asked_of_it(void **state)
{
    (void)state;
    TF_Buffer *metadata = TF_NewBuffer();
    assert_int_equal(TFE_ContextGetDevicePlacementPolicy(context), TFE_DEVICE_PLACEMENT_SILENT);
    TFE_ContextSetThreadLocalDevicePlacementPolicy(context, TFE_DEVICE_PLACEMENT_EXPLICIT);
    assert_int_equal(TFE_ContextGetDevicePlacementPolicy(context), TFE_DEVICE_PLACEMENT_EXPLICIT);
    TFE_ContextEnableRunMetadata(context);
    TFE_ContextStartStep(context);
    assert_values(product(matrix(1, 1, (float[]){2}), matrix(1, 1, (float[]){3})), 1, (float[]){6});
    TFE_ContextEndStep(context);
    TFE_ContextExportRunMetadata(context, metadata, s);
    assert_fine(s);
    TF_DeleteBuffer(metadata);
    TFE_ContextDisableRunMetadata(context);
    TFE_ContextClearCaches(context);
    assert_values(product(matrix(1, 1, (float[]){2}), matrix(1, 1, (float[]){4})), 1, (float[]){8});
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

typedef struct squares {
    float first;
    bool right;
} squares;

static void *square(void *user)
{
    squares *q = user;
    TF_Status *status = TF_NewStatus();
    q->right = true;
    for (int i = 0; i < 50; i++) {
        int64_t count = i % 5 + 1;
        float values[5] = {q->first + (float)i};
        TF_Tensor *tensor = float_tensor(&count, 1, values), *value = NULL;
        TFE_TensorHandle *x = TFE_NewTensorHandle(tensor, status), *y = NULL;
        TFE_Op *op = TFE_NewOp(context, "Square", status);
        int room = 1;
        TFE_OpAddInput(op, x, status);
        TFE_Execute(op, &y, &room, status);
        if (y)
            value = TFE_TensorHandleResolve(y, status);
        q->right &= value && *(float *)TF_TensorData(value) == values[0] * values[0];
        TFE_DeleteOp(op);
        TFE_DeleteTensorHandle(x);
        TFE_DeleteTensorHandle(y);
        TF_DeleteTensor(tensor);
        TF_DeleteTensor(value);
    }
    TF_DeleteStatus(status);
    return NULL;
}

static void experimental_functions_do_what_one_process_needs(void **state)
{
    (void)state;
    float half = 0.5f;
    TFE_TensorHandle *x = TFE_NewTensorHandleFromScalar(TF_FLOAT, &half, sizeof half, s);
    assert_fine(s);
    assert_int_equal(TFE_TensorHandleNumDims(x, s), 0);
    assert_string_equal(TFE_TensorHandleDeviceType(x, s), "CPU");
    assert_int_equal(TFE_TensorHandleDeviceID(x, s), 0);
    assert_true(*(float *)TFE_TensorHandleDevicePointer(x, s) == half);
    assert_int_equal(TFE_TensorHandleDeviceMemorySize(x, s), sizeof half);
    TFE_TensorHandleGetStatus(x, s);
    assert_fine(s);
    TFE_DeleteTensorHandle(x);
    TF_Tensor *tensor = TFE_AllocateHostTensor(context, TF_FLOAT, (int64_t[]){2, 1}, 2, s);
    assert_fine(s);
    assert_int_equal(TF_TensorByteSize(tensor), 8);
    memcpy(TF_TensorData(tensor), ((float[]){1.75f, -2.5f}), 8);
    TFE_TensorHandle *handle = TFE_NewTensorHandleFromTensor(context, tensor, s);
    assert_fine(s);
    TF_DeleteTensor(tensor);
    TFE_Op *op = new_op("Cast");
    give(op, handle);
    TFE_OpSetAttrValueProto(op, "DstT", "\x30\x03", 2, s); /* type: DT_INT32 */
    assert_fine(s);
    TFE_TensorHandle *cast = execute(op);
    assert_int_equal(TFE_TensorHandleDataType(cast), TF_INT32);
    TFE_DeleteTensorHandle(cast);
    TFE_Op *told = new_op("Cast");
    TFE_OpSetAttrType(told, "DstT", TF_INT64);
    TF_Buffer *attrs = TF_NewBuffer();
    TFE_OpAttrsSerialize(TFE_OpGetAttrs(told), attrs, s);
    assert_fine(s);
    assert_memory_equal(attrs->data, "\x0a\x04"
                                     "Cast",
                        6); /* name: "Cast" */
    TF_DeleteBuffer(attrs);
    give(op = new_op("Cast"), vector(1, (float[]){1}));
    TFE_OpAddAttrs(op, TFE_OpGetAttrs(told));
    TFE_DeleteOp(told);
    cast = execute(op);
    assert_fine(s);
    assert_int_equal(TFE_TensorHandleDataType(cast), TF_INT64);
    TFE_DeleteTensorHandle(cast);
    op = new_op("Neg");
    TFE_OpSetAttrValueProto(op, "T", "\xff", 1, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Unparseable AttrValue");
    TFE_DeleteOp(op);
    TFE_Executor *executor = TFE_NewExecutor(true, true, 0), *own = TFE_ContextGetExecutorForThread(context);
    assert_true(TFE_ExecutorIsAsync(executor));
    assert_false(TFE_ExecutorIsAsync(own));
    TFE_ExecutorWaitForAllPendingNodes(own, s);
    assert_fine(s);
    TFE_DeleteExecutor(own);
    TFE_ContextSetExecutorForThread(context, executor);
    give(op = new_op("Neg"), vector(2, (float[]){1, 2}));
    assert_values(execute(op), 2, (float[]){-1, -2});
    TFE_ExecutorWaitForAllPendingNodes(executor, s);
    assert_fine(s);
    TFE_ExecutorClearError(executor);
    TFE_ContextAsyncWait(context, s);
    assert_fine(s);
    TFE_DeleteExecutor(executor);
    TFE_ContextSetLogDevicePlacement(context, 0, s);
    assert_fine(s);
    assert_false(TFE_IsCustomDevice(context, "/device:CPU:0"));
    assert_int_equal(TF_OpIsStateful("RandomUniform", s), 1);
    assert_int_equal(TF_OpIsStateful("Placeholder", s), 0);
    assert_int_equal(TF_OpIsStateful("NoOp", s), 0);
    assert_fine(s);
    assert_int_equal(TF_OpIsStateful("NoSuchOp", s), 0);
    assert_wrong(s, TF_NOT_FOUND, "Op type not registered 'NoSuchOp'");
    assert_string_equal(TF_GetNumberAttrForOpListInput("AddN", 0, s), "N");
    assert_fine(s);
    assert_null(TF_GetNumberAttrForOpListInput("AddN", 1, s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "1 out of range for AddN");
    assert_null(TF_GetNumberAttrForOpListInput("Neg", 0, s));
    assert_wrong(s, TF_NOT_FOUND, "Neg does not have number_attr() defined.");
}

typedef struct told {
    TFE_CancellationManager *manager;
    int calls;
} told;

static void tell(void *context)
{
    told *t = context;
    t->calls++;
    assert_true(TFE_CancellationManagerIsCancelling(t->manager));
    assert_false(TFE_CancellationManagerIsCancelled(t->manager));
}

static void managers_cancel_functions_that_have_not_begun(void **state)
{
    (void)state;
    told before = {TFE_NewCancellationManager(), 0}, after = before, gone = before;
    TFE_CancellationManager *manager = before.manager;
    TFE_CancellationToken tokens[3];
    for (int i = 0; i < 3; i++)
        tokens[i] = TFE_CancellationManagerGetToken(manager);
    assert_true(tokens[0] != tokens[1] && tokens[1] != tokens[2] && tokens[0] != tokens[2]);
    assert_true(TFE_CancellationManagerRegisterCallback(manager, tokens[0], &(TFE_CancelCallback){tell, &gone}, "a"));
    assert_true(TFE_CancellationManagerRegisterCallback(manager, tokens[1], &(TFE_CancelCallback){tell, &before}, "b"));
    assert_true(TFE_CancellationManagerRegisterCallback(manager, tokens[1], &(TFE_CancelCallback){tell, &after}, "c"));
    assert_true(TFE_CancellationManagerDeregisterCallback(manager, tokens[0]));
    assert_true(TFE_CancellationManagerTryDeregisterCallback(manager, tokens[2]));

    TF_Function *function = twice_function("AddV2");
    TFE_ContextAddFunction(context, function, s);
    TF_DeleteFunction(function);
    TFE_Op *call = new_op("twice"), *negate = new_op("Neg");
    give(call, vector(2, (float[]){3, 4}));
    give(negate, vector(2, (float[]){3, 4}));
    TFE_OpSetCancellationManager(call, manager, s);
    TFE_OpSetCancellationManager(negate, manager, s);
    assert_fine(s);
    TFE_TensorHandle *result = NULL;
    int num_results = 1;
    TFE_Execute(call, &result, &num_results, s);
    assert_fine(s);
    TFE_DeleteTensorHandle(result);
    TFE_DeleteOp(call); /* TensorFlow's own does not execute it twice without TFE_OpReset() */

    TFE_CancellationManagerStartCancel(manager);
    TFE_CancellationManagerStartCancel(manager);
    assert_true(TFE_CancellationManagerIsCancelled(manager));
    assert_false(TFE_CancellationManagerIsCancelling(manager));
    assert_int_equal(gone.calls, 0);
    assert_int_equal(before.calls, 0);
    assert_int_equal(after.calls, 1);
    assert_false(TFE_CancellationManagerRegisterCallback(manager, tokens[2], &(TFE_CancelCallback){tell, &gone}, "d"));
    assert_false(TFE_CancellationManagerDeregisterCallback(manager, tokens[1]));
    assert_false(TFE_CancellationManagerTryDeregisterCallback(manager, tokens[1]));
    call = new_op("twice");
    give(call, vector(2, (float[]){3, 4}));
    TFE_OpSetCancellationManager(call, manager, s);
    TFE_Execute(call, &result, &num_results, s);
    assert_wrong(s, TF_CANCELLED, "Function was cancelled before it was started");
    TFE_DeleteOp(call);
    assert_values(execute(negate), 2, (float[]){-3, -4});
    TFE_DeleteCancellationManager(manager);

    gone.manager = TFE_NewCancellationManager();
    assert_true(TFE_CancellationManagerRegisterCallback(gone.manager, 0, &(TFE_CancelCallback){tell, &gone}, "e"));
    TFE_DeleteCancellationManager(gone.manager);
    assert_int_equal(gone.calls, 1);
}

static void threads_execute_in_one_context(void **state)
{
    (void)state;
    pthread_t threads[3];
    squares all[] = {{1, false}, {100, false}, {1000, false}};
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, square, &all[i]);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_true(all[i].right);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(handle_of_a_tensor_shares_it_and_is_copied_to_devices),
        TEST(operations_are_executed_on_tensors_of_any_shape),
        TEST(operation_holds_its_inputs_and_is_executed_again),
        TEST(what_is_passed_on_is_not_copied),
        TEST(shapes_and_axes_may_be_values),
        TEST(lists_say_how_long_they_are),
        TEST(attributes_have_their_types),
        TEST(inputs_say_types_before_attributes_do),
        TEST(constants_are_their_values),
        TEST(variables_keep_values),
        TEST(resources_are_named_by_tensors),
        TEST(variables_without_a_name_are_each_their_own),
        TEST(functions_are_executed_until_they_are_removed),
        TEST(texts_are_taken_and_given),
        TEST(no_handle_is_told),
        TEST(what_is_wrong_is_said),
        TEST(context_keeps_what_is_asked_of_it),
        TEST(experimental_functions_do_what_one_process_needs),
        TEST(managers_cancel_functions_that_have_not_begun),
        TEST(threads_execute_in_one_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

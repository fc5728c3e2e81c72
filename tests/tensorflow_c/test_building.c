/* Graphs that are built operation by operation, and read again: inputs, attributes, colocation, messages, ops. */
#include "fixture.h"

static int count_operations(void)
{
    int count = 0;
    for (size_t at = 0; TF_GraphNextOperation(graph, &at);)
        count++;
    return count;
}

static bool has_bytes(const TF_Buffer *buffer, const char *text)
{
    for (size_t i = 0; i + strlen(text) <= buffer->length; i++)
        if (memcmp((const char *)buffer->data + i, text, strlen(text)) == 0)
            return true;
    return false;
}

static void operations_say_what_they_are(void **state)
{
    (void)state;
    TF_Operation *feed = placeholder(graph, "feed", TF_INT32, s), *three = constant(graph, "scalar", int_tensor(3), s);
    TF_Operation *sum = add(graph, "add", out(feed), out(three), s), *neg;
    assert_fine(s);
    assert_string_equal(TF_OperationName(feed), "feed");
    assert_string_equal(TF_OperationOpType(feed), "Placeholder");
    assert_string_equal(TF_OperationDevice(feed), "");
    assert_int_equal(TF_OperationNumOutputs(feed), 1);
    assert_int_equal(TF_OperationOutputType(out(feed)), TF_INT32);
    assert_int_equal(TF_OperationOutputListLength(feed, "output", s), 1);
    assert_fine(s);
    assert_int_equal(TF_OperationOutputListLength(feed, "nothing", s), -1);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Output arg 'nothing' not found");
    assert_int_equal(TF_OperationNumInputs(feed), 0);
    assert_int_equal(TF_OperationNumInputs(sum), 2);
    assert_int_equal(TF_OperationInputListLength(sum, "inputs", s), 2);
    assert_fine(s);
    assert_int_equal(TF_OperationInputListLength(sum, "nothing", s), -1);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Input arg 'nothing' not found");
    assert_int_equal(TF_OperationInputType((TF_Input){sum, 1}), TF_INT32);
    assert_ptr_equal(TF_OperationInput((TF_Input){sum, 1}).oper, three);
    TF_Output inputs[2];
    TF_OperationAllInputs(sum, inputs, 2);
    assert_ptr_equal(inputs[0].oper, feed);
    neg = unary(graph, "Neg", "neg", out(sum), s);
    TF_Input consumers[3];
    assert_int_equal(TF_OperationOutputNumConsumers(out(sum)), 1);
    assert_int_equal(TF_OperationOutputConsumers(out(sum), consumers, 3), 1);
    assert_ptr_equal(consumers[0].oper, neg);
    assert_int_equal(consumers[0].index, 0);
    assert_int_equal(TF_OperationOutputNumConsumers(out(neg)), 0);
    assert_int_equal(count_operations(), 4);
    assert_ptr_equal(TF_GraphOperationByName(graph, "neg"), neg);
    TF_Buffer *def = TF_NewBuffer();
    TF_OperationToNodeDef(neg, def, s);
    assert_fine(s);
    static const char expected[] = "\x0a\x03neg\x12\x03Neg\x1a\x03"
                                   "add*\x07\x0a\x01T\x12\x02\x30\x03";
    assert_int_equal(def->length, sizeof expected - 1);
    assert_memory_equal(def->data, expected, sizeof expected - 1);
    TF_DeleteBuffer(def);
}

static void a_failing_operation_leaves_the_graph_as_it_was(void **state)
{
    (void)state;
    TF_Tensor *two = float_tensor((int64_t[]){2}, 1, (float[]){1, 2});
    TF_Tensor *three = float_tensor((int64_t[]){3}, 1, (float[]){1, 2, 3});
    TF_Operation *a = constant(graph, "a", two, s), *b = constant(graph, "b", three, s);
    assert_null(add(graph, "sum", out(a), out(b), s));
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
    assert_int_equal(count_operations(), 2);
    assert_int_equal(TF_OperationOutputNumConsumers(out(a)), 0);
    assert_non_null(add(graph, "sum", out(a), out(a), s));
    assert_fine(s);
    assert_null(add(graph, "sum", out(a), out(a), s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "Duplicate node name in graph: 'sum'");
    assert_null(TF_FinishOperation(TF_NewOperation(graph, "NoSuchOp", "x"), s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "Op type not registered 'NoSuchOp' in binary running on ");
    assert_null(TF_FinishOperation(TF_NewOperation(graph, "Placeholder", "x"), s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "dtype");
    TF_OperationDescription *d = TF_NewOperation(graph, "Neg", "x");
    TF_AddInput(d, (TF_Output){a, 7});
    assert_null(TF_FinishOperation(d, s));
    assert_int_not_equal(TF_GetCode(s), TF_OK);
    d = TF_NewOperation(graph, "Neg", "x");
    TF_AddInputList(d, (TF_Output[]){out(a)}, 1);
    assert_null(TF_FinishOperation(d, s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "List provided to input 'x' when single Tensor expected while building NodeDef");
    d = TF_NewOperation(graph, "AddN", "x");
    TF_AddInput(d, out(a));
    assert_null(TF_FinishOperation(d, s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "Single tensor passed to 'inputs', expected list while building NodeDef 'x'");
    assert_int_equal(count_operations(), 3);
}

static void devices_and_control_inputs_are_kept(void **state)
{
    (void)state;
    TF_Operation *a = placeholder(graph, "a", TF_FLOAT, s);
    TF_OperationDescription *d = TF_NewOperation(graph, "NoOp", "after");
    TF_SetDevice(d, "/job:localhost/task:0/device:CPU:0");
    TF_AddControlInput(d, a);
    TF_Operation *after = TF_FinishOperation(d, s), *found;
    assert_fine(s);
    assert_string_equal(TF_OperationDevice(after), "/job:localhost/task:0/device:CPU:0");
    assert_int_equal(TF_OperationNumControlInputs(after), 1);
    assert_int_equal(TF_OperationGetControlInputs(after, &found, 1), 1);
    assert_ptr_equal(found, a);
    assert_int_equal(TF_OperationNumControlOutputs(a), 1);
    assert_int_equal(TF_OperationGetControlOutputs(a, &found, 1), 1);
    assert_ptr_equal(found, after);
    assert_int_equal(TF_OperationNumControlInputs(a), 0);
    assert_int_equal(TF_OperationNumControlOutputs(after), 0);
}

/* `name` is a Neg that is for this device. */
static TF_Operation *negative_on(const char *device, const char *name, TF_Output x)
{
    TF_OperationDescription *d = TF_NewOperation(graph, "Neg", name);
    TF_AddInput(d, x);
    TF_SetDevice(d, device);
    return TF_FinishOperation(d, s);
}

static void names_of_devices_are_kept_as_they_are_given(void **state)
{
    (void)state;
    static const char *const given[] = {"foo", "/cpu:0", "/gpu:x", "/job:worker/device:FOO:7"};
    enum { COUNT = sizeof given / sizeof *given };
    char name[32];
    TF_Operation *a = placeholder(graph, "a", TF_FLOAT, s);
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "b%d", i);
        assert_string_equal(TF_OperationDevice(negative_on(given[i], name, out(a))), given[i]);
        assert_fine(s);
    }
    TF_Buffer *def = TF_NewBuffer();
    TF_GraphToGraphDef(graph, def, s);
    assert_fine(s);
    TF_ImportGraphDefOptions *options = TF_NewImportGraphDefOptions();
    TF_ImportGraphDefOptionsSetPrefix(options, "p");
    TF_ImportGraphDefOptionsSetDefaultDevice(options, "fake_device");
    TF_GraphImportGraphDef(graph, def, options, s);
    assert_fine(s);
    assert_string_equal(TF_OperationDevice(TF_GraphOperationByName(graph, "p/a")), "fake_device");
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "p/b%d", i);
        assert_string_equal(TF_OperationDevice(TF_GraphOperationByName(graph, name)), given[i]);
    }
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(def);
}

/* Whatever it is to run: it places the whole graph. */
static void what_is_no_name_of_a_device_is_refused_by_a_session(void **state)
{
    (void)state;
    TF_Operation *a = placeholder(graph, "a", TF_FLOAT, s), *b = negative_on("foo", "b", out(a));
    TF_Output x = out(a), fetches[] = {out(b), out(unary(graph, "Neg", "c", x, s))}, dx;
    TF_AddGradients(graph, fetches, 1, &x, 1, NULL, s, &dx);
    assert_fine(s);
    for (int soft = 0; soft < 2; soft++) {
        TF_SessionOptions *options = TF_NewSessionOptions();
        TF_SetConfig(options, (unsigned char[]){0x38, (unsigned char)soft}, 2, s); /* allow_soft_placement */
        TF_Session *session = TF_NewSession(graph, options, s);
        assert_fine(s);
        for (int i = 0; i < 2; i++) {
            TF_Tensor *one = float_tensor(NULL, 0, (float[]){1}), *result = run(session, x, one, fetches[i], s);
            assert_null(result);
            assert_wrong(s, TF_INVALID_ARGUMENT, "Malformed device specification 'foo'");
            assert_non_null(strstr(TF_Message(s), "= Neg[T=DT_FLOAT, _device=\"foo\"](a)"));
            TF_DeleteTensor(one);
        }
        close_session(session, s);
        TF_DeleteSessionOptions(options);
    }
}

static void shapes_are_refined(void **state)
{
    (void)state;
    TF_Output x = out(placeholder(graph, "x", TF_INT32, s));
    assert_int_equal(TF_GraphGetTensorNumDims(graph, x, s), -1);
    assert_fine(s);
    TF_GraphSetTensorShape(graph, x, (int64_t[]){2, -1}, 2, s);
    assert_fine(s);
    int64_t dims[2] = {0};
    TF_GraphGetTensorShape(graph, x, dims, 2, s);
    assert_fine(s);
    assert_true(dims[0] == 2 && dims[1] == -1);
    TF_GraphSetTensorShape(graph, x, (int64_t[]){2, 3}, 2, s);
    TF_GraphSetTensorShape(graph, x, (int64_t[]){2, -1}, 2, s);
    TF_GraphSetTensorShape(graph, x, NULL, -1, s);
    assert_fine(s);
    TF_GraphGetTensorShape(graph, x, dims, 2, s);
    assert_true(dims[0] == 2 && dims[1] == 3);
    TF_GraphGetTensorShape(graph, x, dims, 5, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Expected rank is 5 but actual rank is 2");
    TF_GraphSetTensorShape(graph, x, (int64_t[]){2, 5}, 2, s);
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
    assert_int_equal(TF_GraphGetTensorNumDims(graph, out(constant(graph, "c", int_tensor(1), s)), s), 0);
    TF_Graph *other = TF_NewGraph();
    TF_GraphGetTensorNumDims(other, x, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Node x was not found in the graph");
    TF_DeleteGraph(other);
}

/* In graphs of before 2017 it meant that nothing is known, so messages have to say that they are new. */
static void placeholder_of_a_scalar_has_the_shape_of_one(void **state)
{
    (void)state;
    TF_OperationDescription *d = TF_NewOperation(graph, "Placeholder", "x");
    TF_SetAttrType(d, "dtype", TF_FLOAT);
    TF_SetAttrShape(d, "shape", NULL, 0);
    TF_Operation *x = TF_FinishOperation(d, s), *y;
    assert_fine(s);
    y = unary(graph, "Neg", "y", out(x), s);
    assert_int_equal(TF_GraphGetTensorNumDims(graph, out(y), s), 0);
    TF_UpdateEdge(graph, out(x), (TF_Input){y, 0}, s); /* makes the graph anew */
    assert_fine(s);
    TF_AttrMetadata m = TF_OperationGetAttrMetadata(x, "shape", s);
    assert_true(m.type == TF_ATTR_SHAPE && m.total_size == 0);
}

/* What a node tells of a shape is known as far as that is, as of the mask of a dropout. */
static void what_is_shaped_as_another_is_known_as_far_as_that(void **state)
{
    (void)state;
    TF_Output x = out(placeholder(graph, "x", TF_FLOAT, s));
    TF_GraphSetTensorShape(graph, x, (int64_t[]){-1, 3}, 2, s);
    assert_fine(s);
    TF_Output shape = out(unary(graph, "Shape", "shape", x, s)), y = out(placeholder(graph, "y", TF_FLOAT, s));
    TF_OperationDescription *d = TF_NewOperation(graph, "RandomUniform", "random");
    TF_AddInput(d, shape);
    TF_SetAttrType(d, "dtype", TF_FLOAT);
    TF_Operation *random = TF_FinishOperation(d, s);
    assert_fine(s);
    TF_Operation *filled = binary(graph, "Fill", "filled", shape, out(constant(graph, "1", int_tensor(1), s)), s);
    TF_Operation *like[] = {random, filled, binary(graph, "Reshape", "reshaped", y, shape, s)};
    for (int i = 0; i < 3; i++) {
        int64_t dims[2] = {0};
        assert_int_equal(TF_GraphGetTensorNumDims(graph, out(like[i]), s), 2);
        TF_GraphGetTensorShape(graph, out(like[i]), dims, 2, s);
        assert_fine(s);
        assert_int_equal(dims[0], -1);
        assert_int_equal(dims[1], 3);
    }
    /* over all axes, as bindings write it */
    TF_Operation *zero = constant(graph, "first", int_tensor(0), s), *rank = unary(graph, "Rank", "rank", x, s);
    d = TF_NewOperation(graph, "Range", "axes");
    TF_AddInput(d, out(zero));
    TF_AddInput(d, out(rank));
    TF_AddInput(d, out(constant(graph, "step", int_tensor(1), s)));
    TF_Operation *axes = TF_FinishOperation(d, s);
    assert_fine(s);
    TF_Operation *mean = binary(graph, "Mean", "mean", x, out(axes), s);
    assert_int_equal(TF_GraphGetTensorNumDims(graph, out(mean), s), 0);
    /* whoever feeds the shape itself has the last word */
    TF_Session *session = session_of(graph, s);
    TF_Tensor *fed = TF_AllocateTensor(TF_INT32, (int64_t[]){2}, 1, 8);
    memcpy(TF_TensorData(fed), (int32_t[]){2, 2}, 8);
    TF_Tensor *ones = run(session, shape, fed, out(filled), s);
    assert_fine(s);
    assert_int_equal(TF_TensorElementCount(ones), 4);
    TF_DeleteTensor(ones);
    TF_DeleteTensor(fed);
    close_session(session, s);
}

static TF_Operation *finish(TF_OperationDescription *d)
{
    TF_Operation *made = TF_FinishOperation(d, s);
    assert_fine(s);
    return made;
}

static void assert_metadata(TF_Operation *oper, const char *name, int is_list, int64_t list_size, TF_AttrType type,
                            int64_t total_size)
{
    TF_AttrMetadata m = TF_OperationGetAttrMetadata(oper, name, s);
    assert_fine(s);
    assert_int_equal(m.is_list, is_list);
    assert_int_equal(m.list_size, list_size);
    assert_int_equal(m.type, type);
    assert_int_equal(m.total_size, total_size);
}

static void attributes_are_read_as_they_were_set(void **state)
{
    (void)state;
    TF_Operation *image = placeholder(graph, "image", TF_FLOAT, s);
    TF_OperationDescription *d = TF_NewOperation(graph, "MaxPool", "pool");
    const int64_t window[] = {1, 2, 3, 1};
    TF_AddInput(d, out(image));
    TF_SetAttrIntList(d, "ksize", window, 4);
    TF_SetAttrIntList(d, "strides", window, 4);
    TF_SetAttrString(d, "padding", "VALID", 5);
    TF_Operation *pool = finish(d);
    int64_t numbers[4] = {0};
    assert_metadata(pool, "ksize", 1, 4, TF_ATTR_INT, -1);
    TF_OperationGetAttrIntList(pool, "ksize", numbers, 4, s);
    assert_fine(s);
    assert_memory_equal(numbers, window, sizeof window);
    assert_metadata(pool, "padding", 0, -1, TF_ATTR_STRING, 5);
    char text[5];
    TF_OperationGetAttrString(pool, "padding", text, 5, s);
    assert_memory_equal(text, "VALID", 5);
    assert_metadata(pool, "data_format", 0, -1, TF_ATTR_STRING, 4); /* a default */
    assert_metadata(pool, "T", 0, -1, TF_ATTR_TYPE, -1);
    TF_DataType type;
    TF_OperationGetAttrType(pool, "T", &type, s);
    assert_int_equal(type, TF_FLOAT);
    TF_OperationGetAttrMetadata(pool, "missing", s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Operation 'pool' has no attr named 'missing'.");
    TF_OperationGetAttrString(pool, "T", text, 5, s);
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
    TF_OperationGetAttrInt(pool, "padding", numbers, s);
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
    char names[200] = "";
    for (int i = 0; i < TF_OperationGetNumAttrs(pool); i++) {
        char name[40] = "";
        assert_true(TF_OperationGetAttrNameLength(pool, i) < 40);
        TF_OperationGetAttrName(pool, i, name, s);
        strcat(names, name);
    }
    assert_true(strstr(names, "ksize") && strstr(names, "data_format"));

    d = TF_NewOperation(graph, "Placeholder", "shaped");
    TF_SetAttrType(d, "dtype", TF_FLOAT);
    TF_SetAttrShape(d, "shape", (int64_t[]){2, -5, 3}, 3);
    TF_Operation *shaped = finish(d);
    assert_metadata(shaped, "shape", 0, -1, TF_ATTR_SHAPE, 3);
    TF_OperationGetAttrShape(shaped, "shape", numbers, 3, s);
    assert_true(numbers[0] == 2 && numbers[1] == -1 && numbers[2] == 3);
    TF_Buffer *proto = TF_NewBuffer();
    TF_OperationGetAttrTensorShapeProto(shaped, "shape", proto, s);
    assert_fine(s);
    d = TF_NewOperation(graph, "Placeholder", "again");
    TF_SetAttrType(d, "dtype", TF_FLOAT);
    TF_SetAttrTensorShapeProto(d, "shape", proto->data, proto->length, s);
    assert_fine(s);
    assert_metadata(finish(d), "shape", 0, -1, TF_ATTR_SHAPE, 3);
    TF_DeleteBuffer(proto);
    d = TF_NewOperation(graph, "Placeholder", "unknown");
    TF_SetAttrTensorShapeProto(d, "shape", "\xff\xff", 2, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Unparseable TensorShapeProto");
    TF_SetAttrType(d, "dtype", TF_FLOAT);
    TF_SetAttrShape(d, "shape", NULL, -1);
    assert_metadata(finish(d), "shape", 0, -1, TF_ATTR_SHAPE, -1);

    d = TF_NewOperation(graph, "FIFOQueueV2", "queue");
    TF_SetAttrTypeList(d, "component_types", (TF_DataType[]){TF_FLOAT, TF_INT32}, 2);
    TF_SetAttrShapeList(d, "shapes", (const int64_t *[]){(int64_t[]){1, 3}, (int64_t[]){2, 4, 6}}, (int[]){2, 3}, 2);
    TF_Operation *queue = finish(d);
    assert_metadata(queue, "component_types", 1, 2, TF_ATTR_TYPE, -1);
    assert_metadata(queue, "shapes", 1, 2, TF_ATTR_SHAPE, 5);
    assert_metadata(queue, "capacity", 0, -1, TF_ATTR_INT, -1);
    int64_t *dims[2], storage[5];
    int ranks[2];
    TF_OperationGetAttrShapeList(queue, "shapes", dims, ranks, 2, storage, 5, s);
    assert_fine(s);
    assert_true(ranks[0] == 2 && ranks[1] == 3 && dims[0][1] == 3 && dims[1][2] == 6);
    TF_OperationGetAttrIntList(queue, "capacity", numbers, 4, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Value for 'capacity' is not a list.");
    d = TF_NewOperation(graph, "FIFOQueueV2", "empty");
    TF_SetAttrTypeList(d, "component_types", (TF_DataType[]){TF_FLOAT}, 1);
    assert_metadata(finish(d), "shapes", 1, 0, TF_ATTR_SHAPE, -1);

    d = TF_NewOperation(graph, "LRN", "lrn");
    TF_AddInput(d, out(image));
    TF_SetAttrFloat(d, "alpha", 0.5f);
    TF_Operation *lrn = finish(d);
    float number = 0;
    TF_OperationGetAttrFloat(lrn, "alpha", &number, s);
    assert_true(number == 0.5f);
    d = TF_NewOperation(graph, "MatMul", "product");
    TF_AddInput(d, out(image));
    TF_AddInput(d, out(image));
    TF_SetAttrBool(d, "transpose_a", 1);
    unsigned char flag = 0;
    TF_OperationGetAttrBool(finish(d), "transpose_a", &flag, s);
    assert_int_equal(flag, 1);
}

static TF_Operation *marked(const char *name)
{
    static const int64_t dims[] = {2, 3};
    TF_OperationDescription *d = TF_NewOperation(graph, "Placeholder", name);
    TF_Tensor *seven = int_tensor(7);
    TF_SetAttrType(d, "dtype", TF_FLOAT);
    TF_SetAttrString(d, "_string", "of mine", 7);
    TF_SetAttrInt(d, "_int", -3);
    TF_SetAttrFloat(d, "_float", 0.5f);
    TF_SetAttrBool(d, "_bool", 1);
    TF_SetAttrType(d, "_type", TF_INT64);
    TF_SetAttrShape(d, "_shape", dims, 2);
    TF_SetAttrTensor(d, "_tensor", seven, s);
    TF_SetAttrStringList(d, "_strings", (const void *[]){"a", "bc"}, (size_t[]){1, 2}, 2);
    TF_SetAttrIntList(d, "_ints", (int64_t[]){1, -2, 300}, 3);
    TF_SetAttrFloatList(d, "_floats", (float[]){1, 2}, 2);
    TF_SetAttrBoolList(d, "_bools", (unsigned char[]){0, 1}, 2);
    TF_SetAttrTypeList(d, "_types", (TF_DataType[]){TF_FLOAT, TF_STRING}, 2);
    TF_SetAttrShapeList(d, "_shapes", (const int64_t *[]){dims, NULL}, (int[]){2, -1}, 2);
    TF_SetAttrFuncName(d, "_function", "f", 1);
    TF_SetAttrPlaceholder(d, "_placeholder", "T");
    TF_SetAttrTensorList(d, "_tensors", (TF_Tensor *[]){seven, seven}, 2, s);
    TF_SetAttrValueProto(d, "_mixed", "\x0a\x05\x12\1a\x18\5", 7, s); /* a text and a number in one list */
    assert_fine(s);
    TF_DeleteTensor(seven);
    return finish(d);
}

static void assert_marked(TF_Operation *oper)
{
    char text[8] = "";
    int64_t ints[8], *shapes[2];
    float floats[2];
    unsigned char bools[2];
    TF_DataType types[2];
    int ranks[2];
    TF_Tensor *tensor, *tensors[3];
    assert_metadata(oper, "_string", 0, -1, TF_ATTR_STRING, 7);
    assert_metadata(oper, "_bools", 1, 2, TF_ATTR_BOOL, -1);
    assert_metadata(oper, "_shapes", 1, 2, TF_ATTR_SHAPE, 2);
    assert_metadata(oper, "_function", 0, -1, TF_ATTR_FUNC, -1);
    assert_metadata(oper, "_mixed", 1, 1, TF_ATTR_STRING, 1);
    assert_metadata(oper, "_placeholder", 0, -1, TF_ATTR_PLACEHOLDER, -1);
    TF_OperationGetAttrString(oper, "_string", text, 7, s);
    assert_fine(s);
    assert_string_equal(text, "of mine");
    TF_OperationGetAttrInt(oper, "_int", ints, s);
    assert_int_equal(ints[0], -3);
    TF_OperationGetAttrInt(oper, "_string", ints, s);
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
    TF_OperationGetAttrFloat(oper, "_float", floats, s);
    assert_float_equal(floats[0], 0.5, 0);
    TF_OperationGetAttrBool(oper, "_bool", bools, s);
    assert_int_equal(bools[0], 1);
    TF_OperationGetAttrType(oper, "_type", types, s);
    assert_int_equal(types[0], TF_INT64);
    TF_OperationGetAttrShape(oper, "_shape", ints, 2, s);
    assert_int_equal(ints[1], 3);
    TF_SetStatus(s, TF_OK, "");
    TF_OperationGetAttrTensor(oper, "_tensor", &tensor, s);
    assert_fine(s);
    assert_int_equal(*(int32_t *)TF_TensorData(tensor), 7);
    TF_DeleteTensor(tensor);
    TF_OperationGetAttrTensorList(oper, "_tensors", tensors, 3, s);
    assert_fine(s);
    assert_int_equal(*(int32_t *)TF_TensorData(tensors[1]), 7);
    TF_DeleteTensor(tensors[0]);
    TF_DeleteTensor(tensors[1]);
    TF_OperationGetAttrTensorList(oper, "_bools", tensors, 3, s);
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
    TF_SetStatus(s, TF_OK, "");
    TF_OperationGetAttrIntList(oper, "_ints", ints, 8, s);
    assert_true(ints[0] == 1 && ints[1] == -2 && ints[2] == 300);
    TF_OperationGetAttrFloatList(oper, "_floats", floats, 2, s);
    assert_float_equal(floats[1], 2, 0);
    TF_OperationGetAttrBoolList(oper, "_bools", bools, 2, s);
    assert_true(!bools[0] && bools[1]);
    TF_OperationGetAttrTypeList(oper, "_types", types, 2, s);
    assert_int_equal(types[1], TF_STRING);
    TF_OperationGetAttrShapeList(oper, "_shapes", shapes, ranks, 2, ints, 8, s);
    assert_true(ranks[0] == 2 && ranks[1] == -1 && shapes[0][1] == 3);
    TF_Buffer *value = TF_NewBuffer();
    TF_OperationGetAttrValueProto(oper, "_int", value, s);
    assert_fine(s);
    assert_int_equal(value->length, 11); /* of a number below 0 */
    TF_DeleteBuffer(value);
}

/* The caller's own, which begin with an underscore, go into messages and come from them. */
static void attributes_of_ones_own_are_kept(void **state)
{
    (void)state;
    assert_marked(marked("mine"));
    TF_Buffer *def = TF_NewBuffer();
    TF_GraphToGraphDef(graph, def, s);
    assert_fine(s);
    TF_ImportGraphDefOptions *options = TF_NewImportGraphDefOptions();
    TF_ImportGraphDefOptionsSetUniquifyNames(options, 1);
    TF_GraphImportGraphDef(graph, def, options, s);
    assert_fine(s);
    TF_ImportGraphDefOptionsSetPrefix(options, "in");
    TF_GraphImportGraphDef(graph, def, options, s);
    assert_fine(s);
    assert_marked(TF_GraphOperationByName(graph, "mine_1"));
    assert_marked(TF_GraphOperationByName(graph, "in/mine"));
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(def);
}

static void tensors_are_attributes(void **state)
{
    (void)state;
    TF_Operation *numbers = constant(graph, "numbers", float_tensor((int64_t[]){2, 1}, 2, (float[]){3, 4}), s);
    TF_Tensor *value = NULL;
    assert_metadata(numbers, "value", 0, -1, TF_ATTR_TENSOR, -1);
    TF_OperationGetAttrTensor(numbers, "value", &value, s);
    assert_fine(s);
    assert_int_equal(TF_Dim(value, 0), 2);
    assert_true(((float *)TF_TensorData(value))[1] == 4);
    TF_DeleteTensor(value);
    TF_Tensor *texts = TF_AllocateTensor(TF_STRING, NULL, 0, sizeof(TF_TString));
    TF_StringInit(TF_TensorData(texts));
    TF_StringCopy(TF_TensorData(texts), "a text of more than twenty-two bytes", 36);
    TF_Operation *text = constant(graph, "text", texts, s);
    TF_OperationGetAttrTensor(text, "value", &value, s);
    assert_fine(s);
    assert_int_equal(TF_StringGetSize(TF_TensorData(value)), 36);
    assert_memory_equal(TF_StringGetDataPointer(TF_TensorData(value)), "a text of more", 14);
    TF_DeleteTensor(value);
    /* dtype int32, shape [2], the values 7, 8 */
    static const char proto[] = "\x08\x03\x12\x04\x12\x02\x08\x02\x3a\x02\x07\x08";
    TF_Buffer *buffer = TF_NewBufferFromString(proto, sizeof proto - 1);
    TF_Tensor *into = int_tensor(1);
    TF_TensorFromProto(buffer, into, s);
    assert_fine(s);
    assert_int_equal(TF_TensorElementCount(into), 2);
    assert_int_equal(((int32_t *)TF_TensorData(into))[1], 8);
    TF_DeleteTensor(into);
    TF_DeleteBuffer(buffer);
}

/* ---- colocation ------------------------------------------------------------------------------------------------- */

/* The operation's "_class" is these texts; NULL: it has none. */
static void assert_class(TF_OperationDescription *d, const char *first, const char *second)
{
    TF_Operation *made = finish(d);
    TF_AttrMetadata m = TF_OperationGetAttrMetadata(made, "_class", s);
    if (!first) {
        assert_wrong(s, TF_INVALID_ARGUMENT, "has no attr named '_class'.");
        return;
    }
    assert_fine(s);
    assert_int_equal(m.list_size, second ? 2 : 1);
    void *texts[2];
    size_t lengths[2];
    char storage[100];
    TF_OperationGetAttrStringList(made, "_class", texts, lengths, 2, storage, sizeof storage, s);
    assert_fine(s);
    assert_memory_equal(texts[0], first, lengths[0]);
    if (second)
        assert_memory_equal(texts[1], second, lengths[1]);
    TF_OperationGetAttrStringList(made, "_class", texts, lengths, 2, storage, 3, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Not enough storage to hold the requested list of strings");
}

static void colocation_is_a_sorted_set(void **state)
{
    (void)state;
    TF_Operation *b = placeholder(graph, "b", TF_FLOAT, s), *a = placeholder(graph, "a", TF_FLOAT, s);
    TF_OperationDescription *d = TF_NewOperation(graph, "NoOp", "both");
    TF_ColocateWith(d, b);
    TF_ColocateWith(d, a);
    TF_ColocateWith(d, b);
    assert_class(d, "loc:@a", "loc:@b");
    d = TF_NewOperation(graph, "NoOp", "replaced");
    TF_ColocateWith(d, a);
    TF_SetAttrStringList(d, "_class", (const void *[]){"loc:@b"}, (size_t[]){6}, 1);
    assert_class(d, "loc:@b", NULL);
    d = TF_NewOperation(graph, "NoOp", "added");
    TF_SetAttrStringList(d, "_class", (const void *[]){"loc:@b"}, (size_t[]){6}, 1);
    TF_ColocateWith(d, a);
    assert_class(d, "loc:@a", "loc:@b");
    d = TF_NewOperation(graph, "NoOp", "proto");
    TF_ColocateWith(d, b);
    TF_SetAttrValueProto(d, "_class", "\x0a\x08\x12\x06loc:@a", 10, s);
    assert_fine(s);
    assert_class(d, "loc:@a", NULL);
    d = TF_NewOperation(graph, "NoOp", "cleared");
    TF_ColocateWith(d, b);
    TF_SetAttrStringList(d, "_class", NULL, NULL, 0);
    assert_class(d, NULL, NULL);
    d = TF_NewOperation(graph, "NoOp", "wrong");
    TF_SetAttrValueProto(d, "_class", "\x18\x01", 2, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Expected \"list\" field for \"_class\" attribute");
    TF_SetAttrValueProto(d, "x", "\xff\xff", 2, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Unparseable AttrValue proto");
    assert_class(d, NULL, NULL);
}

/* ---- variables -------------------------------------------------------------------------------------------------- */

static void references_are_a_type_of_their_own(void **state)
{
    (void)state;
    TF_OperationDescription *d = TF_NewOperation(graph, "VariableV2", "v");
    TF_SetAttrType(d, "dtype", TF_FLOAT);
    TF_SetAttrShape(d, "shape", (int64_t[]){2}, 1);
    TF_Operation *v = finish(d);
    assert_int_equal(TF_OperationOutputType(out(v)), TF_FLOAT + 100);
    TF_Operation *value = constant(graph, "value", float_tensor((int64_t[]){2}, 1, (float[]){5, 6}), s);
    TF_Operation *assign = binary(graph, "Assign", "assign", out(v), out(value), s);
    assert_int_equal(TF_OperationInputType((TF_Input){assign, 0}), TF_FLOAT + 100);
    assert_int_equal(TF_OperationInputType((TF_Input){assign, 1}), TF_FLOAT);
    TF_Operation *read = unary(graph, "Identity", "read", out(v), s);
    TF_Session *session = session_of(graph, s);
    TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, (const TF_Operation *[]){assign}, 1, NULL, s);
    assert_fine(s);
    TF_Tensor *result = run(session, (TF_Output){NULL, 0}, NULL, out(read), s);
    assert_fine(s);
    assert_true(((float *)TF_TensorData(result))[1] == 6);
    TF_DeleteTensor(result);
    close_session(session, s);
}

/* ---- ops -------------------------------------------------------------------------------------------------------- */

static void ops_are_told(void **state)
{
    (void)state;
    TF_Buffer *def = TF_NewBuffer(), *all = TF_GetAllOpList(), *kernels = TF_GetAllRegisteredKernels(s);
    assert_fine(s);
    assert_true(all->length > 10000);
    assert_true(kernels->length > 1000);
    TF_GraphGetOpDef(graph, "Add", def, s);
    assert_fine(s);
    assert_true(has_bytes(def, "Add"));
    TF_DeleteBuffer(def);
    def = TF_NewBuffer();
    TF_GraphGetOpDef(graph, "MyFakeOp", def, s);
    assert_wrong(s, TF_NOT_FOUND, "Op type not registered 'MyFakeOp' in binary");
    TF_DeleteBuffer(def);
    def = TF_GetRegisteredKernelsForOp("NoSuchOp", s);
    assert_fine(s);
    assert_int_equal(def->length, 0);
    TF_DeleteBuffer(def);
    def = TF_NewBuffer();
    TF_GraphVersions(graph, def, s);
    assert_fine(s);
    assert_true(def->length > 0);
    TF_DeleteBuffer(def);
    TF_DeleteBuffer(all);
    TF_DeleteBuffer(kernels);
}

/* ---- descriptions of ops for bindings ------------------------------------------------------------------------------
 */

static TF_ApiDefMap *map_of_all_ops(void)
{
    TF_Buffer *all = TF_GetAllOpList();
    TF_ApiDefMap *map = TF_NewApiDefMap(all, s);
    assert_fine(s);
    TF_DeleteBuffer(all);
    return map;
}

static void assert_api(TF_ApiDefMap *map, const char *name, const char *bytes, size_t size)
{
    TF_Buffer *api = TF_ApiDefMapGet(map, name, strlen(name), s);
    assert_fine(s);
    assert_int_equal(api->length, size);
    assert_memory_equal(api->data, bytes, size);
    TF_DeleteBuffer(api);
}

static void put(TF_ApiDefMap *map, const char *text)
{
    TF_ApiDefMapPut(map, text, strlen(text), s);
}

static void ops_describe_themselves_to_bindings(void **state)
{
    (void)state;
    static const char api[] =
        "\x0a\3Add\x10\1\x1a\5\x0a\3Add\x22\6\x0a\1x\x12\1x\x22\6\x0a\1y\x12\1y\x2a\6\x0a\1z\x12\1z"
        "\x32\6\x0a\1T\x12\1TZ\1xZ\1y";
    TF_ApiDefMap *map = map_of_all_ops();
    assert_api(map, "Add", api, sizeof api - 1);
    assert_null(TF_ApiDefMapGet(map, "NoSuchOp", 8, s));
    assert_fine(s);
    put(map, "op: <>");
    assert_wrong(s, TF_FAILED_PRECONDITION, "TF_ApiDefMapPut cannot be called after TF_ApiDefMapGet has been called.");
    TF_DeleteApiDefMap(map);
    TF_DeleteApiDefMap(NULL);
    TF_Buffer *nonsense = TF_NewBufferFromString("\xff\xff", 2);
    assert_null(TF_NewApiDefMap(nonsense, s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "Unparseable OpList");
    TF_DeleteBuffer(nonsense);
}

static void descriptions_of_ops_are_written_over(void **state)
{
    (void)state;
    static const char written[] =
        "# of people\nop: < graph_op_name: 'Absent' in_arg { name: 'x' } >\n"
        "op {\n graph_op_name: \"Add\"\n visibility: HIDDEN,\n endpoint { name: 'Plus' deprecated: true };\n"
        " in_arg {\n  name: \"x\"\n  rename_to: \"a\"\n  description: <<END\nWhat `y` \"is\"\nadded to.\nEND\n }\n"
        " attr { name: 'T' default_value { type: DT_INT32 } }\n summary: '\\x41dds\\t' \"`Add`\" }\n"
        "op { graph_op_name: 'Add' arg_order: ['y', 'x'] in_arg: { name: 'y' rename_to: 'b' } description: 'd'\n"
        " description_prefix: 'before' description_suffix: 'behind' }\n"
        "op { graph_op_name: 'Relu6' attr { name: 'T' default_value { list { f: [-1.5, 2] b: true i: 0x10\n"
        " shape { dim { size: -1 } unknown_rank: false } } } } }";
    static const char api[] = "\x0a\3Add\x10\3\x1a\x08\x0a\4Plus\x18\1"
                              "\x22\x1f\x0a\1x\x12\1a\x1a\x17What `b` \"is\"\nadded to."
                              "\x22\6\x0a\1y\x12\1b\x2a\6\x0a\1z\x12\1z\x32\x0a\x0a\1T\x12\1T\x1a\2\x30\3"
                              ":\x0b"
                              "Adds\t`Plus`B\x0f"
                              "before\nd\nbehindZ\1yZ\1x";
    static const struct {
        const char *text;
        TF_Code code;
        const char *message;
    } wrong[] = {
        {"op { graph_op_name: 'Add' in_arg { name: 'z' } }", TF_FAILED_PRECONDITION,
         "Argument z not defined in base api for Add"},
        {"op { graph_op_name: 'Add' attr { name: 'U' } }", TF_FAILED_PRECONDITION,
         "Attribute U not defined in base api for Add"},
        {"op { graph_op_name: 'Add' arg_order: 'y' }", TF_FAILED_PRECONDITION,
         "Invalid number of arguments 1 for Add. Expected: 2"},
        {"op { graph_op_name: 'Add' arg_order: 'y' arg_order: 'y' }", TF_FAILED_PRECONDITION,
         "Invalid arg_order: y, y for Add. All elements in arg_order override must match base arg_order: x, y"},
        {"op { graph_op_name: 'Add", TF_INVALID_ARGUMENT, ""},
        {"op {\n graph_op_name: 'Add' sumary: 'x' }", TF_INVALID_ARGUMENT, "sumary"},
        {"op { graph_op_name: 1 }", TF_INVALID_ARGUMENT, ""},
        {"op { visibility: HIDEN }", TF_INVALID_ARGUMENT, ""},
        {"op { summary: <<END\nEN", TF_INVALID_ARGUMENT, ""},
        {"op { summary: '\\", TF_INVALID_ARGUMENT, ""},
        {"op { arg_order: ['a' 'b', }", TF_INVALID_ARGUMENT, ""},
        {"op {", TF_INVALID_ARGUMENT, ""},
        {"op <{", TF_INVALID_ARGUMENT, ""},
    };
    TF_ApiDefMap *map = map_of_all_ops();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        put(map, wrong[i].text);
        assert_wrong(s, wrong[i].code, wrong[i].message);
    }
    TF_ApiDefMapPut(map, "op { }\0op { }", 13, s);
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
#ifndef ON_TENSORFLOW
    assert_wrong(s, TF_INVALID_ARGUMENT, "line 1: expected the name of a field, found ''");
#endif
    put(map, "");
    assert_fine(s);
    put(map, written);
    assert_fine(s);
    assert_api(map, "Add", api, sizeof api - 1);
    TF_DeleteApiDefMap(map);
}

static void lists_are_as_long_as_was_said(void **state)
{
    (void)state;
    TF_Operation *axis = constant(graph, "axis", int_tensor(0), s);
    TF_Operation *x = constant(graph, "x", float_tensor((int64_t[]){2}, 1, (float[]){1, 2}), s);
    TF_OperationDescription *d = TF_NewOperation(graph, "ConcatV2", "joined");
    TF_AddInputList(d, (TF_Output[]){out(x), out(x), out(x)}, 3);
    TF_AddInput(d, out(axis));
    TF_Operation *joined = finish(d);
    assert_int_equal(TF_OperationInputListLength(joined, "values", s), 3);
    d = TF_NewOperation(graph, "IdentityN", "mixed");
    TF_AddInputList(d, (TF_Output[]){out(axis), out(joined)}, 2);
    TF_Operation *mixed = finish(d);
    assert_int_equal(TF_OperationOutputListLength(mixed, "output", s), 2);
    assert_int_equal(TF_OperationOutputType((TF_Output){mixed, 1}), TF_FLOAT);
    TF_Session *session = session_of(graph, s);
    TF_Tensor *result = run(session, (TF_Output){NULL, 0}, NULL, (TF_Output){mixed, 1}, s);
    assert_fine(s);
    assert_int_equal(TF_TensorElementCount(result), 6);
    TF_DeleteTensor(result);
    close_session(session, s);
}

static void operation_may_be_called_anything_and_is_looked_at_closely_when_it_runs(void **state)
{
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_Operation *text = placeholder(graph, "text/0/[a b]", TF_STRING, s);
    assert_fine(s);
    assert_ptr_equal(TF_GraphOperationByName(graph, "text/0/[a b]"), text);
    TF_OperationDescription *d = TF_NewOperation(graph, "StringToHashBucketStrong", "hashed, without a key");
    TF_AddInput(d, out(text));
    TF_SetAttrInt(d, "num_buckets", 3);
    TF_SetAttrIntList(d, "key", NULL, 0);
    TF_Operation *hashed = TF_FinishOperation(d, s);
    assert_fine(s);
    assert_ptr_equal(TF_OperationInput((TF_Input){hashed, 0}).oper, text);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
}

static void edges_change(void **state)
{
    (void)state;
    TF_Operation *feed = placeholder(graph, "feed", TF_INT32, s), *one = constant(graph, "one", int_tensor(1), s);
    TF_Operation *sum = add(graph, "add", out(feed), out(one), s), *neg = unary(graph, "Neg", "neg", out(sum), s);
    TF_Operation *late = constant(graph, "late", int_tensor(7), s);
    TF_UpdateEdge(graph, out(one), (TF_Input){neg, 0}, s);
    assert_fine(s);
    assert_ptr_equal(TF_OperationInput((TF_Input){neg, 0}).oper, one);
    assert_int_equal(TF_OperationOutputNumConsumers(out(sum)), 0);
    assert_int_equal(TF_OperationOutputNumConsumers(out(one)), 2);
    TF_UpdateEdge(graph, out(late), (TF_Input){neg, 0}, s);
    assert_fine(s);
    assert_int_equal(count_operations(), 5);
    assert_string_equal(TF_OperationName(neg), "neg");
    assert_ptr_equal(TF_GraphOperationByName(graph, "neg"), neg);
    TF_UpdateEdge(graph, out(late), (TF_Input){neg, 1}, s);
    assert_int_equal(TF_GetCode(s), TF_OUT_OF_RANGE);
    TF_UpdateEdge(graph, (TF_Output){late, 1}, (TF_Input){neg, 0}, s);
    assert_int_equal(TF_GetCode(s), TF_OUT_OF_RANGE);
#ifndef ON_TENSORFLOW /* which finds out when it runs the graph */
    TF_Operation *wrong = placeholder(graph, "wrong", TF_FLOAT, s);
    TF_UpdateEdge(graph, out(wrong), (TF_Input){neg, 0}, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "input 0 of 'neg' is int32, and 'wrong:0' is float");
    TF_UpdateEdge(graph, out(neg), (TF_Input){sum, 0}, s);
    assert_fine(s);
    TF_UpdateEdge(graph, out(sum), (TF_Input){neg, 0}, s);
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
#endif
    TF_Session *session = session_of(graph, s);
    TF_Tensor *value = run(session, (TF_Output){0}, NULL, out(neg), s);
    assert_fine(s);
    assert_int_equal(*(int32_t *)TF_TensorData(value), -7);
    TF_DeleteTensor(value);
    TF_UpdateEdge(graph, out(one), (TF_Input){neg, 0}, s);
#ifndef ON_TENSORFLOW
    assert_wrong(s, TF_FAILED_PRECONDITION, "as long as there is no session");
#endif
    close_session(session, s);
}

/* Attributes, devices and what an operation waits for, as those ask who build like TensorFlow's own Python. */
static void operations_change(void **state)
{
    static const uint8_t yes[] = {0x28, 1}, flat[] = {0x3a, 0};
    (void)state;
    TF_Buffer *value = TF_NewBufferFromString(yes, sizeof yes), *shape = TF_NewBufferFromString(flat, sizeof flat);
    TF_Operation *feed = placeholder(graph, "feed", TF_INT32, s), *late = constant(graph, "late", int_tensor(7), s);
    TF_Operation *neg = unary(graph, "Neg", "neg", out(feed), s), *controls[2];
    TF_AddOperationControlInput(graph, neg, late);
    assert_int_equal(TF_OperationGetControlInputs(neg, controls, 2), 1);
    assert_ptr_equal(controls[0], late);
    assert_int_equal(TF_OperationNumControlOutputs(late), 1);
    TF_SetRequestedDevice(graph, neg, "/device:CPU:0");
    TF_SetRequestedDevice(graph, neg, "/device:CPU:1");
    assert_string_equal(TF_OperationDevice(neg), "/device:CPU:1");
    assert_int_equal(TF_OperationNumControlInputs(neg), 1);
    TF_RemoveAllControlInputs(graph, neg);
    assert_int_equal(TF_OperationNumControlInputs(neg), 0);
    assert_ptr_equal(TF_OperationInput((TF_Input){neg, 0}).oper, feed);
    for (int i = 0; i < 2; i++) {
        unsigned char got = 0;
        TF_SetAttr(graph, neg, "_mine", value, s);
        assert_fine(s);
        TF_OperationGetAttrBool(neg, "_mine", &got, s);
        assert_fine(s);
        assert_int_equal(got, 1);
        TF_SetRequestedDevice(graph, neg, "");
        assert_string_equal(TF_OperationDevice(neg), "");
    }
    int before = TF_OperationGetNumAttrs(neg);
    TF_ClearAttr(graph, neg, "_mine", s);
    assert_fine(s);
    assert_int_equal(TF_OperationGetNumAttrs(neg), before - 1);
    TF_SetAttr(graph, feed, "shape", shape, s);
    assert_fine(s);
    assert_int_equal(TF_OperationGetAttrMetadata(feed, "shape", s).total_size, 0);
    value->length = 1;
    TF_SetAttr(graph, neg, "_mine", value, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Invalid AttrValue proto");
    TF_Session *session = session_of(graph, s);
    TF_ExtendSession(session, s);
    assert_fine(s);
    TF_Tensor *five = int_tensor(5), *result = run(session, out(feed), five, out(neg), s);
    assert_fine(s);
    assert_int_equal(*(int32_t *)TF_TensorData(result), -5);
    TF_DeleteTensor(result);
    TF_DeleteTensor(five);
    close_session(session, s);
    TF_DeleteBuffer(value);
    TF_DeleteBuffer(shape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(operations_say_what_they_are, begin, end),
        cmocka_unit_test_setup_teardown(a_failing_operation_leaves_the_graph_as_it_was, begin, end),
        cmocka_unit_test_setup_teardown(devices_and_control_inputs_are_kept, begin, end),
        cmocka_unit_test_setup_teardown(names_of_devices_are_kept_as_they_are_given, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_name_of_a_device_is_refused_by_a_session, begin, end),
        cmocka_unit_test_setup_teardown(shapes_are_refined, begin, end),
        cmocka_unit_test_setup_teardown(placeholder_of_a_scalar_has_the_shape_of_one, begin, end),
        cmocka_unit_test_setup_teardown(what_is_shaped_as_another_is_known_as_far_as_that, begin, end),
        cmocka_unit_test_setup_teardown(attributes_are_read_as_they_were_set, begin, end),
        cmocka_unit_test_setup_teardown(attributes_of_ones_own_are_kept, begin, end),
        cmocka_unit_test_setup_teardown(tensors_are_attributes, begin, end),
        cmocka_unit_test_setup_teardown(colocation_is_a_sorted_set, begin, end),
        cmocka_unit_test_setup_teardown(references_are_a_type_of_their_own, begin, end),
        cmocka_unit_test_setup_teardown(ops_are_told, begin, end),
        cmocka_unit_test_setup_teardown(ops_describe_themselves_to_bindings, begin, end),
        cmocka_unit_test_setup_teardown(descriptions_of_ops_are_written_over, begin, end),
        cmocka_unit_test_setup_teardown(lists_are_as_long_as_was_said, begin, end),
        cmocka_unit_test(operation_may_be_called_anything_and_is_looked_at_closely_when_it_runs),
        cmocka_unit_test_setup_teardown(edges_change, begin, end),
        cmocka_unit_test_setup_teardown(operations_change, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

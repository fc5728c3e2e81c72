/* test_errors.c - TensorFlow's C API where it is called wrongly: codes are TensorFlow's, and so is who owns what
 * then. */
#include "fixture.h"

#include <unistd.h>

/* ---- attributes ------------------------------------------------------------------------------------------------- */

enum { MOST = 8 };

/* Every getter, in the order of its result's kind. */
static const char *const getters[] = {"String", "StringList", "Int",        "IntList",       "Float", "FloatList",
                                      "Bool",   "BoolList",   "Type",       "TypeList",      "Shape", "ShapeList",
                                      "Tensor", "TensorList", "ShapeProto", "ShapeProtoList"};
enum { STRING, INT = 2, FLOAT = 4, BOOL = 6, TYPE = 8, SHAPE = 10, TENSOR = 12, PROTO = 14, NUM_GETTERS = 16 };

static void get(TF_Operation *oper, const char *name, int getter)
{
    char text[64];
    void *texts[MOST];
    size_t lengths[MOST];
    int64_t ints[MOST], *shapes[MOST];
    float floats[MOST];
    unsigned char bools[MOST];
    TF_DataType types[MOST];
    int ranks[MOST];
    TF_Tensor *tensors[MOST] = {NULL};
    TF_Buffer *buffer = TF_NewBuffer(), *buffers[MOST] = {NULL};
    TF_SetStatus(s, TF_OK, ""); /* TensorFlow's own leaves it alone in some of them */
    switch (getter) {
    case STRING:
        TF_OperationGetAttrString(oper, name, text, sizeof text, s);
        break;
    case STRING + 1:
        TF_OperationGetAttrStringList(oper, name, texts, lengths, MOST, text, sizeof text, s);
        break;
    case INT:
        TF_OperationGetAttrInt(oper, name, ints, s);
        break;
    case INT + 1:
        TF_OperationGetAttrIntList(oper, name, ints, MOST, s);
        break;
    case FLOAT:
        TF_OperationGetAttrFloat(oper, name, floats, s);
        break;
    case FLOAT + 1:
        TF_OperationGetAttrFloatList(oper, name, floats, MOST, s);
        break;
    case BOOL:
        TF_OperationGetAttrBool(oper, name, bools, s);
        break;
    case BOOL + 1:
        TF_OperationGetAttrBoolList(oper, name, bools, MOST, s);
        break;
    case TYPE:
        TF_OperationGetAttrType(oper, name, types, s);
        break;
    case TYPE + 1:
        TF_OperationGetAttrTypeList(oper, name, types, MOST, s);
        break;
    case SHAPE:
        TF_OperationGetAttrShape(oper, name, ints, MOST, s);
        break;
    case SHAPE + 1:
        TF_OperationGetAttrShapeList(oper, name, shapes, ranks, MOST, ints, MOST, s);
        break;
    case TENSOR:
        TF_OperationGetAttrTensor(oper, name, tensors, s);
        break;
    case TENSOR + 1:
        TF_OperationGetAttrTensorList(oper, name, tensors, MOST, s);
        break;
    case PROTO:
        TF_OperationGetAttrTensorShapeProto(oper, name, buffer, s);
        break;
    default:
        TF_OperationGetAttrTensorShapeProtoList(oper, name, buffers, MOST, s);
    }
    TF_DeleteBuffer(buffer);
    for (int i = 0; i < MOST; i++) {
        TF_DeleteTensor(tensors[i]);
        TF_DeleteBuffer(buffers[i]);
    }
}

/* An operation with an attribute of each kind. */
static void add_operations(void)
{
    static const int64_t sizes[] = {1, 2, 2, 1}, two[] = {2, 3};
    TF_Output a = out(placeholder(graph, "a", TF_FLOAT, s)), b = out(placeholder(graph, "b", TF_FLOAT, s));
    binary(graph, "MatMul", "product", a, b, s);
    add(graph, "sum", a, b, s);
    assert_fine(s);
    constant(graph, "constant", int_tensor(3), s);
    TF_OperationDescription *d = TF_NewOperation(graph, "LeakyRelu", "leaky");
    TF_AddInput(d, a);
    TF_SetAttrFloat(d, "alpha", 0.25f);
    TF_FinishOperation(d, s);
    assert_fine(s);
    d = TF_NewOperation(graph, "MaxPool", "pool");
    TF_AddInput(d, a);
    TF_SetAttrString(d, "padding", "SAME", 4);
    TF_SetAttrIntList(d, "ksize", sizes, 4);
    TF_SetAttrIntList(d, "strides", sizes, 4);
    TF_ColocateWith(d, a.oper);
    TF_FinishOperation(d, s);
    assert_fine(s);
    d = TF_NewOperation(graph, "FIFOQueueV2", "queue");
    TF_SetAttrTypeList(d, "component_types", (TF_DataType[]){TF_FLOAT, TF_INT32}, 2);
    TF_SetAttrShapeList(d, "shapes", (const int64_t *[]){two, two}, (int[]){2, 1}, 2);
    TF_FinishOperation(d, s);
    assert_fine(s);
    d = TF_NewOperation(graph, "Bucketize", "buckets");
    TF_AddInput(d, a);
    TF_SetAttrFloatList(d, "boundaries", (float[]){1, 2}, 2);
    TF_FinishOperation(d, s);
    assert_fine(s);
    d = TF_NewOperation(graph, "Squeeze", "squeezed");
    TF_AddInput(d, a);
    TF_SetAttrIntList(d, "squeeze_dims", NULL, 0);
    TF_FinishOperation(d, s);
    assert_fine(s);
}

static TF_Operation *find(const char *name)
{
    TF_Operation *found = TF_GraphOperationByName(graph, name);
    assert_non_null(found);
    return found;
}

static void attributes_of_another_kind_are_refused(void **state)
{
    static const struct {
        const char *oper, *attr;
        int getter;
    } cases[] = {
        {"pool", "padding", STRING},
        {"pool", "_class", STRING + 1},
        {"sum", "N", INT},
        {"pool", "ksize", INT + 1},
        {"squeezed", "squeeze_dims", INT + 1},
        {"leaky", "alpha", FLOAT},
        {"buckets", "boundaries", FLOAT + 1},
        {"product", "transpose_a", BOOL},
        {"product", "T", TYPE},
        {"queue", "component_types", TYPE + 1},
        {"a", "shape", SHAPE},
        {"queue", "shapes", SHAPE + 1},
        {"constant", "value", TENSOR},
    };
    (void)state;
    add_operations();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int getter = 0; getter < NUM_GETTERS; getter++) {
            bool is_shape = cases[i].getter == SHAPE || cases[i].getter == SHAPE + 1;
            bool fits = getter == cases[i].getter || (is_shape && getter == cases[i].getter - SHAPE + PROTO);
            /* TensorFlow's own copies nothing of a list of another kind, and finds that well. */
            if (!fits && getter % 2 && cases[i].getter % 2)
                continue;
            get(find(cases[i].oper), cases[i].attr, getter);
            if (TF_GetCode(s) != (fits ? TF_OK : TF_INVALID_ARGUMENT))
                fail_msg("%s of '%s': %d: %s", getters[getter], cases[i].attr, TF_GetCode(s), TF_Message(s));
        }
}

static void attributes_that_are_not_there_are_told(void **state)
{
    (void)state;
    add_operations();
    for (int getter = 0; getter < NUM_GETTERS; getter++) {
        bool looks_otherwise = getter < PROTO && getter != STRING && (getter % 2 == 0 || getter > SHAPE);
        get(find("product"), "nothing", getter);
        if (TF_GetCode(s) != (looks_otherwise ? TF_NOT_FOUND : TF_INVALID_ARGUMENT) ||
            !strstr(TF_Message(s), "o attr named 'nothing'"))
            fail_msg("%s: %d: %s", getters[getter], TF_GetCode(s), TF_Message(s));
    }
    TF_OperationGetAttrMetadata(find("product"), "nothing", s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Operation 'product' has no attr named 'nothing'.");
    char name[64];
    TF_OperationGetAttrName(find("product"), 99, name, s);
    assert_wrong(s, TF_OUT_OF_RANGE, "can't get the 99th");
}

static void no_more_is_written_than_there_is_room(void **state)
{
    (void)state;
    char text[] = "........";
    int64_t ints[] = {9, 9, 9, 9}, *shapes[2];
    int ranks[2];
    float floats[] = {9, 9};
    void *texts[2];
    size_t lengths[2];
    add_operations();
    TF_OperationGetAttrString(find("pool"), "padding", text, 2, s);
    assert_fine(s);
    assert_string_equal(text, "SA......");
    memset(text, '.', sizeof text - 1);
    TF_OperationGetAttrName(find("a"), 0, text, s);
    assert_fine(s);
    assert_int_equal(text[TF_OperationGetAttrNameLength(find("a"), 0)], '.');
    memset(text, '.', sizeof text - 1);
    TF_OperationGetAttrIntList(find("pool"), "ksize", ints, 2, s);
    assert_fine(s);
    assert_true(ints[0] == 1 && ints[1] == 2 && ints[2] == 9);
    TF_OperationGetAttrFloatList(find("buckets"), "boundaries", floats, 0, s);
    assert_fine(s);
    assert_float_equal(floats[0], 9, 0);
    TF_OperationGetAttrStringList(find("pool"), "_class", texts, lengths, 2, text, 3, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Not enough storage to hold the requested list of strings");
    assert_string_equal(text, "........");
    TF_OperationGetAttrShapeList(find("queue"), "shapes", shapes, ranks, 2, ints, 1, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Not enough storage to hold the requested list of shapes");
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

static void node_without_an_op_is_not_imported(void **state)
{
    (void)state;
    TF_Buffer *def = TF_NewBufferFromString("\n\003\n\001n", 5);
    TF_ImportGraphDefOptions *options = TF_NewImportGraphDefOptions();
    TF_GraphImportGraphDef(graph, def, options, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Node 'n' does not specify an operation");
    assert_null(TF_GraphOperationByName(graph, "n"));
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(def);
}

/* A ConcatV2 of one: it must have two. */
static void import_checks_minima_of_attributes(void **state)
{
    (void)state;
    TF_Buffer *def = TF_NewBufferFromString("\n\064"
                                            "\n\001c\022\010ConcatV2\032\001x\032\004axis"
                                            "*\007\n\001N\022\002\030\001"
                                            "*\007\n\001T\022\002\060\001"
                                            "*\n\n\004Tidx\022\002\060\003",
                                            54);
    TF_ImportGraphDefOptions *options = TF_NewImportGraphDefOptions();
    TF_ImportGraphDefOptionsAddInputMapping(options, "x", 0, out(placeholder(graph, "x", TF_FLOAT, s)));
    TF_ImportGraphDefOptionsAddInputMapping(options, "axis", 0, out(placeholder(graph, "axis", TF_INT32, s)));
    TF_GraphImportGraphDef(graph, def, options, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Value for attr 'N' of 1 must be at least minimum 2");
    assert_null(TF_GraphOperationByName(graph, "c"));
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(def);
}

static void indexes_out_of_range_are_told(void **state)
{
    (void)state;
    TF_Operation *a = placeholder(graph, "a", TF_FLOAT, s), *negative = unary(graph, "Neg", "negative", out(a), s);
    TF_Session *session = session_of(graph, s);
    for (int index = 1; index < 6; index += 4) {
        TF_Tensor *value = float_tensor(NULL, 0, (float[]){1}), *result = NULL;
        assert_null(run(session, out(a), value, (TF_Output){negative, index}, s));
        assert_wrong(s, TF_OUT_OF_RANGE, "does not have output");
        TF_SessionRun(session, NULL, &(TF_Output){a, index}, &value, 1, &(TF_Output){negative, 0}, &result, 1, NULL, 0,
                      NULL, s);
        assert_wrong(s, TF_OUT_OF_RANGE, "does not have output");
        TF_DeleteTensor(value);
        TF_OperationDescription *d = TF_NewOperation(graph, "Neg", "of_nothing");
        TF_AddInput(d, (TF_Output){negative, index});
        assert_null(TF_FinishOperation(d, s));
        assert_wrong(s, TF_INVALID_ARGUMENT, "output");
    }
    TF_Tensor *one = float_tensor(NULL, 0, (float[]){1});
    assert_null(run(session, out(a), one, (TF_Output){negative, -1}, s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "-1");
    assert_null(run(session, (TF_Output){a, -1}, one, out(negative), s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "-1");
    TF_DeleteTensor(one);
    assert_int_equal(TF_OperationInputListLength(negative, "nothing", s), -1);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Input arg 'nothing' not found");
    assert_int_equal(TF_OperationOutputListLength(negative, "x", s), -1);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Output arg 'x' not found");
    close_session(session, s);
}

typedef void set_attr(TF_OperationDescription *d);

static void sets_nothing(TF_OperationDescription *d)
{
    (void)d;
}

static void sets_wrong_kind(TF_OperationDescription *d)
{
    TF_SetAttrInt(d, "transpose_a", 1);
}

static void sets_other_type(TF_OperationDescription *d)
{
    TF_SetAttrType(d, "T", TF_INT32);
}

static void sets_no_type(TF_OperationDescription *d)
{
    TF_SetAttrType(d, "dtype", (TF_DataType)99);
}

static void sets_wrong_padding(TF_OperationDescription *d)
{
    static const int64_t sizes[] = {1, 2, 2, 1};
    TF_SetAttrString(d, "padding", "WRONG", 5);
    TF_SetAttrIntList(d, "ksize", sizes, 4);
    TF_SetAttrIntList(d, "strides", sizes, 4);
}

static void sets_short_size(TF_OperationDescription *d)
{
    static const int64_t sizes[] = {1, 2, 2, 1};
    TF_SetAttrString(d, "padding", "SAME", 4);
    TF_SetAttrIntList(d, "ksize", sizes, 3);
    TF_SetAttrIntList(d, "strides", sizes, 4);
}

static void sets_small_block(TF_OperationDescription *d)
{
    TF_SetAttrInt(d, "block_size", 1);
}

static void sets_no_values(TF_OperationDescription *d)
{
    TF_AddInputList(d, NULL, 0);
}

/* Operations that cannot be leave the graph as it was. */
static void operations_that_cannot_be_are_refused(void **state)
{
    static const struct {
        const char *op, *name;
        int inputs;
        set_attr *set;
        const char *says;
    } cases[] = {
        {"Nothing", "x", 0, sets_nothing, "Op type not registered 'Nothing'"},
        {"MatMul", "x", 1, sets_nothing, "'x'"},
        {"MatMul", "x", 3, sets_nothing, "'x'"},
        {"MatMul", "a", 2, sets_nothing, "Duplicate node name in graph: 'a'"},
        {"MatMul", "x", 2, sets_wrong_kind, "transpose_a"},
        {"MatMul", "x", 2, sets_other_type, "x"},
        {"Placeholder", "x", 0, sets_nothing, "dtype"},
        {"Placeholder", "x", 0, sets_no_type, "99"},
        {"Const", "x", 0, sets_nothing, "value"},
        {"MaxPool", "x", 1, sets_wrong_padding, "padding"},
        {"MaxPool", "x", 1, sets_short_size, "ksize"},
        {"SpaceToDepth", "x", 1, sets_small_block, "Value for attr 'block_size' of 1 must be at least minimum 2"},
        {"Stage", "x", 0, sets_no_values, "Length for attr 'dtypes' of 0 must be at least minimum 1"},
    };
    (void)state;
    TF_Output a = out(placeholder(graph, "a", TF_FLOAT, s));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TF_OperationDescription *d = TF_NewOperation(graph, cases[i].op, cases[i].name);
        for (int k = 0; k < cases[i].inputs; k++)
            TF_AddInput(d, a);
        cases[i].set(d);
        assert_null(TF_FinishOperation(d, s));
        assert_wrong(s, TF_INVALID_ARGUMENT, cases[i].says);
        assert_null(TF_GraphOperationByName(graph, "x"));
    }
}

static void feeds_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    TF_Operation *a = placeholder(graph, "a", TF_FLOAT, s), *negative = unary(graph, "Neg", "negative", out(a), s);
    TF_Session *session = session_of(graph, s);
    TF_Tensor *whole = int_tensor(1), *one = float_tensor(NULL, 0, (float[]){1}), *result = NULL;
    assert_null(run(session, out(a), whole, out(negative), s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "int32");
    assert_null(run(session, (TF_Output){NULL, 0}, NULL, out(negative), s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "You must feed a value for placeholder tensor 'a'");
    assert_null(run(session, out(negative), one, out(negative), s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "both fed and fetched");
    TF_SessionRun(session, NULL, (TF_Output[]){out(a), out(a)}, (TF_Tensor *[]){one, one}, 2, &(TF_Output){negative, 0},
                  &result, 1, NULL, 0, NULL, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "fed");
    assert_null(result);
    TF_DeleteTensor(whole);
    TF_DeleteTensor(one);
    close_session(session, s);
}

/* ---- tensors ---------------------------------------------------------------------------------------------------- */

static void count_call(void *data, size_t length, void *calls)
{
    (void)data;
    (void)length;
    ++*(int *)calls;
}

/* Whether there is a tensor or none: what it was made of is given back once. */
static void memory_is_given_back_once(void **state)
{
    static const struct {
        TF_DataType type;
        int64_t dims[2];
        int num_dims;
        size_t bytes, at;
        bool fits;
    } cases[] = {
        {TF_FLOAT, {0}, 0, 0, 0, false},   {TF_FLOAT, {2}, 1, 7, 0, false},   {TF_FLOAT, {2}, 1, 8, 0, true},
        {TF_FLOAT, {2}, 1, 8, 1, true},    {TF_FLOAT, {2}, 1, 8, 4, true},    {TF_INT64, {0}, 1, 0, 0, true},
        {TF_BOOL, {3}, 1, 3, 1, true},     {TF_FLOAT, {2, 0}, 2, 0, 0, true}, {TF_RESOURCE, {0}, 0, 8, 0, true},
        {TF_VARIANT, {0}, 0, 64, 0, true},
    };
    static _Alignas(64) char memory[128];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int calls = 0;
        TF_Tensor *tensor = TF_NewTensor(cases[i].type, cases[i].dims, cases[i].num_dims, memory + cases[i].at,
                                         cases[i].bytes, count_call, &calls);
        assert_int_equal(tensor != NULL, cases[i].fits);
        if (tensor && TF_TensorData(tensor) == memory + cases[i].at)
            assert_int_equal(calls, 0);
        TF_DeleteTensor(tensor);
        assert_int_equal(calls, 1);
    }
}

static void tensors_of_nothing_go_through_a_run(void **state)
{
    (void)state;
    TF_Operation *a = placeholder(graph, "a", TF_FLOAT, s), *texts = placeholder(graph, "texts", TF_STRING, s);
    TF_Output outputs[] = {out(unary(graph, "Neg", "negative", out(a), s)),
                           out(unary(graph, "Identity", "same", out(texts), s))};
    TF_Tensor *values[] = {TF_AllocateTensor(TF_FLOAT, (int64_t[]){2, 0}, 2, 0),
                           TF_AllocateTensor(TF_STRING, (int64_t[]){0}, 1, 0)};
    TF_Tensor *results[2] = {NULL};
    TF_Session *session = session_of(graph, s);
    TF_SessionRun(session, NULL, (TF_Output[]){out(a), out(texts)}, values, 2, outputs, results, 2, NULL, 0, NULL, s);
    assert_fine(s);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(TF_TensorElementCount(results[i]), 0);
        assert_int_equal(TF_TensorByteSize(results[i]), 0);
        assert_int_equal(TF_NumDims(results[i]), TF_NumDims(values[i]));
        TF_DeleteTensor(values[i]);
        TF_DeleteTensor(results[i]);
    }
    close_session(session, s);
}

static void messages_that_are_no_tensors_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {{"", 0}, {"\xff\xff", 2}, {"\x08\x63", 2}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TF_Tensor *tensor = int_tensor(7);
        TF_Buffer *buffer = TF_NewBufferFromString(cases[i].bytes, cases[i].size);
        TF_TensorFromProto(buffer, tensor, s);
        assert_wrong(s, TF_INVALID_ARGUMENT, "Unparseable");
        TF_DeleteBuffer(buffer);
        TF_DeleteTensor(tensor);
    }
}

/* ---- saved models ----------------------------------------------------------------------------------------------- */

/* What is called saved_model.pb is one, or damaged. */
static void saved_models_that_are_none_are_told(void **state)
{
    static const struct {
        const char *name, *bytes;
        TF_Code code;
        const char *says;
    } cases[] = {
        {"saved_model.pb", "", TF_NOT_FOUND, "Could not find meta graph def matching supplied tags: { serve }."},
        {"saved_model.pbtxt", "", TF_NOT_FOUND, "Could not find meta graph def matching supplied tags: { serve }."},
        {"saved_model.pb", "<html>not found</html>", TF_DATA_LOSS, "saved_model.pb"},
        {"saved_model.pbtxt", "nothing { {", TF_DATA_LOSS, "saved_model.pbtxt"},
        {"saved_model.pb", "\x12\x09\x0a\x07\x22\x05train", TF_NOT_FOUND, "Could not find meta graph def"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char folder[] = "/tmp/no_model_XXXXXX", path[64];
        assert_non_null(mkdtemp(folder));
        snprintf(path, sizeof path, "%s/%s", folder, cases[i].name);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(cases[i].bytes, file);
        fclose(file);
        TF_SessionOptions *options = TF_NewSessionOptions();
        assert_null(TF_LoadSessionFromSavedModel(options, NULL, folder, (const char *[]){"serve"}, 1, graph, NULL, s));
        TF_DeleteSessionOptions(options);
        remove(path);
        rmdir(folder);
        assert_wrong(s, cases[i].code, cases[i].says);
#ifndef ON_TENSORFLOW
        if (!*cases[i].bytes)
            assert_wrong(s, cases[i].code, "there are none");
#endif
    }
}

/* ---- shapes that do not fit ------------------------------------------------------------------------------------- */

static TF_Output whole_numbers(const char *name, int rank, int64_t count, const int32_t *values)
{
    TF_Tensor *tensor = TF_AllocateTensor(TF_INT32, &count, rank, (size_t)(rank ? count : 1) * sizeof *values);
    memcpy(TF_TensorData(tensor), values, TF_TensorByteSize(tensor));
    return out(constant(graph, name, tensor, s));
}

/* What is known when an operation is built is refused then. */
static void shapes_that_do_not_fit_are_refused(void **state)
{
    static const struct {
        const char *op;
        char inputs[4]; /* x: of two axes; 0, 1, 9: that number; v, w: two numbers that differ, or not; u: not known */
    } cases[] = {
        {"ReverseV2", "x0"}, {"ReverseV2", "xw"}, {"ReverseV2", "u0"}, {"ExpandDims", "xv"}, {"ExpandDims", "x9"},
        {"Split", "vx"},     {"SplitV", "0v0"},   {"SplitV", "xvv"},   {"TopKV2", "xv"},     {"ScatterNd", "0vv"},
        {"Split", "9x"},     {"ExpandDims", "uv"}, {"InvertPermutation", "0"},
#ifndef ON_TENSORFLOW /* which it ends */
        {"SplitV", "x00"},
#endif
    };
    (void)state;
    int64_t dims[] = {2, 3};
    TF_Output x = out(placeholder(graph, "x", TF_INT32, s)), unknown = out(placeholder(graph, "open", TF_INT32, s));
    TF_GraphSetTensorShape(graph, x, dims, 2, s);
    TF_Output zero = whole_numbers("0", 0, 0, (int32_t[]){0}), nine = whole_numbers("9", 0, 0, (int32_t[]){9});
    TF_Output v = whole_numbers("v", 1, 2, (int32_t[]){0, 1}), w = whole_numbers("w", 1, 2, (int32_t[]){-1, 1});
    const char letters[] = "xu09vw";
    const TF_Output inputs[] = {x, unknown, zero, nine, v, w};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[16];
        snprintf(name, sizeof name, "wrong%zu", i);
        TF_OperationDescription *d = TF_NewOperation(graph, cases[i].op, name);
        for (const char *c = cases[i].inputs; *c; c++)
            TF_AddInput(d, inputs[strchr(letters, *c) - letters]);
        if (strncmp(cases[i].op, "Split", 5) == 0)
            TF_SetAttrInt(d, "num_split", 2);
        if (TF_FinishOperation(d, s) || TF_GetCode(s) != TF_INVALID_ARGUMENT)
            fail_msg("%s of '%s' is taken", cases[i].op, cases[i].inputs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(attributes_of_another_kind_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(attributes_that_are_not_there_are_told, begin, end),
        cmocka_unit_test_setup_teardown(no_more_is_written_than_there_is_room, begin, end),
        cmocka_unit_test_setup_teardown(node_without_an_op_is_not_imported, begin, end),
        cmocka_unit_test_setup_teardown(import_checks_minima_of_attributes, begin, end),
        cmocka_unit_test_setup_teardown(indexes_out_of_range_are_told, begin, end),
        cmocka_unit_test_setup_teardown(operations_that_cannot_be_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(feeds_that_do_not_fit_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(memory_is_given_back_once, begin, end),
        cmocka_unit_test_setup_teardown(tensors_of_nothing_go_through_a_run, begin, end),
        cmocka_unit_test_setup_teardown(messages_that_are_no_tensors_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(saved_models_that_are_none_are_told, begin, end),
        cmocka_unit_test_setup_teardown(shapes_that_do_not_fit_are_refused, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

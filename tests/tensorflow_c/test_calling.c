/* What is made of graphs: gradients, functions, loops, constants; partial runs. */
#include "fixture.h"

/* The value of a scalar or of an element, of a graph that is fed nothing. */
static double value_of(TF_Output output, int element)
{
    TF_Session *session = session_of(graph, s);
    TF_Tensor *result = run(session, (TF_Output){NULL, 0}, NULL, output, s);
    assert_fine(s);
    double value = TF_TensorType(result) == TF_INT32 ? ((int32_t *)TF_TensorData(result))[element]
                                                     : ((float *)TF_TensorData(result))[element];
    TF_DeleteTensor(result);
    close_session(session, s);
    return value;
}

static TF_Output floats(const char *name, float a, float b, float c, float d)
{
    return out(constant(graph, name, float_tensor((int64_t[]){2, 2}, 2, (float[]){a, b, c, d}), s));
}

/* ---- gradients ------------------------------------------------------------------------------------------------------
 */

static void gradients_of_a_product(void **state)
{
    (void)state;
    TF_Output x[] = {floats("a", 1, 2, 3, 4), floats("b", 1, 0, 0, 1), floats("other", 1, 1, 1, 1)}, dy[3];
    TF_Output y = out(binary(graph, "MatMul", "product", x[0], x[1], s));
    TF_AddGradients(graph, &y, 1, x, 2, NULL, s, dy);
    assert_fine(s);
    assert_float_equal(value_of(dy[0], 0), 1, 0);
    assert_float_equal(value_of(dy[1], 0), 4, 0); /* the sum of a column */
    assert_string_equal(TF_OperationName(dy[0].oper), "gradients/MatMul");
    assert_string_equal(TF_OperationName(dy[1].oper), "gradients/MatMul_1");
    assert_string_equal(TF_OperationName(TF_OperationInput((TF_Input){dy[0].oper, 0}).oper), "gradients/OnesLike");
    TF_Output given = floats("given", 1, -1.5f, 2, 1);
    TF_AddGradients(graph, &y, 1, x, 2, &given, s, dy);
    assert_fine(s);
    assert_float_equal(value_of(dy[0], 1), -1.5, 0);
    assert_float_equal(value_of(dy[1], 0), 1 + 3 * 2, 0);
    assert_string_equal(TF_OperationName(dy[0].oper), "gradients_1/MatMul");
    /* The last, for TensorFlow's own leaves behind what it has added. */
    TF_AddGradients(graph, &y, 1, x, 3, NULL, s, dy);
    assert_wrong(s, TF_INVALID_ARGUMENT,
                 "Cannot compute the partial derivative for node 'other' as it's unreachable from the output node(s).");
}

/* Those of TensorFlow's classes of C++, which are not all called as their ops are. */
static void nodes_of_gradients_have_names_of_classes(void **state)
{
    static const struct {
        const char *op, *adds;
        int inputs;
    } cases[] = {{"Mul", "Multiply", 2}, {"Neg", "Negate", 1}, {"Sub", "Negate", 2}, {"Maximum", "Where3", 2},
                 {"Softmax", "Subtract", 1}};
    (void)state;
    TF_Output x[] = {floats("a", 1, 2, 3, 4), floats("b", 1, 0, 0, 1)}, dy[2];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TF_Operation *y = cases[i].inputs == 2 ? binary(graph, cases[i].op, cases[i].op, x[0], x[1], s)
                                               : unary(graph, cases[i].op, cases[i].op, x[0], s);
        char scope[40], name[80];
        snprintf(scope, sizeof scope, "of_%s", cases[i].op);
        snprintf(name, sizeof name, "%s/%s", scope, cases[i].adds);
        TF_AddGradientsWithPrefix(graph, scope, &(TF_Output){y, 0}, 1, x, cases[i].inputs, NULL, s, dy);
        assert_fine(s);
        if (!TF_GraphOperationByName(graph, name))
            fail_msg("%s is not there", name);
    }
}

static void prefixes_of_gradients_are_ones_own(void **state)
{
    (void)state;
    TF_Output x = floats("a", 1, 2, 3, 4), y = out(unary(graph, "Square", "square", x, s)), dy;
    TF_AddGradientsWithPrefix(graph, "scope/mine", &y, 1, &x, 1, NULL, s, &dy);
    assert_fine(s);
    assert_int_equal(strncmp(TF_OperationName(dy.oper), "scope/mine/", 11), 0);
    assert_float_equal(value_of(dy, 1), 4, 0);
    TF_AddGradientsWithPrefix(graph, "scope/mine", &y, 1, &x, 1, NULL, s, &dy);
    assert_wrong(s, TF_INVALID_ARGUMENT, "prefix [scope/mine] conflicts with existing node in the graph named [");
    TF_AddGradientsWithPrefix(graph, "scope", &y, 1, &x, 1, NULL, s, &dy);
    assert_wrong(s, TF_INVALID_ARGUMENT, "prefix [scope] conflicts with");
    TF_AddGradientsWithPrefix(graph, "square", &y, 1, &x, 1, NULL, s, &dy);
    assert_wrong(s, TF_INVALID_ARGUMENT, "prefix [square] conflicts with existing node in the graph named [square]");
    TF_SetStatus(s, TF_OK, "");
    TF_Output ones = floats("ones", 1, 1, 1, 1), second;
    TF_AddGradientsWithPrefix(graph, "scope/mine_1", &y, 1, &x, 1, &ones, s, &dy);
    assert_fine(s);
    /* Gradients of gradients: with what they begin with given, for TensorFlow's own do not go back through OnesLike. */
    TF_AddGradientsWithPrefix(graph, "second", &dy, 1, &x, 1, NULL, s, &second);
    assert_fine(s);
    assert_float_equal(value_of(second, 0), 2, 0);
}

/* Two calls, and what the first gradient of the second is called; NULL: it is refused. */
static void prefixes_of_gradients_do_not_meet(void **state)
{
    (void)state;
    static const char *const prefixes[][3] = {
        {"gradients", "gradients_1", "gradients_1/MatMul"},
        {"scope/gradients", "scope/gradients_1", "scope/gradients_1/MatMul"},
        {"scope/gradients", "scope_1/gradients", "scope_1/gradients/MatMul"},
        {"gradients", "gradients/sub", "gradients/sub/MatMul"},
        {"gradients", NULL, "gradients_1/MatMul"},
        {NULL, NULL, "gradients_1/MatMul"},
        {"mine", "Const_0", NULL},
        {"gradients", "gradients", NULL},
        {"gradients", "gradients/MatMul", NULL},
        {"gradients/MatMul", "gradients", NULL},
        {"gradients/sub", "gradients", NULL},
        {NULL, "gradients", NULL},
    };
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        end(state);
        begin(state);
        TF_Output x[] = {floats("Const_0", 1, 2, 3, 4), floats("Const_1", 1, 0, 0, 1)}, dy[2];
        TF_Output y = out(binary(graph, "MatMul", "MatMul", x[0], x[1], s));
        TF_AddGradientsWithPrefix(graph, prefixes[i][0], &y, 1, x, 2, NULL, s, dy);
        assert_fine(s);
        TF_AddGradientsWithPrefix(graph, prefixes[i][1], &y, 1, x, 2, NULL, s, dy);
        if (!prefixes[i][2]) {
            assert_wrong(s, TF_INVALID_ARGUMENT, "] conflicts with existing node in the graph named [");
            continue;
        }
        assert_fine(s);
        assert_string_equal(TF_OperationName(dy[0].oper), prefixes[i][2]);
    }
}

static void op_without_a_gradient_leaves_the_graph_as_it_was(void **state)
{
    (void)state;
    TF_Output x = floats("x", 1, 2, 3, 4), dy;
    TF_OperationDescription *d = TF_NewOperation(graph, "TruncateMod", "whole");
    TF_AddInput(d, x);
    TF_AddInput(d, x);
    TF_Output y = out(TF_FinishOperation(d, s));
    assert_fine(s);
    TF_AddGradients(graph, &y, 1, &x, 1, NULL, s, &dy);
    assert_wrong(s, TF_NOT_FOUND,
                 "No gradient defined for op: TruncateMod. Please see "
                 "https://www.tensorflow.org/code/tensorflow/cc/gradients/README.md for instructions on how to add C++ "
                 "gradients.");
    y = out(unary(graph, "Square", "square", x, s));
    TF_AddGradientsWithPrefix(graph, "then", &y, 1, &x, 1, NULL, s, &dy);
    assert_fine(s);
    assert_float_equal(value_of(dy, 3), 8, 0);
}

/* ---- constants ------------------------------------------------------------------------------------------------------
 */

static void constants_can_be_evaluated(void **state)
{
    (void)state;
    TF_Operation *sum =
        add(graph, "sum", out(constant(graph, "a", int_tensor(2), s)), out(constant(graph, "b", int_tensor(3), s)), s);
    TF_Tensor *value;
    assert_int_equal(TF_TryEvaluateConstant(graph, out(sum), &value, s), 1);
    assert_fine(s);
    assert_int_equal(*(int32_t *)TF_TensorData(value), 5);
    TF_DeleteTensor(value);
    TF_Operation *x = placeholder(graph, "x", TF_INT32, s);
    assert_int_equal(TF_TryEvaluateConstant(graph, out(unary(graph, "Neg", "neg", out(x), s)), &value, s), 0);
    assert_fine(s);
    assert_null(value);
}

/* Of a placeholder [2,3], which is not fed, and of a constant whose value is needed, too. */
static void known_shapes_can_be_evaluated(void **state)
{
    (void)state;
    TF_Operation *x = placeholder(graph, "x", TF_FLOAT, s), *y = placeholder(graph, "y", TF_FLOAT, s);
    TF_GraphSetTensorShape(graph, out(x), (int64_t[]){2, 3}, 2, s);
    TF_GraphSetTensorShape(graph, out(y), (int64_t[]){-1, 3}, 2, s);
    assert_fine(s);
    TF_Operation *shape = unary(graph, "Shape", "shape", out(unary(graph, "Neg", "neg", out(x), s)), s);
    TF_Operation *five = constant(graph, "five", int_tensor(5), s), *zero = constant(graph, "0", int_tensor(0), s);
    TF_Output rank = out(unary(graph, "Rank", "of_five", out(five), s));
    const struct {
        TF_Operation *oper;
        int first;
    } known[] = {{shape, 2},
                 {binary(graph, "Prod", "product", out(shape), out(zero), s), 6},
                 {unary(graph, "Size", "size", out(x), s), 6},
                 {unary(graph, "Rank", "rank", out(x), s), 2},
                 {add(graph, "sum", rank, out(five), s), 5}};
    TF_Tensor *value;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(TF_TryEvaluateConstant(graph, out(known[i].oper), &value, s), 1);
        assert_fine(s);
        assert_int_equal(TF_NumDims(value), i == 0);
        assert_int_equal(*(int32_t *)TF_TensorData(value), known[i].first);
        TF_DeleteTensor(value);
    }
    assert_int_equal(TF_TryEvaluateConstant(graph, out(unary(graph, "Shape", "other", out(y), s)), &value, s), 0);
    assert_fine(s);
    assert_null(value);
}

/* ---- functions ------------------------------------------------------------------------------------------------------
 */

/* MyFunc(feed1, feed2) = feed1 + feed2 */
static TF_Function *sum_function(const char *name, unsigned char append_hash)
{
    TF_Graph *body = TF_NewGraph();
    TF_Operation *a = placeholder(body, "feed1", TF_INT32, s), *b = placeholder(body, "feed2", TF_INT32, s);
    TF_Output inputs[] = {out(a), out(b)}, result = out(add(body, "sum", inputs[0], inputs[1], s));
    assert_fine(s);
    TF_Function *function =
        TF_GraphToFunction(body, name, append_hash, -1, NULL, 2, inputs, 1, &result, NULL, NULL, NULL, s);
    assert_fine(s);
    TF_DeleteGraph(body);
    return function;
}

static TF_Operation *pool_over_channels(TF_Output x, const char *name, int64_t size, int64_t stride)
{
    TF_OperationDescription *d = TF_NewOperation(graph, "MaxPool", name);
    TF_AddInput(d, x);
    TF_SetAttrIntList(d, "ksize", (int64_t[]){1, 1, 1, size}, 4);
    TF_SetAttrIntList(d, "strides", (int64_t[]){1, 1, 1, stride}, 4);
    TF_SetAttrString(d, "padding", "VALID", 5);
    return TF_FinishOperation(d, s);
}

static void maxima_are_taken_over_channels(void **state)
{
    (void)state;
    TF_Output x = out(placeholder(graph, "x", TF_FLOAT, s));
    TF_GraphSetTensorShape(graph, x, (int64_t[]){-1, -1, 3, 4}, 4, s);
    TF_Operation *pool = pool_over_channels(x, "pool", 2, 2);
    int64_t dims[4] = {0};
    assert_fine(s);
    TF_GraphGetTensorShape(graph, out(pool), dims, 4, s);
    assert_fine(s);
    assert_memory_equal(dims, ((int64_t[]){-1, -1, 3, 2}), sizeof dims);
    float values[48];
    for (int i = 0; i < 48; i++)
        values[i] = (float)(i * 29 % 48 - 20);
    TF_Session *session = session_of(graph, s);
    TF_Tensor *fed = float_tensor((int64_t[]){2, 2, 3, 4}, 4, values), *maxima = run(session, x, fed, out(pool), s);
    assert_fine(s);
    assert_int_equal(TF_TensorElementCount(maxima), 24);
    for (int i = 0; i < 24; i++)
        assert_float_equal(((float *)TF_TensorData(maxima))[i],
                           values[2 * i] > values[2 * i + 1] ? values[2 * i] : values[2 * i + 1], 0);
    TF_DeleteTensor(maxima);
    TF_OperationDescription *d = TF_NewOperation(graph, "MaxPool", "whole");
    TF_AddInput(d, x);
    TF_SetAttrIntList(d, "ksize", (int64_t[]){1, 2, 3, 4}, 4);
    TF_SetAttrIntList(d, "strides", (int64_t[]){1, 1, 1, 1}, 4);
    TF_SetAttrString(d, "padding", "VALID", 5);
    TF_Operation *whole = TF_FinishOperation(d, s);
    assert_fine(s);
    assert_null(run(session, x, fed, out(whole), s));
    assert_int_equal(TF_GetCode(s), TF_UNIMPLEMENTED);
    TF_DeleteTensor(fed);
    close_session(session, s);
}

/* A placeholder's shape is a promise that nobody holds a client to, some of whom give a batch of what they declared. */
static void placeholders_take_other_shapes(void **state)
{
    (void)state;
    TF_Output x = out(placeholder(graph, "x", TF_FLOAT, s)), dx, fetches[3];
    TF_GraphSetTensorShape(graph, x, (int64_t[]){3}, 1, s);
    TF_Output square = out(unary(graph, "Square", "square", x, s));
    TF_AddGradients(graph, &square, 1, &x, 1, NULL, s, &dx);
    assert_fine(s);
    fetches[0] = square;
    fetches[1] = dx;
    fetches[2] = out(unary(graph, "Shape", "shape", x, s));
    TF_Session *session = session_of(graph, s);
    for (int rows = 1; rows <= 2; rows++) {
        TF_Tensor *results[3] = {NULL};
        TF_Tensor *fed = float_tensor((int64_t[]){rows, 3}, 2, (float[]){1, 2, 3, 4, 5, 6});
        TF_SessionRun(session, NULL, &x, &fed, 1, fetches, results, 3, NULL, 0, NULL, s);
        assert_fine(s);
        assert_int_equal(TF_TensorElementCount(results[0]), 3 * rows);
        assert_float_equal(((float *)TF_TensorData(results[0]))[3 * rows - 1], 9 * rows * rows, 0);
        assert_float_equal(((float *)TF_TensorData(results[1]))[3 * rows - 1], 6 * rows, 0);
        assert_int_equal(*(int32_t *)TF_TensorData(results[2]), rows);
        for (int i = 0; i < 3; i++)
            TF_DeleteTensor(results[i]);
        TF_DeleteTensor(fed);
    }
    close_session(session, s);
}

static void functions_are_called(void **state)
{
    (void)state;
    TF_Function *function = sum_function("MyFunc", 0), *hashed = sum_function("MyFunc", 1), *found[2];
    assert_string_equal(TF_FunctionName(function), "MyFunc");
    assert_int_equal(strncmp(TF_FunctionName(hashed), "MyFunc_", 7), 0);
    assert_int_equal(TF_GraphNumFunctions(graph), 0);
    TF_GraphCopyFunction(graph, NULL, NULL, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "'func' argument to TF_GraphCopyFunction cannot be null");
    TF_GraphCopyFunction(graph, function, NULL, s);
    assert_fine(s);
    TF_GraphCopyFunction(graph, function, NULL, s);
    assert_fine(s);
    assert_int_equal(TF_GraphNumFunctions(graph), 1);
    assert_int_equal(TF_GraphGetFunctions(graph, found, 2, s), 1);
    assert_string_equal(TF_FunctionName(found[0]), "MyFunc");
    TF_DeleteFunction(found[0]);
    TF_Buffer *def = TF_NewBuffer();
    TF_FunctionToFunctionDef(function, def, s);
    assert_fine(s);
    TF_Function *again = TF_FunctionImportFunctionDef(def->data, def->length, s);
    assert_fine(s);
    assert_string_equal(TF_FunctionName(again), "MyFunc");
    TF_FunctionSetAttrValueProto(again, "note", "\x12\x02hi", 4, s);
    assert_fine(s);
    TF_Buffer *note = TF_NewBuffer();
    TF_FunctionGetAttrValueProto(again, "note", note, s);
    assert_fine(s);
    assert_int_equal(note->length, 4);
    TF_DeleteBuffer(note);
    note = TF_NewBuffer();
    TF_FunctionGetAttrValueProto(again, "none", note, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Function 'MyFunc' has no attr named 'none'.");
    TF_DeleteBuffer(note);
    TF_DeleteBuffer(def);
    TF_DeleteFunction(again);
    TF_DeleteFunction(function);
    TF_DeleteFunction(hashed);
    def = TF_NewBuffer();
    TF_GraphGetOpDef(graph, "MyFunc", def, s);
    assert_fine(s);
    TF_DeleteBuffer(def);
    TF_Operation *call = binary(graph, "MyFunc", "call", out(constant(graph, "two", int_tensor(2), s)),
                                out(constant(graph, "three", int_tensor(3), s)), s);
    assert_float_equal(value_of(out(call), 0), 5, 0);
    assert_null(TF_FunctionImportFunctionDef("\xff\xff", 2, s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "Invalid FunctionDef given to TF_FunctionImportFunctionDef");
}

/* Where a node's op is the function, that node's device is the function's; one that is an attribute has its own. */
static void functions_are_on_the_device_of_their_call(void **state)
{
    (void)state;
    TF_Graph *body = TF_NewGraph();
    TF_Output x = out(placeholder(body, "x", TF_INT32, s)), y;
    TF_OperationDescription *d = TF_NewOperation(body, "Neg", "y");
    TF_AddInput(d, x);
    TF_SetDevice(d, "/job:elsewhere/device:GPU:7");
    y = out(TF_FinishOperation(d, s));
    TF_Function *function = TF_GraphToFunction(body, "far", 0, -1, NULL, 1, &x, 1, &y, NULL, NULL, NULL, s);
    assert_fine(s);
    TF_DeleteGraph(body);
    TF_GraphCopyFunction(graph, function, NULL, s);
    assert_fine(s);
    TF_DeleteFunction(function);
    TF_Output two = out(constant(graph, "two", int_tensor(2), s)), call = out(unary(graph, "far", "call", two, s));
    assert_float_equal(value_of(call, 0), -2, 0);
    d = TF_NewOperation(graph, "PartitionedCall", "own");
    TF_AddInputList(d, &two, 1);
    TF_SetAttrTypeList(d, "Tin", (TF_DataType[]){TF_INT32}, 1);
    TF_SetAttrTypeList(d, "Tout", (TF_DataType[]){TF_INT32}, 1);
    TF_SetAttrFuncName(d, "f", "far", 3);
    TF_Operation *own = TF_FinishOperation(d, s);
    assert_fine(s);
    TF_Session *session = session_of(graph, s);
    assert_null(run(session, (TF_Output){NULL, 0}, NULL, out(own), s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "/job:elsewhere/device:GPU:7");
    close_session(session, s);
}

/* What a function does and gives nobody runs when it is called, if it is among the control outputs. */
static void functions_run_their_control_outputs(void **state)
{
    (void)state;
    TF_Graph *body = TF_NewGraph();
    TF_Operation *x = placeholder(body, "X", TF_FLOAT, s), *neg = unary(body, "Neg", "Neg_It", out(x), s);
    TF_Operation *not_a_number = unary(body, "Log", "check/log", out(x), s);
    TF_OperationDescription *d = TF_NewOperation(body, "CheckNumerics", "check/numbers");
    TF_AddInput(d, out(not_a_number));
    TF_SetAttrString(d, "message", "was negative", 12);
    TF_Operation *check = TF_FinishOperation(d, s);
    assert_fine(s);
    TF_Output input = out(x), output = out(neg);
    const TF_Operation *both[] = {check, neg}, *twice[] = {check, check};
    const char *names[] = {"checked", "negated"}, *same[] = {"a", "a"}, *none[] = {"", ""};
    const struct {
        int num_opers;
        const TF_Operation *const *controls;
        const char *const *names;
        const char *message;
    } wrong[] = {
        {-1, both, same, "Repeated control output name: a"},
        {-1, twice, NULL, "Repeated control output name: check/numbers"},
        {-1, both, none, "Control output name must be not empty"},
        {1, both, NULL, ""},
    };
    TF_Function *function;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        function =
            TF_GraphToFunctionWithControlOutputs(body, "F", 0, wrong[i].num_opers, &both[1], 1, &input, 1, &output,
                                                 NULL, 2, wrong[i].controls, wrong[i].names, NULL, NULL, s);
        assert_null(function);
        assert_wrong(s, TF_INVALID_ARGUMENT, wrong[i].message);
    }
    for (int i = 0; i < 2; i++) {
        function = TF_GraphToFunctionWithControlOutputs(body, "F", 0, -1, NULL, 1, &input, 1, &output, NULL, 2, both,
                                                        i ? names : NULL, NULL, NULL, s);
        assert_fine(s);
        TF_Buffer *def = TF_NewBuffer();
        TF_FunctionToFunctionDef(function, def, s);
        assert_fine(s);
        const char *part = i ? "\xa2\1\7checked\xa2\1\7negated"
                             : "\xa2\1\6Neg_It\xa2\1\x0d"
                               "check/numbers";
        assert_non_null(memmem(def->data, def->length, part, strlen(part)));
        part = i ? "2\x18\x0a\7checked\x12\x0d"
                   "check/numbers"
                 : "2\x10\x0a\6Neg_It\x12\6Neg_It";
        assert_non_null(memmem(def->data, def->length, part, strlen(part)));
        TF_DeleteBuffer(def);
        if (i == 0)
            TF_DeleteFunction(function);
    }
    TF_GraphCopyFunction(graph, function, NULL, s);
    assert_fine(s);
    TF_DeleteFunction(function);
    TF_DeleteGraph(body);
    d = TF_NewOperation(graph, "StatefulPartitionedCall", "call");
    TF_Output fed = out(placeholder(graph, "fed", TF_FLOAT, s));
    TF_AddInputList(d, &fed, 1);
    TF_SetAttrFuncName(d, "f", "F", 1);
    TF_SetAttrTypeList(d, "Tin", (TF_DataType[]){TF_FLOAT}, 1);
    TF_SetAttrTypeList(d, "Tout", (TF_DataType[]){TF_FLOAT}, 1);
    TF_Output call = out(TF_FinishOperation(d, s));
    assert_fine(s);
    TF_Session *session = session_of(graph, s);
    TF_Tensor *value = float_tensor(NULL, 0, (float[]){2}), *result = run(session, fed, value, call, s);
    assert_fine(s);
    assert_float_equal(*(float *)TF_TensorData(result), -2, 0);
    TF_DeleteTensor(result);
    TF_DeleteTensor(value);
    value = float_tensor(NULL, 0, (float[]){-2});
    assert_null(run(session, fed, value, call, s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "was negative");
    TF_DeleteTensor(value);
    close_session(session, s);
}

/* Puts a function whose definition has these bytes into the graph, and lets go of it. */
static void add_with_parts(TF_Function *function, const char *const *parts, size_t count)
{
    TF_Buffer *def = TF_NewBuffer();
    TF_FunctionToFunctionDef(function, def, s);
    assert_fine(s);
    for (size_t i = 0; i < count; i++)
        assert_non_null(memmem(def->data, def->length, parts[i], strlen(parts[i])));
    TF_DeleteBuffer(def);
    TF_GraphCopyFunction(graph, function, NULL, s);
    assert_fine(s);
    TF_DeleteFunction(function);
}

/* Results keep their names, then arguments, then nodes. */
static void names_in_functions_differ(void **state)
{
    (void)state;
    TF_Operation *x = placeholder(graph, "Feed/1", TF_INT32, s), *y = placeholder(graph, "2feed_1", TF_INT32, s);
    TF_OperationDescription *d = TF_NewOperation(graph, "AddN", "sum");
    TF_AddInputList(d, (TF_Output[]){out(x), out(y)}, 2);
    TF_AddControlInput(d, x); /* an argument may be waited for */
    TF_Output inputs[] = {out(x), out(y)}, sum = out(TF_FinishOperation(d, s)), outputs[] = {sum, out(x), sum};
    assert_fine(s);
    TF_Function *function = TF_GraphToFunction(graph, "F", 0, -1, NULL, 2, inputs, 3, outputs, NULL, NULL, NULL, s);
    assert_fine(s);
    static const char *const parts[] = {
        "\x12\x0c\x0a\x08"
        "feed_1_0\x18\3\x12\x0c\x0a\x08"
        "feed_1_1\x18\3"
        "\x1a\7\x0a\3sum\x18\3\x1a\x0a\x0a\6feed_1\x18\3\x1a\x09\x0a\5sum_0\x18\3",
        "\x0a\5sum_1\x12\4AddN",
        "\x1a\x08"
        "feed_1_0\x1a\x08"
        "feed_1_1\x1a\x09^feed_1_0",
        "\x0a\3sum\x12\x0bsum_1:sum:0",
        "\x0a\6feed_1\x12\x08"
        "feed_1_0",
        "\x0a\5sum_0\x12\x0bsum_1:sum:0",
    };
    add_with_parts(function, parts, sizeof parts / sizeof *parts);
    TF_Operation *call = binary(graph, "F", "call", out(constant(graph, "two", int_tensor(2), s)),
                                out(constant(graph, "three", int_tensor(3), s)), s);
    assert_float_equal(value_of((TF_Output){call, 0}, 0), 5, 0);
    assert_float_equal(value_of((TF_Output){call, 1}, 0), 2, 0);
    assert_float_equal(value_of((TF_Output){call, 2}, 0), 5, 0);
}

static void arguments_may_be_constants_and_control_outputs(void **state)
{
    (void)state;
    TF_Operation *c = constant(graph, "C", float_tensor((int64_t[]){3}, 1, (float[]){1, 2, 3}), s);
    TF_Operation *y = unary(graph, "Neg", "y", out(c), s);
    TF_Output input = out(c), output = out(y);
    const TF_Operation *nodes[] = {y}, *controls[] = {c};
    const char *name = "seen";
    TF_Function *function = TF_GraphToFunctionWithControlOutputs(graph, "F", 0, 1, nodes, 1, &input, 1, &output, NULL,
                                                                 1, controls, &name, NULL, NULL, s);
    assert_fine(s);
    static const char *const parts[] = {"_output_shapes\x12\x08\x0a\6:\4\x12\2\x08\3", "2\x09\x0a\4seen\x12\1c"};
    add_with_parts(function, parts, sizeof parts / sizeof *parts);
    assert_float_equal(value_of(out(unary(graph, "F", "call", out(c), s)), 2), -3, 0);
}

static void wrong_functions_say_what_is_wrong(void **state)
{
    (void)state;
    TF_Operation *a = placeholder(graph, "feed1", TF_INT32, s), *b = placeholder(graph, "feed2", TF_INT32, s);
    TF_Operation *sum = add(graph, "add", out(a), out(b), s);
    TF_Output twice[] = {out(a), out(a)}, both[] = {out(a), out(b)}, result = out(sum), results[] = {result, result};
    const char *const names[] = {"my_out", "my_out"};
    const TF_Operation *const only[] = {sum};
    assert_null(TF_GraphToFunction(graph, "MyFunc", 0, -1, NULL, 2, twice, 1, &result, NULL, NULL, NULL, s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "TF_Output feed1:0 appears more than once in the input list");
    assert_null(TF_GraphToFunction(graph, "MyFunc", 0, -1, NULL, 2, both, 2, results, names, NULL, NULL, s));
    assert_wrong(s, TF_INVALID_ARGUMENT,
                 "Cannot have duplicate output names. Name 'my_out' appears more than once in 'output_names' array.");
    assert_null(TF_GraphToFunction(graph, "MyFunc", 0, 1, only, 1, both, 1, &result, NULL, NULL, NULL, s));
    assert_wrong(
        s, TF_INVALID_ARGUMENT,
        "Input 1, 'feed2:0', of node 'add' in function 'MyFunc' is not available. You might need to include it in "
        "inputs or include its source node in the body");
    both[1].index = 2;
    assert_null(TF_GraphToFunction(graph, "MyFunc", 0, -1, NULL, 2, both, 1, &result, NULL, NULL, NULL, s));
    assert_wrong(s, TF_OUT_OF_RANGE,
                 "Node 'feed2' (type: 'Placeholder', num of outputs: 1) does not have output 2\n\tEncountered while "
                 "processing input 1 into function 'MyFunc'");
    both[1].oper = NULL;
    assert_null(TF_GraphToFunction(graph, "MyFunc", 0, -1, NULL, 2, both, 1, &result, NULL, NULL, NULL, s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "Node is null\n\tEncountered while processing input 1 into function 'MyFunc'");
    TF_Output outside = out(constant(graph, "scalar", int_tensor(2), s));
    assert_null(TF_GraphToFunction(graph, "MyFunc", 0, 1, only, 2, (TF_Output[]){out(a), out(b)}, 1, &outside, NULL,
                                   NULL, NULL, s));
    assert_wrong(
        s, TF_INVALID_ARGUMENT,
        "TF_Output scalar:0 is neither in the function body nor among function inputs. Encountered while creating "
        "function 'MyFunc'");
    TF_OperationDescription *d = TF_NewOperation(graph, "AddN", "waiting");
    TF_AddInputList(d, (TF_Output[]){out(a), out(b)}, 2);
    TF_AddControlInput(d, outside.oper);
    const TF_Operation *const waiting[] = {TF_FinishOperation(d, s)};
    assert_fine(s);
    assert_null(TF_GraphToFunction(graph, "MyFunc", 0, 1, waiting, 2, (TF_Output[]){out(a), out(b)}, 1, &result, NULL,
                                   NULL, NULL, s));
    assert_wrong(
        s, TF_INVALID_ARGUMENT,
        "The source of control edge [id=5 scalar:-1 -> waiting:-1] is not in the body. Encountered while creating "
        "function 'MyFunc'");
    TF_Graph *other = TF_NewGraph();
    TF_Output strange = out(placeholder(other, "feed1", TF_INT32, s));
    assert_null(TF_GraphToFunction(graph, "MyFunc", 0, 1, only, 1, &strange, 1, &result, NULL, NULL, NULL, s));
    assert_wrong(
        s, TF_INVALID_ARGUMENT,
        "Node with id 2 is different from the passed in node. Does it belong to a different graph?\n\tEncountered "
        "while processing input 0 into function 'MyFunc'");
    TF_DeleteGraph(other);
}

static bool has_part(TF_Graph *of, const char *part, size_t size)
{
    TF_Buffer *def = TF_NewBuffer();
    TF_GraphToGraphDef(of, def, s);
    assert_fine(s);
    bool found = memmem(def->data, def->length, part, size);
    TF_DeleteBuffer(def);
    return found;
}

/* A function may be the gradient of several, and each of them has one. */
static void functions_have_gradients(void **state)
{
    (void)state;
    TF_Function *first = sum_function("First", 0), *second = sum_function("Second", 0);
    TF_Function *gradient = sum_function("Gradient", 0), *other = sum_function("Other", 0);
    TF_GraphCopyFunction(graph, first, NULL, s);
    assert_fine(s);
    for (int i = 0; i < 2; i++) { /* the second time there is nothing to do */
        TF_GraphCopyFunction(graph, first, gradient, s);
        assert_fine(s);
        TF_GraphCopyFunction(graph, second, gradient, s);
        assert_fine(s);
    }
    assert_true(has_part(graph, "\x12\x11\x0a\5First\x12\x08Gradient", 19));
    assert_true(has_part(graph, "\x12\x12\x0a\6Second\x12\x08Gradient", 20));
    TF_GraphCopyFunction(graph, first, other, s);
    assert_wrong(
        s, TF_INVALID_ARGUMENT,
        "Cannot assign gradient function 'Other' to 'First' because it already has gradient function 'Gradient'");
    TF_DeleteFunction(first);
    TF_DeleteFunction(second);
    TF_DeleteFunction(gradient);
    TF_DeleteFunction(other);
    TF_GraphRemoveFunction(graph, "Second", s);
    assert_fine(s);
    TF_GraphRemoveFunction(graph, "Second", s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Tried to remove non-existent function 'Second'.");
}

/* What is known of an argument's shape goes with it, and what is the caller's own. */
static void arguments_have_attributes(void **state)
{
    (void)state;
    TF_OperationDescription *d = TF_NewOperation(graph, "Placeholder", "x");
    TF_SetAttrType(d, "dtype", TF_FLOAT);
    TF_SetAttrShape(d, "shape", (int64_t[]){3}, 1);
    TF_SetAttrString(d, "_mine", "value", 5);
    TF_Output x = out(TF_FinishOperation(d, s)), y = out(unary(graph, "Neg", "neg", x, s));
    TF_Function *function = TF_GraphToFunction(graph, "F", 0, -1, NULL, 1, &x, 1, &y, NULL, NULL, NULL, s);
    assert_fine(s);
    TF_Buffer *def = TF_NewBuffer();
    TF_FunctionToFunctionDef(function, def, s);
    assert_fine(s);
    assert_non_null(memmem(def->data, def->length, "_output_shapes\x12\x08\x0a\6\x3a\4\x12\2\x08\3", 24));
    assert_non_null(memmem(def->data, def->length, "_mine\x12\7\x12\5value", 14));
    TF_DeleteBuffer(def);
    TF_DeleteFunction(function);
}

/* ---- loops ----------------------------------------------------------------------------------------------------------
 */

static TF_WhileParams begin_loop(TF_Output *inputs, int count)
{
    TF_WhileParams params = TF_NewWhile(graph, inputs, count, s);
    assert_fine(s);
    return params;
}

/* while (x < limit) x += step, for x from 1 */
static void loops_run(void **state)
{
    (void)state;
    TF_Output inputs[] = {out(constant(graph, "one", int_tensor(1), s)),
                          out(constant(graph, "limit", int_tensor(20), s))};
    TF_WhileParams loop = begin_loop(inputs, 2);
    loop.name = "my_loop";
    loop.cond_output = out(binary(loop.cond_graph, "Less", "less", loop.cond_inputs[0], loop.cond_inputs[1], s));
    TF_Operation *step = constant(loop.body_graph, "step", int_tensor(3), s);
    loop.body_outputs[0] = out(add(loop.body_graph, "more", loop.body_inputs[0], out(step), s));
    loop.body_outputs[1] = loop.body_inputs[1];
    TF_Output outputs[2];
    TF_FinishWhile(&loop, s, outputs);
    assert_fine(s);
    assert_float_equal(value_of(outputs[0], 0), 22, 0);
    assert_float_equal(value_of(outputs[1], 0), 20, 0);
    static const char *const names[] = {"Enter",  "Enter_1",   "Merge_1",   "LoopCond",  "Switch",
                                        "Exit_1", "cond/less", "body/step", "body/more", "NextIteration_1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[40];
        snprintf(name, sizeof name, "my_loop/%s", names[i]);
        assert_non_null(TF_GraphOperationByName(graph, name));
    }
    assert_string_equal(TF_OperationName(outputs[0].oper), "my_loop/Exit");
    assert_null(TF_GraphOperationByName(graph, "my_loop/cond/cond_input0"));
}

/* A name that is there is taken, and what is inside of a loop speaks of its own nodes. */
static void loops_have_names_of_their_own(void **state)
{
    (void)state;
    TF_Output one = out(constant(graph, "one", int_tensor(1), s)), output;
    unary(graph, "Neg", "my_loop/body", one, s);
    TF_WhileParams loop = begin_loop(&one, 1);
    loop.name = "my_loop/body";
    TF_Operation *limit = constant(loop.cond_graph, "limit", int_tensor(20), s);
    loop.cond_output = out(binary(loop.cond_graph, "Less", "less", loop.cond_inputs[0], out(limit), s));
    TF_Operation *step = constant(loop.body_graph, "step", int_tensor(5), s);
    TF_Operation *sum = add(loop.body_graph, "more", loop.body_inputs[0], out(step), s);
    TF_OperationDescription *d = TF_NewOperation(loop.body_graph, "Identity", "same");
    TF_AddInput(d, out(sum));
#ifndef ON_TENSORFLOW /* which takes it for a way back */
    TF_AddControlInput(d, loop.body_inputs[0].oper);
#endif
    TF_ColocateWith(d, step);
    loop.body_outputs[0] = out(TF_FinishOperation(d, s));
    assert_fine(s);
    TF_FinishWhile(&loop, s, &output);
    assert_fine(s);
    assert_string_equal(TF_OperationName(output.oper), "my_loop/body_1/Exit");
    assert_float_equal(value_of(output, 0), 21, 0);
    assert_true(has_part(graph, "loc:@my_loop/body_1/body/step", 29));
}

/* TensorFlow's own says that the output has no value.
 * while (x < 20) for (y = x, top = x + x; y < top; y += 1) x = y, for x from 1 */
static void loops_run_in_loops(void **state)
{
    (void)state;
    TF_Output one = out(placeholder(graph, "one", TF_INT32, s)), inside[2], output;
    TF_WhileParams outer = begin_loop(&one, 1);
    outer.name = "outer";
    TF_Operation *limit = constant(outer.cond_graph, "limit", int_tensor(20), s);
    outer.cond_output = out(binary(outer.cond_graph, "Less", "less", outer.cond_inputs[0], out(limit), s));
    TF_Output x = outer.body_inputs[0], begins[] = {x, out(add(outer.body_graph, "twice", x, x, s))};
    TF_WhileParams inner = TF_NewWhile(outer.body_graph, begins, 2, s);
    assert_fine(s);
    inner.name = "inner";
    inner.cond_output = out(binary(inner.cond_graph, "Less", "less", inner.cond_inputs[0], inner.cond_inputs[1], s));
    TF_Operation *step = constant(inner.body_graph, "step", int_tensor(1), s);
    inner.body_outputs[0] = out(add(inner.body_graph, "more", inner.body_inputs[0], out(step), s));
    inner.body_outputs[1] = inner.body_inputs[1];
    TF_FinishWhile(&inner, s, inside);
    assert_fine(s);
    outer.body_outputs[0] = inside[0];
    TF_FinishWhile(&outer, s, &output);
    assert_fine(s);
    TF_Session *session = session_of(graph, s);
    TF_Tensor *first = int_tensor(1), *result = run(session, one, first, output, s);
    assert_fine(s);
    assert_int_equal(*(int32_t *)TF_TensorData(result), 32);
    TF_DeleteTensor(first);
    TF_DeleteTensor(result);
    close_session(session, s);
}

/* TensorFlow's own makes a gradient that does not run wherever it needs values of the loop's rounds. */
static void gradients_go_back_through_loops(void **state)
{
    (void)state;
    TF_Output x = out(constant(graph, "x", float_tensor(NULL, 0, (float[]){1.5f}), s));
    TF_WhileParams loop = begin_loop(&x, 1);
    loop.name = "squares";
    TF_Operation *limit = constant(loop.cond_graph, "limit", float_tensor(NULL, 0, (float[]){20}), s);
    loop.cond_output = out(binary(loop.cond_graph, "Less", "less", loop.cond_inputs[0], out(limit), s));
    loop.body_outputs[0] = out(unary(loop.body_graph, "Square", "square", loop.body_inputs[0], s));
    TF_Output output, dy;
    TF_FinishWhile(&loop, s, &output);
    assert_fine(s);
    assert_float_equal(value_of(output, 0), 25.62890625, 0);
    TF_AddGradients(graph, &output, 1, &x, 1, NULL, s, &dy);
    assert_fine(s);
    assert_float_equal(value_of(dy, 0), 8 * 17.0859375, 0);
}

static void gradients_of_whole_numbers_through_loops_are_refused(void **state)
{
    (void)state;
    TF_Output x = out(placeholder(graph, "x", TF_INT32, s)), output, dy;
    TF_WhileParams loop = begin_loop(&x, 1);
    loop.name = "squares";
    TF_Operation *limit = constant(loop.cond_graph, "limit", int_tensor(20), s);
    loop.cond_output = out(binary(loop.cond_graph, "Less", "less", loop.cond_inputs[0], out(limit), s));
    loop.body_outputs[0] = out(unary(loop.body_graph, "Square", "square", loop.body_inputs[0], s));
    TF_FinishWhile(&loop, s, &output);
    assert_fine(s);
    TF_AddGradients(graph, &output, 1, &x, 1, NULL, s, &dy);
    assert_wrong(s, TF_INVALID_ARGUMENT, "it is int32, only floats and complex numbers have them through a loop");
}

static void wrong_loops_say_what_is_wrong(void **state)
{
    (void)state;
    TF_Output x = out(constant(graph, "x", int_tensor(1), s)), outputs[1];
    TF_NewWhile(graph, NULL, 0, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "TF_NewWhile() must be passed at least one input");
    enum { NO_COND, NOT_BOOL, BAD_INDEX, NO_BODY, NO_NAME, CASES };
    static const char *const texts[] = {
        "TF_WhileParams `cond_output` field isn't set",
        "BuildWhileLoop: 'cond' argument must return a boolean output, got int32",
        "Invalid return output 100 of node 'less', which has 1 output(s)",
        "TF_WhileParams `body_outputs[0]` field isn't set",
        "TF_WhileParams `name` field is null",
    };
    for (int i = 0; i < CASES; i++) {
        TF_WhileParams loop = begin_loop(&x, 1);
        loop.name = i == NO_NAME ? NULL : "loop";
        if (i != NO_BODY)
            loop.body_outputs[0] = loop.body_inputs[0];
        TF_Operation *less = binary(loop.cond_graph, "Less", "less", loop.cond_inputs[0], loop.cond_inputs[0], s);
        if (i != NO_COND)
            loop.cond_output = i == NOT_BOOL ? loop.cond_inputs[0] : (TF_Output){less, i == BAD_INDEX ? 100 : 0};
        TF_FinishWhile(&loop, s, outputs);
        assert_wrong(s, TF_INVALID_ARGUMENT, texts[i]);
    }
    for (int i = 0; i < 3; i++) { /* outputs of other graphs */
        TF_WhileParams loop = begin_loop(&x, 1);
        loop.name = "loop";
        TF_Operation *less = binary(loop.cond_graph, "Less", "less", loop.cond_inputs[0], loop.cond_inputs[0], s);
        loop.cond_output = i == 0 ? loop.body_inputs[0] : out(less);
        loop.body_outputs[0] = i == 1 ? loop.cond_inputs[0] : i == 2 ? x : loop.body_inputs[0];
        TF_FinishWhile(&loop, s, outputs);
        assert_wrong(s, TF_INVALID_ARGUMENT, "Requested return tensor '");
        assert_wrong(s, TF_INVALID_ARGUMENT, ":0' not found in graph def");
    }
    TF_WhileParams loop = begin_loop(&x, 1);
    TF_AbortWhile(&loop);
}

/* ---- partial runs ---------------------------------------------------------------------------------------------------
 */

/* a + 2, then (a + 2) + b. */
static void parts_of_a_run_run_once(void **state)
{
    (void)state;
    TF_Operation *a = placeholder(graph, "a", TF_INT32, s), *b = placeholder(graph, "b", TF_INT32, s);
    TF_Operation *plus2 = add(graph, "plus2", out(a), out(constant(graph, "two", int_tensor(2), s)), s);
    TF_Operation *plusb = add(graph, "plusB", out(plus2), out(b), s);
    TF_Session *session = session_of(graph, s);
    TF_Output feeds[] = {out(a), out(b)}, fetches[] = {out(plus2), out(plusb)};
    const char *handle;
    TF_SessionPRunSetup(session, feeds, 2, fetches, 2, NULL, 0, &handle, s);
    assert_fine(s);
    TF_Tensor *one = int_tensor(1), *four = int_tensor(4), *result;
    TF_SessionPRun(session, handle, &feeds[0], &one, 1, &fetches[0], &result, 1, NULL, 0, s);
    assert_fine(s);
    assert_int_equal(*(int32_t *)TF_TensorData(result), 3);
    TF_DeleteTensor(result);
    TF_SessionPRun(session, handle, &feeds[1], &four, 1, &fetches[1], &result, 1, NULL, 0, s);
    assert_fine(s);
    assert_int_equal(*(int32_t *)TF_TensorData(result), 7);
    TF_DeleteTensor(result);
    TF_DeletePRunHandle(handle);
    TF_DeleteTensor(one);
    TF_DeleteTensor(four);
    close_session(session, s);
}

/* Two placeholders, of which one is assigned to a variable: that runs as soon as it is fed, whether a part asks for it
 * or not, and waits where one asks too early. */
static void targets_of_parts_run_when_they_can(void **state)
{
    (void)state;
    TF_Operation *a = placeholder(graph, "a", TF_INT32, s), *b = placeholder(graph, "b", TF_INT32, s);
    TF_OperationDescription *d = TF_NewOperation(graph, "VarHandleOp", "v");
    TF_SetAttrType(d, "dtype", TF_INT32);
    TF_SetAttrShape(d, "shape", NULL, 0);
    TF_Output v = out(TF_FinishOperation(d, s));
    TF_Operation *assign = binary(graph, "AssignVariableOp", "assign", v, out(b), s);
    d = TF_NewOperation(graph, "ReadVariableOp", "read");
    TF_AddInput(d, v);
    TF_SetAttrType(d, "dtype", TF_INT32);
    TF_Operation *read = TF_FinishOperation(d, s);
    TF_Operation *sum = add(graph, "sum", out(a), out(b), s), *twice = add(graph, "twice", out(a), out(a), s);
    assert_fine(s);
    TF_Session *session = session_of(graph, s);
    TF_Output feeds[] = {out(a), out(b)}, fetches[] = {out(sum), out(twice)};
    const TF_Operation *targets[] = {assign};
    const char *handle;
    TF_SessionPRunSetup(session, feeds, 2, fetches, 2, targets, 1, &handle, s);
    assert_fine(s);
    TF_Tensor *one = int_tensor(1), *four = int_tensor(4), *result;
    TF_SessionPRun(session, handle, &feeds[0], &one, 1, &fetches[1], &result, 1, targets, 1, s);
    assert_fine(s);
    TF_DeleteTensor(result);
    TF_SessionPRun(session, handle, &feeds[1], &four, 1, &fetches[0], &result, 1, NULL, 0, s);
    assert_fine(s);
    TF_DeleteTensor(result);
    result = run(session, (TF_Output){0}, NULL, out(read), s);
    assert_fine(s);
    assert_int_equal(*(int32_t *)TF_TensorData(result), 4);
    TF_DeleteTensor(result);
    TF_DeletePRunHandle(handle);
    TF_DeleteTensor(one);
    TF_DeleteTensor(four);
    close_session(session, s);
}

/* (a + b) * b: what was not declared or has been, and parts that are refused, which leave all as it was. */
static void parts_that_are_wrong_are_told(void **state)
{
    (void)state;
    TF_Operation *a = placeholder(graph, "a", TF_INT32, s), *b = placeholder(graph, "b", TF_INT32, s);
    TF_Output x[] = {out(a), out(b)}, sum = out(binary(graph, "AddV2", "sum", x[0], x[1], s));
    TF_Output product = out(binary(graph, "Mul", "product", sum, x[1], s)), twice[] = {x[0], x[0]};
    TF_Session *session = session_of(graph, s);
    const char *handle = NULL;
    TF_SessionPRunSetup(session, x, 1, NULL, 0, NULL, 0, &handle, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Must specify at least one target to fetch or execute.");
    assert_null(handle);
    TF_SessionPRunSetup(session, twice, 2, &sum, 1, NULL, 0, &handle, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Endpoint \"a:0\" fed more than once.");
    TF_SessionPRunSetup(session, x, 2, x, 1, NULL, 0, &handle, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "a:0 is both fed and fetched.");
    TF_SessionPRunSetup(session, &(TF_Output){a, 3}, 1, &sum, 1, NULL, 0, &handle, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "");
    TF_SessionPRunSetup(session, x, 2, &(TF_Output){sum.oper, -1}, 1, NULL, 0, &handle, s);
    assert_wrong(s, TF_NOT_FOUND, "");
    TF_SessionPRunSetup(session, x, 2, (TF_Output[]){sum, product}, 2, NULL, 0, &handle, s);
    assert_fine(s);
    TF_Tensor *one = int_tensor(1), *result = NULL;
    TF_SessionPRun(session, "nothing", x, &one, 1, &sum, &result, 1, NULL, 0, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Must run 'setup' before performing partial runs!");
    TF_SessionPRun(session, handle, &(TF_Output){a, 3}, &one, 1, &sum, &result, 1, NULL, 0, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "The feed a:3 was not specified in partial_run_setup.");
    TF_SessionPRun(session, handle, x, &one, 1, &(TF_Output){sum.oper, -1}, &result, 1, NULL, 0, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "The fetch sum:-1 was not specified in partial_run_setup.");
    TF_SessionPRun(session, handle, x, &one, 1, &sum, &result, 1, NULL, 0, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "can't be computed from the feeds that have been fed so far");
    TF_SessionPRun(session, handle, x, &one, 1, NULL, NULL, 0, NULL, 0, s);
    assert_fine(s);
    TF_SessionPRun(session, handle, x, &one, 1, NULL, NULL, 0, NULL, 0, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "The feed a:0 has already been fed.");
    TF_SessionPRun(session, handle, x + 1, &one, 1, &sum, &result, 1, NULL, 0, s);
    assert_fine(s);
    assert_int_equal(*(int32_t *)TF_TensorData(result), 2);
    TF_DeleteTensor(result);
    TF_SessionPRun(session, handle, NULL, NULL, 0, &sum, &result, 1, NULL, 0, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "The fetch sum:0 has already been fetched.");
    TF_SessionPRun(session, handle, NULL, NULL, 0, &product, &result, 1, NULL, 0, s);
    assert_fine(s);
    assert_int_equal(*(int32_t *)TF_TensorData(result), 2);
    TF_DeleteTensor(result);
    TF_DeleteTensor(one);
    TF_DeletePRunHandle(handle);
    close_session(session, s);
}

static TF_DeprecatedSession *open_without_graph(void)
{
    TF_SessionOptions *options = TF_NewSessionOptions();
    TF_DeprecatedSession *session = TF_NewDeprecatedSession(options, s);
    assert_fine(s);
    TF_DeleteSessionOptions(options);
    return session;
}

/* As messages of so many nodes, which name what came in others. */
static void extend(TF_DeprecatedSession *session, TF_Operation *const *opers, int count)
{
    char *def = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&def, &size);
    for (int i = 0; i < count; i++) {
        TF_Buffer *node = TF_NewBuffer();
        TF_OperationToNodeDef(opers[i], node, s);
        assert_fine(s);
        assert_true(node->length < 128);
        fprintf(file, "\x0a%c", (char)node->length);
        fwrite(node->data, node->length, 1, file);
        TF_DeleteBuffer(node);
    }
    fclose(file);
    TF_ExtendGraph(session, def, size, s);
    assert_fine(s);
    free(def);
}

static void sessions_without_a_graph_grow_message_by_message(void **state)
{
    (void)state;
    TF_DeprecatedSession *session = open_without_graph();
    TF_Operation *x = placeholder(graph, "x", TF_INT32, s), *split, *sum;
    TF_OperationDescription *d = TF_NewOperation(graph, "IdentityN", "split");
    TF_AddInputList(d, (TF_Output[]){out(x), out(x)}, 2);
    split = TF_FinishOperation(d, s);
    d = TF_NewOperation(graph, "AddV2", "sum");
    TF_AddInput(d, (TF_Output){split, 1});
    TF_AddInput(d, out(x));
    TF_AddControlInput(d, split);
    TF_ColocateWith(d, x);
    sum = TF_FinishOperation(d, s);
    assert_fine(s);
    extend(session, &x, 1);
    extend(session, &split, 1);
    extend(session, (TF_Operation *[]){sum, unary(graph, "Neg", "neg", out(sum), s)}, 2);
    const char *in[] = {"x:0"}, *neg[] = {"neg"}, *targets[] = {"split:1"};
    TF_Tensor *three = int_tensor(3), *result;
    TF_Run(session, NULL, in, &three, 1, neg, &result, 1, targets, 1, NULL, s);
    assert_fine(s);
    assert_int_equal(*(int32_t *)TF_TensorData(result), -6);
    TF_DeleteTensor(result);
    TF_DeleteDeprecatedSession(session, s);
    assert_fine(s);
}

static void sessions_without_a_graph_run_by_names(void **state)
{
    (void)state;
    TF_DeprecatedSession *session = open_without_graph();
    TF_Run(session, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, NULL, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Session was not created with a graph before Run()!");
    TF_Operation *x = placeholder(graph, "x", TF_INT32, s);
    unary(graph, "Neg", "y", out(x), s);
    TF_Buffer *def = TF_NewBuffer();
    TF_GraphToGraphDef(graph, def, s);
    TF_ExtendGraph(session, def->data, def->length, s);
    assert_fine(s);
    TF_DeleteBuffer(def);
    const char *in[] = {"x:0"}, *y[] = {"y"}, *nothing[] = {"nothing:0"}, *handle;
    TF_Tensor *three = int_tensor(3), *result;
    TF_Run(session, NULL, in, &three, 1, y, &result, 1, y, 1, NULL, s);
    assert_fine(s);
    assert_int_equal(*(int32_t *)TF_TensorData(result), -3);
    TF_DeleteTensor(result);
    three = int_tensor(3);
    TF_Run(session, NULL, in, &three, 1, nothing, &result, 1, NULL, 0, NULL, s);
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
    assert_null(result);
    TF_Run(session, NULL, NULL, NULL, 0, NULL, NULL, 0, nothing, 1, NULL, s);
    assert_int_equal(TF_GetCode(s), TF_NOT_FOUND);
    TF_PRunSetup(session, in, 1, y, 1, NULL, 0, &handle, s);
    assert_fine(s);
    three = int_tensor(4);
    TF_PRun(session, handle, in, &three, 1, y, &result, 1, NULL, 0, s);
    assert_fine(s);
    assert_int_equal(*(int32_t *)TF_TensorData(result), -4);
    TF_DeleteTensor(result);
    TF_DeletePRunHandle(handle);
    TF_DeviceList *devices = TF_DeprecatedSessionListDevices(session, s);
    assert_true(TF_DeviceListCount(devices) >= 1);
    TF_DeleteDeviceList(devices);
    TF_CloseDeprecatedSession(session, s);
    assert_fine(s);
    TF_DeleteDeprecatedSession(session, s);
    assert_fine(s);
}

static void what_is_missing_says_so(void **state)
{
    (void)state;
    assert_null(TF_LoadLibrary("/nowhere.so", s));
    assert_wrong(s, TF_NOT_FOUND, "/nowhere.so: cannot open shared object file: No such file or directory");
    assert_null(TF_NewServer("\xff", 1, s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "Could not parse provided bytes into a ServerDef protocol buffer");
    assert_null(TF_LoadLibrary("/dev/null", s));
    assert_wrong(s, TF_NOT_FOUND, "/dev/null");
    TF_Library *library = TF_LoadLibrary("libm.so.6", s); /* which has no ops */
    assert_fine(s);
    assert_int_equal(TF_GetOpList(library).length, 0);
    TF_DeleteLibraryHandle(library);
    TF_DeleteLibraryHandle(NULL);
#ifndef ON_TENSORFLOW
    assert_null(TF_NewServer("", 0, s));
    assert_wrong(s, TF_UNIMPLEMENTED, "Tower has no ");
    TF_DeleteServer(NULL);
#endif
}

/* ---- gradients of whole numbers --------------------------------------------------------------------------------- */

/* Of y by both x, at x = {3, -2}, w = {5, 7}. */
static void assert_whole_gradients(const char *op, int num_inputs, const int64_t expected[2][2])
{
    TF_Output x[] = {out(placeholder(graph, "x", TF_INT64, s)), out(placeholder(graph, "w", TF_INT64, s))}, dy[2];
    TF_Operation *made = num_inputs == 2 ? binary(graph, op, "y", x[0], x[1], s) : unary(graph, op, "y", x[0], s);
    TF_Output y = out(made);
    TF_AddGradients(graph, &y, 1, x, num_inputs, NULL, s, dy);
    assert_fine(s);
    TF_Session *session = session_of(graph, s);
    TF_Tensor *values[2], *results[2] = {NULL};
    for (int i = 0; i < 2; i++) {
        values[i] = TF_AllocateTensor(TF_INT64, (int64_t[]){2}, 1, 2 * sizeof(int64_t));
        memcpy(TF_TensorData(values[i]), i ? (int64_t[]){5, 7} : (int64_t[]){3, -2}, 2 * sizeof(int64_t));
    }
    TF_SessionRun(session, NULL, x, values, 2, dy, results, num_inputs, NULL, 0, NULL, s);
    assert_fine(s);
    for (int i = 0; i < num_inputs; i++) {
        assert_int_equal(TF_TensorType(results[i]), TF_INT64);
        assert_memory_equal(TF_TensorData(results[i]), expected[i], sizeof expected[i]);
        TF_DeleteTensor(results[i]);
    }
    TF_DeleteTensor(values[0]);
    TF_DeleteTensor(values[1]);
    close_session(session, s);
    TF_DeleteGraph(graph);
    graph = TF_NewGraph();
}

static void whole_numbers_have_gradients(void **state)
{
    (void)state;
    assert_whole_gradients("Mul", 2, (const int64_t[2][2]){{5, 7}, {3, -2}});
    assert_whole_gradients("Sub", 2, (const int64_t[2][2]){{1, 1}, {-1, -1}});
    assert_whole_gradients("Maximum", 2, (const int64_t[2][2]){{0, 0}, {1, 1}});
    assert_whole_gradients("Square", 1, (const int64_t[2][2]){{6, -4}});
    assert_whole_gradients("Abs", 1, (const int64_t[2][2]){{1, -1}});
}

static void what_has_no_gradient_of_whole_numbers_is_told_unless_it_stops_them(void **state)
{
    (void)state;
    TF_Output x = out(placeholder(graph, "x", TF_FLOAT, s)), dy = {NULL, 0};
    TF_Output most = out(binary(graph, "ArgMax", "most", x, out(constant(graph, "axis", int_tensor(0), s)), s));
    TF_Output stopped = out(unary(graph, "StopGradient", "stopped", most, s));
    TF_Output same = out(binary(graph, "Equal", "same", x, x, s));
    TF_AddGradients(graph, &stopped, 1, &x, 1, NULL, s, &dy);
    assert_fine(s);
    assert_null(dy.oper);
    TF_AddGradients(graph, &same, 1, &x, 1, NULL, s, &dy);
    assert_fine(s);
    assert_null(dy.oper);
    TF_AddGradients(graph, &most, 1, &x, 1, NULL, s, &dy);
    assert_wrong(s, TF_NOT_FOUND, "No gradient defined for op: ArgMax");
}

/* One output of a node is what it is fed, the others are computed. */
static void outputs_are_fed_beside_others_that_are_fetched(void **state)
{
    (void)state;
    TF_Operation *x = placeholder(graph, "x", TF_FLOAT, s), *axis = constant(graph, "axis", int_tensor(0), s);
    TF_OperationDescription *d = TF_NewOperation(graph, "Split", "split");
    TF_AddInput(d, out(axis));
    TF_AddInput(d, out(x));
    TF_SetAttrInt(d, "num_split", 2);
    TF_Operation *split = TF_FinishOperation(d, s);
    assert_fine(s);
    TF_Operation *sum = binary(graph, "AddV2", "sum", (TF_Output){split, 0}, (TF_Output){split, 1}, s);
    TF_Session *session = session_of(graph, s);
    TF_Output feeds[] = {out(x), {split, 0}}, fetches[] = {{split, 1}, out(sum)};
    TF_Tensor *fed[] = {float_tensor((int64_t[]){2}, 1, (float[]){3, 4}),
                        float_tensor((int64_t[]){1}, 1, &(float){10})};
    TF_Tensor *results[2] = {NULL};
    TF_SessionRun(session, NULL, feeds, fed, 2, fetches, results, 2, NULL, 0, NULL, s);
    assert_fine(s);
    assert_float_equal(*(float *)TF_TensorData(results[0]), 4, 0);
    assert_float_equal(*(float *)TF_TensorData(results[1]), 14, 0);
    for (int i = 0; i < 2; i++) {
        TF_DeleteTensor(fed[i]);
        TF_DeleteTensor(results[i]);
    }
    close_session(session, s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sessions_without_a_graph_grow_message_by_message, begin, end),
        cmocka_unit_test_setup_teardown(sessions_without_a_graph_run_by_names, begin, end),
        cmocka_unit_test_setup_teardown(gradients_of_a_product, begin, end),
        cmocka_unit_test_setup_teardown(whole_numbers_have_gradients, begin, end),
        cmocka_unit_test_setup_teardown(what_has_no_gradient_of_whole_numbers_is_told_unless_it_stops_them, begin, end),
        cmocka_unit_test_setup_teardown(nodes_of_gradients_have_names_of_classes, begin, end),
        cmocka_unit_test_setup_teardown(prefixes_of_gradients_are_ones_own, begin, end),
        cmocka_unit_test_setup_teardown(prefixes_of_gradients_do_not_meet, begin, end),
        cmocka_unit_test_setup_teardown(op_without_a_gradient_leaves_the_graph_as_it_was, begin, end),
        cmocka_unit_test_setup_teardown(constants_can_be_evaluated, begin, end),
        cmocka_unit_test_setup_teardown(known_shapes_can_be_evaluated, begin, end),
        cmocka_unit_test_setup_teardown(maxima_are_taken_over_channels, begin, end),
        cmocka_unit_test_setup_teardown(placeholders_take_other_shapes, begin, end),
        cmocka_unit_test_setup_teardown(functions_are_called, begin, end),
        cmocka_unit_test_setup_teardown(functions_are_on_the_device_of_their_call, begin, end),
        cmocka_unit_test_setup_teardown(functions_run_their_control_outputs, begin, end),
        cmocka_unit_test_setup_teardown(names_in_functions_differ, begin, end),
        cmocka_unit_test_setup_teardown(arguments_may_be_constants_and_control_outputs, begin, end),
        cmocka_unit_test_setup_teardown(wrong_functions_say_what_is_wrong, begin, end),
        cmocka_unit_test_setup_teardown(functions_have_gradients, begin, end),
        cmocka_unit_test_setup_teardown(arguments_have_attributes, begin, end),
        cmocka_unit_test_setup_teardown(loops_run, begin, end),
        cmocka_unit_test_setup_teardown(loops_have_names_of_their_own, begin, end),
        cmocka_unit_test_setup_teardown(parts_of_a_run_run_once, begin, end),
        cmocka_unit_test_setup_teardown(targets_of_parts_run_when_they_can, begin, end),
        cmocka_unit_test_setup_teardown(parts_that_are_wrong_are_told, begin, end),
#ifndef ON_TENSORFLOW
        cmocka_unit_test_setup_teardown(loops_run_in_loops, begin, end),
        cmocka_unit_test_setup_teardown(gradients_go_back_through_loops, begin, end),
        cmocka_unit_test_setup_teardown(gradients_of_whole_numbers_through_loops_are_refused, begin, end),
#endif
        cmocka_unit_test_setup_teardown(what_is_missing_says_so, begin, end),
        cmocka_unit_test_setup_teardown(wrong_loops_say_what_is_wrong, begin, end),
        cmocka_unit_test_setup_teardown(outputs_are_fed_beside_others_that_are_fetched, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

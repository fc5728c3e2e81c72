/* Graphs that come from files: status, buffers, tensors, import, look-up, sessions, saved models. */
#include "client.h"

#include <pthread.h>
#include <tensorflow/c/c_api_experimental.h>
#include <time.h>
#include <unistd.h>

static int deallocated;

static void deallocate(void *data, size_t len, void *arg)
{
    (void)len;
    assert_ptr_equal(arg, &deallocated);
    free(data);
    deallocated++;
}

static void count_deallocation(void *data, size_t len, void *arg)
{
    (void)data;
    (void)len;
    (void)arg;
    deallocated++;
}

static void join_payload(const char *key, const char *value, void *text)
{
    sprintf((char *)text + strlen(text), "%s=%s;", key, value);
}

static void status_says_what_it_was_told(void **state)
{
    char told[64] = "";
    (void)state;
    TF_Status *s = TF_NewStatus();
    assert_int_equal(TF_GetCode(s), TF_OK);
    assert_string_equal(TF_Message(s), "");
    TF_SetStatus(s, TF_CANCELLED, "cancel");
    assert_int_equal(TF_GetCode(s), TF_CANCELLED);
    assert_string_equal(TF_Message(s), "cancel");
    TF_SetStatus(s, TF_OK, "all is well");
    assert_string_equal(TF_Message(s), "");
    TF_SetStatusFromIOError(s, 2, "file");
    assert_wrong(s, TF_NOT_FOUND, "file");
    TF_SetPayload(s, "key", "first");
    TF_SetPayload(s, "key", "value");
    TF_ForEachPayload(s, join_payload, told);
    assert_string_equal(told, "key=value;");
    TF_SetPayload(s, "other", "");
    TF_SetStatus(s, TF_OK, "");
    TF_SetPayload(s, "key", "of no error");
    TF_ForEachPayload(s, join_payload, told); /* none */
    assert_string_equal(told, "key=value;");
    TF_DeleteStatus(s);
    assert_true(strlen(TF_Version()) > 0);
}

static void nothing_can_be_deleted(void **state)
{
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_DeleteStatus(NULL);
    TF_DeleteBuffer(NULL);
    TF_DeleteSessionOptions(NULL);
    TF_DeleteGraph(NULL);
    TF_DeleteImportGraphDefOptions(NULL);
    TF_DeleteImportGraphDefResults(NULL);
    TF_DeleteFunction(NULL);
    TF_DeleteSession(NULL, s);
    TF_DeleteDeviceList(NULL);
    assert_fine(s);
    TF_DeleteStatus(s);
}

static void tensor_takes_over_aligned_memory(void **state)
{
    (void)state;
    const int64_t dims[] = {2, 3};
    float *values = aligned_alloc(64, 64);
    deallocated = 0;
    TF_Tensor *t = TF_NewTensor(TF_FLOAT, dims, 2, values, 6 * sizeof *values, deallocate, &deallocated);
    assert_int_equal(TF_TensorType(t), TF_FLOAT);
    assert_int_equal(TF_NumDims(t), 2);
    assert_int_equal(TF_Dim(t, 0), 2);
    assert_int_equal(TF_Dim(t, 1), 3);
    assert_int_equal(TF_TensorByteSize(t), 24);
    assert_int_equal(TF_TensorElementCount(t), 6);
    assert_ptr_equal(TF_TensorData(t), values);
    assert_true(TF_TensorIsAligned(t));
    assert_null(TF_TensorMaybeMove(t));
    assert_int_equal(deallocated, 0);
    TF_DeleteTensor(t);
    assert_int_equal(deallocated, 1);
}

static void tensor_that_is_too_short_is_none(void **state)
{
    (void)state;
    deallocated = 0;
    assert_null(TF_NewTensor(TF_FLOAT, NULL, 0, malloc(1), 0, deallocate, &deallocated));
    assert_int_equal(deallocated, 1);
#ifndef ON_TENSORFLOW /* which aborts */
    assert_null(TF_AllocateTensor(TF_FLOAT, (int64_t[]){1LL << 62, 1LL << 62}, 2, 64));
#endif
}

static void memory_of_any_alignment_is_taken(void **state)
{
    (void)state;
    char *bytes = malloc(64);
    float one = 1;
    memcpy(bytes + 1, &one, sizeof one);
    deallocated = 0;
    TF_Tensor *t = TF_NewTensor(TF_FLOAT, NULL, 0, bytes + 1, sizeof one, count_deallocation, NULL);
    assert_int_equal(deallocated, 1); /* it was copied */
    free(bytes);
    assert_true(TF_TensorIsAligned(t));
    assert_true(*(float *)TF_TensorData(t) == 1);
    TF_DeleteTensor(t);
    assert_int_equal(deallocated, 1);
}

static void bitcast_shares_memory(void **state)
{
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Tensor *a = TF_AllocateTensor(TF_UINT64, (int64_t[]){6}, 1, 48);
    TF_Tensor *b = TF_AllocateTensor(TF_UINT64, (int64_t[]){1}, 1, 8);
    TF_TensorBitcastFrom(a, TF_UINT64, b, (int64_t[]){3, 2}, 2, s);
    assert_fine(s);
    assert_ptr_equal(TF_TensorData(a), TF_TensorData(b));
    assert_int_equal(TF_Dim(b, 0), 3);
    TF_TensorBitcastFrom(a, TF_FLOAT, b, (int64_t[]){3}, 1, s);
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
    TF_TensorBitcastFrom(a, TF_STRING, b, (int64_t[]){3, 2}, 2, s);
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
    TF_DeleteTensor(a);
    ((uint64_t *)TF_TensorData(b))[5] = 7;
    TF_DeleteTensor(b);
    TF_DeleteStatus(s);
}

static void texts_of_any_length_have_their_layout(void **state)
{
    (void)state;
    char text[1000];
    memset(text, 'x', sizeof text);
    assert_int_equal(sizeof(TF_TString), 24);
    for (size_t length = 0; length <= sizeof text; length = length < 40 ? length + 1 : length * 5) {
        TF_TString t;
        TF_StringInit(&t);
        TF_StringCopy(&t, text, length);
        assert_int_equal(TF_StringGetSize(&t), length);
        assert_int_equal(TF_StringGetType(&t), length <= 22 ? TF_TSTR_SMALL : TF_TSTR_LARGE);
        assert_memory_equal(TF_StringGetDataPointer(&t), text, length);
        assert_int_equal(TF_StringGetDataPointer(&t)[length], 0);
        assert_true(TF_StringGetCapacity(&t) >= length);
        TF_StringDealloc(&t);
    }
    TF_TString view;
    TF_StringInit(&view);
    TF_StringAssignView(&view, text, 100);
    assert_ptr_equal(TF_StringGetDataPointer(&view), text);
    assert_int_equal(TF_StringGetType(&view), TF_TSTR_VIEW);
    TF_StringDealloc(&view);
}

static void tensor_of_texts_frees_them(void **state)
{
    (void)state;
    TF_Tensor *t = TF_AllocateTensor(TF_STRING, (int64_t[]){4, 1}, 2, 4 * sizeof(TF_TString));
    TF_TString *texts = TF_TensorData(t);
    for (int i = 0; i < 4; i++) {
        TF_StringInit(&texts[i]);
        TF_StringCopy(&texts[i], "this text is longer than what fits into an element", 50);
    }
    TF_DeleteTensor(t);
}

/* x -> neg, as a message; to be deleted. */
static TF_Buffer *small_graph_def(void)
{
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_Buffer *def = TF_NewBuffer();
    TF_Operation *feed = placeholder(graph, "feed", TF_INT32, s);
    TF_Operation *scalar = constant(graph, "scalar", int_tensor(3), s);
    add(graph, "add", out(feed), out(scalar), s);
    assert_fine(s);
    unary(graph, "Neg", "neg", out(TF_GraphOperationByName(graph, "add")), s);
    TF_GraphToGraphDef(graph, def, s);
    assert_fine(s);
    TF_GraphToGraphDef(graph, def, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Passing non-empty TF_Buffer is invalid.");
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
    return def;
}

static void graph_is_imported_and_run(void **state)
{
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_Buffer *def = small_graph_def();
    TF_ImportGraphDefOptions *options = TF_NewImportGraphDefOptions();
    TF_ImportGraphDefOptionsSetPrefix(options, "imported");
    TF_GraphImportGraphDef(graph, def, options, s);
    assert_fine(s);
    TF_Operation *feed = TF_GraphOperationByName(graph, "imported/feed");
    TF_Operation *neg = TF_GraphOperationByName(graph, "imported/neg");
    assert_non_null(feed);
    assert_non_null(neg);
    assert_null(TF_GraphOperationByName(graph, "neg"));
    size_t at = 0;
    int count = 0;
    while (TF_GraphNextOperation(graph, &at))
        count++;
    assert_int_equal(count, 4);
    TF_Session *session = session_of(graph, s);
    TF_Tensor *three = int_tensor(3), *result = run(session, out(feed), three, out(neg), s);
    assert_fine(s);
    assert_int_equal(*(int32_t *)TF_TensorData(result), -6);
    TF_DeleteTensor(result);
    /* The graph grows under the session. */
    TF_Operation *again = unary(graph, "Neg", "again", out(neg), s);
    result = run(session, out(feed), three, out(again), s);
    assert_fine(s);
    assert_int_equal(*(int32_t *)TF_TensorData(result), 6);
    TF_DeleteTensor(result);
    /* Any output may be fed. */
    result = run(session, out(neg), three, out(again), s);
    assert_fine(s);
    assert_int_equal(*(int32_t *)TF_TensorData(result), -3);
    TF_DeleteTensor(result);
    TF_DeleteTensor(three);
    TF_DeleteGraph(graph); /* the session keeps it */
    close_session(session, s);
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(def);
    TF_DeleteStatus(s);
}

static void import_leads_inputs_to_what_is_there(void **state)
{
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_Buffer *def = small_graph_def();
    TF_Operation *mine = placeholder(graph, "mine", TF_INT32, s);
    TF_ImportGraphDefOptions *options = TF_NewImportGraphDefOptions();
    TF_ImportGraphDefOptionsSetPrefix(options, "x/");
    TF_ImportGraphDefOptionsAddInputMapping(options, "feed", 0, out(placeholder(graph, "other", TF_INT32, s)));
    TF_ImportGraphDefOptionsAddInputMapping(options, "fake", 0, out(mine));
    TF_ImportGraphDefOptionsAddInputMapping(options, "feed", 0, out(mine)); /* what is told last stands */
    TF_ImportGraphDefOptionsAddInputMapping(options, "fake", 0, out(mine));
    TF_ImportGraphDefOptionsAddInputMapping(options, "feed", 3, out(mine)); /* which has one output */
    TF_ImportGraphDefOptionsAddReturnOutput(options, "feed", 0);
    TF_ImportGraphDefOptionsAddReturnOutput(options, "scalar", 0);
    TF_ImportGraphDefOptionsAddReturnOperation(options, "feed");
    TF_ImportGraphDefOptionsAddControlDependency(options, mine);
    assert_int_equal(TF_ImportGraphDefOptionsNumReturnOutputs(options), 2);
    assert_int_equal(TF_ImportGraphDefOptionsNumReturnOperations(options), 1);
    TF_ImportGraphDefResults *results = TF_GraphImportGraphDefWithResults(graph, def, options, s);
    assert_fine(s);
    int count;
    TF_Output *outputs;
    TF_Operation **operations;
    const char **names;
    int *indexes;
    TF_ImportGraphDefResultsReturnOutputs(results, &count, &outputs);
    assert_int_equal(count, 2);
    assert_ptr_equal(outputs[0].oper, mine);
    assert_ptr_equal(outputs[1].oper, TF_GraphOperationByName(graph, "x/scalar"));
    TF_ImportGraphDefResultsReturnOperations(results, &count, &operations);
    assert_int_equal(count, 1);
    assert_string_equal(TF_OperationName(operations[0]), "x/feed");
    TF_ImportGraphDefOptions *none = TF_NewImportGraphDefOptions();
    TF_DeleteImportGraphDefOptions(options); /* the results keep nothing of it */
    TF_ImportGraphDefResultsMissingUnusedInputMappings(results, &count, &names, &indexes);
    assert_int_equal(count, 2);
    assert_int_equal(indexes[0], 0);
    assert_int_equal(indexes[1], 3);
#ifndef ON_TENSORFLOW /* whose names went with the GraphDef's nodes */
    assert_string_equal(names[0], "fake");
    assert_string_equal(names[1], "feed");
#endif
    TF_Operation *sum = TF_GraphOperationByName(graph, "x/add");
    assert_ptr_equal(TF_OperationInput((TF_Input){sum, 0}).oper, mine);
    assert_int_equal(TF_OperationNumControlInputs(sum), 0); /* it takes x/scalar, which waits */
    TF_Operation *scalar = TF_GraphOperationByName(graph, "x/scalar"), *control;
    assert_int_equal(TF_OperationGetControlInputs(scalar, &control, 1), 1);
    assert_ptr_equal(control, mine);
    TF_ImportGraphDefOptionsAddReturnOutput(none, "nothing", 0);
    int before = 0;
    for (size_t at = 0; TF_GraphNextOperation(graph, &at);)
        before++;
    assert_null(TF_GraphImportGraphDefWithResults(graph, def, none, s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "Requested return tensor 'nothing:0' not found in graph def");
    int after = 0;
    for (size_t at = 0; TF_GraphNextOperation(graph, &at);)
        after++;
    assert_int_equal(after, before);
    TF_Output returned[3];
    TF_GraphImportGraphDefWithReturnOutputs(graph, def, none, returned, 3, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Expected 'num_return_outputs' to be 1, got 3");
    TF_DeleteImportGraphDefResults(results);
    TF_DeleteImportGraphDefOptions(none);
    TF_DeleteBuffer(def);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
}

static void names_that_are_taken_become_others(void **state)
{
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_Buffer *def = small_graph_def();
    TF_ImportGraphDefOptions *options = TF_NewImportGraphDefOptions();
    TF_ImportGraphDefOptionsSetUniquifyNames(options, 1);
    for (int i = 0; i < 3; i++) {
        TF_GraphImportGraphDef(graph, def, options, s);
        assert_fine(s);
    }
    TF_Operation *second = TF_GraphOperationByName(graph, "neg_2");
    assert_non_null(second);
    assert_string_equal(TF_OperationName(TF_OperationInput((TF_Input){second, 0}).oper), "add_2");
    TF_ImportGraphDefOptionsSetUniquifyNames(options, 0);
    TF_GraphImportGraphDef(graph, def, options, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Node name 'feed' already exists in the Graph");
    TF_ImportGraphDefOptionsSetUniquifyPrefix(options, 1);
    TF_ImportGraphDefOptionsSetPrefix(options, "p");
    TF_ImportGraphDefOptionsSetDefaultDevice(options, "/device:CPU:0");
    for (int i = 0; i < 2; i++) {
        TF_GraphImportGraphDef(graph, def, options, s);
        assert_fine(s);
    }
    TF_Operation *neg = TF_GraphOperationByName(graph, "p_1/neg");
    assert_non_null(neg);
    assert_string_equal(TF_OperationDevice(neg), "/device:CPU:0");
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(def);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
}

static void what_is_no_graph_is_refused(void **state)
{
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_Buffer *def = TF_NewBufferFromString("not a graph", 11);
    TF_ImportGraphDefOptions *options = TF_NewImportGraphDefOptions();
    TF_GraphImportGraphDef(graph, def, options, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Invalid GraphDef");
    TF_DeleteBuffer(def);
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
}

static void texts_go_in_and_come_out(void **state)
{
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_Operation *x = placeholder(graph, "x", TF_STRING, s), *y = unary(graph, "Identity", "y", out(x), s);
    TF_Operation *z = unary(graph, "StringLower", "z", out(y), s);
    TF_Session *session = session_of(graph, s);
    const char *texts[] = {"", "short", "one that is longer than twenty-two bytes"};
    TF_Tensor *t = TF_AllocateTensor(TF_STRING, (int64_t[]){3}, 1, 3 * sizeof(TF_TString));
    for (int i = 0; i < 3; i++) {
        TF_TString *text = (TF_TString *)TF_TensorData(t) + i;
        TF_StringInit(text);
        TF_StringCopy(text, texts[i], strlen(texts[i]));
    }
    TF_Tensor *results[2];
    TF_SessionRun(session, NULL, &(TF_Output){x, 0}, &t, 1, (TF_Output[]){{y, 0}, {z, 0}}, results, 2, NULL, 0, NULL,
                  s);
    assert_fine(s);
    TF_DeleteTensor(t);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(TF_TensorByteSize(results[k]), 72);
        for (int i = 0; i < 3; i++) {
            const TF_TString *got = (TF_TString *)TF_TensorData(results[k]) + i;
            assert_int_equal(TF_StringGetSize(got), strlen(texts[i]));
            assert_memory_equal(TF_StringGetDataPointer(got), texts[i], strlen(texts[i]));
        }
        TF_DeleteTensor(results[k]);
    }
    close_session(session, s);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
}

/* What comes out may be the memory that went in, which then lives on. */
static void result_outlives_what_was_fed(void **state)
{
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_Operation *x = placeholder(graph, "x", TF_FLOAT, s), *y = unary(graph, "Identity", "y", out(x), s);
    TF_Session *session = session_of(graph, s);
    const float values[] = {1, 2};
    TF_Tensor *t = float_tensor((int64_t[]){2}, 1, values), *results[2];
    TF_SessionRun(session, NULL, &(TF_Output){x, 0}, &t, 1, (TF_Output[]){{y, 0}, {y, 0}}, results, 2, NULL, 0, NULL,
                  s);
    assert_fine(s);
    TF_DeleteTensor(t);
    for (int i = 0; i < 2; i++) {
        assert_memory_equal(TF_TensorData(results[i]), values, sizeof values);
        TF_DeleteTensor(results[i]);
    }
    t = float_tensor((int64_t[]){0}, 1, values);
    TF_Tensor *empty = run(session, out(x), t, out(y), s);
    assert_fine(s);
    assert_int_equal(TF_TensorByteSize(empty), 0);
    assert_null(run(session, out(x), t, out(x), s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "both fed and fetched");
    TF_DeleteTensor(empty);
    TF_DeleteTensor(t);
    close_session(session, s);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
}

/* As often as it is fed again; a run that fails gives none of it. */
static void what_is_passed_on_is_not_copied(void **state)
{
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_Operation *x = placeholder(graph, "x", TF_FLOAT, s), *unfed = placeholder(graph, "unfed", TF_FLOAT, s);
    TF_Operation *y = unary(graph, "StopGradient", "y", out(unary(graph, "Identity", "first", out(x), s)), s);
    TF_Session *session = session_of(graph, s);
    float *values = aligned_alloc(64, 64);
    values[0] = 5;
    deallocated = 0;
    TF_Tensor *t = TF_NewTensor(TF_FLOAT, NULL, 0, values, sizeof *values, deallocate, &deallocated);
    for (int i = 0; i < 100; i++) {
        TF_Tensor *next = run(session, out(x), t, out(y), s);
        assert_fine(s);
        TF_DeleteTensor(t);
        t = next;
        assert_ptr_equal(TF_TensorData(t), values);
    }
    TF_Tensor *results[2] = {t, t};
    TF_SessionRun(session, NULL, &(TF_Output){x, 0}, &t, 1, (TF_Output[]){{y, 0}, {unfed, 0}}, results, 2, NULL, 0,
                  NULL, s);
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
    assert_null(results[0]);
    assert_null(results[1]);
    assert_int_equal(deallocated, 0);
    TF_DeleteTensor(t);
    assert_int_equal(deallocated, 1);
    close_session(session, s);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
}

static void wrong_runs_say_what_is_wrong(void **state)
{
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_Operation *x = placeholder(graph, "x", TF_INT32, s), *y = unary(graph, "Neg", "y", out(x), s);
    TF_Session *session = session_of(graph, s);
    assert_null(run(session, (TF_Output){NULL, 0}, NULL, out(y), s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "x");
    TF_Tensor *wrong = float_tensor(NULL, 0, (float[]){1});
    assert_null(run(session, out(x), wrong, out(y), s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "x");
    TF_DeleteTensor(wrong);
    assert_null(run(session, (TF_Output){NULL, 0}, NULL, (TF_Output){y, 3}, s));
    assert_int_not_equal(TF_GetCode(s), TF_OK);
    TF_Buffer *bad = TF_NewBufferFromString("\xff\xff", 2);
    TF_SessionRun(session, bad, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, NULL, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Unparseable RunOptions proto");
    TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, bad, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Passing non-empty run_metadata is invalid.");
    TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, NULL, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Must specify at least one target to fetch or execute.");
#ifndef ON_TENSORFLOW
    TF_Buffer *def = TF_NewBufferFromString(
        "\n\014\n\001u\022\007Unheard\n\020\n\001n\022\010Identity\032\001u", 32);
    TF_ImportGraphDefOptions *importing = TF_NewImportGraphDefOptions();
    TF_GraphImportGraphDef(graph, def, importing, s);
    assert_fine(s);
    assert_null(run(session, (TF_Output){NULL, 0}, NULL, out(TF_GraphOperationByName(graph, "n")), s));
    assert_wrong(s, TF_NOT_FOUND, "node 'n' (Identity): it needs 'u': Op type not registered 'Unheard'");
    TF_DeleteImportGraphDefOptions(importing);
    TF_DeleteBuffer(def);
#endif
    TF_CloseSession(session, s);
    assert_fine(s);
    TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, (const TF_Operation *[]){y}, 1, NULL, s);
    assert_wrong(s, TF_CANCELLED, "Session has been closed.");
    const char *handle;
    TF_SessionPRunSetup(session, NULL, 0, NULL, 0, (const TF_Operation *[]){y}, 1, &handle, s);
    assert_wrong(s, TF_CANCELLED, "Session has been closed.");
    assert_null(handle);
    TF_DeleteSession(session, s);
    TF_SessionOptions *options = TF_NewSessionOptions();
    TF_SetConfig(options, "\xff\xff", 2, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Unparseable ConfigProto");
    TF_DeleteSessionOptions(options);
    TF_DeleteBuffer(bad);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
}

static void traced_run_tells_which_device_ran_what(void **state)
{
    (void)state;
    static const unsigned char levels[] = {0, 1, 3}; /* none, of software, all */
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_Operation *x = placeholder(graph, "x", TF_FLOAT, s), *y = binary(graph, "MatMul", "product", out(x), out(x), s);
    TF_Session *session = session_of(graph, s);
    TF_Output feed = out(x), fetch = out(y);
    for (size_t i = 0; i < sizeof levels; i++) {
        TF_Tensor *value = float_tensor((int64_t[]){1, 1}, 2, (float[]){3}), *result = NULL;
        TF_Buffer *options = TF_NewBufferFromString((unsigned char[]){8, levels[i]}, 2), *told = TF_NewBuffer();
        TF_SessionRun(session, options, &feed, &value, 1, &fetch, &result, 1, NULL, 0, told, s);
        assert_fine(s);
        assert_true(*(float *)TF_TensorData(result) == 9);
        bool has_label = told->length && memmem(told->data, told->length, "product = ", 10);
        bool has_device = told->length && memmem(told->data, told->length, "/task:0/device:CPU:0", 20);
        assert_true(has_label == (levels[i] > 0) && has_device == has_label);
        TF_DeleteTensor(value);
        TF_DeleteTensor(result);
        TF_DeleteBuffer(options);
        TF_DeleteBuffer(told);
    }
    close_session(session, s);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
}

static void session_lists_devices(void **state)
{
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_SessionOptions *options = TF_NewSessionOptions();
    TF_SetConfig(options, "\x0a\x07\x0a\x03" /* device_count {"CPU": 0} */
                          "CPU\x10\x00",
                 9, s);
    assert_fine(s);
    assert_null(TF_NewSession(graph, options, s));
    assert_wrong(s, TF_NOT_FOUND, "No CPU devices are available in this process");
    /* device_count {"CPU": 2}, intra_op_parallelism_threads 1, allow_soft_placement */
    static const char config[] = "\x0a\x07\x0a\x03"
                                 "CPU\x10\x02\x10\x01\x38\x01";
    TF_SetStatus(s, TF_OK, ""); /* TensorFlow's own leaves it alone in the next */
    TF_SetConfig(options, config, sizeof config - 1, s);
    assert_fine(s);
    TF_Session *session = TF_NewSession(graph, options, s);
    assert_fine(s);
    TF_DeviceList *list = TF_SessionListDevices(session, s);
    assert_fine(s);
    assert_true(TF_DeviceListCount(list) >= 2);
    assert_string_equal(TF_DeviceListName(list, 1, s), "/job:localhost/replica:0/task:0/device:CPU:1");
    assert_string_equal(TF_DeviceListType(list, 1, s), "CPU");
    assert_true(TF_DeviceListMemoryBytes(list, 0, s) > 0);
    assert_fine(s);
    assert_null(TF_DeviceListName(list, 100, s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "index out of bounds");
    TF_DeleteDeviceList(list);
    close_session(session, s);
    TF_DeleteSessionOptions(options);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
}

static void saved_model_is_served_and_trained(void **state)
{
    (void)state;
    static const char directory[] = GOLDEN_DIR "/files/saved_model";
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_SessionOptions *options = TF_NewSessionOptions();
    TF_Buffer *meta = TF_NewBuffer();
    const char *const tags[] = {"serve"}, *const others[] = {"serve", "gpu"};
    assert_null(TF_LoadSessionFromSavedModel(options, NULL, directory, others, 2, graph, NULL, s));
    assert_wrong(s, TF_NOT_FOUND, "Could not find meta graph def matching supplied tags: { ");
    assert_null(TF_LoadSessionFromSavedModel(options, NULL, "/nowhere", tags, 1, graph, NULL, s));
    assert_wrong(s, TF_NOT_FOUND,
                 "Could not find SavedModel .pb or .pbtxt at supplied export directory path: /nowhere");
    TF_Session *session = TF_LoadSessionFromSavedModel(options, NULL, directory, tags, 1, graph, meta, s);
    assert_fine(s);
    bool has_signature = false;
    for (size_t i = 0; i + 15 < meta->length; i++)
        has_signature |= memcmp((const char *)meta->data + i, "serving_default", 15) == 0;
    assert_true(has_signature);
    TF_Output x = out(TF_GraphOperationByName(graph, "x")), loss = out(TF_GraphOperationByName(graph, "loss"));
    const TF_Operation *train = TF_GraphOperationByName(graph, "train");
    TF_Tensor *images = float_tensor((int64_t[]){2, 3}, 2, (float[]){1, 2, 3, 4, 5, 6});
    TF_Tensor *result = run(session, x, images, loss, s);
    assert_fine(s);
    assert_float_equal(*(float *)TF_TensorData(result), 5200.54, 0.01);
    TF_DeleteTensor(result);
    TF_SessionRun(session, NULL, &x, &images, 1, NULL, NULL, 0, &train, 1, NULL, s);
    assert_fine(s);
    result = run(session, x, images, loss, s);
    assert_fine(s);
    assert_true(fabsf(*(float *)TF_TensorData(result) - 5200.54f) > 1);
    TF_DeleteTensor(result);
    assert_null(TF_LoadSessionFromSavedModel(options, NULL, directory, tags, 1, graph, NULL, s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "Graph is non-empty.");
    TF_DeleteTensor(images);
    TF_DeleteBuffer(meta);
    TF_DeleteSessionOptions(options);
    close_session(session, s);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
}

/* A model as a text is as good, tags stand in any order, and one that cannot be loaded leaves the graph empty. */
static void saved_models_are_found(void **state)
{
    (void)state;
    static const char text[] = GOLDEN_DIR "/files/saved_model_text";
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_SessionOptions *options = TF_NewSessionOptions();
    const char *const tags[] = {"serve", "serve"}, *const others[] = {"train", "gpu", "train"};
    assert_null(TF_LoadSessionFromSavedModel(options, NULL, text, NULL, 0, graph, NULL, s));
    assert_wrong(s, TF_NOT_FOUND, "Could not find meta graph def matching supplied tags: {  }.");
    assert_null(TF_LoadSessionFromSavedModel(options, NULL, text, others, 3, graph, NULL, s));
    assert_wrong(s, TF_NOT_FOUND, "Could not find meta graph def matching supplied tags: { gpu train }.");
#ifndef ON_TENSORFLOW
    assert_wrong(s, TF_NOT_FOUND, "there are 'serve'");
#endif
    char folder[] = "/tmp/saved_model_XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    assert_null(TF_LoadSessionFromSavedModel(options, NULL, folder, tags, 1, graph, NULL, s));
    assert_wrong(s, TF_NOT_FOUND, "Could not find SavedModel .pb or .pbtxt at supplied export directory path: ");
    snprintf(path, sizeof path, "%s/saved_model.pb", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    assert_null(TF_LoadSessionFromSavedModel(options, NULL, folder, tags, 1, graph, NULL, s)); /* as none has tags */
    assert_int_not_equal(TF_GetCode(s), TF_OK);
    remove(path);
    rmdir(folder);
    TF_Buffer *meta = TF_NewBuffer();
    TF_Session *session = TF_LoadSessionFromSavedModel(options, NULL, text, tags, 2, graph, meta, s);
    assert_fine(s);
    assert_non_null(memmem(meta->data, meta->length, "serving_default", 15));
    TF_DeleteBuffer(meta);
    TF_DeleteSessionOptions(options);
    close_session(session, s);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
}

/* ---- deadlines -------------------------------------------------------------------------------------------------- */

static TF_Operation *a_queue(TF_Graph *graph, TF_Status *s)
{
    TF_OperationDescription *d = TF_NewOperation(graph, "FIFOQueueV2", "queue");
    TF_SetAttrTypeList(d, "component_types", (TF_DataType[]){TF_INT32}, 1);
    TF_Operation *queue = TF_FinishOperation(d, s);
    assert_fine(s);
    return queue;
}

static const TF_Operation *put_seven(TF_Graph *graph, TF_Operation *queue, TF_Status *s)
{
    TF_OperationDescription *d = TF_NewOperation(graph, "QueueEnqueueV2", "put");
    TF_AddInput(d, out(queue));
    TF_AddInputList(d, (TF_Output[]){out(constant(graph, "seven", int_tensor(7), s))}, 1);
    const TF_Operation *put = TF_FinishOperation(d, s);
    assert_fine(s);
    return put;
}

static TF_Output take_from(TF_Graph *graph, TF_Operation *queue, TF_Status *s)
{
    TF_OperationDescription *d = TF_NewOperation(graph, "QueueDequeueV2", "take");
    TF_AddInput(d, out(queue));
    TF_SetAttrTypeList(d, "component_types", (TF_DataType[]){TF_INT32}, 1);
    TF_Operation *take = TF_FinishOperation(d, s);
    assert_fine(s);
    return out(take);
}

static void checkpoint_is_read_tensor_by_tensor(void **state)
{
    (void)state;
    TF_Status *s = TF_NewStatus();
    assert_null(TF_NewCheckpointReader(GOLDEN_DIR "/there_is_none", s));
    assert_int_equal(TF_GetCode(s), TF_NOT_FOUND);
    TF_SetStatus(s, TF_OK, ""); /* TensorFlow looks at it */
    TF_CheckpointReader *reader = TF_NewCheckpointReader(GOLDEN_DIR "/tf1_saver", s);
    assert_fine(s);
    assert_int_equal(TF_CheckpointReaderSize(reader), 3);
    assert_int_equal(TF_CheckpointReaderHasTensor(reader, "weights"), 1);
    assert_int_equal(TF_CheckpointReaderHasTensor(reader, "nothing"), 0);
    static const char *const names[] = {"resource", "steps", "weights"};
    for (int i = 0; i < 3; i++)
        assert_string_equal(TF_CheckpointReaderGetVariable(reader, i), names[i]);
    assert_int_equal(TF_CheckpointReaderGetVariableDataType(reader, "steps"), TF_INT64);
    assert_int_equal(TF_CheckpointReaderGetVariableNumDims(reader, "weights"), 2);
    int64_t dims[2];
    TF_CheckpointReaderGetVariableShape(reader, "weights", dims, 2, s);
    assert_fine(s);
    assert_true(dims[0] == 2 && dims[1] == 3);
    TF_CheckpointReaderGetVariableShape(reader, "weights", dims, 1, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Expected rank is 1 but actual rank is 2");
    TF_SetStatus(s, TF_OK, "");
    TF_Tensor *weights = TF_CheckpointReaderGetTensor(reader, "weights", s);
    assert_fine(s);
    assert_null(TF_CheckpointReaderGetTensor(reader, "nothing", s));
    assert_int_equal(TF_GetCode(s), TF_NOT_FOUND);
    TF_DeleteCheckpointReader(reader);
    assert_int_equal(TF_Dim(weights, 1), 3);
    assert_true(((float *)TF_TensorData(weights))[5] == 2.25f);
    TF_DeleteTensor(weights);
    TF_DeleteStatus(s);
}

static void configurations_are_made_for_those_who_write_no_messages(void **state)
{
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_SessionOptions *options = TF_NewSessionOptions();
    TF_Buffer *config = TF_CreateConfig(0, 1, 2), *traced = TF_CreateRunOptions(1), *plain = TF_CreateRunOptions(0);
    TF_SetConfig(options, config->data, config->length, s);
    assert_fine(s);
    TF_EnableXLACompilation(options, 0);
    TF_Session *session = TF_NewSession(graph, options, s);
    assert_fine(s);
    TF_DeviceList *devices = TF_SessionListDevices(session, s);
    int cpus = 0;
    for (int i = 0; i < TF_DeviceListCount(devices); i++)
        cpus += strcmp(TF_DeviceListType(devices, i, s), "CPU") == 0;
    assert_int_equal(cpus, 2);
    TF_DeleteDeviceList(devices);
    TF_Output c = out(constant(graph, "c", int_tensor(7), s));
    for (int i = 0; i < 2; i++) {
        TF_Tensor *value = NULL;
        TF_Buffer *metadata = TF_NewBuffer();
        TF_SessionRun(session, i ? traced : plain, NULL, NULL, 0, &c, &value, 1, NULL, 0, metadata, s);
        assert_fine(s);
        assert_int_equal(metadata->length > 0, i);
        TF_DeleteBuffer(metadata);
        TF_DeleteTensor(value);
    }
    size_t length;
    char *text = (char *)TF_GraphDebugString(graph, &length);
    assert_non_null(strstr(text, "  name: \"c\"\n  op: \"Const\"\n"));
    assert_int_equal(strlen(text), length);
    free(text);
    TF_Function *function = TF_GraphToFunction(graph, "F", 0, -1, NULL, 0, NULL, 1, &c, NULL, NULL, NULL, s);
    assert_fine(s);
    assert_non_null(strstr(text = TF_FunctionDebugString(function, &length), "F"));
    assert_int_equal(strlen(text), length);
    free(text);
    TF_DeleteFunction(function);
    close_session(session, s);
    TF_DeleteBuffer(config);
    TF_DeleteBuffer(traced);
    TF_DeleteBuffer(plain);
    TF_DeleteSessionOptions(options);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
}

static void assert_timed_out(TF_Session *session, const TF_Buffer *options, TF_Output fetch, TF_Status *s)
{
    TF_Tensor *result = NULL;
    TF_SessionRun(session, options, NULL, NULL, 0, &fetch, &result, 1, NULL, 0, NULL, s);
    assert_wrong(s, TF_DEADLINE_EXCEEDED, "Timed out waiting for notification");
    assert_null(result);
}

static void a_run_that_takes_too_long_is_ended_and_no_other(void **state)
{
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_Operation *queue = a_queue(graph, s);
    const TF_Operation *put = put_seven(graph, queue, s);
    TF_Output take = take_from(graph, queue, s);
    TF_SessionOptions *of_all = TF_NewSessionOptions();
    TF_SetConfig(of_all, "\x58\x1e", 2, s); /* operation_timeout_in_ms: 30 */
    assert_fine(s);
    TF_Buffer *of_one = TF_NewBufferFromString("\x10\x1e", 2);     /* timeout_in_ms: 30 */
    TF_Buffer *long_one = TF_NewBufferFromString("\x10\xe0\xd4\x03", 4); /* 60000 */
    for (int i = 0; i < 2; i++) {
        TF_Session *session = i ? TF_NewSession(graph, of_all, s) : session_of(graph, s);
        for (int k = 0; k < 2; k++)
            assert_timed_out(session, i ? NULL : of_one, take, s);
        TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &put, 1, NULL, s);
        assert_fine(s);
        TF_Tensor *result = NULL;
        TF_SessionRun(session, long_one, NULL, NULL, 0, &take, &result, 1, NULL, 0, NULL, s);
        assert_fine(s);
        assert_int_equal(*(int32_t *)TF_TensorData(result), 7);
        TF_DeleteTensor(result);
        close_session(session, s);
    }
    TF_DeleteBuffer(of_one);
    TF_DeleteBuffer(long_one);
    TF_DeleteSessionOptions(of_all);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, RUNS = 50 };

typedef struct shared {
    TF_Graph *graph;
    TF_Session *session;
    TF_Operation *x, *y;
    int number;
    int wrong;
} shared;

static void *work(void *user)
{
    shared *w = user;
    TF_Status *s = TF_NewStatus();
    for (int i = 0; i < RUNS; i++) {
        TF_Tensor *t = int_tensor(w->number * 1000 + i), *result = run(w->session, out(w->x), t, out(w->y), s);
        w->wrong += !result || *(int32_t *)TF_TensorData(result) != -(w->number * 1000 + i);
        TF_DeleteTensor(t);
        TF_DeleteTensor(result);
        if (i % 10 == 0) {
            char name[40];
            snprintf(name, sizeof name, "more_%d_%d", w->number, i);
            TF_OperationDescription *d = TF_NewOperation(w->graph, "Neg", name);
            TF_AddInput(d, out(w->y));
            w->wrong += !TF_FinishOperation(d, s);
        }
    }
    TF_DeleteStatus(s);
    return NULL;
}

static void threads_run_one_session_while_they_build(void **state)
{
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_Operation *x = placeholder(graph, "x", TF_INT32, s), *y = unary(graph, "Neg", "y", out(x), s);
    TF_Session *session = session_of(graph, s);
    shared each[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        each[i] = (shared){graph, session, x, y, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &each[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(each[i].wrong, 0);
    }
    assert_int_equal(TF_OperationOutputNumConsumers(out(y)), THREADS * RUNS / 10);
    close_session(session, s);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
}

/* while (x < 100) x = x + x, and 0: that went well and gave what it should. */
static int add_and_run_loop(shared *w, const char *name, TF_Status *s)
{
    TF_Output x = out(w->x), y;
    TF_WhileParams loop = TF_NewWhile(w->graph, &x, 1, s);
    assert_fine(s);
    loop.name = name;
    TF_Operation *limit = constant(loop.cond_graph, "limit", int_tensor(100), s);
    loop.cond_output = out(binary(loop.cond_graph, "Less", "less", loop.cond_inputs[0], out(limit), s));
    loop.body_outputs[0] = out(add(loop.body_graph, "twice", loop.body_inputs[0], loop.body_inputs[0], s));
    TF_FinishWhile(&loop, s, &y);
    if (TF_GetCode(s) != TF_OK)
        return 1;
    TF_Tensor *seven = int_tensor(7), *result = run(w->session, x, seven, y, s);
    int wrong = !result || *(int32_t *)TF_TensorData(result) != 112;
    TF_DeleteTensor(seven);
    TF_DeleteTensor(result);
    return wrong;
}

static void *add_loops(void *user)
{
    enum { LOOPS = 4 };
    shared *w = user;
    TF_Status *s = TF_NewStatus();
    for (int i = 0; i < LOOPS; i++) {
        w->wrong += add_and_run_loop(w, "loop", s); /* each finds a name of its own */
        TF_Session *own = session_of(w->graph, s);
        TF_Buffer *def = TF_NewBuffer();
        TF_GraphToGraphDef(w->graph, def, s);
        w->wrong += TF_GetCode(s) != TF_OK;
        TF_DeleteBuffer(def);
        close_session(own, s);
    }
    TF_DeleteStatus(s);
    return NULL;
}

/* TensorFlow's own says that the output has no value. */
static void threads_add_loops_to_one_graph(void **state)
{
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_Operation *x = placeholder(graph, "x", TF_INT32, s);
    TF_Session *session = session_of(graph, s);
    pthread_t threads[THREADS];
    shared each[THREADS];
    for (int i = 0; i < THREADS; i++) {
        each[i] = (shared){graph, session, x, x, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, add_loops, &each[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(each[i].wrong, 0);
    }
    close_session(session, s);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
}

static void *take_seven(void *user)
{
    shared *w = user;
    TF_Status *s = TF_NewStatus();
    TF_Buffer *options = TF_NewBufferFromString("\x10\xa0\x9c\x01", 4); /* timeout_in_ms: 20000 */
    TF_Tensor *result = NULL;
    TF_Output take = out(w->x);
    TF_SessionRun(w->session, options, NULL, NULL, 0, &take, &result, 1, NULL, 0, NULL, s);
    w->wrong = !result || *(int32_t *)TF_TensorData(result) != 7;
    TF_DeleteTensor(result);
    TF_DeleteBuffer(options);
    TF_DeleteStatus(s);
    return NULL;
}

static void what_a_run_waits_for_may_be_built_meanwhile(void **state)
{
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_Operation *queue = a_queue(graph, s);
    shared waits = {graph, session_of(graph, s), take_from(graph, queue, s).oper, NULL, 0, 0};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, take_seven, &waits), 0);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* for the run to begin; right also if it has not */
    const TF_Operation *put = put_seven(graph, queue, s);
    TF_SessionRun(waits.session, NULL, NULL, NULL, 0, NULL, NULL, 0, &put, 1, NULL, s);
    assert_fine(s);
    pthread_join(thread, NULL);
    assert_int_equal(waits.wrong, 0);
    close_session(waits.session, s);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
}

enum { LONGEST = 256 };

/* Runs whose loop has another shape in each round, each of which is planned. */
static void *double_lengths(void *user)
{
    shared *w = user;
    TF_Status *s = TF_NewStatus();
    static const float zeros[LONGEST];
    for (int64_t n = 1; n < 16; n++) {
        TF_Tensor *t = float_tensor(&n, 1, zeros), *result = run(w->session, out(w->x), t, out(w->y), s);
        int64_t length = n;
        while (length < LONGEST)
            length *= 2;
        w->wrong += !result || TF_TensorElementCount(result) != length;
        TF_DeleteTensor(t);
        TF_DeleteTensor(result);
    }
    __atomic_store_n(&w->number, 1, __ATOMIC_RELEASE);
    TF_DeleteStatus(s);
    return NULL;
}

static void rounds_are_planned_while_the_graph_grows(void **state)
{
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_Output x = out(placeholder(graph, "x", TF_FLOAT, s)), y;
    TF_GraphSetTensorShape(graph, x, (int64_t[]){-1}, 1, s);
    TF_WhileParams loop = TF_NewWhile(graph, &x, 1, s);
    assert_fine(s);
    loop.name = "loop";
    TF_Operation *size = unary(loop.cond_graph, "Size", "size", loop.cond_inputs[0], s);
    TF_Operation *most = constant(loop.cond_graph, "most", int_tensor(LONGEST), s);
    loop.cond_output = out(binary(loop.cond_graph, "Less", "less", out(size), out(most), s));
    TF_Operation *axis = constant(loop.body_graph, "axis", int_tensor(0), s);
    TF_OperationDescription *d = TF_NewOperation(loop.body_graph, "ConcatV2", "twice");
    TF_AddInputList(d, (TF_Output[]){loop.body_inputs[0], loop.body_inputs[0]}, 2);
    TF_AddInput(d, out(axis));
    loop.body_outputs[0] = out(TF_FinishOperation(d, s));
    assert_fine(s);
    TF_FinishWhile(&loop, s, &y);
    assert_fine(s);
    shared doubles = {graph, session_of(graph, s), x.oper, y.oper, 0, 0};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, double_lengths, &doubles), 0);
    for (int i = 0; i < 300 && !__atomic_load_n(&doubles.number, __ATOMIC_ACQUIRE); i++) {
        char name[40];
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        snprintf(name, sizeof name, "more_%d", i);
        unary(graph, "Neg", name, x, s);
    }
    pthread_join(thread, NULL);
    assert_int_equal(doubles.wrong, 0);
    close_session(doubles.session, s);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_says_what_it_was_told),
        cmocka_unit_test(nothing_can_be_deleted),
        cmocka_unit_test(tensor_takes_over_aligned_memory),
        cmocka_unit_test(tensor_that_is_too_short_is_none),
        cmocka_unit_test(memory_of_any_alignment_is_taken),
        cmocka_unit_test(bitcast_shares_memory),
        cmocka_unit_test(texts_of_any_length_have_their_layout),
        cmocka_unit_test(tensor_of_texts_frees_them),
        cmocka_unit_test(graph_is_imported_and_run),
        cmocka_unit_test(import_leads_inputs_to_what_is_there),
        cmocka_unit_test(names_that_are_taken_become_others),
        cmocka_unit_test(what_is_no_graph_is_refused),
        cmocka_unit_test(texts_go_in_and_come_out),
        cmocka_unit_test(result_outlives_what_was_fed),
        cmocka_unit_test(what_is_passed_on_is_not_copied),
        cmocka_unit_test(wrong_runs_say_what_is_wrong),
        cmocka_unit_test(traced_run_tells_which_device_ran_what),
        cmocka_unit_test(session_lists_devices),
        cmocka_unit_test(saved_model_is_served_and_trained),
        cmocka_unit_test(saved_models_are_found),
        cmocka_unit_test(checkpoint_is_read_tensor_by_tensor),
        cmocka_unit_test(configurations_are_made_for_those_who_write_no_messages),
        cmocka_unit_test(a_run_that_takes_too_long_is_ended_and_no_other),
        cmocka_unit_test(threads_run_one_session_while_they_build),
#ifndef ON_TENSORFLOW
        cmocka_unit_test(threads_add_loops_to_one_graph),
#endif
        cmocka_unit_test(what_a_run_waits_for_may_be_built_meanwhile),
        cmocka_unit_test(rounds_are_planned_while_the_graph_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

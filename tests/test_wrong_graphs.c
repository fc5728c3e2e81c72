/* test_wrong_graphs.c - ops of which there is no golden case by itself: state, handles, functions, random numbers. For
 * each, inputs are known with which it runs; then it runs with one thing about it wrong (wrong_graph.h), and is refused
 * with words, or gives values. With TOWER_WRONG=look in the environment it prints rows of its table for all ops without
 * cases, those of which golden programs are made, too (test_shapes.c and test_flow.c try these). */
#include "sparing_memory.h"
#include "wrong_graph.h"

enum { MOST_INPUTS = 12, MOST_ATTRS = 24, TRIES = 3000, ONE_OF_WRONG = 127};

static tw_devices *devices;
static int refused, given;

/* ---- a node that runs -------------------------------------------------------------------------------------------- */

static const tw_shape shapes[] = {{0, {0}}, {1, {2}},          {2, {2, 2}},    {1, {1}},
                                  {1, {4}}, {4, {1, 4, 4, 3}}, {3, {2, 2, 2}}, {2, {1, 3}}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static tw_dtype type_of_attr(const tw_op_info *op, const char *attr)
{
    for (int i = 0; i < op->num_attrs; i++)
        if (strcmp(op->attrs[i].name, attr) == 0)
            return op->attrs[i].is_optional      ? op->attrs[i].initial.type
                   : op->attrs[i].num_types == 0 ? TW_FLOAT32
                                                 : op->attrs[i].types[0];
    return TW_FLOAT32;
}

static tw_output number_of(tw_graph *g, tw_dtype dtype, tw_shape shape, bool is_zero)
{
    if (dtype == TW_STRING)
        return tw_fill(g, tw_shape_of(g, tw_zeros(g, TW_FLOAT32, shape)), text_scalar(g, "a"));
    tw_output x = is_zero ? tw_zeros(g, TW_FLOAT32, shape) : tw_ones(g, TW_FLOAT32, shape);
    return dtype == TW_FLOAT32 ? x : tw_cast(g, x, dtype);
}

/* A variable that has a value, and who must have run before. */
static tw_output variable_of(tw_graph *g, bool by_reference, tw_dtype dtype, tw_shape shape, tw_output *after)
{
    tw_attr attrs[] = {tw_attr_type("dtype", dtype), tw_attr_shape("shape", shape)};
    tw_output handle = made(g, by_reference ? "VariableV2" : "VarHandleOp", NULL, 0, attrs, 2);
    tw_output inputs[] = {handle, number_of(g, dtype, shape, false)};
    if (by_reference)
        return made(g, "Assign", inputs, 2, NULL, 0);
    *after = (tw_output){tw_add_node(g, "AssignVariableOp", NULL, inputs, 2, NULL, 0), -1};
    return handle;
}

/* Attributes that must be given. */
static int required(const tw_op_info *op, tw_attr *attrs)
{
    static const tw_dtype types[] = {TW_FLOAT32};
    static const tw_shape unknown[] = {{-1, {0}}};
    static const tw_string texts[] = {{"a", 1}};
    static const int64_t ints[] = {1, 1, 1, 1};
    static const float floats[] = {1};
    int count = 0;
    for (int i = 0; i < op->num_attrs && count < MOST_ATTRS; i++) {
        const tw_op_attr *a = &op->attrs[i];
        bool is_type = a->kind == TW_ATTR_TYPE || a->kind == TW_ATTR_TYPES;
        bool follows = false;
        for (int k = 0; k < op->num_inputs; k++)
            follows = follows || (op->inputs[k].type_attr && strcmp(op->inputs[k].type_attr, a->name) == 0) ||
                      (op->inputs[k].number_attr && strcmp(op->inputs[k].number_attr, a->name) == 0) ||
                      (op->inputs[k].types_attr && strcmp(op->inputs[k].types_attr, a->name) == 0);
        if (a->is_optional || follows)
            continue;
        attrs[count++] = a->kind == TW_ATTR_INT      ? tw_attr_int(a->name, 1)
                         : a->kind == TW_ATTR_FLOAT  ? tw_attr_float(a->name, 0.5f)
                         : a->kind == TW_ATTR_BOOL   ? tw_attr_bool(a->name, true)
                         : a->kind == TW_ATTR_STRING ? tw_attr_string(a->name, a->num_strings ? a->strings[0] : "a")
                         : a->kind == TW_ATTR_SHAPE  ? tw_attr_shape(a->name, unknown[0])
                         : a->kind == TW_ATTR_INTS   ? tw_attr_ints(a->name, ints, 4)
                         : a->kind == TW_ATTR_FLOATS ? tw_attr_floats(a->name, floats, 1)
                         : a->kind == TW_ATTR_TYPE   ? tw_attr_type(a->name, type_of_attr(op, a->name))
                         : is_type                   ? tw_attr_types(a->name, types, 1)
                         : a->kind == TW_ATTR_SHAPES ? tw_attr_shapes(a->name, unknown, 1)
                                                     : tw_attr_strings(a->name, texts, 1);
    }
    return count;
}

/* Of an update these have a shape; its other numbers are scalars. */
static bool has_shape(const char *input)
{
    static const char *const names[] = {
        "grad", "delta", "indices", "value", "updates", "gradient_indices", "gradient_values", "gradient_shape"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(input, names[i]) == 0)
            return true;
    return false;
}

/* The choice-th way to give the op inputs: each digit is one's shape, or which handle. NULL: it cannot be built so. */
static tw_node *build(tw_graph *g, const tw_op_info *op, unsigned choice)
{
    tw_output inputs[MOST_INPUTS + MOST_INPUTS];
    tw_attr attrs[MOST_ATTRS];
    int count = 0, waits = 0;
    tw_output after[MOST_INPUTS];
    tw_dtype of_variables = TW_FLOAT32;
    for (int i = 0; i < op->num_attrs; i++)
        if (op->attrs[i].kind == TW_ATTR_TYPE && strcmp(op->attrs[i].name, "Tindices") != 0)
            of_variables = type_of_attr(op, op->attrs[i].name);
    bool is_zero = choice % 2, by_name = choice / 2 % 2;
    choice /= 4;
    unsigned variables = choice % 3;
    choice /= 3;
    for (int i = 0; i < op->num_inputs && i < MOST_INPUTS; i++) {
        const tw_op_argument *a = &op->inputs[i];
        tw_dtype dtype = a->dtype ? a->dtype : a->type_attr ? type_of_attr(op, a->type_attr) : TW_FLOAT32;
        if (a->is_reference || (dtype == TW_RESOURCE && variables < 2)) {
            after[waits] = (tw_output){0};
            inputs[count++] = variable_of(g, a->is_reference, a->is_reference ? dtype : of_variables,
                                          variables % 2 ? TW_SHAPE(2) : TW_SHAPE(2, 2), &after[waits]);
            waits += after[waits].node != NULL;
        } else if (is_handle_type(dtype)) {
            inputs[count++] = other_handle(g, (int)(choice % 16));
            choice /= 16;
        } else if (by_name && !has_shape(a->name)) {
            inputs[count++] = number_of(g, dtype, TW_SCALAR, is_zero);
        } else {
            inputs[count++] = number_of(g, dtype, shapes[choice % SHAPES], is_zero);
            choice /= SHAPES;
        }
    }
    memcpy(inputs + count, after, sizeof *after * (size_t)waits);
    if (choice || tw_graph_status(g) != TW_OK)
        return NULL;
    return tw_add_node(g, op->name, "n", inputs, count + waits, attrs, required(op, attrs));
}

/* With inputs whose shapes hang on each other: ones of a shape, "2x1", "" of a scalar, or zeros, "z2x1". */
static tw_node *build_of(tw_graph *g, const tw_op_info *op, const char *inputs_text)
{
    tw_output inputs[2 * MOST_INPUTS];
    tw_attr attrs[MOST_ATTRS];
    int count = 0;
    const char *at = inputs_text;
    for (; at && count < 2 * MOST_INPUTS; count++) {
        const tw_op_argument *a = &op->inputs[count < op->num_inputs ? count : op->num_inputs - 1];
        tw_dtype dtype = a->dtype ? a->dtype : a->type_attr ? type_of_attr(op, a->type_attr) : TW_FLOAT32;
        bool is_zero = *at == 'z';
        tw_shape shape = {0};
        for (at += is_zero; *at >= '0' && *at <= '9'; at += *at == 'x')
            shape.dims[shape.rank++] = strtol(at, (char **)&at, 10);
        inputs[count] = number_of(g, dtype, shape, is_zero);
        at = *at == ' ' ? at + 1 : NULL;
    }
    return tw_add_node(g, op->name, "n", inputs, count, attrs, required(op, attrs));
}

static tw_status run_node(tw_graph *g, bool plain, tw_error *error)
{
    tw_session *s = NULL;
    tw_session_options options = TW_SIZED(tw_session_options);
    tw_output fetch = {tw_graph_find(g, "n"), -1};
    options.devices = devices;
    options.plain_kernels = plain;
    watch w;
    tw_status status = tw_session_create(g, &options, &s, error);
    if (status != TW_OK)
        return status;
    begin_watch(&w, s);
    status = tw_session_run(s, NULL, 0, &fetch, 1, NULL, error);
    end_watch(&w);
    tw_session_destroy(s);
    return status;
}

static void open_devices(void)
{
    tw_error error = {0};
    tw_device_options options = TW_SIZED(tw_device_options);
    options.cpu_threads = 1;
    options.no_gpus = true;
    if (!devices)
        assert_ok(tw_devices_create(&options, &devices, &error));
}

/* In a child: the number of a choice with which it runs. */
static void look_for_choice(const tw_op_info *op, int *choice, int *built)
{
    tw_set_allocator(sparing_resize, NULL);
    for (int i = 0; i < TRIES; i++) {
        tw_error error = {0};
        tw_graph *g = tw_graph_create();
        tw_node *node = build(g, op, (unsigned)i);
        if (node && *built < 0)
            *built = i;
        if (node) {
            open_devices();
            alarm(30);
            if (run_node(g, false, &error) == TW_OK) {
                *choice = i;
                return;
            }
        }
        tw_graph_destroy(g);
    }
}

static void run_wrong_graph(void *user, const char *bytes, size_t size, const char *what)
{
    (void)user;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_set_allocator(sparing_resize, NULL);
    open_devices();
    tw_status status = tw_graph_import(g, bytes, size, NULL, &error);
    if (status == TW_OK)
        status = run_node(g, given % 2, &error);
    assert_refused_or_given(bytes, size, what, status, error.message);
    refused += status != TW_OK;
    given += status == TW_OK;
    tw_graph_destroy(g);
    tw_set_allocator(NULL, NULL);
}

/* In a child for each op, since looking tries anything: prints rows of the table. */
static void look_for(const char *name)
{
    tw_error error = {0};
    tw_op_info *op;
    int *choice = mmap(NULL, 2 * sizeof *choice, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), status;
    assert_ok(tw_op_describe(name, &op, &error));
    choice[0] = choice[1] = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        look_for_choice(op, &choice[0], &choice[1]);
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (choice[0] >= 0 || choice[1] >= 0)
        printf("    {\"%s\", %d, %s},\n", name, choice[0] >= 0 ? choice[0] : choice[1],
               choice[0] >= 0 ? "true" : "false");
    tw_op_info_destroy(op);
    munmap(choice, 2 * sizeof *choice);
}

/* With which choice of inputs an op runs, or can at least be built. */
static const struct {
    const char *op;
    unsigned choice;
    bool runs;
} known[] = {
    {"ApplyAdagrad", 18, true},
    {"CountUpTo", 0, false},
    {"MergeV2Checkpoints", 0, false},
    {"RandomStandardNormal", 12, true},
    {"RandomUniform", 12, true},
    {"ResourceApplyAdagrad", 18, true},
    {"ResourceApplyFtrl", 16, true},
    {"ResourceGather", 0, true},
    {"ResourceSparseApplyAdagrad", 114, true},
    {"ResourceSparseApplyFtrl", 112, false},
    {"ScalarSummary", 0, true},
    {"SparseApplyAdagrad", 114, true},
    {"SparseApplyMomentum", 114, true},
    {"TruncatedNormal", 12, true},
    {"AccumulateNV2", 0, true},
    {"IgammaGradA", 0, true},
    {"PlaceholderV2", 0, false},
    {"RefIdentity", 0, true},
    {"BatchMatrixDiag", 12, true},
    {"BatchMatrixDiagPart", 24, true},
    {"BatchMatrixSetDiag", 120, true},
    {"BatchMatrixBandPart", 24, true},
    {"ResourceScatterMul", 0, true},
    {"ScatterMul", 0, true},
    {"ResourceScatterDiv", 0, true},
    {"ScatterDiv", 0, true},
    {"ResourceScatterMin", 0, true},
    {"ScatterMin", 0, true},
    {"ResourceScatterMax", 0, true},
    {"ScatterMax", 0, true},
    {"ResourceScatterNdUpdate", 12, true},
    {"ScatterNdUpdate", 12, true},
    {"ResourceScatterNdAdd", 12, true},
    {"ScatterNdAdd", 12, true},
    {"ResourceScatterNdSub", 12, true},
    {"ScatterNdSub", 12, true},
    {"RaggedTensorToVariantGradient", 108, true},
    {"RngReadAndSkip", 0, false},
    {"StatelessRandomGetAlg", 0, true},
    {"StatelessRandomUniformInt", 109, true},
    {"RandomUniformInt", 13, true},
    {"RandomShuffle", 0, true},
    {"Multinomial", 24, true},
    {"DisableCopyOnRead", 0, true},
    {"ResourceCountUpTo", 0, false},
    {"Variable", 0, true},
    {"ScatterUpdate", 0, true},
    {"ResourceApplyAdagradV2", 18, true},
    {"ApplyAdagradV2", 18, true},
    {"ResourceSparseApplyAdagradV2", 114, true},
    {"SparseApplyAdagradV2", 114, true},
    {"ResourceApplyAdagradDA", 16, true},
    {"ApplyAdagradDA", 16, true},
    {"ResourceSparseApplyAdagradDA", 112, true},
    {"SparseApplyAdagradDA", 112, true},
    {"ResourceApplyAdadelta", 18, true},
    {"ApplyAdadelta", 18, true},
    {"ResourceSparseApplyAdadelta", 114, true},
    {"SparseApplyAdadelta", 114, true},
    {"ApplyFtrl", 16, true},
    {"SparseApplyFtrl", 112, false},
    {"ResourceApplyFtrlV2", 16, true},
    {"ApplyFtrlV2", 16, true},
    {"ResourceSparseApplyFtrlV2", 112, false},
    {"SparseApplyFtrlV2", 112, false},
    {"ResourceSparseApplyRMSProp", 114, true},
    {"SparseApplyRMSProp", 114, true},
    {"ResourceApplyCenteredRMSProp", 18, true},
    {"ApplyCenteredRMSProp", 18, true},
    {"ResourceSparseApplyCenteredRMSProp", 114, true},
    {"SparseApplyCenteredRMSProp", 114, true},
    {"ResourceApplyProximalGradientDescent", 18, true},
    {"ApplyProximalGradientDescent", 18, true},
    {"ResourceSparseApplyProximalGradientDescent", 114, true},
    {"SparseApplyProximalGradientDescent", 114, true},
    {"ResourceApplyProximalAdagrad", 18, true},
    {"ApplyProximalAdagrad", 18, true},
    {"ResourceSparseApplyProximalAdagrad", 114, true},
    {"SparseApplyProximalAdagrad", 114, true},
    {"ResourceApplyAdaMax", 18, true},
    {"ApplyAdaMax", 18, true},
    {"ResourceApplyAddSign", 18, true},
    {"ApplyAddSign", 18, true},
    {"ResourceApplyPowerSign", 18, true},
    {"ApplyPowerSign", 18, true},
    {"ResourceSparseApplyMomentum", 114, true},
    {"ResourceApplyKerasMomentum", 18, true},
    {"ResourceSparseApplyKerasMomentum", 114, true},
    {"ResourceApplyAdamWithAmsgrad", 18, true},
    {"Print", 0, true},
    {"PrintV2", 0, true},
    {"RefExit", 0, false},
    {"RefNextIteration", 0, true},
    {"TensorListScatter", 12, true},
    {"TensorListConcat", 108, true},
    {"OptionalFromValue", 0, true},
    {"OptionalNone", 0, true},
    {"OptionalGetValue", 156, true},
    {"StackCloseV2", 0, true},
    {"TensorArrayCloseV3", 0, true},
    {"MaxPoolGradGradV2", 0, false},
    {"QuantizeAndDequantize", 0, true},
    {"CTCGreedyDecoder", 168, true},
    {"ExtractJpegShape", 0, false},
    {"EncodeJpeg", 72, false},
    {"AudioSummary", 192, true},
    {"HistogramSummary", 0, true},
    {"TowerInput", 0, false},
    {"TowerData", 0, true},
    {"TowerBatch", 348, true},
    {"RandomShuffleQueueV2", 0, true},
    {"QueueIsClosedV2", 56, true},
    {"ConditionalAccumulator", 0, true},
    {"AccumulatorApplyGradient", 80, true},
    {"AccumulatorTakeGradient", 0, false},
    {"AccumulatorSetGlobalStep", 80, true},
    {"AccumulatorNumAccumulated", 80, true},
    {"ResourceConditionalAccumulator", 0, true},
    {"ResourceAccumulatorApplyGradient", 80, true},
    {"ResourceAccumulatorTakeGradient", 0, false},
    {"ResourceAccumulatorSetGlobalStep", 80, true},
    {"ResourceAccumulatorNumAccumulated", 80, true},
    {"SparseConditionalAccumulator", 0, true},
    {"SparseAccumulatorApplyGradient", 0, false},
    {"SparseAccumulatorTakeGradient", 0, false},
    {"ReadFile", 0, false},
    {"MatchingFiles", 0, true},
    {"Timestamp", 0, true},
    {"NcclAllReduce", 0, false},
    {"InitializeTableFromTextFileV2", 0, false},
    {"BatchDataset", 0, true},
    {"ShuffleDatasetV3", 0, true},
    {"ShuffleAndRepeatDatasetV2", 0, true},
    {"ParallelMapDataset", 0, false},
    {"ExperimentalMapAndBatchDataset", 0, false},
    {"ParallelInterleaveDataset", 0, false},
    {"ParallelInterleaveDatasetV2", 0, false},
    {"ParallelInterleaveDatasetV3", 0, false},
    {"ExperimentalParallelInterleaveDataset", 0, false},
    {"CSVDataset", 0, false},
    {"ExperimentalCSVDataset", 0, false},
    {"CacheDatasetV2", 0, true},
    {"FixedLengthRecordDataset", 0, true},
    {"FixedLengthRecordDatasetV2", 0, false},
    {"TFRecordDataset", 0, false},
    {"TFRecordDatasetV2", 0, false},
    {"TextLineDataset", 0, false},
    {"ExperimentalUniqueDataset", 0, false},
    {"ExperimentalUnbatchDataset", 0, true},
    {"ExperimentalTakeWhileDataset", 0, false},
    {"ParseExampleDataset", 0, false},
    {"ExperimentalParseExampleDataset", 0, false},
    {"ModelDataset", 0, true},
    {"OptimizeDataset", 0, true},
    {"OptimizeDatasetV2", 0, true},
    {"AutoShardDataset", 0, true},
    {"ExperimentalAutoShardDataset", 0, true},
    {"FinalizeDataset", 0, true},
    {"PrivateThreadPoolDataset", 0, true},
    {"ExperimentalPrivateThreadPoolDataset", 0, true},
    {"MaxIntraOpParallelismDataset", 0, true},
    {"ExperimentalMaxIntraOpParallelismDataset", 0, true},
    {"ThreadPoolDataset", 0, true},
    {"SetStatsAggregatorDataset", 0, true},
    {"LatencyStatsDataset", 0, true},
    {"BytesProducedStatsDataset", 0, true},
    {"NonSerializableDataset", 0, true},
    {"ExperimentalNonSerializableDataset", 0, true},
    {"AssertCardinalityDataset", 0, true},
    {"AssertNextDataset", 0, true},
    {"ExperimentalAssertNextDataset", 0, true},
    {"ExperimentalIgnoreErrorsDataset", 0, true},
    {"RandomDatasetV2", 0, true},
    {"ExperimentalDirectedInterleaveDataset", 0, true},
    {"Iterator", 0, true},
    {"AnonymousIterator", 0, true},
    {"AnonymousIteratorV2", 0, true},
    {"AnonymousIteratorV3", 0, true},
    {"DeleteIterator", 0, true},
    {"IteratorGetNextSync", 0, false},
    {"IteratorFromStringHandle", 0, false},
    {"DummyMemoryCache", 0, true},
    {"DummySeedGenerator", 0, true},
    {"TowerArgument", 0, false},
    {"TowerVariant", 0, true},
    {"FixedLengthRecordReaderV2", 0, true},
    {"TFRecordReaderV2", 0, true},
    {"TextLineReaderV2", 0, true},
    {"WholeFileReaderV2", 0, true},
    {"ReaderReadUpToV2", 0, false},
    {"ReaderNumRecordsProducedV2", 104, true},
    {"ReaderNumWorkUnitsCompletedV2", 104, true},
    {"RecordInput", 0, false},
    {"ShardedFilespec", 0, true},
    {"StaticRegexReplace", 0, true},
};

static const struct {
    const char *op, *inputs;
} of_shapes[] = {
    {"AllCandidateSampler", "z2x1"},
    {"ComputeAccidentalHits", "2x1 2"},
    {"UniformCandidateSampler", "z2x1"},
    {"LogUniformCandidateSampler", "z2x1"},
    {"LearnedUnigramCandidateSampler", "z2x1"},
    {"ThreadUnsafeUnigramCandidateSampler", "z2x1"},
    {"GRUBlockCell", "1x2 1x1 3x2 3x1 2 1"},
    {"GRUBlockCellGrad", "1x2 1x1 3x2 3x1 2 1 1x1 1x1 1x1 1x1"},
    {"LSTMBlockCellGrad", "1x2 1x1 1x1 3x4 1 1 1 4 1x1 1x1 1x1 1x1 1x1 1x1 1x1 1x1"},
    {"BlockLSTMGrad", "z 2x1x2 1x1 1x1 3x4 1 1 1 4 2x1x1 2x1x1 2x1x1 2x1x1 2x1x1 2x1x1 2x1x1 2x1x1 2x1x1"},
    {"CTCLoss", "3x1x3 z1x2 z1 1"},
    {"SampleDistortedBoundingBox", "3 1x1x4"},
    {"SampleDistortedBoundingBoxV2", "3 1x1x4 "},
};

static void try_op(const char *name, const char *inputs, unsigned choice, bool runs, wrong_user *user)
{
    tw_error error = {0};
    void *bytes;
    size_t size;
    tw_op_info *op;
    tw_graph *g = tw_graph_create();
    assert_ok(tw_op_describe(name, &op, &error));
    tw_node *node = inputs ? build_of(g, op, inputs) : build(g, op, choice);
    if (!node)
        fail_msg("%s: %s", name, tw_graph_message(g));
    if (!is_sweep() && runs && run_node(g, false, &error) != TW_OK)
        fail_msg("%s: %s", name, error.message);
    assert_ok(tw_graph_export(g, &bytes, &size, &error));
    if (is_sweep())
        sweep_node(bytes, size, node, NULL, user);
    else
        each_wrong_graph(bytes, size, node, user);
    tw_free(bytes);
    tw_graph_destroy(g);
    tw_op_info_destroy(op);
}

static void ops_without_cases_are_refused_or_give_values_with_one_thing_wrong(void **state)
{
    (void)state;
    wrong_user user = {run_wrong_graph, NULL, ONE_OF_WRONG, 0, is_sweep()};
    enter_scratch();
    if (!is_sweep())
        open_devices();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (is_wanted(known[i].op, false))
            try_op(known[i].op, NULL, known[i].choice, known[i].runs, &user);
    for (size_t i = 0; i < sizeof of_shapes / sizeof *of_shapes; i++)
        if (is_wanted(of_shapes[i].op, false))
            try_op(of_shapes[i].op, of_shapes[i].inputs, 0, true, &user);
    leave_scratch();
    print_message("%d graphs with one thing wrong were refused, %d gave values\n", refused, given);
    assert_true(is_sweep() || (refused > 20 && given > 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_without_cases_are_refused_or_give_values_with_one_thing_wrong),
    };
    const char *wanted = getenv("TOWER_WRONG"), *name;
    if (wanted && strcmp(wanted, "look") == 0) {
        read_ops_of_cases();
        for (int i = 0; (name = tw_op_at(i)); i++)
            if (name[0] != '_' && !was_tried(name))
                look_for(name);
        return 0;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tw_devices_destroy(devices);
    return failed;
}

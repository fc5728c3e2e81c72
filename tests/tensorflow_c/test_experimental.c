/* test_experimental.c - that every name of TensorFlow's is there, and what those at its edge do: metrics, shapes that
 * are inferred, files and threads, kernels that an op has. */
#include "fixture.h"

#include <dlfcn.h>
#include <float.h>
#include <tensorflow/c/c_api_experimental.h>
#include <tensorflow/c/eager/c_api_experimental.h>
#include <tensorflow/c/env.h>

/* ---- names ------------------------------------------------------------------------------------------------------ */

#ifndef ON_TENSORFLOW
static void every_function_of_tensorflow_can_be_bound(void **state)
{
    FILE *names = fopen(NAMES, "r");
    char name[128];
    int count = 0;
    (void)state;
    assert_non_null(names);
    while (fgets(name, sizeof name, names)) {
        name[strcspn(name, "\n")] = 0;
        if (*name != '#' && !dlsym(RTLD_DEFAULT, name))
            fail_msg("%s is not there", name);
        count++;
    }
    fclose(names);
    assert_true(count > 600);
}

static void what_there_is_not_is_said(void **state)
{
    (void)state;
    void *(*create)(const char *, TF_Status *) = (void *(*)(const char *, TF_Status *))dlsym(RTLD_DEFAULT,
                                                                                             "TF_CreateFunction");
    assert_null(create("mine", s));
    assert_wrong(s, TF_UNIMPLEMENTED, "TF_CreateFunction: Tower has no contexts of both kinds");
}
#endif

/* ---- metrics ---------------------------------------------------------------------------------------------------- */

static void metrics_have_a_cell_for_each_set_of_labels(void **state)
{
    (void)state;
    TFE_MonitoringCounter2 *counter = TFE_MonitoringNewCounter2("/test/counter", s, "counts", "who", "where");
    assert_fine(s);
    TFE_MonitoringCounterCell *one = TFE_MonitoringGetCellCounter2(counter, "a", "b");
    assert_ptr_equal(TFE_MonitoringGetCellCounter2(counter, "a", "b"), one);
    assert_ptr_not_equal(TFE_MonitoringGetCellCounter2(counter, "a", "c"), one);
    TFE_MonitoringCounterCellIncrementBy(one, 5);
    TFE_MonitoringCounterCellIncrementBy(one, 2);
    assert_int_equal(TFE_MonitoringCounterCellValue(one), 7);
    assert_int_equal(TFE_MonitoringCounterCellValue(TFE_MonitoringGetCellCounter2(counter, "a", "c")), 0);
    TFE_MonitoringDeleteCounter2(counter);

    TFE_MonitoringStringGauge4 *gauge = TFE_MonitoringNewStringGauge4("/test/gauge", s, "", "a", "b", "c", "d");
    TFE_MonitoringStringGaugeCell *text = TFE_MonitoringGetCellStringGauge4(gauge, "1", "2", "3", "4");
    TFE_MonitoringStringGaugeCellSet(text, "before");
    TFE_MonitoringStringGaugeCellSet(text, "now");
    TF_Buffer *buffer = TF_NewBuffer();
    TFE_MonitoringStringGaugeCellValue(text, buffer);
    assert_int_equal(buffer->length, 3);
    assert_memory_equal(buffer->data, "now", 3);
    TF_DeleteBuffer(buffer);
    TFE_MonitoringDeleteStringGauge4(gauge);

    TFE_MonitoringBoolGauge0 *flag = TFE_MonitoringNewBoolGauge0("/test/flag", s, "");
    TFE_MonitoringBoolGaugeCellSet(TFE_MonitoringGetCellBoolGauge0(flag), true);
    assert_true(TFE_MonitoringBoolGaugeCellValue(TFE_MonitoringGetCellBoolGauge0(flag)));
    TFE_MonitoringDeleteBoolGauge0(flag);
}

static void sampler_counts_values_in_buckets(void **state)
{
    static const double values[] = {0.5, 1, 3, 3.5, 100, -1};
    (void)state;
    TFE_MonitoringBuckets *buckets = TFE_MonitoringNewExponentialBuckets(1, 2, 4);
    TFE_MonitoringSampler1 *sampler = TFE_MonitoringNewSampler1("/test/sampler", buckets, s, "samples", "of");
    assert_fine(s);
    TFE_MonitoringSamplerCell *cell = TFE_MonitoringGetCellSampler1(sampler, "x");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        TFE_MonitoringSamplerCellAdd(cell, values[i]);
    TF_Buffer *buffer = TF_NewBuffer();
    TFE_MonitoringSamplerCellValue(cell, buffer);
    /* Five numbers with a byte in front of each, then two lists of five. */
    const double expected[] = {-1, 100, 6, 107, 10023.5}, limits[] = {1, 2, 4, 8, DBL_MAX}, counts[] = {2, 1, 2, 0, 1};
    const char *at = buffer->data;
    assert_int_equal(buffer->length, 5 * 9 + 2 * (2 + 40));
    for (int i = 0; i < 5; i++, at += 9)
        assert_memory_equal(at + 1, &expected[i], 8);
    assert_memory_equal(at + 2, limits, 40);
    assert_memory_equal(at + 44, counts, 40);
    TF_DeleteBuffer(buffer);
    TFE_MonitoringDeleteSampler1(sampler);
    TFE_MonitoringDeleteBuckets(buckets);
}

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

static TFE_Context *context;

static TFE_Op *new_op(const char *name, const char *attr, TF_DataType type)
{
    TFE_Op *op = TFE_NewOp(context, name, s);
    assert_fine(s);
    if (attr)
        TFE_OpSetAttrType(op, attr, type);
    return op;
}

static TF_ShapeAndTypeList *infer(TFE_Op *op, TF_ShapeAndTypeList *shapes, TF_Tensor **values)
{
    TF_ShapeAndTypeList *result = NULL, **resources = NULL;
    TFE_InferShapes(op, shapes, values, NULL, NULL, &result, &resources, s);
    TF_DeleteShapeAndTypeList(shapes);
    return result;
}

static TF_ShapeAndTypeList *two_shapes(const int64_t *a, int a_dims, const int64_t *b, int b_dims)
{
    TF_ShapeAndTypeList *list = TF_NewShapeAndTypeList(2);
    TF_ShapeAndTypeListSetShape(list, 0, a, a_dims);
    if (b_dims < 0)
        TF_ShapeAndTypeListSetUnknownShape(list, 1);
    else
        TF_ShapeAndTypeListSetShape(list, 1, b, b_dims);
    return list;
}

static void shapes_are_inferred_without_executing(void **state)
{
    TFE_ContextOptions *options = TFE_NewContextOptions();
    (void)state;
    context = TFE_NewContext(options, s);
    TFE_DeleteContextOptions(options);

    TFE_Op *op = new_op("MatMul", "T", TF_FLOAT);
    TF_ShapeAndTypeList *found = infer(op, two_shapes((int64_t[]){2, 3}, 2, (int64_t[]){3, 5}, 2), NULL);
    assert_fine(s);
    assert_int_equal(found->num_items, 1);
    assert_int_equal(found->items[0].num_dims, 2);
    assert_int_equal(found->items[0].dims[0], 2);
    assert_int_equal(found->items[0].dims[1], 5);
    TF_DeleteShapeAndTypeList(found);
    found = infer(op, two_shapes((int64_t[]){2, -1}, 2, NULL, -1), NULL);
    assert_fine(s);
    assert_int_equal(found->items[0].dims[0], 2);
    assert_int_equal(found->items[0].dims[1], -1);
    TF_DeleteShapeAndTypeList(found);
    assert_null(infer(op, two_shapes((int64_t[]){2, 3}, 2, (int64_t[]){4, 5}, 2), NULL));
    assert_int_equal(TF_GetCode(s), TF_INVALID_ARGUMENT);
    assert_null(infer(op, TF_NewShapeAndTypeList(1), NULL));
    assert_wrong(s, TF_INVALID_ARGUMENT, "Wrong number of inputs passed");
    TFE_DeleteOp(op);
    op = new_op("MatMul", NULL, 0); /* of any type */
    TF_DeleteShapeAndTypeList(infer(op, two_shapes((int64_t[]){2, 3}, 2, (int64_t[]){3, 5}, 2), NULL));
    assert_fine(s);
    TFE_DeleteOp(op);

    op = new_op("Reshape", "T", TF_FLOAT);
    TFE_OpSetAttrType(op, "Tshape", TF_INT32);
    TF_Tensor *shape = TF_AllocateTensor(TF_INT32, (int64_t[]){2}, 1, 8);
    memcpy(TF_TensorData(shape), (int32_t[]){3, 2}, 8);
    found = infer(op, two_shapes((int64_t[]){2, 3}, 2, (int64_t[]){2}, 1), (TF_Tensor *[]){NULL, shape});
    assert_fine(s);
    assert_int_equal(found->items[0].dims[0], 3);
    assert_int_equal(found->items[0].dims[1], 2);
    TF_DeleteShapeAndTypeList(found);
    TF_DeleteTensor(shape);
    TFE_DeleteOp(op);

    op = new_op("ConcatV2", "T", TF_FLOAT);
    TFE_OpSetAttrInt(op, "N", 2);
    TF_ShapeAndTypeList *shapes = TF_NewShapeAndTypeList(3);
    TF_ShapeAndTypeListSetShape(shapes, 0, (int64_t[]){2, 3}, 2);
    TF_ShapeAndTypeListSetShape(shapes, 1, (int64_t[]){2, 4}, 2);
    TF_Tensor *axis = int_tensor(1);
    found = infer(op, shapes, (TF_Tensor *[]){NULL, NULL, axis});
    assert_fine(s);
    assert_int_equal(found->items[0].dims[1], 7);
    TF_DeleteShapeAndTypeList(found);
    TF_DeleteTensor(axis);
    TFE_DeleteOp(op);
    TFE_DeleteContext(context);
}

/* ---- the rest --------------------------------------------------------------------------------------------------- */

#ifndef ON_TENSORFLOW
static void builder_of_attributes_knows_kernels(void **state)
{
    (void)state;
    TF_AttrBuilder *builder = TF_NewAttrBuilder("MatMul");
    TF_AttrBuilderCheckCanRunOnDevice(builder, "CPU", s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "OpKernel 'MatMul' has constraint on attr 'T' not in NodeDef");
    TF_AttrBuilderSetType(builder, "T", TF_FLOAT);
    TF_AttrBuilderCheckCanRunOnDevice(builder, "CPU", s);
    assert_fine(s);
    TF_DeleteAttrBuilder(builder);
    builder = TF_NewAttrBuilder("MatMul");
    TF_AttrBuilderSetType(builder, "T", TF_STRING);
    TF_AttrBuilderCheckCanRunOnDevice(builder, "CPU", s);
    assert_wrong(s, TF_NOT_FOUND, "No registered 'MatMul' OpKernel for CPU devices");
    TF_DeleteAttrBuilder(builder);
    builder = TF_NewAttrBuilder("NoSuchOp");
    TF_AttrBuilderCheckCanRunOnDevice(builder, "CPU", s);
    assert_wrong(s, TF_NOT_FOUND, "No registered 'NoSuchOp' OpKernel");
    TF_DeleteAttrBuilder(builder);
}
#endif

static bool freed;

static void note_freed(void *data, size_t size, void *arg)
{
    (void)data;
    (void)size;
    (void)arg;
    freed = true;
}

static void contexts_tell_where_they_are_and_take_memory(void **state)
{
    static const char cpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";
    static float memory[] = {5, 6, 7, 8};
    TFE_ContextOptions *options = TFE_NewContextOptions();
    (void)state;
    context = TFE_NewContext(options, s);
    TFE_DeleteContextOptions(options);
    TF_Buffer *name = TF_NewBuffer();
    TFE_HostAddressSpace(context, name);
    assert_int_equal(name->length, strlen("/job:localhost/replica:0/task:0"));
    assert_memory_equal(name->data, cpu, name->length);
    TF_DeleteBuffer(name);
    name = TF_NewBuffer();
    TFE_GetExecutedOpNames(context, name, s);
    assert_fine(s);
    TF_DeleteBuffer(name);
    TFE_SetLogicalCpuDevices(context, 1, "/job:localhost/replica:0/task:0", s);
    assert_fine(s);
    TFE_InitializeLocalOnlyContext(context, 0, "\xff\xff", 2, s);
    assert_wrong(s, TF_INVALID_ARGUMENT, "Invalid tensorflow.ServerDef protocol buffer");

    freed = false;
    TFE_TensorHandle *handle = TFE_NewTensorHandleFromDeviceMemory(context, cpu, TF_FLOAT, (int64_t[]){4}, 1, memory,
                                                                   sizeof memory, note_freed, NULL, s);
    assert_fine(s);
    TF_Tensor *tensor = TFE_TensorHandleResolve(handle, s);
    assert_memory_equal(TF_TensorData(tensor), memory, sizeof memory);
    TF_DeleteTensor(tensor);
    assert_string_equal(TFE_TensorHandleDeviceName(handle, s), cpu);
    TFE_DeleteTensorHandle(handle);
    assert_true(freed);
    freed = false;
    assert_null(TFE_NewTensorHandleFromDeviceMemory(context, "foo", TF_FLOAT, (int64_t[]){4}, 1, memory,
                                                    sizeof memory, note_freed, NULL, s));
    assert_wrong(s, TF_INVALID_ARGUMENT, "foo unknown device.");
    assert_true(freed);
    TFE_DeleteContext(context);
}

static void set_to_one(void *number)
{
    *(int *)number = 1;
}

static void files_threads_and_clocks_are_the_machines(void **state)
{
    char folder[] = "/tmp/tower-env-XXXXXX", name[64];
    TF_WritableFileHandle *file;
    TF_FileStatistics about;
    int64_t files, folders;
    const char *child;
    int number = 0;
    (void)state;
    assert_non_null(mkdtemp(folder));
    TF_CreateDir(folder, s);
    assert_int_equal(TF_GetCode(s), TF_ALREADY_EXISTS);
    snprintf(name, sizeof name, "%s/file", folder);
    TF_NewWritableFile(name, &file, s);
    assert_fine(s);
    TF_AppendWritableFile(file, "hello", 5, s);
    TF_FlushWritableFile(file, s);
    TF_SyncWritableFile(file, s);
    TF_CloseWritableFile(file, s);
    assert_fine(s);
    TF_FileStat(name, &about, s);
    assert_fine(s);
    assert_int_equal(about.length, 5);
    assert_false(about.is_directory);
    TF_StringStream *list = TF_GetChildren(folder, s);
    assert_true(TF_StringStreamNext(list, &child));
    assert_string_equal(child, "file");
    assert_false(TF_StringStreamNext(list, &child));
    TF_StringStreamDone(list);
    TF_DeleteRecursively(folder, &files, &folders, s);
    assert_fine(s);
    assert_int_equal(files + folders, 0);
    TF_DeleteFile(name, s);
    assert_int_equal(TF_GetCode(s), TF_NOT_FOUND);

    TF_ThreadOptions options;
    TF_DefaultThreadOptions(&options);
    TF_JoinThread(TF_StartThread(&options, "sets", set_to_one, &number));
    assert_int_equal(number, 1);
    assert_true(TF_NowSeconds() > 1700000000 && TF_NowMicros() / 1000000 >= TF_NowSeconds() - 1);
    assert_true(TF_PickUnusedPortOrDie() > 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
#ifndef ON_TENSORFLOW
        TEST(every_function_of_tensorflow_can_be_bound),
        TEST(what_there_is_not_is_said),
        TEST(builder_of_attributes_knows_kernels), /* TensorFlow takes texts, too */
#endif
        TEST(metrics_have_a_cell_for_each_set_of_labels),
        TEST(sampler_counts_values_in_buckets),
        TEST(shapes_are_inferred_without_executing),
        TEST(contexts_tell_where_they_are_and_take_memory),
        TEST(files_threads_and_clocks_are_the_machines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

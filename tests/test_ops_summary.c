/* test_ops_summary.c - summaries: the bytes of TensorFlow's, names, refusals. */
#define _GNU_SOURCE /* memmem */
#include "faulty_files.h"
#include "golden_graph.h"
#include "op_testing.h"

#include <dirent.h>
#include <tower/session.h>

#include "golden/summaries.h"

static void check(twt_op *op, const unsigned char *expected, size_t size)
{
    tw_error error = {0};
    assert_ok(twt_op_run(op, &error));
    const tw_string *found = op->outputs[0]->data;
    assert_int_equal(found->size, size);
    assert_memory_equal(found->data, expected, size);
    twt_op_release(op);
}

#define CHECK(name, golden, ...)                                                                                       \
    do {                                                                                                               \
        twt_op op = {.op = name, .inputs = {__VA_ARGS__}};                                                             \
        while (op.inputs[op.num_inputs])                                                                               \
            op.num_inputs++;                                                                                           \
        check(&op, golden, sizeof golden);                                                                             \
    } while (0)

static void summaries_have_the_bytes_of_tensorflow(void **state)
{
    (void)state;
    static const tw_string tags[] = {{"a", 1}, {"", 0}, {"c", 1}};
    static const float values[] = {0, 1, -1, 0.5f, 1e-13f, -3e21f, 2.5f, 2.5f, 1e30f, 7};
    static const int64_t zeros[6] = {0};
    CHECK("ScalarSummary", golden_scalar, tw_tensor_string("tower_0/loss", 12), tw_tensor_float(4.6756f));
    CHECK("ScalarSummary", golden_scalars, tw_tensor_from(TW_STRING, TW_SHAPE(3), tags),
          tw_tensor_from(TW_INT32, TW_SHAPE(3), (int32_t[]){1, -7, 300}));
    CHECK("HistogramSummary", golden_histogram, tw_tensor_string("conv1/weights", 13),
          tw_tensor_from(TW_FLOAT32, TW_SHAPE(10), values));
    CHECK("HistogramSummary", golden_histogram_of_nothing, tw_tensor_string("empty", 5),
          tw_tensor_create(TW_FLOAT64, TW_SHAPE(0)));
    CHECK("HistogramSummary", golden_histogram_of_zeros, tw_tensor_string("zeros", 5),
          tw_tensor_from(TW_INT64, TW_SHAPE(2, 3), zeros));
    CHECK("MergeSummary", golden_merged, tw_tensor_string((const char *)golden_scalars, sizeof golden_scalars),
          tw_tensor_string((const char *)golden_histogram_of_zeros, sizeof golden_histogram_of_zeros),
          tw_tensor_string((const char *)golden_scalar, sizeof golden_scalar));
}

static void what_is_not_finite_has_no_histogram(void **state)
{
    (void)state;
    tw_error error = {0};
    static const struct {
        float value;
        const char *message;
    } cases[] = {{NAN, "Nan in summary histogram for: n"}, {-INFINITY, "Infinity in summary histogram for: n"}};
    for (int i = 0; i < 2; i++) {
        twt_op op = {.op = "HistogramSummary",
                     .inputs = {tw_tensor_string("x", 1), tw_tensor_float(cases[i].value)},
                     .num_inputs = 2};
        assert_fails(twt_op_run(&op, &error), TW_INVALID_ARGUMENT, cases[i].message);
        twt_op_release(&op);
    }
}

static void a_summary_of_images_is_pictures_under_numbered_tags(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_session *session;
    tw_tensor *value = NULL;
    tw_graph *g = tw_graph_create();
    tw_output summary = tw_summary_image(g, "images", tw_zeros(g, TW_FLOAT32, TW_SHAPE(3, 2, 2, 3)), 2);
    if (tw_graph_status(g) != TW_OK)
        fail_msg("%s", tw_graph_message(g));
    assert_int_equal(tw_get_collection(g, "summaries", NULL, NULL, 0), 1);
    assert_ok(tw_session_create(g, NULL, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &summary, 1, &value, &error));
    const tw_string *message = tw_tensor_data(value);
    assert_non_null(memmem(message->data, message->size, "images/image/0", 14));
    assert_non_null(memmem(message->data, message->size, "images/image/1", 14));
    assert_null(memmem(message->data, message->size, "images/image/2", 14));
    assert_non_null(memmem(message->data, message->size, "PNG", 3));
    tw_tensor_release(value);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

static void a_tag_that_comes_twice_is_refused(void **state)
{
    (void)state;
    tw_error error = {0};
    twt_op op = {.op = "MergeSummary", .num_inputs = 2};
    for (int i = 0; i < 2; i++)
        op.inputs[i] = tw_tensor_string((const char *)golden_scalars, sizeof golden_scalars);
    assert_fails(twt_op_run(&op, &error), TW_INVALID_ARGUMENT, "Duplicate tag a found in summary inputs");
    twt_op_release(&op);
}

static void damaged_summaries_are_refused_wherever_they_are_cut(void **state)
{
    (void)state;
    tw_error error = {0};
    for (size_t size = 1; size < sizeof golden_histogram; size++) {
        twt_op op = {
            .op = "MergeSummary", .inputs = {tw_tensor_string((const char *)golden_histogram, size)}, .num_inputs = 1};
        assert_fails(twt_op_run(&op, &error), TW_INVALID_ARGUMENT, "Could not parse one of the summary inputs");
        twt_op_release(&op);
    }
}

static void tags_are_full_names_with_odd_characters_replaced(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output summaries[3];
    TW_NAME_SCOPE(g, "tower_1")
    {
        summaries[0] = tw_summary_scalar(g, "/loss (raw)", tw_scalar(g, 1));
        summaries[1] = tw_summary_scalar(g, "/loss (raw)", tw_scalar(g, 1));
    }
    summaries[2] = tw_summary_histogram(g, "conv1/weights", tw_scalar(g, 1));
    static const char *const names[] = {"tower_1/loss__raw_", "tower_1/loss__raw__1", "conv1/weights"};
    for (int i = 0; i < 3; i++) {
        if (tw_graph_status(g) != TW_OK)
            fail_msg("%s", tw_graph_message(g));
        assert_string_equal(tw_node_name(summaries[i].node), names[i]);
        tw_tensor *tag = tw_node_attr(tw_node_input(summaries[i].node, 0).node, "value")->tensor;
        assert_string_equal(((tw_string *)tw_tensor_data(tag))->data, names[i]);
    }
    assert_int_equal(tw_node_num_inputs(tw_merge_all_summaries(g, "tower_1").node), 2);
    assert_int_equal(tw_node_num_inputs(tw_merge_all_summaries(g, NULL).node), 3);
    assert_null(tw_merge_all_summaries(g, "tower_2").node);
    tw_graph_destroy(g);
}

static void tags_and_values_have_one_shape(void **state)
{
    (void)state;
    tw_error error = {0};
    twt_op op = {.op = "ScalarSummary",
                 .inputs = {tw_tensor_string("x", 1), tw_tensor_create(TW_FLOAT32, TW_SHAPE(2))},
                 .num_inputs = 2};
    assert_fails(twt_op_run(&op, &error), TW_INVALID_ARGUMENT, "tags and values not the same shape: [] != [2]");
    twt_op_release(&op);
}

/* ---- event files ------------------------------------------------------------------------------------------------- */

typedef struct writing {
    tw_graph *g;
    tw_session *s;
    tw_error error;
    const char *folder;
    char path[600];
} writing;

static writing begin_writing(void)
{
    writing w = {.g = read_golden_graph(".", "summary_files"), .folder = scratch_folder()};
    tw_error error = {0};
    assert_ok(tw_session_create(w.g, NULL, &w.s, &error));
    return w;
}

static void end_writing(writing *w)
{
    tw_session_destroy(w->s);
    tw_graph_destroy(w->g);
    remove_scratch(w->folder);
}

static tw_status run_node(writing *w, const char *name, bool recorded)
{
    tw_output fetch = {tw_graph_find(w->g, name), -1};
    assert_non_null(fetch.node);
    tw_feed feeds[] = {
        {{tw_graph_find(w->g, "folder"), 0}, tw_tensor_string(w->folder, strlen(w->folder))},
        {{tw_graph_find(w->g, "recorded"), 0}, tw_tensor_from(TW_BOOL, TW_SCALAR, &recorded)},
    };
    w->error = (tw_error){0};
    tw_status status = tw_session_run(w->s, feeds, 2, &fetch, 1, NULL, &w->error);
    tw_tensor_release(feeds[0].tensor);
    tw_tensor_release(feeds[1].tensor);
    return status;
}

static void assert_node_runs(writing *w, const char *name, bool recorded)
{
    if (run_node(w, name, recorded) != TW_OK)
        fail_msg("%s: %s", name, w->error.message);
}

/* The only file in the folder, which the test's end removes. */
static FILE *open_events(writing *w)
{
    DIR *folder = opendir(w->folder);
    int count = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.') {
            snprintf(w->path, sizeof w->path, "%s/%s", w->folder, entry->d_name);
            assert_non_null(strstr(entry->d_name, "events.out.tfevents."));
            assert_string_equal(entry->d_name + strlen(entry->d_name) - 3, ".v2");
            count++;
        }
    closedir(folder);
    assert_int_equal(count, 1);
    FILE *file = fopen(w->path, "rb");
    assert_non_null(file);
    return file;
}

/* The next event without its time, in hexadecimal digits. False at the end. */
static bool read_event(FILE *file, char *text, size_t room)
{
    uint64_t size;
    unsigned char frame[4], bytes[4096];
    if (fread(&size, sizeof size, 1, file) != 1)
        return false;
    assert_true(fread(frame, sizeof frame, 1, file) == 1 && size < sizeof bytes && 2 * size < room);
    assert_true(fread(bytes, size, 1, file) == 1 && fread(frame, sizeof frame, 1, file) == 1);
    size_t first = bytes[0] == 9 ? 9 : 0;
    *text = 0;
    for (size_t i = first; i < size; i++)
        sprintf(text + 2 * (i - first), "%02x", bytes[i]);
    return true;
}

static void nodes_write_the_events_of_tensorflow(void **state)
{
    (void)state;
    writing w = begin_writing();
    char got[10000], want[10000], name[32];
    FILE *golden = fopen(GOLDEN_DIR "/summary_files.txt", "r");
    assert_non_null(golden);
    assert_non_null(fgets(want, sizeof want, golden)); /* who made it */
    assert_node_runs(&w, "first", false);
    assert_node_runs(&w, "init", false);
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "write_%d", i);
        assert_node_runs(&w, name, false);
    }
    for (int i = 0; i < 3; i++)
        assert_node_runs(&w, "train", i != 1);
    assert_node_runs(&w, "close", false);
    FILE *file = open_events(&w);
    assert_true(read_event(file, got, sizeof got)); /* of which kind the file is */
    while (fgets(want, sizeof want, golden)) {
        want[strcspn(want, "\n")] = 0;
        assert_true(read_event(file, got, sizeof got));
        assert_string_equal(got, want);
    }
    assert_false(read_event(file, got, sizeof got));
    fclose(file);
    fclose(golden);
    end_writing(&w);
}

static void summaries_need_a_writer_with_a_file(void **state)
{
    (void)state;
    writing w = begin_writing();
    char event[10000];
    assert_node_runs(&w, "first", false);
    assert_int_equal(run_node(&w, "write_0", false), TW_NOT_FOUND);
    assert_message(w.error.message, "the summary writer has no file");
    assert_node_runs(&w, "init", false);
    assert_node_runs(&w, "init", false); /* it has one, and keeps that */
    assert_node_runs(&w, "write_picture", false);
    assert_node_runs(&w, "flush", false);
    FILE *file = open_events(&w);
    assert_true(read_event(file, event, sizeof event) && read_event(file, event, sizeof event));
    assert_non_null(strstr(event, "696d6167652f696d616765")); /* image/image */
    assert_non_null(strstr(event, "89504e47"));               /* a PNG */
    fclose(file);
    assert_node_runs(&w, "close", false);
    assert_int_equal(run_node(&w, "flush", false), TW_NOT_FOUND);
    end_writing(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(summaries_have_the_bytes_of_tensorflow),
        cmocka_unit_test(what_is_not_finite_has_no_histogram),
        cmocka_unit_test(a_summary_of_images_is_pictures_under_numbered_tags),
        cmocka_unit_test(a_tag_that_comes_twice_is_refused),
        cmocka_unit_test(damaged_summaries_are_refused_wherever_they_are_cut),
        cmocka_unit_test(tags_are_full_names_with_odd_characters_replaced),
        cmocka_unit_test(tags_and_values_have_one_shape),
        cmocka_unit_test(nodes_write_the_events_of_tensorflow),
        cmocka_unit_test(summaries_need_a_writer_with_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_flow.c - graphs with control flow as TensorFlow 1 wrote them, and with data sets and iterators, give
 * TensorFlow's values and errors, on one CPU and on virtual GPUs, with and without rewrites. What it computed is in
 * golden/flow.txt (golden/make_flow.py) and golden/datasets.txt (golden/make_datasets.py). Started by `tower launch` it
 * spreads the nodes over all tasks. */
#define _GNU_SOURCE /* memmem */
#include "sparing_memory.h"
#include "wrong_graph.h"

#include <tower/device.h>
#include <tower/graph.h>
#include <tower/io.h>
#include <tower/session.h>

enum { MOST = 16, ONE_OF_WRONG = 127 };

static char *text;       /* of flow.txt */
static const char *folder; /* in golden/ */
static const char *said; /* the case that is run, and how */
static int line_number;
static bool as_written; /* Tower has written the graph and read it again */
static const char *wrong_graph; /* that is wrong in one thing; NULL: none is */
static size_t wrong_size;
static int refused, given;

/* ---- values ------------------------------------------------------------------------------------------------------ */

static tw_dtype dtype_of(const char *name)
{
    for (int dtype = 1; dtype < 30; dtype++)
        if (strcmp(tw_dtype_name((tw_dtype)dtype), name) == 0)
            return (tw_dtype)dtype;
    fail_msg("line %d: type '%s'", line_number, name);
    return TW_INVALID_DTYPE;
}

static void put(tw_tensor *t, int64_t i, const char *word)
{
    char path[600];
    switch (tw_tensor_dtype(t)) {
    case TW_FLOAT32:
        ((float *)tw_tensor_data(t))[i] = strtof(word, NULL);
        break;
    case TW_FLOAT64:
        ((double *)tw_tensor_data(t))[i] = strtod(word, NULL);
        break;
    case TW_INT32:
        ((int32_t *)tw_tensor_data(t))[i] = (int32_t)strtol(word, NULL, 10);
        break;
    case TW_INT64:
        ((int64_t *)tw_tensor_data(t))[i] = strtoll(word, NULL, 10);
        break;
    case TW_BOOL:
        ((bool *)tw_tensor_data(t))[i] = word[0] == '1';
        break;
    case TW_STRING:
        if (word[0] == '@') {
            snprintf(path, sizeof path, "%s/%s/%s", GOLDEN_DIR, folder, word + 1);
            word = path;
        }
        assert_int_equal(tw_tensor_set_string(t, i, word, strlen(word)), TW_OK);
        break;
    default:
        fail_msg("line %d: a value", line_number);
    }
}

/* "float 2 3 4 ..." : type, rank, dimensions, values. The words are strtok()'s. */
static tw_tensor *read_tensor(const char *dtype)
{
    tw_shape shape = {.rank = atoi(strtok(NULL, " "))};
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = atoll(strtok(NULL, " "));
    tw_tensor *t = tw_tensor_create(dtype_of(dtype), shape);
    for (int64_t i = 0; i < tw_tensor_elements(t); i++)
        put(t, i, strtok(NULL, " "));
    return t;
}

static void assert_same(const tw_tensor *got, const tw_tensor *want)
{
    char a[128], b[128];
    assert_non_null(got);
    if (tw_tensor_dtype(got) != tw_tensor_dtype(want) || !tw_shape_equal(tw_tensor_shape(got), tw_tensor_shape(want)))
        fail_msg("%s, line %d: %s %s, expected %s %s", said, line_number, tw_dtype_name(tw_tensor_dtype(got)),
                 tw_shape_text(tw_tensor_shape(got), a, sizeof a), tw_dtype_name(tw_tensor_dtype(want)),
                 tw_shape_text(tw_tensor_shape(want), b, sizeof b));
    for (int64_t i = 0; i < tw_tensor_elements(want); i++)
        if (tw_tensor_dtype(want) == TW_STRING) {
            assert_string_equal(((const tw_string *)tw_tensor_data((tw_tensor *)got))[i].data,
                                ((const tw_string *)tw_tensor_data((tw_tensor *)want))[i].data);
        } else {
            double x = tw_tensor_value(got, i), y = tw_tensor_value(want, i);
            if (!(fabs(x - y) <= 1e-5 * fmax(1, fabs(y))))
                fail_msg("%s, line %d: element %d is %.9g, expected %.9g", said, line_number, (int)i, x, y);
        }
}

/* ---- over tasks -------------------------------------------------------------------------------------------------- */

static bool by_scope;
static int tasks = 1, compared; /* runs */
static int one_of = 1; /* of so many cases one is run */

/* What must be where a variable or the like is stays where it was. */
static bool is_bound(const char *node, size_t size)
{
    static const char *const words[] = {
        "Variable",   "VarHandle", "Assign",  "Apply",         "Scatter",     "Queue",          "Stack", "TensorArray",
        "Table",      "Iterator",  "loc:@",   "CountUpTo",     "Accumulator", "ResourceGather", "Mutex", "MapStage",
        "MapUnstage", "MapPeek",   "MapSize", "MapIncomplete", "MapClear",    "DestroyResource"};
    bool bound = false;
    for (size_t i = 0; i < sizeof words / sizeof *words && !bound; i++)
        bound = memmem(node, size, words[i], strlen(words[i]));
    return bound;
}

/* A task for the node of that name; all of a scope to one, if so, so that loops are. */
static unsigned choose_task(const char *name, size_t length)
{
    unsigned hash = 2166136261u;
    for (size_t i = 0; i < length && !(by_scope && name[i] == '/'); i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return hash / 7 % (unsigned)tasks;
}

/* A GraphDef whose nodes have devices of all tasks, wherever theirs were: of a field that comes twice the last
 * counts. */
static char *spread(char *bytes, size_t *size)
{
    enum { NODE = 1 << 3 | 2, DEVICE = 4 << 3 | 2 };
    char *made = malloc(*size * 3 + 4096), *to = made, device[64];
    assert_non_null(made);
    for (const char *at = bytes, *end = bytes + *size; at < end;) {
        const char *begin = at;
        size_t tag = read_varint(&at), length = read_varint(&at);
        const char *name = at + 1;
        int more = 0;
        if (tag == NODE && !is_bound(at, length)) {
            size_t letters = read_varint(&name);
            more = snprintf(device, sizeof device, "%c%c/job:worker/task:%u/device:CPU:0", DEVICE, 0,
                            choose_task(name, letters));
            device[1] = (char)(more - 2);
        }
        *to++ = (char)tag;
        write_varint(&to, length + (size_t)more);
        memcpy(to, at, length);
        memcpy(to + length, device, (size_t)more);
        to += length + (size_t)more;
        at += length;
        assert_true(at > begin);
    }
    *size = (size_t)(to - made);
    free(bytes);
    return made;
}

/* A failure ends all tasks, so of cases that are meant to fail none runs. */
static bool is_for_tasks(const char *lines)
{
    const char *end = strstr(lines, "\ngraph "), *fails = strstr(lines, "\nfails ");
    return strncmp(lines, "refused ", strlen("refused ")) != 0 && (!fails || (end && end < fails));
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

typedef struct run {
    tw_feed feeds[MOST];
    tw_output fetches[MOST];
    tw_tensor *wanted[MOST];
    int num_feeds, num_fetches;
    tw_status fails;
    char message[200];
    bool given; /* there is a run to be done */
} run;

static tw_output find_output(tw_graph *g, char *name)
{
    char *colon = strrchr(name, ':');
    int index = colon ? atoi(colon + 1) : -1;
    if (colon)
        *colon = 0;
    tw_node *node = tw_graph_find(g, name);
    if (!node)
        fail_msg("%s, line %d: no node '%s'", said, line_number, name);
    return (tw_output){node, index};
}

static void compare(run *r, tw_status status, const char *message, tw_tensor *const *results)
{
    compared++;
    if (status != r->fails)
        fail_msg("%s, before line %d: status %d (%s), expected %d", said, line_number, status, message, r->fails);
    if (status != TW_OK)
        assert_message(message, r->message);
    for (int i = 0; i < r->num_fetches; i++)
        if (status == TW_OK && r->wanted[i])
            assert_same(results[i], r->wanted[i]);
}

static void do_run(tw_session *s, run *r)
{
    tw_error error = {0};
    tw_tensor *results[MOST] = {0};
    if (!r->given)
        return;
    watch w;
    if (wrong_graph)
        begin_watch(&w, s);
    tw_status status = tw_session_run(s, r->feeds, r->num_feeds, r->fetches, r->num_fetches, results, &error);
    if (wrong_graph)
        end_watch(&w);
    if (wrong_graph)
        assert_refused_or_given(wrong_graph, wrong_size, said, status, error.message);
    else
        compare(r, status, error.message, results);
    refused += status != TW_OK;
    given += status == TW_OK;
    for (int i = 0; i < r->num_fetches; i++) {
        tw_tensor_release(results[i]);
        tw_tensor_release(r->wanted[i]);
    }
    for (int i = 0; i < r->num_feeds; i++)
        tw_tensor_release(r->feeds[i].tensor);
    *r = (run){0};
}

/* "float 1 2 3.5 4", or "NODE:0" for what that gives: a handle of an iterator. */
static tw_tensor *read_fed(tw_graph *g, tw_session *s, char *word)
{
    tw_tensor *value = NULL;
    tw_error error = {0};
    if (!strchr(word, ':'))
        return read_tensor(word);
    tw_output fetch = find_output(g, word);
    tw_status status = tw_session_run(s, NULL, 0, &fetch, 1, &value, &error);
    if (status != TW_OK && !wrong_graph)
        fail_msg("%s: %s", said, error.message);
    return value;
}

static void read_line(tw_graph *g, tw_session *s, run *r, char *line)
{
    char *word = strtok(line, " "), *name = strtok(NULL, " ");
    if (strcmp(word, "feed") == 0) {
        r->feeds[r->num_feeds].output = find_output(g, name);
        r->feeds[r->num_feeds].tensor = read_fed(g, s, strtok(NULL, " "));
        r->num_feeds += r->feeds[r->num_feeds].tensor != NULL;
    } else if (strcmp(word, "target") == 0) {
        r->fetches[r->num_fetches++] = find_output(g, name);
    } else if (strcmp(word, "fetch") == 0) {
        const char *dtype = strtok(NULL, " ");
        r->fetches[r->num_fetches] = find_output(g, name);
        r->wanted[r->num_fetches++] = dtype ? read_tensor(dtype) : NULL;
    } else if (strcmp(word, "fails") == 0) {
        r->fails = (tw_status)atoi(name);
        const char *message = strtok(NULL, "\n");
        snprintf(r->message, sizeof r->message, "%s", message ? message : "");
    }
}

static tw_graph *write_and_read(tw_graph *g)
{
    void *bytes;
    size_t size;
    tw_error error = {0};
    tw_graph *read = tw_graph_create();
    assert_ok(tw_graph_export(g, &bytes, &size, &error));
    if (tw_graph_import(read, bytes, size, NULL, &error) != TW_OK)
        fail_msg("%s: %s", said, error.message);
    tw_free(bytes);
    tw_graph_destroy(g);
    return read;
}

/* From the line behind the graph's name to the next graph. */
static void run_lines(tw_graph *g, tw_session *s, const char *lines)
{
    char line[4096];
    run r = {0};
    while (*lines && strncmp(lines, "graph ", 6) != 0) {
        size_t length = strcspn(lines, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, lines);
        lines += length + (lines[length] == '\n');
        line_number++;
        if (strcmp(line, "run") == 0) {
            do_run(s, &r);
            r.given = true;
        } else {
            read_line(g, s, &r, line);
        }
    }
    do_run(s, &r);
}

typedef struct wrong_case {
    const char *name, *lines;
} wrong_case;

/* Not with tasks: of a failure all would have to know. */
static void run_wrong_graph(void *user, const char *bytes, size_t size, const char *what)
{
    const wrong_case *c = user;
    char text[400];
    tw_error error = {0};
    tw_session *s = NULL;
    tw_graph *g = tw_graph_create();
    snprintf(text, sizeof text, "%.80s, %s", c->name, what);
    said = text;
    tw_set_allocator(sparing_resize, NULL);
    tw_status status = tw_graph_import(g, bytes, size, NULL, &error);
    if (status == TW_OK)
        status = tw_session_create(
            g, &(tw_session_options){.allow_soft_placement = true, .plain_kernels = given % 2}, &s, &error);
    assert_refused_or_given(bytes, size, said, status, error.message);
    refused += status != TW_OK;
    wrong_graph = bytes;
    wrong_size = size;
    if (status == TW_OK)
        run_lines(g, s, c->lines);
    wrong_graph = NULL;
    tw_session_destroy(s);
    tw_graph_destroy(g);
    tw_set_allocator(NULL, NULL);
}

static wrong_user wrong = {run_wrong_graph, NULL, ONE_OF_WRONG, 0};

/* The runs of one graph, from the line behind its name to the next graph. */
static void run_case(const char *name, const char *lines, const tw_session_options *options)
{
    char path[600], line[4096];
    size_t size;
    tw_error error = {0};
    tw_session *s = NULL;
    tw_graph *g = tw_graph_create();
    snprintf(path, sizeof path, "%s/%s/%s.pb", GOLDEN_DIR, folder, name);
    char *bytes = read_whole(path, &size);
    if (strncmp(lines, "refused ", strlen("refused ")) == 0) {
        int code = atoi(lines + strlen("refused "));
        snprintf(line, sizeof line, "%.*s", (int)strcspn(lines + strlen("refused 3 "), "\n"),
                 lines + strlen("refused 3 "));
        assert_fails(tw_graph_import(g, bytes, size, NULL, &error), (tw_status)code, line);
        free(bytes);
        tw_graph_destroy(g);
        return;
    }
    if (!options) {
        wrong_case c = {name, lines};
        wrong.user = &c;
        each_wrong_node(bytes, size, &wrong);
        free(bytes);
        tw_graph_destroy(g);
        return;
    }
    if (tasks > 1)
        bytes = spread(bytes, &size);
    assert_ok(tw_graph_import(g, bytes, size, NULL, &error));
    free(bytes);
    if (as_written)
        g = write_and_read(g);
    assert_ok(tw_session_create(g, options, &s, &error));
    run_lines(g, s, lines);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void run_all_of(const char *in, const char *how, const tw_session_options *options)
{
    char path[600], name[64], saying[200];
    int cases = 0, found = 0;
    const char *only = getenv("FLOW_CASE"); /* for whoever looks at one */
    folder = in;
    snprintf(path, sizeof path, "%s/%s.txt", GOLDEN_DIR, folder);
    text = read_whole(path, NULL);
    line_number = 1;
    for (const char *at = strstr(text, "\ngraph "); at; at = strstr(at, "\ngraph ")) {
        at += strlen("\ngraph ");
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "\n"), at);
        snprintf(saying, sizeof saying, "%s (%s)", name, how);
        said = saying;
        line_number = 1;
        for (const char *c = text; c < at; c++)
            line_number += *c == '\n';
        at += strcspn(at, "\n");
        if ((only ? strcmp(only, name) == 0 : found++ % one_of == 0) && (tasks == 1 || is_for_tasks(at + 1)))
            run_case(name, at + 1, options), cases++;
    }
    assert_true(cases > 10 || only);
    free(text);
}

static void run_all(const char *how, const tw_session_options *options)
{
    run_all_of("flow", how, options);
}

static void control_flow_gives_tensorflows_values(void **state)
{
    (void)state;
    run_all("as it is", &(tw_session_options){.allow_soft_placement = true});
}

static void control_flow_gives_tensorflows_values_without_rewrites(void **state)
{
    (void)state;
    run_all("plain", &(tw_session_options){.allow_soft_placement = true, .plain_kernels = true, .disable = "all"});
}

static void control_flow_that_was_written_again_gives_tensorflows_values(void **state)
{
    (void)state;
    as_written = true;
    run_all("written again", &(tw_session_options){.allow_soft_placement = true});
    as_written = false;
}

static void control_flow_gives_tensorflows_values_on_virtual_gpus(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    tw_device_options options = {.virtual_gpus = 2};
    assert_ok(tw_devices_create(&options, &devices, &error));
    run_all("2 GPUs", &(tw_session_options){.devices = devices, .allow_soft_placement = true});
    run_all("2 GPUs, no reuse",
            &(tw_session_options){.devices = devices, .allow_soft_placement = true, .disable = "reuse"});
    tw_devices_destroy(devices);
}

static void data_sets_give_tensorflows_elements(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    tw_device_options options = {.virtual_gpus = 2};
    run_all_of("datasets", "as it is", &(tw_session_options){.allow_soft_placement = true});
    run_all_of("datasets", "plain",
               &(tw_session_options){.allow_soft_placement = true, .plain_kernels = true, .disable = "all"});
    assert_ok(tw_devices_create(&options, &devices, &error));
    run_all_of("datasets", "2 GPUs", &(tw_session_options){.devices = devices, .allow_soft_placement = true});
    tw_devices_destroy(devices);
}

/* A process joins the others once. */
static int join_tasks(void **state)
{
    tw_error error = {0};
    tw_device_options options = TW_SIZED(tw_device_options);
    options.tasks = true;
    options.cpu_threads = 1;
    return tw_devices_create(&options, (tw_devices **)state, &error) == TW_OK ? 0 : -1;
}

static int leave_tasks(void **state)
{
    tw_devices_destroy(*state);
    return 0;
}

/* Each task looks at all values. Sanitizers see every third case in the second way and in the third. */
static void control_flow_over_tasks_gives_tensorflows_values(void **state)
{
    tw_devices *devices = *state;
    tasks = tw_devices_tasks(devices);
    run_all("over tasks", &(tw_session_options){.devices = devices, .allow_soft_placement = true});
    one_of = UNDER_SANITIZER ? 3 : 1;
    run_all("over tasks, plain", &(tw_session_options){.devices = devices, .allow_soft_placement = true,
                                                       .plain_kernels = true, .disable = "all"});
    by_scope = true;
    run_all("over tasks by scope", &(tw_session_options){.devices = devices, .allow_soft_placement = true});
    printf("%d runs gave what they should\n", compared);
    assert_true(compared >= (UNDER_SANITIZER ? 600 : 1100) || getenv("FLOW_CASE")); /* else cases are left out */
}

static tw_status run_by_name(tw_session *s, tw_graph *g, const char *name, int index, tw_tensor **value,
                             tw_error *error)
{
    tw_output output = {tw_graph_find(g, name), index};
    assert_non_null(output.node);
    return tw_session_run(s, NULL, 0, &output, 1, value, error);
}

/* Of 14 numbers that one task has five are added up in a step: the third step finds no more inside of its loop, and
 * another one before it. */
static void add_up_until_the_end(tw_session *s, tw_graph *g, const char *sum)
{
    tw_error error = {0};
    tw_tensor *value = NULL;
    assert_ok(run_by_name(s, g, "begin", -1, NULL, &error));
    for (int64_t step = 0; step < 2; step++) {
        assert_ok(run_by_name(s, g, sum, 0, &value, &error));
        assert_int_equal(*(int64_t *)tw_tensor_data(value), 10 + 25 * step);
    }
    for (int again = 0; again < 2; again++)
        assert_fails(run_by_name(s, g, sum, 0, &value, &error), TW_OUT_OF_RANGE, "End of sequence");
    tw_tensor_release(value);
}

static void a_loop_over_tasks_ends_where_data_end_and_begins_anew(void **state)
{
    size_t size;
    char *bytes = read_whole(GOLDEN_DIR "/tf1_data_in_loops.meta", &size);
    tw_error error = {0};
    tw_session *s;
    tw_graph *g = tw_graph_create();
    assert_ok(tw_meta_graph_import(g, bytes, size, NULL, &error));
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = *state}, &s, &error));
    const char *const sums[] = {"sum", "sum_of_vector", "sum_of_sums", "sum_of_vectors"};
    for (int turn = 0; turn < 24; turn++)
        add_up_until_the_end(s, g, sums[turn % 4]);
    free(bytes);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void what_is_wrong_in_a_graph_is_refused_or_gives_values(void **state)
{
    (void)state;
    read_ops_of_cases();
    enter_scratch();
    run_all_of("flow", "wrong", NULL);
    run_all_of("datasets", "wrong", NULL);
    leave_scratch();
    print_message("of graphs with one thing wrong %d runs were refused, %d gave values\n", refused, given);
    assert_true(is_sweep() || (refused > 20 && given > 20));
}

int main(void)
{
    const struct CMUnitTest sweep[] = {cmocka_unit_test(what_is_wrong_in_a_graph_is_refused_or_gives_values)};
    if (is_sweep())
        return cmocka_run_group_tests(sweep, NULL, NULL);
    const struct CMUnitTest over_tasks[] = {
        cmocka_unit_test(a_loop_over_tasks_ends_where_data_end_and_begins_anew),
        cmocka_unit_test(control_flow_over_tasks_gives_tensorflows_values),
    };
    if (getenv("TOWER_TASK")) /* tower launch */
        return cmocka_run_group_tests(over_tasks, join_tasks, leave_tasks);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_sets_give_tensorflows_elements),
        cmocka_unit_test(control_flow_gives_tensorflows_values),
        cmocka_unit_test(control_flow_gives_tensorflows_values_without_rewrites),
        cmocka_unit_test(control_flow_that_was_written_again_gives_tensorflows_values),
        cmocka_unit_test(control_flow_gives_tensorflows_values_on_virtual_gpus),
        cmocka_unit_test(what_is_wrong_in_a_graph_is_refused_or_gives_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

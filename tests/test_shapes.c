/* test_shapes.c - programs whose shapes depend on values, and programs of ops that few have, exported by TensorFlow: on
 * a CPU, by plain kernels without rewrites once Tower has written and read them, and on virtual GPUs they give what
 * TensorFlow gives. The format is described in golden/graph_cases.py. Fed with something wrong they say so, or give
 * values. */
#define _GNU_SOURCE /* memmem */
#include "sparing_memory.h"
#include "faulty_files.h" /* scratch_folder */
#include "testing.h"
#include "wrong_graph.h"

#include <ctype.h>
#include <tower/graph.h>
#include <tower/io.h>
#include <tower/session.h>

enum { MOST = 64, LONGEST = 1 << 22, ONE_OF_WRONG = 127 };
enum { ONE_OF = UNDER_SANITIZER ? 3 : 1 }; /* of what is fed wrong */

typedef struct reading {
    FILE *file;
    char *line;
    int number;
    const char *program;
    tw_graph *g;
    tw_session *s;
    tw_output gradient;
    bool wrongly;   /* each program's first feeds are made wrong, one at a time */
    bool was_tried; /* this program */
    bool of_wrong;  /* the graphs themselves are made wrong: */
    const char *wrong_graph;
    size_t wrong_size;
    int tried, refused, given;
    char name[128];
    const char *path;
    long begin; /* of the program's lines in the file */
} reading;

/* ---- lines ----------------------------------------------------------------------------------------------------- */

static bool next_line(reading *r)
{
    if (!fgets(r->line, LONGEST, r->file))
        return false;
    r->number++;
    r->line[strcspn(r->line, "\n")] = 0;
    return true;
}

static char *word(char **at)
{
    char *start = *at + strspn(*at, " ");
    char *end = start + strcspn(start, " ");
    *at = *end ? end + 1 : end;
    *end = 0;
    return start;
}

static int from_hex(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static size_t unhex(char *text)
{
    size_t size = strlen(text) / 2;
    for (size_t i = 0; i < size; i++)
        text[i] = (char)(from_hex(text[2 * i]) * 16 + from_hex(text[2 * i + 1]));
    return size;
}

/* Of a complex number i counts parts. */
static void set_element(tw_tensor *tensor, int64_t i, char *text)
{
    if (tw_tensor_dtype(tensor) == TW_STRING) {
        size_t size = unhex(text + 1);
        assert_int_equal(tw_tensor_set_string(tensor, i, text + 1, size), TW_OK);
        return;
    }
    void *data = tw_tensor_data(tensor);
    switch (tw_tensor_dtype(tensor)) {
    case TW_COMPLEX64:
    case TW_FLOAT32:
        ((float *)data)[i] = strtof(text, NULL);
        return;
    case TW_COMPLEX128:
    case TW_FLOAT64:
        ((double *)data)[i] = strtod(text, NULL);
        return;
    case TW_FLOAT16:
        ((uint16_t *)data)[i] = tw_float_to_half(strtof(text, NULL));
        return;
    case TW_BFLOAT16:
        ((uint16_t *)data)[i] = tw_float_to_bfloat16(strtof(text, NULL));
        return;
    case TW_INT64:
        ((int64_t *)data)[i] = strtoll(text, NULL, 10);
        return;
    case TW_UINT64:
        ((uint64_t *)data)[i] = strtoull(text, NULL, 10);
        return;
    case TW_UINT32:
        ((uint32_t *)data)[i] = (uint32_t)strtoul(text, NULL, 10);
        return;
    case TW_INT32:
        ((int32_t *)data)[i] = atoi(text);
        return;
    case TW_UINT16:
    case TW_INT16:
        ((int16_t *)data)[i] = (int16_t)atoi(text);
        return;
    default:
        ((uint8_t *)data)[i] = (uint8_t)atoi(text);
    }
}

/* "float 2,3 1 2 3 4 5 6" */
static tw_tensor *read_tensor(char *at)
{
    tw_dtype dtype = tw_dtype_from_name(word(&at));
    tw_shape shape = {.rank = 0};
    char *dims = word(&at);
    for (char *d = dims; strcmp(dims, "scalar") != 0 && *d; d += strcspn(d, ","), d += *d == ',')
        shape.dims[shape.rank++] = strtoll(d, NULL, 10);
    tw_tensor *tensor = tw_tensor_create(dtype, shape);
    assert_non_null(tensor);
    int64_t parts = tw_dtype_is_complex(dtype) ? 2 : 1;
    for (int64_t i = 0; i < parts * tw_tensor_elements(tensor); i++)
        set_element(tensor, i, word(&at));
    return tensor;
}

/* ---- runs ------------------------------------------------------------------------------------------------------- */

static void assert_same(const reading *r, const tw_tensor *got, const tw_tensor *expected, int k)
{
    char has[128], wants[128];
    assert_non_null(got);
    if (tw_tensor_dtype(got) != tw_tensor_dtype(expected) ||
        !tw_shape_equal(tw_tensor_shape(got), tw_tensor_shape(expected)))
        fail_msg("%s, line %d, output %d is %s %s, expected %s %s", r->program, r->number, k,
                 tw_dtype_name(tw_tensor_dtype(got)), tw_shape_text(tw_tensor_shape(got), has, sizeof has),
                 tw_dtype_name(tw_tensor_dtype(expected)),
                 tw_shape_text(tw_tensor_shape(expected), wants, sizeof wants));
    for (int64_t i = 0; i < tw_tensor_elements(expected); i++) {
        if (tw_tensor_dtype(got) == TW_STRING) {
            const tw_string *x = (const tw_string *)tw_tensor_data(got) + i,
                            *y = (const tw_string *)tw_tensor_data(expected) + i;
            if (x->size != y->size || (x->size && memcmp(x->data, y->data, x->size) != 0))
                fail_msg("%s, line %d, output %d[%d] is '%.*s'", r->program, r->number, k, (int)i, (int)x->size,
                         x->data);
            continue;
        }
        double x = tw_tensor_value(got, i), y = tw_tensor_value(expected, i);
        bool same = isnan(y) ? isnan(x) : x == y || fabs(x - y) <= 1e-5 * fmax(1, fabs(y));
        if (tw_tensor_dtype(got) == TW_UINT64) /* more digits than a double has */
            same = ((uint64_t *)tw_tensor_data(got))[i] == ((uint64_t *)tw_tensor_data(expected))[i];
        double x_part = tw_tensor_imaginary(got, i), y_part = tw_tensor_imaginary(expected, i);
        same = same && (isnan(y_part) ? isnan(x_part) : fabs(x_part - y_part) <= 1e-5 * fmax(1, fabs(y_part)));
        if (!same)
            fail_msg("%s, line %d, output %d[%d] is %.9g, expected %.9g", r->program, r->number, k, (int)i, x, y);
    }
}

static tw_output output_of(const reading *r, const char *name)
{
    char node[256];
    if (strcmp(name, "gradient") == 0)
        return r->gradient;
    const char *colon = strchr(name, ':');
    snprintf(node, sizeof node, "%.*s", colon ? (int)(colon - name) : (int)strlen(name), name);
    tw_node *found = tw_graph_find(r->g, node);
    if (!found)
        fail_msg("%s: no node '%s'", r->program, node);
    return (tw_output){found, colon ? atoi(colon + 1) : -1};
}

static void differentiate(reading *r, char *at)
{
    tw_output loss = output_of(r, word(&at)), x = output_of(r, word(&at));
    tw_gradients(r->g, &loss, 1, NULL, &x, 1, &r->gradient);
    if (tw_graph_status(r->g) != TW_OK)
        fail_msg("%s: %s", r->program, tw_graph_message(r->g));
    assert_non_null(r->gradient.node);
}

static void run_init(reading *r, const char *name)
{
    tw_error error = {0};
    tw_output op = output_of(r, name);
    if (tw_session_run(r->s, NULL, 0, &op, 1, NULL, &error) != TW_OK)
        fail_msg("%s: %s", r->program, error.message);
}

/* ---- what is wrong ---------------------------------------------------------------------------------------------- */

enum { OTHERS = 7 }; /* values that are fed in place of the right one */

/* Who waits for elements, or goes round until something is so, may do that for ever; who writes has names of files. */
static bool is_left_alone(const tw_graph *g)
{
    static const char *const words[] = {"Queue", "Barrier", "Accumulator", "Stage", "Reader",
                                        "Enter", "While",   "Save",        "Write", "Cache"};
    for (int i = 0; i < tw_graph_num_nodes(g); i++)
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            if (strstr(tw_node_op(tw_graph_node(g, i)), words[k]))
                return true;
    return false;
}

/* The number-th other shape; false: there are no more. */
static bool other_shape(tw_shape right, int number, tw_shape *shape)
{
    int last = right.rank ? right.rank - 1 : 0;
    const tw_shape shapes[] = {TW_SCALAR, TW_SHAPE(0), TW_SHAPE(3), TW_SHAPE(2, 2, 2)};
    *shape = number < 4 ? shapes[number] : right;
    if (number >= 4 && number < 8 && !right.rank)
        return true;
    if (number == 4 || number == 5)
        shape->dims[number == 4 ? 0 : last] += 1;
    if (number == 6 || number == 7)
        shape->dims[number == 6 ? 0 : last] = 0;
    if (number == 8) { /* one axis more */
        shape->rank = right.rank + 1;
        shape->dims[right.rank] = 1;
    }
    return number < 9;
}

/* Element i becomes the number-th other value. */
static void change_element(tw_tensor *tensor, int64_t i, int number)
{
    static const double numbers[OTHERS] = {0, -1, 1, 2, 20, -3, NAN};
    static const char *const texts[OTHERS] = {"", "\xff\xfe", "-12.5e300x", "a/b,c d", "7", "\x01", "{"};
    char *at = (char *)tw_tensor_data(tensor) + (size_t)i * tw_dtype_size(tw_tensor_dtype(tensor));
    switch (tw_tensor_dtype(tensor)) {
    case TW_STRING:
        assert_int_equal(tw_tensor_set_string(tensor, i, texts[number], strlen(texts[number])), TW_OK);
        return;
    case TW_FLOAT32:
        *(float *)(void *)at = (float)numbers[number];
        return;
    case TW_FLOAT64:
        *(double *)(void *)at = numbers[number];
        return;
    case TW_INT64:
        *(int64_t *)(void *)at = number < 6 ? (int64_t)numbers[number] : -20;
        return;
    case TW_INT32:
        *(int32_t *)(void *)at = number < 6 ? (int32_t)numbers[number] : -20;
        return;
    case TW_BOOL:
        *at = (char)(number % 2);
        return;
    default:
        memset(at, number - 1, tw_dtype_size(tw_tensor_dtype(tensor)));
    }
}

/* The same elements, again and again, in another shape. */
static tw_tensor *laid_out(const tw_tensor *from, tw_shape shape)
{
    tw_tensor *to = tw_tensor_create(tw_tensor_dtype(from), shape);
    int64_t n = tw_tensor_elements(from);
    size_t size = tw_dtype_size(tw_tensor_dtype(from));
    assert_non_null(to);
    for (int64_t i = 0; i < tw_tensor_elements(to) && n; i++) {
        const char *element = (const char *)tw_tensor_data(from) + (size_t)(i % n) * size;
        const tw_string *text = (const void *)element;
        if (tw_tensor_dtype(from) == TW_STRING)
            assert_int_equal(tw_tensor_set_string(to, i, text->data, text->size), TW_OK);
        else
            memcpy((char *)tw_tensor_data(to) + (size_t)i * size, element, size);
    }
    return to;
}

/* Neither the right one nor one that had a smaller number. */
static bool is_new_shape(tw_shape right, int number, tw_shape shape)
{
    tw_shape former;
    for (int i = 0; i < number && other_shape(right, i, &former); i++)
        if (tw_shape_equal(former, shape))
            return false;
    return !tw_shape_equal(right, shape);
}

static void run_wrong(reading *r, const tw_feed *feeds, int num_feeds, const tw_output *fetches, int num_fetches)
{
    tw_tensor *results[MOST] = {NULL};
    tw_error error = {0};
    watch w;
    begin_watch(&w, r->s);
    tw_status status = tw_session_run(r->s, feeds, num_feeds, fetches, num_fetches, results, &error);
    end_watch(&w);
    if (r->of_wrong)
        assert_refused_or_given(r->wrong_graph, r->wrong_size, r->program, status, error.message);
    else if (status == TW_INTERNAL || (status != TW_OK && !error.message[0]))
        fail_msg("%s, line %d: ends with %d, '%s'", r->program, r->number, status, error.message);
    r->refused += status != TW_OK;
    r->given += status == TW_OK;
    for (int i = 0; i < num_fetches; i++)
        tw_tensor_release(results[i]);
}

/* With a wrong feed in the shape and of the elements of one that is right: one of so many of them. */
static void run_with_one(reading *r, tw_feed *feeds, int num_feeds, tw_feed *feed, tw_shape shape, int k,
                         const tw_output *fetches, int num_fetches)
{
    tw_tensor *right = feed->tensor;
    if (r->tried++ % ONE_OF != 0)
        return;
    int64_t last = tw_tensor_elements(right) - 1;
    feed->tensor = laid_out(right, shape);
    for (int64_t e = k % 3 == 2 ? last : 0; k >= 0 && e <= (k % 3 == 1 ? 0 : last); e++)
        change_element(feed->tensor, e, k / 3);
    run_wrong(r, feeds, num_feeds, fetches, num_fetches);
    tw_tensor_release(feed->tensor);
    feed->tensor = right;
}

/* One feed in other shapes; with other elements, all, the first and the last: of one element that is the same. */
static void run_with_wrong(reading *r, tw_feed *feeds, int num_feeds, int i, const tw_output *fetches, int num_fetches)
{
    const tw_tensor *right = feeds[i].tensor;
    tw_shape shape = tw_tensor_shape(right), other;
    int others = tw_tensor_dtype(right) == TW_BOOL ? 2 : OTHERS;
    for (int k = 0; other_shape(shape, k, &other); k++)
        if (is_new_shape(shape, k, other))
            run_with_one(r, feeds, num_feeds, &feeds[i], other, -1, fetches, num_fetches);
    for (int k = 0; k < 3 * others && tw_tensor_elements(right); k += tw_tensor_elements(right) == 1 ? 3 : 1)
        run_with_one(r, feeds, num_feeds, &feeds[i], shape, k, fetches, num_fetches);
}

/* Each feed, and in their place each constant. */
static void run_each_wrong(reading *r, tw_feed *feeds, int num_feeds, const tw_output *fetches, int num_fetches)
{
    if (r->was_tried || is_left_alone(r->g))
        return;
    r->was_tried = true;
    tw_set_allocator(sparing_resize, NULL);
    for (int i = 0; i < num_feeds; i++)
        run_with_wrong(r, feeds, num_feeds, i, fetches, num_fetches);
    for (int i = 0; i < tw_graph_num_nodes(r->g) && num_feeds < MOST; i++) {
        tw_error error = {0};
        tw_output constant = {tw_graph_node(r->g, i), 0};
        feeds[num_feeds] = (tw_feed){constant, NULL};
        if (strcmp(tw_node_op(constant.node), "Const") != 0 ||
            tw_session_run(r->s, NULL, 0, &constant, 1, &feeds[num_feeds].tensor, &error) != TW_OK)
            continue;
        run_with_wrong(r, feeds, num_feeds + 1, num_feeds, fetches, num_fetches);
        tw_tensor_release(feeds[num_feeds].tensor);
    }
    tw_set_allocator(NULL, NULL);
}

/* Where it is to fail, with these words. */
static void run_right(const reading *r, const tw_feed *feeds, int num_feeds, const tw_output *fetches, int num_fetches,
                      tw_tensor *const *expected, int num_outputs, const char *words)
{
    tw_tensor *results[MOST] = {NULL};
    tw_error error = {0};
    tw_status status = tw_session_run(r->s, feeds, num_feeds, fetches, num_fetches, results, &error);
    if (words[0] ? status == TW_OK || !strstr(error.message, words) : status != TW_OK)
        fail_msg("%s, before line %d: '%s', expected '%s'", r->program, r->number, error.message, words);
    for (int i = 0, k = 0; i < num_fetches && !words[0]; i++)
        if (fetches[i].index >= 0) {
            assert_true(k < num_outputs);
            assert_same(r, results[i], expected[k++], i);
        }
    for (int i = 0; i < num_fetches; i++)
        tw_tensor_release(results[i]);
}

/* A run, its feeds and its outputs; leaves the line behind them. */
static bool run_program(reading *r)
{
    tw_output fetches[MOST];
    tw_feed feeds[MOST];
    tw_tensor *expected[MOST];
    int num_fetches = 0, num_feeds = 0, num_outputs = 0;
    char words[256] = "";
    bool more;
    for (char *at = r->line + 4; *at;)
        fetches[num_fetches++] = output_of(r, word(&at));
    while ((more = next_line(r)) && strncmp(r->line, "feed ", 5) == 0) {
        char *at = r->line + 5, *name = word(&at);
        feeds[num_feeds].output = output_of(r, name);
        feeds[num_feeds].output.index = 0;
        feeds[num_feeds++].tensor = read_tensor(at);
    }
    for (; more && strncmp(r->line, "out ", 4) == 0; more = next_line(r))
        expected[num_outputs++] = read_tensor(r->line + 4);
    if (more && strncmp(r->line, "fails ", 6) == 0) {
        snprintf(words, sizeof words, "%s", r->line + 6);
        more = next_line(r);
    }
    if (r->of_wrong)
        run_wrong(r, feeds, num_feeds, fetches, num_fetches);
    else if (r->wrongly)
        run_each_wrong(r, feeds, num_feeds, fetches, num_fetches);
    else
        run_right(r, feeds, num_feeds, fetches, num_fetches, expected, num_outputs, words);
    for (int i = 0; i < num_outputs; i++)
        tw_tensor_release(expected[i]);
    for (int i = 0; i < num_feeds; i++)
        tw_tensor_release(feeds[i].tensor);
    return more;
}

/* ---- programs --------------------------------------------------------------------------------------------------- */

static void close_program(reading *r)
{
    tw_session_destroy(r->s);
    tw_graph_destroy(r->g);
    r->s = NULL;
    r->g = NULL;
}

/* Tower writes the graph, without what TensorFlow lacks, and reads it again. */
static void write_and_read(reading *r)
{
    void *bytes;
    size_t size;
    tw_error error = {0};
    assert_ok(tw_graph_export(r->g, &bytes, &size, &error));
    assert_null(memmem(bytes, size, "TowerEncoded", strlen("TowerEncoded")));
    tw_graph_destroy(r->g);
    r->g = tw_graph_create();
    if (tw_graph_import(r->g, bytes, size, NULL, &error) != TW_OK)
        fail_msg("%s: %s", r->program, error.message);
    tw_free(bytes);
}

static void open_program(reading *r, char *at, const tw_session_options *options)
{
    static char name[128];
    tw_error error = {0};
    close_program(r);
    r->was_tried = false;
    snprintf(name, sizeof name, "%s", word(&at));
    r->program = name;
    size_t size = unhex(at);
    r->g = tw_graph_create();
    if (tw_graph_import(r->g, at, size, NULL, &error) != TW_OK)
        fail_msg("%s: %s", name, error.message);
    if (options && options->plain_kernels)
        write_and_read(r);
    assert_ok(tw_session_create(r->g, options, &r->s, &error));
}

static void run_file(const char *path, const tw_session_options *options, bool wrongly)
{
    reading r = {.file = fopen(path, "r"), .line = malloc(LONGEST), .wrongly = wrongly};
    int programs = 0;
    const char *only = getenv("ONLY");
    assert_non_null(r.file);
    assert_non_null(r.line);
    for (bool more = next_line(&r); more;) {
        if (strncmp(r.line, "program ", 8) == 0) {
            open_program(&r, r.line + 8, options);
            programs++;
        } else if (only && r.program && !strstr(r.program, only)) {
        } else if (strncmp(r.line, "gradient ", 9) == 0) {
            differentiate(&r, r.line + 9);
        } else if (strncmp(r.line, "init ", 5) == 0) {
            run_init(&r, r.line + 5);
        } else if (strncmp(r.line, "run ", 4) == 0) {
            more = run_program(&r);
            continue;
        } else if (r.line[0] != '#') {
            assert_true(only && r.line[0]);
        }
        more = next_line(&r);
    }
    assert_true(programs > 0);
    close_program(&r);
    fclose(r.file);
    free(r.line);
    if (wrongly)
        print_message("%s: %d refused, %d gave values\n", strrchr(path, '/') + 1, r.refused, r.given);
    assert_true(!wrongly || (r.refused > 500 && r.given > 500));
}

/* The program's lines, with a wrong graph. */
static void run_wrong_graph(void *user, const char *bytes, size_t size, const char *what)
{
    reading *r = user;
    tw_error error = {0};
    tw_session_options options = TW_SIZED(tw_session_options);
    char said[400];
    r->of_wrong = true;
    r->wrong_graph = bytes;
    r->wrong_size = size;
    snprintf(said, sizeof said, "%.80s, %s", r->name, what);
    r->program = said;
    r->g = tw_graph_create();
    tw_set_allocator(sparing_resize, NULL);
    tw_status status = tw_graph_import(r->g, bytes, size, NULL, &error);
    if (status == TW_OK) {
        options.kept_plans = 1;
        options.plain_kernels = r->given % 2;
        status = tw_session_create(r->g, &options, &r->s, &error);
    }
    assert_refused_or_given(bytes, size, r->program, status, error.message);
    r->refused += status != TW_OK;
    r->file = fopen(r->path, "r"); /* a child's place in it is its own */
    fseek(r->file, r->begin, SEEK_SET);
    for (bool more = next_line(r); more && status == TW_OK && strncmp(r->line, "program ", 8) != 0;) {
        if (strncmp(r->line, "run ", 4) == 0) {
            more = run_program(r);
            continue;
        }
        char *at = r->line + strcspn(r->line, " ") + 1;
        if (strncmp(r->line, "init ", 5) == 0) {
            tw_output op = output_of(r, at);
            run_wrong(r, NULL, 0, &op, 1);
        } else if (strncmp(r->line, "gradient ", 9) == 0) {
            tw_output loss = output_of(r, word(&at)), x = output_of(r, word(&at));
            r->gradient = (tw_output){0};
            tw_gradients(r->g, &loss, 1, NULL, &x, 1, &r->gradient);
            if (tw_graph_status(r->g) != TW_OK) {
                assert_refused_or_given(bytes, size, r->program, tw_graph_status(r->g), tw_graph_message(r->g));
                r->refused++;
                break;
            }
        }
        more = next_line(r);
    }
    fclose(r->file);
    close_program(r);
    tw_set_allocator(NULL, NULL);
}

static void make_file_wrong(const char *path, wrong_user *user)
{
    reading r = {.file = fopen(path, "r"), .line = malloc(LONGEST), .path = path}, of_wrong;
    assert_non_null(r.file);
    assert_non_null(r.line);
    while (next_line(&r)) {
        char *at = r.line + strlen("program ");
        if (strncmp(r.line, "program ", 8) != 0)
            continue;
        snprintf(r.name, sizeof r.name, "%s", word(&at));
        size_t size = unhex(at);
        char *bytes = malloc(size);
        memcpy(bytes, at, size);
        r.begin = ftell(r.file);
        of_wrong = r;
        user->user = &of_wrong;
        each_wrong_node(bytes, size, user);
        r.refused = of_wrong.refused;
        r.given = of_wrong.given;
        free(bytes);
    }
    fclose(r.file);
    free(r.line);
    print_message("%s: %d refused, %d gave values\n", strrchr(path, '/') + 1, r.refused, r.given);
    assert_true(is_sweep() || (r.refused > 10 && r.given > 10));
}

static void what_is_wrong_in_a_graph_is_refused_or_gives_values(void **state)
{
    (void)state;
    wrong_user user = {run_wrong_graph, NULL, ONE_OF_WRONG, 0};
    read_ops_of_cases();
    enter_scratch();
    make_file_wrong(GOLDEN_DIR "/shapes.txt", &user);
    make_file_wrong(GOLDEN_DIR "/rare.txt", &user);
    make_file_wrong(GOLDEN_DIR "/seldom.txt", &user);
    make_file_wrong(GOLDEN_DIR "/untried.txt", &user);
    make_file_wrong(GOLDEN_DIR "/quantized.txt", &user);
    make_file_wrong(GOLDEN_DIR "/more.txt", &user);
    make_file_wrong(GOLDEN_DIR "/later.txt", &user);
    leave_scratch();
}

static void run_all(const tw_session_options *options)
{
    run_file(GOLDEN_DIR "/shapes.txt", options, false);
    run_file(GOLDEN_DIR "/rare.txt", options, false);
    run_file(GOLDEN_DIR "/seldom.txt", options, false);
    run_file(GOLDEN_DIR "/untried.txt", options, false);
    run_file(GOLDEN_DIR "/quantized.txt", options, false);
    run_file(GOLDEN_DIR "/more.txt", options, false);
    run_file(GOLDEN_DIR "/later.txt", options, false);
    run_file(GOLDEN_DIR "/latest.txt", options, false);
}

static void programs_of_computed_shapes_give_tensorflows_results(void **state)
{
    (void)state;
    run_all(NULL);
}

static void plain_kernels_give_them_to_graphs_that_tower_has_written_too(void **state)
{
    (void)state;
    tw_session_options options = TW_SIZED(tw_session_options);
    options.plain_kernels = true;
    options.disable = "all";
    run_all(&options);
}

static void virtual_gpus_give_them_too(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_session_options options = TW_SIZED(tw_session_options);
    tw_device_options of_devices = TW_SIZED(tw_device_options);
    of_devices.virtual_gpus = 2;
    assert_ok(tw_devices_create(&of_devices, &options.devices, &error));
    options.allow_soft_placement = true;
    run_all(&options);
    tw_devices_destroy(options.devices);
}

static void one_plan_that_is_kept_is_enough(void **state)
{
    (void)state;
    tw_session_options options = TW_SIZED(tw_session_options);
    options.kept_plans = 1;
    run_all(&options);
}

static void what_is_fed_wrong_is_refused_or_gives_values(void **state)
{
    (void)state;
    tw_session_options options = TW_SIZED(tw_session_options);
    options.kept_plans = 1;
    run_file(GOLDEN_DIR "/rare.txt", &options, true);
    run_file(GOLDEN_DIR "/seldom.txt", &options, true);
    run_file(GOLDEN_DIR "/untried.txt", &options, true);
    run_file(GOLDEN_DIR "/more.txt", &options, true);
    run_file(GOLDEN_DIR "/later.txt", &options, true);
    run_file(GOLDEN_DIR "/latest.txt", &options, true);
}

int main(void)
{
    const struct CMUnitTest sweep[] = {cmocka_unit_test(what_is_wrong_in_a_graph_is_refused_or_gives_values)};
    if (is_sweep())
        return cmocka_run_group_tests(sweep, NULL, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_of_computed_shapes_give_tensorflows_results),
        cmocka_unit_test(plain_kernels_give_them_to_graphs_that_tower_has_written_too),
        unsanitized_test(virtual_gpus_give_them_too),
        unsanitized_test(one_plan_that_is_kept_is_enough), /* what is fed wrong has one plan, too */
        cmocka_unit_test(what_is_fed_wrong_is_refused_or_gives_values),
        cmocka_unit_test(what_is_wrong_in_a_graph_is_refused_or_gives_values),
    };
    const char *folder = scratch_folder();
    if (chdir(folder) != 0) /* programs write files where they stand */
        abort();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_scratch(folder);
    return failed;
}

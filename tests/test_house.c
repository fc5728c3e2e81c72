/* The rules of the house, read from the sources: who may include whom, that nobody asks for an op by its name, that
 * every public function is explained, and that the documentation is up to date and leads somewhere.
 * label: once */
#include "testing.h"

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <tower/graph.h>

/* From the ground up: a folder includes from itself and from those before it. */
static const char *const floors[] = {"base", "comm", "tensor", "format", "stream", "image", "device",
                                     "graph", "ops", "place", "ir", "rewrite", "plan", "run",
                                     "io", "data", "train", "models", "report", "cli", "capi"};
enum { FLOORS = sizeof floors / sizeof *floors };

static int floor_of(const char *path)
{
    for (int i = 0; i < FLOORS; i++) {
        size_t length = strlen(floors[i]);
        if (strncmp(path, floors[i], length) == 0 && path[length] == '/')
            return i;
    }
    return -1;
}

static bool uses_public_headers_only(const char *folder)
{
    return strcmp(folder, "models") == 0 || strcmp(folder, "report") == 0 || strcmp(folder, "cli") == 0 ||
           strcmp(folder, "capi") == 0 || strcmp(folder, "examples") == 0;
}

/* The trainer knows no inside either, but stands on the ground: base knows no tensor, and is what any program would
 * bring along itself (memory that tests can exhaust, arrays, threads, files that are written whole). */
static bool uses_public_headers_and_base_only(const char *folder)
{
    return strcmp(folder, "train") == 0;
}

/* What is wrong with `#include "included"` in a file of `folder` (of src, or "examples"); NULL: nothing. A name
 * without a folder is a neighbour. */
static const char *include_is_wrong(const char *folder, const char *included)
{
    char path[128];
    snprintf(path, sizeof path, "%s/", folder);
    if (!strchr(included, '/'))
        return NULL;
    if (strcmp(folder, "cli") == 0 && strncmp(included, "report/", 7) == 0)
        return NULL; /* the program's page */
    if (uses_public_headers_only(folder))
        return "only public headers are seen from here";
    if (uses_public_headers_and_base_only(folder) && strncmp(included, "base/", 5) != 0 &&
        strncmp(included, "train/", 6) != 0)
        return "only public headers and base are seen from here";
    if (floor_of(included) < 0)
        return "there is no such folder";
    if (floor_of(included) > floor_of(path))
        return "that folder lies above this one";
    return NULL;
}

/* ---- files ------------------------------------------------------------------------------------------------- */

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, size, file), size);
    text[size] = 0;
    fclose(file);
    return text;
}

typedef void visit_file(const char *folder, const char *path, const char *text);

static bool is_source(const char *path)
{
    static const char *const endings[] = {".c", ".h", ".inl", ".cc", ".cu", ".cuh"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcmp(dot, endings[i]) == 0)
            return true;
    return false;
}

/* Visits the C, C++ and CUDA sources below root/folder; returns how many there are. */
static int each_source(const char *root, const char *folder, const char *below, visit_file *visit)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s%s", root, folder, below);
    DIR *directory = opendir(path);
    int count = 0;
    if (!directory)
        return 0; /* a folder may still be empty, and so not there */
    for (struct dirent *entry; (entry = readdir(directory));) {
        struct stat about;
        char name[512], inner[512];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(inner, sizeof inner, "%s/%.200s", below, entry->d_name);
        snprintf(name, sizeof name, "%.300s/%.200s", path, entry->d_name);
        assert_int_equal(stat(name, &about), 0);
        if (S_ISDIR(about.st_mode)) {
            count += each_source(root, folder, inner, visit);
        } else if (is_source(entry->d_name)) {
            char *text = read_text(name);
            visit(folder, name, text);
            free(text);
            count++;
        }
    }
    closedir(directory);
    return count;
}

/* ---- who includes whom ------------------------------------------------------------------------------------- */

static void check_includes(const char *folder, const char *path, const char *text)
{
    for (const char *at = text; (at = strstr(at, "#include \""));) {
        char included[256];
        at += strlen("#include \"");
        snprintf(included, sizeof included, "%.*s", (int)strcspn(at, "\"\n"), at);
        const char *wrong = include_is_wrong(folder, included);
        if (wrong)
            fail_msg("%s includes \"%s\": %s", path, included, wrong);
    }
}

static void folders_include_only_from_below(void **state)
{
    (void)state;
    int count = 0;
    for (int i = 0; i < FLOORS; i++)
        count += each_source(SOURCE_DIR "/src", floors[i], "", check_includes);
    assert_true(count > 50);
}

static void examples_include_only_public_headers(void **state)
{
    (void)state;
    each_source(SOURCE_DIR, "examples", "", check_includes);
}

static void every_folder_has_its_floor(void **state)
{
    (void)state;
    DIR *directory = opendir(SOURCE_DIR "/src");
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        struct stat about;
        char path[1024], name[300];
        snprintf(path, sizeof path, "%s/%s", SOURCE_DIR "/src", entry->d_name);
        snprintf(name, sizeof name, "%s/", entry->d_name);
        assert_int_equal(stat(path, &about), 0);
        if (S_ISDIR(about.st_mode) && entry->d_name[0] != '.' && floor_of(name) < 0)
            fail_msg("src/%s is not among the folders of the house", entry->d_name);
    }
    closedir(directory);
}

static void rule_of_includes_catches_what_it_forbids(void **state)
{
    (void)state;
    assert_null(include_is_wrong("graph", "base/array.h"));
    assert_null(include_is_wrong("graph", "graph/op.h"));
    assert_null(include_is_wrong("cli", "json.h"));
    assert_non_null(include_is_wrong("device", "graph/graph.h"));
    assert_non_null(include_is_wrong("cli", "base/array.h"));
    assert_null(include_is_wrong("cli", "report/report.h"));
    assert_non_null(include_is_wrong("report", "base/array.h"));
    assert_non_null(include_is_wrong("examples", "graph/graph.h"));
    assert_null(include_is_wrong("train", "base/memory.h"));
    assert_null(include_is_wrong("train", "train/reduce.h"));
    assert_non_null(include_is_wrong("train", "graph/graph.h"));
    assert_non_null(include_is_wrong("io", "nowhere/thing.h"));
}

/* ---- which tests look inside --------------------------------------------------------------------------------- */

/* Tests use public functions, so that what is inside can change. These do not, each for its reason; a helper that
 * several share stands for them, and a folder for the sources of one program. There is room for no more than
 * MOST_INSIDE: whoever wants to add one asks first whether users would like to know as well, and then in which of these
 * it belongs. */
enum { MOST_INSIDE = 16 };
static const struct {
    const char *file, *reason;
} looking_inside[] = {
    {"backends/example.c", "is a backend: it is made with the plug-in's contract"},
    {"card/test_cudnn_graphs.c", "gives cuDNN's graphs to the real library"},
    {"faulty_files.h", "files that fail"},
    {"messages_testing.h", "unpacks and packs TensorFlow's messages with their formats' own code"},
    {"op_testing.h", "rows of ops, and every kernel by itself, against TensorFlow's values and each other"},
    {"running/", "plans that no graph comes to, who waits at a queue, and tasks that lose each other"},
    {"test_base.c", "base/"},
    {"test_checkpoint_format.c", "checkpoints' format, byte by byte"},
    {"test_cuda.c", "scalars' programs, and what a plug-in must be like"},
    {"test_device.c", "the contract of devices, and the parser of their names"},
    {"test_drawn.c", "what is drawn, without anything it is drawn for"},
    {"test_fetch.c", "downloads that fail, of files that no publisher has"},
    {"test_file.c", "files, and files of records"},
    {"test_loops.c", "loops that are built for several CPUs, each of them"},
    {"test_place.c", "colocation and moves"},
    {"test_readers.c", "readers of examples, texts and packed files, whose every branch damaged bytes shall take"},
};
enum { LOOKING_INSIDE = sizeof looking_inside / sizeof *looking_inside };
static bool are_met[LOOKING_INSIDE];

/* Whether a test's text includes from a folder of src. */
static bool includes_insides(const char *text)
{
    bool found = false;
    for (const char *at = text; !found && (at = strstr(at, "#include \""));) {
        at += strlen("#include \"");
        found = floor_of(at) >= 0;
    }
    return found;
}

/* Which of looking_inside a file of tests/ is, or is in; -1: none. */
static int place_inside(const char *name)
{
    for (int i = 0; i < LOOKING_INSIDE; i++) {
        const char *file = looking_inside[i].file;
        size_t length = strlen(file);
        if (strncmp(name, file, length) == 0 && (file[length - 1] == '/' || !name[length]))
            return i;
    }
    return -1;
}

static void check_test(const char *folder, const char *path, const char *text)
{
    (void)folder;
    const char *name = path + strlen(SOURCE_DIR "/tests/");
    int place = place_inside(name);
    if (strncmp(name, "fuzz/", 5) == 0 || !includes_insides(text)) /* a fuzzer gives each reader bytes by itself */
        return;
    if (place < 0)
        fail_msg("tests/%s includes insides, and is not on the list of those that do", name);
    are_met[place] = true;
}

static void tests_include_insides_for_a_reason_only(void **state)
{
    (void)state;
    assert_true(includes_insides("\n#include \"plan/plan.h\"\n"));
    assert_false(includes_insides("\n#include \"testing.h\"\n#include \"golden/rule.h\"\n"));
    assert_int_equal(place_inside("test_base"), -1);
    assert_int_equal(place_inside("test_base.cc"), -1);
    assert_true(place_inside("running/packing.c") >= 0);
    each_source(SOURCE_DIR, "tests", "", check_test);
    for (int i = 0; i < LOOKING_INSIDE; i++)
        if (!are_met[i])
            fail_msg("tests/%s includes no insides any more: take it off the list of those that do",
                     looking_inside[i].file);
    assert_in_range(LOOKING_INSIDE, 1, MOST_INSIDE);
}

/* ---- who knows devices by name ------------------------------------------------------------------------------ */

/* Kinds of device are known in their backends' folders alone; the program prints them. */
static bool compares_kinds(const char *text)
{
    return strstr(text, "kind, \"cuda\"") || strstr(text, "kind, \"virtual\"") || strstr(text, "kind, \"cpu\"");
}

static void check_kinds(const char *folder, const char *path, const char *text)
{
    (void)folder;
    if (compares_kinds(text))
        fail_msg("%s compares a device's kind with a name", path);
}

static void no_kind_of_device_is_known_by_name(void **state)
{
    (void)state;
    assert_true(compares_kinds("if (strcmp(info.kind, \"cuda\") == 0)"));
    assert_false(compares_kinds(".kind = \"cuda\""));
    for (int i = 0; i < FLOORS; i++)
        each_source(SOURCE_DIR "/src", floors[i], "", check_kinds);
}

/* ---- what an op is ----------------------------------------------------------------------------------------- */

/* Copies the next call of a function that compares texts, from its name to the parenthesis that ends it, and moves *at
 * past its name. False: there is none. */
static bool next_comparison(const char **at, char *call, size_t size)
{
    static const char *const functions[] = {"strcmp(", "strncmp(", "strcasecmp(", "memcmp(", "strstr("};
    const char *first = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const char *found = strstr(*at, functions[i]);
        first = found && (!first || found < first) ? found : first;
    }
    if (!first)
        return false;
    size_t length = strcspn(first, "(");
    for (int depth = 0; first[length] && length < size - 1; length++) {
        depth += (first[length] == '(') - (first[length] == ')');
        if (depth == 0)
            break;
    }
    snprintf(call, size, "%.*s", (int)length, first);
    *at = first + strcspn(first, "(");
    return true;
}

/* Whether there is an op of that name: an unknown one is refused in other words than one without its inputs. */
static bool is_op(const char *name)
{
    tw_graph *g = tw_graph_create();
    bool is = tw_add_node(g, name, NULL, NULL, 0, NULL, 0) || !strstr(tw_graph_message(g), "Op type not registered");
    tw_graph_destroy(g);
    return is;
}

/* The first comparison of an op's name in a source: of `op->name` or tw_node_op() with anything, or of anything with
 * the name of an op that there is. NULL: there is none. */
static const char *find_named_op(const char *source, char *call, size_t size)
{
    for (const char *at = source; next_comparison(&at, call, size);) {
        if (strstr(call, "op->name") || strstr(call, "tw_node_op("))
            return call;
        for (const char *quote = strchr(call, '"'); quote; quote = strchr(quote, '"')) {
            char word[64];
            size_t length = strcspn(++quote, "\"");
            snprintf(word, sizeof word, "%.*s", (int)length, quote);
            if (length < sizeof word && is_op(word))
                return call;
            quote += length + (quote[length] == '"');
        }
    }
    return NULL;
}

static void check_named_ops(const char *folder, const char *path, const char *text)
{
    (void)folder;
    char call[300];
    bool is_registry = strcmp(path, SOURCE_DIR "/src/graph/op.c") == 0; /* finds the row of a name */
    if (!is_registry && find_named_op(text, call, sizeof call))
        fail_msg("%s asks for an op by its name, not its row: %s)", path, call);
}

/* Rows, and the tables of kernels, are where ops have their names; everybody else asks what an op is (graph/op.h). */
static bool may_name_ops(const char *folder)
{
    return strcmp(folder, "ops") == 0 || strcmp(folder, "device") == 0;
}

static void nobody_asks_for_an_op_by_its_name(void **state)
{
    (void)state;
    for (int i = 0; i < FLOORS; i++)
        if (!may_name_ops(floors[i]))
            each_source(SOURCE_DIR "/src", floors[i], "", check_named_ops);
    each_source(SOURCE_DIR, "examples", "", check_named_ops);
}

static void rule_of_named_ops_catches_what_there_was(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "return strcmp(node->op->name, op) == 0;",
        "return !!x && !strcmp(tw_node_op(node), name);",
        "if (strncmp(step->node->op->name, prefixes[i], strlen(prefixes[i])) == 0)",
        "const char *op = node->op->name; if (strcmp(a, b) || strcmp(op, \"TowerInput\") == 0)",
        "fits = strcmp(form, \n  \"NoOp\") == 0;",
    };
    static const char *const good[] = {
        "return strcmp(a->name, b->name) == 0;",
        "if (strcmp(type, \"CPU\") == 0) add(g, \"NoOp\");",
        "printf(\"%s\", node->op->name);",
        "strcmp(d->type, \"GPU\") == 0 ? \"Const\" : node->op->name",
    };
    char call[300];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!find_named_op(bad[i], call, sizeof call))
            fail_msg("not caught: %s", bad[i]);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (find_named_op(good[i], call, sizeof call))
            fail_msg("caught: %s", call);
}

/* ---- what is explained ------------------------------------------------------------------------------------- */

/* A declaration is explained by a comment in its block (the lines around it without an empty one between) that starts
 * before the declaration does, or on one of its own lines. Returns the first that is not: its text, cut at `limit`. */
static const char *first_unexplained(const char *header, char *name, size_t limit)
{
    const char *block = header;
    for (const char *line = header; line && *line;) {
        const char *end = strchr(line, '\n');
        end = end ? end + 1 : line + strlen(line);
        if (*line == '\n') {
            block = end;
        } else if (strncmp(line, "TW_API ", 7) == 0) {
            const char *semicolon = strchr(line, ';');
            const char *last = semicolon ? semicolon + strcspn(semicolon, "\n") : end;
            const char *comment = strstr(block, "/*");
            if (!comment || comment > last) {
                snprintf(name, limit, "%.*s", (int)strcspn(line, "\n"), line);
                return name;
            }
        }
        line = end;
    }
    return NULL;
}

static void check_header(const char *folder, const char *path, const char *text)
{
    (void)folder;
    char name[200];
    if (strncmp(text, "/* ", 3) != 0)
        fail_msg("%s does not begin by saying what it is", path);
    if (first_unexplained(text, name, sizeof name))
        fail_msg("%s: no comment explains: %s", path, name);
}

static void every_public_function_is_explained(void **state)
{
    (void)state;
    assert_true(each_source(SOURCE_DIR "/include", "tower", "", check_header) >= 8);
}

static void missing_explanation_is_found(void **state)
{
    (void)state;
    char name[100];
    assert_null(
        first_unexplained("/* a file */\n\n/* Adds. */\nTW_API int a(void);\nTW_API int b(void);\n", name, 100));
    assert_null(first_unexplained("/* a file */\n\nTW_API int a(int x,\n             int y); /* adds */\n", name, 100));
    assert_non_null(first_unexplained("/* a file */\n\nTW_API int lonely(void);\n\n/* Adds. */\n", name, 100));
    assert_string_equal(name, "TW_API int lonely(void);");
}

static void check_charter(const char *folder, const char *path, const char *text)
{
    (void)folder;
    const char *name = strrchr(path, '/') + 1;
    char beginning[256];
    snprintf(beginning, sizeof beginning, "/* %.200s - ", name);
    if (strncmp(text, beginning, strlen(beginning)) != 0)
        fail_msg("%s does not begin with \"%s\", what it is", path, beginning);
}

static void every_source_begins_with_its_name_and_what_it_is(void **state)
{
    (void)state;
    for (int i = 0; i < FLOORS; i++)
        each_source(SOURCE_DIR "/src", floors[i], "", check_charter);
}

/* ---- documentation ----------------------------------------------------------------------------------------- */

/* ---- names that are no more ---------------------------------------------------------------------------------- */

static char *deprecated; /* the text of that header */

static bool is_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The first name of deprecated.h that a text has; NULL: none. */
static const char *deprecated_name(const char *text)
{
    static char name[100];
    for (const char *at = strstr(deprecated, "\n#define T"); at; at = strstr(at + 1, "\n#define ")) {
        size_t length = 0;
        if (sscanf(at, "\n#define %99s", name) == 1)
            length = strlen(name);
        for (const char *found = strstr(text, name); found; found = strstr(found + 1, name))
            if (!is_word(found[length]) && (found == text || !is_word(found[-1])) &&
                strcmp(name, "TOWER_DEPRECATED_H") != 0)
                return name;
    }
    return NULL;
}

static void check_names(const char *folder, const char *path, const char *text)
{
    (void)folder;
    const char *name = strstr(path, "deprecated.h") ? NULL : deprecated_name(text);
    if (name)
        fail_msg("%s uses %s, which has another name now: see tower/deprecated.h", path, name);
}

static void no_file_uses_a_deprecated_name(void **state)
{
    (void)state;
    deprecated = read_text(SOURCE_DIR "/include/tower/deprecated.h");
    assert_string_equal(deprecated_name("tw_padding x = TW_SAME;"), "TW_SAME");
    assert_null(deprecated_name("tw_padding x = TW_SAMENESS;"));
    static const char *const folders[] = {"include/tower", "src", "examples", "bench"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        assert_true(each_source(SOURCE_DIR "/", folders[i], "", check_names) > 0);
    free(deprecated);
}

/* A script of ours that compares what it would write with what is there. */
static void assert_is_up_to_date(const char *command)
{
    char words[512] = "";
    FILE *check = popen(command, "r");
    assert_non_null(check);
    size_t size = fread(words, 1, sizeof words - 1, check);
    words[size] = 0;
    if (pclose(check) != 0)
        fail_msg("%s", words);
}

static void pages_of_the_interface_say_what_the_headers_say(void **state)
{
    (void)state;
    assert_is_up_to_date(SOURCE_DIR "/scripts/make-api-docs --check 2>&1");
}

static void every_builder_says_from_which_line_it_is_called(void **state)
{
    (void)state;
    assert_is_up_to_date(SOURCE_DIR "/scripts/make-located --check 2>&1");
}

/* The next link of a text in Markdown, `](TARGET)`, that leads to a file: into target[size], without "#..."; moves *at
 * past it. */
static bool next_link(const char **at, char *target, size_t size)
{
    while ((*at = strstr(*at, "]("))) {
        *at += 2;
        size_t length = strcspn(*at, ")#\n");
        if (length == 0 || length >= size || strncmp(*at, "http", 4) == 0)
            continue;
        snprintf(target, size, "%.*s", (int)length, *at);
        return true;
    }
    return false;
}

/* Links of the pages in a folder (below SOURCE_DIR, "" or ending in '/'), and of the folders in it if asked. */
static int check_links(const char *folder, bool folders_too)
{
    char path[1024], target[256];
    struct stat about;
    int count = 0;
    snprintf(path, sizeof path, "%s/%s", SOURCE_DIR, folder);
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot && folders_too) {
            snprintf(path, sizeof path, "%.100s%.100s/", folder, entry->d_name);
            count += check_links(path, true);
        }
        if (!dot || strcmp(dot, ".md") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%.100s%.200s", SOURCE_DIR, folder, entry->d_name);
        char *text = read_text(path);
        for (const char *at = text; next_link(&at, target, sizeof target); count++) {
            snprintf(path, sizeof path, "%s/%.100s%s", SOURCE_DIR, folder, target);
            if (stat(path, &about) != 0)
                fail_msg("%s%s links to %s, which is not there", folder, entry->d_name, target);
        }
        free(text);
    }
    closedir(directory);
    return count;
}

static void links_of_the_documentation_lead_somewhere(void **state)
{
    (void)state;
    assert_true(check_links("docs/", true) > 10);
    check_links("", false);
}

static void program_of_the_readme_is_an_example_that_is_tested(void **state)
{
    (void)state;
    char *readme = read_text(SOURCE_DIR "/README.md"), *example = read_text(SOURCE_DIR "/examples/06_two_towers.c");
    char *code = strstr(readme, "```c\n");
    assert_non_null(code);
    code += strlen("```c\n");
    *strstr(code, "```") = 0;
    assert_non_null(strstr(example, code));
    free(readme);
    free(example);
}

/* The next line of a text without the space around it, or NULL at its end. */
static const char *next_line(const char *text, char line[512])
{
    if (!*text)
        return NULL;
    size_t length = strcspn(text, "\n"), first = strspn(text, " "), last = length;
    while (last > first && text[last - 1] == ' ')
        last--;
    snprintf(line, 512, "%.*s", last > first ? (int)(last - first) : 0, text + first);
    return text + length + (text[length] == '\n');
}

/* Whether the lines of `code`, which ends with a line of ``` or ..., follow each other in `source`. */
static bool is_quoted_from(const char *code, const char *source)
{
    char line[512], wanted[512];
    for (const char *from = source; from; from = next_line(from, line)) {
        const char *at = from, *left = code;
        while ((left = next_line(left, wanted)) && strcmp(wanted, "```") != 0 && strcmp(wanted, "...") != 0) {
            at = at ? next_line(at, line) : NULL;
            if (!at || strcmp(line, wanted) != 0)
                break;
        }
        if (!left || strcmp(wanted, "```") == 0 || strcmp(wanted, "...") == 0)
            return true;
    }
    return false;
}

/* Examples are built and run, so what is quoted from them compiles. */
static void c_in_the_guide_from_tensorflow_is_quoted_from_examples(void **state)
{
    (void)state;
    int count = 0;
    char *page = read_text(SOURCE_DIR "/docs/guide/from-tensorflow-1.md");
    for (const char *code = page; (code = strstr(code, "```c\n")); count++) {
        bool found = false;
        code += strlen("```c\n");
        DIR *directory = opendir(SOURCE_DIR "/examples");
        assert_non_null(directory);
        for (struct dirent *entry; !found && (entry = readdir(directory));) {
            char path[1024];
            const char *dot = strrchr(entry->d_name, '.');
            if (!dot || strcmp(dot, ".c") != 0)
                continue;
            snprintf(path, sizeof path, "%s/examples/%.200s", SOURCE_DIR, entry->d_name);
            char *source = read_text(path);
            found = is_quoted_from(code, source);
            free(source);
        }
        closedir(directory);
        if (!found)
            fail_msg("in no example: %.*s...", (int)strcspn(code, "\n"), code);
    }
    assert_true(count > 8);
    free(page);
}

/* Whether a quotation, in which "..." stands for whatever is left out, is from these sources, piece by piece. */
static bool is_quoted(const char *code, char *const *sources, int count)
{
    char line[512];
    for (const char *piece = code, *at = code; at; piece = at) {
        bool found = false;
        for (int i = 0; i < count; i++)
            found = found || is_quoted_from(piece, sources[i]);
        if (!found)
            return false;
        do
            at = next_line(at, line);
        while (at && strcmp(line, "...") != 0 && strcmp(line, "```") != 0);
        if (strcmp(line, "```") == 0)
            break;
    }
    return true;
}

/* What a page shows of the sources is there. They are built and tested, so it compiles. */
static void code_of_the_guide_is_quoted(void **state)
{
    static const struct {
        const char *page, *sources[6];
    } pages[] = {
        {"adding-an-op", {"src/ops/activation.c", "src/ops/softmax.c", "src/device/cpu/plain/activation.inl",
                          "src/device/cpu/plain/activation.c", "src/device/cpu/vector/activation.c",
                          "tests/test_gradients_nn.c"}},
        {"adding-a-fused-op", {"src/ops/fused.c", "src/rewrite/fuse.c", "src/device/cpu/plain/reduce.c"}},
        {"adding-a-rewrite", {"src/rewrite/losses.c", "src/device/cuda/many_sums.c"}},
        {"adding-a-model", {"src/models/trivial.c"}},
        {"adding-a-backend", {"tests/backends/example.c", "src/device/cuda/normalization.c"}},
    };
    (void)state;
    for (size_t p = 0; p < sizeof pages / sizeof *pages; p++) {
        char path[1024], *sources[6];
        int num_sources = 0, count = 0;
        for (; num_sources < 6 && pages[p].sources[num_sources]; num_sources++) {
            snprintf(path, sizeof path, "%s/%s", SOURCE_DIR, pages[p].sources[num_sources]);
            sources[num_sources] = read_text(path);
        }
        snprintf(path, sizeof path, "%s/docs/guide/%s.md", SOURCE_DIR, pages[p].page);
        char *page = read_text(path);
        for (const char *code = page; (code = strstr(code, "```c\n")); count++) {
            code += strlen("```c\n");
            if (!is_quoted(code, sources, num_sources))
                fail_msg("%s: in no source: %.*s...", pages[p].page, (int)strcspn(code, "\n"), code);
        }
        assert_true(count > 1);
        free(page);
        for (int i = 0; i < num_sources; i++)
            free(sources[i]);
    }
}

static void quotation_that_strayed_is_found(void **state)
{
    (void)state;
    const char *source = "int a;\n    int b;\n\n    int c;\n";
    assert_true(is_quoted_from("int b;\n\nint c;\n```\n", source));
    assert_false(is_quoted_from("int b;\nint c;\n```\n", source));
    assert_false(is_quoted_from("int c;\nint d;\n```\n", source));
    assert_true(is_quoted("int a;\n...\nint c;\n```\n", (char *[]){(char *)source}, 1));
    assert_false(is_quoted("int a;\n...\nint d;\n```\n", (char *[]){(char *)source}, 1));
}

static void links_are_found_in_a_page(void **state)
{
    (void)state;
    char target[32];
    const char *page = "see [a](b.md), [the web](https://x.y) and [c](d/e.md#part)";
    assert_true(next_link(&page, target, sizeof target));
    assert_string_equal(target, "b.md");
    assert_true(next_link(&page, target, sizeof target));
    assert_string_equal(target, "d/e.md");
    assert_false(next_link(&page, target, sizeof target));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_include_only_from_below),
        cmocka_unit_test(examples_include_only_public_headers),
        cmocka_unit_test(every_folder_has_its_floor),
        cmocka_unit_test(rule_of_includes_catches_what_it_forbids),
        cmocka_unit_test(tests_include_insides_for_a_reason_only),
        cmocka_unit_test(no_kind_of_device_is_known_by_name),
        cmocka_unit_test(nobody_asks_for_an_op_by_its_name),
        cmocka_unit_test(rule_of_named_ops_catches_what_there_was),
        cmocka_unit_test(every_public_function_is_explained),
        cmocka_unit_test(missing_explanation_is_found),
        cmocka_unit_test(every_source_begins_with_its_name_and_what_it_is),
        cmocka_unit_test(no_file_uses_a_deprecated_name),
        cmocka_unit_test(pages_of_the_interface_say_what_the_headers_say),
        cmocka_unit_test(every_builder_says_from_which_line_it_is_called),
        cmocka_unit_test(links_of_the_documentation_lead_somewhere),
        cmocka_unit_test(links_are_found_in_a_page),
        cmocka_unit_test(c_in_the_guide_from_tensorflow_is_quoted_from_examples),
        cmocka_unit_test(code_of_the_guide_is_quoted),
        cmocka_unit_test(quotation_that_strayed_is_found),
        cmocka_unit_test(program_of_the_readme_is_an_example_that_is_tested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

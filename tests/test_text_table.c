/* test_text_table.c - tables that are filled from text files are TensorFlow's, or refused as it refuses them. */
#include "testing.h"

#include <tower/tower.h>
#include <unistd.h>

static char *bytes_of(const char *word) /* "x6162" */
{
    size_t size = strlen(word + 1) / 2;
    char *bytes = calloc(1, size + 1);
    assert_true(word[0] == 'x' && bytes);
    for (size_t i = 0; i < size; i++)
        sscanf(word + 1 + 2 * i, "%2hhx", (unsigned char *)&bytes[i]);
    return bytes;
}

static char *write_file(const char *text)
{
    static char path[] = "/tmp/tower-table-XXXXXX";
    strcpy(path + strlen(path) - 6, "XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    return path;
}

/* One of a tensor, as the golden file has it. */
static void print_element(const tw_tensor *tensor, int64_t i, char *to, size_t size)
{
    if (tw_tensor_dtype(tensor) != TW_STRING) {
        snprintf(to, size, "%.9g", tw_tensor_value(tensor, i));
        return;
    }
    const tw_string *text = (const tw_string *)tw_tensor_data(tensor) + i;
    snprintf(to, size, "x");
    for (size_t k = 0; k < text->size; k++)
        snprintf(to + 1 + 2 * k, size - 1 - 2 * k, "%02x", (unsigned char)text->data[k]);
}

static tw_node *table_of(tw_graph *g, char *words[8], const char *path, tw_node **fill)
{
    char *delimiter = bytes_of(words[6]);
    tw_dtype key = tw_dtype_from_name(words[0]), value = tw_dtype_from_name(words[1]);
    tw_tensor *name = tw_tensor_string(path, strlen(path));
    tw_attr types[] = {tw_attr_type("key_dtype", key), tw_attr_type("value_dtype", value)};
    tw_attr attrs[] = {tw_attr_int("key_index", atoi(words[2])), tw_attr_int("value_index", atoi(words[3])),
                       tw_attr_int("vocab_size", atoi(words[4])), tw_attr_int("offset", atoi(words[5])),
                       tw_attr_string("delimiter", delimiter)};
    tw_attr out[] = {tw_attr_type("Tkeys", key), tw_attr_type("Tvalues", value)};
    tw_node *table = tw_add_node(g, "HashTableV2", "table", NULL, 0, types, 2);
    tw_output handle = tw_node_output(table, 0), inputs[] = {handle, tw_constant(g, name)};
    *fill = tw_add_node(g, "InitializeTableFromTextFileV2", "fill", inputs, 2, attrs, 5);
    tw_tensor_release(name);
    free(delimiter);
    return tw_add_node(g, "LookupTableExportV2", "entries", &handle, 1, out, 2);
}

/* Every entry that is expected is there, and no other. */
static void compare(tw_tensor *const entries[2], char *expected, int line)
{
    int count = 0;
    for (char *word = strtok(expected, " "); word; word = strtok(NULL, " "), count++) {
        bool found = false;
        for (int64_t i = 0; i < tw_tensor_elements(entries[0]) && !found; i++) {
            char entry[512], value[256];
            print_element(entries[0], i, entry, 256);
            print_element(entries[1], i, value, sizeof value);
            strcat(strcat(entry, "="), value);
            found = strcmp(entry, word) == 0;
        }
        if (!found)
            fail_msg("line %d: there is no entry %s", line, word);
    }
    if (count != tw_tensor_elements(entries[0]))
        fail_msg("line %d: %lld entries, expected %d", line, (long long)tw_tensor_elements(entries[0]), count);
}

static void check_case(char *words[8], char *expected, int line)
{
    tw_error error = {0};
    tw_devices *devices = NULL;
    tw_session *session = NULL;
    tw_node *fill = NULL;
    char *text = bytes_of(words[7]), *path = write_file(text);
    tw_graph *g = tw_graph_create();
    tw_node *node = table_of(g, words, path, &fill);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .no_gpus = true}, &devices, &error));
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error));
    tw_output target = {fill, -1}, fetches[] = {tw_node_output(node, 0), tw_node_output(node, 1)};
    tw_status status = tw_session_run(session, NULL, 0, &target, 1, NULL, &error);
    bool fails = strcmp(expected, "fails") == 0;
    if ((status == TW_OK) == fails || (fails && !strstr(error.message, "fill")))
        fail_msg("line %d: status %d, \"%s\"", line, status, error.message);
    if (fails && tw_session_run(session, NULL, 0, &target, 1, NULL, &error) == TW_OK)
        fail_msg("line %d: what fails once does not fail again", line);
    if (!fails) {
        tw_tensor *entries[2] = {NULL};
        assert_ok(tw_session_run(session, NULL, 0, fetches, 2, entries, &error));
        compare(entries, expected, line);
        for (int i = 0; i < 2; i++)
            tw_tensor_release(entries[i]);
        unlink(path); /* a table that is filled stays so, without the file */
        assert_ok(tw_session_run(session, NULL, 0, &target, 1, NULL, &error));
    }
    unlink(path);
    free(text);
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
}

static void tables_of_text_files_are_tensorflows(void **state)
{
    (void)state;
    char *text = read_whole(GOLDEN_DIR "/text_tables.txt", NULL), *rest = NULL;
    int line = 1, cases = 0;
    for (char *at = strtok_r(text, "\n", &rest); at; at = strtok_r(NULL, "\n", &rest), line++) {
        char *words[8], *next = at;
        if (*at == '#')
            continue;
        for (int i = 0; i < 8; i++) {
            words[i] = next;
            next = next ? strchr(next, ' ') : NULL;
            if (next)
                *next++ = 0;
        }
        assert_non_null(next);
        check_case(words, next, line);
        cases++;
    }
    assert_int_equal(cases, 29);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_of_text_files_are_tensorflows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

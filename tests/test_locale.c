/* The library in a program whose locale writes 1,5: numbers are written and read with points. */
#include "testing.h"

#include <locale.h>
#include <sys/stat.h>
#include <tower/op.h>
#include <tower/ops.h>
#include <tower/session.h>
#include <unistd.h>

/* A locale as localedef makes it of decimal_point ",": there need not be one on this machine. */
static void decimals_have_commas(void)
{
    static const unsigned char numeric[] =
        "\x14\x11\x03\x20\6\0\0\0 \0\0\0\"\0\0\0#\0\0\0$\0\0\0(\0\0\0,\0\0\0,\0\0\0,\0\0\0\0\0\0\0ANSI_X3.4-1968";
    char folder[] = "/tmp/tower-locale-XXXXXX", inside[64], path[80];
    unsigned char bytes[sizeof numeric];
    memcpy(bytes, numeric, sizeof bytes);
    bytes[32] = ',';
    assert_non_null(mkdtemp(folder));
    snprintf(inside, sizeof inside, "%s/comma", folder);
    snprintf(path, sizeof path, "%s/LC_NUMERIC", inside);
    assert_int_equal(mkdir(inside, 0700), 0);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, sizeof bytes, file), sizeof bytes);
    fclose(file);
    setenv("LOCPATH", folder, 1);
    assert_non_null(setlocale(LC_NUMERIC, "comma"));
    unlink(path);
    rmdir(inside);
    rmdir(folder);
    char text[8];
    snprintf(text, sizeof text, "%.1f", 1.5);
    assert_string_equal(text, "1,5");
}

static tw_tensor *value_of(tw_graph *g, tw_output output)
{
    tw_error error = {0};
    tw_session *session;
    tw_tensor *value;
    assert_ok(tw_session_create(g, NULL, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &output, 1, &value, &error));
    tw_session_destroy(session);
    return value;
}

static void attributes_of_ops_have_the_values_that_their_rows_say(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output below = tw_scalar(g, -1);
    tw_tensor *value = value_of(g, tw_node_output(tw_add_node(g, "LeakyRelu", NULL, &below, 1, NULL, 0), 0));
    assert_true(tw_tensor_value(value, 0) == -0.2f);
    tw_tensor_release(value);
    tw_graph_destroy(g);
}

static void ops_write_and_read_numbers_with_points(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output number = tw_scalar(g, 2.5f);
    tw_output text = tw_node_output(tw_add_node(g, "AsString", NULL, &number, 1, NULL, 0), 0);
    tw_tensor *value = value_of(g, text);
    const tw_string *written = tw_tensor_data(value);
    assert_int_equal(written->size, strlen("2.500000"));
    assert_memory_equal(written->data, "2.500000", written->size);
    tw_tensor_release(value);
    value = value_of(g, tw_node_output(tw_add_node(g, "StringToNumber", NULL, &text, 1, NULL, 0), 0));
    assert_true(tw_tensor_value(value, 0) == 2.5);
    tw_tensor_release(value);
    tw_graph_destroy(g);
}

/* What it calls itself is the caller's. */
static void the_callers_locale_is_left_alone(void **state)
{
    char text[8];
    attributes_of_ops_have_the_values_that_their_rows_say(state);
    snprintf(text, sizeof text, "%.1f", 1.5);
    assert_string_equal(text, "1,5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_of_ops_have_the_values_that_their_rows_say),
        cmocka_unit_test(ops_write_and_read_numbers_with_points),
        cmocka_unit_test(the_callers_locale_is_left_alone),
    };
    decimals_have_commas();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* `tower report`: what stands in the page, that it is small, and, where there is a browser, that it draws itself
 * without an error. */
#include "program.h"

#include <tower/io.h>

static char *page; /* the latest that was read */

static int free_page(void **state)
{
    (void)state;
    free(page);
    page = NULL;
    return 0;
}

static size_t read_page(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    free(page);
    page = calloc(size + 1, 1);
    assert_non_null(page);
    assert_int_equal(fread(page, 1, size, file), size);
    fclose(file);
    return size;
}

static void assert_page_has(const char *text)
{
    if (!strstr(page, text))
        fail_msg("the page lacks: %s", text);
}

/* Opens the page as a reader would, and reads what was drawn. Without a browser there is nothing to look at: false. */
static bool assert_draws_itself(const char *name)
{
    if (shell("command -v chromium") != 0)
        return false;
    assert_runs(0,
                "HOME=$PWD timeout %d chromium --headless --no-sandbox --disable-gpu --enable-logging=stderr "
                "--virtual-time-budget=3000 --dump-dom file://$PWD/%s > dom.html 2> console.txt",
                PATIENCE, name);
    assert_runs(1, "grep CONSOLE console.txt");
    read_page("dom.html");
    assert_page_has("data-drawn=\"yes\"");
    assert_page_has("<svg");
    return true;
}

#define RUN "$T train mnist --data-set synthetic --virtual-gpus 2 --batch-size 4 --summary-every 2 --max-steps 8 "

static void a_run_is_shown_with_what_is_known_of_it(void **state)
{
    (void)state;
    assert_runs(0, RUN "--train-dir one");
    assert_runs(0, "$T report one");
    assert_prints("one/report.html (");
    read_page("one/report.html");
    assert_page_has("\"name\":\"one\"");
    assert_page_has("\"train/loss\"");
    assert_page_has("\"histograms\":{\"");
    assert_page_has("\"waterfall\":{\"compute\":");
    assert_page_has("\"label\":\"t1 grad L2\"");
    assert_page_has("\"label\":\"variables\"");
    assert_page_has("\"reasons\":[\"");
    assert_page_has("\"fullest\":\"");
    assert_draws_itself("one/report.html");
    assert_page_has("What runs where");
    assert_page_has("Where the time of a step goes");
    assert_page_has("Memory");
}

static void nothing_of_it_lies_elsewhere(void **state)
{
    (void)state;
    read_page("one/report.html");
    static const char *const elsewhere[] = {"src=\"http", "href=\"http", "url(http",
                                            "fetch(",     "@import",     "XMLHttpRequest"};
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (strstr(page, elsewhere[i]))
            fail_msg("the page asks for something: %s", elsewhere[i]);
}

static void runs_are_compared_and_what_differs_stands_first(void **state)
{
    (void)state;
    assert_runs(0, RUN "--train-dir two --learning-rate 0.01");
    assert_runs(0, "$T report one two --output both.html");
    if (assert_draws_itself("both.html")) {
        assert_page_has("What differs");
        assert_page_has("<tr class=\"differs\"><td>--learning-rate</td>");
    }
    assert_runs(0, "$T report one two --output - | grep -c '\"name\":\"two\"'");
}

static void without_graphviz_own_layers_place_the_graph(void **state)
{
    (void)state;
    assert_runs(0, "mkdir -p nothing && PATH=$PWD/nothing $T report one --output layers.html");
    read_page("layers.html");
    assert_page_has("\"by\":\"layers\"");
    assert_draws_itself("layers.html");
}

/* A Graphviz that puts each box a step further on, and leaves words that are none of its answers. */
static void graphviz_places_the_graph_where_it_is(void **state)
{
    (void)state;
    static const char dot[] =
        "awk 'BEGIN { print \"graph 1 90 90\" } "
        "/ -> / { sub(\";\", \"\", $3); printf \"edge %s %s 5 1 1 2 2 3 3 4 4 5 5 solid black\\n\", $1, $3; next } "
        "/^n[0-9]/ { printf \"node %s %d 2 1 0.4 label\\n\", $1, ++i } "
        "END { print \"edge n9999 n0 1 1 1\\nedge n0 n1 2 1 x\\nstop\" }' \"$2\"";
    char path[512];
    assert_runs(0, "mkdir -p fake && touch fake/dot && chmod +x fake/dot");
    snprintf(path, sizeof path, "%s/fake/dot", directory);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", dot);
    fclose(file);
    assert_runs(0, "PATH=$PWD/fake:$PATH $T report one --output placed.html");
    read_page("placed.html");
    assert_page_has("\"by\":\"Graphviz\"");
    assert_draws_itself("placed.html");
}

static void what_is_not_there_is_left_out(void **state)
{
    (void)state;
    assert_runs(0, "cp -r one old && rm -f old/run.json old/step.json && $T report old");
    assert_draws_itself("old/report.html");
    assert_page_has("train/loss");
    assert_null(strstr(page, "id=\"placement\""));
    assert_runs(1, "mkdir -p empty && $T report empty");
    assert_prints("'empty' is no train directory: it has no event log, no run.json, no step.json");
    assert_runs(0, "test ! -e empty/report.html");
    assert_runs(1, "$T report missing");
    assert_prints("there is no directory 'missing'");
    assert_runs(2, "$T report");
}

static void files_that_are_no_json_and_names_that_look_like_tags_do_no_harm(void **state)
{
    (void)state;
    assert_runs(
        0, "cp -r one '<!--<script>' && echo '{\"nodes\":[[1,2],[],7,\"x\"' > '<!--<script>/run.json' && "
           "echo '{\"nodes\":[[1,2],[],7,{}],\"memory\":3,\"spans\":[[0,0,0,0],[99,1,2,3]],\"kinds\":[\"compute\"],"
           "\"seconds\":1,\"towers\":[]}' > '<!--<script>/step.json' && $T report '<!--<script>' --output odd.html");
    assert_draws_itself("odd.html");
    assert_runs(
        0, "printf 'not an event file' > one/events.out.tfevents.9999999999.x.1.0 && $T report one --output odd.html; "
           "rm one/events.out.tfevents.9999999999.x.1.0");
    assert_draws_itself("odd.html");
}

static void a_resumed_runs_curve_forgets_what_did_not_happen(void **state)
{
    (void)state;
    char path[512];
    tw_error error = TW_NO_ERROR;
    tw_event_writer *writer;
    snprintf(path, sizeof path, "%s/again", directory);
    for (int part = 0; part < 2; part++) {
        assert_ok(tw_event_writer_create(path, &writer, &error));
        if (part)
            assert_ok(tw_event_writer_add_restart(writer, 3, &error));
        for (int step = part ? 3 : 0; step < 5; step++)
            assert_ok(tw_event_writer_add_scalar(writer, "train/loss", step, part ? 100.0f + (float)step : (float)step,
                                                 &error));
        assert_ok(tw_event_writer_close(writer, &error));
    }
    assert_runs(0, "$T report again");
    read_page("again/report.html");
    assert_page_has("\"x\":[0,1,2,3,4]");
    assert_page_has("\"y\":[0,1,2,103,104]");
}

static void twenty_thousand_steps_of_eight_towers_stay_below_three_megabytes(void **state)
{
    (void)state;
    enum { STEPS = 20000, TAGS = 12 };
    char path[512], tag[64];
    tw_error error = TW_NO_ERROR;
    tw_event_writer *writer;
    assert_runs(
        0, "$T train resnet20 --data-set synthetic --virtual-gpus 8 --batch-size 1 --max-steps 7 --train-dir large");
    snprintf(path, sizeof path, "%s/large", directory);
    assert_ok(tw_event_writer_create(path, &writer, &error));
    for (int step = 7; step < STEPS; step++)
        for (int i = 0; i < TAGS; i++) {
            snprintf(tag, sizeof tag, i ? "train/towers/%d/total_loss" : "train/loss", i);
            assert_ok(tw_event_writer_add_scalar(writer, tag, step, 5.0f / (1.0f + (float)(step % 997)), &error));
        }
    assert_ok(tw_event_writer_close(writer, &error));
    assert_runs(0, "(ulimit -t 20 && $T report large)"); /* of processor time */
    size_t size = read_page("large/report.html");
    if (size > 3 << 20)
        fail_msg("the page has %zu bytes", size);
    assert_draws_itself("large/report.html");
}

static void a_page_that_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    assert_runs(1, "$T report one --output nowhere/page.html");
    assert_prints("cannot write 'nowhere/page.html'");
    assert_runs(1, "$T report one --output - > /dev/full");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_shown_with_what_is_known_of_it),
        cmocka_unit_test(nothing_of_it_lies_elsewhere),
        cmocka_unit_test(runs_are_compared_and_what_differs_stands_first),
        cmocka_unit_test(without_graphviz_own_layers_place_the_graph),
        cmocka_unit_test(graphviz_places_the_graph_where_it_is),
        cmocka_unit_test(what_is_not_there_is_left_out),
        cmocka_unit_test(files_that_are_no_json_and_names_that_look_like_tags_do_no_harm),
        cmocka_unit_test(a_resumed_runs_curve_forgets_what_did_not_happen),
        cmocka_unit_test(twenty_thousand_steps_of_eight_towers_stay_below_three_megabytes),
        cmocka_unit_test_teardown(a_page_that_cannot_be_written_is_an_error, free_page),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}

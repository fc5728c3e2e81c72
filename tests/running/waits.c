/* waits.c - what tasks wait for: the messages of a plan, counted. */
#include "parts.h"
#include "testing.h"

#include "run/session.h"

#include <tower/ops.h>
#include <tower/session.h>

typedef struct waits {
    int values, words, sent; /* messages with a value, without; and what is done when it has been sent */
} waits;

static waits count_waits(const twi_plan *plan)
{
    waits found = {0};
    for (int d = 0; d < plan->num_lists; d++)
        for (int i = 0; i < plan->lists[d].count; i++) {
            const twi_step *step = &plan->lists[d].steps[i];
            int other = 1 - step->device->task;
            bool value = step->source && step->source->task == other;
            found.values += value;
            found.words += !value && twi_step_needs(plan, step, other);
            found.sent += step->num_sent;
        }
    return found;
}

/* Two tasks, of which one has a variable that the other reads before it is written. What comes of the reading crosses
 * back, or does not, but for the order in which both happen. */
static waits plan_reading_elsewhere(bool comes_back)
{
    tw_error error = {0};
    tw_device_options options = TW_SIZED(tw_device_options);
    tw_devices *devices;
    tw_session *session;
    tw_graph *g = tw_graph_create();
    tw_output doubled, written, seen, done;
    options.plan_tasks = 2;
    assert_ok(tw_devices_create(&options, &devices, &error));
    TW_DEVICE(g, "/job:worker/task:0") {
        tw_variable *v = tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(4), (tw_initializer){0});
        tw_output read = tw_variable_read(g, v);
        TW_DEVICE(g, "/job:worker/task:1")
            doubled = tw_add(g, read, read);
        tw_output one = tw_ones(g, TW_FLOAT32, TW_SHAPE(4));
        seen = comes_back ? doubled : read;
        TW_CONTROL(g, seen)
            written = tw_assign_add(g, v->handle, one);
    }
    TW_DEVICE(g, "/job:worker/task:1")
        done = tw_group(g, &doubled, 1);
    tw_output fetches[] = {written, done};
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error));
    assert_ok(tw_session_prepare(session, NULL, 0, fetches, 2, &error));
    waits found = count_waits(session->lanes[0]->links.items[0]->plan);
    tw_session_destroy(session);
    tw_graph_destroy(g);
    tw_devices_destroy(devices);
    return found;
}

static void a_variable_waits_until_it_is_sent_and_not_for_word_that_it_has_come(void **state)
{
    (void)state;
    waits found = plan_reading_elsewhere(false);
    assert_int_equal(found.values, 1);
    assert_int_equal(found.sent, 1);
    assert_int_equal(found.words, 0);
    found = plan_reading_elsewhere(true); /* here the word is what was asked for */
    assert_int_equal(found.values, 1);
    assert_int_equal(found.words, 1);
}

int run_waits(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_variable_waits_until_it_is_sent_and_not_for_word_that_it_has_come),
    };
    return cmocka_run_group_tests_name("waits", tests, NULL, NULL);
}

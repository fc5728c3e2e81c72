/* test_waterfall.c - the wall time of a step is taken apart. That a delay is found where it was put: test_delays.c;
 * what becomes of made-up times: test_run.c. */
#include "small_training.h"

#include <tower/queue.h>

/* ---- a real step ------------------------------------------------------------------------------------------------ */

static void the_parts_of_a_real_step_add_up_to_it(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_waterfall w;
    training t = start();
    for (int run = 0; run < 5; run++) {
        double sum = 0;
        assert_ok(tw_session_run(t.s, NULL, 0, &t.step, 1, NULL, &error));
        assert_ok(tw_session_waterfall(t.s, t.names, TOWERS, &w, &error));
        for (int k = 0; k < TW_TIME_KINDS; k++) {
            assert_true(w.seconds[k] >= -1e-9);
            sum += w.seconds[k];
        }
        assert_true(fabs(sum - w.total) < 1e-9);
    }
    stop(&t);
}

static void what_cannot_be_measured_or_delayed_is_said(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_waterfall w;
    training t = start();
    assert_fails(tw_session_delay(t.s, &(tw_delay){TW_TIME_IMBALANCE, t.names[0], 0, 1}, &error), TW_NOT_FOUND,
                 "no step of kind 'imbalance'");
    assert_fails(tw_session_delay(t.s, &(tw_delay){TW_TIME_INPUT, t.names[0], 7, 1}, &error), TW_NOT_FOUND,
                 "no step of kind 'input' for tower 7");
    tw_session *untraced;
    assert_ok(tw_session_create(t.g, &(tw_session_options){.devices = t.devices}, &untraced, &error));
    assert_fails(tw_session_waterfall(untraced, t.names, TOWERS, &w, &error), TW_FAILED_PRECONDITION, "no traced run");
    tw_session_destroy(untraced);
    stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_of_a_real_step_add_up_to_it),
        cmocka_unit_test(what_cannot_be_measured_or_delayed_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* 16_condition.c - a loss with two forms: what only one of them needs is not computed where the other is taken.
 *
 * Huber's loss is half the square of a small error, and grows with a large one as its size does. A line is fitted to
 * points of which one is far off; the gradient comes back through the side that was taken. The counter in the block of
 * large errors is raised only there.
 *
 * prints: slope 2\.0.*large errors: [1-9]
 */
#include "example.h"

static tw_output huber(tw_graph *g, tw_output wrong, tw_output is_large, tw_variable *count, tw_output *counted)
{
    tw_output small, large;
    TW_UNLESS(g, is_large)
        small = tw_mul(g, tw_square(g, wrong), tw_scalar(g, 0.5f));
    TW_WHEN(g, is_large) {
        large = tw_sub(g, tw_abs(g, wrong), tw_scalar(g, 0.5f));
        *counted = tw_assign_add(g, count->handle, tw_scalar(g, 1));
    }
    return tw_cond(g, is_large, large, small);
}

int main(void)
{
    static const float points[][2] = {{1, 2}, {0.5f, 1}, {-1, -2}, {1, 40}, {-0.5f, -1}};
    enum { POINTS = sizeof points / sizeof *points, STEPS = 100 };
    tw_error error = TW_NO_ERROR;
    tw_graph *g = tw_graph_create();
    tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SCALAR), y = tw_placeholder(g, TW_FLOAT32, TW_SCALAR), counted;
    tw_variable *slope = tw_get_variable(g, "slope", TW_FLOAT32, TW_SCALAR, (tw_initializer){0});
    tw_variable *count = tw_get_state_variable(g, "count", TW_FLOAT32, TW_SCALAR, (tw_initializer){0});

    tw_output wrong = tw_sub(g, tw_mul(g, slope->value, x), y);
    tw_output loss = huber(g, wrong, tw_greater(g, tw_abs(g, wrong), tw_scalar(g, 1)), count, &counted), gradient;
    tw_gradients(g, &loss, 1, NULL, &slope->value, 1, &gradient);
    tw_output train = tw_assign_sub(g, slope->handle, tw_mul(g, gradient, tw_scalar(g, 0.1f)));

    tw_session *session;
    tw_output init = tw_initialize_variables(g), step[] = {train, counted};
    check(tw_session_create(g, NULL, &session, &error), &error);
    check(tw_session_run(session, NULL, 0, &init, 1, NULL, &error), &error);
    for (int i = 0; i < STEPS * POINTS; i++) {
        if (i % POINTS == 3 && i > POINTS)
            continue; /* the one that is far off is met once */
        tw_feed feeds[] = {{x, tw_tensor_float(points[i % POINTS][0])}, {y, tw_tensor_float(points[i % POINTS][1])}};
        check(tw_session_run(session, feeds, 2, step, 2, NULL, &error), &error);
        tw_tensor_release(feeds[0].tensor);
        tw_tensor_release(feeds[1].tensor);
    }
    tw_tensor *values[2];
    check(tw_session_get_variable(session, slope, &values[0], &error), &error);
    check(tw_session_get_variable(session, count, &values[1], &error), &error);
    printf("slope %.3f, large errors: %g\n", tw_tensor_value(values[0], 0), tw_tensor_value(values[1], 0));
    tw_tensor_release(values[0]);
    tw_tensor_release(values[1]);
    tw_session_destroy(session);
    tw_graph_destroy(g);
    return 0;
}

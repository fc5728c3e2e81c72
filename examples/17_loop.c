/* 17_loop.c - a loop that goes on until its value is good enough, and its gradient.
 *
 * Newton's method for the square root: each round takes the mean of a guess and of x divided by it. How many rounds
 * that takes, the values decide; the gradient goes back through as many, and is that of the square root, 1 / (2
 * sqrt(x)).
 *
 * prints: sqrt\(2\) = 1\.41421 after 4 rounds, its slope 0\.35355.*sqrt\(1000\) = 31\.6228 after 7 rounds, its slope
 * 0\.01581
 */
#include "example.h"

int main(void)
{
    tw_error error = TW_NO_ERROR;
    tw_graph *g = tw_graph_create();
    tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SCALAR), half = tw_scalar(g, 0.5f), slope;

    tw_output v[] = {tw_mul(g, x, half), tw_scalar(g, 0)}; /* the guess, and how many rounds it took */
    TW_LOOP(g, v, 2) {
        tw_output wrong = tw_abs(g, tw_sub(g, tw_div(g, tw_square(g, v[0]), x), tw_scalar(g, 1)));
        tw_while(g, tw_greater(g, wrong, tw_scalar(g, 1e-6f)));
        v[0] = tw_mul(g, tw_add(g, v[0], tw_div(g, x, v[0])), half);
        v[1] = tw_add(g, v[1], tw_scalar(g, 1));
    }
    tw_gradients(g, v, 1, NULL, &x, 1, &slope);

    tw_session *session;
    tw_output fetches[] = {v[0], v[1], slope};
    check(tw_session_create(g, NULL, &session, &error), &error);
    for (float of = 2; of <= 1000; of *= 500) {
        tw_tensor *results[3] = {NULL};
        tw_feed feed = {x, tw_tensor_float(of)};
        check(tw_session_run(session, &feed, 1, fetches, 3, results, &error), &error);
        printf("sqrt(%g) = %g after %g rounds, its slope %.5f\n", of, tw_tensor_value(results[0], 0),
               tw_tensor_value(results[1], 0), tw_tensor_value(results[2], 0));
        for (int i = 0; i < 3; i++)
            tw_tensor_release(results[i]);
        tw_tensor_release(feed.tensor);
    }
    tw_session_destroy(session);
    tw_graph_destroy(g);
    return 0;
}

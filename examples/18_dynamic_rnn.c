/* 18_dynamic_rnn.c - a recurrent network over sequences of different length, as long as the batch's longest.
 *
 * It learns to add up the numbers of a sequence. The cell is a scan: what it keeps goes from step to step, and
 * sequences that have ended keep what they have. A batch of short ones takes few steps, forth and back. At the end it
 * is asked for longer sequences than it has seen.
 *
 * prints: longest 4: 4 steps.*longest 9: 9 steps.*trained.*error 0\.0[0-9]+ on sequences of up to 12
 */
#include "example.h"

enum { BATCH = 16, MOST = 12, UNITS = 12, STEPS = 400 };

typedef struct network {
    tw_variable *w, *u, *b, *out;
    tw_output lengths; /* [BATCH] */
} network;

/* A step of all sequences: what comes in, what was kept, what is kept. The result counts the steps. */
static void cell(void *user, tw_graph *g, const tw_output *x, tw_output *state, tw_output *results)
{
    const network *n = user;
    tw_output sum = tw_add(g, tw_matmul(g, x[0], n->w->value), tw_matmul(g, state[0], n->u->value));
    tw_output next = tw_tanh(g, tw_bias_add(g, sum, n->b->value));
    tw_output goes_on = tw_expand_dims(g, tw_less(g, tw_round_number(g), n->lengths), 1);
    state[0] = tw_select(g, goes_on, next, state[0]);
    results[0] = tw_scalar(g, 1);
}

/* Numbers between -0.5 and 0.5, [MOST,BATCH,1], lengths up to `longest`, and the sums, [BATCH,1]. */
static void draw(unsigned *seed, int longest, tw_feed feeds[3])
{
    float x[MOST * BATCH], sums[BATCH] = {0};
    int32_t lengths[BATCH];
    for (int i = 0; i < BATCH; i++) {
        *seed = *seed * 1664525 + 1013904223;
        lengths[i] = i ? 1 + (int32_t)(*seed >> 8) % longest : longest;
    }
    for (int i = 0; i < MOST * BATCH; i++) {
        *seed = *seed * 1664525 + 1013904223;
        x[i] = (float)(*seed >> 8) / (1 << 24) - 0.5f;
        sums[i % BATCH] += i / BATCH < lengths[i % BATCH] ? x[i] : 0;
    }
    feeds[0].tensor = tw_tensor_from(TW_FLOAT32, TW_SHAPE(MOST, BATCH, 1), x);
    feeds[1].tensor = tw_tensor_from(TW_INT32, TW_SHAPE(BATCH), lengths);
    feeds[2].tensor = tw_tensor_from(TW_FLOAT32, TW_SHAPE(BATCH, 1), sums);
}

/* Runs on sequences of up to `longest`; fetches one number, if any. */
static double run(tw_session *session, unsigned *seed, int longest, tw_feed feeds[3], tw_output fetch)
{
    tw_error error = TW_NO_ERROR;
    tw_tensor *result = NULL;
    draw(seed, longest, feeds);
    check(tw_session_run(session, feeds, 3, &fetch, 1, fetch.index < 0 ? NULL : &result, &error), &error);
    double value = result ? tw_tensor_value(result, 0) : 0;
    tw_tensor_release(result);
    for (int i = 0; i < 3; i++)
        tw_tensor_release(feeds[i].tensor);
    return value;
}

int main(void)
{
    tw_error error = TW_NO_ERROR;
    tw_graph *g = tw_graph_create();
    tw_initializer small = {.kind = TW_INIT_GLOROT_UNIFORM};
    tw_graph_set_seed(g, 1);
    network n = {.w = tw_get_variable(g, "w", TW_FLOAT32, TW_SHAPE(1, UNITS), small),
                 .u = tw_get_variable(g, "u", TW_FLOAT32, TW_SHAPE(UNITS, UNITS), small),
                 .b = tw_get_variable(g, "b", TW_FLOAT32, TW_SHAPE(UNITS), (tw_initializer){0}),
                 .out = tw_get_variable(g, "out", TW_FLOAT32, TW_SHAPE(UNITS, 1), small),
                 .lengths = tw_placeholder(g, TW_INT32, TW_SHAPE(BATCH))};
    tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(MOST, BATCH, 1));
    tw_output y = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(BATCH, 1));

    tw_output state = tw_zeros(g, TW_FLOAT32, TW_SHAPE(BATCH, UNITS)), ones;
    tw_scan(g, cell, &n, (tw_scan_values){.elements = &x, .num_elements = 1, .state = &state, .num_state = 1,
                                          .results = &ones, .num_results = 1,
                                          .steps = tw_reduce_max(g, n.lengths, NULL, 0, false)});
    tw_output wrong = tw_sub(g, tw_matmul(g, state, n.out->value), y);
    tw_output loss = tw_reduce_mean(g, tw_square(g, wrong), NULL, 0, false);
    tw_output steps = tw_reduce_sum(g, ones, NULL, 0, false);
    tw_optimizer *adam = tw_adam(g, tw_scalar(g, 0.01f), 0.9f, 0.999f, 1e-8f);
    tw_output train = tw_apply_gradients(adam, tw_compute_gradients(adam, loss), NULL);

    tw_session *session;
    tw_output init = tw_initialize_variables(g);
    tw_feed feeds[] = {{x, NULL}, {n.lengths, NULL}, {y, NULL}};
    unsigned seed = 1;
    check(tw_session_create(g, NULL, &session, &error), &error);
    check(tw_session_run(session, NULL, 0, &init, 1, NULL, &error), &error);
    for (int longest = 4; longest <= 9; longest += 5)
        printf("longest %d: %g steps\n", longest, run(session, &seed, longest, feeds, steps));
    for (int i = 0; i < STEPS; i++)
        run(session, &seed, 2 + i % 7, feeds, train);
    printf("trained on sequences of up to 8, ");
    printf("squared error %.4f on sequences of up to %d\n", run(session, &seed, MOST, feeds, loss), MOST);
    tw_session_destroy(session);
    tw_graph_destroy(g);
    return 0;
}

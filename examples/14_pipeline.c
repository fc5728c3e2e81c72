/* 14_pipeline.c - an iterator in place of a queue: every tower takes one batch a step, no example twice in an epoch.
 *
 * A pipeline is a stream of examples whose k-th depends on the seed and on k alone, filled by threads of its own.
 * Towers take turns in it by number, not by who comes first, so the same tower sees the same examples in every run.
 *
 * prints: step 0 .*step 1 .*each of 12 examples once: yes.*the same in another run: yes
 */
#include "example.h"

#include <string.h>

enum { TOWERS = 2, BATCH = 3, EXAMPLES = 12, STEPS = 2 };

/* Twelve images of one pixel; the label is the number of the example. */
static tw_dataset *numbered_examples(void)
{
    tw_error error = TW_NO_ERROR;
    tw_dataset *data;
    uint8_t images[EXAMPLES];
    int32_t labels[EXAMPLES];
    for (int i = 0; i < EXAMPLES; i++) {
        images[i] = (uint8_t)i;
        labels[i] = i;
    }
    check(tw_dataset_from("numbers", images, labels, EXAMPLES, 1, 1, 1, EXAMPLES, &data, &error), &error);
    return data;
}

static tw_status fill(void *user, int tower, void *const *outputs, tw_error *error)
{
    return tw_pipeline_next(user, tower, outputs[0], outputs[1], error);
}

/* Which examples each tower sees at each step. */
static void run(tw_dataset *data, int32_t seen[STEPS][TOWERS][BATCH], bool print)
{
    tw_error error = TW_NO_ERROR;
    tw_graph *g = tw_graph_create();
    tw_output labels[TOWERS];
    for (int i = 0; i < TOWERS; i++)
        TW_NAME_SCOPE(g, "tower_%d", i) {
            tw_dtype types[] = {TW_FLOAT32, TW_INT32};
            tw_shape shapes[] = {TW_SHAPE(BATCH, 1, 1, 1), TW_SHAPE(BATCH)};
            tw_output outputs[2] = {{0}};
            tw_input(g, "input", i, types, shapes, 2, outputs);
            labels[i] = tw_identity(g, outputs[1]);
        }

    tw_pipeline *input;
    tw_session *session;
    tw_tensor *results[TOWERS] = {NULL};
    tw_pipeline_options options = {.batch = BATCH, .towers = TOWERS, .seed = 7, .shuffle = true};
    check(tw_pipeline_create(data, &options, &input, &error), &error);
    check(tw_session_create(g, NULL, &session, &error), &error);
    check(tw_session_set_source(session, "input", fill, input, &error), &error);
    for (int step = 0; step < STEPS; step++) {
        check(tw_session_run(session, NULL, 0, labels, TOWERS, results, &error), &error);
        for (int i = 0; i < TOWERS; i++) {
            memcpy(seen[step][i], tw_tensor_data(results[i]), sizeof seen[step][i]);
            const int32_t *s = seen[step][i];
            if (print)
                printf("step %d tower_%d: examples %d %d %d\n", step, i, s[0], s[1], s[2]);
        }
    }
    for (int i = 0; i < TOWERS; i++)
        tw_tensor_release(results[i]);
    tw_session_destroy(session);
    tw_pipeline_destroy(input);
    tw_graph_destroy(g);
}

int main(void)
{
    tw_dataset *data = numbered_examples();
    int32_t first[STEPS][TOWERS][BATCH], second[STEPS][TOWERS][BATCH];
    int times[EXAMPLES] = {0};
    bool once = true;
    run(data, first, true);
    run(data, second, false);
    for (int i = 0; i < EXAMPLES; i++)
        times[((int32_t *)first)[i]]++;
    for (int i = 0; i < EXAMPLES; i++)
        once &= times[i] == 1;
    printf("each of %d examples once: %s\n", EXAMPLES, once ? "yes" : "no");
    printf("the same in another run: %s\n", memcmp(first, second, sizeof first) == 0 ? "yes" : "no");
    tw_dataset_destroy(data);
    return 0;
}

/* 13_building_is_not_running.c - the loop over towers is not what runs one after another.
 *
 * It looks as if the first tower had to end before the second began: the loop builds one, then the other. But building
 * only describes. Here the input of each tower waits until the other tower has asked for its own, which would be for
 * ever if towers ran in turn; and nothing happens at all before the session runs.
 *
 * prints: built 2 towers: 0 batches asked for.*ran 1 step: 2 batches asked for, both towers at once: yes
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"

#include <pthread.h>
#include <time.h>

enum { TOWERS = 2 };

/* Where towers meet. */
typedef struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t all_here;
    int here;
} meeting;

/* A batch of one example, once every tower has asked; fails after ten seconds of waiting. */
static tw_status fill(void *user, int tower, void *const *outputs, tw_error *error)
{
    meeting *m = user;
    struct timespec end;
    int late = 0;
    (void)error;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 10;
    pthread_mutex_lock(&m->lock);
    m->here++;
    pthread_cond_broadcast(&m->all_here);
    while (m->here < TOWERS && late == 0)
        late = pthread_cond_timedwait(&m->all_here, &m->lock, &end);
    pthread_mutex_unlock(&m->lock);
    *(float *)outputs[0] = (float)tower + 1;
    return late ? TW_DEADLINE_EXCEEDED : TW_OK;
}

int main(void)
{
    tw_error error = TW_NO_ERROR;
    tw_graph *g = tw_graph_create();
    meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    tw_output losses[TOWERS], sum = {0};
    tw_dtype type = TW_FLOAT32;
    tw_shape shape = TW_SHAPE(1);

    for (int i = 0; i < TOWERS; i++)
        TW_DEVICE(g, "/cpu:%d", i)
        TW_NAME_SCOPE(g, "tower_%d", i) {
            tw_output x;
            tw_input(g, "input", i, &type, &shape, 1, &x);
            losses[i] = tw_square(g, x);
        }
    TW_DEVICE(g, "/cpu:0")
        sum = tw_add_n(g, losses, TOWERS); /* the one place where towers wait for each other */

    tw_devices *devices;
    tw_session *session;
    tw_tensor *result = NULL;
    check(tw_devices_create(TW_OPTIONS(tw_device_options, .cpu_devices = TOWERS), &devices, &error), &error);
    check(tw_session_create(g, TW_OPTIONS(tw_session_options, .devices = devices), &session, &error), &error);
    check(tw_session_set_source(session, "input", fill, &m, &error), &error);
    printf("built %d towers: %d batches asked for\n", TOWERS, m.here);
    tw_status status = tw_session_run(session, NULL, 0, &sum, 1, &result, &error);
    printf("ran 1 step: %d batches asked for, both towers at once: %s\n", m.here, status == TW_OK ? "yes" : "no");
    if (result)
        printf("1^2 + 2^2 = %g\n", tw_tensor_value(result, 0));

    tw_tensor_release(result);
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
    return status != TW_OK;
}

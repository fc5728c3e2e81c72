/* test_log.c - the log: who is told, and until when, while threads have something to tell.
 * label: threads */
#include "testing.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <tower/ops.h>
#include <tower/session.h>

enum { TELLERS = 2, TURNS = 40 };

static atomic_bool enough;

/* Plans, again and again, what soft placement has to tell something about. */
static void *tell(void *argument)
{
    tw_devices *devices = argument;
    while (!atomic_load(&enough)) {
        tw_error error = {0};
        tw_graph *g = tw_graph_create();
        tw_session *s;
        tw_output product;
        TW_DEVICE(g, "/gpu:0") { /* which has no such kernel */
            tw_output x = tw_constant_int32s(g, TW_SHAPE(1, 1), (int32_t[]){2});
            product = tw_matmul(g, x, x);
        }
        assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices, .allow_soft_placement = true}, &s, &error));
        assert_ok(tw_session_prepare(s, NULL, 0, &product, 1, &error));
        tw_session_destroy(s);
        tw_graph_destroy(g);
    }
    return NULL;
}

typedef struct listener {
    bool listens; /* on purpose not atomic: the log's own order must do */
    atomic_int heard, heard_late;
} listener;

static void hear(void *user, int level, const char *text)
{
    listener *l = user;
    (void)level, (void)text;
    atomic_fetch_add(l->listens ? &l->heard : &l->heard_late, 1);
}

static void nobody_is_told_anything_after_another_function_was_set(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    pthread_t tellers[TELLERS];
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .virtual_gpus = 1}, &devices, &error));
    atomic_store(&enough, false);
    for (int i = 0; i < TELLERS; i++)
        assert_int_equal(pthread_create(&tellers[i], NULL, tell, devices), 0);
    for (int turn = 0; turn < TURNS; turn++) {
        listener l = {.listens = true};
        tw_set_log(hear, &l, 2);
        while (!atomic_load(&l.heard))
            sched_yield();
        if (turn % 2) {
            listener other = {.listens = true};
            tw_set_log(hear, &other, 2);
            l.listens = false;
            while (!atomic_load(&other.heard))
                sched_yield();
            tw_set_log(NULL, NULL, 0);
            other.listens = false;
            assert_int_equal(other.heard_late, 0);
        }
        tw_set_log(NULL, NULL, 0);
        l.listens = false;
        assert_int_equal(l.heard_late, 0);
    }
    atomic_store(&enough, true);
    for (int i = 0; i < TELLERS; i++)
        pthread_join(tellers[i], NULL);
    tw_devices_destroy(devices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_told_anything_after_another_function_was_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

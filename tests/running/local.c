/* local.c - messages between tasks over sockets: that several runs share, that break off, that are full. */
#include "parts.h"
#include "testing.h"

#include "base/clock.h"
#include "comm/exchange.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DEADLINE = 1000 }; /* seconds: it passes where a test skips them, and nowhere else */
static const double STEP = 0.1; /* of it, that holds nobody up */

static twi_comm *join_by(int task, const char *sockets)
{
    char number[16];
    tw_error error = {0};
    twi_comm *c = NULL;
    snprintf(number, sizeof number, "%d", task);
    setenv("TOWER_TASK", number, 1);
    setenv("TOWER_TASK_SOCKETS", sockets, 1);
    assert_true(twi_comm_local.is_here());
    assert_ok(twi_comm_local.open(DEADLINE, &c, &error));
    unsetenv("TOWER_TASK");
    return c;
}

static twi_comm *join(int task, int socket)
{
    char sockets[32];
    snprintf(sockets, sizeof sockets, task ? "%d,-" : "-,%d", socket);
    return join_by(task, sockets);
}

/* Whether the beating thread has had its turn since then; it gets one now. */
static bool has_turned(twi_comm *c, int64_t ns)
{
    twi_exchange *x = (twi_exchange *)c;
    pthread_cond_signal(&x->ends);
    return atomic_load(&x->turn_ns) >= ns;
}

static bool has_heard(twi_comm *c, int task, int64_t ns)
{
    return atomic_load(&((twi_exchange *)c)->peers[task].heard_ns) >= ns;
}

enum { LINES = 4, WORDS = 60, LONGEST = 1 << 18, CHANNEL = 5 };

/* One end of a channel. */
typedef struct speaker {
    twi_comm *c;
    int channel;
    pthread_t thread;
    tw_status status;
    tw_error error;
} speaker;

/* Long words and short ones, of which some are waited for and some come before they are. */
static void *speak(void *argument)
{
    speaker *s = argument;
    char *word = malloc(LONGEST), *expected = malloc(LONGEST);
    for (int i = 0; i < WORDS && s->status == TW_OK; i++) {
        size_t bytes = (size_t)(i * i * i * 37 + s->channel) % LONGEST;
        bool mine = (i + s->c->task) % 2 == 0;
        memset(expected, i * LINES + s->channel, bytes);
        s->status = mine ? s->c->ops->send(s->c, 1 - s->c->task, s->channel, expected, bytes, &s->error)
                         : s->c->ops->receive(s->c, 1 - s->c->task, s->channel, word, bytes, "a word", &s->error);
        if (s->status == TW_OK && !mine && memcmp(word, expected, bytes) != 0)
            s->status = twi_fail(&s->error, TW_INTERNAL, "another word came");
    }
    free(word);
    free(expected);
    return NULL;
}

static void several_runs_speak_over_one_pair_of_sockets(void **state)
{
    (void)state;
    int pair[2];
    speaker speakers[2 * LINES] = {0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    twi_comm *ends[] = {join(0, pair[0]), join(1, pair[1])};
    for (int i = 0; i < 2 * LINES; i++) {
        speakers[i].c = ends[i % 2];
        speakers[i].channel = 1 + i / 2 * 64; /* of one bucket */
        assert_int_equal(pthread_create(&speakers[i].thread, NULL, speak, &speakers[i]), 0);
    }
    for (int i = 0; i < 2 * LINES; i++) {
        pthread_join(speakers[i].thread, NULL);
        assert_int_equal(speakers[i].status, TW_OK);
    }
    twi_comm_close(ends[0]);
    twi_comm_close(ends[1]);
}

/* What a task sends is led on to the other, but for all that comes after so many bytes. */
typedef struct wire {
    int from, to;
    atomic_size_t left;
    bool ends; /* and then the wire is gone; else there is silence */
} wire;

static void *lead_on(void *argument)
{
    wire *w = argument;
    char bytes[4096];
    ssize_t n;
    while ((n = recv(w->from, bytes, sizeof bytes, 0)) > 0) {
        size_t left = atomic_load(&w->left), led = (size_t)n < left ? (size_t)n : left;
        if (led && send(w->to, bytes, led, MSG_NOSIGNAL) < 0)
            break;
        atomic_store(&w->left, left - led);
        if (left == led && w->ends)
            shutdown(w->to, SHUT_RDWR);
    }
    return NULL;
}

static void *send_long(void *c)
{
    static char word[LONGEST];
    ((twi_comm *)c)->ops->send(c, 0, CHANNEL, word, sizeof word, NULL);
    return NULL;
}

/* Someone waits for what is led on to it. When there is silence the time goes by in which something should come. */
typedef struct waiter {
    twi_comm *c;
    wire *wire;
} waiter;

static void *let_time_pass(void *argument)
{
    const waiter *w = argument;
    const twi_exchange *x = (const twi_exchange *)w->c;
    while (atomic_load(&w->wire->left) > 0)
        nap();
    while (!w->wire->ends && !atomic_load(&x->failed)) {
        skip_seconds(STEP * DEADLINE);
        for (int64_t now = twi_coarse_ns(); !has_turned(w->c, now) && !atomic_load(&x->failed);)
            nap();
    }
    return NULL;
}

/* Half a message comes to where it is waited for. Nobody writes there when the wait has ended. */
static void half_a_message_ends_the_wait_for_it(void **state)
{
    (void)state;
    static const char *const said[] = {"task 1 has not been heard of for", "task 1 has ended before its work was done"};
    for (int ends = 0; ends < 2; ends++) {
        int near[2], far[2];
        pthread_t leading, back, sending, passing;
        tw_error error = {0};
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, near), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, far), 0);
        wire there = {far[1], near[1], LONGEST / 2, ends}, here = {near[1], far[1], SIZE_MAX, false};
        twi_comm *waits = join(0, near[0]), *sends = join(1, far[0]);
        waiter w = {waits, &there};
        pthread_create(&leading, NULL, lead_on, &there);
        pthread_create(&back, NULL, lead_on, &here);
        pthread_create(&sending, NULL, send_long, sends);
        pthread_create(&passing, NULL, let_time_pass, &w);
        char *word = malloc(LONGEST);
        assert_fails(waits->ops->receive(waits, 1, CHANNEL, word, LONGEST, "a word", &error), TW_ABORTED, said[ends]);
        free(word);
        pthread_join(sending, NULL);
        pthread_join(passing, NULL);
        twi_comm_close(sends);
        twi_comm_close(waits);
        pthread_join(leading, NULL);
        pthread_join(back, NULL);
        close(near[1]);
        close(far[1]);
    }
}

static void *close_in_thread(void *c)
{
    twi_comm_close(c);
    return NULL;
}

/* Three tasks, of which this thread plays the last: it beats, and looks at nothing that it is sent. The first is done
 * and has no room to tell it so for longer than the deadline; it goes on to hear of the second, to whom it has said
 * so. Else it would end without that word, and be named by the last. */
static void who_has_no_room_to_say_that_he_is_done_hears_of_the_others(void **state)
{
    (void)state;
    enum { LEAVE = -2 };
    int first[2], near[2], far[2], small = 4096;
    char sockets[32];
    pthread_t closing;
    twi_header beat, last = {0}, next;
    for (int i = 0; i < 3; i++)
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, i == 0 ? first : i == 1 ? near : far), 0);
    setsockopt(near[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    snprintf(sockets, sizeof sockets, "%d,-,%d", first[1], far[0]);
    twi_comm *second = join_by(1, sockets);
    snprintf(sockets, sizeof sockets, "-,%d,%d", first[0], near[0]);
    twi_comm *done = join_by(0, sockets);
    assert_int_equal(recv(far[1], &beat, sizeof beat, MSG_WAITALL), sizeof beat);
    while (send(near[0], &beat, sizeof beat, MSG_DONTWAIT) == sizeof beat)
        ;
    pthread_create(&closing, NULL, close_in_thread, done);
    while (!atomic_load(&((twi_exchange *)second)->peers[0].left))
        nap();
    for (double passed = 0; passed < 1.5; passed += STEP) {
        skip_seconds(STEP * DEADLINE);
        int64_t now = twi_coarse_ns();
        send(near[1], &beat, sizeof beat, MSG_NOSIGNAL);
        send(far[1], &beat, sizeof beat, MSG_NOSIGNAL);
        while (!has_turned(second, now) || !has_turned(done, now) || !has_heard(done, 1, now) ||
               !has_heard(done, 2, now) || !has_heard(second, 2, now))
            nap();
    }
    send(near[1], &beat, sizeof beat, MSG_NOSIGNAL); /* orders the last look and the end */
    while (recv(near[1], &next, sizeof next, MSG_WAITALL) == sizeof next)
        last = next;
    assert_int_equal(last.channel, LEAVE);
    pthread_join(closing, NULL);
    twi_comm_close(second);
    close(near[1]);
    close(far[1]);
}

int run_local(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_runs_speak_over_one_pair_of_sockets),
        cmocka_unit_test(half_a_message_ends_the_wait_for_it),
        cmocka_unit_test(who_has_no_room_to_say_that_he_is_done_hears_of_the_others),
    };
    return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}

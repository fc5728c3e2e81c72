/* sockets.c - bytes between tasks of one machine: a task, and the other end of its socket, which this thread plays. */
#include "faulty_memory.h"
#include "parts.h"

#include "base/clock.h"
#include "comm/exchange.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHANNEL = 5, BEAT = -1, LEAVE = -2, ABORT = -3 };
enum { LONG = 1 << 20, SHORT = 4096 }; /* what fills every socket, and what goes together with its header */
#define DEADLINE 1000.                 /* seconds: what nobody waits for */

static int near, far; /* the task's end of a pair, and the other */

static tw_status join(const char *task, const char *sockets, twi_comm **c, tw_error *error)
{
    setenv("TOWER_TASK", task, 1);
    setenv("TOWER_TASK_SOCKETS", sockets, 1);
    assert_true(twi_comm_local.is_here());
    tw_status status = twi_comm_local.open(DEADLINE, c, error);
    unsetenv("TOWER_TASK");
    assert_false(twi_comm_local.is_here());
    setenv("TOWER_TASK", task, 1);
    unsetenv("TOWER_TASK_SOCKETS");
    assert_false(twi_comm_local.is_here());
    unsetenv("TOWER_TASK");
    return status;
}

static void make_pair(void)
{
    int pair[2], small = 4 * SHORT;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    near = pair[0];
    far = pair[1];
}

/* The first of two tasks. */
static tw_status join_pair(twi_comm **c, tw_error *error)
{
    char sockets[32];
    snprintf(sockets, sizeof sockets, "-,%d", near);
    return join("0", sockets, c, error);
}

static twi_comm *begin(void)
{
    tw_error error = {0};
    twi_comm *c = NULL;
    make_pair();
    fail_allocation(-1);
    assert_ok(join_pair(&c, &error));
    assert_int_equal(fcntl(near, F_GETFD), FD_CLOEXEC);
    return c;
}

/* Nothing is left of it, its socket included. */
static void finish(twi_comm *c)
{
    char byte;
    twi_comm_close(c);
    assert_int_equal(memory.live, 0);
    assert_int_equal(fcntl(near, F_GETFD), -1);
    while (recv(far, &byte, 1, 0) > 0) /* to the end */
        ;
    close(far);
    stop_failing_allocations();
}

static void write_all(const void *bytes, size_t size)
{
    assert_int_equal(send(far, bytes, size, MSG_NOSIGNAL), size);
}

static void say(int channel, uint64_t number, const void *data, size_t bytes)
{
    write_all(&(twi_header){TWI_MAGIC, channel, bytes, number}, sizeof(twi_header));
    if (bytes)
        write_all(data, bytes);
}

static void read_exactly(void *bytes, size_t size)
{
    for (char *at = bytes, *end = at + size; at < end;) {
        ssize_t n = recv(far, at, (size_t)(end - at), 0);
        assert_true(n > 0);
        at += n;
    }
}

/* The next message that is no beat. */
static twi_header read_message(char *data)
{
    twi_header header;
    do {
        read_exactly(&header, sizeof header);
        assert_int_equal(header.magic, TWI_MAGIC);
        read_exactly(data, header.bytes);
    } while (header.channel == BEAT);
    return header;
}

static char word[LONG], came[LONG];

static void words_go_behind_their_headers(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, SHORT, SHORT + 1, 5 * SHORT};
    tw_error error = {0};
    twi_header header;
    twi_comm *c = begin();
    read_exactly(&header, sizeof header);
    assert_int_equal(header.channel, BEAT);
    for (int i = 0; i < LONG; i++)
        word[i] = (char)(i * 7);
    for (int i = 0; i < 5; i++) {
        assert_ok(c->ops->send(c, 1, CHANNEL, word, sizes[i], &error));
        header = read_message(came);
        assert_int_equal(header.channel, CHANNEL);
        assert_int_equal(header.number, i);
        assert_int_equal(header.bytes, sizes[i]);
        assert_memory_equal(came, word, sizes[i]);
    }
    finish(c);
}

static void words_come_in_pieces_and_after_a_while(void **state)
{
    (void)state;
    twi_header header = {TWI_MAGIC, CHANNEL, 3, 0};
    tw_error error = {0};
    twi_comm *c = begin();
    for (size_t i = 0; i < sizeof header; i++)
        write_all((char *)&header + i, 1);
    nanosleep(&(struct timespec){0, 300000000}, NULL); /* the reader has looked up in between */
    write_all("ab", 2);
    write_all("c", 1);
    assert_ok(c->ops->receive(c, 1, CHANNEL, came, 3, "a word", &error));
    assert_memory_equal(came, "abc", 3);
    say(CHANNEL, 1, "", 0);
    assert_ok(c->ops->receive(c, 1, CHANNEL, came, 0, "a word", &error));
    finish(c);
}

/* Its call has ended then without bytes. Here the task is another process. */
static void who_was_stopped_goes_on(void **state)
{
    (void)state;
    int status;
    make_pair();
    pid_t task = fork();
    if (task == 0) {
        tw_error error = {0};
        twi_comm *c;
        char byte = 0;
        close(far);
        bool good = join_pair(&c, &error) == TW_OK;
        good = good && c->ops->receive(c, 1, CHANNEL, &byte, 1, "a byte", &error) == TW_OK && byte == 'a';
        _exit(good ? 0 : 1);
    }
    close(near);
    read_exactly(came, sizeof(twi_header)); /* it beats */
    for (int i = 0; i < 5; i++) {
        kill(task, SIGSTOP);
        assert_int_equal(waitpid(task, &status, WUNTRACED), task);
        assert_true(WIFSTOPPED(status));
        kill(task, SIGCONT);
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
    say(CHANNEL, 0, "a", 1);
    assert_int_equal(waitpid(task, &status, 0), task);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(far);
}

static void half_a_word_is_a_sign_of_life(void **state)
{
    (void)state;
    twi_comm *c = begin();
    atomic_llong *heard = &((twi_exchange *)c)->peers[1].heard_ns;
    atomic_store(heard, 0);
    write_all(&(uint32_t){TWI_MAGIC}, sizeof(uint32_t));
    while (atomic_load(heard) == 0)
        nap();
    finish(c);
}

typedef struct sending {
    twi_comm *c;
    int count;
    size_t bytes;
    tw_status status;
    tw_error error;
} sending;

static void *send_words(void *argument)
{
    sending *s = argument;
    for (int i = 0; i < s->count && s->status == TW_OK; i++)
        s->status = s->c->ops->send(s->c, 1, CHANNEL, word, s->bytes, &s->error);
    return NULL;
}

/* A word that has no room, and many, of which some find none for their first byte. */
static void who_sends_waits_for_room(void **state)
{
    (void)state;
    static const sending kinds[] = {{NULL, 1, LONG, TW_OK, {0}}, {NULL, 250, SHORT, TW_OK, {0}}};
    for (int i = 0; i < 2; i++) {
        sending s = kinds[i];
        pthread_t thread;
        s.c = begin();
        pthread_create(&thread, NULL, send_words, &s);
        nanosleep(&(struct timespec){0, 20000000}, NULL);
        for (int k = 0; k < s.count; k++) {
            twi_header header = read_message(came);
            assert_int_equal(header.bytes, s.bytes);
            assert_memory_equal(came, word, s.bytes);
        }
        pthread_join(thread, NULL);
        assert_int_equal(s.status, TW_OK);
        finish(s.c);
    }
}

/* For word of the failure. */
static void make_room(twi_comm *c)
{
    while (!atomic_load(&((twi_exchange *)c)->over))
        recv(far, came, sizeof came, MSG_DONTWAIT);
}

/* The other is done, or all fails, while somebody waits for room. */
static void who_waits_for_room_is_told_that_there_will_be_none(void **state)
{
    (void)state;
    static const char *const whys[] = {"task 1 has ended: task 0 could not send it a message", "no coffee"};
    for (int i = 0; i < 2; i++) {
        sending s = {begin(), 1, LONG, TW_OK, {0}};
        twi_header header;
        pthread_t thread;
        pthread_create(&thread, NULL, send_words, &s);
        do
            read_exactly(&header, sizeof header);
        while (header.channel == BEAT);
        say(i == 0 ? LEAVE : ABORT, TW_ABORTED, whys[i], i == 0 ? 0 : strlen(whys[i]));
        pthread_join(thread, NULL);
        assert_int_equal(s.status, TW_ABORTED);
        assert_string_equal(s.error.message, whys[i]);
        make_room(s.c);
        finish(s.c);
    }
}

/* A beat that finds no room is left out: the thread that beats has others to think of. */
static void beats_do_not_wait_for_room(void **state)
{
    (void)state;
    static const twi_header beat = {TWI_MAGIC, BEAT, 0, 0};
    tw_error error = {0};
    twi_comm *c = NULL;
    make_pair();
    while (send(near, &beat, sizeof beat, MSG_DONTWAIT) == sizeof beat)
        ;
    fail_allocation(-1);
    assert_ok(join_pair(&c, &error));
    twi_exchange *x = (twi_exchange *)c;
    for (int turns = 0; turns < 3; turns++) {
        atomic_store(&x->turn_ns, 0);
        while (atomic_load(&x->turn_ns) == 0) {
            pthread_cond_signal(&x->ends);
            nap();
        }
    }
    while (recv(far, came, sizeof came, MSG_DONTWAIT) > 0)
        ;
    finish(c);
}

static void who_does_not_read_has_ended(void **state)
{
    (void)state;
    tw_error error;
    twi_comm *c = begin();
    shutdown(far, SHUT_RD);
    assert_fails(c->ops->send(c, 1, CHANNEL, word, 1, &error), TW_ABORTED,
                 "task 1 has ended: task 0 could not send it a message");
    atomic_store(&((twi_exchange *)c)->peers[1].left, true);
    finish(c);
}

static void *hear_a_word(void *argument)
{
    sending *s = argument;
    s->status = s->c->ops->receive(s->c, 1, CHANNEL, came, s->bytes, "a word", &s->error);
    return NULL;
}

/* Until what comes next has a place, or has begun to come there. */
static void wait_until_it_waits(twi_comm *c, bool comes)
{
    twi_exchange *x = (twi_exchange *)c;
    for (bool waits = false; !waits; nap()) {
        const twi_channel *channel = atomic_load(&x->peers[1].channels[CHANNEL]);
        waits = channel && atomic_load(&channel->place) == (comes ? TWI_LENT : TWI_WANTED);
    }
}

/* It has come in part, or not at all, or what comes is no message; and what was sent to it is not read. */
static void who_is_gone_or_spoiled_ends_the_wait(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        sending s = {begin(), 1, 8, TW_OK, {0}};
        pthread_t thread;
        const char *why = "task 1 has ended before its work was done";
        twi_header header = {TWI_MAGIC, CHANNEL, 8, 0};
        pthread_create(&thread, NULL, hear_a_word, &s);
        wait_until_it_waits(s.c, false);
        if (i > 0)
            write_all(&header, i == 1 ? sizeof header / 2 : sizeof header);
        if (i > 1) {
            write_all("abcd", 4);
            wait_until_it_waits(s.c, true);
        }
        if (i < 3) {
            read_exactly(&header, sizeof header / (i == 2 ? 1 : 2)); /* what is not read is gone otherwise */
            shutdown(far, SHUT_WR);
            if (i == 1)
                close(far), far = -1;
        }
        if (i == 3) {
            why = "task 0 failed: no coffee";
            s.c->ops->abort(s.c, TW_ABORTED, "no coffee");
        }
        if (i == 4) {
            write_all("efgh", 4);
            pthread_join(thread, NULL);
            assert_int_equal(s.status, TW_OK);
            header.magic++;
            write_all(&header, sizeof header);
            pthread_create(&thread, NULL, hear_a_word, &s);
            why = "task 1 has sent what is no message of this version";
        }
        pthread_join(thread, NULL);
        assert_int_equal(s.status, TW_ABORTED);
        assert_string_equal(s.error.message, why);
        atomic_store(&((twi_exchange *)s.c)->peers[1].left, true); /* nobody tries for a second to tell it */
        finish(s.c);
    }
}

/* ---- who is told of sockets -------------------------------------------------------------------------------------- */

static void sockets_are_what_a_launcher_says(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"0", ""},      {"0", "%d,-"}, {"1", "-,%d"},  {"0", "%d,%d"}, {"0", "-,-"},  {"1", "%d"},    {"0", "-;%d"},
        {"0", "-,%dx"}, {"0", "-,x"},  {"0", "-,,%d"}, {"0", "-%d"},   {"2", "%d,-"}, {"-1", "%d"},
    };
    tw_error error;
    twi_comm *c;
    int pair[2];
    char sockets[64], many[8000] = "-";
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char said[128];
        snprintf(sockets, sizeof sockets, wrong[i][1], pair[0], pair[1]);
        snprintf(said, sizeof said, "TOWER_TASK is '%s' and TOWER_TASK_SOCKETS '%s': expected", wrong[i][0], sockets);
        assert_fails(join(wrong[i][0], sockets, &c, &error), TW_INVALID_ARGUMENT, said);
    }
    for (int i = 1; i < TWI_MOST_TASKS; i++)
        sprintf(many + strlen(many), ",%d", pair[0]);
    strcat(many, ",0");
    assert_fails(join("0", many, &c, &error), TW_INVALID_ARGUMENT, "expected what tower launch sets");
    close(pair[0]);
    close(pair[1]);
}

/* Or another file has its number by now. */
static void a_socket_that_was_closed_on_the_way_is_named(void **state)
{
    (void)state;
    tw_error error;
    twi_comm *c;
    char sockets[64], says[64];
    int file = open("/dev/null", O_RDWR);
    assert_true(file >= 0);
    snprintf(sockets, sizeof sockets, "%d,-", file);
    snprintf(says, sizeof says, "and descriptor %d is no socket: ", file);
    assert_fails(join("1", sockets, &c, &error), TW_FAILED_PRECONDITION, says);
    close(file);
    assert_fails(join("1", sockets, &c, &error), TW_FAILED_PRECONDITION, says);
}

/* As any other, where a process was begun without its first. */
static void a_socket_may_have_the_number_zero(void **state)
{
    (void)state;
    int input = dup(0);
    close(0);
    twi_comm *c = begin();
    int number = near;
    finish(c);
    dup2(input, 0);
    close(input);
    assert_int_equal(number, 0);
}

static bool has_thread(const char *name)
{
    DIR *threads = opendir("/proc/self/task");
    bool found = false;
    for (struct dirent *d; (d = readdir(threads));) {
        char path[300], line[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", d->d_name);
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        found = found || (fgets(line, sizeof line, file) && strncmp(line, name, strlen(name)) == 0);
        fclose(file);
    }
    closedir(threads);
    return found;
}

static void threads_have_names(void **state)
{
    (void)state;
    twi_comm *c = begin();
    assert_true(has_thread("tower-from-1\n"));
    assert_false(has_thread("tower-from-0\n"));
    assert_true(has_thread("tower-beat\n"));
    finish(c);
}

static void memory_that_runs_out_is_an_error(void **state)
{
    (void)state;
    bool failed = true;
    int n = 0;
    for (; failed; n++) {
        tw_error error = {0};
        twi_comm *c = NULL;
        make_pair();
        fail_allocation(n);
        tw_status status = join_pair(&c, &error);
        failed = memory.failed;
        assert_int_equal(status, failed ? TW_RESOURCE_EXHAUSTED : TW_OK);
        if (failed)
            assert_string_equal(error.message, "out of memory while joining the other tasks");
        twi_comm_close(c);
        assert_int_equal(memory.live, 0);
        stop_failing_allocations();
        if (fcntl(near, F_GETFD) != -1) /* it had not come to that */
            close(near);
        close(far);
    }
    assert_int_equal(n, 4); /* itself, the tasks, the lines; then none fails */
}

int run_sockets(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_go_behind_their_headers),
        cmocka_unit_test(words_come_in_pieces_and_after_a_while),
        unthreaded_test(who_was_stopped_goes_on),
        cmocka_unit_test(half_a_word_is_a_sign_of_life),
        cmocka_unit_test(who_sends_waits_for_room),
        cmocka_unit_test(who_waits_for_room_is_told_that_there_will_be_none),
        cmocka_unit_test(beats_do_not_wait_for_room),
        cmocka_unit_test(who_does_not_read_has_ended),
        cmocka_unit_test(who_is_gone_or_spoiled_ends_the_wait),
        cmocka_unit_test(sockets_are_what_a_launcher_says),
        cmocka_unit_test(a_socket_that_was_closed_on_the_way_is_named),
        cmocka_unit_test(a_socket_may_have_the_number_zero),
        cmocka_unit_test(threads_have_names),
        cmocka_unit_test(memory_that_runs_out_is_an_error),
    };
    return cmocka_run_group_tests_name("sockets", tests, NULL, NULL);
}

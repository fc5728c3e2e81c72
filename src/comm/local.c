/* local.c - tasks of one machine: a pair of sockets between every two of them, which whoever starts them has made
 * (`tower launch`). Nothing listens, so nobody else can come in. Each socket has a thread that reads whatever comes, so
 * that sending never waits for a receiver, and a task that ends is known at once. */
#define _GNU_SOURCE
#include "comm/exchange.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { SHORT = 4096 }; /* bytes that go together with their header, so that who reads wakes once */

typedef struct line {
    struct local *all;
    int task, socket; /* -1: to this task itself */
    pthread_t reader;
    bool reads;
    pthread_mutex_t sending;
    atomic_uint sent; /* messages: what was read for them comes before what is written when the answer is here. That
                         order goes through the other process, so the thread sanitizer sees it by this alone */
} line;

typedef struct local {
    twi_exchange x;
    line *lines; /* [tasks] */
} local;

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* Whether all was sent. One that is not patient waits only when it has begun, and none for a task that is done. When
 * all fails a message that has `begun` goes on while there is room, for a while: then that can be told behind it. */
static bool put_bytes(local *l, line *to, const void *data, size_t bytes, bool patient, bool begun)
{
    const int64_t while_ns = 500000000;
    const char *at = data;
    int64_t begin = twi_monotonic_ns(), failed_ns = 0;
    while (bytes > 0) {
        ssize_t n = send(to->socket, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
            continue;
        }
        if (errno != EAGAIN || (!patient && at == (const char *)data))
            return false;
        struct pollfd room = {.fd = to->socket, .events = POLLOUT};
        bool has_room = poll(&room, 1, 100) > 0, goes_on = twi_exchange_goes_on(&l->x, begin, NULL, to->task);
        failed_ns = goes_on || failed_ns ? failed_ns : twi_monotonic_ns();
        bool ends = (begun || at != (const char *)data) && has_room && twi_monotonic_ns() - failed_ns < while_ns;
        if (atomic_load(&l->x.peers[to->task].left) || !(goes_on || ends))
            return false;
    }
    return true;
}

static bool put_message(local *l, line *to, const twi_header *header, const void *data, bool patient)
{
    char both[sizeof *header + SHORT];
    size_t bytes = (size_t)header->bytes;
    if (bytes > SHORT)
        return put_bytes(l, to, header, sizeof *header, patient, false) && put_bytes(l, to, data, bytes, true, true);
    memcpy(both, header, sizeof *header);
    if (bytes)
        memcpy(both + sizeof *header, data, bytes);
    return put_bytes(l, to, both, sizeof *header + bytes, patient, false);
}

static bool local_put(twi_exchange *x, int task, const twi_header *header, const void *data, bool patient)
{
    local *l = (local *)x;
    line *to = &l->lines[task];
    if (patient)
        pthread_mutex_lock(&to->sending);
    else if (pthread_mutex_trylock(&to->sending) != 0)
        return false;
    bool sent = put_message(l, to, header, data, patient);
    atomic_fetch_add_explicit(&to->sent, 1, memory_order_release);
    pthread_mutex_unlock(&to->sending);
    return sent;
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

/* Within a message a look a fifth of a second at least whether all has failed: then it is of no use, and whoever waits
 * for it waits until it is given up. Between two others may still say that they have failed as well, however late. */
static bool get_bytes(line *from, void *data, size_t bytes, bool within)
{
    char *at = data;
    while (bytes > 0) {
        ssize_t n = recv(from->socket, at, bytes, 0);
        bool goes_on = !(within || at != (char *)data) || !atomic_load(&from->all->x.failed);
        if (n < 0 && (errno == EINTR || errno == EAGAIN) && goes_on)
            continue;
        if (n <= 0)
            return false;
        twi_exchange_heard(&from->all->x, from->task);
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

static void *read_all(void *argument)
{
    line *from = argument;
    twi_exchange *x = &from->all->x;
    twi_header header;
    while (get_bytes(from, &header, sizeof header, false)) {
        atomic_load_explicit(&from->sent, memory_order_acquire);
        twi_message *m = twi_exchange_room(x, from->task, &header);
        if (!m)
            return NULL;
        if (!get_bytes(from, m->data, m->bytes, true)) {
            twi_exchange_drop(x, m);
            break;
        }
        twi_exchange_hand_in(x, from->task, &header, m);
    }
    twi_exchange_lost(x, from->task);
    return NULL;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static void local_close(twi_exchange *x)
{
    local *l = (local *)x;
    for (int i = 0; l->lines && i < x->base.tasks; i++) {
        line *to = &l->lines[i];
        if (to->socket >= 0)
            shutdown(to->socket, SHUT_RDWR);
        if (to->reads)
            pthread_join(to->reader, NULL);
        if (to->socket >= 0)
            close(to->socket);
        pthread_mutex_destroy(&to->sending);
    }
    twi_free(l->lines);
    twi_exchange_clear(x);
    twi_free(l);
}

static const twi_carrier_ops sockets = {.put = local_put, .close = local_close};

static bool local_is_here(void)
{
    return getenv("TOWER_TASK") && getenv("TOWER_TASK_SOCKETS");
}

/* "-,5,7": the socket to each task, "-" for this one. Returns how many; 0 if it is no such text. */
static int read_sockets(const char *text, int task, int sockets[TWI_MOST_TASKS])
{
    int count = 0;
    for (const char *at = text; *at; count++) {
        char *end = (char *)at + 1;
        bool own = *at == '-';
        long number = own ? -1 : strtol(at, &end, 10);
        if (end == at || count == TWI_MOST_TASKS || own != (count == task) || (*end && *end != ','))
            return 0;
        sockets[count] = (int)number;
        at = end + (*end == ',');
    }
    return task >= 0 && task < count ? count : 0;
}

/* What stands between the launcher and this process may have closed them, and have opened something else by their
 * numbers. The first that is no socket; -1: all are. */
static int find_closed(const int *sockets, int task, int tasks)
{
    for (int i = 0, type; i < tasks; i++)
        if (i != task && (getsockopt(sockets[i], SOL_SOCKET, SO_TYPE, &type, &(socklen_t){sizeof type}) != 0 ||
                          fcntl(sockets[i], F_SETFD, FD_CLOEXEC) != 0))
            return sockets[i];
    return -1;
}

static tw_status start_reader(local *l, int task, tw_error *error)
{
    char name[16];
    line *from = &l->lines[task];
    setsockopt(from->socket, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_usec = 200000}, sizeof(struct timeval));
    snprintf(name, sizeof name, "tower-from-%d", task);
    tw_status status = twi_thread_start(&from->reader, name, NULL, 0, read_all, from, error);
    from->reads = status == TW_OK;
    return status;
}

static tw_status join_tasks(local *l, int task, int tasks, const int *numbers, double deadline, tw_error *error)
{
    tw_status status = twi_exchange_init(&l->x, &sockets, task, tasks, deadline, error);
    if (status == TW_OK && !(l->lines = twi_alloc_array((size_t)tasks, sizeof *l->lines)))
        status = twi_fail_memory(error, "joining the other tasks");
    for (int i = 0; i < tasks && l->lines; i++) {
        l->lines[i] = (line){.all = l, .task = i, .socket = numbers[i]};
        pthread_mutex_init(&l->lines[i].sending, NULL);
    }
    for (int i = 0; i < tasks && status == TW_OK; i++)
        if (i != task)
            status = start_reader(l, i, error);
    return status == TW_OK ? twi_exchange_start(&l->x, error) : status;
}

/* A script that is a task has these sockets for all its commands, but the first that joins closes what they connect. It
 * has left a mark in those of its own end (start_reader). */
static bool were_used(const int *sockets, int task, int tasks)
{
    struct timeval mark = {0};
    socklen_t bytes = sizeof mark;
    return tasks > 1 && getsockopt(sockets[task == 0], SOL_SOCKET, SO_RCVTIMEO, &mark, &bytes) == 0 && mark.tv_usec > 0;
}

static tw_status local_open(double deadline, twi_comm **comm, tw_error *error)
{
    int numbers[TWI_MOST_TASKS], task = atoi(getenv("TOWER_TASK"));
    int tasks = read_sockets(getenv("TOWER_TASK_SOCKETS"), task, numbers);
    if (tasks == 0)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "TOWER_TASK is '%.20s' and TOWER_TASK_SOCKETS '%.200s': expected what tower launch sets",
                        getenv("TOWER_TASK"), getenv("TOWER_TASK_SOCKETS"));
    int closed = find_closed(numbers, task, tasks);
    if (closed >= 0)
        return twi_fail(error, TW_FAILED_PRECONDITION,
                        "TOWER_TASK_SOCKETS is '%.200s', and descriptor %d is no socket: what stands between tower "
                        "launch and this process has closed it, as sudo does, and Python's subprocess.run() without "
                        "close_fds=False",
                        getenv("TOWER_TASK_SOCKETS"), closed);
    if (were_used(numbers, task, tasks))
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "another command of task %d has joined the other tasks before: tower launch starts the tasks "
                        "of one run, so let it start each command by itself", task);
    local *l = twi_alloc(sizeof *l);
    if (!l)
        return twi_fail_memory(error, "joining the other tasks");
    tw_status status = join_tasks(l, task, tasks, numbers, deadline, error);
    if (status == TW_OK)
        *comm = &l->x.base;
    else
        local_close(&l->x);
    return status;
}

const twi_comm_way twi_comm_local = {"local", local_is_here, local_open};

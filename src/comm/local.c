/* local.c - tasks of one machine: a pair of sockets between every two of them, which whoever starts them has made
 * (`tower launch`). Nothing listens, so nobody else can come in.
 *
 * Each socket has a thread that reads whatever comes, so that sending never waits for a receiver, and a task that ends is
 * known at once. Messages wait in queues, by channel, in memory that is used again. One more thread tells the others once
 * in a while that this process is there, however long its kernels take. */
#define _GNU_SOURCE
#include "comm/comm.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAGIC = 0x544f5752, MOST_CHANNELS = 1 << 20, REASON = 600 };
enum { BEAT = -1, LEAVE = -2, ABORT = -3 }; /* channels of what is not for a receiver */
#define MOST_BYTES (INT64_C(1) << 40)

typedef struct header {
    uint32_t magic;
    int32_t channel;
    uint64_t bytes;
} header;

typedef struct message {
    struct message *next;
    size_t bytes, room;
    char data[];
} message;

typedef struct channel {
    struct channel *next;
    int number;
    message *first, *last; /* that have come */
    message *spare;        /* that have been taken */
} channel;

typedef struct peer {
    struct local *all;
    int task, socket;
    pthread_t reader;
    bool reads;
    pthread_mutex_t sending;
    atomic_llong heard_ns; /* when something last came */
    channel *channels;     /* these and what follows: with the lock */
    bool left;
} peer;

typedef struct local {
    twi_comm base;
    peer *peers; /* [tasks] */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_bool closing, failed;
    char reason[REASON]; /* what happened first; with the lock */
    pthread_t beats;
    bool beating;
} local;

/* ---- failing ----------------------------------------------------------------------------------------------------- */

/* The first reason is kept, and the other tasks are told. */
static void fail_all(local *l, const char *why);

static tw_status say_reason(local *l, tw_error *error)
{
    pthread_mutex_lock(&l->lock);
    tw_status status = twi_fail(error, TW_ABORTED, "%s", l->reason);
    pthread_mutex_unlock(&l->lock);
    return status;
}

static double silence(const peer *p)
{
    return (double)(twi_monotonic_ns() - atomic_load(&p->heard_ns)) / 1e9;
}

/* Whether a wait is to end: some task is silent for too long, or all are there and nothing comes. */
static bool is_over(local *l, double waited, const char *what, int from)
{
    char why[REASON];
    const peer *late = NULL;
    for (int i = 0; i < l->base.tasks; i++)
        if (i != l->base.task && !l->peers[i].left && silence(&l->peers[i]) > l->base.deadline &&
            (!late || silence(&l->peers[i]) > silence(late)))
            late = &l->peers[i];
    if (late)
        snprintf(why, sizeof why,
                 "task %d has not been heard of for %.0f s; task %d waited for %.200s of task %d (the deadline is %g s)",
                 late->task, silence(late), l->base.task, what, from, l->base.deadline);
    else if (waited > TWI_PATIENCE * l->base.deadline)
        snprintf(why, sizeof why, "task %d has waited %.0f s for %.200s of task %d, which is there but does not send it",
                 l->base.task, waited, what, from);
    else
        return false;
    fail_all(l, why);
    return true;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* Whether all was sent. With `patient` it waits while the other side is heard of, else not at all before the first byte. */
static bool put(local *l, peer *p, const void *data, size_t bytes, bool patient)
{
    const char *at = data;
    int64_t begin = twi_monotonic_ns();
    while (bytes > 0) {
        ssize_t n = send(p->socket, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK) || (!patient && at == (const char *)data))
            return false;
        struct pollfd room = {.fd = p->socket, .events = POLLOUT};
        poll(&room, 1, 100);
        if (atomic_load(&l->failed) ||
            is_over(l, (double)(twi_monotonic_ns() - begin) / 1e9, "room for a message", p->task))
            return false;
    }
    return true;
}

static bool put_message(local *l, peer *p, int number, const void *data, size_t bytes, bool patient)
{
    header h = {MAGIC, number, bytes};
    return put(l, p, &h, sizeof h, patient) && put(l, p, data, bytes, true);
}

/* Says something that is not for a receiver, unless a message is under way. */
static void mention(local *l, peer *p, int number, const char *text)
{
    if (p->socket < 0 || pthread_mutex_trylock(&p->sending) != 0)
        return;
    put_message(l, p, number, text, strlen(text), false);
    pthread_mutex_unlock(&p->sending);
}

static void mention_to_all(local *l, int number, const char *text)
{
    for (int i = 0; i < l->base.tasks; i++)
        if (i != l->base.task)
            mention(l, &l->peers[i], number, text);
}

static void fail_all(local *l, const char *why)
{
    pthread_mutex_lock(&l->lock);
    bool first = !atomic_load(&l->failed);
    if (first) {
        snprintf(l->reason, sizeof l->reason, "%s", why);
        atomic_store(&l->failed, true);
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    if (first)
        mention_to_all(l, ABORT, why);
}

static tw_status local_send(twi_comm *c, int to, int number, const void *data, size_t bytes, tw_error *error)
{
    local *l = (local *)c;
    peer *p = &l->peers[to];
    char why[REASON];
    if (atomic_load(&l->failed))
        return say_reason(l, error);
    pthread_mutex_lock(&p->sending);
    bool sent = put_message(l, p, number, data, bytes, true);
    pthread_mutex_unlock(&p->sending);
    if (sent)
        return TW_OK;
    snprintf(why, sizeof why, "task %d has ended: task %d could not send it a message", to, c->task);
    fail_all(l, why);
    return say_reason(l, error);
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

/* With the lock. NULL: memory has run out. */
static channel *find_channel(peer *p, int number)
{
    channel *c = p->channels;
    while (c && c->number != number)
        c = c->next;
    if (!c && (c = twi_alloc(sizeof *c))) {
        *c = (channel){.next = p->channels, .number = number};
        p->channels = c;
    }
    return c;
}

static bool get(peer *p, void *data, size_t bytes)
{
    char *at = data;
    while (bytes > 0) {
        ssize_t n = recv(p->socket, at, bytes, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        atomic_store(&p->heard_ns, twi_monotonic_ns());
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* Room for a message, of those that were taken if one is large enough. */
static message *find_room(local *l, peer *p, const header *h)
{
    pthread_mutex_lock(&l->lock);
    channel *c = find_channel(p, h->channel);
    message **at = c ? &c->spare : NULL, *found = NULL;
    while (at && *at && (*at)->room < h->bytes)
        at = &(*at)->next;
    if (at && *at) {
        found = *at;
        *at = found->next;
    }
    pthread_mutex_unlock(&l->lock);
    if (c && !found && (found = twi_alloc(sizeof *found + (size_t)h->bytes)))
        found->room = (size_t)h->bytes;
    return found;
}

static bool take_in(local *l, peer *p, const header *h)
{
    message *m = find_room(l, p, h);
    if (!m)
        return fail_all(l, "memory ran out for a message of another task"), false;
    m->bytes = (size_t)h->bytes;
    m->next = NULL;
    if (!get(p, m->data, m->bytes))
        return twi_free(m), false;
    pthread_mutex_lock(&l->lock);
    channel *c = find_channel(p, h->channel); /* it is there */
    if (c->first)
        c->last->next = m;
    else
        c->first = m;
    c->last = m;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    return true;
}

/* What is not for a receiver. */
static bool heed(local *l, peer *p, const header *h)
{
    char text[REASON] = "";
    if (h->bytes >= sizeof text || !get(p, text, (size_t)h->bytes))
        return false;
    if (h->channel == ABORT)
        fail_all(l, text);
    pthread_mutex_lock(&l->lock);
    p->left = p->left || h->channel == LEAVE;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    return true;
}

static void *read_all(void *argument)
{
    peer *p = argument;
    local *l = p->all;
    char why[REASON];
    header h;
    bool good = true;
    while (good && get(p, &h, sizeof h)) {
        if (h.magic != MAGIC || h.channel < ABORT || h.channel >= MOST_CHANNELS || h.bytes > MOST_BYTES) {
            snprintf(why, sizeof why, "task %d has sent what is no message", p->task);
            fail_all(l, why);
            return NULL;
        }
        good = h.channel < 0 ? heed(l, p, &h) : take_in(l, p, &h);
    }
    pthread_mutex_lock(&l->lock);
    bool expected = p->left || atomic_load(&l->closing);
    pthread_mutex_unlock(&l->lock);
    if (!expected) {
        snprintf(why, sizeof why, "task %d has ended before its work was done", p->task);
        fail_all(l, why);
    }
    return NULL;
}

/* With the lock: waits for a tenth of a second at most. */
static void wait_a_while(local *l)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 100000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&l->changed, &l->lock, &until);
}

/* The next message, taken out; NULL: all has failed. */
static message *take_out(local *l, peer *p, int number, const char *what)
{
    int64_t begin = twi_monotonic_ns();
    char why[REASON];
    message *m = NULL;
    pthread_mutex_lock(&l->lock);
    channel *c = find_channel(p, number);
    while (c && !c->first && !atomic_load(&l->failed)) {
        bool left = p->left;
        if (!left)
            wait_a_while(l);
        pthread_mutex_unlock(&l->lock);
        if (left) {
            snprintf(why, sizeof why, "task %d has left; task %d waited for %.200s of it", p->task, l->base.task, what);
            fail_all(l, why);
        } else {
            is_over(l, (double)(twi_monotonic_ns() - begin) / 1e9, what, p->task);
        }
        pthread_mutex_lock(&l->lock);
    }
    if (c && !atomic_load(&l->failed)) {
        m = c->first;
        c->first = m->next;
    }
    pthread_mutex_unlock(&l->lock);
    if (!c)
        fail_all(l, "memory ran out for a message of another task");
    return m;
}

static tw_status local_receive(twi_comm *c, int from, int number, void *data, size_t bytes, const char *what,
                               tw_error *error)
{
    local *l = (local *)c;
    peer *p = &l->peers[from];
    char why[REASON];
    message *m = take_out(l, p, number, what);
    if (!m)
        return say_reason(l, error);
    bool fits = m->bytes == bytes;
    if (!fits)
        snprintf(why, sizeof why, "task %d has sent %zu bytes where task %d expected %zu: %.200s", from, m->bytes, c->task,
                 bytes, what);
    else if (bytes)
        memcpy(data, m->data, bytes);
    pthread_mutex_lock(&l->lock);
    channel *own = find_channel(p, number); /* it is there */
    m->next = own->spare;
    own->spare = m;
    pthread_mutex_unlock(&l->lock);
    if (fits)
        return TW_OK;
    fail_all(l, why);
    return say_reason(l, error);
}

static void local_abort(twi_comm *c, const char *why)
{
    char named[REASON];
    snprintf(named, sizeof named, "task %d failed: %s", c->task, why);
    fail_all((local *)c, named);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static void *beat(void *argument)
{
    local *l = argument;
    double pause = l->base.deadline / 10 < 1 ? l->base.deadline / 10 : 1;
    for (int64_t last = 0; !atomic_load(&l->closing);) {
        struct timespec moment = {0, 20000000};
        nanosleep(&moment, NULL);
        if ((double)(twi_monotonic_ns() - last) / 1e9 < pause)
            continue;
        last = twi_monotonic_ns();
        mention_to_all(l, BEAT, "");
    }
    return NULL;
}

static void free_messages(message *m)
{
    for (message *next; m; m = next) {
        next = m->next;
        twi_free(m);
    }
}

static void free_channels(peer *p)
{
    for (channel *c = p->channels, *next; c; c = next) {
        next = c->next;
        free_messages(c->first);
        free_messages(c->spare);
        twi_free(c);
    }
}

static void local_close(twi_comm *c)
{
    local *l = (local *)c;
    if (!atomic_load(&l->failed))
        mention_to_all(l, LEAVE, "");
    atomic_store(&l->closing, true);
    if (l->beating)
        pthread_join(l->beats, NULL);
    for (int i = 0; l->peers && i < c->tasks; i++) {
        peer *p = &l->peers[i];
        if (p->socket >= 0)
            shutdown(p->socket, SHUT_RDWR);
        if (p->reads)
            pthread_join(p->reader, NULL);
        if (p->socket >= 0)
            close(p->socket);
        free_channels(p);
        pthread_mutex_destroy(&p->sending);
    }
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    twi_free(l->peers);
    twi_free(l);
}

static const twi_comm_ops local_ops = {local_send, local_receive, local_abort, local_close};

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
        if (end == at || count == TWI_MOST_TASKS || own != (count == task) || (*end && *end != ',') ||
            (!own && fcntl((int)number, F_SETFD, FD_CLOEXEC) != 0))
            return 0;
        sockets[count] = (int)number;
        at = end + (*end == ',');
    }
    return task < count ? count : 0;
}

static tw_status make(int task, int tasks, const int *sockets, double deadline, local **result, tw_error *error)
{
    local *l = twi_alloc(sizeof *l);
    peer *peers = twi_alloc_array((size_t)tasks, sizeof *peers);
    pthread_condattr_t monotonic;
    *result = NULL;
    if (!l || !peers) {
        twi_free(l);
        twi_free(peers);
        return twi_fail_memory(error, "joining the other tasks");
    }
    l->base = (twi_comm){&local_ops, task, tasks, deadline};
    l->peers = peers;
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&l->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (int i = 0; i < tasks; i++) {
        peers[i] = (peer){.all = l, .task = i, .socket = sockets[i]};
        atomic_store(&peers[i].heard_ns, twi_monotonic_ns());
        pthread_mutex_init(&peers[i].sending, NULL);
    }
    *result = l;
    return TW_OK;
}

static tw_status local_open(double deadline, twi_comm **comm, tw_error *error)
{
    int sockets[TWI_MOST_TASKS], task = atoi(getenv("TOWER_TASK"));
    int tasks = read_sockets(getenv("TOWER_TASK_SOCKETS"), task, sockets);
    local *l;
    if (tasks == 0)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "TOWER_TASK is '%.20s' and TOWER_TASK_SOCKETS '%.200s': expected what tower launch sets",
                        getenv("TOWER_TASK"), getenv("TOWER_TASK_SOCKETS"));
    tw_status status = make(task, tasks, sockets, deadline, &l, error);
    for (int i = 0; i < tasks && status == TW_OK; i++) {
        peer *p = &l->peers[i];
        char name[16];
        snprintf(name, sizeof name, "tower-from-%d", i);
        if (i != task)
            status = twi_thread_start(&p->reader, name, NULL, 0, read_all, p, error);
        p->reads = i != task && status == TW_OK;
    }
    if (status == TW_OK)
        status = twi_thread_start(&l->beats, "tower-beat", NULL, 0, beat, l, error);
    if (l)
        l->beating = status == TW_OK;
    if (status == TW_OK)
        *comm = &l->base;
    else if (l)
        local_close(&l->base);
    return status;
}

const twi_comm_way twi_comm_local = {"local", local_is_here, local_open};

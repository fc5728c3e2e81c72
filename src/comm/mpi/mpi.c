/* mpi.c - tasks that mpirun or srun has started, on any number of machines: MPI carries what they send.
 *
 * One lock guards all calls of MPI, so it needs no more than MPI_THREAD_SERIALIZED; nobody waits inside of it. Who
 * waits for a message moves all of them on (pump), and the beating thread does when nobody waits. From each task one
 * receive is always open: for a message whose header is in its tag, where MPI's tags are large enough for that; for a
 * header, with the bytes behind it if they are few; or for the next piece of those that are many.
 *
 * MPI does not say that a process has died: here those of the same machine are watched by the kernel, and the others'
 * silence tells. After a failure MPI is not called any more, since even MPI_Finalize would wait for the dead; whoever
 * started the processes sees that and ends what is left. */
#define _GNU_SOURCE
#include "comm/exchange.h"
#include "comm/mpi/calls.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FEW = 4096 };         /* bytes that are copied, so that their sender need not wait */
enum { PIECE = 1 << 30 };    /* the most bytes of a message of MPI, which counts in int */
enum { FIRST_PIECE = 65536 }; /* bytes of the first one to a task, and the least */
enum { COPIED = 1 << 19 };   /* what is no longer is copied where it is crowded, so that its sender need not wait */
enum { MOST_SLOTS = 4096, MOST_COPIED = 8 << 20 }; /* such messages under way, and their bytes; who wants more waits */
enum { HEADERS, PIECES, MESSAGES }; /* tags; from the last on channels and numbers of messages without a header */
enum { LOOK_NS = 20000000 }; /* between two looks at the processes of this machine */

/* A copy of what is under way. */
typedef struct slot {
    struct slot *next;
    MPI_Request request;
    size_t room;
    char bytes[];
} slot;

typedef struct source {
    char bytes[sizeof(twi_header) + FEW]; /* of a message, or a header and what follows it */
    twi_header header;
    twi_message *message; /* whose pieces are coming; NULL: a header is */
    size_t got;
} source;

typedef struct carrier {
    twi_exchange x;
    MPI_Comm comm;
    int tagged;             /* channels below that fit in a tag */
    pthread_mutex_t lock;   /* of all that MPI knows */
    pthread_mutex_t *large; /* [tasks] who sends in pieces to a task */
    size_t *piece;          /* [tasks] bytes of one of them; with `large` */
    MPI_Request *requests;  /* [tasks] */
    MPI_Status *statuses;   /* [tasks] */
    int *done;              /* [tasks] */
    int *unheard, num_unheard; /* [tasks] of whom the next message is not listened for yet */
    source *sources;        /* [tasks] */
    slot *under_way;
    slot *spare, *large_spare; /* of headers and few bytes; of more */
    int num_under_way;
    size_t bytes_under_way;
    struct pollfd *processes; /* [tasks] of this machine; fd -1: of another, or known to have ended */
    int64_t looked_ns;
} carrier;

/* Of this process: MPI begins once and ends once. */
static struct {
    bool begun;
    atomic_bool broken; /* a failure was seen: it cannot be ended */
    twi_mpi_calls calls;
} mpi;

/* ---- opening the library ----------------------------------------------------------------------------------------- */

static bool find(void *library, const char *name, void *to)
{
    void *found = dlsym(library, name);
    memcpy(to, &found, sizeof found);
    return found != NULL;
}

/* Global, because Open MPI's own plug-ins take it for granted that its symbols are. */
static tw_status open_library(tw_error *error)
{
    const char *own = getenv("TOWER_MPI_LIBRARY"), *name = own && own[0] ? own : TWI_MPI_LIBRARY;
    void *library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    bool good = library != NULL;
    if (!library)
        return twi_fail(error, TW_FAILED_PRECONDITION,
                        "this process was started by " TWI_MPI_NAME "'s mpirun, whose library cannot be opened: %s; "
                        "LD_LIBRARY_PATH says where it is, TOWER_MPI_LIBRARY if it has another name", dlerror());
#define X(call) good = good && find(library, "MPI_" #call, &mpi.calls.call);
    TWI_MPI_CALLS(X)
#undef X
#ifdef OPEN_MPI
#define X(handle, variable) good = good && find(library, #variable, &mpi.calls.handle);
    TWI_MPI_HANDLES(X)
#undef X
#else
    good = good && !dlsym(library, "ompi_mpi_comm_world"); /* the same calls, of other handles */
    mpi.calls.world = MPI_COMM_WORLD;
    mpi.calls.byte = MPI_BYTE;
    mpi.calls.errors_return = MPI_ERRORS_RETURN;
    mpi.calls.no_request = MPI_REQUEST_NULL;
#endif
    return good ? TW_OK
                : twi_fail(error, TW_FAILED_PRECONDITION,
                           "TOWER_MPI_LIBRARY: expected a library with the interface of " TWI_MPI_NAME
                           ", whose mpirun has started this process (" TWI_MPI_LIBRARY "), found '%s'", name);
}

static tw_status check(int code, const char *call, tw_error *error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (code == MPI_SUCCESS)
        return TW_OK;
    mpi.calls.Error_string(code, text, &length);
    return twi_fail(error, TW_INTERNAL, "MPI_%s of " TWI_MPI_NAME ": %s", call, text);
}

static void end_mpi(void)
{
    if (!atomic_load(&mpi.broken))
        mpi.calls.Finalize();
}

static tw_status begin_mpi(tw_error *error)
{
    int provided = MPI_THREAD_SINGLE;
    if (mpi.begun)
        return TW_OK;
    tw_status status = open_library(error);
    if (status == TW_OK)
        status = check(mpi.calls.Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided), "Init_thread", error);
    if (status != TW_OK)
        return status;
    mpi.begun = true;
    atexit(end_mpi);
    if (provided < MPI_THREAD_SERIALIZED)
        return twi_fail(error, TW_UNIMPLEMENTED, "this " TWI_MPI_NAME " does not take calls from several threads");
    return check(mpi.calls.Comm_set_errhandler(mpi.calls.world, mpi.calls.errors_return), "Comm_set_errhandler", error);
}

/* ---- receiving; with the lock ------------------------------------------------------------------------------------ */

static void listen_for(carrier *c, int from, void *to, size_t bytes, int tag)
{
    if (mpi.calls.Irecv(to, (int)(bytes < PIECE ? bytes : PIECE), mpi.calls.byte, from, tag, c->comm,
                        &c->requests[from]) != MPI_SUCCESS)
        twi_exchange_lost(&c->x, from);
}

/* Pieces follow their header, and are taken before anything else is listened for. */
static void listen_for_any(carrier *c, int from)
{
    listen_for(c, from, c->sources[from].bytes, sizeof c->sources[from].bytes, MPI_ANY_TAG);
}

static void listen_for_piece(carrier *c, int from)
{
    source *s = &c->sources[from];
    listen_for(c, from, s->message->data + s->got, s->message->bytes - s->got, PIECES);
}

static void take_message(carrier *c, int from, const twi_header *header, const char *bytes)
{
    twi_exchange_take(&c->x, from, header, bytes);
    c->unheard[c->num_unheard++] = from; /* whoever waited for this one need not wait for that */
}

static void take_header(carrier *c, int from, size_t bytes)
{
    source *s = &c->sources[from];
    if (bytes < sizeof s->header)
        return twi_exchange_spoiled(&c->x, from);
    memcpy(&s->header, s->bytes, sizeof s->header);
    size_t behind = bytes - sizeof s->header;
    bool few = s->header.bytes <= FEW;
    if (behind != (few ? s->header.bytes : 0))
        return twi_exchange_spoiled(&c->x, from);
    if (few) {
        take_message(c, from, &s->header, s->bytes + sizeof s->header);
    } else if ((s->message = twi_exchange_room(&c->x, from, &s->header))) {
        s->got = 0;
        listen_for_piece(c, from);
    }
}

static void take_any(carrier *c, int from, int tag, size_t bytes)
{
    int place = tag - MESSAGES;
    if (place >= 0)
        take_message(c, from, &(twi_header){TWI_MAGIC, place / TWI_NUMBERS, bytes, (uint64_t)(place % TWI_NUMBERS)},
                     c->sources[from].bytes);
    else if (tag == HEADERS)
        take_header(c, from, bytes);
    else
        twi_exchange_spoiled(&c->x, from);
}

static void take_piece(carrier *c, int from, size_t bytes)
{
    source *s = &c->sources[from];
    if (bytes == 0)
        return twi_exchange_spoiled(&c->x, from);
    s->got += bytes;
    twi_exchange_heard(&c->x, from);
    if (s->got < s->message->bytes)
        return listen_for_piece(c, from);
    twi_message *m = s->message;
    s->message = NULL;
    twi_exchange_hand_in(&c->x, from, &s->header, m);
    listen_for_any(c, from);
}

/* Open MPI's Testsome looks and then moves on what comes, its Test looks once more after that: what is waited for is
 * seen as soon as it is there. Returns how many of the receives have ended. */
static int test_receives(carrier *c, int awaited, int *code)
{
    int count = 0;
    *code = mpi.calls.Testsome(c->x.base.tasks, c->requests, &count, c->done, c->statuses);
    if (count != 0 || awaited < 0 || c->requests[awaited] == mpi.calls.no_request)
        return count == MPI_UNDEFINED ? 0 : count;
    *code = mpi.calls.Test(&c->requests[awaited], &count, &c->statuses[0]);
    c->done[0] = awaited;
    c->statuses[0].MPI_ERROR = *code;
    return *code == MPI_SUCCESS ? count : 1;
}

/* Whether anything had come, of that task or others. */
static bool take_in(carrier *c, int awaited)
{
    int code;
    while (c->num_unheard)
        listen_for_any(c, c->unheard[--c->num_unheard]);
    int count = test_receives(c, awaited, &code);
    for (int i = 0; i < count; i++) {
        int from = c->done[i], bytes = 0;
        if (code != MPI_SUCCESS && c->statuses[i].MPI_ERROR != MPI_SUCCESS) {
            twi_exchange_lost(&c->x, from);
            continue;
        }
        mpi.calls.Get_count(&c->statuses[i], mpi.calls.byte, &bytes);
        if (c->sources[from].message)
            take_piece(c, from, (size_t)bytes);
        else
            take_any(c, from, c->statuses[i].MPI_TAG, (size_t)bytes);
    }
    return count > 0;
}

static bool has_pieces_to_come(const carrier *c)
{
    for (int i = 0; i < c->x.base.tasks; i++)
        if (c->sources[i].message)
            return true;
    return false;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

static slot **spares_for(carrier *c, size_t bytes)
{
    return bytes <= sizeof(twi_header) + FEW ? &c->spare : &c->large_spare;
}

/* One that is free, or a new one; NULL: memory has run out. With the lock, as all about slots. */
static slot *take_slot(carrier *c, size_t bytes)
{
    slot **at = spares_for(c, bytes), *s;
    size_t room = bytes <= sizeof(twi_header) + FEW ? sizeof(twi_header) + FEW : bytes;
    while (*at && (*at)->room < bytes)
        at = &(*at)->next;
    if ((s = *at))
        *at = s->next;
    else if ((s = twi_resize(NULL, sizeof *s + room)))
        s->room = room;
    return s;
}

static void give_slot_back(carrier *c, slot *s)
{
    slot **spares = spares_for(c, s->room);
    s->next = *spares;
    *spares = s;
}

static bool is_gone(slot *s)
{
    int done = 0;
    return mpi.calls.Test(&s->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done;
}

static void move_slots_on(carrier *c)
{
    for (slot **at = &c->under_way; *at;) {
        slot *s = *at;
        if (!is_gone(s)) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        c->num_under_way--;
        c->bytes_under_way -= s->room;
        give_slot_back(c, s);
    }
}

/* Sends what the slot has. */
static bool post_slot(carrier *c, int to, slot *s, size_t bytes, int tag)
{
    if (mpi.calls.Isend(s->bytes, (int)bytes, mpi.calls.byte, to, tag, c->comm, &s->request) != MPI_SUCCESS) {
        give_slot_back(c, s);
        return false;
    }
    if (is_gone(s)) {
        give_slot_back(c, s);
        return true;
    }
    s->next = c->under_way;
    c->under_way = s;
    c->num_under_way++;
    c->bytes_under_way += s->room;
    return true;
}

/* HEADERS: it has none of its own. */
static int tag_of(const carrier *c, const twi_header *header)
{
    bool fits = header->channel >= 0 && header->channel < c->tagged && header->bytes <= FEW;
    return fits ? MESSAGES + header->channel * TWI_NUMBERS + (int)header->number : HEADERS;
}

/* What comes before the bytes of a message: its header, if its tag is none, and the bytes too if they are few. */
static bool post_header(carrier *c, int to, const twi_header *header, const void *data)
{
    int tag = tag_of(c, header);
    size_t before = tag == HEADERS ? sizeof *header : 0, behind = header->bytes <= FEW ? (size_t)header->bytes : 0;
    slot *s = take_slot(c, before + behind);
    if (!s)
        return false;
    memcpy(s->bytes, header, before);
    if (behind)
        memcpy(s->bytes + before, data, behind);
    return post_slot(c, to, s, before + behind, tag);
}

static bool post_copy(carrier *c, int to, const twi_header *header, const void *data)
{
    slot *s = take_slot(c, (size_t)header->bytes);
    if (!s)
        return false;
    memcpy(s->bytes, data, (size_t)header->bytes);
    if (post_header(c, to, header, data))
        return post_slot(c, to, s, (size_t)header->bytes, PIECES);
    give_slot_back(c, s);
    return false;
}

/* Until MPI has got rid of the piece. After a failure its memory is MPI's until that is not called any more. */
static bool wait_for_piece(carrier *c, int to, MPI_Request *request)
{
    int64_t begin = twi_monotonic_ns();
    int done = 0, code = MPI_SUCCESS;
    for (int times = 0; !atomic_load(&c->x.over); times++) {
        pthread_mutex_lock(&c->lock);
        if (!atomic_load(&c->x.over))
            code = mpi.calls.Test(request, &done, MPI_STATUS_IGNORE);
        pthread_mutex_unlock(&c->lock);
        if (done || code != MPI_SUCCESS)
            return code == MPI_SUCCESS;
        twi_exchange_wait(&c->x, to, NULL, times, begin);
    }
    return false;
}

/* A task is heard of when a piece has come, and nothing overtakes one: so it takes a small part of the deadline. */
static void fit_piece(carrier *c, int to, size_t bytes, int64_t took_ns)
{
    enum { SHORT = 64, LONG = 16 };
    double part = (double)took_ns / 1e9 / c->x.base.deadline;
    size_t *piece = &c->piece[to];
    if (part * SHORT < 1 && bytes == *piece && *piece < PIECE)
        *piece *= 2;
    else if (part * LONG > 1 && *piece > FIRST_PIECE)
        *piece /= 2;
}

static bool put_pieces(carrier *c, int to, const twi_header *header, const void *data)
{
    bool sent = true;
    for (size_t at = 0, bytes; at < header->bytes && sent; at += bytes) {
        size_t left = (size_t)header->bytes - at;
        int64_t begin = twi_monotonic_ns();
        MPI_Request request;
        bytes = left < c->piece[to] ? left : c->piece[to];
        pthread_mutex_lock(&c->lock);
        sent = !atomic_load(&c->x.over) && (at > 0 || post_header(c, to, header, data)) &&
               mpi.calls.Isend((const char *)data + at, (int)bytes, mpi.calls.byte, to, PIECES, c->comm, &request) == MPI_SUCCESS;
        pthread_mutex_unlock(&c->lock);
        sent = sent && wait_for_piece(c, to, &request);
        fit_piece(c, to, bytes, twi_monotonic_ns() - begin);
    }
    return sent;
}

/* In one piece, if it goes as one. */
static bool put_copy(carrier *c, int to, const twi_header *header, const void *data)
{
    pthread_mutex_lock(&c->lock);
    bool sent = !atomic_load(&c->x.over) && post_copy(c, to, header, data);
    pthread_mutex_unlock(&c->lock);
    return sent;
}

/* With `large` of the task. */
static bool is_copied(carrier *c, int to, size_t bytes)
{
    if (!twi_exchange_is_crowded(&c->x))
        return false;
    pthread_mutex_lock(&c->lock);
    bool room = c->num_under_way < MOST_SLOTS && c->bytes_under_way + bytes <= MOST_COPIED;
    pthread_mutex_unlock(&c->lock);
    return room && bytes <= COPIED && bytes <= c->piece[to];
}

static bool put_large(carrier *c, int to, const twi_header *header, const void *data)
{
    pthread_mutex_lock(&c->large[to]);
    bool copied = is_copied(c, to, (size_t)header->bytes);
    bool sent = (copied ? put_copy : put_pieces)(c, to, header, data);
    pthread_mutex_unlock(&c->large[to]);
    return sent;
}

static bool put(twi_exchange *x, int to, const twi_header *header, const void *data, bool patient)
{
    carrier *c = (carrier *)x;
    if (header->bytes > FEW)
        return put_large(c, to, header, data);
    int64_t begin = 0;
    for (int times = 0;; times++) {
        pthread_mutex_lock(&c->lock);
        bool room = c->num_under_way < MOST_SLOTS || !patient;
        bool sent = room && !atomic_load(&x->over) && post_header(c, to, header, data);
        pthread_mutex_unlock(&c->lock);
        if (room || atomic_load(&x->failed))
            return sent;
        begin = begin ? begin : twi_monotonic_ns();
        twi_exchange_wait(x, to, NULL, times, begin);
    }
}

/* ---- the processes of this machine ------------------------------------------------------------------------------- */

/* What tells processes apart that this one can watch. */
typedef struct place {
    char boot[40];  /* of the machine */
    uint64_t space; /* in which the number counts */
    int64_t process;
} place;

static void find_place(place *p)
{
    struct stat own;
    memset(p, 0, sizeof *p);
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file && !fgets(p->boot, sizeof p->boot, file))
        p->boot[0] = 0;
    if (file)
        fclose(file);
    p->space = stat("/proc/self/ns/pid", &own) == 0 ? own.st_ino : 0;
    p->process = getpid();
}

static bool can_watch(const place *own, const place *other)
{
    return own->boot[0] && own->space && strcmp(own->boot, other->boot) == 0 && own->space == other->space;
}

static tw_status watch_processes(carrier *c, tw_error *error)
{
    int tasks = c->x.base.tasks;
    place own, *all = twi_alloc_array((size_t)tasks, sizeof *all);
    if (!all)
        return twi_fail_memory(error, "joining the other tasks");
    find_place(&own);
    tw_status status =
        check(mpi.calls.Allgather(&own, (int)sizeof own, mpi.calls.byte, all, (int)sizeof own, mpi.calls.byte, c->comm),
              "Allgather", error);
    for (int i = 0; i < tasks; i++) {
        bool watched = status == TW_OK && i != c->x.base.task && can_watch(&own, &all[i]);
        c->processes[i] = (struct pollfd){-1, POLLIN, 0};
        if (watched)
            c->processes[i].fd = (int)syscall(SYS_pidfd_open, (pid_t)all[i].process, 0);
    }
    twi_free(all);
    return status;
}

/* With the lock. What an ended process has sent has come, and is taken in first: it may have said that it is done. When
 * all is over nothing is taken in, but somebody may wait for others to have ended. */
static void look_at_processes(carrier *c)
{
    if (twi_coarse_ns() - c->looked_ns < LOOK_NS)
        return;
    c->looked_ns = twi_coarse_ns();
    if (poll(c->processes, (nfds_t)c->x.base.tasks, 0) <= 0)
        return;
    while (!atomic_load(&c->x.over) && take_in(c, -1))
        ;
    for (int i = 0; i < c->x.base.tasks; i++)
        if (c->processes[i].fd >= 0 && c->processes[i].revents) {
            close(c->processes[i].fd);
            c->processes[i].fd = -1;
            twi_exchange_lost(&c->x, i);
        }
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static twi_progress pump(twi_exchange *x, int task)
{
    carrier *c = (carrier *)x;
    if (pthread_mutex_trylock(&c->lock) != 0)
        return TWI_NOTHING; /* somebody else is at it */
    twi_progress progress = TWI_NOTHING;
    if (!atomic_load(&x->over)) {
        bool came = take_in(c, task);
        if (!came || c->under_way) { /* else somebody waits for just that */
            move_slots_on(c);
            look_at_processes(c);
        }
        progress = came ? TWI_CAME : c->under_way || has_pieces_to_come(c) ? TWI_COMING : TWI_NOTHING;
    } else {
        look_at_processes(c);
    }
    pthread_mutex_unlock(&c->lock);
    return progress;
}

/* All have left: nothing is under way but the receives that are always open. */
static void end_receives(carrier *c)
{
    for (int i = 0; i < c->x.base.tasks; i++)
        if (c->requests[i] != mpi.calls.no_request) {
            mpi.calls.Cancel(&c->requests[i]);
            mpi.calls.Wait(&c->requests[i], MPI_STATUS_IGNORE);
        }
    for (slot *s = c->under_way; s; s = s->next)
        mpi.calls.Wait(&s->request, MPI_STATUS_IGNORE);
    mpi.calls.Comm_free(&c->comm);
}

static void free_slots(slot *s)
{
    for (slot *next; s; s = next) {
        next = s->next;
        twi_free(s);
    }
}

/* After a failure what MPI may still look at is left to it. */
static void close_carrier(twi_exchange *x)
{
    carrier *c = (carrier *)x;
    bool good = !atomic_load(&x->failed) && x->beating;
    if (good)
        end_receives(c);
    else
        atomic_store(&mpi.broken, true);
    for (int i = 0; c->processes && i < x->base.tasks; i++)
        if (c->processes[i].fd >= 0)
            close(c->processes[i].fd);
    twi_free(c->processes);
    if (!good)
        return;
    for (int i = 0; i < x->base.tasks; i++)
        pthread_mutex_destroy(&c->large[i]);
    pthread_mutex_destroy(&c->lock);
    free_slots(c->under_way);
    free_slots(c->spare);
    free_slots(c->large_spare);
    twi_free(c->large);
    twi_free(c->piece);
    twi_free(c->requests);
    twi_free(c->statuses);
    twi_free(c->done);
    twi_free(c->unheard);
    twi_free(c->sources);
    twi_exchange_clear(x);
    twi_free(c);
}

static const twi_carrier_ops carrier_ops = {put, pump, close_carrier};

static bool make_room(carrier *c, size_t tasks)
{
    c->large = twi_alloc_array(tasks, sizeof *c->large);
    c->piece = twi_alloc_array(tasks, sizeof *c->piece);
    c->requests = twi_alloc_array(tasks, sizeof *c->requests);
    c->statuses = twi_alloc_array(tasks, sizeof *c->statuses);
    c->done = twi_alloc_array(tasks, sizeof *c->done);
    c->unheard = twi_alloc_array(tasks, sizeof *c->unheard);
    c->sources = twi_alloc_array(tasks, sizeof *c->sources);
    c->processes = twi_alloc_array(tasks, sizeof *c->processes);
    for (size_t i = 0; i < tasks && c->piece; i++)
        c->piece[i] = FIRST_PIECE;
    return c->large && c->piece && c->requests && c->statuses && c->done && c->unheard && c->sources && c->processes;
}

/* The largest tag of this MPI tells. */
static tw_status count_tagged(carrier *c, tw_error *error)
{
    int *largest = NULL, there = 0;
    tw_status status = check(mpi.calls.Comm_get_attr(c->comm, MPI_TAG_UB, &largest, &there), "Comm_get_attr", error);
    if (status == TW_OK && there)
        c->tagged = (*largest - MESSAGES) / TWI_NUMBERS;
    return status;
}

static tw_status join_tasks(carrier *c, double deadline, tw_error *error)
{
    int task = 0, tasks = 1;
    tw_status status = check(mpi.calls.Comm_dup(mpi.calls.world, &c->comm), "Comm_dup", error);
    if (status == TW_OK)
        status = check(mpi.calls.Comm_rank(c->comm, &task), "Comm_rank", error);
    if (status == TW_OK)
        status = check(mpi.calls.Comm_size(c->comm, &tasks), "Comm_size", error);
    if (status == TW_OK && tasks > TWI_MOST_TASKS)
        status = twi_fail(error, TW_INVALID_ARGUMENT, "%d processes were started; expected at most %d", tasks,
                          TWI_MOST_TASKS);
    if (status == TW_OK)
        status = twi_exchange_init(&c->x, &carrier_ops, task, tasks, deadline, error);
    if (status == TW_OK && !make_room(c, (size_t)tasks))
        status = twi_fail_memory(error, "joining the other tasks");
    if (status == TW_OK)
        status = count_tagged(c, error);
    if (status == TW_OK)
        status = watch_processes(c, error);
    for (int i = 0; i < tasks && status == TW_OK; i++) {
        pthread_mutex_init(&c->large[i], NULL);
        c->requests[i] = mpi.calls.no_request;
        if (i != task)
            listen_for_any(c, i);
    }
    return status == TW_OK ? twi_exchange_start(&c->x, error) : status;
}

/* What joins the others while this task waits for it: MPI waits for them without end. */
typedef struct joining {
    carrier c;
    double deadline;
    tw_status status;
    tw_error error;
    bool done; /* with the carrier's lock */
    pthread_cond_t ends;
} joining;

static void *join_in_thread(void *argument)
{
    joining *j = argument;
    j->status = begin_mpi(&j->error);
    if (j->status == TW_OK)
        j->status = join_tasks(&j->c, j->deadline, &j->error);
    pthread_mutex_lock(&j->c.lock);
    j->done = true;
    pthread_cond_signal(&j->ends);
    pthread_mutex_unlock(&j->c.lock);
    return NULL;
}

static tw_status wait_for_joining(pthread_t thread, joining *j, tw_error *error)
{
    struct timespec until = twi_time_in(j->deadline);
    pthread_mutex_lock(&j->c.lock);
    while (!j->done && pthread_cond_clockwait(&j->ends, &j->c.lock, CLOCK_MONOTONIC, &until) == 0)
        ;
    bool done = j->done;
    pthread_mutex_unlock(&j->c.lock);
    if (!done) {
        pthread_detach(thread);
        return twi_fail(error, TW_ABORTED,
                        "the tasks that " TWI_MPI_NAME " has started have not all joined within %g s", j->deadline);
    }
    pthread_join(thread, NULL);
    if (j->status != TW_OK)
        *error = j->error;
    return j->status;
}

/* On failure what was made stays: the process is about to end, and MPI may look at it. */
static tw_status open_tasks(double deadline, twi_comm **comm, tw_error *error)
{
    pthread_t thread;
    joining *j = twi_alloc(sizeof *j);
    if (!j)
        return twi_fail_memory(error, "joining the other tasks");
    j->deadline = deadline;
    pthread_mutex_init(&j->c.lock, NULL);
    pthread_cond_init(&j->ends, NULL);
    tw_status status = twi_thread_start(&thread, "tower-join", NULL, 0, join_in_thread, j, error);
    if (status == TW_OK)
        status = wait_for_joining(thread, j, error);
    if (status == TW_OK)
        *comm = &j->c.x.base;
    else
        atomic_store(&mpi.broken, true);
    return status;
}

/* What mpirun says, or srun with the plug-in for this MPI. */
static bool is_here(void)
{
#ifdef OPEN_MPI
    return twi_number_in("OMPI_COMM_WORLD_SIZE") > 1 || (getenv("PMIX_RANK") && twi_number_in("SLURM_STEP_NUM_TASKS") > 1);
#else
    return twi_number_in("PMI_SIZE") > 1;
#endif
}

const twi_comm_way TWI_MPI_WAY = {TWI_MPI_NAME, is_here, open_tasks};

/* comm.h - the tasks of a run: processes that run the same program, numbered from 0, and messages between them.
 * Lives here:  the table of calls that carry messages, and what is made of them alone.
 * Never here:  devices, plans; who starts the processes.
 *
 * A message goes from one task to another in a channel; messages of two tasks in one channel arrive in order, and at
 * most one thread of each of the two is at them. Who sends waits for whom receives only where that is far behind
 * (exchange.h). No wait is without an end: a task that has ended, or that has not been heard of for `deadline` seconds,
 * ends every wait in every other task, and so does a wait of TWI_PATIENCE times as long. From then on each call fails
 * with what happened first. */
#ifndef TWI_COMM_H
#define TWI_COMM_H

#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { TWI_MOST_TASKS = 1024, TWI_PATIENCE = 20 };

/* Channels: of what the tasks agree upon, in an order that is the same for all; and from TWI_CHANNEL_OF_LANES on those
 * of runs, which may overlap, `lane_channels` of each lane (run/messages.c). */
enum { TWI_CHANNEL_OF_ALL, TWI_CHANNEL_OF_LANES };

typedef struct twi_comm twi_comm;

/* In the hands of who watches, until it does no more. */
typedef struct twi_comm_watcher {
    void (*lost)(void *user, tw_status status, const char *why);
    void *user;
    struct twi_comm_watcher *next; /* both the comm's */
    bool told;
} twi_comm_watcher;

typedef struct twi_comm_ops {
    tw_status (*send)(twi_comm *c, int to, int channel, const void *data, size_t bytes, tw_error *error);
    /* `what` is what messages call that which is waited for. The bytes must be as many as were sent. */
    tw_status (*receive)(twi_comm *c, int from, int channel, void *data, size_t bytes, const char *what,
                         tw_error *error);
    /* Ends the channels of a lane, here and on all tasks, and no others: who has taken what came in one of them fails
     * with that status, and so does who sends. */
    void (*end)(twi_comm *c, int lane, tw_status status, const char *why);
    /* Every task calls it for a lane that has ended, when it is not at its channels any more. When all have they begin
     * anew, without what was left in them. */
    tw_status (*renew)(twi_comm *c, int lane, const char *what, tw_error *error);
    /* Whether this task is to say that text: task 0 always, and tells the others; they unless it has told them by now,
     * or does within a second. Of a failure that a task has met that one says it, and one that was told of it. */
    bool (*is_to_say)(twi_comm *c, const char *text);
    /* What this task was asked for from outside goes to all with its signs of life; gives what any was, this one first.
     * Above 0; 0: nothing. From then on no wait in a lane goes on for much longer than it may need: for a deadline, or
     * twice as long as the longest that ended well, if that is longer. It ends all with TW_DEADLINE_EXCEEDED. */
    int (*asked)(twi_comm *c, int own);
    /* Ends every wait here, and tells the others why: they end with that status too. */
    void (*abort)(twi_comm *c, tw_status status, const char *why);
    /* For who may wait for something else than another task when all fails: w->lost() is called then, once, by a thread
     * of the comm's, when the others have been told, and who waits for another task has had the time to end by itself;
     * or by watch(), if that has been. Behind unwatch() no call is left: so whoever calls it holds no lock that any who
     * watches takes when he is told. */
    void (*watch)(twi_comm *c, twi_comm_watcher *w);
    void (*unwatch)(twi_comm *c, twi_comm_watcher *w); /* one that does not watch is fine */
    void (*close)(twi_comm *c);                  /* frees c */
} twi_comm_ops;

/* An implementation has a struct of its own that begins with this. Calls may come from any thread. */
struct twi_comm {
    const twi_comm_ops *ops;
    int task, tasks;
    double deadline;         /* seconds */
    atomic_int lane_channels; /* whoever made the devices says so before any is used; 0: not yet */
    const atomic_int *awake; /* threads of this process that want one of its cores (base/cores.h), which a plug-in is told */
    int cores;               /* since it has no such number of its own; NULL: not yet */
};

/* A number that a launcher has put in the environment; 0: it has not. */
static inline int twi_number_in(const char *variable)
{
    const char *text = getenv(variable);
    return text ? atoi(text) : 0;
}

/* A way to be started: a row in comm.c, or of a plug-in. */
typedef struct twi_comm_way {
    const char *name;
    bool (*is_here)(void); /* whether this process was started so */
    tw_status (*open)(double deadline, twi_comm **comm, tw_error *error);
} twi_comm_way;

extern const twi_comm_way twi_comm_local;

/* Joins the tasks that this one was started with; *comm is NULL if it was started alone. `more` are the ways of
 * plug-ins, ended by NULL, and `refused` says which plug-ins do not fit. Who was started by a launcher that none of
 * the ways knows is told so: each task would train for itself. */
tw_status twi_comm_open(const twi_comm_way *const *more, const char *refused, twi_comm **comm, tw_error *error);
void twi_comm_close(twi_comm *comm); /* NULL is fine */
/* Which of how many processes its launcher has made this one, whether or not they have joined; 0 of 1: it is alone. */
int twi_comm_started(int *tasks);

/* ---- what every task calls, in the same order ------------------------------------------------------------------- */

/* The bytes of one task become those of all. */
tw_status twi_comm_share(twi_comm *c, int from, void *data, size_t bytes, const char *what, tw_error *error);
/* The same in a channel of its own, whatever is shared beside it. */
tw_status twi_comm_share_in(twi_comm *c, int channel, int from, void *data, size_t bytes, const char *what,
                            tw_error *error);
/* What added to this task's monotonic clock gives task 0's: ns, right to half of the time that a message takes. */
tw_status twi_comm_clock(twi_comm *c, int64_t *ahead_ns, tw_error *error);
/* Whether all have the same list: fails on every task if not, with how the first item that differs from task 0's is
 * called here and there: describe(user, i), "" beyond the last. */
typedef struct twi_comm_list {
    const uint64_t *hashes; /* [count] */
    size_t count;
    void (*describe)(const void *user, size_t i, char *text, size_t size);
    const void *user;
} twi_comm_list;
tw_status twi_comm_compare(twi_comm *c, const twi_comm_list *list, const char *what, tw_error *error);

#endif

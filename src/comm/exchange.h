/* exchange.h - the protocol between tasks, whoever carries their messages: queues by channel, who has been heard of,
 * and how all ends when one does. Lives here:  what tasks promise each other. Never here:  how bytes travel. That is a
 * carrier's: sockets (local.c), MPI (mpi/), memory in tests.
 *
 * Who sends may be so far ahead of whom receives, and no further (MOST_AHEAD in exchange.c): what has come and is not
 * taken lies in the receiver's memory. That hangs nobody, so long as all that any task sends and takes follows one
 * order: what comes first in it waits for nothing behind it.
 *
 * The channels of a lane may end without the rest, and begin anew: each task ends them, says when it is not at them any
 * more, and waits until all have said so. What comes of a task in between is of before, and is dropped.
 *
 * A thread tells the others once in a while that this process is there, however long its kernels take. The first
 * failure is kept, ends every wait, and is told to all by the same thread. After that, and a second at most, the
 * exchange is `over`: the carrier is not asked for anything any more, but who has ended. */
#ifndef TWI_EXCHANGE_H
#define TWI_EXCHANGE_H

#include "comm/comm.h"

#include <pthread.h>
#include <stdatomic.h>

enum { TWI_REASON = 600 }; /* bytes of what is said of a failure */
enum { TWI_MAGIC = 0x544f5756 }; /* another one where messages mean something else */
/* So far messages of a channel are counted, and then from 0 again: its number and theirs fit in the tag of an MPI. */
enum { TWI_NUMBERS = 64 };

/* What goes before the bytes of a message; it is as long on all machines that can work together. */
typedef struct twi_header {
    uint32_t magic;
    int32_t channel; /* below 0: not for a receiver */
    uint64_t bytes;
    uint64_t number; /* of the message in its channel, below TWI_NUMBERS; else what is said */
} twi_header;

typedef struct twi_message {
    struct twi_message *next;
    struct twi_channel *channel;
    size_t bytes, room;
    char *data; /* behind it, or where the one who waits for it wants it */
} twi_message;

enum { TWI_BUCKETS = 64, TWI_SAID = 16 };

/* So much of a channel. */
typedef struct twi_flow {
    uint64_t messages, bytes;
} twi_flow;

/* The same, which several threads look at. */
typedef struct twi_shared_flow {
    atomic_ullong messages, bytes;
} twi_shared_flow;

/* Of where the next message of a channel is wanted: nobody wants one; somebody waits for it; it is being written; it is
 * there. Who waits makes a place wanted, and free again; who hands in makes it lent, and filled. */
typedef enum twi_place { TWI_FREE, TWI_WANTED, TWI_LENT, TWI_FILLED } twi_place;

/* Where a message meets who waits for it no lock is needed: each member belongs to one of the two threads that may be
 * at a channel, who sends or who receives here, or to who hands in what comes of a task, one at a time. */
typedef struct twi_channel {
    struct twi_channel *next; /* in its bucket */
    struct twi_channel *next_in_lane;
    struct twi_lane *lane;
    int number;
    atomic_int place;            /* twi_place */
    twi_message direct;          /* the next one; who receives has said where */
    uint64_t came;               /* so many, from the task; who hands in counts */
    twi_shared_flow sent, known; /* to the task, and of these, it has said, taken; who sends, who hands in */
    twi_flow taken, told;        /* from the task, and of these said so; who receives */
    /* Those that came before anybody waited, and those that were taken, whose memory is used again: with the lock. */
    _Atomic(twi_message *) first; /* looked at without it */
    twi_message *last, *spare;
} twi_channel;

/* Channels that end, and begin anew, together; and one of all those that do not. With the lock, but `ended`. */
typedef struct twi_lane {
    struct twi_lane *next; /* in its bucket */
    int number;
    twi_channel *channels; /* that something was sent in, either way */
    atomic_int ended;      /* the status that they have ended with; TW_OK: they go on */
    char *why;             /* written before that */
    unsigned renewed, renewals; /* so often begun anew: here, and by the task */
} twi_lane;

typedef struct twi_peer {
    atomic_llong heard_ns; /* when something last came */
    atomic_bool left;      /* it has said that it is done */
    atomic_bool lost;      /* its process has ended */
    atomic_bool failed;    /* it has told of a failure */
    bool told;             /* of the failure; the beating thread's */
    atomic_ullong said[TWI_SAID]; /* to a person: the last texts' hashes, each where its remainder is; 0: nothing */
    atomic_int asked;      /* from outside; 0: nothing */
    _Atomic(twi_channel *) channels[TWI_BUCKETS]; /* by their numbers, until all ends; added with the lock */
    twi_lane *lanes[TWI_BUCKETS];                 /* with the lock */
} twi_peer;

typedef struct twi_exchange twi_exchange;

typedef enum twi_progress { TWI_NOTHING, TWI_COMING, TWI_CAME } twi_progress; /* COMING: soon, or it is to go */

typedef struct twi_carrier_ops {
    /* Whether all was sent, or will be without anybody's doing. `data` may be overwritten afterwards. A patient one
     * waits while twi_exchange_goes_on(); else nothing is sent if there is no room at once. */
    bool (*put)(twi_exchange *x, int to, const twi_header *header, const void *data, bool patient);
    /* Takes in what has come and moves on what is to go, without waiting. From any thread. `task` is whose message is
     * waited for, -1: nobody's. NULL: threads of the carrier do that all the time. */
    twi_progress (*pump)(twi_exchange *x, int task);
    void (*close)(twi_exchange *x); /* frees x, after twi_exchange_clear() */
} twi_carrier_ops;

/* A carrier has a struct of its own that begins with this. */
struct twi_exchange {
    twi_comm base;
    const twi_carrier_ops *carrier;
    twi_peer *peers; /* [tasks] */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* something has come, or all has failed */
    pthread_cond_t ends;    /* all has failed, or is to be closed: for the beating thread */
    atomic_bool closing, failed, over;
    atomic_int asked;     /* from outside; 0: nothing */
    atomic_llong asked_ns; /* when a wait first saw that any task was; 0: none has */
    atomic_bool warned;   /* that a wait has become longer than the deadline */
    atomic_llong longest_ns; /* of the waits that have ended well since then */
    atomic_llong turn_ns; /* when the beating thread last had its turn */
    /* What happened first, the status it stands for, and which task has failed, gone or is silent, -1: not known. With
     * the lock. */
    char reason[TWI_REASON];
    tw_status status;
    int whose;
    pthread_mutex_t watching; /* held while they are called, of which none leaves meanwhile; they are under the lock */
    twi_comm_watcher *watchers;
    bool told_watchers;
    pthread_t beats;
    bool beating;
};

/* Fills in all but the carrier's own. */
tw_status twi_exchange_init(twi_exchange *x, const twi_carrier_ops *carrier, int task, int tasks, double deadline,
                            tw_error *error);
tw_status twi_exchange_start(twi_exchange *x, tw_error *error); /* from here on the carrier is called */
void twi_exchange_clear(twi_exchange *x);

/* ---- what carriers say ------------------------------------------------------------------------------------------- */

/* Room for the message that the header announces, which is where it is wanted if somebody waits for it; NULL: that was
 * no message, or memory ran out, and all has failed. Then the bytes are written to its data, and it is handed in. */
twi_message *twi_exchange_room(twi_exchange *x, int from, const twi_header *header);
void twi_exchange_hand_in(twi_exchange *x, int from, const twi_header *header, twi_message *message);
/* All of that at once, for bytes that have come. */
void twi_exchange_take(twi_exchange *x, int from, const twi_header *header, const void *data);
/* Instead of that: it will not be written any more. After a failure a carrier that has threads of its own does so
 * within a second, and one that is pumped need not: what waits then waits until it is not called any more. */
void twi_exchange_drop(twi_exchange *x, twi_message *message);
void twi_exchange_heard(twi_exchange *x, int from);   /* of a part of a message */
void twi_exchange_spoiled(twi_exchange *x, int from); /* what came is no message */
void twi_exchange_lost(twi_exchange *x, int from);    /* its process has ended: a failure, unless it was done */
void twi_exchange_fail(twi_exchange *x, const char *why);
/* Whether a wait since begin_ns may go on: nothing has failed, all are heard of, and it is not too long. `what` is
 * awaited of the task; NULL: that it takes what it is sent. */
bool twi_exchange_goes_on(twi_exchange *x, int64_t begin_ns, const char *what, int from);
/* Whether threads of this process want more cores than there are: who waits holds up others. */
bool twi_exchange_is_crowded(const twi_exchange *x);
/* What a carrier that is pumped waits by, who has looked so many times since then for what he waits for: it moves all
 * messages on, now and then looks who is there, which may end all, and soon pauses. */
void twi_exchange_wait(twi_exchange *x, int task, const char *what, int times, int64_t begin_ns);

#endif

/* failure.h - how an exchange ends: who is silent, gone or has failed, who hears of it, and who says it to a person.
 * For exchange.c, which has the messages.
 *
 * Whatever happens first is kept, ends every wait, and is told to all by the beating thread, which tells them until
 * then that this process is there. Who waits looks at the others himself: he knows what for. */
#ifndef TWI_FAILURE_H
#define TWI_FAILURE_H

#include "comm/exchange.h"

#include "base/clock.h"

#include <time.h>

/* Channels that are no receiver's. */
enum { BEAT = -1, LEAVE = -2, ABORT = -3, TAKEN = -4, END = -5, RENEW = -6, SAID = -7 };

static inline double twi_seconds_since(int64_t ns)
{
    return (double)(twi_coarse_ns() - ns) / 1e9;
}

static inline void twi_sleep_ns(long ns)
{
    nanosleep(&(struct timespec){0, ns}, NULL);
}

/* What is not for a receiver goes to a task, in one of those channels. */
bool twi_exchange_mention(twi_exchange *x, int to, int channel, uint64_t number, const char *text, bool patient);

/* The first reason is kept. `whose` failure it is: a task. */
void twi_exchange_fail_with(twi_exchange *x, tw_status status, int whose, const char *why);
/* What has happened first, as an error, when the others have been told. */
tw_status twi_exchange_say_reason(twi_exchange *x, tw_error *error);
void twi_exchange_heed_abort(twi_exchange *x, int from, uint64_t number, const char *why);

/* Of a wait in a lane: ends all if it was asked to end and the wait takes longer than it may then. */
void twi_exchange_end_if_asked(twi_exchange *x, int task, const char *what, int64_t begin);
void twi_exchange_note_wait(twi_exchange *x, int64_t begin); /* one that has ended well; 0: there was none */

/* The beating thread, whose argument is the exchange, and what it does in the end if it is there no more. */
void *twi_exchange_beat(void *exchange);
void twi_exchange_tell_all(twi_exchange *x);

/* Calls of twi_comm_ops. */
bool twi_exchange_is_to_say(twi_comm *c, const char *text);
int twi_exchange_say_asked(twi_comm *c, int own);
void twi_exchange_abort(twi_comm *c, tw_status status, const char *why);
void twi_exchange_watch(twi_comm *c, twi_comm_watcher *w);
void twi_exchange_unwatch(twi_comm *c, twi_comm_watcher *w);

#endif

/* signals.h - being asked to stop: the work in hand is finished and saved first; a second signal, a second
 * later or more, ends at once. */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include <stdbool.h>
#include <sys/types.h>

/* First of all in main(): handlers will run on a thread of their own, and on no other. A kernel of oneDNN (its sgemm
 * for AVX2) computes with the stack pointer in a buffer on the heap; the frame of a handler that comes just then
 * overwrites what lies below that buffer. CONT has no handler: it waits for who asks (painter.c). From here on USR1 is
 * noted as the wish for a checkpoint, and never ends the program. */
void signals_begin(void);
/* In a child that becomes another program: signals are blocked there as they were here before, and those that ask to
 * stop, which may have come since it began, end it. */
void signals_hand_on(void);

/* In a child: TERM comes when its parent, process `parent`, ends, also if that was before this call. */
void signals_end_with(pid_t parent);

/* From now on INT, TERM and HUP (unless it is ignored, as under nohup) are noted instead of ending the program. The
 * first of them writes `say` to stderr, a line for what may take long to stop; NULL: nothing. */
void signals_watch(const char *say);

/* From now on tell(user, number) is called when a signal asks to stop, by the thread that handlers run on, for what is
 * to hear of it while all others wait; at once if one has asked already. NULL: no more, and no call is left. */
void signals_tell(void (*tell)(void *user, int number), void *user);

void signals_forget(void);    /* they end the program again */
int signals_stop(void);       /* the signal that asks to stop; 0: none so far */
bool signals_take_save(void); /* a checkpoint was asked for since the last call */

#endif

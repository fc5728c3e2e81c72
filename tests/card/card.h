/* card.h - a card that is not there: NVIDIA's driver, runtime and libraries played on the host, so that the CUDA
 * plug-in can be tried where no card is.
 *
 * libcard.so stands for libcudart, and under their names for libcuda, libcublasLt, libcudnn and libnccl. The kernels
 * (.cu files) are compiled for the host (emulate.h) and run thread by thread. What is real: streams run as late as they
 * may, so that a wait that is missing shows; memory is filled with rubbish and its bounds are checked by copies (and by
 * the address sanitizer); what is asked of a stream while it records, and may not be, fails. What is not: speed, and
 * the word of NVIDIA's compiler and libraries on anything.
 *
 * The environment says what the machine is like: CARD_COUNT cards (2) of the name CARD_NAME, CARD_DRIVER the driver's
 * CUDA (13000); CARD_IDLE=1 that nothing is computed, to see what a program does with a card and be quick; CARD_APART=1
 * that a graph takes what one stream records and no other; CARD_TELLS=1 that it says of each graph that is made how
 * many nodes it has, and how many come one after the other; CARD_NARROWS=1 that cuDNN's engine of TF32 makes its inputs
 * narrower still. CARD_BLOCKS that so many blocks of a kernel run at once (1); their order is random in any case.
 * CARD_STRICT=1 that a handle of cuDNN's takes streams of no other context than the one it was made in. CARD_TUNED=1
 * that cuDNN's engines come with other settings; CARD_DRIVER is in the name of what is remembered.
 * CARD_NCCL is NCCL's version (22705 for 2.27.5). CARD_NCCL_AT=reduction lets its reductions hang, =refusal its
 * communicators be refused, =init rank CARD_NCCL_HANGS while communicators are made.
 *
 * This part is for tests: */
#ifndef CARD_H
#define CARD_H

#ifdef __cplusplus
extern "C" {
#endif

void card_fail_at(long n);        /* the n-th call from now fails; 0: none does */
void card_fail_from(long n);      /* the n-th call from now fails, and all behind it */
long card_calls(void);            /* since the last card_fail_at() */
const char *card_failed(void);    /* name of the call that was made to fail, names of all that were; "" */
const char *card_leaks(void);     /* "2 streams, 1 event": what was made and not given back; "" if all is well */
long card_count(const char *what); /* how often a call ("call ahead": by the plug-in's thread that works ahead), or
                                      "kernel", "node" (of a graph that is launched), a "failure", has been seen;
                                      "depth": nodes on the longest way through each graph that was made,
                                      "copy on a card": from there to there;
                                      "connection": queues of the card's that streams share */
void card_fail_among(const char *calls, long n); /* the n-th call from now whose name begins so fails */
void card_hang_at(const char *call, long n); /* the n-th "ncclAllReduce", of all with "nccl", does not come back until
                                                card_let_go() */
const char *card_hung(void);                 /* its name; "": none has hung */
void card_let_go(void);
void card_die_at(const char *call, long n);  /* there the process is killed */
void card_hang_for(double seconds); /* what hangs does so for more than so long, by the plug-in's clock (clock.cc) */
void card_skip(double part);        /* of that, on the clock */
int card_waiting(void);             /* so many threads of the plug-in's wait at one condition, for some time at most */
void card_takes(const char *what, double ms); /* what events say that "engine 3" or "algorithm 1" has taken; 1 at first */
void card_be_lazy(int yes);       /* nothing that streams are given from now on is done: for plans alone */
int card_opened(int ordinal);     /* whether a card has ever been given a context */

#ifdef __cplusplus
}
#endif
#endif

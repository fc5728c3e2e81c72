/* choice.h - which of a library's algorithms, or of ours beside it, computes a node: of some that obey the rules the
 * fastest, timed once on the card and remembered for all that is alike.
 *
 * A library lists configurations, most of them the same algorithm with other settings. So first each algorithm is tried
 * once, in the library's order, and only then more settings, until there are TWI_CANDIDATES. They are timed as they
 * will run, in a CUDA graph: a call by itself costs the host as much as many of them take on the card. One such call
 * tells apart what takes far longer than the best so far, which is not looked at more closely.
 *
 * What was chosen is kept for the process, so that its devices agree whatever part of a card they are, and in a small
 * text file for each card and version of a library and the driver, so that the next process agrees and starts without
 * timing. The file lies in $XDG_CACHE_HOME/tower or ~/.cache/tower; TOWER_ALGORITHM_CACHE=off leaves it alone.
 *
 * Of several tasks that prepare the same nodes the first chooses, by its card and its file, and the others take that:
 * other algorithms would be other bits. Where a task prepares by itself (a loop whose rounds are planned when they
 * come, a function of a data set) nobody can be asked, and it is the library's first, which is the same for all. */
#ifndef TWI_CUDA_CHOICE_H
#define TWI_CUDA_CHOICE_H

#include "device/cuda/cuda.h"

enum { TWI_CANDIDATES = 16, TWI_CHOICE_KEY = 256 };

/* Numbers of algorithms, and places in the list, from here on are of kernels of ours. */
enum { TWI_OWN_ALGORITHMS = 1000000 };

typedef struct twi_candidate {
    int position;                  /* in the library's list */
    int64_t number;                /* the library's own of the algorithm */
    uint64_t settings;             /* a hash of what else it is told: with the number the same means the same bits */
    size_t workspace;
    void *plan;                    /* the contest's */
} twi_candidate;

/* What of a library's list is wanted next. */
typedef struct twi_search {
    int from;                      /* position of the first that will do */
    const twi_candidate *had;      /* [num_had] are not wanted again, */
    int num_had;
    bool new_number;               /* nor others of their number */
} twi_search;

/* A library may name an algorithm with the same settings in several places. */
static inline bool twi_is_wanted(const twi_search *search, int position, int64_t number, uint64_t settings)
{
    bool wanted = position >= search->from;
    for (int i = 0; i < search->num_had && wanted; i++)
        wanted = search->had[i].number != number || (!search->new_number && search->had[i].settings != settings);
    return wanted;
}

/* What is to be chosen. Calls come from one thread at a time. */
typedef struct twi_contest {
    const char *maker;             /* the library, "cudnn": the algorithm's in messages, and the file's */
    size_t version;
    const char *node;
    char key[TWI_CHOICE_KEY];      /* op, shapes, types, rules: all that the choice depends on; without spaces */
    size_t bytes;                  /* of scratch memory for the operands */
    struct twi_comm *comm;         /* with the tasks that choose the same at this moment; NULL: nobody does */
    void *user;
    /* The first wanted algorithm that obeys; NULL in *found's plan: there is none. */
    tw_status (*next)(void *user, const twi_search *search, twi_candidate *found, tw_error *error);
    /* On scratch memory, of zeros, and workspace that both begin at multiples of 256. */
    tw_status (*run)(void *user, const twi_candidate *candidate, char *operands, void *workspace, cudaStream_t stream,
                     tw_error *error);
    void (*drop)(void *user, const twi_candidate *candidate);
} twi_contest;

/* The winner, which is the caller's to drop. TW_UNIMPLEMENTED: there is none. Each choice is said to the log. */
tw_status twi_choose(twi_cuda_device *c, const twi_contest *contest, twi_candidate *winner, tw_error *error);

/* Whether there is an algorithm at all, as accepts() has found out: by op and shapes, of one device. */
typedef enum twi_answer {
    TWI_NOT_ASKED,
    TWI_TAKEN,
    TWI_TAKEN_APART, /* by more than one kernel */
    TWI_REFUSED,
} twi_answer;
twi_answer twi_answer_find(const twi_device *d, const char *key);
void twi_answer_keep(const twi_device *d, const char *key, twi_answer answer); /* without memory it is asked again */
void twi_answers_free(twi_cuda_device *c);

/* choice_cache.c: what has been chosen. Under a lock of the caller's. */
typedef struct twi_choice {
    char key[TWI_CHOICE_KEY];
    int position;
    int64_t number;
    uint64_t settings;
    float ms;                      /* 0: it was the only one, and not timed */
} twi_choice;

/* The choice for a key on a card; NULL: none yet. Borrowed until something is remembered. */
const twi_choice *twi_choice_find(const twi_card *card, const twi_contest *contest);
/* What cannot be kept is said to the log once, and the choice made again another time. */
void twi_choice_remember(const twi_card *card, const twi_contest *contest, const twi_choice *choice);

#endif

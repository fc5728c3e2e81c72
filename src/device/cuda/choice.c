/* choice.c - see choice.h: the contest. */
#include "device/cuda/choice.h"

#include "base/log.h"
#include "comm/comm.h"

#include <stdio.h>
#include <string.h>

enum { RUNS = 20, ROUNDS = 5, MOST_WARMING = 100 };
#define WARMING_MS 5.0f /* for the card's clock to come up */
#define CLEARLY 0.97f /* of the time so far: what is as fast shall not be chosen by chance */
#define FAR_OFF 2.0f  /* times the time so far: no look more would make up for it */
#define CALL_MS 0.2f  /* what a call by itself may take besides its work: 0.11 has been seen on an H200 */

/* Held by who chooses, so that two threads do not choose differently, nor disturb each other's times. */
static pthread_mutex_t choosing = PTHREAD_MUTEX_INITIALIZER;

/* Whose an algorithm is, for messages; its number there. */
static const char *maker_of(const twi_contest *contest, int64_t number)
{
    return number < TWI_OWN_ALGORITHMS ? contest->maker : "tower";
}

static long long number_of(int64_t number)
{
    return (long long)(number < TWI_OWN_ALGORITHMS ? number : number - TWI_OWN_ALGORITHMS);
}

/* ---- timing ------------------------------------------------------------------------------------------------------ */

typedef struct stopwatch {
    cudaEvent_t begin, end;
    char *scratch;
    size_t bytes;
} stopwatch;

static void put_away(twi_cuda_device *c, stopwatch *s)
{
    if (s->begin)
        cudaEventDestroy(s->begin);
    if (s->end)
        cudaEventDestroy(s->end);
    if (s->scratch) {
        cudaFree(s->scratch);
        atomic_fetch_sub(&c->base.memory_used, s->bytes);
    }
}

static tw_status get_out(twi_cuda_device *c, stopwatch *s, size_t bytes, tw_error *error)
{
    tw_status status = TW_OK;
    void *scratch = NULL;
    atomic_fetch_add(&c->base.memory_used, bytes);
    TWI_CALL(&c->base, error, cudaMalloc(&scratch, bytes));
    s->scratch = scratch;
    s->bytes = bytes;
    TWI_CALL(&c->base, error, cudaMemsetAsync(scratch, 0, bytes, c->stream));
    TWI_CALL(&c->base, error, cudaEventCreateWithFlags(&s->begin, cudaEventDefault));
    TWI_CALL(&c->base, error, cudaEventCreateWithFlags(&s->end, cudaEventDefault));
done:
    if (!scratch)
        atomic_fetch_sub(&c->base.memory_used, bytes);
    return status;
}

/* RUNS runs, one behind the other, as a graph. */
static tw_status record_runs(twi_cuda_device *c, const twi_contest *contest, const twi_candidate *candidate,
                             const stopwatch *s, void *recording, tw_error *error)
{
    tw_error last = {0};
    tw_status status = twi_cuda_record(&c->base, recording, NULL, 0, error);
    if (status != TW_OK)
        return status;
    for (int run = 0; run < RUNS && status == TW_OK; run++)
        status = contest->run(contest->user, candidate, s->scratch, s->scratch + contest->bytes, c->recorder, error);
    if (twi_cuda_recorded(&c->base, recording, &last) != TW_OK && status == TW_OK) {
        *error = last;
        status = last.status;
    }
    return status == TW_OK ? twi_cuda_close_recording(&c->base, recording, error) : status;
}

static bool is_far_off(float ms, float best)
{
    return best > 0 && ms > FAR_OFF * best;
}

/* Of a run of the graph. */
static tw_status time_replay(twi_cuda_device *c, const stopwatch *s, void *recording, float *ms, tw_error *error)
{
    tw_status status;
    const twi_device *d = &c->base;
    TWI_CALL(d, error, cudaEventRecord(s->begin, c->stream));
    TWI_TRY(twi_cuda_replay(&c->base, recording, error));
    TWI_CALL(d, error, cudaEventRecord(s->end, c->stream));
    TWI_CALL(d, error, cudaEventSynchronize(s->end));
    TWI_CALL(d, error, cudaEventElapsedTime(ms, s->begin, s->end));
    *ms /= RUNS;
done:
    return status;
}

/* Of one run that is no graph's. The one before may load what the algorithm needs, which cannot be recorded. */
static tw_status time_call(twi_cuda_device *c, const twi_contest *contest, const twi_candidate *candidate,
                           const stopwatch *s, float *ms, tw_error *error)
{
    tw_status status;
    const twi_device *d = &c->base;
    char *workspace = s->scratch + contest->bytes;
    TWI_TRY(contest->run(contest->user, candidate, s->scratch, workspace, c->stream, error));
    TWI_CALL(d, error, cudaEventRecord(s->begin, c->stream));
    TWI_TRY(contest->run(contest->user, candidate, s->scratch, workspace, c->stream, error));
    TWI_CALL(d, error, cudaEventRecord(s->end, c->stream));
    TWI_CALL(d, error, cudaEventSynchronize(s->end));
    TWI_CALL(d, error, cudaEventElapsedTime(ms, s->begin, s->end));
done:
    return status;
}

/* The first replay brings the graph onto the card; a card is warm that has just timed another. */
static tw_status time_replays(twi_cuda_device *c, const stopwatch *s, void *recording, float best, float *ms,
                              tw_error *error)
{
    tw_status status = TW_OK;
    float warm = 0, took = 0;
    for (int i = 0; i == 0 || (best == 0 && warm < WARMING_MS && i < MOST_WARMING); i++, warm += RUNS * took)
        TWI_TRY(time_replay(c, s, recording, &took, error));
    for (int round = 1; round < ROUNDS && (round == 1 || !is_far_off(*ms, best)); round++) {
        TWI_TRY(time_replay(c, s, recording, &took, error));
        *ms = round == 1 || took < *ms ? took : *ms;
    }
done:
    return status;
}

/* What is far off the best so far (0: there is none yet) is not looked at more closely. */
static tw_status time_one(twi_cuda_device *c, const twi_contest *contest, const twi_candidate *candidate,
                          const stopwatch *s, float best, float *ms, tw_error *error)
{
    tw_status status;
    void *recording = NULL;
    TWI_TRY(time_call(c, contest, candidate, s, ms, error));
    if (is_far_off(*ms - CALL_MS, best))
        return TW_OK;
    TWI_TRY(twi_cuda_open_recording(&c->base, &recording, error));
    TWI_TRY(record_runs(c, contest, candidate, s, recording, error));
    TWI_TRY(time_replays(c, s, recording, best, ms, error));
done:
    if (recording)
        twi_cuda_forget(&c->base, recording);
    return status;
}

static bool has_room(twi_cuda_device *c, size_t bytes)
{
    size_t limit = c->base.memory_limit, used = atomic_load(&c->base.memory_used);
    return limit == 0 || (used <= limit && bytes <= limit - used);
}

/* Index of the fastest; *ms 0: nothing could be timed, so the library's own first stays. */
static int find_fastest(twi_cuda_device *c, const twi_contest *contest, const twi_candidate *candidates, int count,
                        float *ms)
{
    stopwatch s = {0};
    tw_error error = {0};
    size_t workspace = 0;
    int best = 0;
    for (int i = 0; i < count; i++)
        workspace = candidates[i].workspace > workspace ? candidates[i].workspace : workspace;
    *ms = 0;
    if (!has_room(c, contest->bytes + workspace)) {
        twi_log(TWI_LOG_INFO, "node '%s': algorithms are not timed: %s has no room for %zu bytes to try them on",
                contest->node, c->base.text, contest->bytes + workspace);
        return 0;
    }
    if (get_out(c, &s, contest->bytes + workspace, &error) != TW_OK)
        twi_log(TWI_LOG_WARNING, "node '%s': algorithms are not timed: %s", contest->node, error.message);
    for (int i = 0; s.end && i < count; i++) {
        float took = 0;
        if (time_one(c, contest, &candidates[i], &s, *ms, &took, &error) != TW_OK) {
            twi_log(TWI_LOG_WARNING, "node '%s': %s's algorithm %lld is passed over: %s", contest->node,
                    maker_of(contest, candidates[i].number), number_of(candidates[i].number), error.message);
            continue;
        }
        twi_log(TWI_LOG_DETAIL, "node '%s' on %s: %s's algorithm %lld, settings %016llx: %.4f ms", contest->node,
                c->base.text, maker_of(contest, candidates[i].number), number_of(candidates[i].number),
                (unsigned long long)candidates[i].settings, (double)took);
        if (*ms == 0 || took < CLEARLY * *ms) {
            best = i;
            *ms = took;
        }
    }
    put_away(c, &s);
    return best;
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

static void say(const twi_cuda_device *c, const twi_contest *contest, const twi_choice *choice, const char *how)
{
    char ms[32] = "";
    if (choice->ms > 0)
        snprintf(ms, sizeof ms, "%.4f ms, ", (double)choice->ms);
    twi_log(TWI_LOG_DETAIL, "node '%s' on %s: %s's algorithm %lld, %s%s", contest->node, c->base.text,
            maker_of(contest, choice->number), number_of(choice->number), ms, how);
}

/* The remembered algorithm, if the library still has it there. */
static tw_status take_known(const twi_contest *contest, const twi_choice *known, twi_candidate *winner, bool *taken,
                            tw_error *error)
{
    tw_status status = contest->next(contest->user, &(twi_search){.from = known->position}, winner, error);
    *taken = status == TW_OK && winner->plan && winner->position == known->position &&
             winner->number == known->number && winner->settings == known->settings;
    if (status == TW_OK && winner->plan && !*taken)
        contest->drop(contest->user, winner);
    return status;
}

/* Each algorithm once, then more of their settings. */
static tw_status find_candidates(const twi_contest *contest, twi_candidate *candidates, int *count, tw_error *error)
{
    tw_status status = TW_OK;
    for (int pass = 0; pass < 2; pass++) {
        twi_search search = {.had = candidates, .new_number = pass == 0};
        while (*count < TWI_CANDIDATES) {
            search.num_had = *count;
            TWI_TRY(contest->next(contest->user, &search, &candidates[*count], error));
            if (!candidates[*count].plan)
                break;
            search.from = candidates[(*count)++].position + 1;
        }
    }
done:
    return status;
}

/* The index of the one to take. */
static int find_best(twi_cuda_device *c, const twi_contest *contest, const twi_candidate *candidates, int count,
                     bool timed, twi_choice *choice)
{
    int best = count > 1 && timed ? find_fastest(c, contest, candidates, count, &choice->ms) : 0;
    memcpy(choice->key, contest->key, sizeof choice->key);
    choice->position = candidates[best].position;
    choice->number = candidates[best].number;
    choice->settings = candidates[best].settings;
    say(c, contest, choice, choice->ms > 0 ? "timed" : count > 1 ? "the first" : "the only one");
    return best;
}

/* By time, or the library's first. */
static tw_status choose_new(twi_cuda_device *c, const twi_contest *contest, bool timed, twi_choice *choice,
                            twi_candidate *winner, tw_error *error)
{
    twi_candidate candidates[TWI_CANDIDATES] = {{0}};
    tw_status status = TW_OK;
    int count = 0, best = 0;
    *choice = (twi_choice){.ms = 0};
    TWI_TRY(find_candidates(contest, candidates, &count, error));
    if (count == 0)
        return twi_fail(error, TW_UNIMPLEMENTED, "%s has no algorithm for this that may be taken", contest->maker);
    best = find_best(c, contest, candidates, count, timed, choice);
    *winner = candidates[best];
    if (choice->ms > 0 || count == 1)
        twi_choice_remember(&c->card, contest, choice);
done:
    for (int i = 0; i < count; i++)
        if (status != TW_OK || i != best)
            contest->drop(contest->user, &candidates[i]);
    return status;
}

static tw_status choose_here(twi_cuda_device *c, const twi_contest *contest, twi_choice *choice, twi_candidate *winner,
                             tw_error *error)
{
    tw_status status = TW_OK;
    bool taken = false;
    const twi_choice *known = twi_choice_find(&c->card, contest);
    if (known) {
        *choice = *known;
        status = take_known(contest, choice, winner, &taken, error);
        if (taken)
            say(c, contest, choice, "remembered");
    }
    return status == TW_OK && !taken ? choose_new(c, contest, true, choice, winner, error) : status;
}

/* ---- several tasks ----------------------------------------------------------------------------------------------- */

/* What the first task tells the others. */
typedef struct told {
    tw_status status;
    tw_error error;
    twi_choice choice;
    size_t version;
    char maker[16], card[sizeof((twi_card *)NULL)->name];
} told;

/* An algorithm's number means something within a version of the library only. */
static tw_status take_told(twi_cuda_device *c, const twi_contest *contest, const told *t, twi_candidate *winner,
                           tw_error *error)
{
    bool taken;
    if (t->status != TW_OK)
        return twi_fail(error, t->status, "task 0: %s", t->error.message);
    if (strcmp(t->choice.key, contest->key) != 0 || strcmp(t->maker, contest->maker) != 0)
        return twi_fail(error, TW_FAILED_PRECONDITION,
                        "node '%s': tasks differ in what they choose algorithms for: task 0 has %s '%s', "
                        "task %d %s '%s'",
                        contest->node, t->maker, t->choice.key, contest->comm->task, contest->maker, contest->key);
    if (t->version != contest->version)
        return twi_fail(error, TW_FAILED_PRECONDITION,
                        "node '%s': tasks differ in their %s: task 0 has version %zu, task %d %zu, and what it calls "
                        "by the same number may be another algorithm",
                        contest->node, contest->maker, t->version, contest->comm->task, contest->version);
    tw_status status = take_known(contest, &t->choice, winner, &taken, error);
    if (status != TW_OK || taken) {
        say(c, contest, &t->choice, "task 0's");
        return status;
    }
    return twi_fail(error, TW_FAILED_PRECONDITION,
                    "node '%s': %s's algorithm %lld, which task 0 has chosen on its %s, is not there on task %d's %s; "
                    "every task needs cards that can do the same",
                    contest->node, maker_of(contest, t->choice.number), number_of(t->choice.number), t->card,
                    contest->comm->task, c->card.name);
}

static tw_status choose_for_all(twi_cuda_device *c, const twi_contest *contest, twi_candidate *winner, tw_error *error)
{
    told t = {.version = contest->version};
    tw_error last = {0};
    if (contest->comm->task == 0) {
        t.status = choose_here(c, contest, &t.choice, winner, &t.error);
        snprintf(t.maker, sizeof t.maker, "%s", contest->maker);
        snprintf(t.card, sizeof t.card, "%s", c->card.name);
    }
    tw_status status = twi_comm_share(contest->comm, 0, &t, sizeof t, "an algorithm", &last);
    if (contest->comm->task != 0 && status == TW_OK)
        return take_told(c, contest, &t, winner, error);
    if (t.status == TW_OK && status != TW_OK && winner->plan)
        contest->drop(contest->user, winner);
    if (t.status == TW_OK && status == TW_OK)
        return TW_OK;
    if (error)
        *error = t.status != TW_OK ? t.error : last;
    return t.status != TW_OK ? t.status : status;
}

tw_status twi_choose(twi_cuda_device *c, const twi_contest *contest, twi_candidate *winner, tw_error *error)
{
    const struct tw_devices *set = c->base.set;
    twi_choice choice;
    *winner = (twi_candidate){0};
    pthread_mutex_lock(&choosing);
    tw_status status = contest->comm       ? choose_for_all(c, contest, winner, error)
                       : set && set->comm ? choose_new(c, contest, false, &choice, winner, error)
                                          : choose_here(c, contest, &choice, winner, error);
    pthread_mutex_unlock(&choosing);
    return status;
}

/* ---- whether there is anything to choose ------------------------------------------------------------------------- */

typedef struct answered {
    twi_answer answer;
    char key[];
} answered;

twi_answer twi_answer_find(const twi_device *d, const char *key)
{
    twi_cuda_device *c = (twi_cuda_device *)d;
    pthread_mutex_lock(&c->lock);
    const answered *known = twi_map_get(&c->answers, key);
    pthread_mutex_unlock(&c->lock);
    return known ? known->answer : TWI_NOT_ASKED;
}

void twi_answer_keep(const twi_device *d, const char *key, twi_answer answer)
{
    twi_cuda_device *c = (twi_cuda_device *)d;
    size_t size = strlen(key) + 1;
    pthread_mutex_lock(&c->lock);
    answered *kept = twi_map_get(&c->answers, key) ? NULL : twi_arena_alloc(&c->answer_texts, sizeof *kept + size);
    if (kept) {
        kept->answer = answer;
        memcpy(kept->key, key, size);
        twi_map_put(&c->answers, kept->key, kept);
    }
    pthread_mutex_unlock(&c->lock);
}

void twi_answers_free(twi_cuda_device *c)
{
    twi_map_free(&c->answers);
    twi_arena_free(&c->answer_texts);
}

/* failure.c - see failure.h. */
#define _GNU_SOURCE
#include "comm/failure.h"

#include "base/clock.h"
#include "base/fingerprint.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

enum { NOBODY = -1 }; /* whose failure is not known */

/* What is not for a receiver. */
bool twi_exchange_mention(twi_exchange *x, int to, int channel, uint64_t number, const char *text, bool patient)
{
    twi_header header = {TWI_MAGIC, channel, strlen(text), number};
    return x->carrier->put(x, to, &header, text, patient);
}

/* ---- failing ----------------------------------------------------------------------------------------------------- */

/* The first reason is kept; the beating thread tells the others. `whose` it is the exchange has. */
void twi_exchange_fail_with(twi_exchange *x, tw_status status, int whose, const char *why)
{
    pthread_mutex_lock(&x->lock);
    if (!atomic_load(&x->failed)) {
        snprintf(x->reason, sizeof x->reason, "%s", why);
        x->status = status;
        x->whose = whose;
        atomic_store(&x->failed, true);
        pthread_cond_broadcast(&x->changed);
        pthread_cond_signal(&x->ends);
    }
    pthread_mutex_unlock(&x->lock);
}

void twi_exchange_fail(twi_exchange *x, const char *why)
{
    twi_exchange_fail_with(x, TW_ABORTED, x->base.task, why);
}

/* Who hears of it may end at once, and the others would take that for what has happened first: they are told before,
 * but where messages move only while somebody asks, which takes its time. */
static void wait_until_told(twi_exchange *x)
{
    while (!x->carrier->pump && x->beating && !atomic_load(&x->over) && !atomic_load(&x->closing))
        twi_sleep_ns(100000);
}

tw_status twi_exchange_say_reason(twi_exchange *x, tw_error *error)
{
    wait_until_told(x);
    pthread_mutex_lock(&x->lock);
    tw_status status = twi_fail(error, x->status, "%s", x->reason);
    pthread_mutex_unlock(&x->lock);
    return status;
}

void twi_exchange_spoiled(twi_exchange *x, int from)
{
    char why[TWI_REASON];
    snprintf(why, sizeof why, "task %d has sent what is no message of this version", from);
    twi_exchange_fail(x, why);
}

void twi_exchange_lost(twi_exchange *x, int from)
{
    char why[TWI_REASON];
    atomic_store(&x->peers[from].lost, true);
    if (atomic_load(&x->peers[from].left) || (atomic_load(&x->closing) && !x->carrier->pump))
        return; /* over sockets a task that is done waits for nobody */
    snprintf(why, sizeof why, "task %d has ended before its work was done", from);
    twi_exchange_fail_with(x, TW_ABORTED, from, why);
}

/* The beating thread's turns come often. If one is late this process has been held up, and has not listened either: of
 * that time a part of the deadline counts at most. So nobody is silent for the deadline in less than TURNS turns, and
 * who never speaks is found, however often this process stands still. */
static int64_t held_up_ns(const twi_exchange *x, int64_t turn_ns, int64_t now_ns)
{
    enum { TURNS = 6 };
    int64_t late = now_ns - turn_ns - (int64_t)(x->base.deadline * 1e9 / TURNS);
    return late > 0 ? late : 0;
}

static void take_turn(twi_exchange *x)
{
    int64_t now = twi_coarse_ns(), held_up = held_up_ns(x, atomic_exchange(&x->turn_ns, now), now);
    for (int i = 0; i < x->base.tasks && held_up > 0; i++) {
        long long heard = atomic_load(&x->peers[i].heard_ns), later = heard + held_up < now ? heard + held_up : now;
        atomic_compare_exchange_strong(&x->peers[i].heard_ns, &heard, later); /* else it was heard of just now */
    }
}

static double silence(const twi_exchange *x, int task)
{
    int64_t now = twi_coarse_ns(), held_up = held_up_ns(x, atomic_load(&x->turn_ns), now);
    return (double)(now - held_up - atomic_load(&x->peers[task].heard_ns)) / 1e9;
}

/* Who is silent for longer than that, and for longest; -1: nobody. */
static int find_silent(const twi_exchange *x, double longest)
{
    int late = -1;
    for (int i = 0; i < x->base.tasks; i++) {
        double silent = i == x->base.task || atomic_load(&x->peers[i].left) ? 0 : silence(x, i);
        if (silent > longest) {
            longest = silent;
            late = i;
        }
    }
    return late;
}

static void name_awaited(char *awaited, size_t size, const char *what, int from)
{
    snprintf(awaited, size, "%.200s%stask %d", what ? what : "", what ? " of " : "", from);
}

/* `waits`: who has waited for what, behind "; "; "": nobody. */
static void fail_for_silence(twi_exchange *x, int late, const char *waits)
{
    char why[TWI_REASON];
    snprintf(why, sizeof why, "task %d has not been heard of for %.0f s%s (the deadline is %g s)", late,
             silence(x, late), waits, x->base.deadline);
    twi_exchange_fail_with(x, TW_ABORTED, late, why);
}

static void fail_for_silence_in_wait(twi_exchange *x, int late, const char *what, int from)
{
    char waits[350], awaited[250];
    name_awaited(awaited, sizeof awaited, what, from);
    snprintf(waits, sizeof waits, "; task %d waited for %s%s", x->base.task, awaited,
             what ? "" : " to take what it was sent");
    fail_for_silence(x, late, waits);
}

/* The wait has become longer than the deadline, though nobody is silent: a warning, and then the end. */
static void complain_of_wait(twi_exchange *x, double waited, const char *what, int from)
{
    char why[TWI_REASON], awaited[250];
    const char *instead = what ? "does not send it" : "does not take what it is sent";
    double longest = TWI_PATIENCE * x->base.deadline;
    name_awaited(awaited, sizeof awaited, what, from);
    if (waited > longest) {
        snprintf(why, sizeof why, "task %d has waited %.0f s for %s, which is there but %s", x->base.task, waited,
                 awaited, instead);
        twi_exchange_fail(x, why);
    } else if (!atomic_load(&x->closing) && !atomic_exchange(&x->warned, true)) {
        twi_log(TWI_LOG_WARNING,
                "task %d has waited for %.0f s for %s, which is there but %s; after %g s that ends the run",
                x->base.task, waited, awaited, instead, longest);
    }
}

bool twi_exchange_goes_on(twi_exchange *x, int64_t begin_ns, const char *what, int from)
{
    double waited = twi_seconds_since(begin_ns);
    if (atomic_load(&x->closing))
        take_turn(x); /* nobody beats any more */
    int late = find_silent(x, x->base.deadline);
    if (late >= 0)
        fail_for_silence_in_wait(x, late, what, from);
    else if (waited > x->base.deadline)
        complain_of_wait(x, waited, what, from);
    return !atomic_load(&x->failed);
}

bool twi_exchange_is_crowded(const twi_exchange *x)
{
    return x->base.awake && atomic_load_explicit(x->base.awake, memory_order_relaxed) > x->base.cores;
}

/* ---- being asked to end ------------------------------------------------------------------------------------------ */

static int asked(const twi_exchange *x)
{
    int number = atomic_load(&x->asked);
    for (int i = 0; i < x->base.tasks && !number; i++)
        number = atomic_load(&x->peers[i].asked);
    return number;
}

/* A step that waits hears of a request to end, too: what others need for theirs it gives them, and then does not wait
 * for as long as one that nobody wants to end. */
void twi_exchange_end_if_asked(twi_exchange *x, int task, const char *what, int64_t begin)
{
    enum { TIMES = 2 };
    char why[TWI_REASON], awaited[250];
    int number = asked(x);
    long long now = twi_coarse_ns(), since = 0;
    if (!number || atomic_compare_exchange_strong(&x->asked_ns, &since, now))
        return;
    double longest = TIMES * (double)atomic_load(&x->longest_ns) / 1e9, waited = twi_seconds_since(begin);
    longest = longest > x->base.deadline ? longest : x->base.deadline;
    if (waited < longest || twi_seconds_since(since) < longest)
        return;
    name_awaited(awaited, sizeof awaited, what, task);
    snprintf(why, sizeof why, "asked to end by signal %d, but task %d has waited %.0f s for %s, which is there but %s",
             number, x->base.task, waited, awaited, what ? "does not send it" : "does not take what it is sent");
    twi_exchange_fail_with(x, TW_DEADLINE_EXCEEDED, x->base.task, why);
}

/* What steps take, where that is longer than the deadline. */
void twi_exchange_note_wait(twi_exchange *x, int64_t begin)
{
    if (!begin || !atomic_load(&x->warned))
        return;
    long long waited = twi_monotonic_ns() - begin, longest = atomic_load(&x->longest_ns);
    while (waited > longest && !atomic_compare_exchange_strong(&x->longest_ns, &longest, waited))
        ;
}

/* ---- what another task has told ---------------------------------------------------------------------------------- */

/* A status, and whose failure it is, as the number of a message has them. */
static uint64_t pack_failure(tw_status status, int whose)
{
    return (uint64_t)status | (uint64_t)(whose - NOBODY) << 32;
}

void twi_exchange_heed_abort(twi_exchange *x, int from, uint64_t number, const char *why)
{
    uint64_t status = number & UINT32_MAX, whose = number >> 32;
    atomic_store(&x->peers[from].failed, true);
    twi_exchange_fail_with(x, status > TW_OK && status <= TW_DATA_LOSS ? (tw_status)status : TW_ABORTED,
                           whose <= (uint64_t)x->base.tasks ? (int)whose + NOBODY : NOBODY, why);
}

/* ---- who says it ------------------------------------------------------------------------------------------------- */

/* Whether it has failed as well, or may do so yet. */
static bool is_among_the_failed(const twi_exchange *x, int task)
{
    const twi_peer *p = &x->peers[task];
    return task == x->base.task || atomic_load(&p->failed) || !(atomic_load(&p->left) || atomic_load(&p->lost));
}

static int find_speaker(const twi_exchange *x, int whose)
{
    int first = 0;
    while (first == whose || !is_among_the_failed(x, first))
        first++;
    return first;
}

/* mpirun may kill all others as soon as one has ended, so who does not say it ends behind the one who does. */
static void let_speak(twi_exchange *x, int speaker, int64_t begin, double patience)
{
    enum { PAUSE = 1000000 };
    while (x->carrier->pump && !atomic_load(&x->peers[speaker].lost) && twi_seconds_since(begin) < patience) {
        x->carrier->pump(x, -1);
        twi_sleep_ns(PAUSE);
    }
}

/* So that not all say what all have failed with: the one whose failure it is does, if it still can, and of the others
 * the first, as soon as it has told this one that it has failed too. If it does not it may be there no more. */
static bool is_repeated(twi_exchange *x, const char *text)
{
    enum { PATIENCE = 3, PAUSE = 1000000 };
    int64_t begin = twi_monotonic_ns();
    pthread_mutex_lock(&x->lock);
    int whose = x->whose;
    bool waits = whose != NOBODY && whose != x->base.task && strstr(text, x->reason), repeated = false;
    pthread_mutex_unlock(&x->lock);
    while (waits && !repeated) {
        int speaker = find_speaker(x, whose);
        bool hears = !x->carrier->pump || !atomic_load(&x->over); /* before the look */
        repeated = speaker != x->base.task && atomic_load(&x->peers[speaker].failed);
        waits = speaker != x->base.task && hears && twi_seconds_since(begin) < PATIENCE;
        if (repeated)
            let_speak(x, speaker, begin, PATIENCE);
        else if (waits)
            twi_sleep_ns(PAUSE);
    }
    return repeated;
}

/* Whoever asks may have failed already, but not by the others. The last look comes when the time is over. */
bool twi_exchange_is_to_say(twi_comm *c, const char *text)
{
    enum { PATIENCE = 1, PAUSE = 1000000, NONE_ELSE = 1 }; /* no text is 0 */
    twi_exchange *x = (twi_exchange *)c;
    uint64_t hash = twi_fingerprint(text, strlen(text)) | NONE_ELSE;
    twi_peer *first = &x->peers[0];
    int64_t begin = twi_monotonic_ns();
    bool waits = c->task != 0;
    for (int i = 1; i < c->tasks && !waits && !atomic_load(&x->failed); i++)
        twi_exchange_mention(x, i, SAID, hash, "", false);
    while (waits && !atomic_load(&x->failed)) {
        /* What it said came before it left. */
        waits = !atomic_load(&first->left) && twi_seconds_since(begin) < PATIENCE;
        if (x->carrier->pump)
            x->carrier->pump(x, 0);
        if (atomic_load(&first->said[hash % TWI_SAID]) == hash)
            return false;
        twi_sleep_ns(PAUSE);
    }
    return !atomic_load(&x->failed) || !is_repeated(x, text);
}

int twi_exchange_say_asked(twi_comm *c, int own)
{
    twi_exchange *x = (twi_exchange *)c;
    atomic_store(&x->asked, own);
    return asked(x);
}

void twi_exchange_abort(twi_comm *c, tw_status status, const char *why)
{
    char named[TWI_REASON];
    snprintf(named, sizeof named, "task %d failed: %s", c->task, why);
    twi_exchange_fail_with((twi_exchange *)c, status, c->task, named);
}

/* ---- the beating thread ------------------------------------------------------------------------------------------ */

/* Those that are done too: they may wait for the others to be so. */
static void beat_once(twi_exchange *x)
{
    for (int i = 0; i < x->base.tasks; i++)
        if (i != x->base.task)
            twi_exchange_mention(x, i, BEAT, (uint64_t)atomic_load(&x->asked), "", false);
}

/* Whether a task knows, or need not; and has told of the same, where later nobody would hear of that. */
static bool has_been_told(const twi_exchange *x, int task)
{
    const twi_peer *p = &x->peers[task];
    bool answers = x->carrier->pump && task != x->base.task && task != x->whose;
    return (p->told && (!answers || atomic_load(&p->failed))) || atomic_load(&p->left) || atomic_load(&p->lost);
}

/* Until all know who are there, or for a second, but once at least: some may have no room. */
void twi_exchange_tell_all(twi_exchange *x)
{
    int64_t begin = twi_monotonic_ns();
    char why[TWI_REASON];
    int missing;
    pthread_mutex_lock(&x->lock);
    uint64_t failure = pack_failure(x->status, x->whose);
    snprintf(why, sizeof why, "%s", x->reason);
    pthread_mutex_unlock(&x->lock);
    bool moves;
    do {
        missing = 0;
        for (int i = 0; i < x->base.tasks; i++) {
            twi_peer *p = &x->peers[i];
            p->told = p->told || i == x->base.task || twi_exchange_mention(x, i, ABORT, failure, why, false);
            missing += !has_been_told(x, i);
        }
        moves = x->carrier->pump && x->carrier->pump(x, -1) != TWI_NOTHING;
        twi_sleep_ns(missing > 0 || moves ? 1000000 : 0);
    } while ((missing > 0 || moves) && twi_seconds_since(begin) < 1);
    pthread_mutex_lock(&x->lock);
    atomic_store(&x->over, true);
    pthread_mutex_unlock(&x->lock);
}

/* Who waits for another task looks itself, and knows what for. Others wait at queues of their own, say. */
static void look_for_silence(twi_exchange *x)
{
    enum { LATER = 1 }; /* seconds */
    int late = find_silent(x, x->base.deadline + LATER);
    if (late >= 0)
        fail_for_silence(x, late, "");
}

/* NULL: all have been told, and who comes now is told when he does. */
static twi_comm_watcher *find_untold(twi_exchange *x)
{
    pthread_mutex_lock(&x->lock);
    twi_comm_watcher *w = x->watchers;
    while (w && w->told)
        w = w->next;
    if (w)
        w->told = true;
    x->told_watchers = !w;
    pthread_mutex_unlock(&x->lock);
    return w;
}

/* Who waits for another task ends by itself meanwhile, and says at which node. */
static void tell_watchers(twi_exchange *x)
{
    const double later = 0.3; /* seconds */
    for (int64_t begin = twi_monotonic_ns(); twi_seconds_since(begin) < later && !atomic_load(&x->closing);)
        twi_sleep_ns(1000000);
    pthread_mutex_lock(&x->watching);
    for (twi_comm_watcher *w; (w = find_untold(x));)
        w->lost(w->user, x->status, x->reason); /* which change no more */
    pthread_mutex_unlock(&x->watching);
}

/* Who watches from now on may hold locks that those who are told take. */
void twi_exchange_watch(twi_comm *c, twi_comm_watcher *w)
{
    twi_exchange *x = (twi_exchange *)c;
    pthread_mutex_lock(&x->lock);
    w->next = x->watchers;
    x->watchers = w;
    bool late = w->told = x->told_watchers;
    pthread_mutex_unlock(&x->lock);
    if (late)
        w->lost(w->user, x->status, x->reason);
}

void twi_exchange_unwatch(twi_comm *c, twi_comm_watcher *w)
{
    twi_exchange *x = (twi_exchange *)c;
    pthread_mutex_lock(&x->watching);
    pthread_mutex_lock(&x->lock);
    for (twi_comm_watcher **at = &x->watchers; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            break;
        }
    pthread_mutex_unlock(&x->lock);
    pthread_mutex_unlock(&x->watching);
}

/* Until all ends, and so long at most: each turn costs those that compute some 30 us of their core. */
static void rest_until_the_end(twi_exchange *x, double seconds)
{
    struct timespec until = twi_time_in(seconds);
    pthread_mutex_lock(&x->lock);
    if (!atomic_load(&x->failed) && !atomic_load(&x->closing))
        pthread_cond_timedwait(&x->ends, &x->lock, &until);
    pthread_mutex_unlock(&x->lock);
}

/* With a carrier that has to be asked: once a millisecond, and more often while it has something under way. */
static void rest(twi_exchange *x, double pause)
{
    enum { TURNS = 4 }; /* between two beats */
    if (!x->carrier->pump)
        rest_until_the_end(x, pause / TURNS);
    else
        twi_sleep_ns(x->carrier->pump(x, -1) != TWI_NOTHING ? 50000 : 1000000);
}

void *twi_exchange_beat(void *argument)
{
    twi_exchange *x = argument;
    double pause = x->base.deadline / 10 < 1 ? x->base.deadline / 10 : 1;
    for (int64_t last = 0; !atomic_load(&x->closing) && !atomic_load(&x->failed); rest(x, pause)) {
        take_turn(x);
        if (twi_seconds_since(last) < pause)
            continue;
        last = twi_monotonic_ns();
        beat_once(x);
        look_for_silence(x);
    }
    if (atomic_load(&x->failed)) {
        twi_exchange_tell_all(x);
        tell_watchers(x);
    }
    return NULL;
}

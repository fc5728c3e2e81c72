/* exchange.c - see exchange.h. Messages wait in queues, by channel, in memory that is used again. */
#define _GNU_SOURCE
#include "comm/exchange.h"

#include "base/clock.h"
#include "base/fingerprint.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MOST_CHANNELS = 1 << 30 }; /* 64 loops within each other have as many, among 16,000 devices */
/* Channels that are no receiver's. */
enum { BEAT = -1, LEAVE = -2, ABORT = -3, TAKEN = -4, END = -5, RENEW = -6, SAID = -7 };
/* In a channel so many messages, or bytes and one message, may be under way or lie where they came; whoever takes them
 * says so at each quarter of that. */
enum { MOST_AHEAD = 256, QUARTER = 4 };
enum { NOBODY = -1 }; /* whose failure is not known */
#define MOST_BYTES_AHEAD (UINT64_C(64) << 20)
#define MOST_BYTES (INT64_C(1) << 40)

static double seconds_since(int64_t ns)
{
    return (double)(twi_coarse_ns() - ns) / 1e9;
}

static void sleep_ns(long ns)
{
    nanosleep(&(struct timespec){0, ns}, NULL);
}

/* ---- failing ----------------------------------------------------------------------------------------------------- */

/* The first reason is kept; the beating thread tells the others. `whose` it is the exchange has. */
static void fail_with(twi_exchange *x, tw_status status, int whose, const char *why)
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
    fail_with(x, TW_ABORTED, x->base.task, why);
}

/* Who hears of it may end at once, and the others would take that for what has happened first: they are told before,
 * but where messages move only while somebody asks, which takes its time. */
static void wait_until_told(twi_exchange *x)
{
    while (!x->carrier->pump && x->beating && !atomic_load(&x->over) && !atomic_load(&x->closing))
        sleep_ns(100000);
}

static tw_status say_reason(twi_exchange *x, tw_error *error)
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
    fail_with(x, TW_ABORTED, from, why);
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
    fail_with(x, TW_ABORTED, late, why);
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
    double waited = seconds_since(begin_ns);
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

/* ---- channels and lanes ------------------------------------------------------------------------------------------ */

static void fail_for_memory(twi_exchange *x)
{
    char why[TWI_REASON];
    snprintf(why, sizeof why, "task %d has no memory left for messages of the others", x->base.task);
    twi_exchange_fail(x, why);
}

/* -1: one that does not end. */
static int lane_of(const twi_exchange *x, int channel)
{
    int among = channel - TWI_CHANNEL_OF_LANES, width = among < 0 ? 0 : atomic_load(&x->base.lane_channels);
    return width > 0 ? among / width : -1;
}

/* With the lock. NULL: memory has run out. */
static twi_lane *find_lane(twi_peer *p, int number)
{
    twi_lane **bucket = &p->lanes[(unsigned)number % TWI_BUCKETS], *lane = *bucket;
    while (lane && lane->number != number)
        lane = lane->next;
    if (!lane && (lane = twi_alloc(sizeof *lane))) {
        *lane = (twi_lane){.next = *bucket, .number = number};
        *bucket = lane;
    }
    return lane;
}

/* Whether what comes is of before it was begun anew here: the other task is not so far. With the lock. */
static bool is_old(const twi_lane *lane)
{
    return (int)(lane->renewals - lane->renewed) < 0;
}

static twi_channel *find_in(_Atomic(twi_channel *) *bucket, int number)
{
    twi_channel *c = atomic_load_explicit(bucket, memory_order_acquire);
    while (c && c->number != number)
        c = c->next;
    return c;
}

/* With the lock. */
static twi_channel *add_channel(twi_exchange *x, int task, int number, _Atomic(twi_channel *) *bucket)
{
    twi_lane *lane = find_lane(&x->peers[task], lane_of(x, number));
    twi_channel *c = lane ? twi_alloc(sizeof *c) : NULL;
    if (!c)
        return NULL;
    *c = (twi_channel){.next = atomic_load(bucket), .next_in_lane = lane->channels, .lane = lane, .number = number};
    lane->channels = c;
    atomic_store_explicit(bucket, c, memory_order_release);
    return c;
}

/* NULL: memory has run out, and all has failed. */
static twi_channel *find_channel(twi_exchange *x, int task, int number)
{
    _Atomic(twi_channel *) *bucket = &x->peers[task].channels[(unsigned)number % TWI_BUCKETS];
    twi_channel *c = find_in(bucket, number);
    if (c)
        return c;
    pthread_mutex_lock(&x->lock);
    if (!(c = find_in(bucket, number)))
        c = add_channel(x, task, number, bucket);
    pthread_mutex_unlock(&x->lock);
    if (!c)
        fail_for_memory(x);
    return c;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* What a waiter does that has pumped in vain since then: soon pauses that grow with the wait. As parts of the wait, so
 * that two that wait for each other do not keep each other asleep. Where it is crowded it leaves its core at once. */
static void pause_for(const twi_exchange *x, int64_t begin_ns, twi_progress progress)
{
    enum { SPINS = 20000, AWAKE = 1000000, SHARE = 8, SHORT = 50000, LONGEST = 100000 };
    if (progress == TWI_CAME)
        return;
    if (twi_exchange_is_crowded(x))
        return sleep_ns(SHORT);
    int64_t waited = twi_monotonic_ns() - begin_ns;
    if (waited < SPINS || progress == TWI_COMING)
        return; /* a yield takes longer than a message */
    if (waited < AWAKE)
        sched_yield();
    else
        sleep_ns(waited < LONGEST * SHARE ? (long)(waited / SHARE) : LONGEST);
}

static void pump_for(twi_exchange *x, int task, int times, int64_t begin)
{
    enum { SPINS = 50 };
    twi_progress progress = x->carrier->pump(x, task);
    if (times >= SPINS)
        pause_for(x, begin, progress);
}

/* Until something has come, for a tenth of a second at most, unless `there` says that it has. */
static void sleep_for(twi_exchange *x, bool (*there)(const twi_channel *c), const twi_channel *c)
{
    struct timespec until = twi_time_in(0.1);
    pthread_mutex_lock(&x->lock);
    if (!there(c) && !atomic_load(&x->failed))
        pthread_cond_timedwait(&x->changed, &x->lock, &until);
    pthread_mutex_unlock(&x->lock);
}

static bool looks(int times)
{
    enum { LOOKS = 16 }; /* for what is awaited, between two for who is there */
    return times % LOOKS == LOOKS - 1;
}

/* Now and then whoever waits looks who is there: that may end all. */
static bool may_wait(twi_exchange *x, int task, const char *what, int times, int64_t begin)
{
    return !looks(times) || twi_exchange_goes_on(x, begin, what, task);
}

void twi_exchange_wait(twi_exchange *x, int task, const char *what, int times, int64_t begin)
{
    if (may_wait(x, task, what, times, begin))
        pump_for(x, task, times, begin);
}

static int asked(const twi_exchange *x)
{
    int number = atomic_load(&x->asked);
    for (int i = 0; i < x->base.tasks && !number; i++)
        number = atomic_load(&x->peers[i].asked);
    return number;
}

/* A step that waits hears of a request to end, too: what others need for theirs it gives them, and then does not wait
 * for as long as one that nobody wants to end. */
static void end_if_asked(twi_exchange *x, int task, const char *what, int64_t begin)
{
    enum { TIMES = 2 };
    char why[TWI_REASON], awaited[250];
    int number = asked(x);
    long long now = twi_coarse_ns(), since = 0;
    if (!number || atomic_compare_exchange_strong(&x->asked_ns, &since, now))
        return;
    double longest = TIMES * (double)atomic_load(&x->longest_ns) / 1e9, waited = seconds_since(begin);
    longest = longest > x->base.deadline ? longest : x->base.deadline;
    if (waited < longest || seconds_since(since) < longest)
        return;
    name_awaited(awaited, sizeof awaited, what, task);
    snprintf(why, sizeof why, "asked to end by signal %d, but task %d has waited %.0f s for %s, which is there but %s",
             number, x->base.task, waited, awaited, what ? "does not send it" : "does not take what it is sent");
    fail_with(x, TW_DEADLINE_EXCEEDED, x->base.task, why);
}

/* What steps take, where that is longer than the deadline. */
static void note_wait(twi_exchange *x, int64_t begin)
{
    if (!begin || !atomic_load(&x->warned))
        return;
    long long waited = twi_monotonic_ns() - begin, longest = atomic_load(&x->longest_ns);
    while (waited > longest && !atomic_compare_exchange_strong(&x->longest_ns, &longest, waited))
        ;
}

/* The same, whoever carries. */
static void wait_for_task(twi_exchange *x, int task, const char *what, bool (*there)(const twi_channel *c),
                          const twi_channel *c, int times, int64_t begin)
{
    if (c->lane->number >= 0 && looks(times))
        end_if_asked(x, task, what, begin);
    if (x->carrier->pump)
        twi_exchange_wait(x, task, what, times, begin);
    else if (may_wait(x, task, what, times, begin))
        sleep_for(x, there, c);
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* What is not for a receiver. */
static bool mention(twi_exchange *x, int to, int channel, uint64_t number, const char *text, bool patient)
{
    twi_header header = {TWI_MAGIC, channel, strlen(text), number};
    return x->carrier->put(x, to, &header, text, patient);
}

/* What has ended is said of by its lane. */
static tw_status say_ended(const twi_channel *c, tw_error *error)
{
    tw_status status = (tw_status)atomic_load(&c->lane->ended);
    return status == TW_OK ? TW_OK : twi_fail(error, status, "%s", c->lane->why ? c->lane->why : "it has ended");
}

static uint64_t look_at(const atomic_ullong *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

/* Of a number that one thread alone changes. */
static void add_to(atomic_ullong *number, uint64_t more)
{
    atomic_store_explicit(number, look_at(number) + more, memory_order_relaxed);
}

static bool may_send(const twi_channel *c)
{
    return look_at(&c->sent.messages) - look_at(&c->known.messages) < MOST_AHEAD &&
           look_at(&c->sent.bytes) - look_at(&c->known.bytes) <= MOST_BYTES_AHEAD;
}

/* Waits until a message may be sent, and counts it: *number is the one that it has. False: all has failed, or the
 * channel has ended. */
static bool begin_sending(twi_exchange *x, int to, int channel, size_t bytes, uint64_t *number, tw_error *error)
{
    int64_t begin = 0;
    twi_channel *c = find_channel(x, to, channel);
    for (int times = 0; c && !atomic_load(&x->failed); times++) {
        bool may = may_send(c) || atomic_load(&x->peers[to].left); /* who has left is told of below */
        if (say_ended(c, error) != TW_OK)
            return false;
        if (may) {
            note_wait(x, begin);
            *number = look_at(&c->sent.messages) % TWI_NUMBERS;
            add_to(&c->sent.messages, 1);
            add_to(&c->sent.bytes, bytes);
            return true;
        }
        begin = begin ? begin : twi_monotonic_ns();
        wait_for_task(x, to, NULL, may_send, c, times, begin);
    }
    say_reason(x, error);
    return false;
}

static tw_status send_message(twi_comm *c, int to, int channel, const void *data, size_t bytes, tw_error *error)
{
    twi_exchange *x = (twi_exchange *)c;
    char why[TWI_REASON];
    twi_header header = {TWI_MAGIC, channel, bytes, 0};
    tw_error own;
    error = error ? error : &own;
    if (!begin_sending(x, to, channel, bytes, &header.number, error))
        return error->status;
    if (x->carrier->put(x, to, &header, data, true))
        return TW_OK;
    snprintf(why, sizeof why, "task %d has ended: task %d could not send it a message", to, c->task);
    fail_with(x, TW_ABORTED, to, why);
    return say_reason(x, error);
}

/* ---- taking in --------------------------------------------------------------------------------------------------- */

/* Of those that were taken, if one is large enough. With the lock. */
static twi_message *take_spare(twi_channel *c, size_t bytes)
{
    twi_message **at = &c->spare, *found;
    while (*at && (*at)->room < bytes)
        at = &(*at)->next;
    if ((found = *at))
        *at = found->next;
    return found;
}

static void give_back(twi_exchange *x, twi_message *m)
{
    pthread_mutex_lock(&x->lock);
    m->next = m->channel->spare;
    m->channel->spare = m;
    pthread_mutex_unlock(&x->lock);
}

void twi_exchange_drop(twi_exchange *x, twi_message *m)
{
    (void)x;
    if (m == &m->channel->direct)
        atomic_store(&m->channel->place, TWI_WANTED);
    else
        twi_free(m);
}

static bool is_message(const twi_header *h)
{
    return h->magic == TWI_MAGIC && h->channel >= SAID && h->channel < MOST_CHANNELS &&
           h->bytes <= (uint64_t)(h->channel < 0 ? TWI_REASON - 1 : MOST_BYTES);
}

static bool change_place(twi_channel *c, twi_place from, twi_place to)
{
    int place = from;
    return atomic_compare_exchange_strong(&c->place, &place, to);
}

/* NULL: nobody waits for this one, or it comes out of turn. */
static twi_message *lend_direct(twi_channel *c, const twi_header *h)
{
    bool next = !atomic_load(&c->first) && c->came % TWI_NUMBERS == h->number;
    if (!next || !change_place(c, TWI_WANTED, TWI_LENT))
        return NULL;
    if (c->direct.bytes == h->bytes)
        return &c->direct;
    atomic_store(&c->place, TWI_WANTED);
    return NULL;
}

/* For one that nobody waits for. NULL: memory has run out. */
static twi_message *find_room(twi_exchange *x, twi_channel *c, size_t bytes)
{
    pthread_mutex_lock(&x->lock);
    twi_message *m = take_spare(c, bytes);
    pthread_mutex_unlock(&x->lock);
    if (!m && (m = twi_alloc(sizeof *m + bytes)))
        *m = (twi_message){.room = bytes, .data = (char *)(m + 1), .channel = c};
    if (m)
        m->bytes = bytes;
    else
        fail_for_memory(x);
    return m;
}

twi_message *twi_exchange_room(twi_exchange *x, int from, const twi_header *h)
{
    if (!is_message(h))
        return twi_exchange_spoiled(x, from), NULL;
    twi_channel *c = find_channel(x, from, h->channel);
    twi_message *m = c ? lend_direct(c, h) : NULL;
    return c && !m ? find_room(x, c, (size_t)h->bytes) : m;
}

void twi_exchange_heard(twi_exchange *x, int from)
{
    atomic_store_explicit(&x->peers[from].heard_ns, twi_coarse_ns(), memory_order_relaxed);
}

/* The other task has taken so much more of what it was sent in a channel. */
static void heed_taken(twi_exchange *x, int from, const twi_header *h, const twi_message *m)
{
    twi_flow more = {0};
    bool sensible = m->bytes == sizeof more && h->number < MOST_CHANNELS;
    twi_channel *c = sensible ? find_channel(x, from, (int)h->number) : NULL;
    if (c) {
        memcpy(&more, m->data, sizeof more);
        pthread_mutex_lock(&x->lock);
        bool old = is_old(c->lane);
        sensible = old || (more.messages <= look_at(&c->sent.messages) - look_at(&c->known.messages) &&
                           more.bytes <= look_at(&c->sent.bytes) - look_at(&c->known.bytes));
        add_to(&c->known.messages, sensible && !old ? more.messages : 0);
        add_to(&c->known.bytes, sensible && !old ? more.bytes : 0);
        pthread_mutex_unlock(&x->lock);
    }
    if (!sensible)
        twi_exchange_spoiled(x, from);
}

/* A lane, and a status, as the number of a message has them. */
static uint64_t pack_lane(int lane, tw_status status)
{
    return (uint64_t)lane | (uint64_t)status << 32;
}

/* false: no lane, or no status. */
static bool unpack_lane(const twi_exchange *x, uint64_t number, int *lane, tw_status *status)
{
    uint64_t first = number & UINT32_MAX, end = number >> 32;
    bool sensible = end <= TW_DATA_LOSS && first <= (uint64_t)lane_of(x, MOST_CHANNELS - 1);
    *lane = sensible ? (int)first : 0;
    *status = sensible ? (tw_status)end : TW_OK;
    return sensible && atomic_load(&x->base.lane_channels) > 0;
}

static void end_lane(twi_exchange *x, int peer, int number, tw_status status, const char *why)
{
    pthread_mutex_lock(&x->lock);
    twi_lane *lane = find_lane(&x->peers[peer], number);
    if (lane && !is_old(lane) && atomic_load(&lane->ended) == TW_OK) {
        lane->why = twi_strdup(why);
        atomic_store(&lane->ended, status);
    }
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->lock);
    if (!lane)
        fail_for_memory(x);
}

/* What was left in it is of no use. Nobody waits here. With the lock. */
static void empty_channel(twi_channel *c)
{
    for (twi_message *m; (m = c->first);) {
        c->first = m->next;
        m->next = c->spare;
        c->spare = m;
    }
}

/* The other task sends nothing more that is of before, and nothing new until this one has said the same. What has come
 * is still taken where this one is not so far. */
static void heed_renewal(twi_exchange *x, int from, int number)
{
    pthread_mutex_lock(&x->lock);
    twi_lane *lane = find_lane(&x->peers[from], number);
    for (twi_channel *c = lane ? lane->channels : NULL; c; c = c->next_in_lane) {
        if (is_old(lane))
            empty_channel(c);
        c->came = 0;
    }
    if (lane)
        lane->renewals++;
    pthread_mutex_unlock(&x->lock);
    if (!lane)
        fail_for_memory(x);
}

static void heed_lane(twi_exchange *x, int from, const twi_header *h, const char *why)
{
    int lane;
    tw_status status;
    if (!unpack_lane(x, h->number, &lane, &status) || (h->channel == END) != (status != TW_OK))
        twi_exchange_spoiled(x, from);
    else if (h->channel == END)
        end_lane(x, from, lane, status, why);
    else
        heed_renewal(x, from, lane);
}

/* A status, and whose failure it is, as the number of a message has them. */
static uint64_t pack_failure(tw_status status, int whose)
{
    return (uint64_t)status | (uint64_t)(whose - NOBODY) << 32;
}

static void heed_abort(twi_exchange *x, int from, uint64_t number, const char *why)
{
    uint64_t status = number & UINT32_MAX, whose = number >> 32;
    atomic_store(&x->peers[from].failed, true);
    fail_with(x, status > TW_OK && status <= TW_DATA_LOSS ? (tw_status)status : TW_ABORTED,
              whose <= (uint64_t)x->base.tasks ? (int)whose + NOBODY : NOBODY, why);
}

/* What is not for a receiver. */
static void heed(twi_exchange *x, int from, const twi_header *h, twi_message *m)
{
    char text[TWI_REASON];
    memcpy(text, m->data, m->bytes);
    text[m->bytes] = 0;
    if (h->channel == TAKEN)
        heed_taken(x, from, h, m);
    if (h->channel == ABORT)
        heed_abort(x, from, h->number, text);
    if (h->channel == LEAVE)
        atomic_store(&x->peers[from].left, true);
    if (h->channel == END || h->channel == RENEW)
        heed_lane(x, from, h, text);
    if (h->channel == BEAT && h->number <= INT32_MAX)
        atomic_store(&x->peers[from].asked, (int)h->number);
    if (h->channel == SAID)
        atomic_store(&x->peers[from].said[h->number % TWI_SAID], h->number);
    give_back(x, m);
}

static void append(twi_exchange *x, twi_message *m)
{
    twi_channel *c = m->channel;
    m->next = NULL;
    pthread_mutex_lock(&x->lock);
    if (c->first)
        c->last->next = m;
    else
        c->first = m;
    c->last = m;
    pthread_mutex_unlock(&x->lock);
}

/* One that is missing, or comes twice, shows by the number of the next. */
static void check_number(twi_exchange *x, int from, const twi_header *h, uint64_t due)
{
    char why[TWI_REASON];
    if (h->number == due)
        return;
    snprintf(why, sizeof why, "task %d has sent message %" PRIu64 " to task %d where %" PRIu64 " was due", from,
             h->number, x->base.task, due);
    twi_exchange_fail(x, why);
}

/* For a receiver, who may have it from here on. */
static void hand_over(twi_exchange *x, int from, const twi_header *h, twi_message *m)
{
    twi_channel *c = m->channel;
    uint64_t due = c->came++ % TWI_NUMBERS;
    if (m == &c->direct)
        atomic_store_explicit(&c->place, TWI_FILLED, memory_order_release);
    else
        append(x, m);
    check_number(x, from, h, due);
}

void twi_exchange_hand_in(twi_exchange *x, int from, const twi_header *h, twi_message *m)
{
    twi_exchange_heard(x, from);
    if (h->channel < 0)
        heed(x, from, h, m);
    else
        hand_over(x, from, h, m);
    if (x->carrier->pump) /* who waits looks itself */
        return;
    pthread_mutex_lock(&x->lock);
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->lock);
}

void twi_exchange_take(twi_exchange *x, int from, const twi_header *h, const void *data)
{
    twi_message *m = twi_exchange_room(x, from, h);
    if (!m)
        return;
    memcpy(m->data, data, m->bytes);
    twi_exchange_hand_in(x, from, h, m);
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

static bool has_come(const twi_channel *c)
{
    return atomic_load(&c->place) == TWI_FILLED || c->first || atomic_load(&c->lane->ended) != TW_OK;
}

static twi_message *pop(twi_exchange *x, twi_channel *c)
{
    pthread_mutex_lock(&x->lock);
    twi_message *m = c->first;
    c->first = m->next;
    pthread_mutex_unlock(&x->lock);
    return m;
}

/* One that was on its way before it was waited for is not in its place, and the one behind it is not for that place. */
static twi_message *take_first(twi_exchange *x, twi_channel *c)
{
    if (atomic_load(&c->first))
        change_place(c, TWI_WANTED, TWI_FREE);
    int place = atomic_load_explicit(&c->place, memory_order_acquire);
    if (place != TWI_FILLED)
        return place == TWI_FREE && atomic_load(&c->first) ? pop(x, c) : NULL;
    atomic_store_explicit(&c->place, TWI_FREE, memory_order_relaxed);
    return &c->direct;
}

static void fail_for_left(twi_exchange *x, int task, const char *what)
{
    char why[TWI_REASON];
    snprintf(why, sizeof why, "task %d has left; task %d waited for %.200s of it", task, x->base.task, what);
    fail_with(x, TW_ABORTED, task, why);
}

/* The next message, taken out; NULL: all has failed, or the channel has ended. */
static twi_message *take_out(twi_exchange *x, int from, twi_channel *c, const char *what)
{
    int64_t begin = 0;
    twi_peer *p = &x->peers[from];
    for (int times = 0; c && !atomic_load(&x->failed); times++) {
        bool left = atomic_load(&p->left); /* before the look: what it sent came before that */
        bool ended = atomic_load(&c->lane->ended) != TW_OK;
        twi_message *m = take_first(x, c);
        if (m || ended) {
            note_wait(x, begin);
            return m;
        }
        begin = begin ? begin : twi_monotonic_ns();
        if (left)
            fail_for_left(x, from, what);
        else
            wait_for_task(x, from, what, has_come, c, times, begin);
    }
    return NULL;
}

/* The channel, where the next message may come straight to its place. NULL: memory has run out, and all has failed. */
static twi_channel *begin_waiting(twi_exchange *x, int task, int number, void *data, size_t bytes)
{
    twi_channel *c = find_channel(x, task, number);
    if (c && data && !atomic_load(&c->first)) {
        c->direct = (twi_message){.channel = c, .data = data, .bytes = bytes};
        atomic_store_explicit(&c->place, TWI_WANTED, memory_order_release);
    }
    return c;
}

/* The message has not come, and will not: nobody writes to its place any more, but who is not called any more. */
static void end_waiting(twi_exchange *x, twi_channel *c)
{
    while (!change_place(c, TWI_WANTED, TWI_FREE) && atomic_load(&c->place) == TWI_LENT &&
           !(x->carrier->pump && atomic_load(&x->over)))
        sleep_ns(1000000);
    atomic_store(&c->place, TWI_FREE);
}

/* A message has been taken: the sender is told when there are enough of them. One thread at a time takes from a
 * channel, and only that looks at these numbers. */
static void count_taken(twi_exchange *x, int from, twi_channel *c, size_t bytes)
{
    c->taken = (twi_flow){c->taken.messages + 1, c->taken.bytes + bytes};
    twi_flow more = {c->taken.messages - c->told.messages, c->taken.bytes - c->told.bytes};
    if (more.messages < MOST_AHEAD / QUARTER && more.bytes < MOST_BYTES_AHEAD / QUARTER)
        return;
    c->told = c->taken;
    twi_header header = {TWI_MAGIC, TAKEN, sizeof more, (uint64_t)c->number};
    x->carrier->put(x, from, &header, &more, true); /* who has left need not know */
}

static tw_status receive_message(twi_comm *comm, int from, int channel, void *data, size_t bytes, const char *what,
                                 tw_error *error)
{
    twi_exchange *x = (twi_exchange *)comm;
    char why[TWI_REASON];
    twi_channel *c = begin_waiting(x, from, channel, data, bytes);
    twi_message *m = take_out(x, from, c, what);
    if (c && !m)
        end_waiting(x, c);
    if (!m)
        return c && !atomic_load(&x->failed) ? say_ended(c, error) : say_reason(x, error);
    count_taken(x, from, c, m->bytes);
    if (m == &c->direct)
        return TW_OK;
    bool fits = m->bytes == bytes;
    if (!fits)
        snprintf(why, sizeof why, "task %d has sent %zu bytes where task %d expected %zu: %.200s", from, m->bytes,
                 comm->task, bytes, what);
    else if (bytes)
        memcpy(data, m->data, bytes);
    give_back(x, m);
    if (fits)
        return TW_OK;
    twi_exchange_fail(x, why);
    return say_reason(x, error);
}

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
    while (x->carrier->pump && !atomic_load(&x->peers[speaker].lost) && seconds_since(begin) < patience) {
        x->carrier->pump(x, -1);
        sleep_ns(PAUSE);
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
        waits = speaker != x->base.task && hears && seconds_since(begin) < PATIENCE;
        if (repeated)
            let_speak(x, speaker, begin, PATIENCE);
        else if (waits)
            sleep_ns(PAUSE);
    }
    return repeated;
}

/* Whoever asks may have failed already, but not by the others. The last look comes when the time is over. */
static bool is_to_say(twi_comm *c, const char *text)
{
    enum { PATIENCE = 1, PAUSE = 1000000, NONE_ELSE = 1 }; /* no text is 0 */
    twi_exchange *x = (twi_exchange *)c;
    uint64_t hash = twi_fingerprint(text, strlen(text)) | NONE_ELSE;
    twi_peer *first = &x->peers[0];
    int64_t begin = twi_monotonic_ns();
    bool waits = c->task != 0;
    for (int i = 1; i < c->tasks && !waits && !atomic_load(&x->failed); i++)
        mention(x, i, SAID, hash, "", false);
    while (waits && !atomic_load(&x->failed)) {
        waits = !atomic_load(&first->left) && seconds_since(begin) < PATIENCE; /* what it said came before it left */
        if (x->carrier->pump)
            x->carrier->pump(x, 0);
        if (atomic_load(&first->said[hash % TWI_SAID]) == hash)
            return false;
        sleep_ns(PAUSE);
    }
    return !atomic_load(&x->failed) || !is_repeated(x, text);
}

static int say_asked(twi_comm *c, int own)
{
    twi_exchange *x = (twi_exchange *)c;
    atomic_store(&x->asked, own);
    return asked(x);
}

static void abort_all(twi_comm *c, tw_status status, const char *why)
{
    char named[TWI_REASON];
    snprintf(named, sizeof named, "task %d failed: %s", c->task, why);
    fail_with((twi_exchange *)c, status, c->task, named);
}

static void end_lane_of_all(twi_comm *c, int lane, tw_status status, const char *why)
{
    twi_exchange *x = (twi_exchange *)c;
    char text[TWI_REASON];
    snprintf(text, sizeof text, "%s", why);
    for (int i = 0; i < c->tasks; i++)
        if (i != c->task) {
            mention(x, i, END, pack_lane(lane, status), text, true);
            end_lane(x, i, lane, status, text);
        }
}

static void forget_flow(twi_shared_flow *flow)
{
    atomic_store(&flow->messages, 0);
    atomic_store(&flow->bytes, 0);
}

/* This task's part in it: nobody here is at the channels. */
static void begin_anew(twi_exchange *x, int peer, int number)
{
    pthread_mutex_lock(&x->lock);
    twi_lane *lane = find_lane(&x->peers[peer], number);
    for (twi_channel *c = lane ? lane->channels : NULL; c; c = c->next_in_lane) {
        c->taken = c->told = (twi_flow){0};
        forget_flow(&c->sent);
        forget_flow(&c->known);
        if (lane->renewals != lane->renewed)
            empty_channel(c); /* nothing more of before will come */
    }
    if (lane) {
        atomic_store(&lane->ended, TW_OK);
        twi_free(lane->why);
        lane->why = NULL;
        lane->renewed++;
    }
    pthread_mutex_unlock(&x->lock);
    if (!lane)
        fail_for_memory(x);
}

static bool has_renewed(const twi_channel *c)
{
    return !is_old(c->lane);
}

/* By a channel of it, as one waits for what comes there. */
static bool wait_for_renewal(twi_exchange *x, int peer, int lane, const char *what)
{
    int64_t begin = twi_monotonic_ns();
    twi_channel *c = find_channel(x, peer, TWI_CHANNEL_OF_LANES + lane * atomic_load(&x->base.lane_channels));
    for (int times = 0; c && !atomic_load(&x->failed); times++) {
        bool left = atomic_load(&x->peers[peer].left);
        pthread_mutex_lock(&x->lock);
        bool done = has_renewed(c);
        pthread_mutex_unlock(&x->lock);
        if (done)
            return true;
        if (left)
            fail_for_left(x, peer, what);
        else
            wait_for_task(x, peer, what, has_renewed, c, times, begin);
    }
    return false;
}

static tw_status renew_lane(twi_comm *comm, int lane, const char *what, tw_error *error)
{
    twi_exchange *x = (twi_exchange *)comm;
    bool all = true;
    for (int i = 0; i < comm->tasks; i++)
        if (i != comm->task) {
            begin_anew(x, i, lane);
            mention(x, i, RENEW, pack_lane(lane, TW_OK), "", true);
        }
    for (int i = 0; i < comm->tasks && all; i++)
        all = i == comm->task || wait_for_renewal(x, i, lane, what);
    return all ? TW_OK : say_reason(x, error);
}

/* ---- the beating thread ------------------------------------------------------------------------------------------ */

/* Those that are done too: they may wait for the others to be so. */
static void beat_once(twi_exchange *x)
{
    for (int i = 0; i < x->base.tasks; i++)
        if (i != x->base.task)
            mention(x, i, BEAT, (uint64_t)atomic_load(&x->asked), "", false);
}

/* Whether a task knows, or need not; and has told of the same, where later nobody would hear of that. */
static bool has_been_told(const twi_exchange *x, int task)
{
    const twi_peer *p = &x->peers[task];
    bool answers = x->carrier->pump && task != x->base.task && task != x->whose;
    return (p->told && (!answers || atomic_load(&p->failed))) || atomic_load(&p->left) || atomic_load(&p->lost);
}

/* Until all know who are there, or for a second, but once at least: some may have no room. */
static void tell_all(twi_exchange *x)
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
            p->told = p->told || i == x->base.task || mention(x, i, ABORT, failure, why, false);
            missing += !has_been_told(x, i);
        }
        moves = x->carrier->pump && x->carrier->pump(x, -1) != TWI_NOTHING;
        sleep_ns(missing > 0 || moves ? 1000000 : 0);
    } while ((missing > 0 || moves) && seconds_since(begin) < 1);
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

/* Who waits for another task ends by itself meanwhile, and says at which node. */
static void tell_watchers(twi_exchange *x)
{
    const double later = 0.3; /* seconds */
    for (int64_t begin = twi_monotonic_ns(); seconds_since(begin) < later && !atomic_load(&x->closing);)
        sleep_ns(1000000);
    pthread_mutex_lock(&x->watching);
    for (twi_comm_watcher *w = x->watchers; w; w = w->next)
        w->lost(w->user, x->status, x->reason); /* which change no more */
    x->told_watchers = true;
    pthread_mutex_unlock(&x->watching);
}

static void watch(twi_comm *c, twi_comm_watcher *w)
{
    twi_exchange *x = (twi_exchange *)c;
    pthread_mutex_lock(&x->watching);
    w->next = x->watchers;
    x->watchers = w;
    if (x->told_watchers)
        w->lost(w->user, x->status, x->reason);
    pthread_mutex_unlock(&x->watching);
}

static void unwatch(twi_comm *c, twi_comm_watcher *w)
{
    twi_exchange *x = (twi_exchange *)c;
    pthread_mutex_lock(&x->watching);
    for (twi_comm_watcher **at = &x->watchers; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            break;
        }
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
        sleep_ns(x->carrier->pump(x, -1) != TWI_NOTHING ? 50000 : 1000000);
}

static void *beat(void *argument)
{
    twi_exchange *x = argument;
    double pause = x->base.deadline / 10 < 1 ? x->base.deadline / 10 : 1;
    for (int64_t last = 0; !atomic_load(&x->closing) && !atomic_load(&x->failed); rest(x, pause)) {
        take_turn(x);
        if (seconds_since(last) < pause)
            continue;
        last = twi_monotonic_ns();
        beat_once(x);
        look_for_silence(x);
    }
    if (atomic_load(&x->failed)) {
        tell_all(x);
        tell_watchers(x);
    }
    return NULL;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* -1: all others have left. */
static int find_staying(const twi_exchange *x)
{
    for (int i = 0; i < x->base.tasks; i++)
        if (i != x->base.task && !atomic_load(&x->peers[i].left))
            return i;
    return -1;
}

/* Says that this task is done. Where messages move only while somebody asks, it waits for the others to say so. */
static void leave(twi_exchange *x)
{
    int64_t begin = twi_monotonic_ns();
    for (int i = 0; i < x->base.tasks; i++)
        if (i != x->base.task)
            mention(x, i, LEAVE, 0, "", true);
    for (int times = 0, task; x->carrier->pump && (task = find_staying(x)) >= 0 && !atomic_load(&x->failed); times++)
        twi_exchange_wait(x, task, "the end", times, begin);
}

static void close_exchange(twi_comm *c)
{
    twi_exchange *x = (twi_exchange *)c;
    pthread_mutex_lock(&x->lock);
    atomic_store(&x->closing, true);
    pthread_cond_signal(&x->ends);
    pthread_mutex_unlock(&x->lock);
    if (x->beating)
        pthread_join(x->beats, NULL);
    if (x->beating && !atomic_load(&x->failed))
        leave(x);
    if (x->beating && atomic_load(&x->failed) && !atomic_load(&x->over))
        tell_all(x); /* what has failed since nobody beats */
    x->carrier->close(x);
}

static const twi_comm_ops exchange_ops = {send_message, receive_message, end_lane_of_all, renew_lane,
                                          is_to_say,    say_asked,       abort_all,       watch,
                                          unwatch,      close_exchange};

tw_status twi_exchange_init(twi_exchange *x, const twi_carrier_ops *carrier, int task, int tasks, double deadline,
                            tw_error *error)
{
    pthread_condattr_t monotonic;
    x->base = (twi_comm){.ops = &exchange_ops, .task = task, .tasks = tasks, .deadline = deadline};
    x->carrier = carrier;
    x->peers = twi_alloc_array((size_t)tasks, sizeof *x->peers);
    if (!x->peers)
        return twi_fail_memory(error, "joining the other tasks");
    pthread_mutex_init(&x->lock, NULL);
    pthread_mutex_init(&x->watching, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&x->changed, &monotonic);
    pthread_cond_init(&x->ends, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (int i = 0; i < tasks; i++)
        twi_exchange_heard(x, i);
    atomic_store(&x->turn_ns, twi_coarse_ns());
    return TW_OK;
}

tw_status twi_exchange_start(twi_exchange *x, tw_error *error)
{
    tw_status status = twi_thread_start(&x->beats, "tower-beat", NULL, 0, beat, x, error);
    x->beating = status == TW_OK;
    return status;
}

static void free_messages(twi_message *m)
{
    for (twi_message *next; m; m = next) {
        next = m->next;
        twi_free(m);
    }
}

static void free_channels(twi_peer *p)
{
    for (int i = 0; i < TWI_BUCKETS; i++)
        for (twi_channel *c = p->channels[i], *next; c; c = next) {
            next = c->next;
            free_messages(c->first);
            free_messages(c->spare);
            twi_free(c);
        }
}

static void free_lanes(twi_peer *p)
{
    for (int i = 0; i < TWI_BUCKETS; i++)
        for (twi_lane *lane = p->lanes[i], *next; lane; lane = next) {
            next = lane->next;
            twi_free(lane->why);
            twi_free(lane);
        }
}

void twi_exchange_clear(twi_exchange *x)
{
    if (!x->peers)
        return;
    for (int i = 0; i < x->base.tasks; i++) {
        free_channels(&x->peers[i]);
        free_lanes(&x->peers[i]);
    }
    twi_free(x->peers);
    pthread_cond_destroy(&x->changed);
    pthread_cond_destroy(&x->ends);
    pthread_mutex_destroy(&x->lock);
    pthread_mutex_destroy(&x->watching);
}

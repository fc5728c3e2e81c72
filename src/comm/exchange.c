/* exchange.c - see exchange.h. Messages wait in queues, by channel, in memory that is used again. */
#define _GNU_SOURCE
#include "comm/failure.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { MOST_CHANNELS = 1 << 30 }; /* 64 loops within each other have as many, among 16,000 devices */
/* In a channel so many messages, or bytes and one message, may be under way or lie where they came; whoever takes them
 * says so at each quarter of that. */
enum { MOST_AHEAD = 256, QUARTER = 4 };
#define MOST_BYTES_AHEAD (UINT64_C(64) << 20)
#define MOST_BYTES (INT64_C(1) << 40)

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
        return twi_sleep_ns(SHORT);
    int64_t waited = twi_monotonic_ns() - begin_ns;
    if (waited < SPINS || progress == TWI_COMING)
        return; /* a yield takes longer than a message */
    if (waited < AWAKE)
        sched_yield();
    else
        twi_sleep_ns(waited < LONGEST * SHARE ? (long)(waited / SHARE) : LONGEST);
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

/* The same, whoever carries. */
static void wait_for_task(twi_exchange *x, int task, const char *what, bool (*there)(const twi_channel *c),
                          const twi_channel *c, int times, int64_t begin)
{
    if (c->lane->number >= 0 && looks(times))
        twi_exchange_end_if_asked(x, task, what, begin);
    if (x->carrier->pump)
        twi_exchange_wait(x, task, what, times, begin);
    else if (may_wait(x, task, what, times, begin))
        sleep_for(x, there, c);
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

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
            twi_exchange_note_wait(x, begin);
            *number = look_at(&c->sent.messages) % TWI_NUMBERS;
            add_to(&c->sent.messages, 1);
            add_to(&c->sent.bytes, bytes);
            return true;
        }
        begin = begin ? begin : twi_monotonic_ns();
        wait_for_task(x, to, NULL, may_send, c, times, begin);
    }
    twi_exchange_say_reason(x, error);
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
    twi_exchange_fail_with(x, TW_ABORTED, to, why);
    return twi_exchange_say_reason(x, error);
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

/* What is not for a receiver. */
static void heed(twi_exchange *x, int from, const twi_header *h, twi_message *m)
{
    char text[TWI_REASON];
    memcpy(text, m->data, m->bytes);
    text[m->bytes] = 0;
    if (h->channel == TAKEN)
        heed_taken(x, from, h, m);
    if (h->channel == ABORT)
        twi_exchange_heed_abort(x, from, h->number, text);
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
    twi_exchange_fail_with(x, TW_ABORTED, task, why);
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
            twi_exchange_note_wait(x, begin);
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
        twi_sleep_ns(1000000);
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
        return c && !atomic_load(&x->failed) ? say_ended(c, error) : twi_exchange_say_reason(x, error);
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
    return twi_exchange_say_reason(x, error);
}

/* ---- lanes that end ---------------------------------------------------------------------------------------------- */

static void end_lane_of_all(twi_comm *c, int lane, tw_status status, const char *why)
{
    twi_exchange *x = (twi_exchange *)c;
    char text[TWI_REASON];
    snprintf(text, sizeof text, "%s", why);
    for (int i = 0; i < c->tasks; i++)
        if (i != c->task) {
            twi_exchange_mention(x, i, END, pack_lane(lane, status), text, true);
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
            twi_exchange_mention(x, i, RENEW, pack_lane(lane, TW_OK), "", true);
        }
    for (int i = 0; i < comm->tasks && all; i++)
        all = i == comm->task || wait_for_renewal(x, i, lane, what);
    return all ? TW_OK : twi_exchange_say_reason(x, error);
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
            twi_exchange_mention(x, i, LEAVE, 0, "", true);
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
        twi_exchange_tell_all(x); /* what has failed since nobody beats */
    x->carrier->close(x);
}

static const twi_comm_ops exchange_ops = {
    send_message, receive_message, end_lane_of_all, renew_lane, twi_exchange_is_to_say, twi_exchange_say_asked,
    twi_exchange_abort, twi_exchange_watch, twi_exchange_unwatch, close_exchange,
};

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
    tw_status status = twi_thread_start(&x->beats, "tower-beat", NULL, 0, twi_exchange_beat, x, error);
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

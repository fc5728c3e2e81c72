/* protocol.c - what a task says to others and makes of what they say, message by message: a carrier that this thread
 * plays, in which nothing happens but by its hand, and a clock that stands. */
#include "faulty_memory.h"
#include "parts.h"

#include "base/clock.h"
#include "base/fingerprint.h"
#include "comm/exchange.h"

#include <pthread.h>

/* This task is the middle one; the test speaks for the two others. Behind them lies memory that is none's. */
enum { FIRST, OWN, LAST, TASKS };
enum { CHANNEL = 5, MOST_CHANNELS = 1 << 30 };
enum { LANE = 2, OF_A_LANE = 2 }; /* that channel's and the next one's */
/* Channels that are no receiver's, as messages have them. */
enum { BEAT = -1, LEAVE = -2, ABORT = -3, TAKEN = -4, END = -5, RENEW = -6, SAID = -7 };
/* In a channel so many messages, or bytes and one message, may be under way; each quarter of that is told. */
enum { AHEAD = 256, QUARTER_AHEAD = 64 };
#define BYTES_AHEAD (64 << 20)
#define DEADLINE 1000. /* seconds: what nobody waits for */
#define SECONDS INT64_C(1000000000)

typedef struct said {
    int to;
    twi_header header;
    char text[TWI_REASON];
} said;

typedef struct task {
    twi_exchange x;
    atomic_int count;
    said said[512];
    bool deaf;                               /* nothing can be sent */
    int refuses, times;                      /* that task has no room for a failure so often */
    atomic_int looks;                        /* for what has come */
    atomic_int awaited;                      /* whose message the last one was for */
    void (*_Atomic then)(struct task *task); /* at each look */
    bool closed;
    int64_t silent_ns; /* when the one behind the last was heard of */
} task;

static bool task_put(twi_exchange *x, int to, const twi_header *header, const void *data, bool patient)
{
    task *t = (task *)x;
    (void)patient;
    assert_in_range(to, 0, x->base.tasks - 1);
    assert_int_not_equal(to, x->base.task);
    if (t->deaf || (header->channel == ABORT && to == t->refuses && t->times-- > 0))
        return false;
    assert_true(t->count < (int)(sizeof t->said / sizeof *t->said));
    said *s = &t->said[t->count];
    s->to = to;
    s->header = *header;
    if (header->channel < 0)
        memcpy(s->text, data, header->bytes);
    t->count++;
    return true;
}

/* Who has looked so often waits in vain. */
static twi_progress task_pump(twi_exchange *x, int from)
{
    enum { PATIENCE = 100 };
    task *t = (task *)x;
    t->awaited = from;
    void (*then)(task * task) = t->then;
    if (then)
        then(t);
    if (++t->looks > PATIENCE)
        twi_exchange_fail(x, "nothing comes");
    return TWI_NOTHING;
}

static void task_close(twi_exchange *x)
{
    ((task *)x)->closed = true;
}

static const twi_carrier_ops asked = {task_put, task_pump, task_close}, unasked = {task_put, NULL, task_close};

static task *begin_as(int number, int tasks, const twi_carrier_ops *carrier)
{
    tw_error error = {0};
    task *t = calloc(1, sizeof *t);
    stand_still(true);
    fail_allocation(-1);
    assert_ok(twi_exchange_init(&t->x, carrier, number, tasks + 1, DEADLINE, &error));
    t->x.base.tasks = tasks;
    t->x.base.lane_channels = OF_A_LANE;
    t->x.peers[tasks].heard_ns = twi_coarse_ns() - (int64_t)(100 * DEADLINE * SECONDS);
    t->x.peers[tasks].channels[0] = (twi_channel *)t; /* no block of memory: it may not be freed */
    t->silent_ns = t->x.peers[tasks].heard_ns;
    t->refuses = -1;
    return t;
}

static task *begin(void)
{
    return begin_as(OWN, TASKS, &asked);
}

/* It was closed once, and nothing is left of it. */
static void finish(task *t)
{
    twi_comm_close(&t->x.base);
    assert_true(t->closed);
    assert_true(t->x.peers[t->x.base.tasks].heard_ns == t->silent_ns);
    twi_exchange_clear(&t->x);
    assert_int_equal(memory.live, 0);
    stop_failing_allocations();
    stand_still(false);
    free(t);
}

static bool at_once; /* whether messages come as bytes that are there */

static void come(task *t, int from, const twi_header *header, const void *data)
{
    if (at_once)
        return twi_exchange_take(&t->x, from, header, data);
    twi_message *m = twi_exchange_room(&t->x, from, header);
    if (!m)
        return;
    assert_int_equal(m->bytes, header->bytes);
    memcpy(m->data, data, m->bytes);
    twi_exchange_hand_in(&t->x, from, header, m);
}

static void say(task *t, int from, int channel, uint64_t number, const void *data, size_t bytes)
{
    come(t, from, &(twi_header){TWI_MAGIC, channel, bytes, number}, data);
}

/* One byte, which is the number of the message too. */
static void say_byte(task *t, int channel, char byte)
{
    say(t, FIRST, channel, (uint64_t)byte, &byte, 1);
}

static uint64_t lane_with(uint64_t lane, uint64_t status)
{
    return lane | status << 32;
}

static tw_status hear(task *t, int channel, void *data, size_t bytes, tw_error *error)
{
    return t->x.base.ops->receive(&t->x.base, FIRST, channel, data, bytes, "a word", error);
}

static void assert_byte(task *t, int channel, char byte)
{
    tw_error error = {0};
    char came = -1;
    assert_ok(hear(t, channel, &came, 1, &error));
    assert_int_equal(came, byte);
}

static tw_status send_bytes(task *t, int channel, size_t bytes, tw_error *error)
{
    static char nothing[1];
    return t->x.base.ops->send(&t->x.base, FIRST, channel, nothing, bytes, error);
}

/* Everything has ended with that status, for that reason. */
static void assert_failed(task *t, tw_status status, const char *why)
{
    tw_error error = {0};
    char byte;
    assert_true(atomic_load(&t->x.failed));
    assert_int_equal(send_bytes(t, CHANNEL + 50, 1, &error), status);
    assert_string_equal(error.message, why);
    assert_int_equal(hear(t, CHANNEL + 50, &byte, 1, &error), status);
    assert_string_equal(error.message, why);
}

static void assert_said(const task *t, int i, int to, int channel, uint64_t number, const char *text)
{
    assert_true(i < t->count);
    assert_int_equal(t->said[i].to, to);
    assert_int_equal(t->said[i].header.channel, channel);
    assert_int_equal(t->said[i].header.number, number);
    assert_int_equal(t->said[i].header.magic, TWI_MAGIC);
    if (text) {
        assert_int_equal(t->said[i].header.bytes, strlen(text));
        assert_string_equal(t->said[i].text, text);
    }
}

/* ---- what comes -------------------------------------------------------------------------------------------------- */

static void two_words_come(task *t)
{
    if (t->looks == 0) {
        say_byte(t, CHANNEL, 1);
        say_byte(t, CHANNEL, 2);
    }
}

static void words_come_before_they_are_waited_for_and_while_they_are(void **state)
{
    (void)state;
    enum { LONG = 1000 };
    static char word[LONG], came[LONG];
    tw_error error = {0};
    memset(word, 'x', LONG);
    for (int i = 0; i < 2; i++) {
        task *t = begin();
        at_once = i;
        say(t, FIRST, 0, 0, word, LONG);
        say(t, FIRST, MOST_CHANNELS - 1, 0, word, 10);
        memset(came, 0, LONG);
        assert_ok(hear(t, 0, came, LONG, &error));
        assert_memory_equal(came, word, LONG);
        assert_ok(hear(t, MOST_CHANNELS - 1, came, 10, &error));
        say_byte(t, CHANNEL, 0);
        assert_byte(t, CHANNEL, 0);
        assert_int_equal(t->looks, 0);
        t->then = two_words_come;
        assert_byte(t, CHANNEL, 1);
        assert_byte(t, CHANNEL, 2);
        assert_int_equal(t->looks, 1);
        say(t, FIRST, CHANNEL, 3, "", 0);
        assert_ok(hear(t, CHANNEL, NULL, 0, &error));
        assert_int_equal(t->count, 0);
        finish(t);
    }
}

/* So far numbers go, and then from 0 again. The sender is told of each quarter of what he may send. */
static void who_sends_is_told_how_much_was_taken(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        task *t = begin();
        at_once = i;
        for (int n = 0; n < 3 * QUARTER_AHEAD; n++) {
            assert_int_equal(t->count, n / QUARTER_AHEAD);
            say_byte(t, CHANNEL, (char)(n % TWI_NUMBERS));
            assert_byte(t, CHANNEL, (char)(n % TWI_NUMBERS));
        }
        assert_int_equal(t->count, 3);
        for (int n = 0; n < 3; n++) {
            twi_flow more;
            assert_said(t, n, FIRST, TAKEN, CHANNEL, NULL);
            assert_int_equal(t->said[n].header.bytes, sizeof more);
            memcpy(&more, t->said[n].text, sizeof more);
            assert_int_equal(more.messages, QUARTER_AHEAD);
            assert_int_equal(more.bytes, QUARTER_AHEAD);
        }
        finish(t);
    }
}

/* Bytes of a word that is not looked at. */
static void say_long(task *t, int channel, uint64_t number, size_t bytes)
{
    twi_header header = {TWI_MAGIC, channel, bytes, number};
    twi_message *m = twi_exchange_room(&t->x, FIRST, &header);
    assert_non_null(m);
    twi_exchange_hand_in(&t->x, FIRST, &header, m);
}

static void who_sends_long_words_is_told_sooner(void **state)
{
    (void)state;
    size_t quarter = BYTES_AHEAD / 4;
    char *word = malloc(quarter);
    twi_flow more;
    tw_error error = {0};
    task *t = begin();
    at_once = false;
    say_long(t, CHANNEL, 0, quarter - 1);
    assert_ok(hear(t, CHANNEL, word, quarter - 1, &error));
    assert_int_equal(t->count, 0);
    say_long(t, CHANNEL, 1, 1);
    assert_ok(hear(t, CHANNEL, word, 1, &error));
    assert_said(t, 0, FIRST, TAKEN, CHANNEL, NULL);
    memcpy(&more, t->said[0].text, sizeof more);
    assert_int_equal(more.messages, 2);
    assert_int_equal(more.bytes, quarter);
    assert_int_equal(t->count, 1);
    free(word);
    finish(t);
}

static const twi_header wrong[] = {
    {TWI_MAGIC + 1, CHANNEL, 1, 0},   {TWI_MAGIC, SAID - 1, 1, 0},
    {TWI_MAGIC, MOST_CHANNELS, 1, 0}, {TWI_MAGIC, CHANNEL, (UINT64_C(1) << 40) + 1, 0},
    {TWI_MAGIC, BEAT, TWI_REASON, 0},
};

static void what_is_no_message_ends_all(void **state)
{
    (void)state;
    static char data[TWI_REASON];
    for (int i = 0; i < 2 * (int)(sizeof wrong / sizeof *wrong); i++) {
        task *t = begin();
        at_once = i % 2;
        come(t, LAST, &wrong[i / 2], data);
        assert_failed(t, TW_ABORTED, "task 2 has sent what is no message of this version");
        finish(t);
    }
}

static void one_byte_comes(task *t)
{
    if (t->looks == 0)
        say(t, FIRST, CHANNEL, 0, "a", 1);
}

static void three_bytes_come(task *t)
{
    if (t->looks == 0)
        say(t, FIRST, CHANNEL, 0, "abc", 3);
}

static void nothing_comes_at_the_third_look(task *t)
{
    if (t->looks == 2)
        say(t, FIRST, CHANNEL, 0, "", 0);
}

static void another_number_and_other_lengths_end_all(void **state)
{
    (void)state;
    char came[4];
    tw_error error;
    for (int i = 0; i < 2; i++) {
        task *t = begin();
        at_once = i;
        say_byte(t, CHANNEL, 0);
        assert_false(atomic_load(&t->x.failed));
        say_byte(t, CHANNEL, 2);
        assert_failed(t, TW_ABORTED, "task 0 has sent message 2 to task 1 where 1 was due");
        finish(t);
        for (size_t bytes = 1; bytes < 4; bytes += 2) {
            const char *why = bytes == 1 ? "task 0 has sent 1 bytes where task 1 expected 2: a word"
                                         : "task 0 has sent 3 bytes where task 1 expected 2: a word";
            t = begin();
            say(t, FIRST, CHANNEL, 0, "abc", bytes);
            assert_int_equal(hear(t, CHANNEL, came, 2, &error), TW_ABORTED);
            assert_string_equal(error.message, why);
            assert_failed(t, TW_ABORTED, why);
            finish(t);
            t = begin(); /* when it is waited for */
            t->then = bytes == 1 ? one_byte_comes : three_bytes_come;
            assert_int_equal(hear(t, CHANNEL, came, 2, &error), TW_ABORTED);
            assert_string_equal(error.message, why);
            finish(t);
        }
    }
}

/* They have no place, and come all the same. */
static void messages_without_bytes_come_when_they_are_waited_for(void **state)
{
    (void)state;
    tw_error error = {0};
    task *t = begin();
    t->then = nothing_comes_at_the_third_look;
    assert_ok(hear(t, CHANNEL, NULL, 0, &error));
    assert_int_equal(t->looks, 3);
    finish(t);
}

static void memory_of_what_was_taken_is_used_again(void **state)
{
    (void)state;
    char came[200];
    tw_error error = {0};
    task *t = begin();
    twi_header header = {TWI_MAGIC, CHANNEL, 100, 0};
    twi_message *first = twi_exchange_room(&t->x, FIRST, &header), *next;
    twi_exchange_hand_in(&t->x, FIRST, &header, first);
    assert_ok(hear(t, CHANNEL, came, 100, &error));
    header.number++;
    next = twi_exchange_room(&t->x, FIRST, &header);
    assert_ptr_equal(next, first);
    twi_exchange_hand_in(&t->x, FIRST, &header, next);
    assert_ok(hear(t, CHANNEL, came, 100, &error));
    header = (twi_header){TWI_MAGIC, CHANNEL, 200, 2};
    next = twi_exchange_room(&t->x, FIRST, &header);
    assert_ptr_not_equal(next, first);
    assert_int_equal(next->room, 200);
    twi_exchange_hand_in(&t->x, FIRST, &header, next);
    assert_ok(hear(t, CHANNEL, came, 200, &error));
    header = (twi_header){TWI_MAGIC, CHANNEL, 150, 3};
    assert_ptr_equal(twi_exchange_room(&t->x, FIRST, &header), next); /* beyond the one that is too small */
    twi_exchange_hand_in(&t->x, FIRST, &header, next);
    assert_int_equal(memory.live, 1 + 2 + 2); /* the tasks, the channel and its lane, the two */
    finish(t);
}

/* ---- where it is put --------------------------------------------------------------------------------------------- */

static char place[8];

static twi_message *room_for(task *t, size_t bytes, uint64_t number)
{
    return twi_exchange_room(&t->x, FIRST, &(twi_header){TWI_MAGIC, CHANNEL, bytes, number});
}

static void hand_in(task *t, twi_message *m, char byte, uint64_t number)
{
    memset(m->data, byte, m->bytes);
    twi_exchange_hand_in(&t->x, FIRST, &(twi_header){TWI_MAGIC, CHANNEL, m->bytes, number}, m);
}

/* The first to have come straight to where it is wanted; the second does not, though it has room before that is in. */
static void two_have_room(task *t)
{
    if (t->looks > 0)
        return;
    twi_message *one = room_for(t, 8, 0), *two = room_for(t, 8, 0);
    assert_ptr_equal(one->data, place);
    assert_ptr_not_equal(two->data, place);
    hand_in(t, one, 1, 0);
    hand_in(t, two, 2, 1);
}

static void one_is_there(task *t)
{
    if (t->looks > 0)
        return;
    hand_in(t, room_for(t, 8, 0), 1, 0);
    twi_message *two = room_for(t, 8, 1);
    assert_ptr_not_equal(two->data, place);
    hand_in(t, two, 2, 1);
}

static void shorter_and_out_of_turn(task *t)
{
    if (t->looks > 0)
        return;
    twi_message *shorter = room_for(t, 7, 0), *late = room_for(t, 8, 1);
    assert_ptr_not_equal(shorter->data, place);
    assert_ptr_not_equal(late->data, place);
    twi_exchange_drop(&t->x, shorter);
    twi_exchange_drop(&t->x, late);
    hand_in(t, room_for(t, 8, 0), 1, 0);
    hand_in(t, room_for(t, 8, 1), 2, 1);
}

/* One that will not be written any more leaves its place to another. */
static void one_is_dropped(task *t)
{
    if (t->looks > 0)
        return;
    twi_exchange_drop(&t->x, room_for(t, 8, 0));
    two_have_room(t);
}

static void only_the_next_message_comes_straight_to_its_place(void **state)
{
    (void)state;
    void (*const ways[])(task * t) = {two_have_room, one_is_there, shorter_and_out_of_turn, one_is_dropped};
    tw_error error = {0};
    char other[8];
    for (int i = 0; i < 4; i++) {
        task *t = begin();
        t->then = ways[i];
        assert_ok(hear(t, CHANNEL, place, 8, &error));
        assert_memory_equal(place, "\1\1\1\1\1\1\1\1", 8);
        assert_ok(hear(t, CHANNEL, other, 8, &error));
        assert_memory_equal(other, "\2\2\2\2\2\2\2\2", 8);
        finish(t);
    }
}

static twi_message *_Atomic lent;

static void half_comes_and_all_fails(task *t)
{
    lent = room_for(t, 8, 0);
    twi_exchange_fail(&t->x, "no coffee");
}

static void half_comes_and_all_is_over(task *t)
{
    half_comes_and_all_fails(t);
    atomic_store(&t->x.over, true);
}

static void all_comes_and_fails(task *t)
{
    half_comes_and_all_fails(t);
    hand_in(t, lent, 1, 0);
}

/* Until somebody waits for the first message of the channel. */
static void wait_for_a_place(task *t)
{
    for (bool waits = false; !waits; nap()) {
        const twi_channel *c = atomic_load(&t->x.peers[FIRST].channels[CHANNEL]);
        waits = c && atomic_load(&c->place) == TWI_WANTED;
    }
}

static atomic_bool is_done;

static void *hear_in_a_thread(void *argument)
{
    tw_error error = {0};
    assert_int_equal(hear(argument, CHANNEL, place, 8, &error), TW_ABORTED);
    assert_string_equal(error.message, "no coffee");
    atomic_store(&is_done, true);
    return NULL;
}

/* Whoever waits does not go before the one who writes says that he will not, unless nobody asks for messages any more.
 */
static void nobody_writes_where_nobody_waits_any_more(void **state)
{
    (void)state;
    pthread_t thread;
    for (int i = 0; i < 2; i++) {
        task *t = begin();
        t->then = i == 0 ? half_comes_and_all_is_over : all_comes_and_fails;
        hear_in_a_thread(t);
        const twi_channel *c = atomic_load(&lent)->channel;
        assert_null(c->first);
        assert_int_equal(c->place, TWI_FREE);
        finish(t);
    }
    for (int i = 0; i < 2; i++) {
        task *t = begin_as(OWN, TASKS, i == 0 ? &asked : &unasked);
        is_done = false;
        lent = NULL;
        t->then = half_comes_and_all_fails;
        pthread_create(&thread, NULL, hear_in_a_thread, t);
        if (i == 1) { /* a thread of the carrier's goes on, though all is over */
            wait_for_a_place(t);
            half_comes_and_all_is_over(t);
        }
        while (!atomic_load(&lent))
            nap();
        for (int k = 0; k < 20 && !atomic_load(&is_done); k++)
            nap();
        assert_false(atomic_load(&is_done));
        twi_exchange_drop(&t->x, lent);
        pthread_join(thread, NULL);
        finish(t);
    }
}

/* ---- what is sent ------------------------------------------------------------------------------------------------ */

/* As the other task says that it has taken so much. */
static void say_taken(task *t, uint64_t channel, uint64_t messages, uint64_t bytes)
{
    say(t, FIRST, TAKEN, channel, &(twi_flow){messages, bytes}, sizeof(twi_flow));
}

static void one_byte_is_taken(task *t)
{
    if (t->looks == 0)
        say_taken(t, CHANNEL, 1, 1);
}

static void all_is_taken(task *t)
{
    if (t->looks == 0)
        say_taken(t, CHANNEL, 2, BYTES_AHEAD + 1);
}

static void the_first_leaves(task *t)
{
    if (t->looks == 0)
        say(t, FIRST, LEAVE, 0, "", 0);
}

static void who_sends_waits_until_enough_is_taken(void **state)
{
    (void)state;
    tw_error error = {0};
    for (int i = 0; i < 2; i++) {
        task *t = begin();
        t->then = one_byte_is_taken;
        at_once = i;
        for (int n = 0; n < AHEAD; n++)
            assert_ok(send_bytes(t, CHANNEL, 1, &error));
        assert_int_equal(t->looks, 0);
        assert_ok(send_bytes(t, CHANNEL, 1, &error));
        assert_int_equal(t->looks, 1);
        for (int n = 0; n <= AHEAD; n++)
            assert_said(t, n, FIRST, CHANNEL, (uint64_t)n % TWI_NUMBERS, NULL);
        assert_int_equal(send_bytes(t, CHANNEL, 1, &error), TW_ABORTED);
        assert_string_equal(error.message, "nothing comes");
        assert_int_equal(t->count, AHEAD + 1);
        finish(t);
    }
    task *t = begin();
    t->then = all_is_taken;
    assert_ok(send_bytes(t, CHANNEL, BYTES_AHEAD, &error));
    assert_ok(send_bytes(t, CHANNEL, 1, &error));
    assert_int_equal(t->looks, 0);
    assert_ok(send_bytes(t, CHANNEL, 1, &error));
    assert_int_equal(t->looks, 1);
    t->looks = 0;
    t->then = the_first_leaves; /* what is sent to who has left is told of by others */
    assert_ok(send_bytes(t, CHANNEL, BYTES_AHEAD, &error));
    assert_ok(send_bytes(t, CHANNEL, 1, &error));
    assert_int_equal(t->looks, 1);
    finish(t);
}

static void who_cannot_be_sent_to_has_ended(void **state)
{
    (void)state;
    task *t = begin();
    t->deaf = true;
    assert_int_equal(send_bytes(t, CHANNEL, 1, NULL), TW_ABORTED);
    assert_failed(t, TW_ABORTED, "task 0 has ended: task 1 could not send it a message");
    finish(t);
}

/* Of messages and bytes: more than was sent, in another size, and of no channel. */
static void who_takes_more_than_was_sent_is_spoiled(void **state)
{
    (void)state;
    tw_error error = {0};
    static const struct {
        uint64_t channel, messages, bytes;
        size_t size;
    } cases[] = {
        {CHANNEL, 3, 20, sizeof(twi_flow)},     {CHANNEL, 2, 21, sizeof(twi_flow)},
        {CHANNEL, 1, 10, sizeof(twi_flow) - 8}, {MOST_CHANNELS, 0, 0, sizeof(twi_flow)},
        {UINT32_MAX, 0, 0, sizeof(twi_flow)},   {CHANNEL + 1, 1, 0, sizeof(twi_flow)},
    };
    for (int i = 0; i < 6; i++) {
        task *t = begin();
        assert_ok(send_bytes(t, CHANNEL, 10, &error));
        assert_ok(send_bytes(t, CHANNEL, 10, &error));
        say_taken(t, CHANNEL, 0, 0);
        assert_false(atomic_load(&t->x.failed));
        if (i > 3)
            say_taken(t, CHANNEL, 2, 20);
        assert_false(atomic_load(&t->x.failed));
        say(t, FIRST, TAKEN, cases[i].channel, &(twi_flow){cases[i].messages, cases[i].bytes}, cases[i].size);
        assert_failed(t, TW_ABORTED, "task 0 has sent what is no message of this version");
        finish(t);
    }
}

/* ---- channels that end ------------------------------------------------------------------------------------------- */

static void a_word_and_the_end_come(task *t)
{
    if (t->looks > 0)
        return;
    say_byte(t, CHANNEL, 0);
    say(t, FIRST, END, lane_with(LANE, TW_OUT_OF_RANGE), "no more", 7);
    say(t, FIRST, END, lane_with(LANE, TW_CANCELLED), "too late", 8);
}

static void assert_ended(task *t, int channel, tw_status status, const char *why)
{
    tw_error error = {0};
    char byte;
    assert_int_equal(hear(t, channel, &byte, 1, &error), status);
    assert_string_equal(error.message, why);
    assert_int_equal(send_bytes(t, channel, 1, &error), status);
    assert_string_equal(error.message, why);
}

static void the_end_comes(task *t)
{
    if (t->looks == 0)
        say(t, FIRST, END, lane_with(LANE, TW_DATA_LOSS), "no more", 7);
}

static void channels_end_behind_what_came_and_once(void **state)
{
    (void)state;
    char byte;
    tw_error error = {0};
    for (int i = 0; i < 2; i++) {
        task *t = begin();
        at_once = i;
        t->then = a_word_and_the_end_come;
        assert_byte(t, CHANNEL, 0);
        assert_int_equal(t->looks, 1);
        for (int c = CHANNEL; c < CHANNEL + 2; c++)
            assert_ended(t, c, TW_OUT_OF_RANGE, "no more");
        for (int c = CHANNEL - 1; c < CHANNEL + 3; c += 3) {
            say_byte(t, c, 0);
            assert_byte(t, c, 0);
            assert_ok(send_bytes(t, c, 1, &error));
        }
        assert_int_equal(t->looks, 1);
        finish(t);
        t = begin();
        t->then = the_end_comes;
        assert_int_equal(hear(t, CHANNEL, &byte, 1, &error), TW_DATA_LOSS);
        assert_int_equal(t->looks, 1);
        assert_ended(t, CHANNEL, TW_DATA_LOSS, "no more");
        finish(t);
    }
}

/* Whose channels are the last ones. */
static const uint64_t LAST_LANE = (MOST_CHANNELS - 1 - TWI_CHANNEL_OF_LANES) / OF_A_LANE;

static void the_last_lane_ends_like_any_other(void **state)
{
    (void)state;
    task *t = begin();
    say(t, FIRST, END, lane_with(LAST_LANE, TW_CANCELLED), "no more", 7);
    assert_ended(t, MOST_CHANNELS - 1, TW_CANCELLED, "no more");
    say(t, FIRST, END, lane_with(0, TW_DATA_LOSS), "none", 4);
    assert_ended(t, TWI_CHANNEL_OF_LANES, TW_DATA_LOSS, "none");
    say_byte(t, TWI_CHANNEL_OF_ALL, 0);
    assert_byte(t, TWI_CHANNEL_OF_ALL, 0);
    finish(t);
}

static void a_lane_that_ends_takes_no_memory_for_its_channels(void **state)
{
    (void)state;
    task *t = begin();
    t->x.base.lane_channels = 1 << 20;
    say(t, FIRST, END, lane_with(3, TW_CANCELLED), "no more", 7);
    say(t, FIRST, RENEW, lane_with(4, TW_OK), "", 0);
    /* the tasks; channels of ends and of renewals, with a message each, and their lane; the two lanes; a reason */
    assert_int_equal(memory.live, 1 + 2 * 2 + 1 + 2 + 1);
    finish(t);
}

static void what_names_no_lane_or_no_status_is_no_message(void **state)
{
    (void)state;
    const struct {
        int channel;
        uint64_t number;
        int of_a_lane;
    } cases[] = {{END, lane_with(LANE, TW_OK), 2},         {END, lane_with(LANE, TW_DATA_LOSS + 1), 2},
                 {END, lane_with(LAST_LANE + 1, 1), 2},    {END, UINT64_MAX, 2},
                 {END, lane_with(LANE, TW_CANCELLED), 0},  {RENEW, lane_with(LANE, TW_CANCELLED), 2},
                 {RENEW, lane_with(LAST_LANE + 1, 0), 2},  {RENEW, lane_with(LANE, TW_OK), 0},
                 {RENEW, lane_with(1, 0), MOST_CHANNELS - 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        task *t = begin();
        t->x.base.lane_channels = cases[i].of_a_lane;
        say(t, FIRST, cases[i].channel, cases[i].number, "", 0);
        assert_failed(t, TW_ABORTED, "task 0 has sent what is no message of this version");
        finish(t);
    }
}

/* ---- and begin anew ---------------------------------------------------------------------------------------------- */

static void end_here(task *t)
{
    t->x.base.ops->end(&t->x.base, LANE, TW_OUT_OF_RANGE, "no more");
}

static tw_status renew(task *t, tw_error *error)
{
    return t->x.base.ops->renew(&t->x.base, LANE, "the next round", error);
}

static void all_renew(task *t)
{
    say(t, FIRST, RENEW, lane_with(LANE, 0), "", 0);
    say(t, LAST, RENEW, lane_with(LANE, 0), "", 0);
}

static void they_renew_in_turn(task *t)
{
    if (t->looks == 0)
        say(t, LAST, RENEW, lane_with(LANE, 0), "", 0);
    if (t->looks == 1)
        say(t, FIRST, RENEW, lane_with(LANE, 0), "", 0);
}

static void both_are_told_of_an_end_and_of_what_begins(void **state)
{
    (void)state;
    tw_error error = {0};
    task *t = begin();
    end_here(t);
    assert_int_equal(t->count, 2);
    assert_said(t, 0, FIRST, END, lane_with(LANE, TW_OUT_OF_RANGE), "no more");
    assert_said(t, 1, LAST, END, lane_with(LANE, TW_OUT_OF_RANGE), "no more");
    assert_ended(t, CHANNEL, TW_OUT_OF_RANGE, "no more");
    assert_ended(t, CHANNEL + 1, TW_OUT_OF_RANGE, "no more");
    assert_int_equal(t->x.base.ops->send(&t->x.base, LAST, CHANNEL, "", 1, &error), TW_OUT_OF_RANGE);
    assert_ok(send_bytes(t, CHANNEL + 2, 1, &error));
    t->then = they_renew_in_turn;
    assert_ok(renew(t, &error));
    assert_int_equal(t->looks, 2);
    assert_int_equal(t->count, 5);
    assert_said(t, 3, FIRST, RENEW, lane_with(LANE, TW_OK), "");
    assert_said(t, 4, LAST, RENEW, lane_with(LANE, TW_OK), "");
    assert_ok(send_bytes(t, CHANNEL, 1, &error));
    assert_said(t, 5, FIRST, CHANNEL, 0, NULL);
    assert_ok(send_bytes(t, CHANNEL + 2, 1, &error));
    assert_said(t, 6, FIRST, CHANNEL + 2, 1, NULL);
    finish(t);
}

/* What came before is taken where this task is not so far, and then it is gone. */
static void who_begins_anew_first_is_heard_to_his_end(void **state)
{
    (void)state;
    tw_error error = {0};
    for (int i = 0; i < 2; i++) {
        task *t = begin();
        at_once = i;
        for (char byte = 0; byte < 3; byte++) {
            say_byte(t, CHANNEL - 1, byte);
            say_byte(t, CHANNEL, byte);
            say_byte(t, CHANNEL + 2, byte);
        }
        all_renew(t);
        assert_byte(t, CHANNEL, 0);
        end_here(t);
        assert_byte(t, CHANNEL, 1);
        assert_ok(renew(t, &error));
        assert_int_equal(t->looks, 0);
        say(t, FIRST, CHANNEL, 0, "\7", 1);
        assert_byte(t, CHANNEL, 7);
        for (char byte = 0; byte < 4; byte++)
            for (int c = CHANNEL - 1; c < CHANNEL + 3; c += 3) {
                if (byte == 3)
                    say_byte(t, c, byte);
                assert_byte(t, c, byte);
            }
        finish(t);
    }
}

/* Messages of before come when this task has begun anew: a word, its end, and what was taken. */
static void they_come_too_late(task *t)
{
    if (t->looks > 0)
        return;
    say_byte(t, CHANNEL, 1);
    say(t, FIRST, END, lane_with(LANE, TW_CANCELLED), "of before", 9);
    say_taken(t, CHANNEL, 2, 2);
    all_renew(t);
    say(t, FIRST, CHANNEL, 0, "\7", 1);
}

static void what_comes_of_before_is_dropped(void **state)
{
    (void)state;
    tw_error error = {0};
    for (int i = 0; i < 2; i++) {
        task *t = begin();
        at_once = i;
        assert_ok(send_bytes(t, CHANNEL, 1, &error));
        assert_ok(send_bytes(t, CHANNEL, 1, &error));
        say_byte(t, CHANNEL, 0);
        end_here(t);
        t->then = they_come_too_late;
        assert_ok(renew(t, &error));
        assert_int_equal(t->looks, 1);
        assert_byte(t, CHANNEL, 7);
        for (int n = 0; n < AHEAD; n++)
            assert_ok(send_bytes(t, CHANNEL, 1, &error));
        assert_int_equal(t->looks, 1);
        finish(t);
        t = begin(); /* nor do bytes that were under way count */
        assert_ok(send_bytes(t, CHANNEL, 1, &error));
        say_taken(t, CHANNEL, 1, 1);
        assert_ok(send_bytes(t, CHANNEL, BYTES_AHEAD + 1, &error));
        end_here(t);
        t->then = they_renew_in_turn;
        assert_ok(renew(t, &error));
        assert_ok(send_bytes(t, CHANNEL, 1, &error));
        finish(t);
    }
}

static void who_leaves_or_fails_begins_nothing(void **state)
{
    (void)state;
    tw_error error = {0};
    task *t = begin();
    say(t, FIRST, RENEW, lane_with(LANE, 0), "", 0);
    say(t, FIRST, LEAVE, 0, "", 0);
    end_here(t);
    say(t, LAST, LEAVE, 0, "", 0);
    assert_int_equal(renew(t, &error), TW_ABORTED);
    assert_string_equal(error.message, "task 2 has left; task 1 waited for the next round of it");
    finish(t);
    t = begin();
    end_here(t);
    twi_exchange_fail(&t->x, "no coffee");
    assert_int_equal(renew(t, &error), TW_ABORTED);
    assert_string_equal(error.message, "no coffee");
    finish(t);
}

/* ---- how all ends ------------------------------------------------------------------------------------------------ */

static void a_failure_has_its_status_and_the_first_reason(void **state)
{
    (void)state;
    static const struct {
        uint64_t number;
        tw_status status;
    } cases[] = {{TW_OK, TW_ABORTED}, {1, (tw_status)1}, {TW_DATA_LOSS, TW_DATA_LOSS}, {TW_DATA_LOSS + 1, TW_ABORTED}};
    char longest[TWI_REASON];
    memset(longest, 'x', TWI_REASON - 1);
    longest[TWI_REASON - 1] = 0;
    for (int i = 0; i < 8; i++) {
        task *t = begin();
        at_once = i % 2;
        say(t, LAST, ABORT, cases[i / 2].number, longest, TWI_REASON - 1);
        assert_int_equal(t->x.status, cases[i / 2].status);
        assert_string_equal(t->x.reason, longest);
        t->x.base.ops->abort(&t->x.base, TW_CANCELLED, "too late");
        assert_int_equal(t->x.status, cases[i / 2].status);
        assert_string_equal(t->x.reason, longest);
        finish(t);
    }
    task *t = begin();
    t->x.base.ops->abort(&t->x.base, TW_OUT_OF_RANGE, "no coffee");
    assert_failed(t, TW_OUT_OF_RANGE, "task 1 failed: no coffee");
    finish(t);
}

static void what_came_before_a_task_left_is_taken(void **state)
{
    (void)state;
    char byte;
    tw_error error = {0};
    task *t = begin();
    say_byte(t, CHANNEL, 0);
    say(t, FIRST, LEAVE, 0, "", 0);
    say(t, LAST, BEAT, 0, "", 0);
    assert_byte(t, CHANNEL, 0);
    assert_int_equal(t->looks, 0);
    assert_int_equal(hear(t, CHANNEL, &byte, 1, &error), TW_ABORTED);
    assert_string_equal(error.message, "task 0 has left; task 1 waited for a word of it");
    finish(t);
}

static void a_process_that_ends_was_done_or_not(void **state)
{
    (void)state;
    task *t = begin();
    say(t, FIRST, LEAVE, 0, "", 0);
    twi_exchange_lost(&t->x, FIRST);
    assert_false(atomic_load(&t->x.failed));
    atomic_store(&t->x.closing, true);
    twi_exchange_lost(&t->x, LAST);
    assert_failed(t, TW_ABORTED, "task 2 has ended before its work was done");
    finish(t);
    t = begin_as(OWN, TASKS, &unasked);
    atomic_store(&t->x.closing, true);
    twi_exchange_lost(&t->x, LAST); /* who is done waits for nobody */
    assert_false(atomic_load(&t->x.failed));
    atomic_store(&t->x.closing, false);
    twi_exchange_lost(&t->x, LAST);
    assert_true(atomic_load(&t->x.failed));
    finish(t);
}

static uint64_t hash_of(const char *text)
{
    return twi_fingerprint(text, strlen(text)) | 1;
}

static bool is_to_say(task *t, const char *text)
{
    return t->x.base.ops->is_to_say(&t->x.base, text);
}

/* And something else behind it, before anybody has looked. */
static void the_first_task_says(task *t)
{
    if (t->looks != 3)
        return;
    say(t, FIRST, SAID, hash_of("no tea"), "", 0);
    say(t, FIRST, SAID, hash_of("no milk"), "", 0);
}

static void what_the_first_task_says_others_do_not(void **state)
{
    (void)state;
    assert_int_not_equal(hash_of("no tea") % TWI_SAID, hash_of("no milk") % TWI_SAID);
    task *t = begin_as(0, TASKS, &asked);
    assert_true(is_to_say(t, "no tea"));
    assert_int_equal(t->count, 2);
    assert_said(t, 0, 1, SAID, hash_of("no tea"), "");
    assert_said(t, 1, 2, SAID, hash_of("no tea"), "");
    twi_exchange_fail(&t->x, "no coffee");
    assert_true(is_to_say(t, "no sugar"));
    assert_int_equal(t->count, 2);
    assert_int_equal(t->looks, 0);
    finish(t);
    t = begin();
    t->then = the_first_task_says;
    assert_false(is_to_say(t, "no tea"));
    assert_int_equal(t->looks, 4);
    assert_false(is_to_say(t, "no milk"));
    say(t, FIRST, LEAVE, 0, "", 0);
    assert_true(is_to_say(t, "no sugar"));
    assert_in_range(t->looks, 6, 7);
    assert_false(is_to_say(t, "no tea")); /* before it left */
    assert_int_equal(t->count, 0);
    finish(t);
    t = begin();
    twi_exchange_fail(&t->x, "no coffee");
    assert_true(is_to_say(t, "it has no coffee"));
    assert_int_equal(t->looks, 0);
    finish(t);
}

static void tell_failure(task *t, int from, int whose, const char *why)
{
    say(t, from, ABORT, TW_INTERNAL | (uint64_t)(whose + 1) << 32, why, strlen(why));
}

static void all_others_end(task *t)
{
    for (int i = 0; i < TASKS && t->looks == 3; i++)
        if (i != t->x.base.task)
            twi_exchange_lost(&t->x, i);
}

/* So that many tasks do not say the same, and it is said though the one that has failed is killed for it. */
static void what_a_task_has_failed_with_it_says_and_the_first_of_the_others(void **state)
{
    (void)state;
    for (int own = 0; own < TASKS; own++)
        for (int whose = -1; whose <= TASKS; whose++) {
            char why[40], text[80];
            bool known = whose >= 0 && whose < TASKS;
            int first = whose == 0;
            task *t = begin_as(own, TASKS, &asked);
            snprintf(why, sizeof why, "task %d failed: no coffee", whose);
            snprintf(text, sizeof text, "step 3: %s", why);
            if (own == whose)
                t->x.base.ops->abort(&t->x.base, TW_INTERNAL, "no coffee");
            else
                tell_failure(t, first == own ? (own + 1) % TASKS : first, whose, why);
            assert_failed(t, TW_INTERNAL, why);
            bool says = !known || own == whose || own == first;
            t->looks = 0;
            t->then = all_others_end; /* before who does not say it, or mpirun would kill who does */
            assert_int_equal(is_to_say(t, text), says);
            assert_int_equal(t->looks, says ? 0 : 4);
            assert_true(is_to_say(t, "no sugar"));
            finish(t);
        }
}

/* Of a task that is gone, or silent, too. */
static void the_first_of_the_others_says_who_is_gone(void **state)
{
    (void)state;
    static const char *const gone = "task 1 has ended before its work was done";
    for (int own = 0; own < TASKS; own += TASKS - 1) {
        task *t = begin_as(own, TASKS, &unasked);
        twi_exchange_lost(&t->x, OWN);
        tell_failure(t, own == 0 ? LAST : FIRST, OWN, gone);
        assert_int_equal(is_to_say(t, gone), own == 0);
        finish(t);
    }
    task *t = begin_as(LAST, TASKS, &asked);
    twi_exchange_lost(&t->x, OWN);
    tell_failure(t, FIRST, OWN, gone);
    skip_at_each_look(0.5);
    assert_false(is_to_say(t, gone));
    skip_at_each_look(0);
    assert_in_range(t->looks, 2, 6); /* that the first ends is not waited for without an end */
    finish(t);
    t = begin_as(LAST, TASKS, &unasked);
    char byte;
    tw_error error = {0};
    say(t, FIRST, LEAVE, 0, "", 0);
    assert_int_equal(hear(t, CHANNEL, &byte, 1, &error), TW_ABORTED);
    tell_failure(t, OWN, FIRST, error.message);
    assert_false(is_to_say(t, error.message));
    assert_true(is_to_say(t, "no sugar"));
    finish(t);
}

/* Who was to say it may have left in time, have died, or be cut off. */
static void who_hears_nothing_of_the_first_says_it(void **state)
{
    (void)state;
    static const char *const gone = "task 2 has ended before its work was done";
    for (int how = 0; how < 4; how++) {
        task *t = begin_as(OWN, TASKS, how == 3 ? &asked : &unasked);
        if (how == 0)
            say(t, FIRST, LEAVE, 0, "", 0);
        twi_exchange_lost(&t->x, LAST);
        if (how == 1)
            twi_exchange_lost(&t->x, FIRST);
        atomic_store(&t->x.over, how == 3); /* nothing will be heard any more */
        skip_at_each_look(how == 2 ? 0.5 : 0);
        assert_true(is_to_say(t, gone));
        skip_at_each_look(0);
        finish(t);
    }
}

static int asked_of_all(task *t, int own)
{
    return t->x.base.ops->asked(&t->x.base, own);
}

/* What a task was asked for comes with its signs of life, until it takes that back. */
static void what_any_task_is_asked_all_hear_of(void **state)
{
    (void)state;
    task *t = begin();
    assert_int_equal(asked_of_all(t, 0), 0);
    say(t, LAST, BEAT, 15, "", 0);
    assert_int_equal(asked_of_all(t, 0), 15);
    say(t, FIRST, BEAT, 2, "", 0);
    assert_int_equal(asked_of_all(t, 0), 2);
    assert_int_equal(asked_of_all(t, 1), 1); /* this one first */
    say(t, FIRST, BEAT, 0, "", 0);
    say(t, LAST, BEAT, UINT64_C(1) << 31, "", 0); /* no signal: as if nothing were said */
    assert_int_equal(asked_of_all(t, 0), 15);
    say(t, LAST, BEAT, INT32_MAX, "", 0);
    assert_int_equal(asked_of_all(t, 0), INT32_MAX);
    say(t, LAST, BEAT, 0, "", 0);
    t->x.peers[TASKS].asked = 9; /* none of theirs */
    assert_int_equal(asked_of_all(t, 0), 0);
    finish(t);
}

/* ---- who is there ------------------------------------------------------------------------------------------------ */

static void be_silent(task *t, int who, double deadlines)
{
    atomic_store(&t->x.peers[who].heard_ns, twi_coarse_ns() - (int64_t)(deadlines * DEADLINE * SECONDS));
}

/* A wait that long for a word of the first task; this thread has beaten so long ago. */
static bool goes_on(task *t, double deadlines, double beaten)
{
    int64_t now = twi_coarse_ns();
    atomic_store(&t->x.turn_ns, now - (int64_t)(beaten * DEADLINE * SECONDS));
    return twi_exchange_goes_on(&t->x, now - (int64_t)(deadlines * DEADLINE * SECONDS), "a word", FIRST);
}

static void assert_silent(task *t, int who)
{
    char begins[64];
    const char *ends = " s; task 1 waited for a word of task 0 (the deadline is 1000 s)";
    snprintf(begins, sizeof begins, "task %d has not been heard of for ", who);
    assert_int_equal(strncmp(t->x.reason, begins, strlen(begins)), 0);
    assert_message(t->x.reason, ends);
}

static void who_is_silent_longest_is_named(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        task *t = begin();
        assert_true(goes_on(t, 0, 0));
        be_silent(t, OWN, 9);
        be_silent(t, FIRST, 1); /* and no longer */
        assert_true(goes_on(t, 0, 0));
        be_silent(t, i == 0 || i == 2 ? FIRST : LAST, 1.5);
        if (i > 1)
            be_silent(t, i == 2 ? LAST : FIRST, 1.2);
        assert_false(goes_on(t, 0, 0));
        assert_silent(t, i == 0 || i == 2 ? FIRST : LAST);
        finish(t);
    }
    task *t = begin();
    say(t, LAST, LEAVE, 0, "", 0);
    be_silent(t, LAST, 9);
    assert_true(goes_on(t, 0, 0));
    finish(t);
}

static void any_word_is_a_sign_of_life(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        task *t = begin();
        at_once = i % 2;
        be_silent(t, FIRST, 2);
        if (i < 2)
            say_byte(t, CHANNEL, 0);
        else
            say(t, FIRST, BEAT, 0, "", 0);
        assert_true(goes_on(t, 0, 0));
        finish(t);
    }
}

/* Of the time by which the own turn is late a sixth of the deadline counts. */
static void who_was_held_up_gives_others_time(void **state)
{
    (void)state;
    task *t = begin();
    be_silent(t, FIRST, 1.5);
    assert_true(goes_on(t, 0, 0.7));
    assert_false(goes_on(t, 0, 0.6));
    finish(t);
    t = begin();
    be_silent(t, FIRST, 1.1);
    assert_false(goes_on(t, 0, 0.1));
    finish(t);
}

/* When nobody beats any more whoever waits takes the turns. */
static void who_is_done_gives_others_time(void **state)
{
    (void)state;
    task *t = begin();
    atomic_store(&t->x.closing, true);
    be_silent(t, FIRST, 1.5);
    be_silent(t, LAST, 0.2);
    assert_true(goes_on(t, 0, 0.7));
    assert_true(twi_coarse_ns() - atomic_load(&t->x.turn_ns) < DEADLINE * SECONDS / 10);
    int64_t first = twi_coarse_ns() - atomic_load(&t->x.peers[FIRST].heard_ns);
    assert_in_range(first, 0.9 * DEADLINE * SECONDS, DEADLINE * SECONDS);
    int64_t last = twi_coarse_ns() - atomic_load(&t->x.peers[LAST].heard_ns);
    assert_in_range(last, 0, DEADLINE * SECONDS / 10); /* not later than now */
    be_silent(t, LAST, 1.1);
    assert_false(goes_on(t, 0, 0.1));
    assert_silent(t, LAST);
    finish(t);
}

static int warnings;

static void hear_warning(void *user, int level, const char *message)
{
    (void)user, (void)level;
    assert_message(message, "task 1 has waited for ");
    assert_message(message, " s for a word of task 0, which is there but does not send it; after 20000 s that ends");
    warnings++;
}

static void who_waits_is_patient_and_says_so_once(void **state)
{
    (void)state;
    task *t = begin();
    warnings = 0;
    tw_set_log(hear_warning, NULL, TW_LOG_WARNING);
    assert_true(goes_on(t, 1, 0));
    assert_int_equal(warnings, 0);
    atomic_store(&t->x.closing, true);
    assert_true(goes_on(t, 1.1, 0));
    assert_int_equal(warnings, 0);
    atomic_store(&t->x.closing, false);
    for (int i = 0; i < 3; i++)
        assert_true(goes_on(t, i == 0 ? 1.1 : 20, 0));
    assert_int_equal(warnings, 1);
    assert_false(goes_on(t, 20.1, 0));
    tw_set_log(NULL, NULL, TW_LOG_WARNING);
    assert_int_equal(warnings, 1);
    assert_message(t->x.reason, "task 1 has waited 20100 s for a word of task 0, which is there but does not send it");
    finish(t);
    t = begin();
    twi_exchange_fail(&t->x, "no coffee");
    assert_false(goes_on(t, 0, 0));
    finish(t);
}

static void who_sends_in_vain_says_who_does_not_take_it(void **state)
{
    (void)state;
    task *t = begin();
    int64_t long_ago = twi_coarse_ns() - (int64_t)(20.1 * DEADLINE * SECONDS);
    assert_false(twi_exchange_goes_on(&t->x, long_ago, NULL, FIRST));
    assert_message(t->x.reason, " for task 0, which is there but does not take what it is sent");
    finish(t);
    t = begin();
    be_silent(t, FIRST, 1.5);
    assert_false(twi_exchange_goes_on(&t->x, twi_coarse_ns(), NULL, FIRST));
    assert_message(t->x.reason, "; task 1 waited for task 0 to take what it was sent (the deadline is 1000 s)");
    finish(t);
}

/* Between two looks at who is there whoever waits looks for what it waits for, and moves messages on. */
static void who_waits_looks_now_and_then_who_is_there(void **state)
{
    (void)state;
    enum { LOOKS = 16 };
    task *t = begin();
    be_silent(t, LAST, 2);
    for (int i = 0; i < LOOKS - 1; i++)
        twi_exchange_wait(&t->x, FIRST, "a word", i, twi_monotonic_ns());
    assert_false(atomic_load(&t->x.failed));
    assert_int_equal(t->looks, LOOKS - 1);
    assert_int_equal(t->awaited, FIRST);
    twi_exchange_wait(&t->x, FIRST, "a word", LOOKS - 1, twi_coarse_ns());
    assert_int_equal(t->looks, LOOKS - 1);
    assert_silent(t, LAST);
    finish(t);
}

static void cores_are_crowded_when_more_threads_want_them(void **state)
{
    (void)state;
    atomic_int awake = 3;
    task *t = begin();
    assert_false(twi_exchange_is_crowded(&t->x));
    t->x.base.cores = 2;
    assert_false(twi_exchange_is_crowded(&t->x));
    t->x.base.awake = &awake;
    assert_true(twi_exchange_is_crowded(&t->x));
    awake = 2;
    assert_false(twi_exchange_is_crowded(&t->x));
    finish(t);
}

/* ---- the beating thread, and the end ----------------------------------------------------------------------------- */

static void start(task *t)
{
    tw_error error = {0};
    int before = t->looks;
    assert_ok(twi_exchange_start(&t->x, &error));
    while (t->looks == before) /* behind its first beat */
        nap();
}

static void others_leave(task *t)
{
    if (atomic_load(&t->x.closing)) {
        say(t, FIRST, LEAVE, 0, "", 0);
        say(t, LAST, LEAVE, 0, "", 0);
    }
}

static int count_said(const task *t, int to, int channel)
{
    int found = 0;
    for (int i = 0; i < t->count; i++)
        found += t->said[i].to == to && t->said[i].header.channel == channel;
    return found;
}

/* Who is done waits until all are. */
static void it_beats_until_all_are_done(void **state)
{
    (void)state;
    task *t = begin();
    atomic_store(&t->x.turn_ns, 0);
    assert_int_equal(asked_of_all(t, 15), 15);
    start(t);
    assert_true(atomic_load(&t->x.turn_ns) > 0);
    assert_said(t, 0, FIRST, BEAT, 15, "");
    assert_said(t, 1, LAST, BEAT, 15, "");
    t->then = others_leave;
    twi_comm_close(&t->x.base);
    assert_false(atomic_load(&t->x.failed));
    assert_int_equal(count_said(t, FIRST, LEAVE), 1);
    assert_int_equal(count_said(t, LAST, LEAVE), 1);
    assert_int_equal(count_said(t, OWN, LEAVE) + count_said(t, OWN, BEAT), 0);
    assert_int_equal(count_said(t, FIRST, ABORT), 0);
    t->x.beating = false;
    finish(t);
}

/* Else who is told may end at once, as programs do, and be taken for the one who was lost first. */
static void a_call_fails_when_all_who_are_there_have_been_told(void **state)
{
    (void)state;
    enum { FOR_EVER = 1000000 };
    for (int which = 0; which < 2; which++) {
        char byte;
        tw_error error;
        task *t = begin_as(OWN, TASKS, &unasked);
        t->refuses = which ? LAST : FIRST; /* who is gone has no room any more */
        t->times = which ? 3 : FOR_EVER;
        assert_ok(twi_exchange_start(&t->x, &error));
        twi_exchange_lost(&t->x, FIRST);
        assert_int_equal(hear(t, CHANNEL, &byte, 1, &error), TW_ABORTED);
        assert_string_equal(error.message, "task 0 has ended before its work was done");
        assert_true(atomic_load(&t->x.over));
        assert_int_equal(count_said(t, LAST, ABORT), 1);
        twi_comm_close(&t->x.base);
        t->x.beating = false;
        finish(t);
    }
}

/* As they do who were told. */
static void they_tell_too(task *t)
{
    static const char *const why = "task 1 failed: no coffee";
    for (int from = FIRST; from <= LAST && atomic_load(&t->x.failed); from += LAST - FIRST)
        if (!atomic_load(&t->x.peers[from].failed))
            tell_failure(t, from, OWN, why);
}

/* One has no room for it at first. */
static void a_failure_is_told_to_all_once(void **state)
{
    (void)state;
    uint64_t number = TW_OUT_OF_RANGE | (uint64_t)(OWN + 1) << 32; /* and whose it is */
    for (int i = 0; i < 2; i++) {
        task *t = begin();
        start(t);
        t->refuses = i == 0 ? FIRST : LAST;
        t->times = 3;
        t->then = they_tell_too;
        t->x.base.ops->abort(&t->x.base, TW_OUT_OF_RANGE, "no coffee");
        while (!atomic_load(&t->x.over))
            nap();
        for (int to = FIRST; to <= LAST; to++)
            assert_int_equal(count_said(t, to, ABORT), to != OWN);
        for (int k = t->count - 2; k < t->count; k++)
            assert_said(t, k, t->said[k].to, ABORT, number, "task 1 failed: no coffee");
        assert_int_equal(count_said(t, FIRST, LEAVE), 0);
        twi_comm_close(&t->x.base);
        assert_int_equal(count_said(t, FIRST, LEAVE), 0);
        t->x.beating = false;
        finish(t);
    }
}

/* Where nobody is asked for messages the thread sleeps, and is woken for it. */
static void who_sleeps_between_beats_tells_failures(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        tw_error error = {0};
        task *t = begin_as(OWN, TASKS, &unasked);
        assert_ok(twi_exchange_start(&t->x, &error));
        while (t->count < 2)
            nap();
        if (i == 1)
            t->x.base.ops->abort(&t->x.base, TW_OUT_OF_RANGE, "no coffee");
        twi_comm_close(&t->x.base);
        assert_int_equal(count_said(t, LAST, ABORT), i);
        assert_int_equal(count_said(t, LAST, LEAVE), 1 - i);
        t->x.beating = false;
        finish(t);
    }
}

static void they_end(task *t)
{
    if (atomic_load(&t->x.closing) && !atomic_load(&t->x.failed))
        twi_exchange_lost(&t->x, LAST);
}

/* When nobody beats any more; who has left need not be told. */
static void a_failure_at_the_end_is_told_too(void **state)
{
    (void)state;
    task *t = begin();
    start(t);
    say(t, FIRST, LEAVE, 0, "", 0);
    t->refuses = FIRST;
    t->times = 1000;
    t->then = they_end;
    twi_comm_close(&t->x.base);
    assert_string_equal(t->x.reason, "task 2 has ended before its work was done");
    assert_int_equal(count_said(t, LAST, ABORT), 1);
    assert_true(atomic_load(&t->x.over));
    assert_true(t->times > 990); /* asked once or twice, not for a second */
    t->x.beating = false;
    finish(t);
}

/* ---- who sleeps is woken ----------------------------------------------------------------------------------------- */

static void word_wakes(task *t)
{
    say_byte(t, CHANNEL, 0);
}

static void sign_wakes(task *t)
{
    say(t, FIRST, LEAVE, 0, "", 0);
}

static void failure_wakes(task *t)
{
    twi_exchange_fail(&t->x, "no coffee");
}

static void end_wakes(task *t)
{
    end_here(t);
}

static void close_wakes(task *t)
{
    twi_comm_close(&t->x.base);
}

typedef struct waking {
    task *t;
    void (*wake)(task *t);
} waking;

static void *wake_in_a_thread(void *argument)
{
    waking *w = argument;
    w->wake(w->t);
    return NULL;
}

/* The thread that wakes cannot do so before this one sleeps: it has the lock. */
static void assert_wakes(void (*wake)(task *t), bool the_beating_one)
{
    pthread_t thread;
    task *t = begin_as(OWN, TASKS, &unasked);
    waking w = {t, wake};
    struct timespec until = twi_time_in(60);
    at_once = false;
    pthread_mutex_lock(&t->x.lock);
    pthread_create(&thread, NULL, wake_in_a_thread, &w);
    int rc = pthread_cond_timedwait(the_beating_one ? &t->x.ends : &t->x.changed, &t->x.lock, &until);
    pthread_mutex_unlock(&t->x.lock);
    pthread_join(thread, NULL);
    assert_int_equal(rc, 0);
    finish(t);
}

static void who_sleeps_is_woken(void **state)
{
    (void)state;
    assert_wakes(word_wakes, false);
    assert_wakes(sign_wakes, false);
    assert_wakes(failure_wakes, false);
    assert_wakes(end_wakes, false);
    assert_wakes(failure_wakes, true);
    assert_wakes(close_wakes, true);
}

/* Who is not asked for messages sleeps; this one has threads that bring them. */
static void *bring_a_word(void *argument)
{
    say_byte(argument, CHANNEL, 0);
    return NULL;
}

static void *bring_a_failure(void *argument)
{
    twi_exchange_fail(&((task *)argument)->x, "no coffee");
    return NULL;
}

static void words_and_failures_come_to_who_sleeps(void **state)
{
    (void)state;
    tw_error error = {0};
    char byte;
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        task *t = begin_as(OWN, TASKS, &unasked);
        at_once = false;
        pthread_create(&thread, NULL, i < 2 ? bring_a_word : bring_a_failure, t);
        assert_int_equal(hear(t, CHANNEL, &byte, 1, &error), i < 2 ? TW_OK : TW_ABORTED);
        pthread_join(thread, NULL);
        finish(t);
    }
}

/* By the clock that nobody sets. */
static void who_sleeps_does_so_until_it_is_time(void **state)
{
    (void)state;
    task *t = begin_as(OWN, TASKS, &unasked);
    stand_still(false);
    for (int i = 0; i < 2; i++) {
        int64_t began = twi_monotonic_ns();
        struct timespec until = twi_time_in(0.02);
        pthread_mutex_lock(&t->x.lock);
        while (pthread_cond_timedwait(i ? &t->x.ends : &t->x.changed, &t->x.lock, &until) == 0)
            ;
        pthread_mutex_unlock(&t->x.lock);
        assert_true(twi_monotonic_ns() - began >= SECONDS / 50);
    }
    finish(t);
}

/* ---- memory that runs out ---------------------------------------------------------------------------------------- */

static void a_word_comes(task *t)
{
    say_byte(t, CHANNEL, 0);
}

static void a_word_is_heard(task *t)
{
    char byte;
    assert_int_equal(hear(t, CHANNEL, &byte, 1, &(tw_error){0}), TW_ABORTED);
}

static void a_word_is_sent(task *t)
{
    assert_int_equal(send_bytes(t, CHANNEL, 1, &(tw_error){0}), TW_ABORTED);
}

static void they_begin_anew(task *t)
{
    assert_int_equal(renew(t, &(tw_error){0}), TW_ABORTED);
}

static void an_end_comes(task *t)
{
    say(t, FIRST, END, lane_with(LANE, TW_CANCELLED), "no more", 7);
}

static void a_renewal_comes(task *t)
{
    say(t, FIRST, RENEW, lane_with(LANE, TW_OK), "", 0);
}

/* Whichever of what each asks for is not there. */
static void memory_that_runs_out_ends_all(void **state)
{
    (void)state;
    static const struct {
        void (*work)(task *t);
        int blocks; /* lanes, channels and messages */
    } cases[] = {{a_word_comes, 3}, {a_word_is_heard, 2}, {a_word_is_sent, 2},
                 {an_end_comes, 4}, {a_renewal_comes, 4}, {they_begin_anew, 3}};
    tw_error error;
    for (int i = 0; i < 6; i++)
        for (int block = 0; block < cases[i].blocks; block++) {
            task *t = begin();
            memory.countdown = block;
            cases[i].work(t);
            forgive_allocations();
            assert_failed(t, TW_ABORTED, "task 1 has no memory left for messages of the others");
            finish(t);
        }
    twi_exchange none = {0};
    fail_allocation(0);
    assert_fails(twi_exchange_init(&none, &asked, OWN, TASKS, DEADLINE, &error), TW_RESOURCE_EXHAUSTED, "joining");
    twi_exchange_clear(&none);
    stop_failing_allocations();
}

int run_protocol(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_come_before_they_are_waited_for_and_while_they_are),
        cmocka_unit_test(who_sends_is_told_how_much_was_taken),
        cmocka_unit_test(who_sends_long_words_is_told_sooner),
        cmocka_unit_test(what_is_no_message_ends_all),
        cmocka_unit_test(another_number_and_other_lengths_end_all),
        cmocka_unit_test(messages_without_bytes_come_when_they_are_waited_for),
        cmocka_unit_test(memory_of_what_was_taken_is_used_again),
        cmocka_unit_test(only_the_next_message_comes_straight_to_its_place),
        cmocka_unit_test(nobody_writes_where_nobody_waits_any_more),
        cmocka_unit_test(who_sends_waits_until_enough_is_taken),
        cmocka_unit_test(who_cannot_be_sent_to_has_ended),
        cmocka_unit_test(who_takes_more_than_was_sent_is_spoiled),
        cmocka_unit_test(channels_end_behind_what_came_and_once),
        cmocka_unit_test(the_last_lane_ends_like_any_other),
        cmocka_unit_test(a_lane_that_ends_takes_no_memory_for_its_channels),
        cmocka_unit_test(what_names_no_lane_or_no_status_is_no_message),
        cmocka_unit_test(both_are_told_of_an_end_and_of_what_begins),
        cmocka_unit_test(who_begins_anew_first_is_heard_to_his_end),
        cmocka_unit_test(what_comes_of_before_is_dropped),
        cmocka_unit_test(who_leaves_or_fails_begins_nothing),
        cmocka_unit_test(a_failure_has_its_status_and_the_first_reason),
        cmocka_unit_test(what_came_before_a_task_left_is_taken),
        cmocka_unit_test(a_process_that_ends_was_done_or_not),
        cmocka_unit_test(what_the_first_task_says_others_do_not),
        cmocka_unit_test(what_a_task_has_failed_with_it_says_and_the_first_of_the_others),
        cmocka_unit_test(the_first_of_the_others_says_who_is_gone),
        cmocka_unit_test(who_hears_nothing_of_the_first_says_it),
        cmocka_unit_test(what_any_task_is_asked_all_hear_of),
        cmocka_unit_test(who_is_silent_longest_is_named),
        cmocka_unit_test(who_sends_in_vain_says_who_does_not_take_it),
        cmocka_unit_test(any_word_is_a_sign_of_life),
        cmocka_unit_test(who_was_held_up_gives_others_time),
        cmocka_unit_test(who_is_done_gives_others_time),
        cmocka_unit_test(who_waits_is_patient_and_says_so_once),
        cmocka_unit_test(who_waits_looks_now_and_then_who_is_there),
        cmocka_unit_test(cores_are_crowded_when_more_threads_want_them),
        cmocka_unit_test(it_beats_until_all_are_done),
        cmocka_unit_test(a_call_fails_when_all_who_are_there_have_been_told),
        cmocka_unit_test(a_failure_is_told_to_all_once),
        cmocka_unit_test(who_sleeps_between_beats_tells_failures),
        cmocka_unit_test(a_failure_at_the_end_is_told_too),
        cmocka_unit_test(who_sleeps_is_woken),
        cmocka_unit_test(words_and_failures_come_to_who_sleeps),
        cmocka_unit_test(who_sleeps_does_so_until_it_is_time),
        cmocka_unit_test(memory_that_runs_out_ends_all),
    };
    int failed = cmocka_run_group_tests_name("protocol", tests, NULL, NULL);
    stand_still(false); /* where a test has failed */
    return failed;
}

/* exchange.c - messages between tasks that one process plays: late, lost, twice, spoiled, and of tasks that hang or
 * end. */
#include "parts.h"
#include "testing.h"

#include "base/clock.h"
#include "comm/exchange.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* A carrier of messages in memory: what is sent lies with the receiver until it is due, in the order of who sent it.
 * Each player can be told to be late, to lose a message, to say it twice, to spoil it, to hang, or to end without a
 * word. */
enum { PLAYERS = 3, ROUNDS = 20, CHANNEL = 5 };
enum { LANE = 2, OF_A_LANE = 2 }; /* that channel's and the next one's */
enum { DEADLINE = 1000 }; /* seconds: it passes where a test skips them, and nowhere else */

typedef struct letter {
    struct letter *next;
    int64_t due_ns;
    twi_header header;
    char data[];
} letter;

typedef struct player {
    twi_exchange x;
    struct player *all; /* [PLAYERS] */
    pthread_t thread;
    tw_status (*work)(twi_comm *c, tw_error *error);
    tw_status status;
    tw_error error;
    pthread_mutex_t lock;
    letter *lines[PLAYERS]; /* from each, with the lock */
    void (*first)(struct player *p); /* what it does before it begins to be heard; NULL: it begins at once */
    int64_t late_ns;          /* each of its messages, at most */
    int lost, twice, spoiled; /* which of its messages, counted from 1 */
    int spoken;
    atomic_int waits;         /* so often it has looked for what it waits for */
    atomic_bool held, stands; /* it is to be held up; its beating thread is */
    bool hangs, vanishes;
    bool failed_at_the_end; /* when its carrier was closed */
} player;

static _Thread_local player *acting; /* by this thread; NULL: another thread of the library's */

static void lay_down(player *to, int from, const twi_header *header, const void *data, int64_t due_ns)
{
    letter *l = calloc(1, sizeof *l + (size_t)header->bytes);
    l->due_ns = due_ns;
    l->header = *header;
    if (header->bytes)
        memcpy(l->data, data, (size_t)header->bytes);
    pthread_mutex_lock(&to->lock);
    letter **end = &to->lines[from];
    while (*end)
        end = &(*end)->next;
    *end = l;
    pthread_mutex_unlock(&to->lock);
}

static bool player_put(twi_exchange *x, int to, const twi_header *given, const void *data, bool patient)
{
    player *p = (player *)x;
    twi_header header = *given;
    int number = header.channel >= 0 ? ++p->spoken : -1, from = x->base.task;
    int64_t due = twi_monotonic_ns() + p->late_ns * (number % 7);
    (void)patient;
    if (p->hangs || number == p->lost)
        return true;
    header.magic += number == p->spoiled;
    lay_down(&p->all[to], from, &header, data, due);
    if (number == p->twice)
        lay_down(&p->all[to], from, &header, data, due);
    return true;
}

static bool take_letter(player *p, int from)
{
    letter *l = p->lines[from];
    if (!l || l->due_ns > twi_monotonic_ns())
        return false;
    p->lines[from] = l->next;
    twi_message *m = twi_exchange_room(&p->x, from, &l->header);
    if (m) {
        memcpy(m->data, l->data, m->bytes);
        twi_exchange_hand_in(&p->x, from, &l->header, m);
    }
    free(l);
    return true;
}

static twi_progress player_pump(twi_exchange *x, int task)
{
    player *p = (player *)x;
    twi_progress progress = TWI_NOTHING;
    (void)task;
    for (; atomic_load(&p->held); nap())
        if (acting != p)
            atomic_store(&p->stands, true);
    pthread_mutex_lock(&p->lock);
    for (int from = 0; from < PLAYERS; from++)
        while (take_letter(p, from))
            progress = TWI_CAME;
    pthread_mutex_unlock(&p->lock);
    atomic_fetch_add(&p->waits, acting == p);
    return progress;
}

/* The others may still write to it: it is freed when all have ended. */
static void player_close(twi_exchange *x)
{
    ((player *)x)->failed_at_the_end = atomic_load(&x->failed);
}

static const twi_carrier_ops in_memory = {player_put, player_pump, player_close};

static void *act(void *argument)
{
    player *p = acting = argument;
    if (p->first) {
        p->first(p);
        p->status = twi_exchange_start(&p->x, &p->error);
        if (p->status != TW_OK)
            return NULL;
    }
    p->status = p->work(&p->x.base, &p->error);
    for (int i = 0; i < PLAYERS && p->vanishes; i++)
        if (i != p->x.base.task)
            twi_exchange_lost(&p->all[i].x, p->x.base.task);
    twi_comm_close(&p->x.base);
    return NULL;
}

static void set_up_within(player *players, tw_status (*work)(twi_comm *c, tw_error *error), double deadline)
{
    tw_error error = {0};
    memset(players, 0, sizeof *players * PLAYERS);
    for (int i = 0; i < PLAYERS; i++) {
        player *p = &players[i];
        p->all = players;
        p->work = work;
        pthread_mutex_init(&p->lock, NULL);
        assert_ok(twi_exchange_init(&p->x, &in_memory, i, PLAYERS, deadline, &error));
        p->x.base.lane_channels = OF_A_LANE;
    }
}

static void set_up(player *players, tw_status (*work)(twi_comm *c, tw_error *error))
{
    set_up_within(players, work, DEADLINE);
}

static void play(player *players)
{
    tw_error error = {0};
    for (int i = 0; i < PLAYERS; i++)
        if (!players[i].first)
            assert_ok(twi_exchange_start(&players[i].x, &error));
    for (int i = 0; i < PLAYERS; i++)
        assert_int_equal(pthread_create(&players[i].thread, NULL, act, &players[i]), 0);
    for (int i = 0; i < PLAYERS; i++)
        pthread_join(players[i].thread, NULL);
    for (int i = 0; i < PLAYERS; i++) {
        twi_exchange_clear(&players[i].x);
        pthread_mutex_destroy(&players[i].lock);
        for (int from = 0; from < PLAYERS; from++)
            for (letter *l = players[i].lines[from], *next; l; l = next) {
                next = l->next;
                free(l);
            }
    }
}

/* ---- time that passes -------------------------------------------------------------------------------------------- */

static bool has_one_failed(const player *all)
{
    bool failed = false;
    for (int i = 0; i < PLAYERS; i++)
        failed = failed || atomic_load(&all[i].x.failed);
    return failed;
}

/* Whether all that can have heard of all that speak, since then, and have had their turn. */
static bool have_heard(const player *all, int64_t ns)
{
    bool heard = true;
    for (int i = 0; i < PLAYERS; i++) {
        const twi_exchange *x = &all[i].x;
        for (int j = 0; j < PLAYERS && x->beating; j++)
            if (i != j && all[j].x.beating && !all[j].hangs && !atomic_load(&all[j].x.closing))
                heard = heard && atomic_load(&x->peers[j].heard_ns) >= ns && atomic_load(&x->turn_ns) >= ns;
    }
    return heard;
}

/* Parts of the deadline: who has no turn for so long is not held up, and is. */
static const double SHORT = 0.1, LONG = 0.2;

/* So many deadlines pass, in steps; or until one has failed. */
static void let_pass(player *all, double deadlines, double step)
{
    for (double passed = 0; passed < deadlines && !has_one_failed(all); passed += step) {
        skip_seconds(step * DEADLINE);
        for (int64_t now = twi_coarse_ns(); !have_heard(all, now) && !has_one_failed(all);)
            nap();
    }
}

static void wait_until_others_wait(const player *p)
{
    for (int i = 0; i < PLAYERS; i++)
        while (i != p->x.base.task && atomic_load(&p->all[i].waits) == 0 && !has_one_failed(p->all))
            nap();
}

/* ---- what players do --------------------------------------------------------------------------------------------- */

/* Bytes of a message that nobody else sends, and as many as nobody else does. */
static size_t compose(char *text, int from, int to, int round)
{
    size_t bytes = (size_t)(1 + from + PLAYERS * (to + PLAYERS * round));
    memset(text, from * 64 + to * 16 + round % 16, bytes);
    return bytes;
}

/* Everybody speaks to everybody in each round, then all share and compare. */
static tw_status converse(twi_comm *c, tw_error *error)
{
    enum { MOST = PLAYERS * PLAYERS * (ROUNDS + 1) };
    char sent[MOST], came[MOST];
    tw_status status = TW_OK;
    for (int round = 0; round < ROUNDS && status == TW_OK; round++) {
        for (int to = 0; to < c->tasks && status == TW_OK; to++)
            if (to != c->task)
                status = c->ops->send(c, to, CHANNEL, sent, compose(sent, c->task, to, round), error);
        for (int from = 0; from < c->tasks && status == TW_OK; from++) {
            size_t bytes = compose(sent, from, c->task, round);
            if (from == c->task)
                continue;
            status = c->ops->receive(c, from, CHANNEL, came, bytes, "a word", error);
            if (status == TW_OK && memcmp(sent, came, bytes) != 0)
                return twi_fail(error, TW_INTERNAL, "another word came");
        }
    }
    uint64_t shared = (uint64_t)c->task;
    if (status == TW_OK)
        status = twi_comm_share(c, 1, &shared, sizeof shared, "a number", error);
    return status == TW_OK && shared != 1 ? twi_fail(error, TW_INTERNAL, "another number came") : status;
}

static void describe_number(const void *user, size_t i, char *text, size_t size)
{
    const uint64_t *numbers = user;
    snprintf(text, size, "number %d", (int)numbers[i]);
}

static tw_status compare_lists(twi_comm *c, tw_error *error)
{
    uint64_t numbers[] = {7, 8, c->task == 2 ? 10 : 9};
    return twi_comm_compare(c, &(twi_comm_list){numbers, 3, describe_number, numbers}, "what they know", error);
}

/* All end with that status, and what they say holds `part`; `except` may have ended otherwise. */
static void assert_all_end(const player *players, tw_status status, const char *part, int except)
{
    for (int i = 0; i < PLAYERS; i++)
        if (i != except) {
            if (players[i].status != status)
                fail_msg("task %d: status %d, %s", i, players[i].status, players[i].error.message);
            assert_message(players[i].error.message, part);
        }
}

/* They have one clock, so what is found is at most what a message may have taken. */
static tw_status compare_clocks(twi_comm *c, tw_error *error)
{
    int64_t began = twi_monotonic_ns(), ahead = INT64_MAX;
    tw_status status = twi_comm_clock(c, &ahead, error);
    int64_t took = twi_monotonic_ns() - began;
    return status == TW_OK && (ahead > took || ahead < -took || (c->task == 0 && ahead != 0))
               ? twi_fail(error, TW_INTERNAL, "ahead by %lld ns, found within %lld", (long long)ahead, (long long)took)
               : status;
}

static void clocks_of_tasks_are_compared(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, compare_clocks);
    players[1].late_ns = 200000;
    play(players);
    assert_all_end(players, TW_OK, "", -1);
}

static void messages_come_in_their_order_however_late(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, converse);
    players[1].late_ns = 200000;
    players[2].late_ns = 50000;
    play(players);
    assert_all_end(players, TW_OK, "", -1);
}

/* Task 0 says a word and ends the channel and the one behind it. What came before that is taken, what waits or is sent
 * in them fails with its status on all, and other channels go on. */
static tw_status end_some_channels(twi_comm *c, tw_error *error)
{
    char word[8] = "word";
    tw_error ended = {0};
    tw_status status = TW_OK;
    if (c->task == 0) {
        status = c->ops->send(c, 1, CHANNEL, word, sizeof word, error);
        c->ops->end(c, LANE, TW_OUT_OF_RANGE, "there are no more words");
        if (c->ops->send(c, 1, CHANNEL, word, sizeof word, &ended) != TW_OUT_OF_RANGE)
            return twi_fail(error, TW_INTERNAL, "a word was sent behind the end");
    }
    if (c->task == 1)
        status = c->ops->receive(c, 0, CHANNEL, word, sizeof word, "a word", error);
    for (int i = 0; i < 2 && status == TW_OK && c->task > 0; i++)
        if (c->ops->receive(c, 0, CHANNEL + i, word, sizeof word, "a word", &ended) != TW_OUT_OF_RANGE ||
            !strstr(ended.message, "no more words"))
            return twi_fail(error, TW_INTERNAL, "channel %d: '%s'", CHANNEL + i, ended.message);
    return status == TW_OK ? twi_comm_share_in(c, CHANNEL + 2, 0, word, sizeof word, "a word", error) : status;
}

static void a_channel_that_ends_ends_alone_and_behind_what_came(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, end_some_channels);
    players[0].late_ns = 200000;
    play(players);
    assert_all_end(players, TW_OK, "", -1);
}

static tw_status do_nothing(twi_comm *c, tw_error *error)
{
    (void)c, (void)error;
    return TW_OK;
}

/* Everybody sends the number of the round to everybody, which comes even where others have ended the channels since,
 * and some words that nobody takes. One of the tasks ends the channels, the others listen until they hear it. */
static tw_status speak_until_the_end(twi_comm *c, int round, tw_error *error)
{
    int word = round, first = round % c->tasks;
    tw_status status = TW_OK;
    tw_error ended;
    for (int to = 0; to < c->tasks && status == TW_OK; to++)
        if (to != c->task)
            status = c->ops->send(c, to, CHANNEL, &word, sizeof word, error);
    for (int from = 0; from < c->tasks && status == TW_OK; from++) {
        if (from != c->task)
            status = c->ops->receive(c, from, CHANNEL, &word, sizeof word, "a word", error);
        if (status == TW_OUT_OF_RANGE || (status == TW_OK && word != round))
            return twi_fail(error, TW_INTERNAL, "round %d has word %d, status %d", round, word, status);
    }
    for (int i = 0; i < (round + c->task) % 3; i++)
        c->ops->send(c, (c->task + 1) % c->tasks, CHANNEL + i, &word, sizeof word, &ended);
    while (status == TW_OK && c->task != first)
        status = c->ops->receive(c, first, CHANNEL, &word, sizeof word, "a word", error);
    return status == TW_OK ? twi_fail(error, TW_OUT_OF_RANGE, "the round ends") : status;
}

static tw_status begin_anew(twi_comm *c, tw_error *error)
{
    tw_status status = TW_OK;
    for (int round = 0; round < ROUNDS && status == TW_OK; round++) {
        status = speak_until_the_end(c, round, error);
        if (status != TW_OUT_OF_RANGE)
            return status;
        c->ops->end(c, LANE, status, error->message);
        status = c->ops->renew(c, LANE, "the next round", error);
    }
    return status;
}

static void channels_that_have_ended_begin_anew(void **state)
{
    (void)state;
    player players[PLAYERS];
    for (int late = -1; late < PLAYERS; late++) {
        set_up(players, begin_anew);
        if (late >= 0)
            players[late].late_ns = 100000;
        play(players);
        assert_all_end(players, TW_OK, "", -1);
    }
    set_up(players, begin_anew);
    players[1].work = do_nothing;
    play(players);
    assert_all_end(players, TW_ABORTED, "task 1 has left; task", 1);
}

enum { MANY = 2000, FAR = 256 }; /* messages, and how many may be ahead */
static atomic_int said, heard, most_ahead;

/* Task 0 only speaks, and task 1 only listens, once it cannot go on. What is ahead lies in the memory of task 1. */
static tw_status speak_or_listen(twi_comm *c, tw_error *error)
{
    char word[8];
    tw_status status = TW_OK;
    for (int i = 0; i < MANY && status == TW_OK && c->task < 2; i++) {
        while (c->task == 1 && i == 0 && atomic_load(&said) < FAR)
            nap();
        if (c->task == 1) {
            int ahead = atomic_load(&said) - atomic_load(&heard);
            most_ahead = ahead > most_ahead ? ahead : most_ahead;
        }
        status = c->task == 0 ? c->ops->send(c, 1, CHANNEL, word, sizeof word, error)
                              : c->ops->receive(c, 0, CHANNEL, word, sizeof word, "a word", error);
        atomic_fetch_add(c->task == 0 ? &said : &heard, 1);
    }
    return status;
}

static void who_only_sends_stays_near_who_receives(void **state)
{
    (void)state;
    player players[PLAYERS];
    said = heard = most_ahead = 0;
    set_up(players, speak_or_listen);
    play(players);
    assert_all_end(players, TW_OK, "", -1);
    assert_int_equal(heard, MANY);
    assert_in_range(most_ahead, FAR, FAR + 1);
}

static tw_status speak_in_vain(twi_comm *c, tw_error *error)
{
    char word[8] = "";
    tw_status status = TW_OK;
    for (int i = 0; i < MANY && status == TW_OK; i++)
        status = c->ops->send(c, 1, CHANNEL, word, sizeof word, error);
    return status;
}

static tw_status end_without_a_word(twi_comm *c, tw_error *error)
{
    (void)error;
    wait_until_others_wait((player *)c);
    return TW_OK;
}

static void who_waits_to_be_listened_to_is_told_that_nobody_will(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, do_nothing);
    players[0].work = speak_in_vain;
    players[1].work = end_without_a_word;
    players[1].hangs = players[1].vanishes = true;
    play(players);
    assert_int_equal(players[0].status, TW_ABORTED);
    assert_string_equal(players[0].error.message, "task 1 has ended before its work was done");
}

static void what_differs_is_told_to_all(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, compare_lists);
    play(players);
    assert_all_end(players, TW_FAILED_PRECONDITION,
                   "tasks differ in what they know: task 2 has 'number 10', task 0 has 'number 9'", -1);
}

typedef struct watching {
    tw_error error;
    atomic_bool told;
} watching;

static tw_status be_silent(twi_comm *c, tw_error *error)
{
    (void)error;
    wait_until_others_wait((player *)c);
    let_pass(((player *)c)->all, 1.5, SHORT);
    return TW_OK;
}

static void who_is_silent_is_named_by_all(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, converse);
    players[2].work = be_silent;
    players[2].hangs = true;
    play(players);
    assert_all_end(players, TW_ABORTED, "task 2 has not been heard of for", 2);
}

/* It waits for no other task, but for what the beating thread has to tell. */
static void note_failure(void *user, tw_status status, const char *why)
{
    watching *w = user;
    twi_fail(&w->error, status, "%s", why);
    atomic_store(&w->told, true);
}

static tw_status wait_for_oneself(twi_comm *c, tw_error *error)
{
    watching w = {0}, late = {0};
    twi_comm_watcher watcher = {.lost = note_failure, .user = &w}, after = {.lost = note_failure, .user = &late},
                     gone = {.lost = note_failure};
    c->ops->watch(c, &gone);
    c->ops->watch(c, &watcher);
    c->ops->unwatch(c, &gone);
    c->ops->unwatch(c, &gone);
    ((player *)c)->waits++; /* for itself */
    while (!atomic_load(&w.told))
        nap();
    c->ops->watch(c, &after);
    bool at_once = atomic_load(&late.told);
    c->ops->unwatch(c, &watcher);
    c->ops->unwatch(c, &after);
    return at_once ? twi_fail(error, w.error.status, "%s", w.error.message)
                   : twi_fail(error, TW_INTERNAL, "who comes later was not told");
}

static void who_is_silent_is_noticed_though_nobody_waits_for_it(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, wait_for_oneself);
    players[2].work = be_silent;
    players[2].hangs = true;
    play(players);
    assert_all_end(players, TW_ABORTED, "task 2 has not been heard of for", 2);
}

static void who_ends_without_a_word_is_named_by_all(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, converse);
    players[1].work = do_nothing;
    players[1].hangs = players[1].vanishes = true;
    play(players);
    assert_all_end(players, TW_ABORTED, "task 1 has ended before its work was done", 1);
}

static atomic_bool first_has_said;

/* What is said alike is said by the first; what another has to say beside that, it says. */
static tw_status complain_alike(twi_comm *c, tw_error *error)
{
    char word = 0;
    while (c->task != 0 && !atomic_load(&first_has_said))
        nap();
    bool is_to_say = c->ops->is_to_say(c, "no tea");
    if (c->task == 0)
        atomic_store(&first_has_said, true);
    if (is_to_say != (c->task == 0))
        return twi_fail(error, TW_INTERNAL, "what all say alike was not said once");
    tw_status status = twi_comm_share(c, 2, &word, sizeof word, "a word", error);
    return status == TW_OK && c->task == 1 && !c->ops->is_to_say(c, "no sugar")
               ? twi_fail(error, TW_INTERNAL, "what one alone has to say was not said")
               : status;
}

static void what_all_say_alike_the_first_says(void **state)
{
    (void)state;
    player players[PLAYERS];
    first_has_said = false;
    set_up(players, complain_alike);
    play(players);
    assert_all_end(players, TW_OK, "", -1);
}

static atomic_int warnings;

static void hear_warning(void *user, int level, const char *message)
{
    (void)user, (void)level;
    assert_message(message,
                   "s for a word of task 2, which is there but does not send it; after 20000 s that ends the run");
    warnings++;
}

/* Beyond the deadline, until both others have said so, but not beyond all patience. */
static tw_status wait_for_the_last(twi_comm *c, tw_error *error)
{
    char word = 0;
    if (c->task == 2) {
        wait_until_others_wait((player *)c);
        let_pass(((player *)c)->all, 1.5, SHORT);
        while (warnings < PLAYERS - 1)
            nap();
    }
    return twi_comm_share(c, 2, &word, sizeof word, "a word", error);
}

static void who_waits_for_longer_than_the_deadline_is_told_what_for(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, wait_for_the_last);
    warnings = 0;
    tw_set_log(hear_warning, NULL, TW_LOG_WARNING);
    play(players);
    tw_set_log(NULL, NULL, TW_LOG_WARNING);
    assert_all_end(players, TW_OK, "", -1);
    assert_int_equal(warnings, PLAYERS - 1);
}

enum { ASKED = 15 };

/* The second is asked to end, and the last says nothing to the first, for longer than the deadline; or what it said
 * before came so late that more of that is no wonder. */
static tw_status ask_for_the_end(twi_comm *c, bool late_before, tw_error *error)
{
    char word = 0;
    player *all = ((player *)c)->all;
    tw_status status = TW_OK;
    for (int round = !late_before; round < 2 && status == TW_OK; round++) {
        if (c->task == 2) {
            wait_until_others_wait((player *)c);
            if (round == 1)
                all[1].x.base.ops->asked(&all[1].x.base, ASKED);
            while (round == 1 && atomic_load(&all[1].x.asked_ns) == 0) /* its wait counts from then on */
                nap();
            let_pass(all, round == 0 ? 3.5 : 4.5, SHORT);
            for (int i = 0; i < PLAYERS && !late_before; i++) /* it looks only now and then, and tells the others */
                while (!atomic_load(&all[i].x.failed))
                    nap();
        }
        for (int to = 0; to < 2 && c->task == 2 && status == TW_OK; to++)
            status = c->ops->send(c, to, CHANNEL, &word, 1, error);
        if (c->task != 2)
            status = c->ops->receive(c, 2, CHANNEL, &word, 1, "a word", error);
    }
    return status == TW_OK ? twi_comm_share(c, 0, &word, 1, "the end", error) : status;
}

static tw_status ask_one_that_waits(twi_comm *c, tw_error *error)
{
    return ask_for_the_end(c, false, error);
}

static tw_status ask_one_that_waits_long(twi_comm *c, tw_error *error)
{
    return ask_for_the_end(c, true, error);
}

/* A wait in a lane, but no other. */
static void who_is_asked_to_end_does_not_wait_for_all_patience(void **state)
{
    (void)state;
    player players[PLAYERS];
    tw_set_log(hear_warning, NULL, TW_LOG_WARNING);
    set_up(players, ask_one_that_waits);
    play(players);
    assert_all_end(players, TW_DEADLINE_EXCEEDED, "s for a word of task 2, which is there but does not send it", -1);
    assert_message(players[2].error.message, "asked to end by signal 15, but task ");
    set_up(players, ask_one_that_waits_long);
    play(players);
    assert_all_end(players, TW_OK, "", -1);
    tw_set_log(NULL, NULL, TW_LOG_WARNING);
}

static atomic_bool time_is_over;

/* Longer than twice the deadline; then tasks 0 and 2 have something to say to each other. */
static tw_status work_long(twi_comm *c, tw_error *error)
{
    char word = 0;
    player *p = (player *)c;
    while (atomic_load(&p->all[1].waits) == 0)
        nap();
    if (c->task == 0) {
        let_pass(p->all, 2.2, SHORT);
        atomic_store(&time_is_over, true);
    }
    while (!atomic_load(&time_is_over))
        nap();
    tw_status status = c->ops->send(c, 2 - c->task, CHANNEL, &word, 1, error);
    return status == TW_OK ? c->ops->receive(c, 2 - c->task, CHANNEL, &word, 1, "a word", error) : status;
}

/* It waits for them, since messages move only while somebody asks, and hears of them as long as that is. */
static void who_is_done_waits_for_others_beyond_the_deadline(void **state)
{
    (void)state;
    player players[PLAYERS];
    time_is_over = false;
    set_up(players, work_long);
    players[1].work = do_nothing;
    play(players);
    assert_all_end(players, TW_OK, "", -1);
    for (int i = 0; i < PLAYERS; i++)
        if (players[i].failed_at_the_end)
            fail_msg("task %d: %s", i, players[i].x.reason);
}

/* Who waits at its end for one that dies does not wait for the deadline. */
static void who_is_done_sees_that_another_has_died(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, do_nothing);
    players[1].work = end_without_a_word;
    players[1].hangs = players[1].vanishes = true;
    play(players);
    for (int i = 0; i < PLAYERS; i += 2) {
        assert_true(players[i].failed_at_the_end);
        assert_string_equal(players[i].x.reason, "task 1 has ended before its work was done");
    }
}

/* For less than the deadline the others are held up, and then the rest of it goes by. */
static void begin_late(player *p)
{
    for (int i = 0; i < PLAYERS; i += 2)
        while (!atomic_load(&p->all[i].stands))
            nap();
    skip_seconds(0.7 * DEADLINE);
    for (int i = 0; i < PLAYERS; i += 2)
        atomic_store(&p->all[i].held, false);
    let_pass(p->all, 0.6, SHORT);
}

/* They have not listened in that time, and do not say of the one who is late that he was silent. */
static void who_was_held_up_takes_nobody_for_lost(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, converse);
    players[0].held = players[2].held = true;
    players[1].first = begin_late;
    play(players);
    assert_all_end(players, TW_OK, "", -1);
}

static tw_status be_silent_to_who_stands_still(twi_comm *c, tw_error *error)
{
    (void)error;
    wait_until_others_wait((player *)c);
    let_pass(((player *)c)->all, 2, LONG);
    return TW_OK;
}

/* However often they do not listen, who is never heard is silent. */
static void who_is_often_held_up_finds_who_is_silent(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, converse);
    players[2].work = be_silent_to_who_stands_still;
    players[2].hangs = true;
    play(players);
    assert_all_end(players, TW_ABORTED, "task 2 has not been heard of for", 2);
}

static void what_is_lost_or_comes_twice_or_spoiled_is_noticed(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, converse);
    players[1].lost = 3;
    play(players);
    assert_all_end(players, TW_ABORTED, "task 1 has sent message 2 to task 0 where 1 was due", -1);
    set_up(players, converse);
    players[1].twice = 3;
    play(players);
    assert_all_end(players, TW_ABORTED, "task 1 has sent message 1 to task 0 where 2 was due", -1);
    set_up(players, converse);
    players[1].spoiled = 3;
    play(players);
    assert_all_end(players, TW_ABORTED, "task 1 has sent what is no message", -1);
}

static tw_status say_one_byte(twi_comm *c, tw_error *error)
{
    char byte[2] = "";
    tw_status status = TW_OK;
    for (int to = 0; to < c->tasks && status == TW_OK; to++)
        if (to != c->task)
            status = c->ops->send(c, to, CHANNEL, byte, 1, error);
    int from = c->task == 0 ? 1 : 0;
    return status == TW_OK ? c->ops->receive(c, from, CHANNEL, byte, c->task == 2 ? 2 : 1, "a byte", error) : status;
}

static tw_status give_up(twi_comm *c, tw_error *error)
{
    c->ops->abort(c, TW_OUT_OF_RANGE, "no coffee");
    return twi_fail(error, TW_OUT_OF_RANGE, "task 2 failed: no coffee");
}

static void other_lengths_and_failures_and_early_ends_are_told_to_all(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, say_one_byte);
    play(players);
    assert_int_equal(players[2].status, TW_ABORTED);
    assert_string_equal(players[2].error.message, "task 0 has sent 1 bytes where task 2 expected 2: a byte");
    set_up(players, converse);
    players[2].work = give_up;
    play(players);
    assert_all_end(players, TW_OUT_OF_RANGE, "task 2 failed: no coffee", -1);
    set_up(players, converse);
    players[2].work = do_nothing;
    play(players);
    assert_all_end(players, TW_ABORTED, "task 2 has left; task", 2);
}

/* With a clock on which all the time that there is for it is over at the first look. */
static void a_task_tells_and_looks_once_however_late_it_is(void **state)
{
    (void)state;
    player players[PLAYERS];
    skip_at_each_look(2);
    first_has_said = false;
    set_up_within(players, complain_alike, 1e9);
    play(players);
    assert_all_end(players, TW_OK, "", -1);
    set_up_within(players, converse, 1e9);
    players[2].work = give_up;
    play(players);
    assert_all_end(players, TW_OUT_OF_RANGE, "task 2 failed: no coffee", -1);
    skip_at_each_look(0);
}

/* where what comes is put */

static bool put_nothing(twi_exchange *x, int to, const twi_header *header, const void *data, bool patient)
{
    (void)x, (void)to, (void)header, (void)data, (void)patient;
    return true;
}

static void close_nothing(twi_exchange *x)
{
    twi_exchange_clear(x);
}

typedef struct pair_of_bytes {
    twi_comm *c;
    uint8_t first, second;
} pair_of_bytes;

static void *receive_two(void *argument)
{
    pair_of_bytes *p = argument;
    p->c->ops->receive(p->c, 1, CHANNEL, &p->first, 1, "a byte", NULL);
    p->c->ops->receive(p->c, 1, CHANNEL, &p->second, 1, "a byte", NULL);
    return NULL;
}

/* The first of two has room before somebody waits, and is handed in when he does; the other comes when that has just
 * been taken. Whoever is too slow for that tries again. */
static void a_message_does_not_come_to_the_place_of_the_one_before(void **state)
{
    (void)state;
    enum { TRIES = 300 };
    static const twi_carrier_ops nothing = {put_nothing, NULL, close_nothing};
    tw_error error = {0};
    twi_exchange x = {0};
    assert_ok(twi_exchange_init(&x, &nothing, 0, 2, DEADLINE, &error));
    for (int i = 0; i < TRIES; i++) {
        pair_of_bytes bytes = {&x.base, 0, 0};
        twi_header first = {TWI_MAGIC, CHANNEL, 1, 2 * (uint64_t)i % TWI_NUMBERS}, second = first;
        second.number++;
        pthread_t thread;
        twi_message *one = twi_exchange_room(&x, 1, &first), *two;
        twi_channel *c = one->channel;
        pthread_create(&thread, NULL, receive_two, &bytes);
        while (atomic_load(&c->place) != TWI_WANTED) /* somebody waits for the next one */
            sched_yield();
        *one->data = 1;
        twi_exchange_hand_in(&x, 1, &first, one);
        while (atomic_load(&c->first))
            ;
        two = twi_exchange_room(&x, 1, &second);
        assert_true(two->data && two->data != (char *)&bytes.first);
        *two->data = 2;
        twi_exchange_hand_in(&x, 1, &second, two);
        pthread_join(thread, NULL);
        assert_int_equal(bytes.first * 10 + bytes.second, 12);
    }
    twi_exchange_clear(&x);
}

int run_exchange(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_in_their_order_however_late),
        cmocka_unit_test(clocks_of_tasks_are_compared),
        cmocka_unit_test(who_only_sends_stays_near_who_receives),
        cmocka_unit_test(a_channel_that_ends_ends_alone_and_behind_what_came),
        cmocka_unit_test(channels_that_have_ended_begin_anew),
        cmocka_unit_test(who_waits_to_be_listened_to_is_told_that_nobody_will),
        cmocka_unit_test(what_differs_is_told_to_all),
        cmocka_unit_test(who_is_silent_is_named_by_all),
        cmocka_unit_test(who_is_silent_is_noticed_though_nobody_waits_for_it),
        cmocka_unit_test(who_ends_without_a_word_is_named_by_all),
        cmocka_unit_test(what_all_say_alike_the_first_says),
        cmocka_unit_test(who_waits_for_longer_than_the_deadline_is_told_what_for),
        cmocka_unit_test(who_is_asked_to_end_does_not_wait_for_all_patience),
        cmocka_unit_test(who_is_done_waits_for_others_beyond_the_deadline),
        cmocka_unit_test(who_is_done_sees_that_another_has_died),
        cmocka_unit_test(who_was_held_up_takes_nobody_for_lost),
        cmocka_unit_test(who_is_often_held_up_finds_who_is_silent),
        cmocka_unit_test(what_is_lost_or_comes_twice_or_spoiled_is_noticed),
        cmocka_unit_test(other_lengths_and_failures_and_early_ends_are_told_to_all),
        cmocka_unit_test(a_task_tells_and_looks_once_however_late_it_is),
        cmocka_unit_test(a_message_does_not_come_to_the_place_of_the_one_before),
    };
    return cmocka_run_group_tests_name("exchange", tests, NULL, NULL);
}

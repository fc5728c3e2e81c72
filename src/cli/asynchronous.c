/* asynchronous.c - see asynchronous.h. */
#include "asynchronous.h"

#include "command.h" /* complain */

#include <inttypes.h>
#include <stdio.h>

enum { AUTO, ON, OFF };                                                                    /* ORDER SYNC */
static const tw_updates kinds[] = {TW_UPDATES_DEFAULT, TW_UPDATES_SYNCHRONOUS, TW_UPDATES_ASYNCHRONOUS};
static const tw_order orders[] = {TW_ORDER_ARRIVAL, TW_ORDER_EQUAL, TW_ORDER_UNIFORM, TW_ORDER_EXPONENTIAL,
                                  TW_ORDER_STRAGGLER};                                      /* ORDER TURNS */

bool asynchronous_read(const char *command, const asynchronous *given, tw_updates *kind, tw_asynchronous *wanted)
{
    bool bounded = given->max_staleness != NOT_GIVEN;
    *kind = kinds[given->sync];
    *wanted = (tw_asynchronous){
        .bounded = bounded,
        .max_staleness = bounded ? given->max_staleness : 0,
        .order = orders[given->order],
        .order_seed = given->order_seed,
        .replay = given->replay,
    };
    if (given->sync == ON && bounded)
        return complain(command, "--max-staleness is for --sync off: synchronous updates are never stale");
    if (given->sync == ON && (given->order || given->replay))
        return complain(command, "--%s is for --sync off: synchronous towers update together",
                        given->order ? "order" : "replay");
    if (given->replay && (given->order || bounded))
        return complain(command, "--replay says in which order towers update; leave out --%s",
                        given->order ? "order" : "max-staleness");
    return true;
}

char *asynchronous_text(tw_updates kind, const tw_asynchronous *a, char *text, size_t size)
{
    static const char *const words[] = {"in order of arrival", "tower after tower", "order drawn (uniform times)",
                                        "order drawn (exponential times)", "order of one slow tower"};
    if (kind == TW_UPDATES_SYNCHRONOUS) {
        snprintf(text, size, "synchronous");
        return text;
    }
    int used = snprintf(text, size, "asynchronous, %s", a->replay ? "in a replayed order" : words[a->order]);
    if (a->bounded && used > 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, ", staleness at most %" PRId64, a->max_staleness);
    return text;
}

enum { BINS = sizeof((tw_staleness *)0)->histogram / sizeof(int64_t), MOST_LINES = 32, WIDTH = 40 };

void staleness_print(const tw_trainer *trainer)
{
    tw_staleness all, one;
    int towers = tw_trainer_towers(trainer), last = BINS - 1;
    int64_t highest = 1;
    tw_trainer_staleness(trainer, -1, &all);
    printf("staleness: %.2f updates of others on the mean, %" PRId64 " at most\n", all.mean, all.most);
    for (int i = 0; i < towers && i < MOST_LINES; i++) {
        tw_trainer_staleness(trainer, i, &one);
        printf("  tower %-5d %8" PRId64 " updates, %.2f on the mean, %" PRId64 " at most\n", i, one.updates, one.mean,
               one.most);
    }
    for (; last > 0 && !all.histogram[last]; last--)
        ;
    for (int i = 0; i <= last; i++)
        highest = all.histogram[i] > highest ? all.histogram[i] : highest;
    for (int i = 0; i <= last; i++) {
        int width = (int)((all.histogram[i] * WIDTH + highest - 1) / highest);
        printf("  %3d%-8s %8" PRId64 "%s%.*s\n", i, i == BINS - 1 ? " or more" : "", all.histogram[i], width ? " " : "",
               width, "########################################");
    }
}

static void add_staleness(json *out, const tw_staleness *s)
{
    json_integer(out, "updates", s->updates);
    json_number(out, "mean", s->mean);
    json_integer(out, "max", s->most);
}

void staleness_json(json *out, const tw_trainer *trainer)
{
    tw_staleness s;
    tw_trainer_staleness(trainer, -1, &s);
    json_begin(out, "staleness", '{');
    add_staleness(out, &s);
    json_begin(out, "histogram", '[');
    for (int i = 0; i < BINS; i++)
        json_integer(out, NULL, s.histogram[i]);
    json_end(out);
    json_begin(out, "towers", '[');
    for (int i = 0; i < tw_trainer_towers(trainer); i++) {
        tw_trainer_staleness(trainer, i, &s);
        json_begin(out, NULL, '{');
        add_staleness(out, &s);
        json_end(out);
    }
    json_end(out);
    json_end(out);
}

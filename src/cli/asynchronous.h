/* asynchronous.h - synchronous or asynchronous updates: the options of `tower train` that say which, and what is
 * printed about staleness. */
#ifndef CLI_ASYNCHRONOUS_H
#define CLI_ASYNCHRONOUS_H

#include "json.h"
#include "options.h"

#include <tower/trainer.h>

typedef struct asynchronous {
    int sync, order; /* ORDER SYNC, ORDER TURNS */
    int64_t max_staleness, order_seed;
    const char *replay;
} asynchronous;

/* Rows for the members of `settings.asynchronous`. */
#define ASYNCHRONOUS_OPTIONS(settings)                                                                                      \
    {"sync",                                                                                                           \
     "on|off|auto",                                                                                                    \
     OPTION_CHOICE,                                                                                                    \
     offsetof(settings, asynchronous.sync),                                                                                 \
     "on: a step is one update by the mean of all towers; off: each tower updates by itself, and a step is one "       \
     "update of one tower; auto: as the checkpoint says, or on",                                                       \
     .initial = "auto",                                                                                                \
     .choices = "auto|on|off",                                                                                         \
     .section = "asynchronous updates"},                                                                               \
        {"max-staleness",                                                                                              \
         "K",                                                                                                          \
         OPTION_NUMBER,                                                                                                \
         offsetof(settings, asynchronous.max_staleness),                                                                    \
         "with --sync off: no update comes from variables that are more than K updates old; 0: one tower at a time; " \
         "without it there is no bound",                                                                               \
         .most = INT32_MAX},                                                                                           \
        {"order",                                                                                                      \
         "ORDER",                                                                                                      \
         OPTION_CHOICE,                                                                                                \
         offsetof(settings, asynchronous.order),                                                                            \
         "with --sync off: in which order towers update. arrival: as they come; the others pretend, so that a run "    \
         "can be repeated: all towers equally fast; times drawn uniform or exponential; straggler: tower 0 four times " \
         "as slow",                                                                                                    \
         .initial = "arrival",                                                                                         \
         .choices = "arrival|equal|uniform|exponential|straggler"},                                                    \
        {"order-seed",                                                                                                 \
         "N",                                                                                                          \
         OPTION_NUMBER,                                                                                                \
         offsetof(settings, asynchronous.order_seed),                                                                       \
         "of an order that is drawn",                                                                                  \
         .initial = "1",                                                                                               \
         .most = INT64_MAX},                                                                                           \
    {                                                                                                                  \
        "replay", "FILE", OPTION_FILE, offsetof(settings, asynchronous.replay),                                             \
            "update in the order of an earlier run, whose order.log this is: to the same bits, on any number of "      \
            "devices of the same kind"                                                                                 \
    }

/* The library's options; complains in the name of `command` and returns false if they do not fit together. */
bool asynchronous_read(const char *command, const asynchronous *given, tw_updates *kind, tw_asynchronous *wanted);

/* "asynchronous, in order of arrival, staleness at most 3", or "synchronous". */
char *asynchronous_text(tw_updates kind, const tw_asynchronous *wanted, char *text, size_t size);

/* How stale updates were, of each tower and of all, and how many of them: as lines, or as a member of an object. */
void staleness_print(const tw_trainer *trainer);
void staleness_json(json *out, const tw_trainer *trainer);

#endif

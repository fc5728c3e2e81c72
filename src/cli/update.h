/* update.h - the flags that say how variables are kept and updated, for the commands that train. */
#ifndef CLI_UPDATE_H
#define CLI_UPDATE_H

#include "command.h"
#include "json.h"

#include <tower/trainer.h>

/* tf_cnn_benchmarks' ways to update. Some are made for several processes, and are here what others are: how towers meet
 * does not depend on which process they are in. */
typedef struct update_mode {
    const char *name;
    tw_variable_update update; /* what it is */
    bool other_name;           /* of which this is another name */
    bool device_each;          /* each task has one device, as it wants it */
} update_mode;

/* The choices of --variable-update, for tower train with auto behind them. ORDER VARIABLE_UPDATE */
#define UPDATE_MODES                                                                                                   \
    "parameter_server|replicated|independent|distributed_replicated|distributed_all_reduce|collective_all_reduce|"    \
    "horovod|local"
enum { UPDATE_AUTO = 8 };
/* By number; NULL: not given, or auto. */
const update_mode *update_mode_at(int choice);

/* A part of the settings; -1: not given. */
typedef struct update {
    int variable_update, placement, parameter_device, consistency;
    bool staged;
    int64_t groups, meet_every;
} update;

/* Rows for a member `update` of `settings`. */
#define UPDATE_OPTIONS(settings)                                                                                       \
    {"variable-update",                                                                                                \
     "MODE",                                                                                                           \
     OPTION_CHOICE,                                                                                                    \
     offsetof(settings, update.variable_update),                                                                       \
     "who has the variables. parameter_server: there is one copy, to which the mean of the gradients is applied; "     \
     "replicated: each tower has a copy, and all get the mean; independent: so, and towers never meet, which shows "   \
     "what meeting costs; distributed_replicated: there is one copy, as of a parameter server, which after each "      \
     "update goes to a copy that each tower has; distributed_all_reduce, collective_all_reduce: replicated, over "     \
     "tasks; horovod: so, each task with one device; local: each group of towers has a copy, which trains on its own "  \
     "and becomes the mean of all every few steps; auto: whichever mode with the same numbers a few steps show to "  \
     "be the fastest. Without it as the checkpoint says, or parameter_server",                                         \
     .choices = UPDATE_MODES "|auto",                                                                                  \
     .section = "variables"},                                                                                          \
        {"local-parameter-device",                                                                                     \
         "KIND",                                                                                                       \
         OPTION_CHOICE,                                                                                                \
         offsetof(settings, update.parameter_device),                                                                  \
         "where the one copy of a parameter server lies; without it on the CPU, or with rotate and the like where "    \
         "towers run",                                                                                                 \
         .choices = "cpu|gpu",                                                                                         \
         .also = "variable-strategy"},                                                                                 \
        {"variable-placement",                                                                                         \
         "RULE",                                                                                                       \
         OPTION_CHOICE,                                                                                                \
         offsetof(settings, update.placement),                                                                         \
         "which of these devices gets a variable: the first, all in turn, or the one with the fewest elements, or "    \
         "bytes, so far; without it single on CPUs, least-loaded on GPUs",                                             \
         .choices = "single|rotate|least-loaded|least-bytes"},                                                         \
        {"staged-vars", NULL, OPTION_FLAG, offsetof(settings, update.staged),                                          \
         "towers of a parameter server compute with the variables as they were a step ago, from a stage of their "     \
         "own that is filled meanwhile"},                                                                              \
        {"groups", "G", OPTION_NUMBER, offsetof(settings, update.groups),                                              \
         "of --variable-update local: how many groups the towers make, each of neighbours and with a copy of the "     \
         "variables of its own; without it as the checkpoint says, or one for each tower",                             \
         .least = 1, .most = 1 << 20},                                                                                 \
        {"meet-every", "K", OPTION_NUMBER, offsetof(settings, update.meet_every),                                      \
         "of --variable-update local: after so many steps the groups' copies become their mean; without it as the "    \
         "checkpoint says, or 8",                                                                                      \
         .least = 1, .most = 1 << 30},                                                                                 \
    {                                                                                                                  \
        "variable-consistency", "WHEN", OPTION_CHOICE, offsetof(settings, update.consistency),                         \
            "when replicas apply the mean: in the step that made it, or one later. Without it as the checkpoint "      \
            "says, or strong",                                                                                         \
            .choices = "strong|relaxed"                                                                                \
    }

/* The library's options. With --variable-update auto none of the other flags may be given; complains in the name of
 * `command` and returns false if one is. */
bool update_read(const char *command, const update *update, tw_variable_options *options);

/* Whether the mode can be had with so many devices for towers on so many tasks, some of which the job ps may be. */
bool update_suits(const char *command, const update *update, int devices, int tasks);

/* With --variable-update auto: measures, prints what was measured and chosen and why, and puts that into
 * options->variables. Otherwise does nothing. */
tw_status update_choose(const update *update, tw_trainer_options *options, bool as_json, tw_error *error);

/* Lines of a run's header: the mode, by the name that was asked for (NULL: its own), where variables lie, and whose
 * numbers these are, unless no two runs take the same batches. The same as members of `out`. */
void print_update(tw_trainer *trainer, const char *asked, bool same_batches);
void report_update(tw_trainer *trainer, json *out);

#endif

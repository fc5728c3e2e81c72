/* recipe.h - a model as the command line wants it: cifar10_estimator's flags, each of which changes one value of the
 * model's recipe and is refused where the model has no such thing; and --compat, which changes several to what a
 * program of the time did. */
#ifndef CLI_RECIPE_H
#define CLI_RECIPE_H

#include "options.h"

#include <tower/models.h>
#include <tower/trainer.h>

/* What a program of the time did otherwise. ORDER COMPAT: recipe.c */
typedef enum compat {
    COMPAT_NONE,
    COMPAT_TUTORIAL,          /* the CIFAR-10 tutorial as it was first: a queue for each tower */
    COMPAT_TUTORIAL_PREFETCH, /* and later: one queue for all */
    COMPAT_ESTIMATOR,         /* cifar10_estimator */
} compat;

/* A part of the settings of both commands; see the rows. */
typedef struct recipe {
    int compat;
    int64_t num_layers, num_classes;
    double width_multiplier, momentum, weight_decay, batch_norm_decay, batch_norm_epsilon;
    int distortion;
} recipe;

/* Rows for a member `recipe` of `settings`: what the network is (evaluation must agree), and how it is trained. */
#define NETWORK_OPTIONS(settings)                                                                                      \
    {"num-layers", "N", OPTION_NUMBER, offsetof(settings, recipe.num_layers),                                          \
     "layers of a residual network for CIFAR-10: 6n + 2", .least = 8, .most = 1 << 12, .section = "network"},          \
        {"num-classes", "N", OPTION_NUMBER, offsetof(settings, recipe.num_classes),                                    \
         "classes to tell apart, instead of the model's own number: cifar10_estimator has 11, of which one is empty",  \
         .least = 2, .most = 1 << 20},                                                                                 \
        {"width-multiplier", "W", OPTION_REAL, offsetof(settings, recipe.width_multiplier),                            \
         "a network of so many times the channels: airbench alone comes in several widths", .most = 16,                \
         .positive = true},                                                                                            \
    {                                                                                                                  \
        "batch-norm-epsilon", "E", OPTION_REAL, offsetof(settings, recipe.batch_norm_epsilon),                         \
            "what batch normalization adds to a variance; without it the model's (1e-5)", .most = 1, .positive = true  \
    }
#define RECIPE_OPTIONS(settings)                                                                                       \
    {"compat", "PROGRAM", OPTION_CHOICE, offsetof(settings, recipe.compat),                                            \
     "do what a program of the time did, its slips too: the CIFAR-10 tutorial as it was first (tutorial), with one "   \
     "prefetch queue (tutorial-prefetch), or cifar10_estimator (estimator); to be given again with --resume",          \
     .initial = "none", .choices = "none|tutorial|tutorial-prefetch|estimator"},                                       \
        {"batch-norm-decay", "D", OPTION_REAL, offsetof(settings, recipe.batch_norm_decay),                                \
     "of the moving moments of batch normalization; without it the model's (0.997)", .most = 1, .positive = true},     \
        {"momentum", "M", OPTION_REAL, offsetof(settings, recipe.momentum),                                            \
         "of the optimizer of that name; without it 0.9", .most = 1, .positive = true},                                \
        {"weight-decay", "W", OPTION_REAL, offsetof(settings, recipe.weight_decay),                                    \
         "this times half the sum of squares of all trainable variables joins the loss, instead of the model's "       \
         "(resnet: 2e-4)", .most = 1000},                                                                              \
    {                                                                                                                  \
        "use-distortion-for-training", "on|off", OPTION_CHOICE, offsetof(settings, recipe.distortion),                 \
            "whether images are cropped and flipped at random", .initial = "on", .choices = "off|on"                   \
    }

/* Either form of the CIFAR-10 tutorial. */
bool recipe_is_tutorial(const recipe *recipe);

/* How batches come to the towers: the tutorial's program reads CIFAR-10's files, and there are none of other data. */
tw_trainer_input recipe_input(const recipe *recipe, const tw_dataset *data);
/* No two runs then take the same batches. */
bool input_reads_files(tw_trainer_input input);

/* For commands that look at a network: what concerns training alone is as if it were not given. */
void recipe_of_network(recipe *recipe);

/* *model = the named one, changed. Complains in the name of `command` and returns false if that cannot be. */
bool recipe_follow(const char *command, const recipe *recipe, const tw_model *named, tw_model *model);

#endif

/* bench_rule.h - the flags of tf_cnn_benchmarks that say how gradients become updates: optimizers, rates, half
 * precision. */
#ifndef CLI_BENCH_RULE_H
#define CLI_BENCH_RULE_H

#include "options.h"

#include <tower/trainer.h>

typedef struct bench_rule {
    int optimizer;
    double learning_rate, momentum, weight_decay, clip;
    double rmsprop_decay, rmsprop_momentum, rmsprop_epsilon, adam_beta1, adam_beta2, adam_epsilon;
    const char *piecewise;
    double epochs_per_decay, decay_factor, minimum_rate, warmup_epochs;
    double loss_scale;
    int64_t scale_every;
    bool use_fp16, automatic_scale;
    int dtype;
} bench_rule;

/* Rows for a member `rule` of `settings`. */
#define BENCH_RULE_OPTIONS(settings)                                                                                   \
    {"optimizer", "NAME", OPTION_CHOICE, offsetof(settings, rule.optimizer),                                           \
     "how gradients become updates; momentum looks ahead (Nesterov's)", .initial = "sgd",                              \
     .choices = "sgd|momentum|adam|rmsprop", .section = "optimizer"},                                                  \
        {"init-learning-rate", "R", OPTION_REAL, offsetof(settings, rule.learning_rate), "instead of the model's",     \
         .most = 1e6, .positive = true},                                                                               \
        {"piecewise-learning-rate-schedule", "R0;E1;R1;...", OPTION_TEXT, offsetof(settings, rule.piecewise),          \
         "rate R0, from epoch E1 on R1, and so on"},                                                                   \
        {"num-epochs-per-decay", "E", OPTION_REAL, offsetof(settings, rule.epochs_per_decay),                          \
         "epochs after which the rate is multiplied by --learning_rate_decay_factor", .most = 1e9, .positive = true},  \
        {"learning-rate-decay-factor", "F", OPTION_REAL, offsetof(settings, rule.decay_factor), "see above",           \
         .most = 1, .positive = true},                                                                                 \
        {"minimum-learning-rate", "R", OPTION_REAL, offsetof(settings, rule.minimum_rate),                             \
         "which that does not fall below", .most = 1e6},                                                               \
        {"num-learning-rate-warmup-epochs", "E", OPTION_REAL, offsetof(settings, rule.warmup_epochs),                  \
         "epochs in which the rate rises in a line", .most = 1e9},                                                     \
        {"momentum", "M", OPTION_REAL, offsetof(settings, rule.momentum), "of the optimizer of that name", .most = 1,  \
         .positive = true},                                                                                            \
        {"rmsprop-decay", "D", OPTION_REAL, offsetof(settings, rule.rmsprop_decay), "without it 0.9", .most = 1,       \
         .positive = true},                                                                                            \
        {"rmsprop-momentum", "M", OPTION_REAL, offsetof(settings, rule.rmsprop_momentum), "without it 0.9",            \
         .most = 1},                                                                                                   \
        {"rmsprop-epsilon", "E", OPTION_REAL, offsetof(settings, rule.rmsprop_epsilon), "without it 1", .most = 1e6,   \
         .positive = true},                                                                                            \
        {"adam-beta1", "B", OPTION_REAL, offsetof(settings, rule.adam_beta1), "without it 0.9", .most = 1,             \
         .positive = true},                                                                                            \
        {"adam-beta2", "B", OPTION_REAL, offsetof(settings, rule.adam_beta2), "without it 0.999", .most = 1,           \
         .positive = true},                                                                                            \
        {"adam-epsilon", "E", OPTION_REAL, offsetof(settings, rule.adam_epsilon), "without it 1e-8", .most = 1e6,      \
         .positive = true},                                                                                            \
        {"gradient-clip", "C", OPTION_REAL, offsetof(settings, rule.clip),                                             \
         "averaged gradients are clipped to -C ... C", .most = 1e9, .positive = true},                                 \
        {"weight-decay", "W", OPTION_REAL, offsetof(settings, rule.weight_decay), "instead of the model's",            \
         .most = 1000},                                                                                                \
        {"dtype", "TYPE", OPTION_CHOICE, offsetof(settings, rule.dtype), "what convolutions and products compute in",  \
         .initial = "float32", .choices = "float32|bfloat16|float16"},                                                 \
        {"use-fp16", NULL, OPTION_FLAG, offsetof(settings, rule.use_fp16),                                             \
         "compute in float16, with variables in float32 and a loss scale"},                                            \
        {"fp16-loss-scale", "S", OPTION_REAL, offsetof(settings, rule.loss_scale), "without it 128", .most = 1e9,      \
         .positive = true},                                                                                            \
        {"fp16-enable-auto-loss-scale", NULL, OPTION_FLAG, offsetof(settings, rule.automatic_scale),                   \
         "the scale doubles after good steps and halves where a gradient overflows"},                                  \
    {                                                                                                                  \
        "fp16-inc-loss-scale-every-n", "N", OPTION_NUMBER, offsetof(settings, rule.scale_every),                       \
            "good steps until it doubles", .initial = "1000", .least = 1, .most = 1 << 30                              \
    }

/* What the trainer needs to know, and the model's own values changed; complains and returns false if that cannot be. */
bool bench_rule_read(const bench_rule *given, tw_model *model, tw_trainer_options *trainer);

/* "sgd" */
const char *bench_rule_name(const bench_rule *given);

#endif

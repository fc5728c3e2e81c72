/* reduction.h - how the towers' gradients meet, as options of `tower train` and `tower bench`. */
#ifndef CLI_REDUCTION_H
#define CLI_REDUCTION_H

#include "options.h"

#include <tower/train.h>

typedef struct reduction {
    const char *spec;
    int64_t packs, small_bytes, small_group, bucket_bytes;
    int wire; /* ORDER WIRE */
    bool sparse_as_dense;
} reduction;

/* Rows for the members of `settings.reduction`. */
#define REDUCTION_OPTIONS(settings)                                                                                    \
    {"all-reduce-spec",                                                                                                \
     "SPEC",                                                                                                           \
     OPTION_TEXT,                                                                                                      \
     offsetof(settings, reduction.spec),                                                                               \
     "how gradients meet: tree, ring, rechd, pscpu, psgpu, hierarchical, nccl (where each tower has a card of its "    \
     "own), each with #SHARDS behind it if wanted; or "                                                                \
     "several with limits in elements between them: pscpu:2k:pscpu#2:64k:ring; without it tree",                       \
     .section = "reduction of gradients"},                                                                             \
        {"gradient-repacking",                                                                                         \
         "N",                                                                                                          \
         OPTION_NUMBER,                                                                                                \
         offsetof(settings, reduction.packs),                                                                          \
         "join all gradients and cut them into N equal packs; 0: leave them as they are",                              \
         .initial = "0",                                                                                               \
         .most = 4096},                                                                                                \
        {"agg-small-grads-max-bytes",                                                                                  \
         "N",                                                                                                          \
         OPTION_NUMBER,                                                                                                \
         offsetof(settings, reduction.small_bytes),                                                                    \
         "join gradients of at most so many bytes; 0: none",                                                           \
         .initial = "0",                                                                                               \
         .most = INT64_MAX},                                                                                           \
        {"agg-small-grads-max-group",                                                                                  \
         "N",                                                                                                          \
         OPTION_NUMBER,                                                                                                \
         offsetof(settings, reduction.small_group),                                                                    \
         "at most so many small ones at a time",                                                                       \
         .initial = "10",                                                                                              \
         .least = 1,                                                                                                   \
         .most = 1 << 20},                                                                                             \
        {"gradient-bucket-bytes",                                                                                      \
         "N",                                                                                                          \
         OPTION_BYTES,                                                                                                 \
         offsetof(settings, reduction.bucket_bytes),                                                                   \
         "join gradients up to so many bytes, in the order in which they are computed; 0: leave them as they are; "    \
         "without it 1M where each of several GPUs has its own variables",                                             \
         .most = INT64_MAX},                                                                                           \
        {"compact-gradient-transfer",                                                                                  \
         "TYPE",                                                                                                       \
         OPTION_CHOICE,                                                                                                \
         offsetof(settings, reduction.wire),                                                                           \
         "what gradients are rounded to on their way between towers; sums stay float32",                               \
         .initial = "off",                                                                                             \
         .choices = "off|float16|bfloat16"},                                                                           \
    {                                                                                                                  \
        "sparse-to-dense-grads", NULL, OPTION_FLAG, offsetof(settings, reduction.sparse_as_dense),                     \
            "average the gradients of embeddings whole, not by the rows they touch"                                    \
    }

/* The library's options; complains in the name of `command` and returns false if the spec cannot be understood. */
bool reduction_read(const char *command, const reduction *given, tw_average_options *options);

#endif

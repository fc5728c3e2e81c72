/* translate.c - see translate.h. */
#include "translate.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Members of tw_trainer_options and tw_device_options, and with '=' values of them. */
static const struct {
    const char *option, *flag;
} words[] = {
    {"updates=asynchronous", "--sync off"},
    {"updates", "--sync"},
    {"variables.update", "--variable-update"},
    {"variables.placement", "--variable-placement"},
    {"variables.parameter_device", "--local-parameter-device"},
    {"variables.staged", "--staged-vars"},
    {"variables.consistency", "--variable-consistency"},
    {"groups", "--groups"},
    {"meet_every", "--meet-every"},
    {"average.all_reduce", "--all-reduce-spec"},
    {"average.packs", "--gradient-repacking"},
    {"average.small_bytes", "--agg-small-grads-max-bytes"},
    {"average.bucket_bytes", "--gradient-bucket-bytes"},
    {"average.wire", "--compact-gradient-transfer"},
    {"asynchronous.max_staleness", "--max-staleness"},
    {"asynchronous.order", "--order"},
    {"batch", "--batch-size"},
    {"global_batch", "--global-batch-size"},
    {"tower_shares", "--tower-shares"},
    {"learning_rate", "--learning-rate"},
    {"input_place", "--input"},
    {"session.trace", "--trace"},
    {"virtual_gpus", "--virtual-gpus"},
    {"ps_tasks", "--ps-hosts"},
    {"accept_other_bits", "--accept-other-bits"},
    {"check_replicas", "--check-replicas"},
};

/* The longest row that the text begins with, and that ends where a name does; -1: none. */
static int find(const char *text)
{
    static const char inside[] = "abcdefghijklmnopqrstuvwxyz_.";
    int best = -1;
    for (int i = 0; i < (int)(sizeof words / sizeof *words); i++) {
        size_t length = strlen(words[i].option);
        bool whole = strncmp(text, words[i].option, length) == 0 && (!text[length] || !strchr(inside, text[length]) ||
                                                                     (text[length] == '.' && text[length + 1] <= ' '));
        if (whole && (best < 0 || length > strlen(words[best].option)))
            best = i;
    }
    return best;
}

char *translate(const char *message, char *text, size_t size)
{
    static const char options[] = "options.", fetch[] = "tw_data_fetch(\"";
    size_t at = 0;
    if (size)
        *text = 0;
    while (*message && at < size) {
        char name[64], directory[600];
        int used = 0,
            row = strncmp(message, options, sizeof options - 1) == 0 ? find(message + sizeof options - 1) : -1;
        if (row >= 0) {
            at += (size_t)snprintf(text + at, size - at, "%s", words[row].flag);
            message += sizeof options - 1 + strlen(words[row].option);
        } else if (strncmp(message, fetch, sizeof fetch - 1) == 0 &&
                   sscanf(message + sizeof fetch - 1, "%63[^\"]\", \"%599[^\"]\")%n", name, directory, &used) == 2 &&
                   used) {
            at += (size_t)snprintf(text + at, size - at, "'tower data fetch %s --data-dir %s'", name, directory);
            message += sizeof fetch - 1 + (size_t)used;
        } else {
            at += (size_t)snprintf(text + at, size - at, "%c", *message++);
        }
    }
    return text;
}

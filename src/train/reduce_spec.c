/* reduce_spec.c - the text that says how gradients are reduced; its grammar is that of tw_all_reduce().
 *
 *     spec = rule { ":" limit ":" rule }     rule = algorithm [ "#" shards ] [ "/" algorithm [ "#" shards ] ] */
#include "base/status.h"
#include "train/reduce.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
    const char *text, *at;
    tw_error *error;
} reader;

/* What stands at the reader's place, up to the next sign. */
static int word_length(const reader *r)
{
    return (int)strcspn(r->at, ":#/");
}

static tw_status complain(const reader *r, const char *expected)
{
    int length = word_length(r);
    const char *shown = length || *r->at ? r->at : "the end";
    if (!length)
        length = *r->at ? 1 : (int)strlen(shown);
    const char *quote = *r->at ? "'" : "";
    return twi_fail(r->error, TW_INVALID_ARGUMENT,
                    "all-reduce spec '%.200s': expected %s at character %d, found %s%.*s%s", r->text, expected,
                    (int)(r->at - r->text) + 1, quote, length < 60 ? length : 60, shown, quote);
}

/* "one of tree, ring, xring" */
static const char *list_algorithms(char text[256])
{
    int used = snprintf(text, 256, "one of");
    for (int i = 0; twi_algorithm_name(i); i++) {
        const char *name = twi_algorithm_name(i);
        if (!twi_algorithm_refusal(twi_algorithm_find(name, strlen(name))))
            used += snprintf(text + used, (size_t)(256 - used), "%s %s", i ? "," : "", name);
    }
    return text;
}

static tw_status read_algorithm(reader *r, const twi_algorithm **algorithm)
{
    char all[256];
    int length = word_length(r);
    *algorithm = twi_algorithm_find(r->at, (size_t)length);
    if (!*algorithm)
        return complain(r, list_algorithms(all));
    if (twi_algorithm_refusal(*algorithm))
        return twi_fail(r->error, TW_UNIMPLEMENTED,
                        "all-reduce spec '%.200s': '%.*s' at character %d is not available: %s", r->text, length, r->at,
                        (int)(r->at - r->text) + 1, twi_algorithm_refusal(*algorithm));
    r->at += length;
    return TW_OK;
}

/* A whole number from 1 to `most`. */
static tw_status read_number(reader *r, int64_t most, const char *expected, int64_t *number)
{
    const char *start = r->at;
    *number = 0;
    for (; isdigit((unsigned char)*r->at) && *number <= most; r->at++)
        *number = *number * 10 + (*r->at - '0');
    if (r->at > start && *number >= 1 && *number <= most)
        return TW_OK;
    r->at = start;
    return complain(r, expected);
}

static tw_status read_shards(reader *r, int *shards)
{
    int64_t number = 1;
    if (*r->at == '#') {
        r->at++;
        tw_status status = read_number(r, TWI_MOST_SHARDS, "a number of shards from 1 to 256", &number);
        if (status != TW_OK)
            return status;
    }
    *shards = (int)number;
    return TW_OK;
}

static tw_status read_rule(reader *r, twi_reduce_rule *rule)
{
    const twi_algorithm *between;
    int shards;
    tw_status status;
    TWI_TRY(read_algorithm(r, &rule->algorithm));
    TWI_TRY(read_shards(r, &rule->shards));
    if (*r->at == '/') { /* between processes: there is one, so nothing is left to do */
        r->at++;
        TWI_TRY(read_algorithm(r, &between));
        TWI_TRY(read_shards(r, &shards));
    }
done:
    return status;
}

/* A number of elements and perhaps a suffix, above the last limit. */
static tw_status read_limit(reader *r, int64_t last, int64_t *limit)
{
    static const char suffixes[] = "kMGT"; /* of 1024; K is k */
    static const char expected[] = "a number of elements such as 2k, larger than the limit before it,";
    const char *start = r->at;
    int64_t number;
    tw_status status = read_number(r, INT64_MAX / 20, expected, &number);
    if (status != TW_OK)
        return status;
    const char *suffix = *r->at ? strchr(suffixes, *r->at == 'K' ? 'k' : *r->at) : NULL;
    int shift = suffix ? 10 * (int)(suffix - suffixes + 1) : 0;
    r->at += suffix != NULL;
    *limit = number <= INT64_MAX >> shift ? number << shift : -1;
    if (*r->at == ':' && *limit > last)
        return TW_OK;
    r->at = start;
    return complain(r, expected);
}

tw_status twi_reduce_spec_parse(const char *text, twi_reduce_spec *spec, tw_error *error)
{
    reader r = {text, text, error};
    tw_status status;
    *spec = (twi_reduce_spec){0};
    for (int64_t last = 0;; last = spec->rules[spec->count - 1].limit) {
        if (spec->count == TWI_MOST_RULES)
            TWI_LEAVE(complain(&r, "at most eight algorithms and then the end"));
        twi_reduce_rule *rule = &spec->rules[spec->count];
        TWI_TRY(read_rule(&r, rule));
        spec->count++;
        rule->limit = INT64_MAX;
        if (!*r.at)
            return TW_OK;
        if (*r.at != ':')
            TWI_LEAVE(complain(&r, "':' or the end"));
        r.at++;
        TWI_TRY(read_limit(&r, last, &rule->limit));
        r.at++;
    }
done:
    return status;
}

tw_status tw_all_reduce_check(const char *spec, tw_error *error)
{
    TWI_NEED(spec, "spec", error);
    twi_reduce_spec parsed;
    return twi_reduce_spec_parse(spec, &parsed, error);
}

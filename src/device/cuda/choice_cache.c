/* choice_cache.c - the algorithms that were chosen, and their files; see choice.h.
 *
 * A file has a head that names the card, the library and the driver, then a line for each choice: key, position,
 * number, settings, nanoseconds. It is replaced as a whole. Two processes that choose at the same time join what they
 * find. */
#include "device/cuda/choice.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_LIMIT ((size_t)1 << 20)
#define LINE_FORMAT "%255s %d %lld %llx %lld %n" /* TWI_CHOICE_KEY - 1 */

/* What is known of a card by a library. */
typedef struct cache {
    struct cache *next;
    char head[200], path[PATH_MAX]; /* path "": it is not kept */
    twi_choice *choices;
    int count, capacity;
    bool complained;
} cache;

/* The process's, like the libraries. */
static cache *caches;

/* ---- choices ----------------------------------------------------------------------------------------------------- */

static twi_choice *find(const cache *m, const char *key)
{
    for (int i = 0; i < m->count; i++)
        if (strcmp(m->choices[i].key, key) == 0)
            return &m->choices[i];
    return NULL;
}

static bool put(cache *m, const twi_choice *choice)
{
    twi_choice *known = find(m, choice->key);
    if (!known && m->count == m->capacity) {
        int capacity = m->capacity ? 2 * m->capacity : 32;
        twi_choice *more = twi_resize(m->choices, (size_t)capacity * sizeof *more);
        if (!more)
            return false;
        m->choices = more;
        m->capacity = capacity;
    }
    *(known ? known : &m->choices[m->count++]) = *choice;
    return true;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* "$XDG_CACHE_HOME/tower/algorithms/NVIDIA-H200.cudnn-91900.driver-13000"; "" if there is no place. */
static void find_path(cache *m, const twi_card *card, const twi_contest *contest)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME"), *wish = getenv("TOWER_ALGORITHM_CACHE");
    char name[96];
    size_t i = 0;
    for (; card->name[i] && i < sizeof name - 1; i++)
        name[i] = isalnum((unsigned char)card->name[i]) ? card->name[i] : '-';
    name[i] = 0;
    bool in_cache = cache && cache[0] == '/', at_home = home && home[0] == '/';
    if ((wish && strcmp(wish, "off") == 0) || (!in_cache && !at_home) ||
        snprintf(m->path, sizeof m->path, "%s%s/tower/algorithms/%s.%s-%zu.driver-%d", in_cache ? cache : home,
                 in_cache ? "" : "/.cache", name, contest->maker, contest->version,
                 card->driver) >= (int)sizeof m->path)
        m->path[0] = 0;
}

static void complain(cache *m, int level, const char *what, const char *why)
{
    if (!m->complained)
        twi_log(level, "%s '%s': %s", what, m->path, why);
    m->complained = true;
}

/* What a file holds besides what is known already; false: it is not one of ours. */
static bool read_lines(cache *m, char *text)
{
    size_t head = strlen(m->head);
    if (strncmp(text, m->head, head) != 0)
        return false;
    for (char *line = text + head, *end; *line; line = end + 1) {
        twi_choice choice = {.ms = 0};
        long long number, ns;
        unsigned long long settings;
        int length = 0;
        if (!(end = strchr(line, '\n')))
            return false;
        *end = 0;
        if (sscanf(line, LINE_FORMAT, choice.key, &choice.position, &number, &settings, &ns, &length) != 5 ||
            line[length] || choice.position < 0 || ns < 0)
            return false;
        choice.number = number;
        choice.settings = settings;
        choice.ms = (float)ns / 1e6f;
        if (!find(m, choice.key))
            put(m, &choice);
    }
    return true;
}

static void load(cache *m)
{
    char *text = NULL;
    size_t size = 0;
    tw_error error = {0};
    int count = m->count;
    if (!m->path[0] || !twi_file_exists(m->path))
        return;
    if (twi_file_read(m->path, FILE_LIMIT, &text, &size, &error) != TW_OK) {
        complain(m, TWI_LOG_WARNING, "passing over", error.message);
    } else if (strlen(text) != size || !read_lines(m, text)) {
        complain(m, TWI_LOG_WARNING, "passing over", "it is damaged; algorithms are timed anew");
        m->count = count;
    }
    twi_free(text);
}

static void save(cache *m)
{
    tw_error error = {0};
    twi_text text = {0};
    char folder[PATH_MAX];
    if (!m->path[0])
        return;
    load(m); /* what others have found meanwhile */
    twi_text_printf(&text, "%s", m->head);
    for (int i = 0; i < m->count; i++)
        twi_text_printf(&text, "%s %d %lld %016llx %lld\n", m->choices[i].key, m->choices[i].position,
                        (long long)m->choices[i].number, (unsigned long long)m->choices[i].settings,
                        (long long)(m->choices[i].ms * 1e6f + 0.5f));
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(m->path, '/') - m->path), m->path);
    tw_status status =
        text.failed ? twi_fail_memory(&error, "keeping algorithms") : twi_make_directories(folder, &error);
    if (status == TW_OK)
        status = twi_file_replace(m->path, text.data, text.size, &error);
    twi_text_free(&text);
    if (status != TW_OK)
        complain(m, TWI_LOG_INFO, "chosen algorithms are not kept in", error.message);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* NULL when out of memory: then nothing is known. */
static cache *cache_of(const twi_card *card, const twi_contest *contest)
{
    char head[sizeof caches->head];
    snprintf(head, sizeof head, "tower algorithms 2: %s, %s %zu, driver %d\n", card->name, contest->maker,
             contest->version, card->driver);
    for (cache *m = caches; m; m = m->next)
        if (strcmp(m->head, head) == 0)
            return m;
    cache *m = twi_alloc(sizeof *m);
    if (!m)
        return NULL;
    memcpy(m->head, head, sizeof head);
    find_path(m, card, contest);
    m->next = caches;
    caches = m;
    load(m);
    return m;
}

const twi_choice *twi_choice_find(const twi_card *card, const twi_contest *contest)
{
    const cache *m = cache_of(card, contest);
    return m ? find(m, contest->key) : NULL;
}

void twi_choice_remember(const twi_card *card, const twi_contest *contest, const twi_choice *choice)
{
    cache *m = cache_of(card, contest);
    if (m && put(m, choice))
        save(m);
}

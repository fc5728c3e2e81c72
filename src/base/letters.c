/* letters.c - see letters.h. */
#include "base/letters.h"

typedef struct range {
    uint32_t first, last;
} range;

typedef struct mapping {
    uint32_t first, last, step;
    int32_t apart;
} mapping;

typedef struct several {
    uint32_t from, to[3]; /* 0: no more */
} several;

#include "base/letters_table.h"

#include "base/scripts_table.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* Rows are in the order of their first characters: the last one that does not begin behind c; NULL: there is none. */
static const void *find(const void *rows, size_t count, size_t size, uint32_t c)
{
    size_t low = 0;
    while (low < count) {
        size_t middle = (low + count) / 2;
        if (*(const uint32_t *)(const void *)((const char *)rows + middle * size) <= c)
            low = middle + 1;
        else
            count = middle;
    }
    return low ? (const char *)rows + (low - 1) * size : NULL;
}

static bool is_in(const range *ranges, size_t count, uint32_t c)
{
    const range *r = find(ranges, count, sizeof *ranges, c);
    return r && c <= r->last;
}

/* Whether there is a letter on that side, beyond what does not count. */
static bool is_beside_letter(const uint32_t *text, size_t count, size_t i, bool before)
{
    do {
        if (before ? i == 0 : i + 1 == count)
            return false;
        i = before ? i - 1 : i + 1;
    } while (is_in(ignored, COUNT(ignored), text[i]));
    return is_in(cased, COUNT(cased), text[i]);
}

int twi_to_case(const uint32_t *text, size_t count, size_t i, bool upper, uint32_t to[3])
{
    enum { SIGMA = 0x3a3, LAST_SIGMA = 0x3c2 };
    uint32_t c = text[i];
    const mapping *m = upper ? find(to_upper, COUNT(to_upper), sizeof *to_upper, c)
                             : find(to_lower, COUNT(to_lower), sizeof *to_lower, c);
    const several *s = upper ? find(to_several_upper, COUNT(to_several_upper), sizeof *to_several_upper, c)
                             : find(to_several_lower, COUNT(to_several_lower), sizeof *to_several_lower, c);
    int many = 0;
    for (; s && s->from == c && many < 3 && s->to[many]; many++)
        to[many] = s->to[many];
    if (many)
        return many;
    to[0] = m && c <= m->last && (c - m->first) % m->step == 0 ? c + (uint32_t)m->apart : c;
    if (!upper && c == SIGMA && is_beside_letter(text, count, i, true) && !is_beside_letter(text, count, i, false))
        to[0] = LAST_SIGMA;
    return 1;
}

int32_t twi_script_of(int32_t c)
{
    uint32_t last_of_it = (uint32_t)c << 8 | 0xff;
    const uint32_t *row = c < 0 || c > 0x10ffff ? NULL : find(scripts, COUNT(scripts), sizeof *scripts, last_of_it);
    return row ? (int32_t)(*row & 0xff) : -1;
}

/* guards.c - see guards.h. Sets are chains from their largest literal down, which share what they have in common. */
#include "graph/guards.h"

#include "base/hash.h"
#include "base/memory.h"

#include <string.h>

enum { MOST_MERGED = 64 }; /* inputs of a Merge */

twi_guard twi_never;

void twi_guards_free(twi_guards *guards)
{
    twi_arena_free(&guards->arena);
    twi_free(guards->slots);
}

/* ---- one of each ------------------------------------------------------------------------------------------------- */

static int compare(twi_literal a, twi_literal b)
{
    if (a.predicate != b.predicate)
        return a.predicate < b.predicate ? -1 : 1;
    return (a.index > b.index) - (a.index < b.index);
}

static bool same_literal(twi_literal a, twi_literal b)
{
    return compare(a, b) == 0 && a.value == b.value;
}

/* Where the set lies, or shall lie. */
static twi_guard **find(const twi_guards *guards, const twi_guard *rest, twi_literal last)
{
    uint64_t hash = twi_hash_mix(twi_hash_mix((uintptr_t)rest, (uint64_t)last.predicate), (uint64_t)last.index);
    size_t at = twi_hash_mix(hash, last.value) & (guards->capacity - 1);
    while (guards->slots[at] && (guards->slots[at]->rest != rest || !same_literal(guards->slots[at]->last, last)))
        at = (at + 1) & (guards->capacity - 1);
    return &guards->slots[at];
}

static bool grow(twi_guards *guards)
{
    twi_guards larger = *guards;
    larger.capacity = guards->capacity ? 2 * guards->capacity : 64;
    larger.slots = twi_alloc_array(larger.capacity, sizeof(twi_guard *));
    for (size_t i = 0; i < guards->capacity && larger.slots; i++)
        if (guards->slots[i])
            *find(&larger, guards->slots[i]->rest, guards->slots[i]->last) = guards->slots[i];
    if (!larger.slots)
        return false;
    twi_free(guards->slots);
    *guards = larger;
    return true;
}

/* `rest` and one literal that is larger than all of it. */
static tw_status extend(twi_guards *guards, twi_guard *rest, twi_literal last, twi_guard **result, tw_error *error)
{
    int count = rest ? rest->count + 1 : 1;
    if (count > TWI_MOST_CONDITIONS)
        return twi_fail(error, TW_RESOURCE_EXHAUSTED, "more than %d conditions lie in each other", TWI_MOST_CONDITIONS);
    if (2 * guards->count >= guards->capacity && !grow(guards))
        return twi_fail_memory(error, "looking at conditions");
    twi_guard **slot = find(guards, rest, last);
    if (!*slot && (*slot = twi_arena_alloc(&guards->arena, sizeof **slot))) {
        **slot = (twi_guard){.rest = rest, .last = last, .count = count};
        guards->count++;
    }
    *result = *slot;
    return *slot ? TW_OK : twi_fail_memory(error, "looking at conditions");
}

/* ---- sets -------------------------------------------------------------------------------------------------------- */

static int list(const twi_guard *guard, twi_literal *literals)
{
    int count = guard ? guard->count : 0;
    for (int i = count; guard; guard = guard->rest)
        literals[--i] = guard->last;
    return count;
}

static tw_status make(twi_guards *guards, const twi_literal *literals, int count, twi_guard **result, tw_error *error)
{
    tw_status status = TW_OK;
    *result = NULL;
    for (int i = 0; i < count && status == TW_OK; i++)
        status = extend(guards, *result, literals[i], result, error);
    return status;
}

tw_status twi_guard_join(twi_guards *guards, twi_guard *a, twi_guard *b, twi_guard **both, tw_error *error)
{
    twi_literal x[TWI_MOST_CONDITIONS], y[TWI_MOST_CONDITIONS], all[2 * TWI_MOST_CONDITIONS];
    int n = 0, i = 0, k = 0;
    if (a == b || !a || !b || a == &twi_never || b == &twi_never) {
        *both = a == &twi_never || !b ? a : b;
        return TW_OK;
    }
    int num_x = list(a, x), num_y = list(b, y);
    while (i < num_x || k < num_y) {
        int order = i == num_x ? 1 : k == num_y ? -1 : compare(x[i], y[k]);
        if (order == 0 && x[i].value != y[k].value) {
            *both = &twi_never;
            return TW_OK;
        }
        all[n++] = order <= 0 ? x[i] : y[k];
        i += order <= 0;
        k += order >= 0;
    }
    return make(guards, all, n, both, error);
}

tw_status twi_guard_with(twi_guards *guards, twi_guard *a, twi_literal literal, twi_guard **both, tw_error *error)
{
    twi_guard *alone;
    tw_status status = extend(guards, NULL, literal, &alone, error);
    return status == TW_OK ? twi_guard_join(guards, a, alone, both, error) : status;
}

/* ---- merging ----------------------------------------------------------------------------------------------------- */

/* Sets that differ in the value of one predicate only: what they have in common. */
static bool common(const twi_guard *a, const twi_guard *b, twi_literal *literals, int *count)
{
    twi_literal other[TWI_MOST_CONDITIONS];
    int n = list(a, literals), m = list(b, other), at = -1;
    for (int i = 0; i < n; i++)
        if (n != m || compare(literals[i], other[i]) != 0 || (literals[i].value != other[i].value && at >= 0))
            return false;
        else if (literals[i].value != other[i].value)
            at = i;
    if (at < 0)
        return false;
    memmove(literals + at, literals + at + 1, sizeof *literals * (size_t)(n - at - 1));
    *count = n - 1;
    return true;
}

/* Puts two of the sets together that are the same, or the two sides of a condition. *found: there were such. */
static tw_status merge_two(twi_guards *guards, twi_guard **sets, int *count, bool *found, tw_error *error)
{
    twi_literal literals[TWI_MOST_CONDITIONS];
    tw_status status = TW_OK;
    *found = false;
    for (int i = 0; i < *count && !*found; i++)
        for (int k = i + 1; k < *count && !*found; k++) {
            int left = 0;
            *found = sets[i] == sets[k];
            if (!*found && common(sets[i], sets[k], literals, &left)) {
                *found = true;
                status = make(guards, literals, left, &sets[i], error);
            }
            if (*found)
                sets[k] = sets[--*count];
        }
    return status;
}

tw_status twi_guard_merge(twi_guards *guards, twi_guard **sets, int *count, tw_error *error)
{
    tw_status status = TW_OK;
    bool found = true;
    int left = 0;
    if (*count > MOST_MERGED)
        return twi_fail(error, TW_UNIMPLEMENTED, "more than %d inputs", MOST_MERGED);
    for (int i = 0; i < *count; i++)
        if (sets[i] != &twi_never)
            sets[left++] = sets[i];
    while (left > 1 && found && status == TW_OK)
        status = merge_two(guards, sets, &left, &found, error);
    *count = left;
    return status;
}

/* functions.c - data sets that call functions of the graph: on each element, to choose elements, to make data sets of
 * them that are gone through one after the other or in turns. */
#include "base/cores.h"
#include "device/dataset/ahead.h"
#include "device/dataset/kinds.h"

#include <string.h>

/* ---- map --------------------------------------------------------------------------------------------------------- */

static tw_status check_gives(const twi_recipe *r, int which, int count, tw_error *error)
{
    if (r->functions[which]->num_results != count)
        return twi_fail(error, TW_INVALID_ARGUMENT, "function '%s' gives %d values, expected %d",
                        r->kind->functions[which], r->functions[which]->num_results, count);
    return TW_OK;
}

static tw_status check_map(twi_recipe *r, tw_error *error)
{
    return check_gives(r, 0, r->num_components, error);
}

/* What a function says with OUT_OF_RANGE is that there is no more, unless the map is known to keep how many there are.
 */
static tw_status map_element(const twi_recipe *r, tw_tensor **from, int width, tw_tensor **to, bool *end,
                             tw_error *error)
{
    tw_status status = twi_recipe_call(r, 0, from, width, to, error);
    *end = status == TW_OUT_OF_RANGE && !r->flag;
    if (*end)
        return TW_OK;
    if (status == TW_OUT_OF_RANGE) {
        error->status = TW_INVALID_ARGUMENT;
        return twi_prefix(error, "Function invocation produced OutOfRangeError");
    }
    return status;
}

static tw_status next_mapped(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    tw_tensor *from[TWI_ELEMENT];
    int width = twi_input(it)->recipe->num_components;
    tw_status status = twi_iteration_next(twi_input(it), pull, from);
    if (status != TW_OK || pull->end)
        return status;
    status = map_element(it->recipe, from, width, element, &pull->end, pull->error);
    twi_element_drop(from, width);
    return status;
}

static int64_t count_mapped(const twi_recipe *r)
{
    return r->flag ? twi_count_same(r) : TWI_UNCOUNTED;
}

static tw_status at_mapped(const twi_recipe *r, int64_t index, tw_tensor **element, tw_error *error)
{
    tw_tensor *from[TWI_ELEMENT] = {0};
    int width = twi_input_recipe(r)->num_components;
    bool end = false;
    tw_status status = twi_at_same(r, index, from, error);
    if (status == TW_OK)
        status = map_element(r, from, width, element, &end, error);
    twi_element_drop(from, width);
    return status;
}

typedef struct mapping {
    twi_iteration *input;
    twi_ahead *ahead; /* NULL: nobody has asked yet */
    twi_rows rows;    /* of a batch */
} mapping;

static tw_status map_ahead(void *user, tw_tensor **from, tw_tensor **to, bool *end, tw_error *error)
{
    const twi_iteration *it = user;
    return map_element(it->recipe, from, twi_input(it)->recipe->num_components, to, end, error);
}

static void end_mapping(twi_iteration *it)
{
    mapping *s = it->state;
    twi_ahead_end(s->ahead);
    twi_rows_free(&s->rows);
    twi_iteration_end(s->input);
}

/* So many threads as are asked for, at most one a core; one where the order of calls decides what they give. */
static tw_status start_mapping(twi_iteration *it, int64_t asked, int64_t room, tw_error *error)
{
    mapping *s = it->state;
    int64_t cores = twi_usable_cores(), threads = asked < 0 || asked > cores ? cores : asked;
    if (asked == 0 || asked < -1)
        return twi_fail(error, TW_INVALID_ARGUMENT, "num_parallel_calls must be greater than zero.");
    if (it->recipe->functions[0]->draws)
        threads = 1;
    twi_ahead_options options = {.source = s->input,
                                 .threads = (int)threads,
                                 .room = (int)(room > 2 * threads ? room : 2 * threads),
                                 .num_components = it->recipe->functions[0]->num_results,
                                 .work = map_ahead,
                                 .user = it};
    return twi_ahead_start(&options, it->monitor, &s->ahead, error);
}

static tw_status next_mapped_beside(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    mapping *s = it->state;
    tw_status status = TW_OK;
    if (!s->ahead)
        status = start_mapping(it, twi_recipe_int(it->recipe, twi_recipe_behind(it->recipe, 0)), 0, pull->error);
    return status == TW_OK ? twi_ahead_next(s->ahead, pull, element) : status;
}

/* Behind the captured values: the batch's size, calls at once, drop_remainder. */
static tw_status next_mapped_batch(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    enum { MOST_AHEAD = 4096 };
    mapping *s = it->state;
    const twi_recipe *r = it->recipe;
    int64_t size = twi_recipe_int(r, twi_recipe_behind(r, 0));
    bool whole = twi_recipe_int(r, twi_recipe_behind(r, 2));
    tw_status status = TW_OK;
    s->rows.width = r->num_components;
    if (size < 1)
        return twi_fail(pull->error, TW_INVALID_ARGUMENT, "batch_size must be greater than zero.");
    if (!s->ahead)
        status = start_mapping(it, twi_recipe_int(r, twi_recipe_behind(r, 1)), size < MOST_AHEAD ? size : MOST_AHEAD,
                               pull->error);
    while (status == TW_OK && !pull->end && s->rows.count < size) {
        tw_tensor *row[TWI_ELEMENT] = {0};
        status = twi_ahead_next(s->ahead, pull, row);
        if (status == TW_OK && !pull->end && !twi_rows_push(&s->rows, row))
            status = twi_fail_memory(pull->error, r->node);
        else if (status == TW_OK && !pull->end)
            continue;
        twi_element_drop(row, r->num_components);
    }
    pull->end = s->rows.count == 0 || (whole && s->rows.count < size);
    if (status == TW_OK && !pull->end)
        status = twi_batch_rows(&s->rows, s->rows.count, element, pull->error);
    twi_rows_drop(&s->rows, s->rows.count);
    return status;
}

static int64_t count_mapped_batches(const twi_recipe *r)
{
    int64_t size = twi_recipe_int(r, twi_recipe_behind(r, 0));
    return twi_count_batches(count_mapped(r), size, twi_recipe_int(r, twi_recipe_behind(r, 2)));
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

static tw_status check_one(twi_recipe *r, tw_error *error)
{
    return check_gives(r, 0, 1, error);
}

static tw_status ask(const twi_recipe *r, tw_tensor **element, bool *holds, tw_error *error)
{
    tw_tensor *answer = NULL;
    tw_status status = twi_recipe_call(r, 0, element, r->num_components, &answer, error);
    if (status == TW_OK && (answer->dtype != TW_BOOL || answer->elements != 1))
        status = twi_fail(error, TW_INVALID_ARGUMENT, "`predicate` must return a scalar bool tensor.");
    *holds = status == TW_OK && *(const uint8_t *)answer->data;
    tw_tensor_release(answer);
    return status;
}

static tw_status next_filtered(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    for (;;) {
        bool holds = false;
        tw_status status = twi_iteration_next(twi_input(it), pull, element);
        if (status == TW_OK && !pull->end)
            status = ask(it->recipe, element, &holds, pull->error);
        if (status != TW_OK || pull->end || holds)
            return status;
        twi_element_drop(element, it->recipe->num_components);
    }
}

static tw_status next_while(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    bool holds = false;
    tw_status status = twi_iteration_next(twi_input(it), pull, element);
    if (status == TW_OK && !pull->end)
        status = ask(it->recipe, element, &holds, pull->error);
    pull->end = pull->end || (status == TW_OK && !holds);
    return status;
}

/* ---- scan -------------------------------------------------------------------------------------------------------- */

/* Arguments: the input, the first state, what is captured. */
typedef struct scanning {
    twi_iteration *input;
    tw_tensor *state[TWI_ELEMENT];
    int count;
} scanning;

static tw_status check_scan(twi_recipe *r, tw_error *error)
{
    if (r->lists[0] > TWI_ELEMENT / 2)
        return twi_fail(error, TW_UNIMPLEMENTED, "a state of %d values, expected at most %d", r->lists[0],
                        TWI_ELEMENT / 2);
    return check_gives(r, 0, r->lists[0] + r->num_components, error);
}

static tw_status begin_scan(twi_iteration *it, tw_error *error)
{
    scanning *s = it->state;
    s->count = it->recipe->lists[0];
    for (int i = 0; i < s->count; i++)
        s->state[i] = tw_tensor_retain(it->recipe->arguments[1 + i]);
    return twi_begin_input(it, error);
}

static void end_scan(twi_iteration *it)
{
    scanning *s = it->state;
    twi_element_drop(s->state, s->count);
    twi_end_input(it);
}

static tw_status next_scanned(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    scanning *s = it->state;
    const twi_recipe *r = it->recipe;
    int width = s->input->recipe->num_components, captured = r->lists[1];
    tw_tensor *given[3 * TWI_ELEMENT], *results[2 * TWI_ELEMENT] = {0}, *pulled[TWI_ELEMENT];
    if (captured > TWI_ELEMENT)
        return twi_fail(pull->error, TW_UNIMPLEMENTED, "a function of '%s' captures %d values, expected at most %d",
                        r->node, captured, TWI_ELEMENT);
    tw_status status = twi_iteration_next(s->input, pull, pulled);
    if (status != TW_OK || pull->end)
        return status;
    memcpy(given, s->state, sizeof *given * (size_t)s->count);
    memcpy(given + s->count, pulled, sizeof *given * (size_t)width);
    if (captured)
        memcpy(given + s->count + width, r->arguments + 1 + s->count, sizeof *given * (size_t)captured);
    status = r->functions[0]->call(r->functions[0], given, s->count + width + captured, results, pull->error);
    twi_element_drop(pulled, width);
    if (status != TW_OK)
        return status;
    twi_element_drop(s->state, s->count);
    memcpy(s->state, results, sizeof *results * (size_t)s->count);
    memcpy(element, results + s->count, sizeof *results * (size_t)r->num_components);
    return TW_OK;
}

/* ---- data sets of elements --------------------------------------------------------------------------------------- */

/* Pulls an element and begins the data set that function 0 makes of it; at the end *made is NULL. */
static tw_status begin_next(twi_iteration *it, twi_pull *pull, twi_iteration **made)
{
    tw_tensor *from[TWI_ELEMENT], *recipe = NULL;
    int width = twi_input(it)->recipe->num_components;
    tw_status status = twi_iteration_next(twi_input(it), pull, from);
    *made = NULL;
    if (status != TW_OK || pull->end)
        return status;
    status = twi_recipe_call(it->recipe, 0, from, width, &recipe, pull->error);
    if (status == TW_OK &&
        (!twi_recipe_of(recipe) || twi_recipe_of(recipe)->num_components != it->recipe->num_components))
        status = twi_fail(pull->error, TW_INVALID_ARGUMENT, "the function of '%s' does not give such a data set",
                          it->recipe->node);
    if (status == TW_OK)
        status = twi_iteration_begin(recipe, it->monitor, made, pull->error);
    twi_element_drop(from, width);
    tw_tensor_release(recipe);
    return status;
}

typedef struct flattening {
    twi_iteration *input, *current;
} flattening;

static void end_flat_map(twi_iteration *it)
{
    twi_iteration_end(((flattening *)it->state)->current);
    twi_end_input(it);
}

static tw_status next_flat(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    flattening *s = it->state;
    for (;;) {
        tw_status status = s->current ? TW_OK : begin_next(it, pull, &s->current);
        if (status != TW_OK || !s->current)
            return status;
        status = twi_iteration_next(s->current, pull, element);
        if (status != TW_OK || !pull->end)
            return status;
        twi_iteration_end(s->current);
        s->current = NULL;
    }
}

/* Behind what is captured: how many are open at once, and how many elements in a row each gives. */
typedef struct interleaving {
    twi_iteration *input;
    twi_iteration **open; /* [cycle] */
    int64_t cycle, block, at, given, num_open;
    bool ended;
} interleaving;

static tw_status begin_interleave(twi_iteration *it, tw_error *error)
{
    enum { MOST = 1 << 16 };
    interleaving *s = it->state;
    const twi_recipe *r = it->recipe;
    s->cycle = twi_recipe_int(r, twi_recipe_behind(r, 0));
    s->block = twi_recipe_int(r, twi_recipe_behind(r, 1));
    if (s->cycle == -1)
        s->cycle = twi_usable_cores();
    if (s->cycle < 1 || s->cycle > MOST)
        return twi_fail(error, TW_INVALID_ARGUMENT, "`cycle_length` must be greater than zero, and at most %d", MOST);
    if (s->block < 1)
        return twi_fail(error, TW_INVALID_ARGUMENT, "`block_length` must be greater than zero.");
    s->open = twi_alloc_array((size_t)s->cycle, sizeof(twi_iteration *));
    return s->open ? twi_begin_input(it, error) : twi_fail_memory(error, r->node);
}

static void end_interleave(twi_iteration *it)
{
    interleaving *s = it->state;
    for (int64_t i = 0; s->open && i < s->cycle; i++)
        twi_iteration_end(s->open[i]);
    twi_free(s->open);
    twi_end_input(it);
}

static void go_on(interleaving *s)
{
    s->given = 0;
    s->at = (s->at + 1) % s->cycle;
}

static tw_status next_interleaved(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    interleaving *s = it->state;
    while (!s->ended || s->num_open) {
        tw_status status = TW_OK;
        twi_iteration **current = &s->open[s->at];
        if (*current) {
            status = twi_iteration_next(*current, pull, element);
            if (status != TW_OK)
                return status;
            if (!pull->end) {
                if (++s->given == s->block)
                    go_on(s);
                return TW_OK;
            }
            twi_iteration_end(*current);
            *current = NULL;
            s->num_open--;
            go_on(s);
        } else if (!s->ended) {
            status = begin_next(it, pull, current);
            if (status != TW_OK)
                return status;
            s->ended = !*current;
            s->num_open += *current != NULL;
        } else {
            go_on(s);
        }
    }
    pull->end = true;
    return TW_OK;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

typedef struct group {
    int64_t key, size; /* elements that make a window */
    twi_rows rows;
} group;

typedef struct grouping {
    twi_iteration *input, *current;
    group *groups; /* [num_groups] by key */
    int num_groups, room;
    bool ended;
} grouping;

static tw_status check_groups(twi_recipe *r, tw_error *error)
{
    tw_status status = TW_OK;
    for (int i = 0; i < 3 && status == TW_OK; i++)
        status = check_gives(r, i, 1, error);
    return status;
}

static void end_groups(twi_iteration *it)
{
    grouping *s = it->state;
    for (int i = 0; i < s->num_groups; i++)
        twi_rows_free(&s->groups[i].rows);
    twi_free(s->groups);
    twi_iteration_end(s->current);
    twi_end_input(it);
}

/* Functions: the key of an element, the data set that a window becomes, how large a key's windows are. */
enum { KEY, REDUCE, SIZE };

static tw_status call_for_int(const twi_recipe *r, int which, tw_tensor **given, int count, int64_t *value,
                              tw_error *error)
{
    tw_tensor *result = NULL;
    tw_status status = twi_recipe_call(r, which, given, count, &result, error);
    if (status == TW_OK && (result->dtype != TW_INT64 || result->elements != 1))
        status = twi_fail(error, TW_INVALID_ARGUMENT, "`%s` must return a scalar int64.", r->kind->functions[which]);
    *value = status == TW_OK ? *(const int64_t *)result->data : 0;
    tw_tensor_release(result);
    return status;
}

static tw_status add_group(const twi_iteration *it, int64_t key, int place, tw_error *error)
{
    grouping *s = it->state;
    tw_tensor *given = tw_tensor_int64(key);
    int64_t size;
    tw_status status =
        given ? call_for_int(it->recipe, SIZE, &given, 1, &size, error) : twi_fail_memory(error, it->recipe->node);
    tw_tensor_release(given);
    if (status == TW_OK && size < 1)
        return twi_fail(error, TW_INVALID_ARGUMENT, "Window size must be greater than zero, but got %lld.",
                        (long long)size);
    if (status != TW_OK)
        return status;
    if (s->num_groups == s->room) {
        int room = s->room ? 2 * s->room : 8;
        group *grown = twi_resize(s->groups, sizeof *grown * (size_t)room);
        if (!grown)
            return twi_fail_memory(error, it->recipe->node);
        s->groups = grown;
        s->room = room;
    }
    memmove(s->groups + place + 1, s->groups + place, sizeof *s->groups * (size_t)(s->num_groups++ - place));
    s->groups[place] = (group){key, size, {.width = s->input->recipe->num_components}};
    return TW_OK;
}

static tw_status find_group(const twi_iteration *it, int64_t key, group **found, tw_error *error)
{
    grouping *s = it->state;
    int place = 0;
    while (place < s->num_groups && s->groups[place].key < key)
        place++;
    tw_status status = place < s->num_groups && s->groups[place].key == key ? TW_OK : add_group(it, key, place, error);
    *found = s->groups + place;
    return status;
}

/* Begins the data set that the group's rows become. */
static tw_status flush(const twi_iteration *it, group *g, tw_error *error)
{
    grouping *s = it->state;
    const twi_recipe *r = it->recipe;
    tw_tensor ***rows = twi_alloc_array((size_t)g->rows.count + 1, sizeof *rows);
    for (int64_t i = 0; rows && i < g->rows.count; i++)
        rows[i] = twi_rows_at(&g->rows, i);
    tw_tensor *given[2] = {tw_tensor_int64(g->key)}, *recipe = NULL;
    given[1] = rows ? twi_recipe_of_rows(r, s->input->recipe, rows, g->rows.count, 0, g->rows.width) : NULL;
    twi_free(rows);
    tw_status status = given[0] && given[1] ? TW_OK : twi_fail_memory(error, r->node);
    twi_rows_drop(&g->rows, g->rows.count);
    if (status == TW_OK)
        status = twi_recipe_call(r, REDUCE, given, 2, &recipe, error);
    if (status == TW_OK)
        status = twi_iteration_begin(recipe, it->monitor, &s->current, error);
    twi_element_drop(given, 2);
    tw_tensor_release(recipe);
    return status;
}

static tw_status add_element(const twi_iteration *it, twi_pull *pull)
{
    grouping *s = it->state;
    tw_tensor *element[TWI_ELEMENT];
    int width = s->input->recipe->num_components;
    int64_t key;
    group *g;
    tw_status status = twi_iteration_next(s->input, pull, element);
    s->ended = status == TW_OK && pull->end;
    if (status != TW_OK || pull->end)
        return status;
    status = call_for_int(it->recipe, KEY, element, width, &key, pull->error);
    if (status == TW_OK)
        status = find_group(it, key, &g, pull->error);
    if (status == TW_OK && !twi_rows_push(&g->rows, element))
        status = twi_fail_memory(pull->error, it->recipe->node);
    if (status != TW_OK)
        twi_element_drop(element, width);
    else if (g->rows.count == g->size)
        status = flush(it, g, pull->error);
    return status;
}

/* What is left at the end comes by key. */
static tw_status flush_next(const twi_iteration *it, tw_error *error)
{
    grouping *s = it->state;
    for (int i = 0; i < s->num_groups; i++)
        if (s->groups[i].rows.count)
            return flush(it, &s->groups[i], error);
    return TW_OK;
}

/* What has no end has groups without end. */
static int64_t count_groups(const twi_recipe *r)
{
    return twi_count_same(r) == TWI_ENDLESS ? TWI_ENDLESS : TWI_UNCOUNTED;
}

static tw_status next_grouped(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    grouping *s = it->state;
    for (;;) {
        tw_status status = TW_OK;
        while (!s->current && !s->ended && status == TW_OK)
            status = add_element(it, pull);
        if (status == TW_OK && !s->current)
            status = flush_next(it, pull->error);
        pull->end = status == TW_OK && !s->current;
        if (status != TW_OK || pull->end)
            return status;
        status = twi_iteration_next(s->current, pull, element);
        if (status != TW_OK || !pull->end)
            return status;
        twi_iteration_end(s->current);
        s->current = NULL;
    }
}

/* ---- reductions by key ------------------------------------------------------------------------------------------- */

/* Functions: the key of an element, the state that a key begins with, what an element makes of it, what is given. */
enum { OF_KEY, INIT, STEP, FINALIZE };

typedef struct reducing {
    twi_iteration *input;
    int64_t *keys, room; /* [states.count], as they came */
    twi_rows states;
    bool ended;
    int64_t last; /* the key given last, */
    bool begun;   /* if any was */
} reducing;

static tw_status check_reducer(twi_recipe *r, tw_error *error)
{
    int states = r->functions[INIT]->num_results;
    tw_status status = check_gives(r, OF_KEY, 1, error);
    if (status == TW_OK && states > TWI_ELEMENT)
        return twi_fail(error, TW_UNIMPLEMENTED, "a state of %d values, expected at most %d", states, TWI_ELEMENT);
    if (status == TW_OK)
        status = check_gives(r, STEP, states, error);
    return status == TW_OK ? check_gives(r, FINALIZE, r->num_components, error) : status;
}

static void end_reducer(twi_iteration *it)
{
    reducing *s = it->state;
    twi_rows_free(&s->states);
    twi_free(s->keys);
    twi_end_input(it);
}

static tw_status add_state(const twi_iteration *it, int64_t key, tw_error *error)
{
    reducing *s = it->state;
    if (s->states.count == s->room) {
        int64_t room = s->room ? 2 * s->room : 8, *grown = twi_resize(s->keys, sizeof *grown * (size_t)room);
        if (!grown)
            return twi_fail_memory(error, it->recipe->node);
        s->keys = grown;
        s->room = room;
    }
    tw_tensor *given = tw_tensor_int64(key), *state[TWI_ELEMENT] = {0};
    tw_status status =
        given ? twi_recipe_call(it->recipe, INIT, &given, 1, state, error) : twi_fail_memory(error, it->recipe->node);
    tw_tensor_release(given);
    if (status == TW_OK && !twi_rows_push(&s->states, state)) {
        twi_element_drop(state, s->states.width);
        status = twi_fail_memory(error, it->recipe->node);
    }
    if (status == TW_OK)
        s->keys[s->states.count - 1] = key;
    return status;
}

static tw_status reduce_element(const twi_iteration *it, tw_tensor **element, int width, tw_error *error)
{
    reducing *s = it->state;
    int64_t key, place = 0;
    tw_tensor *given[2 * TWI_ELEMENT], *results[TWI_ELEMENT] = {0};
    size_t size = sizeof *given * (size_t)s->states.width;
    tw_status status = call_for_int(it->recipe, OF_KEY, element, width, &key, error);
    while (status == TW_OK && place < s->states.count && s->keys[place] != key)
        place++;
    if (status == TW_OK && place == s->states.count)
        status = add_state(it, key, error);
    if (status != TW_OK)
        return status;
    tw_tensor **state = twi_rows_at(&s->states, place);
    memcpy(given, state, size);
    memcpy(given + s->states.width, element, sizeof *given * (size_t)width);
    status = twi_recipe_call(it->recipe, STEP, given, s->states.width + width, results, error);
    if (status == TW_OK) {
        twi_element_drop(state, s->states.width);
        memcpy(state, results, size);
    }
    return status;
}

static tw_status reduce_input(const twi_iteration *it, twi_pull *pull)
{
    reducing *s = it->state;
    int width = s->input->recipe->num_components;
    tw_status status = TW_OK;
    s->states.width = it->recipe->functions[INIT]->num_results;
    while (status == TW_OK && !s->ended) {
        tw_tensor *element[TWI_ELEMENT];
        status = twi_iteration_next(s->input, pull, element);
        s->ended = status == TW_OK && pull->end;
        if (status == TW_OK && !s->ended)
            status = reduce_element(it, element, width, pull->error);
        twi_element_drop(element, width);
    }
    pull->end = false;
    return status;
}

/* What keys have become comes by key. */
static tw_status next_reduced(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    reducing *s = it->state;
    int64_t place = -1;
    tw_status status = reduce_input(it, pull);
    if (status != TW_OK)
        return status;
    for (int64_t i = 0; i < s->states.count; i++)
        if ((!s->begun || s->keys[i] > s->last) && (place < 0 || s->keys[i] < s->keys[place]))
            place = i;
    pull->end = place < 0;
    if (pull->end)
        return TW_OK;
    s->begun = true;
    s->last = s->keys[place];
    return twi_recipe_call(it->recipe, FINALIZE, twi_rows_at(&s->states, place), s->states.width, element, pull->error);
}

#define F .functions = {"f"}, .before = 1, .lists = {"Targuments"}, .passes = TWI_OTHER_ELEMENTS
#define PREDICATE .functions = {"predicate"}, .before = 1, .lists = {"Targuments"}
#define MAP                                                                                                            \
    next_mapped, .state = sizeof(twi_iteration *), .begin = twi_begin_input, .end = twi_end_input, .check = check_map, \
                 .flag = "preserve_cardinality", .count = count_mapped, .at = at_mapped
#define BESIDE                                                                                                         \
    .state = sizeof(mapping), .begin = twi_begin_input, .end = end_mapping, .check = check_map,                        \
    .flag = "preserve_cardinality"
#define CHOOSES .state = sizeof(twi_iteration *), .begin = twi_begin_input, .end = twi_end_input, .check = check_one
#define INTERLEAVE                                                                                                     \
    next_interleaved, .state = sizeof(interleaving), .begin = begin_interleave, .end = end_interleave,                 \
                      .check = check_one
#define SCAN                                                                                                           \
    next_scanned, .state = sizeof(scanning), .begin = begin_scan, .end = end_scan, .check = check_scan,                \
                  .functions = {"f"}, .before = 1, .lists = {"Tstate", "Targuments"}, .flag = "preserve_cardinality",  \
                  .count = count_mapped, .passes = TWI_OTHER_ELEMENTS
#define GROUPS                                                                                                         \
    next_grouped,                                                                                                      \
        .state = sizeof(grouping), .begin = twi_begin_input, .end = end_groups, .check = check_groups,                 \
        .functions = {"key_func", "reduce_func", "window_size_func"}, .before = 1,                                     \
        .lists = {"Tkey_func_other_arguments", "Treduce_func_other_arguments", "Twindow_size_func_other_arguments"},   \
        .count = count_groups, .passes = TWI_OTHER_ELEMENTS

#define REDUCER                                                                                                        \
    next_reduced, .state = sizeof(reducing), .begin = twi_begin_input, .end = end_reducer, .check = check_reducer,     \
                  .functions = {"key_func", "init_func", "reduce_func", "finalize_func"}, .before = 1,                 \
                  .lists = {"Tkey_func_other_arguments", "Tinit_func_other_arguments", "Treduce_func_other_arguments", \
                            "Tfinalize_func_other_arguments"},                                                         \
                  .count = count_groups, .passes = TWI_OTHER_ELEMENTS

const twi_recipe_kind twi_function_kinds[] = {
    {"MapDataset", MAP, F},
    {"ParallelMapDataset", next_mapped_beside, BESIDE, F, .count = count_mapped, .at = at_mapped},
    {"ParallelMapDatasetV2", next_mapped_beside, BESIDE, F, .count = count_mapped, .at = at_mapped},
    {"MapAndBatchDataset", next_mapped_batch, BESIDE, F, .count = count_mapped_batches},
    {"ExperimentalMapAndBatchDataset", next_mapped_batch, BESIDE, F, .count = count_mapped_batches},
    {"FilterDataset", next_filtered, CHOOSES, PREDICATE},
    {"TakeWhileDataset", next_while, CHOOSES, PREDICATE},
    {"ExperimentalTakeWhileDataset", next_while, CHOOSES, PREDICATE},
    {"ScanDataset", SCAN},
    {"ExperimentalScanDataset", SCAN},
    {"FlatMapDataset", next_flat, .state = sizeof(flattening), .begin = twi_begin_input, .end = end_flat_map,
     .check = check_one, F},
    {"InterleaveDataset", INTERLEAVE, F},
    {"ParallelInterleaveDataset", INTERLEAVE, F},
    {"ParallelInterleaveDatasetV2", INTERLEAVE, F},
    {"ParallelInterleaveDatasetV3", INTERLEAVE, F},
    {"ParallelInterleaveDatasetV4", INTERLEAVE, F},
    {"LegacyParallelInterleaveDatasetV2", INTERLEAVE, F},
    {"ExperimentalParallelInterleaveDataset", INTERLEAVE, F},
    {"GroupByWindowDataset", GROUPS},
    {"ExperimentalGroupByWindowDataset", GROUPS},
    {"GroupByReducerDataset", REDUCER},
    {"ExperimentalGroupByReducerDataset", REDUCER},
    {0},
};

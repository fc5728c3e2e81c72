/* order.c - data sets that give another's elements as they are: again, fewer, several in a row or side by side, from
 * memory, ahead of time. Never here: in another order (shuffle.c). */
#include "base/fingerprint.h"
#include "base/hash.h"
#include "device/dataset/ahead.h"
#include "device/dataset/kinds.h"
#include "format/bundle.h"

#include <stdio.h>
#include <string.h>

/* ---- wrappers ---------------------------------------------------------------------------------------------------- */

/* What only tunes how TensorFlow computes it. */
static tw_status next_same(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    return twi_iteration_next(twi_input(it), pull, element);
}

/* Elements that fail are left out. */
static tw_status next_sound(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    tw_status status;
    do
        status = twi_iteration_next(twi_input(it), pull, element);
    while (status != TW_OK && status != TW_CANCELLED);
    return status;
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

typedef struct counted {
    twi_iteration *input;
    int64_t count; /* elements so far, or epochs */
} counted;

/* A negative count: for ever, but of a data set without elements. */
static tw_status next_repeat(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    counted *s = it->state;
    int64_t times = twi_recipe_int(it->recipe, 1);
    bool fresh = true;
    while (times < 0 || s->count < times) {
        tw_status status = TW_OK;
        fresh = !s->input;
        if (fresh)
            status = twi_begin_input(it, pull->error);
        if (status == TW_OK)
            status = twi_iteration_next(s->input, pull, element);
        if (status != TW_OK || !pull->end)
            return status;
        twi_iteration_end(s->input);
        s->input = NULL;
        s->count++;
        if (fresh && times < 0)
            return TW_OK;
    }
    pull->end = true;
    return TW_OK;
}

static int64_t count_repeated(const twi_recipe *r)
{
    int64_t times = twi_recipe_int(r, 1), count = twi_count_same(r), all;
    if (times == 0 || count == 0)
        return 0;
    if (times < 0)
        return TWI_ENDLESS;
    return count < 0 ? count : __builtin_mul_overflow(count, times, &all) ? INT64_MAX : all;
}

static tw_status at_repeated(const twi_recipe *r, int64_t index, tw_tensor **element, tw_error *error)
{
    return twi_at_same(r, index % twi_count_same(r), element, error);
}

static int64_t count_taken(const twi_recipe *r)
{
    int64_t most = twi_recipe_int(r, 1), count = twi_count_same(r);
    bool all = most < 0 || count == TWI_UNCOUNTED || (count >= 0 && count < most);
    return all ? count : most;
}

static tw_status next_take(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    counted *s = it->state;
    int64_t most = twi_recipe_int(it->recipe, 1);
    pull->end = most >= 0 && s->count >= most;
    if (pull->end)
        return TW_OK;
    tw_status status = twi_iteration_next(s->input, pull, element);
    s->count += status == TW_OK && !pull->end;
    return status;
}

static tw_status leave_out(counted *s, int64_t count, twi_pull *pull, tw_tensor **element, int width)
{
    tw_status status = TW_OK;
    for (int64_t i = 0; i < count && status == TW_OK && !pull->end; i++) {
        status = twi_iteration_next(s->input, pull, element);
        twi_element_drop(element, width);
    }
    return status;
}

/* A negative count leaves out all. */
static tw_status next_skip(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    counted *s = it->state;
    int64_t count = twi_recipe_int(it->recipe, 1);
    tw_status status = TW_OK;
    pull->end = count < 0;
    while (s->count < count && status == TW_OK && !pull->end) {
        status = leave_out(s, 1, pull, element, it->recipe->num_components);
        s->count++;
    }
    return status == TW_OK && !pull->end ? twi_iteration_next(s->input, pull, element) : status;
}

static int64_t count_left(const twi_recipe *r)
{
    int64_t left_out = twi_recipe_int(r, 1), count = twi_count_same(r);
    bool none = left_out < 0 || left_out > count;
    return count < 0 ? count : none ? 0 : count - left_out;
}

static tw_status at_left(const twi_recipe *r, int64_t index, tw_tensor **element, tw_error *error)
{
    return twi_at_same(r, index + twi_recipe_int(r, 1), element, error);
}

static tw_status check_shard(twi_recipe *r, tw_error *error)
{
    int64_t shards = twi_recipe_int(r, 1), index = twi_recipe_int(r, 2);
    if (shards < 1)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "Number of shards must be greater than zero (currently num_shards = %lld).", (long long)shards);
    if (index < 0 || index >= shards)
        return twi_fail(error, TW_INVALID_ARGUMENT, "Index must be between 0 and %lld (currently index = %lld).",
                        (long long)shards - 1, (long long)index);
    return TW_OK;
}

static tw_status next_shard(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    counted *s = it->state;
    int64_t shards = twi_recipe_int(it->recipe, 1), index = twi_recipe_int(it->recipe, 2);
    tw_status status = leave_out(s, s->count ? shards - 1 : index, pull, element, it->recipe->num_components);
    s->count = 1;
    return status == TW_OK && !pull->end ? twi_iteration_next(s->input, pull, element) : status;
}

static int64_t count_shard(const twi_recipe *r)
{
    int64_t shards = twi_recipe_int(r, 1), index = twi_recipe_int(r, 2), count = twi_count_same(r);
    return count < 0 ? count : count / shards + (index < count % shards);
}

static tw_status at_shard(const twi_recipe *r, int64_t index, tw_tensor **element, tw_error *error)
{
    return twi_at_same(r, index * twi_recipe_int(r, 1) + twi_recipe_int(r, 2), element, error);
}

static int64_t count_asserted(const twi_recipe *r)
{
    return twi_recipe_int(r, 1);
}

static tw_status next_asserted(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    counted *s = it->state;
    int64_t expected = twi_recipe_int(it->recipe, 1);
    tw_status status = twi_iteration_next(s->input, pull, element);
    if (status != TW_OK || expected < 0)
        return status;
    s->count += !pull->end;
    if (pull->end && s->count != expected)
        return twi_fail(pull->error, TW_FAILED_PRECONDITION,
                        "Input dataset was expected to contain %lld elements but contained only %lld.",
                        (long long)expected, (long long)s->count);
    if (s->count > expected)
        return twi_fail(pull->error, TW_FAILED_PRECONDITION,
                        "Input dataset was expected to contain %lld elements but contained at least %lld.",
                        (long long)expected, (long long)s->count);
    return TW_OK;
}

/* ---- each once --------------------------------------------------------------------------------------------------- */

/* What was given, in places by their hashes: a table that is at most half full. */
typedef struct uniques {
    twi_iteration *input;
    tw_tensor **seen; /* [room], a power of two; NULL: free */
    int64_t room, count;
} uniques;

static tw_status check_unique(twi_recipe *r, tw_error *error)
{
    tw_dtype type = r->num_components == 1 ? r->types[0] : TW_INVALID_DTYPE;
    if (type != TW_INT32 && type != TW_INT64 && type != TW_STRING)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "UniqueDataset only supports inputs with a single `tf.int32`, `tf.int64`, or `tf.string` "
                        "component.");
    return TW_OK;
}

static uint64_t hash_element(const tw_tensor *x)
{
    uint64_t hash = (uint64_t)x->elements;
    const tw_string *texts = x->data;
    if (x->dtype != TW_STRING)
        return twi_fingerprint(x->data, (size_t)x->elements * tw_dtype_size(x->dtype));
    for (int64_t i = 0; i < x->elements; i++)
        hash = twi_hash_mix(hash, twi_fingerprint(texts[i].data, texts[i].size));
    return hash;
}

static bool is_same(const tw_tensor *a, const tw_tensor *b)
{
    const tw_string *x = a->data, *y = b->data;
    if (!tw_shape_equal(a->shape, b->shape))
        return false;
    if (a->dtype != TW_STRING)
        return !a->elements || memcmp(a->data, b->data, (size_t)a->elements * tw_dtype_size(a->dtype)) == 0;
    for (int64_t i = 0; i < a->elements; i++)
        if (x[i].size != y[i].size || (x[i].size && memcmp(x[i].data, y[i].data, x[i].size) != 0))
            return false;
    return true;
}

/* Where it is, or would be. */
static tw_tensor **find_seen(const uniques *s, const tw_tensor *x)
{
    uint64_t mask = (uint64_t)s->room - 1, at = hash_element(x) & mask;
    while (s->seen[at] && !is_same(s->seen[at], x))
        at = (at + 1) & mask;
    return &s->seen[at];
}

static bool make_room(uniques *s)
{
    uniques larger = {.room = s->room ? 2 * s->room : 16};
    if (2 * s->count < s->room)
        return true;
    larger.seen = twi_alloc_array((size_t)larger.room, sizeof *larger.seen);
    for (int64_t i = 0; i < s->room && larger.seen; i++)
        if (s->seen[i])
            *find_seen(&larger, s->seen[i]) = s->seen[i];
    if (!larger.seen)
        return false;
    twi_free(s->seen);
    s->seen = larger.seen;
    s->room = larger.room;
    return true;
}

static tw_status next_unique(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    uniques *s = it->state;
    for (;;) {
        tw_status status = twi_iteration_next(s->input, pull, element);
        if (status != TW_OK || pull->end)
            return status;
        if (!make_room(s)) {
            twi_element_drop(element, 1);
            return twi_fail_memory(pull->error, it->recipe->node);
        }
        tw_tensor **place = find_seen(s, element[0]);
        if (!*place) {
            *place = tw_tensor_retain(element[0]);
            s->count++;
            return TW_OK;
        }
        twi_element_drop(element, 1);
    }
}

static void end_unique(twi_iteration *it)
{
    uniques *s = it->state;
    for (int64_t i = 0; i < s->room; i++)
        tw_tensor_release(s->seen[i]);
    twi_free(s->seen);
    twi_end_input(it);
}

/* ---- several ----------------------------------------------------------------------------------------------------- */

static tw_status next_concatenated(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    counted *s = it->state;
    tw_status status = twi_iteration_next(s->input, pull, element);
    if (status != TW_OK || !pull->end || s->count)
        return status;
    twi_iteration *second;
    status = twi_iteration_begin(it->recipe->arguments[1], it->monitor, &second, pull->error);
    if (status != TW_OK)
        return status; /* who asks again finds the first at its end */
    twi_iteration_end(s->input);
    s->input = second;
    s->count = 1;
    return twi_iteration_next(s->input, pull, element);
}

static int64_t count_concatenated(const twi_recipe *r)
{
    int64_t a = twi_count_same(r), b = twi_recipe_count(twi_recipe_of(r->arguments[1])), all;
    if (a < 0 || b < 0)
        return a == TWI_ENDLESS || b == TWI_ENDLESS ? TWI_ENDLESS : TWI_UNCOUNTED;
    return __builtin_add_overflow(a, b, &all) ? INT64_MAX : all;
}

static tw_status at_concatenated(const twi_recipe *r, int64_t index, tw_tensor **element, tw_error *error)
{
    int64_t first = twi_count_same(r);
    return index < first ? twi_at_same(r, index, element, error)
                         : twi_recipe_at(twi_recipe_of(r->arguments[1]), index - first, element, error);
}

/* The state: iterations over all arguments. */
typedef struct several {
    twi_iteration **inputs;
} several;

static tw_status begin_several(twi_iteration *it, tw_error *error)
{
    several *s = it->state;
    tw_status status = TW_OK;
    s->inputs = twi_alloc_array((size_t)it->recipe->num_arguments + 1, sizeof *s->inputs);
    if (!s->inputs)
        return twi_fail_memory(error, it->recipe->node);
    for (int i = 0; i < it->recipe->num_arguments && status == TW_OK; i++)
        status = twi_iteration_begin(it->recipe->arguments[i], it->monitor, &s->inputs[i], error);
    return status;
}

static void end_several(twi_iteration *it)
{
    several *s = it->state;
    for (int i = 0; s->inputs && i < it->recipe->num_arguments; i++)
        twi_iteration_end(s->inputs[i]);
    twi_free(s->inputs);
}

static tw_status check_zip(twi_recipe *r, tw_error *error)
{
    int components = 0;
    for (int i = 0; i < r->num_arguments; i++) {
        const twi_recipe *input = twi_recipe_of(r->arguments[i]);
        components += input ? input->num_components : 0;
    }
    if (components != r->num_components)
        return twi_fail(error, TW_INVALID_ARGUMENT, "%d components of its inputs are to be %d of its own", components,
                        r->num_components);
    return TW_OK;
}

/* Ends with the first that does; the others have been asked before. */
static tw_status next_zip(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    several *s = it->state;
    int at = 0;
    for (int i = 0; i < it->recipe->num_arguments; i++) {
        tw_status status = twi_iteration_next(s->inputs[i], pull, element + at);
        if (status != TW_OK || pull->end)
            return status;
        at += s->inputs[i]->recipe->num_components;
    }
    return TW_OK;
}

static int64_t count_zip(const twi_recipe *r)
{
    int64_t least = TWI_ENDLESS;
    for (int i = 0; i < r->num_arguments && least != TWI_UNCOUNTED; i++) {
        int64_t count = twi_recipe_count(twi_recipe_of(r->arguments[i]));
        least = count == TWI_UNCOUNTED || least == TWI_ENDLESS || (count >= 0 && count < least) ? count : least;
    }
    return least;
}

static tw_status at_zip(const twi_recipe *r, int64_t index, tw_tensor **element, tw_error *error)
{
    tw_status status = TW_OK;
    for (int i = 0; i < r->num_arguments && status == TW_OK; i++) {
        const twi_recipe *input = twi_recipe_of(r->arguments[i]);
        status = twi_recipe_at(input, index, element, error);
        element += input ? input->num_components : 0;
    }
    return status;
}

/* Only that there is no end is known: what chooses may pass by what has one. */
static int64_t count_directed(const twi_recipe *r)
{
    bool endless = false;
    for (int i = 1; i < r->num_arguments && !endless; i++)
        endless = twi_recipe_count(twi_recipe_of(r->arguments[i])) == TWI_ENDLESS;
    return endless ? TWI_ENDLESS : TWI_UNCOUNTED;
}

/* Argument 0 gives the number of the one whose turn it is. One that has ended is passed by, or ends it all. */
static tw_status next_directed(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    several *s = it->state;
    for (;;) {
        tw_tensor *chosen[TWI_ELEMENT] = {0};
        tw_status status = twi_iteration_next(s->inputs[0], pull, chosen);
        int64_t number = status == TW_OK && !pull->end ? twi_tensor_int(chosen[0], 0) : 0;
        twi_element_drop(chosen, TWI_ELEMENT);
        if (status != TW_OK || pull->end)
            return status;
        if (number < 0 || number + 1 >= it->recipe->num_arguments)
            return twi_fail(pull->error, TW_INVALID_ARGUMENT, "Selector index out of range: %lld >= %d",
                            (long long)number, it->recipe->num_arguments - 1);
        twi_iteration **input = &s->inputs[number + 1];
        if (!*input)
            continue;
        status = twi_iteration_next(*input, pull, element);
        if (status != TW_OK || !pull->end || it->recipe->flag)
            return status;
        twi_iteration_end(*input);
        *input = NULL;
        bool any = false;
        for (int i = 1; i < it->recipe->num_arguments; i++)
            any = any || s->inputs[i];
        if (!any)
            return TW_OK;
    }
}

/* ---- from memory ------------------------------------------------------------------------------------------------- */

/* What the first iteration that came to the end has seen. With a file's name it is kept there, too, as TensorFlow keeps
 * it: a checkpoint whose tensors are named after element and component, "      0_1". */
typedef struct memory {
    pthread_mutex_t lock;
    twi_rows rows;
    bool whole;
    char *file; /* NULL: in memory alone */
} memory;

typedef struct caching {
    twi_iteration *input; /* NULL: it reads */
    twi_rows rows;
    int64_t next;
} caching;

static tw_status check_cache(twi_recipe *r, tw_error *error)
{
    const tw_string *name = r->arguments[1]->elements ? r->arguments[1]->data : NULL;
    memory *m = r->facts = twi_alloc(sizeof *m);
    if (!m)
        return twi_fail_memory(error, r->node);
    pthread_mutex_init(&m->lock, NULL);
    m->file = name && name->size ? twi_strdup(name->data) : NULL;
    return m->file || !name || !name->size ? TW_OK : twi_fail_memory(error, r->node);
}

/* ---- and in a file ----------------------------------------------------------------------------------------------- */

static void name_cell(char text[64], int64_t element, int component, int components)
{
    int width = snprintf(NULL, 0, "%d", components - 1);
    snprintf(text, 64, "%7lld_%*d", (long long)element, width, component);
}

/* Row `i` of the file; *found false: there is none. */
static tw_status read_row(tw_checkpoint *file, const twi_recipe *r, int64_t i, bool *found, twi_rows *rows,
                          tw_error *error)
{
    tw_tensor *row[TWI_ELEMENT] = {0};
    char name[64];
    tw_status status = TW_OK;
    name_cell(name, i, 0, r->num_components);
    *found = tw_checkpoint_find(file, name) >= 0;
    for (int k = 0; k < r->num_components && *found && status == TW_OK; k++) {
        name_cell(name, i, k, r->num_components);
        status = tw_checkpoint_read(file, name, &row[k], error);
        if (status == TW_OK && row[k]->dtype != r->types[k])
            status = twi_fail(error, TW_INVALID_ARGUMENT, "the cache '%s' has %s where %s is wanted",
                              ((memory *)r->facts)->file, tw_dtype_name(row[k]->dtype), tw_dtype_name(r->types[k]));
    }
    if (status == TW_OK && *found && twi_rows_push(rows, row))
        return TW_OK;
    if (status == TW_OK && *found)
        status = twi_fail_memory(error, r->node);
    twi_element_drop(row, r->num_components);
    return status;
}

/* With the lock held: what an earlier run has kept. */
static tw_status read_cache(const twi_recipe *r, tw_error *error)
{
    memory *m = r->facts;
    tw_checkpoint *file;
    tw_error missing = {0};
    tw_status status = twi_bundle_open(m->file, &file, &missing);
    twi_rows rows = {.width = r->num_components};
    bool found = true;
    if (status == TW_NOT_FOUND)
        return TW_OK;
    if (status != TW_OK)
        return twi_fail(error, status, "the cache '%s': %s", m->file, missing.message);
    for (int64_t i = 0; found && status == TW_OK; i++)
        status = read_row(file, r, i, &found, &rows, error);
    tw_checkpoint_close(file);
    if (status == TW_OK) {
        m->rows = rows;
        m->whole = true;
    } else {
        twi_rows_free(&rows);
    }
    return status;
}

static tw_status write_cache(const twi_recipe *r, const memory *m, tw_error *error)
{
    int width = r->num_components;
    int64_t count = m->rows.count * width;
    tw_named_tensor *tensors = twi_alloc_array((size_t)count + 1, sizeof *tensors);
    char(*names)[64] = twi_alloc_array((size_t)count + 1, sizeof *names);
    tw_status status = tensors && names && count <= INT32_MAX ? TW_OK : twi_fail_memory(error, r->node);
    for (int64_t i = 0; i < count && status == TW_OK; i++) {
        name_cell(names[i], i / width, (int)(i % width), width);
        tensors[i] = (tw_named_tensor){.name = names[i], .tensor = twi_rows_at(&m->rows, i / width)[i % width]};
    }
    if (status == TW_OK)
        status = twi_bundle_save(m->file, tensors, (int)count, error);
    twi_free(tensors);
    twi_free(names);
    return status;
}

static void forget_cache(twi_recipe *r)
{
    memory *m = r->facts;
    twi_rows_free(&m->rows);
    pthread_mutex_destroy(&m->lock);
    twi_free(m->file);
    twi_free(m);
}

static tw_status begin_cache(twi_iteration *it, tw_error *error)
{
    memory *m = it->recipe->facts;
    caching *s = it->state;
    s->rows.width = it->recipe->num_components;
    pthread_mutex_lock(&m->lock);
    tw_status status = m->file && !m->whole ? read_cache(it->recipe, error) : TW_OK;
    bool whole = m->whole;
    pthread_mutex_unlock(&m->lock);
    return whole || status != TW_OK ? status : twi_begin_input(it, error);
}

static void end_cache(twi_iteration *it)
{
    caching *s = it->state;
    twi_iteration_end(s->input);
    twi_rows_free(&s->rows);
}

static tw_status keep_rows(const twi_recipe *r, caching *s, tw_error *error)
{
    memory *m = r->facts;
    tw_status status = TW_OK;
    pthread_mutex_lock(&m->lock);
    if (!m->whole) {
        m->rows = s->rows;
        s->rows = (twi_rows){.width = m->rows.width};
        m->whole = true;
        status = m->file ? write_cache(r, m, error) : TW_OK;
    }
    pthread_mutex_unlock(&m->lock);
    return status;
}

/* Rows of a memory that is whole change no more. */
static tw_status next_cache(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    memory *m = it->recipe->facts;
    caching *s = it->state;
    int width = it->recipe->num_components;
    if (!s->input) {
        pull->end = s->next >= m->rows.count;
        for (int i = 0; i < width && !pull->end; i++)
            element[i] = tw_tensor_retain(twi_rows_at(&m->rows, s->next)[i]);
        s->next += !pull->end;
        return TW_OK;
    }
    tw_status status = twi_iteration_next(s->input, pull, element);
    if (status == TW_OK && pull->end && !s->next)
        status = keep_rows(it->recipe, s, pull->error), s->next = 1;
    if (status != TW_OK || pull->end)
        return status;
    for (int i = 0; i < width; i++)
        tw_tensor_retain(element[i]);
    if (twi_rows_push(&s->rows, element))
        return TW_OK;
    twi_element_drop(element, width);
    return twi_fail_memory(pull->error, it->recipe->node);
}

/* ---- ahead of time ----------------------------------------------------------------------------------------------- */

typedef struct prefetching {
    twi_iteration *input;
    twi_ahead *ahead; /* NULL: nobody has asked yet */
} prefetching;

static void end_prefetch(twi_iteration *it)
{
    prefetching *s = it->state;
    twi_ahead_end(s->ahead);
    twi_iteration_end(s->input);
}

/* -1: as much as is good, which is as much as a few steps use. */
static tw_status next_prefetch(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    enum { GOOD = 8, MOST = 1 << 16 };
    prefetching *s = it->state;
    int64_t size = twi_recipe_int(it->recipe, 1);
    tw_status status = TW_OK;
    if (size == 0)
        return twi_iteration_next(s->input, pull, element);
    twi_ahead_options options = {.source = s->input,
                                 .threads = 1,
                                 .room = size < 0      ? GOOD
                                         : size > MOST ? MOST
                                                       : (int)size,
                                 .num_components = it->recipe->num_components};
    if (!s->ahead)
        status = twi_ahead_start(&options, it->monitor, &s->ahead, pull->error);
    return status == TW_OK ? twi_ahead_next(s->ahead, pull, element) : status;
}

#define INPUT(type) .state = sizeof(type), .begin = twi_begin_input, .end = twi_end_input
#define SAME next_same, INPUT(twi_iteration *), COUNTS_SAME
#define COUNTS_SAME .count = twi_count_same, .at = twi_at_same
#define SEVERAL .state = sizeof(several), .begin = begin_several, .end = end_several
#define CACHE                                                                                                          \
    next_cache, .state = sizeof(caching), .begin = begin_cache, .end = end_cache, .check = check_cache,                \
                .forget = forget_cache, COUNTS_SAME
#define UNIQUE next_unique, .state = sizeof(uniques), .begin = twi_begin_input, .end = end_unique, .check = check_unique

const twi_recipe_kind twi_order_kinds[] = {
    {"OptionsDataset", SAME},
    {"ModelDataset", SAME},
    {"OptimizeDataset", SAME},
    {"OptimizeDatasetV2", SAME},
    {"RewriteDataset", SAME},
    {"AutoShardDataset", SAME}, /* one process reads all */
    {"ExperimentalAutoShardDataset", SAME},
    {"FinalizeDataset", SAME},
    {"PrivateThreadPoolDataset", SAME},
    {"ExperimentalPrivateThreadPoolDataset", SAME},
    {"MaxIntraOpParallelismDataset", SAME},
    {"ExperimentalMaxIntraOpParallelismDataset", SAME},
    {"ThreadPoolDataset", SAME},
    {"SetStatsAggregatorDataset", SAME},
    {"LatencyStatsDataset", SAME},
    {"BytesProducedStatsDataset", SAME},
    {"NonSerializableDataset", SAME},
    {"ExperimentalNonSerializableDataset", SAME},
    {"AssertNextDataset", SAME},
    {"ExperimentalAssertNextDataset", SAME},
    {"SnapshotDataset", SAME}, /* what has been written is what comes */
    {"SnapshotDatasetV2", SAME},
    {"IgnoreErrorsDataset", next_sound, INPUT(twi_iteration *)},
    {"ExperimentalIgnoreErrorsDataset", next_sound, INPUT(twi_iteration *)},
    {"RepeatDataset", next_repeat, .state = sizeof(counted), .end = twi_end_input, .count = count_repeated,
     .at = at_repeated},
    {"TakeDataset", next_take, INPUT(counted), .count = count_taken, .at = twi_at_same},
    {"SkipDataset", next_skip, INPUT(counted), .count = count_left, .at = at_left},
    {"ShardDataset", next_shard, INPUT(counted), .check = check_shard, .count = count_shard, .at = at_shard},
    {"AssertCardinalityDataset", next_asserted, INPUT(counted), .count = count_asserted, .at = twi_at_same},
    {"UniqueDataset", UNIQUE},
    {"ExperimentalUniqueDataset", UNIQUE},
    {"ConcatenateDataset", next_concatenated, INPUT(counted), .count = count_concatenated, .at = at_concatenated},
    {"ZipDataset", next_zip, SEVERAL, .check = check_zip, .count = count_zip, .at = at_zip,
     .passes = TWI_OTHER_ELEMENTS},
    {"DirectedInterleaveDataset", next_directed, SEVERAL, .flag = "stop_on_empty_dataset", .count = count_directed,
     .passes = 1},
    {"ExperimentalDirectedInterleaveDataset", next_directed, SEVERAL, .count = count_directed, .passes = 1},
    {"CacheDataset", CACHE},
    {"CacheDatasetV2", CACHE},
    {"PrefetchDataset", next_prefetch, .state = sizeof(prefetching), .begin = twi_begin_input, .end = end_prefetch,
     COUNTS_SAME},
    {0},
};

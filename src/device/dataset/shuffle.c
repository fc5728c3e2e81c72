/* shuffle.c - data sets that are drawn: shuffled through a buffer, sampled, random numbers. With seeds they are
 * TensorFlow's, to the element.
 *
 * A stream of words is Philox seeded with two numbers, whose blocks of four are used up word by word. A shuffle takes a
 * stream for each iteration: seeded with the node's seeds, or, if it reshuffles, with two words each of a stream that
 * is seeded so and belongs to the data set. An element is drawn from the buffer by a word modulo how many there are of
 * the oldest epoch in it; the oldest of these takes its place. */
#include "base/word_stream.h"
#include "device/dataset/kinds.h"

#include <string.h>
#include <sys/random.h>

/* ---- seeds ------------------------------------------------------------------------------------------------------- */

/* Where the seeds of iterations come from: of one data set, or, as a graph's generator of seeds, of several. */
typedef struct seeds {
    pthread_mutex_t lock;
    uint64_t seeds[2];
    twi_word_stream words;
    bool draws; /* anew for each iteration */
} seeds;

/* What a data set remembers. */
typedef struct drawn {
    seeds *seeds;
    bool owns; /* else a generator does, which is an argument */
    pthread_mutex_t lock;
    int64_t *places; /* [elements] which one random access gives; NULL: nobody has asked yet */
} drawn;

static void free_seeds(void *object)
{
    seeds *s = object;
    pthread_mutex_destroy(&s->lock);
    twi_free(s);
}

/* Both numbers 0: the system's. */
static tw_status make_seeds(int64_t seed, int64_t seed2, bool draws, seeds **made, tw_error *error)
{
    seeds *s = twi_alloc(sizeof *s);
    if (!s)
        return twi_fail_memory(error, "making seeds");
    pthread_mutex_init(&s->lock, NULL);
    s->seeds[0] = (uint64_t)seed;
    s->seeds[1] = (uint64_t)seed2;
    if (!s->seeds[0] && !s->seeds[1] && getrandom(s->seeds, sizeof s->seeds, 0) != sizeof s->seeds) {
        free_seeds(s);
        return twi_fail(error, TW_UNAVAILABLE, "the system gave no random seed");
    }
    s->draws = draws;
    s->words = twi_word_stream_of(twi_philox_seed(s->seeds[0], s->seeds[1]));
    *made = s;
    return TW_OK;
}

tw_status twi_seeds_make(int64_t seed, int64_t seed2, bool draws, tw_tensor **tensor, tw_error *error)
{
    seeds *s = NULL;
    tw_status status = make_seeds(seed, seed2, draws, &s, error);
    if (status == TW_OK && !(*tensor = twi_variant(s, free_seeds)))
        status = twi_fail_memory(error, "making seeds");
    return status;
}

static seeds *seeds_of(const tw_tensor *tensor)
{
    return twi_variant_of(tensor, free_seeds);
}

bool twi_is_seeds(const tw_tensor *tensor)
{
    return seeds_of(tensor) != NULL;
}

/* The numbers are arguments `first` and the next, unless there is a generator behind them. */
static tw_status find_seeds(twi_recipe *r, int first, bool draws, tw_error *error)
{
    drawn *d = r->facts = twi_alloc(sizeof *d);
    if (!d)
        return twi_fail_memory(error, r->node);
    pthread_mutex_init(&d->lock, NULL);
    d->seeds = seeds_of(r->arguments[r->num_arguments - 1]);
    d->owns = !d->seeds;
    return d->seeds ? TW_OK
                    : make_seeds(twi_recipe_int(r, first), twi_recipe_int(r, first + 1), draws, &d->seeds, error);
}

static void forget_seeds(twi_recipe *r)
{
    drawn *d = r->facts;
    if (d->owns && d->seeds)
        free_seeds(d->seeds);
    pthread_mutex_destroy(&d->lock);
    twi_free(d->places);
    twi_free(d);
}

static void begin_words(const twi_recipe *r, twi_word_stream *w)
{
    seeds *s = ((drawn *)r->facts)->seeds;
    pthread_mutex_lock(&s->lock);
    uint64_t first = s->draws ? twi_next_word(&s->words) : s->seeds[0];
    uint64_t second = s->draws ? twi_next_word(&s->words) : s->seeds[1];
    pthread_mutex_unlock(&s->lock);
    *w = twi_word_stream_of(twi_philox_seed(first, second));
}

/* ---- shuffling --------------------------------------------------------------------------------------------------- */

/* Places of the buffer's elements of one epoch, modulo its size. */
typedef struct slice {
    int64_t first, end;
} slice;

typedef struct shuffling {
    twi_iteration *input; /* NULL: the epoch is over */
    twi_word_stream words;
    tw_tensor **buffer; /* [room][components] */
    int64_t room, held, size, epochs;
    slice *slices; /* [num_slices] oldest first */
    int num_slices, slices_room;
    bool any; /* an element came */
} shuffling;

/* How often the input is gone through; negative: for ever. */
static int64_t epochs_of(const twi_recipe *r)
{
    bool repeats = strncmp(r->kind->op, "ShuffleAndRepeat", 16) == 0;
    return repeats ? twi_recipe_int(r, 4) : 1;
}

static tw_status check_shuffle(twi_recipe *r, tw_error *error)
{
    int64_t size = twi_recipe_int(r, 1);
    if (size < 1 && size != -2)
        return twi_fail(error, TW_INVALID_ARGUMENT, "buffer_size must be greater than zero or UNKNOWN_CARDINALITY");
    if (epochs_of(r) == 0)
        return twi_fail(error, TW_INVALID_ARGUMENT, "count must be greater than zero or equal to -1.");
    if (strcmp(r->kind->op, "ShuffleDatasetV2") == 0 && !seeds_of(r->arguments[2]))
        return twi_fail(error, TW_INVALID_ARGUMENT, "'%s': input 2 is not the handle of a generator of seeds", r->node);
    return find_seeds(r, 2, r->flag, error);
}

static tw_status begin_shuffle(twi_iteration *it, tw_error *error)
{
    shuffling *s = it->state;
    (void)error;
    s->size = twi_recipe_int(it->recipe, 1);
    if (s->size < 0) /* all there are */
        s->size = INT64_MAX;
    begin_words(it->recipe, &s->words);
    return TW_OK;
}

static void end_shuffle(twi_iteration *it)
{
    shuffling *s = it->state;
    twi_iteration_end(s->input);
    for (int64_t i = 0; s->buffer && i < s->room; i++)
        twi_element_drop(s->buffer + i * it->recipe->num_components, it->recipe->num_components);
    twi_free(s->buffer);
    twi_free(s->slices);
}

/* The buffer grows as it is filled; until it is as large as it may be, nothing has come round. */
static bool reach(shuffling *s, int64_t place, int width)
{
    int64_t room = s->room ? s->room : 16;
    size_t row = sizeof *s->buffer * (size_t)width;
    while (room <= place)
        room *= 2;
    if (room == s->room)
        return true;
    tw_tensor **grown = twi_alloc_array((size_t)room, row + 1);
    if (!grown)
        return false;
    if (s->room)
        memcpy(grown, s->buffer, row * (size_t)s->room);
    twi_free(s->buffer);
    s->buffer = grown;
    s->room = room;
    return true;
}

static tw_status begin_epoch(twi_iteration *it, tw_error *error)
{
    shuffling *s = it->state;
    int64_t place = s->num_slices ? s->slices[s->num_slices - 1].end : 0;
    if (s->num_slices == s->slices_room) {
        int room = s->slices_room ? 2 * s->slices_room : 4;
        slice *grown = twi_resize(s->slices, sizeof *grown * (size_t)room);
        if (!grown)
            return twi_fail_memory(error, it->recipe->node);
        s->slices = grown;
        s->slices_room = room;
    }
    s->slices[s->num_slices++] = (slice){place, place};
    s->epochs++;
    return twi_begin_input(it, error);
}

static tw_status fill(twi_iteration *it, twi_pull *pull)
{
    enum { MOST_EPOCHS = 3 }; /* that are in the buffer whole, with none drawn */
    shuffling *s = it->state;
    int width = it->recipe->num_components;
    int64_t epochs = epochs_of(it->recipe);
    while (s->held < s->size && s->num_slices <= MOST_EPOCHS && (s->input || epochs < 0 || s->epochs < epochs)) {
        tw_tensor *element[TWI_ELEMENT];
        tw_status status = s->input ? TW_OK : begin_epoch(it, pull->error);
        if (status == TW_OK)
            status = twi_iteration_next(s->input, pull, element);
        if (status != TW_OK)
            return status;
        if (pull->end) {
            twi_iteration_end(s->input);
            s->input = NULL;
            if (!s->any)
                return TW_OK;
            continue;
        }
        int64_t place = s->slices[s->num_slices - 1].end % s->size;
        if (!reach(s, place, width)) {
            twi_element_drop(element, width);
            return twi_fail_memory(pull->error, it->recipe->node);
        }
        memcpy(s->buffer + place * width, element, sizeof *element * (size_t)width);
        s->slices[s->num_slices - 1].end++;
        s->held++;
        s->any = true;
    }
    return TW_OK;
}

static tw_status next_shuffled(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    shuffling *s = it->state;
    int width = it->recipe->num_components;
    size_t row = sizeof *element * (size_t)width;
    tw_status status = fill(it, pull);
    pull->end = s->held == 0;
    if (status != TW_OK || pull->end)
        return status;
    while (s->slices[0].first == s->slices[0].end) { /* another epoch's turn */
        memmove(s->slices, s->slices + 1, sizeof *s->slices * (size_t)--s->num_slices);
        begin_words(it->recipe, &s->words);
    }
    slice *oldest = &s->slices[0];
    int64_t drawn =
        (oldest->first + (int64_t)(twi_next_word(&s->words) % (uint64_t)(oldest->end - oldest->first))) % s->size;
    tw_tensor **at = s->buffer + drawn * width, **first = s->buffer + oldest->first % s->size * width;
    memcpy(element, at, row);
    memmove(at, first, row);
    memset(first, 0, row);
    oldest->first++;
    s->held--;
    return TW_OK;
}

static int64_t count_shuffled(const twi_recipe *r)
{
    int64_t count = twi_count_same(r), epochs = epochs_of(r), all;
    if (epochs < 0 || count < 0)
        return epochs < 0 ? TWI_ENDLESS : count;
    return __builtin_mul_overflow(count, epochs, &all) ? INT64_MAX : all;
}

/* With the lock held: random access has an order of its own, in which each place changes with one behind it. */
static tw_status draw_places(const twi_recipe *r, tw_error *error)
{
    drawn *d = r->facts;
    int64_t count = count_shuffled(r);
    twi_word_stream words = twi_word_stream_of(twi_philox_seed(d->seeds->seeds[0], d->seeds->seeds[1]));
    d->places = twi_alloc_array((size_t)count, sizeof *d->places);
    if (!d->places)
        return twi_fail_memory(error, r->node);
    for (int64_t i = 0; i < count; i++)
        d->places[i] = i;
    for (int64_t i = 0; i < count; i++) {
        int64_t other = i + (int64_t)(twi_next_word(&words) % (uint64_t)(count - i)), kept = d->places[i];
        d->places[i] = d->places[other];
        d->places[other] = kept;
    }
    return TW_OK;
}

static tw_status at_shuffled(const twi_recipe *r, int64_t index, tw_tensor **element, tw_error *error)
{
    drawn *d = r->facts;
    pthread_mutex_lock(&d->lock);
    tw_status status = d->places ? TW_OK : draw_places(r, error);
    int64_t place = status == TW_OK ? d->places[index] : 0;
    pthread_mutex_unlock(&d->lock);
    return status == TW_OK ? twi_at_same(r, place % twi_count_same(r), element, error) : status;
}

/* ---- samples and numbers ----------------------------------------------------------------------------------------- */

typedef struct sampling {
    twi_iteration *input;
    twi_word_stream words;
} sampling;

static tw_status check_sampling(twi_recipe *r, tw_error *error)
{
    if (r->arguments[1]->elements != 1)
        return twi_fail(error, TW_INVALID_ARGUMENT, "rate must be a scalar");
    return find_seeds(r, 2, false, error);
}

static tw_status begin_sampling(twi_iteration *it, tw_error *error)
{
    begin_words(it->recipe, &((sampling *)it->state)->words);
    return twi_begin_input(it, error);
}

/* An element is kept where a word's float in [0,1) lies below the rate. */
static tw_status next_sample(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    sampling *s = it->state;
    float rate = *(const float *)it->recipe->arguments[1]->data;
    for (;;) {
        tw_status status = twi_iteration_next(s->input, pull, element);
        if (status != TW_OK || pull->end || twi_uniform_float(twi_next_word(&s->words)) < rate)
            return status;
        twi_element_drop(element, it->recipe->num_components);
    }
}

static tw_status check_numbers(twi_recipe *r, tw_error *error)
{
    return find_seeds(r, 0, r->flag, error);
}

static tw_status begin_numbers(twi_iteration *it, tw_error *error)
{
    (void)error;
    begin_words(it->recipe, it->state);
    return TW_OK;
}

static int64_t count_numbers(const twi_recipe *r)
{
    (void)r;
    return TWI_ENDLESS;
}

static tw_status next_number(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    element[0] = tw_tensor_int64(twi_next_word(it->state));
    return element[0] ? TW_OK : twi_fail_memory(pull->error, it->recipe->node);
}

#define SHUFFLE                                                                                                        \
    next_shuffled, .state = sizeof(shuffling), .begin = begin_shuffle, .end = end_shuffle, .check = check_shuffle,     \
                   .forget = forget_seeds, .flag = "reshuffle_each_iteration", .count = count_shuffled
#define NUMBERS                                                                                                        \
    next_number, .state = sizeof(twi_word_stream), .begin = begin_numbers, .check = check_numbers,                     \
                 .forget = forget_seeds, .count = count_numbers

const twi_recipe_kind twi_shuffle_kinds[] = {
    {"ShuffleDataset", SHUFFLE, .at = at_shuffled},
    {"ShuffleDatasetV2", SHUFFLE, .at = at_shuffled},
    {"ShuffleDatasetV3", SHUFFLE, .at = at_shuffled},
    {"ShuffleAndRepeatDataset", SHUFFLE},
    {"ShuffleAndRepeatDatasetV2", SHUFFLE},
    {"SamplingDataset", next_sample, .state = sizeof(sampling), .begin = begin_sampling, .end = twi_end_input,
     .check = check_sampling, .forget = forget_seeds},
    {"RandomDataset", NUMBERS},
    {"RandomDatasetV2", NUMBERS, .flag = "rerandomize_each_iteration"},
    {0},
};

/* What is drawn, without data, devices or training: the order of an epoch's examples, their distortions (against
 * TensorFlow's), and the order of asynchronous updates, as it is planned and as its log is read. */
#include "testing.h"

#include "base/file.h"
#include "faulty_files.h"
#include "golden/record.h"
#include "stream/distort.h"
#include "train/update_order.h"

#include <tower/data.h>

static tw_error error;

/* ---- the order of examples --------------------------------------------------------------------------------------- */

static void assert_permutation(int64_t count, uint64_t seed, int64_t epoch)
{
    twi_permutation p = twi_epoch_permutation(count, seed, epoch);
    bool *seen = calloc((size_t)count, 1);
    for (int64_t i = 0; i < count; i++) {
        int64_t to = twi_permute(&p, i);
        assert_true(to >= 0 && to < count && !seen[to]);
        seen[to] = true;
    }
    free(seen);
}

static void every_epoch_is_a_permutation_of_any_number_of_examples(void **state)
{
    (void)state;
    for (int64_t count = 1; count <= 270; count++)
        assert_permutation(count, 5, count);
    static const int64_t sizes[] = {511, 512, 513, 9973, 10000, 50000, 60000, 65535, 65536, 65537};
    for (int i = 0; i < 10; i++)
        assert_permutation(sizes[i], ~0ull - (uint64_t)i, 3);
}

static void shuffling_favours_no_place(void **state)
{
    (void)state;
    enum { COUNT = 5, EPOCHS = 6000 };
    int hits[COUNT][COUNT] = {{0}}, orders[COUNT * COUNT * COUNT * COUNT] = {0};
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        twi_permutation p = twi_epoch_permutation(COUNT, 11, epoch);
        int order = 0;
        for (int i = 0; i < COUNT; i++) {
            int to = (int)twi_permute(&p, i);
            hits[i][to]++;
            if (i < 4)
                order = order * COUNT + to;
        }
        orders[order]++;
    }
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++)
            assert_in_range(hits[i][j], 1200 - 155, 1200 + 155); /* five standard deviations */
    int different = 0;
    for (int i = 0; i < COUNT * COUNT * COUNT * COUNT; i++) {
        different += orders[i] > 0;
        assert_true(orders[i] <= 50 + 36);
    }
    assert_int_equal(different, 120); /* all of 5! */
}

static void seeds_and_epochs_give_unrelated_orders(void **state)
{
    (void)state;
    enum { COUNT = 50000 };
    twi_permutation a = twi_epoch_permutation(COUNT, 1, 0), b = twi_epoch_permutation(COUNT, 1, 1),
                    c = twi_epoch_permutation(COUNT, 2, 0);
    int fixed = 0, with_b = 0, with_c = 0, neighbours = 0;
    for (int i = 0; i < COUNT; i++) {
        int64_t to = twi_permute(&a, i);
        fixed += to == i;
        with_b += to == twi_permute(&b, i);
        with_c += to == twi_permute(&c, i);
        neighbours += i > 0 && llabs(to - twi_permute(&a, i - 1)) == 1;
    }
    assert_in_range(fixed, 0, 8); /* one expected, two of the last */
    assert_in_range(with_b, 0, 8);
    assert_in_range(with_c, 0, 8);
    assert_in_range(neighbours, 0, 12);
}

/* ---- distortions ------------------------------------------------------------------------------------------------- */

/* With no more scratch memory than was asked for. */
static void distort(const twi_distorter *d, const twi_distortion *by, const uint8_t *image, float *out)
{
    void *scratch = malloc(twi_distort_scratch(d));
    assert_non_null(scratch);
    twi_distort(d, by, image, out, scratch);
    free(scratch);
}

/* The images of make_distortion.py. */
static void golden_image(int m, uint8_t image[32][32][3])
{
    for (int y = 0; y < 32; y++)
        for (int x = 0; x < 32; x++)
            for (int c = 0; c < 3; c++)
                image[y][x][c] = (uint8_t)(m == 0   ? 61 + 7 * y + 3 * x * x + 50 * c + y * x / 4
                                           : m == 1 ? 10 + 90 * c + (y + x) / 8
                                                    : 200);
}

static void distortions_equal_tensorflows(void **state)
{
    (void)state;
    enum { VALUES = 24 * 24 * 3 };
    FILE *file = fopen(GOLDEN_DIR "/distortion.bin", "rb");
    assert_non_null(file);
    static float expected[VALUES], found[VALUES];
    static uint8_t image[32][32][3];
    struct {
        int32_t image, top, left, flip, train;
        float brightness, contrast;
    } given;
    int cases = 0;
    for (; fread(&given, sizeof given, 1, file) == 1; cases++) {
        assert_int_equal(fread(expected, sizeof expected, 1, file), 1);
        twi_distorter d;
        assert_ok(twi_distorter_init(&d, given.train ? TW_AUGMENT_TUTORIAL_TRAIN : TW_AUGMENT_TUTORIAL_EVAL, 32, 32, 3,
                                     0, 0, 0, &error));
        twi_distortion by = {given.top, given.left, given.flip, given.brightness, given.contrast};
        if (!given.train)
            by = twi_draw_distortion(&d, 1, 1, 9, 1);
        golden_image(given.image, image);
        distort(&d, &by, &image[0][0][0], found);
        assert_floats_near(found, expected, VALUES, given.image == 2 ? 2e-3 : 2e-5); /* 2: rounding, times 41 */
    }
    fclose(file);
    assert_int_equal(cases, 5);
}

static void drawn_distortions_cover_their_ranges_and_no_more(void **state)
{
    (void)state;
    twi_distorter d;
    assert_ok(twi_distorter_init(&d, TW_AUGMENT_TUTORIAL_TRAIN, 32, 32, 3, 0, 0, 0, &error));
    int tops[9] = {0}, lefts[9] = {0}, flips = 0;
    double brightness = 0, contrast = 0, least = 9, most = 0;
    for (int k = 0; k < 9000; k++) {
        twi_distortion by = twi_draw_distortion(&d, 3, k, 9000, k);
        assert_in_range(by.top, 0, 8);
        assert_in_range(by.left, 0, 8);
        tops[by.top]++;
        lefts[by.left]++;
        flips += by.flip;
        assert_true(by.brightness >= -63 && by.brightness < 63);
        brightness += by.brightness / 9000;
        contrast += by.contrast / 9000;
        least = fmin(least, by.contrast);
        most = fmax(most, by.contrast);
    }
    for (int i = 0; i < 9; i++) {
        assert_in_range(tops[i], 850, 1150);
        assert_in_range(lefts[i], 850, 1150);
    }
    assert_in_range(flips, 4300, 4700);
    assert_true(fabs(brightness) < 2 && fabs(contrast - 1) < 0.025);
    assert_true(least >= 0.2f && least < 0.202 && most < 1.8f && most > 1.798);
}

static void pad_crop_flip_shifts_and_mirrors_with_zeros_outside(void **state)
{
    (void)state;
    static uint8_t image[32][32][3];
    static float found[32][32][3];
    golden_image(0, image);
    twi_distorter d;
    assert_ok(twi_distorter_init(&d, TW_AUGMENT_PAD_CROP_FLIP, 32, 32, 3, 0, 2, -1, &error));
    int extremes = 0;
    for (int k = 0; k < 300; k++) {
        twi_distortion by = twi_draw_distortion(&d, 3, k, 300, k);
        assert_true(abs(by.top) <= 4 && abs(by.left) <= 4);
        extremes |= by.top == -4 ? 1 : by.top == 4 ? 2 : 0;
        extremes |= by.left == -4 ? 4 : by.left == 4 ? 8 : 0;
        extremes |= by.flip ? 16 : 32;
        distort(&d, &by, &image[0][0][0], &found[0][0][0]);
        for (int y = 0; y < 32; y++)
            for (int x = 0; x < 32; x++) {
                int from_y = y + by.top, from_x = (by.flip ? 31 - x : x) + by.left;
                bool inside = from_y >= 0 && from_y < 32 && from_x >= 0 && from_x < 32;
                for (int c = 0; c < 3; c++)
                    assert_true(found[y][x][c] == (inside ? 2.0f * image[from_y][from_x][c] : 0) - 1);
            }
    }
    assert_int_equal(extremes, 63);
}

/* What make_record.py was told is what the trainer's stream of seed 7 gives. */
static void draws_of_the_records_stream_are_those_given_to_pytorch(void **state)
{
    (void)state;
    twi_distorter d;
    assert_ok(twi_distorter_init(&d, TW_AUGMENT_REFLECT_CROP_ALTERNATE, 32, 32, 3, 0, 0, 0, &error));
    for (int k = 0; k < RECORD_STEPS * RECORD_BATCH; k++) {
        int64_t index = twi_example_index(RECORD_EXAMPLES, 7, true, k);
        twi_distortion by = twi_draw_distortion(&d, 7, k, RECORD_EXAMPLES, index);
        assert_true(record_draws[k][0] == index && record_draws[k][1] == by.top && record_draws[k][2] == by.left &&
                    record_draws[k][3] == by.flip);
    }
}

/* Each shift and either flip, of images that are smaller than theirs and of one that is hardly large enough; where each
 * pixel comes from is said in other words than distort.h's: the way back and forth from the border. */
static void borders_are_reflected_without_being_repeated(void **state)
{
    (void)state;
    static const int sides[] = {3, 4, 7};
    for (int i = 0; i < 3; i++) {
        int n = sides[i], seen = 0;
        uint8_t image[7 * 7 * 3];
        float found[7 * 7 * 3];
        twi_distorter d;
        for (int k = 0; k < n * n * 3; k++)
            image[k] = (uint8_t)(k * 5);
        assert_ok(twi_distorter_init(&d, TW_AUGMENT_REFLECT_CROP_ALTERNATE, n, n, 3, 0, 2, -1, &error));
        for (int top = -2; top <= 2; top++)
            for (int left = -2; left <= 2; left++)
                for (int flip = 0; flip < 2; flip++, seen++) {
                    distort(&d, &(twi_distortion){.top = top, .left = left, .flip = flip}, image, found);
                    for (int k = 0; k < n * n; k++) {
                        int period = 2 * (n - 1), x = flip ? n - 1 - k % n : k % n;
                        int row = (k / n + top + period) % period, column = (x + left + period) % period;
                        row = row < n ? row : period - row;
                        column = column < n ? column : period - column;
                        for (int c = 0; c < 3; c++)
                            assert_true(found[k * 3 + c] == 2.0f * image[(row * n + column) * 3 + c] - 1);
                    }
                }
        assert_int_equal(seen, 50);
    }
    twi_distorter small;
    assert_fails(twi_distorter_init(&small, TW_AUGMENT_REFLECT_CROP_ALTERNATE, 2, 9, 3, 0, 0, 0, &error),
                 TW_INVALID_ARGUMENT, "cannot reflect 2 pixels of images of 2x9");
}

/* In six epochs of a stream: the same image is seen both ways in any two in a row, at places of its own. */
static void flips_alternate_by_epoch_and_begin_by_chance(void **state)
{
    (void)state;
    enum { COUNT = 4000, EPOCHS = 6 };
    static bool flips[EPOCHS][COUNT];
    twi_distorter d;
    int begin = 0, tops[5] = {0}, lefts[5] = {0}, others = 0;
    assert_ok(twi_distorter_init(&d, TW_AUGMENT_REFLECT_CROP_ALTERNATE, 32, 32, 3, 0, 0, 0, &error));
    for (int k = 0; k < EPOCHS * COUNT; k++) {
        int64_t index = twi_example_index(COUNT, 3, true, k);
        twi_distortion by = twi_draw_distortion(&d, 3, k, COUNT, index);
        assert_true(abs(by.top) <= 2 && abs(by.left) <= 2);
        tops[by.top + 2]++;
        lefts[by.left + 2]++;
        flips[k / COUNT][index] = by.flip;
        others += k < COUNT && by.flip == twi_draw_distortion(&d, 4, k, COUNT, index).flip;
    }
    for (int i = 0; i < COUNT; i++) {
        begin += flips[0][i];
        for (int epoch = 1; epoch < EPOCHS; epoch++)
            assert_true(flips[epoch][i] != flips[epoch - 1][i]);
    }
    assert_in_range(begin, 2000 - 158, 2000 + 158); /* five standard deviations */
    assert_in_range(others, 2000 - 158, 2000 + 158);
    for (int i = 0; i < 5; i++) {
        assert_in_range(tops[i], 4800 - 310, 4800 + 310);
        assert_in_range(lefts[i], 4800 - 310, 4800 + 310);
    }
}

static void images_of_one_and_two_channels_are_flipped_and_standardised(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 2; channels++) {
        uint8_t image[3][3][2] = {{{0}}};
        float found[9 * 2];
        for (int i = 0; i < 9 * channels; i++)
            (&image[0][0][0])[i] = (uint8_t)(i * i / 2);
        twi_distorter d;
        assert_ok(twi_distorter_init(&d, TW_AUGMENT_TUTORIAL_TRAIN, 3, 3, channels, 3, 0, 0, &error));
        distort(&d, &(twi_distortion){.flip = true, .contrast = 1}, &image[0][0][0], found);
        int n = 9 * channels;
        double mean = 0, variance = 0;
        for (int i = 0; i < n; i++)
            mean += (double)(i * i / 2) / n;
        for (int i = 0; i < n; i++)
            variance += (i * i / 2 - mean) * (i * i / 2 - mean) / n;
        for (int y = 0; y < 3; y++)
            for (int x = 0; x < 3; x++)
                for (int c = 0; c < channels; c++) {
                    int i = (y * 3 + 2 - x) * channels + c;
                    assert_true(fabs(found[(y * 3 + x) * channels + c] - (i * i / 2 - mean) / sqrt(variance)) < 1e-5);
                }
    }
}

/* A pipeline gives what the header promises: computed here without one. Its other settings give the same stream
 * (test_data.c). */
static void the_stream_of_a_pipeline_is_what_is_drawn(void **state)
{
    (void)state;
    enum { COUNT = 37, SIDE = 6, CROP = 4, STREAM = 120 };
    tw_dataset *d;
    tw_pipeline *p;
    twi_distorter distorter;
    tw_pipeline_options options = {.batch = 1, .crop = CROP, .seed = 4, .shuffle = true,
                                   .augmentation = TW_AUGMENT_TUTORIAL_TRAIN};
    assert_ok(tw_dataset_synthetic(COUNT, SIDE, SIDE, 1, 10, 7, &d, &error));
    assert_ok(tw_pipeline_create(d, &options, &p, &error));
    assert_ok(twi_distorter_init(&distorter, TW_AUGMENT_TUTORIAL_TRAIN, SIDE, SIDE, 1, CROP, 0, 0, &error));
    for (int k = 0; k < STREAM; k++) {
        float expected[CROP * CROP], found[CROP * CROP];
        int32_t label;
        twi_permutation order = twi_epoch_permutation(COUNT, 4, k / COUNT);
        int64_t index = twi_permute(&order, k % COUNT);
        twi_distortion drawn = twi_draw_distortion(&distorter, 4, k, COUNT, index);
        distort(&distorter, &drawn, tw_dataset_images(d) + index * SIDE * SIDE, expected);
        assert_ok(tw_pipeline_next(p, 0, found, &label, &error));
        assert_memory_equal(found, expected, sizeof found);
        assert_int_equal(label, tw_dataset_labels(d)[index]);
    }
    tw_pipeline_destroy(p);
    tw_dataset_destroy(d);
}

/* ---- the order of asynchronous updates --------------------------------------------------------------------------- */

/* Plays `updates` updates; by arrival, whoever the seed says is there first. Checks staleness against the bound and
 * returns its mean over the second half. */
static double play(int towers, tw_asynchronous options, int updates, unsigned seed)
{
    twi_update_order order;
    tw_error error = {0};
    double sum = 0;
    int64_t *seen = calloc((size_t)updates + (size_t)towers, sizeof *seen);
    assert_ok(twi_update_order_begin(&order, towers, &options, 0, NULL, 0, NULL, &error));
    for (int u = 0; u < updates; u++) {
        for (int tower; (tower = twi_update_order_next_pull(&order)) >= 0;)
            seen[twi_update_order_pull(&order, tower)->batch]++;
        int next = twi_update_order_next_push(&order), may = 0;
        for (int i = 0; i < towers; i++)
            may += twi_update_order_may_push(&order, i);
        assert_true(may > 0);
        if (next < 0) {
            seed = seed * 1664525u + 1013904223u;
            int skip = (int)((seed >> 8) % (unsigned)may);
            for (next = 0; !twi_update_order_may_push(&order, next) || skip-- > 0; next++)
                ;
        }
        assert_true(twi_update_order_may_push(&order, next));
        int64_t staleness = twi_update_order_push(&order, next);
        assert_true(!options.bounded || staleness <= options.max_staleness);
        sum += u >= updates / 2 ? (double)staleness : 0;
    }
    for (int u = 0; u < updates; u++)
        assert_true(seen[u] <= 1);
    free(seen);
    twi_update_order_free(&order);
    return sum / (updates - updates / 2);
}

static void no_order_ever_exceeds_the_bound(void **state)
{
    (void)state;
    for (int towers = 1; towers <= 6; towers++)
        for (int bound = 0; bound <= 8; bound++)
            for (unsigned seed = 1; seed <= 20; seed++)
                for (int order = TW_ORDER_ARRIVAL; order <= TW_ORDER_STRAGGLER; order++)
                    play(towers, (tw_asynchronous){.bounded = true, .max_staleness = bound, .order = (tw_order)order,
                                                   .order_seed = seed}, 100, seed);
}

static void mean_staleness_is_the_number_of_other_towers_under_way(void **state)
{
    (void)state;
    for (int towers = 1; towers <= 9; towers++) {
        assert_true(play(towers, (tw_asynchronous){.order = TW_ORDER_EQUAL}, 1000, 1) == towers - 1);
        for (int order = TW_ORDER_ARRIVAL; order <= TW_ORDER_STRAGGLER; order++)
            assert_true(fabs(play(towers, (tw_asynchronous){.order = (tw_order)order}, 20000, 1) - (towers - 1)) < 0.1);
    }
}

/* What is drawn from a seed is the same with every version of Tower. Computed apart from it, by Philox and each kind's
 * formula; of two towers that are done at once the lower is first. */
static void drawn_orders_are_what_their_kinds_say(void **state)
{
    (void)state;
    static const char *const expected[] = {[TW_ORDER_EQUAL] = "012012012012012012012012012012",
                                           [TW_ORDER_UNIFORM] = "120120120120102120122102102012",
                                           [TW_ORDER_EXPONENTIAL] = "021002022201100101120011111201",
                                           [TW_ORDER_STRAGGLER] = "121212012121212012121212012121"};
    for (int kind = TW_ORDER_EQUAL; kind <= TW_ORDER_STRAGGLER; kind++) {
        twi_update_order order;
        char towers[31] = "";
        tw_asynchronous options = {.order = (tw_order)kind, .order_seed = 5};
        assert_ok(twi_update_order_begin(&order, 3, &options, 0, NULL, 0, NULL, &error));
        for (int update = 0; update < 30; update++) {
            for (int tower; (tower = twi_update_order_next_pull(&order)) >= 0;)
                assert_true(twi_update_order_pull(&order, tower)->batch == tower || update > 0);
            towers[update] = (char)('0' + twi_update_order_next_push(&order));
            twi_update_order_push(&order, towers[update] - '0');
        }
        assert_string_equal(towers, expected[kind]);
        twi_update_order_free(&order);
    }
}

static int draw_below(unsigned *seed, int end)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (int)((*seed >> 8) % (unsigned)end);
}

/* A run that goes on where another stopped, with `batches`, and stops in its turn after a few updates; `arrived` counts
 * those of each batch. Returns how many numbers `batches` has then. */
static int play_until_it_stops(int towers, int64_t *version, int64_t *batches, int num_batches, unsigned *seed,
                               int *arrived)
{
    twi_update_order order;
    tw_asynchronous options = {.order = TW_ORDER_EXPONENTIAL, .order_seed = (int64_t)*seed};
    assert_ok(twi_update_order_begin(&order, towers, &options, *version, batches, num_batches, NULL, &error));
    for (int updates = draw_below(seed, towers + 2), tower; updates >= 0; updates--) {
        int pulls = 1 + draw_below(seed, towers);
        for (; pulls && (tower = twi_update_order_next_pull(&order)) >= 0; pulls--)
            twi_update_order_pull(&order, tower);
        if (updates) {
            int next = twi_update_order_next_push(&order);
            arrived[order.flights[next].batch]++;
            twi_update_order_push(&order, next);
        }
    }
    *version = order.version;
    int count = twi_update_order_batches(&order, batches);
    twi_update_order_free(&order);
    return count;
}

static void no_batch_is_lost_or_arrives_twice_however_often_a_run_stops(void **state)
{
    (void)state;
    enum { TOWERS = 5, STOPS = 40 };
    for (unsigned seed = 1; seed <= 50; seed++) {
        int arrived[STOPS * (2 * TOWERS + 1)] = {0}, num_batches = 0;
        int64_t batches[1 + TOWERS] = {0}, version = 0;
        unsigned drawn = seed;
        for (int stops = 0; stops < STOPS; stops++) {
            int seen[sizeof arrived / sizeof *arrived] = {0};
            num_batches = play_until_it_stops(TOWERS, &version, batches, num_batches, &drawn, arrived);
            assert_true(num_batches <= 1 + TOWERS);
            for (int i = 1; i < num_batches; i++) {
                assert_true(batches[i] < batches[0] && (i == 1 || batches[i] > batches[i - 1]));
                seen[batches[i]]++;
            }
            for (int64_t batch = 0; batch < batches[0]; batch++)
                assert_int_equal(arrived[batch] + seen[batch], 1);
        }
    }
}

static void an_order_is_replayed_from_where_nothing_of_it_is_under_way(void **state)
{
    (void)state;
    static const struct {
        int64_t version, batch; /* of the first update; the others have 6 and 7 */
        const char *message;    /* NULL: it is replayed */
    } cases[] = {
        {5, 5, NULL},
        {8, 5, NULL},
        {4, 5, "has the updates 5 to 7; training is to begin with number 4"},
        {9, 5, "has the updates 5 to 7; training is to begin with number 9"},
        {6, 5, "update 6 of the order to be replayed was computed from the variables of update 5, which is before the "
               "checkpoint's 6"},
        {5, 8, NULL}, /* after 6; another tower has 5, which does not arrive */
        {5, 9, "update 5 of the order to be replayed is of batch 9, when 7 would be next"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        twi_order_record records[] = {{0, 5, cases[i].batch, 0}, {1, 5, 6, 0}, {0, 6, 7, 0}};
        twi_order_log log = {.head = {.towers = 2, .first = 5}, .records = records, .count = 3};
        twi_update_order order;
        tw_asynchronous options = {0};
        if (cases[i].message) {
            assert_fails(twi_update_order_begin(&order, 2, &options, cases[i].version, NULL, 0, &log, &error),
                         TW_INVALID_ARGUMENT, cases[i].message);
            twi_update_order_free(&order);
            continue;
        }
        assert_ok(twi_update_order_begin(&order, 2, &options, cases[i].version, NULL, 0, &log, &error));
        for (int update = (int)cases[i].version; update < 8; update++) {
            const twi_order_record *r = &records[update - 5];
            for (int tower; (tower = twi_update_order_next_pull(&order)) >= 0;) {
                int64_t batch = twi_update_order_pull(&order, tower)->batch;
                assert_int_equal(batch, order.version == 6 ? 7 : tower ? 6 : cases[i].batch);
            }
            for (int tower = 0; tower < 2; tower++)
                assert_int_equal(twi_update_order_may_push(&order, tower), tower == r->tower);
            assert_int_equal(twi_update_order_next_push(&order), r->tower);
            assert_int_equal(twi_update_order_push(&order, r->tower), update - r->pulled);
        }
        assert_int_equal(twi_update_order_next_pull(&order), -1);
        int64_t batches[3];
        bool lacks = cases[i].batch == 8; /* batch 5, which did not arrive */
        assert_int_equal(twi_update_order_batches(&order, batches), lacks ? 2 : 1);
        assert_int_equal(batches[0], lacks ? 9 : 8);
        assert_true(!lacks || batches[1] == 5);
        twi_update_order_free(&order);
    }
}

static const char *order_log_in(const char *folder)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/order.log", folder);
    return path;
}

static void a_damaged_order_is_refused_by_line_and_a_torn_end_is_not(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        int count;
    } cases[] = {
        {"hello\n", "is not an order of updates", 0},
        {"tower order 1\nmodel cifar10 towers 2 batch 2 seed 7\n", "line 2: expected 'model", 0},
        {"tower order 1\nmodel cifar10 towers 2 batch 2 seed 7 first 0\n", NULL, 0},
        {"tower order 1\nmodel cifar10 towers 2 batch 2 seed 7 first 0\n"
         "0 tower 1 pulled 0 batch 1 loss 0x1p+1\n1 tower 0 pulled 0 batch 0 loss 0x1p+1\n2 tower 1 pul", NULL, 2},
        {"tower order 1\nmodel cifar10 towers 2 batch 2 seed 7 first 0\n"
         "1 tower 1 pulled 0 batch 1 loss 0x1p+1\n", "line 3: updates are not numbered", 0},
        {"tower order 1\nmodel cifar10 towers 2 batch 2 seed 7 first 0\n"
         "0 tower 2 pulled 0 batch 1 loss 0x1p+1\n", "line 3: there is no such tower", 0},
        {"tower order 1\nmodel cifar10 towers 2 batch 2 seed 7 first 0\n"
         "0 tower 1 pulled 1 batch 1 loss 0x1p+1\n", "line 3: variables cannot be pulled after", 0},
        {"tower order 1\nmodel cifar10 towers 2 batch 2 seed 7 first 0\n0 tower 1 pulled 0 batch 1 loss 0x1p+1\n"
         "1 tower 1 pulled 0 batch 2 loss 0x1p+1\n", "line 4: the tower pulled before its update before", 0},
        {"tower order 1\nmodel cifar10 towers 2 batch 2 seed 7 first 0\n"
         "0 tower 1 pulled 0 batch 1 loss much\n", "line 3: expected a number after 'loss'", 0},
        {"tower order 1\nmodel cifar10 towers 2 batch 2 seed 7 first 0\n"
         "0 tower 1 pulled 99999999999999999999 batch 1 loss 1\n", "line 3: expected 'UPDATE tower N", 0},
    };
    const char *folder = scratch_folder(), *path = order_log_in(folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tw_error error = {0};
        twi_order_log log;
        assert_ok(twi_file_replace(path, cases[i].text, strlen(cases[i].text), &error));
        if (cases[i].message) {
            assert_fails(twi_order_log_read(path, &log, &error), TW_DATA_LOSS, cases[i].message);
        } else {
            assert_ok(twi_order_log_read(path, &log, &error));
            assert_int_equal(log.count, cases[i].count);
        }
        twi_order_log_free(&log);
    }
    remove_scratch(folder);
}

static void an_order_with_a_byte_of_zero_is_refused_by_line(void **state)
{
    (void)state;
    static const char text[] = "tower order 1\nmodel cifar10 towers 2 batch 2 seed 7 first 0\n"
                               "0 tower 1 pulled 0 batch 1 loss 0x1p+1\n\0001 tower 0 pulled 0 batch 0 loss 0x1p+1\n";
    const char *folder = scratch_folder(), *path = order_log_in(folder);
    tw_error error = {0};
    twi_order_log log;
    assert_ok(twi_file_replace(path, text, sizeof text - 1, &error));
    assert_fails(twi_order_log_read(path, &log, &error), TW_DATA_LOSS, "line 4: a byte of zero");
    twi_order_log_free(&log);
    remove_scratch(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_epoch_is_a_permutation_of_any_number_of_examples),
        cmocka_unit_test(shuffling_favours_no_place),
        cmocka_unit_test(seeds_and_epochs_give_unrelated_orders),
        cmocka_unit_test(distortions_equal_tensorflows),
        cmocka_unit_test(drawn_distortions_cover_their_ranges_and_no_more),
        cmocka_unit_test(pad_crop_flip_shifts_and_mirrors_with_zeros_outside),
        cmocka_unit_test(draws_of_the_records_stream_are_those_given_to_pytorch),
        cmocka_unit_test(borders_are_reflected_without_being_repeated),
        cmocka_unit_test(flips_alternate_by_epoch_and_begin_by_chance),
        cmocka_unit_test(images_of_one_and_two_channels_are_flipped_and_standardised),
        cmocka_unit_test(the_stream_of_a_pipeline_is_what_is_drawn),
        cmocka_unit_test(no_order_ever_exceeds_the_bound),
        cmocka_unit_test(mean_staleness_is_the_number_of_other_towers_under_way),
        cmocka_unit_test(drawn_orders_are_what_their_kinds_say),
        cmocka_unit_test(no_batch_is_lost_or_arrives_twice_however_often_a_run_stops),
        cmocka_unit_test(an_order_is_replayed_from_where_nothing_of_it_is_under_way),
        cmocka_unit_test(a_damaged_order_is_refused_by_line_and_a_torn_end_is_not),
        cmocka_unit_test(an_order_with_a_byte_of_zero_is_refused_by_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

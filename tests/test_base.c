/* The small things everything stands on: arenas, maps, texts, random blocks, rounding, shapes. */
#include "testing.h"

#include "base/arena.h"
#include "base/array.h"
#include "base/histogram.h"
#include "base/map.h"
#include "base/philox.h"
#include "base/text.h"

#include <float.h>
#include <tower/tensor.h>

static void philox_gives_the_published_blocks(void **state)
{
    (void)state;
    twi_philox zeros = {0}, ones = {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}};
    uint32_t block[4];
    twi_philox_next(&zeros, block);
    assert_int_equal(block[0], 0x6627e8d5);
    assert_int_equal(block[3], 0x9b00dbd8);
    twi_philox_next(&ones, block);
    assert_int_equal(block[0], 0x408f276d);
    assert_int_equal(block[3], 0x6d5451fd);
    assert_int_equal(ones.counter[0] | ones.counter[1] | ones.counter[2] | ones.counter[3], 0); /* wrapped */
}

static void philox_uniform_equals_tensorflow_for_equal_seeds(void **state)
{
    (void)state;
    static const float expected[] = {0.6645621f, 0.44100678f, 0.3528825f, 0.46448255f, 0.03366041f};
    twi_philox philox = twi_philox_seed(42, 478163327);
    uint32_t block[4];
    for (int i = 0; i < 5; i++) {
        if (i % 4 == 0)
            twi_philox_next(&philox, block);
        assert_true(fabsf(twi_uniform_float(block[i % 4]) - expected[i]) < 1e-7f);
    }
}

static void arena_gives_zeroed_aligned_memory_of_any_size(void **state)
{
    (void)state;
    twi_arena arena = {0};
    for (size_t size = 1; size < 5000000; size *= 3) {
        char *block = twi_arena_alloc(&arena, size);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 16, 0);
        assert_int_equal(block[0] | block[size - 1], 0);
        memset(block, 0xff, size);
    }
    assert_string_equal(twi_arena_printf(&arena, "%s_%d", "tower", 7), "tower_7");
    twi_arena_free(&arena);
}

static void map_finds_what_was_put_and_replaces(void **state)
{
    (void)state;
    twi_map map = {0};
    char keys[1000][8];
    assert_null(twi_map_get(&map, "absent"));
    for (int i = 0; i < 1000; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i);
        assert_true(twi_map_put(&map, keys[i], &keys[i]));
    }
    for (int i = 0; i < 1000; i++)
        assert_ptr_equal(twi_map_get(&map, keys[i]), &keys[i]);
    assert_true(twi_map_put(&map, "k7", &map));
    assert_int_equal(map.count, 1000);
    assert_ptr_equal(twi_map_get(&map, "k7"), &map);
    twi_map_free(&map);
}

static void text_and_array_grow(void **state)
{
    (void)state;
    twi_text text = {0};
    TWI_ARRAY(int) numbers = {0};
    for (int i = 0; i < 100; i++) {
        twi_text_printf(&text, "%d,", i);
        assert_true(twi_push(&numbers, i));
    }
    assert_int_equal(text.size, 290);
    assert_int_equal(numbers.items[99], 99);
    twi_text_free(&text);
    twi_array_free(&numbers);
}

static void small_floats_round_to_nearest_even(void **state)
{
    (void)state;
    assert_int_equal(tw_float_to_half(1.0f), 0x3c00);
    assert_int_equal(tw_float_to_half(65504.0f), 0x7bff);
    assert_int_equal(tw_float_to_half(65520.0f), 0x7c00);
    assert_int_equal(tw_float_to_half(0x1p-24f), 1);
    assert_int_equal(tw_float_to_half(0x1p-25f), 0);
    assert_int_equal(tw_float_to_half(-0x1.8p-24f), 0x8002);
    assert_int_equal(tw_float_to_bfloat16(1.00390625f), 0x3f80);
    assert_int_equal(tw_float_to_bfloat16(1.01171875f), 0x3f82);
    for (int bits = 0; bits < 0x7c00; bits++) {
        assert_int_equal(tw_float_to_half(tw_half_to_float((uint16_t)bits)), bits);
        assert_int_equal(tw_float_to_half(tw_half_to_float((uint16_t)(bits | 0x8000))), bits | 0x8000);
    }
    assert_true(isnan(tw_half_to_float(tw_float_to_half(NAN))) && isnan(tw_bfloat16_to_float(tw_float_to_bfloat16(NAN))));
}

static void shapes_print_and_compare(void **state)
{
    (void)state;
    char text[64];
    assert_string_equal(tw_shape_text(TW_SHAPE(128, -1, 3), text, sizeof text), "[128,?,3]");
    assert_string_equal(tw_shape_text(TW_SCALAR, text, sizeof text), "[]");
    assert_true(tw_shape_compatible(TW_SHAPE(-1, 3), TW_SHAPE(5, 3)));
    assert_false(tw_shape_compatible(TW_SHAPE(4, 3), TW_SHAPE(5, 3)));
    assert_int_equal(tw_shape_elements(TW_SHAPE(INT64_MAX, 2)), -1);
    assert_int_equal(tw_shape_elements(TW_SHAPE(0, 5)), 0);
    assert_null(tw_tensor_create(TW_FLOAT32, TW_SHAPE(INT64_MAX / 2)));
}

/* The bucket by definition: the first whose limit is above the value; the largest double is in the last. */
static void assert_in_its_bucket(twi_histogram *h, double value)
{
    int bucket = 0;
    while (bucket < TWI_HISTOGRAM_BUCKETS - 1 && h->limits[bucket] <= value)
        bucket++;
    double before = h->buckets[bucket];
    twi_histogram_add(h, value);
    if (h->buckets[bucket] != before + 1)
        fail_msg("%.17g is not in bucket %d", value, bucket);
}

static void values_at_the_edges_of_buckets_are_in_the_right_one(void **state)
{
    (void)state;
    twi_histogram h;
    twi_histogram_start(&h);
    for (int i = 0; i < TWI_HISTOGRAM_BUCKETS; i++) {
        assert_in_its_bucket(&h, h.limits[i]);
        for (int side = -1; side <= 1; side += 2)
            if (isfinite(nextafter(h.limits[i], side * INFINITY)))
                assert_in_its_bucket(&h, nextafter(h.limits[i], side * INFINITY));
    }
    for (int exponent = -45; exponent < 70; exponent++) /* edges of what the search begins with */
        for (int sixteenth = 16; sixteenth < 32; sixteenth++)
            for (int side = -1; side <= 1; side += 2) {
                double value = side * ldexp(sixteenth, exponent);
                assert_in_its_bucket(&h, value);
                assert_in_its_bucket(&h, nextafter(value, 0));
            }
    assert_in_its_bucket(&h, 0);
    assert_in_its_bucket(&h, -0.0);
    assert_in_its_bucket(&h, -DBL_TRUE_MIN);
    assert_true(h.min == -DBL_MAX && h.max == DBL_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_blocks),
        cmocka_unit_test(philox_uniform_equals_tensorflow_for_equal_seeds),
        cmocka_unit_test(arena_gives_zeroed_aligned_memory_of_any_size),
        cmocka_unit_test(map_finds_what_was_put_and_replaces),
        cmocka_unit_test(text_and_array_grow),
        cmocka_unit_test(values_at_the_edges_of_buckets_are_in_the_right_one),
        cmocka_unit_test(small_floats_round_to_nearest_even),
        cmocka_unit_test(shapes_print_and_compare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

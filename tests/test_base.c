/* The small things everything stands on: arenas, maps, texts, random blocks, rounding, shapes; checksums; and how many
 * cores there are to be had. */
#define _GNU_SOURCE /* nftw */
#include "testing.h"

#include "base/arena.h"
#include "base/array.h"
#include "base/cores.h"
#include "base/crc32c.h"
#include "base/histogram.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/philox.h"
#include "base/room.h"
#include "base/sha256.h"
#include "base/text.h"
#include "faulty_files.h"

#include <float.h>
#include <ftw.h>
#include <math.h>
#include <sys/resource.h>
#include <sys/stat.h>
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
    assert_true(isnan(tw_half_to_float(tw_float_to_half(NAN))) &&
                isnan(tw_bfloat16_to_float(tw_float_to_bfloat16(NAN))));
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

/* ---- SHA-256 ----------------------------------------------------------------------------------------------------- */

static void hash_pieces(const char *message, size_t size, size_t piece, char text[TWI_SHA256_TEXT])
{
    twi_sha256 sha;
    twi_sha256_init(&sha);
    for (size_t at = 0; at < size; at += piece)
        twi_sha256_add(&sha, message + at, size - at < piece ? size - at : piece);
    twi_sha256_text(&sha, text);
}

static void published_messages_give_the_published_hashes(void **state)
{
    (void)state;
    static const char *const vectors[][2] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopq"
         "rstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    char text[TWI_SHA256_TEXT];
    for (int i = 0; i < 4; i++) {
        hash_pieces(vectors[i][0], strlen(vectors[i][0]), 1000, text);
        assert_string_equal(text, vectors[i][1]);
    }
    char *million = malloc(1000000);
    memset(million, 'a', 1000000);
    hash_pieces(million, 1000000, 1000000, text);
    assert_string_equal(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

static void hash_does_not_depend_on_how_a_message_is_cut(void **state)
{
    (void)state;
    char message[300], whole[TWI_SHA256_TEXT], cut[TWI_SHA256_TEXT], previous[TWI_SHA256_TEXT] = "";
    for (int i = 0; i < 300; i++)
        message[i] = (char)(i * 37);
    for (size_t size = 0; size < 300; size++) {
        hash_pieces(message, size, 300, whole);
        for (size_t piece = 1; piece < 140; piece += 7) {
            hash_pieces(message, size, piece, cut);
            assert_string_equal(cut, whole);
        }
        assert_string_not_equal(whole, previous);
        memcpy(previous, whole, sizeof previous);
    }
}

/* ---- CRC-32C ----------------------------------------------------------------------------------------------------- */

static void checksums_equal_the_published_ones(void **state)
{
    (void)state;
    uint8_t zeros[32] = {0}, ones[32], rising[32];
    memset(ones, 0xff, sizeof ones);
    for (int i = 0; i < 32; i++)
        rising[i] = (uint8_t)i;
    assert_int_equal(twi_crc32c(0, "", 0), 0);
    assert_int_equal(twi_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(twi_crc32c(0, zeros, 32), 0x8a9136aa);
    assert_int_equal(twi_crc32c(0, ones, 32), 0x62a8ab43);
    assert_int_equal(twi_crc32c(0, rising, 32), 0x46dd794e);
    assert_int_equal(twi_crc32c_by_table(0, rising, 32), 0x46dd794e);
    assert_int_equal(twi_crc32c_mask(0), 0xa282ead8);
    assert_int_equal(twi_crc32c_mask(0xe3069283), 0xc78ab0e5);
}

static void instruction_and_table_agree_for_every_length_and_alignment(void **state)
{
    (void)state;
    uint8_t bytes[128];
    for (int i = 0; i < 128; i++)
        bytes[i] = (uint8_t)(i * 89 + 41);
    for (size_t start = 0; start < 9; start++)
        for (size_t size = 0; start + size <= sizeof bytes; size++)
            assert_int_equal(twi_crc32c(7, bytes + start, size), twi_crc32c_by_table(7, bytes + start, size));
}

static void a_checksum_can_be_continued(void **state)
{
    (void)state;
    for (size_t cut = 0; cut <= 9; cut++) {
        uint32_t first = twi_crc32c(0, "123456789", cut);
        assert_int_equal(twi_crc32c(first, &"123456789"[cut], 9 - cut), 0xe3069283);
        assert_int_equal(twi_crc32c_by_table(first, &"123456789"[cut], 9 - cut), 0xe3069283);
    }
}

/* ---- cores: quotas of control groups, played in a folder --------------------------------------------------------- */

static const char *root; /* of a machine that is played */

static void put(const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = 0;
        mkdir(whole, 0700);
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void begin(const char *groups)
{
    root = scratch_folder();
    put("proc/self/cgroup", groups);
}

static int all_cores(void)
{
    return twi_find_cores("/nowhere").count;
}

static int drop(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

static void assert_cores(int count, bool limited)
{
    twi_cores cores = twi_find_cores(root);
    assert_int_equal(cores.count, count);
    assert_int_equal(cores.limited, limited);
    nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS);
}

static void without_quotas_all_cores_of_the_mask_are_to_be_had(void **state)
{
    (void)state;
    begin("0::/\n");
    put("sys/fs/cgroup/cpu.max", "max 100000\n");
    assert_cores(all_cores(), false);
    begin("4:memory:/\n1:cpu,cpuacct:/\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_cores(all_cores(), false);
    begin("not a line of cgroups\n");
    assert_cores(all_cores(), false);
}

static void a_quota_limits_the_cores(void **state)
{
    (void)state;
    begin("0::/\n"); /* as a container sees itself */
    put("sys/fs/cgroup/cpu.max", "50000 100000\n");
    assert_cores(1, true);
    begin("0::/\n");
    put("sys/fs/cgroup/cpu.max", "9000000 100000\n");
    assert_cores(all_cores() < 90 ? all_cores() : 90, all_cores() > 90);
    begin("3:cpuset:/\n1:cpu,cpuacct:/\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_cores(1, all_cores() > 1);
}

static void quotas_of_the_groups_around_count_too(void **state)
{
    (void)state;
    begin("0::/user.slice/job\n");
    put("sys/fs/cgroup/user.slice/cpu.max", "100000 100000\n");
    put("sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
    assert_cores(1, all_cores() > 1);
    begin("2:cpu:/jobs/7\n");
    put("sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", "100000\n");
    put("sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/cpu/jobs/7/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu/jobs/7/cpu.cfs_period_us", "100000\n");
    assert_cores(1, all_cores() > 1);
}

static void a_group_that_is_seen_from_inside_alone_is_found(void **state)
{
    (void)state;
    begin("1:cpu,cpuacct:/docker/8a7e\n"); /* what the host calls it, which is not there */
    put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_cores(1, all_cores() > 1);
}

static void memory_is_what_the_machine_and_the_groups_around_have_left(void **state)
{
    (void)state;
    begin("0::/job/7\n");
    assert_true(isinf(twi_memory_left(root)));
    put("proc/meminfo", "MemTotal: 64000 kB\nMemFree: 100 kB\nMemAvailable: 3000 kB\nSwapFree: 1000 kB\n");
    assert_true(twi_memory_left(root) == 4000 * 1024.0);
    put("sys/fs/cgroup/job/memory.max", "3000000\n");
    put("sys/fs/cgroup/job/memory.current", "2500000\n");
    put("sys/fs/cgroup/job/memory.stat", "anon 500000\nfile 2000000\nfile_mapped 7\n");
    put("sys/fs/cgroup/job/7/memory.max", "max\n");
    put("sys/fs/cgroup/job/7/memory.current", "1\n");
    assert_true(twi_memory_left(root) == 2500000);
    put("proc/self/cgroup", "5:memory:/job\n4:cpu:/\n");
    put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "3000000\n");
    put("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "4000000\n");
    assert_true(twi_memory_left(root) == 0);
    nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS);
}

static void more_memory_than_there_is_is_not_taken(void **state)
{
    (void)state;
    assert_true(twi_has_room(1));
    assert_false(twi_has_room(SIZE_MAX / 2));
    assert_null(twi_alloc((size_t)1 << 46));
}

static void a_limit_of_the_process_is_seen_before_it_is_met(void **state)
{
    (void)state;
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    none = before;
    none.rlim_cur = 1;
    assert_true(twi_may_have(1 << 20));
    assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
    bool may = twi_may_have(1 << 20);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_false(may);
}

static void who_divides_a_mask_is_bound_and_who_divides_a_quota_is_not(void **state)
{
    (void)state;
    twi_core_share share = twi_share_cores((twi_cores){8, false}, 3, 1);
    assert_int_equal(share.threads, 2);
    assert_int_equal(share.first, 2);
    assert_int_equal(share.bound, 2);
    share = twi_share_cores((twi_cores){8, true}, 3, 1);
    assert_int_equal(share.threads, 2);
    assert_int_equal(share.bound, 0);
    share = twi_share_cores((twi_cores){8, false}, 1, 0);
    assert_int_equal(share.threads, 8);
    assert_int_equal(share.bound, 0);
    share = twi_share_cores((twi_cores){2, false}, 5, 4);
    assert_int_equal(share.threads, 1);
    assert_int_equal(share.bound, 0);
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
        cmocka_unit_test(published_messages_give_the_published_hashes),
        cmocka_unit_test(hash_does_not_depend_on_how_a_message_is_cut),
        cmocka_unit_test(checksums_equal_the_published_ones),
        cmocka_unit_test(instruction_and_table_agree_for_every_length_and_alignment),
        cmocka_unit_test(a_checksum_can_be_continued),
        cmocka_unit_test(without_quotas_all_cores_of_the_mask_are_to_be_had),
        cmocka_unit_test(a_quota_limits_the_cores),
        cmocka_unit_test(quotas_of_the_groups_around_count_too),
        cmocka_unit_test(memory_is_what_the_machine_and_the_groups_around_have_left),
        cmocka_unit_test(more_memory_than_there_is_is_not_taken),
        cmocka_unit_test(a_limit_of_the_process_is_seen_before_it_is_met),
        cmocka_unit_test(a_group_that_is_seen_from_inside_alone_is_found),
        cmocka_unit_test(who_divides_a_mask_is_bound_and_who_divides_a_quota_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

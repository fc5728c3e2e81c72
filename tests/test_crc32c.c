/* CRC-32C: published values, and the instruction against the table. */
#include "testing.h"

#include "base/crc32c.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_equal_the_published_ones),
        cmocka_unit_test(instruction_and_table_agree_for_every_length_and_alignment),
        cmocka_unit_test(a_checksum_can_be_continued),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

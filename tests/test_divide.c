/* Quotients by multiplication (device/cuda/divide.cuh) are those of a division. */
#include "testing.h"

#include "device/cuda/divide.cuh"

static void check(uint32_t divisor, int64_t n)
{
    uint32_t rest, quotient;
    if (n < 0 || n > TWI_MOST_DIVIDED)
        return;
    twi_divider by = twi_divider_of(divisor);
    quotient = twi_divide(by, (uint32_t)n, &rest);
    if (quotient != n / divisor || rest != n % divisor || twi_quotient(by, (uint32_t)n) != quotient)
        fail_msg("%lld by %u gives %u and %u", (long long)n, divisor, quotient, rest);
}

/* Where a quotient that is off by a little would be the wrong whole number: beside multiples of the divisor. */
static void check_edges(uint32_t divisor)
{
    int64_t last = TWI_MOST_DIVIDED / divisor, multiples[] = {0, 1, 2, 3, last / 3, last / 2, last - 1, last};
    for (size_t i = 0; i < sizeof multiples / sizeof *multiples; i++)
        for (int64_t n = multiples[i] * divisor - 1; n <= multiples[i] * divisor + 1; n++)
            check(divisor, n);
    check(divisor, TWI_MOST_DIVIDED);
}

static void small_divisors_and_those_beside_powers_of_two_are_exact(void **state)
{
    (void)state;
    for (uint32_t divisor = 1; divisor < 5000; divisor++)
        check_edges(divisor);
    for (int bit = 12; bit < 31; bit++)
        for (uint32_t divisor = (1u << bit) - 2; divisor <= (1u << bit) + 2; divisor++)
            check_edges(divisor);
    for (uint32_t divisor = TWI_MOST_DIVIDED; divisor > TWI_MOST_DIVIDED - 100; divisor--)
        check_edges(divisor);
}

static void any_number_by_any_divisor_is_exact(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int i = 0; i < 1000000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint32_t divisor = (uint32_t)(random >> 33) >> (random >> 28 & 31);
        check(divisor ? divisor : 1, (int64_t)(random & TWI_MOST_DIVIDED));
        check_edges(divisor ? divisor : 1);
    }
}

static void what_cannot_divide_becomes_one(void **state)
{
    (void)state;
    int64_t none[] = {0, -1, (int64_t)1 << 31, (int64_t)1 << 40};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(twi_quotient(twi_divider_of(none[i]), 12345), 12345);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_divisors_and_those_beside_powers_of_two_are_exact),
        cmocka_unit_test(any_number_by_any_divisor_is_exact),
        cmocka_unit_test(what_cannot_divide_becomes_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

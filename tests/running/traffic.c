/* traffic.c - who comes after whom by the memory that is touched: against every pair of works, looked at one by one. */
#include "parts.h"
#include "testing.h"

#include "run/traffic.h"

#include <stdbool.h>

enum { WORKS = 40, TOUCHES = 3, ADDRESSES = 60 };

typedef struct touch {
    int begin, end;
    bool writes;
} touch;

static bool meet(const touch *a, const touch *b)
{
    return a->begin < b->end && b->begin < a->end && (a->writes || b->writes);
}

static bool must_wait(touch works[WORKS][TOUCHES], int work, int before)
{
    for (int i = 0; i < TOUCHES; i++)
        for (int k = 0; k < TOUCHES; k++)
            if (meet(&works[work][i], &works[before][k]))
                return true;
    return false;
}

static uint32_t next(uint32_t *state)
{
    return *state = *state * 1664525u + 1013904223u, *state >> 8;
}

/* waits[a][b]: a comes after b, by what was said of a or of those between. */
static void check(uint32_t seed)
{
    static char memory[ADDRESSES];
    touch works[WORKS][TOUCHES];
    bool waits[WORKS][WORKS] = {{false}};
    twi_traffic *t = twi_traffic_create();
    assert_non_null(t);
    for (int w = 0; w < WORKS; w++) {
        const int *after;
        int count;
        for (int i = 0; i < TOUCHES; i++) {
            int begin = (int)(next(&seed) % ADDRESSES), length = 1 + (int)(next(&seed) % 6);
            int end = begin + length < ADDRESSES ? begin + length : ADDRESSES;
            works[w][i] = (touch){begin, end, next(&seed) % 3 == 0};
            assert_int_equal(twi_traffic_touch(t, memory + begin, (size_t)(end - begin), works[w][i].writes), TW_OK);
        }
        twi_traffic_end_work(t, &after, &count);
        for (int i = 0; i < count; i++) {
            assert_true(after[i] >= 0 && after[i] < w);
            assert_true(must_wait(works, w, after[i])); /* nobody waits for nothing */
            for (int k = 0; k < i; k++)
                assert_int_not_equal(after[i], after[k]);
            waits[w][after[i]] = true;
            for (int k = 0; k < w; k++)
                waits[w][k] |= waits[after[i]][k];
        }
        for (int before = 0; before < w; before++)
            assert_true(waits[w][before] || !must_wait(works, w, before));
    }
    twi_traffic_destroy(t);
}

static void works_come_after_those_that_they_meet_in_memory(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 300; seed++)
        check(seed);
}

static void works_that_only_read_are_side_by_side(void **state)
{
    (void)state;
    char memory[64];
    const int *after;
    int count;
    twi_traffic *t = twi_traffic_create();
    assert_int_equal(twi_traffic_touch(t, memory, 64, true), TW_OK);
    twi_traffic_end_work(t, &after, &count);
    assert_int_equal(count, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(twi_traffic_touch(t, memory + 8 * i, 40, false), TW_OK);
        assert_int_equal(twi_traffic_touch(t, NULL, 0, true), TW_OK);
        twi_traffic_end_work(t, &after, &count);
        assert_true(count == 1 && after[0] == 0);
    }
    assert_int_equal(twi_traffic_touch(t, memory + 16, 1, true), TW_OK);
    twi_traffic_end_work(t, &after, &count);
    assert_int_equal(count, 3);
    twi_traffic_destroy(t);
}

int run_traffic(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(works_come_after_those_that_they_meet_in_memory),
        cmocka_unit_test(works_that_only_read_are_side_by_side),
    };
    return cmocka_run_group_tests_name("traffic", tests, NULL, NULL);
}

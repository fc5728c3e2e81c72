/* test_delays.c - a delay that is put into a step shows up in the right part of it, within 5 %. label: slow, and in
 * need of a machine that is not busy with something else: it depends on time. */
#include "program.h"
#include "small_training.h"

enum { RUNS = 7 };
#define DELAY 0.4 /* seconds: long against the step and against what disturbs it */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of each part over some runs. */
static tw_waterfall usual_waterfall(training *t)
{
    tw_error error = {0};
    tw_waterfall runs[RUNS], usual = {0};
    for (int i = 0; i < RUNS; i++) {
        assert_ok(tw_session_run(t->s, NULL, 0, &t->step, 1, NULL, &error));
        assert_ok(tw_session_waterfall(t->s, t->names, TOWERS, &runs[i], &error));
        double sum = 0;
        for (int k = 0; k < TW_TIME_KINDS; k++) {
            assert_true(runs[i].seconds[k] >= -1e-9);
            sum += runs[i].seconds[k];
        }
        assert_true(fabs(sum - runs[i].total) < 1e-9);
    }
    for (int k = 0; k < TW_TIME_KINDS; k++) {
        double values[RUNS];
        for (int i = 0; i < RUNS; i++)
            values[i] = runs[i].seconds[k];
        qsort(values, RUNS, sizeof *values, by_size);
        usual.seconds[k] = values[RUNS / 2];
    }
    return usual;
}

/* The delay adds itself, within 5 %, to its own part and to no other. A machine that is busy with something else may
 * disturb it, so it has three tries. */
static void expect_delay_at(training *t, const tw_delay *delays, int count, tw_time_kind part)
{
    tw_error error = {0};
    for (int tries = 1;; tries++) {
        bool good = true;
        tw_waterfall before = usual_waterfall(t), now;
        for (int i = 0; i < count; i++)
            assert_ok(tw_session_delay(t->s, &delays[i], &error));
        now = usual_waterfall(t);
        for (int i = 0; i < count; i++) {
            tw_delay none = delays[i];
            none.seconds = 0;
            assert_ok(tw_session_delay(t->s, &none, &error));
        }
        for (int k = 0; k < TW_TIME_KINDS; k++) {
            double expected = k == (int)part ? DELAY : 0, more = now.seconds[k] - before.seconds[k];
            good = good && fabs(more - expected) < 0.05 * DELAY;
            if (tries == 3 && !good)
                fail_msg("%s grew by %.2f ms instead of %.2f", tw_time_kind_name((tw_time_kind)k), more * 1e3,
                         expected * 1e3);
        }
        if (good)
            return;
    }
}

static void a_delay_shows_up_where_it_was_put_within_five_percent(void **state)
{
    (void)state;
    training t = start();
    const char *first = t.names[0], *second = t.names[1];
    tw_delay everywhere[] = {{TW_TIME_COMPUTE, first, 0, DELAY}, {TW_TIME_COMPUTE, second, 1, DELAY}};
    expect_delay_at(&t, everywhere, 2, TW_TIME_COMPUTE);
    expect_delay_at(&t, &(tw_delay){TW_TIME_COMPUTE, second, 1, DELAY}, 1, TW_TIME_IMBALANCE);
    expect_delay_at(&t, &(tw_delay){TW_TIME_REDUCTION, first, 0, DELAY}, 1, TW_TIME_REDUCTION);
    expect_delay_at(&t, &(tw_delay){TW_TIME_COPIES, second, 1, DELAY}, 1, TW_TIME_COPIES);
    expect_delay_at(&t, &(tw_delay){TW_TIME_INPUT, first, 1, DELAY}, 1, TW_TIME_INPUT);
    expect_delay_at(&t, &(tw_delay){TW_TIME_LAUNCH, second, 1, DELAY}, 1, TW_TIME_LAUNCH);
    stop(&t);
}

/* ---- the same by tower bench ------------------------------------------------------------------------------------ */

static void injected_delay_shows_up_where_it_was_put(void **state)
{
    (void)state;
    static const struct {
        const char *delay, *part;
    } delays[] = {{"kind=compute", "compute"},          {"tower=1,kind=compute", "imbalance"},
                  {"tower=0,kind=reduce", "reduction"}, {"tower=1,kind=copy", "copies"},
                  {"tower=1,kind=input", "input"},      {"tower=1,kind=launch", "launch"}};
    static const char run[] =
        "$T bench --model mnist --batch_size 2 --num_warmup_batches 2 --num_batches 4 --virtual-gpus 2 "
        "--num_gpus 2 --waterfall --format json";
    for (size_t i = 0; i < sizeof delays / sizeof *delays; i++)
        for (int tries = 1;; tries++) { /* the machine may be busy with something else */
            assert_runs(0, "%s", run);
            double before = number_behind(output, delays[i].part);
            assert_runs(0, "%s --inject %s,ms=300", run, delays[i].delay);
            double more = number_behind(output, delays[i].part) - before;
            if (fabs(more - 0.3) < 0.05 * 0.3)
                break;
            if (tries == 4)
                fail_msg("%s: %s grew by %.1f ms instead of 300", delays[i].delay, delays[i].part, more * 1e3);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_delay_shows_up_where_it_was_put_within_five_percent),
        cmocka_unit_test(injected_delay_shows_up_where_it_was_put),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}

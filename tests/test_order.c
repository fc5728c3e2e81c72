/* test_order.c - when variables are read and written: a read is one value, whoever looks at it and whenever. */
#include "testing.h"

#include <tower/ops.h>
#include <tower/session.h>

typedef struct fixture {
    tw_graph *g;
    tw_devices *devices;
    tw_session *s;
} fixture;

/* One CPU and two virtual GPUs. */
static fixture open_fixture(void)
{
    fixture f = {.g = tw_graph_create()};
    tw_error error = {0};
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .virtual_gpus = 2}, &f.devices, &error));
    return f;
}

static tw_variable *variable(fixture *f, const char *name, float value)
{
    return tw_get_variable(f->g, name, TW_FLOAT32, TW_SHAPE(2), (tw_initializer){.a = value});
}

/* With "all" nothing is folded, merged or fused: what the test builds is what runs. */
static void start(fixture *f, const char *disable)
{
    tw_error error = {0};
    tw_output initialize = tw_initialize_variables(f->g);
    assert_string_equal(tw_graph_message(f->g), "");
    assert_ok(tw_session_create(f->g, &(tw_session_options){.devices = f->devices, .disable = disable}, &f->s, &error));
    assert_ok(tw_session_run(f->s, NULL, 0, &initialize, 1, NULL, &error));
}

static void run(fixture *f, const tw_output *fetches, int count)
{
    tw_error error = {0};
    assert_ok(tw_session_run(f->s, NULL, 0, fetches, count, NULL, &error));
}

static void assert_value(fixture *f, const tw_variable *v, float expected)
{
    tw_error error = {0};
    tw_tensor *value = NULL;
    assert_ok(tw_session_get_variable(f->s, v, &value, &error));
    assert_true(tw_tensor_value(value, 0) == (double)expected && tw_tensor_value(value, 1) == (double)expected);
    tw_tensor_release(value);
}

static void close_fixture(fixture *f)
{
    tw_session_destroy(f->s);
    tw_devices_destroy(f->devices);
    tw_graph_destroy(f->g);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static void two_updates_by_one_read_both_use_the_value_read(void **state)
{
    (void)state;
    fixture f = open_fixture();
    tw_variable *v = variable(&f, "v", 3);
    tw_output read = tw_variable_read(f.g, v);
    tw_output updates[] = {tw_assign_add(f.g, v->handle, read), tw_assign_sub(f.g, v->handle, read),
                           tw_assign_add(f.g, v->handle, read)};
    start(&f, "all");
    run(&f, updates, 3);
    assert_value(&f, v, 6); /* 3 + 3 - 3 + 3, in any order */
    close_fixture(&f);
}

static void an_update_by_its_own_read_comes_after_everybody_elses_look(void **state)
{
    (void)state;
    fixture f = open_fixture();
    tw_variable *v = variable(&f, "v", 3), *w = variable(&f, "w", 0);
    tw_output read = tw_variable_read(f.g, v), far;
    tw_output update = tw_assign_add(f.g, v->handle, read); /* built first */
    TW_DEVICE(f.g, "/gpu:1")
        far = tw_mul(f.g, read, tw_scalar(f.g, 2));
    tw_output updates[] = {update, tw_assign(f.g, w->handle, far)};
    start(&f, "all");
    run(&f, updates, 2);
    assert_value(&f, v, 6);
    assert_value(&f, w, 6);
    close_fixture(&f);
}

static void variables_change_places(void **state)
{
    (void)state;
    fixture f = open_fixture();
    tw_variable *a = variable(&f, "a", 1), *b = variable(&f, "b", 2), *c;
    TW_DEVICE(f.g, "/gpu:0")
        c = variable(&f, "c", 3);
    tw_output read_a = tw_variable_read(f.g, a), read_b = tw_variable_read(f.g, b), read_c = tw_variable_read(f.g, c);
    tw_output updates[] = {tw_assign(f.g, a->handle, read_b), tw_assign(f.g, b->handle, read_c),
                           tw_assign(f.g, c->handle, read_a)};
    start(&f, "all");
    run(&f, updates, 3);
    assert_value(&f, a, 2);
    assert_value(&f, b, 3);
    assert_value(&f, c, 1);
    close_fixture(&f);
}

static void an_old_value_that_is_wanted_after_the_write_is_kept(void **state)
{
    (void)state;
    fixture f = open_fixture();
    tw_variable *v = variable(&f, "v", 5), *w = variable(&f, "w", 0);
    tw_output old = tw_variable_read(f.g, v), write = tw_assign(f.g, v->handle, tw_add(f.g, old, old)), late, new;
    TW_CONTROL(f.g, write) {
        late = tw_add(f.g, old, tw_scalar(f.g, 0));
        new = tw_variable_read(f.g, v);
    }
    tw_output update = tw_assign(f.g, w->handle, tw_sub(f.g, new, late));
    start(&f, "all");
    run(&f, &update, 1);
    assert_value(&f, v, 10);
    assert_value(&f, w, 5);
    close_fixture(&f);
}

/* Whatever the rounds look at is not written while they do, although the write was built first. */
static void a_write_comes_after_the_rounds_that_read_the_variable(void **state)
{
    (void)state;
    fixture f = open_fixture();
    tw_error error = {0};
    tw_variable *v = variable(&f, "v", 1);
    tw_output write = tw_assign_add(f.g, v->handle, tw_constant_floats(f.g, TW_SHAPE(2), (float[]){1, 1}));
    tw_output sum[] = {tw_constant_floats(f.g, TW_SHAPE(2), (float[]){0, 0})};
    TW_LOOP(f.g, sum, 1) {
        tw_while(f.g, tw_less(f.g, tw_round_number(f.g), tw_scalar_of(f.g, TW_INT32, 3)));
        sum[0] = tw_add(f.g, sum[0], tw_variable_read(f.g, v));
    }
    start(&f, NULL);
    for (int step = 0; step < 3; step++) {
        tw_tensor *results[2] = {NULL};
        assert_ok(tw_session_run(f.s, NULL, 0, (tw_output[]){write, sum[0]}, 2, results, &error));
        assert_true(tw_tensor_value(results[1], 0) == 3 * (step + 1));
        tw_tensor_release(results[0]);
        tw_tensor_release(results[1]);
    }
    assert_value(&f, v, 4);
    close_fixture(&f);
}

/* ---- random graphs ----------------------------------------------------------------------------------------------- */

enum { GRAPHS = 150, READS = 4, LOOKS = 3, WRITES = 2, VARIABLES = 2 };

static unsigned draw(unsigned *seed, unsigned below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

/* Reads, several looks at each from any device, some at the read before, too, and writes between them, with edges of
 * control at random. The looks at one read must agree: their differences are fetched and are 0. */
static int build_random(fixture *f, unsigned *seed, tw_output *fetches)
{
    tw_variable *variables[VARIABLES];
    tw_output made[READS * (LOOKS + WRITES)], looks[READS][LOOKS], last = {0};
    int count = 0, fetched = 0;
    for (int i = 0; i < VARIABLES; i++)
        TW_DEVICE(f->g, draw(seed, 2) ? "/gpu:0" : "/cpu:0")
            variables[i] = variable(f, i ? "b" : "a", (float)i + 1);
    for (int r = 0; r < READS; r++) {
        tw_output read;
        bool bound = count && draw(seed, 2), of_two = r > 0 && draw(seed, 2);
        if (bound)
            tw_enter_control(f->g, made[draw(seed, (unsigned)count)]);
        read = tw_variable_read(f->g, variables[draw(seed, VARIABLES)]);
        if (bound)
            tw_leave_control(f->g);
        for (int l = 0; l < LOOKS; l++) {
            static const char *const devices[] = {"/cpu:0", "/gpu:0", "/gpu:1"};
            bool late = count && draw(seed, 2);
            if (late)
                tw_enter_control(f->g, made[draw(seed, (unsigned)count)]);
            TW_DEVICE(f->g, "%s", devices[draw(seed, 3)])
                looks[r][l] = of_two ? tw_add(f->g, last, read) : tw_mul(f->g, read, tw_scalar(f->g, 1));
            if (late)
                tw_leave_control(f->g);
            made[count++] = looks[r][l];
        }
        for (int w = 0; w < WRITES; w++) {
            tw_output value = draw(seed, 2) ? read : looks[draw(seed, (unsigned)r + 1)][draw(seed, LOOKS)];
            tw_output handle = variables[draw(seed, VARIABLES)]->handle;
            made[count] = draw(seed, 3) ? tw_assign_add(f->g, handle, value) : tw_assign(f->g, handle, value);
            fetches[fetched++] = made[count++];
        }
        last = read;
    }
    for (int r = 0; r < READS; r++)
        for (int l = 1; l < LOOKS; l++)
            fetches[fetched++] = tw_sub(f->g, looks[r][0], looks[r][l]);
    return fetched;
}

static void all_looks_at_a_read_agree_in_any_graph(void **state)
{
    (void)state;
    enum { MOST = READS * (LOOKS + WRITES) };
    for (unsigned number = 0; number < GRAPHS; number++) {
        unsigned seed = number;
        tw_error error = {0};
        tw_output fetches[MOST];
        tw_tensor *results[MOST] = {0};
        fixture f = open_fixture();
        int count = build_random(&f, &seed, fetches);
        start(&f, number % 3 == 0 ? "all" : number % 3 == 1 ? "fold,merge" : NULL);
        for (int step = 0; step < 3; step++) {
            if (tw_session_run(f.s, NULL, 0, fetches, count, results, &error) != TW_OK)
                fail_msg("graph %u: %s", number, error.message);
            for (int i = 0; i < count; i++)
                if (results[i] && (tw_tensor_value(results[i], 0) != 0 || tw_tensor_value(results[i], 1) != 0))
                    fail_msg("graph %u: fetch %d is %g in step %d", number, i, tw_tensor_value(results[i], 0), step);
        }
        for (int i = 0; i < count; i++)
            tw_tensor_release(results[i]);
        close_fixture(&f);
    }
}

/* Another task sends what crosses in the order of the receiver's list: what is made early must not wait behind what is
 * made late. */
static void what_crosses_for_one_user_comes_in_the_order_in_which_it_is_made(void **state)
{
    (void)state;
    fixture f = open_fixture();
    tw_error error = {0};
    tw_timeline *timeline = NULL;
    tw_output parts[2], sum;
    TW_DEVICE(f.g, "/gpu:1")
    {
        tw_output x = tw_variable_read(f.g, variable(&f, "v", 1));
        parts[1] = tw_square(tw_name(f.g, "early"), x);
        parts[0] = tw_square(tw_name(f.g, "late"), tw_exp(f.g, tw_exp(f.g, x)));
    }
    TW_DEVICE(f.g, "/gpu:0")
        sum = tw_add_n(f.g, parts, 2);
    start(&f, "all");
    assert_ok(tw_session_set_trace(f.s, true, &error));
    sum.index = -1; /* it shall run, and gives nothing */
    run(&f, &sum, 1);
    assert_ok(tw_session_timeline(f.s, &timeline, &error));
    int early = -1, late = -1;
    for (int i = 0; i < timeline->num_spans; i++) {
        if (strncmp(timeline->spans[i].node, "early/copy", 10) == 0)
            early = i;
        if (strncmp(timeline->spans[i].node, "late/copy", 9) == 0)
            late = i;
    }
    assert_true(early >= 0 && early < late);
    tw_timeline_destroy(timeline);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_updates_by_one_read_both_use_the_value_read),
        cmocka_unit_test(an_update_by_its_own_read_comes_after_everybody_elses_look),
        cmocka_unit_test(variables_change_places),
        cmocka_unit_test(an_old_value_that_is_wanted_after_the_write_is_kept),
        cmocka_unit_test(a_write_comes_after_the_rounds_that_read_the_variable),
        cmocka_unit_test(all_looks_at_a_read_agree_in_any_graph),
        cmocka_unit_test(what_crosses_for_one_user_comes_in_the_order_in_which_it_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Local SGD: groups of towers that train copies of their own, which become their mean every few steps: what that
 * computes, that bits do not depend on devices, what checkpoints have, and what is refused. label: threads */
#include "modes_testing.h"
#include "faulty_memory.h"

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

static tw_trainer_options local_options(const tw_model *model, int towers, int on, int groups, int64_t every)
{
    tw_trainer_options options = options_for(model, towers, on, (tw_variable_options){.update = TW_UPDATE_LOCAL});
    options.size = sizeof options;
    options.groups = groups;
    options.meet_every = every;
    return options;
}

static tw_trainer *start_local(const tw_model *model, int towers, int on, int groups, int64_t every)
{
    return start_with(local_options(model, towers, on, groups, every));
}

static const char *of_group(int group, const char *name)
{
    static char text[2][128];
    static int turn;
    char *to = text[turn++ % 2];
    snprintf(to, sizeof text[0], "group_%d/%s", group, name);
    return group ? to : name;
}

/* What group number `group` has as `name`; to be released. */
static tw_tensor *value_in(tw_trainer *trainer, int group, const char *name)
{
    return value_of(trainer, of_group(group, name));
}

static bool are_same(const tw_tensor *a, const tw_tensor *b)
{
    return memcmp(tw_tensor_data((tw_tensor *)a), tw_tensor_data((tw_tensor *)b), tw_tensor_bytes(a)) == 0;
}

/* The variable of the trainer's group is what the other trainer's is. */
static bool is_in_both(tw_trainer *a, tw_trainer *b, int group, const char *name)
{
    tw_tensor *x = value_in(a, group, name), *y = value_in(b, group, name);
    bool same = are_same(x, y);
    tw_tensor_release(x);
    tw_tensor_release(y);
    return same;
}

static bool groups_agree(tw_trainer *trainer, const char *name)
{
    tw_tensor *first = value_in(trainer, 0, name), *second = value_in(trainer, 1, name);
    bool same = are_same(first, second);
    tw_tensor_release(first);
    tw_tensor_release(second);
    return same;
}

/* The tensor of the latest checkpoint in the folder; NULL: it has none of that name. */
static tw_tensor *saved_value(const char *folder, const char *name)
{
    tw_checkpoint *checkpoint;
    tw_tensor *value = NULL;
    assert_ok(tw_checkpoint_open(folder, &checkpoint, &error));
    if (tw_checkpoint_find(checkpoint, name) >= 0)
        assert_ok(tw_checkpoint_read(checkpoint, name, &value, &error));
    tw_checkpoint_close(checkpoint);
    return value;
}

static tw_trainer *resume(const char *folder, const tw_model *model, int on, tw_variable_update update)
{
    tw_trainer_options options = options_for(model, 0, on, (tw_variable_options){.update = update});
    options.resume_from = folder;
    return start_with(options);
}

/* ---- bits -------------------------------------------------------------------------------------------------------- */

static void one_group_gives_the_bits_of_a_parameter_server(void **state)
{
    (void)state;
    char expected[DIGEST];
    tw_trainer *server = start(&rich, 5, 1, (tw_variable_options){.update = TW_UPDATE_PARAMETER_SERVER});
    step(server, 3);
    strcpy(expected, digest(server));
    tw_trainer_destroy(server);
    for (int i = 0; i < COUNTS; i++) {
        tw_trainer *trainer = start_local(&rich, 5, counts[i], 1, 2);
        step(trainer, 3);
        assert_string_equal(digest(trainer), expected);
        tw_trainer_destroy(trainer);
    }
}

/* Groups of unequal size, meetings before the last step and at it, shares that are unequal and equal. */
static void groups_give_equal_bits_on_1_2_3_5_and_8_devices(void **state)
{
    (void)state;
    static const struct {
        int groups, every, global;
    } cases[] = {{2, 2, 0}, {3, 3, 13}, {5, 1, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char expected[DIGEST] = "";
        for (int i = 0; i < COUNTS; i++) {
            tw_trainer_options options = local_options(&rich, 5, counts[i], cases[c].groups, cases[c].every);
            options.global_batch = cases[c].global;
            tw_trainer *trainer = start_with(options);
            step(trainer, 3);
            const char *found = digest(trainer);
            if (!*expected)
                strcpy(expected, found);
            assert_string_equal(found, expected);
            tw_trainer_destroy(trainer);
        }
    }
}

static void steps_in_a_row_meet_as_single_steps_do(void **state)
{
    (void)state;
    char expected[DIGEST];
    tw_trainer_step_result result;
    tw_trainer *one = start_local(&rich, 3, 2, 3, 2), *row = start_local(&rich, 3, 2, 3, 2);
    step(one, 5);
    assert_ok(tw_trainer_run_steps(row, 5, &result, &error));
    assert_int_equal(result.step, 4);
    strcpy(expected, digest(one));
    assert_string_equal(digest(row), expected);
    tw_trainer_destroy(one);
    tw_trainer_destroy(row);
}

static void neighbours_share_a_device(void **state)
{
    (void)state;
    tw_trainer *trainer = start_local(&plain, 4, 2, 2, 1);
    for (int i = 0; i < 4; i++)
        assert_message(tw_trainer_tower_device(trainer, i), i < 2 ? "GPU:0" : "GPU:1");
    tw_trainer_destroy(trainer);
}

static void no_step_allocates_from_the_second_meeting_on(void **state)
{
    (void)state;
    tw_trainer *trainer = start_local(&rich, 3, 2, 3, 2);
    step(trainer, 4);
    int64_t before = tw_allocation_count();
    step(trainer, 4);
    assert_int_equal(tw_allocation_count(), before);
    tw_trainer_destroy(trainer);
}

/* ---- what is computed -------------------------------------------------------------------------------------------- */

/* Of two trainers with the same steps one meets after the second: what it has then is the mean of what the other
 * has. */
static void copies_become_their_mean_and_slots_stay(void **state)
{
    (void)state;
    tw_trainer *met = start_local(&rich, 4, 2, 2, 2), *apart = start_local(&rich, 4, 2, 2, 3);
    step(met, 1);
    step(apart, 1);
    assert_false(groups_agree(met, "hidden/kernel"));
    step(met, 1);
    step(apart, 1);
    assert_true(groups_agree(met, "hidden/kernel"));
    assert_false(groups_agree(apart, "hidden/kernel"));
    for (int k = 0; k < 2; k++) {
        assert_true(is_in_both(met, apart, k, "hidden/kernel/Adam"));
        assert_true(is_in_both(met, apart, k, "hidden/kernel/ExponentialMovingAverage"));
    }
    assert_false(groups_agree(met, "hidden/kernel/Adam"));
    tw_tensor *mean = value_in(met, 0, "hidden/kernel"), *a = value_in(apart, 0, "hidden/kernel"),
              *b = value_in(apart, 1, "hidden/kernel");
    for (int64_t i = 0; i < tw_tensor_elements(mean); i++)
        assert_true(fabs(tw_tensor_value(mean, i) - (tw_tensor_value(a, i) + tw_tensor_value(b, i)) / 2) < 1e-7);
    tw_tensor_release(mean);
    tw_tensor_release(a);
    tw_tensor_release(b);
    tw_trainer_destroy(met);
    tw_trainer_destroy(apart);
}

/* A group's copy is what its towers alone would have trained: towers 2 and 3 are no part of group 0's numbers. */
static void a_group_trains_as_its_towers_would_alone(void **state)
{
    (void)state;
    tw_trainer *groups = start_local(&plain, 4, 2, 2, 100);
    tw_trainer *towers = start(&plain, 4, 2, (tw_variable_options){.update = TW_UPDATE_INDEPENDENT});
    tw_tensor *begin = value_of(towers, "hidden/kernel");
    step(groups, 1);
    step(towers, 1);
    for (int k = 0; k < 2; k++) {
        char first[64], second[64];
        snprintf(first, sizeof first, k ? "copy_2/hidden/kernel" : "hidden/kernel");
        snprintf(second, sizeof second, k ? "copy_3/hidden/kernel" : "copy_1/hidden/kernel");
        tw_tensor *found = value_in(groups, k, "hidden/kernel"), *a = value_of(towers, first),
                  *b = value_of(towers, second);
        for (int64_t i = 0; i < tw_tensor_elements(found); i++) /* one step of gradient descent is linear */
            assert_true(fabs(tw_tensor_value(found, i) - (tw_tensor_value(a, i) + tw_tensor_value(b, i)) / 2) < 1e-6);
        assert_false(are_same(found, begin));
        tw_tensor_release(found);
        tw_tensor_release(a);
        tw_tensor_release(b);
    }
    tw_tensor_release(begin);
    tw_trainer_destroy(groups);
    tw_trainer_destroy(towers);
}

static void meeting_in_every_step_of_gradient_descent_is_replicated_but_for_rounding(void **state)
{
    (void)state;
    for (int groups = 2; groups <= 5; groups++)
        for (int global = 10; global <= 13; global += 3) { /* equal shares and unequal ones */
            tw_trainer_options options = local_options(&plain, 5, 3, groups, 1),
                               all = options_for(&plain, 5, 3, (tw_variable_options){.update = TW_UPDATE_REPLICATED});
            options.global_batch = all.global_batch = global;
            tw_trainer *local = start_with(options), *replicated = start_with(all);
            for (int i = 0; i < 3; i++)
                assert_true(fabs(step(local, 1) - step(replicated, 1)) < 1e-5);
            for (int i = 0; i < NUM_PLAIN; i++) {
                tw_tensor *a = value_of(local, plain_names[i]), *b = value_of(replicated, plain_names[i]);
                assert_floats_near(tw_tensor_data(a), tw_tensor_data(b), (size_t)tw_tensor_elements(a), 1e-6);
                tw_tensor_release(a);
                tw_tensor_release(b);
            }
            tw_trainer_destroy(local);
            tw_trainer_destroy(replicated);
        }
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

/* Saved between two meetings, and gone on from on another number of devices without being told anything. */
static void a_run_resumes_to_the_bit_and_meets_when_it_would_have(void **state)
{
    (void)state;
    for (int at = 1; at < 5; at++) {
        char whole[DIGEST];
        int64_t every;
        tw_trainer *one = start_local(&rich, 5, 3, 2, 3), *part = start_local(&rich, 5, 2, 2, 3);
        step(one, 6);
        strcpy(whole, digest(one));
        step(part, at);
        const char *folder = scratch_folder();
        assert_ok(tw_trainer_save(part, folder, 0, &error));
        tw_trainer_destroy(part);
        tw_trainer *rest = resume(folder, &rich, 5, TW_UPDATE_DEFAULT);
        assert_int_equal(tw_trainer_groups(rest, &every), 2);
        assert_int_equal(every, 3);
        step(rest, 6 - at);
        assert_string_equal(digest(rest), whole);
        tw_trainer_destroy(one);
        tw_trainer_destroy(rest);
        remove_scratch(folder);
    }
}

static void assert_is_mean_of_groups(const char *folder, const char *name)
{
    char group[2][160];
    snprintf(group[0], sizeof group[0], "group_0/%s", name);
    snprintf(group[1], sizeof group[1], "group_1/%s", name);
    tw_tensor *mean = saved_value(folder, name), *a = saved_value(folder, group[0]), *b = saved_value(folder, group[1]);
    assert_true(mean && a && b);
    assert_false(are_same(a, b));
    for (int64_t i = 0; i < tw_tensor_elements(mean); i++) /* three towers and two of two examples each */
        assert_float_equal(tw_tensor_value(mean, i),
                           (float)((6 * tw_tensor_value(a, i) + 4 * tw_tensor_value(b, i)) / 10), 0);
    tw_tensor_release(mean);
    tw_tensor_release(a);
    tw_tensor_release(b);
}

static void a_checkpoint_has_all_copies_and_under_the_plain_names_their_mean(void **state)
{
    (void)state;
    const char *folder = scratch_folder();
    tw_trainer *trainer = start_local(&rich, 5, 2, 2, 3);
    step(trainer, 2);
    assert_ok(tw_trainer_save(trainer, folder, 0, &error));
    tw_trainer_destroy(trainer);
    assert_is_mean_of_groups(folder, "hidden/kernel");
    assert_is_mean_of_groups(folder, "hidden/kernel/Adam");
    assert_is_mean_of_groups(folder, "hidden/kernel/ExponentialMovingAverage");
    assert_null(saved_value(folder, "group_0/norm/moving_mean"));
    assert_null(saved_value(folder, "group_1/norm/moving_mean"));
    remove_scratch(folder);
}

/* After a meeting all copies are the same, and so is their mean. */
static void the_mean_of_equal_copies_is_what_they_are(void **state)
{
    (void)state;
    const char *folder = scratch_folder();
    tw_trainer *trainer = start_local(&rich, 3, 2, 3, 2);
    step(trainer, 2);
    assert_ok(tw_trainer_save(trainer, folder, 0, &error));
    tw_tensor *mean = saved_value(folder, "hidden/kernel");
    for (int k = 0; k < 3; k++)
        assert_same(trainer, of_group(k, "hidden/kernel"), mean);
    tw_tensor_release(mean);
    tw_trainer_destroy(trainer);
    remove_scratch(folder);
}

static void other_modes_go_on_from_the_mean_and_groups_from_what_others_have(void **state)
{
    (void)state;
    const char *folder = scratch_folder(), *after = scratch_folder();
    tw_trainer *trainer = start_local(&rich, 3, 2, 3, 5);
    step(trainer, 2);
    assert_ok(tw_trainer_save(trainer, folder, 0, &error));
    tw_trainer_destroy(trainer);
    tw_tensor *mean = saved_value(folder, "hidden/kernel"), *slot = saved_value(folder, "hidden/kernel/Adam");
    tw_trainer *server = resume(folder, &rich, 2, TW_UPDATE_PARAMETER_SERVER);
    assert_int_equal(tw_trainer_groups(server, NULL), 0);
    assert_same(server, "hidden/kernel", mean);
    assert_same(server, "hidden/kernel/Adam", slot);
    assert_ok(tw_trainer_save(server, after, 0, &error));
    tw_trainer_destroy(server);
    assert_null(saved_value(after, "group_1/hidden/kernel"));
    assert_null(saved_value(after, "tower/groups"));
    tw_trainer *again = resume(after, &rich, 2, TW_UPDATE_LOCAL);
    assert_int_equal(tw_trainer_groups(again, NULL), 3);
    for (int k = 0; k < 3; k++) {
        assert_same(again, of_group(k, "hidden/kernel"), mean);
        assert_same(again, of_group(k, "hidden/kernel/Adam"), slot);
    }
    step(again, 1);
    tw_trainer_destroy(again);
    tw_tensor_release(mean);
    tw_tensor_release(slot);
    remove_scratch(folder);
    remove_scratch(after);
}

static void another_number_of_steps_between_meetings_is_taken_and_said(void **state)
{
    (void)state;
    const char *folder = scratch_folder();
    int64_t every;
    tw_trainer *trainer = start_local(&plain, 2, 2, 2, 4);
    step(trainer, 2);
    assert_ok(tw_trainer_save(trainer, folder, 0, &error));
    tw_trainer_destroy(trainer);
    tw_trainer_options options = local_options(&plain, 0, 2, 0, 3);
    options.resume_from = folder;
    tw_trainer *again = start_with(options);
    assert_int_equal(tw_trainer_groups(again, &every), 2);
    assert_int_equal(every, 3);
    assert_message(tw_trainer_changes(again), "steps between meetings 3 instead of 4");
    assert_false(groups_agree(again, "hidden/kernel"));
    step(again, 1);
    assert_true(groups_agree(again, "hidden/kernel")); /* after the third step of all */
    tw_trainer_destroy(again);
    options.groups = 1;
    assert_fails(tw_trainer_create(&options, &again, &error), TW_INVALID_ARGUMENT,
                 "was made with 2 groups of towers, but options.groups=1 was asked for");
    remove_scratch(folder);
}

static void without_numbers_each_tower_is_a_group_and_they_meet_every_8_steps(void **state)
{
    (void)state;
    int64_t every;
    tw_trainer *trainer = start_local(&plain, 3, 2, 0, 0);
    assert_int_equal(tw_trainer_groups(trainer, &every), 3);
    assert_int_equal(every, 8);
    tw_trainer_destroy(trainer);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void what_does_not_go_together_is_refused(void **state)
{
    (void)state;
    static const struct {
        int groups;
        int64_t every, check;
        tw_variable_options variables;
        tw_rule rule;
        tw_updates updates;
        const char *message;
    } cases[] = {
        {2, 0, 0, {.update = TW_UPDATE_REPLICATED}, {0}, 0,
         "options.groups goes with options.variables.update=local only, not with replicated"},
        {0, 4, 0, {0}, {0}, 0,
         "options.meet_every goes with options.variables.update=local only, not with parameter_server"},
        {4, 0, 0, {.update = TW_UPDATE_LOCAL}, {0}, 0, "options.groups=4: expected 1 to 3, the number of towers"},
        {-1, 0, 0, {.update = TW_UPDATE_LOCAL}, {0}, 0, "options.groups=-1: expected 1 to 3"},
        {2, -1, 0, {.update = TW_UPDATE_LOCAL}, {0}, 0, "options.meet_every=-1: expected a number of steps"},
        {2, 2, 1, {.update = TW_UPDATE_LOCAL}, {0}, 0, "with local there are none that must agree"},
        {2, 2, 0, {.update = TW_UPDATE_LOCAL, .placement = TW_PLACE_ROTATE}, {0}, 0,
         "options.variables.placement=rotate goes with"},
        {2, 2, 0, {.update = TW_UPDATE_LOCAL, .staged = true}, {0}, 0, "options.variables.staged goes with"},
        {2, 2, 0, {.update = TW_UPDATE_LOCAL}, {.automatic_loss_scale = true}, 0, "local updates: groups would have"},
        {2, 2, 0, {.update = TW_UPDATE_LOCAL}, {0}, TW_UPDATES_ASYNCHRONOUS, "options.updates=asynchronous needs one copy"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tw_trainer *trainer;
        tw_trainer_options options = options_for(&plain, 3, 2, cases[i].variables);
        options.size = sizeof options;
        options.groups = cases[i].groups;
        options.meet_every = cases[i].every;
        options.check_replicas = cases[i].check;
        options.rule = cases[i].rule;
        options.updates = cases[i].updates;
        assert_fails(tw_trainer_create(&options, &trainer, &error), TW_INVALID_ARGUMENT, cases[i].message);
        assert_null(trainer);
    }
}

/* What comes of a checkpoint with nothing in it but that number; variables are looked for behind it. */
static void assert_number_in_checkpoint(const char *key, tw_tensor *value, tw_status expected)
{
    const char *folder = scratch_folder();
    tw_named_tensor one = {key, value};
    assert_ok(tw_checkpoint_save(folder, "model.ckpt", 1, &one, 1, 0, &error));
    tw_tensor_release(value);
    tw_trainer *trainer;
    tw_trainer_options options = local_options(&plain, 3, 1, 0, 0);
    options.resume_from = folder;
    assert_fails(tw_trainer_create(&options, &trainer, &error), expected,
                 expected == TW_DATA_LOSS ? key : "has no 'global_step'");
    remove_scratch(folder);
}

static void numbers_that_no_trainer_saves_are_refused(void **state)
{
    (void)state;
    static const char *const keys[] = {"tower/groups", "tower/meet_every"};
    for (int i = 0; i < 2; i++) {
        assert_number_in_checkpoint(keys[i], tw_tensor_int64(1), TW_NOT_FOUND);
        assert_number_in_checkpoint(keys[i], tw_tensor_int64(3), TW_NOT_FOUND);
        assert_number_in_checkpoint(keys[i], tw_tensor_int64(0), TW_DATA_LOSS);
        assert_number_in_checkpoint(keys[i], tw_tensor_int64(i ? (1 << 30) + 1 : 4), TW_DATA_LOSS);
        assert_number_in_checkpoint(keys[i], tw_tensor_float(2), TW_DATA_LOSS);
        assert_number_in_checkpoint(keys[i], tw_tensor_from(TW_INT64, TW_SHAPE(2), (int64_t[]){2, 2}), TW_DATA_LOSS);
    }
}

static void running_out_of_memory_is_an_error(void **state)
{
    (void)state;
    tw_trainer_options options = local_options(&plain, 3, 1, 2, 1);
    bool failed = true;
    for (int n = 0; failed; n += 29) { /* all take minutes */
        tw_trainer *trainer = NULL;
        fail_allocation(n);
        tw_status status = tw_trainer_create(&options, &trainer, &error);
        failed = stop_failing_allocations();
        if (failed && status != TW_OK)
            assert_int_equal(status, TW_RESOURCE_EXHAUSTED);
        assert_int_equal(trainer != NULL, status == TW_OK);
        tw_trainer_destroy(trainer);
    }
}

static void running_out_of_memory_while_groups_are_saved_is_an_error(void **state)
{
    (void)state;
    tw_trainer *trainer = start_local(&plain, 3, 1, 2, 1);
    bool failed = true;
    while (failed) { /* each syncs files */
        const char *folder = scratch_folder();
        fail_at_new_place();
        tw_status status = tw_trainer_save(trainer, folder, 0, &error);
        failed = stop_failing_allocations();
        if (status != TW_OK)
            assert_int_equal(status, TW_RESOURCE_EXHAUSTED);
        remove_scratch(folder);
    }
    tw_trainer_destroy(trainer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_group_gives_the_bits_of_a_parameter_server),
        cmocka_unit_test(groups_give_equal_bits_on_1_2_3_5_and_8_devices),
        cmocka_unit_test(steps_in_a_row_meet_as_single_steps_do),
        cmocka_unit_test(neighbours_share_a_device),
        cmocka_unit_test(no_step_allocates_from_the_second_meeting_on),
        cmocka_unit_test(copies_become_their_mean_and_slots_stay),
        cmocka_unit_test(a_group_trains_as_its_towers_would_alone),
        cmocka_unit_test(meeting_in_every_step_of_gradient_descent_is_replicated_but_for_rounding),
        unthreaded_test(a_run_resumes_to_the_bit_and_meets_when_it_would_have),
        unthreaded_test(a_checkpoint_has_all_copies_and_under_the_plain_names_their_mean),
        cmocka_unit_test(the_mean_of_equal_copies_is_what_they_are),
        unthreaded_test(other_modes_go_on_from_the_mean_and_groups_from_what_others_have),
        cmocka_unit_test(another_number_of_steps_between_meetings_is_taken_and_said),
        cmocka_unit_test(without_numbers_each_tower_is_a_group_and_they_meet_every_8_steps),
        cmocka_unit_test(what_does_not_go_together_is_refused),
        cmocka_unit_test(numbers_that_no_trainer_saves_are_refused),
        unthreaded_test(running_out_of_memory_is_an_error),
        unthreaded_test(running_out_of_memory_while_groups_are_saved_is_an_error),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}

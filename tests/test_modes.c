/* Modes of update and placements of variables: what each computes, that bits do not depend on devices, that checkpoints
 * move between them, and what is refused. label: threads */
#include "modes_testing.h"
#include "faulty_memory.h"

#include <tower/ops.h>

static const struct {
    const char *name;
    tw_variable_options options;
} modes[] = {
    {"parameter_server on the CPU", {.update = TW_UPDATE_PARAMETER_SERVER}},
    {"parameter_server on one GPU", {.placement = TW_PLACE_SINGLE, .parameter_device = TW_PARAMETERS_ON_GPU}},
    {"parameter_server, rotate", {.placement = TW_PLACE_ROTATE}},
    {"parameter_server, least-loaded", {.placement = TW_PLACE_LEAST_LOADED}},
    {"parameter_server, least-bytes", {.placement = TW_PLACE_LEAST_BYTES}},
    {"distributed_replicated", {.update = TW_UPDATE_DISTRIBUTED_REPLICATED}},
    {"distributed_replicated, rotate", {.update = TW_UPDATE_DISTRIBUTED_REPLICATED, .placement = TW_PLACE_ROTATE}},
    {"replicated", {.update = TW_UPDATE_REPLICATED}},
    {"staged", {.staged = true}}, /* from here on the numbers differ */
    {"staged, rotate", {.staged = true, .placement = TW_PLACE_ROTATE}},
    {"relaxed", {.update = TW_UPDATE_REPLICATED, .consistency = TW_CONSISTENCY_RELAXED}},
    {"independent", {.update = TW_UPDATE_INDEPENDENT}},
};
enum { COPIES = 5, NUM_STRONG = 8, STAGED = 8, RELAXED = 10, INDEPENDENT = 11 };
enum { NUM_MODES = sizeof modes / sizeof *modes };

/* ---- bits -------------------------------------------------------------------------------------------------------- */

static void assert_one_digest(const tw_model *model, int towers, int first, int last, char *expected)
{
    for (int m = first; m <= last; m++)
        for (int i = 0; i < COUNTS; i++) {
            tw_trainer *trainer = start(model, towers, counts[i], modes[m].options);
            step(trainer, 3);
            const char *found = digest(trainer);
            if (!*expected)
                strcpy(expected, found);
            if (strcmp(found, expected) != 0)
                fail_msg("%s, %d towers on %d GPUs: %s, expected %s", modes[m].name, towers, counts[i], found,
                         expected);
            tw_trainer_destroy(trainer);
        }
}

static void all_strong_modes_give_the_bits_of_one_device_on_1_2_3_5_and_8(void **state)
{
    (void)state;
    char expected[DIGEST] = "";
    assert_one_digest(&rich, 5, 0, NUM_STRONG - 1, expected);
    assert_one_digest(&rich, 5, 0, 0, expected);
}

static void late_and_independent_modes_give_equal_bits_on_1_2_3_5_and_8(void **state)
{
    (void)state;
    char staged[DIGEST] = "", relaxed[DIGEST] = "", independent[DIGEST] = "";
    assert_one_digest(&rich, 3, STAGED, STAGED + 1, staged);
    assert_one_digest(&rich, 3, RELAXED, RELAXED, relaxed);
    assert_one_digest(&rich, 3, INDEPENDENT, INDEPENDENT, independent);
    assert_string_not_equal(staged, relaxed);
    assert_string_not_equal(staged, independent);
}

static void replicas_stay_equal_and_independent_towers_do_not(void **state)
{
    (void)state;
    for (int m = COPIES; m < NUM_MODES; m++) {
        if (modes[m].options.staged)
            continue;
        tw_trainer *trainer = start(&rich, 3, 2, modes[m].options);
        step(trainer, 4);
        tw_tensor *first = value_of(trainer, "hidden/kernel");
        for (int k = 1; k < 3; k++) {
            char name[64];
            snprintf(name, sizeof name, "copy_%d/hidden/kernel", k);
            tw_tensor *copy = value_of(trainer, name);
            bool equal = memcmp(tw_tensor_data(first), tw_tensor_data(copy), tw_tensor_bytes(first)) == 0;
            assert_int_equal(equal, m != INDEPENDENT);
            tw_tensor_release(copy);
        }
        tw_tensor_release(first);
        tw_trainer_destroy(trainer);
    }
}

static void no_mode_allocates_from_the_second_step_on(void **state)
{
    (void)state;
    for (int m = 0; m < NUM_MODES; m++) {
        tw_trainer *trainer = start(&rich, 3, 2, modes[m].options);
        step(trainer, 2);
        int64_t before = tw_allocation_count();
        step(trainer, 2);
        assert_int_equal(tw_allocation_count(), before);
        tw_trainer_destroy(trainer);
    }
}

/* ---- what late updates compute ----------------------------------------------------------------------------------- */

static void set(tw_trainer *trainer, const char *name, const tw_tensor *value)
{
    const tw_variable *variable = tw_graph_find_variable(tw_trainer_graph(trainer), name);
    assert_ok(tw_session_set_variable(tw_trainer_session(trainer), variable, value, &error));
}

static void set_all(tw_trainer *trainer, tw_tensor *const *values)
{
    for (int i = 0; i < NUM_PLAIN; i++)
        set(trainer, plain_names[i], values[i]);
}

static void get_all(tw_trainer *trainer, tw_tensor **values)
{
    for (int i = 0; i < NUM_PLAIN; i++)
        values[i] = value_of(trainer, plain_names[i]);
}

static void release_all(tw_tensor **values)
{
    for (int i = 0; i < NUM_PLAIN; i++)
        tw_tensor_release(values[i]);
}

/* Whether the trainer has base + (after - before). */
static void assert_moved_by(tw_trainer *trainer, tw_tensor *const *base, tw_tensor *const *before,
                            tw_tensor *const *after)
{
    for (int i = 0; i < NUM_PLAIN; i++) {
        tw_tensor *value = value_of(trainer, plain_names[i]);
        for (int64_t k = 0; k < tw_tensor_elements(value); k++) {
            double moved = tw_tensor_value(after[i], k) - tw_tensor_value(before[i], k);
            assert_true(fabs(tw_tensor_value(value, k) - (tw_tensor_value(base[i], k) + moved)) < 1e-6);
        }
        tw_tensor_release(value);
    }
}

/* Step k of a staged run uses the gradient at the variables as they were before step k - 1 updated them. */
static void staged_towers_compute_with_the_variables_of_the_step_before(void **state)
{
    (void)state;
    tw_trainer *staged = start(&plain, 3, 2, modes[STAGED].options), *usual = start(&plain, 3, 2, modes[0].options);
    tw_tensor *zero[NUM_PLAIN], *one[NUM_PLAIN], *moved[NUM_PLAIN];
    get_all(usual, zero);
    step(staged, 1);
    step(usual, 1);
    get_all(usual, one);
    for (int i = 0; i < NUM_PLAIN; i++)
        assert_same(staged, plain_names[i], one[i]); /* the first step has nothing older */
    assert_same(staged, "hidden/kernel/Staged", zero[0]);
    set_all(usual, zero);
    step(usual, 1); /* the second batch at the first variables */
    get_all(usual, moved);
    step(staged, 1);
    assert_moved_by(staged, one, zero, moved);
    assert_same(staged, "hidden/kernel/Staged", one[0]);
    assert_same(staged, "copy_2/hidden/kernel/Staged", one[0]);
    release_all(zero);
    release_all(one);
    release_all(moved);
    tw_trainer_destroy(staged);
    tw_trainer_destroy(usual);
}

static void relaxed_replicas_apply_each_mean_one_step_late(void **state)
{
    (void)state;
    tw_trainer *relaxed = start(&plain, 3, 2, modes[RELAXED].options), *usual = start(&plain, 3, 2, modes[0].options);
    tw_tensor *zero[NUM_PLAIN], *one[NUM_PLAIN], *moved[NUM_PLAIN];
    get_all(usual, zero);
    step(relaxed, 1);
    assert_same(relaxed, "hidden/kernel", zero[0]); /* zeros were applied */
    step(usual, 1);
    get_all(usual, one);
    step(relaxed, 1);
    for (int i = 0; i < NUM_PLAIN; i++)
        assert_same(relaxed, plain_names[i], one[i]);
    assert_same(relaxed, "copy_1/hidden/kernel", one[0]);
    set_all(usual, zero);
    step(usual, 1); /* the second batch, which relaxed towers saw at the first variables */
    get_all(usual, moved);
    step(relaxed, 1);
    assert_moved_by(relaxed, one, zero, moved);
    release_all(zero);
    release_all(one);
    release_all(moved);
    tw_trainer_destroy(relaxed);
    tw_trainer_destroy(usual);
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

/* 2 steps in one mode, then 2 more from the checkpoint in another; the digest is the caller's to copy. */
static const char *digest_of_two_parts(const char *folder, tw_variable_options first, tw_variable_options second)
{
    tw_trainer *a = start(&rich, 3, 2, first);
    step(a, 2);
    assert_ok(tw_trainer_save(a, folder, 0, &error));
    tw_trainer_destroy(a);
    tw_trainer_options options = options_for(&rich, 0, 5, second);
    options.resume_from = folder;
    tw_trainer *b = start_with(options);
    assert_int_equal(tw_trainer_steps_done(b), 2);
    step(b, 2);
    const char *text = digest(b);
    tw_trainer_destroy(b);
    return text;
}

static void every_mode_resumes_to_the_bit_without_being_told_which_it_is(void **state)
{
    (void)state;
    for (int m = 0; m < INDEPENDENT; m++) { /* of independent towers one is saved */
        char whole[DIGEST];
        tw_trainer *trainer = start(&rich, 3, 3, modes[m].options);
        step(trainer, 4);
        strcpy(whole, digest(trainer));
        tw_trainer_destroy(trainer);
        const char *folder = scratch_folder();
        const char *parts = digest_of_two_parts(folder, modes[m].options, (tw_variable_options){0});
        if (strcmp(parts, whole) != 0)
            fail_msg("%s: %s in two parts, %s in one", modes[m].name, parts, whole);
        remove_scratch(folder);
    }
}

static void strong_modes_go_on_from_each_others_checkpoints_to_the_bit(void **state)
{
    (void)state;
    char whole[DIGEST];
    tw_trainer *trainer = start(&rich, 3, 1, modes[0].options);
    step(trainer, 4);
    strcpy(whole, digest(trainer));
    tw_trainer_destroy(trainer);
    for (int m = 0; m < NUM_STRONG; m++) {
        const char *folder = scratch_folder();
        tw_variable_options second = modes[(m + NUM_STRONG - 1) % NUM_STRONG].options;
        if (!second.update)
            second.update = TW_UPDATE_PARAMETER_SERVER;
        assert_string_equal(digest_of_two_parts(folder, modes[m].options, second), whole);
        remove_scratch(folder);
    }
}

static void any_mode_goes_on_from_the_checkpoint_of_any_other(void **state)
{
    (void)state;
    for (int from = 0; from < NUM_MODES; from++) {
        int to = (from + STAGED) % NUM_MODES;
        const char *folder = scratch_folder();
        tw_variable_options second = modes[to].options;
        if (!second.update)
            second.update = TW_UPDATE_PARAMETER_SERVER;
        digest_of_two_parts(folder, modes[from].options, second);
        remove_scratch(folder);
    }
}

/* ---- shares ------------------------------------------------------------------------------------------------------ */

static tw_trainer *start_shares(int towers, int on, int global, const int *parts, tw_variable_options variables)
{
    tw_trainer_options options = options_for(&plain, towers, on, variables);
    options.global_batch = global;
    options.tower_shares = parts;
    options.num_tower_shares = parts ? towers : 0;
    return start_with(options);
}

static void what_does_not_divide_goes_to_the_first_towers(void **state)
{
    (void)state;
    static const struct {
        int towers, global, shares[8];
    } cases[] = {{3, 7, {3, 2, 2}}, {5, 16, {4, 3, 3, 3, 3}}, {7, 20, {3, 3, 3, 3, 3, 3, 2}}, {2, 8, {4, 4}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tw_trainer *trainer = start_shares(cases[i].towers, 2, cases[i].global, NULL, (tw_variable_options){0});
        for (int k = 0; k < cases[i].towers; k++)
            assert_int_equal(tw_trainer_share(trainer, k), cases[i].shares[k]);
        assert_int_equal(tw_trainer_examples(trainer), cases[i].global);
        assert_int_equal(tw_trainer_batch(trainer), cases[i].shares[0]);
        tw_trainer_destroy(trainer);
    }
    tw_trainer *trainer = start_shares(2, 2, 8, (int[]){3, 1}, (tw_variable_options){0});
    assert_int_equal(tw_trainer_share(trainer, 0) * 10 + tw_trainer_share(trainer, 1), 62);
    tw_trainer_destroy(trainer);
    trainer = start_shares(3, 2, 8, (int[]){1 << 20, 1, 1 << 20}, (tw_variable_options){0}); /* the largest parts */
    assert_int_equal(tw_trainer_share(trainer, 0) * 10 + tw_trainer_share(trainer, 1), 41);
    tw_trainer_destroy(trainer);
}

/* The same examples, however they are dealt: the mean over towers is the mean over examples. */
static void unequal_shares_train_as_one_tower_with_all_examples(void **state)
{
    (void)state;
    static const int parts[2] = {5, 1};
    for (int m = 0; m < NUM_STRONG; m++)
        for (int towers = 2; towers <= 7; towers++) {
            tw_trainer *one = start_shares(1, 1, 7, NULL, (tw_variable_options){0});
            tw_trainer *many = start_shares(towers, 3, 7, towers == 2 ? parts : NULL, modes[m].options);
            for (int i = 0; i < 3; i++)
                assert_true(fabs(step(one, 1) - step(many, 1)) < 1e-5);
            for (int i = 0; i < NUM_PLAIN; i++) {
                tw_tensor *a = value_of(one, plain_names[i]), *b = value_of(many, plain_names[i]);
                assert_floats_near(tw_tensor_data(a), tw_tensor_data(b), (size_t)tw_tensor_elements(a), 1e-6);
                tw_tensor_release(a);
                tw_tensor_release(b);
            }
            tw_trainer_destroy(one);
            tw_trainer_destroy(many);
        }
}

static void unequal_shares_give_equal_bits_in_all_strong_modes_on_all_devices(void **state)
{
    (void)state;
    char expected[DIGEST] = "";
    for (int m = 0; m < NUM_STRONG; m++)
        for (int i = 0; i < COUNTS; i++) {
            tw_trainer *trainer = start_shares(5, counts[i], 13, NULL, modes[m].options);
            step(trainer, 3);
            if (!*expected)
                strcpy(expected, digest(trainer));
            assert_string_equal(digest(trainer), expected);
            tw_trainer_destroy(trainer);
        }
}

static void equal_shares_of_a_global_batch_are_a_batch_for_each_tower(void **state)
{
    (void)state;
    char expected[DIGEST];
    tw_trainer *batch = start(&plain, 4, 2, (tw_variable_options){0});
    tw_trainer *global = start_shares(4, 2, 8, NULL, (tw_variable_options){0});
    tw_trainer *parts = start_shares(4, 2, 8, (int[]){2, 2, 2, 2}, (tw_variable_options){0});
    step(batch, 3);
    step(global, 3);
    step(parts, 3);
    strcpy(expected, digest(batch));
    assert_string_equal(digest(global), expected);
    assert_string_equal(digest(parts), expected);
    tw_trainer_destroy(batch);
    tw_trainer_destroy(global);
    tw_trainer_destroy(parts);
}

static void a_resumed_run_keeps_its_shares_and_refuses_others(void **state)
{
    (void)state;
    const char *folder = scratch_folder();
    tw_trainer *first = start_shares(2, 2, 8, (int[]){3, 1}, (tw_variable_options){0}), *second;
    step(first, 1);
    assert_ok(tw_trainer_save(first, folder, 0, &error));
    tw_trainer_options options = options_for(&plain, 0, 1, (tw_variable_options){0});
    options.resume_from = folder;
    second = start_with(options);
    assert_int_equal(tw_trainer_share(second, 0) * 10 + tw_trainer_share(second, 1), 62);
    tw_trainer *other;
    options.global_batch = 8;
    assert_fails(tw_trainer_create(&options, &other, &error), TW_INVALID_ARGUMENT,
                 "was made with 8 examples a step, 6 of them for tower 0, but 8 and 4 were asked for");
    options.global_batch = 0;
    options.batch = 6;
    assert_fails(tw_trainer_create(&options, &other, &error), TW_INVALID_ARGUMENT, "but 12 and 6 were asked for");
    remove_scratch(folder);
    step(first, 2);
    step(second, 2);
    char expected[DIGEST];
    strcpy(expected, digest(first));
    assert_string_equal(digest(second), expected);
    tw_trainer_destroy(second);
    tw_trainer_destroy(first);
}

/* ---- placement --------------------------------------------------------------------------------------------------- */

/* The device number that each trainable variable of the tutorial's network is on. */
static void assert_placed(tw_variable_placement placement, int on, int (*rule)(int i, int64_t elements, int64_t *loads,
                                                                              int devices))
{
    tw_dataset *images;
    assert_ok(tw_dataset_synthetic(4, 32, 32, 3, 10, 5, &images, &error));
    tw_trainer_options options = options_for(tw_model_find("cifar10"), on, on, (tw_variable_options){
                                                                                  .placement = placement});
    options.dataset = images;
    options.batch = 1;
    tw_trainer *trainer = start_with(options);
    int64_t loads[MOST_GPUS] = {0};
    for (int k = 0, i = 0; k < tw_graph_num_variables(tw_trainer_graph(trainer)); k++) {
        const tw_variable *variable = tw_graph_variable(tw_trainer_graph(trainer), k);
        char expected[64];
        if (!variable->trainable)
            continue;
        snprintf(expected, sizeof expected, "device:GPU:%d",
                 rule(i++, tw_shape_elements(variable->shape), loads, on));
        assert_message(tw_session_device(tw_trainer_session(trainer), variable->handle.node), expected);
    }
    tw_trainer_destroy(trainer);
    tw_dataset_destroy(images);
}

static int in_turn(int i, int64_t elements, int64_t *loads, int devices)
{
    (void)elements;
    (void)loads;
    return i % devices;
}

/* Python's min over a list: the first of equal ones. */
static int to_the_least_loaded(int i, int64_t elements, int64_t *loads, int devices)
{
    int least = 0;
    (void)i;
    for (int k = 1; k < devices; k++)
        if (loads[k] < loads[least])
            least = k;
    loads[least] += elements;
    return least;
}

static void the_tutorials_variables_are_placed_as_the_algorithms_say(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTS; i++) {
        assert_placed(TW_PLACE_ROTATE, counts[i], in_turn);
        assert_placed(TW_PLACE_LEAST_LOADED, counts[i], to_the_least_loaded);
        assert_placed(TW_PLACE_LEAST_BYTES, counts[i], to_the_least_loaded);
    }
}

static void least_loaded_knows_bytes_from_elements(void **state)
{
    (void)state;
    const char *devices[] = {"/gpu:0", "/gpu:1"};
    for (int by_bytes = 0; by_bytes < 2; by_bytes++) {
        int64_t loads[2] = {0};
        tw_least_loaded spread = {.devices = devices, .num_devices = 2, .loads = loads, .by_bytes = by_bytes};
        tw_graph *g = tw_graph_create();
        tw_enter_device_function(g, tw_least_loaded_device, &spread);
        tw_get_variable(g, "long", TW_FLOAT64, TW_SHAPE(6), (tw_initializer){0});
        tw_get_variable(g, "short", TW_FLOAT16, TW_SHAPE(10), (tw_initializer){0});
        tw_variable *third = tw_get_variable(g, "third", TW_FLOAT32, TW_SHAPE(1), (tw_initializer){0});
        assert_ok(tw_graph_status(g));
        assert_message(tw_node_device(third->handle.node), by_bytes ? "GPU:1" : "GPU:0");
        assert_int_equal(loads[0] + loads[1], by_bytes ? 48 + 20 + 4 : 6 + 10 + 1);
        tw_leave_device(g);
        tw_graph_destroy(g);
    }
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void odd_combinations_are_refused_naming_both_sides(void **state)
{
    (void)state;
    static const struct {
        tw_variable_options options;
        const char *message;
    } cases[] = {
        {{.update = TW_UPDATE_REPLICATED, .staged = true}, "options.variables.staged goes with options.variables.update=parameter_server only: with "
                                                    "replicated"},
        {{.update = TW_UPDATE_INDEPENDENT, .staged = true}, "options.variables.staged goes with options.variables.update=parameter_server only: with "
                                                     "independent"},
        {{.consistency = TW_CONSISTENCY_RELAXED}, "options.variables.consistency=relaxed goes with options.variables.update=replicated only, not with "
                                      "parameter_server; options.variables.staged is its counterpart there"},
        {{.update = TW_UPDATE_INDEPENDENT, .consistency = TW_CONSISTENCY_RELAXED}, "options.variables.consistency=relaxed goes with "
                                                                "options.variables.update=replicated only, not with independent"},
        {{.staged = true, .consistency = TW_CONSISTENCY_RELAXED}, "options.variables.consistency=relaxed goes with"},
        {{.update = TW_UPDATE_REPLICATED, .placement = TW_PLACE_ROTATE},
         "options.variables.placement=rotate goes with options.variables.update=parameter_server and "
         "distributed_replicated only: with replicated"},
        {{.update = TW_UPDATE_INDEPENDENT, .placement = TW_PLACE_SINGLE}, "options.variables.placement=single goes with"},
        {{.update = TW_UPDATE_REPLICATED, .parameter_device = TW_PARAMETERS_ON_CPU},
         "options.variables.parameter_device=cpu goes with options.variables.update=parameter_server and "
         "distributed_replicated only"},
        {{.update = TW_UPDATE_DISTRIBUTED_REPLICATED, .staged = true},
         "options.variables.staged goes with options.variables.update=parameter_server only"},
        {{.placement = TW_PLACE_LEAST_LOADED, .parameter_device = TW_PARAMETERS_ON_CPU},
         "options.variables.placement=least-loaded spreads variables over several devices, and "
         "options.variables.parameter_device=cpu has one"},
        {{.update = (tw_variable_update)9}, "options.variables.update: there is no number 9"},
    };
    static const struct {
        tw_average_options average;
        const char *message;
    } meetings[] = {
        {{.all_reduce = "ring"}, "options.average.all_reduce says how gradients meet; with "
                                "options.variables.update=independent they never do"},
        {{.packs = 2}, "options.average.packs says how"},
        {{.wire = TW_FLOAT16}, "options.average.wire says how"},
    };
    for (size_t i = 0; i < sizeof meetings / sizeof *meetings; i++) {
        tw_trainer *trainer;
        tw_trainer_options options = options_for(&plain, 2, 2, (tw_variable_options){.update = TW_UPDATE_INDEPENDENT});
        options.average = meetings[i].average;
        assert_fails(tw_trainer_create(&options, &trainer, &error), TW_INVALID_ARGUMENT, meetings[i].message);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tw_trainer *trainer;
        tw_trainer_options options = options_for(&plain, 2, 2, cases[i].options);
        assert_fails(tw_trainer_create(&options, &trainer, &error), TW_INVALID_ARGUMENT, cases[i].message);
        assert_null(trainer);
    }
}

static void variables_on_gpus_need_towers_on_gpus(void **state)
{
    (void)state;
    tw_trainer *trainer;
    tw_trainer_options options = options_for(&plain, 2, 2, (tw_variable_options){.parameter_device =
                                                                                     TW_PARAMETERS_ON_GPU});
    options.tower_devices = (const char *[]){"/cpu:0"};
    options.num_tower_devices = 1;
    assert_fails(tw_trainer_create(&options, &trainer, &error), TW_INVALID_ARGUMENT,
                 "options.variables.parameter_device=gpu puts variables on the GPUs that towers run on, and none does");
}

static void impossible_shares_are_refused(void **state)
{
    (void)state;
    static const struct {
        int batch, global, num_parts, parts[3];
        const char *message;
    } cases[] = {
        {4, 10, 0, {0}, "options.batch=4 for each of 3 towers makes 12, not options.global_batch=10"},
        {0, 2, 0, {0}, "options.global_batch=2 leaves no example for tower 2 of 3"},
        {4, 0, 3, {1, 1, 1}, "options.batch gives each tower 4 examples, options.tower_shares gives them unequal numbers"},
        {0, 8, 2, {3, 1}, "options.tower_shares has 2 parts for 3 towers"},
        {0, 8, 3, {3, 0, 1}, "options.tower_shares: 0 for tower 1"},
        {0, 4, 3, {100, 1, 1}, "options.global_batch=4 leaves no example for tower 1 of 3"},
        {0, 4, 1, {1}, "options.tower_shares has 1 part for 3 towers"},
        {0, 8, 3, {3, 1, (1 << 20) + 1}, "options.tower_shares: 1048577 for tower 2; expected 1 to 1048576"},
        {0, 1 << 29, 0, {0}, "options.global_batch is 536870912; at most 268435456 is expected"},
        {0, 1 << 28, 2, {3, 1}, "options.tower_shares has 2 parts for 3 towers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tw_trainer *trainer;
        tw_trainer_options options = options_for(&plain, 3, 2, (tw_variable_options){0});
        options.batch = cases[i].batch;
        options.global_batch = cases[i].global;
        options.tower_shares = cases[i].num_parts ? cases[i].parts : NULL;
        options.num_tower_shares = cases[i].num_parts;
        assert_fails(tw_trainer_create(&options, &trainer, &error), TW_INVALID_ARGUMENT, cases[i].message);
    }
}

/* ---- memory that runs out ---------------------------------------------------------------------------------------- */

enum { OTHER_MODES = 8 };

/* The modes above, and what else a trainer makes itself: groups, rates, clipping, scales, sums in parts. */
static tw_trainer_options failing_options(int number)
{
    static const int parts[] = {3, 1};
    tw_trainer_options options = options_for(&plain, 2, 2, modes[number < NUM_MODES ? number : 0].options);
    switch (number - NUM_MODES) {
    case 0:
        options.global_batch = 4, options.tower_shares = parts, options.num_tower_shares = 2;
        break;
    case 1:
        options.variables.update = TW_UPDATE_LOCAL, options.groups = 2, options.meet_every = 1;
        break;
    case 2:
        options.updates = TW_UPDATES_ASYNCHRONOUS;
        break;
    case 3:
        options.dtype = TW_FLOAT16, options.rule.automatic_loss_scale = true, options.rule.clip_norm = 1;
        break;
    case 4:
        options.optimizer = TW_OPTIMIZER_ADAM, options.rule.decoupled_decay = 0.1f, options.rule.warm_up = 2;
        options.rule.schedule = TW_SCHEDULE_COSINE, options.rule.length = 10, options.rule.clip_value = 1;
        break;
    case 5:
        options.variables.update = TW_UPDATE_REPLICATED, options.check_replicas = 1;
        options.average.all_reduce = "ring", options.average.packs = 2;
        break;
    case 6:
        options.average.wire = TW_BFLOAT16, options.average.small_bytes = 64, options.accuracy = true;
        break;
    case 7:
        options.input_place = TW_INPUT_ON_DEVICE, options.with_summaries = true;
        break;
    }
    return options;
}

/* Sets one up and takes a step. */
static tw_status try_mode(const tw_trainer_options *options)
{
    tw_trainer *trainer = NULL;
    tw_trainer_step_result result;
    tw_status status = tw_trainer_create(options, &trainer, &error);
    assert_int_equal(trainer != NULL, status == TW_OK);
    if (status == TW_OK)
        status = tw_trainer_step(trainer, &result, &error);
    tw_trainer_destroy(trainer);
    return status;
}

static void running_out_of_memory_while_a_mode_is_set_up_is_an_error(void **state)
{
    (void)state;
    int tried = 0;
    for (int number = 0; number < NUM_MODES + OTHER_MODES; number++) {
        tw_trainer_options options = failing_options(number);
        if (try_mode(&options) != TW_OK)
            fail_msg("mode %d: %s", number, error.message);
        for (bool failed = true; failed; tried += failed) {
            fail_at_new_place();
            tw_status status = try_mode(&options);
            int live = memory.live;
            failed = stop_failing_allocations();
            if (live || (status != TW_OK && status != TW_RESOURCE_EXHAUSTED))
                fail_msg("mode %d: status %d, \"%s\", %d blocks are left", number, status, error.message, live);
        }
    }
    print_message("%d places in the code where memory has failed\n", tried);
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

static void the_simplest_mode_is_chosen_unless_another_is_clearly_faster(void **state)
{
    (void)state;
    tw_update_trial trials[4] = {{.variables = {TW_UPDATE_PARAMETER_SERVER}}, {.variables = {TW_UPDATE_PARAMETER_SERVER}},
                                 {.variables = {TW_UPDATE_REPLICATED}}, {.variables = {TW_UPDATE_INDEPENDENT}}};
    static const struct {
        double speeds[4];
        int chosen, fastest;
    } cases[] = {
        {{100, 90, 102, 500}, 0, 2}, {{100, 110, 112, 500}, 1, 2}, {{100, 90, 104, 500}, 2, 2},
        {{0, 90, 91, 500}, 1, 2},    {{0, 0, 0, 500}, -1, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int k = 0; k < 4; k++)
            trials[k].examples_per_second = cases[i].speeds[k];
        assert_int_equal(tw_choose_update(trials, 4, 1.03), cases[i].chosen);
        assert_int_equal(tw_choose_update(trials, 4, 1), cases[i].fastest);
    }
}

static void modes_that_make_sense_are_measured(void **state)
{
    (void)state;
    tw_update_trial trials[TW_MOST_UPDATE_TRIALS];
    int count;
    tw_trainer_options options = options_for(&plain, 3, 2, (tw_variable_options){0});
    assert_ok(tw_compare_updates(&options, 3, trials, &count, &error));
    assert_int_equal(count, 4);
    assert_int_equal(trials[1].variables.parameter_device, TW_PARAMETERS_ON_GPU);
    assert_int_equal(trials[3].variables.update, TW_UPDATE_INDEPENDENT);
    for (int i = 0; i < count; i++)
        assert_true(fabs(trials[i].examples_per_second * trials[i].step_seconds - 6) < 1e-6);
    options.towers = 1;
    assert_ok(tw_compare_updates(&options, 1, trials, &count, &error));
    assert_int_equal(count, 2);
    options.tower_devices = (const char *[]){"/cpu:0"};
    options.num_tower_devices = 1;
    assert_ok(tw_compare_updates(&options, 1, trials, &count, &error));
    assert_int_equal(count, 1);
    options.towers = 2;
    assert_ok(tw_compare_updates(&options, 1, trials, &count, &error));
    assert_int_equal(count, 3);
    options.updates = TW_UPDATES_ASYNCHRONOUS;
    assert_fails(tw_compare_updates(&options, 1, trials, &count, &error), TW_INVALID_ARGUMENT,
                 "options.updates=asynchronous have one mode, parameter_server");
    options.updates = 0;
    options.batch = -1;
    assert_true(tw_compare_updates(&options, 1, trials, &count, &error) != TW_OK);
}

/* ---- copies and getters ------------------------------------------------------------------------------------------ */

static tw_variable *give_copies(void *user, tw_graph *g, tw_variable *variable)
{
    char name[64];
    snprintf(name, sizeof name, "%s/of/%s", (const char *)user, variable->name);
    tw_variable *found = tw_graph_find_variable(g, name);
    return found ? found : tw_copy_variable(g, variable, name);
}

static void getters_nest_and_copies_begin_as_their_originals(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_session *session;
    tw_graph_set_seed(g, 3);
    tw_initializer normal = {TW_INIT_NORMAL, 0, 1, 0};
    tw_variable *original = tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(5), normal);
    tw_reuse_variables(g);
    tw_enter_variable_getter(g, give_copies, "outer");
    tw_enter_variable_getter(g, give_copies, "inner");
    tw_variable *copy = tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(5), normal);
    assert_string_equal(copy->name, "outer/of/inner/of/v");
    assert_ptr_equal(tw_variable_here(g, original), copy);
    tw_leave_variable_getter(g);
    assert_string_equal(tw_variable_here(g, original)->name, "outer/of/v");
    tw_leave_variable_getter(g);
    assert_ptr_equal(tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(5), normal), original);
    assert_true(original->trainable && !copy->trainable && !original->copy_of);
    assert_string_equal(copy->copy_of->name, "inner/of/v");
    assert_ok(tw_session_create(g, NULL, &session, &error));
    tw_output outputs[] = {tw_initialize_variables(g), original->value, copy->value};
    tw_tensor *values[3] = {0};
    assert_ok(tw_session_run(session, NULL, 0, outputs, 1, NULL, &error));
    assert_ok(tw_session_run(session, NULL, 0, outputs + 1, 2, values, &error));
    assert_memory_equal(tw_tensor_data(values[0]), tw_tensor_data(values[1]), 20);
    assert_true(((float *)tw_tensor_data(values[0]))[0] != 0);
    tw_tensor_release(values[0]);
    tw_tensor_release(values[1]);
    tw_session_destroy(session);
    assert_null(tw_copy_variable(g, original, "v"));
    assert_message(tw_graph_message(g), "there is a variable 'v' already");
    tw_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_strong_modes_give_the_bits_of_one_device_on_1_2_3_5_and_8),
        cmocka_unit_test(late_and_independent_modes_give_equal_bits_on_1_2_3_5_and_8),
        cmocka_unit_test(replicas_stay_equal_and_independent_towers_do_not),
        cmocka_unit_test(no_mode_allocates_from_the_second_step_on),
        cmocka_unit_test(staged_towers_compute_with_the_variables_of_the_step_before),
        cmocka_unit_test(relaxed_replicas_apply_each_mean_one_step_late),
        unthreaded_test(every_mode_resumes_to_the_bit_without_being_told_which_it_is),
        unthreaded_test(strong_modes_go_on_from_each_others_checkpoints_to_the_bit),
        unthreaded_test(any_mode_goes_on_from_the_checkpoint_of_any_other),
        cmocka_unit_test(what_does_not_divide_goes_to_the_first_towers),
        unthreaded_test(unequal_shares_train_as_one_tower_with_all_examples),
        cmocka_unit_test(unequal_shares_give_equal_bits_in_all_strong_modes_on_all_devices),
        cmocka_unit_test(equal_shares_of_a_global_batch_are_a_batch_for_each_tower),
        cmocka_unit_test(a_resumed_run_keeps_its_shares_and_refuses_others),
        unthreaded_test(the_tutorials_variables_are_placed_as_the_algorithms_say),
        cmocka_unit_test(least_loaded_knows_bytes_from_elements),
        cmocka_unit_test(odd_combinations_are_refused_naming_both_sides),
        cmocka_unit_test(variables_on_gpus_need_towers_on_gpus),
        cmocka_unit_test(impossible_shares_are_refused),
        unthreaded_test(running_out_of_memory_while_a_mode_is_set_up_is_an_error),
        cmocka_unit_test(the_simplest_mode_is_chosen_unless_another_is_clearly_faster),
        cmocka_unit_test(modes_that_make_sense_are_measured),
        cmocka_unit_test(getters_nest_and_copies_begin_as_their_originals),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}

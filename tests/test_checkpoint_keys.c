/* What a trainer writes into checkpoints beside the variables (docs/checkpoint-keys.md): names, which mean the same
 * when the numbers of an enumeration change; and what revisions before there were names have written. */
#include "testing.h"
#include "remembered_training.h"

#include <stdio.h>
#include <tower/io.h>
#include <unistd.h>

#include "golden/trainer_before.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/test_checkpoint_keys_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static remembered_ground open_ground(void)
{
    tw_error error = {0};
    remembered_ground ground;
    assert_ok(remembered_open(&ground, &error));
    return ground;
}

static tw_trainer *open_trainer(tw_trainer_options options)
{
    tw_error error = {0};
    tw_trainer *trainer;
    assert_ok(tw_trainer_create(&options, &trainer, &error));
    return trainer;
}

/* Nothing is asked for but to go on. */
static tw_trainer_options go_on(const remembered_ground *ground, const char *from)
{
    return (tw_trainer_options){
        .model = &remembered_model, .dataset = ground->data, .devices = ground->devices, .resume_from = from};
}

/* The text that a checkpoint (the latest of a directory) has under a key. */
static const char *text_of(const char *directory, const char *key)
{
    static char text[2048];
    char path[512];
    tw_error error = {0};
    tw_checkpoint *checkpoint;
    tw_tensor *value = NULL;
    assert_ok(tw_checkpoint_latest(directory, path, sizeof path, NULL, &error));
    assert_ok(tw_checkpoint_open(path, &checkpoint, &error));
    assert_ok(tw_checkpoint_read(checkpoint, key, &value, &error));
    assert_int_equal(tw_tensor_dtype(value), TW_STRING);
    const tw_string *string = tw_tensor_data(value);
    snprintf(text, sizeof text, "%.*s", (int)string->size, string->size ? string->data : "");
    tw_tensor_release(value);
    tw_checkpoint_close(checkpoint);
    return text;
}

/* What such a trainer saves under a key. */
static const char *saved(const tw_trainer_options *options, const char *key)
{
    char directory[512];
    static int number;
    tw_error error = {0};
    tw_trainer *trainer = open_trainer(*options);
    snprintf(directory, sizeof directory, "%s/%d", folder, number++);
    assert_ok(tw_trainer_save(trainer, directory, 0, &error));
    tw_trainer_destroy(trainer);
    return text_of(directory, key);
}

/* ---- of before ------------------------------------------------------------------------------------------------ */

static void assert_is_the_remembered_run(tw_trainer *trainer)
{
    char text[512];
    assert_int_equal(tw_trainer_steps_done(trainer), 3);
    assert_int_equal(tw_trainer_towers(trainer), 3);
    assert_int_equal(tw_trainer_batch(trainer), 4);
    assert_int_equal(tw_trainer_seed(trainer), -9);
    assert_int_equal(tw_trainer_variables(trainer).update, TW_UPDATE_REPLICATED);
    assert_int_equal(tw_trainer_variables(trainer).consistency, TW_CONSISTENCY_RELAXED);
    assert_int_equal(tw_trainer_updates(trainer), TW_UPDATES_SYNCHRONOUS);
    assert_string_equal(tw_trainer_all_reduce(trainer), "ring");
    assert_string_equal(tw_trainer_changes(trainer), "");
    assert_string_equal(tw_trainer_rule_text(trainer, text, sizeof text),
                        "RMSProp (decay 0.9, momentum 0.9, epsilon 1)");
    assert_string_equal(
        tw_trainer_rate_text(trainer, text, sizeof text),
        "0.03, 0.02 from step 2 (epoch 0.6), 0.007 from step 4 (epoch 1.2); all times 2, for 12 examples a "
        "step instead of 6; rises in a line until step 1 (epoch 0.3)");
}

static void checkpoint_of_before_goes_on_as_it_would_have_then(void **state)
{
    (void)state;
    tw_error error = {0};
    remembered_ground ground = open_ground();
    tw_trainer *trainer = open_trainer(go_on(&ground, GOLDEN_DIR "/trainer_before"));
    assert_is_the_remembered_run(trainer);
    for (int i = 0; i < REMEMBERED_STEPS; i++) {
        tw_trainer_step_result result;
        assert_ok(tw_trainer_step(trainer, &result, &error));
        assert_floats_near(&result.loss, &trainer_before_losses[i], 1, 1e-5);
    }
    tw_trainer_destroy(trainer);
    remembered_close(&ground);
}

static void asynchronous_checkpoint_of_before_is_understood(void **state)
{
    (void)state;
    char text[512];
    remembered_ground ground = open_ground();
    tw_trainer *trainer = open_trainer(go_on(&ground, GOLDEN_DIR "/trainer_before_alone"));
    assert_int_equal(tw_trainer_updates(trainer), TW_UPDATES_ASYNCHRONOUS);
    assert_int_equal(tw_trainer_towers(trainer), 2);
    assert_int_equal(tw_trainer_variables(trainer).update, TW_UPDATE_PARAMETER_SERVER);
    assert_non_null(strstr(tw_trainer_rule_text(trainer, text, sizeof text), "Adam"));
    assert_non_null(
        strstr(tw_trainer_rate_text(trainer, text, sizeof text), "to 0.01 at step 5 (epoch 0.8) with a power of 2"));
    tw_trainer_destroy(trainer);
    remembered_close(&ground);
}

static void checkpoint_of_before_is_saved_again_by_names(void **state)
{
    (void)state;
    char directory[128];
    tw_error error = {0};
    remembered_ground ground = open_ground();
    tw_trainer *trainer = open_trainer(go_on(&ground, GOLDEN_DIR "/trainer_before"));
    snprintf(directory, sizeof directory, "%s/again", folder);
    assert_ok(tw_trainer_save(trainer, directory, 0, &error));
    tw_trainer_destroy(trainer);
    assert_string_equal(text_of(directory, "tower/dtype"), "bfloat16");
    assert_string_equal(text_of(directory, "tower/optimizer"), "rmsprop");
    assert_string_equal(text_of(directory, "tower/variable_update"), "replicated relaxed");
    assert_string_equal(text_of(directory, "tower/updates"), "synchronous");
    assert_string_equal(text_of(directory, "tower/all_reduce"), "ring");
    assert_string_equal(text_of(directory, "tower/schedule"),
                        "schedule=piecewise unit=examples length=0 factor=0 end=0 power=0 warm_up=12 scale_rate=on "
                        "at=24 rate=0.0199999996 at=48 rate=0.00700000022");
    trainer = open_trainer(go_on(&ground, directory));
    assert_is_the_remembered_run(trainer);
    tw_trainer_destroy(trainer);
    remembered_close(&ground);
}

/* ---- names ---------------------------------------------------------------------------------------------------- */

/* Each name is written once more here, beside the enumerator it stands for: neither an enumeration in another order nor
 * another name may change what checkpoints mean. */
static void every_choice_has_its_name_for_ever(void **state)
{
    (void)state;
    static const struct {
        const char *key, *name;
        tw_trainer_options asked;
    } rows[] = {
        {"tower/optimizer", "sgd", {.optimizer = TW_OPTIMIZER_GRADIENT_DESCENT}},
        {"tower/optimizer", "momentum", {.optimizer = TW_OPTIMIZER_MOMENTUM}},
        {"tower/optimizer", "adam", {.optimizer = TW_OPTIMIZER_ADAM}},
        {"tower/optimizer", "rmsprop", {.optimizer = TW_OPTIMIZER_RMS_PROP}},
        {"tower/dtype", "float32", {.dtype = TW_FLOAT32}},
        {"tower/dtype", "bfloat16", {.dtype = TW_BFLOAT16}},
        {"tower/dtype", "float16", {.dtype = TW_FLOAT16}},
        {"tower/updates", "synchronous", {.updates = TW_UPDATES_SYNCHRONOUS}},
        {"tower/updates", "asynchronous", {.updates = TW_UPDATES_ASYNCHRONOUS}},
        {"tower/variable_update", "parameter_server", {.variables = {.update = TW_UPDATE_PARAMETER_SERVER}}},
        {"tower/variable_update", "parameter_server staged", {.variables = {.staged = true}}},
        {"tower/variable_update", "replicated", {.variables = {.update = TW_UPDATE_REPLICATED}}},
        {"tower/variable_update",
         "replicated relaxed",
         {.variables = {.update = TW_UPDATE_REPLICATED, .consistency = TW_CONSISTENCY_RELAXED}}},
        {"tower/variable_update", "independent", {.variables = {.update = TW_UPDATE_INDEPENDENT}}},
        {"tower/variable_update",
         "distributed_replicated",
         {.variables = {.update = TW_UPDATE_DISTRIBUTED_REPLICATED}}},
        {"tower/variable_update", "local", {.variables = {.update = TW_UPDATE_LOCAL}}},
        {"tower/schedule", "schedule=model unit=epochs ", {.seed = 1}},
        {"tower/schedule", "schedule=constant unit=epochs ", {.rule = {.schedule = TW_SCHEDULE_CONSTANT}}},
        {"tower/schedule",
         "schedule=exponential unit=steps length=2 factor=0.5 ",
         {.rule = {.schedule = TW_SCHEDULE_EXPONENTIAL, .unit = TW_RATE_STEPS, .length = 2, .factor = 0.5f}}},
        {"tower/schedule",
         "schedule=polynomial unit=examples length=24 factor=0 end=0.25 power=2 ",
         {.rule =
              {.schedule = TW_SCHEDULE_POLYNOMIAL, .unit = TW_RATE_EXAMPLES, .length = 24, .end = 0.25f, .power = 2}}},
        {"tower/schedule",
         "schedule=cosine unit=epochs length=3 ",
         {.rule = {.schedule = TW_SCHEDULE_COSINE, .unit = TW_RATE_EPOCHS, .length = 3}}},
        {"tower/schedule",
         "schedule=piecewise unit=epochs ",
         {.rule = {.schedule = TW_SCHEDULE_PIECEWISE, .num_rates = 1, .at = {2}, .rates = {0.5f}}}},
    };
    remembered_ground ground = open_ground();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        remembered_run run = {"", rows[i].asked};
        tw_trainer_options options = remembered_options(&run, &ground);
        options.towers = 2;
        const char *found = saved(&options, rows[i].key);
        if (strcmp(rows[i].key, "tower/schedule") != 0)
            assert_string_equal(found, rows[i].name);
        else if (strncmp(found, rows[i].name, strlen(rows[i].name)) != 0)
            fail_msg("'%s' does not begin with '%s'", found, rows[i].name);
    }
    remembered_close(&ground);
}

/* A checkpoint with nothing in it but one key. */
static void assert_refused(const remembered_ground *ground, const char *key, tw_tensor *value)
{
    char directory[512];
    static int number;
    tw_error error = {0};
    tw_trainer *trainer = NULL;
    tw_named_tensor one = {key, value};
    snprintf(directory, sizeof directory, "%s/odd%d", folder, number++);
    assert_ok(tw_checkpoint_save(directory, "model.ckpt", 1, &one, 1, 0, &error));
    tw_trainer_options options = go_on(ground, directory);
    assert_int_equal(tw_trainer_create(&options, &trainer, &error), TW_DATA_LOSS);
    assert_non_null(strstr(error.message, key));
    tw_tensor_release(value);
}

static tw_tensor *text(const char *words)
{
    return tw_tensor_string(words, strlen(words));
}

static void what_no_trainer_writes_is_refused_by_its_key(void **state)
{
    (void)state;
    double numbers[41] = {9};
    remembered_ground ground = open_ground();
    assert_refused(&ground, "tower/optimizer", text("lion"));
    assert_refused(&ground, "tower/optimizer", text(""));
    assert_refused(&ground, "tower/optimizer", tw_tensor_int64(5));
    assert_refused(&ground, "tower/optimizer", tw_tensor_int64(0));
    assert_refused(&ground, "tower/variable_update", text("replicated staged"));
    assert_refused(&ground, "tower/variable_update", tw_tensor_int64(6));
    assert_refused(&ground, "tower/dtype", tw_tensor_int64(9));
    assert_refused(&ground, "tower/towers", text("3"));
    assert_refused(&ground, "tower/towers", tw_tensor_int64(0));
    assert_refused(&ground, "tower/learning_rate", tw_tensor_float(-1));
    assert_refused(&ground, "tower/learning_rate", text("0.1"));
    assert_refused(&ground, "tower/all_reduce", tw_tensor_int64(1));
    assert_refused(&ground, "tower/schedule", text("schedule=sawtooth"));
    assert_refused(&ground, "tower/schedule", text("schedule=cosine length=-1"));
    assert_refused(&ground, "tower/schedule", text("schedule=cosine length=nan"));
    assert_refused(&ground, "tower/schedule", text("schedule=cosine lengths=3"));
    assert_refused(&ground, "tower/schedule", text("schedule=cosine length"));
    assert_refused(&ground, "tower/schedule", text("unit=eons"));
    assert_refused(&ground, "tower/schedule", tw_tensor_from(TW_FLOAT64, TW_SHAPE(41), numbers));
    assert_refused(&ground, "tower/schedule", tw_tensor_from(TW_FLOAT64, TW_SHAPE(40), numbers));
    remembered_close(&ground);
}

/* ---- who made it ----------------------------------------------------------------------------------------------- */

static void another_revision_or_processor_is_named_and_not_refused(void **state)
{
    (void)state;
    remembered_ground ground = open_ground();
    remembered_run run = {"", {.seed = 1}};
    tw_trainer_options options = remembered_options(&run, &ground);
    assert_string_equal(saved(&options, "tower/revision"), tw_revision());
    assert_string_equal(saved(&options, "tower/processor"), tw_processor_info().name);
    assert_null(strpbrk(tw_processor_info().name, "\n\t"));

    char directory[128], expected[512];
    tw_error error = {0};
    tw_trainer *trainer = open_trainer(options);
    snprintf(directory, sizeof directory, "%s/elsewhere", folder);
    assert_ok(tw_trainer_save(trainer, directory, 0, &error));
    tw_trainer_destroy(trainer);
    tw_checkpoint *checkpoint;
    assert_ok(tw_checkpoint_latest(directory, expected, sizeof expected, NULL, &error));
    assert_ok(tw_checkpoint_open(expected, &checkpoint, &error));
    tw_named_tensor tensors[64] = {{NULL}};
    int count = tw_checkpoint_count(checkpoint);
    assert_true(count <= 64);
    for (int i = 0; i < count; i++) {
        const char *name = tensors[i].name = tw_checkpoint_name(checkpoint, i);
        tw_tensor *value = NULL;
        if (strcmp(name, "tower/revision") == 0)
            value = text("0123456789ab");
        else if (strcmp(name, "tower/processor") == 0)
            value = text("Abacus");
        else
            assert_ok(tw_checkpoint_read(checkpoint, name, &value, &error));
        tensors[i].tensor = value;
    }
    snprintf(directory, sizeof directory, "%s/forged", folder);
    assert_ok(tw_checkpoint_save(directory, "model.ckpt", 1, tensors, count, 0, &error));
    for (int i = 0; i < count; i++)
        tw_tensor_release((tw_tensor *)tensors[i].tensor);
    tw_checkpoint_close(checkpoint);

    trainer = open_trainer(go_on(&ground, directory));
    if (*tw_revision()) {
        snprintf(expected, sizeof expected, "revision %s instead of 0123456789ab", tw_revision());
        assert_non_null(strstr(tw_trainer_changes(trainer), expected));
    }
    if (*tw_processor_info().name) {
        snprintf(expected, sizeof expected, "processor (it may round otherwise) %s instead of Abacus",
                 tw_processor_info().name);
        assert_non_null(strstr(tw_trainer_changes(trainer), expected));
    }
    tw_trainer_destroy(trainer);
    remembered_close(&ground);
}

/* ---- graphs that cannot be made -------------------------------------------------------------------------------- */

static struct {
    size_t wanted; /* bytes of an allocation; 0: the first tells */
    int countdown; /* of those, until one fails; 0: none does */
} graphs;

static void *resize_but_no_graph(void *user, void *block, size_t bytes)
{
    (void)user;
    if (bytes == 0) {
        free(block);
        return NULL;
    }
    if (!graphs.wanted)
        graphs.wanted = bytes;
    if (!block && bytes == graphs.wanted && graphs.countdown > 0 && --graphs.countdown == 0)
        return NULL;
    return realloc(block, bytes);
}

/* The trainer makes two: its own, and one to try whether a GPU can count steps. */
static void trainer_without_memory_for_a_graph_fails_and_says_so(void **state)
{
    (void)state;
    remembered_ground ground = open_ground();
    remembered_run run = {"", {.towers = 2, .variables = {.update = TW_UPDATE_REPLICATED}}};
    tw_trainer_options options = remembered_options(&run, &ground);
    tw_set_allocator(resize_but_no_graph, NULL);
    tw_graph_destroy(tw_graph_create());
    assert_true(graphs.wanted > 0);
    for (int n = 1; n <= 2; n++) {
        tw_error error = {0};
        tw_trainer *trainer = NULL;
        graphs.countdown = n;
        assert_int_equal(tw_trainer_create(&options, &trainer, &error), TW_RESOURCE_EXHAUSTED);
        assert_null(trainer);
        assert_int_equal(graphs.countdown, 0);
        assert_non_null(strstr(error.message, "memory"));
    }
    tw_set_allocator(NULL, NULL);
    remembered_close(&ground);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoint_of_before_goes_on_as_it_would_have_then),
        cmocka_unit_test(asynchronous_checkpoint_of_before_is_understood),
        cmocka_unit_test(checkpoint_of_before_is_saved_again_by_names),
        cmocka_unit_test(every_choice_has_its_name_for_ever),
        cmocka_unit_test(what_no_trainer_writes_is_refused_by_its_key),
        cmocka_unit_test(another_revision_or_processor_is_named_and_not_refused),
        cmocka_unit_test(trainer_without_memory_for_a_graph_fails_and_says_so),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

/* What a trainer writes into checkpoints beside the variables (docs/checkpoint-keys.md): names, which mean the same
 * when the numbers of an enumeration change; and what revisions before there were names have written. */
#include "testing.h"
#include "faulty_memory.h"
#include "remembered_training.h"

#include <stdio.h>
#include <tower/io.h>
#include <unistd.h>

#include "golden/trainer_before.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.30s/test_checkpoint_keys_XXXXXX", base ? base : "/tmp");
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
    return (tw_trainer_options){.size = sizeof(tw_trainer_options),
                                .model = &remembered_model,
                                .dataset = ground->data,
                                .devices = ground->devices,
                                .resume_from = from};
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

/* Saves what a directory's latest checkpoint has once more, with other values under some keys, which are released. */
static void forge(const char *from, const char *to, const tw_named_tensor *others, int num_others)
{
    char path[512];
    tw_error error = {0};
    tw_checkpoint *checkpoint;
    tw_named_tensor tensors[64] = {{NULL}};
    assert_ok(tw_checkpoint_latest(from, path, sizeof path, NULL, &error));
    assert_ok(tw_checkpoint_open(path, &checkpoint, &error));
    int count = tw_checkpoint_count(checkpoint);
    assert_true(count <= 64);
    for (int i = 0; i < count; i++) {
        tw_tensor *value = NULL;
        tensors[i].name = tw_checkpoint_name(checkpoint, i);
        for (int k = 0; k < num_others; k++)
            if (strcmp(others[k].name, tensors[i].name) == 0)
                value = (tw_tensor *)others[k].tensor;
        if (!value)
            assert_ok(tw_checkpoint_read(checkpoint, tensors[i].name, &value, &error));
        tensors[i].tensor = value;
    }
    assert_ok(tw_checkpoint_save(to, "model.ckpt", 1, tensors, count, 0, &error));
    for (int i = 0; i < count; i++)
        tw_tensor_release((tw_tensor *)tensors[i].tensor);
    tw_checkpoint_close(checkpoint);
}

/* A directory with a checkpoint of the options, to which a name is given. */
static void save_run(const tw_trainer_options *options, const char *name, char directory[128])
{
    tw_error error = {0};
    tw_trainer *trainer = open_trainer(*options);
    snprintf(directory, 128, "%s/%s", folder, name);
    assert_ok(tw_trainer_save(trainer, directory, 0, &error));
    tw_trainer_destroy(trainer);
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

/* What comes of a checkpoint with nothing in it but one key. */
static tw_status go_on_from(const remembered_ground *ground, const char *key, tw_tensor *value, char message[2048])
{
    char directory[512];
    static int number;
    tw_error error = {0};
    tw_trainer *trainer = NULL;
    tw_named_tensor one = {key, value};
    snprintf(directory, sizeof directory, "%s/odd%d", folder, number++);
    assert_ok(tw_checkpoint_save(directory, "model.ckpt", 1, &one, 1, 0, &error));
    tw_tensor_release(value);
    tw_trainer_options options = go_on(ground, directory);
    tw_status status = tw_trainer_create(&options, &trainer, &error);
    snprintf(message, 2048, "%s", error.message);
    return status;
}

static void assert_refused(const remembered_ground *ground, const char *key, tw_tensor *value)
{
    char message[2048];
    assert_int_equal(go_on_from(ground, key, value, message), TW_DATA_LOSS);
    assert_non_null(strstr(message, key));
}

/* The key is understood: it is the variables that lack. */
static void assert_understood(const remembered_ground *ground, const char *key, tw_tensor *value)
{
    char message[2048];
    assert_int_equal(go_on_from(ground, key, value, message), TW_NOT_FOUND);
    assert_null(strstr(message, key));
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
    assert_refused(&ground, "tower/towers", tw_tensor_int64((1 << 20) + 1));
    assert_refused(&ground, "tower/towers", tw_tensor_float(2));
    assert_refused(&ground, "tower/towers", tw_tensor_from(TW_INT64, TW_SHAPE(2), (int64_t[]){2, 2}));
    assert_refused(&ground, "tower/seed", tw_tensor_from(TW_INT64, TW_SHAPE(0), (int64_t[]){0}));
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
    assert_refused(&ground, "tower/learning_rate", tw_tensor_float(0));
    assert_refused(&ground, "tower/learning_rate", tw_tensor_from(TW_FLOAT32, TW_SHAPE(2), (float[]){1, 1}));
    assert_refused(&ground, "tower/rate_factor", tw_tensor_float(0));
    assert_refused(&ground, "tower/rate_factor", tw_tensor_float(1.5f));
    assert_refused(&ground, "tower/rule", tw_tensor_int64(1));
    assert_refused(&ground, "tower/rule", tw_tensor_from(TW_STRING, TW_SHAPE(2), (tw_string[]){{"a", 1}, {"b", 1}}));
    assert_refused(&ground, "tower/rate_factor", text("1"));
    assert_understood(&ground, "tower/rate_factor", tw_tensor_float(1));
    static const int32_t shares[] = {3, 0, 1, (1 << 28) + 1, 4, 3, 2};
    assert_refused(&ground, "tower/shares", tw_tensor_from(TW_INT32, TW_SHAPE(3), shares + 4)); /* of two towers */
    assert_refused(&ground, "tower/shares", tw_tensor_from(TW_INT64, TW_SHAPE(2), (int64_t[]){3LL << 32 | 1, 4}));
    assert_refused(&ground, "tower/shares", tw_tensor_from(TW_INT32, TW_SHAPE(2), shares)); /* of no examples */
    assert_refused(&ground, "tower/shares", tw_tensor_from(TW_INT32, TW_SHAPE(2), shares + 1));
    assert_refused(&ground, "tower/shares", tw_tensor_from(TW_INT32, TW_SHAPE(2), shares + 2)); /* of too many */
    assert_understood(&ground, "tower/shares", tw_tensor_from(TW_INT32, TW_SHAPE(2), (int32_t[]){1, 3}));
    remembered_close(&ground);
}

/* ---- schedules ------------------------------------------------------------------------------------------------- */

/* "schedule=piecewise at=1 rate=1 at=2 ..." with so many rates, and something behind them. */
static tw_tensor *piecewise(int rates, const char *more)
{
    char words[4096];
    int used = snprintf(words, sizeof words, "schedule=piecewise");
    for (int i = 1; i <= rates; i++)
        used += snprintf(words + used, sizeof words - (size_t)used, " at=%d rate=1", i);
    snprintf(words + used, sizeof words - (size_t)used, "%s", more);
    return text(words);
}

static void words_of_a_schedule_are_those_that_a_trainer_writes(void **state)
{
    (void)state;
    static const char *const odd[] = {"length=", "length=3x", "length=1e19", "scale_rate=yes", "power", "=3", "at=x"},
                      *const good[] = {"", "length=1e18", "scale_rate=off", "factor=0.5 end=0.25", "power=2 warm_up=3"};
    remembered_ground ground = open_ground();
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        assert_refused(&ground, "tower/schedule", text(odd[i]));
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_understood(&ground, "tower/schedule", text(good[i]));
    assert_understood(&ground, "tower/schedule", piecewise(TW_MOST_RATES, ""));
    assert_refused(&ground, "tower/schedule", piecewise(TW_MOST_RATES, " at=17"));
    assert_refused(&ground, "tower/schedule", piecewise(TW_MOST_RATES, " rate=1"));
    char longest[200 + 60 * TW_MOST_RATES + 1] = "length=1"; /* and blanks, one more than there is room for */
    memset(longest + 8, ' ', sizeof longest - 9);
    assert_refused(&ground, "tower/schedule", text(longest));
    longest[sizeof longest - 2] = 0;
    assert_understood(&ground, "tower/schedule", text(longest));
    remembered_close(&ground);
}

static tw_tensor *numbers_with(int at, double value)
{
    double numbers[9 + 2 * TW_MOST_RATES] = {[0] = 4, [1] = 1, [8] = TW_MOST_RATES};
    numbers[at] = value;
    return tw_tensor_from(TW_FLOAT64, TW_SHAPE(sizeof numbers / sizeof *numbers), numbers);
}

static void numbers_of_a_schedule_are_those_that_a_trainer_wrote(void **state)
{
    (void)state;
    enum { LAST = 8 + 2 * TW_MOST_RATES };
    static const struct {
        int at;
        double value;
    } odd[] = {{0, 99},   {0, 1e7},  {0, 1e18},              {1, 99},   {1, 1e18},
               {2, -1},   {2, 1e19}, {8, TW_MOST_RATES + 1}, {LAST, -1}},
      good[] = {{0, 0}, {1, 0}, {2, 1e18}, {8, 0}, {LAST, 1e18}};
    remembered_ground ground = open_ground();
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        assert_refused(&ground, "tower/schedule", numbers_with(odd[i].at, odd[i].value));
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_understood(&ground, "tower/schedule", numbers_with(good[i].at, good[i].value));

    char before[128], forged[128], again[128], expected[2048];
    tw_error error = {0};
    double numbers[LAST + 1] = {5, 1, 2, 3, 4, 0.5, 6, 1, TW_MOST_RATES}; /* each where it belongs */
    int used = snprintf(expected, sizeof expected, "schedule=piecewise unit=steps length=2 factor=3 end=4 power=0.5 "
                                                   "warm_up=6 scale_rate=on");
    for (int i = 0; i < TW_MOST_RATES; i++) {
        numbers[9 + 2 * i] = 7 + 2 * i;
        numbers[10 + 2 * i] = 8 + 2 * i;
        used += snprintf(expected + used, sizeof expected - (size_t)used, " at=%d rate=%d", 7 + 2 * i, 8 + 2 * i);
    }
    remembered_run run = {"", {.towers = 2}};
    tw_trainer_options options = remembered_options(&run, &ground);
    save_run(&options, "words", before);
    snprintf(forged, sizeof forged, "%s/numbers", folder);
    snprintf(again, sizeof again, "%s/words_again", folder);
    forge(before, forged, &(tw_named_tensor){"tower/schedule", tw_tensor_from(TW_FLOAT64, TW_SHAPE(LAST + 1), numbers)},
          1);
    tw_trainer *trainer = open_trainer(go_on(&ground, forged));
    assert_ok(tw_trainer_save(trainer, again, 0, &error));
    tw_trainer_destroy(trainer);
    assert_string_equal(text_of(again, "tower/schedule"), expected);
    remembered_close(&ground);
}

static void what_a_run_goes_on_with_is_read_to_the_bit_and_only_changes_are_said(void **state)
{
    (void)state;
    tw_rule full = {.schedule = TW_SCHEDULE_PIECEWISE, .unit = TW_RATE_STEPS, .num_rates = TW_MOST_RATES,
                    .warm_up = 1.0 / 3, .scale_rate = true};
    for (int i = 0; i < TW_MOST_RATES; i++) {
        full.at[i] = 1 + i * (1 + 1e-15);
        full.rates[i] = 0.1f / (float)(i + 3);
    }
    const tw_rule rules[] = {full,
                             {.schedule = TW_SCHEDULE_EXPONENTIAL, .length = 7.1, .factor = 0.7f, .end = 0.01f},
                             {.schedule = TW_SCHEDULE_POLYNOMIAL, .length = 0.3, .end = 0.3f, .power = 1.1f},
                             {.warm_up = 0.1},
                             {.scale_rate = true}};
    remembered_ground ground = open_ground();
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char before[2048], from[512], again[512];
        tw_error error = {0};
        remembered_run run = {"", {.towers = 2, .learning_rate = 0.1f, .rule = rules[i]}};
        tw_trainer_options options = remembered_options(&run, &ground);
        tw_trainer *trainer = open_trainer(options);
        snprintf(from, sizeof from, "%s/rule%zu", folder, i);
        snprintf(again, sizeof again, "%s/again%zu", folder, i);
        assert_ok(tw_trainer_save(trainer, from, 0, &error));
        tw_trainer_destroy(trainer);
        snprintf(before, sizeof before, "%s", text_of(from, "tower/schedule"));

        trainer = open_trainer(go_on(&ground, from));
        assert_string_equal(tw_trainer_changes(trainer), "");
        assert_ok(tw_trainer_save(trainer, again, 0, &error));
        tw_trainer_destroy(trainer);
        assert_string_equal(text_of(again, "tower/schedule"), before);

        options.resume_from = from; /* the same is asked for once more */
        options.average.all_reduce = "tree";
        trainer = open_trainer(options);
        assert_string_equal(tw_trainer_changes(trainer), "");
        tw_trainer_destroy(trainer);

        options.rule = (tw_rule){.schedule = TW_SCHEDULE_CONSTANT};
        trainer = open_trainer(options);
        assert_non_null(strstr(tw_trainer_changes(trainer), "rate constant instead of "));
        tw_trainer_destroy(trainer);
    }
    remembered_close(&ground);
}

static void what_no_rule_has_is_refused_by_its_number(void **state)
{
    (void)state;
    tw_model without = remembered_model;
    without.learning_rate = 0;
    const struct {
        tw_trainer_options asked;
        const char *message;
    } rows[] = {
        {{.rule = {.schedule = (tw_schedule)99}}, "options.rule: there is no schedule 99 of unit 0"},
        {{.rule = {.unit = (tw_rate_unit)99}}, "options.rule: there is no schedule 0 of unit 99"},
        {{.rate_factor = -0.5f}, "options.rate_factor=-0.5: expected a number above 0 and at most 1"},
        {{.rate_factor = 1.5f}, "options.rate_factor=1.5: expected a number above 0 and at most 1"},
        {{.model = &without}, "options.learning_rate: model remembered has none, so one must be given"},
    };
    remembered_ground ground = open_ground();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tw_error error = {0};
        tw_trainer *trainer = NULL;
        remembered_run run = {"", rows[i].asked};
        tw_trainer_options options = remembered_options(&run, &ground);
        options.size = sizeof options;
        if (rows[i].asked.model)
            options.model = rows[i].asked.model;
        assert_int_equal(tw_trainer_create(&options, &trainer, &error), TW_INVALID_ARGUMENT);
        assert_string_equal(error.message, rows[i].message);
    }
    remembered_run run = {"", {.size = sizeof run.options, .rate_factor = 1}};
    tw_trainer_destroy(open_trainer(remembered_options(&run, &ground)));
    remembered_close(&ground);
}

/* ---- who made it ----------------------------------------------------------------------------------------------- */

static void another_revision_or_processor_is_named_and_not_refused(void **state)
{
    (void)state;
    char before[128], directory[128], expected[512];
    remembered_ground ground = open_ground();
    remembered_run run = {"", {.seed = 1}};
    tw_trainer_options options = remembered_options(&run, &ground);
    assert_string_equal(saved(&options, "tower/version"), tw_version());
    assert_string_equal(saved(&options, "tower/revision"), tw_revision());
    assert_string_equal(saved(&options, "tower/processor"), tw_processor_info().name);
    assert_null(strpbrk(tw_processor_info().name, "\n\t"));
    save_run(&options, "here", before);
    snprintf(directory, sizeof directory, "%s/forged", folder);
    forge(before, directory,
          (tw_named_tensor[]){{"tower/version", text("0.0.9")},
                              {"tower/revision", text("0123456789ab")},
                              {"tower/processor", text("Abacus")}},
          3);

    tw_trainer *trainer = open_trainer(go_on(&ground, directory));
    assert_non_null(strstr(tw_trainer_changes(trainer), "version " EXPECTED_VERSION " instead of 0.0.9"));
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

static void another_origin_is_refused_unless_it_may_change(void **state)
{
    (void)state;
    char from[128], message[600];
    tw_error error = {0};
    remembered_ground ground = open_ground(), other = {0};
    remembered_run run = {"", {.towers = 2}};
    tw_trainer_options options = remembered_options(&run, &ground);
    tw_trainer *trainer = NULL;
    save_run(&options, "origin", from);

    tw_model model = remembered_model;
    model.name = "forgotten";
    options = go_on(&ground, from);
    options.model = &model;
    options.accept_other_bits = true; /* which does not help */
    assert_int_equal(tw_trainer_create(&options, &trainer, &error), TW_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "was made by model remembered, but forgotten was asked for"));

    assert_ok(tw_dataset_synthetic(44, REMEMBERED_SIDE, REMEMBERED_SIDE, 1, 4, 4, &other.data, &error));
    options = go_on(&ground, from);
    options.dataset = other.data;
    assert_int_equal(tw_trainer_create(&options, &trainer, &error), TW_INVALID_ARGUMENT);
    snprintf(message, sizeof message,
             "was trained on synthetic (SHA-256 %.12s...), and this is another synthetic (%.12s..., 44 examples)",
             tw_dataset_digest(ground.data), tw_dataset_digest(other.data));
    assert_non_null(strstr(error.message, message));
    options.accept_other_bits = true;
    trainer = open_trainer(options);
    snprintf(message, sizeof message, "data set synthetic (SHA-256 %.12s...) instead of synthetic (%.12s...)",
             tw_dataset_digest(other.data), tw_dataset_digest(ground.data));
    assert_string_equal(tw_trainer_changes(trainer), message);
    tw_trainer_destroy(trainer);

    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .no_gpus = true}, &other.devices, &error));
    options = go_on(&ground, from);
    options.devices = other.devices;
    assert_int_equal(tw_trainer_create(&options, &trainer, &error), TW_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "on devices of kind virtual, and this run has cpu with 1 thread: sums"));
    options.accept_other_bits = true;
    trainer = open_trainer(options);
    assert_string_equal(tw_trainer_changes(trainer), "devices of kind cpu with 1 thread instead of virtual");
    tw_trainer_destroy(trainer);

    options = remembered_options(&run, &ground);
    options.tower_devices = (const char *const[]){"/gpu:0", "/cpu:0"};
    options.num_tower_devices = 2;
    assert_string_equal(saved(&options, "tower/devices"), "virtual and cpu with 1 thread");
    remembered_close(&other);
    remembered_close(&ground);
}

/* Another oneDNN, or the same with other instructions, adds in another order. */
static void another_arithmetic_is_refused_unless_it_may_change(void **state)
{
    (void)state;
    char from[128], old[128], older[128], message[400];
    tw_error error = {0};
    remembered_ground ground = open_ground();
    remembered_run run = {"", {.towers = 2}};
    tw_trainer_options options = remembered_options(&run, &ground);
    const char *now = tw_devices_info(ground.devices, 0).arithmetic;
    tw_trainer *trainer = NULL;
    options.tower_devices = (const char *const[]){"/cpu:0"};
    options.num_tower_devices = 1;
    assert_non_null(strstr(now, "oneDNN "));
    assert_string_equal(saved(&options, "tower/arithmetic"), now);
    save_run(&options, "arithmetic", from);
    snprintf(old, sizeof old, "%s/abacus", folder);
    snprintf(older, sizeof older, "%s/before", folder);
    forge(from, old, (tw_named_tensor[]){{"tower/arithmetic", text("an abacus")}}, 1);
    forge(from, older, (tw_named_tensor[]){{"tower/arithmetic", text("")}}, 1); /* as before there was the key */

    const char *names[] = {"/cpu:0"};
    options = go_on(&ground, old);
    options.tower_devices = names;
    options.num_tower_devices = 1;
    assert_int_equal(tw_trainer_create(&options, &trainer, &error), TW_INVALID_ARGUMENT);
    snprintf(message, sizeof message, "was made by arithmetic of an abacus, and this run has %s: sums would be", now);
    assert_non_null(strstr(error.message, message));
    options.accept_other_bits = true;
    trainer = open_trainer(options);
    snprintf(message, sizeof message, "arithmetic of %s instead of an abacus", now);
    assert_string_equal(tw_trainer_changes(trainer), message);
    tw_trainer_destroy(trainer);

    options = go_on(&ground, older);
    options.tower_devices = names;
    options.num_tower_devices = 1;
    trainer = open_trainer(options);
    assert_string_equal(tw_trainer_changes(trainer), "");
    tw_trainer_destroy(trainer);
    remembered_close(&ground);
}

static void origins_are_texts_of_at_most_255_bytes(void **state)
{
    (void)state;
    static const char *const keys[] = {"tower/model", "tower/data_digest", "tower/devices", "tower/data_set",
                                       "tower/version"};
    static const tw_string two[] = {{"a", 1}, {"b", 1}};
    char longest[257];
    remembered_ground ground = open_ground();
    memset(longest, 'x', 256);
    longest[256] = 0;
    for (int i = 0; i < 5; i++) {
        assert_refused(&ground, keys[i], tw_tensor_int64(1));
        assert_refused(&ground, keys[i], tw_tensor_from(TW_STRING, TW_SHAPE(2), two));
        assert_refused(&ground, keys[i], text(longest));
        if (i >= 3) /* others may be another */
            assert_understood(&ground, keys[i], text(longest + 1));
    }
    remembered_close(&ground);
}

/* ---- where it lies --------------------------------------------------------------------------------------------- */

static void a_run_begins_anew_only_where_there_is_no_checkpoint(void **state)
{
    (void)state;
    char from[128], path[160], odd[1024];
    tw_error error = {0};
    remembered_ground ground = open_ground();
    remembered_run run = {"", {.towers = 2, .seed = 5}};
    tw_trainer_options options = remembered_options(&run, &ground);
    save_run(&options, "there", from);
    snprintf(path, sizeof path, "%s/model.ckpt-0", from); /* a checkpoint's own path */
    tw_trainer *trainer = open_trainer(go_on(&ground, path));
    assert_int_equal(tw_trainer_seed(trainer), 5);
    tw_trainer_destroy(trainer);

    const char *const empty[] = {"nowhere", "empty"};
    snprintf(odd, sizeof odd, "mkdir '%s/empty'", folder);
    assert_int_equal(system(odd), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(odd, sizeof odd, "%s/%s", folder, empty[i]);
        trainer = open_trainer(go_on(&ground, odd));
        assert_int_equal(tw_trainer_seed(trainer), 1);
        tw_trainer_destroy(trainer);
    }

    snprintf(odd, sizeof odd, "cut -c 2- '%s.index' >'%s/cut' && mv '%s/cut' '%s.index'", path, folder, folder, path);
    assert_int_equal(system(odd), 0);
    const char *const damaged[] = {from, path};
    for (int i = 0; i < 2; i++) {
        options = go_on(&ground, damaged[i]);
        assert_int_equal(tw_trainer_create(&options, &trainer, &error), TW_DATA_LOSS);
        assert_non_null(strstr(error.message, "model.ckpt-0"));
    }
    remembered_close(&ground);
}

/* ---- what not every run has ------------------------------------------------------------------------------------ */

static bool has_key(const char *directory, const char *key)
{
    char path[512];
    tw_error error = {0};
    tw_checkpoint *checkpoint;
    assert_ok(tw_checkpoint_latest(directory, path, sizeof path, NULL, &error));
    assert_ok(tw_checkpoint_open(path, &checkpoint, &error));
    bool has = tw_checkpoint_find(checkpoint, key) >= 0;
    tw_checkpoint_close(checkpoint);
    return has;
}

static void keys_of_unusual_runs_are_of_these_alone(void **state)
{
    (void)state;
    char directory[128];
    remembered_ground ground = open_ground();
    remembered_run runs[] = {{"usual", {.towers = 2}},
                             {"unequal", {.towers = 2, .global_batch = 5}},
                             {"gone back", {.towers = 2, .rate_factor = 0.5f}}};
    for (int i = 0; i < 3; i++) {
        tw_trainer_options options = remembered_options(&runs[i], &ground);
        options.size = sizeof options;
        save_run(&options, runs[i].name, directory);
        assert_int_equal(has_key(directory, "tower/shares"), i == 1);
        assert_int_equal(has_key(directory, "tower/rate_factor"), i == 2);
    }
    remembered_close(&ground);
}

/* As in the tutorial, where the checkpoint of the first step has a 0 in its name. */
static void checkpoints_of_the_tutorial_are_named_after_the_step_before(void **state)
{
    (void)state;
    remembered_ground ground = open_ground();
    for (int as_tutorial = 0; as_tutorial < 2; as_tutorial++) {
        remembered_run run = {"", {.size = sizeof run.options, .towers = 2, .as_tutorial = as_tutorial}};
        tw_trainer *trainer = open_trainer(remembered_options(&run, &ground));
        assert_int_equal(tw_trainer_checkpoint_step(trainer), 0);
        for (int step = 1; step <= 2; step++) {
            tw_error error = {0};
            tw_trainer_step_result result;
            assert_ok(tw_trainer_step(trainer, &result, &error));
            assert_int_equal(tw_trainer_checkpoint_step(trainer), step - as_tutorial);
        }
        tw_trainer_destroy(trainer);
    }
    remembered_close(&ground);
}

/* ---- memory that runs out -------------------------------------------------------------------------------------- */

static void what_memory_lacks_for_is_not_called_saved(void **state)
{
    (void)state;
    char directory[128], path[512];
    int tried = 0;
    remembered_ground ground = open_ground();
    remembered_run run = {"", {.size = sizeof run.options, .towers = 2, .global_batch = 5, .rate_factor = 0.5f}};
    tw_trainer *trainer = open_trainer(remembered_options(&run, &ground));
    for (bool failed = true; failed; tried += failed) {
        tw_error error = {0};
        snprintf(directory, sizeof directory, "%s/scarce%d", folder, tried);
        fail_at_new_place();
        tw_status status = tw_trainer_save(trainer, directory, 0, &error);
        failed = stop_failing_allocations();
        if (status != TW_OK)
            assert_int_equal(status, TW_RESOURCE_EXHAUSTED);
        else
            assert_ok(tw_checkpoint_latest(directory, path, sizeof path, NULL, &error));
    }
    assert_true(tried > 20);
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
        cmocka_unit_test(words_of_a_schedule_are_those_that_a_trainer_writes),
        cmocka_unit_test(numbers_of_a_schedule_are_those_that_a_trainer_wrote),
        cmocka_unit_test(what_a_run_goes_on_with_is_read_to_the_bit_and_only_changes_are_said),
        cmocka_unit_test(what_no_rule_has_is_refused_by_its_number),
        cmocka_unit_test(another_revision_or_processor_is_named_and_not_refused),
        cmocka_unit_test(another_origin_is_refused_unless_it_may_change),
        cmocka_unit_test(another_arithmetic_is_refused_unless_it_may_change),
        cmocka_unit_test(origins_are_texts_of_at_most_255_bytes),
        cmocka_unit_test(a_run_begins_anew_only_where_there_is_no_checkpoint),
        cmocka_unit_test(keys_of_unusual_runs_are_of_these_alone),
        cmocka_unit_test(checkpoints_of_the_tutorial_are_named_after_the_step_before),
        cmocka_unit_test(what_memory_lacks_for_is_not_called_saved),
        cmocka_unit_test(trainer_without_memory_for_a_graph_fails_and_says_so),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

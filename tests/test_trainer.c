/* The trainer: the same bits on any devices, resuming, diverging, summaries, evaluation. label: threads */
#define _GNU_SOURCE /* memmem */
#include "testing.h"
#include "faulty_files.h"
#include "small_model.h"

#include <tower/explain.h>
#include <tower/models.h>

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

/* A small run: random images, the tutorial's network where none is given, few examples a tower. */
typedef struct run {
    tw_dataset *dataset;
    tw_devices *devices;
    tw_trainer *trainer;
    float loss;
} run;

/* Options that are 0 are filled in. */
static run start_as(tw_trainer_options options, int gpus)
{
    run r = {0};
    tw_error error = {0};
    options.model = options.model ? options.model : tw_model_find("cifar10");
    int side = options.model->channels == 3 ? 32 : 28;
    assert_ok(tw_dataset_synthetic(64, side, side, options.model->channels, 10, 5, &r.dataset, &error));
    assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = gpus}, &r.devices, &error));
    options.dataset = r.dataset;
    options.devices = r.devices;
    options.seed = 7;
    assert_ok(tw_trainer_create(&options, &r.trainer, &error));
    return r;
}

static run start_fed(tw_trainer_input input, int batch, int towers, int gpus, const char *resume_from)
{
    return start_as((tw_trainer_options){.towers = towers, .batch = batch, .input = input, .resume_from = resume_from},
                    gpus);
}

static run start_with(int batch, int towers, int gpus, const char *resume_from)
{
    return start_fed(TW_INPUT_PIPELINE, batch, towers, gpus, resume_from);
}

static run start(int towers, int gpus, const char *resume_from)
{
    return start_with(2, towers, gpus, resume_from);
}

static void step(run *r, int steps)
{
    tw_error error = {0};
    tw_trainer_step_result result;
    for (int i = 0; i < steps; i++) {
        assert_ok(tw_trainer_step(r->trainer, &result, &error));
        r->loss = result.loss;
    }
}

static void finish(run *r)
{
    tw_trainer_destroy(r->trainer);
    tw_devices_destroy(r->devices);
    tw_dataset_destroy(r->dataset);
}

/* Saves the run and reads the bytes of the checkpoint's data back. */
static char *saved_bytes(run *r, size_t *size)
{
    char path[400];
    const char *folder = scratch_folder();
    tw_error error = {0};
    assert_ok(tw_trainer_save(r->trainer, folder, 5, &error));
    snprintf(path, sizeof path, "%s/model.ckpt-%lld.data-00000-of-00001", folder,
             (long long)tw_trainer_steps_done(r->trainer));
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = malloc(20 << 20);
    *size = fread(bytes, 1, 20 << 20, file);
    fclose(file);
    remove_scratch(folder);
    return bytes;
}

static void assert_equal_checkpoints(run *a, run *b)
{
    size_t size_a, size_b;
    char *bytes_a = saved_bytes(a, &size_a), *bytes_b = saved_bytes(b, &size_b);
    assert_int_equal(size_a, size_b);
    assert_memory_equal(bytes_a, bytes_b, size_a);
    free(bytes_a);
    free(bytes_b);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void the_tutorials_network_has_its_1068298_parameters(void **state)
{
    (void)state;
    run r = start(1, 1, NULL);
    assert_int_equal(tw_trainer_parameters(r.trainer), 1068298);
    finish(&r);
}

/* ln 10 for the guess, and the decay of two matrices of truncated normals: 4.6756; fresh logits are near zero, so that
 * 32 examples stray by hundredths. */
static void the_first_loss_is_the_closed_forms(void **state)
{
    (void)state;
    for (int towers = 1; towers <= 4; towers += 3) {
        run r = start_with(32 / towers, towers, 2, NULL);
        step(&r, 1);
        assert_true(fabs(r.loss - 4.6756) < 0.05);
        finish(&r);
    }
}

static void eight_towers_give_the_same_bits_on_1_2_3_4_and_8_devices(void **state)
{
    (void)state;
    run one = start(8, 1, NULL);
    step(&one, 3);
    static const int gpus[] = {4, 2, 3, 8};
    for (int i = 0; i < (UNDER_SANITIZER ? 1 : 4); i++) {
        run many = start(8, gpus[i], NULL);
        step(&many, 3);
        assert_equal_checkpoints(&one, &many);
        finish(&many);
    }
    finish(&one);
}

static void a_run_that_stopped_goes_on_to_the_bit_on_other_devices(void **state)
{
    (void)state;
    const char *folder = scratch_folder();
    tw_error error = {0};
    run whole = start(4, 4, NULL), first = start(4, 2, NULL);
    step(&whole, 5);
    step(&first, 2);
    assert_ok(tw_trainer_save(first.trainer, folder, 5, &error));
    finish(&first);
    run second = start(0, 3, folder);
    assert_int_equal(tw_trainer_steps_done(second.trainer), 2);
    assert_int_equal(tw_trainer_towers(second.trainer), 4);
    step(&second, 3);
    assert_equal_checkpoints(&whole, &second);
    finish(&second);
    finish(&whole);
    remove_scratch(folder);
}

static void a_resumed_run_with_other_settings_is_refused_by_name(void **state)
{
    (void)state;
    const char *folder = scratch_folder();
    tw_error error = {0};
    run r = start(2, 2, NULL);
    step(&r, 1);
    assert_ok(tw_trainer_save(r.trainer, folder, 5, &error));
    tw_trainer *other;
    tw_trainer_options options = {
        .model = tw_model_find("cifar10"), .dataset = r.dataset, .devices = r.devices, .towers = 3, .resume_from = folder};
    assert_fails(tw_trainer_create(&options, &other, &error), TW_INVALID_ARGUMENT,
                 "was made with number of towers 2, but 3 was asked for");
    options = (tw_trainer_options){
        .model = tw_model_find("cifar10"), .dataset = r.dataset, .devices = r.devices, .batch = 5, .resume_from = folder};
    assert_fails(tw_trainer_create(&options, &other, &error), TW_INVALID_ARGUMENT,
                 "was made with batch size per tower 2, but 5 was asked for");
    finish(&r);
    remove_scratch(folder);
}

static void steps_in_a_row_are_the_same_steps(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_trainer_step_result result;
    run one_by_one = start(3, 2, NULL), in_a_row = start(3, 2, NULL);
    step(&one_by_one, 5);
    assert_ok(tw_trainer_run_steps(in_a_row.trainer, 1, &result, &error));
    assert_ok(tw_trainer_run_steps(in_a_row.trainer, 4, &result, &error));
    assert_int_equal(result.step, 4);
    assert_int_equal(tw_trainer_steps_done(in_a_row.trainer), 5);
    assert_true(result.loss == one_by_one.loss);
    assert_equal_checkpoints(&one_by_one, &in_a_row);
    assert_fails(tw_trainer_run_steps(in_a_row.trainer, 0, &result, &error), TW_INVALID_ARGUMENT,
                 "0 steps: expected at least 1");
    finish(&one_by_one);
    finish(&in_a_row);
}

static void a_loss_that_is_no_number_is_named_with_step_and_tower(void **state)
{
    (void)state;
    tw_error error = {0};
    run r = start(2, 2, NULL);
    tw_tensor *poison = tw_tensor_create(TW_FLOAT32, TW_SHAPE(10));
    ((float *)tw_tensor_data(poison))[3] = NAN;
    const tw_variable *biases = tw_graph_find_variable(tw_trainer_graph(r.trainer), "softmax_linear/biases");
    step(&r, 1);
    assert_ok(tw_session_set_variable(tw_trainer_session(r.trainer), biases, poison, &error));
    tw_trainer_step_result result;
    assert_fails(tw_trainer_step(r.trainer, &result, &error), TW_OUT_OF_RANGE,
                 "Model diverged with loss = NaN at step 1 in tower_0");
    assert_fails(tw_trainer_run_steps(r.trainer, 3, &result, &error), TW_OUT_OF_RANGE,
                 "Model diverged with loss = NaN at step 3, or up to 2 before, in tower_0");
    tw_tensor_release(poison);
    finish(&r);
}

/* ---- when numbers go wrong ---- */

/* A rate at which the first updates make numbers that none can hold. */
static tw_trainer_options wild(run *r, const char *resume_from)
{
    return (tw_trainer_options){.size = sizeof(tw_trainer_options),
                                .model = tw_model_find("mnist"),
                                .dataset = r->dataset,
                                .devices = r->devices,
                                .towers = 2,
                                .batch = 2,
                                .seed = 7,
                                .learning_rate = 1e5f,
                                .resume_from = resume_from};
}

static void the_node_that_made_the_first_nan_is_found(void **state)
{
    (void)state;
    tw_error error = {0}, found = {0};
    tw_trainer_step_result result;
    run r = start_as(
        (tw_trainer_options){.model = tw_model_find("mnist"), .towers = 2, .batch = 2, .learning_rate = 1e5f}, 2);
    tw_trainer_options options = wild(&r, NULL);
    int64_t good = 0;
    while (tw_trainer_step(r.trainer, &result, &error) == TW_OK && good < 10)
        good++;
    assert_int_equal(error.status, TW_OUT_OF_RANGE);
    char step[32], since[32];
    snprintf(step, sizeof step, "step %lld: ", (long long)good);
    assert_ok(tw_trainer_find_divergence(&options, good, good, &found, &error));
    assert_int_equal(found.status, TW_OUT_OF_RANGE);
    assert_message(found.message, step);
    assert_message(found.message, ": node 'tower_");
    assert_message(found.message, "it takes '");
    /* one that asks too late is led to the beginning */
    snprintf(since, sizeof since, "%s", step);
    found = (tw_error){0};
    assert_ok(tw_trainer_find_divergence(&options, good + 3, good + 3, &found, &error));
    assert_message(found.message, since);
    /* and of a run where nothing is wrong it is said */
    options.learning_rate = 1e-4f;
    assert_ok(tw_trainer_find_divergence(&options, 1, 2, &found, &error));
    assert_int_equal(found.status, TW_OK);
    finish(&r);
}

static void a_run_that_diverges_goes_back_to_what_was_saved_with_a_lower_rate(void **state)
{
    (void)state;
    const char *folder = scratch_folder();
    tw_error error = {0};
    tw_trainer_step_result result;
    run r = start_as(
        (tw_trainer_options){.model = tw_model_find("mnist"), .towers = 2, .batch = 2, .learning_rate = 1e5f}, 2);
    char text[256];
    tw_trainer_options options = wild(&r, NULL);
    assert_ok(tw_trainer_save(r.trainer, folder, 5, &error));
    for (int i = 0; i < 10 && tw_trainer_step(r.trainer, &result, &error) == TW_OK; i++)
        ;
    assert_int_equal(error.status, TW_OUT_OF_RANGE);
    assert_fails(tw_trainer_save(r.trainer, folder, 5, &error), TW_OUT_OF_RANGE, "is not finite, nothing is saved");
    assert_fails(tw_trainer_roll_back(&r.trainer, &options, folder, 2, &error), TW_INVALID_ARGUMENT,
                 "factor 2: expected");
    assert_ok(tw_trainer_roll_back(&r.trainer, &options, folder, 0.5f, &error));
    assert_int_equal(tw_trainer_steps_done(r.trainer), 0);
    assert_message(tw_trainer_rate_text(r.trainer, text, sizeof text), "100000; all times 0.5 since the run went back");
    assert_ok(tw_trainer_roll_back(&r.trainer, &options, folder, 1e-9f, &error));
    step(&r, 2);
    assert_ok(tw_trainer_save(r.trainer, folder, 5, &error)); /* remembers that, whatever the options say of the rate */
    tw_trainer_destroy(r.trainer);
    options.resume_from = folder;
    assert_ok(tw_trainer_create(&options, &r.trainer, &error));
    assert_int_equal(tw_trainer_steps_done(r.trainer), 2);
    assert_message(tw_trainer_rate_text(r.trainer, text, sizeof text),
                   "100000; all times 5e-10 since the run went back");
    finish(&r);
    remove_scratch(folder);
}

/* A bit of what tower 1 holds flips. */
static void flip(run *r, const tw_variable *copy)
{
    tw_error error = {0};
    tw_tensor *value = NULL;
    assert_ok(tw_session_get_variable(tw_trainer_session(r->trainer), copy, &value, &error));
    ((uint32_t *)tw_tensor_data(value))[tw_tensor_elements(value) / 2] ^= 1;
    assert_ok(tw_session_set_variable(tw_trainer_session(r->trainer), copy, value, &error));
    tw_tensor_release(value);
}

static void a_replica_that_differs_by_a_bit_is_named_with_tensor_step_and_device(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_trainer_step_result result;
    tw_trainer_options options = {.size = sizeof options,
                                  .model = small_model("mnist"),
                                  .towers = 2,
                                  .batch = 2,
                                  .check_replicas = 3,
                                  .variables = {.update = TW_UPDATE_REPLICATED}};
    run r = start_as(options, 2);
    tw_graph *g = tw_trainer_graph(r.trainer);
    const tw_variable *copy = NULL;
    for (int i = 0; i < tw_graph_num_variables(g) && !copy; i++) {
        const tw_variable *v = tw_graph_variable(g, i);
        copy =
            v->copy_of && v->copy_of->trainable && v->shape.rank == 4 ? v : NULL; /* a bias of zero would swallow it */
    }
    assert_non_null(copy);
    assert_ok(tw_trainer_run_steps(r.trainer, 4, &result, &error));
    flip(&r, copy);
    assert_fails(tw_trainer_run_steps(r.trainer, 6, &result, &error), TW_DATA_LOSS,
                 "step 5: towers hold different values of '");
    assert_int_equal(tw_trainer_steps_done(r.trainer), 6);
    assert_message(error.message, copy->copy_of->name);
    assert_message(error.message, copy->name);
    assert_message(error.message, "/device:GPU:1");
    finish(&r);
    r = start(1, 1, NULL);
    tw_trainer *other;
    options = (tw_trainer_options){.size = sizeof options,
                                   .model = tw_model_find("cifar10"),
                                   .dataset = r.dataset,
                                   .devices = r.devices,
                                   .check_replicas = 1};
    assert_fails(tw_trainer_create(&options, &other, &error), TW_INVALID_ARGUMENT,
                 "with parameter_server there are none that must agree");
    finish(&r);
}

static void from_the_second_step_on_nothing_is_allocated(void **state)
{
    (void)state;
    run r = start(2, 2, NULL);
    step(&r, 2);
    int64_t before = tw_allocation_count();
    step(&r, 3);
    assert_int_equal(tw_allocation_count(), before);
    finish(&r);
}

static void steps_with_summaries_train_exactly_like_steps_without(void **state)
{
    (void)state;
    const char *folder = scratch_folder();
    tw_error error = {0};
    tw_event_writer *events;
    tw_trainer_step_result result;
    run plain = start(2, 2, NULL), summed = start(2, 2, NULL);
    assert_ok(tw_event_writer_create(folder, &events, &error));
    step(&plain, 3);
    step(&summed, 1);
    assert_ok(tw_trainer_step_with_summaries(summed.trainer, events, &result, &error));
    assert_int_equal(result.step, 1);
    step(&summed, 1);
    assert_ok(tw_event_writer_close(events, &error));
    assert_equal_checkpoints(&plain, &summed);
    finish(&plain);
    finish(&summed);
    remove_scratch(folder);
}

static void assert_in_file(const char *path, const char *text, bool expected)
{
    static char bytes[1 << 20];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    if ((memmem(bytes, size, text, strlen(text)) != NULL) != expected)
        fail_msg("\"%s\" is %s the event file", text, expected ? "missing from" : "in");
}

/* So that TensorBoard opens on the loss: groups are sorted by name. */
static void curves_of_training_come_before_those_of_units(void **state)
{
    (void)state;
    static const char *const tags[] = {"train/loss", "train/learning_rate", "train/towers/1/total_loss",
                                       "train/local3/weight_loss", "units/conv1/conv1/sparsity"};
    const char *folder = scratch_folder();
    tw_error error = {0};
    tw_event_writer *events;
    tw_trainer_step_result result;
    run r = start(2, 2, NULL);
    assert_ok(tw_event_writer_create(folder, &events, &error));
    assert_ok(tw_trainer_step_with_summaries(r.trainer, events, &result, &error));
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        assert_in_file(tw_event_writer_path(events), tags[i], true);
    assert_ok(tw_event_writer_close(events, &error));
    finish(&r);
    remove_scratch(folder);
}

/* The graph's first page in TensorBoard. */
static void averages_of_gradients_stand_in_a_scope_of_their_own(void **state)
{
    (void)state;
    run r = start(2, 2, NULL);
    tw_graph *g = tw_trainer_graph(r.trainer);
    int top = 0;
    for (int i = 0; i < tw_graph_num_nodes(g); i++)
        top += !strchr(tw_node_name(tw_graph_node(g, i)), '/');
    assert_in_range(top, 1, 10);
    finish(&r);
}

static void summaries_have_the_tutorials_tags_if_asked_without_the_towers_name(void **state)
{
    (void)state;
    static const char *const tags[] = {
        "total_loss",          "learning_rate",           "cross_entropy",           "local3/weight_loss",
        "local4/weight_loss",  "conv1/weights",           "conv1/weights/gradients", "softmax_linear/biases",
        "images/image/1",
        "conv1/conv1/sparsity", "local4/local4/activations", "softmax_linear/softmax_linear/activations",
    };
    const char *folder = scratch_folder();
    tw_error error = {0};
    tw_event_writer *events;
    tw_trainer_step_result result;
    run r = start_as(
        (tw_trainer_options){.size = sizeof(tw_trainer_options), .towers = 2, .batch = 2, .as_tutorial = true}, 2);
    assert_ok(tw_event_writer_create(folder, &events, &error));
    assert_ok(tw_trainer_step_with_summaries(r.trainer, events, &result, &error));
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        assert_in_file(tw_event_writer_path(events), tags[i], true);
    assert_in_file(tw_event_writer_path(events), "train/", false);
    assert_in_file(tw_event_writer_path(events), "tower_1", false);
    assert_ok(tw_event_writer_close(events, &error));
    finish(&r);
    remove_scratch(folder);
}

static void evaluation_looks_at_every_example_once(void **state)
{
    (void)state;
    const char *folder = scratch_folder();
    tw_error error = {0};
    tw_evaluation averaged, raw;
    run r = start(1, 1, NULL);
    step(&r, 2);
    assert_ok(tw_trainer_save(r.trainer, folder, 5, &error));
    assert_ok(tw_evaluate(tw_model_find("cifar10"), r.dataset, folder, NULL, NULL, &averaged, &error));
    assert_ok(tw_evaluate(tw_model_find("cifar10"), r.dataset, folder, NULL, &(tw_evaluation_options){.raw = true},
                          &raw, &error));
    assert_int_equal(averaged.examples, 64);
    assert_int_equal(averaged.step, 2);
    assert_true(averaged.used_averages && !raw.used_averages);
    assert_true(averaged.precision == averaged.correct / 64.0);
    finish(&r);
    remove_scratch(folder);
}

static void a_data_set_of_the_wrong_size_is_refused(void **state)
{
    (void)state;
    tw_error error = {0};
    static const struct {
        const char *model;
        int height, width, channels, classes;
        const char *message;
    } rows[] = {
        {"cifar10", 28, 28, 1, 10, "model cifar10 takes 24x24x3"},
        {"mnist", 27, 28, 1, 10, "gives 27x28x1"},
        {"mnist", 28, 27, 1, 10, "gives 28x27x1"},
        {"mnist", 28, 28, 3, 10, "gives 28x28x3"},
        {"mnist", 28, 28, 1, 11, "gives 28x28x1 of 11"},
    };
    tw_devices *devices;
    assert_ok(tw_devices_create(NULL, &devices, &error));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tw_dataset *d;
        tw_trainer *trainer;
        assert_ok(tw_dataset_synthetic(8, rows[i].height, rows[i].width, rows[i].channels, rows[i].classes, 1, &d,
                                       &error));
        tw_trainer_options options = {.model = tw_model_find(rows[i].model), .dataset = d, .devices = devices,
                                      .batch = 1};
        assert_fails(tw_trainer_create(&options, &trainer, &error), TW_INVALID_ARGUMENT, rows[i].message);
        tw_dataset_destroy(d);
    }
    tw_devices_destroy(devices);
}

/* Equal bits say that each tower took exactly one batch at each step, and which one. Both runs begin with the variables
 * of a third: first values depend on how many nodes there are before a variable. */
static void one_prefetch_queue_gives_every_tower_the_batch_that_the_pipeline_gives_it(void **state)
{
    (void)state;
    size_t size[2];
    tw_error error = {0};
    const char *folder = scratch_folder();
    run first = start(3, 1, NULL);
    assert_ok(tw_trainer_save(first.trainer, folder, 1, &error));
    finish(&first);
    run straight = start(3, 2, folder), queued = start_fed(TW_INPUT_PREFETCH, 2, 3, 2, folder);
    remove_scratch(folder);
    const tw_node *queue = tw_graph_find(tw_trainer_graph(queued.trainer), "tower_0/prefetch_queue/fifo_queue");
    assert_non_null(queue);
    assert_int_equal(tw_node_attr(queue, "capacity")->i, 2 * 3);
    step(&straight, 4);
    step(&queued, 4);
    char *a = saved_bytes(&straight, &size[0]), *b = saved_bytes(&queued, &size[1]);
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(a, b, size[0]);
    free(a);
    free(b);
    finish(&straight);
    finish(&queued);
}

static void queues_of_towers_give_the_same_bits_in_every_run_and_go_on_when_resumed(void **state)
{
    (void)state;
    tw_error error = {0};
    for (int shared = 0; shared < 2; shared++) {
        tw_trainer_input input = shared ? TW_INPUT_PREFETCH : TW_INPUT_QUEUES;
        const char *folder = scratch_folder();
        size_t size[2];
        run whole = start_fed(input, 2, 2, 2, NULL), part = start_fed(input, 2, 2, 1, NULL);
        step(&whole, 4);
        step(&part, 2);
        assert_ok(tw_trainer_save(part.trainer, folder, 1, &error));
        finish(&part);
        part = start_fed(input, 2, 2, 2, folder);
        step(&part, 2);
        char *a = saved_bytes(&whole, &size[0]), *b = saved_bytes(&part, &size[1]);
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(a, b, size[0]);
        free(a);
        free(b);
        finish(&whole);
        finish(&part);
        remove_scratch(folder);
    }
}

/* ---- batches made on devices ------------------------------------------------------------------------------------ */

static run start_on(tw_input_place place, const char *model, int gpus, const char *resume_from)
{
    static const int unequal[] = {3, 2, 2};
    return start_as((tw_trainer_options){.model = small_model(model), .input_place = place, .towers = 3,
                                         .global_batch = 7, .tower_shares = unequal, .num_tower_shares = 3,
                                         .resume_from = resume_from}, gpus);
}

/* With unequal towers; the same files, whoever made the batches. */
static void batches_made_on_devices_train_to_the_same_bits(void **state)
{
    (void)state;
    static const char *const models[] = {"cifar10", "resnet20", "mnist"};
    for (int i = 0; i < 3; i++) {
        run host = start_on(TW_INPUT_ON_HOST, models[i], 2, NULL),
            device = start_on(TW_INPUT_ON_DEVICE, models[i], 2, NULL);
        assert_int_equal(tw_trainer_input_place(host.trainer), TW_INPUT_ON_HOST);
        assert_int_equal(tw_trainer_input_place(device.trainer), TW_INPUT_ON_DEVICE);
        for (int k = 0; k < 2; k++) {
            step(&host, 1);
            step(&device, 1);
            assert_true(host.loss == device.loss);
        }
        assert_equal_checkpoints(&host, &device);
        finish(&host);
        finish(&device);
    }
}

static void batches_made_on_devices_go_on_where_a_run_stopped(void **state)
{
    (void)state;
    const char *folder = scratch_folder();
    tw_error error = {0};
    run whole = start_on(TW_INPUT_ON_DEVICE, "cifar10", 3, NULL),
        part = start_on(TW_INPUT_ON_DEVICE, "cifar10", 2, NULL);
    step(&whole, 4);
    step(&part, 2);
    assert_ok(tw_trainer_save(part.trainer, folder, 1, &error));
    finish(&part);
    run host = start_on(TW_INPUT_ON_HOST, "cifar10", 1, folder),
        device = start_on(TW_INPUT_ON_DEVICE, "cifar10", 1, folder);
    remove_scratch(folder);
    step(&host, 2);
    step(&device, 2);
    assert_equal_checkpoints(&whole, &host);
    assert_equal_checkpoints(&whole, &device);
    finish(&whole);
    finish(&host);
    finish(&device);
}

/* Of the step that runs, also where its updates are those of the step before. */
static void batches_made_on_devices_suit_every_mode_of_update(void **state)
{
    (void)state;
    static const tw_variable_options modes[] = {{.update = TW_UPDATE_REPLICATED}, {.staged = true}, {.update = TW_UPDATE_REPLICATED, .consistency = TW_CONSISTENCY_RELAXED}};
    for (int i = 0; i < 3; i++) {
        tw_trainer_options options = {.towers = 2, .batch = 2, .variables = modes[i]};
        options.input_place = TW_INPUT_ON_HOST;
        run host = start_as(options, 2);
        options.input_place = TW_INPUT_ON_DEVICE;
        run device = start_as(options, 2);
        step(&host, 4);
        step(&device, 4);
        assert_equal_checkpoints(&host, &device);
        finish(&host);
        finish(&device);
    }
}

static int64_t held(const run *r, int device)
{
    return (int64_t)tw_devices_info(r->devices, device).memory_used;
}

static void a_data_set_on_a_device_is_planned_to_the_byte_and_copied_once(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_memory *memory;
    run r = start_on(TW_INPUT_ON_DEVICE, "cifar10", 2, NULL);
    step(&r, 2);
    int64_t before = tw_allocation_count();
    step(&r, 2);
    assert_int_equal(tw_allocation_count(), before);
    assert_ok(tw_session_memory(tw_trainer_session(r.trainer), &memory, &error));
    for (int d = 1; d < 3; d++) {
        int64_t data = 0;
        for (int i = 0; i < memory->devices[d].num_items; i++)
            if (memory->devices[d].items[i].op && strcmp(memory->devices[d].items[i].op, "TowerData") == 0)
                data += memory->devices[d].items[i].bytes;
        assert_int_equal(data, 64 * (32 * 32 * 3 + 4));
        assert_int_equal(memory->devices[d].total, held(&r, d));
    }
    tw_memory_destroy(memory);
    finish(&r);
}

static void a_batch_that_is_repeated_is_the_same_wherever_it_is_made(void **state)
{
    (void)state;
    run host = start_as((tw_trainer_options){.batch = 2, .repeat_batch = true}, 1);
    run device = start_as((tw_trainer_options){.batch = 2, .repeat_batch = true, .input_place = TW_INPUT_ON_DEVICE}, 1);
    run other = start_as((tw_trainer_options){.batch = 2, .input_place = TW_INPUT_ON_DEVICE}, 1);
    step(&host, 3);
    step(&device, 3);
    step(&other, 3);
    assert_true(host.loss == device.loss && host.loss != other.loss);
    finish(&host);
    finish(&device);
    finish(&other);
}

static void what_devices_cannot_make_is_refused(void **state)
{
    (void)state;
    tw_error error = {0};
    run r = start(2, 2, NULL); /* virtual GPUs are no cards */
    assert_int_equal(tw_trainer_input_place(r.trainer), TW_INPUT_ON_HOST);
    tw_trainer *other;
    tw_trainer_options options = {.model = tw_model_find("cifar10"), .dataset = r.dataset, .devices = r.devices,
                                  .batch = 2, .input_place = TW_INPUT_ON_DEVICE};
    for (int i = 0; i < 2; i++) {
        tw_trainer_options asked = options;
        asked.input = i == 0 ? TW_INPUT_QUEUES : TW_INPUT_PIPELINE;
        asked.updates = i == 1 ? TW_UPDATES_ASYNCHRONOUS : 0;
        assert_fails(tw_trainer_create(&asked, &other, &error), TW_INVALID_ARGUMENT,
                     "devices make batches of one stream");
    }
    options.model = tw_model_find("mnist");
    assert_fails(tw_trainer_create(&options, &other, &error), TW_INVALID_ARGUMENT,
                 "model mnist takes 28x28x1 images of at most 10 classes; data set synthetic gives 32x32x3 of 10");
    finish(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        unthreaded_test(the_tutorials_network_has_its_1068298_parameters),
        unthreaded_test(the_first_loss_is_the_closed_forms),
        cmocka_unit_test(eight_towers_give_the_same_bits_on_1_2_3_4_and_8_devices),
        unthreaded_test(a_run_that_stopped_goes_on_to_the_bit_on_other_devices),
        unthreaded_test(a_resumed_run_with_other_settings_is_refused_by_name),
        cmocka_unit_test(steps_in_a_row_are_the_same_steps),
        unthreaded_test(a_loss_that_is_no_number_is_named_with_step_and_tower),
        unthreaded_test(the_node_that_made_the_first_nan_is_found),
        unthreaded_test(a_run_that_diverges_goes_back_to_what_was_saved_with_a_lower_rate),
        cmocka_unit_test(a_replica_that_differs_by_a_bit_is_named_with_tensor_step_and_device),
        cmocka_unit_test(from_the_second_step_on_nothing_is_allocated),
        cmocka_unit_test(steps_with_summaries_train_exactly_like_steps_without),
        unthreaded_test(curves_of_training_come_before_those_of_units),
        cmocka_unit_test(averages_of_gradients_stand_in_a_scope_of_their_own),
        unthreaded_test(summaries_have_the_tutorials_tags_if_asked_without_the_towers_name),
        unthreaded_test(evaluation_looks_at_every_example_once),
        cmocka_unit_test(a_data_set_of_the_wrong_size_is_refused),
        cmocka_unit_test(one_prefetch_queue_gives_every_tower_the_batch_that_the_pipeline_gives_it),
        cmocka_unit_test(queues_of_towers_give_the_same_bits_in_every_run_and_go_on_when_resumed),
        cmocka_unit_test(batches_made_on_devices_train_to_the_same_bits),
        cmocka_unit_test(batches_made_on_devices_go_on_where_a_run_stopped),
        unthreaded_test(batches_made_on_devices_suit_every_mode_of_update),
        cmocka_unit_test(a_data_set_on_a_device_is_planned_to_the_byte_and_copied_once),
        unthreaded_test(a_batch_that_is_repeated_is_the_same_wherever_it_is_made),
        cmocka_unit_test(what_devices_cannot_make_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a training step, its input included, costs the host on a card that is not there (card.h): launches of graphs,
 * recordings, allocations; and that its numbers are the CPU's. */
#include "testing.h"

#include "faulty_files.h" /* scratch_folder */

#include "card.h"

#include <stdlib.h>
#include <tower/models.h>
#include <tower/nn.h>
#include <tower/ops.h>
#include <tower/train.h>

enum { STEPS = 5 };

static tw_output logits(tw_graph *g, const tw_model *model, tw_output images, tw_dtype dtype, bool training)
{
    tw_conv2d_options window = {.stride = {4, 4}};
    tw_layer_options options = {.activation = tw_relu};
    (void)dtype;
    (void)training;
    tw_output x = tw_conv2d_layer(g, "conv", images, 2, 3, &window, &options);
    return tw_dense_layer(g, "logits", tw_flatten(g, x), model->classes, NULL);
}

static const tw_model model = {
    .name = "tiny",
    .description = "for tests",
    .dataset = "cifar10",
    .height = 8,
    .width = 8,
    .channels = 3,
    .classes = 4,
    .batch = 2,
    .training = TW_AUGMENT_TUTORIAL_TRAIN,
    .evaluation = TW_AUGMENT_TUTORIAL_EVAL,
    .learning_rate = 0.1f,
    .decay_factor = 0.5f,
    .epochs_per_decay = 1,
    .weight_decay = 1e-3f,
    .average_decay = 0.9f,
    .logits = logits,
};

typedef struct cost {
    float losses[STEPS];
    long recordings, launches, kernels, allocations, taken; /* of the last step */
    long recorded, copied;                                  /* in all; from a card's memory to the same card's */
} cost;

static int parts; /* into how many a card is divided; 0: not at all */

static void train(const char *const *where, int towers, tw_variable_options variables, cost *cost)
{
    tw_error error = {0};
    tw_devices *devices;
    tw_dataset *data;
    tw_trainer *trainer;
    tw_trainer_step_result result;
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .logical_gpus = parts}, &devices, &error));
    assert_ok(tw_dataset_synthetic(8, 8, 8, 3, 4, 1, &data, &error));
    tw_trainer_options options = {.model = &model, .dataset = data, .devices = devices, .tower_devices = where,
                                  .num_tower_devices = towers, .towers = towers, .variables = variables, .seed = 1,
                                  .session = {.allow_soft_placement = true}};
    assert_ok(tw_trainer_create(&options, &trainer, &error));
    assert_int_equal(tw_trainer_input_place(trainer), strstr(where[0], "gpu") ? TW_INPUT_ON_DEVICE : TW_INPUT_ON_HOST);
    long recorded = card_count("cudaGraphInstantiate"), copied = card_count("copy on a card");
    for (int i = 0; i < STEPS; i++) {
        *cost = (struct cost){.recordings = -card_count("cudaGraphInstantiate"), .launches = -card_count("cudaGraphLaunch"),
                              .kernels = -card_count("kernel"), .allocations = -tw_allocation_count(),
                              .taken = -card_count("cudaMalloc"), .losses = {cost->losses[0], cost->losses[1],
                              cost->losses[2], cost->losses[3]}};
        assert_ok(tw_trainer_step(trainer, &result, &error));
        cost->losses[i] = result.loss;
        cost->recordings += card_count("cudaGraphInstantiate");
        cost->launches += card_count("cudaGraphLaunch");
        cost->kernels += card_count("kernel");
        cost->allocations += tw_allocation_count();
        cost->taken += card_count("cudaMalloc");
    }
    cost->recorded = card_count("cudaGraphInstantiate") - recorded;
    cost->copied = card_count("copy on a card") - copied;
    tw_trainer_destroy(trainer);
    tw_dataset_destroy(data);
    tw_devices_destroy(devices);
}

static void check(const char *const *gpus, int towers, tw_variable_options variables, long most_launches)
{
    static const char *const cpus[] = {"/cpu:0", "/cpu:0", "/cpu:0", "/cpu:0"};
    cost on_cpu, on_cards;
    train(cpus, towers, (tw_variable_options){.update = variables.update}, &on_cpu);
    train(gpus, towers, variables, &on_cards);
    assert_floats_near(on_cards.losses, on_cpu.losses, STEPS, 1e-4);
    assert_in_range(on_cards.launches + on_cards.kernels, 1, most_launches); /* kernels by themselves */
    assert_int_equal(on_cards.recorded, on_cards.launches); /* each once */
    assert_int_equal(on_cards.recordings, 0);
    assert_int_equal(on_cards.copied, 0);
    assert_int_equal(on_cards.allocations, 0);
    assert_int_equal(on_cards.taken, 0);
    assert_string_equal(card_leaks(), "");
}

static void a_step_of_one_card_is_one_launch(void **state)
{
    static const char *const gpus[] = {"/gpu:0"};
    (void)state;
    check(gpus, 1, (tw_variable_options){.update = TW_UPDATE_PARAMETER_SERVER, .parameter_device = TW_PARAMETERS_ON_GPU}, 1);
    check(gpus, 1, (tw_variable_options){.update = TW_UPDATE_REPLICATED}, 1);
}

/* They look at each other's memory where it is, in the first step, which is not recorded, as well. */
static void parts_of_a_card_are_one_launch_and_copy_nothing(void **state)
{
    enum { PARTS = 4 };
    static const char *const gpus[PARTS] = {"/gpu:0", "/gpu:1", "/gpu:2", "/gpu:3"};
    (void)state;
    parts = PARTS;
    check(gpus, PARTS, (tw_variable_options){.update = TW_UPDATE_REPLICATED}, 1);
    check(gpus, PARTS,
          (tw_variable_options){.update = TW_UPDATE_PARAMETER_SERVER, .parameter_device = TW_PARAMETERS_ON_GPU}, 1);
    parts = 0;
}

/* The host hands all of them over before it waits, once, and reads the last one's loss. */
static void steps_in_a_row_wait_for_nobody(void **state)
{
    enum { ROW = 20 };
    tw_error error = {0};
    tw_devices *devices;
    tw_dataset *data;
    tw_trainer *trainer;
    tw_trainer_step_result result;
    (void)state;
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1}, &devices, &error));
    assert_ok(tw_dataset_synthetic(8, 8, 8, 3, 4, 1, &data, &error));
    tw_trainer_options options = {.model = &model, .dataset = data, .devices = devices, .seed = 1,
                                  .tower_devices = (const char *[]){"/gpu:0"}, .num_tower_devices = 1,
                                  .variables = {.update = TW_UPDATE_REPLICATED}};
    assert_ok(tw_trainer_create(&options, &trainer, &error));
    assert_ok(tw_trainer_run_steps(trainer, 3, &result, &error));
    long launches = card_count("cudaGraphLaunch"), waits = card_count("cudaStreamSynchronize");
    long copies = card_count("cudaMemcpyAsync"), kernels = card_count("kernel");
    assert_ok(tw_trainer_run_steps(trainer, ROW, &result, &error));
    assert_int_equal(result.step, 2 + ROW);
    assert_int_equal(card_count("cudaGraphLaunch") - launches, ROW);
    assert_int_equal(card_count("cudaStreamSynchronize") - waits, 1);
    assert_int_equal(card_count("cudaMemcpyAsync") - copies, 1);
    assert_int_equal(card_count("kernel"), kernels);
    tw_trainer_destroy(trainer);
    tw_dataset_destroy(data);
    tw_devices_destroy(devices);
    assert_string_equal(card_leaks(), "");
}

static void another_card_than_the_first_keeps_the_step_to_itself(void **state)
{
    static const char *const gpus[] = {"/gpu:1"};
    (void)state;
    check(gpus, 1, (tw_variable_options){.update = TW_UPDATE_PARAMETER_SERVER, .parameter_device = TW_PARAMETERS_ON_GPU}, 1);
}

static void two_towers_on_a_card_are_one_launch_too(void **state)
{
    static const char *const gpus[] = {"/gpu:0", "/gpu:0"};
    (void)state;
    check(gpus, 2, (tw_variable_options){.update = TW_UPDATE_PARAMETER_SERVER, .parameter_device = TW_PARAMETERS_ON_GPU}, 1);
}

/* Copies of gradients, and of what the update made, are part of it. */
static void two_cards_that_see_each_other_are_one_launch(void **state)
{
    static const char *const gpus[] = {"/gpu:0", "/gpu:1"};
    (void)state;
    check(gpus, 2, (tw_variable_options){.update = TW_UPDATE_PARAMETER_SERVER, .parameter_device = TW_PARAMETERS_ON_GPU}, 1);
    check(gpus, 2, (tw_variable_options){.update = TW_UPDATE_REPLICATED}, 1);
}

/* Besides what is recorded there are only copies then. */
static void two_cards_that_do_not_meet_between_launches(void **state)
{
    static const char *const gpus[] = {"/gpu:1", "/gpu:2"};
    (void)state;
    check(gpus, 2, (tw_variable_options){.update = TW_UPDATE_PARAMETER_SERVER, .parameter_device = TW_PARAMETERS_ON_GPU}, 4 * 2);
    check(gpus, 2, (tw_variable_options){.update = TW_UPDATE_REPLICATED}, 4 * 2);
}

/* As far as the library knows that beforehand they can be recorded together. */
static void two_cards_that_no_graph_takes_are_recorded_apart(void **state)
{
    static const char *const gpus[] = {"/gpu:0", "/gpu:1"};
    (void)state;
    setenv("CARD_APART", "1", 1);
    check(gpus, 2, (tw_variable_options){.update = TW_UPDATE_REPLICATED}, 4 * 2);
    unsetenv("CARD_APART");
}

/* By marks that are part of the recording: so what is seen is what an untraced step does. */
static void a_traced_step_of_two_cards_is_one_launch_and_tells_where_its_time_went(void **state)
{
    static const char *const gpus[] = {"/gpu:0", "/gpu:1"};
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    tw_dataset *data;
    tw_trainer *trainer;
    tw_trainer_step_result result;
    tw_waterfall parts;
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1}, &devices, &error));
    assert_ok(tw_dataset_synthetic(8, 8, 8, 3, 4, 1, &data, &error));
    tw_trainer_options options = {.model = &model, .dataset = data, .devices = devices, .seed = 1, .tower_devices = gpus,
                                  .num_tower_devices = 2, .variables = {.update = TW_UPDATE_REPLICATED},
                                  .session = {.trace = true}};
    assert_ok(tw_trainer_create(&options, &trainer, &error));
    assert_ok(tw_trainer_run_steps(trainer, 3, &result, &error));
    long launches = card_count("cudaGraphLaunch"), kernels = card_count("kernel");
    assert_ok(tw_trainer_run_steps(trainer, 2, &result, &error));
    assert_int_equal(card_count("cudaGraphLaunch") - launches, 2);
    assert_int_equal(card_count("kernel"), kernels);
    const char *names[] = {tw_trainer_tower_device(trainer, 0), tw_trainer_tower_device(trainer, 1)};
    assert_ok(tw_session_waterfall(tw_trainer_session(trainer), names, 2, &parts, &error));
    double sum = 0;
    for (int k = 0; k < TW_TIME_KINDS; k++) {
        assert_true(parts.seconds[k] >= 0);
        sum += parts.seconds[k];
    }
    assert_true(parts.total > 0 && fabs(sum - parts.total) < 1e-9);
    assert_true(parts.seconds[TW_TIME_COMPUTE] > 0); /* a nanosecond for each thing that is done */
    tw_delay delay = {TW_TIME_COMPUTE, names[0], 0, 0.02};
    assert_ok(tw_session_delay(tw_trainer_session(trainer), &delay, &error));
    assert_ok(tw_trainer_step(trainer, &result, &error));
    assert_int_equal(card_count("cudaGraphLaunch") - launches, 2); /* what is held up is not replayed */
    tw_trainer_destroy(trainer);
    tw_dataset_destroy(data);
    tw_devices_destroy(devices);
    assert_string_equal(card_leaks(), "");
}

/* Both cards' steps are one recording, which the first card's thread replays; the CPU may read of the second card only
 * what is of the same step. A sum over all steps tells if one was read too early or too late. */
static void what_the_cpu_reads_of_the_second_card_is_of_the_same_step(void **state)
{
    enum { ROWS = 20, ROW = 50 };
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_devices *devices;
    tw_session *session;
    tw_initializer zero = {.kind = TW_INIT_CONSTANT};
    tw_variable *on_first, *on_second, *sum;
    tw_output first, second, total;
    TW_DEVICE(g, "/gpu:0") {
        on_first = tw_get_variable(g, "first", TW_FLOAT32, TW_SHAPE(1), zero);
        first = tw_assign(g, on_first->handle, tw_add(g, on_first->value, tw_ones(g, TW_FLOAT32, TW_SHAPE(1))));
    }
    TW_DEVICE(g, "/gpu:1") {
        on_second = tw_get_variable(g, "second", TW_FLOAT32, TW_SHAPE(1), zero);
        tw_output next = tw_add(g, on_second->value, tw_ones(g, TW_FLOAT32, TW_SHAPE(1)));
        second = tw_assign(g, on_second->handle, next);
        total = tw_add(g, next, next);
    }
    TW_DEVICE(g, "/cpu:0") {
        sum = tw_get_variable(g, "sum", TW_FLOAT32, TW_SHAPE(1), zero);
        total = tw_assign_add(g, sum->handle, total);
    }
    tw_output initialize = tw_initialize_variables(g), step = tw_group(g, (tw_output[]){first, second, total}, 3);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1}, &devices, &error));
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &initialize, 1, NULL, &error));
    long launches = card_count("cudaGraphLaunch");
    for (int row = 1; row <= ROWS; row++) {
        double n = row * ROW;
        tw_tensor *value = NULL;
        assert_ok(tw_session_run_steps(session, ROW, NULL, 0, &step, 1, NULL, NULL, &error));
        assert_ok(tw_session_get_variable(session, sum, &value, &error));
        assert_true(tw_tensor_value(value, 0) == n * (n + 1));
        tw_tensor_release(value);
    }
    assert_int_equal(card_count("cudaGraphLaunch") - launches, ROWS * ROW - 1); /* all but the first */
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
    assert_string_equal(card_leaks(), "");
}

/* ---- batches that are made ahead --------------------------------------------------------------------------------- */

typedef struct run {
    tw_dataset *data;
    tw_devices *devices;
    tw_trainer *trainer;
} run;

static run begin(tw_trainer_options options)
{
    tw_error error = {0};
    run r;
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1}, &r.devices, &error));
    assert_ok(tw_dataset_synthetic(8, 8, 8, 3, 4, 1, &r.data, &error));
    if (!options.model)
        options.model = &model;
    options.dataset = r.data;
    options.devices = r.devices;
    options.seed = 1;
    options.variables.update = TW_UPDATE_REPLICATED;
    assert_ok(tw_trainer_create(&options, &r.trainer, &error));
    return r;
}

static void end(run *r)
{
    tw_trainer_destroy(r->trainer);
    tw_dataset_destroy(r->data);
    tw_devices_destroy(r->devices);
}

static float loss_after(run *r, int steps)
{
    tw_error error = {0};
    tw_trainer_step_result result;
    assert_ok(tw_trainer_run_steps(r->trainer, steps, &result, &error));
    return result.loss;
}

/* Unequal towers on two cards, steps one by one and in a row, and a run that goes on: what the host's batches give. */
static void a_batch_that_is_made_ahead_is_that_of_its_step(void **state)
{
    static const char *const gpus[] = {"/gpu:0", "/gpu:1"};
    static const int shares[] = {3, 2};
    (void)state;
    tw_error error = {0};
    const char *folder = scratch_folder();
    tw_trainer_options options = {.tower_devices = gpus, .num_tower_devices = 2, .towers = 2, .tower_shares = shares,
                                  .num_tower_shares = 2, .global_batch = 5, .input_place = TW_INPUT_ON_HOST};
    run host = begin(options);
    options.input_place = TW_INPUT_AUTO;
    run card = begin(options);
    for (int i = 0; i < 3; i++)
        assert_true(loss_after(&card, 1) == loss_after(&host, 1));
    assert_true(loss_after(&card, 4) == loss_after(&host, 4));
    assert_ok(tw_trainer_save(card.trainer, folder, 1, &error));
    options.resume_from = folder;
    run other = begin(options);
    assert_int_equal(tw_trainer_input_place(other.trainer), TW_INPUT_ON_DEVICE);
    for (int i = 0; i < 2; i++) {
        float expected = loss_after(&host, 1);
        assert_true(loss_after(&card, 1) == expected && loss_after(&other, 1) == expected);
    }
    remove_scratch(folder);
    end(&host);
    end(&card);
    end(&other);
    assert_string_equal(card_leaks(), "");
}

static tw_output one_layer(tw_graph *g, const tw_model *m, tw_output images, tw_dtype dtype, bool training)
{
    (void)dtype;
    (void)training;
    return tw_dense_layer(g, "logits", tw_flatten(g, images), m->classes, NULL);
}

/* Nodes in a row of a step whose batch waits, and of one that makes it first: the same one in every step. The network
 * needs nothing but the images to begin. */
static void a_batch_that_is_made_ahead_is_not_waited_for(void **state)
{
    static const char *const gpus[] = {"/gpu:0"};
    tw_model small = model;
    long depth[2];
    (void)state;
    small.logits = one_layer;
    for (int repeats = 0; repeats < 2; repeats++) {
        run r = begin((tw_trainer_options){.model = &small, .tower_devices = gpus, .num_tower_devices = 1,
                                           .repeat_batch = repeats, .input_place = TW_INPUT_ON_DEVICE});
        loss_after(&r, 1);
        depth[repeats] = -card_count("depth");
        loss_after(&r, 1);
        depth[repeats] += card_count("depth");
        end(&r);
    }
    assert_int_equal(depth[0], depth[1] - 1);
}

/* Though blocks share them: a variable is read where it lies, so there is nothing else to launch. */
static void a_reduction_is_one_launch(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_devices *devices;
    tw_session *session;
    tw_output sums[2];
    long kernels = 0;
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1}, &devices, &error));
    TW_DEVICE(g, "/gpu:0") {
        tw_variable *v = tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(4000, 16), (tw_initializer){TW_INIT_CONSTANT, 0.5f});
        assert_non_null(v);
        sums[0] = tw_l2_loss(g, v->value);
        sums[1] = tw_reduce_sum(g, v->value, TW_AXES(0), false);
    }
    tw_output initialize = tw_initialize_variables(g);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &initialize, 1, NULL, &error));
    for (int i = 0; i < 2; i++) {
        tw_tensor *value = NULL;
        kernels = card_count("kernel");
        assert_ok(tw_session_run(session, NULL, 0, &sums[i], 1, &value, &error));
        assert_int_equal(card_count("kernel") - kernels, 1);
        assert_float_equal(tw_tensor_value(value, 0), i ? 2000 : 8000, 1e-3);
        tw_tensor_release(value);
    }
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
}

/* How many nodes it has stands in bench/ledger.txt. */
static void a_step_of_a_model_is_one_launch_on_one_card_and_on_two(void **state)
{
    static const char *const gpus[] = {"/gpu:0", "/gpu:1"};
    static const char *const models[] = {"cifar10", "resnet44"};
    (void)state;
    card_be_lazy(true);
    for (int i = 0; i < 6; i++) {
        tw_error error = {0};
        tw_devices *devices;
        tw_dataset *data;
        tw_trainer *trainer;
        tw_trainer_step_result result;
        assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1}, &devices, &error));
        assert_ok(tw_dataset_synthetic(4, 32, 32, 3, 10, 1, &data, &error));
        tw_trainer_options options = {.model = tw_model_find(models[i / 3]), .dataset = data, .devices = devices,
                                      .seed = 1, .batch = 128, .dtype = i % 3 == 1 ? TW_FLOAT32 : TW_BFLOAT16,
                                      .tower_devices = gpus, .num_tower_devices = i % 3 == 2 ? 2 : 1,
                                      .variables = {.update = TW_UPDATE_REPLICATED}};
        assert_ok(tw_trainer_create(&options, &trainer, &error));
        assert_ok(tw_trainer_step(trainer, &result, &error));
        long launches = card_count("cudaGraphLaunch");
        assert_ok(tw_trainer_step(trainer, &result, &error));
        assert_int_equal(card_count("cudaGraphLaunch") - launches, 1);
        tw_trainer_destroy(trainer);
        tw_dataset_destroy(data);
        tw_devices_destroy(devices);
    }
    card_be_lazy(false);
}

/* Blocks of a sum count themselves, those of each at counters of its own. */
static void sums_that_do_not_need_each_other_are_side_by_side(void **state)
{
    tw_error error = {0};
    tw_devices *devices;
    tw_session *session;
    tw_output sums[2] = {0}, all = {0};
    tw_graph *g = tw_graph_create();
    long depth = 0;
    (void)state;
    TW_DEVICE(g, "/gpu:0") {
        for (int i = 0; i < 2; i++) {
            tw_output many = tw_fill(g, tw_constant_int32s(g, TW_SHAPE(1), (int32_t[]){1 << 16}), tw_scalar(g, 1 + i));
            sums[i] = tw_reduce_sum(g, many, (int[]){0}, 1, false);
        }
        all = tw_sub(g, sums[0], sums[1]);
    }
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1}, &devices, &error));
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices, .disable = "fold"}, &session, &error));
    for (int step = 0; step < 2; step++) {
        tw_tensor *value = NULL;
        depth = card_count("depth");
        assert_ok(tw_session_run(session, NULL, 0, &all, 1, &value, &error));
        depth = card_count("depth") - depth;
        assert_float_equal(tw_tensor_value(value, 0), -(1 << 16), 0);
        tw_tensor_release(value);
    }
    assert_int_equal(depth, 3); /* fill, sum, difference */
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
}

/* As long as a kernel's arguments have room for them, of whatever sizes they are. */
static void parts_are_joined_and_cut_by_one_launch(void **state)
{
    enum { PARTS = 40 };
    tw_error error = {0};
    tw_devices *devices;
    tw_session *session;
    tw_graph *g = tw_graph_create();
    tw_output parts[PARTS], cut[PARTS], whole;
    int64_t sizes[PARTS];
    (void)state;
    TW_DEVICE(g, "/gpu:0") {
        for (int i = 0; i < PARTS; i++) {
            sizes[i] = 1 + i % 7 * (1 + i % 3);
            tw_output value = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(3, sizes[i]));
            parts[i] = value;
        }
        whole = tw_concat(tw_name(g, "whole"), parts, PARTS, 1);
        tw_split_sizes(g, whole, 1, sizes, cut, PARTS);
    }
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1}, &devices, &error));
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error));
    tw_feed feeds[PARTS];
    tw_tensor *found[PARTS] = {0};
    for (int i = 0; i < PARTS; i++) {
        feeds[i] = (tw_feed){parts[i], tw_tensor_create(TW_FLOAT32, TW_SHAPE(3, sizes[i]))};
        for (int64_t k = 0; k < 3 * sizes[i]; k++)
            ((float *)tw_tensor_data(feeds[i].tensor))[k] = (float)(100 * i + k);
    }
    long kernels = card_count("kernel");
    assert_ok(tw_session_run(session, feeds, PARTS, cut, PARTS, found, &error));
    assert_int_equal(card_count("kernel") - kernels, 2);
    for (int i = 0; i < PARTS; i++) {
        assert_memory_equal(tw_tensor_data(found[i]), tw_tensor_data(feeds[i].tensor), tw_tensor_bytes(found[i]));
        tw_tensor_release(found[i]);
        tw_tensor_release(feeds[i].tensor);
    }
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
}

/* How many cards there are is asked for once; of three the first two see each other. */
int main(int count, char **words)
{
    const struct CMUnitTest of_three[] = {cmocka_unit_test(two_cards_that_do_not_meet_between_launches)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_of_one_card_is_one_launch),
        cmocka_unit_test(parts_of_a_card_are_one_launch_and_copy_nothing),
        cmocka_unit_test(steps_in_a_row_wait_for_nobody),
        cmocka_unit_test(a_batch_that_is_made_ahead_is_that_of_its_step),
        cmocka_unit_test(a_batch_that_is_made_ahead_is_not_waited_for),
        cmocka_unit_test(parts_are_joined_and_cut_by_one_launch),
        cmocka_unit_test(another_card_than_the_first_keeps_the_step_to_itself),
        cmocka_unit_test(two_towers_on_a_card_are_one_launch_too),
        cmocka_unit_test(two_cards_that_see_each_other_are_one_launch),
        cmocka_unit_test(two_cards_that_no_graph_takes_are_recorded_apart),
        cmocka_unit_test(a_traced_step_of_two_cards_is_one_launch_and_tells_where_its_time_went),
        cmocka_unit_test(what_the_cpu_reads_of_the_second_card_is_of_the_same_step),
        cmocka_unit_test(a_reduction_is_one_launch),
        unthreaded_test(a_step_of_a_model_is_one_launch_on_one_card_and_on_two),
        cmocka_unit_test(sums_that_do_not_need_each_other_are_side_by_side),
    };
    if (count > 1 && strcmp(words[1], "three-cards") == 0) {
        setenv("CARD_COUNT", "3", 1);
        return cmocka_run_group_tests(of_three, NULL, NULL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The models: how many parameters they have, where training starts, that devices do not matter; and a small residual
 * network trained as TensorFlow trains it (golden/make_residual.py).
 *
 * Tolerances. Distances are parts of the root mean square of the values they belong to. TensorFlow's own float32 strays
 * from its float64 by what golden/residual.h says; ten times that is allowed, as in test_training.c. The
 * momentum 0.997 is a float here, which moves the moments by 7e-6 of a change. */
#include "faulty_files.h"
#include "golden_noise.h"
#include "record_training.h"
#include "testing.h"

#include "golden/residual.h"

#include <tower/models.h>
#include <tower/nn.h>
#include <tower/ops.h>
#include <tower/train.h>

#define LOSS_TOLERANCE 2e-6
#define VARIABLE_TOLERANCE 1e-5
#define SLOT_TOLERANCE 7e-5
#define MOMENT_TOLERANCE 4e-5

enum { IMAGE = SIDE * SIDE * 3 };

/* ---- counting ---------------------------------------------------------------------------------------------- */

static int64_t parameters_of(const tw_model *model)
{
    tw_graph *g = tw_graph_create();
    tw_output images = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(1, model->height, model->width, model->channels));
    tw_output logits = model->logits(g, model, images, TW_FLOAT32, true);
    assert_string_equal(tw_graph_message(g), "");
    assert_true(tw_shape_equal(tw_output_shape(logits), TW_SHAPE(1, model->classes)));
    int64_t parameters = 0;
    for (int i = 0; i < tw_graph_num_variables(g); i++)
        if (tw_graph_variable(g, i)->trainable)
            parameters += tw_shape_elements(tw_graph_variable(g, i)->shape);
    tw_graph_destroy(g);
    return parameters;
}

static void each_model_has_its_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t parameters;
    } known[] = {
        {"cifar10", 1068298},    {"resnet", 658651},   {"resnet20", 269787}, {"resnet32", 464219},
        {"resnet44", 658651},    {"resnet56", 853083}, {"resnet110", 1728027}, {"mnist", 619146},
        {"trivial", 4259818},    {"alexnet", 61104937}, {"vgg16", 138361641}, {"resnet50", 25559081},
        {"inception3", 23836617}, {"airbench", 1971352},
    };
    assert_int_equal(tw_model_count(), (int)(sizeof known / sizeof *known));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(parameters_of(tw_model_find(known[i].name)), known[i].parameters);
    tw_model ten = *tw_model_find("resnet44");
    ten.classes = 10;
    assert_int_equal(parameters_of(&ten), 658586);
}

/* What is known of these networks with ImageNet's 1000 classes. */
static void networks_for_imagenet_have_the_known_parameters_with_1000_classes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t parameters;
    } known[] = {{"alexnet", 61100840}, {"vgg16", 138357544}, {"resnet50", 25557032}, {"inception3", 23834568}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        tw_model model = *tw_model_find(known[i].name);
        model.classes = 1000;
        assert_int_equal(parameters_of(&model), known[i].parameters);
    }
}

/* 53 of 161 variables are kernels; the bias of the last layer joins them. */
static void weight_decay_can_spare_batch_normalization(void **state)
{
    (void)state;
    tw_model model = *tw_model_find("resnet50");
    for (int spares = 0; spares < 2; spares++) {
        tw_graph *g = tw_graph_create();
        model.decay_spares_norms = spares;
        tw_output images = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(1, 224, 224, 3));
        tw_model_loss(g, &model, images, tw_placeholder(g, TW_INT32, TW_SHAPE(1)), TW_FLOAT32);
        assert_string_equal(tw_graph_message(g), "");
        int norms = 0;
        for (int i = 0; i < tw_graph_num_nodes(g); i++)
            norms += strcmp(tw_node_op(tw_graph_node(g, i)), "L2Loss") == 0;
        assert_int_equal(norms, spares ? 53 + 2 : 3 * 53 + 2);
        tw_graph_destroy(g);
    }
}

static void bfloat16_leaves_variables_and_logits_in_float32(void **state)
{
    (void)state;
    const tw_model *model = tw_model_find("resnet20");
    tw_graph *g = tw_graph_create();
    tw_output images = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(1, 32, 32, 3));
    tw_output logits = model->logits(g, model, images, TW_BFLOAT16, true);
    assert_string_equal(tw_graph_message(g), "");
    assert_int_equal(tw_output_dtype(logits), TW_FLOAT32);
    for (int i = 0; i < tw_graph_num_variables(g); i++)
        assert_int_equal(tw_graph_variable(g, i)->dtype, TW_FLOAT32);
    const tw_node *convolution = tw_graph_find(g, "resnet/conv2d/Conv2D");
    assert_non_null(convolution);
    assert_int_equal(tw_node_attr(convolution, "T")->type, TW_BFLOAT16);
    tw_graph_destroy(g);
}

/* ---- training ---------------------------------------------------------------------------------------------- */

typedef struct run {
    tw_dataset *dataset;
    tw_devices *devices;
    tw_trainer *trainer;
    float loss;
} run;

static run start(const tw_model *model, int batch, int towers, int gpus)
{
    run r = {0};
    tw_error error = {0};
    assert_ok(tw_dataset_synthetic(64, model->height, model->width, model->channels, 10, 5, &r.dataset, &error));
    assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = gpus}, &r.devices, &error));
    tw_trainer_options options = {.model = model,
                                  .dataset = r.dataset,
                                  .devices = r.devices,
                                  .towers = towers,
                                  .batch = batch,
                                  .seed = 7};
    assert_ok(tw_trainer_create(&options, &r.trainer, &error));
    return r;
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

/* Values are equal to the bit, all variables of both runs. */
static void assert_equal_variables(const run *a, const run *b)
{
    tw_error error = {0};
    tw_graph *g = tw_trainer_graph(a->trainer), *h = tw_trainer_graph(b->trainer);
    for (int i = 0; i < tw_graph_num_variables(g); i++) {
        const tw_variable *variable = tw_graph_variable(g, i);
        tw_tensor *x = NULL, *y = NULL;
        assert_ok(tw_session_get_variable(tw_trainer_session(a->trainer), variable, &x, &error));
        assert_ok(tw_session_get_variable(tw_trainer_session(b->trainer), tw_graph_find_variable(h, variable->name),
                                          &y, &error));
        if (memcmp(tw_tensor_data(x), tw_tensor_data(y), tw_tensor_bytes(x)) != 0)
            fail_msg("variable %s differs", variable->name);
        tw_tensor_release(x);
        tw_tensor_release(y);
    }
}

/* A tensor as the trainer's variable has it now; yours. */
static tw_tensor *value_of(const run *r, const char *name)
{
    tw_error error = {0};
    tw_tensor *value = NULL;
    const tw_variable *variable = tw_graph_find_variable(tw_trainer_graph(r->trainer), name);
    assert_non_null(variable);
    assert_ok(tw_session_get_variable(tw_trainer_session(r->trainer), variable, &value, &error));
    return value;
}

/* Fresh logits are small: ln 10. Adam's first step moves every weight by the rate, up or down. */
static void mnist_starts_near_the_log_of_ten_and_learns_with_adam(void **state)
{
    (void)state;
    run r = start(tw_model_find("mnist"), 16, 2, 2);
    tw_tensor *before = value_of(&r, "LF/dense/kernel");
    step(&r, 1);
    tw_tensor *after = value_of(&r, "LF/dense/kernel");
    assert_true(fabs(r.loss - log(10)) < 0.1);
    assert_true(fabs(fabs(tw_tensor_value(after, 0) - tw_tensor_value(before, 0)) - 0.001) < 1e-5);
    tw_tensor_release(before);
    tw_tensor_release(after);
    float first = r.loss;
    step(&r, 8);
    assert_true(r.loss < first);
    finish(&r);
}

/* With the last weights at zero every class is as likely: ln 11. Glorot's uniform kernels have the variance 2 / (fan_in
 * + fan_out), so the decay of the others is a sum that one can write down; scales of batch normalization are ones. */
static void first_loss_of_a_residual_network_is_the_closed_forms(void **state)
{
    (void)state;
    tw_error error = {0};
    double squares = 27 * 16 * 2.0 / (9 * (3 + 16)) + 16;
    for (int convolution = 0; convolution < 18; convolution++) {
        double out = 16 << convolution / 6, in = convolution == 6 || convolution == 12 ? out / 2 : out;
        squares += 9 * in * out * 2 / (9 * (in + out)) + out;
    }
    run r = start(tw_model_find("resnet20"), 4, 1, 0);
    tw_tensor *zeros = tw_tensor_create(TW_FLOAT32, TW_SHAPE(64, 11));
    const tw_variable *last = tw_graph_find_variable(tw_trainer_graph(r.trainer), "resnet/dense/kernel");
    assert_ok(tw_session_set_variable(tw_trainer_session(r.trainer), last, zeros, &error));
    tw_tensor_release(zeros);
    step(&r, 1);
    assert_true(fabs(r.loss - (log(11) + 2e-4 * squares / 2)) < 0.002);
    finish(&r);
}

static void four_towers_of_a_residual_network_give_the_same_bits_on_1_2_and_4_devices(void **state)
{
    (void)state;
    const tw_model *model = tw_model_find("resnet20");
    run one = start(model, 1, 4, 1);
    step(&one, 2);
    for (int gpus = 2; gpus <= 4; gpus += 2) {
        run many = start(model, 1, 4, gpus);
        step(&many, 2);
        assert_equal_variables(&one, &many);
        finish(&many);
    }
    finish(&one);
}

/* Tower 0 sees the same four examples in both runs; were the moments tower 1's or both's, they would differ. */
static void moving_moments_are_tower_0s(void **state)
{
    (void)state;
    const tw_model *model = tw_model_find("resnet20");
    run alone = start(model, 4, 1, 0), pair = start(model, 4, 2, 2);
    step(&alone, 1);
    step(&pair, 1);
    static const char *const names[] = {"resnet/BatchNorm/moving_mean", "resnet/BatchNorm_18/moving_variance"};
    for (int i = 0; i < 2; i++) {
        tw_tensor *x = value_of(&alone, names[i]), *y = value_of(&pair, names[i]);
        assert_floats_near(tw_tensor_data(x), tw_tensor_data(y), (size_t)tw_tensor_elements(x), 1e-6);
        double first = tw_tensor_value(x, 0);
        assert_true(first != (i ? 1 : 0));
        tw_tensor_release(x);
        tw_tensor_release(y);
    }
    finish(&alone);
    finish(&pair);
}

/* The MNIST sample's network after a step, with the mean of all losses, or of the towers' gradients. Yours. */
static tw_tensor *kernel_after_a_step(int towers, bool mean_of_losses)
{
    enum { BATCH = 2, MOST = 4 };
    tw_error error = {0};
    const tw_model *model = tw_model_find("mnist");
    tw_graph *g = tw_graph_create();
    tw_graph_set_seed(g, 3);
    tw_output images[MOST], labels[MOST], losses[MOST], loss = {0};
    tw_grads *grads[MOST] = {0};
    tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.1f));
    tw_output all_images = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(towers * BATCH, 28, 28, 1));
    tw_output all_labels = tw_placeholder(g, TW_INT32, TW_SHAPE(towers * BATCH));
    tw_split(g, all_images, 0, images, towers);
    tw_split(g, all_labels, 0, labels, towers);
    for (int i = 0; i < towers; i++)
        TW_DEVICE(g, "/gpu:%d", i) {
            losses[i] =
                tw_sparse_softmax_cross_entropy(g, model->logits(g, model, images[i], TW_FLOAT32, true), labels[i]);
            loss = tw_reduce_mean(g, losses[i], NULL, 0, false);
            if (!mean_of_losses)
                grads[i] = tw_compute_gradients(sgd, loss);
            tw_reuse_variables(g);
        }
    if (mean_of_losses) {
        loss = tw_reduce_mean(g, tw_concat(g, losses, towers, 0), NULL, 0, false);
        grads[0] = tw_compute_gradients(sgd, loss);
    }
    tw_grads *average = mean_of_losses ? grads[0] : tw_average_gradients(g, grads, towers, NULL);
    tw_output train = tw_apply_gradients(sgd, average, NULL), init = tw_initialize_variables(g);
    assert_string_equal(tw_graph_message(g), "");

    tw_devices *devices;
    tw_session *session;
    tw_tensor *kernel = NULL;
    tw_feed feeds[] = {{all_images, tw_tensor_create(TW_FLOAT32, TW_SHAPE(towers * BATCH, 28, 28, 1))},
                       {all_labels, tw_tensor_create(TW_INT32, TW_SHAPE(towers * BATCH))}};
    for (int i = 0; i < towers * BATCH * 28 * 28; i++)
        ((float *)tw_tensor_data(feeds[0].tensor))[i] = (float)(i * 37 % 101) / 101;
    for (int i = 0; i < towers * BATCH; i++)
        ((int32_t *)tw_tensor_data(feeds[1].tensor))[i] = i % 10;
    assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = towers}, &devices, &error));
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &init, 1, NULL, &error));
    assert_ok(tw_session_run(session, feeds, 2, &train, 1, NULL, &error));
    assert_ok(tw_session_get_variable(session, tw_graph_find_variable(g, "L1/conv2d/kernel"), &kernel, &error));
    tw_tensor_release(feeds[0].tensor);
    tw_tensor_release(feeds[1].tensor);
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
    return kernel;
}

/* To the bit with two towers, where there is one order of adding and halves are exact. */
static void mean_of_losses_trains_as_the_mean_of_gradients_does(void **state)
{
    (void)state;
    for (int towers = 2; towers <= 4; towers++) {
        tw_tensor *a = kernel_after_a_step(towers, true), *b = kernel_after_a_step(towers, false);
        if (towers == 2)
            assert_memory_equal(tw_tensor_data(a), tw_tensor_data(b), tw_tensor_bytes(a));
        assert_floats_near(tw_tensor_data(a), tw_tensor_data(b), (size_t)tw_tensor_elements(a), 1e-6);
        tw_tensor_release(a);
        tw_tensor_release(b);
    }
}

/* 64 examples, 8 of them a step: after step 2, a quarter of an epoch, nothing moves any more. */
static void rate_steps_follow_epochs(void **state)
{
    (void)state;
    tw_model quick = *tw_model_find("resnet20");
    quick.layers = 8;
    quick.optimizer = TW_OPTIMIZER_GRADIENT_DESCENT; /* momentum would go on */
    quick.rate_steps[0] = (tw_rate_step){0.25f, 1e-30f};
    quick.rate_steps[1].factor = 0;
    run r = start(&quick, 8, 1, 0);
    step(&r, 2);
    tw_tensor *second = value_of(&r, "resnet/dense/kernel");
    step(&r, 1);
    tw_tensor *third = value_of(&r, "resnet/dense/kernel");
    step(&r, 1);
    tw_tensor *fourth = value_of(&r, "resnet/dense/kernel");
    assert_memory_not_equal(tw_tensor_data(second), tw_tensor_data(third), tw_tensor_bytes(third));
    assert_memory_equal(tw_tensor_data(third), tw_tensor_data(fourth), tw_tensor_bytes(third));
    tw_tensor_release(second);
    tw_tensor_release(third);
    tw_tensor_release(fourth);
    finish(&r);
}

static void rates_change_where_the_programs_of_the_time_change_them(void **state)
{
    (void)state;
    int64_t steps[TW_MOST_RATE_STEPS];
    tw_model cifar10 = *tw_model_find("cifar10"), resnet = *tw_model_find("resnet44");
    assert_int_equal(tw_model_rate_changes(&cifar10, 50000, 128, 128, steps), 1);
    assert_int_equal(steps[0], 136718);
    tw_model_rate_changes(&cifar10, 50000, 128, 512, steps);
    assert_int_equal(steps[0], 34179);
    cifar10.epochs.of_one_tower = true; /* the tutorial as it was first */
    tw_model_rate_changes(&cifar10, 50000, 128, 512, steps);
    assert_int_equal(steps[0], 136718);
    resnet.epochs = (tw_epochs){.examples = 45000, .whole_batches = true}; /* cifar10_estimator */
    for (int towers = 1; towers <= 4; towers *= 2) {
        assert_int_equal(tw_model_rate_changes(&resnet, 40000, 128 / towers, 128, steps), 3);
        assert_int_equal(steps[0], 28782);
        assert_int_equal(steps[1], 43173);
        assert_int_equal(steps[2], 105300);
    }
    assert_int_equal(tw_model_rate_changes(tw_model_find("mnist"), 60000, 128, 128, steps), 0);
}

/* ln 10 and half of 0.004 times the squares of both dense layers, whose weights are normal, cut at two deviations. */
static void first_loss_of_the_tutorial_is_the_closed_forms_whatever_the_convolutions_begin_with(void **state)
{
    (void)state;
    const double expected = log(10) + 0.5 * 0.004 * (884736 + 73728) * 0.04 * 0.04 * 0.7737;
    assert_true(fabs(expected - 4.6756) < 5e-5);
    tw_model model = *tw_model_find("cifar10");
    for (int i = 0; i < 2; i++) {
        model.stddev = i ? 1e-4f : 5e-2f;
        run r = start(&model, 8, 1, 0);
        step(&r, 1);
        assert_true(fabs(r.loss - expected) < (i ? 0.01 : 0.1));
        finish(&r);
    }
}

static void losses_of_each_tower_have_moving_averages_of_their_own(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_model model = *tw_model_find("cifar10");
    model.loss_average_decay = 0.9f;
    run r = start(&model, 4, 2, 2);
    double averages[2] = {0};
    for (int i = 0; i < 3; i++) {
        tw_trainer_step_result result;
        assert_ok(tw_trainer_step(r.trainer, &result, &error));
        for (int tower = 0; tower < 2; tower++) {
            char name[64];
            averages[tower] += 0.1 * (result.tower_losses[tower] - averages[tower]);
            snprintf(name, sizeof name, "tower_%d/total_loss/avg", tower);
            tw_tensor *value = value_of(&r, name);
            assert_true(fabs(tw_tensor_value(value, 0) - averages[tower]) < 1e-5);
            tw_tensor_release(value);
        }
    }
    assert_true(averages[0] != averages[1]);
    tw_tensor *part = value_of(&r, "tower_1/local3/weight_loss/avg");
    assert_true(fabs(tw_tensor_value(part, 0) - (1 - 0.9 * 0.9 * 0.9) * 2.1905) < 0.01);
    tw_tensor_release(part);
    finish(&r);
}

static void evaluation_restores_a_residual_network_without_averages(void **state)
{
    (void)state;
    const tw_model *model = tw_model_find("resnet20");
    const char *folder = scratch_folder();
    tw_error error = {0};
    tw_evaluation result;
    run r = start(model, 4, 1, 0);
    step(&r, 2);
    assert_ok(tw_trainer_save(r.trainer, folder, 5, &error));
    assert_ok(tw_evaluate(model, r.dataset, folder, NULL, NULL, &result, &error));
    assert_int_equal(result.examples, 64);
    assert_false(result.used_averages);
    tw_dataset *wide;
    assert_ok(tw_dataset_synthetic(8, 32, 40, 3, 10, 1, &wide, &error));
    assert_fails(tw_evaluate(model, wide, folder, NULL, NULL, &result, &error), TW_INVALID_ARGUMENT, "gives 32x40x3");
    tw_dataset_destroy(wide);
    finish(&r);
    remove_scratch(folder);
}

/* ---- against TensorFlow ------------------------------------------------------------------------------------ */

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), ending = strlen(end);
    return length >= ending && strcmp(name + length - ending, end) == 0;
}

/* The formula's first value of the i-th trainable variable. */
static void set_first_value(tw_session *session, const tw_variable *variable, int i)
{
    tw_error error = {0};
    const int64_t *dims = variable->shape.dims;
    bool kernel = variable->shape.rank == 4, dense = variable->shape.rank == 2;
    float middle = ends_with(variable->name, "gamma") ? 1 : 0;
    float spread = kernel                                ? (float)pow(6.0 / (double)(9 * (dims[2] + dims[3])), 0.5)
                   : ends_with(variable->name, "/bias") ? 0.1f
                                                         : 0.25f;
    assert_true(!dense || dims[0] == 64);
    tw_tensor *value = tw_tensor_create(TW_FLOAT32, variable->shape);
    for (uint32_t k = 0; k < tw_tensor_elements(value); k++)
        ((float *)tw_tensor_data(value))[k] = middle + golden_noise(NOISE_SEED + 100 + (uint32_t)i, k) * spread;
    assert_ok(tw_session_set_variable(session, variable, value, &error));
    tw_tensor_release(value);
}

static void fill_batch(int step, float *images, int32_t *labels)
{
    for (uint32_t i = 0; i < BATCH * IMAGE; i++)
        images[i] = golden_noise(NOISE_SEED + 1000 + (uint32_t)step, i);
    for (int k = 0; k < BATCH; k++) {
        labels[k] = (step * BATCH + k) * 7 % 10;
        float *row = images + k * IMAGE + (labels[k] + 3) * SIDE * 3;
        for (int i = 0; i < SIDE * 3; i++)
            row[i] += 1;
    }
}

/* How far the variable is from a digest, as a part of the root mean square. */
static double distance(tw_session *session, const tw_variable *variable, const digest *golden)
{
    tw_error error = {0};
    tw_tensor *value = NULL;
    assert_non_null(variable);
    assert_ok(tw_session_get_variable(session, variable, &value, &error));
    int64_t count = tw_tensor_elements(value);
    double squares = 0, size = golden->norm / sqrt((double)count);
    for (int64_t i = 0; i < count; i++)
        squares += tw_tensor_value(value, i) * tw_tensor_value(value, i);
    double worst = fabs(sqrt(squares) - golden->norm) / golden->norm;
    for (int k = 0; k < SAMPLES; k++)
        worst = fmax(worst, fabs(tw_tensor_value(value, k * (count - 1) / (SAMPLES - 1)) - golden->samples[k]) / size);
    tw_tensor_release(value);
    return isnan(squares) ? INFINITY : worst;
}

static void towers_of_the_residual_network_give_classes_and_probabilities(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_model small = *tw_model_find("resnet20");
    small.layers = 8;
    tw_graph *g = tw_graph_create();
    tw_output images = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(BATCH, SIDE, SIDE, 3)), fetches[3];
    tw_output labels = tw_placeholder(g, TW_INT32, TW_SHAPE(BATCH));
    for (int i = 0; i < 2; i++)
        TW_NAME_SCOPE(g, "tower_%d", i) {
            tw_model_loss(g, &small, images, labels, TW_FLOAT32);
            tw_reuse_variables(g);
        }
    tw_output init = tw_initialize_variables(g);
    assert_int_equal(tw_get_collection(g, "classes", "tower_1", &fetches[0], 1), 1);
    assert_int_equal(tw_get_collection(g, "probabilities", "tower_1", &fetches[1], 1), 1);
    fetches[2] = tw_node_output(tw_graph_find(g, "tower_1/cross_entropy"), 0);

    static float pixels[BATCH * IMAGE];
    int32_t right[BATCH];
    tw_session *session;
    tw_tensor *results[3] = {0};
    fill_batch(0, pixels, right);
    tw_feed feeds[] = {{images, tw_tensor_from(TW_FLOAT32, TW_SHAPE(BATCH, SIDE, SIDE, 3), pixels)},
                       {labels, tw_tensor_from(TW_INT32, TW_SHAPE(BATCH), right)}};
    assert_ok(tw_session_create(g, NULL, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &init, 1, NULL, &error));
    assert_ok(tw_session_run(session, feeds, 2, fetches, 3, results, &error));
    double loss = 0;
    for (int i = 0; i < BATCH; i++) {
        double sum = 0, chosen = tw_tensor_value(results[1], i * 11 + (int64_t)tw_tensor_value(results[0], i));
        for (int k = 0; k < 11; k++) {
            sum += tw_tensor_value(results[1], i * 11 + k);
            assert_true(tw_tensor_value(results[1], i * 11 + k) <= chosen);
        }
        assert_float_equal(sum, 1, 1e-6);
        loss -= log(tw_tensor_value(results[1], i * 11 + right[i])) / BATCH;
    }
    assert_float_equal(tw_tensor_value(results[2], 0), loss, 1e-5);
    for (int i = 0; i < 3; i++)
        tw_tensor_release(results[i]);
    tw_tensor_release(feeds[0].tensor);
    tw_tensor_release(feeds[1].tensor);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

static void assert_trains_as_in_tensorflow(const char *device, const char *disable, bool plain)
{
    tw_error error = {0};
    tw_model small = *tw_model_find("resnet20");
    small.layers = 8;
    tw_graph *g = tw_graph_create();
    tw_output updates[MOVING + 1], loss = {0};
    tw_output images = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(BATCH, SIDE, SIDE, 3));
    tw_output labels = tw_placeholder(g, TW_INT32, TW_SHAPE(BATCH));
    tw_optimizer *momentum = tw_momentum(g, tw_scalar(g, RATE), 0.9f, false);
    TW_DEVICE(g, "%s", device)
        loss = tw_model_loss(g, &small, images, labels, TW_FLOAT32);
    updates[MOVING] = tw_apply_gradients(momentum, tw_compute_gradients(momentum, loss), NULL);
    assert_int_equal(tw_get_collection(g, "update_ops", NULL, updates, MOVING), MOVING);
    tw_output train = tw_group(g, updates, MOVING + 1), init = tw_initialize_variables(g);
    assert_string_equal(tw_graph_message(g), "");

    tw_devices *devices;
    tw_session *session;
    assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = 1}, &devices, &error));
    tw_session_options options = {.devices = devices, .disable = disable, .plain_kernels = plain};
    assert_ok(tw_session_create(g, &options, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &init, 1, NULL, &error));
    const tw_variable *trainables[TRAINABLES], *moving[MOVING];
    int num_trainables = 0, num_moving = 0;
    for (int i = 0; i < tw_graph_num_variables(g); i++) {
        const tw_variable *variable = tw_graph_variable(g, i);
        if (variable->trainable && num_trainables < TRAINABLES) {
            set_first_value(session, variable, num_trainables);
            trainables[num_trainables++] = variable;
        } else if (strstr(variable->name, "/moving_") && num_moving < MOVING) {
            moving[num_moving++] = variable;
        }
    }
    assert_int_equal(num_trainables, TRAINABLES);
    assert_int_equal(num_moving, MOVING);

    static float pixels[BATCH * IMAGE];
    int32_t classes[BATCH];
    double losses = 0, variables = 0, slots = 0, moments = 0;
    tw_output fetches[] = {loss, train};
    for (int step = 0; step < STEPS; step++) {
        tw_tensor *results[2] = {0};
        fill_batch(step, pixels, classes);
        tw_feed feeds[] = {{images, tw_tensor_from(TW_FLOAT32, TW_SHAPE(BATCH, SIDE, SIDE, 3), pixels)},
                           {labels, tw_tensor_from(TW_INT32, TW_SHAPE(BATCH), classes)}};
        assert_ok(tw_session_run(session, feeds, 2, fetches, 2, results, &error));
        losses = fmax(losses, fabs(tw_tensor_value(results[0], 0) / golden_losses[step] - 1));
        tw_tensor_release(results[0]);
        tw_tensor_release(feeds[0].tensor);
        tw_tensor_release(feeds[1].tensor);
    }
    for (int i = 0; i < TRAINABLES; i++) {
        char slot[128];
        snprintf(slot, sizeof slot, "%s/Momentum", trainables[i]->name);
        variables = fmax(variables, distance(session, trainables[i], &golden_trainables[i]));
        slots = fmax(slots, distance(session, tw_graph_find_variable(g, slot), &golden_accumulators[i]));
    }
    for (int i = 0; i < MOVING; i++)
        moments = fmax(moments, distance(session, moving[i], &golden_moving[i]));
    print_message("on %s%s%s: losses %.1e, variables %.1e, accumulators %.1e, moving moments %.1e\n", device,
                  disable ? " without rewrites" : "", plain ? " with plain kernels" : "", losses, variables, slots,
                  moments);
    assert_true(losses <= LOSS_TOLERANCE && variables <= VARIABLE_TOLERANCE);
    assert_true(slots <= SLOT_TOLERANCE && moments <= MOMENT_TOLERANCE);
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
}

static void a_residual_network_trains_as_in_tensorflow(void **state)
{
    (void)state;
    assert_trains_as_in_tensorflow("/cpu:0", NULL, false);
    assert_trains_as_in_tensorflow("/gpu:0", NULL, false);
    assert_trains_as_in_tensorflow("/cpu:0", "all", false);
    assert_trains_as_in_tensorflow("/cpu:0", NULL, true);
}

/* The second half of the first layer's filters are the first with the other sign; training leaves them. */
static void a_variable_may_begin_with_what_the_data_say(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    tw_trainer *trainer;
    tw_trainer_step_result result;
    tw_model model = record_model();
    tw_dataset *dataset = record_dataset();
    assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = 2}, &devices, &error));
    tw_trainer_options options = {.model = &model, .dataset = dataset, .devices = devices, .towers = 2, .batch = 2,
                                  .variables = {.update = TW_UPDATE_REPLICATED}};
    assert_ok(tw_trainer_create(&options, &trainer, &error));
    assert_ok(tw_trainer_step(trainer, &result, &error));
    tw_tensor *value = NULL;
    const tw_variable *kernel = tw_graph_find_variable(tw_trainer_graph(trainer), "whiten/kernel");
    assert_ok(tw_session_get_variable(tw_trainer_session(trainer), kernel, &value, &error));
    for (int row = 0; row < 12; row++)
        for (int k = 0; k < 12; k++)
            assert_true(tw_tensor_value(value, row * 24 + k) != 0 &&
                        tw_tensor_value(value, row * 24 + k) == -tw_tensor_value(value, row * 24 + 12 + k));
    tw_tensor_release(value);
    tw_trainer_destroy(trainer);
    model.data_variable = "head/kernel";
    assert_fails(tw_trainer_create(&options, &trainer, &error), TW_INVALID_ARGUMENT, "there and not trained");
    tw_devices_destroy(devices);
    tw_dataset_destroy(dataset);
}

static void the_records_network_trains_as_in_pytorch(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = 1}, &devices, &error));
    assert_record_trains_as_in_pytorch(devices, "/cpu:0", RECORD_STEPS, (tw_trainer_options){0});
    assert_record_trains_as_in_pytorch(devices, "/gpu:0", RECORD_STEPS, (tw_trainer_options){0});
    assert_record_trains_as_in_pytorch(devices, "/cpu:0", RECORD_STEPS,
                                       (tw_trainer_options){.session = {.plain_kernels = true}});
    tw_devices_destroy(devices);
}

static void set_moments(tw_trainer *trainer)
{
    char name[64];
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "block%d/norm%d/moving_mean", i / 2 + 1, i % 2 + 1);
        record_set(trainer, name, 110 + (uint32_t)i, 1 / 8.0f, 0, false);
        snprintf(name, sizeof name, "block%d/norm%d/moving_variance", i / 2 + 1, i % 2 + 1);
        record_set(trainer, name, 120 + (uint32_t)i, 1 / 2.0f, 1, false);
    }
    record_set(trainer, "whiten/bias", 108, 1 / 4.0f, 0, false);
}

/* The greatest distance of logarithms of probabilities from PyTorch's. */
static double view_distance(const tw_model *model, const tw_dataset *dataset, const char *folder, tw_devices *devices,
                            tw_views views, const double *golden)
{
    static const char *const gpus[] = {"/gpu:0", "/gpu:1"};
    static const int counts[] = {6, 1, 2, 6};
    float probabilities[RECORD_EXAMPLES * 10];
    tw_error error = {0};
    tw_scores *scores;
    double worst = 0;
    assert_ok(tw_score(model, dataset, folder, devices,
                       TW_OPTIONS(tw_evaluation_options, .batch = 7, .tower_devices = gpus, .num_tower_devices = 2,
                                  .probabilities = probabilities, .views = views),
                       &scores, &error));
    assert_int_equal(scores->views, counts[views]);
    tw_scores_destroy(scores);
    for (int i = 0; i < RECORD_LOOKED_AT * 10; i++)
        worst = fmax(worst, fabs(log((double)probabilities[i]) - golden[i]));
    return worst;
}

static void views_of_an_image_say_together_what_the_records_do(void **state)
{
    (void)state;
    char folder[] = "/tmp/test_models_XXXXXX", command[64];
    tw_error error = {0};
    tw_devices *devices;
    tw_trainer *trainer;
    tw_model model = record_model();
    tw_dataset *dataset = record_dataset();
    assert_non_null(mkdtemp(folder));
    assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = 2}, &devices, &error));
    assert_ok(tw_trainer_create(TW_OPTIONS(tw_trainer_options, .model = &model, .dataset = dataset, .devices = devices,
                                           .batch = 2),
                                &trainer, &error));
    record_set_first_values(trainer);
    set_moments(trainer);
    assert_ok(tw_trainer_save(trainer, folder, 0, &error));
    tw_trainer_destroy(trainer);
    for (tw_views views = TW_VIEWS_DEFAULT; views <= TW_VIEWS_SHIFTED; views++) {
        const double *golden = record_views[views == TW_VIEWS_DEFAULT ? 2 : views - 1];
        double worst = view_distance(&model, dataset, folder, devices, views, golden);
        print_message("views %d: %.1e from PyTorch's\n", (int)views, worst);
        assert_true(worst <= 2e-6);
    }
    tw_scores *scores;
    assert_fails(tw_score(&model, dataset, folder, devices, TW_OPTIONS(tw_evaluation_options, .views = 9), &scores,
                          &error),
                 TW_INVALID_ARGUMENT, "options.views: there is no number 9");
    tw_devices_destroy(devices);
    tw_dataset_destroy(dataset);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_model_has_its_parameters),
        cmocka_unit_test(views_of_an_image_say_together_what_the_records_do),
        cmocka_unit_test(networks_for_imagenet_have_the_known_parameters_with_1000_classes),
        cmocka_unit_test(weight_decay_can_spare_batch_normalization),
        cmocka_unit_test(bfloat16_leaves_variables_and_logits_in_float32),
        cmocka_unit_test(mnist_starts_near_the_log_of_ten_and_learns_with_adam),
        cmocka_unit_test(first_loss_of_a_residual_network_is_the_closed_forms),
        cmocka_unit_test(four_towers_of_a_residual_network_give_the_same_bits_on_1_2_and_4_devices),
        cmocka_unit_test(moving_moments_are_tower_0s),
        cmocka_unit_test(mean_of_losses_trains_as_the_mean_of_gradients_does),
        cmocka_unit_test(rate_steps_follow_epochs),
        cmocka_unit_test(rates_change_where_the_programs_of_the_time_change_them),
        cmocka_unit_test(first_loss_of_the_tutorial_is_the_closed_forms_whatever_the_convolutions_begin_with),
        cmocka_unit_test(losses_of_each_tower_have_moving_averages_of_their_own),
        cmocka_unit_test(evaluation_restores_a_residual_network_without_averages),
        cmocka_unit_test(towers_of_the_residual_network_give_classes_and_probabilities),
        cmocka_unit_test(a_residual_network_trains_as_in_tensorflow),
        cmocka_unit_test(a_variable_may_begin_with_what_the_data_say),
        unsanitized_test(the_records_network_trains_as_in_pytorch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

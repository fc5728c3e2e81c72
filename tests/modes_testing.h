/* modes_testing.h - small networks with all that a mode of update could get wrong, trained on any number of virtual
 * GPUs, and a digest of what a checkpoint says of them; for tests of modes. */
#ifndef MODES_TESTING_H
#define MODES_TESTING_H

#include "testing.h"
#include "faulty_files.h" /* scratch_folder */

#include <tower/models.h>
#include <tower/nn.h>
#include <tower/train.h>
#include <tower/trainer.h>

enum { MOST_GPUS = 8 };
static tw_dataset *dataset;
static tw_devices *gpus[MOST_GPUS + 1]; /* by their number */
static tw_error error;

static inline int open_all(void **state)
{
    (void)state;
    assert_ok(tw_dataset_synthetic(40, 8, 8, 3, 10, 5, &dataset, &error));
    for (int n = 1; n <= MOST_GPUS; n++)
        if (n <= 3 || n == 5 || n == 8)
            assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = n, .cpu_threads = 1}, &gpus[n], &error));
    return 0;
}

static inline int close_all(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST_GPUS; n++)
        tw_devices_destroy(gpus[n]);
    tw_dataset_destroy(dataset);
    return 0;
}

/* A network with all that a mode could get wrong: state that is not trained, random numbers, moving averages, slots. */
static inline tw_output rich_logits(tw_graph *g, const tw_model *model, tw_output images, tw_dtype dtype, bool training)
{
    (void)dtype;
    tw_output x = tw_conv2d_layer(g, "conv", images, 4, 3, &(tw_conv2d_options){.stride = {2}}, NULL);
    x = tw_relu(g, tw_batch_norm_layer(g, "norm", x, 0.9f, 1e-3f, training));
    x = tw_dense_layer(g, "hidden", tw_flatten(g, x), 12, &(tw_layer_options){.activation = tw_relu});
    x = tw_dropout(g, x, 0.25f, 0);
    return tw_dense_layer(g, "logits", x, model->classes, NULL);
}

static inline tw_output plain_logits(tw_graph *g, const tw_model *model, tw_output images, tw_dtype dtype, bool training)
{
    (void)dtype;
    (void)training;
    tw_output x = tw_dense_layer(g, "hidden", tw_flatten(g, images), 12, &(tw_layer_options){.activation = tw_tanh});
    return tw_dense_layer(g, "logits", x, model->classes, NULL);
}

#define MODEL(name_, logits_, ...)                                                                                     \
    {                                                                                                                  \
        .name = name_, .description = "for tests", .dataset = "cifar10", .height = 8, .width = 8, .channels = 3,       \
        .classes = 10, .batch = 2, .logits = logits_, __VA_ARGS__                                 \
    }
static const tw_model rich = MODEL("rich", rich_logits, .optimizer = TW_OPTIMIZER_ADAM, .learning_rate = 0.01f,
                                   .weight_decay = 1e-3f, .average_decay = 0.99f);
static const tw_model plain = MODEL("plain", plain_logits, .learning_rate = 0.1f, .weight_decay = 1e-2f); /* gradient descent */

static inline tw_trainer_options options_for(const tw_model *model, int towers, int on, tw_variable_options variables)
{
    return (tw_trainer_options){.model = model, .dataset = dataset, .devices = gpus[on], .towers = towers,
                                .variables = variables, .input_threads = 1, .seed = 7};
}

static inline tw_trainer *start_with(tw_trainer_options options)
{
    tw_trainer *trainer = NULL;
    assert_ok(tw_trainer_create(&options, &trainer, &error));
    return trainer;
}

static inline tw_trainer *start(const tw_model *model, int towers, int on, tw_variable_options variables)
{
    return start_with(options_for(model, towers, on, variables));
}

static inline float step(tw_trainer *trainer, int steps)
{
    tw_trainer_step_result result = {0};
    for (int i = 0; i < steps; i++)
        assert_ok(tw_trainer_step(trainer, &result, &error));
    return result.loss;
}

/* A variable's value; to be released. */
static inline tw_tensor *value_of(tw_trainer *trainer, const char *name)
{
    tw_tensor *value = NULL;
    const tw_variable *variable = tw_graph_find_variable(tw_trainer_graph(trainer), name);
    if (!variable)
        fail_msg("there is no variable '%s'", name);
    assert_ok(tw_session_get_variable(tw_trainer_session(trainer), variable, &value, &error));
    return value;
}

static inline bool belongs_to_a_mode(const char *name)
{
    const char *end = strrchr(name, '/');
    return strncmp(name, "tower/", 6) == 0 || (end && (!strcmp(end, "/Staged") || !strcmp(end, "/Pending")));
}

enum { DIGEST = 2 * 16 + 1 };

/* Two hashes that have nothing in common: FNV-1a, and a polynomial. */
static inline void add_to_digest(uint64_t digest[2], const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = ((const uint8_t *)bytes)[i];
        digest[0] = (digest[0] ^ byte) * UINT64_C(0x100000001b3);
        digest[1] = digest[1] * UINT64_C(6364136223846793005) + byte + 1;
    }
}

/* A digest of what a checkpoint says of the network: names and values of all variables. */
static inline const char *digest(tw_trainer *trainer)
{
    static char text[DIGEST];
    const char *folder = scratch_folder();
    tw_checkpoint *checkpoint;
    uint64_t both[2] = {UINT64_C(0xcbf29ce484222325), 0};
    assert_ok(tw_trainer_save(trainer, folder, 0, &error));
    assert_ok(tw_checkpoint_open(folder, &checkpoint, &error));
    for (int i = 0; i < tw_checkpoint_count(checkpoint); i++) {
        const char *name = tw_checkpoint_name(checkpoint, i);
        tw_tensor *value;
        if (belongs_to_a_mode(name))
            continue;
        assert_null(strstr(name, "tower_"));
        assert_null(strstr(name, "copy_"));
        assert_ok(tw_checkpoint_read(checkpoint, name, &value, &error));
        add_to_digest(both, name, strlen(name) + 1);
        add_to_digest(both, tw_tensor_data(value), tw_tensor_bytes(value));
        tw_tensor_release(value);
    }
    snprintf(text, sizeof text, "%016llx%016llx", (unsigned long long)both[0], (unsigned long long)both[1]);
    tw_checkpoint_close(checkpoint);
    remove_scratch(folder);
    return text;
}

static const int counts[] = {2, 5, 1, 3, 8}; /* of GPUs */
enum { COUNTS = UNDER_SANITIZER ? 2 : 5 };    /* memory and threads are the same on the others, bits may not be */

static inline void assert_same(tw_trainer *a, const char *name, const tw_tensor *expected)
{
    tw_tensor *value = value_of(a, name);
    assert_memory_equal(tw_tensor_data(value), tw_tensor_data(expected), tw_tensor_bytes(value));
    tw_tensor_release(value);
}

enum { NUM_PLAIN = 4 };
static const char *const plain_names[NUM_PLAIN] = {"hidden/kernel", "hidden/bias", "logits/kernel", "logits/bias"};

#endif

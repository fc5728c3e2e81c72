/* Every way of keeping variables and of bringing gradients together on two cards trains as on the CPU: all variables
 * after some steps, those of both towers among them. On cards that are not there (card.h). As two tasks, started with
 * the word "tasks": on a card of each task to the bit as on one card, every second of them, or with "every" all. */
#include "testing.h"

#include "card.h"

#include <stdlib.h>
#include <tower/models.h>
#include <tower/nn.h>
#include <tower/tower.h>

enum { TOWERS = 2, STEPS = 3, MOST_VARIABLES = 64 };

static tw_dataset *dataset;

/* What a mode could get wrong: state that is not trained, slots, moving averages. */
static tw_output logits(tw_graph *g, const tw_model *model, tw_output images, tw_dtype dtype, bool training)
{
    (void)dtype;
    tw_output x = tw_conv2d_layer(g, "conv", images, 4, 3, &(tw_conv2d_options){.stride = {2}}, NULL);
    x = tw_relu(g, tw_batch_norm_layer(g, "norm", x, 0.9f, 1e-3f, training));
    x = tw_dense_layer(g, "hidden", tw_flatten(g, x), 12, &(tw_layer_options){.activation = tw_relu});
    return tw_dense_layer(g, "logits", x, model->classes, NULL);
}

static const tw_model model = {
    .name = "small", .description = "for tests", .dataset = "cifar10", .height = 8, .width = 8, .channels = 3,
    .classes = 10, .batch = 2, .logits = logits, .optimizer = TW_OPTIMIZER_MOMENTUM, .momentum = 0.9f, .learning_rate = 0.05f,
    .weight_decay = 1e-3f, .average_decay = 0.99f};

typedef struct mode {
    const char *name;
    tw_variable_options variables;
    tw_average_options average;
    bool asynchronous;
} mode;

typedef struct values {
    const char *names[MOST_VARIABLES];
    tw_tensor *tensors[MOST_VARIABLES];
    int count;
    float losses[STEPS];
} values;

static void keep(tw_trainer *trainer, values *v)
{
    tw_error error = {0};
    const tw_graph *g = tw_trainer_graph(trainer);
    v->count = tw_graph_num_variables(g);
    assert_in_range(v->count, 8, MOST_VARIABLES);
    for (int i = 0; i < v->count; i++) {
        const tw_variable *variable = tw_graph_variable(g, i);
        v->names[i] = strdup(variable->name);
        assert_ok(tw_session_get_variable(tw_trainer_session(trainer), variable, &v->tensors[i], &error));
    }
}

static void drop(values *v)
{
    for (int i = 0; i < v->count; i++) {
        free((char *)v->names[i]);
        tw_tensor_release(v->tensors[i]);
    }
}

typedef enum place { ON_CPU, ON_CARDS, ON_CARDS_OF_TASKS } place;

static int cards = TOWERS;        /* of a process */
static bool every;               /* of those that tasks try */
static tw_devices *of_all_tasks; /* which a process joins once; NULL: there is this one */

static tw_devices *open_devices(place where)
{
    tw_error error = {0};
    tw_devices *devices;
    tw_device_options options = TW_SIZED(tw_device_options);
    options.cpu_threads = 1;
    options.no_gpus = where == ON_CPU;
    options.tasks = where == ON_CARDS_OF_TASKS;
    assert_ok(tw_devices_create(&options, &devices, &error));
    assert_int_equal(tw_devices_count(devices, "GPU"), where == ON_CPU ? 0 : where == ON_CARDS ? cards : TOWERS);
    return devices;
}

static void train(const mode *m, place where, bool plan_only, values *v)
{
    tw_error error = {0};
    tw_devices *devices = where == ON_CARDS_OF_TASKS ? of_all_tasks : open_devices(where);
    tw_trainer *trainer;
    tw_trainer_step_result result;
    tw_trainer_options options = {.model = &model, .dataset = dataset, .devices = devices, .towers = TOWERS,
                                  .variables = m->variables, .average = m->average, .seed = 7, .input_threads = 1,
                                  .plan_only = plan_only,
                                  .updates = m->asynchronous ? TW_UPDATES_ASYNCHRONOUS : TW_UPDATES_SYNCHRONOUS,
                                  .asynchronous.order = m->asynchronous ? TW_ORDER_EQUAL : TW_ORDER_ARRIVAL};
    if (where == ON_CPU) { /* has neither */
        options.variables.parameter_device = TW_PARAMETERS_DEFAULT;
        options.average.all_reduce = m->average.all_reduce ? "tree" : NULL;
    }
    if (where == ON_CARDS && cards < TOWERS && strcmp(m->name, "nccl") == 0)
        options.average.all_reduce = "tree"; /* NCCL wants a card for each; of two the sum has one order */
    if (tw_trainer_create(&options, &trainer, &error) != TW_OK)
        fail_msg("%s: %s", m->name, error.message);
    for (int step = 0; step < STEPS && !plan_only; step++) {
        if (tw_trainer_step(trainer, &result, &error) != TW_OK)
            fail_msg("%s: %s", m->name, error.message);
        v->losses[step] = result.loss;
    }
    if (!plan_only)
        keep(trainer, v);
    tw_trainer_destroy(trainer);
    if (devices != of_all_tasks)
        tw_devices_destroy(devices);
}

/* Sums have another order on a card: within `tolerance` of the largest number. A bias before a batch normalization has
 * no gradient but what is lost by rounding. */
static void compare(const mode *m, const char *name, const tw_tensor *expected, const tw_tensor *found,
                    double tolerance)
{
    double largest = 1e-2, apart = 0;
    assert_int_equal(tw_tensor_elements(expected), tw_tensor_elements(found));
    for (int64_t i = 0; i < tw_tensor_elements(expected); i++) {
        largest = fmax(largest, fabs(tw_tensor_value(expected, i)));
        apart = fmax(apart, fabs(tw_tensor_value(expected, i) - tw_tensor_value(found, i)));
    }
    if (!(apart <= tolerance * largest))
        fail_msg("%s: '%s' is %g apart, its largest element is %g", m->name, name, apart, largest);
}

static void check(const mode *m)
{
    values cpu = {0}, card = {0};
    double tolerance = m->average.wire ? 1e-2 : 1e-4;
    train(m, ON_CPU, false, &cpu);
    train(m, ON_CARDS, false, &card);
    assert_true(cpu.losses[STEPS - 1] != cpu.losses[0]);
    for (int step = 0; step < STEPS; step++)
        if (!(fabsf(card.losses[step] - cpu.losses[step]) <= (float)tolerance * fabsf(cpu.losses[step])))
            fail_msg("%s: step %d loses %g, expected %g", m->name, step, card.losses[step], cpu.losses[step]);
    assert_int_equal(cpu.count, card.count);
    for (int i = 0; i < cpu.count; i++) {
        assert_string_equal(cpu.names[i], card.names[i]);
        compare(m, cpu.names[i], cpu.tensors[i], card.tensors[i], tolerance);
    }
    drop(&cpu);
    drop(&card);
}

static void check_tasks(const mode *m)
{
    values one = {0}, two = {0};
    train(m, ON_CARDS, false, &one);
    train(m, ON_CARDS_OF_TASKS, false, &two);
    assert_memory_equal(one.losses, two.losses, sizeof one.losses);
    assert_int_equal(one.count, two.count);
    for (int i = 0; i < one.count; i++) {
        size_t bytes = tw_tensor_bytes(one.tensors[i]);
        assert_string_equal(one.names[i], two.names[i]);
        assert_int_equal(bytes, tw_tensor_bytes(two.tensors[i]));
        if (memcmp(tw_tensor_data(one.tensors[i]), tw_tensor_data(two.tensors[i]), bytes) != 0)
            fail_msg("%s: '%s' differs", m->name, one.names[i]);
    }
    drop(&one);
    drop(&two);
}

static const mode modes[] = {
    {"parameter_server on the CPU", {.parameter_device = TW_PARAMETERS_ON_CPU}},
    {"parameter_server on one card", {.placement = TW_PLACE_SINGLE, .parameter_device = TW_PARAMETERS_ON_GPU}},
    {"parameter_server, rotate", {.placement = TW_PLACE_ROTATE, .parameter_device = TW_PARAMETERS_ON_GPU}},
    {"parameter_server, least-loaded", {.placement = TW_PLACE_LEAST_LOADED}},
    {"parameter_server, least-bytes", {.placement = TW_PLACE_LEAST_BYTES}},
    {"distributed_replicated",
     {.update = TW_UPDATE_DISTRIBUTED_REPLICATED, .parameter_device = TW_PARAMETERS_ON_GPU}},
    {"replicated", {.update = TW_UPDATE_REPLICATED}},
    {"relaxed", {.update = TW_UPDATE_REPLICATED, .consistency = TW_CONSISTENCY_RELAXED}},
    {"staged", {.staged = true}},
    {"staged, rotate", {.staged = true, .placement = TW_PLACE_ROTATE}},
    {"independent", {.update = TW_UPDATE_INDEPENDENT}},
    {"asynchronous", .asynchronous = true},
};

static void every_mode_of_update_trains_on_two_cards_as_on_the_cpu(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        check(&modes[i]);
}

static void every_mode_of_update_trains_on_cards_of_two_tasks_as_on_one(void **state)
{
    (void)state;
    for (size_t i = !every; i < sizeof modes / sizeof *modes; i += every ? 1 : 2)
        check_tasks(&modes[i]);
}

static const mode reductions[] = {
    {"ring", .average.all_reduce = "ring"},
    {"rechd", .average.all_reduce = "rechd"},
    {"pscpu", .average.all_reduce = "pscpu"},
    {"psgpu", .average.all_reduce = "psgpu#2"},
    {"hierarchical", .average.all_reduce = "hierarchical"},
    {"nccl", .average.all_reduce = "nccl"},
    {"by size", .average.all_reduce = "pscpu:16:psgpu:1k:xring"},
    {"packs", .average.packs = 2},
    {"buckets", .average.bucket_bytes = 1024},
    {"bfloat16 on the way", .average.wire = TW_BFLOAT16},
};

static void check_reductions(void (*check_one)(const mode *), bool all)
{
    for (size_t i = !all; i < sizeof reductions / sizeof *reductions; i += all ? 1 : 2) {
        mode m = reductions[i];
        m.variables.update = TW_UPDATE_REPLICATED;
        check_one(&m);
    }
}

static void every_reduction_trains_on_two_cards_as_on_the_cpu(void **state)
{
    (void)state;
    check_reductions(check, true);
}

static void every_reduction_trains_on_cards_of_two_tasks_as_on_one(void **state)
{
    (void)state;
    check_reductions(check_tasks, every);
}

/* Algorithms that have been chosen need not be timed again. */
static int open_all(void **state)
{
    (void)state;
    tw_error error = {0};
    assert_ok(tw_dataset_synthetic(40, 8, 8, 3, 10, 5, &dataset, &error));
    card_be_lazy(true);
    train(&(mode){"planning"}, ON_CARDS, true, NULL);
    card_be_lazy(false);
    if (cards < TOWERS)
        of_all_tasks = open_devices(ON_CARDS_OF_TASKS);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    tw_devices_destroy(of_all_tasks);
    tw_dataset_destroy(dataset);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mode_of_update_trains_on_two_cards_as_on_the_cpu),
        cmocka_unit_test(every_reduction_trains_on_two_cards_as_on_the_cpu),
    };
    const struct CMUnitTest of_tasks[] = {
        cmocka_unit_test(every_mode_of_update_trains_on_cards_of_two_tasks_as_on_one),
        cmocka_unit_test(every_reduction_trains_on_cards_of_two_tasks_as_on_one),
    };
    bool as_task = argc > 1 && strcmp(argv[1], "tasks") == 0;
    every = argc > 2 && strcmp(argv[2], "every") == 0;
    cards = as_task ? 1 : TOWERS;
    setenv("CARD_COUNT", as_task ? "1" : "2", 1);
    return as_task ? cmocka_run_group_tests(of_tasks, open_all, close_all)
                   : cmocka_run_group_tests(tests, open_all, close_all);
}

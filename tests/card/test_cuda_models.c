/* Every model trains on a card with nothing of it on the host: each node of what a training run plans has a kernel
 * there, but for those in a short list. On a card that is not there (card.h), where a few steps of small networks do
 * what they do on the CPU. */
#include "testing.h"

#include "card.h"
#include "planned_nodes.h"
#include "record_training.h"

#include <tower/tower.h>

enum { EXAMPLES = 4, STEPS = 2, MOST_VARIABLES = 256 };

typedef struct job {
    tw_dataset *dataset;
    tw_devices *devices;
    tw_trainer *trainer;
} job;

static job open_job(const tw_model *model, tw_trainer_options options, bool on_cpu)
{
    tw_error error = {0};
    job j = {0};
    assert_ok(tw_dataset_synthetic(EXAMPLES, model->height, model->width, model->channels, 10, 5, &j.dataset, &error));
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .no_gpus = on_cpu}, &j.devices, &error));
    if (!on_cpu) {
        assert_true(tw_devices_count(j.devices, "GPU") > 0);
        options.variables.parameter_device = options.variables.update ? 0 : TW_PARAMETERS_ON_GPU;
    }
    options.model = model;
    options.dataset = j.dataset;
    options.devices = j.devices;
    options.session.allow_soft_placement = true;
    if (tw_trainer_create(&options, &j.trainer, &error) != TW_OK)
        fail_msg("%s: %s", model->name, error.message);
    return j;
}

static void close_job(job *j)
{
    tw_trainer_destroy(j->trainer);
    tw_devices_destroy(j->devices);
    tw_dataset_destroy(j->dataset);
}

/* What stays on the host: it comes from there. A NoOp is nowhere. */
static bool belongs_to_the_host(const char *op)
{
    static const char *const ops[] = {"TowerInput", "NoOp"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(op, ops[i]) == 0)
            return true;
    return false;
}

/* Whether a plan runs the node. */
static bool is_run(tw_session *session, const tw_node *node)
{
    tw_error error = {0};
    tw_explanation *e;
    assert_ok(tw_session_explain(session, node, &e, &error));
    bool is = e->fate == TW_FATE_STEP || e->fate == TW_FATE_JOINED;
    tw_explanation_destroy(e);
    return is;
}

/* The same node in a graph of its own, of inputs that would be fed, or a variable. */
static tw_node *copy_node(tw_graph *g, const tw_node *node)
{
    static const char *const names[] = {"T", "dtype", "SrcT", "DstT", "Tidx", "Tdim", "N", "axis", "keep_dims", "out_type"};
    tw_output inputs[16];
    tw_attr attrs[sizeof names / sizeof *names];
    int num_attrs = 0, num_inputs = tw_node_num_inputs(node);
    assert_true(num_inputs <= 16);
    for (int i = 0; i < num_inputs; i++) {
        tw_output input = tw_node_input(node, i);
        const tw_attr *dtype = tw_node_attr(node, "dtype");
        tw_shape shape = tw_output_shape(tw_node_input(node, num_inputs - 1)); /* of what is assigned */
        inputs[i] = tw_output_dtype(input) == TW_RESOURCE && dtype
                        ? tw_get_variable(g, "v", dtype->type, shape, (tw_initializer){0})->handle
                        : tw_placeholder(g, tw_output_dtype(input), tw_output_shape(input));
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tw_node_attr(node, names[i]))
            attrs[num_attrs++] = *tw_node_attr(node, names[i]);
    tw_node *copy = NULL;
    TW_DEVICE(g, "/gpu:0")
        copy = tw_add_node(g, tw_node_op(node), NULL, inputs, num_inputs, attrs, num_attrs);
    if (!copy)
        fail_msg("%s", tw_graph_message(g));
    return copy;
}

/* Whether a node could be on the card, if it were asked to. */
static bool has_kernel_on_card(const job *j, const tw_node *node)
{
    tw_error error = {0};
    tw_session *session;
    tw_graph *g = tw_graph_create();
    tw_node *copy = copy_node(g, node);
    tw_session_options options = {.devices = j->devices, .allow_soft_placement = true};
    assert_ok(tw_session_create(g, &options, &session, &error));
    tw_explanation *e;
    assert_ok(tw_session_explain(session, copy, &e, &error));
    bool has = e->device && strstr(e->device, "/device:GPU:0");
    tw_explanation_destroy(e);
    tw_session_destroy(session);
    tw_graph_destroy(g);
    return has;
}

/* What was placed on the card has been prepared for it; the rest, the rate among it, could go there too. */
static void look_at(const job *j, const char *what)
{
    tw_session *session = tw_trainer_session(j->trainer);
    const tw_graph *graph = tw_trainer_graph(j->trainer);
    int missing = 0, nodes = tw_graph_num_nodes(graph);
    for (int i = 0; i < nodes; i++) {
        const tw_node *node = tw_graph_node(graph, i);
        const char *device = tw_session_device(session, node);
        if (!device || strstr(device, "GPU") || belongs_to_the_host(tw_node_op(node)) || !is_run(session, node) ||
            has_kernel_on_card(j, node))
            continue;
        print_error("%s: %s ('%s') has no kernel\n", what, tw_node_op(node), tw_node_name(node));
        missing++;
    }
    assert_true(nodes > 40);
    if (missing)
        fail_msg("%s: %d nodes have no kernel on the card", what, missing);
}

static void plan_model(const tw_model *model, tw_trainer_options options, const char *what)
{
    options.plan_only = true;
    options.towers = options.towers ? options.towers : 1;
    card_be_lazy(true); /* algorithms are timed */
    job j = open_job(model, options, false);
    look_at(&j, what);
    close_job(&j);
    card_be_lazy(false);
}

static void plan(const char *model, tw_trainer_options options, const char *what)
{
    options.batch = 2;
    plan_model(tw_model_find(model), options, what);
}

static void every_model_has_its_kernels(void **state)
{
    (void)state;
    for (int i = 0; i < tw_model_count(); i++) {
        const tw_model *model = tw_model_at(i);
        bool is_small = model->height <= 32;
        for (int narrow = 0; narrow < 1 + is_small && model->layers <= 20; narrow++) /* the deeper have nothing else */
            plan(model->name, (tw_trainer_options){.dtype = narrow ? TW_BFLOAT16 : TW_FLOAT32, .with_summaries = is_small,
                                                   .accuracy = true}, model->name);
    }
}

static void every_rule_has_its_kernels(void **state)
{
    (void)state;
    for (tw_model_optimizer optimizer = TW_OPTIMIZER_GRADIENT_DESCENT; optimizer <= TW_OPTIMIZER_MUON; optimizer++)
        for (int decay = 0; decay < 2; decay++)
            plan("resnet20", (tw_trainer_options){.optimizer = optimizer, .rule = {.decoupled_decay = decay ? 0.01f : 0}},
                 "an optimizer");
    for (tw_schedule schedule = TW_SCHEDULE_MODEL; schedule <= TW_SCHEDULE_PIECEWISE; schedule++)
        plan("mnist", (tw_trainer_options){.rule = {.schedule = schedule, .length = 3, .factor = 0.5f, .end = 0.001f,
                                                    .power = 2, .num_rates = 2, .at = {1, 2}, .rates = {0.1f, 0.01f},
                                                    .warm_up = 1}}, "a schedule");
    plan("mnist", (tw_trainer_options){.rule = {.clip_value = 1, .clip_norm = 1}}, "clipping");
    plan("mnist", (tw_trainer_options){.dtype = TW_FLOAT16, .rule = {.loss_scale = 128}}, "a loss scale");
    plan("mnist", (tw_trainer_options){.dtype = TW_FLOAT16, .rule = {.automatic_loss_scale = true}}, "loss scales");
}

static void every_mode_of_update_has_its_kernels(void **state)
{
    (void)state;
    plan("resnet20", (tw_trainer_options){.towers = 3}, "three towers");
    plan("mnist", (tw_trainer_options){.towers = 2, .variables = {.staged = true}}, "stages");
    plan("mnist", (tw_trainer_options){.towers = 2, .variables = {.update = TW_UPDATE_REPLICATED}}, "replicas");
    plan("mnist", (tw_trainer_options){.towers = 2, .variables = {.update = TW_UPDATE_REPLICATED, .consistency = TW_CONSISTENCY_RELAXED}},
         "relaxed replicas");
    plan("mnist", (tw_trainer_options){.towers = 2, .variables = {.update = TW_UPDATE_INDEPENDENT}}, "independent towers");
    plan("mnist", (tw_trainer_options){.towers = 2, .updates = TW_UPDATES_ASYNCHRONOUS}, "asynchronous towers");
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* Losses of some steps, and the variables after them. */
static void train(const tw_model *model, int batch, bool on_cpu, float *losses, tw_tensor **values, int *count)
{
    tw_error error = {0};
    tw_trainer_step_result result;
    tw_trainer_options options = {.batch = batch, .towers = 1};
    if (!on_cpu)
        plan_model(model, options, model->name); /* algorithms that are chosen need not be timed again */
    job j = open_job(model, options, on_cpu);
    for (int step = 0; step < STEPS; step++) {
        if (tw_trainer_step(j.trainer, &result, &error) != TW_OK)
            fail_msg("%s: %s", model->name, error.message);
        losses[step] = result.loss;
    }
    tw_session *session = tw_trainer_session(j.trainer);
    const tw_graph *g = tw_trainer_graph(j.trainer);
    *count = tw_graph_num_variables(g);
    assert_true(*count <= MOST_VARIABLES);
    for (int i = 0; i < *count; i++)
        assert_ok(tw_session_get_variable(session, tw_graph_variable(g, i), &values[i], &error));
    close_job(&j);
}

/* Sums have another order there: losses within 1e-5 of themselves, variables within `tolerance` of the largest of
 * theirs. */
static void check_training(const tw_model *model, int batch, double tolerance)
{
    float expected[STEPS], found[STEPS];
    tw_tensor *theirs[MOST_VARIABLES], *ours[MOST_VARIABLES];
    int count, same;
    train(model, batch, true, expected, theirs, &count);
    train(model, batch, false, found, ours, &same);
    assert_int_equal(count, same);
    assert_true(expected[STEPS - 1] != expected[0]);
    for (int step = 0; step < STEPS; step++)
        if (!(fabsf(found[step] - expected[step]) <= 1e-5f * fabsf(expected[step])))
            fail_msg("%s: the loss of step %d is %.9g, expected %.9g", model->name, step, found[step], expected[step]);
    for (int i = 0; i < count; i++) {
        double largest = 0, apart = 0;
        for (int64_t k = 0; k < tw_tensor_elements(theirs[i]); k++) {
            largest = fmax(largest, fabs(tw_tensor_value(theirs[i], k)));
            apart = fmax(apart, fabs(tw_tensor_value(theirs[i], k) - tw_tensor_value(ours[i], k)));
        }
        if (!(apart <= tolerance * largest))
            fail_msg("%s: variable %d is %g apart, its largest element is %g", model->name, i, apart, largest);
        tw_tensor_release(theirs[i]);
        tw_tensor_release(ours[i]);
    }
}

static void chains_are_one_kernel_on_the_card_too(void **state)
{
    (void)state;
    static const struct {
        const char *model, *ops[8];
        tw_dtype dtype;
        bool scaled; /* by a loss scale that looks for what is not finite */
    } known[] = {{"cifar10", {"_TowerBatchInto", "_ApplyAveragedMany", "_TransposedFilterConv2DMaxPoolLRN",
                              "_Conv2DMaxPoolLRNGrad"},
                  TW_BFLOAT16},
                 {"cifar10", {"_TransposedFilterConv2DMaxPoolLRN", "_Conv2DMaxPoolLRNGrad", "_LRNMaxPool"}, TW_FLOAT16},
                 {"resnet20", {"_TransposedFilterConv2DBatchNormRelu", "_BatchNormReluGrad"}, TW_FLOAT16},
                 {"cifar10", {"_AllFiniteMany"}, TW_FLOAT16, .scaled = true},
                 {"cifar10", {"_CastMany", "_TransposedFilterConv2D", "_TransposedFilterConv2DBackpropInput",
                              "_TransposedFilterConv2DBackpropFilter", "_MaxPoolLRN", "_MaxPoolLRNGrad", "_LRNMaxPool",
                              "_LRNMaxPoolGrad"}},
                 {"resnet20", {"_BatchNormRelu", "_BatchNormReluGrad", "_ApplyMany", "_MovingAverageMany"}}};
    card_be_lazy(true);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const tw_trainer_options options = {.batch = 2, .towers = 1, .plan_only = true, .dtype = known[i].dtype,
                                            .rule = {.automatic_loss_scale = known[i].scaled}};
        job j = open_job(tw_model_find(known[i].model), options, false);
        for (int k = 0; k < 8 && known[i].ops[k]; k++)
            if (!plans_have(tw_trainer_session(j.trainer), known[i].ops[k]))
                fail_msg("%s is planned without %s", known[i].model, known[i].ops[k]);
        assert_false(plans_have(tw_trainer_session(j.trainer), "IsFinite"));
        close_job(&j);
    }
    card_be_lazy(false);
}

static void small_networks_train_on_the_card_as_on_the_cpu(void **state)
{
    (void)state;
    tw_model residual = *tw_model_find("resnet20");
    residual.layers = 8; /* one block a stage */
    residual.height = residual.width = 8;
    check_training(&residual, 2, 1e-4);
    check_training(tw_model_find("cifar10"), 1, 1e-4);
    /* Adam: gradients that are nearly 0 are divided by themselves. */
    check_training(tw_model_find("mnist"), 1, 1e-3);
}

/* Two steps, because a card that is played is slow: the second one's loss tells whether the first one's updates were
 * right. Algorithms were timed when the plan was made, and need not be again. */
static void the_records_network_trains_on_the_card_as_in_pytorch(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    tw_model model = record_model();
    plan_model(&model, (tw_trainer_options){.batch = RECORD_BATCH}, model.name);
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1}, &devices, &error));
    assert_record_trains_as_in_pytorch(devices, "/gpu:0", 2, (tw_trainer_options){
        .variables = {.parameter_device = TW_PARAMETERS_ON_GPU}, .session = {.allow_soft_placement = true}});
    tw_devices_destroy(devices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_has_its_kernels),
        cmocka_unit_test(every_rule_has_its_kernels),
        cmocka_unit_test(every_mode_of_update_has_its_kernels),
        cmocka_unit_test(chains_are_one_kernel_on_the_card_too),
        cmocka_unit_test(small_networks_train_on_the_card_as_on_the_cpu),
        cmocka_unit_test(the_records_network_trains_on_the_card_as_in_pytorch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The tutorial's network, trained for 20 steps, against TensorFlow's own training (golden/make_training.py).
 *
 * Tolerances. Distances are parts of the root mean square of the values they belong to. TensorFlow's own float32 strays
 * from its float64 by 2e-7 in losses, 7e-6 in gradients and 1e-6 in variables (golden/training.h says so for each run):
 * convolutions over 1,600 terms are summed in another order. Two such roundings may add up and the order may be worse
 * than TensorFlow's, so ten times as much is allowed. The data were chosen such that no ReLU and no pool comes so near
 * to a tie that rounding could decide it otherwise, which would cost a thousand times more. */
#include "golden_noise.h"
#include "testing.h"

#include "golden/training.h"

#include <tower/models.h>
#include <tower/ops.h>
#include <tower/train.h>

#define LOSS_TOLERANCE 2e-6
#define GRADIENT_TOLERANCE 7e-5
#define VARIABLE_TOLERANCE 1e-5

enum { IMAGE = 24 * 24 * 3, MOST_TOWERS = 4 };

/* ---- the formula ------------------------------------------------------------------------------------------------ */

static void fill_batch(int step, float *images, int32_t *labels)
{
    for (uint32_t i = 0; i < BATCH * IMAGE; i++)
        images[i] = golden_noise(NOISE_SEED + 1000 + (uint32_t)step, i) * 0.5f;
    for (int k = 0; k < BATCH; k++) {
        labels[k] = (step * BATCH + k) * 7 % 10;
        float *row = images + k * IMAGE + (2 * labels[k] + 2) * 24 * 3;
        for (int i = 0; i < 24 * 3; i++)
            row[i] += 1;
    }
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

typedef struct setup {
    int towers, gpus; /* tower i runs on GPU i mod gpus; gpus 0: on the CPU */
    int steps;
    const char *disable;
    bool plain;
} setup;

typedef struct outcome {
    double losses[STEPS][MOST_TOWERS];
    tw_tensor *gradients[VARIABLES];                       /* of the first step */
    tw_tensor *variables[VARIABLES], *averages[VARIABLES]; /* after the last */
} outcome;

static void free_outcome(outcome *o)
{
    for (int i = 0; i < VARIABLES; i++) {
        tw_tensor_release(o->gradients[i]);
        tw_tensor_release(o->variables[i]);
        tw_tensor_release(o->averages[i]);
    }
}

typedef struct program {
    tw_graph *g;
    tw_output images[MOST_TOWERS], labels[MOST_TOWERS];
    tw_output fetches[MOST_TOWERS + 1 + VARIABLES]; /* losses, the step, gradients */
    tw_averages *averages;
} program;

static program build(const setup *s)
{
    program p = {.g = tw_graph_create()};
    tw_graph *g = p.g;
    const tw_model *model = tw_model_find("cifar10");
    tw_grads *grads[MOST_TOWERS];
    tw_enter_device(g, "/cpu:0");
    tw_variable *step = tw_global_step(g);
    tw_output rate = tw_exponential_decay(g, first_rate, step, decay_steps, rate_decay, true);
    tw_optimizer *sgd = tw_gradient_descent(g, rate);
    for (int t = 0; t < s->towers; t++) {
        p.images[t] = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(BATCH / s->towers, 24, 24, 3));
        p.labels[t] = tw_placeholder(g, TW_INT32, TW_SHAPE(BATCH / s->towers));
        TW_DEVICE(g, s->gpus ? "/gpu:%d" : "/cpu:0", t % (s->gpus ? s->gpus : 1))
        TW_NAME_SCOPE(g, "tower_%d", t)
        {
            p.fetches[t] = tw_model_loss(g, model, p.images[t], p.labels[t], TW_FLOAT32);
            grads[t] = tw_compute_gradients(sgd, p.fetches[t]);
            tw_reuse_variables(g);
        }
    }
    tw_grads *mean = tw_average_gradients(g, grads, s->towers, NULL);
    p.averages = tw_moving_averages(g, 0.9999f, step, tw_apply_gradients(sgd, mean, step));
    assert_string_equal(tw_graph_message(g), "");
    p.fetches[s->towers] = p.averages->update;
    assert_int_equal(mean->count, VARIABLES);
    for (int i = 0; i < VARIABLES; i++)
        p.fetches[s->towers + 1 + i] = mean->gradients[i];
    tw_leave_device(g);
    return p;
}

/* All variables and their averages start with the formula's values. */
static void set_first_values(const program *p, tw_session *session)
{
    tw_error error = {0};
    tw_output init = tw_initialize_variables(p->g);
    assert_ok(tw_session_run(session, NULL, 0, &init, 1, NULL, &error));
    for (int i = 0; i < VARIABLES; i++) {
        tw_variable *variable = tw_graph_find_variable(p->g, golden_variables[i].name);
        assert_ptr_equal(p->averages->variables[i], variable);
        tw_tensor *value = tw_tensor_create(TW_FLOAT32, variable->shape);
        for (uint32_t k = 0; k < tw_tensor_elements(value); k++)
            ((float *)tw_tensor_data(value))[k] =
                golden_noise(NOISE_SEED + 100 + (uint32_t)i, k) * golden_variables[i].spread;
        assert_ok(tw_session_set_variable(session, variable, value, &error));
        assert_ok(tw_session_set_variable(session, p->averages->averages[i], value, &error));
        tw_tensor_release(value);
    }
}

static void take_step(const setup *s, const program *p, tw_session *session, int step, outcome *o)
{
    tw_error error = {0};
    tw_feed feeds[2 * MOST_TOWERS];
    tw_tensor *results[MOST_TOWERS + 1 + VARIABLES] = {0};
    static float images[BATCH * IMAGE];
    int32_t labels[BATCH];
    int share = BATCH / s->towers, num_fetches = s->towers + 1 + (step == 0 ? VARIABLES : 0);
    fill_batch(step, images, labels);
    for (int t = 0; t < s->towers; t++) {
        feeds[2 * t] =
            (tw_feed){p->images[t], tw_tensor_from(TW_FLOAT32, TW_SHAPE(share, 24, 24, 3), images + t * share * IMAGE)};
        feeds[2 * t + 1] = (tw_feed){p->labels[t], tw_tensor_from(TW_INT32, TW_SHAPE(share), labels + t * share)};
    }
    assert_ok(tw_session_run(session, feeds, 2 * s->towers, p->fetches, num_fetches, results, &error));
    for (int t = 0; t < s->towers; t++) {
        o->losses[step][t] = tw_tensor_value(results[t], 0);
        tw_tensor_release(results[t]);
        tw_tensor_release(feeds[2 * t].tensor);
        tw_tensor_release(feeds[2 * t + 1].tensor);
    }
    for (int i = 0; step == 0 && i < VARIABLES; i++)
        o->gradients[i] = results[s->towers + 1 + i];
}

static outcome train(setup s)
{
    outcome o = {0};
    tw_error error = {0};
    tw_devices *devices;
    tw_session *session;
    program p = build(&s);
    assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = s.gpus}, &devices, &error));
    tw_session_options options = {.devices = devices, .disable = s.disable, .plain_kernels = s.plain};
    assert_ok(tw_session_create(p.g, &options, &session, &error));
    set_first_values(&p, session);
    for (int step = 0; step < s.steps; step++)
        take_step(&s, &p, session, step, &o);
    for (int i = 0; i < VARIABLES; i++) {
        assert_ok(tw_session_get_variable(session, p.averages->variables[i], &o.variables[i], &error));
        assert_ok(tw_session_get_variable(session, p.averages->averages[i], &o.averages[i], &error));
    }
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(p.g);
    return o;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static double greater(double a, double b)
{
    return b > a || isnan(b) ? b : a; /* NaN wins and stays */
}

/* The greatest distance from a digest, as a part of the root mean square. */
static double digest_distance(const tw_tensor *tensor, const digest *golden)
{
    int64_t count = tw_tensor_elements(tensor);
    const float *values = tw_tensor_data(tensor);
    double squares = 0, worst, size = golden->norm / sqrt((double)count);
    for (int64_t i = 0; i < count; i++)
        squares += (double)values[i] * values[i];
    worst = fabs(sqrt(squares) - golden->norm) / golden->norm;
    for (int k = 0; k < SAMPLES; k++)
        worst = greater(worst, fabs(values[k * (count - 1) / (SAMPLES - 1)] - golden->samples[k]) / size);
    return worst;
}

static double distance(const tw_tensor *a, const tw_tensor *b)
{
    const float *x = tw_tensor_data(a), *y = tw_tensor_data(b);
    double squares = 0, worst = 0;
    int64_t count = tw_tensor_elements(a);
    for (int64_t i = 0; i < count; i++) {
        squares += (double)y[i] * y[i];
        worst = greater(worst, fabs((double)x[i] - y[i]));
    }
    return worst / sqrt(squares / (double)count);
}

/* Prints how far it is off, whether or not that is allowed: a worse kernel is then seen before it fails. */
static void assert_distances(const char *what, double losses, double gradients, double variables, double averages)
{
    print_message("%s: losses %.1e, gradients %.1e, variables %.1e, averages %.1e\n", what, losses, gradients,
                  variables, averages);
    assert_true(losses <= LOSS_TOLERANCE);
    assert_true(gradients <= GRADIENT_TOLERANCE);
    assert_true(variables <= VARIABLE_TOLERANCE);
    assert_true(averages <= VARIABLE_TOLERANCE);
}

/* Of a run that took all steps everything is compared, of a shorter one losses and gradients. */
static void assert_as_golden(const char *what, setup s)
{
    const struct golden *golden = &golden_training[0];
    while (golden->towers != s.towers)
        golden++;
    outcome o = train(s);
    double losses = 0, gradients = 0, variables = 0, averages = 0;
    for (int step = 0; step < s.steps; step++)
        for (int t = 0; t < s.towers; t++)
            losses = greater(losses, fabs(o.losses[step][t] / golden->losses[step][t] - 1));
    for (int i = 0; i < VARIABLES; i++) {
        gradients = greater(gradients, digest_distance(o.gradients[i], &golden->gradients[i]));
        if (s.steps == STEPS) {
            variables = greater(variables, digest_distance(o.variables[i], &golden->variables[i]));
            averages = greater(averages, digest_distance(o.averages[i], &golden->averages[i]));
        }
    }
    assert_distances(what, losses, gradients, variables, averages);
    free_outcome(&o);
}

static void assert_same_bits(const setup *a, const setup *b)
{
    outcome x = train(*a), y = train(*b);
    assert_memory_equal(x.losses, y.losses, sizeof x.losses);
    for (int i = 0; i < VARIABLES; i++) {
        size_t bytes = tw_tensor_bytes(x.variables[i]);
        assert_memory_equal(tw_tensor_data(x.gradients[i]), tw_tensor_data(y.gradients[i]), bytes);
        assert_memory_equal(tw_tensor_data(x.variables[i]), tw_tensor_data(y.variables[i]), bytes);
        assert_memory_equal(tw_tensor_data(x.averages[i]), tw_tensor_data(y.averages[i]), bytes);
    }
    free_outcome(&x);
    free_outcome(&y);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void one_tower_trains_as_in_tensorflow(void **state)
{
    (void)state;
    assert_as_golden("one tower", (setup){.towers = 1, .steps = STEPS});
}

static void one_tower_on_a_gpu_trains_as_in_tensorflow(void **state)
{
    (void)state;
    assert_as_golden("one tower on a GPU", (setup){.towers = 1, .gpus = 1, .steps = STEPS});
}

static void two_towers_on_two_gpus_train_as_in_tensorflow(void **state)
{
    (void)state;
    assert_as_golden("two towers, two GPUs", (setup){.towers = 2, .gpus = 2, .steps = STEPS});
}

static void without_rewrites_training_is_as_in_tensorflow(void **state)
{
    (void)state;
    assert_as_golden("no rewrites", (setup){.towers = 1, .steps = STEPS, .disable = "all"});
    assert_as_golden("no rewrites, two towers", (setup){.towers = 2, .gpus = 2, .steps = STEPS, .disable = "all"});
}

/* Plain convolutions take their time: three steps. */
static void plain_kernels_train_as_in_tensorflow(void **state)
{
    (void)state;
    assert_as_golden("plain kernels", (setup){.towers = 1, .steps = 3, .plain = true});
}

static void fast_kernels_plain_kernels_and_no_rewrites_agree(void **state)
{
    (void)state;
    setup setups[] = {
        {.towers = 2, .gpus = 1, .steps = 3},
        {.towers = 2, .gpus = 1, .steps = 3, .disable = "all"},
        {.towers = 2, .gpus = 1, .steps = 3, .plain = true},
    };
    outcome o[3];
    for (int i = 0; i < 3; i++)
        o[i] = train(setups[i]);
    for (int i = 1; i < 3; i++) {
        double worst[4] = {0};
        for (int step = 0; step < 3; step++)
            for (int t = 0; t < 2; t++)
                worst[0] = greater(worst[0], fabs(o[i].losses[step][t] / o[0].losses[step][t] - 1));
        for (int v = 0; v < VARIABLES; v++) {
            worst[1] = greater(worst[1], distance(o[i].gradients[v], o[0].gradients[v]));
            worst[2] = greater(worst[2], distance(o[i].variables[v], o[0].variables[v]));
            worst[3] = greater(worst[3], distance(o[i].averages[v], o[0].averages[v]));
        }
        assert_distances(setups[i].plain ? "plain and fast" : "no rewrites and all", worst[0], worst[1], worst[2],
                         worst[3]);
    }
    for (int i = 0; i < 3; i++)
        free_outcome(&o[i]);
}

static void memory_reuse_does_not_change_a_bit_of_training(void **state)
{
    (void)state;
    for (int towers = 1; towers <= 4; towers += 3) {
        setup reuse = {.towers = towers, .gpus = towers / 2, .steps = 5}, none = reuse;
        none.disable = "reuse";
        assert_same_bits(&reuse, &none);
    }
}

static void the_number_of_devices_does_not_change_a_bit_of_training(void **state)
{
    (void)state;
    setup one = {.towers = 4, .gpus = 1, .steps = 3}, three = one;
    three.gpus = 3;
    assert_same_bits(&one, &three);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_tower_trains_as_in_tensorflow),
        cmocka_unit_test(one_tower_on_a_gpu_trains_as_in_tensorflow),
        cmocka_unit_test(two_towers_on_two_gpus_train_as_in_tensorflow),
        unsanitized_test(without_rewrites_training_is_as_in_tensorflow),
        cmocka_unit_test(plain_kernels_train_as_in_tensorflow),
        cmocka_unit_test(fast_kernels_plain_kernels_and_no_rewrites_agree),
        unsanitized_test(memory_reuse_does_not_change_a_bit_of_training),
        unsanitized_test(the_number_of_devices_does_not_change_a_bit_of_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

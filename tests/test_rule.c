/* test_rule.c - how a run departs from a model's recipe: schedules, clipping, decay beside the gradient, loss scales,
 * accumulation. */
#include "testing.h"
#include "faulty_files.h"
#include "small_model.h"

#include <tower/models.h>
#include <tower/nn.h>

#include "golden/rule.h"

/* ---- one graph and a session --------------------------------------------------------------------------------- */

typedef struct lab {
    tw_graph *g;
    tw_devices *devices;
    tw_session *s;
} lab;

static lab open_lab(void)
{
    lab l = {.g = tw_graph_create()};
    tw_error error = {0};
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 2, .no_gpus = true}, &l.devices, &error));
    return l;
}

static void start(lab *l)
{
    tw_error error = {0};
    tw_output initialize = tw_initialize_variables(l->g);
    assert_string_equal(tw_graph_message(l->g), "");
    assert_ok(tw_session_create(l->g, &(tw_session_options){.devices = l->devices}, &l->s, &error));
    assert_ok(tw_session_run(l->s, NULL, 0, &initialize, 1, NULL, &error));
}

static void close_lab(lab *l)
{
    tw_session_destroy(l->s);
    tw_graph_destroy(l->g);
    tw_devices_destroy(l->devices);
}

static void run(const lab *l, tw_output what, const tw_feed *feeds, int count)
{
    tw_error error = {0};
    assert_ok(tw_session_run(l->s, feeds, count, &what, 1, NULL, &error));
}

static void look(const lab *l, tw_output what, float *values, int count)
{
    tw_error error = {0};
    tw_tensor *result = NULL;
    assert_ok(tw_session_run(l->s, NULL, 0, &what, 1, &result, &error));
    assert_int_equal(tw_tensor_elements(result), count);
    for (int i = 0; i < count; i++)
        values[i] = (float)tw_tensor_value(result, i);
    tw_tensor_release(result);
}

/* ---- schedules ------------------------------------------------------------------------------------------------ */

enum { NUM_STEPS = sizeof golden_steps / sizeof *golden_steps };

static void schedules_are_tensorflows(void **state)
{
    (void)state;
    lab l = open_lab();
    tw_variable *step = tw_global_step(l.g);
    tw_output rates[] = {tw_polynomial_decay(l.g, 0.5f, step, 10, 0.01f, 2),
                         tw_polynomial_decay(l.g, 0.5f, step, 10, 0, 1), tw_cosine_decay(l.g, 0.5f, step, 10, 0.05f)};
    const float *golden[] = {golden_polynomial, golden_linear, golden_cosine};
    tw_output to = tw_placeholder(l.g, TW_INT64, TW_SCALAR), set = tw_assign(l.g, step->handle, to);
    start(&l);
    for (int i = 0; i < NUM_STEPS; i++) {
        tw_tensor *value = tw_tensor_int64(golden_steps[i]);
        run(&l, set, &(tw_feed){to, value}, 1);
        tw_tensor_release(value);
        for (int k = 0; k < 3; k++) {
            float rate;
            look(&l, rates[k], &rate, 1);
            assert_floats_near(&rate, &golden[k][i], 1, 1e-6);
        }
    }
    close_lab(&l);
}

static void a_rate_warms_up_in_a_line_from_the_first_step_on(void **state)
{
    (void)state;
    lab l = open_lab();
    tw_variable *step = tw_global_step(l.g);
    tw_output rate = tw_warm_up(l.g, tw_scalar(l.g, 0.8f), step, 4);
    tw_output next = tw_assign_add(l.g, step->handle, tw_scalar_of(l.g, TW_INT64, 1));
    start(&l);
    const float expected[] = {0.2f, 0.4f, 0.6f, 0.8f, 0.8f, 0.8f};
    for (int i = 0; i < 6; i++) {
        float found;
        look(&l, rate, &found, 1);
        assert_floats_near(&found, &expected[i], 1, 1e-6);
        run(&l, next, NULL, 0);
    }
    close_lab(&l);
}

static void a_schedule_over_no_steps_is_refused(void **state)
{
    (void)state;
    lab l = open_lab();
    tw_cosine_decay(l.g, 0.5f, tw_global_step(l.g), 0, 0);
    assert_string_equal(tw_graph_message(l.g), "cosine decay over 0 steps, expected more than 0");
    close_lab(&l);
}

/* ---- clipping ------------------------------------------------------------------------------------------------- */

/* Two variables whose gradients are those of make_rule.py. */
static tw_grads *given_gradients(lab *l, float factor)
{
    static const float a[] = {3, -4, 0.5f}, b[] = {1.5f, -0.25f, 12, 0};
    tw_initializer one = {.kind = TW_INIT_CONSTANT, .a = 1};
    tw_variable *v = tw_get_variable(l->g, "v", TW_FLOAT32, TW_SHAPE(3), one);
    tw_variable *w = tw_get_variable(l->g, "w", TW_FLOAT32, TW_SHAPE(2, 2), one);
    tw_output parts[2];
    parts[0] = tw_reduce_sum(l->g, tw_mul(l->g, tw_constant_floats(l->g, TW_SHAPE(3), a), v->value), NULL, 0, false);
    parts[1] = tw_reduce_sum(l->g, tw_mul(l->g, tw_constant_floats(l->g, TW_SHAPE(2, 2), b), w->value), NULL, 0, false);
    tw_output loss = tw_mul(l->g, tw_add_n(l->g, parts, 2), tw_scalar(l->g, factor));
    return tw_compute_gradients(tw_gradient_descent(l->g, tw_scalar(l->g, 1)), loss);
}

static void gradients_are_clipped_as_tensorflow_does(void **state)
{
    (void)state;
    lab l = open_lab();
    tw_output norm;
    tw_grads *grads = given_gradients(&l, 1);
    tw_grads *by_norm = tw_clip_gradients_by_norm(l.g, grads, 2, &norm);
    tw_grads *by_value = tw_clip_gradients(l.g, grads, 1.25f);
    start(&l);
    float found[7];
    look(&l, norm, found, 1);
    assert_floats_near(found, &golden_norm, 1, 1e-6);
    look(&l, by_norm->gradients[0], found, 3);
    look(&l, by_norm->gradients[1], found + 3, 4);
    assert_floats_near(found, golden_clipped_by_norm, 7, 1e-6);
    look(&l, by_value->gradients[0], found, 3);
    look(&l, by_value->gradients[1], found + 3, 4);
    assert_floats_near(found, golden_clipped, 7, 0);
    close_lab(&l);
}

static void a_small_norm_leaves_gradients_as_they_are(void **state)
{
    (void)state;
    lab l = open_lab();
    tw_grads *clipped = tw_clip_gradients_by_norm(l.g, given_gradients(&l, 1), 64, NULL);
    start(&l);
    float found[3];
    look(&l, clipped->gradients[0], found, 3);
    assert_floats_near(found, (float[]){3, -4, 0.5f}, 3, 0);
    close_lab(&l);
}

static void a_norm_that_is_not_finite_cannot_be_overlooked(void **state)
{
    (void)state;
    lab l = open_lab();
    tw_grads *clipped = tw_clip_gradients_by_norm(l.g, given_gradients(&l, INFINITY), 2, NULL);
    start(&l);
    float found[3];
    look(&l, clipped->gradients[0], found, 3);
    for (int i = 0; i < 3; i++)
        assert_true(isnan(found[i]));
    close_lab(&l);
}

/* ---- decay beside the gradient ---------------------------------------------------------------------------------- */

static void adam_with_decoupled_decay_is_kerass_adamw(void **state)
{
    (void)state;
    lab l = open_lab();
    static const float first[] = {1, -2, 0.5f};
    tw_variable *v = tw_get_variable(l.g, "v", TW_FLOAT32, TW_SHAPE(3), (tw_initializer){0});
    tw_output begin = tw_assign(l.g, v->handle, tw_constant_floats(l.g, TW_SHAPE(3), first));
    tw_output gradient = tw_placeholder(l.g, TW_FLOAT32, TW_SHAPE(3));
    tw_optimizer *adam = tw_adam(l.g, tw_scalar(l.g, 0.1f), 0.9f, 0.99f, 1e-6f);
    tw_decouple_weight_decay(adam, 0.2f, 0);
    tw_output loss = tw_reduce_sum(l.g, tw_mul(l.g, gradient, v->value), NULL, 0, false);
    tw_output step = tw_apply_gradients(adam, tw_compute_gradients(adam, loss), NULL);
    start(&l);
    run(&l, begin, NULL, 0);
    for (int i = 0; i < 5; i++) {
        float factor = (float)((i + 1) * (i % 2 ? -1 : 1)), found[3];
        tw_tensor *fed = tw_tensor_create(TW_FLOAT32, TW_SHAPE(3));
        memcpy(tw_tensor_data(fed), (float[]){3 * factor, -4 * factor, 0.5f * factor}, 12);
        run(&l, step, &(tw_feed){gradient, fed}, 1);
        tw_tensor_release(fed);
        look(&l, v->value, found, 3);
        assert_floats_near(found, golden_adam_w + 3 * i, 3, 1e-5);
    }
    close_lab(&l);
}

static void decay_beside_the_gradient_can_spare_vectors(void **state)
{
    (void)state;
    lab l = open_lab();
    tw_grads *grads = given_gradients(&l, 0);
    tw_optimizer *sgd = tw_gradient_descent(l.g, tw_scalar(l.g, 0.5f));
    tw_decouple_weight_decay(sgd, 0.5f, 2);
    tw_output step = tw_apply_gradients(sgd, grads, NULL);
    start(&l);
    run(&l, step, NULL, 0);
    float v[3], w[4];
    look(&l, grads->variables[0]->value, v, 3);
    look(&l, grads->variables[1]->value, w, 4);
    assert_floats_near(v, (float[]){1, 1, 1}, 3, 0);
    assert_floats_near(w, (float[]){0.75f, 0.75f, 0.75f, 0.75f}, 4, 0);
    close_lab(&l);
}

/* ---- loss scales ------------------------------------------------------------------------------------------------ */

/* A variable whose gradient in each of two towers is what is fed, times the scale. */
typedef struct scaled {
    lab l;
    tw_output fed[2], step;
    tw_loss_scale *scale;
    tw_grads *unscaled;
} scaled;

static scaled open_scaled(tw_optimizer *(*make)(tw_graph *g), float first, int every)
{
    scaled s = {.l = open_lab()};
    tw_graph *g = s.l.g;
    tw_grads *towers[2];
    s.scale = tw_automatic_loss_scale(g, first, every);
    tw_optimizer *optimizer = make(g);
    tw_initializer one = {.kind = TW_INIT_CONSTANT, .a = 1};
    tw_variable *v = tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(2), one);
    tw_variable *w = tw_get_variable(g, "w", TW_FLOAT32, TW_SHAPE(2), one);
    for (int i = 0; i < 2; i++) {
        s.fed[i] = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(2));
        tw_output both = tw_mul(g, s.fed[i], tw_add(g, v->value, w->value));
        tw_output loss = tw_reduce_sum(g, both, NULL, 0, false);
        towers[i] = tw_compute_gradients(optimizer, tw_mul(g, loss, s.scale->scale));
    }
    tw_grads *average = tw_average_gradients(g, towers, 2, NULL);
    s.unscaled = tw_unscale_gradients(g, s.scale, towers, 2, average);
    tw_guard_optimizer(optimizer, s.scale);
    tw_output parts[] = {tw_apply_gradients(optimizer, s.unscaled, NULL), s.scale->update};
    s.step = tw_group(g, parts, 2);
    return s;
}

static void take(const scaled *s, float a, float b)
{
    tw_tensor *values[2];
    for (int i = 0; i < 2; i++) {
        values[i] = tw_tensor_create(TW_FLOAT32, TW_SHAPE(2));
        memcpy(tw_tensor_data(values[i]), i ? (float[]){1, b} : (float[]){a, 1}, 8);
    }
    run(&s->l, s->step, (tw_feed[]){{s->fed[0], values[0]}, {s->fed[1], values[1]}}, 2);
    for (int i = 0; i < 2; i++)
        tw_tensor_release(values[i]);
}

static tw_optimizer *make_sgd(tw_graph *g)
{
    return tw_gradient_descent(g, tw_scalar(g, 0.1f));
}

static tw_optimizer *make_nesterov(tw_graph *g)
{
    return tw_momentum(g, tw_scalar(g, 0.1f), 0.9f, true);
}

static tw_optimizer *make_adam_w(tw_graph *g)
{
    tw_optimizer *adam = tw_adam(g, tw_scalar(g, 0.1f), 0.9f, 0.999f, 1e-8f);
    tw_decouple_weight_decay(adam, 0.1f, 0);
    return adam;
}

static tw_optimizer *make_rms_prop(tw_graph *g)
{
    return tw_rms_prop(g, tw_scalar(g, 0.1f), 0.9f, 0, 1);
}

static tw_optimizer *make_rms_prop_with_momentum(tw_graph *g)
{
    return tw_rms_prop(g, tw_scalar(g, 0.1f), 0.9f, 0.5f, 1);
}

static float scale_of(const scaled *s)
{
    float value;
    look(&s->l, s->scale->scale, &value, 1);
    return value;
}

static void an_automatic_scale_doubles_after_good_steps_and_halves_after_a_bad_one(void **state)
{
    (void)state;
    scaled s = open_scaled(make_sgd, 4, 2);
    start(&s.l);
    static const struct {
        float gradient, scale;
    } steps[] = {{1, 4}, {1, 8}, {1, 8}, {INFINITY, 4}, {1, 4}, {NAN, 2}, {NAN, 1}, {NAN, 1}, {1, 1}, {1, 2}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        take(&s, 1, steps[i].gradient);
        assert_int_equal(scale_of(&s), steps[i].scale);
    }
    close_lab(&s.l);
}

/* Every variable of the graph but the scale itself and what is never looked at, as bytes. */
static size_t state_of(const scaled *s, char *bytes)
{
    tw_error error = {0};
    size_t size = 0;
    for (int i = 0; i < tw_graph_num_variables(s->l.g); i++) {
        tw_variable *v = tw_graph_variable(s->l.g, i);
        tw_tensor *value = NULL;
        if (v == s->scale->value || v == s->scale->good || strstr(v->name, "RMSProp_1")) /* the slot of no momentum */
            continue;
        assert_ok(tw_session_get_variable(s->l.s, v, &value, &error));
        memcpy(bytes + size, tw_tensor_data(value), tw_tensor_bytes(value));
        size += tw_tensor_bytes(value);
        tw_tensor_release(value);
    }
    return size;
}

static void a_step_that_overflowed_changes_nothing_to_the_bit(void **state)
{
    (void)state;
    tw_optimizer *(*const makers[])(tw_graph *) = {make_sgd, make_nesterov, make_adam_w, make_rms_prop};
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        scaled s = open_scaled(makers[i], 1024, 100);
        start(&s.l);
        char before[256], after[256];
        take(&s, 0.5f, -3);
        take(&s, 0.25f, 2);
        size_t size = state_of(&s, before);
        take(&s, 1, INFINITY);
        take(&s, NAN, 1);
        assert_int_equal(state_of(&s, after), size);
        assert_memory_equal(before, after, size);
        take(&s, 1, 1);
        assert_int_equal(state_of(&s, after), size);
        assert_true(memcmp(before, after, size) != 0);
        close_lab(&s.l);
    }
}

static void scaled_steps_are_those_without_a_scale(void **state)
{
    (void)state;
    float found[2][2];
    for (int i = 0; i < 2; i++) { /* powers of two: exact */
        scaled s = open_scaled(make_nesterov, i ? 4096 : 1, 1000);
        start(&s.l);
        for (int k = 0; k < 4; k++)
            take(&s, 0.3f * (float)k, -0.7f);
        look(&s.l, tw_graph_find_variable(s.l.g, "v")->value, found[i], 2);
        close_lab(&s.l);
    }
    assert_memory_equal(found[0], found[1], sizeof found[0]);
}

static void what_overflowed_is_named_with_its_tower(void **state)
{
    (void)state;
    scaled s = open_scaled(make_sgd, 2, 100);
    start(&s.l);
    tw_error error = {0};
    tw_tensor *values[2] = {tw_tensor_create(TW_FLOAT32, TW_SHAPE(2)), tw_tensor_create(TW_FLOAT32, TW_SHAPE(2))};
    tw_tensor *finite = NULL;
    memcpy(tw_tensor_data(values[0]), (float[]){1, 2}, 8);
    memcpy(tw_tensor_data(values[1]), (float[]){1, INFINITY}, 8);
    tw_feed feeds[] = {{s.fed[0], values[0]}, {s.fed[1], values[1]}};
    assert_ok(tw_session_run(s.l.s, feeds, 2, &s.scale->finite, 1, &finite, &error));
    const char *first = NULL;
    for (int i = 0; i < s.scale->count && !first; i++)
        if (!((bool *)tw_tensor_data(finite))[i])
            first = s.scale->names[i];
    assert_string_equal(first,
                        "the gradient of 'w' in tower 1"); /* the last of its variables: gradients run backwards */
    assert_string_equal(s.scale->names[s.scale->count - 1], "the average of the gradients of 'v'");
    tw_tensor_release(finite);
    tw_tensor_release(values[0]);
    tw_tensor_release(values[1]);
    close_lab(&s.l);
}

static void rmsprop_with_momentum_cannot_leave_steps_out_and_says_so(void **state)
{
    (void)state;
    scaled s = open_scaled(make_rms_prop_with_momentum, 2, 100);
    assert_non_null(strstr(tw_graph_message(s.l.g), "Automatic loss scaling is not supported with RMSProp's momentum"));
    close_lab(&s.l);
}

/* ---- trainers ---------------------------------------------------------------------------------------------------- */

typedef struct trained {
    tw_dataset *dataset;
    tw_devices *devices;
    tw_trainer *trainer;
    tw_model model;
} trained;

/* Of the trainers opened from now on. */
static tw_variable_options update;
static float first_rate;
static const char *reduction;

static tw_status open_trainer(trained *t, const tw_model *model, int batch, int towers, int gpus, const tw_rule *rule,
                              tw_dtype dtype, const char *resume_from, tw_error *failure)
{
    tw_error error = {0};
    *t = (trained){.model = *model};
    t->model.training = t->model.evaluation; /* nothing random in the images */
    assert_ok(tw_dataset_synthetic(64, t->model.height, t->model.width, t->model.channels, 10, 5, &t->dataset, &error));
    assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = gpus}, &t->devices, &error));
    tw_trainer_options options = {.model = &t->model, .dataset = t->dataset, .devices = t->devices, .towers = towers,
                                  .batch = batch, .seed = 7, .dtype = dtype, .resume_from = resume_from};
    if (rule)
        options.rule = *rule;
    options.variables = update;
    options.learning_rate = first_rate;
    options.average.all_reduce = reduction;
    return tw_trainer_create(&options, &t->trainer, failure);
}

static void close_trainer(trained *t)
{
    tw_trainer_destroy(t->trainer);
    tw_devices_destroy(t->devices);
    tw_dataset_destroy(t->dataset);
}

static void train(trained *t, int steps)
{
    tw_error error = {0};
    tw_trainer_step_result result;
    for (int i = 0; i < steps; i++)
        assert_ok(tw_trainer_step(t->trainer, &result, &error));
}

/* All variables' numbers; returns how many. */
static int64_t numbers_of(const trained *t, float **numbers)
{
    tw_graph *g = tw_trainer_graph(t->trainer);
    tw_error error = {0};
    int64_t count = 0;
    *numbers = NULL;
    for (int i = 0; i < tw_graph_num_variables(g); i++) {
        tw_tensor *value = NULL;
        tw_variable *v = tw_graph_variable(g, i);
        if (v->dtype != TW_FLOAT32)
            continue;
        assert_ok(tw_session_get_variable(tw_trainer_session(t->trainer), v, &value, &error));
        int64_t elements = tw_tensor_elements(value);
        *numbers = realloc(*numbers, (size_t)(count + elements) * sizeof(float));
        memcpy(*numbers + count, tw_tensor_data(value), (size_t)elements * sizeof(float));
        count += elements;
        tw_tensor_release(value);
    }
    return count;
}

static void assert_same_numbers(const trained *a, const trained *b, double tolerance)
{
    float *x, *y;
    int64_t count = numbers_of(a, &x);
    assert_int_equal(numbers_of(b, &y), count);
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(x[i] - y[i]) <= tolerance))
            fail_msg("number %lld: %.9g, expected %.9g", (long long)i, y[i], x[i]);
    free(x);
    free(y);
}

static const tw_rule clipped = {.clip_norm = 0.5f, .nesterov = false};

/* k batches one after the other on each of N devices are k N towers, and these are one large batch. */
static void batches_accumulated_on_some_devices_are_one_large_batch(void **state)
{
    (void)state;
    tw_error error = {0};
    trained whole;
    assert_ok(open_trainer(&whole, small_model("mnist"), 12, 1, 1, &clipped, 0, NULL, &error));
    train(&whole, 3);
    for (int k = 1; k <= 4; k++)
        for (int devices = 1; devices <= 3; devices++) {
            trained parts;
            int towers = k * devices;
            if (12 % towers)
                continue;
            assert_ok(open_trainer(&parts, small_model("mnist"), 12 / towers, towers, devices, &clipped, 0, NULL,
                                   &error));
            train(&parts, 3);
            assert_same_numbers(&whole, &parts, 3e-4); /* Adam makes much of rounding where gradients are tiny */
            close_trainer(&parts);
        }
    close_trainer(&whole);
}

static void batches_accumulated_hold_one_batchs_activations(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_plan_info one, many;
    for (int i = 0; i < 2; i++) {
        trained t;
        assert_ok(open_trainer(&t, tw_model_find("cifar10"), 32, i ? 6 : 1, 1, NULL, 0, NULL, &error));
        train(&t, 1);
        assert_ok(tw_trainer_plan_info(t.trainer, i ? &many : &one, &error));
        close_trainer(&t);
    }
    assert_true(many.arena_bytes < 2 * one.arena_bytes + 4 * 4 * 1068298); /* and a few sets of gradients */
}

static const tw_rule automatic = {.automatic_loss_scale = true, .loss_scale = 1 << 24, .loss_scale_every = 2};

static void an_automatic_scale_gives_equal_bits_on_any_devices_and_goes_on_to_the_bit(void **state)
{
    (void)state;
    tw_error error = {0};
    const char *folder = scratch_folder();
    trained whole;
    assert_ok(open_trainer(&whole, small_model("mnist"), 1, 4, 1, &automatic, TW_FLOAT16, NULL, &error));
    train(&whole, 2);
    assert_ok(tw_trainer_save(whole.trainer, folder, 5, &error));
    train(&whole, 4);
    int64_t skipped;
    const char *where;
    tw_trainer_loss_scale(whole.trainer, &skipped, &where);
    assert_true(skipped > 0);
    assert_non_null(strstr(where, "the gradient of '"));
    for (int gpus = 2; gpus <= 5; gpus++) {
        trained other, resumed;
        assert_ok(open_trainer(&other, small_model("mnist"), 1, 4, gpus, &automatic, TW_FLOAT16, NULL, &error));
        train(&other, 6);
        assert_same_numbers(&whole, &other, 0);
        assert_int_equal(tw_trainer_loss_scale(other.trainer, NULL, NULL),
                         tw_trainer_loss_scale(whole.trainer, NULL, NULL));
        close_trainer(&other);
        assert_ok(open_trainer(&resumed, small_model("mnist"), 1, 0, gpus, &automatic, 0, folder, &error));
        train(&resumed, 4);
        assert_same_numbers(&whole, &resumed, 0);
        close_trainer(&resumed);
    }
    close_trainer(&whole);
    remove_scratch(folder);
}

static void an_automatic_scale_and_clipping_go_with_replicas_and_not_with_late_variables(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_rule rule = automatic;
    rule.clip_norm = 0.5f;
    trained server, replicas, late;
    update = (tw_variable_options){TW_UPDATE_PARAMETER_SERVER};
    assert_ok(open_trainer(&server, small_model("mnist"), 1, 4, 1, &rule, TW_FLOAT16, NULL, &error));
    update = (tw_variable_options){TW_UPDATE_REPLICATED};
    assert_ok(open_trainer(&replicas, small_model("mnist"), 1, 4, 4, &rule, TW_FLOAT16, NULL, &error));
    for (int i = 0; i < 6; i++) {
        tw_trainer_step_result a, b;
        assert_ok(tw_trainer_step(server.trainer, &a, &error));
        assert_ok(tw_trainer_step(replicas.trainer, &b, &error));
        assert_memory_equal(&a.loss, &b.loss, sizeof a.loss);
    }
    assert_int_equal(tw_trainer_loss_scale(server.trainer, NULL, NULL),
                     tw_trainer_loss_scale(replicas.trainer, NULL, NULL));
    close_trainer(&server);
    close_trainer(&replicas);
    update = (tw_variable_options){.update = TW_UPDATE_PARAMETER_SERVER, .staged = true};
    assert_int_equal(open_trainer(&late, small_model("mnist"), 1, 2, 2, &rule, 0, NULL, &error), TW_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "Automatic loss scaling is not supported with staged variables"));
    close_trainer(&late);
    update = (tw_variable_options){.update = TW_UPDATE_REPLICATED, .consistency = TW_CONSISTENCY_RELAXED};
    assert_int_equal(open_trainer(&late, small_model("mnist"), 1, 2, 2, &rule, 0, NULL, &error), TW_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "Automatic loss scaling is not supported with relaxed consistency"));
    close_trainer(&late);
    update = (tw_variable_options){0};
}

static void a_run_resumed_by_another_rule_is_refused_with_both(void **state)
{
    (void)state;
    tw_error error = {0};
    const char *folder = scratch_folder();
    trained first, second;
    assert_ok(open_trainer(&first, small_model("mnist"), 1, 1, 1, &clipped, 0, NULL, &error));
    train(&first, 1);
    assert_ok(tw_trainer_save(first.trainer, folder, 5, &error));
    close_trainer(&first);
    assert_int_equal(open_trainer(&second, small_model("mnist"), 0, 0, 1, NULL, 0, folder, &error),
                     TW_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message,
                           "Then: Adam (beta 0.9 and 0.999, epsilon 1e-08); averaged gradients clipped to a "
                           "norm of 0.5. Now: Adam"));
    close_trainer(&second);
    assert_ok(open_trainer(&second, small_model("mnist"), 0, 0, 1, &clipped, 0, folder, &error));
    close_trainer(&second);
    remove_scratch(folder);
}

/* What a run does that saves, what one does that goes on without being told, and what it has to say. */
static void rate_schedule_and_reduction_go_on_as_they_were_and_others_are_said(void **state)
{
    (void)state;
    static const tw_rule rule = {.schedule = TW_SCHEDULE_COSINE, .unit = TW_RATE_STEPS, .length = 9, .end = 0.125f,
                                 .warm_up = 2},
                         other = {.schedule = TW_SCHEDULE_PIECEWISE, .num_rates = 1, .at = {3}, .rates = {0.25f}};
    tw_error error = {0};
    const char *folder = scratch_folder();
    trained whole, half, resumed;
    char before[300], after[300];
    first_rate = 0.5f;
    reduction = "ring";
    assert_ok(open_trainer(&half, small_model("mnist"), 1, 3, 1, &rule, 0, NULL, &error));
    assert_string_equal(tw_trainer_changes(half.trainer), "");
    train(&half, 2);
    assert_ok(tw_trainer_save(half.trainer, folder, 5, &error));
    assert_ok(open_trainer(&whole, small_model("mnist"), 1, 3, 1, &rule, 0, NULL, &error));
    train(&whole, 4);
    first_rate = 0;
    reduction = NULL;
    assert_ok(open_trainer(&resumed, small_model("mnist"), 0, 0, 1, NULL, 0, folder, &error));
    assert_string_equal(tw_trainer_changes(resumed.trainer), "");
    assert_string_equal(tw_trainer_all_reduce(resumed.trainer), "ring");
    assert_string_equal(tw_trainer_rate_text(resumed.trainer, after, sizeof after),
                        tw_trainer_rate_text(half.trainer, before, sizeof before));
    train(&resumed, 2);
    assert_same_numbers(&whole, &resumed, 0);
    close_trainer(&resumed);
    update.update = TW_UPDATE_INDEPENDENT; /* there is no reduction to go on with */
    assert_ok(open_trainer(&resumed, small_model("mnist"), 0, 0, 1, NULL, 0, folder, &error));
    assert_null(tw_trainer_all_reduce(resumed.trainer));
    assert_string_equal(tw_trainer_changes(resumed.trainer), "");
    close_trainer(&resumed);
    update = (tw_variable_options){0};
    first_rate = 0.25f;
    reduction = "tree";
    assert_ok(open_trainer(&resumed, small_model("mnist"), 0, 0, 1, &other, 0, folder, &error));
    assert_string_equal(tw_trainer_changes(resumed.trainer),
                        "learning rate 0.25 instead of 0.5; reduction tree instead of ring; rate piecewise, 0.25 from 3 "
                        "epochs instead of cosine over 9 steps (factor 0, end 0.125, power 0), warm-up 2 steps");
    assert_string_equal(tw_trainer_all_reduce(resumed.trainer), "tree");
    assert_non_null(strstr(tw_trainer_rate_text(resumed.trainer, after, sizeof after), "0.25, 0.25 from step "));
    close_trainer(&resumed);
    close_trainer(&half);
    close_trainer(&whole);
    first_rate = 0;
    reduction = NULL;
    remove_scratch(folder);
}

static void rates_are_said_with_the_steps_and_epochs_of_their_changes(void **state)
{
    (void)state;
    tw_error error = {0};
    char text[512];
    tw_rule rule = {.schedule = TW_SCHEDULE_PIECEWISE, .unit = TW_RATE_EXAMPLES, .num_rates = 2, .at = {128, 640},
                    .rates = {0.5f, 0.25f}, .warm_up = 64, .scale_rate = true};
    trained t;
    assert_ok(open_trainer(&t, small_model("mnist"), 4, 2, 2, &rule, 0, NULL, &error));
    assert_string_equal(tw_trainer_rate_text(t.trainer, text, sizeof text),
                        "0.001, 0.5 from step 16 (epoch 2.0), 0.25 from step 80 (epoch 10.0); all times 0.008, for 8 "
                        "examples a step instead of 1000; rises in a line until step 8 (epoch 1.0)");
    close_trainer(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_are_tensorflows),
        cmocka_unit_test(a_rate_warms_up_in_a_line_from_the_first_step_on),
        cmocka_unit_test(a_schedule_over_no_steps_is_refused),
        cmocka_unit_test(gradients_are_clipped_as_tensorflow_does),
        cmocka_unit_test(a_small_norm_leaves_gradients_as_they_are),
        cmocka_unit_test(a_norm_that_is_not_finite_cannot_be_overlooked),
        cmocka_unit_test(adam_with_decoupled_decay_is_kerass_adamw),
        cmocka_unit_test(decay_beside_the_gradient_can_spare_vectors),
        cmocka_unit_test(an_automatic_scale_doubles_after_good_steps_and_halves_after_a_bad_one),
        cmocka_unit_test(a_step_that_overflowed_changes_nothing_to_the_bit),
        cmocka_unit_test(scaled_steps_are_those_without_a_scale),
        cmocka_unit_test(what_overflowed_is_named_with_its_tower),
        cmocka_unit_test(rmsprop_with_momentum_cannot_leave_steps_out_and_says_so),
        cmocka_unit_test(batches_accumulated_on_some_devices_are_one_large_batch),
        cmocka_unit_test(batches_accumulated_hold_one_batchs_activations),
        cmocka_unit_test(an_automatic_scale_gives_equal_bits_on_any_devices_and_goes_on_to_the_bit),
        cmocka_unit_test(an_automatic_scale_and_clipping_go_with_replicas_and_not_with_late_variables),
        cmocka_unit_test(a_run_resumed_by_another_rule_is_refused_with_both),
        cmocka_unit_test(rate_schedule_and_reduction_go_on_as_they_were_and_others_are_said),
        cmocka_unit_test(rates_are_said_with_the_steps_and_epochs_of_their_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

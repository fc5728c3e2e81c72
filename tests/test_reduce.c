/* test_reduce.c - towers' gradients become their mean, by every algorithm that has a name, whatever the devices.
 * label: threads */
#include "testing.h"

#include "faulty_memory.h"

#include <tower/nn.h>
#include <tower/ops.h>
#include <tower/session.h>
#include <tower/train.h>
#include <unistd.h>

enum { VARIABLES = 5, MOST_TOWERS = 8, ELEMENTS = 12 + 7 + 1 + 30 + 41 };

static const tw_shape shapes[VARIABLES] = {{2, {3, 4}}, {1, {7}}, {0, {0}}, {3, {5, 2, 3}}, {1, {41}}};

static const char *const specs[] = {
    "tree", "ring", "xring#2", "rechd", "rechd#3", "pscpu", "psgpu", "psgpu#2", "tree#4", "pscpu/pscpu", "ring/pscpu",
    "hierarchical", "hierarchical#3",
    "pscpu:7:psgpu#2:12:tree:1k:ring#2"};
enum { SPECS = sizeof specs / sizeof *specs };

/* ---- one reduction of made-up gradients ------------------------------------------------------------------------- */

typedef struct reduction {
    int towers, gpus;
    bool everywhere;
    tw_average_options options;
    float means[MOST_TOWERS][ELEMENTS]; /* of each tower, or [0] of all */
    tw_plan_info plan;
} reduction;

/* A number that needs many bits. */
static float gradient_at(int tower, int i)
{
    uint32_t x = (uint32_t)(tower * 1000 + i) * 2654435761u;
    x ^= x >> 15;
    return (float)(x * 2246822519u >> 8) / (1 << 20) - 8;
}

typedef struct machine {
    tw_graph *g;
    tw_devices *devices;
    tw_session *s;
} machine;

static machine open_machine(tw_graph *g, int gpus, bool trace)
{
    tw_error error = {0};
    machine m = {.g = g};
    if (tw_graph_status(g) != TW_OK)
        fail_msg("%s", tw_graph_message(g));
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .virtual_gpus = gpus, .no_gpus = !gpus},
                                &m.devices, &error));
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = m.devices, .trace = trace}, &m.s, &error));
    return m;
}

static void close_machine(machine *m)
{
    tw_session_destroy(m->s);
    tw_devices_destroy(m->devices);
    tw_graph_destroy(m->g);
}

/* The towers' gradients are fed; variables are their own where everyone gets the mean. */
static void build_towers(tw_graph *g, const reduction *r, tw_output *fed, tw_grads *grads, tw_grads **list)
{
    static tw_variable *variables[MOST_TOWERS][VARIABLES];
    static tw_output gradients[MOST_TOWERS][VARIABLES];
    for (int t = 0; t < r->towers; t++) {
        for (int i = 0; i < VARIABLES; i++) {
            char name[32];
            snprintf(name, sizeof name, "v%d_%d", r->everywhere ? t : 0, i);
            variables[t][i] = t && !r->everywhere
                                  ? variables[0][i]
                                  : tw_get_variable(g, name, TW_FLOAT32, shapes[i], (tw_initializer){0});
            fed[t * VARIABLES + i] = tw_placeholder(g, TW_FLOAT32, shapes[i]);
            TW_DEVICE(g, r->gpus ? "/gpu:%d" : "/cpu:0", r->gpus ? t % r->gpus : 0)
                gradients[t][i] = tw_square(g, fed[t * VARIABLES + i]); /* something that runs there */
        }
        grads[t] = (tw_grads){VARIABLES, variables[t], gradients[t]};
        list[t] = &grads[t];
    }
}

static void run_reduction(reduction *r)
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output fed[MOST_TOWERS * VARIABLES], fetches[MOST_TOWERS * VARIABLES];
    tw_tensor *results[MOST_TOWERS * VARIABLES] = {0};
    tw_feed feeds[MOST_TOWERS * VARIABLES];
    tw_grads grads[MOST_TOWERS], *list[MOST_TOWERS], *means[MOST_TOWERS];
    int copies = r->everywhere ? r->towers : 1, n = 0;
    build_towers(g, r, fed, grads, list);
    if (r->everywhere)
        tw_all_reduce(g, list, r->towers, &r->options, means);
    else
        TW_DEVICE(g, "/cpu:0")
            means[0] = tw_average_gradients(g, list, r->towers, &r->options);
    machine m = open_machine(g, r->gpus, false);
    for (int t = 0; t < r->towers; t++)
        for (int i = 0, at = 0; i < VARIABLES; i++) {
            tw_tensor *value = tw_tensor_create(TW_FLOAT32, shapes[i]);
            for (int k = 0; k < tw_tensor_elements(value); k++)
                ((float *)tw_tensor_data(value))[k] = gradient_at(t, at++);
            feeds[t * VARIABLES + i] = (tw_feed){fed[t * VARIABLES + i], value};
        }
    for (int t = 0; t < copies; t++)
        for (int i = 0; i < VARIABLES; i++)
            fetches[n++] = means[t]->gradients[i];
    assert_ok(tw_session_run(m.s, feeds, r->towers * VARIABLES, fetches, n, results, &error));
    assert_ok(tw_session_plan_info(m.s, &r->plan, &error));
    for (int t = 0; t < copies; t++)
        for (int i = 0, at = 0; i < VARIABLES; i++) {
            const tw_tensor *value = results[t * VARIABLES + i];
            assert_true(tw_shape_equal(tw_tensor_shape(value), shapes[i]));
            memcpy(r->means[t] + at, tw_tensor_data(value), tw_tensor_bytes(value));
            at += (int)tw_tensor_elements(value);
        }
    for (int i = 0; i < n; i++)
        tw_tensor_release(results[i]);
    for (int i = 0; i < r->towers * VARIABLES; i++)
        tw_tensor_release(feeds[i].tensor);
    close_machine(&m);
}

/* What plain C says, in double. */
static double expected_mean(const reduction *r, int i)
{
    double sum = 0, weights = 0;
    for (int t = 0; t < r->towers; t++) {
        double weight = r->options.weights ? r->options.weights[t] : 1;
        float x = gradient_at(t, i);
        sum += weight * (x * x);
        weights += weight;
    }
    return sum / weights;
}

static void expect_the_mean(const reduction *r, double tolerance)
{
    const char *spec = r->options.all_reduce ? r->options.all_reduce : "(none)";
    for (int i = 0; i < ELEMENTS; i++)
        if (fabs(r->means[0][i] - expected_mean(r, i)) > tolerance * 64)
            fail_msg("%s of %d towers, element %d: %.9g, expected %.9g", spec, r->towers, i, r->means[0][i],
                     expected_mean(r, i));
    for (int t = 1; t < r->towers && r->everywhere; t++)
        if (memcmp(r->means[t], r->means[0], sizeof r->means[0]) != 0)
            fail_msg("%s: tower %d of %d has other bits than tower 0", spec, t, r->towers);
}

static void every_algorithm_gives_every_tower_the_mean_of_any_number_of_towers(void **state)
{
    (void)state;
    for (int towers = 2; towers <= MOST_TOWERS; towers += UNDER_SANITIZER ? 3 : 1)
        for (int k = 0; k < SPECS; k++) {
            reduction r = {.towers = towers, .gpus = towers, .everywhere = true, .options.all_reduce = specs[k]};
            run_reduction(&r);
            expect_the_mean(&r, 1e-6);
        }
}

static void the_bits_of_an_algorithm_depend_on_towers_and_not_on_devices(void **state)
{
    (void)state;
    static const int gpus[] = {0, 3, 8, 1, 2, 5};
    for (int k = 0; k < SPECS; k++)
        for (int wire = 0; wire < 2 - UNDER_THREAD_SANITIZER; wire++) {
            float first[ELEMENTS];
            for (int d = 0; d < (UNDER_SANITIZER ? 3 : 6); d++) {
                reduction r = {.towers = 8, .gpus = gpus[d], .everywhere = true, .options.all_reduce = specs[k]};
                r.options.wire = wire ? TW_BFLOAT16 : 0;
                run_reduction(&r);
                if (d == 0)
                    memcpy(first, r.means[0], sizeof first);
                if (memcmp(first, r.means[0], sizeof first) != 0)
                    fail_msg("%s on %d GPUs has other bits than on the CPU", specs[k], gpus[d]);
            }
        }
}

static void one_shared_copy_gets_the_bits_that_all_towers_would_get(void **state)
{
    (void)state;
    for (int k = 0; k < SPECS; k++) {
        reduction all = {.towers = 5, .gpus = 3, .everywhere = true, .options.all_reduce = specs[k]}, one = all;
        one.everywhere = false;
        run_reduction(&all);
        run_reduction(&one);
        assert_memory_equal(one.means[0], all.means[0], sizeof all.means[0]);
    }
}

static void the_tree_has_the_bits_of_the_mean_that_tensorflow_builds(void **state)
{
    (void)state;
    for (int towers = 2; towers <= MOST_TOWERS; towers++) {
        reduction built = {.towers = towers, .gpus = 2}, named = built;
        named.options.all_reduce = "tree";
        run_reduction(&built);
        run_reduction(&named);
        assert_memory_equal(built.means[0], named.means[0], sizeof built.means[0]);
    }
}

/* ---- weights ---------------------------------------------------------------------------------------------------- */

static void uneven_shares_are_weighted_and_even_ones_cost_no_bit(void **state)
{
    (void)state;
    static const float uneven[] = {128, 128, 128, 40, 0}, even[] = {40, 40, 40, 40, 40};
    for (int k = -1; k < SPECS; k++)
        for (int everywhere = k < 0 ? 0 : 1; everywhere >= 0; everywhere--) {
            reduction r = {.towers = 5, .gpus = 2, .everywhere = everywhere};
            r.options.all_reduce = k < 0 ? NULL : specs[k];
            reduction same = r;
            r.options.weights = uneven;
            run_reduction(&r);
            expect_the_mean(&r, 1e-6);
            r.options.weights = even;
            run_reduction(&r);
            run_reduction(&same);
            assert_memory_equal(r.means[0], same.means[0], sizeof r.means[0]);
        }
}

/* ---- packs, small ones, half precision -------------------------------------------------------------------------- */

static void packs_and_groups_of_small_gradients_change_what_travels_and_not_the_mean(void **state)
{
    (void)state;
    reduction plain = {.towers = 4, .gpus = 4, .everywhere = true, .options.all_reduce = "psgpu"};
    reduction packed = plain, grouped = plain, pairs = plain;
    packed.options.packs = 3;
    grouped.options.small_bytes = 48; /* three of the five */
    pairs.options.small_bytes = 48;
    pairs.options.small_group = 2;
    run_reduction(&plain);
    run_reduction(&packed);
    run_reduction(&grouped);
    run_reduction(&pairs);
    assert_memory_equal(packed.means[0], plain.means[0], sizeof plain.means[0]); /* the order of sums is the same */
    assert_memory_equal(grouped.means[0], plain.means[0], sizeof plain.means[0]);
    assert_memory_equal(pairs.means[0], plain.means[0], sizeof plain.means[0]);
    expect_the_mean(&packed, 1e-6);
    assert_int_equal(plain.plan.copies - packed.plan.copies, 2 * 2 * 3);  /* five tensors, then three packs */
    assert_int_equal(plain.plan.copies - grouped.plan.copies, 2 * 2 * 3); /* then two and a group */
    assert_int_equal(plain.plan.copies - pairs.plan.copies, 2 * 3);       /* then two, a pair, and one */
    reduction slices = packed;
    for (int packs = 1; packs <= 100; packs += 33) {
        slices.options.packs = packs;
        slices.options.all_reduce = "ring";
        run_reduction(&slices);
        expect_the_mean(&slices, 1e-6);
    }
}

static void buckets_in_the_order_of_the_backward_pass_change_what_travels_and_not_a_bit(void **state)
{
    (void)state;
    static const char *const names[] = {NULL, "tree", "psgpu"};
    for (int k = 0; k < 3; k++) {
        reduction plain = {.towers = 4, .gpus = 4, .everywhere = true, .options.all_reduce = names[k]};
        reduction two = plain, all = plain;
        two.options.bucket_bytes = 4 * (12 + 7 + 1); /* 48 + 28 + 4, then 120, then 164 bytes */
        all.options.bucket_bytes = 1 << 20;
        run_reduction(&plain);
        run_reduction(&two);
        run_reduction(&all);
        assert_memory_equal(two.means[0], plain.means[0], sizeof plain.means[0]);
        assert_memory_equal(all.means[0], plain.means[0], sizeof plain.means[0]);
        expect_the_mean(&two, 1e-6);
        assert_int_equal(plain.plan.copies - two.plan.copies, 2 * 2 * 3); /* five tensors, then three */
        assert_int_equal(plain.plan.copies - all.plan.copies, 4 * 2 * 3);
    }
}

/* ---- beside the backward pass ------------------------------------------------------------------------------------ */

enum { LAYERS = 24, LAYER = 8 };

/* Steps of a device, as the latest run's trace lists them: the first that adds for the reduction or takes a part of it
 * from another device, and the last of the towers' own work. `fed` is the one node that is copied for another
 * reason. */
static void find_steps(const char *trace, int device, const tw_node *fed, int *meets, int *own)
{
    char here[32], of_fed[64];
    snprintf(here, sizeof here, "{\"ph\":\"X\",\"pid\":%d,", device);
    snprintf(of_fed, sizeof of_fed, "\"node\":\"%s", tw_node_name(fed));
    *meets = *own = -1;
    int step = 0;
    for (const char *at = trace; (at = strstr(at, here)); at++, step++) {
        char line[512];
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        bool copies = strstr(line, "\"from\":") && !strstr(line, of_fed);
        if (*meets < 0 && (copies || strstr(line, "\"name\":\"AddV2\"")))
            *meets = step;
        if (strstr(line, "\"name\":\"Tanh\""))
            *own = step;
    }
}

/* Towers whose work gives gradient after gradient; buckets of one layer, or of all. */
static void reduce_chains(int towers, int gpus, int64_t bucket, float means[][LAYERS * LAYER])
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_variable *variables[LAYERS];
    tw_output gradients[MOST_TOWERS][LAYERS], fetches[MOST_TOWERS];
    tw_tensor *results[MOST_TOWERS] = {0}, *value = tw_tensor_create(TW_FLOAT32, TW_SHAPE(LAYER));
    tw_grads grads[MOST_TOWERS], *list[MOST_TOWERS], *all[MOST_TOWERS];
    tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(LAYER));
    for (int i = 0; i < LAYERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "v%d", i);
        variables[i] = tw_get_variable(g, name, TW_FLOAT32, TW_SHAPE(LAYER), (tw_initializer){0});
    }
    for (int k = 0; k < LAYER; k++)
        ((float *)tw_tensor_data(value))[k] = gradient_at(0, k);
    for (int t = 0; t < towers; t++)
        TW_DEVICE(g, "/gpu:%d", t % gpus) {
            gradients[t][0] = tw_tanh(g, tw_mul(g, x, tw_scalar(g, 0.1f * (float)(t + 1))));
            for (int i = 1; i < LAYERS; i++)
                gradients[t][i] = tw_tanh(g, gradients[t][i - 1]);
            grads[t] = (tw_grads){LAYERS, variables, gradients[t]};
            list[t] = &grads[t];
        }
    tw_all_reduce(g, list, towers, &(tw_average_options){.bucket_bytes = bucket}, all);
    for (int t = 0; t < towers; t++)
        TW_DEVICE(g, "/gpu:%d", t % gpus)
            fetches[t] = tw_concat(g, all[t]->gradients, LAYERS, 0);
    machine m = open_machine(g, gpus, true);
    assert_ok(tw_session_run(m.s, &(tw_feed){x, value}, 1, fetches, towers, results, &error));
    for (int t = 0; t < towers; t++) {
        memcpy(means[t], tw_tensor_data(results[t]), tw_tensor_bytes(results[t]));
        tw_tensor_release(results[t]);
    }
    char path[] = "/tmp/tower-reduce-XXXXXX";
    close(mkstemp(path));
    assert_ok(tw_session_write_trace(m.s, path, &error));
    char *trace = read_whole(path, NULL);
    unlink(path);
    for (int d = 0; d < gpus && gpus > 1; d++) {
        int meets, own;
        find_steps(trace, 1 + d, x.node, &meets, &own);
        assert_true(meets >= 0 && own >= 0);
        if ((meets < own) != (bucket == LAYER * sizeof(float)))
            fail_msg("GPU %d of %d meets others at step %d, its own work ends at step %d", d, gpus, meets, own);
    }
    free(trace);
    tw_tensor_release(value);
    close_machine(&m);
}

static void buckets_meet_while_the_towers_still_compute_with_the_same_bits(void **state)
{
    (void)state;
    static const int towers[] = {2, 4, 5};
    static float one[MOST_TOWERS][LAYERS * LAYER], late[MOST_TOWERS][LAYERS * LAYER],
        early[MOST_TOWERS][LAYERS * LAYER];
    for (int k = 0; k < 3; k++) {
        reduce_chains(towers[k], 1, LAYER * sizeof(float), one);
        reduce_chains(towers[k], towers[k], 1 << 20, late);
        reduce_chains(towers[k], towers[k], LAYER * sizeof(float), early);
        assert_memory_equal(early, one, (size_t)towers[k] * sizeof *one);
        assert_memory_equal(early, late, (size_t)towers[k] * sizeof *one);
    }
}

static void half_precision_halves_what_crosses_and_rounds_within_its_precision(void **state)
{
    (void)state;
    static const tw_dtype types[] = {TW_FLOAT16, TW_BFLOAT16};
    static const double precision[] = {1.0 / 1024, 1.0 / 128};
    for (int k = 0; k < SPECS; k++)
        for (int i = 0; i < 2; i++) {
            reduction whole = {.towers = 4, .gpus = 4, .everywhere = true, .options.all_reduce = specs[k]},
                      half = whole;
            half.options.wire = types[i];
            run_reduction(&whole);
            run_reduction(&half);
            expect_the_mean(&half, 3 * precision[i]);
            int64_t fed = 4 * ELEMENTS * (int64_t)sizeof(float);
            assert_int_equal(2 * (half.plan.copied_bytes - fed), whole.plan.copied_bytes - fed);
            assert_memory_not_equal(half.means[0], whole.means[0], sizeof half.means[0]);
        }
}

/* ---- sparse gradients ------------------------------------------------------------------------------------------- */

enum { ROWS = 50, WIDTH = 4, LOOKED_UP = 3 };

/* Towers look some rows of a table up; the mean gradient of it, and what crossed. */
static void average_lookups(int towers, int gpus, const tw_average_options *options, bool everywhere,
                            float gradient[ROWS * WIDTH], tw_plan_info *plan)
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_grads *list[MOST_TOWERS], *means[MOST_TOWERS];
    tw_tensor *results[MOST_TOWERS] = {0};
    tw_output fetches[MOST_TOWERS];
    tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 1));
    for (int t = 0; t < towers; t++)
        TW_DEVICE(g, "/gpu:%d", t % gpus) {
            int32_t rows[LOOKED_UP] = {5, (7 * t + 1) % ROWS, 5}; /* one is everybody's, and twice */
            char name[16];
            snprintf(name, sizeof name, "table%d", everywhere ? t : 0);
            if (t && !everywhere)
                tw_reuse_variables(g);
            tw_variable *table = NULL;
            TW_DEVICE(g, everywhere ? "" : "/cpu:0")
                table = tw_get_variable(g, name, TW_FLOAT32, TW_SHAPE(ROWS, WIDTH), (tw_initializer){.a = 0.5f});
            tw_output found = tw_gather(g, tw_variable_read(g, table),
                                        tw_constant_int32s(g, TW_SHAPE(LOOKED_UP), rows), 0);
            tw_output loss = tw_reduce_sum(g, tw_mul(g, tw_square(g, found), tw_scalar(g, 0.3f + (float)t)),
                                           NULL, 0, false);
            list[t] = tw_compute_gradients_of(sgd, loss, &table, 1);
        }
    if (everywhere)
        tw_all_reduce(g, list, towers, options, means);
    else
        means[0] = tw_average_gradients(g, list, towers, options);
    machine m = open_machine(g, gpus, false);
    tw_output init = tw_initialize_variables(g);
    int copies = everywhere ? towers : 1;
    for (int t = 0; t < copies; t++)
        fetches[t] = means[t]->gradients[0];
    assert_ok(tw_session_run(m.s, NULL, 0, &init, 1, NULL, &error));
    assert_ok(tw_session_run(m.s, NULL, 0, fetches, copies, results, &error));
    assert_ok(tw_session_plan_info(m.s, plan, &error));
    memcpy(gradient, tw_tensor_data(results[0]), tw_tensor_bytes(results[0]));
    for (int t = 0; t < copies; t++) {
        assert_memory_equal(tw_tensor_data(results[t]), gradient, tw_tensor_bytes(results[t]));
        tw_tensor_release(results[t]);
    }
    close_machine(&m);
}

static void sparse_gradients_are_averaged_by_the_rows_they_touch(void **state)
{
    (void)state;
    static const float weights[] = {3, 1, 1, 0};
    for (int weighted = 0; weighted < 2; weighted++)
        for (int everywhere = 0; everywhere < 2; everywhere++) {
            float expected[ROWS * WIDTH] = {0}, rows[ROWS * WIDTH], dense[ROWS * WIDTH], one[ROWS * WIDTH];
            tw_plan_info sparse_plan, dense_plan, ignored;
            tw_average_options options = {.weights = weighted ? weights : NULL};
            for (int t = 0; t < 4; t++)
                for (int k = 0; k < LOOKED_UP * WIDTH; k++) {
                    int row = k / WIDTH == 1 ? 7 * t + 1 : 5;
                    expected[row * WIDTH + k % WIDTH] += (0.3f + (float)t) * (weighted ? weights[t] / 5 : 0.25f);
                }
            average_lookups(4, 4, &options, everywhere, rows, &sparse_plan);
            average_lookups(4, 1, &options, everywhere, one, &ignored);
            options.sparse_as_dense = true;
            average_lookups(4, 4, &options, everywhere, dense, &dense_plan);
            assert_floats_near(rows, expected, ROWS * WIDTH, 1e-6);
            assert_floats_near(dense, expected, ROWS * WIDTH, 1e-6);
            assert_memory_equal(one, rows, sizeof rows);
            assert_true(dense_plan.copied_bytes - sparse_plan.copied_bytes > 3 * (ROWS - 2 * LOOKED_UP) * WIDTH * 4);
        }
}

static void keep_line(void *user, int level, const char *message)
{
    (void)level;
    char *text = user;
    if (strstr(message, "sparse"))
        snprintf(text, 400, "%s", message);
}

static void the_log_names_sparse_gradients(void **state)
{
    (void)state;
    char line[400] = "";
    float gradient[ROWS * WIDTH];
    tw_plan_info plan;
    tw_set_log(keep_line, line, 2);
    average_lookups(2, 2, NULL, false, gradient, &plan);
    tw_set_log(NULL, NULL, 0);
    assert_message(line, "variable 'table0' has a sparse gradient: the rows that 2 towers touch are joined");
}

/* ---- the spec --------------------------------------------------------------------------------------------------- */

static void specs_of_the_benchmarks_are_understood(void **state)
{
    (void)state;
    static const char *const good[] = {
        "tree", "pscpu", "psgpu#4", "xring", "xring#2", "ring/rechd#2", "pscpu/pscpu",
        "pscpu:2k:pscpu#2:64k:xring", "pscpu:2K:xring", "tree:1:ring:2:rechd", "pscpu:1M:psgpu:1G:ring:1T:rechd"};
    tw_error error = {0};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_ok(tw_all_reduce_check(good[i], &error));
}

static void what_is_wrong_with_a_spec_is_named_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *message;
    } bad[] = {
        {"", "expected one of tree, ring, xring, rechd, pscpu, psgpu, hierarchical, nccl at character 1, found the end"},
        {"rings", "expected one of tree, ring, xring, rechd, pscpu, psgpu, hierarchical, nccl at character 1, found 'rings'"},
        {"ring#", "expected a number of shards from 1 to 256 at character 6, found the end"},
        {"ring#0", "expected a number of shards from 1 to 256 at character 6, found '0'"},
        {"ring#257", "expected a number of shards from 1 to 256 at character 6, found '257'"},
        {"ring#2x", "expected ':' or the end at character 7, found 'x'"},
        {"ring/", "at character 6, found the end"},
        {"ring/two:3:tree", "at character 6, found 'two'"},
        {"ring:2k", "expected a number of elements such as 2k, larger than the limit before it, at character 6, found '2k'"},
        {"ring:2k:", "at character 9, found the end"},
        {"ring:2q:tree", "at character 6, found '2q'"},
        {"ring:0:tree", "at character 6, found '0'"},
        {"ring:-1:tree", "at character 6, found '-1'"},
        {"ring:2m:tree", "at character 6, found '2m'"},
        {"ring:4k:tree:4096:pscpu", "larger than the limit before it, at character 14, found '4096'"},
        {"ring:9999999999999999999:tree", "at character 6, found '9999999999999999999'"},
        {"ring:9999999T:tree", "at character 6, found '9999999T'"},
        {"ring ", "found 'ring '"},
        {"tree:1:tree:2:tree:3:tree:4:tree:5:tree:6:tree:7:tree:8:tree", "at most eight algorithms"},
    };
    tw_error error;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(tw_all_reduce_check(bad[i].spec, &error), TW_INVALID_ARGUMENT, bad[i].message);
    assert_ok(tw_all_reduce_check("pscpu:2k:nccl/xring", &error));
    assert_fails(tw_all_reduce_check("collective", &error), TW_UNIMPLEMENTED, "'collective' at character 1");
}

/* Specs put together at random from their own letters never do worse than being refused. */
static void no_text_breaks_the_reader_of_specs(void **state)
{
    (void)state;
    static const char *const pieces[] = {"tree", "ring", "xring", "rechd", "pscpu", "psgpu", "nccl", ":", ":", ":",
                                         "#",    "/",    "2k",    "64k",   "1",     "7M",    "99999999999999999999",
                                         "T",    "-",    "\xff",  " ",     "0"};
    uint32_t x = 1;
    int understood = 0;
    for (int i = 0; i < 200000; i++) {
        char text[256] = "";
        for (int k = 0; k < 1 + i % 9; k++) {
            x = x * 1664525u + 1013904223u;
            strcat(text, pieces[(x >> 16) % (sizeof pieces / sizeof *pieces)]);
        }
        tw_error error = {0};
        if (tw_all_reduce_check(text, &error) == TW_OK)
            understood++;
        else if (!strstr(error.message, "all-reduce spec '") || !strstr(error.message, "at character "))
            fail_msg("\"%s\" is refused with \"%s\"", text, error.message);
    }
    assert_true(understood > 1000);
}

/* ---- what is refused -------------------------------------------------------------------------------------------- */

static void options_that_mean_nothing_are_refused_by_name(void **state)
{
    (void)state;
    static const float negative[] = {1, -1}, nothing[] = {0, 0};
    static const struct {
        tw_average_options options;
        const char *message;
    } bad[] = {
        {{.all_reduce = "rnig"}, "found 'rnig'"},
        {{.wire = TW_FLOAT64}, "gradients cross as half or bfloat16, not as double"},
        {{.packs = -1}, "at least 0, found -1"},
        {{.small_bytes = -2}, "at least 0, found 0, -2 and 0"},
        {{.small_bytes = 8, .small_group = -3}, "at least 0, found 0, 8 and -3"},
        {{.packs = 2, .small_bytes = 3}, "not both"},
        {{.bucket_bytes = -1}, "bucket_bytes is at least 0"},
        {{.bucket_bytes = 9, .packs = 2}, "goes neither with packs nor with small_bytes"},
        {{.weights = negative}, "the weight of tower 1 is -1"},
        {{.weights = nothing}, "the weights of all 2 towers are 0"},
        {{.all_reduce = "nccl", .wire = TW_BFLOAT16}, "gradients cannot cross as bfloat16 and have sums of float"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        reduction r = {.towers = 2, .everywhere = true};
        tw_output fed[2 * VARIABLES];
        tw_grads grads[2], *list[2], *means[2];
        tw_graph *g = tw_graph_create();
        build_towers(g, &r, fed, grads, list);
        tw_all_reduce(g, list, 2, &bad[i].options, means);
        assert_null(means[0]);
        assert_null(means[1]);
        assert_message(tw_graph_message(g), bad[i].message);
        tw_graph_destroy(g);
    }
}

static void towers_whose_variables_do_not_match_are_refused(void **state)
{
    (void)state;
    static const char *const messages[] = {
        "variable number 0 is 'v0_0', float [",
        "variable number 0 is 'v0_0', float [",
        "variable number 0 is 'v0_0' in tower 0 and 'v1_0' in tower 1: towers must share their variables",
        "tower 0 has 5 variables, tower 1 has 4",
        "tower 1 has no gradients to average",
        "an average of 0 towers",
    };
    for (int i = 0; i < (int)(sizeof messages / sizeof *messages); i++) {
        reduction r = {.towers = 2, .everywhere = true};
        tw_output fed[2 * VARIABLES];
        tw_grads grads[2], *list[2], *means[2] = {NULL};
        tw_graph *g = tw_graph_create();
        build_towers(g, &r, fed, grads, list);
        if (i == 0) /* the same type, another shape */
            grads[1].variables[0] = grads[1].variables[1];
        if (i == 1) /* the same shape, another type */
            grads[1].variables[0] = tw_get_variable(g, "d", TW_FLOAT64, shapes[0], (tw_initializer){0});
        if (i == 3)
            grads[1].count = 4;
        if (i == 4)
            list[1] = NULL;
        if (i == 2)
            means[0] = tw_average_gradients(g, list, 2, NULL);
        else
            tw_all_reduce(g, list, i == 5 ? 0 : 2, &r.options, means);
        assert_null(means[0]);
        assert_message(tw_graph_message(g), messages[i]);
        tw_graph_destroy(g);
    }
}

static void a_reduction_that_runs_out_of_memory_says_so_and_leaks_nothing(void **state)
{
    (void)state;
    for (int k = 0; k < SPECS; k++) {
        bool failed = true;
        for (int n = 0; failed; n += 1 + n / 8) { /* far in it is more of the same */
            reduction r = {.towers = 3, .everywhere = true, .options.all_reduce = specs[k]};
            r.options.packs = k % 2 ? 2 : 0;
            tw_output fed[3 * VARIABLES];
            tw_grads grads[3], *list[3], *means[3] = {0};
            fail_allocation(n);
            tw_graph *g = tw_graph_create();
            if (g) {
                build_towers(g, &r, fed, grads, list);
                tw_all_reduce(g, list, 3, &r.options, means);
                assert_int_equal(means[2] != NULL, tw_graph_status(g) == TW_OK);
                if (tw_graph_status(g) != TW_OK)
                    assert_int_equal(tw_graph_status(g), TW_RESOURCE_EXHAUSTED);
            }
            tw_graph_destroy(g);
            assert_int_equal(memory.live, 0);
            failed = stop_failing_allocations();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_gives_every_tower_the_mean_of_any_number_of_towers),
        cmocka_unit_test(the_bits_of_an_algorithm_depend_on_towers_and_not_on_devices),
        cmocka_unit_test(one_shared_copy_gets_the_bits_that_all_towers_would_get),
        cmocka_unit_test(the_tree_has_the_bits_of_the_mean_that_tensorflow_builds),
        unthreaded_test(uneven_shares_are_weighted_and_even_ones_cost_no_bit),
        cmocka_unit_test(packs_and_groups_of_small_gradients_change_what_travels_and_not_the_mean),
        cmocka_unit_test(buckets_in_the_order_of_the_backward_pass_change_what_travels_and_not_a_bit),
        cmocka_unit_test(buckets_meet_while_the_towers_still_compute_with_the_same_bits),
        unthreaded_test(half_precision_halves_what_crosses_and_rounds_within_its_precision),
        cmocka_unit_test(sparse_gradients_are_averaged_by_the_rows_they_touch),
        cmocka_unit_test(the_log_names_sparse_gradients),
        cmocka_unit_test(specs_of_the_benchmarks_are_understood),
        cmocka_unit_test(what_is_wrong_with_a_spec_is_named_with_its_place),
        unthreaded_test(no_text_breaks_the_reader_of_specs),
        cmocka_unit_test(options_that_mean_nothing_are_refused_by_name),
        cmocka_unit_test(towers_whose_variables_do_not_match_are_refused),
        unthreaded_test(a_reduction_that_runs_out_of_memory_says_so_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

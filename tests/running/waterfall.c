/* waterfall.c - where the time of a step went: runs that are made up by hand, taken apart. */
#include "parts.h"
#include "testing.h"

#include "run/trace.h"
#include "run/waterfall.h"

#include <tower/ops.h>
#include <tower/queue.h>

enum { CPU, GPU0, GPU1, DEVICES };

typedef struct made_up {
    twi_plan plan;
    twi_list lists[DEVICES];
    twi_device devices[DEVICES];
    twi_step steps[DEVICES][8];
    const twi_node *nodes[DEVICES][8];
    twi_span spans[DEVICES][8];
    twi_track tracks[DEVICES];
    twi_trace trace;
    tw_graph *g;
} made_up;

static const twi_kernel some_kernel = {"Any", "plain"};
static const char *const texts[DEVICES] = {"/cpu:0", "/gpu:0", "/gpu:1"};
static const char *const gpus[] = {"/gpu:0", "/gpu:1"};

static void begin(made_up *m)
{
    *m = (made_up){.g = tw_graph_create()};
    for (int d = 0; d < DEVICES; d++) {
        snprintf(m->devices[d].text, sizeof m->devices[d].text, "%s", texts[d]);
        m->lists[d] = (twi_list){.device = &m->devices[d], .steps = m->steps[d], .nodes = m->nodes[d]};
        m->tracks[d].spans = m->spans[d];
    }
    m->plan = (twi_plan){.region = twi_region_create(), .lists = m->lists, .num_lists = DEVICES, .trace = &m->trace};
    m->trace = (twi_trace){.began_ns = 1000, .tracks = m->tracks};
}

static void end(made_up *m)
{
    twi_region_destroy(m->plan.region);
    tw_graph_destroy(m->g);
}

/* The node as a plan has it, with all that it needs. */
static twi_node *planned(made_up *m, const tw_node *node)
{
    twi_value inputs[8];
    for (int i = 0; i < m->plan.region->nodes.count; i++)
        if (m->plan.region->nodes.items[i]->origin == node)
            return m->plan.region->nodes.items[i];
    for (int i = 0; i < node->num_inputs; i++)
        inputs[i] = twi_out(planned(m, node->inputs[i].node), node->inputs[i].index);
    return twi_node_copy(m->plan.region, node, inputs, node->num_inputs);
}

/* Adds a step that runs from started to ended (ns after the beginning). */
static twi_step *add(made_up *m, int device, tw_node *node, int started, int ended)
{
    int i = m->lists[device].count++;
    twi_node *made = planned(m, node);
    m->steps[device][i] = (twi_step){.kernel = &some_kernel};
    m->nodes[device][i] = made;
    m->spans[device][i] = (twi_span){.started_ns = 1000 + started, .ended_ns = 1000 + ended};
    made->device = device;
    return &m->steps[device][i];
}

/* Takes the run apart, which ends then (ns after the beginning). */
static tw_waterfall take_apart(made_up *m, int ended)
{
    tw_waterfall w;
    for (int d = 0; d < DEVICES; d++)
        for (int i = 0; i < m->lists[d].count; i++)
            m->spans[d][i].kind = twi_time_kind_of(&m->steps[d][i], m->nodes[d][i]);
    m->trace.ended_ns = 1000 + ended;
    twi_waterfall(&(twi_plan *){&m->plan}, 1, gpus, 2, &w);
    return w;
}

static twi_step *after(twi_step *step, twi_step_id *wait, int device, int position)
{
    *wait = (twi_step_id){device, position};
    step->waits = wait;
    step->num_waits = 1;
    return step;
}

static tw_node *input_node(tw_graph *g)
{
    tw_output batch;
    tw_input(g, "x", 0, (tw_dtype[]){TW_FLOAT32}, (tw_shape[]){TW_SHAPE(1)}, 1, &batch);
    return batch.node;
}

static void a_step_is_taken_apart_along_the_chain_that_held_it_up(void **state)
{
    (void)state;
    made_up m;
    twi_step_id waits[3];
    tw_waterfall w;
    begin(&m);
    tw_output square = tw_square(m.g, tw_placeholder(m.g, TW_FLOAT32, TW_SHAPE(1))), sum = tw_add(m.g, square, square);
    tw_variable *v = tw_get_variable(m.g, "v", TW_FLOAT32, TW_SHAPE(1), (tw_initializer){0});
    tw_output apply = tw_apply_gradient_descent(m.g, v->handle, tw_scalar(m.g, 1), sum);
    twi_mark_node(sum.node, "_reduction");
    assert_string_equal(tw_graph_message(m.g), "");

    add(&m, CPU, input_node(m.g), 100, 300);                                   /* 100 launch, 200 input */
    tw_node *copied = tw_identity(m.g, square).node;
    twi_step *copy = after(add(&m, GPU1, copied, 350, 450), &waits[0], CPU, 0); /* 50 launch, 100 copies */
    copy->kernel = NULL;
    copy->source = &m.devices[CPU];
    add(&m, GPU1, square.node, 450, 1450);                                     /* 1000 compute, of which ... */
    add(&m, GPU0, square.node, 350, 1150);                                     /* ... the other tower needs 800 */
    after(add(&m, GPU0, sum.node, 1500, 1600), &waits[1], GPU1, 1);            /* 50 launch, 100 reduction */
    after(add(&m, CPU, apply.node, 1600, 1900), &waits[2], GPU0, 1);           /* 300 compute */
    w = take_apart(&m, 2000);                                                  /* 100 launch */
    static const double expected[TW_TIME_KINDS] = {800 + 300, 200, 100, 100, 200, 100 + 50 + 50 + 100};
    for (int k = 0; k < TW_TIME_KINDS; k++)
        if (fabs(w.seconds[k] * 1e9 - expected[k]) > 1e-3)
            fail_msg("%s: %.1f ns, expected %.1f", tw_time_kind_name((tw_time_kind)k), w.seconds[k] * 1e9, expected[k]);
    assert_true(fabs(w.total * 1e9 - 2000) < 1e-3);
    assert_string_equal(gpus[w.slowest], gpus[1]);
    assert_true(w.hidden == 0);
    end(&m);
}

static void what_brings_gradients_together_beside_the_chain_is_hidden(void **state)
{
    (void)state;
    made_up m;
    begin(&m);
    tw_output x = tw_placeholder(m.g, TW_FLOAT32, TW_SHAPE(1)), first = tw_add(m.g, x, x), last = tw_add(m.g, x, x);
    twi_mark_node(first.node, "_reduction");
    twi_mark_node(last.node, "_reduction");
    assert_string_equal(tw_graph_message(m.g), "");
    add(&m, GPU0, x.node, 0, 500);
    add(&m, GPU1, x.node, 0, 100);
    add(&m, GPU1, first.node, 100, 350);
    add(&m, GPU0, last.node, 500, 600);
    tw_waterfall w = take_apart(&m, 600);
    assert_true(fabs(w.seconds[TW_TIME_REDUCTION] * 1e9 - 100) < 1e-3);
    assert_true(fabs(w.hidden * 1e9 - 250) < 1e-3);
    assert_int_equal(w.slowest, 0);
    end(&m);
}

static void expect_ns(const tw_waterfall *w, tw_time_kind kind, double expected)
{
    if (fabs(w->seconds[kind] * 1e9 - expected) > 1e-3)
        fail_msg("%s: %.1f ns, expected %.1f", tw_time_kind_name(kind), w->seconds[kind] * 1e9, expected);
}

/* Updates of variables are done once for all towers, so a device that has more of them than another is not slow. */
static void whatever_writes_a_variable_is_no_towers_work(void **state)
{
    (void)state;
    made_up m;
    tw_waterfall w;
    for (int which = 0; which < 4; which++) {
        begin(&m);
        tw_output x = tw_placeholder(m.g, TW_FLOAT32, TW_SHAPE(1)), rows = tw_zeros(m.g, TW_FLOAT32, TW_SHAPE(1, 2));
        tw_output v = tw_get_variable(m.g, "v", TW_FLOAT32, TW_SHAPE(3, 2), (tw_initializer){0})->handle;
        tw_output update = which == 0   ? tw_scatter_sub(m.g, v, tw_zeros(m.g, TW_INT32, TW_SHAPE(1)), rows)
                           : which == 1 ? tw_assign(m.g, v, tw_zeros(m.g, TW_FLOAT32, TW_SHAPE(3, 2)))
                           : which == 2 ? tw_read_variable(m.g, v)
                                        : tw_is_initialized(m.g, v);
        bool writes = which < 2;
        assert_string_equal(tw_graph_message(m.g), "");
        add(&m, GPU0, x.node, 0, 100);
        add(&m, GPU1, x.node, 0, 100);
        add(&m, GPU1, update.node, 100, 600);
        w = take_apart(&m, 600);
        expect_ns(&w, TW_TIME_IMBALANCE, writes ? 0 : 500);
        expect_ns(&w, TW_TIME_COMPUTE, writes ? 600 : 100);
        end(&m);
    }
}

static void waiting_for_a_queue_is_input(void **state)
{
    (void)state;
    made_up m;
    tw_waterfall w;
    tw_output taken;
    begin(&m);
    tw_output queue = tw_queue(m.g, TW_QUEUE_FIFO, (tw_dtype[]){TW_FLOAT32}, (tw_shape[]){TW_SHAPE(1)}, 1, NULL);
    tw_dequeue(m.g, queue, &taken);
    assert_string_equal(tw_graph_message(m.g), "");
    add(&m, CPU, taken.node, 0, 400);
    w = take_apart(&m, 400);
    expect_ns(&w, TW_TIME_INPUT, 400);
    end(&m);
}

int run_waterfall(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_taken_apart_along_the_chain_that_held_it_up),
        cmocka_unit_test(what_brings_gradients_together_beside_the_chain_is_hidden),
        cmocka_unit_test(whatever_writes_a_variable_is_no_towers_work),
        cmocka_unit_test(waiting_for_a_queue_is_input),
    };
    return cmocka_run_group_tests_name("waterfall", tests, NULL, NULL);
}

/* rounds.c - see rounds.h. */
#include "run/rounds.h"

#include "graph/frames.h"
#include "run/chain.h"
#include "run/messages.h"
#include "tensor/variant.h"

#include <string.h>

typedef struct twi_rounds {
    const twi_planner *around; /* the session's, */
    twi_planner planner;       /* and for a round */
    twi_frames frames;   /* of the graph as it was when it had so many nodes: */
    int num_nodes;
    twi_lane *lane;
    tw_feed *feeds;      /* [num_fed] */
    tw_tensor **results; /* [num_fetches] */
    int num_fed, num_fetches;
} twi_rounds;

/* ---- before the first run ---------------------------------------------------------------------------------------- */

static void close_rounds(twi_rounds *rounds)
{
    twi_lane_destroy(rounds->lane);
    for (int i = 0; rounds->feeds && i < rounds->num_fed; i++)
        tw_tensor_release(rounds->feeds[i].tensor);
    for (int i = 0; rounds->results && i < rounds->num_fetches; i++)
        tw_tensor_release(rounds->results[i]);
    twi_frames_free(&rounds->frames);
    twi_free(rounds->feeds);
    twi_free(rounds->results);
    twi_free(rounds);
}

/* Before a round is planned, with the planner's lock held: the graph may have grown since the last one was. */
static tw_status place(void *user, tw_error *error)
{
    twi_rounds *rounds = user;
    const tw_graph *graph = rounds->planner.request.graph;
    tw_status status = rounds->around->place(rounds->around->user, error);
    if (status != TW_OK || rounds->num_nodes == graph->nodes.count)
        return status;
    twi_frames_free(&rounds->frames);
    rounds->frames = (twi_frames){0};
    status = twi_frames_find(graph, &rounds->frames, error);
    rounds->num_nodes = status == TW_OK ? graph->nodes.count : 0; /* what is not known is looked for again */
    return status;
}

static int64_t oldest(void *user, const twi_lane *lane)
{
    const twi_rounds *rounds = user;
    return rounds->around->oldest(rounds->around->user, lane);
}

static tw_status open_rounds(twi_rounds *rounds, const twi_chained *chained, tw_error *error)
{
    rounds->around = chained->planner;
    rounds->planner = *chained->planner;
    rounds->planner.place = place;
    rounds->planner.oldest = oldest;
    rounds->planner.user = rounds;
    rounds->planner.request.frames = &rounds->frames;
    rounds->planner.request.frame = chained->frame;
    rounds->planner.request.series = chained->series;
    rounds->num_fed = chained->num_fed;
    rounds->num_fetches = chained->num_fetches;
    rounds->feeds = twi_alloc_array((size_t)chained->num_fed, sizeof *rounds->feeds);
    rounds->results = twi_alloc_array((size_t)chained->num_fetches, sizeof *rounds->results);
    if (!rounds->feeds || !rounds->results)
        return twi_fail_memory(error, "preparing a loop");
    for (int i = 0; i < chained->num_fed; i++)
        rounds->feeds[i].output = chained->fed[i];
    return twi_lane_create(&rounds->planner, chained->planner->wake, chained->planner->user, &rounds->lane, error);
}

tw_status twi_rounds_prepare(const twi_loop *loop, const atomic_bool *ending, tw_error *error)
{
    twi_chained *chained = loop->chained;
    if (chained->rounds)
        return TW_OK;
    twi_rounds *rounds = twi_alloc(sizeof *rounds);
    if (!rounds)
        return twi_fail_memory(error, "preparing a loop");
    tw_status status = open_rounds(rounds, chained, error);
    if (status != TW_OK) {
        close_rounds(rounds);
        return status;
    }
    rounds->lane->ending = ending;
    rounds->lane->number = loop->lane;
    chained->rounds = rounds;
    chained->close = close_rounds;
    return TW_OK;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* What the step was given; where several tasks run the rounds, all of them learn it. */
static tw_status take_input(const twi_step *step, int i, tw_tensor **value)
{
    const twi_operand *operand = &step->run.input_operands[i];
    tw_shape shape = operand->dtype == TW_VARIANT ? TW_SCALAR : operand->shape;
    *value = step->loop->spans ? twi_tensor_create(operand->dtype, shape)
                               : twi_tensor_from(operand->dtype, shape, step->run.inputs[i]);
    if (!*value)
        return twi_fail_memory(step->run.error, "entering a loop");
    return step->loop->spans ? twi_share_tensor(step->loop->lane, step->device, step->run.inputs[i], *value,
                                                "a loop's value", step->run.error)
                             : TW_OK;
}

static tw_status enter(const twi_step *step, const twi_chained *chained, twi_rounds *rounds)
{
    tw_status status = TW_OK;
    for (int i = 0; i < chained->num_fed && status == TW_OK; i++) {
        tw_tensor *value = chained->known[i] ? tw_tensor_retain(chained->known[i]) : NULL;
        status = value ? TW_OK : take_input(step, i, &value);
        tw_tensor_release(rounds->feeds[i].tensor);
        rounds->feeds[i].tensor = value;
    }
    return status;
}

/* What came of the round goes in again; what went in is room for what comes of the next. */
static void go_round(const twi_step *step, twi_rounds *rounds)
{
    for (int i = 0; i < step->loop->num_changing; i++) {
        tw_tensor *before = rounds->feeds[i].tensor;
        rounds->feeds[i].tensor = rounds->results[1 + i];
        rounds->results[1 + i] = before;
    }
}

static tw_status leave(const twi_step *step, twi_rounds *rounds)
{
    const twi_run *r = &step->run;
    tw_status status = TW_OK;
    for (int i = 0; i < step->loop->num_results && status == TW_OK; i++) {
        const tw_tensor *value = rounds->results[1 + step->loop->num_changing + i];
        void *to = r->outputs[i];
        if (value->dtype != TW_VARIANT)
            status = twi_make_output(r, i, value->shape, &to);
        if (status == TW_OK && twi_owns_memory(value->dtype) &&
            !twi_copy_owned(value->dtype, value->data, to, (size_t)value->elements))
            status = twi_fail_memory(r->error, "leaving a loop");
        if (status == TW_OK && !twi_owns_memory(value->dtype) && tw_tensor_bytes(value))
            memcpy(to, value->data, tw_tensor_bytes(value));
    }
    return status;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static tw_status run_round(const twi_chained *chained, twi_rounds *rounds, bool *goes_on, tw_error *error)
{
    twi_wanted wanted = {.feeds = rounds->feeds,
                         .known = chained->known,
                         .num_feeds = chained->num_fed,
                         .fetches = chained->fetches,
                         .num_fetches = chained->num_fetches};
    twi_cut *cut;
    twi_link *link;
    int64_t done;
    tw_status status = twi_cut_find(rounds->lane, &wanted, &cut, error);
    if (status == TW_OK)
        status = twi_link_find(rounds->lane, cut, &wanted, &link, error);
    if (status == TW_OK)
        status = twi_run_links(rounds->lane, link, 1, 0, rounds->feeds, NULL, rounds->results, &done, error);
    if (status == TW_OK)
        *goes_on = *(const uint8_t *)rounds->results[0]->data;
    return status;
}

tw_status twi_rounds_run(const twi_step *step)
{
    const twi_chained *chained = step->loop->chained;
    twi_rounds *rounds = chained->rounds;
    bool goes_on = true;
    tw_status status = enter(step, chained, rounds);
    while (goes_on && status == TW_OK) {
        if (step->run.ending && atomic_load_explicit(step->run.ending, memory_order_relaxed))
            return twi_fail(step->run.error, TW_CANCELLED, "the run has ended");
        status = run_round(chained, rounds, &goes_on, step->run.error);
        if (status == TW_OK && goes_on)
            go_round(step, rounds);
    }
    return status == TW_OK && !step->device->absent ? leave(step, rounds) : status;
}

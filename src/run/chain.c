/* chain.c - see chain.h. */
#include "run/chain.h"

#include "run/messages.h"
#include "run/part.h"
#include "tensor/variant.h"

#include <string.h>

/* ---- cuts ----------------------------------------------------------------------------------------------------------
 */

static bool same_output(tw_output a, tw_output b)
{
    return a.node == b.node && a.index == b.index;
}

tw_output twi_wanted_output(const twi_wanted *w, int i)
{
    return w->feeds ? w->feeds[i].output : w->feed_shapes[i].output;
}

static void destroy_cut(twi_lane *lane, twi_cut *cut);

static void forget_link(twi_lane *lane, const twi_link *link)
{
    int kept = 0;
    for (int i = 0; i < lane->links.count; i++)
        if (lane->links.items[i] != link)
            lane->links.items[kept++] = lane->links.items[i];
    lane->links.count = kept;
}

static void destroy_link(twi_lane *lane, twi_link *link)
{
    if (!link)
        return;
    forget_link(lane, link);
    for (int i = 0; link->values && i < link->plan->num_fetches; i++)
        tw_tensor_release(link->values[i]);
    destroy_cut(lane, link->rest);
    for (int i = 0; link->feeds && i < link->cut->num_fed; i++)
        tw_tensor_release(link->feeds[i].value);
    twi_plan_destroy(link->plan);
    twi_free(link->feeds);
    twi_free(link->values);
    twi_free(link->crossing);
    twi_free(link->dead);
    twi_free(link->late);
    twi_free(link);
}

static void destroy_cut(twi_lane *lane, twi_cut *cut)
{
    if (!cut)
        return;
    for (int i = 0; i < cut->links.count; i++)
        destroy_link(lane, cut->links.items[i]);
    twi_array_free(&cut->links);
    twi_free(cut->fed);
    twi_free(cut->fetches);
    twi_free(cut);
}

void twi_cuts_destroy(twi_lane *lane)
{
    for (int i = 0; i < lane->cuts.count; i++)
        destroy_cut(lane, lane->cuts.items[i]);
    twi_array_free(&lane->cuts);
    twi_array_free(&lane->links);
}

static twi_cut *make_cut(int num_fed, const tw_output *fetches, int num_fetches, const twi_border *behind)
{
    twi_cut *cut = twi_alloc(sizeof *cut);
    if (!cut)
        return NULL;
    cut->fed = twi_alloc_array((size_t)num_fed, sizeof *cut->fed);
    cut->fetches = twi_alloc_array((size_t)num_fetches, sizeof *cut->fetches);
    if (!cut->fed || !cut->fetches) {
        destroy_cut(NULL, cut);
        return NULL;
    }
    cut->num_fed = num_fed;
    cut->num_fetches = num_fetches;
    cut->behind = behind;
    if (num_fetches)
        memcpy(cut->fetches, fetches, sizeof *fetches * (size_t)num_fetches);
    return cut;
}

static bool is_for(const twi_cut *cut, const twi_wanted *w)
{
    bool same = cut->num_fed == w->num_feeds && cut->num_fetches == w->num_fetches;
    for (int i = 0; i < w->num_fetches && same; i++)
        same = same_output(cut->fetches[i], w->fetches[i]);
    for (int i = 0; i < w->num_feeds && same; i++)
        same = same_output(cut->fed[i], twi_wanted_output(w, i));
    return same;
}

tw_status twi_cut_find(twi_lane *lane, const twi_wanted *w, twi_cut **result, tw_error *error)
{
    for (int i = 0; i < lane->cuts.count; i++)
        if (is_for(lane->cuts.items[i], w)) {
            *result = lane->cuts.items[i];
            return TW_OK;
        }
    twi_cut *cut = make_cut(w->num_feeds, w->fetches, w->num_fetches, NULL);
    for (int i = 0; cut && i < w->num_feeds; i++)
        cut->fed[i] = twi_wanted_output(w, i);
    if (!cut || !twi_push(&lane->cuts, cut)) {
        destroy_cut(lane, cut);
        return twi_fail_memory(error, "making a plan");
    }
    cut->known = w->known;
    *result = cut;
    return TW_OK;
}

/* ---- links ---------------------------------------------------------------------------------------------------------
 */

/* Whether what is in the feed matters, beyond its shape. */
static bool is_by_value(const twi_cut *cut, int feed)
{
    return cut->behind && cut->behind->crossings[feed].by_value;
}

static twi_feed_shape shape_of_feed(const twi_wanted *w, int i)
{
    tw_output output = twi_wanted_output(w, i);
    if (output.index < 0 || (w->dead && w->dead[i]))
        return (twi_feed_shape){.output = output, .dead = w->dead && w->dead[i]};
    return w->feeds
               ? (twi_feed_shape){output, w->feeds[i].tensor->dtype, twi_feed_shape_of(w->feeds[i].tensor), NULL, false}
               : (twi_feed_shape){output, tw_output_dtype(output), w->feed_shapes[i].shape, NULL, false};
}

static bool holds(const tw_tensor *tensor, const tw_tensor *value)
{
    return memcmp(tensor->data, value->data, tw_tensor_bytes(value)) == 0;
}

/* Whether some variable has another shape now. */
static bool is_outgrown(const twi_plan *plan)
{
    bool outgrown = false;
    for (int i = 0; i < plan->growing.count && !outgrown; i++)
        outgrown = plan->growing.items[i]->left;
    return outgrown;
}

static bool fits(const twi_link *link, const twi_wanted *w)
{
    for (int i = 0; i < w->num_feeds; i++) {
        const twi_feed_shape *made = &link->feeds[i];
        twi_feed_shape feed = shape_of_feed(w, i);
        if (made->dead != feed.dead || made->dtype != feed.dtype || !tw_shape_equal(made->shape, feed.shape) ||
            (made->value && is_by_value(link->cut, i) && !holds(w->feeds[i].tensor, made->value)))
            return false;
    }
    return !is_outgrown(link->plan);
}

/* What the plan is made for. Of a value its own copy, since what comes is filled again. */
static tw_status note_feeds(twi_link *link, const twi_wanted *w, tw_error *error)
{
    const twi_cut *cut = link->cut;
    for (int i = 0; i < w->num_feeds; i++) {
        twi_feed_shape *feed = &link->feeds[i];
        tw_tensor *constant = cut->behind ? cut->behind->crossings[i].constant : cut->known ? cut->known[i] : NULL;
        *feed = shape_of_feed(w, i);
        bool by_value = is_by_value(cut, i) && !feed->dead && !twi_owns_memory(feed->dtype);
        if (constant)
            feed->value = tw_tensor_retain(constant);
        else if (by_value)
            feed->value = tw_tensor_from(feed->dtype, feed->shape, w->feeds[i].tensor->data);
        if (by_value && !feed->value)
            return twi_fail_memory(error, "making a plan");
    }
    return TW_OK;
}

/* The cut behind the plan's border, and room for what crosses. */
static tw_status make_rest(twi_link *link, twi_series_table *series, tw_error *error)
{
    const twi_border *border = link->plan->border;
    if (!border)
        return TW_OK;
    link->rest = make_cut(border->num_crossings, border->fetches, border->num_fetches, border);
    if (link->rest)
        link->rest->series = series ? series : &link->plan->series;
    link->values = twi_alloc_array((size_t)link->plan->num_fetches, sizeof *link->values);
    link->crossing = twi_alloc_array((size_t)border->num_crossings, sizeof *link->crossing);
    link->late = twi_alloc_array((size_t)border->num_fetches, sizeof *link->late);
    link->dead = twi_alloc_array((size_t)border->num_crossings, sizeof *link->dead);
    if (!link->rest || !link->values || !link->crossing || !link->dead || !link->late)
        return twi_fail_memory(error, "making a border");
    for (int i = 0; i < border->num_crossings; i++)
        link->crossing[i].output = link->rest->fed[i] = border->crossings[i].output;
    return TW_OK;
}

static tw_status plan_link(twi_lane *lane, twi_cut *cut, const twi_wanted *w, twi_link **result, tw_error *error)
{
    const twi_planner *planner = lane->planner;
    twi_request request = planner->request;
    tw_status status;
    twi_link *link = twi_alloc(sizeof *link);
    if (!link)
        return twi_fail_memory(error, "making a plan");
    link->cut = cut;
    link->bound_at = -1;
    link->feeds = twi_alloc_array((size_t)cut->num_fed, sizeof *link->feeds);
    if (!link->feeds || !twi_reserve(&cut->links, cut->links.count + 1) ||
        !twi_reserve(&lane->links, lane->links.count + 1))
        TWI_LEAVE(twi_fail_memory(error, "making a plan"));
    TWI_TRY(note_feeds(link, w, error));
    request.feeds = link->feeds;
    request.num_feeds = cut->num_fed;
    request.fetches = cut->fetches;
    request.num_fetches = cut->num_fetches;
    request.behind = cut->behind;
    request.beside = lane->number >= (cut->behind ? TWI_FIRST_GIVEN : TWI_MOST_LANES);
    request.lane = lane->number;
    request.series = cut->series ? cut->series : request.series;
    TWI_TRY(planner->place(planner->user, error));
    TWI_TRY(twi_plan_create(&request, &link->plan, error));
    TWI_TRY(make_rest(link, request.series, error));
    TWI_TRY(twi_dispatchers_prepare(lane->dispatchers, link->plan, lane->ending, error));
    cut->links.items[cut->links.count++] = link;
    lane->links.items[lane->links.count++] = link;
    *result = link;
    return TW_OK;
done:
    destroy_link(lane, link);
    return status;
}

/* ---- the bound -----------------------------------------------------------------------------------------------------
 */

/* Each cut that was asked for keeps one plan in any case. */
static bool is_alone(const twi_link *link)
{
    return !link->cut->behind && link->cut->links.count == 1;
}

/* The one that was not used for longest, and has none behind it, as all of the run under way have but the latest, which
 * is yet to be used; NULL: all that may go are in use. */
static twi_link *find_oldest(const twi_lane *lane)
{
    twi_link *oldest = NULL;
    for (int i = 0; i < lane->links.count; i++) {
        twi_link *link = lane->links.items[i];
        bool may_go = link->used <= lane->runs && !is_alone(link) && (!link->rest || !link->rest->links.count);
        if (may_go && (!oldest || link->used < oldest->used))
            oldest = link;
    }
    return oldest;
}

static void drop_link(twi_lane *lane, twi_link *link)
{
    twi_cut *cut = link->cut;
    int kept = 0;
    for (int i = 0; i < cut->links.count; i++)
        if (cut->links.items[i] != link)
            cut->links.items[kept++] = cut->links.items[i];
    cut->links.count = kept;
    destroy_link(lane, link);
}

static void drop_cut(twi_lane *lane, twi_cut *cut)
{
    int kept = 0;
    for (int i = 0; i < lane->cuts.count; i++)
        if (lane->cuts.items[i] != cut)
            lane->cuts.items[kept++] = lane->cuts.items[i];
    lane->cuts.count = kept;
    destroy_cut(lane, cut);
}

static void keep_bound(twi_lane *lane)
{
    twi_link *oldest;
    while (lane->links.count - lane->cuts.count > lane->planner->most && (oldest = find_oldest(lane)))
        drop_link(lane, oldest);
}

tw_status twi_link_find(twi_lane *lane, twi_cut *cut, const twi_wanted *w, twi_link **link, tw_error *error)
{
    tw_status status = TW_OK;
    for (int i = cut->links.count - 1; i >= 0; i--)
        if (fits(cut->links.items[i], w)) {
            *link = cut->links.items[i];
            return TW_OK;
        }
    pthread_mutex_lock(lane->planner->lock);
    status = plan_link(lane, cut, w, link, error);
    if (status == TW_OK) {
        (*link)->used = lane->runs + 1; /* it is about to be */
        keep_bound(lane);
    } else if (!cut->behind && !cut->links.count) {
        drop_cut(lane, cut);
    }
    pthread_mutex_unlock(lane->planner->lock);
    return status;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* Where tasks look after each step whether there was more. */
static tw_status run_together(twi_lane *lane, twi_plan *plan, int64_t steps, unsigned look, const tw_feed *feeds,
                              const tw_receivers *to, tw_tensor **results, int64_t *done, tw_error *error)
{
    int64_t more;
    tw_error own;
    tw_status status = TW_OK;
    error = error ? error : &own;
    for (*done = 0; *done < steps && status == TW_OK; *done += status == TW_OK) {
        status = twi_part_run(lane, plan, 1, look, feeds, to, results, &more, error);
        status = twi_end_together(plan, status, error);
    }
    return status;
}

static tw_status run_link(twi_lane *lane, twi_link *link, int64_t steps, unsigned look, const tw_feed *feeds,
                          const tw_receivers *to, tw_tensor **results, int64_t *done, tw_error *error)
{
    link->used = lane->runs;
    if (!twi_push(&lane->latest, link->plan))
        return twi_fail_memory(error, "running a plan");
    tw_status status = twi_lane_take(lane, link->plan, &link->bound_at, error);
    if (status != TW_OK)
        return status;
    return (lane->together && link->plan->ends ? run_together : twi_part_run)(lane, link->plan, steps, look, feeds, to,
                                                                              results, done, error);
}

/* Whether it is not there, as its branch was not taken. */
static bool is_dead(const twi_link *link, const twi_crossing *c)
{
    return c->dead || (c->fetch >= 0 && link->plan->fetches[c->fetch].dead);
}

/* Leads what crosses to the feeds of the rest. */
static void cross(twi_link *link, const tw_feed *feeds)
{
    const twi_border *border = link->plan->border;
    for (int i = 0; i < border->num_crossings; i++) {
        const twi_crossing *c = &border->crossings[i];
        link->dead[i] = is_dead(link, c);
        link->crossing[i].tensor = link->dead[i]   ? NULL
                                   : c->constant   ? c->constant
                                   : c->fetch >= 0 ? link->values[c->fetch]
                                                   : feeds[c->feed].tensor;
    }
}

/* Variables that get another shape have it when the rest is planned. */
static tw_status reshape_variables(twi_lane *lane, const twi_link *link, tw_error *error)
{
    const twi_border *border = link->plan->border;
    tw_status status = TW_OK;
    pthread_mutex_lock(lane->planner->lock);
    for (int i = 0; i < border->num_reshapes && status == TW_OK; i++) {
        const twi_reshape *r = &border->reshapes[i];
        if (!link->dead[r->value] && (r->taken < 0 || !link->dead[r->taken]))
            status = twi_resources_reshape(lane->planner->request.resources, r->variable,
                                           link->crossing[r->value].tensor,
                                           lane->planner->oldest(lane->planner->user, lane), error);
    }
    pthread_mutex_unlock(lane->planner->lock);
    return status;
}

/* Hands over what was wanted of the part before the border. */
static void hand_over(const twi_link *link, tw_tensor **results)
{
    for (int i = 0; i < link->cut->num_fetches; i++)
        if (link->values[i]) {
            tw_tensor_release(results[i]);
            results[i] = tw_tensor_retain(link->values[i]);
        }
}

static tw_status run_once(twi_lane *lane, twi_link *link, unsigned look, const tw_feed *feeds, tw_tensor **results,
                          tw_error *error)
{
    const twi_border *border = link->plan->border;
    twi_link *rest;
    int64_t done;
    tw_status status = run_link(lane, link, 1, look, feeds, NULL, border ? link->values : results, &done, error);
    if (status != TW_OK || !border)
        return status;
    cross(link, feeds);
    status = reshape_variables(lane, link, error);
    if (status != TW_OK)
        return status;
    twi_wanted w = {.feeds = link->crossing,
                    .dead = link->dead,
                    .num_feeds = border->num_crossings,
                    .fetches = border->fetches,
                    .num_fetches = border->num_fetches};
    status = twi_link_find(lane, link->rest, &w, &rest, error);
    for (int i = 0; i < border->num_fetches && results; i++)
        link->late[i] = results[border->places[i]];
    if (status == TW_OK)
        status = run_once(lane, rest, look, link->crossing, results ? link->late : NULL, error);
    for (int i = 0; i < border->num_fetches && results; i++)
        results[border->places[i]] = link->late[i];
    if (status == TW_OK && results)
        hand_over(link, results);
    return status;
}

tw_status twi_run_links(twi_lane *lane, twi_link *link, int64_t steps, unsigned look, const tw_feed *feeds,
                        const tw_receivers *to, tw_tensor **results, int64_t *done, tw_error *error)
{
    tw_status status = TW_OK;
    lane->runs++;
    lane->latest.count = 0;
    *done = 0;
    if (!link->plan->border)
        return run_link(lane, link, steps, look, feeds, to, results, done, error);
    twi_cut *cut = link->cut;
    twi_wanted w = {
        .feeds = feeds, .num_feeds = cut->num_fed, .fetches = cut->fetches, .num_fetches = cut->num_fetches};
    while (*done < steps && status == TW_OK) {
        lane->latest.count = 0;
        if (is_outgrown(link->plan))
            status = twi_link_find(lane, cut, &w, &link, error);
        if (status == TW_OK)
            status = run_once(lane, link, look, feeds, results, error);
        *done += status == TW_OK;
    }
    return status;
}

/* chain.h - cuts of a graph and the plans made for them, run part by part.
 *
 * A cut says what is fed and what is wanted. For the shapes that come (and behind a border for the contents of what
 * shapes depend on) it has plans, its links. A plan may end at a border (plan/border.c): then its link has a cut for
 * the rest, whose feeds are the values that cross, and so on; a run is a chain of links. A session's runs are chains; a
 * step that has plans of its own may run them the same way, in a lane of its own.
 *
 * Plans are kept for the next time. Of those that differ in shapes alone a lane keeps so many (twi_planner.most),
 * beside one for each cut that was asked for; the one that was not used for longest goes. */
#ifndef TWI_CHAIN_H
#define TWI_CHAIN_H

#include "run/lane.h"

/* What a run is to do: feeds with values, or their shapes alone when it is only prepared. */
typedef struct twi_wanted {
    const tw_feed *feeds; /* [num_feeds], or NULL and */
    const tw_feed_shape *feed_shapes;
    const bool *dead; /* [num_feeds] behind a border, of what lies in a branch that was not taken; NULL: nothing */
    tw_tensor *const *known; /* [num_feeds] values that are always the same, which plans may take for granted, and that
                                outlive them; NULL: none is */
    int num_feeds;
    const tw_output *fetches;
    int num_fetches;
    const tw_receivers *to; /* [num_fetches] of several tasks those that get them; NULL: all */
} twi_wanted;

tw_output twi_wanted_output(const twi_wanted *wanted, int feed);

typedef struct twi_cut {
    tw_output *fed, *fetches;
    int num_fed, num_fetches;
    const twi_border *behind; /* the border it lies behind, whose crossings are fed; NULL: none */
    twi_series_table *series; /* of what lies behind a border: the stacks and arrays of the plan that it begins with */
    tw_tensor *const *known;  /* [num_fed] as of twi_wanted */
    TWI_ARRAY(struct twi_link *) links;
} twi_cut;

/* A plan and what it was made for. */
typedef struct twi_link {
    twi_cut *cut;
    twi_plan *plan;
    twi_feed_shape *feeds; /* [cut->num_fed] */
    int64_t bound_at;      /* see twi_lane_take() */
    int64_t used;          /* the lane's `runs` when it last had part in one */
    twi_cut *rest;         /* what lies behind the plan's border; NULL: it has none */
    tw_tensor **values;    /* [plan->num_fetches] of a plan with a border: what it gave last */
    tw_feed *crossing;     /* [rest->num_fed] */
    bool *dead;            /* [rest->num_fed] */
    tw_tensor **late;      /* [rest->num_fetches] */
} twi_link;

/* The lane's cut for that, found or made. */
tw_status twi_cut_find(twi_lane *lane, const twi_wanted *wanted, twi_cut **cut, tw_error *error);
void twi_cuts_destroy(twi_lane *lane); /* all of a lane, with their plans */

/* The cut's link for what is fed, found or planned: the part up to the first border. Takes the planner's lock to plan.
 * A lane's cut that has no link after all is gone. */
tw_status twi_link_find(twi_lane *lane, twi_cut *cut, const twi_wanted *wanted, twi_link **link, tw_error *error);

/* Runs the chain that begins with the link `steps` times over; feeds[link->cut->num_fed] are those it was found for.
 * to, results[link->cut->num_fetches] as of twi_part_run(). *done: how often it has ended. The lane's turn is the
 * caller's. */
tw_status twi_run_links(twi_lane *lane, twi_link *link, int64_t steps, unsigned look, const tw_feed *feeds,
                        const tw_receivers *to, tw_tensor **results, int64_t *done, tw_error *error);

#endif

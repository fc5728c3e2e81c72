/* specialize.h - a graph on its way into a region: what the files share that copy it (specialize.c), that see to its
 * branches (conditions.c) and loops (loops.c), and that find where shapes are not known any more (border.c). */
#ifndef TWI_SPECIALIZE_H
#define TWI_SPECIALIZE_H

#include "graph/branches.h"
#include "graph/frames.h"
#include "graph/guards.h"
#include "plan/stages.h"

/* An assignment that gives a variable another shape than it has, or may do so behind the border. */
typedef struct twi_reshaping {
    const tw_node *assign; /* NULL: behind the border */
    twi_node *handle;
    tw_shape before;
} twi_reshaping;

/* What became of a node of the user's graph. */
typedef struct twi_copied {
    bool needed;
    bool copied;           /* and seen to */
    bool fed;              /* some output is */
    bool views;            /* its output is a variable's memory, passed on as a value */
    bool decides;          /* a condition is decided by what it passes on */
    twi_node *decision;    /* the read that a Switch decides by which looks at a variable itself; of a variable that for
                              all Switches until it is written */
    bool written;          /* of a variable: a node that has been copied changes it by reference */
    unsigned seen;         /* by the latest search (twi_copies) that came by */
    twi_value *outputs;    /* [num_outputs] in the region; NULL unless it is needed or fed */
    twi_node *node;        /* for control edges; NULL where a constant took its place */
    twi_guard *conditions; /* under which it runs */
} twi_copied;

typedef struct twi_records {
    struct twi_records *next;
    twi_copied of[]; /* [nodes of the user's graph] */
} twi_records;

/* Records that nobody uses, all zero. A loop's plan takes those that one before it has used: so what it costs is in
 * proportion to the loop, not to the graph. */
typedef struct twi_copies {
    twi_records *spare;
    unsigned searches; /* so far */
} twi_copies;

typedef struct twi_copying {
    twi_planning *p;
    twi_region *region;
    twi_records *records;
    twi_copied *of;         /* of them */
    int fed_end;            /* nodes of the region below are feeds: of a node some outputs may be fed, others not */
    TWI_ARRAY(const tw_node *) needed; /* in the graph's order */
    bool conditions;        /* the graph has branches */
    twi_guards guards;
    twi_node *guard;        /* of the node that is being copied; NULL: it runs always */
    twi_copies own, *copies; /* of a run of the graph, and whose are used */
    const twi_frames *frames; /* NULL: the graph has no loops */
    bool *looped;           /* [frames] whose node has been made */
    bool unknown;           /* some shape is not known so far */
    bool skipped;           /* some node was not copied, for it never runs */
    bool *late;             /* [nodes] behind the border; NULL: there is none */
    const tw_node *cause;   /* the first late one */
    TWI_ARRAY(twi_reshaping) reshaping;
    bool *reshaped; /* [nodes] Exits of loops that may give a variable another shape, so what follows is late; or NULL */
    TWI_ARRAY(tw_output) asked; /* what the shapes of late ones depend on */
    /* [nodes] behind a border: predicates that are known by what crosses it, a bit an output, and those that hold. */
    uint64_t *settled, *held;
} twi_copying;

static inline bool twi_copy_is_fed(const twi_copying *c, tw_output output)
{
    const twi_copied *copied = &c->of[output.node->id];
    const twi_node *made = copied->fed && output.index >= 0 ? copied->outputs[output.index].node : NULL;
    return made && made->id < c->fed_end;
}

/* Whether a search comes by for the first time; it has a number of its own. */
static inline bool twi_copy_see(twi_copying *c, const tw_node *node, unsigned search)
{
    bool seen = c->of[node->id].seen == search;
    c->of[node->id].seen = search;
    return !seen;
}

/* Nothing of the node is left to be done. */
static inline bool twi_copy_is_wholly_fed(const twi_copying *c, const tw_node *node)
{
    bool fed = c->of[node->id].fed;
    if (node->backward.node)
        return fed;
    for (int i = 0; i < node->num_outputs && fed; i++)
        fed = twi_copy_is_fed(c, (tw_output){(tw_node *)node, i});
    return fed;
}

/* Notes what a node has become, for the plan's report, too. */
static inline void twi_copy_note(twi_copying *c, const tw_node *node, twi_node *made)
{
    c->of[node->id].node = made;
    if (c->p->plan->origins)
        c->p->plan->origins[node->id] = made;
    if (made)
        made->is_users = made->origin == node;
}

static inline tw_status twi_copy_row(twi_copying *c, const tw_node *node)
{
    twi_value **row = &c->of[node->id].outputs;
    if (!*row)
        *row = twi_arena_alloc(&c->p->plan->arena, sizeof **row * (size_t)(node->num_outputs + 1));
    return *row ? TW_OK : twi_fail_memory(c->p->error, "copying a graph");
}

/* A reference, or what Identity made of one: TensorFlow passes the variable's own memory on, so whoever looks at it
 * later sees what is there then. */
static inline bool twi_copy_refers(const twi_copying *c, tw_output output)
{
    return output.index >= 0 && !twi_copy_is_fed(c, output) &&
           (c->of[output.node->id].views || twi_output_is_reference(output));
}

/* Who wrote the variable last before the reference was passed on; no node: its maker. */
static inline twi_value twi_copy_writer(const twi_copying *c, tw_output reference)
{
    return (twi_value){reference.node->num_inputs ? c->of[reference.node->id].node : NULL, -1};
}

/* Whether a part before the border that this one lies behind has done the node's work. */
static inline bool twi_copy_is_done(const twi_copying *c, const tw_node *node)
{
    const twi_border *behind = c->p->request->behind;
    return behind && node->id < behind->num_done && behind->done[node->id];
}

/* ---- specialize.c ------------------------------------------------------------------------------------------------ */

/* Nodes into the order of their graph. */
void twi_copy_sort(const tw_node **nodes, int count);
/* Copies a node that is needed and not left to a loop, unless it has been. What it takes has been. */
tw_status twi_copy_once(twi_copying *c, const tw_node *node);
/* The copy of node `id` of the user's graph if it runs for what it does, whatever becomes of those that need it: where
 * some never run, others that they come after do. NULL: it is none of these, or all that are needed run. */
twi_node *twi_copy_effect(const twi_copying *c, int id);
/* What the region gives for fetch `number`, and the node that says whether it has a value; NULL: always. */
tw_status twi_copy_fetch(twi_copying *c, int number, twi_value *value, twi_node **guard);

/* ---- conditions.c ------------------------------------------------------------------------------------------------ */

/* Behind a border: finds out which sides of conditions were taken before it. */
tw_status twi_settle_conditions(twi_copying *c);
/* Under which conditions the node runs, of what it takes. *never: it does not, whatever is fed. Sets c->guard. */
tw_status twi_find_conditions(twi_copying *c, const tw_node *node, bool *never);
/* The values of a Switch: what it looks at. */
tw_status twi_copy_switch(twi_copying *c, const tw_node *node, twi_value data, const twi_value *controls, int num_controls);
/* Those of a Merge: a chain of choices. */
tw_status twi_copy_merge(twi_copying *c, const tw_node *node);
/* The node that says whether an output has a value, or with index -1 whether its node runs; NULL: always. *never: it
 * has not, whatever is fed. */
tw_status twi_guard_of(twi_copying *c, tw_output output, twi_node **guard, bool *never);

/* Sets c->guard for a loop, by what it takes from outside. */
tw_status twi_find_loop_conditions(twi_copying *c, const tw_output *inputs, int num_inputs, const tw_node *exit,
                                   bool *never);

/* ---- loops.c ----------------------------------------------------------------------------------------------------- */

/* The frame whose nodes are being copied. */
static inline int twi_copy_frame(const twi_copying *c)
{
    return c->p->request->frame;
}

/* Whether a node is left to a plan of a loop. What does not change in a loop is computed before it. */
static inline bool twi_copy_is_inside(const twi_copying *c, const tw_node *node)
{
    int frame = c->frames ? c->frames->of[node->id] : 0, here = twi_copy_frame(c);
    if (frame <= here || !twi_frame_is_within(c->frames, frame, here))
        return false;
    return !c->frames->unchanging[node->id] || c->frames->items.items[frame].parent != here;
}

/* Lies outside of the loop whose round is copied: what makes a variable that the loop uses. */
static inline bool twi_copy_is_outside(const twi_copying *c, const tw_node *node)
{
    int here = twi_copy_frame(c);
    return here && !twi_frame_is_within(c->frames, c->frames->of[node->id], here);
}

/* Is computed before its loop, outside of it. */
static inline bool twi_copy_is_hoisted(const twi_copying *c, const tw_node *node)
{
    return c->frames && c->frames->unchanging[node->id] && c->frames->of[node->id] != twi_copy_frame(c);
}

/* ---- series.c ---------------------------------------------------------------------------------------------------- */

/* Notes what a node does to a stack or an array, or what it gives; *folded: the value, if it is known. */
tw_status twi_copy_series(twi_copying *c, const tw_node *node, twi_node *made, const twi_value *inputs, twi_value *folded);
/* What the node puts somewhere may have any shape, which is known when it comes. */
tw_status twi_series_vary(twi_copying *c, const tw_node *put);
/* Whether what the node takes off a stack is the handle of an array. */
static inline bool twi_copy_gives_handle(const tw_node *node)
{
    return twi_op_is(node->op, TWI_TAKES) && node->num_outputs && node->output_types[0] == TW_RESOURCE;
}
/* One that was made, or whose handle was taken, outside of the loop. */
tw_status twi_copy_outer_series(twi_copying *c, const tw_node *node);

/* Makes the node of a loop when its first Exit is met, and maps the values of all. */
tw_status twi_copy_loop(twi_copying *c, const tw_node *exit);

/* ---- border.c ---------------------------------------------------------------------------------------------------- */

/* Whether something that the node reads or comes after is behind the border. */
bool twi_follows_late(const twi_copying *c, const tw_node *node);
/* Of a node that was just copied: whether it, and with that all that follows it, is behind the border. */
tw_status twi_find_late(twi_copying *c, const tw_node *node);
/* Makes the plan's border of all late nodes, and lets the region give what crosses it, too. */
tw_status twi_make_border(twi_copying *c);

#endif

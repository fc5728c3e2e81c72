/* planned_nodes.h - what became of a graph in a session's plans, asked as users do. */
#ifndef PLANNED_NODES_H
#define PLANNED_NODES_H

#include "testing.h"

#include <string.h>
#include <tower/explain.h>

/* Nodes of the op in the plans of all lanes. */
static inline int planned_nodes(tw_session *session, const char *op)
{
    tw_error error = {0};
    tw_planned *planned;
    int count = 0;
    assert_ok(tw_session_planned(session, &planned, &error));
    for (int i = 0; i < planned->num_nodes; i++)
        count += strcmp(planned->nodes[i].op, op) == 0;
    tw_planned_destroy(planned);
    return count;
}

static inline bool plans_have(tw_session *session, const char *op)
{
    return planned_nodes(session, op) > 0;
}

static inline int planned_plans(tw_session *session)
{
    tw_error error = {0};
    tw_planned *planned;
    assert_ok(tw_session_planned(session, &planned, &error));
    int count = planned->num_plans;
    tw_planned_destroy(planned);
    return count;
}

#endif

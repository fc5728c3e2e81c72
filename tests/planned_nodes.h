/* planned_nodes.h - what became of a graph in a session's plans. */
#ifndef PLANNED_NODES_H
#define PLANNED_NODES_H

#include "run/session.h"

#include <string.h>

/* Whether a plan of the first lane has a node of the op. */
static inline bool plans_have(const tw_session *session, const char *op)
{
    const twi_lane *lane = session->lanes[0];
    bool found = false;
    for (int i = 0; i < lane->plans.count; i++) {
        const twi_region *planned = lane->plans.items[i].plan->region;
        for (int id = 0; id < planned->nodes.count; id++)
            found = found || strcmp(planned->nodes.items[id]->op->name, op) == 0;
    }
    return found;
}

#endif

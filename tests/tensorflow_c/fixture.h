/* fixture.h - a status and an empty graph for each test of a program. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include "client.h"

static TF_Status *s;
static TF_Graph *graph;

static int begin(void **state)
{
    (void)state;
    s = TF_NewStatus();
    graph = TF_NewGraph();
    return 0;
}

static int end(void **state)
{
    (void)state;
    TF_DeleteGraph(graph);
    TF_DeleteStatus(s);
    return 0;
}

#endif

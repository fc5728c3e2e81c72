/* golden_graph.h - a graph that TensorFlow wrote, read from a folder of golden/. */
#ifndef GOLDEN_GRAPH_H
#define GOLDEN_GRAPH_H

#include "testing.h"

#include <tower/io.h>

static inline tw_graph *read_golden_graph(const char *folder, const char *name)
{
    char path[600];
    size_t size;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    snprintf(path, sizeof path, "%s/%s/%s.pb", GOLDEN_DIR, folder, name);
    char *bytes = read_whole(path, &size);
    assert_ok(tw_graph_import(g, bytes, size, NULL, &error));
    free(bytes);
    return g;
}

#endif

/* graph_def.h - what the writer (graph_export.c) and the reader (import/) of GraphDefs agree on. */
#ifndef TWI_GRAPH_DEF_H
#define TWI_GRAPH_DEF_H

/* The version of graphs that is written: TensorFlow 1.15's. A reader refuses graphs that want a newer consumer. */
#define TWI_GRAPH_VERSION 134

#endif

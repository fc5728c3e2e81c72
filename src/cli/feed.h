/* feed.h - what words on the command line mean in a graph: outputs by name, and what they are fed. */
#ifndef CLI_FEED_H
#define CLI_FEED_H

#include "options.h"

#include <tower/io.h>
#include <tower/session.h>

/* Where names are looked up: among the nodes, and before them in a signature if there is one. */
typedef struct names {
    const char *command; /* which complains */
    const tw_graph *graph;
    const tw_signature *signature; /* NULL: none */
} names;

/* "loss" or "split:1", or the name that the signature has for it. A node without outputs, or of an op that is not
 * known, is found with index -1. */
bool names_find(const names *names, const char *text, tw_output *output);

/* Copies the next of "a,b,c" into name and moves *list past it; false at the end. */
bool next_name(const char **list, char *name, size_t size);

/* Reads "x=0.5", "keep_prob=1,x=[[1,2],[3,4]]", "x=@batch.npy". What is in feeds[*count] afterwards is yours, also on
 * failure: feeds_release(). */
bool feeds_parse(const names *names, const texts *given, tw_feed *feeds, int *count, int most);
bool feeds_have(const tw_feed *feeds, int count, tw_output output);
void feeds_release(tw_feed *feeds, int count);

#endif

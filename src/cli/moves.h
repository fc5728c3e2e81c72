/* moves.h - saying what soft placement moved. */
#ifndef CLI_MOVES_H
#define CLI_MOVES_H

#include <tower/explain.h>

/* A table on standard error if it moved anything, a line for each reason or for each node. */
tw_status moves_tell(const char *command, tw_session *session, bool every_node, tw_error *error);

#endif

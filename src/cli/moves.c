/* moves.c - see moves.h. */
#include "moves.h"

#include <inttypes.h>
#include <stdio.h>

tw_status moves_tell(const char *command, tw_session *session, bool every_node, tw_error *error)
{
    tw_moves *moves;
    tw_status status = tw_session_moves(session, &moves, error);
    if (status != TW_OK)
        return status;
    bool tells = tw_devices_task(tw_session_devices(session)) == 0; /* all tasks know the same */
    char *table = tells ? tw_moves_table(moves, every_node) : NULL;
    if (table && *table)
        fprintf(stderr, "tower %s: soft placement moved %d node%s, which makes %" PRId64 " bytes cross in a step\n%s",
                command, moves->num_nodes, moves->num_nodes == 1 ? "" : "s", moves->bytes, table);
    tw_free(table);
    tw_moves_destroy(moves);
    return TW_OK;
}

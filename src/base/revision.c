/* revision.c - of which sources this library was made; a file of its own, for it is compiled after each commit. */
#include "revision.h" /* made by cmake/revision.cmake */

#include <tower/status.h>

const char *tw_revision(void)
{
    return TOWER_REVISION;
}

/* plugin.c - libtower_mpi.so: the ways to be started by an MPI (src/comm/mpi/), one for each that it was built with. */
#include "device/plugin.h"

extern const twi_comm_way twi_comm_openmpi, twi_comm_mpich;

static const twi_backend *const backends[] = {NULL};
static const twi_comm_way *const ways[] = {
#ifdef TOWER_WITH_OPENMPI
    &twi_comm_openmpi,
#endif
#ifdef TOWER_WITH_MPICH
    &twi_comm_mpich,
#endif
    NULL};
static const twi_plugin table = {TWI_PLUGIN_HEAD, .backends = backends, .ways = ways};

const twi_plugin *twi_plugin_entry(void)
{
    return &table;
}

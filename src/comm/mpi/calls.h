/* calls.h - the calls of MPI that are used, in a library that is opened when a process was started by it: so the
 * plug-in opens on machines without MPI, and one file serves several MPIs. mpi.c is compiled once for each, with its
 * mpi.h.
 *
 * All of MPI 2. Handles are numbers in MPICH; in Open MPI they are addresses of variables of the library, which are
 * looked up as the calls are. */
#ifndef TWI_MPI_CALLS_H
#define TWI_MPI_CALLS_H

#include <mpi.h>

/*  X(call) */
#define TWI_MPI_CALLS(X)                                                                                               \
    X(Init_thread)                                                                                                     \
    X(Finalize)                                                                                                        \
    X(Comm_set_errhandler)                                                                                             \
    X(Comm_dup)                                                                                                        \
    X(Comm_free)                                                                                                       \
    X(Comm_rank)                                                                                                       \
    X(Comm_size)                                                                                                       \
    X(Comm_get_attr)                                                                                                   \
    X(Allgather)                                                                                                       \
    X(Isend)                                                                                                           \
    X(Irecv)                                                                                                           \
    X(Test)                                                                                                            \
    X(Testsome)                                                                                                        \
    X(Cancel)                                                                                                          \
    X(Wait)                                                                                                            \
    X(Get_count)                                                                                                       \
    X(Error_string)

typedef struct twi_mpi_calls {
#define X(call) __typeof__(MPI_##call) *call;
    TWI_MPI_CALLS(X)
#undef X
    MPI_Comm world;
    MPI_Datatype byte;
    MPI_Errhandler errors_return;
    MPI_Request no_request;
} twi_mpi_calls;

#ifdef OPEN_MPI
#define TWI_MPI_NAME "Open MPI"
#define TWI_MPI_LIBRARY "libmpi.so.40"
#define TWI_MPI_WAY twi_comm_openmpi
#define TWI_MPI_HANDLES(X)                                                                                             \
    X(world, ompi_mpi_comm_world)                                                                                      \
    X(byte, ompi_mpi_byte)                                                                                             \
    X(errors_return, ompi_mpi_errors_return)                                                                           \
    X(no_request, ompi_request_null)
#else
#define TWI_MPI_NAME "MPICH"
#define TWI_MPI_LIBRARY "libmpich.so.12"
#define TWI_MPI_WAY twi_comm_mpich
#endif

#endif

/* team.c - the door between the kernels' parallel regions and libgomp.
 *
 * A region of one thread costs libgomp a team: 300 ns and system calls, several times what a small kernel computes. GCC
 * makes the same call for it as for a region of many (`if` and num_threads() only say how many), so the linker leads that
 * call here (--wrap in src/CMakeLists.txt), and a region of one thread is a call of a function. */

#include <omp.h>

typedef void region(void *data);

void __real_GOMP_parallel(region *body, void *data, unsigned threads, unsigned flags);
void __wrap_GOMP_parallel(region *body, void *data, unsigned threads, unsigned flags);

/* In somebody else's region the body would take itself for one of that team. */
void __wrap_GOMP_parallel(region *body, void *data, unsigned threads, unsigned flags)
{
    if (threads == 1 && !omp_in_parallel())
        body(data);
    else
        __real_GOMP_parallel(body, data, threads, flags);
}

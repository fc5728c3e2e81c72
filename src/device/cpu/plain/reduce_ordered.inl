/* reduce_ordered.inl - extremes of REAL, and their places; see reduce.c. */

REDUCE(maximum, REAL, LEAST, b > a || b != b ? b : a, a)
REDUCE(minimum, REAL, GREATEST, b < a || b != b ? b : a, a)

/* The place of the first extreme along the one reduced axis. NaN is none, unless there is nothing else: then it is the
 * first place. */
#define ARG(f, better)                                                                                                 \
    static void NAME(f##_outputs)(const void *job, int64_t first, int64_t last, int thread)                            \
    {                                                                                                                  \
        REDUCTION_JOB;                                                                                                 \
        for (int64_t o = first; o < last; o++) {                                                                       \
            const REAL *from = x + twi_reduction_start(o, d->num_kept, d->kept_size, d->kept_step);                    \
            int64_t best = 0, step = d->num_reduced ? d->reduced_step[0] : 0;                                          \
            for (int64_t k = 1; k < d->inputs; k++) {                                                                  \
                REAL b = from[k * step], a = from[best * step];                                                        \
                best = better ? k : best;                                                                              \
            }                                                                                                          \
            twi_output_int(j->r, 0, o, best);                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static tw_status NAME(f)(const twi_run *r)                                                                         \
    {                                                                                                                  \
        return find_extreme(r, NAME(f##_outputs));                                                                     \
    }
ARG(arg_max, b > a || (a != a && b == b))
ARG(arg_min, b < a || (a != a && b == b))
#undef ARG

/* reduce_ordered.inl - extremes of REAL, and their places; see reduce.c. */

REDUCE(maximum, REAL, LEAST, b > a || b != b ? b : a, a)
REDUCE(minimum, REAL, GREATEST, b < a || b != b ? b : a, a)

/* The extreme of numbers that lie side by side is found first, and then where it is: both loops without a choice. */
#define EXTREME_OF(f, WORST, better)                                                                                   \
    static int64_t NAME(f##_of)(const REAL *x, int64_t count)                                                          \
    {                                                                                                                  \
        REAL best[LANES], a;                                                                                           \
        int64_t k = 0;                                                                                                 \
        for (int i = 0; i < LANES; i++)                                                                                \
            best[i] = WORST;                                                                                           \
        for (; k + LANES <= count; k += LANES)                                                                         \
            TWI_VECTOR_LOOP                                                                                            \
            for (int i = 0; i < LANES; i++)                                                                            \
                best[i] = x[k + i] better best[i] ? x[k + i] : best[i];                                                \
        a = WORST;                                                                                                     \
        for (int i = 0; i < LANES; i++)                                                                                \
            a = best[i] better a ? best[i] : a;                                                                        \
        for (; k < count; k++)                                                                                         \
            a = x[k] better a ? x[k] : a;                                                                              \
        for (k = 0; k < count && !(x[k] == a); k++)                                                                    \
            ;                                                                                                          \
        return k < count ? k : 0;                                                                                      \
    }
EXTREME_OF(arg_max, LEAST, >)
EXTREME_OF(arg_min, GREATEST, <)
#undef EXTREME_OF

/* The place of the first extreme along the one reduced axis. NaN is none, unless there is nothing else: then it is the
 * first place. */
#define ARG(f, better)                                                                                                 \
    static void NAME(f##_outputs)(const void *job, int64_t first, int64_t last, int thread)                            \
    {                                                                                                                  \
        REDUCTION_JOB;                                                                                                 \
        for (int64_t o = first; o < last; o++) {                                                                       \
            const REAL *from = x + twi_reduction_start(o, d->num_kept, d->kept_size, d->kept_step);                    \
            int64_t best = 0, step = d->num_reduced ? d->reduced_step[0] : 0;                                          \
            if (step == 1)                                                                                             \
                best = NAME(f##_of)(from, d->inputs);                                                                  \
            for (int64_t k = 1; k < d->inputs && step != 1; k++) {                                                     \
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

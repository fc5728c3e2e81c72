/* reduce_ordered.inl - extremes of REAL, and their places; see reduce.c. */

REDUCE(maximum, REAL, LEAST, b > a || b != b ? b : a, a)
REDUCE(minimum, REAL, GREATEST, b < a || b != b ? b : a, a)

/* The place of the first extreme along the one reduced axis. NaN is none, unless there is nothing else: then it is the
 * first place. */
#define ARG(f, better)                                                                                                 \
    static tw_status NAME(f)(const twi_run *r)                                                                         \
    {                                                                                                                  \
        twi_reduction now;                                                                                                 \
        const twi_reduction *d = twi_reduction_of(r, &now);                                                                    \
        if (!d)                                                                                                        \
            return TW_INVALID_ARGUMENT;                                                                                \
        if (d->inputs == 0 && d->outputs > 0)                                                                          \
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "the axis to search is empty");                             \
        for (int64_t o = 0; o < d->outputs; o++) {                                                                     \
            const REAL *x = (const REAL *)r->inputs[0] + twi_reduction_start(o, d->num_kept, d->kept_size, d->kept_step);         \
            int64_t best = 0, step = d->num_reduced ? d->reduced_step[0] : 0;                                          \
            for (int64_t k = 1; k < d->inputs; k++) {                                                                  \
                REAL b = x[k * step], a = x[best * step];                                                              \
                best = better ? k : best;                                                                              \
            }                                                                                                          \
            if (r->output_operands[0].dtype == TW_INT64)                                                               \
                ((int64_t *)r->outputs[0])[o] = best;                                                                  \
            else                                                                                                       \
                ((int32_t *)r->outputs[0])[o] = (int32_t)best;                                                         \
        }                                                                                                              \
        return TW_OK;                                                                                                  \
    }
ARG(arg_max, b > a || (a != a && b == b))
ARG(arg_min, b < a || (a != a && b == b))
#undef ARG

/* reduce_float.inl - reductions of floats alone; see reduce.c. */

RUNNING(running_logsumexp, LEAST, (REAL)logsumexp((double)a, (double)b))

static tw_status NAME(euclidean_norm)(const twi_run *r)
{
    twi_reduction now;
    const twi_reduction *d = twi_reduction_of(r, &now);
    if (!d)
        return TW_INVALID_ARGUMENT;
    TWI_PARALLEL_LOOP(r)
    for (int64_t o = 0; o < d->outputs; o++) {
        const REAL *x = (const REAL *)r->inputs[0] + twi_reduction_start(o, d->num_kept, d->kept_size, d->kept_step);
        double sum = 0;
        for (int64_t k = 0; k < d->inputs; k++) {
            double b = (double)x[twi_reduction_start(k, d->num_reduced, d->reduced_size, d->reduced_step)];
            sum += b * b;
        }
        ((REAL *)r->outputs[0])[o] = (REAL)sqrt(sum);
    }
    return TW_OK;
}

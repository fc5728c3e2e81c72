/* reduce_float.inl - reductions of floats alone; see reduce.c. */

RUNNING(running_logsumexp, LEAST, (REAL)logsumexp((double)a, (double)b))

static void NAME(euclidean_norm_outputs)(const void *job, int64_t first, int64_t last, int thread)
{
    REDUCTION_JOB;
    for (int64_t o = first; o < last; o++) {
        const REAL *from = x + twi_reduction_start(o, d->num_kept, d->kept_size, d->kept_step);
        double sum = 0;
        for (int64_t k = 0; k < d->inputs; k++) {
            double b = (double)from[twi_reduction_start(k, d->num_reduced, d->reduced_size, d->reduced_step)];
            sum += b * b;
        }
        ((REAL *)j->r->outputs[0])[o] = (REAL)sqrt(sum);
    }
}

static tw_status NAME(euclidean_norm)(const twi_run *r)
{
    return reduce(r, NULL, NAME(euclidean_norm_outputs));
}

/* reduce.inl - sums and products of REAL; see reduce.c. */

REDUCE(sum, SUM, 0, a + b, a)
REDUCE(mean, SUM, 0, a + b, MEAN_OF(a, count))
REDUCE(product, SUM, 1, a *b, a)
RUNNING(running_sum, 0, ADD(a, b))
RUNNING(running_product, 1, MULTIPLY(a, b))

/* clusters.c - what TensorFlow 1's estimator of clusters begins and ends with. */
#include "ops/rules.h"

/* points [N,D] and scalars: samples [num_to_sample,D] */
static tw_status plus_plus_shape(twi_inference *c)
{
    static const char *const names[] = {"", "num_to_sample", "seed", "num_retries_per_sample"};
    int64_t num = 0, points = -1;
    tw_status status = twi_expect_rank(c, 0, 2);
    for (int i = 1; i < 4 && status == TW_OK; i++)
        if (c->inputs[i].rank > 0)
            status = TWI_REFUSE(c, "Input %s should be a scalar.", names[i]);
    if (status != TW_OK)
        return status;
    bool known = twi_number_of(c, 1, &num);
    if (c->inputs[0].rank == 2)
        points = c->inputs[0].dims[0];
    if (known && num <= 0)
        return TWI_REFUSE(c, "Expected num_to_sample > 0, got %lld", (long long)num);
    if (known && points >= 0 && num > points)
        return TWI_REFUSE(c, "Expected num_to_sample <= num_points, got %lld of %lld", (long long)num,
                          (long long)points);
    c->outputs[0] = TW_SHAPE(known ? num : -1, c->inputs[0].rank == 2 ? c->inputs[0].dims[1] : -1);
    return TW_OK;
}

static tw_status chain_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 0, 1);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 0);
    if (status == TW_OK && c->inputs[0].rank == 1 && c->inputs[0].dims[0] == 0)
        status = TWI_REFUSE(c, "Expected distances_tensor.size() > 0.");
    c->outputs[0] = TW_SCALAR;
    return status;
}

/* points [N,D], centers [M,D], k: numbers and distances [N,min(k,M)] */
static tw_status nearest_shape(twi_inference *c)
{
    tw_shape points = c->inputs[0], centers = c->inputs[1];
    int64_t k, width, most = centers.rank == 2 ? centers.dims[0] : -1;
    tw_status status = twi_expect_rank(c, 0, 2);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 2);
    if (status == TW_OK)
        status = twi_expect_rank(c, 2, 0);
    if (status != TW_OK)
        return status;
    if (points.rank == 2 && centers.rank == 2 && !twi_merge_dims(points.dims[1], centers.dims[1], &width))
        return TWI_REFUSE(c, "Expected point_dimensions == center_dimensions: %lld vs %lld.", (long long)points.dims[1],
                          (long long)centers.dims[1]);
    if (points.rank == 2 && points.dims[0] == 0)
        return TWI_REFUSE(c, "Expected points.rows() > 0.");
    bool known = twi_number_of(c, 2, &k) && most >= 0;
    if (known && k < 0)
        return TWI_REFUSE(c, "k should not be negative, got %lld", (long long)k);
    c->outputs[0] = TW_SHAPE(points.rank == 2 ? points.dims[0] : -1, !known ? -1 : k < most ? k : most);
    c->outputs[1] = c->outputs[0];
    return TW_OK;
}

const twi_op twi_clusters_ops[] = {
    {"KmeansPlusPlusInitialization", "points:float, num_to_sample:int64, seed:int64, num_retries_per_sample:int64",
     "samples:float", "", plus_plus_shape, twi_not_differentiable, TWI_HOST_ONLY},
    {"KMC2ChainInitialization", "distances:float, seed:int64", "index:int64", "", chain_shape, twi_not_differentiable,
     TWI_HOST_ONLY},
    {"NearestNeighbors", "points:float, centers:float, k:int64",
     "nearest_center_indices:int64, nearest_center_distances:float", "", nearest_shape, twi_not_differentiable,
     TWI_HOST_ONLY},
    {0},
};

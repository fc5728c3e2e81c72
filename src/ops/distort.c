/* distort.c - one image, distorted anew in every run, as the CIFAR-10 tutorial does it: compositions of other ops. */
#include "ops/build.h"

#include <tower/ops.h>

/* A number in [low, high). */
static tw_output uniform(tw_graph *graph, double low, double high, int64_t seed)
{
    tw_output drawn = tw_random_uniform(graph, twi_constant_ints(graph, NULL, 0), TW_FLOAT32, seed);
    return tw_add(graph, tw_mul(graph, drawn, tw_scalar(graph, (float)(high - low))), tw_scalar(graph, (float)low));
}

tw_output tw_random_crop(tw_graph *graph, tw_output x, tw_shape size, int64_t seed)
{
    tw_output crop = {0};
    TW_NAME_SCOPE(graph, "random_crop")
    {
        tw_output rank = twi_constant_ints(graph, (int64_t[]){size.rank}, 1);
        tw_output wanted = twi_constant_ints(graph, size.dims, size.rank), one = twi_constant_int(graph, 1);
        tw_output places = tw_add(graph, tw_sub(graph, twi_shape_tensor(graph, x), wanted), one);
        tw_output drawn = tw_random_uniform_int(graph, rank, twi_constant_int(graph, 0),
                                                twi_constant_int(graph, INT32_MAX), seed);
        tw_output begin = tw_floor_mod(graph, drawn, places);
        crop = twi_build(graph, "Slice", TWI_INPUTS(x, begin, wanted), TWI_NO_ATTRS);
    }
    return crop;
}

/* Mirrored when the number drawn is below 1/2. */
tw_output tw_random_flip_left_right(tw_graph *graph, tw_output image, int64_t seed)
{
    tw_output flipped = {0};
    TW_NAME_SCOPE(graph, "random_flip_left_right")
    {
        tw_output mirrored = tw_less(graph, uniform(graph, 0, 1, seed), tw_scalar(graph, 0.5f));
        flipped = tw_select(graph, mirrored, tw_reverse(graph, image, (int[]){1}, 1), image);
    }
    return flipped;
}

tw_output tw_random_brightness(tw_graph *graph, tw_output image, float max_delta, int64_t seed)
{
    tw_output brighter = {0};
    TW_NAME_SCOPE(graph, "random_brightness")
        brighter = tw_add(graph, image, uniform(graph, -(double)max_delta, max_delta, seed));
    return brighter;
}

tw_output tw_random_contrast(tw_graph *graph, tw_output image, float lower, float upper, int64_t seed)
{
    tw_output contrasted = {0};
    TW_NAME_SCOPE(graph, "random_contrast")
        contrasted = tw_adjust_contrast(graph, image, uniform(graph, lower, upper, seed));
    return contrasted;
}

/* The deviation is taken for no less than 1/sqrt(values), so that nothing is divided by 0. */
tw_output tw_image_standardization(tw_graph *graph, tw_output image)
{
    tw_output standardized = {0};
    TW_NAME_SCOPE(graph, "per_image_standardization")
    {
        tw_output count = tw_cast(graph, tw_size_of(graph, image), TW_FLOAT32);
        tw_output mean = tw_reduce_mean(graph, image, NULL, 0, true);
        tw_output centred = tw_sub(graph, image, mean);
        tw_output deviation = tw_sqrt(graph, tw_reduce_mean(graph, tw_square(graph, centred), NULL, 0, false));
        standardized = tw_div(graph, centred, tw_maximum(graph, deviation, tw_rsqrt(graph, count)));
    }
    return standardized;
}

/* distort.c - one image, distorted anew in every run, as the CIFAR-10 tutorial does it: compositions of other ops. */
#include "ops/build.h"

#include <tower/ops.h>

/* A constant that has a name, as far as any has that a builder makes. */
static tw_output named_ints(tw_graph *graph, const char *name, const int64_t *values, int count)
{
    int32_t narrow[TW_MAX_RANK] = {0};
    for (int i = 0; i < count && i < TW_MAX_RANK; i++)
        narrow[i] = (int32_t)values[i];
    return twi_constant_of(tw_name(graph, "%s", name), tw_tensor_from(TW_INT32, TW_SHAPE(count), narrow));
}

static tw_output named_scalar(tw_graph *graph, const char *name, float value)
{
    return tw_scalar(tw_name(graph, "%s", name), value);
}

/* A number in [low, high), by the nodes of tf.random.uniform. */
static tw_output uniform(tw_graph *graph, float low, float high, int64_t seed)
{
    tw_output number = {0};
    TW_NAME_SCOPE(graph, "random_uniform")
    {
        const char *scope = tw_name_scope(graph);
        tw_output shape = named_ints(graph, "shape", NULL, 0);
        tw_output least = named_scalar(graph, "min", low), most = named_scalar(graph, "max", high);
        tw_output drawn = tw_random_uniform(graph, shape, TW_FLOAT32, seed);
        if (low == 0) {
            number = tw_mul(graph, drawn, most);
        } else {
            tw_output range = tw_sub(tw_name(graph, "sub"), most, least);
            tw_output scaled = tw_mul(tw_name(graph, "mul"), drawn, range);
            number = tw_add(tw_name(graph, "%s", scope), scaled, least);
        }
    }
    return number;
}

/* Where a crop begins: the numbers drawn, modulo how many places there are. */
static tw_output draw_place(tw_graph *graph, tw_output places, int rank, int64_t seed)
{
    tw_output shape = named_ints(graph, "Shape_1", (int64_t[]){rank}, 1), least, most;
    TW_NAME_SCOPE(graph, "random_uniform")
    {
        const char *scope = tw_name_scope(graph);
        least = tw_scalar_of(tw_name(graph, "min"), TW_INT32, 0);
        most = tw_scalar_of(tw_name(graph, "max"), TW_INT32, INT32_MAX);
        shape = tw_random_uniform_int(tw_name(graph, "%s", scope), shape, least, most, seed);
    }
    return tw_floor_mod(tw_name(graph, "mod"), shape, places);
}

tw_output tw_random_crop(tw_graph *graph, tw_output x, tw_shape size, int64_t seed)
{
    tw_output crop = {0};
    TW_NAME_SCOPE(graph, "random_crop")
    {
        const char *scope = tw_name_scope(graph);
        tw_output wanted = named_ints(graph, "size", size.dims, size.rank), shape = twi_shape_tensor(graph, x);
        tw_output spare = tw_sub(tw_name(graph, "sub"), shape, wanted);
        tw_output one = tw_scalar_of(tw_name(graph, "add/y"), TW_INT32, 1);
        tw_output places = tw_add(tw_name(graph, "add"), spare, one);
        tw_output begin = draw_place(graph, places, size.rank, seed);
        crop = twi_build(tw_name(graph, "%s", scope), "Slice", TWI_INPUTS(x, begin, wanted), TWI_NO_ATTRS);
    }
    return crop;
}

/* Mirrored when the number drawn is below 1/2. */
tw_output tw_random_flip_left_right(tw_graph *graph, tw_output image, int64_t seed)
{
    tw_output flipped = {0};
    TW_NAME_SCOPE(graph, "random_flip_left_right")
    {
        tw_output drawn = uniform(graph, 0, 1, seed);
        tw_output mirrored = tw_less(graph, drawn, named_scalar(graph, "Less/y", 0.5f));
        flipped = tw_select(graph, mirrored, tw_reverse(graph, image, (int[]){1}, 1), image);
    }
    return flipped;
}

tw_output tw_random_brightness(tw_graph *graph, tw_output image, float max_delta, int64_t seed)
{
    tw_output delta = uniform(graph, -max_delta, max_delta, seed);
    return tw_add(tw_name(graph, "adjust_brightness"), image, delta);
}

tw_output tw_random_contrast(tw_graph *graph, tw_output image, float lower, float upper, int64_t seed)
{
    tw_output factor = uniform(graph, lower, upper, seed);
    return tw_adjust_contrast(tw_name(graph, "adjust_contrast"), image, factor);
}

/* The deviation is taken for no less than 1/sqrt(values), so that nothing is divided by 0. */
tw_output tw_image_standardization(tw_graph *graph, tw_output image)
{
    tw_output standardized = {0};
    TW_NAME_SCOPE(graph, "per_image_standardization")
    {
        const char *scope = tw_name_scope(graph);
        tw_output count = tw_cast(graph, tw_size_of(graph, image), TW_FLOAT32);
        tw_output mean = tw_reduce_mean(graph, image, NULL, 0, true);
        tw_output centred = tw_sub(tw_name(graph, "sub"), image, mean);
        tw_output deviation = tw_sqrt(graph, tw_reduce_mean(graph, tw_square(graph, centred), NULL, 0, false));
        tw_output divisor = tw_maximum(graph, deviation, tw_rsqrt(graph, count));
        standardized = tw_div(tw_name(graph, "%s", scope), centred, divisor);
    }
    return standardized;
}

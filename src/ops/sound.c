/* sound.c - sound as files have it, its spectrogram, and what speech recognition makes of that. Rows and shape rules.
 */
#include "ops/rules.h"

/* [samples, channels], which the file says unless attributes do; the rate. */
static tw_status decode_shape(twi_inference *c)
{
    int64_t channels = twi_attr_int(c->attrs, "desired_channels", -1),
            samples = twi_attr_int(c->attrs, "desired_samples", -1);
    if (channels < -1 || channels == 0 || samples < -1)
        return TWI_REFUSE(c, "desired_channels %lld and desired_samples %lld, expected counts or -1",
                          (long long)channels, (long long)samples);
    c->outputs[0] = TW_SHAPE(samples, channels);
    c->outputs[1] = TW_SCALAR;
    return twi_expect_rank(c, 0, 0);
}

/* audio [samples, channels] and the rate: a file. */
static tw_status encode_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 0, 2);
    c->outputs[0] = TW_SCALAR;
    return status == TW_OK ? twi_expect_rank(c, 1, 0) : status;
}

/* input [samples, channels]: [channels, windows, frequencies]. */
static tw_status spectrogram_shape(twi_inference *c)
{
    int64_t window = twi_attr_int(c->attrs, "window_size", 0), stride = twi_attr_int(c->attrs, "stride", 0), length = 1;
    tw_shape in = c->inputs[0];
    tw_status status = twi_expect_rank(c, 0, 2);
    if (window < 2 || window > 1 << 24 || stride < 1)
        return TWI_REFUSE(c, "window_size %lld and stride %lld, expected 2 and 1 at least", (long long)window,
                          (long long)stride);
    while (length < window)
        length *= 2;
    int64_t samples = in.rank == 2 ? in.dims[0] : -1;
    c->outputs[0] = TW_SHAPE(in.rank == 2 ? in.dims[1] : -1,
                             samples < 0        ? -1
                             : samples < window ? 0
                                                : 1 + (samples - window) / stride,
                             1 + length / 2);
    return status;
}

/* spectrogram [channels, windows, frequencies], sample_rate: as many coefficients for each window. */
static tw_status coefficients_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 0, 3);
    int64_t count = twi_attr_int(c->attrs, "dct_coefficient_count", 13),
            bands = twi_attr_int(c->attrs, "filterbank_channel_count", 40);
    if (count < 1 || bands < count)
        return TWI_REFUSE(c, "%lld coefficients of %lld bands, expected 1 at least and no more than bands",
                          (long long)count, (long long)bands);
    c->outputs[0] = TW_SHAPE(-1, -1, count);
    for (int i = 0; i < 2 && c->inputs[0].rank == 3; i++)
        c->outputs[0].dims[i] = c->inputs[0].dims[i];
    return status == TW_OK ? twi_expect_rank(c, 1, 0) : status;
}

const twi_op twi_sound_ops[] = {
    {"DecodeWav", "contents:string", "audio:float, sample_rate:int32",
     "desired_channels:int=-1; desired_samples:int=-1", decode_shape, twi_not_differentiable,
     TWI_HOST_ONLY | TWI_MAKES_SHAPE},
    {"EncodeWav", "audio:float, sample_rate:int32", "contents:string", "", encode_shape, twi_not_differentiable,
     TWI_HOST_ONLY},
    {"AudioSpectrogram", "input:float", "spectrogram:float",
     "window_size:int; stride:int; magnitude_squared:bool=false", spectrogram_shape, NULL, TWI_HOST_ONLY},
    {"Mfcc", "spectrogram:float, sample_rate:int32", "output:float",
     "upper_frequency_limit:float=4000; lower_frequency_limit:float=20; filterbank_channel_count:int=40; "
     "dct_coefficient_count:int=13",
     coefficients_shape, NULL, TWI_HOST_ONLY},
    {0},
};

/* distort.c - see distort.h. */
#include "stream/distort.h"

#include "base/status.h"

enum { DEFAULT_CROP = 24 };

tw_status twi_distorter_init(twi_distorter *d, tw_augmentation augmentation, int height, int width, int channels,
                             int crop, float scale, float offset, tw_error *error)
{
    *d = (twi_distorter){
        .augmentation = augmentation,
        .height = height,
        .width = width,
        .channels = channels,
        .out_height = height,
        .out_width = width,
        .scale = scale == 0 ? 1.0f / 255 : scale,
        .offset = offset,
    };
    if (augmentation < TW_AUGMENT_NONE || augmentation > TW_AUGMENT_REFLECT_CROP_ALTERNATE)
        return twi_fail(error, TW_INVALID_ARGUMENT, "unknown augmentation %d", (int)augmentation);
    if (twi_reflects(d) && (height <= TWI_DISTORT_REFLECTED || width <= TWI_DISTORT_REFLECTED))
        return twi_fail(error, TW_INVALID_ARGUMENT, "cannot reflect %d pixels of images of %dx%d",
                        TWI_DISTORT_REFLECTED, height, width);
    if (twi_standardises(d)) {
        crop = crop == 0 ? DEFAULT_CROP : crop;
        if (crop < 1 || crop > height || crop > width)
            return twi_fail(error, TW_INVALID_ARGUMENT, "cannot crop %dx%d pixels of images of %dx%d", crop, crop,
                            height, width);
        d->out_height = d->out_width = crop;
    }
    return TW_OK;
}

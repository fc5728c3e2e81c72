/* examples.c - see examples.h. */
#include "stream/examples.h"

#include "base/status.h"
#include "tensor/attr.h"

tw_status twi_examples_init(twi_examples *e, const twi_attrs *attrs, tw_shape images, tw_error *error)
{
    enum { MOST = 1 << 30 };
    int64_t crop = twi_attr_int(attrs, "crop", 0), augmentation = twi_attr_int(attrs, "augmentation", 0);
    *e = (twi_examples){
        .seed = (uint64_t)twi_attr_int(attrs, "seed", 0),
        .shuffle = twi_attr_bool(attrs, "shuffle", true),
        .count = images.dims[0],
        .of_step = twi_attr_int(attrs, "examples", 0),
        .first = twi_attr_int(attrs, "first", 0),
        .batch = twi_attr_int(attrs, "batch", 0),
    };
    if (e->batch < 1 || e->first < 0 || e->of_step > MOST || e->first > e->of_step || e->batch > e->of_step - e->first)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "a batch of %lld examples from number %lld on, of a step of %lld examples",
                        (long long)e->batch, (long long)e->first, (long long)e->of_step);
    for (int i = 0; i < 4; i++)
        if (images.dims[i] < 1 || (i && images.dims[i] > (i < 3 ? 1 << 12 : TWI_DISTORT_CHANNELS)))
            return twi_fail(error, TW_INVALID_ARGUMENT, "a data set of %lld images of %lldx%lldx%lld",
                            (long long)images.dims[0], (long long)images.dims[1], (long long)images.dims[2],
                            (long long)images.dims[3]);
    if (crop < 0 || crop > MOST || augmentation < 0 || augmentation > MOST)
        return twi_fail(error, TW_INVALID_ARGUMENT, "augmentation %lld with crops of %lld pixels",
                        (long long)augmentation, (long long)crop);
    return twi_distorter_init(&e->distorter, (tw_augmentation)augmentation, (int)images.dims[1], (int)images.dims[2],
                              (int)images.dims[3], (int)crop, twi_attr_float(attrs, "scale", 0),
                              twi_attr_float(attrs, "offset", 0), error);
}

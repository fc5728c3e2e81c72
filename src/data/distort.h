/* distort.h - from the bytes of one image to the floats a network sees.
 * Lives here:  what is drawn for an image, and the arithmetic.
 * Never here:  where the random numbers come from (stream.h), files, threads. */
#ifndef TWI_DISTORT_H
#define TWI_DISTORT_H

#include <tower/data.h>

/* What was drawn for one image. A crop that starts before the image (top or left below 0) or ends beyond it reads
 * zeros there. */
typedef struct twi_distortion {
    int top, left; /* of the crop, pixels */
    bool flip;     /* left to right, after the crop */
    float brightness, contrast;
} twi_distortion;

/* How images of one kind are treated; made once. */
typedef struct twi_distorter {
    tw_augmentation augmentation;
    int height, width, channels; /* of the images that come in */
    int out_height, out_width;   /* of those that go out; channels stay */
    float scale, offset;
    uint8_t *crop;            /* the rest is scratch memory, owned: [out_height, out_width, channels] */
    uint32_t *sums, *squares; /* [out_width, channels] */
    float *means, *shifts;    /* [out_width, channels] */
} twi_distorter;

/* crop, scale and offset are those of tw_pipeline_options. twi_distorter_free() it, also after a failure. */
tw_status twi_distorter_init(twi_distorter *distorter, tw_augmentation augmentation, int height, int width,
                             int channels, int crop, float scale, float offset, tw_error *error);
void twi_distorter_free(twi_distorter *distorter);

/* What example k of the stream of `seed` gets. */
twi_distortion twi_draw_distortion(const twi_distorter *distorter, uint64_t seed, int64_t k);

/* image [height, width, channels] to out [out_height, out_width, channels]. Not for two threads at once. */
void twi_distort(twi_distorter *distorter, const twi_distortion *distortion, const uint8_t *image, float *out);

#endif

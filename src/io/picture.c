/* picture.c - a picture's file as a tensor. */
#include "base/status.h"
#include "image/image.h"

#include <tower/io.h>

tw_status tw_tensor_read_image(const char *path, int channels, tw_tensor **tensor, tw_error *error)
{
    TWI_NEED(path, "path", error);
    TWI_NEED(tensor, "tensor", error);
    twi_image image = {0};
    if (channels != 0 && channels != 1 && channels != 3 && channels != 4)
        return twi_fail(error, TW_INVALID_ARGUMENT, "a picture has 1, 3 or 4 channels, not %d", channels);
    tw_status status = twi_image_read(path, channels, 0, &image, error);
    if (status != TW_OK)
        return status;
    *tensor = tw_tensor_from(TW_UINT8, TW_SHAPE(image.height, image.width, image.channels), image.pixels);
    twi_image_free(&image);
    return *tensor ? TW_OK : twi_fail_memory(error, "reading a picture");
}

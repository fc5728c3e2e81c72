/* encode.c - pictures as JPEG by libjpeg-turbo (png.c: as PNG); see image.h. */
#include "image/image.h"

#include "base/memory.h"
#include "base/status.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h> /* after stdio.h, whose FILE it takes for granted */

#include <jerror.h>

typedef struct trouble {
    struct jpeg_error_mgr manager; /* libjpeg's own, first */
    jmp_buf back;
    char message[JMSG_LENGTH_MAX];
} trouble;

/* Where libjpeg writes. Of its own destinations none can be freed after an error: what they tell is out of date. */
typedef struct output {
    struct jpeg_destination_mgr manager; /* libjpeg's own, first */
    char *bytes;
    size_t capacity;
} output;

static void give_up(j_common_ptr jpeg)
{
    trouble *t = (trouble *)jpeg->err;
    t->manager.format_message(jpeg, t->message);
    longjmp(t->back, 1);
}

/* Called where all room is taken. */
static boolean make_room(j_compress_ptr jpeg)
{
    enum { LEAST = 4096 };
    output *out = (output *)jpeg->dest;
    size_t used = out->capacity, capacity = used ? 2 * used : LEAST;
    char *larger = twi_resize(out->bytes, capacity);
    if (!larger)
        ERREXIT1(jpeg, JERR_OUT_OF_MEMORY, 0);
    out->bytes = larger;
    out->capacity = capacity;
    out->manager.next_output_byte = (JOCTET *)larger + used;
    out->manager.free_in_buffer = capacity - used;
    return TRUE;
}

static void begin_output(j_compress_ptr jpeg)
{
    make_room(jpeg);
}

static void end_output(j_compress_ptr jpeg)
{
    (void)jpeg;
}

static void set_options(struct jpeg_compress_struct *jpeg, const twi_jpeg_options *o)
{
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, o->quality, TRUE);
    jpeg->optimize_coding = o->optimized;
    if (o->progressive)
        jpeg_simple_progression(jpeg);
    if (o->full_colours)
        for (int i = 0; i < jpeg->num_components; i++)
            jpeg->comp_info[i].h_samp_factor = jpeg->comp_info[i].v_samp_factor = 1;
    jpeg->density_unit = o->by_centimetre ? 2 : 1;
    jpeg->X_density = (UINT16)o->x_density;
    jpeg->Y_density = (UINT16)o->y_density;
}

/* What longjmp leaves behind is found through the pointers that were given. */
static tw_status compress(struct jpeg_compress_struct *jpeg, trouble *t, const twi_image *image,
                          const twi_jpeg_options *o, output *out, tw_error *error)
{
    if (setjmp(t->back))
        return t->manager.msg_code == JERR_OUT_OF_MEMORY ? twi_fail_memory(error, "encoding an image")
                                                         : twi_fail(error, TW_INTERNAL, "libjpeg says: %s", t->message);
    jpeg_create_compress(jpeg);
    jpeg->dest = &out->manager;
    jpeg->image_height = (JDIMENSION)image->height;
    jpeg->image_width = (JDIMENSION)image->width;
    jpeg->input_components = image->channels;
    jpeg->in_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    set_options(jpeg, o);
    jpeg_start_compress(jpeg, TRUE);
    while (jpeg->next_scanline < jpeg->image_height) {
        JSAMPROW row = image->pixels + (size_t)jpeg->next_scanline * (size_t)image->width * (size_t)image->channels;
        jpeg_write_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_compress(jpeg);
    return TW_OK;
}

tw_status twi_image_encode_jpeg(const twi_image *image, const twi_jpeg_options *options, char **bytes, size_t *size,
                                tw_error *error)
{
    struct jpeg_compress_struct jpeg;
    trouble t;
    output out = {{.init_destination = begin_output, .empty_output_buffer = make_room, .term_destination = end_output}};
    *bytes = NULL;
    bool fits = image->height >= 1 && image->width >= 1 && image->height <= 65500 && image->width <= 65500 &&
                image->channels >= 1 && image->channels <= 3;
    tw_status status = TW_OK;
    if (!fits)
        status = twi_fail(error, TW_INVALID_ARGUMENT, "an image of %d x %d with %d channels cannot be a JPEG",
                          image->height, image->width, image->channels);
    if (status == TW_OK && image->channels == 2)
        status = twi_fail(error, TW_INVALID_ARGUMENT, "a JPEG has 1 or 3 channels, not 2");
    if (status != TW_OK)
        return status;
    jpeg.err = jpeg_std_error(&t.manager);
    t.manager.error_exit = give_up;
    status = compress(&jpeg, &t, image, options, &out, error);
    jpeg_destroy_compress(&jpeg);
    if (status != TW_OK) {
        twi_free(out.bytes);
        return status;
    }
    *bytes = out.bytes;
    *size = out.capacity - out.manager.free_in_buffer;
    return TW_OK;
}

/* padded_conv.c - convolutions that pad, and resize, what they read, as TensorFlow 1's optimize_for_inference makes
 * them: they become the nodes that they were made of. */
#include "io/functions/lowering.h"

#include <string.h>

static twi_attr_value copied_as(const twi_lowering *l, const char *name, const char *as)
{
    twi_attr_value value = twi_copied_value(l->node, name);
    value.name = as;
    return value;
}

/* The images in input 0 at the size in input 1, in the convolution's type, which resizing does not keep. */
static tw_status add_resized(twi_lowering *l, const char **images)
{
    twi_functions *f = l->f;
    tw_status status = TW_OK;
    const Twi__AttrValue *type = twi_lower_attr(l->node, "T");
    const char *inputs[] = {l->inputs[0], l->inputs[1]}, *resized = TWI_PRINT("%s/resized", l->name);
    twi_attr_value attrs[] = {twi_copied_value(l->node, "T"), copied_as(l, "resize_align_corners", "align_corners")};
    twi_attr_value types[] = {twi_type_value("SrcT", TW_FLOAT32), copied_as(l, "T", "DstT")};
    TWI_TRY(twi_lower_add(f, "ResizeBilinear", resized, l->device, inputs, 2, attrs, 2));
    *images = resized;
    if (type && type->type != TW_FLOAT32) {
        *images = TWI_PRINT("%s/cast", l->name);
        TWI_TRY(twi_lower_add(f, "Cast", *images, l->device, &resized, 1, types, 2));
    }
done:
    return status;
}

tw_status twi_lower_padded_conv(twi_lowering *l)
{
    twi_functions *f = l->f;
    tw_status status = TW_OK;
    bool resizes = strcmp(l->node->op, "FusedResizeAndPadConv2D") == 0;
    size_t expected = resizes ? 4 : 3, count = l->node->n_input - l->num_data;
    if (l->num_data != expected)
        return twi_fail(f->error, TW_INVALID_ARGUMENT, "node '%s' (%s) has %zu inputs, expected %zu", l->name,
                        l->node->op, l->num_data, expected);
    const char *padded = TWI_PRINT("%s/padded", l->name), *pads[] = {l->inputs[0], l->inputs[expected - 2]};
    const char **conv = twi_arena_alloc(f->arena, sizeof *conv * (2 + count));
    if (!conv)
        return twi_lower_fail_memory(f);
    conv[0] = padded;
    memcpy(conv + 1, l->inputs + expected - 1, sizeof *conv * (1 + count)); /* the filter, and whatever comes before */
    twi_attr_value pad[] = {twi_copied_value(l->node, "T"), twi_copied_value(l->node, "mode")};
    twi_attr_value attrs[] = {twi_copied_value(l->node, "T"), twi_copied_value(l->node, "strides"),
                              twi_copied_value(l->node, "padding")};
    if (resizes)
        TWI_TRY(add_resized(l, &pads[0]));
    TWI_TRY(twi_lower_add(f, "MirrorPad", padded, l->device, pads, 2, pad, 2));
    status = twi_lower_add(f, "Conv2D", l->name, l->device, conv, 2 + count, attrs, 3);
done:
    return status;
}

/* text_joined.c - texts made of many values: StringFormat, ReduceJoin, UnsortedSegmentJoin. */
#include "base/memory.h"
#include "base/text.h"
#include "device/cpu/plain/move.h"
#include "tensor/tensor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends a text that is built: gives it to element i of the output. */
static tw_status give(const twi_run *r, int64_t i, twi_text *text)
{
    bool given = !text->failed && twi_string_set((tw_string *)r->outputs[0] + i, twi_text_string(text), text->size);
    twi_text_free(text);
    return given ? TW_OK : twi_fail_memory(r->error, r->node);
}

/* ---- StringFormat ----------------------------------------------------------------------------------------------- */

typedef struct sentence {
    const char *template, *placeholder; /* the node's */
    int64_t ends;                       /* so many elements are shown at both ends of an axis; -1: all */
} sentence;

static tw_status prepare_format(twi_prepare *p)
{
    sentence s = {twi_attr_string(p->attrs, "template", "%s"), twi_attr_string(p->attrs, "placeholder", "%s"),
                  twi_attr_int(p->attrs, "summarize", 3)};
    int places = 0;
    for (const char *at = s.template; *s.placeholder && (at = strstr(at, s.placeholder)); at += strlen(s.placeholder))
        places++;
    if (places != p->num_inputs)
        return twi_fail(p->error, TW_INVALID_ARGUMENT,
                        "%s '%s': num placeholders in template and num inputs must match: %d vs. %d", p->op, p->node,
                        places, p->num_inputs);
    return twi_keep(p, &s, sizeof s);
}

/* In quotes, with C's escapes; letters beyond ASCII as they are. */
static void put_quoted(twi_text *text, const tw_string *string)
{
    static const char from[] = "\n\r\t\"'\\", to[] = "nrt\"'\\";
    twi_text_append(text, "\"", 1);
    for (size_t i = 0; i < string->size; i++) {
        const char c = string->data[i], *special = c ? strchr(from, c) : NULL;
        if (special)
            twi_text_printf(text, "\\%c", to[special - from]);
        else if ((unsigned char)c >= 32 && c != 127)
            twi_text_append(text, &c, 1);
        else
            twi_text_printf(text, "\\%03o", (unsigned char)c);
    }
    twi_text_append(text, "\"", 1);
}

/* With so few digits that it is read back as it was: of two numbers of digits the smaller that does. */
static void put_real(twi_text *text, double value, bool is_double)
{
    char few[40];
    snprintf(few, sizeof few, "%.*g", is_double ? 15 : 6, value);
    bool same = isnan(value) || (is_double ? strtod(few, NULL) == value : strtof(few, NULL) == (float)value);
    if (same)
        twi_text_printf(text, "%s", few);
    else
        twi_text_printf(text, "%.*g", is_double ? 17 : 9, value);
}

static void put_element(twi_text *text, const tw_tensor *values, int64_t i)
{
    if (values->dtype == TW_STRING)
        put_quoted(text, (const tw_string *)values->data + i);
    else if (values->dtype == TW_INT64)
        twi_text_printf(text, "%lld", (long long)((const int64_t *)values->data)[i]);
    else
        put_real(text, tw_tensor_value(values, i), values->dtype == TW_FLOAT64 || values->dtype == TW_INT32);
}

/* Between elements of an axis: a space along the last one, else new lines, set in as far as the brackets are open. */
static void put_gap(twi_text *text, int axis, int rank)
{
    for (int i = 0; i < rank - axis - 1; i++)
        twi_text_printf(text, "\n");
    twi_text_printf(text, "%*s", axis == rank - 1 ? 1 : axis + 1, "");
}

static void put_axis(twi_text *text, const tw_tensor *values, int axis, int64_t first, int64_t ends)
{
    int rank = values->shape.rank;
    int64_t count = axis < rank ? values->shape.dims[axis] : 0,
            step = twi_elements_between(values->shape, axis + 1, rank);
    if (axis == rank) {
        put_element(text, values, first);
        return;
    }
    twi_text_printf(text, "[");
    for (int64_t i = 0; i < count; i++) {
        bool leaves_out = i >= ends && i < count - ends;
        if (i > 0 || leaves_out)
            put_gap(text, axis, rank);
        if (leaves_out) {
            twi_text_printf(text, "...");
            i = count - ends - 1;
        } else {
            put_axis(text, values, axis + 1, first + i * step, ends);
        }
    }
    twi_text_printf(text, "]");
}

static tw_status run_format(const twi_run *r)
{
    const sentence *s = r->state;
    twi_text text = {0};
    const char *at = s->template;
    for (int i = 0; i < r->num_inputs; i++) {
        const twi_operand *in = &r->input_operands[i];
        tw_tensor view = {
            .dtype = in->dtype, .shape = in->shape, .elements = in->elements, .data = (void *)r->inputs[i]};
        const char *place = strstr(at, s->placeholder);
        twi_text_append(&text, at, (size_t)(place - at));
        put_axis(&text, &view, 0, 0, s->ends < 0 || s->ends > in->elements ? in->elements : s->ends);
        at = place + strlen(s->placeholder);
    }
    twi_text_append(&text, at, strlen(at));
    return give(r, 0, &text);
}

/* ---- ReduceJoin ------------------------------------------------------------------------------------------------- */

/* The axes that are joined, of which the first changes fastest, and those that stay. */
typedef struct joining {
    int count, kept, axes[TW_MAX_RANK], rest[TW_MAX_RANK];
} joining;

static joining find_axes(const twi_run *r, int rank)
{
    joining j = {.count = (int)r->input_operands[1].elements};
    bool joined[TW_MAX_RANK] = {false};
    for (int i = 0; i < j.count; i++)
        j.axes[i] = (int)(twi_input_int(r, 1, i) + (twi_input_int(r, 1, i) < 0 ? rank : 0));
    for (int i = 0; i < j.count; i++)
        joined[j.axes[i]] = true;
    for (int k = 0; k < rank; k++)
        if (!joined[k])
            j.rest[j.kept++] = k;
    return j;
}

static tw_status run_join(const twi_run *r)
{
    const tw_string *from = r->inputs[0], *gap = r->state;
    tw_shape shape = r->input_operands[0].shape;
    joining j = find_axes(r, shape.rank);
    int64_t strides[TW_MAX_RANK], each = 1;
    tw_status status = TW_OK;
    twi_row_major(shape, strides);
    for (int i = 0; i < j.count; i++)
        each *= shape.dims[j.axes[i]];
    for (int64_t k = 0; k < r->output_operands[0].elements && status == TW_OK; k++) {
        twi_text text = {0};
        int64_t first = 0, rest = k;
        for (int i = j.kept - 1; i >= 0; rest /= shape.dims[j.rest[i--]])
            first += rest % shape.dims[j.rest[i]] * strides[j.rest[i]];
        for (int64_t e = 0; e < each; e++) {
            int64_t at = first, left = e;
            for (int i = 0; i < j.count; left /= shape.dims[j.axes[i++]])
                at += left % shape.dims[j.axes[i]] * strides[j.axes[i]];
            if (e > 0)
                twi_text_append(&text, gap->data, gap->size);
            twi_text_append(&text, from[at].data ? from[at].data : "", from[at].size);
        }
        status = give(r, k, &text);
    }
    return status;
}

/* state: the separator. */
static tw_status prepare_join(twi_prepare *p)
{
    const twi_attr *separator = twi_attr_find(p->attrs, "separator");
    p->state = (void *)&separator->s;
    return TW_OK;
}

/* ---- UnsortedSegmentJoin ---------------------------------------------------------------------------------------- */

/* A gap comes only behind what is not empty, as in TensorFlow. */
static tw_status join_segments(const twi_run *r, twi_text *segments, int64_t columns)
{
    const tw_string *from = r->inputs[0], *gap = r->state;
    tw_status status = TW_OK;
    for (int64_t i = 0; i < r->input_operands[0].elements; i++) {
        int64_t id = twi_input_int(r, 1, i / columns);
        if (id < 0 || id >= r->output_operands[0].shape.dims[0])
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': segment_ids[%lld] = %lld is out of range [0, %lld)",
                            r->node, (long long)(i / columns), (long long)id,
                            (long long)r->output_operands[0].shape.dims[0]);
        twi_text *to = &segments[id * columns + i % columns];
        if (to->size)
            twi_text_append(to, gap->data, gap->size);
        twi_text_append(to, from[i].data ? from[i].data : "", from[i].size);
    }
    for (int64_t i = 0; i < r->output_operands[0].elements && status == TW_OK; i++)
        status = give(r, i, &segments[i]);
    return status;
}

static tw_status run_join_segments(const twi_run *r)
{
    tw_shape out = r->output_operands[0].shape;
    int64_t elements = r->output_operands[0].elements;
    twi_text *segments = twi_alloc_array((size_t)(elements ? elements : 1), sizeof *segments);
    if (!segments)
        return twi_fail_memory(r->error, r->node);
    tw_status status = join_segments(r, segments, twi_elements_between(out, 1, out.rank));
    for (int64_t i = 0; i < elements; i++)
        twi_text_free(&segments[i]);
    twi_free(segments);
    return status;
}

const twi_kernel twi_cpu_text_joined_kernels[] = {
    {"StringFormat", "plain", 0, prepare_format, run_format, twi_free},
    {"ReduceJoin", "plain", 0, prepare_join, run_join},
    {"UnsortedSegmentJoin", "plain", 0, prepare_join, run_join_segments},
    {0},
};

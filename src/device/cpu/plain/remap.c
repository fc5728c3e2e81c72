/* remap.c - kernels that begin a training from another one's checkpoint, whose vocabularies differ: which old line a
 * new one was, and a matrix whose rows and columns follow. */
#include "base/file.h"
#include "base/map.h"
#include "base/memory.h"
#include "device/cpu/plain/move.h"
#include "format/bundle.h"
#include "tensor/tensor.h"

#include <string.h>

static const char *text_of(const twi_run *r, int input)
{
    const char *text = ((const tw_string *)r->inputs[input])->data;
    return text ? text : "";
}

/* ---- GenerateVocabRemapping -------------------------------------------------------------------------------------- */

#define LARGEST_FILE ((size_t)1 << 32)

typedef struct vocabularies {
    int64_t offset, wanted; /* lines of the new one */
    int64_t old;            /* so many lines of the old one count; -1: all */
} vocabularies;

static tw_status prepare_lines(twi_prepare *p)
{
    vocabularies *v = p->state = twi_alloc(sizeof *v);
    if (!v)
        return twi_fail_memory(p->error, p->node);
    v->offset = twi_attr_int(p->attrs, "new_vocab_offset", 0);
    v->wanted = twi_attr_int(p->attrs, "num_new_vocab", 0);
    v->old = twi_attr_int(p->attrs, "old_vocab_size", -1);
    return TW_OK;
}

/* Ends the line at *at with a 0, and goes behind it; NULL: there is none. */
static char *take_line(char **at, char *end)
{
    char *line = *at, *stop = memchr(line, '\n', (size_t)(end - line));
    if (line == end)
        return NULL;
    stop = stop ? stop : end;
    *at = stop < end ? stop + 1 : end;
    *stop = 0; /* a file that was read has a 0 behind its end */
    if (stop > line && stop[-1] == '\r')
        stop[-1] = 0;
    return line;
}

/* From each old line to its number, counted from 1, as an address. */
static tw_status number_lines(const twi_run *r, char *at, char *end, twi_map *numbers)
{
    const vocabularies *v = r->state;
    uint64_t most = v->old < 0 ? UINT64_MAX : (uint64_t)v->old;
    tw_status status = TW_OK;
    char *line = NULL;
    for (uintptr_t n = 1; status == TW_OK && n <= most && (line = take_line(&at, end)); n++) {
        if (twi_map_get(numbers, line))
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': the old vocabulary has '%s' twice", r->node, line);
        if (!twi_map_put(numbers, line, (void *)n))
            status = twi_fail_memory(r->error, r->node);
    }
    return status;
}

static tw_status look_up_lines(const twi_run *r, char *at, char *end, const twi_map *numbers)
{
    const vocabularies *v = r->state;
    int32_t present = 0;
    for (int64_t n = 0; n < v->offset + v->wanted; n++) {
        char *line = take_line(&at, end);
        if (!line)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': the new vocabulary has %lld lines, expected %lld behind the first %lld", r->node,
                            (long long)n, (long long)v->wanted, (long long)v->offset);
        if (n < v->offset)
            continue;
        int64_t old = (int64_t)(uintptr_t)twi_map_get(numbers, line) - 1;
        ((int64_t *)r->outputs[0])[n - v->offset] = old;
        present += old >= 0;
    }
    *(int32_t *)r->outputs[1] = present;
    return TW_OK;
}

static tw_status run_lines(const twi_run *r)
{
    char *now = NULL, *old = NULL;
    size_t size_now = 0, size_old = 0;
    twi_map numbers = {0};
    tw_status status = twi_file_read(text_of(r, 0), LARGEST_FILE, &now, &size_now, r->error);
    if (status == TW_OK)
        status = twi_file_read(text_of(r, 1), LARGEST_FILE, &old, &size_old, r->error);
    if (status == TW_OK)
        status = number_lines(r, old, old + size_old, &numbers);
    if (status == TW_OK)
        status = look_up_lines(r, now, now + size_now, &numbers);
    twi_map_free(&numbers);
    twi_free(now);
    twi_free(old);
    return status;
}

/* ---- LoadAndRemapMatrix ------------------------------------------------------------------------------------------ */

enum { PATH, NAME, ROWS, COLUMNS, INITIAL }; /* inputs */

/* New place i had the old place places[i], or, below 0, none; each old one is wanted once. */
static tw_status check_places(const twi_run *r, int input, int64_t most)
{
    const int64_t *places = r->inputs[input];
    bool *wanted = twi_alloc((size_t)most + 1);
    tw_status status = wanted ? TW_OK : twi_fail_memory(r->error, r->node);
    for (int64_t i = 0; i < r->input_operands[input].elements && status == TW_OK; i++) {
        if (places[i] >= most || (places[i] >= 0 && wanted[places[i]]))
            status = twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %s %lld %s", r->node,
                              input == ROWS ? "row" : "column", (long long)places[i],
                              places[i] >= most ? "is not in the old matrix" : "is wanted twice");
        else if (places[i] >= 0)
            wanted[places[i]] = true;
    }
    twi_free(wanted);
    return status;
}

/* What has no old place takes the next initial value, row by row. */
static tw_status move_cells(const twi_run *r, const float *old, int64_t width)
{
    const int64_t *rows = r->inputs[ROWS], *columns = r->inputs[COLUMNS];
    int64_t initial = r->input_operands[INITIAL].elements, used = 0, at = 0;
    bool renumbered = r->input_operands[COLUMNS].elements > 0;
    const twi_operand *out = &r->output_operands[0];
    for (int64_t i = 0; i < out->shape.dims[0]; i++)
        for (int64_t k = 0; k < out->shape.dims[1]; k++) {
            int64_t column = renumbered ? columns[k] : k;
            bool known = rows[i] >= 0 && column >= 0;
            if (!known && used == initial)
                return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %lld initial values are too few", r->node,
                                (long long)initial);
            ((float *)r->outputs[0])[at++] =
                known ? old[rows[i] * width + column] : ((const float *)r->inputs[INITIAL])[used++];
        }
    return used == initial ? TW_OK
                           : twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': of %lld initial values %lld were used",
                                      r->node, (long long)initial, (long long)used);
}

static tw_status remap(const twi_run *r, const tw_tensor *old)
{
    tw_shape shape = tw_tensor_shape(old);
    char text[128];
    bool renumbered = r->input_operands[COLUMNS].elements > 0;
    if (tw_tensor_dtype(old) != TW_FLOAT32 || shape.rank != 2 ||
        (!renumbered && shape.dims[1] != r->output_operands[0].shape.dims[1]))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': '%s' is %s of shape %s, expected a matrix of floats%s",
                        r->node, text_of(r, NAME), tw_dtype_name(tw_tensor_dtype(old)),
                        tw_shape_text(shape, text, sizeof text), renumbered ? "" : " with num_cols columns");
    tw_status status = check_places(r, ROWS, shape.dims[0]);
    if (status == TW_OK)
        status = check_places(r, COLUMNS, shape.dims[1]);
    return status == TW_OK ? move_cells(r, tw_tensor_data((tw_tensor *)old), shape.dims[1]) : status;
}

static tw_status run_matrix(const twi_run *r)
{
    tw_checkpoint *checkpoint = NULL;
    tw_tensor *old = NULL;
    tw_status status = twi_bundle_open(text_of(r, PATH), &checkpoint, r->error);
    if (status == TW_OK)
        status = tw_checkpoint_read(checkpoint, text_of(r, NAME), &old, r->error);
    if (status == TW_OK)
        status = remap(r, old);
    tw_tensor_release(old);
    tw_checkpoint_close(checkpoint);
    return status;
}

const twi_kernel twi_cpu_remap_kernels[] = {
    {"GenerateVocabRemapping", "plain", 0, prepare_lines, run_lines, twi_free},
    {"LoadAndRemapMatrix", "plain", 0, NULL, run_matrix},
    {0},
};

/* saver.c - kernels of TensorFlow 1's Saver: checkpoints by name, and the names. */
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/cpu/library/regex.h"
#include "device/cpu/plain/move.h"
#include "format/bundle.h"
#include "format/saved_slices.h"
#include "tensor/tensor.h"

#include <string.h>

enum { PREFIX, NAMES, SLICES, TENSORS }; /* inputs; of Save the tensors come where the slices would */

static const char *string_at(const void *strings, int64_t i)
{
    const char *text = ((const tw_string *)strings)[i].data;
    return text ? text : "";
}

/* ---- saving and restoring --------------------------------------------------------------------------------------- */

/* Each tensor has a name, and a place where its slice is said, if slices are. */
static tw_status check_counts(twi_prepare *p, int tensors)
{
    int64_t slices = p->num_inputs > SLICES ? p->inputs[SLICES].elements : tensors;
    if (p->inputs[PREFIX].elements == 1 && p->inputs[NAMES].elements == tensors && slices == tensors)
        return TW_OK;
    return twi_fail(p->error, TW_INVALID_ARGUMENT,
                    "%s '%s': got %lld prefixes, %lld names and %lld slices for %d tensors", p->op, p->node,
                    (long long)p->inputs[PREFIX].elements, (long long)p->inputs[NAMES].elements, (long long)slices,
                    tensors);
}

static tw_status prepare_save(twi_prepare *p)
{
    return check_counts(p, p->num_inputs - TENSORS);
}

static tw_status prepare_save_whole(twi_prepare *p)
{
    int tensors = p->num_inputs - SLICES;
    if (p->inputs[PREFIX].elements == 1 && p->inputs[NAMES].elements == tensors)
        return TW_OK;
    return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': got %lld file names and %lld names for %d tensors", p->op,
                    p->node, (long long)p->inputs[PREFIX].elements, (long long)p->inputs[NAMES].elements, tensors);
}

static tw_status prepare_restore(twi_prepare *p)
{
    return check_counts(p, p->num_outputs);
}

typedef tw_status write_tensors(const char *name, const tw_named_tensor *tensors, int count, tw_error *error);

/* Tensors are the inputs from `first` on. */
static tw_status save(const twi_run *r, int first, write_tensors *write)
{
    int count = r->num_inputs - first;
    tw_status status = TW_OK;
    tw_named_tensor *tensors = twi_alloc_array((size_t)count + 1, sizeof *tensors);
    if (!tensors)
        return twi_fail_memory(r->error, "saving a checkpoint");
    for (int i = 0; i < count && status == TW_OK; i++) {
        const twi_operand *operand = &r->input_operands[first + i];
        tensors[i].name = string_at(r->inputs[NAMES], i);
        tensors[i].part = first > SLICES ? string_at(r->inputs[SLICES], i) : "";
        tensors[i].tensor = tw_tensor_wrap(operand->dtype, operand->shape, (void *)(uintptr_t)r->inputs[first + i],
                                           NULL, NULL);
        status = tensors[i].tensor ? TW_OK : twi_fail_memory(r->error, "saving a checkpoint");
    }
    if (status == TW_OK)
        status = write(string_at(r->inputs[PREFIX], 0), tensors, count, r->error);
    for (int i = 0; i < count; i++)
        tw_tensor_release((tw_tensor *)tensors[i].tensor);
    twi_free(tensors);
    return status;
}

static tw_status run_save(const twi_run *r)
{
    return save(r, TENSORS, twi_bundle_save);
}

static tw_status run_save_slices(const twi_run *r)
{
    return save(r, TENSORS, twi_saved_slices_write);
}

static tw_status run_save_whole(const twi_run *r)
{
    return save(r, SLICES, twi_saved_slices_write);
}

/* The words are TensorFlow's, for programs that look for them. */
static tw_status check_entry(const twi_run *r, const tw_checkpoint *checkpoint, int output)
{
    const twi_operand *want = &r->output_operands[output];
    const char *name = string_at(r->inputs[NAMES], output);
    int i = tw_checkpoint_find(checkpoint, name);
    if (i < 0)
        return twi_fail(r->error, TW_NOT_FOUND, "Key %s not found in checkpoint '%s'", name,
                        tw_checkpoint_path(checkpoint));
    if (tw_checkpoint_dtype(checkpoint, i) != want->dtype)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "tensor_name = %s; expected dtype %s does not equal original dtype %s", name,
                        tw_dtype_name(want->dtype), tw_dtype_name(tw_checkpoint_dtype(checkpoint, i)));
    return TW_OK;
}

static tw_status check_shape(const twi_run *r, int output, const tw_tensor *tensor)
{
    const twi_operand *want = &r->output_operands[output];
    char theirs[128], ours[128];
    if (want->elements < 0 || tw_shape_equal(tw_tensor_shape(tensor), want->shape))
        return TW_OK;
    return twi_fail(r->error, TW_INVALID_ARGUMENT,
                    "%s: Assign requires shapes of both tensors to match. lhs shape= %s rhs shape= %s",
                    string_at(r->inputs[NAMES], output), tw_shape_text(want->shape, ours, sizeof ours),
                    tw_shape_text(tw_tensor_shape(tensor), theirs, sizeof theirs));
}

static tw_status run_restore(const twi_run *r)
{
    const char *prefix = string_at(r->inputs[PREFIX], 0);
    tw_checkpoint *checkpoint;
    tw_error reason = {0};
    tw_status status = twi_bundle_open(prefix, &checkpoint, &reason);
    if (status != TW_OK)
        return twi_fail(r->error, status, "Unsuccessful TensorSliceReader constructor: %s%s: %s",
                        status == TW_NOT_FOUND ? "Failed to find any matching files for " : "", prefix, reason.message);
    for (int i = 0; i < r->num_outputs && status == TW_OK; i++) {
        const twi_operand *want = &r->output_operands[i];
        tw_tensor *tensor = NULL;
        void *to = r->outputs[i];
        status = check_entry(r, checkpoint, i);
        if (status == TW_OK)
            status = tw_checkpoint_read_part(checkpoint, string_at(r->inputs[NAMES], i),
                                             r->num_inputs > SLICES ? string_at(r->inputs[SLICES], i) : "", &tensor,
                                             r->error);
        if (status == TW_OK)
            status = check_shape(r, i, tensor);
        if (status == TW_OK && want->elements < 0) /* for no variable, so it has the shape that it has in the file */
            status = twi_make_output(r, i, tw_tensor_shape(tensor), &to);
        if (status == TW_OK && !twi_copy_elements(tw_tensor_elements(tensor), want->dtype, tw_tensor_data(tensor), to))
            status = twi_fail_memory(r->error, "restoring a checkpoint");
        tw_tensor_release(tensor);
    }
    tw_checkpoint_close(checkpoint);
    return status;
}

static tw_status run_merge(const twi_run *r)
{
    int count = (int)r->input_operands[0].elements;
    const char **prefixes = twi_alloc_array((size_t)count + 1, sizeof *prefixes);
    if (!prefixes)
        return twi_fail_memory(r->error, "merging checkpoints");
    for (int i = 0; i < count; i++)
        prefixes[i] = string_at(r->inputs[0], i);
    tw_status status = twi_bundle_merge(prefixes, count, string_at(r->inputs[1], 0), r->state != NULL, r->error);
    twi_free(prefixes);
    return status;
}

/* state: not NULL if the old ones are to go. */
static tw_status prepare_merge(twi_prepare *p)
{
    static char delete;
    if (p->inputs[1].elements != 1)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': got %lld destinations, expected 1", p->op, p->node,
                        (long long)p->inputs[1].elements);
    p->state = twi_attr_bool(p->attrs, "delete_old_dirs", true) ? &delete : NULL;
    return TW_OK;
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

static tw_status give_text(const twi_run *r, twi_text *text, tw_string *to)
{
    bool good = !text->failed && twi_string_set(to, twi_text_string(text), text->size);
    twi_text_free(text);
    return good ? TW_OK : twi_fail_memory(r->error, "joining texts");
}

static tw_status run_sharded_name(const twi_run *r)
{
    twi_text text = {0};
    twi_text_printf(&text, "%s-%05d-of-%05d", string_at(r->inputs[0], 0), *(const int32_t *)r->inputs[1],
                    *(const int32_t *)r->inputs[2]);
    return give_text(r, &text, r->outputs[0]);
}

/* What all of them are called. */
static tw_status run_sharded_names(const twi_run *r)
{
    twi_text text = {0};
    twi_text_printf(&text, "%s-\?\?\?\?\?-of-%05d", string_at(r->inputs[0], 0), *(const int32_t *)r->inputs[1]);
    return give_text(r, &text, r->outputs[0]);
}

/* state: the separator, the attribute's. */
static tw_status prepare_join(twi_prepare *p)
{
    const twi_attr *separator = twi_attr_find(p->attrs, "separator");
    p->state = separator ? (void *)(uintptr_t)&separator->s : NULL;
    return TW_OK;
}

static tw_status run_join(const twi_run *r)
{
    const tw_string *between = r->state;
    tw_status status = TW_OK;
    for (int64_t k = 0; k < r->output_operands[0].elements && status == TW_OK; k++) {
        twi_text text = {0};
        for (int i = 0; i < r->num_inputs; i++) {
            const tw_string *part = (const tw_string *)r->inputs[i] + (r->input_operands[i].shape.rank ? k : 0);
            if (i && between)
                twi_text_append(&text, between->data, between->size);
            twi_text_append(&text, part->data, part->size);
        }
        status = give_text(r, &text, (tw_string *)r->outputs[0] + k);
    }
    return status;
}

static void release_pattern(void *state)
{
    twi_regex_free(state);
}

/* state: the pattern, compiled */
static tw_status prepare_match(twi_prepare *p)
{
    const twi_attr *pattern = twi_attr_find(p->attrs, "pattern");
    twi_regex *regex;
    tw_status status = twi_regex_compile(&pattern->s, &regex, p->error);
    if (status != TW_OK)
        return twi_prefix(p->error, "%s '%s'", p->op, p->node), status;
    p->state = regex;
    return TW_OK;
}

static tw_status run_match(const twi_run *r)
{
    tw_status status = TW_OK;
    for (int64_t i = 0; i < r->output_operands[0].elements && status == TW_OK; i++)
        status = twi_regex_match(r->state, (const tw_string *)r->inputs[0] + i, (bool *)r->outputs[0] + i, r->error);
    return status;
}

const twi_kernel twi_cpu_saver_kernels[] = {
    {"SaveV2", "plain", 0, prepare_save, run_save},
    {"SaveSlices", "plain", 0, prepare_save, run_save_slices},
    {"Save", "plain", 0, prepare_save_whole, run_save_whole},
    {"RestoreV2", "plain", 0, prepare_restore, run_restore},
    {"_RestoreV2", "plain", 0, prepare_restore, run_restore},
    {"_Restore", "plain", 0, prepare_restore, run_restore},
    {"MergeV2Checkpoints", "plain", 0, prepare_merge, run_merge},
    {"ShardedFilename", "plain", 0, NULL, run_sharded_name},
    {"ShardedFilespec", "plain", 0, NULL, run_sharded_names},
    {"StringJoin", "plain", 0, prepare_join, run_join},
    {"StaticRegexFullMatch", "plain", 0, prepare_match, run_match, release_pattern},
    {0},
};

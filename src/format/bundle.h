/* bundle.h - the two files of a checkpoint (TensorFlow's "V2 tensor bundle"), one checkpoint at a time.
 *
 *     index   a sorted string table: "" -> BundleHeaderProto, tensor name -> BundleEntryProto
 *     data    the tensors in order of their names, raw and without padding
 *
 * Strings lie as their lengths (varints), 4 bytes masked CRC-32C of these lengths, then all bytes. That checksum, and
 * the first part of the entry's, run over the lengths as uint32 (uint64 where they need it), not over the varints.
 *
 * Lives here:  the layout; reading is public (tw_checkpoint_open and on, in tower/io.h).
 * Never here:  which files of a directory are a checkpoint, and when (io/checkpoint.c). */
#ifndef TWI_BUNDLE_H
#define TWI_BUNDLE_H

#include "base/text.h"

#include <tower/io.h>

/* Writes and syncs both files, which are not there yet. On failure neither is left behind. */
tw_status twi_bundle_write(const char *data_path, const char *index_path, const tw_named_tensor *tensors, int count,
                           tw_error *error);

/* Makes PREFIX the checkpoint of these tensors, in directories that are made if need be. Whoever reads it sees a
 * complete one, or while an older one of this prefix is replaced none. */
tw_status twi_bundle_save(const char *prefix, const tw_named_tensor *tensors, int count, tw_error *error);
/* Makes one checkpoint of several; then, if asked, removes these, and their directories if they are empty. */
tw_status twi_bundle_merge(const char *const *prefixes, int count, const char *destination, bool remove,
                           tw_error *error);

/* Opens exactly PREFIX.index, never a directory's latest; where there is none, what saved_slices.h reads. */
tw_status twi_bundle_open(const char *prefix, tw_checkpoint **checkpoint, tw_error *error);
tw_status twi_bundle_verify(tw_checkpoint *checkpoint, tw_error *error); /* reads all data */

/* In how many parts tensor i lies (0: as a whole), and which part number k is, appended as tw_named_tensor says it. */
int twi_bundle_num_parts(const tw_checkpoint *checkpoint, int i);
void twi_bundle_part(const tw_checkpoint *checkpoint, int i, int k, twi_text *part);

/* "model.ckpt-1000" -> 1000; -1 for names that do not end in "-DIGITS" (or "-DIGITS.replaced"). */
int64_t twi_checkpoint_step_of(const char *name);

#endif

/* reduction.c - see reduction.h. */
#include "reduction.h"

#include "command.h" /* complain */

bool reduction_read(const char *command, const reduction *given, tw_average_options *options)
{
    static const tw_dtype wires[] = {TW_INVALID_DTYPE, TW_FLOAT16, TW_BFLOAT16}; /* ORDER WIRE */
    tw_error error = {0};
    *options = (tw_average_options){
        .all_reduce = given->spec,
        .packs = (int)given->packs,
        .small_bytes = given->small_bytes,
        .small_group = (int)given->small_group,
        .bucket_bytes = given->bucket_bytes == NOT_GIVEN ? 0 : given->bucket_bytes ? given->bucket_bytes : -1,
        .wire = wires[given->wire],
        .sparse_as_dense = given->sparse_as_dense,
    };
    if (given->spec && tw_all_reduce_check(given->spec, &error) != TW_OK)
        return complain(command, "%s", error.message);
    if (given->bucket_bytes > 0 && (given->packs || given->small_bytes))
        return complain(command,
                        "--gradient-bucket-bytes, --gradient-repacking and --agg-small-grads-max-bytes join gradients "
                        "each in its way; give one of them");
    if (given->packs && given->small_bytes)
        return complain(command,
                        "--gradient-repacking joins all gradients and --agg-small-grads-max-bytes the small ones; "
                        "give one of them");
    return true;
}

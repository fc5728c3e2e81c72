/* text.c - ops on strings: their lengths, parts and numbers, hashes, replacements. Joining them is in saver.c. */
#include "base/inflate.h"
#include "ops/rules.h"
#include "ops/types.h"

/* pos and len have one shape; a scalar is for all. */
static tw_status substr_shape(twi_inference *c)
{
    tw_shape both;
    tw_status status = twi_merge_shapes(c->inputs[1], c->inputs[2], &both, c->error);
    if (status == TW_OK)
        status = twi_broadcast_shapes(c->inputs[0], both, &c->outputs[0], c->error);
    return status;
}

/* A pattern and what it is replaced by are scalars. */
static tw_status regex_shape(twi_inference *c)
{
    tw_status status = TW_OK;
    for (int i = 1; i < c->num_inputs && status == TW_OK; i++)
        status = twi_expect_rank(c, i, 0);
    c->outputs[0] = c->inputs[0];
    return status;
}

static tw_status bucket_shape(twi_inference *c)
{
    c->outputs[0] = c->inputs[0];
    if (twi_attr_int(c->attrs, "num_buckets", 0) < 1)
        return TWI_REFUSE(c, "num_buckets is %lld, expected 1 at least",
                          (long long)twi_attr_int(c->attrs, "num_buckets", 0));
    return TW_OK;
}

/* input, reduction_indices: axes that are joined, of which the first changes fastest. */
static tw_status join_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], out = {.rank = 0};
    const tw_tensor *axes = twi_ask_value(c, 1);
    bool keep = twi_attr_bool(c->attrs, "keep_dims", false), joined[TW_MAX_RANK] = {false};
    if (in.rank < 0 || !axes)
        return TW_OK;
    for (int64_t i = 0; i < axes->elements; i++) {
        int64_t axis = twi_tensor_int(axes, i) + (twi_tensor_int(axes, i) < 0 ? in.rank : 0);
        if (axis < 0 || axis >= in.rank)
            return TWI_REFUSE(c, "Invalid reduction dimension %lld for input with %d dimension(s)",
                              (long long)twi_tensor_int(axes, i), in.rank);
        if (joined[axis])
            return TWI_REFUSE(c, "Duplicate reduction dimension %lld", (long long)axis);
        joined[axis] = true;
    }
    for (int i = 0; i < in.rank; i++)
        if (!joined[i])
            out.dims[out.rank++] = in.dims[i];
        else if (keep)
            out.dims[out.rank++] = 1;
    c->outputs[0] = out;
    return TW_OK;
}

static tw_status case_shape(twi_inference *c)
{
    const char *encoding = twi_attr_string(c->attrs, "encoding", "");
    if (*encoding && strcmp(encoding, "utf-8") != 0)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "encoding is \"%.40s\", expected \"utf-8\" or \"\"", encoding);
    return twi_shape_same(c);
}

static tw_status compressed_shape(twi_inference *c)
{
    const char *kind = twi_attr_string(c->attrs, "compression_type", "");
    if (!twi_packing(kind))
        return twi_fail(c->error, strcmp(kind, "ZSTD") == 0 ? TW_UNIMPLEMENTED : TW_INVALID_ARGUMENT,
                        "compression_type is \"%.40s\", expected \"ZLIB\", \"GZIP\" or \"\"", kind);
    return twi_shape_same(c);
}

#define TEXT(name, inputs, outputs, attrs, shape)                                                                      \
    {                                                                                                                  \
        name, inputs, outputs, attrs, shape, twi_not_differentiable, TWI_HOST_ONLY                                     \
    }
/* data [rows,...], method: the 8 bytes of a hash for each row */
static tw_status fingerprint_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank_at_least(c, 0, 1);
    c->outputs[0] = TW_SHAPE(c->inputs[0].rank > 0 ? c->inputs[0].dims[0] : -1, 8);
    return status == TW_OK ? twi_expect_rank(c, 1, 0) : status;
}

#define UNIT "unit:{BYTE,UTF8_CHAR}=BYTE"

const twi_op twi_text_ops[] = {
    TEXT("StringLength", "input:string", "output:int32", UNIT, twi_shape_same),
    TEXT("Substr", "input:string, pos:T, len:T", "output:string", "T:{int32,int64}; " UNIT, substr_shape),
    TEXT("StringToNumber", "string_tensor:string", "output:out_type", "out_type:{float,double,int32,int64}=float",
         twi_shape_same),
    TEXT("AsString", "input:T", "output:string",
         "T:{" TWI_NUMBERS ",bool,string}; precision:int=-1; scientific:bool=false; "
         "shortest:bool=false; width:int=-1; fill:string=",
         twi_shape_same),
    TEXT("StringFormat", "inputs:T", "output:string",
         "T:types; template:string=%s; placeholder:string=%s; summarize:int=3", twi_shape_scalar),
    TEXT("ReduceJoin", "inputs:string, reduction_indices:int32", "output:string",
         "keep_dims:bool=false; separator:string=", join_shape),
    TEXT("StringUpper", "input:string", "output:string", "encoding:string=", case_shape),
    TEXT("StringLower", "input:string", "output:string", "encoding:string=", case_shape),
    TEXT("DecodeCompressed", "bytes:string", "output:string", "compression_type:string=", compressed_shape),
    TEXT("StringStrip", "input:string", "output:string", "", twi_shape_same),
    TEXT("EncodeBase64", "input:string", "output:string", "pad:bool=false", twi_shape_same),
    TEXT("DecodeBase64", "input:string", "output:string", "", twi_shape_same),
    TEXT("RegexFullMatch", "input:string, pattern:string", "output:bool", "", regex_shape),
    TEXT("RegexReplace", "input:string, pattern:string, rewrite:string", "output:string", "replace_global:bool=true",
         regex_shape),
    TEXT("StaticRegexReplace", "input:string", "output:string",
         "pattern:string; rewrite:string; replace_global:bool=true", regex_shape),
    TEXT("StringToHashBucket", "string_tensor:string", "output:int64", "num_buckets:int", bucket_shape),
    TEXT("StringToHashBucketFast", "input:string", "output:int64", "num_buckets:int", bucket_shape),
    TEXT("Fingerprint", "data:T, method:string", "fingerprint:uint8", "T:type", fingerprint_shape),
    TEXT("StringToHashBucketStrong", "input:string", "output:int64", "num_buckets:int; key:ints", bucket_shape),
    {0},
};

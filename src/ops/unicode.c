/* unicode.c - texts as characters of Unicode and back, in several encodings, and n-grams of what was taken apart. */
#include "ops/rules.h"

/* input: row_splits [elements + 1], values [as many as are found], and where each begins. */
static tw_status decode_shape(twi_inference *c)
{
    int64_t elements = tw_shape_elements(c->inputs[0]);
    c->outputs[0] = TW_SHAPE(elements < 0 ? -1 : elements + 1);
    return TW_OK;
}

/* input_values of any shape, input_splits [n + 1]: [n] */
static tw_status encode_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 1, 1);
    int64_t splits = c->inputs[1].rank == 1 ? c->inputs[1].dims[0] : -1;
    if (status == TW_OK && splits == 0)
        return TWI_REFUSE(c, "input_splits is empty, expected one number more than there are texts");
    c->outputs[0] = TW_SHAPE(splits < 0 ? -1 : splits - 1);
    return status;
}

/* data [words], data_splits [rows + 1]: ngrams, ngrams_splits */
static tw_status ngrams_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 0, 1);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 1);
    c->outputs[1] = c->inputs[1].rank == 1 ? c->inputs[1] : TW_SHAPE(-1);
    return status;
}

#define ERRORS "errors:{strict,replace,ignore}=replace; replacement_char:int=65533"
#define OUTPUT_ENCODING "output_encoding:{UTF-8,UTF-16-BE,UTF-32-BE}"
#define SPLITS "Tsplits:{int32,int64}=int64"
#define DECODING "input_encoding:string; " ERRORS "; replace_control_characters:bool=false; " SPLITS

const twi_op twi_unicode_ops[] = {
    {"UnicodeDecode", "input:string", "row_splits:Tsplits, char_values:int32", DECODING, decode_shape,
     twi_not_differentiable, TWI_HOST_ONLY | TWI_MAKES_SHAPE},
    {"UnicodeDecodeWithOffsets", "input:string", "row_splits:Tsplits, char_values:int32, char_to_byte_starts:int64",
     DECODING, decode_shape, twi_not_differentiable, TWI_HOST_ONLY | TWI_MAKES_SHAPE},
    {"UnicodeEncode", "input_values:int32, input_splits:Tsplits", "output:string",
     ERRORS "; " OUTPUT_ENCODING "; " SPLITS, encode_shape, twi_not_differentiable, TWI_HOST_ONLY},
    {"UnicodeTranscode", "input:string", "output:string",
     "input_encoding:string; " OUTPUT_ENCODING "; " ERRORS "; replace_control_characters:bool=false", twi_shape_same,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"UnicodeScript", "input:int32", "output:int32", "", twi_shape_same, twi_not_differentiable, TWI_HOST_ONLY},
    {"StringNGrams", "data:string, data_splits:Tsplits", "ngrams:string, ngrams_splits:Tsplits",
     "separator:string; ngram_widths:ints; left_pad:string; right_pad:string; pad_width:int; "
     "preserve_short_sequences:bool; " SPLITS,
     ngrams_shape, twi_not_differentiable, TWI_HOST_ONLY | TWI_MAKES_SHAPE},
    {0},
};

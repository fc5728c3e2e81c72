/* word_stream.h - single words of a Philox stream, one after the other: its blocks are used up word by word.
 * Never here:  where a stream begins (device/state/random.h). */
#ifndef TWI_WORD_STREAM_H
#define TWI_WORD_STREAM_H

#include "base/philox.h"

typedef struct twi_word_stream {
    twi_philox philox;
    uint32_t block[4];
    int used; /* of the block; 4: all */
} twi_word_stream;

static inline twi_word_stream twi_word_stream_of(twi_philox philox)
{
    return (twi_word_stream){philox, {0}, 4};
}

static inline uint32_t twi_next_word(twi_word_stream *stream)
{
    if (stream->used == 4) {
        twi_philox_next(&stream->philox, stream->block);
        stream->used = 0;
    }
    return stream->block[stream->used++];
}

#endif

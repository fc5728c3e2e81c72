/* protobuf.c - see protobuf.h. */
#include "format/protobuf.h"

#include "base/memory.h"

/* Measured on graphs and checkpoint entries, unpacking takes 10 to 15 bytes for one; small messages take some more. */
#define MOST_EXPANSION 64
#define ALWAYS_ALLOWED 16384

static void *allocate(void *user, size_t bytes)
{
    twi_proto *proto = user;
    if (bytes > proto->left)
        return NULL;
    proto->left -= bytes;
    void *block = twi_resize(NULL, bytes);
    proto->out_of_memory |= !block;
    return block;
}

static void release(void *user, void *block)
{
    (void)user;
    twi_free(block);
}

void twi_proto_start(twi_proto *proto, size_t message_bytes)
{
    proto->allocator = (ProtobufCAllocator){allocate, release, proto};
    proto->out_of_memory = false;
    proto->left = message_bytes > (SIZE_MAX - ALWAYS_ALLOWED) / MOST_EXPANSION
                      ? SIZE_MAX
                      : message_bytes * MOST_EXPANSION + ALWAYS_ALLOWED;
}

/* protobuf.h - unpacking messages that may be hostile.
 *
 *     twi_proto proto;
 *     twi_proto_start(&proto, size);
 *     Twi__Event *event = twi__event__unpack(&proto.allocator, size, bytes);
 *     ...
 *     twi__event__free_unpacked(event, &proto.allocator);
 */
#ifndef TWI_PROTOBUF_H
#define TWI_PROTOBUF_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

/* Allocates through base/memory.h, and no more than a fixed multiple of what the message takes on the wire, where an
 * empty submessage of two bytes would otherwise become a hundred. Must not move while in use. */
typedef struct twi_proto {
    ProtobufCAllocator allocator;
    size_t left;        /* bytes it may still give out */
    bool out_of_memory; /* unpacking failed for want of memory: not the message's fault */
} twi_proto;

void twi_proto_start(twi_proto *proto, size_t message_bytes);

#endif

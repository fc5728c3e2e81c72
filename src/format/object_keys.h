/* object_keys.h - by which key a checkpoint of objects (TensorFlow 2's tf.train.Checkpoint, Keras, a SavedModel) has
 * the value of a variable: it is named after the way from the program's object to the variable, not after the variable.
 * The checkpoint's tensor TWI_OBJECT_GRAPH says both names of each. */
#ifndef TWI_OBJECT_KEYS_H
#define TWI_OBJECT_KEYS_H

#include "base/arena.h"
#include "base/map.h"
#include "base/status.h"

#define TWI_OBJECT_GRAPH "_CHECKPOINTABLE_OBJECT_GRAPH"

typedef struct twi_object_keys {
    twi_arena texts;
    twi_map keys;  /* by the variables' names; "" where several have the name */
} twi_object_keys; /* all zeros: none */

/* Adds those that a TrackableObjectGraph has. TW_DATA_LOSS: it is none. */
tw_status twi_object_keys_read(twi_object_keys *keys, const char *bytes, size_t size, tw_error *error);
void twi_object_keys_free(twi_object_keys *keys);

#endif

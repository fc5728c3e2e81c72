/* deprecated.h - the names that things had before, as aliases of those they have now. Every header brings them, unless
 * TW_NO_DEPRECATED is defined: compile with it to find out whether you use one. docs/compatibility.md says how long
 * they stay. */
#ifndef TOWER_DEPRECATED_H
#define TOWER_DEPRECATED_H

#define TW_STEPS                  TW_RATE_STEPS
#define TW_EPOCHS                 TW_RATE_EPOCHS
#define TW_EXAMPLES               TW_RATE_EXAMPLES
#define TW_SAME                   TW_PADDING_SAME
#define TW_VALID                  TW_PADDING_VALID
#define TW_EXPLICIT               TW_PADDING_EXPLICIT
#define TW_VARIABLE_UPDATE        TW_UPDATE_DEFAULT
#define TW_PARAMETER_SERVER       TW_UPDATE_PARAMETER_SERVER
#define TW_REPLICATED             TW_UPDATE_REPLICATED
#define TW_INDEPENDENT            TW_UPDATE_INDEPENDENT
#define TW_VARIABLE_PLACEMENT     TW_PLACE_DEFAULT
#define TW_PARAMETER_DEVICE       TW_PARAMETERS_DEFAULT
#define TW_VARIABLE_CONSISTENCY   TW_CONSISTENCY_DEFAULT
#define TW_STRONG                 TW_CONSISTENCY_STRONG
#define TW_RELAXED                TW_CONSISTENCY_RELAXED
#define TW_UPDATES                TW_UPDATES_DEFAULT
#define TW_SYNCHRONOUS            TW_UPDATES_SYNCHRONOUS
#define TW_ASYNCHRONOUS           TW_UPDATES_ASYNCHRONOUS
#define TW_MODEL_OPTIMIZER        TW_OPTIMIZER_DEFAULT
#define TW_MODEL_GRADIENT_DESCENT TW_OPTIMIZER_GRADIENT_DESCENT
#define TW_MODEL_MOMENTUM         TW_OPTIMIZER_MOMENTUM
#define TW_MODEL_ADAM             TW_OPTIMIZER_ADAM
#define TW_MODEL_RMS_PROP         TW_OPTIMIZER_RMS_PROP
#define TW_FIFO_QUEUE             TW_QUEUE_FIFO
#define TW_SHUFFLE_QUEUE          TW_QUEUE_SHUFFLE
#define TW_PADDING_QUEUE          TW_QUEUE_PADDING
#define TW_PRIORITY_QUEUE         TW_QUEUE_PRIORITY
#define TW_NOT_PLACED             TW_PLACED_NOWHERE
#define TW_NO_OBSTACLE            TW_OBSTACLE_NONE
#define tw_get_component          tw_component_at

#endif

/* divergence.h - what `tower train` does when training diverges: it goes back and lowers the rate, or says where the
 * first NaN came from. */
#ifndef CLI_DIVERGENCE_H
#define CLI_DIVERGENCE_H

#include "train_report.h"
#include "training.h"
#include "validation.h"

typedef struct divergence {
    int64_t most, count; /* times that it goes back; that it has gone */
    int64_t good, last;  /* steps that were done before the latest run of some; number of the last of these */
} divergence;

/* --on-divergence: stop, or rollback:K. Complains and returns false if it is neither. */
bool divergence_read(const char *command, const char *text, divergence *divergence);

/* Whether training goes on after this error: from the newest checkpoint, with half the rate, which is said in lines and
 * events. TW_OUT_OF_RANGE that is left in *error is to be told. *trainer may be NULL afterwards. */
bool divergence_goes_back(divergence *divergence, const training *training, tw_trainer **trainer,
                          tw_event_writer *events, validation *validation, train_report *report, tw_error *error);

/* Says which node made the first NaN, and what usually helps. The trainer is gone. */
void divergence_explain(const divergence *divergence, const training *training);

#endif

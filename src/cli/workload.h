/* workload.h - what `tower bench` takes the time of: steps of training, or of the network alone. */
#ifndef CLI_WORKLOAD_H
#define CLI_WORKLOAD_H

#include <tower/models.h>

typedef struct workload workload;

typedef struct workload_options {
    tw_trainer_options trainer; /* of which a forward run takes what concerns it */
    bool forward_only;          /* the network and its loss, as in evaluation, on random weights */
} workload_options;

/* Yours: workload_close(). Everything in the options is borrowed as long as it lives. */
tw_status workload_open(const workload_options *options, workload **opened, tw_error *error);
void workload_close(workload *w); /* NULL is fine */

/* What the last step gave, the mean of all towers. */
typedef struct workload_result {
    float loss;
    float top_1, top_5; /* accuracy; 0 unless the trainer's options ask for it */
} workload_result;

tw_status workload_run(workload *w, int64_t steps, workload_result *result, tw_error *error);

int workload_towers(const workload *w);
int64_t workload_examples(const workload *w); /* of a step, all towers together */
const char *workload_device(const workload *w, int tower); /* in full */
tw_session *workload_session(workload *w);
tw_trainer *workload_trainer(workload *w); /* NULL: a forward run */

#endif

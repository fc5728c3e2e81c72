/* tower.h - all of Tower: include this one, or only the headers you use.
 *
 *     language.h  options, lists and values, as C and C++ write them
 *     status.h    errors, logging, allocation
 *     crash.h     a report of a process that a signal ends
 *     tensor.h    types, shapes, tensors
 *     graph.h     graphs, scopes, variables, gradients
 *     ops.h nn.h  the ops
 *     op.h        what ops there are, and what each takes and gives
 *     device.h    devices
 *     session.h   running a graph
 *     explain.h   where nodes run and why, what holds which memory
 *     train.h     optimizers, towers, averages, savers
 *     data.h      data sets and input pipelines
 *     queue.h     queues and readers as ops, and the threads that fill them
 *     io.h        checkpoints and event files
 *     models.h    networks that are ready to train, and their evaluation
 *     trainer.h   the trainer: towers, modes of update, checkpoints
 *     located.h   errors name the program's file and line */
#ifndef TOWER_TOWER_H
#define TOWER_TOWER_H

#include <tower/crash.h>
#include <tower/data.h>
#include <tower/device.h>
#include <tower/explain.h>
#include <tower/graph.h>
#include <tower/io.h>
#include <tower/language.h>
#include <tower/located.h>
#include <tower/models.h>
#include <tower/nn.h>
#include <tower/op.h>
#include <tower/ops.h>
#include <tower/queue.h>
#include <tower/session.h>
#include <tower/status.h>
#include <tower/tensor.h>
#include <tower/train.h>
#include <tower/trainer.h>

#endif

/* bench_flags.c - the flags of tf_cnn_benchmarks that `tower bench` does not have, and the reason it gives. What it
 * does have stands in bench.c; a test holds that no flag is in neither. */
#include "bench.h"
#include "cluster.h"

static const char evaluation[] = "evaluation is a command of its own: tower eval";
static const char threads_of_input[] = "the input pipeline has threads of its own and keeps what it needs ready; their "
                                       "number is --datasets_num_private_threads";
static const char in_memory[] = "data sets lie in memory as a whole";
static const char images[] = "there are no JPEG files to be decoded: data sets hold plain pixels";
static const char planned[] = "memory is planned before the first step, to the byte, and taken once";
static const char no_compiler[] = "there is no compiler behind the graph; its rewrites are listed by tower train --help, "
                                  "--disable";
static const char openmp[] = "that is for the environment: OMP_NUM_THREADS, OMP_PROC_BIND";
static const char gpu_threads[] = "each device has one thread that hands its work over";

const refusal bench_refusals[] = {
    {"eval", evaluation},
    {"eval-interval-secs", evaluation},
    {"eval-during-training-every-n-steps", evaluation},
    {"eval-during-training-every-n-epochs", evaluation},
    {"eval-during-training-at-specified-steps", evaluation},
    {"eval-during-training-at-specified-epochs", evaluation},
    {"eval-batch-size", evaluation},
    {"num-eval-batches", evaluation},
    {"num-eval-epochs", evaluation},
    {"stop-at-top-1-accuracy", evaluation},
    {"collect-eval-results-async", evaluation},
    {"eval-dir", evaluation},
    {"freeze-when-forward-only", "there is no frozen graph: --forward_only runs the network as evaluation does"},
    {"batch-group-size", "batches are prepared one by one, side by side"},
    {"autotune-threshold", "kernels are chosen when a step is planned, before it is measured; --verbose says which"},
    {"resize-method", images},
    {"fuse-decode-and-crop", images},
    {"distort-color-in-yiq", images},
    {"input-preprocessor", images},
    {"use-datasets", "there is one input pipeline"},
    {"datasets-use-prefetch", threads_of_input},
    {"datasets-prefetch-buffer-size", threads_of_input},
    {"datasets-parallel-interleave-cycle-length", in_memory},
    {"datasets-sloppy-parallel-interleave", in_memory},
    {"datasets-parallel-interleave-prefetch", in_memory},
    {"datasets-use-caching", in_memory},
    {"multi-device-iterator-max-buffer-size", threads_of_input},
    {"ml-perf", "there are no rules of MLPerf here"},
    {"gpu-thread-mode", gpu_threads},
    {"per-gpu-thread-count", gpu_threads},
    {"num-inter-threads", gpu_threads},
    {"use-numa-affinity", "CPU devices are bound to cores of their own in any case"},
    {"mkl", "oneDNN is used where it was found when Tower was built; tower version says"},
    {"kmp-blocktime", openmp},
    {"kmp-affinity", openmp},
    {"kmp-settings", openmp},
    {"allreduce-merge-scope", "packing joins gradients: --gradient_repacking, --agg_small_grads_max_bytes"},
    {"resnet-base-lr", "the first rate is --init_learning_rate, for residual networks too"},
    {"compute-lr-on-cpu", "the rate is always computed beside the step counter: on the CPU, or on a GPU that has the "
                          "variables"},
    {"single-l2-loss-op", "weight decay joins the update, which is one kernel"},
    {"loss-type-to-report", "the loss printed is the total one"},
    {"fp16-vars", "variables are float32, as training in half precision needs them"},
    {"gpu-memory-frac-for-testing", "it is called --gpu_memory_fraction here"},
    {"use-unified-memory", planned},
    {"timestamped-allocator", planned},
    {"gpu-kt-max-interval", planned},
    {"gpu-kt-max-bytes", planned},
    {"gpu-kt-max-pending", planned},
    {"force-gpu-compatible", planned},
    {"use-tf-layers", "models are built by Tower's own layers"},
    {"use-resource-vars", "all variables are resources"},
    {"winograd-nonfused", no_compiler},
    {"batchnorm-persistent", no_compiler},
    {"xla", no_compiler},
    {"xla-compile", no_compiler},
    {"rewriter-config", no_compiler},
    {"trt-mode", no_compiler},
    {"trt-max-workspace-size-bytes", no_compiler},
    {"debugger",
     "there is no TensorFlow debugger; tower train --trace and --log-device-placement show what runs where"},
    {"use-python32-barrier", "there is no Python"},
    {"sync-on-finish", "all tasks end together"},
    {"tfprof-file", "--trace_file shows each kernel, --waterfall where the time went"},
    {"partitioned-graph-file-prefix", "--graph_file writes the whole graph; --trace_file shows it cut up"},
    {"summary-verbosity", "summaries are training's: tower train --summary-every"},
    {"save-summaries-steps", "summaries are training's: tower train --summary-every"},
    {"save-model-secs", "a benchmark saves once, at the end, if there is a --train_dir; tower train saves as it goes"},
    {"save-model-steps", "a benchmark saves once, at the end, if there is a --train_dir; tower train saves as it goes"},
    {"backbone-model-path", "there is no model with a backbone"},
    {"cross-replica-sync", "updates are synchronous; tower train --sync off trains without"},
    CLUSTER_REFUSALS,
    {0},
};

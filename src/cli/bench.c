/* bench.c - `tower bench`: how fast a network trains, in any mode, on any number of devices.
 * Lives here:  the options, which are tf_cnn_benchmarks' as far as they have a meaning here, and what follows from them.
 * Never here:  taking the time (measure.c), what is printed (bench_protocol.c, bench_table.c). */
#include "bench.h"

#include "bench_rule.h"
#include "cluster.h"
#include "job.h"
#include "reduction.h"
#include "translate.h"
#include "update.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

extern const command bench_command; /* below */

typedef struct settings {
    job job;
    reduction reduction;
    bench_rule rule;
    cluster cluster;
    int64_t batch_size, num_batches, num_warmup_batches, num_gpus, display_every, seed, input_threads, keep;
    int64_t steps_per_execution, groups, meet_every;
    double num_epochs, ewma;
    const char *gpu_indices, *trace, *graph, *log_dir, *test_id, *inject;
    int data_name, device, data_format, variable_update, parameter_device, consistency, compact;
    int scaling, topology;
    bool hierarchical, accuracy, staged, forward_only, distortions, repeat_sample, optimizations, chrome_format;
    bool all, waterfall;
} settings;

/* ---- one choice after the other ---------------------------------------------------------------------------- */

/* ORDER DATA_NAME. "imagenet" has no reader here: its networks take made-up images. */
static bool choose_model(settings *s, bench *b)
{
    enum { CIFAR10 = 1 };
    static const int data_sets[] = {0, 1, 2, 3, 0}; /* ORDER DATA_SET */
    const tw_model *model = tw_model_at(s->job.model);
    if (s->data_name == CIFAR10 && strcmp(model->name, "alexnet") == 0) { /* tf_cnn_benchmarks' name for it */
        model = tw_model_find("cifar10");
        for (s->job.model = 0; tw_model_at(s->job.model) != model;)
            s->job.model++;
    }
    bool imagenet = strcmp(model->dataset, "synthetic") == 0;
    if (imagenet && s->job.data_dir)
        return complain("bench", "--data_dir: model %s takes images of ImageNet, which Tower does not read; without "
                                 "--data_dir they are made up", model->name);
    s->job.data_set = s->job.data_dir ? data_sets[s->data_name] : 4; /* synthetic */
    b->model = *model;
    b->data_name = imagenet ? "imagenet" : model->dataset;
    b->synthetic = !s->job.data_dir;
    if (!s->distortions)
        b->model.training = b->model.evaluation;
    return true;
}

static bool choose_mode(const settings *s, bench *b)
{
    const update_mode *mode = update_mode_at(s->variable_update);
    b->mode = (bench_mode){.name = mode->name, .variables = {.update = mode->update, .staged = s->staged}};
    if (s->staged && strcmp(b->mode.name, "parameter_server") != 0)
        return complain("bench", "staged_vars for now is only supported with variable_update=parameter_server");
    if (mode->device_each && s->num_gpus > 1)
        return complain("bench", "Horovod benchmarks require num_gpus=1 on each worker, found %" PRId64, s->num_gpus);
    if (s->consistency && b->mode.variables.update != TW_UPDATE_REPLICATED)
        return complain("bench", "--variable_consistency=relaxed is about replicas; with variable_update=%s there are "
                                 "none", b->mode.name);
    if (mode->update != TW_UPDATE_LOCAL && (s->groups != NOT_GIVEN || s->meet_every != NOT_GIVEN))
        return complain("bench", "--groups and --meet_every are about variable_update=local, not about %s",
                        b->mode.name);
    b->mode.groups = s->groups == NOT_GIVEN ? 0 : (int)s->groups;
    b->mode.meet_every = s->meet_every == NOT_GIVEN ? 0 : s->meet_every;
    if (b->mode.variables.update == TW_UPDATE_REPLICATED)
        b->mode.variables.consistency = s->consistency ? TW_CONSISTENCY_RELAXED : TW_CONSISTENCY_STRONG;
    if (mode->update == TW_UPDATE_PARAMETER_SERVER || mode->update == TW_UPDATE_DISTRIBUTED_REPLICATED)
        b->mode.variables.parameter_device =
            s->parameter_device && b->on_gpus ? TW_PARAMETERS_ON_GPU : TW_PARAMETERS_ON_CPU;
    if (mode->other_name && b->tasks == 1)
        fprintf(stderr, "tower bench: %s is for several processes; with one it is %s\n", mode->name,
                tw_variable_update_name(mode->update));
    return true;
}

/* The devices that were asked for: as many GPUs, real or else virtual, or as many CPU devices. */
static tw_devices *open_devices(settings *s, bench *b)
{
    enum { AUTO, CPU, GPU };
    bool on_cpu = s->device == CPU;
    job *job = &s->job;
    job->cpu_devices = on_cpu ? s->num_gpus : 1;
    tw_devices *devices = job_open_devices("bench", job);
    int gpus = devices ? tw_devices_count(devices, "GPU") : 0;
    if (devices && gpus == 0 && !on_cpu) {
        tw_devices_destroy(devices);
        if (s->device == AUTO)
            job->cpu_devices = s->num_gpus;
        else
            job->virtual_gpus = s->num_gpus;
        devices = job_open_devices("bench", job);
        gpus = devices ? tw_devices_count(devices, "GPU") : 0;
        char why[600];
        if (s->device == GPU && devices && tw_task_started(NULL) == 0)
            fprintf(stderr,
                    "tower bench: there is no GPU here (%s); these are virtual ones, which run on the CPU with a "
                    "thread each\n",
                    translate(tw_devices_why_no_gpu(), why, sizeof why));
    }
    b->on_gpus = gpus > 0 && !on_cpu;
    int there = devices ? tw_devices_count(devices, b->on_gpus ? "GPU" : "CPU") : 0;
    if (!devices || s->num_gpus <= there)
        return devices;
    complain("bench", "--num_gpus %" PRId64 ": there are %d", s->num_gpus, there);
    tw_devices_destroy(devices);
    return NULL;
}

/* With those of all tasks, now that it is known which each is to have. Returns the exit code. */
static int open_tasks(settings *s, bench *b, tw_devices **devices)
{
    int code;
    if (!(*devices = open_devices(s, b)))
        return EXIT_FAILED;
    tw_devices_destroy(*devices);
    s->job.tasks = true;
    s->job.ps_tasks = cluster_servers(&s->cluster);
    if (!(*devices = job_open_tasks("bench", &s->job, &code)))
        return code;
    b->tasks = tw_devices_tasks(*devices);
    if (!cluster_check("bench", &s->cluster, *devices))
        return EXIT_USAGE;
    if ((code = job_options_agree("bench", bench_command.options, s, *devices)) != EXIT_DONE)
        return code;
    if (tw_devices_task(*devices) != 0) /* the first alone writes */
        b->log_dir = b->graph_file = NULL;
    return job_leave_printing("bench", *devices) ? EXIT_DONE : EXIT_FAILED;
}

/* --gpu_indices 1,0 says which of each worker's, and in which order; otherwise the first ones. */
static bool choose_towers(const settings *s, bench *b)
{
    const char *at = s->gpu_indices;
    int each = (int)s->num_gpus, workers = b->tasks - s->job.ps_tasks;
    if (each * workers > BENCH_MOST_DEVICES)
        return complain("bench", "--num_gpus %d: expected at most %d devices in all, found %d", each,
                        BENCH_MOST_DEVICES, each * workers);
    b->num_devices = each * workers;
    for (int i = 0; i < each; i++) {
        long number = i;
        char *end, task[32] = "";
        if (at) {
            number = strtol(at, &end, 10);
            if (end == at || number < 0 || number >= BENCH_MOST_DEVICES || *end != (i == each - 1 ? 0 : ','))
                return complain("bench", "--gpu_indices: expected %d numbers with commas between them, found '%s'",
                                each, s->gpu_indices);
            at = end + 1;
        }
        for (int k = 0; k < workers; k++) {
            char *text = b->texts[k * each + i];
            if (b->tasks > 1)
                snprintf(task, sizeof task, "/job:worker/task:%d", k);
            snprintf(text, sizeof b->texts[0], "%s/%s:%ld", task, b->on_gpus ? "gpu" : "cpu", number);
            b->names[k * each + i] = text;
        }
    }
    return true;
}

static bool choose_steps(const settings *s, bench *b, int64_t examples)
{
    if (s->num_batches != NOT_GIVEN && !isnan(s->num_epochs))
        return complain("bench", "At most one of --num_batches and --num_epochs may be specified.");
    double steps = isnan(s->num_epochs) ? 100 : ceil(s->num_epochs * (double)b->data_examples / (double)examples);
    b->measure.steps = s->num_batches != NOT_GIVEN ? (int)s->num_batches : steps < 1 ? 1 : (int)fmin(steps, INT_MAX / 2);
    b->measure.warm_up = (int)s->num_warmup_batches;
    if (s->trace && !s->num_warmup_batches)
        return complain("bench", "--trace_file is written in the step before the last of warm-up, and "
                                 "--num_warmup_batches is 0");
    return true;
}

/* tower=1,kind=compute,ms=20 */
static bool choose_injection(const char *text, injection *injection)
{
    static const char *const kinds[] = {"compute", "imbalance", "reduce", "copy", "input", "launch"}; /* ORDER TIME */
    *injection = (struct injection){TW_TIME_KINDS, -1, 0};
    for (const char *at = text; at && *at; at += at[strcspn(at, ",")] ? strcspn(at, ",") + 1 : strcspn(at, ",")) {
        char word[32], *value;
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
        value = strchr(word, '=');
        if (value)
            *value++ = 0;
        if (value && strcmp(word, "tower") == 0 && isdigit((unsigned char)*value))
            injection->tower = atoi(value);
        else if (value && strcmp(word, "ms") == 0 && atof(value) > 0)
            injection->seconds = atof(value) / 1000;
        for (int k = 0; value && strcmp(word, "kind") == 0 && k < TW_TIME_KINDS; k++)
            if (strcmp(value, kinds[k]) == 0 && k != TW_TIME_IMBALANCE)
                injection->kind = (tw_time_kind)k;
    }
    if (!text || (injection->kind != TW_TIME_KINDS && injection->seconds > 0))
        return true;
    return complain("bench", "--inject: expected something like tower=1,kind=compute,ms=20, of kind compute, copy, reduce, "
                             "input or launch, found '%s'", text);
}

static bool choose_average(settings *s, int devices, tw_average_options *average)
{
    enum { AUTO, OFF, FLOAT16, BFLOAT16, TRUE, FALSE };
    static const int wires[] = {0, 0, 1, 2, 0, 0}; /* ORDER WIRE */
    bool when_half = s->compact == AUTO || s->compact == TRUE;
    s->reduction.wire = when_half && s->rule.use_fp16 ? 1 : wires[s->compact];
    if (!reduction_read("bench", &s->reduction, average))
        return false;
    if (s->reduction.packs && devices < 2)
        return complain("bench", "--gradient_repacking requires --num_gpus to be greater than 1");
    if (s->hierarchical && devices < 2)
        return complain("bench", "--hierarchical_copy requires --num_gpus to be greater than 1");
    if (s->hierarchical && s->topology)
        return complain("bench",
                        "--network_topology=gcp_v100 is not supported because its pairs of GPUs follow the wires "
                        "of one machine; dgx1 cuts any number of devices in halves");
    if (s->hierarchical && !average->all_reduce)
        average->all_reduce = "hierarchical";
    return true;
}

/* Training examples of the data set that the made-up images stand for. */
static int64_t examples_of(const char *data_name)
{
    return strcmp(data_name, "imagenet") == 0 ? 1281167 : strcmp(data_name, "cifar10") == 0 ? 50000 : 60000;
}

/* ---- one run ----------------------------------------------------------------------------------------------- */

workload *bench_open(const bench *b, const bench_mode *mode, int devices, workload_options *options)
{
    tw_error error = {0};
    workload *w = NULL;
    *options = b->workload;
    options->trainer.num_tower_devices = devices;
    options->trainer.towers = devices;
    options->trainer.variables = mode->variables;
    options->trainer.groups = mode->groups;
    options->trainer.meet_every = mode->meet_every;
    if (mode->all_reduce)
        options->trainer.average.all_reduce = mode->all_reduce;
    if (b->strong_scaling) {
        options->trainer.global_batch = b->workload.trainer.batch ? b->workload.trainer.batch : b->model.batch;
        options->trainer.batch = 0;
    }
    if (workload_open(options, &w, &error) != TW_OK)
        failed("bench", &error);
    return w;
}

static int run_with(settings *s, bench *b, tw_devices *devices, tw_dataset *data)
{
    bool traced = s->trace || s->inject || s->waterfall || s->all;
    tw_average_options average;
    int batch = (int)s->batch_size;
    if (!b->synthetic)
        b->data_name = tw_dataset_name(data);
    b->data_examples = b->synthetic ? examples_of(b->data_name) : tw_dataset_count(data);
    if (!choose_towers(s, b) || !choose_average(s, b->num_devices, &average) || !choose_mode(s, b) ||
        !choose_steps(s, b, (int64_t)(batch ? batch : b->model.batch) * b->num_devices) ||
        !choose_injection(s->inject, &b->measure.injection))
        return EXIT_USAGE;
    b->optimizer = bench_rule_name(&s->rule);
    b->measure.trace = s->trace;
    b->measure.take_apart = s->waterfall || s->all;
    b->measure.pace.fixed = s->steps_per_execution;
    b->measure.display_every = (int)s->display_every;
    b->workload = (workload_options){
        .forward_only = s->forward_only,
        .trainer =
            {
                .model = &b->model,
                .dataset = data,
                .devices = devices,
                .tower_devices = b->names,
                .num_tower_devices = b->num_devices,
                .batch = batch,
                .seed = s->seed,
                .average = average,
                .input_threads = (int)s->input_threads,
                .repeat_batch = b->synthetic || s->repeat_sample,
                .accuracy = s->accuracy,
                .session = {.allow_soft_placement = true, .disable = s->optimizations ? NULL : "all", .trace = traced},
            },
    };
    if (!bench_rule_read(&s->rule, &b->model, &b->workload.trainer))
        return EXIT_USAGE;
    return s->all ? bench_all(b) : bench_one(b);
}

static int run(const void *given)
{
    settings filled = *(const settings *)given, *s = &filled;
    char directory[PATH_MAX];
    bench b = {
        .display_every = s->display_every,
        .ewma = isnan(s->ewma) ? 0 : s->ewma,
        .strong_scaling = s->scaling,
        .log_dir = s->log_dir,
        .test_id = s->test_id,
        .graph_file = s->graph,
        .train_dir = s->job.train_dir,
        .keep = (int)s->keep,
        .as_json = s->job.format == FORMAT_JSON,
        .waterfall = s->waterfall,
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!s->chrome_format) {
        complain("bench", "--use_chrome_trace_format=False is not supported because traces are Chrome's");
        return EXIT_USAGE;
    }
    if (s->data_format) {
        complain("bench", s->device == 1 ? "device=cpu requires that data_format=NHWC"
                                         : "--data_format=NCHW is not supported because images are NHWC everywhere");
        return EXIT_USAGE;
    }
    if (!choose_model(s, &b))
        return EXIT_USAGE;
    tw_devices *devices;
    tw_dataset *data = NULL;
    int code = open_tasks(s, &b, &devices);
    if (code == EXIT_DONE && !(data = job_load_data("bench", &s->job, TW_SPLIT_TRAIN, directory)))
        code = EXIT_FAILED;
    if (code == EXIT_DONE)
        code = run_with(s, &b, devices, data);
    tw_dataset_destroy(data);
    job_close_tasks(devices);
    return code;
}

static const option options[] = {
    {"model", "NAME", OPTION_CHOICE, offsetof(settings, job.model), "the network", .initial = "trivial",
     .list_choices = job_model_names},
    {"batch-size", "N", OPTION_NUMBER, offsetof(settings, batch_size), "examples for each device and step; 0: the model's own",
     .initial = "0", .most = 1 << 20},
    {"num-batches", "N", OPTION_NUMBER, offsetof(settings, num_batches), "steps to time; without it 100", .least = 1,
     .most = INT_MAX / 2},
    {"num-epochs", "E", OPTION_REAL, offsetof(settings, num_epochs), "or as many steps as that makes", .most = 1e6,
     .positive = true},
    {"num-warmup-batches", "N", OPTION_NUMBER, offsetof(settings, num_warmup_batches), "steps before the time is taken",
     .initial = "10", .most = 1 << 20},
    {"forward-only", NULL, OPTION_FLAG, offsetof(settings, forward_only), "the network alone, as in evaluation"},
    {"print-training-accuracy", NULL, OPTION_FLAG, offsetof(settings, accuracy),
     "each line ends with the parts of the batch whose label is the network's first choice, and among its first five"},
    STEPS_PER_EXECUTION_OPTION(settings),
    {"display-every", "N", OPTION_NUMBER, offsetof(settings, display_every), "steps between lines", .initial = "10",
     .least = 1, .most = INT64_MAX},
    {"display-perf-ewma", "A", OPTION_REAL, offsetof(settings, ewma),
     "speeds in the lines are exponentially weighted means with this weight of the latest step", .most = 1,
     .positive = true},
    {"seed", "N", OPTION_NUMBER, offsetof(settings, seed), "of initial values and data", .initial = "1234", .least = 1,
     .most = INT64_MAX, .also = "tf-random-seed"},

    {"data-dir", "DIR", OPTION_DIRECTORY, offsetof(settings, job.data_dir),
     "where the data set lies; without it images are made up, and one batch serves all steps", .section = "data"},
    {"data-name", "NAME", OPTION_CHOICE, offsetof(settings, data_name), "which data set that is; auto: what its files say",
     .initial = "auto", .choices = "auto|cifar10|mnist|fashion-mnist|imagenet"}, /* ORDER DATA_NAME */
    {"distortions", NULL, OPTION_FLAG, offsetof(settings, distortions), "images are changed at random, as in training"},
    {"datasets-repeat-cached-sample", NULL, OPTION_FLAG, offsetof(settings, repeat_sample),
     "of real data too one batch serves all steps, so that the input costs nothing"},
    {"datasets-num-private-threads", "N", OPTION_NUMBER, offsetof(settings, input_threads),
     "threads that prepare the data; 0: chosen", .initial = "0", .most = 256, .also = "input-threads"},

    {"device", "KIND", OPTION_CHOICE, offsetof(settings, device),
     "what --num_gpus counts: GPUs (virtual ones where there are none), or CPU devices that divide the cores; auto: GPUs if "
     "there are any", .initial = "auto", .choices = "auto|cpu|gpu", .section = "devices"},
    {"num-gpus", "N", OPTION_NUMBER, offsetof(settings, num_gpus), "how many", .initial = "1", .least = 1,
     .most = BENCH_MOST_DEVICES},
    {"gpu-indices", "LIST", OPTION_TEXT, offsetof(settings, gpu_indices),
     "which ones, and in which order they stand in a ring: 0,2,1,3"},
    VIRTUAL_GPUS_OPTION(settings),
    LOGICAL_GPUS_OPTION(settings),
    GPU_NUMBERS_OPTIONS(settings),
    GPU_MEMORY_OPTIONS(settings),
    {"num-intra-threads", "N", OPTION_NUMBER, offsetof(settings, job.cpu_threads),
     "threads of each CPU device; 0: its share of the cores", .initial = "0", .most = 4096, .also = "cpu-threads"},
    {"data-format", "FORMAT", OPTION_CHOICE, offsetof(settings, data_format), "order of an image's dimensions",
     .initial = "NHWC", .choices = "NHWC|NCHW"},
    {"enable-optimizations", NULL, OPTION_FLAG, offsetof(settings, optimizations), "rewrites of the graph", .initial = "on"},

    {"variable-update", "MODE", OPTION_CHOICE, offsetof(settings, variable_update),
     "who has the variables; those from distributed_all_reduce to horovod are for several processes and run as what "
     "they come down to in one; local: each group of devices trains a copy",
     .initial = "parameter_server",
     .choices = UPDATE_MODES,
     .section = "variables and gradients"},
    {"local-parameter-device", "KIND", OPTION_CHOICE, offsetof(settings, parameter_device),
     "where the variables of a parameter server lie", .initial = "gpu", .choices = "cpu|gpu"},
    {"staged-vars", NULL, OPTION_FLAG, offsetof(settings, staged),
     "with a parameter server: a step computes with the variables of the step before"},
    {"groups", "G", OPTION_NUMBER, offsetof(settings, groups),
     "with variable_update=local: how many groups the devices make; without it each is one", .least = 1,
     .most = 1 << 20},
    {"meet-every", "K", OPTION_NUMBER, offsetof(settings, meet_every),
     "with variable_update=local: steps until the groups' copies become their mean; without it 8", .least = 1,
     .most = 1 << 30},
    {"variable-consistency", "WHEN", OPTION_CHOICE, offsetof(settings, consistency),
     "of replicas: relaxed applies the mean one step late", .initial = "strong", .choices = "strong|relaxed"},
    {"all-reduce-spec", "SPEC", OPTION_TEXT, offsetof(settings, reduction.spec),
     "how gradients meet: tree, ring, rechd, pscpu, psgpu, hierarchical, nccl, with #SHARDS and limits; tower train --help "
     "says more"},
    {"hierarchical-copy", NULL, OPTION_FLAG, offsetof(settings, hierarchical),
     "without --all_reduce_spec: hierarchical"},
    {"network-topology", "NAME", OPTION_CHOICE, offsetof(settings, topology), "what the two levels of that follow",
     .initial = "dgx1", .choices = "dgx1|gcp_v100"},
    {"gradient-repacking", "N", OPTION_NUMBER, offsetof(settings, reduction.packs),
     "join all gradients and cut them into N equal packs", .initial = "0", .most = 4096},
    {"agg-small-grads-max-bytes", "N", OPTION_NUMBER, offsetof(settings, reduction.small_bytes),
     "join gradients of at most so many bytes", .initial = "0", .most = INT64_MAX},
    {"agg-small-grads-max-group", "N", OPTION_NUMBER, offsetof(settings, reduction.small_group),
     "so many at a time", .initial = "10", .least = 1, .most = 1 << 20},
    {"gradient-bucket-bytes", "N", OPTION_BYTES, offsetof(settings, reduction.bucket_bytes),
     "join gradients up to so many bytes, in the order in which they are computed; 0: leave them as they are; without it 1M "
     "where each of several GPUs has its own variables", .most = INT64_MAX},
    {"compact-gradient-transfer", "TYPE", OPTION_CHOICE, offsetof(settings, compact),
     "what gradients are rounded to on their way; auto (and True): float16 with --use_fp16", .initial = "auto",
     .choices = "auto|off|float16|bfloat16|True|False"},
    {"sparse-to-dense-grads", NULL, OPTION_FLAG, offsetof(settings, reduction.sparse_as_dense),
     "average gradients of embeddings whole"},
    BENCH_RULE_OPTIONS(settings),

    {"all", NULL, OPTION_FLAG, offsetof(settings, all),
     "a table of modes by 1, 2, 4, ... of --num_gpus devices: images/s, speed-up, efficiency, and where the rest went",
     .section = "output"},
    {"scaling", "HOW", OPTION_CHOICE, offsetof(settings, scaling),
     "of the table: weak gives each device a batch of its own, strong divides one batch", .initial = "weak",
     .choices = "weak|strong"},
    {"waterfall", NULL, OPTION_FLAG, offsetof(settings, waterfall), "say after the last line where a step's time goes"},
    {"inject", "DELAY", OPTION_TEXT, offsetof(settings, inject),
     "hold every step up to see where it shows: tower=1,kind=compute,ms=20; kinds are compute, copy, reduce, input, launch"},
    {"trace-file", "FILE", OPTION_FILE, offsetof(settings, trace),
     "write the times of every kernel of the last but one step of warm-up there; opens in Perfetto"},
    {"use-chrome-trace-format", NULL, OPTION_FLAG, offsetof(settings, chrome_format), "which is what there is",
     .initial = "on"},
    VERBOSE_OPTION(settings),
    {"graph-file", "FILE", OPTION_FILE, offsetof(settings, graph), "write the graph there, as TensorFlow's GraphDef"},
    {"benchmark-log-dir", "DIR", OPTION_DIRECTORY, offsetof(settings, log_dir),
     "append to metric.log and write benchmark_run.log there, as TensorFlow's models do"},
    {"benchmark-test-id", "ID", OPTION_TEXT, offsetof(settings, test_id), "a name for the run in benchmark_run.log"},
    {"train-dir", "DIR", OPTION_DIRECTORY, offsetof(settings, job.train_dir), "save a checkpoint there at the end"},
    {"max-ckpts-to-keep", "N", OPTION_NUMBER, offsetof(settings, keep), "checkpoints that stay there", .initial = "5",
     .least = 1, .most = 1 << 20},
    CLUSTER_OPTIONS(settings),

    FORMAT_OPTION(settings, job.format),
    {0},
};

const command bench_command = {
    .name = "bench",
    .summary = "measure how fast a network trains, and where the time goes",
    .description =
        "Trains a network for some steps and says how many images a second that makes, in the very words of TensorFlow's "
        "tf_cnn_benchmarks, whose flags it understands: what reads the output of the one reads that of the other. Flags "
        "that have no meaning here are answered with the reason.\n\n"
        "With --all it prints a table instead: every way of keeping variables and bringing gradients together, on 1, 2, 4 "
        "and so on devices, with the speed-up, and where the time of a step went: compute, imbalance between devices, "
        "gradients coming together where nothing hides it, other copies, input, launching. These add up to 100 %.\n\n"
        "Images are made up unless there is a --data_dir, and then one batch serves all steps, so that the input costs "
        "nothing.\n\n"
        "As one of several tasks ('tower launch', mpirun) it measures all of them together: --num_gpus is what each "
        "worker has, and the first one prints.",
    .examples = "tower bench --model cifar10 --num_batches 50\n"
                "tower bench --model resnet20 --num_gpus 2 --variable_update replicated --all_reduce_spec ring\n"
                "tower bench --model cifar10 --num_gpus 2 --all\n"
                "tower bench --model cifar10 --num_gpus 2 --waterfall --inject tower=1,kind=compute,ms=20\n"
                "tower bench --model resnet50 --batch_size 2 --num_batches 10 --forward_only",
    .of_tasks = TASKS_JOINED,
    .options = options,
    .refusals = bench_refusals,
    .settings_bytes = sizeof(settings),
    .run = run,
};

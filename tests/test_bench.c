/* test_bench.c - `tower bench` speaks tf_cnn_benchmarks' text, knows its flags, and says where the time goes. */
#include "program.h"

#include <ctype.h>

#define SMALL "$T bench --model cifar10 --batch_size 4 --num_warmup_batches 2 "

/* ---- a reader of the text, as such programs are written ---------------------------------------------------------- */

enum { MOST_LINES = 64 };

typedef struct report {
    int steps[MOST_LINES], count;
    double speed[MOST_LINES], uncertainty[MOST_LINES], jitter[MOST_LINES], loss[MOST_LINES];
    double total;
} report;

/* The rest behind `text`, which the output must go on with. */
static const char *expect(const char *at, const char *text)
{
    if (strncmp(at, text, strlen(text)) != 0)
        fail_msg("expected \"%s\", found \"%.80s\"", text, at);
    return at + strlen(text);
}

static report read_report(const char *at)
{
    static const char dashes[] = "----------------------------------------------------------------\n";
    report r = {0};
    at = strstr(at, "==========\n");
    assert_non_null(at);
    at = expect(at, "==========\nRunning warm up\nDone warm up\nStep\tImg/sec\ttotal_loss\n");
    while (isdigit((unsigned char)*at)) {
        int used = 0, i = r.count++;
        assert_true(i < MOST_LINES);
        assert_int_equal(sscanf(at, "%d\timages/sec: %lf +/- %lf (jitter = %lf)\t%lf%n", &r.steps[i], &r.speed[i],
                                &r.uncertainty[i], &r.jitter[i], &r.loss[i], &used), 5);
        at = expect(at + used, "\n");
    }
    at = expect(at, dashes);
    at = expect(at, "total images/sec: ");
    r.total = strtod(at, (char **)&at);
    at = expect(at, "\n");
    at = expect(at, dashes);
    return r;
}

/* Every number with a point in it becomes '#': what is measured differs from run to run. */
static void mask_measurements(char *text)
{
    char *to = text;
    for (const char *at = text; *at;) {
        size_t length = strspn(at, "0123456789.");
        if (length && memchr(at, '.', length)) {
            *to++ = '#';
            at += length;
        } else {
            length = length ? length : 1;
            memmove(to, at, length);
            to += length;
            at += length;
        }
    }
    *to = 0;
}

static void text_is_that_of_tf_cnn_benchmarks_to_the_letter(void **state)
{
    (void)state;
    assert_runs(0,
                SMALL "--num_batches=20 --device=cpu --num_gpus=2 --num_intra_threads 1 --variable_update=replicated "
                      "--all_reduce_spec=ring");
    mask_measurements(output);
    assert_string_equal(output,
                        "Model:       cifar10\n"
                        "Dataset:     cifar10 (synthetic)\n"
                        "Mode:        training\n"
                        "SingleSess:  False\n"
                        "Batch size:  8 global\n"
                        "             4 per device\n"
                        "Num batches: 20\n"
                        "Num epochs:  #\n"
                        "Devices:     ['/cpu:0', '/cpu:1']\n"
                        "NUMA bind:   False\n"
                        "Data format: NHWC\n"
                        "Optimizer:   sgd\n"
                        "Variables:   replicated\n"
                        "AllReduce:   ring\n"
                        "==========\n"
                        "Running warm up\n"
                        "Done warm up\n"
                        "Step\tImg/sec\ttotal_loss\n"
                        "1\timages/sec: # +/- # (jitter = #)\t#\n"
                        "10\timages/sec: # +/- # (jitter = #)\t#\n"
                        "20\timages/sec: # +/- # (jitter = #)\t#\n"
                        "----------------------------------------------------------------\n"
                        "total images/sec: #\n"
                        "----------------------------------------------------------------\n");
}

static void numbers_are_what_their_names_say(void **state)
{
    (void)state;
    assert_runs(0, SMALL "--num_batches 12 --display_every 3");
    report r = read_report(output);
    static const int steps[] = {1, 3, 6, 9, 12};
    assert_int_equal(r.count, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(r.steps[i], steps[i]);
        assert_true(r.speed[i] > 0 && r.uncertainty[i] >= 0 && r.jitter[i] >= 0 && r.loss[i] > 0);
    }
    assert_true(r.uncertainty[0] == 0 && r.jitter[0] == 0); /* of a single step */
    assert_true(r.total > 0 && r.total <= r.speed[4] * 1.05); /* steps are within the whole time */
    assert_runs(0, SMALL "--num_epochs 0.001");                 /* of 50,000 */
    assert_prints("Num batches: 13\n");
    assert_prints("Num epochs:  0.00\n");
}

/* One batch again and again is learnt by heart. */
static void accuracy_of_a_step_stands_behind_its_loss(void **state)
{
    (void)state;
    assert_runs(0, "$T bench --model mnist --batch_size 3 --num_warmup_batches 0 --num_batches 40 --display_every 40 "
                   "--device cpu --num_gpus 2 --num_intra_threads 1 --optimizer adam --init_learning_rate 0.003 "
                   "--print_training_accuracy");
    assert_prints("Step\tImg/sec\ttotal_loss\ttop_1_accuracy\ttop_5_accuracy\n");
    for (int step = 1; step <= 40; step += 39) {
        double top_1, top_5;
        char start[16];
        snprintf(start, sizeof start, "\n%d\timages", step);
        const char *at = strstr(output, start);
        assert_non_null(at);
        assert_int_equal(sscanf(at, "%*d\timages/sec: %*f +/- %*f (jitter = %*f)\t%*f\t%lf\t%lf\n", &top_1, &top_5), 2);
        assert_true(step == 1 ? top_1 < 0.9 : top_1 == 1);
        assert_true(top_5 >= top_1 && top_5 <= 1);
    }
    assert_runs(0, "$T bench --model mnist --batch_size 3 --num_warmup_batches 0 --num_batches 1 --forward_only "
                   "--print_training_accuracy --format json");
    assert_prints("\"top_1_accuracy\":");
}

static void memory_of_gpus_can_be_limited(void **state)
{
    (void)state;
    assert_runs(1, SMALL "--num_batches 1 --virtual-gpus 1 --gpu_memory_limit 1M");
    assert_prints("device:GPU:0 would need ");
    assert_runs(1, SMALL "--num_batches 1 --virtual-gpus 1 --virtual-gpu-memory 2M --gpu_memory_fraction 0.5");
    assert_prints("its limit is 1048576");
    assert_runs(0, SMALL "--num_batches 1 --virtual-gpus 1 --gpu_memory_limit 1G --allow_growth");
}

/* ---- modes ------------------------------------------------------------------------------------------------------- */

static void all_modes_of_update_run_without_a_gpu(void **state)
{
    (void)state;
    static const char *const modes[] = {"parameter_server",       "replicated",           "independent",
                                        "distributed_replicated", "distributed_all_reduce", "collective_all_reduce",
                                        "local"};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_runs(0, "$T bench --model cifar10 --batch_size 1 --num_warmup_batches 1 --num_batches 1 --num_gpus 3 %s "
                       "--variable_update %s",
                    i % 2 ? "--virtual-gpus 3" : "--device cpu --num_intra_threads 1", modes[i]);
        report r = read_report(output);
        assert_true(r.total > 0);
    }
    assert_runs(0, SMALL "--num_batches 2 --variable_update horovod");
    assert_prints("horovod is for several processes; with one it is replicated");
    assert_runs(0, SMALL "--num_batches 3 --virtual-gpus 2 --num_gpus 2 --variable_update local --groups 1 "
                         "--meet_every 2");
    assert_runs(2, SMALL "--num_batches 1 --meet_every 2");
    assert_prints("--groups and --meet_every are about variable_update=local, not about parameter_server");
    assert_runs(0, SMALL "--num_batches 2 --virtual-gpus 2 --num_gpus 2 --staged_vars");
    assert_prints("Staged vars: True\n");
    assert_runs(0, SMALL "--num_batches 2 --virtual-gpus 2 --num_gpus 2 --variable_update replicated "
                         "--variable_consistency=relaxed --gradient_repacking=4 --compact_gradient_transfer bfloat16");
    assert_runs(0,
                SMALL "--num_batches 1 --virtual-gpus 3 --num_gpus 3 --variable_update replicated --hierarchical_copy");
    assert_prints("AllReduce:   hierarchical\n");
    assert_runs(0, SMALL "--num_batches 2 --virtual-gpus 2 --num_gpus 2 --gpu_indices=1,0 --forward_only=True");
    assert_prints("Devices:     ['/gpu:1', '/gpu:0']\n");
    assert_prints("Mode:        forward only\n");
}

/* ---- flags ------------------------------------------------------------------------------------------------------- */

static const char flags[] =
    "model eval eval_interval_secs eval_during_training_every_n_steps eval_during_training_every_n_epochs "
    "eval_during_training_at_specified_steps eval_during_training_at_specified_epochs forward_only "
    "freeze_when_forward_only print_training_accuracy batch_size eval_batch_size batch_group_size num_batches "
    "num_eval_batches num_epochs num_eval_epochs stop_at_top_1_accuracy collect_eval_results_async num_warmup_batches "
    "autotune_threshold num_gpus gpu_indices display_every display_perf_ewma "
    "data_dir data_name resize_method distortions use_datasets input_preprocessor datasets_repeat_cached_sample "
    "datasets_use_prefetch datasets_prefetch_buffer_size datasets_num_private_threads datasets_use_caching "
    "datasets_parallel_interleave_cycle_length datasets_sloppy_parallel_interleave "
    "datasets_parallel_interleave_prefetch multi_device_iterator_max_buffer_size fuse_decode_and_crop "
    "distort_color_in_yiq ml_perf "
    "device local_parameter_device data_format gpu_thread_mode per_gpu_thread_count num_intra_threads "
    "num_inter_threads use_numa_affinity mkl kmp_blocktime kmp_affinity kmp_settings "
    "variable_update all_reduce_spec hierarchical_copy network_topology gradient_repacking compact_gradient_transfer "
    "variable_consistency staged_vars agg_small_grads_max_bytes agg_small_grads_max_group allreduce_merge_scope "
    "sparse_to_dense_grads "
    "optimizer init_learning_rate piecewise_learning_rate_schedule num_epochs_per_decay learning_rate_decay_factor "
    "num_learning_rate_warmup_epochs minimum_learning_rate resnet_base_lr momentum rmsprop_decay rmsprop_momentum "
    "rmsprop_epsilon adam_beta1 adam_beta2 adam_epsilon gradient_clip weight_decay single_l2_loss_op "
    "loss_type_to_report compute_lr_on_cpu "
    "use_fp16 fp16_loss_scale fp16_vars fp16_enable_auto_loss_scale fp16_inc_loss_scale_every_n "
    "gpu_memory_frac_for_testing use_unified_memory timestamped_allocator gpu_kt_max_interval gpu_kt_max_bytes "
    "gpu_kt_max_pending force_gpu_compatible allow_growth "
    "use_tf_layers use_resource_vars winograd_nonfused batchnorm_persistent sync_on_finish xla xla_compile "
    "enable_optimizations rewriter_config tf_random_seed debugger use_python32_barrier trt_mode "
    "trt_max_workspace_size_bytes "
    "trace_file use_chrome_trace_format tfprof_file graph_file partitioned_graph_file_prefix summary_verbosity "
    "save_summaries_steps benchmark_log_dir benchmark_test_id "
    "train_dir eval_dir save_model_secs save_model_steps max_ckpts_to_keep backbone_model_path "
    "job_name ps_hosts worker_hosts controller_host task_index server_protocol cross_replica_sync horovod_device";

/* A flag without meaning is refused with its reason; one that is there says what it expected when its value is
 * nonsense, or complains about the next. */
static void every_flag_of_tf_cnn_benchmarks_is_there_or_answered_with_a_reason(void **state)
{
    (void)state;
    char list[sizeof flags];
    int refused = 0, understood = 0;
    memcpy(list, flags, sizeof flags);
    for (char *flag = strtok(list, " "); flag; flag = strtok(NULL, " ")) {
        assert_runs(2, "$T bench --%s= --no-such-flag", flag);
        if (strstr(output, "unknown option") && !strstr(output, "unknown option '--no-such-flag'"))
            fail_msg("--%s is not known: %s", flag, output);
        if (strstr(output, " is not supported because "))
            refused++;
        else
            understood++;
    }
    assert_true(understood >= 40);
    assert_int_equal(understood + refused, 137);
}

static void combinations_that_cannot_be_are_refused_in_known_words(void **state)
{
    (void)state;
    static const struct {
        const char *flags, *message;
    } refused[] = {
        {"--staged_vars --variable_update=replicated",
         "staged_vars for now is only supported with variable_update=parameter_server"},
        {"--device=cpu --data_format=NCHW", "device=cpu requires that data_format=NHWC"},
        {"--variable_update=horovod --num_gpus=2 --virtual-gpus 2", "Horovod benchmarks require num_gpus=1 on each worker"},
        {"--num_batches=1 --num_epochs=1", "At most one of --num_batches and --num_epochs may be specified."},
        {"--hierarchical_copy", "--hierarchical_copy requires --num_gpus to be greater than 1"},
        {"--hierarchical_copy --network_topology=gcp_v100 --num_gpus 2 --virtual-gpus 2",
         "--network_topology=gcp_v100 is not supported because its pairs of GPUs follow the wires of one machine"},
        {"--all_reduce_spec=collective", "'collective' at character 1 is not available"},
        {"--variable_consistency=relaxed", "--variable_consistency=relaxed is about replicas"},
        {"--inject tower=1,kind=nothing,ms=2", "--inject: expected something like tower=1,kind=compute,ms=20"},
        {"--gpu_indices=0,x --num_gpus 2 --virtual-gpus 2", "--gpu_indices: expected 2 numbers"},
        {"'--piecewise_learning_rate_schedule=0.1;2'", "--piecewise_learning_rate_schedule must have an odd number of components"},
        {"--num_epochs_per_decay=2", "belong together"},
        {"--fp16_loss_scale=8", "are about float16: --use_fp16"},
        {"--trace_file t.json --num_warmup_batches 0", "--num_warmup_batches is 0"},
        {"--batchsize 3", "did you mean '--batch-size'?"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_runs(2, "$T bench --model cifar10 %s", refused[i].flags);
        assert_prints(refused[i].message);
    }
}

static void rules_of_the_benchmarks_are_followed(void **state)
{
    (void)state;
    static const char *const rules[] = {
        "--optimizer=momentum '--piecewise_learning_rate_schedule=0.1;1;0.01;2;0.001' --gradient_clip=1",
        "--optimizer=rmsprop --init_learning_rate=0.01 --num_epochs_per_decay=2 --learning_rate_decay_factor=0.94 "
        "--minimum_learning_rate=0.0001 --num_learning_rate_warmup_epochs=1",
        "--optimizer=adam --adam_epsilon=1e-7 --init_learning_rate=0.001", "--use_fp16=True --fp16_loss_scale=64",
        "--use_fp16 --fp16_enable_auto_loss_scale --compact_gradient_transfer=True --num_gpus 2 --virtual-gpus 2"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        assert_runs(0, "$T bench --model cifar10 --batch_size 1 --num_warmup_batches 1 --num_batches 1 %s", rules[i]);
        read_report(output);
    }
}

static void files_are_written_where_they_were_asked_for(void **state)
{
    (void)state;
    assert_runs(0, "mkdir logs && " SMALL
                   "--num_batches 10 --trace_file t.json --graph_file g.pb --benchmark_log_dir logs "
                   "--benchmark_test_id nightly --train_dir saved");
    assert_runs(0, "head -c 100 t.json; test -s g.pb; cat logs/benchmark_run.log; cat logs/metric.log; ls saved");
    assert_prints("traceEvents");
    assert_prints("\"test_id\":\"nightly\"");
    assert_prints("\"name\":\"current_examples_per_sec\"");
    assert_prints("\"name\":\"average_examples_per_sec\"");
    assert_prints("model.ckpt-12.index");
    assert_runs(0, "rm logs/metric.log && ln -s /dev/full logs/metric.log");
    assert_runs(1, SMALL "--num_batches 1 --benchmark_log_dir logs");
    assert_prints("--benchmark_log_dir: cannot write 'logs/metric.log': No space left on device");
}

/* ---- where the time goes ----------------------------------------------------------------------------------------- */

static const char *const kinds[] = {"compute", "imbalance", "reduction", "copies", "input", "launch"};

static void table_of_all_modes_adds_up_to_a_hundred_percent(void **state)
{
    (void)state;
    assert_runs(0,
                "$T bench --model cifar10 --batch_size 2 --num_warmup_batches 1 --num_batches 1 --all --scaling strong "
                "--virtual-gpus 2 --num_gpus 2 --format json");
    int rows = 0;
    for (const char *row = strstr(output, "{\"variables\":"); row; row = strstr(row + 1, "{\"variables\":"), rows++) {
        double sum = 0;
        for (int k = 0; k < 6; k++)
            sum += number_behind(row, kinds[k]);
        if (fabs(sum - 100) > 1e-3)
            fail_msg("%.200s adds up to %g", row, sum);
        assert_true(number_behind(row, "images_per_sec") > 0);
        assert_true(number_behind(row, "batch_size") == 2);
    }
    assert_int_equal(rows, 15); /* ten modes on one device and on two; five of them only on two */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_that_of_tf_cnn_benchmarks_to_the_letter),
        cmocka_unit_test(numbers_are_what_their_names_say),
        cmocka_unit_test(accuracy_of_a_step_stands_behind_its_loss),
        cmocka_unit_test(memory_of_gpus_can_be_limited),
        unsanitized_test(all_modes_of_update_run_without_a_gpu),
        cmocka_unit_test(every_flag_of_tf_cnn_benchmarks_is_there_or_answered_with_a_reason),
        cmocka_unit_test(combinations_that_cannot_be_are_refused_in_known_words),
        cmocka_unit_test(rules_of_the_benchmarks_are_followed),
        cmocka_unit_test(files_are_written_where_they_were_asked_for),
        cmocka_unit_test(table_of_all_modes_adds_up_to_a_hundred_percent),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}

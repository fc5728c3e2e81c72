/* test_command_lines.c - what commands say of lines that they do not take, or that something stands in the way of, and
 * values that are typed: each a row. */
#include "program.h"

#include <ctype.h>
#include <tower/session.h>

typedef struct line {
    int code;
    const char *words, *says;
} line;

static void try_lines(const line *lines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int code = shell("$T %s", lines[i].words);
        if (code != lines[i].code || !strstr(output, lines[i].says))
            fail_msg("tower %s: exit code %d instead of %d, or not \"%s\": %s", lines[i].words, code, lines[i].code,
                     lines[i].says, output);
    }
}

#define TRY(lines) try_lines(lines, sizeof lines / sizeof *lines)

static void options_of_training_that_do_not_go_together_are_refused(void **state)
{
    static const line lines[] = {
        {2, "plan mnist --sync on --max-staleness 3", "--max-staleness is for --sync off"},
        {0, "plan mnist --sync off --max-staleness 3 --towers 2 --virtual-gpus 2", "2 towers of at most 1000 examples"},
        {2, "plan mnist --rate-steps 0", "--rate-steps: the first rate must be above 0"},
        {2, "plan mnist --rate-end 0.1", "--rate-end belongs to --schedule exponential, polynomial or cosine"},
        {2, "plan mnist --rate-power 2", "--rate-power belongs to --schedule polynomial"},
        {2, "plan mnist --schedule cosine", "--schedule needs --rate-length"},
        {0, "plan mnist --schedule exponential --rate-length 3 --rate-factor 0.5 --rate-end 0.01", "55 kernels"},
        {2, "plan mnist --loss-scale-every 5", "--loss-scale-every belongs to --loss-scale auto"},
        {2, "plan mnist --loss-scale 3e9", "expected auto or a number from 1 to 16777216"},
        {0, "plan mnist --dtype float16 --loss-scale auto --loss-scale-every 5", "1 tower"},
        {2, "plan mnist --dtype float16 --optimizer rmsprop --loss-scale auto --momentum 0.9", "add --beta1 0"},
        {2, "plan mnist --nesterov", "--nesterov belongs to --optimizer momentum"},
        {0, "plan mnist --weight-decay-of all --beta1 0.5", "1 tower"},
        {2, "plan mnist --learning-rate 1e9", "expected a number above 0 and at most 1000000"},
        {2, "plan mnist --variable-update auto", "--variable-update auto is for tower train"},
        {1, "plan mnist --variable-update local --local-parameter-device gpu", "with local each tower has all variables"},
        {2, "plan mnist --disable nonsense", "there is no rewrite 'nonsense'"},
        {2, "plan mnist --disable fuse,fus", "did you mean 'fuse'?"},
        {2, "plan mnist --tower-shares 1:x", "expected a part for each tower, such as 3:1, found '1:x'"},
        {2, "plan mnist --tower-shares 1:2:", "found '1:2:'"},
        {2, "plan mnist --gradient-bucket-bytes 100 --gradient-repacking 2", "give one of them"},
        {0, "plan mnist --gradient-bucket-bytes 0 --soft-budget 0", "1 tower"},
        {0, "plan mnist --virtual-gpus 2 --devices /gpu:0,gpu:1", "2 towers of 1000 examples"},
        {2, "plan mnist --compat estimator", "expected a residual network for CIFAR-10"},
        {2, "plan mnist --sync on --replay order.log", "--replay is for --sync off"},
        {2, "plan mnist --sync off --replay order.log --max-staleness 2", "leave out --max-staleness"},
        {2, "plan mnist --rate-steps '1;1;1;2;1;3;1;4;1;5;1;6;1;7;1;8;1;9;1;10;1;11;1;12;1;13;1;14;1;15;1;16;1;17;1'",
         "expected at most 17 rates"},
        {0, "plan mnist --rate-steps 0.1", "1 tower"},
        {2, "plan mnist --rate-steps '0.1;3'", "must have an odd number of components"},
        {2, "plan mnist --rate-steps '0.1;-3;1'", "found '0.1;-3;1'"},
        {2, "plan mnist --rate-steps '0.1;1e13;1'", "found '0.1;1e13;1'"},
        {2, "plan mnist --rate-steps '0.1 5'", "found '0.1 5'"},
        {2, "plan mnist --rate-steps ';'", "found ';'"},
        {2, "plan mnist --rate-steps 0.1 --learning-rate 1", "leave --learning-rate out"},
        {2, "plan mnist --rate-steps 0.1 --schedule cosine", "give one of them"},
        {2, "plan mnist --rate-length 5", "--rate-length belongs to --schedule"},
        {2, "plan mnist --schedule exponential --rate-length 5", "--rate-factor belong together"},
        {2, "plan mnist --schedule cosine --rate-length 5 --rate-power 2", "belongs to --schedule polynomial"},
        {0, "plan mnist --schedule polynomial --rate-length 5 --rate-power 2 --rate-end 0.01", "1 tower"},
        {2, "plan mnist --loss-scale 0.5", "found '0.5'"},
        {2, "plan mnist --loss-scale 128x", "found '128x'"},
        {2, "plan mnist --loss-scale x", "found 'x'"},
        {0, "plan mnist --optimizer adam --weight-decay 0.1 --decoupled-weight-decay 0.1", "1 tower"},
        {0, "plan mnist --decoupled-weight-decay 0.1", "1 tower"},
        {0, "plan mnist --optimizer momentum --nesterov", "1 tower"},
        {2, "plan mnist --tower-shares 0:1", "found '0:1'"},
        {2, "plan mnist --tower-shares 2000000:1", "found '2000000:1'"},
        {1, "plan mnist --tower-shares 1:2", "2 parts for 1 tower"},
        {2, "plan mnist --learning-rate 0", "found '0'"},
        {2, "plan mnist --learning-rate 1x", "found '1x'"},
        {2, "plan mnist --learning-rate nan", "found 'nan'"},
        {0, "plan mnist --disable all", "1 tower"},
        {0, "plan mnist --disable fuse,", "1 tower"},
        {2, "plan mnist --compat tutorial-prefetch", "expected the model cifar10"},
        {0, "plan cifar10 --compat tutorial-prefetch --batch-size 4", "1 tower of 4 examples"},
        {0, "plan resnet20 --batch-norm-decay 0.5 --batch-size 2", "1 tower of 2 examples"},
        {2, "plan mnist --batch-norm-decay 0.5", "the model mnist has no batch normalization"},
        {2, "plan mnist --devices gpu:0,,cpu:0", "expected names such as gpu:0,gpu:1"},
        {1, "plan mnist --devices nowhere", "Malformed device specification '/nowhere'"},
        {2, "plan mnist --num-gpus 1 --devices cpu:0", "give one of them"},
        {2, "plan mnist --gradient-bucket-bytes 100 --agg-small-grads-max-bytes 3", "give one of them"},
        {2, "plan mnist --batch-size ' 5'", "found ' 5'"},
        {2, "plan mnist --batch-size ''", "--batch-size: expected"},
        {2, "plan mnist --virtual-gpu-memory x", "expected bytes such as 512M"},
        {2, "plan mnist --virtual-gpu-memory -5", "found '-5'"},
        {2, "plan mnist --virtual-gpu-memory 1Mx", "found '1Mx'"},
        {2, "plan mnist --virtual-gpu-memory 1e30", "found '1e30'"},
        {2, "plan mnist --virtual-gpu-memory 1e999", "found '1e999'"},
        {2, "plan mnist --virtual-gpu-memory 0", "found '0'"},
        {0, "plan mnist --virtual-gpu-memory 64MiB --virtual-gpus 1 --batch-size 2", "1 tower of 2 examples"},
        {0, "plan mnist --virtual-gpu-memory 64MB --virtual-gpus 1 --batch-size 2", "1 tower of 2 examples"},
        {2, "plan mnist --batch_siz 3", "did you mean '--batch-size'?"},
        {0, "plan mnist --batch_size=3 --format json", "\"batch_size\":3"},
    };
    (void)state;
    TRY(lines);
}

/* No list in the program is written beside the library's own. */
static void every_rewrite_may_be_left_out_and_is_told_of(void **state)
{
    (void)state;
    shell("$T train --help");
    for (int i = 0; tw_rewrite_name(i); i++) {
        char word[40];
        snprintf(word, sizeof word, " %s", tw_rewrite_name(i));
        if (!strstr(strstr(output, "--disable"), word))
            fail_msg("--help: no%s among what --disable takes", word);
    }
    char list[400] = "";
    for (int i = 0; tw_rewrite_name(i); i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? "," : "", tw_rewrite_name(i));
    assert_int_equal(shell("$T plan mnist --disable %s", list), 0);
    assert_null(tw_rewrite_name(-1));
}

static void lines_of_a_benchmark_that_cannot_be_are_refused(void **state)
{
    static const line lines[] = {
        {0, "bench --model alexnet --data_name cifar10 --num_batches 1 --batch_size 1 --num-warmup-batches 0",
         "Model:       cifar10"},
        {2, "bench --model resnet50 --data_dir .", "takes images of ImageNet, which Tower does not read"},
        {1, "bench --num_gpus 3 --virtual-gpus 1", "--num_gpus 3: there are 1"},
        {2, "bench --worker_hosts a,b,c,d --task_index 0", "name 4 tasks, and 1 was started"},
        {2, "bench --gradient_repacking 2 --num_gpus 1", "--gradient_repacking requires --num_gpus to be greater than 1"},
        {2, "bench --hierarchical_copy", "--hierarchical_copy requires --num_gpus to be greater than 1"},
        {2, "bench --use_chrome_trace_format=False", "because traces are Chrome's"},
        {2, "bench --device=cpu --data_format NCHW", "device=cpu requires that data_format=NHWC"},
        {2, "bench --piecewise_learning_rate_schedule '0.1;3;0.2;2;0.1'", "epochs rise, but 2 comes after 3"},
        {2, "bench --piecewise_learning_rate_schedule '0.1;x'", "expected numbers with ';' between them"},
        {2, "bench --piecewise_learning_rate_schedule '0.1;3;0.2' --minimum_learning_rate 1",
         "says all about the rate"},
        {2, "bench --piecewise_learning_rate_schedule '0.1;3;0.2' --num_epochs_per_decay 1", "says all about the rate"},
        {2, "bench --piecewise_learning_rate_schedule '0.1;3;0.2' --learning_rate_decay_factor 1",
         "says all about the rate"},
        {2, "bench --piecewise_learning_rate_schedule '0.1;-3;0.2'", "found '0.1;-3;0.2'"},
        {2, "bench --piecewise_learning_rate_schedule '0.1 5'", "found '0.1 5'"},
        {2, "bench --num_epochs_per_decay 1", "belong together"},
        {2, "bench --num_epochs_per_decay 1 --learning_rate_decay_factor 0.5", "belong together"},
        {2, "bench --learning_rate_decay_factor 0.5", "belong together"},
        {2, "bench --fp16_loss_scale 5", "are about float16"},
        {2, "bench --fp16_enable_auto_loss_scale", "are about float16"},
        {2, "bench --gpu_indices -1,0 --num_gpus 2", "found '-1,0'"},
        {2, "bench --gpu_indices 0,1x --num_gpus 2", "found '0,1x'"},
        {2, "bench --gpu_indices 0 --num_gpus 2", "found '0'"},
        {2, "bench --gpu_indices 0,999999 --num_gpus 2", "found '0,999999'"},
        {2, "bench --gpu_indices ,1 --num_gpus 2", "found ',1'"},
        {2, "bench --inject tower=x,ms=20", "found 'tower=x,ms=20'"},
        {2, "bench --inject kind=imbalance,ms=1", "found 'kind=imbalance,ms=1'"},
        {2, "bench --inject kind=compute,ms=0", "found 'kind=compute,ms=0'"},
        {2, "bench --inject nonsense", "found 'nonsense'"},
        {0, "bench --num_batches 1 --batch_size 1 --num-warmup-batches 0 --optimizer rmsprop --rmsprop_momentum 0 "
            "--inject kind=copy,ms=1 --print_training_accuracy --format json --display_perf_ewma 0.5",
         "\"synthetic\":true"},
        {0, "bench --num_batches 2 --batch_size 1 --num-warmup-batches 0 --all --format json --train_dir timed",
         "\"scaling\":\"weak\""},
        {0, "bench --num_batches 1 --batch_size 1 --num-warmup-batches 0 --device gpu", "images/sec"},
        {2, "bench --inject kind=input", "expected something like tower=1,kind=compute,ms=20"},
        {2, "bench --gpu_indices 0,0,x --num_gpus 3", "expected 3 numbers with commas between them"},
        {2, "bench --groups 2", "are about variable_update=local"},
        {1, "bench --graph_file nowhere/g.pb --num_batches 1 --batch_size 1 --num-warmup-batches 0",
         "--graph_file: cannot write 'nowhere/g.pb'"},
        {0, "bench --num_batches 1 --batch_size 1 --num-warmup-batches 1 --momentum 0.5 --weight_decay 0.1 --optimizer "
            "momentum --inject kind=compute,ms=1", "images/sec"},
    };
    (void)state;
    TRY(lines);
}

static void what_is_not_there_is_named_by_each_command(void **state)
{
    static const line lines[] = {
        {1, "eval .", "there is no checkpoint in '.'"},
        {2, "predict . ", "expected IMAGE"},
        {2, "predict --train-dir .", "expected RUN"},
        {1, "export . x.pb", "there is no checkpoint in '.'"},
        {1, "checkpoint show .", "there is no checkpoint in '.'"},
        {1, "checkpoint verify .", "there is no checkpoint in '.'"},
        {1, "data info .", "no data set in '.'"},
        {2, "data fetch nonsense", "found 'nonsense'"},
        {2, "launch --tasks 2 -- mpirun x", "mpirun starts the tasks; tell it how many"},
        {1, "sweep nofile", "cannot read 'nofile'"},
        {1, "sweep .", "cannot read '.': Is a directory"},
        {1, "train mnist --config .", "cannot read '.': Is a directory"},
        {1, "report nowhere", "there is no directory 'nowhere'"},
        {1, "show nowhere", "cannot open 'nowhere'"},
        {1, "checkpoint ls nowhere", "cannot list 'nowhere'"},
        {2, "man train nowhere", "there is no command 'train nowhere'"},
        {1, "man --directory nowhere", "cannot write 'nowhere/tower.1'"},
        {2, "doctor nowhere", "unexpected word 'nowhere'"},
        {2, "completion", "expected SHELL"},
        {2, "launch", "expected COMMAND"},
        {2, "launch -n 1 -- nowhere", "cannot start 'nowhere'"},
        {2, "launch --elastic -- mpirun x", "expected -n and a number among the words of mpirun"},
        {2, "launch --tasks 2 -- mpiexec x", "starts the tasks; tell it how many"},
        {2, "launch --tasks 2 -- srun x", "starts the tasks; tell it how many"},
        {1, "launch -n 2 -- false", ""},
        {0, "launch -n 2 -- test -z ''", ""}, /* each word as it is */
        {2, "launch -n 1 -- ''", "cannot start ''"},
        {0, "plan mnist --tasks 2 --ps-hosts= --worker_hosts= --job_name '' --cpu-threads 1 --top 0", "2 towers of"},
        {0, "launch -n 3 -- $T plan mnist --batch-size 8 --cpu-threads 1 --top 0", "mnist: 3 towers of 8 examples"},
        {2, "launch -n 2 -- $T sweep rates.ini", "the 2 tasks that were started together are of one"},
        {2, "launch -n 2 --tasks 3 -- true", "-n says 2, and --tasks, which is the same option, 3"},
        {0, "launch -n 2 -n 3 --tasks=3 -np 3 -- true", ""},
        {1, "version > /dev/full", "cannot write to standard output"},
        {2, "report a b c d e f g h i j k l m n o p q", "expected at most 16 directories, found 17"},
        {1, "report . --output nowhere/r.html", "cannot write 'nowhere/r.html'"},
        {1, "why --graph nowhere x", "cannot open 'nowhere'"},
        {1, "train mnist --config /dev/zero", "'/dev/zero' has more than 100000 lines"},
        {1, "version && truncate -s 1T huge && $T show huge", "'huge' is larger than the 2147483647 bytes allowed"},
        {2, "man nonsense", "there is no command 'nonsense'"},
        {2, "completion nonsense", "expected one of bash, zsh, fish"},
        {2, "help nonsense", "there is no command 'nonsense'"},
        {0, "help data fetch", "download a data set"},
        {1, "why conv1/kernel mnist", "there is no node 'conv1/kernel'"},
        {1, "why Conv2D mnist", "did you mean 'tower_0/L1/conv2d/Conv2D', 'tower_0/L2/conv2d/Conv2D'"},
        {2, "data nonsense", "unknown command 'nonsense'"},
        {2, "--nonsense", "an option stands after the command"},
        {0, "devices --links --virtual-gpus 1", "GB/s"},
        {0, "devices --links --virtual-gpus 1 --format json", "\"bytes_per_second\":"},
    };
    (void)state;
    TRY(lines);
    assert_runs(0, "ulimit -S -n 24; $T launch -n 6 -- sh -c 'test $(ulimit -S -n) -eq 24'");
    assert_runs(143, "$T launch -n 1 -- sh -c 'kill -TERM $PPID; exec sleep 60'"); /* it had nothing to finish */
    assert_runs(0, "$T launch -n 1 --max-restarts 1 -- sh -c 'echo >> tries; exit 143'; "
                   "test $? -eq 143 && test $(wc -l < tries) -eq 1"); /* it was asked to stop */
    assert_runs(0, "printf '#!/bin/sh\necho \"$*\" >> starts\ntest $(wc -l < starts) -gt 1 || exit 75\n' > mpirun; "
                   "chmod +x mpirun; $T launch --max-restarts 1 --elastic -- ./mpirun -H a --ntasks=4 x; "
                   "test \"$(tail -n 1 starts)\" = '-H a --ntasks=3 x --resume'");
    /* What timeout has started is in its process group, not in the task's. */
    assert_runs(143, "$T launch -n 1 -- sh -c 'timeout 600 sh -c \"trap \\\"touch heard; exit\\\" TERM; kill -TERM \\$0; "
                     "for i in \\$(seq 600); do sleep 0.1; done\" $PPID; exit 0'; test $? -eq 143 && "
                     "for i in $(seq 600); do test -e heard && exit 143; sleep 0.1; done"); /* it may be told last */
    assert_runs(7, "$T launch -n 1 -- sh -c 'trap \"exit 7\" USR1; kill -USR1 $PPID; "
                   "for i in $(seq 600); do sleep 0.1; done'");
}

#define TRAIN "train mnist --data-set synthetic --batch-size 4 --format json "

static void training_tells_programs_what_it_chose_and_what_went_wrong(void **state)
{
    static const line lines[] = {
        {0, TRAIN "--train-dir chosen --max-steps 1 --variable-update auto --virtual-gpus 2",
         "\"event\":\"variable_update\""},
        {1, TRAIN "--train-dir diverged --max-steps 4 --learning-rate 1e6 --on-divergence rollback:1",
         "\"event\":\"rollback\""},
        {0, TRAIN "--train-dir local --max-steps 2 --variable-update local --virtual-gpus 2 --groups 2 --meet-every 1",
         "\"groups\":2"},
    };
    (void)state;
    TRY(lines);
}

/* A graph that gives what it is fed, of each type. */
static void write_identities(void)
{
    static const char *const types[] = {"complex64", "complex128", "uint64", "int32", "string", "variant",
                                        "resource", "half"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", directory, types[i]);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_");
        for (const char *at = types[i]; *at; at++)
            fputc(toupper((unsigned char)*at), file);
        fprintf(file, " } } }\nnode { name: 'y' op: 'Identity' input: 'x' }\n");
        fclose(file);
    }
}

static void what_was_trained_is_shown_and_written(void **state)
{
    static const line lines[] = {
        {2, "export chosen a.b/c.d", "expected a name that ends in .pb"},
        {0, "export chosen frozen.pb", "a frozen graph of"},
        {1, "export chosen frozen.pb", "--overwrite replaces it"},
        {0, "export chosen frozen.pb --overwrite --raw", "a frozen graph of"},
        {1, "export chosen nowhere/frozen.pb", "cannot write 'nowhere/frozen.pb'"},
        {0, "export chosen arrays.npz", "arrays; numpy.load"},
        {1, "export chosen nowhere/arrays.npz", "cannot write 'nowhere/arrays.npz': No such file or directory"},
        {1, "export chosen full.npz --overwrite", "cannot write 'full.npz': No space left on device"},
        {1, "export chosen frozen.pb/model", "cannot make directory 'frozen.pb'"},
        {0, "export chosen model", "a SavedModel"},
        {1, "predict chosen frozen.pb", "'frozen.pb' is neither a JPEG nor a PNG"},
        {1, "predict chosen nowhere.png --format json", "cannot open 'nowhere.png'"},
        {1, "checkpoint show chosen --tensor nowhere", "has no tensor 'nowhere'"},
        {0, "checkpoint show chosen --tensor tower/model", "mnist"},
        {0, "checkpoint show chosen --tensor tower/model --format json", "mnist"},
        {0, "checkpoint verify chosen --format json", "\"whole\":true"},
        {1, "checkpoint ls frozen.pb", "cannot list 'frozen.pb'"},
        {0, "report chosen/", "chosen/report.html"},
        {0, "report chosen --output -", "<!DOCTYPE html>"},
        {1, "report frozen.pb", "Not a directory"},
        {1, "report chosen --output /dev/full", "cannot write '/dev/full'"},
        {0, "why images --graph frozen.pb", "what the run brings"},
        {0, "why logits --graph frozen.pb", "memory that is there already"},
        {0, "why probabilities --graph frozen.pb --format json", "\"op\":\"Softmax\""},
        {0, "show chosen", " nodes of "},
        {1, "show arrays.npz", "Invalid MetaGraphDef"},
        {1, "train mnist --data-set synthetic --max-steps 9 --train-dir chosen", "--resume continues it"},
        {1, "train mnist --data-set synthetic --train-dir frozen.pb", "cannot write 'frozen.pb/lock'"},
        {1, "train mnist --data-set synthetic --train-dir dangling", "directory 'dangling': File exists"},
        {1, "train mnist --data-set synthetic --trace /dev/full --train-dir other", "expected a file to write"},
        {2, "train --resume --train-dir nowhere", "expected MODEL"},
    };
    assert_runs(0, "ln -s /dev/full full.npz");
    (void)state;
    assert_runs(0, "ln -s to/nothing dangling");
    TRY(lines);
}

static void values_that_are_typed_are_what_they_say(void **state)
{
    static const line lines[] = {
        {0, "run complex64 --fetch y --feed x=1-2j", "y = 1-2j"},
        {0, "run complex64 --fetch y --feed x=3j", "y = 0+3j"},
        {0, "run complex64 --fetch y --feed x=nan+1j", "y = nan+1j"},
        {0, "run complex64 --fetch y --feed 'x=[2.5,1+1j]'", "2.5+0j 1+1j"},
        {2, "run complex64 --fetch y --feed x=1+2", "expected a number as 1.5, 2j or 1.5-2j"},
        {2, "run complex64 --fetch y --feed x=1e400+1j", "found '1e400+1j'"},
        {2, "run complex64 --fetch y --feed x=1+jj", "found '1+jj'"},
        {2, "run complex64 --fetch y --feed x=z", "found 'z'"},
        {2, "run complex64 --fetch y --feed x=1e39+1j", "found '1e39+1j'"},
        {2, "run complex64 --fetch y --feed x=1+1e39j", "found '1+1e39j'"},
        {2, "run complex64 --fetch y --feed x=1+1e400j", "found '1+1e400j'"},
        {2, "run complex64 --fetch y --feed x=", "found ''"},
        {0, "run complex128 --fetch y --feed x=inf-nanj", "y = inf+nanj"},
        {2, "run half --fetch y --feed x=1e6", "found '1e6'"},
        {0, "run half --fetch y --feed x=65504 --steps 12 --print-every 5", "step 12: y = 65504"},
        {2, "run resource --fetch y --feed x=1", "values of this type cannot be typed"},
        {2, "run int32 --fetch y --feed x=[$(printf %0600d 1)]", "found 600 characters"},
        {2, "run int32 --fetch y --feed zzzzzzzzzzzz=1", "the graph has no node 'zzzzzzzzzzzz'"},
        {2, "run int32 --fetch y --feed x:0=1 --feed x=2", "'x' is fed twice"},
        {2, "run int32 --fetch y --feed 'x=[1,2'", "expected ']' at the end of a list"},
        {2, "run int32 --fetch y --feed 'x=[[1],2]'", "a number stands beside a list"},
        {2, "run int32 --fetch y --feed 'x=[1]]'", "expected nothing behind the list"},
        {0, "run int32 --fetch y --feed 'x=[]'", "y = [0]"},
        {2, "run int32 --fetch y --feed x=@/dev/null", "found ''"},
        {2, "run int32 --fetch y --feed x=@.", "cannot read '.'"},
        {2, "run int32 --feed x=1", "nothing to run"},
        {2, "run int32 --target nowhere --feed x=1", "the graph has no node 'nowhere'"},
        {2, "run int32 --fetch y --init nowhere --feed x=1", "the graph has no node 'nowhere'"},
        {1, "run int32 --fetch y --feed x=1 --restore nowhere", "there is no checkpoint 'nowhere'"},
        {1, "run int32 --fetch y --feed x=1 --save /dev/full", "cannot make directory '/dev/full'"},
        {1, "run int32 --fetch y --feed x=1 --summaries /dev/full", "cannot make directory '/dev/full'"},
        {1, "run int32 --fetch y=/dev/full --feed x=1", "cannot write '/dev/full'"},
        {1, "run int32 --fetch y --feed x=1 >/dev/full", "standard output: No space left on device"},
        {1, "run string --fetch y=/dev/full --feed x=1", "cannot write '/dev/full'"},
        {0, "run string --fetch y=text --feed x=1", "text: y, string []"},
        {1, "run string --fetch y=texts.npy --feed 'x=[1,2]'", "NumPy has no type string"},
        {0, "run string --fetch y --feed 'x=\"'", "y = '\"'"},
        {0, "run string --fetch y --feed 'x=\"ab'", "y = '\"ab'"},
        {2, "run string --fetch y --feed 'x=[\"a\\'", "expected a quote at the end of a text"},
        {0, "run string --fetch y --feed 'x=\"a\\u007fb\"'", "'a\\x7fb'"},
        {0, "run string --fetch y --feed x=@int32", "DT_INT32"},
        {0, "run complex128 --fetch y --feed x=1+2j --format json", "\"y\":[1,2]"},
        {0, "run uint64 --fetch y --feed x=18446744073709551615", "y = 18446744073709551615"},
        {0, "run string --fetch y --feed 'x=\"a\\u00e9\\n\\\\b\"'", "\\x0a"},
        {0, "run string --fetch y --feed 'x=\"a\\uzz\"'", "'auzz'"},
        {2, "run string --fetch y --feed 'x=[\"a\",\"b'", "expected a quote at the end of a text"},
        {2, "run variant --fetch y --feed x=1", "values of this type cannot be typed"},
        {2, "run int32 --fetch y --feed x=@nowhere.npy", "cannot open 'nowhere.npy'"},
        {2, "run int32 --fetch y --feed y:7=1", "'y' has 1 outputs, so there is no 'y:7'"},
        {2, "run int32 --fetch y:4 --feed x=1", "there is no 'y:4'"},
        {2, "run int32 --fetch y --feed x=1 --signature serving", "--signature: the graph has no 'serving'"},
        {2, "run int32 --fetch y --feed x=1 --train-for 2", "the graph has no collection 'train_op'"},
        {0, "run int32 --fetch y --feed x=1 --summaries events", "its picture is written alone"},
        {1, "run int32 --fetch y=nowhere/y.npy --feed x=1", "nowhere/y.npy"},
    };
    (void)state;
    write_identities();
    TRY(lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_of_training_that_do_not_go_together_are_refused),
        cmocka_unit_test(every_rewrite_may_be_left_out_and_is_told_of),
        cmocka_unit_test(lines_of_a_benchmark_that_cannot_be_are_refused),
        cmocka_unit_test(what_is_not_there_is_named_by_each_command),
        cmocka_unit_test(training_tells_programs_what_it_chose_and_what_went_wrong),
        cmocka_unit_test(what_was_trained_is_shown_and_written),
        cmocka_unit_test(values_that_are_typed_are_what_they_say),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}

/* test_command_lines.c - what commands say of lines that they do not take, or that something stands in the way of, and
 * values that are typed: each a row. */
#include "program.h"

#include <ctype.h>

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
        {2, "plan mnist --batch_siz 3", "did you mean '--batch-size'?"},
        {0, "plan mnist --batch_size=3 --format json", "\"batch_size\":3"},
    };
    (void)state;
    TRY(lines);
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
        {2, "sweep nofile", "cannot read 'nofile'"},
        {2, "report a b c d e f g h i j k l m n o p q", "expected at most 16 directories, found 17"},
        {1, "report . --output nowhere/r.html", "cannot write 'nowhere/r.html'"},
        {1, "why --graph nowhere x", "cannot read 'nowhere'"},
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
    static const char *const types[] = {"complex64", "complex128", "uint64", "int32", "string", "variant"};
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
        cmocka_unit_test(lines_of_a_benchmark_that_cannot_be_are_refused),
        cmocka_unit_test(what_is_not_there_is_named_by_each_command),
        cmocka_unit_test(training_tells_programs_what_it_chose_and_what_went_wrong),
        cmocka_unit_test(values_that_are_typed_are_what_they_say),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}

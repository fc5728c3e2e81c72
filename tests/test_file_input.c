/* test_file_input.c - the CIFAR-10 tutorial's input as nodes of a trainer's graph: what it reads, how it ends, what is
 * refused. label: threads */
#define _GNU_SOURCE
#include "testing.h"
#include "faulty_files.h"
#include "small_model.h"

#include <tower/explain.h>
#include <tower/models.h>
#include <tower/queue.h>
#include <unistd.h>

/* ---- files ------------------------------------------------------------------------------------------------------- */

enum { RECORD = 3073, RECORDS = 40, EXAMPLES = 5 * RECORDS, SIDE = 24, PIXELS = SIDE * SIDE * 3, BATCH = 2 };

/* As several are needed at once. */
static void make_folder(char path[256])
{
    snprintf(path, 256, "%s", scratch_folder());
}

static char *path_of_file(const char *folder, int i, char path[600])
{
    snprintf(path, 600, "%s/data_batch_%d.bin", folder, i);
    return path;
}

/* Five files of made-up records. */
static void write_files(const char *folder)
{
    static unsigned char bytes[RECORDS * RECORD];
    unsigned number = 1;
    for (int i = 1; i <= 5; i++) {
        char path[600];
        for (int k = 0; k < RECORDS * RECORD; k++)
            bytes[k] = (unsigned char)((number = number * 1664525 + 1013904223) >> 24);
        for (int k = 0; k < RECORDS; k++)
            bytes[k * RECORD] %= 10;
        FILE *file = fopen(path_of_file(folder, i, path), "wb");
        assert_int_equal(fwrite(bytes, 1, sizeof bytes, file), sizeof bytes);
        fclose(file);
    }
}

static void remove_files(const char *folder)
{
    char path[600];
    for (int i = 1; i <= 5; i++)
        unlink(path_of_file(folder, i, path));
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

typedef struct run {
    char folder[256]; /* of the files */
    tw_dataset *dataset;
    tw_devices *devices;
    tw_trainer *trainer;
} run;

static run open_files(int gpus)
{
    run r = {.folder = ""};
    tw_error error = {0};
    make_folder(r.folder);
    write_files(r.folder);
    assert_ok(tw_dataset_load("cifar10", r.folder, TW_SPLIT_TRAIN, &(tw_dataset_options){.allow_fewer = true},
                              &r.dataset, &error));
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .virtual_gpus = gpus}, &r.devices, &error));
    return r;
}

static tw_status create(run *r, tw_trainer_options options, tw_error *error)
{
    options.model = options.model ? options.model : small_model("cifar10");
    options.dataset = r->dataset;
    options.devices = r->devices;
    options.batch = options.global_batch ? 0 : BATCH;
    options.seed = 7;
    options.size = sizeof options;
    return tw_trainer_create(&options, &r->trainer, error);
}

static run start(tw_trainer_input input, int towers, const char *resume_from)
{
    tw_error error = {0};
    run r = open_files(towers);
    assert_ok(create(&r, (tw_trainer_options){.input = input, .towers = towers, .as_tutorial = true,
                                              .resume_from = resume_from}, &error));
    return r;
}

static void step(run *r, int steps)
{
    tw_error error = {0};
    tw_trainer_step_result result;
    for (int i = 0; i < steps; i++) {
        assert_ok(tw_trainer_step(r->trainer, &result, &error));
        assert_true(isfinite(result.loss));
    }
}

static void close_files(run *r)
{
    tw_dataset_destroy(r->dataset);
    tw_devices_destroy(r->devices);
    remove_scratch(r->folder);
}

static void finish(run *r)
{
    tw_trainer_destroy(r->trainer);
    close_files(r);
}

static const tw_node *find(const run *r, const char *name)
{
    const tw_node *node = tw_graph_find(tw_trainer_graph(r->trainer), name);
    if (!node)
        fail_msg("there is no node '%s'", name);
    return node;
}

/* ---- what it is -------------------------------------------------------------------------------------------------- */

static void each_tower_has_the_tutorials_queues_with_its_threads(void **state)
{
    (void)state;
    run r = start(TW_INPUT_FILES, 2, NULL);
    const tw_node *queue = find(&r, "tower_1/shuffle_batch/random_shuffle_queue");
    int runners = tw_get_collection(tw_trainer_graph(r.trainer), "queue_runners", NULL, NULL, 0);
    assert_int_equal(tw_node_attr(queue, "min_after_dequeue")->i, EXAMPLES * 4 / 10);
    assert_int_equal(tw_node_attr(queue, "capacity")->i, EXAMPLES * 4 / 10 + 3 * BATCH);
    assert_string_equal(tw_node_op(find(&r, "tower_0/data_augmentation/FixedLengthRecordReaderV2")),
                        "FixedLengthRecordReaderV2");
    assert_int_equal(runners, 2 * (3 + 1 + 3 + 16)); /* a queue and two nodes to close it, then one for each thread */
    assert_int_equal(tw_trainer_input_place(r.trainer), TW_INPUT_ON_HOST);
    step(&r, 2);
    finish(&r);
}

static void one_prefetch_queue_serves_all_towers(void **state)
{
    (void)state;
    run r = start(TW_INPUT_FILES_PREFETCH, 2, NULL);
    const tw_node *queue = find(&r, "prefetch_queue/fifo_queue");
    assert_int_equal(tw_node_attr(queue, "capacity")->i, 2 * 2);
    find(&r, "tower_0/fifo_queue_Dequeue");
    find(&r, "tower_1/fifo_queue_Dequeue");
    assert_null(tw_graph_find(tw_trainer_graph(r.trainer), "tower_0/input_producer"));
    step(&r, 3);
    finish(&r);
}

/* Without distortions an example is the middle of a record, as the pipeline makes it. */
static void examples_are_those_of_the_files_with_their_labels(void **state)
{
    (void)state;
    static float expected[EXAMPLES * PIXELS];
    static int32_t labels[EXAMPLES];
    tw_error error = {0};
    run r = open_files(0);
    tw_model model = *small_model("cifar10");
    tw_pipeline *pipeline;
    model.training = model.evaluation;
    assert_ok(tw_pipeline_create(r.dataset, &(tw_pipeline_options){.batch = EXAMPLES, .augmentation = model.training},
                                 &pipeline, &error));
    assert_ok(tw_pipeline_next(pipeline, 0, expected, labels, &error));
    tw_pipeline_destroy(pipeline);
    assert_ok(create(&r, (tw_trainer_options){.model = &model, .input = TW_INPUT_FILES, .towers = 1}, &error));
    tw_output outputs[] = {{(tw_node *)find(&r, "tower_0/shuffle_batch"), 0},
                           {(tw_node *)find(&r, "tower_0/Reshape"), 0}};
    bool seen[EXAMPLES] = {false};
    int different = 0;
    for (int k = 0; k < 20; k++) {
        tw_tensor *values[2] = {NULL};
        assert_ok(tw_session_run(tw_trainer_session(r.trainer), NULL, 0, outputs, 2, values, &error));
        for (int b = 0; b < BATCH; b++) {
            const float *image = (const float *)tw_tensor_data(values[0]) + b * PIXELS;
            int which = 0;
            while (which < EXAMPLES && fabsf(image[0] - expected[which * PIXELS]) + fabsf(image[PIXELS - 1] -
                                       expected[(which + 1) * PIXELS - 1]) > 1e-4)
                which++;
            assert_true(which < EXAMPLES);
            assert_floats_near(image, expected + which * PIXELS, PIXELS, 1e-4);
            assert_int_equal(((const int32_t *)tw_tensor_data(values[1]))[b], labels[which]);
            different += !seen[which];
            seen[which] = true;
        }
        tw_tensor_release(values[0]);
        tw_tensor_release(values[1]);
    }
    assert_true(different > 20); /* of 40 drawn from 80 of 200 and more */
    finish(&r);
}

/* A piece, by chance mirrored; brightness before contrast. */
static void distortions_are_the_tutorials_in_its_order(void **state)
{
    (void)state;
    static const char prefix[] = "tower_0/data_augmentation/",
                      expected[] = " RandomUniformInt Slice RandomUniform ReverseV2 RandomUniform RandomUniform "
                                   "AdjustContrastv2 ";
    char ops[sizeof expected + 40] = " ";
    run r = start(TW_INPUT_FILES, 1, NULL);
    const tw_graph *g = tw_trainer_graph(r.trainer);
    for (int i = 0; i < tw_graph_num_nodes(g); i++) {
        char op[40];
        const tw_node *node = tw_graph_node(g, i);
        snprintf(op, sizeof op, " %s ", tw_node_op(node));
        if (strncmp(tw_node_name(node), prefix, strlen(prefix)) == 0 && strstr(expected, op))
            snprintf(ops + strlen(ops), sizeof ops - strlen(ops), "%s", op + 1);
    }
    assert_string_equal(ops, expected);
    finish(&r);
}

static void curves_of_the_queues_are_among_the_summaries(void **state)
{
    (void)state;
    static const char *const tags[] = {"tower_0/input_producer/fraction_of_32_full",
                                       "tower_0/shuffle_batch/fraction_over_80_of_6_full", "images/image/0"};
    tw_error error = {0};
    run r = start(TW_INPUT_FILES, 1, NULL);
    char folder[256];
    make_folder(folder);
    tw_event_writer *events;
    tw_trainer_step_result result;
    char path[4200];
    assert_ok(tw_event_writer_create(folder, &events, &error));
    assert_ok(tw_trainer_step_with_summaries(r.trainer, events, &result, &error));
    snprintf(path, sizeof path, "%s", tw_event_writer_path(events));
    assert_ok(tw_event_writer_close(events, &error));
    size_t size;
    char *bytes = read_whole(path, &size);
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (!memmem(bytes, size, tags[i], strlen(tags[i])))
            fail_msg("the event log has no '%s'", tags[i]);
    free(bytes);
    remove_scratch(folder);
    finish(&r);
}

/* ---- going on ---------------------------------------------------------------------------------------------------- */

static void a_checkpoint_is_saved_beside_the_threads_and_gone_on_from(void **state)
{
    (void)state;
    tw_error error = {0};
    char folder[256];
    make_folder(folder);
    run r = start(TW_INPUT_FILES_PREFETCH, 2, NULL);
    for (int i = 0; i < 3; i++) {
        step(&r, 1);
        assert_ok(tw_trainer_save(r.trainer, folder, 1, &error));
    }
    finish(&r);
    r = start(TW_INPUT_FILES_PREFETCH, 2, folder);
    assert_int_equal(tw_trainer_steps_done(r.trainer), 3);
    step(&r, 1);
    finish(&r);
    remove_scratch(folder);
}

/* What the trainer wrote is a program by itself. */
static void the_meta_graph_beside_a_checkpoint_trains_on_by_itself(void **state)
{
    (void)state;
    tw_error error = {0};
    char folder[256];
    make_folder(folder);
    char path[600];
    run r = start(TW_INPUT_FILES, 1, NULL);
    step(&r, 2);
    assert_ok(tw_trainer_save(r.trainer, folder, 1, &error));
    tw_trainer_destroy(r.trainer);
    tw_graph *g = tw_graph_create();
    tw_session *s;
    tw_coordinator *c;
    tw_checkpoint *checkpoint;
    tw_output train;
    tw_tensor *count;
    snprintf(path, sizeof path, "%s/model.ckpt-1.meta", folder);
    assert_ok(tw_graph_load(g, path, NULL, NULL, &error));
    assert_int_equal(tw_get_collection(g, "train_op", NULL, &train, 1), 1);
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = r.devices}, &s, &error));
    snprintf(path, sizeof path, "%s/model.ckpt-1", folder);
    assert_ok(tw_checkpoint_open(path, &checkpoint, &error));
    assert_ok(tw_restore(s, checkpoint, NULL, NULL, &error));
    tw_checkpoint_close(checkpoint);
    assert_ok(tw_coordinator_create(&c, &error));
    assert_ok(tw_start_queue_runners(s, c, &error));
    train.index = -1;
    for (int i = 0; i < 3; i++)
        assert_ok(tw_session_run(s, NULL, 0, &train, 1, NULL, &error));
    assert_ok(tw_session_get_variable(s, tw_graph_find_variable(g, "global_step"), &count, &error));
    assert_int_equal((int)tw_tensor_value(count, 0), 5);
    tw_tensor_release(count);
    tw_coordinator_destroy(c);
    tw_session_destroy(s);
    tw_graph_destroy(g);
    close_files(&r);
    remove_scratch(folder);
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

static void a_trainer_ends_at_once_whatever_its_threads_wait_for(void **state)
{
    (void)state;
    for (int steps = 0; steps < 3; steps++) {
        run r = start(steps % 2 ? TW_INPUT_FILES : TW_INPUT_FILES_PREFETCH, 2, NULL);
        step(&r, steps);
        finish(&r);
    }
}

static void files_that_go_away_end_training_by_their_name(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_trainer_step_result result;
    tw_status status = TW_OK;
    run r = start(TW_INPUT_FILES, 1, NULL);
    step(&r, 1);
    remove_files(r.folder);
    for (int i = 0; i < EXAMPLES && status == TW_OK; i++) /* what is in the queue and of the open file may come first */
        status = tw_trainer_step(r.trainer, &result, &error);
    assert_int_equal(status, TW_NOT_FOUND);
    assert_message(error.message, "data_batch_");
    finish(&r);
    r = open_files(0);
    remove_files(r.folder);
    assert_fails(create(&r, (tw_trainer_options){.input = TW_INPUT_FILES}, &error), TW_NOT_FOUND, "data_batch_1.bin");
    close_files(&r);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static void what_has_no_such_files_is_refused(void **state)
{
    (void)state;
    tw_error error = {0};
    run r = open_files(2);
    tw_dataset *files = r.dataset, *some, *synthetic;
    assert_ok(tw_dataset_load("cifar10", r.folder, TW_SPLIT_TRAIN,
                              TW_OPTIONS(tw_dataset_options, .allow_fewer = true, .hold_back = 50), &some, &error));
    assert_ok(tw_dataset_synthetic(20, 32, 32, 3, 10, 5, &synthetic, &error));
    r.dataset = some;
    assert_fails(create(&r, (tw_trainer_options){.input = TW_INPUT_FILES}, &error), TW_INVALID_ARGUMENT,
                 "data set cifar10 has 150 examples, its files 200");
    r.dataset = synthetic;
    assert_fails(create(&r, (tw_trainer_options){.input = TW_INPUT_FILES}, &error), TW_INVALID_ARGUMENT,
                 "data set synthetic: expected one in files of CIFAR-10's binary version");
    r.dataset = files;
    assert_fails(create(&r, (tw_trainer_options){.model = tw_model_find("resnet20"), .input = TW_INPUT_FILES}, &error),
                 TW_INVALID_ARGUMENT, "model resnet20: ");
    assert_fails(create(&r, (tw_trainer_options){.input = TW_INPUT_FILES, .updates = TW_UPDATES_ASYNCHRONOUS}, &error),
                 TW_INVALID_ARGUMENT, "queues hand batches to towers that step together");
    assert_fails(create(&r, (tw_trainer_options){.input = TW_INPUT_FILES_PREFETCH, .towers = 2, .global_batch = 5}, &error),
                 TW_INVALID_ARGUMENT, "batches of one queue for all towers are of one size");
    tw_dataset_destroy(some);
    tw_dataset_destroy(synthetic);
    close_files(&r);
}

static void a_divergence_is_not_looked_for_where_batches_do_not_come_again(void **state)
{
    (void)state;
    tw_error error = {0}, found;
    run r = open_files(0);
    tw_trainer_options options = {.model = small_model("cifar10"), .dataset = r.dataset, .devices = r.devices,
                                  .batch = BATCH, .input = TW_INPUT_FILES};
    assert_fails(tw_trainer_find_divergence(&options, 0, 1, &found, &error), TW_UNIMPLEMENTED, "do not come again");
    close_files(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_tower_has_the_tutorials_queues_with_its_threads),
        cmocka_unit_test(one_prefetch_queue_serves_all_towers),
        cmocka_unit_test(examples_are_those_of_the_files_with_their_labels),
        cmocka_unit_test(distortions_are_the_tutorials_in_its_order),
        cmocka_unit_test(curves_of_the_queues_are_among_the_summaries),
        cmocka_unit_test(a_checkpoint_is_saved_beside_the_threads_and_gone_on_from),
        cmocka_unit_test(the_meta_graph_beside_a_checkpoint_trains_on_by_itself),
        cmocka_unit_test(a_trainer_ends_at_once_whatever_its_threads_wait_for),
        cmocka_unit_test(files_that_go_away_end_training_by_their_name),
        cmocka_unit_test(what_has_no_such_files_is_refused),
        cmocka_unit_test(a_divergence_is_not_looked_for_where_batches_do_not_come_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

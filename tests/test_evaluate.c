/* What a checkpoint is worth (tw_score), and a network as a graph of constants (tw_freeze). */
#include "testing.h"

#include <math.h>
#include <tower/models.h>
#include <tower/nn.h>
#include <unistd.h>

enum { EXAMPLES = 37, CLASSES = 10 };

static char folder[64];
static tw_dataset *data;

static int train_a_little(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    tw_trainer *trainer;
    tw_trainer_step_result result;
    snprintf(folder, sizeof folder, "/tmp/test_evaluate_XXXXXX");
    if (!mkdtemp(folder) || tw_dataset_synthetic(EXAMPLES, 32, 32, 3, CLASSES, 5, &data, &error) != TW_OK ||
        tw_devices_create(TW_OPTIONS(tw_device_options, .virtual_gpus = 1), &devices, &error) != TW_OK ||
        tw_trainer_create(TW_OPTIONS(tw_trainer_options, .model = tw_model_find("cifar10"), .dataset = data,
                                     .devices = devices, .batch = 8),
                          &trainer, &error) != TW_OK ||
        tw_trainer_run_steps(trainer, 3, &result, &error) != TW_OK ||
        tw_trainer_save(trainer, folder, 0, &error) != TW_OK) {
        print_message("%s\n", error.message);
        return -1;
    }
    tw_trainer_destroy(trainer);
    tw_devices_destroy(devices);
    return 0;
}

static int clean_up(void **state)
{
    (void)state;
    char command[128];
    tw_dataset_destroy(data);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static tw_scores *score_on(int gpus, int batch, float *probabilities)
{
    static const char *const names[] = {"/gpu:0", "/gpu:1", "/gpu:2"};
    tw_error error = {0};
    tw_devices *devices;
    tw_scores *scores;
    assert_ok(tw_devices_create(TW_OPTIONS(tw_device_options, .virtual_gpus = gpus), &devices, &error));
    assert_ok(tw_score(tw_model_find("cifar10"), data, folder, devices,
                       TW_OPTIONS(tw_evaluation_options, .batch = batch, .tower_devices = names,
                                  .num_tower_devices = gpus, .probabilities = probabilities),
                       &scores, &error));
    tw_devices_destroy(devices);
    return scores;
}

static void scores_do_not_depend_on_the_number_of_devices(void **state)
{
    (void)state;
    tw_scores *one = score_on(1, 10, NULL), *three = score_on(3, 10, NULL);
    assert_int_equal(one->examples, EXAMPLES);
    assert_int_equal(one->step, 3);
    assert_int_equal(one->correct, three->correct);
    assert_int_equal(one->correct_5, three->correct_5);
    assert_true(one->loss == three->loss && one->loss > 0);
    assert_memory_equal(one->confusion, three->confusion, CLASSES * CLASSES * sizeof *one->confusion);
    tw_scores_destroy(one);
    tw_scores_destroy(three);
}

static void each_example_stands_once_in_the_confusion_matrix(void **state)
{
    (void)state;
    int64_t counts[CLASSES], all = 0, hits = 0;
    tw_scores *scores = score_on(2, 4, NULL);
    tw_dataset_info(data, counts, NULL, NULL);
    assert_int_equal(scores->classes, CLASSES);
    for (int c = 0; c < CLASSES; c++) {
        int64_t row = 0;
        for (int k = 0; k < CLASSES; k++)
            row += scores->confusion[c * CLASSES + k];
        assert_int_equal(row, counts[c]);
        all += row;
        hits += scores->confusion[c * CLASSES + c];
    }
    assert_int_equal(all, EXAMPLES);
    assert_int_equal(hits, scores->correct);
    assert_true(scores->correct_5 >= scores->correct);
    tw_scores_destroy(scores);
}

static void probabilities_are_those_of_each_example(void **state)
{
    (void)state;
    static float by_ten[EXAMPLES * CLASSES], by_three[EXAMPLES * CLASSES];
    double loss = 0;
    tw_scores *scores = score_on(1, 10, by_ten), *again = score_on(2, 3, by_three);
    for (int i = 0; i < EXAMPLES; i++) {
        double sum = 0;
        for (int c = 0; c < CLASSES; c++) {
            sum += by_ten[i * CLASSES + c];
            assert_true(fabs(by_ten[i * CLASSES + c] - by_three[i * CLASSES + c]) < 1e-5);
        }
        assert_true(fabs(sum - 1) < 1e-5);
        loss -= log(by_ten[i * CLASSES + tw_dataset_labels(data)[i]]);
    }
    assert_true(fabs(loss / EXAMPLES - scores->loss) < 1e-4);
    tw_scores_destroy(scores);
    tw_scores_destroy(again);
}

static bool stop_at_once(void *user, int64_t done, int64_t total)
{
    *(int64_t *)user = done;
    assert_int_equal(total, EXAMPLES);
    return false;
}

static void an_evaluation_can_be_stopped(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_scores *scores;
    int64_t told = 0;
    assert_int_equal(tw_score(tw_model_find("cifar10"), data, folder, NULL,
                              TW_OPTIONS(tw_evaluation_options, .batch = 10, .progress = stop_at_once, .user = &told),
                              &scores, &error),
                     TW_CANCELLED);
    assert_message(error.message, "stopped after 10 of 37 examples");
    assert_int_equal(told, 10);
    assert_null(scores);
}

static void a_data_set_of_more_classes_than_the_network_is_refused(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_scores *scores;
    tw_dataset *many;
    assert_ok(tw_dataset_synthetic(4, 32, 32, 3, 12, 5, &many, &error));
    assert_int_equal(tw_score(tw_model_find("cifar10"), many, folder, NULL, NULL, &scores, &error),
                     TW_INVALID_ARGUMENT);
    assert_message(error.message, "model cifar10 tells 10 classes apart; data set synthetic has 12");
    tw_dataset_destroy(many);
}

/* ---- frozen ---- */

/* Fed with what evaluation makes of the images, it gives what evaluation gives. */
static void a_frozen_network_gives_the_same_probabilities_without_variables(void **state)
{
    (void)state;
    static float expected[EXAMPLES * CLASSES], images[4 * 24 * 24 * 3];
    static int32_t labels[4];
    const tw_model *m = tw_model_find("cifar10");
    tw_error error = {0};
    void *bytes;
    size_t size;
    tw_scores_destroy(score_on(1, 4, expected));
    assert_ok(tw_freeze(m, folder, false, &bytes, &size, &error));

    tw_graph *g = tw_graph_create();
    assert_ok(tw_graph_import(g, bytes, size, NULL, &error));
    tw_free(bytes);
    assert_int_equal(tw_graph_num_variables(g), 0);
    tw_session *session;
    tw_devices *devices;
    tw_pipeline *pipeline;
    assert_ok(tw_devices_create(TW_OPTIONS(tw_device_options, .virtual_gpus = 1), &devices, &error));
    assert_ok(tw_session_create(g, TW_OPTIONS(tw_session_options, .devices = devices, .allow_soft_placement = true),
                                &session, &error));
    assert_ok(tw_pipeline_create(data,
                                 TW_OPTIONS(tw_pipeline_options, .batch = 4, .augmentation = m->evaluation,
                                            .crop = m->height, .scale = m->scale, .offset = m->offset),
                                 &pipeline, &error));
    assert_ok(tw_pipeline_next(pipeline, 0, images, labels, &error));
    tw_tensor *fed = tw_tensor_from(TW_FLOAT32, TW_SHAPE(4, 24, 24, 3), images), *result = NULL;
    tw_feed feed = {{tw_graph_find(g, "images"), 0}, fed};
    tw_output fetch = {tw_graph_find(g, "probabilities"), 0};
    assert_non_null(feed.output.node);
    assert_non_null(fetch.node);
    assert_ok(tw_session_run(session, &feed, 1, &fetch, 1, &result, &error));
    for (int i = 0; i < 4 * CLASSES; i++)
        assert_true(fabs(tw_tensor_value(result, i) - expected[i]) < 1e-6);
    tw_tensor_release(fed);
    tw_tensor_release(result);
    tw_pipeline_destroy(pipeline);
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
}

static void every_model_can_be_frozen_at_any_batch(void **state)
{
    (void)state;
    static const char *const names[] = {"mnist", "resnet20"};
    for (int i = 0; i < 2; i++) {
        const tw_model *m = tw_model_find(names[i]);
        tw_error error = {0};
        tw_trainer *trainer;
        tw_devices *devices;
        tw_dataset *images;
        int side = m->channels == 3 ? 32 : 28;
        char path[128];
        void *bytes;
        size_t size;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_ok(tw_dataset_synthetic(8, side, side, m->channels, CLASSES, 5, &images, &error));
        assert_ok(tw_devices_create(NULL, &devices, &error));
        assert_ok(tw_trainer_create(
            TW_OPTIONS(tw_trainer_options, .model = m, .dataset = images, .devices = devices, .batch = 2), &trainer,
            &error));
        assert_ok(tw_trainer_save(trainer, path, 0, &error));
        assert_ok(tw_freeze(m, path, false, &bytes, &size, &error));
        tw_graph *g = tw_graph_create();
        assert_ok(tw_graph_import(g, bytes, size, NULL, &error));
        assert_int_equal(tw_graph_num_variables(g), 0);
        assert_int_equal(tw_output_shape((tw_output){tw_graph_find(g, "images"), 0}).dims[0], -1);
        tw_graph_destroy(g);
        tw_free(bytes);
        tw_trainer_destroy(trainer);
        tw_devices_destroy(devices);
        tw_dataset_destroy(images);
    }
}

static void a_checkpoint_of_another_shape_or_type_is_not_frozen(void **state)
{
    (void)state;
    const tw_model *m = tw_model_find("mnist");
    tw_tensor *others[] = {tw_tensor_create(TW_FLOAT32, TW_SHAPE(3, 3, 1, 63)),
                           tw_tensor_create(TW_FLOAT64, TW_SHAPE(3, 3, 1, 64))};
    for (int i = 0; i < 2; i++) {
        tw_error error = {0};
        char path[128];
        void *bytes;
        size_t size;
        tw_named_tensor first = {"L1/conv2d/kernel", others[i]};
        snprintf(path, sizeof path, "%s/other%d", folder, i);
        assert_ok(tw_checkpoint_save(path, "model.ckpt", 1, &first, 1, 0, &error));
        assert_fails(tw_freeze(m, path, false, &bytes, &size, &error), TW_INVALID_ARGUMENT,
                     "has another type or shape of 'L1/conv2d/kernel' than the network");
        tw_tensor_release(others[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_do_not_depend_on_the_number_of_devices),
        cmocka_unit_test(each_example_stands_once_in_the_confusion_matrix),
        cmocka_unit_test(probabilities_are_those_of_each_example),
        cmocka_unit_test(an_evaluation_can_be_stopped),
        cmocka_unit_test(a_data_set_of_more_classes_than_the_network_is_refused),
        cmocka_unit_test(a_frozen_network_gives_the_same_probabilities_without_variables),
        cmocka_unit_test(every_model_can_be_frozen_at_any_batch),
        cmocka_unit_test(a_checkpoint_of_another_shape_or_type_is_not_frozen),
    };
    return cmocka_run_group_tests(tests, train_a_little, clean_up);
}

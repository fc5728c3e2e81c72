/* test_every_fault.c - each single allocation of a job fails, and many of a trainer's; a checkpoint ends at any length
 * and has any of its bits flipped (label: slow). test_faults.c and test_checkpoint_format.c try some of it. */
#include "failing_session.h"
#include "failing_trainer.h"

enum { TRAINER_TRIES = 5000 }; /* a trainer makes five times as many, most of them alike */

static void a_job_survives_the_failure_of_each_allocation(void **state)
{
    (void)state;
    fail_allocations_of(&session_job_kind, fail_allocation, EACH);
}

static void a_job_survives_running_out_of_memory_anywhere(void **state)
{
    (void)state;
    fail_allocations_of(&session_job_kind, fail_allocations_from, EACH);
}

static void a_trainer_survives_the_failure_of_an_allocation_at_each_place(void **state)
{
    (void)state;
    fail_allocations_of(&trainer_job_kind, fail_at_next_place, TRAINER_TRIES);
}

static void a_trainer_survives_the_failure_of_many_an_allocation(void **state)
{
    (void)state;
    fail_allocations_of(&trainer_job_kind, fail_allocation, TRAINER_TRIES);
}

static void a_trainer_survives_running_out_of_memory_at_many_places(void **state)
{
    (void)state;
    fail_allocations_of(&trainer_job_kind, fail_allocations_from, TRAINER_TRIES);
}

/* ---- checkpoints that are damaged ---- */

enum { SMALL = 12, LARGE = 1 << 18, LENGTHS = 1000, BITS = 10000 }; /* elements of a tensor; of a large one's data */

static const char *const suffixes[] = {".index", ".data-00000-of-00001"};

/* Two checkpoints, of steps 1 and 2, with so many tensors of so many floats, in a folder of their own. */
static const char *save_two(int count, int elements, char prefix[300])
{
    const char *folder = scratch_folder();
    tw_named_tensor tensors[40];
    char names[40][32];
    tw_error error = {0};
    for (int i = 0; i < count; i++) {
        tw_tensor *tensor = tw_tensor_create(TW_FLOAT32, TW_SHAPE(elements));
        float *values = tw_tensor_data(tensor);
        for (int k = 0; k < elements; k++)
            values[k] = (float)(k % 1009 + i);
        snprintf(names[i], sizeof names[i], "layer_%d/weights", i);
        tensors[i] = (tw_named_tensor){.name = names[i], .tensor = tensor};
    }
    for (int step = 1; step <= 2; step++)
        assert_ok(tw_checkpoint_save(folder, "model.ckpt", step, tensors, count, 0, &error));
    for (int i = 0; i < count; i++)
        tw_tensor_release((tw_tensor *)tensors[i].tensor);
    snprintf(prefix, 300, "%s/model.ckpt-2", folder);
    assert_ok(tw_checkpoint_verify(prefix, &error));
    return folder;
}

/* The newer checkpoint is refused, by its name and a reason, and the older one found in its place. */
static void assert_falls_back(const char *folder, const char *prefix, const char *what, size_t where)
{
    tw_error error = {0};
    char path[300];
    int64_t step = 0;
    tw_status status = tw_checkpoint_verify(prefix, &error);
    if (status != TW_DATA_LOSS || !strstr(error.message, prefix))
        fail_msg("%s %zu: status %d: %s", what, where, status, error.message);
    assert_ok(tw_checkpoint_latest(folder, path, sizeof path, &step, &error));
    assert_int_equal(step, 1);
}

/* Cut to each length, or to so many drawn ones, the longest first. */
static void cut(const char *folder, const char *prefix, const char *suffix, size_t drawn)
{
    char path[400];
    size_t size;
    snprintf(path, sizeof path, "%s%s", prefix, suffix);
    char *bytes = read_whole(path, &size);
    for (size_t i = 0, count = drawn ? drawn : size; i < count; i++) {
        size_t part = size / count, length = size - i * part - 1 - (size_t)rand() % part;
        assert_int_equal(truncate(path, (off_t)length), 0);
        assert_falls_back(folder, prefix, suffix, length);
    }
    FILE *file = fopen(path, "wb");
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    free(bytes);
}

/* Each bit flipped, or so many drawn ones. */
static void flip(const char *folder, const char *prefix, const char *suffix, size_t drawn)
{
    char path[400];
    size_t size;
    snprintf(path, sizeof path, "%s%s", prefix, suffix);
    char *bytes = read_whole(path, &size);
    FILE *file = fopen(path, "r+b");
    setbuf(file, NULL);
    for (size_t i = 0, count = drawn ? drawn : 8 * size; i < count; i++) {
        size_t bit = drawn ? ((size_t)rand() << 16 ^ (size_t)rand()) % (8 * size) : i;
        int byte = (unsigned char)bytes[bit / 8];
        fseek(file, (long)(bit / 8), SEEK_SET);
        fputc(byte ^ 1 << bit % 8, file);
        assert_falls_back(folder, prefix, suffix, bit);
        fseek(file, (long)(bit / 8), SEEK_SET);
        fputc(byte, file);
    }
    fclose(file);
    free(bytes);
}

typedef void damage(const char *folder, const char *prefix, const char *suffix, size_t drawn);

/* Both files of a small checkpoint everywhere, and the data of a large one at so many places. */
static void damage_two(damage *damage, size_t drawn)
{
    char prefix[300];
    const char *folder = save_two(40, SMALL, prefix);
    damage(folder, prefix, suffixes[0], 0);
    damage(folder, prefix, suffixes[1], 0);
    remove_scratch(folder);
    folder = save_two(5, LARGE, prefix);
    damage(folder, prefix, suffixes[1], drawn);
    remove_scratch(folder);
}

static void a_checkpoint_of_any_length_but_its_own_is_refused(void **state)
{
    (void)state;
    damage_two(cut, LENGTHS);
}

static void a_checkpoint_with_any_bit_flipped_is_refused(void **state)
{
    (void)state;
    damage_two(flip, BITS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_survives_the_failure_of_each_allocation),
        cmocka_unit_test(a_job_survives_running_out_of_memory_anywhere),
        cmocka_unit_test(a_trainer_survives_the_failure_of_an_allocation_at_each_place),
        cmocka_unit_test(a_trainer_survives_the_failure_of_many_an_allocation),
        cmocka_unit_test(a_trainer_survives_running_out_of_memory_at_many_places),
        cmocka_unit_test(a_checkpoint_of_any_length_but_its_own_is_refused),
        cmocka_unit_test(a_checkpoint_with_any_bit_flipped_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

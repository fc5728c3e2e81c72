/* packing.c - strings and lists of tensors as bytes, for messages between tasks. */
#include "parts.h"
#include "faulty_memory.h"

#include "run/packing.h"

#include <stdbool.h>

enum { ITEMS = 20 };

/* Where the numbers of a list lie in its bytes, and in those of its first item. */
enum {
    AT_WANTED = 1,
    AT_MOST = AT_WANTED + sizeof(tw_shape),
    AT_COUNT = AT_MOST + sizeof(int64_t),
    AT_ITEM = AT_COUNT + sizeof(int64_t),
    AT_DTYPE = AT_ITEM + sizeof(int64_t),
    AT_SHAPE = AT_DTYPE + sizeof(tw_dtype),
    AT_VALUES = AT_SHAPE + sizeof(tw_shape)
};

static void put(twi_tensor_list *list, int64_t i, tw_tensor *tensor)
{
    assert_non_null(tensor);
    assert_true(twi_tensor_list_put(list, i, tensor));
}

/* A list as the only element of a tensor, which has it from then on. */
static tw_tensor *tensor_of(twi_tensor_list *list)
{
    tw_tensor *tensor = twi_tensor_create(TW_VARIANT, TW_SCALAR);
    *(twi_tensor_list **)tensor->data = list;
    return tensor;
}

/* Numbers, nothing, words, and a list with a number. */
static twi_tensor_list *make_list(void)
{
    tw_string words[] = {{"a", 1}, {"", 0}, {"b\0c", 3}};
    twi_tensor_list *list = twi_tensor_list_create(ITEMS), *inner = twi_tensor_list_create(1);
    list->wanted = TW_SHAPE(3);
    list->most = 40;
    put(inner, 0, tw_tensor_from(TW_INT64, TW_SCALAR, (int64_t[]){-5}));
    put(list, 0, tw_tensor_from(TW_FLOAT32, TW_SHAPE(3), (float[]){1, 2, 3}));
    put(list, 7, tw_tensor_from(TW_STRING, TW_SHAPE(3), words));
    put(list, 18, tw_tensor_create(TW_FLOAT32, TW_SHAPE(0, 2)));
    put(list, ITEMS - 1, tensor_of(inner));
    return list;
}

static void check_list(const twi_tensor_list *list)
{
    static const int64_t set[] = {0, 7, 18, ITEMS - 1, ITEMS};
    assert_non_null(list);
    assert_int_equal(list->count, ITEMS);
    assert_int_equal(list->most, 40);
    assert_true(tw_shape_equal(list->wanted, TW_SHAPE(3)));
    for (int i = 0; i < 5; i++)
        assert_int_equal(twi_tensor_list_next(list, i ? set[i - 1] + 1 : 0), set[i]);
    for (int i = 0; i < 3; i++)
        assert_true(tw_tensor_value(twi_tensor_list_item(list, 0), i) == i + 1);
    const tw_string *words = twi_tensor_list_item(list, 7)->data;
    assert_int_equal(words[1].size, 0);
    assert_int_equal(words[2].size, 3);
    assert_memory_equal(words[2].data, "b\0c", 3);
    assert_true(tw_shape_equal(twi_tensor_list_item(list, 18)->shape, TW_SHAPE(0, 2)));
    const twi_tensor_list *inner = *(twi_tensor_list **)twi_tensor_list_item(list, ITEMS - 1)->data;
    assert_int_equal(inner->count, 1);
    assert_int_equal(inner->most, -1);
    assert_true(tw_tensor_value(twi_tensor_list_item(inner, 0), 0) == -5);
}

/* What has come, from bytes with nothing behind them. */
static tw_status unpack(const char *bytes, size_t size, tw_dtype dtype, void *values, size_t count, tw_error *error)
{
    char *copy = malloc(size + !size);
    *error = (tw_error){0};
    memcpy(copy, bytes, size);
    tw_status status = twi_unpack_values(copy, size, dtype, values, count, "a value", error);
    free(copy);
    return status;
}

static void values_come_as_they_went(void **state)
{
    (void)state;
    tw_error error;
    twi_text packed = {0};
    tw_string words[] = {{"one", 3}, {"", 0}, {"t\0o", 3}}, came[3] = {{0}};
    twi_tensor_list *lists[] = {make_list(), NULL, twi_tensor_list_create(0)};
    twi_tensor_list *got[] = {NULL, twi_tensor_list_create(3), make_list()};
    assert_true(twi_string_set(&came[1], "let go", 6));
    assert_true(twi_pack_values(TW_STRING, words, 3, &packed));
    assert_ok(unpack(packed.data, packed.size, TW_STRING, came, 3, &error));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(came[i].size, words[i].size);
        assert_memory_equal(came[i].data, words[i].data, words[i].size);
    }
    twi_free_owned(TW_STRING, came, 3);
    twi_text_free(&packed);
    packed = (twi_text){0};
    assert_true(twi_pack_values(TW_VARIANT, lists, 3, &packed));
    assert_ok(unpack(packed.data, packed.size, TW_VARIANT, got, 3, &error));
    check_list(got[0]);
    assert_null(got[1]);
    assert_int_equal(got[2]->count, 0);
    for (int i = 0; i < 3; i++) {
        twi_tensor_list_release(lists[i]);
        twi_tensor_list_release(got[i]);
    }
    twi_text_free(&packed);
}

static void refuse(const char *bytes, size_t size, tw_dtype dtype)
{
    tw_error error;
    tw_tensor *value = twi_tensor_create(dtype, TW_SHAPE(2));
    assert_fails(unpack(bytes, size, dtype, value->data, 1, &error), TW_DATA_LOSS,
                 "what another task has sent is no such value: a value");
    tw_tensor_release(value);
}

/* Cut anywhere, or with a byte too many. */
static void lengths_are_looked_at(void **state)
{
    (void)state;
    tw_string word = {"abc", 3};
    twi_tensor_list *list = make_list();
    for (int owned = 0; owned < 2; owned++) {
        twi_text packed = {0};
        tw_dtype dtype = owned ? TW_VARIANT : TW_STRING;
        assert_true(twi_pack_values(dtype, owned ? (void *)&list : &word, 1, &packed));
        for (size_t size = 0; size < packed.size; size++)
            refuse(packed.data, size, dtype);
        twi_text_append(&packed, "", 1);
        refuse(packed.data, packed.size, dtype);
        twi_text_free(&packed);
    }
    twi_tensor_list_release(list);
}

/* The same with other bytes at one place. */
static void refuse_with(const twi_text *packed, size_t at, const void *bytes, size_t size)
{
    char *copy = malloc(packed->size);
    memcpy(copy, packed->data, packed->size);
    memcpy(copy + at, bytes, size);
    refuse(copy, packed->size, TW_VARIANT);
    free(copy);
}

static void numbers_are_looked_at(void **state)
{
    (void)state;
    static const int64_t items[] = {-2, ITEMS, INT64_MAX}, sizes[] = {-1, 4, INT64_MAX, 1 << 20}, none = -1;
    static const tw_dtype dtypes[] = {TW_INVALID_DTYPE, (tw_dtype)1000};
    static const int ranks[] = {-1, TW_MAX_RANK + 1, 1 << 30};
    tw_error error;
    twi_text packed = {0};
    twi_tensor_list *list = make_list();
    const tw_shape many = TW_SHAPE(1 << 30, 1 << 30, 1 << 30), some = TW_SHAPE(INT64_MAX, 3);
    assert_true(twi_pack_values(TW_VARIANT, &list, 1, &packed));
    for (int i = 0; i < 3; i++)
        refuse_with(&packed, AT_ITEM, &items[i], sizeof items[i]);
    for (int i = 0; i < 2; i++)
        refuse_with(&packed, AT_DTYPE, &dtypes[i], sizeof dtypes[i]);
    for (int i = 0; i < 3; i++)
        refuse_with(&packed, AT_SHAPE + offsetof(tw_shape, rank), &ranks[i], sizeof ranks[i]);
    for (int i = 0; i < 4; i++)
        refuse_with(&packed, AT_SHAPE + offsetof(tw_shape, dims), &sizes[i], sizeof sizes[i]);
    refuse_with(&packed, AT_SHAPE, &many, sizeof many);
    refuse_with(&packed, AT_SHAPE, &some, sizeof some);
    refuse_with(&packed, AT_COUNT, &none, sizeof none);
    refuse_with(&packed, AT_WANTED + offsetof(tw_shape, rank), &ranks[1], sizeof ranks[1]);
    packed.data[0] = 2; /* not nothing: a list is there */
    twi_tensor_list_release(list);
    list = NULL;
    assert_ok(unpack(packed.data, packed.size, TW_VARIANT, &list, 1, &error));
    check_list(list);
    twi_tensor_list_release(list);
    twi_text_free(&packed);
}

/* What is wrong is the last of what was read. */
static void what_is_wrong_is_refused_though_the_rest_fits(void **state)
{
    (void)state;
    static const int64_t none = -1;
    static const tw_dtype no_type = (tw_dtype)1000;
    twi_text packed = {0};
    twi_tensor_list *list = twi_tensor_list_create(1);
    put(list, 0, tw_tensor_create(TW_UINT8, TW_SHAPE(0)));
    assert_true(twi_pack_values(TW_VARIANT, &list, 1, &packed));
    assert_int_equal(packed.size, AT_VALUES + sizeof none);
    refuse_with(&packed, AT_DTYPE, &no_type, sizeof no_type);
    packed.size = AT_ITEM;
    refuse_with(&packed, AT_COUNT, &none, sizeof none);
    twi_tensor_list_release(list);
    twi_text_free(&packed);
}

static void a_list_that_comes_takes_the_place_of_another(void **state)
{
    (void)state;
    tw_error error;
    twi_text packed = {0};
    fail_allocation(-1);
    twi_tensor_list *list = make_list(), *got = make_list();
    assert_true(twi_pack_values(TW_VARIANT, &list, 1, &packed));
    assert_ok(unpack(packed.data, packed.size, TW_VARIANT, &got, 1, &error));
    check_list(got);
    twi_tensor_list_release(list);
    twi_tensor_list_release(got);
    twi_text_free(&packed);
    assert_int_equal(memory.live, 0);
    stop_failing_allocations();
}

/* As many elements as there are bytes, and one more. */
static void shapes_must_fit_into_what_is_left(void **state)
{
    (void)state;
    static const int64_t none = -1;
    tw_error error;
    twi_text packed = {0};
    twi_tensor_list *list = twi_tensor_list_create(1), *got = NULL;
    put(list, 0, tw_tensor_from(TW_UINT8, TW_SHAPE(2, 4), "abcdefgh"));
    assert_true(twi_pack_values(TW_VARIANT, &list, 1, &packed));
    assert_int_equal(packed.size, AT_VALUES + 8 + sizeof none);
    refuse_with(&packed, AT_SHAPE, &TW_SHAPE(17), sizeof(tw_shape));
    refuse_with(&packed, AT_SHAPE, &TW_SHAPE(16), sizeof(tw_shape)); /* fits, and its end is missing */
    refuse_with(&packed, AT_SHAPE, &TW_SHAPE(0), sizeof(tw_shape));  /* what was an element is no item's number */
    assert_ok(unpack(packed.data, packed.size, TW_VARIANT, &got, 1, &error));
    assert_memory_equal(twi_tensor_list_item(got, 0)->data, "abcdefgh", 8);
    twi_tensor_list_release(got);
    twi_tensor_list_release(list);
    twi_text_free(&packed);
}

/* Strings of nothing take less than they do here; and there may be as many dimensions as a shape has. */
static void the_smallest_values_of_most_dimensions_come(void **state)
{
    (void)state;
    tw_error error;
    twi_text packed = {0};
    twi_tensor_list *list = twi_tensor_list_create(2), *got = NULL;
    tw_shape most = {.rank = TW_MAX_RANK};
    for (int i = 0; i < TW_MAX_RANK; i++)
        most.dims[i] = 1;
    list->wanted = most;
    put(list, 0, tw_tensor_create(TW_UINT8, most));
    put(list, 1, tw_tensor_create(TW_STRING, TW_SHAPE(20)));
    assert_true(twi_pack_values(TW_VARIANT, &list, 1, &packed));
    assert_ok(unpack(packed.data, packed.size, TW_VARIANT, &got, 1, &error));
    assert_true(tw_shape_equal(got->wanted, most));
    assert_true(tw_shape_equal(twi_tensor_list_item(got, 0)->shape, most));
    assert_true(tw_shape_equal(twi_tensor_list_item(got, 1)->shape, TW_SHAPE(20)));
    twi_tensor_list_release(got);
    twi_tensor_list_release(list);
    twi_text_free(&packed);
}

/* So many lists, one in the other. */
static twi_tensor_list *nest(int depth)
{
    twi_tensor_list *list = twi_tensor_list_create(1);
    for (int i = 1; i < depth; i++) {
        twi_tensor_list *around = twi_tensor_list_create(1);
        put(around, 0, tensor_of(list));
        list = around;
    }
    return list;
}

static void lists_are_64_deep_at_most(void **state)
{
    (void)state;
    tw_error error;
    for (int depth = 64; depth < 66; depth++) {
        twi_text packed = {0};
        twi_tensor_list *lists[] = {nest(depth), nest(1)}, *got[2] = {NULL};
        assert_true(twi_pack_values(TW_VARIANT, lists, 2, &packed));
        tw_status status = unpack(packed.data, packed.size, TW_VARIANT, got, 2, &error);
        assert_int_equal(status, depth > 64 ? TW_DATA_LOSS : TW_OK);
        for (int i = 0; i < 2; i++) {
            twi_tensor_list_release(lists[i]);
            twi_tensor_list_release(got[i]);
        }
        twi_text_free(&packed);
    }
}

static void memory_that_runs_out_is_an_error(void **state)
{
    (void)state;
    bool failed = true;
    for (int n = 0; failed; n++) {
        tw_error error = {0};
        twi_text packed = {0};
        tw_string word = {"abc", 3};
        fail_allocation(1 << 30);
        twi_tensor_list *list = make_list();
        tw_tensor *words = twi_tensor_create(TW_STRING, TW_SCALAR), *lists = twi_tensor_create(TW_VARIANT, TW_SCALAR);
        memory.countdown = n;
        bool fits = twi_pack_values(TW_STRING, &word, 1, &packed);
        tw_status status = fits ? unpack(packed.data, packed.size, TW_STRING, words->data, 1, &error) : TW_OK;
        if (fits && status == TW_OK) {
            packed.size = 0;
            fits = twi_pack_values(TW_VARIANT, &list, 1, &packed);
            status = fits ? unpack(packed.data, packed.size, TW_VARIANT, lists->data, 1, &error) : TW_OK;
        }
        failed = stop_failing_allocations();
        assert_true(failed == (!fits || status == TW_RESOURCE_EXHAUSTED));
        assert_true(failed || status == TW_OK);
        tw_set_allocator(faulty_resize, NULL);
        twi_text_free(&packed);
        tw_tensor_release(words);
        tw_tensor_release(lists);
        twi_tensor_list_release(list);
        assert_int_equal(memory.live, 0);
        stop_failing_allocations();
    }
}

int run_packing(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_as_they_went),
        cmocka_unit_test(lengths_are_looked_at),
        cmocka_unit_test(numbers_are_looked_at),
        cmocka_unit_test(what_is_wrong_is_refused_though_the_rest_fits),
        cmocka_unit_test(a_list_that_comes_takes_the_place_of_another),
        cmocka_unit_test(shapes_must_fit_into_what_is_left),
        cmocka_unit_test(the_smallest_values_of_most_dimensions_come),
        cmocka_unit_test(lists_are_64_deep_at_most),
        cmocka_unit_test(memory_that_runs_out_is_an_error),
    };
    return cmocka_run_group_tests_name("packing", tests, NULL, NULL);
}

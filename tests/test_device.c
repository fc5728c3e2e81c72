/* Devices: how many there are and of what, their memory and copies, which kernel is chosen, and that a virtual GPU
 * faults where a real one would; names of devices: spellings, refusals, merging and matching as TensorFlow's.
 * label: threads */
#include "testing.h"

#include "base/clock.h"
#include "base/cores.h"
#include "device/device.h"
#include "device/kernel_index.h"
#include "device/name.h"
#include "device/virtual/virtual.h"

#include <tower/ops.h>
#include <tower/session.h>

static tw_devices *open_devices(tw_device_options options)
{
    tw_error error = {0};
    tw_devices *devices;
    assert_ok(tw_devices_create(&options, &devices, &error));
    return devices;
}

static void default_devices_are_one_cpu_with_every_core(void **state)
{
    (void)state;
    tw_devices *devices = open_devices((tw_device_options){0});
    assert_int_equal(tw_devices_count(devices, NULL), 1);
    tw_device_info info = tw_devices_info(devices, 0);
    assert_string_equal(info.name, "/job:localhost/replica:0/task:0/device:CPU:0");
    assert_string_equal(info.kind, "cpu");
    assert_int_equal(info.threads, twi_usable_cores());
    tw_devices_destroy(devices);
}

static void cpu_devices_get_equal_teams_on_cores_of_their_own(void **state)
{
    (void)state;
    int cores = twi_usable_cores();
    tw_devices *devices = open_devices((tw_device_options){.cpu_devices = cores > 1 ? 2 : 1});
    for (int i = 0; i < devices->count && cores > 1; i++) {
        twi_device *d = devices->items[i];
        assert_int_equal(d->threads, cores / 2);
        if (twi_find_cores("").limited)
            continue;
        assert_int_equal(d->num_cores, cores / 2);
        assert_int_equal(d->cores[0], twi_usable_core(i * (cores / 2)));
    }
    tw_devices_destroy(devices);
}

static void more_cpu_devices_than_cores_have_one_free_thread_each(void **state)
{
    (void)state;
    tw_devices *devices = open_devices((tw_device_options){.cpu_devices = twi_usable_cores() + 1});
    for (int i = 0; i < devices->count; i++) {
        assert_int_equal(devices->items[i]->threads, 1);
        assert_null(devices->items[i]->cores);
    }
    tw_devices_destroy(devices);
}

static void virtual_gpus_come_after_the_cpus_in_order_of_number(void **state)
{
    (void)state;
    tw_devices *devices = open_devices((tw_device_options){.cpu_devices = 1, .virtual_gpus = 12});
    assert_int_equal(tw_devices_count(devices, "CPU"), 1);
    assert_int_equal(tw_devices_count(devices, "GPU"), 12);
    assert_string_equal(tw_devices_info(devices, 11).name, "/job:localhost/replica:0/task:0/device:GPU:10");
    assert_string_equal(tw_devices_info(devices, 3).kind, "virtual");
    assert_int_equal(tw_devices_info(devices, 3).threads, 1);
    tw_devices_destroy(devices);
}

static void the_environment_gives_virtual_gpus_unless_options_do(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    setenv("TOWER_VIRTUAL_GPUS", "3", 1);
    devices = open_devices((tw_device_options){0});
    assert_int_equal(tw_devices_count(devices, "GPU"), 3);
    tw_devices_destroy(devices);
    devices = open_devices((tw_device_options){.virtual_gpus = 1});
    assert_int_equal(tw_devices_count(devices, "GPU"), 1);
    tw_devices_destroy(devices);
    setenv("TOWER_VIRTUAL_GPUS", "three", 1);
    assert_fails(tw_devices_create(NULL, &devices, &error), TW_INVALID_ARGUMENT, "TOWER_VIRTUAL_GPUS");
    assert_null(devices);
    unsetenv("TOWER_VIRTUAL_GPUS");
}

static void absurd_numbers_of_devices_are_refused(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    assert_fails(tw_devices_create(&(tw_device_options){.cpu_devices = -1}, &devices, &error), TW_INVALID_ARGUMENT,
                 "cpu_devices");
    assert_fails(tw_devices_create(&(tw_device_options){.virtual_gpus = 1 << 30}, &devices, &error),
                 TW_INVALID_ARGUMENT, "virtual_gpus");
}

static void memory_is_aligned_zeroed_and_counted_small_and_big(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices = open_devices((tw_device_options){.virtual_gpus = 1});
    static const size_t sizes[] = {0, 1, 63, 4096, ((size_t)1 << 20) - 1, (size_t)1 << 20, ((size_t)5 << 20) + 12345};
    for (int i = 0; i < devices->count; i++) {
        twi_device *d = devices->items[i];
        for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++) {
            void *memory;
            int64_t before = tw_allocation_count();
            assert_ok(twi_device_alloc(d, sizes[j], "a test", &memory, &error));
            assert_true(tw_allocation_count() > before);
            assert_int_equal((uintptr_t)memory % 64, 0);
            assert_int_equal(tw_devices_info(devices, i).memory_used, sizes[j]);
            const char *bytes = memory;
            for (size_t k = 0; k < sizes[j]; k++)
                if (bytes[k])
                    fail_msg("byte %zu of %zu is not zero", k, sizes[j]);
            memset(memory, 1, sizes[j]);
            twi_device_free(d, memory, sizes[j]);
        }
        assert_int_equal(tw_devices_info(devices, i).memory_used, 0);
        assert_int_equal(tw_devices_info(devices, i).memory_peak, sizes[6]);
    }
    tw_devices_destroy(devices);
}

static void a_full_gpu_says_its_limit_its_use_and_the_need(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices = open_devices((tw_device_options){.virtual_gpus = 2, .gpu_memory_limit = 1000});
    twi_device *gpu = devices->items[2];
    void *memory, *more;
    assert_ok(twi_device_alloc(gpu, 600, "weights", &memory, &error));
    assert_fails(twi_device_alloc(gpu, 401, "conv1's output", &more, &error), TW_RESOURCE_EXHAUSTED,
                 "device:GPU:1 has no room for conv1's output: limit 1000 bytes, used 600, needed 401 more");
    assert_null(more);
    assert_fails(twi_device_alloc(gpu, SIZE_MAX, "everything", &more, &error), TW_RESOURCE_EXHAUSTED, "limit 1000");
    assert_ok(twi_device_alloc(gpu, 400, "the rest", &more, &error));
    twi_device_free(gpu, more, 400);
    twi_device_free(gpu, memory, 600);
    tw_devices_destroy(devices);
}

static void a_gpus_memory_is_limited_in_bytes_or_as_a_part_of_what_it_has(void **state)
{
    (void)state;
    enum { MIB = 1 << 20 };
    tw_error error = {0};
    tw_devices *devices = NULL;
    static const struct {
        tw_device_options options;
        size_t limit;
    } cases[] = {
        {{.virtual_gpus = 1}, 0},
        {{.virtual_gpus = 1, .virtual_gpu_memory = 10 * MIB}, 10 * MIB},
        {{.virtual_gpus = 1, .gpu_memory_limit = 3 * MIB}, 3 * MIB},
        {{.virtual_gpus = 1, .virtual_gpu_memory = 10 * MIB, .gpu_memory_limit = 3 * MIB}, 3 * MIB},
        {{.virtual_gpus = 1, .virtual_gpu_memory = 10 * MIB, .gpu_memory_limit = 30 * MIB}, 10 * MIB},
        {{.virtual_gpus = 1, .virtual_gpu_memory = 10 * MIB, .gpu_memory_fraction = 0.4}, 4 * MIB},
        {{.virtual_gpus = 1, .virtual_gpu_memory = 10 * MIB, .gpu_memory_fraction = 1}, 10 * MIB},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        devices = open_devices(cases[i].options);
        tw_device_info gpu = tw_devices_info(devices, 1);
        assert_int_equal(gpu.memory_limit, cases[i].limit);
        assert_int_equal(gpu.memory_total, cases[i].options.virtual_gpu_memory);
        assert_int_equal(gpu.memory_used + gpu.memory_peak, 0); /* to list devices takes nothing of them */
        assert_int_equal(tw_devices_info(devices, 0).memory_limit, 0);
        tw_devices_destroy(devices);
    }
    tw_device_options whole = {.virtual_gpus = 1, .gpu_memory_fraction = 0.4};
    assert_fails(tw_devices_create(&whole, &devices, &error), TW_INVALID_ARGUMENT, "give virtual_gpu_memory");
    tw_device_options both = {.virtual_gpus = 1, .gpu_memory_fraction = 0.4, .gpu_memory_limit = 1000};
    assert_fails(tw_devices_create(&both, &devices, &error), TW_INVALID_ARGUMENT, "give one of them");
    tw_device_options large = {.virtual_gpus = 1, .virtual_gpu_memory = MIB, .gpu_memory_fraction = 1.1};
    assert_fails(tw_devices_create(&large, &devices, &error), TW_INVALID_ARGUMENT, "expected 0 to 1, found 1.1");
}

static void copies_go_between_any_two_devices(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices = open_devices((tw_device_options){.cpu_devices = 2, .virtual_gpus = 2});
    for (int i = 0; i < devices->count; i++)
        for (int j = 0; j < devices->count; j++) {
            twi_device *from = devices->items[i], *to = devices->items[j];
            void *a, *b;
            char back[8] = "";
            assert_ok(twi_device_alloc(from, 8, "a", &a, &error));
            assert_ok(twi_device_alloc(to, 8, "b", &b, &error));
            assert_ok(from->ops->write(from, a, "towers!", 8, &error));
            assert_ok(twi_device_copy(to, b, from, a, 8, &error));
            assert_ok(to->ops->read(to, back, b, 8, &error));
            assert_string_equal(back, "towers!");
            twi_device_free(from, a, 8);
            twi_device_free(to, b, 8);
        }
    tw_devices_destroy(devices);
}

static tw_status copy_from_its_own_kind(twi_device *d, void *to, twi_device *source, const void *from, size_t bytes,
                                        tw_error *error)
{
    (void)to, (void)from, (void)bytes;
    return twi_fail(error, TW_INTERNAL, "%s was asked to copy from %s, a '%s'", d->text, source->text, source->ops->kind);
}

/* A backend knows the insides of its own devices alone. */
static void copies_between_devices_of_two_kinds_go_through_the_host(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices = open_devices((tw_device_options){.virtual_gpus = 2});
    twi_device *from = devices->items[1], *to = devices->items[2];
    const twi_device_ops *real = to->ops;
    twi_device_ops other = *real;
    void *a, *b;
    char back[8] = "";
    tw_link link;
    other.kind = "other";
    other.copy_from = copy_from_its_own_kind;
    to->ops = &other;
    assert_ok(twi_device_alloc(from, 8, "a", &a, &error));
    assert_ok(twi_device_alloc(to, 8, "b", &b, &error));
    assert_ok(from->ops->write(from, a, "towers!", 8, &error));
    assert_ok(twi_device_copy(to, b, from, a, 8, &error));
    assert_ok(to->ops->read(to, back, b, 8, &error));
    assert_string_equal(back, "towers!");
    assert_ok(tw_devices_measure_link(devices, 1, 2, &link, &error));
    assert_false(link.direct);
    twi_device_free(from, a, 8);
    twi_device_free(to, b, 8);
    to->ops = real;
    tw_devices_destroy(devices);
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

enum { LINKS = 9, STEP_NS = 1000, WORK_NS = 400 };

/* Of a device that tells when it did what. Of four steps in a row it tells all, nothing, the beginning and the end. */
static struct {
    int count, marked, shift;
} told;

static tw_status open_marks(twi_device *d, int count, void **timeline, tw_error *error)
{
    (void)d, (void)error;
    told.count = count;
    *timeline = &told;
    return TW_OK;
}

static tw_status mark(twi_device *d, void *timeline, int number, tw_error *error)
{
    (void)d, (void)timeline;
    if (number < told.count)
        told.marked++;
    return number < told.count ? TW_OK : twi_fail(error, TW_INTERNAL, "%d is no mark of %d", number, told.count);
}

static bool tells(int position, bool end)
{
    int kind = (position + told.shift) % 4;
    return kind == 0 || kind == (end ? 3 : 2);
}

static tw_status read_marks(twi_device *d, void *timeline, int64_t *ns, tw_error *error)
{
    (void)d, (void)timeline, (void)error;
    for (int i = 0; i < told.count; i++)
        ns[i] = tells(i / 2, i % 2) ? twi_monotonic_ns() / STEP_NS * STEP_NS + i / 2 * STEP_NS + i % 2 * WORK_NS : 0;
    return TW_OK;
}

static void close_marks(twi_device *d, void *timeline)
{
    (void)d, (void)timeline;
}

/* What is not told of both ways has no time of its own: it was where the one before it ended, the first at the
 * beginning. */
static void check_times(const tw_timeline *t)
{
    double before = 0;
    int position = 0;
    for (int i = 0; i < t->num_spans; i++) {
        const tw_span *span = &t->spans[i];
        if (!strstr(span->device, "GPU:0"))
            continue;
        bool is_told = tells(position, false) && tells(position, true);
        assert_true(is_told ? span->begin > before : span->begin == before);
        assert_true(is_told ? span->end > span->begin : span->end == before);
        before = span->end;
        position++;
    }
    assert_int_equal(2 * position, told.count);
    assert_int_equal(told.marked, told.count);
    assert_true(position > LINKS);
}

static void a_step_that_a_device_tells_too_little_of_has_no_time(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices = open_devices((tw_device_options){.virtual_gpus = 1});
    twi_device *gpu = devices->items[1];
    const twi_device_ops *real = gpu->ops;
    twi_device_ops other = *real;
    other.open_timeline = open_marks;
    other.mark = mark;
    other.read_timeline = read_marks;
    other.close_timeline = close_marks;
    gpu->ops = &other;
    tw_graph *g = tw_graph_create();
    tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(2)), y = x;
    for (int i = 0; i < LINKS; i++)
        TW_DEVICE(g, "/gpu:0")
        y = tw_sub(g, tw_square(g, y), x);
    tw_session *s;
    tw_tensor *value = tw_tensor_create(TW_FLOAT32, TW_SHAPE(2)), *result = NULL;
    tw_session_options options = {.devices = devices, .disable = "fuse", .trace = true};
    assert_ok(tw_session_create(g, &options, &s, &error));
    for (told.shift = 0; told.shift < 4; told.shift++) {
        tw_timeline *timeline;
        told.marked = 0;
        assert_ok(tw_session_run(s, &(tw_feed){x, value}, 1, &y, 1, &result, &error));
        assert_ok(tw_session_timeline(s, &timeline, &error));
        check_times(timeline);
        tw_timeline_destroy(timeline);
    }
    tw_tensor_release(result);
    tw_tensor_release(value);
    tw_session_destroy(s);
    tw_graph_destroy(g);
    gpu->ops = real;
    tw_devices_destroy(devices);
}

/* ---- kernels --------------------------------------------------------------------------------------------------- */

static tw_status double_it(const twi_run *r)
{
    const float *x = r->inputs[0];
    float *y = r->outputs[0];
    for (int64_t i = 0; i < r->output_operands[0].elements; i++)
        y[i] = 2 * x[i];
    return TW_OK;
}

static tw_status needs_even(twi_prepare *p)
{
    p->workspace = 64;
    p->touches = p->inputs;
    p->varies = p->can_overwrite[0] = true;
    return p->inputs[0].elements % 2 ? twi_fail(p->error, TW_UNIMPLEMENTED, "an odd number of elements") : TW_OK;
}

static tw_status always_fails(twi_prepare *p)
{
    return twi_fail(p->error, TW_RESOURCE_EXHAUSTED, "no scratch");
}

static const twi_kernel fast[] = {
    {"Double", "fast", TWI_TYPE(TW_FLOAT32), needs_even, double_it, NULL},
    {"Broken", "fast", 0, always_fails, double_it, NULL},
    {0},
};
static const twi_kernel plain[] = {
    {"Double", "plain", TWI_TYPE(TW_FLOAT32), NULL, double_it, NULL},
    {"Even", "plain", 0, needs_even, double_it, NULL},
    {"MatMul", "plain", TWI_NUMBER_TYPES, NULL, double_it, NULL},
    {0},
};
static const twi_kernel *const families[] = {fast, plain, NULL};

static twi_operand floats(int64_t count)
{
    return (twi_operand){.dtype = TW_FLOAT32, .shape = TW_SHAPE(count), .elements = count, .bytes = 4 * (size_t)count};
}

static void the_fastest_kernel_that_accepts_is_prepared(void **state)
{
    (void)state;
    tw_error error = {0};
    twi_device_ops ops = {.type = "CPU", .kind = "test", .kernels = families};
    twi_kernel_index *index = twi_kernel_index_make(families, NULL);
    twi_device d = {.ops = &ops, .text = "/device:CPU:0", .kernels = index};
    tw_attr t = tw_attr_type("T", TW_FLOAT32), half = tw_attr_type("T", TW_FLOAT16);
    twi_attrs attrs = {&t, 1}, halves = {&half, 1};
    const twi_kernel *kernel;
    twi_operand odd = floats(3), even = floats(4);
    twi_prepare p = {.op = "Double", .node = "n", .attrs = &attrs, .inputs = &even, .outputs = &even,
                     .num_inputs = 1, .num_outputs = 1, .device = &d, .error = &error};

    assert_ok(twi_device_prepare(&d, &p, false, &kernel));
    assert_string_equal(kernel->name, "fast");
    assert_int_equal(p.workspace, 64);
    assert_ok(twi_device_prepare(&d, &p, true, &kernel));
    assert_string_equal(kernel->name, "plain");
    p.inputs = &odd;
    assert_ok(twi_device_prepare(&d, &p, false, &kernel));
    assert_string_equal(kernel->name, "plain");
    assert_int_equal(p.workspace, 0); /* what the first row left is gone */
    assert_null(p.touches);
    assert_false(p.varies || p.can_overwrite[0]);

    p.op = "Even";
    assert_fails(twi_device_prepare(&d, &p, false, &kernel), TW_UNIMPLEMENTED,
                 "/device:CPU:0 has no kernel for Even of type float (node 'n'): an odd number of elements");
    p.op = "Broken";
    assert_fails(twi_device_prepare(&d, &p, false, &kernel), TW_RESOURCE_EXHAUSTED, "no scratch");
    p.op = "Double";
    p.attrs = &halves;
    assert_fails(twi_device_prepare(&d, &p, false, &kernel), TW_UNIMPLEMENTED, "Double of type half");
    assert_true(twi_device_has_kernel(&d, "Double", twi_kernel_type(&attrs)));
    assert_false(twi_device_has_kernel(&d, "Double", twi_kernel_type(&halves)));
    assert_false(twi_device_has_kernel(&d, "Treble", twi_kernel_type(&attrs)));
    twi_kernel_index_free(index);
}

static int held;

static tw_status holds_and_refuses(twi_prepare *p)
{
    p->state = &held;
    held++;
    p->workspace = 64;
    return twi_fail(p->error, TW_UNIMPLEMENTED, "not this fast");
}

static tw_status holds_unless_odd(twi_prepare *p)
{
    p->state = &held;
    held++;
    return p->inputs[0].elements % 2 ? twi_fail(p->error, TW_RESOURCE_EXHAUSTED, "no room for the rest") : TW_OK;
}

static void let_go(void *state)
{
    assert_ptr_equal(state, &held);
    held--;
}

static void what_was_made_before_prepare_failed_is_released(void **state)
{
    (void)state;
    static const twi_kernel rows[] = {
        {"Holder", "fast", 0, holds_and_refuses, double_it, let_go},
        {"Holder", "plain", 0, holds_unless_odd, double_it, let_go},
        {"Empty", "plain", 0, always_fails, double_it, let_go},
        {0},
    };
    static const twi_kernel *const list[] = {rows, NULL};
    tw_error error = {0};
    twi_device_ops ops = {.type = "CPU", .kind = "test", .kernels = list};
    twi_kernel_index *index = twi_kernel_index_make(list, NULL);
    twi_device d = {.ops = &ops, .text = "/device:CPU:0", .kernels = index};
    twi_attrs attrs = {0};
    const twi_kernel *kernel;
    twi_operand odd = floats(3), even = floats(4);
    twi_prepare p = {.op = "Holder", .node = "n", .attrs = &attrs, .inputs = &even, .outputs = &even,
                     .num_inputs = 1, .num_outputs = 1, .device = &d, .error = &error};
    assert_ok(twi_device_prepare(&d, &p, false, &kernel));
    assert_string_equal(kernel->name, "plain");
    assert_int_equal(held, 1);
    assert_int_equal(p.workspace, 0);
    kernel->release(p.state);
    p.inputs = &odd;
    assert_fails(twi_device_prepare(&d, &p, false, &kernel), TW_RESOURCE_EXHAUSTED, "no room for the rest");
    assert_int_equal(held, 0);
    assert_null(p.state);
    assert_null(kernel);
    p.op = "Empty"; /* nothing is there to let go */
    assert_fails(twi_device_prepare(&d, &p, false, &kernel), TW_RESOURCE_EXHAUSTED, "no scratch");
    twi_kernel_index_free(index);
}

static tw_status takes_small(const twi_prepare *p)
{
    return p->inputs[0].elements > 8 ? twi_fail(p->error, TW_UNIMPLEMENTED, "more than 8 elements") : TW_OK;
}

static tw_status never_prepared(twi_prepare *p)
{
    return twi_fail(p->error, TW_INTERNAL, "asked to prepare %lld elements", (long long)p->inputs[0].elements);
}

static tw_status cannot_be_asked(const twi_prepare *p)
{
    return twi_fail(p->error, TW_INTERNAL, "the library does not answer");
}

static const twi_kernel choosy[] = {
    {"Double", "quick", TWI_TYPE(TW_FLOAT32), needs_even, double_it, NULL},
    {"Double", "plain", TWI_TYPE(TW_FLOAT32), NULL, double_it, NULL, .accepts = takes_small},
    {"Half", "small", TWI_TYPE(TW_FLOAT32), never_prepared, double_it, NULL, .accepts = takes_small},
    {"Third", "asking", TWI_TYPE(TW_FLOAT32), NULL, double_it, NULL, .accepts = cannot_be_asked},
    {0},
};

/* Rows before the last may say no in prepare(), so it is the last one that is asked. */
static void what_a_device_accepts_is_known_before_anything_is_prepared(void **state)
{
    (void)state;
    static const twi_kernel *const list[] = {choosy, NULL};
    tw_error error = {0}, refusal = {0};
    twi_device_ops ops = {.type = "GPU", .kind = "test", .kernels = list};
    twi_kernel_index *index = twi_kernel_index_make(list, NULL);
    twi_device d = {.ops = &ops, .text = "/device:GPU:0", .kernels = index};
    tw_attr t = tw_attr_type("T", TW_FLOAT32);
    const twi_kernel *kernel;
    twi_operand small = floats(3), large = floats(9);
    twi_prepare p = {.op = "Half", .node = "n", .attrs = &(twi_attrs){&t, 1}, .inputs = &small, .outputs = &small,
                     .num_inputs = 1, .num_outputs = 1, .device = &d, .error = &error, .refusal = &refusal};
    assert_ok(twi_device_accepts(&p, false));
    assert_fails(twi_device_accepts(&p, true), TW_UNIMPLEMENTED, "no plain kernel for Half");
    p.inputs = &large;
    assert_fails(twi_device_accepts(&p, false), TW_UNIMPLEMENTED,
                 "/device:GPU:0 has no kernel for Half of type float (node 'n'): more than 8 elements");
    assert_string_equal(refusal.message, "more than 8 elements");
    assert_fails(twi_device_prepare(&d, &p, false, &kernel), TW_UNIMPLEMENTED, "more than 8 elements");
    assert_null(kernel);
    p.op = "Double";
    assert_fails(twi_device_accepts(&p, false), TW_UNIMPLEMENTED, "more than 8 elements");
    p.inputs = &small; /* an odd number, which the quick row does not take */
    assert_ok(twi_device_accepts(&p, false));
    assert_ok(twi_device_prepare(&d, &p, false, &kernel));
    assert_string_equal(kernel->name, "plain");
    p.op = "Treble";
    assert_fails(twi_device_accepts(&p, false), TW_UNIMPLEMENTED, "no kernel for Treble");
    p.op = "Third";
    assert_fails(twi_device_accepts(&p, false), TW_INTERNAL, "the library does not answer");
    twi_kernel_index_free(index);
}

static uint64_t lacks_floats(const char *op)
{
    return strcmp(op, "Double") == 0 ? TWI_TYPE(TW_FLOAT32) : 0;
}

static void kernels_of_types_that_a_device_lacks_are_hidden(void **state)
{
    (void)state;
    tw_error error = {0};
    twi_device_ops ops = {.type = "GPU", .kind = "test", .kernels = families, .lacks = lacks_floats};
    twi_kernel_index *index = twi_kernel_index_make(families, lacks_floats);
    twi_device d = {.ops = &ops, .text = "/device:GPU:0", .kernels = index};
    tw_attr t = tw_attr_type("T", TW_FLOAT32);
    twi_attrs attrs = {&t, 1};
    twi_operand x = floats(4);
    const twi_kernel *kernel;
    twi_prepare p = {.op = "Double", .node = "n", .attrs = &attrs, .inputs = &x, .outputs = &x, .num_inputs = 1,
                     .num_outputs = 1, .device = &d, .error = &error};
    assert_true(twi_device_lacks(&d, "Double", TW_FLOAT32));
    assert_false(twi_device_lacks(&d, "Double", TW_FLOAT16));
    assert_false(twi_device_has_kernel(&d, "Double", twi_kernel_type(&attrs)));
    assert_true(twi_device_has_kernel(&d, "Even", twi_kernel_type(&attrs)));
    assert_fails(twi_device_accepts(&p, false), TW_UNIMPLEMENTED, "no kernel for Double");
    assert_fails(twi_device_prepare(&d, &p, false, &kernel), TW_UNIMPLEMENTED, "no kernel for Double");
    twi_kernel_index_free(index);
}

static void links_between_devices_are_measured(void **state)
{
    (void)state;
    tw_error error;
    tw_devices *devices;
    tw_link link;
    assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = 2}, &devices, &error));
    for (int from = 0; from < 3; from++)
        for (int to = 0; to < 3; to++) {
            assert_ok(tw_devices_measure_link(devices, from, to, &link, &error));
            assert_true(link.seconds > 0 && link.bytes_per_second > 0 && link.direct);
        }
    assert_fails(tw_devices_measure_link(devices, 0, 3, &link, &error), TW_OUT_OF_RANGE, "there are 3 devices");
    assert_int_equal(tw_devices_info(devices, 1).memory_used, 0);
    tw_devices_destroy(devices);
    tw_device_options small = {.virtual_gpus = 1, .virtual_gpu_memory = 1 << 20};
    assert_ok(tw_devices_create(&small, &devices, &error));
    assert_fails(tw_devices_measure_link(devices, 0, 1, &link, &error), TW_RESOURCE_EXHAUSTED, "measuring a link");
    tw_devices_destroy(devices);
}

static void the_type_of_a_node_is_dtype_then_t_then_the_first(void **state)
{
    (void)state;
    tw_attr list[] = {tw_attr_int("N", 2), tw_attr_type("SrcT", TW_INT8), tw_attr_type("T", TW_FLOAT64),
                      tw_attr_type("dtype", TW_INT64)};
    assert_int_equal(twi_kernel_type(&(twi_attrs){list, 4}), TW_INT64);
    assert_int_equal(twi_kernel_type(&(twi_attrs){list, 3}), TW_FLOAT64);
    assert_int_equal(twi_kernel_type(&(twi_attrs){list, 2}), TW_INT8);
    assert_int_equal(twi_kernel_type(&(twi_attrs){list, 1}), TW_INVALID_DTYPE);
}

static void a_gpu_computes_with_floats_and_passes_integers_through(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        tw_dtype type;
        bool supported;
    } table[] = {
        {"MatMul", TW_FLOAT32, true},      {"MatMul", TW_INT32, false},      {"BatchMatMul", TW_INT32, false},
        {"Conv2D", TW_FLOAT32, true},      {"Const", TW_INT32, true},        {"Const", TW_INT64, true},
        {"Const", TW_STRING, false},       {"Shape", TW_FLOAT32, true},      {"Reshape", TW_INT32, true},
        {"Add", TW_INT32, true},           {"Add", TW_INT64, true},          {"Mean", TW_INT32, false},
        {"Sum", TW_INT64, true},           {"Identity", TW_STRING, false},   {"NoOp", TW_INVALID_DTYPE, true},
        {"VarHandleOp", TW_INT64, true},   {"VarHandleOp", TW_INT32, false}, {"StridedSlice", TW_UINT8, false},
        {"StridedSlice", TW_INT32, true},  {"Pad", TW_INT64, false},         {"Relu", TW_INT32, false},
        {"Add", TW_UINT8, true},           {"Add", TW_INT8, false},          {"AddV2", TW_INT16, false},
        {"ArgMax", TW_FLOAT32, true},      {"Relu6", TW_FLOAT16, true},      {"LRN", TW_FLOAT16, false},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (!(twi_gpu_lacks(table[i].op) & TWI_TYPE(table[i].type)) != table[i].supported)
            fail_msg("%s of %s", table[i].op, tw_dtype_name(table[i].type));
}

/* ---- faults of virtual GPUs ------------------------------------------------------------------------------------ */

static void a_virtual_gpu_faults_on_memory_that_is_not_its_own(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices = open_devices((tw_device_options){.virtual_gpus = 2});
    twi_device *cpu = devices->items[0], *gpu0 = devices->items[1], *gpu1 = devices->items[2];
    twi_operand four = floats(4), five = floats(5);
    void *host, *mine, *other, *scratch;
    float values[4] = {1, 2, 3, 4};
    assert_ok(twi_device_alloc(cpu, 16, "host", &host, &error));
    assert_ok(twi_device_alloc(gpu1, 16, "mine", &mine, &error));
    assert_ok(twi_device_alloc(gpu1, 16, "scratch", &scratch, &error));
    assert_ok(twi_device_alloc(gpu0, 16, "other", &other, &error));
    assert_ok(gpu1->ops->write(gpu1, mine, values, 16, &error));

    twi_run run = {.inputs = (const void *const[]){mine}, .outputs = (void *const[]){mine}, .input_operands = &four,
                   .output_operands = &four, .num_inputs = 1, .num_outputs = 1, .threads = 1, .node = "y",
                   .error = &error};
    assert_ok(gpu1->ops->launch(gpu1, &plain[0], &run));
    assert_ok(gpu1->ops->read(gpu1, values, mine, 16, &error));
    assert_true(values[3] == 8);

    run.inputs = (const void *const[]){host};
    assert_fails(gpu1->ops->launch(gpu1, &plain[0], &run), TW_INTERNAL,
                 "Double 'y', input 0: /device:GPU:1 cannot read memory of /device:CPU:0");
    run.inputs = (const void *const[]){other};
    assert_fails(gpu1->ops->launch(gpu1, &plain[0], &run), TW_INTERNAL, "cannot read memory of /device:GPU:0");
    run.inputs = (const void *const[]){mine};
    run.outputs = (void *const[]){other};
    assert_fails(gpu1->ops->launch(gpu1, &plain[0], &run), TW_INTERNAL,
                 "Double 'y', output 0: /device:GPU:1 cannot write memory of /device:GPU:0");
    run.outputs = (void *const[]){mine};
    run.output_operands = &five;
    assert_fails(gpu1->ops->launch(gpu1, &plain[0], &run), TW_INTERNAL, "its block ends before");
    run.output_operands = &four;
    run.workspace = host;
    assert_fails(gpu1->ops->launch(gpu1, &plain[0], &run), TW_INTERNAL, "workspace 0");
    run.workspace = scratch;
    assert_ok(gpu1->ops->launch(gpu1, &plain[0], &run));

    twi_resource variable = {.name = "w", .device = gpu0, .memory = other};
    twi_operand handle = {.dtype = TW_RESOURCE, .resource = &variable};
    run.input_operands = &handle;
    assert_fails(gpu1->ops->launch(gpu1, &plain[0], &run), TW_INTERNAL, "cannot read memory of /device:GPU:0 ('w')");

    variable.device = gpu1;
    variable.memory = mine;
    run.inputs = (const void *const[]){mine};
    run.num_outputs = 0;
    assert_fails(cpu->ops->launch(cpu, &plain[0], &run), TW_INTERNAL,
                 "Double 'y': /device:CPU:0 cannot read memory of /device:GPU:1");
    run.input_operands = &four;
    assert_fails(cpu->ops->launch(cpu, &plain[0], &run), TW_INTERNAL, "cannot read memory of /device:GPU:1");
    run.inputs = (const void *const[]){host};
    run.outputs = (void *const[]){mine};
    run.num_outputs = 1;
    assert_fails(cpu->ops->launch(cpu, &plain[0], &run), TW_INTERNAL, "cannot write memory of /device:GPU:1");
    run.outputs = (void *const[]){host};
    assert_ok(cpu->ops->launch(cpu, &plain[0], &run));

    assert_fails(gpu1->ops->write(gpu1, other, values, 16, &error), TW_INTERNAL, "cannot write memory of");
    assert_fails(gpu1->ops->read(gpu1, values, host, 16, &error), TW_INTERNAL, "cannot read memory of");
    assert_fails(gpu1->ops->copy_from(gpu1, mine, gpu0, mine, 16, &error), TW_INTERNAL,
                 "/device:GPU:0 cannot read memory of /device:GPU:1");
    twi_device_free(gpu1, mine, 16);
    assert_fails(gpu1->ops->read(gpu1, values, mine, 16, &error), TW_INTERNAL, "cannot read");
    twi_device_free(cpu, host, 16);
    tw_devices_destroy(devices); /* frees what its devices still hold */
}

/* ---- names of devices -------------------------------------------------------------------------------------------- */

static const char *canonical(const char *text)
{
    static char out[192];
    tw_error error = {0};
    twi_device_name name;
    if (twi_device_name_parse(text, &name, &error) != TW_OK)
        fail_msg("%s", error.message);
    return twi_device_name_print(&name, out, sizeof out);
}

static void every_spelling_has_one_canonical_form(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"", ""},
        {"/", ""},
        {"/job:localhost/replica:0/task:0/device:GPU:0", "/job:localhost/replica:0/task:0/device:GPU:0"},
        {"/device:GPU:0/task:1/replica:2/job:ps", "/job:ps/replica:2/task:1/device:GPU:0"},
        {"/gpu:0", "/device:GPU:0"},
        {"/GPU:12", "/device:GPU:12"},
        {"/Cpu:3", "/device:CPU:3"},
        {"gpu:0", "/device:GPU:0"},
        {"job:worker/gpu:1", "/job:worker/device:GPU:1"},
        {"/device:gpu:0", "/device:GPU:0"},
        {"/device:cpu:*", "/device:CPU:*"},
        {"/gpu", "/device:GPU:*"},
        {"/gpu:*", "/device:GPU:*"},
        {"/device:GPU", "/device:GPU:*"},
        {"/device:*", ""},
        {"/device:*:*", ""},
        {"/device:Tpu_v2:1", "/device:Tpu_v2:1"},
        {"/device:tpu:1", "/device:tpu:1"},
        {"/job:*/replica:*/task:*/device:*", ""},
        {"/job:a_1B/task:7", "/job:a_1B/task:7"},
        {"/gpu:0/cpu:1", "/device:CPU:1"},
        {"/job:a/job:b", "/job:b"},
        {"/task:3/task:*", ""},
        {"/gpu:007", "/device:GPU:7"},
        {"/gpu:2147483647", "/device:GPU:2147483647"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_string_equal(canonical(table[i][0]), table[i][1]);
        assert_string_equal(canonical(table[i][1]), table[i][1]);
    }
}

static void malformed_names_are_refused_with_the_reason(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"/gpu:", "id is a number"},
        {"/gpu:-1", "id is a number"},
        {"/gpu:+1", "id is a number"},
        {"/gpu: 1", "id is a number"},
        {"/gpu:1x", "id is a number"},
        {"/gpu:2147483648", "id is a number"},
        {"/gpu:99999999999999999999999999", "id is a number"},
        {"/gpu:0:1", "id is a number"},
        {"/device:GPU:0:1", "id is a number"},
        {"/device:", "device type"},
        {"/device", "device type"},
        {"/device:1GPU", "device type"},
        {"/device:G-PU:0", "device type"},
        {"/device:*:3", "needs a type"},
        {"/device:abcdefghijklmnopqrstuvwxyzabcdef:0", "device type"},
        {"/job", "a job is"},
        {"/job:", "a job is"},
        {"/job:1", "a job is"},
        {"/job:_a", "a job is"},
        {"/job:a b", "a job is"},
        {"/job:a:b", "a job is"},
        {"/Job:a", "parts are"},
        {"/replica:x", "a replica is"},
        {"/replica", "a replica is"},
        {"/task:1.5", "a task is"},
        {"/xpu:0", "parts are"},
        {"nonsense", "parts are"},
        {"/gpux:0", "parts are"},
        {"//", "between two slashes"},
        {"//gpu:0", "between two slashes"},
        {"/job:a//gpu:0", "between two slashes"},
        {"/job:a/", "between two slashes"},
        {" ", "parts are"},
        {"/gpu:0\n", "id is a number"},
        {"\xff\xfe", "parts are"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        tw_error error = {0};
        twi_device_name name;
        char start[128];
        snprintf(start, sizeof start, "Malformed device specification '%s'", table[i][0]);
        assert_fails(twi_device_name_parse(table[i][0], &name, &error), TW_INVALID_ARGUMENT, table[i][1]);
        assert_message(error.message, start);
    }
}

static void hostile_names_are_refused_without_harm(void **state)
{
    (void)state;
    enum { LONG = 100000 };
    char *text = malloc(LONG + 1);
    static const char *const starts[] = {"/job:", "/device:", "/gpu:", "/task:", "/", ""};
    static const char fillers[] = {'a', '0', '/', ':', '*', '%', (char)0xff};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        for (size_t j = 0; j < sizeof fillers; j++) {
            memset(text, fillers[j], LONG);
            text[LONG] = 0;
            memcpy(text, starts[i], strlen(starts[i]));
            tw_error error = {0};
            twi_device_name name = TWI_NO_DEVICE;
            tw_status status = twi_device_name_parse(text, &name, &error);
            bool many_zeros = fillers[j] == '0' && (i == 2 || i == 3); /* a long way to write 0 */
            assert_int_equal(status, many_zeros ? TW_OK : TW_INVALID_ARGUMENT);
        }
    free(text);
}

static twi_device_name parsed(const char *text)
{
    twi_device_name name = TWI_NO_DEVICE;
    assert_int_equal(twi_device_name_parse(text, &name, NULL), TW_OK);
    return name;
}

static void inner_scopes_override_outer_ones_part_by_part(void **state)
{
    (void)state;
    static const char *const table[][3] = {
        {"/job:ps/task:0", "/device:GPU:0", "/job:ps/task:0/device:GPU:0"},
        {"/cpu:0", "/gpu:1", "/device:GPU:1"},
        {"/gpu:2", "/job:worker", "/job:worker/device:GPU:2"},
        {"/job:worker/task:1/cpu:0", "/task:3", "/job:worker/task:3/device:CPU:0"},
        {"/device:CPU:1", "/device:GPU", "/device:GPU:1"},
        {"", "/gpu:1", "/device:GPU:1"},
        {"/gpu:1", "", "/device:GPU:1"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        twi_device_name outer = parsed(table[i][0]), inner = parsed(table[i][1]);
        twi_device_name merged = twi_device_name_override(&outer, &inner);
        char text[192];
        assert_string_equal(twi_device_name_print(&merged, text, sizeof text), table[i][2]);
    }
}

static void merging_keeps_what_agrees_and_names_what_does_not(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        const char *strict, *soft; /* result, or the error's word */
    } table[] = {
        {"/gpu:0", "/gpu:0", "/device:GPU:0", "/device:GPU:0"},
        {"/gpu:*", "/gpu:1", "/device:GPU:1", "/device:GPU:1"},
        {"/job:a", "/task:1/cpu:0", "/job:a/task:1/device:CPU:0", "/job:a/task:1/device:CPU:0"},
        {"/gpu:0", "/cpu:0", "types", ""},
        {"/job:a/gpu:0", "/cpu:1", "types", "/job:a"},
        {"/gpu:0", "/gpu:1", "ids", "/device:GPU:*"},
        {"/job:a", "/job:b", "jobs", "jobs"},
        {"/replica:0", "/replica:1", "replicas", "replicas"},
        {"/task:0/gpu:0", "/task:1/gpu:0", "tasks", "tasks"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        twi_device_name a = parsed(table[i].a), b = parsed(table[i].b), out = TWI_NO_DEVICE;
        for (int soft = 0; soft < 2; soft++) {
            const char *expected = soft ? table[i].soft : table[i].strict;
            tw_error error = {0};
            char text[192], message[512];
            tw_status status = twi_device_name_merge(&a, &b, soft, &out, &error);
            if (expected[0] == '/' || !expected[0]) {
                assert_int_equal(status, TW_OK);
                assert_string_equal(twi_device_name_print(&out, text, sizeof text), expected);
            } else {
                assert_int_equal(status, TW_INVALID_ARGUMENT);
                snprintf(message, sizeof message, "Cannot merge devices with incompatible %s: '", expected);
                assert_message(error.message, message);
            }
        }
    }
}

static void a_name_matches_devices_that_have_every_part_it_gives(void **state)
{
    (void)state;
    twi_device_name gpu1 = parsed("/job:localhost/replica:0/task:0/device:GPU:1");
    static const struct {
        const char *spec;
        bool matches;
    } table[] = {
        {"", true}, {"/gpu:1", true}, {"/gpu:*", true}, {"/job:localhost", true}, {"/task:0/device:GPU:1", true},
        {"/gpu:0", false}, {"/cpu:1", false}, {"/job:ps", false}, {"/task:1", false}, {"/replica:1/gpu:1", false},
        {"/gpu:10", false},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        twi_device_name spec = parsed(table[i].spec);
        assert_int_equal(twi_device_name_matches(&spec, &gpu1), table[i].matches);
    }
}

static void a_gpu_may_be_given_by_its_uuid_or_the_beginning_of_it(void **state)
{
    (void)state;
    char text[192];
    tw_error error;
    twi_device_name gpu = parsed("/job:localhost/replica:0/task:0/device:GPU:1"), out;
    strcpy(gpu.uuid, "GPU-8a7e0d1c-0000-1111-2222-333344445555");
    static const struct {
        const char *spec, *canonical;
        bool matches;
    } table[] = {
        {"/gpu:GPU-8a7e0d1c-0000-1111-2222-333344445555", "/device:GPU:GPU-8a7e0d1c-0000-1111-2222-333344445555", true},
        {"gpu:GPU-8A7E", "/device:GPU:GPU-8A7E", true},
        {"/device:GPU:GPU-8a7f", "/device:GPU:GPU-8a7f", false},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        twi_device_name spec = parsed(table[i].spec);
        assert_string_equal(twi_device_name_print(&spec, text, sizeof text), table[i].canonical);
        assert_int_equal(twi_device_name_matches(&spec, &gpu), table[i].matches);
    }
    assert_string_equal(twi_device_name_print(&gpu, text, sizeof text), "/job:localhost/replica:0/task:0/device:GPU:1");
    assert_fails(twi_device_name_parse("/gpu:GPU-xyz", &out, &error), TW_INVALID_ARGUMENT, "number or '*'");
    assert_fails(twi_device_name_parse("/cpu:GPU-8a7e", &out, &error), TW_INVALID_ARGUMENT, "number or '*'");

    /* an inner scope's number or UUID replaces both of an outer one; merged, both must be the device's */
    twi_device_name number = parsed("/gpu:1"), uuid = parsed("/gpu:GPU-8a7e"), other = parsed("/gpu:GPU-9");
    out = twi_device_name_override(&uuid, &number);
    assert_string_equal(twi_device_name_print(&out, text, sizeof text), "/device:GPU:1");
    out = twi_device_name_override(&number, &uuid);
    assert_string_equal(twi_device_name_print(&out, text, sizeof text), "/device:GPU:GPU-8a7e");
    assert_ok(twi_device_name_merge(&number, &uuid, false, &out, &error));
    assert_true(twi_device_name_matches(&out, &gpu));
    assert_fails(twi_device_name_merge(&uuid, &other, false, &out, &error), TW_INVALID_ARGUMENT, "incompatible ids");
}

int main(void)
{
    unsetenv("TOWER_VIRTUAL_GPUS");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_devices_are_one_cpu_with_every_core),
        cmocka_unit_test(cpu_devices_get_equal_teams_on_cores_of_their_own),
        cmocka_unit_test(more_cpu_devices_than_cores_have_one_free_thread_each),
        cmocka_unit_test(virtual_gpus_come_after_the_cpus_in_order_of_number),
        cmocka_unit_test(the_environment_gives_virtual_gpus_unless_options_do),
        cmocka_unit_test(absurd_numbers_of_devices_are_refused),
        cmocka_unit_test(memory_is_aligned_zeroed_and_counted_small_and_big),
        cmocka_unit_test(a_full_gpu_says_its_limit_its_use_and_the_need),
        cmocka_unit_test(a_gpus_memory_is_limited_in_bytes_or_as_a_part_of_what_it_has),
        cmocka_unit_test(copies_go_between_any_two_devices),
        cmocka_unit_test(copies_between_devices_of_two_kinds_go_through_the_host),
        cmocka_unit_test(a_step_that_a_device_tells_too_little_of_has_no_time),
        cmocka_unit_test(the_fastest_kernel_that_accepts_is_prepared),
        cmocka_unit_test(what_was_made_before_prepare_failed_is_released),
        cmocka_unit_test(what_a_device_accepts_is_known_before_anything_is_prepared),
        cmocka_unit_test(kernels_of_types_that_a_device_lacks_are_hidden),
        cmocka_unit_test(links_between_devices_are_measured),
        cmocka_unit_test(the_type_of_a_node_is_dtype_then_t_then_the_first),
        cmocka_unit_test(a_gpu_computes_with_floats_and_passes_integers_through),
        cmocka_unit_test(a_virtual_gpu_faults_on_memory_that_is_not_its_own),
        cmocka_unit_test(every_spelling_has_one_canonical_form),
        cmocka_unit_test(malformed_names_are_refused_with_the_reason),
        cmocka_unit_test(hostile_names_are_refused_without_harm),
        cmocka_unit_test(inner_scopes_override_outer_ones_part_by_part),
        cmocka_unit_test(merging_keeps_what_agrees_and_names_what_does_not),
        cmocka_unit_test(a_gpu_may_be_given_by_its_uuid_or_the_beginning_of_it),
        cmocka_unit_test(a_name_matches_devices_that_have_every_part_it_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* plan.c - `tower plan`: what a training job will hold and move, before anything runs. */
#include "command.h"
#include "fit.h"
#include "json.h"
#include "painter.h" /* busy_begin */
#include "progress.h" /* bytes_text */
#include "training.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
    train_settings train; /* first: its table follows ours */
    int64_t memory_limit, top;
} settings;

enum { MOST_OWNERS = 1025 }; /* every tower, and what none owns */

/* What is printed in columns. ORDER USE: tw_memory_use */
enum { NUM_USES = TW_MEMORY_REST + 1 };
static const char *const uses[NUM_USES] = {"variables", "slots", "constants", "buffers", "input", "workspace", "rest"};
static const char *const use_of_one[NUM_USES] = {"variable", "slot", "constant", "buffer", "input", "workspace", "rest"};

/* Who has something of a device: a tower, or all of them together. */
typedef struct owner {
    int64_t bytes[NUM_USES];
    bool any;
} owner;

/* 0: all; 1 + i: tower i, by the scope that its nodes have. */
static int owner_of(const tw_memory_item *item)
{
    char *end;
    if (!item->name || strncmp(item->name, "tower_", 6) != 0)
        return 0;
    long tower = strtol(item->name + 6, &end, 10);
    return *end == '/' && tower >= 0 && tower < MOST_OWNERS - 1 ? 1 + (int)tower : 0;
}

static void sum_up(const tw_device_memory *device, owner *owners)
{
    memset(owners, 0, sizeof *owners * MOST_OWNERS);
    for (int i = 0; i < device->num_items; i++) {
        owner *o = &owners[owner_of(&device->items[i])];
        o->bytes[device->items[i].use] += device->items[i].bytes;
        o->any = true;
    }
}

/* ---- text -------------------------------------------------------------------------------------------------- */

/* Of one task the numbers of its devices do. */
static const char *local(const char *device)
{
    const char *name = strncmp(device, "/job:localhost/", 15) == 0 ? strstr(device, "/device:") : NULL;
    return name ? name : device;
}

/* Of the column of names. */
static int name_width(const tw_memory *memory)
{
    size_t width = 16;
    for (int d = 0; d < memory->num_devices; d++)
        if (strlen(local(memory->devices[d].device)) > width)
            width = strlen(local(memory->devices[d].device));
    return (int)width;
}

static void print_row(const char *name, int width, const int64_t bytes[NUM_USES], int64_t limit, bool whole)
{
    int64_t total = 0;
    printf("%-*s", width, name);
    for (int u = 0; u < NUM_USES; u++) {
        printf(" %12" PRId64, bytes[u]);
        total += bytes[u];
    }
    printf(" %13" PRId64, total);
    if (whole && limit)
        printf(" %13" PRId64, limit);
    else if (whole)
        printf(" %13s", "none");
    putchar('\n');
}

static void print_device(const tw_device_memory *device, int width, const tw_trainer *trainer, int64_t limit)
{
    static owner owners[MOST_OWNERS];
    owner all = {{0}};
    char name[32];
    int count = 0;
    sum_up(device, owners);
    for (int i = 0; i < MOST_OWNERS; i++) {
        count += owners[i].any;
        for (int u = 0; u < NUM_USES; u++)
            all.bytes[u] += owners[i].bytes[u];
    }
    print_row(local(device->device), width, all.bytes, fit_limit(device, trainer, limit), true);
    for (int i = 0; i < MOST_OWNERS && count > 1; i++) {
        if (!owners[i].any)
            continue;
        snprintf(name, sizeof name, i ? "  tower_%d" : "  shared", i - 1);
        print_row(name, width, owners[i].bytes, 0, false);
    }
}

/* Largest first, whatever the use. */
static int by_size(const void *a, const void *b)
{
    const tw_memory_item *x = *(const tw_memory_item *const *)a, *y = *(const tw_memory_item *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void print_largest(const tw_device_memory *device, int64_t top)
{
    const tw_memory_item **sorted = calloc((size_t)device->num_items + 1, sizeof *sorted);
    int count = 0;
    for (int i = 0; i < device->num_items && sorted; i++)
        if (device->items[i].name)
            sorted[count++] = &device->items[i];
    if (count && top > 0)
        printf("\n%s, the largest%s%s%s:\n", local(device->device),
               device->fullest ? " when it is fullest, while '" : "", device->fullest ? device->fullest : "",
               device->fullest ? "' runs" : "");
    qsort(sorted, (size_t)count, sizeof *sorted, by_size);
    for (int i = 0; i < count && i < top; i++)
        printf("  %13" PRId64 "  %-9s  %s (%s)\n", sorted[i]->bytes, use_of_one[sorted[i]->use], sorted[i]->name,
               sorted[i]->op);
    free(sorted);
}

/* What runs a node, or why nothing does. */
static const char *runner(const tw_planned_node *node)
{
    if (node->kernel)
        return node->kernel;
    return node->fate == TW_FATE_STEP   ? "copy"
           : node->fate == TW_FATE_FED  ? "fed"
           : node->fate == TW_FATE_FREE ? "free"
                                        : "constant";
}

/* Plan by plan: the first values, steps, and steps that write summaries are plans of their own. */
static void print_nodes(const tw_planned *planned)
{
    for (int i = 0; i < planned->num_nodes; i++) {
        const tw_planned_node *node = &planned->nodes[i];
        if (i == 0 || node->lane != node[-1].lane || node->plan != node[-1].plan)
            printf("\nplan %d of lane %d:\n  %-16s %-10s %12s %12s  %-28s %s\n", node->plan, node->lane, "device",
                   "kernel", "bytes read", "written", "op", "node");
        printf("  %-16s %-10s %12" PRId64 " %12" PRId64 "  %-28s %s\n", local(node->device), runner(node), node->read,
               node->written, node->op, node->name);
    }
}

static void print_text(const settings *s, const tw_devices *devices, const tw_trainer *trainer, const tw_memory *memory,
                       const tw_plan_info *info, const int64_t *largest, const tw_planned *planned)
{
    char moved[32];
    int towers = tw_trainer_towers(trainer), batch = tw_trainer_batch(trainer);
    printf("%s: %d tower%s of %s%d examples; a step runs %d kernels and %d copies between devices, %s\n\n",
           tw_model_at(s->train.job.model)->name, towers, towers == 1 ? "" : "s",
           tw_trainer_examples(trainer) == (int64_t)towers * batch ? "" : "at most ", batch, info->kernels,
           info->copies, bytes_text((double)info->copied_bytes, moved, sizeof moved));
    job_print_cards(devices, "");
    int width = name_width(memory);
    printf("%-*s", width, "bytes");
    for (int u = 0; u < NUM_USES; u++)
        printf(" %12s", uses[u]);
    printf(" %13s %13s\n", "total", "limit");
    for (int d = 0; d < memory->num_devices; d++)
        print_device(&memory->devices[d], width, trainer, s->memory_limit);
    for (int d = 0; d < memory->num_devices; d++)
        print_largest(&memory->devices[d], s->top);
    if (largest && *largest > 0)
        printf("\nthe largest batch for each tower that fits: %" PRId64 "\n", *largest);
    else if (largest && *largest == 0)
        printf("\nnot even a batch of one example for each tower fits\n");
    else if (largest)
        printf("\nany batch fits: what has a limit does not grow with it\n");
    if (planned)
        print_nodes(planned);
}

/* ---- json -------------------------------------------------------------------------------------------------- */

static void json_nodes(json *out, const tw_planned *planned)
{
    json_begin(out, "nodes", '[');
    for (int i = 0; i < planned->num_nodes; i++) {
        const tw_planned_node *node = &planned->nodes[i];
        json_begin(out, NULL, '{');
        json_integer(out, "lane", node->lane);
        json_integer(out, "plan", node->plan);
        json_text(out, "device", node->device);
        json_text(out, "runs", runner(node));
        json_text(out, "op", node->op);
        json_text(out, "name", node->name);
        json_integer(out, "bytes_read", node->read);
        json_integer(out, "bytes_written", node->written);
        json_end(out);
    }
    json_end(out);
}

static void print_json(const settings *s, const tw_trainer *trainer, const tw_memory *memory, const tw_plan_info *info,
                       const int64_t *largest, const tw_planned *planned)
{
    json out = {.file = stdout};
    json_begin(&out, NULL, '{');
    json_integer(&out, "towers", tw_trainer_towers(trainer));
    json_integer(&out, "batch_size", tw_trainer_batch(trainer));
    json_integer(&out, "kernels", info->kernels);
    json_integer(&out, "copies", info->copies);
    json_integer(&out, "copied_bytes", info->copied_bytes);
    json_begin(&out, "devices", '[');
    for (int d = 0; d < memory->num_devices; d++) {
        const tw_device_memory *device = &memory->devices[d];
        json_begin(&out, NULL, '{');
        json_text(&out, "device", device->device);
        json_integer(&out, "limit_bytes", fit_limit(device, trainer, s->memory_limit));
        json_integer(&out, "variable_bytes", device->variables);
        json_integer(&out, "constant_bytes", device->constants);
        json_integer(&out, "arena_bytes", device->arena);
        json_integer(&out, "total_bytes", device->total);
        json_text(&out, "fullest_at", device->fullest);
        json_begin(&out, "items", '[');
        for (int i = 0; i < device->num_items; i++) {
            const tw_memory_item *item = &device->items[i];
            json_begin(&out, NULL, '{');
            json_text(&out, "use", use_of_one[item->use]);
            json_text(&out, "name", item->name);
            json_text(&out, "op", item->op);
            json_integer(&out, "tower", owner_of(item) - 1);
            json_integer(&out, "bytes", item->bytes);
            json_end(&out);
        }
        json_end(&out);
        json_end(&out);
    }
    json_end(&out);
    if (largest)
        json_integer(&out, "largest_batch_size", *largest);
    if (planned)
        json_nodes(&out, planned);
    json_end(&out);
}

/* ---- the command ------------------------------------------------------------------------------------------- */

static bool is_limited(const settings *s, const tw_memory *memory)
{
    bool limited = s->memory_limit > 0;
    for (int d = 0; d < memory->num_devices; d++)
        limited |= memory->devices[d].limit > 0;
    return limited;
}

static int run(const void *given)
{
    const settings *s = given;
    training t;
    tw_error error = {0};
    tw_trainer *trainer = NULL;
    tw_memory *memory = NULL;
    tw_planned *planned = NULL;
    tw_plan_info info;
    int64_t largest = 0;
    int code = training_open("plan", &s->train, TRAINING_WITHOUT_DATA, &t);
    if (code != EXIT_DONE)
        return code;
    t.options.plan_only = true;
    busy_begin("planning");
    tw_status status = tw_trainer_create(&t.options, &trainer, &error);
    if (status == TW_OK)
        status = tw_trainer_plan_info(trainer, &info, &error);
    if (status == TW_OK)
        status = tw_session_memory(tw_trainer_session(trainer), &memory, &error);
    bool limited = status == TW_OK && is_limited(s, memory);
    if (limited)
        status = fit_largest_batch(&t.options, s->memory_limit, &largest, &error);
    if (status == TW_OK && s->train.job.verbose)
        status = tw_session_planned(tw_trainer_session(trainer), &planned, &error);
    busy_end();
    if (status != TW_OK)
        code = failed("plan", &error);
    else if (s->train.job.format == FORMAT_JSON)
        print_json(s, trainer, memory, &info, limited ? &largest : NULL, planned);
    else
        print_text(s, t.devices, trainer, memory, &info, limited ? &largest : NULL, planned);
    tw_planned_destroy(planned);
    tw_memory_destroy(memory);
    tw_trainer_destroy(trainer);
    training_close(&t);
    return code;
}

static const option options[] = {
    {NULL, "MODEL", OPTION_CHOICE, offsetof(settings, train.job.model), "the network",
     .list_choices = job_model_names},
    {"memory-limit", "BYTES", OPTION_BYTES, offsetof(settings, memory_limit),
     "find the largest batch with which each device that towers run on holds at most so much, such as 512M", .least = 1,
     .most = INT64_MAX, .section = "the plan"},
    {"top", "N", OPTION_NUMBER, offsetof(settings, top), "list so many of the largest tensors of each device",
     .initial = "6", .most = INT64_MAX},
    PLAN_TASKS_OPTION(settings),
    {.more = train_options + 1}, /* without its MODEL */
};

const command plan_command = {
    .name = "plan",
    .summary = "say what a training job will hold and move, before it runs",
    .description =
        "Plans the job that 'tower train' would run with the same options, and runs nothing: which bytes each device "
        "will hold (variables, the slots of the optimizer and other state, constants, and the buffers of a step at "
        "their fullest, with workspaces and gaps), for each tower, what crosses between devices, and how many kernels "
        "run. The devices will hold exactly that, to the byte.\n\n"
        "With a limit (--memory-limit, or --gpu-memory-limit and the like of 'tower train') it finds the largest "
        "batch that fits, from plans alone. With --tasks it says what each of so many tasks would hold. Steps that "
        "write summaries are planned along unless --summary-every is 0.\n\n"
        "With --verbose the plans follow, node by node: where each runs, and by which kernel.",
    .examples = "tower plan cifar10 --virtual-gpus 2\n"
                "tower plan resnet20 --virtual-gpus 1 --memory-limit 512M --summary-every 0\n"
                "tower plan cifar10 --cpu-devices 2 --batch-size 32 --format json\n"
                "tower plan cifar10 --tasks 8 --ps-hosts a,b",
    .of_tasks = TASKS_FIRST,
    .options = options,
    .settings_bytes = sizeof(settings),
    .run = run,
};

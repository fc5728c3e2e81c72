/* tasks.c - devices of other tasks. Each process has all devices of all tasks in its set, so that it places and plans
 * as the others do; those that are another's stand for it here: they have its name and its kernels, but nothing runs on
 * them, their memory is addresses that nobody touches, and what is written to them is dropped. */
#include "device/tasks.h"

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/memory.h"
#include "comm/comm.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* A table of its own for each, since what it keeps of the real one's is the kind's. */
static tw_status absent_alloc(twi_device *d, size_t bytes, void **memory, tw_error *error)
{
    void *mapped =
        mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return twi_fail(error, TW_RESOURCE_EXHAUSTED,
                        "task %d has no addresses left that stand for %zu bytes of %s, which are another task's",
                        d->set->task, bytes, d->text);
    *memory = mapped;
    return TW_OK;
}

static void absent_free(twi_device *d, void *memory, size_t bytes)
{
    (void)d;
    munmap(memory, bytes ? bytes : 1);
}

static tw_status absent_write(twi_device *d, void *to, const void *host, size_t bytes, tw_error *error)
{
    (void)d, (void)to, (void)host, (void)bytes, (void)error;
    return TW_OK;
}

static tw_status absent_read(twi_device *d, void *host, const void *from, size_t bytes, tw_error *error)
{
    (void)host, (void)from, (void)bytes;
    return twi_fail(error, TW_INTERNAL, "%s is another task's: its memory cannot be read here", d->text);
}

/* Its task replays its steps: here that it does is known, since steps are put in order for it. */
static tw_status absent_replay(twi_device *d, void *recording, tw_error *error)
{
    (void)recording;
    return twi_fail(error, TW_INTERNAL, "%s is another task's: it replays nothing here", d->text);
}

void twi_device_join(twi_device *d, int task, int ps_tasks, twi_device_ops *own)
{
    int workers = d->set->tasks - ps_tasks;
    d->task = task;
    snprintf(d->name.job, sizeof d->name.job, "%s", task < workers ? "worker" : "ps");
    d->name.task = task < workers ? task : task - workers;
    twi_device_name_print(&d->name, d->text, sizeof d->text);
    if (task == d->set->task)
        return;
    *own = (twi_device_ops){
        .type = d->ops->type,
        .kind = d->ops->kind,
        .kernels = d->ops->kernels,
        .lacks = d->ops->lacks,
        .alloc = absent_alloc,
        .free = absent_free,
        .write = absent_write,
        .read = absent_read,
        .replay = d->ops->replay ? absent_replay : NULL,
        .reduces = d->ops->reduces,
        .describe = d->ops->describe,
        .destroy = d->ops->destroy,
    };
    d->ops = own;
    d->absent = true;
    d->num_cores = 0;
}

void twi_devices_stand_in(tw_devices *set, int first, int each)
{
    for (int i = first; i < set->count; i++)
        if (set->items[i]->absent)
            set->items[i]->stand_in = set->items[first + set->task * each + (i - first) % each];
}

/* ---- for all who have the set -------------------------------------------------------------------------------- */

static void describe_device(const void *user, size_t i, char *text, size_t size)
{
    const tw_devices *set = user;
    if (i < (size_t)set->count)
        snprintf(text, size, "%s: %s%s%s", set->items[i]->text, set->items[i]->description,
                 set->items[i]->arithmetic[0] ? ", " : "", set->items[i]->arithmetic);
}

static void describe_version(const void *user, size_t i, char *text, size_t size)
{
    (void)user;
    if (i == 0)
        snprintf(text, size, "Tower %s (%s)", tw_version(), tw_revision()[0] ? tw_revision() : "revision not known");
}

static tw_status compare_versions(const tw_devices *set, tw_error *error)
{
    char text[200];
    describe_version(NULL, 0, text, sizeof text);
    uint64_t hash = twi_fingerprint(text, strlen(text));
    return twi_comm_compare(set->comm, &(twi_comm_list){&hash, 1, describe_version, NULL}, "their versions", error);
}

/* The devices of this task stand for those of all: who has others has another list. */
static tw_status compare_devices(const tw_devices *set, tw_error *error)
{
    char text[400];
    uint64_t *hashes = twi_alloc_array((size_t)set->count + 1, sizeof *hashes);
    if (!hashes)
        return twi_fail_memory(error, "opening devices");
    for (int i = 0; i < set->count; i++) {
        /* Cores are bound where they are; what the others plan for is the size of the team. */
        const twi_device *d = set->items[i];
        snprintf(text, sizeof text, "%s %s %d %s", d->text, d->ops->kind, d->threads, d->arithmetic);
        hashes[i] = twi_fingerprint(text, strlen(text));
    }
    tw_status status = twi_comm_compare(set->comm, &(twi_comm_list){hashes, (size_t)set->count, describe_device, set},
                                        "their devices", error);
    twi_free(hashes);
    return status;
}

/* What only its own task knows of a device. */
typedef struct own_facts {
    char uuid[sizeof((twi_device_name *)NULL)->uuid], description[sizeof((twi_device *)NULL)->description];
} own_facts;

static tw_status share_facts(const tw_devices *set, twi_device *d, tw_error *error)
{
    own_facts facts = {{0}};
    memcpy(facts.uuid, d->name.uuid, sizeof facts.uuid);
    memcpy(facts.description, d->description, sizeof facts.description);
    tw_status status = twi_comm_share(set->comm, d->task, &facts, sizeof facts, "what its devices are", error);
    memcpy(d->name.uuid, facts.uuid, sizeof facts.uuid);
    memcpy(d->description, facts.description, sizeof facts.description);
    return status;
}

/* The first of another task that comes before d and is the same card; NULL: there is none. */
static const twi_device *same_card(const tw_devices *set, const twi_device *d)
{
    for (int i = 0; i < set->count && d->name.uuid[0]; i++)
        if (set->items[i]->task < d->task && strcmp(set->items[i]->name.uuid, d->name.uuid) == 0)
            return set->items[i];
    return NULL;
}

/* Each task of a machine sees all its cards, unless it is told which are its own. */
static void say_same_card(const tw_devices *set)
{
    for (int i = 0; i < set->count; i++) {
        const twi_device *d = set->items[i], *other = d->absent ? NULL : same_card(set, d);
        if (!other)
            continue;
        twi_log(TWI_LOG_WARNING,
                "%s and %s are one card, %s, on which tasks %d and %d take turns: CUDA_VISIBLE_DEVICES gives each task "
                "cards of its own",
                other->text, d->text, d->name.uuid, other->task, d->task);
        return;
    }
}

tw_status twi_devices_compare(const tw_devices *set, tw_error *error)
{
    tw_status status = compare_versions(set, error);
    if (status == TW_OK)
        status = compare_devices(set, error);
    for (int i = 0; i < set->count && status == TW_OK; i++)
        if (set->items[i]->name.uuid[0])
            status = share_facts(set, set->items[i], error);
    if (status == TW_OK)
        say_same_card(set);
    return status;
}

int tw_task_started(int *tasks)
{
    int unwanted;
    return twi_comm_started(tasks ? tasks : &unwanted);
}

int tw_devices_task(const tw_devices *devices)
{
    TWI_NEED_OR(devices, 0);
    return devices->task;
}

int tw_devices_tasks(const tw_devices *devices)
{
    TWI_NEED_OR(devices, 1);
    return devices->tasks;
}

tw_status twi_devices_check_tasks(const tw_devices *set, tw_error *error)
{
    if (set->comm || set->tasks == 1)
        return TW_OK;
    return twi_fail(error, TW_FAILED_PRECONDITION,
                    "nothing can run on these devices: options.plan_tasks made them of %d tasks that were not started",
                    set->tasks);
}

tw_status tw_devices_share(tw_devices *devices, void *data, size_t bytes, tw_error *error)
{
    TWI_NEED(devices, "devices", error);
    TWI_NEED(data || bytes == 0, "data", error);
    return devices->comm ? twi_comm_share(devices->comm, 0, data, bytes, "a decision", error) : TW_OK;
}

static size_t line_length(const char *text)
{
    return strcspn(text, "\n");
}

/* Where the i-th line begins; NULL: there are fewer. */
static const char *find_line(const char *text, size_t i)
{
    for (; i > 0 && *text; i--)
        text += line_length(text) + (text[line_length(text)] != 0);
    return *text ? text : NULL;
}

static void describe_line(const void *user, size_t i, char *text, size_t size)
{
    const char *line = find_line(user, i);
    if (line)
        snprintf(text, size, "%.*s", (int)line_length(line), line);
}

tw_status tw_devices_agree(tw_devices *devices, const char *lines, const char *what, tw_error *error)
{
    TWI_NEED(devices, "devices", error);
    TWI_NEED(lines, "lines", error);
    TWI_NEED(what, "what", error);
    size_t count = 0;
    if (!devices->comm)
        return TW_OK;
    uint64_t *hashes = twi_alloc_array(strlen(lines) + 1, sizeof *hashes);
    if (!hashes)
        return twi_fail_memory(error, "comparing tasks");
    for (const char *line = lines; line; line = find_line(line, 1))
        hashes[count++] = twi_fingerprint(line, line_length(line));
    twi_comm_list list = {hashes, count, describe_line, lines};
    tw_status status = twi_comm_compare(devices->comm, &list, what, error);
    twi_free(hashes);
    return status;
}

int tw_devices_asked(tw_devices *devices, int own)
{
    TWI_NEED_OR(devices, own);
    return devices->comm ? devices->comm->ops->asked(devices->comm, own) : own;
}

bool tw_devices_is_to_say(tw_devices *devices, const char *text)
{
    TWI_NEED_OR(devices && text, true);
    return !devices->comm || devices->comm->ops->is_to_say(devices->comm, text);
}

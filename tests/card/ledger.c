/* ledger.c - figures that no test promises: how many nodes a step's graph has on a card, how many of them come one
 * after the other, which is what a small network's step costs there, and how many are libraries'; and how many bytes
 * its nodes read and write, beside those of its tensors and variables, each once. Prints each with its value in the
 * ledger (bench/ledger.txt) and now; --write puts what is now into the ledger. On a card that is not there (card.h),
 * so a convolution of cuDNN, or a product of cuBLASLt, counts as one node, though it may be several kernels, and of
 * bytes those that kernels keep in between do not count.
 *
 * usage: ledger FILE [--write] */
#include "card.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tower/tower.h>

typedef struct job {
    const char *model;
    tw_dtype dtype;
    int towers;
    bool tf32; /* products of floats are of TF32 */
} job;

static const job jobs[] = {
    {"cifar10", TW_BFLOAT16, 1},      {"cifar10", TW_FLOAT16, 1},  {"cifar10", TW_FLOAT32, 1, .tf32 = true},
    {"cifar10", TW_FLOAT32, 1},       {"cifar10", TW_BFLOAT16, 2}, {"resnet44", TW_BFLOAT16, 1},
    {"resnet44", TW_FLOAT16, 1},      {"resnet44", TW_FLOAT32, 1, .tf32 = true},
    {"resnet44", TW_FLOAT32, 1},      {"resnet44", TW_BFLOAT16, 2},
};
enum { JOBS = sizeof jobs / sizeof *jobs, BATCH = 128 };

typedef struct figures {
    long nodes, depth, libraries, moved, once;
} figures;

/* What nodes on cards move in the latest plan, which is a step's. */
static tw_status count_bytes(tw_trainer *trainer, figures *of, tw_error *error)
{
    tw_planned *planned = NULL;
    tw_status status = tw_session_planned(tw_trainer_session(trainer), &planned, error);
    of->moved = of->once = 0;
    for (int i = 0; status == TW_OK && i < planned->num_nodes; i++) {
        const tw_planned_node *node = &planned->nodes[i];
        if (node->plan != planned->nodes[planned->num_nodes - 1].plan || !strstr(node->device, "GPU"))
            continue;
        of->moved += node->read + node->written;
        of->once += node->written; /* a tensor, or variable, by the one that makes it */
    }
    tw_planned_destroy(planned);
    return status;
}

static long calls_of_libraries(void)
{
    return card_count("cudnnBackendExecute") + card_count("cublasLtMatmul");
}

/* Of the second step: the first runs node by node. */
static tw_status count(const tw_trainer_options *options, figures *of, tw_error *error)
{
    tw_trainer *trainer = NULL;
    tw_trainer_step_result result;
    tw_status status = tw_trainer_create(options, &trainer, error);
    if (status == TW_OK)
        status = tw_trainer_step(trainer, &result, error);
    of->depth = -card_count("depth");
    of->nodes = -card_count("node");
    of->libraries = -calls_of_libraries();
    if (status == TW_OK)
        status = tw_trainer_step(trainer, &result, error);
    of->depth += card_count("depth");
    of->nodes += card_count("node");
    of->libraries += calls_of_libraries();
    if (status == TW_OK)
        status = count_bytes(trainer, of, error);
    tw_trainer_destroy(trainer);
    return status;
}

static tw_status measure(const job *j, figures *of, tw_error *error)
{
    static const char *const gpus[] = {"/gpu:0", "/gpu:1"};
    tw_devices *devices = NULL;
    tw_dataset *data = NULL;
    tw_status status = tw_devices_create(&(tw_device_options){.cpu_threads = 1, .tf32 = j->tf32}, &devices, error);
    if (status == TW_OK)
        status = tw_dataset_synthetic(BATCH, 32, 32, 3, 10, 1, &data, error);
    if (status == TW_OK)
        status = count(&(tw_trainer_options){.model = tw_model_find(j->model), .dataset = data, .devices = devices,
                                             .seed = 1, .batch = BATCH, .dtype = j->dtype, .tower_devices = gpus,
                                             .num_tower_devices = j->towers,
                                             .variables = {.update = TW_UPDATE_REPLICATED}},
                       of, error);
    tw_dataset_destroy(data);
    tw_devices_destroy(devices);
    return status;
}

/* The value of a figure in the ledger's text, "-" if it is not there. */
static const char *entry(const char *ledger, const char *name, char value[32])
{
    size_t length = strlen(name);
    strcpy(value, "-");
    for (const char *line = ledger; line && *line; line = (line = strchr(line, '\n')) ? line + 1 : NULL)
        if (strncmp(line, name, length) == 0 && line[length] == ' ')
            sscanf(line + length, "%31s", value);
    return value;
}

static void report(const char *ledger, FILE *to, const job *j, const char *what, long now, const char *meaning)
{
    char name[100], before[32];
    snprintf(name, sizeof name, "%s-%s-%d-%s", j->model, j->tf32 ? "tf32" : tw_dtype_name(j->dtype), j->towers, what);
    printf("%-28s %8s %8ld\n", name, entry(ledger, name, before), now);
    if (to)
        fprintf(to, "%-28s %8ld  %s\n", name, now, meaning);
}

static int run(const char *ledger, FILE *to)
{
    tw_error error = {0};
    tw_status status = TW_OK;
    card_be_lazy(1);
    printf("%-28s %8s %8s\n", "", "before", "now");
    for (int i = 0; i < JOBS && status == TW_OK; i++) {
        figures now;
        status = measure(&jobs[i], &now, &error);
        if (status == TW_OK) {
            report(ledger, to, &jobs[i], "nodes", now.nodes, "nodes of a step's graph");
            report(ledger, to, &jobs[i], "depth", now.depth, "of them, on the longest way through it");
            report(ledger, to, &jobs[i], "libraries", now.libraries, "of them, by libraries: perhaps more kernels");
            report(ledger, to, &jobs[i], "moved", now.moved, "bytes that its nodes read and write");
            report(ledger, to, &jobs[i], "once", now.once, "bytes of its tensors and variables, each once");
        }
    }
    if (status != TW_OK)
        fprintf(stderr, "ledger: %s\n", error.message);
    return status == TW_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int count_words, char **words)
{
    static char ledger[1 << 16];
    bool writes = count_words == 3 && strcmp(words[2], "--write") == 0;
    if (count_words < 2 || (count_words > 2 && !writes)) {
        fprintf(stderr, "usage: ledger FILE [--write]\n");
        return 2;
    }
    FILE *file = fopen(words[1], "r");
    if (file) {
        ledger[fread(ledger, 1, sizeof ledger - 1, file)] = 0;
        fclose(file);
    }
    FILE *to = writes ? fopen(words[1], "w") : NULL;
    if (writes ? !to : !file) {
        fprintf(stderr, "ledger: %s cannot be opened\n", words[1]);
        return EXIT_FAILURE;
    }
    if (to)
        fputs("# Figures that no test promises: name (model, type, towers, what), value, what it is. scripts/bench --ledger\n"
              "# prints them beside what they are now, and --ledger --write writes them.\n", to);
    int code = run(ledger, to);
    return to && fclose(to) ? EXIT_FAILURE : code;
}

/* export.c - `tower export`: a trained network as a file that other programs take. */
#include "command.h"
#include "job.h"
#include "recipe.h"
#include "run_file.h"
#include "whole_file.h"
#include "word.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tower/nn.h>
#include <tower/session.h>
#include <unistd.h>

typedef struct settings {
    job job;
    recipe recipe; /* what concerns the network */
    const char *what, *file;
    bool raw, overwrite;
} settings;

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

static bool read_presets(const void *given, presets *presets)
{
    const settings *s = given;
    return run_file_presets_of("export", s->what, s->job.train_dir, presets);
}

static void print_next(const char *file)
{
    printf("next:\n  tower show ");
    print_word(file, NULL);
    printf("\n");
}

/* ---- a graph of constants ---------------------------------------------------------------------------------------- */

/* What images:0 wants of pixels. */
static void print_pixels(const tw_model *model)
{
    double scale = model->scale != 0 ? (double)model->scale : 1 / 255.0;
    if (model->evaluation == TW_AUGMENT_TUTORIAL_EVAL)
        printf("  images are (pixel - mean) / max(deviation, 1 / sqrt(%d)) of each image's own values\n",
               model->height * model->width * model->channels);
    else
        printf("  images are pixel * %g %c %g of bytes\n", scale, model->offset < 0 ? '-' : '+',
               fabs((double)model->offset));
}

static bool export_graph(const settings *s, const tw_model *model, const char *checkpoint)
{
    tw_error error = {0};
    void *bytes;
    size_t size;
    if (tw_freeze(model, checkpoint, s->raw, &bytes, &size, &error) != TW_OK)
        return failed("export", &error) == EXIT_DONE;
    bool good = whole_file_write(s->file, bytes, size) ||
                complain("export", "cannot write '%s': %s", s->file, strerror(errno));
    tw_free(bytes);
    if (good) {
        printf(
            "%s: a frozen graph of %zu bytes; feed images:0 [?,%d,%d,%d], fetch probabilities:0 or logits:0 [?,%d]\n",
            s->file, size, model->height, model->width, model->channels, model->classes);
        print_pixels(model);
        print_next(s->file);
    }
    return good;
}

/* ---- a SavedModel ------------------------------------------------------------------------------------------------ */

/* The network with its variables, and the signature that servers look for. */
static tw_status save_model(const settings *s, const tw_model *model, const char *checkpoint_path, tw_graph *g,
                            tw_devices *devices, tw_error *error)
{
    tw_session *session = NULL;
    tw_checkpoint *checkpoint = NULL;
    tw_output images =
        tw_placeholder(tw_name(g, "images"), TW_FLOAT32, TW_SHAPE(-1, model->height, model->width, model->channels));
    tw_output logits = tw_identity(tw_name(g, "logits"), model->logits(g, model, images, TW_FLOAT32, false));
    tw_signature_value inputs[] = {{.name = "images", .output = images}};
    tw_signature_value outputs[] = {
        {.name = "logits", .output = logits},
        {.name = "probabilities", .output = tw_softmax(tw_name(g, "probabilities"), logits)}};
    tw_signature serving = {"serving_default", "tensorflow/serving/predict", inputs, outputs, 1, 2};
    tw_status status = tw_session_create(
        g, TW_OPTIONS(tw_session_options, .devices = devices, .allow_soft_placement = true), &session, error);
    if (status == TW_OK)
        status = tw_checkpoint_open(checkpoint_path, &checkpoint, error);
    if (status == TW_OK)
        status = tw_restore(session, checkpoint, TW_OPTIONS(tw_restore_options, .averages = !s->raw), NULL, error);
    if (status == TW_OK)
        status = tw_saved_model_save(
            session, s->file, TW_OPTIONS(tw_meta_graph_options, .signatures = &serving, .num_signatures = 1), error);
    tw_checkpoint_close(checkpoint);
    tw_session_destroy(session);
    return status;
}

static bool export_model(const settings *s, const tw_model *model, const char *checkpoint)
{
    tw_error error = {0};
    tw_devices *devices = job_open_devices("export", &s->job);
    tw_graph *g = tw_graph_create();
    if (!devices || !g)
        complain("export", "there is nothing to export with");
    else if (save_model(s, model, checkpoint, g, devices, &error) != TW_OK)
        failed("export", &error);
    bool good = devices && g && error.status == TW_OK;
    tw_graph_destroy(g);
    tw_devices_destroy(devices);
    if (good) {
        printf("%s: a SavedModel; its signature serving_default takes images [?,%d,%d,%d] and gives probabilities and "
               "logits "
               "[?,%d]\n",
               s->file, model->height, model->width, model->channels, model->classes);
        print_pixels(model);
        print_next(s->file);
    }
    return good;
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

/* One member of the archive: "conv1/weights.npy". */
static bool add_array(struct archive *archive, const char *name, const char *file, tw_error *error)
{
    char member[1024], buffer[1 << 14];
    FILE *from = fopen(file, "rb");
    struct archive_entry *entry = archive_entry_new();
    bool is_read = from && fseek(from, 0, SEEK_END) == 0, is_written = entry;
    snprintf(member, sizeof member, "%s.npy", name);
    if (is_read && is_written) {
        archive_entry_set_pathname(entry, member);
        archive_entry_set_size(entry, ftell(from));
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, 0644);
        is_written = archive_write_header(archive, entry) == ARCHIVE_OK;
        rewind(from);
    }
    for (size_t size; is_read && is_written && (size = fread(buffer, 1, sizeof buffer, from)) > 0;)
        is_written = archive_write_data(archive, buffer, size) == (la_ssize_t)size;
    is_read = is_read && !ferror(from); /* what is missing would be filled up with zeros */
    if (!is_read) {
        error->status = TW_DATA_LOSS;
        snprintf(error->message, sizeof error->message, "cannot read the array '%.800s' back: %s", name,
                 strerror(errno));
    }
    archive_entry_free(entry);
    if (from)
        fclose(from);
    return is_read && is_written;
}

/* All tensors that are numbers, each through a file of its own: NumPy's format is written in one place. */
static bool add_arrays(struct archive *archive, tw_checkpoint *checkpoint, const char *scratch, int *count,
                       tw_error *error)
{
    bool good = true;
    *count = 0;
    for (int i = 0; good && i < tw_checkpoint_count(checkpoint); i++) {
        tw_tensor *tensor = NULL;
        const char *name = tw_checkpoint_name(checkpoint, i);
        if (tw_checkpoint_dtype(checkpoint, i) == TW_STRING || strncmp(name, "tower/", 6) == 0)
            continue;
        good = tw_checkpoint_read(checkpoint, name, &tensor, error) == TW_OK &&
               tw_tensor_write_npy(tensor, scratch, error) == TW_OK && add_array(archive, name, scratch, error);
        tw_tensor_release(tensor);
        *count += good;
    }
    return good;
}

static bool export_arrays(const settings *s, const char *path)
{
    char scratch[PATH_MAX + 64];
    int count = 0;
    tw_error error = {0};
    tw_checkpoint *checkpoint;
    whole_file whole;
    if (tw_checkpoint_open(path, &checkpoint, &error) != TW_OK)
        return failed("export", &error) == EXIT_DONE;
    if (!whole_file_open(&whole, s->file)) {
        tw_checkpoint_close(checkpoint);
        return complain("export", "cannot write '%s': %s", s->file, strerror(errno));
    }
    snprintf(scratch, sizeof scratch, "%s.npy", whole.beside[0] ? whole.beside : s->file);
    struct archive *archive = archive_write_new();
    bool good = archive && archive_write_set_format_zip(archive) == ARCHIVE_OK &&
                archive_write_set_format_option(archive, "zip", "compression", "store") == ARCHIVE_OK &&
                archive_write_open_FILE(archive, whole.file) == ARCHIVE_OK &&
                add_arrays(archive, checkpoint, scratch, &count, &error) && archive_write_close(archive) == ARCHIVE_OK;
    if (!good && !error.message[0])
        snprintf(error.message, sizeof error.message, "cannot write '%.800s': %s", s->file,
                 archive && archive_errno(archive) ? strerror(archive_errno(archive)) : "out of memory");
    archive_write_free(archive);
    tw_checkpoint_close(checkpoint);
    unlink(scratch);
    bool written = whole_file_close(&whole, good);
    if (!good)
        return complain("export", "%s", error.message);
    if (!written)
        return complain("export", "cannot write '%s': %s", s->file, strerror(errno));
    printf("%s: %d arrays; numpy.load('%s') reads them\n", s->file, count, s->file);
    return true;
}

/* ---- either ------------------------------------------------------------------------------------------------------ */

static int run(const void *given)
{
    settings filled = *(const settings *)given, *s = &filled;
    char own[64];
    tw_model model;
    bool arrays = ends_with(s->file, ".npz"), graph = ends_with(s->file, ".pb");
    const char *slash = strrchr(s->file, '/'), *name = slash ? slash + 1 : s->file;
    if (!arrays && !graph && strchr(name, '.') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
        complain("export",
                 "FILE: expected a name that ends in .pb (a frozen graph) or .npz (arrays), or has no ending (the "
                 "directory of a SavedModel), found '%s'",
                 s->file);
        return EXIT_USAGE;
    }
    if ((arrays || graph) && !s->overwrite && access(s->file, F_OK) == 0) {
        complain("export", "'%s' is there already; --overwrite replaces it", s->file);
        return EXIT_FAILED;
    }
    if (arrays)
        return export_arrays(s, job_train_dir(&s->job, own, sizeof own)) ? EXIT_DONE : EXIT_FAILED;
    if (s->job.model < 0) {
        complain("export", "'%s' does not say which model it was made by (it has no " RUN_FILE "); give --model",
                 s->what);
        return EXIT_USAGE;
    }
    recipe_of_network(&s->recipe);
    if (!recipe_follow("export", &s->recipe, tw_model_at(s->job.model), &model))
        return EXIT_USAGE;
    const char *checkpoint = job_train_dir(&s->job, own, sizeof own);
    return (graph ? export_graph(s, &model, checkpoint) : export_model(s, &model, checkpoint)) ? EXIT_DONE
                                                                                               : EXIT_FAILED;
}

static const option options[] = {
    {NULL, "RUN", OPTION_DIRECTORY, offsetof(settings, what),
     "a train directory, or a checkpoint in one; or a model, whose --train-dir it is then"},
    {NULL, "FILE", OPTION_FILE, offsetof(settings, file),
     "what to write: NAME.pb, a graph whose variables are constants (GraphDef); a NAME without an ending, the "
     "directory of a "
     "SavedModel; NAME.npz, the variables as NumPy's arrays"},
    {"overwrite", NULL, OPTION_FLAG, offsetof(settings, overwrite), "replace a file that is there"},
    {"train-dir", "DIR", OPTION_DIRECTORY, offsetof(settings, job.train_dir),
     "where RUN's checkpoints lie, if it is a model"},
    {"model", "NAME", OPTION_CHOICE, offsetof(settings, job.model), "the network, where RUN does not say which it is",
     .list_choices = job_model_names},
    {"raw", NULL, OPTION_FLAG, offsetof(settings, raw),
     "take the variables as they were trained last, not their moving averages"},
    CPU_DEVICES_OPTION(settings),
    CPU_THREADS_OPTION(settings),
    NETWORK_OPTIONS(settings),
    {0},
};

const command export_command = {
    .name = "export",
    .summary = "write a trained network for other programs",
    .description = "Writes the newest complete checkpoint of a train directory in a form that needs nothing of Tower. "
                   "A frozen graph "
                   "takes images as the network's evaluation makes them of pixels (for cifar10 the middle 24 x 24, "
                   "standardised; for "
                   "others pixel * scale + offset) and gives logits and probabilities; TensorFlow, tower show and "
                   "tower run read it. "
                   "The ending of FILE says what is wanted.",
    .examples = "tower export cifar10_train cifar10.pb\ntower export cifar10_train serving/cifar10\ntower export "
                "cifar10_train/model.ckpt-1000 weights.npz",
    .of_tasks = TASKS_FIRST,
    .options = options,
    .settings_bytes = sizeof(settings),
    .read_presets = read_presets,
    .run = run,
};

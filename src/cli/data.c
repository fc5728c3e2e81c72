/* data.c - `tower data fetch` and `tower data info`: getting data sets, and looking at them. */
#include "cell.h"
#include "command.h"
#include "json.h"
#include "painter.h"
#include "places.h"
#include "progress.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <tower/data.h>

enum { MOST_CHANNELS = 4 };

/* ---- tower data fetch -------------------------------------------------------------------------------------- */

typedef struct fetch_settings {
    int name;
    const char *data_dir, *url;
} fetch_settings;

#define DATA_SETS "cifar10|mnist|fashion-mnist"
static const char *const data_sets[] = {"cifar10", "mnist", "fashion-mnist"}; /* as in DATA_SETS */

static bool show_progress(void *user, const char *file, int64_t done, int64_t total)
{
    progress_update(user, file, done, total);
    if (done >= total) {
        progress_end(user);
        busy_end();
        busy_begin("checking and unpacking"); /* until the next file comes, or all is there */
    }
    return true;
}

static int fetch(const void *given)
{
    const fetch_settings *s = given;
    const char *name = data_sets[s->name];
    char directory[PATH_MAX];
    if (!data_directory("data fetch", s->data_dir, name, directory, sizeof directory))
        return EXIT_FAILED;
    tw_error error = {0};
    progress progress = progress_to(stderr);
    tw_status status = tw_data_fetch(name, directory, s->url, show_progress, &progress, &error);
    progress_end(&progress);
    busy_end();
    if (status != TW_OK)
        return failed("data fetch", &error);
    printf("%s is in %s\n", name, directory);
    return EXIT_DONE;
}

static const option fetch_options[] = {
    {NULL, "NAME", OPTION_CHOICE, offsetof(fetch_settings, name), "the data set", .choices = DATA_SETS},
    {"data-dir", "DIR", OPTION_DIRECTORY, offsetof(fetch_settings, data_dir),
     "where to put it; without it NAME in $TOWER_DATA_DIR, $XDG_CACHE_HOME/tower or ~/.cache/tower"},
    {"url", "URL", OPTION_TEXT, offsetof(fetch_settings, url),
     "the http, https or file URL of a folder that holds the files, instead of the official places"},
    {0},
};

const command data_fetch_command = {
    .name = "data fetch",
    .summary = "download a data set",
    .description =
        "Downloads the official files of a data set and lays them out as 'tower train' wants them. Files that are "
        "there already are not downloaded again, and a download that was cut short is continued. Every file is "
        "compared with the SHA-256 known for it before it gets its name.\n\n"
        "Without a connection it says which files to bring by hand, and where to put them. Proxies are taken from the "
        "environment (https_proxy), as curl does.",
    .examples = "tower data fetch cifar10\ntower data fetch mnist --data-dir data/mnist\n"
                "tower data fetch cifar10 --url file:///media/usb/datasets",
    .options = fetch_options,
    .settings_bytes = sizeof(fetch_settings),
    .run = fetch,
};

/* ---- tower data info --------------------------------------------------------------------------------------- */

typedef struct info_settings {
    const char *directory;
    int format;
} info_settings;

/* Both halves of a data set, looked at. */
typedef struct survey {
    tw_dataset *half[2]; /* train, test */
    int64_t *counts[2]; /* of each class */
    double mean[2][MOST_CHANNELS], stddev[2][MOST_CHANNELS];
} survey;

static const char *const half_names[] = {"train", "test"};

static void print_text(const survey *v, const char *directory)
{
    const tw_dataset *train = v->half[0];
    printf("%s in %s\n\n", tw_dataset_name(train), directory);
    for (int h = 0; h < 2; h++) {
        const tw_dataset *d = v->half[h];
        printf("%-5s %8lld images of %d x %d x %d", half_names[h], (long long)tw_dataset_count(d), tw_dataset_height(d),
               tw_dataset_width(d), tw_dataset_channels(d));
        printf("; mean");
        for (int c = 0; c < tw_dataset_channels(d); c++)
            printf(" %.2f", v->mean[h][c]);
        printf("; standard deviation");
        for (int c = 0; c < tw_dataset_channels(d); c++)
            printf(" %.2f", v->stddev[h][c]);
        putchar('\n');
    }
    printf("\nlabel  %-14s %8s %8s\n", "class", "train", "test");
    for (int i = 0; i < tw_dataset_classes(train); i++) {
        printf("%5d  ", i);
        print_cell(tw_dataset_class_name(train, i), 14, INT_MAX, false);
        printf(" %8lld %8lld\n", (long long)v->counts[0][i], (long long)v->counts[1][i]);
    }
}

static void print_json(const survey *v, const char *directory)
{
    json out = {.file = stdout};
    json_begin(&out, NULL, '{');
    json_text(&out, "name", tw_dataset_name(v->half[0]));
    json_text(&out, "directory", directory);
    for (int h = 0; h < 2; h++) {
        const tw_dataset *d = v->half[h];
        json_begin(&out, half_names[h], '{');
        json_integer(&out, "count", tw_dataset_count(d));
        json_integer(&out, "height", tw_dataset_height(d));
        json_integer(&out, "width", tw_dataset_width(d));
        json_integer(&out, "channels", tw_dataset_channels(d));
        json_begin(&out, "mean", '[');
        for (int c = 0; c < tw_dataset_channels(d); c++)
            json_number(&out, NULL, v->mean[h][c]);
        json_end(&out);
        json_begin(&out, "stddev", '[');
        for (int c = 0; c < tw_dataset_channels(d); c++)
            json_number(&out, NULL, v->stddev[h][c]);
        json_end(&out);
        json_begin(&out, "classes", '[');
        for (int i = 0; i < tw_dataset_classes(d); i++) {
            json_begin(&out, NULL, '{');
            json_text(&out, "name", tw_dataset_class_name(d, i));
            json_integer(&out, "count", v->counts[h][i]);
            json_end(&out);
        }
        json_end(&out);
        json_end(&out);
    }
    json_end(&out);
}

/* Loads both halves and looks at them. */
static tw_status look_at(const char *name, const char *directory, survey *v, tw_error *error)
{
    progress progress = progress_to(stderr);
    tw_dataset_options options = {.allow_fewer = true, .when_needed = true, .image_memory = 1};
    tw_status status = TW_OK;
    progress.unit = "images";
    progress.quiet = 2;
    for (int h = 0; h < 2 && status == TW_OK; h++) {
        status = tw_dataset_load(name, directory, h ? TW_SPLIT_TEST : TW_SPLIT_TRAIN, &options, &v->half[h], error);
        if (status == TW_OK)
            status = tw_dataset_read(v->half[h], progress_go_on, &progress, error);
        if (status != TW_OK)
            break;
        v->counts[h] = calloc((size_t)tw_dataset_classes(v->half[h]), sizeof *v->counts[h]);
        if (v->counts[h]) {
            tw_dataset_info(v->half[h], v->counts[h], v->mean[h], v->stddev[h]);
        } else {
            *error = (tw_error){TW_RESOURCE_EXHAUSTED, "out of memory for the counts of the classes"};
            status = error->status;
        }
    }
    progress_end(&progress);
    return status;
}

static int info(const void *given)
{
    const info_settings *s = given;
    const char *name = tw_dataset_detect(s->directory);
    DIR *directory = opendir(s->directory);
    if (!directory) {
        complain("data info", "cannot look into '%s': %s", s->directory, strerror(errno));
        return EXIT_FAILED;
    }
    closedir(directory);
    if (!name) {
        complain("data info",
                 "no data set in '%s': expected CIFAR-10's data_batch_1.bin to 5 and test_batch.bin (there "
                 "or in cifar-10-batches-bin), MNIST's train-images-idx3-ubyte and its like, or images of your own: a "
                 "folder for each class, a labels.csv, images.npy and labels.npy, or files of records (.tfrecord)",
                 s->directory);
        return EXIT_FAILED;
    }
    tw_error error = {0};
    survey v = {0};
    tw_status status = look_at(name, s->directory, &v, &error);
    if (status == TW_OK && s->format == FORMAT_JSON)
        print_json(&v, s->directory);
    else if (status == TW_OK)
        print_text(&v, s->directory);
    for (int h = 0; h < 2; h++) {
        free(v.counts[h]);
        tw_dataset_destroy(v.half[h]);
    }
    return status == TW_OK ? EXIT_DONE : failed("data info", &error);
}

static const option info_options[] = {
    {NULL, "DIR", OPTION_DIRECTORY, offsetof(info_settings, directory), "the directory that holds the files"},
    FORMAT_OPTION(info_settings, format),
    {0},
};

const command data_info_command = {
    .name = "data info",
    .summary = "look at the data set in a directory",
    .description = "Says which data set lies in a directory, reads all of it, and shows its size, the mean and the "
                   "standard deviation of each channel (0 to 255), and how many examples each class has. Files that "
                   "are damaged or cut short are refused.",
    .examples = "tower data info ~/.cache/tower/cifar10\n"
                "tower data info /usr/share/datasets/fashion-mnist --format json",
    .options = info_options,
    .settings_bytes = sizeof(info_settings),
    .run = info,
};

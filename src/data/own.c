/* own.c - data sets of one's own, in a directory: folders of pictures named by class, a list of pictures in a CSV file,
 * arrays of NumPy's, or TensorFlow's files of records (own_records.c). All become images of the size that is asked for.
 *
 * An example's place in its half, and which half it is in where nobody says, follow from its name alone: so nothing
 * depends on the order in which a file system lists files, and what --hold-back leaves out is a sample of all classes.
 * Never here:  how pictures are decoded and scaled (src/image). */
#include "data/gathering.h"
#include "data/pictures.h"

#include "base/crc32c.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <tower/io.h>

enum { MOST_CLASSES = 1 << 16, ONE_IN_TEST = 5, MOST_CSV = 256 << 20 };

static void free_gathering(twi_gathering *g)
{
    for (int i = 0; i < g->entries.count; i++)
        twi_free(g->entries.items[i].path);
    for (int i = 0; i < g->classes.count; i++)
        twi_free(g->classes.items[i]);
    twi_array_free(&g->entries);
    twi_array_free(&g->classes);
    twi_map_free(&g->class_numbers);
    tw_tensor_release(g->images[0]);
    tw_tensor_release(g->images[1]);
}

static tw_status no_memory(tw_error *error)
{
    return twi_fail_memory(error, "reading images");
}

/* The number of a class, which is a new one if nobody has spoken of it yet. */
static tw_status class_of(twi_gathering *g, const char *name, int32_t *number, tw_error *error)
{
    intptr_t found = (intptr_t)twi_map_get(&g->class_numbers, name); /* and 1 */
    char *copy;
    if (found > 0) {
        *number = (int32_t)(found - 1);
        return TW_OK;
    }
    if (g->classes.count == MOST_CLASSES)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "'%s' has more than %d classes: '%s' is one too many. Are these names of classes?",
                        g->directory, MOST_CLASSES, name);
    copy = twi_strdup(name);
    if (!copy || !twi_push(&g->classes, copy)) {
        twi_free(copy);
        return no_memory(error);
    }
    *number = g->classes.count - 1;
    return twi_map_put(&g->class_numbers, copy, (void *)(intptr_t)g->classes.count) ? TW_OK : no_memory(error);
}

tw_status twi_gather(twi_gathering *g, const twi_found *entry, const char *name, const char *class, tw_error *error)
{
    twi_found added = *entry;
    tw_status status = class_of(g, class, &added.label, error);
    if (status != TW_OK)
        return status;
    added.path = entry->path ? twi_strdup(entry->path) : NULL;
    added.key = twi_crc32c(0, name, strlen(name));
    if ((added.path || !entry->path) && twi_push(&g->entries, added))
        return TW_OK;
    twi_free(added.path);
    return no_memory(error);
}

/* ---- folders --------------------------------------------------------------------------------------------------- */

static bool is_called_picture(const char *name)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && name[0] != '.' && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return true;
    return false;
}

/* Links are followed, and a file system may not say what lies there; what is known to be no file is left alone. */
static bool is_picture(const struct dirent *item)
{
    bool may_be = item->d_type == DT_REG || item->d_type == DT_LNK || item->d_type == DT_UNKNOWN;
    return may_be && is_called_picture(item->d_name);
}

/* Or what cannot be looked at: a class must not be left out because a disk fails, and listing it says why. */
static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 ? S_ISDIR(about.st_mode) : twi_file_exists(path);
}

/* Whether some folder in it has a picture, two levels down at most. */
static bool has_pictures(const char *folder, int levels)
{
    char path[TWI_PATH_SIZE];
    bool found = false;
    DIR *directory = opendir(folder);
    for (struct dirent *item; directory && !found && (item = readdir(directory));)
        if (levels == 0)
            found = is_picture(item);
        else if (item->d_name[0] != '.' && twi_data_path(path, folder, item->d_name) && is_folder(path))
            found = has_pictures(path, levels - 1);
    if (directory)
        closedir(directory);
    return found;
}

static tw_status too_long(const char *folder, const char *name, tw_error *error)
{
    return twi_fail(error, TW_INVALID_ARGUMENT, "the path of '%s' in '%s' is longer than %d bytes", name, folder,
                    TWI_PATH_SIZE - 1);
}

/* The pictures of one class. */
static tw_status gather_class(twi_gathering *g, const char *folder, const char *class, bool test, tw_error *error)
{
    char path[TWI_PATH_SIZE];
    tw_status status = TW_OK;
    DIR *directory = opendir(folder);
    if (!directory)
        return twi_fail_file(error, "list", folder);
    for (struct dirent *item; status == TW_OK && (item = twi_next_entry(directory, folder, &status, error));) {
        if (!is_picture(item))
            continue;
        if (!twi_data_path(path, folder, item->d_name)) {
            status = too_long(folder, item->d_name, error);
            break;
        }
        const char *name = path + strlen(folder) - strlen(class); /* "cat/1.jpg", wherever that lies */
        status = twi_gather(g, &(twi_found){.path = path, .test = test}, name, class, error);
    }
    closedir(directory);
    return status;
}

/* Every folder in `folder` is a class. */
static tw_status gather_classes(twi_gathering *g, const char *folder, bool test, tw_error *error)
{
    char path[TWI_PATH_SIZE];
    tw_status status = TW_OK;
    DIR *directory = opendir(folder);
    if (!directory)
        return twi_fail_file(error, "list", folder);
    for (struct dirent *item; status == TW_OK && (item = twi_next_entry(directory, folder, &status, error));)
        if (item->d_name[0] != '.' && !twi_data_path(path, folder, item->d_name))
            status = too_long(folder, item->d_name, error);
        else if (item->d_name[0] != '.' && is_folder(path))
            status = gather_class(g, path, item->d_name, test, error);
    closedir(directory);
    return status;
}

/* The folder of a half, by one of the names that people give it; false: there is none. */
static bool find_half(const char *directory, bool test, char path[TWI_PATH_SIZE])
{
    static const char *const names[2][4] = {{"train", "training", NULL}, {"test", "val", "validation", "valid"}};
    for (int i = 0; i < 4 && names[test][i]; i++)
        if (twi_data_path(path, directory, names[test][i]) && is_folder(path))
            return true;
    return false;
}

static tw_status gather_folders(twi_gathering *g, tw_error *error)
{
    char path[TWI_PATH_SIZE];
    tw_status status;
    if (!find_half(g->directory, false, path))
        return gather_classes(g, g->directory, false, error);
    TWI_TRY(gather_classes(g, path, false, error));
    if (g->entries.count == 0 && has_pictures(path, 0))
        TWI_LEAVE(twi_fail(error, TW_INVALID_ARGUMENT,
                           "'%s' has pictures in it, expected a folder for each class: a folder of this name holds "
                           "what is for training. If it is a class, put the folders of all into another of this name",
                           path));
    g->has_halves = find_half(g->directory, true, path);
    if (g->has_halves)
        TWI_TRY(gather_classes(g, path, true, error));
done:
    return status;
}

/* ---- lists ----------------------------------------------------------------------------------------------------- */

/* The next field of a line, without the quotes that it may stand in; moves *at behind it. */
static char *next_field(char **at)
{
    char *from = *at, *to = from, *field = from;
    bool quoted = *from == '"';
    from += quoted;
    while (*from && (quoted || *from != ',')) {
        if (quoted && *from == '"' && from[1] != '"') {
            quoted = false;
            from++;
            continue;
        }
        from += quoted && *from == '"';
        *to++ = *from++;
    }
    *at = from + (*from == ',');
    while (to > field && isspace((unsigned char)to[-1]))
        to--;
    *to = 0;
    return field;
}

/* A line "path,label": the path is the list's folder's, unless it begins with a slash. */
static tw_status gather_line(twi_gathering *g, const char *list, int number, char *line, bool test, tw_error *error)
{
    char path[TWI_PATH_SIZE], *rest = line;
    char *file = next_field(&rest), *label = next_field(&rest);
    struct stat about;
    if (!*file)
        return TW_OK;
    bool fits = *file == '/' ? snprintf(path, sizeof path, "%s", file) < TWI_PATH_SIZE
                             : twi_data_path(path, g->directory, file);
    if (!fits)
        return twi_fail(error, TW_INVALID_ARGUMENT, "'%s', line %d: the path is longer than %d bytes", list, number,
                        TWI_PATH_SIZE - 1);
    bool there = stat(path, &about) == 0;
    if (!there && number == 1)
        return TW_OK; /* the columns' names */
    if (!there)
        return twi_fail(error, TW_NOT_FOUND, "'%s', line %d: cannot read '%s': %s", list, number, path,
                        strerror(errno));
    if (!S_ISREG(about.st_mode)) /* a pipe would be waited for */
        return twi_fail(error, TW_INVALID_ARGUMENT, "'%s', line %d: '%s' is no file", list, number, path);
    if (!*label)
        return twi_fail(error, TW_INVALID_ARGUMENT, "'%s', line %d: expected 'file,label', found no label", list,
                        number);
    return twi_gather(g, &(twi_found){.path = path, .test = test}, file, label, error);
}

static tw_status gather_list(twi_gathering *g, const char *list, bool test, tw_error *error)
{
    static const char mark[] = "\xef\xbb\xbf"; /* Excel begins files in UTF-8 with it */
    char *text = NULL;
    size_t size;
    int number = 0;
    tw_status status = twi_file_read(list, MOST_CSV, &text, &size, error);
    char *line = text, *end;
    if (status == TW_OK && strncmp(line, mark, strlen(mark)) == 0)
        line += strlen(mark);
    for (; status == TW_OK && *line; line = end) {
        end = line + strcspn(line, "\r\n");
        size_t ending = end[0] == '\r' && end[1] == '\n' ? 2 : *end != 0;
        *end = 0;
        end += ending;
        status = gather_line(g, list, ++number, line, test, error);
    }
    twi_free(text);
    return status;
}

/* ---- arrays ---------------------------------------------------------------------------------------------------- */

static tw_status gather_array(twi_gathering *g, const char *images_path, const char *labels_path, bool test,
                              tw_error *error)
{
    tw_tensor *labels = NULL;
    tw_status status;
    if (g->images[test])
        return twi_fail(error, TW_INVALID_ARGUMENT, "'%s' is a second array of images for %s, expected one",
                        images_path, test ? "testing" : "training");
    TWI_TRY(tw_tensor_read_npy(images_path, &g->images[test], error));
    TWI_TRY(tw_tensor_read_npy(labels_path, &labels, error));
    tw_shape shape = tw_tensor_shape(g->images[test]);
    tw_dtype dtype = tw_tensor_dtype(labels);
    if (tw_tensor_dtype(g->images[test]) != TW_UINT8 || shape.rank < 3 || shape.rank > 4 ||
        (shape.rank == 4 && (shape.dims[3] < 1 || shape.dims[3] > 4 || shape.dims[3] == 2)))
        TWI_LEAVE(twi_fail(error, TW_INVALID_ARGUMENT,
                           "'%s': expected uint8 [images,height,width] or [images,height,width,"
                           "channels] with 1, 3 or 4 channels",
                           images_path));
    if ((dtype != TW_INT32 && dtype != TW_INT64 && dtype != TW_UINT8 && dtype != TW_INT16 && dtype != TW_INT8 &&
         dtype != TW_UINT16 && dtype != TW_UINT32 && dtype != TW_UINT64) ||
        tw_tensor_elements(labels) != shape.dims[0])
        TWI_LEAVE(twi_fail(error, TW_INVALID_ARGUMENT, "'%s': expected %lld whole numbers, one for each of the images",
                           labels_path, (long long)shape.dims[0]));
    for (int64_t i = 0; i < shape.dims[0]; i++) {
        char name[32], class[32];
        snprintf(name, sizeof name, "%lld", (long long)i);
        snprintf(class, sizeof class, "%.0f", tw_tensor_value(labels, i));
        TWI_TRY(twi_gather(g, &(twi_found){.index = i, .test = test}, name, class, error));
    }
done:
    tw_tensor_release(labels);
    return status;
}

/* ---- files of records ------------------------------------------------------------------------------------------ */

static tw_status gather_all_records(twi_gathering *g, bool *any, tw_error *error)
{
    tw_status status = TW_OK;
    DIR *directory = opendir(g->directory);
    if (!directory)
        return twi_fail_file(error, "list", g->directory);
    for (struct dirent *item; status == TW_OK && (item = twi_next_entry(directory, g->directory, &status, error));)
        if (twi_is_record_file(item->d_name)) {
            *any = true;
            status = twi_gather_records(g, item->d_name, error);
        }
    closedir(directory);
    return status;
}

static bool has_records(const char *folder)
{
    bool found = false;
    DIR *directory = opendir(folder);
    for (struct dirent *item; directory && !found && (item = readdir(directory));)
        found = twi_is_record_file(item->d_name);
    if (directory)
        closedir(directory);
    return found;
}

/* ---- what there is --------------------------------------------------------------------------------------------- */

/* Names of lists and arrays, for all examples or for a half of them. */
static const struct {
    const char *images, *labels; /* labels NULL: images is a list */
    bool test, is_half;
} files[] = {
    {"labels.csv", NULL, false, false},
    {"train.csv", NULL, false, true},
    {"test.csv", NULL, true, true},
    {"images.npy", "labels.npy", false, false},
    {"train_images.npy", "train_labels.npy", false, true},
    {"test_images.npy", "test_labels.npy", true, true},
    {"x_train.npy", "y_train.npy", false, true},
    {"x_test.npy", "y_test.npy", true, true},
};
enum { NUM_FILES = sizeof files / sizeof *files };

static tw_status gather(twi_gathering *g, tw_error *error)
{
    char images[TWI_PATH_SIZE], labels[TWI_PATH_SIZE];
    bool any = false;
    tw_status status = TW_OK;
    for (int i = 0; i < NUM_FILES && status == TW_OK; i++) {
        if (!twi_data_path(images, g->directory, files[i].images) || !twi_file_exists(images) ||
            (files[i].labels && !twi_data_path(labels, g->directory, files[i].labels)))
            continue;
        any = true;
        g->has_halves |= files[i].is_half && files[i].test;
        status = files[i].labels ? gather_array(g, images, labels, files[i].test, error)
                                 : gather_list(g, images, files[i].test, error);
    }
    if (!any && status == TW_OK)
        status = gather_all_records(g, &any, error);
    return any || status != TW_OK ? status : gather_folders(g, error);
}

bool twi_own_is_there(const char *directory)
{
    char path[TWI_PATH_SIZE];
    for (int i = 0; i < NUM_FILES; i++)
        if (twi_data_path(path, directory, files[i].images) && twi_file_exists(path))
            return true;
    return has_records(directory) || has_pictures(directory, 1) ||
           (find_half(directory, false, path) && has_pictures(path, 1));
}

/* ---- order ----------------------------------------------------------------------------------------------------- */

static bool is_number(const char *name)
{
    name += *name == '-';
    return *name && !name[strspn(name, "0123456789")];
}

/* Numbers as numbers, before all other names: else "1" < "00" < "0p" < "1". */
static int compare_names(const char *a, const char *b)
{
    if (is_number(a) != is_number(b))
        return is_number(a) ? -1 : 1;
    if (!is_number(a))
        return strcmp(a, b);
    bool negative = *a == '-';
    if (negative != (*b == '-'))
        return negative ? -1 : 1;
    int order = strlen(a) != strlen(b) ? (strlen(a) < strlen(b) ? -1 : 1) : strcmp(a, b);
    return negative ? -order : order;
}

static int by_name(const void *a, const void *b)
{
    return compare_names(*(char *const *)a, *(char *const *)b);
}

static int by_key(const void *a, const void *b)
{
    const twi_found *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    int by_path = x->path && y->path ? strcmp(x->path, y->path) : 0;
    return by_path ? by_path : (x->index > y->index) - (x->index < y->index);
}

/* Classes by name, examples by key; without halves every fifth of a class is for testing. */
static tw_status put_in_order(twi_gathering *g, tw_error *error)
{
    size_t classes = (size_t)g->classes.count;
    char **before = twi_alloc_array(classes + 1, sizeof *before);
    int *seen = twi_alloc_array(classes + 1, sizeof *seen);
    bool good = before && seen;
    if (good && g->entries.count > 0) { /* each is of a class, so there are some */
        memcpy(before, g->classes.items, classes * sizeof *before);
        qsort(g->classes.items, classes, sizeof *g->classes.items, by_name);
        qsort(g->entries.items, (size_t)g->entries.count, sizeof *g->entries.items, by_key);
    }
    for (int i = 0; good && i < g->entries.count; i++) {
        twi_found *e = &g->entries.items[i];
        char **found = bsearch(&before[e->label], g->classes.items, classes, sizeof *g->classes.items, by_name);
        e->label = (int32_t)(found - g->classes.items);
        if (!g->has_halves)
            e->test = seen[e->label]++ % ONE_IN_TEST == ONE_IN_TEST - 1;
    }
    twi_free(before);
    twi_free(seen);
    return good ? TW_OK : no_memory(error);
}

/* ---- loading --------------------------------------------------------------------------------------------------- */

static tw_status name_classes(twi_gathering *g, tw_dataset *d, tw_error *error)
{
    d->class_names = twi_alloc_array((size_t)g->classes.count, sizeof *d->class_names);
    for (int i = 0; d->class_names && i < g->classes.count; i++)
        if (!(d->class_names[i] = twi_strdup(g->classes.items[i])))
            return no_memory(error);
    return d->class_names ? TW_OK : no_memory(error);
}

static tw_status nothing_there(const char *directory, bool to_test_on, tw_error *error)
{
    if (to_test_on)
        return twi_fail(error, TW_NOT_FOUND,
                        "'%s' has no images to test on: no folder 'test', and no class with %d or more, "
                        "of which every fifth would be for that",
                        directory, ONE_IN_TEST);
    return twi_fail(error, TW_NOT_FOUND,
                    "there are no images in '%s': expected a folder for each class with JPEG or PNG files "
                    "in it (or such in 'train' and 'test'), a labels.csv with lines 'file,label', "
                    "images.npy and labels.npy, or files of records such as train.tfrecord",
                    directory);
}

/* Those of a half, in their order, are the data set's. */
static tw_status choose(twi_gathering *g, bool test, tw_error *error)
{
    int all = g->entries.count;
    g->entries.count = 0;
    for (int i = 0; i < all; i++)
        if (g->entries.items[i].test == test)
            g->entries.items[g->entries.count++] = g->entries.items[i];
        else
            twi_free(g->entries.items[i].path);
    return g->entries.count ? TW_OK : nothing_there(g->directory, test && all > 0, error);
}

tw_status twi_own_load(const char *directory, bool test, const tw_dataset_options *options, tw_dataset **dataset,
                       tw_error *error)
{
    twi_gathering g = {.directory = directory};
    tw_dataset *d = NULL;
    int height = options->height > 0 ? options->height : 32, width = options->width > 0 ? options->width : height;
    int channels = options->channels > 0 ? options->channels : 3;
    tw_status status;
    if (channels != 1 && channels != 3)
        return twi_fail(error, TW_INVALID_ARGUMENT, "images of %d channels: expected 1 or 3", channels);
    if (!is_folder(directory))
        return twi_fail(error, TW_NOT_FOUND, "there is no directory '%s'", directory);
    TWI_TRY(gather(&g, error));
    TWI_TRY(put_in_order(&g, error));
    TWI_TRY(choose(&g, test, error));
    TWI_TRY(twi_dataset_describe("images", g.entries.count, height, width, channels, g.classes.count, &d, error));
    TWI_TRY(name_classes(&g, d, error));
    for (int i = 0; i < g.entries.count; i++)
        d->labels[i] = g.entries.items[i].label;
    TWI_TRY(twi_dataset_add_file(d, directory, error));
    TWI_TRY(twi_pictures_create(&g, options, d, error));
    *dataset = d;
    d = NULL;
done:
    tw_dataset_destroy(d);
    free_gathering(&g);
    return status;
}

tw_status tw_image_read(const char *path, int height, int width, int channels, uint8_t *pixels, tw_error *error)
{
    TWI_NEED(path, "path", error);
    TWI_NEED(pixels, "pixels", error);
    if (height < 1 || width < 1 || (channels != 1 && channels != 3 && channels != 4))
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "a picture of %d x %d x %d: expected sides of at least 1, and 1, 3 or 4 "
                        "channels",
                        height, width, channels);
    twi_image image = {0};
    tw_status status = twi_image_read(path, channels, 2 * (height > width ? height : width), &image, error);
    if (status == TW_OK)
        status = twi_image_fit(&image, height, width, pixels, error);
    twi_image_free(&image);
    return status;
}

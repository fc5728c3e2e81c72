/* feed.c - see feed.h. */
#include "feed.h"

#include "command.h"
#include "value.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tower/data.h>

enum { LONGEST_NAME = 512, LONGEST_MESSAGE = 512 };

/* ---- names ------------------------------------------------------------------------------------------------------- */

static bool find_in_signature(const names *n, const char *text, tw_output *output)
{
    const tw_signature *s = n->signature;
    for (int i = 0; s && i < s->num_inputs + s->num_outputs; i++) {
        const tw_signature_value *value = i < s->num_inputs ? &s->inputs[i] : &s->outputs[i - s->num_inputs];
        if (strcmp(value->name, text) != 0)
            continue;
        *output = value->output;
        return true;
    }
    return false;
}

/* The name of a node that was mistyped, if one is near. */
static bool complain_of_name(const names *n, const char *name)
{
    nearest near = {.word = name};
    for (int i = 0; i < tw_graph_num_nodes(n->graph); i++)
        nearest_consider(&near, tw_node_name(tw_graph_node(n->graph, i)));
    return complain(n->command, "the graph has no node '%s'%s%s%s", name, near.best ? "; did you mean '" : "",
                    near.best ? near.best : "", near.best ? "'?" : "");
}

bool names_find(const names *n, const char *text, tw_output *output)
{
    char name[LONGEST_NAME];
    const char *colon = strrchr(text, ':');
    if (find_in_signature(n, text, output))
        return true;
    snprintf(name, sizeof name, "%.*s", colon ? (int)(colon - text) : (int)strlen(text), text);
    tw_node *node = tw_graph_find(n->graph, name);
    int index = colon ? atoi(colon + 1) : 0;
    if (!node)
        return complain_of_name(n, name);
    if (tw_node_is_unknown(node)) { /* running it says why it cannot */
        *output = (tw_output){node, -1};
        return true;
    }
    if (colon && (index < 0 || index >= tw_node_num_outputs(node)))
        return complain(n->command, "'%s' has %d outputs, so there is no '%s'", name, tw_node_num_outputs(node), text);
    *output = tw_node_output(node, index);
    return true;
}

bool next_name(const char **list, char *name, size_t size)
{
    size_t length = *list ? strcspn(*list, ",") : 0;
    if (!length)
        return false;
    snprintf(name, size, "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == ',');
    return true;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static char *read_file(const char *path, size_t *size)
{
    size_t capacity = 1 << 16, got;
    FILE *file = fopen(path, "rb");
    char *bytes = file ? malloc(capacity) : NULL;
    for (*size = 0; bytes && (got = fread(bytes + *size, 1, capacity - 1 - *size, file)) > 0;) {
        *size += got;
        if (*size < capacity - 1)
            continue;
        char *larger = realloc(bytes, capacity *= 2);
        if (!larger)
            free(bytes);
        bytes = larger;
    }
    bool whole = bytes && !ferror(file);
    if (file)
        fclose(file);
    if (whole)
        bytes[*size] = 0;
    else
        free(bytes);
    return whole ? bytes : NULL;
}

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* A picture in the size and with the channels that the placeholder asks for, or else its own. Pixels are 0 to 255. */
static tw_tensor *read_picture(const char *path, tw_dtype dtype, tw_shape shape, char *wrong, size_t size)
{
    tw_error error = {0};
    tw_tensor *tensor = NULL;
    bool shaped = shape.rank == 3 || shape.rank == 4;
    int64_t *dims = shaped ? &shape.dims[shape.rank - 3] : NULL;
    int channels = shaped && dims[2] > 0 ? (int)dims[2] : 3;
    tw_status status;
    if (shaped && dims[0] > 0 && dims[1] > 0) {
        tensor = tw_tensor_create(TW_UINT8, TW_SHAPE(dims[0], dims[1], channels));
        status = tensor ? tw_image_read(path, (int)dims[0], (int)dims[1], channels, tw_tensor_data(tensor), &error)
                        : TW_RESOURCE_EXHAUSTED;
    } else {
        status = tw_tensor_read_image(path, channels, &tensor, &error);
    }
    if (status == TW_OK)
        return value_convert(tensor, dtype, wrong, size);
    snprintf(wrong, size, "%.500s", tensor || error.message[0] ? error.message : "out of memory");
    tw_tensor_release(tensor);
    return NULL;
}

static bool is_picture(const char *path)
{
    static const char *const endings[] = {".png", ".PNG", ".jpg", ".JPG", ".jpeg", ".JPEG"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (ends_in(path, endings[i]))
            return true;
    return false;
}

/* A text is the file itself; numbers are an array of NumPy's, a picture, or what could be typed. */
static tw_tensor *value_of_file(const char *path, tw_dtype dtype, tw_shape shape, char *wrong, size_t size)
{
    tw_error error = {0};
    tw_tensor *tensor = NULL;
    if (dtype != TW_STRING && ends_in(path, ".npy")) {
        if (tw_tensor_read_npy(path, &tensor, &error) == TW_OK)
            return value_convert(tensor, dtype, wrong, size);
        snprintf(wrong, size, "%.500s", error.message);
        return NULL;
    }
    if (dtype != TW_STRING && is_picture(path))
        return read_picture(path, dtype, shape, wrong, size);
    size_t bytes;
    char *text = read_file(path, &bytes);
    if (!text) {
        snprintf(wrong, size, "cannot read '%s': %s", path, strerror(errno));
        return NULL;
    }
    if (dtype == TW_STRING) {
        tensor = tw_tensor_string(text, bytes);
        snprintf(wrong, size, "out of memory");
    } else {
        while (bytes && isspace((unsigned char)text[bytes - 1]))
            text[--bytes] = 0;
        tensor = value_parse(dtype, shape, text + strspn(text, " \t\r\n"), wrong, size);
    }
    free(text);
    return tensor;
}

/* What has all dimensions but the first, that of a batch, is a batch of one. Gives up the reference to `tensor`. */
static tw_tensor *fit_batch(tw_tensor *tensor, tw_shape wanted, char *wrong, size_t size)
{
    tw_shape has = tw_tensor_shape(tensor), batch = {.rank = has.rank + 1, .dims = {1}};
    char expected[128], found[128];
    if (tw_shape_compatible(wanted, has))
        return tensor;
    if (wanted.rank == batch.rank && has.rank < TW_MAX_RANK) {
        memcpy(batch.dims + 1, has.dims, sizeof *has.dims * (size_t)has.rank);
        tw_tensor *one = tw_shape_compatible(wanted, batch)
                             ? tw_tensor_from(tw_tensor_dtype(tensor), batch, tw_tensor_data(tensor))
                             : NULL;
        if (one) {
            tw_tensor_release(tensor);
            return one;
        }
    }
    snprintf(wrong, size, "expected the shape %s, found %s", tw_shape_text(wanted, expected, sizeof expected),
             tw_shape_text(has, found, sizeof found));
    tw_tensor_release(tensor);
    return NULL;
}

/* "x=VALUE" */
static bool parse_feed(const names *n, char *text, tw_feed *feed)
{
    char wrong[LONGEST_MESSAGE];
    char *value = strchr(text, '=');
    if (!value)
        return complain(n->command, "--feed: expected NAME=VALUE, found '%s'", text);
    *value++ = 0;
    if (!names_find(n, text, &feed->output))
        return false;
    if (feed->output.index < 0)
        return complain(n->command, "--feed: '%s' has no output that could be fed", text);
    tw_dtype dtype = tw_output_dtype(feed->output);
    tw_shape shape = tw_output_shape(feed->output);
    feed->tensor = *value == '@' ? value_of_file(value + 1, dtype, shape, wrong, sizeof wrong)
                                 : value_parse(dtype, shape, value, wrong, sizeof wrong);
    if (feed->tensor)
        feed->tensor = fit_batch(feed->tensor, shape, wrong, sizeof wrong);
    return feed->tensor || complain(n->command, "--feed: '%s' is %s: %s", text, tw_dtype_name(dtype), wrong);
}

/* Whether "NAME=" stands here: what is before is then a whole value. */
static bool begins_feed(const char *text)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || (text[length] && strchr("_./:-", text[length])))
        length++;
    return length && text[length] == '=';
}

/* Where "x=VALUE" ends: at a comma with another behind it, outside of lists and quotes. */
static size_t feed_length(const char *text)
{
    int depth = 0;
    bool quoted = false;
    size_t i = 0;
    for (; text[i]; i++) {
        if (text[i] == '"' && (i == 0 || text[i - 1] != '\\'))
            quoted = !quoted;
        if (quoted)
            continue;
        depth += (text[i] == '[') - (text[i] == ']');
        if (text[i] == ',' && depth <= 0 && begins_feed(text + i + 1))
            break;
    }
    return i;
}

bool feeds_parse(const names *n, const texts *given, tw_feed *feeds, int *count, int most)
{
    for (int i = 0; i < given->count; i++)
        for (const char *at = given->items[i]; *at;) {
            size_t length = feed_length(at);
            if (*count == most)
                return complain(n->command, "--feed: at most %d values", most);
            char *text = strndup(at, length);
            if (!text)
                return complain(n->command, "out of memory");
            feeds[*count].tensor = NULL;
            bool good = parse_feed(n, text, &feeds[*count]);
            if (good && feeds_have(feeds, *count, feeds[*count].output))
                good = complain(n->command, "--feed: '%s' is fed twice", text);
            free(text);
            ++*count;
            if (!good)
                return false;
            at += length + (at[length] == ',');
        }
    return true;
}

bool feeds_have(const tw_feed *feeds, int count, tw_output output)
{
    bool have = false;
    for (int i = 0; i < count && !have; i++)
        have = feeds[i].output.node == output.node && feeds[i].output.index == output.index;
    return have;
}

void feeds_release(tw_feed *feeds, int count)
{
    for (int i = 0; i < count; i++)
        tw_tensor_release(feeds[i].tensor);
}

/* plugin.c - finding and opening plug-ins, and refusing those that do not fit.
 * Never here:  the name of any of them. */
#define _GNU_SOURCE /* dladdr, dlinfo */
#include "device/plugin.h"

#include "base/file.h"
#include "base/log.h"

#include <dlfcn.h>
#include <elf.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATTERN "libtower_*.so"
#define NO_DEVICES "no plug-in (" PATTERN ") with devices was found; virtual_gpus gives GPUs that run on the CPU"

enum { MOST_FILES = 32 };

/* Part of the registry of devices: what is loaded into a process is the process's. */
static struct {
    pthread_once_t once;
    struct {
        char path[PATH_MAX], refusal[640]; /* "": in use */
    } files[MOST_FILES]; /* found by now: a later file with one of these names is not looked at */
    int num_files;
    const twi_backend *backends[TWI_MOST_BACKENDS];
    int num_backends;
    const twi_comm_way *ways[TWI_MOST_BACKENDS + 1]; /* ended by NULL */
    int num_ways;
    char why[1024]; /* some were refused */
} opened = {.once = PTHREAD_ONCE_INIT};

/* A plug-in has a log of its own, which ends here. */
static void pass_on(void *user, int level, const char *message)
{
    (void)user;
    twi_log(level, "%s", message);
}

/* The file that was found last. */
static void refuse(const char *why)
{
    snprintf(opened.files[opened.num_files - 1].refusal, sizeof opened.files[0].refusal, "%s", why);
    size_t used = strlen(opened.why);
    snprintf(opened.why + used, sizeof opened.why - used, "%s%s", used ? "; " : "", why);
    twi_log(TWI_LOG_WARNING, "a plug-in cannot be used: %s", why);
}

/* ---- is it whole? ------------------------------------------------------------------------------------------------ */

static bool lies_within(uint64_t offset, uint64_t bytes, uint64_t size)
{
    return offset <= size && bytes <= size - offset;
}

/* Whether all that an ELF file's headers tell of is in the file; what is none of this machine's the loader knows. */
static bool has_its_parts(const twi_file_reader *file)
{
    enum { OWN_CLASS = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32 };
    uint64_t size = twi_file_size(file);
    ElfW(Ehdr) head;
    ElfW(Phdr) part;
    if (twi_file_read_at(file, 0, &head, sizeof head, NULL) != TW_OK ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != OWN_CLASS ||
        head.e_phentsize != sizeof part)
        return true;
    bool whole = lies_within(head.e_shoff, (uint64_t)head.e_shnum * head.e_shentsize, size) &&
                 lies_within(head.e_phoff, (uint64_t)head.e_phnum * sizeof part, size);
    for (int i = 0; i < head.e_phnum && whole; i++)
        whole = twi_file_read_at(file, head.e_phoff + (uint64_t)i * sizeof part, &part, sizeof part, NULL) == TW_OK &&
                lies_within(part.p_offset, part.p_filesz, size);
    return whole;
}

/* The loader maps what the headers tell of, and the process dies of what is not there. */
static bool is_whole(const char *path, char *why, size_t size)
{
    twi_file_reader *file;
    if (twi_file_open(path, &file, NULL) != TW_OK)
        return true; /* the loader says it */
    bool whole = has_its_parts(file);
    if (!whole)
        snprintf(why, size, "%s is cut: its headers tell of more than its %" PRIu64 " bytes", path,
                 twi_file_size(file));
    twi_file_reader_close(file);
    return whole;
}

/* ---- does it fit? ----------------------------------------------------------------------------------------------- */

static size_t size_of(const twi_layout *layouts, const char *name)
{
    for (; layouts->name; layouts++)
        if (strcmp(layouts->name, name) == 0)
            return layouts->bytes;
    return 0;
}

/* The first struct on which the two sides disagree; NULL: none. */
static const char *find_difference(const twi_layout *theirs)
{
    for (const twi_layout *ours = twi_layouts; ours->name; ours++)
        if (size_of(theirs, ours->name) != ours->bytes)
            return ours->name;
    for (const twi_layout *their = theirs; their->name; their++)
        if (!size_of(twi_layouts, their->name))
            return their->name;
    return NULL;
}

/* "Tower 0.1.0 (contract 6, twi_prepare, 136 bytes)" */
static void write_side(char *text, size_t size, const char *version, int contract, const twi_layout *layouts,
                       const char *different)
{
    int used = snprintf(text, size, "Tower %.40s (contract %d", version, contract);
    if (different)
        used +=
            snprintf(text + used, size - (size_t)used, ", %.60s, %zu bytes", different, size_of(layouts, different));
    snprintf(text + used, size - (size_t)used, ")");
}

static bool fits(const twi_plugin *plugin, const char *path, char *why, size_t size)
{
    const char *different = plugin->contract == TWI_CONTRACT ? find_difference(plugin->layouts) : NULL;
    char theirs[200], ours[200];
    if (plugin->contract == TWI_CONTRACT && !different)
        return true;
    write_side(theirs, sizeof theirs, plugin->version, plugin->contract, plugin->layouts, different);
    write_side(ours, sizeof ours, TOWER_VERSION, TWI_CONTRACT, twi_layouts, different);
    snprintf(why, size, "%s was built with %s, this library is %s: build both from the same sources", path, theirs,
             ours);
    return false;
}

static void take(void *library, const char *path)
{
    char why[600];
    const twi_plugin *(*entry)(void) = (const twi_plugin *(*)(void))dlsym(library, TWI_PLUGIN_ENTRY);
    const twi_plugin *plugin = entry ? entry() : NULL;
    if (!plugin) {
        snprintf(why, sizeof why,
                 "%s has no function %s: it belongs to another version than this library's, Tower %s (contract %d)",
                 path, TWI_PLUGIN_ENTRY, TOWER_VERSION, TWI_CONTRACT);
        refuse(why);
    } else if (!fits(plugin, path, why, sizeof why)) {
        refuse(why);
    } else {
        plugin->set_log(pass_on, NULL, TWI_LOG_DETAIL);
        for (const twi_backend *const *b = plugin->backends; *b && opened.num_backends < TWI_MOST_BACKENDS; b++)
            opened.backends[opened.num_backends++] = *b;
        for (const twi_comm_way *const *w = plugin->ways; w && *w && opened.num_ways < TWI_MOST_BACKENDS; w++)
            opened.ways[opened.num_ways++] = *w;
    }
}

/* ---- finding files ----------------------------------------------------------------------------------------------- */

static const char *name_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

/* Notes the file; false if one of its name was known. */
static bool is_new(const char *path)
{
    for (int i = 0; i < opened.num_files; i++)
        if (strcmp(name_of(opened.files[i].path), name_of(path)) == 0)
            return false;
    if (opened.num_files == MOST_FILES)
        return false;
    snprintf(opened.files[opened.num_files++].path, sizeof opened.files[0].path, "%s", path);
    return true;
}

static void open_file(const char *path)
{
    if (!is_new(path))
        return;
    char why[600];
    bool whole = is_whole(path, why, sizeof why);
    void *library = whole ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library)
        take(library, path);
    else
        refuse(whole ? dlerror() : why);
}

/* By name, so that the order is the same in every folder. */
static void open_in_folder(const char *folder, size_t length)
{
    char pattern[PATH_MAX];
    glob_t found;
    int size = snprintf(pattern, sizeof pattern, "%.*s/" PATTERN, (int)length, folder);
    if (length == 0 || size >= (int)sizeof pattern || glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        open_file(found.gl_pathv[i]);
    globfree(&found);
}

static void open_in_path(const char *folders)
{
    while (folders && *folders) {
        size_t length = strcspn(folders, ":");
        open_in_folder(folders, length);
        folders += length + (folders[length] == ':');
    }
}

static void open_beside_library(void)
{
    Dl_info info;
    if (!dladdr((void *)twi_plugin_backends, &info) || !info.dli_fname)
        return;
    const char *end = strrchr(info.dli_fname, '/');
    if (end)
        open_in_folder(info.dli_fname, (size_t)(end - info.dli_fname));
}

/* LD_LIBRARY_PATH, run paths and the system's folders; not the working directory, which an empty one of them means. */
static void open_where_the_loader_looks(void)
{
    union {
        Dl_serinfo info;
        char room[1 << 14];
    } paths;
    const Dl_serpath *folders = paths.info.dls_serpath; /* an array of 0 in glibc's header, more are behind it */
    Dl_serinfo size;
    void *self = dlopen(NULL, RTLD_NOW);
    if (self && dlinfo(self, RTLD_DI_SERINFOSIZE, &size) == 0 && size.dls_size <= sizeof paths) {
        paths.info.dls_size = size.dls_size;
        paths.info.dls_cnt = size.dls_cnt;
        if (dlinfo(self, RTLD_DI_SERINFO, &paths.info) == 0)
            for (unsigned i = 0; i < paths.info.dls_cnt; i++)
                if (folders[i].dls_name[0] == '/')
                    open_in_folder(folders[i].dls_name, strlen(folders[i].dls_name));
    }
    if (self)
        dlclose(self);
}

static void open_all(void)
{
    open_in_path(getenv("TOWER_PLUGIN_PATH"));
    open_beside_library();
    open_where_the_loader_looks();
}

twi_backends twi_plugin_backends(const char **why)
{
    pthread_once(&opened.once, open_all);
    *why = opened.num_backends || opened.why[0] ? opened.why : NO_DEVICES;
    return (twi_backends){opened.backends, opened.num_backends};
}

const twi_comm_way *const *twi_plugin_ways(const char **refused)
{
    pthread_once(&opened.once, open_all);
    *refused = opened.why;
    return opened.ways;
}

tw_plugin tw_plugin_at(int i)
{
    pthread_once(&opened.once, open_all);
    if (i < 0 || i >= opened.num_files)
        return (tw_plugin){0};
    return (tw_plugin){opened.files[i].path, opened.files[i].refusal[0] ? opened.files[i].refusal : NULL};
}

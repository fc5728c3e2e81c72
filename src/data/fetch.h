/* fetch.h - what is known about a data set that can be downloaded; tests make small ones of their own. */
#ifndef TWI_FETCH_H
#define TWI_FETCH_H

#include <tower/data.h>

enum { TWI_FETCH_MAX_FILES = 4, TWI_FETCH_MAX_MEMBERS = 8 };

typedef struct twi_fetch_file {
    const char *name;
    int64_t size;       /* bytes */
    const char *sha256; /* 64 lower-case hexadecimal digits */
} twi_fetch_file;

typedef struct twi_fetch_set {
    const char *name, *title;
    const char *places[3]; /* URLs of folders, to be tried in this order; NULL: no more */
    twi_fetch_file files[TWI_FETCH_MAX_FILES];
    int num_files;

    /* If the one file is a compressed tar archive: the members wanted of it, and where they go. */
    const char *folder;                         /* NULL: no archive */
    const char *members[TWI_FETCH_MAX_MEMBERS]; /* without the folder's name; NULL: no more */
    int64_t member_size;                        /* bytes of each */
} twi_fetch_set;

tw_status twi_fetch(const twi_fetch_set *set, const char *directory, const char *base_url, tw_fetch_progress *progress,
                    void *user, tw_error *error);

/* Downloads url into the file `part`, going on where that ends. On success it has `size` bytes; unchecked. Otherwise
 * it keeps what came, for the next try, unless that cannot be the beginning of the file. *gained: bytes that came.
 * (download.c, or a version of it that says that there is no libcurl) */
tw_status twi_download(const char *url, const char *part, const char *name, int64_t size, tw_fetch_progress *progress,
                       void *user, int64_t *gained, tw_error *error);

/* Unpacks the members wanted of directory/archive into directory/folder: all or, for each file, nothing. (unpack.c) */
tw_status twi_unpack(const twi_fetch_set *set, const char *directory, const char *archive, tw_error *error);

#endif

/* curl.h - libcurl, opened when it is first needed and not before: it brings two dozen libraries with it, which every
 * program of ours would otherwise load at its start, and which only downloads need.
 * Lives here:  finding the functions.
 * Never here:  use of them (data/download.c). */
#ifndef TWI_CURL_H
#define TWI_CURL_H

#ifdef TOWER_WITH_CURL

#include <curl/curl.h>

/* Named as in libcurl, without "curl_". */
typedef struct twi_curl {
    CURLcode (*global_init)(long flags);
    CURL *(*easy_init)(void);
    CURLcode (*easy_setopt)(CURL *curl, CURLoption option, ...);
    CURLcode (*easy_perform)(CURL *curl);
    CURLcode (*easy_getinfo)(CURL *curl, CURLINFO info, ...);
    const char *(*easy_strerror)(CURLcode code);
    void (*easy_cleanup)(CURL *curl);
    curl_version_info_data *(*version_info)(CURLversion age);
} twi_curl;

/* Opened and initialized; NULL if this system has no libcurl. Any thread may call. */
const twi_curl *twi_curl_get(void);

#endif
#endif

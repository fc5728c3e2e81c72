/* network.c - the target that is a server: what it replies are the bytes of the input. It is the proxy of all others,
 * so that a reply which leads elsewhere comes back to it, and nothing leaves the machine. */
#define _GNU_SOURCE
#include "fuzz.h"

#include "data/fetch.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FILE_SIZE = 64, MOST_CONNECTIONS = 8 };

static int listener = -1;
static char url[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static numbers reply; /* what is left of the input */
static int connections;

/* A request ends with an empty line. */
static void read_request(int client)
{
    char text[4096];
    size_t used = 0;
    for (ssize_t more; used < sizeof text - 1; used += (size_t)more) {
        if ((more = read(client, text + used, sizeof text - 1 - used)) <= 0)
            return;
        text[used + (size_t)more] = 0;
        if (strstr(text, "\r\n\r\n"))
            return;
    }
}

/* Each connection gets the next stretch, and nothing when there are none left. */
static void *serve(void *argument)
{
    (void)argument;
    for (int client; (client = accept(listener, NULL, NULL)) >= 0; close(client)) {
        char bytes[65536];
        size_t size = 0;
        read_request(client);
        pthread_mutex_lock(&lock);
        if (connections++ < MOST_CONNECTIONS) {
            numbers part = next_part(&reply);
            size = (size_t)(part.end - part.at);
            memcpy(bytes, part.at, size);
        }
        pthread_mutex_unlock(&lock);
        if (size)
            (void)!send(client, bytes, size, MSG_NOSIGNAL);
        shutdown(client, SHUT_WR);
    }
    return NULL;
}

static void open_server(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    pthread_t thread;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 16) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0 ||
        pthread_create(&thread, NULL, serve, NULL) != 0)
        abort();
    pthread_detach(thread);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    setenv("http_proxy", url, 1);
    setenv("https_proxy", url, 1);
    setenv("all_proxy", url, 1);
    unsetenv("no_proxy");
    unsetenv("NO_PROXY");
    snprintf(url + strlen(url), sizeof url - strlen(url), "/file");
}

void fuzz_http(const uint8_t *bytes, size_t size)
{
    static const uint8_t beginning[FILE_SIZE];
    tw_error error = {0};
    int64_t gained = 0;
    numbers n = {bytes, bytes + size};
    if (listener < 0)
        open_server();
    const char *part = fuzz_file("file.part", beginning, next_below(&n, FILE_SIZE + 1));
    pthread_mutex_lock(&lock);
    reply = n;
    connections = 0;
    pthread_mutex_unlock(&lock);
    if (twi_download(url, part, "file", FILE_SIZE, NULL, NULL, &gained, &error) == TW_OK && gained > FILE_SIZE)
        abort();
    pthread_mutex_lock(&lock);
    reply = (numbers){NULL, NULL};
    pthread_mutex_unlock(&lock);
}

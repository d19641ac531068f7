#pragma once

#include "endpoint.h"
#include "request.h"

/* Flags that sockets_open understands; a row that uses it lists them with SOCKETS_FLAGS. */
#define SOCKETS_FLAGS                                                                                                  \
    {"--source", "ADDRESS", "the local address"}, {"--source-port", "PORT", "the local port, instead of a fresh one"}, \
        {"--interface", "NAME", "only over this interface"}, {"--ttl", "N", "time to live"},                           \
    {                                                                                                                  \
        "--df", NULL, "do not fragment, and do not believe a path MTU heard earlier"                                   \
    }

#define CLEANUP_FD __attribute__((cleanup(sockets_close)))
/* Cleanup: closes a descriptor that is not -1. */
void sockets_close(int *fd);

/* A non-blocking socket for the family, with the request's flags applied, bound where they ask for it, and with errors
 * kept for sockerr_take. *ret_fd is the caller's to close. */
int sockets_open(const struct request *request, int family, int type, int protocol, int *ret_fd,
                 struct outcome *outcome);
int sockets_bind(int fd, const struct endpoint *endpoint, struct outcome *outcome);
/* The local address and port; family 0 when there is none. */
struct endpoint sockets_local(int fd);
/* The address this machine would send from; family 0 when it has no route. No packet is sent. */
struct endpoint sockets_source_for(const struct endpoint *peer);
/* connect(2); 0 or -1 with errno (EINPROGRESS included). */
int sockets_connect(int fd, const struct endpoint *peer);
/* The path MTU of a connected socket, 0 where the kernel does not tell. */
int sockets_path_mtu(int fd, int family);
/* Writes "address" and "port" of the endpoint into an object `key`. */
void sockets_write_endpoint(struct jsonline *line, const char *key, const struct endpoint *endpoint);

/* The word as an address: a literal, or a name, which is looked up through this machine's resolver configuration.
 * Writes "address" into the evidence for a name. */
int sockets_target(const struct request *request, const char *word, struct endpoint *ret_endpoint,
                   struct outcome *outcome);

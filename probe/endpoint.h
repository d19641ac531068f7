#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* An IPv4 or IPv6 address with an optional scope and port. `family` 0 means none. */
struct endpoint {
    int family;
    union {
        struct in_addr v4;
        struct in6_addr v6;
    } ip;
    unsigned scope; /* interface index of a link-local IPv6 address, else 0 */
    uint16_t port;  /* host order; 0 where none was given */
};

enum { ENDPOINT_TEXT = 80 };

/* Reads "10.0.0.1", "::1", "fe80::1%eth0". False for anything else; names are not looked up. */
bool endpoint_parse(const char *text, struct endpoint *ret_endpoint);
/* Reads "10.0.0.1:53" or "[fe80::1%eth0]:53". */
bool endpoint_parse_with_port(const char *text, struct endpoint *ret_endpoint);
/* The address alone; `text` has ENDPOINT_TEXT bytes. Returns `text`. */
const char *endpoint_text(const struct endpoint *endpoint, char *text);
bool endpoint_same_address(const struct endpoint *left, const struct endpoint *right);
/* Length of the filled sockaddr. */
socklen_t endpoint_to_sockaddr(const struct endpoint *endpoint, struct sockaddr_storage *ret_address);
/* An address of another family gives family 0. */
struct endpoint endpoint_from_sockaddr(const struct sockaddr *address);
struct endpoint endpoint_from_v4(const void *four_bytes);
struct endpoint endpoint_from_v6(const void *sixteen_bytes);
bool endpoint_is_multicast(const struct endpoint *endpoint);

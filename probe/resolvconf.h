#pragma once

#include "endpoint.h"

#include <stddef.h>

enum { RESOLVCONF_SERVERS = 3, RESOLVCONF_SEARCH = 6, RESOLVCONF_NAME = 256 };

/* What resolv.conf says. */
struct resolvconf {
    struct endpoint servers[RESOLVCONF_SERVERS]; /* with port 53 */
    size_t server_count;
    char search[RESOLVCONF_SEARCH][RESOLVCONF_NAME];
    size_t search_count;
    unsigned ndots;
};

/* Reads the file's text. Unknown lines are skipped; without a line for it ndots is 1. */
void resolvconf_read(const char *text, struct resolvconf *ret_config);
/* The addresses that a hosts file's text has for a name; how many were written, at most `capacity`. */
size_t resolvconf_hosts(const char *text, const char *name, struct endpoint *addresses, size_t capacity);

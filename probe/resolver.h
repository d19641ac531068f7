#pragma once

#include "deadline.h"
#include "endpoint.h"
#include "outcome.h"

#include <stdbool.h>
#include <stddef.h>

enum { RESOLVER_SERVERS = 3, RESOLVER_SEARCH = 6, RESOLVER_ADDRESSES = 8, RESOLVER_NAME = 256 };

/* What /etc/resolv.conf says. */
struct resolver_config {
    struct endpoint servers[RESOLVER_SERVERS]; /* with port 53 */
    size_t server_count;
    char search[RESOLVER_SEARCH][RESOLVER_NAME];
    size_t search_count;
    unsigned ndots;
};

struct resolver_answer {
    struct endpoint addresses[RESOLVER_ADDRESSES];
    size_t address_count;
    char name[RESOLVER_NAME]; /* the name that resolved, with its search domain */
    char how[48];             /* "hosts file", "dns", or what went wrong: "NXDOMAIN", "silence", ... */
    struct endpoint server;   /* that answered; family 0: none did */
    bool answered;            /* some server answered, if only with a no */
    int errno_value;          /* of the last failure that was no answer */
};

/* Pure: reads the file's text. Unknown lines are skipped; without a line for it ndots is 1. */
void resolver_read_config(const char *text, struct resolver_config *ret_config);
/* Pure: the addresses that a hosts file's text has for a name; how many were written, at most `capacity`. */
size_t resolver_read_hosts(const char *text, const char *name, struct endpoint *addresses, size_t capacity);

/* The configuration of this machine; a file that is missing gives no servers. */
void resolver_own_config(struct resolver_config *ret_config);
/* Looks a name up as a program on this machine would: hosts file, then the servers in turn with the search domains, A
 * and then AAAA. 0 whenever the look-up could be made, whatever it found. */
int resolver_lookup(const char *name, struct deadline deadline, struct resolver_answer *ret_answer,
                    struct outcome *outcome);

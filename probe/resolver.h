#pragma once

#include "deadline.h"
#include "endpoint.h"
#include "outcome.h"
#include "resolvconf.h"

#include <stdbool.h>
#include <stddef.h>

enum { RESOLVER_ADDRESSES = 8 };

struct resolver_answer {
    struct endpoint addresses[RESOLVER_ADDRESSES];
    size_t address_count;
    char name[RESOLVCONF_NAME]; /* the name that resolved, with its search domain */
    char how[48];               /* "hosts file", "dns", or what went wrong: "NXDOMAIN", "silence", ... */
    struct endpoint server;     /* that answered; family 0: none did */
    bool answered;              /* some server answered, if only with a no */
    int errno_value;            /* of the last failure that was no answer */
};

/* The configuration of this machine; a file that is missing gives no servers. */
void resolver_own_config(struct resolvconf *ret_config);
/* Looks a name up as a program on this machine would: hosts file, then the servers in turn with the search domains, A
 * and then AAAA. 0 whenever the look-up could be made, whatever it found. */
int resolver_lookup(const char *name, struct deadline deadline, struct resolver_answer *ret_answer,
                    struct outcome *outcome);

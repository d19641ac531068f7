/* Looks names up the way a program on this machine would: /etc/hosts, /etc/resolv.conf, search domains.
 * It is no nsswitch: what only a module of the C library knows (myhostname, mdns) is not asked.
 */
#include "resolver.h"

#include "dnsquery.h"
#include "slurp.h"
#include "sockets.h"
#include "token.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void resolver_own_config(struct resolvconf *ret_config)
{
    char text[8192];

    (void)slurp_file("/etc/resolv.conf", text, sizeof(text));
    resolvconf_read(text, ret_config);
}

static void take_addresses(const struct dnswire_reply *reply, struct resolver_answer *answer)
{
    for (size_t i = 0; i < reply->record_count && answer->address_count < RESOLVER_ADDRESSES; i++) {
        const struct dnswire_record *record = &reply->records[i];
        bool address = record->section == 'a' && (record->type == 1 || record->type == 28);
        if (address && endpoint_parse(record->data, &answer->addresses[answer->address_count])) {
            answer->address_count++;
        }
    }
}

/* One server, one name, one type; true when the server answered. */
static bool ask_server(const struct endpoint *server, const char *name, uint16_t type, struct deadline deadline,
                       struct resolver_answer *answer)
{
    struct dnswire_reply reply;
    struct dnsquery exchange = {
        .query = {.id = (uint16_t)token_random(65536), .name = name, .type = type, .class = 1},
        .server = *server,
        .fd = socket(server->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
    };
    enum dnsquery_result result = DNSQUERY_FAILED;

    if (exchange.fd >= 0) {
        result = dnsquery_run(&exchange, deadline, &reply);
    } else {
        exchange.errno_value = errno;
    }
    sockets_close(&exchange.fd);
    if (result != DNSQUERY_ANSWERED) {
        answer->errno_value = exchange.errno_value;
        (void)snprintf(answer->how, sizeof(answer->how), "%s",
                       result == DNSQUERY_SILENT ? "silence" : strerror(exchange.errno_value));
        return false;
    }
    char text[16];
    answer->answered = true;
    answer->server = *server;
    take_addresses(&reply, answer);
    (void)snprintf(answer->how, sizeof(answer->how), "%s",
                   reply.rcode             ? dnswire_rcode_name(reply.rcode, text)
                   : answer->address_count ? "dns"
                                           : "no address");
    return true;
}

static void ask_name(const struct resolvconf *config, const char *name, struct deadline deadline,
                     struct resolver_answer *answer)
{
    (void)snprintf(answer->name, sizeof(answer->name), "%s", name);
    for (size_t i = 0; i < config->server_count; i++) {
        /* A server that is silent may not eat the budget of those after it. */
        int share = deadline_left_ms(deadline) / (int)(config->server_count - i);
        struct deadline step = deadline_step_ms(deadline, share);

        if (!ask_server(&config->servers[i], name, 1, step, answer)) {
            continue;
        }
        if (answer->address_count == 0 && strcmp(answer->how, "no address") == 0) {
            (void)ask_server(&config->servers[i], name, 28, step, answer);
        }
        return;
    }
}

int resolver_lookup(const char *name, struct deadline deadline, struct resolver_answer *ret_answer,
                    struct outcome *outcome)
{
    struct resolvconf config;
    char hosts[16384];
    unsigned dots = 0;
    size_t length = strlen(name);

    *ret_answer = (struct resolver_answer){.how = "no server is configured"};
    if (length == 0 || length >= RESOLVCONF_NAME) {
        return outcome_usage(outcome, "a name has 1 to %d characters", RESOLVCONF_NAME - 1);
    }
    (void)slurp_file("/etc/hosts", hosts, sizeof(hosts));
    ret_answer->address_count = resolvconf_hosts(hosts, name, ret_answer->addresses, RESOLVER_ADDRESSES);
    if (ret_answer->address_count) {
        (void)snprintf(ret_answer->name, sizeof(ret_answer->name), "%s", name);
        (void)snprintf(ret_answer->how, sizeof(ret_answer->how), "hosts file");
        return 0;
    }
    resolver_own_config(&config);
    for (const char *at = name; *at; at++) {
        dots += *at == '.';
    }
    bool absolute = name[length - 1] == '.';
    bool plain_first = absolute || dots >= config.ndots;
    if (plain_first) {
        ask_name(&config, name, deadline, ret_answer);
    }
    for (size_t i = 0; !absolute && i < config.search_count && ret_answer->address_count == 0; i++) {
        char full[RESOLVCONF_NAME * 2];
        if (strcmp(config.search[i], ".") == 0) {
            continue; /* the root: the plain name, which has its own turn */
        }
        (void)snprintf(full, sizeof(full), "%s.%s", name, config.search[i]);
        if (strlen(full) < RESOLVCONF_NAME) {
            ask_name(&config, full, deadline, ret_answer);
        }
    }
    if (!plain_first && ret_answer->address_count == 0) {
        ask_name(&config, name, deadline, ret_answer);
    }
    return 0;
}

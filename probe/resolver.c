/* Looks names up the way a program on this machine would: /etc/hosts, /etc/resolv.conf, search domains.
 * It is no nsswitch: what only a module of the C library knows (myhostname, mdns) is not asked.
 */
#include "resolver.h"

#include "dnsquery.h"
#include "literal.h"
#include "slurp.h"
#include "sockets.h"
#include "token.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char blanks[] = " \t\r";

/* The next word of a line that ends at a newline or a comment; its length, 0 at the end. Moves *at behind it. */
static size_t next_word(const char **at, const char **ret_word)
{
    *at += strspn(*at, blanks);
    size_t length = strcspn(*at, " \t\r\n#;");
    *ret_word = *at;
    *at += length;
    return length;
}

static const char *next_line(const char *at)
{
    const char *end = strchr(at, '\n');

    return end ? end + 1 : at + strlen(at);
}

static bool is_word(const char *word, size_t length, const char *expected)
{
    return length == strlen(expected) && strncmp(word, expected, length) == 0;
}

static bool copy_word(const char *word, size_t length, char *text, size_t capacity)
{
    if (length == 0 || length >= capacity) {
        return false;
    }
    memcpy(text, word, length);
    text[length] = '\0';
    return true;
}

static void read_option(const char *word, size_t length, struct resolver_config *config)
{
    char text[32];
    uint64_t ndots;

    if (copy_word(word, length, text, sizeof(text)) && strncmp(text, "ndots:", 6) == 0 &&
        literal_number(text + 6, 0, 15, &ndots)) {
        config->ndots = (unsigned)ndots;
    }
}

void resolver_read_config(const char *text, struct resolver_config *ret_config)
{
    *ret_config = (struct resolver_config){.ndots = 1};
    for (; *text; text = next_line(text)) {
        const char *at = text;
        const char *word;
        char copied[RESOLVER_NAME];
        size_t length = next_word(&at, &word);
        bool server = is_word(word, length, "nameserver");
        bool search = is_word(word, length, "search") || is_word(word, length, "domain");
        bool options = is_word(word, length, "options");

        if (search) {
            ret_config->search_count = 0; /* the last such line wins */
        }
        while ((server || search || options) && (length = next_word(&at, &word)) > 0) {
            if (server && ret_config->server_count < RESOLVER_SERVERS &&
                copy_word(word, length, copied, sizeof(copied)) &&
                endpoint_parse(copied, &ret_config->servers[ret_config->server_count])) {
                ret_config->servers[ret_config->server_count++].port = 53;
            }
            if (search && ret_config->search_count < RESOLVER_SEARCH &&
                copy_word(word, length, ret_config->search[ret_config->search_count], RESOLVER_NAME)) {
                ret_config->search_count++;
            }
            if (options) {
                read_option(word, length, ret_config);
            }
        }
    }
}

size_t resolver_read_hosts(const char *text, const char *name, struct endpoint *addresses, size_t capacity)
{
    size_t count = 0;

    for (; *text && count < capacity; text = next_line(text)) {
        const char *at = text;
        const char *word;
        char copied[ENDPOINT_TEXT];
        struct endpoint address;
        size_t length = next_word(&at, &word);

        if (!copy_word(word, length, copied, sizeof(copied)) || !endpoint_parse(copied, &address)) {
            continue;
        }
        while ((length = next_word(&at, &word)) > 0) {
            if (length == strlen(name) && strncasecmp(word, name, length) == 0) {
                addresses[count++] = address;
                break;
            }
        }
    }
    return count;
}

void resolver_own_config(struct resolver_config *ret_config)
{
    char text[8192];

    (void)slurp_file("/etc/resolv.conf", text, sizeof(text));
    resolver_read_config(text, ret_config);
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

static void ask_name(const struct resolver_config *config, const char *name, struct deadline deadline,
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
    struct resolver_config config;
    char hosts[16384];
    unsigned dots = 0;
    size_t length = strlen(name);

    *ret_answer = (struct resolver_answer){.how = "no server is configured"};
    if (length == 0 || length >= RESOLVER_NAME) {
        return outcome_usage(outcome, "a name has 1 to %d characters", RESOLVER_NAME - 1);
    }
    (void)slurp_file("/etc/hosts", hosts, sizeof(hosts));
    ret_answer->address_count = resolver_read_hosts(hosts, name, ret_answer->addresses, RESOLVER_ADDRESSES);
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
        char full[RESOLVER_NAME * 2];
        (void)snprintf(full, sizeof(full), "%s.%s", name, config.search[i]);
        if (strlen(full) < RESOLVER_NAME) {
            ask_name(&config, full, deadline, ret_answer);
        }
    }
    if (!plain_first && ret_answer->address_count == 0) {
        ask_name(&config, name, deadline, ret_answer);
    }
    return 0;
}

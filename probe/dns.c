/* DNS: any name, type and class, from any server, over UDP or TCP, or with a forged source address.
 * A look-up as a program would do it, through this machine's configuration, is in resolve.c.
 */
#include "subcommands.h"

#include "dnsquery.h"
#include "resolver.h"
#include "sender.h"
#include "sockerr.h"
#include "sockets.h"

#include <errno.h>
#include <string.h>

static const struct flag flags[] = {
    {"--server", "ADDRESS", "the server (the first of /etc/resolv.conf)"},
    {"--port", "N", "its port (53)"},
    {"--type", "TYPE", "A, AAAA, TXT, PTR, SRV, ANY, ..., TYPE65, or a number (A)"},
    {"--class", "CLASS", "IN, CH, HS, ANY, or CLASS3 (IN)"},
    {"--tcp", NULL, "over TCP"},
    {"--no-recursion", NULL, "ask for what the server knows already"},
    {"--edns", NULL, "with EDNS0"},
    {"--forge-source", "ADDRESS", "send it from this address and wait for nothing"},
    {"--forge-port", "N", "and from this port"},
    {"--to-mac", "MAC", "a forged query as a frame to this MAC"},
    SOCKETS_FLAGS,
    {NULL, NULL, NULL},
};

static int read_query(const struct request *request, struct dnsquery *exchange, struct outcome *outcome)
{
    const char *type = request_text(request, "--type", "A");
    const char *class = request_text(request, "--class", "IN");
    struct dnswire_query *query = &exchange->query;
    uint64_t port;

    query->id = (uint16_t)token_random(65536);
    query->name = request->words[0];
    query->no_recursion = request_has(request, "--no-recursion");
    query->edns = request_has(request, "--edns");
    exchange->tcp = request_has(request, "--tcp");
    if (!dnswire_type_of(type, &query->type)) {
        return outcome_usage(outcome, "no DNS type \"%s\"", type);
    }
    if (!dnswire_class_of(class, &query->class)) {
        return outcome_usage(outcome, "no DNS class \"%s\"", class);
    }
    if (request_endpoint(request, "--server", &exchange->server, outcome) < 0 ||
        request_number(request, "--port", 1, UINT16_MAX, 53, &port, outcome) < 0) {
        return -1;
    }
    if (!exchange->server.family) {
        struct resolvconf config;
        resolver_own_config(&config);
        if (config.server_count == 0) {
            return outcome_fail(outcome, ENOENT, "no --server, and none in /etc/resolv.conf");
        }
        exchange->server = config.servers[0];
    }
    exchange->server.port = (uint16_t)port;
    return 0;
}

static void write_reply(const struct dnsquery *exchange, const struct dnswire_reply *reply, struct outcome *outcome)
{
    struct jsonline *line = &outcome->evidence;
    char text[16];

    jsonline_text(line, "rcode", dnswire_rcode_name(reply->rcode, text));
    jsonline_bool(line, "authoritative", reply->authoritative);
    jsonline_bool(line, "truncated", reply->truncated);
    jsonline_bool(line, "recursion_available", reply->recursion_available);
    jsonline_number(line, "size", (int64_t)exchange->reply_size);
    jsonline_number(line, "answers", reply->answer_count);
    jsonline_open_array(line, "records");
    for (size_t i = 0; i < reply->record_count; i++) {
        const struct dnswire_record *record = &reply->records[i];
        if (record->type == 41) {
            continue; /* EDNS's pseudo record */
        }
        jsonline_open_object(line, NULL);
        jsonline_text(line, "section",
                      record->section == 'a'   ? "answer"
                      : record->section == 'u' ? "authority"
                                               : "additional");
        jsonline_text(line, "name", record->name);
        jsonline_text(line, "type", dnswire_type_name(record->type, text));
        jsonline_text(line, "class", dnswire_class_name(record->class, text));
        jsonline_number(line, "ttl", record->ttl);
        jsonline_text(line, "data", record->data);
        jsonline_close_object(line);
    }
    jsonline_close_array(line);
    jsonline_bool(line, "records_left_out", reply->records_left_out);
}

static int forge(const struct request *request, const struct dnsquery *exchange, struct outcome *outcome)
{
    struct sender sender CLEANUP_SENDER = SENDER_CLOSED;
    struct wire_ip ip = {.destination = exchange->server, .protocol = IPPROTO_UDP, .id = exchange->query.id};
    struct frame segment = {.size = 0};
    struct frame packet = {.size = 0};
    uint8_t question[DNSWIRE_QUERY];
    size_t size;
    uint64_t port;

    if (request_endpoint(request, "--forge-source", &ip.source, outcome) < 0 ||
        request_number(request, "--forge-port", 1, UINT16_MAX, 49152 + token_random(16384), &port, outcome) < 0) {
        return -1;
    }
    if (ip.source.family != ip.destination.family) {
        return outcome_usage(outcome, "--forge-source is of another family than the server");
    }
    if (!dnswire_write_query(&exchange->query, question, &size)) {
        return outcome_usage(outcome, "\"%s\" is no name", exchange->query.name);
    }
    if (sender_open(request, ip.destination.family, &sender, outcome) < 0) {
        return -1;
    }
    wire_put_udp(&segment, &ip, (uint16_t)port, exchange->server.port, question, size);
    wire_put_ip(&packet, &ip, segment.size);
    wire_put(&packet, segment.data, segment.size);
    if (sender_send(&sender, &packet, &ip.destination, outcome) < 0) {
        return -1;
    }
    ip.source.port = (uint16_t)port;
    sockets_write_endpoint(&outcome->evidence, "source", &ip.source);
    outcome_say(outcome, VERDICT_DONE, 0);
    return 0;
}

static int ask(const struct request *request, struct dnsquery *exchange, struct outcome *outcome)
{
    struct dnswire_reply reply;
    int result = 0;

    switch (dnsquery_run(exchange, request->deadline, &reply)) {
    case DNSQUERY_ANSWERED:
        write_reply(exchange, &reply, outcome);
        outcome_say(outcome, VERDICT_REACHABLE, 0);
        break;
    case DNSQUERY_SILENT:
        outcome_say(outcome, VERDICT_DROPPED, ETIMEDOUT);
        break;
    case DNSQUERY_FAILED:
        result = exchange->errno_value == EINVAL
                     ? outcome_usage(outcome, "\"%s\" is no name", exchange->query.name)
                     : sockerr_judge(exchange->fd, exchange->errno_value, &exchange->server, outcome);
        break;
    }
    jsonline_number(&outcome->evidence, "foreign", exchange->foreign);
    if (exchange->malformed) {
        jsonline_text(&outcome->evidence, "malformed", exchange->malformed);
    }
    return result;
}

static int run(const struct request *request, struct outcome *outcome)
{
    struct dnsquery exchange = {.fd = -1};

    if (read_query(request, &exchange, outcome) < 0) {
        return -1;
    }
    sockets_write_endpoint(&outcome->evidence, "server", &exchange.server);
    if (request_has(request, "--forge-source")) {
        return forge(request, &exchange, outcome);
    }
    if (sockets_open(request, exchange.server.family, exchange.tcp ? SOCK_STREAM : SOCK_DGRAM, 0, &exchange.fd,
                     outcome) < 0) {
        return -1;
    }
    int result = ask(request, &exchange, outcome);
    sockets_close(&exchange.fd);
    return result;
}

const struct subcommand subcommand_dns = {
    .name = "dns",
    .arguments = "NAME",
    .summary = "one DNS question to one server, of any type and class",
    .flags = flags,
    .min_words = 1,
    .max_words = 1,
    .timeout_ms = 3000,
    .run = run,
};

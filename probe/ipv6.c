/* IPv6 as an attacker in the guest would use it: switched on by hand, neighbours found, routers played.
 * A connection over it is connect.c's or udp.c's, with an IPv6 address.
 */
#include "subcommands.h"

#include "ndp.h"
#include "slurp.h"
#include "sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ipv6.h>
#include <linux/ipv6_route.h>
#include <linux/route.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const struct flag flags[] = {
    {"--interface", "NAME", "the interface (that of the default route)"},
    {"--address", "ADDRESS", "enable: add this address, /64"},
    {"--gateway", "ADDRESS", "enable: add a default route over this address"},
    {"--prefix", "ADDRESS", "advertise: the /64 to announce (fd88:bad:bad:bad::)"},
    {"--lifetime", "SECONDS", "advertise: of router and prefix (60); 0 takes it back"},
    {"--count", "N", "advertise: how often (1)"},
    {NULL, NULL, NULL},
};

/* Writes one knob under /proc/sys/net/ipv6/conf; what came of it goes into the evidence. */
static bool set_knob(const char *interface, const char *knob, const char *value, struct jsonline *line)
{
    char path[160];
    char name[64];

    (void)snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/%s", interface, knob);
    (void)snprintf(name, sizeof(name), "%s.%s", interface, knob);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);
    int saved = done ? 0 : errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    char text[OUTCOME_ERRNO_TEXT];
    jsonline_text(line, name, done ? "written" : outcome_errno_name(saved, text));
    return done;
}

static int add_address(const struct ether *ether, const struct endpoint *address, struct outcome *outcome)
{
    int fd CLEANUP_FD = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct in6_ifreq asked = {.ifr6_addr = address->ip.v6, .ifr6_prefixlen = 64, .ifr6_ifindex = (int)ether->index};

    if (fd < 0 || (ioctl(fd, SIOCSIFADDR, &asked) < 0 && errno != EEXIST)) {
        return outcome_fail(outcome, errno, "adding the IPv6 address: %s", strerror(errno));
    }
    return 0;
}

static int add_gateway(const struct ether *ether, const struct endpoint *gateway, struct outcome *outcome)
{
    int fd CLEANUP_FD = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct in6_rtmsg asked = {
        .rtmsg_gateway = gateway->ip.v6,
        .rtmsg_flags = RTF_UP | RTF_GATEWAY,
        .rtmsg_metric = 1,
        .rtmsg_ifindex = (int)ether->index,
    };

    if (fd < 0 || (ioctl(fd, SIOCADDRT, &asked) < 0 && errno != EEXIST)) {
        return outcome_fail(outcome, errno, "adding the IPv6 default route: %s", strerror(errno));
    }
    return 0;
}

static void write_addresses(const struct ether *ether, struct outcome *outcome)
{
    struct netdump dump;
    struct outcome ignored CLEANUP_OUTCOME = {0};
    char text[ENDPOINT_TEXT];

    if (netdump_read(&dump, &ignored) < 0) {
        return;
    }
    jsonline_open_array(&outcome->evidence, "addresses");
    for (size_t i = 0; i < dump.address_count; i++) {
        if (dump.addresses[i].index == ether->index && dump.addresses[i].address.family == AF_INET6) {
            jsonline_text(&outcome->evidence, NULL, endpoint_text(&dump.addresses[i].address, text));
        }
    }
    jsonline_close_array(&outcome->evidence);
}

static int enable(const struct request *request, const struct ether *ether, struct outcome *outcome)
{
    struct endpoint address = {0};
    struct endpoint gateway = {0};

    if (request_endpoint(request, "--address", &address, outcome) < 0 ||
        request_endpoint(request, "--gateway", &gateway, outcome) < 0) {
        return -1;
    }
    jsonline_open_object(&outcome->evidence, "knobs");
    /* Without duplicate detection an address can be used at once. */
    (void)set_knob(ether->name, "accept_dad", "0", &outcome->evidence);
    (void)set_knob("all", "disable_ipv6", "0", &outcome->evidence);
    bool on = set_knob(ether->name, "disable_ipv6", "0", &outcome->evidence);
    jsonline_close_object(&outcome->evidence);
    /* systemd-networkd forbids the kernel to make this one (addr_gen_mode none); where it is there already, it stays.
     */
    struct endpoint link_local = ndp_link_local(ether->mac);
    if (on && add_address(ether, &link_local, outcome) < 0) {
        return -1;
    }
    if (on && address.family == AF_INET6 && add_address(ether, &address, outcome) < 0) {
        return -1;
    }
    if (on && gateway.family == AF_INET6 && add_gateway(ether, &gateway, outcome) < 0) {
        return -1;
    }
    write_addresses(ether, outcome);
    if (!on) {
        return outcome_fail(outcome, EROFS, "disable_ipv6 of %s cannot be written", ether->name);
    }
    outcome_say(outcome, VERDICT_DONE, 0);
    return 0;
}

static int disable(const struct ether *ether, struct outcome *outcome)
{
    jsonline_open_object(&outcome->evidence, "knobs");
    bool off = set_knob(ether->name, "disable_ipv6", "1", &outcome->evidence);
    jsonline_close_object(&outcome->evidence);
    if (!off) {
        return outcome_fail(outcome, EROFS, "disable_ipv6 of %s cannot be written", ether->name);
    }
    outcome_say(outcome, VERDICT_DONE, 0);
    return 0;
}

static int status(const struct ether *ether, struct outcome *outcome)
{
    static const char *const knobs[] = {"disable_ipv6", "accept_ra", "accept_dad", "forwarding"};
    char path[160];
    char value[32];

    jsonline_open_object(&outcome->evidence, "knobs");
    for (size_t i = 0; i < sizeof(knobs) / sizeof(knobs[0]); i++) {
        (void)snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/%s", ether->name, knobs[i]);
        jsonline_text(&outcome->evidence, knobs[i], slurp_line(path, value, sizeof(value)) < 0 ? NULL : value);
    }
    jsonline_close_object(&outcome->evidence);
    write_addresses(ether, outcome);
    outcome_say(outcome, VERDICT_DONE, 0);
    return 0;
}

enum { NEIGHBOURS = 16 };

/* Those who answered, each once. */
struct responders {
    struct endpoint found[NEIGHBOURS];
    size_t count;
};

static void take_responder(struct responders *responders, const struct endpoint *from)
{
    for (size_t i = 0; i < responders->count; i++) {
        if (endpoint_same_address(&responders->found[i], from)) {
            return;
        }
    }
    if (responders->count < NEIGHBOURS) {
        responders->found[responders->count++] = *from;
    }
}

static void collect(int fd, const struct request *request, struct deadline step, struct responders *responders)
{
    while (deadline_wait(step, fd, POLLIN) > 0) {
        uint8_t bytes[512];
        struct sockaddr_storage name = {0};
        socklen_t size = sizeof(name);
        ssize_t got = recvfrom(fd, bytes, sizeof(bytes), MSG_DONTWAIT, (struct sockaddr *)&name, &size);

        if (got < 8 && errno != EAGAIN) {
            return;
        }
        /* 129: an echo reply; a request of our own may come back. */
        if (got >= 8 && bytes[0] == 129 && dissect_contains(bytes, (size_t)got, request->token, request->token_size)) {
            struct endpoint from = endpoint_from_sockaddr((struct sockaddr *)&name);
            take_responder(responders, &from);
        }
    }
}

/* ff02::1: everyone on the link, if any hears it. */
static int neighbours(const struct request *request, const struct ether *ether, struct outcome *outcome)
{
    int fd CLEANUP_FD = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6);
    struct endpoint everyone = {0};
    struct sockaddr_storage address;
    struct responders responders = {.count = 0};
    struct frame message = {.size = 0};
    struct wire_ip ip;
    int off = 0;
    char text[ENDPOINT_TEXT];

    (void)endpoint_parse("ff02::1", &everyone);
    everyone.scope = ether->index;
    ip = (struct wire_ip){.source = everyone, .destination = everyone};
    socklen_t size = endpoint_to_sockaddr(&everyone, &address);
    if (fd < 0) {
        return outcome_fail(outcome, errno, "opening a raw socket: %s", strerror(errno));
    }
    (void)setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, &off, sizeof(off));
    wire_put_icmp(&message, &ip, 128, 0, 1, request->token, request->token_size);
    for (int attempt = 0; attempt < 3; attempt++) {
        if (sendto(fd, message.data, message.size, 0, (struct sockaddr *)&address, size) < 0) {
            jsonline_text(&outcome->evidence, "from", "own stack");
            outcome_say(outcome, VERDICT_UNREACHABLE, errno);
            return 0;
        }
        collect(fd, request, deadline_step_ms(request->deadline, request->timeout_ms / 3), &responders);
    }
    jsonline_open_array(&outcome->evidence, "responders");
    for (size_t i = 0; i < responders.count; i++) {
        jsonline_text(&outcome->evidence, NULL, endpoint_text(&responders.found[i], text));
    }
    jsonline_close_array(&outcome->evidence);
    outcome_say(outcome, responders.count ? VERDICT_REACHABLE : VERDICT_DROPPED, responders.count ? 0 : ETIMEDOUT);
    return 0;
}

static int dispatch(const struct request *request, const struct ether *ether, struct outcome *outcome)
{
    const char *word = request->words[0];
    struct endpoint target;

    if (strcmp(word, "enable") == 0) {
        return enable(request, ether, outcome);
    }
    if (strcmp(word, "disable") == 0) {
        return disable(ether, outcome);
    }
    if (strcmp(word, "status") == 0) {
        return status(ether, outcome);
    }
    if (strcmp(word, "neighbours") == 0) {
        return neighbours(request, ether, outcome);
    }
    if (strcmp(word, "advertise") == 0) {
        return ndp_advertise(request, ether, outcome);
    }
    if (strcmp(word, "solicit") == 0) {
        return ndp_solicit(request, ether, outcome);
    }
    if (strcmp(word, "ask") == 0 && request->word_count == 2) {
        if (request_word_endpoint(request, 1, &target, outcome) < 0) {
            return -1;
        }
        if (target.family != AF_INET6) {
            return outcome_usage(outcome, "ask is about an IPv6 address");
        }
        return ndp_ask(request, ether, &target, outcome);
    }
    return outcome_usage(outcome, "ipv6 enable, disable, status, neighbours, advertise, solicit or ask ADDRESS");
}

static int run(const struct request *request, struct outcome *outcome)
{
    struct ether ether CLEANUP_ETHER = {.fd = -1};

    if (ether_open(request_text(request, "--interface", NULL), &ether, outcome) < 0) {
        return -1;
    }
    return dispatch(request, &ether, outcome);
}

const struct subcommand subcommand_ipv6 = {
    .name = "ipv6",
    .arguments = "enable|disable|status|neighbours|advertise|solicit|ask [ADDRESS]",
    .summary = "IPv6 by hand: switch it on, find neighbours, play a router",
    .flags = flags,
    .min_words = 1,
    .max_words = 2,
    .timeout_ms = 2000,
    .run = run,
};

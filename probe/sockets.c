/* Opens the sockets that probes are made with, and applies to them the flags that many subcommands share.
 * What goes through them is the subcommand's affair; raw frames are in ether.c.
 */
#include "sockets.h"

#include "resolver.h"
#include "sockerr.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void sockets_close(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

static int apply_flags(const struct request *request, int fd, int family, struct outcome *outcome)
{
    const char *interface = request_text(request, "--interface", NULL);
    uint64_t ttl;

    if (interface && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface, (socklen_t)strlen(interface)) < 0) {
        return outcome_fail(outcome, errno, "binding to interface %s: %s", interface, strerror(errno));
    }
    if (request_number(request, "--ttl", 1, 255, 0, &ttl, outcome) < 0) {
        return -1;
    }
    if (ttl) {
        int value = (int)ttl;
        int failed = family == AF_INET6 ? setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &value, sizeof(value))
                                        : setsockopt(fd, IPPROTO_IP, IP_TTL, &value, sizeof(value));
        if (failed < 0) {
            return outcome_fail(outcome, errno, "setting the time to live: %s", strerror(errno));
        }
    }
    if (request_has(request, "--df")) {
        int probe = family == AF_INET6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE;
        int failed = family == AF_INET6 ? setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe, sizeof(probe))
                                        : setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe));
        if (failed < 0) {
            return outcome_fail(outcome, errno, "forbidding fragments: %s", strerror(errno));
        }
    }
    return 0;
}

static int bind_as_asked(const struct request *request, int fd, int family, struct outcome *outcome)
{
    struct endpoint source = {.family = family};
    uint64_t port;

    if (request_endpoint(request, "--source", &source, outcome) < 0 ||
        request_number(request, "--source-port", 1, UINT16_MAX, 0, &port, outcome) < 0) {
        return -1;
    }
    if (source.family != family) {
        return outcome_usage(outcome, "--source is of another family than the target");
    }
    if (!request_has(request, "--source") && port == 0) {
        return 0;
    }
    source.port = (uint16_t)port;
    return sockets_bind(fd, &source, outcome);
}

int sockets_open(const struct request *request, int family, int type, int protocol, int *ret_fd,
                 struct outcome *outcome)
{
    int fd CLEANUP_FD = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);

    if (fd < 0) {
        return outcome_fail(outcome, errno, "opening a socket: %s", strerror(errno));
    }
    sockerr_enable(fd, family);
    if (apply_flags(request, fd, family, outcome) < 0 || bind_as_asked(request, fd, family, outcome) < 0) {
        return -1;
    }
    *ret_fd = fd;
    fd = -1;
    return 0;
}

int sockets_bind(int fd, const struct endpoint *endpoint, struct outcome *outcome)
{
    struct sockaddr_storage address;
    socklen_t size = endpoint_to_sockaddr(endpoint, &address);
    char text[ENDPOINT_TEXT];

    if (bind(fd, (struct sockaddr *)&address, size) < 0) {
        int saved = errno;
        return outcome_fail(outcome, saved, "binding to %s port %u: %s", endpoint_text(endpoint, text), endpoint->port,
                            strerror(saved));
    }
    return 0;
}

struct endpoint sockets_local(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);

    if (getsockname(fd, (struct sockaddr *)&address, &size) < 0) {
        return (struct endpoint){0};
    }
    return endpoint_from_sockaddr((struct sockaddr *)&address);
}

struct endpoint sockets_source_for(const struct endpoint *peer)
{
    int fd CLEANUP_FD = socket(peer->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct endpoint towards = *peer;

    towards.port = 9;
    if (fd < 0 || sockets_connect(fd, &towards) < 0) {
        return (struct endpoint){0};
    }
    return sockets_local(fd);
}

int sockets_connect(int fd, const struct endpoint *peer)
{
    struct sockaddr_storage address;
    socklen_t size = endpoint_to_sockaddr(peer, &address);

    return connect(fd, (struct sockaddr *)&address, size);
}

int sockets_path_mtu(int fd, int family)
{
    int mtu = 0;
    socklen_t size = sizeof(mtu);
    int failed = family == AF_INET6 ? getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &size)
                                    : getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &size);

    return failed < 0 ? 0 : mtu;
}

void sockets_write_endpoint(struct jsonline *line, const char *key, const struct endpoint *endpoint)
{
    char text[ENDPOINT_TEXT];

    jsonline_open_object(line, key);
    jsonline_text(line, "address", endpoint_text(endpoint, text));
    jsonline_number(line, "port", endpoint->port);
    jsonline_close_object(line);
}

int sockets_target(const struct request *request, const char *word, struct endpoint *ret_endpoint,
                   struct outcome *outcome)
{
    struct resolver_answer answer;
    char text[ENDPOINT_TEXT];

    if (endpoint_parse(word, ret_endpoint)) {
        return 0;
    }
    if (resolver_lookup(word, request->deadline, &answer, outcome) < 0) {
        return -1;
    }
    if (answer.address_count == 0) {
        return outcome_fail(outcome, 0, "the name %s did not resolve: %s", word, answer.how);
    }
    *ret_endpoint = answer.addresses[0];
    jsonline_text(&outcome->evidence, "address", endpoint_text(ret_endpoint, text));
    return 0;
}

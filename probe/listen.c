/* The receiving end of attacks, and the echo server of positive controls: TCP and UDP on ordinary sockets.
 * Raw sockets and frames are in listenwire.c, the counting in hearing.c.
 */
#include "listen.h"

#include "dissect.h"
#include "sockets.h"
#include "subcommands.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/uio.h>

static const struct flag flags[] = {
    {"--port", "N", "the port (tcp, udp: a free one, which the line \"ready KIND PORT\" on stderr tells)"},
    {"--address", "ADDRESS", "the local address (0.0.0.0; an IPv6 one for IPv6)"},
    {"--interface", "NAME", "only on this interface"},
    {"--group", "ADDRESS", "udp: join this multicast group"},
    {"--echo", NULL, "tcp, udp: send everything back"},
    {"--reply", "TEXT", "tcp, udp: answer with this (escapes: \\r \\n \\xNN)"},
    HEARING_FLAGS,
    {"--protocol", "P", "ip: icmp, tcp, udp or a number"},
    {"--ethertype", "N", "ether: only this one (after VLAN tags)"},
    {"--to-ip", "ADDRESS", "ether: only IP packets for this address"},
    {NULL, NULL, NULL},
};

enum { CONNECTIONS = 64, SHOWN = 200, REPLY = 1024 };

/* What is kept of a connection: enough of its end to find a token that came in two pieces. */
struct connection {
    struct endpoint from;
    char tail[512];
    size_t size;
    bool matched;
};

struct server {
    struct hearing *hearing;
    bool echo;
    uint8_t reply[REPLY];
    size_t reply_size;
    struct pollfd fds[1 + CONNECTIONS + 1];
    struct connection connections[CONNECTIONS];
};

/* A socket bound as the flags say; *ret_address is where. */
static int bind_as_asked(const struct request *request, int type, int *ret_fd, struct endpoint *ret_address,
                         struct outcome *outcome)
{
    struct endpoint address = {.family = AF_INET};
    const char *interface = request_text(request, "--interface", NULL);
    uint64_t port;
    int on = 1;

    if (request_endpoint(request, "--address", &address, outcome) < 0 ||
        request_number(request, "--port", 0, UINT16_MAX, 0, &port, outcome) < 0) {
        return -1;
    }
    address.port = (uint16_t)port;
    int fd CLEANUP_FD = socket(address.family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return outcome_fail(outcome, errno, "opening a socket: %s", strerror(errno));
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (interface && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface, (socklen_t)strlen(interface)) < 0) {
        return outcome_fail(outcome, errno, "binding to interface %s: %s", interface, strerror(errno));
    }
    if (sockets_bind(fd, &address, outcome) < 0) {
        return -1;
    }
    *ret_address = sockets_local(fd);
    sockets_write_endpoint(&outcome->evidence, "listening", ret_address);
    *ret_fd = fd;
    fd = -1;
    return 0;
}

static void accept_connection(struct server *server)
{
    struct sockaddr_storage name = {0};
    socklen_t size = sizeof(name);
    int fd = accept4(server->fds[0].fd, (struct sockaddr *)&name, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int place = 0;
    struct jsonline *line;

    if (fd < 0) {
        return;
    }
    while (place < CONNECTIONS && server->fds[1 + place].fd >= 0) {
        place++;
    }
    if (place == CONNECTIONS) {
        sockets_close(&fd);
        return;
    }
    server->fds[1 + place] = (struct pollfd){.fd = fd, .events = POLLIN};
    server->connections[place] = (struct connection){.from = endpoint_from_sockaddr((struct sockaddr *)&name)};
    /* Without a token the handshake alone is what was waited for. */
    if (server->hearing->any) {
        (void)hearing_take(server->hearing, &server->connections[place].from, "", 0, &line);
        hearing_close(line);
        server->connections[place].matched = true;
    }
    if (server->reply_size) {
        (void)send(fd, server->reply, server->reply_size, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

static void serve_connection(struct server *server, int place)
{
    struct connection *connection = &server->connections[place];
    const struct request *request = server->hearing->request;
    struct jsonline *line;
    char bytes[512];
    ssize_t got = recv(server->fds[1 + place].fd, bytes, sizeof(bytes), 0);

    if (got < 0 && errno == EAGAIN) {
        return;
    }
    if (got <= 0) {
        sockets_close(&server->fds[1 + place].fd);
        return;
    }
    if (server->echo) {
        /* A peer that does not read loses the rest; a server that waits for it would serve nobody. */
        (void)send(server->fds[1 + place].fd, bytes, (size_t)got, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    if (connection->matched) {
        return;
    }
    char window[sizeof(connection->tail) + sizeof(bytes)];
    memcpy(window, connection->tail, connection->size);
    memcpy(window + connection->size, bytes, (size_t)got);
    size_t size = connection->size + (size_t)got;
    if (dissect_contains(window, size, request->token, request->token_size)) {
        connection->matched = true;
        (void)hearing_take(server->hearing, &connection->from, window, size, &line);
        if (line) {
            jsonline_bytes(line, "data", window, size, SHOWN);
        }
        hearing_close(line);
        return;
    }
    connection->size = size < request->token_size ? size : request->token_size;
    memcpy(connection->tail, window + size - connection->size, connection->size);
}

int listen_tcp(struct hearing *hearing, struct outcome *outcome)
{
    struct server server = {.hearing = hearing, .echo = request_has(hearing->request, "--echo")};
    struct endpoint local;
    int fd CLEANUP_FD = -1;

    if (request_bytes(hearing->request, "--reply", server.reply, REPLY, &server.reply_size, outcome) < 0 ||
        bind_as_asked(hearing->request, SOCK_STREAM, &fd, &local, outcome) < 0) {
        return -1;
    }
    if (listen(fd, CONNECTIONS) < 0) {
        return outcome_fail(outcome, errno, "listening: %s", strerror(errno));
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        server.fds[1 + i].fd = -1;
    }
    server.fds[0] = (struct pollfd){.fd = fd, .events = POLLIN};
    hearing_ready("tcp", local.port);
    while (hearing_wait(hearing, server.fds, 1 + CONNECTIONS + 1)) {
        for (int i = 0; i < CONNECTIONS && !hearing_over(hearing); i++) {
            if (server.fds[1 + i].fd >= 0 && server.fds[1 + i].revents) {
                serve_connection(&server, i);
            }
        }
        if (server.fds[0].revents) {
            accept_connection(&server);
        }
    }
    return 0;
}

static int join_group(const struct request *request, int fd, struct outcome *outcome)
{
    struct endpoint group = {0};
    const char *interface = request_text(request, "--interface", NULL);
    int index = interface ? (int)if_nametoindex(interface) : 0;
    int failed = 0;

    if (request_endpoint(request, "--group", &group, outcome) < 0) {
        return -1;
    }
    if (group.family == AF_INET6) {
        struct ipv6_mreq asked = {.ipv6mr_multiaddr = group.ip.v6,
                                  .ipv6mr_interface = group.scope ? group.scope : (unsigned)index};
        failed = setsockopt(fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &asked, sizeof(asked));
    } else if (group.family == AF_INET) {
        struct ip_mreqn asked = {.imr_multiaddr = group.ip.v4, .imr_ifindex = index};
        failed = setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &asked, sizeof(asked));
    }
    return failed ? outcome_fail(outcome, errno, "joining the group: %s", strerror(errno)) : 0;
}

/* One datagram and the address it was sent to, so that an answer can come from there. */
static ssize_t receive_datagram(int fd, uint8_t *bytes, size_t capacity, struct endpoint *ret_from,
                                struct in_pktinfo *ret_to)
{
    char control[128] __attribute__((aligned(sizeof(size_t))));
    struct sockaddr_storage name = {0};
    struct iovec piece = {.iov_base = bytes, .iov_len = capacity};
    struct msghdr message = {
        .msg_name = &name,
        .msg_namelen = sizeof(name),
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control),
    };
    ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT);

    *ret_to = (struct in_pktinfo){0};
    if (got >= 0) {
        *ret_from = endpoint_from_sockaddr((struct sockaddr *)&name);
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
            if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
                memcpy(ret_to, CMSG_DATA(c), sizeof(*ret_to));
            }
        }
    }
    return got;
}

/* Answers from the address that was asked; for a broadcast or a group, from the interface's own. */
static void answer_datagram(int fd, const struct endpoint *peer, const struct in_pktinfo *to, const void *data,
                            size_t size)
{
    char control[CMSG_SPACE(sizeof(struct in_pktinfo))] __attribute__((aligned(sizeof(size_t)))) = {0};
    struct sockaddr_storage name;
    struct iovec piece = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    struct msghdr message = {.msg_name = &name, .msg_iov = &piece, .msg_iovlen = 1};

    message.msg_namelen = endpoint_to_sockaddr(peer, &name);
    if (peer->family == AF_INET && to->ipi_spec_dst.s_addr) {
        struct in_pktinfo from = {.ipi_spec_dst = to->ipi_spec_dst};
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        *c = (struct cmsghdr){.cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO, .cmsg_len = CMSG_LEN(sizeof(from))};
        memcpy(CMSG_DATA(c), &from, sizeof(from));
    }
    (void)sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int listen_udp(struct hearing *hearing, struct outcome *outcome)
{
    const struct request *request = hearing->request;
    struct endpoint local;
    uint8_t bytes[65536];
    uint8_t reply[REPLY];
    size_t reply_size = 0;
    bool echo = request_has(request, "--echo");
    int fd CLEANUP_FD = -1;
    int on = 1;

    if (request_bytes(request, "--reply", reply, REPLY, &reply_size, outcome) < 0 ||
        bind_as_asked(request, SOCK_DGRAM, &fd, &local, outcome) < 0 || join_group(request, fd, outcome) < 0) {
        return -1;
    }
    (void)setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on));
    struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}};
    hearing_ready("udp", local.port);
    while (hearing_wait(hearing, fds, 2)) {
        struct endpoint from;
        struct in_pktinfo to;
        struct jsonline *line;
        char text[ENDPOINT_TEXT];
        ssize_t got = receive_datagram(fd, bytes, sizeof(bytes), &from, &to);

        if (got < 0) {
            continue;
        }
        (void)hearing_take(hearing, &from, bytes, (size_t)got, &line);
        if (line) {
            struct endpoint destination = endpoint_from_v4(&to.ipi_addr);
            jsonline_text(line, "to", to.ipi_addr.s_addr ? endpoint_text(&destination, text) : NULL);
            jsonline_bytes(line, "data", bytes, (size_t)got, SHOWN);
        }
        hearing_close(line);
        if (echo || reply_size) {
            answer_datagram(fd, &from, &to, echo ? bytes : reply, echo ? (size_t)got : reply_size);
        }
    }
    return 0;
}

static int run(const struct request *request, struct outcome *outcome)
{
    static const struct {
        const char *name;
        int (*hear)(struct hearing *hearing, struct outcome *outcome);
    } kinds[] = {{"tcp", listen_tcp}, {"udp", listen_udp}, {"ip", listenwire_ip}, {"ether", listenwire_ether}};
    struct hearing hearing;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(request->words[0], kinds[i].name) != 0) {
            continue;
        }
        if (hearing_begin(request, &hearing, outcome) < 0) {
            return -1;
        }
        int failed = kinds[i].hear(&hearing, outcome);
        if (!failed) {
            hearing_report(&hearing, outcome);
        }
        hearing_end(&hearing);
        return failed;
    }
    return outcome_usage(outcome, "listen tcp, udp, ip or ether");
}

const struct subcommand subcommand_listen = {
    .name = "listen",
    .arguments = "tcp|udp|ip|ether",
    .summary = "the receiving end: wait for the token, or serve as echo, until the budget ends",
    .flags = flags,
    .min_words = 1,
    .max_words = 1,
    .timeout_ms = 10000,
    .run = run,
};

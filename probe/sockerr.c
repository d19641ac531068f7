/* Tells apart what a failed socket call means: refused by the destination, unreachable by whom, or nothing.
 * ICMP errors that the instrument reads as packets are judged in answer.c, by the same rule.
 */
#include "sockerr.h"

#include "answer.h"
#include "sockets.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <string.h>
#include <sys/uio.h>

void sockerr_enable(int fd, int family)
{
    int on = 1;

    if (family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof(on));
    } else {
        (void)setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on));
    }
}

bool sockerr_take(int fd, struct sockerr *ret_error)
{
    char data[64];
    char control[512] __attribute__((aligned(sizeof(size_t))));
    struct sockaddr_storage name = {0};
    struct iovec piece = {.iov_base = data, .iov_len = sizeof(data)};
    struct msghdr message = {
        .msg_name = &name,
        .msg_namelen = sizeof(name),
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control),
    };

    if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
        return false;
    }
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        bool v4 = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR;
        bool v6 = c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR;
        if (!v4 && !v6) {
            continue;
        }
        const struct sock_extended_err *told = (const void *)CMSG_DATA(c);
        *ret_error = (struct sockerr){
            .errno_value = (int)told->ee_errno,
            .by_icmp = told->ee_origin == SO_EE_ORIGIN_ICMP || told->ee_origin == SO_EE_ORIGIN_ICMP6,
            .type = told->ee_type,
            .code = told->ee_code,
            .info = told->ee_info,
            .from = endpoint_from_sockaddr(SO_EE_OFFENDER(told)),
            .destination = endpoint_from_sockaddr((struct sockaddr *)&name),
        };
        return true;
    }
    return false;
}

/* An errno without any packet behind it, as this machine's own stack gives it. */
static enum verdict verdict_of_errno(int errno_value)
{
    switch (errno_value) {
    case ECONNREFUSED:
    case ECONNRESET:
        return VERDICT_REFUSED;
    case ETIMEDOUT:
        return VERDICT_DROPPED;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case ENONET:
    case EACCES: /* a "prohibit" route */
    case EPERM:  /* an output filter of this machine */
    case EMSGSIZE:
    case EADDRNOTAVAIL: /* IPv6: a route, but no address to send from */
        return VERDICT_UNREACHABLE;
    default:
        return VERDICT_ERROR;
    }
}

static void write_icmp(int fd, const struct sockerr *error, struct outcome *outcome)
{
    char text[ENDPOINT_TEXT];
    struct endpoint own = sockets_local(fd);

    jsonline_open_object(&outcome->evidence, "icmp");
    jsonline_text(&outcome->evidence, "from", endpoint_text(&error->from, text));
    jsonline_bool(&outcome->evidence, "from_own_stack", endpoint_same_address(&error->from, &own));
    jsonline_number(&outcome->evidence, "type", error->type);
    jsonline_number(&outcome->evidence, "code", error->code);
    if (error->errno_value == EMSGSIZE) {
        jsonline_number(&outcome->evidence, "mtu", error->info);
    }
    jsonline_close_object(&outcome->evidence);
}

int sockerr_say(int fd, const struct sockerr *error, const struct endpoint *destination, struct outcome *outcome)
{
    enum verdict verdict = verdict_of_errno(error->errno_value);

    if (error->by_icmp) {
        /* A router that rejects may use the destination's code, but not the destination's address. */
        bool refusal = answer_is_refusal(destination->family, error->type, error->code) &&
                       endpoint_same_address(&error->from, destination);
        verdict = refusal ? VERDICT_REFUSED : VERDICT_UNREACHABLE;
        write_icmp(fd, error, outcome);
    } else if (verdict == VERDICT_UNREACHABLE) {
        jsonline_text(&outcome->evidence, "from", "own stack");
    }
    if (verdict == VERDICT_ERROR) {
        return outcome_fail(outcome, error->errno_value, "the socket failed: %s", strerror(error->errno_value));
    }
    outcome_say(outcome, verdict, error->errno_value);
    return 0;
}

int sockerr_judge(int fd, int errno_value, const struct endpoint *destination, struct outcome *outcome)
{
    struct sockerr error;

    if (!sockerr_take(fd, &error)) {
        error = (struct sockerr){.errno_value = errno_value};
    }
    return sockerr_say(fd, &error, destination, outcome);
}

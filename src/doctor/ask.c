/* Asks a DNS server one question.
 * Not for reading the answer: that there is one, and its code, is the fact that is wanted. */
#include "doctor/ask.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define DNS_PORT 53
#define TRIES    2

/* RFC 1035 section 4: header with one question, the name as labels, type A, class IN. 0 where the name does not fit. */
static size_t make_question(uint16_t id, const char *name, uint8_t packet[512])
{
    static const uint8_t tail[] = {0, 0, 1, 0, 1};
    const uint8_t header[12] = {(uint8_t)(id >> 8), (uint8_t)id, 1, 0, 0, 1};
    size_t length = sizeof(header);
    memcpy(packet, header, sizeof(header));
    while (*name != '\0') {
        size_t label = strcspn(name, ".");
        if (label == 0 || label > 63 || length + label + 1 + sizeof(tail) > 512) {
            return 0;
        }
        packet[length++] = (uint8_t)label;
        memcpy(packet + length, name, label);
        length += label;
        name += label + (name[label] == '.' ? 1 : 0);
    }
    memcpy(packet + length, tail, sizeof(tail));
    return length + sizeof(tail);
}

/* Waits for the answer with that id: 1 and its code, 0 where none came in time. */
static int wait_answer(int fd, uint16_t id, int64_t deadline, int *ret_code)
{
    for (;;) {
        uint8_t answer[512];
        struct pollfd polled = {.fd = fd, .events = POLLIN};
        if (poll(&polled, 1, clock_left(deadline)) <= 0) {
            return 0;
        }
        ssize_t length = recv(fd, answer, sizeof(answer), 0);
        if (length < 0) {
            return 0; /* refused: nobody has the port */
        }
        if (length >= 12 && answer[0] == id >> 8 && answer[1] == (id & 255) && (answer[2] & 0x80) != 0) {
            *ret_code = answer[3] & 15;
            return 1;
        }
    }
}

int ask_dns(uint32_t server, const char *name, int64_t budget, int *ret_code, struct error *err)
{
    uint8_t packet[512];
    uint16_t id = 0;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(DNS_PORT), .sin_addr.s_addr = htonl(server)};
    CLEANUP(fd_closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (getrandom(&id, sizeof(id), 0) < 0) {
        id = 0x626f;
    }
    size_t length = make_question(id, name, packet);
    if (length == 0) {
        return error_set(err, ERR_USAGE, "%s is no name", name);
    }
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        return error_set_errno(err, errno, "cannot ask a resolver");
    }
    for (int i = 0; i < TRIES; i++) {
        if (send(fd, packet, length, 0) < 0 && errno != ECONNREFUSED) {
            return error_set_errno(err, errno, "cannot ask a resolver");
        }
        if (wait_answer(fd, id, clock_deadline(budget / TRIES), ret_code) > 0) {
            return 0;
        }
    }
    return error_set(err, ERR_TIMEOUT, "no answer within %d ms", (int)budget);
}

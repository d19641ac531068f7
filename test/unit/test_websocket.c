/* A WebSocket against a peer that this test plays byte by byte.
 * Not for: what the daemon really sends; the lab's tests see that. */
#include "unit.h"

#include "base/fd.h"
#include "base/memory.h"
#include "incus/websocket.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define UPGRADED "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"

struct peer {
    int listener, fd;
    struct sockaddr_un address;
    struct websocket *websocket;
};

static int connect_peer(void **state)
{
    struct peer *peer = xcalloc(1, sizeof(*peer));
    peer->address.sun_family = AF_UNIX;
    snprintf(peer->address.sun_path, sizeof(peer->address.sun_path), "/tmp/box-websocket-%d", getpid());
    unlink(peer->address.sun_path);
    peer->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(peer->listener, (struct sockaddr *)&peer->address, sizeof(peer->address)) < 0 ||
        listen(peer->listener, 4) < 0 || websocket_open(peer->address.sun_path, "/x", &peer->websocket, NULL) < 0) {
        return -1;
    }
    peer->fd = accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC);
    *state = peer;
    return 0;
}

static int drop_peer(void **state)
{
    struct peer *peer = *state;
    websocket_free(peer->websocket);
    fd_closep(&peer->fd);
    fd_closep(&peer->listener);
    unlink(peer->address.sun_path);
    free(peer);
    return 0;
}

static void give(struct peer *peer, const void *data, size_t length)
{
    assert_int_equal(send(peer->fd, data, length, MSG_NOSIGNAL), length);
    assert_int_equal(websocket_service(peer->websocket, NULL), 0);
}

#define GIVE(peer, text) give(peer, text, sizeof(text) - 1)

static void expect_incoming(struct peer *peer, const char *text)
{
    struct buffer *incoming = websocket_incoming(peer->websocket);
    assert_int_equal(incoming->length, strlen(text));
    assert_memory_equal(incoming->length ? incoming->data : "", text, strlen(text));
    buffer_consume(incoming, incoming->length);
}

/* What we sent after the handshake, unmasked: one short frame. */
static void expect_frame(struct peer *peer, unsigned char first, const char *text)
{
    unsigned char frame[200], plain[200] = {0};
    ssize_t got = recv(peer->fd, frame, sizeof(frame), MSG_DONTWAIT);
    size_t length = strlen(text);
    assert_int_equal(got, 6 + length);
    assert_int_equal(frame[0], first);
    assert_int_equal(frame[1], 0x80 | length);
    for (size_t i = 0; i < length; i++) {
        plain[i] = frame[6 + i] ^ frame[2 + i % 4];
    }
    assert_memory_equal(plain, text, length);
}

static void skip_handshake(struct peer *peer)
{
    char request[1000];
    assert_true(recv(peer->fd, request, sizeof(request), 0) > 100);
}

static void the_first_frame_rides_with_the_answer(void **state)
{
    struct peer *peer = *state;
    GIVE(peer, UPGRADED "\x82\x05hello");
    expect_incoming(peer, "hello");
    assert_false(websocket_ended(peer->websocket));
}

static void frames_in_pieces(void **state)
{
    struct peer *peer = *state;
    const char whole[] = UPGRADED "\x82\x03"
                                  "abc"
                                  "\x82\x04"
                                  "defg";
    for (size_t i = 0; i < sizeof(whole) - 1; i++) {
        give(peer, whole + i, 1);
    }
    expect_incoming(peer, "abcdefg");
}

static void a_ping_between_fragments_is_no_payload(void **state)
{
    struct peer *peer = *state;
    skip_handshake(peer);
    GIVE(peer, UPGRADED "\x02\x02"
                        "ab"
                        "\x89\x09"
                        "keepalive"
                        "\x80\x02"
                        "cd");
    expect_incoming(peer, "abcd");
    expect_frame(peer, 0x8a, "keepalive");
}

static void an_empty_text_frame_is_the_end(void **state)
{
    struct peer *peer = *state;
    GIVE(peer, UPGRADED "\x82\x02"
                        "ab"
                        "\x81\x00"
                        "\x82\x02"
                        "cd");
    assert_true(websocket_ended(peer->websocket));
    expect_incoming(peer, "ab");
}

static void a_dropped_connection_is_an_end_and_no_error(void **state)
{
    struct peer *peer = *state;
    GIVE(peer, UPGRADED "\x82\x02"
                        "ab");
    fd_closep(&peer->fd);
    assert_int_equal(websocket_service(peer->websocket, NULL), 0);
    assert_true(websocket_ended(peer->websocket));
    assert_int_equal(websocket_fd(peer->websocket), -1);
    assert_int_equal(websocket_events(peer->websocket), 0);
    expect_incoming(peer, "ab");
}

static void a_close_frame_is_answered(void **state)
{
    struct peer *peer = *state;
    skip_handshake(peer);
    GIVE(peer, UPGRADED "\x88\x02\x03\xe8");
    unsigned char frame[20];
    assert_int_equal(recv(peer->fd, frame, sizeof(frame), 0), 8);
    assert_int_equal(frame[0], 0x88);
    assert_int_equal(websocket_fd(peer->websocket), -1);
}

static void messages_wait_for_the_handshake(void **state)
{
    struct peer *peer = *state;
    skip_handshake(peer);
    websocket_send(peer->websocket, "data", 4);
    assert_int_equal(websocket_backlog(peer->websocket), 6 + 4); /* the frame's own bytes have to leave, too */
    assert_int_equal(websocket_service(peer->websocket, NULL), 0);
    char early;
    assert_int_equal(recv(peer->fd, &early, 1, MSG_DONTWAIT), -1);
    GIVE(peer, UPGRADED);
    expect_frame(peer, 0x82, "data");
    websocket_send_text(peer->websocket, "");
    assert_int_equal(websocket_service(peer->websocket, NULL), 0);
    expect_frame(peer, 0x81, "");
    assert_int_equal(websocket_backlog(peer->websocket), 0);
}

/* Each of the three ways to tell a length, at their borders; the mask must fit every remainder. */
static void frames_of_every_size(void **state)
{
    static const size_t sizes[] = {1, 7, 8, 9, 125, 126, 127, 1000, 65535, 65536, 65543};
    struct peer *peer = *state;
    skip_handshake(peer);
    GIVE(peer, UPGRADED);
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        size_t size = sizes[i], head = size < 126 ? 2 : size <= 65535 ? 4 : 10;
        CLEANUP(freep) unsigned char *data = xmalloc(size);
        CLEANUP(freep) unsigned char *frame = xmalloc(head + 4 + size);
        for (size_t j = 0; j < size; j++) {
            data[j] = (unsigned char)(j * 7 + i);
        }
        websocket_send(peer->websocket, data, size);
        for (size_t got = 0; got < head + 4 + size;) {
            assert_int_equal(websocket_service(peer->websocket, NULL), 0);
            ssize_t part = recv(peer->fd, frame + got, head + 4 + size - got, MSG_DONTWAIT);
            assert_true(part > 0);
            got += (size_t)part;
        }
        size_t told = head == 2 ? frame[1] & 0x7fU : 0;
        for (size_t j = 2; j < head; j++) {
            told = told << 8 | frame[j];
        }
        assert_int_equal(frame[0], 0x82);
        assert_int_equal(frame[1] & 0x80, 0x80);
        assert_int_equal(told, size);
        for (size_t j = 0; j < size; j++) {
            assert_int_equal(frame[head + 4 + j] ^ frame[head + j % 4], data[j]);
        }
        assert_int_equal(websocket_backlog(peer->websocket), 0);
    }
}

static void expect_failure(struct peer *peer, const void *data, size_t length, enum error_code code, const char *words)
{
    CLEANUP(error_reset) struct error err = {0};
    assert_int_equal(send(peer->fd, data, length, MSG_NOSIGNAL), length);
    assert_int_equal(websocket_service(peer->websocket, &err), -1);
    assert_int_equal(err.code, code);
    assert_non_null(strstr(err.message, words));
    assert_int_equal(websocket_fd(peer->websocket), -1);
}

static void a_refused_handshake_has_the_daemons_words(void **state)
{
    const char answer[] = "HTTP/1.1 403 Forbidden\r\nContent-Type: x\r\n\r\n"
                          "{\"type\":\"error\",\"error_code\":403,\"error\":\"not yours\"}";
    expect_failure(*state, answer, sizeof(answer) - 1, ERR_DENIED, "not yours");
}

static void what_is_no_websocket(void **state)
{
    const char answer[] = "SSH-2.0-OpenSSH\r\n\r\n";
    expect_failure(*state, answer, sizeof(answer) - 1, ERR_PROTOCOL, "HTTP");
}

static void a_masked_frame_is_broken(void **state)
{
    const char answer[] = UPGRADED "\x82\x82"
                                   "0000"
                                   "ab";
    expect_failure(*state, answer, sizeof(answer) - 1, ERR_PROTOCOL, "broken frame");
}

static void hanging_up_before_the_answer(void **state)
{
    struct peer *peer = *state;
    CLEANUP(error_reset) struct error err = {0};
    fd_closep(&peer->fd);
    assert_int_equal(websocket_service(peer->websocket, &err), -1);
    assert_int_equal(err.code, ERR_NO_DAEMON);
}

/* Nothing is read any more while the window is full, and nothing is lost when it opens. */
static void back_pressure(void **state)
{
    struct peer *peer = *state;
    GIVE(peer, UPGRADED);
    enum { FRAME = 65535, FRAMES = 40 };
    static unsigned char frame[4 + FRAME] = {0x82, 0x7e, 0xff, 0xff};
    fcntl(peer->fd, F_SETFL, O_NONBLOCK);
    size_t sent = 0, total = (size_t)FRAMES * sizeof(frame), taken = 0, most = 0;
    struct buffer *incoming = websocket_incoming(peer->websocket);
    while (taken < (size_t)FRAMES * FRAME) {
        if (sent < total) {
            size_t at = sent % sizeof(frame);
            ssize_t done = send(peer->fd, frame + at, sizeof(frame) - at, MSG_NOSIGNAL);
            sent += done > 0 ? (size_t)done : 0;
        }
        assert_int_equal(websocket_service(peer->websocket, NULL), 0);
        most = incoming->length > most ? incoming->length : most;
        if (websocket_stalled(peer->websocket) || sent == total) {
            taken += incoming->length;
            buffer_consume(incoming, incoming->length);
        }
    }
    assert_int_equal(taken, (size_t)FRAMES * FRAME);
    assert_true(most < 300 * 1024);
}

#define WITH_PEER(test) cmocka_unit_test_setup_teardown(test, connect_peer, drop_peer)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PEER(the_first_frame_rides_with_the_answer),
        WITH_PEER(frames_in_pieces),
        WITH_PEER(a_ping_between_fragments_is_no_payload),
        WITH_PEER(an_empty_text_frame_is_the_end),
        WITH_PEER(a_dropped_connection_is_an_end_and_no_error),
        WITH_PEER(a_close_frame_is_answered),
        WITH_PEER(messages_wait_for_the_handshake),
        WITH_PEER(a_refused_handshake_has_the_daemons_words),
        WITH_PEER(what_is_no_websocket),
        WITH_PEER(frames_of_every_size),
        WITH_PEER(a_masked_frame_is_broken),
        WITH_PEER(hanging_up_before_the_answer),
        WITH_PEER(back_pressure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Output that must neither block nor be lost: pipes, sockets, captures, readers that left.
 * Not for: where the bytes come from. */
#include "unit.h"

#include "base/fd.h"
#include "incus/outlet.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void fill(struct buffer *buffer, size_t length)
{
    buffer_consume(buffer, buffer->length);
    memset(buffer_reserve(buffer, length), 'x', length);
    buffer->length = length;
}

/* Takes until nothing moves, then empties the reader's end; returns how much arrived in all. */
static size_t drive(struct outlet *outlet, struct buffer *data, int reader)
{
    size_t arrived = 0;
    static char chunk[1 << 20];
    for (;;) {
        assert_int_equal(outlet_take(outlet, data, NULL), 0);
        ssize_t got = read(reader, chunk, sizeof(chunk));
        if (got <= 0) {
            return arrived;
        }
        arrived += (size_t)got;
    }
}

static void a_full_pipe_does_not_block(void **state)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    struct outlet outlet = outlet_make(ends[1], NULL, 0);
    CLEANUP(buffer_reset) struct buffer data = {0};
    fill(&data, 1 << 20);
    assert_int_equal(outlet_take(&outlet, &data, NULL), 0);
    assert_true(data.length > 0 && data.length < 1 << 20);
    assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(drive(&outlet, &data, ends[0]), 1 << 20);
    assert_int_equal(data.length, 0);
    fd_closep(&ends[0]);
    fd_closep(&ends[1]);
}

static void a_socket_does_not_block(void **state)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    struct outlet outlet = outlet_make(ends[1], NULL, 0);
    CLEANUP(buffer_reset) struct buffer data = {0};
    fill(&data, 1 << 22);
    assert_int_equal(outlet_take(&outlet, &data, NULL), 0);
    assert_true(data.length > 0);
    assert_int_equal(drive(&outlet, &data, ends[0]), 1 << 22);
    fd_closep(&ends[0]);
    fd_closep(&ends[1]);
}

static void a_reader_that_left(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    fd_closep(&ends[0]);
    struct outlet outlet = outlet_make(ends[1], NULL, 0);
    CLEANUP(buffer_reset) struct buffer data = {0};
    fill(&data, 100);
    assert_int_equal(outlet_take(&outlet, &data, NULL), 0);
    assert_true(outlet.broken);
    assert_int_equal(data.length, 0);
    fd_closep(&ends[1]);
}

static void a_full_disk(void **state)
{
    CLEANUP(fd_closep) int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    struct outlet outlet = outlet_make(fd, NULL, 0);
    CLEANUP(buffer_reset) struct buffer data = {0};
    CLEANUP(error_reset) struct error err = {0};
    fill(&data, 100);
    assert_int_equal(outlet_take(&outlet, &data, &err), -1);
    assert_int_equal(err.code, ERR_SYSTEM);
    assert_false(outlet.broken);
}

static void a_capture_has_a_ceiling(void **state)
{
    CLEANUP(buffer_reset) struct buffer capture = {0};
    CLEANUP(buffer_reset) struct buffer data = {0};
    struct outlet outlet = outlet_make(-1, &capture, 150);
    for (int i = 0; i < 3; i++) {
        fill(&data, 100);
        assert_int_equal(outlet_take(&outlet, &data, NULL), 0);
        assert_int_equal(data.length, 0);
    }
    assert_int_equal(capture.length, 150);
}

static void count(void *context, const char *data, size_t length)
{
    *(size_t *)context += length;
}

static void a_listener_hears_all_of_it(void **state)
{
    CLEANUP(buffer_reset) struct buffer data = {0};
    struct outlet outlet = outlet_make(-1, NULL, 0);
    size_t heard = 0;
    outlet.hear = count;
    outlet.hear_context = &heard;
    for (int i = 0; i < 3; i++) {
        fill(&data, 100);
        assert_int_equal(outlet_take(&outlet, &data, NULL), 0);
        assert_int_equal(data.length, 0);
    }
    assert_int_equal(heard, 300);
}

static void nowhere(void **state)
{
    CLEANUP(buffer_reset) struct buffer data = {0};
    struct outlet outlet = outlet_make(-1, NULL, 0);
    fill(&data, 100);
    assert_int_equal(outlet_take(&outlet, &data, NULL), 0);
    assert_int_equal(data.length, 0);
}

/* A device that is no terminal takes what it gets: not a page at a time. */
static void a_device_takes_all(void **state)
{
    CLEANUP(fd_closep) int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    CLEANUP(fd_closep) int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(null >= 0 && terminal >= 0);
    assert_true(outlet_make(null, NULL, 0).step > PIPE_BUF);
    assert_int_equal(outlet_make(terminal, NULL, 0).step, PIPE_BUF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_pipe_does_not_block), cmocka_unit_test(a_socket_does_not_block),
        cmocka_unit_test(a_reader_that_left),         cmocka_unit_test(a_full_disk),
        cmocka_unit_test(a_capture_has_a_ceiling),    cmocka_unit_test(a_listener_hears_all_of_it),
        cmocka_unit_test(nowhere),                    cmocka_unit_test(a_device_takes_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

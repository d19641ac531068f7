/* The upgrade's request and answer, byte by byte.
 * Not for: frames. */
#include "unit.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "incus/handshake.h"

#include <string.h>

static void a_request(void **state)
{
    CLEANUP(freep) char *first = handshake_request("/1.0/x?secret=y");
    CLEANUP(freep) char *second = handshake_request("/1.0/x?secret=y");
    assert_memory_equal(first, "GET /1.0/x?secret=y HTTP/1.1\r\n", 30);
    assert_string_equal(first + strlen(first) - 4, "\r\n\r\n");
    const char *key = strstr(first, "Sec-WebSocket-Key: ");
    assert_non_null(key);
    assert_int_equal(strcspn(key + 19, "\r"), 24);
    assert_memory_equal(key + 19 + 22, "==", 2);
    assert_string_not_equal(first, second);
}

static void an_answer_in_pieces(void **state)
{
    const char *answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x81";
    size_t header = strlen(answer) - 1, consumed = 0;
    int status = 0;
    for (size_t length = 0; length < header; length++) {
        assert_int_equal(handshake_read(answer, length, &status, &consumed), HANDSHAKE_PARTIAL);
    }
    assert_int_equal(handshake_read(answer, header + 1, &status, &consumed), HANDSHAKE_COMPLETE);
    assert_int_equal(status, 101);
    assert_int_equal(consumed, header);
}

static void another_status(void **state)
{
    const char *answer = "HTTP/1.1 403 Forbidden\r\n\r\n{}";
    size_t consumed = 0;
    int status = 0;
    assert_int_equal(handshake_read(answer, strlen(answer), &status, &consumed), HANDSHAKE_COMPLETE);
    assert_int_equal(status, 403);
    assert_string_equal(answer + consumed, "{}");
}

static void what_is_no_http(void **state)
{
    static const char *const bad[] = {"SSH-2.0-x\r\n\r\n",
                                      "HTTP/1.0 101 x\r\n\r\n",
                                      "HTTP/1.1 1x1 x\r\n\r\n",
                                      "HTTP/1.1 10\r\n\r\n",
                                      "HTTP/1.1 1010 x\r\n\r\n",
                                      "HTTP/1.1 \r\n\r\n",
                                      "\n"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        size_t consumed;
        int status;
        assert_int_equal(handshake_read(bad[i], strlen(bad[i]), &status, &consumed), HANDSHAKE_BROKEN);
    }
}

static void a_header_without_end(void **state)
{
    enum { SIZE = 20000 };
    char *endless = xmalloc(SIZE);
    memset(endless, 'a', SIZE);
    memcpy(endless, "HTTP/1.1 101 ", 13);
    size_t consumed;
    int status;
    assert_int_equal(handshake_read(endless, 1000, &status, &consumed), HANDSHAKE_PARTIAL);
    assert_int_equal(handshake_read(endless, SIZE, &status, &consumed), HANDSHAKE_BROKEN);
    memcpy(endless + SIZE - 4, "\r\n\r\n", 4);
    assert_int_equal(handshake_read(endless, SIZE, &status, &consumed), HANDSHAKE_BROKEN);
    free(endless);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request),       cmocka_unit_test(an_answer_in_pieces),  cmocka_unit_test(another_status),
        cmocka_unit_test(what_is_no_http), cmocka_unit_test(a_header_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

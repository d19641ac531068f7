/* Heads and bodies of HTTP answers: whole, in every cut, and each way in which they can be broken.
 * Not for: sockets; see test/lab/test_incus_faults.py. */
#include "unit.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "incus/httpmessage.h"

#include <string.h>

static enum httpmessage_progress read_head(const char *text, struct httpmessage_head *head)
{
    return httpmessage_read_head(text, strlen(text), head, NULL);
}

static void a_head(void **state)
{
    const char *text =
        "HTTP/1.1 200 OK\r\ncontent-length:  12 \r\nETag: \"a b\"\r\nX-Incus-type:file\r\nX-Empty:\r\n\r\nbody";
    struct httpmessage_head head;
    assert_int_equal(read_head(text, &head), HTTPMESSAGE_COMPLETE);
    assert_int_equal(head.status, 200);
    assert_int_equal(head.length, 12);
    assert_false(head.chunked);
    assert_false(head.closes);
    assert_string_equal(text + head.size, "body");
    assert_int_equal(head.etag.length, 5);
    assert_memory_equal(head.etag.text, "\"a b\"", 5);
    assert_int_equal(head.kind.length, 4);
    assert_memory_equal(head.kind.text, "file", 4);
}

static void a_bare_head(void **state)
{
    struct httpmessage_head head;
    assert_int_equal(read_head("HTTP/1.1 404\r\n\r\n", &head), HTTPMESSAGE_COMPLETE);
    assert_int_equal(head.status, 404);
    assert_int_equal(head.length, -1);
    assert_null(head.etag.text);
}

static void a_head_in_pieces(void **state)
{
    const char *text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nConnection: keep-alive, Close\r\n\r\n";
    struct httpmessage_head head = {0};
    for (size_t length = 0; length < strlen(text); length++) {
        assert_int_equal(httpmessage_read_head(text, length, &head, NULL), HTTPMESSAGE_PARTIAL);
    }
    assert_int_equal(read_head(text, &head), HTTPMESSAGE_COMPLETE);
    assert_true(head.chunked);
    assert_true(head.closes);
}

static void broken_heads(void **state)
{
    static const char *const bad[] = {
        "SSH-2.0-x\r\n\r\n",
        "\n",
        "http/1.1 200 OK\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\n",
        "HTTP/1.1 20\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 020 OK\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0x10\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1,1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nName : value\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: value\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\x01\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        struct httpmessage_head head;
        const char *why = NULL;
        if (httpmessage_read_head(bad[i], strlen(bad[i]), &head, &why) != HTTPMESSAGE_BROKEN) {
            fail_msg("taken for a head: %s", bad[i]);
        }
        assert_non_null(why);
    }
}

static void heads_without_measure(void **state)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    struct httpmessage_head head;
    buffer_append_text(&text, "HTTP/1.1 200 OK\r\nA: ");
    while (text.length < HTTPMESSAGE_HEAD - 1) {
        buffer_append_text(&text, "a");
    }
    assert_int_equal(httpmessage_read_head(text.data, text.length, &head, NULL), HTTPMESSAGE_PARTIAL);
    buffer_append_text(&text, "a");
    assert_int_equal(httpmessage_read_head(text.data, text.length, &head, NULL), HTTPMESSAGE_BROKEN);
    buffer_append_text(&text, "\r\n\r\n");
    assert_int_equal(httpmessage_read_head(text.data, text.length, &head, NULL), HTTPMESSAGE_BROKEN);

    buffer_reset(&text);
    buffer_append_text(&text, "HTTP/1.1 200 OK\r\n");
    for (int line = 0; line < 200; line++) {
        buffer_append_text(&text, "A: b\r\n");
    }
    buffer_append_text(&text, "\r\n");
    assert_int_equal(httpmessage_read_head(text.data, text.length, &head, NULL), HTTPMESSAGE_BROKEN);
}

/* Feeds `text` in pieces of `step` bytes. Returns whether all was well; `payload` and `ended` are what came of it. */
static bool feed(struct httpmessage_body *body, const char *text, size_t step, struct buffer *payload, size_t *ret_rest)
{
    size_t length = strlen(text), at = 0;
    while (at < length && body->state != HTTPMESSAGE_ENDED) {
        size_t piece = length - at < step ? length - at : step;
        for (size_t done = 0; done < piece && body->state != HTTPMESSAGE_ENDED;) {
            size_t taken, run;
            const char *data, *why = NULL;
            if (!httpmessage_body_read(body, text + at + done, piece - done, &taken, &data, &run, &why)) {
                assert_non_null(why);
                return false;
            }
            assert_true(taken > 0 && taken <= piece - done);
            buffer_append(payload, data, run);
            done += taken;
            *ret_rest = length - at - done;
        }
        at += piece;
    }
    return true;
}

static void bodies(void **state)
{
    static const struct {
        struct httpmessage_head head;
        const char *text, *payload;
        size_t rest;
    } rows[] = {
        {{.status = 200, .length = 3}, "abcHTTP", "abc", 4},
        {{.status = 200, .length = -1, .chunked = true}, "3\r\nabc\r\n0\r\n\r\nX", "abc", 1},
        {{.status = 200, .length = -1, .chunked = true}, "3;a=\"b\"\r\nabc\r\n002\r\nde\r\n0\r\n\r\n", "abcde", 0},
        {{.status = 200, .length = -1, .chunked = true},
         "A\r\n0123456789\r\n000\r\nA: b\r\nC:\r\n\r\n",
         "0123456789",
         0},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        for (size_t step = 1; step <= strlen(rows[i].text); step++) {
            CLEANUP(buffer_reset) struct buffer payload = {0};
            struct httpmessage_body body;
            size_t rest = 0;
            assert_true(httpmessage_body_begin(&rows[i].head, &body));
            assert_true(feed(&body, rows[i].text, step, &payload, &rest));
            assert_int_equal(body.state, HTTPMESSAGE_ENDED);
            assert_string_equal(payload.data, rows[i].payload);
            assert_int_equal(rest, rows[i].rest);
        }
    }
}

static void bodies_that_are_none(void **state)
{
    static const struct httpmessage_head heads[] = {
        {.status = 204, .length = 5},  {.status = 304, .length = -1, .chunked = true},
        {.status = 101, .length = -1}, {.status = 200, .length = 0},
        {.status = 500, .length = 0},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(heads); i++) {
        struct httpmessage_body body;
        assert_true(httpmessage_body_begin(&heads[i], &body));
        assert_int_equal(body.state, HTTPMESSAGE_ENDED);
    }
}

static void a_body_until_the_end_is_for_refusals(void **state)
{
    struct httpmessage_body body;
    CLEANUP(buffer_reset) struct buffer payload = {0};
    size_t rest = 0;
    assert_false(httpmessage_body_begin(&(struct httpmessage_head){.status = 200, .length = -1}, &body));
    assert_true(httpmessage_body_begin(&(struct httpmessage_head){.status = 400, .length = -1}, &body));
    assert_true(feed(&body, "400 Bad Request", 4, &payload, &rest));
    assert_int_equal(body.state, HTTPMESSAGE_UNTIL_CLOSE);
    assert_string_equal(payload.data, "400 Bad Request");
}

static void cut_bodies_do_not_end(void **state)
{
    const char *text = "3\r\nabc\r\n0\r\nA: b\r\n\r\n";
    for (size_t length = 0; length < strlen(text); length++) {
        CLEANUP(buffer_reset) struct buffer payload = {0};
        CLEANUP(freep) char *cut = xstrndup(text, length);
        struct httpmessage_body body;
        size_t rest = 0;
        assert_true(
            httpmessage_body_begin(&(struct httpmessage_head){.status = 200, .length = -1, .chunked = true}, &body));
        assert_true(feed(&body, cut, 7, &payload, &rest));
        assert_int_not_equal(body.state, HTTPMESSAGE_ENDED);
    }
}

static void broken_chunks(void **state)
{
    static const char *const bad[] = {
        "\r\n",
        "x\r\n",
        " 3\r\nabc",
        "-3\r\n",
        "0x3\r\n",
        "3\nabc\r\n",
        "3\rabc\r\n",
        "3\r\nabcd\r\n",
        "3\r\nabc\n0\r\n",
        "3\r\nabc\rX",
        "1111111111111111\r\n",
        ";\r\n",
        "3;\x01\r\n",
        "0\r\nA\n\r\n",
        "0\r\n\rX",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        for (size_t step = 1; step < 20; step += 18) {
            CLEANUP(buffer_reset) struct buffer payload = {0};
            struct httpmessage_body body;
            size_t rest;
            assert_true(httpmessage_body_begin(&(struct httpmessage_head){.status = 200, .length = -1, .chunked = true},
                                               &body));
            if (feed(&body, bad[i], step, &payload, &rest)) {
                fail_msg("taken for chunks: %s", bad[i]);
            }
        }
    }
}

static void chunks_without_measure(void **state)
{
    static const char *const starts[] = {"3;", "0\r\nA: "};
    for (size_t i = 0; i < ARRAY_LENGTH(starts); i++) {
        CLEANUP(buffer_reset) struct buffer text = {0};
        CLEANUP(buffer_reset) struct buffer payload = {0};
        struct httpmessage_body body;
        size_t rest;
        buffer_append_text(&text, starts[i]);
        for (int n = 0; n < 10000; n++) {
            buffer_append_text(&text, "a");
        }
        assert_true(
            httpmessage_body_begin(&(struct httpmessage_head){.status = 200, .length = -1, .chunked = true}, &body));
        assert_false(feed(&body, text.data, 4096, &payload, &rest));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head),
        cmocka_unit_test(a_bare_head),
        cmocka_unit_test(a_head_in_pieces),
        cmocka_unit_test(broken_heads),
        cmocka_unit_test(heads_without_measure),
        cmocka_unit_test(bodies),
        cmocka_unit_test(bodies_that_are_none),
        cmocka_unit_test(a_body_until_the_end_is_for_refusals),
        cmocka_unit_test(cut_bodies_do_not_end),
        cmocka_unit_test(broken_chunks),
        cmocka_unit_test(chunks_without_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

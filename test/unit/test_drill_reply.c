/* What an instrument may say, and what it may not: src/drill/reply.c. */
#include "unit.h"

#include "base/buffer.h"
#include "base/text.h"
#include "drill/reply.h"

#include <string.h>

#define LINE "{\"probe\":\"connect\",\"verdict\":\"refused\",\"errno\":111,\"errno_name\":\"ECONNREFUSED\",\"ms\":0.1,\"evidence\":{\"a\":1}}\n"

static int parse(const char *text, struct reply *ret_reply)
{
    return reply_parse(text, strlen(text), ret_reply, NULL);
}

static void a_line_is_read(void **state)
{
    struct reply reply = {0};

    assert_int_equal(parse(LINE, &reply), 0);
    assert_int_equal(reply.verdict, REPLY_REFUSED);
    assert_int_equal(reply.errnum, 111);
    assert_string_equal(reply.probe, "connect");
    assert_null(reply.why);
    assert_int_equal(json_number(reply.evidence, "a", 0), 1);
    reply_reset(&reply);
}

static void anything_else_is_refused(void **state)
{
    static const char *const bad[] = {
        "", "\n", "{}", "[]", "null", "reachable", (LINE LINE), "{" LINE,
        "{\"probe\":\"x\",\"verdict\":\"holds\",\"errno\":0,\"ms\":1,\"evidence\":{}}",
        "{\"probe\":\"x\",\"verdict\":\"reachable\",\"errno\":\"0\",\"ms\":1,\"evidence\":{}}",
        "{\"probe\":\"x\",\"verdict\":\"reachable\",\"errno\":0,\"ms\":\"1\",\"evidence\":{}}",
        "{\"probe\":\"x\",\"verdict\":\"reachable\",\"errno\":0,\"ms\":1,\"evidence\":[]}",
        "{\"probe\":\"x\",\"verdict\":\"reachable\",\"errno\":0,\"ms\":1}",
        "{\"probe\":3,\"verdict\":\"reachable\",\"errno\":0,\"ms\":1,\"evidence\":{}}",
        "{\"probe\":\"x\",\"verdict\":\"dropped\",\"verdict\":\"reachable\",\"errno\":0,\"ms\":1,\"evidence\":{}}",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct reply reply = {0};
        struct error err = {0};
        assert_int_equal(reply_parse(bad[i], strlen(bad[i]), &reply, &err), -1);
        assert_int_equal(err.code, ERR_PROTOCOL);
        assert_null(reply.evidence);
        error_reset(&err);
    }
}

static void a_flood_is_refused_unread(void **state)
{
    struct buffer flood = {0};
    struct reply reply = {0};

    memset(buffer_reserve(&flood, REPLY_CEILING + 1), ' ', REPLY_CEILING + 1);
    flood.length = REPLY_CEILING + 1;
    assert_int_equal(reply_parse(flood.data, flood.length, &reply, NULL), -1);
    buffer_reset(&flood);
}

static void nothing_raw_comes_through(void **state)
{
    struct reply reply = {0};

    assert_int_equal(parse("{\"probe\":\"a\\u001b[2J\",\"verdict\":\"error\",\"errno\":5,\"ms\":1,\"why\":\"b\\u001b]0;x\\u0007\","
                           "\"evidence\":{\"data\":\"x\\u0000y\",\"list\":[\"\\u0000\"]}}", &reply), 0);
    assert_null(strchr(reply.probe, 27));
    assert_null(strchr(reply.why, 27));
    assert_string_equal(json_text(reply.evidence, "data"), "x.y");
    assert_string_equal(json_string_value(json_array_get(json_object_get(reply.evidence, "list"), 0)), ".");
    reply_reset(&reply);
}

static void an_error_always_has_a_reason(void **state)
{
    struct reply reply = {0};

    assert_int_equal(parse("{\"probe\":\"a\",\"verdict\":\"error\",\"errno\":5,\"ms\":1,\"evidence\":{}}", &reply), 0);
    assert_false(text_is_empty(reply.why));
    reply_reset(&reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_read),
        cmocka_unit_test(anything_else_is_refused),
        cmocka_unit_test(a_flood_is_refused_unread),
        cmocka_unit_test(nothing_raw_comes_through),
        cmocka_unit_test(an_error_always_has_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Mirrors probe/jsonline.c and probe/outcome.c. */
#include "jsonline.h"
#include "outcome.h"
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void everything_hostile_is_escaped(void **state)
{
    struct jsonline line CLEANUP_JSONLINE = {0};

    (void)state;
    jsonline_open_object(&line, NULL);
    jsonline_bytes(&line, "a", "\x1b[2J\"\\\n\r\t\0\x7f\xff", 12, 100);
    jsonline_text(&line, "b", NULL);
    jsonline_close_object(&line);
    assert_string_equal(line.data, "{\"a\":\"\\u001b[2J\\\"\\\\\\n\\r\\t\\u0000\\u007f\\u00ff\",\"b\":null}");
    for (size_t i = 0; i < line.size; i++) {
        assert_true(line.data[i] >= 0x20 && line.data[i] < 0x7f);
    }
}

static void commas_stand_between_and_nowhere_else(void **state)
{
    struct jsonline line CLEANUP_JSONLINE = {0};

    (void)state;
    jsonline_open_object(&line, NULL);
    jsonline_open_array(&line, "list");
    jsonline_number(&line, NULL, -1);
    jsonline_bool(&line, NULL, true);
    jsonline_open_object(&line, NULL);
    jsonline_close_object(&line);
    jsonline_close_array(&line);
    jsonline_milliseconds(&line, "ms", 1042);
    jsonline_hex(&line, "hex", "\x00\xab\x01", 3, 2);
    jsonline_close_object(&line);
    assert_string_equal(line.data, "{\"list\":[-1,true,{}],\"ms\":1.042,\"hex\":\"00ab\"}");
}

static void collected_parts_are_put_in_whole(void **state)
{
    struct jsonline line CLEANUP_JSONLINE = {0};
    struct jsonline members CLEANUP_JSONLINE = {0};
    struct jsonline empty CLEANUP_JSONLINE = {0};

    (void)state;
    jsonline_number(&members, "n", 1);
    jsonline_open_object(&line, NULL);
    jsonline_object_of(&line, "evidence", &members);
    jsonline_array_of(&line, "events", &empty);
    jsonline_close_object(&line);
    assert_string_equal(line.data, "{\"evidence\":{\"n\":1},\"events\":[]}");
}

static void bytes_are_cut_at_their_limit(void **state)
{
    struct jsonline line CLEANUP_JSONLINE = {0};

    (void)state;
    jsonline_bytes(&line, "a", "abcdef", 6, 3);
    assert_string_equal(line.data, "\"a\":\"abc\"");
}

static void too_much_evidence_still_gives_one_line(void **state)
{
    struct outcome outcome CLEANUP_OUTCOME = {0};
    struct jsonline line CLEANUP_JSONLINE = {0};
    char *much = malloc(JSONLINE_CEILING);

    (void)state;
    assert_non_null(much);
    memset(much, 'x', JSONLINE_CEILING);
    jsonline_bytes(&outcome.evidence, "a", much, JSONLINE_CEILING, JSONLINE_CEILING);
    free(much);
    outcome_say(&outcome, VERDICT_REACHABLE, 0);
    outcome_write(&outcome, "udp", 5000, &line);
    assert_false(line.overflow);
    assert_non_null(strstr(line.data, "\"verdict\":\"error\""));
    assert_non_null(strstr(line.data, "EOVERFLOW"));
}

static void an_outcome_is_one_object(void **state)
{
    struct outcome outcome CLEANUP_OUTCOME = {0};
    struct jsonline line CLEANUP_JSONLINE = {0};
    char text[OUTCOME_ERRNO_TEXT];

    (void)state;
    jsonline_text(&outcome.evidence, "token", "t");
    outcome_say(&outcome, VERDICT_REFUSED, ECONNREFUSED);
    outcome_write(&outcome, "connect", 1500, &line);
    assert_string_equal(line.data, "{\"probe\":\"connect\",\"verdict\":\"refused\",\"errno\":111,\"errno_name\":"
                                   "\"ECONNREFUSED\",\"ms\":1.500,\"evidence\":{\"token\":\"t\"}}");
    assert_int_equal(outcome_fail(&outcome, ENODEV, "no %s", "wire"), -1);
    assert_int_equal(outcome.verdict, VERDICT_ERROR);
    assert_string_equal(outcome.why, "no wire");
    assert_string_equal(outcome_errno_name(0, text), "");
    assert_string_equal(outcome_errno_name(9999, text), "E9999");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_hostile_is_escaped),
        cmocka_unit_test(commas_stand_between_and_nowhere_else),
        cmocka_unit_test(collected_parts_are_put_in_whole),
        cmocka_unit_test(bytes_are_cut_at_their_limit),
        cmocka_unit_test(too_much_evidence_still_gives_one_line),
        cmocka_unit_test(an_outcome_is_one_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

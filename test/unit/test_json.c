/* Mirrors src/base/json.c. */
#include "base/json.h"
#include "base/memory.h"
#include "unit.h"

#include <string.h>

static json_t *parse(const char *text)
{
    json_t *value = NULL;
    assert_int_equal(json_parse(text, strlen(text), "the test", &value, NULL), 0);
    return value;
}

static void readers_answer_with_a_fallback(void **state)
{
    CLEANUP(json_freep) json_t *value = parse("{\"n\":7,\"t\":\"x\",\"b\":true,\"a.b\":{\"c\":\"deep\"}}");
    assert_string_equal(json_text(value, "t"), "x");
    assert_null(json_text(value, "n"));
    assert_null(json_text(NULL, "t"));
    assert_int_equal(json_number(value, "n", -1), 7);
    assert_int_equal(json_number(value, "t", -1), -1);
    assert_true(json_truth(value, "b"));
    assert_false(json_truth(value, "n"));
    assert_string_equal(json_string_value(json_path(value, "a.b", "c", NULL)), "deep");
    assert_null(json_path(value, "a.b", "absent", "c", NULL));
    assert_null(json_path(value, "t", "c", NULL));
}

static void bad_text_is_a_protocol_error(void **state)
{
    static const char *const bad[] = {"", "{", "{\"a\":1,\"a\":2}", "[1,]", "{\"a\":\"\xff\"}", "\"a\\u0000b\""};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        CLEANUP(error_reset) struct error err = {0};
        json_t *value = NULL;
        assert_int_equal(json_parse(bad[i], strlen(bad[i]), "the answer", &value, &err), -1);
        assert_int_equal(err.code, ERR_PROTOCOL);
        assert_null(value);
    }
}

static void writes_compactly(void **state)
{
    CLEANUP(json_freep) json_t *value = parse("{\"a\": [1, 2]}");
    CLEANUP(freep) char *text = json_write(value, JSON_COMPACT);
    assert_string_equal(text, "{\"a\":[1,2]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_answer_with_a_fallback),
        cmocka_unit_test(bad_text_is_a_protocol_error),
        cmocka_unit_test(writes_compactly),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}

/* Mirrors src/box/templatejudge.c: what a guest may answer. */
#include "box/templatejudge.h"
#include "unit.h"

#include <string.h>

static int read_answer(const char *text, struct templatejudge_answer *answer, struct error *err)
{
    return templatejudge_read(text, strlen(text), answer, err);
}

static void reads_what_the_image_says(void **state)
{
    CLEANUP(templatejudge_reset) struct templatejudge_answer answer = {0};

    assert_int_equal(read_answer("{\"cloud_config\": true, \"schema\": \"a\\nb\\u001b[2J\", \"users\": [\"dev\", 3, \"ops\"],"
                                 " \"syntax\": null}",
                                 &answer, NULL),
                     0);
    assert_true(answer.cloud_config);
    assert_null(strchr(answer.schema, '\n'));
    assert_null(strchr(answer.schema, '\x1b'));
    assert_string_equal(answer.users, "dev ops");
    assert_null(answer.syntax);
    assert_null(answer.missing);
}

static void reads_that_an_interpreter_is_missing(void **state)
{
    CLEANUP(templatejudge_reset) struct templatejudge_answer answer = {0};

    assert_int_equal(read_answer("{\"schema\": \"\", \"missing\": \"no /bin/x\\u001b[2J\\nhere\", \"made\": true}", &answer, NULL), 0);
    assert_string_equal(answer.missing, "no /bin/x here");
    assert_true(answer.made);
}

static void what_cannot_be_read_is_told_apart(void **state)
{
    CLEANUP(templatejudge_reset) struct templatejudge_answer answer = {0};

    assert_int_equal(read_answer("{\"cloud_config\": false, \"schema\": \"\", \"users\": null, \"syntax\": \"\"}", &answer, NULL), 0);
    assert_false(answer.cloud_config);
    assert_string_equal(answer.schema, "");
    assert_null(answer.users);
    assert_string_equal(answer.syntax, "");
}

static void anything_else_is_no_answer(void **state)
{
    static const char *const rows[] = {"", "{", "[]", "{}", "{\"schema\": 3}", "null"};

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        CLEANUP(error_reset) struct error err = {0};
        struct templatejudge_answer answer = {0};

        assert_int_equal(read_answer(rows[i], &answer, &err), -1);
        assert_int_equal(err.code, ERR_PROTOCOL);
        assert_null(answer.schema);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_the_image_says),
        cmocka_unit_test(reads_that_an_interpreter_is_missing),
        cmocka_unit_test(what_cannot_be_read_is_told_apart),
        cmocka_unit_test(anything_else_is_no_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

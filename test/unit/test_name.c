/* Mirrors src/box/name.c. */
#include "base/memory.h"
#include "box/name.h"
#include "unit.h"

#include <string.h>

static void takes_what_incus_takes(void **state)
{
    const char *const good[] = {"a", "A", "a1", "1a", "work-1", "a--b", "Z9", "1-2"};
    char longest[64];

    for (size_t i = 0; i < ARRAY_LENGTH(good); i++) {
        assert_true(name_is_valid(good[i]));
        assert_int_equal(name_check(good[i], NULL), 0);
    }
    memset(longest, 'x', 63);
    longest[63] = '\0';
    assert_true(name_is_valid(longest));
}

static void refuses_the_rest_and_names_the_rule(void **state)
{
    const char *const bad[] = {"",   "-a",   "a-",  "-",        "1",       "0123", "a.b", "a_b", "a b", "a/b",
                               "..", "../a", "a\n", "\xc3\xa4", "a\x1b[m", "a;b",  "a*",  "$a",  "a?b", "a%2fb"};
    char long_one[65];

    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        CLEANUP(error_reset) struct error err = {0};
        assert_false(name_is_valid(bad[i]));
        assert_int_equal(name_check(bad[i], &err), -1);
        assert_int_equal(err.code, ERR_USAGE);
        assert_non_null(strstr(err.message, "1 to 63 of A-Z a-z 0-9 and -"));
        assert_null(strchr(err.message, '\x1b'));
    }
    memset(long_one, 'x', 64);
    long_one[64] = '\0';
    assert_false(name_is_valid(long_one));
}

static void shows_what_was_typed(void **state)
{
    CLEANUP(error_reset) struct error err = {0};

    assert_int_equal(name_check("a\x1b[m\n", &err), -1);
    assert_non_null(strstr(err.message, "'a\\x1b[m\\x0a' cannot be"));
}

static void keeps_its_own_names_for_itself(void **state)
{
    const char *const reserved[] = {"box-seed-x", "box-seed-1-1", "box-import-x"};
    const char *const free_ones[] = {"box-seed", "box-seeds", "my-box-seed-x", "box-imports"};

    for (size_t i = 0; i < ARRAY_LENGTH(reserved); i++) {
        CLEANUP(error_reset) struct error err = {0};
        assert_int_equal(name_check(reserved[i], NULL), 0);
        assert_int_equal(name_check_new(reserved[i], &err), -1);
        assert_int_equal(err.code, ERR_USAGE);
        assert_non_null(strstr(err.message, "reserved"));
    }
    for (size_t i = 0; i < ARRAY_LENGTH(free_ones); i++) {
        assert_int_equal(name_check_new(free_ones[i], NULL), 0);
    }
    assert_int_equal(name_check_new("a.b", NULL), -1);
}

static void judges_names_of_templates(void **state)
{
    const char *const good[] = {"blank", "debian-13.1_x", "1", "A"};
    const char *const bad[] = {"", ".", "..", "../x", "a/b", "-a", "_a", ".a", "a b", "a\n"};

    for (size_t i = 0; i < ARRAY_LENGTH(good); i++) {
        assert_int_equal(name_check_template(good[i], NULL), 0);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        CLEANUP(error_reset) struct error err = {0};
        assert_int_equal(name_check_template(bad[i], &err), -1);
        assert_int_equal(err.code, ERR_USAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_incus_takes),
        cmocka_unit_test(refuses_the_rest_and_names_the_rule),
        cmocka_unit_test(shows_what_was_typed),
        cmocka_unit_test(keeps_its_own_names_for_itself),
        cmocka_unit_test(judges_names_of_templates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

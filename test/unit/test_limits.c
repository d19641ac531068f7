/* Mirrors src/box/limits.c. */
#include "base/memory.h"
#include "box/limits.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

static int clear_environment(void **state)
{
    return unsetenv("BOX_CPU") | unsetenv("BOX_MEMORY") | unsetenv("BOX_DISK");
}

static void parses_sizes_as_incus_writes_them(void **state)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } rows[] = {{"1B", 1},
                {"2kB", 2000},
                {"3MB", 3000000},
                {"4GB", 4000000000},
                {"5TB", 5000000000000},
                {"1KiB", 1024},
                {"512MiB", 536870912},
                {"4GiB", 4294967296},
                {"8388607TiB", 9223370937343148032}};

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        int64_t bytes = 0;
        assert_true(limits_parse_size(rows[i].text, &bytes));
        assert_int_equal(bytes, rows[i].bytes);
    }
}

static void refuses_what_is_no_size(void **state)
{
    const char *const bad[] = {"",
                               "4",
                               "GiB",
                               "4G",
                               "4gib",
                               "4 GiB",
                               "-4GiB",
                               "+4GiB",
                               "4.5GiB",
                               "04GiB",
                               "0GiB",
                               "4GiB ",
                               "4GiBx",
                               "4GIB",
                               "4GiB\r",
                               "50%",
                               "0x4GiB",
                               "8388608TiB",
                               "9223372036854775808B",
                               "99999999999999999999999B"};

    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        int64_t bytes = 7;
        assert_false(limits_parse_size(bad[i], &bytes));
        assert_int_equal(bytes, 7);
    }
}

static void checks_in_the_words_of_the_caller(void **state)
{
    CLEANUP(error_reset) struct error err = {0};

    assert_int_equal(limits_check_cpu("--cpu", "2", &err), 0);
    assert_int_equal(limits_check_cpu("--cpu", "0", &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_memory_equal(err.message, "--cpu:", 6);
    assert_int_equal(limits_check_cpu("--cpu", "0-3", NULL), -1);
    assert_int_equal(limits_check_cpu("--cpu", "1025", NULL), -1);
    assert_int_equal(limits_check_memory("--memory", "64MiB", NULL), 0);
    assert_int_equal(limits_check_memory("--memory", "63MiB", &err), -1);
    assert_non_null(strstr(err.message, "too small"));
    assert_int_equal(limits_check_memory("--memory", "4", &err), -1);
    assert_non_null(strstr(err.message, "4GiB"));
    assert_int_equal(limits_check_disk("--disk", "1GiB", NULL), 0);
    assert_int_equal(limits_check_disk("--disk", "512MiB", NULL), -1);
}

static void takes_the_flag_before_the_environment_before_the_file(void **state)
{
    const struct limits file = {.cpu = (char *)"1", .memory = (char *)"1GiB"};
    const struct limits flags = {.cpu = (char *)"4"};
    CLEANUP(limits_reset) struct limits chosen = {0};

    assert_int_equal(setenv("BOX_CPU", "3", 1) | setenv("BOX_MEMORY", "", 1) | setenv("BOX_DISK", "30GiB", 1), 0);
    assert_int_equal(limits_choose(&flags, &file, &chosen, NULL), 0);
    assert_string_equal(chosen.cpu, "4");
    assert_string_equal(chosen.memory, "1GiB"); /* an empty variable is none */
    assert_string_equal(chosen.disk, "30GiB");
}

static void leaves_open_what_nobody_says(void **state)
{
    const struct limits none = {0};
    CLEANUP(limits_reset) struct limits chosen = {0};

    assert_int_equal(limits_choose(&none, &none, &chosen, NULL), 0);
    assert_null(chosen.cpu);
    assert_null(chosen.memory);
    assert_null(chosen.disk);
}

static void names_the_place_of_a_bad_value(void **state)
{
    const struct limits none = {0};
    const struct limits flags = {.disk = (char *)"much"};
    struct limits chosen = {0};
    CLEANUP(error_reset) struct error err = {0};

    assert_int_equal(limits_choose(&flags, &none, &chosen, &err), -1);
    assert_memory_equal(err.message, "--disk:", 7);
    assert_int_equal(setenv("BOX_MEMORY", "2\x1bGiB", 1), 0);
    assert_int_equal(limits_choose(&none, &none, &chosen, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_memory_equal(err.message, "BOX_MEMORY:", 11);
    assert_null(strchr(err.message, '\x1b'));
    assert_null(chosen.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_sizes_as_incus_writes_them),
        cmocka_unit_test(refuses_what_is_no_size),
        cmocka_unit_test(checks_in_the_words_of_the_caller),
        cmocka_unit_test_setup_teardown(takes_the_flag_before_the_environment_before_the_file, clear_environment,
                                        clear_environment),
        cmocka_unit_test_setup_teardown(leaves_open_what_nobody_says, clear_environment, clear_environment),
        cmocka_unit_test_setup_teardown(names_the_place_of_a_bad_value, clear_environment, clear_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

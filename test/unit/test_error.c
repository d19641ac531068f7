/* Mirrors src/base/error.c. */
#include "base/error.h"
#include "unit.h"

#include <errno.h>

static void wraps_outwards_and_keeps_the_remedy(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    assert_int_equal(error_set(&err, ERR_NOT_FOUND, "no box %s", "work"), -1);
    assert_int_equal(error_remedy(&err, "box list"), -1);
    assert_int_equal(error_wrap(&err, "starting"), -1);
    assert_string_equal(err.message, "starting: no box work");
    assert_string_equal(err.remedy, "box list");
    assert_int_equal(error_exit_status(&err), 1);
}

static void a_new_error_forgets_the_old_one(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    error_set(&err, ERR_NOT_FOUND, "first");
    error_remedy(&err, "a remedy");
    error_set(&err, ERR_USAGE, "second");
    assert_null(err.remedy);
    assert_int_equal(error_exit_status(&err), 2);
}

static void errno_tells_denied_from_the_rest(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    error_set_errno(&err, EACCES, "opening");
    assert_int_equal(err.code, ERR_DENIED);
    assert_int_equal(err.errnum, EACCES);
    error_set_errno(&err, EIO, "opening");
    assert_int_equal(err.code, ERR_SYSTEM);
}

static void nobody_listening_is_fine(void **state)
{
    assert_int_equal(error_set(NULL, ERR_USAGE, "x"), -1);
    assert_int_equal(error_wrap(NULL, "x"), -1);
    assert_int_equal(error_remedy(NULL, "x"), -1);
    struct error from = {0};
    error_set(&from, ERR_USAGE, "x");
    assert_int_equal(error_move(NULL, &from), -1);
    assert_null(from.message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wraps_outwards_and_keeps_the_remedy),
        cmocka_unit_test(a_new_error_forgets_the_old_one),
        cmocka_unit_test(errno_tells_denied_from_the_rest),
        cmocka_unit_test(nobody_listening_is_fine),
    };
    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}

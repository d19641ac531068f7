/* Mirrors src/base/argv.c. */
#include "base/argv.h"
#include "base/memory.h"
#include "unit.h"

static void is_always_null_terminated(void **state)
{
    CLEANUP(argv_reset) struct argv list = {0};
    const char *const more[] = {"b", "c", NULL};
    argv_push_format(&list, "%s%d", "a", 1);
    argv_push_all(&list, more);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.items[0], "a1");
    assert_string_equal(list.items[2], "c");
    assert_null(list.items[3]);
}

static void finds_exact_members_only(void **state)
{
    CLEANUP(argv_reset) struct argv list = {0};
    assert_false(argv_contains(&list, ""));
    argv_push(&list, "alpha");
    assert_true(argv_contains(&list, "alpha"));
    assert_false(argv_contains(&list, "alph"));
}

static void joins(void **state)
{
    CLEANUP(argv_reset) struct argv list = {0};
    CLEANUP(freep) char *none = argv_join(&list, ", ");
    assert_string_equal(none, "");
    argv_push(&list, "x");
    argv_push(&list, "y");
    CLEANUP(freep) char *both = argv_join(&list, ", ");
    assert_string_equal(both, "x, y");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_always_null_terminated),
        cmocka_unit_test(finds_exact_members_only),
        cmocka_unit_test(joins),
    };
    return cmocka_run_group_tests_name("argv", tests, NULL, NULL);
}

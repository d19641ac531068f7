/* Mirrors src/base/tally.c. */
#include "base/memory.h"
#include "base/tally.h"
#include "unit.h"

#include <string.h>

static void the_first_are_named_the_rest_is_counted(void **state)
{
    struct tally tally = {0};
    CLEANUP(freep) char *none = tally_names(&tally);
    assert_string_equal(none, "");
    tally_add(&tally, "one");
    CLEANUP(freep) char *one = tally_names(&tally);
    assert_string_equal(one, "one");
    tally_add(&tally, "two");
    tally_add(&tally, "three");
    CLEANUP(freep) char *three = tally_names(&tally);
    assert_string_equal(three, "one, two, three");
    tally_add(&tally, "four");
    tally_add(&tally, "five");
    CLEANUP(freep) char *five = tally_names(&tally);
    assert_string_equal(five, "one, two, three and 2 more");
    assert_int_equal(tally.count, 5);
    tally_add(NULL, "nowhere");
}

static void names_are_bounded_and_safe_to_print(void **state)
{
    struct tally tally = {0};
    char longest[1000];
    memset(longest, 'n', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    tally_add(&tally, "a\033]0;owned\007b\nc");
    tally_add(&tally, longest);
    CLEANUP(freep) char *text = tally_names(&tally);
    assert_null(strpbrk(text, "\033\007\n"));
    assert_int_equal(strlen(tally.names[1]), sizeof(tally.names[1]) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_are_named_the_rest_is_counted),
        cmocka_unit_test(names_are_bounded_and_safe_to_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Mirrors src/cli/lastwords.c. */
#include "base/memory.h"
#include "cli/lastwords.h"
#include "unit.h"

#include <string.h>

static void expect(const char *said, const char *told)
{
    CLEANUP(freep) char *words = lastwords_of(said, strlen(said));
    assert_string_equal(words, told);
}

static void the_cause_is_told(void **state)
{
    expect("", "");
    expect("\n \n", "");
    expect("there is no x\n", "there is no x");
    expect("first\nlast\n\n", "last");
    expect("tar: ./shadow: Cannot open: Permission denied\ntar: Exiting with failure status due to previous errors\n",
           "tar: ./shadow: Cannot open: Permission denied");
    expect("tar: a: no\ntar: b: no\ntar: c: no\ntar: Exiting with failure status due to previous errors\n",
           "tar: c: no (and 2 more like it)");
    expect("tar: Exiting with failure status due to previous errors",
           "tar: Exiting with failure status due to previous errors");
    CLEANUP(freep) char *nothing = lastwords_of(NULL, 0);
    assert_string_equal(nothing, "");
}

static void what_a_guest_wrote_is_sanitised(void **state)
{
    static const char said[] = "tar: \033]0;owned\007bad\ntar: Exiting with failure status due to previous errors\n";
    CLEANUP(freep) char *words = lastwords_of(said, strlen(said));
    assert_non_null(strstr(words, "bad"));
    assert_null(strpbrk(words, "\033\007\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cause_is_told),
        cmocka_unit_test(what_a_guest_wrote_is_sanitised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

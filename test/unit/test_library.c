/* Mirrors src/base/library.c. */
#include "base/library.h"
#include "unit.h"

#include <string.h>

struct maths {
    double (*cosine)(double);
};

static void finds_a_function(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    static const struct library_symbol symbols[] = {LIBRARY_SYMBOL(struct maths, cosine, "cos")};
    struct maths maths = {0};
    assert_int_equal(library_load("libm.so.6", "libc6", symbols, 1, &maths, &err), 0);
    assert_true(maths.cosine(0.0) == 1.0);
}

static void names_the_package_of_what_is_absent(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    static const struct library_symbol symbols[] = {LIBRARY_SYMBOL(struct maths, cosine, "no_such_function")};
    struct maths maths = {0};
    assert_int_equal(library_load("libnosuch.so.9", "libnosuch9", symbols, 1, &maths, &err), -1);
    assert_string_equal(err.remedy, "apt-get install libnosuch9");
    assert_int_equal(library_load("libm.so.6", "libc6", symbols, 1, &maths, &err), -1);
    assert_non_null(strstr(err.message, "no_such_function"));
    assert_null(maths.cosine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_a_function),
        cmocka_unit_test(names_the_package_of_what_is_absent),
    };
    return cmocka_run_group_tests_name("library", tests, NULL, NULL);
}

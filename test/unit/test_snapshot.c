/* Mirrors src/box/snapshot.c: the rule for labels. */
#include "box/snapshot.h"
#include "unit.h"

#include <string.h>

static void takes_what_the_rule_says(void **state)
{
    static const char *const labels[] = {"a", "0", "pristine", "20261130-223408", "v1.2_3-4", "A..", "x--"};

    for (size_t i = 0; i < ARRAY_LENGTH(labels); i++) {
        assert_int_equal(snapshot_check_label(labels[i], NULL), 0);
    }
}

static void refuses_the_rest(void **state)
{
    static const char *const labels[] = {"",     ".",   "..",   "-a",       "_a",   "a/b",
                                         "../a", "a b", "a\nb", "\xc3\xa4", "a%2e", "a?b"};
    char label[65];

    for (size_t i = 0; i < ARRAY_LENGTH(labels); i++) {
        CLEANUP(error_reset) struct error err = {0};

        assert_int_equal(snapshot_check_label(labels[i], &err), -1);
        assert_int_equal(err.code, ERR_USAGE);
        assert_non_null(strstr(err.message, "1 to 63"));
    }
    memset(label, 'a', sizeof(label));
    label[63] = '\0';
    assert_int_equal(snapshot_check_label(label, NULL), 0);
    label[63] = 'a';
    label[64] = '\0';
    assert_int_equal(snapshot_check_label(label, NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_the_rule_says),
        cmocka_unit_test(refuses_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

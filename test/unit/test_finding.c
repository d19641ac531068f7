/* Mirrors src/doctor/finding.c. */
#include "doctor/finding.h"

#include "base/cleanup.h"
#include "unit.h"

static void nothing_found_is_healthy(void **state)
{
    struct findings findings = {0};
    (void)state;
    assert_true(finding_healthy(&findings));
    finding_reset(&findings);
}

static void only_broken_and_missing_are_problems(void **state)
{
    CLEANUP(finding_reset) struct findings findings = {0};
    (void)state;
    finding_add(&findings, FINDING_OK, "daemon", NULL, "answers");
    finding_add(&findings, FINDING_UNSEEN, "tables", "sudo box doctor", "only root can read %s", "them");
    assert_true(finding_healthy(&findings));
    assert_int_equal(finding_count(&findings, FINDING_UNSEEN), 1);
    assert_string_equal(findings.items[1].text, "only root can read them");
    assert_string_equal(findings.items[1].fix, "sudo box doctor");
    assert_null(findings.items[0].fix);
    finding_add(&findings, FINDING_NOT_SET_UP, "network", NULL, "missing");
    assert_false(finding_healthy(&findings));
    finding_add(&findings, FINDING_BROKEN, "network", NULL, "open");
    assert_false(finding_healthy(&findings));
    assert_int_equal(finding_count(&findings, FINDING_BROKEN), 1);
}

static void each_kind_has_its_word(void **state)
{
    (void)state;
    assert_string_equal(finding_word(FINDING_OK), "ok");
    assert_string_equal(finding_word(FINDING_BROKEN), "broken");
    assert_string_equal(finding_word(FINDING_NOT_SET_UP), "not set up");
    assert_string_equal(finding_word(FINDING_UNSEEN), "not seen");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_found_is_healthy),
        cmocka_unit_test(only_broken_and_missing_are_problems),
        cmocka_unit_test(each_kind_has_its_word),
    };
    return cmocka_run_group_tests_name("finding", tests, NULL, NULL);
}

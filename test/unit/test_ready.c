/* Mirrors src/box/ready.c: the report of a guest, and what is made of it. */
#include "base/argv.h"
#include "base/memory.h"
#include "box/ready.h"
#include "unit.h"

#include <string.h>

#define DONE   "{\"v1\":{\"datasource\":\"DataSourceNoCloud\",\"errors\":[]}}"
#define USER   "\n@@box user\ndev:x:1000:1001:Dev:/home/dev:/bin/bash\n"
#define LANDS  "\n@@box lands\ndev\n"
#define NAMES  "\n@@box resolves\n93.184.215.14\nexit 0\n"
#define THE_END "\n@@box end\n"

static struct ready_report parse(const char *text)
{
    struct ready_report report = {0};

    ready_parse(text, strlen(text), &report);
    return report;
}

static void takes_sections_apart(void **state)
{
    CLEANUP(ready_reset) struct ready_report report =
        parse("noise\n\n@@box result\n {}\n\n@@box status\n\n@@box log\n one\n two\n\n@@box memory\nmax\n\n@@box end\n");

    assert_true(report.complete);
    assert_string_equal(report.result, " {}");
    assert_string_equal(report.status, "");
    assert_string_equal(report.log, " one\n two");
    assert_string_equal(report.memory, "max");
    assert_string_equal(report.user, "");
}

static void survives_whatever_comes(void **state)
{
    static const struct {
        const char *data;
        size_t length;
    } cases[] = {{"", 0}, {"\n@@box ", 7}, {"\n@@box user", 11}, {"\n@@box user\n", 12}, {"\0\n@@box end\n\0", 13}};

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(ready_reset) struct ready_report report = {0};

        ready_parse(cases[i].data, cases[i].length, &report);
        assert_string_equal(report.user, "");
        assert_int_equal(report.complete, i == 4);
    }
}

/* The verdict on cloud-init over a result and a status; the reason is the caller's. */
static bool applied(const char *result, const char *status, const char *ignored, struct argv *warnings,
                    char **ret_reason)
{
    CLEANUP(freep) char *text = xasprintf("\n@@box result\n%s\n\n@@box status\n%s\n\n@@box ignored\n%s\n" THE_END, result,
                                          status, ignored);
    CLEANUP(ready_reset) struct ready_report report = parse(text);

    return ready_cloud_applied(&report, warnings, ret_reason);
}

static void assert_refused(const char *result, const char *status, const char *ignored, const char *words)
{
    CLEANUP(argv_reset) struct argv warnings = {0};
    CLEANUP(freep) char *reason = NULL;

    assert_false(applied(result, status, ignored, &warnings, &reason));
    assert_non_null(reason);
    if (!strstr(reason, words)) {
        fail_msg("'%s' does not say '%s'", reason, words);
    }
    assert_null(strpbrk(reason, "\n\x1b"));
}

static void done_is_applied(void **state)
{
    CLEANUP(argv_reset) struct argv warnings = {0};
    CLEANUP(freep) char *reason = NULL;

    assert_true(applied(DONE, "{\"v1\":{\"init\":{\"errors\":[],\"recoverable_errors\":{}}}}", "", &warnings, &reason));
    assert_null(reason);
    assert_int_equal(warnings.count, 0);
}

static void no_result_is_not_applied(void **state)
{
    assert_refused("", "", "", "cloud-init did not run");
    assert_refused("not json", "", "", "cloud-init did not run");
    CLEANUP(ready_reset) struct ready_report cut = parse("\n@@box result\n");
    CLEANUP(argv_reset) struct argv warnings = {0};
    CLEANUP(freep) char *reason = NULL;

    assert_false(ready_cloud_applied(&cut, &warnings, &reason));
    assert_non_null(strstr(reason, "went down"));
}

static void an_error_is_not_applied(void **state)
{
    assert_refused("{\"v1\":{\"errors\":[\"('scripts-user', RuntimeError('x'))\"]}}", "{}", "", "scripts-user");
    assert_refused("{\"v1\":{\"errors\":[\"a\\u001b[31m\\nb\"]}}", "{}", "", "cloud-init failed");
}

static void done_with_the_user_data_dropped_is_not_applied(void **state)
{
    static const char *const warnings[] = {
        "Failed loading yaml blob. Invalid format at line 4",
        "Unhandled non-multipart (text/x-not-multipart) userdata: 'b'users:'...'",
        "Failed at merging in cloud config part from part-001: empty cloud config",
        "Unexpected failure parsing userdata: could not determine a constructor",
    };

    for (size_t i = 0; i < ARRAY_LENGTH(warnings); i++) {
        CLEANUP(freep) char *status =
            xasprintf("{\"v1\":{\"init\":{\"recoverable_errors\":{\"WARNING\":[\"harmless\",\"%s\"]}}}}", warnings[i]);

        assert_refused(DONE, status, "", "dropped the user-data");
    }
    assert_refused(DONE, "{}", "# Cloud-config part ignored SCHEMA_ERROR: part-001", "dropped the user-data");
}

static void harmless_warnings_are_told_once(void **state)
{
    CLEANUP(argv_reset) struct argv warnings = {0};
    CLEANUP(freep) char *reason = NULL;
    const char *status = "{\"v1\":{\"init\":{\"recoverable_errors\":{\"WARNING\":[\"schema\"],\"DEPRECATED\":[\"old\"]}},"
                         "\"modules-config\":{\"recoverable_errors\":{\"WARNING\":[\"schema\",\"b\\nc\"]}},\"stage\":null}}";

    assert_true(applied(DONE, status, "", &warnings, &reason));
    assert_int_equal(warnings.count, 2);
    assert_string_equal(warnings.items[0], "schema");
    assert_string_equal(warnings.items[1], "b c");
}

static void a_host_that_runs_out_is_told(void **state)
{
    CLEANUP(argv_reset) struct argv warnings = {0};
    CLEANUP(freep) char *reason = NULL;
    CLEANUP(ready_reset) struct ready_report report =
        parse("\n@@box result\n" DONE "\n\n@@box starved\nToo many open files\n" THE_END);

    assert_true(ready_cloud_applied(&report, &warnings, &reason));
    assert_int_equal(warnings.count, 1);
    assert_non_null(strstr(warnings.items[0], "fs.inotify.max_user_instances"));
}

static void a_user_that_lands_and_resolves_is_usable(void **state)
{
    CLEANUP(ready_reset) struct ready_report report = parse(USER LANDS NAMES THE_END);
    struct ready_user user = {0};
    CLEANUP(freep) char *reason = NULL;

    assert_true(ready_usable(&report, "dev", &user, &reason));
    assert_int_equal(user.uid, 1000);
    assert_int_equal(user.gid, 1001);
    assert_string_equal(user.home, "/home/dev");
    free(user.home);
}

static void assert_unusable(const char *text, const char *words)
{
    CLEANUP(ready_reset) struct ready_report report = parse(text);
    struct ready_user user = {0};
    CLEANUP(freep) char *reason = NULL;

    assert_false(ready_usable(&report, "dev", &user, &reason));
    assert_null(user.home);
    if (!strstr(reason, words)) {
        fail_msg("'%s' does not say '%s'", reason, words);
    }
}

static void what_is_not_usable_says_why(void **state)
{
    assert_unusable(LANDS NAMES THE_END, "no user dev");
    assert_unusable("\n@@box user\ndev:x:1:1\n" LANDS NAMES THE_END, "no user dev");
    assert_unusable("\n@@box user\nother:x:1000:1000::/home/o:/bin/sh\n" LANDS NAMES THE_END, "no user dev");
    assert_unusable("\n@@box user\ndev:x:-1:1000::/home/dev:/bin/sh\n" LANDS NAMES THE_END, "no user dev");
    assert_unusable("\n@@box user\ndev:x:1000:1000::home:/bin/sh\n" LANDS NAMES THE_END, "no user dev");
    assert_unusable(USER "\n@@box lands\nThis account is not available\n" NAMES THE_END, "not available");
    assert_unusable(USER LANDS "\n@@box resolves\nall attempts to contact name servers failed\nexit 1\n" THE_END,
                    "does not resolve names");
    assert_unusable(USER LANDS THE_END, "does not resolve names");
    assert_unusable(USER LANDS "\n@@box starved\nCould not create manager: Too many open files\n" THE_END,
                    "fs.inotify.max_user_instances");
}

static void that_a_name_does_not_exist_is_an_answer(void **state)
{
    CLEANUP(ready_reset) struct ready_report report =
        parse(USER LANDS "\n@@box resolves\nexample.com: resolve call failed: Name 'example.com' not found\nexit 1\n" THE_END);
    struct ready_user user = {0};
    CLEANUP(freep) char *reason = NULL;

    assert_true(ready_usable(&report, "dev", &user, &reason));
    free(user.home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_sections_apart),
        cmocka_unit_test(survives_whatever_comes),
        cmocka_unit_test(done_is_applied),
        cmocka_unit_test(no_result_is_not_applied),
        cmocka_unit_test(an_error_is_not_applied),
        cmocka_unit_test(done_with_the_user_data_dropped_is_not_applied),
        cmocka_unit_test(harmless_warnings_are_told_once),
        cmocka_unit_test(a_host_that_runs_out_is_told),
        cmocka_unit_test(a_user_that_lands_and_resolves_is_usable),
        cmocka_unit_test(what_is_not_usable_says_why),
        cmocka_unit_test(that_a_name_does_not_exist_is_an_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

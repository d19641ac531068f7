/* The report's page escapes whatever a guest wrote, and needs nothing from anywhere: src/drill/page.c. */
#include "unit.h"

#include "base/memory.h"
#include "drill/answers.h"
#include "drill/page.h"

#include <string.h>

static json_t *report_with(const char *text, const char *verdict)
{
    return json_pack("{s:i, s:s, s:s, s:f, s:{s:s, s:s}, s:{s:s}, s:{s:s, s:s, s:s, s:b, s:b}, s:{s:s},"
                     " s:[{s:s, s:s, s:f}], s:{s:i, s:i, s:i, s:i}, s:[s],"
                     " s:[{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:b, s:[{s:s, s:s, s:s, s:s}]}]}",
                     "schema", 1, "kind", "drill", "started", "2026-01-02T03:04:05Z", "seconds", 1.5, "box", "version", "1",
                     "sha256", "abc", "instrument", "version", text, "host", "name", text, "kernel", text, "incus", "6", "lab",
                     0, "vm", 0, "walls", "form", text, "phases", "phase", "C", "title", text, "seconds", 1.0, "counts",
                     "HOLDS", 1, "BROKEN", 0, "NOT JUDGED", 0, "SKIPPED", 0, "notes", text, "claims", "id", "C01", "phase", "C",
                     "claim", text, "verdict", verdict, "reason", text, "row", "1", "ms", 3, "layer", 1, "steps", "role",
                     "attack", "from", text, "command", text, "error", text);
}

static char *page_of(const char *text, const char *verdict)
{
    CLEANUP(json_freep) json_t *report = report_with(text, verdict);
    struct buffer page = {0};

    assert_non_null(report);
    page_write(report, &page);
    return buffer_steal(&page);
}

static void hostile_text_stays_text(void **state)
{
    CLEANUP(freep) char *page = page_of("<script>alert('x')</script>\"><img src=x onerror=y>&\x1b[2J", "HOLDS");

    assert_null(strstr(page, "<script>alert"));
    assert_null(strstr(page, "<img"));
    assert_null(strchr(page, 27));
    assert_non_null(strstr(page, "&lt;script&gt;alert(&#39;x&#39;)"));
    assert_non_null(strstr(page, "&amp;&#xfffd;[2J"));
}

static void nothing_is_loaded_from_anywhere(void **state)
{
    CLEANUP(freep) char *page = page_of("plain", "HOLDS");

    assert_null(strstr(page, "http:"));
    assert_null(strstr(page, "https:"));
    assert_null(strstr(page, "@import"));
    assert_null(strstr(page, "url("));
    assert_non_null(strstr(page, "prefers-color-scheme:dark"));
    assert_non_null(strstr(page, "@media print"));
}

static void a_verdict_that_is_none_is_shown_as_unjudged(void **state)
{
    CLEANUP(freep) char *page = page_of("plain", "\" onclick=\"x");

    assert_null(strstr(page, "onclick=\""));
    assert_non_null(strstr(page, "class=\"claim unjudged\""));
}

static void an_empty_report_is_a_page_too(void **state)
{
    CLEANUP(json_freep) json_t *report = json_object();
    CLEANUP(buffer_reset) struct buffer page = {0};

    page_write(report, &page);
    assert_non_null(strstr(page.data, "Nothing was judged"));
    assert_non_null(strstr(page.data, "</html>"));
}

static void the_answers_name_what_was_under_test(void **state)
{
    CLEANUP(json_freep) json_t *report = report_with("plain", "BROKEN");
    CLEANUP(freep) char *answers = answers_write(report);
    CLEANUP(freep) char *summary = answers_summary(report);

    assert_non_null(strstr(answers, "sha256 abc"));
    assert_non_null(strstr(answers, "NOT validated"));
    assert_non_null(strstr(answers, "NO (0 hold, 1 broken"));
    assert_non_null(strstr(summary, "C01"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_text_stays_text),
        cmocka_unit_test(nothing_is_loaded_from_anywhere),
        cmocka_unit_test(a_verdict_that_is_none_is_shown_as_unjudged),
        cmocka_unit_test(an_empty_report_is_a_page_too),
        cmocka_unit_test(the_answers_name_what_was_under_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

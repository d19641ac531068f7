/* Mirrors src/cli/listing.c. */
#include "base/memory.h"
#include "base/text.h"
#include "cli/listing.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

/* What the table prints into a file, with COLUMNS as given (NULL: not set). The caller frees. */
static char *printed(const struct listing *table, const char *columns)
{
    char *text = NULL;
    size_t length = 0;
    if (columns) {
        assert_int_equal(setenv("COLUMNS", columns, 1), 0);
    } else {
        assert_int_equal(unsetenv("COLUMNS"), 0);
    }
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    listing_print(table, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void aligns(void **state)
{
    CLEANUP(listing_reset) struct listing table = {0};
    listing_row(&table, "NAME", "STATE", "NOTE", NULL);
    listing_row(&table, "a", "running", "", NULL);
    listing_row(&table, "longer", "stopped", "x", NULL);
    CLEANUP(freep) char *text = printed(&table, NULL);
    assert_string_equal(text, "NAME    STATE    NOTE\n"
                              "a       running\n"
                              "longer  stopped  x\n");
}

static void counts_wide_characters_twice(void **state)
{
    CLEANUP(listing_reset) struct listing table = {0};
    listing_row(&table, "A", "B", NULL);
    listing_row(&table, "日本", "x", NULL);
    listing_row(&table, "abcd", "y", NULL);
    CLEANUP(freep) char *text = printed(&table, NULL);
    assert_string_equal(text, "A     B\n日本  x\nabcd  y\n");
}

static void fits_the_width_by_shortening_the_widest_but_the_name(void **state)
{
    CLEANUP(listing_reset) struct listing table = {0};
    listing_row(&table, "NAME", "DESCRIPTION", NULL);
    listing_row(&table, "a-rather-long-name", "a description that goes on and on", NULL);
    listing_row(&table, "b", "日本日本日本日本日本日本日本", NULL);
    CLEANUP(freep) char *text = printed(&table, "40");
    assert_non_null(strstr(text, "a-rather-long-name"));
    assert_non_null(strstr(text, "…"));
    for (char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        CLEANUP(freep) char *copy = xstrndup(line, length);
        assert_true(text_columns(copy) <= 40);
        assert_true(text_is_utf8(copy, length));
        line += length + 1;
    }
}

static void ignores_a_width_that_is_none(void **state)
{
    CLEANUP(listing_reset) struct listing table = {0};
    listing_row(&table, "A", "BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB", NULL);
    static const char *const widths[] = {"", "0", "-5", "wide", "00080"};
    for (size_t i = 0; i < ARRAY_LENGTH(widths); i++) {
        CLEANUP(freep) char *text = printed(&table, widths[i]);
        assert_string_equal(text, "A  BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB\n");
    }
    CLEANUP(freep) char *narrow = printed(&table, "1");
    assert_non_null(strstr(narrow, "A  BBB…"));
}

static void lets_nothing_raw_through(void **state)
{
    CLEANUP(listing_reset) struct listing table = {0};
    listing_row(&table, "NAME", "NOTE", NULL);
    listing_row(&table, "a\033[31m", "one\ntwo\r\033]0;title\007", NULL);
    CLEANUP(freep) char *text = printed(&table, NULL);
    assert_null(strchr(text, '\033'));
    assert_null(strchr(text, '\007'));
    assert_null(strchr(text, '\r'));
    size_t lines = 0;
    for (const char *c = text; *c; c++) {
        lines += *c == '\n';
    }
    assert_int_equal(lines, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aligns),
        cmocka_unit_test(counts_wide_characters_twice),
        cmocka_unit_test(fits_the_width_by_shortening_the_widest_but_the_name),
        cmocka_unit_test(ignores_a_width_that_is_none),
        cmocka_unit_test(lets_nothing_raw_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

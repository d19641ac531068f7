/* Mirrors src/base/text.c. */
#include "base/text.h"
#include "base/memory.h"
#include "unit.h"

#include <string.h>

static void numbers_are_plain_decimals(void **state)
{
    static const char *const bad[] = {NULL, "", "+1", "-1", " 1", "1 ", "080", "00", "0x1", "1.0", "65536", "18446744073709551616"};
    uint64_t value = 7;
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        assert_false(text_parse_number(bad[i], 0, 65535, &value));
        assert_int_equal(value, 7);
    }
    assert_true(text_parse_number("0", 0, 65535, &value));
    assert_int_equal(value, 0);
    assert_true(text_parse_number("65535", 0, 65535, &value));
    assert_int_equal(value, 65535);
    assert_true(text_parse_number("18446744073709551615", 0, UINT64_MAX, &value));
    assert_true(value == UINT64_MAX);
}

static void distance_counts_edits(void **state)
{
    assert_int_equal(text_distance("", ""), 0);
    assert_int_equal(text_distance("list", "list"), 0);
    assert_int_equal(text_distance("lsit", "list"), 1);
    assert_int_equal(text_distance("nwe", "new"), 1);
    assert_int_equal(text_distance("abcd", "badc"), 2);
    assert_int_equal(text_distance("kitten", "sitting"), 3);
    assert_int_equal(text_distance("exex", "exec"), 1);
    assert_int_equal(text_distance("", "exec"), 4);
}

static void sanitising_leaves_nothing_that_a_terminal_obeys(void **state)
{
    static const struct {
        const char *raw, *clean;
    } rows[] = {
        {"plain\ttext\n", "plain\ttext\n"},
        {"\033[31mred\033[0m", "red"},
        {"\033]0;title\aafter", "after"},
        {"\033]0;title\033\\after", "after"},
        {"\033]8;;lost terminator\nnext", "\nnext"},
        {"\033(Bx", "x"},
        {"a\rb\bc\x7f", "abc"},
        {"\xc2\x9b" "31mC1", "31mC1"},
        {"\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"evil\xe2\x80\xaetxt", "eviltxt"},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"\033", ""},
        {"\033[", ""},
        {"\033[12", ""},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        CLEANUP(freep) char *clean = text_sanitise(rows[i].raw, strlen(rows[i].raw));
        assert_string_equal(clean, rows[i].clean);
    }
    CLEANUP(freep) char *nul = text_sanitise("a\0b", 3);
    assert_string_equal(nul, "ab");
}

static void escaping_shows_what_cannot_be_seen(void **state)
{
    static const struct {
        const char *raw, *shown;
    } rows[] = {
        {"", ""},
        {"plain n\xc3\xa4me", "plain n\xc3\xa4me"},
        {"\033[31m", "\\x1b[31m"},
        {"a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f"},
        {"\xff\xc2\x9b", "\\xff\\xc2\\x9b"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        CLEANUP(freep) char *shown = text_escape(rows[i].raw);
        assert_string_equal(shown, rows[i].shown);
    }
}

static void columns_follow_the_terminal(void **state)
{
    assert_int_equal(text_columns(""), 0);
    assert_int_equal(text_columns("abc"), 3);
    assert_int_equal(text_columns("gr\xc3\xbc\xc3\x9f"), 4);
    assert_int_equal(text_columns("\xe7\xae\xb1"), 2);         /* the character for box */
    assert_int_equal(text_columns("e\xcc\x81"), 1);            /* e and a combining acute */
    assert_int_equal(text_columns("\xf0\x9f\x93\xa6"), 2);     /* a parcel */
}

static void utf8_is_strict(void **state)
{
    assert_true(text_is_utf8("\xf0\x9f\x93\xa6", 4));
    assert_false(text_is_utf8("\xc0\x80", 2));
    assert_false(text_is_utf8("\xed\xa0\x80", 3));
    assert_false(text_is_utf8("\xf4\x90\x80\x80", 4));
    assert_false(text_is_utf8("\xe2\x82", 2));
}

static void urls_keep_only_unreserved(void **state)
{
    CLEANUP(freep) char *encoded = text_url_encode("a b/c?d=\xc3\xbc&~-._");
    assert_string_equal(encoded, "a%20b%2Fc%3Fd%3D%C3%BC%26~-._");
}

static void affixes(void **state)
{
    assert_true(text_starts_with("box-net", "box"));
    assert_false(text_starts_with("bo", "box"));
    assert_true(text_ends_with("a.yaml", ".yaml"));
    assert_false(text_ends_with("l", ".yaml"));
    assert_true(text_equal(NULL, NULL));
    assert_false(text_equal(NULL, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_plain_decimals),
        cmocka_unit_test(distance_counts_edits),
        cmocka_unit_test(sanitising_leaves_nothing_that_a_terminal_obeys),
        cmocka_unit_test(escaping_shows_what_cannot_be_seen),
        cmocka_unit_test(columns_follow_the_terminal),
        cmocka_unit_test(utf8_is_strict),
        cmocka_unit_test(urls_keep_only_unreserved),
        cmocka_unit_test(affixes),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}

/* Mirrors src/cli/option.c. */
#include "base/memory.h"
#include "cli/option.h"
#include "unit.h"

#include <string.h>

static const struct option_row own[] = {
    {.name = "memory", .kind = OPTION_TEXT, .value = "SIZE"},
    {.name = "wait", .kind = OPTION_NUMBER, .value = "S", .minimum = 1, .maximum = 600},
    {.name = "count", .kind = OPTION_NUMBER, .value = "N"},
    {.name = "stdin", .kind = OPTION_FLAG, .letter = 'i'},
    {0},
};
static const struct option_row common[] = {{.name = "help", .kind = OPTION_FLAG, .letter = 'h'}, {0}};
static const struct option_row *const tables[] = {own, common, NULL};

struct line {
    struct option_set set;
    struct argv arguments, rest;
    bool has_rest;
    struct error err;
};

static int parse(struct line *line, const char *const *words)
{
    return option_parse(words, tables, &line->set, &line->arguments, &line->rest, &line->has_rest, &line->err);
}

static void reset(struct line *line)
{
    option_reset(&line->set);
    argv_reset(&line->arguments);
    argv_reset(&line->rest);
    error_reset(&line->err);
}

#define PARSE(line, ...) parse(line, (const char *const[]){__VA_ARGS__, NULL})

static void takes_both_ways_of_writing_a_value(void **state)
{
    CLEANUP(reset) struct line line = {0};
    assert_int_equal(PARSE(&line, "--memory=2GiB", "a", "--wait", "30"), 0);
    assert_string_equal(option_text(&line.set, "memory"), "2GiB");
    assert_int_equal(option_number(&line.set, "wait", 7), 30);
    assert_int_equal(option_number(&line.set, "count", 7), 7);
    assert_int_equal(line.arguments.count, 1);
    assert_string_equal(line.arguments.items[0], "a");
    assert_false(line.has_rest);
}

static void takes_flags_anywhere_and_letters(void **state)
{
    CLEANUP(reset) struct line line = {0};
    assert_int_equal(PARSE(&line, "a", "-i", "b", "--help", "-"), 0);
    assert_true(option_given(&line.set, "stdin"));
    assert_true(option_given(&line.set, "help"));
    assert_false(option_given(&line.set, "memory"));
    assert_int_equal(line.arguments.count, 3);
    assert_string_equal(line.arguments.items[2], "-");
}

static void leaves_the_rest_alone(void **state)
{
    CLEANUP(reset) struct line line = {0};
    assert_int_equal(PARSE(&line, "a", "--", "--nonsense", "--", "", "-i"), 0);
    assert_true(line.has_rest);
    assert_int_equal(line.rest.count, 4);
    assert_string_equal(line.rest.items[1], "--");
    assert_string_equal(line.rest.items[2], "");
    assert_false(option_given(&line.set, "stdin"));
}

static void refuses_unknown_flags_and_names_the_nearest(void **state)
{
    CLEANUP(reset) struct line line = {0};
    assert_int_equal(PARSE(&line, "--memroy=1"), -1);
    assert_int_equal(line.err.code, ERR_USAGE);
    assert_string_equal(line.err.message, "unknown flag --memroy");
    assert_string_equal(line.err.remedy, "did you mean --memory?");
    reset(&line);
    assert_int_equal(PARSE(&line, "-x"), -1);
    assert_null(line.err.remedy);
    reset(&line);
    assert_int_equal(PARSE(&line, "-ih"), -1);
}

static void refuses_abbreviations(void **state)
{
    CLEANUP(reset) struct line line = {0};
    assert_int_equal(PARSE(&line, "--mem", "2GiB"), -1);
    assert_string_equal(line.err.remedy, "did you mean --memory?");
}

static void never_takes_a_flag_for_a_value(void **state)
{
    CLEANUP(reset) struct line line = {0};
    assert_int_equal(PARSE(&line, "--memory", "--wait", "3"), -1);
    assert_string_equal(line.err.message, "--memory needs a value");
    reset(&line);
    assert_int_equal(PARSE(&line, "--memory"), -1);
    reset(&line);
    assert_int_equal(PARSE(&line, "--memory", "--"), -1);
    reset(&line);
    assert_int_equal(PARSE(&line, "--memory=--wait", "--memory=", "--wait=3"), 0);
    assert_string_equal(option_text(&line.set, "memory"), "");
}

static void refuses_a_value_for_a_flag(void **state)
{
    CLEANUP(reset) struct line line = {0};
    assert_int_equal(PARSE(&line, "--stdin=yes"), -1);
    assert_string_equal(line.err.message, "--stdin takes no value");
}

static void judges_numbers(void **state)
{
    static const char *const bad[] = {"", "0", "601", "08", "+5", "1e2", "5 ", "99999999999999999999", "x"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        CLEANUP(reset) struct line line = {0};
        CLEANUP(freep) char *word = xasprintf("--wait=%s", bad[i]);
        assert_int_equal(PARSE(&line, word), -1);
        assert_int_equal(line.err.code, ERR_USAGE);
        assert_non_null(strstr(line.err.message, "from 1 to 600"));
    }
    CLEANUP(reset) struct line line = {0};
    assert_int_equal(PARSE(&line, "--count", "18446744073709551615"), 0);
    assert_true(option_number(&line.set, "count", 0) == UINT64_MAX);
}

static void the_last_of_two_values_counts(void **state)
{
    CLEANUP(reset) struct line line = {0};
    assert_int_equal(PARSE(&line, "--memory", "1GiB", "--memory", "2GiB"), 0);
    assert_string_equal(option_text(&line.set, "memory"), "2GiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_both_ways_of_writing_a_value),
        cmocka_unit_test(takes_flags_anywhere_and_letters),
        cmocka_unit_test(leaves_the_rest_alone),
        cmocka_unit_test(refuses_unknown_flags_and_names_the_nearest),
        cmocka_unit_test(refuses_abbreviations),
        cmocka_unit_test(never_takes_a_flag_for_a_value),
        cmocka_unit_test(refuses_a_value_for_a_flag),
        cmocka_unit_test(judges_numbers),
        cmocka_unit_test(the_last_of_two_values_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Mirrors src/base/clock.c. */
#include "base/clock.h"
#include "base/memory.h"
#include "unit.h"

static void parses_what_incus_writes(void **state)
{
    int64_t seconds = 0;
    assert_true(clock_parse("2026-11-30T22:15:30.123456789Z", &seconds));
    assert_int_equal(seconds, 1796076930);
    assert_true(clock_parse("2026-11-30T23:15:30+01:00", &seconds));
    assert_int_equal(seconds, 1796076930);
    assert_true(clock_parse("1970-01-01T00:00:00Z", &seconds));
    assert_int_equal(seconds, 0);
}

static void refuses_anything_else(void **state)
{
    static const char *const bad[] = {
        NULL, "", "yesterday", "0001-01-01T00:00:00Z", "2026-13-01T00:00:00Z", "2026-11-30T22:15:30",
        "2026-11-30T25:15:30Z", "2026-11-30T22:15:30Zjunk", "2026-11-30 22:15:30Z",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        int64_t seconds = 42;
        assert_false(clock_parse(bad[i], &seconds));
        assert_int_equal(seconds, 42);
    }
}

static void describes_as_people_say(void **state)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } rows[] = {
        {-5, "now"},      {0, "now"},        {1, "1s"},          {59, "59s"},          {60, "1m"},
        {3599, "59m"},    {3600, "1h"},      {86399, "23h"},     {86400, "1d"},        {13 * 86400, "13d"},
        {14 * 86400, "2w"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        CLEANUP(freep) char *text = clock_describe(rows[i].seconds);
        assert_string_equal(text, rows[i].text);
    }
}

static void deadlines_never_go_negative(void **state)
{
    assert_int_equal(clock_left(clock_deadline(-1)), -1);
    assert_int_equal(clock_left(clock_now() - 1000), 0);
    assert_in_range(clock_left(clock_deadline(60000)), 1, 60000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_what_incus_writes),
        cmocka_unit_test(refuses_anything_else),
        cmocka_unit_test(describes_as_people_say),
        cmocka_unit_test(deadlines_never_go_negative),
    };
    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}

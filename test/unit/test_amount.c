/* Mirrors src/cli/amount.c. */
#include "base/memory.h"
#include "cli/amount.h"
#include "unit.h"

static void says_amounts_as_people_do(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *said;
    } rows[] = {
        {0, "0 B"},
        {1, "1 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {1536, "1.5 KiB"},
        {10 * 1024, "10 KiB"},
        {1024 * 1024 - 1, "1.0 MiB"},
        {1500000000, "1.4 GiB"},
        {24ULL << 30, "24 GiB"},
        {UINT64_MAX, "16 EiB"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        CLEANUP(freep) char *said = amount_describe(rows[i].bytes);
        assert_string_equal(said, rows[i].said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(says_amounts_as_people_do)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Mirrors src/base/process.c. */
#include "base/process.h"
#include "base/clock.h"
#include "base/memory.h"
#include "unit.h"

#include <string.h>

#define ARGV(...) (const char *const[]){__VA_ARGS__, NULL}

static void streams_stay_apart_and_the_status_comes_back(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(process_result_reset) struct process_result result = {0};
    assert_int_equal(process_run(ARGV("sh", "-c", "echo out; echo err >&2; exit 7"), NULL, &result, &err), 0);
    assert_int_equal(result.status, 7);
    assert_string_equal(result.output.data, "out\n");
    assert_string_equal(result.errors.data, "err\n");
}

static void stdin_is_pinned_unless_given(void **state)
{
    CLEANUP(freep) char *nothing = NULL;
    CLEANUP(freep) char *echoed = NULL;
    CLEANUP(error_reset) struct error err = {0};
    assert_int_equal(process_check(ARGV("cat"), NULL, &nothing, &err), 0);
    assert_string_equal(nothing, "");
    struct process_options options = {.input = "hello", .input_length = 5};
    assert_int_equal(process_check(ARGV("cat"), &options, &echoed, &err), 0);
    assert_string_equal(echoed, "hello");
}

static void failure_quotes_the_last_line(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    assert_int_equal(process_check(ARGV("sh", "-c", "echo first >&2; echo 'the reason' >&2; exit 3"), NULL, NULL, &err), -1);
    assert_int_equal(err.code, ERR_SYSTEM);
    assert_string_equal(err.message, "sh failed (exit 3): the reason");
}

static void absent_programs_are_told(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(process_result_reset) struct process_result result = {0};
    assert_int_equal(process_run(ARGV("box-no-such-program"), NULL, &result, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_false(process_exists("box-no-such-program"));
    assert_true(process_exists("sh"));
    assert_false(process_exists("/etc"));
}

static void a_budget_ends_it(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(process_result_reset) struct process_result result = {0};
    struct process_options options = {.budget = 100};
    assert_int_equal(process_run(ARGV("sleep", "600"), &options, &result, &err), -1);
    assert_int_equal(err.code, ERR_TIMEOUT);
}

static void a_background_child_does_not_hold_us(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(process_result_reset) struct process_result result = {0};
    int64_t start = clock_now();
    assert_int_equal(process_run(ARGV("sh", "-c", "sleep 20 & echo done"), NULL, &result, &err), 0);
    assert_string_equal(result.output.data, "done\n");
    assert_true(clock_now() - start < 15000);
}

static void the_ceiling_drops_the_rest(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(process_result_reset) struct process_result result = {0};
    struct process_options options = {.ceiling = 1000};
    assert_int_equal(process_run(ARGV("head", "-c", "300000", "/dev/zero"), &options, &result, &err), 0);
    assert_int_equal(result.status, 0);
    assert_int_equal(result.output.length, 1000);
}

static void count_line(void *context, const char *line)
{
    argv_push(context, line);
}

static void lines_come_one_by_one(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(process_result_reset) struct process_result result = {0};
    CLEANUP(argv_reset) struct argv lines = {0};
    struct process_options options = {.line = count_line, .context = &lines};
    assert_int_equal(process_run(ARGV("printf", "a\\n\\nb"), &options, &result, &err), 0);
    assert_int_equal(lines.count, 3);
    assert_string_equal(lines.items[1], "");
    assert_string_equal(lines.items[2], "b");
}

static void a_signal_is_128_and_more(void **state)
{
    CLEANUP(process_result_reset) struct process_result result = {0};
    assert_int_equal(process_run(ARGV("sh", "-c", "kill -9 $$"), NULL, &result, NULL), 0);
    assert_int_equal(result.status, 137);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_stay_apart_and_the_status_comes_back),
        cmocka_unit_test(stdin_is_pinned_unless_given),
        cmocka_unit_test(failure_quotes_the_last_line),
        cmocka_unit_test(absent_programs_are_told),
        cmocka_unit_test(a_budget_ends_it),
        cmocka_unit_test(a_background_child_does_not_hold_us),
        cmocka_unit_test(the_ceiling_drops_the_rest),
        cmocka_unit_test(lines_come_one_by_one),
        cmocka_unit_test(a_signal_is_128_and_more),
    };
    return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}

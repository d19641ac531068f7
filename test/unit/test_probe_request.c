/* Mirrors probe/request.c. */
#include "request.h"
#include "unit.h"

#include <string.h>

static const struct flag flags[] = {
    {"--size", "N", ""}, {"--to", "MAC", ""}, {"--source", "ADDRESS", ""}, {"--all", NULL, ""}, {NULL, NULL, NULL}};

static const struct subcommand row = {
    .name = "row", .arguments = "A [B]", .flags = flags, .min_words = 1, .max_words = 2, .timeout_ms = 1234};

/* Splits at blanks and parses. */
static int parse(const char *text, struct request *request, struct outcome *outcome)
{
    static char copy[256];
    char *argv[16];
    int argc = 0;

    (void)strncpy(copy, text, sizeof(copy) - 1);
    for (char *at = copy; *at;) {
        argv[argc++] = at;
        at += strcspn(at, " ");
        if (*at) {
            *at++ = '\0';
        }
    }
    *outcome = (struct outcome){0};
    return request_parse(&row, argc, argv, request, outcome);
}

static void words_and_flags_may_be_mixed(void **state)
{
    struct request request;
    struct outcome outcome;
    uint64_t number;

    (void)state;
    assert_int_equal(parse("one --size 5 two --all --size=6", &request, &outcome), 0);
    assert_int_equal(request.word_count, 2);
    assert_string_equal(request.words[1], "two");
    assert_true(request_has(&request, "--all"));
    assert_false(request_has(&request, "--to"));
    assert_int_equal(request_number(&request, "--size", 0, 9, 1, &number, &outcome), 0);
    assert_int_equal(number, 6);
    assert_int_equal(request.timeout_ms, 1234);
    assert_int_equal(strlen(request.token), 28);
    assert_int_equal(request.token_size, 28);
}

static void every_run_has_its_own_token(void **state)
{
    struct request first;
    struct request second;
    struct outcome outcome;

    (void)state;
    assert_int_equal(parse("one", &first, &outcome), 0);
    assert_int_equal(parse("one", &second, &outcome), 0);
    assert_string_not_equal(first.token, second.token);
    assert_int_equal(parse("one --token given --timeout 50", &first, &outcome), 0);
    assert_string_equal(first.token, "given");
    assert_int_equal(first.timeout_ms, 50);
    assert_true(deadline_left_ms(first.deadline) <= 50);
}

static void what_is_wrong_is_a_usage_error(void **state)
{
    static const char *const bad[] = {"",
                                      "one two three",
                                      "one --none",
                                      "one --size",
                                      "one --all=1",
                                      "one --timeout 0",
                                      "one --timeout x",
                                      "one --token abc"};
    struct request request;
    struct outcome outcome;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(parse(bad[i], &request, &outcome), -1);
        assert_true(outcome.usage);
        assert_int_equal(outcome.verdict, VERDICT_ERROR);
        assert_true(outcome.why[0] != '\0');
    }
}

static void values_are_checked_when_they_are_taken(void **state)
{
    struct request request;
    struct outcome outcome;
    struct endpoint endpoint = {0};
    uint8_t mac[6] = {1};
    uint64_t number;

    (void)state;
    assert_int_equal(parse("ten --size 10 --to nonsense --source 10.0.0.300", &request, &outcome), 0);
    assert_int_equal(request_number(&request, "--size", 0, 9, 1, &number, &outcome), -1);
    assert_int_equal(request_mac(&request, "--to", mac, &outcome), -1);
    assert_int_equal(request_endpoint(&request, "--source", &endpoint, &outcome), -1);
    assert_int_equal(request_word_number(&request, 0, 0, 9, &number, &outcome), -1);
    assert_int_equal(request_word_endpoint(&request, 0, &endpoint, &outcome), -1);
    assert_true(outcome.usage);
    assert_int_equal(mac[0], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_flags_may_be_mixed),
        cmocka_unit_test(every_run_has_its_own_token),
        cmocka_unit_test(what_is_wrong_is_a_usage_error),
        cmocka_unit_test(values_are_checked_when_they_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

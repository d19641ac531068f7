/* Reads the command line of a subcommand from its row of flags, and hands out values that were checked.
 * It knows no subcommand; the table is in boxprobe.c.
 */
#include "request.h"

#include "literal.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST_TIMEOUT_MS = 600000 };

static const struct flag common_flags[] = {
    {"--timeout", "MS", "the whole run's budget"},
    {"--token", "TEXT", "the word in each payload, instead of a random one"},
    {NULL, NULL, NULL},
};

static const struct flag *find_flag(const struct flag *flags, const char *name, size_t length)
{
    for (; flags && flags->name; flags++) {
        if (strlen(flags->name) == length && strncmp(flags->name, name, length) == 0) {
            return flags;
        }
    }
    return NULL;
}

/* Takes the flag at argv[at]; returns how many arguments it used, or -1. */
static int take_flag(struct request *request, int argc, char **argv, int at, struct outcome *outcome)
{
    size_t length = strcspn(argv[at], "=");
    const char *joined = argv[at][length] ? argv[at] + length + 1 : NULL;
    const struct flag *flag = find_flag(request->subcommand->flags, argv[at], length);
    int used = 1;

    if (!flag) {
        flag = find_flag(common_flags, argv[at], length);
    }
    if (!flag) {
        return outcome_usage(outcome, "%s knows no flag %s", request->subcommand->name, argv[at]);
    }
    if (request->set_count == REQUEST_FLAGS) {
        return outcome_usage(outcome, "more than %d flags", REQUEST_FLAGS);
    }
    if (!flag->value && joined) {
        return outcome_usage(outcome, "%s takes no value", flag->name);
    }
    if (flag->value && !joined) {
        if (at + 1 >= argc) {
            return outcome_usage(outcome, "%s needs %s", flag->name, flag->value);
        }
        joined = argv[at + 1];
        used = 2;
    }
    request->set[request->set_count].name = flag->name;
    request->set[request->set_count].value = joined;
    request->set_count++;
    return used;
}

static int settle(struct request *request, struct outcome *outcome)
{
    const struct subcommand *subcommand = request->subcommand;
    const char *token = request_text(request, "--token", NULL);
    uint64_t timeout;

    if (request->word_count < subcommand->min_words || request->word_count > subcommand->max_words) {
        return outcome_usage(outcome, "usage: box-probe %s %s", subcommand->name, subcommand->arguments);
    }
    if (request_number(request, "--timeout", 1, LONGEST_TIMEOUT_MS, (uint64_t)subcommand->timeout_ms, &timeout,
                       outcome) < 0) {
        return -1;
    }
    if (token && (strlen(token) < 4 || strlen(token) >= sizeof(request->token))) {
        return outcome_usage(outcome, "a token has 4 to %zu characters", sizeof(request->token) - 1);
    }
    if (token) {
        (void)snprintf(request->token, sizeof(request->token), "%s", token);
    } else if (!token_make(request->token)) {
        return outcome_fail(outcome, 0, "the kernel gave no random bytes");
    }
    request->token_size = strlen(request->token);
    request->timeout_ms = (int)timeout;
    request->deadline = deadline_in_ms(request->timeout_ms);
    return 0;
}

int request_parse(const struct subcommand *subcommand, int argc, char **argv, struct request *ret_request,
                  struct outcome *outcome)
{
    struct request request = {.subcommand = subcommand};

    for (int at = 0; at < argc;) {
        if (strncmp(argv[at], "--", 2) == 0) {
            int used = take_flag(&request, argc, argv, at, outcome);
            if (used < 0) {
                return -1;
            }
            at += used;
            continue;
        }
        if (request.word_count == REQUEST_WORDS) {
            return outcome_usage(outcome, "usage: box-probe %s %s", subcommand->name, subcommand->arguments);
        }
        request.words[request.word_count++] = argv[at++];
    }
    if (settle(&request, outcome) < 0) {
        return -1;
    }
    *ret_request = request;
    return 0;
}

bool request_has(const struct request *request, const char *flag)
{
    for (size_t i = 0; i < request->set_count; i++) {
        if (strcmp(request->set[i].name, flag) == 0) {
            return true;
        }
    }
    return false;
}

const char *request_text(const struct request *request, const char *flag, const char *fallback)
{
    for (size_t i = request->set_count; i-- > 0;) {
        if (strcmp(request->set[i].name, flag) == 0) {
            return request->set[i].value;
        }
    }
    return fallback;
}

int request_number(const struct request *request, const char *flag, uint64_t min, uint64_t max, uint64_t fallback,
                   uint64_t *ret_number, struct outcome *outcome)
{
    const char *text = request_text(request, flag, NULL);

    if (!text) {
        *ret_number = fallback;
        return 0;
    }
    if (!literal_number(text, min, max, ret_number)) {
        return outcome_usage(outcome, "%s wants a number from %llu to %llu, not \"%s\"", flag, (unsigned long long)min,
                             (unsigned long long)max, text);
    }
    return 0;
}

int request_endpoint(const struct request *request, const char *flag, struct endpoint *ret_endpoint,
                     struct outcome *outcome)
{
    const char *text = request_text(request, flag, NULL);

    if (text && !endpoint_parse(text, ret_endpoint)) {
        return outcome_usage(outcome, "%s wants an address, not \"%s\"", flag, text);
    }
    return 0;
}

int request_mac(const struct request *request, const char *flag, uint8_t ret_mac[6], struct outcome *outcome)
{
    const char *text = request_text(request, flag, NULL);

    if (text && !literal_mac(text, ret_mac)) {
        return outcome_usage(outcome, "%s wants a MAC address, not \"%s\"", flag, text);
    }
    return 0;
}

int request_bytes(const struct request *request, const char *flag, uint8_t *bytes, size_t capacity, size_t *ret_size,
                  struct outcome *outcome)
{
    const char *text = request_text(request, flag, NULL);

    if (text && !literal_escaped(text, bytes, capacity, ret_size)) {
        return outcome_usage(outcome, "%s wants text of at most %zu bytes with known escapes", flag, capacity);
    }
    return 0;
}

int request_word_number(const struct request *request, size_t index, uint64_t min, uint64_t max, uint64_t *ret_number,
                        struct outcome *outcome)
{
    if (!literal_number(request->words[index], min, max, ret_number)) {
        return outcome_usage(outcome, "\"%s\" is no number from %llu to %llu", request->words[index],
                             (unsigned long long)min, (unsigned long long)max);
    }
    return 0;
}

int request_word_endpoint(const struct request *request, size_t index, struct endpoint *ret_endpoint,
                          struct outcome *outcome)
{
    if (!endpoint_parse(request->words[index], ret_endpoint)) {
        return outcome_usage(outcome, "\"%s\" is no address", request->words[index]);
    }
    return 0;
}

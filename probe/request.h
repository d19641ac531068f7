#pragma once

#include "deadline.h"
#include "endpoint.h"
#include "outcome.h"
#include "token.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One flag of a subcommand; `value` NULL makes it a switch. An array of them ends with a NULL name. */
struct flag {
    const char *name;
    const char *value;
    const char *help;
};

struct request;

/* One row of the table in boxprobe.c. */
struct subcommand {
    const char *name;
    const char *arguments; /* as the usage shows them */
    const char *summary;
    const struct flag *flags; /* may be NULL; --timeout and --token come with every row */
    unsigned min_words;
    unsigned max_words;
    int timeout_ms; /* without --timeout */
    /* 0 once the outcome carries a verdict, -1 once it carries a failure. */
    int (*run)(const struct request *request, struct outcome *outcome);
};

enum { REQUEST_WORDS = 8, REQUEST_FLAGS = 40 };

/* A parsed invocation; its strings point into argv. */
struct request {
    const struct subcommand *subcommand;
    const char *words[REQUEST_WORDS];
    size_t word_count;
    struct {
        const char *name;
        const char *value;
    } set[REQUEST_FLAGS];
    size_t set_count;
    int timeout_ms;
    struct deadline deadline;
    char token[64];
    size_t token_size;
};

/* Parses argv after the subcommand's name; starts the deadline. Flags and words may be mixed; "--flag=value" works. */
int request_parse(const struct subcommand *subcommand, int argc, char **argv, struct request *ret_request,
                  struct outcome *outcome);

bool request_has(const struct request *request, const char *flag);
/* The flag's text, or `fallback`. The last of several counts. */
const char *request_text(const struct request *request, const char *flag, const char *fallback);
/* Each of the following leaves *ret as `fallback` (or untouched, where it has none) when the flag is absent: 0; a value
 * that cannot be read is a usage error: -1. */
int request_number(const struct request *request, const char *flag, uint64_t min, uint64_t max, uint64_t fallback,
                   uint64_t *ret_number, struct outcome *outcome);
int request_endpoint(const struct request *request, const char *flag, struct endpoint *ret_endpoint,
                     struct outcome *outcome);
int request_mac(const struct request *request, const char *flag, uint8_t ret_mac[6], struct outcome *outcome);
/* Text with escapes, into at most `capacity` bytes. */
int request_bytes(const struct request *request, const char *flag, uint8_t *bytes, size_t capacity, size_t *ret_size,
                  struct outcome *outcome);
/* The word at `index` as a port, or as a number within the bounds. */
int request_word_number(const struct request *request, size_t index, uint64_t min, uint64_t max, uint64_t *ret_number,
                        struct outcome *outcome);
/* The word at `index` as a literal address. */
int request_word_endpoint(const struct request *request, size_t index, struct endpoint *ret_endpoint,
                          struct outcome *outcome);

/* A name, looked up as a program on this machine would. Reachable: it has an address; refused: a server said that it
 * has none; dropped: no server answered.
 */
#include "subcommands.h"

#include "resolver.h"

#include <errno.h>

static void write_config(const struct resolvconf *config, struct jsonline *line)
{
    char text[ENDPOINT_TEXT];

    jsonline_open_array(line, "servers");
    for (size_t i = 0; i < config->server_count; i++) {
        jsonline_text(line, NULL, endpoint_text(&config->servers[i], text));
    }
    jsonline_close_array(line);
    jsonline_open_array(line, "search");
    for (size_t i = 0; i < config->search_count; i++) {
        jsonline_text(line, NULL, config->search[i]);
    }
    jsonline_close_array(line);
}

static int run(const struct request *request, struct outcome *outcome)
{
    struct resolvconf config;
    struct resolver_answer answer;
    struct jsonline *line = &outcome->evidence;
    char text[ENDPOINT_TEXT];

    resolver_own_config(&config);
    write_config(&config, line);
    if (request->word_count == 0) {
        outcome_say(outcome, VERDICT_DONE, 0);
        return 0;
    }
    if (resolver_lookup(request->words[0], request->deadline, &answer, outcome) < 0) {
        return -1;
    }
    jsonline_text(line, "name", answer.name);
    jsonline_text(line, "how", answer.how);
    if (answer.server.family) {
        jsonline_text(line, "server", endpoint_text(&answer.server, text));
    }
    jsonline_open_array(line, "addresses");
    for (size_t i = 0; i < answer.address_count; i++) {
        jsonline_text(line, NULL, endpoint_text(&answer.addresses[i], text));
    }
    jsonline_close_array(line);
    if (answer.address_count) {
        outcome_say(outcome, VERDICT_REACHABLE, 0);
    } else if (answer.answered) {
        outcome_say(outcome, VERDICT_REFUSED, 0);
    } else if (answer.errno_value == ECONNREFUSED) {
        outcome_say(outcome, VERDICT_REFUSED, ECONNREFUSED);
    } else if (answer.errno_value) {
        outcome_say(outcome, VERDICT_UNREACHABLE, answer.errno_value);
    } else {
        outcome_say(outcome, config.server_count ? VERDICT_DROPPED : VERDICT_UNREACHABLE, ETIMEDOUT);
    }
    return 0;
}

const struct subcommand subcommand_resolve = {
    .name = "resolve",
    .arguments = "[NAME]",
    .summary = "look a name up through this machine's own configuration; without a name, show that",
    .max_words = 1,
    .timeout_ms = 5000,
    .run = run,
};

/* Forged IP packets: any source address, any protocol, any flags, one or many.
 * Alone it only sends ("done"); whether it arrived is said by a listener, or, with --wait, by an answer on the wire.
 */
#include "subcommands.h"

#include "await.h"
#include "craft.h"
#include "sender.h"
#include "sockets.h"

#include <string.h>

static const struct flag flags[] = {
    CRAFT_FLAGS,
    SENDER_FLAGS,
    {"--count", "N", "packets to send (1), each from the next source port"},
    {"--random-sources", NULL, "give each packet a random IPv4 source address"},
    {"--wait", NULL, "wait for an answer and judge it"},
    {NULL, NULL, NULL},
};

static void vary(const struct request *request, struct craft *craft, uint64_t number)
{
    if (number == 0 && !request_has(request, "--random-sources")) {
        return;
    }
    if (request_has(request, "--random-sources")) {
        uint32_t random = token_random(0);
        memcpy(&craft->ip.source.ip.v4, &random, 4);
    }
    if (!request_has(request, "--source-port") && number) {
        craft->source_port++;
        craft->tcp.source_port++;
    }
    craft->ip.id++;
}

static int send_all(const struct request *request, const struct sender *sender, struct craft *craft, uint64_t count,
                    struct outcome *outcome)
{
    int64_t sent = 0;

    for (uint64_t number = 0; number < count && deadline_left_ms(request->deadline) > 0; number++) {
        vary(request, craft, number);
        for (size_t piece = 0;; piece++) {
            struct frame packet = {.size = 0};
            if (!craft_put(craft, piece, &packet)) {
                break;
            }
            if (sender_send(sender, &packet, &craft->ip.destination, outcome) < 0) {
                return -1;
            }
            sent++;
        }
    }
    jsonline_number(&outcome->evidence, "sent", sent);
    return 0;
}

static int run(const struct request *request, struct outcome *outcome)
{
    struct sender sender CLEANUP_SENDER = SENDER_CLOSED;
    struct craft craft;
    struct endpoint destination;
    uint8_t protocol;
    uint64_t port = 0;
    uint64_t count;

    if (request_word_endpoint(request, 1, &destination, outcome) < 0 ||
        craft_protocol(request->words[0], destination.family, &protocol, outcome) < 0 ||
        (request->word_count > 2 && request_word_number(request, 2, 0, UINT16_MAX, &port, outcome) < 0) ||
        request_number(request, "--count", 1, 10000000, 1, &count, outcome) < 0 ||
        craft_read(request, &destination, protocol, (uint16_t)port, &craft, outcome) < 0 ||
        sender_open(request, destination.family, &sender, outcome) < 0) {
        return -1;
    }
    if (request_has(request, "--random-sources") && destination.family != AF_INET) {
        return outcome_usage(outcome, "--random-sources is for IPv4");
    }
    struct endpoint source = craft.ip.source;
    source.port = craft.source_port;
    sockets_write_endpoint(&outcome->evidence, "source", &source);
    struct answer_expected expected = craft_expected(&craft, request);
    if (send_all(request, &sender, &craft, count, outcome) < 0) {
        return -1;
    }
    if (request_has(request, "--wait")) {
        return await_answer(&sender.ether, &expected, NULL, request->deadline, outcome);
    }
    outcome_say(outcome, VERDICT_DONE, 0);
    return 0;
}

const struct subcommand subcommand_spoof = {
    .name = "spoof",
    .arguments = "udp|tcp|icmp|N ADDRESS [PORT]",
    .summary = "forged IP packets: source address, flags, fragments, options",
    .flags = flags,
    .min_words = 2,
    .max_words = 3,
    .timeout_ms = 2000,
    .run = run,
};

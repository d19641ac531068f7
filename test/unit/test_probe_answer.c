/* Mirrors probe/answer.c. */
#include "answer.h"
#include "unit.h"

#include <string.h>

static struct endpoint at(const char *text, uint16_t port)
{
    struct endpoint endpoint = {0};

    assert_true(endpoint_parse(text, &endpoint));
    endpoint.port = port;
    return endpoint;
}

static struct answer_expected expected(uint8_t protocol)
{
    return (struct answer_expected){
        .token = "the-token",
        .token_size = 9,
        .source = at("10.0.0.1", 4000),
        .destination = at("10.0.0.2", 80),
        .protocol = protocol,
    };
}

static enum answer_kind judge(uint8_t protocol, const struct frame *frame)
{
    struct answer_expected wanted = expected(protocol);
    struct dissected packet;

    assert_false(frame->overflow);
    assert_true(dissect_ip(frame->data, frame->size, &packet));
    return answer_of(&wanted, &packet);
}

static enum answer_kind udp_from(const char *from, const char *to, const char *payload)
{
    struct wire_ip ip = {.source = at(from, 0), .destination = at(to, 0), .protocol = 17};
    struct frame frame = {.size = 0};

    wire_put_ip(&frame, &ip, 8 + strlen(payload));
    wire_put_udp(&frame, &ip, 80, 4000, payload, strlen(payload));
    return judge(17, &frame);
}

static void only_the_token_is_an_answer(void **state)
{
    (void)state;
    assert_int_equal(udp_from("10.0.0.2", "10.0.0.1", "xx the-token xx"), ANSWER_REPLY);
    assert_int_equal(udp_from("10.0.0.2", "10.0.0.1", "the-toke"), ANSWER_NONE);
    assert_int_equal(udp_from("10.0.0.1", "10.0.0.2", "the-token"), ANSWER_NONE);
}

static void ones_own_address_may_answer(void **state)
{
    struct answer_expected wanted = expected(17);
    struct wire_ip ip = {.source = at("10.0.0.1", 0), .destination = at("10.0.0.1", 0), .protocol = 17};
    struct frame frame = {.size = 0};
    struct dissected packet;

    (void)state;
    wanted.destination = wanted.source;
    wire_put_ip(&frame, &ip, 8 + 9);
    wire_put_udp(&frame, &ip, 80, 4000, "the-token", 9);
    assert_true(dissect_ip(frame.data, frame.size, &packet));
    assert_int_equal(answer_of(&wanted, &packet), ANSWER_REPLY);
}

static enum answer_kind tcp_with(uint8_t flags, const char *from, uint16_t source_port)
{
    struct wire_ip ip = {.source = at(from, 0), .destination = at("10.0.0.1", 0), .protocol = 6};
    struct wire_tcp tcp = {.source_port = source_port, .destination_port = 4000, .flags = flags};
    struct frame frame = {.size = 0};

    wire_put_ip(&frame, &ip, 20);
    wire_put_tcp(&frame, &ip, &tcp, "", 0);
    return judge(6, &frame);
}

static void tcp_answers_by_its_ports(void **state)
{
    (void)state;
    assert_int_equal(tcp_with(2 | 16, "10.0.0.2", 80), ANSWER_REPLY);
    assert_int_equal(tcp_with(4 | 16, "10.0.0.2", 80), ANSWER_REFUSAL);
    assert_int_equal(tcp_with(4, "10.0.0.2", 80), ANSWER_REFUSAL);
    assert_int_equal(tcp_with(2 | 16, "10.0.0.2", 81), ANSWER_NONE);
    assert_int_equal(tcp_with(2 | 16, "10.0.0.3", 80), ANSWER_NONE);
    assert_int_equal(tcp_with(2, "10.0.0.2", 80), ANSWER_NONE);
}

/* An ICMP error from `from` that quotes our datagram, or another's. */
static enum answer_kind icmp_error(const char *from, uint8_t type, uint8_t code, uint16_t quoted_port, size_t quoted)
{
    struct wire_ip ours = {.source = at("10.0.0.1", 0), .destination = at("10.0.0.2", 0), .protocol = 17};
    struct wire_ip ip = {.source = at(from, 0), .destination = at("10.0.0.1", 0), .protocol = 1};
    struct frame quote = {.size = 0};
    struct frame frame = {.size = 0};

    wire_put_ip(&quote, &ours, 8 + 9);
    wire_put_udp(&quote, &ours, quoted_port, 80, "no-tokens", 9);
    wire_put_ip(&frame, &ip, 8 + quoted);
    wire_put_icmp(&frame, &ip, type, code, 0, quote.data, quoted);
    return judge(17, &frame);
}

static void a_refusal_comes_from_the_destination(void **state)
{
    (void)state;
    assert_int_equal(icmp_error("10.0.0.2", 3, 3, 4000, 28), ANSWER_REFUSAL);
    assert_int_equal(icmp_error("10.0.0.2", 3, 2, 4000, 28), ANSWER_REFUSAL);
    assert_int_equal(icmp_error("10.0.0.254", 3, 3, 4000, 28), ANSWER_UNREACHABLE);
    assert_int_equal(icmp_error("10.0.0.2", 3, 13, 4000, 28), ANSWER_UNREACHABLE);
    assert_int_equal(icmp_error("10.0.0.254", 11, 0, 4000, 28), ANSWER_UNREACHABLE);
    assert_int_equal(icmp_error("10.0.0.2", 3, 3, 4001, 28), ANSWER_NONE);
    assert_int_equal(icmp_error("10.0.0.2", 3, 3, 4000, 12), ANSWER_NONE);
}

static void kinds_have_their_verdicts(void **state)
{
    (void)state;
    assert_int_equal(answer_verdict(ANSWER_REPLY), VERDICT_REACHABLE);
    assert_int_equal(answer_verdict(ANSWER_REFUSAL), VERDICT_REFUSED);
    assert_int_equal(answer_verdict(ANSWER_UNREACHABLE), VERDICT_UNREACHABLE);
    assert_int_equal(answer_verdict(ANSWER_NONE), VERDICT_DROPPED);
    assert_true(answer_is_refusal(AF_INET6, 1, 4));
    assert_false(answer_is_refusal(AF_INET6, 1, 1));
    assert_false(answer_is_refusal(AF_INET, 3, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_token_is_an_answer), cmocka_unit_test(ones_own_address_may_answer),
        cmocka_unit_test(tcp_answers_by_its_ports),    cmocka_unit_test(a_refusal_comes_from_the_destination),
        cmocka_unit_test(kinds_have_their_verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Mirrors probe/dissect.c. */
#include "dissect.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

static struct endpoint address(const char *text)
{
    struct endpoint endpoint = {0};

    assert_true(endpoint_parse(text, &endpoint));
    return endpoint;
}

static void put_udp(struct frame *frame, const char *source, const char *destination, const char *payload)
{
    struct wire_ip ip = {.source = address(source), .destination = address(destination), .protocol = 17};

    wire_put_ip(frame, &ip, 8 + strlen(payload));
    wire_put_udp(frame, &ip, 4000, 53, payload, strlen(payload));
}

static void what_was_built_is_found_again(void **state)
{
    static const char *const pairs[][2] = {{"10.0.0.1", "10.0.0.2"}, {"fd00::1", "fd00::2"}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct wire_ether ether = {.tags = {0, 4095}, .tag_count = 2, .type = i ? 0x86dd : 0x0800};
        struct frame frame = {.size = 0};
        struct dissected out;
        struct endpoint source = address(pairs[i][0]);

        wire_put_ether(&frame, &ether);
        put_udp(&frame, pairs[i][0], pairs[i][1], "hello");
        wire_put(&frame, "padding", 7);
        assert_true(dissect_frame(frame.data, frame.size, &out));
        assert_int_equal(out.tag_count, 2);
        assert_int_equal(out.tags[1], 4095);
        assert_true(out.has_ip);
        assert_true(endpoint_same_address(&out.source, &source));
        assert_int_equal(out.source.port, 4000);
        assert_int_equal(out.destination.port, 53);
        assert_int_equal(out.payload_size, 5);
        assert_memory_equal(out.payload, "hello", 5);
    }
}

static void arp_is_read(void **state)
{
    struct wire_ether ether = {.type = 0x0806};
    struct wire_arp arp = {.operation = 2, .sender_mac = {1, 2, 3, 4, 5, 6}, .sender_ip = {10, 0, 0, 9}};
    struct frame frame = {.size = 0};
    struct dissected out;

    (void)state;
    wire_put_ether(&frame, &ether);
    wire_put_arp(&frame, &arp);
    assert_true(dissect_frame(frame.data, frame.size, &out));
    assert_true(out.has_arp);
    assert_int_equal(out.arp.operation, 2);
    assert_memory_equal(out.arp.sender_ip, arp.sender_ip, 4);
    assert_true(dissect_frame(frame.data, frame.size - 1, &out));
    assert_false(out.has_arp);
}

static void a_fragment_has_no_ports(void **state)
{
    struct wire_ip ip = {
        .source = address("10.0.0.1"), .destination = address("10.0.0.2"), .protocol = 17, .fragment = 3};
    struct frame frame = {.size = 0};
    struct dissected out;

    (void)state;
    wire_put_ip(&frame, &ip, 16);
    wire_put(&frame, "0123456789abcdef", 16);
    assert_true(dissect_ip(frame.data, frame.size, &out));
    assert_int_equal(out.fragment_offset, 24);
    assert_int_equal(out.destination.port, 0);
    assert_int_equal(out.payload_size, 16);
}

static void a_quote_is_read_even_when_it_is_cut(void **state)
{
    struct wire_ip ip = {.source = address("10.0.0.2"), .destination = address("10.0.0.1"), .protocol = 1};
    struct frame quote = {.size = 0};
    struct frame frame = {.size = 0};
    struct dissected out;
    struct dissected quoted;

    (void)state;
    put_udp(&quote, "10.0.0.1", "10.0.0.2", "hello");
    wire_put_ip(&frame, &ip, 8 + 28);
    wire_put_icmp(&frame, &ip, 3, 3, 0, quote.data, 28);
    assert_true(dissect_ip(frame.data, frame.size, &out));
    assert_true(out.has_icmp);
    assert_true(dissect_quoted(&out, &quoted));
    assert_int_equal(quoted.source.port, 4000);
    assert_int_equal(quoted.payload_size, 0);
    frame.size = 0;
    wire_put_ip(&frame, &ip, 8 + 28);
    wire_put_icmp(&frame, &ip, 0, 0, 0, quote.data, 28);
    assert_true(dissect_ip(frame.data, frame.size, &out));
    assert_false(dissect_quoted(&out, &quoted));
}

/* Every prefix, in memory of exactly its size: a sanitizer sees any byte that is read behind it. */
static void no_prefix_is_read_past_its_end(void **state)
{
    static const uint16_t types[] = {0x0800, 0x86dd, 0x0806, 0x8100};

    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct wire_ether ether = {.tags = {5}, .tag_count = 1, .type = types[i]};
        struct frame frame = {.size = 0};
        wire_put_ether(&frame, &ether);
        put_udp(&frame, types[i] == 0x86dd ? "fd00::1" : "10.0.0.1", types[i] == 0x86dd ? "fd00::2" : "10.0.0.2", "x");
        for (size_t size = 0; size <= frame.size; size++) {
            uint8_t *copy = malloc(size ? size : 1);
            struct dissected out;
            struct dissected quoted;
            assert_non_null(copy);
            memcpy(copy, frame.data, size);
            bool read = dissect_frame(copy, size, &out);
            assert_int_equal(read, size >= 14);
            if (read) {
                assert_true(out.payload >= copy && out.payload + out.payload_size <= copy + size);
                (void)dissect_quoted(&out, &quoted);
            }
            free(copy);
        }
    }
}

static void containing_needs_something_to_contain(void **state)
{
    (void)state;
    assert_true(dissect_contains("xxtokenyy", 9, "token", 5));
    assert_false(dissect_contains("xxtoke", 6, "token", 5));
    assert_false(dissect_contains("anything", 8, "", 0));
    assert_false(dissect_contains(NULL, 0, "token", 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_built_is_found_again),  cmocka_unit_test(arp_is_read),
        cmocka_unit_test(a_fragment_has_no_ports),        cmocka_unit_test(a_quote_is_read_even_when_it_is_cut),
        cmocka_unit_test(no_prefix_is_read_past_its_end), cmocka_unit_test(containing_needs_something_to_contain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Mirrors probe/wire.c. */
#include "unit.h"
#include "wire.h"

#include <string.h>

static struct endpoint address(const char *text)
{
    struct endpoint endpoint = {0};

    assert_true(endpoint_parse(text, &endpoint));
    return endpoint;
}

static void the_checksum_is_that_of_rfc_1071(void **state)
{
    /* The RFC's own example, and the header that textbooks use. */
    static const uint8_t example[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
    static const uint8_t header[] = {0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
                                     0x00, 0x00, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};

    (void)state;
    assert_int_equal(wire_checksum(example, sizeof(example), 0), 0x220d);
    assert_int_equal(wire_checksum(header, sizeof(header), 0), 0xb861);
    assert_int_equal(wire_checksum("", 0, 0), 0xffff);
    assert_int_equal(wire_checksum("\x01", 1, 0), 0xfeff);
    assert_int_equal(wire_checksum("\xff\xff", 2, 0xffff), 0);
}

static void what_is_built_sums_to_zero(void **state)
{
    static const char *const pairs[][2] = {{"10.0.0.1", "10.0.0.2"}, {"fd00::1", "fd00::2"}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct wire_ip ip = {.source = address(pairs[i][0]), .destination = address(pairs[i][1])};
        struct wire_tcp tcp = {.source_port = 1, .destination_port = 2, .flags = 2};
        for (size_t size = 0; size < 5; size++) {
            struct frame udp = {.size = 0};
            struct frame segment = {.size = 0};
            wire_put_udp(&udp, &ip, 1000, 53, "abcd", size);
            assert_int_equal(udp.size, 8 + size);
            assert_int_equal(wire_checksum(udp.data, udp.size, wire_pseudo_sum(&ip, 17, udp.size)), 0);
            wire_put_tcp(&segment, &ip, &tcp, "abcd", size);
            assert_int_equal(wire_checksum(segment.data, segment.size, wire_pseudo_sum(&ip, 6, segment.size)), 0);
        }
    }
    struct frame icmp = {.size = 0};
    struct wire_ip ip = {.source = address("10.0.0.1"), .destination = address("10.0.0.2")};
    wire_put_icmp(&icmp, &ip, 8, 0, 0x12340001, "abc", 3);
    assert_int_equal(wire_checksum(icmp.data, icmp.size, 0), 0);
}

static void an_ip_header_carries_its_options(void **state)
{
    struct wire_ip ip = {
        .source = address("10.0.0.1"), .destination = address("10.0.0.2"), .protocol = 17, .options_size = 3};
    struct frame frame = {.size = 0};

    (void)state;
    wire_put_ip(&frame, &ip, 100);
    assert_int_equal(frame.size, 24);
    assert_int_equal(frame.data[0], 0x46);
    assert_int_equal(frame.data[2] << 8 | frame.data[3], 124);
    assert_int_equal(wire_checksum(frame.data, 24, 0), 0);
    ip.options_size = 1000;
    frame.size = 0;
    wire_put_ip(&frame, &ip, 0);
    assert_int_equal(frame.size, 60);
}

static void tags_stand_outermost_first(void **state)
{
    static const uint8_t expected[] = {1,  2,    3,    4, 5,   6,    7, 8,    9,    10,   11,
                                       12, 0x88, 0xa8, 0, 100, 0x81, 0, 0x0f, 0xff, 0x08, 0x06};
    struct wire_ether ether = {
        .destination = {1, 2, 3, 4, 5, 6},
        .source = {7, 8, 9, 10, 11, 12},
        .tags = {100, 4095},
        .tag_types = {0x88a8},
        .tag_count = 2,
        .type = 0x0806,
    };
    struct frame frame = {.size = 0};

    (void)state;
    wire_put_ether(&frame, &ether);
    assert_int_equal(frame.size, sizeof(expected));
    assert_memory_equal(frame.data, expected, sizeof(expected));
}

static void what_does_not_fit_is_told(void **state)
{
    static uint8_t much[WIRE_FRAME];
    struct frame frame = {.size = 0};

    (void)state;
    wire_put(&frame, much, sizeof(much));
    assert_false(frame.overflow);
    wire_put16(&frame, 1);
    assert_true(frame.overflow);
    assert_int_equal(frame.size, WIRE_FRAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checksum_is_that_of_rfc_1071), cmocka_unit_test(what_is_built_sums_to_zero),
        cmocka_unit_test(an_ip_header_carries_its_options), cmocka_unit_test(tags_stand_outermost_first),
        cmocka_unit_test(what_does_not_fit_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

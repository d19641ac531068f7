/* Mirrors probe/literal.c and probe/endpoint.c. */
#include "endpoint.h"
#include "literal.h"
#include "unit.h"

#include <arpa/inet.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void numbers(void **state)
{
    static const char *const bad[] = {"", "x", "-1", "+1", " 1", "1 ", "0x", "0xg", "65536", "99999999999999999999"};
    uint64_t number = 7;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_false(literal_number(bad[i], 0, 65535, &number));
        assert_int_equal(number, 7);
    }
    assert_true(literal_number("65535", 0, 65535, &number));
    assert_int_equal(number, 65535);
    assert_true(literal_number("0x88A8", 0, 65535, &number));
    assert_int_equal(number, 0x88a8);
    assert_false(literal_number("0", 1, 10, &number));
    assert_true(literal_number("18446744073709551615", 0, UINT64_MAX, &number));
}

static void macs(void **state)
{
    static const char *const bad[] = {
        "", "01:80:c2:00:00", "01:80:c2:00:00:0g", "01-80-c2-00-00-02", "1:80:c2:00:00:002", "01:80:c2:00:00:02:"};
    static const uint8_t reserved[6] = {0x01, 0x80, 0xc2, 0, 0, 0x0e};
    uint8_t mac[6] = {9};
    char text[LITERAL_MAC_TEXT];

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_false(literal_mac(bad[i], mac));
        assert_int_equal(mac[0], 9);
    }
    assert_true(literal_mac("01:80:C2:00:00:0e", mac));
    assert_memory_equal(mac, reserved, 6);
    assert_string_equal(literal_mac_text(mac, text), "01:80:c2:00:00:0e");
}

static void bytes(void **state)
{
    static const char *const bad_hex[] = {"0", "0x00", "zz", "0001020304050607080"};
    static const char *const bad_text[] = {"\\", "\\q", "\\x1", "123456789"};
    uint8_t out[8];
    size_t size = 77;

    (void)state;
    for (size_t i = 0; i < COUNT(bad_hex); i++) {
        assert_false(literal_hex(bad_hex[i], out, sizeof(out), &size));
        assert_false(literal_escaped(bad_text[i], out, sizeof(out), &size));
        assert_int_equal(size, 77);
    }
    assert_true(literal_hex("de:ad be EF", out, sizeof(out), &size));
    assert_int_equal(size, 4);
    assert_memory_equal(out, "\xde\xad\xbe\xef", 4);
    assert_true(literal_escaped("a\\r\\n\\0\\\\\\xFf", out, sizeof(out), &size));
    assert_int_equal(size, 6);
    assert_memory_equal(out, "a\r\n\0\\\xff", 6);
    assert_true(literal_hex("", out, sizeof(out), &size));
    assert_int_equal(size, 0);
}

static void lists(void **state)
{
    static const char *const bad[] = {"", ",", "1,", ",1", "1,,2", "65536", "1,2,3,4,5"};
    uint16_t numbers_out[4];
    size_t count = 77;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_false(literal_list16(bad[i], numbers_out, 4, &count));
        assert_int_equal(count, 77);
    }
    assert_true(literal_list16("0,4095,0x64", numbers_out, 4, &count));
    assert_int_equal(count, 3);
    assert_int_equal(numbers_out[1], 4095);
    assert_int_equal(numbers_out[2], 100);
}

static void addresses(void **state)
{
    static const char *const bad[] = {"",         "10.0.0",     "10.0.0.256", "010.0.0.1x",
                                      "fe80::1%", "10.0.0.1%1", "name",       "::g"};
    static const char *const good[] = {"10.0.0.1", "255.255.255.255", "::1", "fd00::1"};
    struct endpoint endpoint = {.port = 9};
    char text[ENDPOINT_TEXT];

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_false(endpoint_parse(bad[i], &endpoint));
        assert_int_equal(endpoint.port, 9);
    }
    for (size_t i = 0; i < COUNT(good); i++) {
        assert_true(endpoint_parse(good[i], &endpoint));
        assert_string_equal(endpoint_text(&endpoint, text), good[i]);
    }
    assert_true(endpoint_parse("fe80::1%4711", &endpoint));
    assert_int_equal(endpoint.scope, 4711);
    assert_true(endpoint_parse("ff02::1", &endpoint));
    assert_true(endpoint_is_multicast(&endpoint));
    endpoint = (struct endpoint){0};
    assert_string_equal(endpoint_text(&endpoint, text), "none");
}

static void addresses_with_ports(void **state)
{
    static const char *const bad[] = {"",           "10.0.0.1",      "10.0.0.1:", "10.0.0.1:65536",
                                      "fd00::1:80", "[10.0.0.1]:80", "[]:1",      ":1"};
    struct endpoint endpoint;
    struct endpoint back;
    struct sockaddr_storage address;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_false(endpoint_parse_with_port(bad[i], &endpoint));
    }
    assert_true(endpoint_parse_with_port("10.0.0.1:53", &endpoint));
    assert_int_equal(endpoint.port, 53);
    assert_true(endpoint_parse_with_port("[fd00::1]:80", &endpoint));
    assert_int_equal(endpoint_to_sockaddr(&endpoint, &address), sizeof(struct sockaddr_in6));
    back = endpoint_from_sockaddr((struct sockaddr *)&address);
    assert_true(endpoint_same_address(&endpoint, &back));
    assert_int_equal(back.port, 80);
    address.ss_family = AF_UNIX;
    back = endpoint_from_sockaddr((struct sockaddr *)&address);
    assert_int_equal(back.family, 0);
    assert_false(endpoint_same_address(&back, &back));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers), cmocka_unit_test(macs),      cmocka_unit_test(bytes),
        cmocka_unit_test(lists),   cmocka_unit_test(addresses), cmocka_unit_test(addresses_with_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

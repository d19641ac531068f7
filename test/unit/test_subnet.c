/* Mirrors src/stack/subnet.c. */
#include "stack/subnet.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "unit.h"

#include <string.h>

static struct subnet parsed(const char *text)
{
    struct subnet subnet = {0};
    assert_true(subnet_parse(text, &subnet));
    return subnet;
}

static void only_strict_subnets_parse(void **state)
{
    static const char *const bad[] = {NULL,
                                      "",
                                      "10.88.0.0",
                                      "10.88.0.0/",
                                      "10.88.0.0/33",
                                      "10.88.0.1/24",
                                      "10.88.0/24",
                                      "10.88.0.0/024",
                                      "010.88.0.0/24",
                                      "10.88.0.256/32",
                                      " 10.88.0.0/24",
                                      "10.88.0.0/24 ",
                                      "10.88.0.0/-1",
                                      "a.b.c.d/24",
                                      "10.88.0.0.0/24",
                                      "1.2.3.4/1/2"};
    struct subnet subnet = {.base = 7, .prefix = 7};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        assert_false(subnet_parse(bad[i], &subnet));
        assert_int_equal(subnet.base, 7);
    }
    assert_true(subnet_parse("10.88.0.0/24", &subnet));
    assert_int_equal(subnet.base, 0x0a580000);
    assert_int_equal(subnet.prefix, 24);
    assert_true(subnet_parse("0.0.0.0/0", &subnet));
    assert_true(subnet_parse("255.255.255.255/32", &subnet));
}

static void addresses_have_their_places(void **state)
{
    char text[SUBNET_TEXT];
    struct subnet subnet = parsed("10.88.0.0/24");
    subnet_format_address(subnet_gateway(subnet), text);
    assert_string_equal(text, "10.88.0.1");
    subnet_format_address(subnet_broadcast(subnet), text);
    assert_string_equal(text, "10.88.0.255");
    subnet_format(subnet_around(0x0a5800ff, 24), text);
    assert_string_equal(text, "10.88.0.0/24");
    subnet_format(parsed("255.255.255.255/32"), text);
    assert_string_equal(text, "255.255.255.255/32");
    assert_true(subnet_contains(subnet, 0x0a580001));
    assert_false(subnet_contains(subnet, 0x0a580101));
}

static void overlap_goes_both_ways(void **state)
{
    assert_true(subnet_overlap(parsed("10.88.0.0/24"), parsed("10.0.0.0/8")));
    assert_true(subnet_overlap(parsed("10.0.0.0/8"), parsed("10.88.0.0/24")));
    assert_true(subnet_overlap(parsed("10.88.0.0/24"), parsed("10.88.0.77/32")));
    assert_false(subnet_overlap(parsed("10.88.0.0/24"), parsed("10.88.1.0/24")));
    assert_true(subnet_overlap(parsed("0.0.0.0/0"), parsed("10.88.1.0/24")));
}

static void the_first_free_subnet_is_picked(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    struct subnet_claim claims[] = {
        {.subnet = parsed("10.88.0.1/32"), .owner = "address 10.88.0.1 on eth0"},
        {.subnet = parsed("10.89.0.0/16"), .owner = "a route"},
        {.subnet = parsed("10.90.0.128/25"), .owner = "another"},
    };
    struct subnet subnet;
    char text[SUBNET_TEXT];
    assert_int_equal(subnet_pick(NULL, 0, &subnet, &err), 0);
    subnet_format(subnet, text);
    assert_string_equal(text, "10.88.0.0/24");
    assert_int_equal(subnet_pick(claims, ARRAY_LENGTH(claims), &subnet, &err), 0);
    subnet_format(subnet, text);
    assert_string_equal(text, "10.91.0.0/24");
}

static void a_host_without_a_free_subnet_is_told(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    struct subnet_claim all = {.subnet = parsed("10.0.0.0/8"), .owner = "a route to 10.0.0.0/8 on tun0"};
    struct subnet subnet = {.prefix = 3};
    assert_int_equal(subnet_pick(&all, 1, &subnet, &err), -1);
    assert_int_equal(err.code, ERR_STATE);
    assert_non_null(strstr(err.message, "tun0"));
    assert_non_null(err.remedy);
    assert_int_equal(subnet.prefix, 3);
}

static void a_pin_is_honoured_or_refused(void **state)
{
    static const char *const bad[] = {"10.88.0.1/24", "8.8.8.0/24", "10.0.0.0/8",
                                      "10.88.0.0/30", "boxes",      "172.32.0.0/24"};
    struct subnet_claim taken = {.subnet = parsed("10.88.0.0/24"), .owner = "an address in 10.88.0.0/24 on eth0"};
    struct subnet subnet;
    CLEANUP(error_reset) struct error err = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        assert_int_equal(subnet_check_pin(bad[i], NULL, 0, &subnet, &err), -1);
        assert_int_equal(err.code, ERR_USAGE);
    }
    assert_int_equal(subnet_check_pin("10.88.0.0/24", &taken, 1, &subnet, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_non_null(strstr(err.message, "on eth0"));
    assert_int_equal(subnet_check_pin("172.31.4.0/24", &taken, 1, &subnet, &err), 0);
    assert_int_equal(subnet.prefix, 24);
}

static void only_addresses_of_the_internet_are_public(void **state)
{
    static const char *const special[] = {"0.0.0.0",     "10.0.0.1",      "100.64.0.1",   "100.127.255.255", "127.0.0.53",
                                          "169.254.1.1", "172.31.255.1",  "192.0.2.1",    "192.168.50.1",    "198.19.255.255",
                                          "224.0.0.1",   "240.0.0.1",     "203.0.113.9",  "255.255.255.255"};
    static const char *const open[] = {"1.1.1.1", "8.8.8.8", "100.128.0.1", "172.32.0.1", "192.0.1.1", "198.20.0.1", "223.255.255.255"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(special); i++) {
        uint32_t address = 0;
        assert_true(subnet_parse_address(special[i], &address));
        assert_false(subnet_is_public(address));
    }
    for (size_t i = 0; i < ARRAY_LENGTH(open); i++) {
        uint32_t address = 0;
        assert_true(subnet_parse_address(open[i], &address));
        assert_true(subnet_is_public(address));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_strict_subnets_parse),
        cmocka_unit_test(addresses_have_their_places),
        cmocka_unit_test(overlap_goes_both_ways),
        cmocka_unit_test(the_first_free_subnet_is_picked),
        cmocka_unit_test(a_host_without_a_free_subnet_is_told),
        cmocka_unit_test(a_pin_is_honoured_or_refused),
        cmocka_unit_test(only_addresses_of_the_internet_are_public),
    };
    return cmocka_run_group_tests_name("subnet", tests, NULL, NULL);
}

/* Mirrors src/host/link.c; the rest of it is tested in the lab. */
#include "host/link.h"

#include "base/cleanup.h"
#include "unit.h"

#include <string.h>

static void macs_go_there_and_back(void **state)
{
    uint8_t mac[6];
    char text[18];
    assert_true(link_parse_mac("10:66:6A:0a:Fb:00", mac));
    link_format_mac(mac, text);
    assert_string_equal(text, "10:66:6a:0a:fb:00");
}

static void only_macs_are_macs(void **state)
{
    static const char *const bad[] = {NULL,
                                      "",
                                      "10:66:6a:0a:fb",
                                      "10:66:6a:0a:fb:0",
                                      "10:66:6a:0a:fb:000",
                                      "10-66-6a-0a-fb-00",
                                      "g0:66:6a:0a:fb:00",
                                      "10:66:6a:0a:fb:0\n"};
    uint8_t mac[6] = {7};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        assert_false(link_parse_mac(bad[i], mac));
        assert_int_equal(mac[0], 7);
    }
}

static void links_are_found_by_their_whole_name(void **state)
{
    struct link links[] = {{.index = 1, .name = "boxnet0"}, {.index = 2, .name = "boxnet"}};
    assert_int_equal(link_find(links, 2, "boxnet")->index, 2);
    assert_null(link_find(links, 2, "box"));
    assert_null(link_find(NULL, 0, "box"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(macs_go_there_and_back),
        cmocka_unit_test(only_macs_are_macs),
        cmocka_unit_test(links_are_found_by_their_whole_name),
    };
    return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}

/* Mirrors src/stack/filter.c. */
#include "stack/filter.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "unit.h"

#include <string.h>

#define MAC   "10:66:6a:1a:f5:52"
#define OTHER "10:66:6a:8b:ff:30"

/* One rule of the chain: iifname veth1, LEFT != RIGHT, then the verdict; `more` is a further expression or "". */
static void add_rule(struct buffer *text, const char *chain, const char *protocol, const char *field, const char *right,
                     const char *more, const char *verdict)
{
    buffer_append_format(text,
                         ",{\"rule\":{\"chain\":\"%s\",\"expr\":[{\"match\":{\"op\":\"==\",\"left\":{\"meta\":{\"key\":"
                         "\"iifname\"}},\"right\":\"veth1\"}},%s{\"match\":{\"op\":\"!=\",\"left\":{\"payload\":"
                         "{\"protocol\":\"%s\",\"field\":\"%s\"}},\"right\":%s}},{\"%s\":null}]}}",
                         chain, more, protocol, field, right, verdict);
}

static void add_chain(struct buffer *text, const char *chain, const char *mac, const char *address)
{
    CLEANUP(freep) char *quoted_mac = xasprintf("\"%s\"", mac);
    CLEANUP(freep) char *quoted_address = xasprintf("\"%s\"", address);
    add_rule(text, chain, "ether", "saddr", quoted_mac, "", "drop");
    add_rule(text, chain, "arp", "saddr ip", quoted_address, "", "drop");
    add_rule(text, chain, "ip", "saddr", quoted_address, "", "drop");
}

static void begin(struct buffer *text)
{
    buffer_append_text(text, "[{\"metainfo\":{}},{\"chain\":{\"name\":\"in.a\",\"hook\":\"input\"}},"
                             "{\"chain\":{\"name\":\"fwd.a\",\"hook\":\"forward\"}},{\"chain\":{\"name\":\"idle\"}}");
}

/* Parses the listing; asserts that it has `count` filters and returns the first. */
static struct filter read_one(struct buffer *text, size_t expected)
{
    CLEANUP(json_freep) json_t *listing = NULL;
    CLEANUP(freep) struct filter *filters = NULL;
    size_t count = 0;
    buffer_append_text(text, "]");
    assert_int_equal(json_parse(text->data, text->length, "test", &listing, NULL), 0);
    filter_parse(listing, &filters, &count);
    assert_int_equal(count, expected);
    return count > 0 ? filters[0] : (struct filter){0};
}

static void both_hooks_make_a_live_filter(void **state)
{
    static const uint8_t mac[6] = {0x10, 0x66, 0x6a, 0x1a, 0xf5, 0x52};
    CLEANUP(buffer_reset) struct buffer text = {0};
    begin(&text);
    add_chain(&text, "in.a", MAC, "10.88.0.2");
    add_chain(&text, "fwd.a", MAC, "10.88.0.2");
    struct filter filter = read_one(&text, 1);
    assert_string_equal(filter.interface, "veth1");
    assert_true(filter.mac_live && filter.address_live);
    assert_memory_equal(filter.mac, mac, sizeof(mac));
    assert_int_equal(filter.address, 0x0a580002);
}

static void one_hook_is_not_enough(void **state)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    begin(&text);
    add_chain(&text, "in.a", MAC, "10.88.0.2");
    add_chain(&text, "idle", MAC, "10.88.0.2");
    struct filter filter = read_one(&text, 1);
    assert_true(filter.has_mac && filter.has_address);
    assert_false(filter.mac_live);
    assert_false(filter.address_live);
}

static void two_addresses_are_a_conflict(void **state)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    begin(&text);
    add_chain(&text, "in.a", MAC, "10.88.0.2");
    add_chain(&text, "fwd.a", OTHER, "10.88.0.3");
    struct filter filter = read_one(&text, 1);
    assert_false(filter.mac_live);
    assert_false(filter.address_live);
}

static void sets_and_prefixes_of_one_are_one(void **state)
{
    static const char single[] = "{\"set\":[\"10.88.0.2\"]}";
    static const char prefix[] = "{\"set\":[{\"prefix\":{\"addr\":\"10.88.0.2\",\"len\":32}}]}";
    CLEANUP(buffer_reset) struct buffer text = {0};
    begin(&text);
    add_rule(&text, "in.a", "ip", "saddr", single, "", "drop");
    add_rule(&text, "in.a", "arp", "saddr ip", prefix, "", "drop");
    add_rule(&text, "fwd.a", "ip", "saddr", single, "", "drop");
    add_rule(&text, "fwd.a", "arp", "saddr ip", prefix, "", "drop");
    struct filter filter = read_one(&text, 1);
    assert_true(filter.address_live);
    assert_false(filter.has_mac);
}

static void wide_sets_and_narrow_rules_do_not_count(void **state)
{
    static const char two[] = "{\"set\":[\"10.88.0.2\",\"10.88.0.3\"]}";
    static const char tcp[] =
        "{\"match\":{\"op\":\"==\",\"left\":{\"payload\":{\"protocol\":\"tcp\",\"field\":\"dport\"}},"
        "\"right\":80}},";
    static const char ethertype[] = "{\"match\":{\"op\":\"==\",\"left\":{\"payload\":{\"protocol\":\"ether\",\"field\":"
                                    "\"type\"}},\"right\":\"ip\"}},";
    CLEANUP(buffer_reset) struct buffer text = {0};
    begin(&text);
    /* A range of addresses is no address; a drop of one port only, or an accept, drops nothing else. */
    add_rule(&text, "in.a", "ip", "saddr", two, "", "drop");
    add_rule(&text, "in.a", "arp", "saddr ip", "\"10.88.0.2\"", tcp, "drop");
    add_rule(&text, "in.a", "ether", "saddr", "\"" MAC "\"", "", "accept");
    /* The protocol that the comparison implies anyway is no narrowing. */
    add_rule(&text, "fwd.a", "ip", "saddr", "\"10.88.0.2\"", ethertype, "drop");
    add_rule(&text, "fwd.a", "arp", "saddr ip", "\"10.88.0.2\"", "", "drop");
    struct filter filter = read_one(&text, 1);
    assert_false(filter.address_live);
    assert_false(filter.mac_live);
    assert_true(filter.has_address);
    assert_false(filter.has_mac);
}

static void foreign_shapes_are_no_filters(void **state)
{
    CLEANUP(json_freep) json_t *odd =
        json_pack("[i, s, {s:i}, {s:{s:s, s:[n, i]}}]", 1, "x", "rule", 3, "rule", "chain", "in.a", "expr", 4);
    CLEANUP(freep) struct filter *filters = NULL;
    size_t count = 9;
    assert_non_null(odd);
    filter_parse(odd, &filters, &count);
    assert_int_equal(count, 0);
    filter_parse(NULL, &filters, &count);
    assert_int_equal(count, 0);
    assert_null(filter_find(filters, count, "veth1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_hooks_make_a_live_filter),
        cmocka_unit_test(one_hook_is_not_enough),
        cmocka_unit_test(two_addresses_are_a_conflict),
        cmocka_unit_test(sets_and_prefixes_of_one_are_one),
        cmocka_unit_test(wide_sets_and_narrow_rules_do_not_count),
        cmocka_unit_test(foreign_shapes_are_no_filters),
    };
    return cmocka_run_group_tests_name("filter", tests, NULL, NULL);
}

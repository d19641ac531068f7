/* Mirrors src/stack/ruleset.c. What the kernel makes of the text is tested in the lab. */
#include "stack/ruleset.h"

#include "base/memory.h"
#include "unit.h"

#include <string.h>

static struct ruleset_port port = {.index = 7, .mac = {0x10, 0x66, 0x6a, 1, 2, 3}, .address = 0x0a580005};
static int members[] = {7, 9};
static struct ruleset_uplink uplinks[] = {{"eth0", 0x01020301}, {"ppp0", 0}};

static struct ruleset full(void)
{
    return (struct ruleset){
        .has_subnet = true,
        .subnet = {0x0a580000, 24},
        .gateway = 0x0a580001,
        .ports = &port,
        .port_count = 1,
        .members = members,
        .member_count = 2,
        .uplinks = uplinks,
        .uplink_count = 2,
    };
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) {
        count++;
    }
    return count;
}

static void both_copies_say_the_same(void **state)
{
    CLEANUP(buffer_reset) struct buffer fixed = {0};
    CLEANUP(buffer_reset) struct buffer owned = {0};
    struct ruleset ruleset = full();
    ruleset_write(&ruleset, RULESET_STATIC, &fixed);
    ruleset_write(&ruleset, RULESET_OWNED, &owned);
    assert_int_equal(count_of(fixed.data, "flags owner"), 0);
    assert_int_equal(count_of(owned.data, "flags owner"), 6);
    assert_int_equal(count_of(fixed.data, " drop\n"), count_of(owned.data, " drop\n"));
    assert_int_equal(count_of(fixed.data, "delete table"), 3);
    assert_int_equal(count_of(owned.data, "box-owned"), count_of(fixed.data, " box ") + count_of(fixed.data, " box\n"));
}

static void elements_follow_the_facts(void **state)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    struct ruleset ruleset = full();
    ruleset_write_elements(&ruleset, RULESET_STATIC, &text);
    assert_non_null(strstr(text.data, "add element bridge box armed { 7 . 10:66:6a:01:02:03 . 10.88.0.5, "
                                      "7 . 10:66:6a:01:02:03 . 0.0.0.0 }"));
    assert_non_null(strstr(text.data, "add element bridge box ports { 7, 9 }"));
    assert_non_null(strstr(text.data, "add element inet box uplink { \"eth0\" . 1.2.3.1 }"));
    assert_non_null(strstr(text.data, "add element inet box direct { \"ppp0\" }"));
    assert_int_equal(count_of(text.data, "flush set"), RULESET_SET_COUNT);
}

static void no_facts_mean_no_elements(void **state)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    struct ruleset ruleset = {0};
    ruleset_write_elements(&ruleset, RULESET_OWNED, &text);
    assert_int_equal(count_of(text.data, "add element"), 0);
    assert_int_equal(count_of(text.data, "flush set"), RULESET_SET_COUNT);
}

static void without_a_subnet_nothing_is_accepted(void **state)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    struct ruleset ruleset = full();
    ruleset.has_subnet = false;
    ruleset_write(&ruleset, RULESET_STATIC, &text);
    assert_null(strstr(text.data, "dport"));
    assert_null(strstr(text.data, "10.88.0.0/24"));
    assert_non_null(strstr(text.data, "meta nfproto ipv6 drop\n\t\tdrop\n"));
}

static void the_bridge_is_named_where_the_kernel_can(void **state)
{
    CLEANUP(buffer_reset) struct buffer plain = {0};
    CLEANUP(buffer_reset) struct buffer named = {0};
    struct ruleset ruleset = full();
    ruleset_write(&ruleset, RULESET_STATIC, &plain);
    ruleset.bridge_meta = true;
    ruleset_write(&ruleset, RULESET_STATIC, &named);
    assert_null(strstr(plain.data, "ibrname"));
    assert_non_null(strstr(named.data, "meta ibrname \"boxnet\" drop"));
    assert_non_null(strstr(named.data, "meta obrname \"boxnet\" drop"));
}

static void sameness_tells_rules_from_elements(void **state)
{
    struct ruleset a = full(), b = full();
    assert_true(ruleset_same_rules(&a, &b));
    assert_true(ruleset_same_elements(&a, &b));
    b.port_count = 0;
    assert_true(ruleset_same_rules(&a, &b));
    assert_false(ruleset_same_elements(&a, &b));
    b = full();
    b.gateway++;
    assert_false(ruleset_same_rules(&a, &b));
    assert_true(ruleset_same_elements(&a, &b));
    b = full();
    b.has_subnet = false;
    assert_false(ruleset_same_rules(&a, &b));
}

static void removal_names_every_table(void **state)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    ruleset_write_removal(RULESET_STATIC, &text);
    assert_string_equal(text.data, "table bridge box\ndelete table bridge box\ntable arp box\ndelete table arp box\n"
                                   "table inet box\ndelete table inet box\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_copies_say_the_same),
        cmocka_unit_test(elements_follow_the_facts),
        cmocka_unit_test(no_facts_mean_no_elements),
        cmocka_unit_test(without_a_subnet_nothing_is_accepted),
        cmocka_unit_test(the_bridge_is_named_where_the_kernel_can),
        cmocka_unit_test(sameness_tells_rules_from_elements),
        cmocka_unit_test(removal_names_every_table),
    };
    return cmocka_run_group_tests_name("ruleset", tests, NULL, NULL);
}

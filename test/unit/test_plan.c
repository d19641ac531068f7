/* Mirrors src/stack/plan.c. */
#include "stack/plan.h"

#include "base/memory.h"
#include "unit.h"

#include <string.h>

#define BRIDGE 5

/* A host with boxnet and two boxes, all well; each test spoils one thing. */
struct host {
    struct link links[4];
    struct filter filters[2];
    struct ruleset_uplink uplink;
    struct plan_facts facts;
};

static struct filter live_filter(const char *interface, uint8_t last, uint32_t address)
{
    struct filter filter = {.has_mac = true, .has_address = true, .mac_live = true, .address_live = true};
    memcpy(filter.interface, interface, strlen(interface));
    memcpy(filter.mac, (uint8_t[]){0x10, 0x66, 0x6a, 0, 0, last}, sizeof(filter.mac));
    filter.address = address;
    return filter;
}

static void make_host(struct host *host)
{
    *host = (struct host){
        .links = {{.index = 1, .name = "eth0"},
                  {.index = BRIDGE, .name = "boxnet", .kind = "bridge", .mac = {0x10, 0x66, 0x6a, 9, 9, 9}},
                  {.index = 7, .name = "veth1", .master = BRIDGE, .bridge_port = true, .isolated = true},
                  {.index = 9, .name = "veth2", .master = BRIDGE, .bridge_port = true, .isolated = true}},
        .uplink = {.interface = "eth0", .gateway = 0x01020301},
    };
    host->filters[0] = live_filter("veth1", 1, 0x0a580002);
    host->filters[1] = live_filter("veth2", 2, 0x0a580003);
    host->facts = (struct plan_facts){
        .links = host->links,
        .link_count = 4,
        .bridge = &host->links[1],
        .filters = host->filters,
        .filter_count = 2,
        .has_address = true,
        .gateway = 0x0a580001,
        .prefix = 24,
        .uplinks = &host->uplink,
        .uplink_count = 1,
    };
}

/* The verdicts as "+" and "-", in the order of the ports; the first refusal's reason. */
static void verdicts(const struct host *host, char ret_verdicts[4], char ret_reason[96])
{
    CLEANUP(plan_reset) struct plan plan = {0};
    plan_make(&host->facts, &plan);
    assert_int_equal(plan.port_count, 2);
    ret_reason[0] = '\0';
    for (size_t i = 0; i < plan.port_count; i++) {
        ret_verdicts[i] = plan.ports[i].armed ? '+' : '-';
        if (!plan.ports[i].armed && ret_reason[0] == '\0') {
            memcpy(ret_reason, plan.ports[i].reason, 96);
        }
    }
    ret_verdicts[plan.port_count] = '\0';
}

static void expect(const struct host *host, const char *wanted, const char *word)
{
    char got[4], reason[96];
    verdicts(host, got, reason);
    assert_string_equal(got, wanted);
    assert_non_null(strstr(reason, word));
}

static void healthy_ports_are_armed(void **state)
{
    struct host host;
    make_host(&host);
    expect(&host, "++", "");
}

static void each_missing_fact_disarms(void **state)
{
    struct host host;
    make_host(&host);
    host.links[2].isolated = false;
    expect(&host, "-+", "isolated");
    make_host(&host);
    host.filters[0].mac_live = false;
    expect(&host, "-+", "mac_filtering");
    make_host(&host);
    host.filters[1].address_live = false;
    expect(&host, "+-", "ipv4_filtering");
    make_host(&host);
    host.facts.filter_count = 1;
    expect(&host, "+-", "mac_filtering");
    make_host(&host);
    host.facts.has_address = false;
    expect(&host, "--", "no address");
}

static void twins_are_both_disarmed(void **state)
{
    struct host host;
    make_host(&host);
    host.filters[1].address = host.filters[0].address;
    expect(&host, "--", "its address is that of veth2");
    make_host(&host);
    memcpy(host.filters[1].mac, host.filters[0].mac, sizeof(host.filters[0].mac));
    expect(&host, "--", "its MAC is that of veth2");
}

static void a_twin_without_filters_still_counts(void **state)
{
    struct host host;
    make_host(&host);
    memcpy(host.filters[1].mac, host.filters[0].mac, sizeof(host.filters[0].mac));
    host.filters[1].mac_live = false;
    expect(&host, "--", "its MAC is that of veth2");
}

static void a_ghost_does_not_silence_a_living_port(void **state)
{
    struct host host;
    make_host(&host);
    host.filters[1].address = host.filters[0].address;
    host.links[2].carrier = true;
    host.links[3].peer_here = true;
    expect(&host, "+-", "its address is that of veth1");
    /* With carrier it is no ghost, and neither can be believed; nor where its guest holds the other end. */
    host.links[3].carrier = true;
    expect(&host, "--", "its address is that of veth2");
    host.links[3].carrier = false;
    host.links[3].peer_here = false;
    expect(&host, "--", "its address is that of veth2");
    /* Two that wait for their guests: no telling which. */
    host.links[2].carrier = false;
    host.links[3].peer_here = true;
    expect(&host, "--", "its address is that of veth2");
}

static void addresses_that_are_no_boxes_are_refused(void **state)
{
    static const uint32_t bad[] = {0x0a580000, 0x0a580001, 0x0a5800ff, 0x0a590002, 0x08080808};
    struct host host;
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        make_host(&host);
        host.filters[0].address = bad[i];
        expect(&host, "-+", "address");
    }
    make_host(&host);
    memcpy(host.filters[0].mac, host.links[1].mac, sizeof(host.filters[0].mac));
    expect(&host, "-+", "itself");
    make_host(&host);
    host.filters[0].mac[0] |= 1;
    expect(&host, "-+", "group");
}

static void a_host_without_boxnet_has_no_ports(void **state)
{
    struct host host;
    CLEANUP(plan_reset) struct plan plan = {0};
    CLEANUP(ruleset_reset) struct ruleset ruleset = {0};
    make_host(&host);
    host.facts.bridge = NULL;
    host.facts.has_address = false;
    plan_make(&host.facts, &plan);
    plan_ruleset(&host.facts, &plan, false, &ruleset);
    assert_int_equal(plan.port_count, 0);
    assert_false(ruleset.has_subnet);
    assert_int_equal(ruleset.uplink_count, 1);
}

static void every_port_is_a_member_and_armed_ones_speak(void **state)
{
    struct host host;
    CLEANUP(plan_reset) struct plan plan = {0};
    CLEANUP(ruleset_reset) struct ruleset ruleset = {0};
    make_host(&host);
    host.links[3].isolated = false;
    plan_make(&host.facts, &plan);
    plan_ruleset(&host.facts, &plan, true, &ruleset);
    assert_int_equal(ruleset.member_count, 2);
    assert_int_equal(ruleset.port_count, 1);
    assert_int_equal(ruleset.ports[0].index, 7);
    assert_int_equal(ruleset.ports[0].address, 0x0a580002);
    assert_int_equal(ruleset.subnet.base, 0x0a580000);
    assert_true(ruleset.bridge_meta);
}

static void what_is_published_is_what_was_judged(void **state)
{
    struct host host;
    CLEANUP(plan_reset) struct plan plan = {0};
    make_host(&host);
    host.filters[1].has_address = false;
    plan_make(&host.facts, &plan);
    CLEANUP(freep) struct arm_port *ports = plan_publish(&plan);
    assert_string_equal(ports[0].interface, "veth1");
    assert_string_equal(ports[0].mac, "10:66:6a:00:00:01");
    assert_string_equal(ports[0].address, "10.88.0.2");
    assert_true(ports[0].armed);
    assert_string_equal(ports[1].address, "");
    assert_false(ports[1].armed);
    assert_true(strlen(ports[1].reason) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy_ports_are_armed),
        cmocka_unit_test(each_missing_fact_disarms),
        cmocka_unit_test(twins_are_both_disarmed),
        cmocka_unit_test(a_twin_without_filters_still_counts),
        cmocka_unit_test(a_ghost_does_not_silence_a_living_port),
        cmocka_unit_test(addresses_that_are_no_boxes_are_refused),
        cmocka_unit_test(a_host_without_boxnet_has_no_ports),
        cmocka_unit_test(every_port_is_a_member_and_armed_ones_speak),
        cmocka_unit_test(what_is_published_is_what_was_judged),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}

/* The ACL box-isolate: what a box may not reach, said in Incus's own terms, a second layer beside the nft tables.
 * It never sees two boxes of one bridge (their frames are switched), nor what a box sends to the host's own addresses.
 * Not for the walls themselves: ruleset.c. */
#include "base/memory.h"
#include "base/text.h"
#include "stack/names.h"
#include "stack/table.h"

#define NAME "ACL " STACK_ACL
#define PATH "/1.0/network-acls/" STACK_ACL

/* IANA's special-purpose ranges, in groups that a person can tell apart. */
static const struct {
    const char *destination, *description;
} dropped[] = {
    {"10.0.0.0/8,172.16.0.0/12,192.168.0.0/16", "private networks: the LAN, the host, other boxes"},
    {"100.64.0.0/10", "neighbours behind a provider's NAT"},
    {"169.254.0.0/16", "link-local addresses and a cloud's metadata"},
    {"0.0.0.0/8,127.0.0.0/8", "this host"},
    {"192.0.0.0/24,192.0.2.0/24,192.88.99.0/24,198.18.0.0/15,198.51.100.0/24,203.0.113.0/24", "special-purpose ranges"},
    {"224.0.0.0/4,240.0.0.0/4", "multicast and reserved ranges"},
};

static json_t *wanted_egress(void)
{
    json_t *rules = json_array();
    for (size_t i = 0; i < ARRAY_LENGTH(dropped); i++) {
        (void)json_array_append_new(rules, json_pack("{s:s, s:s, s:s, s:s}", "action", "drop", "state", "enabled",
                                                     "destination", dropped[i].destination, "description",
                                                     dropped[i].description));
    }
    return rules;
}

/* The host may call on a box (and sees the answers by rule I1 of the input chain); nobody else may begin a flow. */
static json_t *wanted_ingress(const struct stack *stack)
{
    char gateway[SUBNET_TEXT];
    subnet_format_address(stack->gateway, gateway);
    return json_pack("[{s:s, s:s, s:s, s:s}]", "action", "allow", "state", "enabled", "source", gateway, "description",
                     "the host itself");
}

static bool same_rule(const json_t *live, const json_t *wanted)
{
    static const char *const keys[] = {"action",   "state",     "source",    "destination", "destination_port",
                                       "protocol", "icmp_type", "icmp_code", "source_port", "description"};
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
        const char *a = json_text(live, keys[i]), *b = json_text(wanted, keys[i]);
        if (!text_equal(text_is_empty(a) ? NULL : a, text_is_empty(b) ? NULL : b)) {
            return false;
        }
    }
    return true;
}

static bool has_rule(const json_t *rules, const json_t *rule)
{
    size_t i;
    const json_t *other;
    json_array_foreach(rules, i, other)
    {
        if (same_rule(other, rule)) {
            return true;
        }
    }
    return false;
}

static char *describe_rule(const json_t *rule)
{
    const char *source = json_text(rule, "source"), *destination = json_text(rule, "destination");
    return xasprintf("%s%s%s%s%s", json_text(rule, "action") != NULL ? json_text(rule, "action") : "?",
                     text_is_empty(source) ? "" : " from ", text_is_empty(source) ? "" : source,
                     text_is_empty(destination) ? "" : " to ", text_is_empty(destination) ? "" : destination);
}

static void compare_rules(json_t *changes, const char *direction, const json_t *live, const json_t *wanted)
{
    size_t i;
    const json_t *rule;
    CLEANUP(freep) char *item = xasprintf("%s rule", direction);
    json_array_foreach(wanted, i, rule)
    {
        if (!has_rule(live, rule)) {
            CLEANUP(freep) char *text = describe_rule(rule);
            table_change(changes, NAME, item, NULL, text, json_text(rule, "description"));
        }
    }
    json_array_foreach(live, i, rule)
    {
        if (!has_rule(wanted, rule)) {
            CLEANUP(freep) char *text = describe_rule(rule);
            table_change(changes, NAME, item, text, NULL, "it is none of ours");
        }
    }
}

static int judge(struct stack *stack, json_t *changes, struct error *err)
{
    CLEANUP(json_freep) json_t *acl = NULL;
    CLEANUP(json_freep) json_t *egress = wanted_egress();
    CLEANUP(json_freep) json_t *ingress = wanted_ingress(stack);
    int found = table_get(stack, PATH, &acl, err);
    if (found < 0 || (found > 0 && table_check_mark(acl, NAME, err) < 0)) {
        return -1;
    }
    if (found == 0) {
        table_change(changes, NAME, "ACL", NULL, "present", "the second layer against private networks is missing");
        return 0;
    }
    compare_rules(changes, "egress", json_object_get(acl, "egress"), egress);
    compare_rules(changes, "ingress", json_object_get(acl, "ingress"), ingress);
    return 0;
}

static int converge(struct stack *stack, const json_t *changes, struct narrator *narrator, struct error *err)
{
    CLEANUP(json_freep) json_t *acl = NULL;
    (void)changes;
    (void)narrator;
    CLEANUP(json_freep) json_t *body =
        json_pack("{s:s, s:{s:s}, s:o, s:o}", "description", "What a box may not reach (made by box setup-host)",
                  "config", TABLE_MARK, "1", "egress", wanted_egress(), "ingress", wanted_ingress(stack));
    int found = table_get(stack, PATH, &acl, err);
    if (found < 0) {
        return -1;
    }
    if (found > 0) {
        return client_request(stack->client, "PUT", PATH, body, NULL, err);
    }
    (void)json_object_set_new(body, "name", json_string(STACK_ACL));
    return client_request(stack->client, "POST", "/1.0/network-acls", body, NULL, err);
}

static int remove_acl(struct stack *stack, struct narrator *narrator, struct error *err)
{
    CLEANUP(json_freep) json_t *acl = NULL;
    int found = table_get(stack, PATH, &acl, err);
    (void)narrator;
    if (found <= 0) {
        return found;
    }
    return table_check_mark(acl, NAME, err) < 0 ? -1 : client_request(stack->client, "DELETE", PATH, NULL, NULL, err);
}

static int stands(struct stack *stack, struct argv *ret_standing, struct error *err)
{
    return table_stands(stack, PATH, NAME, ret_standing, err);
}

const struct stack_object item_acl = {
    .name = NAME,
    .why = "the daemon's own layer against private networks",
    .needs_daemon = true,
    .budget = 30000,
    .judge = judge,
    .converge = converge,
    .remove = remove_acl,
    .stands = stands,
    .rank = 4,
};

/* The profile box-net: the one NIC and the root disk of every box.
 * The three filters on the NIC are what the watcher looks for in the kernel before it arms a port.
 * Not for limits and cloud-init: those are a template's. */
#include "base/memory.h"
#include "base/text.h"
#include "stack/names.h"
#include "stack/table.h"

#define NAME "profile " STACK_PROFILE
#define PATH "/1.0/profiles/" STACK_PROFILE

static const struct {
    const char *device, *key, *value, *why;
} keys[] = {
    {STACK_NIC, "type", "nic", "boxes have no network"},
    {STACK_NIC, "name", STACK_NIC, "the guest's interface has another name than images expect"},
    {STACK_NIC, "network", STACK_NETWORK, "boxes are on another network"},
    {STACK_NIC, "security.port_isolation", "true", "boxes exchange frames"},
    {STACK_NIC, "security.mac_filtering", "true", "a box takes another's MAC; its port is not armed"},
    {STACK_NIC, "security.ipv4_filtering", "true", "a box takes another's address; its port is not armed"},
    {"root", "type", "disk", "boxes have no disk"},
    {"root", "path", "/", "boxes have no disk"},
    {"root", "pool", STACK_POOL, "boxes are on another pool"},
};

static json_t *wanted_devices(void)
{
    json_t *devices = json_object();
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
        if (json_object_get(devices, keys[i].device) == NULL) {
            (void)json_object_set_new(devices, keys[i].device, json_object());
        }
        (void)json_object_set_new(json_object_get(devices, keys[i].device), keys[i].key, json_string(keys[i].value));
    }
    return devices;
}

static const char *why_of(const char *device, const char *key)
{
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
        if (text_equal(keys[i].device, device) && text_equal(keys[i].key, key)) {
            return keys[i].why;
        }
    }
    return "it is none of ours";
}

/* One change for each key in which two devices differ. Either may be NULL. */
static void compare_device(json_t *changes, const char *device, const json_t *live, const json_t *wanted)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)wanted, key, value)
    {
        if (!text_equal(json_text(live, key), json_string_value(value))) {
            CLEANUP(freep) char *item = xasprintf("%s %s", device, key);
            table_change(changes, NAME, item, json_text(live, key), json_string_value(value), why_of(device, key));
        }
    }
    json_object_foreach((json_t *)live, key, value)
    {
        if (json_object_get(wanted, key) == NULL) {
            CLEANUP(freep) char *item = xasprintf("%s %s", device, key);
            table_change(changes, NAME, item, json_string_value(value), NULL, why_of(device, key));
        }
    }
}

static void compare_config(json_t *changes, const json_t *config)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)config, key, value)
    {
        if (!text_equal(key, TABLE_MARK)) {
            table_change(changes, NAME, key, json_string_value(value), NULL, "it is none of ours");
        }
    }
}

static int judge(struct stack *stack, json_t *changes, struct error *err)
{
    CLEANUP(json_freep) json_t *profile = NULL;
    CLEANUP(json_freep) json_t *wanted = wanted_devices();
    const char *device;
    json_t *value;
    int found = table_get(stack, PATH, &profile, err);
    if (found < 0 || (found > 0 && table_check_mark(profile, NAME, err) < 0)) {
        return -1;
    }
    if (found == 0) {
        table_change(changes, NAME, "profile", NULL, "present", "boxes have neither network nor disk");
        return 0;
    }
    const json_t *live = json_object_get(profile, "devices");
    json_object_foreach(wanted, device, value)
    {
        compare_device(changes, device, json_object_get(live, device), value);
    }
    json_object_foreach((json_t *)live, device, value)
    {
        if (json_object_get(wanted, device) == NULL) {
            compare_device(changes, device, value, NULL);
        }
    }
    compare_config(changes, json_object_get(profile, "config"));
    return 0;
}

static int converge(struct stack *stack, const json_t *changes, struct narrator *narrator, struct error *err)
{
    CLEANUP(json_freep) json_t *profile = NULL;
    (void)changes;
    (void)narrator;
    CLEANUP(json_freep) json_t *body = json_pack("{s:s, s:{s:s}, s:o}", "description", "NIC and disk of a box (made by box setup-host)",
                             "config", TABLE_MARK, "1", "devices", wanted_devices());
    int found = table_get(stack, PATH, &profile, err);
    if (found < 0) {
        return -1;
    }
    if (found > 0) {
        return client_request(stack->client, "PUT", PATH, body, NULL, err);
    }
    (void)json_object_set_new(body, "name", json_string(STACK_PROFILE));
    return client_request(stack->client, "POST", "/1.0/profiles", body, NULL, err);
}

static int remove_profile(struct stack *stack, struct narrator *narrator, struct error *err)
{
    CLEANUP(json_freep) json_t *profile = NULL;
    int found = table_get(stack, PATH, &profile, err);
    (void)narrator;
    if (found <= 0) {
        return found;
    }
    return table_check_mark(profile, NAME, err) < 0 ? -1
                                                    : client_request(stack->client, "DELETE", PATH, NULL, NULL, err);
}

static int stands(struct stack *stack, struct argv *ret_standing, struct error *err)
{
    return table_stands(stack, PATH, NAME, ret_standing, err);
}

const struct stack_object item_profile = {
    .name = NAME,
    .why = "boxes have neither network nor disk without it",
    .needs_daemon = true,
    .budget = 30000,
    .judge = judge,
    .converge = converge,
    .remove = remove_profile,
    .stands = stands,
    .rank = 1,
};

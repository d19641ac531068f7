/* The placement contract, as tables of what is allowed.
 * Not for what becomes of a deviation: that is for the command that finds it. */
#include "box/contract.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/tag.h"
#include "stack/names.h"

#include <string.h>

/* Keys by their beginning; the first row that matches decides. Where `value` is given only that one is allowed (and the
 * absence of the key). */
static const struct {
    const char *prefix;
    const char *value;
    const char *why; /* of a deviation; NULL: allowed */
} keys[] = {
    {"user.", NULL, NULL},
    {"image.", NULL, NULL},
    {"volatile.", NULL, NULL},
    {"cloud-init.", NULL, NULL},
    {"limits.", NULL, NULL},
    {"boot.", NULL, NULL},
    {"snapshots.", NULL, NULL},
    {"environment.", NULL, NULL},
    {"agent.", NULL, NULL},
    {"cluster.", NULL, NULL},
    {"migration.", NULL, NULL},
    {"oci.", NULL, NULL},
    {"systemd.", NULL, NULL},
    {"security.nesting", NULL, NULL},
    {"security.secureboot", NULL, NULL},
    {"security.csm", NULL, NULL},
    {"security.protection.", NULL, NULL},
    {"security.agent.metrics", NULL, NULL},
    {"security.idmap.isolated", NULL, NULL},
    {"security.guestapi.images", "false", "it lets the box fetch the host's images"},
    {"security.guestapi", NULL, NULL},
    {"security.privileged", "false", "root in the box is root on the host"},
    {"security.syscalls.deny", NULL, NULL},
    {"security.syscalls.", "false", "it lets the box have the host's kernel do more for it"},
    {"security.idmap.", NULL, "it lets the box share user ids with the host or another box"},
    {"security.", NULL, "it is no security setting that a box has"},
    {"raw.", NULL, "it reaches past Incus's own checks"},
    {"linux.kernel_modules", NULL, "it loads modules into the host's kernel"},
    {"linux.", NULL, "it changes the kernel for the box"},
    {"nvidia.", NULL, "it gives the box the host's GPU"},
};

bool contract_allows_key(const char *key, const char *value, const char **ret_why)
{
    const char *why = "it is no setting that a box has";

    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
        if (text_starts_with(key, keys[i].prefix)) {
            if (!keys[i].why || (keys[i].value && text_equal(value, keys[i].value))) {
                return true;
            }
            why = keys[i].why;
            break;
        }
    }
    if (ret_why) {
        *ret_why = why;
    }
    return false;
}

/* What the profile gives the NIC; an override in the instance may switch none of it off. */
static const char *judge_nic(const char *name, const json_t *device)
{
    static const char *const filters[] = {"security.port_isolation", "security.mac_filtering",
                                          "security.ipv4_filtering"};
    static const char *const harmless[] = {"type",
                                           "name",
                                           "network",
                                           "hwaddr",
                                           "host_name",
                                           "mtu",
                                           "ipv4.address",
                                           "boot.priority",
                                           "io.bus",
                                           "queue.tx.length",
                                           "security.port_isolation",
                                           "security.mac_filtering",
                                           "security.ipv4_filtering",
                                           "security.ipv6_filtering"};
    const char *key;
    json_t *value;

    if (!text_equal(name, STACK_NIC)) {
        return "a box has one NIC, " STACK_NIC;
    }
    if (!text_equal(json_text(device, "network"), STACK_NETWORK)) {
        return "it is not on " STACK_NETWORK;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(filters); i++) {
        if (!text_equal(json_text(device, filters[i]), "true")) {
            return "its filters (port_isolation, mac_filtering, ipv4_filtering) are not all on";
        }
    }
    /* The ACL hangs on the network; a second one on the NIC could allow more. */
    json_object_foreach((json_t *)device, key, value) {
        bool known = text_starts_with(key, "limits.");

        for (size_t i = 0; i < ARRAY_LENGTH(harmless); i++) {
            known = known || text_equal(key, harmless[i]);
        }
        if (!known) {
            return "it has a setting that no box's NIC has";
        }
    }
    return NULL;
}

/* "cloud-init:config" and "agent:config" are drives that Incus makes for a VM. */
static const char *judge_disk(const json_t *device)
{
    const char *source = json_text(device, "source");
    bool is_root = text_equal(json_text(device, "path"), "/");

    if (is_root && !source) {
        return NULL;
    }
    if (text_equal(source, "cloud-init:config") || text_equal(source, "agent:config") ||
        (source && text_starts_with(source, "tmpfs:"))) {
        return NULL;
    }
    if (is_root) {
        return "the root disk has a source of its own";
    }
    return json_text(device, "pool") ? "a volume that others may mount too" : "a path of the host";
}

/* A door leads from the host's loopback into the box, never from a network and never the other way. */
static const char *judge_proxy(const char *name, const json_t *device)
{
    const char *listen = json_text(device, "listen");
    const char *bind = json_text(device, "bind");

    if (!text_starts_with(name, CONTRACT_DOOR_PREFIX)) {
        return "a proxy that is no door of box's";
    }
    if (!listen || !text_starts_with(listen, "tcp:127.0.0.1:") || (bind && !text_equal(bind, "host"))) {
        return "a door that does not open on the host's loopback alone";
    }
    return NULL;
}

bool contract_allows_device(const char *name, const json_t *device, const char **ret_why)
{
    const char *type = json_text(device, "type");
    const char *why = "it reaches a device of the host";

    if (text_equal(type, "none")) {
        why = text_equal(name, STACK_NIC) || text_equal(name, "root") ? "it takes the profile's device away" : NULL;
    } else if (text_equal(type, "nic")) {
        why = judge_nic(name, device);
    } else if (text_equal(type, "disk")) {
        why = judge_disk(device);
    } else if (text_equal(type, "proxy")) {
        why = judge_proxy(name, device);
    }
    if (why && ret_why) {
        *ret_why = why;
    }
    return !why;
}

/* An expanded object says what counts; an older answer may lack it. */
static const json_t *expanded(const json_t *instance, const char *what, const char *plain)
{
    const json_t *object = json_object_get(instance, what);

    return object ? object : json_object_get(instance, plain);
}

static void check_profiles(const json_t *instance, struct argv *deviations)
{
    const json_t *profiles = json_object_get(instance, "profiles");
    bool found = false;
    size_t i;
    json_t *profile;

    json_array_foreach(profiles, i, profile) {
        const char *name = json_string_value(profile);

        if (text_equal(name, STACK_PROFILE)) {
            found = true;
        } else {
            argv_push_format(deviations, "profile %s: only " STACK_PROFILE " may be there", name ? name : "?");
        }
    }
    if (!found) {
        argv_push(deviations, "profile " STACK_PROFILE ": missing");
    }
}

void contract_check(const json_t *instance, struct argv *ret_deviations)
{
    json_t *devices = (json_t *)expanded(instance, "expanded_devices", "devices");
    json_t *config = (json_t *)expanded(instance, "expanded_config", "config");
    const char *key, *why;
    json_t *value;
    bool has_nic = false, has_root = false;

    if (!tag_is_box(instance)) {
        argv_push(ret_deviations, "tag " TAG_KEY ": missing");
    }
    check_profiles(instance, ret_deviations);
    json_object_foreach(config, key, value) {
        if (!contract_allows_key(key, json_string_value(value), &why)) {
            argv_push_format(ret_deviations, "%s: %s", key, why);
        }
    }
    json_object_foreach(devices, key, value) {
        const char *type = json_text(value, "type");

        has_nic = has_nic || text_equal(type, "nic");
        has_root = has_root || (text_equal(type, "disk") && text_equal(json_text(value, "path"), "/"));
        if (!contract_allows_device(key, value, &why)) {
            argv_push_format(ret_deviations, "device %s (%s): %s", key, type ? type : "?", why);
        }
    }
    if (!has_nic) {
        argv_push(ret_deviations, "device " STACK_NIC ": missing");
    }
    if (!has_root) {
        argv_push(ret_deviations, "device root: missing");
    }
}

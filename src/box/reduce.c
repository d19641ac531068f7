/* An instance's configuration brought down to the contract, by what the contract's own tables allow.
 * Not for sending it, nor for the stamp that it then carries. */
#include "box/reduce.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "box/contract.h"
#include "stack/names.h"

#include <stdlib.h>

/* The daemon's notes without which it would not know what is on the disk, or whose it is. */
static bool belongs_to_disk(const char *key)
{
    static const char *const kept[] = {"volatile.base_image", "volatile.uuid", "volatile.idmap.",
                                       "volatile.last_state.idmap", "volatile.apply_template"};

    for (size_t i = 0; i < ARRAY_LENGTH(kept); i++) {
        if (text_starts_with(key, kept[i])) {
            return true;
        }
    }
    return false;
}

static json_t *reduce_config(const json_t *instance, bool fresh, struct argv *stripped)
{
    json_t *config = json_object(), *value;
    const char *key, *why = NULL;

    json_object_foreach(json_object_get(instance, "config"), key, value)
    {
        if (fresh && text_starts_with(key, "volatile.") && !belongs_to_disk(key)) {
            continue;
        }
        if (contract_allows_key(key, json_string_value(value), &why)) {
            (void)json_object_set(config, key, value);
        } else {
            argv_push_format(stripped, "%s: %s", key, why);
        }
    }
    return config;
}

/* The root disk says where and how large, and nothing else. */
static json_t *reduce_root(const json_t *device, const char *pool, struct argv *stripped)
{
    static const char *const kept[] = {"type", "path", "pool", "size", "size.state"};
    json_t *root = json_object(), *value;
    const char *key;

    json_object_foreach((json_t *)device, key, value)
    {
        bool known = text_starts_with(key, "limits.");

        for (size_t i = 0; i < ARRAY_LENGTH(kept); i++) {
            known = known || text_equal(key, kept[i]);
        }
        if (known) {
            (void)json_object_set(root, key, value);
        } else {
            argv_push_format(stripped, "device root, %s: it is no setting of a box's root disk", key);
        }
    }
    if (pool) {
        (void)json_object_set_new(root, "pool", json_string(pool));
    }
    return root;
}

static json_t *reduce_devices(const json_t *instance, const struct reduce_options *options, struct argv *stripped)
{
    json_t *devices = json_object(), *device;
    const char *name, *why = NULL;

    json_object_foreach(json_object_get(instance, "devices"), name, device)
    {
        const char *type = json_text(device, "type");
        bool is_root = text_equal(type, "disk") && text_equal(json_text(device, "path"), "/");

        if (!contract_allows_device(name, device, &why)) {
            argv_push_format(stripped, "device %s (%s): %s", name, type ? type : "?", why);
        } else if (is_root) {
            (void)json_object_set_new(devices, name, reduce_root(device, options->pool, stripped));
        } else if (!options->fresh) {
            (void)json_object_set(devices, name, device);
        }
    }
    return devices;
}

static void tell_profiles(const json_t *instance, struct argv *stripped)
{
    json_t *profile;
    size_t i;

    json_array_foreach(json_object_get(instance, "profiles"), i, profile)
    {
        const char *name = json_string_value(profile);

        if (!text_equal(name, STACK_PROFILE)) {
            argv_push_format(stripped, "profile %s: only " STACK_PROFILE " may be there", name ? name : "?");
        }
    }
}

json_t *reduce_body(const json_t *instance, const struct reduce_options *options, struct argv *ret_stripped)
{
    static const char *const repeated[] = {"architecture", "description", "ephemeral"};
    json_t *config = reduce_config(instance, options->fresh, ret_stripped);
    json_t *devices = reduce_devices(instance, options, ret_stripped);
    json_t *body = json_pack("{s:o, s:o, s:[s]}", "config", config, "devices", devices, "profiles", STACK_PROFILE);

    if (!body) {
        abort();
    }
    tell_profiles(instance, ret_stripped);
    for (size_t i = 0; i < ARRAY_LENGTH(repeated); i++) {
        json_t *value = json_object_get(instance, repeated[i]);

        if (value) {
            (void)json_object_set(body, repeated[i], value);
        }
    }
    return body;
}

void reduce_tell_own(const json_t *instance, struct narrator *narrator)
{
    json_t *device;
    const char *name;

    json_object_foreach(json_object_get(instance, "devices"), name, device)
    {
        if (text_starts_with(name, CONTRACT_DOOR_PREFIX) && contract_allows_device(name, device, NULL)) {
            narrate_note(narrator, "left out: the door %s", name);
        } else if (text_equal(name, STACK_NIC) && json_text(device, "ipv4.address")) {
            narrate_note(narrator, "left out: the fixed address %s", json_text(device, "ipv4.address"));
        }
    }
}

bool reduce_differs(const json_t *instance, const json_t *body)
{
    static const char *const parts[] = {"config", "devices", "profiles"};

    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
        if (!json_equal(json_object_get(instance, parts[i]), json_object_get(body, parts[i]))) {
            return true;
        }
    }
    return false;
}

void reduce_set(json_t *body, const char *key, const char *value)
{
    json_t *config = json_object_get(body, "config");

    if (value) {
        (void)json_object_set_new(config, key, json_string(value));
    } else {
        (void)json_object_del(config, key);
    }
}

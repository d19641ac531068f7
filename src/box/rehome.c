/* The configuration of a box before and after its move from the older generation's network onto boxnet.
 * Not for acting on the daemon: migrate.c. */
#include "box/rehome.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/contract.h"
#include "box/tag.h"
#include "stack/names.h"

#include <stdlib.h>
#include <string.h>

static bool is_older_nic(const json_t *device)
{
    return text_equal(json_text(device, "type"), "nic") && (text_equal(json_text(device, "network"), OLDER_NETWORK) ||
                                                            text_equal(json_text(device, "parent"), OLDER_NETWORK));
}

static bool is_root(const json_t *device)
{
    return text_equal(json_text(device, "type"), "disk") && text_equal(json_text(device, "path"), "/");
}

static bool has_text(const json_t *array, const char *text)
{
    const json_t *item;
    size_t i;

    json_array_foreach(array, i, item)
    {
        if (text_equal(json_string_value(item), text)) {
            return true;
        }
    }
    return false;
}

bool rehome_is_older(const json_t *instance)
{
    const char *name;
    json_t *device;

    if (has_text(json_object_get(instance, "profiles"), OLDER_PROFILE)) {
        return true;
    }
    json_object_foreach(json_object_get(instance, "expanded_devices"), name, device)
    {
        if (is_older_nic(device)) {
            return true;
        }
    }
    return false;
}

bool rehome_is_under_way(const json_t *instance)
{
    return tag_value(instance, REHOME_NOTE) != NULL;
}

/* The note, decoded; an empty object where it is none. The caller owns it. */
static json_t *read_note(const json_t *instance)
{
    const char *text = tag_value(instance, REHOME_NOTE);
    json_t *note = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;

    if (json_is_object(note)) {
        return note;
    }
    json_decref(note);
    return json_object();
}

bool rehome_ran(const json_t *instance)
{
    CLEANUP(json_freep) json_t *note = read_note(instance);

    return json_truth(note, "ran");
}

static void set_note(json_t *config, const json_t *note)
{
    CLEANUP(freep) char *text = json_write(note, JSON_SORT_KEYS);

    (void)json_object_set_new(config, REHOME_NOTE, json_string(text));
}

/* What a PUT must repeat of an instance. */
static json_t *new_body(const json_t *instance, json_t *config, json_t *devices, json_t *profiles)
{
    static const char *const repeated[] = {"architecture", "description", "ephemeral"};
    json_t *body = json_pack("{s:o, s:o, s:o}", "config", config, "devices", devices, "profiles", profiles);

    if (!body) {
        abort();
    }
    for (size_t i = 0; i < ARRAY_LENGTH(repeated); i++) {
        json_t *value = json_object_get(instance, repeated[i]);

        if (value) {
            (void)json_object_set(body, repeated[i], value);
        }
    }
    return body;
}

/* The keys that only its profiles gave it. Their names go into `adopted`. */
static void adopt_config(const json_t *instance, json_t *config, json_t *adopted, struct argv *left)
{
    json_t *value;
    const char *key, *why = NULL;

    json_object_foreach(json_object_get(instance, "expanded_config"), key, value)
    {
        if (json_object_get(config, key)) {
            continue;
        }
        if (contract_allows_key(key, json_string_value(value), &why)) {
            (void)json_object_set(config, key, value);
            (void)json_array_append_new(adopted, json_string(key));
        } else {
            argv_push_format(left, "%s: %s", key, why);
        }
    }
}

/* Its own devices, without the older NICs. */
static json_t *keep_devices(const json_t *instance, struct argv *refused)
{
    json_t *devices = json_object(), *device;
    const char *name, *why = NULL;

    json_object_foreach(json_object_get(instance, "devices"), name, device)
    {
        const char *type = json_text(device, "type");

        if (is_older_nic(device)) {
            continue;
        }
        if (contract_allows_device(name, device, &why)) {
            (void)json_object_set(devices, name, device);
        } else {
            argv_push_format(refused, "device %s (%s): %s", name, type ? type : "?", why);
        }
    }
    return devices;
}

/* The devices that only its profiles gave it: its disk as large as it is, on the pool where it lies. */
static void adopt_devices(const json_t *instance, const json_t *profile, json_t *devices, struct argv *left)
{
    const json_t *own = json_object_get(instance, "devices"), *given = json_object_get(profile, "devices");
    json_t *device;
    const char *name, *why = NULL;

    json_object_foreach(json_object_get(instance, "expanded_devices"), name, device)
    {
        const char *type = json_text(device, "type");

        if (json_object_get(own, name) || is_older_nic(device) || json_equal(device, json_object_get(given, name))) {
            continue;
        }
        if (is_root(device) || contract_allows_device(name, device, &why)) {
            (void)json_object_set(devices, name, device);
        } else {
            argv_push_format(left, "device %s (%s): %s", name, type ? type : "?", why);
        }
    }
}

static void refuse_config(const json_t *instance, struct argv *refused)
{
    json_t *value;
    const char *key, *why = NULL;

    json_object_foreach(json_object_get(instance, "config"), key, value)
    {
        if (!contract_allows_key(key, json_string_value(value), &why)) {
            argv_push_format(refused, "%s: %s", key, why);
        }
    }
}

json_t *rehome_body(const json_t *instance, const json_t *profile, bool ran, struct argv *ret_left,
                    struct argv *ret_refused)
{
    CLEANUP(json_freep) json_t *adopted = json_array();
    json_t *config = json_deep_copy(json_object_get(instance, "config"));
    json_t *devices = keep_devices(instance, ret_refused);

    refuse_config(instance, ret_refused);
    if (ret_refused->count > 0 || !config) {
        json_decref(config);
        json_decref(devices);
        return NULL;
    }
    adopt_config(instance, config, adopted, ret_left);
    adopt_devices(instance, profile, devices, ret_left);
    CLEANUP(json_freep)
    json_t *note = json_pack("{s:b, s:O, s:O, s:O}", "ran", ran, "profiles", json_object_get(instance, "profiles"),
                             "devices", json_object_get(instance, "devices"), "adopted", adopted);

    if (!note) {
        abort();
    }
    set_note(config, note);
    return new_body(instance, config, devices, json_pack("[s]", STACK_PROFILE));
}

json_t *rehome_undo_body(const json_t *instance)
{
    CLEANUP(json_freep) json_t *note = read_note(instance);
    json_t *profiles = json_object_get(note, "profiles"), *devices = json_object_get(note, "devices"), *key;
    json_t *config = json_deep_copy(json_object_get(instance, "config"));
    size_t i;

    if (!config || !json_is_array(profiles) || !json_is_object(devices)) {
        json_decref(config);
        return NULL;
    }
    json_array_foreach(json_object_get(note, "adopted"), i, key)
    {
        (void)json_object_del(config, json_string_value(key) ? json_string_value(key) : "");
    }
    CLEANUP(json_freep) json_t *rest = json_pack("{s:b}", "ran", json_truth(note, "ran"));

    set_note(config, rest);
    return new_body(instance, config, json_incref(devices), json_incref(profiles));
}

json_t *rehome_note_body(bool ran)
{
    CLEANUP(json_freep) json_t *note = json_pack("{s:b}", "ran", ran);
    json_t *config = json_object();

    set_note(config, note);
    return json_pack("{s:o}", "config", config);
}

json_t *rehome_end_body(void)
{
    return json_pack("{s:{s:s}}", "config", REHOME_NOTE, "");
}

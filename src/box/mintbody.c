/* The request that creates a box: tag, stamp, limits and user-data in one, so that it is never nobody's.
 * Not for sending it. */
#include "box/mintbody.h"

#include "base/memory.h"
#include "base/text.h"
#include "box/tag.h"
#include "stack/names.h"

#include <stdlib.h>

static void put(json_t *object, const char *key, const char *value)
{
    /* Fails on what is not UTF-8 alone, which template.c and limits.c have refused. */
    if (value && json_object_set_new(object, key, json_string(value)) < 0) {
        abort();
    }
}

/* Incus cuts line ends off the end of a value that it puts into a file, and then a block of YAML at the end has another
 * meaning. So they travel by themselves, a letter each, and the image's template puts them back. */
static char *describe_tail(const char *data, size_t length)
{
    size_t kept = length;

    while (kept > 0 && (data[kept - 1] == '\n' || data[kept - 1] == '\r')) {
        kept--;
    }
    char *tail = xstrndup(data + kept, length - kept);

    for (char *at = tail; *at; at++) {
        *at = *at == '\n' ? 'n' : 'r';
    }
    return tail;
}

static json_t *make_config(const struct mintbody *body)
{
    const struct mint_request *request = body->request;
    const struct template *template = request->template;
    CLEANUP(freep) char *instance_id = xasprintf("box-%s", body->mint_id);
    json_t *config = json_object();

    put(config, TAG_KEY, "1");
    put(config, TAG_STATE, TAG_STATE_MINTING);
    put(config, TAG_MINT, body->mint_id);
    put(config, TAG_INSTANCE_ID, instance_id);
    put(config, TAG_TEMPLATE, template->name);
    put(config, TAG_DIGEST, template->digest);
    put(config, TAG_USER, template->user);
    put(config, TAG_SCHEMA, "1");
    put(config, TAG_VERSION, request->version);
    put(config, TAG_CREATED, body->created);
    put(config, TAG_IMAGE, template->image);
    put(config, TAG_FINGERPRINT, body->fingerprint);
    put(config, TAG_MODE, body->vm ? "vm" : "container");
    put(config, TAG_ORIGIN, "mint");
    put(config, TAG_LOGIN, text_is_empty(template->login) ? NULL : template->login);
    put(config, body->vm ? "security.secureboot" : "security.nesting", body->vm ? "false" : "true");
    put(config, "boot.autostart", template->autostart ? "true" : "false");
    put(config, "limits.cpu", request->limits.cpu);
    put(config, "limits.memory", request->limits.memory);
    if (template->user_data_length > 0) {
        CLEANUP(freep) char *tail = describe_tail(template->user_data, template->user_data_length);

        put(config, TAG_TAIL, *tail ? tail : "-");
        put(config, "cloud-init.user-data", template->user_data);
    }
    return config;
}

static json_t *make_source(const struct mintbody *body)
{
    if (body->fingerprint) {
        return json_pack("{s:s, s:s}", "type", "image", "fingerprint", body->fingerprint);
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "type", "image", "mode", "pull", "protocol", "simplestreams",
                     "server", body->server, "alias", body->server_alias);
}

json_t *mintbody_make(const struct mintbody *body)
{
    const struct mint_request *request = body->request;
    json_t *devices = json_object();

    if (request->limits.disk) {
        (void)json_object_set_new(devices, "root",
                                  json_pack("{s:s, s:s, s:s, s:s}", "type", "disk", "path", "/", "pool", body->pool,
                                            "size", request->limits.disk));
    }
    /* Debian's cloud kernel has no 9p: the agent's files, and cloud-init's, come on drives that Incus makes for the VM. An image
     * server's image brings ways of its own. */
    if (body->vm && body->fingerprint) {
        (void)json_object_set_new(devices, "agent", json_pack("{s:s, s:s}", "type", "disk", "source", "agent:config"));
        (void)json_object_set_new(devices, "cloud-init",
                                  json_pack("{s:s, s:s}", "type", "disk", "source", "cloud-init:config"));
    }
    json_t *value = json_pack("{s:s, s:s, s:[s], s:o, s:o, s:o}", "name", request->name, "type",
                              body->vm ? "virtual-machine" : "container", "profiles", STACK_PROFILE, "config",
                              make_config(body), "devices", devices, "source", make_source(body));

    if (!value) {
        abort();
    }
    return value;
}

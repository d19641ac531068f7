/* A copy's own identity, given to it before anything in it runs.
 * Not for the copy itself (clone.c), nor for its MAC, which the daemon draws. */
#include "box/identity.h"

#include "base/memory.h"
#include "base/text.h"
#include "box/recipe.h"
#include "incus/call.h"
#include "incus/exec.h"
#include "incus/execbody.h"
#include "incus/guestfile.h"
#include "incus/instance.h"

#include <stdbool.h>
#include <string.h>

#define NAMES_CEILING  256 /* entries of a directory that are looked at; the guest may have made any number */
#define RESTART_BUDGET 120000

static const struct guestfile_owner root_file = {.mode = 0644};

/* What a directory holds; nothing where it is absent or something else. Only a daemon that is gone is an error. */
static int list(struct client *client, const char *name, const char *directory, json_t **ret_names, struct error *err)
{
    CLEANUP(error_reset) struct error cause = {0};

    if (guestfile_list(client, name, directory, ret_names, &cause) == 0) {
        return 0;
    }
    if (cause.code == ERR_NOT_FOUND || cause.code == ERR_SYSTEM) {
        *ret_names = json_array();
        return 0;
    }
    return error_move(err, &cause);
}

static int drop_host_keys(struct client *client, const char *name, struct error *err)
{
    CLEANUP(json_freep) json_t *names = NULL;
    json_t *entry;
    size_t i;

    if (list(client, name, "/etc/ssh", &names, err) < 0) {
        return -1;
    }
    json_array_foreach(names, i, entry)
    {
        const char *file = json_string_value(entry);

        if (!file || !text_starts_with(file, "ssh_host_") || strchr(file, '/') || i >= NAMES_CEILING) {
            continue;
        }
        CLEANUP(freep) char *path = xasprintf("/etc/ssh/%s", file);

        if (guestfile_delete(client, name, path, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* cloud-init remembers each module that it ran by a file: without this one it makes host keys, and nothing else. */
static int forget_key_module(struct client *client, const char *name, const char *instance_id, struct error *err)
{
    CLEANUP(json_freep) json_t *ids = NULL;
    json_t *id;
    size_t i;

    if (instance_id) {
        ids = json_pack("[s]", instance_id);
    } else if (list(client, name, "/var/lib/cloud/instances", &ids, err) < 0) {
        return -1;
    }
    json_array_foreach(ids, i, id)
    {
        const char *text = json_string_value(id);

        if (!text || strchr(text, '/') || i >= NAMES_CEILING) {
            continue;
        }
        CLEANUP(freep) char *path = xasprintf("/var/lib/cloud/instances/%s/sem/config_ssh", text);

        if (guestfile_delete(client, name, path, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* True where the daemon writes that file into a copy, by a template of the image. */
static bool is_templated(const json_t *metadata, const char *path)
{
    json_t *when;
    size_t i;

    json_array_foreach(json_path(metadata, "templates", path, "when", NULL), i, when)
    {
        if (text_equal(json_string_value(when), "copy")) {
            return true;
        }
    }
    return false;
}

static int write_hostname(struct client *client, const char *name, const char *hostname, struct error *err)
{
    CLEANUP(freep) char *line = xasprintf("%s\n", hostname);

    return guestfile_write(client, name, "/etc/hostname", line, strlen(line), &root_file, err);
}

int identity_renew(struct client *client, const char *name, const char *hostname, const char *instance_id,
                   struct error *err)
{
    CLEANUP(freep) char *path = call_path("instances", name, "/metadata");
    CLEANUP(json_freep) json_t *metadata = NULL;

    /* The daemon keeps a helper for a stopped container's files and waits a second for it at the start: images of box's
     * own do without. */
    if (client_get(client, path, &metadata, NULL) == 0 && is_templated(metadata, RECIPE_COPIED) &&
        is_templated(metadata, "/etc/machine-id") && is_templated(metadata, "/etc/hostname")) {
        return 0;
    }
    /* Empty and not absent: then systemd makes an id without taking this for a factory reset. The id of D-Bus, where it
     * is a file of its own, would be taken for it. */
    if (guestfile_write(client, name, "/etc/machine-id", "", 0, &root_file, err) < 0 ||
        guestfile_delete(client, name, "/var/lib/dbus/machine-id", err) < 0 || drop_host_keys(client, name, err) < 0 ||
        forget_key_module(client, name, instance_id, err) < 0 ||
        (!is_templated(metadata, "/etc/hostname") && write_hostname(client, name, hostname, err) < 0)) {
        return error_wrap(err, "cannot give %s an identity of its own", name);
    }
    return 0;
}

/* The id is replaced by another, never emptied: a running systemd needs one to shut down. */
static const char script[] =
    "set -e\n"
    "tr -d - < /proc/sys/kernel/random/uuid > /etc/machine-id.new\n"
    "chmod 444 /etc/machine-id.new\n"
    "mv -f /etc/machine-id.new /etc/machine-id\n"
    "rm -f /var/lib/dbus/machine-id /etc/ssh/ssh_host_* /var/lib/cloud/instances/*/sem/config_ssh\n"
    "printf '%s\\n' \"$1\" > /etc/hostname\n"
    "command -v ssh-keygen >/dev/null && ssh-keygen -A >/dev/null\n"
    "sync\n";

int identity_renew_running(struct client *client, const char *name, struct narrator *narrator, struct error *err)
{
    const char *const command[] = {"/bin/sh", "-c", script, "box", name, NULL};
    CLEANUP(json_freep) json_t *environment = execbody_root_environment();
    const struct exec_request request = {.instance = name,
                                         .command = command,
                                         .environment = environment,
                                         .input = -1,
                                         .output = -1,
                                         .errors = -1,
                                         .budget = RESTART_BUDGET,
                                         .narrator = narrator};
    int status = 0;

    if (exec_run(client, &request, &status, err) < 0) {
        return error_wrap(err, "cannot give %s an identity of its own", name);
    }
    if (status != 0) {
        return error_set(err, ERR_STATE, "the guest of %s could not take on an identity of its own (exit status %d)",
                         name, status);
    }
    return instance_change_state(client, name, "restart", 30, false, RESTART_BUDGET, narrator, err);
}

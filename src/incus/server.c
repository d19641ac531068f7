/* What the daemon says of itself and of its networks' leases.
 * Not for: judging either. */
#include "incus/server.h"

#include "base/memory.h"
#include "base/text.h"
#include "incus/call.h"

#include <string.h>

/* environment.driver reads "lxc | qemu". */
static bool names_driver(const char *drivers, const char *name)
{
    return drivers && strstr(drivers, name);
}

int server_get(struct client *client, struct server *ret_server, struct error *err)
{
    CLEANUP(json_freep) json_t *metadata = NULL;
    if (client_get(client, "/1.0", &metadata, err) < 0) {
        return -1;
    }
    const json_t *environment = json_object_get(metadata, "environment");
    const char *drivers = json_text(environment, "driver");
    const char *version = json_text(environment, "server_version");
    *ret_server = (struct server){
        .version = xstrdup(version ? version : ""),
        .drives_containers = names_driver(drivers, "lxc"),
        .drives_vms = names_driver(drivers, "qemu"),
        .trusted = text_equal(json_text(metadata, "auth"), "trusted"),
    };
    return 0;
}

void server_reset(struct server *server)
{
    free(server->version);
    *server = (struct server){0};
}

int server_leases(struct client *client, const char *network, json_t **ret_array, struct error *err)
{
    CLEANUP(freep) char *path = call_path("networks", network, "/leases");
    return client_get(client, path, ret_array, err);
}

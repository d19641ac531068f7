/* The host around the stack.
 * Not for what set-up converges: look_stack.c. */
#include "base/buffer.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "doctor/look.h"
#include "doctor/uplink.h"
#include "incus/image.h"
#include "incus/server.h"
#include "stack/names.h"
#include "stack/subnet.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FULL_PERCENT 90
#define STALE_DAYS   90
#define DAY          (24 * 3600)
#define BUILT_AFTER  1700000000 /* seconds; no host of ours has an earlier clock */
#define IDS_CEILING  (1024 * 1024)
#define GIBIBYTE     (1024.0 * 1024 * 1024)

/* "a policy rule from 10.88.0.0/24" or "a route to X on DEV" into the command that takes it away. */
static char *undo_claim(const char *owner)
{
    static const struct {
        const char *lead, *command;
    } kinds[] = {
        {"a policy rule from ", "sudo ip rule delete from "},
        {"a policy rule to ", "sudo ip rule delete to "},
        {"a route to ", "sudo ip route delete "},
        {"an address in ", "sudo ip address delete "},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        if (text_starts_with(owner, kinds[i].lead)) {
            const char *what = owner + strlen(kinds[i].lead), *on = strstr(what, " on ");
            CLEANUP(freep) char *subject = xstrndup(what, on != NULL ? (size_t)(on - what) : strlen(what));
            return xasprintf("%s%s%s%s", kinds[i].command, subject, on != NULL ? " dev " : "",
                             on != NULL ? on + 4 : "");
        }
    }
    return NULL;
}

/* What else on this host has boxnet's addresses: its gateway as a local address, a route or a rule that captures it. A
 * wider route loses against boxnet's own and is none. */
static void look_claims(struct look *look)
{
    CLEANUP(freep) struct subnet_claim *claims = NULL;
    CLEANUP(argv_reset) struct argv told = {0};
    CLEANUP(error_reset) struct error failure = {0};
    size_t count = 0;
    if (!look->view.has_subnet) {
        return;
    }
    if (subnet_claims(STACK_NETWORK, &claims, &count, &failure) < 0) {
        finding_add(&look->findings, FINDING_UNSEEN, "subnet", NULL, "%s", failure.message);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        bool rule = text_starts_with(claims[i].owner, "a policy rule");
        CLEANUP(freep)
        char *address = text_starts_with(claims[i].owner, "a route to ")
                            ? xasprintf("an address in %s", claims[i].owner + strlen("a route to "))
                            : NULL;
        if (address != NULL && argv_contains(&told, address)) {
            continue; /* the kernel's own route to an address that is told already */
        }
        if (!subnet_overlap(claims[i].subnet, look->view.subnet) || argv_contains(&told, claims[i].owner) ||
            (!rule && claims[i].subnet.prefix < look->view.subnet.prefix)) {
            continue;
        }
        CLEANUP(freep) char *fix = undo_claim(claims[i].owner);
        argv_push(&told, claims[i].owner);
        finding_add(&look->findings, FINDING_BROKEN, "subnet", fix,
                    "boxnet's addresses are claimed by %s as well: boxes may reach nothing", claims[i].owner);
    }
    if (told.count == 0) {
        finding_add(&look->findings, FINDING_OK, "subnet", NULL, "nobody else claims boxnet's addresses");
    }
}

static void look_space(struct look *look)
{
    CLEANUP(json_freep) json_t *resources = NULL;
    CLEANUP(error_reset) struct error failure = {0};
    CLEANUP(json_freep) json_t *pool = NULL;
    if (look->client == NULL || client_get(look->client, "/1.0/storage-pools/" STACK_POOL, &pool, &failure) < 0) {
        return; /* no pool: its own row says so */
    }
    if (client_get(look->client, "/1.0/storage-pools/" STACK_POOL "/resources", &resources, &failure) < 0) {
        finding_add(&look->findings, FINDING_UNSEEN, "space", NULL, "%s", failure.message);
        return;
    }
    const json_t *space = json_object_get(resources, "space");
    double used = (double)json_number(space, "used", 0), total = (double)json_number(space, "total", 0);
    if (total > 0 && used * 100 > total * FULL_PERCENT) {
        CLEANUP(freep) char *fix = xasprintf("sudo box setup-host --pool-size %.0fGiB", total * 2 / GIBIBYTE + 0.5);
        finding_add(&look->findings, FINDING_BROKEN, "space", fix, "the pool is nearly full: %.1f of %.1f GiB",
                    used / GIBIBYTE, total / GIBIBYTE);
        return;
    }
    finding_add(&look->findings, FINDING_OK, "space", NULL, "%.1f of %.1f GiB of the pool are used", used / GIBIBYTE,
                total / GIBIBYTE);
}

/* Unprivileged containers get their user ids from root's range. Where there is no file at all, the daemon has a range
 * of its own. */
static void look_ids(struct look *look)
{
    static const char *const files[] = {"/etc/subuid", "/etc/subgid"};
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        CLEANUP(buffer_reset) struct buffer text = {0};
        CLEANUP(error_reset) struct error failure = {0};
        if (fd_read_file(files[i], IDS_CEILING, &text, &failure) < 0) {
            continue;
        }
        if (text.data == NULL || (!text_starts_with(text.data, "root:") && strstr(text.data, "\nroot:") == NULL)) {
            finding_add(&look->findings, FINDING_BROKEN, "ids",
                        "sudo usermod --add-subuids 1000000-1000999999 --add-subgids 1000000-1000999999 root",
                        "%s gives root no range of ids: no container starts", files[i]);
            return;
        }
    }
    finding_add(&look->findings, FINDING_OK, "ids", NULL, "root has ids for containers");
}

static void look_clock(struct look *look)
{
    if (time(NULL) < BUILT_AFTER) {
        finding_add(&look->findings, FINDING_BROKEN, "clock", "sudo timedatectl set-ntp true",
                    "the clock is years behind: no certificate is valid yet");
        return;
    }
    finding_add(&look->findings, FINDING_OK, "clock", NULL, "it is not in the past");
}

static void look_machines(struct look *look)
{
    CLEANUP(server_reset) struct server server = {0};
    if (look->client == NULL || server_get(look->client, &server, NULL) < 0) {
        return;
    }
    finding_add(&look->findings, FINDING_OK, "machines", NULL, "%s",
                server.drives_vms ? "boxes are VMs here"
                : access("/dev/kvm", F_OK) == 0
                    ? "boxes are containers here: the daemon drives no VMs, though there is "
                      "/dev/kvm (packages qemu-system, module vhost_vsock)"
                    : "boxes are containers here: this machine has no /dev/kvm");
}

static void look_images(struct look *look)
{
    CLEANUP(json_freep) json_t *images = NULL;
    size_t i, ours = 0;
    const json_t *image;
    if (look->client == NULL || image_list(look->client, &images, NULL) < 0) {
        return;
    }
    json_array_foreach(images, i, image)
    {
        const char *alias = json_text(json_array_get(json_object_get(image, "aliases"), 0), "name");
        const char *built = json_text(json_object_get(image, "properties"), "box.built");
        int64_t at = 0;
        if (alias == NULL || built == NULL) {
            continue;
        }
        ours++;
        if (clock_parse(built, &at) && (int64_t)time(NULL) - at > (int64_t)STALE_DAYS * DAY) {
            CLEANUP(freep) char *fix = xasprintf("box image build %s", alias);
            finding_add(&look->findings, FINDING_BROKEN, "images", fix,
                        "the image %s is %lld days old: its packages lack that many days of fixes", alias,
                        (long long)(((int64_t)time(NULL) - at) / DAY));
            return;
        }
    }
    finding_add(&look->findings, FINDING_OK, "images", NULL,
                ours > 0 ? "%zu, fresh" : "%zu built here: the first box waits for one (box image build)", ours);
}

void look_host(struct look *look)
{
    uplink_route(&look->findings);
    look_claims(look);
    look_space(look);
    look_ids(look);
    look_clock(look);
    look_machines(look);
    look_images(look);
}

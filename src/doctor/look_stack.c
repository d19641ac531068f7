/* The daemon, the rows of the stack's table, the ports of boxnet, and who answers boxes.
 * Not for what a row judges: src/stack/item_*.c. */
#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"
#include "doctor/ask.h"
#include "doctor/look.h"
#include "incus/server.h"
#include "stack/arm.h"
#include "stack/inspect.h"
#include "stack/names.h"

#include <string.h>
#include <unistd.h>

#define SETUP  "sudo box setup-host"
#define DNS_MS 1500
#define PROBE  "box-doctor"  /* a name without a dot: dnsmasq answers it by itself, whatever lies behind */
#define PUBLIC "example.com" /* reserved for this kind of use: RFC 2606 */

static void look_daemon(struct look *look)
{
    CLEANUP(server_reset) struct server server = {0};
    CLEANUP(error_reset) struct error failure = {0};
    const struct error *why = look->failure;
    if (look->client != NULL && server_get(look->client, &server, &failure) == 0) {
        if (server.trusted) {
            finding_add(&look->findings, FINDING_OK, "daemon", NULL, "Incus %s answers", server.version);
            return;
        }
        finding_add(&look->findings, FINDING_UNSEEN, "daemon", "sudo box doctor", "this user may not use the daemon");
    } else {
        why = failure.code != ERR_NONE ? &failure : why;
        bool denied = why->code == ERR_DENIED;
        finding_add(&look->findings, denied ? FINDING_UNSEEN : FINDING_BROKEN, "daemon",
                    why->remedy != NULL ? why->remedy : SETUP, "%s", why->message);
    }
    look->client = NULL; /* no use to ask it anything more */
}

static void look_row(struct look *look, const json_t *row)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    const char *name = json_text(row, "object"), *failure = json_text(row, "failure");
    size_t i;
    const json_t *change;
    if (failure != NULL) {
        bool unseen = json_truth(row, "unseen");
        finding_add(&look->findings, unseen ? FINDING_UNSEEN : FINDING_BROKEN, name, json_text(row, "remedy"), "%s",
                    failure);
        return;
    }
    json_array_foreach(json_object_get(row, "changes"), i, change)
    {
        const char *live = json_text(change, "live"), *want = json_text(change, "want");
        bool several = live != NULL && strchr(live, '\n') != NULL;
        bool told = live != NULL && !several && strlen(live) < 200;
        buffer_append_format(&text, "%s%s is %s", text.length > 0 ? "; " : "", json_text(change, "item"),
                             told           ? live
                             : live == NULL ? "missing"
                                            : "another");
        if (want != NULL && live != NULL && strchr(want, '\n') == NULL && strlen(want) < 60) {
            buffer_append_format(&text, ", not %s", want);
        }
        if (!text_is_empty(json_text(change, "why"))) {
            buffer_append_format(&text, ": %s", json_text(change, "why"));
        }
    }
    if (text.length == 0) {
        finding_add(&look->findings, FINDING_OK, name, NULL, "as it must be");
    } else {
        finding_add(&look->findings, look->view.is_set_up ? FINDING_BROKEN : FINDING_NOT_SET_UP, name, SETUP, "%s",
                    text.data);
    }
}

static void look_port_list(struct look *look, const struct arm_port *ports, size_t count)
{
    size_t armed = 0;
    for (size_t i = 0; i < count; i++) {
        armed += ports[i].armed;
        if (!ports[i].armed) {
            finding_add(&look->findings, FINDING_BROKEN, "ports", SETUP, "%s may not speak: %s", ports[i].interface,
                        ports[i].reason);
        }
    }
    if (armed == count) {
        finding_add(&look->findings, FINDING_OK, "ports", NULL, "%zu, each isolated, filtered and armed", count);
    }
}

/* Root asks the kernel, others what the watcher publishes of it. */
static void look_ports(struct look *look)
{
    CLEANUP(error_reset) struct error failure = {0};
    if (geteuid() == 0) {
        CLEANUP(inspect_reset) struct inspection inspection = {0};
        if (inspect_walls(&inspection, &failure) == 0) {
            look_port_list(look, inspection.ports, inspection.port_count);
            return;
        }
    } else {
        CLEANUP(freep) struct arm_port *ports = NULL;
        size_t count = 0;
        if (arm_list(&ports, &count, &failure) == 0) {
            look_port_list(look, ports, count);
            return;
        }
    }
    finding_add(&look->findings, look->view.is_set_up ? FINDING_UNSEEN : FINDING_NOT_SET_UP, "ports", SETUP, "%s",
                failure.message);
}

void look_stack(struct look *look)
{
    size_t i;
    const json_t *row;
    look_daemon(look);
    json_array_foreach(look->view.rows, i, row)
    {
        look_row(look, row);
    }
    look_ports(look);
}

void look_stack_resolver(struct look *look)
{
    CLEANUP(error_reset) struct error failure = {0};
    int code = 0;
    char gateway[SUBNET_TEXT];
    if (look->client == NULL || !look->view.has_subnet || !look->view.is_set_up) {
        finding_add(&look->findings, look->client == NULL ? FINDING_UNSEEN : FINDING_NOT_SET_UP, "resolver", SETUP,
                    "there is nobody to ask");
        return;
    }
    subnet_format_address(look->view.gateway, gateway);
    if (ask_dns(look->view.gateway, PROBE, DNS_MS, &code, &failure) < 0) {
        finding_add(&look->findings, FINDING_BROKEN, "resolver", SETUP, "nobody answers boxes' questions at %s: %s",
                    gateway, failure.message);
        return;
    }
    finding_add(&look->findings, FINDING_OK, "resolver", NULL, "dnsmasq answers at %s", gateway);
    if (ask_dns(look->view.gateway, PUBLIC, DNS_MS, &code, &failure) < 0 || code == 2 || code == 5) {
        finding_add(&look->findings, FINDING_BROKEN, "upstream", "sudo BOX_DNS=ADDRESS box setup-host",
                    "the resolvers behind it (%s) do not answer: this host's network may block them", look->view.dns);
        return;
    }
    finding_add(&look->findings, FINDING_OK, "upstream", NULL, "names are resolved by %s", look->view.dns);
}

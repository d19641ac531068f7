/* `box firewall show`: the walls as the kernel has them, each port of boxnet and the verdict on it.
 * A user who may not read nftables sees what the watcher publishes.
 * Not for judging a host: that is doctor. */
#include "base/memory.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/listing.h"
#include "stack/arm.h"
#include "stack/inspect.h"

#include <unistd.h>

static json_t *describe_ports(const struct arm_port *ports, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(array, json_pack("{s:s, s:s, s:s, s:b, s:s}", "interface", ports[i].interface,
                                                     "mac", ports[i].mac, "address", ports[i].address, "armed",
                                                     ports[i].armed, "reason", ports[i].reason));
    }
    return array;
}

static json_t *describe(const struct inspection *inspection)
{
    char subnet[SUBNET_TEXT];
    json_t *uplinks = json_array();
    json_t *differences = json_array();
    subnet_format(inspection->ruleset.subnet, subnet);
    for (size_t i = 0; i < inspection->ruleset.uplink_count; i++) {
        char gateway[SUBNET_TEXT];
        subnet_format_address(inspection->ruleset.uplinks[i].gateway, gateway);
        (void)json_array_append_new(uplinks,
                                    json_pack("{s:s, s:s?}", "interface", inspection->ruleset.uplinks[i].interface,
                                              "gateway", inspection->ruleset.uplinks[i].gateway != 0 ? gateway : NULL));
    }
    for (size_t i = 0; i < inspection->differences.count; i++) {
        (void)json_array_append_new(differences, json_string(inspection->differences.items[i]));
    }
    return json_pack("{s:i, s:s?, s:o, s:o, s:o}", "watcher", (int)inspection->watcher, "subnet",
                     inspection->ruleset.has_subnet ? subnet : NULL, "uplinks", uplinks, "differences", differences,
                     "ports", describe_ports(inspection->ports, inspection->port_count));
}

static void print_ports(struct context *context, const struct arm_port *ports, size_t count)
{
    CLEANUP(listing_reset) struct listing table = {0};
    listing_row(&table, "PORT", "MAC", "ADDRESS", "ARMED", NULL);
    for (size_t i = 0; i < count; i++) {
        CLEANUP(freep) char *verdict = ports[i].armed ? xstrdup("yes") : xasprintf("no: %s", ports[i].reason);
        listing_row(&table, ports[i].interface, ports[i].mac[0] != '\0' ? ports[i].mac : "-",
                    ports[i].address[0] != '\0' ? ports[i].address : "-", verdict, NULL);
    }
    listing_print(&table, context->out);
}

static void print_walls(struct context *context, const struct inspection *inspection)
{
    char subnet[SUBNET_TEXT];
    FILE *out = context->out;
    subnet_format(inspection->ruleset.subnet, subnet);
    if (inspection->watcher != 0) {
        (void)fprintf(out, "watcher  process %d\n", (int)inspection->watcher);
    } else {
        (void)fprintf(out, "watcher  none: no new port passes anything (box setup-host starts it)\n");
    }
    (void)fprintf(out, "subnet   %s\n", inspection->ruleset.has_subnet ? subnet : "none: boxnet has no address");
    for (size_t i = 0; i < inspection->ruleset.uplink_count; i++) {
        char gateway[SUBNET_TEXT];
        subnet_format_address(inspection->ruleset.uplinks[i].gateway, gateway);
        (void)fprintf(out, "uplink   %s%s%s\n", inspection->ruleset.uplinks[i].interface,
                      inspection->ruleset.uplinks[i].gateway != 0 ? " via " : " (point to point)",
                      inspection->ruleset.uplinks[i].gateway != 0 ? gateway : "");
    }
    (void)fprintf(out, "tables   %s\n", inspection->differences.count == 0 ? "as they must be" : "DIFFER:");
    for (size_t i = 0; i < inspection->differences.count; i++) {
        (void)fprintf(out, "         %s\n", inspection->differences.items[i]);
    }
    (void)fprintf(out, "\n");
    print_ports(context, inspection->ports, inspection->port_count);
}

static int show_published(struct context *context, struct error *err)
{
    CLEANUP(freep) struct arm_port *ports = NULL;
    size_t count = 0;
    if (arm_list(&ports, &count, err) < 0) {
        return -1;
    }
    if (context->json) {
        CLEANUP(json_freep) json_t *value = json_pack("{s:i, s:o}", "watcher", (int)arm_watcher(), "ports", describe_ports(ports, count));
        context_print_json(context, value);
        return 0;
    }
    print_ports(context, ports, count);
    narrate_note(context->narrator, "the tables themselves can be read by root only: sudo box firewall show");
    return 0;
}

static int run(struct context *context, struct error *err)
{
    CLEANUP(inspect_reset) struct inspection inspection = {0};
    if (geteuid() != 0) {
        return show_published(context, err);
    }
    if (inspect_walls(&inspection, err) < 0) {
        return -1;
    }
    if (context->json) {
        CLEANUP(json_freep) json_t *value = describe(&inspection);
        context_print_json(context, value);
    } else {
        print_walls(context, &inspection);
    }
    context->status = inspection.differences.count == 0 ? 0 : 1;
    return 0;
}

const struct command command_firewall_show = {
    .name = "firewall show",
    .section = SECTION_HOST,
    .arguments = "",
    .summary = "show the walls as the kernel has them, and which ports are armed",
    .help = "Compares the tables in the kernel with what this host needs, by their\n"
            "meaning, and lists each port of boxnet with its MAC, its address and whether\n"
            "it may speak. Exit status 1 where a table differs. Without root it shows what\n"
            "the watcher publishes.\n",
    .flags = TAKES_JSON,
    .run = run,
};

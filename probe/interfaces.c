/* What this machine's stack says about itself: links, addresses, routes.
 * It only reads them; who the machine is, is in whoami.c.
 */
#include "subcommands.h"

#include "literal.h"
#include "netdump.h"

#include <string.h>

static void write_link(const struct netdump *dump, const struct netdump_link *link, struct jsonline *line)
{
    char mac[LITERAL_MAC_TEXT];
    char text[ENDPOINT_TEXT];

    jsonline_open_object(line, NULL);
    jsonline_text(line, "name", link->name);
    jsonline_number(line, "index", link->index);
    jsonline_text(line, "mac", link->has_mac ? literal_mac_text(link->mac, mac) : NULL);
    jsonline_number(line, "mtu", link->mtu);
    jsonline_bool(line, "up", link->up);
    jsonline_bool(line, "carrier", link->carrier);
    jsonline_bool(line, "loopback", link->loopback);
    jsonline_open_array(line, "addresses");
    for (size_t i = 0; i < dump->address_count; i++) {
        if (dump->addresses[i].index != link->index) {
            continue;
        }
        jsonline_open_object(line, NULL);
        jsonline_text(line, "address", endpoint_text(&dump->addresses[i].address, text));
        jsonline_number(line, "prefix", dump->addresses[i].prefix);
        jsonline_close_object(line);
    }
    jsonline_close_array(line);
    jsonline_close_object(line);
}

static int run_interfaces(const struct request *request, struct outcome *outcome)
{
    struct netdump dump;
    struct jsonline *line = &outcome->evidence;

    (void)request;
    if (netdump_read(&dump, outcome) < 0) {
        return -1;
    }
    const struct netdump_link *main_link = netdump_main_link(&dump);
    jsonline_text(line, "main", main_link ? main_link->name : NULL);
    jsonline_open_array(line, "interfaces");
    for (size_t i = 0; i < dump.link_count; i++) {
        write_link(&dump, &dump.links[i], line);
    }
    jsonline_close_array(line);
    jsonline_bool(line, "left_out", dump.left_out);
    outcome_say(outcome, VERDICT_DONE, 0);
    return 0;
}

static void write_route(const struct netdump *dump, const struct netdump_route *route, struct jsonline *line)
{
    static const char *const kinds[] = {[1] = "unicast", [6] = "blackhole", [7] = "unreachable", [8] = "prohibit"};
    const struct netdump_link *link = netdump_link_at(dump, route->index);
    char text[ENDPOINT_TEXT];

    jsonline_open_object(line, NULL);
    jsonline_text(line, "destination", endpoint_text(&route->destination, text));
    jsonline_number(line, "prefix", route->prefix);
    jsonline_text(line, "kind", kinds[route->type]);
    jsonline_text(line, "gateway", route->gateway.family ? endpoint_text(&route->gateway, text) : NULL);
    jsonline_text(line, "source", route->source.family ? endpoint_text(&route->source, text) : NULL);
    jsonline_text(line, "interface", link ? link->name : NULL);
    jsonline_number(line, "table", route->table);
    jsonline_number(line, "metric", route->metric);
    jsonline_close_object(line);
}

static int run_routes(const struct request *request, struct outcome *outcome)
{
    struct netdump dump;
    struct jsonline *line = &outcome->evidence;
    char text[ENDPOINT_TEXT];

    (void)request;
    if (netdump_read(&dump, outcome) < 0) {
        return -1;
    }
    const struct netdump_route *route = netdump_default_route(&dump, 0);
    jsonline_text(line, "gateway", route && route->gateway.family ? endpoint_text(&route->gateway, text) : NULL);
    jsonline_open_array(line, "routes");
    for (size_t i = 0; i < dump.route_count; i++) {
        write_route(&dump, &dump.routes[i], line);
    }
    jsonline_close_array(line);
    jsonline_bool(line, "left_out", dump.left_out);
    outcome_say(outcome, VERDICT_DONE, 0);
    return 0;
}

const struct subcommand subcommand_interfaces = {
    .name = "interfaces",
    .arguments = "",
    .summary = "links and their addresses",
    .timeout_ms = 2000,
    .run = run_interfaces,
};

const struct subcommand subcommand_routes = {
    .name = "routes",
    .arguments = "",
    .summary = "routes, and the default gateway",
    .timeout_ms = 2000,
    .run = run_routes,
};

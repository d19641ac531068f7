/* The network that this host itself is in, as far as boxes depend on it: a default route, resolvers that answer.
 * Asked from the host, so it can be told before there is a box. Not for boxnet or its dnsmasq: look_stack.c. */
#include "doctor/uplink.h"

#include "base/buffer.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "doctor/ask.h"
#include "host/route.h"
#include "stack/subnet.h"

#include <linux/rtnetlink.h>
#include <string.h>

#define IPV6_ROUTES "/proc/net/ipv6_route"
#define CEILING     (4 * 1024 * 1024)
#define DNS_MS      1500
#define PUBLIC      "example.com" /* reserved for this kind of use: RFC 2606 */

/* A line: destination, prefix, source, prefix, next hop, metric, use counts, flags, interface. The kernel's own default
 * route, which rejects, leaves by lo. */
static bool has_ipv6_default(void)
{
    static const char nowhere[] = "00000000000000000000000000000000 00 ";
    CLEANUP(buffer_reset) struct buffer text = {0};
    if (fd_read_file(IPV6_ROUTES, CEILING, &text, NULL) < 0) {
        return false; /* no IPv6 in this kernel */
    }
    for (char *rest = text.data, *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (text_starts_with(line, nowhere) && !text_ends_with(line, " lo")) {
            return true;
        }
    }
    return false;
}

void uplink_route(struct findings *findings)
{
    CLEANUP(freep) struct route_entry *entries = NULL;
    CLEANUP(error_reset) struct error failure = {0};
    size_t count = 0;
    if (route_entries(&entries, &count, &failure) < 0) {
        finding_add(findings, FINDING_UNSEEN, "route", NULL, "%s", failure.message);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (entries[i].prefix <= 1 && entries[i].type == RTN_UNICAST) {
            finding_add(findings, FINDING_OK, "route", NULL, "this host has a way to the IPv4 internet");
            return;
        }
    }
    if (has_ipv6_default()) {
        finding_add(findings, FINDING_BROKEN, "route", "sudo apt-get install clatd",
                    "this host has IPv6 only, and boxes speak IPv4 only: they reach nothing. It needs IPv4, or 464XLAT "
                    "where its network has NAT64");
    } else {
        finding_add(findings, FINDING_BROKEN, "route", "sudo ip route add default via GATEWAY",
                    "this host has no default route: boxes reach nothing");
    }
}

void uplink_resolvers(const char *dns, struct findings *findings)
{
    CLEANUP(freep) char *copy = xstrdup(dns);
    for (char *rest = copy, *word; (word = strsep(&rest, " ,")) != NULL;) {
        uint32_t address;
        int code = 0;
        if (subnet_parse_address(word, &address) && ask_dns(address, PUBLIC, DNS_MS, &code, NULL) == 0 && code != 2 &&
            code != 5) {
            finding_add(findings, FINDING_OK, "upstream", NULL, "%s answers this host", word);
            return;
        }
    }
    finding_add(
        findings, FINDING_BROKEN, "upstream", "sudo BOX_DNS=ADDRESS box setup-host",
        "the resolvers of boxes (%s) do not answer this host: its network may block them. Name one that it lets "
        "through",
        dns);
}

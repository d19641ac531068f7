/* Who this machine is, by everything that two machines must not share: machine id, MACs, addresses, DHCP identifiers,
 * SSH host keys (their fingerprints), and by what tells a boot from another.
 */
#include "subcommands.h"

#include "literal.h"
#include "netdump.h"
#include "slurp.h"
#include "sshkey.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { FILES_SHOWN = 16 };

/* Calls `take` with the path and name of each entry in the directory, at most FILES_SHOWN of them. */
static void each_file(const char *directory, struct jsonline *line,
                      void (*take)(const char *path, const char *name, struct jsonline *line))
{
    DIR *listing = opendir(directory);
    int shown = 0;

    if (!listing) {
        return;
    }
    for (struct dirent *entry; shown < FILES_SHOWN && (entry = readdir(listing));) {
        char path[512];
        if (entry->d_name[0] == '.') {
            continue;
        }
        (void)snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
        take(path, entry->d_name, line);
        shown++;
    }
    (void)closedir(listing);
}

static void take_key(const char *path, const char *name, struct jsonline *line)
{
    char text[4096];
    char type[SSHKEY_TYPE];
    char fingerprint[SSHKEY_FINGERPRINT];
    size_t length = strlen(name);

    if (strncmp(name, "ssh_host_", 9) != 0 || length < 4 || strcmp(name + length - 4, ".pub") != 0 ||
        slurp_file(path, text, sizeof(text)) <= 0 || !sshkey_fingerprint(text, type, fingerprint)) {
        return;
    }
    jsonline_open_object(line, NULL);
    jsonline_text(line, "type", type);
    jsonline_text(line, "fingerprint", fingerprint);
    jsonline_close_object(line);
}

/* One KEY=value line of a file; the value's length, 0 when there is none. */
static size_t value_of(const char *text, const char *key, char *value, size_t capacity)
{
    size_t key_length = strlen(key);

    for (const char *at = text; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL) {
        if (strncmp(at, key, key_length) == 0 && at[key_length] == '=') {
            size_t length = strcspn(at + key_length + 1, "\r\n");
            length = length < capacity - 1 ? length : capacity - 1;
            memcpy(value, at + key_length + 1, length);
            value[length] = '\0';
            return length;
        }
    }
    return 0;
}

/* systemd-networkd keeps what it told the server. */
static void take_lease(const char *path, const char *name, struct jsonline *line)
{
    static const char *const keys[] = {"CLIENTID", "ADDRESS", "SERVER_ADDRESS", "HOSTNAME", "DNS", "DOMAINNAME"};
    char text[4096];
    char value[256];

    if (slurp_file(path, text, sizeof(text)) <= 0) {
        return;
    }
    jsonline_open_object(line, NULL);
    jsonline_text(line, "index", name);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (value_of(text, keys[i], value, sizeof(value))) {
            jsonline_text(line, keys[i], value);
        }
    }
    jsonline_close_object(line);
}

static void write_file(struct jsonline *line, const char *key, const char *path)
{
    char text[512];

    jsonline_text(line, key, slurp_line(path, text, sizeof(text)) > 0 ? text : NULL);
}

static int write_network(struct jsonline *line, struct outcome *outcome)
{
    struct netdump dump;
    char mac[LITERAL_MAC_TEXT];
    char text[ENDPOINT_TEXT];

    if (netdump_read(&dump, outcome) < 0) {
        return -1;
    }
    jsonline_open_array(line, "macs");
    for (size_t i = 0; i < dump.link_count; i++) {
        if (dump.links[i].has_mac) {
            jsonline_text(line, NULL, literal_mac_text(dump.links[i].mac, mac));
        }
    }
    jsonline_close_array(line);
    jsonline_open_array(line, "addresses");
    for (size_t i = 0; i < dump.address_count; i++) {
        const struct netdump_link *link = netdump_link_at(&dump, dump.addresses[i].index);
        if (!link || !link->loopback) {
            jsonline_text(line, NULL, endpoint_text(&dump.addresses[i].address, text));
        }
    }
    jsonline_close_array(line);
    return 0;
}

static int run(const struct request *request, struct outcome *outcome)
{
    struct jsonline *line = &outcome->evidence;
    struct utsname name = {0};

    (void)request;
    (void)uname(&name);
    jsonline_text(line, "hostname", name.nodename);
    jsonline_text(line, "kernel", name.release);
    jsonline_text(line, "architecture", name.machine);
    jsonline_number(line, "uid", getuid());
    write_file(line, "machine_id", "/etc/machine-id");
    write_file(line, "boot_id", "/proc/sys/kernel/random/boot_id");
    write_file(line, "product_uuid", "/sys/class/dmi/id/product_uuid");
    write_file(line, "instance_id", "/var/lib/cloud/data/instance-id");
    if (write_network(line, outcome) < 0) {
        return -1;
    }
    jsonline_open_array(line, "dhcp");
    each_file("/run/systemd/netif/leases", line, take_lease);
    jsonline_close_array(line);
    jsonline_open_array(line, "ssh_host_keys");
    each_file("/etc/ssh", line, take_key);
    jsonline_close_array(line);
    outcome_say(outcome, VERDICT_DONE, 0);
    return 0;
}

const struct subcommand subcommand_identity = {
    .name = "identity",
    .arguments = "",
    .summary = "machine id, MACs, addresses, DHCP identifiers, SSH host keys",
    .timeout_ms = 2000,
    .run = run,
};

/* The facts that attacks are written with: this host's addresses, the daemon's network, the lab's world, the boxes.
 * Not for: attacking, nor for judging what is found here; a fact that is absent is just absent. */
#include "drill/ground.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/box.h"
#include "host/link.h"
#include "host/route.h"
#include "incus/server.h"
#include "stack/names.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define WORLD_FILE      "/run/box-lab/world.json"
#define WORLD_NAMESPACE "BOX_DRILL_WORLD_FD" /* set by whoever brought the lab up (lab.c) */

enum { WORLD_CEILING = 1 << 20, MAIN_TABLE = 254 };

const char *ground_fact(const struct ground *ground, const char *name)
{
    return json_text(ground->facts, name);
}

void ground_set(struct ground *ground, const char *name, const char *value)
{
    if (value) {
        json_object_set_new(ground->facts, name, json_string(value));
    }
}

static void set_address(struct ground *ground, const char *name, uint32_t address)
{
    struct in_addr raw = {.s_addr = htonl(address)};
    char text[INET_ADDRSTRLEN];

    if (inet_ntop(AF_INET, &raw, text, sizeof(text))) {
        ground_set(ground, name, text);
    }
}

/* "host.1", "host.2", ...: each address of this host that is neither loopback nor of the boxes' network. */
static void learn_addresses(struct ground *ground, const struct link *links, size_t link_count,
                            const struct route_address *addresses, size_t count, int uplink)
{
    const struct link *bridge = link_find(links, link_count, STACK_NETWORK);
    unsigned number = 0;

    for (size_t i = 0; i < count; i++) {
        const struct route_address *row = &addresses[i];
        if (bridge && row->link == bridge->index) {
            uint32_t mask = row->prefix ? ~0U << (32 - row->prefix) : 0;
            set_address(ground, "gateway", row->address);
            set_address(ground, "subnet", row->address & mask);
            set_address(ground, "broadcast", row->address | ~mask);
            set_address(ground, "stranger", (row->address | ~mask) - 5); /* an address of the subnet that no box has */
            CLEANUP(freep) char *prefix = xasprintf("%u", row->prefix);
            ground_set(ground, "prefix", prefix);
        } else if (row->address >> 24 != 127) {
            if (row->link == uplink && !ground_fact(ground, "uplink")) {
                set_address(ground, "uplink", row->address);
                continue;
            }
            CLEANUP(freep) char *name = xasprintf("host.%u", ++number);
            set_address(ground, name, row->address);
        }
    }
    if (bridge) {
        char mac[18];
        link_format_mac(bridge->mac, mac);
        ground_set(ground, "gateway.mac", mac);
    }
}

static int learn_kernel(struct ground *ground, struct error *err)
{
    CLEANUP(freep) struct link *links = NULL;
    CLEANUP(freep) struct route_address *addresses = NULL;
    CLEANUP(freep) struct route_entry *routes = NULL;
    size_t link_count, address_count, route_count;
    int uplink = 0;

    if (link_list(&links, &link_count, err) < 0 || route_addresses(&addresses, &address_count, err) < 0 ||
        route_entries(&routes, &route_count, err) < 0) {
        return error_wrap(err, "reading this host's network");
    }
    for (size_t i = 0; i < route_count; i++) {
        const struct route_entry *row = &routes[i];
        if (row->table == MAIN_TABLE && row->type == RTN_UNICAST && row->prefix == 0 && !uplink) {
            uplink = row->link;
            if (row->gateway) {
                set_address(ground, "uplink.gateway", row->gateway);
            }
        }
    }
    for (size_t i = 0; i < link_count; i++) {
        char mac[18];
        link_format_mac(links[i].mac, mac);
        CLEANUP(freep) char *name = xasprintf("mac.%s", links[i].name);
        ground_set(ground, name, mac);
        if (links[i].index == uplink) {
            ground_set(ground, "uplink.link", links[i].name);
            ground_set(ground, "uplink.mac", mac);
        }
    }
    learn_addresses(ground, links, link_count, addresses, address_count, uplink);

    struct utsname kernel;
    if (uname(&kernel) == 0) {
        ground_set(ground, "kernel", kernel.release);
        ground_set(ground, "host.name", kernel.nodename);
    }
    return 0;
}

/* Of each kind of address the world has several: "lan.1", "lan.2", ...; those of IPv6 are "lan6.1", ... */
static void learn_world(struct ground *ground)
{
    CLEANUP(json_freep) json_t *counts = json_object();
    const json_t *row;
    size_t at;

    json_array_foreach(json_object_get(ground->world, "addresses"), at, row)
    {
        const char *kind = json_text(row, "kind");
        const char *address = json_text(row, "address");
        if (!kind || !address) {
            continue;
        }
        CLEANUP(freep) char *key = xasprintf("%s%s", kind, strchr(address, ':') ? "6" : "");
        int64_t number = json_number(counts, key, 0) + 1;
        CLEANUP(freep) char *name = xasprintf("%s.%lld", key, (long long)number);
        json_object_set_new(counts, key, json_integer(number));
        ground_set(ground, name, address);
    }
    ground_set(ground, "private.name",
               json_text(json_array_get(json_object_get(ground->world, "private_hosts"), 0), "name"));
    ground_set(ground, "public.name", json_text(json_path(ground->world, "web", NULL), "name"));
    ground_set(ground, "web", json_text(json_path(ground->world, "web", NULL), "address"));
    ground_set(ground, "web.port", "80");
    ground_set(ground, "resolver", json_text(ground->world, "resolver"));
    const char *lan = json_text(json_path(ground->world, "host", "lan", NULL), "link");
    const char *own = json_text(json_path(ground->world, "host", "lan", NULL), "address");
    if (own && strrchr(own, '.')) {
        /* Of nobody: a packet that claims to be from one of the world's own addresses is dropped there as impossible.
         */
        CLEANUP(freep) char *stranger = xasprintf("%.*s.199", (int)(strrchr(own, '.') - own), own);
        ground_set(ground, "lan.stranger", stranger);
    }
    CLEANUP(freep) char *lan_mac = xasprintf("mac.%s", lan ? lan : "");
    ground_set(ground, "lan.mac", ground_fact(ground, lan_mac));
    ground_set(ground, "uplink6", json_text(json_path(ground->world, "host", "uplink", NULL), "address6"));
    ground_set(ground, "uplink6.gateway", json_text(json_path(ground->world, "host", "uplink", NULL), "gateway6"));
}

/* Without a lab nothing but two well-known public resolvers is ever probed. */
static void learn_internet(struct ground *ground)
{
    ground_set(ground, "web", "1.1.1.1");
    ground_set(ground, "web.port", "443");
    ground_set(ground, "public.name", "one.one.one.one");
    ground_set(ground, "resolver", "1.1.1.1");
    ground_set(ground, "resolver.1", "1.1.1.1");
    ground_set(ground, "resolver.2", "8.8.8.8");
}

static char *neighbour_of(const char *program, const char *relative)
{
    CLEANUP(freep) char *directory = xstrdup(program);
    char *slash = strrchr(directory, '/');

    if (!slash) {
        return NULL;
    }
    *slash = '\0';
    CLEANUP(freep) char *path = xasprintf("%s/%s", directory, relative);
    return access(path, X_OK) == 0 ? realpath(path, NULL) : NULL;
}

/* Itself, unless BOX_DRILL_PROGRAM names another box to rehearse; and the instrument that came with this one. */
static int find_instrument(struct ground *ground, struct error *err)
{
    const char *given = getenv("BOX_PROBE");
    const char *other = getenv("BOX_DRILL_PROGRAM");
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

    path[length > 0 ? length : 0] = '\0';
    ground->program = xstrdup(text_is_empty(other) ? path : other);
    if (!text_is_empty(given)) {
        ground->instrument = xstrdup(given);
    } else if (!(ground->instrument = neighbour_of(path, "../../probe/box-probe"))) {
        ground->instrument = xstrdup(DRILL_LIBEXECDIR "/box-probe");
    }
    if (access(ground->instrument, X_OK) == 0) {
        return 0;
    }
    (void)error_set(err, ERR_NOT_FOUND, "the instrument is not there: %s", ground->instrument);
    return error_remedy(err, "install it with `meson install`, or name it in BOX_PROBE");
}

static int read_world(struct ground *ground, struct error *err)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    const char *descriptor = getenv(WORLD_NAMESPACE);
    uint64_t number;

    ground->world_namespace = -1;
    if (access(WORLD_FILE, R_OK) < 0) {
        return 0;
    }
    if (text_parse_number(descriptor, 3, INT_MAX, &number) && fcntl((int)number, F_GETFD) >= 0) {
        ground->world_namespace = (int)number;
    }
    return fd_read_file(WORLD_FILE, WORLD_CEILING, &text, err) < 0
               ? -1
               : json_parse(text.data, text.length, WORLD_FILE, &ground->world, err);
}

int ground_open(struct client *client, const char *directory, struct ground **ret_ground, struct error *err)
{
    CLEANUP(ground_freep) struct ground *ground = xcalloc(1, sizeof(*ground));
    struct server server = {0};

    ground->facts = json_object();
    ground->directory = xstrdup(directory);
    ground->guest_program = xasprintf("/var/tmp/box-probe-%d", (int)getpid());
    if (find_instrument(ground, err) < 0 || read_world(ground, err) < 0 || server_get(client, &server, err) < 0) {
        return -1;
    }
    ground_set(ground, "incus", server.version);
    ground_set(ground, "vms", server.drives_vms && access("/dev/kvm", R_OK | W_OK) == 0 ? "yes" : NULL);
    server_reset(&server);
    if (learn_kernel(ground, err) < 0) {
        return -1;
    }
    if (ground->world) {
        learn_world(ground);
    } else {
        learn_internet(ground);
    }
    *ret_ground = steal(&ground);
    return 0;
}

void ground_free(struct ground *ground)
{
    if (!ground) {
        return;
    }
    json_decref(ground->facts);
    json_decref(ground->world);
    free(ground->program);
    free(ground->instrument);
    free(ground->guest_program);
    free(ground->directory);
    free(ground);
}

int ground_learn_box(struct ground *ground, struct client *client, const char *prefix, const char *name,
                     struct error *err)
{
    CLEANUP(box_freep) struct box *box = NULL;

    if (box_find(client, name, &box, err) < 0 || box_find_address(client, box, err) < 0) {
        return -1;
    }
    const struct {
        const char *key, *value;
    } facts[] = {
        {"name", box->name},  {"ip", box->ipv4},
        {"mac", box->hwaddr}, {"port", json_text(json_object_get(box->instance, "config"), "volatile.eth0.host_name")},
        {"user", box->user},  {"type", box->vm ? "vm" : "container"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(facts); i++) {
        CLEANUP(freep) char *key = xasprintf("%s.%s", prefix, facts[i].key);
        ground_set(ground, key, facts[i].value);
    }
    CLEANUP(freep) char *nic = xasprintf("%s.nic", prefix);
    ground_set(ground, nic, box->vm ? "enp5s0" : "eth0");
    if (box->ipv4) {
        return 0;
    }
    (void)error_set(err, ERR_STATE, "the box %s has no address", name);
    return error_remedy(err, "look at `box info %s` and `box doctor`", name);
}

/* Fills the {facts} of one word in. */
static int fill(const struct ground *ground, const char *word, size_t length, char **ret_word, struct error *err)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    const char *end = word + length;

    while (word < end) {
        const char *open = memchr(word, '{', (size_t)(end - word));
        const char *close = open ? memchr(open, '}', (size_t)(end - open)) : NULL;
        if (!close) {
            break;
        }
        CLEANUP(freep) char *name = xstrndup(open + 1, (size_t)(close - open - 1));
        const char *value = *name ? ground_fact(ground, name) : "{}";
        if (!value) {
            return error_set(err, ERR_NOT_FOUND, "this host has no %s", name);
        }
        buffer_append(&text, word, (size_t)(open - word));
        buffer_append_text(&text, value);
        word = close + 1;
    }
    buffer_append(&text, word, (size_t)(end - word));
    *ret_word = buffer_steal(&text);
    return 0;
}

int ground_fill(const struct ground *ground, const char *text, char **ret_text, struct error *err)
{
    return fill(ground, text, strlen(text), ret_text, err);
}

int ground_expand(const struct ground *ground, const char *text, char **ret_place, struct argv *ret_words,
                  struct error *err)
{
    CLEANUP(argv_reset) struct argv words = {0};
    const char *colon = strchr(text, ':');

    if (!colon || colon == text) {
        return error_set(err, ERR_USAGE, "an attack says from where: \"%s\" does not", text);
    }
    for (const char *at = colon + 1; *(at += strspn(at, " "));) {
        size_t length = strcspn(at, " ");
        char *word;
        if (fill(ground, at, length, &word, err) < 0) {
            return -1;
        }
        argv_push_owned(&words, word);
        at += length;
    }
    *ret_place = xstrndup(text, (size_t)(colon - text));
    *ret_words = words;
    words = (struct argv){0};
    return 0;
}

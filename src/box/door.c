/* Doors from the host's loopback into boxes.
 * Not for: whether an instance's devices keep the contract; see contract.c. */
#include "box/door.h"

#include "base/buffer.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/contract.h"
#include "box/tag.h"
#include "incus/exec.h"
#include "incus/instance.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define LISTEN     "tcp:127.0.0.1:"
#define TRIES      5     /* against others who change the same box */
#define LOOK_TIME  10000 /* milliseconds for the guest to say what listens */
#define LOOK_BYTES ((size_t)256 * 1024)

static void free_doors(struct door *doors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(doors[i].box);
    }
    free(doors);
}

void door_list_free(struct door *doors, size_t count)
{
    free_doors(doors, count);
}

static bool parse_port(const char *text, uint16_t *ret_port)
{
    uint64_t number;
    if (!text || !text_parse_number(text, 1, 65535, &number)) {
        return false;
    }
    *ret_port = (uint16_t)number;
    return true;
}

/* False for a device that is none of our doors. */
static bool read_door(const char *name, const json_t *device, struct door *ret_door)
{
    const char *listen = json_text(device, "listen");
    return text_equal(json_text(device, "type"), "proxy") && text_starts_with(name, CONTRACT_DOOR_PREFIX) &&
           parse_port(name + strlen(CONTRACT_DOOR_PREFIX), &ret_door->port) && listen &&
           text_starts_with(listen, LISTEN) && parse_port(listen + strlen(LISTEN), &ret_door->host_port);
}

static int compare(const void *a, const void *b)
{
    const struct door *one = a;
    const struct door *other = b;
    int names = strcmp(one->box, other->box);
    return names ? names : (int)one->port - (int)other->port;
}

int door_list(struct client *client, const char *box, struct door **ret_doors, size_t *ret_count, struct error *err)
{
    CLEANUP(json_freep) json_t *instances = NULL;
    if (instance_list(client, TAG_FILTER, &instances, err) < 0) {
        return -1;
    }
    struct door *doors = NULL;
    size_t count = 0;
    size_t i;
    json_t *instance;
    json_array_foreach(instances, i, instance)
    {
        const char *owner = json_text(instance, "name");
        const char *name;
        json_t *device;
        if (!owner || !tag_is_box(instance) || (box && !text_equal(box, owner))) {
            continue;
        }
        json_object_foreach(json_object_get(instance, "devices"), name, device)
        {
            struct door door = {.open = text_equal(json_text(instance, "status"), "Running")};
            if (read_door(name, device, &door)) {
                doors = xreallocarray(doors, count + 1, sizeof(*doors));
                door.box = xstrdup(owner);
                doors[count++] = door;
            }
        }
    }
    if (count) {
        qsort(doors, count, sizeof(*doors), compare);
    }
    *ret_doors = doors;
    *ret_count = count;
    return 0;
}

static int taken(const struct box *box, uint16_t port, struct error *err)
{
    return error_remedy(err, "choose another port of this host: box expose %s %u %u", box->name, port,
                        port < 55536 ? port + 10000U : port - 10000U);
}

static int check_doors(struct client *client, const struct box *box, uint16_t port, uint16_t host_port,
                       struct error *err)
{
    struct door *doors;
    size_t count;
    if (door_list(client, NULL, &doors, &count, err) < 0) {
        return -1;
    }
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        bool own = text_equal(doors[i].box, box->name);
        if (own && doors[i].port == port) {
            error_set(err, ERR_EXISTS, "the port %u of %s has a door already: 127.0.0.1:%u", port, box->name,
                      doors[i].host_port);
            result = error_remedy(err, "close it: box expose %s --remove %u", box->name, port);
        } else if (doors[i].host_port == host_port) {
            error_set(err, ERR_EXISTS, "the port %u of this host is the door to port %u of the box %s", host_port,
                      doors[i].port, doors[i].box);
            result = taken(box, port, err);
        }
    }
    free_doors(doors, count);
    return result;
}

/* Whether anything of this host listens where the door shall be; a port that we may not try is left to the daemon. */
static int check_host(const struct box *box, uint16_t port, uint16_t host_port, struct error *err)
{
    CLEANUP(fd_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(host_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    if (fd < 0) {
        return error_set_errno(err, errno, "cannot make a socket");
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)); /* connections that linger listen to nobody */
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 && errno == EADDRINUSE) {
        error_set(err, ERR_EXISTS, "something on this host uses the port %u already", host_port);
        return taken(box, port, err);
    }
    return 0;
}

/* True where a server listens on ::1 and none that 127.0.0.1 would reach. The lines are those of proc_net_tcp(5):
 * address and port in hexadecimal, state 0A is a listener. What the guest says decides about nobody but itself. */
static bool only_v6_loopback(char *lines, uint16_t port)
{
    CLEANUP(freep) char *ending = xasprintf(":%04X", port);
    bool v6 = false;
    char *rest = NULL;
    for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char address[64];
        char state[8];
        if (sscanf(line, " %*[^ ] %63s %*s %7s", address, state) != 2 || !text_equal(state, "0A") ||
            !text_ends_with(address, ending)) {
            continue;
        }
        address[strlen(address) - strlen(ending)] = '\0';
        if (text_equal(address, "00000000000000000000000001000000") ||
            text_equal(address, "00000000000000000000000000000001")) {
            v6 = true;
        } else {
            return false;
        }
    }
    return v6;
}

static bool leads_to_v6(struct client *client, const struct box *box, uint16_t port)
{
    static const char *const command[] = {"cat", "/proc/net/tcp", "/proc/net/tcp6", NULL};
    CLEANUP(buffer_reset) struct buffer lines = {0};
    int status = 1;
    struct exec_request request = {
        .instance = box->name,
        .command = command,
        .directory = "/",
        .input = -1,
        .output = -1,
        .errors = -1,
        .capture = &lines,
        .ceiling = LOOK_BYTES,
        .budget = LOOK_TIME,
    };
    if (exec_run(client, &request, &status, NULL) < 0 || !lines.data) {
        return false;
    }
    return only_v6_loopback(lines.data, port);
}

static int add(struct client *client, const struct box *box, uint16_t port, uint16_t host_port, bool v6,
               struct error *err)
{
    CLEANUP(freep) char *name = xasprintf(CONTRACT_DOOR_PREFIX "%u", port);
    CLEANUP(freep) char *listen = xasprintf(LISTEN "%u", host_port);
    CLEANUP(freep) char *connect = xasprintf("tcp:%s:%u", v6 ? "[::1]" : "127.0.0.1", port);
    CLEANUP(json_freep)
    json_t *body = json_pack("{s:{s:{s:s, s:s, s:s, s:s}}}", "devices", name, "type", "proxy", "listen", listen,
                             "connect", connect, "bind", "host");
    CLEANUP(error_reset) struct error failure = {0};
    if (!body) {
        abort();
    }
    if (instance_patch(client, box->name, body, &failure) == 0) {
        return 0;
    }
    bool lost = failure.message && strstr(failure.message, "address already in use");
    error_move(err, &failure);
    error_wrap(err, "cannot open a door at 127.0.0.1:%u", host_port);
    if (lost) {
        err->code = ERR_EXISTS;
        return taken(box, port, err);
    }
    return -1;
}

int door_open(struct client *client, const struct box *box, uint16_t port, uint16_t host_port, struct error *err)
{
    if (box->vm) {
        error_set(err, ERR_STATE, "%s is a VM: Incus has no forwarder that reaches a server on a VM's own loopback",
                  box->name);
        return error_remedy(err, "through ssh: box ssh-config %s >> ~/.ssh/config; ssh -L %u:127.0.0.1:%u %s",
                            box->name, host_port, port, box->name);
    }
    if (!box->running) {
        error_set(err, ERR_STATE, "the box %s is not running (Incus says: %s)", box->name, box->status);
        return error_remedy(err, "start it: box start %s", box->name);
    }
    if (check_doors(client, box, port, host_port, err) < 0 || check_host(box, port, host_port, err) < 0) {
        return -1;
    }
    return add(client, box, port, host_port, leads_to_v6(client, box, port), err);
}

static int remove_once(struct client *client, const char *box, uint16_t port, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;
    CLEANUP(freep) char *etag = NULL;
    if (instance_get_tagged(client, box, &instance, &etag, err) < 0) {
        return -1;
    }
    json_t *devices = json_object_get(instance, "devices");
    const char *name;
    json_t *device;
    json_object_foreach(devices, name, device)
    {
        struct door door = {0};
        if (read_door(name, device, &door) && door.port == port) {
            (void)json_object_del(devices, name);
            return instance_put(client, box, etag, instance, 30000, err);
        }
    }
    error_set(err, ERR_NOT_FOUND, "%s has no door to its port %u", box, port);
    return error_remedy(err, "which there are: box expose --list");
}

int door_close(struct client *client, const struct box *box, uint16_t port, struct error *err)
{
    for (int tries = 1;; tries++) {
        CLEANUP(error_reset) struct error failure = {0};
        if (remove_once(client, box->name, port, &failure) == 0) {
            return 0;
        }
        if (failure.http != 412 || tries == TRIES) {
            return error_move(err, &failure);
        }
    }
}

/* The functions of src/incus as commands, so that the lab's tests can drive each against a real daemon.
 * Not for: people; it is not installed. On an error it writes "error CODE http=N: MESSAGE" and "remedy: ..." and
 * exits 1. */
#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "incus/exec.h"
#include "incus/guestfile.h"
#include "incus/image.h"
#include "incus/instance.h"
#include "incus/operation.h"
#include "incus/server.h"
#include "incus/terminal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const code_names[] = {
    [ERR_NONE] = "none",
    [ERR_USAGE] = "usage",
    [ERR_NOT_FOUND] = "not-found",
    [ERR_EXISTS] = "exists",
    [ERR_DENIED] = "denied",
    [ERR_TIMEOUT] = "timeout",
    [ERR_INTERRUPTED] = "interrupted",
    [ERR_STATE] = "state",
    [ERR_CONTRACT] = "contract",
    [ERR_NO_DAEMON] = "no-daemon",
    [ERR_REFUSED_BY_INCUS] = "refused",
    [ERR_PROTOCOL] = "protocol",
    [ERR_SYSTEM] = "system",
};

static int tell(const struct error *err)
{
    fprintf(stderr, "error %s http=%d: %s\n", code_names[err->code], err->http, err->message);
    if (err->remedy) {
        fprintf(stderr, "remedy: %s\n", err->remedy);
    }
    return 1;
}

static int print(json_t *value)
{
    CLEANUP(freep) char *text = value ? json_write(value, JSON_COMPACT | JSON_SORT_KEYS) : xstrdup("null");
    json_decref(value);
    return puts(text) < 0 || fflush(stdout) != 0;
}

/* A narrator that says on stderr what it was told, and counts its ticks. */
struct teller {
    struct narrator narrator;
    int ticks;
};

static void say(struct narrator *narrator, enum narrate_kind kind, const char *text)
{
    fprintf(stderr, "narrated: %s\n", text);
}

static void count_tick(struct narrator *narrator)
{
    ((struct teller *)narrator)->ticks++;
}

static struct teller make_teller(void)
{
    return (struct teller){.narrator = {.say = say, .tick = count_tick}};
}

static json_t *pairs(char **arguments)
{
    json_t *object = json_object();
    for (; *arguments; arguments++) {
        char *equals = strchr(*arguments, '=');
        if (equals) {
            CLEANUP(freep) char *key = xstrndup(*arguments, (size_t)(equals - *arguments));
            json_object_set_new(object, key, json_string(equals + 1));
        }
    }
    return object;
}

static int run_get(struct client *client, char **a, struct error *err)
{
    json_t *metadata = NULL;
    return client_get(client, a[0], &metadata, err) < 0 ? -1 : print(metadata);
}

static int run_request(struct client *client, char **a, struct error *err)
{
    json_t *metadata = NULL;
    CLEANUP(json_freep) json_t *body = a[2] ? json_loads(a[2], 0, NULL) : NULL;
    return client_request(client, a[0], a[1], body, &metadata, err) < 0 ? -1 : print(metadata);
}

/* Two GETs and a conditional PUT between: METHOD is always GET, then PUT with the tag that came, or a wrong one. */
static int run_tagged(struct client *client, char **a, struct error *err)
{
    CLEANUP(json_freep) json_t *metadata = NULL;
    CLEANUP(freep) char *etag = NULL;
    if (client_get_tagged(client, a[0], &metadata, &etag, err) < 0) {
        return -1;
    }
    CLEANUP(json_freep) json_t *body = json_loads(a[1], 0, NULL);
    return client_put_tagged(client, a[0], a[2] ? a[2] : etag, body, err);
}

static int run_operation(struct client *client, char **a, struct error *err)
{
    struct teller teller = make_teller();
    CLEANUP(json_freep) json_t *body = a[2] ? json_loads(a[2], 0, NULL) : NULL;
    int result =
        operation_run(client, a[0], a[1], body, a[2] && a[3] ? strtoll(a[3], NULL, 10) : 0, &teller.narrator, err);
    fprintf(stderr, "ticks %d\n", teller.ticks);
    return result;
}

static int run_exec(struct client *client, char **a, struct error *err)
{
    struct exec_request request = {.input = STDIN_FILENO, .output = STDOUT_FILENO, .errors = STDERR_FILENO};
    CLEANUP(buffer_reset) struct buffer captured = {0};
    CLEANUP(buffer_reset) struct buffer captured_errors = {0};
    CLEANUP(json_freep) json_t *environment = json_object();
    struct teller teller = make_teller();
    bool with_ticks = false;
    for (; *a && !text_equal(*a, "--"); a++) {
        if (text_equal(*a, "--interactive")) {
            request.interactive = true;
        } else if (text_equal(*a, "--no-input")) {
            request.input = -1;
        } else if (text_equal(*a, "--no-output")) {
            request.output = -1;
        } else if (text_equal(*a, "--ticks")) {
            with_ticks = true;
            request.narrator = &teller.narrator;
        } else if (text_equal(*a, "--user")) {
            request.user = request.group = (uint32_t)strtoul(*++a, NULL, 10);
        } else if (text_equal(*a, "--cwd")) {
            request.directory = *++a;
        } else if (text_equal(*a, "--budget")) {
            request.budget = strtoll(*++a, NULL, 10);
        } else if (text_equal(*a, "--capture")) {
            request.capture = &captured;
            request.capture_errors = &captured_errors;
            request.ceiling = (size_t)strtoul(*++a, NULL, 10);
        } else if (text_equal(*a, "--env")) {
            char *pair[] = {*++a, NULL};
            CLEANUP(json_freep) json_t *one = pairs(pair);
            json_object_update(environment, one);
            request.environment = environment;
        } else {
            request.instance = *a;
        }
    }
    request.command = (const char *const *)(*a ? a + 1 : a);
    int status = 0;
    int result = exec_run(client, &request, &status, err);
    if (with_ticks) {
        fprintf(stderr, "ticks %d\n", teller.ticks);
    }
    if (request.capture) {
        fprintf(stderr, "captured %zu %zu\n", captured.length, captured_errors.length);
        (void)fd_write_all(STDOUT_FILENO, captured.data, captured.length, NULL);
    }
    return result < 0 ? -1 : status;
}

static int run_push(struct client *client, char **a, struct error *err)
{
    struct teller teller = make_teller();
    CLEANUP(fd_closep) int fd = open(a[2], O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0) {
        return error_set(err, ERR_USAGE, "cannot open %s", a[2]);
    }
    struct guestfile_owner owner = {.user = (uint32_t)strtoul(a[3], NULL, 10),
                                    .group = (uint32_t)strtoul(a[4], NULL, 10),
                                    .mode = (mode_t)strtoul(a[5], NULL, 8)};
    return guestfile_upload(client, a[0], a[1], fd, status.st_size, &owner, &teller.narrator, err);
}

static int run_write(struct client *client, char **a, struct error *err)
{
    struct guestfile_owner owner = {.mode = 0644};
    return guestfile_write(client, a[0], a[1], a[2], strlen(a[2]), &owner, err);
}

static int run_pull(struct client *client, char **a, struct error *err)
{
    struct teller teller = make_teller();
    return guestfile_download(client, a[0], a[1], STDOUT_FILENO, &teller.narrator, err);
}

static int run_read(struct client *client, char **a, struct error *err)
{
    CLEANUP(buffer_reset) struct buffer data = {0};
    if (guestfile_read(client, a[0], a[1], (size_t)strtoul(a[2], NULL, 10), &data, err) < 0) {
        return -1;
    }
    return fd_write_all(STDOUT_FILENO, data.data, data.length, err);
}

static int run_unlink(struct client *client, char **a, struct error *err)
{
    return guestfile_delete(client, a[0], a[1], err);
}

static int run_ls(struct client *client, char **a, struct error *err)
{
    json_t *names = NULL;
    return guestfile_list(client, a[0], a[1], &names, err) < 0 ? -1 : print(names);
}

static int run_import(struct client *client, char **a, struct error *err)
{
    struct teller teller = make_teller();
    CLEANUP(freep) char *fingerprint = NULL;
    CLEANUP(json_freep) json_t *properties = pairs(a + 3);
    if (image_import(client, a[0], a[1], a[2], properties, &teller.narrator, &fingerprint, err) < 0) {
        return -1;
    }
    return puts(fingerprint) < 0;
}

static int run_alias(struct client *client, char **a, struct error *err)
{
    json_t *image = NULL;
    return image_by_alias(client, a[0], a[1], &image, err) < 0 ? -1 : print(image);
}

static int run_image_delete(struct client *client, char **a, struct error *err)
{
    return image_delete(client, a[0], err);
}

static int run_images(struct client *client, char **a, struct error *err)
{
    json_t *images = NULL;
    return image_list(client, &images, err) < 0 ? -1 : print(images);
}

static int run_list(struct client *client, char **a, struct error *err)
{
    json_t *array = NULL;
    return instance_list(client, a[0], &array, err) < 0 ? -1 : print(array);
}

static int run_instance(struct client *client, char **a, struct error *err)
{
    json_t *instance = NULL;
    return instance_get(client, a[0], &instance, err) < 0 ? -1 : print(instance);
}

static int run_state(struct client *client, char **a, struct error *err)
{
    json_t *state = NULL;
    return instance_state(client, a[0], &state, err) < 0 ? -1 : print(state);
}

static int run_create(struct client *client, char **a, struct error *err)
{
    struct teller teller = make_teller();
    CLEANUP(json_freep) json_t *body = json_loads(a[0], 0, NULL);
    return instance_create(client, body, 0, &teller.narrator, err);
}

static int run_patch(struct client *client, char **a, struct error *err)
{
    CLEANUP(json_freep) json_t *body = json_loads(a[1], 0, NULL);
    return instance_patch(client, a[0], body, err);
}

/* Reads, sets one key and puts it back; a second argument pair stands in for a change by somebody else in between. */
static int run_put(struct client *client, char **a, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;
    CLEANUP(freep) char *etag = NULL;
    if (instance_get_tagged(client, a[0], &instance, &etag, err) < 0) {
        return -1;
    }
    CLEANUP(json_freep) json_t *change = pairs(a + 1);
    if (a[1] && a[2]) {
        CLEANUP(json_freep) json_t *between = json_pack("{s:{s:s}}", "config", "user.between", "yes");
        if (instance_patch(client, a[0], between, err) < 0) {
            return -1;
        }
    }
    json_object_update(json_object_get(instance, "config"), change);
    return instance_put(client, a[0], etag, instance, 0, err);
}

static int run_change(struct client *client, char **a, struct error *err)
{
    return instance_change_state(client, a[0], a[1], -1, text_equal(a[2], "force"), 60000, NULL, err);
}

static int run_delete(struct client *client, char **a, struct error *err)
{
    return instance_delete(client, a[0], 60000, err);
}

static int run_rename(struct client *client, char **a, struct error *err)
{
    return instance_rename(client, a[0], a[1], err);
}

static int run_snapshot(struct client *client, char **a, struct error *err)
{
    json_t *array = NULL;
    if (text_equal(a[0], "create")) {
        return instance_snapshot_create(client, a[1], a[2], 60000, NULL, err);
    }
    if (text_equal(a[0], "restore")) {
        return instance_snapshot_restore(client, a[1], a[2], 60000, NULL, err);
    }
    if (text_equal(a[0], "delete")) {
        return instance_snapshot_delete(client, a[1], a[2], 60000, err);
    }
    return instance_snapshot_list(client, a[1], &array, err) < 0 ? -1 : print(array);
}

static int run_server(struct client *client, char **a, struct error *err)
{
    CLEANUP(server_reset) struct server server = {0};
    if (server_get(client, &server, err) < 0) {
        return -1;
    }
    printf("%s containers=%d vms=%d trusted=%d socket=%s\n", server.version, server.drives_containers,
           server.drives_vms, server.trusted, client_socket(client));
    return 0;
}

static int run_leases(struct client *client, char **a, struct error *err)
{
    json_t *leases = NULL;
    return server_leases(client, a[0], &leases, err) < 0 ? -1 : print(leases);
}

/* The same GET again and again over one client: the kept connection, and a daemon that restarts in between (a line on
 * stdin asks for the next). */
static int run_again(struct client *client, char **a, struct error *err)
{
    char line[16];
    do {
        json_t *metadata = NULL;
        CLEANUP(error_reset) struct error failure = {0};
        if (client_get(client, a[0], &metadata, &failure) < 0) {
            printf("%s\n", code_names[failure.code]);
        } else {
            printf("ok\n");
        }
        json_decref(metadata);
        fflush(stdout);
    } while (fgets(line, sizeof(line), stdin));
    return 0;
}

static void trace(void *context, const char *line)
{
    fprintf(stderr, "trace: %s\n", line);
}

struct verb {
    const char *name;
    int arguments; /* at least */
    int (*run)(struct client *client, char **arguments, struct error *err);
};

static const struct verb verbs[] = {
    {"get", 1, run_get},
    {"request", 2, run_request},
    {"tagged", 2, run_tagged},
    {"operation", 2, run_operation},
    {"exec", 2, run_exec},
    {"push", 6, run_push},
    {"write", 3, run_write},
    {"pull", 2, run_pull},
    {"read", 3, run_read},
    {"unlink", 2, run_unlink},
    {"ls", 2, run_ls},
    {"import", 3, run_import},
    {"alias", 1, run_alias},
    {"image-delete", 1, run_image_delete},
    {"images", 0, run_images},
    {"list", 0, run_list},
    {"instance", 1, run_instance},
    {"state", 1, run_state},
    {"create", 1, run_create},
    {"patch", 2, run_patch},
    {"put", 2, run_put},
    {"change", 2, run_change},
    {"delete", 1, run_delete},
    {"rename", 2, run_rename},
    {"snapshot", 2, run_snapshot},
    {"server", 0, run_server},
    {"leases", 1, run_leases},
    {"again", 1, run_again},
};

int main(int argc, char **argv)
{
    fd_secure_standard();
    cancel_install();
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(client_closep) struct client *client = NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(verbs) && argc > 1; i++) {
        if (text_equal(verbs[i].name, argv[1]) && argc - 2 >= verbs[i].arguments) {
            if (client_open(&client, &err) < 0) {
                return tell(&err);
            }
            if (getenv("INCUS_TOOL_PATIENCE")) {
                client_be_patient(client, strtoll(getenv("INCUS_TOOL_PATIENCE"), NULL, 10));
            }
            if (getenv("INCUS_TOOL_TRACE")) {
                client_trace(client, trace, NULL);
            }
            int result = verbs[i].run(client, argv + 2, &err);
            return result < 0 ? tell(&err) : result;
        }
    }
    fprintf(stderr, "usage: incus_tool VERB ARGUMENTS...; read its source\n");
    return 2;
}

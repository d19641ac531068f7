/* Images of the daemon's store: found by alias, imported, deleted.
 * Not for: building one; see box/image. */
#include "incus/image.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "incus/call.h"
#include "incus/operation.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int get_alias(struct client *client, const char *alias, json_t **ret_alias, struct error *err)
{
    CLEANUP(freep) char *path = call_path("images/aliases", alias, "");
    return client_get(client, path, ret_alias, err);
}

int image_by_alias(struct client *client, const char *alias, const char *type, json_t **ret_image, struct error *err)
{
    CLEANUP(json_freep) json_t *found = NULL;
    if (get_alias(client, alias, &found, err) < 0) {
        return -1;
    }
    const char *target = json_text(found, "target");
    if (!target || (type && !text_equal(json_text(found, "type"), type))) {
        return error_set(err, ERR_NOT_FOUND, "the alias %s names no image of type %s", alias, type ? type : "any");
    }
    CLEANUP(freep) char *path = call_path("images", target, "");
    return client_get(client, path, ret_image, err);
}

int image_list(struct client *client, json_t **ret_array, struct error *err)
{
    return client_get(client, "/1.0/images?recursion=1", ret_array, err);
}

int image_delete(struct client *client, const char *fingerprint, struct error *err)
{
    CLEANUP(freep) char *path = call_path("images", fingerprint, "");
    return operation_run(client, "DELETE", path, NULL, 0, NULL, err);
}

static int open_part(const char *path, const char *name, int *ret_fd, struct http_part *ret_part, struct error *err)
{
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0) {
        return error_set_errno(err, errno, "cannot open %s", path);
    }
    if (!S_ISREG(status.st_mode)) {
        return error_set(err, ERR_USAGE, "%s is not a regular file", path);
    }
    const char *slash = strrchr(path, '/');
    *ret_part = (struct http_part){
        .name = name, .filename = slash ? slash + 1 : path, .source = {.fd = fd, .length = status.st_size}};
    *ret_fd = fd;
    fd = -1;
    return 0;
}

/* Properties travel as a query string in a header. */
static char *properties_header(const json_t *properties)
{
    CLEANUP(buffer_reset) struct buffer header = {0};
    buffer_append_text(&header, "X-Incus-properties: ");
    const char *key, *separator = "";
    json_t *value;
    json_object_foreach((json_t *)properties, key, value)
    {
        if (json_is_string(value)) {
            CLEANUP(freep) char *name = text_url_encode(key);
            CLEANUP(freep) char *text = text_url_encode(json_string_value(value));
            buffer_append_format(&header, "%s%s=%s", separator, name, text);
            separator = "&";
        }
    }
    return buffer_steal(&header);
}

/* The store may have these very bytes already: then the operation fails, and still knows their fingerprint. */
static int wait_for_fingerprint(struct operation *operation, struct narrator *narrator, char **ret_fingerprint,
                                struct error *err)
{
    CLEANUP(json_freep) json_t *metadata = NULL;
    CLEANUP(error_reset) struct error failure = {0};
    if (operation_wait(operation, 0, narrator, &metadata, &failure) < 0 &&
        (failure.code != ERR_EXISTS || operation_look(operation, &metadata, NULL) < 0)) {
        return error_move(err, &failure);
    }
    const char *fingerprint = json_text(metadata, "fingerprint");
    if (!fingerprint) {
        return error_set(err, ERR_PROTOCOL, "Incus took the image, but did not say its fingerprint");
    }
    *ret_fingerprint = xstrdup(fingerprint);
    return 0;
}

static int upload(struct client *client, const struct http_part parts[2], const json_t *properties,
                  struct narrator *narrator, char **ret_fingerprint, struct error *err)
{
    CLEANUP(freep) char *header = properties_header(properties);
    const char *const headers[] = {header, NULL};
    const struct call call = {.method = "POST",
                              .path = "/1.0/images",
                              .headers = json_object_size(properties) ? headers : NULL,
                              .parts = parts,
                              .part_count = 2,
                              .narrator = narrator};
    CLEANUP(operation_freep) struct operation *operation = NULL;
    if (operation_send(client, &call, &operation, err) < 0) {
        return -1;
    }
    return wait_for_fingerprint(operation, narrator, ret_fingerprint, err);
}

/* Removes an image that lost its last alias. Its loss of space is all that a failure costs, so it is told and no more.
 */
static void drop_unnamed(struct client *client, const char *fingerprint, struct narrator *narrator)
{
    CLEANUP(error_reset) struct error failure = {0};
    CLEANUP(freep) char *path = call_path("images", fingerprint, "");
    CLEANUP(json_freep) json_t *image = NULL;
    if (client_get(client, path, &image, &failure) == 0) {
        if (json_array_size(json_object_get(image, "aliases")) || image_delete(client, fingerprint, &failure) == 0) {
            return;
        }
    }
    if (failure.code != ERR_NOT_FOUND) {
        narrate_warn(narrator, "the older image %.12s stays: %s", fingerprint, failure.message);
    }
}

static int point_alias(struct client *client, const char *alias, const char *fingerprint, struct narrator *narrator,
                       struct error *err)
{
    CLEANUP(json_freep) json_t *current = NULL;
    CLEANUP(error_reset) struct error failure = {0};
    if (get_alias(client, alias, &current, &failure) < 0) {
        if (failure.code != ERR_NOT_FOUND) {
            return error_move(err, &failure);
        }
        CLEANUP(json_freep) json_t *body = json_pack("{s:s, s:s}", "name", alias, "target", fingerprint);
        return client_request(client, "POST", "/1.0/images/aliases", body, NULL, err);
    }
    const char *former = json_text(current, "target");
    if (text_equal(former, fingerprint)) {
        return 0;
    }
    const char *description = json_text(current, "description");
    CLEANUP(freep) char *path = call_path("images/aliases", alias, "");
    CLEANUP(json_freep)
    json_t *body = json_pack("{s:s, s:s}", "target", fingerprint, "description", description ? description : "");
    if (client_request(client, "PUT", path, body, NULL, err) < 0) {
        return -1;
    }
    if (former) {
        drop_unnamed(client, former, narrator);
    }
    return 0;
}

int image_import(struct client *client, const char *metadata_path, const char *rootfs_path, const char *alias,
                 const json_t *properties, struct narrator *narrator, char **ret_fingerprint, struct error *err)
{
    CLEANUP(fd_closep) int metadata = -1;
    CLEANUP(fd_closep) int rootfs = -1;
    CLEANUP(freep) char *fingerprint = NULL;
    struct http_part parts[2];
    if (open_part(metadata_path, "metadata", &metadata, &parts[0], err) < 0 ||
        open_part(rootfs_path, text_ends_with(rootfs_path, ".qcow2") ? "rootfs.img" : "rootfs", &rootfs, &parts[1],
                  err) < 0) {
        return -1;
    }
    if (upload(client, parts, properties, narrator, &fingerprint, err) < 0) {
        return -1;
    }
    if (point_alias(client, alias, fingerprint, narrator, err) < 0) {
        return error_wrap(err, "the image is imported (%.12s), but the alias %s does not name it", fingerprint, alias);
    }
    *ret_fingerprint = steal(&fingerprint);
    return 0;
}

/* The older generation of names, as rows that can be read and removed: hosts that were set up years ago carry them.
 * Nothing here is ever made. A network, ACL or profile is known by its name alone, for that generation marked nothing.
 * Not for its boxes: they carry a tag of their own (src/box/tag.h). */
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "host/systemd.h"
#include "stack/names.h"
#include "stack/table.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROFILE_NAME "profile " OLDER_PROFILE
#define PROFILE_PATH "/1.0/profiles/" OLDER_PROFILE
#define NETWORK_NAME "network " OLDER_NETWORK
#define NETWORK_PATH "/1.0/networks/" OLDER_NETWORK
#define ACL_NAME     "ACL " OLDER_ACL
#define ACL_PATH     "/1.0/network-acls/" OLDER_ACL
#define UNIT_MAX     65536

static int remove_from_daemon(struct stack *stack, const char *path, struct error *err)
{
    CLEANUP(error_reset) struct error failure = {0};
    if (client_request(stack->client, "DELETE", path, NULL, NULL, &failure) == 0 || failure.code == ERR_NOT_FOUND) {
        return 0;
    }
    return error_move(err, &failure);
}

static int profile_stands(struct stack *stack, struct argv *ret_standing, struct error *err)
{
    return table_stands(stack, PROFILE_PATH, PROFILE_NAME, ret_standing, err);
}

static int profile_remove(struct stack *stack, struct narrator *narrator, struct error *err)
{
    (void)narrator;
    return remove_from_daemon(stack, PROFILE_PATH, err);
}

static int network_stands(struct stack *stack, struct argv *ret_standing, struct error *err)
{
    return table_stands(stack, NETWORK_PATH, NETWORK_NAME, ret_standing, err);
}

static int network_remove(struct stack *stack, struct narrator *narrator, struct error *err)
{
    (void)narrator;
    return remove_from_daemon(stack, NETWORK_PATH, err);
}

static int acl_stands(struct stack *stack, struct argv *ret_standing, struct error *err)
{
    return table_stands(stack, ACL_PATH, ACL_NAME, ret_standing, err);
}

static int acl_remove(struct stack *stack, struct narrator *narrator, struct error *err)
{
    (void)narrator;
    return remove_from_daemon(stack, ACL_PATH, err);
}

/* The unit and what enabled it. */
static const char *const unit_paths[] = {
    "/etc/systemd/system/multi-user.target.wants/" OLDER_UNIT,
    "/etc/systemd/system/incus.service.wants/" OLDER_UNIT,
    "/etc/systemd/system/" OLDER_UNIT,
    "/usr/local/lib/systemd/system/" OLDER_UNIT,
};

static const char *const script_paths[] = {
    "/usr/local/sbin/claudebox-firewall",
    "/usr/local/sbin/claudebox-firewall.sh",
    "/usr/local/bin/claudebox-firewall",
    "/usr/local/lib/claudebox-firewall",
};

/* The script that a unit's line "ExecStart=/path/claudebox-firewall ..." runs; NULL where it is not so named. */
static char *script_of_line(const char *line, size_t length)
{
    static const char key[] = "ExecStart=";
    if (length <= sizeof(key) - 1 || strncmp(line, key, sizeof(key) - 1) != 0) {
        return NULL;
    }
    char *path = xstrndup(line + sizeof(key) - 1, length - (sizeof(key) - 1));
    path[strcspn(path, " \t")] = '\0';
    const char *base = strrchr(path, '/');
    if (path[0] != '/' || base == NULL || !text_starts_with(base + 1, "claudebox-firewall")) {
        free(path);
        return NULL;
    }
    return path;
}

/* Every file of that generation that is there: the scripts before the units that name them. */
static void list_files(struct argv *ret_files)
{
    struct stat status;
    for (size_t i = 0; i < ARRAY_LENGTH(unit_paths); i++) {
        CLEANUP(buffer_reset) struct buffer text = {0};
        if (fd_read_file(unit_paths[i], UNIT_MAX, &text, NULL) < 0 || text.data == NULL) {
            continue;
        }
        for (const char *line = text.data; *line != '\0';) {
            size_t length = strcspn(line, "\n");
            CLEANUP(freep) char *script = script_of_line(line, length);
            if (script != NULL && lstat(script, &status) == 0 && !S_ISDIR(status.st_mode) &&
                !argv_contains(ret_files, script)) {
                argv_push(ret_files, script);
            }
            line += length + (line[length] == '\n' ? 1 : 0);
        }
    }
    for (size_t i = 0; i < ARRAY_LENGTH(script_paths); i++) {
        if (lstat(script_paths[i], &status) == 0 && !argv_contains(ret_files, script_paths[i])) {
            argv_push(ret_files, script_paths[i]);
        }
    }
    for (size_t i = 0; i < ARRAY_LENGTH(unit_paths); i++) {
        if (lstat(unit_paths[i], &status) == 0) {
            argv_push(ret_files, unit_paths[i]);
        }
    }
}

static int files_stand(struct stack *stack, struct argv *ret_standing, struct error *err)
{
    CLEANUP(argv_reset) struct argv files = {0};
    (void)stack;
    (void)err;
    list_files(&files);
    for (size_t i = 0; i < files.count; i++) {
        argv_push_format(ret_standing, "file %s", files.items[i]);
    }
    return 0;
}

static int files_remove(struct stack *stack, struct narrator *narrator, struct error *err)
{
    CLEANUP(argv_reset) struct argv files = {0};
    (void)stack;
    (void)narrator;
    list_files(&files);
    if (files.count == 0) {
        return 0;
    }
    if (systemd_runs() && systemd_is_active(OLDER_UNIT) && systemd_control("stop", OLDER_UNIT, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < files.count; i++) {
        if (unlink(files.items[i]) < 0 && errno != ENOENT) {
            return error_set_errno(err, errno, "cannot remove %s", files.items[i]);
        }
    }
    return systemd_runs() ? systemd_control("daemon-reload", NULL, err) : 0;
}

static int tables_stand(struct stack *stack, struct argv *ret_standing, struct error *err)
{
    (void)stack;
    return table_nft_stands(OLDER_NFT_TABLE, ret_standing, err);
}

static int tables_remove(struct stack *stack, struct narrator *narrator, struct error *err)
{
    (void)stack;
    (void)narrator;
    return table_nft_remove(OLDER_NFT_TABLE, err);
}

static const struct stack_object older_profile = {
    .name = PROFILE_NAME, .needs_daemon = true, .remove = profile_remove, .stands = profile_stands};
static const struct stack_object older_network = {
    .name = NETWORK_NAME, .needs_daemon = true, .remove = network_remove, .stands = network_stands};
static const struct stack_object older_acl = {
    .name = ACL_NAME, .needs_daemon = true, .remove = acl_remove, .stands = acl_stands};
static const struct stack_object older_files = {
    .name = "unit " OLDER_UNIT, .remove = files_remove, .stands = files_stand};
static const struct stack_object older_tables = {
    .name = "nft tables " OLDER_NFT_TABLE, .needs_root = true, .remove = tables_remove, .stands = tables_stand};

const struct stack_object *const older_objects[] = {
    &older_profile, &older_network, &older_acl, &older_files, &older_tables,
};
const size_t older_object_count = ARRAY_LENGTH(older_objects);

/* The unit file of the watcher: its text, where it lies, which of two counts.
 * Not for starting or judging the service: item_watcher.c. */
#include "stack/unit.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "stack/names.h"

#include <string.h>
#include <unistd.h>

#define HOST_PATH "/etc/systemd/system/" STACK_UNIT
#define UNIT_MAX  65536

/* Where packages and `meson install` lay units, in systemd's order. */
static const char *const package_paths[] = {
    "/usr/local/lib/systemd/system/" STACK_UNIT,
    "/usr/lib/systemd/system/" STACK_UNIT,
    "/lib/systemd/system/" STACK_UNIT,
};

char *unit_text(const char *program)
{
    return xasprintf("[Unit]\n"
                     "Description=The walls around boxes: the public internet and nothing else\n"
                     "Documentation=man:box(1)\n"
                     "# The daemon starts boxes by itself: the walls stand first.\n"
                     "Before=incus.service\n"
                     "After=nftables.service\n"
                     "\n"
                     "[Service]\n"
                     "Type=notify\n"
                     "ExecStart=%s firewall watch\n"
                     "Restart=always\n"
                     "RestartSec=1\n"
                     "RuntimeDirectory=box\n"
                     "RuntimeDirectoryPreserve=yes\n"
                     "ProtectHome=read-only\n"
                     "NoNewPrivileges=yes\n"
                     "CapabilityBoundingSet=CAP_NET_ADMIN CAP_SYS_ADMIN CAP_CHOWN CAP_DAC_OVERRIDE\n"
                     "\n"
                     "[Install]\n"
                     "WantedBy=multi-user.target incus.service\n",
                     program);
}

/* The whole file, or NULL where it is absent. */
static int read_file(const char *path, char **ret_text, struct error *err)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    CLEANUP(error_reset) struct error failure = {0};
    if (fd_read_file(path, UNIT_MAX, &text, &failure) < 0) {
        if (failure.code != ERR_NOT_FOUND) {
            return error_move(err, &failure);
        }
        *ret_text = NULL;
        return 0;
    }
    *ret_text = xstrndup(text.data != NULL ? text.data : "", text.length);
    return 0;
}

static int read_package(char **ret_text, struct error *err)
{
    char *text = NULL;
    for (size_t i = 0; text == NULL && i < ARRAY_LENGTH(package_paths); i++) {
        if (read_file(package_paths[i], &text, err) < 0) {
            return -1;
        }
    }
    *ret_text = text;
    return 0;
}

int unit_read(char **ret_text, struct error *err)
{
    char *text = NULL;
    if (read_file(HOST_PATH, &text, err) < 0 || (text == NULL && read_package(&text, err) < 0)) {
        return -1;
    }
    *ret_text = text;
    return 0;
}

int unit_lay(const char *text, struct error *err)
{
    CLEANUP(freep) char *packaged = NULL;
    if (read_package(&packaged, err) < 0) {
        return -1;
    }
    return text_equal(packaged, text) ? unit_remove(err) : fd_write_file(HOST_PATH, text, strlen(text), 0644, err);
}

bool unit_stands(void)
{
    return access(HOST_PATH, F_OK) == 0;
}

int unit_remove(struct error *err)
{
    return fd_remove_file(HOST_PATH, err);
}

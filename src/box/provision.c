/* Installs Incus where it is missing: which packages of which suite, and where that suite comes from.
 * No host name is built in: the mirror is the one that the machine uses already (mirror.c).
 * Not for setting the daemon up: src/stack. */
#include "box/provision.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "box/mirror.h"
#include "host/apt.h"

#include <string.h>

#define OS_RELEASE_CEILING (64 * 1024)
#define BACKPORTS_LIST     "/etc/apt/sources.list.d/box-backports.list"

static const struct {
    const char *id, *codename, *backports;
} releases[] = {
    {"debian", "bookworm", "bookworm-backports"},
    {"debian", "trixie", NULL},
    {"ubuntu", "noble", NULL},
};

/* Beside the daemon: the pool's file system, the walls, what serves boxnet. */
static const char *const companions[] = {"incus-client", "btrfs-progs", "dnsmasq-base", "nftables", "uidmap", NULL};

/* The value of KEY=value or KEY="value"; NULL where the file has none. The caller frees. */
static char *field(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, length) == 0 && line[length] == '=') {
            const char *value = line + length + 1;
            value += *value == '"';
            return xstrndup(value, strcspn(value, "\"\n"));
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return NULL;
}

static void list_packages(bool with_vms, struct argv *ret_packages)
{
    argv_push(ret_packages, with_vms ? "incus" : "incus-base");
    argv_push_all(ret_packages, companions);
}

int provision_plan(const char *os_release, bool with_vms, struct provision *ret_provision, struct error *err)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    struct provision provision = {0};
    if (fd_read_file(os_release, OS_RELEASE_CEILING, &text, err) < 0) {
        return -1;
    }
    CLEANUP(freep) char *id = field(text.data, "ID");
    CLEANUP(freep) char *codename = field(text.data, "VERSION_CODENAME");
    list_packages(with_vms, &provision.packages);
    for (size_t i = 0; i < ARRAY_LENGTH(releases); i++) {
        if (text_equal(id, releases[i].id) && text_equal(codename, releases[i].codename)) {
            provision.backports = releases[i].backports;
            *ret_provision = provision;
            return 0;
        }
    }
    CLEANUP(freep) char *packages = argv_join(&provision.packages, " ");
    argv_reset(&provision.packages);
    (void)error_set(err, ERR_STATE, "Incus is missing, and box does not know how %s %s packages it",
                    id != NULL ? id : "this distribution", codename != NULL ? codename : "");
    return error_remedy(err, "install it by hand, then run this again; Debian calls what is needed: %s", packages);
}

/* True where apt has a release file of the suite at hand already. */
static bool has_suite(const char *suite)
{
    const char *const argv[] = {"apt-cache", "policy", NULL};
    struct process_options options = {.budget = 60000};
    CLEANUP(freep) char *policy = NULL;
    CLEANUP(freep) char *mark = xasprintf("n=%s", suite);
    CLEANUP(freep) char *archive = xasprintf("a=%s", suite);
    return process_check(argv, &options, &policy, NULL) == 0 &&
           (strstr(policy, mark) != NULL || strstr(policy, archive) != NULL);
}

static int add_suite(const char *suite, struct narrator *narrator, struct error *err)
{
    CLEANUP(mirror_reset) struct mirror mirror = {0};
    if (mirror_find("/etc/apt", &mirror, err) < 0) {
        return -1;
    }
    CLEANUP(freep)
    char *signed_by = mirror.keyring != NULL ? xasprintf(" [signed-by=%s]", mirror.keyring) : xstrdup("");
    CLEANUP(freep) char *line = xasprintf("# Incus, for box\ndeb%s %s %s main\n", signed_by, mirror.archive, suite);
    narrate_note(narrator, "adding %s: %s of the mirror that this host uses", BACKPORTS_LIST, suite);
    return fd_write_file(BACKPORTS_LIST, line, strlen(line), 0644, err);
}

int provision_install(const struct provision *provision, struct narrator *narrator, struct error *err)
{
    CLEANUP(argv_reset) struct argv update = {0};
    CLEANUP(argv_reset) struct argv install = {0};
    if (!apt_exists()) {
        return error_set(err, ERR_STATE, "Incus is missing, and this host has no apt-get to install it with");
    }
    if (provision->backports != NULL && !has_suite(provision->backports) &&
        add_suite(provision->backports, narrator, err) < 0) {
        return -1;
    }
    argv_push(&update, "update");
    argv_push(&install, "install");
    if (provision->backports != NULL) {
        argv_push(&install, "-t");
        argv_push(&install, provision->backports);
    }
    argv_push_all(&install, (const char *const *)provision->packages.items);
    narrate_step(narrator, "installing Incus (minutes; another package manager's lock is waited for, 300 s at most)");
    if (apt_get(&update, narrator, err) < 0 || apt_get(&install, narrator, err) < 0) {
        return error_wrap(err, "cannot install Incus");
    }
    narrate_done(narrator, "Incus is installed");
    return 0;
}

void provision_reset(struct provision *provision)
{
    argv_reset(&provision->packages);
    *provision = (struct provision){0};
}

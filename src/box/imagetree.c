/* What is done to an image's directories between installing and packing: the recipe's files, the metadata, the cleanup.
 * Not for running programs (imagebuild.c). */
#include "box/imagetree.h"

#include "base/buffer.h"
#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* In the image, where apt depends on the package that has it. */
#define IMAGE_KEYRING "/usr/share/keyrings/debian-archive-keyring.gpg"

static int make_parent(const char *path, struct error *err)
{
    CLEANUP(freep) char *parent = xstrdup(path);
    char *slash = strrchr(parent, '/');

    *slash = '\0';
    return fd_make_directories(parent, 0755, err);
}

static int put_mode(const char *path, const char *text, mode_t mode, struct error *err)
{
    if (make_parent(path, err) < 0) {
        return -1;
    }
    return fd_write_file(path, text, strlen(text), mode, err);
}

static int put_file(const char *path, const char *text, struct error *err)
{
    return put_mode(path, text, 0644, err);
}

static int put_link(const char *path, const char *target, struct error *err)
{
    if (make_parent(path, err) < 0) {
        return -1;
    }
    if (unlink(path) < 0 && errno != ENOENT) {
        return error_set_errno(err, errno, "cannot replace %s", path);
    }
    if (symlink(target, path) < 0) {
        return error_set_errno(err, errno, "cannot make the link %s", path);
    }
    return 0;
}

static int remove_matching(const char *pattern, struct error *err)
{
    glob_t found = {0};
    int result = 0;

    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc && result == 0; i++) {
            result = imagetree_remove(found.gl_pathv[i], err);
        }
    }
    globfree(&found);
    return result;
}

static int apply(const struct recipe_entry *entry, const char *root, struct error *err)
{
    CLEANUP(freep)
    char *path = xasprintf("%s/%s%s", root, entry->kind == RECIPE_MASK ? "etc/systemd/system/" : "", entry->path);

    switch (entry->kind) {
    case RECIPE_FILE:
        return put_file(path, entry->text, err);
    case RECIPE_PROGRAM:
        return put_mode(path, entry->text, 0755, err);
    case RECIPE_LINK:
        return put_link(path, entry->text, err);
    case RECIPE_MASK:
        return put_link(path, "/dev/null", err);
    case RECIPE_REMOVE:
        return remove_matching(path, err);
    }
    return 0;
}

static int put_sources(const struct recipe *recipe, const struct mirror *mirror, const char *root, struct error *err)
{
    CLEANUP(freep) char *path = xasprintf("%s/etc/apt/sources.list.d/debian.sources", root);
    CLEANUP(buffer_reset) struct buffer text = {0};

    buffer_append_format(&text, "Types: deb\nURIs: %s\nSuites: %s %s-updates\nComponents: main\nSigned-By: %s\n",
                         mirror->archive, recipe->suite, recipe->suite, IMAGE_KEYRING);
    if (mirror->security) {
        buffer_append_format(&text, "\nTypes: deb\nURIs: %s\nSuites: %s-security\nComponents: main\nSigned-By: %s\n",
                             mirror->security, recipe->suite, IMAGE_KEYRING);
    }
    return put_file(path, text.data, err);
}

/* Says that all is up to date, as of /usr: else ldconfig, sysusers and the journal's catalog run at each first boot. */
static int mark_updated(const char *root, struct error *err)
{
    static const char *const paths[] = {"etc/.updated", "var/.updated"};
    CLEANUP(freep) char *usr = xasprintf("%s/usr", root);
    struct stat status;

    if (stat(usr, &status) < 0) {
        return error_set_errno(err, errno, "cannot look at %s", usr);
    }
    const struct timespec times[2] = {status.st_mtim, status.st_mtim};

    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
        CLEANUP(freep) char *path = xasprintf("%s/%s", root, paths[i]);

        if (put_file(path, "", err) < 0) {
            return -1;
        }
        if (utimensat(AT_FDCWD, path, times, 0) < 0) {
            return error_set_errno(err, errno, "cannot date %s", path);
        }
    }
    return 0;
}

static int apply_all(const struct recipe *recipe, const char *root, struct error *err)
{
    if (recipe->base && apply_all(recipe->base, root, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < recipe->entry_count; i++) {
        if (apply(&recipe->entries[i], root, err) < 0) {
            return -1;
        }
    }
    return 0;
}

int imagetree_dress(const struct recipe *recipe, const struct mirror *mirror, const char *root, struct error *err)
{
    if (apply_all(recipe, root, err) < 0) {
        return -1;
    }
    return put_sources(recipe, mirror, root, err) < 0 ? -1 : mark_updated(root, err);
}

int imagetree_describe(const struct recipe *recipe, const char *key, const char *directory, struct error *err)
{
    CLEANUP(freep) char *path = xasprintf("%s/metadata.yaml", directory);
    CLEANUP(buffer_reset) struct buffer text = {0};

    buffer_append_format(&text,
                         "architecture: %s\n"
                         "creation_date: %lld\n"
                         "properties:\n"
                         "  description: \"%s\"\n"
                         "  os: %s\n"
                         "  release: \"%s\"\n"
                         "  architecture: %s\n"
                         "  variant: cloud\n"
                         "  box.recipe: \"%s\"\n"
                         "templates:\n",
                         IMAGETREE_MACHINE, (long long)time(NULL), recipe->description, recipe->os, recipe->release,
                         IMAGETREE_ARCHITECTURE, key);
    for (size_t i = 0; i < recipe->template_count; i++) {
        const struct recipe_template *template = &recipe->templates[i];
        CLEANUP(freep) char *file = xasprintf("%s/templates/%s", directory, template->name);

        buffer_append_format(&text,
                             "  %s:\n"
                             "    when: [%s]\n"
                             "    template: %s\n"
                             "    properties: {default: \"#cloud-config\\n{}\\n\"}\n",
                             template->path, template->when, template->name);
        if (put_file(file, template->text, err) < 0) {
            return -1;
        }
    }
    return put_file(path, text.data, err);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)walk;
    return (kind == FTW_DP ? rmdir(path) : unlink(path)) < 0 ? -1 : 0;
}

int imagetree_remove(const char *path, struct error *err)
{
    if (nftw(path, remove_one, 32, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) < 0 && errno != ENOENT) {
        return error_set_errno(err, errno, "cannot remove %s", path);
    }
    return 0;
}

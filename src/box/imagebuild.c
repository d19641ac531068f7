/* Building an image from the machine's own Debian mirror by its recipe, the cache of built ones, and their import.
 * Not for what goes into an image (recipe.c), nor for where Debian is (mirror.c). */
#include "box/imagebuild.h"

#include "base/argv.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/sha256.h"
#include "base/text.h"
#include "box/imagetree.h"
#include "box/mirror.h"
#include "box/recipe.h"
#include "box/vmimage.h"
#include "incus/image.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CACHE_DIRECTORY "/var/cache/box/images"
#define WORK_PREFIX     ".build-"
#define BUILD_BUDGET_MS (30 * 60 * 1000)
#define KEY_DIGITS      12
#define KEPT_S          (14 * 24 * 60 * 60) /* for another box or another mirror on this machine, which wants it again */

static const struct {
    const char *program, *package;
} tools[] = {
    {"mmdebstrap", "mmdebstrap"}, {"mksquashfs", "squashfs-tools"}, {"unshare", "util-linux"},
    {"setpriv", "util-linux"},    {"tar", "tar"},                   {"xz", "xz-utils"},
};

static void feed(struct sha256 *digest, const char *text)
{
    sha256_feed(digest, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void feed_parts(struct sha256 *digest, const struct recipe *recipe)
{
    if (recipe->base) {
        feed_parts(digest, recipe->base);
    }
    for (size_t i = 0; recipe->packages[i]; i++) {
        feed(digest, recipe->packages[i]);
    }
    for (size_t i = 0; recipe->options[i]; i++) {
        feed(digest, recipe->options[i]);
    }
    for (size_t i = 0; i < recipe->entry_count; i++) {
        feed(digest, (const char[]){(char)('0' + (int)recipe->entries[i].kind), '\0'});
        feed(digest, recipe->entries[i].path);
        feed(digest, recipe->entries[i].text);
    }
    for (size_t i = 0; i < recipe->template_count; i++) {
        feed(digest, recipe->templates[i].path);
        feed(digest, recipe->templates[i].when);
        feed(digest, recipe->templates[i].text);
    }
}

/* Everything that decides what comes out, so that a changed recipe or mirror never finds yesterday's image. */
static char *make_key(const struct recipe *recipe, const struct mirror *mirror)
{
    struct sha256 digest;
    char hex[SHA256_HEX_SIZE];

    sha256_start(&digest);
    feed(&digest, recipe->suite);
    feed(&digest, IMAGETREE_ARCHITECTURE);
    feed(&digest, mirror->archive);
    feed(&digest, mirror->security);
    feed_parts(&digest, recipe);
    sha256_finish(&digest, hex);
    return xstrndup(hex, KEY_DIGITS);
}

/* Narrates what mmdebstrap is at, without its own marks. */
static void tell_line(void *context, const char *line)
{
    if (text_starts_with(line, "I: ")) {
        narrate_progress(context, "%s", line + strlen("I: "));
    }
}

static int run_tool(const char *const *argv, struct narrator *narrator, struct error *err)
{
    struct process_options options = {
        .budget = BUILD_BUDGET_MS, .narrator = narrator, .line = tell_line, .context = narrator};
    CLEANUP(argv_reset) struct argv bound = {0};

    /* It dies with us, even if we are killed: else it would go on writing where the next build cleans up. */
    argv_push(&bound, "setpriv");
    argv_push(&bound, "--pdeathsig=KILL");
    argv_push(&bound, "--");
    argv_push_all(&bound, argv);
    return process_check((const char *const *)bound.items, &options, NULL, err);
}

static void push_parts(const struct recipe *recipe, struct argv *options, struct argv *packages)
{
    if (recipe->base) {
        push_parts(recipe->base, options, packages);
    }
    argv_push_all(options, recipe->options);
    argv_push_all(packages, recipe->packages);
}

static int bootstrap(const struct recipe *recipe, const struct mirror *mirror, const char *root,
                     struct narrator *narrator, struct error *err)
{
    CLEANUP(argv_reset) struct argv argv = {0};
    /* Its own namespaces of mounts and processes: however it ends, no mount and no child of it is left. */
    const char *const prefix[] = {"unshare",    "--mount",     "--propagation",     "private",
                                  "--pid",      "--fork",      "--mount-proc",      "--kill-child",
                                  "mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory",
                                  NULL};
    CLEANUP(argv_reset) struct argv packages = {0};

    argv_push_all(&argv, prefix);
    push_parts(recipe, &argv, &packages);
    CLEANUP(freep) char *include = argv_join(&packages, ",");

    argv_push_format(&argv, "--include=%s", include);
    argv_push_format(&argv, "--keyring=%s", mirror->keyring);
    argv_push(&argv, recipe->suite);
    argv_push(&argv, root);
    argv_push_format(&argv, "deb %s %s main", mirror->archive, recipe->suite);
    argv_push_format(&argv, "deb %s %s-updates main", mirror->archive, recipe->suite);
    if (mirror->security) {
        argv_push_format(&argv, "deb %s %s-security main", mirror->security, recipe->suite);
    }
    narrate_step(narrator, "installing %zu packages and what they need from %s", packages.count, mirror->archive);
    if (run_tool((const char *const *)argv.items, narrator, err) < 0) {
        error_wrap(err, "mmdebstrap could not install %s %s", recipe->os, recipe->release);
        return error_remedy(err, "look whether %s has the suite %s and can be reached", mirror->archive, recipe->suite);
    }
    narrate_done(narrator, "%s", "");
    return 0;
}

/* What the image's root is called, in the cache and in the work directory. */
static const char *suffix_of(const struct recipe *recipe)
{
    return recipe->vm ? ".qcow2" : ".squashfs";
}

static int pack(const struct recipe *recipe, const char *work, const char *root, struct narrator *narrator,
                struct error *err)
{
    CLEANUP(freep) char *rootfs = xasprintf("%s/rootfs%s", work, suffix_of(recipe));
    CLEANUP(freep) char *metadata = xasprintf("%s/metadata.tar.xz", work);
    CLEANUP(freep) char *tree = xasprintf("%s/metadata", work);
    const char *const squash[] = {"mksquashfs", root,        rootfs,   "-comp",        "zstd", "-Xcompression-level",
                                  "3",          "-noappend", "-quiet", "-no-progress", NULL};
    const char *const tar[] = {"tar",         "--directory", tree,   "--owner=0", "--group=0", "--numeric-owner",
                               "--sort=name", "--create",    "--xz", "--file",    metadata,    ".",
                               NULL};

    narrate_step(narrator, "packing the image");
    if ((!recipe->vm && run_tool(squash, narrator, err) < 0) || run_tool(tar, narrator, err) < 0) {
        return error_wrap(err, "cannot pack the image");
    }
    narrate_done(narrator, "%s", "");
    return recipe->vm ? vmimage_pack(work, root, rootfs, narrator, err) : 0;
}

/* The root file system last: it is what a search of the cache looks for. */
static int publish(const char *work, const struct imagebuild *image, struct error *err)
{
    CLEANUP(freep) char *rootfs = xasprintf("%s/rootfs%s", work, suffix_of(image->recipe));
    CLEANUP(freep) char *metadata = xasprintf("%s/metadata.tar.xz", work);

    if (rename(metadata, image->metadata_path) < 0 || rename(rootfs, image->rootfs_path) < 0) {
        return error_set_errno(err, errno, "cannot move the image to %s", CACHE_DIRECTORY);
    }
    return 0;
}

static bool find_cached(struct imagebuild *image)
{
    struct stat metadata, rootfs;

    if (stat(image->metadata_path, &metadata) < 0 || stat(image->rootfs_path, &rootfs) < 0) {
        return false;
    }
    image->size = metadata.st_size + rootfs.st_size;
    image->built = rootfs.st_mtime;
    return true;
}

/* Whoever holds the lock may remove what is left in the way: a build that was killed, old images of other recipes. */
static void sweep(const struct imagebuild *image, bool older_too)
{
    CLEANUP(freep) char *stem = xstrdup(image->rootfs_path);
    glob_t found = {0};

    if (glob(CACHE_DIRECTORY "/" WORK_PREFIX "*", GLOB_PERIOD, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            (void)imagetree_remove(found.gl_pathv[i], NULL);
        }
    }
    globfree(&found);
    if (!older_too) {
        return;
    }
    stem[strlen(stem) - strlen(image->key) - strlen(suffix_of(image->recipe))] = '\0';
    CLEANUP(freep) char *pattern = xasprintf("%s*", stem);

    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            struct stat status;

            if (!text_equal(found.gl_pathv[i], image->metadata_path) &&
                !text_equal(found.gl_pathv[i], image->rootfs_path) && stat(found.gl_pathv[i], &status) == 0 &&
                time(NULL) - status.st_mtime > KEPT_S) {
                (void)unlink(found.gl_pathv[i]);
            }
        }
    }
    globfree(&found);
}

static int build_in(const char *work, const struct imagebuild *image, const struct mirror *machine,
                    const struct mirror *boxes, struct narrator *narrator, struct error *err)
{
    CLEANUP(freep) char *root = xasprintf("%s/root", work);
    CLEANUP(freep) char *metadata = xasprintf("%s/metadata", work);

    if (bootstrap(image->recipe, machine, root, narrator, err) < 0 ||
        imagetree_dress(image->recipe, boxes, root, err) < 0 ||
        imagetree_describe(image->recipe, image->key, metadata, err) < 0 ||
        pack(image->recipe, work, root, narrator, err) < 0) {
        return -1;
    }
    return publish(work, image, err);
}

static int build(const struct imagebuild *image, const struct mirror *machine, const struct mirror *boxes,
                 struct narrator *narrator, struct error *err)
{
    char work[] = CACHE_DIRECTORY "/" WORK_PREFIX "XXXXXX";

    for (size_t i = 0; i < ARRAY_LENGTH(tools); i++) {
        if (!process_exists(tools[i].program)) {
            error_set(err, ERR_NOT_FOUND, "building an image needs %s, which is not installed", tools[i].program);
            return error_remedy(err, "apt-get install %s", tools[i].package);
        }
    }
    if (image->recipe->vm && vmimage_check_tools(err) < 0) {
        return -1;
    }
    if (!mkdtemp(work)) {
        return error_set_errno(err, errno, "cannot make a directory in %s", CACHE_DIRECTORY);
    }
    /* mmdebstrap's children run as other users, who must get through. */
    (void)chmod(work, 0755);
    int result = build_in(work, image, machine, boxes, narrator, err);

    cancel_mask(true);
    CLEANUP(error_reset) struct error cleaning = {0};

    if (imagetree_remove(work, &cleaning) < 0) {
        narrate_warn(narrator, "%s; the next build removes it", cleaning.message);
    }
    cancel_mask(false);
    return result;
}

/* One build at a time: the second finds the first one's work done. The lock dies with its holder. */
static int lock_cache(struct narrator *narrator, int *ret_fd, struct error *err)
{
    CLEANUP(fd_closep) int fd = open(CACHE_DIRECTORY "/.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    bool told = false;

    if (fd < 0) {
        return error_set_errno(err, errno, "cannot open %s/.lock", CACHE_DIRECTORY);
    }
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        struct pollfd cancel = {.fd = cancel_fd(), .events = POLLIN};

        if (errno != EWOULDBLOCK) {
            return error_set_errno(err, errno, "cannot lock %s", CACHE_DIRECTORY);
        }
        if (!told) {
            narrate_step(narrator, "waiting for another build of an image on this machine to end");
            told = true;
        }
        if (cancel_check(err) < 0) {
            return -1;
        }
        /* flock() cannot be waited for together with a signal's descriptor. */
        (void)poll(&cancel, 1, NARRATE_TICK_MS);
        narrate_tick(narrator);
    }
    if (told) {
        narrate_done(narrator, "%s", "");
    }
    *ret_fd = fd;
    fd = -1;
    return 0;
}

static int prepare(const char *alias, struct imagebuild *image, struct mirror *machine, struct mirror *boxes,
                   struct error *err)
{
    CLEANUP(freep) char *stem = xstrdup(alias);

    image->recipe = recipe_find(alias);
    if (!image->recipe) {
        CLEANUP(argv_reset) struct argv known = {0};

        argv_push_all(&known, recipe_aliases);
        CLEANUP(freep) char *list = argv_join(&known, ", ");
        return error_set(err, ERR_USAGE, "there is no recipe for an image '%s'; there is: %s", alias, list);
    }
    if (mirror_find("/etc/apt", machine, err) < 0 || mirror_for_boxes(machine, boxes, err) < 0) {
        return -1;
    }
    for (char *slash = stem; (slash = strchr(slash, '/')) != NULL;) {
        *slash = '-';
    }
    image->key = make_key(image->recipe, boxes);
    image->metadata_path = xasprintf("%s/%s-%s-%s.tar.xz", CACHE_DIRECTORY, stem, IMAGETREE_ARCHITECTURE, image->key);
    image->rootfs_path =
        xasprintf("%s/%s-%s-%s%s", CACHE_DIRECTORY, stem, IMAGETREE_ARCHITECTURE, image->key, suffix_of(image->recipe));
    return 0;
}

int imagebuild_run(const char *alias, bool force, struct narrator *narrator, struct imagebuild *ret_image,
                   struct error *err)
{
    CLEANUP(imagebuild_reset) struct imagebuild image = {0};
    CLEANUP(mirror_reset) struct mirror machine = {0};
    CLEANUP(mirror_reset) struct mirror boxes = {0};
    CLEANUP(fd_closep) int lock = -1;

    if (prepare(alias, &image, &machine, &boxes, err) < 0) {
        return -1;
    }
    if (force || !find_cached(&image)) {
        if (geteuid() != 0) {
            error_set(err, ERR_DENIED, "building an image needs root: it installs packages into a directory");
            return error_remedy(err, "sudo box image build %s", alias);
        }
        if (fd_make_directories(CACHE_DIRECTORY, 0755, err) < 0 || lock_cache(narrator, &lock, err) < 0) {
            return -1;
        }
        sweep(&image, false);
        if (force || !find_cached(&image)) {
            if (build(&image, &machine, &boxes, narrator, err) < 0) {
                return error_wrap(err, "cannot build the image %s", alias);
            }
            image.fresh = true;
            (void)find_cached(&image);
            sweep(&image, true);
        }
    }
    *ret_image = image;
    image = (struct imagebuild){0};
    return 0;
}

/* The daemon's image of that alias, where it came from this very recipe and file. */
static int find_imported(struct client *client, const struct imagebuild *image, char **ret_fingerprint,
                         struct error *err)
{
    CLEANUP(json_freep) json_t *found = NULL;
    CLEANUP(error_reset) struct error cause = {0};
    CLEANUP(freep) char *built = xasprintf("%lld", (long long)image->built);

    if (image_by_alias(client, image->recipe->alias, NULL, &found, &cause) < 0) {
        return cause.code == ERR_NOT_FOUND ? 0 : error_move(err, &cause);
    }
    const json_t *properties = json_object_get(found, "properties");

    if (text_equal(json_text(properties, "box.recipe"), image->key) &&
        text_equal(json_text(properties, "box.built"), built)) {
        *ret_fingerprint = xstrdup(json_text(found, "fingerprint") ? json_text(found, "fingerprint") : "");
    }
    return 0;
}

int imagebuild_import(struct client *client, const struct imagebuild *image, bool force, struct narrator *narrator,
                      bool *ret_imported, char **ret_fingerprint, struct error *err)
{
    CLEANUP(freep) char *fingerprint = NULL;
    CLEANUP(freep) char *built = xasprintf("%lld", (long long)image->built);
    const struct recipe *recipe = image->recipe;
    CLEANUP(json_freep)
    json_t *properties = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "description", recipe->description, "os",
                                   recipe->os, "release", recipe->release, "architecture", IMAGETREE_ARCHITECTURE,
                                   "variant", "cloud", "box.recipe", image->key, "box.built", built);

    if (find_imported(client, image, &fingerprint, err) < 0) {
        return -1;
    }
    *ret_imported = !fingerprint || force;
    if (*ret_imported) {
        free(fingerprint);
        fingerprint = NULL;
        narrate_step(narrator, "importing it into Incus as %s", recipe->alias);
        if (image_import(client, image->metadata_path, image->rootfs_path, recipe->alias, properties, narrator,
                         &fingerprint, err) < 0) {
            return error_wrap(err, "cannot import the image %s", recipe->alias);
        }
        narrate_done(narrator, "%.12s", fingerprint);
    }
    *ret_fingerprint = steal(&fingerprint);
    return 0;
}

void imagebuild_reset(struct imagebuild *image)
{
    free(image->key);
    free(image->metadata_path);
    free(image->rootfs_path);
    *image = (struct imagebuild){0};
}

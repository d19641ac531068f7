/* A VM's disk from an installed directory: partitions, EFI system partition, root file system, qcow2. Nothing is
 * mounted. Not for what is installed (vmrecipe.c), nor for the cache and the import (imagebuild.c). */
#include "box/vmimage.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "box/recipe.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <unistd.h>

#define PACK_BUDGET_MS (10 * 60 * 1000)
#define MIB            1024LL
/* In KiB. The root grows to the instance's disk at the first boot, so small is enough; an instance's disk must not be
 * smaller than the image's. */
#define ESP_START_KIB  (1 * MIB)
#define ESP_KIB        (192 * MIB)
#define ROOT_START_KIB (ESP_START_KIB + ESP_KIB)
#define ROOT_KIB       (2800 * MIB)
#define DISK_KIB       (ROOT_START_KIB + ROOT_KIB + 1 * MIB)

#if defined(__aarch64__)
#define BOOT_BINARY "systemd-bootaa64.efi"
#define BOOT_TARGET "BOOTAA64.EFI"
#define CONSOLE     "ttyAMA0"
#define ROOT_TYPE   "B921B045-1DF0-41C3-AF44-4C6F280D3FAE"
#else
#define BOOT_BINARY "systemd-bootx64.efi"
#define BOOT_TARGET "BOOTX64.EFI"
#define CONSOLE     "ttyS0"
#define ROOT_TYPE   "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709"
#endif
#define ESP_TYPE "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"

static const struct {
    const char *program, *package;
} tools[] = {
    {"mkfs.vfat", "dosfstools"}, {"mcopy", "mtools"},        {"sfdisk", "fdisk"},
    {"mke2fs", "e2fsprogs"},     {"qemu-img", "qemu-utils"}, {"dd", "coreutils"},
};

int vmimage_check_tools(struct error *err)
{
    for (size_t i = 0; i < ARRAY_LENGTH(tools); i++) {
        if (!process_exists(tools[i].program)) {
            error_set(err, ERR_NOT_FOUND, "building a VM image needs %s, which is not installed", tools[i].program);
            return error_remedy(err, "apt-get install %s", tools[i].package);
        }
    }
    return 0;
}

static int run(const char *const *argv, const char *input, struct narrator *narrator, struct error *err)
{
    struct process_options options = {
        .budget = PACK_BUDGET_MS, .narrator = narrator, .input = input, .input_length = input ? strlen(input) : 0};

    return process_check(argv, &options, NULL, err);
}

static int make_sparse(const char *path, long long kib, struct error *err)
{
    CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0 || ftruncate(fd, (off_t)kib * 1024) < 0) {
        return error_set_errno(err, errno, "cannot make %s", path);
    }
    return 0;
}

/* The one file in the system's /boot that begins so. */
static int find_one(const char *root, const char *prefix, char **ret_path, struct error *err)
{
    CLEANUP(freep) char *pattern = xasprintf("%s/boot/%s-*", root, prefix);
    glob_t found = {0};
    int status = glob(pattern, 0, NULL, &found);
    int result = 0;

    if (status == 0 && found.gl_pathc == 1) {
        *ret_path = xstrdup(found.gl_pathv[0]);
    } else {
        result = error_set(err, ERR_PROTOCOL, "the installed system has %zu files /boot/%s-* where it must have one",
                           status == 0 ? found.gl_pathc : 0, prefix);
    }
    globfree(&found);
    return result;
}

static int put_text(const char *image, const char *work, const char *text, const char *target,
                    struct narrator *narrator, struct error *err)
{
    CLEANUP(freep) char *file = xasprintf("%s/esp.file", work);
    const char *const copy[] = {"mcopy", "-o", "-i", image, file, target, NULL};

    return fd_write_file(file, text, strlen(text), 0644, err) < 0 ? -1 : run(copy, NULL, narrator, err);
}

static int make_esp(const char *work, const char *root, const char *image, struct narrator *narrator, struct error *err)
{
    CLEANUP(freep) char *kernel = NULL;
    CLEANUP(freep) char *initrd = NULL;
    CLEANUP(freep) char *loader = xasprintf("%s/usr/lib/systemd/boot/efi/" BOOT_BINARY, root);

    if (find_one(root, "vmlinuz", &kernel, err) < 0 || find_one(root, "initrd.img", &initrd, err) < 0 ||
        make_sparse(image, ESP_KIB, err) < 0) {
        return -1;
    }
    const char *const format[] = {"mkfs.vfat", "-F", "32", "-n", "BOX-ESP", image, NULL};
    const char *const directories[] = {"mmd", "-i", image, "::EFI", "::EFI/BOOT", "::loader", "::loader/entries", NULL};
    const char *const copies[][6] = {
        {"mcopy", "-i", image, loader, "::EFI/BOOT/" BOOT_TARGET, NULL},
        {"mcopy", "-i", image, kernel, "::vmlinuz", NULL},
        {"mcopy", "-i", image, initrd, "::initrd.img", NULL},
    };

    if (run(format, NULL, narrator, err) < 0 || run(directories, NULL, narrator, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(copies); i++) {
        if (run(copies[i], NULL, narrator, err) < 0) {
            return -1;
        }
    }
    return put_text(image, work, "timeout 0\nconsole-mode keep\n", "::loader/loader.conf", narrator, err) < 0
               ? -1
               : put_text(image, work,
                          "title Debian of a box\n"
                          "linux /vmlinuz\n"
                          "initrd /initrd.img\n"
                          "options root=PARTLABEL=" RECIPE_ROOT_LABEL " rw console=tty0 console=" CONSOLE "\n",
                          "::loader/entries/box.conf", narrator, err);
}

static int partition(const char *raw, struct narrator *narrator, struct error *err)
{
    const char *const argv[] = {"sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", raw, NULL};
    CLEANUP(freep)
    char *script = xasprintf("label: gpt\n"
                             "start=%lldKiB, size=%lldKiB, type=" ESP_TYPE ", name=" RECIPE_ESP_LABEL "\n"
                             "start=%lldKiB, size=%lldKiB, type=" ROOT_TYPE ", name=" RECIPE_ROOT_LABEL "\n",
                             ESP_START_KIB, ESP_KIB, ROOT_START_KIB, ROOT_KIB);

    return make_sparse(raw, DISK_KIB, err) < 0 ? -1 : run(argv, script, narrator, err);
}

int vmimage_pack(const char *work, const char *root, const char *disk, struct narrator *narrator, struct error *err)
{
    CLEANUP(freep) char *esp = xasprintf("%s/esp.img", work);
    CLEANUP(freep) char *raw = xasprintf("%s/disk.raw", work);
    CLEANUP(freep) char *input = xasprintf("if=%s", esp);
    CLEANUP(freep) char *output = xasprintf("of=%s", raw);
    CLEANUP(freep) char *seek = xasprintf("seek=%lld", ESP_START_KIB / MIB);
    CLEANUP(freep) char *offset = xasprintf("offset=%lld", ROOT_START_KIB * 1024);
    CLEANUP(freep) char *size = xasprintf("%lldk", ROOT_KIB);
    const char *const place[] = {"dd", input, output, "bs=1M", seek, "conv=notrunc,sparse", "status=none", NULL};
    const char *const format[] = {"mke2fs", "-q", "-F", "-t", "ext4", "-L", RECIPE_ROOT_LABEL, "-m", "1", "-E",
                                  offset,   "-d", root, raw,  size,   NULL};
    const char *const convert[] = {
        "qemu-img", "convert", "-f", "raw", "-O", "qcow2", "-c", "-o", "compression_type=zstd", raw, disk, NULL};

    narrate_step(narrator, "making the VM's disk");
    if (make_esp(work, root, esp, narrator, err) < 0 || partition(raw, narrator, err) < 0 ||
        run(place, NULL, narrator, err) < 0 || run(format, NULL, narrator, err) < 0 ||
        run(convert, NULL, narrator, err) < 0) {
        return error_wrap(err, "cannot make the VM's disk");
    }
    narrate_done(narrator, "%s", "");
    return 0;
}

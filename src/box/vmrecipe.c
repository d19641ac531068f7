/* What a VM image has beyond a container image of the same Debian: kernel, boot, disk, Incus's agent.
 * Not for packing the disk (vmimage.c), nor for what both kinds have (recipe.c). */
#include "box/recipe.h"

#include "base/cleanup.h"

#if defined(__aarch64__)
#define KERNEL_PACKAGE "linux-image-cloud-arm64"
#else
#define KERNEL_PACKAGE "linux-image-cloud-amd64"
#endif

/* eject, fdisk: the agent's drive and the growing of the disk need them. */
static const char *const packages[] = {
    KERNEL_PACKAGE, "initramfs-tools", "zstd", "systemd-boot-efi", "incus-agent", "kmod", "e2fsprogs",
    "eject",        "fdisk",           NULL,
};

/* A small initrd, with what finds the disk and the drives that Incus attaches. Written before the kernel is installed,
 * which makes its initrd. */
static const char *const options[] = {
    "--essential-hook=mkdir -p \"$1/etc/initramfs-tools/conf.d\" && "
    "printf 'MODULES=list\\nCOMPRESS=zstd\\nCOMPRESSLEVEL=3\\nFSTYPE=ext4\\n' >\"$1/etc/initramfs-tools/conf.d/box\" "
    "&& "
    "printf '%s\\n' virtio_pci virtio_scsi virtio_blk sd_mod sr_mod ext4 >\"$1/etc/initramfs-tools/modules\"",
    NULL,
};

static const char carry_kernel[] =
    "#!/bin/sh\n"
    "# Carries the newest kernel and its initrd to the EFI system partition, from which this machine boots.\n"
    "set -e\n"
    "mountpoint -q /boot/efi || exit 0\n"
    "kernel=$(ls -1v /boot/vmlinuz-* | tail -n 1)\n"
    "version=${kernel#/boot/vmlinuz-}\n"
    "[ -e \"/boot/initrd.img-$version\" ] || exit 0\n"
    "for file in vmlinuz initrd.img; do\n"
    "    cp \"/boot/$file-$version\" \"/boot/efi/$file.new\"\n"
    "    mv \"/boot/efi/$file.new\" \"/boot/efi/$file\"\n"
    "done\n";

static const struct recipe_entry entries[] = {
    /* A VM has its own devices: all of them are wanted. */
    {RECIPE_REMOVE, "etc/systemd/system/systemd-udev-trigger.service.d"},
    {RECIPE_REMOVE, "etc/systemd/system/systemd-modules-load.service"},
    {RECIPE_FILE, "etc/fstab",
     "PARTLABEL=" RECIPE_ROOT_LABEL " / ext4 defaults 0 1\n"
     "PARTLABEL=" RECIPE_ESP_LABEL " /boot/efi vfat umask=0077,nofail 0 0\n"},
    {RECIPE_FILE, "boot/efi/.keep", ""},
    {RECIPE_PROGRAM, "etc/kernel/postinst.d/zz-box-esp", carry_kernel},
    {RECIPE_PROGRAM, "etc/initramfs/post-update.d/zz-box-esp", carry_kernel},
    {RECIPE_PROGRAM, "usr/local/sbin/box-grow",
     "#!/bin/sh\n"
     "# Grows the last partition of the disk and its file system to the disk's end, while it is in use.\n"
     "set -e\n"
     "root=$(findmnt -n -o SOURCE /)\n"
     "name=${root##*/}\n"
     "number=$(cat \"/sys/class/block/$name/partition\")\n"
     "disk=$(basename \"$(dirname \"$(readlink -f \"/sys/class/block/$name\")\")\")\n"
     "end=$(($(cat \"/sys/class/block/$name/start\") + $(cat \"/sys/class/block/$name/size\")))\n"
     "[ $(($(cat \"/sys/class/block/$disk/size\") - end)) -gt 4096 ] || exit 0\n"
     "sfdisk --quiet --no-reread --relocate gpt-bak-std \"/dev/$disk\"\n"
     "echo ', +' | sfdisk --quiet --no-reread --no-tell-kernel -N \"$number\" \"/dev/$disk\"\n"
     "partx --update --nr \"$number\" \"/dev/$disk\"\n"
     "resize2fs \"$root\"\n"},
    {RECIPE_FILE, "etc/systemd/system/box-grow.service",
     "[Unit]\n"
     "Description=Grow the root file system to the disk\n"
     "After=local-fs.target\n"
     "\n"
     "[Service]\n"
     "Type=oneshot\n"
     "ExecStart=/usr/local/sbin/box-grow\n"
     "\n"
     "[Install]\n"
     "WantedBy=multi-user.target\n"},
    {RECIPE_LINK, "etc/systemd/system/multi-user.target.wants/box-grow.service",
     "/etc/systemd/system/box-grow.service"},
};

/* cloud-init is seeded by a drive of Incus's (cloud-init:config): the agent, were it to write seed files, reboots the
 * machine when it finds that cloud-init has begun. */
static const struct recipe_template templates[] = {
    {"/etc/hostname", "hostname.tpl", "create, copy, rename", "{{ container.name }}\n"},
};

const struct recipe vmrecipe_trixie = {
    .alias = "debian/13" RECIPE_VM_SUFFIX,
    .os = "Debian",
    .release = "13",
    .suite = "trixie",
    .description = "Debian 13 (trixie) for boxes, a VM",
    .base = &recipe_trixie,
    .vm = true,
    .packages = packages,
    .options = options,
    .entries = entries,
    .entry_count = ARRAY_LENGTH(entries),
    .templates = templates,
    .template_count = ARRAY_LENGTH(templates),
};

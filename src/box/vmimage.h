#ifndef BOX_BOX_VMIMAGE_H
#define BOX_BOX_VMIMAGE_H

#include "base/error.h"
#include "base/narrate.h"

/* The programs that packing a VM's disk needs: the first that is absent, with its package, as ERR_NOT_FOUND. */
int vmimage_check_tools(struct error *err);

/* Makes of the installed system in `root` a bootable disk, in `work`, at `disk` (qcow2): GPT, an EFI system partition
 * with systemd-boot at the removable path, kernel and initrd, and an ext4 root that is found by its partition's label.
 * Nothing is mounted. What it needs on the way stays in `work`, which is the caller's to remove. */
int vmimage_pack(const char *work, const char *root, const char *disk, struct narrator *narrator, struct error *err);

#endif

#ifndef BOX_HOST_SYSCTL_H
#define BOX_HOST_SYSCTL_H

#include "base/error.h"

/* Kernel parameters, named by their path below /proc/sys ("net/ipv4/conf/boxnet/arp_ignore"). */

/* The value without its newline; the caller frees. ERR_NOT_FOUND where the kernel has no such parameter. */
int sysctl_read(const char *path, char **ret_value, struct error *err);
int sysctl_write(const char *path, const char *value, struct error *err);

#endif

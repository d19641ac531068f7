#ifndef BOX_BOX_LIMITS_H
#define BOX_BOX_LIMITS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* What a box may take of its host. Texts as Incus takes them, owned; NULL: no limit of ours. */
struct limits {
    char *cpu;    /* number of CPUs: "2" */
    char *memory; /* "2GiB" */
    char *disk;   /* size of the root disk: "10GiB" */
};

#define LIMITS_CPU_MAXIMUM 1024
#define LIMITS_MEMORY_MINIMUM (64LL * 1024 * 1024)
#define LIMITS_DISK_MINIMUM (1024LL * 1024 * 1024)

/* Bytes of a size as Incus writes it: a whole number and one of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB. A bare number is
 * refused: who types 4 means GiB, and Incus would take bytes. False on anything else. */
bool limits_parse_size(const char *text, int64_t *ret_bytes);

/* ERR_USAGE, in words that start with `what` ("--memory", "BOX_MEMORY"), where the text is not such a limit. */
int limits_check_cpu(const char *what, const char *text, struct error *err);
int limits_check_memory(const char *what, const char *text, struct error *err);
int limits_check_disk(const char *what, const char *text, struct error *err);

/* The first that is given of: flag, environment (BOX_CPU, BOX_MEMORY, BOX_DISK), the template's file. Each flag may be
 * NULL. Flags and environment are checked here; the file was when it was read. */
int limits_choose(const struct limits *flags, const struct limits *file, struct limits *ret_limits,
                  struct error *err);

void limits_reset(struct limits *limits);

#endif

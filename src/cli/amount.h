#ifndef BOX_CLI_AMOUNT_H
#define BOX_CLI_AMOUNT_H

#include <stdint.h>

/* An amount of bytes as people say it: "0 B", "512 B", "1.5 MiB", "24 GiB". The caller frees. */
char *amount_describe(uint64_t bytes);

#endif

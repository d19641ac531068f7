#ifndef BOX_BASE_TALLY_H
#define BOX_BASE_TALLY_H

#include <stddef.h>
#include <stdint.h>

#define TALLY_NAMES ((size_t)3)

/* How many things something happened to, and which the first of them were. It holds no pointer: it may lie in memory
 * that another process reads once the one that writes has ended. Begins as zeros. */
struct tally {
    uint64_t count;
    char names[TALLY_NAMES][256];
};

/* Counts one more. A long name is cut. `tally` may be NULL: then nothing is done. */
void tally_add(struct tally *tally, const char *name);

/* "a, b, c and 4 more" in one line, safe to print; "" for none. The caller frees. */
char *tally_names(const struct tally *tally);

#endif

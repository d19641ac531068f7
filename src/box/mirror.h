#ifndef BOX_BOX_MIRROR_H
#define BOX_BOX_MIRROR_H

#include "base/error.h"

/* Where Debian comes from on this machine, read from its apt sources (one-line and deb822): no host name is built in. */
struct mirror {
    char *archive;  /* URI of the Debian archive that the machine uses */
    char *security; /* of the security archive; NULL where the machine has none */
    char *keyring;  /* file that signs it */
};

/* Reads `directory` (normally "/etc/apt"). Where it names no Debian archive (an Ubuntu host) $BOX_MIRROR is taken
 * ("URI" or "URI SECURITY-URI"); without either ERR_NOT_FOUND with the remedy. */
int mirror_find(const char *directory, struct mirror *ret_mirror, struct error *err);

/* What a box's own apt shall use: $BOX_MIRROR where it is set, else the machine's. */
int mirror_for_boxes(const struct mirror *machine, struct mirror *ret_mirror, struct error *err);

void mirror_reset(struct mirror *mirror);

#endif

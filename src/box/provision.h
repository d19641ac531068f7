#ifndef BOX_BOX_PROVISION_H
#define BOX_BOX_PROVISION_H

#include "base/argv.h"
#include "base/error.h"
#include "base/narrate.h"

#include <stdbool.h>

/* Incus on a host that lacks it. */

/* What a distribution needs for it. Texts are static, but for the packages. */
struct provision {
    const char *backports; /* "bookworm-backports": the suite that has it; NULL: the release itself */
    struct argv packages;
};

/* Reads ID and VERSION_CODENAME of an os-release file. ERR_STATE, with the list of packages to install by hand, for a
 * distribution that is not known; `with_vms` takes QEMU along. */
int provision_plan(const char *os_release, bool with_vms, struct provision *ret_provision, struct error *err);

/* Installs the plan's packages with apt-get, from the mirror that this host uses, adding its backports where they are
 * needed and absent. Needs root; minutes. */
int provision_install(const struct provision *provision, struct narrator *narrator, struct error *err);

void provision_reset(struct provision *provision);

#endif

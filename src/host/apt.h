#ifndef BOX_HOST_APT_H
#define BOX_HOST_APT_H

#include "base/argv.h"
#include "base/error.h"
#include "base/narrate.h"

#include <stdbool.h>

/* Packages of a Debian host, through apt-get and dpkg-query. */

/* True where this host has apt-get. */
bool apt_exists(void);

/* Appends the names of the installed packages that the shell pattern selects ("incus*"); none is success. */
int apt_installed(const char *pattern, struct argv *ret_packages, struct error *err);

/* apt-get ARGUMENTS, asking nothing, 20 minutes at most, of which 5 may go to waiting for another's lock (which apt
 * names). Each of its lines is told to the narrator. Needs root. A failure quotes apt's last line. */
int apt_get(const struct argv *arguments, struct narrator *narrator, struct error *err);

#endif

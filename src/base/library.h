#ifndef BOX_BASE_LIBRARY_H
#define BOX_BASE_LIBRARY_H

#include "base/error.h"

#include <stddef.h>

/* A library that is loaded on first use: what libnftables and libarchive cost at start is paid by
 * who needs them.
 *
 *   struct mnl_library { struct mnl_socket *(*socket_open)(int bus); ... };
 *   static const struct library_symbol symbols[] = { LIBRARY_SYMBOL(struct mnl_library, socket_open, "mnl_socket_open"), ... };
 *   library_load("libmnl.so.0", "libmnl0", symbols, ARRAY_LENGTH(symbols), &table, err)
 */
struct library_symbol {
    const char *name;
    size_t offset;
};

#define LIBRARY_SYMBOL(table, member, name)                                                                          \
    {                                                                                                                \
        name, offsetof(table, member)                                                                                \
    }

/* Opens `soname` and fills the function pointers of `table`. The library stays loaded until the process ends.
 * Fails with ERR_SYSTEM, naming the Debian `package` to install, where the library or a symbol is absent. */
int library_load(const char *soname, const char *package, const struct library_symbol *symbols, size_t count,
                 void *table, struct error *err);

#endif

/* Libraries loaded on first use, so that a command pays only for what it calls.
 * Not for: plugins; every name here is a system library that the package depends on. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

int library_load(const char *soname, const char *package, const struct library_symbol *symbols, size_t count,
                 void *table, struct error *err)
{
    /* What we need of it is looked up below, at once; binding what it needs itself on first use saves time. */
    void *library = dlopen(soname, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        error_set(err, ERR_SYSTEM, "cannot load %s: %s", soname, reason ? reason : "unknown reason");
        return error_remedy(err, "apt-get install %s", package);
    }
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol) {
            dlclose(library);
            error_set(err, ERR_SYSTEM, "%s has no function %s", soname, symbols[i].name);
            return error_remedy(err, "apt-get install %s (a newer one)", package);
        }
        memcpy((char *)table + symbols[i].offset, &symbol, sizeof(symbol));
    }
    return 0;
}

/* Amounts as people say them.
 * Not for: --json, which tells bytes. */
#include "cli/amount.h"

#include "base/cleanup.h"
#include "base/memory.h"

char *amount_describe(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;
    double value = (double)bytes;
    while (value >= 1023.5 && unit + 1 < ARRAY_LENGTH(units)) {
        value /= 1024;
        unit++;
    }
    return unit && value < 9.95 ? xasprintf("%.1f %s", value, units[unit]) : xasprintf("%.0f %s", value, units[unit]);
}

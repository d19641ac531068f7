/* A count with its first few names.
 * Not for: what the count means; who tells of it says that. */
#include "base/tally.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

void tally_add(struct tally *tally, const char *name)
{
    if (!tally) {
        return;
    }
    if (tally->count < TALLY_NAMES) {
        char *kept = tally->names[tally->count];
        size_t length = strnlen(name, sizeof(tally->names[0]) - 1);
        memcpy(kept, name, length);
        kept[length] = '\0';
    }
    tally->count++;
}

char *tally_names(const struct tally *tally)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    for (size_t i = 0; i < TALLY_NAMES && i < tally->count; i++) {
        CLEANUP(freep) char *name = text_sanitise(tally->names[i], strlen(tally->names[i]));
        for (char *at = name; (at = strpbrk(at, "\n\t"));) { /* a name is not to end the line it is told in */
            *at = ' ';
        }
        buffer_append_format(&text, "%s%s", i ? ", " : "", name);
    }
    if (tally->count > TALLY_NAMES) {
        buffer_append_format(&text, " and %llu more", (unsigned long long)(tally->count - TALLY_NAMES));
    }
    return buffer_steal(&text);
}

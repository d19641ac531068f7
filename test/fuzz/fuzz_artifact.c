/* The index and the members of an exported box: the text of an index, or (first byte odd) a path and a link behind a
 * NUL. Not for the archive's own framing, which is libarchive's. */
#include "base/memory.h"
#include "box/artifact.h"
#include "box/name.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_member(const uint8_t *data, size_t size)
{
    CLEANUP(freep) char *path = xstrndup((const char *)data, size);
    size_t length = strlen(path);
    CLEANUP(freep) char *link = length < size ? xstrndup((const char *)data + length + 1, size - length - 1) : NULL;
    const char *why = NULL;

    for (int kind = ARTIFACT_FILE; kind <= ARTIFACT_BLOCK_DEVICE; kind++) {
        if (artifact_allows(path, (enum artifact_kind)kind, link, 1, 3, &why) &&
            (path[0] == '/' || strstr(path, ".."))) {
            /* Two dots may be part of a name, never a whole part of a path. */
            if (path[0] == '/' || strstr(path, "/../") || strncmp(path, "../", 3) == 0) {
                abort();
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(artifact_reset) struct artifact artifact = {0};

    if (size < 1) {
        return 0;
    }
    if (data[0] & 1) {
        try_member(data + 1, size - 1);
        return 0;
    }
    int result = artifact_read_index((const char *)data + 1, size - 1, &artifact, &err);
    if ((result == 0) != (err.code == ERR_NONE) || (result < 0 && artifact.name) ||
        (result == 0 && !name_is_valid(artifact.name))) {
        abort();
    }
    return 0;
}

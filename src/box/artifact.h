#ifndef BOX_BOX_ARTIFACT_H
#define BOX_BOX_ARTIFACT_H

#include "base/error.h"
#include "base/narrate.h"

#include <stdbool.h>
#include <stdint.h>

/* A file that holds a whole box, as somebody else may have made it: untrusted. */
struct artifact {
    char *name; /* of the box in it; keeps the rule for names */
    bool vm;
    uint64_t members;
};

/* Reads it from begin to end by libarchive, unpacking nothing, and refuses with ERR_CONTRACT or ERR_USAGE what no
 * export of a box contains: an index that is missing, too large or not the first member; a path out of its place; a
 * link that leads out of the root file system; a device of the host; a storage stream that cannot be looked into. A
 * file that is empty, truncated or no archive at all is ERR_USAGE. `path` is for messages. The descriptor stands at the
 * beginning again afterwards. */
int artifact_check(int fd, const char *path, struct narrator *narrator, struct artifact *ret_artifact,
                   struct error *err);
void artifact_reset(struct artifact *artifact);

/* For tests: whether a member may be in an artifact. `link` is the target of a link, else NULL; `why` is a static text
 * where not. */
enum artifact_kind {
    ARTIFACT_FILE,
    ARTIFACT_DIRECTORY,
    ARTIFACT_SYMLINK,
    ARTIFACT_HARDLINK,
    ARTIFACT_FIFO,
    ARTIFACT_SOCKET,
    ARTIFACT_CHARACTER_DEVICE,
    ARTIFACT_BLOCK_DEVICE,
};
bool artifact_allows(const char *path, enum artifact_kind kind, const char *link, unsigned device_major,
                     unsigned device_minor, const char **ret_why);

/* Reads name, type and the rest off the text of an index. */
int artifact_read_index(const char *text, size_t length, struct artifact *ret_artifact, struct error *err);

#endif

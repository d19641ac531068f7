/* A tar stream as a guest may send it: whatever comes, entries stay within what was read, and what is unpacked stays
 * within its target.
 * Not for: symbolic links on a real disk; test/lab/test_cp.py tries them. */
#include "base/fd.h"
#include "base/tarread.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(fd_closep) int fd = memfd_create("archive", MFD_CLOEXEC);
    if (fd < 0 || fd_write_all(fd, data, size, NULL) < 0 || lseek(fd, 0, SEEK_SET) < 0) {
        abort();
    }
    CLEANUP(tarread_closep) struct tarread *reader = tarread_open(fd);
    const struct tarread_entry *entry = NULL;
    size_t told = 0;
    for (bool skips = false; tarread_next(reader, &entry, NULL) == 0 && entry; skips = !skips) {
        if (!entry->name || !entry->link || (entry->kind != TARREAD_FILE && entry->size)) {
            abort();
        }
        char chunk[777];
        ssize_t got = 0;
        while (!skips && (got = tarread_data(reader, chunk, sizeof(chunk), NULL)) > 0) {
            told += (size_t)got;
        }
        if (told > size) {
            abort(); /* more than there was */
        }
        if (got < 0) {
            break;
        }
    }
    return 0;
}

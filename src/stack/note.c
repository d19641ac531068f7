/* The notes of a host that is set up, for the day when it is taken down.
 * Not for what stands in them: each item knows. */
#include "stack/note.h"

#include "base/fd.h"
#include "stack/names.h"

#include <string.h>
#include <unistd.h>

int note_write(const char *path, const char *text, struct error *err)
{
    return fd_make_directories(STACK_DIRECTORY, 0755, err) < 0 ? -1
                                                               : fd_write_file(path, text, strlen(text), 0644, err);
}

int note_remove(const char *path, struct error *err)
{
    if (fd_remove_file(path, err) < 0) {
        return -1;
    }
    (void)rmdir(STACK_DIRECTORY); /* stays where something else of box's lies in it */
    return 0;
}

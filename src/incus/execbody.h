#ifndef BOX_INCUS_EXECBODY_H
#define BOX_INCUS_EXECBODY_H

#include "incus/exec.h"

/* The JSON of an exec request. `columns` and `rows` are 0 where there is no terminal. ERR_USAGE where the directory is
 * not UTF-8 or the command is empty. */
int execbody_make(const struct exec_request *request, unsigned columns, unsigned rows, json_t **ret_body,
                  struct error *err);

/* The command as JSON strings can carry it: itself where every argument is UTF-8, else a shell in the guest that puts
 * the bytes together and becomes the command. The caller owns the array. */
json_t *execbody_command(const char *const *command);

/* What a program of root's finds in a Debian guest, whatever the image says: PATH, HOME, and the locale that every guest
 * has. The caller owns it, and may add. */
json_t *execbody_root_environment(void);

#endif

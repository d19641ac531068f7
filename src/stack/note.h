#ifndef BOX_STACK_NOTE_H
#define BOX_STACK_NOTE_H

#include "base/error.h"

/* What setting a host up must remember for taking it down: a small file below STACK_DIRECTORY. */

/* Writes it whole or not at all, and makes the directory. */
int note_write(const char *path, const char *text, struct error *err);

/* Removes it and, where nothing else lies in it, the directory. One that is not there is success. */
int note_remove(const char *path, struct error *err);

#endif

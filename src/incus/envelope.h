#ifndef BOX_INCUS_ENVELOPE_H
#define BOX_INCUS_ENVELOPE_H

#include "base/error.h"
#include "base/json.h"

#include <stddef.h>

/* The envelope in which the daemon answers, and what an operation came to. Pure: bytes in, facts out. */
struct envelope {
    json_t *metadata; /* owned; NULL where there is none */
    char *operation;  /* "/1.0/operations/UUID" of an asynchronous answer, checked and owned; else NULL */
};

/* Reads the body of an answer with HTTP status `http`. An error of the daemon's is an error here: ERR_NOT_FOUND (404),
 * ERR_EXISTS (409), ERR_DENIED (403), ERR_REFUSED_BY_INCUS otherwise, with its own words; anything that is not an
 * envelope is ERR_PROTOCOL. `what` names the request, for messages. */
int envelope_read(int http, const char *body, size_t length, const char *what, struct envelope *ret_envelope,
                  struct error *err);

void envelope_reset(struct envelope *answer);

/* Sets the error that a refusal with these words is, and returns -1. Words of a daemon are made safe to print. */
int envelope_refused(int http, const char *words, struct error *err);

/* Judges the body of a GET OPERATION/wait: 0 on success, else as operation_wait() says. `ret_metadata` (may be NULL)
 * receives the operation's own metadata, owned by the caller, or NULL where it has none. */
int envelope_outcome(int http, const char *body, size_t length, json_t **ret_metadata, struct error *err);

/* The newest progress that an operation's metadata tells ("Unpack: 42% (1.2GB/s)"), safe to print; NULL where it tells
 * none. The caller frees. */
char *envelope_progress(const json_t *metadata);

#endif

#ifndef BOX_INCUS_CALL_H
#define BOX_INCUS_CALL_H

#include "incus/client.h"
#include "incus/envelope.h"
#include "incus/http.h"

/* One call of the API with everything that a request of this floor can carry. The other files here are written with it;
 * floors above use client.h, operation.h and the rest. Everything is borrowed. */
struct call {
    const char *method;
    const char *path; /* as client_request() takes it */
    const json_t *body;
    const char *const *headers;
    const void *data; /* raw bytes instead of `body`, or `source`, or `parts` */
    size_t length;
    const struct http_source *source;
    const struct http_part *parts;
    size_t part_count;
    const int *sink;
    size_t ceiling;            /* 0: 64 MiB */
    int64_t budget;            /* 0: none but the client's patience */
    struct narrator *narrator; /* NULL: the client's own */
    bool deaf;                 /* goes on although Ctrl-C came */
    bool long_poll;            /* silence is no fault */
};

/* Sends it and reads the envelope. Fails as client_request() does. */
int call_send(struct client *client, const struct call *call, struct envelope *ret_envelope, struct error *err);

/* Sends it and leaves a 2xx answer as it came (a file's bytes); a refusal is an error as above. */
int call_send_raw(struct client *client, const struct call *call, struct http_answer *ret_answer, struct error *err);

/* The path as it goes on the wire: with the project, where one was asked for. The caller frees. */
char *call_target(const struct client *client, const char *path);

/* "/1.0/NOUN/NAME" with the name encoded, then `rest` as it is. The caller frees. */
char *call_path(const char *noun, const char *name, const char *rest);

#endif

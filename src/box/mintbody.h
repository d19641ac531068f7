#ifndef BOX_BOX_MINTBODY_H
#define BOX_BOX_MINTBODY_H

#include "base/json.h"
#include "box/mint.h"

#include <stdbool.h>

/* What a mint has decided before it asks for an instance. Borrowed texts. */
struct mintbody {
    const struct mint_request *request;
    bool vm;
    const char *mint_id;
    const char *created;     /* RFC 3339 */
    const char *pool;        /* of the root disk */
    const char *fingerprint; /* of the image in the daemon's store; or NULL and: */
    const char *server;      /* of the image, simplestreams */
    const char *server_alias;
};

/* The creating request. The caller owns it. */
json_t *mintbody_make(const struct mintbody *body);

#endif

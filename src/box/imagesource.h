#ifndef BOX_BOX_IMAGESOURCE_H
#define BOX_BOX_IMAGESOURCE_H

#include "incus/client.h"

#include <stdbool.h>

/* Where the image of a mint comes from: the daemon's own store before any image server. Owned. */
struct imagesource {
    char *fingerprint; /* in the store; NULL: from the server */
    char *description; /* for people: "debian/13 from this host (bf886656463b, built 3d ago)" */
    char *server;      /* URL of the simplestreams server that the `incus` client knows as "images" */
    char *alias;       /* on it: a variant with cloud-init */
};

/* ERR_STATE, with both ways to get one, where neither is there. */
int imagesource_find(struct client *client, const char *image, bool vm, struct imagesource *ret_source,
                     struct error *err);

/* The two ways, as the remedy of an error about a missing image. Always returns -1. */
int imagesource_remedy(const char *image, bool vm, struct error *err);

void imagesource_reset(struct imagesource *source);

#endif

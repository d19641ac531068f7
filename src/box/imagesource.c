/* Which image a mint takes: the local one of that alias, else the image server's that the incus client is set to.
 * Not for building one (imagebuild.c), nor for downloading: the daemon does that. */
#include "box/imagesource.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "box/recipe.h"
#include "incus/image.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SERVER_REMOTE  "images" /* the name of the image server in a fresh configuration of the incus client */
#define SERVER_VARIANT "cloud"
#define ASK_BUDGET_MS  5000

static char *age_of(const json_t *image)
{
    const char *built = json_text(json_object_get(image, "properties"), "box.built");
    const char *uploaded = json_text(image, "uploaded_at");
    uint64_t seconds;
    int64_t when = 0;

    if (built && text_parse_number(built, 1, INT64_MAX, &seconds)) {
        when = (int64_t)seconds;
    } else if (!uploaded || !clock_parse(uploaded, &when)) {
        return xstrdup("of unknown age");
    }
    CLEANUP(freep) char *age = clock_describe((int64_t)time(NULL) - when);

    return text_equal(age, "now") ? xstrdup("built just now") : xasprintf("built %s ago", age);
}

/* The address of the client's remote, so that no server's name is built in. NULL where there is no client. */
static char *find_server(void)
{
    const char *const argv[] = {"incus", "remote", "list", "--format", "json", NULL};
    const struct process_options options = {.budget = ASK_BUDGET_MS};
    CLEANUP(freep) char *output = NULL;
    CLEANUP(json_freep) json_t *remotes = NULL;

    if (process_check(argv, &options, &output, NULL) < 0 ||
        json_parse(output, strlen(output), "incus remote list", &remotes, NULL) < 0) {
        return NULL;
    }
    const json_t *remote = json_object_get(remotes, SERVER_REMOTE);
    const char *address = json_text(remote, "Addr");
    const char *protocol = json_text(remote, "Protocol");

    return address && text_equal(protocol, "simplestreams") ? xstrdup(address) : NULL;
}

int imagesource_remedy(const char *image, bool vm, struct error *err)
{
    if (recipe_find(image)) {
        return error_remedy(err,
                            "box image build %s%s (from this machine's Debian mirror), or give Incus an image "
                            "server: incus remote list",
                            image, vm ? " --vm" : "");
    }
    return error_remedy(err,
                        "give Incus an image server that it can reach (incus remote list), or import an image "
                        "under the alias %s: incus image import",
                        image);
}

int imagesource_find(struct client *client, const char *image, bool vm, struct imagesource *ret_source,
                     struct error *err)
{
    CLEANUP(json_freep) json_t *found = NULL;
    CLEANUP(error_reset) struct error cause = {0};
    CLEANUP(imagesource_reset) struct imagesource source = {0};

    CLEANUP(freep) char *alias = xasprintf("%s%s", image, vm ? RECIPE_VM_SUFFIX : "");
    CLEANUP(error_reset) struct error first = {0};

    /* One alias names one image, whatever its type: box's own VM images have a name of their own. */
    if ((vm && image_by_alias(client, alias, "virtual-machine", &found, &first) == 0) ||
        image_by_alias(client, image, vm ? "virtual-machine" : "container", &found, &cause) == 0) {
        const char *fingerprint = json_text(found, "fingerprint");
        CLEANUP(freep) char *age = age_of(found);

        if (!fingerprint) {
            return error_set(err, ERR_PROTOCOL, "the daemon names no fingerprint for the image %s", image);
        }
        source.fingerprint = xstrdup(fingerprint);
        source.description = xasprintf("%s from this host (%.12s, %s)", image, fingerprint, age);
    } else if (cause.code != ERR_NOT_FOUND) {
        return error_move(err, &cause);
    } else {
        source.server = find_server();
        if (!source.server) {
            error_set(err, ERR_STATE, "no %s image %s is on this host, and no image server is known",
                      vm ? "VM" : "container", image);
            return imagesource_remedy(image, vm, err);
        }
        source.alias = xasprintf("%s/" SERVER_VARIANT, image);
        source.description = xasprintf("%s from %s (none of that name is on this host)", source.alias, source.server);
    }
    *ret_source = source;
    source = (struct imagesource){0};
    return 0;
}

void imagesource_reset(struct imagesource *source)
{
    free(source->fingerprint);
    free(source->description);
    free(source->server);
    free(source->alias);
    *source = (struct imagesource){0};
}

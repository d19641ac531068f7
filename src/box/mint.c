/* A mint: what to make of a template on this host, and the instance.
 * Not for the request's shape (mintbody.c), nor for what follows on it (birth.c). */
#include "box/mint.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/birth.h"
#include "box/clone.h"
#include "box/imagesource.h"
#include "box/mintbody.h"
#include "box/name.h"
#include "box/seed.h"
#include "box/snapshot.h"
#include "box/tag.h"
#include "incus/instance.h"
#include "incus/server.h"
#include "stack/arm.h"
#include "stack/names.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CREATE_BUDGET_LOCAL_MS  (3 * 60 * 1000)
#define CREATE_BUDGET_SERVER_MS (20 * 60 * 1000)

struct mint {
    struct client *client;
    const struct mint_request *request;
    struct narrator *narrator;
    struct birth birth;
    bool vm;
    char *pool;
    struct imagesource source;
};

static void mint_reset(struct mint *mint)
{
    free(mint->pool);
    birth_reset(&mint->birth);
    imagesource_reset(&mint->source);
}

/* Why this host runs no VM; NULL where it does. */
static const char *vm_obstacle(const struct server *server)
{
    if (access("/dev/kvm", F_OK) < 0) {
        return "this host has no /dev/kvm";
    }
    return server->drives_vms ? NULL : "this host's Incus has no VM driver";
}

static int choose_kind(struct mint *mint, struct error *err)
{
    CLEANUP(server_reset) struct server server = {0};
    const struct mint_request *request = mint->request;

    if (server_get(mint->client, &server, err) < 0) {
        return -1;
    }
    const char *obstacle = vm_obstacle(&server);

    if (request->template->require_vm && request->kind == MINT_CONTAINER) {
        return error_set(err, ERR_USAGE, "the template %s requires a VM", request->template->name);
    }
    if (obstacle && (request->kind == MINT_VM || request->template->require_vm)) {
        error_set(err, ERR_STATE, "a VM cannot be minted: %s%s%s", obstacle,
                  request->kind == MINT_VM ? "" : ", and it is required by the template ",
                  request->kind == MINT_VM ? "" : request->template->name);
        return request->kind == MINT_VM ? error_remedy(err, "box new %s --container (weaker isolation)", request->name)
                                        : -1;
    }
    mint->vm = !obstacle && request->kind != MINT_CONTAINER;
    if (!mint->vm && request->kind == MINT_ANY) {
        narrate_warn(mint->narrator, "%s: %s becomes a container, which shares the host's kernel: weaker isolation "
                                     "than a VM",
                     obstacle, request->name);
    }
    return 0;
}

static int not_set_up(struct error *err)
{
    error_set(err, ERR_STATE, "this host is not set up for boxes");
    return error_remedy(err, "sudo box setup-host");
}

/* The pool is the profile's: an override of the root disk has to name it again. */
static int find_pool(struct mint *mint, struct error *err)
{
    CLEANUP(json_freep) json_t *profile = NULL;
    CLEANUP(error_reset) struct error cause = {0};

    if (client_get(mint->client, "/1.0/profiles/" STACK_PROFILE, &profile, &cause) < 0) {
        return cause.code == ERR_NOT_FOUND ? not_set_up(err) : error_move(err, &cause);
    }
    const char *pool = json_string_value(json_path(profile, "devices", "root", "pool", NULL));

    if (!pool || !json_path(profile, "devices", STACK_NIC, NULL)) {
        return not_set_up(err);
    }
    mint->pool = xstrdup(pool);
    if (!arm_watcher_runs()) {
        error_set(err, ERR_STATE, "the watcher that lets boxes speak does not run: a box would have no network");
        return error_remedy(err, "sudo box setup-host (or: systemctl start " STACK_UNIT ")");
    }
    return 0;
}

static int prepare(struct mint *mint, struct error *err)
{
    const struct mint_request *request = mint->request;

    if (birth_check_free(&mint->birth, err) < 0 || choose_kind(mint, err) < 0 || find_pool(mint, err) < 0 ||
        imagesource_find(mint->client, request->template->image, mint->vm, &mint->source, err) < 0) {
        return -1;
    }
    narrate_note(mint->narrator, "the image is %s", mint->source.description);
    mint->birth.vm = mint->vm;
    return birth_begin(&mint->birth, err);
}

/* The daemon reads user-data as YAML, and its count of lines is one less for some faults: where to is not repeated. */
static int tell_yaml(const struct template *template, struct error *err)
{
    static const char mark[] = "yaml: line ";
    const char *found = err && err->message ? strstr(err->message, mark) : NULL;
    const char *words = found ? strstr(found, ": ") : NULL;

    words = words ? strstr(words + 2, ": ") : NULL;
    if (!words) {
        return -1;
    }
    CLEANUP(freep) char *told = xstrdup(words + 2);

    error_set(err, err->code, "%s/user-data.yaml is no YAML: %s", template->directory, told);
    return error_remedy(err, "box templates check %s, which tells the line", template->directory);
}

static int create(void *context, struct error *err)
{
    struct mint *mint = context;
    char created[21];
    const struct mintbody body = {
        .request = mint->request,
        .vm = mint->vm,
        .mint_id = mint->birth.id,
        .created = created,
        .pool = mint->pool,
        .fingerprint = mint->source.fingerprint,
        .server = mint->source.server,
        .server_alias = mint->source.alias,
    };

    clock_format_now(created);
    CLEANUP(json_freep) json_t *value = mintbody_make(&body);

    narrate_step(mint->narrator, "creating the %s %s from the template %s", mint->vm ? "VM" : "container",
                 mint->request->name, mint->request->template->name);
    if (instance_create(mint->client, value, body.fingerprint ? CREATE_BUDGET_LOCAL_MS : CREATE_BUDGET_SERVER_MS,
                        mint->narrator, err) < 0) {
        if (body.server && err && err->code != ERR_INTERRUPTED && err->code != ERR_EXISTS) {
            (void)imagesource_remedy(mint->request->template->image, mint->vm, err);
        }
        (void)tell_yaml(mint->request->template, err);
        return error_wrap(err, "cannot create %s", mint->request->name);
    }
    narrate_done(mint->narrator, "%s", "");
    return 0;
}

/* Never fails: the box is usable already. */
static void keep_marks(struct mint *mint, const struct box *box, bool warm, const char *key)
{
    const struct template *template = mint->request->template;
    bool pristine = snapshot_mark(mint->client, box, SNAPSHOT_PRISTINE, mint->narrator);

    if (pristine && template->script) {
        (void)snapshot_mark(mint->client, box, SNAPSHOT_BOOTSTRAPPED, mint->narrator);
    }
    if (pristine && !warm && *key) {
        seed_keep(mint->client, box, template, key, mint->request->version, mint->request->seed_age, mint->narrator);
    }
}

static int mint_warm(struct mint *mint, const struct box *seed, struct box **ret_box, struct error *err)
{
    const struct clone_request clone = {
        .name = mint->request->name,
        .source = seed,
        .template = mint->request->template,
        .limits = mint->request->limits,
        .budget = mint->request->budget,
        .version = mint->request->version,
    };

    if (clone_run(mint->client, &clone, mint->narrator, ret_box, err) < 0) {
        return err && err->remedy ? -1 : error_remedy(err, "without the seed: box new %s --cold", clone.name);
    }
    return 0;
}

static int run_warm_or_cold(struct mint *mint, struct box **ret_box, struct error *err)
{
    const struct mint_request *request = mint->request;
    CLEANUP(box_freep) struct box *seed = NULL;
    CLEANUP(box_freep) struct box *box = NULL;
    char key[SEED_KEY_SIZE] = "";

    if (mint->source.fingerprint && request->seed_age > 0) {
        seed_key(request->template, mint->source.fingerprint, mint->vm, request->version, key);
        if (!request->cold && seed_find(mint->client, key, request->seed_age, &seed, err) < 0) {
            return -1;
        }
    }
    if ((seed ? mint_warm(mint, seed, &box, err) : birth_run(&mint->birth, create, mint, &box, err)) < 0) {
        return -1;
    }
    keep_marks(mint, box, seed != NULL, key);
    *ret_box = steal(&box);
    return 0;
}

int mint_run(struct client *client, const struct mint_request *request, struct narrator *narrator,
             struct box **ret_box, struct error *err)
{
    CLEANUP(mint_reset)
    struct mint mint = {
        .client = client,
        .request = request,
        .narrator = narrator,
        .birth = {.client = client,
                  .narrator = narrator,
                  .name = request->name,
                  .user = request->template->user,
                  .template = request->template,
                  .limits = &request->limits,
                  .budget = request->budget},
    };

    if (name_check_new(request->name, err) < 0 || prepare(&mint, err) < 0) {
        return -1;
    }
    return run_warm_or_cold(&mint, ret_box, err);
}

/* `box migrate-host`: boxes of the older generation move onto boxnet; then the older stack goes.
 * Not for how a box is moved (src/box/migrate.c), nor how the stack is removed (src/stack/dismantle.c). */
#include "base/cancel.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/migrate.h"
#include "box/power.h"
#include "cli/clearing.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/confirm.h"
#include "stack/dismantle.h"
#include "stack/names.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LOCK_FILE STACK_DIRECTORY "/migrate.lock"

struct migration {
    struct context *context;
    struct client *client;
    struct box **boxes; /* all, or the one that was named */
    size_t count;
    size_t failed;
    struct error first;     /* of those that failed */
    struct argv standing;   /* of the older stack, where it shall go */
    json_t *results;
    json_t *retired;
};

static void migration_reset(struct migration *migration)
{
    box_list_free(migration->boxes, migration->count);
    error_reset(&migration->first);
    argv_reset(&migration->standing);
    json_decref(migration->results);
    json_decref(migration->retired);
}

static bool retires(const struct migration *migration)
{
    return option_given(&migration->context->options, "retire-legacy");
}

static int check_options(const struct context *context, struct error *err)
{
    bool one = option_given(&context->options, "box"), all = option_given(&context->options, "all-boxes");

    if (one && all) {
        return error_set(err, ERR_USAGE, "--box and --all-boxes exclude each other");
    }
    if (!one && !all && !option_given(&context->options, "retire-legacy")) {
        return error_set(err, ERR_USAGE, "say what to do: --box BOX, --all-boxes or --retire-legacy");
    }
    return 0;
}

/* Two at once would take each other's half-moved boxes for abandoned ones. */
static int take_lock(int *ret_lock, struct error *err)
{
    if (fd_make_directories(STACK_DIRECTORY, 0755, err) < 0) {
        return -1;
    }
    CLEANUP(fd_closep) int lock = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (lock < 0) {
        return error_set_errno(err, errno, "opening %s", LOCK_FILE);
    }
    if (flock(lock, LOCK_EX | LOCK_NB) < 0) {
        return error_set(err, ERR_STATE, "another migrate-host is running on this host");
    }
    *ret_lock = lock;
    lock = -1;
    return 0;
}

static int find_boxes(struct migration *migration, struct error *err)
{
    const char *name = option_text(&migration->context->options, "box");

    if (!name) {
        return box_list(migration->client, &migration->boxes, &migration->count, err);
    }
    migration->boxes = xcalloc(1, sizeof(struct box *));
    if (box_find(migration->client, name, &migration->boxes[0], err) < 0) {
        return -1;
    }
    migration->count = 1;
    return 0;
}

static bool is_to_move(const struct migration *migration, const struct box *box)
{
    enum migrate_stage stage = migrate_stage_of(box);

    return (stage == MIGRATE_OLDER || stage == MIGRATE_BEGUN) &&
           (option_given(&migration->context->options, "box") ||
            option_given(&migration->context->options, "all-boxes"));
}

static int ask(struct migration *migration, struct error *err)
{
    struct context *context = migration->context;
    CLEANUP(argv_reset) struct argv running = {0};

    for (size_t i = 0; i < migration->count; i++) {
        if (is_to_move(migration, migration->boxes[i]) && migrate_interrupts(migration->boxes[i])) {
            argv_push(&running, migration->boxes[i]->name);
        }
    }
    if (running.count + migration->standing.count == 0) {
        return 0;
    }
    CLEANUP(freep) char *names = argv_join(&running, ", ");
    CLEANUP(freep) char *standing = argv_join(&migration->standing, ", ");
    CLEANUP(freep)
    char *first = running.count > 0
                      ? xasprintf("shut down what runs in %s and start %s again on " STACK_NETWORK, names,
                                  running.count > 1 ? "them" : "it")
                      : xstrdup("");
    CLEANUP(freep)
    char *second = migration->standing.count > 0 ? xasprintf("remove of this host: %s", standing) : xstrdup("");

    context->force = option_given(&context->options, "yes");
    if (confirm(context, err, "%s%s%s", first, *first && *second ? "; and " : "", second) == 0) {
        return 0;
    }
    return err->code == ERR_USAGE ? error_remedy(err, "say --yes where that is meant") : -1;
}

/* One line of the results, and one object of them. */
static void tell(struct migration *migration, const struct box *box, const char *result, const char *detail)
{
    (void)json_array_append_new(migration->results, json_pack("{s:s, s:s, s:s?, s:s?}", "name", box->name, "result",
                                                              result, "ipv4", box->ipv4, "reason", detail));
    if (!migration->context->json) {
        (void)fprintf(migration->context->out, "%s: %s%s%s%s\n", result, box->name, detail || box->ipv4 ? " (" : "",
                      detail ? detail : box->ipv4 ? box->ipv4 : "", detail || box->ipv4 ? ")" : "");
        (void)fflush(migration->context->out);
    }
}

static void count_failure(struct migration *migration, struct error *cause)
{
    if (migration->failed++ == 0) {
        (void)error_move(&migration->first, cause);
    } else {
        narrate_warn(migration->context->narrator, "%s", cause->message);
    }
}

static int move_one(struct migration *migration, const struct box *box, struct error *err)
{
    CLEANUP(box_freep) struct box *moved = NULL;
    CLEANUP(error_reset) struct error cause = {0};
    unsigned grace = (unsigned)option_number(&migration->context->options, "grace", POWER_GRACE_SECONDS);
    bool rolled_back = false;

    if (migrate_run(migration->client, box->name, grace, migration->context->narrator, &moved, &rolled_back, &cause) == 0) {
        tell(migration, moved, "moved", NULL);
        return cancel_check(err);
    }
    tell(migration, box, rolled_back ? "put back" : "failed", cause.message);
    if (cause.code == ERR_INTERRUPTED || cause.code == ERR_NO_DAEMON) {
        return error_move(err, &cause);
    }
    count_failure(migration, &cause);
    return 0;
}

static int move_boxes(struct migration *migration, struct error *err)
{
    bool named = option_given(&migration->context->options, "box");
    size_t moving = 0;

    for (size_t i = 0; i < migration->count; i++) {
        const struct box *box = migration->boxes[i];

        if (is_to_move(migration, box)) {
            moving++;
            if (move_one(migration, box, err) < 0) {
                return -1;
            }
        } else if (named && migrate_stage_of(box) == MIGRATE_DONE) {
            tell(migration, box, "unchanged", "it is on " STACK_NETWORK " already");
        } else if (named) {
            error_set(err, ERR_CONTRACT, "the box %s is neither on " OLDER_NETWORK " nor on " STACK_NETWORK, box->name);
            return error_remedy(err, "box info %s", box->name);
        }
    }
    if (moving == 0 && option_given(&migration->context->options, "all-boxes")) {
        narrate_note(migration->context->narrator, "no box of the older generation is on this host");
    }
    return 0;
}

/* Anybody's instance on the older network, and every box whose move did not end, needs it still. */
static int check_unused(struct migration *migration, struct error *err)
{
    CLEANUP(argv_reset) struct argv users = {0};
    const struct argv none = {0};
    struct box **boxes = NULL;
    size_t count = 0;

    if (dismantle_strangers(migration->client, DISMANTLE_OLDER, &none, &users, err) < 0 ||
        box_list(migration->client, &boxes, &count, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        if (migrate_stage_of(boxes[i]) == MIGRATE_BEGUN) {
            argv_push_format(&users, "the move of the box %s has not ended", boxes[i]->name);
        }
    }
    box_list_free(boxes, count);
    if (users.count == 0) {
        return 0;
    }
    CLEANUP(freep) char *list = argv_join(&users, "; ");

    error_set(err, ERR_STATE, "the older stack is in use: %s. Nothing of it was removed", list);
    return error_remedy(err, "box migrate-host --all-boxes --retire-legacy (what is no box has to be moved by hand)");
}

static int retire(struct migration *migration, struct error *err)
{
    CLEANUP(argv_reset) struct argv left = {0};

    if (migration->standing.count == 0) {
        narrate_note(migration->context->narrator, "nothing of the older stack is on this host");
        return 0;
    }
    if (check_unused(migration, err) < 0 ||
        dismantle_run(migration->client, DISMANTLE_OLDER, STORAGE_KEPT, migration->context->narrator, err) < 0 ||
        dismantle_list(migration->client, DISMANTLE_OLDER, STORAGE_KEPT, NULL, &left, err) < 0) {
        return -1;
    }
    if (left.count > 0) {
        CLEANUP(freep) char *names = argv_join(&left, ", ");

        return error_set(err, ERR_STATE, "these are still there: %s", names);
    }
    for (size_t i = 0; i < migration->standing.count; i++) {
        (void)json_array_append_new(migration->retired, json_string(migration->standing.items[i]));
        if (!migration->context->json) {
            (void)fprintf(migration->context->out, "absent: %s\n", migration->standing.items[i]);
        }
    }
    return 0;
}

static int end(struct migration *migration, struct error *err)
{
    if (migration->failed == 1) {
        return error_move(err, &migration->first);
    }
    if (migration->failed > 1) {
        narrate_warn(migration->context->narrator, "%s", migration->first.message);
        return error_set(err, ERR_STATE, "%zu boxes could not be moved", migration->failed);
    }
    return retires(migration) ? retire(migration, err) : 0;
}

static int migrate(struct migration *migration, struct error *err)
{
    struct context *context = migration->context;
    bool moves = option_given(&context->options, "box") || option_given(&context->options, "all-boxes");

    if (context_client(context, &migration->client, err) < 0 || find_boxes(migration, err) < 0 ||
        (retires(migration) && dismantle_list(migration->client, DISMANTLE_OLDER, STORAGE_KEPT, NULL,
                                              &migration->standing, err) < 0)) {
        return -1;
    }
    /* Who only retires is refused before being asked. */
    if (migration->standing.count > 0 && !moves && check_unused(migration, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < migration->count; i++) {
        if (is_to_move(migration, migration->boxes[i])) {
            if (migrate_check_host(migration->client, err) < 0) {
                return -1;
            }
            break;
        }
    }
    if (ask(migration, err) < 0 || (moves && move_boxes(migration, err) < 0)) {
        return -1;
    }
    return end(migration, err);
}

static int run(struct context *context, struct error *err)
{
    CLEANUP(migration_reset)
    struct migration migration = {.context = context, .results = json_array(), .retired = json_array()};
    CLEANUP(fd_closep) int lock = -1;

    if (check_options(context, err) < 0 || take_lock(&lock, err) < 0) {
        return -1;
    }
    int result = migrate(&migration, err);

    /* A refusal leaves stdout empty; what was done before a failure is told. */
    if (context->json && (result == 0 || json_array_size(migration.results) > 0)) {
        CLEANUP(json_freep)
        json_t *value = json_pack("{s:O, s:O}", "boxes", migration.results, "retired", migration.retired);
        context_print_json(context, value);
    }
    return result;
}

static const struct option_row options[] = {
    {.name = "box", .kind = OPTION_TEXT, .value = "BOX", .help = "move this box"},
    {.name = "all-boxes", .kind = OPTION_FLAG, .help = "move every box of the older generation"},
    {.name = "retire-legacy", .kind = OPTION_FLAG, .help = "remove the older stack once no box is left on it"},
    {.name = "grace",
     .kind = OPTION_NUMBER,
     .value = "S",
     .help = "seconds that a running guest has to shut down (default 30; 0: none)",
     .minimum = 0,
     .maximum = 3600},
    CLEARING_YES,
    {0},
};

const struct command command_migrate_host = {
    .name = "migrate-host",
    .section = SECTION_HOST,
    .arguments = "",
    .summary = "move boxes of the older generation onto boxnet, then retire its stack",
    .help = "A box of the older generation hangs on the network claudenet by the profile\n"
            "claude-dev. It moves onto boxnet with its tag, its user, its disk, its\n"
            "snapshots and the limits that its profile gave it; its address becomes one\n"
            "of boxnet's. One that runs is shut down, moved and started again: that is\n"
            "asked first (--yes answers). One that is stopped is started to be verified,\n"
            "and stopped again.\n"
            "\n"
            "Each is verified on its new leg: it keeps the contract, the walls let it\n"
            "speak, it has an address, resolves names and reaches the internet. One that\n"
            "fails is put back where it was, and so is one that Ctrl-C interrupts. After a\n"
            "kill the same command ends what was begun. One that mounts a path of the host\n"
            "or is off the contract otherwise is named and not touched.\n"
            "\n"
            "--retire-legacy removes network, ACL, profile, tables, unit and script of the\n"
            "older generation, and refuses while an instance is left on them.\n",
    .options = options,
    .flags = NEEDS_ROOT | TAKES_JSON | CANCELLABLE,
    .run = run,
    .also = "migrate upgrade-host",
};

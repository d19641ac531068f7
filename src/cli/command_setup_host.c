/* `box setup-host`: converges this host on the table of the stack, or shows what it would change.
 * Not for what a host must carry: src/stack/table.c. */
#include "base/memory.h"
#include "base/text.h"
#include "box/provision.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "doctor/uplink.h"
#include "incus/daemon.h"
#include "stack/setup.h"

#include <string.h>
#include <unistd.h>

#define UNKNOWN_SIZE "\"%s\" is no size; it looks like 20GiB"

/* "20GiB", "500MiB", "2TiB". */
static int parse_size(const char *text, uint64_t *ret_bytes, struct error *err)
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {{"MiB", 1ULL << 20}, {"GiB", 1ULL << 30}, {"TiB", 1ULL << 40}};
    for (size_t i = 0; i < ARRAY_LENGTH(units); i++) {
        CLEANUP(freep) char *number = xstrdup(text);
        uint64_t value;
        if (!text_ends_with(number, units[i].unit)) {
            continue;
        }
        number[strlen(number) - strlen(units[i].unit)] = '\0';
        if (!text_parse_number(number, 1, 1 << 20, &value)) {
            break;
        }
        *ret_bytes = value * units[i].bytes;
        return 0;
    }
    return error_set(err, ERR_USAGE, UNKNOWN_SIZE, text);
}

/* A value of several lines is shown line by line, indented: a diff that can be read. */
static void print_value(FILE *out, char sign, const char *value)
{
    const char *line = value;
    for (;;) {
        size_t length = strcspn(line, "\n");
        (void)fprintf(out, "      %c %.*s\n", sign, (int)length, line);
        if (line[length] == '\0') {
            return;
        }
        line += length + 1;
    }
}

static void print_change(FILE *out, const json_t *change)
{
    const char *live = json_text(change, "live"), *want = json_text(change, "want"), *why = json_text(change, "why");
    char sign = live == NULL ? '+' : want == NULL ? '-' : '~';
    bool long_value = (live != NULL && strchr(live, '\n') != NULL) || (want != NULL && strchr(want, '\n') != NULL);
    (void)fprintf(out, "  %c %s", sign, json_text(change, "item"));
    if (!long_value) {
        (void)fprintf(out, ": %s%s%s", live != NULL ? live : "", live != NULL && want != NULL ? " -> " : "",
                      want != NULL ? want : " (removed)");
    }
    (void)fprintf(out, "%s%s%s\n", text_is_empty(why) ? "" : "   (otherwise ", text_is_empty(why) ? "" : why,
                  text_is_empty(why) ? "" : ")");
    if (long_value) {
        if (live != NULL) {
            print_value(out, '-', live);
        }
        if (want != NULL) {
            print_value(out, '+', want);
        }
    }
}

static void print_changes(FILE *out, const json_t *changes)
{
    const char *object = NULL;
    size_t i;
    const json_t *change;
    json_array_foreach(changes, i, change)
    {
        const char *name = json_text(change, "object");
        if (!text_equal(name, object)) {
            (void)fprintf(out, "%s\n", name);
            object = name;
        }
        print_change(out, change);
    }
}

static void print_json(struct context *context, const struct setup_report *report)
{
    json_t *notes = json_array();
    for (size_t i = 0; i < report->notes.count; i++) {
        (void)json_array_append_new(notes, json_string(report->notes.items[i]));
    }
    CLEANUP(json_freep)
    json_t *value = json_pack("{s:s, s:O, s:o}", "subnet", report->subnet, "changes", report->changes, "notes", notes);
    context_print_json(context, value);
}

static void report_result(struct context *context, const struct setup_report *report, bool dry_run)
{
    size_t count = json_array_size(report->changes);
    if (context->json) {
        print_json(context, report);
        return;
    }
    if (dry_run) {
        print_changes(context->out, report->changes);
    }
    for (size_t i = 0; i < report->notes.count; i++) {
        narrate_note(context->narrator, "%s", report->notes.items[i]);
    }
    if (count == 0) {
        narrate_note(context->narrator, "this host is as it must be (boxnet is %s): nothing to change", report->subnet);
    } else if (dry_run) {
        narrate_note(context->narrator, "%zu changes would be made; box setup-host makes them", count);
    } else {
        narrate_note(context->narrator, "this host is ready for boxes (boxnet is %s, %zu changes): box new NAME",
                     report->subnet, count);
    }
}

/* Where there is no daemon at all. A dry run only tells. */
static int ensure_daemon(struct context *context, bool dry_run, struct error *err)
{
    CLEANUP(provision_reset) struct provision provision = {0};
    if (daemon_is_installed()) {
        return 0;
    }
    if (provision_plan("/etc/os-release", access("/dev/kvm", F_OK) == 0, &provision, err) < 0) {
        return -1;
    }
    if (dry_run) {
        CLEANUP(freep) char *packages = argv_join(&provision.packages, " ");
        (void)error_set(err, ERR_NO_DAEMON, "Incus is not installed: nothing more can be compared");
        return error_remedy(err, "box setup-host installs it: %s%s%s", packages,
                            provision.backports != NULL ? ", from " : "",
                            provision.backports != NULL ? provision.backports : "");
    }
    return provision_install(&provision, context->narrator, err);
}

/* What no set-up can change: the network that this host is in. */
static void diagnose(struct context *context, const struct setup_report *report)
{
    CLEANUP(finding_reset) struct findings findings = {0};
    uplink_route(&findings);
    if (finding_healthy(&findings)) {
        uplink_resolvers(report->dns, &findings);
    }
    for (size_t i = 0; i < findings.count; i++) {
        const struct finding *finding = &findings.items[i];
        if (finding->kind == FINDING_BROKEN) {
            narrate_warn(context->narrator, "%s: %s", finding->text, finding->fix);
        }
    }
}

static int run(struct context *context, struct error *err)
{
    CLEANUP(setup_report_reset) struct setup_report report = {0};
    struct client *client = NULL;
    const char *size = option_text(&context->options, "pool-size");
    struct setup_options options = {
        .dry_run = option_given(&context->options, "dry-run"),
        .subnet = getenv("BOX_SUBNET"),
        .dns = getenv("BOX_DNS"),
    };
    if ((size != NULL && parse_size(size, &options.pool_size, err) < 0) ||
        ensure_daemon(context, options.dry_run, err) < 0 || context_client(context, &client, err) < 0 ||
        setup_run(client, &options, context->narrator, &report, err) < 0) {
        return -1;
    }
    report_result(context, &report, options.dry_run);
    if (!options.dry_run) {
        diagnose(context, &report);
    }
    return 0;
}

static const struct option_row options[] = {
    {.name = "dry-run", .kind = OPTION_FLAG, .help = "show what would change, and change nothing"},
    {.name = "pool-size",
     .kind = OPTION_TEXT,
     .value = "SIZE",
     .help = "size of the pool's file; one that is there grows to it (default: by free disk)"},
    {0},
};

const struct command command_setup_host = {
    .name = "setup-host",
    .section = SECTION_HOST,
    .arguments = "",
    .summary = "make this host carry boxes: pool, network, ACL, profile, walls, watcher",
    .help = "Reads what this host carries, from the kernel and the daemon, and changes only\n"
            "what differs from what boxes need. The walls are laid first. A second run\n"
            "changes nothing and says so; a run that was interrupted is finished by the\n"
            "next one.\n"
            "\n"
            "Where Incus is missing it is installed: on Debian 12 (from its backports) and\n"
            "13, and on Ubuntu 24.04; elsewhere the packages are named.\n"
            "\n"
            "BOX_SUBNET pins boxnet's subnet (10.88.0.0/24, else the first free one up to\n"
            "10.127.0.0/24, where it is unset). An existing boxnet keeps its own.\n"
            "BOX_DNS names the resolvers that answer boxes (default: 1.1.1.1 8.8.8.8).\n",
    .options = options,
    .flags = NEEDS_ROOT | TAKES_JSON | CANCELLABLE,
    .run = run,
};

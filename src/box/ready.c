/* Waiting in the guest for the end of its first boot, and judging what it says of itself.
 * Not for what the host sees of it: address and walls are mint.c's. */
#include "box/ready.h"

#include "base/buffer.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "incus/exec.h"
#include "incus/execbody.h"

#include <stdlib.h>
#include <string.h>

#define REPORT_CEILING (512 * 1024)
#define MARK "@@box "

/* $1: the user. systemd tells the end of the boot by an event; cloud-init's own wait looks four times a second with a
 * Python of its own, so it is asked only where that is not enough. Before systemd's socket is there nothing tells anything.
 * A name of the reserved ones is looked up: that it does not exist is an answer, too. */
static const char script[] =
    "say() { printf '\\n" MARK "%s\\n' \"$1\"; }\n"
    "i=0\n"
    "if command -v systemctl >/dev/null; then\n"
    "    until [ -S /run/systemd/private ] || [ $i -ge 200 ]; do sleep 0.05; i=$((i + 1)); done\n"
    "    systemctl is-system-running --wait >/dev/null 2>&1\n"
    "fi\n"
    "if ! [ -e /run/cloud-init/result.json ] && command -v cloud-init >/dev/null; then\n"
    "    cloud-init status --wait >/dev/null 2>&1\n"
    "fi\n"
    "say result; cat /run/cloud-init/result.json 2>/dev/null\n"
    "say status; cat /run/cloud-init/status.json 2>/dev/null\n"
    "say ignored; grep -h 'part ignored' /var/lib/cloud/instance/cloud-config.txt 2>/dev/null\n"
    "say log\n"
    "grep -hE 'WARNING|ERROR' /var/log/cloud-init.log 2>/dev/null | tail -n 5 | sed 's/^/ /'\n"
    "tail -n 5 /var/log/cloud-init-output.log 2>/dev/null | sed 's/^/ /'\n"
    "say user; getent passwd \"$1\"\n"
    "say lands\n"
    "getent passwd \"$1\" | {\n"
    "    IFS=: read -r name _ uid gid _ home shell &&\n"
    "        setpriv --reuid=\"$uid\" --regid=\"$gid\" --init-groups -- env HOME=\"$home\" \\\n"
    "            \"${shell:-/bin/sh}\" -c 'cd && id -un' 2>&1\n"
    "}\n"
    "say resolves\n"
    "for try in 1 2 3; do\n"
    "    if command -v resolvectl >/dev/null; then\n"
    "        answer=$(timeout 10 resolvectl query --legend=no example.com 2>&1)\n"
    "    else\n"
    "        answer=$(timeout 10 getent hosts example.com 2>&1)\n"
    "    fi\n"
    "    code=$?\n"
    "    case $code:$answer in 0:* | *'not found'* | *'any RR'*) break ;; esac\n"
    "done\n"
    "printf '%s\\nexit %s\\n' \"$answer\" \"$code\"\n"
    "say memory; cat /sys/fs/cgroup/memory.max 2>/dev/null\n"
    "say cpus; cat /sys/fs/cgroup/cpuset.cpus 2>/dev/null\n"
    "say starved; journalctl -b -q --no-pager -o cat -n 1 -g 'Too many open files' 2>/dev/null\n"
    "say end\n";

int ready_collect(struct client *client, const char *instance, const char *user, int64_t budget,
                  struct narrator *narrator, struct ready_report *ret_report, struct error *err)
{
    const char *const command[] = {"/bin/sh", "-c", script, "box", user, NULL};
    CLEANUP(buffer_reset) struct buffer output = {0};
    CLEANUP(json_freep) json_t *environment = execbody_root_environment();
    struct exec_request request = {
        .instance = instance,
        .command = command,
        .environment = environment,
        .input = -1,
        .output = -1,
        .errors = -1,
        .capture = &output,
        .ceiling = REPORT_CEILING,
        .budget = budget,
        .narrator = narrator,
    };
    int status = 0;

    if (exec_run(client, &request, &status, err) < 0) {
        return -1;
    }
    ready_parse(output.data ? output.data : "", output.length, ret_report);
    return 0;
}

/* From after a section's mark to the next mark, without blank ends; "" where there is no such section. */
static char *section(const char *text, const char *name)
{
    CLEANUP(freep) char *mark = xasprintf("\n" MARK "%s\n", name);
    const char *start = strstr(text, mark);

    if (!start) {
        return xstrdup("");
    }
    start += strlen(mark);
    const char *end = strstr(start - 1, "\n" MARK);
    size_t length = end && end > start ? (size_t)(end - start) : end ? 0 : strlen(start);

    while (length > 0 && strchr(" \n\t", start[length - 1])) {
        length--;
    }
    return xstrndup(start, length);
}

void ready_parse(const char *data, size_t length, struct ready_report *ret_report)
{
    /* NULs would hide what follows them. */
    CLEANUP(freep) char *text = xmalloc(length + 1);

    for (size_t i = 0; i < length; i++) {
        text[i] = data[i] ? data[i] : ' ';
    }
    text[length] = '\0';
    *ret_report = (struct ready_report){
        .complete = strstr(text, "\n" MARK "end\n") != NULL,
        .result = section(text, "result"),
        .status = section(text, "status"),
        .ignored = section(text, "ignored"),
        .log = section(text, "log"),
        .user = section(text, "user"),
        .lands = section(text, "lands"),
        .resolves = section(text, "resolves"),
        .memory = section(text, "memory"),
        .cpus = section(text, "cpus"),
        .starved = section(text, "starved"),
    };
}

/* One line for people, of what a guest wrote: printable, short. */
static char *one_line(const char *text)
{
    CLEANUP(freep) char *clean = text_sanitise(text, strnlen(text, 400));

    for (char *at = clean; (at = strpbrk(at, "\n\t")) != NULL;) {
        *at = ' ';
    }
    return steal(&clean);
}

/* Warnings after which the user-data, or a part of it, did not count; measured with cloud-init 25.1. */
static bool drops_user_data(const char *warning)
{
    static const char *const beginnings[] = {
        "Failed loading yaml blob",
        "Unhandled non-multipart",
        "Unhandled unknown content-type",
        "Failed at merging in cloud config",
        "Unexpected failure parsing userdata",
        "Failed calling handler",
    };

    for (size_t i = 0; i < ARRAY_LENGTH(beginnings); i++) {
        if (text_starts_with(warning, beginnings[i])) {
            return true;
        }
    }
    return false;
}

static const char *first_text(const json_t *array)
{
    return json_string_value(json_array_get(array, 0));
}

/* Each stage repeats what the ones before it said. */
static void add_once(struct argv *list, const char *text)
{
    CLEANUP(freep) char *line = one_line(text);

    if (!argv_contains(list, line)) {
        argv_push(list, line);
    }
}

static char *judge_warnings(const json_t *stages, struct argv *warnings)
{
    const char *name;
    json_t *stage;

    json_object_foreach((json_t *)stages, name, stage) {
        const json_t *recoverable = json_object_get(stage, "recoverable_errors");
        const char *level;
        json_t *lines, *line;
        size_t i;

        json_object_foreach((json_t *)recoverable, level, lines) {
            if (text_equal(level, "DEPRECATED")) {
                continue;
            }
            json_array_foreach(lines, i, line) {
                const char *text = json_string_value(line);

                if (text && drops_user_data(text)) {
                    return one_line(text);
                }
                if (text) {
                    add_once(warnings, text);
                }
            }
        }
    }
    return NULL;
}

/* Every container's inotify instances count against root's of the host: some fourteen boxes use up the 128 of a stock
 * kernel, and then a guest's network is not configured for a reason that nobody sees. */
#define STARVED                                                                                                        \
    "the host's inotify instances are used up by its containers (box setup-host there "                                \
    "raises fs.inotify.max_user_instances)"

bool ready_cloud_applied(const struct ready_report *report, struct argv *warnings, char **ret_reason)
{
    CLEANUP(json_freep) json_t *result = NULL;
    CLEANUP(json_freep) json_t *status = NULL;

    if (text_is_empty(report->result) ||
        json_parse(report->result, strlen(report->result), "result.json", &result, NULL) < 0) {
        *ret_reason = xstrdup(report->complete ? "cloud-init did not run in it" : "it went down during its first boot");
        return false;
    }
    const char *fault = first_text(json_path(result, "v1", "errors", NULL));

    if (fault) {
        CLEANUP(freep) char *line = one_line(fault);

        *ret_reason = xasprintf("cloud-init failed: %s", line);
        return false;
    }
    if (json_parse(report->status, strlen(report->status), "status.json", &status, NULL) == 0) {
        CLEANUP(freep) char *dropped = judge_warnings(json_object_get(status, "v1"), warnings);

        if (dropped) {
            *ret_reason = xasprintf("cloud-init dropped the user-data: %s", dropped);
            return false;
        }
    }
    if (!text_is_empty(report->ignored)) {
        CLEANUP(freep) char *line = one_line(report->ignored);

        *ret_reason = xasprintf("cloud-init dropped the user-data: %s", line);
        return false;
    }
    if (!text_is_empty(report->starved)) {
        argv_push(warnings, "something in it failed: " STARVED);
    }
    return true;
}

/* name:x:1000:1000:gecos:/home/name:/bin/bash */
static bool parse_user(const char *line, const char *user, struct ready_user *ret_user)
{
    const char *fields[7];
    uint64_t uid, gid;
    size_t count = 0;
    CLEANUP(freep) char *copy = xstrdup(line);

    copy[strcspn(copy, "\n")] = '\0';
    for (char *at = copy; at && count < ARRAY_LENGTH(fields);) {
        fields[count++] = at;
        at = strchr(at, ':');
        if (at) {
            *at++ = '\0';
        }
    }
    if (count != ARRAY_LENGTH(fields) || !text_equal(fields[0], user) ||
        !text_parse_number(fields[2], 0, UINT32_MAX - 1, &uid) ||
        !text_parse_number(fields[3], 0, UINT32_MAX - 1, &gid) || fields[5][0] != '/') {
        return false;
    }
    *ret_user = (struct ready_user){.uid = (int64_t)uid, .gid = (int64_t)gid, .home = xstrdup(fields[5])};
    return true;
}

/* An answer that the name does not exist is an answer; silence and a server's error are none. */
static bool resolves(const char *answer)
{
    return text_equal(answer, "exit 0") || text_ends_with(answer, "\nexit 0") || strstr(answer, "not found") ||
           strstr(answer, "any RR");
}

bool ready_usable(const struct ready_report *report, const char *user, struct ready_user *ret_user,
                  char **ret_reason)
{
    struct ready_user found = {0};

    if (!parse_user(report->user, user, &found)) {
        *ret_reason = xasprintf("the guest has no user %s: the user-data of the template must make it", user);
        return false;
    }
    CLEANUP(freep) char *home = found.home;

    if (!text_equal(report->lands, user)) {
        CLEANUP(freep) char *line = one_line(report->lands);

        *ret_reason = xasprintf("a command cannot run in it as %s: %s", user, line);
        return false;
    }
    if (!resolves(report->resolves)) {
        CLEANUP(freep) char *line = one_line(report->resolves);

        *ret_reason = text_is_empty(report->starved) ? xasprintf("it does not resolve names: %s", line)
                                                     : xasprintf("it has no network: %s", STARVED);
        return false;
    }
    *ret_user = found;
    home = NULL;
    return true;
}

void ready_reset(struct ready_report *report)
{
    free(report->result);
    free(report->status);
    free(report->ignored);
    free(report->log);
    free(report->user);
    free(report->lands);
    free(report->resolves);
    free(report->memory);
    free(report->cpus);
    free(report->starved);
    *report = (struct ready_report){0};
}

/* The template's script in the guest: handing it in, hearing it, ending it, and what is marked afterwards.
 * Not for when a mint does that (birth.c), nor for what the script may hold (templatefile.c). */
#include "box/converge.h"

#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/snapshot.h"
#include "box/tag.h"
#include "incus/exec.h"
#include "incus/execbody.h"
#include "incus/instance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LINE_CEILING  400
#define LINES_CEILING 5000 /* a script that never ends its words must not fill a log */
#define BUSY          75   /* EX_TEMPFAIL */
#define CANNOT_RUN    126  /* a shell's words for what it cannot execute, */
#define NOT_FOUND     127  /* and for what is not there */
#define KILL_BUDGET   10000

/* The script comes on stdin and stays where a person finds it. It runs in a session of its own, so that all of it can
 * be ended; what it leaves running does not hold the lock. */
static const char enter_script[] =
    "umask 077\n"
    "mkdir -p /var/lib/box && cd / || exit 1\n"
    "exec 9>/run/box-converge.lock\n"
    "flock -n 9 || exit 75\n"
    "cat >/var/lib/box/converge.sh && chmod 700 /var/lib/box/converge.sh || exit 1\n"
    "umask 022\n"
    "setsid --wait /bin/sh -c 'echo $$ >/run/box-converge.pid; exec /var/lib/box/converge.sh' </dev/null 2>&1 9>&-\n"
    "status=$?\n"
    "rm -f /run/box-converge.pid\n"
    "exit $status\n";

static const char kill_script[] =
    "read -r pid </run/box-converge.pid && kill -s KILL -- \"-$pid\"; rm -f /run/box-converge.pid\n";

/* Who listens to the script. */
struct ear {
    struct narrator *narrator;
    char line[LINE_CEILING];
    size_t used, lines;
    char *last; /* its last words; NULL where it said none */
};

static void ear_reset(struct ear *ear)
{
    free(ear->last);
}

static void end_line(struct ear *ear)
{
    CLEANUP(freep) char *clean = text_sanitise(ear->line, ear->used);

    ear->used = 0;
    for (char *at = clean; (at = strchr(at, '\t')) != NULL;) {
        *at = ' ';
    }
    if (clean[strspn(clean, " ")] == '\0') {
        return;
    }
    ear->lines++;
    if (ear->lines <= LINES_CEILING) {
        narrate_note(ear->narrator, "  | %s", clean);
    } else if (ear->lines == LINES_CEILING + 1) {
        narrate_warn(ear->narrator, "more than %d lines of it: the rest is not shown", LINES_CEILING);
    }
    narrate_progress(ear->narrator, "%s", clean);
    free(ear->last);
    ear->last = steal(&clean);
}

static void hear(void *context, const char *data, size_t length)
{
    struct ear *ear = context;

    for (size_t i = 0; i < length; i++) {
        if (data[i] == '\n' || data[i] == '\r') {
            end_line(ear);
            continue;
        }
        if (ear->used == sizeof(ear->line)) {
            end_line(ear);
        }
        ear->line[ear->used++] = data[i];
    }
}

static int open_script(const struct template *template, int *ret_fd, struct error *err)
{
    CLEANUP(fd_closep) int fd = memfd_create("converge", MFD_CLOEXEC);

    if (fd < 0) {
        return error_set_errno(err, errno, "cannot hold converge.sh");
    }
    if (fd_write_all(fd, template->script, template->script_length, err) < 0) {
        return -1;
    }
    if (lseek(fd, 0, SEEK_SET) < 0) {
        return error_set_errno(err, errno, "cannot hold converge.sh");
    }
    *ret_fd = fd;
    fd = -1;
    return 0;
}

static json_t *make_environment(const struct converge_request *request)
{
    json_t *environment = execbody_root_environment();
    json_t *ours = json_pack("{s:s, s:s, s:s, s:s}", "DEBIAN_FRONTEND", "noninteractive", "BOX_TEMPLATE",
                             request->template->name, "BOX_USER", request->user, "BOX_HOME", request->home);

    if (!ours || json_object_update_new(environment, ours) < 0) {
        abort();
    }
    return environment;
}

/* The daemon kills the first process alone; its children would go on. */
static void kill_rest(struct client *client, const char *instance)
{
    const char *const command[] = {"/bin/sh", "-c", kill_script, NULL};
    const struct exec_request request = {
        .instance = instance, .command = command, .input = -1, .output = -1, .errors = -1, .budget = KILL_BUDGET};
    int status = 0;

    cancel_mask(true);
    (void)exec_run(client, &request, &status, NULL);
    cancel_mask(false);
}

static int judge(int status, const struct ear *ear, struct error *err)
{
    if (status == 0) {
        return 0;
    }
    if (status == BUSY && !ear->last) {
        return error_set(err, ERR_STATE, "converge.sh runs in it already");
    }
    bool missing = status == CANNOT_RUN || status == NOT_FOUND;

    return error_set(err, ERR_STATE, "converge.sh failed (exit status %d)%s%s%s", status, ear->last ? ": " : "",
                     ear->last ? ear->last : "",
                     missing ? "; its interpreter, or a command that it calls, is missing in the box" : "");
}

int converge_run(struct client *client, const struct converge_request *request, struct narrator *narrator,
                 struct error *err)
{
    const char *const command[] = {"/bin/sh", "-c", enter_script, "box", NULL};
    CLEANUP(error_reset) struct error cause = {0};
    CLEANUP(ear_reset) struct ear ear = {.narrator = narrator};
    CLEANUP(json_freep) json_t *environment = make_environment(request);
    CLEANUP(fd_closep) int script = -1;
    int status = 0;

    if (open_script(request->template, &script, err) < 0) {
        return -1;
    }
    const struct exec_request exec = {
        .instance = request->instance,
        .command = command,
        .environment = environment,
        .directory = "/",
        .input = script,
        .output = -1,
        .errors = -1,
        .hear = hear,
        .hear_context = &ear,
        .budget = request->budget,
        .narrator = narrator,
    };

    narrate_step(narrator, "running converge.sh of %s (at most %lld s)", request->template->name,
                 (long long)(request->budget / 1000));
    if (exec_run(client, &exec, &status, &cause) < 0) {
        if (cause.code == ERR_TIMEOUT || cause.code == ERR_INTERRUPTED) {
            kill_rest(client, request->instance);
        }
        if (cause.code == ERR_TIMEOUT) {
            return error_set(err, ERR_TIMEOUT, "converge.sh was not done after %lld s%s%s",
                             (long long)(request->budget / 1000), ear.last ? "; its last words: " : "",
                             ear.last ? ear.last : "");
        }
        return error_move(err, &cause);
    }
    end_line(&ear);
    if (judge(status, &ear, err) < 0) {
        return -1;
    }
    narrate_done(narrator, "%s", "");
    return 0;
}

int converge_remedy(const char *name, const struct template *template, struct error *err)
{
    CLEANUP(template_reset) struct template found = {0};
    const char *slash = strrchr(template->directory, '/');

    if (slash &&
        (template_find(template->name, NULL, &found, NULL) < 0 || !text_equal(found.directory, template->directory))) {
        return error_remedy(err, "run it again: box converge %s --template-dir %.*s", name,
                            (int)(slash - template->directory), template->directory);
    }
    return error_remedy(err, "run it again: box converge %s", name);
}

static int check(const struct box *box, const struct template *template, struct error *err)
{
    if (!template->script) {
        return error_set(err, ERR_STATE, "the template %s has no " TEMPLATE_SCRIPT ": nothing is to be run",
                         template->name);
    }
    if (!text_equal(box->user, template->user)) {
        error_set(err, ERR_STATE, "the template %s makes boxes of the user %s, and %s is of %s", template->name,
                  template->user, box->name, box->user ? box->user : "root");
        return error_remedy(err, "a new one: box new NAME --template %s", template->name);
    }
    if (box->state && !text_equal(box->state, TAG_STATE_UNCONVERGED)) {
        error_set(err, ERR_STATE, "%s is incomplete (%s): " TEMPLATE_SCRIPT " cannot complete it", box->name,
                  box->reason ? box->reason : box->state);
        return error_remedy(err, "box rm %s, then mint it anew", box->name);
    }
    return 0;
}

static int complete(struct client *client, const struct box *box, const struct template *template, struct error *err)
{
    CLEANUP(json_freep)
    json_t *body =
        json_pack("{s:{s:s, s:s, s:s}}", "config", TAG_STATE, "", TAG_REASON, "", TAG_LOGIN, template->login);

    return instance_patch(client, box->name, body, err);
}

int converge_box(struct client *client, const struct box *box, const struct template *template, int64_t budget,
                 struct narrator *narrator, struct error *err)
{
    CLEANUP(freep) char *home = box->home ? xstrdup(box->home) : xasprintf("/home/%s", template->user);
    const struct converge_request request = {
        .instance = box->name, .template = template, .user = template->user, .home = home, .budget = budget};

    if (check(box, template, err) < 0) {
        return -1;
    }
    if (converge_run(client, &request, narrator, err) < 0) {
        error_wrap(err, "%s is kept as it is", box->name);
        return converge_remedy(box->name, template, err);
    }
    if (complete(client, box, template, err) < 0) {
        return -1;
    }
    (void)snapshot_mark(client, box, SNAPSHOT_BOOTSTRAPPED, narrator);
    return 0;
}

/* One claim being tried: its attack, its control, and every step noted for the report.
 * Not for: what an observation means (verdict.c), or running many trials (pool.c). */
#include "drill/trial.h"

#include "base/buffer.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "incus/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RETRY_MS = 2000, RECOVERY_MS = 30000, READY_MS = 3000, SETTLE_MS = 150, SHOWN = 4096 };

/* A run of the instrument in a child of ours; what it writes comes through a pipe. A line that starts with '!' is the
 * child's own: why there is no answer. */
struct trial_probe {
    pid_t pid;
    int output;
    int errors; /* where a listener says that it is ready */
    struct argv words;
    char *place;
};

int trial_client(struct trial *trial, struct client **ret_client, struct error *err)
{
    if (!trial->client && client_open(&trial->client, err) < 0) {
        return -1;
    }
    *ret_client = trial->client;
    return 0;
}

void trial_say(struct trial *trial, enum verdict verdict, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    free(trial->reason);
    trial->reason = xvasprintf(format, arguments);
    va_end(arguments);
    trial->verdict = verdict;
}

void trial_not_judged(struct trial *trial, struct error *err)
{
    trial_say(trial, VERDICT_NOT_JUDGED, "%s", err->message ? err->message : "no reason given");
    error_reset(err);
}

void trial_note(struct trial *trial, const char *role, json_t *value)
{
    json_array_append_new(trial->steps, json_pack("{s:s, s:o}", "role", role, "fact", value));
}

bool trial_pause(const struct trial *trial, int milliseconds)
{
    int left = clock_left(trial->deadline);

    (void)poll(NULL, 0, left < milliseconds ? left : milliseconds);
    return clock_left(trial->deadline) > 0;
}

static void complain(int fd, const struct error *err)
{
    CLEANUP(freep) char *line = xasprintf("\n!%s\n", err->message ? err->message : "no reason given");
    (void)fd_write_all(fd, line, strlen(line), NULL);
}

/* In the child: the instrument on this host, or in the network of the lab's world. */
__attribute__((noreturn)) static void child_here(const struct ground *ground, const struct argv *words, bool world,
                                                 int out, int errors)
{
    CLEANUP(argv_reset) struct argv argv = {0};
    CLEANUP(error_reset) struct error err = {0};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    argv_push(&argv, ground->instrument);
    argv_push_all(&argv, (const char *const *)words->items);
    if (world && setns(ground->world_namespace, CLONE_NEWNET) < 0) {
        (void)error_set_errno(&err, errno, "entering the lab's world");
        complain(out, &err);
        _exit(1);
    }
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(errors, STDERR_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0) {
        _exit(1);
    }
    (void)execv(argv.items[0], argv.items);
    (void)error_set_errno(&err, errno, "running %s", argv.items[0]);
    complain(STDOUT_FILENO, &err);
    _exit(1);
}

/* In the child: the instrument in a box. A TERM to us goes on to it, and what it says then still comes: the stream is
 * handed through, not collected. */
__attribute__((noreturn)) static void child_guest(const struct trial *trial, const char *instance,
                                                  const struct argv *words, int out, int errors)
{
    struct client *client = NULL;
    struct argv argv = {0};
    struct error err = {0};
    int status;

    argv_push(&argv, trial->ground->guest_program);
    argv_push_all(&argv, (const char *const *)words->items);
    cancel_install();
    struct exec_request request = {
        .instance = instance,
        .command = (const char *const *)argv.items,
        .input = -1,
        .output = out,
        .errors = errors,
        .budget = clock_left(trial->deadline),
    };
    if (client_open(&client, &err) < 0 || exec_run(client, &request, &status, &err) < 0) {
        complain(out, &err);
    } else if (status > 2) {
        (void)error_set(&err, ERR_STATE, "the instrument ended with status %d", status);
        complain(out, &err);
    }
    _exit(0);
}

/* Which instance a place means, or NULL for this host and the world. */
static int instance_of(const struct ground *ground, const char *place, const char **ret_instance, struct error *err)
{
    *ret_instance = NULL;
    if (text_equal(place, "host")) {
        return 0;
    }
    if (text_equal(place, "world")) {
        return ground->world_namespace >= 0
                   ? 0
                   : error_set(err, ERR_NOT_FOUND, "nothing outside this host can be asked: there is no lab around it");
    }
    CLEANUP(freep) char *name = xasprintf("%s.name", place);
    *ret_instance = ground_fact(ground, name);
    return *ret_instance ? 0 : error_set(err, ERR_NOT_FOUND, "there is no %s", place);
}

static void probe_free(struct trial_probe *probe)
{
    fd_closep(&probe->output);
    fd_closep(&probe->errors);
    argv_reset(&probe->words);
    free(probe->place);
    free(probe);
}

/* The child's two pipes, or -1 with nothing open. */
static int make_pipes(int output[2], int errors[2], struct error *err)
{
    if (pipe2(output, O_CLOEXEC) < 0) {
        return error_set_errno(err, errno, "making a pipe");
    }
    if (pipe2(errors, O_CLOEXEC) < 0) {
        (void)error_set_errno(err, errno, "making a pipe");
        (void)close(output[0]);
        (void)close(output[1]);
        return -1;
    }
    return 0;
}

static int launch(struct trial *trial, struct trial_probe *probe, const char *instance, struct error *err)
{
    int output[2];
    int errors[2];

    if (make_pipes(output, errors, err) < 0) {
        return -1;
    }
    probe->pid = fork();
    if (probe->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (instance) {
            child_guest(trial, instance, &probe->words, output[1], errors[1]);
        }
        child_here(trial->ground, &probe->words, text_equal(probe->place, "world"), output[1], errors[1]);
    }
    (void)close(output[1]);
    (void)close(errors[1]);
    probe->output = output[0];
    probe->errors = errors[0];
    return probe->pid < 0 ? error_set_errno(err, errno, "starting a process") : 0;
}

int trial_start(struct trial *trial, const char *attack, struct trial_probe **ret_probe, struct error *err)
{
    struct trial_probe *probe = xcalloc(1, sizeof(*probe));
    const char *instance;

    probe->output = -1;
    probe->errors = -1;
    if (ground_expand(trial->ground, attack, &probe->place, &probe->words, err) < 0 ||
        instance_of(trial->ground, probe->place, &instance, err) < 0 || launch(trial, probe, instance, err) < 0) {
        probe_free(probe);
        return -1;
    }
    *ret_probe = probe;
    return 0;
}

/* Reads the line "ready KIND PORT" from the listener's stderr. */
static int await_ready(struct trial *trial, struct trial_probe *probe, struct error *err)
{
    char line[128];
    size_t length = 0;

    while (length < sizeof(line) - 1) {
        struct pollfd wait = {.fd = probe->errors, .events = POLLIN};
        int left = clock_left(trial->deadline);
        if (poll(&wait, 1, left < READY_MS ? left : READY_MS) <= 0) {
            return error_set(err, ERR_TIMEOUT, "the listener did not become ready");
        }
        ssize_t got = read(probe->errors, line + length, sizeof(line) - 1 - length);
        if (got <= 0) {
            return error_set(err, ERR_STATE, "the listener ended before it was ready");
        }
        length += (size_t)got;
        line[length] = '\0';
        char *end = strchr(line, '\n');
        if (end) {
            *end = '\0';
            break;
        }
    }
    const char *port = strrchr(line, ' ');
    uint64_t number;
    if (!text_starts_with(line, "ready ") || !port || !text_parse_number(port + 1, 0, UINT32_MAX, &number)) {
        return error_set(err, ERR_PROTOCOL, "the listener said something else than that it is ready");
    }
    ground_set(trial->ground, "port", port + 1);
    return 0;
}

int trial_listen(struct trial *trial, const char *listener, struct trial_probe **ret_probe, struct error *err)
{
    CLEANUP(error_reset) struct error why = {0};
    struct reply reply = {0};

    if (trial_start(trial, listener, ret_probe, err) < 0) {
        return -1;
    }
    if (await_ready(trial, *ret_probe, &why) == 0) {
        return 0;
    }
    trial_stop(*ret_probe);
    if (trial_finish(trial, "listener", *ret_probe, &reply, NULL) == 0 && reply.why) {
        (void)error_set(&why, ERR_STATE, "%s", reply.why);
    }
    reply_reset(&reply);
    return error_move(err, &why);
}

bool trial_heard(const struct reply *reply, const char *text)
{
    const json_t *event;
    size_t at;

    json_array_foreach(json_object_get(reply->evidence, "events"), at, event)
    {
        const char *data = json_text(event, "data");
        if (data && strstr(data, text)) {
            return true;
        }
    }
    return false;
}

void trial_stop(struct trial_probe *probe)
{
    (void)kill(probe->pid, SIGTERM);
}

/* Reads what the child says until it ends or the trial's budget does. */
static int collect(struct trial *trial, struct trial_probe *probe, struct buffer *text, struct error *err)
{
    for (;;) {
        struct pollfd wait = {.fd = probe->output, .events = POLLIN};
        int ready = poll(&wait, 1, clock_left(trial->deadline));
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        if (ready == 0) {
            return error_set(err, ERR_TIMEOUT, "the budget ran out before the instrument answered");
        }
        ssize_t got = read(probe->output, buffer_reserve(text, 4096), 4096);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return 0;
        }
        text->length += (size_t)got;
        if (text->length > REPLY_CEILING + 1) {
            return error_set(err, ERR_PROTOCOL, "the instrument said more than %d bytes", REPLY_CEILING);
        }
    }
}

static int read_reply(struct trial *trial, struct trial_probe *probe, struct reply *ret_reply, struct error *err)
{
    CLEANUP(buffer_reset) struct buffer text = {0};

    if (collect(trial, probe, &text, err) < 0) {
        return -1;
    }
    const char *complaint = text.length == 0 ? NULL : text.data[0] == '!' ? text.data : strstr(text.data, "\n!");
    if (complaint) {
        complaint = strchr(complaint, '!') + 1;
        CLEANUP(freep) char *why = text_sanitise(complaint, strcspn(complaint, "\n"));
        return error_set(err, ERR_STATE, "%s", why);
    }
    return reply_parse(text.data, text.length, ret_reply, err);
}

int trial_finish(struct trial *trial, const char *role, struct trial_probe *probe, struct reply *ret_reply,
                 struct error *err)
{
    CLEANUP(freep) char *command = argv_join(&probe->words, " ");
    CLEANUP(error_reset) struct error why = {0};
    int result = read_reply(trial, probe, ret_reply, &why);
    json_t *step = json_pack("{s:s, s:s, s:s}", "role", role, "from", probe->place, "command", command);

    (void)kill(probe->pid, SIGKILL);
    while (waitpid(probe->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    if (result == 0) {
        json_object_set_new(step, "reply", reply_to_json(ret_reply));
    } else {
        json_object_set_new(step, "error", json_string(why.message));
        error_move(err, &why);
    }
    json_array_append_new(trial->steps, step);
    probe_free(probe);
    return result;
}

int trial_probe(struct trial *trial, const char *role, const char *attack, struct reply *ret_reply, struct error *err)
{
    struct trial_probe *probe;

    if (trial_start(trial, attack, &probe, err) < 0) {
        return -1;
    }
    return trial_finish(trial, role, probe, ret_reply, err);
}

static json_t *shown(const struct buffer *text)
{
    CLEANUP(freep)
    char *safe = text_sanitise(text->data ? text->data : "", text->length < SHOWN ? text->length : SHOWN);
    return json_string(safe);
}

int trial_command(struct trial *trial, const char *place, const char *const *words, struct process_result *ret_result,
                  struct error *err)
{
    const char *instance;
    struct client *client;
    CLEANUP(argv_reset) struct argv copy = {0};
    CLEANUP(process_result_reset) struct process_result result = {0};
    int64_t begun = clock_now();

    if (instance_of(trial->ground, place, &instance, err) < 0) {
        return -1;
    }
    if (instance) {
        struct exec_request request = {
            .instance = instance,
            .command = words,
            .input = -1,
            .output = -1,
            .errors = -1,
            .capture = &result.output,
            .capture_errors = &result.errors,
            .budget = clock_left(trial->deadline),
        };
        if (trial_client(trial, &client, err) < 0 || exec_run(client, &request, &result.status, err) < 0) {
            return -1;
        }
    } else {
        struct process_options options = {.budget = clock_left(trial->deadline), .mortal = true};
        if (process_run(words, &options, &result, err) < 0) {
            return -1;
        }
    }
    argv_push_all(&copy, words);
    CLEANUP(freep) char *command = argv_join(&copy, " ");
    json_array_append_new(trial->steps,
                          json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:I}", "role", "command", "from", place, "command",
                                    command, "status", result.status, "output", shown(&result.output), "errors",
                                    shown(&result.errors), "ms", (json_int_t)(clock_now() - begun)));
    *ret_result = result;
    result = (struct process_result){0};
    return 0;
}

/* Sides of a declared trial -----------------------------------------------------------------------------------------
 */

struct side {
    struct observation seen;
    struct reply reply;
    struct error error;
    char token[24];
};

static void side_reset(struct side *side)
{
    reply_reset(&side->reply);
    error_reset(&side->error);
}

/* Makes one side's probe. What keeps it from being made is a fact about the trial, and no failure of ours. */
static void observe(struct trial *trial, const char *role, const char *attack, struct side *side)
{
    CLEANUP(freep) char *tokened = NULL;

    side_reset(side);
    side->seen = (struct observation){0};
    if (side->token[0]) {
        ground_set(trial->ground, "token", side->token);
        tokened = xasprintf("%s --token %s", attack, side->token);
    }
    if (trial_probe(trial, role, tokened ? tokened : attack, &side->reply, &side->error) < 0) {
        side->seen.why = side->error.message;
        return;
    }
    side->seen.made = true;
    side->seen.said = side->reply.verdict;
    side->seen.why = side->reply.why;
}

/* A claim that something answers may meet a daemon that is just restarting: what comes back within 30 s was transient,
 * and is told as that. A claim of silence gets no second chance: what arrived once has arrived. */
static void recover(struct trial *trial, struct side *attack)
{
    int64_t begun = clock_now();
    int64_t until = begun + RECOVERY_MS;

    while (clock_now() < until && trial_pause(trial, RETRY_MS)) {
        observe(trial, "again", trial->claim->attack, attack);
        if (attack->seen.made && attack->seen.said == REPLY_REACHABLE) {
            trial_say(trial, VERDICT_HOLDS, "transient: silent at first, answered after %lld s",
                      (long long)(clock_now() - begun + 999) / 1000);
            return;
        }
    }
}

/* Stops the listener and asks it which of the two sides it heard. */
static void hear(struct trial *trial, struct trial_probe *listener, struct side *attack, struct side *control)
{
    CLEANUP(reply_reset) struct reply reply = {0};

    (void)trial_pause(trial, SETTLE_MS);
    trial_stop(listener);
    if (trial_finish(trial, "listener", listener, &reply, NULL) < 0 || reply.verdict == REPLY_ERROR) {
        return;
    }
    attack->seen.listened = control->seen.listened = true;
    attack->seen.arrived = trial_heard(&reply, attack->token);
    control->seen.arrived = trial_heard(&reply, control->token);
}

static void make_tokens(struct side *attack, struct side *control, char shared[16])
{
    uint8_t random[5];

    if (getrandom(random, sizeof(random), 0) != sizeof(random)) {
        abort();
    }
    (void)snprintf(shared, 16, "drl%02x%02x%02x%02x%02x", random[0], random[1], random[2], random[3], random[4]);
    (void)snprintf(attack->token, sizeof(attack->token), "%sa", shared);
    (void)snprintf(control->token, sizeof(control->token), "%sc", shared);
}

static void run_declared(struct trial *trial)
{
    const struct claim *claim = trial->claim;
    CLEANUP(side_reset) struct side attack = {0};
    CLEANUP(side_reset) struct side control = {0};
    struct trial_probe *listener = NULL;
    struct error err = {0};

    if (claim->listener) {
        char shared[16];
        make_tokens(&attack, &control, shared);
        CLEANUP(freep)
        char *listen =
            xasprintf("%s --token %s --count 0 --timeout %d", claim->listener, shared, clock_left(trial->deadline));
        if (trial_listen(trial, listen, &listener, &err) < 0) {
            (void)error_wrap(&err, "listening at the far end");
            trial_not_judged(trial, &err);
            return;
        }
    }
    observe(trial, "attack", claim->attack, &attack);
    if (claim->control) {
        observe(trial, "control", claim->control, &control);
    }
    if (listener) {
        hear(trial, listener, &attack, &control);
    }
    free(trial->reason);
    trial->verdict = verdict_judge(claim->expect, &attack.seen, claim->control ? &control.seen : NULL, &trial->reason);
    if (trial->verdict == VERDICT_BROKEN && claim->expect == EXPECT_REACHABLE) {
        recover(trial, &attack);
    }
}

json_t *trial_run(const struct claim *claim, struct ground *ground, int budget)
{
    struct trial trial = {
        .claim = claim,
        .ground = ground,
        .deadline = clock_deadline(budget),
        .steps = json_array(),
    };

    if (claim->run) {
        claim->run(&trial);
    } else {
        run_declared(&trial);
    }
    client_close(trial.client);
    json_t *result = json_pack("{s:s, s:s, s:o}", "verdict", verdict_name(trial.verdict), "reason",
                               trial.reason ? trial.reason : "the trial came to no verdict", "steps", trial.steps);
    free(trial.reason);
    return result;
}

/* A command in a guest: one session, its streams, its signals and its end, in one poll loop.
 * Not for: frames (websocket.c), the terminal's modes (terminal.c), writing without blocking (outlet.c). */
#include "incus/exec.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "incus/call.h"
#include "incus/execbody.h"
#include "incus/operation.h"
#include "incus/outlet.h"
#include "incus/terminal.h"
#include "incus/websocket.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define CEILING       ((size_t)1024 * 1024)
#define INPUT_BACKLOG ((size_t)256 * 1024) /* bytes of input on their way, after which no more is read */
#define GRACE         1000                 /* milliseconds for the streams' ends after the command's */

enum { CONTROL, INPUT, OUTPUT, ERRORS, STREAMS };

static const char *const stream_keys[STREAMS] = {"control", "0", "1", "2"};

struct session {
    struct client *client;
    const struct exec_request *request;
    struct operation *operation;
    struct http_transfer *wait;
    struct terminal *terminal;          /* interactive sessions alone */
    struct websocket *streams[STREAMS]; /* interactive ones have CONTROL and INPUT, and INPUT carries both ways */
    struct outlet outlets[STREAMS];     /* for the streams that bring output */
    bool input_open;
    bool signalled; /* the signal that came was handed on */
    bool done;      /* the command ended: `status` holds */
    int status;
    int64_t last_news; /* when the command ended, or output came after that */
    char chunk[64 * 1024];
};

static void session_reset(struct session *session)
{
    terminal_restore(session->terminal);
    http_abandon(session->wait);
    for (size_t i = 0; i < STREAMS; i++) {
        websocket_free(session->streams[i]);
    }
    operation_free(session->operation);
}

static void free_session(struct session **session)
{
    session_reset(*session);
    free(*session);
}

static void send_control(struct session *session, json_t *message)
{
    CLEANUP(freep) char *text = json_write(message, JSON_COMPACT);
    json_decref(message);
    websocket_send_text(session->streams[CONTROL], text);
}

static void send_signal(struct session *session, int number)
{
    send_control(session, json_pack("{s:s, s:i}", "command", "signal", "signal", number));
}

static void send_size(struct session *session)
{
    unsigned columns, rows;
    if (!terminal_size(session->request->input, &columns, &rows)) {
        return;
    }
    CLEANUP(freep) char *width = xasprintf("%u", columns);
    CLEANUP(freep) char *height = xasprintf("%u", rows);
    send_control(session, json_pack("{s:s, s:{s:s, s:s}}", "command", "window-resize", "args", "width", width, "height",
                                    height));
}

/* The command must not outlive a session that is given up: the signal, and the daemon kills it too when control closes.
 */
static void kill_command(struct session *session)
{
    send_signal(session, SIGKILL);
    (void)websocket_service(session->streams[CONTROL], NULL);
}

static int start(struct session *session, struct error *err)
{
    unsigned columns = 0, rows = 0;
    if (session->request->interactive) {
        (void)terminal_size(session->request->input, &columns, &rows);
    }
    CLEANUP(json_freep) json_t *body = NULL;
    if (execbody_make(session->request, columns, rows, &body, err) < 0) {
        return -1;
    }
    CLEANUP(freep) char *path = call_path("instances", session->request->instance, "/exec");
    return operation_start(session->client, "POST", path, body, &session->operation, err);
}

/* All handshakes leave before any answer is read: the daemon waits for the last of them. (Not for control, without a
 * pty: hence it goes first, lest a short command end before we can signal it.) */
static int connect_streams(struct session *session, struct error *err)
{
    const json_t *fds = json_object_get(operation_metadata(session->operation), "fds");
    for (size_t i = 0; i < STREAMS; i++) {
        if (session->request->interactive && (i == OUTPUT || i == ERRORS)) {
            continue;
        }
        const char *secret = json_text(fds, stream_keys[i]);
        if (!secret || !operation_path(session->operation)) {
            return error_set(err, ERR_PROTOCOL, "Incus started the command without a stream %s", stream_keys[i]);
        }
        CLEANUP(freep) char *encoded = text_url_encode(secret);
        CLEANUP(freep) char *path = xasprintf("%s/websocket?secret=%s", operation_path(session->operation), encoded);
        CLEANUP(freep) char *target = call_target(session->client, path);
        if (websocket_open(client_socket(session->client), target, &session->streams[i], err) < 0) {
            return -1;
        }
    }
    return operation_wait_begin(session->operation, &session->wait, err);
}

static void prepare_ends(struct session *session)
{
    const struct exec_request *request = session->request;
    size_t ceiling = request->ceiling ? request->ceiling : CEILING;
    for (size_t i = 0; i < STREAMS; i++) {
        session->outlets[i] = outlet_make(-1, NULL, 0);
    }
    session->outlets[request->interactive ? INPUT : OUTPUT] = outlet_make(request->output, request->capture, ceiling);
    session->outlets[request->interactive ? INPUT : OUTPUT].hear = request->hear;
    session->outlets[request->interactive ? INPUT : OUTPUT].hear_context = request->hear_context;
    session->outlets[ERRORS] = outlet_make(request->errors, request->capture_errors, ceiling);
    session->input_open = request->input >= 0;
    if (!session->input_open) {
        websocket_send_text(session->streams[INPUT], "");
    }
}

/* 126 and 127 have no status in the operation, but words. */
static int status_of(const struct error *failure)
{
    if (failure->message && strstr(failure->message, "Command not found")) {
        return 127;
    }
    if (failure->message && strstr(failure->message, "Command not executable")) {
        return 126;
    }
    return -1;
}

static int take_result(struct session *session, struct error *err)
{
    CLEANUP(json_freep) json_t *metadata = NULL;
    CLEANUP(error_reset) struct error failure = {0};
    int64_t status;
    if (operation_wait_end(session->operation, session->wait, &metadata, &failure) < 0) {
        status = status_of(&failure);
        if (status < 0) {
            return error_move(err, &failure);
        }
    } else {
        status = json_number(metadata, "return", -1);
        if (status < 0 || status > 255) {
            return error_set(err, ERR_PROTOCOL, "Incus ended the command without saying its exit status");
        }
    }
    session->status = (int)status;
    session->done = true;
    session->last_news = clock_now();
    return 0;
}

static void read_input(struct session *session)
{
    ssize_t got = read(session->request->input, session->chunk, sizeof(session->chunk));
    if (got > 0) {
        websocket_send(session->streams[INPUT], session->chunk, (size_t)got);
    } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
        session->input_open = false;
        websocket_send_text(session->streams[INPUT], "");
    }
}

/* Control brings nothing; and a command that is over already took its control with it, which is no fault. */
static void pump_control(struct session *session)
{
    if (websocket_service(session->streams[CONTROL], NULL) < 0) {
        websocket_close(session->streams[CONTROL]);
    }
    struct buffer *incoming = websocket_incoming(session->streams[CONTROL]);
    buffer_consume(incoming, incoming->length);
}

/* Moves what came on a stream to where it goes, for as long as both give and take. */
static int pump(struct session *session, size_t index, struct error *err)
{
    struct websocket *stream = session->streams[index];
    struct buffer *incoming = websocket_incoming(stream);
    struct outlet *outlet = &session->outlets[index];
    size_t left;
    do {
        if (websocket_service(stream, err) < 0) {
            return -1;
        }
        left = incoming->length;
        if (outlet_take(outlet, incoming, err) < 0) {
            return -1;
        }
        if (incoming->length != left && session->done) {
            session->last_news = clock_now();
        }
    } while (websocket_stalled(stream) && incoming->length != left);
    if (outlet->broken) {
        websocket_close(stream); /* which the guest's command hears as SIGPIPE */
    }
    /* A pty's stream goes both ways: as long as our half is open the daemon waits for it. */
    if (session->request->interactive && index == INPUT && websocket_ended(stream) && !incoming->length) {
        websocket_close(stream);
        session->input_open = false;
    }
    return 0;
}

static bool streams_ended(const struct session *session)
{
    for (size_t i = session->request->interactive ? INPUT : OUTPUT; i < STREAMS; i++) {
        struct websocket *stream = session->streams[i];
        if (stream && (!websocket_ended(stream) || websocket_incoming(stream)->length)) {
            return false;
        }
    }
    return true;
}

/* Output that nobody has taken yet is no reason to hurry: its reader is slow, not gone. */
static bool output_waits(const struct session *session)
{
    for (size_t i = INPUT; i < STREAMS; i++) {
        if (session->streams[i] && websocket_incoming(session->streams[i])->length) {
            return true;
        }
    }
    return false;
}

/* What one round polls, and where each answer is found again. */
struct round {
    struct pollfd fds[12];
    size_t count;
    size_t input, terminal, cancel, streams[STREAMS]; /* index, or SIZE_MAX */
};

static size_t add(struct round *round, int fd, short events)
{
    if (fd < 0 || !events) {
        return SIZE_MAX;
    }
    round->fds[round->count] = (struct pollfd){.fd = fd, .events = events};
    return round->count++;
}

static bool answered(const struct round *round, size_t index)
{
    return index != SIZE_MAX && round->fds[index].revents;
}

static void plan(const struct session *session, struct round *round)
{
    *round = (struct round){0};
    bool takes_input = session->input_open && !session->done && websocket_fd(session->streams[INPUT]) >= 0 &&
                       websocket_backlog(session->streams[INPUT]) < INPUT_BACKLOG;
    round->input = add(round, takes_input ? session->request->input : -1, POLLIN);
    round->terminal = add(round, session->terminal ? terminal_fd(session->terminal) : -1, POLLIN);
    round->cancel = add(round, session->signalled ? -1 : cancel_fd(), POLLIN);
    for (size_t i = 0; i < STREAMS; i++) {
        struct websocket *stream = session->streams[i];
        round->streams[i] = stream ? add(round, websocket_fd(stream), websocket_events(stream)) : SIZE_MAX;
        if (!stream) {
            continue;
        }
        if (websocket_incoming(stream)->length) {
            (void)add(round, session->outlets[i].fd, POLLOUT);
        }
    }
}

static int round_timeout(const struct session *session, int64_t deadline)
{
    int timeout = clock_left(deadline);
    if (session->done && !output_waits(session)) {
        int grace = clock_left(session->last_news + GRACE);
        timeout = timeout < 0 || grace < timeout ? grace : timeout;
    }
    if (session->request->narrator && (timeout < 0 || timeout > NARRATE_TICK_MS)) {
        timeout = NARRATE_TICK_MS;
    }
    return timeout;
}

/* A person's signal goes to the guest's command, and its end is ours; a program's call is over. */
static int on_cancel(struct session *session, struct error *err)
{
    if (session->request->interactive || session->request->capture || session->request->hear) {
        kill_command(session);
        return error_set(err, ERR_INTERRUPTED, "interrupted");
    }
    session->signalled = true;
    send_signal(session, cancel_signal());
    return 0;
}

/* A stream that has nothing to say is not asked: that took most of the system calls of a long output. */
static bool concerned(const struct session *session, const struct round *round, size_t index)
{
    struct websocket *stream = session->streams[index];
    return stream && (answered(round, round->streams[index]) || websocket_incoming(stream)->length ||
                      websocket_backlog(stream));
}

static int step(struct session *session, int64_t deadline, struct error *err)
{
    struct round round;
    plan(session, &round);
    if (http_step(client_http(session->client), round.fds, round.count, round_timeout(session, deadline), err) < 0) {
        return -1;
    }
    if (!session->signalled && cancel_requested() && on_cancel(session, err) < 0) {
        return -1;
    }
    if (answered(&round, round.terminal)) {
        terminal_service(session->terminal);
        send_size(session);
    }
    if (answered(&round, round.input)) {
        read_input(session);
    }
    for (size_t i = INPUT; i < STREAMS; i++) {
        if (concerned(session, &round, i) && pump(session, i, err) < 0) {
            return -1;
        }
    }
    if (concerned(session, &round, CONTROL)) {
        pump_control(session);
    }
    return 0;
}

static int serve(struct session *session, struct error *err)
{
    const struct exec_request *request = session->request;
    int64_t deadline = clock_deadline(request->budget > 0 ? request->budget : -1);
    int64_t next_tick = clock_now() + NARRATE_TICK_MS;
    for (;;) {
        if (step(session, deadline, err) < 0) {
            return -1;
        }
        if (!session->done && http_ended(session->wait) && take_result(session, err) < 0) {
            return -1;
        }
        if (session->done) {
            bool late = !output_waits(session) && clock_left(session->last_news + GRACE) == 0;
            if (streams_ended(session) || late) {
                return 0;
            }
        }
        if (clock_left(deadline) == 0) {
            kill_command(session);
            return error_set(err, ERR_TIMEOUT, "%s did not end within %lld s and was killed", request->command[0],
                             (long long)((request->budget + 500) / 1000));
        }
        if (request->narrator && clock_now() >= next_tick) {
            narrate_tick(request->narrator);
            next_tick = clock_now() + NARRATE_TICK_MS;
        }
    }
}

static int run(struct session *session, int *ret_status, struct error *err)
{
    if (cancel_check(err) < 0) {
        return -1;
    }
    /* Raw mode comes first: what is typed while the command starts belongs to it. */
    if (session->request->interactive && terminal_enter(session->request->input, &session->terminal, err) < 0) {
        return -1;
    }
    if (start(session, err) < 0 || connect_streams(session, err) < 0) {
        return -1;
    }
    prepare_ends(session);
    if (serve(session, err) < 0) {
        return -1;
    }
    *ret_status = session->status;
    return 0;
}

int exec_run(struct client *client, const struct exec_request *request, int *ret_status, struct error *err)
{
    CLEANUP(free_session) struct session *session = xcalloc(1, sizeof(*session));
    session->client = client;
    session->request = request;
    /* A reader that goes away must be an errno here, whatever the program made of SIGPIPE. */
    struct sigaction ignore = {.sa_handler = SIG_IGN}, former;
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, &former);
    /* Without a handler TERM would end us with the terminal still raw. */
    bool guard = request->interactive && cancel_fd() < 0;
    if (guard) {
        cancel_install();
    }
    int result = run(session, ret_status, err);
    session_reset(session);
    *session = (struct session){0};
    if (guard) {
        cancel_uninstall();
    }
    sigaction(SIGPIPE, &former, NULL);
    return result;
}

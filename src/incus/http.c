/* HTTP/1.1 over a unix socket by libcurl's multi interface, with one poll() of our own, so that Ctrl-C, ticks and
 * budgets reach every wait. Not for: what the bodies mean; see envelope.c and call.c. */
#include "incus/http.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "incus/curl.h"
#include "incus/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Few syscalls a megabyte: libcurl's own maximum for uploads, and what it reads at a time. */
#define UPLOAD_BUFFER   (2L * 1024 * 1024)
#define DOWNLOAD_BUFFER (512L * 1024)
#define ANSWER_GRACE_MS 10000

struct http {
    struct curl curl;
    CURLM *multi;
    char *socket_path;
    bool answered; /* the daemon has said something on some connection */
};

/* A source as a transfer reads it. */
struct feed {
    struct http_transfer *transfer;
    struct http_source source;
    off_t start; /* where the descriptor stood; -1 where it cannot seek */
    int64_t left;
};

struct http_transfer {
    struct http *http;
    CURL *easy;
    struct curl_slist *headers;
    curl_mime *mime;
    struct feed *feeds;
    int sink; /* or -1 */
    size_t ceiling;
    int64_t total; /* bytes that will be sent; 0 where none is streamed */
    int64_t moved; /* bytes streamed so far, either way */
    bool ended;
    CURLcode code;
    struct error failure; /* what a callback of ours ran into */
    struct http_answer answer;
};

void http_answer_reset(struct http_answer *answer)
{
    buffer_reset(&answer->body);
    free(answer->etag);
    free(answer->kind);
    *answer = (struct http_answer){0};
}

int http_open(const char *socket_path, struct http **ret_http, struct error *err)
{
    struct curl curl;
    if (curl_load(&curl, err) < 0) {
        return -1;
    }
    CURLM *multi = curl.multi_init();
    if (!multi) {
        return error_set(err, ERR_SYSTEM, "libcurl does not start");
    }
    struct http *http = xcalloc(1, sizeof(*http));
    *http = (struct http){.curl = curl, .multi = multi, .socket_path = xstrdup(socket_path)};
    *ret_http = http;
    return 0;
}

void http_close(struct http *http)
{
    if (!http) {
        return;
    }
    http->curl.multi_cleanup(http->multi);
    free(http->socket_path);
    free(http);
}

/* A program that is run later must not inherit the connection. */
static int on_socket(void *context, curl_socket_t fd, curlsocktype purpose)
{
    return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? CURL_SOCKOPT_ERROR : CURL_SOCKOPT_OK;
}

static size_t on_read(char *data, size_t size, size_t count, void *context)
{
    struct feed *feed = context;
    size_t room = size * count;
    if ((int64_t)room > feed->left) {
        room = (size_t)feed->left;
    }
    if (room == 0) {
        return 0;
    }
    ssize_t got;
    do {
        got = read(feed->source.fd, data, room);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        if (got < 0) {
            error_set_errno(&feed->transfer->failure, errno, "cannot read what should be sent");
        } else {
            error_set(&feed->transfer->failure, ERR_SYSTEM, "what should be sent ended %lld bytes early",
                      (long long)feed->left);
        }
        return CURL_READFUNC_ABORT;
    }
    feed->left -= got;
    feed->transfer->moved += got;
    return (size_t)got;
}

/* libcurl rewinds where a kept connection turned out to be dead. */
static int on_seek(void *context, curl_off_t offset, int origin)
{
    struct feed *feed = context;
    if (origin != SEEK_SET || feed->start < 0 || lseek(feed->source.fd, feed->start + offset, SEEK_SET) < 0) {
        return CURL_SEEKFUNC_CANTSEEK;
    }
    feed->left = feed->source.length - offset;
    feed->transfer->moved = offset;
    return CURL_SEEKFUNC_OK;
}

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    struct http_transfer *transfer = context;
    size_t length = size * count;
    long status = 0;
    transfer->http->curl.easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    bool is_file = !transfer->answer.kind || text_equal(transfer->answer.kind, "file");
    if (transfer->sink >= 0 && status / 100 == 2 && is_file) {
        transfer->moved += (int64_t)length;
        return fd_write_all(transfer->sink, data, length, &transfer->failure) < 0 ? 0 : length;
    }
    if (length > transfer->ceiling - transfer->answer.body.length) {
        error_set(&transfer->failure, ERR_SYSTEM, "the answer of Incus is larger than %zu bytes", transfer->ceiling);
        return 0;
    }
    buffer_append(&transfer->answer.body, data, length);
    return length;
}

static void keep_header(const char *line, size_t length, const char *name, char **value)
{
    size_t skip = strlen(name);
    if (length < skip || strncasecmp(line, name, skip) != 0) {
        return;
    }
    while (skip < length && (line[skip] == ' ' || line[skip] == '\t')) {
        skip++;
    }
    while (length > skip && (line[length - 1] == '\r' || line[length - 1] == '\n' || line[length - 1] == ' ')) {
        length--;
    }
    free(*value);
    *value = xstrndup(line + skip, length - skip);
}

static size_t on_header(char *line, size_t size, size_t count, void *context)
{
    struct http_transfer *transfer = context;
    transfer->http->answered = true;
    keep_header(line, size * count, "ETag:", &transfer->answer.etag);
    keep_header(line, size * count, "X-Incus-type:", &transfer->answer.kind);
    return size * count;
}

void http_abandon(struct http_transfer *transfer)
{
    if (!transfer) {
        return;
    }
    const struct curl *curl = &transfer->http->curl;
    if (transfer->easy) {
        curl->multi_remove_handle(transfer->http->multi, transfer->easy);
        curl->easy_cleanup(transfer->easy);
    }
    curl->mime_free(transfer->mime);
    curl->slist_free_all(transfer->headers);
    error_reset(&transfer->failure);
    http_answer_reset(&transfer->answer);
    free(transfer->feeds);
    free(transfer);
}

static struct feed *add_feed(struct http_transfer *transfer, size_t index, const struct http_source *source)
{
    struct feed *feed = &transfer->feeds[index];
    *feed = (struct feed){
        .transfer = transfer, .source = *source, .start = lseek(source->fd, 0, SEEK_CUR), .left = source->length};
    transfer->total += source->length;
    return feed;
}

/* Everything on a handle that is the same for each request: no proxy, no redirect, no protocol but HTTP, no name. */
static void set_transport(struct http_transfer *transfer)
{
    const struct curl *curl = &transfer->http->curl;
    CURL *easy = transfer->easy;
    curl->easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, transfer->http->socket_path);
    curl->easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
    curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(easy, CURLOPT_PROXY, "");
    curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl->easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl->easy_setopt(easy, CURLOPT_NOPROGRESS, 1L);
    curl->easy_setopt(easy, CURLOPT_BUFFERSIZE, transfer->sink >= 0 ? DOWNLOAD_BUFFER : 16L * 1024);
    curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl->easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl->easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    curl->easy_setopt(easy, CURLOPT_PRIVATE, transfer);
}

static void add_header(struct http_transfer *transfer, const char *header)
{
    struct curl_slist *longer = transfer->http->curl.slist_append(transfer->headers, header);
    if (!longer) {
        abort();
    }
    transfer->headers = longer;
}

static void set_parts(struct http_transfer *transfer, const struct http_request *request)
{
    const struct curl *curl = &transfer->http->curl;
    transfer->feeds = xcalloc(request->part_count, sizeof(struct feed));
    transfer->mime = curl->mime_init(transfer->easy);
    for (size_t i = 0; i < request->part_count; i++) {
        const struct http_part *part = &request->parts[i];
        curl_mimepart *made = curl->mime_addpart(transfer->mime);
        curl->mime_name(made, part->name);
        curl->mime_filename(made, part->filename);
        curl->mime_type(made, "application/octet-stream");
        curl->mime_data_cb(made, part->source.length, on_read, on_seek, NULL, add_feed(transfer, i, &part->source));
    }
    curl->easy_setopt(transfer->easy, CURLOPT_MIMEPOST, transfer->mime);
}

static void set_body(struct http_transfer *transfer, const struct http_request *request)
{
    const struct curl *curl = &transfer->http->curl;
    CURL *easy = transfer->easy;
    if (request->parts) {
        set_parts(transfer, request);
    } else if (request->source) {
        transfer->feeds = xcalloc(1, sizeof(struct feed));
        struct feed *feed = add_feed(transfer, 0, request->source);
        curl->easy_setopt(easy, CURLOPT_POST, 1L);
        curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->source->length);
        curl->easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
        curl->easy_setopt(easy, CURLOPT_READDATA, feed);
        curl->easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
        curl->easy_setopt(easy, CURLOPT_SEEKDATA, feed);
    } else if (request->data || !text_equal(request->method, "GET")) {
        /* Set even where it is empty: POST and PUT without a body still need their Content-Length. */
        curl->easy_setopt(easy, CURLOPT_POST, 1L);
        curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->length);
        curl->easy_setopt(easy, CURLOPT_POSTFIELDS, request->data ? request->data : "");
        add_header(transfer, "Expect:"); /* a round trip that only a large body is worth */
    }
    if (transfer->total) {
        curl->easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER);
    }
    curl->easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    /* Where a kept connection turns out to be dead, libcurl sends the request again by itself. A question may be asked
     * twice, an act must not happen twice: on a fresh connection libcurl never repeats. */
    if (!text_equal(request->method, "GET")) {
        curl->easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    }
}

static int advance(struct http *http, struct error *err)
{
    int running = 0, left = 0;
    CURLMcode code = http->curl.multi_perform(http->multi, &running);
    if (code != CURLM_OK) {
        return error_set(err, ERR_SYSTEM, "libcurl failed: %s", http->curl.multi_strerror(code));
    }
    for (CURLMsg *message; (message = http->curl.multi_info_read(http->multi, &left));) {
        if (message->msg == CURLMSG_DONE) {
            CURLcode result = message->data.result;
            char *private = NULL;
            http->curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
            struct http_transfer *transfer = (struct http_transfer *)(void *)private;
            transfer->code = result;
            transfer->ended = true;
        }
    }
    return 0;
}

int http_begin(struct http *http, const struct http_request *request, struct http_transfer **ret_transfer,
               struct error *err)
{
    CLEANUP(http_abandonp) struct http_transfer *transfer = xcalloc(1, sizeof(*transfer));
    transfer->http = http;
    transfer->sink = request->sink ? *request->sink : -1;
    transfer->ceiling = request->ceiling;
    transfer->easy = http->curl.easy_init();
    if (!transfer->easy) {
        return error_set(err, ERR_SYSTEM, "libcurl does not start");
    }
    set_transport(transfer);
    CLEANUP(freep) char *url = xasprintf("http://incus%s", request->target);
    http->curl.easy_setopt(transfer->easy, CURLOPT_URL, url);
    set_body(transfer, request);
    for (const char *const *header = request->headers; header && *header; header++) {
        add_header(transfer, *header);
    }
    http->curl.easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers);
    CURLMcode code = http->curl.multi_add_handle(http->multi, transfer->easy);
    if (code != CURLM_OK) {
        return error_set(err, ERR_SYSTEM, "libcurl failed: %s", http->curl.multi_strerror(code));
    }
    /* The first step connects and sends, so that who begins several has them all on their way. */
    if (advance(http, err) < 0) {
        return -1;
    }
    *ret_transfer = steal(&transfer);
    return 0;
}

bool http_ended(const struct http_transfer *transfer)
{
    return transfer->ended;
}

static int shorter(int a, int64_t b)
{
    if (a < 0) {
        return b > INT_MAX ? INT_MAX : (int)b;
    }
    return b >= 0 && b < a ? (int)b : a;
}

/* poll() and not libcurl's own wait: that one hides POLLHUP and POLLERR of descriptors which are not its own. */
int http_step(struct http *http, struct pollfd *extra, size_t count, int timeout, struct error *err)
{
    fd_set reads, writes, excepts;
    FD_ZERO(&reads);
    FD_ZERO(&writes);
    FD_ZERO(&excepts);
    int highest = -1;
    long wanted = -1;
    http->curl.multi_fdset(http->multi, &reads, &writes, &excepts, &highest);
    http->curl.multi_timeout(http->multi, &wanted);
    struct pollfd fds[32];
    size_t used = 0;
    for (; used < count && used < 16; used++) {
        fds[used] = extra[used];
    }
    for (int fd = 0; fd <= highest && used < ARRAY_LENGTH(fds); fd++) {
        short events = (short)((FD_ISSET(fd, &reads) ? POLLIN : 0) | (FD_ISSET(fd, &writes) ? POLLOUT : 0));
        if (events) {
            fds[used++] = (struct pollfd){.fd = fd, .events = events};
        }
    }
    if (wanted >= 0) {
        timeout = shorter(timeout, wanted);
    }
    int ready = poll(fds, used, timeout);
    if (ready < 0 && errno != EINTR) {
        return error_set_errno(err, errno, "cannot wait for the Incus daemon");
    }
    for (size_t i = 0; i < count; i++) {
        extra[i].revents = ready > 0 && i < 16 ? fds[i].revents : 0;
    }
    return advance(http, err);
}

static int lost(const struct http *http, CURLcode code, struct error *err)
{
    CLEANUP(fd_closep) int probe = -1;
    switch (code) {
    case CURLE_COULDNT_CONNECT:
        /* libcurl has no words for why; a connection of our own has. (One handed to libcurl would do without, but the
         * libcurl of Debian 12 connects even a socket that is said to be connected already.) */
        if (daemon_connect(http->socket_path, &probe, err) < 0) {
            return -1;
        }
        return error_set(err, ERR_NO_DAEMON, "the Incus daemon accepts no connection at %s: it has too many waiting",
                         http->socket_path);
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
        error_set(err, ERR_NO_DAEMON, "the Incus daemon closed the connection before its answer was complete (%s)",
                  http->curl.easy_strerror(code));
        return error_remedy(err, "see whether the daemon still runs and what its log says");
    default:
        return error_set(err, ERR_PROTOCOL, "the answer of Incus is broken: %s", http->curl.easy_strerror(code));
    }
}

int http_result(struct http_transfer *transfer, struct http_answer *ret_answer, struct error *err)
{
    struct http *http = transfer->http;
    long status = 0;
    http->curl.easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    transfer->answer.status = (int)status;
    /* A refusal may come while a body is still being sent, and the daemon hangs up after it: that is an answer. */
    bool refused = transfer->code == CURLE_SEND_ERROR && status >= 400 && transfer->answer.body.length;
    if (transfer->code != CURLE_OK && !refused) {
        if (transfer->failure.code) {
            return error_move(err, &transfer->failure);
        }
        return lost(http, transfer->code, err);
    }
    *ret_answer = transfer->answer;
    transfer->answer = (struct http_answer){0};
    return 0;
}

static void describe_bytes(char *text, size_t size, double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    size_t unit = 0;
    for (; bytes >= 1000 && unit + 1 < ARRAY_LENGTH(units); unit++) {
        bytes /= 1000;
    }
    snprintf(text, size, "%.*f %s", unit && bytes < 10 ? 1 : 0, bytes, units[unit]);
}

static void tell_progress(const struct http_transfer *transfer, int64_t elapsed, struct narrator *narrator)
{
    if (!narrator || !transfer->moved || elapsed <= 0) {
        return;
    }
    curl_off_t total = transfer->total;
    if (transfer->sink >= 0) {
        transfer->http->curl.easy_getinfo(transfer->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &total);
    }
    char moved[32], rate[32];
    describe_bytes(moved, sizeof(moved), (double)transfer->moved);
    describe_bytes(rate, sizeof(rate), (double)transfer->moved * 1000 / (double)elapsed);
    if (total > 0) {
        narrate_progress(narrator, "%d%%, %s (%s/s)", (int)(100.0 * (double)transfer->moved / (double)total), moved,
                         rate);
    } else {
        narrate_progress(narrator, "%s (%s/s)", moved, rate);
    }
}

static int out_of_time(const struct http *http, int64_t waited, const char *why, struct error *err)
{
    if (!http->answered) {
        return daemon_silent(http->socket_path, waited, err);
    }
    error_set(err, ERR_TIMEOUT, "%s %lld s", why, (long long)((waited + 500) / 1000));
    return error_remedy(err, "see what the daemon is busy with: incus operation list");
}

/* Whether Ctrl-C ends an exchange. An act without a long body is answered at once, and its answer is worth the moment:
 * who turns away from it does not learn what the daemon has begun, and cannot undo it. */
static int give_up(const struct http_request *request, const struct http_patience *patience, int64_t *deadline,
                   struct error *err)
{
    bool act = !text_equal(request->method, "GET") && !request->source && request->part_count == 0;

    if (patience->deaf || !cancel_requested()) {
        return 0;
    }
    if (act && *deadline < 0) {
        *deadline = clock_deadline(ANSWER_GRACE_MS);
    }
    return act && clock_left(*deadline) != 0 ? 0 : cancel_check(err);
}

int http_exchange(struct http *http, const struct http_request *request, const struct http_patience *patience,
                  struct http_answer *ret_answer, struct error *err)
{
    int64_t grace = -1;

    if (!patience->deaf && cancel_check(err) < 0) {
        return -1;
    }
    CLEANUP(http_abandonp) struct http_transfer *transfer = NULL;
    if (http_begin(http, request, &transfer, err) < 0) {
        return -1;
    }
    int64_t start = clock_now(), last_byte = start, moved = 0, next_tick = start + NARRATE_TICK_MS;
    while (!transfer->ended) {
        int64_t now = clock_now();
        int timeout = patience->narrator ? shorter(-1, next_tick > now ? next_tick - now : 0) : -1;
        if (patience->budget > 0) {
            timeout = shorter(timeout, start + patience->budget > now ? start + patience->budget - now : 0);
        }
        if (patience->idle > 0) {
            timeout = shorter(timeout, last_byte + patience->idle > now ? last_byte + patience->idle - now : 0);
        }
        if (grace >= 0) {
            timeout = shorter(timeout, clock_left(grace));
        }
        struct pollfd cancel = {.fd = patience->deaf || grace >= 0 ? -1 : cancel_fd(), .events = POLLIN};
        if (http_step(http, &cancel, 1, timeout, err) < 0) {
            return -1;
        }
        if (transfer->ended) {
            break;
        }
        if (give_up(request, patience, &grace, err) < 0) {
            return -1;
        }
        now = clock_now();
        int64_t seen = transfer->moved + (int64_t)transfer->answer.body.length;
        if (seen != moved) {
            moved = seen;
            last_byte = now;
        }
        if (patience->narrator && now >= next_tick) {
            narrate_tick(patience->narrator);
            tell_progress(transfer, now - start, patience->narrator);
            next_tick = now + NARRATE_TICK_MS;
        }
        if (patience->budget > 0 && now - start >= patience->budget) {
            return out_of_time(http, now - start, "no answer of Incus within the budget of", err);
        }
        if (patience->idle > 0 && now - last_byte >= patience->idle) {
            return out_of_time(http, now - last_byte, "Incus has been silent for", err);
        }
    }
    return http_result(transfer, ret_answer, err);
}

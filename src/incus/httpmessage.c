/* An HTTP/1.1 answer's status line, header and body framing, from bytes of any cut. Pure.
 * Not for: sockets and time (http.c), nor for what the bodies mean (envelope.c). */
#include "incus/httpmessage.h"

#include <string.h>
#include <strings.h>

#define LINES           128 /* of a header */
#define CHUNK_DIGITS    15  /* of a chunk's size: they fit an int64_t */
#define CHUNK_EXTENSION 256 /* bytes behind a chunk's size */
#define TRAILER         8192
#define LENGTH_DIGITS   18

static enum httpmessage_progress broken(const char **ret_why, const char *why)
{
    if (ret_why) {
        *ret_why = why;
    }
    return HTTPMESSAGE_BROKEN;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* RFC 9110 section 5.6.2 */
static bool is_token(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_text(char c)
{
    return c == '\t' || ((unsigned char)c >= ' ' && c != 0x7f);
}

static bool same(const struct httpmessage_value *value, const char *word)
{
    return value->length == strlen(word) && strncasecmp(value->text, word, value->length) == 0;
}

static struct httpmessage_value trim(const char *start, const char *end)
{
    while (start < end && (*start == ' ' || *start == '\t')) {
        start++;
    }
    while (end > start && (end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    return (struct httpmessage_value){.text = start, .length = (size_t)(end - start)};
}

static bool read_status(const char *line, const char *end, int *ret_status)
{
    static const char start[] = "HTTP/1.1 ";
    size_t skip = sizeof(start) - 1;
    if ((size_t)(end - line) < skip + 3 || memcmp(line, start, skip) != 0) {
        return false;
    }
    const char *digits = line + skip;
    if (digits[0] == '0' || !is_digit(digits[0]) || !is_digit(digits[1]) || !is_digit(digits[2]) ||
        (end - digits > 3 && digits[3] != ' ')) {
        return false;
    }
    *ret_status = (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
    return true;
}

static const char *read_length(const struct httpmessage_value *value, struct httpmessage_head *head)
{
    int64_t length = 0;
    if (value->length == 0 || value->length > LENGTH_DIGITS) {
        return "a length that is none";
    }
    for (size_t i = 0; i < value->length; i++) {
        if (!is_digit(value->text[i])) {
            return "a length that is none";
        }
        length = length * 10 + (value->text[i] - '0');
    }
    if (head->length >= 0 && head->length != length) {
        return "two lengths";
    }
    head->length = length;
    return NULL;
}

/* One of the comma-separated words is "close". */
static bool says_close(struct httpmessage_value value)
{
    const char *end = value.text + value.length;
    for (const char *word = value.text; word < end;) {
        const char *comma = memchr(word, ',', (size_t)(end - word));
        struct httpmessage_value one = trim(word, comma ? comma : end);
        if (same(&one, "close")) {
            return true;
        }
        word = comma ? comma + 1 : end;
    }
    return false;
}

/* NULL, or what is wrong with the line. */
static const char *read_field(const char *line, const char *end, struct httpmessage_head *head)
{
    const char *colon = line;
    while (colon < end && is_token(*colon)) {
        colon++;
    }
    if (colon == line || colon == end || *colon != ':') {
        return "a header line without a name";
    }
    for (const char *c = colon + 1; c < end; c++) {
        if (!is_text(*c)) {
            return "a control character in the header";
        }
    }
    const struct httpmessage_value name = {.text = line, .length = (size_t)(colon - line)},
                                   value = trim(colon + 1, end);
    if (same(&name, "Content-Length")) {
        return read_length(&value, head);
    }
    if (same(&name, "Transfer-Encoding")) {
        if (head->chunked || !same(&value, "chunked")) {
            return "a transfer encoding that is not chunked";
        }
        head->chunked = true;
    } else if (same(&name, "Connection")) {
        head->closes = head->closes || says_close(value);
    } else if (same(&name, "ETag")) {
        head->etag = value;
    } else if (same(&name, "X-Incus-type")) {
        head->kind = value;
    }
    return NULL;
}

/* The lines between the status line and the empty one, `end`. */
static const char *read_fields(const char *line, const char *end, struct httpmessage_head *head)
{
    for (size_t count = 0; line < end; count++) {
        const char *stop = memmem(line, (size_t)(end - line), "\r\n", 2);
        if (!stop) {
            stop = end;
        }
        const char *wrong = count < LINES ? read_field(line, stop, head) : "a header of too many lines";
        if (wrong) {
            return wrong;
        }
        line = stop + 2;
    }
    return NULL;
}

enum httpmessage_progress httpmessage_read_head(const char *data, size_t length, struct httpmessage_head *ret_head,
                                                const char **ret_why)
{
    static const char start[] = "HTTP/1.1 ";
    size_t known = length < sizeof(start) - 1 ? length : sizeof(start) - 1;
    if (!data || !length) {
        return HTTPMESSAGE_PARTIAL;
    }
    if (memcmp(data, start, known) != 0) {
        return broken(ret_why, "it is not HTTP/1.1");
    }
    size_t looked = length < HTTPMESSAGE_HEAD ? length : HTTPMESSAGE_HEAD;
    const char *end = memmem(data, looked, "\r\n\r\n", 4);
    if (!end) {
        return length < HTTPMESSAGE_HEAD ? HTTPMESSAGE_PARTIAL : broken(ret_why, "a header beyond all measure");
    }
    struct httpmessage_head head = {.size = (size_t)(end - data) + 4, .length = -1};
    const char *line = memmem(data, head.size, "\r\n", 2);
    if (!read_status(data, line, &head.status)) {
        return broken(ret_why, "it has no status");
    }
    const char *wrong = line < end ? read_fields(line + 2, end, &head) : NULL;
    if (!wrong && head.chunked && head.length >= 0) {
        wrong = "a length and chunks";
    }
    if (wrong) {
        return broken(ret_why, wrong);
    }
    *ret_head = head;
    return HTTPMESSAGE_COMPLETE;
}

bool httpmessage_body_begin(const struct httpmessage_head *head, struct httpmessage_body *ret_body)
{
    struct httpmessage_body body = {.state = HTTPMESSAGE_ENDED};
    if (head->status < 200 || head->status == 204 || head->status == 304) {
        /* none, whatever the header says: RFC 9112 section 6.3 */
    } else if (head->chunked) {
        body.state = HTTPMESSAGE_CHUNK_SIZE;
    } else if (head->length > 0) {
        body.state = HTTPMESSAGE_COUNTED;
        body.left = head->length;
    } else if (head->length < 0) {
        if (head->status / 100 == 2) {
            return false;
        }
        body.state = HTTPMESSAGE_UNTIL_CLOSE;
    }
    *ret_body = body;
    return true;
}

static int hexadecimal(char c)
{
    if (is_digit(c)) {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The line of a chunk's size is over. */
static const char *size_ended(struct httpmessage_body *body)
{
    if (body->digits == 0) {
        return "a chunk without a size";
    }
    body->carriage = false;
    body->line = 0;
    body->state = body->left ? HTTPMESSAGE_CHUNK_DATA : HTTPMESSAGE_TRAILER;
    return NULL;
}

static const char *read_size(struct httpmessage_body *body, char c)
{
    if (body->carriage) {
        return c == '\n' ? size_ended(body) : "a chunk's size that ends in half a line end";
    }
    if (c == '\r') {
        body->carriage = true;
        return NULL;
    }
    int value = body->state == HTTPMESSAGE_CHUNK_SIZE ? hexadecimal(c) : -1;
    if (value >= 0) {
        if (++body->digits > CHUNK_DIGITS) {
            return "a chunk beyond all measure";
        }
        body->left = body->left * 16 + value;
        return NULL;
    }
    if (body->state == HTTPMESSAGE_CHUNK_SIZE && c != ';') {
        return "a chunk's size that is no number";
    }
    body->state = HTTPMESSAGE_CHUNK_EXTENSION;
    return is_text(c) && ++body->line <= CHUNK_EXTENSION ? NULL : "a chunk's extension beyond all measure";
}

static const char *read_chunk_end(struct httpmessage_body *body, char c)
{
    if (!body->carriage) {
        body->carriage = true;
        return c == '\r' ? NULL : "a chunk that is longer than it says";
    }
    if (c != '\n') {
        return "a chunk that is longer than it says";
    }
    *body = (struct httpmessage_body){.state = HTTPMESSAGE_CHUNK_SIZE};
    return NULL;
}

/* Fields behind the last chunk are read over, up to the empty line. */
static const char *read_trailer(struct httpmessage_body *body, char c)
{
    if (++body->trailer > TRAILER) {
        return "a trailer beyond all measure";
    }
    if (body->carriage) {
        if (c != '\n') {
            return "a trailer with half a line end";
        }
        body->carriage = false;
        if (body->line == 0) {
            body->state = HTTPMESSAGE_ENDED;
        }
        body->line = 0;
    } else if (c == '\r') {
        body->carriage = true;
    } else if (is_text(c)) {
        body->line++;
    } else {
        return "a control character in the trailer";
    }
    return NULL;
}

static const char *read_framing(struct httpmessage_body *body, char c)
{
    switch (body->state) {
    case HTTPMESSAGE_CHUNK_SIZE:
    case HTTPMESSAGE_CHUNK_EXTENSION:
        return read_size(body, c);
    case HTTPMESSAGE_CHUNK_END:
        return read_chunk_end(body, c);
    default:
        return read_trailer(body, c);
    }
}

bool httpmessage_body_read(struct httpmessage_body *body, const char *data, size_t length, size_t *ret_taken,
                           const char **ret_payload, size_t *ret_length, const char **ret_why)
{
    size_t taken = 0, run = 0;
    while (taken < length && body->state != HTTPMESSAGE_ENDED && run == 0) {
        if (body->state == HTTPMESSAGE_UNTIL_CLOSE) {
            run = length - taken;
        } else if (body->state == HTTPMESSAGE_COUNTED || body->state == HTTPMESSAGE_CHUNK_DATA) {
            run = (uint64_t)body->left < length - taken ? (size_t)body->left : length - taken;
            body->left -= (int64_t)run;
            if (body->left == 0) {
                body->state = body->state == HTTPMESSAGE_COUNTED ? HTTPMESSAGE_ENDED : HTTPMESSAGE_CHUNK_END;
            }
        } else {
            const char *wrong = read_framing(body, data[taken]);
            if (wrong) {
                (void)broken(ret_why, wrong);
                return false;
            }
            taken++;
        }
    }
    *ret_payload = data + taken;
    *ret_length = run;
    *ret_taken = taken + run;
    return true;
}

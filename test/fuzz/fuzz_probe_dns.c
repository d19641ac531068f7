/* What a server, a neighbour or a wire may send to the instrument: DNS and DHCP messages, frames, resolver files, keys.
 * The first byte says which reader gets the rest. Not for: the line that the instrument itself prints, which its reader
 * in the drill has to fuzz. */
#include "answer.h"
#include "dhcpwire.h"
#include "dnswire.h"
#include "jsonline.h"
#include "resolvconf.h"
#include "sshkey.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever was read goes out as JSON: one line of printable ASCII. */
static void write_out(const char *text)
{
    struct jsonline line CLEANUP_JSONLINE = {0};

    jsonline_open_object(&line, NULL);
    jsonline_text(&line, "text", text);
    jsonline_close_object(&line);
    for (size_t i = 0; i < line.size; i++) {
        if (line.data[i] < 0x20 || line.data[i] > 0x7e) {
            abort();
        }
    }
}

static void read_dns(const uint8_t *data, size_t size)
{
    static const struct dnswire_query query = {.id = 0x1234, .name = "a.example", .type = 1, .class = 1};
    struct dnswire_reply reply;

    if (dnswire_read_reply(data, size, &reply)) {
        return;
    }
    (void)dnswire_answers(&query, &reply);
    if (reply.record_count > DNSWIRE_RECORDS || strlen(reply.question) >= DNSWIRE_NAME) {
        abort();
    }
    for (size_t i = 0; i < reply.record_count; i++) {
        if (strlen(reply.records[i].name) >= DNSWIRE_NAME || strlen(reply.records[i].data) >= DNSWIRE_DATA) {
            abort();
        }
        write_out(reply.records[i].name);
        write_out(reply.records[i].data);
    }
    /* A name that was read can be asked for again. */
    uint8_t bytes[DNSWIRE_QUERY];
    size_t written;
    struct dnswire_query again = {.name = reply.question, .type = 1, .class = 1, .edns = true};
    if (reply.question_count == 1 && (!dnswire_write_query(&again, bytes, &written) || written > DNSWIRE_QUERY)) {
        abort();
    }
}

static void read_dhcp(const uint8_t *data, size_t size)
{
    struct dhcpwire message;
    struct dhcpwire again;
    uint8_t bytes[DHCPWIRE_MESSAGE];

    if (!dhcpwire_read(data, size, &message)) {
        return;
    }
    write_out(message.host_name);
    write_out(message.domain);
    if (dhcpwire_write(&message, bytes) > DHCPWIRE_MESSAGE || !dhcpwire_read(bytes, sizeof(bytes), &again)) {
        abort();
    }
}

static void read_frame(const uint8_t *data, size_t size)
{
    static const uint8_t address[4] = {10, 0, 0, 1};
    struct answer_expected expected = {.token = "token", .token_size = 5, .protocol = 17};
    struct dissected frame;
    struct dissected quoted;

    expected.source = endpoint_from_v4(address);
    expected.source.port = 1;
    if (dissect_frame(data, size, &frame)) {
        if (frame.payload < data || frame.payload + frame.payload_size > data + size) {
            abort();
        }
        (void)dissect_quoted(&frame, &quoted);
        (void)answer_of(&expected, &frame);
    }
}

static void read_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct resolvconf config;
    struct endpoint found[4];
    char type[SSHKEY_TYPE];
    char fingerprint[SSHKEY_FINGERPRINT];

    if (!text) {
        abort();
    }
    memcpy(text, data, size);
    text[size] = '\0';
    resolvconf_read(text, &config);
    if (config.server_count > RESOLVCONF_SERVERS || config.search_count > RESOLVCONF_SEARCH ||
        resolvconf_hosts(text, "name", found, 4) > 4) {
        abort();
    }
    if (sshkey_fingerprint(text, type, fingerprint)) {
        write_out(type);
        write_out(fingerprint);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(const uint8_t *data, size_t size) = {read_dns, read_dhcp, read_frame, read_text};

    if (size == 0) {
        return 0;
    }
    /* A copy of exactly the size: the first byte must not shelter a read before the start. */
    uint8_t *copy = malloc(size);
    if (!copy) {
        abort();
    }
    memcpy(copy, data + 1, size - 1);
    uint8_t *exact = realloc(copy, size - 1 ? size - 1 : 1);
    readers[data[0] % 4](exact ? exact : copy, size - 1);
    free(exact ? exact : copy);
    return 0;
}

/* DHCP messages written and read: the client's and, for the rogue, the server's.
 * Which of them is sent when is in dhcp.c; leases are nobody's business here.
 */
#include "dhcpwire.h"

#include <arpa/inet.h>
#include <string.h>

enum {
    OPTION_MASK = 1,
    OPTION_ROUTER = 3,
    OPTION_DNS = 6,
    OPTION_HOST_NAME = 12,
    OPTION_DOMAIN = 15,
    OPTION_REQUESTED = 50,
    OPTION_LEASE = 51,
    OPTION_TYPE = 53,
    OPTION_SERVER = 54,
    OPTION_PARAMETERS = 55,
    OPTION_CLIENT_ID = 61,
    OPTION_END = 255,
};

enum { OFFSET_COOKIE = 236, OFFSET_OPTIONS = 240 };

static const uint8_t cookie[4] = {0x63, 0x82, 0x53, 0x63};

static void put_option(uint8_t *bytes, size_t *at, uint8_t code, const void *data, size_t size)
{
    /* One byte stays for the end mark. */
    if (size > 255 || *at + 2 + size + 1 > DHCPWIRE_MESSAGE) {
        return;
    }
    bytes[(*at)++] = code;
    bytes[(*at)++] = (uint8_t)size;
    memcpy(bytes + *at, data, size);
    *at += size;
}

static void put_optional(uint8_t *bytes, size_t *at, uint8_t code, bool present, const void *data, size_t size)
{
    if (present && size > 0) {
        put_option(bytes, at, code, data, size);
    }
}

size_t dhcpwire_write(const struct dhcpwire *message, uint8_t *bytes)
{
    static const uint8_t wanted[] = {OPTION_MASK, OPTION_ROUTER, OPTION_DNS, OPTION_HOST_NAME, OPTION_DOMAIN};
    uint32_t transaction = htonl(message->transaction);
    uint32_t lease = htonl(message->lease_seconds);
    size_t at = OFFSET_OPTIONS;

    memset(bytes, 0, DHCPWIRE_MESSAGE);
    bytes[0] = message->reply ? 2 : 1;
    bytes[1] = 1;
    bytes[2] = 6;
    memcpy(bytes + 4, &transaction, 4);
    bytes[10] = message->broadcast ? 0x80 : 0;
    memcpy(bytes + 12, message->client, 4);
    memcpy(bytes + 16, message->yours, 4);
    memcpy(bytes + 28, message->mac, 6);
    memcpy(bytes + OFFSET_COOKIE, cookie, sizeof(cookie));

    put_option(bytes, &at, OPTION_TYPE, &message->type, 1);
    put_optional(bytes, &at, OPTION_CLIENT_ID, true, message->client_id, message->client_id_size);
    put_optional(bytes, &at, OPTION_SERVER, message->has_server, message->server, 4);
    put_optional(bytes, &at, OPTION_REQUESTED, message->has_requested, message->requested, 4);
    put_optional(bytes, &at, OPTION_LEASE, message->lease_seconds != 0, &lease, 4);
    put_optional(bytes, &at, OPTION_MASK, message->has_mask, message->mask, 4);
    put_optional(bytes, &at, OPTION_ROUTER, message->has_router, message->router, 4);
    put_optional(bytes, &at, OPTION_DNS, true, message->name_servers, message->name_server_count * 4);
    put_optional(bytes, &at, OPTION_HOST_NAME, true, message->host_name, strlen(message->host_name));
    put_optional(bytes, &at, OPTION_DOMAIN, true, message->domain, strlen(message->domain));
    put_optional(bytes, &at, OPTION_PARAMETERS, !message->reply, wanted, sizeof(wanted));
    bytes[at++] = OPTION_END;
    /* RFC 1542: some servers drop what is shorter than a BOOTP message. */
    return at < 300 ? 300 : at;
}

static void take_address(const uint8_t *data, size_t size, bool *ret_has, uint8_t ret_address[4])
{
    if (size >= 4) {
        memcpy(ret_address, data, 4);
        *ret_has = true;
    }
}

static void take_text(const uint8_t *data, size_t size, char text[DHCPWIRE_TEXT])
{
    if (size >= DHCPWIRE_TEXT) {
        size = DHCPWIRE_TEXT - 1;
    }
    memcpy(text, data, size);
    text[size] = '\0';
}

static void take_option(struct dhcpwire *message, uint8_t code, const uint8_t *data, size_t size)
{
    switch (code) {
    case OPTION_TYPE:
        message->type = size ? data[0] : 0;
        break;
    case OPTION_MASK:
        take_address(data, size, &message->has_mask, message->mask);
        break;
    case OPTION_ROUTER:
        take_address(data, size, &message->has_router, message->router);
        break;
    case OPTION_SERVER:
        take_address(data, size, &message->has_server, message->server);
        break;
    case OPTION_REQUESTED:
        take_address(data, size, &message->has_requested, message->requested);
        break;
    case OPTION_DNS:
        message->name_server_count = size / 4 < DHCPWIRE_SERVERS ? size / 4 : DHCPWIRE_SERVERS;
        memcpy(message->name_servers, data, message->name_server_count * 4);
        break;
    case OPTION_LEASE:
        if (size >= 4) {
            message->lease_seconds =
                (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
        }
        break;
    case OPTION_HOST_NAME:
        take_text(data, size, message->host_name);
        break;
    case OPTION_DOMAIN:
        take_text(data, size, message->domain);
        break;
    case OPTION_CLIENT_ID:
        message->client_id_size = size < DHCPWIRE_CLIENT_ID ? size : DHCPWIRE_CLIENT_ID;
        memcpy(message->client_id, data, message->client_id_size);
        break;
    default:
        break;
    }
}

bool dhcpwire_read(const uint8_t *bytes, size_t size, struct dhcpwire *ret_message)
{
    struct dhcpwire message = {0};
    uint32_t transaction;

    if (size < OFFSET_OPTIONS || memcmp(bytes + OFFSET_COOKIE, cookie, sizeof(cookie)) != 0) {
        return false;
    }
    message.reply = bytes[0] == 2;
    memcpy(&transaction, bytes + 4, 4);
    message.transaction = ntohl(transaction);
    message.broadcast = bytes[10] & 0x80;
    memcpy(message.client, bytes + 12, 4);
    memcpy(message.yours, bytes + 16, 4);
    memcpy(message.mac, bytes + 28, 6);

    for (size_t at = OFFSET_OPTIONS; at < size && bytes[at] != OPTION_END;) {
        uint8_t code = bytes[at++];
        if (code == 0) {
            continue;
        }
        if (at == size || size - at - 1 < bytes[at]) {
            break;
        }
        take_option(&message, code, bytes + at + 1, bytes[at]);
        at += 1 + (size_t)bytes[at];
    }
    *ret_message = message;
    return true;
}

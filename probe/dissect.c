/* Takes frames and packets apart that somebody else built: every length in them is a lie until it was checked.
 * It judges nothing; answer.c does.
 */
#include "dissect.h"

#include <arpa/inet.h>
#include <string.h>

static uint16_t get16(const uint8_t *data)
{
    return (uint16_t)(data[0] << 8 | data[1]);
}

static uint32_t get32(const uint8_t *data)
{
    return (uint32_t)get16(data) << 16 | get16(data + 2);
}

static void take_ports(const uint8_t *data, struct dissected *out)
{
    out->source.port = get16(data);
    out->destination.port = get16(data + 2);
}

static void dissect_segment(const uint8_t *data, size_t size, struct dissected *out)
{
    bool icmp = out->protocol == (out->source.family == AF_INET6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);

    out->payload = data;
    out->payload_size = size;
    if (icmp && size >= 8) {
        out->has_icmp = true;
        out->icmp_type = data[0];
        out->icmp_code = data[1];
        out->icmp_rest = get32(data + 4);
        out->payload += 8;
        out->payload_size -= 8;
    } else if (out->protocol == IPPROTO_UDP && size >= 8) {
        take_ports(data, out);
        out->payload += 8;
        out->payload_size -= 8;
    } else if (out->protocol == IPPROTO_TCP && size >= 8) {
        /* The quote in an ICMP error may end after eight bytes: ports and sequence number are there already. */
        take_ports(data, out);
        out->tcp_sequence = get32(data + 4);
        size_t header = size >= 20 ? (size_t)(data[12] >> 4) * 4 : 0;
        if (header >= 20 && header <= size) {
            out->has_tcp = true;
            out->tcp_acknowledgement = get32(data + 8);
            out->tcp_flags = data[13];
            out->payload += header;
            out->payload_size -= header;
        }
    }
}

static bool dissect_ip4(const uint8_t *data, size_t size, struct dissected *out)
{
    size_t header = size >= 20 ? (size_t)(data[0] & 15) * 4 : 0;

    if (header < 20 || header > size) {
        return false;
    }
    /* An ICMP error quotes a packet that is longer than the quote; a frame may be padded. Both ends count. */
    size_t total = get16(data + 2);
    if (total >= header && total < size) {
        size = total;
    }
    out->has_ip = true;
    out->source = endpoint_from_v4(data + 12);
    out->destination = endpoint_from_v4(data + 16);
    out->protocol = data[9];
    out->fragment_offset = (uint16_t)((get16(data + 6) & 0x1fff) * 8);
    out->ip_options_size = header - 20;
    if (out->fragment_offset == 0) {
        dissect_segment(data + header, size - header, out);
    } else {
        out->payload = data + header;
        out->payload_size = size - header;
    }
    return true;
}

static bool dissect_ip6(const uint8_t *data, size_t size, struct dissected *out)
{
    if (size < 40) {
        return false;
    }
    size_t total = 40 + (size_t)get16(data + 4);
    if (total < size) {
        size = total;
    }
    out->has_ip = true;
    out->source = endpoint_from_v6(data + 8);
    out->destination = endpoint_from_v6(data + 24);
    out->protocol = data[6];
    dissect_segment(data + 40, size - 40, out);
    return true;
}

static bool dissect_ip_into(const uint8_t *data, size_t size, struct dissected *out)
{
    if (size < 1) {
        return false;
    }
    switch (data[0] >> 4) {
    case 4:
        return dissect_ip4(data, size, out);
    case 6:
        return dissect_ip6(data, size, out);
    default:
        return false;
    }
}

bool dissect_ip(const uint8_t *data, size_t size, struct dissected *ret_dissected)
{
    *ret_dissected = (struct dissected){.payload = data};
    return dissect_ip_into(data, size, ret_dissected);
}

static void dissect_arp(const uint8_t *data, size_t size, struct dissected *out)
{
    if (size < 28 || get16(data) != 1 || get16(data + 2) != 0x0800 || data[4] != 6 || data[5] != 4) {
        return;
    }
    out->has_arp = true;
    out->arp.operation = get16(data + 6);
    memcpy(out->arp.sender_mac, data + 8, 6);
    memcpy(out->arp.sender_ip, data + 14, 4);
    memcpy(out->arp.target_mac, data + 18, 6);
    memcpy(out->arp.target_ip, data + 24, 4);
}

bool dissect_frame(const uint8_t *data, size_t size, struct dissected *ret_dissected)
{
    struct dissected out = {0};
    size_t at = 12;

    if (size < 14) {
        return false;
    }
    memcpy(out.destination_mac, data, 6);
    memcpy(out.source_mac, data + 6, 6);
    out.type = get16(data + at);
    while ((out.type == 0x8100 || out.type == 0x88a8) && out.tag_count < WIRE_TAGS && size - at >= 6) {
        out.tags[out.tag_count++] = get16(data + at + 2) & 0x0fff;
        at += 4;
        out.type = get16(data + at);
    }
    at += 2;
    out.payload = data + at;
    out.payload_size = size - at;
    if (out.type == 0x0800 || out.type == 0x86dd) {
        (void)dissect_ip_into(data + at, size - at, &out);
    } else if (out.type == 0x0806) {
        dissect_arp(data + at, size - at, &out);
    }
    *ret_dissected = out;
    return true;
}

bool dissect_quoted(const struct dissected *dissected, struct dissected *ret_quoted)
{
    if (!dissected->has_icmp) {
        return false;
    }
    uint8_t type = dissected->icmp_type;
    bool is_error = dissected->source.family == AF_INET6 ? type >= 1 && type <= 4
                                                         : type == 3 || type == 4 || type == 11 || type == 12;
    return is_error && dissect_ip(dissected->payload, dissected->payload_size, ret_quoted);
}

bool dissect_contains(const void *data, size_t length, const void *needle, size_t size)
{
    return size > 0 && length >= size && memmem(data, length, needle, size) != NULL;
}

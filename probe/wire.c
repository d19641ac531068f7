/* Builds frames, good and bad ones, from the Ethernet header to the checksum.
 * It neither sends nor reads them: ether.c does the first, dissect.c the second.
 */
#include "wire.h"

#include <arpa/inet.h>
#include <string.h>

void wire_put(struct frame *frame, const void *data, size_t size)
{
    if (frame->overflow || size > sizeof(frame->data) - frame->size) {
        frame->overflow = true;
        return;
    }
    if (size) {
        memcpy(frame->data + frame->size, data, size);
        frame->size += size;
    }
}

void wire_put16(struct frame *frame, uint16_t number)
{
    uint16_t network = htons(number);

    wire_put(frame, &network, 2);
}

static void put32(struct frame *frame, uint32_t number)
{
    uint32_t network = htonl(number);

    wire_put(frame, &network, 4);
}

static void put8(struct frame *frame, uint8_t number)
{
    wire_put(frame, &number, 1);
}

/* Writes over the two bytes at `at`. */
static void patch16(struct frame *frame, size_t at, uint16_t number)
{
    uint16_t network = htons(number);

    if (!frame->overflow) {
        memcpy(frame->data + at, &network, 2);
    }
}

static uint32_t sum_of(const void *data, size_t size, uint32_t sum)
{
    const uint8_t *bytes = data;

    for (size_t i = 0; i + 1 < size; i += 2) {
        sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
        sum = (sum & 0xffff) + (sum >> 16);
    }
    if (size % 2) {
        sum += (uint32_t)bytes[size - 1] << 8;
    }
    return sum;
}

uint16_t wire_checksum(const void *data, size_t size, uint32_t sum)
{
    sum = sum_of(data, size, sum);
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

uint32_t wire_pseudo_sum(const struct wire_ip *ip, uint8_t protocol, size_t size)
{
    uint32_t sum = protocol;

    if (ip->destination.family == AF_INET6) {
        sum = sum_of(&ip->source.ip.v6, 16, sum);
        sum = sum_of(&ip->destination.ip.v6, 16, sum);
    } else {
        sum = sum_of(&ip->source.ip.v4, 4, sum);
        sum = sum_of(&ip->destination.ip.v4, 4, sum);
    }
    sum += (uint32_t)(size & 0xffff) + (uint32_t)(size >> 16);
    return sum;
}

void wire_put_ether(struct frame *frame, const struct wire_ether *ether)
{
    wire_put(frame, ether->destination, 6);
    wire_put(frame, ether->source, 6);
    for (size_t i = 0; i < ether->tag_count && i < WIRE_TAGS; i++) {
        wire_put16(frame, ether->tag_types[i] ? ether->tag_types[i] : 0x8100);
        wire_put16(frame, ether->tags[i]);
    }
    wire_put16(frame, ether->type);
}

void wire_put_arp(struct frame *frame, const struct wire_arp *arp)
{
    static const uint8_t ethernet_and_ipv4[] = {0, 1, 8, 0, 6, 4};

    wire_put(frame, ethernet_and_ipv4, sizeof(ethernet_and_ipv4));
    wire_put16(frame, arp->operation);
    wire_put(frame, arp->sender_mac, 6);
    wire_put(frame, arp->sender_ip, 4);
    wire_put(frame, arp->target_mac, 6);
    wire_put(frame, arp->target_ip, 4);
}

static void put_ip4(struct frame *frame, const struct wire_ip *ip, size_t payload_size)
{
    static const uint8_t zeros[4];
    size_t start = frame->size;
    size_t options = ip->options_size < WIRE_OPTIONS ? ip->options_size : WIRE_OPTIONS;
    size_t header = 20 + (options + 3) / 4 * 4;

    put8(frame, (uint8_t)(0x40 | header / 4));
    put8(frame, ip->tos);
    wire_put16(frame, (uint16_t)(header + payload_size));
    wire_put16(frame, ip->id);
    wire_put16(frame, ip->fragment);
    put8(frame, ip->ttl ? ip->ttl : 64);
    put8(frame, ip->protocol);
    wire_put16(frame, 0);
    wire_put(frame, &ip->source.ip.v4, 4);
    wire_put(frame, &ip->destination.ip.v4, 4);
    wire_put(frame, ip->options, options);
    wire_put(frame, zeros, header - 20 - options);
    if (!frame->overflow) {
        patch16(frame, start + 10, wire_checksum(frame->data + start, header, 0));
    }
}

void wire_put_ip(struct frame *frame, const struct wire_ip *ip, size_t payload_size)
{
    if (ip->destination.family != AF_INET6) {
        put_ip4(frame, ip, payload_size);
        return;
    }
    put32(frame, 0x60000000u | (uint32_t)ip->tos << 20);
    wire_put16(frame, (uint16_t)payload_size);
    put8(frame, ip->protocol);
    put8(frame, ip->ttl ? ip->ttl : 64);
    wire_put(frame, &ip->source.ip.v6, 16);
    wire_put(frame, &ip->destination.ip.v6, 16);
}

/* Fills in the checksum of the segment that began at `start`, at `offset` in it. */
static void seal(struct frame *frame, const struct wire_ip *ip, uint8_t protocol, size_t start, size_t offset)
{
    if (frame->overflow) {
        return;
    }
    size_t size = frame->size - start;
    uint16_t sum = wire_checksum(frame->data + start, size, wire_pseudo_sum(ip, protocol, size));

    /* UDP's zero would mean "no checksum". */
    patch16(frame, start + offset, sum == 0 && protocol == IPPROTO_UDP ? 0xffff : sum);
}

void wire_put_udp(struct frame *frame, const struct wire_ip *ip, uint16_t source_port, uint16_t destination_port,
                  const void *payload, size_t size)
{
    size_t start = frame->size;

    wire_put16(frame, source_port);
    wire_put16(frame, destination_port);
    wire_put16(frame, (uint16_t)(8 + size));
    wire_put16(frame, 0);
    wire_put(frame, payload, size);
    seal(frame, ip, IPPROTO_UDP, start, 6);
}

void wire_put_tcp(struct frame *frame, const struct wire_ip *ip, const struct wire_tcp *tcp, const void *payload,
                  size_t size)
{
    size_t start = frame->size;

    wire_put16(frame, tcp->source_port);
    wire_put16(frame, tcp->destination_port);
    put32(frame, tcp->sequence);
    put32(frame, tcp->acknowledgement);
    put8(frame, 5 << 4);
    put8(frame, tcp->flags);
    wire_put16(frame, tcp->window);
    wire_put16(frame, 0);
    wire_put16(frame, 0);
    wire_put(frame, payload, size);
    seal(frame, ip, IPPROTO_TCP, start, 16);
}

void wire_put_icmp(struct frame *frame, const struct wire_ip *ip, uint8_t type, uint8_t code, uint32_t rest,
                   const void *payload, size_t size)
{
    size_t start = frame->size;

    put8(frame, type);
    put8(frame, code);
    wire_put16(frame, 0);
    put32(frame, rest);
    wire_put(frame, payload, size);
    if (ip->destination.family == AF_INET6) {
        seal(frame, ip, IPPROTO_ICMPV6, start, 2);
    } else if (!frame->overflow) {
        patch16(frame, start + 2, wire_checksum(frame->data + start, frame->size - start, 0));
    }
}

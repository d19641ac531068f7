/* Keeps count of the packets that reached us although they were another's.
 * How they were lured here (ARP, the bridge's table) is told in arp.c and raw.c.
 */
#include "capture.h"

void capture_take(struct capture *capture, const struct dissected *packet)
{
    if (!packet->has_ip || !endpoint_same_address(&packet->destination, &capture->address)) {
        return;
    }
    capture->packets++;
    capture->icmp += packet->has_icmp;
    capture->udp += packet->protocol == IPPROTO_UDP;
    capture->tcp += packet->protocol == IPPROTO_TCP;
    if (capture->shown_count < CAPTURE_SHOWN) {
        capture->shown[capture->shown_count].source = packet->source;
        capture->shown[capture->shown_count].destination = packet->destination;
        capture->shown[capture->shown_count].protocol = packet->protocol;
        capture->shown_count++;
    }
}

void capture_write(const struct capture *capture, struct jsonline *line)
{
    char text[ENDPOINT_TEXT];

    jsonline_open_object(line, "captured");
    jsonline_text(line, "for", endpoint_text(&capture->address, text));
    jsonline_number(line, "packets", capture->packets);
    jsonline_number(line, "icmp", capture->icmp);
    jsonline_number(line, "udp", capture->udp);
    jsonline_number(line, "tcp", capture->tcp);
    jsonline_open_array(line, "first");
    for (size_t i = 0; i < capture->shown_count; i++) {
        jsonline_open_object(line, NULL);
        jsonline_text(line, "from", endpoint_text(&capture->shown[i].source, text));
        jsonline_number(line, "protocol", capture->shown[i].protocol);
        jsonline_number(line, "source_port", capture->shown[i].source.port);
        jsonline_number(line, "port", capture->shown[i].destination.port);
        jsonline_close_object(line);
    }
    jsonline_close_array(line);
    jsonline_close_object(line);
}

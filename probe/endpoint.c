/* Addresses as values: read, shown, compared, turned into what the socket calls want.
 * Names are not its business (resolver.c).
 */
#include "endpoint.h"

#include "literal.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

bool endpoint_parse(const char *text, struct endpoint *ret_endpoint)
{
    struct endpoint endpoint = {0};
    char plain[ENDPOINT_TEXT];
    const char *percent = strchr(text, '%');
    size_t length = percent ? (size_t)(percent - text) : strlen(text);

    if (length == 0 || length >= sizeof(plain)) {
        return false;
    }
    memcpy(plain, text, length);
    plain[length] = '\0';

    if (!percent && inet_pton(AF_INET, plain, &endpoint.ip.v4) == 1) {
        endpoint.family = AF_INET;
    } else if (inet_pton(AF_INET6, plain, &endpoint.ip.v6) == 1) {
        endpoint.family = AF_INET6;
    } else {
        return false;
    }
    if (percent) {
        uint64_t index = if_nametoindex(percent + 1);
        if (index == 0 && !literal_number(percent + 1, 1, UINT32_MAX, &index)) {
            return false;
        }
        endpoint.scope = (unsigned)index;
    }
    *ret_endpoint = endpoint;
    return true;
}

bool endpoint_parse_with_port(const char *text, struct endpoint *ret_endpoint)
{
    char address[ENDPOINT_TEXT];
    const char *colon = strrchr(text, ':');
    const char *start = text;
    uint64_t port;
    struct endpoint endpoint;

    if (!colon || !literal_number(colon + 1, 0, UINT16_MAX, &port)) {
        return false;
    }
    size_t length = (size_t)(colon - text);
    bool bracketed = length >= 2 && text[0] == '[' && text[length - 1] == ']';
    if (bracketed) {
        start++;
        length -= 2;
    }
    if (length == 0 || length >= sizeof(address)) {
        return false;
    }
    memcpy(address, start, length);
    address[length] = '\0';
    if (!endpoint_parse(address, &endpoint) || bracketed != (endpoint.family == AF_INET6)) {
        return false;
    }
    endpoint.port = (uint16_t)port;
    *ret_endpoint = endpoint;
    return true;
}

const char *endpoint_text(const struct endpoint *endpoint, char *text)
{
    char plain[INET6_ADDRSTRLEN] = "none";
    char scope[IF_NAMESIZE];

    if (endpoint->family) {
        (void)inet_ntop(endpoint->family, &endpoint->ip, plain, sizeof(plain));
    }
    if (endpoint->scope && if_indextoname(endpoint->scope, scope)) {
        (void)snprintf(text, ENDPOINT_TEXT, "%s%%%s", plain, scope);
    } else {
        (void)snprintf(text, ENDPOINT_TEXT, "%s", plain);
    }
    return text;
}

bool endpoint_same_address(const struct endpoint *left, const struct endpoint *right)
{
    if (left->family != right->family) {
        return false;
    }
    if (left->family == AF_INET) {
        return left->ip.v4.s_addr == right->ip.v4.s_addr;
    }
    return left->family == AF_INET6 && memcmp(&left->ip.v6, &right->ip.v6, 16) == 0;
}

socklen_t endpoint_to_sockaddr(const struct endpoint *endpoint, struct sockaddr_storage *ret_address)
{
    *ret_address = (struct sockaddr_storage){0};
    if (endpoint->family == AF_INET6) {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret_address;
        v6->sin6_family = AF_INET6;
        v6->sin6_addr = endpoint->ip.v6;
        v6->sin6_port = htons(endpoint->port);
        v6->sin6_scope_id = endpoint->scope;
        return sizeof(*v6);
    }
    struct sockaddr_in *v4 = (struct sockaddr_in *)ret_address;
    v4->sin_family = AF_INET;
    v4->sin_addr = endpoint->ip.v4;
    v4->sin_port = htons(endpoint->port);
    return sizeof(*v4);
}

struct endpoint endpoint_from_sockaddr(const struct sockaddr *address)
{
    struct endpoint endpoint = {0};

    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        endpoint.family = AF_INET;
        endpoint.ip.v4 = v4->sin_addr;
        endpoint.port = ntohs(v4->sin_port);
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
        endpoint.family = AF_INET6;
        endpoint.ip.v6 = v6->sin6_addr;
        endpoint.port = ntohs(v6->sin6_port);
        endpoint.scope = v6->sin6_scope_id;
    }
    return endpoint;
}

struct endpoint endpoint_from_v4(const void *four_bytes)
{
    struct endpoint endpoint = {.family = AF_INET};

    memcpy(&endpoint.ip.v4, four_bytes, 4);
    return endpoint;
}

struct endpoint endpoint_from_v6(const void *sixteen_bytes)
{
    struct endpoint endpoint = {.family = AF_INET6};

    memcpy(&endpoint.ip.v6, sixteen_bytes, 16);
    return endpoint;
}

bool endpoint_is_multicast(const struct endpoint *endpoint)
{
    if (endpoint->family == AF_INET) {
        return IN_MULTICAST(ntohl(endpoint->ip.v4.s_addr));
    }
    return endpoint->family == AF_INET6 && IN6_IS_ADDR_MULTICAST(&endpoint->ip.v6);
}

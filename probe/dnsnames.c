/* The words of DNS: types, classes and response codes, in both directions.
 * Every number without a word here is TYPEn, CLASSn or RCODEn (RFC 3597).
 */
#include "dnswire.h"
#include "literal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct word {
    uint16_t number;
    const char *name;
};

static const struct word types[] = {
    {1, "A"},       {2, "NS"},    {5, "CNAME"},  {6, "SOA"},    {12, "PTR"},  {13, "HINFO"}, {15, "MX"},
    {16, "TXT"},    {28, "AAAA"}, {33, "SRV"},   {35, "NAPTR"}, {41, "OPT"},  {43, "DS"},    {46, "RRSIG"},
    {48, "DNSKEY"}, {64, "SVCB"}, {65, "HTTPS"}, {252, "AXFR"}, {255, "ANY"}, {257, "CAA"},  {0, NULL},
};

static const struct word classes[] = {{1, "IN"}, {3, "CH"}, {4, "HS"}, {254, "NONE"}, {255, "ANY"}, {0, NULL}};

static const struct word rcodes[] = {
    {0, "NOERROR"}, {1, "FORMERR"}, {2, "SERVFAIL"}, {3, "NXDOMAIN"}, {4, "NOTIMP"}, {5, "REFUSED"}, {0, NULL},
};

static bool number_of(const struct word *words, const char *prefix, const char *text, uint16_t *ret_number)
{
    uint64_t number;

    for (; words->name; words++) {
        if (strcasecmp(words->name, text) == 0) {
            *ret_number = words->number;
            return true;
        }
    }
    if (strncasecmp(text, prefix, strlen(prefix)) != 0 ||
        !literal_number(text + strlen(prefix), 0, UINT16_MAX, &number)) {
        return false;
    }
    *ret_number = (uint16_t)number;
    return true;
}

static const char *name_of(const struct word *words, const char *prefix, uint16_t number, char text[16])
{
    for (; words->name; words++) {
        if (words->number == number) {
            return words->name;
        }
    }
    (void)snprintf(text, 16, "%s%u", prefix, number);
    return text;
}

bool dnswire_type_of(const char *text, uint16_t *ret_type)
{
    return number_of(types, "TYPE", text, ret_type);
}

bool dnswire_class_of(const char *text, uint16_t *ret_class)
{
    if (strcasecmp(text, "CHAOS") == 0) {
        text = "CH";
    }
    return number_of(classes, "CLASS", text, ret_class);
}

const char *dnswire_type_name(uint16_t type, char text[16])
{
    return name_of(types, "TYPE", type, text);
}

const char *dnswire_class_name(uint16_t class, char text[16])
{
    return name_of(classes, "CLASS", class, text);
}

const char *dnswire_rcode_name(uint8_t rcode, char text[16])
{
    return name_of(rcodes, "RCODE", rcode, text);
}

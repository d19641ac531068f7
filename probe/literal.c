/* Reads the small literals of the command line: numbers, MAC addresses, hexadecimal, escaped text, lists.
 * IP addresses are in endpoint.c. Strict on purpose: a flag that is half understood gives a verdict about the wrong
 * thing.
 */
#include "literal.h"

#include <stdio.h>
#include <string.h>

static int digit_of(char character)
{
    if (character >= '0' && character <= '9') {
        return character - '0';
    }
    if (character >= 'a' && character <= 'f') {
        return character - 'a' + 10;
    }
    if (character >= 'A' && character <= 'F') {
        return character - 'A' + 10;
    }
    return -1;
}

static bool number_of(const char *text, size_t length, uint64_t min, uint64_t max, uint64_t *ret_number)
{
    uint64_t number = 0;
    int base = 10;
    size_t i = 0;

    if (length > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        base = 16;
        i = 2;
    }
    if (i == length) {
        return false;
    }
    for (; i < length; i++) {
        int digit = digit_of(text[i]);
        if (digit < 0 || digit >= base || number > (UINT64_MAX - (uint64_t)digit) / (uint64_t)base) {
            return false;
        }
        number = number * (uint64_t)base + (uint64_t)digit;
    }
    if (number < min || number > max) {
        return false;
    }
    *ret_number = number;
    return true;
}

bool literal_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret_number)
{
    return number_of(text, strlen(text), min, max, ret_number);
}

bool literal_mac(const char *text, uint8_t ret_mac[6])
{
    uint8_t mac[6];

    if (strlen(text) != 17) {
        return false;
    }
    for (int i = 0; i < 6; i++) {
        int high = digit_of(text[i * 3]);
        int low = digit_of(text[i * 3 + 1]);
        if (high < 0 || low < 0 || (i < 5 && text[i * 3 + 2] != ':')) {
            return false;
        }
        mac[i] = (uint8_t)(high * 16 + low);
    }
    memcpy(ret_mac, mac, 6);
    return true;
}

bool literal_hex(const char *text, uint8_t *bytes, size_t capacity, size_t *ret_size)
{
    size_t size = 0;

    while (*text) {
        if (*text == ':' || *text == ' ') {
            text++;
            continue;
        }
        int high = digit_of(text[0]);
        int low = high < 0 ? -1 : digit_of(text[1]);
        if (low < 0 || size == capacity) {
            return false;
        }
        bytes[size++] = (uint8_t)(high * 16 + low);
        text += 2;
    }
    *ret_size = size;
    return true;
}

/* One escape after its backslash; the number of characters it took, 0 when it is none. */
static size_t escape_of(const char *text, uint8_t *ret_byte)
{
    static const char letters[] = "rnt0\\";
    static const char meanings[] = "\r\n\t\0\\";
    const char *found = *text ? strchr(letters, *text) : NULL;

    if (found) {
        *ret_byte = (uint8_t)meanings[found - letters];
        return 1;
    }
    int high = *text == 'x' ? digit_of(text[1]) : -1;
    int low = high < 0 ? -1 : digit_of(text[2]);
    if (low < 0) {
        return 0;
    }
    *ret_byte = (uint8_t)(high * 16 + low);
    return 3;
}

bool literal_escaped(const char *text, uint8_t *bytes, size_t capacity, size_t *ret_size)
{
    size_t size = 0;

    while (*text) {
        uint8_t byte = (uint8_t)*text;
        size_t taken = 1;

        if (*text == '\\') {
            taken = escape_of(text + 1, &byte);
            if (taken == 0) {
                return false;
            }
            taken++;
        }
        if (size == capacity) {
            return false;
        }
        bytes[size++] = byte;
        text += taken;
    }
    *ret_size = size;
    return true;
}

bool literal_list16(const char *text, uint16_t *numbers, size_t capacity, size_t *ret_count)
{
    size_t count = 0;

    for (;;) {
        size_t length = strcspn(text, ",");
        uint64_t number;

        if (count == capacity || !number_of(text, length, 0, UINT16_MAX, &number)) {
            return false;
        }
        numbers[count++] = (uint16_t)number;
        if (text[length] == '\0') {
            *ret_count = count;
            return true;
        }
        text += length + 1;
    }
}

const char *literal_mac_text(const uint8_t mac[6], char *text)
{
    (void)snprintf(text, LITERAL_MAC_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
                   mac[5]);
    return text;
}

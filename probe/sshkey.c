/* The fingerprint of an OpenSSH public key: what tells whether a clone kept its source's host keys.
 * Private keys are not looked at.
 */
#include "sshkey.h"

#include "sha2.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static bool decode(const char *text, size_t length, uint8_t *bytes, size_t capacity, size_t *ret_size)
{
    uint32_t bits = 0;
    int bit_count = 0;
    size_t size = 0;

    for (size_t i = 0; i < length && text[i] != '='; i++) {
        const char *found = memchr(alphabet, text[i], 64);
        if (!found || size == capacity) {
            return false;
        }
        bits = (bits << 6 | (uint32_t)(found - alphabet)) & 0xffffff;
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            bytes[size++] = (uint8_t)(bits >> bit_count);
        }
    }
    *ret_size = size;
    return size > 0;
}

/* 32 bytes as 43 characters, without the padding. */
static void encode(const uint8_t digest[32], char *text)
{
    uint32_t bits = 0;
    int bit_count = 0;

    for (int i = 0; i < 32; i++) {
        bits = (bits << 8 | digest[i]) & 0xffffff;
        bit_count += 8;
        while (bit_count >= 6) {
            bit_count -= 6;
            *text++ = alphabet[bits >> bit_count & 63];
        }
    }
    *text++ = alphabet[bits << (6 - bit_count) & 63];
    *text = '\0';
}

bool sshkey_fingerprint(const char *text, char ret_type[SSHKEY_TYPE], char ret_fingerprint[SSHKEY_FINGERPRINT])
{
    uint8_t blob[2048];
    uint8_t digest[32];
    char shown[48];
    size_t size;
    size_t type = strcspn(text, " \t\n");

    if (type == 0 || type >= SSHKEY_TYPE || (text[type] != ' ' && text[type] != '\t')) {
        return false;
    }
    const char *body = text + type + 1;
    if (!decode(body, strcspn(body, " \t\r\n"), blob, sizeof(blob), &size)) {
        return false;
    }
    sha2_256(blob, size, digest);
    encode(digest, shown);
    memcpy(ret_type, text, type);
    ret_type[type] = '\0';
    (void)snprintf(ret_fingerprint, SSHKEY_FINGERPRINT, "SHA256:%s", shown);
    return true;
}

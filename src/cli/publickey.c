/* Tells a public key of ssh from anything else, before it is sent anywhere.
 * Not for: reading its numbers, which is sshd's affair. */
#include "cli/publickey.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"

#include <string.h>

/* -1 for what is no digit of base64. */
static int digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *place = c ? strchr(digits, c) : NULL;
    return place ? (int)(place - digits) : -1;
}

static bool decode(const char *text, size_t length, struct buffer *blob)
{
    size_t padding = 0;
    while (padding < 2 && padding < length && text[length - 1 - padding] == '=') {
        padding++;
    }
    if (!length || length % 4) {
        return false;
    }
    unsigned bits = 0;
    for (size_t i = 0; i < length; i++) {
        int value = i < length - padding ? digit(text[i]) : 0;
        if (value < 0) {
            return false;
        }
        bits = bits << 6 | (unsigned)value;
        if (i % 4 == 3) {
            const char bytes[] = {(char)(bits >> 16 & 0xff), (char)(bits >> 8 & 0xff), (char)(bits & 0xff)};
            buffer_append(blob, bytes, i + 1 == length ? 3 - padding : 3);
            bits = 0;
        }
    }
    return true;
}

static bool is_known(const char *kind)
{
    static const char *const kinds[] = {"ssh-ed25519", "ssh-rsa"};
    static const char *const families[] = {"ecdsa-sha2-", "sk-ssh-ed25519@", "sk-ecdsa-sha2-"};
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        if (text_equal(kind, kinds[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < ARRAY_LENGTH(families); i++) {
        if (text_starts_with(kind, families[i])) {
            return true;
        }
    }
    return false;
}

bool publickey_is_one(const char *text)
{
    CLEANUP(buffer_reset) struct buffer blob = {0};
    size_t length = strcspn(text, " \t");
    CLEANUP(freep) char *kind = xstrndup(text, length);
    const char *key = text + length + strspn(text + length, " \t");
    if (strpbrk(text, "\r\n") || !is_known(kind) || !decode(key, strcspn(key, " \t"), &blob) || blob.length < 4) {
        return false;
    }
    const unsigned char *bytes = (const unsigned char *)blob.data;
    size_t named = (size_t)bytes[0] << 24 | (size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | bytes[3];
    return named == length && blob.length > 4 + length && memcmp(blob.data + 4, kind, length) == 0;
}

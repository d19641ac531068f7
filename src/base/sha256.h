#ifndef BOX_BASE_SHA256_H
#define BOX_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_HEX_SIZE 65 /* 64 hexadecimal digits and the NUL */

/* SHA-256 (FIPS 180-4) of a stream: what Incus names images by. Start, feed, finish once. */
struct sha256 {
    uint32_t state[8];
    uint64_t length;
    uint8_t block[64];
};

void sha256_start(struct sha256 *digest);
void sha256_feed(struct sha256 *digest, const void *data, size_t length);
void sha256_finish(struct sha256 *digest, char ret_hex[SHA256_HEX_SIZE]);

#endif

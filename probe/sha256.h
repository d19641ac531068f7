#pragma once

#include <stddef.h>
#include <stdint.h>

/* FIPS 180-4, in one call. */
void sha256_of(const void *data, size_t size, uint8_t ret_digest[32]);

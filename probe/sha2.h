#pragma once

#include <stddef.h>
#include <stdint.h>

/* FIPS 180-4, in one call. */
void sha2_256(const void *data, size_t size, uint8_t ret_digest[32]);

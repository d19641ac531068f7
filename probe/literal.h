#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LITERAL_MAC_TEXT = 18 };

/* Each reads the whole of `text` or returns false and writes nothing. */

/* Decimal, or hexadecimal after 0x; no sign, no blanks; within [min, max]. */
bool literal_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret_number);
/* Six pairs of hexadecimal digits, separated by colons. */
bool literal_mac(const char *text, uint8_t ret_mac[6]);
/* Pairs of hexadecimal digits; colons and blanks between pairs are skipped. */
bool literal_hex(const char *text, uint8_t *bytes, size_t capacity, size_t *ret_size);
/* Text with the escapes \r \n \t \0 \\ \xNN. */
bool literal_escaped(const char *text, uint8_t *bytes, size_t capacity, size_t *ret_size);
/* Numbers of at most 16 bits, separated by commas: "0,100". At most `capacity`, at least one. */
bool literal_list16(const char *text, uint16_t *numbers, size_t capacity, size_t *ret_count);
/* "aa:bb:cc:dd:ee:ff"; `text` has LITERAL_MAC_TEXT bytes. Returns `text`. */
const char *literal_mac_text(const uint8_t mac[6], char *text);

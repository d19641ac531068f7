#ifndef BOX_BASE_TEXT_H
#define BOX_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool text_equal(const char *a, const char *b);              /* NULL equals only NULL */
bool text_starts_with(const char *text, const char *prefix);
bool text_ends_with(const char *text, const char *suffix);
bool text_is_empty(const char *text);                        /* NULL or "" */

/* Parses a decimal number without sign, blank, leading zero ("0" itself is fine) or rest, within [minimum, maximum].
 * Returns false, leaving *ret_value alone, otherwise. */
bool text_parse_number(const char *text, uint64_t minimum, uint64_t maximum, uint64_t *ret_value);

/* Edits between two texts: a letter more, less, another, or two neighbours swapped; texts beyond 64 bytes count as far
 * away. For "did you mean". */
unsigned text_distance(const char *a, const char *b);

/* A copy that is safe to print on a terminal: control characters (C0 but newline and tab, DEL, C1), escape sequences
 * and invalid UTF-8 are dropped or replaced by U+FFFD. For everything that a guest wrote. The caller frees. */
char *text_sanitise(const char *data, size_t length);

/* A copy that shows what text_sanitise() would drop: each such byte, and every newline and tab, as \xNN. For words that
 * a person typed, quoted in an error. The caller frees. */
char *text_escape(const char *text);

/* Columns that UTF-8 text takes on a terminal, independent of the locale: wide characters 2, combining ones 0. */
size_t text_columns(const char *text);

/* True where all `length` bytes are well-formed UTF-8 (RFC 3629). */
bool text_is_utf8(const char *data, size_t length);

/* Percent-encodes all but unreserved characters (RFC 3986 section 2.3). The caller frees. */
char *text_url_encode(const char *text);

#endif

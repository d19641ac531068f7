#ifndef BOX_DRILL_PAGE_H
#define BOX_DRILL_PAGE_H

#include "base/buffer.h"
#include "base/json.h"

/* The report as one self-contained HTML page: the matrix of claims, the evidence behind each, timings, host and
 * versions. Readable in light and dark, on paper, and without scripts. Whatever a guest wrote is text in it and
 * nothing else: no string of the report is ever written unescaped. */
void page_write(const json_t *report, struct buffer *page);

/* Appends the text with &, <, >, " and ' as references, and control characters as U+FFFD. NULL appends nothing. */
void page_escape(struct buffer *page, const char *text);

#endif

/* Tables for people: aligned by columns on the screen, cut to the width of the terminal.
 * Not for: machines, which read --json. */
#include "cli/listing.h"

#include "base/memory.h"
#include "base/text.h"

#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define GAP      2 /* blanks between two columns */
#define NARROWEST 4 /* what a column is shortened to at most */
#define ELLIPSIS "…"

void listing_row(struct listing *table, const char *cell, ...)
{
    va_list cells;
    va_start(cells, cell);
    size_t count = 0;
    for (const char *text = cell; text; text = va_arg(cells, const char *)) {
        char *clean = text_sanitise(text, strlen(text));
        for (char *c = clean; *c; c++) {
            if (*c == '\n' || *c == '\t') {
                *c = ' ';
            }
        }
        argv_push_owned(&table->cells, clean);
        count++;
    }
    va_end(cells);
    if (!table->columns) {
        table->columns = count;
    }
    if (count != table->columns) {
        abort();
    }
}

size_t listing_width(FILE *out)
{
    uint64_t columns = 0;
    const char *text = getenv("COLUMNS");
    if (text && text_parse_number(text, 1, 10000, &columns)) {
        return columns;
    }
    struct winsize size = {0};
    if (out && fileno(out) >= 0 && ioctl(fileno(out), TIOCGWINSZ, &size) == 0) {
        return size.ws_col;
    }
    return 0;
}

static size_t sum(const size_t *widths, size_t count)
{
    size_t total = GAP * (count - 1);
    for (size_t i = 0; i < count; i++) {
        total += widths[i];
    }
    return total;
}

/* Takes columns from the widest one, one at a time, until all fit; the first gives only when no other can. */
static void shrink(size_t *widths, size_t count, size_t limit)
{
    while (sum(widths, count) > limit) {
        size_t widest = 0;
        for (size_t i = 1; i < count; i++) {
            if (widths[i] > NARROWEST && (widest == 0 || widths[i] > widths[widest])) {
                widest = i;
            }
        }
        if (widths[widest] <= NARROWEST) {
            return;
        }
        widths[widest]--;
    }
}

/* Bytes of the longest beginning of `text` that takes at most `limit` columns. */
static size_t fit(const char *text, size_t limit)
{
    size_t end = 0;
    for (size_t i = 0; text[i];) {
        size_t next = i + 1;
        while ((text[next] & 0xc0) == 0x80) {
            next++;
        }
        CLEANUP(freep) char *head = xstrndup(text, next);
        if (text_columns(head) > limit) {
            break;
        }
        end = i = next;
    }
    return end;
}

static void print_cell(const char *text, size_t width, bool is_last, FILE *out)
{
    size_t columns = text_columns(text);
    if (columns > width) {
        size_t length = fit(text, width - 1);
        CLEANUP(freep) char *head = xstrndup(text, length);
        columns = text_columns(head) + 1;
        (void)fprintf(out, "%s" ELLIPSIS, head);
    } else {
        (void)fputs(text, out);
    }
    if (!is_last) {
        (void)fprintf(out, "%*s", (int)(width - columns + GAP), "");
    }
}

void listing_print(const struct listing *table, FILE *out)
{
    size_t count = table->columns;
    if (!count) {
        return;
    }
    CLEANUP(freep) size_t *widths = xcalloc(count, sizeof(*widths));
    for (size_t i = 0; i < table->cells.count; i++) {
        size_t columns = text_columns(table->cells.items[i]);
        if (columns > widths[i % count]) {
            widths[i % count] = columns;
        }
    }
    size_t limit = listing_width(out);
    if (limit) {
        shrink(widths, count, limit);
    }
    for (size_t row = 0; row < table->cells.count; row += count) {
        size_t used = count; /* no blanks behind the last cell that says something */
        while (used > 1 && !*table->cells.items[row + used - 1]) {
            used--;
        }
        for (size_t i = 0; i < used; i++) {
            print_cell(table->cells.items[row + i], widths[i], i + 1 == used, out);
        }
        (void)fputc('\n', out);
    }
}

void listing_reset(struct listing *table)
{
    argv_reset(&table->cells);
    table->columns = 0;
}

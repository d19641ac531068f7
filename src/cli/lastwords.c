/* Why a tool in a guest failed, out of all that it wrote.
 * Not for: fetching what it wrote; see transfer.c. */
#include "cli/lastwords.h"

#include "base/memory.h"
#include "base/text.h"

#include <stdbool.h>
#include <string.h>

static void trim(char *text)
{
    for (size_t length = strlen(text); length && (text[length - 1] == '\n' || text[length - 1] == ' ');) {
        text[--length] = '\0';
    }
}

/* Takes the last line off `text`. */
static char *take_line(char *text)
{
    trim(text);
    char *newline = strrchr(text, '\n');
    char *line = xstrdup(newline ? newline + 1 : text);
    *(newline ? newline : text) = '\0';
    trim(text);
    return line;
}

static bool closes(const char *line)
{
    static const char words[] = "tar: Exiting with failure status";
    return strncmp(line, words, sizeof(words) - 1) == 0;
}

char *lastwords_of(const char *data, size_t length)
{
    CLEANUP(freep) char *rest = text_sanitise(data ? data : "", length);
    CLEANUP(freep) char *line = take_line(rest);
    if (!closes(line) || !*rest) {
        return steal(&line);
    }
    CLEANUP(freep) char *cause = take_line(rest);
    size_t more = *rest != '\0';
    for (const char *at = rest; (at = strchr(at, '\n')); at++) {
        more++;
    }
    return more ? xasprintf("%s (and %zu more like it)", cause, more) : steal(&cause);
}

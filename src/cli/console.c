/* The narrator that a person sees: a spinner on a terminal, plain lines in a log.
 * Not for: results, which go to stdout. */
#include "cli/console.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/listing.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOG_INTERVAL 5000 /* milliseconds: silence beyond this looks like a hang */
#define TELL_TIME    100  /* a step that took less says no time */

struct console {
    struct narrator narrator; /* first: the narrator's functions get back from it to the console */
    bool quiet;
    bool terminal;
    bool colour;
    char *step;      /* the running one, or NULL */
    char *progress;  /* what it last said of itself, or NULL */
    int64_t began;
    int64_t spoke;   /* when the log last heard of it */
    unsigned turn;   /* of the spinner */
    bool drawn;      /* the cursor stands behind a spinner line */
};

/* One clean line of what somebody wrote. */
static char *one_line(const char *text)
{
    char *clean = text_sanitise(text, strlen(text));
    size_t length = strlen(clean);
    while (length && clean[length - 1] == '\n') {
        clean[--length] = '\0';
    }
    for (char *c = clean; *c; c++) {
        if (*c == '\n' || *c == '\t') {
            *c = ' ';
        }
    }
    return clean;
}

static void clear_line(struct console *console)
{
    if (console->drawn) {
        (void)fputs("\r\033[K", stderr);
        console->drawn = false;
    }
}

static char *elapsed(const struct console *console)
{
    int64_t passed = clock_now() - console->began;
    if (passed < 10000) {
        return xasprintf("%.1f s", (double)passed / 1000);
    }
    return passed < 60000 ? xasprintf("%d s", (int)(passed / 1000))
                          : xasprintf("%d min %02d s", (int)(passed / 60000), (int)(passed / 1000 % 60));
}

/* "step: progress (12 s)" */
static char *describe(const struct console *console)
{
    CLEANUP(freep) char *time = elapsed(console);
    return console->progress ? xasprintf("%s: %s (%s)", console->step, console->progress, time)
                             : xasprintf("%s (%s)", console->step, time);
}

static void draw(struct console *console)
{
    static const char turns[] = "|/-\\";
    CLEANUP(freep) char *line = describe(console);
    size_t width = listing_width(stderr);
    size_t length = strlen(line);
    while (width > 3 && length && text_columns(line) > width - 3) {
        do {
            length--;
        } while (length && ((unsigned char)line[length] & 0xc0) == 0x80);
        line[length] = '\0';
    }
    (void)fprintf(stderr, "\r\033[K%c %s", turns[console->turn++ % 4], line);
    console->drawn = true;
}

static void end_step(struct console *console, const char *outcome)
{
    if (!console->step) {
        return;
    }
    clear_line(console);
    if (!console->quiet) {
        CLEANUP(freep) char *time = elapsed(console);
        bool slow = clock_now() - console->began >= TELL_TIME;
        (void)fprintf(stderr, "%s: %s%s%s%s\n", console->step, *outcome ? outcome : "done", slow ? " (" : "",
                      slow ? time : "", slow ? ")" : "");
    }
    free(steal(&console->step));
    free(steal(&console->progress));
}

/* A step says itself that it ended well: one that something else cuts off did not. */
static void cut_step_off(struct console *console)
{
    end_step(console, cancel_signal() ? "interrupted" : "failed");
}

static void begin_step(struct console *console, const char *text)
{
    cut_step_off(console);
    console->step = xstrdup(text);
    console->began = console->spoke = clock_now();
    if (console->quiet) {
        return;
    }
    if (console->terminal) {
        draw(console);
    } else {
        (void)fprintf(stderr, "%s ...\n", text);
    }
}

static void say(struct narrator *narrator, enum narrate_kind kind, const char *text)
{
    struct console *console = (struct console *)narrator;
    CLEANUP(freep) char *line = one_line(text);
    switch (kind) {
    case NARRATE_STEP:
        begin_step(console, line);
        break;
    case NARRATE_PROGRESS:
        free(console->progress);
        console->progress = steal(&line);
        break;
    case NARRATE_DONE:
        end_step(console, line);
        break;
    case NARRATE_NOTE:
        if (!console->quiet) {
            clear_line(console);
            (void)fprintf(stderr, "%s\n", line);
        }
        break;
    case NARRATE_WARN:
        clear_line(console);
        (void)fprintf(stderr, "%swarning:%s %s\n", console->colour ? "\033[33m" : "", console->colour ? "\033[0m" : "",
                      line);
        break;
    }
    (void)fflush(stderr);
}

static void tick(struct narrator *narrator)
{
    struct console *console = (struct console *)narrator;
    if (!console->step || console->quiet) {
        return;
    }
    if (console->terminal) {
        draw(console);
    } else if (clock_now() - console->spoke >= LOG_INTERVAL) {
        CLEANUP(freep) char *line = describe(console);
        (void)fprintf(stderr, "still %s\n", line);
        console->spoke = clock_now();
    }
    (void)fflush(stderr);
}

struct console *console_open(bool quiet)
{
    struct console *console = xcalloc(1, sizeof(*console));
    console->narrator = (struct narrator){.say = say, .tick = tick};
    console->quiet = quiet;
    const char *term = getenv("TERM");
    console->terminal = isatty(STDERR_FILENO) && !text_is_empty(term) && !text_equal(term, "dumb");
    console->colour = console->terminal && text_is_empty(getenv("NO_COLOR"));
    return console;
}

struct narrator *console_narrator(struct console *console)
{
    return &console->narrator;
}

void console_trace(void *context, const char *line)
{
    struct console *console = context;
    clear_line(console);
    CLEANUP(freep) char *clean = one_line(line);
    (void)fprintf(stderr, "  %s\n", clean);
}

void console_error(struct console *console, const struct error *err)
{
    end_step(console, err->code == ERR_INTERRUPTED ? "interrupted" : "failed");
    CLEANUP(freep) char *message = one_line(err->message ? err->message : "it failed without a word");
    (void)fprintf(stderr, "%sbox:%s %s\n", console->colour ? "\033[31m" : "", console->colour ? "\033[0m" : "", message);
    CLEANUP(freep) char *remedy = err->remedy ? text_sanitise(err->remedy, strlen(err->remedy)) : NULL;
    for (char *line = remedy; line && *line;) {
        size_t length = strcspn(line, "\n");
        (void)fprintf(stderr, "     %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
    (void)fflush(stderr);
}

void console_ask(struct console *console, const char *question)
{
    end_step(console, "");
    CLEANUP(freep) char *line = one_line(question);
    (void)fprintf(stderr, "%s ", line);
    (void)fflush(stderr);
}

void console_close(struct console *console)
{
    if (!console) {
        return;
    }
    clear_line(console);
    (void)fflush(stderr);
    free(console->step);
    free(console->progress);
    free(console);
}

/* Mirrors src/cli/console.c: what a person, and what a log sees. */
#include "base/buffer.h"
#include "base/fd.h"
#include "base/memory.h"
#include "cli/console.h"
#include "unit.h"

#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

/* stderr goes to `fd` until shown() gives it back. */
static int divert(int fd)
{
    int kept = dup(STDERR_FILENO);
    assert_true(kept >= 0);
    assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    return kept;
}

static void give_back(int kept)
{
    (void)fflush(stderr);
    assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    assert_int_equal(close(kept), 0);
}

/* Takes the times, " (0.0 s)", out: how long it took is the machine's affair. */
static void forget_times(char *text)
{
    for (char *time; (time = strstr(text, " (")) && strstr(time, " s)");) {
        char *rest = strstr(time, " s)") + strlen(" s)");
        memmove(time, rest, strlen(rest) + 1);
    }
}

static void speak(bool quiet)
{
    CLEANUP(console_closep) struct console *console = console_open(quiet);
    struct narrator *narrator = console_narrator(console);
    narrate_step(narrator, "starting %s", "a");
    narrate_progress(narrator, "42%%");
    narrate_tick(narrator);
    narrate_done(narrator, "it runs");
    narrate_note(narrator, "a note");
    narrate_warn(narrator, "mind \033[31mthis\033[0m\nline");
    narrate_step(narrator, "waiting");
    CLEANUP(error_reset) struct error err = {0};
    error_set(&err, ERR_TIMEOUT, "it took too long");
    error_remedy(&err, "look: box info a\nor: box rm a");
    console_error(console, &err);
}

/* What a log file gets. The caller frees. */
static char *logged(bool quiet)
{
    CLEANUP(fd_closep) int file = memfd_create("log", MFD_CLOEXEC);
    int kept = divert(file);
    speak(quiet);
    give_back(kept);
    struct buffer text = {0};
    assert_int_equal(lseek(file, 0, SEEK_SET), 0);
    assert_int_equal(fd_read_all(file, 65536, &text, NULL), 0);
    char *log = buffer_steal(&text);
    forget_times(log);
    return log;
}

static void a_log_gets_plain_lines(void **state)
{
    CLEANUP(freep) char *text = logged(false);
    assert_string_equal(text, "starting a ...\n"
                              "starting a: it runs\n"
                              "a note\n"
                              "warning: mind this line\n"
                              "waiting ...\n"
                              "waiting: failed\n"
                              "box: it took too long\n"
                              "     look: box info a\n"
                              "     or: box rm a\n");
}

/* Birth's way: a step breaks off, the cleanup is a step of its own, and the error comes last. */
static void what_breaks_off_is_never_done(void **state)
{
    static const struct {
        enum error_code code;
        const char *ending;
    } rows[] = {{ERR_STATE, "failed"}, {ERR_INTERRUPTED, "interrupted"}};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        CLEANUP(fd_closep) int file = memfd_create("log", MFD_CLOEXEC);
        CLEANUP(buffer_reset) struct buffer text = {0};
        CLEANUP(error_reset) struct error err = {0};
        struct console *console = console_open(false);
        int kept = divert(file);
        narrate_step(console_narrator(console), "creating");
        narrate_step(console_narrator(console), "cleaning up");
        error_set(&err, rows[i].code, "it went wrong");
        console_error(console, &err);
        give_back(kept);
        console_close(console);
        assert_int_equal(lseek(file, 0, SEEK_SET), 0);
        assert_int_equal(fd_read_all(file, 65536, &text, NULL), 0);
        CLEANUP(freep)
        char *wanted = xasprintf("creating ...\ncreating: failed\ncleaning up ...\ncleaning up: %s\nbox: it went wrong\n",
                                 rows[i].ending);
        CLEANUP(freep) char *log = buffer_steal(&text);
        forget_times(log);
        assert_string_equal(log, wanted);
    }
}

static void quiet_leaves_warnings_and_errors(void **state)
{
    CLEANUP(freep) char *text = logged(true);
    assert_string_equal(text, "warning: mind this line\n"
                              "box: it took too long\n"
                              "     look: box info a\n"
                              "     or: box rm a\n");
}

/* What a terminal of 40 columns gets. The caller frees. */
static char *displayed(const char *term, const char *no_color)
{
    assert_int_equal(setenv("TERM", term, 1), 0);
    assert_int_equal(no_color ? setenv("NO_COLOR", no_color, 1) : unsetenv("NO_COLOR"), 0);
    assert_int_equal(unsetenv("COLUMNS"), 0);
    struct winsize size = {.ws_row = 24, .ws_col = 40};
    CLEANUP(fd_closep) int master = -1;
    CLEANUP(fd_closep) int slave = -1;
    assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
    int kept = divert(slave);
    speak(false);
    give_back(kept);
    fd_closep(&slave);
    struct buffer text = {0};
    /* What was written may arrive in pieces; the end of a terminal is EIO. */
    for (ssize_t got = 1; got > 0;) {
        got = read(master, buffer_reserve(&text, 4096), 4096);
        text.length += got > 0 ? (size_t)got : 0;
    }
    buffer_append_text(&text, "");
    char *shown = buffer_steal(&text);
    assert_true(shown[0] != '\0');
    forget_times(shown);
    return shown;
}

static void a_terminal_gets_one_line_rewritten(void **state)
{
    CLEANUP(freep) char *text = displayed("xterm", NULL);
    assert_non_null(strstr(text, "\r\033[K| starting a"));
    assert_non_null(strstr(text, "\r\033[K/ starting a: 42%"));
    assert_non_null(strstr(text, "\r\033[Kstarting a: it runs\r\n"));
    assert_non_null(strstr(text, "\033[33mwarning:\033[0m mind this line"));
    assert_non_null(strstr(text, "\033[31mbox:\033[0m it took too long"));
}

static void no_color_and_a_dumb_terminal_are_honoured(void **state)
{
    CLEANUP(freep) char *plain = displayed("xterm", "1");
    assert_null(strstr(plain, "\033[3"));
    assert_non_null(strstr(plain, "\r\033[K"));
    CLEANUP(freep) char *dumb = displayed("dumb", NULL);
    assert_null(strchr(dumb, '\033'));
    CLEANUP(freep) char *empty = displayed("xterm", "");
    assert_non_null(strstr(empty, "\033[33m"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_gets_plain_lines),
        cmocka_unit_test(what_breaks_off_is_never_done),
        cmocka_unit_test(quiet_leaves_warnings_and_errors),
        cmocka_unit_test(a_terminal_gets_one_line_rewritten),
        cmocka_unit_test(no_color_and_a_dumb_terminal_are_honoured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Mirrors src/cli/confirm.c: a terminal that a person types into, and none. */
#include "base/fd.h"
#include "base/memory.h"
#include "cli/confirm.h"
#include "cli/console.h"
#include "unit.h"

#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The standard descriptors as they were, while others stand in for them. */
struct kept {
    int input, errors;
};

static struct kept divert(int input, int errors)
{
    struct kept kept = {dup(STDIN_FILENO), dup(STDERR_FILENO)};
    assert_true(kept.input >= 0 && kept.errors >= 0);
    assert_int_equal(dup2(input, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(dup2(errors, STDERR_FILENO), STDERR_FILENO);
    return kept;
}

static void give_back(struct kept kept)
{
    assert_int_equal(dup2(kept.input, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(dup2(kept.errors, STDERR_FILENO), STDERR_FILENO);
    assert_int_equal(close(kept.input) + close(kept.errors), 0);
}

static int ask(bool force, struct error *err)
{
    CLEANUP(console_closep) struct console *console = console_open(false);
    struct context context = {.narrator = console_narrator(console), .force = force};
    return confirm(&context, err, "delete the box %s", "a");
}

/* Types `keys` at the question. Returns what confirm() did; `shown` gets what stood on the screen. */
static int answer(const char *keys, char *shown, size_t room, struct error *err)
{
    CLEANUP(fd_closep) int master = -1;
    CLEANUP(fd_closep) int slave = -1;
    assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
    assert_int_equal(fd_write_all(master, keys, strlen(keys), NULL), 0);
    struct kept kept = divert(slave, slave);
    int result = ask(false, err);
    give_back(kept);
    fd_closep(&slave);
    size_t length = 0;
    /* What was written may arrive in pieces; the end of a terminal is EIO. */
    for (ssize_t got = 1; got > 0 && length < room - 1; length += got > 0 ? (size_t)got : 0) {
        got = read(master, shown + length, room - 1 - length);
    }
    assert_true(length > 0);
    shown[length] = '\0';
    return result;
}

static void asks_naming_the_act(void **state)
{
    char shown[512];
    CLEANUP(error_reset) struct error err = {0};
    assert_int_equal(answer("y\n", shown, sizeof(shown), &err), 0);
    assert_non_null(strstr(shown, "Delete the box a? [y/N] "));
    assert_int_equal(answer("YES\n", shown, sizeof(shown), &err), 0);
}

static void any_other_answer_is_a_no_and_says_so(void **state)
{
    static const char *const keys[] = {"n\n", "\n", "yess\n", " y\n", "\004", "delete\n",
                                       "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\n"};
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
        char shown[512];
        CLEANUP(error_reset) struct error err = {0};
        assert_int_equal(answer(keys[i], shown, sizeof(shown), &err), -1);
        assert_int_equal(err.code, ERR_INTERRUPTED);
        assert_string_equal(err.message, "aborted; nothing was done");
        assert_int_equal(error_exit_status(&err), 1);
    }
}

static void refuses_without_a_terminal(void **state)
{
    CLEANUP(fd_closep) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    assert_true(null >= 0);
    struct kept kept = divert(null, null);
    CLEANUP(error_reset) struct error err = {0};
    int result = ask(false, &err);
    int forced = ask(true, NULL);
    give_back(kept);
    assert_int_equal(result, -1);
    assert_int_equal(error_exit_status(&err), 2);
    assert_non_null(strstr(err.message, "delete the box a"));
    assert_non_null(strstr(err.remedy, "--force"));
    assert_int_equal(forced, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_naming_the_act),
        cmocka_unit_test(any_other_answer_is_a_no_and_says_so),
        cmocka_unit_test(refuses_without_a_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

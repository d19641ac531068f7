/* Mirrors src/base/cancel.c. */
#include "base/cancel.h"
#include "base/fd.h"
#include "unit.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that gets `signals` of them, all but the first while it cleans up or not; its wait status, and what it said on
 * stderr. */
static int suffer(int signals, bool cleaning, char *said, size_t room)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        cancel_install();
        raise(SIGTERM);
        struct pollfd polled = {.fd = cancel_fd(), .events = POLLIN};
        bool heard = poll(&polled, 1, 0) == 1 && cancel_requested() && cancel_signal() == SIGTERM;
        cancel_mask(cleaning);
        for (int i = 1; i < signals; i++) {
            raise(SIGTERM);
        }
        _exit(heard && cancel_requested() != cleaning && (cancel_fd() < 0) == cleaning ? 7 : 8);
    }
    int status = 0;
    close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    ssize_t got = read(ends[0], said, room - 1);
    said[got > 0 ? got : 0] = '\0';
    close(ends[0]);
    return status;
}

static void the_first_is_a_request(void **state)
{
    char said[200];
    int status = suffer(1, false, said, sizeof(said));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_string_equal(said, "");
}

static void the_second_kills(void **state)
{
    char said[200];
    int status = suffer(2, false, said, sizeof(said));
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
    assert_string_equal(said, "");
}

static void while_cleaning_up_it_is_told_to_wait_and_the_next_kills(void **state)
{
    char said[200];
    int status = suffer(2, true, said, sizeof(said));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_non_null(strstr(said, "cleaning up; once more"));
    status = suffer(3, true, said, sizeof(said));
    assert_true(WIFSIGNALED(status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_is_a_request),
        cmocka_unit_test(the_second_kills),
        cmocka_unit_test(while_cleaning_up_it_is_told_to_wait_and_the_next_kills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

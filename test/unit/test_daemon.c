/* Where the daemon is looked for, and what is told where it is not.
 * Not for: permissions, which need users; the lab's tests have some. */
#include "unit.h"

#include "base/fd.h"
#include "base/memory.h"
#include "incus/daemon.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int no_environment(void **state)
{
    return unsetenv("INCUS_SOCKET") || unsetenv("INCUS_DIR");
}

static void the_environment_comes_first(void **state)
{
    setenv("INCUS_DIR", "/somewhere", 1);
    CLEANUP(freep) char *directory = daemon_find();
    assert_string_equal(directory, "/somewhere/unix.socket");
    setenv("INCUS_SOCKET", "/elsewhere/s", 1);
    CLEANUP(freep) char *socket_path = daemon_find();
    assert_string_equal(socket_path, "/elsewhere/s");
}

static void an_empty_variable_is_none(void **state)
{
    setenv("INCUS_SOCKET", "", 1);
    setenv("INCUS_DIR", "", 1);
    CLEANUP(freep) char *path = daemon_find();
    assert_string_equal(path + strlen(path) - strlen("incus/unix.socket"), "incus/unix.socket");
}

static void expect_failure(const char *path, enum error_code code)
{
    CLEANUP(error_reset) struct error err = {0};
    int fd = -7;
    assert_int_equal(daemon_connect(path, &fd, &err), -1);
    assert_int_equal(err.code, code);
    assert_int_equal(fd, -7);
    assert_true(code == ERR_USAGE || err.remedy);
}

static void nobody_is_there(void **state)
{
    expect_failure("/nonexistent/unix.socket", ERR_NO_DAEMON);
    expect_failure("/proc/self/status/unix.socket", ERR_NO_DAEMON);
    char path[300];
    memset(path, 'a', sizeof(path));
    path[sizeof(path) - 1] = '\0';
    expect_failure(path, ERR_USAGE);
}

static void a_socket_that_nobody_listens_on(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/box-daemon-%d", getpid());
    CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    expect_failure(address.sun_path, ERR_NO_DAEMON);
    assert_int_equal(listen(fd, 1), 0);
    CLEANUP(fd_closep) int connected = -1;
    assert_int_equal(daemon_connect(address.sun_path, &connected, NULL), 0);
    assert_true(connected >= 0);
    unlink(address.sun_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_environment_comes_first, no_environment),
        cmocka_unit_test_setup(an_empty_variable_is_none, no_environment),
        cmocka_unit_test_setup(nobody_is_there, no_environment),
        cmocka_unit_test_setup(a_socket_that_nobody_listens_on, no_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Mirrors src/base/fd.c. */
#include "base/fd.h"
#include "base/memory.h"
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_directory(void **state)
{
    char *directory = xstrdup("/tmp/box-fd-XXXXXX");
    *state = directory;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    static const char *const names[] = {"file", "fifo", "a/b/c", "a/b", "a"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        CLEANUP(freep) char *path = xasprintf("%s/%s", (char *)*state, names[i]);
        (void)remove(path);
    }
    int result = rmdir(*state);
    free(*state);
    return result;
}

static void writes_and_reads_back_with_its_mode(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(buffer_reset) struct buffer data = {0};
    CLEANUP(freep) char *path = xasprintf("%s/file", (char *)*state);
    assert_int_equal(fd_write_file(path, "a\0b", 3, 0600, &err), 0);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(fd_read_file(path, 3, &data, &err), 0);
    assert_int_equal(data.length, 3);
    assert_memory_equal(data.data, "a\0b", 3);
}

static void refuses_more_than_the_ceiling(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(buffer_reset) struct buffer data = {0};
    CLEANUP(freep) char *path = xasprintf("%s/file", (char *)*state);
    assert_int_equal(fd_write_file(path, "12345", 5, 0600, &err), 0);
    assert_int_equal(fd_read_file(path, 4, &data, &err), -1);
    assert_int_equal(err.code, ERR_SYSTEM);
}

static void removes_a_file_and_what_a_killed_write_left(void **state)
{
    static const char *const names[] = {"file", "file.AbC123", "file.conf", "other.AbC123"};
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(freep) char *path = xasprintf("%s/file", (char *)*state);
    assert_int_equal(fd_remove_file(path, &err), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        CLEANUP(freep) char *one = xasprintf("%s/%s", (char *)*state, names[i]);
        assert_int_equal(fd_write_file(one, "a", 1, 0600, &err), 0);
    }
    assert_int_equal(fd_remove_file(path, &err), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        CLEANUP(freep) char *one = xasprintf("%s/%s", (char *)*state, names[i]);
        assert_int_equal(access(one, F_OK), i < 2 ? -1 : 0);
        (void)unlink(one);
    }
}

static void tells_absent_from_unfit(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(buffer_reset) struct buffer data = {0};
    CLEANUP(freep) char *absent = xasprintf("%s/absent", (char *)*state);
    CLEANUP(freep) char *fifo = xasprintf("%s/fifo", (char *)*state);
    assert_int_equal(fd_read_file(absent, 10, &data, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(fd_read_file(fifo, 10, &data, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_int_equal(fd_read_file(*state, 10, &data, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
}

static void makes_directories_twice(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(freep) char *path = xasprintf("%s/a/b/c", (char *)*state);
    assert_int_equal(fd_make_directories(path, 0755, &err), 0);
    assert_int_equal(fd_make_directories(path, 0755, &err), 0);
    assert_int_equal(access(path, F_OK), 0);
}

static void closing_twice_is_fine(void **state)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    fd_closep(&fd);
    assert_int_equal(fd, -1);
    fd_closep(&fd);
    assert_int_equal(fd, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_and_reads_back_with_its_mode, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(refuses_more_than_the_ceiling, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(removes_a_file_and_what_a_killed_write_left, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(tells_absent_from_unfit, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(makes_directories_twice, make_directory, remove_directory),
        cmocka_unit_test(closing_twice_is_fine),
    };
    return cmocka_run_group_tests_name("fd", tests, NULL, NULL);
}

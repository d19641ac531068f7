/* Mirrors src/base/unpack.c, with tarwrite.c as the one that writes: what stands at the target already. */
#include "base/buffer.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/tarwrite.h"
#include "base/unpack.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* A directory of the test, which is where it then is. */
static int enter_place(void **state)
{
    char directory[] = "/tmp/test-unpack-XXXXXX";
    assert_non_null(mkdtemp(directory));
    *state = xstrdup(directory);
    return chdir(directory);
}

static int leave_place(void **state)
{
    static const char *const names[] = {"tree/file", "tree", "source/file", "source", "file", "link", "fifo", "socket"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        (void)remove(names[i]);
    }
    CLEANUP(freep) char *directory = *state;
    return chdir("/") < 0 ? -1 : rmdir(directory);
}

static void write_text(const char *path, const char *text)
{
    assert_int_equal(fd_write_file(path, text, strlen(text), 0640, NULL), 0);
}

static void expect_text(const char *path, const char *text)
{
    CLEANUP(buffer_reset) struct buffer data = {0};
    assert_int_equal(fd_read_file(path, 4096, &data, NULL), 0);
    assert_int_equal(data.length, strlen(text));
    assert_memory_equal(data.data, text, data.length);
}

static enum error_code unpack_words(const char *path, const char *name, const char *target, char **ret_message)
{
    CLEANUP(fd_closep) int fd = memfd_create("archive", MFD_CLOEXEC);
    CLEANUP(error_reset) struct error err = {0};
    const struct tarwrite out = {.fd = fd};
    assert_int_equal(tarwrite_add(&out, path, name, NULL), 0);
    assert_int_equal(tarwrite_end(&out, NULL), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    const struct unpack in = {.fd = fd};
    (void)unpack_run(&in, target, &err);
    *ret_message = xstrdup(err.message ? err.message : "");
    return err.code;
}

static void make_source(void)
{
    assert_int_equal(mkdir("source", 0755), 0);
    write_text("source/file", "new");
}

static void expect_refused(const char *path, const char *name, const char *target, const char *why)
{
    CLEANUP(freep) char *message = NULL;
    assert_int_equal(unpack_words(path, name, target, &message), ERR_STATE);
    assert_non_null(strstr(message, why));
}

static void what_is_no_file_is_not_replaced(void **state)
{
    struct stat status;
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    CLEANUP(fd_closep) int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    make_source();
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    expect_refused("source/file", "x", "fifo", "fifo is a FIFO");
    expect_refused("source", ".", "fifo", "fifo is a FIFO");
    expect_refused("source/file", "x", "socket", "socket is a socket");
    assert_int_equal(symlink("fifo", "link"), 0);
    expect_refused("source/file", "x", "link", "is a FIFO");
    assert_int_equal(lstat("fifo", &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    assert_int_equal(lstat("socket", &status), 0);
    assert_true(S_ISSOCK(status.st_mode));
}

/* Looked at, never written to: a device of this machine stands behind it. */
static void a_device_is_refused_before_anything_moves(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(freep) char *final = NULL;
    assert_int_equal(unpack_resolve("/dev/null", &final, &err), -1);
    assert_int_equal(err.code, ERR_STATE);
    assert_non_null(strstr(err.message, "/dev/null is a character device"));
    assert_null(final);
}

static void neither_is_one_inside_a_tree(void **state)
{
    struct stat status;
    make_source();
    assert_int_equal(mkdir("tree", 0755), 0);
    assert_int_equal(mkfifo("tree/file", 0600), 0);
    expect_refused("source", ".", "tree", "file is a FIFO");
    assert_int_equal(lstat("tree/file", &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
}

static void a_link_that_was_named_is_followed(void **state)
{
    CLEANUP(freep) char *message = NULL;
    struct stat status;
    make_source();
    write_text("file", "old");
    assert_int_equal(symlink("file", "link"), 0);
    assert_int_equal(unpack_words("source/file", "x", "link", &message), ERR_NONE);
    expect_text("file", "new");
    assert_int_equal(lstat("link", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
}

static void a_link_that_leads_nowhere_is_refused(void **state)
{
    struct stat status;
    make_source();
    assert_int_equal(symlink("file", "link"), 0);
    expect_refused("source/file", "x", "link", "leads to nothing");
    assert_int_equal(lstat("file", &status), -1);
    assert_int_equal(lstat("link", &status), 0);
}

static void a_file_without_a_size_is_what_reading_it_yields(void **state)
{
    CLEANUP(freep) char *message = NULL;
    assert_int_equal(unpack_words("/proc/sys/kernel/ostype", "x", "file", &message), ERR_NONE);
    expect_text("file", "Linux\n");
}

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter_place, leave_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_PLACE(what_is_no_file_is_not_replaced),      IN_PLACE(a_device_is_refused_before_anything_moves),
        IN_PLACE(neither_is_one_inside_a_tree),         IN_PLACE(a_link_that_was_named_is_followed),
        IN_PLACE(a_link_that_leads_nowhere_is_refused), IN_PLACE(a_file_without_a_size_is_what_reading_it_yields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

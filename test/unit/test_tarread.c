/* Mirrors src/base/tarread.c, with tarwrite.c as the one that writes. */
#include "base/fd.h"
#include "base/memory.h"
#include "base/tarblock.h"
#include "base/tarread.h"
#include "base/tarwrite.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int archive(void)
{
    int fd = memfd_create("archive", MFD_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void write_file(const char *directory, const char *name, const char *text)
{
    CLEANUP(freep) char *path = xasprintf("%s/%s", directory, name);
    assert_int_equal(fd_write_file(path, text, strlen(text), 0640, NULL), 0);
}

static void reads_what_was_written(void **state)
{
    char directory[] = "/tmp/test-tarread-XXXXXX";
    assert_non_null(mkdtemp(directory));
    char longest[201];
    memset(longest, 'n', 200);
    longest[200] = '\0';
    write_file(directory, longest, "words");
    CLEANUP(fd_closep) int fd = archive();
    uint64_t moved = 0;
    const struct tarwrite out = {.fd = fd, .moved = &moved};
    assert_int_equal(tarwrite_size(directory), 5);
    assert_int_equal(tarwrite_add(&out, directory, "tree", NULL), 0);
    assert_int_equal(tarwrite_end(&out, NULL), 0);
    assert_int_equal(moved, 5);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    CLEANUP(tarread_closep) struct tarread *reader = tarread_open(fd);
    const struct tarread_entry *entry = NULL;
    assert_int_equal(tarread_next(reader, &entry, NULL), 0);
    assert_string_equal(entry->name, "tree/");
    assert_int_equal(entry->kind, TARREAD_DIRECTORY);
    assert_int_equal(tarread_next(reader, &entry, NULL), 0);
    CLEANUP(freep) char *expected = xasprintf("tree/%s", longest);
    assert_string_equal(entry->name, expected);
    assert_int_equal(entry->mode, 0640);
    assert_int_equal(entry->size, 5);
    char data[16];
    assert_int_equal(tarread_data(reader, data, sizeof(data), NULL), 5);
    assert_memory_equal(data, "words", 5);
    assert_int_equal(tarread_data(reader, data, sizeof(data), NULL), 0);
    assert_int_equal(tarread_next(reader, &entry, NULL), 0);
    assert_null(entry);
    CLEANUP(freep) char *path = xasprintf("%s/%s", directory, longest);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

/* A header of a file with that size field; its sum is right. */
static void put_header(int fd, const char *size)
{
    union tarblock block = {.field = {.name = "f", .mode = "0000644", .mtime = "0", .type = TARBLOCK_FILE}};
    memcpy(block.field.size, size, 12);
    (void)snprintf(block.field.sum, sizeof(block.field.sum), "%06o", tarblock_sum(&block));
    assert_int_equal(fd_write_all(fd, &block, sizeof(block), NULL), 0);
}

static enum error_code code_of(int fd)
{
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(tarread_closep) struct tarread *reader = tarread_open(fd);
    const struct tarread_entry *entry = NULL;
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    do {
        if (tarread_next(reader, &entry, &err) < 0) {
            return err.code;
        }
    } while (entry);
    return ERR_NONE;
}

static void a_stream_that_stops_early_is_told(void **state)
{
    static const size_t cuts[] = {0, 1, 511, 512, 513, 1023, 1024, 1025, 1535, 1536, 1537, 2047};
    CLEANUP(fd_closep) int whole = archive();
    const struct tarwrite out = {.fd = whole};
    char zeros[512] = {0};
    put_header(whole, "00000000777");
    assert_int_equal(fd_write_all(whole, zeros, sizeof(zeros), NULL), 0);
    assert_int_equal(tarwrite_end(&out, NULL), 0);
    assert_int_equal(code_of(whole), ERR_NONE);
    for (size_t i = 0; i < ARRAY_LENGTH(cuts); i++) {
        if (cuts[i] >= 1536) { /* the first of the two blocks at the end is enough */
            continue;
        }
        CLEANUP(fd_closep) int cut = archive();
        char data[2048];
        assert_true(pread(whole, data, sizeof(data), 0) > 0);
        assert_int_equal(fd_write_all(cut, data, cuts[i], NULL), 0);
        assert_int_equal(code_of(cut), ERR_PROTOCOL);
    }
}

static void sizes_that_are_none_are_refused(void **state)
{
    static const char *const sizes[] = {"0000000077x", "\x80\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
                                        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"};
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        CLEANUP(fd_closep) int fd = archive();
        put_header(fd, sizes[i]);
        assert_int_equal(code_of(fd), ERR_PROTOCOL);
    }
}

/* Lets the file grow when its header has come: with a pipe in between, no later than its end. */
static void grow_and_drain(int fd, const char *path)
{
    char data[4096];
    FILE *file = read(fd, data, 512) == 512 ? fopen(path, "ae") : NULL;
    if (!file || fputs("more", file) < 0 || fclose(file) != 0) {
        _exit(1);
    }
    while (read(fd, data, sizeof(data)) > 0) {
    }
    _exit(0);
}

static void growth_is_told(void **state)
{
    char path[] = "/tmp/test-tarread-XXXXXX";
    CLEANUP(fd_closep) int file = mkstemp(path);
    int ends[2];
    assert_int_equal(ftruncate(file, 1 << 20), 0);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(ends[1]);
        grow_and_drain(ends[0], path);
    }
    (void)close(ends[0]);
    struct tally grown = {0};
    uint64_t moved = 0;
    const struct tarwrite out = {.fd = ends[1], .moved = &moved, .grown = &grown};
    assert_int_equal(tarwrite_add(&out, path, "x", NULL), 0);
    (void)close(ends[1]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    (void)unlink(path);
    assert_int_equal(status, 0);
    assert_int_equal(moved, 1 << 20);
    assert_int_equal(grown.count, 1);
    assert_string_equal(grown.names[0], path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_was_written),
        cmocka_unit_test(a_stream_that_stops_early_is_told),
        cmocka_unit_test(growth_is_told),
        cmocka_unit_test(sizes_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

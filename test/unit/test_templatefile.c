/* Mirrors src/box/templatefile.c. */
#include "base/fd.h"
#include "base/memory.h"
#include "box/templatefile.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/box-templatefile-XXXXXX";

static int make_file(void **state)
{
    int fd = mkstemp(path);

    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    return unlink(path);
}

typedef int reader(const char *path, struct buffer *ret_data, struct error *err);

/* Reads it; `says` NULL: it is taken as it is. */
static void assert_read(reader *read, const char *data, size_t length, const char *says)
{
    CLEANUP(buffer_reset) struct buffer got = {0};
    CLEANUP(error_reset) struct error err = {0};

    assert_int_equal(fd_write_file(path, data, length, 0644, NULL), 0);
    if (!says) {
        assert_int_equal(read(path, &got, &err), 0);
        assert_int_equal(got.length, length);
        assert_true(length == 0 || memcmp(got.data, data, length) == 0);
        return;
    }
    assert_int_equal(read(path, &got, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_memory_equal(err.message, path, strlen(path));
    if (!strstr(err.message, says)) {
        fail_msg("'%s' does not say '%s'", err.message, says);
    }
}

#define READ(reader, text, says) assert_read(reader, text, sizeof(text) - 1, says)

static void user_data_is_what_yaml_can_be(void **state)
{
    reader *read = templatefile_read_user_data;

    READ(read, "", NULL);
    READ(read, "#cloud-config\r\n\t\xc3\xa4 \xc2\x85 \xc2\xa0 \xe2\x80\xa8\n", NULL);
    READ(read, "#cloud-config\na: \"\xc2\x9b\"\n", ":2: a control character (U+009B)");
    READ(read, "#cloud-config\n\na: \"\x1b[2J\"\n", ":3: a control character (U+001B)");
    READ(read, "#cloud-config\n\x7f", ":2: a control character (U+007F)");
    READ(read, "\x1f\x8b\x08 and more", "compressed with gzip");
    READ(read, "a\0b", "a NUL byte");
    READ(read, "caf\xe9\n", "not UTF-8");
}

static void user_data_may_be_a_script(void **state)
{
    READ(templatefile_read_user_data, "#!/bin/sh\nprintf '\x1b[0m'\n", NULL);
    READ(templatefile_read_user_data, "#!/bin/sh\r\ntrue\r\n", ":1: a carriage return");
}

static void a_script_can_be_run(void **state)
{
    reader *read = templatefile_read_script;

    READ(read, "#!/bin/sh\ntrue\n", NULL);
    READ(read, "true\n", ":1: a script begins with #!");
    READ(read, "", ":1: a script begins with #!");
    READ(read, "#!/bin/sh\ntrue\r\n", ":2: a carriage return");
    READ(read, "#!/bin/sh\n\xff\n", "not UTF-8");
    CLEANUP(freep) char *large = xmalloc(TEMPLATEFILE_CEILING + 1);

    memset(large, '#', TEMPLATEFILE_CEILING + 1);
    large[1] = '!';
    assert_read(read, large, TEMPLATEFILE_CEILING, NULL);
    assert_read(read, large, TEMPLATEFILE_CEILING + 1, "larger than 1 MiB");
}

static void a_script_need_not_be_there(void **state)
{
    CLEANUP(buffer_reset) struct buffer data = {0};
    CLEANUP(error_reset) struct error err = {0};

    assert_int_equal(templatefile_read_script("/nonexistent/converge.sh", &data, NULL), 0);
    assert_int_equal(data.length, 0);
    assert_int_equal(templatefile_read_script("/dev/null", &data, &err), -1);
    assert_string_equal(err.message, "/dev/null: a device, not a file");
}

/* A link would carry what it leads to into a box, whoever may read that. */
static void no_link_is_followed(void **state)
{
    static reader *const readers[] = {templatefile_read_env, templatefile_read_user_data, templatefile_read_script};
    CLEANUP(freep) char *link = xasprintf("%s.link", path);

    assert_int_equal(fd_write_file(path, "#!/bin/sh\n", 10, 0644, NULL), 0);
    for (size_t i = 0; i < 2 * ARRAY_LENGTH(readers); i++) {
        CLEANUP(buffer_reset) struct buffer data = {0};
        CLEANUP(error_reset) struct error err = {0};

        assert_int_equal(symlink(i % 2 == 0 ? path : "nowhere", link), 0);
        assert_int_equal(readers[i / 2](link, &data, &err), -1);
        assert_int_equal(unlink(link), 0);
        assert_int_equal(err.code, ERR_USAGE);
        assert_int_equal(data.length, 0);
        assert_memory_equal(err.message, link, strlen(link));
        assert_non_null(strstr(err.message, ": a symbolic link"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(user_data_is_what_yaml_can_be),
        cmocka_unit_test(user_data_may_be_a_script),
        cmocka_unit_test(a_script_can_be_run),
        cmocka_unit_test(a_script_need_not_be_there),
        cmocka_unit_test(no_link_is_followed),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}

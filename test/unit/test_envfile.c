/* Mirrors src/box/envfile.c. */
#include "base/argv.h"
#include "base/memory.h"
#include "box/envfile.h"
#include "unit.h"

#include <string.h>

#define CEILING 64

static int collect(void *context, const char *key, const char *value, struct error *err)
{
    if (strcmp(key, "REFUSED") == 0) {
        return error_set(err, ERR_USAGE, "not that one");
    }
    argv_push_format(context, "%s|%s", key, value);
    return 0;
}

static int read(const char *data, size_t length, struct argv *pairs, struct error *err)
{
    return envfile_read("F", data, length, CEILING, collect, pairs, err);
}

static void reads_pairs_in_order(void **state)
{
    const char *text = "# comment\n\n   \t\nA=\"1\"\nB_2=\"\"\n#X=\"1\"\nC=\"a # b $HOME `x` 'y' \xc3\xa4\"";
    CLEANUP(argv_reset) struct argv pairs = {0};

    assert_int_equal(read(text, strlen(text), &pairs, NULL), 0);
    CLEANUP(freep) char *all = argv_join(&pairs, "\n");
    assert_string_equal(all, "A|1\nB_2|\nC|a # b $HOME `x` 'y' \xc3\xa4");
}

static void takes_an_empty_file(void **state)
{
    CLEANUP(argv_reset) struct argv pairs = {0};

    assert_int_equal(read("", 0, &pairs, NULL), 0);
    assert_int_equal(read("\n\n", 2, &pairs, NULL), 0);
    assert_int_equal(pairs.count, 0);
}

static void refuses_every_other_shape_with_its_line(void **state)
{
    const char *const lines[] = {"A=1",         "A='1'",           "A = \"1\"",   " A=\"1\"",  "A=\"1\" ",
                                 "A=\"1\" # x", "export A=\"1\"",  "A=\"1",       "A=\"",      "A=",
                                 "A",           "=\"1\"",          "\"A\"=\"1\"", "A=\"1\"\"", "A=\"x\"y\"z\"",
                                 "A+=\"1\"",    "A=\"1\";B=\"2\"", "a=\"1\"",     "A-B=\"1\"", "  # late"};

    for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
        CLEANUP(argv_reset) struct argv pairs = {0};
        CLEANUP(error_reset) struct error err = {0};
        CLEANUP(freep) char *text = xasprintf("G=\"1\"\n%s\nH=\"2\"\n", lines[i]);
        assert_int_equal(read(text, strlen(text), &pairs, &err), -1);
        assert_int_equal(err.code, ERR_USAGE);
        assert_memory_equal(err.message, "F:2: ", 5);
        assert_int_equal(pairs.count, 1);
    }
}

static void refuses_bytes_that_no_line_may_hold(void **state)
{
    static const struct {
        const char *text;
        size_t length;
        const char *says;
    } rows[] = {
        {"A=\"1\"\r\n", 7, "F:1: a carriage return"},
        {"A=\"1\r\"\n", 7, "F:1: a carriage return"},
        {"\r\n", 2, "F:1: a carriage return"},
        {"#\r\n", 3, "F:1: a carriage return"},
        {"\xef\xbb\xbf"
         "A=\"1\"\n",
         9, "F:1: a byte order mark"},
        {"A=\"1\0\"\n", 7, "F:1: a NUL"},
        {"#\0\n", 3, "F:1: a NUL"},
        {"A=\"\x1b[m\"\n", 8, "F:1: a control"},
        {"A=\"\x7f\"\n", 6, "F:1: a control"},
        {"A=\"\xff\"\n", 6, "F:1: bytes that are not UTF-8"},
        {"\nA=\"\xc3\"\n", 7, "F:2: bytes that are not UTF-8"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        CLEANUP(argv_reset) struct argv pairs = {0};
        CLEANUP(error_reset) struct error err = {0};
        assert_int_equal(read(rows[i].text, rows[i].length, &pairs, &err), -1);
        assert_int_equal(err.code, ERR_USAGE);
        assert_memory_equal(err.message, rows[i].says, strlen(rows[i].says));
        assert_int_equal(pairs.count, 0);
    }
}

static void refuses_a_line_of_a_megabyte(void **state)
{
    size_t length = 1024 * 1024;
    CLEANUP(freep) char *text = xmalloc(length);
    CLEANUP(argv_reset) struct argv pairs = {0};
    CLEANUP(error_reset) struct error err = {0};

    memset(text, 'x', length);
    memcpy(text, "A=\"", 3);
    text[length - 1] = '"';
    assert_int_equal(read(text, length, &pairs, &err), -1);
    assert_memory_equal(err.message, "F:1: ", 5);
    assert_true(strlen(err.message) < 200);
    assert_int_equal(pairs.count, 0);
}

static void passes_the_handlers_error_on(void **state)
{
    const char *text = "A=\"1\"\nREFUSED=\"1\"\n";
    CLEANUP(argv_reset) struct argv pairs = {0};
    CLEANUP(error_reset) struct error err = {0};

    assert_int_equal(read(text, strlen(text), &pairs, &err), -1);
    assert_string_equal(err.message, "F:2: not that one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_pairs_in_order),
        cmocka_unit_test(takes_an_empty_file),
        cmocka_unit_test(refuses_every_other_shape_with_its_line),
        cmocka_unit_test(refuses_bytes_that_no_line_may_hold),
        cmocka_unit_test(refuses_a_line_of_a_megabyte),
        cmocka_unit_test(passes_the_handlers_error_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

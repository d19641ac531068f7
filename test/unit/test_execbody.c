/* An exec request's JSON, and arguments that JSON cannot carry.
 * Not for: running it. */
#include "unit.h"

#include "base/memory.h"
#include "base/process.h"
#include "incus/execbody.h"

#include <string.h>

static void a_plain_command(void **state)
{
    const char *const command[] = {"sh", "-c", "", "\xc3\xa4 \n", NULL};
    CLEANUP(json_freep) json_t *array = execbody_command(command);
    assert_int_equal(json_array_size(array), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(json_string_value(json_array_get(array, i)), command[i]);
    }
}

/* The shell that carries them is really run: what it hands on must be the bytes that went in. */
static void a_command_that_is_not_utf8(void **state)
{
    const char *const command[] = {"printf",        "%s|", "\xff",     "plain $x", "a\xfe\n\n",
                                   "'\x80%s\\n`\"", "",    "\n\xff\n", NULL};
    CLEANUP(json_freep) json_t *array = execbody_command(command);
    CLEANUP(argv_reset) struct argv argv = {0};
    for (size_t i = 0; i < json_array_size(array); i++) {
        argv_push(&argv, json_string_value(json_array_get(array, i)));
    }
    assert_string_equal(argv.items[0], "/bin/sh");
    CLEANUP(freep) char *output = NULL;
    assert_int_equal(process_check((const char *const *)argv.items, NULL, &output, NULL), 0);
    assert_string_equal(output, "\xff|plain $x|a\xfe\n\n|'\x80%s\\n`\"||\n\xff\n|");
}

static void more_than_nine_arguments(void **state)
{
    const char *const command[] = {"printf", "%s,", "\xff", "1", "2",  "3",  "4", "5",
                                   "6",      "7",   "8",    "9", "10", "11", NULL};
    CLEANUP(json_freep) json_t *array = execbody_command(command);
    CLEANUP(argv_reset) struct argv argv = {0};
    for (size_t i = 0; i < json_array_size(array); i++) {
        argv_push(&argv, json_string_value(json_array_get(array, i)));
    }
    CLEANUP(freep) char *output = NULL;
    assert_int_equal(process_check((const char *const *)argv.items, NULL, &output, NULL), 0);
    assert_string_equal(output, "\xff,1,2,3,4,5,6,7,8,9,10,11,");
}

static void the_whole_request(void **state)
{
    const char *const command[] = {"id", NULL};
    CLEANUP(json_freep) json_t *environment = json_pack("{s:s}", "A", "b");
    const struct exec_request request = {.command = command,
                                         .environment = environment,
                                         .user = 4294967294U,
                                         .group = 7,
                                         .directory = "/home/dev",
                                         .interactive = true};
    CLEANUP(json_freep) json_t *body = NULL;
    assert_int_equal(execbody_make(&request, 80, 24, &body, NULL), 0);
    assert_int_equal(json_number(body, "user", 0), 4294967294);
    assert_int_equal(json_number(body, "group", 0), 7);
    assert_int_equal(json_number(body, "width", 0), 80);
    assert_int_equal(json_number(body, "height", 0), 24);
    assert_true(json_truth(body, "interactive"));
    assert_true(json_truth(body, "wait-for-websocket"));
    assert_string_equal(json_text(body, "cwd"), "/home/dev");
    assert_string_equal(json_string_value(json_path(body, "environment", "A", NULL)), "b");
}

static void what_cannot_be_asked(void **state)
{
    const char *const none[] = {NULL};
    const char *const command[] = {"id", NULL};
    CLEANUP(error_reset) struct error err = {0};
    json_t *body = NULL;
    const struct exec_request empty = {.command = none}, odd = {.command = command, .directory = "/\xff"};
    assert_int_equal(execbody_make(&empty, 0, 0, &body, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_int_equal(execbody_make(&odd, 0, 0, &body, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_null(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_command),      cmocka_unit_test(a_command_that_is_not_utf8),
        cmocka_unit_test(the_whole_request),    cmocka_unit_test(more_than_nine_arguments),
        cmocka_unit_test(what_cannot_be_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

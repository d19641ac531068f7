/* Mirrors src/base/buffer.c. */
#include "base/buffer.h"
#include "base/memory.h"
#include "unit.h"

#include <string.h>

static void empty_buffer_yields_empty_text(void **state)
{
    struct buffer buffer = {0};
    CLEANUP(freep) char *text = buffer_steal(&buffer);
    assert_string_equal(text, "");
}

static void keeps_nuls_and_terminates(void **state)
{
    CLEANUP(buffer_reset) struct buffer buffer = {0};
    buffer_append(&buffer, "a\0b", 3);
    assert_int_equal(buffer.length, 3);
    assert_memory_equal(buffer.data, "a\0b", 4);
}

static void grows_by_many_small_appends(void **state)
{
    CLEANUP(buffer_reset) struct buffer buffer = {0};
    for (int i = 0; i < 10000; i++) {
        buffer_append_format(&buffer, "%d,", i % 10);
    }
    assert_int_equal(buffer.length, 20000);
    assert_int_equal(buffer.data[19998], '9');
    assert_int_equal(buffer.data[20000], '\0');
}

static void consumes_from_the_front(void **state)
{
    CLEANUP(buffer_reset) struct buffer buffer = {0};
    buffer_append_text(&buffer, "headbody");
    buffer_consume(&buffer, 4);
    assert_string_equal(buffer.data, "body");
    buffer_consume(&buffer, 4);
    assert_int_equal(buffer.length, 0);
    assert_string_equal(buffer.data, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_buffer_yields_empty_text),
        cmocka_unit_test(keeps_nuls_and_terminates),
        cmocka_unit_test(grows_by_many_small_appends),
        cmocka_unit_test(consumes_from_the_front),
    };
    return cmocka_run_group_tests_name("buffer", tests, NULL, NULL);
}

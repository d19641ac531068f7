/* Mirrors src/box/tag.c. */
#include "base/text.h"
#include "box/tag.h"
#include "unit.h"

#include <string.h>

static json_t *instance(const char *key, const char *value)
{
    json_t *object = json_pack("{s:s, s:{s:s}}", "name", "a", "config", key, value);

    assert_non_null(object);
    return object;
}

static void knows_both_generations_and_nothing_else(void **state)
{
    static const struct {
        const char *key, *value;
        bool is_box;
    } rows[] = {
        {"user.box", "1", true},       {"user.claudebox", "1", true}, {"user.box", "true", false},
        {"user.box", "11", false},     {"user.box", "", false},       {"user.box", "0", false},
        {"user.box.user", "1", false}, {"user.Box", "1", false},      {"user.boxx", "1", false},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        CLEANUP(json_freep) json_t *object = instance(rows[i].key, rows[i].value);
        assert_int_equal(tag_is_box(object), rows[i].is_box);
    }
    assert_false(tag_is_box(NULL));
}

/* A profile that carries the tag would make boxes of everybody's instances. */
static void does_not_count_profiles(void **state)
{
    CLEANUP(json_freep)
    json_t *object = json_pack("{s:{}, s:{s:s}}", "config", "expanded_config", "user.box", "1");

    assert_false(tag_is_box(object));
}

static void survives_shapes_that_are_none(void **state)
{
    const char *const texts[] = {"[]",
                                 "\"user.box\"",
                                 "{}",
                                 "{\"config\":null}",
                                 "{\"config\":[1]}",
                                 "{\"config\":{\"user.box\":1}}",
                                 "{\"config\":{\"user.box\":{\"a\":1}}}"};

    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        CLEANUP(json_freep) json_t *object = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        assert_non_null(object);
        assert_false(tag_is_box(object));
        assert_null(tag_user(object));
    }
}

static void tells_the_user(void **state)
{
    CLEANUP(json_freep) json_t *named = instance("user.box.user", "dev");
    CLEANUP(json_freep) json_t *older = instance("user.claudebox", "1");
    CLEANUP(json_freep) json_t *hostile = instance("user.box.user", "dev; reboot");
    CLEANUP(json_freep) json_t *none = instance("user.box", "1");

    assert_string_equal(tag_user(named), "dev");
    assert_string_equal(tag_user(older), "claude");
    assert_null(tag_user(hostile));
    assert_null(tag_user(none));
}

static void judges_user_names(void **state)
{
    const char *const good[] = {"dev", "_x", "a-b_c9", "abcdefghijklmnopqrstuvwxyzabcdef"};
    const char *const bad[] = {
        "", "Dev", "9a", "-a", "a b", "a$", "../x", "\xc3\xa4", "abcdefghijklmnopqrstuvwxyzabcdefg"};

    for (size_t i = 0; i < ARRAY_LENGTH(good); i++) {
        assert_true(tag_valid_user(good[i]));
    }
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        assert_false(tag_valid_user(bad[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_both_generations_and_nothing_else),
        cmocka_unit_test(does_not_count_profiles),
        cmocka_unit_test(survives_shapes_that_are_none),
        cmocka_unit_test(tells_the_user),
        cmocka_unit_test(judges_user_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

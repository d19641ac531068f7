/* Mirrors src/box/seed.c: what a seed is found by, and how long it is good. */
#include "box/seed.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void every_part_makes_another_key(void **state)
{
    char name[] = "a", other[] = "b";
    struct template template = {.name = name, .digest = "1"};
    char key[5][SEED_KEY_SIZE];

    seed_key(&template, "f", false, "1", key[0]);
    seed_key(&template, "g", false, "1", key[1]);
    seed_key(&template, "f", true, "1", key[2]);
    seed_key(&template, "f", false, "2", key[3]);
    template.name = other;
    seed_key(&template, "f", false, "1", key[4]);
    for (size_t i = 0; i < ARRAY_LENGTH(key); i++) {
        assert_int_equal(strlen(key[i]), SEED_KEY_SIZE - 1);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(key[i], key[j]);
        }
    }
    template.name = name;
    template.digest[0] = '2';
    seed_key(&template, "f", false, "1", key[1]);
    assert_string_not_equal(key[0], key[1]);
}

static void reads_how_long(void **state)
{
    static const struct {
        const char *text;
        int64_t seconds;
    } good[] = {{"", 604800}, {"7d", 604800}, {"2h", 7200}, {"3m", 180}, {"4s", 4}, {"0", 0}, {"0s", 0}};
    static const char *const bad[] = {"7", "d", "-1d", "1w", " 1d", "1d ", "1.5h", "99999999999d"};
    int64_t seconds = -1;

    for (size_t i = 0; i < ARRAY_LENGTH(good); i++) {
        assert_int_equal(setenv("BOX_SEED_MAX_AGE", good[i].text, 1), 0);
        assert_int_equal(seed_max_age(&seconds, NULL), 0);
        assert_int_equal(seconds, good[i].seconds);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        CLEANUP(error_reset) struct error err = {0};

        assert_int_equal(setenv("BOX_SEED_MAX_AGE", bad[i], 1), 0);
        assert_int_equal(seed_max_age(&seconds, &err), -1);
        assert_int_equal(err.code, ERR_USAGE);
    }
    assert_int_equal(unsetenv("BOX_SEED_MAX_AGE"), 0);
}

static void is_good_while_young_and_whole(void **state)
{
    int64_t now = (int64_t)time(NULL);

    assert_true(seed_is_good(&(struct seed){.complete = true, .created = now - 10}, 100));
    assert_false(seed_is_good(&(struct seed){.complete = false, .created = now - 10}, 100));
    assert_false(seed_is_good(&(struct seed){.complete = true, .created = now - 1000}, 100));
    assert_false(seed_is_good(&(struct seed){.complete = true, .created = now + 1000}, 100));
    assert_false(seed_is_good(&(struct seed){.complete = true}, 100));
    assert_false(seed_is_good(&(struct seed){.complete = true, .created = now}, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_makes_another_key),
        cmocka_unit_test(reads_how_long),
        cmocka_unit_test(is_good_while_young_and_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The tables of claims are sound: ids are unique, every negative claim has a control, every attack can be read. */
#include "unit.h"

#include "base/memory.h"
#include "base/text.h"
#include "drill/claim.h"
#include "drill/ground.h"

#include <string.h>

static void ids_are_unique_and_found(void **state)
{
    for (size_t i = 0; claim_tables[i]; i++) {
        for (size_t j = 0; j < claim_tables[i]->count; j++) {
            const struct claim *claim = &claim_tables[i]->claims[j];
            const struct claim_table *table = NULL;
            assert_ptr_equal(claim_find(claim->id, &table), claim);
            assert_ptr_equal(table, claim_tables[i]);
            assert_int_equal(claim->id[0], claim_tables[i]->phase);
            assert_false(text_is_empty(claim->text));
        }
    }
    assert_null(claim_find("Z99", NULL));
}

static void silence_always_has_a_control(void **state)
{
    for (size_t i = 0; claim_tables[i]; i++) {
        for (size_t j = 0; j < claim_tables[i]->count; j++) {
            const struct claim *claim = &claim_tables[i]->claims[j];
            assert_true(claim->run || claim->attack);
            if (!claim->run && claim->expect != EXPECT_REACHABLE) {
                assert_non_null(claim->control);
            }
        }
    }
}

static void there_are_enough_of_them(void **state)
{
    size_t all = 0, isolation = 0;

    for (size_t i = 0; claim_tables[i]; i++) {
        all += claim_tables[i]->count;
        isolation += claim_tables[i]->phase == PHASE_ISOLATION ? claim_tables[i]->count : 0;
    }
    assert_true(all >= 120);
    assert_true(isolation >= 60);
}

static void an_attack_is_filled_in(void **state)
{
    struct ground ground = {.facts = json_object()};
    CLEANUP(freep) char *place = NULL;
    CLEANUP(argv_reset) struct argv words = {0};
    struct error err = {0};

    ground_set(&ground, "gateway", "10.88.0.1");
    assert_int_equal(ground_expand(&ground, "box: connect {gateway} 80 --x=[{gateway}]", &place, &words, NULL), 0);
    assert_string_equal(place, "box");
    assert_int_equal(words.count, 4);
    assert_string_equal(words.items[1], "10.88.0.1");
    assert_string_equal(words.items[3], "--x=[10.88.0.1]");
    assert_int_equal(ground_expand(&ground, "box: connect {lan.1} 80", &place, &words, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "lan.1"));
    error_reset(&err);
    assert_int_equal(ground_expand(&ground, "connect", &place, &words, NULL), -1);
    json_decref(ground.facts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_unique_and_found),
        cmocka_unit_test(silence_always_has_a_control),
        cmocka_unit_test(there_are_enough_of_them),
        cmocka_unit_test(an_attack_is_filled_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What an observation means: every case of src/drill/verdict.c. */
#include "unit.h"

#include "base/memory.h"
#include "drill/verdict.h"

#include <string.h>

static const struct observation answered = {.made = true, .said = REPLY_REACHABLE};
static const struct observation refused = {.made = true, .said = REPLY_REFUSED};
static const struct observation silent = {.made = true, .said = REPLY_DROPPED};
static const struct observation unreachable = {.made = true, .said = REPLY_UNREACHABLE};
static const struct observation sent = {.made = true, .said = REPLY_DONE};
static const struct observation failed = {.made = true, .said = REPLY_ERROR, .why = "no such interface"};
static const struct observation unmade = {.why = "the budget ran out"};

static void expect(enum expectation expectation, const struct observation *attack, const struct observation *control,
                   enum verdict wanted, const char *word)
{
    CLEANUP(freep) char *reason = NULL;

    assert_int_equal(verdict_judge(expectation, attack, control, &reason), wanted);
    assert_non_null(reason);
    if (word) {
        assert_non_null(strstr(reason, word));
    }
}

static void silence_with_a_control_holds(void **state)
{
    expect(EXPECT_SILENCE, &silent, &answered, VERDICT_HOLDS, "nothing arrived");
    expect(EXPECT_SILENCE, &silent, &refused, VERDICT_HOLDS, NULL);
    expect(EXPECT_SILENCE, &unreachable, &answered, VERDICT_HOLDS, "stopped on the way");
}

static void a_refusal_is_a_packet_that_arrived(void **state)
{
    expect(EXPECT_SILENCE, &refused, &answered, VERDICT_BROKEN, "refused");
    expect(EXPECT_SILENCE, &answered, &answered, VERDICT_BROKEN, "answered");
}

static void an_arrival_is_broken_whatever_the_control(void **state)
{
    expect(EXPECT_SILENCE, &answered, NULL, VERDICT_BROKEN, NULL);
    expect(EXPECT_SILENCE, &answered, &silent, VERDICT_BROKEN, NULL);
    expect(EXPECT_SILENCE, &refused, &unmade, VERDICT_BROKEN, NULL);
}

static void silence_without_a_control_is_not_judged(void **state)
{
    expect(EXPECT_SILENCE, &silent, NULL, VERDICT_NOT_JUDGED, "no control");
    expect(EXPECT_SILENCE, &silent, &silent, VERDICT_NOT_JUDGED, "control failed");
    expect(EXPECT_SILENCE, &silent, &unreachable, VERDICT_NOT_JUDGED, "control failed");
    expect(EXPECT_SILENCE, &silent, &failed, VERDICT_NOT_JUDGED, "control failed");
    expect(EXPECT_SILENCE, &silent, &unmade, VERDICT_NOT_JUDGED, "budget");
}

static void an_attack_that_was_not_made_is_not_judged(void **state)
{
    expect(EXPECT_SILENCE, &unmade, &answered, VERDICT_NOT_JUDGED, "budget");
    expect(EXPECT_SILENCE, &failed, &answered, VERDICT_NOT_JUDGED, "no such interface");
    expect(EXPECT_REACHABLE, &unmade, NULL, VERDICT_NOT_JUDGED, "budget");
    expect(EXPECT_NAMELESS, &failed, &answered, VERDICT_NOT_JUDGED, "no such interface");
}

static void the_listener_decides_about_one_way_packets(void **state)
{
    struct observation seen = sent, unseen = sent, control = sent;

    seen.listened = seen.arrived = unseen.listened = control.listened = control.arrived = true;
    expect(EXPECT_SILENCE, &seen, &control, VERDICT_BROKEN, "listener saw it");
    expect(EXPECT_SILENCE, &unseen, &control, VERDICT_HOLDS, NULL);
    control.arrived = false;
    expect(EXPECT_SILENCE, &unseen, &control, VERDICT_NOT_JUDGED, "control failed");
    expect(EXPECT_SILENCE, &sent, &answered, VERDICT_NOT_JUDGED, "nobody listened");
}

static void a_listener_that_saw_it_outweighs_silence(void **state)
{
    struct observation attack = silent;

    attack.listened = attack.arrived = true;
    expect(EXPECT_SILENCE, &attack, &answered, VERDICT_BROKEN, NULL);
    attack = unmade;
    attack.listened = attack.arrived = true;
    expect(EXPECT_SILENCE, &attack, &answered, VERDICT_BROKEN, NULL);
}

static void an_answer_is_wanted(void **state)
{
    expect(EXPECT_REACHABLE, &answered, NULL, VERDICT_HOLDS, NULL);
    expect(EXPECT_REACHABLE, &silent, NULL, VERDICT_BROKEN, "dropped");
    expect(EXPECT_REACHABLE, &refused, NULL, VERDICT_BROKEN, "refused");
    expect(EXPECT_REACHABLE, &silent, &answered, VERDICT_BROKEN, NULL);
    expect(EXPECT_REACHABLE, &silent, &silent, VERDICT_NOT_JUDGED, "not there");
}

static void a_name_must_have_no_address(void **state)
{
    expect(EXPECT_NAMELESS, &refused, &answered, VERDICT_HOLDS, "no address");
    expect(EXPECT_NAMELESS, &silent, &answered, VERDICT_HOLDS, NULL);
    expect(EXPECT_NAMELESS, &answered, &answered, VERDICT_BROKEN, NULL);
    expect(EXPECT_NAMELESS, &refused, &refused, VERDICT_NOT_JUDGED, "control failed");
    expect(EXPECT_NAMELESS, &refused, NULL, VERDICT_NOT_JUDGED, NULL);
}

static void only_what_is_judged_passes(void **state)
{
    assert_int_equal(verdict_exit_status((unsigned[4]){0, 3, 0, 0}, false), 0);
    assert_int_equal(verdict_exit_status((unsigned[4]){0, 3, 1, 0}, false), 1);
    assert_int_equal(verdict_exit_status((unsigned[4]){5, 0, 0, 9}, false), 1);
    assert_int_equal(verdict_exit_status((unsigned[4]){5, 3, 0, 9}, false), 0);
    assert_int_equal(verdict_exit_status((unsigned[4]){5, 3, 0, 9}, true), 1);
}

static void a_name_that_is_none_is_no_pass(void **state)
{
    assert_int_equal(verdict_from_name("HOLDS"), VERDICT_HOLDS);
    assert_int_equal(verdict_from_name("holds"), VERDICT_NOT_JUDGED);
    assert_int_equal(verdict_from_name(NULL), VERDICT_NOT_JUDGED);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(verdict_from_name(verdict_name((enum verdict)i)), i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_with_a_control_holds),
        cmocka_unit_test(a_refusal_is_a_packet_that_arrived),
        cmocka_unit_test(an_arrival_is_broken_whatever_the_control),
        cmocka_unit_test(silence_without_a_control_is_not_judged),
        cmocka_unit_test(an_attack_that_was_not_made_is_not_judged),
        cmocka_unit_test(the_listener_decides_about_one_way_packets),
        cmocka_unit_test(a_listener_that_saw_it_outweighs_silence),
        cmocka_unit_test(an_answer_is_wanted),
        cmocka_unit_test(a_name_must_have_no_address),
        cmocka_unit_test(only_what_is_judged_passes),
        cmocka_unit_test(a_name_that_is_none_is_no_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

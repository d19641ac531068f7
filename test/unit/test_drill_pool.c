/* Pieces of work end with their budget, whatever they do: src/drill/pool.c. */
#include "unit.h"

#include "base/clock.h"
#include "base/text.h"
#include "drill/pool.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct seen {
    unsigned done;
    json_int_t answers[8];
    char why[8][80];
};

static void note(void *context, size_t index, const json_t *answer, const char *why, int64_t ms)
{
    struct seen *seen = context;

    seen->done++;
    seen->answers[index] = answer ? json_integer_value(answer) : -1;
    (void)snprintf(seen->why[index], sizeof(seen->why[index]), "%s", why ? why : "");
}

static json_t *answer(void *context)
{
    return json_integer(*(int *)context);
}

static json_t *hang(void *context)
{
    pause();
    return json_null();
}

static json_t *die(void *context)
{
    _exit(1);
}

static json_t *hang_with_a_child(void *context)
{
    if (fork() == 0) {
        for (;;) {
            pause();
        }
    }
    return hang(context);
}

static void answers_come_back(void **state)
{
    struct pool_job jobs[8];
    int numbers[8];
    struct seen seen = {0};

    for (int i = 0; i < 8; i++) {
        numbers[i] = 40 + i;
        jobs[i] = (struct pool_job){.work = answer, .context = &numbers[i], .budget = 5000, .alone = i == 3};
    }
    assert_int_equal(pool_run(jobs, 8, 3, NULL, note, &seen, NULL), 0);
    assert_int_equal(seen.done, 8);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(seen.answers[i], 40 + i);
    }
}

static void a_wedged_piece_ends_with_its_budget(void **state)
{
    int number = 7;
    const struct pool_job jobs[] = {
        {.work = hang, .budget = 200},
        {.work = hang_with_a_child, .budget = 200},
        {.work = answer, .context = &number, .budget = 5000},
        {.work = die, .budget = 5000},
    };
    struct seen seen = {0};
    int64_t begun = clock_now();

    assert_int_equal(pool_run(jobs, 4, 4, NULL, note, &seen, NULL), 0);
    assert_true(clock_now() - begun < 3000);
    assert_int_equal(seen.done, 4);
    assert_non_null(strstr(seen.why[0], "budget"));
    assert_non_null(strstr(seen.why[1], "budget"));
    assert_int_equal(seen.answers[2], 7);
    assert_non_null(strstr(seen.why[3], "without a result"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_come_back),
        cmocka_unit_test(a_wedged_piece_ends_with_its_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

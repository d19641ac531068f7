/* Mirrors src/cli/commands.c. */
#include "base/memory.h"
#include "cli/commands.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#define FIND(command, used, err, ...) commands_find((const char *const[]){__VA_ARGS__, NULL}, command, used, err)

static void finds_a_row_by_its_whole_name(void **state)
{
    const struct command *command = NULL;
    size_t used = 0;
    assert_int_equal(FIND(&command, &used, NULL, "exec", "a", "--", "true"), 0);
    assert_string_equal(command->name, "exec");
    assert_int_equal(used, 1);
    CLEANUP(error_reset) struct error err = {0};
    assert_int_equal(FIND(&command, &used, &err, "exe", "a"), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_string_equal(err.remedy, "did you mean: box exec");
    assert_int_equal(FIND(&command, &used, &err, ""), -1);
}

static void suggests_what_is_near_and_nothing_else(void **state)
{
    static const char *const typed[][2] = {
        {"shel", "did you mean: box shell"},
        {"hlep", "did you mean: box help"},
        {"verison", "did you mean: box version"},
        {"enter", "did you mean: box shell"},
        {"lxc", "did you mean: box incus"},
        {"qqqqq", "all commands: box help"},
        {"generat", "all commands: box help"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(typed); i++) {
        CLEANUP(error_reset) struct error err = {0};
        const struct command *command = NULL;
        size_t used = 0;
        assert_int_equal(FIND(&command, &used, &err, typed[i][0]), -1);
        assert_string_equal(err.remedy, typed[i][1]);
    }
}

static void counts_arguments_off_the_row(void **state)
{
    static const struct {
        const char *arguments;
        size_t least, most;
    } rows[] = {
        {NULL, 0, 0},
        {"", 0, 0},
        {"BOX", 1, 1},
        {"[NAME]", 0, 1},
        {"BOX...", 1, SIZE_MAX},
        {"[COMMAND...]", 0, SIZE_MAX},
        {"BOX -- CMD...", 1, 1},
        {"SRC... DST", 2, SIZE_MAX},
        {"BOX PORT [HOSTPORT]", 2, 3},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct command command = {.name = "x", .arguments = rows[i].arguments};
        size_t least = 99;
        size_t most = 99;
        commands_arity(&command, &least, &most);
        assert_int_equal(least, rows[i].least);
        assert_true(most == rows[i].most);
    }
    struct command command = {.name = "x", .arguments = "BOX PORT [HOSTPORT]"};
    CLEANUP(freep) char *third = commands_argument(&command, 2);
    assert_string_equal(third, "HOSTPORT");
}

static bool has(const struct command *command, const char *option)
{
    const struct option_row *tables[COMMANDS_TABLES];
    commands_options(command, tables);
    for (size_t i = 0; tables[i]; i++) {
        for (const struct option_row *row = tables[i]; row->name; row++) {
            if (strcmp(row->name, option) == 0) {
                return true;
            }
        }
    }
    return false;
}

static void flags_bring_their_options(void **state)
{
    struct command plain = {.name = "x"};
    struct command both = {.name = "x", .flags = TAKES_JSON | DESTRUCTIVE};
    assert_true(has(&plain, "help") && has(&plain, "quiet") && has(&plain, "verbose"));
    assert_false(has(&plain, "json") || has(&plain, "force"));
    assert_true(has(&both, "json") && has(&both, "force") && has(&both, "help"));
}

/* What dispatch, help and completions rest on; a row that breaks it is a mistake in the program. */
static void every_row_is_sound(void **state)
{
    const struct command *const *rows = commands_all();
    for (size_t i = 0; rows[i]; i++) {
        const struct command *row = rows[i];
        assert_non_null(row->run);
        assert_true(row->summary[0] >= 'a' && row->summary[0] <= 'z');
        assert_true(row->summary[strlen(row->summary) - 1] != '.');
        assert_true(!row->help || row->help[strlen(row->help) - 1] == '\n');
        for (const char *line = row->help; line && *line; line += strcspn(line, "\n") + 1) {
            assert_true(strcspn(line, "\n") <= 78);
        }
        size_t least = 0;
        size_t most = 0;
        commands_arity(row, &least, &most);
        assert_true(!(row->flags & NEEDS_BOX) || least >= 1);
        for (size_t j = 0; rows[j]; j++) {
            assert_true(i == j || strcmp(row->name, rows[j]->name) != 0);
        }
        const struct option_row *tables[COMMANDS_TABLES];
        commands_options(row, tables);
        for (size_t t = 0; tables[t]; t++) {
            for (const struct option_row *option = tables[t]; option->name; option++) {
                assert_non_null(option->help);
                assert_true((option->kind == OPTION_FLAG) == (option->value == NULL));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_a_row_by_its_whole_name),
        cmocka_unit_test(suggests_what_is_near_and_nothing_else),
        cmocka_unit_test(counts_arguments_off_the_row),
        cmocka_unit_test(flags_bring_their_options),
        cmocka_unit_test(every_row_is_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

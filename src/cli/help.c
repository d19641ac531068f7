/* Help for people, from the rows of the command table.
 * Not for: the man page (manual.c) and the completions (completion.c), which read the same rows. */
#include "cli/help.h"

#include "base/memory.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/listing.h"

#include <ctype.h>
#include <string.h>

#define SUMMARY_COLUMN 30 /* where summaries begin */
#define WIDTH          79 /* where they are wrapped: in the last column of nothing, */
#define LEAST_WIDTH    59 /* and with room for a few words on a narrow terminal */

static const char *section_title(enum command_section section)
{
    switch (section) {
    case SECTION_DAILY:
        return "Boxes";
    case SECTION_IMAGES:
        return "Templates and images";
    case SECTION_HOST:
        return "This host";
    case SECTION_OTHER:
        break;
    }
    return "Other";
}

static size_t width_of(FILE *out)
{
    size_t columns = listing_width(out);
    return columns == 0 ? WIDTH : columns > LEAST_WIDTH ? columns - 1 : LEAST_WIDTH;
}

/* A left part and what it means, wrapped; that begins on the next line where the left part is too long. */
static void print_pair(const char *left, const char *right, FILE *out)
{
    size_t column = 2 + text_columns(left);
    size_t width = width_of(out);
    (void)fprintf(out, "  %s", left);
    if (column + 1 > SUMMARY_COLUMN) {
        (void)fputc('\n', out);
        column = 0;
    }
    (void)fprintf(out, "%*s", (int)(SUMMARY_COLUMN - column), "");
    column = SUMMARY_COLUMN;
    for (const char *word = right; *word;) {
        size_t length = strcspn(word, " ");
        if (column > SUMMARY_COLUMN && column + 1 + length > width) {
            (void)fprintf(out, "\n%*s", SUMMARY_COLUMN, "");
            column = SUMMARY_COLUMN;
        }
        (void)fprintf(out, "%s%.*s", column > SUMMARY_COLUMN ? " " : "", (int)length, word);
        column += length + (column > SUMMARY_COLUMN);
        word += length;
        word += strspn(word, " ");
    }
    (void)fputc('\n', out);
}

static void print_row(const struct command *command, FILE *out)
{
    CLEANUP(freep) char *usage = commands_usage(command);
    print_pair(usage + strlen("box "), command->summary, out);
}

static void print_title(const char *title, FILE *out)
{
    (void)fprintf(out, "\n%s\n", title);
}

void help_sections(help_title *title, help_row *row, FILE *out)
{
    const struct command *const *rows = commands_all();
    for (enum command_section section = SECTION_DAILY; section <= SECTION_OTHER; section++) {
        bool begun = false;
        for (size_t i = 0; rows[i]; i++) {
            if (rows[i]->section != section || rows[i]->flags & HIDDEN) {
                continue;
            }
            if (!begun) {
                title(section_title(section), out);
                begun = true;
            }
            row(rows[i], out);
        }
    }
}

void help_general(FILE *out)
{
    (void)fputs("box mints throwaway machines that reach the public internet and nothing else.\n\n"
                "usage: box COMMAND [ARGUMENTS] [FLAGS]\n",
                out);
    help_sections(print_title, print_row, out);
    (void)fputs("\n'box help COMMAND' tells more, and so does --help behind any command.\n", out);
}

void help_group(const char *group, FILE *out)
{
    (void)fprintf(out, "usage: box %s COMMAND [ARGUMENTS] [FLAGS]\n\n", group);
    CLEANUP(freep) char *prefix = xasprintf("%s ", group);
    const struct command *const *rows = commands_all();
    for (size_t i = 0; rows[i]; i++) {
        if (text_starts_with(rows[i]->name, prefix) && !(rows[i]->flags & HIDDEN)) {
            print_row(rows[i], out);
        }
    }
}

char *help_option(const struct option_row *row)
{
    bool has_value = row->kind != OPTION_FLAG;
    char letter[] = {'-', row->letter, ',', ' ', '\0'};
    return xasprintf("%s--%s%s%s", row->letter ? letter : "    ", row->name, has_value ? " " : "",
                     has_value ? row->value : "");
}

void help_command(const struct command *command, FILE *out)
{
    CLEANUP(freep) char *usage = commands_usage(command);
    (void)fprintf(out, "usage: %s\n\n%c%s.\n", usage, toupper((unsigned char)command->summary[0]),
                  command->summary + 1);
    if (command->help) {
        (void)fprintf(out, "\n%s", command->help);
    }
    (void)fputs("\nFlags\n", out);
    const struct option_row *tables[COMMANDS_TABLES];
    commands_options(command, tables);
    for (size_t i = 0; tables[i]; i++) {
        for (const struct option_row *row = tables[i]; row->name; row++) {
            CLEANUP(freep) char *left = help_option(row);
            print_pair(left, row->help, out);
        }
    }
}

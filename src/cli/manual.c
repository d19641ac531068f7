/* The man pages: box(1) from the rows of the command table, box.env(5) from those of the keys.
 * Not for: help on the terminal (help.c). */
#include "cli/manual.h"

#include "base/memory.h"
#include "box/template.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/version.h"

#include <stdbool.h>
#include <string.h>

/* What a user can set from outside, and where things lie. */
static const char *const environment[][2] = {
    {"INCUS_SOCKET",
     "the daemon's socket; else INCUS_DIR/unix.socket, /run/incus/unix.socket, /var/lib/incus/unix.socket"},
    {"INCUS_PROJECT", "the project of the daemon to work in"},
    {"BOX_CPU, BOX_MEMORY, BOX_DISK", "limits of a new box, above what its template says, below what a flag says"},
    {"XDG_CONFIG_HOME", "own templates lie in box/templates below it (~/.config where it is not set)"},
    {"COLUMNS", "the width that tables are cut to"},
    {"NO_COLOR", "set to anything: no colours"},
};

/* One line of text, with what roff would take for its own made harmless. */
static void put(const char *text, size_t length, FILE *out)
{
    if (length && (text[0] == '.' || text[0] == '\'')) {
        (void)fputs("\\&", out);
    }
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\\') {
            (void)fputs("\\e", out);
        } else if (text[i] == '-') {
            (void)fputs("\\-", out);
        } else {
            (void)fputc(text[i], out);
        }
    }
}

static void put_line(const char *text, FILE *out)
{
    put(text, strlen(text), out);
    (void)fputc('\n', out);
}

/* Paragraphs; indented lines stay as they are. */
static void put_help(const char *help, FILE *out)
{
    bool verbatim = false;
    while (*help) {
        size_t length = strcspn(help, "\n");
        bool indented = help[0] == ' ';
        if (indented != verbatim && length) {
            (void)fputs(indented ? ".nf\n" : ".fi\n", out);
            verbatim = indented;
        }
        if (!length) {
            (void)fputs(".PP\n", out);
        } else {
            put(help, length, out);
            (void)fputc('\n', out);
        }
        help += length + (help[length] == '\n');
    }
    (void)fputs(verbatim ? ".fi\n" : "", out);
}

static void put_options(const struct option_row *const *tables, FILE *out)
{
    for (; *tables; tables++) {
        for (const struct option_row *row = *tables; row->name; row++) {
            CLEANUP(freep) char *name = help_option(row);
            (void)fputs(".TP\n.B ", out);
            put_line(name + strspn(name, " "), out);
            put_line(row->help, out);
        }
    }
}

static void put_command(const struct command *command, FILE *out)
{
    CLEANUP(freep) char *usage = commands_usage(command);
    (void)fputs(".SS ", out);
    put_line(usage, out);
    CLEANUP(freep) char *summary = xstrdup(command->summary);
    if (summary[0] >= 'a' && summary[0] <= 'z') {
        summary[0] = (char)(summary[0] - 'a' + 'A');
    }
    put(summary, strlen(summary), out);
    (void)fputs(".\n", out);
    if (command->help) {
        (void)fputs(".PP\n", out);
        put_help(command->help, out);
    }
    const struct option_row *tables[COMMANDS_TABLES];
    commands_options(command, tables);
    size_t count = 0;
    while (tables[count]) {
        count++;
    }
    tables[count - 1] = NULL; /* those of every command have their own section */
    put_options(tables, out);
}

static void put_title(const char *title, FILE *out)
{
    (void)fprintf(out, ".SH \"%s\"\n", title);
}

void manual_print(FILE *out)
{
    (void)fprintf(
        out,
        ".TH BOX 1 \"\" \"box %s\" \"User Commands\"\n"
        ".SH NAME\n"
        "box \\- throwaway machines that reach the public internet and nothing else\n"
        ".SH SYNOPSIS\n"
        ".B box\n"
        ".I COMMAND\n"
        "[\\fIARGUMENTS\\fR] [\\fIFLAGS\\fR]\n"
        ".SH DESCRIPTION\n"
        "box mints machines that a person can hand to a coding agent: fresh Debian machines on an Incus host that\n"
        "reach the public internet, and neither the host, its network, nor each other. A box carries no\n"
        "credentials; removing it loses nothing that was not pushed.\n",
        BOX_VERSION);
    help_sections(put_title, put_command, out);
    (void)fputs(".SH \"Flags of every command\"\n", out);
    put_options((const struct option_row *const[]){commands_common(), NULL}, out);
    (void)fputs(".SH ENVIRONMENT\n", out);
    for (size_t i = 0; i < ARRAY_LENGTH(environment); i++) {
        (void)fprintf(out, ".TP\n.B %s\n", environment[i][0]);
        put_line(environment[i][1], out);
    }
    (void)fputs(
        ".SH \"EXIT STATUS\"\n"
        "0 where it went well, 1 where it went wrong, 2 where the command line was wrong. exec and shell pass on the\n"
        "status of what they ran.\n"
        ".SH \"SEE ALSO\"\n"
        ".BR box.env (5),\n"
        ".BR incus (1)\n",
        out);
}

void manual_print_template(FILE *out)
{
    (void)fprintf(
        out,
        ".TH BOX.ENV 5 \"\" \"box %s\" \"File Formats\"\n"
        ".SH NAME\n"
        "box.env \\- what a box is minted from\n"
        ".SH DESCRIPTION\n"
        "A template is a directory that holds box.env and user-data.yaml. The name of the directory is the name of "
        "the\n"
        "template. user-data.yaml is handed to cloud-init byte for byte. converge.sh, which need not be there, is run\n"
        "in the guest as root after cloud-init, and again by\n"
        ".BR \"box converge\" :\n"
        "it must bear that. Its first line names its interpreter; it gets no input, and BOX_TEMPLATE, BOX_USER and\n"
        "BOX_HOME in its environment. box.env holds one\n"
        ".IB KEY =\"value\"\n"
        "a line, blank lines, and comments, which begin with #. Nothing in it is expanded, escaped or executed, and\n"
        "nothing may follow the value. A key that is not listed here, a key that stands there twice and a line of any\n"
        "other shape are errors.\n"
        ".PP\n"
        "No key for a network, a device or a security setting exists: a template chooses what is in a box, never\n"
        "what is around it.\n"
        ".SH KEYS\n",
        BOX_VERSION);
    const char *key, *meaning;
    for (size_t i = 0; template_describe_key(i, &key, &meaning); i++) {
        (void)fputs(".TP\n.B ", out);
        put_line(key, out);
        put_line(meaning, out);
    }
    (void)fputs(
        ".SH FILES\n"
        "Directories that hold templates, in this order: the one that \\-\\-template\\-dir names, box/templates in\n"
        "$XDG_CONFIG_HOME (~/.config where that is not set), and those that came with box. Of two templates of one\n"
        "name the first counts.\n"
        ".SH EXAMPLE\n"
        ".nf\n"
        "# a machine for the web team\n"
        "BOX_DESCRIPTION=\"Debian with Node\"\n"
        "BOX_USER=\"web\"\n"
        "BOX_MEMORY=\"4GiB\"\n"
        ".fi\n"
        ".SH \"SEE ALSO\"\n"
        ".BR box (1)\n",
        out);
}

/* Completion scripts for bash, zsh and fish, from the rows of the command table.
 * Not for: the names of boxes and templates; the scripts ask `box complete` for those (command_complete.c). */
#include "cli/completion.h"

#include "base/memory.h"
#include "base/text.h"
#include "cli/commands.h"

#include <string.h>

/* Prints a word list of what a row's arguments (before any --) name: "BOX", "BOX...", "TEMPLATE", ... */
static void put_kinds(const struct command *command, FILE *out)
{
    const char *word = command->arguments ? command->arguments : "";
    const char *blank = "";
    while (*word) {
        size_t length = strcspn(word, " ");
        if (length == 2 && strncmp(word, "--", 2) == 0) {
            return;
        }
        (void)fputs(blank, out);
        for (size_t i = 0; i < length; i++) {
            if (word[i] != '[' && word[i] != ']') {
                (void)fputc(word[i], out);
            }
        }
        blank = " ";
        word += length;
        word += strspn(word, " ");
    }
}

/* The flags of a command, "--stdin -i ..."; with `values` only those that take one, as "--wait:S". */
static void put_flags(const struct command *command, bool values, FILE *out)
{
    const struct option_row *tables[COMMANDS_TABLES];
    commands_options(command, tables);
    const char *blank = "";
    for (size_t i = 0; tables[i]; i++) {
        for (const struct option_row *row = tables[i]; row->name; row++) {
            if (values && row->kind == OPTION_FLAG) {
                continue;
            }
            (void)fprintf(out, "%s--%s%s%s", blank, row->name, values ? ":" : "", values ? row->value : "");
            blank = " ";
        }
    }
}

static bool shown(const struct command *command)
{
    return !(command->flags & HIDDEN);
}

/* A shell function (bash and zsh alike) that knows the table: `_box_row NAME` sets flags, values, kinds. */
static void put_row_function(FILE *out)
{
    const struct command *const *rows = commands_all();
    (void)fputs("_box_row() {\n    case \"$1\" in\n", out);
    for (size_t i = 0; rows[i]; i++) {
        if (!shown(rows[i])) {
            continue;
        }
        (void)fprintf(out, "        '%s') flags='", rows[i]->name);
        put_flags(rows[i], false, out);
        (void)fputs("' values='", out);
        put_flags(rows[i], true, out);
        (void)fputs("' kinds='", out);
        put_kinds(rows[i], out);
        (void)fputs("' ;;\n", out);
    }
    (void)fputs("        *) return 1 ;;\n    esac\n}\n\n", out);
}

/* The first words of all names, or the second ones of a group, each once. */
static void collect_words(const char *group, struct argv *ret_words)
{
    const struct command *const *rows = commands_all();
    CLEANUP(freep) char *prefix = group ? xasprintf("%s ", group) : xstrdup("");
    for (size_t i = 0; rows[i]; i++) {
        if (!shown(rows[i]) || !text_starts_with(rows[i]->name, prefix)) {
            continue;
        }
        const char *rest = rows[i]->name + strlen(prefix);
        CLEANUP(freep) char *word = xstrndup(rest, strcspn(rest, " "));
        if (!argv_contains(ret_words, word)) {
            argv_push(ret_words, word);
        }
    }
}

static void put_words(const char *group, FILE *out)
{
    CLEANUP(argv_reset) struct argv words = {0};
    collect_words(group, &words);
    CLEANUP(freep) char *list = argv_join(&words, " ");
    (void)fputs(list, out);
}

/* True for "snapshot", which is a command by itself and has `snapshot rm` beside it. */
static bool is_mixed(const char *word)
{
    CLEANUP(argv_reset) struct argv members = {0};
    collect_words(word, &members);
    return members.count && !commands_is_group(word);
}

/* A shell function that tells the members of a group: `_box_group image` sets members. Likewise `_box_mixed snapshot`.
 */
static void put_group_function(bool mixed, FILE *out)
{
    CLEANUP(argv_reset) struct argv words = {0};
    collect_words(NULL, &words);
    if (mixed) {
        (void)fputs("_box_mixed() {\n    case \"$1\" in\n", out);
    } else {
        (void)fputs("_box_group() {\n    case \"$1\" in\n        '') members='", out);
        put_words(NULL, out);
        (void)fputs("' ;;\n", out);
    }
    for (size_t i = 0; i < words.count; i++) {
        if (mixed ? is_mixed(words.items[i]) : commands_is_group(words.items[i])) {
            (void)fprintf(out, "        '%s') members='", words.items[i]);
            put_words(words.items[i], out);
            (void)fputs("' ;;\n", out);
        }
    }
    (void)fputs("        *) return 1 ;;\n    esac\n}\n\n", out);
}

/* What both shells do with it: from the words before the cursor to a list of what may stand there. `kind` is empty
 * where it is `reply`, else FILE or DIR for the shell itself. */
static const char offer_function[] =
    "# _box_offer CURRENT WORD...: sets reply to what may stand at the cursor, kind to what the shell offers itself.\n"
    "_box_offer() {\n"
    "    local current=\"$1\" name='' flags='' values='' kinds='' members='' word='' pending='' given=0 rest='' "
    "more=''\n"
    "    shift\n"
    "    reply='' kind=''\n"
    "    if [ $# -eq 0 ]; then _box_group ''; reply=\"$members\"; return; fi\n"
    "    name=\"$1\"; shift\n"
    "    if _box_group \"$name\"; then\n"
    "        if [ $# -eq 0 ]; then reply=\"$members\"; return; fi\n"
    "        name=\"$name $1\"; shift\n"
    "    elif _box_mixed \"$name\"; then\n"
    "        if [ $# -eq 0 ]; then\n"
    "            more=\"$members\"\n"
    "        else\n"
    "            case \" $members \" in *\" $1 \"*) name=\"$name $1\"; shift ;; esac\n"
    "        fi\n"
    "    fi\n"
    "    if [ \"$name\" = help ] && [ \"${current#-}\" = \"$current\" ]; then\n"
    "        if [ $# -eq 0 ]; then _box_group ''; reply=\"$members\"\n"
    "        elif _box_group \"$1\"; then reply=\"$members\"; fi\n"
    "        return\n"
    "    fi\n"
    "    _box_row \"$name\" || return\n"
    "    for word in \"$@\"; do\n"
    "        if [ -n \"$pending\" ]; then pending=''; continue; fi\n"
    "        case \"$word\" in\n"
    "            --) return ;;\n"
    "            --*=*) ;;\n"
    "            -*) case \" $values \" in *\" $word:\"*) pending=\"$word\" ;; esac ;;\n"
    "            *) given=$((given + 1)) ;;\n"
    "        esac\n"
    "    done\n"
    "    if [ -n \"$pending\" ]; then\n"
    "        rest=\"${values#*\"$pending:\"}\"; kind=\"${rest%% *}\"\n"
    "    else\n"
    "        case \"$current\" in -*) reply=\"$flags\"; return ;; esac\n"
    "        rest=\"$kinds \"\n"
    "        while [ \"$given\" -gt 0 ]; do\n"
    "            case \"${rest%% *}\" in *...) break ;; esac\n"
    "            rest=\"${rest#* }\" given=$((given - 1))\n"
    "        done\n"
    "        kind=\"${rest%% *}\" kind=\"${kind%...}\"\n"
    "    fi\n"
    "    case \"$kind\" in\n"
    "        FILE | DIR) ;;\n"
    "        BOX | TEMPLATE | IMAGE) reply=\"$(box complete \"$kind\" 2>/dev/null)\"; kind='' ;;\n"
    "        *) kind='' ;;\n"
    "    esac\n"
    "    reply=\"$reply${more:+ $more}\"\n"
    "}\n\n";

static void print_bash(FILE *out)
{
    (void)fputs("# bash completion for box\n\n", out);
    put_row_function(out);
    put_group_function(false, out);
    put_group_function(true, out);
    (void)fputs(offer_function, out);
    (void)fputs("_box() {\n"
                "    local reply='' kind='' current=\"${COMP_WORDS[COMP_CWORD]}\"\n"
                "    _box_offer \"$current\" \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"\n"
                "    COMPREPLY=()\n"
                "    case \"$kind\" in\n"
                "        FILE) mapfile -t COMPREPLY < <(compgen -f -- \"$current\") ;;\n"
                "        DIR) mapfile -t COMPREPLY < <(compgen -d -- \"$current\") ;;\n"
                "        *) mapfile -t COMPREPLY < <(compgen -W \"$reply\" -- \"$current\") ;;\n"
                "    esac\n"
                "}\n"
                "complete -F _box box\n",
                out);
}

static void print_zsh(FILE *out)
{
    (void)fputs("#compdef box\n# zsh completion for box\n\n", out);
    put_row_function(out);
    put_group_function(false, out);
    put_group_function(true, out);
    (void)fputs(offer_function, out);
    (void)fputs("_box() {\n"
                "    local reply='' kind=''\n"
                "    _box_offer \"${words[CURRENT]}\" \"${(@)words[2,CURRENT-1]}\"\n"
                "    case \"$kind\" in\n"
                "        FILE) _files ;;\n"
                "        DIR) _files -/ ;;\n"
                "        *) compadd -- ${=reply} ;;\n"
                "    esac\n"
                "}\n"
                "if [ \"$funcstack[1]\" = _box ]; then _box \"$@\"; else compdef _box box; fi\n",
                out);
}

/* Text within single quotes of fish. */
static void put_fish_text(const char *text, FILE *out)
{
    (void)fputc('\'', out);
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') {
            (void)fputc('\\', out);
        }
        (void)fputc(*text, out);
    }
    (void)fputc('\'', out);
}

static void put_fish_value(const char *kind, FILE *out)
{
    if (text_equal(kind, "BOX") || text_equal(kind, "TEMPLATE") || text_equal(kind, "IMAGE")) {
        (void)fprintf(out, " -x -a '(box complete %s 2>/dev/null)'", kind);
    } else if (text_equal(kind, "FILE")) {
        (void)fputs(" -r -F", out);
    } else if (text_equal(kind, "DIR")) {
        (void)fputs(" -x -a '(__fish_complete_directories)'", out);
    } else {
        (void)fputs(" -x", out);
    }
}

static void put_fish_command(const struct command *command, FILE *out)
{
    const struct option_row *tables[COMMANDS_TABLES];
    commands_options(command, tables);
    for (size_t i = 0; tables[i]; i++) {
        for (const struct option_row *row = tables[i]; row->name; row++) {
            (void)fprintf(out, "complete -c box -n '__box_at %s' -l %s", command->name, row->name);
            if (row->letter) {
                (void)fprintf(out, " -s %c", row->letter);
            }
            (void)fputs(" -d ", out);
            put_fish_text(row->help, out);
            if (row->kind != OPTION_FLAG) {
                put_fish_value(row->value, out);
            }
            (void)fputc('\n', out);
        }
    }
    static const char *const kinds[] = {"BOX", "TEMPLATE", "IMAGE", "FILE", "DIR"};
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        const char *dashes = strstr(command->arguments ? command->arguments : "", "--");
        const char *found = strstr(command->arguments ? command->arguments : "", kinds[i]);
        if (found && (!dashes || found < dashes)) {
            (void)fprintf(out, "complete -c box -n '__box_at %s'", command->name);
            put_fish_value(kinds[i], out);
            (void)fputc('\n', out);
        }
    }
}

static void print_fish(FILE *out)
{
    (void)fputs("# fish completion for box\n\n"
                "function __box_at\n"
                "    set -l words (commandline -opc)[2..-1]\n"
                "    contains -- -- $words; and return 1\n"
                "    set -l length (count $argv)\n"
                "    test (count $words) -ge $length; and test \"$words[1..$length]\" = \"$argv\"\n"
                "end\n\n"
                "function __box_after\n"
                "    set -l words (commandline -opc)[2..-1]\n"
                "    test \"$words\" = \"$argv\"\n"
                "end\n\n"
                "complete -c box -f\n",
                out);
    const struct command *const *rows = commands_all();
    CLEANUP(argv_reset) struct argv words = {0};
    collect_words(NULL, &words);
    for (size_t i = 0; i < words.count; i++) {
        bool group = commands_is_group(words.items[i]);
        if (group) {
            (void)fprintf(out, "complete -c box -n __fish_use_subcommand -a %s\n", words.items[i]);
        }
        if (group || is_mixed(words.items[i])) {
            (void)fprintf(out, "complete -c box -n '__box_after %s' -a '", words.items[i]);
            put_words(words.items[i], out);
            (void)fputs("'\n", out);
        }
    }
    for (size_t i = 0; rows[i]; i++) {
        if (!shown(rows[i])) {
            continue;
        }
        if (!strchr(rows[i]->name, ' ')) {
            (void)fprintf(out, "complete -c box -n __fish_use_subcommand -a %s -d ", rows[i]->name);
            put_fish_text(rows[i]->summary, out);
            (void)fputc('\n', out);
        }
        put_fish_command(rows[i], out);
    }
}

bool completion_print(const char *shell, FILE *out)
{
    if (text_equal(shell, "bash")) {
        print_bash(out);
    } else if (text_equal(shell, "zsh")) {
        print_zsh(out);
    } else if (text_equal(shell, "fish")) {
        print_fish(out);
    } else {
        return false;
    }
    return true;
}

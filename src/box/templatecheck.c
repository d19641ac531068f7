/* The verdicts on a template, file by file, and on what they are together.
 * Not for asking the image (templatejudge.c), nor for the rules of each file (template.c, templatefile.c). */
#include "box/templatecheck.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/name.h"
#include "box/template.h"
#include "box/templatefile.h"
#include "box/templatejudge.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { NAME, ENV, DATA, SCRIPT, FILES, SCHEMA, USER, SYNTAX };

static const char *const what[TEMPLATECHECK_ROWS] = {
    "name", "box.env", "user-data.yaml", TEMPLATE_SCRIPT, "files", "schema", "user", "syntax",
};

static void say(struct templatecheck *check, size_t row, enum templatecheck_verdict verdict, const char *format, ...)
    PRINTF_LIKE(4, 5);

static void say(struct templatecheck *check, size_t row, enum templatecheck_verdict verdict, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    free(check->rows[row].detail);
    check->rows[row].detail = xvasprintf(format, arguments);
    check->rows[row].verdict = verdict;
    va_end(arguments);
}

/* True where it went well. */
static bool say_fault(struct templatecheck *check, size_t row, int result, struct error *fault, const char *fine)
{
    if (result == 0) {
        say(check, row, TEMPLATECHECK_HOLDS, "%s", fine);
    } else {
        say(check, row, TEMPLATECHECK_FAULT, "%s", fault->message);
        error_reset(fault);
    }
    return result == 0;
}

static int read_env(const char *path, struct template *ret_template, struct error *err)
{
    CLEANUP(buffer_reset) struct buffer env = {0};

    if (templatefile_read_env(path, &env, err) < 0) {
        return -1;
    }
    return template_parse(path, env.data ? env.data : "", env.length, ret_template, err);
}

/* Each file by itself, so that one fault hides no other. True where all can be read. */
static bool check_files(struct templatecheck *check, const char *directory)
{
    CLEANUP(freep) char *env_path = xasprintf("%s/box.env", directory);
    CLEANUP(freep) char *data_path = xasprintf("%s/user-data.yaml", directory);
    CLEANUP(freep) char *script_path = xasprintf("%s/" TEMPLATE_SCRIPT, directory);
    CLEANUP(template_reset) struct template template = {0};
    CLEANUP(buffer_reset) struct buffer data = {0};
    CLEANUP(buffer_reset) struct buffer script = {0};
    CLEANUP(error_reset) struct error fault = {0};
    bool name = say_fault(check, NAME, name_check_template(check->name, &fault), &fault, check->name);
    bool env = say_fault(check, ENV, read_env(env_path, &template, &fault), &fault, "each line is KEY=\"value\"");
    bool user_data = say_fault(check, DATA, templatefile_read_user_data(data_path, &data, &fault), &fault, "");
    bool converge = say_fault(check, SCRIPT, templatefile_read_script(script_path, &script, &fault), &fault, "");

    if (user_data) {
        say(check, DATA, TEMPLATECHECK_HOLDS, "%zu bytes of text", data.length);
    }
    if (converge && script.length > 0) {
        say(check, SCRIPT, TEMPLATECHECK_HOLDS, "%zu bytes of text", script.length);
    } else if (converge) {
        say(check, SCRIPT, TEMPLATECHECK_HOLDS, "there is none");
    }
    return name && env && user_data && converge;
}

static const char *meant_by(const char *name)
{
    static const char *const known[] = {"box.env", "user-data.yaml", TEMPLATE_SCRIPT};

    for (size_t i = 0; i < ARRAY_LENGTH(known); i++) {
        if (text_distance(name, known[i]) <= 2) {
            return known[i];
        }
    }
    return NULL;
}

/* A slip in a name would leave a file unread without a word. An editor's copies (NAME~) and READMEs are no slips. */
static void check_others(struct templatecheck *check, const char *directory, struct narrator *narrator)
{
    CLEANUP(buffer_reset) struct buffer slips = {0};
    struct dirent **entries = NULL;
    int found = scandir(directory, &entries, NULL, alphasort);

    for (int i = 0; i < found; i++) {
        const char *name = entries[i]->d_name, *meant = meant_by(name);
        CLEANUP(freep) char *shown = text_sanitise(name, strlen(name));

        if (meant && !text_equal(name, meant) && !text_ends_with(name, "~")) {
            buffer_append_format(&slips, "%s%s: did you mean %s?", slips.length > 0 ? " " : "", shown, meant);
        } else if (!meant && name[0] != '.' && !text_starts_with(name, "README")) {
            narrate_warn(narrator, "%s/%s is not used: it is no file of a template", directory, shown);
        }
        free(entries[i]);
    }
    free(entries);
    say(check, FILES, slips.length > 0 ? TEMPLATECHECK_FAULT : TEMPLATECHECK_HOLDS, "%s",
        slips.length > 0 ? slips.data : "no name is nearly that of another");
}

static void say_not_judged(struct templatecheck *check, const char *why)
{
    for (size_t row = SCHEMA; row < TEMPLATECHECK_ROWS; row++) {
        say(check, row, TEMPLATECHECK_NOT_JUDGED, "%s", why);
    }
}

static bool makes_user(const char *users, const char *user)
{
    CLEANUP(freep) char *list = xasprintf(" %s ", users);
    CLEANUP(freep) char *wanted = xasprintf(" %s ", user);

    return strstr(list, wanted) != NULL;
}

static void take_answer(struct templatecheck *check, const struct template *template,
                        const struct templatejudge_answer *answer)
{
    if (!answer->cloud_config) {
        say(check, SCHEMA, TEMPLATECHECK_NOT_JUDGED, "it is no #cloud-config: only a mint tells");
        say(check, USER, TEMPLATECHECK_NOT_JUDGED, "it is no #cloud-config: only a mint tells");
    } else {
        bool sound = text_is_empty(answer->schema);

        say(check, SCHEMA, sound ? TEMPLATECHECK_HOLDS : TEMPLATECHECK_FAULT, "%s",
            sound ? "cloud-init takes each key" : answer->schema);
        if (!answer->users) {
            say(check, USER, TEMPLATECHECK_NOT_JUDGED, "user-data.yaml cannot be read");
        } else if (makes_user(answer->users, template->user)) {
            say(check, USER, TEMPLATECHECK_HOLDS, "user-data.yaml makes %s", template->user);
        } else {
            say(check, USER, TEMPLATECHECK_FAULT, "%s/box.env: BOX_USER is %s, and user-data.yaml makes %s",
                template->directory, template->user, text_is_empty(answer->users) ? "nobody" : answer->users);
        }
    }
    if (!template->script) {
        say(check, SYNTAX, TEMPLATECHECK_HOLDS, "there is no " TEMPLATE_SCRIPT);
    } else if (answer->missing) {
        say(check, SYNTAX, answer->made ? TEMPLATECHECK_NOT_JUDGED : TEMPLATECHECK_FAULT, "%s", answer->missing);
    } else if (!answer->syntax) {
        say(check, SYNTAX, TEMPLATECHECK_NOT_JUDGED, "its interpreter is no shell");
    } else {
        bool sound = text_is_empty(answer->syntax);

        say(check, SYNTAX, sound ? TEMPLATECHECK_HOLDS : TEMPLATECHECK_FAULT, "%s",
            sound ? "its shell can read it" : answer->syntax);
    }
}

static int ask_image(struct templatecheck *check, struct client *client, const char *directory,
                     struct narrator *narrator, struct error *err)
{
    CLEANUP(template_reset) struct template template = {0};
    CLEANUP(templatejudge_reset) struct templatejudge_answer answer = {0};
    CLEANUP(error_reset) struct error cause = {0};

    if (template_read(check->name, directory, &template, err) < 0) {
        return -1; /* it changed a moment ago */
    }
    if (templatejudge_ask(client, &template, narrator, &answer, &cause) < 0) {
        if (cause.code == ERR_INTERRUPTED) {
            return error_move(err, &cause);
        }
        say_not_judged(check, cause.message);
        return 0;
    }
    take_answer(check, &template, &answer);
    return 0;
}

/* "./a/b/" is b, and "." the directory's own name. */
static char *name_of(const char *directory)
{
    CLEANUP(freep) char *real = realpath(directory, NULL);
    const char *slash = real ? strrchr(real, '/') : NULL;

    return xstrdup(slash ? slash + 1 : directory);
}

int templatecheck_run(struct client *client, const char *directory, struct narrator *narrator,
                      struct templatecheck *ret_check, struct error *err)
{
    CLEANUP(templatecheck_reset) struct templatecheck check = {0};

    if (templatefile_check_directory(directory, err) < 0) {
        return -1;
    }
    check.name = name_of(directory);
    for (size_t row = 0; row < TEMPLATECHECK_ROWS; row++) {
        check.rows[row].what = what[row];
    }
    check_others(&check, directory, narrator);
    if (!check_files(&check, directory)) {
        say_not_judged(&check, "a file of it is at fault");
    } else if (!client) {
        say_not_judged(&check, "no Incus answers: it takes the programs of the image");
    } else if (ask_image(&check, client, directory, narrator, err) < 0) {
        return -1;
    }
    *ret_check = check;
    check = (struct templatecheck){0};
    return 0;
}

const char *templatecheck_name(enum templatecheck_verdict verdict)
{
    static const char *const names[] = {"holds", "fault", "not judged"};

    return names[verdict];
}

void templatecheck_reset(struct templatecheck *check)
{
    free(check->name);
    for (size_t row = 0; row < TEMPLATECHECK_ROWS; row++) {
        free(check->rows[row].detail);
    }
    *check = (struct templatecheck){0};
}

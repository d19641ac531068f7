/* An exec request's JSON. Pure.
 * Not for: sending it; see exec.c. */
#include "incus/execbody.h"

#include "base/memory.h"
#include "base/text.h"

#include <string.h>

/* The command substitution that yields `text` must not end in a newline, for the shell cuts those off: they follow it.
 */
static void append_quoted(struct buffer *script, const char *text)
{
    size_t length = strlen(text), end = length;
    while (end && text[end - 1] == '\n') {
        end--;
    }
    buffer_append_text(script, " \"$(printf '");
    for (size_t i = 0; i < end; i++) {
        buffer_append_format(script, "\\%03o", (unsigned)(unsigned char)text[i]);
    }
    buffer_append_text(script, "')\"");
    if (end < length) {
        buffer_append_text(script, "'");
        buffer_append(script, text + end, length - end);
        buffer_append_text(script, "'");
    }
}

/* JSON carries no byte that is not UTF-8, and the daemon would turn it into U+FFFD. A file name may hold one. */
static json_t *through_shell(const char *const *command)
{
    CLEANUP(buffer_reset) struct buffer script = {0};
    json_t *array = json_pack("[s, s]", "/bin/sh", "-c");
    json_t *plain = json_array();
    size_t position = 0;
    buffer_append_text(&script, "exec");
    for (const char *const *argument = command; *argument; argument++) {
        if (text_is_utf8(*argument, strlen(*argument))) {
            buffer_append_format(&script, " \"${%zu}\"", ++position);
            json_array_append_new(plain, json_string(*argument));
        } else {
            append_quoted(&script, *argument);
        }
    }
    json_array_append_new(array, json_string(script.data));
    json_array_append_new(array, json_string("sh"));
    json_array_extend(array, plain);
    json_decref(plain);
    return array;
}

json_t *execbody_command(const char *const *command)
{
    json_t *array = json_array();
    for (const char *const *argument = command; *argument; argument++) {
        if (!text_is_utf8(*argument, strlen(*argument))) {
            json_decref(array);
            return through_shell(command);
        }
        json_array_append_new(array, json_string(*argument));
    }
    return array;
}

int execbody_make(const struct exec_request *request, unsigned columns, unsigned rows, json_t **ret_body,
                  struct error *err)
{
    if (!request->command || !request->command[0]) {
        return error_set(err, ERR_USAGE, "there is no command to run");
    }
    if (request->directory && !text_is_utf8(request->directory, strlen(request->directory))) {
        return error_set(err, ERR_USAGE, "the directory to run in is not UTF-8");
    }
    json_t *body =
        json_pack("{s:o, s:b, s:b, s:I, s:I, s:I, s:I}", "command", execbody_command(request->command),
                  "wait-for-websocket", 1, "interactive", request->interactive, "user", (json_int_t)request->user,
                  "group", (json_int_t)request->group, "width", (json_int_t)columns, "height", (json_int_t)rows);
    if (!body) {
        abort();
    }
    if (request->directory) {
        json_object_set_new(body, "cwd", json_string(request->directory));
    }
    if (request->environment) {
        json_object_set(body, "environment", request->environment);
    }
    *ret_body = body;
    return 0;
}

json_t *execbody_root_environment(void)
{
    json_t *environment = json_pack("{s:s, s:s, s:s}", "PATH",
                                    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME", "/root",
                                    "LC_ALL", "C.UTF-8");

    if (!environment) {
        abort();
    }
    return environment;
}

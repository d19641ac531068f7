/* Becoming the box's user in the guest, without a login.
 * Not for: what happens on the wire, which incus/exec.h does. */
#include "cli/landing.h"

#include "base/memory.h"
#include "incus/exec.h"

#include <stdlib.h>
#include <unistd.h>

/* As root: finds the user (`$1`), sets what a login sets, and goes on as that user with the next stage (`$2`). The
 * files that PAM reads at a login (environment, locale) are read here, line by line and never executed. */
static const char enter_script[] =
    "user=$1 stage=$2\n"
    "shift 2\n"
    "fail() { echo \"box: $1\" >&2; exit 125; }\n"
    "find() {\n"
    "    while IFS=: read -r name _ uid gid _ home shell; do\n"
    "        [ \"$name\" != \"$user\" ] || return 0\n"
    "    done\n"
    "    return 1\n"
    "}\n"
    "find </etc/passwd || find <<END || fail \"the guest has no user '$user'\"\n"
    "$(getent passwd \"$user\")\n"
    "END\n"
    "settings() {\n"
    "    while read -r line; do\n"
    "        line=${line#export }\n"
    "        name=${line%%=*} value=${line#*=}\n"
    "        case $name in \"$line\" | '' | [0-9]* | *[!A-Za-z0-9_]* | *UID | PPID | IFS) continue ;; esac\n"
    "        case $value in \\\"*\\\" | \\'*\\') value=${value#?} value=${value%?} ;; esac\n"
    "        export \"$name=$value\"\n"
    "    done\n"
    "}\n"
    "[ ! -t 0 ] || chown \"$uid\" /proc/self/fd/0 2>/dev/null\n" /* tmux and screen open their terminal by name */
    "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
    "[ ! -r /etc/environment ] || settings </etc/environment\n"
    "[ ! -r /etc/default/locale ] || settings </etc/default/locale\n"
    "export HOME=\"${home:-/}\" USER=\"$user\" LOGNAME=\"$user\" SHELL=\"${shell:-/bin/sh}\"\n"
    "case $SHELL in */bash) next=$SHELL ;; *) next=/bin/sh ;; esac\n"
    "[ -x \"$next\" ] || next=/bin/sh\n"
    "[ -x /usr/bin/setpriv ] || fail \"the guest has no setpriv (package util-linux)\"\n"
    "exec /usr/bin/setpriv --reuid=\"$uid\" --regid=\"$gid\" --init-groups -- \"$next\" -c \"$stage\" box \"$@\"\n";

/* As the user: what the profiles set (PATH above all) counts, what they print does not, and whatever they do (exit,
 * a syntax error, set -e) the command runs. 3, 4 and 5 keep the streams meanwhile. Debian's /etc/profile asks `id -u`
 * and `run-parts` of programs each time: bash can tell by itself, which saves two processes. */
static const char command_script[] =
    "cd \"$HOME\" 2>/dev/null || cd /\n"
    "unset OLDPWD container\n"
    "land() {\n"
    "    exec <&5 >&3 2>&4 5<&- 3>&- 4>&-\n"
    "    case $1 in\n"
    "        */*)\n"
    "            [ -e \"$1\" ] || refuse 127 \"there is no $1 in the box\"\n"
    "            [ -f \"$1\" ] && [ -x \"$1\" ] || refuse 126 \"$1 cannot be executed in the box\" ;;\n"
    "        *) command -v -- \"$1\" >/dev/null || refuse 127 \"there is no command ${1:-''} in the box\" ;;\n"
    "    esac\n"
    "    exec \"$@\"\n"
    "}\n"
    "refuse() { echo \"box: $2\" >&2; exit \"$1\"; }\n"
    "[ -z \"$EUID\" ] || id() { [ \"$*\" = -u ] && echo \"$EUID\" || command id \"$@\"; }\n"
    "[ -z \"$BASH_VERSION\" ] || eval 'run-parts() {\n"
    "    [ \"$1 $2\" = \"--list --regex\" ] && [ $# = 4 ] || { command run-parts \"$@\"; return; }\n"
    "    local file\n"
    "    for file in \"$4\"/*; do [[ ${file##*/} =~ $3 ]] && [ -f \"$file\" ] && echo \"$file\"; done\n"
    "    return 0\n"
    "}'\n"
    "profile() {\n"
    "    [ ! -r /etc/profile ] || . /etc/profile\n"
    "    if [ -n \"$BASH_VERSION\" ]; then\n"
    "        for file in .bash_profile .bash_login; do\n"
    "            [ -r \"$HOME/$file\" ] || continue\n"
    "            . \"$HOME/$file\"\n"
    "            return\n"
    "        done\n"
    "    fi\n"
    "    [ ! -r \"$HOME/.profile\" ] || . \"$HOME/.profile\"\n"
    "}\n"
    "trap 'land \"$@\"' EXIT\n"
    "exec 5<&0 3>&1 4>&2\n"
    "profile \"$@\" </dev/null >/dev/null 2>&1\n"
    "trap - EXIT\n"
    "land \"$@\"\n";

/* As the user, on a pty. TERM came from outside: it names a file only where it is a plain name. */
#define ON_TERMINAL                                                                                                    \
    "cd \"$HOME\" 2>/dev/null || cd /\n"                                                                               \
    "unset OLDPWD container\n"                                                                                         \
    "known() {\n"                                                                                                      \
    "    case $TERM in '' | *[!A-Za-z0-9._+-]* | [!A-Za-z0-9]*) return 1 ;; esac\n"                                    \
    "    for place in \"$HOME/.terminfo\" /etc/terminfo /lib/terminfo /usr/share/terminfo /usr/lib/terminfo; do\n"     \
    "        [ ! -r \"$place/${TERM%\"${TERM#?}\"}/$TERM\" ] || return 0\n"                                            \
    "    done\n"                                                                                                       \
    "    return 1\n"                                                                                                   \
    "}\n"                                                                                                              \
    "known || TERM=xterm-256color\n"                                                                                   \
    "export TERM\n"

static const char shell_script[] =
    ON_TERMINAL "for shell in \"$SHELL\" /bin/bash /bin/sh; do\n"
                "    [ -x \"$shell\" ] && export SHELL=\"$shell\" && exec \"$shell\" -l\n"
                "done\n"
                "echo \"box: the guest has no shell that runs\" >&2\n"
                "exit 126\n";

/* The name of the session is `$1`. -u: UTF-8, whatever the guest's locale is. tmux's own shells are login shells. */
static const char tmux_script[] = ON_TERMINAL "command -v tmux >/dev/null || { echo \"box: the guest has no tmux: "
                                              "install it there, or use box shell\" >&2; exit 127; }\n"
                                              "exec tmux -u new-session -A -s \"$1\"\n";

static void land(const struct box *box, const char *stage, struct argv *ret_command)
{
    argv_push(ret_command, "/bin/sh");
    argv_push(ret_command, "-c");
    argv_push(ret_command, enter_script);
    argv_push(ret_command, "box");
    argv_push(ret_command, box->user ? box->user : "root");
    argv_push(ret_command, stage);
}

void landing_command(const struct box *box, const struct argv *command, struct argv *ret_command)
{
    land(box, command_script, ret_command);
    argv_push_all(ret_command, (const char *const *)command->items);
}

void landing_shell(const struct box *box, struct argv *ret_command)
{
    land(box, shell_script, ret_command);
}

void landing_tmux(const struct box *box, const char *session, struct argv *ret_command)
{
    land(box, tmux_script, ret_command);
    argv_push(ret_command, session);
}

int landing_on_terminal(struct client *client, const struct box *box, const struct argv *command, int *ret_status,
                        struct error *err)
{
    const char *term = getenv("TERM");
    CLEANUP(json_freep) json_t *environment = landing_environment(term ? term : "");
    struct exec_request request = {
        .instance = box->name,
        .command = (const char *const *)command->items,
        .environment = environment,
        .directory = "/",
        .interactive = true,
        .input = STDIN_FILENO,
        .output = STDOUT_FILENO,
        .errors = STDERR_FILENO,
    };
    return exec_run(client, &request, ret_status, err);
}

json_t *landing_environment(const char *term)
{
    json_t *environment = json_pack("{s:s}", "LANG", "C.UTF-8");
    if (!environment) {
        abort();
    }
    if (term && json_object_set_new(environment, "TERM", json_string(term)) < 0) {
        /* not UTF-8: no terminal has such a name, the guest falls back */
        (void)json_object_set_new(environment, "TERM", json_string(""));
    }
    return environment;
}

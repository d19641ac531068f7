/* `box ssh-config`: ssh, scp, rsync and editors reach a box through `box exec`; nothing listens anywhere.
 * Not for: a shell; `box shell` needs none of this. */
#include "base/buffer.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/box.h"
#include "cli/command.h"
#include "cli/landing.h"
#include "cli/publickey.h"
#include "incus/exec.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEY_CEILING ((size_t)16 * 1024)
#define BUDGET      30000 /* milliseconds for the guest's half */

/* Lets that key in and makes what sshd needs, all of it the user's own: it runs as that user, one process a connection,
 * on a stream that box opens. Without PAM a user whose password is locked may come in by key. */
static const char prepare_script[] =
    "fail() { echo \"$1\" >&2; exit 3; }\n"
    "[ -x /usr/sbin/sshd ] || exit 4\n"
    "umask 077\n"
    "mkdir -p \"$HOME/.ssh\" && cd \"$HOME/.ssh\" || exit 3\n"
    "[ -s box_host_key ] || ssh-keygen -q -t ed25519 -N '' -C box -f box_host_key </dev/null || exit 3\n"
    "[ ! -s authorized_keys ] || [ -z \"$(tail -c 1 authorized_keys)\" ] || echo >>authorized_keys\n"
    "touch authorized_keys && { grep -qxF -- \"$1\" authorized_keys || printf '%s\\n' \"$1\" >>authorized_keys; } || "
    "exit 3\n"
    "cat >box_sshd_config <<END\n"
    "HostKey $PWD/box_host_key\n"
    "AuthorizedKeysFile $PWD/authorized_keys\n"
    "PidFile none\n"
    "UsePAM no\n"
    "PasswordAuthentication no\n"
    "KbdInteractiveAuthentication no\n"
    "PrintMotd no\n"
    "AcceptEnv LANG LC_*\n"
    "Subsystem sftp internal-sftp\n"
    "END\n"
    "printf %s \"$PWD/box_sshd_config\"\n";

static const char *const key_names[] = {"id_ed25519.pub", "id_ecdsa.pub", "id_ed25519_sk.pub", "id_ecdsa_sk.pub",
                                        "id_rsa.pub"};

/* The file's one line. What is no public key is refused before it is sent anywhere. */
static int read_key(const char *path, char **ret_key, struct error *err)
{
    CLEANUP(buffer_reset) struct buffer data = {0};
    if (fd_read_file(path, KEY_CEILING, &data, err) < 0) {
        return -1;
    }
    while (data.length && strchr("\r\n ", data.data[data.length - 1])) {
        data.data[--data.length] = '\0';
    }
    if (!data.length || strlen(data.data) != data.length || !publickey_is_one(data.data)) {
        error_set(err, ERR_USAGE, "%s is no public key of ssh: nothing of it was sent", path);
        return error_remedy(err, "its public half ends in .pub; to make a pair: ssh-keygen -t ed25519");
    }
    *ret_key = buffer_steal(&data);
    return 0;
}

/* $HOME where it is set, as ssh itself does not ask but people expect; else what the system says. */
static const char *home(void)
{
    const char *given = getenv("HOME");
    const struct passwd *user = text_is_empty(given) ? getpwuid(geteuid()) : NULL;
    return user ? user->pw_dir : given;
}

static int find_key(const struct context *context, char **ret_path, char **ret_key, struct error *err)
{
    const char *given = option_text(&context->options, "key");
    if (given) {
        CLEANUP(freep) char *absolute = realpath(given, NULL);
        *ret_path = absolute ? steal(&absolute) : xstrdup(given);
        return read_key(given, ret_key, err);
    }
    for (size_t i = 0; home() && i < ARRAY_LENGTH(key_names); i++) {
        CLEANUP(freep) char *path = xasprintf("%s/.ssh/%s", home(), key_names[i]);
        if (access(path, F_OK) == 0) {
            int result = read_key(path, ret_key, err);
            *ret_path = steal(&path);
            return result;
        }
    }
    error_set(err, ERR_NOT_FOUND, "you have no ssh key in %s/.ssh", home() ? home() : "");
    return error_remedy(err, "make one: ssh-keygen -t ed25519\nor name its public half: --key FILE");
}

static int prepare(struct client *client, const struct box *box, const char *key, char **ret_config, struct error *err)
{
    CLEANUP(argv_reset) struct argv inner = {0};
    CLEANUP(argv_reset) struct argv command = {0};
    CLEANUP(buffer_reset) struct buffer said = {0};
    CLEANUP(buffer_reset) struct buffer errors = {0};
    CLEANUP(json_freep) json_t *environment = landing_environment(NULL);
    const char *const script[] = {"sh", "-c", prepare_script, "box", key, NULL};
    argv_push_all(&inner, script);
    landing_command(box, &inner, &command);
    struct exec_request request = {
        .instance = box->name,
        .command = (const char *const *)command.items,
        .environment = environment,
        .directory = "/",
        .input = -1,
        .output = -1,
        .errors = -1,
        .capture = &said,
        .capture_errors = &errors,
        .budget = BUDGET,
    };
    int status = 0;
    if (exec_run(client, &request, &status, err) < 0) {
        return -1;
    }
    if (status == 4) {
        error_set(err, ERR_STATE, "the box %s has no sshd", box->name);
        return error_remedy(err, "install it there: box exec %s -- sudo apt-get install -y openssh-server", box->name);
    }
    CLEANUP(freep) char *path = text_sanitise(said.data ? said.data : "", said.length);
    /* The path goes into a shell command on this host: nothing but a plain path may come from a guest. */
    if (status != 0 || path[0] != '/' ||
        path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-")]) {
        CLEANUP(freep) char *words = text_sanitise(errors.data ? errors.data : "", errors.length);
        return error_set(err, ERR_SYSTEM, "the box %s could not be prepared for ssh: %s", box->name, words);
    }
    *ret_config = steal(&path);
    return 0;
}

/* For a shell, inside ssh's own configuration: there a % begins a token. */
static char *quote(const char *text)
{
    CLEANUP(buffer_reset) struct buffer quoted = {0};
    buffer_append_text(&quoted, "'");
    for (; *text; text++) {
        if (*text == '\'') {
            buffer_append_text(&quoted, "'\\''");
        } else {
            buffer_append(&quoted, text, 1);
            if (*text == '%') {
                buffer_append_text(&quoted, "%");
            }
        }
    }
    buffer_append_text(&quoted, "'");
    return buffer_steal(&quoted);
}

static int print(struct context *context, const char *config, const char *key_path, struct error *err)
{
    const struct box *box = context->box;
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length < 0) {
        return error_set(err, ERR_SYSTEM, "cannot find out where box is");
    }
    program[length] = '\0';
    CLEANUP(freep) char *quoted = quote(program);
    (void)fprintf(context->out, "Host %s\n", box->name);
    (void)fprintf(context->out, "    User %s\n", box->user ? box->user : "root");
    (void)fprintf(context->out, "    ProxyCommand %s exec --quiet --stdin %s -- /usr/sbin/sshd -i -f %s\n", quoted,
                  box->name, config);
    /* Who answers is decided by the way, the daemon's own socket, and not by a key that a clone shares. */
    (void)fprintf(context->out, "    StrictHostKeyChecking no\n    UserKnownHostsFile /dev/null\n    LogLevel ERROR\n");
    (void)fprintf(context->out, "    ForwardAgent no\n    ForwardX11 no\n");
    if (text_ends_with(key_path, ".pub") && !strpbrk(key_path, "\"%\n")) {
        (void)fprintf(context->out, "    IdentityFile \"%.*s\"\n", (int)(strlen(key_path) - 4), key_path);
    }
    return 0;
}

static int run(struct context *context, struct error *err)
{
    struct client *client = NULL;
    CLEANUP(freep) char *path = NULL;
    CLEANUP(freep) char *key = NULL;
    CLEANUP(freep) char *config = NULL;
    if (find_key(context, &path, &key, err) < 0 || context_client(context, &client, err) < 0 ||
        prepare(client, context->box, key, &config, err) < 0) {
        return -1;
    }
    return print(context, config, path, err);
}

static const struct option_row options[] = {
    {.name = "key",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "the public key to let in (the first of ~/.ssh/id_*.pub)"},
    {0},
};

const struct command command_ssh_config = {
    .name = "ssh-config",
    .section = SECTION_DAILY,
    .arguments = "BOX",
    .summary = "print what ssh needs to reach a box, and let your public key in",
    .help = "For ssh, scp, rsync and editors that work over ssh:\n"
            "\n"
            "    box ssh-config a >> ~/.ssh/config\n"
            "    ssh a\n"
            "\n"
            "The connection runs through 'box exec': in the box sshd serves it on that\n"
            "stream alone, as the box's user, and listens nowhere. Only the public half of\n"
            "your key goes into the box. Do not forward your agent into a box.\n",
    .options = options,
    .flags = NEEDS_BOX | NEEDS_RUNNING,
    .run = run,
    .also = "ssh sshconfig sftp rsync code",
};

/* A look into a box for work that exists nowhere else, before it is removed.
 * Not for deciding anything: a guest says of itself what it likes. */
#include "box/loss.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "incus/exec.h"
#include "incus/execbody.h"

#include <string.h>

#define CEILING (64 * 1024)

/* A line for each finding, as it comes. Git runs as the owner of the repository, whose configuration may name programs.
 */
static const char script[] =
    "for socket in /tmp/tmux-*/*; do\n"
    "    [ -S \"$socket\" ] && tmux -S \"$socket\" list-sessions -F 'tmux session #S: #{session_windows} windows' "
    "2>/dev/null\n"
    "done\n"
    "find /home /root /srv /opt /workspace -xdev -maxdepth 6 -name .git -prune 2>/dev/null | while read -r git; do\n"
    "    dir=${git%/.git}\n"
    "    owner=\"--reuid=$(stat -c %u \"$dir\") --regid=$(stat -c %g \"$dir\") --clear-groups\"\n"
    "    run() { setpriv $owner git -c safe.directory='*' -C \"$dir\" \"$@\" 2>/dev/null; }\n"
    "    if ! command -v git >/dev/null || ! setpriv $owner true 2>/dev/null; then\n"
    "        echo \"repository $dir: without git and setpriv in the box nobody can say\"\n"
    "        continue\n"
    "    fi\n"
    "    words=\n"
    "    [ -n \"$(run status --porcelain | head -n 1)\" ] && words=\", uncommitted changes\"\n"
    "    count=$(run rev-list --count --branches --not --remotes)\n"
    "    [ \"${count:-0}\" -gt 0 ] && words=\"$words, $count commits that were not pushed\"\n"
    "    [ -n \"$(run stash list | head -n 1)\" ] && words=\"$words, a stash\"\n"
    "    [ -n \"$words\" ] && echo \"repository $dir: ${words#, }\"\n"
    "done\n"
    "exit 0\n";

static void take_lines(const struct buffer *output, struct argv *lines)
{
    CLEANUP(freep) char *clean = output->data ? text_sanitise(output->data, output->length) : xstrdup("");
    size_t taken = 0;

    for (char *line = clean, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) {
            *next++ = '\0';
        }
        if (*line && taken++ < LOSS_LINES) {
            argv_push_format(lines, "%.300s", line);
        }
    }
}

int64_t loss_look(struct client *client, const struct box *box, int64_t budget, struct argv *ret_lines)
{
    const char *const command[] = {"/bin/sh", "-c", script, NULL};
    CLEANUP(buffer_reset) struct buffer output = {0};
    CLEANUP(json_freep) json_t *environment = execbody_root_environment();
    const struct exec_request request = {.instance = box->name,
                                         .command = command,
                                         .environment = environment,
                                         .input = -1,
                                         .output = -1,
                                         .errors = -1,
                                         .capture = &output,
                                         .ceiling = CEILING,
                                         .budget = budget};
    int64_t began = clock_now();
    int status = 0;

    if (!box->running || budget <= 0) {
        return budget;
    }
    /* What was said before the time was over counts, too. */
    (void)exec_run(client, &request, &status, NULL);
    take_lines(&output, ret_lines);
    int64_t left = budget - (clock_now() - began);

    return left > 0 ? left : 0;
}

#ifndef BOX_CLI_LANDING_H
#define BOX_CLI_LANDING_H

#include "base/argv.h"
#include "base/json.h"
#include "box/box.h"

/* How a command lands in a box as the box's user. Incus's exec goes through no login: it sets no supplementary groups, and
 * HOME, USER and PATH are what the request says. So the request runs, as root, a small script of ours in the guest
 * that looks the user up, takes on its uid, gid and groups, and becomes the command by exec alone: no process of ours stays, so
 * signals and the exit status are the command's own. No PAM is involved. */

/* For `command` (its arguments arrive byte for byte): home as directory, the environment that a login would give. Exit
 * status 125 where the guest lacks the user or a tool that this needs. */
void landing_command(const struct box *box, const struct argv *command, struct argv *ret_command);

/* For the user's login shell on a pty. TERM falls back to xterm-256color where the guest does not know it. */
void landing_shell(const struct box *box, struct argv *ret_command);

/* For tmux on a pty, attached to that session, which is made where it is not there. Its server outlives the connection. Exit
 * status 127 where the guest has no tmux. The caller has checked the name. */
void landing_tmux(const struct box *box, const char *session, struct argv *ret_command);

/* Runs what landing_shell() or landing_tmux() made on this process's terminal (stdin and stdout are one). */
int landing_on_terminal(struct client *client, const struct box *box, const struct argv *command, int *ret_status,
                        struct error *err);

/* The environment of the request; nothing of the host's but the kind of its terminal, where `term` is not NULL. The
 * caller owns the object. */
json_t *landing_environment(const char *term);

#endif

#!/bin/sh
# Runs as root in the box, after its first boot and whenever `box converge` is asked for. What it prints is shown; what
# the package managers say is in the log. It holds no credential and asks for none.
set -eu

PACKAGE=@anthropic-ai/claude-code
COMMAND=claude
CONTEXT=.claude/CLAUDE.md
LOG=/var/log/box-converge.log
MARK='<!-- written by box: it is renewed as long as this line is here -->'

say() { echo "$1" | tee -a "$LOG"; }

quietly() {
    "$@" >>"$LOG" 2>&1 || {
        tail -n 20 "$LOG"
        echo "failed: $*"
        exit 1
    }
}

as_user() { quietly setpriv --reuid="$BOX_USER" --regid="$BOX_USER" --init-groups env HOME="$BOX_HOME" USER="$BOX_USER" "$@"; }

say "fetching the archive's index"
quietly apt-get -o DPkg::Lock::Timeout=300 -qq update
say "installing git, gh, ripgrep, jq, tmux, build-essential, node and npm"
quietly apt-get -o DPkg::Lock::Timeout=300 -qq -y --no-install-recommends install \
    git ripgrep jq tmux build-essential ca-certificates curl nodejs npm
if apt-cache show gh >/dev/null 2>&1; then
    quietly apt-get -o DPkg::Lock::Timeout=300 -qq -y --no-install-recommends install gh
fi
apt-get clean

# Node has a list of certificate authorities of its own; a template can add one to the machine's (cloud-init's ca_certs).
BUNDLE=/etc/ssl/certs/ca-certificates.crt
grep -q '^NODE_EXTRA_CA_CERTS=' /etc/environment 2>/dev/null || echo "NODE_EXTRA_CA_CERTS=$BUNDLE" >>/etc/environment

# In the user's own home, so that the agent's own update needs no root. Debian's ~/.profile puts ~/.local/bin into PATH.
say "installing $PACKAGE"
cd "$BOX_HOME"
as_user mkdir -p .local/bin
as_user npm config set prefix "$BOX_HOME/.local" --location=user
as_user npm config set cafile "$BUNDLE" --location=user
as_user npm install --global --no-fund --no-audit --loglevel=error "$PACKAGE"
as_user npm cache clean --force

# What the agent should know of where it is. A file without the mark is the user's own.
if [ ! -e "$CONTEXT" ] || grep -qF "$MARK" "$CONTEXT"; then
    as_user mkdir -p "$(dirname "$CONTEXT")"
    as_user tee "$CONTEXT" <<END
$MARK
# You are in a box

- This machine is a box: an isolated, disposable Debian machine. It reaches the public internet and nothing else: no host, no
  LAN, no other machine. A connection to a private address will not work, and that is meant.
- It holds no credential but those that its person typed into it. Ask for one where you need it; write none into a repository.
- Whatever is not pushed is lost when the box is removed: commit and push early.
- You are the user $BOX_USER and may use sudo without a password: install what you need.
- Do not set up boxes in here: no box, no Incus, no virtual machines. Docker from the Debian archive (docker.io) is fine.
- Where a repository has a folder \`.box/\`, read \`.box/README.md\` first: it is that project's runbook for a box.
END
fi

version=$(setpriv --reuid="$BOX_USER" --regid="$BOX_USER" --init-groups env HOME="$BOX_HOME" \
    PATH="$BOX_HOME/.local/bin:$PATH" "$COMMAND" --version)
say "$COMMAND $version"

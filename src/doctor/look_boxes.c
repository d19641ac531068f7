/* The boxes: what is left behind or off the contract, and what each one that runs reaches by itself.
 * Each is asked in a process of its own, for one that hangs must not hold the others up; and what a guest says counts
 * as an exit status, never as text. Not for proof: a guest may lie here. That is the drill. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/box.h"
#include "box/contract.h"
#include "box/migrate.h"
#include "box/tag.h"
#include "doctor/look.h"
#include "incus/exec.h"
#include "stack/names.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MINT_SECONDS 3600 /* a mint that takes longer was killed */
#define EXEC_MS      9000
#define SIDE_BY_SIDE 6

/* What the script in a box ends with. */
enum verdict {
    REACHES = 0,
    HOLDS_GATEWAY = 40,
    MANY_ROUTES = 41,
    NO_ROUTE = 42,
    NO_NAMES = 43,
    NO_TOOLS = 44,
    NO_EXEC = 45
};

/* $1 the gateway, $2 the first resolver. Every tool may be missing in an image that is not ours. */
static const char script[] =
    "PATH=$PATH:/bin:/sbin:/usr/sbin; command -v ip >/dev/null || exit 44\n"
    "ip -4 address show | grep -q \" $1/\" && exit 40\n"
    "[ \"$(ip -4 route show default | wc -l)\" -le 1 ] || exit 41\n"
    "if command -v bash >/dev/null; then timeout 4 bash -c \": </dev/tcp/$2/53\" 2>/dev/null || exit 42\n"
    "elif command -v nc >/dev/null; then nc -w 4 \"$2\" 53 </dev/null >/dev/null 2>&1 || exit 42; fi\n"
    "if command -v getent >/dev/null; then timeout 4 getent ahostsv4 example.com >/dev/null || exit 43\n"
    "elif command -v nslookup >/dev/null; then timeout 4 nslookup -type=a example.com >/dev/null 2>&1 || exit 43; fi\n"
    "exit 0\n";

static const struct {
    enum verdict verdict;
    enum finding_kind kind;
    const char *text, *fix;
} meanings[] = {
    {HOLDS_GATEWAY, FINDING_BROKEN, "it holds its gateway's address as its own: a stack inside it captured its network",
     "box restore %s pristine"},
    {MANY_ROUTES, FINDING_BROKEN, "it has more than one default route", "box restore %s pristine"},
    {NO_ROUTE, FINDING_BROKEN, "it does not reach the internet", "sudo box setup-host"},
    {NO_NAMES, FINDING_BROKEN, "it resolves no names", "sudo box setup-host"},
    {NO_TOOLS, FINDING_UNSEEN, "it has no ip program to ask", NULL},
    {NO_EXEC, FINDING_UNSEEN, "nothing can be run in it", NULL},
};

static void look_incomplete(struct look *look, const struct box *box)
{
    CLEANUP(freep) char *fix = xasprintf("box rm --force %s", box->name);
    if (text_equal(box->state, TAG_STATE_UNCONVERGED)) {
        CLEANUP(freep) char *again = xasprintf("box converge %s", box->name);
        finding_add(&look->findings, FINDING_BROKEN, "mints", again, "converge.sh of its template failed in %s",
                    box->name);
    } else if (text_equal(box->state, TAG_STATE_FAILED)) {
        finding_add(&look->findings, FINDING_BROKEN, "mints", fix, "the mint of %s failed", box->name);
    } else if (box->state != NULL && box->created != 0 && time(NULL) - box->created > MINT_SECONDS) {
        finding_add(&look->findings, FINDING_BROKEN, "mints", fix, "the mint of %s was killed", box->name);
    }
}

static void look_contract(struct look *look, const struct box *box)
{
    CLEANUP(argv_reset) struct argv deviations = {0};
    contract_check(box->instance, &deviations);
    enum migrate_stage stage = migrate_stage_of(box);
    if (stage == MIGRATE_OLDER || stage == MIGRATE_BEGUN) {
        CLEANUP(freep) char *fix = xasprintf("sudo box migrate-host --box %s", box->name);
        finding_add(&look->findings, FINDING_BROKEN, "contract", fix, "%s %s", box->name,
                    stage == MIGRATE_OLDER ? "is on the network of the older generation"
                                           : "is half-way between the older network and " STACK_NETWORK);
    } else if (deviations.count > 0) {
        CLEANUP(freep) char *lines = argv_join(&deviations, "; ");
        CLEANUP(freep) char *fix = xasprintf("box info %s", box->name);
        finding_add(&look->findings, FINDING_BROKEN, "contract", fix, "%s is off the contract: %s", box->name, lines);
    }
}

/* In the child. */
static int probe(const char *name, const char *gateway, const char *resolver)
{
    CLEANUP(client_closep) struct client *client = NULL;
    const char *const command[] = {"/bin/sh", "-c", script, "sh", gateway, resolver, NULL};
    struct exec_request request = {
        .instance = name, .command = command, .input = -1, .output = -1, .errors = -1, .budget = EXEC_MS};
    int status = NO_EXEC;
    if (client_open(&client, NULL) < 0 || exec_run(client, &request, &status, NULL) < 0) {
        return NO_EXEC;
    }
    return status;
}

struct asked {
    const struct box *box;
    pid_t pid;
    int handle;
    enum verdict verdict;
};

static void begin(struct asked *asked, const char *gateway, const char *resolver)
{
    asked->pid = fork();
    if (asked->pid == 0) {
        _exit(probe(asked->box->name, gateway, resolver));
    }
    asked->handle = asked->pid > 0 ? (int)syscall(SYS_pidfd_open, asked->pid, 0) : -1;
}

/* Waits at most until the deadline; who does not end by then is killed. */
static void collect(struct asked *asked, int64_t deadline)
{
    struct pollfd polled = {.fd = asked->handle, .events = POLLIN};
    int status = 0;
    asked->verdict = NO_EXEC;
    if (asked->pid <= 0) {
        return;
    }
    if (asked->handle < 0 || poll(&polled, 1, clock_left(deadline)) <= 0) {
        (void)kill(asked->pid, SIGKILL);
    }
    while (waitpid(asked->pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status)) {
        asked->verdict = WEXITSTATUS(status);
    }
    if (asked->handle >= 0) {
        (void)close(asked->handle);
    }
}

static void tell(struct look *look, const struct asked *asked, size_t *ret_reaching)
{
    if (asked->verdict == REACHES) {
        (*ret_reaching)++;
        return;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(meanings); i++) {
        if (meanings[i].verdict == asked->verdict) {
            bool named = meanings[i].fix != NULL && strstr(meanings[i].fix, "%s") != NULL;
            CLEANUP(freep) char *restore = xasprintf("box restore %s pristine", asked->box->name);
            finding_add(&look->findings, meanings[i].kind, "boxes", named ? restore : meanings[i].fix, "%s: %s",
                        asked->box->name, meanings[i].text);
            return;
        }
    }
    finding_add(&look->findings, FINDING_UNSEEN, "boxes", NULL, "%s: its shell ended with status %d", asked->box->name,
                (int)asked->verdict);
}

static void look_reach(struct look *look, struct box *const *boxes, size_t count)
{
    char gateway[SUBNET_TEXT];
    CLEANUP(freep) char *resolver = xstrndup(look->view.dns, strcspn(look->view.dns, " ,"));
    CLEANUP(freep) struct asked *asked = xcalloc(count + 1, sizeof(*asked));
    size_t running = 0, reaching = 0, begun = 0;
    int64_t deadline = clock_deadline(EXEC_MS + 1000);
    subnet_format_address(look->view.gateway, gateway);
    for (size_t i = 0; i < count; i++) {
        if (boxes[i]->running && boxes[i]->state == NULL) {
            asked[running++].box = boxes[i];
        }
    }
    for (size_t done = 0; done < running; done++) {
        for (; begun < running && begun < done + SIDE_BY_SIDE; begun++) {
            begin(&asked[begun], gateway, resolver);
        }
        collect(&asked[done], deadline);
        tell(look, &asked[done], &reaching);
    }
    if (reaching == running) {
        finding_add(&look->findings, FINDING_OK, "boxes", NULL, "%zu run, and reach the internet and resolve names",
                    running);
    }
}

static void look_drills(struct look *look)
{
    CLEANUP(argv_reset) struct argv names = {0};
    if (look->options->leftovers == NULL || look->options->leftovers(look->client, &names, NULL) < 0) {
        return;
    }
    if (names.count > 0) {
        CLEANUP(freep) char *list = argv_join(&names, ", ");
        finding_add(&look->findings, FINDING_BROKEN, "drills", "sudo box doctor --fix", "a drill left %s", list);
    } else {
        finding_add(&look->findings, FINDING_OK, "drills", NULL, "none left anything");
    }
}

void look_boxes(struct look *look)
{
    CLEANUP(error_reset) struct error failure = {0};
    struct box **boxes = NULL;
    size_t count = 0, before = look->findings.count;
    if (look->client == NULL) {
        return;
    }
    if (box_list(look->client, &boxes, &count, &failure) < 0) {
        finding_add(&look->findings, FINDING_UNSEEN, "boxes", failure.remedy, "%s", failure.message);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        look_incomplete(look, boxes[i]);
        look_contract(look, boxes[i]);
    }
    if (look->findings.count == before) {
        finding_add(&look->findings, FINDING_OK, "contract", NULL, "%zu boxes keep it", count);
    }
    if (look->view.has_subnet) {
        look_reach(look, boxes, count);
    }
    look_drills(look);
    box_list_free(boxes, count);
}

/* The drill in a lab of its own: up, set up, drill, down.
 * Not for: what the drill does there; it is the same program with the same claims. */
#include "drill/rehearsal.h"

#include "base/cancel.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

enum { LAB_MS = 120000, IMAGE_MS = 600000, DRILL_MS = 1200000, REPORT_CEILING = 16 << 20 };

struct stage {
    char *lab; /* lab/lab */
    char *name;
    char *program; /* box */
    char *report;  /* where the inner drill writes it: /tmp is shared with a lab */
    struct narrator *narrator;
    int world; /* descriptor of the world's network namespace, inherited by what runs in the lab */
};

static void stage_reset(struct stage *stage)
{
    free(stage->lab);
    free(stage->name);
    free(stage->program);
    if (stage->report) {
        (void)unlink(stage->report);
    }
    free(stage->report);
    fd_closep(&stage->world);
}

static void pass_line(void *context, const char *line)
{
    CLEANUP(freep) char *safe = text_sanitise(line, strlen(line));
    narrate_note(context, "%s", safe);
}

/* Runs a command; `loud` passes its lines on. */
static int call(struct stage *stage, const struct argv *words, int64_t budget, bool loud, struct error *err)
{
    struct process_options options = {
        .budget = budget, .narrator = stage->narrator, .line = loud ? pass_line : NULL, .context = stage->narrator};
    CLEANUP(process_result_reset) struct process_result result = {0};

    if (process_run((const char *const *)words->items, &options, &result, err) < 0) {
        return -1;
    }
    if (result.status == 0 || (loud && result.status == 1)) {
        return 0;
    }
    const char *said = result.errors.data ? result.errors.data : "";
    CLEANUP(freep) char *safe = text_sanitise(said, strlen(said));
    return error_set(err, ERR_STATE, "%s ended with %d: %s", words->items[0], result.status, safe);
}

static int lab(struct stage *stage, const char *action, struct error *err)
{
    CLEANUP(argv_reset) struct argv words = {0};

    argv_push(&words, stage->lab);
    argv_push(&words, action);
    argv_push(&words, "--name");
    argv_push(&words, stage->name);
    return call(stage, &words, LAB_MS, false, err);
}

/* box, on the lab's host. */
static int box(struct stage *stage, const struct argv *arguments, int64_t budget, bool loud, struct error *err)
{
    CLEANUP(argv_reset) struct argv words = {0};
    const char *const start[] = {stage->lab, "run", "--name", stage->name, "--", stage->program, NULL};

    argv_push_all(&words, start);
    argv_push_all(&words, (const char *const *)arguments->items);
    return call(stage, &words, budget, loud, err);
}

static int box_words(struct stage *stage, const char *const *words, int64_t budget, struct error *err)
{
    CLEANUP(argv_reset) struct argv arguments = {0};

    argv_push_all(&arguments, words);
    return box(stage, &arguments, budget, false, err);
}

static int find_lab(struct stage *stage, struct error *err)
{
    const char *given = getenv("BOX_LAB_PROGRAM");
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

    path[length > 0 ? length : 0] = '\0';
    stage->program = xstrdup(path);
    stage->lab = xstrdup(text_is_empty(given) ? DRILL_LAB_PROGRAM : given);
    if (access(stage->lab, X_OK) == 0) {
        return 0;
    }
    (void)error_set(err, ERR_NOT_FOUND, "there is no lab here: %s", stage->lab);
    return error_remedy(err, "run it from a source tree, or on a prepared host: box drill --host --yes");
}

static int prepare(struct stage *stage, struct error *err)
{
    static const char *const setup[] = {"setup-host", NULL};
    static const char *const build[] = {"image", "build", NULL};
    CLEANUP(freep) char *path = xasprintf("/run/netns/box-%s-world", stage->name);

    narrate_step(stage->narrator, "bringing a lab up");
    if (lab(stage, "up", err) < 0) {
        return -1;
    }
    narrate_done(stage->narrator, "%s", "");
    narrate_step(stage->narrator, "setting its host up");
    if (box_words(stage, setup, LAB_MS, err) < 0 || box_words(stage, build, IMAGE_MS, err) < 0) {
        return error_wrap(err, "setting the lab's host up");
    }
    narrate_done(stage->narrator, "the lab is ready");
    /* Not CLOEXEC: the drill in the lab probes from the world through it. */
    stage->world = open(path, O_RDONLY);
    if (stage->world >= 0) {
        CLEANUP(freep) char *number = xasprintf("%d", stage->world);
        (void)setenv("BOX_DRILL_WORLD_FD", number, 1);
    }
    return 0;
}

static int drill(struct stage *stage, const struct argv *arguments, json_t **ret_report, struct error *err)
{
    CLEANUP(argv_reset) struct argv words = {0};
    CLEANUP(buffer_reset) struct buffer text = {0};
    const char *const start[] = {"drill", "--host", "--yes", "--json", stage->report, NULL};

    argv_push_all(&words, start);
    argv_push_all(&words, (const char *const *)arguments->items);
    if (box(stage, &words, DRILL_MS, true, err) < 0) {
        return -1;
    }
    if (fd_read_file(stage->report, REPORT_CEILING, &text, err) < 0) {
        return error_wrap(err, "the drill in the lab left no report");
    }
    return json_parse(text.data, text.length, "the report", ret_report, err);
}

int rehearsal_run(const struct argv *arguments, struct narrator *narrator, json_t **ret_report, struct error *err)
{
    CLEANUP(stage_reset) struct stage stage = {.narrator = narrator, .world = -1};
    CLEANUP(error_reset) struct error down = {0};

    if (find_lab(&stage, err) < 0) {
        return -1;
    }
    stage.name = xasprintf("drill-%d", (int)getpid());
    stage.report = xasprintf("/tmp/box-drill-%d.json", (int)getpid());
    int result = prepare(&stage, err);
    if (result == 0) {
        result = drill(&stage, arguments, ret_report, err);
    }
    cancel_mask(true);
    if (lab(&stage, "down", &down) < 0) {
        narrate_warn(narrator, "the lab could not be taken down: %s", down.message);
    }
    cancel_mask(false);
    return result;
}

/* The rehearsal as a whole: clean, mint, phase after phase, baseline first, clean again, report.
 * Not for: any single claim; those are rows of the tables. */
#include "drill/drill.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "drill/crew.h"
#include "drill/ground.h"
#include "drill/legacy.h"
#include "drill/pool.h"
#include "drill/record.h"
#include "drill/teardown.h"
#include "drill/trial.h"
#include "stack/names.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define LOCK_FILE CREW_DIRECTORY "/lock"

enum { SLOTS = 6, MARGIN_MS = 3000, DAMAGE_MS = 60000, MINT_BUDGET_MS = 300000 };

/* A run under way. */
struct run {
    struct client *client;
    const struct drill_options *options;
    struct narrator *narrator;
    struct ground *ground;
    struct record record;
    struct argv notes;
    char id[7];
    char *directory;
    int lock;
};

/* What is being run of one table, for the pool's callback. */
struct batch {
    struct run *run;
    const struct claim_table *table;
    const struct claim **claims;
    size_t count;
};

struct task {
    const struct claim *claim;
    struct ground *ground;
    int budget;
};

bool drill_host_is_set_up(struct client *client)
{
    CLEANUP(json_freep) json_t *network = NULL;
    CLEANUP(json_freep) json_t *profile = NULL;

    return client_get(client, "/1.0/networks/" STACK_NETWORK, &network, NULL) == 0 &&
           client_get(client, "/1.0/profiles/" STACK_PROFILE, &profile, NULL) == 0;
}

void drill_counts(const json_t *report, unsigned ret_counts[4])
{
    for (int verdict = 0; verdict < 4; verdict++) {
        ret_counts[verdict] =
            (unsigned)json_number(json_object_get(report, "counts"), verdict_name((enum verdict)verdict), 0);
    }
}

/* Trying a table ----------------------------------------------------------------------------------------------------
 */

static json_t *try_claim(void *context)
{
    const struct task *task = context;

    return trial_run(task->claim, task->ground, task->budget);
}

static void tried(void *context, size_t index, const json_t *answer, const char *why, int64_t ms)
{
    struct batch *batch = context;
    const struct claim *claim = batch->claims[index];
    enum verdict verdict;

    record_add(&batch->run->record, batch->table, claim, answer, why, ms);
    verdict = record_verdict(&batch->run->record, claim->id);
    if (verdict == VERDICT_BROKEN) {
        narrate_warn(batch->run->narrator, "BROKEN %s: %s (%s)", claim->id, claim->text, json_text(answer, "reason"));
    } else {
        narrate_progress(batch->run->narrator, "%s %s", claim->id, verdict_name(verdict));
    }
}

static int try_batch(struct batch *batch, struct error *err)
{
    CLEANUP(freep) struct task *tasks = xcalloc(batch->count + 1, sizeof(*tasks));
    CLEANUP(freep) struct pool_job *jobs = xcalloc(batch->count + 1, sizeof(*jobs));

    for (size_t i = 0; i < batch->count; i++) {
        const struct claim *claim = batch->claims[i];
        tasks[i] = (struct task){claim, batch->run->ground, claim->budget ? claim->budget : batch->table->budget};
        jobs[i] = (struct pool_job){.work = try_claim,
                                    .context = &tasks[i],
                                    .budget = tasks[i].budget + MARGIN_MS,
                                    .alone = (claim->flags & CLAIM_ALONE) != 0};
    }
    return pool_run(jobs, batch->count, SLOTS, batch->run->narrator, tried, batch, err);
}

/* Why a claim is not even tried, or NULL. */
static const char *untried(const struct run *run, const struct claim *claim)
{
    if (run->options->claims && !claim_is_listed(run->options->claims, claim->id) && !(claim->flags & CLAIM_FIRST)) {
        return "another claim was asked for";
    }
    return NULL;
}

/* Runs the rows of which (flags & CLAIM_FIRST) is `first`; the lonely ones last, so that the rest runs side by side. */
static int try_rows(struct run *run, const struct claim_table *table, bool first, struct error *err)
{
    CLEANUP(freep) const struct claim **claims = xcalloc(table->count + 1, sizeof(*claims));
    struct batch batch = {.run = run, .table = table, .claims = claims};

    for (int alone = 0; alone < 2; alone++) {
        for (size_t i = 0; i < table->count; i++) {
            const struct claim *claim = &table->claims[i];
            if (!!(claim->flags & CLAIM_FIRST) != first || !!(claim->flags & CLAIM_ALONE) != alone) {
                continue;
            }
            const char *why = untried(run, claim);
            if (why) {
                record_add_untried(&run->record, table, claim, VERDICT_SKIPPED, why);
            } else {
                claims[batch.count++] = claim;
            }
        }
    }
    return try_batch(&batch, err);
}

/* The first row of the baseline that does not hold, or NULL. */
static const struct claim *broken_baseline(const struct run *run, const struct claim_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        if ((table->claims[i].flags & CLAIM_FIRST) &&
            record_verdict(&run->record, table->claims[i].id) != VERDICT_HOLDS) {
            return &table->claims[i];
        }
    }
    return NULL;
}

static void refuse_rows(struct run *run, const struct claim_table *table, enum verdict verdict, const char *reason)
{
    for (size_t i = 0; i < table->count; i++) {
        if (verdict == VERDICT_SKIPPED || !(table->claims[i].flags & CLAIM_FIRST)) {
            record_add_untried(&run->record, table, &table->claims[i], verdict, reason);
        }
    }
}

static int run_phase(struct run *run, const struct claim_table *table, struct error *err)
{
    int64_t begun = clock_now();
    const char phase[2] = {(char)table->phase, '\0'};

    if (run->options->phases && !strchr(run->options->phases, table->phase)) {
        refuse_rows(run, table, VERDICT_SKIPPED, "this phase was not asked for");
        return 0;
    }
    narrate_step(run->narrator, "phase %s: %s, %zu claims", phase, table->title, table->count);
    if (try_rows(run, table, true, err) < 0) {
        return -1;
    }
    const struct claim *broken = broken_baseline(run, table);
    if (broken) {
        CLEANUP(freep) char *reason = xasprintf("the baseline is broken: %s (%s)", broken->id, broken->text);
        narrate_warn(run->narrator, "phase %s is NOT JUDGED: %s", phase, reason);
        refuse_rows(run, table, VERDICT_NOT_JUDGED, reason);
    } else if (try_rows(run, table, false, err) < 0) {
        return -1;
    }
    double seconds = (double)(clock_now() - begun) / 1000;
    json_array_append_new(run->record.phases,
                          json_pack("{s:s, s:s, s:f}", "phase", phase, "title", table->title, "seconds", seconds));
    narrate_done(run->narrator, "%.1f s", seconds);
    return 0;
}

/* The whole ---------------------------------------------------------------------------------------------------------
 */

static int take_lock(struct run *run, struct error *err)
{
    if (fd_make_directories(CREW_DIRECTORY, 0700, err) < 0) {
        return -1;
    }
    run->lock = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (run->lock < 0) {
        return error_set_errno(err, errno, "opening %s", LOCK_FILE);
    }
    if (flock(run->lock, LOCK_EX | LOCK_NB) < 0) {
        return error_set(err, ERR_STATE, "another drill is running on this host");
    }
    return 0;
}

static int make_directory(struct run *run, struct error *err)
{
    uint8_t random[3];
    char now[32];
    time_t seconds = time(NULL);
    struct tm broken;

    if (getrandom(random, sizeof(random), 0) != sizeof(random)) {
        return error_set_errno(err, errno, "reading random bytes");
    }
    (void)snprintf(run->id, sizeof(run->id), "%02x%02x%02x", random[0], random[1], random[2]);
    (void)strftime(now, sizeof(now), "%Y%m%dT%H%M%SZ", gmtime_r(&seconds, &broken));
    run->directory = xasprintf("%s/%s-%s", CREW_DIRECTORY, now, run->id);
    return fd_make_directories(run->directory, 0700, err);
}

/* Clean before, not after: a drill that was killed leaves boxes, and their names are known. */
static int clear_the_ground(struct run *run, struct error *err)
{
    CLEANUP(argv_reset) struct argv found = {0};

    if (crew_leftovers(run->client, &found, err) < 0) {
        return -1;
    }
    if (found.count > 0) {
        CLEANUP(freep) char *which = argv_join(&found, ", ");
        narrate_warn(run->narrator, "an earlier drill left %s: removing it first", which);
        argv_push_format(&run->notes, "an earlier drill had left %s, which was removed first", which);
    }
    return crew_remove(run->client, run->narrator, err);
}

static bool wants_boxes(const struct drill_options *options)
{
    return !options->phases || strpbrk(options->phases, "ABCDEMT");
}

/* Each fact as a variable: "box.ip" is DRILL_BOX_IP. */
static void publish_facts(const struct ground *ground)
{
    const char *name;
    json_t *value;

    json_object_foreach(ground->facts, name, value)
    {
        CLEANUP(freep) char *variable = xasprintf("DRILL_%s", name);
        for (char *at = variable; *at; at++) {
            *at = (char)(isalnum((unsigned char)*at) ? toupper((unsigned char)*at) : '_');
        }
        (void)setenv(variable, json_string_value(value), 1);
    }
}

static int do_damage(struct run *run, struct error *err)
{
    const char *const words[] = {run->options->damage, NULL};
    struct process_options options = {.budget = DAMAGE_MS, .narrator = run->narrator};

    if (!run->options->damage) {
        return 0;
    }
    narrate_warn(run->narrator, "running %s: what it damages is to be noticed", run->options->damage);
    argv_push_format(&run->notes, "%s was run before the attacks.", run->options->damage);
    publish_facts(run->ground);
    return process_check(words, &options, NULL, err);
}

/* How many boxes the phases need: the third is for what changes a box. */
static unsigned crew_size(const struct drill_options *options)
{
    return !options->phases || strchr(options->phases, 'B') ? 3 : 2;
}

static int rehearse(struct run *run, struct error *err)
{
    const char *template_name = run->options->template_name ? run->options->template_name : "blank";

    if (clear_the_ground(run, err) < 0 || ground_open(run->client, run->directory, &run->ground, err) < 0) {
        return -1;
    }
    teardown_remember(run->ground, run->client);
    CLEANUP(freep) char *older = legacy_name(run->id);
    ground_set(run->ground, "run", run->id);
    ground_set(run->ground, "older.name", older);
    ground_set(run->ground, "template", template_name);
    if (!ground_fact(run->ground, "vms")) {
        narrate_warn(run->narrator,
                     "this host runs no VM: the boxes are containers, and the trust boundary of a VM was "
                     "NOT validated");
        argv_push(&run->notes, "This host runs no VM: the trust boundary of a VM was NOT validated.");
    }
    if (wants_boxes(run->options) &&
        crew_mint(run->ground, run->client, run->id, crew_size(run->options), template_name, run->options->container,
                  run->options->mint_budget > 0 ? run->options->mint_budget : MINT_BUDGET_MS, run->narrator,
                  &run->notes, err) < 0) {
        return -1;
    }
    if (do_damage(run, err) < 0) {
        return -1;
    }
    for (size_t i = 0; claim_tables[i]; i++) {
        if (claim_tables[i]->phase == PHASE_TEARDOWN && run->options->keep_boxes) {
            refuse_rows(run, claim_tables[i], VERDICT_SKIPPED, "the boxes are kept");
            continue;
        }
        if (claim_tables[i]->phase == PHASE_TEARDOWN) {
            narrate_step(run->narrator, "removing what the drill made");
            if (crew_remove(run->client, run->narrator, err) < 0) {
                return -1;
            }
            narrate_done(run->narrator, "%s", "");
        }
        if (run_phase(run, claim_tables[i], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static void run_reset(struct run *run)
{
    ground_free(run->ground);
    record_reset(&run->record);
    argv_reset(&run->notes);
    free(run->directory);
    fd_closep(&run->lock);
}

int drill_run(struct client *client, const struct drill_options *options, struct narrator *narrator,
              json_t **ret_report, struct error *err)
{
    CLEANUP(run_reset) struct run run = {.client = client, .options = options, .narrator = narrator, .lock = -1};
    int64_t begun = clock_now();
    char started[21];

    record_open(&run.record);
    clock_format_now(started);
    if (take_lock(&run, err) < 0 || make_directory(&run, err) < 0) {
        return -1;
    }
    int result = rehearse(&run, err);
    if (result < 0) {
        CLEANUP(error_reset) struct error cleaning = {0};
        cancel_mask(true);
        if (!options->keep_boxes && crew_remove(client, narrator, &cleaning) < 0) {
            narrate_warn(narrator, "cleaning up: %s", cleaning.message);
        }
        cancel_mask(false);
        return -1;
    }
    *ret_report = record_report(&run.record, run.ground, "drill", started, clock_now() - begun, &run.notes);
    return 0;
}

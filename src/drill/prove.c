/* The isolation of one running box, measured in seconds and written down.
 * Not for: anything that makes a box, needs a second one, or disturbs: that is the drill. */
#include "drill/prove.h"

#include "base/clock.h"
#include "base/memory.h"
#include "drill/crew.h"
#include "drill/phases.h"
#include "drill/pool.h"
#include "drill/record.h"
#include "drill/trial.h"

#include <string.h>

enum { SLOTS = 12, CLAIM_MS = 4500, LAST_CALL_MS = 8000 };

struct proof {
    struct ground *ground;
    struct record record;
    struct narrator *narrator;
    const struct claim **claims;
    size_t count;
    int64_t deadline; /* when the last claim has to be over */
};

struct task {
    const struct claim *claim;
    struct ground *ground;
    int64_t deadline;
};

/* A claim that begins late gets less time, and is not judged when that runs out: the budget of the whole stands. */
static json_t *try_claim(void *context)
{
    const struct task *task = context;
    int left = clock_left(task->deadline);

    return trial_run(task->claim, task->ground, left < CLAIM_MS ? left : CLAIM_MS);
}

static void tried(void *context, size_t index, const json_t *answer, const char *why, int64_t ms)
{
    struct proof *proof = context;

    record_add(&proof->record, &isolation_table, proof->claims[index], answer, why, ms);
    narrate_progress(proof->narrator, "%zu of %zu", json_array_size(proof->record.claims), proof->count);
}

/* The rows for one box, the baseline first. */
static void choose(struct proof *proof)
{
    for (int first = 1; first >= 0; first--) {
        for (size_t i = 0; i < isolation_table.count; i++) {
            const struct claim *claim = &isolation_table.claims[i];
            if ((claim->flags & CLAIM_PROVE) && !!(claim->flags & CLAIM_FIRST) == first) {
                proof->claims[proof->count++] = claim;
            }
        }
    }
}

static int try_all(struct proof *proof, struct error *err)
{
    CLEANUP(freep) struct task *tasks = xcalloc(proof->count, sizeof(*tasks));
    CLEANUP(freep) struct pool_job *jobs = xcalloc(proof->count, sizeof(*jobs));

    for (size_t i = 0; i < proof->count; i++) {
        tasks[i] = (struct task){proof->claims[i], proof->ground, proof->deadline};
        jobs[i] = (struct pool_job){.work = try_claim, .context = &tasks[i], .budget = CLAIM_MS + 500};
    }
    return pool_run(jobs, proof->count, SLOTS, proof->narrator, tried, proof, err);
}

/* A box without a lease or an egress passes every negative probe: then nothing is a pass. */
static void disown(struct proof *proof)
{
    const struct claim *broken = NULL;
    json_t *row;
    size_t at;

    for (size_t i = 0; i < proof->count && !broken; i++) {
        if ((proof->claims[i]->flags & CLAIM_FIRST) &&
            record_verdict(&proof->record, proof->claims[i]->id) != VERDICT_HOLDS) {
            broken = proof->claims[i];
        }
    }
    if (!broken) {
        return;
    }
    CLEANUP(freep) char *reason = xasprintf("the baseline is broken: %s (%s)", broken->id, broken->text);
    json_array_foreach(proof->record.claims, at, row)
    {
        const struct claim *claim = claim_find(json_text(row, "id"), NULL);
        if (verdict_from_name(json_text(row, "verdict")) == VERDICT_HOLDS &&
            !(claim->flags & (CLAIM_FIRST | CLAIM_LAYER))) {
            json_object_set_new(row, "verdict", json_string(verdict_name(VERDICT_NOT_JUDGED)));
            json_object_set_new(row, "reason", json_string(reason));
        }
    }
}

static int measure(struct proof *proof, struct client *client, const char *name, struct error *err)
{
    struct error taken = {0};

    if (crew_equip(proof->ground, client, name, err) < 0) {
        return -1;
    }
    choose(proof);
    int64_t begun = clock_now();
    int result = try_all(proof, err);
    if (crew_strip(proof->ground, client, name, &taken) < 0) {
        narrate_warn(proof->narrator, "the instrument could not be taken out of %s: %s", name, taken.message);
        error_reset(&taken);
    }
    disown(proof);
    json_array_append_new(proof->record.phases,
                          json_pack("{s:s, s:s, s:f}", "phase", "C", "title", isolation_table.title, "seconds",
                                    (double)(clock_now() - begun) / 1000));
    return result;
}

static void proof_reset(struct proof *proof)
{
    ground_free(proof->ground);
    record_reset(&proof->record);
    free(proof->claims);
}

int prove_run(struct client *client, const char *name, struct narrator *narrator, json_t **ret_report,
              struct error *err)
{
    CLEANUP(proof_reset) struct proof proof = {.narrator = narrator, .deadline = clock_deadline(LAST_CALL_MS)};
    CLEANUP(argv_reset) struct argv notes = {0};
    int64_t begun = clock_now();
    char started[21];

    clock_format_now(started);
    record_open(&proof.record);
    proof.claims = xcalloc(isolation_table.count, sizeof(*proof.claims));
    if (ground_open(client, CREW_DIRECTORY, &proof.ground, err) < 0 ||
        ground_learn_box(proof.ground, client, "box", name, err) < 0) {
        return -1;
    }
    if (!strcmp(ground_fact(proof.ground, "box.type"), "container")) {
        argv_push(&notes, "The box is a container: the trust boundary of a VM was NOT validated.");
    }
    narrate_step(narrator, "measuring the isolation of %s", name);
    if (measure(&proof, client, name, err) < 0) {
        return -1;
    }
    narrate_done(narrator, "%zu claims", proof.count);
    json_t *report = record_report(&proof.record, proof.ground, "prove", started, clock_now() - begun, &notes);
    json_object_set_new(report, "subject", json_string(name));
    *ret_report = report;
    return 0;
}

/* The results of a run, and the report that is made of them: what was under test, on what, and what came of it.
 * Not for: how a report looks; see page.c and answers.c. */
#include "drill/record.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/sha256.h"
#include "base/text.h"
#include "drill/walls.h"

#include <string.h>

enum { VERSION_BUDGET_MS = 5000, PROGRAM_CEILING = 64 << 20 };

void record_open(struct record *ret_record)
{
    *ret_record = (struct record){.claims = json_array(), .phases = json_array()};
}

void record_reset(struct record *record)
{
    json_decref(record->claims);
    json_decref(record->phases);
    *record = (struct record){0};
}

static json_t *row_of(const struct claim_table *table, const struct claim *claim, enum verdict verdict,
                      const char *reason, json_t *steps, int64_t ms)
{
    const char phase[2] = {(char)table->phase, '\0'};

    return json_pack("{s:s, s:s, s:s, s:s*, s:s*, s:b, s:s, s:s, s:o, s:I}", "id", claim->id, "phase", phase, "claim",
                     claim->text, "row", claim->row, "wall", claim->wall, "layer", (claim->flags & CLAIM_LAYER) != 0,
                     "verdict", verdict_name(verdict), "reason", reason, "steps", steps, "ms", (json_int_t)ms);
}

void record_add(struct record *record, const struct claim_table *table, const struct claim *claim, const json_t *answer,
                const char *why, int64_t ms)
{
    const char *reason = json_text(answer, "reason");
    json_t *steps = json_object_get(answer, "steps");

    json_array_append_new(record->claims, row_of(table, claim, verdict_from_name(json_text(answer, "verdict")),
                                                 reason ? reason
                                                 : why  ? why
                                                        : "no reason given",
                                                 steps ? json_incref(steps) : json_array(), ms));
}

void record_add_untried(struct record *record, const struct claim_table *table, const struct claim *claim,
                        enum verdict verdict, const char *reason)
{
    json_array_append_new(record->claims, row_of(table, claim, verdict, reason, json_array(), 0));
}

enum verdict record_verdict(const struct record *record, const char *id)
{
    const json_t *row;
    size_t at;

    json_array_foreach(record->claims, at, row)
    {
        if (text_equal(json_text(row, "id"), id)) {
            return verdict_from_name(json_text(row, "verdict"));
        }
    }
    return VERDICT_NOT_JUDGED;
}

/* SHA-256 of a file, as the report names what was under test. */
static json_t *digest_of(const char *path)
{
    CLEANUP(buffer_reset) struct buffer data = {0};
    struct sha256 digest;
    char hex[SHA256_HEX_SIZE];

    if (fd_read_file(path, PROGRAM_CEILING, &data, NULL) < 0) {
        return json_null();
    }
    sha256_start(&digest);
    sha256_feed(&digest, data.data, data.length);
    sha256_finish(&digest, hex);
    return json_string(hex);
}

static char *first_line_of(const char *path, const char *word)
{
    const char *const words[] = {path, word, NULL};
    struct process_options options = {.budget = VERSION_BUDGET_MS};
    char *output = NULL;

    if (process_check(words, &options, &output, NULL) < 0) {
        return xstrdup("unknown");
    }
    output[strcspn(output, "\n")] = '\0';
    return output;
}

/* In the order of the table, whatever the order in which they ended. */
static json_t *sorted_claims(const struct record *record)
{
    json_t *sorted = json_array();

    for (size_t i = 0; claim_tables[i]; i++) {
        for (size_t j = 0; j < claim_tables[i]->count; j++) {
            json_t *row;
            size_t at;
            json_array_foreach(record->claims, at, row)
            {
                if (text_equal(json_text(row, "id"), claim_tables[i]->claims[j].id)) {
                    json_array_append(sorted, row);
                    break;
                }
            }
        }
    }
    return sorted;
}

static json_t *count(const json_t *claims)
{
    json_int_t counts[4] = {0};
    const json_t *row;
    size_t at;

    json_array_foreach((json_t *)claims, at, row)
    {
        counts[verdict_from_name(json_text(row, "verdict"))]++;
    }
    return json_pack("{s:I, s:I, s:I, s:I}", "HOLDS", counts[VERDICT_HOLDS], "BROKEN", counts[VERDICT_BROKEN],
                     "NOT JUDGED", counts[VERDICT_NOT_JUDGED], "SKIPPED", counts[VERDICT_SKIPPED]);
}

json_t *record_report(const struct record *record, const struct ground *ground, const char *kind, const char *started,
                      int64_t ms, const struct argv *notes)
{
    CLEANUP(freep) char *probe_version = first_line_of(ground->instrument, "--version");
    json_t *claims = sorted_claims(record);
    json_t *lines = json_array();
    const char *vms = ground_fact(ground, "vms");

    for (size_t i = 0; i < notes->count; i++) {
        json_array_append_new(lines, json_string(notes->items[i]));
    }
    return json_pack(
        "{s:i, s:s, s:s, s:f, s:{s:s, s:o}, s:{s:s, s:o}, s:{s:s, s:s, s:s, s:b, s:b}, s:o, s:O, s:o, s:o, s:o}",
        "schema", 1, "kind", kind, "started", started, "seconds", (double)ms / 1000, "box", "version", DRILL_VERSION,
        "sha256", digest_of(ground->program), "instrument", "version", probe_version, "sha256",
        digest_of(ground->instrument), "host", "name", ground_fact(ground, "host.name"), "kernel",
        ground_fact(ground, "kernel"), "incus", ground_fact(ground, "incus"), "lab", ground->world != NULL, "vm",
        vms != NULL, "walls", walls_describe(), "phases", record->phases, "counts", count(claims), "claims", claims,
        "notes", lines);
}

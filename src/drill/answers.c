/* A report in a few lines: the block to paste, and the summary for a terminal.
 * Not for: the whole of it; see page.c. */
#include "drill/answers.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"
#include "drill/verdict.h"

struct counts {
    unsigned of[4];
};

/* Counts the verdicts of a phase; of all phases where `phase` is NULL. */
static struct counts count(const json_t *report, const char *phase)
{
    struct counts counts = {{0}};
    const json_t *claim;
    size_t at;

    json_array_foreach(json_object_get(report, "claims"), at, claim)
    {
        if (!phase || text_equal(json_text(claim, "phase"), phase)) {
            counts.of[verdict_from_name(json_text(claim, "verdict"))]++;
        }
    }
    return counts;
}

static void write_counts(struct buffer *text, const struct counts *counts)
{
    buffer_append_format(text, "%u hold, %u broken, %u not judged", counts->of[VERDICT_HOLDS],
                         counts->of[VERDICT_BROKEN], counts->of[VERDICT_NOT_JUDGED]);
    if (counts->of[VERDICT_SKIPPED]) {
        buffer_append_format(text, ", %u skipped", counts->of[VERDICT_SKIPPED]);
    }
}

/* Lists the claims of one verdict, with their reasons. */
static void write_claims(struct buffer *text, const json_t *report, enum verdict verdict)
{
    const json_t *claim;
    size_t at;

    json_array_foreach(json_object_get(report, "claims"), at, claim)
    {
        if (verdict_from_name(json_text(claim, "verdict")) == verdict) {
            buffer_append_format(text, "  %-5s %s\n        %s%s\n", json_text(claim, "id"), json_text(claim, "claim"),
                                 json_truth(claim, "layer") ? "a layer: " : "", json_text(claim, "reason"));
        }
    }
}

static const char *answer_of(const struct counts *counts)
{
    if (counts->of[VERDICT_BROKEN]) {
        return "NO";
    }
    if (!counts->of[VERDICT_HOLDS]) {
        return "NOT KNOWN";
    }
    return counts->of[VERDICT_NOT_JUDGED] ? "YES, as far as it was judged" : "YES";
}

static const struct {
    const char *phase;
    const char *question;
} questions[] = {
    {"A", "Does this Incus answer as box takes for granted?"},
    {"B", "Does every command do what it says, and refuse what it must?"},
    {"C", "Does a box reach the public internet and nothing else?"},
    {"D", "Are the candidate settings known for what they stop and break?"},
    {"E", "Does a door lead where it says, and nowhere else?"},
    {"T", "Is everything that the drill made gone, and only that?"},
};

char *answers_write(const json_t *report)
{
    struct buffer text = {0};
    const json_t *host = json_object_get(report, "host");
    const json_t *box = json_object_get(report, "box");
    const json_t *instrument = json_object_get(report, "instrument");
    const json_t *walls = json_object_get(report, "walls");
    const char *digest = json_text(box, "sha256");
    const char *probe_digest = json_text(instrument, "sha256");
    struct counts all = count(report, NULL);

    buffer_append_format(&text, "box %s, %s, %.1f s\n", json_text(report, "kind"), json_text(report, "started"),
                         json_number_value(json_object_get(report, "seconds")));
    buffer_append_format(&text, "box         %s sha256 %.16s\n", json_text(box, "version"),
                         digest ? digest : "unknown");
    buffer_append_format(&text, "instrument  %s sha256 %.16s\n", json_text(instrument, "version"),
                         probe_digest ? probe_digest : "unknown");
    buffer_append_format(&text, "host        Incus %s, kernel %s, %s\n", json_text(host, "incus"),
                         json_text(host, "kernel"), json_truth(host, "lab") ? "in a lab" : "on its own network");
    buffer_append_format(&text, "walls       %s\n", json_text(walls, "form"));
    buffer_append_format(&text, "boundary    %s\n",
                         json_truth(host, "vm") ? "virtual machine"
                                                : "container; the boundary of a VM was NOT validated");
    for (size_t i = 0; i < ARRAY_LENGTH(questions); i++) {
        struct counts counts = count(report, questions[i].phase);
        if (counts.of[VERDICT_HOLDS] + counts.of[VERDICT_BROKEN] + counts.of[VERDICT_NOT_JUDGED] == 0) {
            continue;
        }
        buffer_append_format(&text, "%s  %s  %s (", questions[i].phase, questions[i].question, answer_of(&counts));
        write_counts(&text, &counts);
        buffer_append_text(&text, ")\n");
    }
    buffer_append_text(&text, "all         ");
    write_counts(&text, &all);
    buffer_append_text(&text, "\n");
    if (all.of[VERDICT_BROKEN]) {
        buffer_append_text(&text, "broken:\n");
        write_claims(&text, report, VERDICT_BROKEN);
    }
    return buffer_steal(&text);
}

char *answers_summary(const json_t *report)
{
    struct buffer text = {0};
    struct counts all = count(report, NULL);
    const json_t *phase;
    size_t at;

    if (all.of[VERDICT_NOT_JUDGED]) {
        buffer_append_text(&text, "NOT JUDGED:\n");
        write_claims(&text, report, VERDICT_NOT_JUDGED);
    }
    if (all.of[VERDICT_BROKEN]) {
        buffer_append_text(&text, "BROKEN:\n");
        write_claims(&text, report, VERDICT_BROKEN);
    }
    json_array_foreach(json_object_get(report, "phases"), at, phase)
    {
        const char *letter = json_text(phase, "phase");
        struct counts counts = count(report, letter);
        buffer_append_format(&text, "%s  ", letter);
        write_counts(&text, &counts);
        buffer_append_format(&text, "  (%s, %.1f s)\n", json_text(phase, "title"),
                             json_number_value(json_object_get(phase, "seconds")));
    }
    write_counts(&text, &all);
    buffer_append_text(&text, "\n");
    return buffer_steal(&text);
}

/* The report as one HTML page that needs nothing else.
 * Not for: deciding anything. Counts and verdicts are taken from the report as they stand. */
#include "drill/page.h"

#include "base/memory.h"
#include "base/text.h"
#include "drill/pagestyle.h"
#include "drill/verdict.h"

#include <string.h>

void page_escape(struct buffer *page, const char *text)
{
    for (const char *at = text; at && *at; at++) {
        switch (*at) {
        case '&':
            buffer_append_text(page, "&amp;");
            break;
        case '<':
            buffer_append_text(page, "&lt;");
            break;
        case '>':
            buffer_append_text(page, "&gt;");
            break;
        case '"':
            buffer_append_text(page, "&quot;");
            break;
        case '\'':
            buffer_append_text(page, "&#39;");
            break;
        default:
            if (((unsigned char)*at < 0x20 && *at != '\n' && *at != '\t') || *at == 0x7f) {
                buffer_append_text(page, "&#xfffd;");
            } else {
                buffer_append(page, at, 1);
            }
        }
    }
}

static void element(struct buffer *page, const char *open, const char *text, const char *close)
{
    buffer_append_text(page, open);
    page_escape(page, text);
    buffer_append_text(page, close);
}

/* The CSS class of a verdict. */
static const char *class_of(const char *verdict)
{
    switch (verdict_from_name(verdict)) {
    case VERDICT_HOLDS:
        return "holds";
    case VERDICT_BROKEN:
        return "broken";
    case VERDICT_SKIPPED:
        return "skipped";
    case VERDICT_NOT_JUDGED:
        break;
    }
    return "unjudged";
}

static void write_pill(struct buffer *page, const char *verdict)
{
    buffer_append_format(page, "<span class=\"pill %s\">", class_of(verdict));
    element(page, "", verdict, "</span>");
}

static json_int_t counted(const json_t *report, enum verdict verdict)
{
    return json_number(json_object_get(report, "counts"), verdict_name(verdict), 0);
}

static void write_banner(const json_t *report, struct buffer *page)
{
    json_int_t broken = counted(report, VERDICT_BROKEN);
    json_int_t holds = counted(report, VERDICT_HOLDS);
    bool prove = text_equal(json_text(report, "kind"), "prove");

    buffer_append_format(page, "<header class=\"%s\"><p class=\"kind\">", broken ? "bad" : holds ? "good" : "none");
    element(page, "", prove ? "box prove" : "box drill", "</p><h1>");
    if (broken) {
        buffer_append_format(page, "%lld of %lld judged claims are broken", (long long)broken,
                             (long long)(broken + holds));
    } else if (holds) {
        buffer_append_format(page, "All %lld judged claims hold", (long long)holds);
    } else {
        buffer_append_text(page, "Nothing was judged");
    }
    element(page, "</h1><p class=\"when\">", json_text(report, "started"), ", ");
    buffer_append_format(page, "%.1f seconds; %lld claims were not judged, %lld skipped</p></header>\n",
                         json_number_value(json_object_get(report, "seconds")),
                         (long long)counted(report, VERDICT_NOT_JUDGED), (long long)counted(report, VERDICT_SKIPPED));
}

static void write_tiles(const json_t *report, struct buffer *page)
{
    static const enum verdict order[] = {VERDICT_HOLDS, VERDICT_BROKEN, VERDICT_NOT_JUDGED, VERDICT_SKIPPED};

    buffer_append_text(page, "<section class=\"tiles\" aria-label=\"Verdicts\">");
    for (size_t i = 0; i < ARRAY_LENGTH(order); i++) {
        const char *name = verdict_name(order[i]);
        buffer_append_format(
            page, "<button type=\"button\" class=\"tile %s\" data-show=\"%s\"><b>%lld</b><span>%s</span></button>",
            class_of(name), class_of(name), (long long)counted(report, order[i]), name);
    }
    buffer_append_text(page, "</section>\n");
}

static void write_fact(struct buffer *page, const char *name, const char *value)
{
    if (value) {
        element(page, "<div><dt>", name, "</dt><dd>");
        element(page, "", value, "</dd></div>");
    }
}

static void write_subject(struct buffer *page, const json_t *report, const char *key)
{
    const json_t *subject = json_object_get(report, key);
    const char *version = json_text(subject, "version");
    const char *digest = json_text(subject, "sha256");
    CLEANUP(freep)
    char *text = xasprintf("%s, sha256 %.16s", version ? version : "unknown", digest ? digest : "unknown");

    write_fact(page, key, text);
}

static void write_facts(const json_t *report, struct buffer *page)
{
    const json_t *host = json_object_get(report, "host");
    const json_t *walls = json_object_get(report, "walls");
    const json_t *note;
    size_t at;

    buffer_append_text(page, "<section class=\"facts\"><dl>");
    write_fact(page, "host", json_text(host, "name"));
    write_fact(page, "kernel", json_text(host, "kernel"));
    write_fact(page, "Incus", json_text(host, "incus"));
    write_fact(page, "surroundings",
               json_truth(host, "lab") ? "a lab: the world around it is the lab's own" : "the real network");
    write_fact(page, "trust boundary",
               json_truth(host, "vm") ? "virtual machine" : "container (the boundary of a VM was NOT validated)");
    write_fact(page, "box of the user", json_text(report, "subject"));
    write_subject(page, report, "box");
    write_subject(page, report, "instrument");
    write_fact(page, "walls", json_text(walls, "form"));
    write_fact(page, "ruleset", json_text(walls, "digest"));
    buffer_append_text(page, "</dl>");
    json_array_foreach(json_object_get(report, "notes"), at, note)
    {
        element(page, "<p class=\"note\">", json_string_value(note), "</p>");
    }
    buffer_append_text(page, "</section>\n");
}

static void write_value(struct buffer *page, const char *name, const json_t *value)
{
    if (!value) {
        return;
    }
    CLEANUP(freep)
    char *text =
        json_is_string(value) ? xstrdup(json_string_value(value)) : json_write(value, JSON_INDENT(1) | JSON_SORT_KEYS);
    element(page, "<span class=\"key\">", name, "</span><pre>");
    element(page, "", text, "</pre>");
}

static void write_step(struct buffer *page, const json_t *step)
{
    const char *verdict = json_text(json_object_get(step, "reply"), "verdict");
    const char *command = json_text(step, "command");
    const char *from = json_text(step, "from");

    element(page, "<li><p><b>", json_text(step, "role"), "</b>");
    if (from) {
        element(page, " from ", from, "");
    }
    if (command) {
        element(page, " <code>", command, "</code>");
    }
    if (verdict) {
        element(page, " &rarr; <b>", verdict, "</b>");
        buffer_append_format(page, " in %.1f ms", json_number_value(json_path(step, "reply", "ms", NULL)));
    }
    buffer_append_text(page, "</p>");
    write_value(page, "evidence", json_path(step, "reply", "evidence", NULL));
    write_value(page, "why", json_path(step, "reply", "why", NULL));
    write_value(page, "error", json_object_get(step, "error"));
    write_value(page, "fact", json_object_get(step, "fact"));
    write_value(page, "status", json_object_get(step, "status"));
    write_value(page, "output", json_object_get(step, "output"));
    write_value(page, "errors", json_object_get(step, "errors"));
    buffer_append_text(page, "</li>");
}

static void write_claim(struct buffer *page, const json_t *claim)
{
    const char *verdict = json_text(claim, "verdict");
    const char *row = json_text(claim, "row");
    const char *wall = json_text(claim, "wall");
    const json_t *step;
    size_t at;

    buffer_append_format(page, "<details class=\"claim %s\" id=\"", class_of(verdict));
    element(page, "", json_text(claim, "id"), "\"><summary><span class=\"id\">");
    element(page, "", json_text(claim, "id"), "</span>");
    element(page, "<span class=\"text\">", json_text(claim, "claim"), "");
    if (json_truth(claim, "layer")) {
        buffer_append_text(page, " <em>one layer</em>");
    }
    element(page, "</span><span class=\"wall\">", wall ? wall : "", "</span>");
    write_pill(page, verdict);
    buffer_append_format(page, "<span class=\"ms\">%lld ms</span></summary><div class=\"evidence\">",
                         (long long)json_number(claim, "ms", 0));
    element(page, "<p class=\"reason\">", json_text(claim, "reason"), "");
    if (row) {
        element(page, " <em>attack ", row, " of the catalogue</em>");
    }
    buffer_append_text(page, "</p><ol>");
    json_array_foreach(json_object_get(claim, "steps"), at, step)
    {
        write_step(page, step);
    }
    buffer_append_text(page, "</ol></div></details>\n");
}

/* One square a claim: the whole run at a glance. */
static void write_matrix(const json_t *report, struct buffer *page)
{
    const json_t *phase;
    const json_t *claim;
    size_t at, inner;

    buffer_append_text(page, "<section class=\"matrix\" aria-label=\"All claims at a glance\">");
    json_array_foreach(json_object_get(report, "phases"), at, phase)
    {
        const char *letter = json_text(phase, "phase");
        element(page, "<div><h3>", letter, "</h3><p>");
        json_array_foreach(json_object_get(report, "claims"), inner, claim)
        {
            if (!text_equal(json_text(claim, "phase"), letter)) {
                continue;
            }
            element(page, "<a href=\"#", json_text(claim, "id"), "\" class=\"");
            buffer_append_text(page, class_of(json_text(claim, "verdict")));
            element(page, "\" title=\"", json_text(claim, "id"), ": ");
            element(page, "", json_text(claim, "claim"), " &mdash; ");
            element(page, "", json_text(claim, "verdict"), "\"></a>");
        }
        buffer_append_text(page, "</p></div>");
    }
    buffer_append_text(page, "</section>\n");
}

static void write_phases(const json_t *report, struct buffer *page)
{
    const json_t *phase;
    const json_t *claim;
    size_t at, inner;

    json_array_foreach(json_object_get(report, "phases"), at, phase)
    {
        const char *letter = json_text(phase, "phase");
        element(page, "<section class=\"phase\"><h2><span>", letter, "</span> ");
        element(page, "", json_text(phase, "title"), "");
        buffer_append_format(page, "<small>%.1f s</small></h2>\n",
                             json_number_value(json_object_get(phase, "seconds")));
        json_array_foreach(json_object_get(report, "claims"), inner, claim)
        {
            if (text_equal(json_text(claim, "phase"), letter)) {
                write_claim(page, claim);
            }
        }
        buffer_append_text(page, "</section>\n");
    }
}

void page_write(const json_t *report, struct buffer *page)
{
    buffer_append_text(page, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
                             "<meta name=\"color-scheme\" content=\"light dark\"><title>");
    element(page, "box ", json_text(report, "kind"), ": ");
    element(page, "", json_text(json_object_get(report, "host"), "name"), ", ");
    element(page, "", json_text(report, "started"), "</title><style>\n");
    buffer_append_text(page, pagestyle_css);
    buffer_append_text(page, "</style></head><body><main>\n");
    write_banner(report, page);
    write_tiles(report, page);
    write_matrix(report, page);
    write_facts(report, page);
    buffer_append_text(page, "<p class=\"tools\"><button type=\"button\" data-open=\"1\">Open all evidence</button> "
                             "<button type=\"button\" data-open=\"0\">Close all</button> "
                             "<button type=\"button\" data-show=\"all\">Show every claim</button></p>\n");
    write_phases(report, page);
    buffer_append_text(page,
                       "<footer><p>A negative claim counts only where its control, the same probe from where it must "
                       "succeed, succeeded in the same run. A refusal is a packet that arrived. NOT JUDGED is no "
                       "pass.</p></footer></main><script>\n");
    buffer_append_text(page, pagestyle_script);
    buffer_append_text(page, "</script></body></html>\n");
}

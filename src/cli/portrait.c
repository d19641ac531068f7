/* A box in words and as JSON, for list and info alike.
 * Not for layout: the commands print. */
#include "cli/portrait.h"

#include "base/argv.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/contract.h"
#include "box/tag.h"

#include <ctype.h>
#include <time.h>

char *portrait_state(const struct box *box)
{
    char *state = xstrdup(box->status);

    for (char *c = state; *c; c++) {
        *c = (char)tolower((unsigned char)*c);
    }
    return state;
}

char *portrait_note(const struct box *box)
{
    CLEANUP(argv_reset) struct argv deviations = {0};
    CLEANUP(buffer_reset) struct buffer note = {0};

    contract_check(box->instance, &deviations);
    if (box->state) {
        buffer_append_format(&note, "incomplete: %s", box->state);
    }
    if (deviations.count > 0) {
        buffer_append_format(&note, "%soff the contract", note.length > 0 ? ", " : "");
    }
    return buffer_steal(&note);
}

char *portrait_age(const struct box *box)
{
    int64_t now = (int64_t)time(NULL);

    return box->created > 0 ? clock_describe(now > box->created ? now - box->created : 0) : xstrdup("");
}

void portrait_tell_login(struct narrator *narrator, const struct box *box)
{
    const char *login = tag_value(box->instance, TAG_LOGIN);

    if (login) {
        narrate_note(narrator, "to log in, in the box (box shell %s): %s", box->name, login);
    }
}

static json_t *created(const struct box *box)
{
    char text[32];
    struct tm broken;
    time_t seconds = (time_t)box->created;

    if (box->created <= 0 || !gmtime_r(&seconds, &broken) ||
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &broken) == 0) {
        return json_null();
    }
    return json_string(text);
}

static json_t *list_of(const struct argv *texts)
{
    json_t *array = json_array();

    for (size_t i = 0; i < texts->count; i++) {
        (void)json_array_append_new(array, json_string(texts->items[i]));
    }
    return array;
}

json_t *portrait_json(const struct box *box)
{
    CLEANUP(argv_reset) struct argv deviations = {0};
    CLEANUP(freep) char *state = portrait_state(box);

    contract_check(box->instance, &deviations);
    return json_pack("{s:s, s:s, s:s, s:s?, s:s?, s:s?, s:o, s:b, s:s?, s:s?, s:o}", "name", box->name, "state", state,
                     "type", box->vm ? "vm" : "container", "ipv4", box->ipv4, "template", box->template_name, "user",
                     box->user, "created", created(box), "older", !text_equal(tag_value(box->instance, TAG_KEY), "1"),
                     "incomplete", box->state, "reason", box->reason, "deviations", list_of(&deviations));
}

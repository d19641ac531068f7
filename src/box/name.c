/* The rules for names of boxes and templates, checked before any request.
 * Not for whether something of that name exists. */
#include "box/name.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/import.h"

#include <string.h>

#define NAME_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define NAME_DIGITS  "0123456789"
#define NAME_MAXIMUM 63

bool name_is_valid(const char *name)
{
    size_t length = strlen(name);

    if (length == 0 || length > NAME_MAXIMUM || strspn(name, NAME_LETTERS NAME_DIGITS "-") != length) {
        return false;
    }
    if (name[0] == '-' || name[length - 1] == '-') {
        return false;
    }
    return strspn(name, NAME_DIGITS) != length;
}

/* As it was typed, what no terminal shows included, and not without end. */
static char *show(const char *name)
{
    CLEANUP(freep) char *beginning = xstrndup(name, strnlen(name, NAME_MAXIMUM + 1));

    return text_escape(beginning);
}

int name_check(const char *name, struct error *err)
{
    if (name_is_valid(name)) {
        return 0;
    }
    CLEANUP(freep) char *shown = show(name);
    return error_set(err, ERR_USAGE,
                     "'%s' cannot be the name of a box: 1 to 63 of A-Z a-z 0-9 and -, no hyphen at either end, "
                     "not digits alone",
                     shown);
}

int name_check_new(const char *name, struct error *err)
{
    static const char *const reserved[] = {NAME_SEED_PREFIX, IMPORT_PREFIX};

    if (name_check(name, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(reserved); i++) {
        if (text_starts_with(name, reserved[i])) {
            error_set(err, ERR_USAGE, "%s cannot be the name of a box: names that begin with %s are reserved", name,
                      reserved[i]);
            return error_remedy(err, "choose another name");
        }
    }
    return 0;
}

int name_check_template(const char *name, struct error *err)
{
    size_t length = strlen(name);

    if (length > 0 && length <= NAME_MAXIMUM && strspn(name, NAME_LETTERS NAME_DIGITS "._-") == length &&
        strspn(name, "._-") == 0) {
        return 0;
    }
    CLEANUP(freep) char *shown = show(name);
    return error_set(err, ERR_USAGE,
                     "'%s' cannot be the name of a template: 1 to 63 of A-Z a-z 0-9 . _ and -, a letter or digit first",
                     shown);
}

#ifndef BOX_BOX_TAG_H
#define BOX_BOX_TAG_H

#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

/* The configuration keys by which an instance is a box, and what is stamped on it. Instances are read through these
 * functions alone, so that the older tag is honoured everywhere. */
#define TAG_KEY         "user.box"             /* "1" */
#define TAG_OLDER       "user.claudebox"       /* "1": the older generation, honoured for ever */
#define TAG_OLDER_USER  "claude"               /* whose boxes all have this user */
#define TAG_TEMPLATE    "user.box.template"    /* name of the template */
#define TAG_USER        "user.box.user"        /* name of the user that exec and shell land in */
#define TAG_UID         "user.box.uid"         /* what that user is in the guest, as the mint found it: digits */
#define TAG_GID         "user.box.gid"
#define TAG_HOME        "user.box.home"
#define TAG_STATE       "user.box.state"       /* TAG_STATE_...; absent on a box that is complete */
#define TAG_REASON      "user.box.reason"      /* why it is incomplete: one line, may quote the guest */
#define TAG_MINT        "user.box.mint"        /* random id of the mint that made it: what a cleanup may touch */
#define TAG_INSTANCE_ID "user.box.instance-id" /* what cloud-init knows it by; copies keep it */
#define TAG_TAIL        "user.box.tail"        /* how the user-data ends (mintbody.c) */
#define TAG_SCHEMA      "user.box.schema"      /* generation of these keys: "1" */
#define TAG_VERSION     "user.box.version"     /* of the box that minted it */
#define TAG_CREATED     "user.box.created"     /* RFC 3339 */
#define TAG_IMAGE       "user.box.image"       /* alias of the image */
#define TAG_FINGERPRINT "user.box.fingerprint" /* of the image */
#define TAG_MODE        "user.box.mode"        /* "container" or "vm", as minted */
#define TAG_ORIGIN      "user.box.origin"      /* "mint", "warm mint", "clone of X" or "clone of X/LABEL" */
#define TAG_SEED        "user.box.seed"        /* key of a seed (seed.h): an instance that is kept, and is nobody's box */
#define TAG_IMPORTED_FIRST "user.box.imported.first" /* RFC 3339: when a box that came by import did so, */
#define TAG_IMPORTED_LAST  "user.box.imported.last"  /* for the first and the last time, */
#define TAG_IMPORTED_COUNT "user.box.imported.count" /* and how often */
#define TAG_LOGIN       "user.box.login"       /* BOX_LOGIN of the template: one line, told when a box is ready */
#define TAG_DIGEST      "user.box.digest"      /* of the template's content at the mint (template.h) */

#define TAG_STATE_MINTING "minting" /* being minted, or the mint was killed */
#define TAG_STATE_IMPORTING "importing" /* by its name alone: see import.h */
#define TAG_STATE_UNCONVERGED "unconverged" /* all but the template's converge.sh was done: converge.h */
#define TAG_STATE_FAILED  "failed"  /* the mint ended and said why in TAG_REASON */

/* A filter that selects every box of either generation (Incus's eq is a regex: tag_is_box() decides). */
#define TAG_FILTER "config." TAG_KEY " eq 1 or config." TAG_OLDER " eq 1"

/* True where an instance (the daemon's object) carries a tag of either generation, exactly "1". */
bool tag_is_box(const json_t *instance);

/* True where it carries TAG_SEED: it is kept by box for itself, and no command takes it for somebody's box. */
bool tag_is_seed(const json_t *instance);

/* The value of a configuration key of the instance itself (profiles not counted), or NULL. Borrowed. */
const char *tag_value(const json_t *instance, const char *key);

/* The name of the user that exec and shell land in; NULL where the box says none (then root). Borrowed. */
const char *tag_user(const json_t *instance);

/* True where the value could be a user's name: [a-z_][a-z0-9_-]{0,31}. What is stamped may come from an artifact. */
bool tag_valid_user(const char *name);

#endif

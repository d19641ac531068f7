#ifndef BOX_BOX_SEED_H
#define BOX_BOX_SEED_H

#include "box/box.h"
#include "box/template.h"

#include <stdbool.h>
#include <stdint.h>

/* A seed: a hidden, stopped copy of the pristine state of the first box of a template, from which the next ones are
 * copied instead of booting an image for the first time. Nobody was ever in it, so it holds no credential. Its key says
 * what it was made from, so that a changed template, another image or another box never gets it. */
struct seed {
    char *instance; /* its name in Incus */
    char *key;
    char *template_name;
    char *digest;      /* of the template's content */
    char *fingerprint; /* of the image */
    char *version;     /* of box */
    bool vm;
    bool complete;   /* false: being made, or its making was killed */
    int64_t created; /* seconds since the epoch; 0 where unknown */
    json_t *object;  /* the daemon's own */
};

#define SEED_KEY_SIZE 13 /* 12 hexadecimal digits and the NUL */

/* What a seed is found by. */
void seed_key(const struct template *template, const char *fingerprint, bool vm, const char *version,
              char ret_key[SEED_KEY_SIZE]);

/* Seconds that a seed is good for: $BOX_SEED_MAX_AGE ("7d", "12h", "30m", "90s"; "0": seeds are not used), else 7 days.
 * ERR_USAGE where it says anything else. */
int seed_max_age(int64_t *ret_seconds, struct error *err);

/* True where the seed may be copied now. */
bool seed_is_good(const struct seed *seed, int64_t max_age);

/* The seed of that key, where it is good: one request. NULL where there is none. */
int seed_find(struct client *client, const char *key, int64_t max_age, struct box **ret_seed, struct error *err);

/* Makes the seed of a box that was just minted and has its mark `pristine`, and drops those of the same template that
 * no mint can get any more. Never fails: what it runs into is a note. */
void seed_keep(struct client *client, const struct box *box, const struct template *template, const char *key,
               const char *version, int64_t max_age, struct narrator *narrator);

/* All seeds, by template and age: one request. */
int seed_list(struct client *client, struct seed **ret_seeds, size_t *ret_count, struct error *err);
void seed_list_free(struct seed *seeds, size_t count);

/* Removes one. Gone already is success. */
int seed_remove(struct client *client, const struct seed *seed, struct error *err);

#endif

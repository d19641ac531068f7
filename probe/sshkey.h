#pragma once

#include <stdbool.h>

enum { SSHKEY_FINGERPRINT = 64, SSHKEY_TYPE = 40 };

/* Reads the text of a public key file ("ssh-ed25519 AAAA... comment") and writes its type and its fingerprint as
 * ssh-keygen shows it ("SHA256:..."). False when it is none. Pure. */
bool sshkey_fingerprint(const char *text, char ret_type[SSHKEY_TYPE], char ret_fingerprint[SSHKEY_FINGERPRINT]);

#ifndef BOX_CLI_PUBLICKEY_H
#define BOX_CLI_PUBLICKEY_H

#include <stdbool.h>

/* True where the text is one line as in an id_*.pub: the kind, the key in base64 (RFC 4648), which names the same kind
 * inside (RFC 4253 section 6.6), and a comment where there is one. Whether the key itself is good is for sshd to say. */
bool publickey_is_one(const char *text);

#endif

#ifndef BOX_DOCTOR_ASK_H
#define BOX_DOCTOR_ASK_H

#include "base/error.h"

#include <stdint.h>

/* One DNS question over UDP, by hand: no resolver library may answer from a cache or a hosts file. */

/* Asks the server (host byte order) for the A record of a name; twice, `budget` milliseconds in all. `ret_code` is the
 * answer's RCODE (0 no error, 3 no such name, 2 and 5 the server's own trouble). ERR_TIMEOUT where nobody answers;
 * ERR_SYSTEM where the host cannot send. */
int ask_dns(uint32_t server, const char *name, int64_t budget, int *ret_code, struct error *err);

#endif

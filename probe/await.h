#pragma once

#include "answer.h"
#include "ether.h"

/* Waits on the packet socket for an answer to what was sent and says the verdict: reachable, refused, unreachable or
 * dropped. Frames from our own MAC (our own, reflected) do not count. `target_ip`, where not NULL, is four bytes of an
 * address whose ARP reply counts as an answer. */
int await_answer(const struct ether *ether, const struct answer_expected *expected, const uint8_t *target_ip,
                 struct deadline deadline, struct outcome *outcome);

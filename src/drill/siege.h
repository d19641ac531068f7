#ifndef BOX_DRILL_SIEGE_H
#define BOX_DRILL_SIEGE_H

struct trial;

/* Attacks of several steps: what runs beside them, and what is counted afterwards. The row's `argument` says which. */
void siege_claim(struct trial *trial);

#endif

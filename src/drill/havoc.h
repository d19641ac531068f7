#ifndef BOX_DRILL_HAVOC_H
#define BOX_DRILL_HAVOC_H

struct trial;

/* Attacks that would disturb other trials, each undone by itself: they run alone (CLAIM_ALONE). */
void havoc_arp(struct trial *trial);
void havoc_flood(struct trial *trial);
void havoc_table(struct trial *trial);
void havoc_rogue(struct trial *trial);
void havoc_starve(struct trial *trial);
void havoc_ipv6(struct trial *trial);
void havoc_watcher(struct trial *trial);
void havoc_flows(struct trial *trial);

#endif

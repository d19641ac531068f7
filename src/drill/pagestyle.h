#ifndef BOX_DRILL_PAGESTYLE_H
#define BOX_DRILL_PAGESTYLE_H

/* What the report's page looks like, and the few lines that fold and filter it. Constants; nothing of a report is in
 * them. */
extern const char pagestyle_css[];
extern const char pagestyle_script[];

#endif

#ifndef BOX_CLI_MANUAL_H
#define BOX_CLI_MANUAL_H

#include <stdio.h>

/* The man page box(1) in man(7) macros, from the rows of the command table. */
void manual_print(FILE *out);

/* box.env(5) in roff. */
void manual_print_template(FILE *out);

#endif

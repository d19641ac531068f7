#ifndef BOX_BOX_VMCONSOLE_H
#define BOX_BOX_VMCONSOLE_H

#include <stddef.h>

/* Why a VM does not answer, as far as its console tells. */
struct vmconsole_verdict {
    const char *cause;  /* one clause, static: "its firmware found nothing to boot from" */
    const char *remedy; /* static, or NULL */
    char *last;         /* the console's last line with anything in it, safe for a terminal; NULL where there is none */
};

/* Judges what a console said; a guest wrote it, so any bytes may come. Always gives a cause. */
void vmconsole_judge(const char *text, size_t length, struct vmconsole_verdict *ret_verdict);

void vmconsole_reset(struct vmconsole_verdict *verdict);

#endif

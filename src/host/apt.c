/* Installing and removing packages: apt-get, pinned to no terminal, bounded, told line by line.
 * A fresh cloud host holds dpkg's lock for minutes in silence: the wait is apt's own, so that it names the holder.
 * Not for which packages: src/stack. */
#include "host/apt.h"

#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"

#include <string.h>

#define BUDGET_MS (20 * 60 * 1000)

bool apt_exists(void)
{
    return process_exists("apt-get");
}

int apt_installed(const char *pattern, struct argv *ret_packages, struct error *err)
{
    const char *const argv[] = {"dpkg-query", "--show", "--showformat=${db:Status-Status} ${binary:Package}\\n",
                                pattern, NULL};
    struct process_options options = {.budget = 30000};
    CLEANUP(process_result_reset) struct process_result result = {0};
    if (process_run(argv, &options, &result, err) < 0) {
        return -1;
    }
    /* A pattern that matches nothing is exit status 1: no package. */
    for (char *rest = result.output.data, *line; rest != NULL && (line = strsep(&rest, "\n")) != NULL;) {
        if (text_starts_with(line, "installed ")) {
            argv_push(ret_packages, line + strlen("installed "));
        }
    }
    return 0;
}

static void tell(void *context, const char *line)
{
    CLEANUP(freep) char *clean = text_sanitise(line, strlen(line));
    narrate_progress(context, "%s", clean);
}

int apt_get(const struct argv *arguments, struct narrator *narrator, struct error *err)
{
    CLEANUP(argv_reset) struct argv argv = {0};
    static const char *const head[] = {"env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y",
                                       "-o",  "DPkg::Lock::Timeout=300",        NULL};
    struct process_options options = {.budget = BUDGET_MS, .narrator = narrator, .line = tell, .context = narrator};
    argv_push_all(&argv, head);
    argv_push_all(&argv, (const char *const *)arguments->items);
    return process_check((const char *const *)argv.items, &options, NULL, err);
}

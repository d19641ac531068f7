/* Docker in a box: it starts, imports an image made on the spot, and runs it with a network behind the box's walls.
 * Not for loosening anything so that it does: where it cannot, the reason is what is told. */
#include "drill/nested.h"

#include "base/memory.h"
#include "base/text.h"
#include "drill/siegecraft.h"

#include <stdlib.h>
#include <string.h>

/* $1: "install" or "", $2: the instrument in the box, $3 and $4: an address of the internet and its port, $5: the
 * gateway. Each step that fails says which it was, with the last words of what failed. */
static const char script[] =
    "log=$(mktemp -d)/log\n"
    "step() { what=$1; shift; \"$@\" >\"$log\" 2>&1 || { echo \"$what: $(tail -n 1 \"$log\")\"; exit 1; }; }\n"
    "if ! command -v docker >/dev/null; then\n"
    "    [ \"$1\" = install ] || { echo 'no docker in the box'; exit 2; }\n"
    "    export DEBIAN_FRONTEND=noninteractive\n"
    "    step 'the archive cannot be reached' apt-get -qq -o Acquire::Retries=0 update\n"
    "    step 'docker.io cannot be installed' apt-get -qq -y --no-install-recommends install docker.io docker-cli "
    "iptables\n"
    "fi\n"
    "step 'the Docker daemon does not start' systemctl start docker\n"
    "step 'the image cannot be imported' sh -c 'tar -C \"${1%/*}\" -c \"${1##*/}\" | docker import - box-drill' sh "
    "\"$2\"\n"
    "run() { docker run --rm box-drill \"/${probe##*/}\" connect \"$@\" --timeout 2000 2>\"$log\" || tail -n 1 "
    "\"$log\"; }\n"
    "probe=$2\n"
    "run \"$3\" \"$4\"\n"
    "run \"$5\" 80\n"
    "docker rmi -f box-drill >/dev/null 2>&1\n";

#define REACHES "\"verdict\":\"reachable\""
#define SILENT  "\"verdict\":\"dropped\""

/* The first line is of the internet, the second of the host. */
static void judge(struct trial *trial, char *output)
{
    char *second = strchr(output, '\n');

    if (second) {
        *second++ = '\0';
    }
    CLEANUP(freep) char *first = text_sanitise(output, strnlen(output, 200));

    if (!strstr(output, REACHES)) {
        trial_say(trial, VERDICT_BROKEN, "a container in it does not reach the internet: %s", first);
    } else if (!second || !strstr(second, "\"verdict\":")) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the second container did not run");
    } else if (!strstr(second, SILENT)) {
        trial_say(trial, VERDICT_BROKEN, "a container in it reaches the host");
    } else {
        trial_say(trial, VERDICT_HOLDS, "a container in it reaches the internet, and not the host");
    }
}

/* The box reaches the internet by itself, and the host has an answer for whoever reaches it. */
static bool control(struct trial *trial, char **ret_web, char **ret_port, char **ret_gateway)
{
    CLEANUP(reply_reset) struct reply own = {0};
    CLEANUP(reply_reset) struct reply host = {0};
    CLEANUP(error_reset) struct error err = {0};

    if (ground_fill(trial->ground, "{web}", ret_web, &err) < 0 ||
        ground_fill(trial->ground, "{web.port}", ret_port, &err) < 0 ||
        ground_fill(trial->ground, "{gateway}", ret_gateway, &err) < 0) {
        trial_not_judged(trial, &err);
        return false;
    }
    if (!siegecraft_probe(trial, "control", "box: connect {web} {web.port} --timeout 2000", &own) ||
        !siegecraft_probe(trial, "control", "host: connect {gateway} 80 --timeout 2000", &host)) {
        return false;
    }
    if (own.verdict != REPLY_REACHABLE) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the control failed: the box itself does not reach the internet");
        return false;
    }
    if (host.verdict != REPLY_REACHABLE && host.verdict != REPLY_REFUSED) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the control failed: the host does not reach its own address");
        return false;
    }
    return true;
}

void nested_claim(struct trial *trial)
{
    CLEANUP(freep) char *web = NULL;
    CLEANUP(freep) char *port = NULL;
    CLEANUP(freep) char *gateway = NULL;
    CLEANUP(process_result_reset) struct process_result result = {0};
    CLEANUP(error_reset) struct error err = {0};
    bool install = !text_is_empty(getenv("BOX_DRILL_DOCKER"));

    if (!control(trial, &web, &port, &gateway)) {
        return;
    }
    const char *const words[] = {"sh", "-c", script,  "sh", install ? "install" : "", trial->ground->guest_program,
                                 web,  port, gateway, NULL};

    if (trial_command(trial, "box", words, &result, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    CLEANUP(freep) char *output = xstrndup(result.output.data ? result.output.data : "", result.output.length);

    if (result.status == 0) {
        judge(trial, output);
        return;
    }
    CLEANUP(freep) char *words_of_it = text_sanitise(output, strcspn(output, "\n"));

    trial_say(trial, VERDICT_NOT_JUDGED, "%s%s", words_of_it,
              result.status == 2 ? ": BOX_DRILL_DOCKER=1 installs it in the drill's box" : "");
}

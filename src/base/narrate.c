/* Formats what library code narrates and hands it to whoever listens.
 * Not for: deciding how narration looks; that is src/cli. */
#include "base/narrate.h"

#include "base/memory.h"

static void speak(struct narrator *narrator, enum narrate_kind kind, const char *format, va_list arguments)
    PRINTF_LIKE(3, 0);

static void speak(struct narrator *narrator, enum narrate_kind kind, const char *format, va_list arguments)
{
    if (!narrator) {
        return;
    }
    CLEANUP(freep) char *text = xvasprintf(format, arguments);
    narrator->say(narrator, kind, text);
}

#define DEFINE_SPEAKER(name, kind)                                                                                   \
    void name(struct narrator *narrator, const char *format, ...)                                                    \
    {                                                                                                                \
        va_list arguments;                                                                                           \
        va_start(arguments, format);                                                                                 \
        speak(narrator, kind, format, arguments);                                                                    \
        va_end(arguments);                                                                                           \
    }

DEFINE_SPEAKER(narrate_step, NARRATE_STEP)
DEFINE_SPEAKER(narrate_progress, NARRATE_PROGRESS)
DEFINE_SPEAKER(narrate_done, NARRATE_DONE)
DEFINE_SPEAKER(narrate_note, NARRATE_NOTE)
DEFINE_SPEAKER(narrate_warn, NARRATE_WARN)

void narrate_tick(struct narrator *narrator)
{
    if (narrator && narrator->tick) {
        narrator->tick(narrator);
    }
}

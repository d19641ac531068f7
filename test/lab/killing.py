"""Kills a command at each thing that it says: at every step, however long a step lasts on this machine."""

import os
import signal
import subprocess

ALL = os.environ.get("BOX_ALL") == "1"


def at_line(lab, argv, number):
    """SIGKILL for the command and all that it runs, once it has told that many lines. False where it ended before."""
    process = lab.popen(argv, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    reached = False
    with process.stderr:
        for count, _ in enumerate(process.stderr, 1):
            if count == number:
                reached = True
                os.killpg(process.pid, signal.SIGKILL)
                break
    process.wait()
    return reached


def each_line(lab, argv, prepare, stride):
    """Yields a number for each line of the command's (for every stride-th without BOX_ALL) once it was killed there, after
    prepare(). The command is told its whole way at last, and that is the end."""
    number = 1
    while True:
        prepare()
        if not at_line(lab, argv, number):
            return
        yield number
        number += 1 if ALL else stride

"""Executes another program that cannot outlive its parent: `python -S -E child.py [--user NAME]
[--keep-search] PARENT_PID SIGNAL PROGRAM ARGS...`.

Standard library only and no package imports: it is run as a script, so that it starts in a few
milliseconds. It exists because code between fork and exec (`preexec_fn`) is not safe in a
process that has threads.
"""

import ctypes
import os
import pwd
import sys

PR_SET_PDEATHSIG = 1
PR_SET_KEEPCAPS = 8
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
CAP_DAC_OVERRIDE = 1
LINUX_CAPABILITY_VERSION_3 = 0x20080522


def prctl(*numbers: int) -> None:
    """Calls prctl(2). Raises OSError; does nothing on systems that are not Linux."""
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(*(ctypes.c_ulong(number) for number in (*numbers, 0, 0, 0, 0)[:5])) != 0:
        raise OSError(ctypes.get_errno(), "prctl " + repr(numbers))


def become(user: str, keep_search: bool) -> None:
    """Changes from root to `user`; with `keep_search` folders that only root may enter stay
    passable for it and its children."""
    entry = pwd.getpwnam(user)
    if keep_search:
        prctl(PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
    os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
    if keep_search:
        bit = 1 << CAP_DAC_OVERRIDE
        header = (ctypes.c_uint32 * 2)(LINUX_CAPABILITY_VERSION_3, 0)
        # Effective, permitted, inheritable; then their upper halves.
        sets = (ctypes.c_uint32 * 6)(bit, bit, bit, 0, 0, 0)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.capset(header, sets) != 0:
            raise OSError(ctypes.get_errno(), "capset")
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE)


def main(arguments: list[str]) -> None:
    """Runs the steps of the module's docstring; returns only if the arguments are wrong or
    the parent is gone already."""
    user, keep_search = None, False
    while arguments[0].startswith("--"):
        option = arguments.pop(0)
        if option == "--user":
            user = arguments.pop(0)
        elif option == "--keep-search":
            keep_search = True
        else:
            sys.exit(f"child.py: unknown option {option}")
    parent, signal_number = int(arguments.pop(0)), int(arguments.pop(0))
    if user is not None:
        become(user, keep_search)
    # After the change of user, which clears it.
    prctl(PR_SET_PDEATHSIG, signal_number)
    if os.getppid() != parent:
        sys.exit("child.py: the parent ended before the program could start")
    os.execvp(arguments[0], arguments)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Restrictions that Linux lets any process put on itself permanently, without being root: Landlock
(files), seccomp (system calls), capabilities.

Each function returns whether the restriction is in force; a system without it is unchanged. All of
them apply to this thread, and to everything that it starts later.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_NO_NEW_PRIVS, _GET_SECCOMP, _SET_SECCOMP, _SET_PDEATHSIG, _SET_DUMPABLE, _FILTER = 38, 21, 22, 1, 4, 2
_CAPABILITY_VERSION_3 = 0x20080522
_KILL = 9

# -- Landlock (linux/landlock.h) -------------------------------------------------------------------

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""The same numbers on all architectures."""
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_OF_FILES = 1 << 0 | _WRITE_FILE | _READ_FILE | _TRUNCATE
_ALL_OF_FIRST = (1 << 13) - 1
_REFER, _IOCTL = 1 << 13, 1 << 15
_TCP, _SCOPES = 3, 3

# -- seccomp (linux/seccomp.h, linux/filter.h) -----------------------------------------------------

_LOAD, _EQUAL, _AT_LEAST, _HAS_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_X32 = 0x40000000
_THREAD = 0x00010000
ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""Audit's number of the architecture, and the column of CALLS."""
CLONE, CLONE3 = (56, 220), (435, 435)
CALLS = {
    "socket": (41, 198), "socketpair": (53, 199), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242),
    "connect": (42, 203), "execve": (59, 221), "execveat": (322, 281), "ptrace": (101, 117), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "kill": (62, 129), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219), "open_by_handle_at": (304, 265), "init_module": (175, 105), "finit_module": (313, 273),
    "kexec_load": (246, 104), "setsid": (112, 157), "setpgid": (109, 154), "tkill": (200, 130), "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "setpriority": (141, 140), "ioprio_set": (251, 30),
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274), "sched_setaffinity": (203, 122),
    "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "fchown": (93, 55), "fchownat": (260, 54), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "setxattrat": (463, 463), "removexattrat": (466, 466), "truncate": (76, 45), "inotify_init1": (294, 26),
    "shmget": (29, 194), "shmat": (30, 196), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180),
}  # fmt: skip
"""System calls that are refused, with their numbers: ways to the network, to other programs and
processes, and to the system itself."""
_OLD_FILES = (85, 90, 92, 94, 132, 235, 253, 261)
"""creat, chmod, chown, lchown, utime, utimes, inotify_init and futimesat of x86_64; other
architectures have none of them."""
_OLD_OPEN = 2
OPENAT, OPENAT2, PRCTL, PRLIMIT, FCNTL = (257, 56), (437, 437), (157, 167), (302, 261), (72, 25)
_SECOND_ARGUMENT, _THIRD_ARGUMENT = 24, 32
_SET_OWNER, _SET_OWNER_EX = 8, 15
"""Of fcntl: who gets the signals of a file."""
_OLD_PROCESSES = (57, 58)
"""fork and vfork of x86_64; other architectures have clone alone."""


@cache
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    return library


def _prctl(option: int, *arguments: object) -> bool:
    values = [ctypes.c_ulong(one) if isinstance(one, int) else one for one in arguments]
    return bool(_libc().prctl(option, *values, *[ctypes.c_ulong(0)] * (4 - len(values))) == 0)


def _on_linux() -> bool:
    return sys.platform == "linux"


def die_with_parent() -> None:
    """The process is killed when the thread that started it ends."""
    if _on_linux():
        _prctl(_SET_PDEATHSIG, _KILL)


def drop_capabilities() -> bool:
    """A process of root keeps the user, but loses root's privileges: raising its own limits,
    reading files of other users."""
    if not _on_linux():
        return os.geteuid() != 0
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    return bool(_libc().capset(header, bytes(24)) == 0)


def restricts_files() -> bool:
    """Whether this kernel has Landlock, switched on."""
    return _on_linux() and int(_libc().syscall(_CREATE_RULESET, None, 0, 1)) >= 1


def refuses_calls() -> bool:
    """Whether this kernel filters system calls, on an architecture whose numbers are known here."""
    return _on_linux() and platform.machine() in ARCHITECTURES and int(_libc().prctl(_GET_SECCOMP, 0, 0, 0, 0)) >= 0


def restrict_files(read: Iterable[Path]) -> bool:
    """Only files below `read` can be opened, and for reading alone; no TCP ports."""
    if not restricts_files() or not _set_no_new_privileges():
        return False
    libc = _libc()
    version = libc.syscall(_CREATE_RULESET, None, 0, 1)
    handled = _ALL_OF_FIRST | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0) | (_IOCTL if version >= 5 else 0)
    attributes = struct.pack("=QQQ", handled, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = libc.syscall(_CREATE_RULESET, attributes[:size], ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return False
    try:
        readable = _READ_FILE | _READ_DIR
        return all(_allow(ruleset, path, readable) for path in read if path.exists()) and libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> bool:
    opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights if path.is_dir() else rights & _OF_FILES, opened)
        return bool(_libc().syscall(_ADD_RULE, ruleset, 1, rule, 0) == 0)
    finally:
        os.close(opened)


def refuse_calls(*, processes: bool) -> bool:
    """CALLS give EPERM from now on. Starting a process does too unless `processes`; threads can
    always be started."""
    if not refuses_calls() or not _set_no_new_privileges():
        return False
    program = _program(*ARCHITECTURES[platform.machine()], processes=processes)
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    filters = Program(len(program), ctypes.addressof(code))
    return _prctl(_SET_SECCOMP, _FILTER, ctypes.byref(filters))


def _program(audit: int, column: int, *, processes: bool) -> list[tuple[int, int, int, int]]:
    """The filter: (operation, lines to skip when it holds, when not, operand)."""
    refused = [numbers[column] for numbers in CALLS.values()] + list(_OLD_FILES if column == 0 else ())
    if not processes and column == 0:
        refused += _OLD_PROCESSES
    refusal = (_RETURN, 0, 0, _REFUSE | errno.EPERM)
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, audit),
        refusal,
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        refusal,
    ]
    for number in refused:
        program += [(_EQUAL, 0, 1, number), refusal]
    # Limits of other processes; receivers of signals; truncation on opening, which Landlock does
    # not control before Linux 6.2.
    program += _allowed_if(PRLIMIT[column], _FIRST_ARGUMENT, (_EQUAL, 0))
    program += _refused_if(FCNTL[column], _SECOND_ARGUMENT, (_EQUAL, _SET_OWNER), (_EQUAL, _SET_OWNER_EX))
    program += _refused_if(OPENAT[column], _THIRD_ARGUMENT, (_HAS_BIT, os.O_TRUNC))
    if column == 0:
        program += _refused_if(_OLD_OPEN, _SECOND_ARGUMENT, (_HAS_BIT, os.O_TRUNC))
    # Its flags are in memory, which a filter cannot read: without it libraries take openat.
    program += [(_EQUAL, 0, 1, OPENAT2[column]), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)]
    if not processes:
        program += _refused_if(PRCTL[column], _FIRST_ARGUMENT, (_EQUAL, _SET_PDEATHSIG))
        # The arguments of clone3 are in memory, which a filter cannot read: without it
        # the C library takes clone.
        program += [(_EQUAL, 0, 1, CLONE3[column]), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)]
        program += [(_EQUAL, 0, 3, CLONE[column]), (_LOAD, 0, 0, _FIRST_ARGUMENT), (_HAS_BIT, 1, 0, _THREAD), refusal]
    return [*program, (_RETURN, 0, 0, _ALLOW)]


_Line = tuple[int, int, int, int]


def _refused_if(number: int, argument: int, *tests: tuple[int, int]) -> list[_Line]:
    """The call is refused when one of the tests (operation, operand) holds for the low half of
    its argument, else allowed."""
    jumps = [(operation, len(tests) - i, 0, operand) for i, (operation, operand) in enumerate(tests)]
    outcomes = [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE | errno.EPERM)]
    return [(_EQUAL, 0, len(tests) + 3, number), (_LOAD, 0, 0, argument), *jumps, *outcomes]


def _allowed_if(number: int, argument: int, test: tuple[int, int]) -> list[_Line]:
    """The call is allowed when the test holds for the low half of its argument, else refused."""
    operation, operand = test
    outcomes = [(_RETURN, 0, 0, _REFUSE | errno.EPERM), (_RETURN, 0, 0, _ALLOW)]
    return [(_EQUAL, 0, 4, number), (_LOAD, 0, 0, argument), (operation, 1, 0, operand), *outcomes]


def _set_no_new_privileges() -> bool:
    """No program can regain dropped privileges; the kernel requires this before it accepts
    filters."""
    return _prctl(_NO_NEW_PRIVS, 1)


def refuse_attachment() -> None:
    """Other processes of the user, its own forks too, cannot look into this one or open
    its files by way of /proc."""
    if _on_linux():
        _prctl(_SET_DUMPABLE, 0)

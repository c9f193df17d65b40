"""The threads of a server share one heap, where the C library would give each its own."""

from __future__ import annotations

import platform
import subprocess
import sys

from tests.support.server import PROJECT

# Each thread takes something while all the others live, and the library tells of its heaps.
_HEAPS = """
import ctypes, sys, threading
from storage.memory_heaps import share_one_heap
if sys.argv[1] == "shared":
    share_one_heap()
library = ctypes.CDLL(None)
together = threading.Barrier(8)
def take():
    together.wait()
    library.malloc(ctypes.c_size_t(1_000_000))
    library.malloc(ctypes.c_size_t(100))
    together.wait()
threads = [threading.Thread(target=take) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
library.fdopen.restype = ctypes.c_void_p
library.malloc_info(0, ctypes.c_void_p(library.fdopen(1, b"w")))
library.fflush(None)
"""


def heaps(how: str) -> int:
    command = (sys.executable, "-c", _HEAPS, how)
    shown = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    return shown.count("<heap nr=")


def test_threads_share_one_heap():
    if platform.libc_ver()[0] != "glibc":
        return
    assert heaps("their own") > 1
    assert heaps("shared") == 1

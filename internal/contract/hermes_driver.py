"""Types lines into a program on a terminal: driver.py '[[line, what must appear], ...]' PROGRAM ARGUMENT..."""
import json
import os
import pty
import re
import sys

lines, argv = json.loads(sys.argv[1]), sys.argv[2:]
pid, fd = pty.fork()
if pid == 0:
    os.execv(argv[0], argv)

seen = b""


def expect(what):
    """Waits for a pattern in what comes behind the last one."""
    global seen
    while not (m := re.search(what.encode(), seen)):
        data = os.read(fd, 65536)
        sys.stdout.buffer.write(data)
        if b"\x1b[6n" in data:  # where is the cursor?
            os.write(fd, b"\x1b[1;1R")
        seen += re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", data)
    seen = seen[m.end() :]


IDLE = "(?<!⚕ )❯"  # a busy one has another prompt

try:
    for line, what in lines:
        expect(IDLE)
        os.write(fd, line.encode())
        expect(re.escape(line[-3:]))
        os.write(fd, b"\r")
        expect(what)
    while True:
        sys.stdout.buffer.write(os.read(fd, 65536))
except OSError:
    pass  # it has ended
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

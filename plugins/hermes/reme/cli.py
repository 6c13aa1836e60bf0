"""What runs reme-hook, and `hermes reme status|doctor|setup`. Made by reme-hook 0.1.0-dev, which replaces this file."""
import os
import shutil
import signal
import subprocess
import threading

COMMAND = "reme-hook"
LIMIT = 3.0  # seconds for a hook; reme-hook itself ends after 2.9
LARGEST = 1 << 20  # bytes of an answer

if os.name == "nt":
    GROUP = {"creationflags": subprocess.CREATE_NO_WINDOW}
else:
    GROUP = {"start_new_session": True}


def program():
    return shutil.which(COMMAND) or shutil.which(os.path.expanduser("~/.reme/integrations/bin/reme-hook"))


def stop(child):
    # The whole group goes: a grandchild that holds the pipe would keep its reader waiting.
    try:
        child.kill() if os.name == "nt" else os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        pass


class Child:
    """A child that was told something. It is killed after a time, whoever waits for it."""

    def __init__(self, args, text, limit, **how):
        self.process = subprocess.Popen([program(), *args], stdin=subprocess.PIPE, **how, **GROUP)
        self.killer = threading.Timer(limit, stop, (self.process,))
        self.killer.daemon = True
        try:
            self.killer.start()
            with self.process.stdin as stdin:
                stdin.write(text)
        except OSError:
            pass  # it did not want to read all
        except BaseException:
            stop(self.process)
            raise

    def wait(self, limit=None):
        status = self.process.wait(limit)
        self.killer.cancel()
        return status


def tell(*args, text, patience):
    """Runs a child that answers nothing. One that is not ready in time goes on alone, and is returned."""
    child = Child(args, text, LIMIT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        child.wait(patience)
    except subprocess.TimeoutExpired:
        return child


def ask(*args, limit, text, cwd=None):
    """Runs a child; its exit status, and what it prints."""
    child = Child(args, text, limit, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=cwd)
    with child.process.stdout as stdout:
        out = stdout.read(LARGEST)
    return child.wait(), out.decode("utf-8", "replace")


def show(*args):
    """Runs a command for the user; its exit status."""
    if not program():
        print("reme-hook is not on this machine: see https://github.com/agentscope-ai/reme-hook")
        return 1
    from hermes_constants import get_hermes_home

    return subprocess.call([program(), *args], env={**os.environ, "HERMES_HOME": str(get_hermes_home())})


def reme_command(args):
    raise SystemExit(show(*args.reme))


def register_cli(parser):
    parser.set_defaults(func=reme_command, reme=["status"])
    commands = parser.add_subparsers()
    for name, help, argv in (
        ("status", "what is remembered and what waits", ["status"]),
        ("doctor", "what keeps the memory from working", ["doctor", "hermes"]),
        ("setup", "connect Hermes to the memory", ["install", "hermes"]),
    ):
        commands.add_parser(name, help=help).set_defaults(reme=argv)

"""The shared memory of coding agents in Hermes. Made by reme-hook 0.1.0-dev, which replaces this file: do not edit it.

Each hook is a child, `reme-hook hermes <hook>`, with JSON on its stdin; what is to be done is decided there. A child that
is missing, fails, hangs or answers with anything but JSON is as good as none.
"""
import contextlib
import json
import logging
import os
import pathlib
import sqlite3
import subprocess
import threading
import uuid

from agent.memory_provider import MemoryProvider

from . import cli

log = logging.getLogger(__name__)

PATIENCE = 1.0  # seconds that Hermes waits for a child whose answer it does not need
TOOL_LIMIT = 10.0  # seconds for a tool; reme-hook itself ends after 8
PREFIX = "reme_"  # of the tools' names
TOOLS = json.loads(pathlib.Path(__file__).with_name("tools.json").read_text("utf-8"))


def cwd():
    place = os.environ.get("TERMINAL_CWD", "")
    if os.path.isdir(place):
        return place
    try:
        return os.getcwd()
    except OSError:  # it is gone
        return ""


class ReMe(MemoryProvider):
    name = "reme"

    def __init__(self):
        self._about = {}  # what every child is told
        self._session = ""
        self._turn = None  # session and id of the turn that has begun, until its prompt is known
        self._row = None  # session and last row when it began
        self._turns = {}  # prompt -> session and turn; a turn may be synced after the next one has begun
        self._lock = threading.Lock()  # children of one session run one after the other
        self._late = []  # children that were not ready in time

    def _payload(self, hook, **more):
        about = {"event": hook, "session_id": self._session, "cwd": cwd()}
        return json.dumps({**about, **self._about, **more}, default=str).encode()

    def _tell(self, hook, **more):
        late = self._run(cli.tell, hook, text=self._payload(hook, **more), patience=PATIENCE)
        self._late = [child for child in [*self._late, late] if child and child.process.poll() is None]

    def _run(self, do, hook, **how):
        mine = self._lock.acquire(timeout=cli.LIMIT)
        try:
            return do("hermes", hook, **how)
        except Exception as e:
            log.debug("reme-hook: %s", type(e).__name__)
        finally:
            if mine:
                self._lock.release()

    def is_available(self):
        return cli.program() is not None

    def initialize(self, session_id, **kwargs):
        self._session = session_id
        self._about = {k: kwargs.get(k) for k in ("hermes_home", "agent_identity", "agent_context", "platform")}

    def system_prompt_block(self):
        return "Addresses that begin with reme:// are memories, not files: the tool reme_read opens them."

    def on_turn_start(self, turn_number, message, **kwargs):
        self._turn = self._new_turn()

    def _new_turn(self):
        """The session, and an id that Hermes' database tells later, too: the last row that it had when the turn began."""
        before, session = self._row, self._session
        try:
            place = pathlib.Path(self._about["hermes_home"], "state.db").resolve().as_uri() + "?mode=ro"
            with contextlib.closing(sqlite3.connect(place, uri=True, timeout=0.2)) as db:
                (row,) = db.execute("SELECT max(id) FROM messages WHERE session_id = ?", (session,)).fetchone()
            self._row = session, row or 0
        except Exception as e:
            log.debug("state.db: %s", type(e).__name__)
        if self._row == before:  # it tells nothing of the last turn
            return session, uuid.uuid4().hex
        return session, f"after-{self._row[1]}"

    def _begun(self, session_id):
        (_, turn), self._turn = self._turn or ("", uuid.uuid4().hex), None
        return {"session_id": session_id or self._session, "turn": turn}

    def prefetch(self, query, *, session_id=""):
        if self._turn and self._turn[0] != self._session:  # which was announced when the turn had begun
            self._turn = self._new_turn()
        turn = self._turns[query] = self._begun(session_id)
        for old in list(self._turns)[:-8]:
            self._turns.pop(old, None)
        payload = self._payload("prefetch", query=query, **turn)
        status, out = self._run(cli.ask, "prefetch", text=payload, limit=cli.LIMIT) or (1, "")
        try:
            answer = json.loads(out)["context"]
        except (ValueError, TypeError, LookupError):
            return ""
        return answer if status == 0 and isinstance(answer, str) else ""

    def sync_turn(self, user_content, assistant_content, *, session_id="", **kwargs):
        # A compaction may have moved the conversation to another session since the turn began.
        turn = self._turns.pop(user_content, None) or self._begun(session_id)
        self._tell("sync_turn", user_content=user_content, assistant_content=assistant_content, **turn)

    def on_pre_compress(self, messages):
        self._tell("on_pre_compress")
        return ""

    def on_session_end(self, messages):
        self._tell("on_session_end")

    def on_session_switch(self, new_session_id, *, parent_session_id="", **kwargs):
        left = parent_session_id or self._session
        self._session = new_session_id
        self._tell("on_session_switch", **kwargs, session_id=left, new_session_id=new_session_id)

    def on_memory_write(self, action, target, content, metadata=None):
        self._tell("on_memory_write", action=action, target=target, content=content, metadata=metadata)

    def shutdown(self):
        for child in self._late:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(cli.LIMIT)  # by then it is killed

    def get_tool_schemas(self):
        return TOOLS

    def handle_tool_call(self, tool_name, args, **kwargs):
        job = ("job", tool_name.removeprefix(PREFIX), "--host", "hermes")
        try:
            status, out = cli.ask(*job, limit=TOOL_LIMIT, text=json.dumps(args).encode(), cwd=cwd() or None)
            answer = json.loads(out)
            told = answer["answer"] or answer["metadata"]
        except Exception as e:
            return json.dumps({"error": f"the memory cannot be reached ({type(e).__name__})"})
        return json.dumps({"result" if status == 0 else "error": told}, ensure_ascii=False)

    def get_config_schema(self):
        return []  # reme-hook has its own configuration

    def save_config(self, values, hermes_home):
        pass

    def post_setup(self, hermes_home, config):
        memory = config["memory"]
        if memory.get("provider") not in (None, "", self.name):
            from hermes_cli.config import save_config

            memory["provider"] = ""  # the user has chosen another one
            save_config(config)
        cli.show("install", "hermes")


def register(ctx):
    ctx.register_memory_provider(ReMe())

"""Tests the provider with programs in the place of reme-hook. Run by `go test`."""
import argparse
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import sqlite3
import sys
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).parent


def module(name, **members):
    m = types.ModuleType(name)
    m.__dict__.update(members)
    sys.modules[name] = m


module("agent")
module("agent.memory_provider", MemoryProvider=type("MemoryProvider", (), {}))
module("_hermes_user_memory")
spec = importlib.util.spec_from_file_location(
    "_hermes_user_memory.reme", HERE / "reme" / "__init__.py", submodule_search_locations=[str(HERE / "reme")]
)
reme = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = reme
spec.loader.exec_module(reme)
cli = reme.cli

RECORD = 'cat >"$0.$2.$$"; '


class Provider(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.multiple(cli, COMMAND=str(self.dir / "reme-hook")))
        self.limits(60, 60)  # not reached by what ends by itself
        self.enterContext(mock.patch.dict(os.environ, {"HOME": str(self.dir)}))

        class Context:
            def register_memory_provider(self, provider):
                self.provider = provider

        reme.register(context := Context())
        self.provider = context.provider
        self.provider.initialize("s1", hermes_home="/h", agent_identity="coder", platform="cli", warning_callback=print)

    def limits(self, limit, patience):
        self.enterContext(mock.patch.multiple(cli, LIMIT=limit))
        self.enterContext(mock.patch.multiple(reme, PATIENCE=patience, TOOL_LIMIT=limit))

    def program(self, script):
        path = self.dir / "reme-hook"
        path.write_text("#!/bin/sh\n" + script + "\n")
        path.chmod(0o755)

    def told(self):
        """What the program was told, in order."""
        files = sorted(self.dir.glob("reme-hook.*"), key=lambda f: f.stat().st_mtime_ns)
        return [json.loads(f.read_text()) for f in files]

    def turn(self, prompt, reply):
        self.provider.on_turn_start(1, prompt)
        context = self.provider.prefetch(prompt, session_id="")
        self.provider.sync_turn(prompt, reply, session_id="s1", messages=[])
        return context

    def everything(self):
        """Calls all that Hermes calls; returns what it gets, and the longest time."""
        p = self.provider
        calls = [
            lambda: p.on_turn_start(1, "x"),
            lambda: p.prefetch("x", session_id=""),
            lambda: p.sync_turn("x", "y", session_id="s1", messages=[]),
            lambda: p.on_pre_compress([{}]),
            lambda: p.on_session_end([]),
            lambda: p.on_session_switch("s2", parent_session_id="s1", reset=True, reason="new_session"),
            lambda: p.on_memory_write("add", "memory", "x", metadata={"a": object()}),
            lambda: json.loads(p.handle_tool_call("reme_search", {"query": "x"})) and None,
            lambda: p.shutdown(),
        ]
        slowest, got = 0, []
        for call in calls:
            start = time.monotonic()
            got.append(call())
            slowest = max(slowest, time.monotonic() - start)
        return [g for g in got if g], slowest

    def test_fails(self):
        for name, script in {
            "garbage": "echo garbage; head -c 3000000 /dev/zero; echo garbage >&2",
            "another type": "echo '[1]'",
            "another member": "echo '{\"context\": 5}'",
            "nothing": "exit 0",
            "status 2": 'echo \'{"context": "no"}\'; exit 2',
            "crash": "kill -SEGV $$",
            "does not read": "exec 0<&-; exit 0",
        }.items():
            with self.subTest(name):
                self.program(script)
                got, _ = self.everything()
                self.assertEqual(got, [])

    def test_missing(self):
        self.assertFalse(self.provider.is_available())
        self.assertEqual(self.everything()[0], [])
        self.program("")
        self.assertTrue(self.provider.is_available())

    def test_fallback(self):
        self.program("")
        place = self.dir / ".reme" / "integrations" / "bin"
        place.mkdir(parents=True)
        (self.dir / "reme-hook").rename(place / "reme-hook")
        self.assertEqual(cli.program(), str(place / "reme-hook"))

    def test_hangs(self):
        self.limits(0.4, 0.1)
        for name, script in {
            "itself": "exec sleep 600",
            "a child has the pipe": "sleep 600 & exit 0",
            "endless": "exec yes",
        }.items():
            with self.subTest(name):
                self.program("echo $$ >>$0-pids; " + script)
                got, slowest = self.everything()
                self.assertEqual(got, [])
                self.assertLess(slowest, 60)
                pids = self.dir / "reme-hook-pids"
                for pid in pids.read_text().split():
                    with self.assertRaises(ChildProcessError):  # it has ended
                        os.waitpid(int(pid), os.WNOHANG)
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(int(pid), 9)  # a child of one that had nothing to answer
                pids.unlink()

    def test_large(self):
        self.limits(0.4, 0.1)
        self.program("exec sleep 600")
        self.assertEqual(self.provider.prefetch("x" * 1_000_000), "")

    def test_turn_ids(self):
        def begin():
            self.provider.on_turn_start(1, "x")
            return self.provider._begun("")["turn"]

        self.provider.initialize("s1", hermes_home=str(self.dir))
        with contextlib.closing(sqlite3.connect(self.dir / "state.db", isolation_level=None)) as db:
            db.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT)")
            db.executemany("INSERT INTO messages (session_id) VALUES (?)", [["s0"], ["s0"]])
            self.assertEqual(begin(), "after-0")
            db.executemany("INSERT INTO messages (session_id) VALUES (?)", [["s1"], ["s1"], ["s0"]])
            self.assertEqual(begin(), "after-4")
            self.assertRegex(begin(), "^[0-9a-f]{32}$")  # Hermes has kept nothing of the turn before
            db.execute("INSERT INTO messages (session_id) VALUES (?)", ["s1"])
            self.program(RECORD)
            self.provider.on_turn_start(1, "x")
            self.provider._session = "s2"  # Hermes tells of a new session when its first turn has begun
            self.provider.prefetch("x")
            self.assertEqual([(t["session_id"], t["turn"]) for t in self.told()], [("s2", "after-0")])

    def test_turns(self):
        self.program(RECORD + 'echo \'{"context": "frame \\u00fc"}\'')
        self.assertEqual(self.turn("one", "1"), "frame ü")
        self.assertEqual(self.turn("one", "2"), "frame ü")
        told = self.told()
        self.assertEqual([t["event"] for t in told], ["prefetch", "sync_turn"] * 2)
        self.assertEqual([t["turn"] for t in told[::2]], [t["turn"] for t in told[1::2]])
        self.assertNotEqual(told[0]["turn"], told[2]["turn"])
        self.assertEqual({k: told[0][k] for k in ("session_id", "hermes_home", "agent_identity", "query")},
                         {"session_id": "s1", "hermes_home": "/h", "agent_identity": "coder", "query": "one"})
        self.assertEqual({k: told[3][k] for k in ("user_content", "assistant_content")}, {"user_content": "one", "assistant_content": "2"})

    def test_late_sync(self):
        self.program(RECORD)
        for prompt in ("one", "two"):
            self.provider.on_turn_start(1, prompt)
            self.provider.prefetch(prompt)
        self.provider.sync_turn("one", "1", session_id="s1")
        self.provider.sync_turn("two", "2", session_id="s1")
        turns = [t["turn"] for t in self.told()]
        self.assertEqual(turns[:2], turns[2:])

    def test_unannounced(self):
        """A prompt with an image is not prefetched."""
        self.program(RECORD)
        self.provider.on_turn_start(1, "")
        self.provider.sync_turn("[1 image] look", "1", session_id="s1")
        self.provider.sync_turn("[1 image] look", "2", session_id="s1")
        first, second = self.told()
        self.assertTrue(first["turn"] and first["turn"] != second["turn"])

    def test_moved_within_turn(self):
        """A compaction moves the conversation to another session before the turn is synced."""
        self.program(RECORD)
        self.provider.on_turn_start(1, "one")
        self.provider.prefetch("one")
        self.provider.on_session_switch("s2", parent_session_id="s1", reset=False, reason="compression")
        self.provider.sync_turn("one", "1", session_id="s2")
        self.provider.on_session_end([])
        told = [(t["event"], t["session_id"]) for t in self.told()]
        self.assertEqual(told, [("prefetch", "s1"), ("on_session_switch", "s1"), ("sync_turn", "s1"), ("on_session_end", "s2")])

    def test_rewound(self):
        self.program(RECORD)
        self.provider.on_session_switch("s1", parent_session_id="", reset=False, rewound=True)
        self.assertEqual(self.told()[0]["session_id"], "s1")
        self.assertIs(self.told()[0]["rewound"], True)

    def test_end_waits_for_sync(self):
        """`hermes -z` ends the session while the last turn is synced."""
        self.program('echo "begin $2" >>$0-log; sleep 0.05; echo "end $2" >>$0-log')
        sync = threading.Thread(target=self.provider.sync_turn, args=("one", "1"))
        sync.start()
        self.provider.on_session_end([])
        sync.join()
        log = (self.dir / "reme-hook-log").read_text().splitlines()
        self.assertEqual([line.split()[0] for line in log], ["begin", "end"] * 2)

    def test_lone_surrogate(self):
        self.program(RECORD)
        self.turn("a \ud83d b", "\udc80")
        self.assertEqual(self.told()[1]["assistant_content"], "\udc80")

    def test_no_folder(self):
        self.program(RECORD)
        with mock.patch("os.getcwd", side_effect=FileNotFoundError), mock.patch.dict(os.environ, {"TERMINAL_CWD": ""}):
            self.turn("one", "1")
        self.assertEqual([t["cwd"] for t in self.told()], ["", ""])

    def test_tools(self):
        answer = '{"answer": "found <it>", "success": true, "metadata": {"a": 1}}'
        self.program(f'printf "%s|" "$@" >"$0.argv"; pwd >"$0.cwd"; cat >"$0.in"; echo \'{answer}\'')
        place = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(mock.patch.dict(os.environ, {"TERMINAL_CWD": place}))
        tools = {tool["name"] for tool in self.provider.get_tool_schemas()}
        self.assertEqual(tools, {"reme_search", "reme_read", "reme_traverse", "reme_daily_list", "reme_remember"})
        for tool in tools:
            args = {"query": "-q \ud83d"}
            self.assertEqual(json.loads(self.provider.handle_tool_call(tool, args, session_id="s1")), {"result": "found <it>"})
            self.assertEqual((self.dir / "reme-hook.argv").read_text(), f"job|{tool[5:]}|--host|hermes|")
            self.assertEqual(json.loads((self.dir / "reme-hook.in").read_text()), args)
            self.assertEqual((self.dir / "reme-hook.cwd").read_text(), place + "\n")

    def test_tool_answers(self):
        for name, script, want in (
            ("no text", 'echo \'{"answer": "", "success": true, "metadata": {"empty": 1}}\'', {"result": {"empty": 1}}),
            ("an object", 'echo \'{"answer": {"nodes": []}, "success": true, "metadata": {}}\'', {"result": {"nodes": []}}),
            ("refused", 'echo \'{"answer": "Error: no", "success": false, "metadata": {}}\'; exit 1', {"error": "Error: no"}),
            ("garbage", "echo garbage", {"error": "the memory cannot be reached (JSONDecodeError)"}),
            ("usage", "echo unknown job >&2; exit 2", {"error": "the memory cannot be reached (JSONDecodeError)"}),
            ("another type", "echo '[1]'", {"error": "the memory cannot be reached (TypeError)"}),
        ):
            with self.subTest(name):
                self.program(script)
                self.assertEqual(json.loads(self.provider.handle_tool_call("reme_search", {"query": "x"})), want)

    def test_setup(self):
        self.program('echo "$HERMES_HOME $*" >"$0.ran"')
        module("hermes_constants", get_hermes_home=lambda: pathlib.Path("/h"))
        saved = []
        module("hermes_cli")
        module("hermes_cli.config", save_config=lambda c: saved.append(json.dumps(c)))
        for before, after in (("", []), ("reme", []), ("honcho", ['{"memory": {"provider": ""}}'])):
            saved.clear()
            self.provider.post_setup("/h", {"memory": {"provider": before}})
            self.assertEqual(saved, after)
            self.assertEqual((self.dir / "reme-hook.ran").read_text(), "/h install hermes\n")
        self.assertEqual(self.provider.get_config_schema(), [])
        self.provider.save_config({}, "/h")

    def test_commands(self):
        self.program('echo "$HERMES_HOME $*" >"$0.ran"; exit 3')
        module("hermes_constants", get_hermes_home=lambda: pathlib.Path("/h"))
        parser = argparse.ArgumentParser()
        cli.register_cli(parser)
        for line, ran in (([], "status"), (["status"], "status"), (["doctor"], "doctor hermes"), (["setup"], "install hermes")):
            args = parser.parse_args(line)
            with self.assertRaises(SystemExit) as end:
                args.func(args)
            self.assertEqual(end.exception.code, 3)
            self.assertEqual((self.dir / "reme-hook.ran").read_text(), f"/h {ran}\n")
        (self.dir / "reme-hook").unlink()
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(cli.show("status"), 1)
        self.assertIn("not on this machine", out.getvalue())


if __name__ == "__main__":
    unittest.main()

"""supervisord in this process: our loop around its machinery.

supervisord does the configuration, spawning, states of processes, stop signals and their time limits. We replace:

- The loop. Ours sleeps until a signal or the next deadline. supervisord's starts processes before it reaps dead ones,
  so a dead process waits a second for the next turn, and a second more for every earlier death. Ours restarts it in the
  turn that the signal wakes. An idle node wakes only to look at heartbeats, every few seconds.
- Hangs. A process whose heartbeat stops (`corvo/runtime/heartbeat.py`) is killed, and so restarted. supervisord only
  notices dead ones.
- Output. Processes inherit our standard output instead of a pipe that we would have to drain: lines arrive whole and in
  order, and a slow reader of the log stalls only the process that writes.
- A gateway's standard input is the socket at which it listens, opened before any of them starts and held here. What
  waits there for one that is killed waits for its successor, and nobody is refused meanwhile.
- A process that cannot be kept alive ends the node. supervisord would leave it FATAL and carry on looking healthy.
- No servers are opened, so no orders can be given but by signals.
"""

import os
import select
import signal
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import structlog
from supervisor import events
from supervisor.medusa.asyncore_25 import ExitNow
from supervisor.options import ProcessConfig, ServerOptions, decode_wait_status
from supervisor.process import Subprocess
from supervisor.states import ProcessStates, SupervisorStates
from supervisor.supervisord import Supervisor

from corvo.cli.supervise.hang_watch import HangWatch, look_interval_s
from corvo.cli.supervise.programs import GATEWAYS
from corvo.cli.supervise.signals import stop_signals
from corvo.model.incidents import Incident, NodeRecord
from corvo.model.timestamps import to_rfc3339
from corvo.runtime.heartbeat import SUFFIX, heartbeat_path, read_heartbeats
from corvo.runtime.process import write_record

RESTART_S_FIRST = 0.1  # pause before the second restart in a row; the first comes at once
RESTART_S_MAX = 0.8  # a killed process is back within a second, even in the middle of a crash loop
TURN_MARGIN_S = 0.002  # supervisord compares with `>`: waking exactly at a deadline would be a turn too early

log: Any = structlog.get_logger()


def supervise(
    config_file: Path,
    listeners: Sequence[socket.socket],
    hang_timeout: float,
    on_stopping: Callable[[], None] = lambda: None,
) -> str | None:
    """Run the programs of the file until a signal ends the node. Why the node failed, or None after an ordered stop."""
    run_dir = config_file.parent
    for path in run_dir.glob(f"*{SUFFIX}"):  # of an earlier run
        path.unlink(missing_ok=True)
    options = NodeOptions(run_dir, listeners)
    options.realize(["--configuration", str(config_file)])
    options.first, options.test = True, False
    node = SupervisedNode(options)
    node.on_stopping = on_stopping
    node.hang_watch = HangWatch(look_interval_s(hang_timeout)) if hang_timeout else None
    try:
        node.main()
    except ExitNow:
        pass
    finally:
        options.close_logger()
    return node.failure


def restart_pause_s(deaths: int) -> float:
    """The pause after a number of deaths in a row, none of which followed a full start."""
    return 0.0 if deaths <= 1 else min(RESTART_S_FIRST * 2.0 ** (deaths - 2), RESTART_S_MAX)


class Child(Subprocess):  # type: ignore[misc]  # supervisor has no types
    """A process with our pause between restarts, and our lines in the log."""

    is_restart = False
    last_end = ""  # how it ended the last time
    why_killed = ""  # by us, because it hung

    def change_state(self, new_state: int, expected: bool = True) -> None:
        super().change_state(new_state, expected)
        if new_state == ProcessStates.BACKOFF:  # supervisord would wait as many seconds as there were deaths
            pause = restart_pause_s(self.backoff)
            self.delay = time.time() + pause if pause else 0

    def _prepare_child_fds(self) -> None:
        """In the new process, before its program: every other descriptor is closed here."""
        if self.group.config.name == GATEWAYS:
            number = int(self.config.name.rpartition("-")[2])
            self.pipes["child_stdin"] = self.config.options.listeners[number].fileno()
        super()._prepare_child_fds()

    def _spawn_as_parent(self, pid: int) -> Any:
        result = super()._spawn_as_parent(pid)
        try:  # the child does the same: whoever comes first, a stop signal to the group finds the group there
            os.setpgid(pid, pid)
        except OSError:
            pass
        log.info("process restarted" if self.is_restart else "process started", name=self.config.name, pid=pid)
        if self.is_restart:
            self.config.options.record.restart(self.config.name)
            self.config.options.keep_record()
        self.is_restart = True
        return result

    def end_hung(self, silent_s: float) -> None:
        """Not by supervisord's `kill`, after which it would not be started again."""
        log.warning("process hangs: killing it", name=self.config.name, pid=self.pid, silent_s=round(silent_s, 1))
        self.why_killed = f"no heartbeat for {silent_s:.0f} s, killed"
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it ended by itself

    def finish(self, pid: int, status: int) -> None:
        lived_s = round(time.time() - self.laststart, 3)
        was_asked = self.killing
        self.last_end = decode_wait_status(status)[1]
        heartbeat_path(self.config.options.run_dir, self.config.name).unlink(missing_ok=True)
        super().finish(pid, status)
        is_in_order = was_asked and os.WIFEXITED(status)  # not when it had to be killed because it would not stop
        say = log.info if is_in_order else log.warning
        say("process exited", name=self.config.name, pid=pid, why=self.last_end, lived_s=lived_s)
        if not was_asked and status != 0:  # 0: it wants to be started anew, with another state or certificate
            reason, self.why_killed = self.why_killed or self.last_end, ""
            self.config.options.record.note(Incident(to_rfc3339(time.time_ns()), self.config.name, reason))
            self.config.options.keep_record()


class ChildConfig(ProcessConfig):  # type: ignore[misc]  # supervisor has no types
    def make_process(self, group: Any = None) -> Child:
        child = Child(self)
        child.group = group
        return child


class NodeOptions(ServerOptions):  # type: ignore[misc]  # supervisor has no types
    def __init__(self, run_dir: Path, listeners: Sequence[socket.socket] = ()) -> None:
        super().__init__()
        self.run_dir = run_dir
        self.listeners = listeners
        self.record = NodeRecord()

    def keep_record(self) -> None:
        try:
            write_record(self.run_dir, self.record)
        except OSError as error:  # a full disk, for one: the processes matter more
            log.warning("incidents cannot be written", reason=str(error))

    def processes_from_section(self, parser: Any, section: str, group_name: str, klass: Any = None) -> Any:
        return super().processes_from_section(parser, section, group_name, ChildConfig)

    def openhttpservers(self, supervisord: Any) -> None:
        """None, and their modules are not even loaded."""

    def make_pipes(self, stderr: bool = True) -> dict[str, int | None]:
        """No pipes: nothing to read, our standard output to write to. The keys are supervisord's."""
        pipes: dict[str, int | None] = dict.fromkeys(("stdin", "stdout", "stderr", "child_stderr"))
        pipes["child_stdin"] = os.open(os.devnull, os.O_RDONLY)
        pipes["child_stdout"] = os.dup(1)
        return pipes

    def setsignals(self) -> None:
        for number in (*stop_signals(), signal.SIGCHLD):
            signal.signal(number, self.signal_receiver.receive)
        # Processes in groups of their own write to our terminal: with `stty tostop` that would freeze them.
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)


class SupervisedNode(Supervisor):  # type: ignore[misc]  # supervisor has no types
    """All processes of the node. `failure` says why it had to end."""

    failure: str | None = None
    stopping: bool = False
    hang_watch: HangWatch | None = None
    on_stopping: Callable[[], None]
    look_at_s: float = 0.0  # when to look at heartbeats, on the monotonic clock

    def runforever(self) -> None:
        events.subscribe(events.ProcessStateFatalEvent, self._fail)
        self.options.record.restarts = dict.fromkeys(sorted(child.config.name for child in self._children()), 0)
        self.options.keep_record()
        wake_reader, wake_writer = os.pipe()
        os.set_blocking(wake_reader, False)
        os.set_blocking(wake_writer, False)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        poll = select.poll()
        poll.register(wake_reader, select.POLLIN)
        try:
            while True:
                self._turn()
                timeout_s = self._next_deadline_s()
                if poll.poll(None if timeout_s is None else timeout_s * 1000):
                    os.read(wake_reader, 4096)
        finally:
            signal.set_wakeup_fd(-1)
            os.close(wake_reader)
            os.close(wake_writer)

    def _turn(self) -> None:
        """Reap before the transitions, so that a process that died now is restarted now."""
        self.reap()
        while (number := self.options.get_signal()) is not None:
            self._heed(number)
        for group in sorted(self.process_groups.values()):
            group.transition()
        if self.options.mood < SupervisorStates.RUNNING:
            self._stop_in_order()
        elif self.hang_watch is not None and time.monotonic() >= self.look_at_s:
            self._end_hung(self.hang_watch)

    def _end_hung(self, watch: HangWatch) -> None:
        now_s = time.monotonic()
        self.look_at_s = now_s + watch.interval_s
        hung = watch.look(now_s, read_heartbeats(self.options.run_dir))
        for child in self._children():
            if child.config.name in hung and child.pid:
                child.end_hung(hung[child.config.name])

    def _heed(self, number: int) -> None:
        if number == signal.SIGCHLD:
            return
        name = signal.Signals(number).name
        if self.options.mood == SupervisorStates.RUNNING:
            self._end(f"received {name}")
        elif number == signal.SIGINT:  # asked twice at a terminal: at once, then; what was acknowledged is on disk
            log.warning("killing", why=f"received {name} again")
            for child in self._children():
                if child.pid:
                    child.kill(signal.SIGKILL)

    def _end(self, why: str) -> None:
        log.info("draining", why=why)
        self.on_stopping()
        for listener in self.options.listeners:  # each gateway closes its own: nobody shall wait for one that is gone
            listener.close()
        self.options.mood = SupervisorStates.SHUTDOWN

    def _stop_in_order(self) -> None:
        """One group after the other, the processes of a group together."""
        if not self.stopping:
            self.stopping = True
            self.stop_groups = sorted(self.process_groups.values())
        while self.stop_groups:
            self.stop_groups[-1].stop_all()
            if self.stop_groups[-1].get_unstopped_processes():
                return
            self.stop_groups.pop()
        raise ExitNow

    def _fail(self, event: Any) -> None:
        """supervisord has given a process up. While stopping that is only its word for "do not start it again"."""
        if self.stopping or self.failure is not None:
            return
        child = event.process
        attempts = child.config.startretries + 1
        if child.last_end:
            ends = f"ended {attempts} times within {child.config.startsecs} s of its start, lately by {child.last_end}"
            self.failure = f"{child.config.name} {ends}; its own lines above say why"
        else:
            self.failure = f"{child.config.name} cannot be started, tried {attempts} times: {child.spawnerr}"
        self._end(f"{child.config.name} failed")

    def _next_deadline_s(self) -> float | None:
        """Seconds until some process must be looked at without a signal; None: only a signal can bring news."""
        moments = [
            child.laststart + child.config.startsecs if child.state == ProcessStates.STARTING else child.delay
            for child in self._children()
            if child.state in (ProcessStates.STARTING, ProcessStates.BACKOFF, ProcessStates.STOPPING)
        ]
        waits = [min(moments) - time.time()] if moments else []
        if self.hang_watch is not None and not self.stopping:
            waits.append(self.look_at_s - time.monotonic())
        return max(0.0, min(waits)) + TURN_MARGIN_S if waits else None

    def _children(self) -> list[Child]:
        return [child for group in self.process_groups.values() for child in group.processes.values()]

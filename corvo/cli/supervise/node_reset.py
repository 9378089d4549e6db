"""`corvo node reset`: remove one replica's data on a stopped node, so that it is rebuilt from its peers.

For a replica that cannot be trusted or read any more. What it promised to others, its votes above all, is gone with its
data; a replica that forgot its votes and votes again could elect a second leader. So a mark is left, `shards/NN.reset`,
on disk before anything is removed, which says to the next start of the replica:

- begin empty, although `shard-NN.made` says that it has lived;
- neither vote nor stand for election until the group has taken this replica in anew, as a learner;
- count incarnations from the number in the mark. It is greater than any that the peers have met (seconds since 1970,
  where a replica counts its starts): from a smaller one they would conclude that the disk went back in time.

The start removes the mark once all of that is in the new database. Until the database is moved away, which is one step,
a start finds the old one whole: a reset that is interrupted has either not happened or can be repeated.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from corvo.runtime.process import RUN, Identity, Locked, read_identity, sync_directory, take_lock


class CannotReset(Exception):
    """Why not, and what to do, in a sentence."""


def reset(directory: str, shard: int, confirm: Callable[[str], None]) -> None:
    """`confirm` gets a question and does not return when the answer is no."""
    data_dir = Path(directory).absolute()
    identity = _identity_of(data_dir)
    if not 0 <= shard < identity.shards:
        raise CannotReset(f"there is no shard {shard}: this node has the shards 0 to {identity.shards - 1}")
    if not _peers_of(identity):
        raise CannotReset(
            f"{identity.node_id} is the only node of its cluster, so there is no peer to rebuild shard {shard} from;"
            " restore the data directory from a backup"
        )
    with _stopped(data_dir, shard):
        question = f"Remove all data of shard {shard} on {identity.node_id} ({data_dir})? Its peers keep theirs."
        confirm(question)
        _remove(data_dir / "shards" / f"{shard:02d}", int(time.time()))


def _identity_of(data_dir: Path) -> Identity:
    try:
        identity = read_identity(data_dir)
    except (OSError, msgspec.MsgspecError) as error:
        raise CannotReset(f"{data_dir / 'identity.json'} cannot be read: {error}") from None
    if identity is None:
        raise CannotReset(f"{data_dir} has no identity.json, so it is no node's data directory; check --data-dir")
    return identity


def _peers_of(identity: Identity) -> set[str]:
    return {*(identity.founders or ()), *identity.nodes} - {identity.node_id}


@contextmanager
def _stopped(data_dir: Path, shard: int) -> Iterator[None]:
    """The server does not run, nor a process that outlived its supervisor, and none can start meanwhile."""
    with ExitStack() as locks:
        try:
            locks.enter_context(take_lock(data_dir / "lock"))
            if (data_dir / RUN).exists():
                locks.enter_context(take_lock(data_dir / RUN / f"shard-{shard}.lock"))
        except Locked as locked:
            holder = f" (pid {locked})" if str(locked) else ""
            raise CannotReset(f"a server{holder} is using {data_dir}; stop it first") from None
        yield


def _remove(path: Path, incarnation: int) -> None:
    """Everything of the replica but the sign that it has lived, after the mark is on disk."""
    path.parent.mkdir(exist_ok=True)
    draft = path.with_name(path.name + ".reset.new")
    with draft.open("w") as file:
        file.write(str(incarnation))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path.with_name(path.name + ".reset"))
    sync_directory(path.parent)
    path.with_name(path.name + ".install").unlink(missing_ok=True)
    for name in ("", ".incoming", ".incoming.new", ".new"):
        _move_away(path.with_name(path.name + name), path.with_name(path.name + ".old"))
    sync_directory(path.parent)


def _move_away(directory: Path, old: Path) -> None:
    """In one step, so that half a database is never found under its name."""
    if old.exists():
        shutil.rmtree(old)
    if directory.exists():
        directory.rename(old)
        sync_directory(old.parent)
        shutil.rmtree(old)

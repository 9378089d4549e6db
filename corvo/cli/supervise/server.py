"""`corvo server`: make the data directory ready, then keep the node's processes running until a signal.

Errors are found here, before any process starts, and reported in one line: settings, a second server on the same
directory, a directory made for something else, a port in use, an unusable secret, a certificate without its key, an
address that is open to everybody. Each is a `CannotStart`, exit code 2.
"""

import errno
import fcntl
import importlib
import importlib.util
import os
import resource
import secrets
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
import structlog

import corvo
from corvo.cli.supervise.bootstrap import BOOTSTRAP, NotFounded, find_cluster
from corvo.cli.supervise.ports import listen_once
from corvo.cli.supervise.programs import Program, Unwritable, programs, render
from corvo.cli.supervise.supervisor import supervise
from corvo.cli.supervise.systemd import READY, STOPPING, notify, take_address
from corvo.runtime.addresses import is_loopback, split_address
from corvo.runtime.admin_password import BadPassword, exposure, read_password
from corvo.runtime.certificate import BadCertificate, load_certificate
from corvo.runtime.clustering import is_clustered, shard_address, unreachable_address
from corvo.runtime.movable_clock import MOVED, mark
from corvo.runtime.payload_keys import read_payload_keys
from corvo.runtime.process import (
    RUN,
    BadSecret,
    Identity,
    Locked,
    configure_logging,
    open_listener,
    read_identity,
    read_secret,
    take_lock,
    write_identity,
    write_settings,
)
from corvo.runtime.secret_file import BadSecretFile, client_secret
from corvo.runtime.settings import Settings

FILES_MAX = 65_536  # descriptors a process may open: one per connection, and a thousand is the usual default
ORPHANS_MARGIN_S = 5.0  # beyond the drain: how long processes of a killed supervisor may take to end
LOOK_AGAIN_S = 0.05
SECRET = "cluster-secret"  # of a node that began a cluster without --cluster-secret-file, below the data directory
SECRET_BYTES = 32


class CannotStart(Exception):
    """Why not, and what to do, in a sentence."""


def serve(settings: Settings, parts: Sequence[Program] | None = None, bootstrap: Sequence[str] = BOOTSTRAP) -> int:
    """Exit code of a node that ran: 0 after an ordered stop, 1 when a process could not be kept alive.

    `parts` and `bootstrap` take the place of the node's programs in tests.
    """
    settings = _settled(settings)
    check_credentials(settings)
    data_dir = Path(settings.data_dir)
    make_directories(data_dir)
    try:
        lock = take_lock(data_dir / "lock")
    except Locked as locked:
        holder = f" (pid {locked})" if str(locked) else ""
        raise CannotStart(
            f"another server{holder} is using {data_dir}; stop it first or use another --data-dir"
        ) from None
    with lock, ExitStack() as listening:
        is_new = check_identity(data_dir, settings) is None
        check_clock(data_dir, settings.test_clock, is_new)
        if settings.bootstrap:
            make_secret(Path(settings.cluster_secret_file))
        check_secret(settings.cluster_secret_file)
        check_certificate(settings.tls_cert, settings.tls_key)
        check_http_server(settings.http_server)
        check_driver(settings.read_db)
        await_orphans(data_dir / RUN, settings.shutdown_timeout + ORPHANS_MARGIN_S)
        listeners = [listening.enter_context(each) for each in claim_port(settings.bind, settings.gateways)]
        settings = msgspec.structs.replace(settings, bind=_bound(settings.bind, listeners[0]))
        if is_clustered(settings):
            check_raft_ports(settings.raft_bind, settings.shards)
        config_file = write_run_files(settings, programs(settings) if parts is None else parts)
        configure_logging(settings.log_level, settings.log_format, process="supervisor")
        _prepare_children()
        # The port is open and the settings are right. Nodes of a new cluster may still wait for each other: a manager
        # that waited with the first one would never start the others.
        manager = take_address()
        notify(manager, READY)
        # Last of all: a start that failed leaves no trace that binds the next one.
        if is_new and not make_identity(data_dir, settings, bootstrap):
            return 0
        return _run(settings, config_file, listeners, manager)


def _settled(settings: Settings) -> Settings:
    """What depends on where and how we were started, decided for the processes, which run in the data directory."""
    files = (
        "cluster_secret_file",
        "admin_password_file",
        "oidc_client_secret_file",
        "payload_key_file",
        "tls_cert",
        "tls_key",
    )
    if settings.bootstrap and not settings.cluster_secret_file:
        settings = msgspec.structs.replace(settings, cluster_secret_file=str(Path(settings.data_dir, SECRET)))
    return msgspec.structs.replace(
        settings,
        data_dir=str(Path(settings.data_dir).absolute()),
        **{name: str(Path(path).absolute()) for name in files if (path := getattr(settings, name))},
        log_format=_log_format(settings.log_format, sys.stdout.isatty()),
    )


def _run(settings: Settings, config_file: Path, listeners: Sequence[socket.socket], manager: str) -> int:
    log = structlog.get_logger()
    log.info(
        "starting",
        version=corvo.__version__,
        url=url_of(settings.bind, is_secure=bool(settings.tls_cert)),
        data_dir=settings.data_dir,
        node_id=settings.node_id,
        shards=settings.shards,
        gateways=settings.gateways,
        fsync=settings.fsync,
        pid=os.getpid(),
    )
    if settings.bootstrap and (address := unreachable_address(settings, socket.getfqdn())):
        log.warning("other nodes cannot join this one", address=address, remedy="give --raft-advertise")
    if sys.stdout.isatty():
        print(banner(settings), flush=True)
    failure = supervise(config_file, listeners, settings.hang_timeout, lambda: notify(manager, STOPPING))
    log.info("stopped")
    if failure is None:
        return 0
    print(f"corvo: {failure}", file=sys.stderr)
    return 1


def make_directories(data_dir: Path) -> None:
    try:
        for path in (data_dir, data_dir / RUN):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        (data_dir / RUN).chmod(0o700)  # whoever can reach the sockets can give orders
        if not os.access(data_dir, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "Permission denied", str(data_dir))
    except OSError as error:
        raise CannotStart(
            f"cannot use {data_dir} as data directory: {error.strerror}; choose another --data-dir"
        ) from None


def check_clock(data_dir: Path, is_movable: bool, is_new: bool) -> None:
    """Times of a future that has not come do not mix with real ones: jobs would stand still until it comes."""
    is_marked = (data_dir / MOVED).exists()
    if is_movable and not is_new and not is_marked:
        raise CannotStart(f"{data_dir} holds jobs of a server with a real clock; --test-clock needs a new directory")
    if is_marked and not is_movable:
        raise CannotStart(f"{data_dir} was made with --test-clock, for tests; use another --data-dir")
    if is_movable:
        mark(data_dir)


def check_identity(data_dir: Path, settings: Settings) -> Identity | None:
    """What the directory was made for, which must be these settings; None: it is new."""
    try:
        identity = read_identity(data_dir)
    except msgspec.MsgspecError as error:
        raise CannotStart(f"{data_dir}/identity.json cannot be read: {error}; restore it from a backup") from None
    if identity is None:
        return None
    if identity.shards != settings.shards:
        raise CannotStart(
            f"this data directory was made with {identity.shards} shards;"
            f" start with --shards {identity.shards} or use another --data-dir"
        )
    if identity.node_id != settings.node_id:
        raise CannotStart(
            f"this data directory belongs to node {identity.node_id};"
            f" start with --node-id {identity.node_id} or use another --data-dir"
        )
    if identity.founders is not None and not is_clustered(settings):
        raise CannotStart(
            "this data directory belongs to a node of a cluster; start with --bootstrap, --peers, --join or --discover,"
            " or use another --data-dir"
        )
    return identity


def make_identity(data_dir: Path, settings: Settings, bootstrap: Sequence[str] = BOOTSTRAP) -> bool:
    """A node that is alone decides what it is; several agree on it. False: a signal came first."""
    if settings.bootstrap or not is_clustered(settings):
        founders = (settings.node_id,) if settings.bootstrap else None
        write_identity(data_dir, Identity(secrets.token_hex(16), settings.node_id, settings.shards, founders=founders))
        return True
    try:
        is_found = find_cluster(data_dir, bootstrap)
    except NotFounded as error:
        raise CannotStart(str(error)) from None
    if is_found and check_identity(data_dir, settings) is None:
        raise CannotStart(f"the nodes agreed, but {data_dir}/identity.json is not there; start again")
    return is_found


def make_secret(path: Path) -> None:
    """Of a cluster that begins here, unless there is one already."""
    try:
        with open(path, "x", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(secrets.token_urlsafe(SECRET_BYTES) + "\n")
    except FileExistsError:
        return
    except OSError as error:
        raise CannotStart(
            f"cannot make the cluster's secret {path}: {_reason(error)}; choose another --cluster-secret-file"
        ) from None
    print(f"corvo: the cluster's secret is in {path}; give every node that joins a copy of it", file=sys.stderr)


def check_credentials(settings: Settings) -> None:
    """Refuse a server that would be open to others by mistake, and a password that cannot be used."""
    if fault := exposure(settings):
        raise CannotStart(fault)
    try:
        read_password(settings.admin_password_file)
        client_secret(settings)
        read_payload_keys(settings.payload_key_file)
    except (BadPassword, BadSecretFile) as error:
        raise CannotStart(str(error)) from None


def check_secret(path: str) -> None:
    try:
        read_secret(path)
    except BadSecret as error:
        raise CannotStart(str(error)) from None


def check_certificate(cert_file: str, key_file: str) -> None:
    if cert_file:
        try:
            load_certificate(cert_file, key_file)
        except BadCertificate as error:
            raise CannotStart(str(error)) from None


def check_http_server(name: str) -> None:
    try:
        is_there = importlib.util.find_spec(name) is not None
    except ValueError:  # a module that was loaded half-way
        is_there = False
    if not is_there:
        raise CannotStart(
            f"--http-server {name} needs the package {name}, which is not installed;"
            " install it with `pip install 'corvo-server[fast]'` or leave the setting alone"
        )


def check_driver(read_db: str) -> None:
    """That the server is there is not asked: lists wait for it, jobs do not."""
    if read_db:
        try:
            importlib.import_module("psycopg")
        except ImportError as error:
            raise CannotStart(
                f"--read-db needs PostgreSQL's driver ({error}): pip install 'corvo-server[postgres]'"
            ) from None


def await_orphans(run_dir: Path, patience_s: float) -> None:
    """Processes of a supervisor that was killed end by themselves, but after draining. Until then they hold their
    locks (`run/*.lock`), and ours would die at those locks until the node is given up."""
    deadline = time.monotonic() + patience_s
    for path in sorted(run_dir.glob("*.lock")):
        if not _is_free(path):
            print(f"corvo: waiting for process {path.read_text().strip()} of an earlier server to end", file=sys.stderr)
        while not _is_free(path):
            if time.monotonic() > deadline:
                holder = path.read_text().strip() or "unknown"
                raise CannotStart(f"process {holder} of an earlier server still holds {path}; end it first")
            time.sleep(LOOK_AGAIN_S)
    for path in run_dir.glob("*.ipc"):
        path.unlink(missing_ok=True)


def _is_free(path: Path) -> bool:
    with path.open("r") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def claim_port(bind: str, gateways: int) -> list[socket.socket]:
    """A socket for each gateway, held until the node stops: who connects while one does not run waits for it."""
    host, port = split_address(bind)
    try:
        if gateways == 1:
            return [open_listener(host, port)]
        port = listen_once(host, port)  # sockets that can be shared would join those of another server
        return [open_listener(host, port, is_shared=True) for _ in range(gateways)]
    except OSError as error:
        raise CannotStart(f"cannot listen on {bind}: {_reason(error)}; choose another --bind") from None


def _bound(bind: str, listener: socket.socket) -> str:
    """The address as it was given, with the port that became of it."""
    return f"{bind.rpartition(':')[0]}:{listener.getsockname()[1]}"


def check_raft_ports(raft_bind: str, shards: int) -> None:
    """The ports at which the shards will hear other nodes."""
    host, first = split_address(raft_bind)
    for shard in range(shards):
        try:
            listen_once(host, first + shard)
        except OSError as error:
            address = shard_address(raft_bind, shard)
            raise CannotStart(
                f"cannot listen on {address} for shard {shard}: {_reason(error)}; choose another --raft-bind"
            ) from None


def write_run_files(settings: Settings, parts: Sequence[Program]) -> Path:
    try:
        config = render(parts, settings.data_dir, settings.shutdown_timeout)
    except Unwritable as error:
        raise CannotStart(f"{error}; use another --data-dir, or a Python in another place") from None
    write_settings(settings)
    config_file = Path(settings.data_dir, RUN, "supervisord.conf")
    config_file.write_text(config)
    return config_file


def url_of(bind: str, is_secure: bool = False) -> str:
    """An address that a browser on this machine understands."""
    host, port = split_address(bind)
    if host in ("0.0.0.0", "::"):
        host = "localhost"
    scheme = "https" if is_secure else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def banner(settings: Settings) -> str:
    url = url_of(settings.bind, is_secure=bool(settings.tls_cert))
    options = "" if settings.fsync == "on" else "   fsync is off: a power cut may lose acknowledged jobs\n"
    if settings.auth == "off" and not is_loopback(settings.bind):
        options += "   auth is off: whoever reaches this address is an admin\n"
    credential = f' -H "x-api-key: $(cat {settings.admin_password_file})"' if settings.admin_password_file else ""
    return (
        f"\n   Corvo {corvo.__version__} on {url}   {settings.shards} shards, data in {settings.data_dir}\n{options}\n"
        f"   curl {url}/api/v1/enqueue{credential} -H 'content-type: application/json'"
        ' -d \'{"queue": "hello", "payload": {"name": "world"}}\'\n'
        f"   curl {url}/api/v1/fetch{credential} -H 'content-type: application/json'"
        ' -d \'{"queues": ["hello"], "worker_id": "me"}\'\n\n'
        f"   corvo top shows what happens; Ctrl-C stops the server\n"
    )


def _prepare_children() -> None:
    """What the processes inherit from us."""
    # They run in the data directory, whose files must not be taken for modules; ours are where this one is.
    roots = [str(Path(corvo.__file__).parents[1])]
    roots += [str(Path(path).absolute()) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(roots))
    os.environ["PYTHONSAFEPATH"] = "1"
    # All write to one output. Unbuffered (usual in containers) a line and its end are two writes, and the lines of two
    # processes run into each other; buffered by line, as configure_logging sets it, a line is one write.
    os.environ.pop("PYTHONUNBUFFERED", None)
    sys.stdout.reconfigure(write_through=False)  # type: ignore[union-attr]  # a text stream, as in configure_logging
    os.environ["CORVO_SUPERVISED_BY"] = str(os.getpid())  # see corvo.runtime.process.die_with_parent
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_MAX if hard == resource.RLIM_INFINITY else min(FILES_MAX, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _log_format(wanted: str, is_terminal: bool) -> str:
    return ("console" if is_terminal else "json") if wanted == "auto" else wanted


def _reason(error: OSError) -> str:
    sentence = error.strerror or str(error)
    return sentence[:1].lower() + sentence[1:]

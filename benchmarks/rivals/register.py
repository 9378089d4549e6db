"""The rivals: the packages of each, the start of its worker, and the settings needed to judge its figures."""

from benchmarks.rivals.rival import Rival
from benchmarks.rivals.servers import Beanstalkd, CorvoServer, Postgres, Redis

CELERY_ALONE = ("--without-gossip", "--without-mingle")  # no communication between workers, because there is one

# Measured as the others are, and no rival.
OUR_WORKER = Rival(
    name="Corvo, Python worker",
    package="corvo-server",
    module="with_corvo",
    server=CorvoServer,
    worker=("-m", "corvo.cli.main", "worker", "with_corvo:app", "--log-level", "warning"),
    setting="one worker process, 10 jobs at a time, those of 50 ms claimed ahead; a request for each enqueue",
)

RIVALS = (
    Rival(
        name="Celery",
        package="celery",
        module="with_celery",
        server=Redis,
        worker=("-m", "celery", "-A", "with_celery", "worker", "-c", "1", "-l", "error", *CELERY_ALONE),
        setting="one worker, prefork, 1 process",
    ),
    Rival(
        name="RQ",
        package="rq",
        module="with_rq",
        server=Redis,
        worker=("-m", "rq.cli", "worker", "rivals", "--quiet", "--url", "{url}"),
        setting="one worker, a fork for each job",
    ),
    Rival(
        name="Dramatiq",
        package="dramatiq",
        module="with_dramatiq",
        server=Redis,
        worker=("-m", "dramatiq", "with_dramatiq", "--processes", "1", "--threads", "8"),
        setting="one worker process, 8 threads",
    ),
    Rival(
        name="Taskiq",
        package="taskiq-redis",
        module="with_taskiq",
        server=Redis,
        worker=("-m", "taskiq", "worker", "with_taskiq:broker", "--workers", "1", "--log-level", "ERROR"),
        setting="one worker process, 100 jobs at a time; a list that loses jobs with their worker",
    ),
    Rival(
        name="Huey",
        package="huey",
        module="with_huey",
        server=Redis,
        worker=("-m", "huey.bin.huey_consumer", "with_huey.huey", "-w", "1", "-q", "-n"),
        setting="one worker process, 1 thread",
    ),
    Rival(
        name="arq",
        package="arq",
        module="with_arq",
        server=Redis,
        worker=("-m", "arq", "with_arq.Worker"),
        setting="one worker process, 10 jobs at a time",
    ),
    Rival(
        name="BullMQ",
        package="bullmq",
        module="with_bullmq.mjs",
        server=Redis,
        setting="one worker process, 10 jobs at a time",
    ),
    Rival(
        name="pg-boss",
        package="pg-boss",
        module="with_pgboss.mjs",
        server=Postgres,
        setting="one worker process, polls every half second, 100 jobs a poll",
    ),
    Rival(
        name="beanstalkd",
        package="greenstalk",
        module="with_beanstalkd",
        server=Beanstalkd,
        worker=("{programs}/with_beanstalkd.py",),
        setting="one worker process, job by job",
    ),
)

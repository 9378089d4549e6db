"""A read database that is lost or can no longer be believed comes back by itself."""

from pathlib import Path

from gateway.readdb.file import damage_note, mark_damaged
from tests.support.read_dbs import FilePlace

from .mirrors import Mirror, caught_up, eventually, generation_of, work


def test_a_database_deleted_under_the_mirror_comes_back(tmp_path, place, shards):
    work(shards[0], 1)
    with Mirror(tmp_path, place, shards):
        caught_up(place, shards)

        generation = generation_of(place)

        place.remove()

        eventually(lambda: generation_of(place) not in (None, generation))
        caught_up(place, shards)


def test_a_database_deleted_as_soon_as_it_appears_comes_back(tmp_path, place, shards, monkeypatch):
    store = type(place.store())
    publish, published = store.publish, []

    def publish_and_lose(self, building, now):
        publish(self, building, now)
        published.append(now)
        if len(published) == 1:
            place.remove()

    monkeypatch.setattr(store, "publish", publish_and_lose)
    work(shards[0], 1)

    with Mirror(tmp_path, place, shards):
        eventually(lambda: len(published) == 2)
        caught_up(place, shards)


def test_after_a_reboot_the_database_is_built_anew(tmp_path, shards):
    place = FilePlace(tmp_path)
    work(shards[0], 1)
    mirror = Mirror(tmp_path, place, shards)
    with mirror:
        caught_up(place, shards)
        target = place.address.resolve()
        copies = {file: file.read_bytes() for file in (target, Path(f"{target}-wal"))}
    for file, content in copies.items():  # as a power cut would have left them: open
        file.write_bytes(content)
    generation = generation_of(place)

    with Mirror(tmp_path, place, shards, origin="boot-2"):
        eventually(lambda: generation_of(place) not in (None, generation))

        caught_up(place, shards)


def test_a_database_that_a_reader_found_damaged_is_built_anew(tmp_path, shards):
    place = FilePlace(tmp_path)
    path = place.address
    work(shards[0], 1)
    with Mirror(tmp_path, place, shards):
        caught_up(place, shards)
        generation = generation_of(place)

        mark_damaged(path, path.stat().st_ino)

        eventually(lambda: generation_of(place) not in (None, generation))
        caught_up(place, shards)
    assert not damage_note(path).exists()


def test_a_database_with_another_schema_is_built_anew(tmp_path, place, shards):
    work(shards[0], 1)
    with Mirror(tmp_path, place, shards):
        caught_up(place, shards)
        generation = generation_of(place)
    place.tamper("UPDATE mirror_meta SET schema_version = '0-old'")

    with Mirror(tmp_path, place, shards):
        eventually(lambda: generation_of(place) not in (None, generation))

        caught_up(place, shards)
    assert place.read("SELECT schema_version FROM mirror_meta") != [("0-old",)]

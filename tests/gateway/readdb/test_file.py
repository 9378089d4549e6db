from gateway.readdb import file


def test_a_damage_mark_is_about_one_generation_of_the_file_only(tmp_path):
    path = tmp_path / file.READ_DB
    path.touch()
    inode = path.stat().st_ino
    assert not file.is_marked_damaged(path)

    file.mark_damaged(path, inode)
    assert file.is_marked_damaged(path)

    file.mark_damaged(path, inode + 1)
    assert not file.is_marked_damaged(path)


def test_a_mark_that_cannot_be_read_is_none(tmp_path):
    path = tmp_path / file.READ_DB
    path.touch()
    file.damage_note(path).write_text("torn")

    assert not file.is_marked_damaged(path)
    file.clear_damage_mark(path)
    assert not file.damage_note(path).exists()
    file.clear_damage_mark(path)

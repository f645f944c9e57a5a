import os
from pathlib import Path

import pytest

from fairpul import audit
from fairpul._files import replacing, write_text


class PulledPlug(BaseException):
    """What is not an Exception, like an interrupt, must leave no trace either."""


@pytest.mark.parametrize("error", [OSError("disk full"), PulledPlug()])
@pytest.mark.parametrize("before", [None, "old"])
def test_a_failed_write_leaves_what_was_there(tmp_path, before, error):
    path = tmp_path / "page.html"
    if before is not None:
        path.write_text(before, "utf-8")

    def write():
        with replacing(path) as beside:
            beside.write_text("half of the", "utf-8")
            raise error

    with pytest.raises(type(error)):
        write()
    assert os.listdir(tmp_path) == ([] if before is None else ["page.html"])
    assert before is None or path.read_text("utf-8") == before


def test_a_finished_write_replaces_what_was_there(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old", "utf-8")
    with replacing(path) as beside:
        beside.write_text("new", "utf-8")
        assert path.read_text("utf-8") == "old"
    assert path.read_text("utf-8") == "new"
    assert os.listdir(tmp_path) == ["page.html"]


def test_a_text_that_cannot_be_encoded_leaves_the_old_file(tmp_path):
    path = tmp_path / "page.html"
    write_text(path, "é")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "half of the page \ud800")
    assert path.read_text("utf-8") == "é"
    assert os.listdir(tmp_path) == ["page.html"]


def test_targets_that_cannot_be_files_are_refused_before_the_work(tmp_path):
    for path, text in [
        (tmp_path, "is a folder. Name a file"),
        (tmp_path / "none" / "page.html", "does not exist. Create it first"),
    ]:
        with pytest.raises(ValueError, match=text), replacing(path):
            raise AssertionError("the work began")
    assert os.listdir(tmp_path) == []


def test_the_page_of_an_audit_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    pytest.importorskip("altair")
    report = audit(
        score=[0.9, 0.8, 0.6, 0.3] * 40,
        labeled=[1, 1, 0, 0, 0, 1, 0, 0] * 20,
        group=["f"] * 80 + ["m"] * 80,
        threshold=0.7,
    )
    path = tmp_path / "page.html"
    page = report.to_html(str(path))
    assert path.read_text("utf-8") == page
    monkeypatch.setattr("fairpul.report.html.to_html", lambda parts: "half \ud800")
    with pytest.raises(UnicodeEncodeError):
        report.to_html(path)
    assert path.read_text("utf-8") == page
    assert os.listdir(tmp_path) == ["page.html"]


def test_what_a_link_points_to_is_replaced(tmp_path):
    (tmp_path / "shelf").mkdir()
    target, link = tmp_path / "shelf" / "page.html", tmp_path / "page.html"
    target.write_text("old", "utf-8")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text("utf-8") == "new"


def test_a_device_is_never_replaced():
    with pytest.raises(ValueError, match="is a device or a pipe"):
        write_text(Path(os.devnull), "new")
    assert not Path(os.devnull).is_file()

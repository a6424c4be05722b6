"""The spool: what is there after a crash between any two steps."""

import json
import shutil
from pathlib import Path

import pytest

from client.spool import REPORT_NAME, Parcel, Spool
from common.errors import BundleError
from common.wire import FoundUrl, HostFact, Kind, ListedUrl, Outcome, Report, UrlResult
from tests.bundles import make_bundle

REPORT = Report(
    job="7",
    results=[
        UrlResult("http://a.test/", Outcome.STORED, 200, 17),
        UrlResult("http://a.test/x", Outcome.DNS, detail="no\tname"),
    ],
    found=[FoundUrl("http://b.test/", 3, 1)],
    hosts=[HostFact("a.test", "192.0.2.1", 2.5)],
    size=1234,
    listed=[ListedUrl("http://a.test/s.xml", 1, 1_700_000_000, Kind.SITEMAP, 2, "b.test")],
)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool")


def _sealed(spool: Spool, job: str = "7", number: int = 1) -> Parcel:
    spool.begin(job)
    folder = spool.new_folder(job, number)
    make_bundle(folder, "a.test", job)
    return spool.seal(folder, REPORT)


def test_the_life_of_a_parcel(spool: Spool) -> None:
    parcel = _sealed(spool)
    assert parcel.job == "7"
    assert [path.name for path in parcel.bundles] == ["a.test.1700000000.7.tar.bz2"]
    assert [each.folder for each in spool.parcels("7")] == [parcel.folder]
    spool.remove(parcel)
    assert list(spool.parcels("7")) == []
    assert spool.jobs() == ["7"], "the job is not settled by that"
    spool.end("7")
    assert spool.jobs() == []


def test_the_report_comes_back_as_it_was(spool: Spool, tmp_path: Path) -> None:
    _sealed(spool)
    (parcel,) = Spool(tmp_path / "spool").parcels("7")
    report = parcel.report()
    assert report.results[0] == REPORT.results[0]
    assert report.results[1].detail == "no name", "a tab would break the row"
    assert (report.job, report.found, report.hosts, report.size) == ("7", REPORT.found, REPORT.hosts, 1234)
    assert report.listed == REPORT.listed


def test_killed_before_the_parcel_is_sealed(spool: Spool, tmp_path: Path) -> None:
    spool.begin("7")
    folder = spool.new_folder("7", 1)
    make_bundle(folder, "a.test", "7")
    (folder / f"{REPORT_NAME}.part").write_text("{")
    again = Spool(tmp_path / "spool")
    assert again.jobs() == ["7"]
    assert list(again.parcels("7")) == []
    assert not folder.exists(), "its URLs were not reported, so it is of no use"


def test_killed_while_a_delivered_parcel_is_removed(spool: Spool, tmp_path: Path) -> None:
    parcel = _sealed(spool)
    (parcel.folder / REPORT_NAME).unlink()  # the first step of removing
    assert list(Spool(tmp_path / "spool").parcels("7")) == []


def test_killed_before_the_first_parcel(spool: Spool, tmp_path: Path) -> None:
    spool.begin("7")
    again = Spool(tmp_path / "spool")
    assert again.jobs() == ["7"], "to be given back"
    assert list(again.parcels("7")) == []


def test_parcels_come_in_their_order_and_jobs_by_number(spool: Spool) -> None:
    later, latest = f"11-{0:016x}", f"100-{0:016x}"
    for job, number in ((latest, 1), (later, 1), ("10", 2), ("10", 1), ("9", 11), ("9", 2)):
        _sealed(spool, job, number)
    assert spool.jobs() == ["9", "10", later, latest], "also those of an older urlServer, without digits"
    assert [int(parcel.folder.name) for parcel in spool.parcels("9")] == [2, 11]


def test_number_used_again_begins_empty(spool: Spool) -> None:
    old = _sealed(spool)
    assert list(spool.new_folder("7", 1).iterdir()) == []
    assert old.folder.exists()


def test_request_is_repeated_until_it_is_answered(spool: Spool, tmp_path: Path) -> None:
    name = spool.request()
    assert Spool(tmp_path / "spool").request() == name, "also after a crash"
    answered = spool.next_request()
    assert answered != name
    assert Spool(tmp_path / "spool").request() == answered
    (tmp_path / "spool" / "request").write_bytes(b"\xff")
    assert len(spool.request()) == 32
    assert spool.jobs() == []


def test_refused_parcel_is_kept_aside_and_never_sent_again(spool: Spool, tmp_path: Path) -> None:
    parcel = _sealed(spool)
    aside = spool.refuse(parcel)
    assert aside.name == "7.refused.000001"
    assert len(Parcel(aside).bundles) == 1
    spool.end("7")
    again = Spool(tmp_path / "spool")
    assert again.jobs() == []
    assert aside.exists()
    again.refuse(_sealed(again))  # the same number again, from a server that began anew
    assert aside.exists()


BAD_TABLE = json.dumps({"results": "x\tno outcome", "found": "", "hosts": "", "size": 0})


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", BAD_TABLE])
def test_damaged_report_is_told_as_such(spool: Spool, text: str) -> None:
    parcel = _sealed(spool)
    (parcel.folder / REPORT_NAME).write_text(text)
    with pytest.raises(BundleError, match="report of a parcel cannot be read"):
        parcel.report()


def test_seal_that_fails_leaves_no_parcel(spool: Spool, tmp_path: Path) -> None:
    spool.begin("7")
    folder = spool.new_folder("7", 1)
    shutil.rmtree(folder)
    with pytest.raises(OSError, match="No such file"):
        spool.seal(folder, REPORT)
    assert list(spool.parcels("7")) == []

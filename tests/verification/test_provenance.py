"""Signed releases: who signed, who paid, and every way in which that can be untrue."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from dp_release_verify.digests import sha256
from release.budget.checkpoint import checkpoint_text
from release.budget.ledger import (
    CHECKPOINT,
    Ledger,
    ScopeCap,
    Spent,
    change_key,
    create_ledger,
    ledger_proof,
    replay,
    reserve,
    withdraw,
)
from release.bundle.metadata import datapackage
from release.bundle.statements import ATTESTATION, PROOF, SUMS, withheld
from release.cli.main import main
from release.errors import VerificationError
from release.pipeline import Options, run_release
from release.queries.read import parse_spec
from release.records.keys.files import create_key
from release.records.models import ReleaseRecord, parse
from release.records.signing import Predicate, PublicKey, Signer, attest, sign_note
from release.verification.checks import Level
from release.verification.provenance import Trust, own_trust, published_charge
from release.verification.required import Evidence, Required
from release.verification.verifier import Verdict, verify
from tests.small import Row, Small, query, rewrite

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]
NAME, DAY = "example.org/dp", "2024-01-01"
CAP = ScopeCap(scope="tests", epsilon="9", delta="0.9")


class Signed:
    """An output folder with a ledger and two releases, one and two; and another's key."""

    def __init__(self, folder: Path) -> None:
        self.out, self.ledger = folder / "out", folder / "out" / "ledger"
        self.signer = create_key(folder / "key")
        create_ledger(self.ledger, self.signer, NAME, (CAP,), DAY)
        self.key = self.signer.public(NAME)
        counted = [query("count", sensitivity="global", by=[])]
        spec = Small(ROWS, counted).write(folder)
        for name in ("one", "two"):
            own = folder / f"{name}.yaml"
            own.write_text(spec.read_text().replace("id: small", f"id: {name}"))
            run_release(own, self.out, options=Options(key=folder / "key"))
        self.one, self.two = (self.out / "public" / name for name in ("one", "two"))

    def copy(self, folder: Path) -> Signed:
        """The same with its files in another folder."""
        made = Signed.__new__(Signed)
        shutil.copytree(self.out, folder / "out")
        made.out, made.ledger = folder / "out", folder / "out" / "ledger"
        made.signer, made.key = self.signer, self.key
        made.one, made.two = (made.out / "public" / name for name in ("one", "two"))
        return made


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    return Signed(tmp_path_factory.mktemp("signed"))


@pytest.fixture
def signed(made_once: Signed, tmp_path: Path) -> Signed:
    return made_once.copy(tmp_path)


def refused(public: Path, trust: Trust) -> str:
    with pytest.raises(VerificationError) as caught:
        verify(public, None, trust)
    return str(caught.value)


def sum_up(public: Path) -> None:
    """Make the sums fit again, as a forger would."""
    files = sorted(p for p in public.rglob("*") if p.is_file() and p.name != SUMS)
    sums = [f"{sha256(p.read_bytes())}  {p.relative_to(public)}\n" for p in files]
    (public / SUMS).write_text("".join(sums), "utf-8")


def attest_anew(public: Path, signer: Signer) -> None:
    """Sign what is there now."""
    record = parse(ReleaseRecord, (public / "release.json").read_bytes())
    files = [p for p in public.rglob("*") if p.is_file()]
    sums = {
        str(p.relative_to(public)): sha256(p.read_bytes())
        for p in files
        if p.name not in (SUMS, ATTESTATION, PROOF)
    }
    (public / ATTESTATION).write_bytes(attest(sums, Predicate.of(record), signer))
    sum_up(public)


def test_what_is_known_of_the_curator_decides_what_is_proved(signed: Signed) -> None:
    def said(trust: Trust) -> tuple[Verdict, str, str]:
        verdict = verify(signed.one, None, trust)
        return verdict, " ".join(verdict.proved), " ".join(verdict.asserted)

    nothing, proved, asserted = said(Trust())
    assert (nothing.complete, nothing.evidence) == (False, Evidence.UNSIGNED)
    assert "signed" not in proved
    assert "that the curator signed the attestation" in asserted
    by_key, proved, asserted = said(Trust(keys=(signed.key,)))
    assert (by_key.complete, by_key.evidence) == (True, Evidence.SIGNED)
    assert f"{signed.key} signed for every file" in proved
    assert "curator signed" not in asserted
    by_ledger, proved, asserted = said(Trust(ledger=signed.ledger))
    # Whoever forged a release may have written a ledger too.
    assert (by_ledger.complete, by_ledger.evidence) == (False, Evidence.UNSIGNED)
    assert "scope tests has spent ε = 2 of 9" in proved
    assert "that the ledger's first key is the curator's" in asserted
    both, proved, asserted = said(Trust(signed.ledger, (signed.key,), signed.ledger / CHECKPOINT))
    assert (both.complete, both.evidence) == (True, Evidence.PAID)
    assert "first key" not in asserted
    assert any("older checkpoint of 5 entries" in line for line in both.tested)


def test_the_report_tells_what_the_scope_has_spent(signed: Signed) -> None:
    told = [(public / "report.html").read_text("utf-8") for public in (signed.one, signed.two)]
    assert "ε = 1 spent of 9, 8 left, after 1 charge with this one" in told[0]
    assert "ε = 2 spent of 9, 7 left, after 2 charges with this one" in told[1]
    assert all("What the scope has spent over time" in text for text in told)


def test_every_byte_of_a_signed_release_counts(signed: Signed) -> None:
    """Flipped one at a time, with the sums made to fit: the signatures find it."""
    trust = Trust(keys=(signed.key,))
    for path in sorted(p for p in signed.one.rglob("*") if p.is_file() and p.name != SUMS):
        data = path.read_bytes()
        step = 1 if path.name in (ATTESTATION, PROOF) else max(211, len(data) // 40)
        for place in range(0, len(data), step):
            path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
            sum_up(signed.one)
            assert refused(signed.one, trust)
        for changed in (data[:-1], data + b"\n", b""):
            path.write_bytes(changed)
            sum_up(signed.one)
            assert refused(signed.one, trust)
        path.write_bytes(data)
        sum_up(signed.one)
    assert verify(signed.one, None, trust).complete


def test_a_file_too_many_or_too_few(signed: Signed) -> None:
    trust = Trust(keys=(signed.key,))
    for name in (ATTESTATION, PROOF):
        data = (signed.one / name).read_bytes()
        (signed.one / name).unlink()
        sum_up(signed.one)
        assert "file set" in refused(signed.one, trust)
        (signed.one / name).write_bytes(data)
    (signed.one / "more.txt").write_text("more")
    sum_up(signed.one)
    assert "file set" in refused(signed.one, trust)


def test_files_swapped_between_releases(signed: Signed) -> None:
    trust = Trust(signed.ledger, (signed.key,))
    names = [p.relative_to(signed.one) for p in signed.one.rglob("*") if p.is_file()]
    for name in names:
        here, there = signed.one / name, signed.two / name
        if here.read_bytes() == there.read_bytes():
            continue
        good = here.read_bytes()
        shutil.copy(there, here)
        if name.name != SUMS:
            sum_up(signed.one)
        assert refused(signed.one, trust)
        here.write_bytes(good)
        sum_up(signed.one)
    assert verify(signed.one, None, trust).complete


def test_another_key_signs_for_nothing(signed: Signed, tmp_path: Path) -> None:
    other = create_key(tmp_path / "other")
    assert "not known here" in refused(signed.one, Trust(keys=(other.public(NAME),)))
    attest_anew(signed.one, other)
    for trust in (Trust(keys=(signed.key,)), Trust(ledger=signed.ledger)):
        assert "not known here" in refused(signed.one, trust)
    # Signed anew by the right key: not what the ledger has committed to.
    lied = json.loads((signed.one / "release.json").read_bytes())
    lied["published"] = "2020-01-01"
    (signed.one / "release.json").write_bytes(rfc8785.dumps(lied))
    attest_anew(signed.one, signed.signer)
    assert f"{PROOF}: attestation" in refused(signed.one, Trust(keys=(signed.key,)))


def test_a_ledger_of_ones_own_making_has_another_key(signed: Signed, tmp_path: Path) -> None:
    """A forger makes a key, a ledger and a release that all fit together."""
    (tmp_path / "forger").mkdir()
    forger = Signed(tmp_path / "forger")
    assert not verify(forger.one, None, Trust(ledger=forger.ledger)).complete
    assert "a key that is trusted" in refused(forger.one, Trust(forger.ledger, (signed.key,)))
    never_heard_of_it = create_ledger(tmp_path / "fresh", signed.signer, NAME, (CAP,), DAY).folder
    assert "no commit" in refused(forger.one, Trust(ledger=never_heard_of_it))
    assert refused(signed.one, Trust(ledger=forger.ledger))


def test_a_key_that_was_only_listed_is_no_root_of_trust(signed: Signed, tmp_path: Path) -> None:
    """A forger adds the curator's public key, which everybody has, to a ledger of their own."""
    (tmp_path / "forger").mkdir()
    forger = Signed(tmp_path / "forger")
    entry = change_key("add", signed.key, forger.signer, DAY)
    Ledger(forger.ledger, forger.signer).append(entry)
    assert "a key that is trusted" in refused(forger.one, Trust(forger.ledger, (signed.key,)))


def test_a_release_finished_after_the_keys_have_changed(tmp_path: Path) -> None:
    """Committed by one key, cut off, and its proof made after another has joined."""
    signed = Signed(tmp_path)
    new = create_key(tmp_path / "new")
    proof = signed.two / PROOF
    Ledger(signed.ledger, signed.signer).append(
        change_key("add", new.public(NAME), signed.signer, DAY)
    )
    Ledger(signed.ledger, new).append(reserve("tests", "r", Spent(), DAY))
    proof.write_bytes(ledger_proof(replay(signed.ledger), "two", signed.ledger))
    sum_up(signed.two)
    for keys in ((signed.key,), (new.public(NAME),)):
        assert verify(signed.two, None, Trust(signed.ledger, keys)).complete


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("00000001.json", lambda e: e.update(epsilon="0.5"), "expected sha256"),
        ("00000001.json", lambda e: e.update(scope="other"), "no scope"),
        ("00000002.json", lambda e: e.update(attestation="sha256:" + "0" * 64), "expected sha256"),
        ("00000000.json", lambda e: e["scopes"][0].update(epsilon="0.5"), "expected sha256"),
    ],
)
def test_a_changed_ledger_is_refused(
    name: str, change: Callable[[dict[str, Any]], None], says: str, signed: Signed
) -> None:
    plain = json.loads((signed.ledger / name).read_bytes())
    change(plain)
    (signed.ledger / name).write_bytes(rfc8785.dumps(plain))
    assert says in refused(signed.one, Trust(ledger=signed.ledger))


def test_a_rolled_back_ledger_is_caught_by_what_was_seen_before(signed: Signed) -> None:
    """The second release is taken out of the ledger, which is signed anew by the right key."""
    older = signed.out / "kept"
    shutil.copy(signed.ledger / CHECKPOINT, older)
    for name in ("00000003.json", "00000004.json"):
        (signed.ledger / name).unlink()
    read = replay(signed.ledger)
    text = checkpoint_text(NAME, read.leaves)
    (signed.ledger / CHECKPOINT).write_text(sign_note(text, signed.signer, NAME), "utf-8")
    assert "no commit" in refused(signed.two, Trust(ledger=signed.ledger))
    assert verify(signed.one, None, Trust(signed.ledger, (signed.key,))).complete
    assert "entries were removed" in refused(signed.one, Trust(signed.ledger, (), older))
    # Grown again by other entries: as long as it was, and not the same.
    for number in range(4):
        Ledger(signed.ledger, signed.signer).append(reserve("tests", f"r{number}", Spent(), DAY))
    assert "not those that were signed" in refused(signed.one, Trust(signed.ledger, (), older))


def test_entries_nobody_signed_for_are_refused(signed: Signed) -> None:
    before = (signed.ledger / CHECKPOINT).read_bytes()
    Ledger(signed.ledger, signed.signer).append(reserve("tests", "r", Spent(), DAY))
    (signed.ledger / CHECKPOINT).write_bytes(before)
    assert "1 entries at the end are not signed" in refused(signed.one, Trust(ledger=signed.ledger))


def test_a_withdrawn_release_is_refused_where_the_ledger_is_given(signed: Signed) -> None:
    Ledger(signed.ledger, signed.signer).append(withdraw("one", DAY))
    assert verify(signed.one, None, Trust(keys=(signed.key,))).complete
    assert "withdrawn" in refused(signed.one, Trust(ledger=signed.ledger))


def test_old_releases_verify_after_the_keys_have_changed(signed: Signed, tmp_path: Path) -> None:
    new = create_key(tmp_path / "new")
    Ledger(signed.ledger, signed.signer).append(
        change_key("add", new.public(NAME), signed.signer, DAY)
    )
    Ledger(signed.ledger, new).append(change_key("retire", signed.key, new, DAY))
    for keys in ((signed.key,), (new.public(NAME),)):
        assert verify(signed.one, None, Trust(signed.ledger, keys)).complete


def strip(public: Path) -> None:
    """Take the signature away, and change an answer, as a forger would."""
    (public / ATTESTATION).unlink()
    (public / PROOF).unlink()
    record = json.loads((public / "release.json").read_bytes())
    record["ledger"]["sequence"] = None
    record["withheld"] = withheld(instance=False, ledger=False)
    spec = parse_spec((public / "spec.yaml").read_bytes())
    (counted,) = spec.released
    path = public / "data" / "the_count.parquet"
    data = rewrite(path, record["release_id"], counted, ((),), [3])
    record["queries"][0]["output"]["sha256"] = sha256(data)
    (public / "release.json").write_bytes(rfc8785.dumps(record))
    parsed = parse(ReleaseRecord, (public / "release.json").read_bytes())
    sizes = {"data/the_count.parquet": len(data)}
    (public / "datapackage.json").write_bytes(datapackage(spec, parsed, sizes))
    sum_up(public)


STATUS = {"signed": 3, "none": 0}


@pytest.mark.parametrize("require", list(STATUS))
def test_stripping_a_signature_never_improves_a_verdict(
    require: str, signed: Signed, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a signature that nobody can check it was 3, and without any, and changed, it was 0."""
    asked: tuple[str | Path, ...] = ("verify", signed.one, "--require", require)
    before, told = dp(capsys, *asked)
    assert before == STATUS[require]
    assert ("who signed: give" in told) == bool(before)
    given: list[tuple[str | Path, ...]] = [
        ("--trust", str(signed.key)),
        ("--trust", str(signed.key), "--ledger", signed.ledger),
    ]
    for known in given:
        assert dp(capsys, *asked, *known)[0] == 0
    strip(signed.one)
    after, told = dp(capsys, *asked)
    assert after == STATUS[require]
    assert ("who published this: nothing is signed" in told) == bool(after)
    assert "that the curator published this: nothing is signed" in told
    for known in given:
        assert dp(capsys, *asked, *known)[0] == 1


def test_all_releases_of_a_folder_are_asked_for_their_signature(
    signed: Signed, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert dp(capsys, "verify", signed.out, "--trust", str(signed.key))[0] == 0
    spec = Small(ROWS, [query("count", sensitivity="global", by=[])]).write(tmp_path)
    out = run_release(spec, tmp_path / "plain").public.parent.parent
    status, told = dp(capsys, "verify", out)
    assert status == 3
    assert "verified as far as" in told
    assert dp(capsys, "verify", out, "--require", "none")[0] == 0


def test_the_ledger_of_the_folder_that_is_verified_is_no_root_of_trust(
    signed: Signed, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A forger who writes releases and ledger alike got "verified" and status 0."""
    (tmp_path / "forged").mkdir()
    forged = Signed(tmp_path / "forged").out
    for out in (signed.out, forged):
        status, told = dp(capsys, "verify", out)
        assert status == 3
        assert [line for line in told.splitlines() if line.startswith("not seen: whose ledger")]
        assert dp(capsys, "verify", out, "--require", "none")[0] == 0
    by_key = ["--trust", str(signed.key)]
    for known in (by_key, [*by_key, "--ledger", str(signed.ledger)]):
        status, told = dp(capsys, "verify", signed.out, *known)
        assert status == 0
        assert "not seen" not in told
        assert dp(capsys, "verify", forged, *known)[0] == 1
    # A ledger that is named is replayed, and shows nothing of who wrote it.
    named = ["--ledger", str(signed.ledger)]
    assert dp(capsys, "verify", signed.out, *named)[0] == 3
    assert dp(capsys, "verify", forged, *named)[0] == 1


def test_the_named_ledger_decides_what_was_withdrawn(
    signed: Signed, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shutil.copytree(signed.ledger, tmp_path / "older")
    Ledger(signed.ledger, signed.signer).append(withdraw("one", DAY))
    assert "one  withdrawn" in dp(capsys, "verify", signed.out)[1]
    assert "one  verified" in dp(capsys, "verify", signed.out, "--ledger", tmp_path / "older")[1]


def test_a_release_without_a_ledger_cannot_pass_for_a_signed_one(
    signed: Signed, tmp_path: Path
) -> None:
    spec = Small(ROWS, [query("count", sensitivity="global", by=[])]).write(tmp_path)
    plain = run_release(spec, tmp_path / "plain").public
    assert "nothing is signed" in " ".join(verify(plain).asserted)
    assert "nothing is signed" in refused(plain, Trust(keys=(signed.key,)))


def dp(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    """A command: its status and all that it printed."""
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    assert isinstance(stopped.value.code, int)
    assert "Traceback" not in shown.err
    return stopped.value.code, shown.out + shown.err


def test_the_commands_from_key_to_withdrawal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What a curator and an auditor type, in order."""
    spec = Small(ROWS, [query("count", sensitivity="global", by=[])]).write(tmp_path)
    out, key = tmp_path / "out", tmp_path / "key"
    assert dp(capsys, "ledger", "key", "new", key)[0] == 0
    init: list[str | Path] = ["ledger", "init", "--out", out, "--key", key, "--origin", NAME]
    status, told = dp(capsys, *init, "--scope", "tests:1:0:year:1:0")
    assert status == 0
    public = next(word for line in told.splitlines() for word in line.split() if "+" in word)
    assert PublicKey.of(public).name == NAME
    assert dp(capsys, *init, "--scope", "tests:1:0")[0] == 1
    assert dp(capsys, "run", spec, "--out", out)[0] == 2
    assert dp(capsys, "run", spec, "--out", out, "--key", key)[0] == 0
    release = out / "public" / "small"
    assert dp(capsys, "verify", release)[0] == 3
    assert dp(capsys, "verify", release, "--trust", public)[0] == 0
    assert dp(capsys, "verify", release, "--trust", public, "--ledger", out / "ledger")[0] == 0
    kept = tmp_path / "kept"
    shutil.copy(out / "ledger" / CHECKPOINT, kept)
    other = tmp_path / "other.yaml"
    other.write_text(spec.read_text().replace("id: small", "id: other"))
    status, told = dp(capsys, "run", other, "--out", out, "--key", key)
    assert status == 1
    assert "scope 'tests' has spent 1, the release costs 1, the cap is 1" in told
    assert not (out / "public" / "other").exists()
    assert (
        dp(capsys, "ledger", "policy", "--out", out, "--key", key, "--scope", "tests:2:0")[0] == 0
    )
    assert dp(capsys, "run", other, "--out", out, "--key", key)[0] == 0
    status, told = dp(capsys, "ledger", "show", "--out", out, "--json")
    shown = json.loads(told)
    assert [one["state"] for one in shown["releases"]] == ["public", "public"]
    assert shown["scopes"][0]["spent"] == {"epsilon": "2", "delta": "0"}
    assert dp(capsys, "ledger", "key", "new", tmp_path / "next")[0] == 0
    add: list[str | Path] = ["ledger", "key", "add", tmp_path / "next", "--out", out, "--key", key]
    assert dp(capsys, *add)[0] == 0
    retire: list[str | Path] = [
        "ledger",
        "key",
        "retire",
        public,
        "--out",
        out,
        "--key",
        tmp_path / "next",
    ]
    assert dp(capsys, *retire)[0] == 0
    assert dp(capsys, "ledger", "withdraw", "small", "--out", out, "--key", key)[0] == 1
    own: list[str | Path] = ["--out", out, "--key", tmp_path / "next"]
    assert dp(capsys, "ledger", "withdraw", "small", *own)[0] == 0
    status, told = dp(capsys, "ledger", "show", "--out", out)
    assert "withdrawn" in told
    assert dp(capsys, "verify", release, "--ledger", out / "ledger")[0] == 1
    check: list[str | Path] = ["ledger", "check", "--out", out, "--trust", public, "--since", kept]
    status, told = dp(capsys, *check)
    assert status == 0, told
    (out / "ledger" / "00000003.json").unlink()
    assert dp(capsys, "ledger", "check", "--out", out)[0] == 1


LONG = "x" * 300


@pytest.mark.parametrize(
    "arguments",
    [
        ["ledger", "key", "new", LONG],
        ["ledger", "withdraw", "", "--out", "OUT", "--key", "KEY"],
        ["ledger", "withdraw", "A B", "--out", "OUT", "--key", "KEY"],
        ["ledger", "key", "add", LONG, "--out", "OUT", "--key", "KEY"],
        ["ledger", "key", "retire", "/", "--out", "OUT", "--key", "KEY"],
        ["ledger", "key", "swap", "KEY", "--out", "OUT", "--key", "KEY"],
        ["ledger", "show", "--out", LONG],
        ["ledger", "check", "--out", "OUT", "--since", LONG],
        ["ledger", "check", "--out", "OUT", "--trust", "someone"],
        ["ledger", "policy", "--out", "OUT", "--key", "/", "--scope", "tests:1:0"],
        ["verify", LONG],
        ["verify", "OUT/public/one", "--auditor", LONG],
        ["verify", "OUT/public/one", "--since", "OUT/ledger/checkpoint"],
        ["verify", "OUT/public/one", "--ledger", LONG],
    ],
)
def test_odd_arguments_are_told_of_in_one_line(
    arguments: list[str], signed: Signed, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    create_key(tmp_path / "KEY")
    given = [
        a.replace("OUT", str(signed.out)).replace("KEY", str(tmp_path / "KEY")) for a in arguments
    ]
    before = {path: path.read_bytes() for path in signed.out.rglob("*") if path.is_file()}
    status, told = dp(capsys, *given)
    assert status in (1, 2)
    assert [line for line in told.splitlines() if line.startswith("error: ")] == [told.strip()]
    assert "internal" not in told
    assert before == {path: path.read_bytes() for path in signed.out.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--scope", "tests"], "--scope: found 'tests'; write NAME:EPSILON:DELTA"),
        (["--scope", "tests:one:0"], "--scope"),
        (["--scope", "Tests:1:0"], "--scope"),
        (["--scope", "tests:1:0:week:1:0"], "--scope"),
        (["--scope", "a:1:0", "--scope", "a:2:0"], "a scope is listed twice"),
        (["--scope", "a:1:0", "--origin", "two words"], "--origin"),
    ],
)
def test_a_ledger_that_cannot_be_meant_is_refused(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    create_key(tmp_path / "key")
    out = tmp_path / "out"
    origin = [] if "--origin" in arguments else ["--origin", NAME]
    init: list[str | Path] = ["ledger", "init", "--out", out, "--key", tmp_path / "key", *origin]
    status, told = dp(capsys, *init, *arguments)
    assert status in (1, 2)
    assert says in told
    assert not out.exists()


@pytest.fixture
def stored(signed: Signed, tmp_path: Path) -> Signed:
    """The same where the ledger names a store."""
    Ledger(signed.ledger, signed.signer).name_store(f"file://{tmp_path}/store", DAY)
    return signed


def test_a_release_is_paid_for_where_the_store_agrees(stored: Signed) -> None:
    trust = Trust(stored.ledger, (stored.key,), require=Required.PAID)
    found = verify(stored.one, None, trust)
    assert found.evidence is Evidence.PAID
    assert level_of(found) is Level.TESTED


def test_a_ledger_behind_its_store_does_not_hide_a_withdrawal(
    stored: Signed, tmp_path: Path
) -> None:
    older = tmp_path / "older"
    shutil.copytree(stored.ledger, older)
    Ledger(stored.ledger, stored.signer).append(withdraw("one", DAY))
    trust = Trust(older, (stored.key,))
    assert "withdrawn" in refused(stored.one, trust)
    assert verify(stored.two, None, trust).evidence is Evidence.PAID


def test_a_store_with_other_entries_refuses_the_ledger(stored: Signed, tmp_path: Path) -> None:
    last = max((tmp_path / "store" / "ledger").glob("*.entry"))
    last.write_bytes(b"{}" + last.read_bytes())
    assert "another entry" in refused(stored.one, Trust(stored.ledger, (stored.key,)))


def test_without_its_store_a_ledger_shows_no_payment(stored: Signed, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "store")
    found = verify(stored.one, None, Trust(stored.ledger, (stored.key,), require=Required.PAID))
    assert found.evidence is Evidence.SIGNED
    assert level_of(found) is Level.UNSEEN
    # Nor is an address asked that nobody known has written.
    found = verify(stored.one, None, Trust(stored.ledger, require=Required.NONE))
    assert level_of(found) is Level.LEFT_OUT


def level_of(verdict: Verdict) -> Level:
    """The last level of the store's line."""
    return [f.level for f in verdict.findings if f.identifier == "provenance.store"][-1]


def test_a_curator_trusts_the_keys_that_its_own_ledger_has_now(tmp_path: Path) -> None:
    folder, old, new = (
        tmp_path / "ledger",
        create_key(tmp_path / "old"),
        create_key(tmp_path / "new"),
    )
    assert own_trust(folder) == Trust()
    assert not own_trust(folder).is_given
    ledger = create_ledger(folder, old, NAME, (CAP,), DAY)
    assert own_trust(folder) == Trust(folder, (old.public(NAME),))
    ledger.append(change_key("add", new.public(NAME), old, DAY))
    assert own_trust(folder).keys == (old.public(NAME), new.public(NAME))
    Ledger(folder, new).append(change_key("retire", old.public(NAME), new, DAY))
    assert own_trust(folder).keys == (new.public(NAME),)


@pytest.mark.parametrize("rule", ["basic", "pld", "renyi_filter"])
@pytest.mark.parametrize("seen", [False, True])
def test_a_release_with_an_instance_specific_query_has_no_losses(
    rule: str, *, seen: bool, tmp_path: Path
) -> None:
    """Its statement is not proved, so no slot and no filter that composes profiles takes it."""
    queries = [query("count", sensitivity="global", by=[])]
    if seen:
        queries.append(query("count", name="seen", sensitivity="empirical", by=[]))
    public = run_release(Small(ROWS, queries).write(tmp_path), tmp_path / "out").public
    record = parse(ReleaseRecord, (public / "release.json").read_bytes())
    charge = published_charge(record, public, rule)
    assert charge.epsilon == Fraction(record.composition.epsilon)
    # Under the rule that reads ε and δ alone, losses stand for the worst case of these.
    assert (charge.losses is None) == (seen and rule != "basic")

"""The Merkle tree against published roots and a tree built from the words of RFC 6962."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_release_verify.merkle import inclusion_proof, leaf_hash, root, root_from_inclusion

# The leaves and roots that implementations of certificate transparency share as test data.
LEAVES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = {
    0: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    8: "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
}


@pytest.mark.parametrize("size", ROOTS)
def test_published_roots(size: int) -> None:
    assert root([leaf_hash(leaf) for leaf in LEAVES[:size]]).hex() == ROOTS[size]


def brute_root(entries: list[bytes]) -> bytes:
    if not entries:
        return hashlib.sha256(b"").digest()
    if len(entries) == 1:
        return hashlib.sha256(b"\x00" + entries[0]).digest()
    middle = 1
    while middle * 2 < len(entries):
        middle *= 2
    return hashlib.sha256(
        b"\x01" + brute_root(entries[:middle]) + brute_root(entries[middle:])
    ).digest()


@given(st.lists(st.binary(max_size=3), min_size=1, max_size=40), st.data())
def test_proofs_lead_to_the_root_and_no_other_proof_does(
    entries: list[bytes], data: st.DataObject
) -> None:
    leaves = [leaf_hash(entry) for entry in entries]
    size, whole = len(leaves), brute_root(entries)
    assert root(leaves) == whole
    index = data.draw(st.integers(0, size - 1))
    proof = inclusion_proof(leaves, index)
    assert root_from_inclusion(leaves[index], index, size, proof) == whole
    assert root_from_inclusion(leaf_hash(b"other"), index, size, proof) != whole
    for place in range(len(proof)):
        changed = [*proof]
        changed[place] = hashlib.sha256(changed[place]).digest()
        assert root_from_inclusion(leaves[index], index, size, changed) != whole
    for wrong in ([*proof, whole], proof[1:]):
        if len(wrong) != len(proof):
            with pytest.raises(ValueError, match="proof"):
                root_from_inclusion(leaves[index], index, size, wrong)
    with pytest.raises(ValueError, match="leaf"):
        root_from_inclusion(leaves[index], size, size, proof)
    with pytest.raises(ValueError, match="leaf"):
        inclusion_proof(leaves, size)

"""The Merkle tree of RFC 6962, over SHA-256: root, inclusion, consistency.

Leaves and nodes are hashed with different first bytes, so that a node never passes for a leaf (RFC
6962 §2.1). Proofs are lists of 32-byte hashes in the order of the RFC.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeAlias

Peaks: TypeAlias = tuple[tuple[int, bytes], ...]
"""The heights and roots of the largest perfect subtrees over the first leaves, from the left."""


def leaf_hash(data: bytes) -> bytes:
    """The hash of one entry."""
    return hashlib.sha256(b"\x00" + data).digest()


def _node(first: bytes, second: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + first + second).digest()


def _split(size: int) -> int:
    """The largest power of two below ``size``."""
    return 1 << ((size - 1).bit_length() - 1)


def grown_peaks(before: Peaks, leaves: Sequence[bytes]) -> Peaks:
    """The peaks over the leaves that ``before`` stands for and further ones."""
    # A stack of perfect subtrees of decreasing height, like the digits of a binary counter: equal
    # neighbors are merged, so each leaf is hashed once and no list is copied.
    stack = list(before)
    for leaf in leaves:
        height, top = 0, leaf
        while stack and stack[-1][0] == height:
            top = _node(stack.pop()[1], top)
            height += 1
        stack.append((height, top))
    return tuple(stack)


def root(leaves: Sequence[bytes], before: Peaks = ()) -> bytes:
    """The root over leaf hashes (RFC 6962 §2.1), after those that ``before`` stands for.

    Cost: one hash a leaf.
    """
    stack = list(grown_peaks(before, leaves))
    if not stack:
        return hashlib.sha256(b"").digest()
    # The right edge of the tree is not perfect; it is folded from the right.
    _, digest = stack.pop()
    while stack:
        digest = _node(stack.pop()[1], digest)
    return digest


def inclusion_proof(leaves: Sequence[bytes], index: int, before: Peaks = ()) -> list[bytes]:
    """The audit path of leaf ``index`` (RFC 6962 §2.1.1), which is one of ``leaves``.

    ``before`` stands for the leaves before these; they count in ``index``.

    Raises:
        ValueError: there is no such leaf.
    """
    start = sum(1 << height for height, _ in before)
    if not start <= index < start + len(leaves):
        raise ValueError("no such leaf")
    path: list[bytes] = []
    low, high = 0, start + len(leaves)
    while high - low > 1:
        middle = low + _split(high - low)
        if index < middle:
            path.append(_range_root(leaves, before, middle, high))
            high = middle
        else:
            path.append(_range_root(leaves, before, low, middle))
            low = middle
    return path[::-1]


def _range_root(leaves: Sequence[bytes], before: Peaks, low: int, high: int) -> bytes:
    """The root of a subtree that does not lie inside one of the peaks."""
    start = 0
    for height, digest in before:
        # A subtree beside the path to a later leaf is a whole peak, if it has only such leaves.
        if (start, start + (1 << height)) == (low, high):
            return digest
        start += 1 << height
    if low >= start:
        return root(leaves[low - start : high - start])
    middle = low + _split(high - low)
    left_root = _range_root(leaves, before, low, middle)
    return _node(left_root, _range_root(leaves, before, middle, high))


def root_from_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes:
    """The root to which an audit path leads; compare it with the signed one.

    Raises:
        ValueError: the path has another length than a tree of ``size`` leaves requires.
    """
    if not 0 <= index < size:
        raise ValueError("no such leaf")
    # A path of any other length is refused, because its end would go unchecked.
    if size == 1:
        if proof:
            raise ValueError("the proof is too long")
        return leaf
    if not proof:
        raise ValueError("the proof is too short")
    middle = _split(size)
    if index < middle:
        return _node(root_from_inclusion(leaf, index, middle, proof[:-1]), proof[-1])
    return _node(proof[-1], root_from_inclusion(leaf, index - middle, size - middle, proof[:-1]))

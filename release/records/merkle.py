"""The Merkle tree of RFC 6962, over SHA-256: root, inclusion, consistency.

Leaves and nodes are hashed with different first bytes, so that a node never passes for a leaf (RFC
6962 §2.1). Proofs are lists of 32-byte hashes in the order of the RFC.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def leaf_hash(data: bytes) -> bytes:
    """The hash of one entry."""
    return hashlib.sha256(b"\x00" + data).digest()


def _node(first: bytes, second: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + first + second).digest()


def _split(size: int) -> int:
    """The largest power of two below ``size``."""
    return 1 << ((size - 1).bit_length() - 1)


def root(leaves: Sequence[bytes]) -> bytes:
    """The root over leaf hashes (RFC 6962 §2.1). Cost: one hash a leaf."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    # A stack of perfect subtrees of decreasing height, like the digits of a binary counter: equal
    # neighbors are merged, so each leaf is hashed once and no list is copied.
    stack: list[tuple[int, bytes]] = []
    for leaf in leaves:
        height, top = 0, leaf
        while stack and stack[-1][0] == height:
            top = _node(stack.pop()[1], top)
            height += 1
        stack.append((height, top))
    # The right edge of the tree is not perfect; it is folded from the right.
    _, digest = stack.pop()
    while stack:
        digest = _node(stack.pop()[1], digest)
    return digest


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The audit path of leaf ``index`` (RFC 6962 §2.1.1).

    Raises:
        ValueError: there is no such leaf.
    """
    if not 0 <= index < len(leaves):
        raise ValueError("no such leaf")
    if len(leaves) == 1:
        return []
    middle = _split(len(leaves))
    if index < middle:
        return [*inclusion_proof(leaves[:middle], index), root(leaves[middle:])]
    return [*inclusion_proof(leaves[middle:], index - middle), root(leaves[:middle])]


def root_from_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes:
    """The root to which an audit path leads; compare it with the signed one.

    Raises:
        ValueError: the path has another length than a tree of ``size`` leaves requires.
    """
    if not 0 <= index < size:
        raise ValueError("no such leaf")
    # A path of any other length is refused, for its end would go unchecked.
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

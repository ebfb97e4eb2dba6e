# SPDX-License-Identifier: BSL-1.0
"""Tensors as PyTorch sees them, and PyTorch's as the library sees them. How it is called: dlpack_library.py."""
import gc
import os
import sys
import weakref

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # python3 -I leaves it out
from dlpack_library import *

try:
    import torch
except ModuleNotFoundError:
    skip("/usr/bin/python3 has no torch: install python3-torch")

# By dtype's number.
types = {1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64, 5: torch.uint8, 9: torch.float16,
         10: torch.bfloat16, 11: torch.float32, 12: torch.float64, 13: torch.complex64, 14: torch.complex128}


def expected(kind):
    return torch.arange(24).to(kind).reshape(2, 3, 4)[:, :, 1:]


def values_go_both_ways():
    for number, kind in types.items():
        theirs = torch.from_dlpack(Exporter(peer.make(number)))
        assert theirs.dtype == kind and torch.equal(theirs, expected(kind)), theirs
        assert peer.take(given_away(expected(kind)), number), kind

    assert peer.take(given_away(torch.arange(3.0).expand(2, 3)), -1)
    assert peer.text() == b"tensor([[0., 1., 2.],\n        [0., 1., 2.]], f32)", peer.text()
    assert peer.take(given_away(expected(torch.float64).transpose(0, 2).clone().transpose(0, 2)), f64)


def bools_go_both_ways():
    wanted = (torch.arange(24) % 2 == 1).reshape(2, 3, 4)[:, :, 1:]
    try:
        managed = given_away(wanted)
    except RuntimeError as why:
        skip(f"torch {torch.__version__}: {why}")
    assert peer.take(managed, 0)
    theirs = torch.from_dlpack(Exporter(peer.make(0)))
    assert theirs.dtype == torch.bool and torch.equal(theirs, wanted), theirs


def an_exported_tensor_is_the_same_memory():
    theirs = torch.from_dlpack(Exporter(peer.make(f64)))
    assert peer.holders() == 2
    theirs[0, 0, 0] = -1
    assert peer.was_written()
    del theirs
    gc.collect()
    assert peer.holders() == 1


class Buffer(bytearray):
    """One that can be watched."""


def an_imported_tensor_is_the_same_memory():
    buffer = Buffer(18 * 8)
    is_there = weakref.ref(buffer)
    theirs = torch.frombuffer(buffer, dtype=torch.float64).reshape(2, 9)
    del buffer
    assert peer.take(given_away(theirs), -1)
    peer.fill_first_row()
    assert (theirs[0] == 100).all() and (theirs[1] == 0).all()
    del theirs
    gc.collect()
    assert is_there() is not None
    peer.drop()
    gc.collect()
    assert is_there() is None


def version_1_goes_both_ways():
    if versioned_capsule(expected(torch.float64)) is None:
        skip(f"torch {torch.__version__} has no version 1 of DLPack: newer ones have")
    for number, kind in types.items():
        assert peer.take_versioned(versioned_given_away(expected(kind)), number), kind
        theirs = torch.from_dlpack(VersionedExporter(peer.make_versioned(number)))
        assert theirs.dtype == kind and torch.equal(theirs, expected(kind)), theirs
    theirs = torch.from_dlpack(VersionedExporter(peer.make_versioned(f64)))
    theirs[0, 0, 0] = -1
    assert peer.was_written()


globals()[sys.argv[2]]()

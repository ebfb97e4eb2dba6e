# SPDX-License-Identifier: BSL-1.0
"""Tensors as NumPy sees them, and arrays as the library sees them. The library of dlpack_peer.cpp is the argument."""
import ctypes
import gc
import sys

try:
    import numpy
except ImportError:
    sys.exit(77)  # the test is skipped

peer = ctypes.CDLL(sys.argv[1])
peer.make.restype = ctypes.c_void_p
peer.holders.restype = ctypes.c_long
for name in ("was_written", "take", "refuses"):
    getattr(peer, name).restype = ctypes.c_bool
peer.take.argtypes = [ctypes.c_void_p, ctypes.c_int]
peer.refuses.argtypes = [ctypes.c_void_p]

api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
fresh = ctypes.c_char_p(b"dltensor")  # a capsule borrows its name
used = ctypes.c_char_p(b"used_dltensor")

# By dtype's number. NumPy has no bfloat16, and its DLPack knows no bool before version 1.25.
types = {1: "i1", 2: "i2", 3: "i4", 4: "i8", 5: "u1", 6: "u2", 7: "u4", 8: "u8", 9: "f2", 11: "f4", 12: "f8",
         13: "c8", 14: "c16"}
f64 = 12


class Exporter:
    def __init__(self, managed):
        self.managed = managed

    def __dlpack__(self, stream=None):
        return api.PyCapsule_New(self.managed, fresh, None)

    def __dlpack_device__(self):
        return (1, 0)


def expected(kind):
    return numpy.arange(24).astype(kind).reshape(2, 3, 4)[:, :, 1:]


def pointer(capsule):
    return api.PyCapsule_GetPointer(capsule, fresh)


for number, kind in types.items():
    array = numpy.from_dlpack(Exporter(peer.make(number)))
    assert array.dtype == numpy.dtype(kind) and array.shape == (2, 3, 3), (array.dtype, array.shape)
    assert numpy.array_equal(array, expected(kind)), array

    capsule = expected(kind).__dlpack__()
    assert peer.take(pointer(capsule), number), kind
    api.PyCapsule_SetName(capsule, used)

# An exported tensor is the same memory, and the array keeps it. NumPy's are read-only: written through the pointer.
array = numpy.from_dlpack(Exporter(peer.make(f64)))
assert peer.holders() == 2
ctypes.cast(array.ctypes.data, ctypes.POINTER(ctypes.c_double))[0] = -1
assert peer.was_written()
del array
gc.collect()
assert peer.holders() == 1

# An imported array is the same memory, and the tensor keeps it.
array = expected("f8")
before = sys.getrefcount(array)
capsule = array.__dlpack__()
assert peer.take(pointer(capsule), f64)
api.PyCapsule_SetName(capsule, used)
del capsule
assert sys.getrefcount(array) == before + 1
peer.fill_first_row()
assert (array[0] == 100).all() and array[1, 0, 0] == 13
peer.drop()
assert sys.getrefcount(array) == before

# Backwards and standing still.
backwards = numpy.arange(24, dtype="f8")[::-1].copy()[::-1].reshape(2, 3, 4)[:, :, 1:]
capsule = backwards.__dlpack__()
assert peer.take(pointer(capsule), f64)
api.PyCapsule_SetName(capsule, used)

# What is refused stays the capsule's.
unaligned = numpy.frombuffer(bytearray(17), dtype="u1")[1:].view("f8")
before = sys.getrefcount(unaligned)
capsule = unaligned.__dlpack__()
assert peer.refuses(pointer(capsule))
del capsule
assert sys.getrefcount(unaligned) == before
peer.drop()
print("ok, NumPy", numpy.__version__)

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
peer.make_versioned.restype = ctypes.c_void_p
peer.holders.restype = ctypes.c_long
for name in ("was_written", "take", "refuses", "take_versioned", "refuses_versioned", "take_bools"):
    getattr(peer, name).restype = ctypes.c_bool
for name in ("take", "take_versioned"):
    getattr(peer, name).argtypes = [ctypes.c_void_p, ctypes.c_int]
for name in ("refuses", "refuses_versioned", "take_bools"):
    getattr(peer, name).argtypes = [ctypes.c_void_p]

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


def given_away(array):
    capsule = array.__dlpack__()
    managed = pointer(capsule)
    api.PyCapsule_SetName(capsule, used)
    return managed


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

# Numbers are printed as NumPy 1 prints them; newer ones go over to exponents earlier, by type.
prints_alike = numpy.__version__.startswith("1.")
peer.text.restype = ctypes.c_char_p


names = {"i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "u1": "u8", "u2": "u16", "u4": "u32", "u8": "u64",
         "f2": "f16", "f4": "f32", "f8": "f64", "c8": "c64", "c16": "c128", "b1": "bool"}


def check_text(values, kind):
    if not prints_alike:
        return
    array = numpy.array(values, dtype=kind)
    if kind == "b1":
        assert peer.take_bools(given_away(array.view("u1")))
    else:
        assert peer.take(given_away(array), -1)
    shown = peer.text().decode()
    body = numpy.array2string(array, separator=", ", prefix="tensor(", suffix=",")
    shape = f"({', '.join(map(str, array.shape))}{',' if array.ndim == 1 else ''})"
    rest = names[array.dtype.str[1:]] + (f", shape {shape})" if array.size > 1000 else ")")
    wanted = f"tensor({body},"
    breaks = len(wanted) - (wanted.rfind("\n") + 1) + 1 + len(rest) > 75  # as NumPy's array_repr does it
    wanted += ("\n" + " " * len("tensor(") if breaks else " ") + rest
    assert shown == wanted, f"\n{shown}\n{wanted}"


nan, inf = numpy.nan, numpy.inf
tables = [[1, 2, 3], [1.5, 2.25, -3], [0.1, 100], [1e-5, 1], [1e8, 1], [99999999, 1], [1e-4, 0.1], [1e-4, 0.11], [0, -0.0],
          [nan, 1.5], [nan, inf], [inf, -inf, 1], [nan, 1e10], [-inf, 1e10], [0.3, 1 / 3], [[1.5, 2], [3, 4.125]],
          [[[1, 2.5]], [[3, 4]]], 0.5, 7, [1e300, 1e-300], [5e-324, 1], [123456.789, 1000], [0.000123456789, 0.1],
          [1.1, 1.123456789012], [2 / 3, 200 / 3], [0.1 + 0.2], numpy.arange(2000) / 8, [1e100, 1e-7, 1]]
numpy.seterr(over="ignore")
for table in tables:
    for kind in ("f8", "f4", "f2", "c16", "c8"):
        check_text(table, kind)
for table in ([1 + 2j, -3.25j], [1e-5 - 1e5j, 1], [complex(nan, inf), complex(-inf, nan)], [1.5 + 0.25j, 100 - 1e3j]):
    check_text(table, "c16")
check_text([[-1, 10], [100, 2]], "i2")
for table in ([True, False], [True], [[False], [True]], True, False, numpy.arange(2000) % 3 == 0):
    check_text(table, "b1")
generator = numpy.random.default_rng(1)
for each in range(200):
    shape = tuple(generator.integers(1, 5, size=generator.integers(1, 4)))
    numbers = generator.normal(size=shape) * 10.0 ** generator.integers(-6, 9, size=shape if each % 2 else ())
    for kind in ("f8", "f4", "f2"):
        check_text(numbers, kind)

# Lines are broken where NumPy breaks them, and integers are of every type.
for each in range(300):
    shape = tuple(generator.integers(1, 40 if each % 3 == 0 else 9, size=generator.integers(0, 5 if each % 3 else 3)))
    for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        limits = numpy.iinfo(kind)
        most = min(limits.max, 10 ** int(generator.integers(1, 19)))
        check_text(generator.integers(max(limits.min, -most), most, size=shape, dtype=kind, endpoint=True), kind)
    check_text(generator.random(size=shape) < 0.5, "b1")
    numbers = generator.normal(size=shape) * 10.0 ** generator.integers(-6, 9)
    for kind in ("f8", "f4", "f2", "c16", "c8"):
        check_text(numbers * (1 - 1j) if kind[0] == "c" else numbers, kind)

# Comparisons, broadcast as NumPy does.
peer.compare_arrays.restype = ctypes.c_void_p
peer.compare_arrays.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
comparisons = [numpy.equal, numpy.not_equal, numpy.less, numpy.less_equal, numpy.greater, numpy.greater_equal,
               numpy.isclose, lambda a, b: numpy.isclose(a, b, equal_nan=True)]


def check_comparisons(a, b):
    for number, compare in enumerate(comparisons):
        if a.dtype.kind == "c" and 2 <= number < 6:
            continue
        found = numpy.from_dlpack(Exporter(peer.compare_arrays(given_away(a), given_away(b), number)))
        with numpy.errstate(invalid="ignore"):
            wanted = compare(a, b)
        assert found.shape == wanted.shape and (found == wanted).all(), f"{compare}\n{a}\n{b}\n{found}\n{wanted}"


for each in range(100):
    whole = generator.integers(1, 4, size=generator.integers(0, 5))
    shapes = [numpy.where(generator.random(len(whole)) < 0.3, 1, whole)[generator.integers(0, len(whole) + 1):]
              for side in "ab"]
    numbers = [0, -0.0, 1, 1 + 1e-6, -1, 2, nan]
    of_kind = {"f8": numbers + [inf, -inf], "f4": numbers + [inf, -inf], "i4": [0, 1, -1, 100], "u1": [0, 1, 2, 200],
               "c16": [complex(a, b) for a in numbers for b in numbers]}  # isclose takes infinite ones for NaNs
    for kind, choices in of_kind.items():
        check_comparisons(*(numpy.asarray(generator.choice(choices, size=tuple(shape)).astype(kind)) for shape in shapes))

# What is refused stays the capsule's.
unaligned = numpy.frombuffer(bytearray(17), dtype="u1")[1:].view("f8")
before = sys.getrefcount(unaligned)
capsule = unaligned.__dlpack__()
assert peer.refuses(pointer(capsule))
del capsule
assert sys.getrefcount(unaligned) == before
peer.drop()

# Version 1, which NumPy has since 2.1: arrays may be read-only then.
versioned = tuple(int(part) for part in numpy.__version__.split(".")[:2]) >= (2, 1)
if versioned:
    fresh_versioned = ctypes.c_char_p(b"dltensor_versioned")
    used_versioned = ctypes.c_char_p(b"used_dltensor_versioned")

    class VersionedExporter(Exporter):
        def __dlpack__(self, *, max_version=None, **options):
            assert max_version >= (1, 0)
            return api.PyCapsule_New(self.managed, fresh_versioned, None)

    array = numpy.from_dlpack(VersionedExporter(peer.make_versioned(f64)))
    assert numpy.array_equal(array, expected("f8")) and array.flags.writeable
    array[0, 0, 0] = -1
    assert peer.was_written()

    array = expected("f8")
    capsule = array.__dlpack__(max_version=(1, 0))
    assert peer.take_versioned(api.PyCapsule_GetPointer(capsule, fresh_versioned), f64)
    api.PyCapsule_SetName(capsule, used_versioned)
    peer.drop()
    array.flags.writeable = False
    capsule = array.__dlpack__(max_version=(1, 0))
    assert peer.refuses_versioned(api.PyCapsule_GetPointer(capsule, fresh_versioned))
print("ok, NumPy", numpy.__version__, "with version 1 of DLPack" if versioned else "")

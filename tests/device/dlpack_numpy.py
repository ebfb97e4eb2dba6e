# SPDX-License-Identifier: BSL-1.0
"""Tensors as NumPy sees them, and arrays as the library sees them. How it is called: dlpack_library.py."""
import ctypes
import gc
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # python3 -I leaves it out
from dlpack_library import *

try:
    import numpy
except ModuleNotFoundError:
    skip("/usr/bin/python3 has no NumPy: install python3-numpy")

version = tuple(int(part) for part in numpy.__version__.split(".")[:2])
nan, inf = numpy.nan, numpy.inf
generator = numpy.random.default_rng(1)

# By dtype's number. NumPy has no bfloat16: see dlpack_torch.py.
types = {1: "i1", 2: "i2", 3: "i4", 4: "i8", 5: "u1", 6: "u2", 7: "u4", 8: "u8", 9: "f2", 11: "f4", 12: "f8",
         13: "c8", 14: "c16"}


def expected(kind):
    return numpy.arange(24).astype(kind).reshape(2, 3, 4)[:, :, 1:]


def values_go_both_ways():
    for number, kind in types.items():
        array = numpy.from_dlpack(Exporter(peer.make(number)))
        assert array.dtype == numpy.dtype(kind) and array.shape == (2, 3, 3), (array.dtype, array.shape)
        assert numpy.array_equal(array, expected(kind)), array
        assert peer.take(given_away(expected(kind)), number), kind

    backwards = numpy.arange(24, dtype="f8")[::-1].copy()[::-1].reshape(2, 3, 4)[:, :, 1:]
    assert peer.take(given_away(backwards), f64)


def bools_go_both_ways():
    if version < (1, 25):
        skip(f"NumPy {numpy.__version__} has no bools in its DLPack: 1.25 has")
    wanted = (numpy.arange(24) % 2 == 1).reshape(2, 3, 4)[:, :, 1:]
    array = numpy.from_dlpack(Exporter(peer.make(0)))
    assert array.dtype == numpy.bool_ and numpy.array_equal(array, wanted), array
    assert peer.take(given_away(wanted), 0)


def an_exported_tensor_is_the_same_memory():
    array = numpy.from_dlpack(Exporter(peer.make(f64)))
    assert peer.holders() == 2
    # NumPy 1 takes it for read-only: written through the pointer.
    ctypes.cast(array.ctypes.data, ctypes.POINTER(ctypes.c_double))[0] = -1
    assert peer.was_written()
    del array
    gc.collect()
    assert peer.holders() == 1


def an_imported_array_is_the_same_memory():
    array = expected("f8")
    before = sys.getrefcount(array)
    assert peer.take(given_away(array), f64)
    assert sys.getrefcount(array) == before + 1
    peer.fill_first_row()
    assert (array[0] == 100).all() and array[1, 0, 0] == 13
    peer.drop()
    assert sys.getrefcount(array) == before


def what_is_refused_stays_the_capsules():
    unaligned = numpy.frombuffer(bytearray(17), dtype="u1")[1:].view("f8")
    before = sys.getrefcount(unaligned)
    capsule = unaligned.__dlpack__()
    assert peer.refuses(pointer(capsule))
    del capsule
    assert sys.getrefcount(unaligned) == before


def version_1_goes_both_ways():
    array = expected("f8")
    if versioned_capsule(array) is None:
        skip(f"NumPy {numpy.__version__} has no version 1 of DLPack: 2.1 has")
    assert peer.take_versioned(versioned_given_away(array), f64)
    peer.drop()
    array.flags.writeable = False
    assert peer.take_versioned(versioned_given_away(array), f64)
    assert peer.is_read_only()
    peer.drop()

    for number, kind in types.items():
        array = numpy.from_dlpack(VersionedExporter(peer.make_versioned(number)))
        assert numpy.array_equal(array, expected(kind)) and array.flags.writeable, array
    array = numpy.from_dlpack(VersionedExporter(peer.make_versioned(f64)))
    array[0, 0, 0] = -1
    assert peer.was_written()


# ---- texts

names = {"i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "u1": "u8", "u2": "u16", "u4": "u32", "u8": "u64",
         "f2": "f16", "f4": "f32", "f8": "f64", "c8": "c64", "c16": "c128", "b1": "bool"}
tables = [[1, 2, 3], [1.5, 2.25, -3], [0.1, 100], [1e-5, 1], [1e8, 1], [99999999, 1], [1e-4, 0.1], [1e-4, 0.11], [0, -0.0],
          [nan, 1.5], [nan, inf], [inf, -inf, 1], [nan, 1e10], [-inf, 1e10], [0.3, 1 / 3], [[1.5, 2], [3, 4.125]],
          [[[1, 2.5]], [[3, 4]]], 0.5, 7, [1e300, 1e-300], [5e-324, 1], [123456.789, 1000], [0.000123456789, 0.1],
          [1.1, 1.123456789012], [2 / 3, 200 / 3], [0.1 + 0.2], numpy.arange(2000) / 8, [1e100, 1e-7, 1]]


def text_of(array):
    """As array_repr has it for a class named tensor, with dtypes named as the library does."""
    body = numpy.array2string(array, separator=", ", prefix="tensor(", suffix=",")
    shape = f"({', '.join(map(str, array.shape))}{',' if array.ndim == 1 else ''})"
    rest = names[array.dtype.str[1:]] + (f", shape {shape})" if array.size > 1000 else ")")
    text = f"tensor({body},"
    breaks = len(text) - (text.rfind("\n") + 1) + 1 + len(rest) > 75
    return text + ("\n" + " " * len("tensor(") if breaks else " ") + rest


def check_text(values, kind):
    array = numpy.array(values, dtype=kind)
    if kind == "b1":
        assert peer.take_bools(given_away(array.view("u1")))
    else:
        assert peer.take(given_away(array), -1)
    shown = peer.text().decode()
    assert shown == text_of(array), f"\n{shown}\n{text_of(array)}"


def texts_are_numpys():
    if version >= (2, 0):
        skip(f"NumPy {numpy.__version__} goes over to exponents earlier than NumPy 1, by type")
    numpy.seterr(over="ignore")
    for table in tables:
        for kind in ("f8", "f4", "f2", "c16", "c8"):
            check_text(table, kind)
    for table in ([1 + 2j, -3.25j], [1e-5 - 1e5j, 1], [complex(nan, inf), complex(-inf, nan)],
                  [1.5 + 0.25j, 100 - 1e3j]):
        check_text(table, "c16")
    for table in ([True, False], [True], [[False], [True]], True, False, numpy.arange(2000) % 3 == 0):
        check_text(table, "b1")
    for each in range(200):
        shape = tuple(generator.integers(1, 5, size=generator.integers(1, 4)))
        numbers = generator.normal(size=shape) * 10.0 ** generator.integers(-6, 9, size=shape if each % 2 else ())
        for kind in ("f8", "f4", "f2"):
            check_text(numbers, kind)


def random_shape(each):
    """Rows that are many lines long, and up to four dimensions."""
    longest, most = (40, 3) if each % 3 == 0 else (9, 5)
    return tuple(generator.integers(1, longest, size=generator.integers(0, most)))


def random_integers(kind, shape):
    limits = numpy.iinfo(kind)
    most = min(limits.max, 10 ** int(generator.integers(1, 19)))
    return generator.integers(max(limits.min, -most), most, size=shape, dtype=kind, endpoint=True)


def lines_are_numpys():
    numpy.seterr(over="ignore")
    for each in range(300):
        shape = random_shape(each)
        for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
            check_text(random_integers(kind, shape), kind)
        check_text(generator.random(size=shape) < 0.5, "b1")
        if version >= (2, 0):
            continue
        numbers = generator.normal(size=shape) * 10.0 ** generator.integers(-6, 9)
        for kind in ("f8", "f4", "f2", "c16", "c8"):
            check_text(numbers * (1 - 1j) if kind[0] == "c" else numbers, kind)


# ---- comparisons

comparisons = [numpy.equal, numpy.not_equal, numpy.less, numpy.less_equal, numpy.greater, numpy.greater_equal,
               numpy.isclose, lambda a, b: numpy.isclose(a, b, equal_nan=True)]
numbers = [0, -0.0, 1, 1 + 1e-6, -1, 2, nan]
choices = {"f8": numbers + [inf, -inf], "f4": numbers + [inf, -inf], "i4": [0, 1, -1, 100], "u1": [0, 1, 2, 200],
           "c16": [complex(a, b) for a in numbers for b in numbers]}  # NumPy's isclose takes infinite ones for NaNs


def shapes_that_broadcast():
    whole = generator.integers(1, 4, size=generator.integers(0, 5))
    return [tuple(numpy.where(generator.random(len(whole)) < 0.3, 1, whole)[generator.integers(0, len(whole) + 1):])
            for side in "ab"]


def check_comparison(number, a, b):
    found = numpy.from_dlpack(Exporter(peer.compare_arrays(given_away(a), given_away(b), number)))
    with numpy.errstate(invalid="ignore"):
        wanted = comparisons[number](a, b)
    assert found.shape == wanted.shape and (found == wanted).all(), f"{number}\n{a}\n{b}\n{found}\n{wanted}"


def comparisons_are_numpys():
    for each in range(100):
        shapes = shapes_that_broadcast()
        for kind, some in choices.items():
            a, b = (numpy.asarray(generator.choice(some, size=shape).astype(kind)) for shape in shapes)
            for number in range(len(comparisons)):
                if kind != "c16" or not 2 <= number < 6:  # NumPy orders complex numbers
                    check_comparison(number, a, b)


globals()[sys.argv[2]]()

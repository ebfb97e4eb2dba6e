# SPDX-License-Identifier: BSL-1.0
"""The library of dlpack_peer.cpp, and capsules: what the scripts beside this one have in common.

A script is given the library and the name of one of its functions, which it calls. Exit status 77: that could not be
checked here; the output says why.
"""
import ctypes
import sys


def skip(reason):
    print(reason)
    sys.exit(77)


def load(path):
    library = ctypes.CDLL(path)
    for name in ("make", "make_versioned", "compare_arrays"):
        getattr(library, name).restype = ctypes.c_void_p
    library.compare_arrays.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    library.holders.restype = ctypes.c_long
    library.text.restype = ctypes.c_char_p
    for name in ("was_written", "is_read_only", "take", "refuses", "take_versioned", "refuses_versioned", "take_bools"):
        getattr(library, name).restype = ctypes.c_bool
    for name in ("take", "take_versioned"):
        getattr(library, name).argtypes = [ctypes.c_void_p, ctypes.c_int]
    for name in ("refuses", "refuses_versioned", "take_bools"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    return library


peer = load(sys.argv[1])
f64 = 12  # a dtype's number

api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]

# A capsule borrows its name.
fresh, used = ctypes.c_char_p(b"dltensor"), ctypes.c_char_p(b"used_dltensor")
fresh_1, used_1 = ctypes.c_char_p(b"dltensor_versioned"), ctypes.c_char_p(b"used_dltensor_versioned")


class Exporter:
    """A tensor of the library, for whoever asks for one."""

    def __init__(self, managed):
        self.managed = managed

    def __dlpack__(self, stream=None):
        return api.PyCapsule_New(self.managed, fresh, None)

    def __dlpack_device__(self):
        return (1, 0)


class VersionedExporter(Exporter):
    def __dlpack__(self, *, max_version=None, **options):
        assert max_version >= (1, 0)
        return api.PyCapsule_New(self.managed, fresh_1, None)


def pointer(capsule):
    """Still the capsule's."""
    return api.PyCapsule_GetPointer(capsule, fresh)


def given_away(array):
    capsule = array.__dlpack__()
    managed = pointer(capsule)
    api.PyCapsule_SetName(capsule, used)
    return managed


def versioned_capsule(array):
    """None from a library that has no version 1."""
    try:
        capsule = array.__dlpack__(max_version=(1, 0))
    except TypeError:
        return None
    return capsule if api.PyCapsule_IsValid(capsule, fresh_1) else None


def versioned_pointer(capsule):
    return api.PyCapsule_GetPointer(capsule, fresh_1)


def versioned_given_away(array):
    capsule = versioned_capsule(array)
    managed = versioned_pointer(capsule)
    api.PyCapsule_SetName(capsule, used_1)
    return managed

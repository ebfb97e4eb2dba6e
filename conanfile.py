# SPDX-License-Identifier: BSL-1.0
# conan create . : muster as a Conan 2 package, with the system's Boost, cereal and nlohmann-json. test_package builds examples/template.
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import load
from conan.tools.system.package_manager import Apt


class Muster(ConanFile):
    name = "muster"
    description = "Pools of worker processes over shared memory"
    license = "BSL-1.0"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "components": ["ANY"]}
    default_options = {"shared": False, "components": "pool"}  # with ; between, as MUSTER_COMPONENTS
    exports_sources = ("CMakeLists.txt", "LICENSE", "*.md", "cmake/*", "*/CMakeLists.txt", "*/include/*", "*/internal/*",
                       "*/src/*", "*/kernels/*", "!tests/*", "!examples/*", "!benchmarks/*", "!out/*")
    test_package_folder = "tests/package/conan"

    def set_version(self):
        header = load(self, f"{self.recipe_folder}/base/include/muster/base/version.hpp")
        self.version = re.search(r'VERSION_STRING "(.+)"', header).group(1)

    def layout(self):
        cmake_layout(self)

    def system_requirements(self):
        Apt(self).check(["libboost1.81-dev", "libcereal-dev", "nlohmann-json3-dev"])

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["MUSTER_COMPONENTS"] = str(self.options.components)
        toolchain.cache_variables["BUILD_SHARED_LIBS"] = bool(self.options.shared)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # Its own find_package files, which know the components, are used.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/muster"]

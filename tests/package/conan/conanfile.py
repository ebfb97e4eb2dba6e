# SPDX-License-Identifier: BSL-1.0
# The project to copy, with the muster that conan create has just packed.
import os

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class MusterTest(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False  # the template has its own
        toolchain.generate()

    def template(self):
        return os.path.join(self.recipe_folder, "../../../examples/template")

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder=self.template())
        cmake.build()

    def test(self):
        self.run(f"ctest --test-dir {self.build_folder} --output-on-failure --no-tests=error", env="conanrun")
        self.run(os.path.join(self.build_folder, "my_service") + f" {self.template()}/README.md", env="conanrun")

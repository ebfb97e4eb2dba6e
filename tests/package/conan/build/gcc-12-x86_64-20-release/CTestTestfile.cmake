# CMake generated Testfile for 
# Source directory: /work/main/examples/template
# Build directory: /work/main/tests/package/conan/build/gcc-12-x86_64-20-release
# 
# This file includes the relevant testing commands required for 
# testing this directory and lists subdirectories to be tested as well.
include("/work/main/tests/package/conan/build/gcc-12-x86_64-20-release/my_service_tests[1]_include.cmake")

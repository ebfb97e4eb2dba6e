
# Consider dependencies only in project.
set(CMAKE_DEPENDS_IN_PROJECT_ONLY OFF)

# The set of languages for which implicit dependencies are needed:
set(CMAKE_DEPENDS_LANGUAGES
  )

# The set of dependency files which are needed:
set(CMAKE_DEPENDS_DEPENDENCY_FILES
  "/work/main/examples/template/tests/main.cpp" "CMakeFiles/my_service_tests.dir/tests/main.cpp.o" "gcc" "CMakeFiles/my_service_tests.dir/tests/main.cpp.o.d"
  "/work/main/examples/template/tests/word_count_test.cpp" "CMakeFiles/my_service_tests.dir/tests/word_count_test.cpp.o" "gcc" "CMakeFiles/my_service_tests.dir/tests/word_count_test.cpp.o.d"
  )

# Targets to which this target links.
set(CMAKE_TARGET_LINKED_INFO_FILES
  "/work/main/tests/package/conan/build/gcc-12-x86_64-20-release/CMakeFiles/counting.dir/DependInfo.cmake"
  )

# Fortran module output directory.
set(CMAKE_Fortran_TARGET_MODULE_DIR "")

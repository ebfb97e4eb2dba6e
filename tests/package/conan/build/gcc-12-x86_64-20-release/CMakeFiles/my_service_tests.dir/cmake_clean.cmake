file(REMOVE_RECURSE
  "CMakeFiles/my_service_tests.dir/tests/main.cpp.o"
  "CMakeFiles/my_service_tests.dir/tests/main.cpp.o.d"
  "CMakeFiles/my_service_tests.dir/tests/word_count_test.cpp.o"
  "CMakeFiles/my_service_tests.dir/tests/word_count_test.cpp.o.d"
  "my_service_tests"
  "my_service_tests.pdb"
  "my_service_tests[1]_tests.cmake"
)

# Per-language clean rules from dependency scanning.
foreach(lang CXX)
  include(CMakeFiles/my_service_tests.dir/cmake_clean_${lang}.cmake OPTIONAL)
endforeach()

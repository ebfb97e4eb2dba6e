file(REMOVE_RECURSE
  "CMakeFiles/counting.dir/src/word_count.cpp.o"
  "CMakeFiles/counting.dir/src/word_count.cpp.o.d"
  "libcounting.a"
  "libcounting.pdb"
)

# Per-language clean rules from dependency scanning.
foreach(lang CXX)
  include(CMakeFiles/counting.dir/cmake_clean_${lang}.cmake OPTIONAL)
endforeach()

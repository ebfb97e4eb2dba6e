file(REMOVE_RECURSE
  "CMakeFiles/my_service.dir/src/main.cpp.o"
  "CMakeFiles/my_service.dir/src/main.cpp.o.d"
  "my_service"
  "my_service.pdb"
)

# Per-language clean rules from dependency scanning.
foreach(lang CXX)
  include(CMakeFiles/my_service.dir/cmake_clean_${lang}.cmake OPTIONAL)
endforeach()

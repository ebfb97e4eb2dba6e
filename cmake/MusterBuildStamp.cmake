# SPDX-License-Identifier: BSL-1.0
# Which build of muster a library is: a hash of all sources that decide what lies in shared memory and how it is used.
# Processes that share a domain without being the same program compare it (docs/formats/join.md).

# The files of the components below `root`, as paths from there, in one order everywhere.
function(muster_files_of components root output)
  list(TRANSFORM components REPLACE "(.+)" "${root}/\\1/include/*.?pp;${root}/\\1/src/*.?pp;${root}/\\1/src/*.cu" OUTPUT_VARIABLE patterns)
  if(CMAKE_SCRIPT_MODE_FILE)
    file(GLOB_RECURSE files RELATIVE ${root} ${patterns})
  else()
    file(GLOB_RECURSE files RELATIVE ${root} CONFIGURE_DEPENDS ${patterns})
  endif()
  list(SORT files)
  set(${output} ${files} PARENT_SCOPE)
endfunction()

# Run as a script: writes OUTPUT for the COMPONENTS below ROOT.
if(CMAKE_SCRIPT_MODE_FILE)
  muster_files_of("${COMPONENTS}" ${ROOT} files)
  set(hashes "")
  foreach(each IN LISTS files)
    file(SHA256 ${ROOT}/${each} hash)
    string(APPEND hashes "${each} ${hash}\n")
  endforeach()
  string(SHA256 whole "${hashes}")
  string(SUBSTRING ${whole} 0 32 hash)
  file(WRITE ${OUTPUT} "// SPDX-License-Identifier: BSL-1.0
// Made by cmake/MusterBuildStamp.cmake.
#include \"build_stamp.hpp\"

namespace muster::detail {

const char* source_hash() noexcept { return \"${hash}\"; }

}  // namespace muster::detail
")
  return()
endif()

# muster_build_stamp(TARGET COMPONENTS…): adds to the target a source with the hash of those components, which is
# written anew when one of their files has changed.
function(muster_build_stamp target)
  set(components ${ARGN})
  muster_files_of("${components}" ${PROJECT_SOURCE_DIR} files)
  list(TRANSFORM files PREPEND ${PROJECT_SOURCE_DIR}/)
  set(script ${PROJECT_SOURCE_DIR}/cmake/MusterBuildStamp.cmake)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/source_hash.cpp)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DOUTPUT=${output} "-DCOMPONENTS=${components}" -P ${script}
    DEPENDS ${script} ${files} VERBATIM)
  target_sources(${target} PRIVATE ${output})
  target_include_directories(${target} PRIVATE src)
  # By itself: a program that brings one of its own (a test) does not get the library's besides.
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# SPDX-License-Identifier: BSL-1.0
# Headers that many sources include, compiled once for all of them. Not in release builds with warnings: GCC 12 warns
# falsely of std::string there; nor where sources are linted, which is to say what each of them lacks; nor in projects
# with flags of their own.
set(precompile_unless_told ON)
if(MUSTER_LINT OR CMAKE_BUILD_TYPE STREQUAL "Release" OR NOT PROJECT_IS_TOP_LEVEL)
  set(precompile_unless_told OFF)
endif()
option(MUSTER_PRECOMPILE "Compile common headers once" ${precompile_unless_told})

# muster_precompiled(NAME HEADERS … LINK …): a set of headers, for muster_use_precompiled; nothing where headers are not
# compiled once.
function(muster_precompiled name)
  if(NOT MUSTER_PRECOMPILE)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;LINK")
  list(TRANSFORM arg_HEADERS REPLACE "(.+)" "<\\1>")
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/precompiled_${name}.cpp CONTENT "")
  add_library(muster_precompiled_${name} OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/precompiled_${name}.cpp)
  target_link_libraries(muster_precompiled_${name} PRIVATE ${arg_LINK})
  target_precompile_headers(muster_precompiled_${name} PRIVATE ${arg_HEADERS})
endfunction()

# muster_use_precompiled(NAME TARGETS…). Requires: targets of this project, with no flags of their own that change what
# headers mean, and position-independent like the set; sources with such flags skip it.
function(muster_use_precompiled name)
  if(NOT MUSTER_PRECOMPILE)
    return()
  endif()
  foreach(target IN LISTS ARGN)
    target_precompile_headers(${target} REUSE_FROM muster_precompiled_${name})
  endforeach()
endfunction()

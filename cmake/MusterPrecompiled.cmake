# SPDX-License-Identifier: BSL-1.0
# Headers that many small programs include, compiled once for all of them. Not in release builds with warnings: GCC 12
# warns falsely of std::string there; nor where sources are linted, which is to say what each of them lacks.
set(precompile_unless_told ON)
if(MUSTER_LINT OR CMAKE_BUILD_TYPE STREQUAL "Release")
  set(precompile_unless_told OFF)
endif()
option(MUSTER_PRECOMPILE "Compile common headers of examples and tests' programs once" ${precompile_unless_told})

# muster_precompiled(NAME HEADER LINK): a set of headers, for muster_use_precompiled.
function(muster_precompiled name header link)
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/precompiled_${name}.cpp CONTENT "")
  add_library(muster_precompiled_${name} OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/precompiled_${name}.cpp)
  target_link_libraries(muster_precompiled_${name} PRIVATE ${link})
  target_precompile_headers(muster_precompiled_${name} PRIVATE <${header}>)
endfunction()

# muster_use_precompiled(NAME TARGETS…). Requires: programs and static libraries of this project, with no flags of their
# own that change what headers mean.
function(muster_use_precompiled name)
  if(NOT MUSTER_PRECOMPILE)
    return()
  endif()
  foreach(target IN LISTS ARGN)
    target_precompile_headers(${target} REUSE_FROM muster_precompiled_${name})
  endforeach()
endfunction()

# SPDX-License-Identifier: BSL-1.0
# A component is a folder with one library target. It sees the headers of what it links and of nothing else:
# the header file set supplies the include path, so an include from a wrong floor does not compile.
# include/ holds what a program may include, and what templates of that need (detail/). internal/ holds headers for the
# rooms above and for tests: no program finds them, and they are not installed.

# muster_component(NAME  HEADERS …  [OPTIONAL headers…]  SOURCES …  LINK public…  PRIVATE_LINK …)
# OPTIONAL: headers for programs that have another library, which the component itself does not link. The components that
# LINK names are those of MusterComponents.cmake.
# include/muster/*.hpp are for people, who include one header for a room.
# Where several sources are compiled as one (UNITY_BUILD), all of a component are: half of their time is its headers'.
function(muster_component name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;OPTIONAL;SOURCES;LINK;PRIVATE_LINK")
  set(target muster_${name})
  muster_check_needs(${name} ${arg_LINK})
  add_library(${target} ${arg_SOURCES})
  add_library(muster::${name} ALIAS ${target})
  set(details ${arg_HEADERS})
  list(FILTER details INCLUDE REGEX ^detail/)
  list(FILTER arg_HEADERS EXCLUDE REGEX ^detail/)
  list(APPEND details ${arg_OPTIONAL})
  list(TRANSFORM details PREPEND include/muster/${name}/)
  list(TRANSFORM arg_HEADERS PREPEND include/muster/${name}/)
  file(GLOB_RECURSE unnamed RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} include/muster/${name}/*.hpp)
  list(REMOVE_ITEM unnamed ${arg_HEADERS} ${details})
  if(unnamed)
    message(FATAL_ERROR "${unnamed}: not among the HEADERS of '${name}', so it would not be installed")
  endif()
  file(GLOB umbrellas RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS include/muster/*.hpp)
  target_sources(${target} PUBLIC
    FILE_SET HEADERS BASE_DIRS include FILES ${arg_HEADERS} ${umbrellas}
    FILE_SET details TYPE HEADERS BASE_DIRS include FILES ${details})
  target_compile_features(${target} PUBLIC cxx_std_20)
  muster_internal_headers(${name} ${arg_LINK} ${arg_PRIVATE_LINK})
  target_link_libraries(${target} PUBLIC ${arg_LINK} PRIVATE ${arg_PRIVATE_LINK})
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF CXX_CLANG_TIDY "${MUSTER_LINT}"
    UNITY_BUILD_BATCH_SIZE 0
    VERIFY_INTERFACE_HEADER_SETS ${MUSTER_VERIFY_HEADERS} INTERFACE_HEADER_SETS_TO_VERIFY HEADERS)
  muster_use_precompiled(standard ${target})
  muster_compile_by_default(${target})
  if(MUSTER_INSTALL)
    muster_install_component(${name})
  elseif(NOT PROJECT_IS_TOP_LEVEL)
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)  # the program builds what it links
  endif()
endfunction()

# Fails where the components among `linked` are not those that MusterComponents.cmake says.
function(muster_check_needs name)
  set(linked ${ARGN})
  list(FILTER linked INCLUDE REGEX "^muster::")
  list(TRANSFORM linked REPLACE "^muster::" "")
  if(NOT "${linked}" STREQUAL "${muster_needs_${name}}")
    message(FATAL_ERROR "'${name}' links '${linked}', but MusterComponents.cmake says that it needs '${muster_needs_${name}}'")
  endif()
endfunction()

# Target muster_NAME_internal: the internal headers of a component, and those of what it links.
function(muster_internal_headers name)
  set(internal muster_${name}_internal)
  add_library(${internal} INTERFACE)
  target_include_directories(${internal} INTERFACE ${CMAKE_CURRENT_SOURCE_DIR}/internal)
  foreach(below IN LISTS ARGN)
    string(REGEX REPLACE "^muster::(.+)$" "muster_\\1_internal" below ${below})
    if(below MATCHES "_internal$")
      target_link_libraries(${internal} INTERFACE ${below})
    endif()
  endforeach()
  target_include_directories(muster_${name} PRIVATE
    $<BUILD_INTERFACE:$<TARGET_PROPERTY:${internal},INTERFACE_INCLUDE_DIRECTORIES>>)
endfunction()

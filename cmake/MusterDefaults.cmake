# SPDX-License-Identifier: BSL-1.0
# What is built where nothing is said: the libraries alone, optimised. Tests, examples and benchmarks are the presets'.

set(MUSTER_COMPONENTS "" CACHE STRING "The components to build, as pool;device; with them come those that they need. Empty: all")
option(MUSTER_BUILD_TESTS "Build the tests" OFF)
option(MUSTER_BUILD_EXAMPLES "Build the examples" OFF)
option(MUSTER_BUILD_BENCHMARKS "Build the benchmarks" OFF)
option(MUSTER_BUILD_FUZZERS "Build the fuzzers, which need Clang" OFF)
option(MUSTER_INSTALL "Install the libraries, their headers and what finds them" ${PROJECT_IS_TOP_LEVEL})
option(MUSTER_DEBIAN "Make Debian packages by cpack" OFF)
option(MUSTER_UNITY "Compile the sources of each component as one, which takes a third of the time" ON)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
  message(STATUS "muster: CMAKE_BUILD_TYPE was not given; it is Release")
endif()

# Sets VARIABLE to the components that are built, from the lowest to the highest.
function(muster_wanted_components variable)
  foreach(each IN LISTS MUSTER_COMPONENTS)
    if(NOT each IN_LIST muster_all_components)
      list(JOIN muster_all_components ", " names)
      message(FATAL_ERROR "MUSTER_COMPONENTS has '${each}', which is none; the components are ${names}")
    endif()
  endforeach()
  set(wanted ${MUSTER_COMPONENTS})
  if(NOT wanted)
    set(wanted ${muster_all_components})
  elseif(MUSTER_BUILD_TESTS OR MUSTER_BUILD_EXAMPLES OR MUSTER_BUILD_BENCHMARKS OR MUSTER_BUILD_FUZZERS)
    message(FATAL_ERROR "MUSTER_COMPONENTS is '${MUSTER_COMPONENTS}', but tests, examples, benchmarks and fuzzers take all "
      "components: leave it empty, or switch MUSTER_BUILD_TESTS, MUSTER_BUILD_EXAMPLES, MUSTER_BUILD_BENCHMARKS and "
      "MUSTER_BUILD_FUZZERS off")
  endif()
  muster_with_needs(wanted ${wanted})
  set(${variable} ${wanted} PARENT_SCOPE)
endfunction()

# Fails where a component that was asked for by name is not among those that are built.
function(muster_check_requested)
  foreach(each IN LISTS MUSTER_COMPONENTS)
    if(NOT each IN_LIST ARGN)
      message(FATAL_ERROR "MUSTER_COMPONENTS has '${each}', but what it takes was not found: see MUSTER_CUDA and MUSTER_NCCL")
    endif()
  endforeach()
endfunction()

# What a component's sources are compiled with besides what a program says: where its build has no type, it is optimised
# all the same, because the program cannot be faster than the library.
function(muster_compile_by_default target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:>:-O2>)
  if(MUSTER_UNITY AND NOT DEFINED CMAKE_UNITY_BUILD)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # It takes what other sources of the component declare for what headers declare.
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endif()
  endif()
endfunction()

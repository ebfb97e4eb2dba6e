# SPDX-License-Identifier: BSL-1.0
# Builds and runs the outside program, HOW = installed or subdirectory, in an empty folder WORK, with no flags of ours.
# Also given: SOURCE and BUILD of this tree, COMPILER.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed (${status}): ${ARGN}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
if(HOW STREQUAL installed)
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
  set(where -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_BUILD_TYPE=Debug)
else()
  # All of the library is compiled once more, without debug information, and as a program that wants a unity build has it.
  set(where -DMUSTER_SOURCE=${SOURCE} -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16)
endif()
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/tests/package/consumer -B ${WORK}/build
  -DCMAKE_CXX_COMPILER=${COMPILER} ${where})
if(NOT output MATCHES "link options of muster: [^\n]*--build-id=sha1")
  message(FATAL_ERROR "the target does not ask for a build-id:\n${output}")
endif()
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer)
if(NOT output MATCHES "sum of squares: 14")
  message(FATAL_ERROR "unexpected output: ${output}")
endif()
file(REMOVE_RECURSE ${WORK})

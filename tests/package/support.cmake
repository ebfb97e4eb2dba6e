# SPDX-License-Identifier: BSL-1.0
# Read by the tests of the package, which run as scripts: SOURCE and BUILD of this tree, COMPILER and HAS_CUDA are given,
# and WORK, an empty folder that is removed at the end.

# Runs a command, which has to succeed; what it printed is in `output`.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed (${status}): ${ARGN}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# As run, for a command that has to fail.
function(run_in_vain)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(status EQUAL 0)
    message(FATAL_ERROR "did not fail: ${ARGN}\n${output}")
  endif()
  string(REGEX REPLACE "[ \n]+" " " output "${output}")  # CMake breaks lines
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect_output text)
  if(NOT output MATCHES "${text}")
    message(FATAL_ERROR "'${text}' is missing in: ${output}")
  endif()
endfunction()

# configure PROJECT NAME …: CMake of that project below tests/package or of this tree, into WORK/NAME.
macro(configure project name)
  run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/${project} -B ${WORK}/${name} -DCMAKE_CXX_COMPILER=${COMPILER} ${ARGN})
endmacro()

# Builds the project to copy and runs its tests and its program.
function(try_template)
  configure(examples/template template -DCMAKE_EXPORT_COMPILE_COMMANDS=ON ${ARGN})
  run(${CMAKE_COMMAND} --build ${WORK}/template)
  run(${CMAKE_CTEST_COMMAND} --test-dir ${WORK}/template --output-on-failure --no-tests=error)
  expect_output("100% tests passed, 0 tests failed out of 3")
  file(WRITE ${WORK}/text "to be or not to be")
  run(${WORK}/template/my_service ${WORK}/text)
  expect_output("^2 be\n2 to\n1 not\n1 or\n$")
endfunction()

# Builds the small outside program and runs it.
function(try_consumer)
  configure(tests/package/consumer consumer ${ARGN})
  expect_output("link options of muster: [^\n]*--build-id=sha1")
  run(${CMAKE_COMMAND} --build ${WORK}/consumer)
  run(${WORK}/consumer/consumer)
  expect_output("sum of squares: 14")
endfunction()

set(no_cuda -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})

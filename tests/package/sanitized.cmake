# SPDX-License-Identifier: BSL-1.0
# The template with the sanitizers that its presets have, muster compiled with them too.
include(${CMAKE_CURRENT_LIST_DIR}/support.cmake)
file(COPY ${SOURCE}/examples/template DESTINATION ${WORK})
foreach(preset asan tsan)
  run(${CMAKE_COMMAND} --preset ${preset} -S ${WORK}/template -DCMAKE_CXX_COMPILER=clang++-19
    -DMUSTER_GIT=here -DFETCHCONTENT_SOURCE_DIR_MUSTER=${SOURCE})
  run(${CMAKE_COMMAND} --build ${WORK}/template/out/${preset})
  run(${CMAKE_COMMAND} -E chdir ${WORK}/template ${CMAKE_CTEST_COMMAND} --preset ${preset})
  expect_output("100% tests passed, 0 tests failed out of 3")
endforeach()
file(REMOVE_RECURSE ${WORK})

# SPDX-License-Identifier: BSL-1.0
# A program that has this tree as a subdirectory. All of the library but its optional parts is compiled once more, and as
# a program that wants a unity build has it.
include(${CMAKE_CURRENT_LIST_DIR}/support.cmake)
try_consumer(-DMUSTER_SOURCE=${SOURCE} -DMUSTER_CUDA=OFF -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16)
file(REMOVE_RECURSE ${WORK})

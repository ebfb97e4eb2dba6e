# SPDX-License-Identifier: BSL-1.0
# A program that is optimised as a whole when it is linked, with muster in it.
include(${CMAKE_CURRENT_LIST_DIR}/support.cmake)
try_template(-DMUSTER_GIT=here -DFETCHCONTENT_SOURCE_DIR_MUSTER=${SOURCE} -DCMAKE_DISABLE_FIND_PACKAGE_muster=ON
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON)
file(REMOVE_RECURSE ${WORK})

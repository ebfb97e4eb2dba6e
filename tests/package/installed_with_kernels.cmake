# SPDX-License-Identifier: BSL-1.0
# This build, installed, for a program with kernels of its own.
include(${CMAKE_CURRENT_LIST_DIR}/support.cmake)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
try_consumer(-DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_BUILD_TYPE=Debug -DKERNELS=ON)
run(${WORK}/consumer/gpu_consumer)
expect_output("sum on the GPU: 6|no GPU: .+")
file(REMOVE_RECURSE ${WORK})

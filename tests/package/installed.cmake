# SPDX-License-Identifier: BSL-1.0
# This build, installed: found by CMake and by pkg-config, a component at a time.
include(${CMAKE_CURRENT_LIST_DIR}/support.cmake)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
set(where -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_BUILD_TYPE=Debug ${no_cuda})  # also where muster was built with it

# find_components COMPONENTS …: they are found, and bring nothing else than they need.
function(find_components components)
  file(REMOVE_RECURSE ${WORK}/components)
  configure(tests/package/components components ${where} "-DCOMPONENTS=${components}" ${ARGN})
endfunction()
# miss_components COMPONENTS …: they are not found.
function(miss_components components)
  file(REMOVE_RECURSE ${WORK}/components)
  run_in_vain(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/tests/package/components -B ${WORK}/components
    -DCMAKE_CXX_COMPILER=${COMPILER} ${where} "-DCOMPONENTS=${components}" ${ARGN})
  set(output "${output}" PARENT_SCOPE)
endfunction()

find_components(pool -DABSENT=device,collectives,rpc,parallel,cuda)
find_components(device -DABSENT=queue,pool)
find_components(pool,rpc,parallel,params -DOPTIONAL=cuda)
find_components(pool -DOPTIONAL=hosts)
find_components(pool -DVERSION=0.1)
miss_components(pool -DVERSION=0.2)
miss_components(pool -DVERSION=1)
miss_components(pool,pools)
expect_output("no component 'pools' in this installation of muster; it has: base, memory, ")
miss_components(cuda)
if(HAS_CUDA)
  expect_output("CUDAToolkit called with REQUIRED")
  find_components(cuda -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=OFF)
else()
  expect_output("no component 'cuda' in this installation.*see MUSTER_CUDA")
endif()

try_consumer(${where})
try_template(${where})

file(GLOB_RECURSE pc ${WORK}/prefix/*/muster-pool.pc)
cmake_path(GET pc PARENT_PATH pc)
run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pc} pkg-config --cflags --libs muster-pool)
string(STRIP "${output}" flags)
separate_arguments(flags UNIX_COMMAND "${flags}")
run(${COMPILER} -std=c++20 ${SOURCE}/examples/quickstart.cpp ${flags} -o ${WORK}/quickstart)
run(${WORK}/quickstart)
expect_output("^5\n1 4 9 16 \n.*SIGABRT")
file(REMOVE_RECURSE ${WORK})

# SPDX-License-Identifier: BSL-1.0
# How kernels are compiled and put into a program. Installed with the package: for programs with kernels of their own,
# too. CMake's CUDA language is not used: it would want a compiler that works before anything else is configured, and
# CMake 3.25 knows no C++20 for nvcc 13.

# muster_cuda_image(TARGET KERNELS SOURCE): compiles KERNELS, a .cu file, with the include path of TARGET, and defines
# MUSTER_CUDA_IMAGE, the path of what comes of it, in SOURCE, which is one of TARGET's and embeds it
# (muster/cuda/embed.hpp). For the devices of MUSTER_CUDA_ARCHITECTURES, by default those that the library is for, with
# nvcc's options MUSTER_CUDA_FLAGS.
function(muster_cuda_image target kernels source)
  if(NOT CUDAToolkit_NVCC_EXECUTABLE)
    find_package(CUDAToolkit 12.4 REQUIRED)
  endif()
  if(NOT CUDAToolkit_NVCC_EXECUTABLE)
    message(FATAL_ERROR "muster_cuda_image needs nvcc, and the CUDA Toolkit in ${CUDAToolkit_INCLUDE_DIRS} has none. "
      "Install NVIDIA's package cuda-nvcc, or say where it is by -DCUDAToolkit_ROOT=…")
  endif()
  if(NOT MUSTER_CUDA_ARCHITECTURES)
    get_property(MUSTER_CUDA_ARCHITECTURES GLOBAL PROPERTY MUSTER_CUDA_ARCHITECTURES)
  endif()
  find_program(MUSTER_CUDA_HOST_COMPILER g++ DOC "The g++ whose headers kernels are compiled with" REQUIRED)
  cmake_path(GET kernels STEM name)
  set(image ${CMAKE_CURRENT_BINARY_DIR}/${name}.fatbin)
  set(codes)
  list(GET MUSTER_CUDA_ARCHITECTURES -1 newest)
  foreach(each IN LISTS MUSTER_CUDA_ARCHITECTURES)
    if(each MATCHES "^(.+)-virtual$")
      list(APPEND codes -gencode=arch=compute_${CMAKE_MATCH_1},code=compute_${CMAKE_MATCH_1})
    elseif(each STREQUAL newest)
      list(APPEND codes -gencode=arch=compute_${each},code=[sm_${each},compute_${each}])
    else()
      list(APPEND codes -gencode=arch=compute_${each},code=sm_${each})
    endif()
  endforeach()
  set(warnings)
  if(CMAKE_CXX_FLAGS MATCHES "-Werror")
    set(warnings -Werror all-warnings)
  endif()
  separate_arguments(flags UNIX_COMMAND "${MUSTER_CUDA_FLAGS}")
  # Products are not fused with sums: the results have the bits that the CPU's have.
  add_custom_command(OUTPUT ${image}
    COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} -fatbin -std=c++20 --expt-relaxed-constexpr -fmad=false ${codes}
      -Xfatbin=-compress-all ${warnings} ${flags} -ccbin ${MUSTER_CUDA_HOST_COMPILER}
      "-I$<JOIN:$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>,;-I>"
      -MD -MF ${image}.d -MT ${image} -o ${image} ${CMAKE_CURRENT_SOURCE_DIR}/${kernels}
    DEPENDS ${kernels} DEPFILE ${image}.d COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Compiling the kernels of ${target}")
  set_source_files_properties(${source} PROPERTIES
    OBJECT_DEPENDS ${image} COMPILE_DEFINITIONS MUSTER_CUDA_IMAGE="${image}" SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

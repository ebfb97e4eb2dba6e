# SPDX-License-Identifier: BSL-1.0
# Whether muster::cuda is built.

set(MUSTER_CUDA AUTO CACHE STRING "Build muster::cuda, which takes the CUDA Toolkit: AUTO (where it is found), ON or OFF")
set_property(CACHE MUSTER_CUDA PROPERTY STRINGS AUTO ON OFF)
include(MusterCudaImage)
set(MUSTER_CUDA_ARCHITECTURES "80;90" CACHE STRING
  "Compute capabilities that kernels are compiled for; drivers of newer devices compile the last one's PTX, and 80-virtual is PTX only")
set(MUSTER_CUDA_FLAGS "" CACHE STRING "More options for nvcc")

# Sets MUSTER_HAS_CUDA: `components` has to name it. A macro, because the package's variables are its caller's too.
macro(muster_find_cuda)
  set(MUSTER_HAS_CUDA OFF)
  if(MUSTER_CUDA AND "cuda" IN_LIST components)  # AUTO is true, too
    find_package(CUDAToolkit 12.4 QUIET)
    # Only its preprocessor is used, so it is not the one that everything else is compiled by.
    find_program(MUSTER_CUDA_HOST_COMPILER g++ DOC "The g++ whose headers kernels are compiled with")
    if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE AND MUSTER_CUDA_HOST_COMPILER)
      set(MUSTER_HAS_CUDA ON)
      message(STATUS "muster::cuda: CUDA Toolkit ${CUDAToolkit_VERSION}, for ${MUSTER_CUDA_ARCHITECTURES}")
    else()
      muster_lacks_cuda()
    endif()
  endif()
endmacro()

function(muster_lacks_cuda)
  if(CUDAToolkit_VERSION AND CUDAToolkit_VERSION VERSION_LESS 12.4)
    set(found ": ${CUDAToolkit_VERSION} is too old")
  elseif(CUDAToolkit_FOUND AND NOT CUDAToolkit_NVCC_EXECUTABLE)
    set(found ": in ${CUDAToolkit_INCLUDE_DIRS} there is one without nvcc")
  elseif(CUDAToolkit_FOUND)
    set(found ", because g++ is not")
  endif()
  if(MUSTER_CUDA STREQUAL "AUTO")
    message(STATUS "muster::cuda: not built; no CUDA Toolkit 12.4 or newer with nvcc was found${found}")
    return()
  endif()
  message(FATAL_ERROR "MUSTER_CUDA is ${MUSTER_CUDA}, but no CUDA Toolkit 12.4 or newer with nvcc was found${found}. "
    "Install NVIDIA's packages cuda-nvcc and cuda-cudart-dev and g++, say where they are by -DCUDAToolkit_ROOT=…, "
    "or set MUSTER_CUDA to OFF.")
endfunction()

# Sets VARIABLE to the oldest compute capability that kernels are compiled for, 80 for 8.0.
function(muster_least_cuda_capability variable)
  set(least)
  foreach(each IN LISTS MUSTER_CUDA_ARCHITECTURES)
    if(NOT each MATCHES "^([0-9]+)[af]?(-virtual)?$")
      message(FATAL_ERROR "MUSTER_CUDA_ARCHITECTURES has '${each}', which is no compute capability: 80 is meant for 8.0")
    endif()
    if(NOT least OR CMAKE_MATCH_1 LESS least)
      set(least ${CMAKE_MATCH_1})
    endif()
  endforeach()
  if(NOT least)
    message(FATAL_ERROR "MUSTER_CUDA_ARCHITECTURES is empty: name the compute capabilities of your GPUs, 80 for 8.0")
  endif()
  set(${variable} ${least} PARENT_SCOPE)
endfunction()

# SPDX-License-Identifier: BSL-1.0
# Whether muster::nccl is built: it takes muster::cuda and NCCL's header. Its library is found at run time.

set(MUSTER_NCCL AUTO CACHE STRING "Build muster::nccl, which takes muster::cuda and nccl.h: AUTO (where they are found), ON or OFF")
set_property(CACHE MUSTER_NCCL PROPERTY STRINGS AUTO ON OFF)

# Sets MUSTER_HAS_NCCL, and MUSTER_NCCL_INCLUDE. After muster_find_cuda.
function(muster_find_nccl)
  set(MUSTER_HAS_NCCL OFF PARENT_SCOPE)
  if(NOT MUSTER_NCCL OR NOT "nccl" IN_LIST components)  # AUTO is true, too
    return()
  endif()
  set(found "muster::cuda is not built")
  if(MUSTER_HAS_CUDA)
    find_path(MUSTER_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} DOC "The folder of nccl.h")
    set(found "nccl.h was not found")
    if(MUSTER_NCCL_INCLUDE)
      file(STRINGS ${MUSTER_NCCL_INCLUDE}/nccl.h version REGEX "^#define NCCL_(MAJOR|MINOR) +[0-9]+")
      string(REGEX REPLACE "[^0-9;]" "" version "${version}")
      string(REPLACE ";" "." version "${version}")
      set(found "the nccl.h in ${MUSTER_NCCL_INCLUDE} is of version ${version}")
      if(version VERSION_GREATER_EQUAL 2.18)
        set(MUSTER_HAS_NCCL ON PARENT_SCOPE)
        message(STATUS "muster::nccl: ${MUSTER_NCCL_INCLUDE}/nccl.h of NCCL ${version}")
        return()
      endif()
    endif()
  endif()
  if(MUSTER_NCCL STREQUAL "AUTO")
    message(STATUS "muster::nccl: not built; ${found}")
    return()
  endif()
  message(FATAL_ERROR "MUSTER_NCCL is ${MUSTER_NCCL}, but ${found}. Install NCCL 2.18 or newer with its header "
    "(NVIDIA's package libnccl-dev) and the CUDA Toolkit, say where nccl.h is by -DMUSTER_NCCL_INCLUDE=…, or set "
    "MUSTER_NCCL to OFF.")
endfunction()

# SPDX-License-Identifier: BSL-1.0
# Which components there are, which of them are built, and what each takes. An installed package reads the same list.

# From the lowest to the highest: each takes only what stands before it.
set(muster_all_components base memory serialize async device cuda queue collectives nccl process pool rpc parallel params)
set(muster_components_on_cuda cuda nccl)

set(muster_needs_base)
set(muster_needs_memory base)
set(muster_needs_serialize memory)
set(muster_needs_async serialize)
set(muster_needs_device memory serialize)
set(muster_needs_cuda device)
set(muster_needs_queue memory serialize async)
set(muster_needs_collectives async device queue)
set(muster_needs_nccl collectives cuda)
set(muster_needs_process queue)
set(muster_needs_pool process)
set(muster_needs_rpc pool)
set(muster_needs_parallel pool collectives)
set(muster_needs_params rpc parallel)

set(muster_folder_of_cuda device/cuda)
set(muster_folder_of_nccl collectives/nccl)

# Sets VARIABLE to the components NAMES with all that they need, from the lowest to the highest.
function(muster_with_needs variable)
  set(found ${ARGN})
  set(highest_first ${muster_all_components})
  list(REVERSE highest_first)
  foreach(each IN LISTS highest_first)
    if(each IN_LIST found)
      list(APPEND found ${muster_needs_${each}})
    endif()
  endforeach()
  set(ordered ${muster_all_components})
  foreach(each IN LISTS muster_all_components)
    if(NOT each IN_LIST found)
      list(REMOVE_ITEM ordered ${each})
    endif()
  endforeach()
  set(${variable} ${ordered} PARENT_SCOPE)
endfunction()

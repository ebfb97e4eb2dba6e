# SPDX-License-Identifier: BSL-1.0
# cmake -DTRACE=file -P kalman_trace.cmake: the file is an array with the steps of two ranks, and five messages.
file(READ "${TRACE}" trace)
string(JSON count LENGTH "${trace}")
math(EXPR last "${count} - 1")
foreach(index RANGE ${last})
  string(JSON phase GET "${trace}" ${index} ph)
  string(JSON rank GET "${trace}" ${index} tid)
  math(EXPR found_${phase}_${rank} "0${found_${phase}_${rank}} + 1")
endforeach()
set(found "${found_M_1} ${found_M_2}, ${found_X_1} ${found_X_2}, ${found_s_1} ${found_s_2}, ${found_f_1} ${found_f_2}")
if(NOT found STREQUAL "1 1, 17 14, 4 1, 1 4")
  message(FATAL_ERROR "${TRACE} has ${found}; expected: names 1 1, steps 17 14, sends 4 1, receives 1 4")
endif()

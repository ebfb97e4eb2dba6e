# SPDX-License-Identifier: BSL-1.0
# cmake -DPICTURE=file -P frames_gray.cmake: four columns of 32 and four of 64, sketched: each pixel has one value in all
# three colours, faded, and the edge in the middle is inked.
file(READ "${PICTURE}" picture HEX)
set(row "909090909090909090" "474747" "4f4f4f" "a0a0a0a0a0a0a0a0a0")
string(CONCAT row ${row})
string(HEX "P6\n8 2\n255\n" header)
if(NOT picture STREQUAL "${header}${row}${row}")
  message(FATAL_ERROR "${PICTURE} holds ${picture}; expected: ${header}${row}${row}")
endif()

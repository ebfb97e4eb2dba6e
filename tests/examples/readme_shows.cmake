# SPDX-License-Identifier: BSL-1.0
# The README shows PROGRAM as it is, after its opening comments.
file(READ ${README} readme)
file(READ ${PROGRAM} program)
string(FIND "${program}" "#include" begin)
string(SUBSTRING "${program}" ${begin} -1 shown)
string(FIND "${readme}" "```cpp\n${shown}```" found)
if(found EQUAL -1)
  message(FATAL_ERROR "README.md does not show ${PROGRAM} word for word")
endif()

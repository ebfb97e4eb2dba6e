file(REMOVE_RECURSE
  "libcounting.a"
)

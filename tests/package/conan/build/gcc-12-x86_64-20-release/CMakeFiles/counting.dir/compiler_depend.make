# Empty compiler generated dependencies file for counting.
# This may be replaced when dependencies are built.

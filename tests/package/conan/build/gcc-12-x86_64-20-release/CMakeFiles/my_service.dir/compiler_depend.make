# Empty compiler generated dependencies file for my_service.
# This may be replaced when dependencies are built.

# Empty compiler generated dependencies file for my_service_tests.
# This may be replaced when dependencies are built.

# SPDX-License-Identifier: BSL-1.0
# What is installed: each component by itself, so that a program finds, links and ships those alone that it names, through
# CMake (find_package) or pkg-config. In two parts, as distributions split: `runtime` has the shared libraries, if they
# are shared, and `development` what programs are built with; those of components on CUDA have names of their own.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(muster_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/muster)
# Before 1.0 any minor version may change what programs were built against.
set(muster_soversion ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(muster_soversion 0.${PROJECT_VERSION_MINOR})
endif()

# Sets the names of the parts that a component is installed with.
macro(muster_parts_of name)
  set(runtime runtime)
  set(development development)
  if(${name} IN_LIST muster_components_on_cuda)
    set(runtime cuda_runtime)
    set(development cuda_development)
  endif()
endmacro()

function(muster_install_component name)
  muster_parts_of(${name})
  set_target_properties(muster_${name} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${muster_soversion})
  if(NOT DEFINED CMAKE_INSTALL_RPATH)
    set_target_properties(muster_${name} PROPERTIES INSTALL_RPATH "\$ORIGIN")  # they find one another, wherever they are
  endif()
  install(TARGETS muster_${name} EXPORT muster_${name}
    LIBRARY COMPONENT ${runtime} NAMELINK_COMPONENT ${development}
    ARCHIVE COMPONENT ${development}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT ${development}
    FILE_SET details DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT ${development})
  install(EXPORT muster_${name} NAMESPACE muster:: DESTINATION ${muster_package_folder} COMPONENT ${development})
endfunction()

# muster-NAME.pc, when all of the target is known. What a program needs besides the other components stands in the target: link options, and the folders
# of outside headers where compilers do not look by themselves.
function(muster_install_pkg_config name)
  muster_parts_of(${name})
  set(needs ${muster_needs_${name}})
  list(TRANSFORM needs REPLACE "_" "-")
  list(TRANSFORM needs PREPEND muster-)
  list(JOIN needs ", " needs)
  set(root "\${pcfiledir}/../..")
  if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    file(RELATIVE_PATH root /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
    string(REGEX REPLACE "/$" "" root "\${pcfiledir}/${root}")
  endif()
  get_target_property(options muster_${name} INTERFACE_LINK_OPTIONS)
  set(link_options)
  if(options)
    list(JOIN options " " link_options)
    string(PREPEND link_options " ")
    string(REPLACE "LINKER:" "-Wl," link_options "${link_options}")
  endif()
  set(compile_options)
  muster_outside_folders_of(${name} folders)
  foreach(each IN LISTS folders)
    string(APPEND compile_options " -isystem ${each}")
  endforeach()
  if(name STREQUAL "base")
    string(APPEND compile_options " -pthread")
    string(APPEND link_options " -pthread")
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/muster.pc.in ${PROJECT_BINARY_DIR}/muster-${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/muster-${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT ${development})
endfunction()

# Sets VARIABLE to the folders of outside headers that a program has to be told of.
function(muster_outside_folders_of name variable)
  set(found)
  get_target_property(linked muster_${name} INTERFACE_LINK_LIBRARIES)
  foreach(each IN LISTS linked)
    if(TARGET ${each} AND NOT each MATCHES "^muster::")
      get_target_property(folders ${each} INTERFACE_INCLUDE_DIRECTORIES)
      if(folders)
        list(APPEND found ${folders})
      endif()
    endif()
  endforeach()
  foreach(each IN LISTS found)
    cmake_path(NORMAL_PATH each)
    string(REGEX REPLACE "/$" "" plain "${each}")
    if(each MATCHES "\\$<" OR plain IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
      list(REMOVE_ITEM found ${each})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES found)
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# muster_install_package(COMPONENTS…): what find_package(muster) reads, the license and the pages of documentation.
function(muster_install_package)
  set(MUSTER_COMPONENTS ${ARGN})
  foreach(each IN LISTS MUSTER_COMPONENTS)
    muster_install_pkg_config(${each})
  endforeach()
  configure_package_config_file(cmake/musterConfig.cmake.in ${PROJECT_BINARY_DIR}/musterConfig.cmake
    INSTALL_DESTINATION ${muster_package_folder})
  set(compatible SameMajorVersion)
  if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(compatible SameMinorVersion)
  endif()
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/musterConfigVersion.cmake COMPATIBILITY ${compatible})
  install(FILES ${PROJECT_BINARY_DIR}/musterConfig.cmake ${PROJECT_BINARY_DIR}/musterConfigVersion.cmake
      cmake/MusterComponents.cmake
    DESTINATION ${muster_package_folder} COMPONENT development)
  if("cuda" IN_LIST MUSTER_COMPONENTS)
    install(FILES cmake/MusterCudaImage.cmake DESTINATION ${muster_package_folder} COMPONENT cuda_development)
  endif()
  install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)
  install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT development
    FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN design EXCLUDE)
endfunction()

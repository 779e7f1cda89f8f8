# The installed tree for C++ users: find_package(stoker), then link stoker::stoker.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
get_property(libraries GLOBAL PROPERTY STOKER_LIBRARIES)
add_library(stoker INTERFACE)
target_link_libraries(stoker INTERFACE ${libraries})
add_library(stoker::stoker ALIAS stoker)
install(TARGETS stoker ${libraries} EXPORT stoker-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT stoker-targets NAMESPACE stoker:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/stoker)
# Headers of the tests end in _test.h (tests/install/headers.py).
install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/stoker DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*_test.h" EXCLUDE)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/stoker-config.cmake.in ${PROJECT_BINARY_DIR}/stoker-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/stoker)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/stoker-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/stoker-config.cmake ${PROJECT_BINARY_DIR}/stoker-config-version.cmake
  ${PROJECT_SOURCE_DIR}/cmake/dependencies.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/stoker)
if(STOKER_BUILD_CLI)
  install(TARGETS stoker_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# The presets asan and tsan compile a folder as one translation unit, release compiles eight files as one
# (CMAKE_UNITY_BUILD): that takes about half the time. The preset dev compiles each file alone, and -DCMAKE_UNITY_BUILD=OFF
# does so with any. Two files whose unnamed namespaces share a name do not compile together: rename one, or name it under ALONE, too.

# stoker_library(<folder> SOURCES a.cc b.cc ... ALONE b.cc ... USES base os ... LINKS fmt::fmt ...): one folder, one library.
function(stoker_library folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;ALONE;USES;LINKS" ${ARGN})
  add_library(stoker_${folder} STATIC ${ARG_SOURCES})
  set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_library(stoker::${folder} ALIAS stoker_${folder})
  target_include_directories(stoker_${folder} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
    $<INSTALL_INTERFACE:include>)
  target_compile_features(stoker_${folder} PUBLIC cxx_std_20)
  list(TRANSFORM ARG_USES PREPEND stoker_)
  target_link_libraries(stoker_${folder} PUBLIC ${ARG_USES} PRIVATE $<BUILD_INTERFACE:stoker_warnings> ${ARG_LINKS})
  set_property(TARGET stoker_${folder} PROPERTY EXPORT_NAME ${folder})
  set_property(GLOBAL APPEND PROPERTY STOKER_LIBRARIES stoker_${folder})
endfunction()

# stoker_test(<folder> SOURCES a_test.cc b_test.cc ... ALONE b_test.cc ... LINKS ...): the tests beside the code, one program per folder.
function(stoker_test folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;ALONE;LINKS" ${ARGN})
  if(NOT STOKER_BUILD_TESTS)
    return()
  endif()
  add_executable(${folder}_test ${ARG_SOURCES})
  set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_link_libraries(${folder}_test PRIVATE stoker_${folder} stoker_warnings GTest::gtest_main ${ARG_LINKS})
  # A third less to compile, and what they test is optimised all the same.
  target_compile_options(${folder}_test PRIVATE $<$<CONFIG:Release>:-O1>)
  # What they test has both sanitizers and line numbers in its stacks. In the tests themselves they took a third of their build.
  set(tests_only -fno-sanitize=undefined -fno-sanitize-address-use-after-scope "SHELL:--param asan-instrumentation-with-call-threshold=0")
  target_compile_options(${folder}_test PRIVATE "$<$<STREQUAL:${STOKER_SANITIZE},address>:${tests_only}>" $<$<BOOL:${STOKER_SANITIZE}>:-g0>)
  set_target_properties(${folder}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  set(cache "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/tests/cache")  # not that of the user
  if(NOT STOKER_SANITIZE)
    gtest_discover_tests(${folder}_test TEST_PREFIX ${folder}. DISCOVERY_MODE PRE_TEST
      PROPERTIES TIMEOUT 300 LABELS "fast;${folder}" ENVIRONMENT "${cache}")
    return()
  endif()
  # A process that starts and ends under a sanitizer takes longer than most tests, so a few processes share them.
  set(shards 8)
  math(EXPR last "${shards} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${folder}.${shard} COMMAND ${folder}_test --gtest_brief=1)
    set_tests_properties(${folder}.${shard} PROPERTIES TIMEOUT 900 LABELS "fast;${folder}"
      ENVIRONMENT "${cache};GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard};GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/tests/results/${folder}.${shard}.xml")
  endforeach()
endfunction()

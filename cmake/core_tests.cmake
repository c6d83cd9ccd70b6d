# taeda_core_tests: the tests of src/base, src/core and of the memory and messages of data workers, with
# their sources and nothing above them. `make asan-core` and `make tsan-core` build it in minutes, where
# the whole library takes an hour.
file(GLOB_RECURSE core_sources CONFIGURE_DEPENDS src/base/*.cc src/core/*.cc)
list(APPEND core_sources src/data/block_allocator.cc src/data/shared_area.cc src/data/worker_channel.cc)
file(GLOB_RECURSE core_tests CONFIGURE_DEPENDS tests/base/*_test.cc tests/core/*_test.cc)
list(APPEND core_tests ${CMAKE_SOURCE_DIR}/tests/data/worker_channel_test.cc)
# These make tensors by operators.
list(FILTER core_tests EXCLUDE REGEX "(handover|error|fail_allocation|tensor_str|device_memory|generator|tensor_impl|interrupt)_test")
add_executable(taeda_core_tests EXCLUDE_FROM_ALL ${core_sources} ${core_tests})
target_include_directories(taeda_core_tests PRIVATE include src tests)
target_link_libraries(taeda_core_tests PRIVATE hwy_headers ZLIB::ZLIB Threads::Threads ${CMAKE_DL_LIBS}
  GTest::gtest GTest::gtest_main gomp)
target_compile_definitions(taeda_core_tests PRIVATE TAEDA_WITHOUT_OPERATOR_METHODS
  TAEDA_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
set_target_properties(taeda_core_tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

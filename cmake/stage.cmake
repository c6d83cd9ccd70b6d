# build/python/taeda: the package as Python sees it. Each file of python/taeda is a link to the
# source, so editing one needs no build; the extension module and the type stubs stand beside them.

set(TAEDA_STAGE ${CMAKE_BINARY_DIR}/python/taeda)
file(GLOB_RECURSE python_files CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/python/taeda
  ${CMAKE_SOURCE_DIR}/python/taeda/*.py ${CMAKE_SOURCE_DIR}/python/taeda/*.pyi
  ${CMAKE_SOURCE_DIR}/python/taeda/py.typed
  ${CMAKE_SOURCE_DIR}/python/taeda/_as_torch/*.egg-info/*)

# Links to files that are gone would keep a deleted module alive.
file(GLOB_RECURSE staged LIST_DIRECTORIES false ${TAEDA_STAGE}/*.py ${TAEDA_STAGE}/*.pyi)
foreach(path ${staged})
  if(IS_SYMLINK ${path} AND NOT EXISTS ${path})
    file(REMOVE ${path})
  endif()
endforeach()
foreach(name ${python_files})
  get_filename_component(parent ${TAEDA_STAGE}/${name} DIRECTORY)
  file(MAKE_DIRECTORY ${parent})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/python/taeda/${name} ${TAEDA_STAGE}/${name} SYMBOLIC)
endforeach()

# What operators are made of, as Python.
set(TAEDA_DEFINITIONS ${TAEDA_STAGE}/_decomp/definitions.zip)
set(make_definitions ${CMAKE_SOURCE_DIR}/tools/make_definitions.py)
add_custom_command(OUTPUT ${TAEDA_DEFINITIONS}
  COMMAND ${TAEDA_BUILD_PYTHON} ${make_definitions} --out ${TAEDA_DEFINITIONS}
  DEPENDS ${make_definitions} ${table_files} ${generator_files}
  COMMENT "Making the definitions of operators" VERBATIM)
add_custom_target(taeda_definitions ALL DEPENDS ${TAEDA_DEFINITIONS})

# The type stubs: made anew when the table or one of the Python files that they declare changes.
set(TAEDA_STUBS ${CMAKE_BINARY_DIR}/stubs)
set(make_stubs ${CMAKE_SOURCE_DIR}/tools/make_stubs.py)
add_custom_command(OUTPUT ${TAEDA_STUBS}/_C.pyi
  COMMAND ${TAEDA_BUILD_PYTHON} ${make_stubs} --out ${TAEDA_STUBS} --depfile ${CMAKE_BINARY_DIR}/stubs.d
  COMMAND ${CMAKE_COMMAND} -E copy_directory ${TAEDA_STUBS} ${TAEDA_STAGE}
  DEPENDS ${make_stubs} ${table_files} DEPFILE ${CMAKE_BINARY_DIR}/stubs.d
  COMMENT "Making the type stubs" VERBATIM)
add_custom_target(taeda_stubs ALL DEPENDS ${TAEDA_STUBS}/_C.pyi)

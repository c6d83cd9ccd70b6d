# build/python/taeda: the package as Python sees it. Each file of python/taeda is a link to the
# source, so editing one needs no build; the extension module and generated files stand beside them.

set(TAEDA_STAGE ${CMAKE_BINARY_DIR}/python/taeda)
file(GLOB_RECURSE python_files CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/python/taeda
  ${CMAKE_SOURCE_DIR}/python/taeda/*.py ${CMAKE_SOURCE_DIR}/python/taeda/*.pyi
  ${CMAKE_SOURCE_DIR}/python/taeda/py.typed
  ${CMAKE_SOURCE_DIR}/python/taeda/_as_torch/*.egg-info/*)

# Links to files that are gone would keep a deleted module alive.
file(GLOB_RECURSE staged LIST_DIRECTORIES false ${TAEDA_STAGE}/*.py ${TAEDA_STAGE}/*.pyi)
foreach(path ${staged})
  if(IS_SYMLINK ${path} AND NOT EXISTS ${path} AND NOT path MATCHES "_C.pyi$")
    file(REMOVE ${path})
  endif()
endforeach()
foreach(name ${python_files})
  get_filename_component(folder ${TAEDA_STAGE}/${name} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/python/taeda/${name} ${TAEDA_STAGE}/${name} SYMBOLIC)
endforeach()
# The generator's stub of the extension module; a link to a file that may come later.
if(NOT IS_SYMLINK ${TAEDA_STAGE}/_C.pyi)
  file(MAKE_DIRECTORY ${TAEDA_STAGE})
  file(CREATE_LINK ${CMAKE_BINARY_DIR}/generated/_C.pyi ${TAEDA_STAGE}/_C.pyi SYMBOLIC)
endif()

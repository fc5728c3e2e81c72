# tower_add_plugin(TARGET NAME SOURCES...): libtower_NAME.so, a plug-in (src/device/plugin.h). What it
# needs of the library below the devices is compiled into it, and it shows one function.
set(TOWER_PLUGIN_BASE base/arena.c base/array.c base/c_locale.c base/clock.c base/file.c base/fingerprint.c
    base/groups.c base/log.c base/map.c base/memory.c base/room.c base/status.c base/text.c base/thread.c
    comm/agree.c comm/exchange.c comm/failure.c tensor/attr.c tensor/dtype.c tensor/shape.c tensor/strided.c
    tensor/tensor.c tensor/variant.c tensor/window.c device/backend.c device/contract.c device/device.c device/kernel.c
    device/name.c)
list(TRANSFORM TOWER_PLUGIN_BASE PREPEND ${CMAKE_SOURCE_DIR}/src/)

function(tower_add_plugin target name)
    add_library(${target} MODULE ${ARGN} ${TOWER_PLUGIN_BASE})
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
    target_compile_definitions(${target} PRIVATE TOWER_VERSION="${PROJECT_VERSION}")
    target_compile_options(${target} PRIVATE ${IN_C_LOCALE} $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>)
    target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS} m)
    target_link_options(${target} PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/src/device/plugin.map)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME tower_${name}
                          LINK_DEPENDS ${CMAKE_SOURCE_DIR}/src/device/plugin.map)
endfunction()

# Writes OUTPUT, a C file with the bytes of each of INPUTS, ended by a 0: page.css becomes report_page_css[] and,
# without that 0, report_page_css_size.
#
#     cmake -DOUTPUT=page.c "-DINPUTS=a/page.css;a/page.js" -P embed.cmake
set(text "/* Made by cmake/embed.cmake. */\n#include <stddef.h>\n")
foreach(input ${INPUTS})
    get_filename_component(name ${input} NAME)
    string(REPLACE "." "_" name report_${name})
    file(READ ${input} bytes HEX)
    string(LENGTH "${bytes}" length)
    math(EXPR size "${length} / 2")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(REPEAT "." 100 line) # so that a line of the file has that many letters
    string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
    string(APPEND text "extern const unsigned char ${name}[];\nextern const size_t ${name}_size;\n"
                       "const unsigned char ${name}[] = {\n${bytes}0};\nconst size_t ${name}_size = ${size};\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")

# public_calls.awk - from the public headers, a C function for each public function that calls it with one of its pointers
# missing, for test_nulls.c: so a function that is added is tested without anybody thinking of it.
#
#     static int call_tw_node_name(int missing) { return GIVES_VALUE(tw_node_name(GIVEN(1, const tw_node *, tw_node_p))); }
#     #define CALLS(X) X(tw_node_name, "p") ...          what the arguments are: pointers, outputs, other values

{
    gsub(/\/\*[^*]*\*+([^\/*][^*]*\*+)*\//, " ")
    if (in_comment) {
        if (!sub(/^.*\*\//, " ")) next
        in_comment = 0
    }
    if (sub(/\/\*.*$/, " ")) in_comment = 1
}
/^TW_API / { text = ""; reading = 1 }
reading {
    text = text " " $0
    if (text ~ /;/) { declare(text); reading = 0 }
}
END { print "#define CALLS(X)" calls }

function trim(s) { gsub(/^ +| +$/, "", s); return s }

# The type as part of a name: "const tw_output *" is tw_output_p.
function mangled(type, stars) {
    stars = gsub(/\*/, "", type)
    gsub(/const|struct/, "", type)
    gsub(/ +/, "", type)
    return type (stars ? "_" substr("ppp", 1, stars) : "")
}

function argument(parameter, number, name, type) {
    parameter = trim(parameter)
    if (parameter == "..." || parameter == "void") return ""
    if (parameter ~ /\(\*/) return "NULL"
    match(parameter, /[A-Za-z0-9_]+(\[[A-Za-z0-9_]*\])?$/)
    type = trim(substr(parameter, 1, RSTART - 1))
    name = substr(parameter, RSTART)
    if (name ~ /\[/) type = type " *"
    if (type ~ /\*/) return "GIVEN(" number ", " type ", " mangled(type) ")"
    return "SOME_" mangled(type)
}

function declare(text, name, returned, list, n, i, parts, given, arguments, kinds) {
    sub(/TW_API /, "", text)
    sub(/TW_PRINTF\([^)]*\)/, "", text)
    gsub(/[ \t]+/, " ", text)
    text = trim(text)
    if (text !~ /\(/) { # declared by the type of a callback
        n = split(text, parts, /[ ;]/)
        print "static int call_" parts[2] "(int missing) { return CALLBACK_" parts[1] "(" parts[2] "); }"
        calls = calls " X(" parts[2] ", \"pp\")"
        return
    }
    match(text, /[A-Za-z0-9_]+\(/)
    name = substr(text, RSTART, RLENGTH - 1)
    returned = mangled(substr(text, 1, RSTART - 1))
    list = substr(text, RSTART + RLENGTH)
    sub(/\) ?;.*$/, "", list)
    gsub(/\([^()]*\)/, "(*)", list)        # commas of callbacks' own parameters
    n = split(list, parts, ",")
    for (i = 1; i <= n; i++) {
        given = argument(parts[i], i)
        kinds = kinds (given ~ /^GIVEN/ ? "p" : given == "SOME_tw_output" ? "o" : "v")
        if (given != "") arguments = arguments (arguments == "" ? "" : ", ") given
    }
    print "static int call_" name "(int missing)\n{\n    (void)missing;\n    return GIVES_" \
        (returned == "tw_status" ? "STATUS" : returned == "tw_output" ? "OUTPUT" : returned == "void" ? "NOTHING" : "VALUE") \
        "(" name "(" arguments "));\n}"
    calls = calls " X(" name ", \"" kinds "\")"
}

# Writes rille(1) from what the command says of itself. RILLE: the command; OUTPUT: the file; VERSION.
set(ENV{NO_COLOR} 1)
execute_process(COMMAND ${RILLE} --help OUTPUT_VARIABLE page COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "\n  ([a-z]+)  " rows "${page}")
set(details "")
foreach(row ${rows})
  string(REGEX REPLACE "[^a-z]" "" name "${row}")
  execute_process(COMMAND ${RILLE} ${name} --help OUTPUT_VARIABLE help ERROR_QUIET)
  string(APPEND details "\n.SS rille ${name}\n.nf\n@BEGIN@${help}@END@\n.fi\n")
endforeach()

# A backslash begins a request of roff, and so does a full stop at a line's start.
function(plain variable)
  string(REPLACE "\\" "\\e" text "${${variable}}")
  string(REPLACE "-" "\\-" text "${text}")
  string(REGEX REPLACE "(^|\n)([.'])" "\\1\\\\&\\2" text "${text}")
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()
plain(page)
string(REGEX REPLACE "@(BEGIN|END)@" "" details "${details}")
string(REPLACE "-" "\\-" details "${details}")
file(WRITE ${OUTPUT} ".TH RILLE 1 \"\" \"rille ${VERSION}\" \"User commands\"
.SH NAME
rille \\- rent, stage, train, checkpoint and release from one Lua script
.SH SYNOPSIS
.nf
rille [OPTIONS] FILE [\\-\\-NAME VALUE ..]
rille [OPTIONS] COMMAND ..
rille
.fi
.SH DESCRIPTION
.nf
${page}
.fi
.SH COMMANDS
${details}
.SH FILES
.TP
.I $RILLE_HOME, else ~/.local/share/rille
journal, runs, history of the prompt
.TP
.I ~/.config/rille/providers.json
settings of providers
.SH EXIT STATUS
0: done; 1: the script or the command failed; 2: the command line is invalid; 3: a machine may still be rented;
124: a limit of time; 130: interrupted.
")

cmd_doctor.o: app/cmd_doctor.c app/doctor.h app/app.h app/args.h \
 app/json_out.h app/term.h include/tinygpt.h app/commands.def \
 app/format.h
app/doctor.h:
app/app.h:
app/args.h:
app/json_out.h:
app/term.h:
include/tinygpt.h:
app/commands.def:
app/format.h:

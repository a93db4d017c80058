import Glibc
import ThicketCLI

ThicketCommand.forbidCoreDumps()
let code = await ThicketCommand.run(
    Array(CommandLine.arguments.dropFirst()), environment: ProcessVariables.take(), WhatsZappProgram.program
) { call throws(Failure) in try await ChatCommands.run(call) }
// As `thicket`: a session that a failed command has left open must not end together with the program.
_exit(code)

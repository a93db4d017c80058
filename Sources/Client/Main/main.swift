// The thicket program.
import Glibc
import ThicketCLI

exit(await ThicketCommand.run(Array(CommandLine.arguments.dropFirst()), environment: ThicketCommand.environment()))

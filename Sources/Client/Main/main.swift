// The thicket program.
import Glibc
import ThicketCLI

let code: Int32 = await ThicketCommand.run(
    Array(CommandLine.arguments.dropFirst()), environment: ThicketCommand.environment())
// Threads of a session may still be letting go of libcurl and OpenSSL, whose own exit handlers must not run under them.
// Output goes to the descriptors directly, so nothing is left in a buffer.
_exit(code)

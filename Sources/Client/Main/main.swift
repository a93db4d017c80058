// The thicket program.
import ThicketCLI

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

ThicketCommand.forbidCoreDumps()
let code: Int32 = await ThicketCommand.run(
    Array(CommandLine.arguments.dropFirst()), environment: ProcessVariables.take())
// A command that failed half way may leave a session open. When its thread ends at the moment at which the program
// does, OpenSSL frees what it keeps for the thread twice, there and in its exit handler: the heap breaks. So no exit
// handlers. Output goes to the descriptors directly, so nothing is left in a buffer.
_exit(code)

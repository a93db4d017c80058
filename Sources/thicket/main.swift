import ThicketCLI

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

ThicketCommand.forbidCoreDumps()
let code = await ThicketCommand.run(
    Array(CommandLine.arguments.dropFirst()), environment: ProcessVariables.take())
// A command that failed half way may leave a session open. If its thread ends at the same moment as the program,
// OpenSSL frees its data for the thread twice, there and in its exit handler, which corrupts the heap. So no exit
// handlers run. Output is written to the descriptors directly, so no buffer needs flushing.
_exit(code)

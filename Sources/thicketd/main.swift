// The thicketd program. The main thread stays synchronous: it runs the network loop, and signals reach it as events.
import Glibc
import ThicketServer

exit(Thicketd.run(Array(CommandLine.arguments.dropFirst()), environment: Thicketd.environment()))

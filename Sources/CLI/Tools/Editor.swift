import ThicketPlatform
#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Runs the user's editor on a file.
enum Editor {
    /// `$VISUAL`, else `$EDITOR`, else `vi`; the variables may contain arguments.
    static func command(_ environment: [String: String]) -> String {
        for name in ["VISUAL", "EDITOR"] {
            if let command = environment[name], !command.isEmpty { return command }
        }
        return "vi"
    }

    /// Waits until the editor has ended.
    static func run(_ command: String, _ path: String) async throws(Failure) {
        // The terminal sends Ctrl-C to the editor and to this process; it is meant for the editor.
        var ignoring = sigaction()
        ignoring.__sigaction_handler.sa_handler = SIG_IGN
        var (interrupt, quit): (sigaction, sigaction) = (.init(), .init())
        sigaction(SIGINT, &ignoring, &interrupt)
        sigaction(SIGQUIT, &ignoring, &quit)
        defer {
            sigaction(SIGINT, &interrupt, nil)
            sigaction(SIGQUIT, &quit, nil)
        }
        let status = await OwnThread.run("wait") { start(command, path) }
        guard let status else { throw Failure("the editor '\(command)' could not be started: \(Files.reason())") }
        guard status & 0x7F == 0 else { throw Failure("the editor '\(command)' was ended by signal \(status & 0x7F)") }
        let code = status >> 8 & 0xFF
        guard code == 0 else {
            let hint = code == 127 ? ": there is no such program; set EDITOR" : ""
            throw Failure("the editor '\(command)' ended with code \(code)\(hint)")
        }
    }

    private static func start(_ command: String, _ path: String) -> Int32? {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var defaults = sigset_t()
        sigemptyset(&defaults)
        for number in [SIGINT, SIGQUIT, SIGPIPE] { sigaddset(&defaults, number) }
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
        // The shell splits the value of EDITOR into words; the path is an argument and is never split.
        let words = ["/bin/sh", "-c", command + " \"$1\"", "sh", path]
        var arguments = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var child: pid_t = 0
        let result = posix_spawn(&child, "/bin/sh", nil, &attributes, &arguments, environ)
        guard result == 0 else {
            errno = result
            return nil
        }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0 {
            guard errno == EINTR else { return nil }
        }
        return status
    }
}

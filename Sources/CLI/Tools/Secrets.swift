import ThicketCommandLine
import ThicketCrypto
import ThicketPlatform

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Secrets of a call: typed without echo, read from a file, or taken from the environment. Never arguments.
enum Secrets {
    /// Most bytes of a file with a secret.
    private static let bytesMax = 1 << 16

    /// The token that the call gives; nil: none.
    static func token(_ call: Call) throws(Failure) -> String? {
        guard let path = call.setting("token-file") else { return call.setting("token") }
        let token = try read(path, "token").filter { !$0.isWhitespace }
        guard !token.isEmpty else { throw Failure("\(named(path)) holds no token", .usage) }
        return token
    }

    /// Asks for the token.
    static func askToken() async throws(Failure) -> String {
        let token = try await ask(
            "Token (not shown): ",
            "which token? There is no terminal to ask at: --token-file FILE ('-' for standard input), or the variable "
                + "THICKET_TOKEN, gives one as printed by 'thicketd token create'; --user NAME logs in to an account."
        ).filter { !$0.isWhitespace }
        guard !token.isEmpty else { throw Failure("no token was given, nothing was done", .usage) }
        return token
    }

    /// A password that is sent to the server as it is, and therefore becomes a string once.
    static func password(
        _ call: Call, _ name: String = "password", label: String = "Password: ", isNew: Bool
    ) async throws(Failure) -> String {
        try text(try await secret(call, name, label: label, isNew: isNew), "the password")
    }

    private static func text(_ secret: SecureBytes, _ what: String) throws(Failure) -> String {
        guard let text = secret.withUnsafeBytes({ String(validating: $0, as: UTF8.self) }) else {
            throw Failure("\(what) is not UTF-8", .usage)
        }
        return text
    }

    /// A password that is never a `String`: it is read from the keyboard, a file or the environment into memory that is
    /// wiped.
    ///
    /// - Parameters:
    ///   - name: `password` means `--password-file`, `THICKET_PASSWORD_FILE` and `THICKET_PASSWORD`.
    ///   - label: the prompt at the terminal.
    ///   - isNew: typed twice.
    static func secret(
        _ call: Call, _ name: String = "password", label: String = "Password: ", isNew: Bool
    ) async throws(Failure) -> SecureBytes {
        // The name as words, without the hyphens of an option.
        let words = String(name.map { $0 == "-" ? " " : $0 })
        let password: SecureBytes
        if let path = call.setting(name + "-file") {
            password = withoutLineEnd(try readSecret(path, words))
        } else if let given = call.secret(name) {
            password = given
        } else {
            let lack =
                "there is no terminal to ask for the \(words) at: --\(name)-file FILE ('-' for standard input), or the "
                + "variable \(Call.variable(name)), gives it"
            password = try await asked(label, lack)
            if isNew {
                guard try await asked("Once more: ", lack) == password else {
                    throw Failure("the two differ, nothing was done", .usage)
                }
            }
        }
        guard password.count > 0 else {
            throw Failure("the \(words) is empty, nothing was done", .usage)
        }
        return password
    }

    /// Whether a secret must be typed, since neither a file nor the environment gives it.
    static func isTyped(_ call: Call, _ name: String) -> Bool {
        call.setting(name + "-file") == nil && call.secret(name) == nil
    }

    private static func named(_ path: String) -> String { same(path, "-") ? "standard input" : path }

    private static func read(_ path: String, _ what: String) throws(Failure) -> String {
        try text(try readSecret(path, what), "\(named(path)) with the \(what)")
    }

    /// Words, codes and pieces: from a file, or typed in one line without echo.
    static func lines(_ call: Call, file name: String, label: String) async throws(Failure) -> SecureBytes {
        if let path = call.value(name) { return try readSecret(path, "secret") }
        return try await asked(
            label, "there is no terminal to ask at: --\(name) FILE ('-' for standard input) gives it")
    }

    /// One line of standard input that is kept as text, such as a link.
    static func line(_ what: String) throws(Failure) -> String {
        try read("-", what).filter { !$0.isWhitespace }
    }

    /// The content of a file, a pipe or a named pipe (such as a shell's `<(…)`), read to its end into memory that is
    /// wiped.
    private static func readSecret(_ path: String, _ what: String) throws(Failure) -> SecureBytes {
        let isInput = same(path, "-")
        let file = isInput ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            guard errno != ENOENT else { throw Failure("there is no file \(path) with a \(what)", .usage) }
            throw Failure("\(named(path)) with the \(what) cannot be read: \(Files.reason())", .usage)
        }
        defer { if !isInput { close(file) } }
        switch Files.readSecret(file, bytesMax: bytesMax) {
        case .secret(let secret): return secret
        case .failed(let reason):
            throw Failure("\(named(path)) with the \(what) cannot be read: \(reason)", .usage)
        }
    }

    /// Editors and `echo` end a file with a line feed that is not part of the password.
    private static func withoutLineEnd(_ secret: SecureBytes) -> SecureBytes {
        let count = secret.withUnsafeBytes { bytes in
            var rest = bytes[...]
            if rest.last == 0x0A { rest.removeLast() }
            if rest.last == 0x0D { rest.removeLast() }
            return rest.count
        }
        return secret.part(0..<count)
    }

    private static func ask(_ label: String, _ lack: String) async throws(Failure) -> String {
        try text(try await asked(label, lack), "what was typed")
    }

    static func asked(_ label: String, _ lack: String) async throws(Failure) -> SecureBytes {
        switch await OwnThread.run("wait", { SecretPrompt.askSecret(label) }) {
        case .typed(let secret): return secret
        case .noTerminal: throw Failure(lack, .usage)
        case .cancelled: throw Failure("cancelled, nothing was done")
        }
    }
}

import ThicketCommandLine

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Secrets of a call: typed where nobody sees them, read from a file, or found in the environment. Never arguments.
enum Secrets {
    /// Bytes of a file with a secret.
    private static let bytesMax: Int = 1 << 16

    /// The token of the call's own; nil: none is given.
    static func token(_ call: Call) throws(Failure) -> String? {
        guard let path: String = call.setting("token-file") else { return call.setting("token") }
        let token: String = try read(path, "token").filter { !$0.isWhitespace }
        guard !token.isEmpty else { throw Failure("\(named(path)) holds no token", .usage) }
        return token
    }

    /// The token, typed in.
    static func askToken() async throws(Failure) -> String {
        let token: String = try await ask(
            "Token (not shown): ",
            "which token? There is no terminal to ask at: --token-file FILE ('-' for standard input), or the variable "
                + "THICKET_TOKEN, gives one as printed by 'thicketd token create'; --user NAME logs in to an account."
        ).filter { !$0.isWhitespace }
        guard !token.isEmpty else { throw Failure("no token was given, nothing was done", .usage) }
        return token
    }

    /// A password of a call, from a file, the environment or the keyboard.
    ///
    /// - Parameters:
    ///   - name: `password` stands for `--password-file`, `THICKET_PASSWORD_FILE` and `THICKET_PASSWORD`.
    ///   - label: what is asked at the terminal.
    ///   - isNew: typed twice.
    static func password(
        _ call: Call, _ name: String = "password", label: String = "Password: ", isNew: Bool
    ) async throws(Failure) -> String {
        let password: String
        if let path: String = call.setting(name + "-file") {
            password = withoutLineEnd(try read(path, "password"))
        } else if let given: String = call.setting(name) {
            password = given
        } else {
            let lack: String =
                "there is no terminal to ask for the password at: --\(name)-file FILE ('-' for standard input), or the "
                + "variable \(Call.variable(name)), gives it"
            password = try await ask(label, lack)
            if isNew {
                guard same(try await ask("Once more: ", lack), password) else {
                    throw Failure("the two passwords differ, nothing was done", .usage)
                }
            }
        }
        guard !password.isEmpty else { throw Failure("the password is empty, nothing was done", .usage) }
        return password
    }

    private static func named(_ path: String) -> String { same(path, "-") ? "standard input" : path }

    private static func read(_ path: String, _ what: String) throws(Failure) -> String {
        let contents: Files.Contents =
            same(path, "-") ? Files.read(STDIN_FILENO, bytesMax: bytesMax) : Files.read(path, bytesMax: bytesMax)
        switch contents {
        case .absent: throw Failure("there is no file \(path) with a \(what)", .usage)
        case .failed(let reason): throw Failure("\(named(path)) with the \(what) cannot be read: \(reason)", .usage)
        case .bytes(let bytes):
            guard let text: String = String(validating: bytes, as: UTF8.self) else {
                throw Failure("\(named(path)) with the \(what) is not UTF-8", .usage)
            }
            return text
        }
    }

    /// Editors and `echo` end a file with a line feed that is no part of the password.
    private static func withoutLineEnd(_ text: String) -> String {
        var bytes: Substring.UTF8View = Substring(text).utf8
        if bytes.last == 0x0A { bytes.removeLast() }
        if bytes.last == 0x0D { bytes.removeLast() }
        return String(Substring(bytes))
    }

    private static func ask(_ label: String, _ lack: String) async throws(Failure) -> String {
        switch await onOwnThread({ SecretPrompt.ask(label) }) {
        case .typed(let text): return text
        case .noTerminal: throw Failure(lack, .usage)
        case .cancelled: throw Failure("cancelled, nothing was done")
        }
    }
}

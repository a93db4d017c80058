import ThicketClient
import ThicketCommandLine
import ThicketCrypto
import ThicketProtocol

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Runs the commands of `thicket`.
public enum ThicketCommand {
    /// Runs the command that the words name and returns its exit code.
    /// - Parameter words: the arguments, without the program's name.
    public static func run(_ words: [String], environment: ProcessVariables) async -> Int32 {
        await run(words, environment: environment, ThicketProgram.program) { call throws(Failure) in
            try await perform(call)
        }
    }

    /// The same for another program, which may have commands of `thicket` beside its own.
    package static func run(
        _ words: [String], environment: ProcessVariables, _ program: Program,
        _ perform: (Call) async throws(Failure) -> Void
    ) async -> Int32 {
        // Writing to a pipe without a reader must fail, not end the program in the middle of its work.
        _ = signal(SIGPIPE, SIG_IGN)
        switch program.parse(words) {
        case .print(let text):
            Terminal.write(text)
            return ended(Terminal.outputError == nil ? nil : .output, program).number
        case .refuse(let text):
            Terminal.writeError(text)
            return ExitCode.usage.number
        case .run(let invocation):
            let call = Call(invocation, environment)
            defer { call.alarms.report() }
            do throws(Failure) {
                try await perform(call)
                // Also a command that does not look at its output ends with this failure.
                if Terminal.outputError != nil { throw Failure.output }
                return (call.opened.refusalCode ?? .success).number
            } catch {
                await call.opened.close()
                let code = ended(error, program)
                // A refused edit has a more precise code than "it did not work"; any other code is about the command
                // itself.
                return (code == .failure ? call.opened.refusalCode ?? .failure : code).number
            }
        }
    }

    /// Prints why a command ends, if there is anything to say.
    private static func ended(_ failure: Failure?, _ program: Program) -> ExitCode {
        guard let failure else { return .success }
        if !failure.text.isEmpty { Terminal.writeError("\(program.name): \(failure.text)\n") }
        return failure.code
    }

    /// Runs a command of `thicket`.
    package static func perform(_ call: Call) async throws(Failure) {
        // Files made from here on are readable by their owner only, except files that the user asks for by name.
        switch call.name {
        case "signup": try await SignupCommand.run(call)
        case "login": try await LoginCommand.run(call)
        case "logout": try await LogoutCommand.run(call)
        case "lock": try await LockCommand.run(call)
        case "unlock": try await UnlockCommand.run(call)
        case "whoami": try WhoamiCommand.run(call)
        case "devices": try await DevicesCommand.run(call)
        case "password", "passwd": try await PasswdCommand.run(call)
        case "recover": try await RecoverCommand.run(call)
        case "forgot": try await ForgotCommand.run(call)
        case "words": try await WordsCommand.run(call)
        case "verify" where !call.argument("USER").isEmpty: try await SafetyNumberCommand.run(call)
        case "verify": try await VerifyCommand.run(call)
        case "contacts": try await ContactsCommand.list(call)
        case "contacts add": try await ContactsCommand.add(call)
        case "contacts remove": try await ContactsCommand.remove(call)
        case "keylog": try await KeyLogCommand.run(call)
        case "verify-evidence": try VerifyEvidenceCommand.run(call)
        case "pair": try await PairCommand.run(call)
        case "audit": try await AuditCommand.run(call)
        case "keys": try await KeysCommand.run(call)
        case "account delete": try await AccountDeleteCommand.run(call)
        case "token list": try await TokenCommand.list(call)
        case "token revoke": try await TokenCommand.revoke(call)
        case "token print": try await TokenCommand.show(call)
        case "status": try await StatusCommand.run(call)
        case "ls": try await ListCommand.run(call)
        case "get": try await GetCommand.run(call)
        case "put": try await PutCommand.run(call)
        case "rm": try await RemoveCommand.run(call)
        case "edit": try await EditCommand.run(call)
        case "watch": try await WatchCommand.run(call)
        case "history": try await HistoryCommand.run(call)
        case "verify-history": try await VerifyHistoryCommand.run(call)
        case "revert": try await RevertCommand.run(call)
        case "drop": try await DropCommand.run(call)
        case "repair": try await RepairCommand.run(call)
        case "import": try await ImportCommand.run(call)
        case "export": try await ExportCommand.run(call)
        case "mirror": try await MirrorCommand.run(call)
        case "onions list": try await OnionCommands.list(call)
        case "onions show": try await OnionCommands.show(call)
        case "onions new": try await OnionCommands.new(call)
        case "onions edit": try await OnionCommands.edit(call)
        case "onions rm": try await OnionCommands.remove(call)
        case "onions attach": try await NoteAttachments.attach(call)
        case "onions detach": try await NoteAttachments.detach(call)
        case "onions save": try await NoteAttachments.save(call)
        case "onions view": try await NotesView.run(call)
        case "onions export": try await OnionCopies.export(call)
        case "onions import": try await OnionCopies.importing(call)
        case "onions signup": try await OnionCommands.signUp(call)
        case "onions upgrade": try await OnionCommands.upgrade(call)
        case "onions delete": try await OnionCommands.delete(call)
        case "replay": try await ReplayCommand.run(call)
        case "jsondiff": try JSONDiffCommand.run(call)
        case "crypto": try CryptoCommand.run(call)
        case "verify-release": try VerifyReleaseCommand.run(call)
        case "version": Terminal.write("thicket \(Thicket.version)\n")
        case "link list": try await LinkCall.list(call)
        case "link get": try await LinkCall.get(call)
        case "link put": try await LinkCall.put(call)
        case let name where name.hasPrefix("tree "): try await TreeCommands.run(call)
        default: throw Failure("the command '\(call.name)' is declared and not written")
        }
    }
}

/// One call of a command: its words and its environment.
package struct Call: Sendable {
    package let invocation: Invocation
    let environment: [String: String]
    let opened = OpenedBuckets()
    let alarms = AlarmReports()
    private let secrets: [String: SecureBytes]

    init(_ invocation: Invocation, _ variables: ProcessVariables) {
        self.invocation = invocation
        (environment, secrets) = (variables.clear, variables.secrets)
    }

    /// A password from the environment (`password` reads `THICKET_PASSWORD`); an empty one counts as not given.
    func secret(_ name: String) -> SecureBytes? { secrets[Call.variable(name)] }

    package var name: String { invocation.command.name }
    package func flag(_ name: String) -> Bool { invocation.flag(name) }
    package func argument(_ name: String) -> String { invocation.argument(name) ?? "" }
    package func arguments(_ name: String) -> [String] { invocation.arguments(name) }
    package func value(_ name: String) -> String? { invocation.value(name) }

    /// The flag, else the environment variable `THICKET_…`; an empty value counts as not given.
    func setting(_ name: String) -> String? {
        for value in [value(name), environment[Call.variable(name)]] {
            if let value, !value.isEmpty { return value }
        }
        return nil
    }

    /// The environment variable of a setting: `api-key` is `THICKET_API_KEY`.
    static func variable(_ name: String) -> String {
        "THICKET_" + String(name.map { $0 == "-" ? "_" : Character($0.uppercased()) })
    }

    /// A whole number in a range.
    package func number(_ name: String, in range: ClosedRange<Int>, default standard: Int) throws(Failure) -> Int {
        guard let text = value(name) else { return standard }
        guard let number = Int(text), range.contains(number) else {
            throw Failure(
                "--\(name) is a whole number of \(range.lowerBound) to \(range.upperBound), not '\(text)'", .usage)
        }
        return number
    }

    /// The longest wait for an answer of the server.
    func timeout() throws(Failure) -> Duration {
        guard let text = setting("timeout") else { return .seconds(30) }
        guard let time = Duration(written: text), time >= .milliseconds(1), time <= .seconds(86_400) else {
            throw Failure("--timeout is a time such as 500ms, 30s or 5m (a day at most), not '\(text)'", .usage)
        }
        return time
    }

    /// How long the command may wait in total, if `--timeout` is given.
    func wait() throws(Failure) -> WaitBudget {
        WaitBudget(try timeout(), isWhole: setting("timeout") != nil)
    }
}

extension Duration {
    /// Reads `500ms`, `30s`, `5m` or `1h`; a number without a unit means seconds.
    init?(written text: String) {
        let digits: Substring = text.prefix { $0.isASCII && $0.isNumber }
        guard let number = Int64(digits), number <= 100_000_000 else { return nil }
        switch text.dropFirst(digits.count) {
        case "ms": self = .milliseconds(number)
        case "s", "": self = .seconds(number)
        case "m": self = .seconds(number * 60)
        case "h": self = .seconds(number * 3_600)
        default: return nil
        }
    }

    /// The duration for a person: `30 s`, `500 ms`.
    var words: String {
        let (seconds, attoseconds) = components
        return attoseconds == 0 ? "\(seconds) s" : "\(seconds * 1_000 + attoseconds / 1_000_000_000_000_000) ms"
    }
}

import Glibc
import ThicketCommandLine
import ThicketNet

/// Why a command ends without having done its work: a message for the operator and an exit code.
struct CommandFailure: Error {
    let text: String
    let code: ExitCode

    init(_ text: String, _ code: ExitCode = .failure) {
        self.text = text
        self.code = code
    }

    init(_ error: DataFolderError) {
        self.init(error.description, error.kind == .folderInUse ? .folderInUse : .failure)
    }
}

/// Runs the commands of `thicketd`.
public enum Thicketd {
    /// Runs the command and returns the exit code.
    /// - Parameter words: the arguments, without the program's name.
    public static func run(_ words: [String], environment: [String: String]) -> Int32 {
        switch ThicketdProgram.program.parse(words) {
        case .print(let text):
            return Terminal.write(text) ? ExitCode.success.number : ExitCode.failure.number
        case .refuse(let text):
            Terminal.writeError(text)
            return ExitCode.usage.number
        case .run(let call):
            do throws(CommandFailure) {
                try perform(call, environment)
                return ExitCode.success.number
            } catch {
                if !error.text.isEmpty { Terminal.writeError("thicketd: \(error.text)\n") }
                return error.code.number
            }
        }
    }

    /// The environment variables of this process.
    public static func environment() -> [String: String] {
        var variables = [String: String]()
        var next = environ
        while let entry = next.pointee {
            let parts: [Substring] = String(cString: entry).split(
                separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { variables[String(parts[0])] = String(parts[1]) }
            next += 1
        }
        return variables
    }

    private static func perform(_ call: Invocation, _ environment: [String: String]) throws(CommandFailure) {
        let loaded = try load(call, environment)
        // Files made from here on are accessible only to their owner.
        umask(0o077)
        switch call.command.name {
        case "serve":
            try ServeCommand.run(loaded) { () throws(CommandFailure) in try load(call, environment, isRunning: true) }
        case "app create": try AppCommands.create(call, loaded.config)
        case "app passwords": try KeyCommands.setPasswords(call, loaded.config)
        case "app notes": try KeyCommands.setNotes(call, loaded.config)
        case "app key add": try KeyCommands.addKey(call, loaded.config)
        case "app key list": try KeyCommands.listKeys(call, loaded.config)
        case "app key revoke": try KeyCommands.revokeKey(call, loaded.config)
        case "bucket mode": try BucketCommands.mode(call, loaded.config)
        case "token list": try KeyCommands.listTokens(call, loaded.config)
        case "token revoke": try KeyCommands.revokeTokens(call, loaded.config)
        case "account list": try AccountCommands.list(call, loaded.config)
        case "account pro": try AccountCommands.setPro(call, loaded.config)
        case "account delete": try AccountCommands.delete(call, loaded.config)
        case "partner create": try PartnerCommands.create(call, loaded.config)
        case "partner add": try PartnerCommands.add(call, loaded.config)
        case "partner list": try PartnerCommands.list(loaded.config)
        case "partner rotate": try PartnerCommands.rotate(call, loaded.config)
        case "partner api-key": try PartnerCommands.replaceAPIKey(call, loaded.config)
        case "key check": try KeyFileCommands.check(loaded.config)
        case "key rotate": try KeyFileCommands.rotate(call, loaded.config)
        case "key abandon": try KeyFileCommands.abandon(loaded.config)
        case "keylog show": try KeyLogCommands.show(call, loaded.config)
        case "keylog verify": try KeyLogCommands.verify(call, loaded.config)
        case "keylog export": try KeyLogCommands.writeExport(call, loaded.config)
        case "keylog witness": try WitnessCommand.run(call)
        case "keylog rotate": try KeyLogCommands.rotate(loaded.config)
        case "partner disable": try PartnerCommands.setEnabled(false, call, loaded.config)
        case "partner passwords": try PartnerCommands.setPasswords(call, loaded.config)
        case "partner enable": try PartnerCommands.setEnabled(true, call, loaded.config)
        case "token create": try AdminCommands.createToken(call, loaded.config)
        case "token import": try TokenImportCommand.run(call, loaded.config)
        case "check": try AdminCommands.check(loaded.config)
        case "backup": try AdminCommands.backup(call, loaded.config)
        case "restore": try AdminCommands.restore(call, loaded.config)
        case "ask": try AskCommand.run(call, loaded.config)
        case "health": try HealthCommand.run(loaded.config)
        case "config":
            Terminal.write(loaded.text)
            if let files = TLSFiles(loaded.config), let mode = files.exposedMode {
                Terminal.writeError("thicketd: \(files.exposure(mode))\n")
            }
        case "version": Terminal.write("thicketd \(ThicketServer.version)\n")
        default: throw CommandFailure("the command '\(call.command.name)' is declared and not written")
        }
    }

    /// The settings of this call, from all sources.
    /// - Parameter isRunning: a running server reads them again; the error then omits "Nothing was done".
    static func load(
        _ call: Invocation, _ environment: [String: String], isRunning: Bool = false
    ) throws(CommandFailure) -> LoadedConfig {
        var file: ConfigLoader.File?
        if let path = call.value("config") ?? environment["THICKET_CONFIG"], !path.isEmpty {
            guard let text = FileText.read(path, bytesMax: 1 << 20) else {
                throw CommandFailure(
                    "the settings file \(path) cannot be read: \(DataFolder.reason(errno))", .usage)
            }
            file = ConfigLoader.File(path: path, text: text)
        }
        let known = Set(ServerSettings.all.map(\.name))
        let flags: [(name: String, value: String)] = call.given.compactMap { given in
            known.contains(given.name) ? (given.name, given.values.last ?? "") : nil
        }
        do throws(ConfigError) {
            return try ConfigLoader().load(flags: flags, environment: environment, file: file)
        } catch {
            if isRunning { throw CommandFailure(error.problems.joined(separator: "; "), .usage) }
            throw CommandFailure(
                error.problems.joined(separator: "\nthicketd: ")
                    + "\nNothing was done. 'thicketd serve --help' lists the settings.", .usage)
        }
    }
}

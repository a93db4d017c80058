import Glibc
import ThicketCommandLine
import ThicketCrypto
import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol

/// `thicketd keylog witness`: confirms the heads of another server's key log. It needs no data folder.
enum WitnessCommand {
    static func run(_ call: Invocation) throws(CommandFailure) {
        let path = call.value("state") ?? ""
        // Two runs at once could confirm two logs that both go on from the state.
        let lock = open(path + ".lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        defer { if lock >= 0 { close(lock) } }
        guard lock >= 0 else { throw CommandFailure("\(path).lock: \(DataFolder.reason(errno))") }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else { throw CommandFailure("another run uses the state \(path)") }
        let run = try WitnessRun(call)
        let outcome: WitnessRun.Outcome
        do throws(WitnessRun.Failure) {
            outcome = try run.run(try state(path), now: UInt64(max(0, SystemClock.unixMilliseconds())))
        } catch { throw CommandFailure("nothing was confirmed: \(error)") }
        switch outcome {
        case .confirmed(let head):
            Terminal.write(
                "confirmed \(head.size / 2) entries, head of \(KeyCommands.date(Int64(clamping: head.time)))\n")
        case .fork(let evidence):
            let file = path + ".evidence.json"
            try write(JSONValue.object(evidence.json).serialized() + [0x0A], to: file)
            throw CommandFailure(
                "FORK: \(evidence.summary). Nothing is confirmed until the server shows that one log goes on from the "
                    + "other. Evidence: \(file); 'thicket verify-evidence' says what it proves. After an honest restore "
                    + "of that server, remove \(path).")
        }
    }

    /// The state of the run before.
    private static func state(_ path: String) throws(WitnessRun.Failure) -> [UInt8]? {
        var status = stat()
        guard stat(path, &status) == 0 else {
            guard errno == ENOENT else { throw WitnessRun.Failure("\(path): \(DataFolder.reason(errno))") }
            return nil
        }
        // A witness that begins again confirms whatever it is shown: a damaged state is not one that is missing.
        guard let bytes = FileText.readBytes(path, bytesMax: WitnessRun.stateBytesMax), !bytes.isEmpty else {
            throw WitnessRun.Failure("the state \(path) is damaged: restore it, or remove it to begin again")
        }
        return bytes
    }

    /// Replaces a file as a whole, and returns when it is on disk.
    static func replace(_ path: String, _ bytes: [UInt8]) throws(WitnessRun.Failure) {
        let draft = path + ".new"
        unlink(draft)
        let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw WitnessRun.Failure("\(draft) cannot be made: \(DataFolder.reason(errno))") }
        let isWritten = Glibc.write(file, bytes, bytes.count) == bytes.count && fsync(file) == 0
        let reason = DataFolder.reason(errno)
        close(file)
        guard isWritten, rename(draft, path) == 0 else {
            throw WitnessRun.Failure("\(path) cannot be written: \(reason)")
        }
        let folder = open(Files.folder(of: path), O_RDONLY | O_CLOEXEC | O_DIRECTORY)
        guard folder >= 0 else { throw WitnessRun.Failure("\(path) cannot be written: \(DataFolder.reason(errno))") }
        defer { close(folder) }
        guard fsync(folder) == 0 else {
            throw WitnessRun.Failure("\(path) cannot be written: \(DataFolder.reason(errno))")
        }
    }

    private static func write(_ bytes: [UInt8], to path: String) throws(CommandFailure) {
        do throws(WitnessRun.Failure) { try replace(path, bytes) } catch { throw CommandFailure(error.description) }
    }
}

extension WitnessRun {
    fileprivate init(_ call: Invocation) throws(CommandFailure) {
        let (url, app, path) = (call.value("of") ?? "", call.value("app") ?? "", call.value("state") ?? "")
        guard (try? AppID(app)) != nil else { throw CommandFailure("--app: no app has this name", .usage) }
        guard url.hasPrefix("https://") || url.hasPrefix("http://") else {
            throw CommandFailure("--of is a server's address, such as https://example.com", .usage)
        }
        let key: Ed25519.SigningKey
        do {
            if try ServerKey.secret(in: call.value("key") ?? "") == nil { try ServerKey.make(call.value("key") ?? "") }
            guard let seed = try ServerKey.secret(in: call.value("key") ?? "") else {
                throw CommandFailure("the key file was removed")
            }
            key = try Ed25519.SigningKey(seed: SecureBytes(copying: seed))
        } catch { throw CommandFailure("the witness's key cannot be used: \(error)") }
        var logKey: Ed25519.VerifyingKey?
        if let text = call.value("log-key") {
            guard let octets = Hex.decode(text), let found: Ed25519.VerifyingKey = try? .init(octets) else {
                throw CommandFailure("--log-key is a public key of 64 hexadecimal digits", .usage)
            }
            logKey = found
        }
        guard
            let text = FileText.read(call.value("token-file") ?? "", bytesMax: 4_096)?.split(
                whereSeparator: \.isWhitespace),
            let token = text.first, text.count == 1
        else { throw CommandFailure("--token-file: the file has no token", .usage) }
        Terminal.writeError("witness \(Hex.encode(key.verifyingKey.octets))\n")
        let http = WitnessHTTP(
            base: (url.hasSuffix("/") ? String(url.dropLast()) : url) + "/1/\(app)/", token: String(token),
            authorityFile: call.value("ca"))
        self.init(
            app: app, key: key, logKey: logKey,
            ask: { (method, path, body) throws(Failure) in try http.ask(method, path, body) },
            keep: { (state) throws(Failure) in try WitnessCommand.replace(path, state) })
    }
}
